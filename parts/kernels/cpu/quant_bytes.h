/* quant_bytes.h - products of many rows of inputs and a panel of integers, for processors that multiply bytes
 *
 * Part of section >>gemm in vlmprof_kernels.cu, which includes it there.
 *
 * One scale per 32 values of k (quant_rows.h) would interrupt the sums of bytes too often. So both factors become bytes
 * with one scale per group of k. The kernel sets the group's length: 128 with AVX-512 VNNI, 512 with AMX. Inputs are
 * converted once for all panels: 127 is the group's largest value, so the error is at most 1/254 of it. Weights are
 * converted by each task, in its own buffer. The largest scale among a row's blocks in the group sets the step: 127
 * stands for 127 of an 8-bit block or -8 of a 4-bit block. This adds an error of at most half a step to the rounding of
 * the weights. Sums of a group are exact. */
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
/* Converts a group of weights, block by block. Scales below 2^-119 become 0. With a negative scale, -128 stands for
 * more than 127 steps, so a row with one has 126.5 for 127 of 8 bits. */
typedef struct vk_level {
    const char *from;
    char *to;
    int blocks;
    float times[VK_PAD]; /* ratios of a row's scales to its largest, in units of 2^-15 */
} vk_level;
/* The weights of a task as bytes [k / 4, 32, 4] and scales f32 [32] per group. VNNI converts a panel, then multiplies
 * it. AMX converts the next piece while the tiles multiply this one, so two pieces take turns in `bytes`; `next` is the
 * task's next panel or NULL, and `ready` means that the first piece of this panel is already converted. */
enum { VK_GROUP_SCALES = 4 };
typedef struct vk_groups {
    char *bytes;
    int k, bits, turn, ready;
    const char *next;
    vk_level level;
    float scales[VK_GROUP_SCALES * VK_PAD];
} vk_groups;
/* all rows of a task times a panel of blocks */
typedef void (*vk_quant_many)(const vk_sink *sink, float *sums, const vk_bytes *x, vk_groups *groups, const char *panel,
                              int rows);
