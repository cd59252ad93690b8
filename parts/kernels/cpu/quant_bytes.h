/* quant_bytes.h - products of many rows of inputs and a panel of integers, for processors that multiply bytes
 *
 * Part of section >>gemm in vlmprof_kernels.cu, which includes it there.
 *
 * One scale per 32 values of k (quant_rows.h) would interrupt the sums of bytes too often. So both factors become bytes
 * with one scale per group of k. The kernel sets the group's length: 128 with AVX-512 VNNI, 512 with AMX. Inputs are
 * converted once for all panels: 127 is the group's largest value, so the error is at most 1/254 of it. Weights are
 * converted panel by panel before the rows of a task use them. The largest scale among a row's blocks in the group sets
 * the step: 127 stands for 127 of an 8-bit block or -8 of a 4-bit block. This adds an error of at most half a step to
 * the rounding of the weights. Sums of a group are exact. */
#ifndef VK_QUANT_BYTES_H
#define VK_QUANT_BYTES_H

/* inputs of a job: bytes [rows, ld] in the order of the weights' bytes, then scales f32 [rows, groups] and int32 [rows,
 * groups] that undo the 128 which VNNI adds to weights. Rows are an odd number of cache lines apart: rows at the same
 * offset in their pages would evict each other from the first-level cache. */
typedef struct vk_bytes {
    int8_t *values;
    float *scales;
    int32_t *offsets;
    size_t ld;
    int groups;
} vk_bytes;
/* All rows of a task times a panel with bytes [k / 4, 32, 4] and scales f32 [groups, 32]. It may prefetch the next
 * panel's integers from `next`. */
typedef void (*vk_quant_many)(const vk_sink *sink, float *sums, const vk_bytes *x, const char *panel,
                              const float *scales, int k, int rows, const char *next);
typedef void (*vk_quant_level)(char *out, float *scales, const char *panel, int k, int group, int bits);

static size_t vk_bytes_ld(int k_padded) { return ((size_t)k_padded + 63) / 128 * 128 + 64; }
static int vk_bytes_groups(int k_padded, int group) { return (k_padded + group - 1) / group; }
/* values end at a multiple of 64 */
static size_t vk_bytes_of(int rows, int k_padded, int group) {
    size_t bytes = (size_t)rows * (vk_bytes_ld(k_padded) + 8 * (size_t)vk_bytes_groups(k_padded, group));
    return (bytes + 63) / 64 * 64;
}
/* AMX reads whole tiles of rows */
static size_t vk_bytes_spare(int k_padded) { return VK_ROWS_MAX * vk_bytes_ld(k_padded); }
static vk_bytes vk_bytes_at(char *at, int rows, int k_padded, int group) {
    vk_bytes x;
    x.ld = vk_bytes_ld(k_padded);
    x.groups = vk_bytes_groups(k_padded, group);
    x.values = (int8_t *)at;
    x.scales = (float *)(void *)(at + (size_t)rows * x.ld);
    x.offsets = (int32_t *)(void *)(x.scales + (size_t)rows * (size_t)x.groups);
    return x;
}
static vk_bytes vk_bytes_from(const vk_bytes *x, int row) {
    vk_bytes from = *x;
    from.values += (size_t)row * x->ld;
    from.scales += (size_t)row * (size_t)x->groups;
    from.offsets += (size_t)row * (size_t)x->groups;
    return from;
}

