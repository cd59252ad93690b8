#!/usr/bin/env python3
"""Small random checkpoints and what transformers computes for them: tests/golden/othermodels/own_*.

Run in the repository's root with transformers 5.23.0 and torch 2.15.0 (CPU): python tests/tools/make_model_goldens.py [NAME...]
Molmo-7B is not in transformers: MOLMO_FILES names a folder with the modeling_molmo.py, config_molmo.py and image_preprocessing_molmo.py
that stand beside the published Molmo-7B-D-0924 (they need torchvision and einops); without it these two are left out.
Shapes are odd on purpose: heads that share keys by 2, 3, 4 and 6, widths that no kernel likes, tied heads, stretched RoPE, normed
heads, normalised experts. Weights are random and exact in bfloat16; names are those of published checkpoints."""
import copy, functools, importlib, json, os, shutil, struct, sys, tempfile, types
import numpy as np
import torch
import transformers as T
from PIL import Image
from safetensors.torch import load_file, save_file

ROOT = "tests/golden/othermodels"
STEPS = 6
torch.manual_seed(20261123)
torch.set_num_threads(2)


def fill(model):
    gemma = model.config.model_type.startswith("gemma3")  # its own norms are stored without their 1
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name and name.endswith("weight") or name.endswith(("ln_f.weight", "pre_ln.weight")):
                p.copy_(0.1 * torch.randn_like(p) + (0 if gemma and "vision_tower" not in name else 1))
            elif "lambda" in name:
                p.copy_(0.3 + 0.1 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.copy_(0.1 * torch.randn_like(p))
            elif "embed" in name or "position" in name or "cls" in name:
                p.copy_(0.7 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * 1.2 / p[0].numel() ** 0.5 if p.dim() != 3 else torch.randn_like(p) * 1.2 / p.shape[2] ** 0.5)
            if gemma and "embed_tokens" in name:
                p.mul_(0.12)  # it is multiplied by the root of the width
            if name.endswith("mlp.gate.weight"):
                p.mul_(4)  # choices that rounding does not turn over
            p.copy_(p.to(torch.bfloat16).float())


def published(kind, model):
    """state dict -> the names and layouts of published checkpoints"""
    out = {}
    if kind == "molmo2":  # transformers saves it so
        with tempfile.TemporaryDirectory() as folder:
            copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
            saved, names = load_file(f"{folder}/model.safetensors"), [f"model.transformer.wte.{name}embedding" for name in ("", "new_")]
        whole, base = torch.cat([saved[name] for name in names]), model.config.text_config.vocab_size  # it saves halves
        saved.update({names[0]: whole[:base].clone(), names[1]: whole[base:].clone()})
        return saved
    for name, tensor in model.state_dict().items():
        if kind in ("olmoe", "qwen3_moe") and ".mlp.experts." in name:
            base = name.rsplit(".", 1)[0]
            for e in range(tensor.shape[0]):
                if name.endswith("gate_up_proj"):
                    half = tensor.shape[1] // 2
                    out[f"{base}.{e}.gate_proj.weight"], out[f"{base}.{e}.up_proj.weight"] = tensor[e, :half], tensor[e, half:]
                else:
                    out[f"{base}.{e}.down_proj.weight"] = tensor[e]
            continue
        if kind in ("llava", "internvl", "gemma3"):
            name = name.replace("model.language_model.", "language_model.model.").replace("model.multi_modal_projector", "multi_modal_projector")
            name = name.replace("model.vision_tower.", "vision_tower." if kind == "internvl" else "vision_tower.vision_model.")
            name = "language_model." + name if name == "lm_head.weight" else name
        if kind.startswith("qwen") and "lm_head" not in name:
            if kind == "qwen2_5_vl":
                name = name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")
            if name.endswith("experts.gate_up_proj") or name.endswith("experts.down_proj"):
                tensor = tensor.transpose(1, 2)  # published: [expert, in, out]
        if name.endswith("lm_head.weight") and (model.config if kind.startswith("qwen") else model.config.get_text_config()).tie_word_embeddings:
            continue
        out[name] = tensor
    return {k: v.to(torch.bfloat16).contiguous() for k, v in out.items()}


def picture(side, count, seed, width=0):
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[0:side * count, 0:width or side]
    base = np.stack([128 + 90 * np.sin(x / (3.0 + c) + seed) * np.cos(y / (5.0 - c)) for c in range(3)], -1)
    return np.clip(base + rng.randint(-30, 31, base.shape), 0, 255).astype(np.uint8)


TEXT_ONLY = ("olmoe", "gemma3_text", "qwen3_moe", "llama")


def inputs(kind, model, case, mean, std, folder):
    """ids with image tokens, and pixel_values of the crops"""
    cfg, rng = model.config, np.random.RandomState(case + 7)
    text = [int(i) for i in rng.randint(3, 80, 9 + 4 * case)]
    if kind in TEXT_ONLY or case == 0:
        return text, None
    if kind == "molmo":
        return overlapping_inputs(cfg, text, case, folder)
    vision = cfg.vision_config
    if kind.startswith("qwen"):
        return native_inputs(cfg, text, case, mean, std, folder)
    if kind == "molmo2":
        return stitched_inputs(cfg, text, case, folder)
    side = vision.image_size if isinstance(vision.image_size, int) else vision.image_size[0]
    patch = vision.patch_size if isinstance(vision.patch_size, int) else vision.patch_size[0]
    if kind == "gemma3":
        return views_apart(cfg, text, case, mean, std, folder)
    pool = 1 if kind == "llava" else cfg.scale_factor if kind in ("smolvlm", "idefics3") else int(1 / cfg.downsample_ratio)
    crops = 1 if kind == "llava" else case + 1
    token = cfg.image_token_id
    ids = text[:3] + [token] * (crops * (side // patch // pool) ** 2) + text[3:]
    image = picture(side, crops, case)
    Image.fromarray(image).save(f"{folder}/pixels.png", optimize=True)
    mean, std = np.float32(np.float64(mean) * 255), np.float32(np.float64(std) * 255)
    values = (image.reshape(crops, side, side, 3).astype(np.float32) - mean) / std
    values = torch.from_numpy(values.transpose(0, 3, 1, 2).copy())
    return ids, values[None] if kind in ("smolvlm", "idefics3") else values


def views_apart(cfg, text, case, mean, std, folder):
    """one view, or two with text between them: each sees itself both ways"""
    side, token, ids = cfg.vision_config.image_size, cfg.image_token_index, text[:3]
    for view in range(case):
        ids = ids + [token] * cfg.mm_tokens_per_image + text[3 + view:5 + view]
    image = picture(side, case, case)
    Image.fromarray(image).save(f"{folder}/pixels.png", optimize=True)
    mean, std = np.float32(np.float64(mean) * 255), np.float32(np.float64(std) * 255)
    values = (image.reshape(case, side, side, 3).astype(np.float32) - mean) / std
    return ids + text[7:], torch.from_numpy(values.transpose(0, 3, 1, 2).copy())


SIZES = [(97, 61), (110, 203)]  # width, height


def stitched_inputs(cfg, text, case, folder):
    """Molmo2: what its image processor makes of a picture; the tokens of both grids stand side by side"""
    processor = T.Molmo2ImageProcessor(**json.load(open(f"{folder}/../checkpoint/preprocessor_config.json")))
    image = picture(SIZES[case - 1][1], 1, case, SIZES[case - 1][0])
    given = dict(processor(Image.fromarray(image), return_tensors="pt"))
    low_rows, low_cols, rows, cols = given["image_grids"][0].tolist()
    patch, column = cfg.image_patch_id, cfg.image_patch_id + 1
    tokens = [cfg.low_res_image_start_token_id] + ([patch] * low_cols + [column]) * low_rows + [cfg.image_end_token_id]
    tokens += [cfg.image_start_token_id] + ([patch] * cols + [column]) * rows + [cfg.image_end_token_id]
    side, pixels = cfg.vision_config.patch_size, given["pixel_values"]
    across = cfg.vision_config.image_size[0] // side
    levels = ((pixels * 0.5 + 0.5) * 255).round().to(torch.uint8).numpy()
    levels = levels.reshape(-1, across, across, side, side, 3).transpose(0, 1, 3, 2, 4, 5).reshape(-1, across * side, 3)
    Image.fromarray(levels).save(f"{folder}/pixels.png", optimize=True)
    given["kinds"] = [0] * 3 + [1] * len(tokens) + [0] * (len(text) - 3)
    given["image_size"] = list(SIZES[case - 1])
    return text[:3] + tokens + text[3:], given


def overlapping_inputs(cfg, text, case, folder):
    """Molmo-7B: what its image processor makes of a picture; token 1 stands in front of all"""
    vision, first = cfg.vision_backbone, cfg.embedding_size
    side = vision["image_default_input_size"][0] // vision["image_patch_size"] // 2
    given = {"max_crops": cfg.max_crops, "overlap_margins": cfg.overlap_margins, "base_image_input_size": vision["image_default_input_size"],
             "image_token_length_w": side, "image_token_length_h": side, "image_patch_size": vision["image_patch_size"]}
    image = picture(SIZES[case - 1][1], 1, case, SIZES[case - 1][0])
    Image.fromarray(image).save(f"{folder}/picture.png", optimize=True)
    crops, tokens, index, masks = molmo_files().MolmoImageProcessor().preprocess(image, first + 2, first + 3, first, first + 1, **given)
    index = np.where(index >= 0, index + 1, index).astype(np.int32)
    np.save(f"{folder}/image_input_idx.npy", index)
    np.save(f"{folder}/image_masks.npy", masks.astype(np.float32))
    values = {"images": torch.from_numpy(crops)[None], "image_masks": torch.from_numpy(masks)[None], "image_input_idx": torch.from_numpy(index)[None]}
    return [1] + [int(i) for i in tokens] + text, values


GRIDS = {"qwen2_5_vl": [(5, 7), (4, 4)], "qwen3_vl": [(3, 5), (6, 4)], "qwen3_vl_moe": [(1, 6), (4, 5)]}  # rows, columns of merged patches


def native_inputs(cfg, text, case, mean, std, folder):
    """a picture of any size: patches in blocks of merge x merge, channel, time, y, x inside"""
    vision = cfg.vision_config
    patch, merge = vision.patch_size, vision.spatial_merge_size
    rows, cols = GRIDS[cfg.model_type][case - 1]
    ids = text[:3] + [cfg.image_token_id] * (rows * cols) + text[3:]
    image = picture(rows * merge * patch, 1, case, cols * merge * patch)
    Image.fromarray(image).save(f"{folder}/pixels.png", optimize=True)
    mean, std = np.float32(np.float64(mean) * 255), np.float32(np.float64(std) * 255)
    values = ((image.astype(np.float32) - mean) / std).transpose(2, 0, 1)
    values = values.reshape(3, rows, merge, patch, cols, merge, patch).transpose(1, 4, 2, 5, 0, 3, 6)
    values = np.repeat(values[:, :, :, :, :, None], 2, axis=5).reshape(rows * cols * merge * merge, -1)
    grid = torch.tensor([[1, rows * merge, cols * merge]])
    return ids, (torch.from_numpy(values.copy()), grid)


def run_molmo(model, ids, values):
    """as run, by the published files"""
    rows, tokens, ids, kept = [], [], list(ids), []
    hook = model.model.vision_backbone.register_forward_hook(lambda module, given, out: kept.append(out[0][0].detach().float()))
    values = {k: v.to(model.model.transformer.ln_f.weight.dtype) if v.is_floating_point() else v for k, v in (values or {}).items()}
    for step in range(STEPS):
        with torch.no_grad():
            out = model.model(torch.tensor([ids]), output_hidden_states=True, **values)
        if step == 0:
            last = torch.stack([h[0, -1] for h in out.hidden_states]).float()
        rows.append(out.logits[0, -1].float())
        tokens.append(int(rows[-1].argmax()))
        ids.append(tokens[-1])
    hook.remove()
    features = kept[0].reshape(-1, kept[0].shape[-1])[values["image_input_idx"].reshape(-1) >= 0] if kept else None
    return torch.stack(rows), tokens, last, features, None


def run(model, ids, pixels):
    """greedy, every step recomputed: logits [STEPS, vocab], block_last, image features, and what DeepStack gets"""
    if model.config.model_type == "molmo":
        return run_molmo(model, ids, pixels)
    rows, tokens, kept = [], [], {}
    hook = grid = kinds = None
    if isinstance(pixels, dict):
        kinds = pixels["kinds"]
    if isinstance(pixels, tuple):
        pixels, grid = pixels
    holder = getattr(model.model, "multi_modal_projector", None) or getattr(model.model, "connector", None)
    if grid is not None:
        holder = model.model.visual

    def keep(module, given, out):
        if grid is None:
            kept["features"] = (out if kinds is None else out.last_hidden_state).detach().float().clone()
            return
        kept["features"] = out.pooler_output.detach().float().clone()
        levels = getattr(out, "deepstack_features", None)
        kept["deepstack"] = None if not levels else torch.stack([level.detach().float() for level in levels])

    if pixels is not None:
        hook = holder.register_forward_hook(keep)
    ids = list(ids)
    for step in range(STEPS):
        with torch.no_grad():
            extra = {} if pixels is None or kinds is not None else {"pixel_values": pixels.to(model.dtype)}
            if kinds is not None:
                extra = {k: v for k, v in pixels.items() if k not in ("kinds", "image_size")}
                extra["pixel_values"] = extra["pixel_values"].to(model.dtype)
                extra["mm_token_type_ids"] = torch.tensor([kinds + [0] * (len(ids) - len(kinds))])
            if grid is not None:
                marks = torch.tensor([[int(i == model.config.image_token_id) for i in ids]])
                extra.update(image_grid_thw=grid, mm_token_type_ids=marks)
            if model.config.model_type == "gemma3":
                extra["token_type_ids"] = torch.tensor([[int(i == model.config.image_token_index) for i in ids]])
            out = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), output_hidden_states=True,
                        use_cache=False, **extra)
        if step == 0:
            last = torch.stack([h[0, -1] for h in out.hidden_states]).float()
        rows.append(out.logits[0, -1].float())
        tokens.append(int(rows[-1].argmax()))
        ids.append(tokens[-1])
    if hook:
        hook.remove()
    features = kept.get("features")
    return torch.stack(rows), tokens, last, None if features is None else features.reshape(-1, features.shape[-1]), kept.get("deepstack")


def narrow(model):
    low = copy.deepcopy(model).to(torch.bfloat16)
    for (_, a), (_, b) in zip(low.named_buffers(), model.named_buffers()):
        if b.is_floating_point():
            a.data = b.data.clone()  # RoPE's frequencies stay float32
    return low


def make(name, kind, model, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), crops=None):
    folder = f"{ROOT}/own_{name}"
    os.makedirs(f"{folder}/checkpoint", exist_ok=True)
    model.eval()
    fill(model)
    if kind != "molmo":
        model.tie_weights()
    config = model.config.to_dict()
    config["architectures"] = [type(model).__name__]
    json.dump(config, open(f"{folder}/checkpoint/config.json", "w"), indent=1, sort_keys=True, default=str)
    if kind == "molmo2":
        side = config["vision_config"]["image_size"][0]
        json.dump({"image_mean": list(mean), "image_std": list(std), "size": {"height": side, "width": side},
                   "patch_size": config["vision_config"]["patch_size"], **crops}, open(f"{folder}/checkpoint/preprocessor_config.json", "w"))
    elif kind not in TEXT_ONLY + ("molmo",):
        json.dump({"image_mean": list(mean), "image_std": list(std)}, open(f"{folder}/checkpoint/preprocessor_config.json", "w"))
    save_file(published(kind, model), f"{folder}/checkpoint/model.safetensors", metadata={"format": "pt"})
    low = narrow(model)
    for case, case_name in enumerate(("text1", "text2", "text3") if kind in TEXT_ONLY else ("text", "image-a", "image-b")):
        at = f"{folder}/{case_name}"
        os.makedirs(at, exist_ok=True)
        ids, pixels = inputs(kind, model, case, mean, std, at)
        logits, tokens, last, features, deepstack = run(model, ids, pixels)
        double = run(copy.deepcopy(model).double(), ids, pixels)[0].double()
        half = run(low, ids, pixels)[0]
        margins = [float(r.topk(2).values.diff().abs()) for r in logits]
        info = {"input_ids": ids, "tokens": tokens, "margin": min(margins), "image": None if pixels is None else "picture.png" if kind == "molmo" else "pixels.png",
                "logits_vs_float64": float((logits - double).norm() / double.norm())}
        if pixels is not None:
            if kind == "molmo2":
                info["image_size"], info["mm_token_type_ids"] = pixels["image_size"], pixels["kinds"]
            if kind != "molmo":
                info["image_token_id"] = getattr(model.config, "image_token_index", None) or model.config.image_token_id
            np.save(f"{at}/image_features.npy", features.numpy().astype(np.float32))
            if deepstack is not None:
                np.save(f"{at}/deepstack_features.npy", deepstack.numpy().astype(np.float32))
        json.dump(info, open(f"{at}/case.json", "w"))
        json.dump({"rel_l2": float((half[0] - logits[0]).norm() / logits[0].norm())}, open(f"{at}/bf16_error.json", "w"))
        np.save(f"{at}/logits.npy", logits.numpy().astype(np.float32))
        np.save(f"{at}/block_last.npy", last.numpy().astype(np.float32))
        print(name, case_name, len(ids), "margin %.3f noise %.1e bf16 %.1e" % (min(margins), info["logits_vs_float64"],
                                                                              float((half[0] - logits[0]).norm() / logits[0].norm())))


