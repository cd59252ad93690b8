#!/bin/bash
# bench_gpu.sh PROGRAM: the benchmarks of tests/bench/gpu/bench_gpu.c (PROGRAM) on the first GPU, at most some minutes. The table goes to stdout and
# next to the JSON into tests/bench/results, named by date and commit: commit what a real GPU gave, with what the table says about it.
set -euo pipefail
CDPATH= cd "$(dirname "$0")/../.."
program=$1 out=${BENCH_GPU_OUT:-tests/bench/results}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
[ "$commit" = unknown ] || git diff --quiet HEAD || commit=$commit-changed
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
name=$out/gpu-${date:0:10}-${date:11:2}${date:14:2}-$commit
mkdir -p "$out"
{
    echo "date   $date"
    echo "commit $commit"
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv 2>/dev/null || echo "nvidia-smi: not found"
    timeout 480 "$program" "$name.json" "$commit" "$date" ${BENCH_GPU_SIZE:-}
} 2>&1 | tee "$name.txt"
echo "written: $name.json, $name.txt"
