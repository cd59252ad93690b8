/* gemm_x86.h - GEMM tiles for x86: AVX2, AVX-512, AVX-512 BF16 and AMX
 *
 * Part of section >>gemm in vlmprof_kernels.cu, which includes it after the code that all tiles share. */
#ifndef VK_GEMM_X86_H
#define VK_GEMM_X86_H

#define VK_T512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define VK_T512BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define VK_TAVX2 __attribute__((target("avx2,fma")))
/* every processor with AMX has these */
#define VK_TAMX __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")))
/* A single row waits for weights from memory. They are prefetched into the second-level cache one page ahead: Intel's
 * hardware prefetcher stops at each page, and prefetches into the first level disturb AMD's. */
#define VK_AHEAD(R, p) \
    if ((R) == 1) { \
        _mm_prefetch((const char *)(p) + 4096, _MM_HINT_T1); \
        _mm_prefetch((const char *)(p) + 4160, _MM_HINT_T1); \
    }

/* Calls F(R, y, xr, ..) for the next R rows, R a constant, until all rows are done. R is at most 12: 12 rows fill 24
 * of 32 vector registers. */
#define VK_ROWS_12(F, row, ...) \
    for (int left = rows; left > 0;) { \
        int now = left >= 24 || left <= 12 ? (left < 12 ? left : 12) : (left + 1) / 2; \
        switch (now) { \
        case 1: F(1, y, xr, __VA_ARGS__); break; case 2: F(2, y, xr, __VA_ARGS__); break; \
        case 3: F(3, y, xr, __VA_ARGS__); break; case 4: F(4, y, xr, __VA_ARGS__); break; \
        case 5: F(5, y, xr, __VA_ARGS__); break; case 6: F(6, y, xr, __VA_ARGS__); break; \
        case 7: F(7, y, xr, __VA_ARGS__); break; case 8: F(8, y, xr, __VA_ARGS__); break; \
        case 9: F(9, y, xr, __VA_ARGS__); break; case 10: F(10, y, xr, __VA_ARGS__); break; \
        case 11: F(11, y, xr, __VA_ARGS__); break; default: F(12, y, xr, __VA_ARGS__); break; \
        } \
        left -= now; \
        xr += (size_t)now * (row); \
        y += now * VK_PAD; \
    }

VK_T512BF16 VK_INLINE void vk_rows_avx512bf16(const int count, float *y, const uint16_t *x, size_t ldx,
                                              const uint16_t *panel, size_t k) {
    __m512 sums[12][2];
    VK_UNROLL for (int i = 0; i < count; i++) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    for (size_t j = 0; j < k; j += 2, panel += 2 * VK_PAD) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel), b1 = (__m512bh)_mm512_loadu_si512(panel + VK_PAD);
        VK_AHEAD(count, panel);
        VK_UNROLL for (int i = 0; i < count; i++) {
            int32_t pair;
            memcpy(&pair, x + (size_t)i * ldx + j, 4);
            sums[i][0] = _mm512_dpbf16_ps(sums[i][0], (__m512bh)_mm512_set1_epi32(pair), b0);
            sums[i][1] = _mm512_dpbf16_ps(sums[i][1], (__m512bh)_mm512_set1_epi32(pair), b1);
        }
    }
    VK_UNROLL for (int i = 0; i < count; i++) {
        _mm512_storeu_ps(y + i * VK_PAD, sums[i][0]);
        _mm512_storeu_ps(y + i * VK_PAD + 16, sums[i][1]);
    }
}
VK_T512BF16 static void vk_tile_avx512bf16(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x;
    VK_ROWS_12(vk_rows_avx512bf16, ldx, ldx, (const uint16_t *)panel, k)
}

/* fp32 FMA on bf16 pairs. Inputs are widened first, in strips of k that stay in the first-level cache: a broadcast from
 * memory is free, but one from a register is not. After the first strip, sums continue from y. */
