/* quant_rows.h - products of a row of inputs and a panel of integers, part of section >>gemm in vlmprof_kernels.cu
 *
 * A panel is 32 rows of weights, in blocks of 32 values of k. A block has 32 scales (bf16, one per row), then the
 * integers, with 4 bytes of a row followed by 4 bytes of the next row. 8 bits: weight = scale * integer; the bytes are
 * values 0, 2, 1, 3 of four. 4 bits: weight = scale * (integer - 8); the low halves of the bytes are values 0, 2, 1, 3
 * of eight, the high halves 4, 6, 5, 7. So even and odd bytes are pairs of neighbours, as 16-bit products need them.
 *
 * Inputs become integers as well, block by block, and sums of a block are exact. One row (decode) waits for memory, so
 * its inputs have 16 bits and a power of two as scale. Values of at least 1/128 of the block's largest keep their bf16
 * value, and the others are off by at most 2^-15 of the largest. Many rows: the same with AVX2 and AVX-VNNI; 8 bits
 * with SDOT, as here, and with AVX-512 VNNI and AMX, as in quant_bytes.h. */
#ifndef VK_QUANT_ROWS_H
#define VK_QUANT_ROWS_H

enum { VK_QUANT_BYTES_8 = VK_PAD * (2 + VK_QUANT_BLOCK), VK_QUANT_BYTES_4 = VK_PAD * (2 + VK_QUANT_BLOCK / 2) };
/* `offset` undoes the 8 that is added to 4-bit weights */
typedef struct vk_fine { float scale; int32_t offset; int16_t value[VK_QUANT_BLOCK]; } vk_fine;
/* sums f32 [32] of one row of `blocks` blocks */
typedef void (*vk_quant_row)(float *sums, const vk_fine *x, const char *panel, int blocks);
/* Products of many rows that need no other panel: inputs have `bytes` per block, made a row at a time by `convert`;
 * sums f32 [rows, 32]. */
typedef struct vk_quant_blocks {
    int (*present)(void);
    vp_activations inputs;
    size_t bytes;
    void (*convert)(void *to, const uint16_t *x, int blocks, int bits);
    void (*multiply)(float *sums, const void *x, const char *panel, int blocks, int rows, int bits);
} vk_quant_blocks;
/* vk_block_rows_<of>: calls vk_some_<of> for up to six rows at a time, with constants for their number and the bits */
#define VK_SOME_ROWS(of, bits) \
    switch (rows) { \
    case 1: vk_some_##of(1, bits, y, xr, blocks, panel, blocks); break; \
    case 2: vk_some_##of(2, bits, y, xr, blocks, panel, blocks); break; \
    case 3: vk_some_##of(3, bits, y, xr, blocks, panel, blocks); break; \
    case 4: vk_some_##of(4, bits, y, xr, blocks, panel, blocks); break; \
    case 5: vk_some_##of(5, bits, y, xr, blocks, panel, blocks); break; \
    default: vk_some_##of(6, bits, y, xr, blocks, panel, blocks); \
    }
#define VK_BLOCK_ROWS(of, TARGET, input) \
    TARGET static void vk_block_rows_##of(float *y, const void *x, const char *panel, int blocks, int rows, \
                                          int bits) { \
        for (const input *xr = (const input *)x; rows > 0; rows -= 6, xr += 6 * blocks, y += 6 * VK_PAD) \
            if (bits == 8) VK_SOME_ROWS(of, 8) \
            else VK_SOME_ROWS(of, 4) \
    }

/* rounds to the nearest; |value| is less than 2^22 */
VK_INLINE int32_t vk_whole(float value) {
    int32_t word;
    value += 12582912.0f;
    memcpy(&word, &value, 4);
    return word - 0x4b400000;
}
VK_INLINE int vk_quant_most(const uint16_t *x) {
    int most = 0;
    VK_PRAGMA(omp simd reduction(max : most)) for (int i = 0; i < VK_QUANT_BLOCK; i++)
        most = (x[i] & 0x7fff) > most ? x[i] & 0x7fff : most;
    return most;
}
/* Inputs of a block with an infinity or NaN become NaN, so they stay visible. Their integers are meaningless, and their
 * sum may wrap. */
