/* dependent.h - programmatic dependent launch, included by vlmprof_kernels.cu
 *
 * A kernel of a decode step lets its successor begin at once (vk_let_next_begin): that one asks for its first weights,
 * which no one writes, and then waits for the end of this one (vk_wait_for_last). Only what was there before the step
 * may be read before that, nothing be written, and every kernel waits, because the next one relies on it. Launched
 * without the attribute (VP_GPU_DEPENDENT is off, and chips before sm_90) both instructions do nothing.
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
    (void)cudaLaunchKernelEx(&config, kernel, P(arguments)...); /* the caller asks for the last error */
}
#endif

/* The phases of a step that one kernel does (persistent.h): all blocks meet between two of them at a counter, which
 * each adds 1 to when it has ended a phase. A block waits for the phase before as late as it can: it has asked for its
 * first weights then. `target`: the count when all have ended that phase. */
typedef struct vk_turns {
    unsigned *arrived, target;
    int waited;
} vk_turns;
#if defined(CUDA_ON_CPU)
#define vk_add_release(p) cuda_on_cpu_add(p, 1u, true)
#define vk_load_acquire(p) cuda_on_cpu_load(p, true)
#else
FN void vk_add_release(unsigned *p) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory"); }
FN unsigned vk_load_acquire(unsigned *p) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}
#endif
FN void vk_turns_wait(vk_turns *turns) {
    if (turns->waited) return;
    turns->waited = 1;
    if (TID == 0) {
        const unsigned long long since = vk_spin_begin();
        while ((int)(vk_load_acquire(turns->arrived) - turns->target) < 0)
            vk_spin(since, turns->target, (unsigned long long)(size_t)turns->arrived);
    }
    SYNC();
}
FN void vk_turns_end(vk_turns *turns) {
    vk_turns_wait(turns); /* a block without work in this phase must not be ahead of the others */
    SYNC();
    if (TID == 0) vk_add_release(turns->arrived);
    turns->target += (unsigned)gridDim.x;
    turns->waited = 0;
}
/* the producer of the inputs has ended: the previous kernel, or the previous phase */
FN void vk_wait_for_inputs(vk_turns *turns) {
    if (turns) vk_turns_wait(turns);
    else vk_wait_for_last();
}

/* Kernels of a decode step: with VP_GPU_DEPENDENT one may begin while the one before it runs */
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

/* Memory idles while attention waits for its sums: what the next kernel will read is brought into the second-level
 * cache by then, a line of 128 bytes a thread at a time. bytes 0: nothing */
FN void vk_bring_ahead(const uint4 *from, int64_t bytes) {
    for (int64_t at = 128 * ((int64_t)BLK * NTID + TID); at < bytes; at += 128 * (int64_t)gridDim.x * NTID)
        VK_AHEAD_IN_L2((const char *)(const void *)from + at);
}
