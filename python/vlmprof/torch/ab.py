"""Is one of two ways to run the same thing slower? Alternating runs, with a control of the first against itself."""
from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

import torch

from .timing import synchronise

LEVEL = 0.998  # of the intervals: 20 comparisons of equal things should find nothing


@dataclass
class AB:
    """The result of ab. Changes are B's time relative to A's, in percent; intervals have the confidence level LEVEL."""
    verdict: str  # "slower", "faster", "no difference" or "unclear", if A differs from itself
    change_percent: float
    interval: Tuple[float, float]
    control_percent: float  # of A's second runs against its first
    control_interval: Tuple[float, float]
    a_ns: List[int]
    b_ns: List[int]
    again_ns: List[int]  # A's second runs
    left_out: int  # runs that are in no number above: something else on the machine slowed them

    def __str__(self) -> str:
        by = f"{self.verdict} by {abs(self.change_percent):.1f} [{{:.1f}}, {{:.1f}}] %".format(*sorted(map(abs, self.interval)))
        words = {"slower": by, "faster": by}.get(self.verdict, f"{self.verdict}: {self.change_percent:+.1f} [{self.interval[0]:.1f}, {self.interval[1]:.1f}] %")
        return f"{words}; A against itself: {self.control_percent:+.1f} [{self.control_interval[0]:.1f}, {self.control_interval[1]:.1f}] %; {len(self.a_ns)} pairs, {self.left_out} runs disturbed"


def _quantile(values: List[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def shift(one: List[float], other: List[float]) -> Tuple[float, Tuple[float, float]]:
    """The Hodges-Lehmann estimate of other - one, with the interval of Mann and Whitney's test: some wild values move neither.

    >>> shift([0.0] * 10 + [9.0], [1.0] * 11)
    (1.0, (1.0, 1.0))
    """
    differences, count = sorted(b - a for a in one for b in other), len(one) * len(other)
    spread = math.sqrt(count * (len(one) + len(other) + 1) / 12)
    place = max(0, math.floor(count / 2 - statistics.NormalDist().inv_cdf(0.5 + LEVEL / 2) * spread))
    return statistics.median(differences), (differences[place], differences[-1 - place])


def _undisturbed(rounds: List[List[float]]) -> List[List[float]]:
    """Logarithms of the times of A, B and A again, less the level of the rounds around them, without runs that something else on the machine slowed: those
    eight times as far above their lower quartile as that is above the lowest tenth. The limit is the same for A and B."""
    logs = [[math.log(one) for one in times] for times in rounds]
    levels = [_quantile([one for times in logs[max(0, index - 2):index + 3] for one in times], 0.25) for index in range(len(logs))]
    a, b, again = ([times[which] - level for times, level in zip(logs, levels)] for which in range(3))
    quartiles = [_quantile(a + again, 0.25), _quantile(b, 0.25)]
    around = [one - quartiles[0] for one in a + again] + [one - quartiles[1] for one in b]
    limit = _quantile(around, 0.25) + 8 * (_quantile(around, 0.25) - _quantile(around, 0.1))
    return [[one for one in times if one - quartile <= limit] or times for times, quartile in zip((a, b, again), (*quartiles, quartiles[0]))]


def ab(run_a: Callable[[], Any], run_b: Callable[[], Any], pairs: int = 60, *, warmup: int = 2, seed: Optional[int] = None,
       clock: Optional[Callable[[], int]] = None) -> AB:
    """Times run_a and run_b alternately, and says whether B is slower: "slower by 3.9 [0.3, 7.7] %".

    run_a, run_b: functions without arguments; accelerators are synchronised before and after each call
    pairs:  rounds, each of A, B and A again, in an order drawn anew; B is compared with both runs of A
    warmup: calls of each that are not timed; clock: a function that returns ns

    Runs that something else on the machine slowed are left out. A verdict needs an interval that has no 0 in it; if A differs from its own repetitions, there
    is none."""
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
    a, b, again = _undisturbed([list(map(float, one)) for one in zip(*times)])
    (change, interval), (control, around) = shift(a + again, b), shift(a, again)
    low, high, *rest = (100 * math.expm1(value) for value in (*interval, change, control, *around))
    verdict = "unclear" if around[0] > 0 or around[1] < 0 else "slower" if low > 0 else "faster" if high < 0 else "no difference"
    return AB(verdict, rest[0], (low, high), rest[1], (rest[2], rest[3]), times[0], times[1], times[2], 3 * pairs - len(a + b + again))
