/* gemm_neon.h - GEMM tiles for 64-bit ARM: NEON, and the two products of bf16 pairs that newer processors have
 *
 * Part of section >>gemm in vlmprof_kernels.cu, which includes it after the code that all tiles share. */
#ifndef VK_GEMM_NEON_H
#define VK_GEMM_NEON_H

/* 1 or 2 rows: all 32 columns of a panel at a time; more rows: 16 columns. Then 16 sums fit in the 32 vector registers
 * together with weights and inputs. */
#define VK_NEON_VECTORS(count) ((count) > 2 ? 4 : 8)
/* sums += inputs of one k * weights[]; the constant `lane` is the position of that k in the input vectors */
#define VK_NEON_TIMES(lane) \
    VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = \
        vfmaq_laneq_f32(sums[i][v], weights[v], in[i], lane)

VK_INLINE void vk_zero_neon(const int count, const int vectors, float32x4_t (*sums)[8]) {
    VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int v = 0; v < vectors; v++) sums[i][v] =
        vdupq_n_f32(0.0f);
}
VK_INLINE void vk_store_neon(const int count, const int vectors, float *y, float32x4_t (*sums)[8]) {
    VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int v = 0; v < vectors; v++)
        vst1q_f32(y + i * VK_PAD + v * 4, sums[i][v]);
}

/* fp32 FMA on bf16 pairs */
VK_INLINE void vk_rows_neon(const int count, float *y, const uint16_t *x, size_t ldx, const uint32_t *panel, size_t k) {
    const int vectors = VK_NEON_VECTORS(count);
    const uint32x4_t high = vdupq_n_u32(0xffff0000u);
    for (int column = 0; column < VK_PAD; column += vectors * 4) {
        const uint32_t *pairs = panel + column;
        float32x4_t sums[4][8], in[4], weights[8];
        vk_zero_neon(count, vectors, sums);
        for (size_t j = 0; j < k; j += 4, pairs += 2 * VK_PAD) {
            uint32x4_t two[8];
            VK_UNROLL for (int i = 0; i < count; i++) in[i] =
                vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(x + (size_t)i * ldx + j), 16));
#define VK_NEON_PAIR(from, lane) \
    VK_UNROLL for (int v = 0; v < vectors; v++) two[v] = vld1q_u32((from) + v * 4); \
    VK_UNROLL for (int v = 0; v < vectors; v++) weights[v] = vreinterpretq_f32_u32(vshlq_n_u32(two[v], 16)); \
    VK_NEON_TIMES(lane); \
    VK_UNROLL for (int v = 0; v < vectors; v++) weights[v] = vreinterpretq_f32_u32(vandq_u32(two[v], high)); \
    VK_NEON_TIMES((lane) + 1)
            VK_NEON_PAIR(pairs, 0);
            VK_NEON_PAIR(pairs + VK_PAD, 2);
#undef VK_NEON_PAIR
        }
        vk_store_neon(count, vectors, y + column, sums);
    }
}
static void vk_tile_neon(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x;
    VK_ROWS_4(vk_rows_neon, ldx, ldx, (const uint32_t *)panel, k)
}
VK_INLINE void vk_rows_neon_wide(const int count, float *y, const float *x, size_t ldx, const float *panel, size_t k) {
    const int vectors = VK_NEON_VECTORS(count);
    for (int column = 0; column < VK_PAD; column += vectors * 4) {
        const float *from = panel + column;
        float32x4_t sums[4][8], in[4], weights[8];
        vk_zero_neon(count, vectors, sums);
        for (size_t j = 0; j < k; j += 4, from += 4 * VK_PAD) {
            VK_UNROLL for (int i = 0; i < count; i++) in[i] = vld1q_f32(x + (size_t)i * ldx + j);
#define VK_NEON_ONE(lane) \
    VK_UNROLL for (int v = 0; v < vectors; v++) weights[v] = vld1q_f32(from + (lane)*VK_PAD + v * 4); \
    VK_NEON_TIMES(lane)
            VK_NEON_ONE(0);
            VK_NEON_ONE(1);
            VK_NEON_ONE(2);
            VK_NEON_ONE(3);
#undef VK_NEON_ONE
        }
        vk_store_neon(count, vectors, y + column, sums);
    }
}
static void vk_tile_neon_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const float *xr = (const float *)x;
    VK_ROWS_4(vk_rows_neon_wide, ldx, ldx, (const float *)panel, k)
}
static int vk_has_neon(void) { return 1; }

