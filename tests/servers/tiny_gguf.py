"""Writes text.gguf and mmproj.gguf: a small vision-language model with random weights that llama.cpp's server loads.

    python3 tiny_gguf.py FAMILY OUT_DIR [--width 64] [--blocks 2] [--vision_width 48] [--vision_blocks 2] [--seed 0]

FAMILY is a name of `vlmprof tile --family`:
  llava_1_5    576 tokens for any image (24 x 24 patches at 336 px)
  qwen2_vl_hf  a count that follows the image's size; the server's limits are --image-min-tokens and --image-max-tokens
Needs the packages gguf and numpy. Tensor names and keys: llama.cpp, tools/mtmd/clip.cpp and src/llama-arch.cpp."""
import argparse
import os

import gguf
import numpy as np

PATCH_PX = 14
HEAD_WIDTH = 16
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789?.,:!"
CHAT = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


class Weights:
    """Adds tensors to a file; all random numbers come from one seed."""

    def __init__(self, path, architecture, rng):
        self.file = gguf.GGUFWriter(path, architecture)
        self.rng = rng

    def random(self, name, *shape):
        self.file.add_tensor(name, (self.rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32))

    def linear(self, name, rows, columns):
        self.random(name + ".weight", rows, columns)
        self.file.add_tensor(name + ".bias", np.zeros(rows, np.float32))

    def norm(self, name, width, bias=True):
        self.file.add_tensor(name + ".weight", np.ones(width, np.float32))
        if bias:
            self.file.add_tensor(name + ".bias", np.zeros(width, np.float32))

    def close(self):
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()


def write_text(path, width, blocks, rng):
    normal, unknown, control, byte = 1, 2, 3, 6  # kinds of tokens
    special = ["<unk>", "<s>", "</s>", "<|vision_start|>", "<|vision_end|>"]
    tokens = special + [f"<0x{i:02X}>" for i in range(256)] + ["\u2581"] + list(LETTERS)
    kinds = [unknown] + [control] * (len(special) - 1) + [byte] * 256 + [normal] * (1 + len(LETTERS))
    scores = [0.0] * len(special) + [-1000.0] * 256 + [-1.0] * (1 + len(LETTERS))
    w = Weights(path, "llama", rng)
    f = w.file
    f.add_name("tiny")
    f.add_file_type(0)
    f.add_context_length(8192)
    f.add_embedding_length(width)
    f.add_block_count(blocks)
    f.add_feed_forward_length(2 * width)
    f.add_head_count(width // HEAD_WIDTH)
    f.add_head_count_kv(width // HEAD_WIDTH)
    f.add_rope_dimension_count(HEAD_WIDTH)
    f.add_layer_norm_rms_eps(1e-5)
    f.add_vocab_size(len(tokens))
    f.add_tokenizer_model("llama")
    f.add_token_list([t.encode() for t in tokens])
    f.add_token_scores(scores)
    f.add_token_types(kinds)
    f.add_unk_token_id(0)
    f.add_bos_token_id(1)
    f.add_eos_token_id(2)
    f.add_add_bos_token(True)
    f.add_chat_template(CHAT)
    w.random("token_embd.weight", len(tokens), width)
    w.norm("output_norm", width, bias=False)
    # Rows of zeros for special and byte tokens: some letter is always likelier. So each token of an answer is a character of its own,
    # and an answer ends at max_tokens.
    output = rng.standard_normal((len(tokens), width)).astype(np.float32)
    output[:len(special) + 256] = 0
    f.add_tensor("output.weight", output)
    for i in range(blocks):
        at = f"blk.{i}."
        w.norm(at + "attn_norm", width, bias=False)
        w.norm(at + "ffn_norm", width, bias=False)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            w.random(at + name + ".weight", width, width)
        w.random(at + "ffn_gate.weight", 2 * width, width)
        w.random(at + "ffn_up.weight", 2 * width, width)
        w.random(at + "ffn_down.weight", width, 2 * width)
    w.close()


def write_projector(path, family, text_width, width, blocks, rng):
    image_px = 336 if family == "llava_1_5" else 448
    w = Weights(path, "clip", rng)
    f = w.file
    f.add_type("mmproj")
    f.add_uint32("general.file_type", 0)
    f.add_bool("clip.has_vision_encoder", True)
    f.add_string("clip.projector_type", "mlp" if family == "llava_1_5" else "qwen2vl_merger")
    f.add_bool("clip.use_gelu", True)
    for key, value in (("image_size", image_px), ("patch_size", PATCH_PX), ("embedding_length", width), ("feed_forward_length", 2 * width),
                       ("block_count", blocks), ("projection_dim", text_width), ("attention.head_count", width // HEAD_WIDTH)):
        f.add_uint32("clip.vision." + key, value)
    f.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    f.add_array("clip.vision.image_mean", [0.48, 0.46, 0.41])
    f.add_array("clip.vision.image_std", [0.27, 0.26, 0.28])
    w.random("v.patch_embd.weight", width, 3, PATCH_PX, PATCH_PX)
    w.norm("v.post_ln", width)
    if family == "llava_1_5":
        w.random("v.class_embd", width)
        w.random("v.position_embd.weight", (image_px // PATCH_PX) ** 2 + 1, width)
        w.norm("v.pre_ln", width)
        merged = width
    else:
        w.random("v.patch_embd.weight.1", width, 3, PATCH_PX, PATCH_PX)  # the second frame of a video
        merged = 4 * width  # 2 x 2 patches make a token
    for i in range(blocks):
        at = f"v.blk.{i}."
        w.norm(at + "ln1", width)
        w.norm(at + "ln2", width)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            w.linear(at + name, width, width)
        w.linear(at + "ffn_up", 2 * width, width)
        w.linear(at + "ffn_down", width, 2 * width)
    w.linear("mm.0", text_width, merged)
    w.linear("mm.2", text_width, text_width)
    w.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=("llava_1_5", "qwen2_vl_hf"))
    parser.add_argument("out_dir")
    for name, default in (("width", 64), ("blocks", 2), ("vision_width", 48), ("vision_blocks", 2), ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    a = parser.parse_args()
    os.makedirs(a.out_dir, exist_ok=True)
    rng = np.random.default_rng(a.seed)
    write_text(os.path.join(a.out_dir, "text.gguf"), a.width, a.blocks, rng)
    write_projector(os.path.join(a.out_dir, "mmproj.gguf"), a.family, a.width, a.vision_width, a.vision_blocks, rng)


if __name__ == "__main__":
    main()
