/* test_gemm.c - the CPU-only parts of vlmprof_kernels.cu: its exponential, the tiles of every GEMM kernel on this processor, packing of weights, the choice of kernels,
 * products as lists of jobs, attention over many queries. Parts shared by all backends are in test_kernels.c; expect.h describes how cases are judged. */
#include "vlmprof_checkpoint.h"

#include "engine/weights.h"
#include "vlmprof_kernels.cu"

#include "support/check.h"

#include "support/expect.h"
#include "support/temporary.h"

#include <unistd.h>

/* test_amx.c includes this file; with AMX in software, the other kernels need no second test */
static int is_tested(const vk_gemm_kernel *kernel, int wide) {
#ifdef AMX_ON_CPU
    if (strcmp(kernel->name, "amx")) return 0;
#endif
    return vk_gemm_usable(kernel, wide);
}

/* vk_exp promises 2 ulp, so 2 * 2^-23 relative, over the whole range; it saturates outside */
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

/* The weight of a single key next to a maximum of 0 is 2^x, and met.sum contains it before it is rounded: each softmax keeps its own promise over the
 * whole range, down to where 2^x has no normal number. Damaged: 2^(x (1 + 1e-4)). */
static void test_exp2(const char *name, vk_soften soften, double promise) {
    enum { STEPS = 6000 };
    static float scores[VK_ROWS_MAX * VK_PAD], weights[VK_ROWS_MAX * VK_ATTEND_KEYS];
    double most = 0.0, damaged = 0.0;
    check_case("2^x of %s", name);
    for (int i = 0; i <= STEPS; i++) {
        const int row = i % 8; /* also the second four of a strip's queries */
        float x = -126.0f * (float)i / STEPS;
        vk_met met = { .live = { 2, 2, 2, 2, 2, 2, 2, 2 } };
        double want = exp2((double)x);
        for (int j = 0; j < VK_ROWS_MAX * VK_PAD; j++) scores[j] = j % VK_PAD == 0 ? -1e30f : j % VK_PAD == 1 ? x : NAN; /* NAN: after the live keys */
        soften(&met, row / 4 * 4, weights, scores, VK_PAD, 1.0f);
        CHECK(met.before[row] == 1.0f && met.sum[(row + 4) % 8] == 0.0f);
        if (!(fabs((double)met.sum[row] / want - 1.0) <= most)) most = fabs((double)met.sum[row] / want - 1.0);
        damaged = fmax(damaged, fabs((double)met.sum[row] / exp2((double)x * 1.0001) - 1.0));
    }
    CHECK_NEAR(most, 0, promise);
    CHECK(damaged > promise);
}
/* The effect of a block on earlier sums: a larger score scales them down, a smaller one does not. Weights are rounded to nearest. Four queries, of which
 * one sees no key and one has a larger maximum before. */
static void test_soften(const char *name, vk_soften soften, int wide) {
    static float scores[2 * VK_ROWS_MAX * VK_PAD], weights[VK_ROWS_MAX * VK_ATTEND_KEYS];
    vk_met met = { .most = { 1.0f, 1.0f, 1.0f, 7.0f }, .sum = { 5.0f, 5.0f, 5.0f, 5.0f }, .live = { 40, 0, 33, 40 } };
    const double tolerance = wide ? 4e-7 : 1.0 / 256.0, most[4] = { 3.0, 1.0, 3.0, 7.0 }, before[4] = { 0.5, 1.0, 0.5, 1.0 };
    check_case("weights of %s", name);
    for (int r = 0; r < 4; r++)
        for (int j = 0; j < 2 * VK_PAD; j++)
            scores[j / VK_PAD * VK_ROWS_MAX * VK_PAD + r * VK_PAD + j % VK_PAD] = j < met.live[r] ? 3.0f - 0.25f * (float)(j * 7 % 40) : 1e9f;
    soften(&met, 0, weights, scores, 2 * VK_PAD, 0.5f);
    for (int r = 0; r < 4; r++) {
        double sum = 5.0 * before[r];
        for (int j = 0; j < 2 * VK_PAD; j++) {
            double want = j < met.live[r] ? exp2((3.0 - 0.25 * (j * 7 % 40) - most[r]) * 0.5) : 0.0;
            CHECK_NEAR(get(weights, (size_t)(r * VK_ATTEND_KEYS + j), wide), want, want * tolerance);
            sum += want;
        }
        CHECK(met.most[r] == (float)most[r]);
        CHECK_NEAR(met.before[r], before[r], 4e-6);
        CHECK_NEAR(met.sum[r], sum, 1e-4);
    }
}
static void test_softmaxes(void) {
    test_exp2("f32", vk_soften_f32, 3e-7);
    test_soften("f32", vk_soften_f32, 1);
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        if (!vk_gemm_kernels[i].present()) continue;
        test_exp2(vk_gemm_kernels[i].name, vk_gemm_kernels[i].soften, 3e-6);
        test_soften(vk_gemm_kernels[i].name, vk_gemm_kernels[i].soften, 0);
    }
}

