"""Compares the results of two stacks for one request, stage by stage, and names the first stage that differs by more than
rounding explains.

    vlmprof run cat.jpg -p "What is this?" --model DIR --weights fp32 --cold --ignore_eos --dump ours
    vlmprof run cat.jpg -p "What is this?" --model DIR --cold --ignore_eos --dump rounded             # in bf16
    python -m vlmprof.conform ours OTHER --rounded rounded

OTHER is another dump of `run --dump`, a folder of another stack's .npy files, or transformers:DIR with --image and -p,
which runs the model in transformers. Stages, in order: prompt_ids, image, pixels, tower, connector, prefill, tokens; a
file has the stage's name or the name that `run --dump` gives it. The exit code is 1 if a stage differs (vlmprof help
conformance)."""
from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

try:
    import numpy as np
except ImportError:
    raise ImportError("vlmprof.conform needs numpy: pip install numpy") from None

PathLike = Union[str, "os.PathLike[str]"]
FILES = {"prompt_ids": ("prompt_ids", "input_ids"), "image": ("image",), "pixels": ("pixels", "pixel_values"),
         "tower": ("tower",), "connector": ("connector", "image_features"), "prefill": ("prefill", "logits"), "tokens": ("tokens", "output_ids")}
STAGES = tuple(FILES)
WHOLE = ("prompt_ids", "image", "tokens")
PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int4")
# Two stacks that round the same function at different points are about as far apart as each is from fp32, or sqrt(2) times that: the bound is SPREAD times the
# distance of our own rounded run from fp32. In fp32 it is the effect of another order of summation, which grows with the square root of the depth (4 blocks in the
# models where it was measured). Rounding can flip a choice of experts, which changed the logits of small models by up to 0.19. fp16 has three bits more than bf16.
SPREAD, FLIPPED, FP16_OF_BF16 = 4.0, 0.25, 1 / 8
FP32 = {"pixels": 1e-6, "tower": 1e-5, "connector": 1e-5, "prefill": 2e-5}
FP32_DEPTH = 4
TIE_DEVIATIONS = 6.0  # of the difference of two logits


class ConformError(ValueError):
    """Files that cannot be compared, with the reason."""


class Shape(NamedTuple):
    """The bounds depend on these: the blocks of the language model and of the tower, and whether experts are chosen."""
    blocks: int = 24
    tower_blocks: int = 24
    has_experts: bool = False


class Stage(NamedTuple):
    """A stage's verdict: unseen, equal, rounding (no more than rounding explains) or parted."""
    stage: str
    verdict: str
    distance: Optional[float]
    bound: Optional[float]
    note: str


class Conformity(NamedTuple):
    precision: str
    stages: List[Stage]

    @property
    def first_difference(self) -> Optional[str]:
        return next((stage.stage for stage in self.stages if stage.verdict == "parted"), None)

    @property
    def possible_stages(self) -> List[str]:
        """The stages that may be the cause: the first that differs, and the unseen ones before it."""
        first = self.first_difference
        before = self.stages[:STAGES.index(first)] if first else []
        return [stage.stage for stage in before if stage.verdict == "unseen" and "no image" not in stage.note] + ([first] if first else [])


class Stack(NamedTuple):
    """A stack's values by stage; steps: the logits of all tokens, if available."""
    folder: Path
    values: Dict[str, Any]
    steps: Any
    image_ids: frozenset[int]


