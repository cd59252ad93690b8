"""Figures from result files, for a paper: Pareto front, stages, effects of knobs.

    python -m vlmprof.plots results more -o figures --format png     # figures/front.png, stages.png, effects.png (default: pdf)

Needs pandas and matplotlib. Each function takes the tables of vlmprof.results.load and returns a matplotlib figure;
policy takes the output of `vlmprof policy --json`."""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

from . import results

if TYPE_CHECKING:
    import pandas as pd

STYLE = {"font.size": 8, "axes.titlesize": 8, "axes.spines.top": False, "axes.spines.right": False,
         "legend.frameon": False, "figure.constrained_layout.use": True, "pdf.fonttype": 42}
COLUMN_INCHES = 3.4  # of a paper with two columns
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#8c8c8c", "#f0e442")  # as on the page
STAGES = {"preprocess": 5, "vit": 0, "connector": 2, "embed": 7, "prefill": 3, "head": 4, "decode": 1,
          "T_vision_total": 0, "T_LLM_prefill": 3, "T_LLM_decode": 1}  # others are grey
POLICIES = {"static": (1, "D"), "mixture": (0, "o"), "lookup": (2, "s"), "oracle": (4, "^")}


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("figures need matplotlib: pip install matplotlib (or \"vlmprof[pandas]\")") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    return plt


def _names(configurations: pd.DataFrame) -> List[str]:
    return [name.replace(", top_k ", " k").replace(", num_active_blocks ", " b") for name in results.names_of(configurations)]


def _legend(figure: Any, panel: Any, columns: int) -> None:
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncol=columns, fontsize=7, columnspacing=0.8, handlelength=1.2)


def _label(panel: Any, points: List[Any]) -> None:
    """Labels each (x, y, name) of a front at its upper left, where there are no configurations, above the previous label."""
    panel.figure.canvas.draw()  # only now is it known where things are
    unit, right, high = panel.figure.dpi / 72, 0.0, 0.0
    for x, y, name in points:
        at_x, at_y = panel.transData.transform((x, y)) / unit
        low = max(at_y + 2, high + 1) if at_x - 5 - 4.5 * len(name) < right else at_y + 2
        right, high = at_x - 5, low + 8
        if high < panel.bbox.y1 / unit:
            panel.annotate(name, (x, y), xytext=(-5, low - at_y), textcoords="offset points", fontsize=7, ha="right",
                           bbox={"fc": "w", "ec": "none", "pad": 0.3, "alpha": 0.7}, zorder=4)


def front(configurations: pd.DataFrame, latency: str = "T_total_p50", figure: Any = None) -> Any:
    """Accuracy against latency, with a panel for each data set that has both. The front is drawn as steps, and its members are named by their knobs. figure, here and
    below: the matplotlib figure or subfigure to draw in."""
    plt, names = _pyplot(), dict(zip(configurations.index, _names(configurations)))
    known = configurations.dropna(subset=[latency, "accuracy"])
    sets, drawn = list(known["dataset_name"].unique()), []
    with plt.rc_context(STYLE):
        figure = figure or plt.figure(figsize=(1.4 * COLUMN_INCHES * max(len(sets), 1), 2.8))
        if not sets:
            figure.text(0.5, 0.5, "no configuration has a latency and an accuracy", ha="center")
            return figure
        for panel, dataset in zip(figure.subplots(1, len(sets), squeeze=False)[0], sets):
            points = known[known["dataset_name"] == dataset]
            best = results.front(points, latency)
            for part, at, mark, label in ((points.drop(best.index), 0, "o", "other configurations"), (best, 1, "D", "Pareto front")):
                ends = [(sign * (part[end] - part["accuracy"])).clip(lower=0).fillna(0) for sign, end in ((-1, "accuracy_low"), (1, "accuracy_high"))]
                panel.errorbar(part[latency], part["accuracy"], yerr=ends, fmt=mark, ms=4, color=COLOURS[at], elinewidth=0.6, alpha=0.6 + 0.4 * at, label=label)
            panel.set(title=dataset, xlabel=latency.replace("_p50", ", median [ms]"), ylabel="accuracy", ymargin=0.12)
            (left, right), own = panel.get_xlim(), [names[index] for index in best.index]
            panel.step([*best[latency], right], [*best["accuracy"], best["accuracy"].iloc[-1]], where="post", color=COLOURS[1], lw=1.2)
            if max(map(len, own)) > 20:  # numbers at the points, the names below
                panel.legend([panel.plot([], [], " ")[0] for _ in own], [f"{number}  {name}" for number, name in enumerate(own, 1)], loc="upper center", fontsize=7,
                             bbox_to_anchor=(0.5, -0.2), ncol=1 + (len(own) > 4), handlelength=0)
                own = [str(number) for number in range(1, len(own) + 1)]
            share = min(0.6, (5 * len(own[0]) + 8) / (figure.bbox.width / len(sets) / figure.dpi * 72 - 36))  # of the panel, for its name
            panel.set_xlim(left - (right - left) * share / (1 - share), right)
            panel.set_xticks([tick for tick in panel.get_xticks() if 0 <= tick <= right])
            drawn.append((panel, list(zip(best[latency], best["accuracy"], own))))
        _legend(figure, panel, 2)
        for each in drawn:
            _label(*each)
    return figure