/* -------------------------------------------------------------------------------------------------------------------- gemm */
static vk_tile tile_of(const vk_gemm_kernel *kernel, int wide) { return wide ? kernel->tile_wide : kernel->tile; }
/* a CPU backend that uses one kernel for all linears; f32 layers of bf16 mode use plain C if the kernel has no f32 tile */
static vk_cpu cpu_with(const vk_gemm_kernel *kernel, int wide, int threads) {
    vk_cpu cpu = {.queue.threads = threads, .wide = wide};
    for (int s = 0; s < VK_SHAPES; s++) {
        cpu.gemm[0][s] = kernel;
        cpu.gemm[1][s] = kernel->tile_wide ? kernel : &vk_gemm_kernels[VK_GEMM_KERNELS - 1];
    }
    cpu.integers_gemm = kernel;
    if (vk_many_of(kernel) != VK_WIDENED) cpu.many_gemm[VP_ACTIVATIONS_AUTO] = kernel;
    cpu.begin = kernel->begin;
    cpu.end = kernel->end;
    return cpu;
}
/* One tile of 1..32 rows. Rows after `rows` and columns after k are NaN, and must not matter. */
static void test_tile(const vk_gemm_kernel *kernel, size_t k, int wide) {
    size_t ldx = k + VK_PAD, element = wide ? 4 : 2;
    float *t;
    check_case("tile %s k %zu wide %d", kernel->name, k, wide);
    expected e = expect_new(VK_ROWS_MAX, VK_PAD);
    void *x = matrix(VK_ROWS_MAX, 0, k, ldx, NAN, wide);
    void *spoiled = matrix(VK_ROWS_MAX, 0, k, ldx, NAN, wide);
    void *w = matrix(VK_PAD, 0, k, k, 0.0f, wide);
    void *panel = take(VK_PAD * k * element);
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

/* ---- a checkpoint made here: pairs of tensors <n>x<k>.first and .second, stacked in one linear layer */
enum { SHAPES = 4 };
static const struct { int n, k, first_rows; vp_dtype first, second; } shapes[SHAPES] = {
    { 1, 32, 1, VP_DTYPE_F32, VP_DTYPE_F32 }, { 40, 24, 8, VP_DTYPE_F16, VP_DTYPE_BF16 }, /* the second tensor starts within a panel */
    { 100, 100, 40, VP_DTYPE_F32, VP_DTYPE_BF16 }, { 160, 1000, 152, VP_DTYPE_BF16, VP_DTYPE_F32 } };
static float *shape_values[SHAPES]; /* [n, k]: the exact content of the file */
static char folder[300];
static vp_checkpoint *own_checkpoint;

static size_t type_bytes(vp_dtype type) { return type == VP_DTYPE_F32 ? 4 : 2; }
/* a value that the type can represent exactly, and its bytes; f16 values are multiples of 2^-10 below 1 */
static float draw_value(vp_dtype type, unsigned char *out) {
    float v = uniform();
    uint16_t u = vp_f32_to_bf16(v);
    uint32_t bits;
    if (type == VP_DTYPE_F32) { memcpy(out, &v, 4); return v; }
    if (type == VP_DTYPE_F16) {
        v = ldexpf(1024.0f + (float)below(1024), -11); /* 0.5 <= v < 1: exponent 14, mantissa in the low ten bits */
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
    size_t at = 1, offset = 0;
    if (!temporary_folder("kernels", folder, sizeof folder)) return 0;
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
    FILE *f = fopen(path, "wb");
    if (!f) return 0;
    fwrite(length, 1, 8, f);
    fwrite(header, 1, at, f);
    for (int s = 0; s < SHAPES; s++) {
        size_t count = (size_t)shapes[s].n * (size_t)shapes[s].k;
        shape_values[s] = (float *)malloc(count * sizeof(float));
        for (size_t i = 0; i < count; i++) {
            vp_dtype type = (int)(i / (size_t)shapes[s].k) < shapes[s].first_rows ? shapes[s].first : shapes[s].second;
            do shape_values[s][i] = draw_value(type, value); /* the last product, which the damaged reference omits, is never small */
            while ((i + 1) % (size_t)shapes[s].k == 0 && fabsf(shape_values[s][i]) < 0.25f);
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
    layer l = {0};
    vk_loader loader = {0};
    vp_error error;
    char name[64];
    size_t n = (size_t)shapes[s].n, k = (size_t)shapes[s].k;
    loader.backend = &vk_cpu_backend; loader.checkpoint = own_checkpoint; loader.wide = wide; loader.threads = 2; loader.error = &error;
    l.linear.n = shapes[s].n; l.linear.k = shapes[s].k; l.linear.k_padded = (int)padded(k); l.linear.wide = wide; l.linear.bits = 0;
    l.linear.weights = take(padded(n) * padded(k) * (wide ? 4 : 2)); /* rows after n stay NaN; they must not reach a result */
    l.linear.bias = has_bias ? floats(n, 1.0f) : NULL;
    snprintf(name, sizeof name, "%dx%d.first", shapes[s].n, shapes[s].k);
    vk_load_linear_rows(&loader, name, &l.linear, 0, shapes[s].first_rows);
    snprintf(name, sizeof name, "%dx%d.second", shapes[s].n, shapes[s].k);
    if (shapes[s].n > shapes[s].first_rows) vk_load_linear_rows(&loader, name, &l.linear, shapes[s].first_rows, shapes[s].n - shapes[s].first_rows);
    CHECK_INT(loader.result, VP_OK);
    CHECK_INT(loader.done, n * padded(k) * (wide ? 4 : 2));
    l.values = hold(n * k * (wide ? 4 : 2));
    for (size_t i = 0; i < n * k; i++) put(l.values, i, shape_values[s][i], wide);
    return l;
}

static void test_packing(int s, int wide) {
    size_t wrong = 0, k_padded = padded((size_t)shapes[s].k);
    check_case("packing %dx%d wide %d", shapes[s].n, shapes[s].k, wide);
    layer l = load_layer(s, 0, wide);
    for (size_t r = 0; r < (size_t)shapes[s].n; r++)
        for (size_t c = 0; c < k_padded; c++) {
            double want = c < (size_t)shapes[s].k ? get(l.values, r * (size_t)shapes[s].k + c, wide) : 0.0;
            wrong += !(get(l.linear.weights, panel_index(r, c, k_padded, wide), wide) == want);
        }
    CHECK_INT(wrong, 0);
    release_all();
}
static void test_packing_errors(void) {
    static unsigned char panels[VK_PAD * VK_PAD * 4];
    vk_loader loader = {0};
    vk_linear linear = {0};
    vp_error error;
    check_case("packing: a missing tensor, and a tensor of a different shape");
    poison(panels, sizeof panels);
    loader.backend = &vk_cpu_backend; loader.checkpoint = own_checkpoint; loader.threads = 1; loader.error = &error;
    linear.weights = panels; linear.n = 2; linear.k = 24; linear.k_padded = VK_PAD;
    vk_load_linear_rows(&loader, "no.such.tensor", &linear, 0, 2);
    CHECK_INT(loader.result, VP_ERR_NOT_FOUND);
    CHECK_TEXT(error.where, "no.such.tensor");
    loader.result = VP_OK;
    vk_load_linear_rows(&loader, "40x24.first", &linear, 0, 2);
    CHECK_INT(loader.result, VP_ERR_MISMATCH);
    CHECK_TEXT(error.where, "40x24.first");
    vk_load_linear_rows(&loader, "40x24.first", &linear, 0, 8); /* the first failure is kept */
    CHECK_INT(loader.result, VP_ERR_MISMATCH);
    CHECK(is_poison(panels, sizeof panels));
}
/* Synthetic weights: the number for a row and column does not depend on the in-type. They are uniform, scaled by fan-in, and differ by name and seed. */
static void test_synthetic(void) {
    enum { ROWS = 64, K = 200 };
    vk_loader loader = {0};
    vk_linear linear = {0};
    vp_error error;
    double squares = 0.0, sum = 0.0, difference = 0.0;
    uint16_t *narrow;
    check_case("synthetic weights");
    loader.backend = &vk_cpu_backend; loader.threads = 2; loader.seed = 42; loader.error = &error;
    linear.n = ROWS; linear.k = K; linear.k_padded = (int)padded(K);
    linear.weights = narrow = (uint16_t *)take(ROWS * padded(K) * 2);
    vk_load_linear_rows(&loader, "a.weight", &linear, 0, ROWS);
    linear.wide = 1; linear.bits = 0;
    linear.weights = take(ROWS * padded(K) * 4);
    vk_load_linear_rows(&loader, "a.weight", &linear, 0, ROWS);
    float *other = (float *)take(ROWS * K * 4);
    loader.seed = 43;
    vk_load_rows(&loader, "a.weight", other, ROWS, K, 1);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < padded(K); c++) {
            double v = get(linear.weights, panel_index(r, c, padded(K), 1), 1);
            CHECK(narrow[panel_index(r, c, padded(K), 0)] == vp_f32_to_bf16((float)v));
            CHECK(c < K ? fabs(v) <= sqrt(3.0 / K) * (1.0 + 1e-6) : v == 0.0);
            sum += v;
            squares += v * v;
            if (c < K) difference += fabs(v - (double)other[r * K + c]);
        }
    CHECK_NEAR(sum / (ROWS * K), 0, SAFETY / sqrt((double)ROWS * K * K));               /* standard error of the mean */
    CHECK_NEAR(squares / ROWS, 1, SAFETY * sqrt(0.8 / (ROWS * K)));                       /* variance 1 / k; variance of its estimate 0.8 / count */
    CHECK_NEAR(difference / (ROWS * K) * sqrt(K / 3.0), 2.0 / 3.0, SAFETY * 0.5 / sqrt((double)ROWS * K)); /* for independent uniform numbers */
    release_all();
}

/* one layer and one row count with every kernel and epilogue; all kernels must agree */
static void test_linear(int s, int m, int wide) {
    static const char *const names[6] = { "store", "f32", "quickgelu", "add", "gelu", "gelu_tanh" };
    size_t n = (size_t)shapes[s].n, ldx = padded((size_t)shapes[s].k), ldy = n + 3;
    for (int has_bias = 0; has_bias < 2; has_bias++) {
        check_case("linear %dx%d m %d bias %d wide %d", shapes[s].n, shapes[s].k, m, has_bias, wide);
        draw_anew(check_state.name);
        layer l = load_layer(s, has_bias, wide);
        void *x = inputs((size_t)m, (size_t)shapes[s].k, ldx, wide);
        expected sums = expect_new((size_t)m, n);
        expected e = expect_new((size_t)m, n);
        float *before = floats((size_t)m * n, 1.0f);
        expect_products(&sums, x, ldx, l.values, (size_t)shapes[s].k, wide);
        for (int i = 0; i < VK_GEMM_KERNELS * 6; i++) {
            const vk_gemm_kernel *kernel = &vk_gemm_kernels[i / 6];
            vk_epilogue epilogue = (vk_epilogue)(i % 6);
            int f32 = wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, failed = check_state.case_failed;
            vk_cpu cpu = cpu_with(kernel, wide, 2);
            if (!is_tested(kernel, wide)) continue;
            void *y = take((size_t)m * ldy * (f32 ? 4 : 2));
            for (size_t r = 0; epilogue == VK_ADD_F32 && r < (size_t)m; r++) memcpy((float *)y + r * ldy, before + r * n, n * sizeof(float));
            finish(&e, &sums, l.linear.bias, before, epilogue, wide);
            vk_linear_run(&cpu, y, (int)ldy, x, (int)ldx, m, &l.linear, epilogue);
            verdict(y, ldy, f32, &e);
            if (check_state.case_failed != failed) printf("  with kernel %s, epilogue %s\n", kernel->name, names[i % 6]);
        }
        release_all();
    }
}
/* the epilogues of gated MLPs: the activation of one half of the product's own f32 results, times the other half */
static void test_gates(const vk_gemm_kernel *kernel, int m, int bits, int wide) {
    enum { H = 5 * VK_PAD, K = 224 };
    vk_cpu cpu = cpu_with(kernel, wide, 2);
    vk_linear linear = {.n = 2 * H, .k = K, .k_padded = K, .bits = bits, .wide = wide};
    const size_t bytes = 2 * H / VK_PAD * vk_panel_bytes(&linear);
    int wrong = 0;
    check_case("gates, kernel %s, m %d, bits %d, wide %d", kernel->name, m, bits, wide);
    draw_anew(check_state.name);
    char *panels = (char *)take(bytes);
    for (size_t i = 0; i < bytes; i++) panels[i] = (char)below(256);
    for (size_t i = 0; i < bytes / 2 && (!bits || wide); i++) ((uint16_t *)panels)[i] = vk_f2b(((float)below(256) - 127.5f) / 512.0f);
    for (size_t i = 0; bits && i < bytes; i += VK_PAD * (2 + VK_QUANT_BLOCK * (size_t)bits / 8))
        for (int c = 0; c < VK_PAD; c++) ((uint16_t *)(panels + i))[c] = vk_f2b(ldexpf(1.0f, bits == 8 ? -8 : -4));
    linear.weights = panels;
    void *x = matrix((size_t)m, VK_ROWS_MAX, K, K, 0.0f, wide);
    cpu.integers_bytes = (size_t)m * K / VK_QUANT_BLOCK * sizeof(vk_fine);
    cpu.integers = take(cpu.integers_bytes + vk_bytes_spare(K));
    cpu.widened_bytes = vk_quant_room_bytes(K);
    cpu.widened = take(2 * cpu.widened_bytes);
    float *both = (float *)take((size_t)m * 2 * H * sizeof *both);
    vk_linear_run(&cpu, both, 2 * H, x, K, m, &linear, VK_STORE_F32);
    for (int gelu = 0; gelu < 2; gelu++) {
        void *y = take((size_t)m * H * (wide ? 4 : 2));
        vk_linear_run(&cpu, y, H, x, K, m, &linear, gelu ? VK_GELU_MUL : VK_SILU_MUL);
        for (size_t i = 0; i < (size_t)m * H; i++) {
            const double gate = (double)both[i / H * 2 * H + i % H], up = (double)both[i / H * 2 * H + H + i % H],
                         by = gelu ? 2 * 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate) : gate, want = gate / (1 + exp(-by)) * up;
            wrong += !(fabs(get(y, i, wide) - want) <= fabs(want) * (wide ? 4e-6 : 0.0042) + 1e-30);
        }
    }
    check_note(!wrong, __FILE__, __LINE__, "%d of %d values are wrong", wrong, 2 * m * H);
    release_all();
}
/* number of consecutive values of k whose inputs share a scale: a block, or the kernel's group where many rows are bytes; 0 if inputs stay unchanged */
static int input_group(const vk_gemm_kernel *kernel, int m) {
    const vk_many many = m == 1 ? VK_BLOCKS : vk_many_of(kernel);
    return many == VK_BYTES ? kernel->group : many == VK_BLOCKS ? VK_QUANT_BLOCK : 0;
}
/* 16 or 8 */
static int input_bits(const vk_gemm_kernel *kernel, int m) {
    return m == 1 || (vk_many_of(kernel) == VK_BLOCKS && kernel->blocks->bytes == sizeof(vk_fine)) ? 16 : 8;
}
/* The inputs before they meet integers, by the rule written once more: 16 bits with a power of two as scale, or 8 bits. Returns the largest distance from the inputs as a
 * share of their group's largest. */
static double integer_inputs(double *meant, const void *x, size_t rows, size_t k, size_t ldx, size_t group, int bits) {
    double far = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t from = 0; from < k; from += group) {
            const size_t end = k - from < group ? k : from + group;
            double most = 0, step;
            for (size_t i = from; i < end; i++) most = fmax(most, fabs(get(x, r * ldx + i, 0)));
            step = bits == 8 ? (double)((float)most / 127.0f) : most > 0 ? ldexp(1.0, ilogb(most) - 14) : 0;
            float inverse = bits == 8 ? 127.0f / (float)most : (float)(1.0 / step);
            for (size_t i = from; i < end; i++) {
                meant[r * k + i] = most > 0 ? (double)nearbyintf((float)get(x, r * ldx + i, 0) * inverse) * step : 0;
                if (most > 0) far = fmax(far, fabs(meant[r * k + i] - get(x, r * ldx + i, 0)) / most);
            }
        }
    return far;
}
/* an integer times a ratio of scales in 1/32768, as the kernels do it: bytes 1 and 3 of four (values 2 and 3) first in 1/256 of a step */
static double level_byte(double whole, double ratio, int bits, size_t i) {
    const double fine = i % 4 < 2 ? 1 : 256, byte = floor(whole * (bits == 8 ? 1 : 16) * fine * ratio / 32768 + 0.5);
    return i % 4 < 2 ? byte : floor((byte + 128) / 256);
}
/* the ratio of a row's largest scale; a row of 8 bits with a negative scale has room for -128 times that */
static double level_full(int bits, int negative) { return bits == 4 ? 32767.0 * 127 / 128 : negative ? 32639.0 : 32767.0; }
/* The weights of integers where bytes are multiplied: `step` f64 [n, blocks] and `whole` f64 [n, k] -> values. Returns the largest distance as a share of the group's
 * step. */
static double level_weights(double *meant, const double *whole, const double *step, size_t n, size_t k, size_t group, int bits) {
    const size_t blocks = (k + VK_QUANT_BLOCK - 1) / VK_QUANT_BLOCK;
    const double full = bits == 8 ? 127 : 8;
    double far = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t from = 0; from < k; from += group) {
            const size_t end = k - from < group ? k : from + group;
            double most = 0;
            for (size_t i = from; i < end; i += VK_QUANT_BLOCK) most = fmax(most, fabs(step[r * blocks + i / VK_QUANT_BLOCK]));
            for (size_t i = from; i < end; i++) {
                const double scale = step[r * blocks + i / VK_QUANT_BLOCK], size = most * full / 127;
                const double ratio = most > 0 ? (double)nearbyintf((float)scale * ((float)level_full(bits, 0) / (float)most)) : 0;
                meant[r * k + i] = level_byte(whole[r * k + i], ratio, bits, i) * size;
                if (most > 0) far = fmax(far, fabs(meant[r * k + i] - whole[r * k + i] * scale) / size);
            }
        }
    return far;
}
/* NaN must stay NaN, and 0 must stay 0 */
static void test_integer_ends(void) {
    uint16_t x[VK_QUANT_BLOCK] = { 0 };
    vk_fine fine;
    check_case("integers from inputs that are zero, tiny or infinite");
    for (int bits = 4; bits <= 8; bits += 4) {
        x[3] = 0;
        vk_quant_fine(&fine, x, 1, bits);
        CHECK(fine.scale > 0 && fine.value[3] == 0 && fine.offset == 0);
        x[3] = 0x0001;
        vk_quant_fine(&fine, x, 1, bits);
        CHECK(fine.scale > 0 && fine.value[3] == 0);
        for (int i = 0; i < 2; i++) {
            x[3] = i ? 0x7f80 : 0xffc0;
            vk_quant_fine(&fine, x, 1, bits);
            CHECK(isnan(fine.scale));
        }
    }
}
/* Bytes at their limits: a panel and rows of extremes (-128 .. 127, all signs equal, scales that are 0, tiny or not a number, inputs that are not finite) against sums in
 * int64. Panels are made here, so that they can contain values that no checkpoint gives. */