#ifdef VK_X86
/* 32 values of bf16, times `times`, as bytes in the order of the weights'; adds their integers to *sum */
VK_T512 VK_INLINE __m256i vk_bytes_32(const uint16_t *x, __m512 times, __m512i *sum) {
    const __m256i order = _mm256_set_epi64x(0x0f0d0e0c0b090a08, 0x0705060403010200, 0x0f0d0e0c0b090a08,
                                            0x0705060403010200);
    __m512i two = _mm512_loadu_si512(x), low, high;
    low = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(two)), 16);
    high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(two, 1)), 16);
    low = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(low), times));
    high = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(high), times));
    *sum = _mm512_add_epi32(*sum, _mm512_add_epi32(low, high));
    return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(_mm512_cvtsepi32_epi8(low)),
                                                       _mm512_cvtsepi32_epi8(high), 1), order);
}
/* One row of inputs. A group with an infinity or NaN becomes NaN, to stay visible. A group below 2^-119 becomes 0. */
VK_T512 static void vk_bytes_row(vk_bytes *to, int row, const uint16_t *x, int k, int group) {
    int8_t *values = to->values + (size_t)row * to->ld;
    for (int g = 0; g < to->groups; g++) {
        int from = g * group, end = k - from < group ? k : from + group;
        __m512i most = _mm512_setzero_si512(), sum = most;
        uint32_t word;
        float largest;
        for (int i = from; i < end; i += 32)
            most = _mm512_max_epu16(most, _mm512_and_si512(_mm512_loadu_si512(x + i), _mm512_set1_epi16(0x7fff)));
        word = _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_slli_epi32(most, 16),
                                                        _mm512_and_si512(most, _mm512_set1_epi32(0x7fff0000))));
        memcpy(&largest, &word, 4);
        if (word < 0x04000000u) largest = 0.0f;
        for (int i = from; i < end; i += 32)
            _mm256_storeu_si256((__m256i *)(void *)(values + i),
                                vk_bytes_32(x + i, _mm512_set1_ps(largest > 0.0f ? 127.0f / largest : 0.0f), &sum));
        to->scales[row * to->groups + g] = word < 0x7f800000u ? largest / 127.0f : NAN;
        to->offsets[row * to->groups + g] = word < 0x7f800000u ? -128 * _mm512_reduce_add_epi32(sum) : 0;
    }
    for (int i = k; i < (int)to->ld; i++) values[i] = 0;
}

/* 16-bit values times ratios of 1/32768 -> bytes: their high bytes, rounded */
VK_T512 VK_INLINE __m512i vk_level_pairs(__m512i even, __m512i odd, __m512i ratio, __m512i flip) {
    const __m512i half = _mm512_set1_epi16(128);
    even = _mm512_srli_epi16(_mm512_adds_epi16(_mm512_mulhrs_epi16(even, ratio), half), 8);
    odd = _mm512_adds_epi16(_mm512_mulhrs_epi16(odd, ratio), half);
    odd = _mm512_ternarylogic_epi32(even, odd, _mm512_set1_epi16((short)0xff00), 0xf8);
    return _mm512_xor_si512(odd, flip);
}
VK_T512 VK_INLINE void vk_level_block(char *out, const char *panel, const __m512 *times, const int bits,
                                      __m512i flip) {
    const __m512i high = _mm512_set1_epi16((short)0xff00), nibble = _mm512_set1_epi16((short)0xf000),
                  sign = _mm512_set1_epi16((short)0x8000);
    VK_UNROLL for (int h = 0; h < 2; h++) {
        const char *q = panel + VK_PAD * 2 + 64 * h;
        __m512i ratio = _mm512_cvtps_epi32(_mm512_mul_ps(VK_SCALES_512(panel + 32 * h), times[h]));
        ratio = _mm512_or_si512(_mm512_slli_epi32(ratio, 16), _mm512_and_si512(ratio, _mm512_set1_epi32(0xffff)));
        VK_UNROLL for (int line = 0; line < VK_QUANT_BLOCK / 4; line += bits == 8 ? 1 : 2, q += 128) {
            __m512i w = _mm512_loadu_si512(q);
            char *to = out + 128 * line + 64 * h;
            if (bits == 8) {
                w = vk_level_pairs(_mm512_slli_epi16(w, 8), _mm512_and_si512(w, high), ratio, flip);
                _mm512_storeu_si512(to, w);
                continue;
            }
            /* (integer - 8) * 4096 */
            _mm512_storeu_si512(to, vk_level_pairs(_mm512_xor_si512(_mm512_slli_epi16(w, 12), sign),
                                                   _mm512_xor_si512(_mm512_and_si512(_mm512_slli_epi16(w, 4), nibble),
                                                                    sign), ratio, flip));
            _mm512_storeu_si512(to + 128, vk_level_pairs(_mm512_xor_si512(_mm512_and_si512(_mm512_slli_epi16(w, 8),
                                                                                           nibble), sign),
                                                         _mm512_xor_si512(_mm512_and_si512(w, nibble), sign), ratio,
                                                         flip));
        }
    }
}
/* A panel of blocks -> bytes and scales of groups. `flip`: adds 128 to make the bytes unsigned. Scales below 2^-119
 * become 0. */
