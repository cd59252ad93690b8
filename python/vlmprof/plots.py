"""Figures of result files, for a paper: Pareto front, stages, effects of knobs.

    python -m vlmprof.plots results -o figures              # figures/front.pdf, stages.pdf, effects.pdf
    python -m vlmprof.plots results -o figures --format png --only front

Needs pandas and matplotlib. Each function takes the tables of vlmprof.results.load and returns a matplotlib figure;
policy takes what `vlmprof policy --json` printed."""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import results

if TYPE_CHECKING:
    import pandas as pd

STYLE = {"font.size": 8, "axes.titlesize": 8, "axes.spines.top": False, "axes.spines.right": False,
         "legend.frameon": False, "figure.constrained_layout.use": True, "pdf.fonttype": 42}
COLUMN_INCHES = 3.4  # of a paper with two columns
PARTS = ("T_vision_total", "T_LLM_prefill", "T_LLM_decode")


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError("figures need matplotlib: pip install matplotlib (or \"vlmprof[pandas]\")") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    return plt


def front(configurations: pd.DataFrame, latency: str = "T_total_p50") -> Any:
    """Accuracy against latency, a panel for each data set; the front as steps, its members named by their knobs."""
    plt = _pyplot()
    sets = list(configurations["dataset_name"].unique())
    names = dict(zip(configurations.index, results.names_of(configurations)))
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(sets), figsize=(1.4 * COLUMN_INCHES * len(sets), 2.4), squeeze=False)
        for panel, dataset in zip(panels[0], sets):
            points = configurations[configurations["dataset_name"] == dataset].dropna(subset=[latency, "accuracy"])
            if not len(points):
                panel.text(0.5, 0.5, "no configuration has a latency and an accuracy", ha="center",
                           transform=panel.transAxes)
                continue
            ends = (points["accuracy"] - points["accuracy_low"], points["accuracy_high"] - points["accuracy"])
            panel.errorbar(points[latency], points["accuracy"], yerr=[end.clip(lower=0).fillna(0) for end in ends],
                           fmt="o", ms=3, color="0.65", elinewidth=0.6, zorder=1, label="configurations, 95 % interval")
            best = results.front(points, latency)
            panel.step([*best[latency], points[latency].max()], [*best["accuracy"], best["accuracy"].iloc[-1]],
                       where="post", color="C0", lw=1, zorder=2)
            panel.plot(best[latency], best["accuracy"], "o", ms=4, color="C0", zorder=3, label="Pareto front")
            for number, (index, row) in enumerate(best.iterrows(), 1):  # names are long and points close
                panel.annotate(str(number), (row[latency], row["accuracy"]), xytext=(-4, 3), textcoords="offset points",
                               fontsize=6, ha="right", zorder=4)
                panel.plot([], [], " ", label=f"{number}: {names[index]}")
            panel.set(title=dataset, xlabel=f"{latency.replace('_p50', '')}, median [ms]", ylabel="accuracy")
            panel.margins(x=0.12)
            panel.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=6, handlelength=1)
    return figure


def stages(configurations: pd.DataFrame, samples: pd.DataFrame) -> Any:
    """The mean time of each stage, a bar for each configuration, the fastest on top."""
    plt = _pyplot()
    columns = [name for name in samples.columns if str(name).startswith("stage_")]
    columns = columns or [name for name in PARTS if name in samples.columns]
    means = samples.groupby("file")[columns].mean()
    names = dict(zip(configurations["file"], results.names_of(configurations)))
    means = means.loc[means.sum(axis=1).sort_values(ascending=False).index]
    total = means.sum(axis=1).max()
    shown = [name for name in columns if means[name].max() >= 0.01 * total]  # the others are too thin to be seen
    with plt.rc_context(STYLE):
        figure, panel = plt.subplots(figsize=(COLUMN_INCHES * 1.5, 0.9 + 0.22 * len(means)))
        if not shown:
            panel.text(0.5, 0.5, "no sample has times of stages", ha="center", transform=panel.transAxes)
            return figure
        left = [0.0] * len(means)
        for number, column in enumerate(shown):
            values = means[column].fillna(0).tolist()
            panel.barh(range(len(means)), values, left=left, color=plt.get_cmap("tab10")(number % 10), height=0.7,
                       label=str(column).replace("stage_", "").replace("_", " "))
            left = [one + more for one, more in zip(left, values)]
        panel.set_yticks(range(len(means)), [names.get(file, file) for file in means.index])
        panel.set(xlabel="mean time of a request [ms]")
        panel.legend(loc="upper center", bbox_to_anchor=(0.4, -0.35 if len(means) < 6 else -0.18), ncol=4, fontsize=6)
    return figure