enum { VK_STRIP = 256 };
typedef void (*vk_strip)(float *y, const float *x, const uint16_t *p, int k, int rows, int go_on);
static VK_CLONES void vk_tile_strips(vk_strip strip, float *y, const void *x, size_t ldx, const void *panel, size_t k,
                                     int rows) {
    float wide[VK_ROWS_MAX * VK_STRIP];
    for (size_t from = 0; from < k; from += VK_STRIP) {
        int length = k - from < VK_STRIP ? (int)(k - from) : VK_STRIP;
        for (int r = 0; r < rows; r++) {
            const uint16_t *xr = (const uint16_t *)x + (size_t)r * ldx + from;
            EACH(j, length) wide[r * VK_STRIP + j] = vk_b2f(xr[j]);
        }
        strip(y, wide, (const uint16_t *)panel + from * VK_PAD, length, rows, from > 0);
    }
}
VK_T512 VK_INLINE void vk_rows_avx512(const int count, float *y, const float *x, const uint16_t *panel, int k,
                                      int go_on) {
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    __m512 sums[12][2];
    VK_UNROLL for (int i = 0; i < count; i++) {
        sums[i][0] = go_on ? _mm512_loadu_ps(y + i * VK_PAD) : _mm512_setzero_ps();
        sums[i][1] = go_on ? _mm512_loadu_ps(y + i * VK_PAD + 16) : _mm512_setzero_ps();
    }
    for (int j = 0; j < k; j += 2, panel += 2 * VK_PAD) {
        __m512i u0 = _mm512_loadu_si512(panel), u1 = _mm512_loadu_si512(panel + VK_PAD);
        __m512 l0 = _mm512_castsi512_ps(_mm512_slli_epi32(u0, 16)),
               h0 = _mm512_castsi512_ps(_mm512_and_si512(u0, high));
        __m512 l1 = _mm512_castsi512_ps(_mm512_slli_epi32(u1, 16)),
               h1 = _mm512_castsi512_ps(_mm512_and_si512(u1, high));
        VK_AHEAD(count, panel);
        VK_UNROLL for (int i = 0; i < count; i++) {
            __m512 a = _mm512_set1_ps(x[i * VK_STRIP + j]), b = _mm512_set1_ps(x[i * VK_STRIP + j + 1]);
            sums[i][0] = _mm512_fmadd_ps(b, h0, _mm512_fmadd_ps(a, l0, sums[i][0]));
            sums[i][1] = _mm512_fmadd_ps(b, h1, _mm512_fmadd_ps(a, l1, sums[i][1]));
        }
    }
    VK_UNROLL for (int i = 0; i < count; i++) {
        _mm512_storeu_ps(y + i * VK_PAD, sums[i][0]);
        _mm512_storeu_ps(y + i * VK_PAD + 16, sums[i][1]);
    }
}
VK_T512 static void vk_strip_avx512(float *y, const float *x, const uint16_t *panel, int k, int rows, int go_on) {
    const float *xr = x;
    VK_ROWS_12(vk_rows_avx512, VK_STRIP, panel, k, go_on)
}
static void vk_tile_avx512(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    vk_tile_strips(vk_strip_avx512, y, x, ldx, panel, k, rows);
}
VK_T512 VK_INLINE void vk_rows_avx512_wide(const int count, float *y, const float *x, size_t ldx, const float *panel,
                                           size_t k) {
    __m512 sums[12][2];
    VK_UNROLL for (int i = 0; i < count; i++) sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    for (size_t j = 0; j < k; j++, panel += VK_PAD) {
        __m512 b0 = _mm512_loadu_ps(panel), b1 = _mm512_loadu_ps(panel + 16);
        VK_UNROLL for (int i = 0; i < count; i++) {
            __m512 a = _mm512_set1_ps(x[(size_t)i * ldx + j]);
            sums[i][0] = _mm512_fmadd_ps(a, b0, sums[i][0]);
            sums[i][1] = _mm512_fmadd_ps(a, b1, sums[i][1]);
        }
    }
    VK_UNROLL for (int i = 0; i < count; i++) {
        _mm512_storeu_ps(y + i * VK_PAD, sums[i][0]);
        _mm512_storeu_ps(y + i * VK_PAD + 16, sums[i][1]);
    }
}
VK_T512 static void vk_tile_avx512_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const float *xr = (const float *)x;
    VK_ROWS_12(vk_rows_avx512_wide, ldx, ldx, (const float *)panel, k)
}

