#!/bin/bash
# test_bench_gpu.sh: what `make bench-gpu` runs works: the script and the program on the emulated GPU, at tiny size. Times are the emulator's: nothing
# is said about them but that there are some. Ends with a count line.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
. tests/check.sh
count() { # count PATTERN: lines of the JSON that have it
    grep -cE "$1" "$work"/gpu-*.json
}
has() { [ "$(count "$2")" -eq "$1" ]; }
row='"floor_ms": [0-9]+\.[0-9]+, "measured_ms": [0-9]+\.[0-9]+, "ratio": [0-9]+\.[0-9]+, "launches": [1-9]'

check "the script ends well" env BENCH_GPU_OUT="$work" BENCH_GPU_SIZE=tiny tests/bench/bench_gpu.sh "$B/emulated/bench_gpu"
check "a row for each measurement: 1 of vision, 2 of prefill, 2 of decode" has 5 "$row"
check "ceilings, commit, date, driver and clocks" has 7 '^  "(read_bytes_per_s|copy_bytes_per_s|bf16_flops_per_s|commit|date|driver_cuda_version|sm_clock_mhz_before)": [^ ]'
check "the way of the products" has 1 '^  "gemm": "cublas \(biases: cublasLt; tiles:.* experts\)"'
check "stage mode's cost" has 1 '"stage_mode": \{"on_ms": [0-9.]+, "off_ms": [0-9.]+, "stamps": [1-9][0-9]*, '
check "launches of prefill are listed" has 1 '"stage": "prefill", "launch": "k_experts_gate_up", "calls": [1-9]'
check "no number that is none" has 0 '[^a-z](nan|inf)[^a-z]'
check "as many brackets open as close" test "$(tr -dc '{[' <"$(ls "$work"/gpu-*.json)" | wc -c)" -eq "$(tr -dc ']}' <"$(ls "$work"/gpu-*.json)" | wc -c)"
check "the table is kept" grep -q '^decode ' "$work"/gpu-*.txt
check "a file that cannot be written is an error" bash -c '! "$1" /nonexistent/x.json c d tiny' - "$B/emulated/bench_gpu"
check "a wrong call is an error" bash -c '"$1" x; [ $? -eq 2 ]' - "$B/emulated/bench_gpu"
echo "test_bench_gpu: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
