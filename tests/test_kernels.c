/* test_kernels.c - every kernel of vlmprof_kernels.cu by itself, against plain loops in double precision and against single modules of the
 * reference implementation (tests/golden/components).
 *
 * Each case is judged twice: the result must agree with the reference, and it must disagree with a damaged reference, one with a mistake
 * that somebody could really make; so every tolerance is known to be tight enough to see that mistake. Outputs are poisoned with 0xff (a
 * NaN in every type, -1 as an integer) and fenced; padding that a kernel must not touch has to keep its poison.
 *
 * Tolerances: a sum of n rounded terms wanders by about unit * sqrt(n) * ||terms||, where unit = 2^-24 is fp32's largest relative rounding
 * error; SAFETY times that is allowed, and where a result is stored as bf16 its own rounding, 2^-8 of the value, on top. */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"

#include "../vlmprof_kernels.cu"

#include "check.h"

#include <unistd.h>

enum { FENCE = 256, BUFFERS_MAX = 128, SAFETY = 4 };
static const double unit = 1.0 / 16777216.0, bf16_unit = 1.0 / 256.0;

/* ---------------------------------------------------------------------------------------------- buffers and random numbers */
static struct { unsigned char *base; size_t bytes; } buffers[BUFFERS_MAX];
static int buffer_count;
static uint64_t random_state;

/* poisoned memory between two fences */
static void *take(size_t bytes) {
    unsigned char *base = (unsigned char *)malloc(bytes + 2 * FENCE);
    if (!base || buffer_count == BUFFERS_MAX) { printf("test_kernels: no memory for a buffer\n"); exit(1); }
    memset(base, 0xa5, bytes + 2 * FENCE);
    memset(base + FENCE, 0xff, bytes);
    buffers[buffer_count].base = base;
    buffers[buffer_count++].bytes = bytes;
    return base + FENCE;
}
static int fence_holds(const unsigned char *p) {
    for (int i = 0; i < FENCE; i++)
        if (p[i] != 0xa5) return 0;
    return 1;
}
static void release_all(void) {
    for (int i = 0; i < buffer_count; i++) {
        CHECK(fence_holds(buffers[i].base));
        CHECK(fence_holds(buffers[i].base + FENCE + buffers[i].bytes));
        free(buffers[i].base);
    }
    buffer_count = 0;
}
static int is_poison(const void *p, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)p)[i] != 0xff) return 0;
    return 1;
}
static void *poison(void *p, size_t bytes) { return memset(p, 0xff, bytes); }

static float uniform(void) { /* (-1, 1) */
    random_state = vk_mix(random_state + 0x9e3779b97f4a7c15ull);
    return (float)((double)(random_state >> 11) / 4503599627370496.0 - 1.0);
}
static int below(int n) { random_state = vk_mix(random_state + 1); return (int)(random_state % (uint64_t)n); }
static void put(void *p, size_t i, float v, int wide) {
    if (wide) ((float *)p)[i] = v;
    else ((uint16_t *)p)[i] = vp_f32_to_bf16(v);
}
static double get(const void *p, size_t i, int wide) {
    return wide ? (double)((const float *)p)[i] : (double)vp_bf16_to_f32(((const uint16_t *)p)[i]);
}
static float *floats(size_t count, float scale) {
    float *p = (float *)take(count * sizeof *p);
    for (size_t i = 0; i < count; i++) p[i] = scale * uniform();
    return p;
}
/* in-type [rows + spare, ld]: random in the first `cols` columns of `rows` rows, `gap` (0 or NaN) elsewhere */
static void *matrix(size_t rows, size_t spare, size_t cols, size_t ld, float gap, int wide) {
    void *p = take((rows + spare) * ld * (wide ? 4 : 2));
    for (size_t r = 0; r < rows + spare; r++)
        for (size_t c = 0; c < ld; c++) put(p, r * ld + c, r < rows && c < cols ? uniform() : gap, wide);
    return p;
}
static size_t padded(size_t n) { return (n + VK_PAD - 1) / VK_PAD * VK_PAD; }

/* --------------------------------------------------------------------------------------------------------------- verdicts */
/* what a kernel should give, what the damaged reference gives, and how much may lie between; [rows, cols] */
typedef struct expected { double *want, *bad, *tolerance; size_t rows, cols; } expected;
static expected expect_new(size_t rows, size_t cols) {
    expected e;
    e.rows = rows;
    e.cols = cols;
    e.want = (double *)take(rows * cols * sizeof(double));
    e.bad = (double *)take(rows * cols * sizeof(double));
    e.tolerance = (double *)take(rows * cols * sizeof(double));
    return e;
}
/* allowed: `size` times the wandering of `length` roundings, plus the rounding of a bf16 result */
static void expect(expected *e, size_t at, double want, double bad, double size, double length, int wide) {
    e->want[at] = want;
    e->bad[at] = bad;
    e->tolerance[at] = SAFETY * unit * sqrt(length) * size + (wide ? 0.0 : bf16_unit * fabs(want)) + 1e-30;
}
static void expect_exact(expected *e, size_t at, double want, double bad) {
    e->want[at] = want;
    e->bad[at] = bad;
    e->tolerance[at] = 0.0;
}
static int matches(const void *got, size_t ld, int wide, const expected *e, const double *want, size_t *where) {
    for (size_t r = 0; r < e->rows; r++)
        for (size_t c = 0; c < e->cols; c++) {
            *where = r * e->cols + c;
            if (!(fabs(get(got, r * ld + c, wide) - want[*where]) <= e->tolerance[*where])) return 0;
        }
    return 1;
}
/* got: f32 (wide) or bf16 [rows, ld]; what lies between the rows must still be poison */
static void verdict(const void *got, size_t ld, int wide, const expected *e) {
    size_t at, unused, element = wide ? 4 : 2;
    int good = matches(got, ld, wide, e, e->want, &at);
    check_note(good, __FILE__, __LINE__, "row %zu column %zu is %.9g, expected %.9g within %.3g", at / e->cols, at % e->cols,
               get(got, at / e->cols * ld + at % e->cols, wide), e->want[at], e->tolerance[at]);
    check_note(!matches(got, ld, wide, e, e->bad, &unused), __FILE__, __LINE__, "the damaged reference was accepted");
    for (size_t r = 0; r < e->rows; r++) CHECK(is_poison((const char *)got + (r * ld + e->cols) * element, (ld - e->cols) * element));
}
static void verdict_ints(const int32_t *got, const int32_t *want, const int32_t *bad, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!check_note(got[i] == want[i], __FILE__, __LINE__, "entry %zu is %d, expected %d", i, (int)got[i], (int)want[i])) return;
    check_note(memcmp(got, bad, count * sizeof *got) != 0, __FILE__, __LINE__, "the damaged reference was accepted");
}

static vk_queue queue = { 2 };
static const vk_kernels *const kernels = &vk_cpu_kernels;
static const int row_counts[3] = { 1, 3, 300 }; /* 300 rows are enough for two threads */

/* ----------------------------------------------------------------------------------------------------------- norms, elements */
static void test_rmsnorm(int rows, int d, int ldy, int wide) {
    expected e;
    float *x, *w;
    void *y;
    const float eps = 1e-5f;
    check_case("rmsnorm rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    e = expect_new((size_t)rows, (size_t)d);
    x = floats((size_t)rows * (size_t)d, 1.0f);
    w = floats((size_t)d, 1.0f);
    y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < d; i++) { x[i] = x[i] * 1e-3f + 1e-3f; w[i] += 1.5f; } /* the first row is so small that eps matters */
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * (size_t)d;
        double s = 0.0;
        for (int i = 0; i < d; i++) s += (double)xr[i] * (double)xr[i];
        for (int i = 0; i < d; i++) {
            double want = (double)w[i] * (double)xr[i] / sqrt(s / d + (double)eps);
            /* damaged: eps forgotten */
            expect(&e, (size_t)r * (size_t)d + (size_t)i, want, (double)w[i] * (double)xr[i] / sqrt(s / d), fabs(want), d + 4, wide);
        }
    }
    kernels->rmsnorm(&queue, y, x, w, rows, d, ldy, eps, wide);
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

static void test_layernorm(int rows, int d, int ldy, int wide) {
    expected e;
    float *x, *w, *b;
    void *y;
    const float eps = 1e-5f;
    check_case("layernorm rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    e = expect_new((size_t)rows, (size_t)d);
    x = floats((size_t)rows * (size_t)d, 1.0f);
    w = floats((size_t)d, 1.0f);
    b = floats((size_t)d, 0.2f);
    y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < rows * d; i++) x[i] = i < d ? x[i] * 1e-3f : x[i] + 0.5f; /* a row where eps matters, rows where the mean does */
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * (size_t)d;
        double mean = 0.0, q = 0.0, size = 0.0;
        for (int i = 0; i < d; i++) { mean += (double)xr[i] / d; size += (double)xr[i] * (double)xr[i] / d; }
        for (int i = 0; i < d; i++) q += ((double)xr[i] - mean) * ((double)xr[i] - mean) / d;
        for (int i = 0; i < d; i++) {
            double v = (double)w[i] * ((double)xr[i] - mean), root = sqrt(q + (double)eps);
            double want = v / root + (double)b[i], spread = fabs((double)w[i]) * (sqrt(size) + fabs((double)xr[i])) / root + fabs((double)b[i]);
            expect(&e, (size_t)r * (size_t)d + (size_t)i, want, v / sqrt(q) + (double)b[i], spread, d + 4, wide); /* eps forgotten */
        }
    }
    kernels->layernorm(&queue, y, x, w, b, rows, d, ldy, eps, wide);
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