/* AVX2: 16 columns at a time, 4 rows: 8 sums, 4 weights and 2 inputs in 16 registers */
VK_TAVX2 VK_INLINE void vk_rows_avx2(const int count, float *y, const float *x, const uint16_t *panel, int k,
                                     int go_on) {
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    for (int half = 0; half < VK_PAD; half += 16) {
        const uint16_t *half_panel = panel + 2 * half;
        float *to = y + half;
        __m256 sums[4][2];
        VK_UNROLL for (int i = 0; i < count; i++) {
            sums[i][0] = go_on ? _mm256_loadu_ps(to + i * VK_PAD) : _mm256_setzero_ps();
            sums[i][1] = go_on ? _mm256_loadu_ps(to + i * VK_PAD + 8) : _mm256_setzero_ps();
        }
        for (int j = 0; j < k; j += 2, half_panel += 2 * VK_PAD) {
            __m256i u0 = _mm256_loadu_si256((const __m256i *)(const void *)half_panel),
                    u1 = _mm256_loadu_si256((const __m256i *)(const void *)(half_panel + 16));
            __m256 l0 = _mm256_castsi256_ps(_mm256_slli_epi32(u0, 16)),
                   h0 = _mm256_castsi256_ps(_mm256_and_si256(u0, high));
            __m256 l1 = _mm256_castsi256_ps(_mm256_slli_epi32(u1, 16)),
                   h1 = _mm256_castsi256_ps(_mm256_and_si256(u1, high));
            VK_UNROLL for (int i = 0; i < count; i++) {
                __m256 a = _mm256_set1_ps(x[i * VK_STRIP + j]), b = _mm256_set1_ps(x[i * VK_STRIP + j + 1]);
                sums[i][0] = _mm256_fmadd_ps(b, h0, _mm256_fmadd_ps(a, l0, sums[i][0]));
                sums[i][1] = _mm256_fmadd_ps(b, h1, _mm256_fmadd_ps(a, l1, sums[i][1]));
            }
        }
        VK_UNROLL for (int i = 0; i < count; i++) {
            _mm256_storeu_ps(to + i * VK_PAD, sums[i][0]);
            _mm256_storeu_ps(to + i * VK_PAD + 8, sums[i][1]);
        }
    }
}
VK_TAVX2 static void vk_strip_avx2(float *y, const float *x, const uint16_t *panel, int k, int rows, int go_on) {
    const float *xr = x;
    VK_ROWS_4(vk_rows_avx2, VK_STRIP, panel, k, go_on)
}
static void vk_tile_avx2(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    vk_tile_strips(vk_strip_avx2, y, x, ldx, panel, k, rows);
}
VK_TAVX2 VK_INLINE void vk_rows_avx2_wide(const int count, float *y, const float *x, size_t ldx, const float *panel,
                                          size_t k) {
    for (int half = 0; half < VK_PAD; half += 16) {
        const float *half_panel = panel + half;
        __m256 sums[4][2];
        VK_UNROLL for (int i = 0; i < count; i++) sums[i][0] = sums[i][1] = _mm256_setzero_ps();
        for (size_t j = 0; j < k; j++, half_panel += VK_PAD) {
            __m256 b0 = _mm256_loadu_ps(half_panel), b1 = _mm256_loadu_ps(half_panel + 8);
            VK_UNROLL for (int i = 0; i < count; i++) {
                __m256 a = _mm256_set1_ps(x[(size_t)i * ldx + j]);
                sums[i][0] = _mm256_fmadd_ps(a, b0, sums[i][0]);
                sums[i][1] = _mm256_fmadd_ps(a, b1, sums[i][1]);
            }
        }
        VK_UNROLL for (int i = 0; i < count; i++) {
            _mm256_storeu_ps(y + i * VK_PAD + half, sums[i][0]);
            _mm256_storeu_ps(y + i * VK_PAD + half + 8, sums[i][1]);
        }
    }
}
VK_TAVX2 static void vk_tile_avx2_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const float *xr = (const float *)x;
    VK_ROWS_4(vk_rows_avx2_wide, ldx, ldx, (const float *)panel, k)
}