/* size in bytes of a thread's buffer: a panel as bf16, or as bytes and scales */
static size_t vk_quant_room_bytes(int k) { return (size_t)(k + 63) / 64 * 64 * VK_PAD * 2; }

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
    const __m256i order =
        _mm256_set_epi64x(0x0f0d0e0c0b090a08, 0x0705060403010200, 0x0f0d0e0c0b090a08, 0x0705060403010200);
    __m512i two = _mm512_loadu_si512(x), high_half = _mm512_set1_epi32((int)0xffff0000u), even, odd;
    even = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(two, 16)), times));
    odd = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(two, high_half)), times));
    *sum = _mm512_add_epi32(*sum, _mm512_add_epi32(even, odd));
    two = _mm512_ternarylogic_epi32(high_half, _mm512_slli_epi32(odd, 16), even, 0xca); /* odd's bits, then even's */
    return _mm256_shuffle_epi8(_mm512_cvtsepi16_epi8(two), order);
}
/* One row of inputs. A group with an infinity or NaN becomes NaN, to stay visible. A group below 2^-119 becomes 0. */
VK_T512 static void vk_bytes_row(vk_bytes *to, int row, const uint16_t *x, int k, int group) {
    int8_t *values = to->values + (size_t)row * to->ld;
    for (int g = 0; g < to->groups; g++) {
        int from = g * group, end = k - from < group ? k : from + group;
        __m512i most = _mm512_setzero_si512(), sum = most;
        float largest;
        for (int i = from; i < end; i += 32)
            most = _mm512_max_epu16(most, _mm512_and_si512(_mm512_loadu_si512(x + i), _mm512_set1_epi16(0x7fff)));
        uint32_t word = _mm512_reduce_max_epu32(
            _mm512_max_epu32(_mm512_slli_epi32(most, 16), _mm512_and_si512(most, _mm512_set1_epi32(0x7fff0000))));
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

/* Bytes times ratios of 1/32768, rounded; odd bytes first to 1/256. While tiles multiply, one of two ports does all
 * shifts, products and saturating sums of vectors: this is half of the instructions here. */
VK_T512 VK_INLINE __m512i vk_level_bytes(__m512i bytes, __m512i ratio) {
    const __m512i high = _mm512_set1_epi16((short)0xff00);
    __m512i even = _mm512_mulhrs_epi16(_mm512_maddubs_epi16(_mm512_set1_epi16(1), bytes), ratio),
            odd = _mm512_mulhrs_epi16(_mm512_and_si512(bytes, high), ratio);
    odd = _mm512_add_epi16(odd, _mm512_set1_epi16(128));
    return _mm512_ternarylogic_epi32(high, odd, even, 0xca);
}
VK_T512 VK_INLINE __m512i vk_level_ratio(const char *scales, const float *times) {
    __m512i ratio = _mm512_cvtps_epi32(_mm512_mul_ps(VK_SCALES_512(scales), _mm512_loadu_ps(times)));
    return _mm512_or_si512(_mm512_slli_epi32(ratio, 16), _mm512_and_si512(ratio, _mm512_set1_epi32(0xffff)));
}
/* a quarter of a block, of 16 rows: values of k 0 to 15 or 16 to 31 */
VK_T512 VK_INLINE void vk_level_quarter(char *out, const char *panel, __m512i ratio, const int quarter, const int bits,
                                        const int flip) {
    const __m512i nibble = _mm512_set1_epi8((char)0xf0), sign = _mm512_set1_epi8((char)0x80);
    const int h = quarter / 2, second = quarter % 2;
    const char *q = panel + VK_PAD * 2 + 64 * h + second * 128 * (bits == 8 ? 4 : 2);
    out += 64 * h + second * 512;
    VK_UNROLL for (int line = 0; line < 4; line++, out += 128) {
        __m512i w = _mm512_loadu_si512(q + (bits == 8 ? line : line / 2) * 128);
        if (bits == 4) { /* (integer - 8) * 16: 0x78 is sign ^ (w & nibble) */
            if (line % 2 == 0) w = _mm512_slli_epi16(w, 4);
            w = _mm512_ternarylogic_epi32(sign, w, nibble, 0x78);
        }
        w = vk_level_bytes(w, ratio);
        _mm512_storeu_si512(out, flip ? _mm512_xor_si512(w, sign) : w);
    }
}
VK_INLINE int vk_block_bytes(int bits) { return bits == 8 ? VK_QUANT_BYTES_8 : VK_QUANT_BYTES_4; }
VK_T512 VK_INLINE void vk_level_begin(vk_level *level, char *to, float *scales, const char *from, int k, int bits) {
    const float full = bits == 8 ? 32767.0f : 32767.0f * 127.0f / 128.0f, less = bits == 8 ? 32639.0f : full;
    const int blocks = (k + VK_QUANT_BLOCK - 1) / VK_QUANT_BLOCK;
    level->from = from; level->to = to; level->blocks = blocks;
    VK_UNROLL for (int h = 0; h < 2; h++) {
        __mmask16 odd = 0, negative = 0;
        __m512 most = _mm512_setzero_ps(), units;
        for (int b = 0; b < blocks; b++) {
            __m512 scale = VK_SCALES_512(from + b * vk_block_bytes(bits) + 32 * h);
            odd |= _mm512_cmp_ps_mask(scale, scale, _CMP_UNORD_Q);
            negative |= _mm512_cmp_ps_mask(scale, _mm512_setzero_ps(), _CMP_LT_OQ);
            most = _mm512_max_ps(most, _mm512_abs_ps(scale));
        }
        units = _mm512_mask_mov_ps(_mm512_set1_ps(full), negative, _mm512_set1_ps(less));
        _mm512_storeu_ps(
            level->times + 16 * h,
            _mm512_maskz_div_ps(_mm512_cmp_ps_mask(most, _mm512_set1_ps(0x1p-119f), _CMP_GE_OQ), units, most));
        most = _mm512_mul_ps(most, _mm512_mask_mov_ps(_mm512_set1_ps(bits == 8 ? 1.0f : 8.0f / 127.0f), negative,
                                                      _mm512_set1_ps(bits == 8 ? full / less : 8.0f / 127.0f)));
        _mm512_storeu_ps(scales + 16 * h, _mm512_mask_mov_ps(most, odd, _mm512_set1_ps(NAN)));
    }
}
/* the next `count` blocks, or those left; `flip`: bytes become unsigned; `ahead`: prefetches so many bytes later */
VK_T512 VK_INLINE void vk_level_next(vk_level *level, int count, const int flip, const int bits, const int ahead) {
    const int bytes = vk_block_bytes(bits), lines = ahead ? bytes / 64 + 1 : 0;
    for (; count > 0 && level->blocks > 0; count--, level->blocks--) {
        VK_UNROLL for (int q = 0; q < 4; q++) {
            const __m512i ratio = vk_level_ratio(level->from + q / 2 * 32, level->times + q / 2 * 16);
            vk_level_quarter(level->to, level->from, ratio, q, bits, flip);
        }
        VK_UNROLL for (int i = 0; i < lines; i++) _mm_prefetch(level->from + ahead + 64 * i, _MM_HINT_T1);
        level->from += bytes;
        level->to += VK_QUANT_BLOCK * VK_PAD;
    }
}

/* AVX-512 VNNI. This uses inline assembly because with the intrinsic GCC 12 copies each sum to another register and
 * back. */
#define VK_DPBUSD(sum, weights, inputs) \
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(weights), "m"(*(const int32_t *)(const void *)(inputs)))
enum { VK_VNNI_GROUP = 128 };
VK_TVNNI VK_INLINE void vk_rows_vnni(const int count, float *y, const vk_bytes *x, const char *panel,
                                     const float *scales, int k) {
    for (int g = 0; g < x->groups; g++, scales += VK_PAD) {
        const int8_t *values = x->values + g * VK_VNNI_GROUP;
        int length = k - g * VK_VNNI_GROUP < VK_VNNI_GROUP ? k - g * VK_VNNI_GROUP : VK_VNNI_GROUP;
        __m512 low_scale = _mm512_loadu_ps(scales), high_scale = _mm512_loadu_ps(scales + 16);
        __m512i part[12][2];
        VK_UNROLL for (int i = 0; i < count; i++) part[i][0] = part[i][1] =
            _mm512_set1_epi32(x->offsets[i * x->groups + g]);
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
VK_TVNNI static void vk_many_vnni(const vk_sink *sink, float *sums, const vk_bytes *x, vk_groups *groups,
                                  const char *panel, int rows) {
    const int k = groups->k, bits = groups->bits;
    float *scales = (float *)(void *)(groups->bytes + (size_t)(k + 63) / 64 * 64 * VK_PAD);
    vk_level level;
    for (int from = 0; from < k; from += VK_VNNI_GROUP) {
        vk_level_begin(&level, groups->bytes + (size_t)from * VK_PAD, scales + from / VK_VNNI_GROUP * VK_PAD,
                       panel + from / VK_QUANT_BLOCK * vk_block_bytes(bits),
                       k - from < VK_VNNI_GROUP ? k - from : VK_VNNI_GROUP, bits);
        if (bits == 8) vk_level_next(&level, level.blocks, 1, 8, 0);
        else vk_level_next(&level, level.blocks, 1, 4, 0);
    }
    for (int r = 0; r < rows; r += 24) {
        int now = rows - r < 24 ? rows - r : 24;
        vk_bytes from = vk_bytes_from(x, r);
        vk_some_vnni(sums, &from, groups->bytes, scales, k, now);
        vk_finish_rows(sink, sums, r, now);
    }
}
static int vk_has_vnni(void) { return vk_has_avx512() && __builtin_cpu_supports("avx512vnni"); }

#ifdef VK_AMX
enum { VK_AMX_GROUP = 1024 };
/* Extra work while a tile's products run: scales rows [row, end) of the previous tile (int32 `part`) and adds them to
 * the sums, or finishes them in the last group. Each step also converts a block of the next piece and `blocks` more. */
typedef struct vk_bytes_shadow {
    const vk_sink *sink;
    const int32_t *part; /* integer sums from row `base` on */
    float *sums;
    const vk_bytes *x;
    const float *scales;
    int group, base, row, end, blocks;
    vk_level *level;
} vk_bytes_shadow;
/* functions of their own: with their code in a loop over tiles, GCC 12 keeps addresses of tiles in vector registers */
#define VK_APART static __attribute__((noinline))
VK_TAMX VK_INLINE void vk_bytes_shadow_some(const vk_bytes_shadow *shadow, int row, const int end, const int last,
                                            const vk_epilogue epilogue) {
    const int group = shadow->group, groups = shadow->x->groups;
    const int32_t *part = shadow->part + (row - shadow->base) * VK_PAD;
    const float *of_row = shadow->x->scales + row * groups + group;
    float *sums = shadow->sums + row * VK_PAD;
    const __m512 low = _mm512_loadu_ps(shadow->scales), high = _mm512_loadu_ps(shadow->scales + 16);
    const vk_sink sink = *shadow->sink;
    __m512 bias[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (sink.bias && sink.cols == VK_PAD) {
        bias[0] = _mm512_loadu_ps(sink.bias);
        bias[1] = _mm512_loadu_ps(sink.bias + 16);
    }
    for (; row < end; row++, part += VK_PAD, of_row += groups, sums += VK_PAD) {
        __m512 scale = _mm512_set1_ps(*of_row),
               first = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(part)), scale),
               second = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(part + 16)), scale);
        first = _mm512_fmadd_ps(first, low, group ? _mm512_loadu_ps(sums) : bias[0]);
        second = _mm512_fmadd_ps(second, high, group ? _mm512_loadu_ps(sums + 16) : bias[1]);
        if (last) { vk_finish_values_amx(&sink, first, second, row, epilogue); continue; }
        _mm512_storeu_ps(sums, first);
        _mm512_storeu_ps(sums + 16, second);
    }
}
VK_TAMX VK_APART void vk_bytes_shadow_end(const vk_bytes_shadow *shadow, int row, int end) {
    if (shadow->sink->cols < VK_PAD) {
        vk_bytes_shadow_some(shadow, row, end, 0, VK_STORE);
        vk_finish_rows(shadow->sink, shadow->sums + row * VK_PAD, row, end - row);
        return;
    }
#define VK_DO(epilogue) case epilogue: vk_bytes_shadow_some(shadow, row, end, 1, epilogue); break
    switch (shadow->sink->epilogue) {
        VK_DO(VK_STORE); VK_DO(VK_STORE_F32); VK_DO(VK_QUICKGELU); VK_DO(VK_ADD_F32);
        VK_DO(VK_GELU); VK_DO(VK_GELU_TANH); VK_DO(VK_SILU_MUL); VK_DO(VK_GELU_MUL);
    }
#undef VK_DO
}
/* the next `count` rows, or those that are left */
VK_TAMX VK_INLINE void vk_bytes_shadow_rows(vk_bytes_shadow *shadow, int count) {
    const int row = shadow->row, end = shadow->end - row < count ? shadow->end : row + count;
    if (row >= end) return;
    if (shadow->group + 1 == shadow->x->groups) vk_bytes_shadow_end(shadow, row, end);
    else vk_bytes_shadow_some(shadow, row, end, 0, VK_STORE);
    shadow->row = end;
}
/* go_on: adds to `part` */
VK_TAMX VK_INLINE void vk_bytes_steps(const int two, const int bits, int32_t *part, const int8_t *x, size_t ld,
                                      const char *panel, int k, int go_on, vk_bytes_shadow *shadow) {
    enum { GROUP_BLOCKS = VK_AMX_GROUP / VK_QUANT_BLOCK };
    const int ahead = GROUP_BLOCKS * vk_block_bytes(bits), rows = (VK_ROWS_MAX * 64 + k - 1) / k;
    if (go_on) { vk_amx_load(0, part, 4 * VK_PAD); vk_amx_load(1, part + 16, 4 * VK_PAD); }
    else { vk_amx_zero(0); vk_amx_zero(1); }
    if (two && go_on) {
        vk_amx_load(2, part + 16 * VK_PAD, 4 * VK_PAD);
        vk_amx_load(3, part + 16 * VK_PAD + 16, 4 * VK_PAD);
    } else if (two) { vk_amx_zero(2); vk_amx_zero(3); }
    for (int j = 0; j < k; j += 64, panel += 64 * VK_PAD) {
        vk_amx_stream(4, x + j, (long)ld);
        vk_amx_load(6, panel, 4 * VK_PAD);
        vk_amx_load(7, panel + 64, 4 * VK_PAD);
        if (two) vk_amx_stream(5, x + 16 * ld + j, (long)ld);
        vk_amx_bytes(0, 4, 6);
        vk_amx_bytes(1, 4, 7);
        if (two) { vk_amx_bytes(2, 5, 6); vk_amx_bytes(3, 5, 7); }
        vk_level_next(shadow->level, 1 + shadow->blocks, 0, bits, ahead);
        vk_bytes_shadow_rows(shadow, rows);
    }
    vk_bytes_shadow_rows(shadow, VK_ROWS_MAX);
    vk_amx_store(0, part, 4 * VK_PAD);
    vk_amx_store(1, part + 16, 4 * VK_PAD);
    if (two) { vk_amx_store(2, part + 16 * VK_PAD, 4 * VK_PAD); vk_amx_store(3, part + 16 * VK_PAD + 16, 4 * VK_PAD); }
}
#define VK_BYTES_STEPS(name, two, bits) \
    VK_TAMX VK_APART void name(int32_t *part, const int8_t *x, size_t ld, const char *panel, int k, int go_on, \
                               vk_bytes_shadow *shadow) { \
        vk_bytes_steps(two, bits, part, x, ld, panel, k, go_on, shadow); \
    }
