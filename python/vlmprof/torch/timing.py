"""Stage times of requests to a torch model, from marks around the calls of its modules."""
from __future__ import annotations

import datetime
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import transformers

from ..commands import version
from ..results import need_pandas
from .families import find_modules

# in the order of a request; prepare is what generate does before the first forward pass
NAMES = ("prepare", "vit", "connector", "embed", "prefill", "head", "sample", "decode")


class NeverBegan(RuntimeError):
    """A stage's module was not called in a request that needs it; the text gives the reason."""


@dataclass
class Request:
    """One request, of `batch` samples. Times are in ns. On a GPU they come from its events, except the total, which comes from the caller's clock around the request."""
    total_ns: int
    stages: Dict[str, int]  # by NAMES: the time in each that is in no other
    step_ns: List[int]  # of each decode step: blocks, head, choice of the token
    order: List[str]  # the modules in the order in which they began: "vit", "connector", "language", "forward"
    tokens: List[int] = field(default_factory=list)  # new tokens, of the first row
    prompt_tokens: int = 0  # positions of a row
    image_tokens: int = 0  # placeholders of images in the first row
    views: int = 0  # images that the vision tower saw
    batch: int = 1
    cold: bool = False  # one of the first `warmup` requests: it also pays for kernels, caches and compilation
    peak_bytes: Dict[str, int] = field(default_factory=dict)  # most memory allocated during a stage, where torch counts it

    @property
    def unaccounted_ns(self) -> int:
        """The total minus all stages."""
        return self.total_ns - sum(self.stages.values())


def device_of(model: Any) -> torch.device:
    """The one device of a model. Raises ValueError if its parameters are on several."""
    found = {str(tensor.device): tensor.device for tensor in model.parameters()}
    if len(found) > 1:
        raise ValueError(f"{type(model).__name__} is on several devices ({', '.join(sorted(found))}): their clocks and streams differ, so stages "
                         f"cannot be told apart; load it with device_map={{\"\": \"{min(found, key=lambda name: name in ('cpu', 'meta'))}\"}}")
    return next(iter(found.values()), torch.device("cpu"))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type != "cpu":
        torch.accelerator.synchronize(device)


def cpu_seconds() -> Optional[Tuple[float, ...]]:
    """CPU seconds since boot: available, used, taken by a virtual machine's host, and used by this process; None: not known."""
    try:
        user, nice, system, idle, wait, irq, softirq, steal = (int(one) / os.sysconf("SC_CLK_TCK") for one in Path("/proc/stat").read_text().split()[1:9])
    except (OSError, ValueError):
        return None
    busy = user + nice + system + irq + softirq
    return busy + idle + wait + steal, busy, steal, sum(os.times()[:4])


def others_between(before: Optional[Tuple[float, ...]], after: Optional[Tuple[float, ...]]) -> Optional[Tuple[float, float]]:
    """Percent of CPU time that the host took, and that other programs used, between two results of cpu_seconds; None: not known."""
    total, busy, steal, own = (b - a for a, b in zip(before, after)) if before and after else (0, 0, 0, 0)
    is_known = total > 0 and min(busy, steal, own) >= 0 and busy + steal <= 1.01 * total and own - busy <= total / 10
    return (100 * steal / total, 100 * (busy - own) / total) if is_known else None


class Progress:
    """A line on stderr with the remaining time: twice a second on a terminal, otherwise every ten seconds."""

    def __init__(self, what: str, count: int):
        self.what, self.count = what, count
        self.began = self.shown = time.monotonic()

    def say(self, done: int, more: str = "") -> None:
        now, is_terminal, is_last = time.monotonic(), sys.stderr.isatty(), done == self.count
        if now - self.shown > (0.5 if is_terminal else 10) or (is_last and (more or self.shown > self.began)):
            self.shown, left = now, round((now - self.began) / done * (self.count - done))
            print(f"vlmprof.torch: {done} of {self.count} {self.what}{more}, {left // 60}:{left % 60:02} left", end="\r" if is_terminal and not is_last else "\n",
                  file=sys.stderr, flush=True)