static void test_convert(int rows, int d, int ldy, int wide) {
    static const float special[6] = { 1.00390625f, 1.01171875f, -1.00390625f, 1e-40f, -0.0f, 3.0e38f }; /* ties to even both ways, subnormal */
    expected e;
    float *x;
    void *y;
    check_case("convert rows %d d %d ld %d wide %d", rows, d, ldy, wide);
    e = expect_new((size_t)rows, (size_t)d);
    x = floats((size_t)rows * (size_t)d, 100.0f);
    y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    for (int i = 0; i < 6 && i < d; i++) x[i] = special[i];
    for (size_t i = 0; i < (size_t)rows * (size_t)d; i++) {
        uint32_t u;
        double rounded = (double)vp_bf16_to_f32(vp_f32_to_bf16(x[i]));
        memcpy(&u, &x[i], 4);
        /* damaged: bf16 by cutting bits off, f32 through bf16 */
        if (wide) expect_exact(&e, i, (double)x[i], rounded);
        else expect_exact(&e, i, rounded, (double)vp_bf16_to_f32((uint16_t)(u >> 16)));
    }
    kernels->convert(&queue, y, x, rows, d, ldy, wide);
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

static void test_vit_embed(int rows, int d) {
    expected e;
    float *patches, *class_embedding, *positions, *x;
    check_case("vit_embed rows %d d %d", rows, d);
    e = expect_new((size_t)rows, (size_t)d);
    patches = floats((size_t)rows * (size_t)d, 1.0f);
    class_embedding = floats((size_t)d, 1.0f);
    positions = floats((size_t)rows * (size_t)d, 1.0f);
    x = (float *)take((size_t)rows * (size_t)d * sizeof *x);
    for (size_t i = 0; i < (size_t)rows * (size_t)d; i++) {
        float v = i < (size_t)d ? class_embedding[i] : patches[i - (size_t)d];
        expect_exact(&e, i, (double)(v + positions[i]), (double)(patches[i] + positions[i])); /* damaged: no class token in front */
    }
    kernels->vit_embed(&queue, x, patches, class_embedding, positions, rows, d);
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

static void test_silu_mul(int rows, int h, int ldy, int wide) {
    expected e;
    float *x;
    void *y;
    check_case("silu_mul rows %d h %d ld %d wide %d", rows, h, ldy, wide);
    e = expect_new((size_t)rows, (size_t)h);
    x = floats((size_t)rows * 2 * (size_t)h, 5.0f);
    y = take((size_t)rows * (size_t)ldy * (wide ? 4 : 2));
    if (h > 2) { x[0] = -80.0f; x[1] = 80.0f; }
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < h; i++) {
            double g = (double)x[(size_t)r * 2 * (size_t)h + (size_t)i], u = (double)x[(size_t)r * 2 * (size_t)h + (size_t)(h + i)];
            double want = g / (1.0 + exp(-g)) * u;
            expect(&e, (size_t)r * (size_t)h + (size_t)i, want, u / (1.0 + exp(-u)) * g, fabs(want), 16, wide); /* gate and up exchanged */
        }
    kernels->silu_mul(&queue, y, x, rows, h, ldy, wide);
    verdict(y, (size_t)ldy, wide, &e);
    release_all();
}

/* vk_exp's own promise: 2 ulp, so 2 * 2^-23 relative, over the whole range; saturated outside it */
static void test_exp(void) {
    double most = 0.0, damaged = 0.0;
    check_case("vk_exp");
    for (int i = 0; i <= 200000; i++) {
        float x = -87.0f + 175.0f * (float)i / 200000.0f;
        double want = exp((double)x), got = (double)vk_exp(x);
        if (!(fabs(got / want - 1.0) <= most)) most = fabs(got / want - 1.0);
        damaged = fmax(damaged, fabs(got / exp((double)x * (1.0 + 1e-5)) - 1.0));
    }
    CHECK_NEAR(most, 0, 4 * unit);
    CHECK(damaged > 4 * unit);
    CHECK(vk_exp(-1000.0f) >= 0.0f && vk_exp(-1000.0f) < 1e-37f && vk_exp(1000.0f) > 1e38f);
    CHECK(isnan(vk_exp(NAN)));
}

/* ------------------------------------------------------------------------------------------------------------------ vision */
static double pad_of(float mask, const float *pad_embed, size_t features, size_t at, int damaged) {
    double v = 0.0;
    if (mask == 0.0f) v += (double)pad_embed[at];
    if ((mask > 0.0f && mask < 1.0f) || (mask == -1.0f && !damaged)) v += (double)pad_embed[features + at]; /* damaged: -1 is no padding */
    return v;
}
static void test_pool_windows(int side, int pool, int layers, int w, int dead, int wide) {
    size_t patches = (size_t)(side * side), features = (size_t)(layers * w), ld = padded(features), n = (size_t)(pool * pool), windows = patches / n;
    static const float masks[5] = { 1.0f, 0.0f, 0.4f, -1.0f, 0.001f };
    expected keys, query;
    float *hidden, *mask, *pad_embed;
    void *k, *q;
    check_case("pool_windows side %d pool %d layers %d w %d dead %d wide %d", side, pool, layers, w, dead, wide);
    keys = expect_new(patches, features);
    query = expect_new(windows, features);
    hidden = floats((size_t)layers * (patches + 1) * (size_t)w, 1.0f);
    mask = floats(patches, 1.0f);
    pad_embed = floats(2 * features, 1.0f);
    k = take(patches * ld * (wide ? 4 : 2));
    q = take(windows * ld * (wide ? 4 : 2));
    for (size_t p = 0; p < patches; p++) mask[p] = masks[p < 5 ? p : (size_t)below(5)];
    if (dead) poison(hidden, (size_t)layers * (patches + 1) * (size_t)w * sizeof(float)); /* the features of such a view are not looked at */
    for (size_t b = 0; b < windows; b++)
        for (size_t f = 0; f < features; f++) {
            double sum = 0.0, bad_sum = 0.0, size = 0.0;
            for (size_t j = 0; j < n; j++) {
                size_t across = (size_t)(side / pool), y = b / across * (size_t)pool + j / (size_t)pool;
                size_t patch = y * (size_t)side + b % across * (size_t)pool + j % (size_t)pool, layer = f / (size_t)w;
                double v = dead ? 0.0 : (double)hidden[layer * (patches + 1) * (size_t)w + (patch + 1) * (size_t)w + f % (size_t)w];
                double want = v + pad_of(mask[patch], pad_embed, features, f, 0), bad = v + pad_of(mask[patch], pad_embed, features, f, 1);
                expect(&keys, (b * n + j) * features + f, want, bad, fabs(v) + fabs(want), 1, wide);
                sum += want;
                bad_sum += bad;
                size += fabs(v) + fabs(want);
            }
            expect(&query, b * features + f, sum / (double)n, bad_sum / (double)n, size / (double)n, (double)n, wide);
        }
    kernels->pool_windows(&queue, k, q, hidden, mask, pad_embed, layers, w, side, pool, (int)ld, dead, wide);
    verdict(k, ld, wide, &keys);
    verdict(q, ld, wide, &query);
    release_all();
}

static void test_pool_attention(int windows, int n, int heads, int head_dim, int wide) {
    size_t w = (size_t)(heads * head_dim), ld = padded(w) + VK_PAD;
    expected e;
    float *q, *kv;
    void *y;
    check_case("pool_attention windows %d n %d heads %d of %d wide %d", windows, n, heads, head_dim, wide);
    e = expect_new((size_t)windows, w);
    q = floats((size_t)windows * w, 2.0f);
    kv = floats((size_t)(windows * n) * 2 * w, 2.0f);
    y = take((size_t)windows * ld * (wide ? 4 : 2));
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
    kernels->pool_attention(&queue, y, q, kv, windows, n, heads, head_dim, (int)ld, wide);
    verdict(y, ld, wide, &e);
    release_all();
}

/* ---------------------------------------------------------------------------------------------------------------- language */
static void test_embed(int rows, int d, int wide) {
    enum { VOCABULARY = 40 };
    expected e;
    int32_t *ids;
    float *x;
    void *table;
    check_case("embed rows %d d %d wide %d", rows, d, wide);
    e = expect_new((size_t)rows, (size_t)d);
    table = matrix(VOCABULARY, 0, (size_t)d, (size_t)d, 0.0f, wide);
    ids = (int32_t *)take((size_t)rows * sizeof *ids);
    x = (float *)take((size_t)rows * (size_t)d * sizeof *x);
    for (int r = 0; r < rows; r++) {
        ids[r] = r == 0 ? VOCABULARY - 1 : below(VOCABULARY);
        for (int i = 0; i < d; i++)
            expect_exact(&e, (size_t)r * (size_t)d + (size_t)i, get(table, (size_t)(ids[r] * d + i), wide),
                         get(table, (size_t)((ids[r] + 1) % VOCABULARY * d + i), wide)); /* damaged: the neighbour's row */
    }
    kernels->embed(&queue, x, table, ids, rows, d, wide);
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

static void test_scatter_add(int rows, int d) {
    expected e;
    float *x, *features;
    int32_t *index;
    int tokens = rows * 2 + 1;
    check_case("scatter_add rows %d d %d", rows, d);
    e = expect_new((size_t)tokens, (size_t)d);
    x = floats((size_t)tokens * (size_t)d, 1.0f);
    features = floats((size_t)rows * (size_t)d, 1.0f);
    index = (int32_t *)take((size_t)rows * sizeof *index);
    for (size_t i = 0; i < (size_t)tokens * (size_t)d; i++) expect_exact(&e, i, (double)x[i], (double)x[i]);
    for (int r = 0; r < rows; r++) {
        index[r] = r % 3 == 1 ? -100 : r % 3 == 2 ? -1 : tokens - 1 - 2 * r;
        for (int i = 0; index[r] >= 0 && i < d; i++) {
            size_t at = (size_t)index[r] * (size_t)d + (size_t)i, from = (size_t)r * (size_t)d + (size_t)i;
            expect_exact(&e, at, (double)(x[at] + features[from]), (double)features[from]); /* damaged: features replace the embedding */
        }
    }
    kernels->scatter_add(&queue, x, features, index, rows, d);
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

/* q or k of one token: normalised over the whole width, then rotated in pairs (i, i + half); damaged: pairs (2i, 2i + 1) */
static void expect_rotated(expected *e, size_t row, const float *x, const float *w, const float *cs, int d, int head_dim, double eps, int wide) {
    int half = head_dim / 2;
    double s = 0.0, r;
    for (int i = 0; i < d; i++) s += (double)x[i] * (double)x[i];
    r = 1.0 / sqrt(s / d + eps);
    for (int i = 0; i < d; i++) {
        int in_head = i % head_dim, h = i - in_head, pair = in_head % half, near = in_head / 2;
        double c = (double)cs[pair], sn = (double)cs[half + pair];
        double a = (double)w[h + pair] * (double)x[h + pair] * r, b = (double)w[h + pair + half] * (double)x[h + pair + half] * r;
        double want = in_head < half ? a * c - b * sn : b * c + a * sn, m = (double)w[h + 2 * near] * (double)x[h + 2 * near] * r,
               n = (double)w[h + 2 * near + 1] * (double)x[h + 2 * near + 1] * r;
        double bad = in_head % 2 ? n * (double)cs[near] + m * (double)cs[half + near] : m * (double)cs[near] - n * (double)cs[half + near];
        expect(e, row * (size_t)d + (size_t)i, want, bad, fabs(a) + fabs(b), d + 8, wide);
    }
}
static void test_qk_norm_rope(int rows, int heads, int head_dim, int position, int wide) {
    int d = heads * head_dim, positions = position + rows + 2, half = head_dim / 2;
    size_t ldq = padded((size_t)d) + VK_PAD, element = wide ? 4 : 2, row_bytes = (size_t)d * element;
    expected eq, ek, ev;
    float *qkv, *wq, *wk, *cs;
    char *q, *key, *value;
    check_case("qk_norm_rope rows %d heads %d of %d position %d wide %d", rows, heads, head_dim, position, wide);
    eq = expect_new((size_t)rows, (size_t)d);
    ek = expect_new((size_t)rows, (size_t)d);
    ev = expect_new((size_t)rows, (size_t)d);
    qkv = floats((size_t)rows * 3 * (size_t)d, 1.0f);
    wq = floats((size_t)d, 1.0f);
    wk = floats((size_t)d, 1.0f);
    cs = floats((size_t)positions * (size_t)head_dim, 1.0f);
    q = (char *)take((size_t)rows * ldq * element);
    key = (char *)take((size_t)positions * row_bytes);
    value = (char *)take((size_t)positions * row_bytes);
    for (int p = 0; p < positions; p++)
        for (int i = 0; i < half; i++) {
            double angle = 3.0 * (double)cs[p * head_dim + i];
            cs[p * head_dim + i] = (float)cos(angle);
            cs[p * head_dim + half + i] = (float)sin(angle);
        }
    for (int r = 0; r < rows; r++) {
        const float *x = qkv + (size_t)r * 3 * (size_t)d, *c = cs + (position + r) * head_dim;
        expect_rotated(&eq, (size_t)r, x, wq, c, d, head_dim, (double)1e-5f, wide);
        expect_rotated(&ek, (size_t)r, x + d, wk, c, d, head_dim, (double)1e-5f, wide);
        for (int i = 0; i < d; i++) { /* damaged: k instead of v */
            double v = (double)x[2 * d + i];
            expect(&ev, (size_t)(r * d + i), v, (double)x[d + i], 0.0, 1, wide);
        }
    }
    kernels->qk_norm_rope(&queue, q, key, value, qkv, wq, wk, cs, rows, d, head_dim, (int)ldq, position, 1e-5f, wide);
    verdict(q, ldq, wide, &eq);
    verdict(key + (size_t)position * row_bytes, (size_t)d, wide, &ek);
    verdict(value + (size_t)position * row_bytes, (size_t)d, wide, &ev);
    CHECK(is_poison(key, (size_t)position * row_bytes) && is_poison(key + (size_t)(position + rows) * row_bytes, 2 * row_bytes));
    CHECK(is_poison(value, (size_t)position * row_bytes) && is_poison(value + (size_t)(position + rows) * row_bytes, 2 * row_bytes));
    release_all();
}

/* Attention of one query of one head over `keys` keys; keys and values [positions, ld] from column `first` on. Damaged: the last key is not
 * seen. `rounds`: the weights are rounded to bf16 before they meet the values, as the tiles of attention over many queries do. */
static void expect_attention(expected *e, size_t at, const void *q, size_t q_at, const void *k, const void *v, size_t ld, size_t first, int keys,
                             int head_dim, int rounds, int wide) {
    double *p = (double *)malloc((size_t)keys * sizeof *p), sum = 0.0, spread = 0.0, most = -INFINITY;
    for (int j = 0; j < keys; j++) {
        double squares = 0.0;
        p[j] = 0.0;
        for (int i = 0; i < head_dim; i++) {
            double product = get(q, q_at + (size_t)i, wide) * get(k, (size_t)j * ld + first + (size_t)i, wide);
            p[j] += product;
            squares += product * product;
        }
        spread = fmax(spread, sqrt(squares * head_dim) + fabs(p[j]));
        p[j] /= sqrt((double)head_dim);
        most = fmax(most, p[j]);
    }
    for (int j = 0; j < keys; j++) { p[j] = exp(p[j] - most); sum += p[j]; }
    for (int i = 0; i < head_dim; i++) {
        double want = 0.0, size = 0.0, squares = 0.0, last = 0.0;
        for (int j = 0; j < keys; j++) {
            last = p[j] / sum * get(v, (size_t)j * ld + first + (size_t)i, wide);
            want += last;
            size += fabs(last);
            squares += last * last;
        }
        expect(e, at + (size_t)i, want, (want - last) / (keys > 1 ? 1.0 - p[keys - 1] / sum : 1.0), size * (3.0 + spread / sqrt((double)head_dim)),
               keys + 8, wide);
        if (rounds) e->tolerance[at + (size_t)i] += SAFETY * bf16_unit * sqrt(squares);
    }
    free(p);
}
static void test_attention_decode(int keys, int heads, int head_dim, int wide) {
    int d = heads * head_dim, lds = keys + 5;
    expected e;
    void *q, *k, *v, *y;
    float *scores;
    check_case("attention_decode keys %d heads %d of %d wide %d", keys, heads, head_dim, wide);
    e = expect_new(1, (size_t)d);
    q = matrix(1, 0, (size_t)d, (size_t)d, 0.0f, wide);
    k = matrix((size_t)keys, 1, (size_t)d, (size_t)d, NAN, wide);
    v = matrix((size_t)keys, 1, (size_t)d, (size_t)d, NAN, wide);
    y = take((size_t)d * (wide ? 4 : 2));
    scores = (float *)take((size_t)(heads * lds) * sizeof *scores);
    for (int h = 0; h < heads; h++)
        expect_attention(&e, (size_t)(h * head_dim), q, (size_t)(h * head_dim), k, v, (size_t)d, (size_t)(h * head_dim), keys, head_dim, 0, wide);
    kernels->attention_decode(&queue, y, q, k, v, scores, keys, lds, d, head_dim, wide);
    verdict(y, (size_t)d, wide, &e);
    release_all();
}

/* ties: logits are multiples of 1/4, and all of row 0 is one value. Damaged: ties go to the higher index, weights are renormalised */
static void test_router(int rows, int experts, int k) {
    expected e;
    float *logits, *weight;
    int32_t *index, *want, *bad;
    size_t count = (size_t)rows * (size_t)k;
    check_case("router rows %d experts %d top_k %d", rows, experts, k);
    e = expect_new((size_t)rows, (size_t)k);
    logits = floats((size_t)rows * (size_t)experts, 5.0f);
    weight = (float *)take(count * sizeof *weight);
    index = (int32_t *)take(count * sizeof *index);
    want = (int32_t *)take(count * sizeof *want);
    bad = (int32_t *)take(count * sizeof *bad);
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
            /* with every expert chosen there is nothing to renormalise: damaged by exp2 instead of exp */
            expect(&e, (size_t)(r * k + s), v / sum, k < experts ? v / chosen : two / sum, v / sum * 4.0, experts + 4, 1);
        }
    }
    kernels->router(&queue, index, weight, logits, rows, experts, k);
    verdict_ints(index, want, bad, count);
    verdict(weight, (size_t)k, 1, &e);
    release_all();
}

/* all four lists behind each other; damaged: the pairs of an expert in reverse order */
static void moe_reference(int32_t *out, const int32_t *index, int experts, int pairs, int damaged) {
    int32_t *count = out, *start = out + experts, *list = start + experts + 1, *slot_row = list + pairs, at = 0;
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
}
static void test_moe_lists(int experts, int pairs) {
    size_t count = (size_t)(2 * experts + 1 + 2 * pairs);
    int32_t *index, *got, *want, *bad;
    check_case("moe_lists experts %d pairs %d", experts, pairs);
    index = (int32_t *)take((size_t)pairs * sizeof *index);
    got = (int32_t *)take(count * sizeof *got);
    want = (int32_t *)take(count * sizeof *want);
    bad = (int32_t *)take(count * sizeof *bad);
    for (int i = 0; i < pairs; i++) index[i] = i < 2 ? experts - 1 : below(experts) / 2 * 2; /* every second expert stays empty */
    moe_reference(want, index, experts, pairs, 0);
    moe_reference(bad, index, experts, pairs, 1);
    kernels->moe_lists(&queue, got, got + experts, got + 2 * experts + 1, got + 2 * experts + 1 + pairs, index, experts, pairs);
    verdict_ints(got, want, bad, count);
    release_all();
}

static void test_gather(int tokens, int k, int row_bytes) {
    int rows = tokens * k;
    unsigned char *x, *y, *want, *bad;
    int32_t *list;
    check_case("gather tokens %d top_k %d row bytes %d", tokens, k, row_bytes);
    x = (unsigned char *)take((size_t)tokens * (size_t)row_bytes);
    y = (unsigned char *)take((size_t)rows * (size_t)row_bytes);
    want = (unsigned char *)take((size_t)rows * (size_t)row_bytes);
    bad = (unsigned char *)take((size_t)rows * (size_t)row_bytes);
    list = (int32_t *)take((size_t)rows * sizeof *list);
    for (size_t i = 0; i < (size_t)tokens * (size_t)row_bytes; i++) x[i] = (unsigned char)below(256);
    for (int r = 0; r < rows; r++) {
        list[r] = (int32_t)((r * 7 + 3) % rows);
        memcpy(want + (size_t)r * (size_t)row_bytes, x + (size_t)(list[r] / k) * (size_t)row_bytes, (size_t)row_bytes);
        memcpy(bad + (size_t)r * (size_t)row_bytes, x + (size_t)(list[r] % tokens) * (size_t)row_bytes, (size_t)row_bytes); /* slot-major pairs */
    }
    kernels->gather(&queue, y, x, list, rows, k, row_bytes);
    CHECK(memcmp(y, want, (size_t)rows * (size_t)row_bytes) == 0);
    CHECK(memcmp(y, bad, (size_t)rows * (size_t)row_bytes) != 0);
    release_all();
}

static void test_combine(int rows, int k, int d) {
    expected e;
    float *x, *expert_rows, *weight;
    int32_t *slot_row;
    int pairs = rows * k;
    check_case("combine rows %d top_k %d d %d", rows, k, d);
    e = expect_new((size_t)rows, (size_t)d);
    x = floats((size_t)rows * (size_t)d, 1.0f);
    expert_rows = floats((size_t)pairs * (size_t)d, 1.0f);
    weight = floats((size_t)pairs, 1.0f);
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
            expect(&e, (size_t)(r * d + i), sum, sum - last, size, k + 1, 1); /* damaged: the last slot is left out */
        }
    kernels->combine(&queue, x, expert_rows, slot_row, weight, rows, k, d);
    verdict(x, (size_t)d, 1, &e);
    release_all();
}

