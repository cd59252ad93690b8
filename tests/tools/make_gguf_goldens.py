"""Writes the golden files of tests/golden/gguf.

    python3 make_gguf_goldens.py OUT_DIR

types.gguf, types.npy    rows of each type with random bits, and their values by the gguf package's dequantize
NAME.gguf, NAME.json     small language models of random weights; ids of texts and greedy answers of llama.cpp's server from the same file
Needs gguf 0.19.0, numpy and xllamacpp 2026.10 (llama.cpp). A model whose answers hang on a margin under 0.05 nats is drawn again."""
import json
import os
import sys

import gguf
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers"))
import conform

HALVES = {"Q8_0": [0], "Q5_0": [0], "Q4_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}  # where a block has scales
WIDTH, HEADS, KV_HEADS, HIDDEN, EXPERTS = 32, 2, 1, 64, 4
HEAD = WIDTH // HEADS
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
    tokens = special + [f"<0x{i:02X}>" for i in range(256)] + letters + made
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(letters) + len(made))
    scores = [0.0] * 259 + [-float(i) for i in range(len(letters) + len(made))]
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
    for name, architecture, pre in (("llama", "llama", None), ("smollm", "llama", "smollm"), ("qwen2", "qwen2", "qwen2"), ("olmoe", "olmoe", "olmo")):
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
    os._exit(0)  # xllamacpp's own end waits for its threads


if __name__ == "__main__":
    main()