EAGER = {"attn_implementation": "eager"}
TEXT = dict(vocab_size=96, num_hidden_layers=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)
olmoe = T.OlmoeConfig(hidden_size=60, intermediate_size=36, num_attention_heads=6, num_key_value_heads=2, num_experts=5, num_experts_per_tok=3,
                      norm_topk_prob=True, clip_qkv=0.8, rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 5000.0}, **TEXT)
olmoe_b = T.OlmoeConfig(hidden_size=72, intermediate_size=20, num_attention_heads=3, num_key_value_heads=3, num_experts=17, num_experts_per_tok=5, **TEXT)
llava = T.LlavaConfig(
    text_config=T.LlamaConfig(hidden_size=54, intermediate_size=88, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
                              rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, **TEXT),
    vision_config=T.CLIPVisionConfig(hidden_size=36, intermediate_size=52, num_hidden_layers=4, num_attention_heads=3, image_size=50, patch_size=10),
    image_token_index=90, vision_feature_layer=-3)
llava_b = T.LlavaConfig(
    text_config=T.LlamaConfig(hidden_size=64, intermediate_size=70, num_attention_heads=4, num_key_value_heads=2, head_dim=64, **TEXT),
    vision_config=T.CLIPVisionConfig(hidden_size=128, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2, image_size=42, patch_size=14),
    image_token_index=91)
