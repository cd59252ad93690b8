"""Writes the model as a Hugging Face folder with MolmoE's configuration and tensor names, bfloat16."""
import json
import os
import struct

import torch

import model as m

CONFIG = {
    "activation_type": "swiglu", "additional_vocab_size": 16, "alibi": False, "alibi_bias_max": 8.0, "always_start_with_space": True,
    "architectures": ["OLMoForCausalLM"], "attention_dropout": 0.0, "attention_layer_norm": True, "attention_layer_norm_with_affine": True,
    "attention_type": "sdpa", "attn_logit_softcapping": None,
    "auto_map": {"AutoConfig": "config_molmoe.MolmoConfig", "AutoModelForCausalLM": "modeling_molmoe.MolmoForCausalLM"},
    "bias_for_layer_norm": False, "block_group_size": 1, "block_type": "moe", "clip_qkv": None, "crop_mode": "overlap-and-resize-c2", "d_model": m.D,
    "default_inference_len": 65, "do_random_scale": False, "embedding_dropout": 0.0, "embedding_size": None, "final_logit_softcapping": None,
    "fix_image_input_idx": 2, "float32_attention": True, "gin_bindings": None, "head_dim": None, "image_feature_dropout": 0.0,
    "image_padding_embed": "pad_and_partial_pad", "image_pooling_2d": "attention-meanq", "image_pooling_h": 2, "image_pooling_w": 2,
    "image_projector": "mlp", "include_bias": False, "init_cutoff_factor": 3.0, "init_device": "meta", "init_fn": "normal", "init_std": 0.02,
    "initializer_range": 0.02, "layer_norm_eps": 1e-05, "layer_norm_type": "rms", "layer_norm_with_affine": True, "llm_load_path": None,
    "loss_token_weighting": "root_subsegments", "low_cpu_fsdp": True, "max_crops": 12, "max_position_embeddings": 32768, "max_sequence_length": 4096,
    "message_formatting": "role", "mlp_hidden_size": 2 * m.EXPERT_WIDTH, "mlp_ratio": 1, "model_type": "molmo", "moe_capacity_factor": 1.25,
    "moe_dropless": True, "moe_interleave": False, "moe_lbl_in_fp32": False, "moe_log_expert_assignment": False, "moe_loss_weight": 0.0,
    "moe_mlp_impl": "sparse", "moe_num_experts": m.EXPERTS, "moe_shared_expert": False, "moe_top_k": m.TOP_K, "moe_zloss_weight": 0.0,
    "multi_query_attention": None, "n_heads": m.HEADS, "n_kv_heads": None, "n_layers": m.BLOCKS, "new_embedding_init_range": 0.02, "norm_after": False,
    "normalize_input_embeds": False, "overlap_margins": [4, 4], "pad_to": None, "pad_token_id": 1, "pad_tokenizer": False, "precision": "amp_bf16",
    "prompt_override": None, "prompt_type": "uber_model", "qkv_bias": False, "query_pre_attn_scalar": 224, "residual_dropout": 0.1,
    "response_attention_dropout": 0.0, "response_residual_dropout": 0.0, "rope": True, "rope_full_precision": True, "rope_impl": "llama",
    "rope_theta": 10000.0, "scale_logits": False, "system_prompt_kind": "demo_or_style", "transformers_version": "4.45.0.dev0", "unconditioned": False,
    "use_cache": True, "use_cls_feature": False, "use_col_tokens": True, "use_position_ids": True,
    "vision_backbone": {
        "attention_dropout": 0.0, "fsdp_wrap": False, "image_default_input_size": [336, 336], "image_dropout_rate": 0.0, "image_emb_dim": m.VIT_WIDTH,
        "image_head_dim": m.VIT_WIDTH // m.VIT_HEADS, "image_mlp_activations": "quick_gelu", "image_mlp_dim": m.VIT_MLP, "image_model_type": "openai",
        "image_norm_eps": 1e-05, "image_num_heads": m.VIT_HEADS, "image_num_key_value_heads": m.VIT_HEADS, "image_num_layers": m.VIT_BLOCKS,
        "image_num_pos": 577, "image_patch_size": 14, "image_pos_patch_size": 14, "initializer_range": 0.02, "residual_dropout": 0.0,
        "resize_mode": "default"},
    "vit_layers": [t - m.VIT_BLOCKS for t in m.TAPS], "vit_load_path": None, "vocab_size": None, "weight_tying": False}

