"""Result files and traces as tables, figures and scores: columns come from the files, figures are drawn, scores have the form that `vlmprof score` reads."""
import doctest
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import vlmprof
from checks import check, done, equal, refused, skip
from vlmprof import results, scores

work = Path(tempfile.mkdtemp(dir=sys.argv[1]))
have = {}
for module in ("pandas", "matplotlib", "numpy", "pyarrow"):
    try:
        have[module] = importlib.import_module(module)
    except ImportError:
        skip(module, f"no {module}")

# ---- docstrings
for name, needs in (("data.record", None), ("data.prompts", None), ("data.tables", None), ("results", "pandas"), ("plots", "pandas"), ("scores", None),
                    ("conform", "numpy"), ("commands", None), ("counts", None)):
    if needs is None or needs in have:
        module = importlib.import_module(f"vlmprof.{name}")
        equal(f"the examples in vlmprof.{name}", doctest.testmod(module).failed, 0)

# ---- a sweep, and the same with other accuracies
made = vlmprof.sweep(work / "sweep", synthetic="tiny", data="samples/questions.jsonl", tier_list=["low", "medium"], top_k_list=[1, 2], num_samples=3,
                     num_runs_per_sample=1, max_new_tokens=2, quiet=True)
equal("sweep has all configurations", len(made["configurations"]), 4)
for number, (path, result) in enumerate(results.files_of(work / "sweep")):
    result.update(accuracy=0.4 + 0.1 * number, accuracy_interval=[0.35 + 0.1 * number, 0.45 + 0.1 * number], request_rate=float(number))
    order = [*list(result)[:list(result).index("accuracy")], "request_rate", *list(result)[list(result).index("accuracy"):]]
    path.write_text(json.dumps({key: result[key] for key in dict.fromkeys(order)}))

