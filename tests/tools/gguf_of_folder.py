"""Writes a folder of transformers as llama.cpp's convert_hf_to_gguf.py does: MODEL.gguf and the mmproj file of its tower.

    python3 gguf_of_folder.py FOLDER MODEL.gguf MMPROJ.gguf|- [f32|f16|bf16]

For the classes that vlmprof runs of such files: LLaVA, Idefics3, SmolVLM, InternVL, Qwen2.5-VL, Qwen3-VL, Gemma 3, and their language models;
for llama.cpp alone also Qwen3-VL-MoE.
The tensors' names are the gguf package's own (TensorNameMap); what llama.cpp changes of a tensor is changed here by the same rules.
Needs gguf 0.19.0 and numpy."""
import json
import os
import sys

import gguf
import numpy as np

KINDS = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16}
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "olmoe": "olmoe", "gemma3_text": "gemma3", "qwen2_5_vl_text": "qwen2vl",
                 "qwen2_5_vl": "qwen2vl", "qwen3_vl_text": "qwen3vl", "qwen3_vl_moe_text": "qwen3vlmoe", "qwen3_moe": "qwen3moe"}
PROJECTORS = {"llava": "mlp", "idefics3": "idefics3", "smolvlm": "idefics3", "internvl": "internvl", "qwen2_5_vl": "qwen2.5vl_merger",
              "qwen3_vl": "qwen3vl_merger", "qwen3_vl_moe": "qwen3vl_merger", "gemma3": "gemma3"}
IN_FRONT = ["language_model.model.", "model.language_model.", "model.text_model.", "model."]


def read_tensors(folder):
    """of model.safetensors, in float32"""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        raw = data[entry["data_offsets"][0]:entry["data_offsets"][1]]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[entry["dtype"]]).astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def read_json(folder, *names):
    for name in names:
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return json.load(file)
    return {}


def permute(values, heads):
    """LlamaModel.permute"""
    shape = values.shape
    return values.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def add(writer, name, values, kind):
    """vectors and positions stay in float32"""
    kind = KINDS["f32"] if values.ndim < 2 or "position_embd" in name else KINDS[kind]
    writer.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(values, np.float32), kind), raw_dtype=kind)


def add_vocabulary(w, folder, rows):
    if not os.path.exists(os.path.join(folder, "tokenizer.json")):
        return
    tokenizer = read_json(folder, "tokenizer.json")
    model = tokenizer["model"]
    pieces = model["byte_fallback"]
    texts, kinds, scores = [f"[PAD{i}]" for i in range(rows)], [5] * rows, [-1000.0] * rows
    for text, i in model["vocab"].items():
        texts[i], kinds[i] = text, 1
        if pieces and len(text) == 6 and text.startswith("<0x"):
            kinds[i] = 6
    for token in tokenizer["added_tokens"]:
        texts[token["id"]], kinds[token["id"]] = token["content"], 3 if token["special"] else 4
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    if pieces:  # the merge that comes first has the best score
        for i, text in enumerate(texts):
            scores[i] = -float(len(merges) + i) if kinds[i] == 1 else 0.0
        ids = {text: i for i, text in enumerate(texts)}
        for rank, merge in reversed(list(enumerate(merges))):
            scores[ids[merge.replace(" ", "", 1)]] = -float(rank)
        w.add_tokenizer_model("llama")
        w.add_tokenizer_pre("default")
        w.add_token_scores(scores)
        w.add_add_space_prefix("Prepend" in json.dumps(tokenizer["normalizer"]))
    else:
        w.add_tokenizer_model("gpt2")
        pre = json.dumps(tokenizer.get("pre_tokenizer"))
        w.add_tokenizer_pre("smollm" if "Digits" in pre else "qwen2" if "Split" in pre else "olmo")
        w.add_token_merges(merges)
    w.add_token_list([t.encode() for t in texts])
    w.add_token_types(kinds)
    settings = read_json(folder, "tokenizer_config.json")
    for name, put in (("bos_token", w.add_bos_token_id), ("eos_token", w.add_eos_token_id), ("pad_token", w.add_pad_token_id),
                      ("unk_token", w.add_unk_token_id)):
        text = settings.get(name)
        text = text["content"] if isinstance(text, dict) else text
        if text in texts:
            put(texts.index(text))
    front = (tokenizer.get("post_processor") or {}).get("single", [{}])[0].get("SpecialToken")
    w.add_add_bos_token(front is not None)
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            w.add_chat_template(file.read())


def rope_of(text):
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    rope = rope.get("full_attention", rope)
    return {**rope, "rope_theta": rope.get("rope_theta", text.get("rope_theta", 10000.0))}