static void test_argmax(int rows, int n) {
    float *x;
    int32_t *got, *want, *bad;
    check_case("argmax rows %d n %d", rows, n);
    x = floats((size_t)rows * (size_t)n, 5.0f);
    got = (int32_t *)take((size_t)rows * sizeof *got);
    want = (int32_t *)take((size_t)rows * sizeof *want);
    bad = (int32_t *)take((size_t)rows * sizeof *bad);
    for (int r = 0; r < rows; r++) {
        float *xr = x + (size_t)r * (size_t)n;
        if (r == 0) for (int i = 0; i < n; i++) xr[i] = -INFINITY; /* a row of equal values: the first wins */
        else { xr[below(n)] = 7.0f; xr[below(n)] = 7.0f; xr[n - 1] = r % 2 ? 7.0f : -INFINITY; }
        want[r] = bad[r] = 0;
        for (int i = 0; i < n; i++) {
            if (xr[i] > xr[want[r]]) want[r] = i;
            if (xr[i] >= xr[bad[r]]) bad[r] = i; /* damaged: the last of equal values */
        }
    }
    kernels->argmax(&queue, got, x, rows, n);
    verdict_ints(got, want, bad, (size_t)rows);
    release_all();
}
/* NaN never wins against a number, and even a row of nothing else gives an index that can be looked up */
static void test_argmax_nan(void) {
    float x[3][40];
    int32_t got[3] = { -1, -1, -1 };
    check_case("argmax of NaN");
    for (int i = 0; i < 40; i++) { x[0][i] = NAN; x[1][i] = i == 17 ? -3.0f : NAN; x[2][i] = (float)i; }
    x[2][39] = NAN;
    kernels->argmax(&queue, got, x[0], 3, 40);
    CHECK(got[0] >= 0 && got[0] < 40);
    CHECK_INT(got[1], 17);
    CHECK_INT(got[2], 38);
}

