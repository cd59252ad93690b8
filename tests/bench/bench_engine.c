/* bench_engine.c - the stages of MolmoE-1B's widths on the CPU, next to what the machine can do: vision, prefill, decode, and how each grows with
 * views, tokens, experts and keys. Blocks are alike, so a few of them, 2.2 GB, stand for all.
 * bench_engine [GEMM [VIT_BLOCKS [BLOCKS [brief|table|growth|all [WEIGHTS]]]]]: a kernel's name, or auto; blocks of the tower and of the language model
 * (22 16: the real model, 14 GB); brief: neither kernel by kernel (table) nor growth; weights: bf16, or int8 or int4 with tower and connector in int8.
 * Times are medians of ROUNDS requests after one that warms up. A floor is the longer of two times: of the products with operands in registers, bytes
 * where weights are integers, and of reading; both rates are medians of measurements in turns with the requests. */
#define _DEFAULT_SOURCE 1 /* madvise */
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { READ_PIECE = 1 << 18, READ_PIECES = 1024, READ_SUMS = 128, ROUNDS = 5, NEW = 9, VIEWS_MAX = 7, TOKENS_MAX = 1024, LAUNCHES = 65536, POINTS = 4 };
typedef struct bench {
    vp_model_config config;
    vp_engine *engine;
    vp_ceilings ceilings;
    float *pixels, *masks;
    int32_t ids[TOKENS_MAX], places[VIEWS_MAX * 144], blocks[64];
    vp_launch *launches;
    vp_span *spans;
    float *read, read_sum;
    int integers; /* weights are integers */
} bench;
typedef struct sample { double vision_ns, prefill_ns, decode_ns, vision_flops, prefill_flops, prefill_bytes, decode_bytes, bytes_per_s, flops_per_s; } sample;
typedef struct rates { double flops_per_s, byte_flops_per_s, bytes_per_s; } rates; /* products of bf16, of bytes; reading */

/* as many sums as hide the time of an addition, in the processor's widest vectors */
#if defined(__x86_64__) && defined(__linux__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static float read_piece(const float *from) {
    float part[READ_SUMS] = { 0.0f }, sum = 0.0f;
    for (int i = 0; i < READ_PIECE; i += READ_SUMS) {
        _Pragma("omp simd")
        for (int j = 0; j < READ_SUMS; j++) part[j] += from[i + j];
    }
    for (int j = 0; j < READ_SUMS; j++) sum += part[j];
    return sum;
}
/* bytes a second that all threads read from memory; in turns with the requests, because a machine's bandwidth changes from second to second */
static double read_rate(bench *b) {
    float sum = 0.0f;
    int64_t start = vp_clock_ns();
    _Pragma("omp parallel for schedule(static) reduction(+ : sum)")
    for (int piece = 0; piece < READ_PIECES; piece++) sum += read_piece(b->read + (size_t)piece * READ_PIECE);
    b->read_sum += sum;
    return (double)READ_PIECES * READ_PIECE * 4.0 * 1e9 / (double)(vp_clock_ns() - start);
}
/* FLOP/s of the processor's product instruction of a kernel when all operands are in registers: an upper bound for any program. 0: not implemented for it. */
#ifdef __x86_64__
enum { PEAK_STEPS = 3000000, PEAK_SUMS = 12, PEAK_TILES = 1000000 };
#define PEAK(name, targets, type, flops, zero, step) \
    __attribute__((target(targets))) static double name(float *out) { \
        type sum[PEAK_SUMS], one = zero; \
        for (int i = 0; i < PEAK_SUMS; i++) sum[i] = zero; \
        for (int j = 0; j < PEAK_STEPS; j++) { \
            _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_SUMS; i++) sum[i] = step; \
        } \
        for (int i = 0; i < PEAK_SUMS; i++) memcpy(out, &sum[i], sizeof sum[i]), out += 16; \
        return (double)PEAK_STEPS * PEAK_SUMS * (flops); \
    }
