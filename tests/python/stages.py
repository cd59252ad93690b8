"""vlmprof.torch on a CPU with random checkpoints: stages by a made-up clock, order and number of the modules, tokens and answers unchanged, a sweep's
files read by report, best, fit and compare, and the same tokens from vlmprof's own engine. stages.py FOLDER [GOLDENS]: GOLDENS has a checkpoint for
each family (../shared/goldens/othermodels); without it two models are made here."""
import json
import os
import sys
from pathlib import Path

import torch
import transformers
from PIL import Image

import vlmprof
import vlmprof.torch
from checks import check, done, equal, refused, skip
from vlmprof.torch.timing import attribute

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(1)
work, goldens = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None

# ---- times from marks whose truth is known
marks = [("begin", "generate", 0), ("begin", "vit", 10), ("begin", "connector", 40), ("end", "connector", 45), ("end", "vit", 50), ("begin", "forward", 52),
         ("begin", "language", 55), ("end", "language", 85), ("end", "forward", 90), ("token", "token", 97),
         ("begin", "forward", 100), ("begin", "language", 101), ("end", "language", 107), ("end", "forward", 108), ("token", "token", 110), ("end", "generate", 115)]
equal("stages of known marks", attribute(marks), ({"prepare": 12, "vit": 35, "connector": 5, "embed": 3, "prefill": 30, "head": 5, "sample": 7, "decode": 13}, [13],
      ["generate", "vit", "connector", "forward", "language", "forward", "language"]))


class Clock:
    """1000 ns at each reading."""
    now = 0

    def __call__(self):
        self.now += 1000
        return self.now


class Words:
    """A processor for the made models: a word is a token, an image a run of placeholders."""
    chat_template, image_id, per_image = None, 3, 16

    def __call__(self, images, text, return_tensors, **_):
        ids = [1] + [self.image_id] * self.per_image + [4 + len(word) % 40 for word in text[0].split()]
        pixels = torch.stack([torch.full((3, 32, 32), sum(image.resize((1, 1)).getpixel((0, 0))) / 765.0) for image in images])
        return {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long), "pixel_values": pixels}

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


def inputs_of(processor):
    text = "What animal is this?"
    if processor.chat_template:
        content = [{"type": "image"}, {"type": "text", "text": text}]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False)
    return {key: value for key, value in processor(images=[picture], text=[text], return_tensors="pt").items() if torch.is_tensor(value)}


for name, model, processor, folder in models():
    inputs = inputs_of(processor)
    how = dict(inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    plain = model.generate(**how)
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())
    with vlmprof.torch.stages(model, clock=Clock()) as stages:
        for _ in range(3):
            timed = model.generate(**how)
    check(f"{name}: tokens are unchanged", torch.equal(plain, timed))
    equal(f"{name}: hooks are gone", (sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()), "generate" in vars(model)),
          (hooks, False))
    equal(f"{name}: one request to warm up, two timed", (len(stages.cold), len(stages.requests)), (1, 2))
    first, second = stages.requests
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
    check(f"{name}: the machine's clock adds up", 0 < real.requests[0].closure <= 1 and real.requests[0].unaccounted_ns >= 0, real.requests[0])
    equal(f"{name}: a call of the model is a request without tokens", (real.requests[1].step_ns, real.requests[1].tokens), ([], []))
    if folder:
        case = json.loads((goldens / name / "image-a" / "case.json").read_text())
        image = goldens / "images" / Path(case["image"]).name
        words = ["run", image, "-p", case["prompt"], "--model", folder, "--weights", "fp32", "--max_new_tokens", len(case["tokens"]), "--ignore_eos"]
        ours = vlmprof.run(words)
        asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": case["prompt"]}]}]
        text = processor.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        theirs = processor(images=[Image.open(image).convert("RGB")], text=[text], return_tensors="pt")
        with vlmprof.torch.stages(model, warmup=0) as same, torch.no_grad():
            model.generate(**{key: value for key, value in theirs.items() if torch.is_tensor(value)}, max_new_tokens=len(case["tokens"]),
                           min_new_tokens=len(case["tokens"]), do_sample=False)
        equal(f"{name}: our engine's image tokens", (same.requests[0].image_tokens, same.requests[0].prompt_tokens),
              (ours["actual_vision_tokens"], ours["total_sequence_length"]))
        if case["tokens"] == same.requests[0].tokens:
            equal(f"{name}: our engine's answer", ours["output_token_ids"], same.requests[0].tokens)
        else:  # the golden has no end tokens barred
            check(f"{name}: our engine's answer up to an end token", ours["output_token_ids"][0] == same.requests[0].tokens[0], ours["output_token_ids"], same.requests[0].tokens)

    # ---- a sweep, read by the program
    for folder_name, clock in (("a", Clock()), ("b", Clock())):
        wrote = vlmprof.torch.sweep(model, processor, records, output_dir=work / name / folder_name, tiers={"low": 112, "high": 224}, num_runs=2, max_new_tokens=3,
                                    prune=("none", "stride:keep=0.5") if stages.has_views else ("none",), ignore_eos=True, clock=clock)
        equal(f"{name}: sweep {folder_name} is whole", [(row["num_ok"], row["num_failed"]) for row in wrote["configurations"]],
              [(2, 0)] * (4 if stages.has_views else 2))
    equal(f"{name}: the same clock gives the same times", [row["T_total_p50"] for row in vlmprof.run(["merge", work / name / "a", "--output_dir", work / name / "a"])["configurations"]],
          [row["T_total_p50"] for row in wrote["configurations"]])
    read = [json.loads(path.read_text()) for path in sorted((work / name / "a").glob("*.json"))]
    row = read[0]["per_sample_results"][0]
    stage_sum = sum(value for value in row["stages"].values() if value)
    check(f"{name}: stages and unaccounted are T_total", abs(stage_sum + row["unaccounted"] - row["T_total"]) < 1e-9, row["stages"], row["T_total"])
    if stages.has_views:
        whole, half = (next(one["per_sample_results"][0] for one in read if one["tier"] == "high" and one["prune"] == prune) for prune in ("none", "stride:keep=0.5"))
        equal(f"{name}: half of the image tokens stay", (half["actual_vision_tokens"], half["kept_vision_tokens"] * 2), (whole["actual_vision_tokens"],) * 2)
    for command in (["report", work / name / "a"], ["best", work / name / "a", "--budget_ms", 1e9], ["fit", work / name / "a", "-o", work / name / "model.json"]):
        check(f"{name}: {command[0]} reads them", bool(vlmprof.run(command)))
    equal(f"{name}: compare pairs equal times", vlmprof.compare(work / name / "a", work / name / "b")["verdict"], "IDENTICAL")