smolvlm = T.SmolVLMConfig(
    text_config=T.LlamaConfig(hidden_size=56, intermediate_size=60, num_attention_heads=4, num_key_value_heads=1, head_dim=12, tie_word_embeddings=True,
                              rope_parameters={"rope_type": "linear", "rope_theta": 20000.0, "factor": 4.0}, **TEXT),
    vision_config=dict(hidden_size=40, intermediate_size=50, num_hidden_layers=3, num_attention_heads=5, image_size=36, patch_size=6),
    image_token_id=90, scale_factor=3, tie_word_embeddings=True)
smolvlm_b = T.SmolVLMConfig(
    text_config=T.LlamaConfig(hidden_size=66, intermediate_size=34, num_attention_heads=6, num_key_value_heads=2, head_dim=22, **TEXT),
    vision_config=dict(hidden_size=72, intermediate_size=66, num_hidden_layers=2, num_attention_heads=1, image_size=32, patch_size=4),
    image_token_id=90, scale_factor=4)
idefics3 = T.Idefics3Config(  # pictures of 40 pixels, 6 patches of 6: the tower does not read the last 4 rows and columns
    text_config=T.LlamaConfig(hidden_size=48, intermediate_size=72, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                              rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "beta_fast": 4.0,
                                               "original_max_position_embeddings": 32}, **TEXT),
    vision_config=dict(hidden_size=36, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3, image_size=40, patch_size=6),
    image_token_id=90, scale_factor=3)