PEAK(peak_bf16, "avx512f,avx512bf16", __m512, 64, _mm512_setzero_ps(), _mm512_dpbf16_ps(sum[i], (__m512bh)one, (__m512bh)one))
PEAK(peak_512, "avx512f", __m512, 32, _mm512_setzero_ps(), _mm512_fmadd_ps(one, one, sum[i]))
PEAK(peak_256, "avx2,fma", __m256, 16, _mm256_setzero_ps(), _mm256_fmadd_ps(one, one, sum[i]))
PEAK(peak_vnni, "avx512f,avx512vnni", __m512i, 128, _mm512_setzero_si512(), _mm512_dpbusd_epi32(sum[i], one, one))
/* tiles of 16 x 32 bf16 values or 16 x 64 bytes, four sums as the kernel has; the engine has asked for this process's tiles */
#define PEAK_AMX(name, targets, product, flops) \
    __attribute__((target(targets))) static double name(float *out) { \
        static const struct { uint8_t palette, start_row, reserved[14]; uint16_t row_bytes[16]; uint8_t rows[16]; } tiles = { \
            1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16, 16, 16 } \
        }; \
        _tile_loadconfig(&tiles); \
        _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3); _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7); \
        for (int j = 0; j < PEAK_TILES; j++) { product(0, 4, 6); product(1, 4, 7); product(2, 5, 6); product(3, 5, 7); } \
        _tile_release(); \
        (void)out; \
        return (double)PEAK_TILES * 4.0 * (flops); \
    }
PEAK_AMX(peak_amx, "amx-tile,amx-bf16", _tile_dpbf16ps, 16 * 16 * 32 * 2)
PEAK_AMX(peak_amx_bytes, "amx-tile,amx-int8", _tile_dpbssd, 16 * 16 * 64 * 2)
/* bytes: 1 for products of bytes, where the kernel has them */
static double peak(const char *gemm, int bytes) {
    double (*const work)(float *) = !strcmp(gemm, "amx") ? bytes ? peak_amx_bytes : peak_amx
                                  : bytes && !strncmp(gemm, "avx512", 6) && __builtin_cpu_supports("avx512vnni") ? peak_vnni
                                  : !strcmp(gemm, "avx512bf16") ? peak_bf16 : !strcmp(gemm, "avx512") ? peak_512 : !strncmp(gemm, "avx", 3) ? peak_256 : NULL;
    double flops = 0.0;
    int64_t start = vp_clock_ns();
    if (!work) return 0.0;
    _Pragma("omp parallel reduction(+ : flops)")
    {
        float out[16 * PEAK_SUMS];
        flops += work(out);
        __asm__ volatile("" ::"r"(out) : "memory");
    }
    return flops * 1e9 / (double)(vp_clock_ns() - start);
}
#else
static double peak(const char *gemm, int bytes) { (void)gemm; (void)bytes; return 0.0; }
#endif
static int by_value(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }
static void fail(const char *what, const vp_error *error) {
    fprintf(stderr, "bench_engine: %s: %s: %s\n", what, error->where, error->text);
    exit(1);
}

