#!/usr/bin/env python3
"""Asks vlmprof and the PyTorch model the same 500 held-out questions, tiers in turn, and compares every token of the answers.
fp32: all equal. bf16: at least 99 % of the answers equal to PyTorch's float32 ones. Exit status 1 when not.
--save writes PyTorch's answers to the first 100 questions at the low and the high tier, which `make test` holds vlmprof to."""
import argparse
import json
import os
import sys
import tempfile

import numpy as np
import torch
from PIL import Image

import evaluate
import export
import model
import preprocess
import tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
SAVED = os.path.join(preprocess.ROOT, "tests", "golden", "tiny", "answers.jsonl")
NAMES = {"s": "<im_start>", "e": "<im_end>", "p": "<im_patch>", "c": "<im_col>"}


class Reference:
    def __init__(self, folder):
        self.tokens = tokenizer.Tokenizer()
        self.tower, self.llm = model.Tower(), model.Llm(self.tokens.rows)
        export.read_model(folder, self.tower, self.llm)
        self.tower.eval(), self.llm.eval()
        self.last = None, None

    @torch.no_grad()
    def answer(self, path, question, tier, **knobs):
        if self.last[0] != (path, tier):
            picture = np.array(Image.open(path).convert("RGB"))
            crops, _ = preprocess.crops_of(picture, tier)
            t = preprocess.tiling(picture.shape[1], picture.shape[0], tier)
            kinds, takes = preprocess.token_layout(t["rows"], t["cols"])
            features = self.tower(preprocess.patches_of(preprocess.normalise(crops))).reshape(-1, model.D)[takes]
            self.last = (path, tier), (features, kinds)
        features, kinds = self.last[1]
        ids = [self.tokens.eos] + [self.tokens.ids[NAMES[c]] for c in kinds] + self.tokens.prompt(question)
        where = torch.tensor([i + 1 for i, c in enumerate(kinds) if c == "p"])
        return self.llm.answer(torch.tensor(ids), features, where, self.tokens.eos, **knobs)


def save(path, reference, records):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        for tier in ("low", "high"):
            for r in records:
                tokens = reference.answer(os.path.join(HERE, r["image"]), r["question"], tier)
                f.write(json.dumps({"id": r["id"], "tier": tier, "tokens": tokens, "text": reference.tokens.decode(tokens)}) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--questions", type=int, default=500)
    p.add_argument("--save", nargs="?", const=SAVED, help="and nothing else (default file: %(const)s)")
    a = p.parse_args()
    with open(os.path.join(HERE, "heldout.jsonl"), encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    reference = Reference(os.path.join(HERE, "model"))
    if a.save:
        return save(a.save, reference, records[:100])
    records = records[:a.questions]
    groups = {tier: [r for r in records if int(r["image"][-7:-4]) % 3 == i] for i, tier in enumerate(preprocess.TIERS)}
    wanted = {r["id"]: reference.answer(os.path.join(HERE, r["image"]), r["question"], tier) for tier, g in groups.items() for r in g}
    failed = False
    for weights, least in (("fp32", 1.0), ("bf16", 0.99)):
        equal = []
        with tempfile.TemporaryDirectory() as t:
            os.symlink(os.path.join(HERE, "model"), os.path.join(t, "model"))
            os.symlink(os.path.join(HERE, "pictures"), os.path.join(t, "pictures"))
            for tier, group in groups.items():
                with open(os.path.join(t, "heldout.jsonl"), "w", encoding="utf-8") as f:
                    f.write("".join(json.dumps(r) + "\n" for r in group))
                for rows in evaluate.sweep(t, os.path.join(t, weights + tier), len(group), "--tier_list", tier, "--weights", weights).values():
                    equal += [(r["output_token_ids"] == wanted[r["metadata"]["id"]], r, tier) for r in rows]
        good = sum(e for e, _, _ in equal)
        for e, r, tier in equal:
            if not e:
                print(f"{weights} {tier} {r['metadata']['id']} {r['metadata']['question']!r}: vlmprof {r['pred']!r}, "
                      f"PyTorch {reference.tokens.decode(wanted[r['metadata']['id']])!r}")
        print(f"{weights}: {good} of {len(equal)} answers equal token by token")
        failed |= len(equal) != len(records) or good < least * len(equal)
    sys.exit(failed)


if __name__ == "__main__":
    main()