def stages(configurations: pd.DataFrame, samples: pd.DataFrame, figure: Any = None) -> Any:
    """The mean time of each stage, with a bar for each configuration, the fastest at the top."""
    plt = _pyplot()
    kinds = {name: STAGES.get(name[6:], 6) for name in map(str, samples.columns) if name.startswith("stage_")}
    kinds = kinds or {name: colour for name, colour in STAGES.items() if name in samples.columns}
    names = dict(zip(configurations["file"], _names(configurations)))
    means = samples[samples["file"].isin(names)].groupby("file")[list(kinds)].mean().fillna(0)
    total = means.sum(axis=1).sort_values(ascending=False)
    means = means.loc[total.index]
    with plt.rc_context(STYLE):
        figure = figure or plt.figure(figsize=(COLUMN_INCHES * 1.5, 1.2 + 0.22 * len(means)))
        panel, left = figure.subplots(), 0 * total
        if not total.max() > 0:
            panel.text(0.5, 0.5, "no sample has stage times", ha="center", transform=panel.transAxes)
            return figure
        for colour in dict.fromkeys([*STAGES.values(), 6]):
            own = [name for name, kind in kinds.items() if kind == colour]
            seen = [name.replace("stage_", "") for name in own if means[name].max() >= 0.005 * total.max()]
            bars = panel.barh(range(len(means)), means[own].sum(axis=1), left=left, color=COLOURS[colour], height=0.7,
                              label=", ".join(seen))  # the others are too thin to be seen
            left = left + means[own].sum(axis=1)
        panel.bar_label(bars, [f"{value:.1f}" for value in total], padding=3, fontsize=7)
        panel.set_yticks(range(len(means)), [names[file] for file in means.index])
        panel.set(xlabel="mean time of a request [ms]", xmargin=0.12)
        _legend(figure, panel, 3)
    return figure


def effect_table(configurations: pd.DataFrame, latency: str = "T_total_p50") -> pd.DataFrame:
    """For each pair of values of a knob, over the configurations that do not differ otherwise: the ratio of the latencies (geometric mean) and the difference of the
    accuracies in points."""
    pandas = results.need_pandas()
    knobs, rows = results.knobs_of(configurations), []
    for knob in knobs:
        others = ["dataset_name", *(name for name in knobs if name != knob)]
        values = configurations.groupby(knob, dropna=False)[latency].mean()  # numbers in their order, words by latency
        is_number = pandas.api.types.is_numeric_dtype(configurations[knob])
        order = (values if is_number else values.sort_values()).index.tolist()
        for low, high in zip(order, order[1:]):
            ends = [configurations[configurations[knob] == value] for value in (low, high)]
            pairs = ends[0].merge(ends[1], on=others, suffixes=("", " then"))
            if len(pairs):
                ratio = (pairs[latency + " then"] / pairs[latency]).prod() ** (1 / len(pairs))
                step = " to ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in (low, high))
                rows.append({"knob": knob, "step": step, "ratio": float(ratio), "pairs": len(pairs),
                             "points": 100 * float((pairs["accuracy then"] - pairs["accuracy"]).mean())})
    return pandas.DataFrame(rows, columns=["knob", "step", "ratio", "points", "pairs"])