static vp_reply run(bench *b, int views, int tokens, int top_k, int active, vp_timing timing) {
    static int32_t made[NEW];
    static int64_t step_ns[NEW];
    vp_request request = {0};
    vp_reply reply = {0};
    vp_error error;
    request.input_ids = b->ids; request.input_count = tokens;
    if (views) { request.pixels = b->pixels; request.image_masks = b->masks; request.image_input_idx = b->places; request.views = views; }
    request.top_k = top_k; request.active_blocks = b->blocks; request.active_block_count = active;
    request.max_new_tokens = NEW; request.ignore_eos = 1; request.timing = timing;
    if (timing == VP_TIMING_KERNEL) {
        request.launches = b->launches; request.launch_capacity = LAUNCHES;
        request.spans = b->spans; request.span_capacity = LAUNCHES;
    }
    reply.tokens = made; reply.step_ns = step_ns;
    if (vp_engine_run(b->engine, &request, &reply, &error) != VP_OK) fail("request", &error);
    return reply;
}
static double of(const vp_reply *reply, vp_stage first, vp_stage last) {
    double ns = 0.0;
    for (int stage = (int)first; stage <= (int)last; stage++) ns += (double)reply->times.device_ns[stage];
    return ns;
}
typedef struct setting { int views, tokens, top_k, active; } setting;
static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}
/* all settings in turns, so that a change of the machine's clock or bandwidth meets all of them */
static void measure(bench *b, const setting *settings, int count, sample *out) {
    double vision[POINTS][ROUNDS], prefill[POINTS][ROUNDS], decode[POINTS][ROUNDS], rate[POINTS][ROUNDS], most[POINTS][ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        for (int i = 0; i < count; i++) {
            const setting *s = &settings[i];
            double bytes_per_s = read_rate(b), flops_per_s = peak(vp_engine_gemm(b->engine, 577), b->integers);
            vp_reply reply = run(b, s->views, s->tokens, s->top_k, s->active, VP_TIMING_STAGE);
            if (round < 0) continue;
            rate[i][round] = bytes_per_s;
            most[i][round] = flops_per_s;
            vision[i][round] = of(&reply, VP_STAGE_VIT, VP_STAGE_CONNECTOR);
            prefill[i][round] = of(&reply, VP_STAGE_EMBED, VP_STAGE_SAMPLE);
            decode[i][round] = of(&reply, VP_STAGE_DECODE, VP_STAGE_DECODE) / (NEW - 1);
            out[i].vision_flops = (double)(reply.times.flops[VP_STAGE_VIT] + reply.times.flops[VP_STAGE_CONNECTOR]);
            out[i].prefill_flops = out[i].prefill_bytes = 0.0;
            for (int stage = VP_STAGE_EMBED; stage <= VP_STAGE_SAMPLE; stage++) {
                out[i].prefill_flops += (double)reply.times.flops[stage];
                out[i].prefill_bytes += (double)reply.times.bytes[stage];
            }
            out[i].decode_bytes = (double)reply.times.bytes[VP_STAGE_DECODE] / (NEW - 1);
        }
    }
    for (int i = 0; i < count; i++) {
        out[i].bytes_per_s = median(rate[i]); out[i].flops_per_s = median(most[i]);
        out[i].vision_ns = median(vision[i]); out[i].prefill_ns = median(prefill[i]); out[i].decode_ns = median(decode[i]);
    }
}