static int vk_has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
           && __builtin_cpu_supports("avx512dq");
}
static int vk_has_avx512bf16(void) { return vk_has_avx512() && __builtin_cpu_supports("avx512bf16"); }

#if defined(__linux__)
#define VK_AMX 1
/* operations on tiles; tests/emulator/amx_on_cpu.h gives the same in software */
#ifndef AMX_ON_CPU
#define vk_amx_configure(config) _tile_loadconfig(config)
#define vk_amx_release() _tile_release()
#define vk_amx_zero(to) _tile_zero(to)
#define vk_amx_load(to, from, stride) _tile_loadd(to, from, stride)
#define vk_amx_stream(to, from, stride) _tile_stream_loadd(to, from, stride)
#define vk_amx_store(from, to, stride) _tile_stored(from, to, stride)
#define vk_amx_products(to, left, right) _tile_dpbf16ps(to, left, right)
#define vk_amx_bytes(to, left, right) _tile_dpbssd(to, left, right)
#endif
/* v / (1 + 2^x), within 4e-6: a 14-bit reciprocal and one Newton step. Numbers below 2^-126 are avoided because they
 * take 100 cycles each. */
VK_TAMX VK_INLINE __m512 vk_share_avx512(__m512 v, __m512 x) {
    x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(125.0f)), _mm512_set1_ps(-126.0f));
    const __m512 power = vk_exp2_avx512(x);
    const __m512 whole = _mm512_add_ps(power, _mm512_set1_ps(1.0f)), inverse = _mm512_rcp14_ps(whole);
    return _mm512_mul_ps(v, _mm512_fmadd_ps(inverse, _mm512_fnmadd_ps(whole, inverse, _mm512_set1_ps(1.0f)), inverse));
}
/* vk_quickgelu, vk_gelu_tanh or vk_gelu */
VK_TAMX VK_INLINE __m512 vk_gelu_avx512(__m512 v, const vk_epilogue epilogue) {
    __m512 by = _mm512_set1_ps(epilogue == VK_QUICKGELU ? -2.455466957f : -2.302208198f), z, t, share;
    if (epilogue == VK_GELU_TANH)
        by = _mm512_fmadd_ps(_mm512_mul_ps(v, v), _mm512_set1_ps(-2.302208198f * 0.044715f), by);
    if (epilogue != VK_GELU) return vk_share_avx512(v, _mm512_mul_ps(v, by));
    z = _mm512_mul_ps(_mm512_abs_ps(v), _mm512_set1_ps(0.707106781f));
    t = _mm512_rcp14_ps(_mm512_fmadd_ps(z, _mm512_set1_ps(0.3275911f), _mm512_set1_ps(1.0f)));
    share = _mm512_fmadd_ps(_mm512_set1_ps(1.061405429f), t, _mm512_set1_ps(-1.453152027f));
    share = _mm512_fmadd_ps(share, t, _mm512_set1_ps(1.421413741f));
    share = _mm512_fmadd_ps(share, t, _mm512_set1_ps(-0.284496736f));
    share = _mm512_mul_ps(_mm512_fmadd_ps(share, t, _mm512_set1_ps(0.254829592f)), t);
    share = _mm512_mul_ps(share, _mm512_set1_ps(0.5f));
    share = _mm512_mul_ps(share, vk_exp2_avx512(_mm512_mul_ps(_mm512_mul_ps(z, z), _mm512_set1_ps(-1.442695041f))));
    return _mm512_mul_ps(v, _mm512_mask_sub_ps(share, _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GE_OQ),
                                               _mm512_set1_ps(1.0f), share));
}
/* vk_silu or vk_gelu_tanh */
VK_TAMX VK_INLINE __m512 vk_gate_avx512(const float *gate, const vk_epilogue epilogue) {
    const __m512 v = _mm512_loadu_ps(gate);
    if (epilogue == VK_GELU_MUL) return vk_gelu_avx512(v, VK_GELU_TANH);
    return vk_share_avx512(v, _mm512_mul_ps(v, _mm512_set1_ps(-1.442695041f)));
}
/* a row of a whole panel, with its bias -> y; short enough to run in parallel with the tile unit */
VK_TAMX VK_INLINE void vk_finish_values_amx(const vk_sink *sink, __m512 first, __m512 second, int row,
                                            const vk_epilogue epilogue) {
    char *y = sink->y + (size_t)row * sink->row_bytes;
    __m512i low, high;
    const int f32 = epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32;
    switch (epilogue) {
    case VK_ADD_F32:
        first = _mm512_add_ps(_mm512_loadu_ps((const float *)(void *)y), first);
        second = _mm512_add_ps(_mm512_loadu_ps((const float *)(void *)y + 16), second);
        _mm_prefetch(y + VK_ROWS_MAX * sink->row_bytes, _MM_HINT_T0);
        _mm_prefetch(y + VK_ROWS_MAX * sink->row_bytes + 64, _MM_HINT_T0);
        break;
    case VK_QUICKGELU: case VK_GELU: case VK_GELU_TANH:
        first = vk_gelu_avx512(first, epilogue);
        second = vk_gelu_avx512(second, epilogue);
        break;
    case VK_SILU_MUL: case VK_GELU_MUL:
        first = _mm512_mul_ps(first, vk_gate_avx512(sink->gate + row * VK_PAD, epilogue));
        second = _mm512_mul_ps(second, vk_gate_avx512(sink->gate + row * VK_PAD + 16, epilogue));
        break;
    default: break;
    }
    low = f32 ? _mm512_castps_si512(first) : (__m512i)_mm512_cvtne2ps_pbh(second, first);
    high = _mm512_castps_si512(second);
    if (sink->stream) _mm512_stream_si512((__m512i *)(void *)y, low);
    else _mm512_storeu_si512(y, low);
    if (f32 && sink->stream) _mm512_stream_si512((__m512i *)(void *)(y + 64), high);
    else if (f32) _mm512_storeu_si512(y + 64, high);
}
VK_TAMX VK_INLINE void vk_finish_row_amx(const vk_sink *sink, const float *sums, int row) {
    __m512 first = _mm512_loadu_ps(sums), second = _mm512_loadu_ps(sums + 16);
    if (sink->cols < VK_PAD) { vk_finish_row(sink, sums, row); return; }
    if (sink->bias) {
        first = _mm512_add_ps(first, _mm512_loadu_ps(sink->bias));
        second = _mm512_add_ps(second, _mm512_loadu_ps(sink->bias + 16));
    }
    vk_finish_values_amx(sink, first, second, row, sink->epilogue);
}
/* Extra work while the tile products run: each step prefetches `lines` lines of weights into the second-level cache and
 * finishes two of the rows [row, end) of sums. */
