"""Data sets in other tools' formats, as JSONL for `vlmprof sweep --data`.

    python -m vlmprof.data MMStar.tsv -o data.jsonl                   # VLMEvalKit's table, with its pictures
    python -m vlmprof.data docvqa/ -o data.jsonl                      # Parquet or Arrow, from the Hugging Face hub
    python -m vlmprof.data val_v1.0.json --image_dir DIR -o data.jsonl
    python -m vlmprof.data lmms:mmmu_val -o data.jsonl                # a task of lmms-eval, if it is installed

Formats are recognized by their content: VLMEvalKit TSV and CSV; Parquet and Arrow; the official JSON of DocVQA,
InfographicVQA, TextVQA, ChartQA, VQA v2, OK-VQA, POPE, OCRBench, MathVista, TallyQA. A known data set gets the prompt
of the tool whose format it has. Pictures inside the data become files next to the output. Skipped samples are reported with
the reason."""
from __future__ import annotations

import argparse
import collections
import hashlib
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any, Counter, Dict, Iterator, List, NamedTuple, Optional, Union

from . import lmms, official, tables
from .prompts import TASKS, metric_of, task_of
from .record import DataError, Picture, Sample, picture_format

__all__ = ["DataError", "Picture", "Sample", "Source", "convert", "metric_of", "open_source", "read", "task_of"]
PathLike = Union[str, "os.PathLike[str]"]
MEANT = {"choices", "options", "dataset", "hint", "style", "metric", "question", "answers"}  # what they mean in JSONL


class Source(NamedTuple):
    """An open data set: its samples, the folders with its pictures, its format and the origin of its prompts."""
    name: str
    samples: Iterator[Sample]
    folders: List[Path]
    format: str
    origin: str  # "lmms_eval", "vlmevalkit" or "none"
    task: Optional[str]


def _json_source(path: Path, task: Optional[str], notes: Optional[Path], folders: List[Path]) -> Source:
    value = official.read_json(path)
    if isinstance(value, dict) and isinstance(value.get("questions"), list):
        task = task or task_of(path.stem) or "coco_2014_vqa"
        return Source(path.name, official.vqa_samples(path, value, notes, task, folders), folders, "VQA questions", "lmms_eval", task)
    rows = official.records_of(value, path)
    if not rows:
        raise DataError(f"{path}: the file contains no records")
    form = official.form_of(rows[0])
    if form is None:
        keys = ", ".join(list(rows[0])[:12])
        hint = "; vlmprof sweep --data reads it directly" if "question" in rows[0] else ""
        raise DataError(f"{path}: records in an unknown format, with the keys {keys}{hint}")
    samples = official.official_samples(path, rows, form, folders)
    return Source(path.name, samples, folders, f"official JSON of {form.task}", "lmms_eval", form.task)


def open_source(source: PathLike, image_dir: Optional[PathLike] = None, dataset_name: Optional[str] = None, annotations: Optional[PathLike] = None) -> Source:
    """Opens a data set by its content. Raises DataError if it cannot be read."""
    name = os.fspath(source)
    if name.startswith("lmms:"):
        return Source(name, lmms.lmms_samples(name[5:]), [], "lmms-eval task", "lmms_eval", None)
    path = Path(name)
    task = task_of(dataset_name or path.stem)
    folders = [Path(image_dir)] if image_dir else []
    folders.append(path if path.is_dir() else path.parent)
    if dataset_name and not task:
        raise DataError(f"--dataset_name {dataset_name}: no such data set; known are {', '.join(TASKS)}")
    if path.is_dir() and not tables.column_files(path):
        raise DataError(f"{path}: a folder without Parquet or Arrow files")
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    with (path if path.is_file() else tables.column_files(path)[0]).open("rb") as file:
        head = file.read(4096)
    suffix = path.suffix.lower()
    if path.is_dir() or head.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")) or suffix in (".parquet", ".arrow"):
        return Source(path.name, tables.column_samples(path, task if dataset_name else None), folders, "Parquet or Arrow", "lmms_eval", task)
    if head[:2] in (b"\x1f\x8b", b"PK") or head[:4] in (b"(\xb5/\xfd", b"GGUF"):
        raise DataError(f"{path}: a compressed file or a model: unpack it first")
    if suffix in (".tsv", ".csv"):
        rows = tables.read_tsv(path, "," if suffix == ".csv" else "\t")
        return Source(path.name, tables.tsv_samples(path, task, rows), folders, "VLMEvalKit table", "vlmevalkit", task)
    return _json_source(path, task, Path(annotations) if annotations else None, folders)


def read(source: PathLike, **options: Any) -> List[Sample]:
    """All samples of a data set, including the unusable ones, whose `error` gives the reason. The options are those of open_source."""
    return list(open_source(source, **options).samples)


