#!/bin/bash
# slow: the benchmarks of the GPU on the emulated one, 40 s
# test_bench_gpu.sh: what `make bench-gpu` runs works: the script and the program on the emulated GPU, at tiny size. Times are the emulator's: nothing
# is said about them but that there are some. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
. tests/check.sh
count() { # count PATTERN: lines of the JSON that have it
    grep -cE "$1" "$work"/gpu-*.json
}
has() { [ "$(count "$2")" -eq "$1" ]; }
row='"floor_ms": [0-9]+\.[0-9]+, "measured_ms": [0-9]+\.[0-9]+, "ratio": [0-9]+\.[0-9]+, "launches": [1-9]'

check "the script ends well" env BENCH_GPU_OUT="$work" BENCH_GPU_SIZE=tiny tests/bench/bench_gpu.sh "$B/emulated/bench_gpu"
check "a row for each measurement: 1 of vision, 2 of prefill, 2 of decode; of 8 other ways 1 each, of integers no vision" has 27 "$row"
check "the other ways have their names" has 3 '"shape": "clusters: [a-z0-9]+ '
check "ceilings, commit, date, driver and clocks" has 7 '^  "(read_bytes_per_s|copy_bytes_per_s|bf16_flops_per_s|commit|date|driver_cuda_version|sm_clock_mhz_before)": [^ ]'
check "the way of the products" has 1 '^  "gemm": "cublas \(biases: cublasLt; tiles:.* experts\)"'
check "stage mode's cost" has 1 '"stage_mode": \{"on_ms": [0-9.]+, "off_ms": [0-9.]+, "stamps": [1-9][0-9]*, '
check "launches of prefill are listed" has 1 '"stage": "prefill", "launch": "k_experts_gate_up", "calls": [1-9]'
check "no number that is none" has 0 '[^a-z](nan|inf)[^a-z]'
check "as many brackets open as close" test "$(tr -dc '{[' <"$(ls "$work"/gpu-*.json)" | wc -c)" -eq "$(tr -dc ']}' <"$(ls "$work"/gpu-*.json)" | wc -c)"
check "the table is kept" grep -q '^decode ' "$work"/gpu-*.txt
check "a file that cannot be written is an error" bash -c '! "$1" /nonexistent/x.json c d tiny' - "$B/emulated/bench_gpu"
check "a wrong call is an error" bash -c '"$1" x; [ $? -eq 2 ]' - "$B/emulated/bench_gpu"

# ---- everything in one script, on the emulated GPU; programs that replace the long tests
all() { BENCH_GPU_SIZE=tiny tests/bench/gpu/run_all.sh "$work/all" "$B/emulated/vlmprof" "$B/emulated/bench_gpu" "$@" >"$work/said" 2>&1; }
said() { grep -q "$1" "$work/said"; }
printf '#!/bin/sh\necho 3 passed, 1 failed\nexit 1\n' >"$work/failing"
printf '#!/bin/sh\necho 4 passed\n' >"$work/passing"
chmod +x "$work/failing" "$work/passing"
all "$work/failing" "$work/passing"
check "a step that fails fails the script, which goes on" test $? -eq 1
check "each step ends with its last line" said '^4 passed$'
check "the failed steps are named at the end" bash -c 'tail -n 1 "$1" | grep -q "^failed:.* failing"' - "$work/said"
check "info, selftest, benchmark and steps leave their output" bash -c \
    'cd "$1"/all/gpu-* && grep -q "^gpu 0" info.txt && grep -q " 0 failed" selftest.txt && grep -q "^decode " bench.txt && grep -q "^passing: exit 0" steps.txt' \
    - "$work"
skipped=0
if command -v python3 >/dev/null; then
    check "its last table is what was measured against what was predicted" bash -c 'cd "$1"/all/gpu-* && grep -qE \
        "^prefill +k_route +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$" against-predicted.txt && grep -q "^decode *all kernels" against-predicted.txt' - "$work"
    printf '{"device": "cuda:0: NVIDIA H200", "launches": [{"stage": "decode", "launch": "k_decode_pick", "calls": 4, "ms": 0.0264}], "vision": [
      {"shape": "13 passes", "measured_ms": 20.0, "launches": 7}], "prefill": [], "decode": [
      {"shape": "after 482, top_k 8, 16 blocks", "measured_ms": 1.0, "launches": 99}, {"shape": "after 482, top_k 4, 12 blocks", "measured_ms": 1.0, "launches": 9}]}' \
        >"$work/made.json"
    printf '{"3/482": {"decode k_a": {"H200": 0.5, "H100": 2.0}}, "13/1922": {"decode k_decode_pick": {"H200": 0.0033, "H100": 1.0},
      "vision k_b": {"H200": 10.0, "H100": 1.0}}}' >"$work/predictions.json"
    python3 tests/bench/gpu/compare.py "$work/made.json" "$work/predictions.json" >"$work/said"
    check "a kernel's prediction is of all its calls, on this chip" said '^decode     k_decode_pick                    4      0.0264      0.0132     2.00$'
    check "a stage is held against the same shape" said '^decode     after 482, top_k 8, 16 blo      99      1.0000      0.5000     2.00$'
    check "shapes that nobody predicted are left out" bash -c '! grep -q "top_k 4" "$1"' - "$work/said"
    check "what was predicted and not sent is named" said '^predicted, and not sent here.*: vision k_b$'
else
    echo "skipped: what was measured against what was predicted: no program \"python3\""
    skipped=1
fi
echo "test_bench_gpu: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