def write_language(folder, path, kind, config, tensors):
    text = {**config, **config.get("text_config", {})}
    name = config.get("text_config", {}).get("model_type", config["model_type"])
    architecture = ARCHITECTURES[name]
    w = gguf.GGUFWriter(path, architecture)
    w.add_context_length(text["max_position_embeddings"])
    w.add_embedding_length(text["hidden_size"])
    w.add_block_count(text["num_hidden_layers"])
    w.add_feed_forward_length(text["intermediate_size"])
    w.add_head_count(text["num_attention_heads"])
    w.add_head_count_kv(text["num_key_value_heads"])
    w.add_layer_norm_rms_eps(text["rms_norm_eps"])
    if text.get("head_dim"):
        w.add_key_length(text["head_dim"])
        w.add_value_length(text["head_dim"])
    rope = rope_of(text)
    w.add_rope_freq_base(rope["rope_theta"])
    if rope.get("rope_type") == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if "mrope_section" in rope:
        w.add_rope_dimension_sections(rope["mrope_section"] + [0])
    if architecture in ("qwen3vl", "qwen3vlmoe"):
        w.add_num_deepstack_layers(len(config["vision_config"]["deepstack_visual_indexes"]))
    if architecture == "gemma3":
        w.add_sliding_window(text["sliding_window"])
        kinds = text.get("layer_types") or []
        period = kinds.index("full_attention") + 1 if "full_attention" in kinds else 6
        if period != 6:
            w.add_uint32("gemma3.attention.sliding_window_pattern", period)
    experts = text.get("num_experts") or text.get("num_local_experts")
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(text["num_experts_per_tok"])
        if text.get("moe_intermediate_size"):
            w.add_expert_feed_forward_length(text["moe_intermediate_size"])
    if rope.get("rope_type") == "llama3":  # LlamaModel.generate_extra_tensors
        freqs = rope["rope_theta"] ** (-np.arange(0, text["head_dim"], 2) / text["head_dim"])
        factor, low, high = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = np.clip((rope["original_max_position_embeddings"] * freqs / (2 * np.pi) - low) / (high - low), 0, 1)
        w.add_tensor("rope_freqs.weight", (1 / ((1 - smooth) / factor + smooth)).astype(np.float32))
    add_vocabulary(w, folder, text["vocab_size"])
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[architecture], text["num_hidden_layers"])
    experts = {}
    for full, values in tensors.items():
        front = next((f for f in IN_FRONT if full.startswith(f)), "")
        name = "lm_head.weight" if full.endswith("lm_head.weight") else "model." + full[len(front):]
        if full.startswith(("vision_tower.", "multi_modal_projector.", "model.visual.", "visual.", "model.vision_model.", "model.connector.")):
            continue
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            values = permute(values, text["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"])
        if architecture == "gemma3" and name.endswith("norm.weight"):
            values = values + 1
        if name.endswith("mlp.experts.gate_up_proj"):  # [experts, width, gate and up]
            for part, half in zip(("gate_proj", "up_proj"), np.split(values.swapaxes(1, 2), 2, axis=1)):
                add(w, names.get_name(name.replace("gate_up_proj", part) + ".weight", (".weight",)), half, kind)
            continue
        if name.endswith("mlp.experts.down_proj"):
            add(w, names.get_name(name + ".weight", (".weight",)), values.swapaxes(1, 2), kind)
            continue
        if ".mlp.experts." in name:
            layer, expert, what = name.split(".")[2], int(name.split(".")[5]), name.split(".")[6]
            experts.setdefault(f"model.layers.{layer}.mlp.experts.{what}.weight", {})[expert] = values
            continue
        add(w, names.get_name(name, (".weight", ".bias")), values, kind)
    for name, parts in experts.items():
        add(w, names.get_name(name, (".weight",)), np.stack([parts[i] for i in range(len(parts))]), kind)
    close(w)


