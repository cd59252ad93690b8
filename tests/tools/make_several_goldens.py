#!/usr/bin/env python3
"""Several images a prompt: what transformers makes of them, tests/golden/several/MODEL/CASE.

Run in the repository's root with transformers 5.24.0, torch 2.15.0 and torchvision 0.29.2 (CPU): python tests/tools/make_several_goldens.py [MODEL...]
Checkpoints are those of ../shared/goldens/othermodels, with their own processors and templates. A case is small: of the
logits the rows of the first and the last step, of the features every eighth row."""
import json, os, shutil, sys, tempfile
import numpy as np
import torch
import transformers as T
from PIL import Image

ROOT, IMAGES, STEPS = "tests/golden/several", "tests/golden/othermodels/images", 6
torch.set_num_threads(1)
# (text or image) in their order; sizes differ
A, C, D = "mix-200x150.png", "waves-90x60.png", "rings-61x130.png"
CASES = {"two": [(A,), (C,), "What differs?"], "between": ["First ", (C,), "then ", (D,), "and ", (A,), "what comes next?"]}
MODELS = ["smolvlm", "internvl", "qwen2_5_vl", "qwen3_vl", "gemma3"]


def folder_of(model):
    for root in ("../shared/goldens/othermodels", "tests/golden/othermodels"):
        if os.path.exists(f"{root}/{model}/checkpoint/model.safetensors"):
            return f"{root}/{model}/checkpoint"
    sys.exit(f"{model}: no checkpoint here")


def processor_of(folder):
    """5.24 reads the tokens of images from extra_special_tokens alone, where 5.23 did not write them"""
    with tempfile.TemporaryDirectory() as copy:
        for file in os.listdir(folder):
            shutil.copy(f"{folder}/{file}", copy)
        settings = json.load(open(f"{copy}/tokenizer_config.json"))
        named = ("context_image_token", "start_image_token", "end_image_token", "video_token", "boi_token", "eoi_token", "image_token")
        settings["extra_special_tokens"] = {key: settings.pop(key) for key in named if key in settings}
        json.dump(settings, open(f"{copy}/tokenizer_config.json", "w"))
        return T.AutoProcessor.from_pretrained(copy)


def draw():
    y, x = np.mgrid[0:60, 0:90]
    waves = np.stack([128 + 100 * np.sin(x / (7.0 + c)) * np.cos(y / (9.0 - c)) for c in range(3)], -1)
    Image.fromarray(waves.astype(np.uint8) // 48 * 48).save(f"{IMAGES}/{C}", optimize=True)
    y, x = np.mgrid[0:130, 0:61]
    rings = np.stack([128 + 100 * np.cos(np.hypot(x - 30, y - 60 - 9 * c) / (4.0 + c)) for c in range(3)], -1)
    Image.fromarray(rings.astype(np.uint8) // 48 * 48).save(f"{IMAGES}/{D}", optimize=True)


def kept(model):
    """what the connector gives to the language model, and DeepStack's features"""
    out = {}
    inner = model.model
    original = inner.get_image_features

    def wrapped(*args, **rest):
        result = original(*args, **rest)
        features = result.pooler_output if hasattr(result, "pooler_output") else result
        if isinstance(features, (tuple, list)):
            features = torch.cat(list(features))
        if "features" not in out:
            out["features"] = features.reshape(-1, features.shape[-1]).float()
            deep = getattr(result, "deepstack_features", None)
            if deep is not None:
                out["deepstack"] = torch.stack([(level if torch.is_tensor(level) else torch.cat(list(level))).float() for level in deep])
        return result
    inner.get_image_features = wrapped
    return out, lambda: setattr(inner, "get_image_features", original)


def rope_index(model, given):
    """positions of the prompt by axis, and what is added to a plain position behind it; None and 0 without M-RoPE"""
    if not hasattr(model.model, "get_rope_index"):
        return None, 0
    names = ("input_ids", "image_grid_thw", "attention_mask", "mm_token_type_ids")
    places, delta = model.model.get_rope_index(**{name: given[name] for name in names if name in given})
    return places[:, 0].tolist(), int(delta.reshape(-1)[0])


def make(name):
    folder = folder_of(name)
    processor = processor_of(folder)
    model = T.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for case, parts in CASES.items():
        at = f"{ROOT}/{name}/{case}"
        os.makedirs(at, exist_ok=True)
        content = [{"type": "text", "text": p} if isinstance(p, str) else {"type": "image"} for p in parts]
        images = [Image.open(f"{IMAGES}/{p[0]}").convert("RGB") for p in parts if not isinstance(p, str)]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
        given = processor(text=[text], images=[images] if name in ("smolvlm", "gemma3") else images, return_tensors="pt")
        ids = given["input_ids"][0].tolist()
        out, restore = kept(model)
        rows, tokens, cache, step = [], [], None, dict(given)
        places, delta = rope_index(model, given)
        for _ in range(STEPS):  # with a cache: an image token that an answer has by chance is a token like others
            with torch.no_grad():
                made = model(**step, use_cache=True, past_key_values=cache)
            cache = made.past_key_values
            rows.append(made.logits[0, -1].float())
            tokens.append(int(rows[-1].argmax()))
            count = len(ids) + len(tokens)
            step = {"input_ids": torch.tensor([tokens[-1:]]), "attention_mask": torch.ones(1, count, dtype=torch.long)}
            step["position_ids"] = torch.full((3, 1, 1) if places else (1, 1), count - 1 + delta)
        restore()
        info = {"images": [p[0] for p in parts if not isinstance(p, str)], "content": [p if isinstance(p, str) else None for p in parts], "text": text,
                "input_ids": ids, "tokens": tokens, "margin": min(float(r.topk(2).values.diff().abs()) for r in rows),
                "image_token_id": getattr(model.config, "image_token_id", None) or model.config.image_token_index}
        if places:
            info.update(positions=places, rope_delta=delta)
        json.dump(info, open(f"{at}/case.json", "w"), separators=(",", ":"))
        np.save(f"{at}/logits.npy", torch.stack([rows[0], rows[-1]]).numpy().astype(np.float32))
        features = [out["features"]] + list(out.get("deepstack", []))
        np.save(f"{at}/image_features.npy", torch.stack([f[::8] for f in features]).numpy().astype(np.float32))
        print(name, case, len(ids), "ids", len(images), "images", list(out["features"].shape), "margin %.4f" % info["margin"])


draw()
for model in sys.argv[1:] or MODELS:
    make(model)
