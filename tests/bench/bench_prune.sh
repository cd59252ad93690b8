#!/bin/bash
# bench_prune.sh [PRESET...]: what pruning saves at full size, with random weights: all image tokens, and 50, 25 and 10 % of them, by random tokens before
# the language model (the floor that fewer tokens allow), DivPrune and VisionZip there, and random tokens, FastV and DART before block 2. A sweep measures
# all values of a sample in turns, so ratios hold on a machine that others use; times need a quiet one. Answers of random weights say nothing.
#   PROGRAM=./vlmprof   DATA=samples/questions.jsonl   SAMPLES=3   RUNS=3   TOKENS=8 (of an answer)   VALUES="none random:keep=0.25"
#   KEEP=FOLDER: leaves the result files there
# A row for each value: kept tokens, MB of the KV cache, mean ms of the stages, and prefill with `prune` and T_total compared with no pruning.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
program=${PROGRAM:-./vlmprof} folder=${KEEP:-$(mktemp -d)}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT
[ $# -gt 0 ] || set -- llava-1.5-7b internvl3-1b qwen3-vl-2b
values=(none)
for share in 0.5 0.25 0.1; do
    for method in random divprune visionzip fastv dart; do values+=("$method:keep=$share"); done
    values+=("random:keep=$share,layer=2")
done
[ -z "${VALUES:-}" ] || read -ra values <<<"$VALUES"
for preset; do
    echo "== $preset, $("$program" --version | head -n 1), $(date -u +%Y-%m-%d), load $(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo unknown)"
    "$program" sweep --synthetic "$preset" --data "${DATA:-samples/questions.jsonl}" --output_dir "$folder/$preset" --num_samples "${SAMPLES:-3}" \
        --num_runs_per_sample "${RUNS:-3}" --max_new_tokens "${TOKENS:-8}" --ignore_eos --quiet --prune_list "${values[@]}" >/dev/null
    "$program" report "$folder/$preset" --output_dir "$folder/$preset/report" >/dev/null 2>&1
    python3 - "$folder/$preset" <<'TABLE'
import csv, glob, json, statistics, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/report/report.csv")))
results = [json.load(open(file)) for file in glob.glob(sys.argv[1] + "/*.json")]
samples = {(r["prune"], r["tier"] or "", float(r["top_k"])): r["per_sample_results"] for r in results}
unpruned = lambda tier: statistics.fmean(s["kv_cache_bytes_unpruned"] for key, rs in samples.items() if key[1] == tier for s in rs if "kv_cache_bytes" in s)
for row in rows:  # what only the samples have
    of_row = samples[row["prune"], row["tier"], float(row["top_k"])]
    row["kept_vision_tokens"] = statistics.fmean(s.get("kept_vision_tokens", s["actual_vision_tokens"]) for s in of_row)
    row["kv_cache_bytes"] = statistics.fmean(s.get("kv_cache_bytes") or unpruned(row["tier"]) for s in of_row)
number = lambda row, key: float(row.get(key) or 0)
cost = lambda row: number(row, "T_LLM_prefill_mean") + number(row, "prune_ms")
full = {(row.get("tier"), row.get("top_k")): row for row in rows if row["prune"] == "none"}
print(f"{'value':28} {'tokens':>7} {'KV MB':>7} {'vision':>8} {'prune':>8} {'prefill':>8} {'decode':>8} {'total':>8} {'prefill x':>9} {'total x':>7}")
for row in sorted(rows, key=lambda row: (row.get("tier") or "", -row["kept_vision_tokens"], row["prune"])):
    all_tokens = full[row.get("tier"), row.get("top_k")]
    ms = [number(row, key) for key in ("T_vision_total_mean", "prune_ms", "T_LLM_prefill_mean", "T_LLM_decode_mean", "T_total_mean")]
    print(f"{row['prune']:28} {row['kept_vision_tokens']:7.0f} {row['kv_cache_bytes'] / 1e6:7.2f} " + " ".join(f"{value:8.1f}" for value in ms)
          + f" {cost(all_tokens) / cost(row):9.2f} {number(all_tokens, 'T_total_mean') / ms[-1]:7.2f}")
TABLE
done
