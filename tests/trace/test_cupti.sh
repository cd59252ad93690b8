#!/bin/bash
# What parts/kernels/gpu/cupti_records.h says of libcupti is what the CUDA Toolkit's header and library say, where they are installed.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for include in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/local/cuda/extras/CUPTI/include ''; do [ -e "$include/cupti_activity.h" ] && break; done
if [ -z "$include" ]; then
    echo "skipped: no cupti_activity.h"
    echo "test_cupti: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
cat > "$work/compare.c" <<'C'
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include "kernels/gpu/cupti_records.h"
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel;
typedef CUpti_ActivityMemcpy6 copy;
#else
typedef CUpti_ActivityKernel9 kernel;
typedef CUpti_ActivityMemcpy5 copy;
#endif
typedef CUpti_ActivityMemset4 fill;
typedef CUpti_ActivityExternalCorrelation link_record;
static int failed;
#define SAME(ours, theirs) if ((long)(ours) != (long)(theirs)) failed++, printf("%s is %ld, %s is %ld\n", #ours, (long)(ours), #theirs, (long)(theirs))
#define PLACE(our, field, their, name) SAME(offsetof(our, field), offsetof(their, name)); SAME(sizeof ((our *)0)->field, sizeof ((their *)0)->name)
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    PLACE(vk_cupti_kernel, kind, kernel, kind); PLACE(vk_cupti_kernel, registers, kernel, registersPerThread);
    PLACE(vk_cupti_kernel, begin_ns, kernel, start); PLACE(vk_cupti_kernel, end_ns, kernel, end);
    PLACE(vk_cupti_kernel, grid[0], kernel, gridX); PLACE(vk_cupti_kernel, block[2], kernel, blockZ);
    PLACE(vk_cupti_kernel, static_bytes, kernel, staticSharedMemory); PLACE(vk_cupti_kernel, dynamic_bytes, kernel, dynamicSharedMemory);
    PLACE(vk_cupti_kernel, correlation, kernel, correlationId); PLACE(vk_cupti_kernel, name, kernel, name);
    PLACE(vk_cupti_copy, begin_ns, copy, start); PLACE(vk_cupti_copy, end_ns, copy, end); PLACE(vk_cupti_copy, correlation, copy, correlationId);
    PLACE(vk_cupti_copy, begin_ns, fill, start); PLACE(vk_cupti_copy, end_ns, fill, end); PLACE(vk_cupti_copy, correlation, fill, correlationId);
    PLACE(vk_cupti_link, whose, link_record, externalKind); PLACE(vk_cupti_link, id, link_record, externalId);
    PLACE(vk_cupti_link, correlation, link_record, correlationId);
    SAME(VK_CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); SAME(VK_CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
    SAME(VK_CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET); SAME(VK_CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
    SAME(VK_CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER); SAME(VK_CUPTI_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    SAME(VK_CUPTI_OURS, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0); SAME(VK_CUPTI_END, CUPTI_ERROR_MAX_LIMIT_REACHED);
#define FIND(field, function, parameters) if (library && !dlsym(library, #function)) failed++, printf("%s has no %s\n", argv[1], #function);
    VK_CUPTI_FUNCTIONS(FIND)
    printf("CUPTI API %d, %s\n", CUPTI_API_VERSION, library ? argv[1] : "no library");
    return failed != 0;
}
C
library=$(ls "$include"/../lib64/libcupti.so "$include"/../targets/x86_64-linux/lib/libcupti.so 2>/dev/null | head -n 1)
if $CC -std=gnu11 -O0 -w -Iparts -isystem "$include" -isystem "${CUDA_HOME:-/usr/local/cuda}/include" "$work/compare.c" -o "$work/compare" -ldl &&
    "$work/compare" $library; then
    echo "test_cupti: 1 passed, 0 failed, 0 skipped"
else
    echo "test_cupti: 0 passed, 1 failed, 0 skipped"
    exit 1
fi
