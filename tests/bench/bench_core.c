/* bench_core.c - products and attention of real shapes on one core with AMX, next to that core's own peak
 * bench_core [ROUNDS [PART_OF_A_NAME]]: each shape is timed by the thread's processor time, between two runs of tile products whose operands are in
 * registers, so that other programs and a changing clock disturb it little. Shares are medians, with the best; times are the best. Weights are the
 * same ones (near), or come in turns from 384 MB (far). */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"

#include "engine/weights.h"
#include "vlmprof_kernels.cu"

#ifdef VK_AMX
enum { STEPS = 8000, JOBS_MAX = 16, ROUNDS_MAX = 200, POOL_BYTES = 384 << 20, X_BYTES = 32 << 20, Y_BYTES = 64 << 20, PANEL_BYTES = 4 << 20 };
/* an attention: tokens, heads, head_dim; no job */
static const struct { const char *what; int m, n, k, jobs, causal; vk_epilogue epilogue;
} shapes[] = {
    { "vit qkv", 577, 3072, 1024, 1, 0, VK_STORE },          { "vit fc1, quick GELU", 577, 4096, 1024, 1, 0, VK_QUICKGELU },
    { "vit fc1, GELU of tanh", 577, 4096, 1024, 1, 0, VK_GELU_TANH }, { "vit fc1, GELU of erf", 577, 4096, 1024, 1, 0, VK_GELU },
    { "vit wo", 577, 1024, 1024, 1, 0, VK_ADD_F32 },         { "vit fc2", 577, 1024, 4096, 1, 0, VK_ADD_F32 },
    { "prefill qkv", 451, 6144, 2048, 1, 0, VK_STORE_F32 },  { "prefill out", 451, 2048, 2048, 1, 0, VK_ADD_F32 },
    { "16 experts, up", 56, 2048, 2048, 16, 0, VK_STORE_F32 }, { "16 experts, down", 56, 2048, 1024, 16, 0, VK_STORE_F32 },
    { "attention", 577, 16, 64, 0, 0, VK_STORE },            { "attention, causal", 451, 16, 128, 0, 1, VK_STORE },
};
enum { SHAPES = (int)(sizeof shapes / sizeof shapes[0]) };
typedef struct bench { vk_cpu cpu; char *pool, *x, *y; float *bias; size_t at; } bench;

