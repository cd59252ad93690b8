#!/usr/bin/env python3
"""A small random InternVL under its original names, and what transformers computes for the same weights: tests/golden/othermodels/own_internvl_chat.

Run in the repository's root with transformers 5.23.0 and torch 2.15.0 (CPU): python tests/tools/make_internvl_chat_golden.py
With the word 6b: own_internvl_chat_6b, whose tower is of the 6B kind (RMS norms, q and k normed, no bias) and whose language model is a Llama.
Names are the inverse of huggingface/transformers' convert_internvl_weights_to_hf.py (015d3b2), config.json has the words of OpenGVLab/InternVL3-1B's,
prompts are those of OpenGVLab/InternVL's conversation.py (internvl2_5) and modeling_internvl_chat.py; tokenizer, pictures and their views are the golden internvl's."""
import copy, json, os, re, shutil, sys
import numpy as np
import torch
import transformers as T
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer

ROOT = "tests/golden/othermodels"
IS_6B = sys.argv[1:] == ["6b"]
FROM, TO, STEPS, TILE, TOKENS = f"{ROOT}/internvl", f"{ROOT}/own_internvl_chat" + "_6b" * IS_6B, 6, 56, 4
SYSTEM = "你是书生·万象，英文名是InternVL，是由上海人工智能实验室、清华大学及多家合作单位联合开发的多模态大语言模型。"
ORIGINAL = ((r"^model\.vision_tower\.", "vision_model."), (r"^model\.language_model\.", "language_model.model."), (r"^lm_head", "language_model.lm_head"),
            (r"encoder\.layer\.", "encoder.layers."), ("cls_token", "class_embedding"), ("position_embeddings", "position_embedding"),
            (r"patch_embeddings\.projection", "patch_embedding"), (r"lambda_(\d)", r"ls\1"), ("attention.projection_layer", "attn.proj"),
            ("layernorm_before", "norm1"), ("layernorm_after", "norm2"), (r"^model\.multi_modal_projector\.layer_norm", "mlp1.0"),
            (r"^model\.multi_modal_projector\.linear_1", "mlp1.1"), (r"^model\.multi_modal_projector\.linear_2", "mlp1.3"))
torch.manual_seed(20261124)
torch.set_num_threads(2)


def fill(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                p.copy_(1 + 0.1 * torch.randn_like(p))
            elif "lambda" in name:
                p.copy_(0.3 + 0.1 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.copy_(0.1 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.7 if "embed" in name or "cls" in name else 1.2 / p[0].numel() ** 0.5))
            p.copy_(p.to(torch.bfloat16).float())


def original(state):
    out = {}
    for name, tensor in state.items():
        part = re.search(r"attention\.([qkv])_proj\.", name) if "vision_tower" in name else None
        if part and part[1] != "q":
            continue
        if part:  # q, k and v are one matrix
            tensor = torch.cat([state[name.replace("q_proj", f"{c}_proj")] for c in "qkv"])
            name = name.replace("attention.q_proj", "attn.qkv")
        for pattern, new in ORIGINAL:
            name = re.sub(pattern, new, name)
        name = re.sub(r"attention\.([qk])_norm", r"attn.\1_norm", name)
        out[name] = tensor.to(torch.bfloat16).contiguous()
    return out


def run(model, ids, pixels):
    rows, tokens, kept, ids = [], [], [], list(ids)
    hook = model.model.multi_modal_projector.register_forward_hook(lambda module, given, out: kept.append(out.detach().float()))
    for step in range(STEPS):
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), output_hidden_states=True,
                        use_cache=False, **({} if pixels is None else {"pixel_values": pixels.to(model.dtype)}))
        if step == 0:
            last = torch.stack([h[0, -1] for h in out.hidden_states]).float()
        rows.append(out.logits[0, -1].float())
        tokens.append(int(rows[-1].argmax()))
        ids.append(tokens[-1])
    hook.remove()
    return torch.stack(rows), tokens, last, kept[0].reshape(-1, kept[0].shape[-1]) if kept else None


text = dict(hidden_size=48, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, vocab_size=448,
            max_position_embeddings=1024, rms_norm_eps=1e-6, tie_word_embeddings=False)
vision = dict(hidden_size=36, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3, layer_norm_eps=1e-6, hidden_act="gelu")
config = T.InternVLConfig(text_config=(T.LlamaConfig if IS_6B else T.Qwen2Config)(rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **text), image_token_id=404,
                          vision_config=dict(image_size=[TILE, TILE], patch_size=[14, 14], attention_bias=not IS_6B, use_qk_norm=IS_6B,
                                             norm_type="rms_norm" if IS_6B else "layer_norm", **vision))
