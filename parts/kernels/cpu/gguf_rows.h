/* gguf_rows.h - products of a row of inputs and a panel of GGUF blocks, part of section >>gemm in
 * vlmprof_kernels.cu
 *
 * Panels contain the integers and scales of the file, so values do not change. The integers have the order described in
 * quant_rows.h. A panel has 32 rows of weights, in blocks of 32 values of k:
 *   Q8_0  32 scales (fp16), 8-bit integers: weight = scale * integer
 *   Q4_0  32 scales (fp16), 4-bit integers: weight = scale * (integer - 8)
 * or in blocks of 256 values, eight times 32:
 *   Q4_K  32 d (fp16), 32 dmin (fp16), then each time 32 s and 32 m (8 bits, unsigned), 4-bit integers:
 *         weight = d * s * integer - dmin * m
 *   Q6_K  32 d (fp16), then each time twice 32 s (8 bits, one per 16 values), 8-bit integers from the file's 6 bits:
 *         weight = d * s * integer
 * Inputs are vk_fine for 4 bits: their offset is -8 times their sum. */
#ifndef VK_GGUF_ROWS_H
#define VK_GGUF_ROWS_H

enum {
    VK_WORDS_8 = VK_PAD * VK_QUANT_BLOCK, VK_WORDS_4 = VK_WORDS_8 / 2, VK_HALVES = VK_PAD * 2, /* bytes */
    VK_BLOCKS_A_SUPER = VK_SUPER_BLOCK / VK_QUANT_BLOCK
};
/* sums f32 [32] of one row of `blocks` blocks of 32 */
typedef void (*vk_blocks_row)(float *sums, const vk_fine *x, const char *panel, int blocks, int format);

/* fp16 -> f32 */
VK_INLINE float vk_h2f(uint16_t half) {
    const uint32_t size = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t word = size << 13;
    float value;
    memcpy(&value, &word, 4);
    value *= 5.192296858534828e33f; /* 2^112 */
    memcpy(&word, &value, 4);
    word = (size >= 0x7c00u ? size << 13 | 0x7f800000u : word) | sign;
    memcpy(&value, &word, 4);
    return value;
}
/* the integers of the next 32 values, and their scales: weight = scale * integer - least */
typedef struct vk_block_at { const char *words; float scale[2][VK_PAD], least[VK_PAD]; } vk_block_at;
/* block `index` of a panel */
VK_INLINE void vk_block_find(vk_block_at *at, const char *panel, int index, int format) {
    const uint16_t *d;
    int super = index / VK_BLOCKS_A_SUPER, in = index % VK_BLOCKS_A_SUPER;
    if (format == VK_Q8_0 || format == VK_Q4_0) {
        panel += (size_t)index * (size_t)(VK_HALVES + (format == VK_Q8_0 ? VK_WORDS_8 : VK_WORDS_4));
        d = (const uint16_t *)(const void *)panel;
        EACH(c, VK_PAD) at->scale[0][c] = at->scale[1][c] = vk_h2f(d[c]);
        EACH(c, VK_PAD) at->least[c] = format == VK_Q4_0 ? 8.0f * at->scale[0][c] : 0.0f;
        at->words = panel + VK_HALVES;
    } else if (format == VK_Q4_K) {
        const size_t each = VK_HALVES + VK_WORDS_4;
        const uint8_t *s;
        panel += (size_t)super * (2 * VK_HALVES + VK_BLOCKS_A_SUPER * each);
        d = (const uint16_t *)(const void *)panel;
        panel += 2 * VK_HALVES + (size_t)in * each;
        s = (const uint8_t *)panel;
        EACH(c, VK_PAD) at->scale[0][c] = at->scale[1][c] = vk_h2f(d[c]) * (float)s[c];
        EACH(c, VK_PAD) at->least[c] = vk_h2f(d[VK_PAD + c]) * (float)s[VK_PAD + c];
        at->words = panel + VK_HALVES;
    } else {
        const size_t each = VK_HALVES + VK_WORDS_8;
        const int8_t *s;
        panel += (size_t)super * (VK_HALVES + VK_BLOCKS_A_SUPER * each);
        d = (const uint16_t *)(const void *)panel;
        panel += VK_HALVES + (size_t)in * each;
        s = (const int8_t *)panel;
        for (int half = 0; half < 2; half++)
            EACH(c, VK_PAD) at->scale[half][c] = vk_h2f(d[c]) * (float)s[half * VK_PAD + c];
        EACH(c, VK_PAD) at->least[c] = 0.0f;
        at->words = panel + VK_HALVES;
    }
}
static int vk_blocks_bits(int format) { return format == VK_Q4_0 || format == VK_Q4_K ? 4 : 8; }

