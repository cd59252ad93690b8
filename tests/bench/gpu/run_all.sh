#!/bin/bash
# run_all.sh OUT PROGRAM BENCH TEST..: everything that a GPU can show, within 10 minutes, with all raw output in a folder of OUT named by date and commit:
# what the device is, the selftest, the TEST programs, the benchmark BENCH (bench_gpu.c; BENCH_GPU_SIZE=tiny: the small model), and what it measured
# next to what counts predict. Goes on past what fails; exits 1 when anything did.
cd "$(dirname "$0")/../../.." || exit 1
out=$1 program=$2 bench=$3
shift 3
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
[ "$commit" = unknown ] || git diff --quiet HEAD || commit=$commit-changed
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
folder=$out/gpu-${date:0:10}-${date:11:2}${date:14:2}${date:17:2}-$commit
mkdir -p "$folder" || exit 1
failed=()
step() { # step NAME SECONDS COMMAND..
    local name=$1 limit=$2 since=$SECONDS status
    shift 2
    echo "== $name"
    timeout "$limit" "$@" >"$folder/$name.txt" 2>&1
    status=$?
    tail -n "${TAIL:-1}" "$folder/$name.txt"
    [ "$status" -eq 0 ] || { failed+=("$name"); echo "FAILED $name: exit $status"; }
    echo "$name: exit $status, $((SECONDS - since)) s" >>"$folder/steps.txt"
}
echo "date $date, commit $commit" >"$folder/steps.txt"
TAIL=3 step nvidia-smi 20 nvidia-smi -q -d CLOCK,POWER,PERFORMANCE,MEMORY
TAIL=4 step info 30 "$program" info
step selftest 60 "$program" selftest --device cuda
for test in "$@"; do step "$(basename "$test")" 120 "$test"; done
TAIL=100 step bench 300 "$bench" "$folder/bench.json" "$commit" "$date" ${BENCH_GPU_SIZE:-}
TAIL=120 step against-predicted 20 python3 tests/bench/gpu/compare.py "$folder/bench.json" tests/bench/results/gpu-predictions.json
echo "raw output: $folder"
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
