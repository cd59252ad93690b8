#!/usr/bin/env python3
"""check_trace.py - a trace of vlmprof, read by the programs that its format is for. A development tool: it needs packages from PyPI
(HolisticTraceAnalysis, torch-tb-profiler) and is no part of `make test`; what is missing is skipped, with the reason.

    python3 -m venv venv && venv/bin/pip install HolisticTraceAnalysis torch-tb-profiler 'pandas<3'   # HTA 0.5.0 fails in pandas 3 on a small trace
    make vlmprof build/emulated/test_trace && mkdir traces && build/emulated/test_trace traces
    venv/bin/python tests/tools/check_trace.py traces/emulated.1.pt.trace.json      (three steps)
    venv/bin/python tests/tools/check_trace.py traces/request.pt.trace.json         (one step)
    venv/bin/python tests/tools/check_trace.py --screenshot view.png traces/emulated.1.pt.trace.json      (also needs chromium)

What is compared: HTA's validate_trace at its level "complete"; its sums of stages (gpu_user_annotation) and kernels, and its count of launches that it
could link to their kernels, its idle times against `vlmprof trace`'s; against sums over the file itself and, where FILE.stages lies beside it (lines "stage::vit 123.456", in us: test_trace
writes it), against what the engine said, within 0.5 %; what the TensorBoard plugin's own loader finds of steps, kernels, operators and memory, and
the average step time of its overview against the one that `vlmprof trace` tells. --screenshot shows the file in the trace viewer that the plugin brings along
(catapult's, as in chrome://tracing). The last line is `check_trace: N passed, N failed, N skipped`; the exit code is 1 when something failed.
"""
import argparse
import gzip
import http.server
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from collections import defaultdict

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # HTA reads whole us otherwise
counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(what, good, told=""):
    counts["passed" if good else "failed"] += 1
    print(("ok      " if good else "FAILED  ") + what + (": " + str(told) if told != "" else ""))


def skip(what, reason):
    counts["skipped"] += 1
    print("skipped: %s: %s" % (what, reason))


def near(a, b):
    return abs(a - b) <= 0.005 * abs(b) + 1e-6


class Sums:
    """what stands in the file, by plain addition"""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.trace = json.load(f)
        self.events = self.trace["traceEvents"]
        self.annotations, self.kernels, self.ops = defaultdict(float), defaultdict(float), defaultdict(int)
        self.launches = self.copies = 0
        for e in self.events:
            if e.get("ph") != "X":
                continue
            kind = e["cat"]
            if kind == "gpu_user_annotation":
                self.annotations[e["name"]] += e["dur"]
            if kind == "cpu_op":
                self.ops[e["name"]] += 1
            if kind in ("kernel", "gpu_memcpy", "gpu_memset"):
                self.kernels[e["name"]] += e["dur"]
                self.copies += kind != "kernel"
                self.launches += 1
        steps = [e for e in self.events if e.get("name", "").startswith("ProfilerStep#")]
        self.steps = [int(e["name"].split("#")[1]) for e in sorted(steps, key=lambda e: e["ts"])]
        self.memory = [e for e in self.events if e.get("name") == "[memory]"]


def with_hta(path, sums, stages, tables):
    try:
        from hta.trace_analysis import TraceAnalysis
        from hta.utils.validate_trace import validate_trace_format
    except ImportError as e:
        return skip("HolisticTraceAnalysis", e)
    for level in ("minimal", "standard", "complete"):
        good, errors = validate_trace_format(path, level)
        check("HTA validate_trace, level " + level, good, errors or "")
    if not sums.launches:
        return skip("HTA's analyses", "no device slice in this trace: nothing for them to tell of a CPU")
    analysis = TraceAnalysis(trace_files={0: path})
    check("HTA steps", [int(s) for s in analysis.get_profiler_steps()] == sums.steps, sums.steps)
    table = analysis.get_gpu_user_annotation_breakdown(visualize=False, num_kernels=10000, duration_ratio=1.0)
    found = {row["name"]: row["sum (us)"] for _, row in table.iterrows()}
    for name, us in sorted(sums.annotations.items()):
        check("HTA stage %s" % name, near(found.get(name, -1.0), us), "%.3f us" % found.get(name, -1.0))
    for name, us in stages.items():
        check("HTA stage %s against the engine" % name, near(found.get(name, -1.0), us), "%.3f us, said %.3f" % (found.get(name, -1.0), us))
    _, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10000, duration_ratio=1.0)
    total = kernels["sum (us)"].sum()
    check("HTA sum of all kernels and copies", near(total, sum(sums.kernels.values())), "%.3f us" % total)
    # it shortens a copy's name in some tables: kernels alone are compared by name
    found = {row["name"]: row["sum (us)"] for _, row in kernels.iterrows()}
    wrong = [n for n, us in sums.kernels.items() if not n.startswith("Mem") and not near(found.get(n, -1.0), us)]
    check("HTA sums of %d kernels" % len(sums.kernels), not wrong, wrong or "")
    inside = sum(us for name, us in sums.annotations.items() if name.startswith("stage::"))
    check("kernels lie within stages", sum(sums.kernels.values()) <= inside * 1.0001)
    stats = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
    check("HTA launches linked to their kernels", len(stats) == sums.launches, len(stats))
    queue = analysis.get_queue_length_summary()
    check("HTA queue length, never below 0", float(queue[("queue_length", "min")].min()) >= 0.0)
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    busy = float((breakdown["compute_time(us)"] + breakdown["non_compute_time(us)"]).iloc[0])
    check("HTA temporal breakdown, busy", near(busy, sum(sums.kernels.values())), "%.3f us" % busy)
    if sums.copies:
        bandwidth = analysis.get_memory_bw_summary()
        check("HTA memory bandwidth", int(bandwidth[("memory_bw_gbps", "count")].sum()) > 0)
    idle = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)[0]
    if tables is None:
        return skip("HTA idle time", "no vlmprof (--vlmprof)")
    for kind in ("host_wait", "kernel_wait"):
        us = float(idle.loc[idle["idle_category"] == kind, "idle_time"].sum())
        ours = sum(row.get(kind + "_us", 0.0) for row in tables["tracks"])
        check("HTA idle time, " + kind, near(us, ours) or abs(us - ours) < 0.01, "%.2f us; ours %.3f" % (us, ours))