/* a panel as bf16: pairs of values of k for each of 32 rows */
static VK_CLONES void vk_blocks_widen_plain(uint16_t *out, const char *panel, int k_padded, int format) {
    uint32_t *pairs = (uint32_t *)(void *)out;
    const int bits = vk_blocks_bits(format);
    vk_block_at at;
    for (int block = 0; block < k_padded / VK_QUANT_BLOCK; block++) {
        const uint32_t *words;
        vk_block_find(&at, panel, block, format);
        words = (const uint32_t *)(const void *)at.words;
        for (int k = 0; k < VK_QUANT_BLOCK; k += 2, pairs += VK_PAD) {
            const float *scale = at.scale[k / 16];
            const uint32_t *line = words + k / (bits == 8 ? 4 : 8) * VK_PAD;
            const int shift = bits == 8 ? k % 4 * 4 : k % 4 * 4 + k % 8 / 4 * 4;
            if (bits == 8)
                EACH(c, VK_PAD) {
                    uint32_t word = line[c] >> shift;
                    pairs[c] = vk_f2b(scale[c] * (float)(int8_t)word)
                               | (uint32_t)vk_f2b(scale[c] * (float)(int8_t)(word >> 16)) << 16;
                }
            else
                EACH(c, VK_PAD) {
                    uint32_t word = line[c] >> shift;
                    float low = scale[c] * (float)(word & 15), high = scale[c] * (float)(word >> 16 & 15);
                    pairs[c] = vk_f2b(low - at.least[c]) | (uint32_t)vk_f2b(high - at.least[c]) << 16;
                }
        }
    }
}

#ifdef VK_X86
/* 16 values to bf16 in the low halves of words, as in vk_f2b. A value is NaN only if its block's scale is NaN, and it
 * then stays NaN. */
VK_T512 VK_INLINE __m512i vk_f2b_512(__m512 values) {
    const __m512i word = _mm512_castps_si512(values);
    const __m512i half = _mm512_and_si512(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(word, _mm512_add_epi32(half, _mm512_set1_epi32(0x7fff)));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
    return _mm512_srli_epi32(_mm512_mask_or_epi32(rounded, is_nan, word, _mm512_set1_epi32(0x400000)), 16);
}
VK_T512 static void vk_blocks_widen_avx512(uint16_t *out, const char *panel, int k_padded, int format) {
    const int bits = vk_blocks_bits(format);
    const __m512i mask = _mm512_set1_epi32(15);
    vk_block_at at;
    for (int block = 0; block < k_padded / VK_QUANT_BLOCK; block++) {
        vk_block_find(&at, panel, block, format);
        for (int k = 0; k < VK_QUANT_BLOCK; k += 2)
            for (int c = 0; c < VK_PAD; c += 16, out += 32) {
                const __m512 scale = _mm512_loadu_ps(at.scale[k / 16] + c), least = _mm512_loadu_ps(at.least + c);
                __m512i word = _mm512_loadu_si512(at.words + 4 * (k / (bits == 8 ? 4 : 8) * VK_PAD + c)), first, second;
                __m512 low, high;
                if (bits == 8) {
                    word = _mm512_srl_epi32(word, _mm_cvtsi32_si128(k % 4 * 4));
                    first = _mm512_srai_epi32(_mm512_slli_epi32(word, 24), 24);
                    second = _mm512_srai_epi32(_mm512_slli_epi32(word, 8), 24);
                } else {
                    word = _mm512_srl_epi32(word, _mm_cvtsi32_si128(k % 4 * 4 + k % 8 / 4 * 4));
                    first = _mm512_and_si512(word, mask);
                    second = _mm512_and_si512(_mm512_srli_epi32(word, 16), mask);
                }
                low = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(first));
                high = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(second));
                if (bits == 4) { low = _mm512_sub_ps(low, least); high = _mm512_sub_ps(high, least); }
                _mm512_storeu_si512(out, _mm512_or_si512(vk_f2b_512(low), _mm512_slli_epi32(vk_f2b_512(high), 16)));
            }
    }
}
#endif
static void vk_blocks_widen(uint16_t *out, const char *panel, int k_padded, int format) {
#ifdef VK_X86
    if (vk_has_avx512()) { vk_blocks_widen_avx512(out, panel, k_padded, format); return; }
#endif
    vk_blocks_widen_plain(out, panel, k_padded, format);
}

