/* slow-emulated: each GPU kernel alone on the emulated GPU, 25 s; in make test whole models run there */
/* test_kernels.c - every kernel of vlmprof_kernels.cu by itself and every operation of a backend, against plain loops in double precision, and single modules of the
 * reference implementation (tests/golden/components). expect.h describes how cases are judged.
 *
 * The file gives one program for each backend: the CPU; with TEST_CUDA and an object that contains vk_gpu_code the GPU; with TEST_EMULATED also the GPU code that runs on
 * the CPU. CPU-only parts (tiles, packing, choice of GEMM kernels) are in test_gemm.c.
 *
 * Every operation is sent twice. The first time is `dry`: it is counted and touches nothing. The second is real. Both times it must count the launches, FLOPs and bytes
 * that follow from the shapes: additions, multiplications, divisions, exponentials and the comparisons of a ranking one each; a softmax 4 a score (difference,
 * exponential, sum, division), 5 with a scale; every operand read or written once. */
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"

#include "engine/engine_internal.h"

#include "support/check.h"

#include "support/expect.h"

enum {
    CHUNK = 640,                                          /* queries that the GPU's attention processes at a time */
    RECORDED = 512,                                       /* steps that the GPU keeps */
    TOKENS_MAX = 1100, HEADS_MAX = 4, HEAD_DIM_MAX = 128, /* sizes of attention over many queries in this test */
    JOBS = 9, MARKS = 8,
    QUANT_ROOM = 64 << 10                                 /* integers that the GPU widens at a time */
};

/* ------------------------------------------------------------------------------------------------------------ the backend */
typedef struct mode { vk_queue *queue; char *room; size_t piece; } mode; /* room: three pieces of the backend's own memory */
static const vk_backend *backend;
static const vk_kernels *kernels;
static mode modes[3];   /* bf16, fp32; bf16 with experts by wgmma */
static vk_queue *queue; /* queue of the mode under test */
static int some, many;  /* rows of ordinary cases; rows for two threads, where that is not slow */

static int on_gpu(void) { return !backend->host_memory; }
static vp_result open_mode(mode *m, int wide, uint32_t gpu, vp_error *error) {
    vk_extent extent = {0};
    vk_setup setup = {.threads = 2};
    setup.gpu = gpu;
    setup.wide = extent.wide = wide;
    extent.marks = MARKS;
    extent.quant_k = wide ? 0 : 1024;
    extent.quant_values = wide ? 0 : QUANT_ROOM;
    extent.experts = JOBS;
    extent.vit.tokens = extent.llm.tokens = TOKENS_MAX;
    extent.vit.heads = extent.vit.kv_heads = extent.llm.heads = extent.llm.kv_heads = HEADS_MAX;
    extent.vit.head_dim = HEAD_DIM_MAX;
    extent.llm.head_dim = 40; /* a head width for which the GPU stores scores */
    vp_result result = backend->open(&setup, &m->queue, error);
    if (result != VP_OK) return result;
    size_t scratch = vk_round_up(backend->scratch_bytes(m->queue, &extent), 256);
    m->piece = backend->stage_bytes < 64 << 20 ? backend->stage_bytes : 1 << 20;
    m->room = (char *)backend->allocate(m->queue, 3 * m->piece + scratch);
    if (!m->room || !backend->use(m->queue, &extent, m->room + 3 * m->piece)) return vp_error_set(error, VP_ERR_MEMORY, -1, "test_kernels", "no memory");
    return VP_OK;
}
static int by_wgmma; /* 1: experts run as on Hopper, on a queue of their own */
static void use_mode(int wide) { queue = modes[by_wgmma && !wide ? 2 : wide].queue; }
/* waits until the backend has finished all work */
static void settle(void) {
    vp_error error = { VP_OK, -1, "", "" };
    backend->mark(queue, 0, NULL);
    check_note(backend->wait(queue, 0, &error) == VP_OK, __FILE__, __LINE__, "%s: %s", error.where, error.text);
}

/* Kernels of wgmma.h whose blocks processed several tiles and reused each stage of their ring; counted in dry runs, because only they keep launch records. */
static const char *const WIDE[2] = { "gate_up_wgmma128", "down_wgmma128" };
static vp_launch records[64];
static int is_recording, went_round[2];
static void note_records(void) {
    for (const vp_launch *l = records; is_recording && l < records + 64 && l < records + queue->log_count; l++) {
        int64_t tiles = (l->shape[0] + 127) / 128 * ((l->shape[1] + 255) / 256), each = tiles / (l->grid + !l->grid);
        for (int w = 0; w < 2; w++) went_round[w] |= strstr(l->name, WIDE[w]) && each >= 2 && each * ((l->shape[2] + 63) / 64) > 2 * 5;
    }
    queue->log = NULL;
}
static struct { vk_work work; uint64_t buffers; } before;
static void begin(int dry) {
    queue->dry = dry;
    queue->log = dry && is_recording ? records : NULL;
    queue->log_capacity = 64; queue->log_count = 0;
    before.work = queue->work;
    before.buffers = sum_of_buffers();
}
static void check_work(vk_work want, int line) {
    vk_work got = queue->work;
    check_note(got.launches - before.work.launches == want.launches, __FILE__, line, "%lld launches counted, expected %lld",
               (long long)(got.launches - before.work.launches), (long long)want.launches);
    check_note(got.flops - before.work.flops == want.flops, __FILE__, line, "%lld FLOPs counted, expected %lld",
               (long long)(got.flops - before.work.flops), (long long)want.flops);
    check_note(got.bytes - before.work.bytes == want.bytes, __FILE__, line, "%lld bytes counted, expected %lld",
               (long long)(got.bytes - before.work.bytes), (long long)want.bytes);
}
static void end(vk_work want, int line) {
    int dry = queue->dry;
    queue->dry = 0;
    note_records();
    check_work(want, line);
    settle();
    check_note((sum_of_buffers() == before.buffers) == dry, __FILE__, line, dry ? "a dry run touched a buffer" : "nothing was done");
}
static vk_work work_of(int64_t launches, int64_t flops, int64_t bytes) {
    vk_work work;
    work.launches = launches;
    work.flops = flops;
    work.bytes = bytes;
    return work;
}
#define SEND_WORK(want, ...) \
    do { \
        for (int send_dry = 1; send_dry >= 0; send_dry--) { begin(send_dry); __VA_ARGS__; end(want, __LINE__); } \
    } while (0)
#define SEND(launches, flops, bytes, ...) SEND_WORK(work_of(launches, flops, bytes), __VA_ARGS__)
static int64_t size_of(int wide) { return wide ? 4 : 2; }

#ifdef TEST_EMULATED
extern int cuda_on_cpu_set(const char *name, const char *value);
#else
static int cuda_on_cpu_set(const char *name, const char *value) { (void)name; (void)value; return 1; }
#endif
/* repeats the launch, with other schedules if there are any: no bit of y may change */
#define CHECK_SAME_BITS(y, bytes, ...) \
    do { \
        size_t same_bytes = (bytes); \
        void *same_as = memcpy(hold(same_bytes), (y), same_bytes); \
        for (int seed = 2; seed <= 4; seed++) { \
            char seed_text[2] = { (char)('0' + seed), 0 }; \
            cuda_on_cpu_set("SEED", seed_text); \
            poison((y), same_bytes); \
            __VA_ARGS__; \
            settle(); \
            check_note(memcmp(same_as, (y), same_bytes) == 0, __FILE__, __LINE__, "other bits in run %d", seed); \
        } \
        cuda_on_cpu_set("SEED", "1"); \
    } while (0)

/* ----------------------------------------------------------------------------------------------------------- norms, elements */
static void test_rmsnorm(int rows, int d, int ldy, int wide) {
    int64_t count = (int64_t)rows * d;
    const float eps = 1e-5f;
    check_case("rmsnorm rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 1.0f);
    float *w = floats((size_t)d, 1.0f);
    void *y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < d; i++) { x[i] = x[i] * 1e-3f + 1e-3f; w[i] += 1.5f; } /* the first row is so small that eps matters */
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * (size_t)d;
        double s = 0.0;
        for (int i = 0; i < d; i++) s += (double)xr[i] * (double)xr[i];
        for (int i = 0; i < d; i++) {
            double want = (double)w[i] * (double)xr[i] / sqrt(s / d + (double)eps);
            /* damaged: without eps */
            expect(&e, (size_t)r * (size_t)d + (size_t)i, want, (double)w[i] * (double)xr[i] / sqrt(s / d), fabs(want), d + 4, wide);
        }
    }
    /* square, sum, times 1 / rms, times weight */
    SEND(1, 4 * count, count * 4 + count * size_of(wide) + 4 * d, kernels->rmsnorm(queue, y, x, w, rows, d, ldy, eps, wide));
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

static void test_layernorm(int rows, int d, int ldy, int wide) {
    int64_t count = (int64_t)rows * d;
    const float eps = 1e-5f;
    check_case("layernorm rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 1.0f);
    float *w = floats((size_t)d, 1.0f);
    float *b = floats((size_t)d, 0.2f);
    void *y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < rows * d; i++) x[i] = i < d ? x[i] * 1e-3f : x[i] + 0.5f; /* one row in which eps matters, others in which the mean does */
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * (size_t)d;
        double mean = 0.0, q = 0.0, size = 0.0;
        for (int i = 0; i < d; i++) { mean += (double)xr[i] / d; size += (double)xr[i] * (double)xr[i] / d; }
        for (int i = 0; i < d; i++) q += ((double)xr[i] - mean) * ((double)xr[i] - mean) / d;
        for (int i = 0; i < d; i++) {
            double v = (double)w[i] * ((double)xr[i] - mean), root = sqrt(q + (double)eps);
            double want = v / root + (double)b[i], spread = fabs((double)w[i]) * (sqrt(size) + fabs((double)xr[i])) / root + fabs((double)b[i]);
            expect(&e, (size_t)r * (size_t)d + (size_t)i, want, v / sqrt(q) + (double)b[i], spread, d + 4, wide); /* without eps */
        }
    }
    /* sum; difference, square, sum; difference, times 1 / deviation, times weight, plus bias */
    SEND(1, 8 * count, count * 4 + count * size_of(wide) + 4 * d + 4 * d, kernels->layernorm(queue, y, x, w, b, rows, d, ldy, eps, wide));
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

static void test_convert(int rows, int d, int ldy, int wide) {
    static const float special[6] = { 1.00390625f, 1.01171875f, -1.00390625f, 1e-40f, -0.0f, 3.0e38f }; /* ties to even in both directions, a subnormal */
    check_case("convert rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 100.0f);
    void *y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < 6 && i < d; i++) x[i] = special[i];
    for (size_t i = 0; i < (size_t)rows * (size_t)d; i++) {
        uint32_t u;
        double rounded = (double)vp_bf16_to_f32(vp_f32_to_bf16(x[i]));
        memcpy(&u, &x[i], 4);
        /* damaged: bf16 by truncation, f32 through bf16 */
        if (wide) expect_exact(&e, i, (double)x[i], rounded);
        else expect_exact(&e, i, rounded, (double)vp_bf16_to_f32((uint16_t)(u >> 16)));
    }
    SEND(1, 0, (int64_t)rows * d * (4 + size_of(wide)), kernels->convert(queue, y, x, rows, d, ldy, wide));
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

/* patches [views, count - ahead, d]; every view begins with the class embedding, if there is one, and has the same position embeddings */
static void test_vit_embed(int views, int count, int ahead, int d) {
    size_t rows = (size_t)(views * count);
    int64_t floats_in = (int64_t)views * (count - ahead) * d, floats_out = (int64_t)views * count * d;
    float *patches, *class_embedding, *positions, *x;
    check_case("vit_embed views %d of %d, %d ahead, d %d", views, count, ahead, d);
    expected e = expect_new(rows, (size_t)d);
    patches = floats(rows * (size_t)d, 1.0f); /* longer than needed, for the damaged reference */
    class_embedding = floats((size_t)d, 1.0f);
    positions = floats((size_t)count * (size_t)d, 1.0f);
    x = (float *)take(rows * (size_t)d * sizeof *x);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < (size_t)d; i++) {
            size_t at = r % (size_t)count, view = r / (size_t)count;
            float p = positions[at * (size_t)d + i], other = ahead ? patches[r * (size_t)d + i] : class_embedding[i];
            float v = at || !ahead ? patches[(r - (ahead ? view + 1 : 0)) * (size_t)d + i] : class_embedding[i];
            expect_exact(&e, r * (size_t)d + i, (double)(v + p), (double)(other + p)); /* damaged: no class token, or only that */
        }
    SEND(1, floats_out, 4 * (floats_in + ahead * d + (int64_t)count * d + floats_out),
         kernels->vit_embed(queue, x, patches, ahead ? class_embedding : NULL, positions, views, count, d));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

static void test_gate_mul(int rows, int h, int ldy, int gelu, int wide) {
    int64_t count = (int64_t)rows * h;
    check_case("gate_mul rows %d h %d ld %d gelu %d wide %d", rows, h, ldy, gelu, wide);
    expected e = expect_new((size_t)rows, (size_t)h);
    float *x = floats((size_t)rows * 2 * (size_t)h, 5.0f);
    void *y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    if (h > 2) { x[0] = -80.0f; x[1] = 80.0f; }
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < h; i++) {
            double g = (double)x[(size_t)r * 2 * (size_t)h + (size_t)i], u = (double)x[(size_t)r * 2 * (size_t)h + (size_t)(h + i)];
            double by = gelu ? 1.5957691216057308 * (g + 0.044715 * g * g * g) : g, want = g / (1.0 + exp(-by)) * u;
            expect(&e, (size_t)r * (size_t)h + (size_t)i, want, u / (1.0 + exp(-u)) * g, fabs(want) * (1.0 + fabs(by)), 16, wide); /* gate and up swapped */
        }
    /* SiLU: exponential, sum, division; GELU: five more; product */
    SEND(1, (gelu ? 9 : 4) * count, count * (4 + 4) + count * size_of(wide), kernels->gate_mul(queue, y, x, rows, h, ldy, gelu, wide));
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

/* ------------------------------------------------------------------------------------------------------------------ vision */
static double pad_of(float mask, const float *pad_embed, size_t features, size_t at, int damaged) {
    double v = 0.0;
    if (mask == 0.0f) v += (double)pad_embed[at];
    if ((mask > 0.0f && mask < 1.0f) || (mask == -1.0f && !damaged)) v += (double)pad_embed[features + at]; /* damaged: -1 is not padding */
    return v;
}
/* every third view, starting at the second, has no picture; hidden has room for one more view per layer */
static void test_pool_windows(int views, int side, int pool, int layers, int w, int wide) {
    static const float masks[5] = { 1.0f, 0.0f, 0.4f, -1.0f, 0.001f };
    size_t patches = (size_t)(side * side), features = (size_t)(layers * w), ld = padded(features), n = (size_t)(pool * pool), windows = patches / n;
    size_t view_floats = (patches + 1) * (size_t)w, layer_floats = (size_t)(views + 1) * view_floats, all = (size_t)views * windows;
    int64_t values = (int64_t)(all * n * features), queries = (int64_t)(all * features);
    int32_t *dead;
    check_case("pool_windows views %d side %d pool %d layers %d w %d wide %d", views, side, pool, layers, w, wide);
    expected keys = expect_new(all * n, features);
    expected query = expect_new(all, features);
    float *hidden = floats((size_t)layers * layer_floats, 1.0f);
    float *mask = floats((size_t)views * patches, 1.0f);
    dead = (int32_t *)take((size_t)views * sizeof *dead);
    float *pad_embed = floats(2 * features, 1.0f);
    void *k = take(all * n * ld * (wide ? 4 : 2));
    void *q = take(all * ld * (wide ? 4 : 2));
    for (size_t p = 0; p < (size_t)views * patches; p++) mask[p] = masks[p < 5 ? p : (size_t)below(5)];
    for (int v = 0; v <= views; v++) {
        if (v < views) dead[v] = v % 3 == 1;
        for (int l = 0; l < layers && (v == views || dead[v]); l++) /* the features of such a view are not read */
            poison(hidden + (size_t)l * layer_floats + (size_t)v * view_floats, view_floats * sizeof(float));
    }
    for (size_t b = 0; b < all; b++)
        for (size_t f = 0; f < features; f++) {
            size_t view = b / windows, across = (size_t)(side / pool), window = b % windows;
            const float *states = hidden + f / (size_t)w * layer_floats + view * view_floats;
            double sum = 0.0, bad_sum = 0.0, size = 0.0;
            for (size_t j = 0; j < n; j++) {
                size_t y = window / across * (size_t)pool + j / (size_t)pool, patch = y * (size_t)side + window % across * (size_t)pool + j % (size_t)pool;
                double v = dead[view] ? 0.0 : (double)states[(patch + 1) * (size_t)w + f % (size_t)w];
                float m = mask[view * patches + patch];
                double want = v + pad_of(m, pad_embed, features, f, 0), bad = v + pad_of(m, pad_embed, features, f, 1);
                expect(&keys, (b * n + j) * features + f, want, bad, fabs(v) + fabs(want), 1, wide);
                sum += want;
                bad_sum += bad;
                size += fabs(v) + fabs(want);
            }
            expect(&query, b * features + f, sum / (double)n, bad_sum / (double)n, size / (double)n, (double)n, wide);
        }
    /* two pads and the sum per value, a division per mean; hidden states, masks, flags, both pads in, keys and queries out */
    SEND(1, 3 * values + queries, 4 * values + 4 * views * (int64_t)patches + 4 * views + 8 * (int64_t)features + size_of(wide) * (values + queries),
         kernels->pool_windows(queue, k, q, hidden, mask, dead, pad_embed, layer_floats, views, layers, w, side, pool, (int)ld, wide));
    verdict(k, ld, wide, &keys);
    verdict(q, ld, wide, &query);
    release_all();
}

/* windows over rows of hidden states in any order; the last rows of some windows are beyond an edge */
static void test_pool_places(int windows, int n, int layers, int w, int wide) {
    const size_t rows = 50, features = (size_t)(layers * w), ld = padded(features), layer_floats = (rows + 3) * (size_t)w, all = (size_t)(windows * n);
    const int64_t values = (int64_t)(all * features), queries = (int64_t)windows * (int64_t)features;
    int32_t *places;
    check_case("pool_places windows %d n %d layers %d w %d wide %d", windows, n, layers, w, wide);
    expected keys = expect_new(all, features);
    expected query = expect_new((size_t)windows, features);
    float *hidden = floats((size_t)layers * layer_floats, 1.0f);
    places = (int32_t *)take(all * sizeof *places);
    void *k = take(all * ld * (wide ? 4 : 2));
    void *q = take((size_t)windows * ld * (wide ? 4 : 2));
    for (size_t i = 0; i < all; i++) places[i] = i % (size_t)n == 1 || (i % (size_t)n && below(3) == 0) ? -1 : (int32_t)below((int)rows);
    for (size_t b = 0; b < (size_t)windows; b++)
        for (size_t f = 0; f < features; f++) {
            double sum = 0.0, size = 0.0, there = 0.0;
            for (size_t j = 0; j < (size_t)n; j++) {
                const int32_t place = places[b * (size_t)n + j];
                const double v = place < 0 ? 0.0 : (double)hidden[f / (size_t)w * layer_floats + (size_t)place * (size_t)w + f % (size_t)w];
                expect(&keys, (b * (size_t)n + j) * features + f, v, v + 1.0, fabs(v), 1, wide);
                sum += v;
                size += fabs(v);
                there += place >= 0;
            }
            expect(&query, b * features + f, sum / there, sum / n, size / there, n, wide); /* damaged: missing rows count */
        }
    SEND(1, values + queries, 4 * values + 4 * (int64_t)all + size_of(wide) * (values + queries),
         kernels->pool_places(queue, k, q, hidden, places, layer_floats, windows, n, layers, w, (int)ld, wide));
    verdict(k, ld, wide, &keys);
    verdict(q, ld, wide, &query);
    release_all();
}

static void test_pool_attention(int windows, int n, int heads, int head_dim, int edges, int wide) {
    size_t w = (size_t)(heads * head_dim), ld = padded(w) + VK_PAD;
    int64_t queries = (int64_t)windows * heads * head_dim, scores = (int64_t)windows * heads * n;
    int32_t *places = NULL;
    check_case("pool_attention windows %d n %d heads %d of %d edges %d wide %d", windows, n, heads, head_dim, edges, wide);
    expected e = expect_new((size_t)windows, w);
    float *q = floats((size_t)windows * w, 2.0f);
    float *kv = floats((size_t)(windows * n) * 2 * w, 2.0f);
    void *y = take((size_t)windows * ld * (wide ? 4 : 2));
    if (edges) places = (int32_t *)take((size_t)(windows * n) * sizeof *places);
    for (int i = 0; edges && i < windows * n; i++) places[i] = i % n && below(2) ? -1 : i; /* negative if there is no key */
    for (int b = 0; b < windows; b++)
        for (int h = 0; h < heads; h++) {
            double p[64], bad[64], sum = 0.0, bad_sum = 0.0, spread = 0.0;
            for (int j = 0; j < n; j++) {
                const float *key = kv + (size_t)(b * n + j) * 2 * w + h * head_dim, *query = q + (size_t)b * w + h * head_dim;
                double s = 0.0, squares = 0.0;
                for (int i = 0; i < head_dim; i++) {
                    double product = (double)query[i] * (double)key[i];
                    s += product;
                    squares += product * product;
                }
                spread = fmax(spread, sqrt(squares * head_dim) + fabs(s));
                p[j] = exp(s / sqrt((double)head_dim));
                if (places && places[b * n + j] < 0) p[j] = 0.0;
                bad[j] = exp(s / head_dim); /* damaged: scale without the root */
                sum += p[j];
                bad_sum += bad[j];
            }
            for (int i = 0; i < head_dim; i++) {
                double want = 0.0, worse = 0.0, size = 0.0;
                for (int j = 0; j < n; j++) {
                    double v = (double)kv[(size_t)(b * n + j) * 2 * w + w + (size_t)(h * head_dim + i)];
                    want += p[j] / sum * v;
                    worse += bad[j] / bad_sum * v;
                    size += p[j] / sum * fabs(v);
                }
                expect(&e, (size_t)b * w + (size_t)(h * head_dim + i), want, worse, size * (2.0 + spread / sqrt((double)head_dim)), n + 4, wide);
            }
        }
    /* per element of head_dim, a product and a sum for scores and for values; softmax with a scale */
    SEND(1, scores * (2 * head_dim + 2 * head_dim + 5), 4 * queries + 4 * queries * 2 * n + size_of(wide) * queries + (edges ? 4 * windows * n : 0),
         kernels->pool_attention(queue, y, q, kv, places, windows, n, heads, head_dim, (int)ld, wide));
    verdict(y, ld, wide, &e);
    release_all();
}

/* ---------------------------------------------------------------------------------------------------------------- language */
static double scaled(float value, float scale, int wide) {
    if (scale == 0.0f) return (double)value;
    return wide ? (double)(value * scale) : (double)vp_bf16_to_f32(vp_f32_to_bf16(value * scale));
}
/* separate table, or the head's panels, or its padded rows; each also times a factor */
static void test_embed(int rows, int d, int wide, int panels, float scale) {
    enum { VOCABULARY = 40 };
    const size_t ld = panels || scale != 0.0f ? padded((size_t)d) : (size_t)d;
    vk_table table = { NULL, (int)ld, panels, scale };
    int32_t *ids;
    float *x;
    check_case("embed rows %d d %d wide %d panels %d scale %g", rows, d, wide, panels, (double)scale);
    expected e = expect_new((size_t)rows, (size_t)d);
    void *values = matrix(VOCABULARY, 0, (size_t)d, (size_t)d, 0.0f, wide);
    void *laid = take(padded(VOCABULARY) * ld * (size_t)size_of(wide));
    for (size_t r = 0; r < VOCABULARY; r++)
        for (size_t c = 0; c < (size_t)d; c++)
            put(laid, panels ? panel_index(r, c, ld, wide) : r * ld + c, (float)get(values, r * (size_t)d + c, wide), wide);
    table.rows = laid;
    ids = (int32_t *)take((size_t)rows * sizeof *ids);
    x = (float *)take((size_t)rows * (size_t)d * sizeof *x);
    for (int r = 0; r < rows; r++) {
        ids[r] = r == 0 ? VOCABULARY - 1 : r == 2 ? -1 : below(VOCABULARY); /* -1: no token, a row of 0 */
        for (int i = 0; i < d; i++)
            expect_exact(&e, (size_t)r * (size_t)d + (size_t)i, ids[r] < 0 ? 0.0 : scaled((float)get(values, (size_t)(ids[r] * d + i), wide), scale, wide),
                         /* damaged: the next token's row */
                         scaled((float)get(values, (size_t)((ids[r] + 1) % VOCABULARY * d + i), wide), scale, wide));
    }
    SEND(1, scale != 0.0f ? (int64_t)rows * d : 0, (int64_t)rows * d * (size_of(wide) + 4) + 4 * rows, kernels->embed(queue, x, &table, ids, rows, d, wide));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

/* image features are added to existing values or replace them; damaged: the opposite */
static void test_scatter(int rows, int d, int is_added) {
    int32_t *index;
    int tokens = rows * 2 + 1;
    check_case("%s rows %d d %d", is_added ? "scatter_add" : "place_rows", rows, d);
    expected e = expect_new((size_t)tokens, (size_t)d);
    float *x = floats((size_t)tokens * (size_t)d, 1.0f);
    float *features = floats((size_t)rows * (size_t)d, 1.0f);
    index = (int32_t *)take((size_t)rows * sizeof *index);
    for (size_t i = 0; i < (size_t)tokens * (size_t)d; i++) expect_exact(&e, i, (double)x[i], (double)x[i]);
    for (int r = 0; r < rows; r++) {
        index[r] = r % 3 == 1 ? -100 : r % 3 == 2 && is_added ? -1 : tokens - 1 - 2 * r;
        for (int i = 0; index[r] >= 0 && i < d; i++) {
            size_t at = (size_t)index[r] * (size_t)d + (size_t)i, from = (size_t)r * (size_t)d + (size_t)i;
            const double added = (double)(x[at] + features[from]), alone = (double)features[from];
            expect_exact(&e, at, is_added ? added : alone, is_added ? alone : added);
        }
    }
    if (is_added) /* damaged: no feature is dropped */
        SEND(1, (int64_t)rows * d, (int64_t)rows * d * (4 + 4 + 4) + 4 * rows, kernels->scatter_add(queue, x, features, index, rows, d));
    else SEND(1, 0, (int64_t)rows * d * (4 + 4) + 4 * rows, kernels->place_rows(queue, x, features, index, rows, d));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}
/* stream += weight * y / rms(y); damaged: without the division. y is small, so eps matters. */
static void test_add_rmsnorm(int rows, int d) {
    check_case("add_rmsnorm rows %d d %d", rows, d);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 1.0f);
    float *y = floats((size_t)rows * (size_t)d, 3e-3f);
    float *w = floats((size_t)d, 1.0f);
    for (int r = 0; r < rows; r++) {
        const float *row = y + (size_t)r * (size_t)d;
        double s = 0.0;
        for (int i = 0; i < d; i++) s += (double)row[i] * (double)row[i];
        for (int i = 0; i < d; i++) {
            size_t at = (size_t)r * (size_t)d + (size_t)i;
            double add = (double)w[i] * (double)row[i];
            expect(&e, at, (double)x[at] + add / sqrt(s / d + (double)1e-5f), (double)x[at] + add,
                   fabs((double)x[at]) + fabs(add / sqrt(s / d + (double)1e-5f)), d + 8, 1);
        }
    }
    /* square, sum; times 1 / rms, times weight, sum. The stream is read and written. */
    SEND(1, 5 * (int64_t)rows * d, (int64_t)rows * d * (4 + 4 + 4) + 4 * d, kernels->add_rmsnorm(queue, x, y, w, rows, d, 1e-5f));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}
/* stream += weight * y; damaged: without the weight */
static void test_add_scaled(int rows, int d) {
    check_case("add_scaled rows %d d %d", rows, d);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 1.0f);
    float *y = floats((size_t)rows * (size_t)d, 1.0f);
    float *w = floats((size_t)d, 1.0f);
    for (size_t i = 0; i < (size_t)rows * (size_t)d; i++) {
        double add = (double)w[i % (size_t)d] * (double)y[i];
        expect(&e, i, (double)x[i] + add, (double)x[i] + (double)y[i], fabs((double)x[i]) + fabs(add), 2, 1);
    }
    SEND(1, 2 * (int64_t)rows * d, (int64_t)rows * d * (4 + 4 + 4) + 4 * d, kernels->add_scaled(queue, x, y, w, rows, d));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}
