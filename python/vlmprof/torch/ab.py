"""Two ways to run the same thing: is one slower? Alternating runs, with a control of the first against itself."""
from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

import torch

from .timing import synchronise

LEVEL = 0.998  # of the intervals: of 20 comparisons of equal things, none differs in 96 of 100 cases


@dataclass
class AB:
    """What ab found. Changes are of B's time against A's, in percent of A's; intervals have the level LEVEL."""
    verdict: str  # "slower", "faster", "no difference" or "unclear", if A differs from itself
    change_percent: float
    interval: Tuple[float, float]
    control_percent: float  # of A's second runs against its first
    control_interval: Tuple[float, float]
    a_ns: List[int]
    b_ns: List[int]
    again_ns: List[int]  # A's second runs
    left_out: int  # rounds that are in no number above: something else ran in them

    def __str__(self) -> str:
        by = f"{self.verdict} by {abs(self.change_percent):.1f} [{{:.1f}}, {{:.1f}}] %".format(*sorted(map(abs, self.interval)))
        words = {"slower": by, "faster": by}.get(self.verdict, f"{self.verdict}: {self.change_percent:+.1f} [{self.interval[0]:.1f}, {self.interval[1]:.1f}] %")
        return f"{words}; A against itself: {self.control_percent:+.1f} [{self.control_interval[0]:.1f}, {self.control_interval[1]:.1f}] %; {len(self.a_ns)} pairs, {self.left_out} disturbed"


def shift(values: List[float]) -> Tuple[float, Tuple[float, float]]:
    """The Hodges-Lehmann estimate of differences, with the interval of Wilcoxon's signed ranks: some wild values move neither.

    >>> shift([0.0] * 10 + [1.0])[0], shift([1.0] * 20)
    (0.0, (1.0, (1.0, 1.0)))
    """
    count = len(values)
    means = sorted((values[i] + values[j]) / 2 for i in range(count) for j in range(i, count))
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    place = max(0, math.floor(count * (count + 1) / 4 - statistics.NormalDist().inv_cdf(0.5 + LEVEL / 2) * spread))
    return statistics.median(means), (means[place], means[-1 - place])


def ab(run_a: Callable[[], Any], run_b: Callable[[], Any], pairs: int = 60, *, warmup: int = 2, seed: Optional[int] = None,
       clock: Optional[Callable[[], int]] = None) -> AB:
    """Times run_a and run_b in turns, and says whether B is slower: "slower by 3.9 [0.3, 7.7] %".

    run_a, run_b: functions without arguments; accelerators are synchronised before and after each call
    pairs:  rounds, each of A, B and A again, in an order drawn anew; B is compared with the mean of its round's two runs of A
    warmup: calls of each that are not timed; clock: a function that returns ns

    Rounds whose times differ three times as much as usual are left out, whichever run was slow. A verdict needs an interval that has no 0 in it; if A
    differs from its own repetitions, there is none."""
    if not isinstance(pairs, int) or pairs < 12:
        raise ValueError(f"pairs: expected 12 or more, not {pairs!r}: fewer cannot give a verdict")
    for name, run in (("run_a", run_a), ("run_b", run_b)):
        if not callable(run):
            raise TypeError(f"{name}: expected a function, not {type(run).__name__}")
    accelerator = getattr(torch, "accelerator", None)  # torch 2.6
    device = torch.device("cuda") if torch.cuda.is_available() else accelerator.current_accelerator() if accelerator and accelerator.is_available() else torch.device("cpu")
    now, drawn = clock or time.perf_counter_ns, random.Random(seed)

    def time_of(run: Callable[[], Any]) -> int:
        synchronise(device)
        began = now()
        run()
        synchronise(device)
        return max(1, now() - began)
    runs = [run_a, run_b, run_a]
    times: List[List[int]] = [[], [], []]
    for round_index in range(-warmup, pairs):
        for which in drawn.sample(range(3), 3):
            spent = time_of(runs[which])
            if round_index >= 0:
                times[which].append(spent)
    spreads = [math.log(max(one) / min(one)) for one in zip(*times)]  # of a round, whichever run was slow
    calm = [one for one, spread in zip(zip(*times), spreads) if spread <= 3 * statistics.median(spreads)]
    (change, interval), (control, around) = shift([math.log(b) - math.log(a * again) / 2 for a, b, again in calm]), shift([math.log(again / a) for a, _, again in calm])
    low, high, *rest = (100 * math.expm1(value) for value in (*interval, change, control, *around))
    verdict = "unclear" if around[0] > 0 or around[1] < 0 else "slower" if low > 0 else "faster" if high < 0 else "no difference"
    return AB(verdict, rest[0], (low, high), rest[1], (rest[2], rest[3]), times[0], times[1], times[2], pairs - len(calm))
