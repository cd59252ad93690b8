"""vlmprof's result files, load trials and traces as pandas DataFrames.

    python3 -m vlmprof.results build/demo --png front.png
    python3 -m vlmprof.results --trace build/trace.json

A folder of result files (described by samples/result.schema.json) becomes two tables: one row for each configuration, one for each
sample. Printed: latency P50 and accuracy with its 95 % interval; * marks the front, where no other configuration of that data set is
both faster and at least as accurate. --png draws it. A folder of load trials becomes a row for each trial and one for each request. A trace
that `vlmprof run --profile --trace FILE` wrote becomes a table with a row for each operation, stage and step; printed: those with the most self
time, which is their own time without that of operations inside them.
"""
from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple, Union

try:
    import pandas as pd
except ImportError:
    pd = None

PathLike = Union[str, Path]
KNOBS = ["dataset_name", "tier", "top_k", "num_active_blocks"]
LATENCIES = ["T_total", "T_vision_total", "T_LLM_prefill", "T_LLM_decode", "TTFT", "T_decode_per_token"]  # ms
TRACED = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")
OF_SAMPLE = ["sample_id", "status", "accuracy", "pred", "actual_vision_tokens", "actual_text_tokens", "output_tokens"]


def _need_pandas() -> None:
    if pd is None:
        raise ImportError("tables need pandas: pip install pandas (or \"vlmprof[pandas]\"); without it vlmprof.run([\"report\", folder]) returns a dict")