static VK_CLONES void vk_quant_fine(vk_fine *to, const uint16_t *x, int blocks, int bits) {
    for (int b = 0; b < blocks; b++, x += VK_QUANT_BLOCK, to++) {
        int exponent = vk_quant_most(x) >> 7;
        uint32_t scale, inverse, sum = 0;
        float times;
        if (exponent < 15) exponent = 15;
        scale = exponent == 255 ? 0x7fc00000u : (uint32_t)(exponent - 14) << 23;
        inverse = (uint32_t)(268 - exponent) << 23;
        memcpy(&to->scale, &scale, 4);
        memcpy(&times, &inverse, 4);
        VK_PRAGMA(omp simd reduction(+ : sum)) for (int i = 0; i < VK_QUANT_BLOCK; i++) {
            int32_t value = vk_whole(vk_b2f(x[i]) * times);
            to->value[i] = (int16_t)value;
            sum += (uint32_t)value;
        }
        to->offset = bits == 4 && exponent < 255 ? -8 * (int32_t)sum : 0;
    }
}

/* plain C, for any processor */
static VK_CLONES void vk_row8_plain(float *sums, const vk_fine *x, const char *panel, int blocks) {
    float total[VK_PAD] = {0.0f};
    for (; blocks > 0; blocks--, x++, panel += VK_QUANT_BYTES_8) {
        const uint16_t *scale = (const uint16_t *)(const void *)panel;
        const uint32_t *words = (const uint32_t *)(const void *)(panel + VK_PAD * 2);
        int32_t part[VK_PAD] = {0};
        for (const int16_t *v = x->value; v < x->value + VK_QUANT_BLOCK; v += 4, words += VK_PAD) EACH(c, VK_PAD) {
                uint32_t word = words[c];
                part[c] += v[0] * (int8_t)word + v[1] * (int8_t)(word >> 16) + v[2] * (int8_t)(word >> 8)
                           + v[3] * (int8_t)(word >> 24);
            }
        EACH(c, VK_PAD) total[c] += vk_b2f(scale[c]) * x->scale * (float)part[c];
    }
    memcpy(sums, total, sizeof total);
}
static VK_CLONES void vk_row4_plain(float *sums, const vk_fine *x, const char *panel, int blocks) {
    float total[VK_PAD] = {0.0f};
    for (; blocks > 0; blocks--, x++, panel += VK_QUANT_BYTES_4) {
        const uint16_t *scale = (const uint16_t *)(const void *)panel;
        const uint32_t *words = (const uint32_t *)(const void *)(panel + VK_PAD * 2);
        int32_t part[VK_PAD];
        EACH(c, VK_PAD) part[c] = x->offset;
        for (const int16_t *v = x->value; v < x->value + VK_QUANT_BLOCK; v += 8, words += VK_PAD) EACH(c, VK_PAD) {
                int32_t word = (int32_t)words[c];
                part[c] += v[0] * (word & 15) + v[1] * (word >> 16 & 15) + v[2] * (word >> 8 & 15)
                           + v[3] * (word >> 24 & 15) + v[4] * (word >> 4 & 15) + v[5] * (word >> 20 & 15)
                           + v[6] * (word >> 12 & 15) + v[7] * (word >> 28 & 15);
            }
        EACH(c, VK_PAD) total[c] += vk_b2f(scale[c]) * x->scale * (float)part[c];
    }
    memcpy(sums, total, sizeof total);
}

#ifdef VK_X86
#define VK_TVNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
/* 16 and 8 scales as f32 */
#define VK_SCALES_512(from) \
    _mm512_castsi512_ps( \
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(from))), 16))
#define VK_SCALES_256(from) \
    _mm256_castsi256_ps( \
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from))), 16))
#define VK_PAIR_512(from) _mm512_set1_epi32(vk_word(from))
VK_INLINE int32_t vk_word(const void *from) {
    int32_t word;
    memcpy(&word, from, 4);
    return word;
}

/* One row. DOT(sum, a, b): sum + products of pairs of 16 bits. Four bits: two of a word's four values are multiplied in
 * place, 16 and 256 times too large, and the sums are corrected later: 8 * 15 * 256 * 32767 is less than 2^31.
 * AHEAD(bytes): prefetches a block one page ahead on Intel, whose hardware prefetcher stops at each page (two cores of
 * a Xeon: 17 -> 25 GB/s of int8, 15 -> 23 of int4). AMD Zen 4 reads faster without it. */
#define VK_FETCH(bytes) \
    VK_UNROLL for (int line = 0; line < (bytes); line += 64) _mm_prefetch(panel + 4096 + line, _MM_HINT_T1);