static void test_byte_ends(const vk_gemm_kernel *kernel, int rows, int k, int bits) {
    enum { PANELS = 3, N = PANELS * VK_PAD };
    const int group = kernel->group, groups = (k + group - 1) / group, blocks = k / VK_QUANT_BLOCK, block_bytes = VK_PAD * (2 + VK_QUANT_BLOCK * bits / 8);
    vk_cpu cpu = cpu_with(kernel, 0, 2);
    vk_linear linear = {0};
    float *y;
    int wrong = 0;
    check_case("extreme bytes, kernel %s, rows %d k %d bits %d", kernel->name, rows, k, bits);
    draw_anew(check_state.name);
    linear.n = N; linear.k = linear.k_padded = k; linear.bits = bits;
    char *panel = (char *)take(PANELS * vk_panel_bytes(&linear));
    linear.weights = panel;
    uint16_t *x = (uint16_t *)take((size_t)rows * (size_t)k * 2);
    y = (float *)take((size_t)rows * N * sizeof *y);
    /* column c: scale 2^-(c % 4) in all blocks, but column 5: 0, 6: NaN, 7: 2^-126, 9: negative */
    for (int b = 0; b < PANELS * blocks; b++)
        for (int c = 0; c < VK_PAD; c++) {
            const uint16_t scale = c == 5 ? 0 : c == 6 && b % blocks == blocks - 1 ? 0x7fc0 : c == 7 ? 0x0080 : vk_f2b(ldexpf(c == 9 ? -1.0f : 1.0f, -(c % 4)));
            memcpy(panel + b * block_bytes + 2 * c, &scale, 2);
            for (int i = 0; i < VK_QUANT_BLOCK * bits / 8; i++) /* column 0: all smallest, column 1: all largest */
                panel[b * block_bytes + 2 * VK_PAD + i / 4 * 4 * VK_PAD + 4 * c + i % 4] =
                    (char)(c == 0 ? bits == 8 ? 0x80 : 0 : c == 1 ? bits == 8 ? 0x7f : 0xff : (int)below(256));
        }
    /* row 0: all 1, row 1: all -1, row 2: an infinity, row 3: 0, row 4: below 2^-119, others: random */
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < k; i++) {
            const float value = r == 0 ? 1.0f : r == 1 ? -1.0f : r == 3 ? 0.0f : r == 4 ? ldexpf(1.0f, -130) : (float)((int)below(255) - 127) / 127.0f;
            x[r * k + i] = r == 2 && i == k / 2 ? 0xff80 : vk_f2b(value);
        }
    cpu.integers_bytes = vk_bytes_of(1, k, group) * (size_t)rows;
    cpu.integers = take(cpu.integers_bytes + vk_bytes_spare(k));
    cpu.widened_bytes = vk_quant_room_bytes(k);
    cpu.widened = take(2 * cpu.widened_bytes);
    vk_linear_run(&cpu, y, N, x, k, rows, &linear, VK_STORE_F32);
    for (int r = 0; r < rows; r++)
        for (int column = 0; column < N; column++) {
            const int c = column % VK_PAD;
            double sum = 0, size = 0;
            const float scale = c == 5 || c == 7 ? 0 : ldexpf(c == 9 ? -1.0f : 1.0f, -(c % 4));
            for (int g = 0; g < groups; g++) {
                const int end = (g + 1) * group < k ? (g + 1) * group : k;
                int64_t whole = 0;
                float most = 0;
                for (int i = g * group; i < end; i++) most = fmaxf(most, fabsf(vk_b2f(x[r * k + i])));
                for (int i = g * group; i < end; i++) {
                    static const int place[8] = { 0, 2, 1, 3, 0, 2, 1, 3 };
                    const int in = i % VK_QUANT_BLOCK, per = bits == 8 ? 4 : 8;
                    const unsigned char *at = (const unsigned char *)panel + 2 * VK_PAD + in / per * 4 * VK_PAD + 4 * c + place[in % per]
                                              + (column / VK_PAD * blocks + i / VK_QUANT_BLOCK) * block_bytes;
                    const int weight = bits == 8 ? (int8_t)*at : (*at >> (in % 8 / 4 * 4) & 15) - 8,
                              input = most > 1e-35f && isfinite(most) ? (int)nearbyintf(vk_b2f(x[r * k + i]) * (127.0f / most)) : 0;
                    whole += (int64_t)level_byte(weight, nearbyint(c == 9 ? -level_full(bits, 1) : level_full(bits, 0)), bits, (size_t)i) * input;
                }
                sum += (double)whole * (double)(most / 127.0f) * fabs((double)scale)
                       * (bits == 4 ? 8.0 / 127 : c == 9 ? level_full(8, 0) / level_full(8, 1) : 1.0);
                size += fabs((double)whole * (double)(most / 127.0f) * (double)scale);
            }
            if (r == 2 || c == 6) wrong += !isnan(y[r * N + column]);
            else wrong += !(fabs((double)y[r * N + column] - sum) <= size * 4e-6 + 1e-30);
        }
    check_note(!wrong, __FILE__, __LINE__, "%d of %d sums are wrong", wrong, rows * N);
    release_all();
}
/* Many rows with bf16 inputs, by demand or because the kernel has no bytes: bit-identical to a bf16 linear of the widened weights. */
static void check_widened(vk_cpu cpu, const vk_linear *linear, const float *y, const void *x, int ldx, int m, int is_same) {
    const size_t panels = padded((size_t)linear->n) / VK_PAD, values = (size_t)linear->k_padded * VK_PAD, bytes = (size_t)m * (size_t)linear->n * sizeof(float);
    uint16_t *weights = (uint16_t *)take(panels * values * sizeof *weights);
    float *demanded = (float *)take(bytes), *plain = (float *)take(bytes);
    vk_linear wide = *linear;
    for (size_t p = 0; p < panels; p++) vk_quant_widen(weights + p * values, vk_panel_at(linear, (int)p), linear->k_padded, linear->bits);
    wide.bits = 0;
    wide.weights = weights;
    cpu.queue.activations = VP_ACTIVATIONS_BF16;
    vk_linear_run(&cpu, demanded, linear->n, x, ldx, m, linear, VK_STORE_F32);
    vk_linear_run(&cpu, plain, linear->n, x, ldx, m, &wide, VK_STORE_F32);
    CHECK(!memcmp(demanded, plain, bytes) && (memcmp(demanded, y, bytes) == 0) == is_same);
}
/* Integers: products of the numbers that weights and inputs represent (the rules are written here once more), as close as rounding allows; weights within half a step (4
 * bits: a step, at the end that has none) of the checkpoint's, inputs within their promise. Where many rows meet widened weights, these are rounded to bf16. The distance
 * from the products of the unrounded inputs is within 1.5 of the error that 8-bit weights alone cause. */
