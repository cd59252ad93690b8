"""Writes tests/golden/ranges: what torch.profiler.schedule, torch's key_averages().table() and pstats say for seeded random inputs.
Needs torch; run in the repository's root: python3 tests/tools/make_range_goldens.py. The tests only read what it writes."""
import io
import json
import pstats
import random
import sys
import warnings

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEventAvg, _build_table
from torch.profiler import schedule

FOLDER = "tests/golden/ranges/"
NAMES = ["gemm", "attention", "softmax_rows", "copy_to_device", "rms_norm", "aten::addmm", "ProfilerStep*", "sch\u00f6n", "\u753b\u50cf", "rope",
         "a name that is longer than the limit of fifty-five characters and is cut", "exactly_fifty_one_characters_in_this_operation_name",
         "fifty_two_characters_of_which_none_may_be_cut_or_so", "x", "router_top_k", "silu_multiply", "layer_norm<float>", "<built-in method time>"]
FILES = ["vlmprof_kernels.cu", "cli.c", "/a/longer/path/to/some/source/file/of/a/program/model.cpp", None]


def schedules(random_source, count, steps):
    lines = []
    for _ in range(count):
        r = random_source.randint
        p = dict(skip_first=r(0, 9), wait=r(0, 6), warmup=r(0, 4), active=r(0 if r(0, 19) == 0 else 1, 5), repeat=r(0, 4),
                 skip_first_wait=r(0, 1))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                states = schedule(**p)
            text = "".join(str(states(i).value) for i in range(steps))
        except AssertionError:
            caught, text = [], "refused"
        lines.append(" ".join(str(v) for v in p.values()) + f" {len(caught)} {text}\n")
    return lines


def time_ns(r):
    return r.choice([0, 1, 999, 500, 1500, 999999, 1000000, 1000500, 123456789, 5000000000]) if r.random() < 0.3 else int(10 ** r.uniform(1, 10.5))


def row(r, name, grouped, frames):
    total, device = time_ns(r), r.choice([0, time_ns(r)])
    calls = r.choice([1, 1, r.randint(1, 5000)])
    primitive = calls if r.random() < 0.7 else r.randint(1, calls)
    file = r.choice(FILES)
    memory = lambda: r.choice([0, r.randint(-2000, 2000), int(10 ** r.uniform(3, 11)), -int(10 ** r.uniform(3, 11)), 1024, 1048576])
    op = dict(name=name, stage=None, part=None, block=None, step=None, shape=[], file=file, line=r.randint(1, 20000) if file else 0, stack=[])
    if "shape" in grouped:
        op["shape"] = [r.choice([1, 16, 64, 2048, 50304]) for _ in range(r.randint(0, 4))]
    op["stack"] = [dict(name=r.choice(NAMES), file=r.choice(FILES), line=r.randint(1, 9999)) for _ in range(r.randint(0, frames))]
    for frame in op["stack"]:
        frame["line"] = frame["line"] if frame["file"] else 0
    op.update(calls=calls, primitive_calls=primitive, host_total_ns=total, host_self_ns=r.choice([total, r.randint(0, total)]),
              host_cumulative_ns=total if primitive == calls else r.randint(0, total), host_min_ns=0, host_max_ns=total, device_total_ns=device,
              device_self_ns=r.choice([device, r.randint(0, device)]), device_min_ns=0, device_max_ns=device,
              flops=r.choice([0, 1000, 999, int(10 ** r.uniform(1, 15))]), bytes=int(10 ** r.uniform(0, 10)),
              host_memory_bytes=memory(), host_self_memory_bytes=memory(), device_memory_bytes=memory(), device_self_memory_bytes=memory(),
              memory_peak_bytes=0)
    if calls == 1:
        op.update(host_min_ns=total, device_min_ns=device, host_cumulative_ns=total)
    return op


def frame_text(frame):
    return f"{frame['file']}({frame['line']}): {frame['name']}" if frame["file"] else frame["name"]


def table(r, grouped, frames, device_name, count):
    """rows in the order in which ties are to stand: by name, shape, place, stack"""
    rows, seen = [], set()
    while len(rows) < count:
        op = row(r, r.choice(NAMES), grouped, frames)
        place = (op["file"], op["line"]) if "place" in grouped else ()
        key = (op["name"], tuple(op["shape"]), place, tuple(frame_text(f) for f in op["stack"]))
        if key not in seen:
            seen.add(key)
            rows.append(op)
    none_first = lambda t: (t is not None, (t or "").encode())
    def by_shape(a):
        return a["shape"]
    rows.sort(key=lambda o: (o["name"].encode(), by_shape(o), none_first(o["file"]) if "place" in grouped else 0, o["line"] if "place" in grouped else 0,
                             [(f["name"].encode(), none_first(f["file"]), f["line"]) for f in o["stack"]]))
    return dict(schema="vlmprof-ops-1", group_by=grouped, group_by_stack_n=frames, clock="host", sort_key=None, device_name=device_name,
                ceilings=dict(bytes_per_s=None, flops_per_s=None), dropped=dict(calls=0, host_ns=0, device_ns=0), rows=rows)


