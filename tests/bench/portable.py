#!/usr/bin/env python3
"""portable.py ORDINARY PORTABLE [ROUNDS]: the same request by both programs, in turns, the first alternating; medians of the rounds and of the ratios in
each. Both use the matrix kernel that the ordinary one chooses for many rows. Goal: within 3 %. Rounds in which other programs took more than 5 % of the
processors are left out. Prints Markdown (tests/bench/results/portable.md); exits 1 if the portable program lacks that kernel or few rounds were quiet."""
import json
import os
import statistics
import subprocess
import sys

REQUEST = ["run", "samples/cat.jpg", "-p", "What animal is this?", "--synthetic", "tiny", "--max_new_tokens", "16", "--ignore_eos", "--num_runs", "5", "--json", "--quiet"]
TIMES = (("vision", "T_vision_total"), ("prefill", "T_LLM_prefill"), ("decode, a token", "T_decode_per_token"), ("request", "T_total"))


def result(program, *options):
    made = subprocess.run([os.path.abspath(program)] + REQUEST + list(options), capture_output=True, text=True, check=True)
    return json.loads(made.stdout)


def main():
    programs, rounds = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 12
    kernels = [result(program)["provenance"] for program in programs]
    kernel = kernels[0]["gemm_rows_1024"]
    results = {program: [] for program in programs}
    for i in range(rounds):
        for program in programs[:: -1 if i % 2 else 1]:
            results[program].append(result(program, "--gemm", kernel))
    made = [results[program][0]["provenance"] for program in programs]
    quiet = [i for i in range(rounds) if all((results[program][i]["noise"]["other_cpu_percent"] or 0) <= 5 for program in programs)]
    print("# The portable program next to the ordinary one\n")
    print("`%s`,\n%d rounds in turns, each the median of 5 requests; %s, %d processors, %s.\n"
          "By themselves the ordinary program chooses %s for 1 row and %s for 1024, the portable one %s and %s; both ran with `--gemm %s`.\n"
          "%d rounds are left out, because other programs took more than 5 %% of the processors.\n"
          % (" ".join(["vlmprof"] + REQUEST[:-2]), rounds, made[0]["device"], os.cpu_count(), made[0]["build"],
             *(one[key] for one in kernels for key in ("gemm_rows_1", "gemm_rows_1024")), kernel, rounds - len(quiet)))
    if len(quiet) < 5:
        print("too few rounds were quiet: %d" % len(quiet))
        return 1
    print("| stage | ordinary ms | portable ms | portable / ordinary, median of rounds | quartiles |\n|---|---|---|---|---|")
    for words, key in TIMES:
        ours, theirs = ([results[program][i]["medians"][key]["median"] for i in quiet] for program in programs)
        ratios = [b / a for a, b in zip(ours, theirs)]
        low, _, high = statistics.quantiles(ratios, n=4)
        print("| %s | %.3f | %.3f | %.3f | %.3f to %.3f |" % (words, statistics.median(ours), statistics.median(theirs), statistics.median(ratios), low, high))
    return 0 if {one["gemm_rows_1024"] for one in made} == {kernel} else 1


sys.exit(main())