static void test_integers(int s, int m, int bits) {
    const size_t n = (size_t)shapes[s].n, k = (size_t)shapes[s].k, ldx = padded(k);
    const size_t blocks = (k + VK_QUANT_BLOCK - 1) / VK_QUANT_BLOCK;
    double *meant = (double *)malloc(n * k * sizeof *meant), *given = (double *)malloc((size_t)m * k * sizeof *given),
           *whole = (double *)malloc(n * k * sizeof *whole), *steps = (double *)malloc(n * blocks * sizeof *steps);
    vk_loader loader = {0};
    vk_linear linear = {0};
    vp_error error;
    char name[64];
    float *y;
    int far = 0;
    check_case("integers %dx%d m %d bits %d", shapes[s].n, shapes[s].k, m, bits);
    draw_anew(check_state.name);
    loader.backend = &vk_cpu_backend; loader.checkpoint = own_checkpoint; loader.threads = 2; loader.error = &error;
    linear.n = shapes[s].n; linear.k = shapes[s].k; linear.k_padded = (int)ldx; linear.bits = bits;
    linear.weights = take(padded(n) / VK_PAD * vk_panel_bytes(&linear));
    memset(linear.weights, 0, padded(n) / VK_PAD * vk_panel_bytes(&linear));
    snprintf(name, sizeof name, "%dx%d.first", shapes[s].n, shapes[s].k);
    vk_load_linear_rows(&loader, name, &linear, 0, shapes[s].first_rows);
    snprintf(name, sizeof name, "%dx%d.second", shapes[s].n, shapes[s].k);
    if (shapes[s].n > shapes[s].first_rows) vk_load_linear_rows(&loader, name, &linear, shapes[s].first_rows, shapes[s].n - shapes[s].first_rows);
    CHECK_INT(loader.result, VP_OK);
    for (size_t r = 0; r < n; r++)
        for (size_t from = 0; from < k; from += VK_QUANT_BLOCK) {
            const float *w = shape_values[s] + r * k + from;
            const size_t count = k - from < VK_QUANT_BLOCK ? k - from : VK_QUANT_BLOCK;
            float most = 0, step;
            for (size_t i = 0; i < count; i++) if (fabsf(w[i]) > fabsf(most)) most = w[i];
            step = vk_b2f(vk_f2b(bits == 8 ? fabsf(most) / 127.0f : most / -8.0f));
            steps[r * blocks + from / VK_QUANT_BLOCK] = (double)step;
            for (size_t i = 0; i < count; i++) {
                double integer = step != 0 ? (double)roundf(w[i] * (1.0f / step)) : 0;
                whole[r * k + from + i] = integer = fmin(fmax(integer, bits == 4 ? -8 : -127), bits == 4 ? 7 : 127);
                far += !(fabs(integer * (double)step - (double)w[i]) <= fabs((double)step) * (bits == 8 ? 0.5 : 1.02) * 1.00001);
            }
        }
    CHECK_INT(far, 0);
    void *x = inputs((size_t)m, k, ldx, 0);
    y = (float *)take((size_t)m * n * sizeof *y);
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        vk_cpu cpu = cpu_with(&vk_gemm_kernels[i], 0, 2);
        const int group = input_group(&vk_gemm_kernels[i], m), widens = !group, coarse = input_bits(&vk_gemm_kernels[i], m) == 8,
                  levels = m > 1 && vk_many_of(&vk_gemm_kernels[i]) == VK_BYTES;
        double off = 0, weights_off = 0;
        int wrong = 0;
        if (!is_tested(&vk_gemm_kernels[i], 0)) continue;
        if (group) CHECK(integer_inputs(given, x, (size_t)m, k, ldx, (size_t)group, coarse ? 8 : 16) <= (coarse ? 1.0 / 254 : 1.0 / 32768) * 1.00001);
        CHECK(level_weights(meant, whole, steps, n, k, (size_t)(levels ? group : VK_QUANT_BLOCK), bits) <= 0.51);
        for (size_t j = 0; !levels && j < n * k; j++) meant[j] = whole[j] * steps[j / k * blocks + j % k / VK_QUANT_BLOCK];
        /* memory for all rows, or for 40 of them, so that the rest is processed afterwards */
        cpu.integers_bytes = (size_t)(m > 40 && bits == 4 ? 40 : m) * ldx / VK_QUANT_BLOCK * sizeof(vk_fine);
        cpu.integers = take(cpu.integers_bytes + vk_bytes_spare((int)ldx));
        cpu.widened_bytes = vk_quant_room_bytes((int)ldx);
        cpu.widened = take(2 * cpu.widened_bytes);
        poison(y, (size_t)m * n * sizeof *y);
        vk_linear_run(&cpu, y, (int)n, x, (int)ldx, m, &linear, VK_STORE_F32);
        for (cpu.fetches = 1; m == 1 && cpu.fetches; cpu.fetches = 0) { /* prefetching weights gives the same bits */
            float *again = (float *)take(n * sizeof *again);
            poison(again, n * sizeof *again);
            vk_linear_run(&cpu, again, (int)n, x, (int)ldx, m, &linear, VK_STORE_F32);
            CHECK(!memcmp(again, y, n * sizeof *again));
        }
        if (m > 1) check_widened(cpu, &linear, y, x, (int)ldx, m, !group);
        for (size_t r = 0; r < (size_t)m; r++)
            for (size_t c = 0; c < n; c++) {
                double sum = 0, size = 0, exact = 0, of_checkpoint = 0;
                for (size_t j = 0; j < k; j++) {
                    double input = get(x, r * ldx + j, 0), product = (widens ? input : given[r * k + j]) * meant[c * k + j];
                    sum += product;
                    size += fabs(product);
                    exact += input * whole[c * k + j] * steps[c * blocks + j / VK_QUANT_BLOCK];
                    of_checkpoint += input * (double)shape_values[s][c * k + j];
                }
                wrong += !(fabs((double)y[r * n + c] - sum) <= size * (widens ? 1.0 / 200 : 4e-6) + 1e-6);
                off += ((double)y[r * n + c] - of_checkpoint) * ((double)y[r * n + c] - of_checkpoint);
                weights_off += (exact - of_checkpoint) * (exact - of_checkpoint);
            }
        /* with enough sums for a mean: 8-bit weights and 8-bit inputs each cause the same error as the weights' rounding */
        if (k > VK_QUANT_BLOCK) CHECK(sqrt(off / weights_off) <= (bits == 8 && group && coarse ? sqrt(3.0) : 1.5));
        check_note(!wrong, __FILE__, __LINE__, "kernel %s: %d sums are wrong", vk_gemm_kernels[i].name, wrong);
    }
    FREE_ALL(meant, given, whole, steps);
    release_all();
}
/* the router of bf16 mode is an f32 layer on a CPU in bf16 mode */
static void test_mixed_linear(int m) {
    size_t n = (size_t)shapes[2].n, ldx = padded((size_t)shapes[2].k);
    check_case("f32 layer in bf16 mode m %d", m);
    layer l = load_layer(2, 0, 1);
    void *x = matrix((size_t)m, VK_ROWS_MAX, (size_t)shapes[2].k, ldx, 0.0f, 1);
    expected sums = expect_new((size_t)m, n);
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
/* a list of jobs as for experts: most are empty, including the first and the last; damaged: every row uses the weights of the next expert */
static void test_jobs(const vk_gemm_kernel *kernel, int wide, int threads) {
    enum { JOBS = 9 };
    static const int rows[JOBS] = { 0, 3, 0, 0, 40, 1, 72, 0, 0 };
    size_t n = (size_t)shapes[3].n, k = (size_t)shapes[3].k, ldx = padded(k), element = wide ? 4 : 2, at = 0, total = 116;
    layer l[2];
    vk_gemm_job jobs[JOBS] = {0};
    int64_t *first_task;
    vk_cpu cpu = cpu_with(kernel, wide, threads);
    float *y;
    check_case("jobs %s wide %d threads %d", kernel->name, wide, threads);
    draw_anew(check_state.name);
    first_task = (int64_t *)take((JOBS + 1) * sizeof *first_task);
    l[0] = load_layer(3, 0, wide);
    l[1] = load_layer(3, 1, wide);
    for (size_t i = 0; i < n * k; i++) { /* other weights: the same numbers reversed */
        float v_back = (float)get(l[0].values, n * k - 1 - i, wide);
        put(l[1].values, i, v_back, wide);
        put(l[1].linear.weights, panel_index(i / k, i % k, ldx, wide), v_back, wide);
    }
    char *x = (char *)matrix(total, VK_ROWS_MAX, k, ldx, 0.0f, wide);
    y = (float *)take(total * n * sizeof *y);
    expected e = expect_new(total, n);
    expected other = expect_new(total, n);
    for (int j = 0; j < JOBS; j++) {
        expected part = expect_rows(&e, at, (size_t)rows[j]), part_other = expect_rows(&other, at, (size_t)rows[j]);
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
    vk_gemm_run(&cpu, jobs, JOBS, first_task, VK_STORE_F32); /* no jobs are valid */
    CHECK(is_poison(y, total * n * sizeof *y));
    release_all();
}
/* A name forces that kernel for the mode's arithmetic. An unknown kernel, or one without that arithmetic, is rejected. */
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
            if (wide || !vk_gemm_usable(kernel, 0)) continue;
            for (int kind = 0; kind < VP_ACTIVATIONS_COUNT; kind++) { /* `auto` too is this kernel's own kind */
                const int has = vk_many_of(kernel) != VK_WIDENED && (!kind || kind == vk_activations_of(kernel));
                CHECK(cpu.many_gemm[kind] == (has ? kernel : NULL) && (!kind || (int)(cpu.queue.inputs >> kind & 1) == has));
            }
            CHECK_INT(cpu.queue.usual, vk_activations_of(kernel));
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
    check_case("a synthetic checkpoint");
    if (!CHECK(write_checkpoint()) || !CHECK_INT(vp_checkpoint_open(folder, NULL, &own_checkpoint, NULL), VP_OK)) return;
    for (int s = 0; s < SHAPES; s++)
        for (int wide = 0; wide < 2; wide++) test_packing(s, wide);
    test_packing_errors();
    test_synthetic();
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            for (int wide = 0; wide < 2; wide++) test_linear(s, rows[i], wide);
    for (int i = 0; i < VK_GEMM_KERNELS * 16; i++) {
        static const int counts[] = { 1, 5, 33, 150 };
        const int kind = i / 4 % 4, bits = kind < 2 ? 0 : kind < 3 ? 4 : 8, wide = kind == 1;
        if (is_tested(&vk_gemm_kernels[i / 16], wide)) test_gates(&vk_gemm_kernels[i / 16], counts[i % 4], bits, wide);
    }
    test_mixed_linear(1);
    test_mixed_linear(33);
    test_integer_ends();
    for (int s = 0; s < 3; s++)
        for (int m = 1; m < 100; m += 32)
            for (int bits = 4; bits <= 8; bits += 4) test_integers(s, m, bits);
    for (int i = 0; i < VK_GEMM_KERNELS; i++)
        if (vk_gemm_usable(&vk_gemm_kernels[i], 0) && vk_many_of(&vk_gemm_kernels[i]) == VK_BYTES)
            for (int bits = 4; bits <= 8; bits += 4) {
                test_byte_ends(&vk_gemm_kernels[i], 5, 32, bits);
                test_byte_ends(&vk_gemm_kernels[i], 17, 96, bits);
                test_byte_ends(&vk_gemm_kernels[i], 61, 1120, bits);
            }
    for (int i = 0; i < VK_GEMM_KERNELS * 4; i++)
        if (vk_gemm_usable(&vk_gemm_kernels[i / 4], i & 1)) test_jobs(&vk_gemm_kernels[i / 4], i & 1, 1 + (i >> 1 & 1));
    remove_checkpoint();
}

/* --------------------------------------------------------------------------------------------------------------- attention */
/* every kernel of the in-type */
static void test_attention(int tokens, int heads, int group, int head_dim, int causal, int wide) {
    size_t t = (size_t)tokens, d = (size_t)(heads * head_dim), ld = padded(d) + VK_PAD, element = wide ? 4 : 2, kv = d / (size_t)group;
    size_t panel_bytes = vk_attention_panel_elements(tokens, heads / group, head_dim) * element;
    vk_attention_job job = {0};
    check_case("attention tokens %d heads %d of %d, %d share keys, causal %d wide %d", tokens, heads, head_dim, group, causal, wide);
    expected e = expect_new(t, d);
    /* q is read up to the next multiple of 32 columns. These must be finite; zeros of the packed keys then cancel them. */
    void *q = matrix(t, VK_ROWS_MAX, d, ld, head_dim % VK_PAD ? 0.0f : NAN, wide);
    void *k = matrix(t, 0, kv, kv, 0.0f, wide);
    void *v = matrix(t, 0, kv, kv, 0.0f, wide);
    void *y = take(t * ld * element);
    for (size_t i = 0; i < t * kv; i++) put(k, i, 3.0f * (float)get(k, i, wide), wide); /* scores that differ by several units */
    /* the last query has a high score with the last key, so that omitting it shows */
    for (size_t i = 0; i < kv; i++)
        put(k, (t - 1) * kv + i, 2.0f * (float)get(q, (t - 1) * ld + i / (size_t)head_dim * (size_t)(group * head_dim) + i % (size_t)head_dim, wide), wide);
    for (size_t r = 0; r < t; r++)
        for (size_t h = 0; h < (size_t)heads; h++)
            expect_attention(&e, r * d + h * (size_t)head_dim, q, r * ld + h * (size_t)head_dim, k, v, kv, h / (size_t)group * (size_t)head_dim,
                             causal ? (int)r + 1 : tokens, head_dim, !wide, wide);
    job.y = y; job.ldy = (int)ld; job.q = q; job.ldq = (int)ld; job.k = k; job.v = v; job.ldk = (int)kv;
    job.batch = 1; job.tokens = tokens; job.heads = heads; job.kv_heads = heads / group; job.head_dim = head_dim; job.causal = causal;
    void *k_panels = take(panel_bytes);
    void *v_panels = take(panel_bytes);
    void *attend = take(2 * vk_attend_bytes((size_t)head_dim, wide));
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        vk_cpu cpu = cpu_with(&vk_gemm_kernels[i], wide, 2);
        int failed = check_state.case_failed;
        if (!is_tested(&vk_gemm_kernels[i], wide)) continue;
        poison(y, t * ld * element);
        cpu.k_panels = poison(k_panels, panel_bytes); /* stale values must not be used */
        cpu.v_panels = poison(v_panels, panel_bytes);
        cpu.attend_bytes = vk_attend_bytes((size_t)head_dim, wide);
        cpu.attend = poison(attend, 2 * cpu.attend_bytes);
        vk_attention_run(&cpu, &job);
        verdict(y, ld, wide, &e);
        if (check_state.case_failed != failed) printf("  with kernel %s\n", vk_gemm_kernels[i].name);
    }
    release_all();
}
static void test_attentions(void) {
    static const int widths[4] = { 16, 32, 64, 128 }, counts[4] = { 1, 5, 33, 577 };
    for (int w = 0; w < 4; w++)
        for (int c = 0; c < 4; c++)
            for (int mode = 0; mode < 4; mode++) test_attention(counts[c], counts[c] > 100 ? 1 : 3, 1, widths[w], mode & 1, mode >> 1);
    for (int mode = 1; mode < 3; mode++) { /* heads that share keys, a width that is not a multiple of a panel, blocks of keys that end at a row */
        test_attention(70, 4, 2, 72, mode & 1, mode >> 1);
        test_attention(VK_ATTEND_KEYS, 2, 2, 40, mode & 1, mode >> 1);
        test_attention(VK_ATTEND_KEYS + 1, 1, 1, 256, mode & 1, mode >> 1);
    }
}

