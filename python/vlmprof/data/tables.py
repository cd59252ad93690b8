"""Rows of tables: VLMEvalKit's TSV, and the Parquet and Arrow files of the Hugging Face hub, as the tools read them."""
from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from .prompts import CHOICE, MATH_VISTA, TASKS, task_of
from .record import LETTERS, DataError, Picture, Row, Sample, decode_base64, id_of, letters, text_of, texts_of


def python_list(text: str) -> Optional[List[str]]:
    """The texts of a Python list literal; None if the text is not one.

    >>> python_list("['a', 2]"), python_list("a")
    (['a', '2'], None)
    """
    if not text.lstrip().startswith("["):
        return None
    try:
        items = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return texts_of(items) if isinstance(items, list) else None


# ---- VLMEvalKit

def read_tsv(path: Path, separator: str) -> List[Row]:
    """The rows of a table, with cells printed as pandas and Python print them; missing cells are omitted."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError(f"{path}: reading VLMEvalKit's tables needs pandas: pip install pandas") from None
    try:
        table = pd.read_csv(path, sep=separator)
    except (ValueError, OSError) as error:  # a ParserError is a ValueError
        raise DataError(f"{path}: {error}") from None
    table.columns = [name if re.fullmatch("[A-Z]", str(name)) else str(name).lower() for name in table.columns]
    if "question" not in table.columns and "image" not in table.columns:
        columns = ", ".join(list(table.columns)[:20])
        raise DataError(f"{path}: a table without a column \"question\"; its columns are {columns}")
    rows: List[Row] = []
    for values in zip(*(table[name].tolist() for name in table.columns)):
        rows.append({name: value for name, value in zip(table.columns, values) if not pd.isna(value)})
    return rows


def _cell(row: Row, key: str) -> Optional[str]:
    return str(row[key]) if key in row else None


class TsvPictures:
    """The pictures of a table's rows. A short cell is the index of another row, which may refer to an earlier one."""

    def __init__(self, rows: List[Row]):
        self.cells: Dict[str, str] = {}
        for row in rows:
            cell = _cell(row, "image")
            if cell is not None:
                index = str(row.get("index"))
                self.cells[index] = self.cells.get(cell, cell) if len(cell) <= 64 else cell

    def of(self, row: Row) -> List[Picture]:
        if "image" in row:
            cell = self.cells[str(row.get("index"))]
            if len(cell) <= 64:
                cell = self.cells.get(cell, cell)
            if len(cell) <= 64:
                raise DataError(f"its image refers to row \"{cell}\", which is not in the table")
            return [Picture(data=decode_base64(text)) for text in python_list(cell) or [cell]]
        paths = _cell(row, "image_path")
        return [Picture(path=path) for path in (python_list(paths) or [paths])] if paths else []


def _cut_at_markers(sample: Sample) -> None:
    """Splits MMMU's prompt at "<image N>". Without a marker, the prompt follows the pictures."""
    pieces = re.split(r"<image (\d)>", sample.prompt or "")
    if len(pieces) == 1:
        return
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            sample.content += [{"text": piece}] if piece else []
        elif 0 < int(piece) <= len(sample.pictures):
            sample.content.append({"image": int(piece) - 1})
        else:
            sample.fail(f"the text refers to <image {piece}>; pictures in the sample: {len(sample.pictures)}")
    sample.prompt = None


_LISTS = ("anls_", "vqa_", "vqav2_", "textvqa_", "relaxed_", "ocrbench_", "captions", "realworldqa_")


