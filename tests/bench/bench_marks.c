/* bench_marks.c - the CPU backend's linear layers at the real model's shapes as shares of what this machine can do: the bf16 peak of its best
 * unit for ViT and prefill, the read bandwidth for decode; both measured in the same rounds, all threads. Next to them PyTorch's linear in bf16
 * in the same rounds, when python3 (or $PYTHON) can import torch. Each turn is one untimed call, which wakes the threads, and TURN timed ones. Medians. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"

#include "engine/weights.h"
#include "vlmprof_kernels.cu"

#include <signal.h>
#include <sys/wait.h>

enum { ROUNDS = 9, TURN = 3, COUNT = ROUNDS * TURN };
typedef struct mark { const char *what; int m, n, k; double reach; } mark;
static const mark marks[] = {
    { "vit qkv", 577, 3072, 1024, 0.5 },     { "vit out", 577, 1024, 1024, 0.5 },      { "vit fc1", 577, 4096, 1024, 0.5 },
    { "vit fc2", 577, 1024, 4096, 0.5 },     { "prefill qkv", 482, 6144, 2048, 0.5 },  { "prefill out", 1058, 2048, 2048, 0.5 },
    { "expert up", 132, 2048, 2048, 0 },     { "expert down", 132, 2048, 1024, 0 },    { "decode qkv", 1, 6144, 2048, 0.85 },
    { "head", 1, 50304, 2048, 0.85 },
};
enum { MARKS = (int)(sizeof marks / sizeof marks[0]) };
static char *pool;
static const size_t pool_bytes = (size_t)512 << 20;

static int by_value(const void *a, const void *b) {
    return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}
static int64_t median(int64_t *ns) {
    qsort(ns, COUNT, sizeof *ns, by_value);
    return ns[COUNT / 2];
}

/* the unit's products on operands that are in registers or the first-level cache, every thread; returns FLOPs, time in *ns */
#ifdef VK_AMX
VK_TAMX static void spin_amx(int turns) {
    static const char operands[2048] = { 0 };
    vk_amx_begin();
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
    _tile_loadd(4, operands, 64); _tile_loadd(5, operands, 64); _tile_loadd(6, operands, 64); _tile_loadd(7, operands, 64);
    for (int i = 0; i < turns; i++) { _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7); _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7); }
    vk_amx_end();
}
#endif
static double peak_flops(int threads, const vk_gemm_kernel *kernel, int64_t *ns) {
    enum { TURNS = 20000, K = 256 };
    double flops = 0;
    int64_t start = vp_clock_ns();
#pragma omp parallel num_threads(threads) reduction(+ : flops)
    {
#ifdef VK_AMX
        if (kernel->tile == vk_tile_amx) {
            spin_amx(TURNS);
            flops += (double)TURNS * 4 * 2 * 16 * 16 * 32;
        } else
#endif
        { /* no unit of its own: its own tile on operands in the first-level cache is the best that is known */
            static const uint16_t panel[VK_PAD * K] = { 0 }, x[VK_ROWS_MAX * K] = { 0 };
            float y[VK_ROWS_MAX * VK_PAD];
            for (int i = 0; i < TURNS / 10; i++) kernel->tile(y, x, K, panel, K, 24);
            flops += (double)(TURNS / 10) * 2 * 24 * VK_PAD * K;
        }
    }
    *ns = vp_clock_ns() - start;
    return flops;
}
static volatile uint64_t sink;
static int64_t read_pool(int threads) {
    const uint64_t *p = (const uint64_t *)(const void *)pool;
    int64_t start = vp_clock_ns(), count = (int64_t)(pool_bytes / 8);
    uint64_t sum = 0;
#pragma omp parallel for simd num_threads(threads) reduction(^ : sum)
    for (int64_t i = 0; i < count; i++) sum ^= p[i];
    sink = sum;
    return vp_clock_ns() - start;
}

/* one product, its weights read from the pool after those of the product before */
static int64_t our_linear(vk_queue *queue, float *y, const char *x, const mark *m) {
    static size_t at;
    size_t bytes = (size_t)m->n * (size_t)m->k * 2;
    if (at + bytes > pool_bytes) at = 0;
    vk_linear w = {.weights = pool + at, .n = m->n};
    w.k = w.k_padded = m->k;
    at += bytes;
    int64_t start = vp_clock_ns();
    vk_cpu_linear(queue, y, w.n, x, w.k, m->m, &w, VK_STORE_F32);
    return vp_clock_ns() - start;
}

