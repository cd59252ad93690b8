"""Official JSON: DocVQA, InfographicVQA, TextVQA, ChartQA, VQA v2, OK-VQA, POPE, OCRBench, MathVista, TallyQA."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .prompts import MATH_VISTA, TASKS, mathvista_official
from .record import DataError, Picture, Row, Sample, id_of, letters, text_of, texts_of


class Form(NamedTuple):
    """A file format whose records have all of `keys`: the members with question, answers and picture, and the picture's folder."""
    keys: str
    task: str
    id: str
    question: str
    answers: Optional[str]
    folder: str
    picture: Optional[str]
    rule: Optional[str] = None  # None: that of lmms-eval


FORMS = [Form("imgname query", "chart_qa", "", "query", "label", "png/", "imgname"),
    Form("question_id text label", "pope", "question_id", "text", None, "", None, "pope_official"),
    Form("question question_type answer_type precision", "math_vista", "pid", "question", None, "", "image", "mathvista_official"),
    Form("issimple question", "tally_qa", "question_id", "question", None, "", "image"),
    Form("image_path dataset_name question", "ocrbench", "id", "question", "answers", "OCRBench_Images/", "image_path", "ocrbench_vlmevalkit"),
    Form("image_local_name question", "info_vqa", "questionId", "question", "answers", "", "image_local_name"),
    Form("questionId question image", "doc_qa", "questionId", "question", "answers", "", "image"),
    Form("image_id question set_name", "text_vqa", "question_id", "question", "answers", "", None),
    Form("image_id question question_tokens", "text_vqa", "question_id", "question", "answers", "", None)]


def read_json(path: Path) -> Any:
    """The value of a JSON file, or the list of a JSONL file's lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason}, byte {error.start})") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as whole:
        lines: List[Any] = []
        for number, line in enumerate(text.split("\n"), 1):
            try:
                if line.strip():
                    lines.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise DataError(f"{path}: " + (f"line {number}: {error.msg}" if lines else f"not JSON: {whole}")) from None
        return lines


def records_of(value: Any, path: Path) -> List[Row]:
    """The records of a file: a list, the list "data" or "questions", or an object that maps ids to records."""
    if isinstance(value, dict) and isinstance(value.get("data", value.get("questions")), list):
        value = value.get("data", value.get("questions"))
    elif isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
        value = [{"pid": key, **item} for key, item in value.items()]
    elif isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DataError(f"{path}: expected a list of records, or lines with one JSON object each")
    return value


def form_of(row: Row) -> Optional[Form]:
    return next((form for form in FORMS if all(key in row for key in form.keys.split())), None)


def _coco(name: str, folders: List[Path]) -> Picture:
    """A COCO picture, by its name or, if that is missing, in the folder of its split: val2014/COCO_val2014_..jpg."""
    split = re.match("COCO_([^_]+)_", name)
    if split and not any((folder / name).is_file() for folder in folders):
        name = f"{split.group(1)}/{name}"
    return Picture(path=name)


def _read_special(row: Row, form: Form, path: Path, folders: List[Path], sample: Sample) -> None:
    if form.task == "chart_qa":
        sample.more["category"] = path.stem
    elif form.task == "pope":
        sample.answer = text_of(row["label"])
        sample.pictures = [_coco(str(row.get("image")), folders)]
        if "coco_pope_" in path.stem:
            sample.more["category"] = path.stem.split("coco_pope_")[1]
    elif form.task == "ocrbench":
        sample.more.update(dataset=text_of(row["dataset_name"]), category=text_of(row.get("type")))
    elif form.task == "text_vqa":
        folder = "test_images" if row.get("set_name") == "test" else "train_images"
        sample.pictures = [Picture(path=f"{folder}/{row['image_id']}.jpg")]
    elif form.task == "tally_qa":
        sample.answer = text_of(row.get("answer"))
    elif form.task == "math_vista":
        sample.answer = text_of(row.get("answer"))
        sample.options = letters(list(texts_of(row.get("choices"))))
        sample.more.update({key: row.get(key) for key in MATH_VISTA})


def official_samples(path: Path, rows: List[Row], form: Form, folders: List[Path]) -> Iterator[Sample]:
    task = TASKS[form.task]
    for number, row in enumerate(rows):
        sample = Sample(number, id_of(row, [form.id], number), question=text_of(row.get(form.question)), rule=form.rule or task.lmms_rule)
        if sample.question is None:
            sample.fail(f"\"{form.question}\" must be a string")
        if form.answers:
            sample.answers = texts_of(row.get(form.answers))
        if form.picture:
            name = text_of(row.get(form.picture))
            sample.pictures = [Picture(path=form.folder + name)] if name else []
            if not name:
                sample.fail(f"\"{form.picture}\" must be a string")
        _read_special(row, form, path, folders, sample)
        if sample.answers == [] or (sample.answers is None and sample.answer is None):
            sample.rule = None  # a test split
        sample.prompt = (mathvista_official if form.task == "math_vista" else (lambda one: one.question or "") if form.task == "ocrbench" else task.lmms)(sample)
        if form.task == "math_vista":
            sample.options = {}
        sample.more.pop("unit", None)
        yield sample


# ---- VQA v2 and OK-VQA: questions and annotations in two files

def notes_beside(path: Path) -> Optional[Path]:
    """The annotations for a file of questions, found by the published names: OpenEnded_mscoco_val2014_questions.json."""
    other = path.with_name(path.name.replace("OpenEnded_", "").replace("_questions", "_annotations"))
    return other if other != path and other.is_file() else None


def vqa_samples(path: Path, value: Row, notes_path: Optional[Path], task: str, folders: List[Path]) -> Iterator[Sample]:
    notes: Dict[Any, Row] = {}
    notes_path = notes_path or notes_beside(path)
    if notes_path:
        notes = {note.get("question_id"): note for note in read_json(notes_path).get("annotations", [])}
    match = re.search("mscoco_(.+?)_questions", path.stem)
    split = str(value.get("data_subtype") or (match.group(1) if match else "")).replace("test-dev2015", "test2015")
    of = TASKS[task]
    for number, row in enumerate(value["questions"]):
        sample = Sample(number, id_of(row, ["question_id"], number), question=text_of(row.get("question")), rule=of.lmms_rule, answers=[])
        note = notes.get(row.get("question_id"))
        if note:
            answers = note.get("answers") or []
            sample.answers = texts_of(answers)
            sample.more["raw_answers"] = [item["raw_answer"] for item in answers if isinstance(item, dict) and "raw_answer" in item]
        else:
            sample.rule = None
        if not split or not isinstance(row.get("image_id"), int):
            sample.fail("its picture has no name: \"image_id\" or \"data_subtype\" is missing")
        else:
            sample.pictures = [_coco(f"COCO_{split}_{row['image_id']:012d}.jpg", folders)]
        sample.prompt = of.lmms(sample)
        yield sample