class _Writer:
    """Writes JSONL, and the pictures inside the data to a folder, each picture once."""

    def __init__(self, output: Path, images: Path, origin: str):
        self.output, self.images, self.origin = output, images, origin
        self.base = output.resolve().parent

    def picture(self, picture: Picture, folders: List[Path]) -> str:
        found = picture.find(folders)
        ending = picture_format(found if isinstance(found, bytes) else found.open("rb").read(16))
        if isinstance(found, bytes):
            path = self.images / f"{hashlib.sha256(found).hexdigest()[:16]}.{ending}"
            if not path.exists():
                self.images.mkdir(parents=True, exist_ok=True)
                path.write_bytes(found)
            found = path
        whole = found.resolve()
        return str(whole.relative_to(self.base)) if self.base in whole.parents else str(whole)

    def record(self, sample: Sample, folders: List[Path]) -> Dict[str, Any]:
        """A line of vlmprof's JSONL. Raises DataError if a picture is missing."""
        if sample.error:
            raise DataError(sample.error)
        record: Dict[str, Any] = {"id": sample.id}
        content = _placed(sample)
        order = [part["image"] for part in content if "image" in part] if content else range(len(sample.pictures))
        paths = [self.picture(sample.pictures[place], folders) for place in order]
        if paths:
            record.update({"image": paths[0]} if len(paths) == 1 else {"images": paths})
        if content:
            places = iter(range(len(paths)))
            record["content"] = [{"image": next(places)} if "image" in part else part for part in content]
        else:
            record["question"] = sample.prompt
            if sample.prompt is None:
                record["question"] = "\n".join(part["text"] for part in sample.content if "text" in part)
        metric = metric_of(sample.rule, bool(sample.options))
        only = [sample.answer] if sample.answer is not None else None
        references = sample.answers if sample.answers is not None else only
        if metric and references is not None and not (sample.options and sample.answer is not None):
            record["answers"] = references
        elif references and not metric:
            record["source_answers"] = references  # the program scores "answers" and "references" by its default
        if metric and sample.options:
            last = max(sample.options)
            record["options"] = [sample.options.get(chr(code), "") for code in range(ord("A"), ord(last) + 1)]
            record.update({"answer": sample.answer} if sample.answer is not None else {})
        if self.origin != "none":
            record["prompt_origin"] = self.origin  # the prompt is complete: the program adds no options to it
        record.update({key: value for key, value in (("metric", metric), ("rule", sample.rule)) if value})
        for key, value in sample.more.items():
            if value is not None and value != []:
                record[f"source_{key}" if key in MEANT else key] = value
        return record


def _placed(sample: Sample) -> List[Dict[str, Any]]:
    """The content if a picture is between or after texts; otherwise the pictures come first, then the question."""
    texts = [part for part in sample.content if "text" in part]
    first = sample.content[:len(sample.content) - len(texts)]
    leads = all("image" in part for part in first) and len(first) == len(sample.pictures)
    return [] if not texts or leads else sample.content


class Report(NamedTuple):
    """The result of convert: the samples written, the rows skipped for each reason, and the scoring rules."""
    written: int
    left_out: Dict[str, List[int]]
    rules: Counter[str]
    source: Source

    def lines(self) -> List[str]:
        count = sum(len(rows) for rows in self.left_out.values())
        origin = {"lmms_eval": "lmms-eval's", "vlmevalkit": "VLMEvalKit's"}.get(self.source.origin, "as in the data")
        lines = [f"{self.source.name} ({self.source.format}): {self.written} samples written, {count} left out; prompts: {origin}"]
        for rule, number in self.rules.most_common():
            metric = metric_of(rule, True)
            lines.append(f"  {number} scored by {rule}: " + (f"metric {metric}, or that tool" if metric else "by that tool (python -m vlmprof.scores)"))
        for reason, rows in list(self.left_out.items())[:10]:
            shown = ", ".join(str(row) for row in rows[:5]) + (", .." if len(rows) > 5 else "")
            lines.append(f"  left out, {'row' if len(rows) == 1 else 'rows'} {shown}: {reason}")
        return lines


def convert(source: PathLike, output: PathLike, images: Optional[PathLike] = None, prompt: str = "tool", limit: Optional[int] = None, **options: Any) -> Report:
    """Writes a data set as JSONL with its pictures, and returns a Report.

    images: folder for pictures inside the data (default: OUTPUT_images); prompt: "tool", or "raw" for the question
    alone."""
    path = Path(output)
    opened = open_source(source, **options)
    origin = opened.origin if prompt == "tool" else "none"
    writer = _Writer(path, Path(images) if images else path.with_name(path.stem + "_images"), origin)
    written, left_out, rules = 0, collections.defaultdict(list), collections.Counter()  # type: ignore[var-annotated]
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            for sample in itertools.islice(opened.samples, limit):
                if prompt == "raw" and sample.question is not None:
                    sample.prompt, sample.content = sample.question, []
                try:
                    line = json.dumps(writer.record(sample, opened.folders), ensure_ascii=False)
                except DataError as error:
                    left_out[str(error)].append(sample.row)
                    continue
                file.write(line + "\n")
                written += 1
                rules.update([sample.rule] if sample.rule else [])
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return Report(written, dict(left_out), rules, opened)


def main(arguments: Optional[List[str]] = None) -> int:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m vlmprof.data", description=__doc__, formatter_class=about)
    parser.add_argument("source", help="a file, a folder of Parquet or Arrow files, or lmms:TASK")
    parser.add_argument("-o", "--output", required=True, help="JSONL file to write")
    parser.add_argument("--images", help="folder for pictures inside the data (default: OUTPUT_images)")
    parser.add_argument("--image_dir", help="folder of the pictures that the data name, if not the file's own")
    parser.add_argument("--dataset_name", help="the data set, if the file's name does not show it: mmstar, docvqa_val, MMBench_DEV_EN")
    parser.add_argument("--annotations", help="annotations of VQA questions, if they are not next to the file")
    parser.add_argument("--prompt", choices=("tool", "raw"), default="tool", help="raw: the question alone (default: the tool's prompt)")
    parser.add_argument("--limit", type=int, help="convert only the first N samples")
    given = parser.parse_args(arguments)
    try:
        report = convert(given.source, given.output, given.images, given.prompt, given.limit, image_dir=given.image_dir,
                         dataset_name=given.dataset_name, annotations=given.annotations)
    except (DataError, OSError) as error:
        print(f"vlmprof.data: {error}", file=sys.stderr)
        return 3
    print("\n".join(report.lines()), file=sys.stderr)
    return 0 if report.written else 1