/* the patches of a window, concatenated, without the first `skipped` rows of each view; damaged: the previous row */
static void test_patch_windows(int views, int side, int pool, int skipped, int d, int wide) {
    int across = side / pool, windows = views * across * across, columns = pool * pool * d, ld = (int)padded((size_t)columns) + 3, rows = skipped + side * side;
    check_case("patch_windows views %d side %d pool %d skipped %d d %d wide %d", views, side, pool, skipped, d, wide);
    expected e = expect_new((size_t)windows, (size_t)columns);
    float *hidden = floats((size_t)(views * rows * d), 1.0f);
    void *y = take((size_t)(windows * ld) * (wide ? 4 : 2));
    for (int w = 0; w < windows; w++)
        for (int i = 0; i < columns; i++) {
            int at = w % (across * across), patch = i / d;
            int row = w / (across * across) * rows + skipped + (at / across * pool + patch / pool) * side + at % across * pool + patch % pool;
            float v = hidden[row * d + i % d], bad = hidden[(row ? row - 1 : row + 1) * d + i % d];
            expect_exact(&e, (size_t)(w * columns + i), wide ? (double)v : (double)vp_bf16_to_f32(vp_f32_to_bf16(v)), (double)bad);
        }
    SEND(1, 0, (int64_t)windows * columns * (4 + size_of(wide)), kernels->patch_windows(queue, y, hidden, views, skipped, d, side, pool, ld, wide));
    verdict(y, (size_t)ld, wide, &e);
    release_all();
}

/* positions of rows x cols patches in squares of `pool`, from the last square to the first, so that the order differs from the patches' */
static int32_t *places_of(int rows, int cols, int pool) {
    int32_t *places = (int32_t *)take((size_t)(2 * rows * cols) * sizeof *places);
    for (int i = 0; i < rows * cols; i++) {
        int square = rows * cols / (pool * pool) - 1 - i / (pool * pool), inside = i % (pool * pool), across = cols / pool;
        places[2 * i] = square / across * pool + inside / pool;
        places[2 * i + 1] = square % across * pool + inside % pool;
    }
    return places;
}
/* patches at their positions, plus a square table stretched over them from corner to corner; damaged: the neighbouring patch, or without the table */
static void test_grid_embed(int rows, int cols, int pool, int side, int d) {
    const vk_picture_grid grid = { rows, cols, pool, side };
    float *x, *patches, *table;
    check_case("grid_embed %d x %d by %d side %d d %d", rows, cols, pool, side, d);
    expected e = expect_new((size_t)(rows * cols), (size_t)d);
    x = (float *)take((size_t)(rows * cols * d) * sizeof *x);
    patches = floats((size_t)(rows * cols * d), 1.0f);
    table = side ? floats((size_t)(side * side * d), 1.0f) : NULL;
    int32_t *places = places_of(rows, cols, pool);
    for (int r = 0; r < rows * cols; r++) {
        int row = places[2 * r], col = places[2 * r + 1], last = rows * cols / (pool * pool) - 1 - r / (pool * pool);
        const float *patch = patches + (size_t)((last * pool * pool + r % (pool * pool)) * d);
        double y = rows > 1 ? (double)row * (side - 1) / (rows - 1) : 0, z = cols > 1 ? (double)col * (side - 1) / (cols - 1) : 0;
        for (int i = 0; i < d; i++) {
            double add = 0, size = 0;
            for (int a = 0; a < side; a++)
                for (int b = 0; b < side; b++) {
                    double share = fmax(0, 1 - fabs(y - a)) * fmax(0, 1 - fabs(z - b)), value = share * (double)table[(a * side + b) * d + i];
                    add += value;
                    size += fabs(value);
                }
            if (side) expect(&e, (size_t)(r * d + i), (double)patch[i] + add, (double)patch[i], fabs((double)patch[i]) + size + 4, 16 + 4 * side, 1);
            else expect_exact(&e, (size_t)(r * d + i), (double)patch[i], (double)patch[i] + 1);
        }
    }
    SEND(1, side ? 8 * (int64_t)rows * cols * d : 0, (int64_t)rows * cols * ((side ? 24 : 8) * d + 8), kernels->grid_embed(queue, x, patches, table, places, &grid, d));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}
/* heads rotated by row and by column, half of the pairs each, the rest unchanged; damaged: by column and row */
static void test_grid_turn(int rows, int cols, int heads, int head_dim, int wide) {
    int width = 3 * heads * head_dim, ld = (int)padded((size_t)width) + 2, half = head_dim / 2, quarter = head_dim / 4, turned = 2 * heads * head_dim;
    check_case("grid_turn %d x %d heads %d of %d wide %d", rows, cols, heads, head_dim, wide);
    expected e = expect_new((size_t)(rows * cols), (size_t)width);
    float *from = floats((size_t)(rows * cols * width), 1.0f);
    float *cs = floats((size_t)((rows > cols ? rows : cols) * half), 1.0f);
    int32_t *places = places_of(rows, cols, 1);
    void *x = take((size_t)(rows * cols * ld) * (wide ? 4 : 2));
    for (int r = 0; r < rows * cols; r++)
        for (int i = 0; i < width; i++) {
            double own = wide ? (double)from[r * width + i] : (double)vp_bf16_to_f32(vp_f32_to_bf16(from[r * width + i]));
            int h = i % head_dim, pair = h % half, at = r * width + i - h;
            double other = (double)from[at + (h + half) % head_dim], angle[2][2];
            if (!wide) other = (double)vp_bf16_to_f32(vp_f32_to_bf16((float)other));
            if (wide) ((float *)x)[r * ld + i] = (float)own;
            else ((uint16_t *)x)[r * ld + i] = vp_f32_to_bf16((float)own);
            if (i >= turned) { expect_exact(&e, (size_t)(r * width + i), own, own + 1); continue; }
            for (int swapped = 0; swapped < 2; swapped++)
                for (int k = 0; k < 2; k++) angle[swapped][k] = (double)cs[places[2 * r + ((pair >= quarter) ^ swapped)] * half + pair % quarter + k * quarter];
            if (h >= half) other = -other;
            expect(&e, (size_t)(r * width + i), own * angle[0][0] - other * angle[0][1], own * angle[1][0] - other * angle[1][1],
                   fabs(own * angle[0][0]) + fabs(other * angle[0][1]), 4, wide);
        }
    SEND(1, 3 * (int64_t)rows * cols * turned, (int64_t)rows * cols * (2 * turned * size_of(wide) + 4 * head_dim + 8),
         kernels->grid_turn(queue, x, cs, places, rows * cols, 2 * heads, head_dim, ld, wide));
    verdict(x, (size_t)ld, wide, &e);
    release_all();
}
/* rows by their indices; damaged: the next row */
static void test_take_rows(int rows, int d, int wide) {
    int ld = (int)padded((size_t)d) + 1;
    int32_t *index;
    check_case("take_rows %d d %d wide %d", rows, d, wide);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *from = floats((size_t)((rows + 1) * d), 1.0f);
    index = (int32_t *)take((size_t)rows * sizeof *index);
    void *y = take((size_t)(rows * ld) * (wide ? 4 : 2));
    for (int r = 0; r < rows; r++) {
        index[r] = (r * 7 + 3) % rows;
        for (int i = 0; i < d; i++) {
            float v = from[index[r] * d + i];
            expect_exact(&e, (size_t)(r * d + i), wide ? (double)v : (double)vp_bf16_to_f32(vp_f32_to_bf16(v)), (double)from[(index[r] + 1) * d + i]);
        }
    }
    SEND(1, 0, (int64_t)rows * (d * (4 + size_of(wide)) + 4), kernels->take_rows(queue, y, from, index, rows, d, ld, wide));
    verdict(y, (size_t)ld, wide, &e);
    release_all();
}
/* each pair's cos and sin are from the row of its own position; damaged: all from the first position */
static void test_compose_rope(int rows, int head_dim) {
    int half = head_dim / 2, stride = rows + 5;
    float *cs, *table;
    int32_t *positions, *axes;
    check_case("compose_rope %d of %d", rows, head_dim);
    expected e = expect_new((size_t)rows, (size_t)head_dim);
    cs = (float *)take((size_t)(rows * head_dim) * sizeof *cs);
    table = floats((size_t)((rows + 3) * head_dim), 1.0f);
    positions = (int32_t *)take((size_t)(3 * stride) * sizeof *positions);
    axes = (int32_t *)take((size_t)half * sizeof *axes);
    for (int i = 0; i < 3 * stride; i++) positions[i] = (i * 5 + 1) % (rows + 2);
    for (int i = 0; i < half; i++) axes[i] = (i + 1) % 3;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < head_dim; i++)
            expect_exact(&e, (size_t)(r * head_dim + i), (double)table[positions[axes[i % half] * stride + r] * head_dim + i],
                         (double)table[(positions[axes[i % half] * stride + r] + 1) * head_dim + i]);
    SEND(1, 0, (int64_t)rows * (8 * head_dim + 12) + 2 * head_dim, kernels->compose_rope(queue, cs, table, positions, axes, rows, stride, head_dim));
    verdict(cs, (size_t)head_dim, 1, &e);
    release_all();
}

static vk_heads heads_of(int heads, int kv_heads, int head_dim, int norm) {
    vk_heads shape = {0};
    shape.heads = heads; shape.kv_heads = kv_heads; shape.head_dim = head_dim; shape.norm = norm; shape.eps = 1e-5f; shape.clip = INFINITY;
    return shape;
}
/* q or k of one token, of width d: normed, clipped to -clip..clip, then rotated in pairs (i, i + half); damaged: pairs (2i, 2i + 1) */
static void expect_rotated(expected *e, size_t row, const float *x, const float *w, int d, const vk_heads *shape, const float *cs, int wide) {
    int head_dim = shape->head_dim, half = head_dim / 2;
    double *y = (double *)malloc((size_t)d * sizeof *y);
    for (int h = 0; h < d; h += head_dim) {
        int from = shape->norm == VK_NORM_WHOLE ? 0 : h, count = shape->norm == VK_NORM_WHOLE ? d : head_dim;
        double s = 0.0, r;
        for (int i = 0; i < count; i++) s += (double)x[from + i] * (double)x[from + i];
        r = 1.0 / sqrt(s / count + (double)shape->eps);
        for (int i = 0; i < head_dim; i++) {
            y[h + i] = shape->norm == VK_NORM_NONE ? (double)x[h + i] : (double)w[shape->norm == VK_NORM_WHOLE ? h + i : i] * (double)x[h + i] * r;
            y[h + i] = fmin(fmax(y[h + i], -(double)shape->clip), (double)shape->clip);
        }
    }
    for (int i = 0; i < d; i++) {
        int in_head = i % head_dim, h = i - in_head, pair = in_head % half, near = in_head / 2;
        double c = (double)cs[pair], sn = (double)cs[half + pair], a = y[h + pair], b = y[h + pair + half];
        double want = in_head < half ? a * c - b * sn : b * c + a * sn, m = y[h + 2 * near], n = y[h + 2 * near + 1];
        double bad = in_head % 2 ? n * (double)cs[near] + m * (double)cs[half + near] : m * (double)cs[near] - n * (double)cs[half + near];
        expect(e, row * (size_t)d + (size_t)i, want, bad, fabs(a) + fabs(b), d + 8, wide);
    }
    free(y);
}
/* cos and sin of angles that depend on head column and position */
static float *rotations(int positions, int head_dim) {
    float *cs = floats((size_t)positions * (size_t)head_dim, 1.0f);
    for (int p = 0; p < positions; p++)
        for (int i = 0; i < head_dim / 2; i++) {
            double angle = 3.0 * (double)cs[p * head_dim + i];
            cs[p * head_dim + i] = (float)cos(angle);
            cs[p * head_dim + head_dim / 2 + i] = (float)sin(angle);
        }
    return cs;
}
/* number of weights in the norms */
static int64_t norm_floats(const vk_heads *shape) {
    return shape->norm == VK_NORM_NONE ? 0 : shape->norm == VK_NORM_HEAD ? 2 * shape->head_dim : (shape->heads + shape->kv_heads) * shape->head_dim;
}
/* `group` heads of q share a head of k; with clip 0 nothing is clipped */
static void test_qk_norm_rope(int rows, int heads, int group, int head_dim, int norm, float clip, int position, int wide) {
    int d = heads * head_dim, kv = d / group, positions = position + rows + 2;
    size_t ldq = padded((size_t)d) + VK_PAD, element = wide ? 4 : 2, row_bytes = (size_t)kv * element;
    vk_heads shape = heads_of(heads, heads / group, head_dim, norm);
    int32_t *at;
    check_case("qk_norm_rope rows %d heads %d of %d, %d share keys, norm %d clip %g position %d wide %d", rows, heads, head_dim, group, norm, (double)clip,
               position, wide);
    if (clip > 0.0f) shape.clip = clip;
    expected eq = expect_new((size_t)rows, (size_t)d);
    expected ek = expect_new((size_t)rows, (size_t)kv);
    expected ev = expect_new((size_t)rows, (size_t)kv);
    float *qkv = floats((size_t)rows * (size_t)(d + 2 * kv), 1.0f);
    float *wq = floats((size_t)d, 1.0f);
    float *wk = floats((size_t)kv, 1.0f);
    float *cs = rotations(positions, head_dim);
    char *q = (char *)take((size_t)rows * ldq * element);
    char *key = (char *)take((size_t)positions * row_bytes);
    char *value = (char *)take((size_t)positions * row_bytes);
    at = (int32_t *)take(sizeof *at);
    *at = position;
    shape.q_norm = wq; shape.k_norm = wk; shape.cs = cs;
    for (int r = 0; r < rows; r++) {
        const float *x = qkv + (size_t)r * (size_t)(d + 2 * kv), *c = cs + (position + r) * head_dim;
        expect_rotated(&eq, (size_t)r, x, wq, d, &shape, c, wide);
        expect_rotated(&ek, (size_t)r, x + d, wk, kv, &shape, c, wide);
        for (int i = 0; i < kv; i++) { /* damaged: k instead of v */
            double v = fmin(fmax((double)x[d + kv + i], -(double)shape.clip), (double)shape.clip);
            expect(&ev, (size_t)(r * kv + i), v, (double)x[d + i], 0.0, 1, wide);
        }
    }
    /* a norm: square, sum, times 1 / rms, times weight; a rotation: three per value. Weights and the table's rows are read once. */
    SEND(1, (int64_t)rows * (d + kv) * (3 + (norm == VK_NORM_NONE ? 0 : 4)),
         (int64_t)rows * (d + 2 * kv) * (4 + size_of(wide)) + 4 * (norm_floats(&shape) + (int64_t)rows * head_dim + 1),
         kernels->qk_norm_rope(queue, q, key, value, qkv, &shape, at, rows, (int)ldq, wide));
    CHECK_INT(*at, position);
    verdict(q, ldq, wide, &eq);
    verdict(key + (size_t)position * row_bytes, (size_t)kv, wide, &ek);
    verdict(value + (size_t)position * row_bytes, (size_t)kv, wide, &ev);
    CHECK(is_poison(key, (size_t)position * row_bytes) && is_poison(key + (size_t)(position + rows) * row_bytes, 2 * row_bytes));
    CHECK(is_poison(value, (size_t)position * row_bytes) && is_poison(value + (size_t)(position + rows) * row_bytes, 2 * row_bytes));
    release_all();
}

static void test_attention_decode(int keys, int heads, int group, int head_dim, int wide) {
    int d = heads * head_dim, kv = d / group, lds = keys + 5;
    vk_heads shape = heads_of(heads, heads / group, head_dim, VK_NORM_NONE);
    float *scores;
    int32_t *position;
    check_case("attention_decode keys %d heads %d of %d, %d share keys, wide %d", keys, heads, head_dim, group, wide);
    expected e = expect_new(1, (size_t)d);
    void *q = matrix(1, 0, (size_t)d, (size_t)d, 0.0f, wide);
    void *k = matrix((size_t)keys, 1, (size_t)kv, (size_t)kv, NAN, wide);
    void *v = matrix((size_t)keys, 1, (size_t)kv, (size_t)kv, NAN, wide);
    void *y = take((size_t)d * (wide ? 4 : 2));
    scores = (float *)take((size_t)(heads * lds) * sizeof *scores);
    position = (int32_t *)take(sizeof *position);
    *position = keys - 1;
    for (int h = 0; h < heads; h++)
        expect_attention(&e, (size_t)(h * head_dim), q, (size_t)(h * head_dim), k, v, (size_t)kv, (size_t)(h / group * head_dim), keys, head_dim, 0, wide);
    SEND(1, (int64_t)heads * keys * (2 * head_dim + 2 * head_dim + 5), size_of(wide) * (2 * (int64_t)keys * kv + 2 * d) + 4,
         kernels->attention_decode(queue, y, q, k, v, scores, position, keys, lds, &shape, wide));
    verdict(y, (size_t)d, wide, &e);
    /* kernels read positions from memory, not from the host, because a recorded step is replayed with other positions */
    poison(y, (size_t)d * (wide ? 4 : 2));
    kernels->attention_decode(queue, y, q, k, v, scores, position, keys + 3, lds, &shape, wide);
    settle();
    verdict(y, (size_t)d, wide, &e);
    release_all();
}