typedef struct vk_shadow {
    const char *ahead;
    int lines;
    const vk_sink *sink;
    const float *sums;
    int row, end;
} vk_shadow;

/* 2 x 2 tiles of 16 x 16 sums, in steps of k = 32; go_on: adds to y. Rows beyond `rows` are read and ignored: GEMM
 * inputs have VK_ROWS_MAX spare rows. If `shadow` is given, x bypasses the first-level cache: there it would
 * displace the weights, which are used again. */
VK_TAMX VK_INLINE void vk_amx_steps(const int two, float *y, const uint16_t *x, size_t ldx, const uint16_t *panel,
                                    size_t k, int go_on, vk_shadow *shadow) {
    const long row_bytes = (long)ldx * 2;
    if (go_on) { vk_amx_load(0, y, 4 * VK_PAD); vk_amx_load(1, y + 16, 4 * VK_PAD); }
    else { vk_amx_zero(0); vk_amx_zero(1); }
    if (two && go_on) { vk_amx_load(2, y + 16 * VK_PAD, 4 * VK_PAD); vk_amx_load(3, y + 16 * VK_PAD + 16, 4 * VK_PAD); }
    else if (two) { vk_amx_zero(2); vk_amx_zero(3); }
    for (size_t j = 0; j < k; j += 32, panel += 32 * VK_PAD) {
        if (shadow) vk_amx_stream(4, x + j, row_bytes);
        else vk_amx_load(4, x + j, row_bytes);
        vk_amx_load(6, panel, 4 * VK_PAD);
        vk_amx_load(7, panel + VK_PAD, 4 * VK_PAD);
        if (two && shadow) vk_amx_stream(5, x + 16 * ldx + j, row_bytes);
        else if (two) vk_amx_load(5, x + 16 * ldx + j, row_bytes);
        vk_amx_products(0, 4, 6);
        vk_amx_products(1, 4, 7);
        if (two) { vk_amx_products(2, 5, 6); vk_amx_products(3, 5, 7); }
        if (!shadow) continue;
        for (int i = 0; i < shadow->lines; i++, shadow->ahead += 64) _mm_prefetch(shadow->ahead, _MM_HINT_T1);
        for (int i = 0; i < 2 && shadow->row < shadow->end; i++, shadow->row++)
            vk_finish_row_amx(shadow->sink, shadow->sums + shadow->row * VK_PAD, shadow->row);
    }
    vk_amx_store(0, y, 4 * VK_PAD);
    vk_amx_store(1, y + 16, 4 * VK_PAD);
    if (two) { vk_amx_store(2, y + 16 * VK_PAD, 4 * VK_PAD); vk_amx_store(3, y + 16 * VK_PAD + 16, 4 * VK_PAD); }
}
VK_TAMX static void vk_tile_amx(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    if (rows == 1) vk_tile_avx512bf16(y, x, ldx, panel, k, rows); /* memory-bound; vector loads read it faster */
    else if (rows > 16) vk_amx_steps(1, y, (const uint16_t *)x, ldx, (const uint16_t *)panel, k, 0, NULL);
    else vk_amx_steps(0, y, (const uint16_t *)x, ldx, (const uint16_t *)panel, k, 0, NULL);
}
/* scores f32 of 32 queries, in tiles of [32, 32]. The softmax of the block before runs while the tiles multiply. */
VK_TAMX static void vk_scores_amx(float *scores, const void *queries, size_t width, const void *k_panels, int count,
                                  vk_softening *softening) {
    const char *panel = (const char *)k_panels;
    for (int j = 0; j < count; j += VK_PAD, scores += VK_ROWS_MAX * VK_PAD) {
        const char *q = (const char *)queries;
        vk_amx_zero(0); vk_amx_zero(1); vk_amx_zero(2); vk_amx_zero(3);
        for (size_t at = 0; at < width; at += 32, q += 64, panel += 64 * VK_PAD) {
            vk_amx_load(4, q, (long)width * 2);
            vk_amx_load(6, panel, 4 * VK_PAD);
            vk_amx_load(7, panel + 2 * VK_PAD, 4 * VK_PAD);
            vk_amx_load(5, q + 32 * width, (long)width * 2);
            VK_UNROLL for (int i = 0; i < 32; i++) _mm_prefetch(panel + VK_PAD * width * 2 + 64 * i, _MM_HINT_T0);
            vk_amx_products(0, 4, 6);
            vk_amx_products(1, 4, 7);
            vk_amx_products(2, 5, 6);
            vk_amx_products(3, 5, 7);
        }
        vk_soften_next(softening);
        vk_amx_store(0, scores, 4 * VK_PAD);
        vk_amx_store(1, scores + 16, 4 * VK_PAD);
        vk_amx_store(2, scores + 16 * VK_PAD, 4 * VK_PAD);
        vk_amx_store(3, scores + 16 * VK_PAD + 16, 4 * VK_PAD);
    }
}
/* One panel times all rows of a task, sums in f32 [rows, 32] (aligned to 64 bytes; rows rounded up to 32). k is
 * divided into blocks whose weights, 32 kB, stay in the first-level cache while the rows pass; the next block is
 * fetched meanwhile. In the last block each tile's rows are finished while the next tile's products run. */
