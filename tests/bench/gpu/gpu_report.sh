#!/bin/bash
# gpu_report.sh REPORT LAUNCHES NVCC ARCH..: what the kernels became for each architecture (the program REPORT, gpu_report.c), from what ptxas said
# (build/gpu/vlmprof_kernels.ARCH.o.log), from SASS and from how the kernels are launched at the real model's size (the program LAUNCHES, on an
# emulated chip of that kind; sm_90 without the instructions of sm_90a goes the way of sm_80). Held against tests/bench/gpu/gates.txt, which
# KEEP_GATES=1 rewrites them. cuobjdump and nvdisasm are those next to NVCC or on the PATH; else they are installed from PyPI into build/gpu/tools.
cd "$(dirname "$0")/../../.." || exit 1
B=${B:-build} report=$1 launches=$2 nvcc=$3
shift 3
PATH=$PATH:$(dirname "$(realpath "$(command -v "$nvcc")")"):$PWD/$B/gpu/tools/nvidia/cu13/bin
if ! command -v cuobjdump >/dev/null || ! command -v nvdisasm >/dev/null; then
    echo "installing nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm into $B/gpu/tools" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --target "$B/gpu/tools" 'nvidia-cuda-cuobjdump>=13,<14' 'nvidia-cuda-nvdisasm>=13,<14' \
        >&2 || { echo "gpu-report needs cuobjdump and nvdisasm (CUDA Toolkit)" >&2; exit 1; }
    chmod +x "$B"/gpu/tools/nvidia/cu13/bin/*
fi
arguments=()
set -o pipefail
for arch in "$@"; do
    case $arch in sm_90a) chip=9.0;; sm_100) chip=10.0;; *) chip=8.0;; esac
    CUDA_ON_CPU_CAPABILITY=$chip CUDA_ON_CPU_MULTIPROCESSORS=132 "$launches" | sed "s/^/$arch /" || exit 1
    cuobjdump -sass "$B/gpu/vlmprof_kernels.$arch.o" >"$B/gpu/$arch.sass" || exit 1
done >"$B/gpu/launches.txt"
for arch in "$@"; do arguments+=("$arch" "$B/gpu/vlmprof_kernels.$arch.o.log" "$B/gpu/$arch.sass"); done
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
exec "$report" ${KEEP_GATES:+--keep} tests/bench/gpu/gates.txt "$release" "$B/gpu/launches.txt" "${arguments[@]}"
