"""vlmprof's result files and traces as pandas DataFrames.

    configurations, samples = vlmprof.load("build/demo")

A folder of result files (samples/result.schema.json) becomes two tables: one row for each configuration, one for each sample. The columns come from the files:
settings, which precede the accuracy, every P50 of a latency, and the fields of the samples' records. A knob is a setting that differs between the files."""
from __future__ import annotations

import gzip
import itertools
import json
import re
import statistics
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Tuple, Union

if TYPE_CHECKING:
    import pandas as pd

PathLike = Union[str, Path]
LEFT_OUT = ("Trace", "cuda_sync", "cuda_event", "mtia_insight", "gpu_user_annotation", "", "aten::is_leaf",
            "aten::output_nr", "aten::_version", "profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit")
OUTSIDE = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "mtia_ccp_events", "mtia_workloadd",
           "cuda_profiler_range", "hpu_op", "xpu", "collective_comm", "overhead", "thread_span")  # in no other slice
OURS = re.compile("T_|TTFT|stage_|accuracy(_low|_high)?$|(samples|file|id|dataset_name)$")
BOOKKEEPING = {"schema", "plan", "status", "num_ok", "num_failed", "num_missing", "data_hash", "latency_stats", "per_sample_results"}  # no settings


def need_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("tables need pandas: pip install pandas (or \"vlmprof[pandas]\"); without it vlmprof.run([\"report\", folder]) returns a dict") from None
    return pandas


def files_of(folder: PathLike) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """A folder's result files, or one file. Other JSON, such as reports, is skipped. A file without "schema" counts as a result
    file of another engine (vlmprof help library)."""
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
    """Another engine's result file, completed with the members that vlmprof sweep would have written; the interval is unknown."""
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
    """A number or text unchanged; any other value as JSON, and also a text that could be mistaken for JSON."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) \
            or re.fullmatch(r'[-+.\deE]+|true|false|null|[\[{"].*', str(value) * isinstance(value, str), re.DOTALL):
        return json.dumps(value, sort_keys=True)
    return value


def settings_of(result: Dict[str, Any]) -> Dict[str, Any]:
    """A file's settings: its members before the accuracy, with the parts of objects and lists."""
    head = [key for key in itertools.takewhile("accuracy".__ne__, result) if key not in BOOKKEEPING]
    parts = {key: result[key] for key in head if isinstance(result[key], (dict, list)) and not re.match("T_|TTFT", key)}
    settings = {f"knobs.{key}" if OURS.match(key) and key != "dataset_name" else key: result[key] for key in head if not isinstance(result[key], (dict, list))}
    taken = {*settings, *(key for row in result.get("per_sample_results", []) for key in row)}
    for key, part in {"knobs": result.get("knobs", {}), **parts}.items():
        for name, value in part.items() if isinstance(part, dict) else [("", part)]:
            if key not in ("knobs", "request_knobs"):
                name = f"{key}[{name}]"
            settings[f"{key}.{name}" if name in taken or OURS.match(name) else name] = _plain(value)
    return settings


def knobs_of(configurations: pd.DataFrame) -> List[str]:
    """The settings that differ between the configurations and therefore name them. The data file and parts of an object, such as a tier's range, are included only if
    the other settings do not distinguish the configurations."""
    knobs = ["dataset_name"]
    for name in sorted(configurations.attrs.get("settings", []), key=(is_late := lambda name: name == "data" or name.endswith("]"))):
        base = knobs if is_late(name) else knobs[:1]
        groups = [configurations.groupby(names, dropna=False, sort=False).ngroups for names in (base, [*base, name])]
        knobs += [name] * (name != "dataset_name" and groups[0] < groups[1])
    return knobs[1:]


def load(*folders: PathLike) -> Tuple[pd.DataFrame, pd.DataFrame]:
    """(configurations, samples): a row for each result file, a row for each sample of each file. Times are in ms; NaN: not measured. `file` is the file's name,
    or its path if there are several folders. Raises FileNotFoundError if there is no result file."""
    pandas = need_pandas()
    configurations, samples, names, filled = [], [], {}, set()
    for folder, path, result in ((one, *found) for one in folders for found in files_of(one)):
        result, file = _complete(path, result), path.name if len(folders) == 1 else str(path)
        filled.add(folder)
        settings = settings_of(result)
        names.update(dict.fromkeys(settings))
        low, high = result.get("accuracy_interval") or (None, None)
        p50 = {key: value for key, value in result.get("latency_stats", {}).items() if key.endswith("_p50")}
        configurations.append({**settings, "samples": result.get("num_ok"), **p50, "accuracy": result.get("accuracy"),
                               "accuracy_low": low, "accuracy_high": high, "file": file})
        for row in result["per_sample_results"]:
            own = {key: value for key, value in row.items() if not isinstance(value, (dict, list))}
            stages = {f"stage_{key}": value for key, value in (row.get("stages") or {}).items()}
            record = row.get("metadata") or {}
            fields = {f"metadata.{key}" if key in {**own, **settings} or OURS.match(key) else key: value
                      for key, value in record.items() if key != "id" and not isinstance(value, (dict, list))}
            samples.append({**fields, **own, **stages, **settings, "id": record.get("id", row.get("sample_id")), "file": file})
    if len(filled) < len(set(folders)) or not folders:
        raise FileNotFoundError(f"no result files of vlmprof sweep in {', '.join(str(one) for one in folders if one not in filled) or 'no folder'}")
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
        names = [", ".join(text.format(knob, value) if isinstance(value, str) else f"{knob} {value:g}" if float(f"{value:g}") == value else f"{knob} {value}"
                           for knob, value in row[knobs].dropna().items()) or str(row["dataset_name"]) for _, row in configurations.iterrows()]
        if len(set(zip(names, configurations["dataset_name"]))) == len(names):
            break
    return names