#ifndef AMX_ON_CPU
/* Scratch: exactly the counted bytes are used, each piece on its own cache line, none after the end. */
static void test_scratch(int wide) {
    check_case("the CPU's scratch, %s", wide ? "fp32" : "bf16");
    vk_cpu cpu = {.queue.threads = 3};
    vk_extent extent = {.wide = wide, .experts = 9, .quant_k = 96, .marks = 5};
    extent.vit.tokens = 37; extent.vit.heads = extent.vit.kv_heads = 3; extent.vit.head_dim = 40;
    extent.llm.tokens = 50; extent.llm.heads = 6; extent.llm.kv_heads = 2; extent.llm.head_dim = 16;
    size_t bytes = vk_cpu_scratch_bytes(&cpu.queue, &extent);
    void *scratch = aligned_alloc(64, bytes);
    if (CHECK(scratch && vk_cpu_use(&cpu.queue, &extent, scratch))) {
        const char *at[] = { (char *)cpu.k_panels, (char *)cpu.v_panels, (char *)cpu.attend, (char *)cpu.pieces, (char *)cpu.widened, (char *)cpu.integers,
                             (char *)cpu.first_task, (char *)scratch + bytes };
        const size_t panels = 3 * 64 * 64 * (wide ? 4 : 2), /* the tower needs most: more than 2 heads of 64 tokens x 32 */
            needs[] = { panels, panels, 3 * cpu.attend_bytes, VK_PIECES * 4 * vk_piece_floats(6, 40), 3 * cpu.widened_bytes,
                        cpu.integers_bytes + vk_bytes_spare(96), 10 * sizeof(int64_t) };
        CHECK(at[0] == (char *)scratch);
        for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
            CHECK((uintptr_t)at[i] % 64 == 0 && at[i + 1] >= at[i] + needs[i] && at[i + 1] < at[i] + needs[i] + 64);
    }
    FREE_ALL(cpu.marks, cpu.tokens, scratch);
}

int main(void) {
    test_scratch(0);
    test_scratch(1);
    RUN_TESTS(test_exp, test_softmaxes, test_gemm, test_attentions);
    return check_done("test_gemm");
}
#endif
