/* expect.h: common parts of the kernel tests: fenced and poisoned buffers, random numbers, references in double precision, verdicts. A test includes it after vlmprof.h,
 * engine/backend.h and check.h.
 *
 * Each case is judged twice: the result must agree with the reference, and must disagree with a damaged reference that contains a plausible mistake. So every tolerance
 * is shown to be tight enough to detect that mistake. Outputs are poisoned with 0xff (a NaN in every type, -1 as an integer) and fenced; padding that a kernel must not
 * touch has to keep its poison.
 *
 * Tolerances: a sum of n rounded terms deviates by about unit * sqrt(n) * ||terms||, where unit = 2^-24 is fp32's largest relative rounding error. SAFETY times that is
 * allowed, and a result stored as bf16 may add its own rounding, 2^-8 of the value.
 *
 * TEST_CUDA: the GPU also sees the buffers, as page-locked memory of the host; with TEST_EMULATED so does the GPU code that runs on the CPU. */
#ifndef EXPECT_H
#define EXPECT_H

enum { FENCE = 256, BUFFERS_MAX = 128, SAFETY = 4 };
static const double unit = 1.0 / 16777216.0, bf16_unit = 1.0 / 256.0;

/* ---------------------------------------------------------------------------------------------- buffers and random numbers */
#ifdef TEST_CUDA
enum { tensor_cores = 1 };
#else
enum { tensor_cores = 0 };
#endif
#ifdef TEST_EMULATED
enum { emulated = 1 };
extern void cuda_on_cpu_share(void *memory, size_t bytes);
extern void cuda_on_cpu_unshare(void *memory);
static inline unsigned char *memory_new(size_t bytes) {
    unsigned char *memory = (unsigned char *)malloc(bytes);
    if (memory) cuda_on_cpu_share(memory, bytes);
    return memory;
}
static inline void memory_free(unsigned char *memory) {
    cuda_on_cpu_unshare(memory);
    free(memory);
}
#else
enum { emulated = 0 };
#ifdef TEST_CUDA
/* from the CUDA runtime, whose header is not included here */
extern int cudaMallocHost(void **memory, size_t bytes);
extern int cudaFreeHost(void *memory);
static inline unsigned char *memory_new(size_t bytes) {
    void *memory = NULL;
    return cudaMallocHost(&memory, bytes) == 0 ? (unsigned char *)memory : NULL;
}
static inline void memory_free(unsigned char *memory) { cudaFreeHost(memory); }
#else
static inline unsigned char *memory_new(size_t bytes) { return (unsigned char *)malloc(bytes); }
static inline void memory_free(unsigned char *memory) { free(memory); }
#endif
#endif

static struct { unsigned char *base; size_t bytes; int held; } buffers[BUFFERS_MAX];
static int buffer_count;
static uint64_t random_state = 20261121; /* the seed of every random number */

static inline void remember(unsigned char *base, size_t bytes, int held) {
    if (!base || buffer_count == BUFFERS_MAX) { printf("no memory for a buffer of %zu bytes\n", bytes); exit(1); }
    buffers[buffer_count].base = base;
    buffers[buffer_count].held = held;
    buffers[buffer_count++].bytes = bytes;
}
/* poisoned memory between two fences */
static inline void *take(size_t bytes) {
    unsigned char *base = memory_new(bytes + 2 * FENCE);
    remember(base, bytes, 0);
    memset(base, 0xa5, bytes + 2 * FENCE);
    memset(base + FENCE, 0xff, bytes);
    return base + FENCE;
}
/* memory that kernels do not see */
static inline void *hold(size_t bytes) {
    unsigned char *base = (unsigned char *)malloc(bytes + 1);
    remember(base, bytes, 1);
    return base;
}
static inline int fence_holds(const unsigned char *p) {
    for (int i = 0; i < FENCE; i++)
        if (p[i] != 0xa5) return 0;
    return 1;
}
static inline void release_all(void) {
    for (int i = 0; i < buffer_count; i++) {
        if (buffers[i].held) { free(buffers[i].base); continue; }
        CHECK(fence_holds(buffers[i].base));
        CHECK(fence_holds(buffers[i].base + FENCE + buffers[i].bytes));
        memory_free(buffers[i].base);
    }
    buffer_count = 0;
}
/* of all that kernels see */
static inline uint64_t sum_of_buffers(void) {
    uint64_t sum = 0, word;
    for (int i = 0; i < buffer_count; i++)
        for (size_t at = 0; !buffers[i].held && at < buffers[i].bytes; at += 8) { /* the fence serves the last word */
            memcpy(&word, buffers[i].base + FENCE + at, 8);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
            sum ^= sum >> 29;
        }
    return sum;
}
static inline int is_poison(const void *p, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)p)[i] != 0xff) return 0;
    return 1;
}
static inline void *poison(void *p, size_t bytes) { return memset(p, 0xff, bytes); }

