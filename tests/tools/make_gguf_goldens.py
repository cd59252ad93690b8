"""Writes the golden files of tests/golden/gguf.

    python3 make_gguf_goldens.py OUT_DIR

types.gguf, types.npy    rows of each type with random bits, and their values by the gguf package's dequantize
NAME.gguf, NAME.json     small language models of random weights; ids of texts and greedy answers of llama.cpp's server from the same file
rope.gguf                Llama 3.2's frequencies
llava-mmproj.gguf        a tower of LLaVA's kind that goes with llama.gguf; llava.json: answers about picture.png, which has its size
Needs gguf 0.19.0, numpy and xllamacpp 2026.10 (llama.cpp). A model whose answers hang on a margin under 0.05 nats is drawn again."""
import base64
import json
import os
import struct
import sys
import zlib

import gguf
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers"))
import conform

HALVES = {"Q8_0": [0], "Q5_0": [0], "Q4_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}  # where a block has scales
WIDTH, HEADS, KV_HEADS, HIDDEN, EXPERTS = 32, 2, 1, 64, 4
HEAD = WIDTH // HEADS
SIDE_PX, PATCH_PX, MEAN, STD = 32, 8, [0.5, 0.4375, 0.375], [0.25, 0.25, 0.3125]
TEXTS = ["hello there", "the 12 theatres, 3.5 km; she said:\n\tno!", "  two  spaces  ", "caf\u00e9 \u4e2d\u6587 \U0001f600", "I'll they're THE'S", ""]
PROMPTS = ["the hell", "he said 42", "to the other"]
WORDS = "the he hell hello other there said 12".split()


def write_types(out):
    rng = np.random.default_rng(27)
    writer = gguf.GGUFWriter(os.path.join(out, "types.gguf"), "llama")
    values = []
    for name in ("F32", "F16", "BF16", "Q8_0", "Q5_0", "Q4_0", "Q4_K", "Q6_K"):
        kind = gguf.GGMLQuantizationType[name]
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        if name in HALVES:
            raw = rng.integers(0, 256, (2 * 512 // block, block_bytes), dtype=np.uint8)
            for at in HALVES[name]:
                halves = (rng.standard_normal(len(raw)) * 10.0 ** rng.integers(-6, 3, len(raw))).astype(np.float16)
                raw[:, at:at + 2] = halves.view(np.uint8).reshape(-1, 2)
            raw = raw.reshape(2, -1)
        else:
            plain = (rng.standard_normal((2, 512)) * 10.0 ** rng.integers(-8, 4, (2, 512))).astype(np.float32)
            raw = {"F32": plain, "F16": plain.astype(np.float16)}.get(name)
            if raw is None:
                raw = gguf.quants.quantize(plain, kind)
        writer.add_tensor(name.lower(), raw, raw_dtype=kind)
        values.append(gguf.quants.dequantize(raw, kind).astype(np.float32).reshape(2, 512))
    close(writer)
    np.save(os.path.join(out, "types.npy"), np.stack(values))


def write_rope(path):
    """what LlamaModel.generate_extra_tensors of llama.cpp's converter writes for Llama 3.2"""
    w, factors = gguf.GGUFWriter(path, "llama"), []
    w.add_context_length(131072)
    w.add_embedding_length(64)
    w.add_block_count(1)
    w.add_feed_forward_length(32)
    w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_freq_base(500000.0)
    for i in range(0, 64, 2):
        wavelength = 2 * np.pi * 500000.0 ** (i / 64)
        smooth = (8192 / wavelength - 1) / (4 - 1)
        factors.append(1.0 if wavelength < 8192 / 4 else 32.0 if wavelength > 8192 else 1 / ((1 - smooth) / 32 + smooth))
    w.add_tensor("rope_freqs.weight", np.array(factors, np.float32))
    w.add_tensor("token_embd.weight", np.zeros((8, 64), np.float32))
    close(w)


def close(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def pieces():
    """SentencePiece: bytes, characters, words and what they are made of"""
    special = ["<unk>", "<s>", "</s>"]
    letters = ["\u2581"] + sorted(set("abcdefghijklmnopqrstuvwxyzTHES'0123456789.,:;!\u00e9"))
    made = []
    for word in WORDS:
        made += [word[:i] for i in range(2, len(word) + 1)] + ["\u2581" + word[:i] for i in range(1, len(word) + 1)]
    made = sorted(set(made), key=lambda text: (len(text), text))
    tokens = special + [f"<0x{i:02X}>" for i in range(256)] + letters + made + ["<image>"]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(letters) + len(made)) + [3]
    scores = [0.0] * 259 + [-float(i) for i in range(len(letters) + len(made))] + [0.0]
    return tokens, kinds, scores


def byte_pairs():
    """byte-level BPE: GPT-2's alphabet, and merges that make the words"""
    shown = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    alphabet = {b: chr(b) for b in shown}
    for i, b in enumerate(b for b in range(256) if b not in shown):
        alphabet[b] = chr(256 + i)
    tokens, merges = [alphabet[b] for b in range(256)], []
    for word in WORDS:
        for text in (word, "\u0120" + word):
            for i in range(2, len(text) + 1):
                if text[:i] not in tokens:
                    tokens.append(text[:i])
                    merges.append(text[:i - 1] + " " + text[i - 1])
    return tokens + ["<|end|>", "<|user|>"], [1] * len(tokens) + [3, 4], merges


def write_model(path, architecture, pre, seed):
    rng = np.random.default_rng(seed)
    w = gguf.GGUFWriter(path, architecture)
    w.add_context_length(128)
    w.add_embedding_length(WIDTH)
    w.add_block_count(1)
    w.add_feed_forward_length(HIDDEN if architecture != "olmoe" else HIDDEN // 4)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS if architecture != "olmoe" else HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_freq_base(5000.0)
    if architecture == "olmoe":
        w.add_expert_count(EXPERTS)
        w.add_expert_used_count(2)
    if pre:
        tokens, kinds, merges = byte_pairs()
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_merges(merges)
        w.add_eos_token_id(len(tokens) - 2)
    else:
        tokens, kinds, scores = pieces()
        w.add_tokenizer_model("llama")
        w.add_token_scores(scores)
        w.add_bos_token_id(1)
        w.add_eos_token_id(2)
        w.add_unk_token_id(0)
        w.add_add_bos_token(True)
    w.add_token_list([t.encode() for t in tokens])
    w.add_token_types(kinds)
    w.add_chat_template("{{ messages[0]['content'] }}")

    def random(name, *shape, kind="F32", scale=1.0):
        values = (scale * rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)
        raw = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind]) if kind != "F32" else values
        w.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType[kind])

    def norm(name, width):
        w.add_tensor(name, (1 + 0.1 * rng.standard_normal(width)).astype(np.float32))

    tied = pre == "smollm"
    random("token_embd.weight", len(tokens), WIDTH, kind="F32" if tied else "Q4_0", scale=4.0)
    norm("output_norm.weight", WIDTH)
    if not tied:
        random("output.weight", len(tokens), WIDTH, kind="BF16" if pre else "F16", scale=4.0)
    kv = HEAD * (KV_HEADS if architecture != "olmoe" else HEADS)
    norm("blk.0.attn_norm.weight", WIDTH)
    norm("blk.0.ffn_norm.weight", WIDTH)
    for name, rows in (("attn_q", WIDTH), ("attn_k", kv), ("attn_v", kv)):
        random(f"blk.0.{name}.weight", rows, WIDTH, scale=2.0)
        if architecture == "qwen2":
            w.add_tensor(f"blk.0.{name}.bias", rng.standard_normal(rows).astype(np.float32))
    random("blk.0.attn_output.weight", WIDTH, WIDTH)
    if architecture == "qwen3":
        norm("blk.0.attn_q_norm.weight", HEAD)
        norm("blk.0.attn_k_norm.weight", HEAD)
    if architecture == "olmoe":
        norm("blk.0.attn_q_norm.weight", WIDTH)
        norm("blk.0.attn_k_norm.weight", kv)
        random("blk.0.ffn_gate_inp.weight", EXPERTS, WIDTH)
        random("blk.0.ffn_gate_exps.weight", EXPERTS, HIDDEN // 4, WIDTH, scale=3.0)
        random("blk.0.ffn_up_exps.weight", EXPERTS, HIDDEN // 4, WIDTH, scale=3.0)
        random("blk.0.ffn_down_exps.weight", EXPERTS, WIDTH, HIDDEN // 4, scale=3.0)
    else:
        random("blk.0.ffn_gate.weight", HIDDEN, WIDTH, scale=2.0)
        random("blk.0.ffn_up.weight", HIDDEN, WIDTH, scale=2.0)
        random("blk.0.ffn_down.weight", WIDTH, HIDDEN, scale=2.0)
    close(w)


def write_tower(path, seed):
    """CLIP of two blocks, of which the last does not run, and two matrices"""
    rng = np.random.default_rng(seed)
    w = gguf.GGUFWriter(path, "clip")
    w.add_type("mmproj")
    w.add_bool("clip.has_vision_encoder", True)
    w.add_string("clip.projector_type", "mlp")
    for key, value in (("image_size", SIDE_PX), ("patch_size", PATCH_PX), ("embedding_length", WIDTH), ("feed_forward_length", HIDDEN * 3 // 4),
                       ("block_count", 2), ("projection_dim", WIDTH), ("attention.head_count", HEADS)):
        w.add_uint32("clip.vision." + key, value)
    w.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    w.add_array("clip.vision.image_mean", MEAN)
    w.add_array("clip.vision.image_std", STD)

    def random(name, *shape, scale=1.0):
        w.add_tensor(name, (scale * rng.standard_normal(shape) * int(np.prod(shape[1:])) ** -0.5).astype(np.float32))

    def vector(name, width, middle):
        w.add_tensor(name, (middle + 0.1 * rng.standard_normal(width)).astype(np.float32))

    def norm(name):
        vector(name + ".weight", WIDTH, 1.0)
        vector(name + ".bias", WIDTH, 0.0)

    def linear(name, rows, columns, scale=1.0):
        random(name + ".weight", rows, columns, scale=scale)
        vector(name + ".bias", rows, 0.0)

    random("v.class_embd", WIDTH)
    random("v.patch_embd.weight", WIDTH, 3, PATCH_PX, PATCH_PX)
    random("v.position_embd.weight", (SIDE_PX // PATCH_PX) ** 2 + 1, WIDTH)
    norm("v.pre_ln")
    for i in range(2):
        norm(f"v.blk.{i}.ln1")
        norm(f"v.blk.{i}.ln2")
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            linear(f"v.blk.{i}.{name}", WIDTH, WIDTH, scale=2.0)
        linear(f"v.blk.{i}.ffn_up", HIDDEN * 3 // 4, WIDTH)
        linear(f"v.blk.{i}.ffn_down", WIDTH, HIDDEN * 3 // 4)
    linear("mm.0", WIDTH, WIDTH)
    linear("mm.2", WIDTH, WIDTH, scale=4.0)
    close(w)


def picture():
    """colours that change everywhere"""
    y, x = np.mgrid[0:SIDE_PX, 0:SIDE_PX].astype(np.float64) / SIDE_PX
    return np.stack([127 + 120 * np.sin(9 * x + 4 * y), 255 * y, 127 + 120 * np.cos(7 * x * y)], axis=-1).astype(np.uint8)


def write_picture(path):
    rows = b"".join(b"\0" + row.tobytes() for row in picture())

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE_PX, SIDE_PX, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


class Reference:
    """LLaVA of llama.gguf and llava-mmproj.gguf in float64, as transformers has it: the class token stands before the patches. llama.cpp's
    (tools/mtmd/models/llava.cpp) puts it behind them and leaves the first patch out instead; class_last=True gives its numbers."""

    def __init__(self, out, class_last):
        self.tower, self.text = ({t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64).reshape([int(n) for n in t.shape[::-1]])
                                  for t in gguf.GGUFReader(os.path.join(out, name)).tensors} for name in ("llava-mmproj.gguf", "llama.gguf"))
        side = SIDE_PX // PATCH_PX
        pixels = (picture() / 255.0 - np.array(MEAN)) / np.array(STD)
        patches = pixels.reshape(side, PATCH_PX, side, PATCH_PX, 3).transpose(0, 2, 4, 1, 3).reshape(side * side, -1)
        rows = [self.tower["v.class_embd"].reshape(1, WIDTH), patches @ self.tower["v.patch_embd.weight"].reshape(WIDTH, -1).T]
        x = self.norm(np.vstack(rows[::-1] if class_last else rows) + self.tower["v.position_embd.weight"], "v.pre_ln")
        n = self.norm(x, "v.blk.0.ln1")
        x = x + self.linear(self.attend(*(self.linear(n, "v.blk.0.attn_" + name) for name in "qkv"), False), "v.blk.0.attn_out")
        n = self.linear(self.norm(x, "v.blk.0.ln2"), "v.blk.0.ffn_up")
        x = x + self.linear(n / (1 + np.exp(-1.702 * n)), "v.blk.0.ffn_down")
        n = self.linear(x[1:], "mm.0")
        n = 0.5 * n * (1 + np.tanh((2 / np.pi) ** 0.5 * (n + 0.044715 * n ** 3)))
        self.features = self.linear(n, "mm.2")

    def norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * self.tower[name + ".weight"] + self.tower[name + ".bias"]

    def linear(self, x, name):
        return x @ self.tower[name + ".weight"].T + self.tower[name + ".bias"]

    def rms(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * self.text[name + ".weight"]

    @staticmethod
    def attend(q, k, v, causal):
        out = np.zeros_like(q)
        for head in range(HEADS):
            at, shared = slice(head * HEAD, (head + 1) * HEAD), head * k.shape[1] // WIDTH
            of = slice(shared * HEAD, (shared + 1) * HEAD)
            a = q[:, at] @ k[:, of].T * HEAD ** -0.5
            a = np.where(np.tril(np.ones(a.shape)) > 0, a, -np.inf) if causal else a
            a = np.exp(a - a.max(-1, keepdims=True))
            out[:, at] = a / a.sum(-1, keepdims=True) @ v[:, of]
        return out

    @staticmethod
    def turn(x):
        pairs = x.reshape(len(x), -1, HEAD // 2, 2)
        angle = np.arange(len(x))[:, None, None] * 5000.0 ** (-np.arange(HEAD // 2) * 2 / HEAD)
        a, b = pairs[..., 0], pairs[..., 1]
        return np.stack([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1).reshape(x.shape)

    def logits(self, ids, image):
        x = self.text["token_embd.weight"][ids]
        x[np.array(ids) == image] = self.features
        n = self.rms(x, "blk.0.attn_norm")
        q, k, v = (n @ self.text[f"blk.0.attn_{name}.weight"].T for name in "qkv")
        x = x + self.attend(self.turn(q), self.turn(k), v, True) @ self.text["blk.0.attn_output.weight"].T
        n = self.rms(x, "blk.0.ffn_norm")
        gate = n @ self.text["blk.0.ffn_gate.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (n @ self.text["blk.0.ffn_up.weight"].T)) @ self.text["blk.0.ffn_down.weight"].T
        return (self.rms(x, "output_norm") @ self.text["output.weight"].T)[-1]

    def answer(self, ids, image, tokens):
        """greedy ids, and the least margin between the best two, as logits"""
        made, least = [], 1e9
        for _ in range(tokens):
            logits = self.logits(ids + made, image)
            best = np.sort(logits)[-2:]
            least = min(least, best[1] - best[0])
            made.append(int(np.argmax(logits)))
        return made, least


def answers_about(out):
    """greedy answers about the picture: transformers' and llama.cpp's"""
    class options:
        model, mmproj, threads, as_shipped = os.path.join(out, "llama.gguf"), os.path.join(out, "llava-mmproj.gguf"), 1, False

    server = conform.start(options)
    marker = conform.post(server, "/props", None).get("media_marker", "<__media__>")
    with open(os.path.join(out, "picture.png"), "rb") as file:
        png = base64.b64encode(file.read()).decode()
    image = len(pieces()[0]) - 1
    first, last = Reference(out, False), Reference(out, True)
    answers, least = [], 1e9
    for prompt in PROMPTS:
        ids = conform.post(server, "/tokenize", {"content": prompt, "add_special": False, "parse_special": True})["tokens"]
        ids = [1] + [image] * (SIDE_PX // PATCH_PX) ** 2 + ids
        asked = {"prompt_string": marker + prompt, "multimodal_data": [png]}
        theirs = conform.post(server, "/completion", {"prompt": asked, "n_predict": 8, "temperature": 0, "cache_prompt": False,
                                                      "return_tokens": True})
        assert theirs["tokens_evaluated"] == len(ids)
        made, margin = first.answer(ids, image, 8)
        swapped, other_margin = last.answer(ids, image, 8)
        least = min(least, margin, other_margin)
        answers.append({"prompt": "<image>" + prompt, "input_ids": ids, "ids": made, "llama_cpp_ids": theirs["tokens"],
                        "ids_with_the_class_token_last": swapped})
    return answers, least


def answers_of(path):
    class options:
        model, mmproj, threads, as_shipped = path, None, 1, False

    server = conform.start(options)
    texts = [{"text": text, "ids": conform.post(server, "/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]}
             for text in TEXTS]
    answers, least = [], 1e9
    for prompt in PROMPTS:
        answer = conform.post(server, "/completion", {"prompt": prompt, "n_predict": 12, "temperature": 0, "cache_prompt": False,
                                                      "return_tokens": True, "n_probs": 2})
        least = min([least] + [conform.margin(step) for step in answer["completion_probabilities"]])
        answers.append({"prompt": prompt, "ids": answer["tokens"]})
    return texts, answers, least


def main():
    out = sys.argv[1]
    write_types(out)
    write_rope(os.path.join(out, "rope.gguf"))
    for name, architecture, pre in (("llama", "llama", None), ("smollm", "llama", "smollm"), ("qwen2", "qwen2", "qwen2"), ("qwen3", "qwen3", "qwen2"), ("olmoe", "olmoe", "olmo")):
        path = os.path.join(out, name + ".gguf")
        for seed in range(50):
            write_model(path, architecture, pre, seed)
            texts, answers, least = answers_of(path)
            if least > 0.05 and all(len(a["ids"]) >= 8 for a in answers):
                break
        print(name, "seed", seed, "least margin", least)
        with open(os.path.join(out, name + ".json"), "w", encoding="utf-8") as file:
            json.dump({"texts": texts, "answers": answers}, file, ensure_ascii=True, indent=1)
            file.write("\n")
    write_picture(os.path.join(out, "picture.png"))
    for seed in range(50):
        write_tower(os.path.join(out, "llava-mmproj.gguf"), seed)
        answers, least = answers_about(out)
        if least > 0.05:
            break
    print("llava seed", seed, "least margin", least)
    with open(os.path.join(out, "llava.json"), "w", encoding="utf-8") as file:
        json.dump({"answers": answers}, file, indent=1)
        file.write("\n")
    os._exit(0)  # xllamacpp's own end waits for its threads


if __name__ == "__main__":
    main()
