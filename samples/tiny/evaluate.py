#!/usr/bin/env python3
"""Held-out accuracy by question kind and tier, and what top_k and depth do to it: runs `vlmprof sweep` on heldout.jsonl and prints Markdown."""
import argparse
import collections
import glob
import json
import os
import subprocess
import tempfile

import draw
import preprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CHANCE = {"color": 1 / len(draw.COLORS), "word": 1 / len(draw.WORDS), "number": 1 / 90, "small print": 1 / 90}


def sweep(folder, output, questions, *options):
    """{(tier, top_k, blocks): rows}"""
    command = [preprocess.PROGRAM, "sweep", "--model", os.path.join(folder, "model"), "--data", os.path.join(folder, "heldout.jsonl"), "--output_dir", output,
               "--metric", "em", "--num_runs_per_sample", "1", "--max_new_tokens", "8", "--num_samples", str(questions), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = {}
    for path in glob.glob(os.path.join(output, "*imgsize*.json")):
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        out[result["tier"], result["top_k"], result["num_active_blocks"]] = result["per_sample_results"]
    return out


def by_kind(rows):
    out = collections.defaultdict(list)
    for r in rows:
        out[r["metadata"]["kind"]].append(r["accuracy"])
        out["all"].append(r["accuracy"])
    return {k: 100 * sum(v) / len(v) for k, v in out.items()}


def main(arguments=None):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", nargs="?", default=HERE, help="holds model/ and heldout.jsonl (default: beside this file)")
    p.add_argument("--questions", type=int, default=1000)
    p.add_argument("--weights", default="bf16", choices=["bf16", "fp32"])
    p.add_argument("--knobs_tier", default="high", help="tier of the tables for top_k and depth (default %(default)s)")
    a = p.parse_args(arguments)
    answers = collections.defaultdict(list)
    with open(os.path.join(a.folder, "heldout.jsonl"), encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            answers[r["kind"]].append(r["answers"][0])
            answers["all"].append(r["answers"][0])
    majority = {k: 100 * max(collections.Counter(v).values()) / len(v) for k, v in answers.items()}
    total = len(answers["all"])
    # the best a constant answer for each kind of question can do; chance: a guess among the possible answers of the kind
    majority["all"] = sum(majority[k] * len(answers[k]) for k in CHANCE if k in answers) / total
    chance = {k: 100 * v for k, v in CHANCE.items()}
    chance["all"] = sum(chance[k] * len(answers[k]) for k in CHANCE if k in answers) / total
    common = ["--weights", a.weights, "--importance_scores_file", os.path.join(a.folder, "importance-scores.json")]
    with tempfile.TemporaryDirectory() as t:
        tiers = sweep(a.folder, os.path.join(t, "1"), a.questions, "--tier_list", *preprocess.TIERS, *common)
        rows = {tier: by_kind(r) for (tier, _, _), r in tiers.items()}
        print("| kind | questions | chance | majority | low | medium | high |\n|---|---|---|---|---|---|---|")
        for k in [k for k in CHANCE if k in answers] + ["all"]:
            cells = " | ".join(f"{rows[tier].get(k, float('nan')):.1f}" for tier in preprocess.TIERS)
            print(f"| {k} | {len(answers[k])} | {chance[k]:.1f} | {majority[k]:.1f} | {cells} |", flush=True)
        knobs = dict(sweep(a.folder, os.path.join(t, "2"), a.questions, "--tier_list", a.knobs_tier, "--top_k_list", "1", "2", "3", "4", *common))
        knobs.update(sweep(a.folder, os.path.join(t, "3"), a.questions, "--tier_list", a.knobs_tier, "--num_active_blocks_list", "3", "4", *common))
        print(f"\ntier {a.knobs_tier}:\n\n| top_k | blocks | all | number | small print | word |\n|---|---|---|---|---|---|")
        for (_, top_k, blocks), r in sorted(knobs.items()):
            v = by_kind(r)
            print(f"| {top_k} | {blocks} | " + " | ".join(f"{v[k]:.1f}" for k in ("all", "number", "small print", "word")) + " |", flush=True)


if __name__ == "__main__":
    main()
