#!/bin/bash
# planted.sh [WORD]: the GPU code with one mistake planted, one of each kind (those whose names have WORD), under the emulated GPU: each must be found
# by `selftest` (or stop in the emulator) for at least one of three schedules, and the unchanged code must pass all three. Needs the objects of
# `make test`. `planted.sh --places` only looks whether each mistake still has its place. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
B=${B:-build} CXX=${CXX:-g++} passed=0 failed=0 reason= only=${1:-} places=0
if [ "$only" = --places ]; then places=1 only=; fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

selftest() { # with each schedule in turn, until one fails
    local seed
    for seed in 1 2 3; do
        CUDA_ON_CPU_SEED=$seed timeout 300 "$work/vlmprof" selftest --device cuda --gpu events >"$work/log" 2>&1 || return 1
    done
} 2>/dev/null # the shell's own word about a child that aborted
kernels() { # the tests of single kernels, which have schedules of their own; needs build/emulated/test_kernels.o
    timeout 300 "$work/test_kernels" >"$work/log" 2>&1
} 2>/dev/null
step() { # decode steps of dependent launches, with each schedule: the same answer as without them
    local seed want got
    want=$(CUDA_ON_CPU_CAPABILITY=9.0 "$B/emulated/vlmprof" run --synthetic tiny --prompt one --max_new_tokens 4 --ignore_eos --device cuda --quiet | grep ^answer)
    for seed in 1 2 3; do
        got=$(CUDA_ON_CPU_SEED=$seed CUDA_ON_CPU_CAPABILITY=9.0 timeout 300 "$work/vlmprof" run --synthetic tiny --prompt one --max_new_tokens 4 --ignore_eos \
            --device cuda --gpu dependent --quiet 2>"$work/log" | grep ^answer)
        [ -n "$want" ] && [ "$got" = "$want" ] || { echo "vlmprof: $got, expected $want" >>"$work/log"; return 1; }
    done
} 2>/dev/null
build() {
    $CXX -x c++ -std=c++17 -O1 -w -Wno-psabi -DVLMPROF_SM_90A -I"$work" -I. -Iparts -Iparts/lib -include tests/emulator/cuda_on_cpu.h -c "$work/vlmprof_kernels.cu" -o "$work/emulated.o" &&
        $CXX -fopenmp "$B/cli.o" "$work/emulated.o" "$B/librooms.a" "$B/libvlmprof.a" -o "$work/vlmprof" -ldl -lm &&
        $CXX -fopenmp "$B/emulated/test_kernels.o" "$work/emulated.o" "$B/libvlmprof.a" -o "$work/test_kernels" -ldl -lm
}
plant() { # plant KIND SED [FINDER: selftest, kernels where no model of selftest comes by, or step]
    local finder=${3:-selftest}
    case $1 in *"$only"*) ;; *) return;; esac
    mkdir -p "$work"/kernels/{shared,cpu,gpu}
    for file in vlmprof_kernels.cu parts/kernels/*/*.h; do sed "$2" "$file" > "$work/${file#parts/}"; done
    if [ -n "$2" ] && cmp -s vlmprof_kernels.cu "$work/vlmprof_kernels.cu" && diff -rq parts/kernels "$work/kernels" >/dev/null; then
        echo "FAILED $1: the place where it is planted has changed"
        failed=$((failed + 1))
    elif [ "$places" = 1 ]; then [ -z "$2" ] || passed=$((passed + 1))
    elif ! build; then
        echo "FAILED $1: does not compile"
        failed=$((failed + 1))
    elif [ -z "$2" ]; then
        if $finder; then passed=$((passed + 1)); else echo "FAILED $1"; tail -n 5 "$work/log"; failed=$((failed + 1)); fi
    elif $finder; then
        echo "FAILED $1: nobody noticed"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
        reason=$(grep -E 'cuda_on_cpu:|FAILED|vlmprof:' "$work/log" | head -n 1)
        echo "found: $1: $(echo "${reason:-ended by a signal, or with: $(tail -n 1 "$work/log")}" | cut -c1-150)"
    fi
}

plant "as it is" ''
plant "missing barrier" '/^KERNEL(k_pool_attention/,/^}/ s/SYNC();//'
plant "missing wait" '/cudaEventSynchronize(cuda->sent/d'
plant "missing barrier in a decode product" '/^FN float vk_row(/,/^}/ s/^            SYNC();$//'
plant "missing barrier in decode attention" '/^KERNEL_OF(VK_ATTENTION_THREADS, VK_ATTENTION_RESIDENT, k_decode_attention/,/^}/ s/^    SYNC();$//'
plant "divergent barrier" '/^KERNEL(k_pool_attention/,/^}/ s/if (LANE0) \(weights\[hj\] = .*\)$/if (LANE0) { \1 SYNC(); }/'
plant "out of bounds" 's/at\[2\] = at\[1\] + vk_round_up(.*$/at[2] = at[1];/'
plant "the neighbour's bias" '/^static void vk_lt_product(/,/^}/ { s/if (plan->shape.biased)/const char *near = (const char *)job->bias - 64; &/; s/&job->bias/\&near/ }'
plant "a product with a bias that forgets the residual" '/^static cublasStatus_t vk_lt_run(/,/^}/ { s/const float one = 1.0f;/const float one = 1.0f, none = 0.0f;/; s/&job->beta/plan->shape.biased ? \&none : \&job->beta/ }'
plant "wrong launch size" 's/LAUNCH(k_gate_mul, rows,/LAUNCH(k_gate_mul, rows - 1,/'
plant "missing copy" '/^static void vk_cuda_copy(/,/^}/ { /cudaMemcpyAsync/d }'
plant "missing barrier between tiles of keys" 's/SYNC(); \/\* all threads have this tile/\/\* all threads have this tile/' kernels
plant "wait for one tile of keys too few" 's/vk_copy_wait(0);/vk_copy_wait(1);/' kernels
plant "missing barrier between slices of experts" 's/SYNC(); \/\* all threads have written this slice and/\/\* all threads have written this slice and/' kernels
plant "wait for one slice of experts too few" 's/vk_copy_wait(VK_GROUP_STAGES - 2);/vk_copy_wait(VK_GROUP_STAGES - 1);/' kernels
plant "missing wait for a slice" '/vk_barrier_wait(&ring->full\[ring->stage\], ring->phase);/d' kernels
plant "missing wait for wgmma" 's/vk_wgmma_wait(1);/vk_wgmma_wait(2);/' kernels
plant "missing wait for the last wgmma" '/^    vk_wgmma_wait(0);/d' kernels
plant "missing wait for a free stage" '/vk_barrier_wait(&ring.empty\[ring.stage\], ring.phase ^ 1);/d' kernels
plant "wrong phase of an mbarrier" 's/ring.phase ^ 1);/ring.phase);/' kernels
plant "wrong swizzle of copied rows" 's/((vector ^ (row & 7)) << 4)/(vector << 4)/' kernels
plant "wrong swizzle of a bulk copy" 's/CU_TENSOR_MAP_SWIZZLE_128B, CU/CU_TENSOR_MAP_SWIZZLE_NONE, CU/' kernels
plant "wrong descriptor" 's/(uint64_t)(1024 >> 4) << 32/(uint64_t)(512 >> 4) << 32/' kernels
plant "missing fence between the proxies" '/vk_fence_async();/d' kernels
plant "missing wgmma fence" '/^        vk_wgmma_fence();/d' kernels
plant "bytes of a bulk copy miscounted" 's/groups \* VK_WIDE_A_BYTES \/ 2 + VK_WIDE_B_BYTES/VK_WIDE_A_BYTES + VK_WIDE_B_BYTES/' kernels
plant "as it is, dependent launches" '' step
plant "a step's kernel that does not wait" '/if (!in->waited) vk_wait_for_last();/d' step
plant "a step's product that waits behind its norm" '/if (!in->waited) vk_wait_for_last();/d; s/in->held = first;/in->held = first; vk_wait_for_last();/' step
plant "experts' products that do not wait" '/vk_wait_for_last(); .. only then are the weights/d' step
plant "attention that does not wait" '/VK_FETCH_KEYS(from) .. written by/,/vk_decode_rotate/ s/vk_wait_for_last();//' step
plant "a wait behind attention's rotation" '/VK_FETCH_KEYS(from) .. written by/,/    SYNC();/ { s/vk_wait_for_last();//; s/    SYNC();/    vk_wait_for_last(); SYNC();/ }' step
plant "dependent launches in prefill" 's/->dependent \&\& queue->step > 0;/->dependent;/' step
echo "planted: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