VK_BYTES_STEPS(vk_bytes_steps_8, 1, 8)
VK_BYTES_STEPS(vk_bytes_steps_4, 1, 4)
VK_BYTES_STEPS(vk_bytes_steps_8_few, 0, 8)
VK_BYTES_STEPS(vk_bytes_steps_4_few, 0, 4)
#undef VK_BYTES_STEPS
#undef VK_APART
/* A panel passes in pieces: groups, or halves of them if few rows share a piece, so that pieces and rows stay in the
 * first-level cache. */
static char *vk_amx_piece(const vk_groups *groups, int piece, int turn) {
    const int k = groups->k < piece ? (groups->k + 63) / 64 * 64 : piece;
    return groups->bytes + (size_t)(turn % 2 * k) * VK_PAD;
}
/* starts to convert the piece of k that begins at `from`, or the first one of the next panel; returns 0 if
 * the task has none */
VK_TAMX static int vk_amx_level(vk_groups *groups, const char *panel, int from, int piece) {
    vk_level *level = &groups->level;
    const int turn = groups->turn + 1;
    float *scales = groups->scales + turn % VK_GROUP_SCALES * VK_PAD;
    level->blocks = 0;
    if (from >= groups->k) { panel = groups->next; from = 0; }
    if (!panel) return 0;
    if (from % VK_AMX_GROUP == 0)
        vk_level_begin(level, vk_amx_piece(groups, piece, turn), scales,
                       panel + from / VK_QUANT_BLOCK * vk_block_bytes(groups->bits),
                       groups->k - from < VK_AMX_GROUP ? groups->k - from : VK_AMX_GROUP, groups->bits);
    else { /* the same scales */ level->to = vk_amx_piece(groups, piece, turn);
        memcpy(scales, groups->scales + groups->turn % VK_GROUP_SCALES * VK_PAD, VK_PAD * sizeof *scales);
    }
    level->blocks = (groups->k - from < piece ? groups->k - from : piece) / VK_QUANT_BLOCK;
    if (level->blocks % 2) memset(level->to + level->blocks * VK_QUANT_BLOCK * VK_PAD, 0, VK_QUANT_BLOCK * VK_PAD);
    return 1;
}
VK_TAMX static void vk_amx_level_rest(vk_level *level, int bits) {
    if (bits == 8) vk_level_next(level, level->blocks, 0, 8, VK_AMX_GROUP / VK_QUANT_BLOCK * VK_QUANT_BYTES_8);
    else vk_level_next(level, level->blocks, 0, 4, VK_AMX_GROUP / VK_QUANT_BLOCK * VK_QUANT_BYTES_4);
}
typedef void (*vk_bytes_tile)(int32_t *part, const int8_t *x, size_t ld, const char *panel, int k, int go_on,
                              vk_bytes_shadow *shadow);
