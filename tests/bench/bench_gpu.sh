#!/bin/bash
# bench_gpu.sh: the real model's shape with random weights on the first GPU: where a request of each tier goes, with achieved TFLOP/s and GB/s a
# stage, then a small sweep (tiers x top_k x blocks). Prints machine, commit and date first; the JSON files lie in build/bench-gpu.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${PROGRAM:-./vlmprof} out=build/bench-gpu
rm -rf "$out"
mkdir -p "$out"
echo "date   $(date -u +%Y-%m-%dT%H:%M:%SZ)"
echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv 2>/dev/null || echo "nvidia-smi: not found"
"$program" info
for tier in low medium high; do
    echo "== one request, tier $tier, top_k 8, 16 blocks, 33 tokens: means of 5 runs"
    "$program" run --synthetic molmoe-1b --device cuda samples/cat.jpg -p "What animal is this, and what is it doing?" --tier "$tier" --top_k 8 \
        --max_new_tokens 33 --ignore_eos --num_runs 5
done
echo "== sweep: tiers x top_k x blocks, 3 questions, 3 runs each, P50 in ms"
"$program" sweep --synthetic molmoe-1b --device cuda --data samples/questions.jsonl --output_dir "$out" --tier_list low medium high --top_k_list 4 8 12 \
    --num_active_blocks_list 12 16 --num_samples 3 --num_runs_per_sample 3 --max_new_tokens 33 --ignore_eos
"$program" report "$out"