idefics3_b = T.Idefics3Config(  # pictures of 22 pixels, 5 patches of 4
    text_config=T.LlamaConfig(hidden_size=72, intermediate_size=46, num_attention_heads=3, num_key_value_heads=1, head_dim=18, rms_norm_eps=1e-6,
                              tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 3000.0}, **TEXT),
    vision_config=dict(hidden_size=26, intermediate_size=38, num_hidden_layers=3, num_attention_heads=1, image_size=22, patch_size=4),
    image_token_id=90, scale_factor=5, tie_word_embeddings=True)
internvl = T.InternVLConfig(
    text_config=T.Qwen3Config(hidden_size=44, intermediate_size=52, num_attention_heads=6, num_key_value_heads=2, head_dim=64,
                              rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, **TEXT),
    vision_config=dict(hidden_size=48, intermediate_size=36, num_hidden_layers=3, num_attention_heads=3, image_size=[60, 60], patch_size=[10, 10],
                       attention_bias=True), image_token_id=90)
internvl_b = T.InternVLConfig(
    text_config=T.Qwen2Config(hidden_size=84, intermediate_size=100, num_attention_heads=6, num_key_value_heads=1, tie_word_embeddings=True, **TEXT),
    vision_config=dict(hidden_size=32, intermediate_size=70, num_hidden_layers=2, num_attention_heads=2, image_size=[42, 42], patch_size=[14, 14],
                       attention_bias=False), image_token_id=90, downsample_ratio=1.0, tie_word_embeddings=True)