def close(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def side_of(size):
    return size[0] if isinstance(size, list) else size


def write_keys(w, config, processor):
    vision, model = config["vision_config"], config["model_type"]
    tower = {"hidden_size": 1152, "num_attention_heads": 16, "intermediate_size": 3072, **vision} if model == "smolvlm" else dict(vision)
    heads, blocks = tower.get("num_attention_heads", tower.get("num_heads")), tower.get("num_hidden_layers", tower.get("depth"))
    patch = side_of(tower["patch_size"])
    w.add_type("mmproj")
    w.add_clip_has_vision_encoder(True)
    w.add_clip_projector_type(PROJECTORS[model])
    w.add_vision_projection_dim(config.get("text_config", config)["hidden_size"])
    w.add_vision_image_size(side_of(tower.get("image_size", int(tower.get("num_position_embeddings", 1600) ** 0.5) * patch)))
    w.add_vision_patch_size(patch)
    w.add_vision_embedding_length(tower["hidden_size"])
    w.add_vision_feed_forward_length(tower["intermediate_size"])
    w.add_vision_block_count(blocks)
    w.add_vision_head_count(heads)
    w.add_vision_image_mean(processor["image_mean"])
    w.add_vision_image_std(processor["image_std"])
    w.add_vision_attention_layernorm_eps(tower.get("layer_norm_eps", 1e-6))
    if model == "qwen2_5_vl":
        w.add_vision_use_silu(True)
        w.add_vision_n_wa_pattern(tower["fullatt_block_indexes"][0] + 1)
        if tower["window_size"] != 112:
            w.add_vision_window_size(tower["window_size"])
    elif model != "llava":
        w.add_vision_use_gelu(True)
    if model.startswith("qwen"):  # which the converter leaves out
        size = processor.get("size", {})
        for put, one, other in ((w.add_vision_min_pixels, "min_pixels", "shortest_edge"), (w.add_vision_max_pixels, "max_pixels", "longest_edge")):
            if one in processor or other in size:
                put(processor.get(one, size.get(other)))
    if model.startswith("qwen3_vl"):
        w.add_vision_spatial_merge_size(tower["spatial_merge_size"])
        w.add_vision_is_deepstack_layers([i in tower["deepstack_visual_indexes"] for i in range(blocks)])
    if model in ("idefics3", "smolvlm"):
        w.add_vision_projector_scale_factor(config.get("scale_factor", 2))
        w.add_vision_preproc_image_size(processor.get("size", {}).get("longest_edge", side_of(tower["image_size"])))
    if model == "internvl":
        w.add_vision_projector_scale_factor(int(1.0 / config["downsample_ratio"]))
        w.add_vision_preproc_min_tiles(processor.get("min_patches", 1))
        w.add_vision_preproc_max_tiles(processor.get("max_patches", 12))
    if model == "gemma3":
        scale = side_of(tower["image_size"]) // patch // int(config["mm_tokens_per_image"] ** 0.5)
        if scale != 4:
            w.add_vision_projector_scale_factor(scale)
    return blocks


def pieces_of(full, values, config):
    """the names in a folder that the converter knows, and its pieces of a tensor"""
    model = config["model_type"]
    name = full.replace("model.visual.", "visual.", 1)
    if model == "internvl":
        if name.startswith("multi_modal_projector."):
            number = {"layer_norm": 0, "linear_1": 1, "linear_2": 3}[name.split(".")[1]]
            return [(f"mm.model.mlp.{number}.{name.split('.')[-1]}", values)]
        name = "model." + name  # Intern-S1's names
        return [(name if name.endswith((".weight", ".bias")) or "cls_token" in name else name + ".weight", values)]
    if model == "gemma3":
        name = name.replace("_weight", ".weight")
        return [(name, values + 1 if "soft_emb_norm.weight" in name else values)]
    if name == "visual.patch_embed.proj.weight":
        return [("v.patch_embd.weight", values[:, :, 0]), ("v.patch_embd.weight.1", values[:, :, 1])]
    if model == "qwen2_5_vl" and ".qkv." in name:
        return [(name.replace("qkv", "qkv"[i]), part) for i, part in enumerate(np.split(values, 3))]
    if model.startswith("qwen3_vl") and "deepstack_merger_list." in name:
        _, _, level, what, end = name.split(".")
        what = what.replace("linear_", "")
        return [(f"v.deepstack.{config['vision_config']['deepstack_visual_indexes'][int(level)]}.{what}.{end}", values)]
    if model.startswith("qwen3_vl") and ".merger." in name:
        _, _, what, end = name.split(".")
        return [({"norm": "v.post_ln.", "linear_fc1": "mm.0.", "linear_fc2": "mm.2."}[what] + end, values)]
    return [(name, values)]


def write_tower(folder, path, kind, config, tensors):
    processor = read_json(folder, "preprocessor_config.json", "processor_config.json")
    processor = processor.get("image_processor", processor)
    w = gguf.GGUFWriter(path, "clip")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, write_keys(w, config, processor))
    for full, values in tensors.items():
        if not full.startswith(("vision_tower.", "multi_modal_projector.", "model.visual.", "visual.", "model.vision_model.", "model.connector.")):
            continue
        if config["model_type"] == "llava" and "post_layernorm" in full:  # convert_image_encoder_to_gguf.py leaves it out: llava.cpp would apply it
            continue
        for name, part in pieces_of(full, values, config):
            if config["model_type"] == "llava" and name.startswith("multi_modal_projector."):
                name = name.replace("linear_1", "linear_0")  # LlavaVisionModel counts as mm.0 and mm.2
            add(w, name if name.startswith(("v.", "mm.")) else names.get_name(name, (".weight", ".bias")) or "?" + name, part, kind)
    close(w)


def write_swapped(path, to):
    """a tower's file as converters of 2023 wrote it: the names of up and down the wrong way round"""
    reader, w = gguf.GGUFReader(path), gguf.GGUFWriter(to, "clip")
    for key, field in reader.fields.items():
        if not key.startswith(("GGUF.", "general.architecture")):
            w.add_key_value(key, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        name = tensor.name.replace("ffn_up", "?").replace("ffn_down", "ffn_up").replace("?", "ffn_down")
        data = tensor.data.view(np.uint16) if tensor.tensor_type == KINDS["bf16"] else tensor.data
        shape = [int(n) for n in tensor.shape[::-1]]
        w.add_tensor(name, data.reshape(shape), raw_shape=shape, raw_dtype=tensor.tensor_type)
    close(w)


def convert(folder, model, projector, kind="f32"):
    config, tensors = read_json(folder, "config.json"), read_tensors(folder)
    write_language(folder, model, kind, config, tensors)
    if projector:
        write_tower(folder, projector, kind, config, tensors)


if __name__ == "__main__":
    convert(*sys.argv[1:2], *(None if path == "-" else path for path in sys.argv[2:]))