def with_tensorboard(path, sums, tables):
    try:
        from torch_tb_profiler import consts, io
        from torch_tb_profiler.profiler import trace as tb_trace
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.loader import RunLoader
        from torch_tb_profiler.profiler.run_generator import RunGenerator
    except ImportError as e:
        return skip("torch-tb-profiler", e)
    folder = tempfile.mkdtemp()
    name = os.path.basename(path)
    check("TensorBoard takes the file's name", consts.WORKER_PATTERN.match(name) is not None, name)
    shutil.copy(path, os.path.join(folder, "host_4242.1700000000000000000.pt.trace.json"))
    run = RunLoader("run", folder, io.Cache()).load()
    views = sorted(v.display_name for v in run.views)
    wanted = ["Operator", "Overview", "Trace"] + (["Kernel"] if sums.launches > sums.copies else []) + (["Memory"] if sums.memory else [])
    check("TensorBoard views", views == sorted(wanted), ", ".join(views))
    shutil.rmtree(folder)
    data = RunProfileData.parse("host_4242", "1", path, None)
    linked = "cuda_runtime" in tb_trace.EventTypeMap  # not in 0.4.3: kineto PR 1166
    steps = [int(s) for s in data.steps_names]
    # with linked launches the plugin leaves out a last step with less than 0.8 of the kernels of the one before
    allowed = [sums.steps, sums.steps[:-1]] if linked and sums.launches else [sums.steps or [0]]
    check("TensorBoard steps", steps in allowed, steps)
    overview = RunGenerator("host_4242", "1", data).generate_run_profile().overview["performance"][0]
    if sums.steps and not (linked and sums.launches):  # linked launches move a step's end to that of its kernels
        if tables is None:
            skip("TensorBoard overview, average step time", "no vlmprof (--vlmprof)")
        else:
            ours = next(row["avg_us"] for row in tables["annotations"] if row["name"] == "ProfilerStep*")
            check("TensorBoard overview, average of %d step(s)" % len(sums.steps), abs(overview["value"] - ours) <= 0.501, "%d us; ours %.3f" % (overview["value"], ours))
    if sums.launches:
        stat = data.kernel_stat
        us = {n: v for n, v in sums.kernels.items() if not n.startswith("Mem")}
        check("TensorBoard kernels", sorted(stat.index) == sorted(us) and all(near(float(stat["sum"][n]), us[n]) for n in us), "%d names" % len(us))
        check("TensorBoard devices", data.used_devices == [int(d["id"]) for d in sums.trace["deviceProperties"]], data.used_devices)
        check("TensorBoard sees launches", data.has_runtime == linked, "linked to their kernels" if linked else "this version knows no cuda_runtime")
        if linked:
            device = sum(op.self_device_duration for op in data.op_list_groupby_name)
            check("TensorBoard device time of all operators", near(device, sum(sums.kernels.values())), "%.3f us" % device)
    ops = {op.name: op.calls for op in data.op_list_groupby_name}
    check("TensorBoard calls of operators", all(ops.get(n) == c for n, c in sums.ops.items()), "%d names" % len(ops))
    if sums.memory:
        peak = {("GPU%d" % device if kind else "CPU"): n for (kind, device), n in data.memory_snapshot.get_peak_memory().items()}
        wanted = defaultdict(int)
        for e in sums.memory:
            key = "GPU%d" % e["args"]["Device Id"] if e["args"]["Device Type"] else "CPU"
            wanted[key] = max(wanted[key], e["args"]["Total Allocated"])
        check("TensorBoard memory peaks", peak == wanted, dict(peak))
    if data.gpu_metrics_parser.gpu_ids:
        profile = RunGenerator("host_4242", "1", data).generate_run_profile()
        with open(path, "rb") as f:
            shown = json.loads(gzip.decompress(profile.append_gpu_metrics(f.read())))
        check("TensorBoard's trace view, cut at the last bracket", len(shown["traceEvents"]) > len(sums.events), len(shown["traceEvents"]))