internvl_c = T.InternVLConfig(  # a tower of the 6B kind, and Llama
    text_config=T.LlamaConfig(hidden_size=60, intermediate_size=44, num_attention_heads=6, num_key_value_heads=3, head_dim=12, rms_norm_eps=1e-5,
                              rope_parameters={"rope_type": "default", "rope_theta": 500000.0}, **TEXT),
    vision_config=dict(hidden_size=40, intermediate_size=52, num_hidden_layers=3, num_attention_heads=5, image_size=[56, 56], patch_size=[14, 14],
                       attention_bias=False, norm_type="rms_norm", use_qk_norm=True), image_token_id=90)
def qwen_text(sections, interleaved, **rest):
    rope = {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": sections}
    if interleaved:
        rope["mrope_interleaved"] = True
    return dict(rope_parameters=rope, **{**TEXT, **rest})


qwen2_5 = T.Qwen2_5_VLConfig(
    text_config=qwen_text([2, 1, 2], False, hidden_size=60, intermediate_size=44, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-5,
                          tie_word_embeddings=True),
    vision_config=dict(depth=3, hidden_size=36, intermediate_size=50, num_heads=3, patch_size=6, window_size=36, fullatt_block_indexes=[1],
                       out_hidden_size=60), image_token_id=90, tie_word_embeddings=True)
qwen2_5_b = T.Qwen2_5_VLConfig(
    text_config=qwen_text([3, 5, 2], False, hidden_size=60, intermediate_size=70, num_attention_heads=3, num_key_value_heads=1),
    vision_config=dict(depth=2, hidden_size=64, intermediate_size=36, num_heads=2, patch_size=10, spatial_merge_size=1, window_size=30,
                       fullatt_block_indexes=[], out_hidden_size=60), image_token_id=93)
qwen3 = T.Qwen3VLConfig(
    text_config=qwen_text([3, 2, 2], True, hidden_size=44, intermediate_size=52, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
                          num_hidden_layers=3, tie_word_embeddings=True),
    vision_config=dict(depth=4, hidden_size=36, intermediate_size=58, num_heads=3, patch_size=6, num_position_embeddings=25,
                       deepstack_visual_indexes=[0, 2], out_hidden_size=44), image_token_id=90, tie_word_embeddings=True)
qwen3_b = T.Qwen3VLConfig(
    text_config=qwen_text([24, 20, 20], True, hidden_size=40, intermediate_size=36, num_attention_heads=2, num_key_value_heads=1, head_dim=128),
    vision_config=dict(depth=2, hidden_size=32, intermediate_size=40, num_heads=1, patch_size=4, spatial_merge_size=3, num_position_embeddings=9,
                       deepstack_visual_indexes=[], out_hidden_size=40), image_token_id=90)
qwen3_moe = T.Qwen3VLMoeConfig(
    text_config=qwen_text([4, 3, 3], True, hidden_size=52, intermediate_size=60, num_attention_heads=6, num_key_value_heads=2, head_dim=20,
                          num_experts=7, num_experts_per_tok=3, moe_intermediate_size=26, num_hidden_layers=3),
    vision_config=dict(depth=3, hidden_size=40, intermediate_size=48, num_heads=5, patch_size=6, num_position_embeddings=16,
                       deepstack_visual_indexes=[0, 1, 2], out_hidden_size=52), image_token_id=90)
qwen3_moe_b = T.Qwen3VLMoeConfig(
    text_config=qwen_text([10, 11, 11], True, hidden_size=40, intermediate_size=60, num_attention_heads=4, num_key_value_heads=1, head_dim=64,
                          num_experts=16, num_experts_per_tok=4, moe_intermediate_size=20),
    vision_config=dict(depth=2, hidden_size=24, intermediate_size=30, num_heads=2, patch_size=8, num_position_embeddings=4,
                       deepstack_visual_indexes=[1], out_hidden_size=40), image_token_id=90)
gemma3 = T.Gemma3Config(
    text_config=T.Gemma3TextConfig(hidden_size=60, intermediate_size=52, num_attention_heads=6, num_key_value_heads=2, head_dim=64, sliding_window=7,
                                   query_pre_attn_scalar=41, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                   rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 4.0},
                                                    "sliding_attention": {"rope_type": "default", "rope_theta": 3000.0}},
                                   **{**TEXT, "num_hidden_layers": 3}),
    vision_config=dict(model_type="siglip_vision_model", vision_use_head=False, hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3,
                       image_size=54, patch_size=6), image_token_index=90, boi_token_index=91, eoi_token_index=92, mm_tokens_per_image=9)