#ifdef VK_NEON_BF16
#define VK_TBF16 __attribute__((target("arch=armv8.2-a+bf16")))
/* BFDOT: a pair of inputs times the pairs of 4 columns, unchanged in the panel */
VK_TBF16 VK_INLINE void vk_rows_bfdot(const int count, float *y, const uint16_t *x, size_t ldx, const uint16_t *panel,
                                      size_t k) {
    const int vectors = VK_NEON_VECTORS(count);
    for (int column = 0; column < VK_PAD; column += vectors * 4) {
        const uint16_t *from = panel + 2 * column;
        float32x4_t sums[4][8];
        bfloat16x8_t in[4], weights[8];
        vk_zero_neon(count, vectors, sums);
        for (size_t j = 0; j < k; j += 8, from += 8 * VK_PAD) {
            VK_UNROLL for (int i = 0; i < count; i++) in[i] =
                vreinterpretq_bf16_u16(vld1q_u16(x + (size_t)i * ldx + j));
#define VK_NEON_PAIR(pair) \
    VK_UNROLL for (int v = 0; v < vectors; v++) weights[v] = \
        vreinterpretq_bf16_u16(vld1q_u16(from + (pair)*2 * VK_PAD + v * 8)); \
    VK_UNROLL for (int i = 0; i < count; i++) VK_UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = \
        vbfdotq_laneq_f32(sums[i][v], weights[v], in[i], pair)
            VK_NEON_PAIR(0);
            VK_NEON_PAIR(1);
            VK_NEON_PAIR(2);
            VK_NEON_PAIR(3);
#undef VK_NEON_PAIR
        }
        vk_store_neon(count, vectors, y + column, sums);
    }
}
VK_TBF16 static void vk_tile_bfdot(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x;
    VK_ROWS_4(vk_rows_bfdot, ldx, ldx, (const uint16_t *)panel, k)
}
/* BFMMLA: 2 rows times 2 columns, 4 deep; 2, 4, 6 or 8 rows times 8 columns at a time. `a` and `b` combine the 64-bit
 * halves of 2 rows, and of the pairs k, k + 2 of 2 columns. With an odd number of rows, one more row is read and its
 * sums are stored: GEMM inputs and tiles have VK_ROWS_MAX rows. */
VK_TBF16 VK_INLINE void vk_rows_bfmmla(const int twos, float *y, const uint16_t *x, size_t ldx, const uint32_t *panel,
                                       size_t k) {
    for (int column = 0; column < VK_PAD; column += 8) {
        const uint32_t *pairs = panel + column;
        float32x4_t sums[4][4];
        VK_UNROLL for (int i = 0; i < twos; i++) VK_UNROLL for (int v = 0; v < 4; v++) sums[i][v] = vdupq_n_f32(0.0f);
        for (size_t j = 0; j < k; j += 4, pairs += 2 * VK_PAD) {
            bfloat16x8_t a[4], b[4];
            VK_UNROLL for (int v = 0; v < 2; v++) {
                uint32x4_t first = vld1q_u32(pairs + v * 4), second = vld1q_u32(pairs + VK_PAD + v * 4);
                b[2 * v] = vreinterpretq_bf16_u32(vzip1q_u32(first, second));
                b[2 * v + 1] = vreinterpretq_bf16_u32(vzip2q_u32(first, second));
            }
            VK_UNROLL for (int i = 0; i < twos; i++) {
                const uint16_t *row = x + (size_t)(2 * i) * ldx + j;
                a[i] = vreinterpretq_bf16_u16(vcombine_u16(vld1_u16(row), vld1_u16(row + ldx)));
            }
            VK_UNROLL for (int i = 0; i < twos; i++) VK_UNROLL for (int v = 0; v < 4; v++) sums[i][v] =
                vbfmmlaq_f32(sums[i][v], a[i], b[v]);
        }
        VK_UNROLL for (int i = 0; i < twos; i++) VK_UNROLL for (int v = 0; v < 4; v++) {
            float *to = y + 2 * i * VK_PAD + column + 2 * v;
            vst1_f32(to, vget_low_f32(sums[i][v]));
            vst1_f32(to + VK_PAD, vget_high_f32(sums[i][v]));
        }
    }
}
VK_TBF16 static void vk_tile_bfmmla(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x;
    const uint32_t *pairs = (const uint32_t *)panel;
    if (rows == 1) { vk_tile_bfdot(y, x, ldx, panel, k, rows); return; } /* the second row of each pair would be idle */
    for (int r = 0; r < rows; r += 8, xr += 8 * ldx, y += 8 * VK_PAD)
        switch ((rows - r + 1) / 2) {
        case 1: vk_rows_bfmmla(1, y, xr, ldx, pairs, k); break;
        case 2: vk_rows_bfmmla(2, y, xr, ldx, pairs, k); break;
        case 3: vk_rows_bfmmla(3, y, xr, ldx, pairs, k); break;
        default: vk_rows_bfmmla(4, y, xr, ldx, pairs, k); break;
        }
}
static int vk_has_bf16(void) { return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0; }
#endif
#endif