def load_array(path: Path) -> Any:
    """A .npy file as float64 or int64, checked: no pickles, no Fortran order, finite."""
    try:
        with path.open("rb") as file:
            array = np.load(file, allow_pickle=False)
            rest = file.read(1)
    except (ValueError, OSError, EOFError) as error:
        raise ConformError(f"{path}: not a .npy file that numpy.save wrote: {error}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ConformError(f"{path}: the type is {getattr(array, 'dtype', type(array).__name__)}; expected "
                           "float16, float32, float64 or an integer (bfloat16: convert with .float())")
    if rest:
        raise ConformError(f"{path}: the file has more data than its shape {array.shape} needs")
    if array.ndim > 1 and not array.flags.c_contiguous:
        raise ConformError(f"{path}: the array is in Fortran order; save it with numpy.ascontiguousarray")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ConformError(f"{path}: value {int(np.argmin(np.isfinite(array)))} is not a finite number")
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def load_stack(folder: PathLike, ours: Optional[Stack] = None) -> Stack:
    """The values in a folder of .npy files. `ours` is our own run of the request, whose shapes are known."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ConformError(f"{folder}: expected a folder of .npy files (vlmprof help conformance)")
    values: Dict[str, Any] = {}
    steps = index = None
    for stage, names in FILES.items():
        path = next((folder / f"{name}.npy" for name in names if (folder / f"{name}.npy").is_file()), None)
        if path is None:
            continue
        array = load_array(path)
        if (array.dtype.kind == "i") != (stage in WHOLE):
            raise ConformError(f"{path}: expected {'integers' if stage in WHOLE else 'floating-point numbers'}")
        if array.size:
            values[stage] = array
    if not values:
        raise ConformError(f"{folder}: no stage has a file; expected some of {', '.join(f'{stage}.npy' for stage in STAGES)}")
    if (folder / "image_input_idx.npy").is_file():
        index = load_array(folder / "image_input_idx.npy").reshape(-1)
    if "prefill" in values:
        steps = values["prefill"].reshape(-1, values["prefill"].shape[-1])
        values["prefill"] = steps[0]
    image_ids = ours.image_ids if ours else frozenset()
    if "prompt_ids" in values:
        ids = values["prompt_ids"].reshape(-1)
        if index is not None and not ours:
            places = index[(index >= 0) & (index < len(ids))]
            image_ids = frozenset(int(one) for one in ids[places])
        is_image = np.isin(ids, list(image_ids))
        values["prompt_ids"] = ids[~is_image]
        if image_ids:
            values.setdefault("image", np.array([int(is_image.sum())]))
    if "connector" in values:
        rows = values["connector"].reshape(-1, values["connector"].shape[-1])
        if index is not None and len(index) == len(rows) and (index >= 0).any():
            rows = rows[index >= 0]  # Molmo's crops also have features without a token
        values["connector"] = rows
    return Stack(folder, values, steps, image_ids)


def rounded_to(stack: Stack) -> str:
    """The coarsest type that fits all values of a stage: bf16 and fp16 have 16 and 13 fraction bits fewer than fp32."""
    coarsest = "fp32"
    for stage in STAGES[2:-1]:
        values = stack.values.get(stage)
        if values is None or values.size < 8 or not values.any():
            continue
        words = values.astype(np.float32).view(np.uint32)
        if not (words & 0xFFFF).any():
            return "bf16"
        if not (words & 0x1FFF).any():
            coarsest = "fp16"
    return coarsest


def relative_error(tested: Any, reference: Any) -> float:
    """||tested - reference|| / ||reference - mean||.

    >>> one = np.array([1.0, 2.0])
    >>> relative_error(one, one), round(relative_error(np.array([1.0, 2.1]), one), 3)
    (0.0, 0.141)
    """
    difference = float(np.sum((tested - reference) ** 2))
    spread = float(np.sum((reference - reference.mean()) ** 2))
    return 0.0 if difference == 0 else math.sqrt(difference / spread) if spread else math.inf


def _expected_rounding(shape: Shape, stage: str) -> float:
    """The error of n independent roundings to bf16, u * sqrt(n), as in vlmprof selftest."""
    vision = shape.tower_blocks * (11 + 6) + 6 if shape.tower_blocks else 0
    text = shape.blocks * (14 + 7) + 3 if stage == "prefill" else 0
    return 2.0**-9 * math.sqrt(vision + text)


def _first_different(one: Any, other: Any) -> int:
    both = min(len(one), len(other))
    different = np.flatnonzero(one[:both] != other[:both])
    return int(different[0]) if len(different) else both


class Comparison:
    """Two stacks, and how much of their difference rounding explains."""

    def __init__(self, ours: Stack, theirs: Stack, rounded: Optional[Stack], precision: str, shape: Shape):
        self.ours, self.theirs, self.rounded, self.precision, self.shape = ours, theirs, rounded, precision, shape

    def own_distance(self, stage: str) -> float:
        """The distance of our rounded run from fp32; for logits, the largest of the rows that follow equal tokens."""
        expected = _expected_rounding(self.shape, stage)
        if self.rounded is None or stage not in self.rounded.values:
            return expected
        own = relative_error(self.rounded.values[stage], self.ours.values[stage])
        if stage == "prefill" and "tokens" in self.ours.values and "tokens" in self.rounded.values:
            equal = _first_different(self.ours.values["tokens"], self.rounded.values["tokens"])
            for step in range(1, min(equal + 1, len(self.ours.steps), len(self.rounded.steps))):
                own = max(own, relative_error(self.rounded.steps[step], self.ours.steps[step]))
        # one run can be closer by chance: use at least a third of the usual
        return max(own, expected / 3) if self.precision in ("fp16", "bf16") else own

    def bound(self, stage: str) -> float:
        depth = self.shape.tower_blocks + (self.shape.blocks if stage == "prefill" else 0)
        least = FP32[stage] * (1.0 if stage == "pixels" else math.sqrt(max(1.0, depth / FP32_DEPTH)))
        if self.precision == "fp32":
            return least
        if stage == "pixels":
            return 2.0 ** (-11 if self.precision == "fp16" else -8)
        own = self.own_distance(stage) * (FP16_OF_BF16 if self.precision == "fp16" else 1.0)
        if stage == "prefill" and self.shape.has_experts:
            least = max(least, FLIPPED)
        return max(least, SPREAD * own)

    def whole(self, stage: str) -> Stage:
        """Integers: how many differ. One side may lack the counts of an image."""
        one, other = self.ours.values[stage].reshape(-1), self.theirs.values[stage].reshape(-1)
        first, both = _first_different(one, other), min(len(one), len(other))
        different = int((one[:both] != other[:both]).sum()) + (0 if stage == "image" else abs(len(one) - len(other)))
        if not different:
            return Stage(stage, "equal", 0.0, 0.0, "")
        what = "image tokens" if stage == "image" else "text tokens"
        note = (f"{one[0]} {what} in vlmprof, {other[0]} in the other" if stage == "image" else f"first at token {first}: {one[first]} in vlmprof, {other[first]} in the other"
                if first < both else f"{len(one)} {what} in vlmprof, {len(other)} in the other; the first {both} are equal")
        return Stage(stage, "parted", float(different), 0.0, note)

    def real(self, stage: str) -> Stage:
        one, other = self.ours.values[stage], self.theirs.values[stage]
        bound = self.bound(stage)
        same_rows = one.ndim and other.ndim and other.size * one.shape[-1] == one.size * other.shape[-1]
        if same_rows and one.shape[-1] > other.shape[-1]:
            one = one[..., :other.shape[-1]]  # a tower with DeepStack: ours has all levels, the last block's first
        if one.size != other.size:
            return Stage(stage, "parted", None, bound, f"{one.size} values in vlmprof, {other.size} in the other")
        distance = relative_error(other.reshape(-1), one.reshape(-1))
        return Stage(stage, "equal" if distance == 0 else "rounding" if distance <= bound else "parted", distance, bound, "")

    def tokens(self) -> Stage:
        """Answers: where they diverge, and how far apart our logits for the two tokens are. An answer that ends early does not differ if the other one continues after
        its end."""
        one, other = self.ours.values["tokens"], self.theirs.values["tokens"].reshape(-1)
        first, both = _first_different(one, other), min(len(one), len(other))
        if first == both or self.ours.steps is None or first >= len(self.ours.steps):
            return Stage("tokens", "equal", 0.0, 0.0, f"{both} tokens compared")
        row = self.ours.steps[first]
        if not 0 <= other[first] < len(row):
            return Stage("tokens", "parted", None, None, f"token {first}: {other[first]} in the other; the model has {len(row)}")
        margin = float(row[one[first]] - row[other[first]])
        tie = TIE_DEVIATIONS * math.sqrt(2) * float(row.std()) * self.bound("prefill") / SPREAD
        return Stage("tokens", "rounding" if margin <= tie else "parted", margin, tie, f"token {first}: {one[first]} in vlmprof, {other[first]} in the other; "
                     f"{margin:.3g} nats apart in our logits: " + ("a tie" if margin <= tie else "a fault"))

    def stage(self, stage: str) -> Stage:
        if stage not in self.ours.values:
            return Stage(stage, "unseen", None, None, "the request has no image")
        if stage not in self.theirs.values:
            return Stage(stage, "unseen", None, None, "the folder has no such file")
        return self.tokens() if stage == "tokens" else self.whole(stage) if stage in WHOLE else self.real(stage)

    def all(self) -> Conformity:
        return Conformity(self.precision, [self.stage(stage) for stage in STAGES])


def compare(ours: PathLike, theirs: PathLike, rounded: Optional[PathLike] = None, precision: str = "auto", shape: Optional[Shape] = None) -> Conformity:
    """Compares a dump of `vlmprof run --weights fp32 --dump` with another stack's values.

    rounded:   a dump of the same request in the other stack's precision, to measure the effect of rounding; without it, an estimate
    precision: the type to which the other stack rounds: fp32, fp16, bf16, int8, int4; auto: judged by its values
    shape:     the model's shape, for the estimates"""
    one = load_stack(ours)
    other = load_stack(theirs, one)
    shape = shape or Shape()
    in_fp32 = Comparison(one, other, None, "fp32", shape).all()
    shows_fp32 = any(stage.verdict in ("equal", "rounding") for stage in in_fp32.stages if stage.stage in ("tower", "connector", "prefill"))
    if precision == "auto":  # values of fp32 arithmetic need no rounding to explain them
        fits = rounded_to(other)
        precision = "fp32" if shows_fp32 else fits if fits != "fp32" else "bf16" if rounded else "fp32"
    if precision == "fp32" or in_fp32.first_difference is None:
        return in_fp32
    return Comparison(one, other, load_stack(rounded, one) if rounded else None, precision, shape).all()


