"""Stage times of requests to a transformers model, by forward hooks."""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .families import find_modules

# in the order of a request; prepare is what generate does before the first forward pass
NAMES = ("prepare", "vit", "connector", "embed", "prefill", "head", "sample", "decode")


@dataclass
class Request:
    """One request. Times are ns; on a GPU those of its events, the total the caller's clock around the request."""
    total_ns: int
    stages: Dict[str, int]  # by NAMES: the time in each that is in no other
    step_ns: List[int]  # of each decode step: blocks, head, choice of the token
    order: List[str]  # the modules in the order in which they began: "vit", "connector", "language", "forward"
    tokens: List[int] = field(default_factory=list)  # new tokens, of the first row
    prompt_tokens: int = 0
    image_tokens: int = 0  # placeholders of images in the prompt
    views: int = 0  # images that the vision tower saw
    warm: bool = True  # False: a warm-up request

    @property
    def unaccounted_ns(self) -> int:
        """The total less all stages."""
        return self.total_ns - sum(self.stages.values())

    @property
    def closure(self) -> float:
        """The stages' share of the total."""
        return sum(self.stages.values()) / self.total_ns if self.total_ns else 0.0


class _Marks:
    """Time stamps of one request: the host's clock, or events on a GPU's stream that are read after one synchronisation."""

    def __init__(self, device: torch.device, clock: Optional[Callable[[], int]]):
        self.is_gpu = device.type == "cuda" and clock is None
        self.device, self.clock = device, clock or time.perf_counter_ns
        self.marks: List[Tuple[str, str, Any]] = []
        self.begin_ns = 0

    def begin(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize(self.device)  # nothing of the request before
        self.begin_ns = self.clock()

    def add(self, what: str, name: str) -> None:
        if self.is_gpu:
            stamp = torch.cuda.Event(enable_timing=True)
            stamp.record(torch.cuda.current_stream(self.device))
        else:
            stamp = self.clock()
        self.marks.append((what, name, stamp))

    def end(self) -> Tuple[int, List[Tuple[str, str, int]]]:
        """(total ns, marks with ns from the first)"""
        if self.is_gpu:
            torch.cuda.synchronize(self.device)
        total = self.clock() - self.begin_ns
        if not self.is_gpu:
            return total, [(what, name, stamp - self.begin_ns) for what, name, stamp in self.marks]
        first = self.marks[0][2]
        return total, [(what, name, round(first.elapsed_time(stamp) * 1e6)) for what, name, stamp in self.marks]


def attribute(marks: List[Tuple[str, str, int]]) -> Tuple[Dict[str, int], List[int], List[str]]:
    """(ns of each stage, ns of each decode step, order of the modules) from marks ("begin"|"end"|"token", name, ns) in order of time."""
    stages, steps, order = dict.fromkeys(NAMES, 0), [], []
    open_modules: List[str] = []
    forwards = tokens = 0
    last_token = sum(what == "token" for what, _, _ in marks)
    language_is_done = False
    for index, (what, name, at) in enumerate(marks):
        if what == "begin":
            order.append(name)
            open_modules.append(name)
            forwards += name == "forward"
        elif what == "end":
            while open_modules and open_modules.pop() != name:
                pass
            language_is_done |= name == "language"
        elif what == "token":
            tokens += 1
            if tokens < last_token:
                steps.append(0)
        if index + 1 == len(marks):
            break
        inner = open_modules[-1] if open_modules else None
        if inner in ("vit", "connector"):
            stage = inner
        elif tokens:
            if len(steps) < tokens:
                continue  # behind the last token: in no stage
            stage = "decode"
        elif not forwards:
            stage = "prepare"
        elif inner == "language":
            stage = "prefill"
        elif inner == "forward":
            stage = "head" if language_is_done else "embed"
        else:
            stage = "sample"
        spent = marks[index + 1][2] - at
        stages[stage] += spent
        if stage == "decode":
            steps[-1] += spent
    return stages, steps, order


class stages:
    """Times the stages of each request while it is open:

        with vlmprof.torch.stages(model) as stages:
            model.generate(**inputs, max_new_tokens=32)
        print(stages)

    model:   a transformers model; nothing of its results changes
    modules: paths of modules that vlmprof.torch.FAMILIES does not know: {"vit": "PATH", "connector": "PATH", "language": "PATH"}
    warmup:  so many requests first, kept apart in `cold`
    clock:   a function that returns ns, in the place of the host's clock and of a GPU's events

    `requests` has a Request for each call of generate, or of the model itself. One synchronisation with a GPU is made before a request and
    one after it, none inside."""

    def __init__(self, model: Any, modules: Optional[Dict[str, str]] = None, warmup: int = 1, clock: Optional[Callable[[], int]] = None):
        self.model, self.warmup, self._clock = model, warmup, clock
        self.family, self.has_views, self._modules = find_modules(model, modules)
        self.requests: List[Request] = []
        self.cold: List[Request] = []
        self._marks: Optional[_Marks] = None
        self._hooks: List[Any] = []
        self._prompt: Optional[Any] = None
        self._views = 0
        self._in_generate = False

    def __enter__(self) -> stages:
        for stage, (first, last) in self._modules.items():
            self._hooks.append(first.register_forward_pre_hook(self._begin_of(stage), with_kwargs=True))
            self._hooks.append(last.register_forward_hook(self._end_of(stage)))
        self._hooks.append(self.model.register_forward_pre_hook(self._begin_forward, with_kwargs=True))
        self._hooks.append(self.model.register_forward_hook(self._end_forward))
        self._generate = self.model.generate
        self.model.generate = self._timed_generate
        return self

    def __exit__(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        del self._hooks[:]
        del self.model.generate  # the class's again

    # ---- hooks
    def _add(self, what: str, name: str) -> None:
        if self._marks is not None:
            self._marks.add(what, name)

    def _begin_of(self, stage: str) -> Callable[..., None]:
        def begin(_module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
            if stage == "vit" and self._marks is not None:
                pictures = args[0] if args else kwargs.get("pixel_values", kwargs.get("hidden_states"))
                grid = kwargs.get("grid_thw")
                self._views += len(grid) if grid is not None else pictures.shape[0] if pictures is not None else 0
            self._add("begin", stage)
        return begin

    def _end_of(self, stage: str) -> Callable[..., None]:
        return lambda _module, _inputs, _output: self._add("end", stage)

    def _begin_forward(self, _module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        if self._marks is None:
            self._open(kwargs.get("input_ids", args[0] if args else None))
        self._add("begin", "forward")

    def _end_forward(self, *_: Any) -> None:
        self._add("end", "forward")
        if not self._in_generate:
            self._close(None)

    def _timed_generate(self, *args: Any, **kwargs: Any) -> Any:
        from transformers import StoppingCriteriaList
        never: Optional[torch.Tensor] = None

        def token_is_chosen(ids: torch.Tensor, _scores: Any, **_more: Any) -> torch.Tensor:
            nonlocal never
            self._add("token", "token")
            if never is None:
                never = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)
            return never

        self._open(kwargs.get("input_ids", args[0] if args else None))
        self._in_generate = True
        try:
            self._add("begin", "generate")
            criteria = list(kwargs.pop("stopping_criteria", None) or [])
            output = self._generate(*args, stopping_criteria=StoppingCriteriaList([*criteria, token_is_chosen]), **kwargs)
            self._add("end", "generate")
        except BaseException:
            self._marks = None
            raise
        finally:
            self._in_generate = False
        self._close(output)
        return output

    # ---- a request
    def _open(self, prompt: Any) -> None:
        self._prompt, self._views = prompt, 0
        self._marks = _Marks(next(self.model.parameters()).device, self._clock)
        self._marks.begin()

    def _close(self, output: Any) -> None:
        marks, self._marks = self._marks, None
        assert marks is not None  # of the call that ends
        total, stamped = marks.end()
        request = Request(total, *attribute(stamped), views=self._views)
        if self._prompt is not None:
            config = getattr(self.model, "config", None)
            image_id = getattr(config, "image_token_id", getattr(config, "image_token_index", None))
            request.prompt_tokens = int(self._prompt.shape[-1])
            if image_id is not None:
                request.image_tokens = int((self._prompt[0] == image_id).sum())
            if output is not None:
                request.tokens = getattr(output, "sequences", output)[0, request.prompt_tokens:].tolist()
        request.warm = len(self.cold) >= self.warmup
        (self.requests if request.warm else self.cold).append(request)

    def __str__(self) -> str:
        """Medians over the warm requests, ms."""
        if not self.requests:
            return f"{self.family}: no request was timed after {len(self.cold)} for warming up"

        def middle(values: List[float]) -> float:
            values = sorted(values)
            return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        total = middle([one.total_ns for one in self.requests])
        rows = [(name, middle([one.stages[name] for one in self.requests])) for name in NAMES]
        rows += [("unaccounted", middle([one.unaccounted_ns for one in self.requests])), ("total", total)]
        lines = [f"{self.family}: {len(self.requests)} requests, medians"]
        lines += [f"{name:12} {ns / 1e6:10.3f} ms  {100 * ns / total if total else 0:5.1f} %" for name, ns in rows]
        return "\n".join(lines)