static void test_shared_kernels(void) {
    static const int widths[4] = { 2, 31, 64, 577 };
    static const int heads[5][2] = { { 2, 16 }, { 3, 32 }, { 2, 64 }, { 2, 128 }, { 1, 40 } };
    test_exp();
    for (int wide = 0; wide < 2; wide++)
        for (int r = 0; r < 3; r++)
            for (int w = 0; w < 4; w++) {
                int rows = row_counts[r], d = widths[w], ld = (int)padded((size_t)d) + (w == 1 ? 7 : 0);
                test_rmsnorm(rows, d, ld, wide);
                test_layernorm(rows, d, ld, wide);
                test_convert(rows, d, ld, wide);
                test_silu_mul(rows, d, ld, wide);
                test_embed(rows, d, wide);
            }
    for (int r = 0; r < 3; r++)
        for (int w = 0; w < 4; w++) {
            test_vit_embed(row_counts[r] + 1, widths[w]);
            test_scatter_add(row_counts[r], widths[w]);
            test_combine(row_counts[r], 1 + w, widths[w]);
            test_argmax(row_counts[r] + 1, widths[w] * 10);
        }
    test_argmax(2, 50304);
    test_argmax_nan();
    for (int wide = 0; wide < 2; wide++) {
        for (int dead = 0; dead < 2; dead++) {
            test_pool_windows(4, 2, 2, 33, dead, wide);
            test_pool_windows(6, 3, 1, 8, dead, wide);
            test_pool_windows(24, 2, 2, 64, dead, wide);
        }
        test_pool_attention(1, 4, 1, 16, wide);
        test_pool_attention(7, 4, 16, 64, wide);
        test_pool_attention(144, 9, 3, 40, wide);
        for (int h = 0; h < 5; h++) {
            test_qk_norm_rope(1, heads[h][0], heads[h][1], 0, wide);
            test_qk_norm_rope(3, heads[h][0], heads[h][1], 5, wide);
            test_qk_norm_rope(100, heads[h][0], heads[h][1], 1, wide);
            test_attention_decode(1, heads[h][0], heads[h][1], wide);
            test_attention_decode(5, heads[h][0], heads[h][1], wide);
            test_attention_decode(577, heads[h][0], heads[h][1], wide);
        }
    }
    for (int r = 0; r < 3; r++) {
        test_router(row_counts[r], 2, 1);
        test_router(row_counts[r], 8, 2);
        test_router(row_counts[r], 8, 8);
        test_router(row_counts[r], 64, 8);
        test_router(row_counts[r], 1000, 12);
    }
    test_moe_lists(1, 2);
    test_moe_lists(8, 7);
    test_moe_lists(64, 300);
    test_moe_lists(64, 16384);
    test_gather(5, 3, 64);
    test_gather(2, 3, 4);
    test_gather(200, 8, 1024);
}

/* -------------------------------------------------------------------------------------------------------------------- gemm */
static vk_tile tile_of(const vk_gemm_kernel *kernel, int wide) { return wide ? kernel->tile_wide : kernel->tile; }
/* a CPU whose linears all go through one kernel; f32 layers of bf16 mode through plain C where the kernel has no f32 tile */
static vk_cpu cpu_with(const vk_gemm_kernel *kernel, int wide, int threads) {
    vk_cpu cpu;
    memset(&cpu, 0, sizeof cpu);
    cpu.queue.threads = threads;
    cpu.wide = wide;
    for (int s = 0; s < VK_SHAPES; s++) {
        cpu.gemm[0][s] = kernel;
        cpu.gemm[1][s] = kernel->tile_wide ? kernel : &vk_gemm_kernels[VK_GEMM_KERNELS - 1];
    }
    cpu.begin = kernel->begin;
    cpu.end = kernel->end;
    return cpu;
}
/* the panel layout as its comment in vlmprof_kernels.cu states it */
static size_t panel_index(size_t row, size_t column, size_t k_padded, int wide) {
    size_t panel = row / VK_PAD * VK_PAD * k_padded, c = row % VK_PAD;
    return wide ? panel + column * VK_PAD + c : panel + (column / 2 * VK_PAD + c) * 2 + (column & 1);
}
/* sums of products of x [rows, ldx] and w [n, k] in `e`, ready for `finish` to turn them into results; damaged: the last product is missing */
static void expect_products(expected *e, const void *x, size_t ldx, const void *w, size_t k, int wide) {
    for (size_t r = 0; r < e->rows; r++)
        for (size_t c = 0; c < e->cols; c++) {
            double sum = 0.0, squares = 0.0, last = 0.0;
            for (size_t i = 0; i < k; i++) {
                last = get(x, r * ldx + i, wide) * get(w, c * k + i, wide);
                sum += last;
                squares += last * last;
            }
            expect(e, r * e->cols + c, sum, sum - last, sqrt(squares), (double)k + 2, 1);
        }
}

/* one tile: 1..32 rows; rows behind `rows` and columns behind k are NaN and must not matter */
static void test_tile(const vk_gemm_kernel *kernel, size_t k, int wide) {
    size_t ldx = k + VK_PAD, element = wide ? 4 : 2;
    expected e;
    void *x, *spoiled, *w, *panel;
    float *t;
    check_case("tile %s k %zu wide %d", kernel->name, k, wide);
    e = expect_new(VK_ROWS_MAX, VK_PAD);
    x = matrix(VK_ROWS_MAX, 0, k, ldx, NAN, wide);
    spoiled = matrix(VK_ROWS_MAX, 0, k, ldx, NAN, wide);
    w = matrix(VK_PAD, 0, k, k, 0.0f, wide);
    panel = take(VK_PAD * k * element);
    t = (float *)take(VK_ROWS_MAX * VK_PAD * sizeof *t);
    for (size_t r = 0; r < VK_PAD; r++)
        for (size_t c = 0; c < k; c++) memcpy((char *)panel + panel_index(r, c, k, wide) * element, (char *)w + (r * k + c) * element, element);
    expect_products(&e, x, ldx, w, k, wide);
    if (kernel->begin) kernel->begin();
    for (int rows = 1; rows <= VK_ROWS_MAX; rows++) {
        poison(spoiled, VK_ROWS_MAX * ldx * element);
        memcpy(spoiled, x, (size_t)rows * ldx * element);
        poison(t, VK_ROWS_MAX * VK_PAD * sizeof *t);
        tile_of(kernel, wide)(t, spoiled, ldx, panel, k, rows);
        e.rows = (size_t)rows;
        verdict(t, VK_PAD, 1, &e);
    }
    if (kernel->end) kernel->end();
    release_all();
}

/* ---- a checkpoint of our own: pairs of tensors <n>x<k>.first and .second that lie over each other in one linear layer */
enum { SHAPES = 4 };
static const struct { int n, k, first_rows; vp_dtype first, second; } shapes[SHAPES] = {
    { 1, 32, 1, VP_DTYPE_F32, VP_DTYPE_F32 }, { 40, 24, 8, VP_DTYPE_F16, VP_DTYPE_BF16 }, /* the second tensor begins inside a panel */
    { 100, 100, 40, VP_DTYPE_F32, VP_DTYPE_BF16 }, { 160, 1000, 152, VP_DTYPE_BF16, VP_DTYPE_F32 } };
static float *shape_values[SHAPES]; /* [n, k]: what the file holds, exactly */
static char folder[300];
static vp_checkpoint *own_checkpoint;

