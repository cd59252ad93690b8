#!/usr/bin/env python3
"""Held-out accuracy by question kind and tier, and by top_k and depth where a sweep has them: reads what `vlmprof sweep` measured, prints Markdown."""
import argparse
import collections
import glob
import json
import os
import subprocess
import tempfile

import draw
import model
import preprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CHANCE = {"color": 1 / len(draw.COLORS), "shape": 1 / len(draw.SHAPES), "word": 1 / len(draw.WORDS), "number": 1 / 90, "small print": 1 / 90}


def read(output):
    """{(tier, top_k, blocks): rows} of a sweep's folder"""
    out = {}
    for path in glob.glob(os.path.join(output, "*imgsize*.json")):
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        out[result["tier"], result["top_k"], result["num_active_blocks"]] = result["per_sample_results"]
    return out


def sweep(folder, output, questions, *options):
    command = [preprocess.PROGRAM, "sweep", "--model", os.path.join(folder, "model"), "--data", os.path.join(folder, "heldout.jsonl"), "--output_dir", output,
               "--metric", "em", "--num_runs_per_sample", "1", "--max_new_tokens", "8", "--num_samples", str(questions), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return read(output)


def by_kind(rows):
    out = collections.defaultdict(list)
    for r in rows:
        out[r["metadata"]["kind"]].append(r["accuracy"])
        out["all"].append(r["accuracy"])
    return {k: 100 * sum(v) / len(v) for k, v in out.items()}


def main(arguments=None):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", nargs="?", default=HERE, help="holds model/ and heldout.jsonl (default: next to this file)")
    p.add_argument("--results", help="folder of a finished sweep, such as build/demo-pareto-1000 (default: sweep the three tiers now)")
    p.add_argument("--questions", type=int, default=1000)
    p.add_argument("--weights", default="bf16", choices=["bf16", "fp32"])
    a = p.parse_args(arguments)
    answers = collections.defaultdict(list)
    with open(os.path.join(a.folder, "heldout.jsonl"), encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            answers[r["kind"]].append(r["answers"][0])
            answers["all"].append(r["answers"][0])
    # majority: the best a constant answer for each kind of question can do; chance: a guess among the possible answers of the kind
    majority = {k: 100 * max(collections.Counter(v).values()) / len(v) for k, v in answers.items()}
    chance = {k: 100 * v for k, v in CHANCE.items()}
    for table in (majority, chance):
        table["all"] = sum(table[k] * len(answers[k]) for k in CHANCE if k in answers) / len(answers["all"])
    with tempfile.TemporaryDirectory() as t:
        results = read(a.results) if a.results else sweep(a.folder, t, a.questions, "--tier_list", *preprocess.TIERS, "--weights", a.weights)
    rows = {knobs: by_kind(r) for knobs, r in results.items()}
    kinds = [k for k in CHANCE if k in answers] + ["all"]

    def cells(knobs):
        return " | ".join(f"{rows[knobs][k]:.1f}" for k in kinds)

    print("| kind | questions | chance % | majority % | low % | medium % | high % |\n|---|---|---|---|---|---|---|")
    for k in kinds:
        tiers = " | ".join(f"{rows[tier, model.TOP_K, model.BLOCKS].get(k, float('nan')):.1f}" for tier in preprocess.TIERS)
        print(f"| {k} | {len(answers[k])} | {chance[k]:.1f} | {majority[k]:.1f} | {tiers} |")
    if len(rows) > len(preprocess.TIERS):
        print("\n| tier | top_k | blocks | " + " | ".join(kinds) + " |\n|---|---|---|" + "---|" * len(kinds))
        for knobs in sorted(rows, key=lambda r: (preprocess.TIERS.index(r[0]), r[1:])):
            print(f"| {knobs[0]} | {knobs[1]} | {knobs[2]} | {cells(knobs)} |")


if __name__ == "__main__":
    main()