/* ties: logits are multiples of 1/4, and row 0 is constant. Damaged: ties go to the higher index; weights are renormalised when they must not be, or not when they must.
 * */
static void test_router(int rows, int experts, int k, int norm_topk) {
    float *logits, *weight;
    int32_t *index, *want, *bad;
    size_t count = (size_t)rows * (size_t)k;
    check_case("router rows %d experts %d top_k %d norm %d", rows, experts, k, norm_topk);
    expected e = expect_new((size_t)rows, (size_t)k);
    logits = floats((size_t)rows * (size_t)experts, 5.0f);
    weight = (float *)take(count * sizeof *weight);
    index = (int32_t *)take(count * sizeof *index);
    want = (int32_t *)hold(count * sizeof *want);
    bad = (int32_t *)hold(count * sizeof *bad);
    for (int r = 0; r < rows; r++) {
        float *l = logits + (size_t)r * (size_t)experts;
        unsigned char taken[VK_EXPERTS_MAX] = { 0 }, bad_taken[VK_EXPERTS_MAX] = { 0 };
        double sum = 0.0, chosen = 0.0;
        for (int i = 0; i < experts; i++) l[i] = r == 0 ? 1.0f : roundf(l[i] * 4.0f) / 4.0f;
        for (int i = 0; i < experts; i++) sum += exp((double)l[i]);
        for (int s = 0; s < k; s++) {
            int best = -1, worse = -1;
            for (int i = 0; i < experts; i++) {
                if (!taken[i] && (best < 0 || l[i] > l[best])) best = i;
                if (!bad_taken[i] && (worse < 0 || l[i] >= l[worse])) worse = i;
            }
            taken[best] = bad_taken[worse] = 1;
            want[r * k + s] = best;
            bad[r * k + s] = worse;
            chosen += exp((double)l[best]);
        }
        for (int s = 0; s < k; s++) {
            double v = exp((double)l[want[r * k + s]]), two = exp2((double)l[want[r * k + s]]);
            /* if every expert is chosen, there is nothing to renormalise: damaged with exp2 instead of exp */
            double whole = norm_topk ? chosen : sum, other = norm_topk ? sum : chosen;
            expect(&e, (size_t)(r * k + s), v / whole, k < experts ? v / other : two / sum, v / whole * 4.0, experts + 4, 1);
        }
    }
    /* softmax; the ranking compares each expert with all */
    SEND(1, (int64_t)rows * experts * (4 + experts) + (norm_topk ? 2 * (int64_t)count : 0), 4 * (int64_t)rows * experts + (int64_t)count * (4 + 4),
         kernels->router(queue, index, weight, logits, rows, experts, k, norm_topk));
    verdict_ints(index, want, bad, count);
    verdict(weight, (size_t)k, 1, &e);
    release_all();
}

/* all five lists, one after another; damaged: the pairs of an expert in reverse order */
static void moe_reference(int32_t *out, const int32_t *index, int experts, int pairs, int tile_rows, int damaged) {
    int32_t *count = out, *start = out + experts, *list = start + experts + 1, *slot_row = list + pairs, *tiles = slot_row + pairs, at = 0;
    for (int e = 0; e < experts; e++) {
        start[e] = at;
        for (int n = 0; n < pairs; n++) {
            int pair = damaged ? pairs - 1 - n : n;
            if (index[pair] != e) continue;
            slot_row[pair] = at;
            list[at++] = pair;
        }
        count[e] = at - start[e];
    }
    start[experts] = at;
    /* each expert has the tiles before the next expert's first possible tile; a tile without rows is empty */
    for (int e = 0, t = 0; e < experts && tile_rows; e++)
        for (int row = start[e]; t < start[e + 1] / tile_rows + e + 1; t++, row += tile_rows) { tiles[2 * t] = e; tiles[2 * t + 1] = row; }
}
/* `all_to`: the expert that gets all pairs, or -1 */
static void test_moe_lists(int experts, int pairs, int tile_rows, int all_to) {
    int tiles = tile_rows ? pairs / tile_rows + experts : 0, seen = 0;
    size_t lists = (size_t)(2 * experts + 1 + 2 * pairs), count = lists + (size_t)(2 * tiles);
    int32_t *index, *got, *want, *bad;
    check_case("moe_lists experts %d pairs %d tiles of %d rows, all to %d", experts, pairs, tile_rows, all_to);
    index = (int32_t *)take((size_t)pairs * sizeof *index);
    got = (int32_t *)take(count * sizeof *got);
    want = (int32_t *)hold(count * sizeof *want);
    bad = (int32_t *)hold(count * sizeof *bad);
    /* every other expert gets no pairs */
    for (int i = 0; i < pairs; i++) index[i] = all_to >= 0 ? all_to : i < 2 ? experts - 1 : below(experts) / 2 * 2;
    moe_reference(want, index, experts, pairs, tile_rows, 0);
    moe_reference(bad, index, experts, pairs, tile_rows, 1);
    /* every expert compares every pair three times: less, equal, and again for its list. index in; count, start, list, slot_row and tiles out */
    SEND(1, 3 * (int64_t)experts * pairs, 4 * (pairs + experts + experts + 1 + pairs + pairs) + 8 * tiles,
         kernels->moe_lists(queue, got, got + experts, got + 2 * experts + 1, got + 2 * experts + 1 + pairs, tile_rows ? got + lists : NULL, index,
                            experts, pairs, tile_rows));
    verdict_ints(got, want, bad, count);
    for (int t = 0; t < tiles; t++) { /* the tiles contain every row once */
        int rows = got[experts + got[lists + (size_t)(2 * t)] + 1] - got[lists + (size_t)(2 * t + 1)];
        seen += rows < 0 ? 0 : rows < tile_rows ? rows : tile_rows;
    }
    CHECK_INT(seen, tiles ? pairs : 0);
    release_all();
}

static void test_gather(int tokens, int k, int row_bytes) {
    int rows = tokens * k;
    int32_t *list;
    check_case("gather tokens %d top_k %d row bytes %d", tokens, k, row_bytes);
    unsigned char *x = (unsigned char *)take((size_t)tokens * (size_t)row_bytes);
    unsigned char *y = (unsigned char *)take((size_t)rows * (size_t)row_bytes);
    unsigned char *want = (unsigned char *)hold((size_t)rows * (size_t)row_bytes);
    unsigned char *bad = (unsigned char *)hold((size_t)rows * (size_t)row_bytes);
    list = (int32_t *)take((size_t)rows * sizeof *list);
    for (size_t i = 0; i < (size_t)tokens * (size_t)row_bytes; i++) x[i] = (unsigned char)below(256);
    for (int r = 0; r < rows; r++) {
        list[r] = (int32_t)((r * 7 + 3) % rows);
        memcpy(want + (size_t)r * (size_t)row_bytes, x + (size_t)(list[r] / k) * (size_t)row_bytes, (size_t)row_bytes);
        memcpy(bad + (size_t)r * (size_t)row_bytes, x + (size_t)(list[r] % tokens) * (size_t)row_bytes, (size_t)row_bytes); /* slot-major pairs */
    }
    SEND(1, 0, (int64_t)tokens * row_bytes + (int64_t)rows * row_bytes + 4 * rows, kernels->gather(queue, y, x, list, rows, k, row_bytes));
    CHECK(memcmp(y, want, (size_t)rows * (size_t)row_bytes) == 0);
    CHECK(memcmp(y, bad, (size_t)rows * (size_t)row_bytes) != 0);
    release_all();
}

static void test_combine(int rows, int k, int d) {
    int32_t *slot_row;
    int pairs = rows * k;
    check_case("combine rows %d top_k %d d %d", rows, k, d);
    expected e = expect_new((size_t)rows, (size_t)d);
    float *x = floats((size_t)rows * (size_t)d, 1.0f);
    float *expert_rows = floats((size_t)pairs * (size_t)d, 1.0f);
    float *weight = floats((size_t)pairs, 1.0f);
    slot_row = (int32_t *)take((size_t)pairs * sizeof *slot_row);
    for (int i = 0; i < pairs; i++) slot_row[i] = (int32_t)((i + 5) % pairs);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < d; i++) {
            double sum = (double)x[r * d + i], size = fabs(sum), last = 0.0;
            for (int j = 0; j < k; j++) {
                last = (double)weight[r * k + j] * (double)expert_rows[(size_t)slot_row[r * k + j] * (size_t)d + (size_t)i];
                sum += last;
                size += fabs(last);
            }
            expect(&e, (size_t)(r * d + i), sum, sum - last, size, k + 1, 1); /* damaged: without the last slot */
        }
    SEND(1, (int64_t)pairs * d * 2, (int64_t)rows * d * (4 + 4) + (int64_t)pairs * d * 4 + pairs * (4 + 4),
         kernels->combine(queue, x, expert_rows, slot_row, weight, rows, k, d));
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

static void test_argmax(int rows, int n) {
    int32_t *got, *want, *bad;
    check_case("argmax rows %d n %d", rows, n);
    float *x = floats((size_t)rows * (size_t)n, 5.0f);
    got = (int32_t *)take((size_t)rows * sizeof *got);
    want = (int32_t *)hold((size_t)rows * sizeof *want);
    bad = (int32_t *)hold((size_t)rows * sizeof *bad);
    for (int r = 0; r < rows; r++) {
        float *xr = x + (size_t)r * (size_t)n;
        if (r == 0) for (int i = 0; i < n; i++) xr[i] = -INFINITY; /* a row of equal values, in which the first wins */
        else { xr[below(n)] = 7.0f; xr[below(n)] = 7.0f; xr[n - 1] = r % 2 ? 7.0f : -INFINITY; }
        want[r] = bad[r] = 0;
        for (int i = 0; i < n; i++) {
            if (xr[i] > xr[want[r]]) want[r] = i;
            if (xr[i] >= xr[bad[r]]) bad[r] = i; /* damaged: the last of equal values */
        }
    }
    /* two passes of comparisons, for the value and for its index */
    SEND(1, 2 * (int64_t)rows * n, 4 * (int64_t)rows * n + 4 * rows, kernels->argmax(queue, got, x, rows, n));
    verdict_ints(got, want, bad, (size_t)rows);
    release_all();
}
/* NaN never wins against a number; a row with only NaN gives -1, which is not a token. Damaged: comparison starts from the first value. */
static void test_argmax_nan(int n) {
    int32_t *got, want[3] = { -1, 17, 38 }, bad[3] = { 0, 0, 38 };
    check_case("argmax of NaN n %d", n);
    float *x = floats(3 * (size_t)n, 1.0f);
    got = (int32_t *)take(3 * sizeof *got);
    for (int i = 0; i < n; i++) { x[i] = NAN; x[n + i] = i == 17 ? -3.0f : NAN; x[2 * n + i] = i < 39 ? (float)i : NAN; }
    kernels->argmax(queue, got, x, 3, n);
    settle();
    verdict_ints(got, want, bad, 3);
    release_all();
}
static void test_read(int blocks, int count, int streams) {
    float *x, *got;
    check_case("read blocks %d count %d", blocks, count);
    expected e = expect_new(1, (size_t)blocks);
    x = floats((size_t)blocks * (size_t)count, 1.0f);
    got = (float *)take((size_t)blocks * sizeof *got);
    for (int b = 0; b < blocks; b++) {
        double sum = 0.0, squares = 0.0, last = 0.0;
        for (int i = 0; i < count; i++) {
            last = (double)x[(size_t)b * (size_t)count + (size_t)i];
            sum += last;
            squares += last * last;
        }
        expect(&e, (size_t)b, sum, sum - last, sqrt(squares), (double)count, 1); /* damaged: the last float is not read */
    }
    SEND(1, (int64_t)blocks * count, 4 * ((int64_t)blocks * count + blocks), kernels->read(queue, got, x, blocks, count, streams));
    verdict(got, (size_t)blocks, 1, &e);
    release_all();
}
static void test_advance(void) {
    int32_t *position, want[3] = { 5, 0, 7 }, bad[3] = { 5, 7, 7 }; /* damaged: its neighbours are increased */
    check_case("advance");
    position = (int32_t *)take(3 * sizeof *position);
    position[0] = 5;
    position[1] = -3;
    position[2] = 7;
    SEND(1, 1, 4 + 4, kernels->advance(queue, position + 1, 3));
    verdict_ints(position, want, bad, 3);
    kernels->advance(queue, position + 1, 40);
    kernels->advance(queue, position + 1, 2);
    settle();
    CHECK_INT(position[1], 42);
    release_all();
}

#include "support/prune_kernels.h"

static void test_shared_kernels(void) {
    static const int widths[4] = { 2, 31, 64, 577 };
    static const int heads[5][2] = { { 2, 16 }, { 3, 32 }, { 2, 64 }, { 2, 128 }, { 1, 40 } };
    int rows[3];
    rows[0] = 1; rows[1] = 3; rows[2] = many;
    for (int wide = 0; wide < 2; wide++)
        for (int r = 0; r < 3; r++)
            for (int w = 0; w < 4; w++) {
                int d = widths[w], ld = (int)padded((size_t)d) + (w == 1 ? 7 : 0);
                use_mode(wide);
                test_rmsnorm(rows[r], d, ld, wide);
                test_layernorm(rows[r], d, ld, wide);
                test_convert(rows[r], d, ld, wide);
                for (int gelu = 0; gelu < 2; gelu++) test_gate_mul(rows[r], d, ld, gelu, wide);
                test_embed(rows[r], d, wide, 0, 0.0f);
                for (int panels = 0; panels < 2; panels++)
                    for (int s = !panels; s < 2; s++) test_embed(rows[r], d, wide, panels, s ? 50.5f : 0.0f);
            }
    for (int r = 0; r < 3; r++)
        for (int w = 0; w < 4; w++) {
            test_vit_embed(1 + w, rows[r] + 1, w != 2, widths[w]);
            test_scatter(rows[r], widths[w], 1);
            test_scatter(rows[r], widths[w], 0);
            test_add_rmsnorm(rows[r], widths[w]);
            test_add_scaled(rows[r], widths[w]);
            test_combine(rows[r], 1 + w, widths[w]);
            test_argmax(rows[r] + 1, widths[w] * 10);
        }
    test_vit_embed(3, 1, 1, 5);
    test_grid_embed(4, 6, 2, 0, 33);
    test_grid_embed(6, 4, 2, 5, 48);
    test_grid_embed(1, 7, 1, 3, 5);
    test_grid_embed(3, 6, 3, 2, 130);
    test_compose_rope(1, 10);
    test_compose_rope(40, 128);
    test_argmax(2, 50304);
    test_argmax_nan(40);
    test_argmax_nan(1000);
    test_read(1, 4, 4);
    test_read(3, 1024, 1);
    test_read(2, 16384, 4);
    test_advance();
    for (int wide = 0; wide < 2; wide++) {
        use_mode(wide);
        test_pool_windows(1, 4, 2, 2, 33, wide);
        test_pool_windows(3, 6, 3, 1, 8, wide);
        test_pool_windows(2, 24, 2, 2, 64, wide);
        test_pool_places(1, 4, 1, 8, wide);
        test_pool_places(7, 4, 2, 33, wide);
        test_pool_places(5, 9, 3, 64, wide);
        test_pool_attention(1, 4, 1, 16, 0, wide);
        test_pool_attention(7, 4, 16, 64, 0, wide);
        test_pool_attention(some < 144 ? some : 144, 9, 3, 40, 0, wide);
        test_pool_attention(7, 4, 16, 72, 1, wide);
        test_pool_attention(3, 9, 2, 20, 1, wide);
        for (int h = 0; h < 5; h++) {
            test_qk_norm_rope(1, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, 0.0f, 0, wide);
            test_qk_norm_rope(3, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, 0.0f, 5, wide);
            test_qk_norm_rope(some, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, 0.0f, 1, wide);
            test_attention_decode(1, heads[h][0], 1, heads[h][1], wide);
            test_attention_decode(5, heads[h][0], 1, heads[h][1], wide);
            test_attention_decode(577, heads[h][0], 1, heads[h][1], wide);
        }
        test_qk_norm_rope(3, 6, 3, 16, VK_NORM_NONE, 0.0f, 2, wide); /* heads that share keys, every norm, with and without clipping */
        test_qk_norm_rope(some, 4, 2, 64, VK_NORM_NONE, 0.7f, 1, wide);
        test_qk_norm_rope(2, 6, 2, 128, VK_NORM_HEAD, 0.0f, 1, wide);
        test_qk_norm_rope(some, 3, 3, 40, VK_NORM_HEAD, 1.0f, 0, wide);
        test_qk_norm_rope(3, 4, 4, 32, VK_NORM_WHOLE, 0.8f, 0, wide);
        test_attention_decode(5, 6, 3, 16, wide);
        test_attention_decode(300, 4, 2, 64, wide);
        test_attention_decode(9, 7, 7, 128, wide);
        test_grid_turn(2, 3, 2, 8, wide);
        test_grid_turn(1, 5, 3, 20, wide);
        test_grid_turn(4, 4, 1, 80, wide);
        test_take_rows(1, 5, wide);
        test_take_rows(some, 130, wide);
        for (int w = 0; w < 4; w++) test_patch_windows(1 + w, 6, 1 + w % 3, w & 1, widths[w], wide);
    }
    for (int r = 0; r < 3; r++) {
        test_router(rows[r], 2, 1, 0);
        test_router(rows[r], 8, 2, 0);
        test_router(rows[r], 8, 8, 0);
        test_router(rows[r], 64, 8, 0);
        test_router(rows[r], 1000, 12, 0);
        test_router(rows[r], 8, 3, 1);
        test_router(rows[r], 300, 40, 1);
    }
    test_moe_lists(1, 2, 0, -1);
    test_moe_lists(8, 7, 0, -1);
    test_moe_lists(64, 300, 0, -1);
    test_moe_lists(64, 300, 16, -1);
    test_moe_lists(64, 16384, 0, -1);
    test_moe_lists(64, 16384, 128, -1);
    test_moe_lists(8, 256, 128, 0);
    test_moe_lists(8, 256, 128, 7);
    test_moe_lists(8, 257, 128, 3);
    test_gather(5, 3, 64);
    test_gather(2, 3, 4);
    test_gather(many * 2 / 3, 8, 1024);
}

/* ---------------------------------------------------------------------------------------------------------------- linears */
/* a linear layer in the backend's layout; values: the same weights as in-type [n, k] */
typedef struct layer { vk_linear linear; void *values; } layer;
static int bits; /* bits of layers that are not f32: 0 for bf16; on a GPU also 8 and 4. Their values are multiples of powers of two that bf16 can represent. */
static void *layer_values(int n, int k, int wide) {
    void *values = hold((size_t)n * (size_t)k * (wide ? 4 : 2));
    float most = bits == 8 ? 127.0f : 7.0f, scale = 1.0f;
    for (size_t i = 0; i < (size_t)n * (size_t)k; i++) {
        int at = (int)(i % (size_t)k), last = at + 1 == k; /* the damaged reference omits the last product, so it is never small */
        float value = last ? 0.5f + 0.4f * uniform() : uniform();
        if (bits && !wide && at % VK_QUANT_BLOCK == 0) scale = (at + VK_QUANT_BLOCK < k && below(2) ? 0.5f : 1.0f) / (most + 1.0f);
        put(values, i, bits && !wide ? scale * roundf(most * value) : value, wide);
    }
    return values;
}
/* size in bytes of a linear layer's weights: as stored by vk_linear, and as counted */
static size_t layer_bytes(int n, int k, int wide) {
    if (bits && !wide) return (size_t)n * padded((size_t)k) * (size_t)bits / 8 + (size_t)n * padded((size_t)k) / VK_QUANT_BLOCK * 2;
    return (on_gpu() ? (size_t)n : padded((size_t)n)) * padded((size_t)k) * (wide ? 4 : 2);
}
static int64_t counted_bytes(int n, int k, int wide) {
    int64_t count = (int64_t)n * k;
    return bits && !wide ? count * bits / 8 + count / VK_QUANT_BLOCK * 2 : count * size_of(wide);
}
/* writes integers in a GPU's layout; the scale is the largest power of two that divides all values */
static void put_integers(const vk_linear *linear, const void *values) {
    size_t k = (size_t)linear->k, blocks = (size_t)linear->k_padded / VK_QUANT_BLOCK;
    uint8_t *integers = (uint8_t *)linear->weights;
    for (size_t block = 0; block < (size_t)linear->n * blocks; block++, integers += VK_QUANT_BLOCK * bits / 8) {
        size_t row = block / blocks, first = block % blocks * VK_QUANT_BLOCK;
        float v[VK_QUANT_BLOCK] = { 0.0f }, scale = 2.0f;
        int whole = 0, number = 1;
        for (size_t i = 0; i < VK_QUANT_BLOCK && first + i < k; i++) {
            v[i] = (float)get(values, row * k + first + i, 0);
            number &= v[i] == v[i];
        }
        while (number && !whole) {
            whole = 1;
            scale /= 2.0f;
            for (int i = 0; i < VK_QUANT_BLOCK; i++) whole &= v[i] / scale == roundf(v[i] / scale);
        }
        linear->scales[block] = vp_f32_to_bf16(number ? scale : (float)NAN);
        memset(integers, 0, (size_t)(VK_QUANT_BLOCK * bits / 8));
        for (int i = 0; i < VK_QUANT_BLOCK; i++) {
            int q = number ? (int)(v[i] / scale) : 0;
            if (bits == 8) integers[i] = (uint8_t)(int8_t)q;
            else { /* value 2 i of eight is nibble i of their word, value 2 i + 1 is nibble i + 4 */
                int nibble = i % 2 * 4 + i % 8 / 2;
                integers[i / 8 * 4 + nibble / 2] |= (uint8_t)((q + 8) << nibble % 2 * 4);
            }
            if (q < (bits == 8 ? -127 : -8) || q > (bits == 8 ? 127 : 7)) CHECK(!"a value that these bits do not hold");
        }
    }
}
static layer layer_at(void *weights, void *values, int n, int k, int wide) {
    size_t k_padded = padded((size_t)k);
    layer l = {.values = values, .linear.weights = weights};
    l.linear.bias = NULL; l.linear.bias_bf16 = NULL;
    l.linear.n = n; l.linear.k = k; l.linear.k_padded = (int)k_padded; l.linear.wide = wide; l.linear.bits = wide ? 0 : bits;
    l.linear.scales = vk_row_scales(&l.linear);
    if (l.linear.bits) { put_integers(&l.linear, values); return l; }
    for (size_t r = 0; r < (size_t)n; r++) /* rows after n in a panel stay NaN; they must not reach a result */
        for (size_t c = 0; c < k_padded; c++)
            put(weights, backend->row_major ? r * k_padded + c : panel_index(r, c, k_padded, wide),
                c < (size_t)k ? (float)get(values, r * (size_t)k + c, wide) : 0.0f, wide);
    return l;
}
static layer layer_new(int n, int k, int wide) { return layer_at(take(layer_bytes(n, k, wide)), layer_values(n, k, wide), n, k, wide); }