def effect_table(configurations: pd.DataFrame, latency: str = "T_total_p50") -> pd.DataFrame:
    """For each two values of a knob, over the configurations that differ in nothing else: the ratio of the latencies
    (geometric mean) and the difference of the accuracies in points.

    >>> import pandas
    >>> table = pandas.DataFrame({"dataset_name": "a", "tier": ["low", "high"], "T_total_p50": [10.0, 20.0]})
    >>> table["accuracy"] = [0.5, 0.6]
    >>> table.attrs["settings"] = ["dataset_name", "tier"]
    >>> effect_table(table).round(3).to_dict("records")
    [{'knob': 'tier', 'step': 'low to high', 'ratio': 2.0, 'points': 10.0, 'pairs': 1}]
    """
    pandas = results.need_pandas()
    knobs, rows = results.knobs_of(configurations), []
    for knob in knobs:
        others = ["dataset_name", *(name for name in knobs if name != knob)]
        values = configurations.groupby(knob, dropna=False)[latency].mean()  # numbers in their order, words by latency
        is_number = pandas.api.types.is_numeric_dtype(configurations[knob])
        order = (values if is_number else values.sort_values()).index.tolist()
        for low, high in zip(order, order[1:]):
            pairs = [(a, b) for _, group in configurations.groupby(others, dropna=False)
                     for _, a in group[group[knob] == low].iterrows() for _, b in group[group[knob] == high].iterrows()]
            if pairs:
                ratio = pandas.Series([b[latency] / a[latency] for a, b in pairs])
                points = pandas.Series([100 * (b["accuracy"] - a["accuracy"]) for a, b in pairs])
                rows.append({"knob": knob, "step": f"{low} to {high}", "ratio": float(ratio.prod() ** (1 / len(ratio))),
                             "points": float(points.mean()), "pairs": len(pairs)})
    return pandas.DataFrame(rows, columns=["knob", "step", "ratio", "points", "pairs"])


def effects(configurations: pd.DataFrame, latency: str = "T_total_p50") -> Any:
    """What each step of a knob costs in time and buys in accuracy; knobs in colours."""
    plt = _pyplot()
    table = effect_table(configurations, latency)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(COLUMN_INCHES * 2, 0.9 + 0.26 * max(len(table), 1)), sharey=True)
        labels = [f"{row['knob']}: {row['step']}" for _, row in table.iterrows()]
        knobs: Dict[str, int] = {knob: i for i, knob in enumerate(table["knob"].unique())}
        colours = [plt.get_cmap("tab10")(knobs[knob] % 10) for knob in table["knob"]]
        for panel, values, title in ((panels[0], 100 * (table["ratio"] - 1),
                                      f"{latency.replace('_p50', '')}, median [%]"),
                                     (panels[1], table["points"], "accuracy [points]")):
            panel.barh(range(len(table)), values, color=colours, height=0.6)
            panel.axvline(0, color="0.3", lw=0.6)
            for place, value in enumerate(values):
                panel.annotate(f"{value:+.1f}", (value, place), xytext=(3 if value >= 0 else -3, 0),
                               textcoords="offset points",
                               ha="left" if value >= 0 else "right", va="center", fontsize=6)
            panel.margins(x=0.25)
            if not len(values) or max(map(abs, values)) < 0.5:
                panel.set_xlim(-1, 1)  # a difference of rounding is no picture
            panel.set(xlabel=title)
        panels[0].set_yticks(range(len(table)), labels)
        panels[0].invert_yaxis()
    return figure


def policy(document: Union[results.PathLike, Dict[str, Any]]) -> Any:
    """What `vlmprof policy --json` found, a file or what vlmprof.run(["policy", folder]) returned: accuracy over the
    budgets; with --budget_ms points with 95 % intervals. Policies beyond their budget are left out."""
    found = document if isinstance(document, dict) else json.loads(Path(document).read_text(encoding="utf-8"))
    if found.get("schema") != "vlmprof-policy-1":
        raise ValueError("policy: expected the output of vlmprof policy --json")
    plt, is_curve = _pyplot(), "curve" in found
    lines: Dict[str, List[Any]] = {}
    for part in found.get("curve", found.get("conditions", [found])):
        for row in part["policies"]:
            name = f"{row['name']}, {found['condition']}={part['value']}" if part.get("value") else row["name"]
            points, y = lines.setdefault(name, []), row["accuracy"]
            if row["is_within_budget"] and row["mean_ms"] is not None:  # luck is no policy
                low, high = row["accuracy_interval"] or (y, y)
                points.append((part["budget_ms"] if is_curve else row["mean_ms"], y, y - low, high - y))
    with plt.rc_context(STYLE):
        figure, panel = plt.subplots(figsize=(1.4 * COLUMN_INCHES, 2.4))
        for number, (name, points) in enumerate((name, points) for name, points in lines.items() if points):
            x, y, *ends = zip(*points)
            panel.errorbar(x, y, yerr=None if is_curve else ends, fmt="osD^v<>P*X"[number % 10] + "-" * is_curve, ms=4,
                           mfc="none", lw=1, drawstyle="steps-post" if name == "static" else "default", label=name)
        panel.set(xlabel=f"mean {found['latency']}{' at most' * is_curve} [ms]", ylabel="accuracy")
        panel.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=6)
    return figure


FIGURES = ("front", "stages", "effects")


def draw(folder: results.PathLike, output: results.PathLike, ending: str = "pdf",
         only: Optional[List[str]] = None) -> List[Path]:
    """Draws the figures of a folder of result files; returns their files."""
    configurations, samples = results.load(folder)
    Path(output).mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in only or FIGURES:
        figure = stages(configurations, samples) if name == "stages" else globals()[name](configurations)
        path = Path(output) / f"{name}.{ending}"
        figure.savefig(path, dpi=200)
        _pyplot().close(figure)
        drawn.append(path)
    return drawn


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vlmprof.plots", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="result files of vlmprof sweep")
    parser.add_argument("-o", "--output", default="figures", help="folder of the figures (default %(default)s)")
    parser.add_argument("--format", choices=("pdf", "png", "svg"), default="pdf")
    parser.add_argument("--only", nargs="+", choices=FIGURES, help="only these figures")
    options = parser.parse_args(arguments)
    try:
        for path in draw(options.folder, options.output, options.format, options.only):
            print(path)
    except (ImportError, OSError, ValueError) as error:
        print(f"vlmprof.plots: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