class _Marks:
    """Time stamps of one request: from the host's clock, or on CUDA from events that are read after one synchronisation."""

    def __init__(self, device: torch.device, clock: Optional[Callable[[], int]]):
        self.device, self.clock = device, clock or time.perf_counter_ns
        self.has_events, self.is_made_up = device.type == "cuda" and clock is None, clock is not None
        self.marks: List[Tuple[str, str, Any]] = []
        self.peaks: List[int] = []  # bytes, of the time before each mark

    def now(self) -> int:
        if not self.is_made_up:
            synchronise(self.device)
        return self.clock()

    def begin(self) -> None:
        self.begin_ns = self.now()

    def add(self, what: str, name: str) -> None:
        stamp: Any = None
        if self.has_events:
            stamp = torch.cuda.Event(enable_timing=True)
            stamp.record(torch.cuda.current_stream(self.device))
            self.peaks.append(torch.cuda.max_memory_allocated(self.device))
            torch.cuda.reset_peak_memory_stats(self.device)
        self.marks.append((what, name, stamp if self.has_events else self.now()))

    def end(self) -> Tuple[int, List[Tuple[str, str, int]]]:
        """(total in ns, marks with ns since the first)"""
        total, first = self.now() - self.begin_ns, self.marks[0][2]
        return total, [(what, name, round(first.elapsed_time(stamp) * 1e6) if self.has_events else stamp - self.begin_ns) for what, name, stamp in self.marks]


def _with_tokens(marks: List[Tuple[str, str, int]]) -> List[Tuple[str, str, int]]:
    """Completes marks without tokens, from the caller's own run with several passes: each pass after the first is a decode step."""
    name = "forward" if any(mark[1] == "forward" for mark in marks) else "language"
    begins = [index for index, mark in enumerate(marks) if mark[:2] == ("begin", name)]
    if len(begins) < 2 or any(mark[0] == "token" for mark in marks):
        return marks
    last = max(index for index, mark in enumerate(marks) if mark[:2] == ("end", name))
    out: List[Tuple[str, str, int]] = []
    for index, mark in enumerate(marks):
        out += [("token", "token", mark[2])] if index in begins[1:] else []
        out += [mark, ("token", "token", mark[2])] if index == last else [mark]
    return out


def attribute(marks: List[Tuple[str, str, int]]) -> Tuple[Dict[str, int], List[int], List[str], List[Optional[str]]]:
    """(ns of each stage, ns of each decode step, order of the modules, the stage after each mark) from marks ("begin"|"end"|"token", name, ns) in
    order of time."""
    stages, steps, order = dict.fromkeys(NAMES, 0), [], []
    open_modules: List[str] = []
    places: List[Optional[str]] = []
    forwards = tokens = 0
    last_token = sum(what == "token" for what, _, _ in marks)
    language_is_done = False
    for index, (what, name, at) in enumerate(marks[:-1]):
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
        inner = open_modules[-1] if open_modules else None
        stage: Optional[str]
        if inner in ("vit", "connector"):
            stage = inner
        elif tokens:
            stage = "decode" if len(steps) == tokens else None  # after the last token: in no stage
        elif inner == "language":
            stage = "prefill"
        elif not forwards and not language_is_done:
            stage = "prepare"
        elif inner == "forward":
            stage = "head" if language_is_done else "embed"
        else:
            stage = "sample"
        places.append(stage)
        if stage is not None:
            spent = marks[index + 1][2] - at
            stages[stage] += spent
            if stage == "decode":
                steps[-1] += spent
    return stages, steps, order, places


def state_of(model: Any) -> Dict[str, Any]:
    """The parts of a model's state that knobs change."""
    return {"attention": str(getattr(getattr(model, "config", None), "_attn_implementation", None) or "not known"),
            "dtype": ", ".join(sorted({str(one.dtype)[6:] for one in model.parameters()})) or "none", "compile": compiled_in(model) or ["none"]}