/* y [m, n] of out_bytes an element, which ADD also reads. On a GPU a bias has the type of y; QuickGELU is its own launch, in place. If the queue asks for it, so is the
 * bias: it is written to y before the product, which then adds to y. */
static vk_work product_work(const vk_linear *w, int m, vk_epilogue epilogue, int out_bytes) {
    int64_t results = (int64_t)m * w->n, products = results * w->k;
    int apart = on_gpu() && w->bias && strstr(queue->note, "take two launches");
    vk_work work = work_of(1, 2 * products, size_of(w->wide) * ((int64_t)w->n * w->k + (int64_t)m * w->k) + results * out_bytes);
    if (w->bias) { work.flops += results; work.bytes += (on_gpu() && !apart ? out_bytes : 4) * w->n; }
    if (epilogue == VK_QUICKGELU) work.flops += 4 * results; /* product, exponential, sum, division */
    if (epilogue == VK_GELU) work.flops += 5 * results;      /* two products by constants, the error function, a sum, a product */
    if (epilogue == VK_GELU_TANH) work.flops += 8 * results; /* x (1 + 0.04 x x): 4; as QuickGELU: 4 */
    if ((epilogue == VK_QUICKGELU || epilogue >= VK_GELU) && on_gpu()) { work.launches++; work.bytes += 2 * results * out_bytes; }
    if (epilogue == VK_ADD_F32) { work.flops += results; work.bytes += 4 * results; }
    if (apart) { work.launches++; work.bytes += 2 * results * out_bytes; }
    return work;
}
/* integers: panels that fit in memory are widened, then multiplied as bf16 */
static vk_work linear_work(const vk_linear *w, int m, vk_epilogue epilogue, int out_bytes) {
    vk_work work = work_of(0, 0, 0);
    int most = QUANT_ROOM / w->k_padded;
    if (!w->bits) return product_work(w, m, epilogue, out_bytes);
    if (most > 256) most = most / 256 * 256;
    for (int first = 0; first < w->n; first += most) {
        vk_linear panel = *w;
        panel.n = w->n - first < most ? w->n - first : most;
        int64_t values = (int64_t)panel.n * w->k_padded;
        vk_work one = product_work(&panel, m, epilogue, out_bytes);
        work = work_of(work.launches + 1 + one.launches, work.flops + values + one.flops,
                       work.bytes + values * w->bits / 8 + values / VK_QUANT_BLOCK * 2 + 2 * values + one.bytes);
    }
    return work;
}
/* every epilogue with and without bias. The router's layer is f32 even in bf16 mode: layer_wide in a mode that is not wide, with f32 results. */
static void test_linear(int n, int k, int m, int layer_wide, int wide) {
    static const char *const names[6] = { "store", "f32", "quickgelu", "add", "gelu", "gelu_tanh" };
    size_t cols = (size_t)n, ldx = padded((size_t)k) + VK_PAD, ldy = cols + 3;
    uint16_t *rounded;
    check_case("linear %dx%d m %d, layer wide %d, mode wide %d, bits %d", n, k, m, layer_wide, wide, bits);
    use_mode(wide);
    layer l = layer_new(n, k, layer_wide);
    void *x = inputs((size_t)m, (size_t)k, ldx, layer_wide);
    float *bias = floats(cols, 1.0f);
    rounded = (uint16_t *)take(cols * sizeof *rounded);
    float *as_bf16 = floats(cols, 1.0f);
    for (size_t c = 0; c < cols; c++) put(rounded, c, bias[c], 0);
    for (size_t c = 0; c < cols; c++) as_bf16[c] = (float)get(rounded, c, 0);
    expected sums = expect_new((size_t)m, cols);
    expected e = expect_new((size_t)m, cols);
    float *added = floats((size_t)m * cols, 1.0f);
    expect_products(&sums, x, ldx, l.values, (size_t)k, layer_wide);
    for (int i = 0; i < (on_gpu() ? 18 : 12); i++) { /* without and with a bias; on a GPU also with a bias that has no bf16 form */
        vk_epilogue epilogue = (vk_epilogue)(i % 6);
        int f32 = wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, failed = check_state.case_failed;
        if (layer_wide && !f32) continue;
        void *y = take((size_t)m * ldy * (f32 ? 4 : 2));
        l.linear.bias = i < 6 ? NULL : bias;
        l.linear.bias_bf16 = i < 12 ? rounded : NULL;
        queue->note[0] = 0;
        finish(&e, &sums, i < 6 ? NULL : on_gpu() && !f32 ? as_bf16 : bias, added, epilogue, wide);
        for (size_t j = 0; on_gpu() && !f32 && epilogue != VK_STORE && j < (size_t)m * cols; j++) /* the GELUs read values rounded to bf16 */
            e.tolerance[j] += 1.2 * bf16_unit * fabs(sums.want[j] + (i < 6 ? 0.0 : (double)as_bf16[j % cols]));
        for (size_t r = 0; epilogue == VK_ADD_F32 && r < (size_t)m; r++) memcpy((float *)y + r * ldy, added + r * cols, cols * sizeof(float));
        SEND_WORK(linear_work(&l.linear, m, epilogue, f32 ? 4 : 2), backend->linear(queue, y, (int)ldy, x, (int)ldx, m, &l.linear, epilogue));
        verdict(y, ldy, f32, &e);
        if (on_gpu() && i >= 6) CHECK((queue->note[0] != 0) == (i >= 12 && !f32)); /* a note reports the two launches */
        if (check_state.case_failed != failed) printf("  with epilogue %s, bias %d, %s\n", names[i % 6], i >= 6, queue->note);
    }
    release_all();
}
/* a list of jobs as for experts: most are empty, including the first and the last; damaged: every row uses the weights of the next expert */
static void test_grouped(int n, int k, int wide) {
    static const int rows[JOBS] = { 0, 3, 0, 0, 40, 1, 200, 0, 0 };
    size_t cols = (size_t)n, ldx = padded((size_t)k), element = wide ? 4 : 2, total = 244;
    layer l[2];
    vk_gemm_job jobs[JOBS] = {0};
    vk_work want = work_of(0, 0, 0);
    float *y;
    check_case("grouped %dx%d wide %d", n, k, wide);
    use_mode(wide);
    for (int i = 0; i < 2; i++) l[i] = layer_new(n, k, wide);
    char *x = (char *)inputs(total, (size_t)k, ldx, wide);
    y = (float *)take(total * (cols + 1) * sizeof *y);
    expected e = expect_new(total, cols);
    expected other = expect_new(total, cols);
    for (size_t j = 0, at = 0; j < JOBS; at += (size_t)rows[j++]) {
        expected part = expect_rows(&e, at, (size_t)rows[j]), part_other = expect_rows(&other, at, (size_t)rows[j]);
        expect_products(&part, x + at * ldx * element, ldx, l[j & 1].values, (size_t)k, wide);
        expect_products(&part_other, x + at * ldx * element, ldx, l[~j & 1].values, (size_t)k, wide);
        memcpy(part.bad, part_other.want, (size_t)rows[j] * cols * sizeof(double));
        jobs[j].y = y + at * (cols + 1); jobs[j].ldy = n + 1;
        jobs[j].x = x + at * ldx * element; jobs[j].ldx = (int)ldx;
        jobs[j].w = &l[j & 1].linear; jobs[j].m = rows[j];
        if (rows[j]) {
            vk_work one = linear_work(&l[j & 1].linear, rows[j], VK_STORE_F32, 4);
            want = work_of(on_gpu() ? want.launches + 1 : 1, want.flops + one.flops, want.bytes + one.bytes);
        }
    }
    SEND_WORK(want, backend->grouped(queue, jobs, JOBS, VK_STORE_F32));
    verdict(y, cols + 1, 1, &e);
    for (int j = 0; j < JOBS; j++) jobs[j].m = 0;
    poison(y, total * (cols + 1) * sizeof *y);
    backend->grouped(queue, jobs, JOBS, VK_STORE_F32); /* no jobs are valid */
    settle();
    CHECK(is_poison(y, total * (cols + 1) * sizeof *y));
    release_all();
}
/* the experts of routed tokens; counts: number of pairs of each expert. Damaged: every row uses the next expert's weights. */
static void test_experts(int d, int h, int top_k, int experts, const int *counts) {
    size_t ldx = padded((size_t)d), ldh = padded((size_t)h), up_bytes = vk_round_up(layer_bytes(2 * h, d, 0), 64) + 64,
           down_bytes = vk_round_up(layer_bytes(d, h, 0), 64) + 128;
    int pairs = 0, tokens, tiles, hit;
    vk_experts_job job = {0};
    layer up[16], down[16];
    int32_t *index, *lists;
    float *stream, *share;
    uint16_t *hidden, *y;
    for (int i = 0; i < experts; i++) pairs += counts[i];
    tokens = pairs / top_k;
    hit = pairs < experts ? pairs : experts;
    if (!backend->experts || experts > 16) return;
    tiles = pairs / VK_TILE_ROWS + experts;
    check_case("experts %d of %dx%d top_k %d, %d %d %d .., bits %d", experts, d, h, top_k, counts[0], counts[1], counts[2], bits);
    use_mode(0);
    char *weights = (char *)take((size_t)experts * (up_bytes + down_bytes));
    for (int i = 0; i < experts; i++) {
        up[i] = layer_at(weights + (size_t)i * up_bytes, layer_values(2 * h, d, 0), 2 * h, d, 0);
        down[i] = layer_at(weights + (size_t)experts * up_bytes + (size_t)i * down_bytes, layer_values(d, h, 0), d, h, 0);
    }
    char *x = (char *)inputs((size_t)tokens, (size_t)d, ldx, 0);
    index = (int32_t *)hold((size_t)pairs * sizeof *index);
    lists = (int32_t *)take((size_t)(2 * experts + 1 + 2 * pairs + 2 * tiles) * sizeof *lists);
    for (int i = 0, expert = 0, left = counts[0]; i < pairs; i++, left--) {
        while (!left) left = counts[++expert];
        index[(i * 7 + 3) % pairs] = expert; /* the number of pairs is not a multiple of 7 */
    }
    job.start = lists + experts; job.list = job.start + experts + 1; job.slot_row = job.list + pairs; job.tiles = job.list + 2 * pairs;
    job.x = x; job.ldx = (int)ldx; job.ldy = (int)ldx; job.pairs = pairs; job.top_k = top_k; job.experts = experts;
    job.weight = share = (float *)take((size_t)pairs * sizeof *share);
    for (int i = 0; i < pairs; i++) share[i] = 0.25f + (float)(i % 5) / 4.0f;
    job.stream = stream = (float *)take((size_t)tokens * (size_t)d * sizeof *stream);
    memset(stream, 0, (size_t)tokens * (size_t)d * sizeof *stream);
    job.gate_up = &up[0].linear; job.down = &down[0].linear; job.gate_up_stride = up_bytes; job.down_stride = down_bytes;
    job.hidden = hidden = (uint16_t *)take((size_t)pairs * ldh * 2);
    memset(hidden, 0, (size_t)pairs * ldh * 2);
    job.y = y = (uint16_t *)take((size_t)pairs * ldx * 2);
    moe_reference(lists, index, experts, pairs, VK_TILE_ROWS, 0);
    expected e = expect_new((size_t)pairs, (size_t)d);
    expected mid = expect_new((size_t)pairs, (size_t)h);
    expected sum = expect_new((size_t)tokens, (size_t)d);
    backend->experts(queue, &job); /* first `hidden` is checked, then the result computed from it */
    settle();
    for (int r = 0; r < pairs; r++) {
        int expert = index[job.list[r]];
        const char *row = x + (size_t)(job.list[r] / top_k) * ldx * 2;
        expected sums = expect_new(1, (size_t)(2 * h)), part = expect_rows(&e, (size_t)r, 1), other = expect_new(1, (size_t)d);
        expect_products(&sums, row, ldx, up[expert].values, (size_t)d, 0);
        for (int c = 0; c < h; c++) {
            double g = sums.want[c], u = sums.want[h + c], s = g / (1.0 + exp(-g)), bad = sums.bad[c] / (1.0 + exp(-sums.bad[c])) * sums.bad[h + c];
            size_t at = (size_t)(r * h + c);
            expect(&mid, at, s * u, bad, fabs(s * u), 16, 0);
            mid.tolerance[at] += 1.1 * fabs(u) * sums.tolerance[c] + fabs(s) * sums.tolerance[h + c]; /* silu's slope is below 1.1 */
        }
        expect_products(&part, hidden + (size_t)r * ldh, ldh, down[expert].values, (size_t)h, 0);
        expect_products(&other, hidden + (size_t)r * ldh, ldh, down[(expert + 1) % experts].values, (size_t)h, 0);
        memcpy(part.bad, other.want, (size_t)d * sizeof(double));
        for (int c = 0; c < d; c++) {
            part.want[c] *= share[job.list[r]];
            part.bad[c] *= share[job.list[r]];
            part.tolerance[c] = 1.01 * share[job.list[r]] * part.tolerance[c] + fabs(part.want[c]) / 256; /* rounded once more */
        }
        buffer_count -= 6; /* the six arrays of `sums` and `other` */
        for (int i = 0; i < 6; i++) free(buffers[buffer_count + i].base);
    }
    for (int r = 0; r < pairs; r++) /* values after the last column are zero, as before */
        for (size_t c = (size_t)h; c < ldh; c++) if (!CHECK_INT(hidden[(size_t)r * ldh + c], 0)) r = pairs - 1;
    for (int t = 0; t < tokens; t++) /* the damaged sum omits the last slot's row */
        for (int c = 0; c < d; c++) {
            double whole = 0.5, scale = 0.5;
            for (int j = 0; j < top_k; j++) {
                double value = get(y, (size_t)job.slot_row[t * top_k + j] * ldx + (size_t)c, 0);
                whole += value;
                scale += fabs(value);
                if (j == top_k - 1) expect(&sum, (size_t)(t * d + c), whole, whole - value, scale, top_k + 2, 1);
            }
        }
    poison(y, (size_t)pairs * ldx * 2);
    for (int i = 0; i < tokens * d; i++) stream[i] = 0.5f;
    /* gate and up, silu as in gate_mul; x once per token, list; down's products are scaled, then summed */
    SEND_WORK(work_of(3, (int64_t)pairs * (2 * 2 * h * d + 4 * h) + (int64_t)pairs * (2 * d * h + d) + (int64_t)pairs * d,
                      hit * counted_bytes(2 * h, d, 0) + 2 * ((int64_t)tokens * d + (int64_t)pairs * h) + 4 * (int64_t)pairs +
                          hit * counted_bytes(d, h, 0) + 2 * ((int64_t)pairs * h + (int64_t)pairs * d) + 8 * (int64_t)pairs +
                          2 * (int64_t)pairs * d + 8 * (int64_t)tokens * d + 4 * (int64_t)pairs),
              backend->experts(queue, &job));
    for (size_t i = 0; i < (size_t)pairs * ldx; i++) if (i % ldx >= (size_t)d) y[i] = 0xffff;
    verdict(y, ldx, 0, &e);
    verdict(stream, (size_t)d, 1, &sum);
    for (size_t i = 0; i < (size_t)pairs * ldh; i++) if (i % ldh >= (size_t)h) hidden[i] = 0xffff;
    verdict(hidden, ldh, 0, &mid);
    for (size_t i = 0; i < (size_t)pairs * ldh; i++) if (i % ldh >= (size_t)h) hidden[i] = 0;
    CHECK_SAME_BITS(job.y, (size_t)pairs * ldx * 2, backend->experts(queue, &job));
    release_all();
}
static void test_experts_all(void) {
    static const int one[3] = { 0, 1, 0 }, all[4] = { 0, 0, 260, 0 }, some_of[9] = { 0, 3, 0, 128, 40, 1, 129, 16, 65 }, even[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };
    test_experts(64, 32, 1, 3, one);
    test_experts(96, 70, 2, 4, all);
    test_experts(130, 37, 2, 9, some_of);
    test_experts(256, 16, 8, 8, even);
    test_experts(37, 100, 1, 8, even);
}
/* few and many rows, with weights in one panel and in several */
static void test_linears_of_integers(void) {
    static const int counts[5] = { 1, 2, 3, 7, 33 };
    for (int c = 0; c < 5; c++) {
        test_linear(5, 32, counts[c], 0, 0);
        test_linear(100, 100, counts[c], 0, 0);
    }
    test_linear(37, 96, 129, 0, 0);
    test_linear(160, 1000, 33, 0, 0);
    test_experts_all();
}
static void test_linears(void) {
    static const int shapes[4][2] = { { 1, 32 }, { 40, 24 }, { 100, 100 }, { 160, 1000 } }, counts[4] = { 1, 3, 33, 129 };
    for (int mixture = 0; mixture < 3; mixture++) { /* bf16, f32 layer in bf16 mode, fp32 */
        int layer_wide = mixture > 0, wide = mixture > 1;
        for (int s = 0; s < 4; s++)
            for (int c = 0; c < 4; c++) test_linear(shapes[s][0], shapes[s][1], counts[c], layer_wide, wide);
        test_linear(100, 100, 577, layer_wide, wide);
    }
    for (int wide = 0; wide < 2; wide++) {
        test_grouped(160, 1000, wide);
        test_grouped(40, 24, wide);
    }
    test_experts_all();
    for (bits = 4; on_gpu() && bits <= 8; bits += 4) test_linears_of_integers();
    bits = 0;
}
/* Experts by wgmma: one tile and several per block, a last slice of half the depth. */
static void test_wgmma(void) {
    static const int many_rows[3] = { 120, 0, 260 }, full[3] = { 256, 129, 1 }, skewed[4] = { 130, 0, 401, 3 };
    if (!modes[2].queue) return;
    by_wgmma = is_recording = 1;
    test_experts_all();
    test_experts(330, 330, 2, 4, skewed);
    test_experts(96, 140, 1, 3, many_rows);
    test_experts(40, 300, 2, 3, full);
    check_case("blocks of each kernel had several tiles, and their rings wrapped around");
    for (int i = 0; emulated && i < 2; i++) CHECK(went_round[i]);
    by_wgmma = is_recording = 0;
}

/* --------------------------------------------------------------------------------------------------------------- attention */
static int on_tiles(const vk_attention_job *job, int wide) { return on_gpu() && !wide && (job->head_dim == 64 || job->head_dim == 128); }
/* The GPU stores scores and weights, and reads keys and values again, for each chunk of queries; not in bf16 with the head widths of real models. */
static vk_work attention_work(const vk_attention_job *job, int wide) {
    int64_t tokens = job->tokens, heads = job->heads, width = heads * job->head_dim, triangle = tokens * (tokens + 1) / 2, kv = job->kv_heads * job->head_dim;
    int64_t scores = job->batch * heads * (job->causal ? triangle : tokens * tokens), in_type = size_of(wide);
    vk_work work = work_of(1, scores * (2 * job->head_dim + 5 + 2 * job->head_dim), job->batch * 2 * tokens * (width + kv) * in_type);
    if (!on_gpu() || on_tiles(job, wide)) return work;
    work.launches = work.bytes = 0;
    for (int64_t first = 0; first < tokens; first += CHUNK) {
        int64_t rows = tokens - first < CHUNK ? tokens - first : CHUNK, seen = job->causal ? first + rows : tokens;
        work.launches += 3 * job->batch;
        work.bytes += job->batch * 2 * (rows * width + seen * kv) * in_type;
    }
    work.bytes += scores * (4 + 4 + in_type + in_type);
    return work;
}
/* `together`: keys and values share rows that are longer than both. Otherwise they are laid out as in a sequence's cache; decode of one query over the same keys must
 * then equal the last row of the last sequence. */