#define VK_FETCH_NOTHING(bytes)
#define VK_QUANT_512(of, TARGET, DOT, AHEAD) \
    TARGET static void vk_row8_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        __m512 total[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}; \
        for (; blocks > 0; blocks--, x++, panel += VK_QUANT_BYTES_8) { \
            const char *q = panel + VK_PAD * 2; \
            __m512 scale = _mm512_set1_ps(x->scale); \
            AHEAD(VK_QUANT_BYTES_8) \
            __m512i even[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()}, odd[2] = {even[0], even[0]}; \
            VK_UNROLL for (int g = 0; g < VK_QUANT_BLOCK; g += 4, q += 128) { \
                __m512i a = VK_PAIR_512(x->value + g), b = VK_PAIR_512(x->value + g + 2); \
                VK_UNROLL for (int h = 0; h < 2; h++) { \
                    __m512i w = _mm512_loadu_si512(q + 64 * h); \
                    even[h] = DOT(even[h], _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8), a); \
                    odd[h] = DOT(odd[h], _mm512_srai_epi16(w, 8), b); \
                } \
            } \
            VK_UNROLL for (int h = 0; h < 2; h++) total[h] = \
                _mm512_fmadd_ps(_mm512_mul_ps(VK_SCALES_512(panel + 32 * h), scale), \
                                _mm512_cvtepi32_ps(_mm512_add_epi32(even[h], odd[h])), total[h]); \
        } \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    } \
    TARGET static void vk_row4_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        const __m512i first = _mm512_set1_epi16(0xf), second = _mm512_set1_epi16(0xf0), \
                      third = _mm512_set1_epi16(0xf00); \
        __m512 total[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}; \
        for (; blocks > 0; blocks--, x++, panel += VK_QUANT_BYTES_4) { \
            const char *q = panel + VK_PAD * 2; \
            __m512 scale = _mm512_set1_ps(x->scale); \
            AHEAD(VK_QUANT_BYTES_4) \
            __m512i part[2][4], offset = _mm512_set1_epi32(x->offset); \
            VK_UNROLL for (int h = 0; h < 2; h++) { \
                part[h][0] = offset; \
                part[h][1] = part[h][2] = part[h][3] = _mm512_setzero_si512(); \
            } \
            VK_UNROLL for (int g = 0; g < VK_QUANT_BLOCK; g += 8, q += 128) { \
                __m512i a = VK_PAIR_512(x->value + g), b = VK_PAIR_512(x->value + g + 2), \
                        c = VK_PAIR_512(x->value + g + 4), d = VK_PAIR_512(x->value + g + 6); \
                VK_UNROLL for (int h = 0; h < 2; h++) { \
                    __m512i w = _mm512_loadu_si512(q + 64 * h); \
                    part[h][0] = DOT(part[h][0], _mm512_and_si512(w, first), a); \
                    part[h][1] = DOT(part[h][1], _mm512_and_si512(w, third), b); \
                    part[h][2] = DOT(part[h][2], _mm512_and_si512(w, second), c); \
                    part[h][3] = DOT(part[h][3], _mm512_srli_epi16(w, 12), d); \
                } \
            } \
            VK_UNROLL for (int h = 0; h < 2; h++) { \
                __m512i sum = _mm512_add_epi32(_mm512_srai_epi32(part[h][1], 8), _mm512_srai_epi32(part[h][2], 4)); \
                sum = _mm512_add_epi32(sum, _mm512_add_epi32(part[h][0], part[h][3])); \
                total[h] = _mm512_fmadd_ps(_mm512_mul_ps(VK_SCALES_512(panel + 32 * h), scale), \
                                           _mm512_cvtepi32_ps(sum), total[h]); \
            } \
        } \
        _mm512_storeu_ps(sums, total[0]); \
        _mm512_storeu_ps(sums + 16, total[1]); \
    }
#define VK_DOT_512(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
VK_QUANT_512(avx512, VK_T512, VK_DOT_512, VK_FETCH_NOTHING)
VK_QUANT_512(vnni, VK_TVNNI, _mm512_dpwssd_epi32, VK_FETCH_NOTHING)
VK_QUANT_512(avx512_ahead, VK_T512, VK_DOT_512, VK_FETCH)
VK_QUANT_512(vnni_ahead, VK_TVNNI, _mm512_dpwssd_epi32, VK_FETCH)
#undef VK_DOT_512
#undef VK_FETCH
#undef VK_FETCH_NOTHING
#undef VK_QUANT_512
#undef VK_PAIR_512