/* y over x as a straight line by least squares, and the largest distance from it as a share of y */
static void line(const char *what, const double *x, const double *y, int count) {
    double mx = 0.0, my = 0.0, sxx = 0.0, sxy = 0.0, worst = 0.0, slope, start;
    for (int i = 0; i < count; i++) { mx += x[i] / count; my += y[i] / count; }
    for (int i = 0; i < count; i++) { sxx += (x[i] - mx) * (x[i] - mx); sxy += (x[i] - mx) * (y[i] - my); }
    slope = sxy / sxx;
    start = my - slope * mx;
    for (int i = 0; i < count; i++) worst = fmax(worst, fabs(y[i] - start - slope * x[i]) / y[i]);
    printf("  %-28s", what);
    for (int i = 0; i < count; i++) printf(" %g: %.1f", x[i], y[i] / 1e6);
    printf(" ms; %.2f ms + %.4f ms each, off by %.1f %% at most\n", start / 1e6, slope / 1e6, 100.0 * worst);
}
static void growth(bench *b, int active) {
    static const double views[POINTS] = { 1, 2, 3, 6 }, tokens[POINTS] = { 128, 256, 451, 900 }, experts[POINTS] = { 1, 2, 4, 8 };
    double y[POINTS];
    setting settings[POINTS];
    sample samples[POINTS];
    printf("growth, %d active blocks\n", active);
    for (int i = 0; i < POINTS; i++) settings[i] = (setting){ (int)views[i], 128, 1, 1 };
    measure(b, settings, POINTS, samples);
    for (int i = 0; i < POINTS; i++) y[i] = samples[i].vision_ns;
    line("vision by views", views, y, POINTS);
    for (int i = 0; i < POINTS; i++) settings[i] = (setting){ 0, (int)tokens[i], b->config.top_k, active };
    measure(b, settings, POINTS, samples);
    for (int i = 0; i < POINTS; i++) y[i] = samples[i].prefill_ns;
    line("prefill by tokens", tokens, y, POINTS);
    for (int i = 0; i < POINTS; i++) y[i] = samples[i].decode_ns;
    line("decode step by tokens before", tokens, y, POINTS);
    for (int i = 0; i < POINTS; i++) settings[i] = (setting){ 0, 451, (int)experts[i], active };
    measure(b, settings, POINTS, samples);
    for (int i = 0; i < POINTS; i++) y[i] = samples[i].prefill_ns;
    line("prefill by experts", experts, y, POINTS);
    for (int i = 0; i < POINTS; i++) y[i] = samples[i].decode_ns;
    line("decode step by experts", experts, y, POINTS);
}