static inline float uniform(void) { /* (-1, 1) */
    random_state = vk_mix(random_state + 0x9e3779b97f4a7c15ull);
    return (float)((double)(random_state >> 11) / 4503599627370496.0 - 1.0);
}
/* The numbers of a case depend only on its name, not on how many kernels the processor has. */
static inline void draw_anew(const char *name) { for (random_state = 7; *name; name++) random_state = vk_mix(random_state + (unsigned char)*name); }
static inline int below(int n) { random_state = vk_mix(random_state + 1); return (int)(random_state % (uint64_t)n); }
static inline void put(void *p, size_t i, float v, int wide) {
    if (wide) ((float *)p)[i] = v;
    else ((uint16_t *)p)[i] = vp_f32_to_bf16(v);
}
static inline double get(const void *p, size_t i, int wide) {
    return wide ? (double)((const float *)p)[i] : (double)vp_bf16_to_f32(((const uint16_t *)p)[i]);
}
static inline float *floats(size_t count, float scale) {
    float *p = (float *)take(count * sizeof *p);
    for (size_t i = 0; i < count; i++) p[i] = scale * uniform();
    return p;
}
static inline size_t padded(size_t n) { return (n + VK_PAD - 1) / VK_PAD * VK_PAD; }
/* in-type [rows + spare, ld]: random in the first `cols` columns of `rows` rows, `gap` (0 or NaN) elsewhere */
static inline void *matrix(size_t rows, size_t spare, size_t cols, size_t ld, float gap, int wide) {
    void *p = take((rows + spare) * ld * (wide ? 4 : 2));
    for (size_t r = 0; r < rows + spare; r++)
        for (size_t c = 0; c < ld; c++) put(p, r * ld + c, r < rows && c < cols ? uniform() : gap, wide);
    return p;
}
/* the input of a linear, its last column far from 0: zeros up to the next multiple of VK_PAD, then poison, also in the spare rows; these may be read but not used */
static inline void *inputs(size_t rows, size_t k, size_t ld, int wide) {
    void *p = take((rows + VK_ROWS_MAX) * ld * (wide ? 4 : 2));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < padded(k); c++) put(p, r * ld + c, c + 1 < k ? uniform() : c < k ? 0.5f + 0.4f * uniform() : 0.0f, wide);
    return p;
}

/* --------------------------------------------------------------------------------------------------------------- verdicts */
/* the expected result, the damaged reference's result, and the allowed difference; [rows, cols] */
typedef struct expected { double *want, *bad, *tolerance; size_t rows, cols; } expected;
static inline expected expect_new(size_t rows, size_t cols) {
    expected e;
    e.rows = rows;
    e.cols = cols;
    e.want = (double *)hold(rows * cols * sizeof(double));
    e.bad = (double *)hold(rows * cols * sizeof(double));
    e.tolerance = (double *)hold(rows * cols * sizeof(double));
    return e;
}
/* `count` rows from `first` on */
static inline expected expect_rows(const expected *e, size_t first, size_t count) {
    expected part = *e;
    part.want += first * e->cols;
    part.bad += first * e->cols;
    part.tolerance += first * e->cols;
    part.rows = count;
    return part;
}
/* the tolerance: `size` times the deviation of `length` roundings, plus the rounding of a bf16 result */
static inline void expect(expected *e, size_t at, double want, double bad, double size, double length, int wide) {
    e->want[at] = want;
    e->bad[at] = bad;
    e->tolerance[at] = SAFETY * unit * sqrt(length) * size + (wide ? 0.0 : bf16_unit * fabs(want)) + 1e-30;
}
static inline void expect_exact(expected *e, size_t at, double want, double bad) {
    e->want[at] = want;
    e->bad[at] = bad;
    e->tolerance[at] = 0.0;
}
static inline int matches(const void *got, size_t ld, int wide, const expected *e, const double *want, size_t *where) {
    for (size_t r = 0; r < e->rows; r++)
        for (size_t c = 0; c < e->cols; c++) {
            *where = r * e->cols + c;
            if (!(fabs(get(got, r * ld + c, wide) - want[*where]) <= e->tolerance[*where])) return 0;
        }
    return 1;
}
/* got: f32 (wide) or bf16 [rows, ld]; the memory between the rows must still be poison */
static inline void verdict(const void *got, size_t ld, int wide, const expected *e) {
    size_t at = 0, unused = 0, element = wide ? 4 : 2;
    int good = matches(got, ld, wide, e, e->want, &at);
    check_note(good, __FILE__, __LINE__, "row %zu column %zu is %.9g, expected %.9g within %.3g", at / e->cols, at % e->cols,
               get(got, at / e->cols * ld + at % e->cols, wide), e->want[at], e->tolerance[at]);
    check_note(!matches(got, ld, wide, e, e->bad, &unused), __FILE__, __LINE__, "the damaged reference was accepted");
    for (size_t r = 0; r < e->rows; r++) CHECK(is_poison((const char *)got + (r * ld + e->cols) * element, (ld - e->cols) * element));
}
static inline void verdict_ints(const int32_t *got, const int32_t *want, const int32_t *bad, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!check_note(got[i] == want[i], __FILE__, __LINE__, "entry %zu is %d, expected %d", i, (int)got[i], (int)want[i])) return;
    check_note(memcmp(got, bad, count * sizeof *got) != 0, __FILE__, __LINE__, "the damaged reference was accepted");
}