static size_t type_bytes(vp_dtype type) { return type == VP_DTYPE_F32 ? 4 : 2; }
/* a value that the type holds exactly, and its bytes; f16 are multiples of 2^-10 below 1 */
static float draw_value(vp_dtype type, unsigned char *out) {
    float v = uniform();
    uint16_t u = vp_f32_to_bf16(v);
    uint32_t bits;
    if (type == VP_DTYPE_F32) { memcpy(out, &v, 4); return v; }
    if (type == VP_DTYPE_F16) {
        v = ldexpf(1024.0f + (float)below(1024), -11); /* 0.5 <= v < 1: exponent 14, the mantissa are the low ten bits */
        memcpy(&bits, &v, 4);
        u = (uint16_t)(14u << 10 | (bits >> 13 & 1023u));
    } else v = vp_bf16_to_f32(u);
    memcpy(out, &u, 2);
    return v;
}
static int write_checkpoint(void) {
    static const char *const names[3] = { "F32", "BF16", "F16" };
    char header[2048] = "{", path[400];
    unsigned char length[8] = { 0 }, value[4];
    const char *base = getenv("TMPDIR");
    size_t at = 1, offset = 0;
    FILE *f;
    snprintf(folder, sizeof folder, "%s/vlmprof-kernels-XXXXXX", base && strlen(base) < 200 ? base : "/tmp");
    if (!mkdtemp(folder)) return 0;
    for (int s = 0; s < SHAPES; s++)
        for (int part = 0; part < 2; part++) {
            vp_dtype type = part ? shapes[s].second : shapes[s].first;
            size_t rows = (size_t)(part ? shapes[s].n - shapes[s].first_rows : shapes[s].first_rows);
            size_t bytes = rows * (size_t)shapes[s].k * type_bytes(type);
            if (!rows) continue;
            at += (size_t)snprintf(header + at, sizeof header - at, "%s\"%dx%d.%s\":{\"dtype\":\"%s\",\"shape\":[%zu,%d],\"data_offsets\":[%zu,%zu]}",
                                   s || part ? "," : "", shapes[s].n, shapes[s].k, part ? "second" : "first", names[type], rows, shapes[s].k, offset,
                                   offset + bytes);
            offset += bytes;
        }
    header[at++] = '}';
    while (at % 8) header[at++] = ' ';
    length[0] = (unsigned char)at;
    length[1] = (unsigned char)(at >> 8);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    f = fopen(path, "wb");
    if (!f) return 0;
    fwrite(length, 1, 8, f);
    fwrite(header, 1, at, f);
    for (int s = 0; s < SHAPES; s++) {
        size_t count = (size_t)shapes[s].n * (size_t)shapes[s].k;
        shape_values[s] = (float *)malloc(count * sizeof(float));
        for (size_t i = 0; i < count; i++) {
            vp_dtype type = (int)(i / (size_t)shapes[s].k) < shapes[s].first_rows ? shapes[s].first : shapes[s].second;
            shape_values[s][i] = draw_value(type, value);
            fwrite(value, 1, type_bytes(type), f);
        }
    }
    return fclose(f) == 0;
}
static void remove_checkpoint(void) {
    char path[400];
    vp_checkpoint_close(own_checkpoint);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    remove(path);
    rmdir(folder);
    for (int s = 0; s < SHAPES; s++) free(shape_values[s]);
}

/* one packed layer of shapes[s]; `values`: its weights as in-type [n, k] */
typedef struct layer { vk_linear linear; void *values; } layer;
static layer load_layer(int s, int has_bias, int wide) {
    layer l;
    vk_loader loader;
    vp_error error;
    char name[64];
    size_t n = (size_t)shapes[s].n, k = (size_t)shapes[s].k;
    memset(&loader, 0, sizeof loader);
    loader.checkpoint = own_checkpoint; loader.wide = wide; loader.threads = 2; loader.error = &error;
    l.linear.n = shapes[s].n; l.linear.k = shapes[s].k; l.linear.k_padded = (int)padded(k); l.linear.wide = wide;
    l.linear.panels = take(padded(n) * padded(k) * (wide ? 4 : 2)); /* rows behind n stay NaN: they may not reach a result */
    l.linear.bias = has_bias ? floats(n, 1.0f) : NULL;
    snprintf(name, sizeof name, "%dx%d.first", shapes[s].n, shapes[s].k);
    vk_load_linear_rows(&loader, name, &l.linear, 0, shapes[s].first_rows);
    snprintf(name, sizeof name, "%dx%d.second", shapes[s].n, shapes[s].k);
    if (shapes[s].n > shapes[s].first_rows) vk_load_linear_rows(&loader, name, &l.linear, shapes[s].first_rows, shapes[s].n - shapes[s].first_rows);
    CHECK_INT(loader.result, VP_OK);
    CHECK_INT(loader.done, n * padded(k) * (wide ? 4 : 2));
    l.values = take(n * k * (wide ? 4 : 2));
    for (size_t i = 0; i < n * k; i++) put(l.values, i, shape_values[s][i], wide);
    return l;
}

static void test_packing(int s, int wide) {
    layer l;
    size_t wrong = 0, k_padded = padded((size_t)shapes[s].k);
    check_case("packing %dx%d wide %d", shapes[s].n, shapes[s].k, wide);
    l = load_layer(s, 0, wide);
    for (size_t r = 0; r < (size_t)shapes[s].n; r++)
        for (size_t c = 0; c < k_padded; c++) {
            double want = c < (size_t)shapes[s].k ? get(l.values, r * (size_t)shapes[s].k + c, wide) : 0.0;
            wrong += !(get(l.linear.panels, panel_index(r, c, k_padded, wide), wide) == want);
        }
    CHECK_INT(wrong, 0);
    release_all();
}
static void test_packing_errors(void) {
    static unsigned char panels[VK_PAD * VK_PAD * 4];
    vk_loader loader;
    vk_linear linear;
    vp_error error;
    check_case("packing: a missing tensor, a tensor of another shape");
    memset(&loader, 0, sizeof loader);
    memset(&linear, 0, sizeof linear);
    poison(panels, sizeof panels);
    loader.checkpoint = own_checkpoint; loader.threads = 1; loader.error = &error;
    linear.panels = panels; linear.n = 2; linear.k = 24; linear.k_padded = VK_PAD;
    vk_load_linear_rows(&loader, "no.such.tensor", &linear, 0, 2);
    CHECK_INT(loader.result, VP_ERR_NOT_FOUND);
    CHECK_TEXT(error.where, "no.such.tensor");
    loader.result = VP_OK;
    vk_load_linear_rows(&loader, "40x24.first", &linear, 0, 2);
    CHECK_INT(loader.result, VP_ERR_MISMATCH);
    CHECK_TEXT(error.where, "40x24.first");
    vk_load_linear_rows(&loader, "40x24.first", &linear, 0, 8); /* the first failure sticks */
    CHECK_INT(loader.result, VP_ERR_MISMATCH);
    CHECK(is_poison(panels, sizeof panels));
}
/* synthetic weights: the same number for a row and column whatever the in-type, uniform, scaled by fan-in, different by name and seed */
static void test_synthetic(void) {
    enum { ROWS = 64, K = 200 };
    vk_loader loader;
    vk_linear linear;
    vp_error error;
    float *other;
    double squares = 0.0, sum = 0.0, difference = 0.0;
    uint16_t *narrow;
    check_case("synthetic weights");
    memset(&loader, 0, sizeof loader);
    memset(&linear, 0, sizeof linear);
    loader.threads = 2; loader.seed = 42; loader.error = &error;
    linear.n = ROWS; linear.k = K; linear.k_padded = (int)padded(K);
    linear.panels = narrow = (uint16_t *)take(ROWS * padded(K) * 2);
    vk_load_linear_rows(&loader, "a.weight", &linear, 0, ROWS);
    linear.wide = 1;
    linear.panels = take(ROWS * padded(K) * 4);
    vk_load_linear_rows(&loader, "a.weight", &linear, 0, ROWS);
    other = (float *)take(ROWS * K * 4);
    loader.seed = 43;
    vk_load_rows(&loader, "a.weight", other, ROWS, K, 1);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < padded(K); c++) {
            double v = get(linear.panels, panel_index(r, c, padded(K), 1), 1);
            CHECK(narrow[panel_index(r, c, padded(K), 0)] == vp_f32_to_bf16((float)v));
            CHECK(c < K ? fabs(v) <= sqrt(3.0 / K) * (1.0 + 1e-6) : v == 0.0);
            sum += v;
            squares += v * v;
            if (c < K) difference += fabs(v - (double)other[r * K + c]);
        }
    CHECK_NEAR(sum / (ROWS * K), 0, SAFETY / sqrt((double)ROWS * K * K));               /* standard error of the mean */
    CHECK_NEAR(squares / ROWS, 1, SAFETY * sqrt(0.8 / (ROWS * K)));                       /* variance 1 / k; of its estimate 0.8 / count */
    CHECK_NEAR(difference / (ROWS * K) * sqrt(K / 3.0), 2.0 / 3.0, SAFETY * 0.5 / sqrt((double)ROWS * K)); /* of independent uniform numbers */
    release_all();
}