PREPROCESSOR = {
    "auto_map": {"AutoImageProcessor": "multimodal_preprocessor.MolmoImageProcessor", "AutoProcessor": "preprocessing_molmo.MolmoProcessor"},
    "base_image_input_size": [336, 336], "do_normalize": True, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_padding_mask": True,
    "image_patch_size": 14, "image_processor_type": "MolmoImageProcessor", "image_std": [0.26862954, 0.26130258, 0.27577711],
    "image_token_length_h": 12, "image_token_length_w": 12, "max_crops": 12, "overlap_margins": [4, 4], "processor_class": "MolmoProcessor"}


def tensors_of(tower, llm):
    out = {"lm_head.weight": llm.head, "model.transformer.ln_f.weight": llm.final_norm, "model.transformer.wte.embedding": llm.embedding,
           "model.transformer.wte.new_embedding": torch.zeros(16, m.D)}
    for i, b in enumerate(llm.blocks):
        at, mlp = f"model.transformer.blocks.{i}.attn.", f"model.transformer.blocks.{i}.mlp."
        out[at + "att_proj.weight"] = b.qkv.reshape(3 * m.D, m.D)
        out[at + "attn_out.weight"] = b.out
        for name in ("attn_norm", "q_norm", "k_norm"):
            out[at + name + ".weight"] = getattr(b, name)
        out[mlp + "ff_norm.weight"], out[mlp + "gate.weight"] = b.ff_norm, b.router
        for e in range(m.EXPERTS):
            for name, p in (("gate_proj", b.gate), ("up_proj", b.up), ("down_proj", b.down)):
                out[mlp + f"experts.{e}.{name}.weight"] = p[e]
    v = "model.vision_backbone."
    out[v + "pad_embed"] = torch.zeros(2, 2 * m.VIT_WIDTH)
    for short, name in (("q", "wq"), ("k", "wk"), ("v", "wv"), ("out", "wo")):
        out[v + f"image_pooling_2d.{name}.weight"] = getattr(tower, "pool_" + short)
        out[v + f"image_pooling_2d.{name}.bias"] = getattr(tower, f"pool_{short}_bias")
    for name in ("w1", "w2", "w3"):
        out[v + f"image_projector.{name}.weight"] = getattr(tower, name)
    v += "image_vit."
    out[v + "class_embedding"], out[v + "positional_embedding"], out[v + "patch_embedding.weight"] = tower.class_embedding, tower.positions, tower.patch
    out[v + "pre_ln.weight"], out[v + "pre_ln.bias"] = tower.pre_norm, tower.pre_norm_bias
    for i, b in enumerate(tower.blocks):
        at = v + f"transformer.resblocks.{i}."
        for j, name in enumerate(("wq", "wk", "wv")):
            out[at + f"attention.{name}.weight"], out[at + f"attention.{name}.bias"] = b.qkv[j], b.qkv_bias[j]
        out[at + "attention.wo.weight"], out[at + "attention.wo.bias"] = b.out, b.out_bias
        out[at + "feed_forward.w1.weight"], out[at + "feed_forward.w1.bias"] = b.up, b.up_bias
        out[at + "feed_forward.w2.weight"], out[at + "feed_forward.w2.bias"] = b.down, b.down_bias
        out[at + "attention_norm.weight"], out[at + "attention_norm.bias"] = b.norm1, b.norm1_bias
        out[at + "ffn_norm.weight"], out[at + "ffn_norm.bias"] = b.norm2, b.norm2_bias
    return dict(sorted(out.items()))


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


def write_model(folder, tower, llm, tokens):
    os.makedirs(folder, exist_ok=True)
    header, data = {"__metadata__": {"format": "pt"}}, bytearray()
    for name, tensor in tensors_of(tower, llm).items():
        raw = tensor.detach().bfloat16().contiguous().view(torch.int16).numpy().tobytes()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(data))
    write_json(folder, "config.json", dict(CONFIG, embedding_size=tokens.rows, vocab_size=tokens.vocabulary))
    write_json(folder, "preprocessor_config.json", PREPROCESSOR)
    write_json(folder, "processor_config.json", {"auto_map": {"AutoProcessor": "preprocessing_molmo.MolmoProcessor"}, "processor_class": "MolmoProcessor"})
    for name, value in tokens.files().items():
        write_json(folder, name, value)


@torch.no_grad()
def read_model(folder, tower, llm):
    """what write_model wrote, into modules of the same shapes"""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        data = f.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    for name, tensor in tensors_of(tower, llm).items():  # views of the parameters
        a, b = header[name]["data_offsets"]
        tensor.copy_(torch.frombuffer(bytearray(data[start + a:start + b]), dtype=torch.int16).view(torch.bfloat16).view(header[name]["shape"]))


@torch.no_grad()
def round_to_bf16(module):
    """the weights as they are shipped"""
    for p in module.parameters():
        p.copy_(p.bfloat16().float())
    return module