/* plain C, for any processor */
VK_INLINE void vk_block_dot8(int32_t *part, const int16_t *x, const uint32_t *words, int count) {
    for (const int16_t *v = x; v < x + count; v += 4, words += VK_PAD)
        EACH(c, VK_PAD) {
            uint32_t word = words[c];
            part[c] += v[0] * (int8_t)word + v[1] * (int8_t)(word >> 16) + v[2] * (int8_t)(word >> 8)
                       + v[3] * (int8_t)(word >> 24);
        }
}
VK_INLINE void vk_block_dot4(int32_t *part, const int16_t *x, const uint32_t *words) {
    for (const int16_t *v = x; v < x + VK_QUANT_BLOCK; v += 8, words += VK_PAD)
        EACH(c, VK_PAD) {
            int32_t word = (int32_t)words[c];
            part[c] += v[0] * (word & 15) + v[1] * (word >> 16 & 15) + v[2] * (word >> 8 & 15)
                       + v[3] * (word >> 24 & 15) + v[4] * (word >> 4 & 15) + v[5] * (word >> 20 & 15)
                       + v[6] * (word >> 12 & 15) + v[7] * (word >> 28 & 15);
        }
}
static VK_CLONES void vk_blocks_row_plain(float *sums, const vk_fine *x, const char *panel, int blocks, int format) {
    float total[VK_PAD] = { 0.0f };
    vk_block_at at;
    for (int block = 0; block < blocks; block++, x++) {
        const uint32_t *words;
        const float all = (float)(x->offset / -8) * x->scale; /* sum of the inputs */
        vk_block_find(&at, panel, block, format);
        words = (const uint32_t *)(const void *)at.words;
        if (vk_blocks_bits(format) == 4) {
            int32_t part[VK_PAD] = { 0 };
            vk_block_dot4(part, x->value, words);
            EACH(c, VK_PAD) total[c] += at.scale[0][c] * x->scale * (float)part[c] - at.least[c] * all;
        } else
            for (int half = 0; half < 2; half++) {
                int32_t part[VK_PAD] = { 0 };
                vk_block_dot8(part, x->value + half * 16, words + half * 4 * VK_PAD, 16);
                EACH(c, VK_PAD) total[c] += at.scale[half][c] * x->scale * (float)part[c];
            }
    }
    memcpy(sums, total, sizeof total);
}