/* what the epilogue makes of sums; y_before: what ADD adds to */
static void finish(expected *out, const expected *sums, const float *bias, const float *y_before, vk_epilogue epilogue, int wide) {
    for (size_t i = 0; i < out->rows * out->cols; i++) {
        double add = bias ? (double)bias[i % out->cols] : 0.0, v[2], slack = sums->tolerance[i];
        v[0] = sums->want[i] + add;
        v[1] = sums->bad[i] + add;
        if (epilogue == VK_QUICKGELU) for (int j = 0; j < 2; j++) v[j] = v[j] / (1.0 + exp(-1.702 * v[j]));
        if (epilogue == VK_ADD_F32) for (int j = 0; j < 2; j++) v[j] += (double)y_before[i];
        expect(out, i, v[0], v[1], fabs(v[0]) + fabs(add), 8, wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32);
        out->tolerance[i] += slack * 1.2; /* QuickGELU's slope is below 1.2 */
    }
}
/* one layer, one row count, every kernel and epilogue; all kernels must agree */
static void test_linear(int s, int m, int wide) {
    static const char *const names[4] = { "store", "f32", "quickgelu", "add" };
    size_t n = (size_t)shapes[s].n, ldx = padded((size_t)shapes[s].k), ldy = n + 3, element = wide ? 4 : 2;
    for (int has_bias = 0; has_bias < 2; has_bias++) {
        layer l;
        expected sums, e;
        void *x;
        float *before;
        check_case("linear %dx%d m %d bias %d wide %d", shapes[s].n, shapes[s].k, m, has_bias, wide);
        l = load_layer(s, has_bias, wide);
        x = matrix((size_t)m, VK_ROWS_MAX, (size_t)shapes[s].k, ldx, 0.0f, wide);
        poison((char *)x + (size_t)m * ldx * element, VK_ROWS_MAX * ldx * element); /* the spare rows may be read, not used */
        sums = expect_new((size_t)m, n);
        e = expect_new((size_t)m, n);
        before = floats((size_t)m * n, 1.0f);
        expect_products(&sums, x, ldx, l.values, (size_t)shapes[s].k, wide);
        for (int i = 0; i < VK_GEMM_KERNELS * 4; i++) {
            const vk_gemm_kernel *kernel = &vk_gemm_kernels[i / 4];
            vk_epilogue epilogue = (vk_epilogue)(i % 4);
            int f32 = wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, failed = check_state.case_failed;
            vk_cpu cpu = cpu_with(kernel, wide, 2);
            void *y;
            if (!vk_gemm_usable(kernel, wide)) continue;
            y = take((size_t)m * ldy * (f32 ? 4 : 2));
            for (size_t r = 0; epilogue == VK_ADD_F32 && r < (size_t)m; r++) memcpy((float *)y + r * ldy, before + r * n, n * sizeof(float));
            finish(&e, &sums, l.linear.bias, before, epilogue, wide);
            vk_linear_run(&cpu, y, (int)ldy, x, (int)ldx, m, &l.linear, epilogue);
            verdict(y, ldy, f32, &e);
            if (check_state.case_failed != failed) printf("  with kernel %s, epilogue %s\n", kernel->name, names[i % 4]);
        }
        release_all();
    }
}
/* the router of bf16 mode: an f32 layer on a CPU in bf16 mode */
static void test_mixed_linear(int m) {
    size_t n = (size_t)shapes[2].n, ldx = padded((size_t)shapes[2].k);
    layer l;
    expected sums;
    void *x;
    check_case("f32 layer in bf16 mode m %d", m);
    l = load_layer(2, 0, 1);
    x = matrix((size_t)m, VK_ROWS_MAX, (size_t)shapes[2].k, ldx, 0.0f, 1);
    sums = expect_new((size_t)m, n);
    expect_products(&sums, x, ldx, l.values, (size_t)shapes[2].k, 1);
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        vk_cpu cpu = cpu_with(&vk_gemm_kernels[i], 0, 2);
        float *y;
        if (!vk_gemm_usable(&vk_gemm_kernels[i], 0)) continue;
        y = (float *)take((size_t)m * n * sizeof *y);
        vk_linear_run(&cpu, y, (int)n, x, (int)ldx, m, &l.linear, VK_STORE_F32);
        verdict(y, n, 1, &sums);
    }
    release_all();
}
/* a list of jobs as the experts make it: most are empty, first and last included; damaged: every row through the neighbour's weights */
static void test_jobs(const vk_gemm_kernel *kernel, int wide, int threads) {
    enum { JOBS = 9 };
    static const int rows[JOBS] = { 0, 3, 0, 0, 40, 1, 200, 0, 0 };
    size_t n = (size_t)shapes[3].n, k = (size_t)shapes[3].k, ldx = padded(k), element = wide ? 4 : 2, at = 0, total = 244;
    layer l[2];
    expected e, other;
    vk_gemm_job jobs[JOBS];
    int64_t *first_task;
    vk_cpu cpu = cpu_with(kernel, wide, threads);
    char *x;
    float *y;
    check_case("jobs %s wide %d threads %d", kernel->name, wide, threads);
    first_task = (int64_t *)take((JOBS + 1) * sizeof *first_task);
    l[0] = load_layer(3, 0, wide);
    l[1] = load_layer(3, 1, wide);
    for (size_t i = 0; i < n * k; i++) { /* other weights: the same numbers backwards */
        float v_back = (float)get(l[0].values, n * k - 1 - i, wide);
        put(l[1].values, i, v_back, wide);
        put(l[1].linear.panels, panel_index(i / k, i % k, ldx, wide), v_back, wide);
    }
    x = (char *)matrix(total, VK_ROWS_MAX, k, ldx, 0.0f, wide);
    y = (float *)take(total * n * sizeof *y);
    e = expect_new(total, n);
    other = expect_new(total, n);
    memset(jobs, 0, sizeof jobs);
    for (int j = 0; j < JOBS; j++) {
        expected part = e, part_other = other;
        part.want += at * n; part.bad += at * n; part.tolerance += at * n;
        part_other.want += at * n; part_other.bad += at * n; part_other.tolerance += at * n;
        part.rows = part_other.rows = (size_t)rows[j];
        expect_products(&part, x + at * ldx * element, ldx, l[j & 1].values, k, wide);
        expect_products(&part_other, x + at * ldx * element, ldx, l[~j & 1].values, k, wide);
        for (size_t i = 0; i < (size_t)rows[j] * n; i++) {
            if (j & 1) part.want[i] += (double)l[1].linear.bias[i % n];
            part.bad[i] = part_other.want[i];
        }
        jobs[j].y = y + at * n; jobs[j].ldy = (int)n;
        jobs[j].x = x + at * ldx * element; jobs[j].ldx = (int)ldx;
        jobs[j].w = &l[j & 1].linear; jobs[j].m = rows[j];
        at += (size_t)rows[j];
    }
    CHECK_INT(at, total);
    vk_gemm_run(&cpu, jobs, JOBS, first_task, VK_STORE_F32);
    verdict(y, n, 1, &e);
    for (int j = 0; j < JOBS; j++) jobs[j].m = 0;
    poison(y, total * n * sizeof *y);
    vk_gemm_run(&cpu, jobs, JOBS, first_task, VK_STORE_F32); /* nothing to do is fine */
    CHECK(is_poison(y, total * n * sizeof *y));
    release_all();
}
/* the choice: a name forces the kernel of the mode's arithmetic, an unknown one or one without that arithmetic is refused */
static void test_choice(void) {
    vk_cpu cpu;
    vp_error error;
    check_case("gemm choice");
    for (int wide = 0; wide < 2; wide++) {
        memset(&cpu, 0, sizeof cpu);
        cpu.wide = wide;
        CHECK_INT(vk_gemm_choose(&cpu, NULL, &error), VP_OK);
        for (int s = 0; s < VK_SHAPES; s++) {
            CHECK(cpu.gemm[1][s] && cpu.gemm[1][s]->tile_wide);
            CHECK(wide || (cpu.gemm[0][s] && cpu.gemm[0][s]->tile));
        }
        for (int i = 0; i < VK_GEMM_KERNELS; i++) {
            const vk_gemm_kernel *kernel = &vk_gemm_kernels[i];
            memset(&cpu, 0, sizeof cpu);
            cpu.wide = wide;
            CHECK_INT(vk_gemm_choose(&cpu, kernel->name, &error), vk_gemm_usable(kernel, wide) ? VP_OK : VP_ERR_RANGE);
            for (int s = 0; s < VK_SHAPES && vk_gemm_usable(kernel, wide); s++) CHECK(cpu.gemm[wide][s] == kernel);
            if (vk_gemm_usable(kernel, wide)) CHECK(cpu.begin == kernel->begin && cpu.end == kernel->end);
        }
    }
    memset(&cpu, 0, sizeof cpu);
    CHECK_INT(vk_gemm_choose(&cpu, "no such kernel", &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "no such kernel");
}

static void test_gemm(void) {
    static const size_t lengths[] = { 32, 64, 96, 128, 224, 480, 1024, 1056 };
    static const int rows[] = { 1, 3, 31, 32, 33, 129, 577 };
    test_choice();
    for (int i = 0; i < VK_GEMM_KERNELS * 2; i++) {
        const vk_gemm_kernel *kernel = &vk_gemm_kernels[i / 2];
        char what[64];
        snprintf(what, sizeof what, "GEMM kernel %s", kernel->name);
        if (!kernel->present()) { if (!(i & 1)) check_skip(what, "this processor has no such unit"); continue; }
        for (size_t k = 0; tile_of(kernel, i & 1) && k < sizeof lengths / sizeof lengths[0]; k++) test_tile(kernel, lengths[k], i & 1);
    }
    check_case("a checkpoint of our own");
    if (!CHECK(write_checkpoint()) || !CHECK_INT(vp_checkpoint_open(folder, NULL, &own_checkpoint, NULL), VP_OK)) return;
    for (int s = 0; s < SHAPES; s++)
        for (int wide = 0; wide < 2; wide++) test_packing(s, wide);
    test_packing_errors();
    test_synthetic();
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            for (int wide = 0; wide < 2; wide++) test_linear(s, rows[i], wide);
    test_mixed_linear(1);
    test_mixed_linear(33);
    for (int i = 0; i < VK_GEMM_KERNELS * 4; i++)
        if (vk_gemm_usable(&vk_gemm_kernels[i / 4], i & 1)) test_jobs(&vk_gemm_kernels[i / 4], i & 1, 1 + (i >> 1 & 1));
    remove_checkpoint();
}

/* --------------------------------------------------------------------------------------------------------------- attention */
/* every kernel of the in-type; then one query against the same keys (decode) must give the last row of all of them */
static void test_attention(int tokens, int heads, int head_dim, int causal, int wide) {
    size_t t = (size_t)tokens, d = (size_t)(heads * head_dim), ld = padded(d) + VK_PAD, element = wide ? 4 : 2, keys = padded(t);
    size_t panels = vk_attention_panel_elements(tokens, heads, head_dim);
    expected e, last;
    void *q, *k, *v, *y, *decoded;
    vk_attention_job job;
    check_case("attention tokens %d heads %d of %d causal %d wide %d", tokens, heads, head_dim, causal, wide);
    e = expect_new(t, d);
    last = expect_new(1, d);
    /* q is read up to the next multiple of 32 columns: those must be finite, which zeros of the packed keys then cancel */
    q = matrix(t, VK_ROWS_MAX, d, ld, head_dim % VK_PAD ? 0.0f : NAN, wide);
    k = matrix(t, 0, d, d, 0.0f, wide);
    v = matrix(t, 0, d, d, 0.0f, wide);
    y = take(t * ld * element);
    decoded = take(d * element);
    for (size_t i = 0; i < t * d; i++) put(k, i, 3.0f * (float)get(k, i, wide), wide); /* scores that differ by several units */
    /* the last query likes the last key, so that forgetting it shows */
    for (size_t i = 0; i < d; i++) put(k, (t - 1) * d + i, 2.0f * (float)get(q, (t - 1) * ld + i, wide), wide);
    for (size_t r = 0; r < t; r++)
        for (size_t h = 0; h < (size_t)heads; h++)
            expect_attention(&e, r * d + h * (size_t)head_dim, q, r * ld + h * (size_t)head_dim, k, v, d, h * (size_t)head_dim,
                             causal ? (int)r + 1 : tokens, head_dim, !wide, wide);
    memset(&job, 0, sizeof job);
    job.y = y; job.ldy = (int)ld; job.q = q; job.ldq = (int)ld; job.k = k; job.v = v; job.ldk = (int)d;
    job.tokens = tokens; job.heads = heads; job.head_dim = head_dim; job.causal = causal;
    job.k_panels = take(panels * element); job.v_panels = take(panels * element);
    job.scores = (float *)take(2 * VK_ROWS_MAX * keys * sizeof(float));
    job.weights = take(2 * VK_ROWS_MAX * keys * element);
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        vk_cpu cpu = cpu_with(&vk_gemm_kernels[i], wide, 2);
        int failed = check_state.case_failed;
        if (!vk_gemm_usable(&vk_gemm_kernels[i], wide)) continue;
        poison(y, t * ld * element);
        poison(job.k_panels, panels * element); /* nothing stale may be used */
        poison(job.v_panels, panels * element);
        poison(job.scores, 2 * VK_ROWS_MAX * keys * sizeof(float));
        poison(job.weights, 2 * VK_ROWS_MAX * keys * element);
        vk_attention_run(&cpu, &job);
        verdict(y, ld, wide, &e);
        if (check_state.case_failed != failed) printf("  with kernel %s\n", vk_gemm_kernels[i].name);
        kernels->attention_decode(&queue, decoded, (char *)q + (t - 1) * ld * element, k, v, job.scores, tokens, (int)keys, (int)d, head_dim, wide);
        for (size_t c = 0; c < d; c++) {
            size_t at = (t - 1) * d + c;
            last.want[c] = get(y, (t - 1) * ld + c, wide);
            last.bad[c] = e.bad[at];
            last.tolerance[c] = 2.0 * e.tolerance[at]; /* both have their own rounding */
        }
        verdict(decoded, d, wide, &last);
    }
    release_all();
}
static void test_attentions(void) {
    static const int widths[4] = { 16, 32, 64, 128 }, counts[4] = { 1, 5, 33, 577 };
    for (int w = 0; w < 4; w++)
        for (int c = 0; c < 4; c++)
            for (int mode = 0; mode < 4; mode++) test_attention(counts[c], counts[c] > 100 ? 1 : 3, widths[w], mode & 1, mode >> 1);
}

