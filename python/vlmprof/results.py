"""vlmprof's result files and traces as pandas DataFrames.

    configurations, samples = vlmprof.load("build/demo")

A folder of result files (samples/result.schema.json) becomes two tables: one row for each configuration, one for each
sample. The columns are what the files have: settings, which come before the accuracy, every P50 of latency, and the
fields of the samples' records. A knob is a setting that differs between the files. vlmprof.plots draws them."""
from __future__ import annotations

import gzip
import itertools
import json
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple, Union

if TYPE_CHECKING:
    import pandas as pd

PathLike = Union[str, Path]
TRACED = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")
OURS = re.compile("T_|TTFT|stage_|accuracy(_low|_high)?$|(samples|file|id|dataset_name)$")
BOOKKEEPING = {"schema", "plan", "status", "num_ok", "num_failed", "num_missing", "data_hash", "latency_stats",
               "per_sample_results"}  # no settings


def need_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("tables need pandas: pip install pandas (or \"vlmprof[pandas]\"); without it "
                          "vlmprof.run([\"report\", folder]) returns a dict") from None
    return pandas


def files_of(folder: PathLike) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """A folder's result files, or one file. Other JSON, such as reports, is passed over. A file without "schema" comes
    from an engine of its own (vlmprof help library) and counts as a result file too."""
    folder = Path(folder)
    for path in [folder] if folder.is_file() else sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:  # not JSON, or not UTF-8
            raise ValueError(f"{path}: {error}") from None
        if isinstance(result, dict) and isinstance(result.get("per_sample_results"), list):
            if str(result.get("schema", "vlmprof-sweep-")).startswith("vlmprof-sweep-"):
                yield path, result


def _complete(path: Path, result: Dict[str, Any]) -> Dict[str, Any]:
    """A result file of another engine with what vlmprof sweep writes in addition; its interval is unknown."""
    if "schema" in result:
        return result
    rows = [row for row in result["per_sample_results"] if row.get("status", "ok") == "ok"]
    known = {key: [row[key] for row in rows if isinstance(row.get(key), (int, float))]
             for key in sorted({key for row in rows for key in row if re.match("T_|TTFT|accuracy$", key)})}
    scores = known.pop("accuracy", [])
    return {"dataset_name": path.name.split("_imgsize")[0].split(".")[0], "num_ok": len(rows),
            "latency_stats": {f"{key}_p50": statistics.median(values) for key, values in known.items() if values},
            **{key: value for key, value in result.items() if key != "accuracy"}, "accuracy_interval": None,
            "accuracy": result.get("accuracy", sum(scores) / len(scores) if scores else None)}


