/* softmax.h - turns scores into weights: the softmax of >>attention on the CPU, one block of keys at a time
 *
 * Part of section >>gemm in vlmprof_kernels.cu, because each GEMM kernel has its own softmax. */
#ifndef VK_CPU_SOFTMAX_H
#define VK_CPU_SOFTMAX_H

/* the state of a query after the keys so far */
typedef struct vk_met { float most, sum; } vk_met;
/* Turns one query's scores for a block of keys into unnormalised weights of the compute type. scores: groups of 32
 * keys, `step` floats apart. The first `live` keys count; the others up to `keys` (a multiple of 32) get weight 0.
 * Scores times `scale` are exponents of 2. Returns the factor for all earlier sums. */
typedef float (*vk_soften)(vk_met *met, void *weights, const float *scores, size_t step, int live, int keys,
                           float scale);

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
static VK_CLONES float vk_soften_plain(vk_met *met, void *weights, const float *scores, size_t step, int live, int keys,
                                       float scale, int wide) {
    float most = met->most, sum = 0.0f, before;
    for (int j = 0; j < live; j += VK_PAD) {
        const float *s = scores + (size_t)(j / VK_PAD) * step;
        int count = live - j < VK_PAD ? live - j : VK_PAD;
        EACH_MAX(i, count, most) most = s[i] > most ? s[i] : most;
    }
    before = most > met->most ? vk_exp2_below((met->most - most) * scale) : 1.0f;
    for (int j = 0; j < keys; j += VK_PAD) {
        const float *s = scores + (size_t)(j / VK_PAD) * step;
        float e[VK_PAD];
        int count = live - j < 0 ? 0 : live - j < VK_PAD ? live - j : VK_PAD, dead = VK_PAD - count;
        EACH(i, count) e[i] = vk_exp2_below((s[i] - most) * scale);
        EACH(i, dead) e[count + i] = 0.0f;
        EACH_SUM(i, VK_PAD, sum) sum += e[i];
        EACH(i, VK_PAD) vk_put(weights, (size_t)(j + i), e[i], wide);
    }
    met->most = most;
    met->sum = met->sum * before + sum;
    return before;
}
static float vk_soften_bf16(vk_met *met, void *weights, const float *scores, size_t step, int live, int keys,
                            float scale) {
    return vk_soften_plain(met, weights, scores, step, live, keys, scale, 0);
}
static float vk_soften_f32(vk_met *met, void *weights, const float *scores, size_t step, int live, int keys,
                           float scale) {
    return vk_soften_plain(met, weights, scores, step, live, keys, scale, 1);
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
VK_T512DQ VK_INLINE float vk_most_avx512(float most, const float *scores, size_t step, int live) {
    __m512 first = _mm512_set1_ps(most), second = first;
    int j = 0;
    for (; j + VK_PAD <= live; j += VK_PAD, scores += step) {
        first = _mm512_max_ps(_mm512_loadu_ps(scores), first);
        second = _mm512_max_ps(_mm512_loadu_ps(scores + 16), second);
    }
    if (j < live) {
        first = _mm512_mask_max_ps(first, vk_first_lanes(live - j), _mm512_loadu_ps(scores), first);
        second = _mm512_mask_max_ps(second, vk_first_lanes(live - j - 16), _mm512_loadu_ps(scores + 16), second);
    }
    return _mm512_reduce_max_ps(_mm512_max_ps(first, second));
}
/* 32 weights; the two formats differ only in rounding */
#define VK_SOFTEN_AVX512(name, target, round) \
    target static float name(vk_met *met, void *weights, const float *scores, size_t step, int live, int keys, \
                             float scale) { \
        float most = vk_most_avx512(met->most, scores, step, live), before = 1.0f; \
        const __m512 top = _mm512_set1_ps(most), by = _mm512_set1_ps(scale); \
        __m512 sum = _mm512_setzero_ps(), more = sum; \
        char *to = (char *)weights; \
        for (int j = 0; j < keys; j += VK_PAD, scores += step, to += 2 * VK_PAD) { \
            __m512 first = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(scores), top), by), \
                   second = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(scores + 16), top), by); \
            first = vk_exp2_avx512(first); \
            second = vk_exp2_avx512(second); \
            if (live - j < VK_PAD) { \
                first = _mm512_maskz_mov_ps(vk_first_lanes(live - j), first); \
                second = _mm512_maskz_mov_ps(vk_first_lanes(live - j - 16), second); \
            } \
            sum = _mm512_add_ps(sum, first); \
            more = _mm512_add_ps(more, second); \
            _mm512_storeu_si512(to, round(first, second)); \
        } \
        if (most > met->most) before = _mm512_cvtss_f32(vk_exp2_avx512(_mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps( \
            met->most), top), by))); \
        met->most = most; \
        met->sum = met->sum * before + _mm512_reduce_add_ps(_mm512_add_ps(sum, more)); \
        return before; \
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
