"""A folder of the goldens changed so that llama.cpp can run it, or to another class; the model that vlmprof runs is the changed one as well.

    python3 atlas_folders.py smolvlm|qwen3_vl_moe|internvl_llama FOLDER OUT

smolvlm: the vocabulary gets the token of two line ends, in the place of its last merge: llama.cpp looks it up by its text, and an image without it
is "Invalid token". qwen3_vl_moe: one more block that adds nothing, because its output matrices are 0: llama.cpp cannot have DeepStack in the last
block, as here all three have it. internvl_llama: the folder of internvl with a Llama in place of the Qwen2, whose biases go. Needs numpy."""
import json
import os
import shutil
import sys

import numpy as np


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)


def two_line_ends(out):
    path = os.path.join(out, "tokenizer.json")
    tokenizer = read(path)
    model = tokenizer["model"]
    last = model["merges"].pop()
    name = "".join(last) if isinstance(last, list) else last.replace(" ", "", 1)
    model["vocab"] = {"ĊĊ" if text == name else text: i for text, i in model["vocab"].items()}
    model["merges"].insert(0, ["Ċ", "Ċ"] if isinstance(last, list) else "Ċ Ċ")
    write(path, tokenizer)


def read_weights(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), file.read()


def write_weights(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def llama_in_place(out):
    path = os.path.join(out, "config.json")
    config = read(path)
    text = config["text_config"]
    keys = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "rms_norm_eps",
            "rope_parameters", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id", "dtype", "tie_word_embeddings")
    config["text_config"] = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "attention_bias": False,
                             "head_dim": text["hidden_size"] // text["num_attention_heads"], **{key: text[key] for key in keys if key in text}}
    write(path, config)
    path = os.path.join(out, "model.safetensors")
    header, data = read_weights(path)
    new, kept = {}, b""
    for name, entry in header.items():
        if name != "__metadata__" and not ("language_model" in name and name.endswith("_proj.bias")):
            part = data[entry["data_offsets"][0]:entry["data_offsets"][1]]
            new[name] = {**entry, "data_offsets": [len(kept), len(kept) + len(part)]}
            kept += part
    write_weights(path, {"__metadata__": {"format": "pt"}, **new}, kept)


def idle_block(out):
    path = os.path.join(out, "config.json")
    config = read(path)
    text = config["text_config"]
    old, new = (f"language_model.layers.{text['num_hidden_layers'] + i}." for i in (-1, 0))
    text["num_hidden_layers"] += 1
    write(path, config)
    path = os.path.join(out, "model.safetensors")
    header, data = read_weights(path)
    for name, entry in list(header.items()):
        if old not in name:
            continue
        part = data[entry["data_offsets"][0]:entry["data_offsets"][1]]
        if "o_proj" in name or "down_proj" in name:
            part = np.zeros(len(part), np.uint8).tobytes()
        header[name.replace(old, new)] = {**entry, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    write_weights(path, header, data)


def main():
    kind, folder, out = sys.argv[1:]
    shutil.copytree(folder, out)
    os.remove(os.path.join(out, "config_published_style.json"))
    {"smolvlm": two_line_ends, "qwen3_vl_moe": idle_block, "internvl_llama": llama_in_place}[kind](out)


if __name__ == "__main__":
    main()
