"""Sweeps of a torch model. The result files are like those of any other engine (vlmprof help library); report, best, fit and compare read them."""
from __future__ import annotations

import contextlib
import difflib
import hashlib
import inspect
import itertools
import json
import math
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import UserDict
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch

from .. import commands
from ..scores import score_of
from .timing import Progress, cpu_seconds, others_between, provenance, stages, state_of

Knob = Union[int, float, str, bool]
Record = Dict[str, Any]
Point = Tuple[str, Any]  # configuration, sample_id


class Knobs(UserDict):
    """The knobs of one configuration. It records which knobs are read, to detect those without effect."""

    def __init__(self, values: Dict[str, Knob]):
        super().__init__(values)
        self.read: Set[str] = set()

    def __getitem__(self, name: str) -> Knob:
        self.read.add(name)
        return self.data[name]


# ---- records
# a misspelled "image" or "images", by one letter or two swapped ones, or another tool's name: the rule of `vlmprof sweep`
_NOT_IMAGE = re.compile("|".join(["picture|img|image_path|image_url|image_file|img_path|photo|pictures|imgs|image_paths|image_urls"] + [
    one for word in ("image", "images") for at in range(len(word) + 1)
    for one in (f"{word[:at]}.?{word[at + 1:]}", f"{word[:at]}.{word[at:]}", word[:at] + word[at + 1:at + 2] + word[at:at + 1] + word[at + 2:])]), re.IGNORECASE)


def _read_records(records: Union[str, Path, Iterable[Record]], num_samples: Optional[int], seed: int) -> Tuple[str, List[Record]]:
    """(name of the data set, the sampled records with their sample_id): all, or those drawn by numpy's RandomState(seed).choice, as in `vlmprof sweep`."""
    path = Path(records) if isinstance(records, (str, Path)) else None
    if path:
        with path.open(encoding="utf-8") as file:
            records = [json.loads(line) for line in file if line.strip()]
    rows: List[Record] = [{**row, "sample_id": index} for index, row in enumerate(records)]  # type: ignore[arg-type,dict-item]
    if not rows:
        raise ValueError("records: the list is empty")
    if num_samples is not None and num_samples < len(rows):
        import numpy
        chosen: Any = numpy.random.RandomState(seed)
        rows = [rows[index] for index in sorted(chosen.choice(len(rows), size=num_samples, replace=False).tolist())]
    for row in rows:
        name = f"record {row['sample_id']}" + (f" (id {row['id']})" if "id" in row else "")
        if "question" not in row and "content" not in row:
            raise ValueError(f"{name} has no \"question\"; a record is {{\"question\": .., \"answers\": [..], \"image\": path or picture, or \"images\": [..]}}")
        wrong = [key for key in row if _NOT_IMAGE.fullmatch(key) and row[key] is not None] if row.get("image") is None and row.get("images") is None else []
        if wrong:
            raise ValueError(f"{name} has no \"image\", but has {json.dumps(wrong[0])}: rename that key to \"image\"")
        pictures = row.get("images") or ([row["image"]] if row.get("image") is not None else [])
        row["images"] = [(path.parent if path else Path()) / one if isinstance(one, (str, Path)) else one for one in pictures]
        missing = [one for one in row["images"] if isinstance(one, Path) and not one.is_file()]
        if missing:
            raise FileNotFoundError(f"{name}: the picture {missing[0]} does not exist")
    return path.stem.replace("_", "-") if path else "records", rows


def _settings_of(processor: Any) -> List[str]:
    """The image processor's own settings, which can be knobs: max_pixels, max_patches, do_image_splitting, .."""
    images = getattr(processor, "image_processor", None)
    return [*getattr(getattr(images, "valid_kwargs", None), "__annotations__", {}), *(name for name in vars(images or object) if name[0] != "_")]


