/* softmax.h - turns scores into weights: the softmax of >>attention on the CPU, one block of keys at a time
 *
 * Part of section >>gemm in vlmprof_kernels.cu, because each GEMM kernel has its own softmax. */
#ifndef VK_CPU_SOFTMAX_H
#define VK_CPU_SOFTMAX_H

enum { VK_ATTEND_KEYS = 256 /* keys per block */ };
/* the queries of a strip */
typedef struct vk_met {
    float most[VK_ROWS_MAX], sum[VK_ROWS_MAX]; /* of the keys so far */
    float before[VK_ROWS_MAX];                 /* the factor of all earlier sums, after a block */
    int live[VK_ROWS_MAX];                     /* of a block's keys, these first ones count; the others get weight 0 */
} vk_met;
/* Turns the scores of queries row .. row + 3 for a block of keys into unnormalised weights of the compute type.
 * scores: tiles of [32 queries, 32 keys], of which `keys` (a multiple of 32) are used; weights: [32,
 * VK_ATTEND_KEYS]. Scores times `scale` are exponents of 2. */
typedef void (*vk_soften)(vk_met *met, int row, void *weights, const float *scores, int keys, float scale);
/* the rest of a block's softmax, which the products of the next block may do four queries at a time */
typedef struct vk_softening {
    vk_soften soften;
    vk_met *met;
    void *weights;
    const float *scores;
    int row, rows, keys;
    float scale;
} vk_softening;
/* scores of 32 queries [32, width] and `count` keys, in panels of 32; calls vk_soften_next meanwhile */
typedef void (*vk_scores)(float *scores, const void *queries, size_t width, const void *k_panels, int count,
                          vk_softening *softening);
VK_INLINE void vk_soften_next(vk_softening *next) {
    if (next->row >= next->rows) return;
    next->soften(next->met, next->row, next->weights, next->scores, next->keys, next->scale);
    next->row += 4;
}

/* 2^x within 3e-7, for x of at most 0; 0 below -126; NaN for NaN. The polynomial is the minimax one of degree 5 on
 * [0, 1), whose own error is 7.5e-8. */
FN float vk_exp2_below(float x) {
    float whole, part, p, power;
    part = x >= -127.0f ? x : -127.0f;
    int32_t exponent = (int32_t)part;
    whole = (float)exponent;
    exponent -= whole > part;
    part -= (float)exponent;
    p = 1.877576673e-3f;
    p = p * part + 8.989340095e-3f;
    p = p * part + 5.582631805e-2f;
    p = p * part + 2.401536170e-1f;
    p = p * part + 6.931530732e-1f;
    p = p * part + 9.999999251e-1f;
    uint32_t bits = (uint32_t)(exponent + 127 > 0 ? exponent + 127 : 0) << 23;
    memcpy(&power, &bits, 4);
    return x == x ? p * power : x;
}
static VK_CLONES void vk_soften_plain(vk_met *met, int row, void *weights, const float *scores, int keys, float scale,
                                      int wide) {
    for (int r = row; r < row + 4; r++) {
        const float *tile = scores + r * VK_PAD;
        float most = met->most[r], sum = 0.0f;
        for (int j = 0; j < met->live[r]; j += VK_PAD) {
            const float *s = tile + j * VK_ROWS_MAX;
            int count = met->live[r] - j < VK_PAD ? met->live[r] - j : VK_PAD;
            EACH_MAX(i, count, most) most = s[i] > most ? s[i] : most;
        }
        for (int j = 0; j < keys; j += VK_PAD) {
            const float *s = tile + j * VK_ROWS_MAX;
            float e[VK_PAD];
            int left = met->live[r] - j, count = left < 0 ? 0 : left < VK_PAD ? left : VK_PAD, dead = VK_PAD - count;
            EACH(i, count) e[i] = vk_exp2_below((s[i] - most) * scale);
            EACH(i, dead) e[count + i] = 0.0f;
            EACH_SUM(i, VK_PAD, sum) sum += e[i];
            EACH(i, VK_PAD) vk_put(weights, (size_t)r * VK_ATTEND_KEYS + (size_t)(j + i), e[i], wide);
        }
        met->before[r] = most > met->most[r] ? vk_exp2_below((met->most[r] - most) * scale) : 1.0f;
        met->most[r] = most;
        met->sum[r] = met->sum[r] * met->before[r] + sum;
    }
}
static void vk_soften_bf16(vk_met *met, int row, void *weights, const float *scores, int keys, float scale) {
    vk_soften_plain(met, row, weights, scores, keys, scale, 0);
}
static void vk_soften_f32(vk_met *met, int row, void *weights, const float *scores, int keys, float scale) {
    vk_soften_plain(met, row, weights, scores, keys, scale, 1);
}

#ifdef VK_X86
#define VK_T512DQ __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define VK_T512DQBF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
/* 2^x within 3e-6, for x of at most 0: small compared with rounding the weights to bf16, 2e-3. A minimax polynomial of
 * degree 4 computes the fractional part; vscalefps applies the integer part and returns 0 on underflow. */