VK_TAMX static void vk_many_amx(const vk_sink *sink, float *sums, const vk_bytes *x, vk_groups *groups,
                                const char *panel, int rows) {
    static const vk_bytes_tile tile_steps[2][2] = {{vk_bytes_steps_8, vk_bytes_steps_8_few},
                                                   {vk_bytes_steps_4, vk_bytes_steps_4_few}};
    const vk_bytes_tile *steps = tile_steps[groups->bits == 4];
    int32_t room[2 * VK_ROWS_MAX * VK_PAD + 16], *part = room + (64 - (uintptr_t)room % 64) % 64 / sizeof *room;
    const int tiles = (rows + VK_ROWS_MAX - 1) / VK_ROWS_MAX, piece = VK_AMX_GROUP / (tiles > 2 ? 1 : 2);
    vk_bytes_shadow shadow;
    int tile = 0;
    memset(&shadow, 0, sizeof shadow);
    shadow.sink = sink; shadow.sums = sums; shadow.x = x; shadow.scales = groups->scales; shadow.level = &groups->level;
    shadow.blocks = tiles == 1; /* 8 blocks in 4 steps */
    if (!groups->ready) {
        groups->turn = -1;
        vk_amx_level(groups, panel, 0, piece);
        vk_amx_level_rest(&groups->level, groups->bits);
        groups->turn = 0;
    }
    for (int from = 0; from < groups->k; from += piece, groups->turn++) {
        const int length = groups->k - from < piece ? groups->k - from : piece, end = from + length,
                  ends = end % VK_AMX_GROUP == 0 || end == groups->k;
        groups->ready = vk_amx_level(groups, panel, end, piece);
        for (int r = 0; r < rows; r += VK_ROWS_MAX, tile ^= 1) {
            int32_t *to = part + (tiles > 2 ? tile : r / VK_ROWS_MAX) * VK_ROWS_MAX * VK_PAD;
            steps[rows - r <= 16](to, x->values + (size_t)r * x->ld + from, x->ld,
                                  vk_amx_piece(groups, piece, groups->turn), length, from % VK_AMX_GROUP, &shadow);
            shadow.part = to; shadow.scales = groups->scales + groups->turn % VK_GROUP_SCALES * VK_PAD;
            shadow.group = from / VK_AMX_GROUP; shadow.base = shadow.row = r;
            shadow.end = !ends ? 0 : rows - r < VK_ROWS_MAX ? rows : r + VK_ROWS_MAX;
        }
        vk_amx_level_rest(&groups->level, groups->bits);
        __asm__ volatile("" ::: "memory"); /* tile loads do not show the compiler that they read these bytes */
    }
    vk_bytes_shadow_rows(&shadow, VK_ROWS_MAX);
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
#endif
#endif
