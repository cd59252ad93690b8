"""A sweep of a transformers model: vlmprof's result files, so that report, best, fit and compare work on them.

The requests are written as a journal, and `vlmprof merge` makes the result files of it: scores and statistics are the program's own."""
from __future__ import annotations

import datetime
import hashlib
import json
import platform
import random
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import torch

from .. import commands
from ..counts import version
from .timing import Request, stages

TIERS = ("low", "medium", "high")
DTYPES = {"float32": "fp32", "bfloat16": "bf16"}  # torch's names: vlmprof's
Settings = Union[int, Dict[str, Any]]
_Points = Set[Any]
_Places = Dict[Any, int]


class _Journal:
    """The file that a sweep of vlmprof writes: one JSON object a line; lines refer to others by their place in bytes."""

    def __init__(self, path: Path):
        self.file, self.at = open(path, "xb"), 0  # noqa: SIM115 - open for the whole sweep

    def add(self, line: Dict[str, Any]) -> int:
        data = (json.dumps(line, ensure_ascii=False) + "\n").encode()
        place, self.at = self.at, self.at + len(data)
        self.file.write(data)
        self.file.flush()
        return place


def _read_records(records: Union[str, Path, Iterable[Dict[str, Any]]]) -> Tuple[str, str, List[Dict[str, Any]]]:
    """(name of the data set, path, records with question, answers and image)."""
    path = ""
    if isinstance(records, (str, Path)):
        path = str(records)
        with open(path, encoding="utf-8") as file:
            records = [dict(json.loads(line), folder=str(Path(path).parent)) for line in file if line.strip()]
    rows = list(records)
    for index, row in enumerate(rows):
        missing = [key for key in ("question", "answers", "image") if key not in row]
        if missing:
            raise ValueError(f"record {index} has no {missing[0]!r}; a record is {{\"question\": .., \"answers\": [..], \"image\": path or picture}}")
    if not rows:
        raise ValueError("no records")
    return Path(path).stem.replace("_", "-") if path else "records", path, rows


def _picture(row: Dict[str, Any]) -> Any:
    if not isinstance(row["image"], (str, Path)):
        return row["image"].convert("RGB")
    from PIL import Image, ImageOps
    return ImageOps.exif_transpose(Image.open(Path(row.get("folder", ".")) / row["image"])).convert("RGB")


def _inputs(processor: Any, picture: Any, question: str, settings: Settings, device: Any, dtype: Any) -> Dict[str, Any]:
    more: Dict[str, Any] = {}
    if isinstance(settings, int):  # longest edge; a smaller picture is not changed
        share = settings / max(picture.size)
        if share < 1:
            picture = picture.resize([max(1, round(side * share)) for side in picture.size])
    else:
        more = {"images_kwargs": settings} if settings else {}
    text = question
    if getattr(processor, "chat_template", None):
        content = [{"type": "image"}, {"type": "text", "text": question}]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
    inputs = processor(images=[picture], text=[text], return_tensors="pt", **more)
    return {key: value.to(device=device, dtype=dtype if value.is_floating_point() else None) for key, value in inputs.items()
            if torch.is_tensor(value)}


# ---- pruning: tokens are left out behind the connector, and their placeholders in the prompt
def _parse_prune(prune: str, family: str, has_views: bool) -> Optional[Tuple[str, float]]:
    if prune == "none":
        return None
    method, _, share = prune.partition(":keep=")
    try:
        keep = float(share)
    except ValueError:
        keep = 0.0
    if method not in ("stride", "random") or not 0 < keep <= 1:
        raise ValueError(f"prune {prune!r}: expected none, stride:keep=SHARE or random:keep=SHARE, with a share above 0 and up to 1")
    if not has_views:
        raise ValueError(f"prune {prune!r}: {family}'s connector does not put out [views, tokens, width]; without prune it can be swept")
    return method, keep


