/* gemm_choice.h - chooses the CPU's fastest matrix kernel, part of section >>attention in
 * vlmprof_kernels.cu */
#ifndef VK_GEMM_CHOICE_H
#define VK_GEMM_CHOICE_H

/* The fastest kernel on this machine, measured per shape class on a panel that fits in the cache. CPU flags alone
 * mislead: AVX-512 BF16 is the fastest on one processor and slower than fp32 FMA on another. */
static int64_t vk_time_kernel(const vk_gemm_kernel *kernel, int wide, int rows, const void *x, const void *panel,
                              int k) {
    float sums[VK_ROWS_MAX * VK_PAD];
    vk_tile tile = wide ? kernel->tile_wide : kernel->tile;
    if (kernel->begin) kernel->begin();
    tile(sums, x, (size_t)k, panel, (size_t)k, rows);
    int64_t start = vp_clock_ns();
    for (int i = 0; i < 4; i++) tile(sums, x, (size_t)k, panel, (size_t)k, rows);
    start = vp_clock_ns() - start;
    if (kernel->end) kernel->end();
    return start;
}
static int vk_gemm_usable(const vk_gemm_kernel *kernel, int wide) {
    return (wide ? kernel->tile_wide : kernel->tile) != NULL && kernel->present();
}
/* Kernels alternate and the best time of each counts, so other programs or a rising clock affect all equally. */
static const vk_gemm_kernel *vk_gemm_fastest(const char *name, int wide, int rows, const void *x, const void *panel,
                                             int k) {
    const vk_gemm_kernel *fastest = NULL;
    int64_t best = INT64_MAX;
    for (int round = 0; round < 12; round++)
        for (int i = 0; i < VK_GEMM_KERNELS; i++) {
            const vk_gemm_kernel *kernel = &vk_gemm_kernels[i];
            if ((name && strcmp(kernel->name, name)) || !vk_gemm_usable(kernel, wide)) continue;
            int64_t took = vk_time_kernel(kernel, wide, rows, x, panel, k);
            if (took < best) { best = took; fastest = kernel; }
        }
    return fastest;
}
/* Integers: the first kernel in the table that multiplies bytes is fastest, even if another one is for bf16. Otherwise
 * the first one that multiplies blocks, but only if the one for bf16 also does: AVX-512 without VNNI does not. */
static const vk_gemm_kernel *vk_gemm_integers(const char *name, const vk_gemm_kernel *otherwise) {
    const vk_gemm_kernel *blocks = NULL;
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        const vk_gemm_kernel *kernel = &vk_gemm_kernels[i];
        if ((name && strcmp(kernel->name, name)) || !vk_gemm_usable(kernel, 0)) continue;
        if (vk_many_of(kernel) == VK_BYTES) return kernel;
        if (!blocks && vk_many_of(kernel) == VK_BLOCKS) blocks = kernel;
    }
    return blocks && otherwise && vk_many_of(otherwise) == VK_BLOCKS ? blocks : otherwise;
}
/* Many rows: by default the integers of the kernel above; on demand those of the first kernel that has the kind. */
static void vk_gemm_choose_integers(vk_cpu *cpu, const char *name) {
    const vk_gemm_kernel *usual = vk_gemm_integers(name, cpu->gemm[0][VK_SHAPES - 1]);
    cpu->integers_gemm = vk_gemm_integers(name, cpu->gemm[0][0]);
    cpu->queue.usual = vk_activations_of(usual);
    for (int i = VK_GEMM_KERNELS - 1; i >= 0; i--) {
        const vk_gemm_kernel *kernel = &vk_gemm_kernels[i];
        const int kind = vk_gemm_usable(kernel, 0) ? vk_activations_of(kernel) : VP_ACTIVATIONS_BF16;
        if ((name && strcmp(kernel->name, name)) || kind == VP_ACTIVATIONS_BF16) continue;
        cpu->many_gemm[kind] = kernel;
        cpu->queue.inputs |= 1u << kind;
        if (kernel->begin) { cpu->begin = kernel->begin; cpu->end = kernel->end; }
    }
    if (cpu->queue.usual != VP_ACTIVATIONS_BF16) cpu->many_gemm[VP_ACTIVATIONS_AUTO] = usual;
}
/* `name` forces the kernel, even for f32 layers in bf16 mode if it has an f32 variant; otherwise measurement decides */
static vp_result vk_gemm_choose(vk_cpu *cpu, const char *name, vp_error *error) {
    enum { K = 1024 };
    size_t rows_bytes = sizeof(float) * K * (VK_ROWS_MAX + VK_ROWS_MAX), panel_bytes = sizeof(float) * K * VK_PAD;
    char *inputs = (char *)calloc(1, rows_bytes + panel_bytes);
    if (!inputs) return vp_error_set(error, VP_ERR_MEMORY, -1, "gemm choice", "not enough memory for the measurement");
    for (int wide = cpu->wide; wide < 2; wide++)
        for (int s = 0; s < VK_SHAPES; s++) {
            const vk_gemm_kernel *kernel =
                vk_gemm_fastest(name, wide, vk_shape_rows[s], inputs, inputs + rows_bytes, K);
            if (!kernel && wide != cpu->wide)
                kernel = vk_gemm_fastest(NULL, wide, vk_shape_rows[s], inputs, inputs + rows_bytes, K);
            cpu->gemm[wide][s] = kernel;
            if (kernel && kernel->begin) { cpu->begin = kernel->begin; cpu->end = kernel->end; }
        }
    free(inputs);
#ifdef VK_X86
    cpu->fetches = __builtin_cpu_is("intel") != 0;
#endif
    if (cpu->gemm[0][0]) vk_gemm_choose_integers(cpu, name);
    if (!cpu->gemm[cpu->wide][0])
        return vp_error_set(error, VP_ERR_RANGE, -1, name,
                            "this processor has no GEMM kernel of that name for this arithmetic");
    return VP_OK;
}

#endif