def provenance(model: Any, device: torch.device) -> Dict[str, Any]:
    """Where, when and with which software a model is measured; no value is null."""
    try:
        ours = version()
    except OSError:
        ours = "not known: no program"
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    stamps, began = _Marks(torch.device("cpu"), None), time.perf_counter_ns()
    for _ in range(1000):
        stamps.add("token", "token")
    cost = (time.perf_counter_ns() - began) // 1000
    return {"version": ours, "build": f"torch {torch.__version__}, transformers {transformers.__version__}", "host": platform.node() or "not known",
            "kernel": platform.release(), "python": platform.python_version(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "argv": list(getattr(sys, "orig_argv", [sys.executable, *sys.argv])), "device": f"{device.type}: {name}", "threads": torch.get_num_threads(), **state_of(model),
            "synchronisation": {"cuda": "CUDA events", "cpu": "none"}.get(device.type, "at each mark"), "load": round(os.getloadavg()[0], 2), "stamp_cost_ns": cost}


@torch.compiler.disable
def compiled_in(model: Any) -> List[str]:
    """The modules of a model that torch.compile compiled."""
    found = []
    for name, module in model.named_modules():
        call: Any = getattr(module, "_compiled_call_impl", None)
        while hasattr(call, "vlmprof_inner"):  # ours
            call = call.vlmprof_inner
        if call is not None or hasattr(module, "_orig_mod") or hasattr(vars(module).get("forward"), "_torchdynamo_orig_callable"):
            found.append(name.replace("_orig_mod.", "") or type(getattr(module, "_orig_mod", module)).__name__)
    return found


class stages:
    """Times the stages of each request while it is open: with stages(model) as s: model.generate(**inputs, max_new_tokens=32); then print(s).

    model:   a transformers model, or any torch.nn.Module with `modules`; its results do not change
    modules: paths of modules that vlmprof.torch.FAMILIES lacks: {"vit": "PATH", "connector": None, "language": "PATH"}; None: the model has no such stage
    run:     a function that answers a request, for models without generate: call it as stages.run(...)
    warmup:  the first N requests are marked cold; tables show them separately
    clock:   a function that returns nanoseconds, instead of the host's clock and a GPU's events

    `requests` has a Request for each call of generate, of stages.run, or of the model itself. A call that fails is not recorded. A CUDA GPU is
    synchronised before and after a request, other accelerators at each mark. If torch.compile compiled a stage's module, its calls are timed from outside."""

    def __init__(self, model: Any, modules: Optional[Dict[str, Optional[str]]] = None, run: Optional[Callable[..., Any]] = None, warmup: int = 1,
                 clock: Optional[Callable[[], int]] = None):
        self._given, self.model, self.warmup, self._clock = model, getattr(model, "_orig_mod", model), warmup, clock
        self.family, self.has_views, self._modules = find_modules(self.model, modules)
        self.device = device_of(self.model)
        self.requests: List[Request] = []
        self._marks: Optional[_Marks] = None
        self.noise: Optional[Tuple[float, float]] = None  # others_between the beginning and the end
        self._ranges: List[Any] = []  # for torch.profiler, if it is active
        self._undo: List[Callable[[], None]] = []
        self._own_run, self.run = run, run or getattr(self.model, "generate", self.model)

    def __enter__(self) -> stages:
        if self._undo:
            raise RuntimeError("these stages are already being timed: a request would be timed twice")
        self._reading = None if self._clock else cpu_seconds()
        for stage, (first, last) in self._modules.items():
            self._around(first, self._begin_of(stage), self._end_of(stage) if last is first else None)
            if last is not first:
                self._around(last, None, self._end_of(stage))
        self._around(self.model, self._begin_forward, self._end_forward)
        if self._own_run is not None:
            self.run = self._timed(self._own_run, False)
        elif hasattr(self.model, "generate"):
            own = vars(self.model).get("generate")  # a patch of the user's, or of other stages
            self.run = self._timed(self.model.generate, True)
            self.model.generate = self.run
            self._undo.append(lambda: setattr(self.model, "generate", own) if own is not None else delattr(self.model, "generate"))
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.noise = others_between(self._reading, self._reading and cpu_seconds())
        taken = [] if self.requests else compiled_in(self._given)
        while self._undo:
            self._undo.pop()()
        self._marks = None
        if kind is None and taken:
            raise NeverBegan(f"no request was timed: torch.compile compiled {', '.join(taken)}, and its regions call no module; compile the stages' "
                             "modules instead (module.compile())")

    def _around(self, module: Any, begin: Optional[Callable[..., None]], end: Optional[Callable[..., None]]) -> None:
        """Calls begin(args, kwargs) and end(succeeded) around each call of a module, including its hooks and compiled code."""
        inner = module._compiled_call_impl

        def call(*args: Any, **kwargs: Any) -> Any:
            if begin:
                begin(args, kwargs)
            succeeded = False
            try:
                result = (inner or module._call_impl)(*args, **kwargs)
                succeeded = True
                return result
            finally:
                if end:
                    end(succeeded)
        call.vlmprof_inner = inner  # type: ignore[attr-defined]
        module._compiled_call_impl = call
        self._undo.append(lambda: setattr(module, "_compiled_call_impl", inner))

    # ---- marks
    def _add(self, what: str, name: str) -> None:
        if self._marks is not None:
            self._marks.add(what, name)

    def _begin_of(self, stage: str) -> Callable[..., None]:
        def begin(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
            if self._marks is not None and torch.autograd._profiler_enabled():
                passed = any(mark[:2] == ("end", "language") for mark in self._marks.marks)
                self._ranges.append(torch.autograd.profiler.record_function("vlmprof." + (stage if stage != "language" else "decode" if passed else "prefill")))
                self._ranges[-1].__enter__()
            if stage == "vit" and self._marks is not None:
                pictures = args[0] if args else kwargs.get("pixel_values", kwargs.get("hidden_states"))
                grid = kwargs.get("grid_thw")
                self._views += len(grid) if grid is not None else pictures.shape[0] if pictures is not None else 0
            self._add("begin", stage)
        return begin

    def _end_of(self, stage: str) -> Callable[..., None]:
        def end(_succeeded: bool) -> None:
            self._add("end", stage)
            if self._ranges:
                self._ranges.pop().__exit__(None, None, None)
        return end

    def _begin_forward(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        if self._marks is None:
            self._open(args, kwargs)
            self._is_forward = True
        self._depth += 1
        self._add("begin", "forward")

    def _end_forward(self, succeeded: bool) -> None:
        self._add("end", "forward")
        self._depth -= 1
        if self._is_forward and not self._depth:
            self._close(None, succeeded)

    def _timed(self, function: Callable[..., Any], is_generate: bool) -> Callable[..., Any]:
        def request(*args: Any, **kwargs: Any) -> Any:
            never: Optional[torch.Tensor] = None

            def token_is_chosen(ids: torch.Tensor, _scores: Any, **_more: Any) -> torch.Tensor:
                nonlocal never
                self._add("token", "token")
                if never is None:
                    never = torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)
                return never

            if self._marks is not None:  # a part of the request that is being timed
                return function(*args, **kwargs)
            self._open(args, kwargs)
            if is_generate:
                criteria = list(kwargs.pop("stopping_criteria", None) or [])
                kwargs["stopping_criteria"] = transformers.StoppingCriteriaList([*criteria, token_is_chosen])
            try:
                self._add("begin", "generate")
                output = function(*args, **kwargs)
                self._add("end", "generate")
            except BaseException:
                self._marks = None
                raise
            self._close(output, True)
            return output
        return request

    # ---- a request
    def _open(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        first: Any = args[0] if args else None
        ids = kwargs.get("input_ids", kwargs.get("inputs", first))
        self._prompt = ids if torch.is_tensor(ids) and ids.dim() == 2 and not ids.is_floating_point() else None
        self._has_picture = self._prompt is None or any(value is not None and ("pixel" in key or "image" in key) for key, value in kwargs.items())
        self._views, self._depth, self._is_forward = 0, 0, False
        self._marks = _Marks(self.device, self._clock)
        self._marks.begin()

    def _close(self, output: Any, succeeded: bool) -> None:
        marks, self._marks = self._marks, None
        assert marks is not None  # of the call that ends
        if not succeeded:
            return
        total, stamped = marks.end()
        spent, steps, order, places = attribute(_with_tokens(stamped))
        request = Request(total, spent, steps, order, views=self._views, cold=len(self.requests) < self.warmup)
        for stage, peak in zip(places, marks.peaks[1:]):
            if stage is not None:
                request.peak_bytes[stage] = max(peak, request.peak_bytes.get(stage, 0))
        prompt = self._prompt
        answer = output.sequences if hasattr(output, "sequences") else output
        if isinstance(answer, torch.Tensor) and answer.dim() in (1, 2) and not answer.is_floating_point():
            request.tokens = (answer if answer.dim() == 1 else answer[0]).tolist()
        if prompt is not None:
            config = getattr(self.model, "config", None)
            first, image_id = prompt[0].tolist(), getattr(config, "image_token_id", getattr(config, "image_token_index", None))
            request.batch, request.prompt_tokens, request.image_tokens = prompt.shape[0], len(first), first.count(image_id)
            if request.tokens[:len(first)] == first:
                del request.tokens[:len(first)]
        self._check(order)
        self.requests.append(request)

    def _check(self, order: List[str]) -> None:
        for stage, (first, _last) in self._modules.items():
            if stage in order or (stage != "language" and not self._has_picture):
                continue
            path = next((name for name, module in self.model.named_modules() if module is first), stage)
            path = path.replace("_orig_mod.", "")
            around = [name for name in compiled_in(self._given) if name not in (path, f"{path}._orig_mod") and (path.startswith(f"{name}.") or name == type(self.model).__name__)]
            raise NeverBegan(f"the module of the stage {stage!r}, {path} ({type(first).__name__}), was not called in this request: " + (
                f"torch.compile compiled {around[0]} around it, and a compiled region calls no module; compile {path} itself ({path}.compile())" if around else
                f"the model answered without it; name the one that it uses, or None if it has none: stages(model, modules={{{stage!r}: ...}})"))

    # ---- what was measured
    def rows(self) -> List[Dict[str, Any]]:
        """A dict for each request, with times in ms for the whole request, also for a batch."""
        return [{"cold": one.cold, "batch": one.batch, "prompt_tokens": one.prompt_tokens, "image_tokens": one.image_tokens, "views": one.views,
                 "output_tokens": len(one.tokens), "total_ms": one.total_ns / 1e6, **{f"{name}_ms": ns / 1e6 for name, ns in one.stages.items()},
                 "unaccounted_ms": one.unaccounted_ns / 1e6, **{f"{name}_peak_bytes": peak for name, peak in one.peak_bytes.items()}} for one in self.requests]

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each request, as rows()."""
        return need_pandas().DataFrame(self.rows())

    def to_dict(self) -> Dict[str, Any]:
        """All results, as numbers and texts for json.dump; no command reads them."""
        return {"family": self.family, "noise": self.noise, "provenance": provenance(self.model, self.device), "requests": [asdict(one) for one in self.requests]}

    def __str__(self) -> str:
        """Medians and ranges of the warm requests in ms; cold requests have their own column."""
        if not self.requests:
            return f"{self.family}: no request was timed"
        cold, warm = ([one for one in self.requests if one.cold == is_cold] for is_cold in (True, False))
        batch, shown = max(one.batch for one in self.requests), warm or cold
        counts = [f"{len(some)} {word} request{'s' * (len(some) > 1)}" for some, word in ((warm, "warm"), (cold, "cold"))]
        lines = [f"{self.family}: " + ((f"medians (and ranges) of {counts[0]}" if len(warm) > 1 else counts[0]) + (f" ({counts[1]} shown at right)" if cold else "")
                                       if warm else "cold: the first requests also pay for kernels, caches and compilation")]
        lines[0] += f"; times per request of {batch} samples, and per sample" if batch > 1 else ""
        values: List[Tuple[str, Callable[[Request], int]]] = [(name, lambda one, name=name: one.stages[name]) for name in NAMES]  # type: ignore[misc]
        for name, of in [*values, ("unaccounted", lambda one: one.unaccounted_ns), ("total", lambda one: one.total_ns)]:
            middle, total = (statistics.median(map(what, shown)) for what in (of, lambda one: one.total_ns))
            line = f"{name:12} {middle / 1e6:10.3f} ms  {100 * middle / total if total else 0:5.1f} %"
            line += f" {min(map(of, shown)) / 1e6:10.3f} to {max(map(of, shown)) / 1e6:.3f}" if len(shown) > 1 else ""
            line += f" {statistics.median(of(one) / one.batch for one in shown) / 1e6:10.3f} ms per sample" if batch > 1 else ""
            line += f"  cold {statistics.median(map(of, cold)) / 1e6:10.3f} ms" if warm and cold else ""
            steps = [of(one) / len(one.step_ns) / 1e6 for one in shown if one.step_ns] if name == "decode" else []
            lines.append(line + (f"  {statistics.median(steps):.3f} ms per token" if steps else ""))
        if self.noise and (self.noise[0] >= 5 or self.noise[1] >= 10):
            lines.append(f"the machine was not quiet: other programs used {max(0, self.noise[1]):.0f} % of the CPUs" + (f", the hypervisor {self.noise[0]:.0f} %" if self.noise[0] >= 1 else "")
                         + ("; torch.set_num_threads(1) suffers less from them" if self.device.type == "cpu" and torch.get_num_threads() > 1 else ""))
        return "\n".join(lines)
