"""A folder of the goldens made wide enough for vLLM on a CPU: a language model of 32 heads of 32, the tower as it is, random weights in float32.

    python3 wide_checkpoint.py FOLDER OUT

For LLaVA, SmolVLM, InternVL, Qwen2.5-VL, Qwen3-VL, its MoE, Gemma 3 and OLMoE. Processor, tokenizer and template are the folder's. Needs numpy."""
import json
import os
import shutil
import sys
import zlib

import numpy as np

HEADS, HEAD, INNER = 32, 32, 256
WIDTH = HEADS * HEAD
TOWER = ("vision_tower.", "multi_modal_projector.", "model.visual.", "visual.", "model.vision_model.", "model.connector.")
LAST = ("linear_2.", "modality_projection.proj.", "merger.mlp.2.", "linear_fc2.")  # of a connector: what has the language model's width


def shape_of(name, shape, old):
    if name.startswith(TOWER):
        is_connector = "blocks" not in name and "vision_" not in name
        if "mm_input_projection" in name:
            return [shape[0], WIDTH]
        if "multi_modal_projector.linear_1." in name:
            return [WIDTH] + shape[1:]
        if is_connector and any(part in name for part in LAST):
            return [WIDTH] + ([WIDTH] if "projector.linear_2.w" in name else shape[1:])
        return shape
    part = name.split(".")[-2] if name.endswith((".weight", ".bias")) else name.split(".")[-1]
    if part in ("q_norm", "k_norm"):
        return [WIDTH if shape[0] == old["hidden_size"] and "olmoe" in old["model_type"] else HEAD]
    if part in ("q_proj", "k_proj", "v_proj", "o_proj"):
        return [WIDTH] * len(shape)
    sizes = {"gate_proj": [INNER, WIDTH], "up_proj": [INNER, WIDTH], "down_proj": [WIDTH, INNER], "gate": [shape[0], WIDTH]}
    if "experts" in name and part in ("gate_up_proj", "down_proj") and len(shape) == 3:
        return [shape[0], WIDTH, 2 * INNER] if part == "gate_up_proj" else [shape[0], INNER, WIDTH]
    return sizes.get(part, [WIDTH] if len(shape) == 1 else [shape[0], WIDTH])


def values_of(name, shape, is_gemma):
    draw = np.random.default_rng(zlib.crc32(name.encode()))
    values = draw.standard_normal(shape, dtype=np.float32)
    if "norm" in name and name.endswith("weight") and len(shape) == 1:
        is_offset = is_gemma and "vision_tower" not in name
        return (0 if is_offset else 1) + 0.1 * values
    if len(shape) == 1:
        return 0.02 * values
    fan_in = shape[-1] if len(shape) < 4 else int(np.prod(shape[1:]))
    if len(shape) == 3 or "mm_input_projection" in name:
        fan_in = shape[-2]
    if "embed" in name or "position" in name or "pos_embed" in name:
        return (1.0 if is_gemma is False else 0.1) * values
    return values * np.float32(fan_in ** -0.5)


def widen(config):
    text = config.get("text_config", config)
    text.update(hidden_size=WIDTH, num_attention_heads=HEADS, num_key_value_heads=HEADS, intermediate_size=INNER)
    if text.get("head_dim"):
        text["head_dim"] = HEAD
    if text.get("moe_intermediate_size"):
        text["moe_intermediate_size"] = INNER
    rope = text.get("rope_parameters") or {}
    if "mrope_section" in rope:
        rope["mrope_section"] = [6, 5, 5] if rope.get("mrope_interleaved") else [4, 6, 6]
    if text.get("query_pre_attn_scalar"):
        text["query_pre_attn_scalar"] = HEAD
    if config.get("vision_config", {}).get("out_hidden_size"):
        config["vision_config"]["out_hidden_size"] = WIDTH
    config["dtype"] = "float32"
    for part in ("text_config", "vision_config"):
        if part in config:
            config[part]["dtype"] = "float32"


def main():
    folder, out = sys.argv[1:]
    shutil.copytree(folder, out, ignore=lambda *_: ["model.safetensors", "config.json", "config_published_style.json"])
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    old = dict(config.get("text_config", config))
    widen(config)
    with open(os.path.join(out, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    new, data, at = {}, [], 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        values = values_of(name, shape_of(name, entry["shape"], old), config["model_type"] == "gemma3").astype("<f4")
        new[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
        data.append(values.tobytes())
    text = json.dumps({"__metadata__": {"format": "pt"}, **new}).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(out, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(data))


if __name__ == "__main__":
    main()
