/* quant.h - linears with integer weights of 8 or 4 bits, part of section >>gemm in vlmprof_kernels.cu
 *
 * Inputs become integers before such products, once for all panels (quant_rows.h, quant_bytes.h). A panel used by many
 * rows stays in the cache while the rows use it: unchanged, as bytes or, without integer inputs, as bf16. */
#ifndef VK_CPU_QUANT_H
#define VK_CPU_QUANT_H

/* a panel as bf16: pairs of values of k for each of 32 rows */
static VK_CLONES void vk_quant_widen(uint16_t *out, const char *panel, int k_padded, int bits) {
    uint32_t *pairs = (uint32_t *)(void *)out;
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK) {
        const uint16_t *scale = (const uint16_t *)(const void *)panel;
        const uint32_t *words = (const uint32_t *)(const void *)(panel + VK_PAD * 2);
        panel += bits == 8 ? VK_QUANT_BYTES_8 : VK_QUANT_BYTES_4;
        for (int k = 0; k < VK_QUANT_BLOCK; k += 2, pairs += VK_PAD) {
            int shift = bits == 8 ? k % 4 * 4 : k % 4 * 4 + k % 8 / 4 * 4;
            const uint32_t *line = words + k / (bits == 8 ? 4 : 8) * VK_PAD;
            if (bits == 8) EACH(c, VK_PAD) {
                    uint32_t word = line[c] >> shift;
                    pairs[c] = vk_f2b(vk_b2f(scale[c]) * (float)(int8_t)word)
                               | (uint32_t)vk_f2b(vk_b2f(scale[c]) * (float)(int8_t)(word >> 16)) << 16;
                }
            else EACH(c, VK_PAD) {
                    uint32_t word = line[c] >> shift;
                    pairs[c] = vk_f2b(vk_b2f(scale[c]) * (float)((int)(word & 15) - 8))
                               | (uint32_t)vk_f2b(vk_b2f(scale[c]) * (float)((int)(word >> 16 & 15) - 8)) << 16;
                }
        }
    }
}
/* bytes that one thread widens into: a panel of the longest rows */
static void *vk_quant_room(const vk_cpu *cpu, int thread) {
    return (char *)cpu->widened + (size_t)thread * cpu->widened_bytes;
}
static void vk_quant_widen_panel(const vk_cpu *cpu, const vk_linear *linear, const char *panel, int thread) {
    uint16_t *to = (uint16_t *)vk_quant_room(cpu, thread);
    vk_quant_widen(to, panel, linear->k_padded, linear->bits);
}
/* the kernel whose integers the inputs of a job become; NULL: they stay unchanged */
static const vk_gemm_kernel *vk_integers_kernel(const vk_cpu *cpu, const vk_gemm_job *job) {
    if (!job->w->bits || job->m == 0) return NULL;
    if (job->m == 1) return cpu->integers_gemm;
    return cpu->many_gemm[cpu->queue.activations];
}
static const vk_gemm_kernel *vk_job_kernel(const vk_cpu *cpu, const vk_gemm_job *job) {
    const vk_gemm_kernel *integers = vk_integers_kernel(cpu, job);
    return integers ? integers : cpu->gemm[job->w->wide][vk_shape_of(job->m)];
}
/* the most bytes that a row of a job's inputs takes as integers; 0: it stays unchanged */
static size_t vk_quant_row_bytes(const vk_cpu *cpu, const vk_gemm_job *job) {
    const vk_gemm_kernel *kernel = vk_integers_kernel(cpu, job);
    const size_t blocks = (size_t)job->w->k_padded / VK_QUANT_BLOCK;
    if (!kernel) return 0;
    if (job->m == 1) return blocks * sizeof(vk_fine);
    return kernel->blocks ? blocks * kernel->blocks->bytes : vk_bytes_of(1, job->w->k_padded, kernel->group);
}
/* block by block; sums of 24 rows are finished while they are in the first-level cache */
static void vk_quant_rows(const vk_quant_blocks *of, const vk_linear *linear, const vk_sink *sink, float *sums,
                          const char *inputs, const char *panel, int rows) {
    const int blocks = linear->k_padded / VK_QUANT_BLOCK;
    for (int r = 0; r < rows; r += 24) {
        const int now = rows - r < 24 ? rows - r : 24;
        of->multiply(sums, inputs + (size_t)r * (size_t)blocks * of->bytes, panel, blocks, now, linear->bits);
        vk_finish_rows(sink, sums, r, now);
    }
}
/* Multiplies rows r0.. of a job's integer inputs by a panel. Returns 0 if the panel must be widened. */
static int vk_quant_panel(const vk_cpu *cpu, const vk_gemm_kernel *kernel, const vk_gemm_job *job, const vk_sink *sink,
                          float *sums, char *integers, vk_groups *groups, int index, int r0, int rows) {
    int k = job->w->k_padded, bits = job->w->bits;
    const char *panel = vk_panel_at(job->w, index);
    if (job->m == 1) {
        const vk_fine *fine = (const vk_fine *)(const void *)integers;
        kernel->row[cpu->fetches][bits == 4](sums, fine, panel, k / VK_QUANT_BLOCK);
        vk_finish_rows(sink, sums, 0, 1);
        return 1;
    }
    if (!vk_integers_kernel(cpu, job)) return 0;
    if (kernel->blocks) {
        const size_t row = (size_t)(k / VK_QUANT_BLOCK) * kernel->blocks->bytes;
        vk_quant_rows(kernel->blocks, job->w, sink, sums, integers + (size_t)r0 * row, panel, rows);
        return 1;
    }
    vk_bytes x = vk_bytes_at(integers, job->m, k, kernel->group);
    x = vk_bytes_from(&x, r0);
    kernel->many(sink, sums, &x, groups, panel, rows);
    return 1;
}
/* the experts of a decode step share a row of inputs */
static int vk_quant_again(const vk_gemm_job *jobs, int j) {
    return j > 0 && jobs[j].m == 1 && jobs[j - 1].m == 1 && jobs[j].x == jobs[j - 1].x
           && jobs[j].w->bits == jobs[j - 1].w->bits;
}
static size_t vk_quant_bytes_of(const vk_cpu *cpu, const vk_gemm_job *jobs, int j) {
    return vk_quant_again(jobs, j) ? 0 : vk_quant_row_bytes(cpu, &jobs[j]) * (size_t)jobs[j].m;
}
/* the integers of a job's inputs: after those of the jobs before it */
static char *vk_quant_inputs(const vk_cpu *cpu, const vk_gemm_job *jobs, int j) {
    char *at = (char *)cpu->integers;
    while (vk_quant_again(jobs, j)) j--;
    for (int i = 0; i < j; i++) at += vk_quant_bytes_of(cpu, jobs, i);
    return at;
}
static void vk_quant_row_of_many(int group, char *to, int rows, int row, const uint16_t *x, int k) {
#ifdef VK_X86
    vk_bytes bytes = vk_bytes_at(to, rows, k, group);
    vk_bytes_row(&bytes, row, x, k, group);
#else
    (void)group; (void)to; (void)rows; (void)row; (void)x; (void)k;
#endif
}
static void vk_quant_convert(const vk_quant_blocks *of, char *to, const vk_gemm_job *job, int row, const uint16_t *x) {
    const int blocks = job->w->k_padded / VK_QUANT_BLOCK;
    of->convert(to + (size_t)row * (size_t)blocks * of->bytes, x, blocks, job->w->bits);
}
/* a task is some rows of all jobs' */
enum { VK_QUANT_TASK = 16 };
typedef struct vk_quant_list {
    const vk_cpu *cpu;
    const vk_gemm_job *jobs;
    int count;
} vk_quant_list;
static void vk_quant_share(const void *context, int64_t task, int thread) {
    const vk_quant_list *list = (const vk_quant_list *)context;
    int64_t first = task * VK_QUANT_TASK, end = first + VK_QUANT_TASK, before = 0;
    (void)thread;
    for (int j = 0; j < list->count && before < end; before += list->jobs[j].m, j++) {
        const vk_gemm_job *job = &list->jobs[j];
        int from = first > before ? (int)(first - before) : 0, k = job->w->k_padded;
        const vk_gemm_kernel *kernel = vk_integers_kernel(list->cpu, job);
        if (!kernel || from >= job->m || vk_quant_again(list->jobs, j)) continue;
        char *to = vk_quant_inputs(list->cpu, list->jobs, j);
        for (int r = from; r < job->m && before + r < end; r++) {
            const uint16_t *x = (const uint16_t *)job->x + (size_t)r * (size_t)job->ldx;
            if (job->m == 1) vk_quant_fine((vk_fine *)(void *)to, x, k / VK_QUANT_BLOCK, job->w->bits);
            else if (kernel->blocks) vk_quant_convert(kernel->blocks, to, job, r, x);
            else vk_quant_row_of_many(kernel->group, to, job->m, r, x, k);
        }
    }
}
#endif