def tsv_samples(path: Path, task: Optional[str], rows: List[Row]) -> Iterator[Sample]:
    """Samples of a VLMEvalKit table; rows without a picture cell are dropped, as in the tool."""
    pictures = TsvPictures(rows)
    has_letters = any("A" in row for row in rows) and any("B" in row for row in rows)
    has_image = any("image" in row for row in rows)
    circular = re.search("mmbench|ccbench|circular|mmcr", re.sub("[-_ .]", "", path.stem.lower()))
    known = TASKS.get(task) if task else None
    for number, row in enumerate(rows):
        if has_image and "image" not in row:
            continue
        sample = Sample(number, id_of(row, ["index"], number), question=_cell(row, "question"), hint=_cell(row, "hint"),
                        answer=_cell(row, "answer"), rule=known.vlmevalkit_rule if known else None)
        try:
            sample.pictures = pictures.of(row)
        except DataError as error:
            sample.fail(str(error))
        if not known and has_letters:
            sample.rule = "mcq_vlmevalkit"
        if sample.rule and sample.rule.startswith("mcq_") and circular:
            sample.rule = "mcq_circular_vlmevalkit"
        sample.more = {key: _cell(row, key) for key in ("category", "l2-category", "split", "g_index")}
        if task == "math_vista":
            sample.more["choices"] = python_list(_cell(row, "choices") or "")
            sample.more.update({key: _cell(row, key) for key in ("question_type", "answer_type", "answer_option")})
        else:
            sample.options = letters([_cell(row, letter) for letter in LETTERS])
        if sample.rule and sample.rule.startswith(_LISTS) and sample.answer is not None:
            sample.answers = python_list(sample.answer) or [sample.answer]
            sample.answer = None
        if sample.answer is None and sample.answers is None:
            sample.rule = None
        form = known.vlmevalkit if known else CHOICE if has_letters else None
        sample.prompt = form(sample) if form else sample.question
        if sample.question is None and task != "coco_caption":
            sample.fail("it has no question")
        if task in ("mmmu", "mmmu_pro"):
            _cut_at_markers(sample)
        yield sample


# ---- Parquet and Arrow

# columns that only this set has; the first row that fits
SIGNATURES = [("question ucsf_document_id answers", "doc_qa"), ("question operation/reasoning answers", "info_vqa"),
    ("question flickr_original_url", "text_vqa"), ("question question_tokens image_classes", "text_vqa"), ("question multiple_choice_answer answers", "coco_2014_vqa"),
    ("question_id question question_type answer_type answers", "okvqa"), ("pid question decoded_image", "math_vista"),
    ("question choice_a choice_b data_type", "seed_bench"), ("question image_source category answer", "pope"),
    ("question choices hint lecture", "science_qa_img"), ("question A B answer L2-category", "mmbench"),
    ("question A B answer category comment", "mmbench"), ("question l2_category answer image", "mmstar"),
    ("question question_type dataset answer", "ocrbench"), ("question image_1 question_type options", "mmmu"),
    ("question image_1 options", "mmmu_pro"), ("question type answer image", "chart_qa"),
    ("coco_url file_name answer", "coco_caption"), ("question_id question category answer image", "mme"),
    ("question options answer image", "ai2d"), ("options subject answer image", "mmmu_pro")]


def task_of_columns(columns: List[str]) -> Optional[str]:
    """The published data set with these columns; None: an unknown table.

    >>> task_of_columns(["questionId", "question", "image", "ucsf_document_id", "answers"]), task_of_columns(["x"])
    ('doc_qa', None)
    """
    have = set(columns)
    for wanted, task in SIGNATURES:
        if have.issuperset(wanted.split()):
            return task
    return "real_world_qa" if {"image", "question", "answer"} <= have <= {"image", "question", "answer", "image_path"} else None


def read_columns(path: Path) -> Iterator[List[Row]]:
    """The rows of a Parquet or Arrow file, one batch at a time (a row group or a record batch)."""
    try:
        import pyarrow as pa
        import pyarrow.ipc as ipc
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{path}: reading Parquet and Arrow files needs pyarrow: pip install pyarrow") from None
    try:
        with path.open("rb") as file:
            magic = file.read(6)
        if magic[:4] == b"PAR1":
            with pq.ParquetFile(path) as table:
                for batch in table.iter_batches(batch_size=64):
                    yield batch.to_pylist()
            return
        with pa.memory_map(str(path)) as source:
            if magic == b"ARROW1":
                reader = ipc.open_file(source)
                batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                batches = iter(ipc.open_stream(source))
            for batch in batches:
                for first in range(0, batch.num_rows, 64):
                    yield batch.slice(first, 64).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from None


def _pictures(value: Any) -> List[Picture]:
    """Pictures in a cell: bytes, {bytes, path}, a path, or a list of these."""
    if isinstance(value, list):
        return [picture for item in value for picture in _pictures(item)]
    if isinstance(value, dict):
        return [Picture(data=value["bytes"])] if value.get("bytes") else _pictures(value.get("path"))
    if isinstance(value, bytes):
        return [Picture(data=value)]
    return [Picture(path=value)] if isinstance(value, str) and value else []


def _unless_nan(text: Optional[str]) -> Optional[str]:
    return None if text in ("nan", "") else text  # MMBench writes missing texts so