def torch_text(ops, options):
    events = []
    for op in ops["rows"]:
        e = FunctionEventAvg()
        e.key, e.count, e.node_id, e.is_legacy, e.device_type = op["name"], op["calls"], -1, True, DeviceType.CPU
        e.use_device = ops["device_name"].lower() if ops["device_name"] else None
        e.cpu_time_total, e.self_cpu_time_total = op["host_total_ns"] / 1000.0, op["host_self_ns"] / 1000.0
        if ops["device_name"]:
            e.device_time_total, e.self_device_time_total = op["device_total_ns"] / 1000.0, op["device_self_ns"] / 1000.0
        e.cpu_memory_usage, e.self_cpu_memory_usage = op["host_memory_bytes"], op["host_self_memory_bytes"]
        e.device_memory_usage, e.self_device_memory_usage = op["device_memory_bytes"], op["device_self_memory_bytes"]
        e.flops, e.input_shapes, e.overload_name = op["flops"], op["shape"] or "", ""
        e.stack = [frame_text(f) for f in op["stack"]]
        events.append(e)
    return _build_table(events, sort_by=options["sort_by"], header=options["header"], row_limit=options["row_limit"],
                        max_src_column_width=options["max_src_column_width"], max_name_column_width=options["max_name_column_width"],
                        max_shapes_column_width=options["max_shapes_column_width"], with_flops=options["with_flops"],
                        profile_memory=options["with_memory"], time_unit=options["time_unit"])


class Shim:
    def __init__(self, rows):
        self.rows = rows

    def create_stats(self):
        self.stats = {(o["file"] or "~", o["line"], o["name"]): (o["primitive_calls"], o["calls"], o["host_self_ns"] / 1e9,
                                                                o["host_cumulative_ns"] / 1e9, {}) for o in self.rows}


def pstats_text(ops, options):
    stream = io.StringIO()
    stats = pstats.Stats(Shim(ops["rows"]), stream=stream)
    if options["sort_by"]:
        stats.sort_stats(options["sort_by"])
    stats.print_stats(*([options["row_limit"]] if options["row_limit"] >= 0 else []))
    return stream.getvalue()


def torch_cases(r):
    keys = ["cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total", "cpu_memory_usage",
            "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "count", "flops", None, "cuda_time_total", "self_cuda_time_total"]
    for i, key in enumerate(keys):
        frames = r.choice([0, 0, 0, 1, 3])
        device = r.choice([None, "CUDA", "CUDA"]) if key and ("device" in key or "cuda" in key) else r.choice([None, "CUDA"])
        ops = table(r, r.choice([[], ["shape"]]), frames, device, r.randint(1, 9))
        options = dict(sort_by=key, row_limit=r.choice([100, 100, 3, 0, -1]), max_name_column_width=r.choice([55, 55, 20, 4, -1]),
                       max_shapes_column_width=r.choice([80, 14]), max_src_column_width=r.choice([75, 24]), header=r.choice([None, None, "of stage prefill"]),
                       time_unit=r.choice([None, None, "us", "ms", "s"]), with_memory=r.random() < 0.4, with_flops=frames == 0 and r.random() < 0.5)
        asked = dict(options, max_name_column_width=None if options["max_name_column_width"] < 0 else options["max_name_column_width"])
        yield dict(printer="torch", options=options, table=ops, text=torch_text(ops, asked))


def pstats_cases(r):
    keys = ["calls", "ncalls", "cumtime", "cumulative", "filename", "line", "module", "name", "nfl", "pcalls", "stdname", "time", "tottime", None]
    for key in keys:
        ops = table(r, ["place"], 0, None, r.randint(1, 9))
        options = dict(sort_by=key, row_limit=r.choice([-1, -1, 0, 2, 5, 100]))
        yield dict(printer="cprofile", options=options, table=ops, text=pstats_text(ops, options))


def main():
    r = random.Random(20261121)
    with open(FOLDER + "schedule.txt", "w", newline="\n") as f:
        f.writelines(schedules(r, 400, 48))
    cases = list(torch_cases(r)) + list(pstats_cases(r))
    with open(FOLDER + "tables.json", "w", newline="\n") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
    with open(FOLDER + "README.md", "w", newline="\n") as f:
        f.write(f"""# Golden data of parts/vlmprof_ranges.h

Written by tests/tools/make_range_goldens.py with torch {torch.__version__.split("+")[0]} and CPython {sys.version.split()[0]}; the tests only read it.

| file | what it holds |
|---|---|
| `schedule.txt` | a line each: skip_first, wait, warmup, active, repeat, skip_first_wait, warnings, and the states of steps 0 to 47 as the digits of torch.profiler's ProfilerAction; "refused" where torch.profiler.schedule raises |
| `tables.json` | an array of {{printer, options, table, text}}: a table (schema vlmprof-ops-1) of random rows, and the text that torch's `_build_table` or `pstats.Stats.print_stats` prints of it |

Rows were handed to torch and pstats in the order in which vlmprof leaves ties (by name), since both sort stably. Stacks and FLOPs never stand in one
table: torch 2.15 prints their values under each other's heading.
""")


main()