static void test_attention(int batch, int tokens, int heads, int group, int head_dim, int causal, int together, int wide) {
    size_t t = (size_t)tokens, d = (size_t)(heads * head_dim), kv = d / (size_t)group, ldq = padded(d) + VK_PAD, ldk = together ? 2 * padded(kv) + VK_PAD : kv;
    size_t ldy = padded(d) + 2;
    size_t element = wide ? 4 : 2, rows = (size_t)batch * t, last_row = rows - 1, key_at = (rows - t) * ldk;
    vk_attention_job job = {0};
    check_case("attention batch %d tokens %d heads %d of %d, %d share keys, causal %d together %d wide %d", batch, tokens, heads, head_dim, group, causal,
               together, wide);
    use_mode(wide);
    expected e = expect_new(rows, d);
    /* The CPU reads q up to the next multiple of 32 columns. These must be finite; zeros of the packed keys then cancel them. */
    char *q = (char *)matrix(rows, VK_ROWS_MAX, d, ldq, head_dim % VK_PAD ? 0.0f : NAN, wide);
    char *k = (char *)matrix(rows, 0, together ? ldk : kv, ldk, 0.0f, wide);
    char *v = together ? k + padded(kv) * element : (char *)matrix(rows, 0, kv, ldk, 0.0f, wide);
    char *y = (char *)take(rows * ldy * element);
    for (size_t r = 0; r < rows; r++) /* Scores differ by several units. The last query has a high score with the last key, so that omitting it shows. */
        for (size_t c = 0; c < kv; c++) {
            size_t head = (size_t)head_dim, of_q = c / head * (size_t)group * head + c % head;
            put(k, r * ldk + c, r % t == t - 1 ? 2.0f * (float)get(q, r * ldq + of_q, wide) : 3.0f * (float)get(k, r * ldk + c, wide), wide);
        }
    for (size_t r = 0; r < rows; r++)
        for (size_t h = 0; h < (size_t)heads; h++) {
            size_t sequence = (r - r % t) * ldk * element, column = h * (size_t)head_dim, of_k = h / (size_t)group * (size_t)head_dim;
            expect_attention(&e, r * d + column, q, r * ldq + column, k + sequence, v + sequence, ldk, of_k, causal ? (int)(r % t) + 1 : tokens, head_dim, !wide, wide);
        }
    job.y = y; job.ldy = (int)ldy; job.q = q; job.ldq = (int)ldq; job.k = k; job.v = v; job.ldk = (int)ldk;
    job.batch = batch; job.tokens = tokens; job.heads = heads; job.kv_heads = heads / group; job.head_dim = head_dim; job.causal = causal;
    SEND_WORK(attention_work(&job, wide), backend->attention(queue, &job));
    verdict(y, ldy, wide, &e);
    if (on_tiles(&job, wide)) CHECK_SAME_BITS(y, rows * ldy * element, backend->attention(queue, &job));
    if (!together) {
        expected last = expect_rows(&e, last_row, 1);
        void *decoded = take(d * element);
        float *scores = (float *)take((size_t)heads * t * sizeof *scores);
        int32_t *position = (int32_t *)take(sizeof *position);
        vk_heads shape = heads_of(heads, heads / group, head_dim, VK_NORM_NONE);
        *position = tokens - 1;
        kernels->attention_decode(queue, decoded, q + last_row * ldq * element, k + key_at * element, v + key_at * element, scores, position, tokens,
                                  tokens, &shape, wide);
        settle();
        for (size_t c = 0; c < d; c++) {
            last.want[c] = get(y, last_row * ldy + c, wide);
            last.tolerance[c] *= 2.0; /* both results are rounded separately */
        }
        verdict(decoded, d, wide, &last);
    }
    release_all();
}
/* A window has a fixed number of keys or, if positions have gaps, a list of the keys that have left it. Decode over the last row gives the same. */
static void test_attention_window(int tokens, int heads, int group, int head_dim, int window, int listed, int wide) {
    const size_t t = (size_t)tokens, d = (size_t)(heads * head_dim), kv = d / (size_t)group, element = wide ? 4 : 2, ldq = padded(d) + VK_PAD;
    int32_t *gone, *position;
    float *scores;
    vk_heads shape = heads_of(heads, heads / group, head_dim, VK_NORM_NONE);
    vk_attention_job job = {0};
    check_case("attention tokens %d heads %d of %d, %d share keys, window %d listed %d wide %d", tokens, heads, head_dim, group, window, listed, wide);
    use_mode(wide);
    expected e = expect_new(t, d);
    char *q = (char *)matrix(t, VK_ROWS_MAX, d, ldq, head_dim % VK_PAD ? 0.0f : NAN, wide);
    char *k = (char *)matrix(t, 0, kv, kv, 0.0f, wide);
    char *v = (char *)matrix(t, 0, kv, kv, 0.0f, wide);
    char *y = (char *)take(t * d * element);
    gone = (int32_t *)take(t * sizeof *gone);
    for (int r = 0; r < tokens; r++) gone[r] = listed ? (r ? gone[r - 1] + below(3) : 0) : r + 1 > window ? r + 1 - window : 0;
    for (int r = 0; r < tokens; r++) if (gone[r] > r) gone[r] = r;
    for (size_t r = 0; r < t; r++)
        for (size_t c = 0; c < kv; c++) put(k, r * kv + c, 3.0f * (float)get(k, r * kv + c, wide), wide);
    for (size_t r = 0; r < t; r++)
        for (size_t h = 0; h < (size_t)heads; h++) {
            const size_t from = (size_t)gone[r] * kv * element, column = h * (size_t)head_dim;
            expect_attention(&e, r * d + column, q, r * ldq + column, k + from, v + from, kv, h / (size_t)group * (size_t)head_dim, (int)r + 1 - gone[r],
                             head_dim, !wide, wide);
        }
    job.y = y; job.ldy = (int)d; job.q = q; job.ldq = (int)ldq; job.k = k; job.v = v; job.ldk = (int)kv;
    job.batch = 1; job.tokens = tokens; job.heads = heads; job.kv_heads = heads / group; job.head_dim = head_dim; job.causal = 1;
    job.window = shape.window = window;
    job.gone = shape.gone = shape.gone_counted = listed ? gone : NULL;
    backend->attention(queue, &job);
    settle();
    verdict(y, d, wide, &e);
    expected last = expect_rows(&e, t - 1, 1);
    void *decoded = take(d * element);
    scores = (float *)take((size_t)heads * t * sizeof *scores);
    position = (int32_t *)take(sizeof *position);
    *position = tokens - 1;
    kernels->attention_decode(queue, decoded, q + (t - 1) * ldq * element, k, v, scores, position, tokens, tokens, &shape, wide);
    settle();
    for (size_t c = 0; c < d; c++) {
        last.want[c] = get(y, (t - 1) * d + c, wide);
        last.tolerance[c] *= 2.0; /* both results are rounded separately */
    }
    verdict(decoded, d, wide, &last);
    release_all();
}
static void test_attentions(void) {
    static const int widths[5] = { 16, 32, 64, 128, 40 }, counts[3] = { 1, 5, 33 };
    for (int mode_of = 0; mode_of < 4; mode_of++) {
        int causal = mode_of & 1, wide = mode_of >> 1;
        for (int w = 0; w < 5; w++)
            for (int c = 0; c < 3; c++) {
                test_attention(1, counts[c], 3, 1, widths[w], causal, 0, wide);
                test_attention(3, counts[c], 2, 1, widths[w], causal, 1, wide);
            }
        test_attention(2, CHUNK, 1, 1, 16, causal, 0, wide); /* exactly one chunk, one row more, three chunks */
        test_attention(2, CHUNK + 1, 1, 1, 16, causal, 1, wide);
        test_attention(1, 577, 2, 1, 64, causal, 0, wide);
        for (int t = 0; t < 6 && !wide; t++) { /* exactly one block of queries, one row more, incomplete warps and incomplete tiles of keys */
            static const int tokens[6] = { 31, 64, 127, 128, 129, 300 };
            test_attention(2, tokens[t], 2, 1, 64, causal, 1, 0);
            test_attention(2, tokens[t], 2, 1, 128, causal, 0, 0);
        }
        test_attention(1, TOKENS_MAX, 1, 1, 32, causal, 0, wide);
        for (int w = 0; w < 5; w++) { /* heads that share keys */
            test_attention(2, 33, 6, 3, widths[w], causal, 1, wide);
            test_attention(1, 140, 4, 2, widths[w], causal, 0, wide);
        }
        test_attention(1, CHUNK + 1, 4, 4, 16, causal, 0, wide);
        for (int w = 0; w < 5 && causal; w++)
            for (int listed = 0; listed < 2; listed++) {
                test_attention_window(33, 4, 2, widths[w], 7, listed, wide);
                test_attention_window(300, 2, 1, widths[w], 70, listed, wide);
            }
    }
}

/* ------------------------------------------------------------------------------------------------------------------ decode
 * The GPU's kernels for one token, one by one: each gets inputs of its own, not what the one before it left. Bytes: what the header above says,
 * each operand once, however many blocks read it. */
static const vk_decode_kernels *decode;
static uint64_t results_sum; /* checksum of all results */
static void keep_results(void) {
    results_sum = vk_mix(results_sum ^ sum_of_buffers());
    release_all();
}
static vk_decode_job decode_job(const int32_t *position, int d, int head_dim) {
    vk_decode_job job = {0};
    job.d = d; job.eps = 1e-5f; job.position = position;
    job.heads = heads_of(head_dim ? d / head_dim : 0, head_dim ? d / head_dim : 0, head_dim, VK_NORM_WHOLE);
    return job;
}
/* The sum of a row of W, in-type, with x; `rounding` of each x is not included in x. Damaged: without the last product. */
static void expect_row(expected *e, size_t at, double start, const double *x, const layer *l, size_t row, double rounding) {
    size_t k = (size_t)l->linear.k;
    double sum = start, squares = 0.0, last = 0.0;
    for (size_t i = 0; i < k; i++) {
        last = x[i] * get(l->values, row * k + i, l->linear.wide);
        sum += last;
        squares += last * last;
    }
    expect(e, at, sum, sum - last, sqrt(squares) + fabs(start), (double)k + 8, 1);
    e->tolerance[at] += SAFETY * rounding * sqrt(squares);
}
static double rounding_of(int wide) { return wide ? 0.0 : bf16_unit / 2.0; }
static double *normed_row(const float *x, const float *w, int d) {
    double *y = (double *)hold((size_t)d * sizeof *y), s = 0.0;
    for (int i = 0; i < d; i++) s += (double)x[i] * (double)x[i];
    for (int i = 0; i < d; i++) y[i] = (double)w[i] * (double)x[i] / sqrt(s / d + (double)1e-5f);
    return y;
}
/* x and a norm's weights; x is so small that eps matters */
static double *normed_input(float **x, float **w, int d) {
    *x = floats((size_t)d + 4, 3e-3f);
    *w = floats((size_t)d + 4, 1.0f);
    for (int i = 0; i < d; i++) (*w)[i] += 1.5f;
    for (int i = d; i < d + 4; i++) (*x)[i] = (*w)[i] = (float)NAN; /* 16 bytes are read at once; values after the row must not matter */
    return normed_row(*x, *w, d);
}
/* plain: unnormed x, and a bias */
static void test_decode_qkv(int n, int d, int plain, int wide) {
    vk_decode_job job = decode_job(NULL, d, 0);
    float *x, *w;
    check_case("decode qkv %dx%d plain %d wide %d bits %d", n, d, plain, wide, bits);
    use_mode(wide);
    expected e = expect_new(1, (size_t)n);
    layer l = layer_new(n, d, wide);
    double *normed = normed_input(&x, &w, d);
    for (int i = 0; plain && i < d; i++) normed[i] = wide ? (double)x[i] : (double)vp_bf16_to_f32(vp_f32_to_bf16(x[i]));
    if (plain) l.linear.bias = floats((size_t)n, 1.0f);
    for (int r = 0; r < n; r++) expect_row(&e, (size_t)r, plain ? (double)l.linear.bias[r] : 0.0, normed, &l, (size_t)r, plain ? 0.0 : rounding_of(wide));
    job.x = x; job.attn_norm = plain ? NULL : w; job.att_proj = &l.linear;
    job.qkv = (float *)take((size_t)(n + 9) * sizeof(float));
    /* norm as in rmsnorm; weights, x and its norm in, results out */
    SEND(1, (plain ? n : 4 * d) + 2 * (int64_t)n * d, counted_bytes(n, d, wide) + 4 * d + (plain ? 4 * n : 4 * d) + 4 * n, decode->qkv(queue, &job));
    verdict(job.qkv, (size_t)n + 9, 1, &e);
    keep_results();
}
/* merges the results of the splits in double precision; a top of -inf means an empty split */
static void merge_splits(double *out, const float *partial, int heads, int head_dim) {
    int d = heads * head_dim;
    const float *tops = partial + VK_SPLITS * d;
    for (int i = 0; i < d; i++) {
        double most = -INFINITY, sum = 0.0, weights = 0.0;
        for (int s = 0; s < VK_SPLITS; s++) most = fmax(most, (double)tops[2 * (s * heads + i / head_dim)]);
        for (int s = 0; s < VK_SPLITS; s++) {
            double w = exp((double)tops[2 * (s * heads + i / head_dim)] - most);
            sum += w * (double)partial[s * d + i];
            weights += w * (double)tops[2 * (s * heads + i / head_dim) + 1];
        }
        out[i] = sum / weights;
    }
}
static int splits(int head_dim, int wide) { return head_dim * size_of(wide) % 16 == 0 && head_dim * size_of(wide) <= 512; }
/* The token's key and value must be appended, and its query must meet all keys. The expected result comes from the shared kernel's query and key; their root mean square
 * is a power of two in bf16 mode, so that both kernels round the same numbers. Damaged: the last key, the token's own, is not seen. */
static void test_decode_attention(int keys, int heads, int group, int head_dim, int norm, int wide) {
    int d = heads * head_dim, kv = d / group, positions = keys + 3, fits = splits(head_dim, wide);
    size_t element = wide ? 4 : 2, row = (size_t)kv * element;
    int64_t all = (int64_t)keys * (2 * head_dim + 2 * head_dim + 5) * heads, in_type = size_of(wide), turn = (d + kv) * (norm == VK_NORM_NONE ? 3 : 7), read;
    vk_heads shape = heads_of(heads, heads / group, head_dim, norm);
    layer l = {0};
    expected e, ek, ev;
    float *qkv, *wq, *wk, *cs, *merged;
    double *found;
    int32_t *position;
    check_case("decode attention keys %d heads %d of %d, %d share keys, norm %d wide %d", keys, heads, head_dim, group, norm, wide);
    use_mode(wide);
    e = expect_new(1, (size_t)d); ek = expect_new(1, (size_t)kv); ev = expect_new(1, (size_t)kv);
    l.linear.wide = wide; l.linear.bits = 0;
    qkv = floats((size_t)(d + 2 * kv), 1.0f);
    wq = floats((size_t)d, 2.0f);
    wk = floats((size_t)kv, 2.0f);
    for (int i = 0; i < d + kv && !wide; i++) qkv[i] = qkv[i] < 0.0f ? -0.25f : 0.25f;
    cs = rotations(positions, head_dim);
    char *key = (char *)matrix((size_t)keys - 1, 4, (size_t)kv, (size_t)kv, NAN, wide);
    char *value = (char *)matrix((size_t)keys - 1, 4, (size_t)kv, (size_t)kv, NAN, wide);
    char *own_key = (char *)take((size_t)positions * row);
    char *own_value = (char *)take((size_t)positions * row);
    char *q = (char *)take(padded((size_t)d) * element);
    merged = (float *)take((size_t)d * sizeof *merged);
    position = (int32_t *)take(sizeof *position);
    *position = keys - 1;
    shape.q_norm = wq; shape.k_norm = wk; shape.cs = cs; shape.eps = wide ? 1e-5f : 0.0f;
    kernels->qk_norm_rope(queue, q, own_key, own_value, qkv, &shape, position, 1, (int)padded((size_t)d), wide);
    settle();
    memcpy(own_key, key, (size_t)(keys - 1) * row);
    memcpy(own_value, value, (size_t)(keys - 1) * row);
    for (int h = 0; h < heads; h++)
        expect_attention(&e, (size_t)(h * head_dim), q, (size_t)(h * head_dim), own_key, own_value, (size_t)kv, (size_t)(h / group * head_dim), keys, head_dim,
                         0, wide);
    expect_rotated(&ek, 0, qkv + d, wk, kv, &shape, cs + (keys - 1) * head_dim, wide);
    for (int i = 0; i < kv; i++) expect(&ev, (size_t)i, (double)qkv[d + kv + i], (double)qkv[d + i], 0.0, 1, wide); /* damaged: k instead of v */
    vk_decode_job job = decode_job(position, d, head_dim);
    job.heads = shape;
    job.att_proj = &l.linear; job.qkv = qkv; job.key = key; job.value = value;
    job.max_sequence = positions; job.keys = keys;
    job.q = take(padded((size_t)d) * element);
    job.attended = take(padded((size_t)d) * element);
    job.scratch = (float *)take((size_t)(VK_SPLITS * (d + 2 * heads) + heads * positions) * sizeof(float));
    /* Norm and rotation as in qk_norm_rope, then attention of one query; qkv, norms, a row of the table and the position in; keys and values in, or out for the token's
     * own; the result of each split out. The shared kernels pass the query and the result through memory. */
    read = 4 * (d + 2 * kv + norm_floats(&shape) + head_dim + 1);
    if (fits) SEND(1, turn + all, read + in_type * 2 * keys * kv + 4 * VK_SPLITS * (d + 2 * heads), decode->attention(queue, &job));
    else SEND(2, turn + all, read + in_type * (d + 2 * kv) + in_type * (2 * (int64_t)keys * kv + 2 * d) + 4, decode->attention(queue, &job));
    CHECK_INT(*position, keys - 1);
    verdict(key + (size_t)(keys - 1) * row, (size_t)kv, wide, &ek);
    verdict(value + (size_t)(keys - 1) * row, (size_t)kv, wide, &ev);
    CHECK(memcmp(key, own_key, (size_t)(keys - 1) * row) == 0 && memcmp(value, own_value, (size_t)(keys - 1) * row) == 0);
    CHECK(isnan(get(key, (size_t)(keys * kv), wide)) && isnan(get(value, (size_t)(keys * kv), wide))); /* the next row is unchanged */
    if (fits) {
        found = (double *)hold((size_t)d * sizeof *found);
        merge_splits(found, job.scratch, heads, head_dim);
        for (int i = 0; i < d; i++) merged[i] = (float)found[i];
        verdict(merged, (size_t)d, 1, &e);
    } else verdict(job.attended, (size_t)d, wide, &e);
    keep_results();
}
/* A dense MLP of one token, in two steps. Afterwards x is unchanged, and y has the result. Damaged: gate and up swapped; without the last product. */
static void test_decode_dense(int h, int d, int n, int after, int wide) {
    vk_decode_job job = decode_job(NULL, d, 0), second = decode_job(NULL, n, 0);
    size_t ldh = padded((size_t)h);
    float *x, *w;
    double *input, *hidden;
    check_case("decode dense h %d d %d n %d after %d wide %d bits %d", h, d, n, after, wide, bits);
    use_mode(wide);
    layer up = layer_new(2 * h, d, wide);
    layer down = layer_new(n, h, wide);
    expected e = expect_new(1, (size_t)h);
    expected sums = expect_new(1, 2 * (size_t)h);
    expected out = expect_new(1, (size_t)n);
    input = normed_input(&x, &w, d);
    for (int i = 0; i < d && after; i++) {
        x[i] *= 300.0f; /* so its sums are not smaller than those of a norm */
        input[i] = wide ? (double)x[i] : (double)vp_bf16_to_f32(vp_f32_to_bf16(x[i]));
    }
    for (int r = 0; r < 2 * h; r++) expect_row(&sums, (size_t)r, 0.0, input, &up, (size_t)r, after ? 0.0 : rounding_of(wide));
    for (int i = 0; i < h; i++) {
        double g = sums.want[i], u = sums.want[h + i], v = g / (1.0 + exp(-g)) * u;
        expect(&e, (size_t)i, v, u / (1.0 + exp(-u)) * g, fabs(v), 16, wide);
        e.tolerance[i] += 1.1 * fabs(u) * sums.tolerance[i] + fabs(g / (1.0 + exp(-g))) * sums.tolerance[h + i];
    }
    job.x = x; job.ff_norm = after ? NULL : w; job.gate_up = &up.linear; job.expert_dim = h;
    job.hidden = take(ldh * (wide ? 4 : 2));
    SEND(1, (after ? 0 : 4 * d) + 2 * (int64_t)(2 * h) * d + 4 * h, counted_bytes(2 * h, d, wide) + size_of(wide) * h + (after ? 4 : 8) * d,
         decode->dense_gate_up(queue, &job));
    verdict(job.hidden, (size_t)h, wide, &e);
    hidden = (double *)hold((size_t)h * sizeof *hidden);
    second.hidden = inputs(1, (size_t)h, ldh, wide);
    for (int i = 0; i < h; i++) hidden[i] = get(second.hidden, (size_t)i, wide);
    second.x = floats((size_t)n, 1.0f);
    second.y = (float *)take((size_t)n * sizeof(float));
    second.ff_after = after ? floats((size_t)n, 1.0f) : NULL;
    second.down = &down.linear;
    for (int r = 0; r < n; r++) expect_row(&out, (size_t)r, after ? 0.0 : (double)second.x[r], hidden, &down, (size_t)r, 0.0);
    if (after) SEND(2, 2 * (int64_t)n * h + 5 * n, counted_bytes(n, h, wide) + size_of(wide) * h + 4 * n + 16 * n, decode->dense_down(queue, &second));
    else SEND(1, (int64_t)n * (2 * h + 1), counted_bytes(n, h, wide) + size_of(wide) * h + 8 * n, decode->dense_down(queue, &second));
    verdict(after ? second.y : second.x, (size_t)n, 1, &out);
    keep_results();
}
/* splits that found nothing, or a single split that has everything */
static void test_decode_out(int heads, int head_dim, int after, int wide) {
    int d = heads * head_dim, fits = splits(head_dim, wide);
    int64_t results = d, found = VK_SPLITS * (d + 2 * heads), merging = VK_SPLITS * (4 * heads + 2 * d) + d;
    vk_decode_job job = decode_job(NULL, d, head_dim);
    double *input;
    check_case("decode attn_out heads %d of %d after %d wide %d bits %d", heads, head_dim, after, wide, bits);
    use_mode(wide);
    expected e = expect_new(1, (size_t)d);
    layer l = layer_new(d, d, wide);
    float *x = floats((size_t)d, 1.0f);
    float *partial = floats((size_t)found, 1.0f);
    void *attended = inputs(1, (size_t)d, padded((size_t)d), wide);
    input = (double *)hold((size_t)d * sizeof *input);
    for (int s = 0; s < VK_SPLITS; s++)
        for (int h = 0; h < heads; h++) {
            float *top = partial + VK_SPLITS * d + 2 * (s * heads + h);
            int nothing = s != VK_SPLITS - 1 && (h == 0 || s % 3 == 1);
            top[0] = nothing ? -INFINITY : 3.0f * top[0];
            top[1] = nothing ? 0.0f : 1.0f + fabsf(top[1]);
            for (int i = 0; i < head_dim && nothing; i++) partial[s * d + h * head_dim + i] = 0.0f;
        }
    merge_splits(input, partial, heads, head_dim);
    for (int i = 0; i < d && !fits; i++) input[i] = get(attended, (size_t)i, wide);
    for (int r = 0; r < d; r++) expect_row(&e, (size_t)r, after ? 0.0 : (double)x[r], input, &l, (size_t)r, fits ? rounding_of(wide) + 16 * unit : 0.0);
    job.attn_out = job.att_proj = &l.linear; job.x = x; job.scratch = partial; job.attended = attended;
    job.y = (float *)take((size_t)d * sizeof(float));
    job.attn_after = after ? floats((size_t)d, 1.0f) : NULL;
    /* per split and head a difference, an exponential, a product and a sum; per split and column a product and a sum; then the divisions */
    if (after) { /* y, which add_rmsnorm then adds */
        SEND(2, results * 2 * d + (fits ? merging : 0) + 5 * d, counted_bytes(d, d, wide) + (fits ? 4 * found : size_of(wide) * d) + 4 * results + 16 * d,
             decode->attn_out(queue, &job));
        verdict(job.y, (size_t)d, 1, &e);
    } else {
        SEND(1, results * (2 * d + 1) + (fits ? merging : 0), counted_bytes(d, d, wide) + (fits ? 4 * found : size_of(wide) * d) + 8 * results,
             decode->attn_out(queue, &job));
        verdict(x, (size_t)d, 1, &e);
    }
    keep_results();
}
static void test_decode_router(int experts, int d, int wide) {
    vk_decode_job job = decode_job(NULL, d, 0);
    layer l, of_experts = {0};
    float *x, *w;
    check_case("decode router experts %d d %d wide %d", experts, d, wide);
    use_mode(wide);
    expected e = expect_new(1, (size_t)experts);
    expected en = expect_new(1, (size_t)d);
    l = layer_new(experts, d, 1);
    of_experts.linear.wide = wide; of_experts.linear.bits = 0;
    double *normed = normed_input(&x, &w, d);
    for (int r = 0; r < experts; r++) expect_row(&e, (size_t)r, 0.0, normed, &l, (size_t)r, 0.0);
    for (int i = 0; i < d; i++) expect(&en, (size_t)i, normed[i], normed[(i + 1) % d], fabs(normed[i]), d + 4, wide);
    job.x = x; job.ff_norm = w; job.router = &l.linear; job.gate_up = &of_experts.linear;
    job.logits = (float *)take((size_t)experts * sizeof(float));
    job.normed = take(padded((size_t)d) * (wide ? 4 : 2));
    SEND(1, 4 * d + 2 * (int64_t)experts * d, 4 * (int64_t)experts * d + 4 * d + 4 * d + 4 * experts + size_of(wide) * d, decode->router(queue, &job));
    verdict(job.logits, (size_t)experts, 1, &e);
    verdict(job.normed, padded((size_t)d), wide, &en);
    keep_results();
}
/* the experts of a token: the choice, by the rule of test_router, and the results of their gate and up. Damaged: ties go to the higher index, gate and up are swapped. */
static void test_decode_gate_up(int experts, int top_k, int norm_topk, int h, int d, int wide) {
    size_t bytes = vk_round_up(layer_bytes(2 * h, d, wide), 64) + 64, ldh = padded((size_t)h), element = wide ? 4 : 2;
    vk_decode_job job = decode_job(NULL, d, 0);
    layer l[16], router = {0}, down = {0};
    double sum = 0.0, chosen = 0.0;
    int32_t want[16], bad[16];
    unsigned char taken[16] = { 0 }, bad_taken[16] = { 0 };
    check_case("decode gate_up experts %d top_k %d norm %d h %d d %d wide %d bits %d", experts, top_k, norm_topk, h, d, wide, bits);
    use_mode(wide);
    char *weights = (char *)take((size_t)experts * bytes);
    for (int i = 0; i < experts; i++) l[i] = layer_at(weights + (size_t)i * bytes, layer_values(2 * h, d, wide), 2 * h, d, wide);
    router.linear.n = experts;
    down.linear.k = h; down.linear.k_padded = (int)ldh; down.linear.wide = wide; down.linear.bits = 0;
    char *x = (char *)inputs(1, (size_t)d, padded((size_t)d), wide);
    float *logits = floats((size_t)experts, 2.0f);
    expected e = expect_new((size_t)top_k, (size_t)h);
    expected ew = expect_new(1, (size_t)top_k);
    for (int i = 0; i < experts; i++) { logits[i] = roundf(logits[i] * 2.0f) / 2.0f; sum += exp((double)logits[i]); }
    for (int s = 0; s < top_k; s++) {
        int best = -1, worse = -1;
        for (int i = 0; i < experts; i++) {
            if (!taken[i] && (best < 0 || logits[i] > logits[best])) best = i;
            if (!bad_taken[i] && (worse < 0 || logits[i] >= logits[worse])) worse = i;
        }
        taken[best] = bad_taken[worse] = 1;
        want[s] = best;
        bad[s] = worse;
        chosen += exp((double)logits[best]);
        expect(&ew, (size_t)s, exp((double)logits[best]) / sum, exp((double)logits[best]) / (sum * 1.001), 1.0, experts + 8, 1); /* damaged: by 0.1 % */
        expected products = expect_new(1, 2 * (size_t)h);
        expect_products(&products, x, padded((size_t)d), l[best].values, (size_t)d, wide);
        for (int i = 0; i < h; i++) {
            double g = products.want[i], u = products.want[h + i], v = g / (1.0 + exp(-g)) * u;
            expect(&e, (size_t)(s * h + i), v, u / (1.0 + exp(-u)) * g, fabs(v), 16, wide);
            e.tolerance[s * h + i] += 1.1 * fabs(u) * products.tolerance[i] + fabs(g / (1.0 + exp(-g))) * products.tolerance[h + i];
        }
    }
    for (int s = 0; norm_topk && s < top_k; s++) { ew.want[s] *= sum / chosen; ew.bad[s] *= sum / chosen; ew.tolerance[s] *= sum / chosen; }
    if (experts == 1) bad[0] = -1;
    job.norm_topk = norm_topk;
    job.router = &router.linear; job.gate_up = &l[0].linear; job.down = &down.linear; job.gate_up_stride = bytes;
    job.expert_dim = h; job.top_k = top_k; job.logits = logits; job.normed = x;
    job.index = (int32_t *)take((size_t)top_k * sizeof(int32_t));
    job.weight = (float *)take((size_t)top_k * sizeof(float));
    job.hidden = take((size_t)top_k * ldh * element);
    /* routing, products, silu and times up. In: logits, the input, weights of the chosen experts. Out: the chosen experts and hidden rows. */
    SEND(1, (int64_t)experts * (4 + experts) + (int64_t)top_k * (2 * h) * (2 * d) + (int64_t)top_k * h * 4 + (norm_topk ? 2 * top_k : 0),
         4 * experts + top_k * counted_bytes(2 * h, d, wide) + size_of(wide) * (d + top_k * h) + top_k * (4 + 4), decode->gate_up(queue, &job));
    for (int i = 0; i < top_k && memcmp(want, bad, (size_t)top_k * sizeof *want) == 0; i++) bad[i] = -1; /* these logits have no tie */
    verdict_ints(job.index, want, bad, (size_t)top_k);
    verdict(job.weight, (size_t)top_k, 1, &ew);
    verdict(job.hidden, ldh, wide, &e);
    keep_results();
}
/* damaged: without the last product of the last slot */
static void test_decode_down(int n, int h, int top_k, int wide) {
    enum { EXPERTS = 5 };
    size_t bytes = vk_round_up(layer_bytes(n, h, wide), 64) + 64, ldh = padded((size_t)h);
    vk_decode_job job = decode_job(NULL, n, 0);
    layer l[EXPERTS];
    check_case("decode down %dx%d top_k %d wide %d bits %d", n, h, top_k, wide, bits);
    use_mode(wide);
    char *weights = (char *)take(EXPERTS * bytes);
    for (int i = 0; i < EXPERTS; i++) l[i] = layer_at(weights + (size_t)i * bytes, layer_values(n, h, wide), n, h, wide);
    char *hidden = (char *)inputs((size_t)top_k, (size_t)h, ldh, wide);
    float *x = floats((size_t)n, 1.0f);
    job.index = (int32_t *)take((size_t)top_k * sizeof(int32_t));
    job.weight = floats((size_t)top_k, 1.0f);
    expected e = expect_new(1, (size_t)n);
    for (int s = 0; s < top_k; s++) job.index[s] = (int32_t)((EXPERTS - 1 + s * 2) % EXPERTS);
    for (int r = 0; r < n; r++) {
        double sum = (double)x[r], squares = sum * sum, last = 0.0;
        for (int s = 0; s < top_k; s++)
            for (size_t i = 0; i < (size_t)h; i++) {
                last = (double)job.weight[s] * get(hidden, (size_t)s * ldh + i, wide) * get(l[job.index[s]].values, (size_t)r * (size_t)h + i, wide);
                sum += last;
                squares += last * last;
            }
        expect(&e, (size_t)r, sum, sum - last, sqrt(squares), (double)top_k * h + 8, 1);
    }
    job.x = x; job.down = &l[0].linear; job.down_stride = bytes; job.top_k = top_k; job.hidden = hidden;
    /* products; times weight, sum. In: weights of the chosen experts, hidden rows, index and weight. x in and out. */
    SEND(1, (int64_t)top_k * n * (2 * h + 2), top_k * counted_bytes(n, h, wide) + size_of(wide) * top_k * h + top_k * (4 + 4) + n * (4 + 4), decode->down(queue, &job));
    verdict(x, (size_t)n, 1, &e);
    keep_results();
}
/* the maximum number of blocks per launch: three on each multiprocessor */
static int decode_blocks(void) {
    vp_device_info info;
    vp_error error;
    return CHECK_INT(vp_device_describe(0, &info, &error), VP_OK) ? 3 * info.multiprocessor_count : 1;
}
/* Logits, the best of them, and the next position. Three rows are equal, so their logits tie and the first one wins. numbers: number of rows whose logits are not NaN.
 * Damaged: the last of the equal rows wins. */
