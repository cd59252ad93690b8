"""Is one of two ways to run the same thing slower? Runs alternate, and the first is compared with itself as a control."""
from __future__ import annotations

import math
import random
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

import torch

from .timing import Progress, synchronise

LEVEL, LEAST_PAIRS, LEAST_NS = 0.998, 12, 100_000  # the level is that of the intervals: 20 comparisons of equal things should find nothing


@dataclass
class AB:
    """The result of ab. Changes are B's time relative to A's, in percent; the intervals have a confidence level of 99.8 %."""
    verdict: str  # "slower", "faster", "same" (the interval is within the margin) or "undecided"
    change_percent: float
    interval: Tuple[float, float]
    control_percent: float  # of one half of A's runs relative to the other; both halves have runs that came first, and second, in their round
    control_interval: Tuple[float, float]
    a_ns: List[int]
    b_ns: List[int]
    left_out: int  # runs that are in no interval: they took far longer than the rest
    margin_percent: float
    pairs_needed: Optional[int] = None  # if undecided: about so many pairs should decide; None: more would not help

    @property
    def exit_code(self) -> int:
        """For a gate: 0 same or faster, 3 slower, 4 undecided (Python itself exits with 1 after an error)."""
        return {"slower": 3, "undecided": 4}.get(self.verdict, 0)

    def __str__(self) -> str:
        is_known, ends = self.verdict in ("slower", "faster"), "[{:.1f}, {:.1f}] %" if min(map(abs, self.interval)) >= 0.05 else "[{:.2f}, {:.2f}] %"
        words = f"{self.verdict} by {abs(self.change_percent):.1f} " if is_known else f"{f'same within {self.margin_percent:g} %' if self.verdict == 'same' else self.verdict}: {self.change_percent:+.1f} "
        words += ends.format(*(sorted(map(abs, self.interval)) if is_known else self.interval)) + ", 99.8 % interval"
        words += f" (about {self.pairs_needed:,} pairs needed)" if self.pairs_needed else " (A differs from itself)" if self.verdict == "undecided" else ""
        return (f"{words}; A against itself: {self.control_percent:+.1f} {ends.format(*self.control_interval)}; {len(self.a_ns)} pairs, "
                f"{self.left_out} of {2 * len(self.a_ns)} runs left out as disturbed" + (", so the change may be underestimated" if self.left_out > 0.6 * len(self.a_ns) else ""))


