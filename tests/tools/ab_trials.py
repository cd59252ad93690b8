#!/usr/bin/env python3
"""A/A and A/B trials of the whole program: what `compare` says of pairs of sweeps of the small model.

Each trial makes four sweeps of the same samples: A, and in random order A again, A with a clock that runs faster (every
time is longer by --slowdown percent), and A with --changed answers turned wrong in its data. `compare` judges the three
pairs. Printed: how often it said what, and the samples that `compare --plan` asks for. Raw verdicts go to --raw as lines
of JSON. Run it on a quiet machine, from the repository's root, after make:

    python3 tests/tools/ab_trials.py --trials 100 --samples 60 --raw trials.jsonl
"""
import argparse
import collections
import json
import os
import random
import shutil
import subprocess
import tempfile

MODEL = ["--model", "samples/tiny/model", "--importance_scores_file", "samples/tiny/importance-scores.json", "--max_new_tokens", "8",
         "--tier_list", "low", "--top_k_list", "2", "--num_active_blocks_list", "3", "--threads", "1", "--quiet"]


def scaled_program(folder, percent):
    """The program with a clock that runs faster by so many percent."""
    header, program = os.path.join(folder, "clock.h"), os.path.join(folder, "vlmprof-scaled")
    with open(header, "w") as file:
        file.write("#include <stdint.h>\n#include <time.h>\n"
                   "static inline int64_t scaled_clock_ns(void) {\n    struct timespec now;\n    clock_gettime(CLOCK_MONOTONIC, &now);\n"
                   f"    return (int64_t)(((double)now.tv_sec * 1e9 + (double)now.tv_nsec) * {1 + percent / 100});\n}}\n"
                   "#define VLMPROF_CLOCK_NS scaled_clock_ns()\n")
    subprocess.run(["cc", "-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-I.", "-ffp-contract=off", "-include", header, "-DVLMPROF_IMPLEMENTATION", "-x", "c",
                    "-c", "vlmprof.h", "-o", header + ".o"], check=True)
    subprocess.run(["cc", "-fopenmp", header + ".o", "build/cli.o", "build/librooms.a", "build/libvlmprof.a", "-o", program, "-lm"], check=True)
    return program


def changed_data(folder, path, count, rng):
    """The data with the answers of so many records out of a hundred replaced by one that nobody gives."""
    out = os.path.join(folder, "changed.jsonl")
    with open(path) as file, open(out, "w") as to:
        for line in file:
            record = json.loads(line)
            if rng.random() < count / 100:
                record["answers"] = ["none of these"]
            to.write(json.dumps(record) + "\n")
    return out


def sweep(program, data, folder, arguments):
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, "sweep", *MODEL, "--data", data, "--image_dir", "samples/tiny", "--output_dir", folder, "--dataset_name", "heldout",
                    "--num_samples", str(arguments.samples), "--num_runs_per_sample", str(arguments.runs)], check=True, stdout=subprocess.DEVNULL)


def verdict(first, second, *more):
    done = subprocess.run(["./vlmprof", "compare", first, second, "--json", "--plan", *more], capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    report = json.loads(done.stdout)
    rows = {row["of"]: [row["verdict"], row["difference"], row["difference_interval"], row.get("samples_needed")] for row in report["comparisons"]}
    return report["verdict"], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--slowdown", type=float, default=3, help="percent")
    parser.add_argument("--changed", type=float, default=30, help="percent of the answers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--raw", help="file for the raw verdicts")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    counts = collections.defaultdict(collections.Counter)
    needed = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        data = "samples/tiny/heldout.jsonl"
        slow, wrong = scaled_program(folder, arguments.slowdown), changed_data(folder, data, arguments.changed, rng)
        kinds = {"A/A": ("./vlmprof", data), "slower": (slow, data), "worse": ("./vlmprof", wrong)}
        for trial in range(arguments.trials):
            base = os.path.join(folder, "a")
            sweep("./vlmprof", data, base, arguments)
            for kind in rng.sample(sorted(kinds), len(kinds)):
                other = os.path.join(folder, "b")
                sweep(*kinds[kind], other, arguments)
                said, rows = verdict(base, other, "--force", "data", "seed")
                counts[kind][said] += 1
                needed[kind].append(rows["T_total"][3])
                if arguments.raw:
                    with open(arguments.raw, "a") as raw:
                        raw.write(json.dumps({"trial": trial, "kind": kind, "verdict": said, "rows": rows}) + "\n")
    for kind in ("A/A", "slower", "worse"):
        plan = sorted(n or 0 for n in needed[kind])
        print(f"{kind:8} {dict(counts[kind])}   --plan asks for {plan[0]}..{plan[-1]} samples, median {plan[len(plan) // 2]}; there were {arguments.samples}")


if __name__ == "__main__":
    main()