/* 0 vision, 1 prefill, 2 decode, 3 anything else */
static int phase_of(const vp_launch *launch) {
    int stage = launch->stage;
    return stage == VP_STAGE_DECODE ? 2 : stage >= VP_STAGE_EMBED && stage <= VP_STAGE_SAMPLE ? 1 : stage == VP_STAGE_VIT || stage == VP_STAGE_CONNECTOR ? 0 : 3;
}
static int alike(const vp_launch *one, const vp_launch *other) {
    return phase_of(one) == phase_of(other) && one->name == other->name && one->part == other->part;
}
/* 1: a product with integer weights */
static int has_integers(const bench *b, const vp_launch *launch) {
    const int part = launch->part;
    return b->integers && !strncmp(launch->name, "gemm", 4) && (part == VP_PART_DENSE || part == VP_PART_EXPERTS || part == VP_PART_VIT_DENSE ||
                                                               part == VP_PART_POOLING || part == VP_PART_PROJECTOR);
}
static double floor_ns(const bench *b, const vp_launch *launch, const rates *most) {
    const double flops_per_s = has_integers(b, launch) ? most->byte_flops_per_s : most->flops_per_s;
    return 1e9 * fmax((double)launch->flops / flops_per_s, (double)launch->bytes / most->bytes_per_s);
}
typedef struct sums { double ns, flops, bytes, floor_ns; int calls; } sums;
static void add(const bench *b, sums *to, const vp_launch *launch, const rates *most) {
    to->ns += (double)launch->ns; to->flops += (double)launch->flops; to->bytes += (double)launch->bytes;
    to->floor_ns += floor_ns(b, launch, most);
    to->calls++;
}
/* all launches that are like launch `first`, unless one before it is */
static void row(const bench *b, int64_t first, int64_t count, double whole, const rates *most) {
    const vp_launch *launch = b->launches;
    sums all = { 0.0, 0.0, 0.0, 0.0, 0 };
    for (int64_t i = 0; i < first; i++)
        if (alike(&launch[i], &launch[first])) return;
    for (int64_t i = first; i < count; i++)
        if (alike(&launch[i], &launch[first])) add(b, &all, &launch[i], most);
    printf("  %-18s %-14s %5d  %8.2f ms  %5.1f %%   %5.1f %% of %s, %5.1f %% of reading, %6.2f of its floor\n", launch[first].name,
           vp_part_name((vp_part)launch[first].part), all.calls, all.ns / 1e6, 100.0 * all.ns / whole,
           100.0 * all.flops / all.ns * 1e9 / (has_integers(b, &launch[first]) ? most->byte_flops_per_s : most->flops_per_s),
           has_integers(b, &launch[first]) ? "bytes" : "bf16 ", 100.0 * all.bytes / all.ns * 1e9 / most->bytes_per_s, all.ns / fmax(all.floor_ns, 1.0));
}
/* the last of ROUNDS requests, each launch with the median of its times, and the medians of the rates measured in turns with them */
static vp_reply measure_launches(bench *b, int active, rates *out) {
    double most[3][ROUNDS], *took = NULL;
    vp_reply reply;
    for (int round = 0; round < ROUNDS; round++) {
        most[0][round] = peak(vp_engine_gemm(b->engine, 577), 0);
        most[1][round] = b->integers ? peak(vp_engine_gemm(b->engine, 577), 1) : most[0][round];
        most[2][round] = read_rate(b);
        reply = run(b, 3, 451, b->config.top_k, active, VP_TIMING_KERNEL);
        if (!took) took = (double *)malloc((size_t)reply.launch_count * ROUNDS * sizeof *took);
        if (!took || reply.launch_count > LAUNCHES) { fprintf(stderr, "bench_engine: no memory for the times of launches\n"); exit(1); }
        for (int64_t i = 0; i < reply.launch_count; i++) took[i * ROUNDS + round] = (double)b->launches[i].ns;
    }
    for (int64_t i = 0; i < reply.launch_count; i++) b->launches[i].ns = (int64_t)median(took + i * ROUNDS);
    free(took);
    out->flops_per_s = median(most[0]); out->byte_flops_per_s = median(most[1]); out->bytes_per_s = median(most[2]);
    if (out->flops_per_s <= 0.0) out->flops_per_s = out->byte_flops_per_s = b->ceilings.flops_per_s; /* this kernel's peak is not implemented */
    return reply;
}
/* where the time of a request goes; cores idle, in the last one, while one thread works alone or waits for another one's last tile */
static void table(bench *b, int active) {
    static const char *const phases[] = { "vision", "prefill", "decode" };
    rates most;
    vp_reply reply = measure_launches(b, active, &most);
    int64_t count = reply.launch_count, spans = reply.span_count < LAUNCHES ? reply.span_count : LAUNCHES;
    double *busy = (double *)calloc((size_t)count + 1, sizeof *busy);
    int cores = 1;
    for (int64_t i = 0; busy && i < spans; i++) {
        if (b->spans[i].launch < count) busy[b->spans[i].launch] += (double)b->spans[i].ns;
        if (b->spans[i].thread >= cores) cores = b->spans[i].thread + 1;
    }
    printf("kernel by kernel; in registers %.0f GFLOP/s of bf16, %.0f of bytes; reading %.1f GB/s\n", most.flops_per_s / 1e9, most.byte_flops_per_s / 1e9,
           most.bytes_per_s / 1e9);
    for (int phase = 0; busy && phase < 3; phase++) {
        sums whole = { 0.0, 0.0, 0.0, 0.0, 0 };
        double worked = 0.0, whole_ns = 0.0;
        for (int64_t i = 0; i < count; i++) {
            if (phase_of(&b->launches[i]) != phase) continue;
            add(b, &whole, &b->launches[i], &most);
            worked += busy[i] > 0.0 ? busy[i] : (double)b->launches[i].host_ns;
            whole_ns += (double)b->launches[i].host_ns;
        }
        printf("%s: %.1f ms, %.2f of its floor, cores idle %.1f %%\n", phases[phase], whole.ns / 1e6, whole.ns / whole.floor_ns,
               100.0 * (1.0 - worked / cores / whole_ns));
        for (int64_t i = 0; i < count; i++)
            if (phase_of(&b->launches[i]) == phase) row(b, i, count, whole.ns, &most);
    }
    free(busy);
}