VK_T512 VK_INLINE void vk_level(char *out, float *scales, const char *panel, int k, int group, const int bits,
                                const int flip) {
    const int block_bytes = bits == 8 ? VK_QUANT_BYTES_8 : VK_QUANT_BYTES_4;
    const float full = bits == 8 ? 32767.0f : 32767.0f * 127.0f / 128.0f;
    for (int from = 0; from < k; from += group, scales += VK_PAD) {
        int blocks = ((k - from < group ? k - from : group) + VK_QUANT_BLOCK - 1) / VK_QUANT_BLOCK;
        __m512 most[2], times[2];
        VK_UNROLL for (int h = 0; h < 2; h++) {
            __mmask16 odd = 0;
            most[h] = _mm512_setzero_ps();
            for (int b = 0; b < blocks; b++) {
                __m512 scale = VK_SCALES_512(panel + b * block_bytes + 32 * h);
                odd |= _mm512_cmp_ps_mask(scale, scale, _CMP_UNORD_Q);
                most[h] = _mm512_max_ps(most[h], _mm512_abs_ps(scale));
            }
            times[h] = _mm512_maskz_div_ps(_mm512_cmp_ps_mask(most[h], _mm512_set1_ps(0x1p-119f), _CMP_GE_OQ),
                                           _mm512_set1_ps(full), most[h]);
            most[h] = _mm512_mul_ps(most[h], _mm512_set1_ps(bits == 8 ? 1.0f : 8.0f / 127.0f));
            _mm512_storeu_ps(scales + 16 * h, _mm512_mask_mov_ps(most[h], odd, _mm512_set1_ps(NAN)));
        }
        for (int b = 0; b < blocks; b++, panel += block_bytes, out += VK_QUANT_BLOCK * VK_PAD)
            vk_level_block(out, panel, times, bits, _mm512_set1_epi8((char)(flip ? 0x80 : 0)));
    }
    if (k % 64) memset(out, 0, (size_t)(64 - k % 64) * VK_PAD); /* a tile's depth */
}
#define VK_LEVEL(of, flip) \
    VK_T512 static void vk_level_##of(char *out, float *scales, const char *panel, int k, int group, int bits) { \
        if (bits == 8) vk_level(out, scales, panel, k, group, 8, flip); \
        else vk_level(out, scales, panel, k, group, 4, flip); \
    }

/* AVX-512 VNNI. This uses inline assembly because with the intrinsic GCC 12 copies each sum to another register and
 * back. */