VK_T512DQ VK_INLINE __m512 vk_exp2_avx512(__m512 x) {
    __m512 part = _mm512_reduce_ps(x, 9), p = _mm512_set1_ps(1.353416791e-2f); /* 9: x - floor(x) */
    p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(5.201146062e-2f));
    p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(2.414427569e-1f));
    p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(6.930038345e-1f));
    p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(1.000002593f));
    return _mm512_scalef_ps(p, x);
}
VK_T512DQ VK_INLINE __mmask16 vk_first_lanes(int count) {
    return (__mmask16)(count <= 0 ? 0u : count >= 16 ? 0xffffu : (1u << count) - 1u);
}
VK_T512DQ VK_INLINE __m512 vk_most_avx512(const float *scores, int live) {
    __m512 first = _mm512_set1_ps(-3e38f), second = first;
    int j = 0;
    for (; j + VK_PAD <= live; j += VK_PAD, scores += VK_ROWS_MAX * VK_PAD) {
        first = _mm512_max_ps(_mm512_loadu_ps(scores), first);
        second = _mm512_max_ps(_mm512_loadu_ps(scores + 16), second);
    }
    if (j < live) {
        first = _mm512_mask_max_ps(first, vk_first_lanes(live - j), _mm512_loadu_ps(scores), first);
        second = _mm512_mask_max_ps(second, vk_first_lanes(live - j - 16), _mm512_loadu_ps(scores + 16), second);
    }
    return _mm512_max_ps(first, second);
}
/* the maximum or sum of each of four vectors: together they take half as long as one after another */
#define VK_FOUR_AVX512(name, two, half, quarter) \
    VK_T512DQ VK_INLINE __m128 name(const __m512 of[4]) { \
        __m512 first = two(_mm512_unpacklo_ps(of[0], of[1]), _mm512_unpackhi_ps(of[0], of[1])), \
               second = two(_mm512_unpacklo_ps(of[2], of[3]), _mm512_unpackhi_ps(of[2], of[3])); \
        first = two(_mm512_shuffle_ps(first, second, 0x44), _mm512_shuffle_ps(first, second, 0xee)); \
        __m256 four = half(_mm512_castps512_ps256(first), _mm512_extractf32x8_ps(first, 1)); \
        return quarter(_mm256_castps256_ps128(four), _mm256_extractf128_ps(four, 1)); \
    }
VK_FOUR_AVX512(vk_most_of_four, _mm512_max_ps, _mm256_max_ps, _mm_max_ps)
VK_FOUR_AVX512(vk_sum_of_four, _mm512_add_ps, _mm256_add_ps, _mm_add_ps)
/* 32 weights at a time; the two formats differ only in rounding */
#define VK_SOFTEN_AVX512(name, target, round) \
    target static void name(vk_met *met, int row, void *weights, const float *scores, int keys, float scale) { \
        const __m512 by = _mm512_set1_ps(scale); \
        const __m128 old = _mm_loadu_ps(met->most + row); \
        __m512 of[4]; \
        scores += row * VK_PAD; \
        for (int r = 0; r < 4; r++) of[r] = vk_most_avx512(scores + r * VK_PAD, met->live[row + r]); \
        const __m128 most = _mm_max_ps(vk_most_of_four(of), old); \
        const __m128 less = _mm512_castps512_ps128( \
            vk_exp2_avx512(_mm512_castps128_ps512(_mm_mul_ps(_mm_sub_ps(old, most), _mm_set1_ps(scale))))); \
        const __m128 before = _mm_mask_mov_ps(_mm_set1_ps(1.0f), _mm_cmp_ps_mask(most, old, _CMP_GT_OQ), less); \
        _mm_storeu_ps(met->most + row, most); \
        _mm_storeu_ps(met->before + row, before); \
        for (int r = 0; r < 4; r++) { \
            const __m512 top = _mm512_set1_ps(met->most[row + r] * scale); \
            const float *s = scores + r * VK_PAD; \
            char *to = (char *)weights + (size_t)(row + r) * VK_ATTEND_KEYS * 2; \
            __m512 sum = _mm512_setzero_ps(), more = sum; \
            for (int j = 0; j < keys; j += VK_PAD, s += VK_ROWS_MAX * VK_PAD, to += 2 * VK_PAD) { \
                const int left = met->live[row + r] - j; \
                _mm_prefetch(s + 4 * VK_PAD, _MM_HINT_T0); \
                _mm_prefetch(s + 4 * VK_PAD + 16, _MM_HINT_T0); \
                __m512 first = vk_exp2_avx512(_mm512_fmsub_ps(_mm512_loadu_ps(s), by, top)), \
                       second = vk_exp2_avx512(_mm512_fmsub_ps(_mm512_loadu_ps(s + 16), by, top)); \
                if (left < VK_PAD) { \
                    first = _mm512_maskz_mov_ps(vk_first_lanes(left), first); \
                    second = _mm512_maskz_mov_ps(vk_first_lanes(left - 16), second); \
                } \
                sum = _mm512_add_ps(sum, first); \
                more = _mm512_add_ps(more, second); \
                _mm512_storeu_si512(to, round(first, second)); \
            } \
            of[r] = _mm512_add_ps(sum, more); \
        } \
        _mm_storeu_ps(met->sum + row, \
                      _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(met->sum + row), before), vk_sum_of_four(of))); \
    }
/* rounds to nearest even, like vk_f2b */
VK_T512DQ VK_INLINE __m256i vk_round_avx512(__m512 values) {
    __m512i bits = _mm512_castps_si512(values),
            odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}
#define VK_ROUND_BY_HAND(first, second) \
    _mm512_inserti64x4(_mm512_castsi256_si512(vk_round_avx512(first)), vk_round_avx512(second), 1)
#define VK_ROUND_BF16(first, second) (__m512i) _mm512_cvtne2ps_pbh(second, first)
VK_SOFTEN_AVX512(vk_soften_avx512, VK_T512DQ, VK_ROUND_BY_HAND)
VK_SOFTEN_AVX512(vk_soften_avx512bf16, VK_T512DQBF16, VK_ROUND_BF16)
#endif
#endif
