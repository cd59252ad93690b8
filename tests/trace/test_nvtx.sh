#!/bin/bash
# Ranges reach a tool that takes NVTX's: a small library in the place of Nsight Systems, attached as NVTX's header says, sees each push and pop;
# a build without NVTX has no hooks. Needs the CUDA Toolkit's header, nothing else of it.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
include=
for folder in "$(dirname "$nvcc")/../include" "$(dirname "$nvcc")/../targets/x86_64-linux/include" /usr/local/cuda/include /usr/include; do
    [ -e "$folder/nvtx3/nvToolsExt.h" ] && { include=$folder; break; }
done
if [ -z "$include" ]; then
    echo "skipped: test_nvtx: no nvtx3/nvToolsExt.h (CUDA Toolkit)"
    echo "test_nvtx: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
. tests/check.sh
build() { # build NAME FLAGS...: from nvtx_tool.c
    local name=$1
    shift
    $CC -std=c11 -Wall -Wextra -Werror -O0 -I. -Iparts -isystem "$include" "$@" tests/trace/nvtx_tool.c -o "$work/$name" -ldl -lm
}

check "the tool compiles" build tool.so -fPIC -shared -DTOOL
check "hooks compile with NVTX" build with -DVLMPROF_NVTX
check "hooks compile without NVTX" build without
check "the tool sees each range" [ "$(NVTX_INJECTION64_PATH=$work/tool.so "$work/with")" = "+request+without a record-- hooks" ]
check "without a tool nothing is seen" [ "$(env -u NVTX_INJECTION64_PATH "$work/with")" = " hooks" ]
check "a build without NVTX has no hooks" [ "$(NVTX_INJECTION64_PATH=$work/tool.so "$work/without")" = " no hooks" ]
echo "test_nvtx: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