static void test_decode_end(int n, int d, int numbers, int wide) {
    int blocks = (n + 7) / 8 < decode_blocks() ? (n + 7) / 8 : decode_blocks(), some_row = below(n), same[3];
    vk_decode_end_job job = {0};
    layer l;
    float *x, *w;
    int32_t *out, want[3] = { -1, 6, -7 }, bad[3] = { -1, 6, 0 };
    check_case("decode head %dx%d numbers %d wide %d bits %d", n, d, numbers, wide, bits);
    use_mode(wide);
    expected e = expect_new(1, (size_t)n);
    l.values = layer_values(n, d, wide);
    double *normed = normed_input(&x, &w, d);
    same[0] = some_row / 3; same[1] = some_row / 2; same[2] = some_row;
    for (int i = 0; i < d; i++) /* a row along x has by far the largest logit */
        for (int j = 0; j < 3; j++) put(l.values, (size_t)(same[j] * d + i), x[i] < 0.0f ? -1.0f : 1.0f, wide);
    for (int r = 0; numbers < n && r < n; r++)
        if (numbers == 0 || r != same[1]) put(l.values, (size_t)(r * d), NAN, wide);
    l = layer_at(take(layer_bytes(n, d, wide)), l.values, n, d, wide);
    for (int r = 0; r < n; r++) expect_row(&e, (size_t)r, 0.0, normed, &l, (size_t)r, rounding_of(wide));
    want[0] = numbers == 0 ? -1 : numbers < n ? same[1] : same[0];
    bad[0] = numbers == 0 ? 0 : same[2] != want[0] ? same[2] : want[0] + 1;
    out = (int32_t *)take(3 * sizeof *out);
    out[1] = 5;
    out[2] = -7;
    job.x = x; job.norm = w; job.eps = 1e-5f; job.head = &l.linear; job.token = out; job.position = out + 1;
    job.logits = (float *)take((size_t)n * sizeof(float));
    job.scratch = (float *)take(2 * VK_DECODE_BLOCKS * sizeof(float));
    SEND(1, 4 * d + (int64_t)n * (2 * d + 1), counted_bytes(n, d, wide) + 4 * d + 4 * d + 4 * n + 8 * blocks, decode->head(queue, &job));
    if (numbers == n) verdict(job.logits, (size_t)n, 1, &e);
    SEND(1, blocks + 1, 8 * blocks + 4 + 4 + 4, decode->pick(queue, &job));
    verdict_ints(out, want, bad, 3);
    CHECK_INT(backend->token(queue, 0, 6), want[0]); /* the host has the token too */
    keep_results();
}
static void test_decode_once(int wide) {
    static const int heads[7][2] = { { 2, 16 }, { 3, 32 }, { 2, 64 }, { 2, 128 }, { 1, 40 }, { 2, 6 }, { 1, 256 } };
    test_decode_qkv(12, 24, 0, wide);
    test_decode_qkv(101, 100, 0, wide);
    test_decode_qkv(13, 30, 0, wide); /* only half of a row's last 16 bytes belong to it */
    test_decode_qkv(9, 102, 0, wide);
    test_decode_qkv(37, wide ? 4100 : 8200, 0, wide); /* more than one strip */
    test_decode_qkv(8 * decode_blocks() + 70, 40, 0, wide); /* more than one strip */
    test_decode_qkv(13, 30, 1, wide);
    test_decode_qkv(101, 100, 1, wide);
    test_decode_dense(37, 100, 24, 0, wide);
    test_decode_dense(9, 30, 102, 1, wide);
    test_decode_dense(12, wide ? 4100 : 8200, 40, 0, wide);
    test_decode_dense(8 * 264 + 70, 40, 24, 1, wide);
    for (int h = 0; h < 5; h++) { /* heads that share keys; every norm */
        static const int shared[5][4] = { { 6, 3, 16, VK_NORM_NONE }, { 4, 2, 64, VK_NORM_HEAD }, { 7, 7, 128, VK_NORM_NONE }, { 6, 2, 6, VK_NORM_NONE },
                                          { 3, 3, 32, VK_NORM_WHOLE } };
        test_decode_attention(1, shared[h][0], shared[h][1], shared[h][2], shared[h][3], wide);
        test_decode_attention(70, shared[h][0], shared[h][1], shared[h][2], shared[h][3], wide);
    }
    test_decode_out(3, 16, 1, wide);
    test_decode_out(2, 6, 1, wide);
    for (int h = 0; h < 7; h++) {
        test_decode_attention(1, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, wide); /* only its own key */
        test_decode_attention(2, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, wide);
        test_decode_attention(9, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, wide); /* one key per split, then two */
        test_decode_attention(10, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, wide);
        test_decode_attention(h == 3 ? 1100 : 321, heads[h][0], 1, heads[h][1], VK_NORM_WHOLE, wide);
        test_decode_out(heads[h][0], heads[h][1], 0, wide);
    }
    test_decode_router(2, 24, wide);
    test_decode_router(64, 100, wide);
    test_decode_router(9, 30, wide);
    test_decode_router(9, 4100, wide);
    test_decode_gate_up(1, 1, 0, 3, 24, wide);
    test_decode_gate_up(8, 1, 0, 37, 100, wide);
    test_decode_gate_up(8, 8, 0, 8, 40, wide);
    test_decode_gate_up(16, 5, 0, 9, 2100, wide);
    test_decode_gate_up(16, 6, 1, 9, 40, wide);
    test_decode_gate_up(3, 3, 0, 720, 24, wide); /* more rows than the grid has warps */
    test_decode_down(5, 24, 1, wide);
    test_decode_down(37, 100, 2, wide);
    test_decode_down(16, 2100, 3, wide);
    test_decode_down(100, 40, 12, wide);
    test_decode_end(7, 24, 7, wide);
    test_decode_end(100, 100, 100, wide);
    test_decode_end(8 * decode_blocks() + 70, 40, 8 * decode_blocks() + 70, wide);
    test_decode_end(60, 24, 1, wide);
    test_decode_end(60, 24, 0, wide);
}
/* Integers: rows that are not a multiple of two or of a block's warps; an incomplete last block of 32; k of one block, and of an odd number of blocks; more than one
 * strip of x; more rows than the grid has warps; heads whose attention is merged, and others. */
static void test_decode_integers(void) {
    test_decode_qkv(1, 32, 0, 0);
    test_decode_qkv(12, 24, 1, 0);
    test_decode_qkv(37, 96, 0, 0);
    test_decode_qkv(33, 1120, 1, 0);
    test_decode_qkv(3, 8992, 1, 0);
    test_decode_qkv(16 * decode_blocks() + 35, 40, 0, 0);
    test_decode_out(3, 16, 1, 0);
    test_decode_out(3, 32, 0, 0);
    test_decode_out(2, 6, 1, 0);
    test_decode_dense(37, 100, 24, 0, 0);
    test_decode_dense(9, 30, 102, 1, 0);
    test_decode_dense(7, 8200, 40, 0, 0);
    test_decode_gate_up(1, 1, 0, 3, 24, 0);
    test_decode_gate_up(16, 6, 1, 9, 2080, 0);
    test_decode_gate_up(3, 3, 0, 1100, 24, 0);
    test_decode_gate_up(4, 2, 0, 9, 8200, 0);
    test_decode_down(5, 24, 1, 0);
    test_decode_down(37, 100, 2, 0);
    test_decode_down(16, 2100, 5, 0); /* more than one strip, which ends within a row */
    test_decode_down(100, 40, 12, 0);
    test_decode_end(7, 24, 7, 0);
    test_decode_end(8 * decode_blocks() + 70, 40, 8 * decode_blocks() + 70, 0);
    test_decode_end(61, 24, 1, 0);
    test_decode_end(60, 24, 0, 0);
}
/* every schedule of threads, and every repetition, must give the same bits */
static void test_decode(void) {
    uint64_t first = 0;
    decode = backend->decode;
    for (int pass = 1; decode && pass <= (emulated ? 3 : 2); pass++) {
#ifdef TEST_EMULATED
        char seed[16];
        snprintf(seed, sizeof seed, "%d", pass);
        cuda_on_cpu_set("SEED", seed);
#endif
        random_state = 20261122; /* so that inputs are the same */
        results_sum = 0;
        for (int wide = 0; wide < 2; wide++) test_decode_once(wide);
        for (bits = 4; bits <= 8; bits += 4) test_decode_integers();
        bits = 0;
        if (pass == 1) first = results_sum;
        check_case("decode, pass %d", pass);
        CHECK(results_sum == first);
    }
}