if "pandas" in have:
    configurations, samples = vlmprof.load(work / "sweep")
    equal("load: a row for each configuration and sample", (len(configurations), len(samples)), (4, 12))
    equal("its knobs are those of the files, a new one too", results.knobs_of(configurations), ["tier", "top_k", "request_rate"])
    check("every P50 of the files is a column", {"T_total_p50", "TTFT_p50", "T_LLM_decode_p50"} <= set(configurations.columns), list(configurations.columns))
    check("stages of the samples, fields of the records", {"stage_vit", "stage_decode", "id", "pred", "output_tokens", "question", "image"} <= set(samples.columns), list(samples.columns))
    equal("names", results.names_of(configurations)[0], "low, top_k 1, request_rate 0")
    equal("the front rises", vlmprof.front(configurations)["accuracy"].is_monotonic_increasing, True)
    refused("a folder that is no result folder", FileNotFoundError, f"no result files of vlmprof sweep in {work}", lambda: vlmprof.load(work / "sweep", work))
    draws = random.Random(56)
    values = [1, 2.5, 1000001, 1000002, True, False, None, "1", "true", "low", "", [0, 1], [0, 2], {"a": 1}, 'x, b "y"']
    for draw in range(60):
        several = work / f"draw{draw}"
        several.mkdir()
        wanted = []
        while len(wanted) < 4:
            knobs = {key: draws.choice(values) for key in draws.sample(["a", "b", "id", "accuracy", "T_total", "samples", "pred", "tier", "x.y"], 2)}
            if json.dumps(knobs, sort_keys=True) not in [json.dumps(one, sort_keys=True) for one in wanted]:
                wanted.append(knobs)
        for number, knobs in enumerate(wanted):
            row = {"sample_id": 0, "T_total": 2.0, "accuracy": 1.0, "pred": "p", "metadata": {"kind": "k", "difficulty": 2, "file": "f", "a": 3, "id": "q"}}
            text = json.dumps({"dataset_name": "d", draws.choice(["knobs", "request_knobs"]) if draw % 2 else "knobs": knobs, "per_sample_results": [row]})
            (several / f"{number}.json").write_text(text)
        table, rows = vlmprof.load(several)
        names = results.names_of(table)
        distinct = [len(one.astype(str)[results.knobs_of(table)].drop_duplicates()) for one in (table, rows)]
        check("four configurations never look alike", distinct == [4, 4] and len(set(names)) == 4 and list(rows["kind"]) == ["k"] * 4
              and list(rows["difficulty"]) == [2] * 4 and list(rows["id"]) == ["q"] * 4 and set(table["T_total_p50"]) == {2.0}, (wanted, names, distinct))
    equal("two folders", len(set(vlmprof.load(work / "sweep", several)[1]["file"])), 8)
    own = work / "own"
    own.mkdir()
    (own / "a.json").write_text(json.dumps({"model": "mine", "per_sample_results": [{"sample_id": 0, "T_total": 2.0, "accuracy": 1.0}, {"sample_id": 1, "T_total": 4.0}]}))
    table, rows = vlmprof.load(own)
    equal("load: an engine's own file", (table["dataset_name"][0], table["T_total_p50"][0], table["accuracy"][0], len(rows), len(vlmprof.front(table))), ("a", 3.0, 1.0, 2, 1))
    refused("front of a folder's name", TypeError, "front needs the table of configurations, not str", lambda: vlmprof.front("own"))
    (own / "b.json").write_text('{"per_sample_results": [NaN')
    refused("a broken file is named", ValueError, "b.json: ", lambda: vlmprof.load(own))
    subprocess.run([os.environ["VLMPROF"], "run", "-p", "What?", "--synthetic", "tiny", "--max_new_tokens", "2", "--profile", "--trace", str(work / "trace.json"), "--quiet"],
                   capture_output=True, check=True)
    slices = [("user_annotation", "mine", 0, 90.5), ("python_function", "f", 1, 60.25), ("cpu_op", "sum", 2, 20), ("cpu_op", "sum", 3, 10), ("cpu_op", "mul", 4, 1),
              ("python_function", "g", 50, 10), ("cpu_op", "relu", 51, 3)]
    (work / "stacks.json").write_text(json.dumps([{"ph": "X", "cat": kind, "name": name, "ts": 1790857026000000 + start + at, "dur": length, "pid": 1, "tid": 1}
                                                  for start in (0, 100, 200) for kind, name, at, length in slices]))
    for path in (work / "trace.json", work / "stacks.json", Path("tests/golden/trace/torch_cpu.pt.trace.json")):
        trace = vlmprof.load_trace(path)
        said = subprocess.run([os.environ["VLMPROF"], "trace", str(path), "--json"], capture_output=True, check=True)
        names = trace["name"].where(trace["kind"] != "python_function", "[Python frames]")
        found = {name: (len(rows), round(rows["self_us"].sum(), 3)) for name, rows in trace[~trace["kind"].isin(results.OUTSIDE)].groupby(names)}
        equal(f"load_trace: {path.name} as in vlmprof trace", found, {row["name"]: (row["calls"], row["host_self_ns"] / 1000) for row in json.loads(said.stdout)["ops"]["rows"]})
        if path.name == "stacks.json":
            equal("load_trace: parents are rows", [trace["name"][trace["parent"][row]] for row in trace.index[trace["name"] == "relu"]], ["g"] * 3)
else:
    refused("no pandas: what to do", ImportError, "pip install pandas", lambda: vlmprof.load(work / "sweep"))