/* ------------------------------------------------------------------------------------------------------------- references */
/* where an element of W is in panels, as the comment of >>gemm in vlmprof_kernels.cu states it */
static inline size_t panel_index(size_t row, size_t column, size_t k_padded, int wide) {
    size_t panel = row / VK_PAD * VK_PAD * k_padded, c = row % VK_PAD;
    return wide ? panel + column * VK_PAD + c : panel + (column / 2 * VK_PAD + c) * 2 + (column & 1);
}
/* Sums of products of x [rows, ldx] and w [n, k] in `e`, which `finish` turns into results; damaged: the last product is missing. A GPU's tensor cores, which take bf16,
 * add 16 products at a time and truncate the sum, so errors do not average out: each is up to 2 units of the largest sum so far. */
static inline void expect_products(expected *e, const void *x, size_t ldx, const void *w, size_t k, int wide) {
    for (size_t r = 0; r < e->rows; r++)
        for (size_t c = 0; c < e->cols; c++) {
            double sum = 0.0, squares = 0.0, partial = 0.0, last = 0.0, most = 0.0;
            for (size_t i = 0; i < k; i++) {
                last = get(x, r * ldx + i, wide) * get(w, c * k + i, wide);
                sum += last;
                squares += last * last;
                partial += sum * sum; /* each addition rounds by a unit of the sum so far */
                most = fmax(most, fabs(sum));
            }
            expect(e, r * e->cols + c, sum, sum - last, sqrt(fmax(squares, partial / ((double)k + 2))), (double)k + 2, 1);
            if (tensor_cores && !wide) e->tolerance[r * e->cols + c] += 2 * unit * most * (double)((k + 15) / 16);
        }
}
/* the epilogue applied to sums; y_before: the values that ADD adds to */
static inline void finish(expected *out, const expected *sums, const float *bias, const float *y_before, vk_epilogue epilogue, int wide) {
    for (size_t i = 0; i < out->rows * out->cols; i++) {
        double add = bias ? (double)bias[i % out->cols] : 0.0, v[2], slack = sums->tolerance[i];
        v[0] = sums->want[i] + add;
        v[1] = sums->bad[i] + add;
        if (epilogue == VK_QUICKGELU) for (int j = 0; j < 2; j++) v[j] = v[j] / (1.0 + exp(-1.702 * v[j]));
        if (epilogue == VK_GELU) for (int j = 0; j < 2; j++) v[j] = 0.5 * v[j] * erfc(-v[j] / sqrt(2.0));
        if (epilogue == VK_GELU_TANH)
            for (int j = 0; j < 2; j++) v[j] = 0.5 * v[j] * (1.0 + tanh(0.7978845608028654 * (v[j] + 0.044715 * v[j] * v[j] * v[j])));
        if (epilogue == VK_ADD_F32) for (int j = 0; j < 2; j++) v[j] += (double)y_before[i];
        expect(out, i, v[0], v[1], fabs(v[0]) + fabs(add), 8, wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32);
        out->tolerance[i] += slack * 1.2; /* the slopes of all three GELUs are below 1.2 */
        if (!wide && v[0] != sums->want[i] + add && epilogue != VK_ADD_F32) out->tolerance[i] += 3e-5 * fabs(v[0]); /* GELUs before bf16 */
        if (epilogue == VK_GELU) out->tolerance[i] += 1.5e-7 * (fabs(v[0]) + fabs(sums->want[i] + add)); /* of its approximation */
    }
}
/* Attention of one query of one head over `keys` keys; keys and values [positions, ld] from column `first` on. Damaged: the last key is not seen. `rounds`: the weights
 * are rounded to bf16 before they meet the values, as in the tiles of attention over many queries. */
static inline void expect_attention(expected *e, size_t at, const void *q, size_t q_at, const void *k, const void *v, size_t ld, size_t first,
                                    int keys, int head_dim, int rounds, int wide) {
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
        expect(e, at + (size_t)i, want, (want - last) / (keys > 1 ? 1.0 - p[keys - 1] / sum : 1.0), size * (3.0 + spread / sqrt((double)head_dim)), keys + 8, wide);
        if (rounds) e->tolerance[at + (size_t)i] += SAFETY * bf16_unit * sqrt(squares);
    }
    free(p);
}
#endif