/* ------------------------------------------------------------------------------- single modules of the reference implementation */
static int load_component(const char *module, const char *file, check_array *a) {
    char relative[128];
    const char *path;
    snprintf(relative, sizeof relative, "components/%s/%s.npy", module, file);
    path = check_golden(relative);
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
/* rows from..to-1 of `width`: within `limit` of each row's largest value. Damaged: the golden moved by one column. */
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
            if (!(error <= most)) most = error; /* NaN sticks */
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
    float x[4 * 96], w[96], b[96], y[4 * 96];
    uint16_t narrow[4 * 64];
    check_case("component rmsnorm");
    copy_component("rmsnorm", "x", x, 4 * 64);
    copy_component("rmsnorm", "weight", w, 64);
    kernels->rmsnorm(&queue, y, x, w, 4, 64, 64, 1e-5f, 1);
    compare_component("rmsnorm", "y", y, 64, 64, 1e-6);
    /* a bf16 residual: the reference rounds the normalised value to bf16 before the weight, this engine keeps fp32 and rounds the product
     * to bf16, so both may differ by one rounding each: 2 * 2^-8 of a value */
    copy_component("rmsnorm", "x_bf16", x, 4 * 64);
    kernels->rmsnorm(&queue, narrow, x, w, 4, 64, 64, 1e-5f, 0);
    for (int i = 0; i < 4 * 64; i++) y[i] = vp_bf16_to_f32(narrow[i]);
    compare_component("rmsnorm", "y_from_bf16", y, 64, 64, 2 * bf16_unit);
    check_case("component layernorm");
    copy_component("layernorm", "x", x, 3 * 96);
    copy_component("layernorm", "weight", w, 96);
    copy_component("layernorm", "bias", b, 96);
    kernels->layernorm(&queue, y, x, w, b, 3, 96, 96, 1e-5f, 1);
    compare_rows("layernorm", "y", y, 96, 96, 0, 2, 1e-6);
    /* the last row has a mean of 50 and a spread of 1.1: rounding such a mean to fp32 moves a result by unit * 50 / 1.1 times a weight near 1
     * (the row's largest value is 2.75), once in the reference and once here */
    compare_rows("layernorm", "y", y, 96, 96, 2, 3, 1e-6 + 2 * unit * 50 / 1.1 / 2.75 * 1.2);
}
/* through the epilogue of a linear layer whose weight is the identity */
static void component_quickgelu(void) {
    enum { N = 64 };
    vk_linear identity;
    float *x, *y;
    check_case("component quickgelu");
    memset(&identity, 0, sizeof identity);
    identity.n = identity.k = identity.k_padded = N;
    identity.wide = 1;
    identity.panels = memset(take(N * N * sizeof(float)), 0, N * N * sizeof(float));
    for (size_t i = 0; i < N; i++) put(identity.panels, panel_index(i, i, N, 1), 1.0f, 1);
    x = (float *)take((1 + VK_ROWS_MAX) * N * sizeof *x);
    y = (float *)take(N * sizeof *y);
    copy_component("quickgelu", "x", x, N);
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        vk_cpu cpu = cpu_with(&vk_gemm_kernels[i], 1, 1);
        if (!vk_gemm_usable(&vk_gemm_kernels[i], 1)) continue;
        vk_linear_run(&cpu, y, N, x, N, 1, &identity, VK_QUICKGELU);
        compare_component("quickgelu", "y", y, N, N, 1e-6);
    }
    release_all();
}
/* tables at the recorded positions, then the rotation. The kernel normalises first: a weight of the row's own root mean square undoes that. */
static void component_rope(const char *module, int head_dim) {
    enum { HEADS = 2, POSITIONS = 4 };
    size_t half = (size_t)head_dim / 2, d = HEADS * (size_t)head_dim;
    float in[2][HEADS * POSITIONS * 128], out[2][HEADS * POSITIONS * 128], *table, *key, *value, tables[2][POSITIONS * 64];
    check_array positions;
    int32_t at[POSITIONS], most = 0;
    check_case("component %s", module);
    if (!load_component(module, "positions", &positions)) return;
    for (int p = 0; p < POSITIONS; p++) { at[p] = (int32_t)check_at(&positions, p); if (at[p] > most) most = at[p]; }
    check_free(&positions);
    table = (float *)take((size_t)(most + 1) * (size_t)head_dim * sizeof *table);
    key = (float *)take((size_t)(most + 1) * d * sizeof *key);
    value = (float *)take((size_t)(most + 1) * d * sizeof *value);
    vk_fill_rope(table, most + 1, head_dim, 10000.0);
    copy_component(module, "q", in[0], (int64_t)(POSITIONS * d));
    copy_component(module, "k", in[1], (int64_t)(POSITIONS * d));
    for (size_t p = 0; p < POSITIONS; p++) {
        float qkv[3 * HEADS * 128] = { 0.0f }, w[2][HEADS * 128], q[HEADS * 128];
        for (int which = 0; which < 2; which++) {
            double squares = 0.0;
            for (size_t i = 0; i < d; i++) {
                float v = in[which][(i / (size_t)head_dim * POSITIONS + p) * (size_t)head_dim + i % (size_t)head_dim];
                qkv[(size_t)which * d + i] = v;
                squares += (double)v * (double)v;
            }
            for (size_t i = 0; i < d; i++) w[which][i] = (float)sqrt(squares / (double)d);
        }
        kernels->qk_norm_rope(&queue, q, key, value, qkv, w[0], w[1], table, 1, (int)d, head_dim, (int)d, at[p], 0.0f, 1);
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

/* the connector stage: hidden states that make windows 0 and 1 the recorded ones (mask 1: no pad_embed is added) */
static void component_attention_pool(vp_engine *e) {
    enum { WINDOWS = 2, PATCHES = 4, FEATURES = 128, SIDE = 24 };
    static float pixels[576 * 588], mask[576];
    float x[WINDOWS * PATCHES * FEATURES];
    vk_buffers *b = &e->buffers;
    size_t w = (size_t)e->config.vit_width, layer_floats = (size_t)e->config.vit_positions * w;
    check_case("component attention_pool");
    copy_component("attention_pool", "x", x, WINDOWS * PATCHES * FEATURES);
    for (int i = 0; i < 576; i++) mask[i] = 1.0f;
    memset(b->hidden, 0, 2 * layer_floats * sizeof(float));
    for (size_t i = 0; i < WINDOWS * PATCHES * FEATURES; i++) {
        size_t window = i / (PATCHES * FEATURES), patch = i / FEATURES % PATCHES, feature = i % FEATURES;
        size_t row = 1 + patch / 2 * SIDE + window * 2 + patch % 2;
        b->hidden[feature / w * layer_floats + row * w + feature % w] = x[i];
    }
    vk_connector_view(e, pixels, mask, 0);
    compare_component("attention_pool", "query", (const float *)b->pool_query_in, FEATURES, FEATURES, 1e-6);
    compare_component("attention_pool", "y", (const float *)b->pool_out, w, (int64_t)w, 1e-6);
    compare_component("attention_pool", "z", b->image_features, (size_t)e->config.d_model, e->config.d_model, 1e-6);
}
static void component_expert(vp_engine *e) {
    enum { ROWS = 3, D = 128 };
    const vk_block *k = &e->model.blocks[0];
    int h = e->config.expert_dim;
    check_case("component expert");
    copy_component("expert", "x", (float *)e->buffers.gathered, ROWS * D);
    vk_linear_run(&e->cpu, e->buffers.gate_up, 2 * h, e->buffers.gathered, D, ROWS, &k->gate_up[3], VK_STORE_F32);
    kernels->silu_mul(&e->cpu.queue, e->buffers.expert_hidden, e->buffers.gate_up, ROWS, h, vk_padded(h), 1);
    vk_linear_run(&e->cpu, e->buffers.expert_out, D, e->buffers.expert_hidden, vk_padded(h), ROWS, &k->down[3], VK_STORE_F32);
    compare_component("expert", "y", e->buffers.expert_out, D, D, 1e-6);
}
static void component_router(vp_engine *e) {
    enum { ROWS = 5, D = 128, EXPERTS = 8 };
    static const int top[4] = { 1, 2, 3, 8 };
    const vk_block *k = &e->model.blocks[1];
    vk_buffers *b = &e->buffers;
    float probabilities[ROWS * EXPERTS];
    check_case("component router");
    copy_component("router", "x", b->x, ROWS * D);
    kernels->rmsnorm(&e->cpu.queue, b->normed, b->x, k->ff_norm.weight, ROWS, D, D, e->config.norm_eps, 1);
    vk_linear_run(&e->cpu, b->router_logits, EXPERTS, b->normed, D, ROWS, &k->router, VK_STORE_F32);
    compare_component("router", "logits", b->router_logits, EXPERTS, EXPERTS, 1e-6);
    for (int t = 0; t < 4; t++) {
        char file[32];
        check_array index;
        check_case("component router top_k %d", top[t]);
        memset(b->x, 0, ROWS * D * sizeof(float)); /* what comes out is then the sparse block's output alone */
        vk_moe(e, k, 0, ROWS, top[t]);
        snprintf(file, sizeof file, "top%d_index", top[t]);
        if (!load_component("router", file, &index)) continue;
        CHECK_INT(index.count, ROWS * top[t]);
        for (int i = 0; i < ROWS * top[t]; i++) CHECK_INT(b->expert_index[i], check_at(&index, i));
        check_free(&index);
        snprintf(file, sizeof file, "top%d_weight", top[t]);
        if (top[t] > 1) compare_component("router", file, b->expert_weight, (size_t)top[t], top[t], 1e-6);
        else compare_component("router", file, b->expert_weight, ROWS, ROWS, 1e-6); /* one column, so all five in one row */
        for (int i = 0; i < ROWS * top[t]; i++) probabilities[i / top[t] * EXPERTS + b->expert_index[i]] = b->expert_weight[i];
        snprintf(file, sizeof file, "top%d_moe_out", top[t]);
        compare_component("router", file, b->x, D, D, 1e-6);
    }
    compare_component("router", "probabilities", probabilities, EXPERTS, EXPERTS, 1e-6);
}
static void component_decoder_block(vp_engine *e) {
    enum { ROWS = 7, D = 128, HEADS = 4, HEAD_DIM = 32 };
    vk_buffers *b = &e->buffers;
    float cache[2][HEADS * ROWS * HEAD_DIM], attention[ROWS * D];
    check_case("component decoder_block");
    copy_component("decoder_block", "x", b->x, ROWS * D);
    vk_block_forward(e, 0, ROWS, 0, 2);
    vk_linear_run(&e->cpu, attention, D, b->attended, D, ROWS, &e->model.blocks[0].attn_out, VK_STORE_F32);
    for (int i = 0; i < HEADS * ROWS * HEAD_DIM; i++) {
        int head = i / (ROWS * HEAD_DIM), row = i / HEAD_DIM % ROWS, column = i % HEAD_DIM;
        cache[0][i] = ((const float *)b->key)[row * D + head * HEAD_DIM + column];
        cache[1][i] = ((const float *)b->value)[row * D + head * HEAD_DIM + column];
    }
    compare_component("decoder_block", "k_cache", cache[0], HEAD_DIM, HEAD_DIM, 1e-6);
    compare_component("decoder_block", "v_cache", cache[1], HEAD_DIM, HEAD_DIM, 1e-6);
    compare_component("decoder_block", "attn_out", attention, D, D, 1e-6);
    compare_component("decoder_block", "y", b->x, D, D, 1e-6);
    /* the same block token by token, through the cache: decode must equal prefill */
    check_case("component decoder_block, one token at a time");
    for (int row = 0; row < ROWS; row++) {
        float x[ROWS * D];
        copy_component("decoder_block", "x", x, ROWS * D);
        memcpy(b->x, x + row * D, D * sizeof(float));
        vk_block_forward(e, 0, 1, row, 2);
        memcpy(attention + row * D, b->x, D * sizeof(float));
    }
    compare_component("decoder_block", "y", attention, D, D, 1e-6);
}
/* vk_vit_view's steps on 9 positions instead of 577 */
static void component_vit_block(vp_engine *e) {
    enum { ROWS = 9, W = 64 };
    const vk_vit_block *v = &e->model.vit[0];
    vk_buffers *b = &e->buffers;
    vk_queue *q = &e->cpu.queue;
    vk_attention_job job;
    float branch[ROWS * W], eps = e->config.vit_norm_eps;
    int hidden = vk_padded(e->config.vit_mlp_dim);
    check_case("component vit_block");
    copy_component("vit_block", "x", b->vit_x, ROWS * W);
    memset(&job, 0, sizeof job);
    job.y = b->vit_attended; job.ldy = W; job.q = b->vit_qkv; job.k = (float *)b->vit_qkv + W; job.v = (float *)b->vit_qkv + 2 * W;
    job.ldq = job.ldk = 3 * W; job.tokens = ROWS; job.heads = e->config.vit_head_count; job.head_dim = e->config.vit_head_dim;
    job.k_panels = b->k_panels; job.v_panels = b->v_panels; job.scores = b->scores; job.weights = b->weights;
    kernels->layernorm(q, b->vit_normed, b->vit_x, v->attention_norm.weight, v->attention_norm.bias, ROWS, W, W, eps, 1);
    vk_linear_run(&e->cpu, b->vit_qkv, 3 * W, b->vit_normed, W, ROWS, &v->qkv, VK_STORE);
    vk_attention_run(&e->cpu, &job);
    vk_linear_run(&e->cpu, branch, W, b->vit_attended, W, ROWS, &v->wo, VK_STORE_F32);
    compare_component("vit_block", "attn_out", branch, W, W, 1e-6);
    vk_linear_run(&e->cpu, b->vit_x, W, b->vit_attended, W, ROWS, &v->wo, VK_ADD_F32);
    kernels->layernorm(q, b->vit_normed, b->vit_x, v->ffn_norm.weight, v->ffn_norm.bias, ROWS, W, W, eps, 1);
    vk_linear_run(&e->cpu, b->vit_hidden, hidden, b->vit_normed, W, ROWS, &v->w1, VK_QUICKGELU);
    vk_linear_run(&e->cpu, b->vit_x, W, b->vit_hidden, hidden, ROWS, &v->w2, VK_ADD_F32);
    compare_component("vit_block", "y", b->vit_x, W, W, 1e-6);
}
/* The whole vision path of three views: mixed mask, the mask of -1, and a view with pixels of -1, whose features are zeroed. Limit 5e-6 as
 * for image features in goldens/models: there are four ViT blocks before this point. */
static void component_pad_embed(vp_engine *e) {
    enum { VIEWS = 3, PATCHES = 576, VALUES = 588, SAMPLES = 4, WINDOW = 4 * 128, FEATURES = 18 };
    static const size_t sample[SAMPLES] = { 0, 1, 77, 143 };
    static float masks[VIEWS * PATCHES], windows[VIEWS * SAMPLES * WINDOW], features[VIEWS * FEATURES * 128], pixels[PATCHES * VALUES];
    vk_buffers *b = &e->buffers;
    check_case("component pad_embed");
    copy_component("pad_embed", "masks", masks, VIEWS * PATCHES);
    for (int view = 0; view < VIEWS; view++) {
        for (int i = 0; i < PATCHES * VALUES; i++)
            pixels[i] = view == 2 ? -1.0f : (float)((31 * view + 7 * (i / VALUES) + 3 * (i % VALUES)) % 97 / 48.0 - 0.99);
        vk_vit_view(e, pixels, view);
        vk_connector_view(e, pixels, masks + view * PATCHES, view);
        for (int s = 0; s < SAMPLES; s++)
            memcpy(windows + (view * SAMPLES + s) * WINDOW, (const float *)b->pool_keys + sample[s] * WINDOW, WINDOW * sizeof(float));
    }
    for (int i = 0; i < VIEWS * FEATURES; i++)
        memcpy(features + i * 128, b->image_features + ((size_t)(i / FEATURES) * 144 + (size_t)(i % FEATURES) * 8) * 128, 128 * sizeof(float));
    compare_component("pad_embed", "windows", windows, 128, 128, 5e-6);
    compare_component("pad_embed", "features", features, 128, 128, 5e-6);
}
static void test_components(void) {
    vp_model_config config;
    vp_engine_options options = vp_engine_options_default();
    vp_checkpoint *checkpoint = NULL;
    vp_engine *engine = NULL;
    vp_error error;
    size_t bytes = 0;
    char *text = check_read("tests/golden/models/tiny-a/config.json", &bytes);
    component_norms();
    component_quickgelu();
    component_rope("rope_32", 32);
    component_rope("rope_128", 128);
    check_case("open tiny-a");
    memset(&error, 0, sizeof error);
    options.config = &config;
    options.weights = VP_WEIGHTS_FP32;
    options.threads = 2;
    options.max_sequence = 64;
    options.max_views = 3;
    if (CHECK(text) && CHECK_INT(vp_model_config_parse(text, bytes, NULL, 0, &config, &error), VP_OK) &&
        CHECK_INT(vp_checkpoint_open("tests/golden/models/tiny-a", &config, &checkpoint, &error), VP_OK)) {
        options.checkpoint = checkpoint;
        CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK);
    }
    if (engine) {
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

int main(void) {
    random_state = 20261121; /* the seed of every random number here */
    test_shared_kernels();
    test_gemm();
    test_attentions();
    test_components();
    return check_done("test_kernels");
}