#define VK_TAVXVNNI __attribute__((target("avx2,fma,avxvnni")))
/* AVX2 and AVX-VNNI: `count` rows of inputs, `ldx` blocks apart, and 16 of the 32 sums at a time, so that weights are
 * widened to 16 bits once for all rows. Pair 0 to 3 of eight values of k: `q` has the words of 8 columns. */
VK_TAVX2 VK_INLINE __m256i vk_pairs_256(const char *q, const int pair, const int bits) {
    const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(q + (bits == 8 ? pair / 2 * 128 : 0)));
    if (bits == 4) return _mm256_and_si256(_mm256_srli_epi16(w, pair % 2 * 8 + pair / 2 * 4), _mm256_set1_epi16(15));
    return _mm256_srai_epi16(pair % 2 ? w : _mm256_slli_epi16(w, 8), 8);
}
#define VK_QUANT_256(of, TARGET, DOT) \
    TARGET VK_INLINE void vk_some_##of(const int count, const int bits, float *y, const vk_fine *x, int ldx, \
                                       const char *panel, int blocks) { \
        const int line = bits == 8 ? 256 : 128; /* bytes of 8 values of k */ \
        for (int b = 0; b < blocks; b++, x++, panel += bits == 8 ? VK_QUANT_BYTES_8 : VK_QUANT_BYTES_4) \
            VK_UNROLL for (int from = 0; from < VK_PAD; from += 16) { \
                const char *q = panel + VK_PAD * 2 + 4 * from; \
                __m256i part[6][2]; \
                VK_UNROLL for (int i = 0; i < count; i++) part[i][0] = part[i][1] = \
                    _mm256_set1_epi32(bits == 8 ? 0 : x[i * ldx].offset); \
                for (int g = 0; g < VK_QUANT_BLOCK; g += 8, q += line) \
                    VK_UNROLL for (int pair = 0; pair < 4; pair++) { \
                        const __m256i low = vk_pairs_256(q, pair, bits), high = vk_pairs_256(q + 32, pair, bits); \
                        VK_UNROLL for (int i = 0; i < count; i++) { \
                            const __m256i two = _mm256_set1_epi32(vk_word(x[i * ldx].value + g + 2 * pair)); \
                            part[i][0] = DOT(part[i][0], low, two); \
                            part[i][1] = DOT(part[i][1], high, two); \
                        } \
                    } \
                VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int h = 0; h < 2; h++) { \
                    float *to = y + i * VK_PAD + from + 8 * h; \
                    const __m256 scale = _mm256_mul_ps(VK_SCALES_256(panel + 2 * (from + 8 * h)), \
                                                       _mm256_set1_ps(x[i * ldx].scale)), \
                                 before = b ? _mm256_loadu_ps(to) : _mm256_setzero_ps(); \
                    _mm256_storeu_ps(to, _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(part[i][h]), before)); \
                } \
            } \
    } \
    TARGET static void vk_row8_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        vk_some_##of(1, 8, sums, x, 0, panel, blocks); \
    } \
    TARGET static void vk_row4_##of(float *sums, const vk_fine *x, const char *panel, int blocks) { \
        vk_some_##of(1, 4, sums, x, 0, panel, blocks); \
    }
#define VK_DOT_256(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
VK_QUANT_256(avx2, VK_TAVX2, VK_DOT_256)
VK_QUANT_256(avxvnni, VK_TAVXVNNI, _mm256_dpwssd_avx_epi32)
VK_BLOCK_ROWS(avx2, VK_TAVX2, vk_fine)
VK_BLOCK_ROWS(avxvnni, VK_TAVXVNNI, vk_fine)
#undef VK_DOT_256
#undef VK_QUANT_256
static int vk_has_avxvnni(void) {
    unsigned a = 7, b, c = 1, d;
    if (!vk_has_avx2()) return 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return a >> 4 & 1;
}
static void vk_quant_fine_rows(void *to, const uint16_t *x, int blocks, int bits) {
    vk_quant_fine((vk_fine *)to, x, blocks, bits);
}
static const vk_quant_blocks vk_blocks_avx2 = {vk_has_avx2, VP_ACTIVATIONS_INT16, sizeof(vk_fine), vk_quant_fine_rows,
                                               vk_block_rows_avx2},
                             vk_blocks_avxvnni = {vk_has_avxvnni, VP_ACTIVATIONS_INT16, sizeof(vk_fine),
                                                  vk_quant_fine_rows, vk_block_rows_avxvnni};