def effects(configurations: pd.DataFrame, latency: str = "T_total_p50") -> Any:
    """The cost in time and the gain in accuracy of each step of a knob; one colour per knob."""
    plt = _pyplot()
    table = effect_table(configurations, latency)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(COLUMN_INCHES * 2, 0.9 + 0.26 * max(len(table), 1)), sharey=True)
        colours = [COLOURS[number % 8] for number in table.groupby("knob", sort=False).ngroup()]
        for panel, values, title in zip(panels, (100 * (table["ratio"] - 1), table["points"]), (latency.replace("_p50", ", median [%]"), "accuracy [points]")):
            bars = panel.barh(table["knob"] + ": " + table["step"], values, color=colours, height=0.6)
            panel.bar_label(bars, [f"{value:+.1f}" for value in values], padding=3, fontsize=7)
            panel.axvline(0, color="0.3", lw=0.6)
            panel.update_datalim(((-1, 0), (1, 0)))  # a difference of rounding is no picture
            panel.set(xlabel=title, xmargin=0.25)
        panels[0].invert_yaxis()
    return figure


def policy(document: Union[results.PathLike, Dict[str, Any]], figure: Any = None) -> Any:
    """Accuracy over the budgets from the result of `vlmprof policy --json` (a file, or the value of vlmprof.run(["policy", folder])); with --budget_ms, points with
    95 % intervals. Policies that exceed their budget are left out."""
    found = document if isinstance(document, dict) else json.loads(Path(document).read_text(encoding="utf-8"))
    if found.get("schema") != "vlmprof-policy-1":
        raise ValueError("policy: expected the output of vlmprof policy --json")
    plt, is_curve = _pyplot(), "curve" in found
    lines: Dict[str, List[Any]] = {}
    for part in found.get("curve", [found]):
        for row in part["policies"]:
            points, y = lines.setdefault(row["name"], []), row["accuracy"]
            if row["is_within_budget"] and row["mean_ms"] is not None:  # luck is no policy
                low, high = row["accuracy_interval"] or (y, y)
                points.append((part["budget_ms"] if is_curve else row["mean_ms"], y, y - low, high - y))
    with plt.rc_context(STYLE):
        figure = figure or plt.figure(figsize=(1.4 * COLUMN_INCHES, 2.8))
        panel = figure.subplots()
        for number, (name, points) in enumerate((name, points) for name, points in lines.items() if points):
            x, y, *ends = zip(*points)
            colour, mark = POLICIES.get(name, ((number + 7) % 8, "osD^v<>P*X"[number % 10]))
            panel.errorbar(x, y, yerr=None if is_curve else ends, fmt=mark + "-" * is_curve, ms=4, lw=1, label=name,
                           color=COLOURS[colour], drawstyle="steps-post" if name == "static" else "default")
        panel.set(xlabel=f"mean {found['latency']}{' at most' * is_curve} [ms]", ylabel="accuracy")
        _legend(figure, panel, 4)
    return figure


def draw(folders: Sequence[results.PathLike], output: results.PathLike, ending: str = "pdf") -> List[Path]:
    """Draws the figures of folders of result files; returns the names of the files."""
    configurations, samples = results.load(*folders)
    Path(output).mkdir(parents=True, exist_ok=True)
    figures = {"front": front(configurations), "stages": stages(configurations, samples), "effects": effects(configurations)}
    for name, figure in figures.items():
        figure.savefig(Path(output) / f"{name}.{ending}", dpi=200)
        _pyplot().close(figure)
    return [Path(output) / f"{name}.{ending}" for name in figures]


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vlmprof.plots", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="result files of vlmprof sweep")
    parser.add_argument("-o", "--output", default="figures", help="folder for the figures (default %(default)s)")
    parser.add_argument("--format", choices=("pdf", "png", "svg"), default="pdf")
    options = parser.parse_args(arguments)
    try:
        print(*draw(options.folders, options.output, options.format), sep="\n")
    except (ImportError, OSError, ValueError) as error:
        print(f"vlmprof.plots: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