def shape_of(model: PathLike) -> Shape:
    """Depths and experts from a model's config.json, whose keys differ between families."""
    config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    text, vision = config.get("text_config", config), config.get("vision_config") or {}

    def first(where: Dict[str, Any], *names: str) -> int:
        return next((int(where[name]) for name in names if isinstance(where.get(name), int)), 0)
    experts = first(text, "num_experts", "num_local_experts", "moe_num_experts")
    return Shape(first(text, "num_hidden_layers", "n_layers"), first(vision, "num_hidden_layers", "depth"), experts > first(text, "num_experts_per_tok", "moe_top_k"))


def text_of(conformity: Conformity) -> str:
    first, seen = conformity.first_difference, sum(stage.verdict != "unseen" for stage in conformity.stages)
    at = next((stage for stage in conformity.stages if stage.stage == first), None)
    if at is None:
        rounds = any(stage.verdict == "rounding" for stage in conformity.stages)
        said = f"differ by no more than rounding ({conformity.precision})" if rounds else "are equal"
        lines = [f"The two stacks {said} in the {seen} stages that both have."]
    elif at.note:
        lines = [f"They diverge at {first}: {at.note}."]
    else:
        lines = [f"They diverge at {first}: the distance is {at.distance:.2g}, and rounding ({conformity.precision}) explains {at.bound:.2g}."]
    if len(conformity.possible_stages) > 1:
        lines.append(f"Not seen, so also possible: {' '.join(conformity.possible_stages[:-1])}.")
    rows = [("stage", "verdict", "distance", "explained by rounding", "")]
    for stage in conformity.stages:
        rows.append((stage.stage, stage.verdict, "-" if stage.distance is None else f"{stage.distance:.2g}",
                     "-" if stage.bound is None else f"{stage.bound:.2g}", stage.note))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join([*lines, "", *("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]).rstrip() for row in rows)])


def _other(given: argparse.Namespace) -> Tuple[str, Optional[Shape]]:
    """The folder with the other stack's values. For transformers:DIR, transformers writes it first."""
    shape = shape_of(given.model) if given.model else None
    if not given.theirs.startswith("transformers:"):
        return given.theirs, shape
    from .transformers import dump
    model = given.theirs[len("transformers:"):]
    if not given.prompt:
        raise ConformError("transformers:DIR runs the request itself: give -p TEXT, and --image FILE if it has one")
    output = given.output or f"{given.ours.rstrip('/')}-transformers"
    dump(model, given.image, given.prompt, output, given.dtype, len(load_stack(given.ours).values.get("tokens", [0] * 8)))
    return output, shape or shape_of(model)


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vlmprof.conform", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="dump of vlmprof run --weights fp32 --dump")
    parser.add_argument("theirs", help="another dump, a folder of .npy files, or transformers:DIR")
    parser.add_argument("--rounded", help="second dump of the request, in the other side's precision, to show the effect of rounding")
    parser.add_argument("--precision", choices=("auto", *PRECISIONS), default="auto", help="precision of the other stack (default: judged by its values)")
    parser.add_argument("--model", help="folder with the model's config.json: its depth and experts, for estimates")
    parser.add_argument("--image", help="transformers:DIR: the picture of the request")
    parser.add_argument("-p", "--prompt", help="transformers:DIR: the text of the request")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="transformers:DIR: the precision of the run")
    parser.add_argument("--output", help="transformers:DIR: folder for the values (default: OURS-transformers)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    try:
        theirs, shape = _other(given)
        result = compare(given.ours, theirs, given.rounded, given.precision, shape)
    except (ConformError, ImportError, OSError) as error:
        print(f"vlmprof.conform: {error}", file=sys.stderr)
        return 3
    if given.json:
        stages = [stage._asdict() for stage in result.stages]
        print(json.dumps({"precision": result.precision, "first_difference": result.first_difference,
                          "possible_stages": result.possible_stages, "stages": stages}, indent=1))
    else:
        print(text_of(result))
    return 1 if result.first_difference else 0
