/* bench_gemm.c - every GEMM kernel of this processor at the real model's shapes, with weights of bf16, f32 and integers, interleaved in one
 * run: medians, and each one's ratio to the fastest. Weights rotate through 512 MB, so that they come from memory as in a real request. All
 * threads of OMP_NUM_THREADS. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"

#include "engine/weights.h"
#include "vlmprof_kernels.cu"

enum { ROUNDS = 7, KINDS = 4, VARIANTS = KINDS * VK_GEMM_KERNELS };
static const struct { const char *name; int wide, bits; } kinds[KINDS] = { { "", 0, 0 }, { "-f32", 1, 0 }, { "-int8", 0, 8 }, { "-int4", 0, 4 } };
static const struct { const char *what; int m, n, k;
} shapes[] = {
    { "vit qkv", 577, 3072, 1024 },     { "vit fc1", 577, 4096, 1024 },      { "vit fc2", 577, 1024, 4096 },
    { "prefill qkv", 482, 6144, 2048 }, { "prefill out", 1058, 2048, 2048 }, { "expert", 60, 2048, 2048 },
    { "expert", 16, 2048, 2048 },       { "decode", 1, 2048, 2048 },         { "head", 1, 50304, 2048 },
};
enum { SHAPES = (int)(sizeof shapes / sizeof shapes[0]) };

static int by_value(const void *a, const void *b) {
    return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

int main(void) {
    size_t pool_bytes = (size_t)512 << 20;
    const size_t integers_bytes = (size_t)1058 * (4096 / VK_QUANT_BLOCK) * sizeof(vk_fine), widened_bytes = vk_quant_room_bytes(4096);
    char *integers = (char *)vk_reserve(integers_bytes + vk_bytes_spare(4096)), *widened = (char *)vk_reserve((size_t)vk_host_threads(0) * widened_bytes);
    char *pool = (char *)vk_reserve(pool_bytes), *x = (char *)vk_reserve((size_t)(1058 + VK_ROWS_MAX) * 4096 * 4);
    float *y = (float *)vk_reserve((size_t)1058 * 6144 * 4);
    if (!pool || !x || !y || !integers || !widened) { fprintf(stderr, "bench_gemm: needs 600 MB of memory\n"); return 1; }
    memset(pool, 0x3c, pool_bytes); /* pages that were never written are all one page, which is in a cache */
    memset(x, 0x3c, (size_t)(1058 + VK_ROWS_MAX) * 4096 * 4);
    printf("%-12s %5s %6s %5s  GFLOP/s (m = 1: GB/s of weights), ratio to the fastest; %d threads, medians of %d\n", "shape", "m", "n", "k",
           vk_host_threads(0), ROUNDS);
    for (int s = 0; s < SHAPES; s++) {
        int64_t took[VARIANTS][ROUNDS], fastest = INT64_MAX;
        int m = shapes[s].m, n = shapes[s].n, k = shapes[s].k;
        size_t at = 0;
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < VARIANTS; i++) {
                const vk_gemm_kernel *kernel = &vk_gemm_kernels[i / KINDS];
                int wide = kinds[i % KINDS].wide;
                vk_linear linear = {0};
                took[i][round] = INT64_MAX;
                if (!vk_gemm_usable(kernel, wide)) continue;
                vk_cpu cpu = {.queue.threads = vk_host_threads(0), .wide = wide, .integers_gemm = kernel};
                cpu.many_gemm[0] = vk_many_of(kernel) == VK_WIDENED ? NULL : kernel;
                for (int c = 0; c < VK_SHAPES; c++) cpu.gemm[wide][c] = kernel;
                cpu.integers = integers; cpu.integers_bytes = integers_bytes;
                cpu.widened = widened; cpu.widened_bytes = widened_bytes;
                cpu.begin = kernel->begin; cpu.end = kernel->end;
                linear.n = n; linear.k = linear.k_padded = k; linear.wide = wide; linear.bits = kinds[i % KINDS].bits;
                size_t bytes = (size_t)(n + VK_PAD - 1) / VK_PAD * vk_panel_bytes(&linear);
                if (at + bytes > pool_bytes) at = 0;
                linear.weights = pool + at;
                at += bytes;
                int64_t start = vp_clock_ns();
                vk_linear_run(&cpu, y, n, x, k, m, &linear, VK_STORE_F32);
                took[i][round] = vp_clock_ns() - start;
            }
        for (int i = 0; i < VARIANTS; i++) {
            qsort(took[i], ROUNDS, sizeof took[i][0], by_value);
            if (took[i][ROUNDS / 2] < fastest) fastest = took[i][ROUNDS / 2];
        }
        printf("%-12s %5d %6d %5d ", shapes[s].what, m, n, k);
        for (int i = 0; i < VARIANTS; i++) {
            double ns = (double)took[i][ROUNDS / 2], share = kinds[i % KINDS].wide ? 4 : kinds[i % KINDS].bits ? kinds[i % KINDS].bits / 8.0 + 0.0625 : 2,
                   rate = m == 1 ? (double)n * k * share / ns : 2.0 * m * n * k / ns;
            if (took[i][0] != INT64_MAX) printf("  %s%s %.0f (%.2f)", vk_gemm_kernels[i / KINDS].name, kinds[i % KINDS].name, rate, (double)fastest / ns);
        }
        printf("\n");
    }
    return 0;
}