def _quantile(values: List[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def shift(one: List[float], other: List[float]) -> Tuple[float, Tuple[float, float]]:
    """The Hodges-Lehmann estimate of other - one, with the interval of Mann and Whitney's test; both are robust to outliers."""
    differences, count = sorted(b - a for a in one for b in other), len(one) * len(other)
    spread = math.sqrt(count * (len(one) + len(other) + 1) / 12)
    place = max(0, math.floor(count / 2 - statistics.NormalDist().inv_cdf(0.5 + LEVEL / 2) * spread))
    return statistics.median(differences), (differences[place], differences[-1 - place])


def _undisturbed(rounds: List[Tuple[int, int]]) -> List[List[Optional[float]]]:
    """Logarithms of the times of A and B, minus the level of the surrounding rounds; None for runs that something else on the machine slowed down. Their distance above
    the lower quartile exceeds 8 times the quartile's distance from the lowest tenth, and 5 %. A and B share this limit."""
    logs = [[math.log(one) for one in times] for times in rounds]
    levels = [_quantile([one for times in logs[max(0, index - 2):index + 3] for one in times], 0.25) for index in range(len(logs))]
    sides = [[times[which] - level for times, level in zip(logs, levels)] for which in range(2)]
    quartiles = [_quantile(side, 0.25) for side in sides]
    around = [one - quartile for side, quartile in zip(sides, quartiles) for one in side]
    limit = _quantile(around, 0.25) + max(0.05, 8 * (_quantile(around, 0.25) - _quantile(around, 0.1)))
    return [[one if one - quartile <= limit else None for one in side] for side, quartile in zip(sides, quartiles)]


def _verdict(rounds: List[Tuple[int, int]], firsts: List[int], margin: float) -> AB:
    a, b = _undisturbed(rounds)
    halves = [firsts[:index].count(first) % 2 for index, first in enumerate(firsts)]
    kept = [[one for one in side if one is not None] for side in (a, b)]
    change, interval = shift(kept[0], kept[1])
    control, around = shift(*([one for one, half in zip(a, halves) if half == which and one is not None] for which in (0, 1)))
    value, low, high, *rest = (100 * math.expm1(one) for one in (change, *interval, control, *around))
    differs = around[0] > 0 or around[1] < 0
    verdict = "undecided" if differs else "same" if -margin < low and high < margin else "slower" if low > 0 else "faster" if high < 0 else "undecided"
    # intervals narrow with the root of the pairs: until 0 is outside, or until both ends are within the margin
    reach = [(value - low if value > 0 else high - value) / max(abs(value), 1e-9)]
    reach += [max((high - value) / (margin - value), (value - low) / (margin + value))] if abs(value) < margin else []
    needed = len(rounds) * max(1.2, min(reach) ** 2) if verdict == "undecided" and not differs else 0
    return AB(verdict, value, (low, high), rest[0], (rest[1], rest[2]), [one for one, _ in rounds], [one for _, one in rounds], 2 * len(rounds) - sum(map(len, kept)),
              margin, int(float(f"{needed:.1e}")) or None)


def ab(run_a: Callable[[], Any], run_b: Callable[[], Any], pairs: int = 60, *, margin: float = 2, warmup: int = 2, seed: Optional[int] = None, progress: bool = True,
       clock: Optional[Callable[[], int]] = None) -> AB:
    """Times run_a and run_b alternately, and reports whether B is slower: "slower by 3.9 [0.3, 7.7] %".

    run_a, run_b: functions without arguments that take 0.1 ms or more; accelerators are synchronised before and after each call
    pairs:  number of rounds, each B, A, B or A, B, A, in random order; the first run is not timed, so every timed run directly follows a run of the other side
    margin: in percent; "same" means that the whole interval is between -margin and margin
    warmup: untimed calls of each function; clock: a function that returns nanoseconds, instead of the machine's clock

    A run that takes far longer than the rest is left out; A and B share one cut-off. "slower" and "faster" need an interval that excludes 0 and exceeds the margin.
    Other intervals that exceed it are "undecided", and so is every result if A differs from itself. Ctrl-C after 12 pairs or more gives the verdict from these."""
    if not isinstance(pairs, int) or pairs < LEAST_PAIRS:
        raise ValueError(f"pairs: expected {LEAST_PAIRS} or more, not {pairs!r}: fewer cannot give a verdict")
    if not 0 <= margin < 100:
        raise ValueError(f"margin: expected percent from 0 to 100, not {margin!r}")
    for name, run in (("run_a", run_a), ("run_b", run_b)):
        if not callable(run):
            raise TypeError(f"{name}: expected a function, not {type(run).__name__}")
    accelerator = getattr(torch, "accelerator", None)  # torch 2.6
    device = torch.device("cuda") if torch.cuda.is_available() else accelerator.current_accelerator() if accelerator and accelerator.is_available() else torch.device("cpu")
    now, drawn, runs = clock or time.perf_counter_ns, random.Random(seed), (run_a, run_b)

    def time_of(run: Callable[[], Any]) -> int:
        synchronise(device)
        began = now()
        run()
        synchronise(device)
        return max(1, now() - began)
    for run in runs * warmup:
        run()
    rounds: List[Tuple[int, int]] = []
    firsts: List[int] = []
    shown = Progress("pairs", pairs) if progress else None
    try:
        while len(rounds) < pairs:
            if len(firsts) == len(rounds):
                firsts += drawn.sample([0, 0, 1, 1], 4)
            first = firsts[len(rounds)]
            time_of(runs[1 - first])
            spent = [time_of(runs[which]) for which in (first, 1 - first)]
            rounds.append((spent[first], spent[1 - first]))
            if shown:
                shown.say(len(rounds))
    except KeyboardInterrupt:
        if len(rounds) < LEAST_PAIRS:
            raise
        print(f"vlmprof.torch: stopped after {len(rounds)} of {pairs} pairs", file=sys.stderr)
    for name, side in zip(("run_a", "run_b"), zip(*rounds)):
        if statistics.median(side) < LEAST_NS:
            raise ValueError(f"{name} takes {statistics.median(side) / 1e3:.2g} us; calls of less than {LEAST_NS // 1000} us cannot be compared: let both functions loop, "
                             "such as: for _ in range(1000): step()")
    return _verdict(rounds, firsts, float(margin))
