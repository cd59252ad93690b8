/* dependent.h - programmatic dependent launch, included by vlmprof_kernels.cu
 *
 * A kernel of a decode step lets its successor begin at once (vk_let_next_begin). The successor requests its first
 * weights, which are read-only, and then waits for the end of this kernel (vk_wait_for_last). Before that wait it may
 * read only data written before the step, and may not write. Every kernel waits, because the next one relies on it.
 * After the wait, x is read by ordinary loads: the wait makes everything that earlier kernels wrote visible, and its
 * "memory" keeps the loads behind it. selftest and test_model compare results with those of ordinary launches, bit by
 * bit.
 * Both instructions do nothing without the launch attribute (VP_GPU_DEPENDENT off, or a chip before sm_90).
 * source: CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"; PTX ISA, griddepcontrol */
#if defined(CUDA_ON_CPU)
#define vk_let_next_begin cuda_on_cpu_grid_launch_dependents
#define vk_wait_for_last cuda_on_cpu_grid_wait
#else
FN void vk_let_next_begin(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
FN void vk_wait_for_last(void) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
template <class... P, class... A>
static void vk_launch_dependent(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes,
                                cudaStream_t stream, A... arguments) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, kernel, P(arguments)...); /* the caller checks the last error */
}
#endif

/* Kernels of a decode step: with VP_GPU_DEPENDENT a kernel may begin while the previous one runs */
#define LAUNCH_STEP(name, blocks, threads, shared, flops, bytes, ...) \
    do { \
        vk_grid(queue, (const void *)name, (int64_t)(blocks), (int)(threads), (int64_t)(shared)); \
        if (vk_begin(queue, #name, (int64_t)(flops), (int64_t)(bytes))) { \
            if (vk_is_dependent(queue)) \
                CUDA_LAUNCH_DEPENDENT(name, (unsigned)(blocks), (unsigned)(threads), (size_t)(shared), \
                                      (cudaStream_t)queue->stream, __VA_ARGS__); \
            else \
                CUDA_LAUNCH(name, (unsigned)(blocks), (unsigned)(threads), (size_t)(shared), \
                            (cudaStream_t)queue->stream, __VA_ARGS__); \
            vk_cuda_check(queue, cudaGetLastError(), #name, VK_HERE); \
            vk_end(queue); \
        } \
    } while (0)

/* Memory is idle while attention waits for its sums. This prefetches the next kernel's data into the second-level
 * cache, one line of 128 bytes per thread at a time. bytes 0: does nothing. */
FN void vk_bring_ahead(const uint4 *from, int64_t bytes) {
    for (int64_t at = 128 * ((int64_t)BLK * NTID + TID); at < bytes; at += 128 * (int64_t)gridDim.x * NTID)
        VK_AHEAD_IN_L2((const char *)(const void *)from + at);
}