def default_inputs(processor: Any, record: Record, knobs: Mapping[str, Knob]) -> Dict[str, Any]:
    """The arguments that sweep passes to generate if `inputs` is not given: the chat template's prompt and the processor's pictures. Knobs: batch, settings of the image
    processor, and longest_edge [px], which sets the processor's size if that has a longest_edge; otherwise pictures are shrunk to it before the processor."""
    from PIL import Image, ImageOps
    pictures = [(ImageOps.exif_transpose(Image.open(one)) if isinstance(one, Path) else one).convert("RGB") for one in record["images"]]
    settings: Dict[str, Any] = {name: knobs[name] for name in _settings_of(processor) if name in knobs and name != "longest_edge"}
    size = dict(getattr(getattr(processor, "image_processor", None), "size", None) or {})
    if "longest_edge" in knobs and size.get("longest_edge") and "max_pixels" not in _settings_of(processor):  # Qwen's longest_edge is a number of pixels
        limits = {"longest_edge": int(knobs["longest_edge"]), "shortest_edge": min(size.get("shortest_edge") or 0, int(knobs["longest_edge"]))}
        settings["size"] = {key: limits.get(key, value) for key, value in size.items() if value is not None}
    elif "longest_edge" in knobs:
        for index, picture in enumerate(pictures):
            share = int(knobs["longest_edge"]) / max(picture.size)
            pictures[index] = picture.resize([max(1, round(side * share)) for side in picture.size]) if share < 1 else picture
    text = str(record.get("question", ""))
    if getattr(processor, "chat_template", None):
        parts = record.get("content") or [*({"image": 0} for _ in pictures), {"text": text}]
        content = [{"type": "text", "text": part["text"]} if "text" in part else {"type": "image"} for part in parts]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
    count = int(knobs.get("batch", 1))
    more: Dict[str, Any] = {"images_kwargs": settings} if settings else {}
    if pictures:
        more["images"] = pictures * count if count == 1 or not hasattr(processor, "image_processor") else [pictures] * count
    return dict(processor(text=[text] * count, return_tensors="pt", **more))


def _print_of(inputs: Callable[..., Dict[str, Any]], processor: Any, record: Record, knobs: Knobs) -> Any:
    """Equal for equal inputs. A failure equals nothing: the run will fail in the same way."""
    try:
        return hash(tuple((key, tuple(value.shape), value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()) if torch.is_tensor(value)
                          else (key, repr(value)) for key, value in inputs(processor, record, knobs).items()))
    except Exception:  # noqa: BLE001 - a function of the user's
        return time.perf_counter()


def _noise(blocks: List[Tuple[float, float]]) -> Dict[str, Any]:
    """The member `noise` of a result file, from each block's (percent taken by the host, percent used by other programs)."""
    found: Dict[str, Any] = {"samples": len(blocks), "load": None, "frequency_mhz": None, "neighbour_spread": None, "neighbour_pairs": 0, "bare_spread": None, "bare_pairs": 0}
    members = (("steal_percent", "steal_samples", "stolen", 5), ("other_cpu_percent", "other_samples", "busy", 10))  # with the limits of vlmprof sweep
    for values, (mean, count, much, limit) in zip(zip(*blocks), members):
        above = [one for one in values if one >= limit]
        found.update({mean: statistics.mean(values), count: len(values), f"{much}_samples": len(above), f"{much}_percent": statistics.mean(above) if above else None})
    return found


# ---- knobs that sweep applies itself
@contextlib.contextmanager
def _dtype(model: Any, name: Knob) -> Iterator[None]:
    """Converts parameters and saved buffers to another dtype; the model's own tensors are kept and restored afterwards."""
    tensors = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values() if tensor.is_floating_point()}
    own = {key: tensor.data for key, tensor in tensors.items()}
    try:
        for tensor in tensors.values():
            tensor.data = tensor.data.to(getattr(torch, str(name)))
        yield
    finally:
        for key, tensor in tensors.items():
            tensor.data = own[key]


@contextlib.contextmanager
def _attention(model: Any, name: Knob) -> Iterator[None]:
    configs = {"": model.config, **{key: getattr(model.config, key, None) for key in getattr(model.config, "sub_configs", {})}}
    own = {key: config._attn_implementation for key, config in configs.items() if getattr(config, "_attn_implementation", None)}
    try:
        model.set_attn_implementation(str(name))
        yield
    finally:
        model.set_attn_implementation(own)


def _parse_prune(prune: str) -> Optional[Tuple[str, float]]:
    if prune == "none":
        return None
    method, _, share = prune.partition(":keep=")
    keep = float(share) if re.fullmatch(r"\d*\.?\d+", share) else 0.0
    if method not in ("stride", "random") or not 0 < keep <= 1:
        raise ValueError(f"knobs: prune {prune!r}: expected none, stride:keep=SHARE or random:keep=SHARE, with a share above 0 and up to 1; use apply= for others")
    return method, keep