#endif

#ifdef VK_NEON_DOT
/* SDOT multiplies signed bytes: inputs have 8 bits and a scale per block, in the order of the weights' bytes */
typedef struct vk_coarse { float scale; int32_t offset; int8_t value[VK_QUANT_BLOCK]; } vk_coarse;
static void vk_quant_coarse(void *out, const uint16_t *x, int blocks, int bits) {
    static const int place[4] = {0, 2, 1, 3};
    vk_coarse *to = (vk_coarse *)out;
    for (int b = 0; b < blocks; b++, x += VK_QUANT_BLOCK, to++) {
        const int bits_of_most = vk_quant_most(x);
        const float most = vk_b2f((uint16_t)bits_of_most), times = bits_of_most >= 0x0400 ? 127.0f / most : 0.0f;
        to->scale = bits_of_most < 0x7f80 ? most / 127.0f : NAN;
        to->offset = 0;
        for (int i = 0; i < VK_QUANT_BLOCK; i++) {
            const int value = bits_of_most < 0x7f80 ? vk_whole(vk_b2f(x[i]) * times) : 0;
            to->value[i / 4 * 4 + place[i % 4]] = (int8_t)value;
            if (bits == 4) to->offset -= 8 * value;
        }
    }
}
#ifdef __ARM_FEATURE_DOTPROD
#define VK_TDOT
#else
#define VK_TDOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
/* `count` rows of inputs, `ldx` blocks apart, and 8 of the 32 sums at a time */
VK_TDOT VK_INLINE void vk_some_sdot(const int count, const int bits, float *y, const vk_coarse *x, int ldx,
                                    const char *panel, int blocks) {
    for (int b = 0; b < blocks; b++, x++, panel += bits == 8 ? VK_QUANT_BYTES_8 : VK_QUANT_BYTES_4)
        for (int from = 0; from < VK_PAD; from += 8) {
            const int8_t *q = (const int8_t *)panel + VK_PAD * 2 + 4 * from;
            const uint16x8_t scales = vld1q_u16((const uint16_t *)(const void *)panel + from);
            const float32x4_t scale[2] = {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(scales), 16)),
                                          vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(scales), 16))};
            int32x4_t part[6][2];
            VK_UNROLL for (int i = 0; i < count; i++) part[i][0] = part[i][1] = vdupq_n_s32(x[i * ldx].offset);
            for (int g = 0; g < VK_QUANT_BLOCK; g += 16, q += bits == 8 ? 512 : 256) {
                int8x16_t in[6];
                VK_UNROLL for (int i = 0; i < count; i++) in[i] = vld1q_s8(x[i * ldx].value + g);
#define VK_SDOT(lane) \
    VK_UNROLL for (int h = 0; h < 2; h++) { \
        int8x16_t w = vld1q_s8(q + (bits == 8 ? lane : (lane) / 2) * 128 + 16 * h); \
        if (bits == 4 && (lane) % 2) w = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w), 4)); \
        else if (bits == 4) w = vandq_s8(w, vdupq_n_s8(15)); \
        VK_UNROLL for (int i = 0; i < count; i++) part[i][h] = vdotq_laneq_s32(part[i][h], w, in[i], lane); \
    }
                VK_SDOT(0)
                VK_SDOT(1)
                VK_SDOT(2)
                VK_SDOT(3)
#undef VK_SDOT
            }
            VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int h = 0; h < 2; h++) {
                float *to = y + i * VK_PAD + from + 4 * h;
                const float32x4_t before = b ? vld1q_f32(to) : vdupq_n_f32(0.0f);
                vst1q_f32(to, vfmaq_f32(before, vcvtq_f32_s32(part[i][h]), vmulq_n_f32(scale[h], x[i * ldx].scale)));
            }
        }
}
VK_BLOCK_ROWS(sdot, VK_TDOT, vk_coarse)
static int vk_has_sdot(void) {
#ifdef __ARM_FEATURE_DOTPROD
    return 1;
#else
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
}
static const vk_quant_blocks vk_blocks_sdot = {vk_has_sdot, VP_ACTIVATIONS_INT8, sizeof(vk_coarse), vk_quant_coarse,
                                               vk_block_rows_sdot};
#endif
#endif
