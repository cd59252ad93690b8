/* nvtx.h - ranges of the host for an attached tool, part of section >>backend in vlmprof_kernels.cu. Each object built
 * with NVTX has them.
 *
 * NVTX, through which tools like Nsight Systems receive ranges, is a header of the CUDA Toolkit without a library. A
 * build without nvcc requests it with -DVLMPROF_NVTX -isystem <toolkit>/include. */
#if defined(__CUDACC__) && defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>) && !defined(VLMPROF_NVTX)
#define VLMPROF_NVTX 1
#endif
#endif
#ifdef VLMPROF_NVTX
#include <nvtx3/nvToolsExt.h>

static void vk_nvtx_push(void *user, const char *name) {
    (void)user;
    nvtxRangePushA(name);
}
static void vk_nvtx_pop(void *user) {
    (void)user;
    nvtxRangePop();
}
static const vp_range_hooks vk_nvtx_hooks = {vk_nvtx_push, vk_nvtx_pop, NULL};
static const vp_range_hooks *vk_range_hooks(void) { return &vk_nvtx_hooks; }
#else
static const vp_range_hooks *vk_range_hooks(void) { return NULL; }
#endif