def front(configurations: pd.DataFrame, latency: str = "T_total_p50") -> pd.DataFrame:
    """The configurations that are not dominated by another one of their data set, in order of increasing latency."""
    if not hasattr(configurations, "dropna"):
        raise TypeError(f"front needs the table of configurations, not {type(configurations).__name__}: front(vlmprof.load(folder)[0])")
    best: Dict[Any, float] = {}  # the best accuracy of a data set so far
    kept = []
    ordered = configurations.dropna(subset=[latency, "accuracy"]).sort_values([latency, "accuracy"], ascending=[True, False])
    for index, row in ordered.iterrows():
        if row["accuracy"] > best.get(row["dataset_name"], float("-inf")):
            best[row["dataset_name"]] = row["accuracy"]
            kept.append(index)
    return configurations.loc[kept]


def _nest(rows: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Sets the parent of each slice, and the time that inner slices cover; the slices must be in order of thread and time. A slice that is the only one inside another
    of the same name is merged with it."""
    around: List[Dict[str, Any]] = []
    for row in rows:
        row.update(parent=None, inner=0, covered=0, until=row["begin"], end=row["begin"] + row["ns"])
        if row["kind"] in OUTSIDE:
            continue
        while around and not (around[-1]["track"] == row["track"] and row["begin"] < around[-1]["end"] >= row["end"]):
            around.pop()
        if around:
            row["parent"] = outer = around[-1]
            outer["inner"] += 1
            outer["covered"] += max(0, row["end"] - max(row["begin"], outer["until"]))
            outer["until"] = max(row["end"], outer["until"])
        around.append(row)
    for row in rows:
        outer = row["parent"] = row["parent"] and row["parent"].get("one_with", row["parent"])
        if outer and outer["inner"] == 1 and outer["name"] == row["name"]:
            outer.update(inner=row["inner"], covered=row["covered"])
            row["one_with"] = outer
    return [row for row in rows if "one_with" not in row]


def load_trace(path: PathLike) -> pd.DataFrame:
    """A row for each slice: its name, where it ran, start, duration and self time [us], and args; parent: the row of the enclosing operation or, in traces with stacks,
    Python function. Self times are those of `vlmprof trace`: the time of a stage or step outside its operations is its own. Steps are named ProfilerStep*."""
    pandas = need_pandas()
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        trace = json.load(file, parse_float=Decimal, strict=False)  # a float has too few digits for a time in ns
    is_ours = "dropped_steps" in trace
    rows: List[Dict[str, Any]] = []
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        name, kind, args = event.get("name", "").partition("\0")[0], event.get("cat") or "cpu_op", event.get("args", {})
        times = [event[key] for key in ("ts", "dur") if isinstance(event.get(key), (int, Decimal))]
        if event.get("ph") != "X" or len(times) < 2 or times[1] < 0 or kind in LEFT_OUT or name in LEFT_OUT or is_ours and name.startswith("end of ProfilerStep#"):
            continue
        name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        begin, ns = (int((Decimal(time) * 1000).to_integral_value(ROUND_HALF_UP)) for time in times)
        own = args.get("External id", args.get("external id", 0))
        rows.append({"name": re.sub(r"\[\d+\]$", "", name) if is_ours else name,  # decode[0], decode[1], .. are one
                     "kind": kind, "track": (event.get("pid", "-"), event.get("tid", "-")), "begin": begin, "ns": ns,
                     "args": {key: float(one) if isinstance(one, Decimal) else one for key, one in args.items()}, "id": own if own != args.get("correlation", 0) else 0})
    if not rows:
        raise ValueError(f"{path}: the file contains no operations")
    owners = {(row["track"][0], row["id"]): row["track"] for row in reversed(rows) if row["id"] and row["kind"] in ("cpu_op", "Operator", "user_annotation")}
    for row in rows:  # a call of the driver belongs to the thread of its operation
        if re.search("._runtime$|._driver$|^Runtime$", row["kind"]):
            row["track"] = owners.get((row["track"][0], row["id"]), row["track"])
    rows = _nest(sorted(rows, key=lambda row: ([str(one) for one in row["track"]], row["begin"], -row["ns"])))
    places = {id(row): place for place, row in enumerate(rows)}
    return pandas.DataFrame([{
        "name": row["name"], "kind": row["kind"], "pid": row["track"][0], "tid": row["track"][1], "start_us": row["begin"] / 1000, "duration_us": row["ns"] / 1000,
        "args": row["args"], "self_us": (row["ns"] - row["covered"]) / 1000, "parent": places.get(id(row["parent"]))} for row in rows]).astype({"parent": "Int64"})