enum { VK_AMX_BLOCK = 512 };
VK_TAMX static void vk_panel_amx(const vk_sink *sink, float *sums, const void *x, size_t ldx, const void *panel,
                                 size_t k, int rows) {
    size_t blocks = (k + VK_AMX_BLOCK - 1) / VK_AMX_BLOCK, block = ((k / VK_PAD + blocks - 1) / blocks) * VK_PAD;
    int tiles = (rows + VK_ROWS_MAX - 1) / VK_ROWS_MAX;
    vk_shadow shadow;
    shadow.lines = (VK_PAD + tiles - 1) / tiles; shadow.sink = sink; shadow.sums = sums; shadow.row = 0;
    for (int r = 0; sink->epilogue == VK_ADD_F32 && r < rows && r < VK_ROWS_MAX; r++) {
        _mm_prefetch(sink->y + (size_t)r * sink->row_bytes, _MM_HINT_T0);
        _mm_prefetch(sink->y + (size_t)r * sink->row_bytes + 64, _MM_HINT_T0);
    }
    for (size_t from = 0; from < k; from += block) {
        size_t length = k - from < block ? k - from : block;
        const uint16_t *xr = (const uint16_t *)x + from, *weights = (const uint16_t *)panel + from * VK_PAD;
        shadow.ahead = (const char *)(weights + length * VK_PAD);
        for (int r = 0; r < rows; r += VK_ROWS_MAX, xr += VK_ROWS_MAX * ldx) {
            shadow.end = from + length < k ? 0 : r;
            if (rows - r > 16) vk_amx_steps(1, sums + r * VK_PAD, xr, ldx, weights, length, from > 0, &shadow);
            else vk_amx_steps(0, sums + r * VK_PAD, xr, ldx, weights, length, from > 0, &shadow);
        }
    }
    for (; shadow.row < rows; shadow.row++) vk_finish_row_amx(sink, sums + shadow.row * VK_PAD, shadow.row);
    _mm_sfence(); /* required to order streaming stores */
}
VK_TAMX static void vk_amx_begin(void) {
    /* static: GCC 12's intrinsic does not declare that it reads the whole struct, so stores to a local are dropped */
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    vk_amx_configure(&config);
}
VK_TAMX static void vk_amx_end(void) { vk_amx_release(); }
/* CPUID shows whether the processor has AMX; the operating system must also grant this process the tile state */
#ifdef AMX_ON_CPU
static int vk_has_amx(void) { return vk_has_avx512bf16(); } /* tests/emulator/amx_on_cpu.h */
#else
static int vk_has_amx(void) {
    unsigned a = 7, b, c = 0, d;
    const long arch_req_xcomp_perm = 0x1023, xtiledata = 18;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (!(d >> 22 & 1) || !(d >> 24 & 1) || !vk_has_avx512bf16()) return 0; /* AMX-BF16, AMX-TILE */
    return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xtiledata) == 0;
}
#endif
#endif
static int vk_has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