#define VK_DPBUSD(sum, weights, inputs) \
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(weights), "m"(*(const int32_t *)(const void *)(inputs)))
enum { VK_VNNI_GROUP = 128 };
VK_LEVEL(vnni, 1)
VK_TVNNI VK_INLINE void vk_rows_vnni(const int count, float *y, const vk_bytes *x, const char *panel,
                                     const float *scales, int k) {
    for (int g = 0; g < x->groups; g++, scales += VK_PAD) {
        const int8_t *values = x->values + g * VK_VNNI_GROUP;
        int length = k - g * VK_VNNI_GROUP < VK_VNNI_GROUP ? k - g * VK_VNNI_GROUP : VK_VNNI_GROUP;
        __m512 low_scale = _mm512_loadu_ps(scales), high_scale = _mm512_loadu_ps(scales + 16);
        __m512i part[12][2];
        VK_UNROLL for (int i = 0; i < count; i++)
            part[i][0] = part[i][1] = _mm512_set1_epi32(x->offsets[i * x->groups + g]);
        for (int j = 0; j < length; j += 4, panel += 128) {
            __m512i low = _mm512_loadu_si512(panel), high = _mm512_loadu_si512(panel + 64);
            VK_UNROLL for (int i = 0; i < count; i++) {
                const int8_t *four = values + (size_t)i * x->ld + j;
                VK_DPBUSD(part[i][0], low, four);
                VK_DPBUSD(part[i][1], high, four);
            }
        }
        VK_UNROLL for (int i = 0; i < count; i++) {
            __m512 scale = _mm512_set1_ps(x->scales[i * x->groups + g]);
            float *to = y + i * VK_PAD;
            __m512 first = _mm512_mul_ps(_mm512_cvtepi32_ps(part[i][0]), scale),
                   second = _mm512_mul_ps(_mm512_cvtepi32_ps(part[i][1]), scale);
            if (g == 0) {
                _mm512_storeu_ps(to, _mm512_mul_ps(first, low_scale));
                _mm512_storeu_ps(to + 16, _mm512_mul_ps(second, high_scale));
            } else {
                _mm512_storeu_ps(to, _mm512_fmadd_ps(first, low_scale, _mm512_loadu_ps(to)));
                _mm512_storeu_ps(to + 16, _mm512_fmadd_ps(second, high_scale, _mm512_loadu_ps(to + 16)));
            }
        }
    }
}
VK_TVNNI static void vk_some_vnni(float *y, const vk_bytes *x, const char *panel, const float *scales, int k,
                                  int rows) {
    vk_bytes one = *x, *xr = &one;
    for (int left = rows, now; left > 0; left -= now, one = vk_bytes_from(&one, now), y += now * VK_PAD) {
        now = left >= 24 || left <= 12 ? (left < 12 ? left : 12) : (left + 1) / 2;
#define VK_DO(R) case R: vk_rows_vnni(R, y, xr, panel, scales, k); break
        switch (now) {
            VK_DO(1); VK_DO(2); VK_DO(3); VK_DO(4); VK_DO(5); VK_DO(6);
            VK_DO(7); VK_DO(8); VK_DO(9); VK_DO(10); VK_DO(11); VK_DO(12);
        }
#undef VK_DO
    }
}
/* sums of 24 rows, finished while they are in the first-level cache */
VK_TVNNI static void vk_many_vnni(const vk_sink *sink, float *sums, const vk_bytes *x, const char *panel,
                                  const float *scales, int k, int rows, const char *next) {
    (void)next;
    for (int r = 0; r < rows; r += 24) {
        int now = rows - r < 24 ? rows - r : 24;
        vk_bytes from = vk_bytes_from(x, r);
        vk_some_vnni(sums, &from, panel, scales, k, now);
        vk_finish_rows(sink, sums, r, now);
    }
}
static int vk_has_vnni(void) { return vk_has_avx512() && __builtin_cpu_supports("avx512vnni"); }

#ifdef VK_AMX
enum { VK_AMX_GROUP = 512 };
VK_LEVEL(amx, 0)
/* Extra work while a tile's products run: scales rows [row, end) of the previous tile (int32 `part`), adds them to the
 * sums, and finishes them in the last group. */