#ifdef VK_X86
#define VK_HALVES_512(from) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from)))
#define VK_BYTES_512(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define VK_PAIR_512(from) _mm512_set1_epi32(vk_word(from))
/* DOT(sum, a, b): sum + products of pairs of 16 bits. The tricks of 4 bits are those of quant_rows.h. */
#define VK_BLOCKS_512(of, TARGET, DOT) \
    /* 16 of the 32 sums of `count` values of 8 bits */ \
    TARGET VK_INLINE __m512i vk_dot8_##of(const int16_t *x, const char *words, const int count) { \
        __m512i even = _mm512_setzero_si512(), odd = even; \
        VK_UNROLL for (int g = 0; g < count; g += 4, words += 128) { \
            __m512i w = _mm512_loadu_si512(words); \
            even = DOT(even, _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8), VK_PAIR_512(x + g)); \
            odd = DOT(odd, _mm512_srai_epi16(w, 8), VK_PAIR_512(x + g + 2)); \
        } \
        return _mm512_add_epi32(even, odd); \
    } \
    TARGET VK_INLINE __m512i vk_dot4_##of(const int16_t *x, const char *words, __m512i start) { \
        const __m512i first = _mm512_set1_epi16(0xf), second = _mm512_set1_epi16(0xf0), \
                      third = _mm512_set1_epi16(0xf00); \
        __m512i a = start, b = _mm512_setzero_si512(), c = b, d = b; \
        VK_UNROLL for (int g = 0; g < VK_QUANT_BLOCK; g += 8, words += 128) { \
            __m512i w = _mm512_loadu_si512(words); \
            a = DOT(a, _mm512_and_si512(w, first), VK_PAIR_512(x + g)); \
            b = DOT(b, _mm512_and_si512(w, third), VK_PAIR_512(x + g + 2)); \
            c = DOT(c, _mm512_and_si512(w, second), VK_PAIR_512(x + g + 4)); \
            d = DOT(d, _mm512_srli_epi16(w, 12), VK_PAIR_512(x + g + 6)); \
        } \
        a = _mm512_add_epi32(a, _mm512_add_epi32(_mm512_srai_epi32(b, 8), _mm512_srai_epi32(c, 4))); \
        return _mm512_add_epi32(a, d); \
    } \
    TARGET static void vk_rows_q8_0_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        __m512 total[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() }; \
        for (; blocks > 0; blocks--, x++, panel += VK_HALVES + VK_WORDS_8) \
            VK_UNROLL for (int h = 0; h < 2; h++) \
                total[h] = _mm512_fmadd_ps(_mm512_mul_ps(VK_HALVES_512(panel + 32 * h), _mm512_set1_ps(x->scale)), \
                    _mm512_cvtepi32_ps(vk_dot8_##of(x->value, panel + VK_HALVES + 64 * h, VK_QUANT_BLOCK)), total[h]); \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    } \
    TARGET static void vk_rows_q4_0_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        __m512 total[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() }; \
        for (; blocks > 0; blocks--, x++, panel += VK_HALVES + VK_WORDS_4) \
            VK_UNROLL for (int h = 0; h < 2; h++) { \
                __m512i sum = vk_dot4_##of(x->value, panel + VK_HALVES + 64 * h, _mm512_set1_epi32(x->offset)); \
                total[h] = _mm512_fmadd_ps(_mm512_mul_ps(VK_HALVES_512(panel + 32 * h), _mm512_set1_ps(x->scale)), \
                                           _mm512_cvtepi32_ps(sum), total[h]); \
            } \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    } \
    TARGET static void vk_rows_q4_k_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        __m512 total[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() }; \
        for (; blocks > 0; blocks -= VK_BLOCKS_A_SUPER) { \
            __m512 d[2] = { VK_HALVES_512(panel), VK_HALVES_512(panel + 32) }, \
                   least[2] = { VK_HALVES_512(panel + 64), VK_HALVES_512(panel + 96) }; \
            panel += 2 * VK_HALVES; \
            for (int b = 0; b < VK_BLOCKS_A_SUPER; b++, x++, panel += VK_HALVES + VK_WORDS_4) \
                VK_UNROLL for (int h = 0; h < 2; h++) { \
                    __m512i sum = vk_dot4_##of(x->value, panel + VK_HALVES + 64 * h, _mm512_setzero_si512()); \
                    __m512 s = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(VK_BYTES_512(panel + 16 * h))), \
                           m = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(VK_BYTES_512(panel + 32 + 16 * h))); \
                    s = _mm512_mul_ps(_mm512_mul_ps(d[h], s), _mm512_set1_ps(x->scale)); \
                    m = _mm512_mul_ps(least[h], m); \
                    total[h] = _mm512_fmadd_ps(s, _mm512_cvtepi32_ps(sum), total[h]); \
                    total[h] = _mm512_fnmadd_ps(m, _mm512_set1_ps((float)(x->offset / -8) * x->scale), total[h]); \
                } \
        } \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    } \
    TARGET static void vk_rows_q6_k_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        __m512 total[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() }; \
        for (; blocks > 0; blocks -= VK_BLOCKS_A_SUPER) { \
            __m512 d[2] = { VK_HALVES_512(panel), VK_HALVES_512(panel + 32) }; \
            panel += VK_HALVES; \
            for (int b = 0; b < VK_BLOCKS_A_SUPER; b++, x++, panel += VK_HALVES + VK_WORDS_8) \
                VK_UNROLL for (int h = 0; h < 4; h++) { \
                    const int side = h % 2, half = h / 2; \
                    __m512i sum = vk_dot8_##of(x->value + 16 * half, \
                                               panel + VK_HALVES + 64 * side + 4 * 128 * half, 16); \
                    __m512 s = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(VK_BYTES_512(panel + 32 * half + 16 * side))); \
                    s = _mm512_mul_ps(_mm512_mul_ps(d[side], s), _mm512_set1_ps(x->scale)); \
                    total[side] = _mm512_fmadd_ps(s, _mm512_cvtepi32_ps(sum), total[side]); \
                } \
        } \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    } \
    static void vk_blocks_row_##of(float *sums, const vk_fine *x, const char *panel, int blocks, int format) { \
        if (format == VK_Q8_0) vk_rows_q8_0_##of(sums, x, panel, blocks); \
        else if (format == VK_Q4_0) vk_rows_q4_0_##of(sums, x, panel, blocks); \
        else if (format == VK_Q4_K) vk_rows_q4_k_##of(sums, x, panel, blocks); \
        else vk_rows_q6_k_##of(sums, x, panel, blocks); \
    }
#define VK_DOT_512(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
VK_BLOCKS_512(avx512, VK_T512, VK_DOT_512)
VK_BLOCKS_512(vnni, VK_TVNNI, _mm512_dpwssd_epi32)
#undef VK_DOT_512
#undef VK_BLOCKS_512
#undef VK_PAIR_512
#endif
#endif