gemma3_b = T.Gemma3Config(
    text_config=T.Gemma3TextConfig(hidden_size=44, intermediate_size=70, num_attention_heads=4, num_key_value_heads=1, head_dim=22, sliding_window=20,
                                   query_pre_attn_scalar=22, **{**TEXT, "num_hidden_layers": 7}),
    vision_config=dict(model_type="siglip_vision_model", vision_use_head=False, hidden_size=40, intermediate_size=34, num_hidden_layers=3, num_attention_heads=2,
                       image_size=40, patch_size=10), image_token_index=90, boi_token_index=91, eoi_token_index=92, mm_tokens_per_image=16)
def molmo2_config(text, vision, layers, pooled):
    return T.Molmo2Config(
        text_config=dict(vocab_size=96, additional_vocab_size=9, max_position_embeddings=512, num_hidden_layers=3, **text), vision_config=vision,
        adapter_config=dict(vision_feature_layer=layers, hidden_size=vision["hidden_size"], num_attention_heads=vision["num_attention_heads"],
                            num_key_value_heads=vision["num_attention_heads"], head_dim=vision["head_dim"], intermediate_size=pooled,
                            text_hidden_size=text["hidden_size"]),
        image_start_token_id=96, image_end_token_id=97, image_patch_id=98, low_res_image_start_token_id=100, frame_start_token_id=103, frame_end_token_id=104)


molmo2 = molmo2_config(
    dict(hidden_size=60, intermediate_size=44, num_attention_heads=6, num_key_value_heads=2, head_dim=14, attention_bias=True,
         rope_parameters={"rope_type": "default", "rope_theta": 50000.0}),
    dict(hidden_size=36, intermediate_size=50, num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3, head_dim=12, image_size=[50, 50],
         patch_size=10), [2, 0], 28)