def _plain(value: Any) -> Any:
    """A number or text as it is; any other value as JSON, and a text that could be taken for it."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) \
            or re.fullmatch(r'[-+.\deE]+|true|false|null|[\[{"].*', str(value) * isinstance(value, str), re.DOTALL):
        return json.dumps(value, sort_keys=True)
    return value


def settings_of(result: Dict[str, Any]) -> Dict[str, Any]:
    """A file's settings: its members before the accuracy, and the parts of those that are objects or lists.

    >>> settings_of({"tier": "low", "range": [1, 2], "knobs": {"batch": 2, "id": True}, "accuracy": 0.5, "num_runs": 3})
    {'tier': 'low', 'batch': 2, 'knobs.id': 'true', 'range[]': '[1, 2]'}
    """
    head = [key for key in itertools.takewhile("accuracy".__ne__, result) if key not in BOOKKEEPING]
    parts = {key: result[key] for key in head if isinstance(result[key], (dict, list)) and not re.match("T_|TTFT", key)}
    settings = {f"knobs.{key}" if OURS.match(key) and key != "dataset_name" else key: result[key] for key in head
                if not isinstance(result[key], (dict, list))}
    taken = {*settings, *(key for row in result.get("per_sample_results", []) for key in row)}
    for key, part in {"knobs": result.get("knobs", {}), **parts}.items():
        for name, value in part.items() if isinstance(part, dict) else [("", part)]:
            if key not in ("knobs", "request_knobs"):
                name = f"{key}[{name}]"
            settings[f"{key}.{name}" if name in taken or OURS.match(name) else name] = _plain(value)
    return settings


def knobs_of(configurations: pd.DataFrame) -> List[str]:
    """The settings that differ between the configurations: those that name them. A part of an object, such as a tier's
    range, only if it tells apart what the others do not."""
    knobs = ["dataset_name"]
    for name in sorted(configurations.attrs.get("settings", []), key=lambda name: name.endswith("]")):
        base = knobs if name.endswith("]") else knobs[:1]
        groups = [configurations.groupby(names, dropna=False, sort=False).ngroups for names in (base, [*base, name])]
        knobs += [name] * (name != "dataset_name" and groups[0] < groups[1])
    return knobs[1:]


def load(folder: PathLike) -> Tuple[pd.DataFrame, pd.DataFrame]:
    """(configurations, samples): a row for each result file, a row for each sample of each file. Times are ms; what was
    not measured is NaN. Raises FileNotFoundError for a folder without result files."""
    pandas = need_pandas()
    configurations, samples, names = [], [], {}
    for path, result in files_of(folder):
        result = _complete(path, result)
        settings = settings_of(result)
        names.update(dict.fromkeys(settings))
        low, high = result.get("accuracy_interval") or (None, None)
        p50 = {key: value for key, value in result.get("latency_stats", {}).items() if key.endswith("_p50")}
        configurations.append({**settings, "samples": result.get("num_ok"), **p50, "accuracy": result.get("accuracy"),
                               "accuracy_low": low, "accuracy_high": high, "file": path.name})
        for row in result["per_sample_results"]:
            own = {key: value for key, value in row.items() if not isinstance(value, (dict, list))}
            stages = {f"stage_{key}": value for key, value in (row.get("stages") or {}).items()}
            record = row.get("metadata") or {}
            fields = {f"metadata.{key}" if key in {**own, **settings} or OURS.match(key) else key: value
                      for key, value in record.items() if key != "id" and not isinstance(value, (dict, list))}
            samples.append({**fields, **own, **stages, **settings, "id": record.get("id", row.get("sample_id")),
                            "file": path.name})
    if not configurations:
        raise FileNotFoundError(f"{folder}: there is no result file of vlmprof sweep in it")
    tables = pandas.DataFrame(configurations), pandas.DataFrame(samples)
    for table in tables:
        measured = [name for name in table.columns if re.match("T_|TTFT|accuracy(_low|_high)?$|stage_", str(name))]
        table[measured] = table[measured].astype(float)
        table.attrs["settings"] = list(names)
    return tables


def names_of(configurations: pd.DataFrame) -> List[str]:
    """A name for each configuration, from the knobs that differ: "low, top_k 2"."""
    knobs, names = knobs_of(configurations), []
    for text in ("{1}", "{0} {1!r}"):  # the second if two names would be equal
        names = [", ".join(text.format(knob, value) if isinstance(value, str) else
                           f"{knob} {value:g}" if float(f"{value:g}") == value else f"{knob} {value}"
                           for knob, value in row[knobs].dropna().items()) or str(row["dataset_name"])
                 for _, row in configurations.iterrows()]
        if len(set(zip(names, configurations["dataset_name"]))) == len(names):
            break
    return names


def front(configurations: pd.DataFrame, latency: str = "T_total_p50") -> pd.DataFrame:
    """The configurations that no other one of their data set beats, by rising latency.

    >>> import pandas
    >>> table = pandas.DataFrame({"dataset_name": "a", "T_total_p50": [3.0, 1.0, 2.0], "accuracy": [0.9, 0.5, 0.4]})
    >>> front(table)["accuracy"].tolist()
    [0.5, 0.9]
    """
    if not hasattr(configurations, "dropna"):
        raise TypeError(f"front needs the table of configurations, not {type(configurations).__name__}: "
                        "front(vlmprof.load(folder)[0])")
    best: Dict[Any, float] = {}  # the best accuracy of a data set so far
    kept = []
    ordered = configurations.dropna(subset=[latency, "accuracy"]).sort_values([latency, "accuracy"],
                                                                              ascending=[True, False])
    for index, row in ordered.iterrows():
        if row["accuracy"] > best.get(row["dataset_name"], float("-inf")):
            best[row["dataset_name"]] = row["accuracy"]
            kept.append(index)
    return configurations.loc[kept]


def load_trace(path: PathLike) -> pd.DataFrame:
    """A row for each operation and annotation: name, where it ran, start, duration and self time [us], and its args. As
    in `vlmprof trace`, time of a stage or step outside its operations is its own; steps are named ProfilerStep*."""
    pandas = need_pandas()
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    numbered = r"\[\d+\]$" if "dropped_steps" in trace else "$^"  # decode[0], decode[1], .. of our traces are one name
    rows = [{"name": re.sub(numbered, "", re.sub("^ProfilerStep#.*", "ProfilerStep*", event["name"])),
             "kind": event["cat"], "pid": event["pid"], "tid": event["tid"], "start_us": event["ts"],
             "duration_us": event["dur"], "args": event.get("args", {})}
            for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in TRACED
            and not event["name"].startswith("end of ProfilerStep#")]
    if not rows:
        raise ValueError(f"{path}: there is no operation in it")
    table = pandas.DataFrame(rows)
    table = table.sort_values(["pid", "tid", "start_us", "duration_us"], ascending=[True, True, True, False],
                              ignore_index=True)
    # ns: whole numbers, so that times that meet are equal
    times = (table[["start_us", "duration_us"]] * 1000).round().astype("int64")
    self_ns = times["duration_us"].tolist()
    around: List[Tuple[int, int]] = []
    place = None
    for index, (pid, tid, start, duration) in enumerate(zip(table["pid"], table["tid"], times["start_us"],
                                                            times["duration_us"])):
        if place != (pid, tid):
            around, place = [], (pid, tid)
        while around and around[-1][1] <= start:
            around.pop()
        if around:
            self_ns[around[-1][0]] -= duration  # the innermost operation around this one
        around.append((index, start + duration))
    table["self_us"] = [ns / 1000 for ns in self_ns]
    return table