VIEWER = """<!DOCTYPE html><html><head><meta charset="utf-8"><script src="webcomponents.min.js"></script>
<script>window.__hideTraceViewerPolyfillWarning = true;</script><link rel="import" href="trace_viewer_full.html">
<style>html, body { margin: 0; height: 100%; overflow: hidden } #trace-viewer { width: 100%; height: 100% }</style></head><body><script>
document.addEventListener('WebComponentsReady', async function () {
  const container = document.createElement('track-view-container'), viewer = document.createElement('tr-ui-timeline-view');
  container.id = 'track_view_container';
  viewer.track_view_container = container;
  Polymer.dom(viewer).appendChild(container);
  viewer.id = 'trace-viewer';
  viewer.globalMode = true;
  Polymer.dom(document.body).appendChild(viewer);
  const text = await (await fetch('trace.json')).text(), model = new tr.Model();
  let told = 'imported ' + text.length + ' bytes';
  try { new tr.importer.Import(model).importTraces([text]); } catch (e) { told = 'failed: ' + e; }
  viewer.model = model;
  viewer.viewTitle = 'vlmprof';
  const flows = model.flowEvents.length, slices = [...model.getDescendantEvents()].length, warnings = model.importWarnings.map(w => w.message);
  await fetch('told?' + encodeURIComponent(JSON.stringify({told, flows, slices, warnings})));
});
</script></body></html>"""


def screenshot(path, picture, polyfill):
    """The trace viewer of the TensorBoard plugin (catapult's) with this file in it, drawn by a headless browser."""
    browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
    try:
        import torch_tb_profiler
    except ImportError as e:
        return skip("screenshot", e)
    if not browser or not polyfill:
        return skip("screenshot", "no chromium" if not browser else "--polyfill is missing: webcomponents.min.js 0.7.24, which the plugin loads from a CDN")
    folder = tempfile.mkdtemp()
    shutil.copy(os.path.join(os.path.dirname(torch_tb_profiler.__file__), "static", "trace_viewer_full.html"), folder)
    shutil.copy(polyfill, os.path.join(folder, "webcomponents.min.js"))
    shutil.copy(path, os.path.join(folder, "trace.json"))
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as f:
        f.write(VIEWER)
    told = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *rest, **named):
            super().__init__(*rest, directory=folder, **named)

        def do_GET(self):
            if self.path.startswith("/told?"):
                told.append(json.loads(urllib.parse.unquote(self.path[6:])))
            super().do_GET()

        def log_message(self, *rest):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1800,1000", "--virtual-time-budget=300000",
                    "--user-data-dir=" + os.path.join(folder, "profile"), "--screenshot=" + os.path.abspath(picture),
                    "http://127.0.0.1:%d/index.html" % server.server_port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180)
    server.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
    check("trace viewer imports the file", bool(told) and told[0]["told"].startswith("imported"), told[0] if told else "no answer")
    check("trace viewer has no warnings", bool(told) and not told[0]["warnings"])
    check("screenshot", os.path.exists(picture), picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--vlmprof", metavar="FILE", default="./vlmprof", help="the program whose steps and gaps are compared with theirs")
    parser.add_argument("--screenshot", metavar="PNG")
    parser.add_argument("--polyfill", metavar="JS", help="webcomponents.min.js 0.7.24, for --screenshot")
    o = parser.parse_args()
    logging.disable(logging.INFO)
    path = os.path.abspath(o.trace)
    sums = Sums(path)
    print("%s: %d events, %d launches, steps %s" % (path, len(sums.events), sums.launches, sums.steps))
    stages = {}
    if os.path.exists(path + ".stages"):
        with open(path + ".stages", encoding="utf-8") as f:
            stages = {n: float(us) for n, us in (line.split() for line in f)}
    tables = None
    if os.access(o.vlmprof, os.X_OK):
        tables = json.loads(subprocess.run([o.vlmprof, "trace", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    with_hta(path, sums, stages, tables)
    with_tensorboard(path, sums, tables)
    if o.screenshot:
        screenshot(path, o.screenshot, o.polyfill)
    print("check_trace: %(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
