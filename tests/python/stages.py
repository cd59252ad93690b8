"""vlmprof.torch on a CPU with random checkpoints: stages, sweeps, A/B. stages.py FOLDER [GOLDENS]: GOLDENS has a checkpoint for each family
(../shared/goldens/othermodels); without it one model is made."""
import contextlib
import io
import itertools
import json
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy
import torch
import transformers
from PIL import Image

import vlmprof
import vlmprof.torch
from checks import check, done, equal, refused, skip
from vlmprof.torch.timing import _Marks, _with_tokens, attribute

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(1)
work, goldens = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None

# ---- times from marks whose truth is known
marks = [("begin", "generate", 0), ("begin", "vit", 10), ("begin", "connector", 40), ("end", "connector", 45), ("end", "vit", 50), ("begin", "forward", 52),
         ("begin", "language", 55), ("end", "language", 85), ("end", "forward", 90), ("token", "token", 97),
         ("begin", "forward", 100), ("begin", "language", 101), ("end", "language", 107), ("end", "forward", 108), ("token", "token", 110), ("end", "generate", 115)]
equal("stages of known marks", attribute(marks)[:3], ({"prepare": 12, "vit": 35, "connector": 5, "embed": 3, "prefill": 30, "head": 5, "sample": 7, "decode": 13}, [13],
      ["generate", "vit", "connector", "forward", "language", "forward", "language"]))
equal("passes of a run of one's own are steps", attribute(_with_tokens([mark for mark in marks if mark[0] != "token"]))[:2],
      ({"prepare": 12, "vit": 35, "connector": 5, "embed": 3, "prefill": 30, "head": 5, "sample": 10, "decode": 8}, [8]))


class Clock:
    now = 0

    def __call__(self):
        self.now += 1000
        return self.now


class Words:
    """A processor for the made models: a word is a token, an image a run of placeholders."""
    chat_template, image_id, per_image = None, 3, 16

    def __call__(self, text, return_tensors, images=(), **_):
        count = len(images) // len(text)
        rows = torch.tensor([[1] + [self.image_id] * self.per_image * count + [4 + len(word) % 40 for word in one.split()] for one in text])
        pixels = [torch.full((3, 32, 32), sum(image.resize((1, 1)).getpixel((0, 0))) / 765.0) for image in images]
        return {"input_ids": rows, "attention_mask": torch.ones_like(rows), **({"pixel_values": torch.stack(pixels)} if pixels else {})}

    def decode(self, ids, **_):
        return " ".join(map(str, ids))


def made_llava():
    text = transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=64,
                                    bos_token_id=1, eos_token_id=2, pad_token_id=0)
    vision = transformers.CLIPVisionConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8)
    return transformers.LlavaForConditionalGeneration(transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_id=3, image_token_index=3)).eval()


def models():
    """(name, model, processor, folder or None) of each family."""
    yield "made LLaVA", made_llava(), Words(), None
    for name in ("llava", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "internvl", "smolvlm", "gemma3", "molmo2") if goldens else ():
        folder = goldens / name / "checkpoint"
        try:
            model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
            yield name, model, transformers.AutoProcessor.from_pretrained(folder), folder
        except (OSError, ValueError, KeyError) as error:
            skip(name, f"transformers {transformers.__version__} does not load it: {str(error).splitlines()[0][:80]}")


records = [{"question": "What animal is this?", "answers": ["cat"] * 10, "image": "samples/cat.jpg"},
           {"question": "What is in the cup on the table?", "answers": ["coffee"] * 10, "image": "samples/coffee.jpg"}]
picture = Image.open("samples/cat.jpg").convert("RGB").resize((200, 150))


def inputs_of(processor, picture=picture, text="What animal is this?"):
    if processor.chat_template:
        content = [{"type": "image"}, {"type": "text", "text": text}]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
    return {key: value for key, value in processor(images=[picture], text=[text], return_tensors="pt").items() if torch.is_tensor(value)}