# ---- both precisions, and the model as it was
model, words = made_llava(), Words()
before = {key: value.clone() for key, value in model.state_dict().items()}
wrote = vlmprof.torch.sweep(model, words, records, output_dir=work / "dtypes", dtype=["float32", torch.bfloat16], num_runs=1, max_new_tokens=2)
equal("two precisions are two files", sorted(json.loads(path.read_text())["weights"] for path in (work / "dtypes").glob("*.json")), ["bf16", "fp32"])
check("the weights are the model's own again", all(torch.equal(value, before[key]) for key, value in model.state_dict().items()))

# ---- bad input
sweep = vlmprof.torch.sweep
refused("a second sweep into a folder", FileExistsError, "name another folder", lambda: sweep(model, words, records, output_dir=work / "dtypes"))
refused("an unknown tier", ValueError, "low, medium, high", lambda: sweep(model, words, records, output_dir=work / "x", tiers={"tiny": 3}))
refused("a precision without a name", ValueError, "float32 and bfloat16", lambda: sweep(model, words, records, output_dir=work / "x", dtype=["float16"]))
refused("a prune method that torch's side has not", ValueError, "expected none, stride:keep=SHARE", lambda: sweep(model, words, records, output_dir=work / "x", prune=["fastv:keep=0.5"]))
refused("a record without its image", ValueError, "record 0 has no 'image'", lambda: sweep(model, words, [{"question": "?", "answers": []}], output_dir=work / "x"))
refused("no records", ValueError, "no records", lambda: sweep(model, words, [], output_dir=work / "x"))


class Other(torch.nn.Module):
    """A model of a structure of its own."""

    def __init__(self):
        super().__init__()
        self.eyes, self.bridge, self.brain = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def generate(self):
        return None

    def forward(self, x):
        return self.brain(self.bridge(self.eyes(x)))


refused("an unknown structure", vlmprof.torch.UnknownStructure, "looked for vision_tower, vision_backbone.image_vit, vision_model, visual", lambda: vlmprof.torch.stages(Other()))
refused("and how to name its modules", vlmprof.torch.UnknownStructure, "PATH is one of: eyes, bridge, brain", lambda: vlmprof.torch.stages(Other()))
refused("a model without modules", vlmprof.torch.UnknownStructure, "PATH is one of: none, this model has no modules", lambda: vlmprof.torch.stages(torch.nn.Linear(2, 2)))
refused("what is not a model", TypeError, "expected a torch.nn.Module, such as AutoModelForImageTextToText.from_pretrained gives; got str", lambda: vlmprof.torch.stages("llava"))
refused("a stage that does not exist", ValueError, "the stages are vit, connector, language", lambda: vlmprof.torch.stages(Other(), modules={"eyes": "eyes"}))
with vlmprof.torch.stages(Other(), modules={"vit": "eyes", "connector": "bridge", "language": "brain"}, warmup=0, clock=Clock()) as stages:
    stages.model(torch.zeros(1, 2))
equal("named modules are timed", (stages.requests[0].order, stages.requests[0].stages["vit"]), (["forward", "vit", "connector", "language"], 1000))
os.environ["VLMPROF"] = str(work / "no-program")
done("stages")