def _files(folder: PathLike, schema: str) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """The folder's files of a schema. Others, such as reports and importance scores, are passed over. A result file without "schema" comes from an
    engine of its own (vlmprof help library) and counts as one of vlmprof sweep."""
    for path in sorted(Path(folder).glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:  # not JSON, or not UTF-8
            raise ValueError(f"{path}: {error}") from None
        if not isinstance(result, dict):
            continue
        own = "schema" not in result and isinstance(result.get("per_sample_results"), list)
        if str(result.get("schema", "vlmprof-sweep-" if own else "")).startswith(schema):
            yield path, result


def _median(values: Iterable[Any]) -> Optional[float]:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _complete(path: Path, result: Dict[str, Any]) -> Dict[str, Any]:
    """A result file of another engine with what vlmprof sweep writes in addition. Its interval of the accuracy is unknown."""
    if "schema" in result:
        return result
    rows = [row for row in result["per_sample_results"] if row.get("status", "ok") == "ok"]
    scores = [row["accuracy"] for row in rows if row.get("accuracy") is not None]
    return {"dataset_name": path.name.split("_imgsize")[0].split(".")[0], "tier": None, "top_k": None, "num_active_blocks": None, "num_ok": len(rows),
            "accuracy": sum(scores) / len(scores) if scores else None, **result, "accuracy_interval": None,
            "latency_stats": {name + "_p50": _median(row.get(name) for row in rows) for name in LATENCIES}}


def load(folder: PathLike) -> Tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of a folder: load_results of a sweep, load_trials of load trials. Raises FileNotFoundError for a folder with neither."""
    _need_pandas()
    return load_trials(folder) if next(_files(folder, "vlmprof-load-"), None) else load_results(folder)


def load_trials(folder: PathLike) -> Tuple[pd.DataFrame, pd.DataFrame]:
    """(trials, requests): a row for each trial of `vlmprof load`, a row for each of its requests.

    Columns are the file's own keys; members of an object have its name and a dot before theirs: summary.TTFT_p50. Lists are left out."""
    _need_pandas()
    trials, requests = [], []
    for path, result in _files(folder, "vlmprof-load-"):
        row = pd.json_normalize({key: value for key, value in result.items() if key not in ("requests", "provenance")}).iloc[0]
        trials.append({"file": path.name, **{key: value for key, value in row.items() if not isinstance(value, list)}})
        requests += [{"file": path.name, **request} for request in result.get("requests", [])]
    if not trials:
        raise FileNotFoundError(f"{folder}: there is no result file of vlmprof load in it")
    return pd.DataFrame(trials), pd.DataFrame(requests)


def load_results(folder: PathLike) -> Tuple[pd.DataFrame, pd.DataFrame]:
    """(configurations, samples): a row for each result file, a row for each sample of each file. Times are ms. What was not measured is NaN."""
    _need_pandas()
    configurations, samples = [], []
    for path, result in _files(folder, "vlmprof-sweep-"):
        result = _complete(path, result)
        knobs = {key: result[key] for key in KNOBS}
        low, high = result["accuracy_interval"] or (None, None)
        p50 = {name + "_p50": result["latency_stats"].get(name + "_p50") for name in LATENCIES}
        configurations.append({**knobs, "samples": result["num_ok"], **p50, "accuracy": result["accuracy"],
                               "accuracy_low": low, "accuracy_high": high, "file": path.name})
        for row in result["per_sample_results"]:
            samples.append({**knobs, **{key: row.get(key) for key in OF_SAMPLE + LATENCIES}})
    if not configurations:
        raise FileNotFoundError(f"{folder}: there is no result file of vlmprof sweep in it")
    configurations, samples = pd.DataFrame(configurations), pd.DataFrame(samples)
    measured = [name + "_p50" for name in LATENCIES] + ["accuracy", "accuracy_low", "accuracy_high"]
    configurations[measured] = configurations[measured].astype(float)
    samples[LATENCIES + ["accuracy"]] = samples[LATENCIES + ["accuracy"]].astype(float)
    return configurations, samples


def front(configurations: pd.DataFrame, latency: str = "T_total_p50") -> pd.DataFrame:
    """The configurations that no other one of their data set beats, by rising latency."""
    if not hasattr(configurations, "dropna"):
        raise TypeError(f"front needs the table of configurations, not {type(configurations).__name__}: front(vlmprof.load(folder)[0])")
    best, kept = {}, []  # the best accuracy of a data set so far
    ordered = configurations.dropna(subset=[latency, "accuracy"]).sort_values([latency, "accuracy"], ascending=[True, False])
    for index, row in ordered.iterrows():
        if row["accuracy"] > best.get(row["dataset_name"], float("-inf")):
            best[row["dataset_name"]] = row["accuracy"]
            kept.append(index)
    return configurations.loc[kept]


def draw_front(configurations: pd.DataFrame, path: PathLike) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    names = configurations["dataset_name"].unique()
    figure, panels = plt.subplots(1, len(names), figsize=(6 * len(names), 4.5), squeeze=False)
    for panel, name in zip(panels[0], names):
        points = configurations[configurations["dataset_name"] == name].dropna(subset=["T_total_p50", "accuracy"])
        low, high = points["accuracy"] - points["accuracy_low"], points["accuracy_high"] - points["accuracy"]
        panel.errorbar(points["T_total_p50"], points["accuracy"], yerr=[low, high], fmt="o", color="0.6", elinewidth=0.8,
                       label="configurations, 95 % interval")
        best = front(points)
        panel.plot(best["T_total_p50"], best["accuracy"], "o-", color="C0", zorder=3, label="front")
        for _, row in best.iterrows():
            panel.annotate(f"{row['tier'] or 'tokens'} k{row['top_k']} b{row['num_active_blocks']}", (row["T_total_p50"], row["accuracy"]),
                           xytext=(5, -12), textcoords="offset points", fontsize=8)
        panel.set(title=name, xlabel="T_total, P50 [ms]", ylabel="accuracy")
        panel.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def load_trace(path: PathLike) -> pd.DataFrame:
    """A row for each operation and annotation: name, where it ran, start, duration and self time [us], and its args. As in `vlmprof trace`, the
    time of a stage or step outside its operations is its own, and steps are named ProfilerStep*."""
    _need_pandas()
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows = [{"name": re.sub("^ProfilerStep#.*", "ProfilerStep*", event["name"]), "kind": event["cat"], "pid": event["pid"], "tid": event["tid"],
             "start_us": event["ts"], "duration_us": event["dur"], "args": event.get("args", {})}
            for event in events if event.get("ph") == "X" and event.get("cat") in TRACED and not event["name"].startswith("end of ProfilerStep#")]
    if not rows:
        raise ValueError(f"{path}: there is no operation in it")
    table = pd.DataFrame(rows).sort_values(["pid", "tid", "start_us", "duration_us"], ascending=[True, True, True, False], ignore_index=True)
    times = (table[["start_us", "duration_us"]] * 1000).round().astype("int64")  # ns: whole numbers, so that ends and starts that meet are equal
    self_ns, around, place = times["duration_us"].tolist(), [], None
    for index, (row, start, duration) in enumerate(zip(table.itertuples(), times["start_us"], times["duration_us"])):
        if place != (row.pid, row.tid):
            around, place = [], (row.pid, row.tid)
        while around and around[-1][1] <= start:
            around.pop()
        if around:
            self_ns[around[-1][0]] -= duration  # the innermost operation around this one
        around.append((index, start + duration))
    table["self_us"] = [ns / 1000 for ns in self_ns]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints and draws what vlmprof measured, from its files.")
    parser.add_argument("folder", nargs="?", help="result files of vlmprof sweep")
    parser.add_argument("--png", help="draws the front of accuracy and latency into this file")
    parser.add_argument("--trace", help="trace of vlmprof run --profile --trace: prints its operations")
    parser.add_argument("--top", type=int, default=5, help="operations to print (default %(default)s)")
    options = parser.parse_args()
    if not options.folder and not options.trace:
        parser.error("nothing to load: give a folder of result files, or --trace FILE")
    if options.png and not options.folder:
        parser.error("--png draws result files: give their folder")
    if pd is None:
        sys.exit("load_results.py: pandas is not installed: pip install pandas matplotlib")
    pd.set_option("display.width", 160, "display.max_columns", 20, "display.max_rows", None)
    try:
        if options.folder:
            configurations, samples = load_results(options.folder)
            table = configurations[KNOBS + ["samples", "T_total_p50", "TTFT_p50", "accuracy", "accuracy_low", "accuracy_high"]].copy()
            table.insert(0, "front", ["*" if index in front(configurations).index else "" for index in table.index])
            print(table.sort_values(["dataset_name", "T_total_p50"]).round(3).to_string(index=False))
            print(f"{len(configurations)} configurations, {len(samples)} samples; times are ms")
            if options.png:
                draw_front(configurations, options.png)
                print(f"front drawn: {options.png}")
        if options.trace:
            operations = load_trace(options.trace)
            sums = operations.groupby(["kind", "name"]).agg(calls=("name", "size"), total_us=("duration_us", "sum"), self_us=("self_us", "sum"))
            print(sums.sort_values("self_us", ascending=False).head(options.top).to_string(float_format="%.3f"))
            print(f"{len(operations)} operations")
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"load_results.py: {error}")


if __name__ == "__main__":
    main()