model = T.InternVLForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
fill(model)
low = copy.deepcopy(model).to(torch.bfloat16)
for (_, a), (_, b) in zip(low.named_buffers(), model.named_buffers()):
    if b.is_floating_point():
        a.data = b.data.clone()  # RoPE's frequencies stay float32
os.makedirs(f"{TO}/checkpoint", exist_ok=True)
save_file(original(model.state_dict()), f"{TO}/checkpoint/model.safetensors", metadata={"format": "pt"})
shutil.copy(f"{FROM}/checkpoint/tokenizer.json", f"{TO}/checkpoint/tokenizer.json")
json.dump({"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "downsample_ratio": 0.5, "dynamic_image_size": True, "force_image_size": TILE,
           "llm_config": {"architectures": ["LlamaForCausalLM" if IS_6B else "Qwen2ForCausalLM"], "model_type": "llama" if IS_6B else "qwen2", "rope_theta": 1e6, "hidden_act": "silu", "use_sliding_window": False,
                          "rope_scaling": {"factor": 2.0, "rope_type": "dynamic", "type": "dynamic"}, **text},
           "max_dynamic_patch": 12, "min_dynamic_patch": 1, "pad2square": False, "ps_version": "v2", "select_layer": -1, "template": "internvl2_5",
           "tie_word_embeddings": False, "use_backbone_lora": 0, "use_llm_lora": 0, "use_thumbnail": True,
           "vision_config": {"architectures": ["InternVisionModel"], "model_type": "intern_vit_6b", "image_size": TILE, "patch_size": 14, "num_channels": 3,
                             "norm_type": "rms_norm" if IS_6B else "layer_norm", "qk_normalization": IS_6B, "qkv_bias": not IS_6B, "use_moe": False, **vision}},
          open(f"{TO}/checkpoint/config.json", "w"), indent=1)
mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
json.dump({"crop_size": TILE, "do_center_crop": True, "do_normalize": True, "do_resize": True, "feature_extractor_type": "CLIPFeatureExtractor",
           "image_mean": mean, "image_std": std, "resample": 3, "size": TILE}, open(f"{TO}/checkpoint/preprocessor_config.json", "w"))
tokenizer = Tokenizer.from_file(f"{TO}/checkpoint/tokenizer.json")
for case in ("text", "image-a", "image-b"):
    given, pixels, views = json.load(open(f"{FROM}/{case}/case.json")), None, 0
    os.makedirs(f"{TO}/{case}", exist_ok=True)
    if case != "text":
        shutil.copy(f"{FROM}/{case}/pixels.png", f"{TO}/{case}/pixels.png")
        image = np.asarray(Image.open(f"{TO}/{case}/pixels.png"))
        views = image.shape[0] // TILE
        scaled = (image.reshape(views, TILE, TILE, 3).astype(np.float32) - np.float32(np.float64(mean) * 255)) / np.float32(np.float64(std) * 255)
        pixels = torch.from_numpy(scaled.transpose(0, 3, 1, 2).copy())
    asked = ("<IMG_CONTEXT>\n" if views else "") + given["prompt"]
    prompt = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n"
    expanded = prompt.replace("<IMG_CONTEXT>", "<img>" + "<IMG_CONTEXT>" * TOKENS * views + "</img>")
    ids = tokenizer.encode(expanded).ids
    logits, tokens, last, features = run(model, ids, pixels)
    half = run(low, ids, pixels)[0]
    error, margin = float((half[0] - logits[0]).norm() / logits[0].norm()), min(float(r.topk(2).values.diff().abs()) for r in logits)
    json.dump({"prompt": given["prompt"], "text": prompt, "expanded_text": expanded, "input_ids": ids, "tokens": tokens, "margin": margin,
               "image": given.get("image"), "image_token_id": 404}, open(f"{TO}/{case}/case.json", "w"), ensure_ascii=False)
    json.dump({"rel_l2": error}, open(f"{TO}/{case}/bf16_error.json", "w"))
    np.save(f"{TO}/{case}/logits.npy", logits.numpy())
    np.save(f"{TO}/{case}/block_last.npy", last.numpy())
    if views:
        np.save(f"{TO}/{case}/image_features.npy", features.numpy())
    print(case, len(ids), "margin %.3f bf16 %.1e" % (margin, error))