if "pandas" in have and "matplotlib" in have:
    from vlmprof import plots
    for ending, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        drawn = plots.draw([work / "sweep"], work / "figures", ending)
        equal(f"figures as {ending}", [(path.name, path.read_bytes()[:len(magic)]) for path in drawn], [(f"{name}.{ending}", magic) for name in ("front", "stages", "effects")])
    one, more = plots.front(configurations), plots.stages(configurations, samples)
    equal("the front has a panel and names its members", (len(one.axes), len(one.axes[0].texts)), (1, len(vlmprof.front(configurations))))
    panel, boxes = one.axes[0], [name.get_window_extent() for name in one.axes[0].texts]
    equal("names are in the panel, none over another", ([box for box in boxes if not (panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1 and box.y1 < panel.bbox.y1)],
                                                        sum(a.overlaps(b) for a in boxes for b in boxes if a is not b)), ([], 0))
    step = panel.lines[-1]
    equal("the front in steps to the panel's edge", (step.get_drawstyle(), step.get_xdata()[-1]), ("steps-post", panel.get_xlim()[1]))
    equal("a bar for each configuration", len(more.axes[0].get_yticks()), 4)
    none = plots.stages(configurations, samples.drop(columns=[name for name in samples.columns if name.startswith(("stage_", "T_"))]))
    equal("no stages: said in words", (none.axes[0].texts[0].get_text(), none.axes[0].get_legend()), ("no sample has stage times", None))
    table = plots.effect_table(configurations.drop(columns="request_rate").assign(request_rate=1))
    equal("effects: a row for each step, pairs, points", table[["knob", "pairs", "points"]].round(6).values.tolist(), [["tier", 2, 20.0], ["top_k", 2, 10.0]])
    (work / "policy.json").write_text(json.dumps(found := vlmprof.run(["policy", work / "sweep"])))
    lines = [line.get_label() for line in plots.policy(work / "policy.json").axes[0].containers]
    equal("policies over the budgets: a line each, the static one in steps", lines, ["static", "mixture", "oracle"])
    drawn = plots.policy(found).axes[0].lines
    equal("at the budgets and accuracies of the file", [drawn[0].get_drawstyle(), *map(list, zip(*drawn[2].get_xydata()))],
          ["steps-post", *map(list, zip(*((part["budget_ms"], part["policies"][2]["accuracy"]) for part in found["curve"])))])
    one = plots.policy(vlmprof.run(["policy", work / "sweep", "--budget_ms", 1000])).axes[0]
    equal("within one budget: points with intervals, without luck", [[line.get_label() for line in one.containers], [line.has_yerr for line in one.containers]],
          [["static", "mixture", "oracle"], [True] * 3])
    refused("another file", ValueError, "policy --json", lambda: plots.policy({"schema": "vlmprof-sweep-2"}))

# ---- scores of lmms-eval
class Task:
    has_test_docs = staticmethod(lambda: True)
    test_docs = staticmethod(lambda: [{"a": index % 3} for index in range(13)])
    process_results = staticmethod(lambda doc, answers: {"exact_match": {"question": 1, "score": doc["a"] / 2}, "submission": {"id": 1}})


package = types.ModuleType("lmms_eval.tasks")
package.TaskManager = lambda: None
package.get_task_dict = lambda names, manager: {names[0]: Task}
sys.modules.update({"lmms_eval": types.ModuleType("lmms_eval"), "lmms_eval.tasks": package})
found = scores.by_lmms(work / "sweep", "small")
asked = vlmprof.run(["score", "--predictions", work / "sweep"], lines=True)
equal("lmms-eval scores each document", found, [{"id": one["id"], "config": one["config"], "score": one["sample_id"] % 3 / 2} for one in asked])
equal("the program with a task", scores.main([str(work / "sweep"), "--lmms", "small", "-o", str(work / "scores.jsonl")]), 0)
said = subprocess.run([os.environ["VLMPROF"], "score", str(work / "sweep"), "--scores", str(work / "scores.jsonl"), "-o", str(work / "new")], capture_output=True, check=False)
check("vlmprof score --scores reads them", said.returncode == 0, said.stderr.decode())
equal("they are the accuracy", [round(result["accuracy"], 6) for _, result in results.files_of(work / "new")], [0.333333] * 4)
refused("a score outside 0 to 1", scores.ScoreError, "expected 0 to 1", lambda: scores.by_lmms(work / "sweep", "small", scale=0.1))
Task.test_docs = staticmethod(lambda: [])
refused("another data set", scores.ScoreError, "has only 0 documents", lambda: scores.by_lmms(work / "sweep", "small"))
done("tables")