static int64_t processor_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
static int by_value(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }
/* FLOP/ns of tile products alone */
__attribute__((target("amx-tile,amx-bf16"))) static double peak(void) {
    vk_amx_begin();
    int64_t start = processor_ns();
    for (int i = 0; i < STEPS; i++) { _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7); _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7); }
    start = processor_ns() - start;
    vk_amx_end();
    return STEPS * 4.0 * 2 * 16 * 16 * 32 / (double)start;
}
/* ns of one shape */
static int64_t attend(bench *b, int s) {
    vk_attention_job job = {0};
    size_t width = (size_t)(shapes[s].n * shapes[s].k);
    job.y = b->y; job.q = b->x; job.k = b->x + 2 * width; job.v = b->x + 4 * width;
    job.ldy = (int)width; job.ldq = job.ldk = 3 * (int)width;
    job.batch = 1; job.tokens = shapes[s].m; job.heads = job.kv_heads = shapes[s].n; job.head_dim = shapes[s].k; job.causal = shapes[s].causal;
    int64_t start = processor_ns();
    vk_attention_run(&b->cpu, &job);
    return processor_ns() - start;
}
static int64_t multiply(bench *b, int s, int far) {
    vk_linear linears[JOBS_MAX] = {0};
    vk_gemm_job jobs[JOBS_MAX];
    int64_t first_task[JOBS_MAX + 1], start;
    size_t m = (size_t)shapes[s].m, n = (size_t)shapes[s].n, k = (size_t)shapes[s].k, bytes = n * k * 2 * (size_t)shapes[s].jobs;
    if (b->at + bytes > POOL_BYTES) b->at = 0;
    for (int j = 0; j < shapes[s].jobs; j++) {
        vk_linear *linear = &linears[j];
        linear->weights = b->pool + (far ? b->at : 0) + (size_t)j * n * k * 2;
        linear->n = (int)n; linear->k = linear->k_padded = (int)k; linear->bias = b->bias;
        jobs[j].x = b->x + (size_t)j * m * k * 2; jobs[j].y = b->y + (size_t)j * m * n * 4; jobs[j].w = linear;
        jobs[j].m = (int)m; jobs[j].ldx = (int)k; jobs[j].ldy = (int)n;
    }
    if (far) b->at += bytes;
    start = processor_ns();
    vk_gemm_run(&b->cpu, jobs, shapes[s].jobs, first_task, shapes[s].epilogue);
    return processor_ns() - start;
}
static void row(bench *b, int s, int rounds) {
    double tokens = shapes[s].m, width = (double)shapes[s].n * shapes[s].k,
           flops = shapes[s].jobs ? 2.0 * tokens * width * shapes[s].jobs : 4.0 * tokens * tokens * width / (shapes[s].causal ? 2 : 1);
    printf("%-24s", shapes[s].what);
    for (int far = 0; far < (shapes[s].jobs ? 2 : 1); far++) {
        double share[ROUNDS_MAX], took[ROUNDS_MAX];
        for (int round = 0; round < rounds; round++) {
            double before = peak(), ns = (double)(shapes[s].jobs ? multiply(b, s, far) : attend(b, s)), after = peak();
            share[round] = flops / ns / (before > after ? before : after);
            took[round] = ns;
        }
        qsort(share, (size_t)rounds, sizeof *share, by_value);
        qsort(took, (size_t)rounds, sizeof *took, by_value);
        printf("  %s: %4.1f %% of the peak, best %4.1f %%, %6.2f ms", far ? "far" : "near", 100.0 * share[rounds / 2], 100.0 * share[rounds - 1], took[0] / 1e6);
    }
    printf("\n");
}
int main(int argc, char **argv) {
    static bench b;
    const vk_gemm_kernel *amx = &vk_gemm_kernels[0];
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    if (!amx->present()) { fprintf(stderr, "bench_core: this processor has no AMX\n"); return 1; }
    if (rounds < 1 || rounds > ROUNDS_MAX) { fprintf(stderr, "bench_core [ROUNDS 1..%d [PART_OF_A_NAME]]\n", ROUNDS_MAX); return 2; }
    b.cpu.queue.threads = 1;
    for (int c = 0; c < VK_SHAPES; c++) b.cpu.gemm[0][c] = amx;
    b.cpu.begin = amx->begin; b.cpu.end = amx->end;
    b.cpu.attend_bytes = vk_attend_bytes(128, 0);
    b.cpu.attend = vk_reserve(b.cpu.attend_bytes);
    b.cpu.k_panels = vk_reserve(PANEL_BYTES); b.cpu.v_panels = vk_reserve(PANEL_BYTES);
    b.pool = (char *)vk_reserve(POOL_BYTES); b.x = (char *)vk_reserve(X_BYTES); b.y = (char *)vk_reserve(Y_BYTES);
    b.bias = (float *)vk_reserve((size_t)1 << 20);
    if (!b.cpu.attend || !b.cpu.k_panels || !b.cpu.v_panels || !b.pool || !b.x || !b.y || !b.bias) { fprintf(stderr, "bench_core: needs 500 MB of memory\n"); return 1; }
    memset(b.pool, 0x3c, POOL_BYTES); /* pages that were never written are all one page, which is in a cache */
    memset(b.x, 0x3c, X_BYTES);
    memset(b.y, 0, Y_BYTES);
    for (int s = 0; s < SHAPES; s++)
        if (argc < 3 || strstr(shapes[s].what, argv[2])) row(&b, s, rounds);
    return 0;
}
#else
int main(void) {
    fprintf(stderr, "bench_core: AMX is on x86-64 Linux only\n");
    return 1;
}
#endif