for name, model, processor, folder in models():
    inputs = inputs_of(processor)
    how = dict(inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    plain = model.generate(**how)
    with vlmprof.torch.stages(model, clock=Clock()) as stages:
        for _ in range(3):
            timed = model.generate(**how)
    check(f"{name}: tokens are unchanged", torch.equal(plain, timed))
    equal(f"{name}: nothing is left in the model", ([module for module in model.modules() if module._compiled_call_impl], "generate" in vars(model)), ([], False))
    equal(f"{name}: the cold request is marked", [one.cold for one in stages.requests], [True, False, False])
    first, second = stages.requests[1:]
    equal(f"{name}: the same request twice", (first.stages, first.order, first.tokens), (second.stages, second.order, second.tokens))
    equal(f"{name}: passes", [first.order.count(part) for part in ("vit", "connector", "language", "forward")][2:], [5, 5])
    check(f"{name}: tower, then connector, then language", first.order.index("vit") < first.order.index("connector") < first.order.index("language"), first.order)
    equal(f"{name}: four steps of 5 readings", first.step_ns, [5000] * 4)
    # a reading at the start of the request and one at its end are in no stage, and one from the last token to generate's end
    equal(f"{name}: unaccounted by the made-up clock", (first.unaccounted_ns, sum(first.stages.values()) + 3000), (3000, first.total_ns))
    equal(f"{name}: tokens of the prompt and of its images", (first.prompt_tokens, first.image_tokens > 0, first.tokens),
          (inputs["input_ids"].shape[1], True, plain[0, inputs["input_ids"].shape[1]:].tolist()))
    with vlmprof.torch.stages(model, warmup=0) as real, torch.no_grad():
        model.generate(**how)
        model(**inputs)
    check(f"{name}: the machine's clock adds up", 0 <= real.requests[0].unaccounted_ns < real.requests[0].total_ns, real.requests[0])
    equal(f"{name}: a call of the model is a request without tokens", (real.requests[1].step_ns, real.requests[1].tokens), ([], []))
    if folder:
        case = json.loads((goldens / name / "image-a" / "case.json").read_text())
        with vlmprof.torch.stages(model) as same, torch.no_grad():
            model(**inputs_of(processor, Image.open(goldens / "images" / Path(case["image"]).name).convert("RGB"), case["prompt"]))
        equal(f"{name}: the golden's tokens", (same.requests[0].image_tokens, same.requests[0].prompt_tokens), (case["image_token_count"], len(case["input_ids"])))

    # ---- a sweep, read by the program
    knobs = {"longest_edge": [112, 224], **({"prune": ["none", "stride:keep=0.5"]} if stages.has_views else {})}
    for folder_name, clock in (("a", Clock()), ("b", Clock())):
        wrote = vlmprof.torch.sweep(model, processor, records, output_dir=work / name / folder_name, knobs=knobs, num_runs=1, max_new_tokens=3, ignore_eos=True, clock=clock,
                                    progress=False)
        equal(f"{name}: sweep {folder_name} is whole", [(row["num_ok"], row["num_failed"]) for row in wrote], [(2, 0)] * (4 if stages.has_views else 2))
    read = [json.loads(Path(row["file"]).read_text()) for row in wrote]
    row, views = read[0]["per_sample_results"][0], {one["knobs"]["longest_edge"]: one["per_sample_results"][0].get("num_views") for one in read}
    check(f"{name}: longest_edge is that of the processor's size", name != "smolvlm" or views[112] < views[224], views)
    check(f"{name}: stages and unaccounted are T_total", abs(sum(row["stages"].values()) + row["unaccounted"] - row["T_total"]) < 1e-9, row["stages"], row["T_total"])
    if stages.has_views:
        whole, half = (next(one["per_sample_results"][0] for one in read if one["knobs"] == {"longest_edge": 224, "prune": prune}) for prune in knobs["prune"])
        equal(f"{name}: half of the image tokens stay", (half["actual_vision_tokens"], half["kept_vision_tokens"] * 2), (whole["actual_vision_tokens"],) * 2)
    for command in (["report", work / name / "a"], ["best", work / name / "a", "--budget_ms", 1e9], ["fit", work / name / "a", "-o", work / name / "model.json"]):
        check(f"{name}: {command[0]} reads them", bool(vlmprof.run(command)))
    equal(f"{name}: compare pairs equal times", vlmprof.compare(work / name / "a", work / name / "b")["verdict"], "IDENTICAL")

# ---- knobs of one's own, and the model as it was
model, words = made_llava(), Words()
before, layers = {key: value.clone() for key, value in model.state_dict().items()}, model.model.language_model.layers
opened, closed, order = [], [], []


def layers_of(model, knobs):
    model.model.language_model.layers = layers[:knobs["layers"]]
    opened.append(knobs["layers"])
    return SimpleNamespace(close=lambda: (closed.append(1), setattr(model.model.language_model, "layers", layers)))


def sweep(folder, records=records, **how):
    how = {"num_runs": 2, "max_new_tokens": 2, "progress": False, "score": lambda answer, record: 0.5, "clock": Clock(), **how}
    return vlmprof.torch.sweep(model, words, records, output_dir=work / folder, **how)


def rows_of(folder):
    return [row for path in sorted((work / folder).glob("*.json")) for row in json.loads(path.read_text())["per_sample_results"]]


knobs = {"layers": [1, 2], "dtype": ["float32", "bfloat16", "float16"], "attn": ["eager", "sdpa"]}
wrote = sweep("own", records[:1], knobs=knobs, apply=layers_of)
equal("each configuration is a file", sorted(tuple(row["knobs"].values()) for row in wrote if row["num_ok"] == 1), sorted(itertools.product(*knobs.values())))
check("the weights and the attention are the model's own again", all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
      and model.config._attn_implementation == "sdpa" and len(model.model.language_model.layers) == 2)
check("what apply returns is closed", len(opened) == len(closed) > 30, len(opened), len(closed))
order = [(line["config"], line["run"]) for line in map(json.loads, (work / "own/points.jsonl").read_text().splitlines()) if "run" in line]
check("configurations alternate, in a new random order", [run for _, run in order[:24]] == [0] * 12 + [1] * 12 and {name for name, _ in order[:12]} == {name for name, _ in order[12:24]}
      and order[:12] != [(name, 0) for name, _ in order[12:24]], order[:24])
heads = [json.loads(Path(row["file"]).read_text()) for row in wrote]
check("no provenance is null", "null" not in json.dumps([[head["provenance"], head["tool_cost"]] for head in heads]), heads[0]["provenance"])
equal("and each configuration's is its own", [[head["provenance"][key] for key in ("attention", "dtype")] for head in heads], [[row["knobs"][key] for key in ("attn", "dtype")] for row in wrote])
equal("report has the knobs as axes", list(vlmprof.run(["report", work / "own"])["e1_stage_decomposition"]["configurations"][0]["knobs"]), list(knobs))

# ---- failures, resuming, Ctrl-C
many = [dict(records[0], id=f"q{index}") for index in range(9)]
calls = []


def inputs_or_stop(processor, record, knobs):
    calls.append((record["sample_id"], knobs["size"]))
    if len(calls) == stop_at:
        raise KeyboardInterrupt
    if record["id"] == bad and knobs["size"] == 2:
        raise MemoryError("too large")
    return vlmprof.torch.default_inputs(processor, {**record, "question": "why " * knobs["size"]}, knobs)


stop_at, bad = 15, "none"  # three calls see whether the knob changes anything
sampled = dict(knobs={"size": [1, 2]}, inputs=inputs_or_stop, num_samples=4, num_runs=1)
with contextlib.redirect_stderr(said := io.StringIO()), contextlib.suppress(SystemExit):
    sweep("stop", many, **sampled)
check("Ctrl-C ends with a sentence", said.getvalue().endswith("stop has the results of the finished runs; resume=True measures the rest\n"), said.getvalue())
equal("Ctrl-C loses nothing", len(rows_of("stop")), len((work / "stop/points.jsonl").read_text().splitlines()) - 2)
equal("the samples are numpy's", sorted({sample for sample, _ in calls}), sorted(numpy.random.RandomState(42).choice(9, 4, replace=False).tolist())[:len({sample for sample, _ in calls})])
stopped = many[calls[-1][0]]["id"]
refused("a second sweep into a folder", FileExistsError, "resume=True", lambda: sweep("stop", many, **sampled))
refused("another sweep is not gone on with", ValueError, "was run with max_new_tokens=2; now it is 3", lambda: sweep("stop", many, resume=True, **{**sampled, "max_new_tokens": 3}))
(work / "stop/points.jsonl").open("a").write('{"config": "cut')
stop_at, bad, had = 0, stopped, len(calls)
wrote = sweep("stop", many, resume=True, **sampled)
equal("resumed by point", (sum(row["num_ok"] + row["num_failed"] for row in wrote), len(calls) - had), (8, 8))
equal("a failure is a row with its reason", [(row["metadata"]["id"], row["reason"]) for row in rows_of("stop") if row["status"] == "failed"], [(bad, "MemoryError: too large")])
refused("or raised", MemoryError, "too large", lambda: sweep("raise", many, on_error="raise", **{**sampled, "num_samples": 9}))
refused("all points fail", RuntimeError, "4 of 4 points failed; the first: record 0: ZeroDivisionError", lambda: sweep("none", knobs={"size": [1, 2]}, inputs=lambda _, record, knobs: knobs["size"] / 0))
ticks = iter(range(0, 10**6, 1000))
with mock.patch.object(sys.modules["vlmprof.torch.sweep"], "cpu_seconds", lambda: tuple((tick := next(ticks)) // part for part in (1, 2, 10, 4))):
    for folder, runs in (("noise", 2), ("noise", 3), ("again", 3)):
        sweep(folder, knobs={"batch": [1, 2]}, clock=None, num_runs=runs, resume=runs == 3)
noise = [json.loads(path.read_text())["noise"] for path in sorted((work / "noise").glob("*.json"))]
equal("noise of a configuration's blocks of runs", [[one[key] for key in ("samples", "steal_percent", "other_cpu_percent", "busy_samples")] for one in noise], [[6, 10.0, 25.0, 6]] * 2)
with mock.patch.object(sys.modules["vlmprof.torch.timing"], "cpu_seconds", lambda: tuple((tick := next(ticks)) // part for part in (1, 2, 10, 4))), vlmprof.torch.stages(model) as noisy:
    model.generate(**words(["What is it ?"], "pt", [picture]), max_new_tokens=2)
check("a table of stages says it", "not quiet: other programs used 25 % of the CPUs, the hypervisor 10 %" in str(noisy), str(noisy))
check("compare says it", "other processes used 25 % of the CPU" in json.dumps(vlmprof.compare(work / "noise", work / "again")))
with contextlib.redirect_stderr(said := io.StringIO()):
    sweep("said", progress=True)
check("progress has the time that is left", "8 of 8 runs, 0 points failed, 0:00 left" in said.getvalue() or "of 6 runs" in said.getvalue(), said.getvalue())

# ---- scores, kinds of requests


def process_results(doc, results):
    return {"exact_match": float(results[0] == doc["target"]), "submission": {"id": 1}}


class Task:
    has_test_docs, process_results = staticmethod(lambda: True), lambda self, doc, results: process_results(doc, results)
    test_docs = staticmethod(lambda: [{"target": "x"}, {"target": answer}])


answer = rows_of("said")[0]["pred"]
equal("a task of lmms-eval knows its documents", [row["accuracy"] for row in sweep("task", [dict(records[0], id=1), dict(records[0], id=0)], score=Task().process_results)]
      + [row["accuracy"] for row in rows_of("task")], [0.5, 1.0, 0.0])
equal("lmms-eval's process_results scores", [row["accuracy"] for row in sweep("lmms", [dict(records[0], doc={"target": answer}), dict(records[0], doc={"target": "x"})], score=process_results)], [0.5])
refused("scores in percent", ValueError, "record 0: the score is 40; expected 0 to 1. The runs are kept", lambda: sweep("percent", score=lambda _, record: 40))
refused("an apply that leaves a hook", ValueError, "other modules or hooks than the first time", lambda: sweep("hook", knobs={"size": [1, 2]}, num_runs=2, apply=lambda model, knobs: model.register_forward_hook(lambda *_: knobs["size"] and None) and None))
refused("handles in a list", ValueError, "apply returned a list; expected None, a context manager", lambda: sweep("list", knobs={"size": [1, 2]}, apply=lambda model, knobs: [knobs["size"]]))
equal("a rule of the program's", (rows_of("own")[0]["accuracy"], sweep("rule", score=None, metric="em")[0]["accuracy"]), (0.5, 0.0))
row = sweep("several", [dict(records[0], images=["samples/cat.jpg", "samples/coffee.jpg"]), {"question": "Why?", "answers": ["x"]}], num_runs=1)[0]
equal("several images, and text only", [(one.get("num_views"), one["actual_vision_tokens"]) for one in rows_of("several")], [(2, 32), (None, 0)])
sweep("batch", [dict(one, prompt_origin="lmms_eval", max_new_tokens=3) for one in records], knobs={"batch": [1, 2], "prune": ["random:keep=0.3"]}, num_runs=1, max_new_tokens=None, ignore_eos=True)
equal("a tool's prompt has its answer length, a batch of pruned ones its tokens", [(one["output_tokens"], one["kept_vision_tokens"]) for one in rows_of("batch")], [(3, 5)] * 4)
equal("a batch is said", [one.get("batch_size", 1) for one in rows_of("batch")], [1, 1, 2, 2])
equal("a run of one's own", sweep("run", run=lambda model, **inputs: "cat" if model(**inputs) else "", score=lambda answer, record: answer == record["answers"][0])[0]["accuracy"], 0.5)

# ---- bad input, before anything is measured
for name, words_of_it, how in (
        ("a knob that nothing applies", "nothing applies 'heads'", dict(knobs={"heads": [1, 2]})), ("a knob that nothing reads", "read 'heads'", dict(knobs={"heads": [1, 2]}, apply=lambda *_: None)),
        ("a knob without a list", "'batch' needs a list", dict(knobs={"batch": 3})), ("a value that is none", "expected numbers, texts", dict(knobs={"batch": [None]})),
        ("no dtype", "dtype 'fp16' is not the name", dict(knobs={"dtype": ["fp16"]})), ("an unknown attention", "knobs: attn 'nope': ", dict(knobs={"attn": ["eager", "nope"]})), ("an unknown pruning", "expected none, stride:keep=SHARE", dict(knobs={"prune": ["fastv:keep=0.5"]})),
        ("levels that change nothing", "knobs: longest_edge 5000 and 6000 give the same inputs for every record", dict(knobs={"longest_edge": [5000, 6000]})),
        ("a near name of an attention", "did you mean sdpa?", dict(knobs={"attn": ["sdap"]})),
        ("a misspelled image", "record 0 has no \"image\", but has \"imgae\"", dict(records=[{"question": "?", "imgae": "samples/cat.jpg"}])),
        ("no runs", "num_runs: expected a whole number of 1 or more, not 0", dict(num_runs=0)), ("an unknown order", "order: expected runs or samples or", dict(order="x")),
        ("an unknown metric", "unknown rule", dict(metric="nope", score=None)), ("no records", "records: the list is empty", dict(records=[])),
        ("a record without a question", "record 0 has no \"question\"", dict(records=[{"answers": []}])),
        ("a picture that is not there", "record 1 (id q): the picture none.jpg does not exist", dict(records=[records[0], {"id": "q", "question": "?", "image": "none.jpg"}]))):
    refused(name, (ValueError, FileNotFoundError, vlmprof.CommandError), words_of_it, lambda how=how: sweep("x", **how))
part = model.model.language_model
whole = part.layers
refused("an apply without undo", ValueError, "apply must undo its change", lambda: sweep("cut", knobs={"layers": [2, 1]}, apply=lambda _, knobs: setattr(part, "layers", part.layers[:knobs["layers"]])))
part.layers = whole
equal("and nothing was measured", [line for line in (work / "x/points.jsonl").read_text().splitlines() if '"run"' in line], [])

# ---- A/B: a clock that runs is moved by what is called, with noise and rare long pauses


def compared(change, seed, cold=1.0, unit=1e6, **how):
    noise, clock, ran = random.Random(seed + 1000), SimpleNamespace(now=0), []

    def spend(name, factor):
        clock.now += round(unit * factor * (cold if [name] != ran[-1:] else 1) * noise.gauss(1, 0.03) * (3 if noise.random() < 0.2 else 1))
        ran.append(name)
        if len(ran) == how.get("stop_at"):
            raise KeyboardInterrupt
    return vlmprof.torch.ab(lambda: spend("a", 1), lambda: spend("b", 1 + change), how.get("pairs", 60), margin=how.get("margin", 2), seed=seed, clock=lambda: clock.now)


found = [compared(0.05, seed) for seed in range(20)]
equal("ab finds 5 % in 60 pairs", [one.verdict for one in found], ["slower"] * 20)
check("and says it", str(found[0]).startswith(f"slower by {found[0].change_percent:.1f} [") and f"; 60 pairs, {found[0].left_out} of 120 runs left out" in str(found[0]), found[0])
equal("nothing in A/A, nor if the side that ran last is 20 % faster", {compared(0, seed, cold).verdict for seed in range(20) for cold in (1.0, 1.2)}, {"same", "undecided"})
equal("same, undecided", (str(compared(0, 1, margin=9))[:15], " pairs needed); A against" in str(compared(0, 0))), ("same within 9 %", True))
equal("verdicts and a gate's exit codes", [(one.verdict, one.exit_code) for one in (compared(-0.1, 1), compared(0.1, 1), compared(0, 0))], [("faster", 0), ("slower", 3), ("undecided", 4)])
refused("calls that are too short", ValueError, " us; calls of less than 100 us cannot be compared: let both functions loop", lambda: compared(0, 1, unit=9e4, cold=1.0))
with contextlib.redirect_stderr(said := io.StringIO()):
    equal("Ctrl-C gives the verdict of the pairs so far", (len(compared(0.5, 1, stop_at=50).a_ns), said.getvalue()), (15, "vlmprof.torch: stopped after 15 of 60 pairs\n"))
refused("too few pairs", ValueError, "pairs: expected 12 or more", lambda: vlmprof.torch.ab(print, print, pairs=3))


class Other(torch.nn.Module):
    """A model of a structure of its own."""

    def __init__(self):
        super().__init__()
        self.eyes, self.bridge, self.brain = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def generate(self):
        return None

    def forward(self, x):
        return self.brain(self.bridge(self.eyes(x)))


refused("an unknown structure", vlmprof.torch.UnknownStructure, "PATH is one of: eyes, bridge, brain", lambda: vlmprof.torch.stages(Other()))
refused("a wrong path", vlmprof.torch.UnknownStructure, "looked for eye in the model and its member model. Name another: ", lambda: vlmprof.torch.stages(Other(), modules={"vit": "eye"}))
refused("what is not a model", TypeError, "expected a torch.nn.Module, such as AutoModelForImageTextToText.from_pretrained gives; got str", lambda: vlmprof.torch.stages("llava"))
named = {"vit": "eyes", "connector": "bridge", "language": "brain"}
with vlmprof.torch.stages(Other(), modules=named, warmup=0, clock=Clock()) as stages:
    stages.model(torch.zeros(1, 2))
equal("named modules are timed", (stages.requests[0].order, stages.requests[0].stages["vit"]), (["forward", "vit", "connector", "language"], 1000))
with vlmprof.torch.stages(Other(), modules={**named, "connector": None}, run=lambda x: stages.model(x)) as stages:
    stages.run(torch.zeros(1, 2))
equal("a model without a connector, and a run of one's own", stages.requests[0].order, ["generate", "forward", "vit", "language"])


# ---- what swallows calls, and what breaks off
def timed(model, call=None, **how):
    with vlmprof.torch.stages(model, modules=named, **how) as stages:
        (call or model)(torch.zeros(1, 2))
    return stages.requests


other = Other()
other.extra = torch.nn.Linear(2, 2)
refused("a module that never began", vlmprof.torch.NeverBegan, "extra (Linear), was not called in this request: the model answered without it",
        lambda: vlmprof.torch.stages(other, modules={**named, "vit": "extra"}).__enter__().model(torch.zeros(1, 2)))
other = Other()
other.eyes.compile(backend="eager")
other.brain = torch.compile(other.brain, backend="eager")
equal("compiled stages are timed from outside", timed(other)[0].order, ["forward", "vit", "connector", "language"])
other = Other()
late = vlmprof.torch.stages(other, modules=named)
other.compile(backend="eager")
refused("a compiled model around the stages", vlmprof.torch.NeverBegan, "a compiled region calls no module; compile eyes itself", lambda: late.__enter__().model(torch.zeros(1, 2)))
refused("compiled while they are open", vlmprof.torch.NeverBegan, "torch.compile compiled Other", lambda: timed(one := Other(), lambda x: (one.compile(backend="eager"), one(x))))
refused("or its wrapper", vlmprof.torch.NeverBegan, "torch.compile compiled Other", lambda: timed(torch.compile(Other(), backend="eager")))
other = Other()
other.brain.forward = lambda x: 1 / 0
with vlmprof.torch.stages(other, modules=named) as stages:
    for _ in range(2):
        with contextlib.suppress(ZeroDivisionError):
            other(torch.zeros(1, 2))
    del other.brain.forward
    other(torch.zeros(1, 2))
equal("a call that fails closes its marks", [one.order for one in stages.requests], [["forward", "vit", "connector", "language"]])
patched = model.generate
model.generate = lambda **how: patched(**how)
patch, how = model.generate, dict(words(["What is it ?"] * 3, "pt", [picture] * 3), max_new_tokens=3, min_new_tokens=3)
with vlmprof.torch.stages(model) as outer, vlmprof.torch.stages(model) as inner:
    model.generate(**how)
equal("stages nest, and a patch of generate stays", (outer.requests[0].order, len(inner.requests), model.generate is patch), (inner.requests[0].order, 1, True))
equal("a batch of three", (outer.requests[0].batch, len(outer.requests[0].tokens), "per request of 3 samples" in str(outer)), (3, 3, True))
with outer:
    refused("open twice", RuntimeError, "already being timed", outer.__enter__)
with torch.profiler.profile() as profile, outer:
    model.generate(**how)
equal("stages are ranges of torch.profiler", {one.key: one.count for one in profile.key_averages() if "vlmprof" in one.key}, {f"vlmprof.{name}": 1 + (name == "decode") for name in ("vit", "connector", "prefill", "decode")})
saved = json.loads(json.dumps(outer.to_dict()))
equal("to_dict and rows", (saved["requests"][0]["cold"], saved["provenance"]["compile"], outer.rows()[0]["total_ms"]), (True, ["none"], saved["requests"][0]["total_ns"] / 1e6))
other = Other()
other.brain.to("meta")
refused("several devices", ValueError, "is on several devices (cpu, meta)", lambda: vlmprof.torch.stages(other, modules=named))
waits = []
torch.accelerator = SimpleNamespace(synchronize=waits.append)
marks = _Marks(SimpleNamespace(type="npu"), None)
marks.begin()
marks.add("begin", "vit")
equal("another accelerator is synchronised at each mark", (len(waits), marks.end()[0] > 0, len(waits)), (2, True, 3))
os.environ["VLMPROF"] = str(work / "no-program")
done("stages")