static void open_engine(bench *b, const char *gemm, int vit_blocks, int blocks, vp_weights weights) {
    vp_engine_options options = vp_engine_options_default();
    vp_error error;
    int64_t start = vp_clock_ns();
    uint32_t state = 1;
    size_t values = (size_t)VIEWS_MAX * 576 * 588;
    vp_model_config_preset("molmoe-1b", &b->config);
    b->config.block_count = blocks;
    b->config.vit_blocks_needed = vit_blocks;
    b->config.vit_block_count = vit_blocks + 1;
    if (vit_blocks < 8) b->config.vit_layers[1] = -2;
    options.config = &b->config; options.gemm = gemm; options.device = "cpu"; options.weights = weights;
    b->integers = weights != VP_WEIGHTS_BF16;
    if (b->integers) options.vision_weights = VP_WEIGHTS_INT8;
    options.max_sequence = TOKENS_MAX + NEW; options.max_views = VIEWS_MAX;
    if (vp_engine_open(&options, &b->engine, &error) != VP_OK) fail("open", &error);
    b->read = (float *)aligned_alloc((size_t)1 << 21, (size_t)READ_PIECES * READ_PIECE * sizeof(float));
    b->pixels = (float *)malloc(values * sizeof(float));
    b->masks = (float *)malloc((size_t)VIEWS_MAX * 576 * sizeof(float));
    b->launches = (vp_launch *)malloc(LAUNCHES * sizeof *b->launches);
    b->spans = (vp_span *)malloc(LAUNCHES * sizeof *b->spans);
    if (!b->read || !b->pixels || !b->masks || !b->launches || !b->spans) { fprintf(stderr, "bench_engine: no memory\n"); exit(1); }
#ifdef __linux__
    madvise(b->read, (size_t)READ_PIECES * READ_PIECE * sizeof(float), MADV_HUGEPAGE); /* as the engine's weights */
#endif
    for (int i = 0; i < READ_PIECES * READ_PIECE; i++) b->read[i] = 1e-9f;
    for (size_t i = 0; i < values; i++) { state = state * 1664525u + 1013904223u; b->pixels[i] = (float)(int32_t)state * 4.6e-10f; }
    for (int i = 0; i < VIEWS_MAX * 576; i++) b->masks[i] = 1.0f;
    for (int i = 0; i < TOKENS_MAX; i++) b->ids[i] = (i * 379 + 7) % 50000;
    for (int i = 0; i < VIEWS_MAX * 144; i++) b->places[i] = i < 127 ? i + 1 : -1;
    for (int i = 0; i < 64; i++) b->blocks[i] = i;
    printf("%s; products of 1 row %s, 8 rows %s, 577 rows %s; %d + %d blocks, %.2f GB, opened in %.1f s\n", vp_engine_device(b->engine),
           vp_engine_gemm(b->engine, 1), vp_engine_gemm(b->engine, 8), vp_engine_gemm(b->engine, 577), vit_blocks, blocks,
           (double)vp_engine_bytes(b->engine) / 1e9, (double)(vp_clock_ns() - start) / 1e9);
    if (vp_engine_ceilings(b->engine, &b->ceilings, &error) != VP_OK) fail("ceilings", &error);
}

/* the best of what this engine and a small one reach: a neighbour of this machine slows some of it down */
static void better(bench *b, const vp_engine_options *of) {
    vp_engine *small = NULL;
    vp_model_config config;
    vp_engine_options options = *of;
    vp_ceilings seen;
    vp_error error;
    vp_model_config_preset("tiny", &config);
    options.config = &config;
    if (vp_engine_open(&options, &small, &error) != VP_OK || vp_engine_ceilings(small, &seen, &error) != VP_OK) fail("ceilings", &error);
    b->ceilings.flops_per_s = fmax(b->ceilings.flops_per_s, seen.flops_per_s);
    b->ceilings.bytes_per_s = fmax(b->ceilings.bytes_per_s, seen.bytes_per_s);
    vp_engine_close(small);
}