def _kept(prune: Tuple[str, float], count: int, seed: int) -> List[int]:
    method, keep = prune
    kept = max(1, round(count * keep))
    if method == "random":
        return sorted(random.Random(seed).sample(range(count), kept))
    return [index * count // kept for index in range(kept)]


class _Pruned:
    """Leaves tokens out of every view while it is open, and their placeholders out of the inputs."""

    def __init__(self, timed: stages, prune: Optional[Tuple[str, float]], seed: int):
        self.timed, self.prune, self.seed, self.hook = timed, prune, seed, None

    def __enter__(self) -> _Pruned:
        if self.prune:
            self.hook = self.timed._modules["connector"][1].register_forward_hook(self._cut)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.hook:
            self.hook.remove()

    def _cut(self, _module: Any, _inputs: Any, output: Any) -> Any:
        assert self.prune is not None  # the hook is only set with a method
        index = torch.tensor(_kept(self.prune, output.shape[1], self.seed), device=output.device)
        return output.index_select(1, index)

    def inputs(self, inputs: Dict[str, Any], image_id: int) -> Dict[str, Any]:
        if not self.prune:
            return inputs
        places = (inputs["input_ids"][0] == image_id).nonzero()[:, 0].tolist()
        views = max(1, inputs["pixel_values"].flatten(0, -4).shape[0])
        each = len(places) // views
        kept = set(_kept(self.prune, each, self.seed))
        gone = {place for index, place in enumerate(places) if index % each not in kept}
        rest = torch.tensor([index for index in range(inputs["input_ids"].shape[1]) if index not in gone], device=inputs["input_ids"].device)
        length = inputs["input_ids"].shape[1]
        return {key: value.index_select(1, rest) if value.dim() == 2 and value.shape[1] == length and not value.is_floating_point() else value
                for key, value in inputs.items()}


# ---- the journal's lines
def _shape(model: Any) -> Dict[str, int]:
    text = getattr(model.config, "text_config", model.config)
    vision = getattr(model.config, "vision_config", None)

    def of(config: Any, *names: str) -> int:
        for name in names:
            if isinstance(getattr(config, name, None), int):
                return getattr(config, name)
        return 0
    return {"num_experts": of(text, "num_experts", "num_local_experts"), "top_k": of(text, "num_experts_per_tok"), "d_model": of(text, "hidden_size"),
            "n_heads": of(text, "num_attention_heads"), "n_layers": of(text, "num_hidden_layers", "n_layers"),
            "expert_dim": of(text, "moe_intermediate_size"), "vocab_size": of(text, "vocab_size"), "vit_width": of(vision, "hidden_size"),
            "vit_layers": of(vision, "num_hidden_layers", "depth")}


def _stage_columns(request: Request, host: Dict[str, int]) -> Dict[str, List[int]]:
    """[wall ns, device ns, launches, FLOPs, bytes] by vlmprof's stages; what torch does not count is 0."""
    rows = {"preprocess": [host["preprocess"] + request.stages["prepare"], 0, 0, 0, 0], "h2d": [host["h2d"], host["h2d"], 0, 0, 0]}
    for name in ("vit", "connector", "embed", "prefill", "head", "sample", "decode"):
        rows[name] = [request.stages[name], request.stages[name], 0, 0, 0]
    rows["detok"] = [host["detok"], 0, 0, 0, 0]
    return rows


def sweep(model: Any, processor: Any, records: Union[str, Path, Iterable[Dict[str, Any]]], *, output_dir: Union[str, Path],
          tiers: Optional[Dict[str, Settings]] = None, prune: Sequence[str] = ("none",), dtype: Optional[Sequence[Any]] = None,
          num_samples: Optional[int] = None, num_runs: int = 3, warmup: int = 1, max_new_tokens: int = 16, ignore_eos: bool = False, metric: str = "vqa_seed",
          dataset_name: Optional[str] = None, model_name: Optional[str] = None, modules: Optional[Dict[str, str]] = None, seed: int = 42,
          clock: Optional[Callable[[], int]] = None) -> Dict[str, Any]:
    """Runs a grid of configurations over records and writes a result file for each; returns what `vlmprof merge --json` says of them.

    records:    [{"question": .., "answers": [..], "image": path or PIL picture}], or a file of such lines; a file's images are next to it
    output_dir: a folder without a sweep
    tiers:      {"low"|"medium"|"high": longest edge [px], or settings of the image processor: {"max_pixels": 200704}}; None: pictures as they are
    prune:      "none", "stride:keep=0.5", "random:keep=0.25": the share of each view's tokens that stays behind the connector
    dtype:      torch dtypes, float32 and bfloat16; None: the model's. The model ends in the first
    num_samples: the first so many records; None: all
    num_runs:   timed runs of each point; warmup: runs before them, untimed
    metric:     a scoring rule of `vlmprof score`
    clock:      ns, in the place of the machine's clocks

    Configurations take turns, sample by sample. Answers are greedy."""
    name, path, rows = _read_records(records)
    rows = rows[:num_samples]
    name, tiers = dataset_name or name, dict(tiers or {"high": {}})
    wrong = [tier for tier in tiers if tier not in TIERS]
    if wrong:
        raise ValueError(f"tiers: {wrong[0]!r} is not a tier; vlmprof's are {', '.join(TIERS)}")
    dtypes = [getattr(torch, one) if isinstance(one, str) else one for one in (dtype or [next(model.parameters()).dtype])]
    for one in dtypes:
        if str(one).replace("torch.", "") not in DTYPES:
            raise ValueError(f"dtype {one}: result files have names for {' and '.join(DTYPES)} only")
    commands.program()  # is there, before hours of measuring
    timed = stages(model, modules, warmup=0, clock=clock)
    cuts = {text: _parse_prune(text, timed.family, timed.has_views) for text in prune}
    shape, device = _shape(model), next(model.parameters()).device
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "journal.jsonl").exists():
        raise FileExistsError(f"{folder} has a sweep already (journal.jsonl): name another folder")

    def config(tier: str, text: str, kind: Any) -> Dict[str, Any]:
        weights = DTYPES[str(kind).replace("torch.", "")]
        crops = 1 + list(tiers).index(tier)
        tail = (f"_prune-{text.replace(':', '-').replace('=', '-')}" if list(prune) != ["none"] else "") + (f"_weights-{weights}" if len(dtypes) > 1 else "")
        row = {"file_name": f"{name}_imgsizetier-{tier}_crops{crops}_topk{shape['top_k']}_blocks{shape['n_layers']}{tail}.json", "set": 0, "tier": tier,
               "target_vision_tokens": None, "max_crops": crops, "top_k": shape["top_k"], "num_active_blocks": shape["n_layers"],
               "active_block_indices": list(range(shape["n_layers"]))}
        if list(prune) != ["none"]:
            row["prune"] = text
        return dict(row, weights=weights)
    grid = [(config(tier, text, kind), tier, text, kind) for kind in dtypes for tier in tiers for text in prune]
    texts = [{key: value for key, value in row.items() if key not in ("folder", "image") or (key == "image" and isinstance(value, (str, Path)))}
             for row in rows]
    content = hashlib.sha256(json.dumps(texts, default=str).encode()).hexdigest()[:16]
    head = {"schema": "vlmprof-journal-2", "plan": "", "rank": 0, "world_size": 1,
            "model": model_name or getattr(model.config, "name_or_path", "") or type(model).__name__, "synthetic": False,
            "timing": "stage", "ignore_eos": bool(ignore_eos), "num_runs_per_sample": num_runs, "num_total_blocks": shape["n_layers"], "bare_every": 0,
            "architecture": timed.family, "model_shape": shape,
            "options": {"seed": seed, "weights": DTYPES[str(dtypes[0]).replace("torch.", "")], "tiers": tiers, "prune_list": list(prune),
                        "max_new_tokens": max_new_tokens, "num_runs_per_sample": num_runs, "ignore_eos": ignore_eos, "device": str(device)},
            "data": [{"task": name, "path": path or name, "metric": metric, "max_new_tokens": max_new_tokens, "num_samples": len(rows),
                      "content_hash": content}],
            "configs": [row for row, _, _, _ in grid]}
    head["plan"] = hashlib.sha256(json.dumps(head, default=str).encode()).hexdigest()[:16]
    journal = _Journal(folder / "journal.jsonl")
    journal.add(head)
    session = journal.add({"session": {
        "version": version(), "build": f"torch {torch.__version__}", "host": platform.node(), "kernel": platform.release(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else f"{device.type}: torch, {torch.get_num_threads()} threads",
        "device_note": None, "gpu": None, "gemm_rows_1": None, "gemm_rows_1024": None, "threads": torch.get_num_threads(), "seed": seed, "clocks": None,
        "argv": ["vlmprof.torch.sweep"], "rank": 0, "world_size": 1, "launcher": "none", "stamp_cost_ns": None, "cold": None}})
    weights_before = {key: value.detach().clone() for key, value in model.state_dict().items()} if len(dtypes) > 1 else None
    first_dtype = next(model.parameters()).dtype
    written: _Points = set()
    last: _Places = {}
    try:
        for kind in dtypes:
            if weights_before is not None:
                model.to(first_dtype).load_state_dict(weights_before)
                model.to(kind)
            for index, row in enumerate(rows):
                for configuration, tier, text, _ in (one for one in grid if one[3] == kind):
                    _measure(journal, session, timed, processor, row, texts[index], index, configuration, tiers[tier], cuts[text], kind,
                             {"num_runs": num_runs, "warmup": warmup, "max_new_tokens": max_new_tokens, "ignore_eos": ignore_eos, "seed": seed},
                             written, last)
        journal.add({"finished": True})
    finally:
        journal.file.close()
        if weights_before is not None:
            model.to(first_dtype).load_state_dict(weights_before)
    return commands.run(["merge", folder, "--output_dir", folder, "--json"])


def _measure(journal: _Journal, session: int, timed: stages, processor: Any, row: Dict[str, Any], record: Dict[str, Any], index: int,
             configuration: Dict[str, Any], settings: Settings, cut: Optional[Tuple[str, float]], kind: Any, how: Dict[str, Any],
             written: _Points, last: _Places) -> None:
    """Runs one sample in one configuration, and writes its lines."""
    model, now = timed.model, timed._clock or time.perf_counter_ns
    device = next(model.parameters()).device
    image_id = getattr(model.config, "image_token_id", getattr(model.config, "image_token_index", -1))
    picture, point = _picture(row), (configuration["file_name"], index)
    length = dict(max_new_tokens=how["max_new_tokens"], do_sample=False, **({"min_new_tokens": how["max_new_tokens"]} if how["ignore_eos"] else {}))
    tokenizer = getattr(processor, "tokenizer", processor)
    end_ids = model.generation_config.eos_token_id
    end_ids = end_ids if isinstance(end_ids, (list, tuple)) else [end_ids]
    whole: Dict[str, int] = {}

    def add(line: Dict[str, Any]) -> None:
        last[point] = journal.add(dict({"config": point[0], "sample_id": index, "prev": last.get(point, -1)}, **line))
    with _Pruned(timed, cut, how["seed"]) as pruned:
        for run in range(-how["warmup"], how["num_runs"]):
            began = now()
            on_host = _inputs(processor, picture, str(row["question"]), settings, "cpu", kind)
            whole = {"vision": int((on_host["input_ids"][0] == image_id).sum()), "sequence": on_host["input_ids"].shape[1]}
            on_host = pruned.inputs(on_host, image_id)
            prepared = now()
            inputs = {key: value.to(device) for key, value in on_host.items()}
            moved = now()
            with timed, torch.no_grad():
                model.generate(**inputs, **length)
            done = now()
            request = timed.requests.pop()
            answer = tokenizer.decode(request.tokens, skip_special_tokens=True)
            host = {"preprocess": prepared - began, "h2d": moved - prepared, "detok": now() - done}
            total = request.total_ns + sum(host.values())
            if run < 0:
                continue
            if index not in written:
                written.add(index)
                metadata = dict(record, image_id=str(record.get("image_id", record.get("image", index))), id=str(record.get("id", index)))
                journal.add({"sample": index, "set": 0, "prompt": str(row["question"]), "input_text_tokens": whole["sequence"] - whole["vision"],
                             "metadata": metadata})
            add({"run": run, "session": session, "unix_s": int(time.time()), "total_ns": max(1, total), "answer": answer,
                 "stamps": 2 * len(request.order) + len(request.tokens), "stages": _stage_columns(request, host),
                 "step_ns": request.step_ns, "tokens": request.tokens, "ended_by_eos": bool(request.tokens and request.tokens[-1] in end_ids),
                 "throttled": False, "telemetry": None})
    vision, sequence = whole["vision"], whole["sequence"]
    sizes = {"tier": configuration["tier"], "target_vision_tokens": vision, "target_crops": request.views, "top_k": configuration["top_k"],
             "num_active_blocks": configuration["num_active_blocks"], "theoretical_num_crops": request.views, "theoretical_tiling": [1, request.views],
             "theoretical_image_size": list(picture.size[::-1]), "theoretical_vision_tokens": vision, "actual_num_crops": request.views,
             "actual_tiling": [1, request.views], "actual_image_size": list(picture.size[::-1]), "actual_vision_tokens": vision,
             "input_text_tokens": sequence - vision, "actual_text_tokens": sequence - vision, "total_sequence_length": sequence}
    if cut:
        sizes.update(kept_vision_tokens=request.image_tokens, mean_sequence_length=float(request.prompt_tokens))
    add({"done": how["num_runs"], "stop": "runs", "retries": 0, "sizes": sizes})