def _kept(prune: Tuple[str, float], count: int, seed: int) -> List[int]:
    kept = max(1, round(count * prune[1]))
    return sorted(random.Random(seed).sample(range(count), kept)) if prune[0] == "random" else [index * count // kept for index in range(kept)]


def _without_placeholders(inputs: Dict[str, Any], image_id: Any, prune: Tuple[str, float], seed: int) -> Dict[str, Any]:
    """The inputs, whose rows are equal, without the placeholders of the tokens that are dropped from every view."""
    places = (inputs["input_ids"][0] == image_id).nonzero()[:, 0].tolist()
    if not places:
        return inputs
    each = len(places) * len(inputs["input_ids"]) // max(1, inputs["pixel_values"].flatten(0, -4).shape[0])
    kept = set(_kept(prune, each, seed))
    gone = {place for index, place in enumerate(places) if index % each not in kept}
    length = inputs["input_ids"].shape[1]
    rest = torch.tensor([index for index in range(length) if index not in gone])
    return {key: value.index_select(1, rest) if value.dim() == 2 and value.shape[1] == length and not value.is_floating_point() else value
            for key, value in inputs.items()}


# ---- scores
def _scorer(score: Any, metric: Optional[str], rows: List[Record]) -> Tuple[str, Callable[[List[Record], List[str]], List[Any]]]:
    """(name of the metric, a function of records and answers that returns scores, or the reasons why scores are missing)."""
    if score is None:
        rule: str = metric or rows[0].get("metric") or ("mc" if "options" in rows[0] else "vqa_seed")
        return rule, lambda records, answers: _score_by_rule(rule, records, answers)
    is_lmms = next(iter(inspect.signature(score).parameters), "") == "doc"
    task: Any = getattr(score, "__self__", None)
    docs: Any = None
    if is_lmms and hasattr(task, "has_test_docs"):
        from ..data import lmms
        docs = lmms.docs_of(task)

    def one(record: Record, answer: str) -> Any:
        try:
            doc = docs[int(record["id"] if "id" in record else record["sample_id"])] if docs is not None else record.get("doc", record)
            found = score(doc, [answer]) if is_lmms else score(answer, record)
            value = score_of(found, metric) if isinstance(found, dict) else float(found)
            return value if 0 <= value <= 1 else f"the score is {value:g}; expected 0 to 1"
        except Exception as error:  # noqa: BLE001 - a scorer of the user's
            return f"{type(error).__name__}: {error}"
    return str(metric or getattr(score, "__name__", "score")), lambda records, answers: [one(*pair) for pair in zip(records, answers)]


def _score_by_rule(rule: str, records: List[Record], answers: List[str]) -> List[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        path.write_text("".join(json.dumps({**_plain(record), "prediction": answer.replace("\0", "\ufffd")}, default=str) + "\n" for record, answer in zip(records, answers)), encoding="utf-8")
        lines = commands.run(["score", "--metric", rule, path, "--quiet"], lines=True)
    return [line["score"] if line.get("score") is not None else str(line.get("reason")) for line in lines[:len(records)]]


def _plain(record: Record) -> Record:
    """A record without its pictures."""
    images = [str(one) for one in record["images"] if isinstance(one, Path)]
    return {**{key: value for key, value in record.items() if key not in ("image", "images", "sample_id", "doc")}, **({"images": images} if images else {})}


# ---- arguments
def _grid(knobs: Mapping[str, Sequence[Knob]], model: Any, processor: Any, has_own: Tuple[bool, bool], timed: stages) -> List[Dict[str, Knob]]:
    """All configurations. Raises ValueError for knobs that cannot be varied."""
    for name, values in knobs.items():
        if not isinstance(values, (list, tuple)) or not values:
            raise ValueError(f"knobs: {name!r} needs a list of values, not {values!r}")
        wrong = [one for one in values if not isinstance(one, (bool, int, float, str)) or (isinstance(one, float) and not math.isfinite(one))]
        if wrong:
            raise ValueError(f"knobs: {name!r} has the value {wrong[0]!r}; expected numbers, texts, true or false")
        if len({json.dumps(one) for one in values}) < len(values):
            raise ValueError(f"knobs: {name!r} has a value twice")
        known = ("dtype", "attn", "prune", *(() if has_own[1] else ("longest_edge", "batch", *_settings_of(processor))))
        if name not in known and not any(has_own):
            near = difflib.get_close_matches(name, known, 1)
            raise ValueError(f"knobs: nothing applies {name!r}" + (f"; did you mean {near[0]}?" if near else ": give apply=, a function of the model and the knobs, or inputs=; "
                             f"without them knobs are {', '.join(dict.fromkeys(known))}"))
    for value in knobs.get("dtype", ()):
        if not getattr(getattr(torch, str(value), None), "is_floating_point", False):
            raise ValueError(f"knobs: dtype {value!r} is not the name of a floating-point dtype of torch, such as float16")
    for value in knobs.get("attn", ()):
        try:
            with _attention(model, value):
                pass
        except (AttributeError, ImportError, ValueError) as error:
            names = list(dict.fromkeys(re.findall(r"[\w|]+", str(error).partition("possible arguments are")[2].replace("attn_implementation", ""))))
            near = difflib.get_close_matches(str(value), names, 1)
            reason = "transformers does not have it" + (f"; did you mean {near[0]}?" if near else f": it has {', '.join(names)}") if names else str(error).rstrip(".")
            raise ValueError(f"knobs: attn {value!r}: {reason}; use apply= for others") from None
    if any(_parse_prune(str(one)) for one in knobs.get("prune", ())) and not timed.has_views:
        raise ValueError(f"knobs: prune: {timed.family}'s connector does not output [views, tokens, width]; apply= can prune it")
    return [dict(zip(knobs, values)) for values in itertools.product(*knobs.values())]


def sweep(model: Any, processor: Any, records: Union[str, Path, Iterable[Record]], *, output_dir: Union[str, Path], knobs: Optional[Mapping[str, Sequence[Knob]]] = None,
          apply: Optional[Callable[[Any, Mapping[str, Knob]], Any]] = None, inputs: Optional[Callable[[Any, Record, Mapping[str, Knob]], Dict[str, Any]]] = None,
          run: Optional[Callable[..., Any]] = None, score: Optional[Callable[..., Any]] = None, metric: Optional[str] = None, num_samples: Optional[int] = None,
          num_runs: int = 3, warmup: int = 1, order: str = "runs", resume: bool = False, on_error: str = "record", max_new_tokens: Optional[int] = None, ignore_eos: bool = False,
          knob_units: Optional[Dict[str, str]] = None, dataset_name: Optional[str] = None, model_name: Optional[str] = None,
          modules: Optional[Dict[str, Optional[str]]] = None, seed: int = 42, progress: bool = True, clock: Optional[Callable[[], int]] = None) -> List[Dict[str, Any]]:
    """Measures a grid of configurations and writes a result file for each; returns a dict with file, knobs, num_ok, num_failed, T_total_p50 [ms] and accuracy.

    records:  [{"question": .., "answers": [..], "image": path or PIL picture, or "images": [..], or none}], or a file of such lines next to its pictures
    knobs:    {"attn": ["eager", "sdpa"], "heads": [16, 12]}: numbers, texts, true or false; all combinations are measured. These need no `apply` function: attn,
              dtype, prune ("none", "stride:keep=0.5", "random:keep=0.25"), longest_edge [px], batch, settings of the image processor
    apply:    a function of the model and a configuration's knobs; to undo its change, it returns a context manager or an object with close()
    inputs:   a function of processor, record and knobs that returns the arguments of generate; run: called as run(model, **arguments), returns the same as generate
    score:    a function of answer and record (called after all runs, without knobs) or lmms-eval's process_results; None: the rule `metric` of `vlmprof score`
    order:    "runs": configurations alternate run by run, each time in a new random order; "samples": sample by sample; "configurations": one after another
    on_error: "record": a point that fails becomes a row with the reason; "raise". max_new_tokens: None: the limit stored in the records, otherwise 16
    resume:   continues the sweep in output_dir, whose points.jsonl has every run. clock: a function that returns nanoseconds, instead of the machine's clock
    Answers are greedy. Guide: vlmprof help torch."""
    for name, value, least in (("num_runs", num_runs, 1), ("warmup", warmup, 0), ("max_new_tokens", max_new_tokens, 1), ("num_samples", num_samples, 1)):
        if not (value is None and name in ("num_samples", "max_new_tokens")) and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name}: expected a whole number of {least} or more, not {value!r}")
    for name, word, known in (("order", order, ("runs", "samples", "configurations")), ("on_error", on_error, ("record", "raise"))):
        if word not in known:
            raise ValueError(f"{name}: expected {' or '.join(known)}, not {word!r}")
    own: Dict[str, Any] = {"apply": apply, "inputs": inputs, "run": run, "score": score}
    for name, function in own.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name}: expected a function, not {type(function).__name__}")
    if run is None and not hasattr(model, "generate"):
        raise ValueError(f"run: {type(model).__name__} has no generate; give a function of the model and its inputs that answers")
    timed = stages(model, modules=modules, run=None if run is None else lambda **more: run(model, **more), warmup=0, clock=clock)
    grid = _grid(dict(knobs or {}), model, processor, (apply is not None, inputs is not None), timed)
    name, rows = _read_records(records, num_samples, seed)
    max_new_tokens = max_new_tokens or int(rows[0].get("max_new_tokens", 16) if rows[0].get("prompt_origin", "none") != "none" else 16)
    metric, scores = _scorer(score, metric, rows)
    if score is None and any("answers" in row or "options" in row for row in rows):
        _score_by_rule(metric, rows[:1], ["?"])  # an unknown rule, or no program
    job = _Sweep(timed, processor, rows, grid, {"apply": apply, "inputs": inputs or default_inputs, "max_new_tokens": max_new_tokens, "ignore_eos": ignore_eos,
                 "seed": seed, "num_runs": num_runs, "warmup": warmup, "on_error": on_error, "order": order, "own_run": run is not None})
    job.head = {"dataset_name": dataset_name or name, "model": model_name or getattr(getattr(model, "config", None), "name_or_path", "") or type(model).__name__,
                "architecture": timed.family, "max_new_tokens": max_new_tokens, "num_runs_per_sample": num_runs, "accuracy_metric": metric,
                **({"accuracy_from": "score= of vlmprof.torch.sweep"} if score is not None else {})}
    few = sum(isinstance(row.get("answers"), list) and 0 < len(row["answers"]) < 3 for row in rows) if metric == "vqa_seed" and score is None else 0
    if few:
        print(f"vlmprof.torch: {few} of {len(rows)} records have fewer than 3 answers: vqa_seed gives at most 1/3; metric=\"em\" compares with one answer", file=sys.stderr)
    job.check_inputs()
    job.open(Path(output_dir), resume)
    try:
        job.measure(progress)
    except KeyboardInterrupt:
        print(f"vlmprof.torch: stopped; {output_dir} has the results of the finished runs; resume=True measures the rest", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        job.file.close()
        written = job.write(scores, knob_units or {})
    return written


class WrongKnob(ValueError):
    """A knob that nothing reads, or an apply that does not undo: an error in the call, not in a point."""


class _Sweep:
    """The runs of a sweep: points.jsonl has a line for each, with the file name of its configuration."""
    head: Dict[str, Any]

    def __init__(self, timed: stages, processor: Any, rows: List[Record], grid: List[Dict[str, Knob]], how: Dict[str, Any]):
        self.timed, self.processor, self.rows, self.grid, self.how = timed, processor, rows, grid, how
        self.runs: Dict[Point, Dict[int, Dict[str, Any]]] = {}
        self.failed, self.parts = {}, {}  # type: Dict[Point, str], Dict[str, List[str]]
        self.sessions, self.now = [], timed._clock or time.perf_counter_ns  # type: List[Dict[str, Any]], Callable[[], int]
        self.noise: Dict[str, List[Tuple[float, float]]] = {}  # of the blocks with runs of a configuration

    def check_inputs(self) -> None:
        """Raises ValueError if two values of a knob that inputs reads give the same inputs for every record."""
        inputs, first = self.how["inputs"], Knobs(self.grid[0])
        _print_of(inputs, self.processor, self.rows[0], first)
        levels = {knob: list(dict.fromkeys(one[knob] for one in self.grid)) for knob in self.grid[0] if knob in first.read}
        for knob, values in levels.items():
            prints: List[Any] = [0] * len(values)
            for row, others in itertools.product(self.rows, list(itertools.product(*(levels[other] for other in levels if other != knob)))):
                fixed: Dict[str, Any] = {**self.grid[0], **dict(zip((other for other in levels if other != knob), others))}
                prints = [hash((old, _print_of(inputs, self.processor, row, Knobs({**fixed, knob: value})))) for old, value in zip(prints, values)]
                if len(set(prints)) == len(prints):
                    break
            else:
                same = [value for value, one in zip(values, prints) if one == next(one for one in prints if prints.count(one) > 1)]
                text = f"knobs: {knob} {same[0]!r} and {same[1]!r} give the same inputs for every record"
                if self.how["apply"] is None:
                    raise ValueError(f"{text}: leave one out")
                print(f"vlmprof.torch: {text}; if apply does not use it either, it has no effect", file=sys.stderr)

    # ---- the file of finished runs
    def open(self, folder: Path, resume: bool) -> None:
        self.folder, path = folder, folder / "points.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^\w.-]+", "-", self.head["dataset_name"])
        names = [re.sub(r"[^\w.=-]+", "-", "_".join([stem, *(f"{knob}-{str(value).lower() if isinstance(value, bool) else value}" for knob, value in one.items())]))
                 for one in self.grid]
        self.names = [f"{name[:150]}{f'_{index}' if len(name) > 150 or names.count(name) > 1 else ''}.json" for index, name in enumerate(names)]
        self.knobs = dict(zip(self.names, (Knobs(one) for one in self.grid)))
        content = hashlib.sha256(json.dumps([_plain(row) for row in self.rows], default=str).encode()).hexdigest()[:16]
        plan = {**{key: value for key, value in self.head.items() if key != "num_runs_per_sample"}, "knobs": self.grid, "records": content,
                **{key: self.how[key] for key in ("seed", "ignore_eos")}}
        if path.exists() and not resume:
            raise FileExistsError(f"output_dir: {folder} has a sweep; name another folder, or continue it with resume=True")
        if path.exists():
            self._read(path, plan)
        self.file = path.open("a", encoding="utf-8")
        if not self.file.tell():
            self._add({"plan": plan})
        self.sessions.append(provenance(self.timed.model, self.timed.device))
        self._add({"session": self.sessions[-1]})

    def _read(self, path: Path, plan: Dict[str, Any]) -> None:
        whole = path.read_bytes()
        whole = whole[:whole.rfind(b"\n") + 1]  # a line that a kill cut is measured again
        os.truncate(path, len(whole))
        for text in whole.splitlines():
            line = json.loads(text)
            point = (line.get("config"), line.get("sample_id"))
            if "plan" in line:
                other = [key for key in plan if line["plan"].get(key) != plan[key]]
                if other:
                    raise ValueError(f"resume: the sweep in {path.parent} was run with {other[0]}={line['plan'].get(other[0])!r}; now it is {plan[other[0]]!r}")
            elif "run" in line:
                self.runs.setdefault(point, {})[line["run"]] = line
            elif "noise" in line:
                for name in line["configs"]:
                    self.noise.setdefault(name, []).append(line["noise"])
            elif "session" in line:  # what failed is tried again
                self.sessions.append(line["session"])

    def _add(self, line: Dict[str, Any]) -> None:
        print(json.dumps(line, ensure_ascii=False, default=str), file=self.file, flush=True)

    # ---- measuring
    def _steps(self) -> Iterator[Tuple[Record, str, int]]:
        """(record, configuration, run) in the order of measurement; runs below 0 are warm-ups."""
        drawn, runs, count = random.Random(self.how["seed"]), range(-self.how["warmup"], self.how["num_runs"]), len(self.names)
        if self.how["order"] == "configurations":
            yield from ((row, name, run) for name in drawn.sample(self.names, count) for row in self.rows for run in runs)
        elif self.how["order"] == "samples":
            yield from ((row, name, run) for row in self.rows for name in drawn.sample(self.names, count) for run in runs)
        else:
            yield from ((row, name, run) for row in self.rows for run in runs for name in drawn.sample(self.names, count))

    def measure(self, progress: bool) -> None:
        todo = [step for step in self._steps() if len(have := self.runs.get((step[1], step[0]["sample_id"]), {})) < self.how["num_runs"] and step[2] not in have]
        shown, cause = Progress("runs", len(todo)) if progress else None, None
        self.block: Set[str] = set()
        self.reading = None if self.timed._clock else cpu_seconds()
        applied = ""
        with contextlib.ExitStack() as stack:
            for done, (row, name, run) in enumerate(todo):
                point = (name, row["sample_id"])
                if point in self.failed:
                    continue
                try:
                    if applied != name:
                        applied = ""
                        stack.close()
                        self._apply(stack, name)
                        applied = name
                    line = self._run(row, self.knobs[name])
                    self._check(self.knobs[name])
                    if run >= 0:
                        line = {"config": name, "sample_id": point[1], "run": run, "session": len(self.sessions) - 1, **line}
                        self.runs.setdefault(point, {})[run] = line
                        self._add(line)
                        self._end_block(name)
                except Exception as error:  # noqa: BLE001 - the model's, or a function of the user's
                    if self.how["on_error"] == "raise" or isinstance(error, WrongKnob):
                        raise
                    self.failed[point] = f"{type(error).__name__}: {error}"
                    cause = cause or error
                    self._add({"config": name, "sample_id": point[1], "failed": self.failed[point]})
                if shown:
                    shown.say(done + 1, f", {len(self.failed)} points failed")
        if self.failed:
            (_, sample_id), reason = next(iter(self.failed.items()))
            text = f"{len(self.failed)} of {len(self.names) * len(self.rows)} points failed; the first: record {sample_id}: {reason}"
            if not self.runs:
                raise RuntimeError(text) from cause
            print(f"vlmprof.torch: {text}", file=sys.stderr)

    def _end_block(self, name: str) -> None:
        """Called after a run: ends the block of runs if it is long enough to measure the CPU use of other programs, as in vlmprof sweep."""
        self.block.add(name)
        now = cpu_seconds() if self.reading else None
        if not now or not self.reading or now[0] - self.reading[0] < 0.2 * (os.cpu_count() or 1):
            return
        noise = others_between(self.reading, now)
        if noise:
            self._add({"noise": noise, "configs": sorted(self.block)})
            for one in self.block:
                self.noise.setdefault(one, []).append(noise)
        self.reading, self.block = now, set()

    def _apply(self, stack: contextlib.ExitStack, name: str) -> None:
        knobs, model = self.knobs[name], self.timed.model
        for knob, applied in (("dtype", _dtype), ("attn", _attention)):
            if knob in knobs:
                stack.enter_context(applied(model, knobs[knob]))
        self.prune = _parse_prune(str(knobs.get("prune", "none")))
        if self.prune:
            cut = self.prune

            def leave_out(_module: Any, _inputs: Any, output: Any) -> Any:
                return output.index_select(1, torch.tensor(_kept(cut, output.shape[1], self.how["seed"]), device=output.device))
            stack.enter_context(self.timed._modules["connector"][1].register_forward_hook(leave_out))
        held: Any = self.how["apply"](model, knobs) if self.how["apply"] else None
        if hasattr(held, "__enter__"):
            stack.enter_context(held)
        elif hasattr(held, "close") and not inspect.isgenerator(held):
            stack.callback(held.close)
        elif held is not None:
            raise WrongKnob(f"apply returned a {type(held).__name__}; expected None, a context manager (a generator function needs @contextlib.contextmanager; for several "
                            "hooks: contextlib.ExitStack) or an object with close()")
        self.state = state_of(model)
        hooks = [(part, hook) for part, one in model.named_modules() for hook in (None, *one._forward_hooks.values(), *one._forward_pre_hooks.values())]
        parts = [part for part, hook in hooks if not str(getattr(hook, "__module__", "")).startswith("transformers")]  # which adds hooks of its own
        if self.parts.setdefault(name, parts) != parts:
            raise WrongKnob(f"apply: with {knobs.data}, the model has other modules or hooks than the first time: apply must undo its change: return a context manager or an "
                            "object with close()")

    def _check(self, knobs: Knobs) -> None:
        unread = [knob for knob in knobs if knob not in knobs.read and len({one[knob] for one in self.grid}) > 1]
        if unread:
            raise WrongKnob(f"knobs: neither apply nor inputs read {unread[0]!r} of {knobs.data}, so its values would have no effect")

    def _run(self, row: Record, knobs: Knobs) -> Dict[str, Any]:
        """Runs one request; returns the members of its line."""
        timed, how, now = self.timed, self.how, self.now
        model, config = timed.model, getattr(timed.model, "config", None)
        image_id = getattr(config, "image_token_id", getattr(config, "image_token_index", -1))
        dtype = next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32)
        began = now()
        on_host = how["inputs"](self.processor, row, knobs)
        ids = on_host.get("input_ids")
        whole = ids[0].tolist() if torch.is_tensor(ids) else []
        if self.prune:
            on_host = _without_placeholders(on_host, image_id, self.prune, how["seed"])
        prepared = now()
        sent = {key: value.to(device=timed.device, dtype=dtype if value.is_floating_point() else None) if torch.is_tensor(value) else value
                for key, value in on_host.items()}
        moved = now()
        length = {} if how["own_run"] else dict(max_new_tokens=how["max_new_tokens"], do_sample=False,
                                                **({"min_new_tokens": how["max_new_tokens"]} if how["ignore_eos"] else {}))
        del timed.requests[:]
        with timed, torch.no_grad():
            output = timed.run(**{**length, **sent})
        done = now()
        request = timed.requests.pop()
        tokenizer = getattr(self.processor, "tokenizer", self.processor)
        text = output if isinstance(output, str) else tokenizer.decode(request.tokens, skip_special_tokens=True)
        spent = {"preprocess": prepared - began + request.stages.pop("prepare"), "h2d": moved - prepared, **request.stages, "detok": now() - done}
        vision = whole.count(image_id)
        sizes = {"actual_vision_tokens": vision, **({"actual_num_crops": request.views, "num_views": request.views} if request.views else {}), "input_text_tokens": len(whole) - vision,
                 "total_sequence_length": len(whole), **({"kept_vision_tokens": request.image_tokens} if self.prune else {}),
                 **({"batch_size": request.batch} if request.batch > 1 else {})}
        return {"unix_s": int(time.time()), "state": self.state, "total_ns": request.total_ns + moved - began + spent["detok"], "stages": spent, "pred": text,
                "tokens": request.tokens, "step_ns": request.step_ns, "stamps": 2 * len(request.order) + len(request.tokens), "sizes": sizes,
                **({"peak_bytes": request.peak_bytes} if request.peak_bytes else {})}

    # ---- result files
    def write(self, scores: Callable[[List[Record], List[str]], List[Any]], units: Dict[str, str]) -> List[Dict[str, Any]]:
        written, unscored = [], []  # type: List[Dict[str, Any]], List[Dict[str, Any]]
        for name in self.names:
            rows = [(row, list(runs.values())) for row in self.rows if (runs := self.runs.get((name, row["sample_id"]), {}))]
            failed = [{"sample_id": row["sample_id"], "status": "failed", "reason": self.failed[point], "metadata": _plain(row)} for row in self.rows
                      if (point := (name, row["sample_id"])) in self.failed and point not in self.runs]
            if not rows and not failed:
                continue
            found = scores([row for row, _ in rows], [runs[-1]["pred"] for _, runs in rows]) if rows else []
            lines = [_row(row, runs, value) for (row, runs), value in zip(rows, found)]
            known = [line["accuracy"] for line in lines if line["accuracy"] is not None]
            unscored += [line for line in lines if line["accuracy"] is None and "accuracy_from" in self.head]
            totals, session = [line["T_total"] for line in lines], self.sessions[max((run["session"] for _, runs in rows for run in runs), default=-1)]
            stamps = statistics.mean(run["stamps"] for _, runs in rows for run in runs) if rows else 0
            accuracy = sum(known) / len(known) if known else None
            result = {**self.head, "knobs": dict(self.knobs[name].data), "knob_units": units, "accuracy": accuracy, "order": self.how["order"],
                      "provenance": {**session, **(rows[-1][1][-1].get("state", {}) if rows else {})},
                      "tool_cost": {"stamps_per_request": stamps, "stamp_cost_ns": session["stamp_cost_ns"],
                                    "stamps_share": stamps * session["stamp_cost_ns"] / 1e6 / statistics.mean(totals) if totals else 0},
                      **({"noise": _noise(self.noise[name])} if name in self.noise else {}), "config": {key: self.how[key] for key in ("seed", "ignore_eos")},
                      "per_sample_results": [*lines, *failed]}
            part = self.folder / f"{name}.part"
            part.write_text(json.dumps(result, ensure_ascii=False, default=str, indent=1) + "\n", encoding="utf-8")
            part.replace(self.folder / name)
            written.append({"file": str(self.folder / name), "knobs": dict(self.knobs[name].data), "num_ok": len(lines), "num_failed": len(failed),
                            "T_total_p50": statistics.median(totals) if totals else None, "accuracy": accuracy})
        if unscored:
            text = f"score= gave no score for {len(unscored)} of the answers; the first: record {unscored[0]['sample_id']}: {unscored[0]['accuracy_reason']}"
            if any("expected 0 to 1" in line["accuracy_reason"] for line in unscored):
                raise ValueError(f"{text}. The runs are kept: call sweep again with resume=True and another score")
            print(f"vlmprof.torch: {text}", file=sys.stderr)
        return written


