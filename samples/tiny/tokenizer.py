"""A byte-level BPE tokenizer in the structure of the real model's tokenizer.json, trained on our own questions and answers."""
import json
import re

import draw

IMAGE_TOKENS = ["<im_start>", "<im_end>", "<im_patch>", "<im_col>", "<|image|>"]
PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")  # GPT-2's rule on ASCII


def byte_symbols():
    """byte -> printable character, as GPT-2 does it"""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + extra)
            extra += 1
    return table


SYMBOLS = byte_symbols()


def corpus():
    texts = []
    for kind, wordings in draw.WORDINGS.items():
        names = draw.SHAPES + draw.COLOR_NAMES + [c + " shape" for c in draw.COLOR_NAMES]
        for wording in wordings:
            texts += [f" User: {wording.format(n)} Assistant:" for n in names]
    for answer in draw.SHAPES + draw.COLOR_NAMES + draw.WORDS + ["top", "bottom", "left", "right", "yes", "no"]:
        texts += [" " + answer] * 40
    texts += [f" {d}" for d in range(10)] * 40
    # the everyday words around such questions, so that a foreign question costs few tokens
    texts += [" The picture shows a number of things that we can see and name. How many are there? Where is it? Is there one? Describe the image in a sentence."] * 3
    return texts


def merges_of(texts, most):
    words = {}
    for text in texts:
        for piece in PIECES.findall(text):
            symbols = tuple(SYMBOLS[b] for b in piece.encode())
            words[symbols] = words.get(symbols, 0) + 1
    merges = []
    while len(merges) < most:
        pairs = {}
        for w, n in words.items():
            for p in zip(w, w[1:]):
                pairs[p] = pairs.get(p, 0) + n
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        words = {joined(w, best): n for w, n in words.items()}
    return merges


def joined(word, pair):
    out, i = [], 0
    while i < len(word):
        if word[i:i + 2] == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def build():
    """the object of tokenizer.json and the ids of its special tokens"""
    used = [SYMBOLS[b] for b in range(256) if b not in (192, 193) and b < 245]  # bytes that UTF-8 can hold
    merges = merges_of(corpus(), 380)
    vocabulary = ["|||IP_ADDRESS|||", "<|padding|>"] + sorted(used) + ["".join(m) for m in merges]
    spaces = [" " * n for n in range(24, 1, -1)]
    vocabulary += spaces + ["|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||", "<|endoftext|>"]
    ids = {t: i for i, t in enumerate(vocabulary)}
    assert len(ids) == len(vocabulary)
    for i, t in enumerate(IMAGE_TOKENS):
        ids[t] = len(vocabulary) + i
    special = ["<|padding|>", "<|endoftext|>"] + IMAGE_TOKENS
    plain = ["|||IP_ADDRESS|||", "|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||"] + spaces
    added = [{"id": ids[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": t in plain, "special": t in special}
             for t in sorted(special + plain, key=lambda t: ids[t])]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
             "byte_fallback": False, "ignore_merges": False, "vocab": {t: i for i, t in enumerate(vocabulary)}, "merges": [" ".join(m) for m in merges]}
    post = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "NFC"}, "pre_tokenizer": level,
            "post_processor": post, "decoder": level, "model": model}, ids


class Tokenizer:
    def __init__(self):
        self.json, self.ids = build()
        self.rank = {tuple(m.split(" ")): i for i, m in enumerate(self.json["model"]["merges"])}
        self.names = {i: t for t, i in self.ids.items()}
        self.bytes = {c: b for b, c in SYMBOLS.items()}
        self.eos = self.ids["<|endoftext|>"]
        self.vocabulary = len(self.json["model"]["vocab"])
        self.rows = (self.vocabulary + len(IMAGE_TOKENS) + 63) // 64 * 64
        self.known = {}

    def piece(self, text):
        if text not in self.known:
            word = tuple(SYMBOLS[b] for b in text.encode())
            while len(word) > 1:
                pair = min(zip(word, word[1:]), key=lambda p: self.rank.get(p, 1 << 30))
                if pair not in self.rank:
                    break
                word = joined(word, pair)
            self.known[text] = [self.ids[s] for s in word]
        return self.known[text]

    def encode(self, text):
        """ASCII without runs of spaces: all that the training asks"""
        assert text.isascii() and "  " not in text
        return [i for p in PIECES.findall(text) for i in self.piece(p)]

    def decode(self, ids):
        return bytes(self.bytes[c] for i in ids if i < self.vocabulary and i != self.eos for c in self.names[i]).decode("utf-8", "replace")

    def prompt(self, question):
        return self.encode(f" User: {question} Assistant:")

    def answer(self, text):
        return self.encode(" " + text) + [self.eos]

    def files(self):
        """the small files next to tokenizer.json"""
        token = {"content": "<|endoftext|>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
        table = {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in self.json["added_tokens"]}
        return {"tokenizer.json": self.json,
                "tokenizer_config.json": {"add_bos_token": False, "add_eos_token": False, "add_prefix_space": False, "added_tokens_decoder": table,
                                          "bos_token": None, "clean_up_tokenization_spaces": True, "eos_token": "<|endoftext|>",
                                          "model_max_length": 1000000000000000019884624838656, "pad_token": "<|padding|>",
                                          "tokenizer_class": "GPTNeoXTokenizer", "unk_token": None},
                "special_tokens_map.json": {"additional_special_tokens": IMAGE_TOKENS, "bos_token": token, "eos_token": token,
                                            "pad_token": dict(token, content="<|padding|>"), "unk_token": token}}


if __name__ == "__main__":
    t = Tokenizer()
    print(t.vocabulary, t.rows, len(t.json["model"]["merges"]), json.dumps(t.encode(" User: What color is the star? Assistant: 42")))