/* PyTorch as a child that answers a line with a line */
typedef struct torch { FILE *ask, *answer; pid_t child; char version[64]; } torch;
static int torch_start(torch *t, int threads) {
    int in[2], out[2];
    char number[16];
    const char *python = getenv("PYTHON") ? getenv("PYTHON") : "python3";
    snprintf(number, sizeof number, "%d", threads);
    if (pipe(in) || pipe(out)) return 0;
    signal(SIGPIPE, SIG_IGN);
    t->child = fork();
    if (t->child == 0) {
        dup2(in[0], 0); dup2(out[1], 1);
        close(in[0]); close(in[1]); close(out[0]); close(out[1]);
        execlp(python, python, "tests/bench/torch_linear.py", number, (char *)NULL);
        _exit(127);
    }
    close(in[0]); close(out[1]);
    t->ask = fdopen(in[1], "w");
    t->answer = fdopen(out[0], "r");
    if (!t->ask || !t->answer || !fgets(t->version, sizeof t->version, t->answer)) return 0;
    t->version[strcspn(t->version, "\n")] = 0;
    return 1;
}
static int64_t torch_linear(torch *t, int m, int n, int k) {
    char line[64];
    fprintf(t->ask, "%d %d %d\n", m, n, k);
    fflush(t->ask);
    return fgets(line, sizeof line, t->answer) ? atoll(line) : -1;
}

int main(void) {
    static int64_t ours[MARKS][COUNT], theirs[MARKS][COUNT], peak[COUNT], reading[COUNT];
    vk_queue *queue;
    vp_error error;
    torch t = {0};
    int has_torch, threads = vk_host_threads(0);
    double flops = 0;
    char *x = (char *)vk_reserve((size_t)(1058 + VK_ROWS_MAX) * 4096 * 4);
    float *y = (float *)vk_reserve((size_t)1058 * 6144 * 4 + 50304 * 4);
    pool = (char *)vk_reserve(pool_bytes);
    vk_setup setup = {.threads = threads};
    if (!pool || !x || !y || vk_cpu_open(&setup, &queue, &error) != VP_OK) { fprintf(stderr, "bench_marks: needs 600 MB of memory\n"); return 1; }
    memset(pool, 1, pool_bytes);
    has_torch = torch_start(&t, threads);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = -2; i < MARKS; i++)
            for (int call = -1; call < TURN; call++) {
                int64_t ns = i == -2 ? read_pool(threads) : i == -1 ? 0 : our_linear(queue, y, x, &marks[i]);
                if (i == -1) flops = peak_flops(threads, vk_cpu_of(queue)->gemm[0][VK_SHAPES - 1], &ns);
                if (call >= 0) (i == -2 ? reading : i == -1 ? peak : ours[i])[round * TURN + call] = ns;
                if (i < 0 || call < TURN - 1) continue;
                for (int k = -1; k < TURN; k++) {
                    ns = has_torch ? torch_linear(&t, marks[i].m, marks[i].n, marks[i].k) : -1;
                    if (k >= 0) theirs[i][round * TURN + k] = ns;
                }
            }
    {
        double gflops = flops / (double)median(peak), gbs = (double)pool_bytes / (double)median(reading);
        printf("peaks, %d threads, medians of %d: bf16 %.0f GFLOP/s (%s), reading %.1f GB/s (one row: %s)\n", threads, COUNT, gflops,
               vk_cpu_gemm(queue, 0, 1024), gbs, vk_cpu_gemm(queue, 0, 1));
        printf("%-12s %5s %6s %5s  %10s %6s %6s   %s\n", "shape", "m", "n", "k", "ours", "share", "reach", has_torch ? "PyTorch" : "PyTorch: not installed");
        for (int i = 0; i < MARKS; i++) {
            double work = marks[i].m == 1 ? 2.0 * marks[i].n * marks[i].k : 2.0 * marks[i].m * marks[i].n * marks[i].k; /* bytes or FLOPs */
            double rate = work / (double)median(ours[i]), limit = marks[i].m == 1 ? gbs : gflops, other = work / (double)median(theirs[i]);
            printf("%-12s %5d %6d %5d  %10.1f %5.0f%% ", marks[i].what, marks[i].m, marks[i].n, marks[i].k, rate, 100 * rate / limit);
            if (marks[i].reach > 0) printf("%5.0f%%", 100 * marks[i].reach);
            else printf("%6s", "-");
            if (has_torch) printf("   %10.1f (%.2f x)", other, rate / other);
            printf("  %s\n", marks[i].m == 1 ? "GB/s of weights" : "GFLOP/s");
        }
        if (has_torch) printf("PyTorch %s, torch.nn.functional.linear in bf16\n", t.version);
    }
    if (t.ask) fclose(t.ask);
    if (t.child > 0) waitpid(t.child, NULL, 0);
    vk_cpu_close(queue);
    return 0;
}