def _row(record: Record, runs: List[Dict[str, Any]], score: Any) -> Dict[str, Any]:
    """A row of a result file: means over the runs [ms], as in vlmprof sweep."""
    spent = {stage: statistics.mean(run["stages"][stage] for run in runs) / 1e6 for stage in runs[0]["stages"]}
    total, count = statistics.mean(run["total_ns"] for run in runs) / 1e6, len(runs[-1]["tokens"])
    decode = spent["decode"] if runs[-1]["step_ns"] else None
    return {"sample_id": record["sample_id"], "status": "ok", "T_total": total, "T_vision_total": spent["vit"] + spent["connector"],
            "T_LLM_prefill": spent["embed"] + spent["prefill"] + spent["head"] + spent["sample"], "T_LLM_decode": decode,
            "T_decode_per_token": decode / (count - 1) if decode is not None and count > 1 else None,
            "TTFT": sum(list(spent.values())[:list(spent).index("decode")]), "unaccounted": total - sum(spent.values()), "stages": spent,
            "output_tokens": count or None, **runs[-1]["sizes"], "pred": runs[-1]["pred"], "accuracy": None if isinstance(score, str) else score,
            "accuracy_reason": score if isinstance(score, str) else None, "num_runs": len(runs), "runs": {"T_total": [run["total_ns"] / 1e6 for run in runs]},
            "metadata": _plain(record)}