typedef struct vk_bytes_shadow {
    const vk_sink *sink;
    const int32_t *part; /* of row `base` on */
    float *sums;
    const vk_bytes *x;
    const float *scales;
    int group, base, row, end;
    const char *ahead, *ahead_end; /* prefetched into the second-level cache, `lines` lines per step */
    int lines;
} vk_bytes_shadow;
VK_TAMX VK_INLINE void vk_bytes_shadow_row(vk_bytes_shadow *shadow) {
    int row = shadow->row++, last = shadow->group + 1 == shadow->x->groups;
    const int32_t *part = shadow->part + (row - shadow->base) * VK_PAD;
    float *sums = shadow->sums + row * VK_PAD;
    __m512 scale = _mm512_set1_ps(shadow->x->scales[row * shadow->x->groups + shadow->group]),
           first = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(part)), scale),
           second = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(part + 16)), scale);
    if (shadow->group == 0) {
        first = _mm512_mul_ps(first, _mm512_loadu_ps(shadow->scales));
        second = _mm512_mul_ps(second, _mm512_loadu_ps(shadow->scales + 16));
    } else {
        first = _mm512_fmadd_ps(first, _mm512_loadu_ps(shadow->scales), _mm512_loadu_ps(sums));
        second = _mm512_fmadd_ps(second, _mm512_loadu_ps(shadow->scales + 16), _mm512_loadu_ps(sums + 16));
    }
    _mm512_storeu_ps(sums, first);
    _mm512_storeu_ps(sums + 16, second);
    if (last) vk_finish_row_amx(shadow->sink, sums, row);
}
VK_TAMX VK_INLINE void vk_bytes_steps(const int two, int32_t *part, const int8_t *x, size_t ld, const char *panel,
                                      int k, vk_bytes_shadow *shadow) {
    vk_amx_zero(0);
    vk_amx_zero(1);
    if (two) { vk_amx_zero(2); vk_amx_zero(3); }
    for (int j = 0; j < k; j += 64, panel += 64 * VK_PAD) {
        vk_amx_stream(4, x + j, (long)ld);
        vk_amx_load(6, panel, 4 * VK_PAD);
        vk_amx_load(7, panel + 64, 4 * VK_PAD);
        if (two) vk_amx_stream(5, x + 16 * ld + j, (long)ld);
        vk_amx_bytes(0, 4, 6);
        vk_amx_bytes(1, 4, 7);
        if (two) { vk_amx_bytes(2, 5, 6); vk_amx_bytes(3, 5, 7); }
        for (int i = 0; i < shadow->lines && shadow->ahead < shadow->ahead_end; i++, shadow->ahead += 64)
            _mm_prefetch(shadow->ahead, _MM_HINT_T1);
        for (int i = 0; i < 4 && shadow->row < shadow->end; i++) vk_bytes_shadow_row(shadow);
    }
    while (shadow->row < shadow->end) vk_bytes_shadow_row(shadow);
    vk_amx_store(0, part, 4 * VK_PAD);
    vk_amx_store(1, part + 16, 4 * VK_PAD);
    if (two) { vk_amx_store(2, part + 16 * VK_PAD, 4 * VK_PAD); vk_amx_store(3, part + 16 * VK_PAD + 16, 4 * VK_PAD); }
}
VK_TAMX static void vk_many_amx(const vk_sink *sink, float *sums, const vk_bytes *x, const char *panel,
                                const float *scales, int k, int rows, const char *next) {
    int32_t room[2 * VK_ROWS_MAX * VK_PAD + 16], *part = room + (64 - (uintptr_t)room % 64) % 64 / sizeof *room;
    vk_bytes_shadow shadow;
    int turn = 0;
    memset(&shadow, 0, sizeof shadow);
    shadow.sink = sink; shadow.sums = sums; shadow.x = x;
    /* of 8 bits: a panel of 4 ends earlier, and the one after it comes as well */
    shadow.ahead = next; shadow.ahead_end = next + k / VK_QUANT_BLOCK * VK_QUANT_BYTES_8;
    shadow.lines = VK_QUANT_BYTES_8 * 2 / 64 / ((rows + VK_ROWS_MAX - 1) / VK_ROWS_MAX) + 1;
    for (int g = 0; g < x->groups; g++) {
        int from = g * VK_AMX_GROUP, length = k - from < VK_AMX_GROUP ? k - from : VK_AMX_GROUP;
        for (int r = 0; r < rows; r += VK_ROWS_MAX, turn ^= 1) {
            int32_t *to = part + turn * VK_ROWS_MAX * VK_PAD;
            const int8_t *values = x->values + (size_t)r * x->ld + from;
            if (rows - r > 16) vk_bytes_steps(1, to, values, x->ld, panel + (size_t)from * VK_PAD, length, &shadow);
            else vk_bytes_steps(0, to, values, x->ld, panel + (size_t)from * VK_PAD, length, &shadow);
            shadow.part = to; shadow.scales = scales + g * VK_PAD; shadow.group = g;
            shadow.base = shadow.row = r; shadow.end = rows - r < VK_ROWS_MAX ? rows : r + VK_ROWS_MAX;
        }
    }
    while (shadow.row < shadow.end) vk_bytes_shadow_row(&shadow);
    _mm_sfence(); /* required to order streaming stores */
}
#ifdef AMX_ON_CPU
static int vk_has_amx_bytes(void) { return vk_has_amx() && vk_has_vnni(); }
#else
static int vk_has_amx_bytes(void) {
    unsigned a = 7, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (d >> 25 & 1) && vk_has_amx(); /* AMX-INT8 */
}
#endif
#endif
#undef VK_LEVEL
#endif
#endif