def _list_of(value: Any) -> List[Optional[str]]:
    """Options from a list, or from the text of a Python list."""
    if not isinstance(value, str):
        return list(texts_of(value)) if value is not None else []
    items = python_list(value)
    if items is None:
        raise DataError("its options are not a Python list of texts")
    return list(items)


_MORE = {  # columns that become members, by set: column -> member
    "chart_qa": {"type": "category"}, "ocrbench": {"question_type": "category", "dataset": "dataset"},
    "mmbench": {"category": "category"}, "mmstar": {"category": "category", "l2_category": "l2_category"},
    "mme": {"category": "category"}, "pope": {"category": "category"}, "seed_bench": {"data_type": "category"}, "mmmu": {"question_type": "question_type"}}


def _read_set(row: Row, task: str, sample: Sample) -> None:
    """The specifics of each data set."""
    answer = text_of(row.get("answer"))
    if "answers" in row and task in ("doc_qa", "info_vqa", "text_vqa", "okvqa", "coco_2014_vqa", "st_qa"):
        sample.answers = texts_of(row["answers"])
    elif task in ("ocrbench", "chart_qa", "real_world_qa", "coco_caption"):
        sample.answers = texts_of(row.get("answer"))
    elif task not in ("ai2d", "science_qa_img"):
        sample.answer = answer
    if sample.answers is not None and row.get("answers", row.get("answer")) is None:
        sample.rule = None  # a test split
    if task == "ai2d" or task == "science_qa_img":
        sample.options = letters(_list_of(row.get("options" if task == "ai2d" else "choices")))
        sample.hint = _unless_nan(text_of(row.get("hint")))
        if answer is None or not answer.isdigit() or int(answer) >= len(LETTERS):
            raise DataError(f"its answer \"{answer}\" is not the index of an option")
        sample.answer = LETTERS[int(answer)]
    elif task == "mmbench":
        sample.options = letters([_unless_nan(text_of(row.get(letter))) for letter in LETTERS])
        sample.hint = _unless_nan(text_of(row.get("hint")))
    elif task == "seed_bench":
        sample.options = letters([text_of(row.get(f"choice_{letter}")) for letter in "abcd"])
    elif task == "math_vista":
        sample.options = letters(list(texts_of(row.get("choices"))))
        sample.more.update({key: row[key] for key in MATH_VISTA if row.get(key) not in (None, [])})
    elif task in ("mmmu", "mmmu_pro") and row.get("question_type") != "open":
        sample.options = letters(_list_of(row.get("options")))
    sample.more.update({key: text_of(row.get(column)) for column, key in _MORE.get(task, {}).items()})


def column_sample(row: Row, number: int, task: Optional[str]) -> Sample:
    """The sample of one row of a Parquet or Arrow file."""
    known = TASKS.get(task) if task else None
    sample = Sample(number, id_of(row, ["questionId", "question_id", "pid", "id", "index"], number),
                    question=text_of(row.get("question")), rule=known.lmms_rule if known else None)
    try:
        if task:
            _read_set(row, task, sample)
        else:
            sample.answers = texts_of(row.get("answers", row.get("answer")))
            options = row.get("options", row.get("choices"))
            if options is not None:
                sample.options = letters(_list_of(options))
                sample.answer = sample.answers[0] if len(sample.answers) == 1 else None
    except DataError as error:
        sample.fail(str(error))
    if "image_1" in row:
        sample.pictures = [picture for i in range(1, 8) for picture in _pictures(row.get(f"image_{i}"))]
    else:
        column = "decoded_image" if task == "math_vista" else "image" if "image" in row else "images"
        sample.pictures = _pictures(row.get(column))
    if sample.question is None and task not in (None, "mmmu_pro", "coco_caption"):
        sample.fail("its question is null")
    sample.prompt = known.lmms(sample) if known else sample.question
    sample.more.pop("unit", None)
    return sample


def column_files(path: Path) -> List[Path]:
    """The files of a split, in order of their names: one file, or a folder of shards (also from datasets.save_to_disk)."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in (".parquet", ".arrow", ".feather"))


def column_samples(path: Path, task: Optional[str]) -> Iterator[Sample]:
    number = 0
    for file in column_files(path):
        for rows in read_columns(file):
            for row in rows:
                task = task or task_of_columns(list(row)) or task_of(path.stem)
                yield column_sample(row, number, task)
                number += 1