/* ---------------------------------------------------------------------------------------------------- copies, time, steps */
static void test_copy(size_t bytes, size_t offset) {
    check_case("copy of %zu bytes", bytes);
    unsigned char *from = (unsigned char *)take(bytes + offset + 1);
    unsigned char *to = (unsigned char *)take(bytes + offset + 1);
    for (size_t i = 0; i < bytes + offset + 1; i++) from[i] = (unsigned char)below(255);
    SEND(1, 0, 2 * (int64_t)bytes, backend->copy(queue, to + offset, from + 1, bytes));
    CHECK(memcmp(to + offset, from + 1, bytes) == 0);
    CHECK(bytes < 4 || memcmp(to + offset, from, bytes) != 0); /* damaged: shifted by one byte */
    CHECK(is_poison(to, offset) && to[offset + bytes] == 0xff);
    release_all();
}
/* consecutive pieces without a wait, then one copy back: shows if a buffer is refilled before it was sent */
static void test_transfers(size_t piece, int pieces) {
    size_t total = piece * (size_t)pieces;
    char *to = modes[0].room;
    check_case("%d pieces of %zu bytes", pieces, piece);
    uint64_t *from = (uint64_t *)hold(total + 8);
    uint64_t *got = (uint64_t *)hold(total + 8);
    for (size_t i = 0; i * 8 < total; i++) from[i] = vk_mix(random_state += i);
    memset(got, 0, total);
    before.work = queue->work;
    for (int i = 0; i < pieces; i++) {
        void *at = backend->stage(queue, to + (size_t)i * piece, piece);
        memcpy(at, (char *)from + (size_t)i * piece, piece);
        backend->commit(queue, to + (size_t)i * piece, piece);
    }
    backend->fetch(queue, got, to, total);
    CHECK(memcmp(got, from, total) == 0);
    CHECK(memcmp(got, (char *)from + 1, total - 1) != 0); /* damaged: shifted by one byte */
    check_work(on_gpu() ? work_of(pieces + 1, 0, 2 * (int64_t)total) : work_of(0, 0, 0), __LINE__);
    for (size_t i = 0; i < 3; i++) { /* small results take a different path than large ones */
        size_t bytes = i == 0 ? 4 : i == 1 ? 64 << 10 : (64 << 10) + 1, at = total / 3;
        if (at + bytes > total) continue;
        poison(got, bytes + 1);
        backend->fetch(queue, got, to + at, bytes);
        CHECK(memcmp(got, (char *)from + at, bytes) == 0);
        CHECK(is_poison((char *)got + bytes, 1));
    }
    release_all();
}
/* operations run in the order of sending: a kernel between two uploads to one address reads the first upload */
static void test_order(void) {
    enum { N = 1000 };
    float *got, *at;
    float *x = (float *)(void *)modes[0].room, *y = x + 1024;
    check_case("uploads, kernels and copies in order");
    got = (float *)hold(2 * 1024 * sizeof *got);
    for (int step = 0; step < 5; step++) {
        at = (float *)backend->stage(queue, x, N * sizeof *x);
        for (int i = 0; i < N; i++) at[i] = (float)(i * 10 + step);
        backend->commit(queue, x, N * sizeof *x);
        kernels->convert(queue, y + 1024, x, 1, N, N, 1);
        backend->copy(queue, y, y + 1024, N * sizeof *y);
        if (step == 3) backend->copy(queue, y + 2048, y, N * sizeof *y);
    }
    backend->fetch(queue, got, y, N * sizeof *y); /* fetch waits for the kernels itself */
    backend->fetch(queue, got + 1024, y + 2048, N * sizeof *y);
    for (int i = 0; i < N; i++) CHECK(got[i] == (float)(i * 10 + 4) && got[1024 + i] == (float)(i * 10 + 3));
    release_all();
}
/* the end of a step: `best`, the index of x's largest value, becomes the token, and the sequence grows by one */
static void end_step(int32_t *token, int32_t *position, const float *x, int n, int32_t best) {
    vk_linear one = {0};
    vk_decode_end_job job = {0};
    if (!decode) {
        kernels->argmax(queue, token, x, 1, n);
        kernels->advance(queue, position, 1);
        return;
    }
    one.n = 1; /* one candidate */
    job.head = &one; job.token = token; job.position = position;
    job.scratch = (float *)take(2 * sizeof(float));
    job.scratch[0] = x[best];
    memcpy(&job.scratch[1], &best, sizeof best);
    decode->pick(queue, &job);
}
/* time advances from mark to mark and adds up, and every mark keeps the token of that moment */
static void test_marks(void) {
    enum { N = 50304 };
    int32_t *token, *position;
    vp_error error;
    check_case("marks, times, tokens");
    float *x = floats(2 * N, 1.0f);
    token = (int32_t *)take(sizeof *token);
    position = (int32_t *)take(sizeof *position);
    *position = 4;
    x[777] = x[N + 40000] = 5.0f;
    for (int round = 0; round < 2; round++) { /* marks can be reused */
        before.work = queue->work;
        backend->mark(queue, 1, NULL);
        check_work(work_of(0, 0, 0), __LINE__);
        end_step(token, position, x + round * N, N, round ? 40000 : 777);
        backend->mark(queue, 2, token);
        end_step(token, position, x + (1 - round) * N, N, round ? 777 : 40000);
        backend->mark(queue, 3, token);
        CHECK_INT(backend->wait(queue, 2, &error), VP_OK);
        CHECK_INT(backend->token(queue, 2, 2 * round + 5), round ? 40000 : 777);
        CHECK_INT(backend->wait(queue, 3, &error), VP_OK);
        CHECK_INT(backend->token(queue, 3, 2 * round + 6), round ? 777 : 40000);
        CHECK_INT(backend->token(queue, 2, 2 * round + 5), round ? 40000 : 777);
        int64_t first = backend->between(queue, 1, 2);
        int64_t second = backend->between(queue, 2, 3);
        int64_t both = backend->between(queue, 1, 3);
        CHECK(first > 0 && second > 0 && first < 10000000000);
        CHECK_NEAR(first + second, both, on_gpu() ? 2000 : 0); /* events resolve about 0.5 us */
        CHECK_NEAR(backend->between(queue, 3, 1), -both, on_gpu() ? 2000 : 0);
    }
    release_all();
}
/* a step like decode's: it depends only on device memory, and changes it each time */
typedef struct step { int32_t *position, *index; float *x, *y, *sum; layer l; } step;
static void send_step(const step *s, int by) {
    backend->linear(queue, s->y, s->l.linear.n, s->x, s->l.linear.k_padded, 1, &s->l.linear, VK_STORE_F32);
    kernels->scatter_add(queue, s->sum, s->y, s->index, 1, s->l.linear.n);
    kernels->advance(queue, s->position, by);
}
static void check_step(const step *s, int position, int times) {
    settle();
    CHECK_INT(*s->position, position);
    for (int i = 0; i < s->l.linear.n; i++) {
        float want = 0.0f;
        for (int j = 0; j < times; j++) want += s->y[i];
        if (!CHECK(s->sum[i] == want)) break;
    }
}
static void record_advance(step *s, uint64_t key, int by) {
    backend->record(queue);
    kernels->advance(queue, s->position, by);
    backend->keep(queue, key);
}
static void test_recorded_steps(void) {
    int advanced;
    enum { N = 40 };
    step s;
    if (!backend->record) return;
    check_case("recorded steps");
    s.l = layer_new(N, N, 1);
    s.x = (float *)inputs(1, N, padded(N), 1);
    s.y = (float *)take(N * sizeof(float));
    s.sum = (float *)memset(take(N * sizeof(float)), 0, N * sizeof(float));
    s.position = (int32_t *)memset(take(sizeof(int32_t)), 0, sizeof(int32_t));
    s.index = (int32_t *)memset(take(sizeof(int32_t)), 0, sizeof(int32_t));
    CHECK_INT(backend->replay(queue, 7), 0);
    backend->linear(queue, s.y, N, s.x, s.l.linear.k_padded, 1, &s.l.linear, VK_STORE_F32); /* cuBLAS may initialise here, but not while recording */
    settle();
    begin(1); /* recording counts the work but does not run it */
    queue->dry = 0;
    backend->record(queue);
    send_step(&s, 3);
    backend->keep(queue, 7);
    queue->dry = 1;
    end(work_of(3, 2 * N * N + N + 1, 4 * (N * N + 2 * N) + 4 * (3 * N + 1) + 8), __LINE__);
    before.work = queue->work; /* replaying runs the work but does not count it: the engine counts with the step's own number of keys */
    CHECK_INT(backend->replay(queue, 7), 1);
    check_step(&s, 3, 1);
    CHECK(fabsf(s.y[0]) > 0.0f && fabsf(s.sum[N - 1]) > 0.0f);
    CHECK_INT(backend->replay(queue, 7), 1);
    CHECK_INT(backend->replay(queue, 7), 1);
    CHECK_INT(backend->replay(queue, 8), 0);
    check_work(work_of(0, 0, 0), __LINE__);
    check_step(&s, 9, 3);
    for (int i = 0; i < N; i++) s.x[i] *= -0.5f; /* the same recording with other numbers */
    CHECK_INT(backend->replay(queue, 7), 1);
    settle();
    CHECK_INT(*s.position, 12);
    for (int i = 0; i < N; i++) CHECK_NEAR(s.sum[i], -5.0f * s.y[i], 16 * unit * fabs((double)s.y[i]) * 6);
    check_case("new recorded steps replace the oldest");
    *s.position = advanced = 0;
    for (uint64_t key = 100; key < 100 + RECORDED - 1; key++) record_advance(&s, key, (int)key);
    for (uint64_t key = 100; key < 100 + RECORDED - 1; key += 31) {
        CHECK_INT(backend->replay(queue, key), 1);
        advanced += (int)key;
    }
    settle();
    CHECK_INT(*s.position, advanced);
    CHECK_INT(backend->replay(queue, 7), 1); /* RECORDED steps are kept */
    settle();
    CHECK_INT(*s.position, advanced + 3);
    record_advance(&s, 5000, 1000);
    CHECK_INT(backend->replay(queue, 7), 0); /* the oldest was replaced */
    CHECK_INT(backend->replay(queue, 100), 1);
    CHECK_INT(backend->replay(queue, 5000), 1);
    settle();
    CHECK_INT(*s.position, advanced + 3 + 100 + 1000);
    record_advance(&s, 7, 5);
    CHECK_INT(backend->replay(queue, 100), 0);
    CHECK_INT(backend->replay(queue, 7), 1);
    settle();
    CHECK_INT(*s.position, advanced + 3 + 100 + 1000 + 5);
    release_all();
}
/* loading weights: rows of numbers, in pieces of `row_limit` rows, into the layout of a linear of this backend */
static void test_loading(int n, int k, int row_limit, int wide) {
    size_t k_padded = padded((size_t)k), row_bytes = k_padded * (wide ? 4 : 2), wrong = 0, shifted = 0;
    int first = n / 3;
    vk_backend pieces = *backend;
    vk_loader loader = {0};
    vp_error error;
    check_case("loading %dx%d, %d rows at a time, wide %d", n, k, row_limit, wide);
    use_mode(wide);
    loader.backend = vk_cpu_code(); loader.wide = wide; loader.threads = 2; loader.seed = 3; loader.error = &error;
    layer l = {.values = hold((size_t)n * (size_t)k * (wide ? 4 : 2))};
    vk_load_rows(&loader, "a.weight", l.values, first, k, wide);
    vk_load_rows(&loader, "b.weight", (char *)l.values + (size_t)first * (size_t)k * (wide ? 4 : 2), n - first, k, wide);
    if (pieces.stage_bytes != SIZE_MAX) pieces.stage_bytes = (size_t)row_limit * row_bytes + 7;
    loader.backend = &pieces;
    loader.queue = queue;
    loader.done = 0;
    l.linear.n = n; l.linear.k = k; l.linear.k_padded = (int)k_padded; l.linear.wide = wide; l.linear.bits = 0; l.linear.bias = NULL; l.linear.bias_bf16 = NULL;
    l.linear.weights = take(layer_bytes(n, k, wide));
    vk_load_linear_rows(&loader, "a.weight", &l.linear, 0, first);
    vk_load_linear_rows(&loader, "b.weight", &l.linear, first, n - first);
    CHECK_INT(loader.result, VP_OK);
    CHECK_INT(loader.done, (int64_t)n * (int64_t)row_bytes);
    settle();
    for (size_t r = 0; r < (size_t)n; r++)
        for (size_t c = 0; c < k_padded; c++) {
            size_t at = backend->row_major ? r * k_padded + c : panel_index(r, c, k_padded, wide);
            double got = get(l.linear.weights, at, wide), want = c < (size_t)k ? get(l.values, r * (size_t)k + c, wide) : 0.0;
            wrong += !(got == want);
            shifted += c < (size_t)k && got == get(l.values, (r + 1) % (size_t)n * (size_t)k + c, wide); /* damaged: the next row */
        }
    CHECK_INT(wrong, 0);
    CHECK(shifted < (size_t)n * (size_t)k / 2);
    if (backend->row_major) {
        pieces.stage_bytes = row_bytes - 1;
        vk_load_linear_rows(&loader, "a.weight", &l.linear, 0, first);
        CHECK_INT(loader.result, VP_ERR_UNSUPPORTED);
        CHECK_TEXT(error.where, "a.weight");
    }
    release_all();
}
/* Numbers become a GPU's integers, in pieces. Their values follow the CPU's rule (test_gemm.c), written once more here. Products of a single row are within 1e-5 of the
 * largest exact one; of several rows, at most 1.5 times as far off as with weights rounded to bf16. */
