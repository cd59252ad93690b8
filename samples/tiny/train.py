#!/usr/bin/env python3
"""Trains the small model and writes samples/tiny/model. Every stage keeps its state and is skipped or resumed when run again."""
import os

# set before torch starts: waiting threads sleep instead of spinning, and freed memory is kept instead of handed back and zeroed again
for name, value in (("OMP_WAIT_POLICY", "passive"), ("MALLOC_MMAP_MAX_", "0"), ("MALLOC_TRIM_THRESHOLD_", "100000000000")):
    os.environ.setdefault(name, value)
if os.environ.get("TINY_RESTARTED") != "1":  # the allocator reads its settings when the process starts
    import sys
    os.environ["TINY_RESTARTED"] = "1"
    os.execv(sys.executable, [sys.executable] + sys.argv)

import argparse

import torch

import data
import evaluate
import export
import heldout
import llm
import tokenizer
import tower

HERE = os.path.dirname(os.path.abspath(__file__))
STAGES = ["data", "tower", "cache", "llm", "export", "evaluate"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--state", default=os.path.join(HERE, "..", "..", "build", "tiny"), help="folder of everything between the stages, 13 GB (default %(default)s)")
    p.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES, help="default: all")
    p.add_argument("--seed", type=int, default=11)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--crop_parts", type=int, default=60, help="stage 1's crops, in parts of 500 (default %(default)s)")
    p.add_argument("--tower_steps", type=int, default=7200)
    p.add_argument("--pictures", type=int, nargs=3, default=[2400, 1800, 1500], help="stage 2's pictures at low, medium, high")
    p.add_argument("--llm_steps", type=int, default=6000)
    p.add_argument("--output", default=HERE, help="where model/, heldout.jsonl and pictures/ go (default: next to this file)")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    os.makedirs(a.state, exist_ok=True)
    tokens = tokenizer.Tokenizer()
    if "data" in a.stages:
        data.draw_crops(os.path.join(a.state, "crops"), a.crop_parts, a.seed, workers=a.threads)
    if "tower" in a.stages:
        tower.train(a.state, a.crop_parts, a.tower_steps, a.seed)
    if "cache" in a.stages:
        llm.make_features(a.state, a.seed, a.pictures, a.threads)
    if "llm" in a.stages:
        llm.train(a.state, tokens, a.pictures, a.llm_steps, a.seed)
    if "export" in a.stages:
        trained = llm.load(a.state, tokens)
        export.write_model(os.path.join(a.output, "model"), llm.finish_tower(a.state), trained, tokens)
        export.write_json(a.output, "importance-scores.json", llm.importance(a.state, trained, tokens))
        heldout.write(a.output, a.seed)
    if "evaluate" in a.stages:
        evaluate.main([a.output])


if __name__ == "__main__":
    main()