molmo2_b = molmo2_config(
    dict(hidden_size=44, intermediate_size=70, num_attention_heads=4, num_key_value_heads=1, head_dim=22, qk_norm_type="olmo", norm_after=True,
         rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    dict(hidden_size=40, intermediate_size=34, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2, head_dim=20, image_size=[42, 42],
         patch_size=6), [-1, 1, -4], 36)
class MolmoForCausalLM(torch.nn.Module):
    """the published model with its constants (the tower, the layers read, the added tokens) changed"""
    _from_config = classmethod(lambda cls, config, **rest: cls(config))

    def __init__(self, config):
        super().__init__()
        files, vision = molmo_files(), config.vision_backbone
        self.config = config
        self.model = files.Molmo(files.FullMolmoConfig(
            image_padding_embed="pad_and_partial_pad", image_pooling_2d="attention-meanq", attention_layer_norm=config.attention_layer_norm,
            rope_impl="llama", vocab_size=config.vocab_size, max_sequence_length=config.max_position_embeddings, qkv_bias=config.qkv_bias,
            norm_after=config.norm_after, embedding_size=config.embedding_size, embedding_dropout=0, attention_dropout=0, residual_dropout=0,
            weight_tying=False, include_bias=False, d_model=config.hidden_size, mlp_hidden_size=config.intermediate_size,
            n_layers=config.num_hidden_layers, additional_vocab_size=config.additional_vocab_size, n_heads=config.num_attention_heads,
            n_kv_heads=config.num_key_value_heads, rope_theta=config.rope_theta, layer_norm_eps=config.layer_norm_eps,
            layer_norm_type=config.layer_norm_type, vit_layers=config.vit_layers, vision_backbone=files.VisionBackboneConfig(**vision)), init_params=False)


@functools.cache
def molmo_files():
    """the published files as one namespace; the copies at hand resize with TensorFlow, of which torchvision does the same"""
    sys.path.insert(0, os.path.dirname(os.path.abspath(os.environ["MOLMO_FILES"])))
    package = os.path.basename(os.path.abspath(os.environ["MOLMO_FILES"]))
    flow = types.SimpleNamespace(float32="float32", Tensor=(), Variable=(), constant=lambda v: v, clip_by_value=torch.clip)
    flow.image = types.SimpleNamespace(convert_image_dtype=lambda v, dtype: v, ResizeMethod=types.SimpleNamespace(BILINEAR=None), resize=resize_bilinear)
    sys.modules["tensorflow"] = flow
    found = types.SimpleNamespace()
    for name in ("modeling_molmo", "image_preprocessing_molmo"):
        vars(found).update({k: v for k, v in vars(importlib.import_module(f"{package}.{name}")).items() if not k.startswith("__")})
    return found


def resize_bilinear(image, size, method, antialias):
    import torchvision
    from torchvision.transforms.functional import convert_image_dtype
    image = convert_image_dtype(torch.from_numpy(image).permute(2, 0, 1))
    return torchvision.transforms.Resize(size, torchvision.transforms.InterpolationMode.BILINEAR, antialias=antialias)(image).permute(1, 2, 0)


def molmo_config(layers, crops, margins, vision, **rest):
    tower = dict(image_mlp_activations="quick_gelu", image_norm_eps=1e-5, **vision)
    tower["image_default_input_size"] = [tower["image_patch_size"] * round((tower["image_num_pos"] - 1) ** 0.5)] * 2
    tower.update(image_pos_patch_size=tower["image_patch_size"], image_num_key_value_heads=tower["image_num_heads"])
    config = types.SimpleNamespace(
        model_type="molmo", vocab_size=96, embedding_size=96, additional_vocab_size=9, num_hidden_layers=3, max_position_embeddings=512, clip_qkv=None,
        layer_norm_type="rms", tie_word_embeddings=False, weight_tying=False, vit_layers=layers, max_crops=crops, overlap_margins=margins,
        vision_backbone=tower, **rest)
    words = dict(vars(config))
    config.to_dict = lambda: dict(words)
    return config


molmo = molmo_config(
    [-1, -3], 6, [4, 4], dict(image_emb_dim=36, image_num_heads=3, image_head_dim=12, image_mlp_dim=50, image_num_layers=3, image_num_pos=145,
                              image_patch_size=10), hidden_size=60, intermediate_size=88, num_attention_heads=6, num_key_value_heads=2, qkv_bias=True,
    attention_layer_norm=False, norm_after=False, layer_norm_eps=1e-6, rope_theta=1e6)
molmo_b = molmo_config(
    [-2, 0, -1], 5, [2, 2], dict(image_emb_dim=40, image_num_heads=2, image_head_dim=20, image_mlp_dim=34, image_num_layers=4, image_num_pos=37,
                                 image_patch_size=14), hidden_size=48, intermediate_size=140, num_attention_heads=3, num_key_value_heads=1, qkv_bias=False,
    attention_layer_norm=True, norm_after=True, layer_norm_eps=1e-5, rope_theta=1e4)
molmo_c = molmo_config(  # the 72B's kind: eight heads share a key, the tower's layers -2 and -9
    [-2, -9], 6, [4, 4], dict(image_emb_dim=24, image_num_heads=2, image_head_dim=12, image_mlp_dim=32, image_num_layers=10, image_num_pos=145,
                              image_patch_size=10), hidden_size=64, intermediate_size=72, num_attention_heads=8, num_key_value_heads=1, qkv_bias=True,
    attention_layer_norm=False, norm_after=False, layer_norm_eps=1e-5, rope_theta=1e6)
SMALL = dict(hidden_size=32, intermediate_size=24, num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-6)
GEMMA = dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=7)
llama3_text = T.LlamaConfig(**SMALL, head_dim=16, rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                                                  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
                            **{**TEXT, "max_position_embeddings": 16384})