static void test_integers(int n, int k, int row_limit, int kind) {
    static const int rows[5] = { 1, 2, 3, 7, 33 };
    size_t k_padded = padded((size_t)k), row_bytes = k_padded * (size_t)kind / 8, blocks = k_padded / VK_QUANT_BLOCK, ldx = k_padded + VK_PAD;
    int first = n / 3, wrong = 0;
    vk_backend pieces = *backend;
    vk_decode_job job = decode_job(NULL, k, 0);
    vk_loader loader = {0};
    vk_linear l = {0};
    vp_error error;
    float *values, *x_wide, *y;
    double *meant;
    check_case("integers %dx%d, %d rows at a time, bits %d", n, k, row_limit, kind);
    use_mode(0);
    loader.backend = vk_cpu_code(); loader.threads = 2; loader.seed = 3; loader.error = &error;
    values = (float *)hold((size_t)n * (size_t)k * sizeof *values);
    meant = (double *)hold((size_t)n * (size_t)k * sizeof *meant);
    vk_load_rows(&loader, "a.weight", values, first, k, 1);
    vk_load_rows(&loader, "b.weight", values + (size_t)first * (size_t)k, n - first, k, 1);
    pieces.stage_bytes = (size_t)row_limit * row_bytes + k_padded * 2; /* a row of bf16 must fit */
    loader.backend = &pieces; loader.queue = queue; loader.done = 0;
    l.n = n; l.k = k; l.k_padded = (int)k_padded; l.bits = kind;
    l.weights = take((size_t)n * (row_bytes + blocks * 2));
    l.scales = vk_row_scales(&l);
    if (first) vk_load_linear_rows(&loader, "a.weight", &l, 0, first);
    vk_load_linear_rows(&loader, "b.weight", &l, first, n - first);
    CHECK_INT(loader.result, VP_OK);
    CHECK_INT(loader.done, (int64_t)((size_t)n * (row_bytes + blocks * 2)));
    settle();
    for (size_t r = 0; r < (size_t)n; r++)
        for (size_t c = 0; c < k_padded; c += VK_QUANT_BLOCK) {
            const uint8_t *integers = (const uint8_t *)l.weights + r * row_bytes + c * (size_t)kind / 8;
            const float scale = vp_bf16_to_f32(l.scales[r * blocks + c / VK_QUANT_BLOCK]);
            float most = 0.0f, scale_meant;
            for (size_t i = c; i < c + VK_QUANT_BLOCK && i < (size_t)k; i++)
                if (fabsf(values[r * (size_t)k + i]) > fabsf(most)) most = values[r * (size_t)k + i];
            scale_meant = vp_bf16_to_f32(vp_f32_to_bf16(kind == 8 ? fabsf(most) / 127.0f : most / -8.0f));
            wrong += !(scale == scale_meant);
            for (size_t i = 0; i < VK_QUANT_BLOCK; i++) {
                size_t nibble = i % 2 * 4 + i % 8 / 2;
                int got = kind == 8 ? (int8_t)integers[i] : (integers[i / 8 * 4 + nibble / 2] >> nibble % 2 * 4 & 15) - 8, want = 0;
                if (c + i < (size_t)k) want = (int)roundf(values[r * (size_t)k + c + i] * (1.0f / scale_meant));
                if (want > (kind == 8 ? 127 : 7)) want = kind == 8 ? 127 : 7;
                if (want < (kind == 8 ? -127 : -8)) want = kind == 8 ? -127 : -8;
                wrong += got != want;
                if (c + i < (size_t)k) meant[r * (size_t)k + c + i] = (double)want * (double)scale_meant;
            }
        }
    CHECK_INT(wrong, 0);
    void *x = inputs(33, (size_t)k, ldx, 0);
    x_wide = floats((size_t)k + 4, 1.0f);
    y = (float *)take(33 * (size_t)n * sizeof *y);
    for (int i = 0; i < k; i++) x_wide[i] = (float)get(x, (size_t)i, 0);
    for (int t = -1; t < 5; t++) { /* first the kernel for a single row, then `linear` */
        size_t count = t < 0 ? 1 : (size_t)rows[t];
        double most = 0.0, off = 0.0, rounded_off = 0.0;
        poison(y, count * (size_t)n * sizeof *y);
        job.x = x_wide; job.att_proj = &l; job.qkv = y;
        if (t < 0) {
            backend->decode->qkv(queue, &job);
            settle();
            CHECK_SAME_BITS(y, (size_t)n * sizeof *y, backend->decode->qkv(queue, &job));
        } else {
            backend->linear(queue, y, n, x, (int)ldx, (int)count, &l, VK_STORE_F32);
            settle();
            CHECK_SAME_BITS(y, count * (size_t)n * sizeof *y, backend->linear(queue, y, n, x, (int)ldx, (int)count, &l, VK_STORE_F32));
        }
        for (size_t r = 0; r < count; r++)
            for (size_t c = 0; c < (size_t)n; c++) {
                double exact = 0.0, rounded = 0.0, error_now;
                for (size_t i = 0; i < (size_t)k; i++) {
                    exact += get(x, r * ldx + i, 0) * meant[c * (size_t)k + i];
                    rounded += get(x, r * ldx + i, 0) * (double)vp_bf16_to_f32(vp_f32_to_bf16((float)meant[c * (size_t)k + i]));
                }
                error_now = fabs((double)y[r * (size_t)n + c] - exact);
                if (!(error_now <= off)) off = error_now; /* NaN is kept */
                most = fmax(most, fabs(exact));
                rounded_off = fmax(rounded_off, fabs(rounded - exact));
            }
        if (getenv("VERBOSE")) printf("%s, %d rows: off by %.2g of the largest, by bf16 %.2g\n", check_state.name, t < 0 ? 0 : rows[t], off / most, rounded_off / most);
        check_note(off <= (t < 0 ? 1e-5 * most : 1.5 * rounded_off), __FILE__, __LINE__, "%d rows: off by %.3g, bf16 by %.3g, the largest is %.3g",
                   t < 0 ? 0 : rows[t], off, rounded_off, most);
    }
    release_all();
}
static void test_opening(void) {
    char text[160] = "", *zeros;
    vk_queue *none = NULL;
    vp_error error;
    size_t bytes = modes[0].piece, other = 0;
    check_case("opening");
    vk_setup setup = {.gemm = "no such kernel"};
    CHECK_INT(backend->open(&setup, &none, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "no such kernel");
    CHECK(!none);
    for (int wide = 0; wide < 2; wide++) {
        use_mode(wide);
        zeros = (char *)hold(bytes); /* unused memory */
        backend->fetch(queue, zeros, modes[wide].room, bytes);
        for (size_t i = 0; i < bytes; i++) other += zeros[i] != 0;
        backend->describe(queue, text, sizeof text);
        CHECK(strncmp(text, on_gpu() ? "cuda:0: " : "cpu: ", on_gpu() ? 8 : 5) == 0);
        CHECK(backend->gemm(queue, wide, 1) && backend->gemm(queue, wide, 100));
        CHECK(backend->free_bytes(queue) > 0);
        backend->enter(queue);
    }
    CHECK_INT(other, 0);
    release_all();
}
#ifdef TEST_EMULATED
extern void cuda_on_cpu_fail(const char *what, int n);
extern int cuda_on_cpu_live(void);
/* The first failure is kept: nothing more is sent or counted, waiting reports its name and line, and closing frees everything. */
static void test_failure(const char *what, const char *where, vp_result expected_result) {
    int live = cuda_on_cpu_live();
    mode m = { NULL, NULL, 0 };
    vp_error error;
    vk_linear w = {0};
    check_case("a failing %s", what);
    if (!CHECK_INT(open_mode(&m, 0, 0, &error), VP_OK)) return;
    CHECK(cuda_on_cpu_live() > live);
    queue = m.queue;
    settle();
    w.weights = m.room; w.n = w.k = w.k_padded = VK_PAD;
    cuda_on_cpu_fail(what, 1);
    kernels->advance(queue, (int32_t *)(void *)m.room, 1);
    backend->copy(queue, m.room + 64, m.room, 4);
    backend->linear(queue, m.room + 8192, VK_PAD, m.room + 4096, VK_PAD, 1, &w, VK_STORE_F32);
    backend->mark(queue, 1, NULL);
    CHECK_INT(backend->wait(queue, 1, &error), expected_result);
    check_note(strncmp(error.where, where, strlen(where)) == 0, __FILE__, __LINE__, "%s: %s", error.where, error.text);
    CHECK(strstr(error.text, "vlmprof_kernels.cu:") != NULL);
    begin(1);
    queue->dry = 0;
    kernels->advance(queue, (int32_t *)(void *)m.room, 1);
    backend->linear(queue, m.room + 8192, VK_PAD, m.room + 4096, VK_PAD, 1, &w, VK_STORE_F32);
    check_work(work_of(0, 0, 0), __LINE__);
    CHECK_INT(backend->wait(queue, 1, NULL), expected_result);
    backend->close(queue);
    cuda_on_cpu_fail(NULL, 0);
    CHECK_INT(cuda_on_cpu_live(), live);
}
/* More shapes than plans are kept: the oldest is replaced, and made again on request. */
static void test_plans(void) {
    enum { SHAPES = 1040, KEPT = 1024, DESCRIPTORS = 4, N = 32 };
    int live = cuda_on_cpu_live();
    mode m = { NULL, NULL, 0 };
    vp_error error;
    vk_linear w = {0};
    check_case("plans of %d shapes", SHAPES);
    if (!CHECK_INT(open_mode(&m, 1, 0, &error), VP_OK)) return;
    queue = m.queue;
    settle();
    live = cuda_on_cpu_live();
    w.weights = m.room; w.bias = (const float *)(const void *)m.room; w.n = w.k = w.k_padded = N; w.wide = 1; w.bits = 0;
    for (int i = 0; i <= SHAPES; i++) {
        int64_t launches = queue->work.launches;
        backend->linear(queue, m.room + 8192 + SHAPES * N * 4, N, m.room + 8192, N, i < SHAPES ? i + 1 : 1, &w, VK_STORE_F32);
        CHECK_INT(queue->work.launches - launches, 1);
        CHECK_INT(cuda_on_cpu_live() - live, DESCRIPTORS * (i < KEPT ? i + 1 : KEPT));
    }
    settle();
    CHECK_TEXT(queue->note, "");
    backend->close(queue);
}
static void test_failures(void) {
    test_plans();
    test_failure("launch", "k_advance", VP_ERR_DEVICE);
    test_failure("copy", "cudaMemcpyAsync", VP_ERR_DEVICE);
    test_failure("gemm", "cublasGemmEx", VP_ERR_DEVICE);
    test_failure("event", "cudaEventRecord", VP_ERR_DEVICE);
}
#else
static void test_failures(void) {}
#endif
static void test_backend(void) {
    size_t whole = modes[0].piece;
    use_mode(0);
    test_copy(1, 0);
    test_copy(4, 3);
    test_copy(1000, 64);
    test_copy(70001, 5);
    test_transfers(100, 9);
    test_transfers(12345, 7);
    test_transfers(64 << 10, 5);
    test_transfers(whole, 3);
    RUN_TESTS(test_order, test_marks, test_recorded_steps);
    for (int wide = 0; wide < 2; wide++) {
        test_loading(40, 24, 5, wide);
        test_loading(100, 100, 1, wide);
        test_loading(100, 100, 1000, wide);
    }
    for (int kind = 4; on_gpu() && kind <= 8; kind += 4) {
        test_integers(40, 24, 5, kind);
        test_integers(37, 96, 1, kind);
        test_integers(100, 1120, 1000, kind);
        test_integers(70, 352, 7, kind);
    }
}

/* ------------------------------------------------------------------------------- single modules of the reference implementation */
static int load_component(const char *module, const char *file, check_array *a) {
    char relative[128];
    snprintf(relative, sizeof relative, "components/%s/%s.npy", module, file);
    const char *path = check_golden(relative);
    if (check_note(path && check_npy(path, a), __FILE__, __LINE__, "%s: cannot be read", relative)) return 1;
    memset(a, 0, sizeof *a);
    return 0;
}
static void copy_component(const char *module, const char *file, float *out, int64_t count) {
    check_array a;
    if (!load_component(module, file, &a)) return;
    CHECK_INT(a.count, count);
    for (int64_t i = 0; i < a.count && i < count; i++) out[i] = (float)check_at(&a, i);
    check_free(&a);
}
/* Rows from..to-1 of `width`, within `limit` of each row's largest value. Damaged: the golden is shifted by one column. */
static void compare_rows(const char *module, const char *file, const float *got, size_t ld, int64_t width, int64_t from, int64_t to, double limit) {
    check_array a;
    int rejected = 0;
    double worst = 0.0;
    if (!load_component(module, file, &a)) return;
    for (int64_t row = from; row < (to ? to : a.count / width); row++) {
        double scale = 0.0, most = 0.0, moved = 0.0;
        for (int64_t i = 0; i < width; i++) scale = fmax(scale, fabs(check_at(&a, row * width + i)));
        for (int64_t i = 0; i < width; i++) {
            double value = (double)got[(size_t)row * ld + (size_t)i], error = fabs(value - check_at(&a, row * width + i));
            if (!(error <= most)) most = error; /* NaN is kept */
            moved = fmax(moved, fabs(value - check_at(&a, row * width + (i + 1) % width)));
        }
        if (!check_note(most <= limit * scale, __FILE__, __LINE__, "%s/%s row %d: error %.3g of %.3g, allowed %.3g", module, file, (int)row, most,
                        scale, limit * scale)) break;
        rejected |= moved > limit * scale;
        worst = fmax(worst, scale > 0.0 ? most / scale : 0.0);
    }
    CHECK(rejected);
    if (getenv("VERBOSE")) printf("%s/%s: %.2g of the row's largest value, allowed %.2g\n", module, file, worst, limit);
    check_free(&a);
}

static void compare_component(const char *module, const char *file, const float *got, size_t ld, int64_t width, double limit) {
    compare_rows(module, file, got, ld, width, 0, 0, limit);
}

static void component_norms(void) {
    float *x, *w, *b, *y;
    uint16_t *narrow;
    check_case("component rmsnorm");
    x = (float *)take(4 * 96 * sizeof *x);
    w = (float *)take(96 * sizeof *w);
    b = (float *)take(96 * sizeof *b);
    y = (float *)take(4 * 96 * sizeof *y);
    narrow = (uint16_t *)take(4 * 64 * sizeof *narrow);
    use_mode(1);
    copy_component("rmsnorm", "x", x, 4 * 64);
    copy_component("rmsnorm", "weight", w, 64);
    kernels->rmsnorm(queue, y, x, w, 4, 64, 64, 1e-5f, 1);
    settle();
    compare_component("rmsnorm", "y", y, 64, 64, 1e-6);
    /* a bf16 residual: the reference rounds the normalised value to bf16 before the weight, this engine keeps fp32 and rounds the product
     * to bf16, so both may differ by one rounding each: 2 * 2^-8 of a value */
    copy_component("rmsnorm", "x_bf16", x, 4 * 64);
    kernels->rmsnorm(queue, narrow, x, w, 4, 64, 64, 1e-5f, 0);
    settle();
    for (int i = 0; i < 4 * 64; i++) y[i] = vp_bf16_to_f32(narrow[i]);
    compare_component("rmsnorm", "y_from_bf16", y, 64, 64, 2 * bf16_unit);
    check_case("component layernorm");
    copy_component("layernorm", "x", x, 3 * 96);
    copy_component("layernorm", "weight", w, 96);
    copy_component("layernorm", "bias", b, 96);
    kernels->layernorm(queue, y, x, w, b, 3, 96, 96, 1e-5f, 1);
    settle();
    compare_rows("layernorm", "y", y, 96, 96, 0, 2, 1e-6);
    /* the last row has a mean of 50 and a spread of 1.1: rounding such a mean to fp32 moves a result by unit * 50 / 1.1 times a weight near 1
     * (the row's largest value is 2.75), once in the reference and once here */
    compare_rows("layernorm", "y", y, 96, 96, 2, 3, 1e-6 + 2 * unit * 50 / 1.1 / 2.75 * 1.2);
    release_all();
}
/* tested with the epilogue of a linear layer whose weight is the identity */
static void component_quickgelu(void) {
    enum { N = 64 };
    float *values, *x, *y;
    check_case("component quickgelu");
    use_mode(1);
    values = (float *)memset(hold(N * N * sizeof *values), 0, N * N * sizeof *values);
    for (size_t i = 0; i < N; i++) values[i * N + i] = 1.0f;
    layer identity = layer_at(take(layer_bytes(N, N, 1)), values, N, N, 1);
    x = (float *)inputs(1, N, N, 1);
    y = (float *)take(N * sizeof *y);
    copy_component("quickgelu", "x", x, N);
    backend->linear(queue, y, N, x, N, 1, &identity.linear, VK_QUICKGELU);
    settle();
    compare_component("quickgelu", "y", y, N, N, 1e-6);
    release_all();
}
/* Tables at the recorded positions, then the rotation. The kernel normalises first; a weight equal to the row's root mean square undoes that. */
static void component_rope(const char *module, int head_dim) {
    enum { HEADS = 2, POSITIONS = 4 };
    size_t half = (size_t)head_dim / 2, d = HEADS * (size_t)head_dim;
    float in[2][HEADS * POSITIONS * 128], out[2][HEADS * POSITIONS * 128], tables[2][POSITIONS * 64], *table, *key, *value, *qkv, *w, *q;
    check_array positions;
    int32_t at[POSITIONS], most = 0, *position;
    vk_heads shape = heads_of(HEADS, HEADS, head_dim, VK_NORM_WHOLE);
    static const vp_rope plain;
    check_case("component %s", module);
    use_mode(1);
    if (!load_component(module, "positions", &positions)) return;
    for (int p = 0; p < POSITIONS; p++) { at[p] = (int32_t)check_at(&positions, p); if (at[p] > most) most = at[p]; }
    check_free(&positions);
    table = (float *)take((size_t)(most + 1) * (size_t)head_dim * sizeof *table);
    key = (float *)take((size_t)(most + 1) * d * sizeof *key);
    value = (float *)take((size_t)(most + 1) * d * sizeof *value);
    qkv = (float *)memset(take(3 * d * sizeof *qkv), 0, 3 * d * sizeof *qkv);
    w = (float *)take(2 * d * sizeof *w);
    q = (float *)take(d * sizeof *q);
    position = (int32_t *)take(sizeof *position);
    vk_fill_rope(table, most + 1, head_dim, 10000.0, &plain);
    copy_component(module, "q", in[0], (int64_t)(POSITIONS * d));
    copy_component(module, "k", in[1], (int64_t)(POSITIONS * d));
    for (size_t p = 0; p < POSITIONS; p++) {
        for (size_t which = 0; which < 2; which++) {
            double squares = 0.0;
            for (size_t i = 0; i < d; i++) {
                float v = in[which][(i / (size_t)head_dim * POSITIONS + p) * (size_t)head_dim + i % (size_t)head_dim];
                qkv[which * d + i] = v;
                squares += (double)v * (double)v;
            }
            for (size_t i = 0; i < d; i++) w[which * d + i] = (float)sqrt(squares / (double)d);
        }
        *position = at[p];
        shape.eps = 0.0f; shape.q_norm = w; shape.k_norm = w + d; shape.cs = table;
        kernels->qk_norm_rope(queue, q, key, value, qkv, &shape, position, 1, (int)d, 1);
        settle();
        for (size_t i = 0; i < d; i++) {
            size_t to = (i / (size_t)head_dim * POSITIONS + p) * (size_t)head_dim + i % (size_t)head_dim;
            out[0][to] = q[i];
            out[1][to] = key[(size_t)at[p] * d + i];
        }
        memcpy(tables[0] + p * half, table + (size_t)at[p] * (size_t)head_dim, half * sizeof(float));
        memcpy(tables[1] + p * half, table + (size_t)at[p] * (size_t)head_dim + half, half * sizeof(float));
    }
    compare_component(module, "cos", tables[0], half, (int64_t)half, 1e-6);
    compare_component(module, "sin", tables[1], half, (int64_t)half, 1e-6);
    compare_component(module, "q_out", out[0], (size_t)head_dim, head_dim, 1e-6);
    compare_component(module, "k_out", out[1], (size_t)head_dim, head_dim, 1e-6);
    release_all();
}

/* ---- modules with the weights of tiny-a, in memory of the engine's backend */
static float *bring(vp_engine *e, const void *from, size_t count) {
    float *host = (float *)hold(count * sizeof *host);
    e->backend->fetch(e->queue, host, from, count * sizeof *host);
    return host;
}
static void give_component(vp_engine *e, const char *module, const char *file, void *to, int64_t count) {
    float *host = (float *)hold((size_t)count * sizeof *host);
    copy_component(module, file, host, count);
    vk_send(e, to, host, (size_t)count * sizeof *host);
}
static void compare_fetched(vp_engine *e, const char *module, const char *file, const void *from, size_t rows, size_t width, double limit) {
    compare_component(module, file, bring(e, from, rows * width), width, (int64_t)width, limit);
}

/* the connector stage, with hidden states that make windows 0 and 1 the recorded ones (mask 1: no pad_embed is added) */
static void component_attention_pool(vp_engine *e) {
    enum { WINDOWS = 2, PATCHES = 4, FEATURES = 128, SIDE = 24 };
    static float mask[SIDE * SIDE];
    float x[WINDOWS * PATCHES * FEATURES], *hidden;
    vk_buffers *b = &e->buffers;
    int32_t dead = 0;
    size_t w = (size_t)e->config.vit_width, d = (size_t)e->config.d_model, view_floats = (size_t)e->config.vit_positions * w, layers = FEATURES / w;
    check_case("component attention_pool");
    copy_component("attention_pool", "x", x, WINDOWS * PATCHES * FEATURES);
    for (int i = 0; i < SIDE * SIDE; i++) mask[i] = 1.0f;
    hidden = (float *)memset(hold(layers * view_floats * sizeof *hidden), 0, layers * view_floats * sizeof *hidden);
    for (size_t i = 0; i < WINDOWS * PATCHES * FEATURES; i++) {
        size_t window = i / (PATCHES * FEATURES), patch = i / FEATURES % PATCHES, feature = i % FEATURES;
        size_t row = 1 + patch / 2 * SIDE + window * 2 + patch % 2;
        hidden[feature / w * view_floats + row * w + feature % w] = x[i];
    }
    for (size_t l = 0; l < layers; l++)
        vk_send(e, b->hidden + l * (size_t)e->max_views * view_floats, hidden + l * view_floats, view_floats * sizeof *hidden);
    vk_send(e, b->dead, &dead, sizeof dead);
    if (b->masks) vk_send(e, b->masks, mask, sizeof mask);
    e->masks = b->masks ? b->masks : mask;
    vk_connector(e, 0, 1);
    compare_fetched(e, "attention_pool", "query", b->pool_query_in, WINDOWS, FEATURES, 1e-6);
    compare_fetched(e, "attention_pool", "y", b->pool_out, WINDOWS, w, 1e-6);
    compare_fetched(e, "attention_pool", "z", b->image_features, WINDOWS, d, 1e-6);
    release_all();
}
static void component_expert(vp_engine *e) {
    enum { ROWS = 3, D = 128 };
    const vk_block *k = &e->model.blocks[0];
    vk_buffers *b = &e->buffers;
    int h = e->config.expert_dim;
    check_case("component expert");
    give_component(e, "expert", "x", b->gathered, ROWS * D);
    backend->linear(e->queue, b->gate_up, 2 * h, b->gathered, D, ROWS, &k->gate_up[3], VK_STORE_F32);
    kernels->gate_mul(e->queue, b->expert_hidden, b->gate_up, ROWS, h, vk_padded(h), 0, 1);
    backend->linear(e->queue, b->expert_out, D, b->expert_hidden, vk_padded(h), ROWS, &k->down[3], VK_STORE_F32);
    compare_fetched(e, "expert", "y", b->expert_out, ROWS, D, 1e-6);
    release_all();
}
/* five tokens at once, then one by one, because a GPU uses other kernels for a single token */
static void component_moe(vp_engine *e, int top_k, int together) {
    enum { ROWS = 5, D = 128, EXPERTS = 8 };
    const vk_block *k = &e->model.blocks[1];
    vk_buffers *b = &e->buffers;
    size_t slots = (size_t)top_k;
    float x[ROWS * D], out[ROWS * D], logits[ROWS * EXPERTS], weights[ROWS * EXPERTS];
    int32_t chosen[ROWS * EXPERTS];
    char file[32];
    check_array index;
    check_case("component router top_k %d, %s", top_k, together ? "together" : "one by one");
    copy_component("router", "x", x, ROWS * D);
    copy_component("router", "logits", logits, ROWS * EXPERTS);
    for (int first = 0; first < ROWS; first += together ? ROWS : 1) {
        int rows = together ? ROWS : 1;
        vk_send(e, b->x, x + first * D, (size_t)rows * D * sizeof(float));
        kernels->rmsnorm(e->queue, b->normed, b->x, k->ff_norm.weight, rows, D, D, e->config.norm_eps, 1);
        vk_send(e, b->router_logits, logits + first * EXPERTS, (size_t)rows * EXPERTS * sizeof(float));
        memset(out + first * D, 0, (size_t)rows * D * sizeof(float)); /* so the result is only the sparse block's output */
        vk_send(e, b->x, out + first * D, (size_t)rows * D * sizeof(float));
        kernels->router(e->queue, b->expert_index, b->expert_weight, b->router_logits, rows, EXPERTS, top_k, e->config.norm_topk);
        vk_moe(e, 1, 0, rows, top_k);
        backend->fetch(e->queue, out + first * D, b->x, (size_t)rows * D * sizeof(float));
        backend->fetch(e->queue, chosen + first * top_k, b->expert_index, (size_t)rows * slots * sizeof(int32_t));
        backend->fetch(e->queue, weights + first * top_k, b->expert_weight, (size_t)rows * slots * sizeof(float));
    }
    snprintf(file, sizeof file, "top%d_index", top_k);
    if (!load_component("router", file, &index)) return;
    CHECK_INT(index.count, ROWS * top_k);
    for (int i = 0; i < ROWS * top_k; i++) CHECK_INT(chosen[i], check_at(&index, i));
    check_free(&index);
    snprintf(file, sizeof file, "top%d_weight", top_k);
    if (top_k > 1) compare_component("router", file, weights, slots, top_k, 1e-6);
    else compare_component("router", file, weights, ROWS, ROWS, 1e-6); /* one column, so all five values form one row */
    snprintf(file, sizeof file, "top%d_moe_out", top_k);
    compare_component("router", file, out, D, D, 1e-6);
    if (top_k < EXPERTS) return;
    for (int i = 0; i < ROWS * EXPERTS; i++) logits[i / EXPERTS * EXPERTS + chosen[i]] = weights[i];
    compare_component("router", "probabilities", logits, EXPERTS, EXPERTS, 1e-6);
}
static void component_router(vp_engine *e) {
    enum { ROWS = 5, D = 128, EXPERTS = 8 };
    static const int top[4] = { 1, 2, 3, 8 };
    const vk_block *k = &e->model.blocks[1];
    vk_buffers *b = &e->buffers;
    check_case("component router");
    give_component(e, "router", "x", b->x, ROWS * D);
    kernels->rmsnorm(e->queue, b->normed, b->x, k->ff_norm.weight, ROWS, D, D, e->config.norm_eps, 1);
    backend->linear(e->queue, b->router_logits, EXPERTS, b->normed, D, ROWS, &k->router, VK_STORE_F32);
    compare_fetched(e, "router", "logits", b->router_logits, ROWS, EXPERTS, 1e-6);
    release_all();
    for (int t = 0; t < 8; t++) component_moe(e, top[t / 2], t % 2);
}
static void component_decoder_block(vp_engine *e) {
    enum { ROWS = 7, D = 128, HEADS = 4, HEAD_DIM = 32 };
    vk_buffers *b = &e->buffers;
    float cache[2][HEADS * ROWS * HEAD_DIM], x[ROWS * D], y[ROWS * D], *key, *value;
    int32_t position = 0;
    check_case("component decoder_block");
    copy_component("decoder_block", "x", x, ROWS * D);
    vk_send(e, b->x, x, sizeof x);
    vk_send(e, b->position, &position, sizeof position);
    vk_block_forward(e, 0, ROWS, 0, 2);
    compare_fetched(e, "decoder_block", "y", b->x, ROWS, D, 1e-6);
    backend->linear(e->queue, b->qkv, D, b->attended, D, ROWS, &e->model.blocks[0].attn_out, VK_STORE_F32);
    compare_fetched(e, "decoder_block", "attn_out", b->qkv, ROWS, D, 1e-6);
    key = bring(e, b->key, ROWS * D);
    value = bring(e, b->value, ROWS * D);
    for (int i = 0; i < HEADS * ROWS * HEAD_DIM; i++) {
        int head = i / (ROWS * HEAD_DIM), row = i / HEAD_DIM % ROWS, column = i % HEAD_DIM;
        cache[0][i] = key[row * D + head * HEAD_DIM + column];
        cache[1][i] = value[row * D + head * HEAD_DIM + column];
    }
    compare_component("decoder_block", "k_cache", cache[0], HEAD_DIM, HEAD_DIM, 1e-6);
    compare_component("decoder_block", "v_cache", cache[1], HEAD_DIM, HEAD_DIM, 1e-6);
    release_all();
    /* the same block token by token, through the cache: decode must equal prefill */
    check_case("component decoder_block, one token at a time");
    for (int row = 0; row < ROWS; row++) {
        vk_send(e, b->x, x + row * D, D * sizeof(float));
        vk_block_forward(e, 0, 1, row, 2);
        kernels->advance(e->queue, b->position, 1);
        backend->fetch(e->queue, y + row * D, b->x, D * sizeof(float));
    }
    compare_component("decoder_block", "y", y, D, D, 2e-6); /* clang, which adds up in another order: 1.2e-6 */
}
/* vk_vit's steps with 9 positions instead of 577 */
static void component_vit_block(vp_engine *e) {
    enum { ROWS = 9, W = 64 };
    const vk_vit_block *v = &e->model.vit[0];
    vk_buffers *b = &e->buffers;
    vk_queue *q = e->queue;
    vk_attention_job job = {0};
    float eps = e->config.vit_norm_eps;
    int hidden = vk_padded(e->config.vit_mlp_dim);
    check_case("component vit_block");
    give_component(e, "vit_block", "x", b->vit_x, ROWS * W);
    job.y = b->vit_attended; job.ldy = W; job.q = b->vit_qkv; job.k = (float *)b->vit_qkv + W; job.v = (float *)b->vit_qkv + 2 * W;
    job.ldq = job.ldk = 3 * W; job.batch = 1; job.tokens = ROWS; job.heads = job.kv_heads = e->config.vit_head_count; job.head_dim = e->config.vit_head_dim;
    kernels->layernorm(q, b->vit_normed, b->vit_x, v->attention_norm.weight, v->attention_norm.bias, ROWS, W, W, eps, 1);
    backend->linear(q, b->vit_qkv, 3 * W, b->vit_normed, W, ROWS, &v->qkv, VK_STORE);
    backend->attention(q, &job);
    backend->linear(q, b->patch_rows, W, b->vit_attended, W, ROWS, &v->wo, VK_STORE_F32);
    compare_fetched(e, "vit_block", "attn_out", b->patch_rows, ROWS, W, 1e-6);
    backend->linear(q, b->vit_x, W, b->vit_attended, W, ROWS, &v->wo, VK_ADD_F32);
    kernels->layernorm(q, b->vit_normed, b->vit_x, v->ffn_norm.weight, v->ffn_norm.bias, ROWS, W, W, eps, 1);
    backend->linear(q, b->vit_hidden, hidden, b->vit_normed, W, ROWS, &v->w1, VK_QUICKGELU);
    backend->linear(q, b->vit_x, W, b->vit_hidden, hidden, ROWS, &v->w2, VK_ADD_F32);
    compare_fetched(e, "vit_block", "y", b->vit_x, ROWS, W, 1e-6);
    release_all();
}
/* The whole vision path of three views: mixed mask, the mask of -1, and a view with pixels of -1, whose features are zeroed. Limit 5e-6 as
 * for image features in goldens/models: there are four ViT blocks before this point. */
static void component_pad_embed(vp_engine *e) {
    enum { VIEWS = 3, PATCHES = 576, VALUES = 588, WINDOWS = 144, SAMPLES = 4, WINDOW = 4 * 128, FEATURES = 18, D = 128 };
    static const size_t sample[SAMPLES] = { 0, 1, 77, 143 };
    static float masks[VIEWS * PATCHES], windows[VIEWS * SAMPLES * WINDOW], features[VIEWS * FEATURES * D];
    int32_t id = 0, index[VIEWS * WINDOWS] = { 0 };
    float *pixels = (float *)hold(VIEWS * PATCHES * VALUES * sizeof *pixels), *found;
    vk_buffers *b = &e->buffers;
    vp_request r = {0};
    check_case("component pad_embed");
    copy_component("pad_embed", "masks", masks, VIEWS * PATCHES);
    for (int i = 0; i < VIEWS * PATCHES * VALUES; i++) {
        int view = i / (PATCHES * VALUES), patch = i / VALUES % PATCHES;
        pixels[i] = view == 2 ? -1.0f : (float)((31 * view + 7 * patch + 3 * (i % VALUES)) % 97 / 48.0 - 0.99);
    }
    r.input_ids = &id; r.input_count = 1;
    r.pixels = pixels; r.image_masks = masks; r.image_input_idx = index; r.views = VIEWS;
    vk_send_request(e, &r);
    for (int first = 0; first < VIEWS; first += e->view_batch) vk_vit(e, first, VIEWS - first < e->view_batch ? VIEWS - first : e->view_batch);
    for (int first = 0; first < VIEWS; first += e->view_batch) {
        int count = VIEWS - first < e->view_batch ? VIEWS - first : e->view_batch;
        vk_connector(e, first, count);
        found = bring(e, b->pool_keys, (size_t)count * WINDOWS * WINDOW);
        for (int i = first * SAMPLES; i < (first + count) * SAMPLES; i++)
            memcpy(windows + i * WINDOW, found + ((size_t)(i / SAMPLES - first) * WINDOWS + sample[i % SAMPLES]) * WINDOW, WINDOW * sizeof(float));
    }
    found = bring(e, b->image_features, VIEWS * WINDOWS * D);
    for (int i = 0; i < VIEWS * FEATURES; i++)
        memcpy(features + i * D, found + ((size_t)(i / FEATURES) * WINDOWS + (size_t)(i % FEATURES) * 8) * D, D * sizeof(float));
    compare_component("pad_embed", "windows", windows, 128, 128, 5e-6);
    compare_component("pad_embed", "features", features, D, D, 5e-6);
    release_all();
}
static void test_components(const char *device) {
    vp_model_config config;
    vp_engine_options options = vp_engine_options_default();
    vp_checkpoint *checkpoint = NULL;
    vp_engine *engine = NULL;
    vp_error error = {0};
    size_t bytes = 0;
    char *text = check_read("tests/golden/models/tiny-a/config.json", &bytes);
    component_norms();
    component_quickgelu();
    component_rope("rope_32", 32);
    component_rope("rope_128", 128);
    check_case("open tiny-a");
    options.config = &config;
    options.weights = VP_WEIGHTS_FP32;
    options.device = device;
    options.threads = 2;
    options.max_sequence = 64;
    options.max_views = 3;
    if (CHECK(text) && CHECK_INT(vp_model_config_parse(text, bytes, NULL, 0, &config, &error), VP_OK) &&
        CHECK_INT(vp_checkpoint_open("tests/golden/models/tiny-a", &config, &checkpoint, &error), VP_OK)) {
        options.checkpoint = checkpoint;
        CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK);
    }
    if (engine && CHECK(engine->backend == backend)) {
        component_attention_pool(engine);
        component_expert(engine);
        component_router(engine);
        component_decoder_block(engine);
        component_vit_block(engine);
        component_pad_embed(engine);
    } else printf("%s: %s\n", error.where, error.text);
    vp_engine_close(engine);
    vp_checkpoint_close(checkpoint);
    free(text);
}

#ifdef TEST_CUDA
static const char *const program = "test_kernels_cuda", *const device = "cuda";
static const vk_backend *find_backend(vp_error *error) {
    int32_t count;
    if (vp_device_count(&count, error) == VP_OK) return vk_gpu_code();
    check_skip("kernels of the GPU", error->text);
    return NULL;
}
#else
static const char *const program = "test_kernels", *const device = "cpu";
static const vk_backend *find_backend(vp_error *error) { (void)error; return vk_cpu_code(); }
#endif

int main(void) {
    vp_error error = { VP_OK, -1, "", "" };
    backend = find_backend(&error);
    if (!backend) return check_done(program);
    kernels = &backend->kernels;
    many = emulated ? 40 : 300;
    some = emulated ? 20 : 100;
    check_case("open the backend");
    for (int wide = 0; wide < 2; wide++)
        if (!CHECK_INT(open_mode(&modes[wide], wide, 0, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); return check_done(program); }
    if (emulated) {
        cuda_on_cpu_set("CAPABILITY", "9.0");
        cuda_on_cpu_set("MULTIPROCESSORS", "2"); /* few blocks, so each walks several tiles */
        CHECK_INT(open_mode(&modes[2], 0, VP_GPU_WGMMA, &error), VP_OK);
        CHECK(strstr(modes[2].queue->note, "wgmma") == NULL);
        cuda_on_cpu_set("MULTIPROCESSORS", NULL);
        cuda_on_cpu_set("CAPABILITY", NULL);
    } else if (on_gpu()) {
        vp_device_info info;
        if (backend->device_describe(0, &info, NULL) == VP_OK && info.compute_major == 9 && info.compute_minor == 0)
            CHECK_INT(open_mode(&modes[2], 0, VP_GPU_WGMMA, &error), VP_OK);
    }
    test_opening();
    test_shared_kernels();
    test_pruning_kernels();
    test_linears();
    RUN_TESTS(test_wgmma, test_attentions, test_decode, test_backend, test_failures);
    test_components(device);
    for (int wide = 0; wide < 3; wide++) if (modes[wide].queue) backend->close(modes[wide].queue);
    return check_done(program);
}