int main(int argc, char **argv) {
    static bench b;
    vp_engine_options small = vp_engine_options_default();
    int vit_blocks = argc > 2 ? atoi(argv[2]) : 2, blocks = argc > 3 ? atoi(argv[3]) : 2;
    const char *what = argc > 4 ? argv[4] : "all", *weights = argc > 5 ? argv[5] : "bf16";
    sample s, one, samples[2];
    setting settings[2];
    if (vit_blocks < 2 || vit_blocks > 22 || blocks < 2 || blocks > 16) {
        fprintf(stderr, "bench_engine [GEMM [VIT_BLOCKS 2..22 [BLOCKS 2..16 [brief|table|growth|all [bf16|int8|int4]]]]]\n");
        return 2;
    }
    open_engine(&b, argc > 1 && strcmp(argv[1], "auto") ? argv[1] : NULL, vit_blocks, blocks,
                !strcmp(weights, "int8") ? VP_WEIGHTS_INT8 : !strcmp(weights, "int4") ? VP_WEIGHTS_INT4 : VP_WEIGHTS_BF16);
    settings[0] = (setting){ 3, 451, b.config.top_k, blocks };
    settings[1] = (setting){ 0, 451, b.config.top_k, 1 };
    measure(&b, settings, 2, samples);
    s = samples[0];
    one = samples[1];
    small.gemm = argc > 1 && strcmp(argv[1], "auto") ? argv[1] : NULL; small.device = "cpu"; small.max_sequence = 16; small.max_views = 1;
    for (int i = 0; i < 3; i++) better(&b, &small);
    printf("ceilings of the engine's own, at their best: %.0f GFLOP/s, %.1f GB/s; in turns with requests, medians: %.0f GFLOP/s%s in registers, %.1f GB/s\n",
           b.ceilings.flops_per_s / 1e9, b.ceilings.bytes_per_s / 1e9, s.flops_per_s / 1e9, b.integers ? " of bytes" : "", s.bytes_per_s / 1e9);
    if (s.flops_per_s <= 0.0) s.flops_per_s = b.ceilings.flops_per_s;
    double floor_ns = 1e9 * fmax(s.prefill_flops / s.flops_per_s, s.prefill_bytes / s.bytes_per_s);
    printf("vision, 3 views, %d blocks: %.1f ms, %.1f %% of the products' peak\n", vit_blocks, s.vision_ns / 1e6,
           100.0 * s.vision_flops / s.vision_ns * 1e9 / s.flops_per_s);
    printf("prefill, 451 tokens, %d blocks: %.1f ms, %.2f of its floor\n", blocks, s.prefill_ns / 1e6, s.prefill_ns / floor_ns);
    printf("decode step, %d blocks: %.2f ms, %.1f GB/s, %.1f %% of the read ceiling, %.1f %% of %.1f GB/s read in turns with it\n", blocks, s.decode_ns / 1e6,
           s.decode_bytes / s.decode_ns, 100.0 * s.decode_bytes / s.decode_ns * 1e9 / b.ceilings.bytes_per_s,
           100.0 * s.decode_bytes / s.decode_ns * 1e9 / s.bytes_per_s, s.bytes_per_s / 1e9);
    printf("of each block: prefill %.1f ms, decode step %.2f ms\n", (s.prefill_ns - one.prefill_ns) / 1e6 / (blocks - 1),
           (s.decode_ns - one.decode_ns) / 1e6 / (blocks - 1));
    if (!strcmp(what, "all") || !strcmp(what, "table")) table(&b, blocks);
    if (!strcmp(what, "all") || !strcmp(what, "growth")) growth(&b, blocks);
    vp_engine_close(b.engine);
    free(b.read); free(b.pixels); free(b.masks); free(b.launches); free(b.spans);
    return 0;
}