gemma3_text = T.Gemma3TextConfig(**GEMMA, **SMALL, **{**TEXT, "num_hidden_layers": 7})
qwen3_moe_text = T.Qwen3MoeConfig(**SMALL, head_dim=12, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20, norm_topk_prob=True,
                                  rope_parameters={"rope_type": "default", "rope_theta": 300000.0}, **TEXT)
clip = dict(mean=(0.48145466, 0.4578275, 0.40821073), std=(0.26862954, 0.26130258, 0.27577711))
MODELS = (("olmoe_a", "olmoe", olmoe, {}), ("olmoe_b", "olmoe", olmoe_b, {}), ("llava_a", "llava", llava, clip),
                                 ("llava_b", "llava", llava_b, clip), ("smolvlm_a", "smolvlm", smolvlm, {}), ("smolvlm_b", "smolvlm", smolvlm_b, {}),
                                 ("idefics3_a", "idefics3", idefics3, {}), ("idefics3_b", "idefics3", idefics3_b, {}),
                                 ("molmo_a", "molmo", molmo, {}), ("molmo_b", "molmo", molmo_b, {}), ("molmo_c", "molmo", molmo_c, {}),
                                 ("internvl_a", "internvl", internvl, {}), ("internvl_b", "internvl", internvl_b, {}),
                                 ("internvl_c", "internvl", internvl_c, {}),
                                 ("qwen2_5_vl_a", "qwen2_5_vl", qwen2_5, clip), ("qwen2_5_vl_b", "qwen2_5_vl", qwen2_5_b, clip),
                                 ("qwen3_vl_a", "qwen3_vl", qwen3, {}), ("qwen3_vl_b", "qwen3_vl", qwen3_b, {}),
                                 ("qwen3_vl_moe_a", "qwen3_vl_moe", qwen3_moe, {}), ("qwen3_vl_moe_b", "qwen3_vl_moe", qwen3_moe_b, {}),
                                 ("gemma3_a", "gemma3", gemma3, {}), ("gemma3_b", "gemma3", gemma3_b, {}),
                                 ("gemma3_text", "gemma3_text", gemma3_text, {}), ("qwen3_moe_text", "qwen3_moe", qwen3_moe_text, {}),
                                 ("llama3_text", "llama", llama3_text, {}),
                                 ("molmo2_a", "molmo2", molmo2, dict(crops=dict(max_crops=6, overlap_margins=[1, 1], pooling_size=[2, 2]))),
                                 ("molmo2_b", "molmo2", molmo2_b, dict(crops=dict(max_crops=5, overlap_margins=[2, 1], pooling_size=[3, 3]))))
for name, kind, config, rest in MODELS:
    if sys.argv[1:] and name not in sys.argv[1:] or kind == "molmo" and "MOLMO_FILES" not in os.environ:
        continue
    if kind.startswith(("qwen", "gemma", "molmo", "idefics3")) or name == "llama3_text" or name == "internvl_c":
        torch.manual_seed(20261123 + sum(name.encode()))
    cls = {"olmoe": T.OlmoeForCausalLM, "llava": T.LlavaForConditionalGeneration, "smolvlm": T.SmolVLMForConditionalGeneration, "idefics3": T.Idefics3ForConditionalGeneration,
           "internvl": T.InternVLForConditionalGeneration, "molmo": MolmoForCausalLM, "qwen2_5_vl": T.Qwen2_5_VLForConditionalGeneration,
           "gemma3": T.Gemma3ForConditionalGeneration, "molmo2": T.Molmo2ForConditionalGeneration, "qwen3_vl": T.Qwen3VLForConditionalGeneration, "qwen3_vl_moe": T.Qwen3VLMoeForConditionalGeneration,
           "gemma3_text": T.Gemma3ForCausalLM, "llama": T.LlamaForCausalLM, "qwen3_moe": T.Qwen3MoeForCausalLM}[kind]
    config._attn_implementation = config._experts_implementation = "eager"
    make(name, kind, cls._from_config(config, **EAGER), **rest)
