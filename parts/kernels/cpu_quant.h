/* cpu_quant.h - linears whose weights are integers of 8 or 4 bits, a part of the room >>gemm of vlmprof_kernels.cu
 *
 * A panel is 32 rows of weights. It goes in blocks of 32 values of k: 32 scales (f32, one a row), then the integers,
 * value by value, 32 rows side by side. 8 bits: weight = scale * integer. 4 bits: weight = scale * (integer - 8); a
 * byte holds value j of the block below value j + 16. A single row of inputs meets the integers as they are read: a
 * decode step waits for memory, and reads 9 or 5 bits a weight instead of 16. Many rows meet a panel that was widened
 * to bf16 first, which the cache keeps while they pass. */
#ifndef VK_CPU_QUANT_H
#define VK_CPU_QUANT_H

/* sums f32 [32] of one row of bf16 inputs and a panel. The inputs' padding is 0. */
static VK_CLONES void vk_quant_row8(float *sums, const uint16_t *x, const char *panel, int k_padded) {
    float total[VK_PAD] = { 0.0f };
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK, panel += VK_PAD * (4 + VK_QUANT_BLOCK)) {
        const float *scale = (const float *)(const void *)panel;
        const int8_t *q = (const int8_t *)(panel + VK_PAD * 4);
        float part[VK_PAD] = { 0.0f };
        for (int k = 0; k < VK_QUANT_BLOCK; k++) {
            float value = vk_b2f(x[first + k]);
            __builtin_prefetch((const char *)q + 2048);
            EACH(c, VK_PAD) part[c] += value * (float)q[k * VK_PAD + c];
        }
        EACH(c, VK_PAD) total[c] += scale[c] * part[c];
    }
    memcpy(sums, total, sizeof total);
}
static VK_CLONES void vk_quant_row4(float *sums, const uint16_t *x, const char *panel, int k_padded) {
    enum { HALF = VK_QUANT_BLOCK / 2 };
    float total[VK_PAD] = { 0.0f };
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK, panel += VK_PAD * (4 + HALF)) {
        const float *scale = (const float *)(const void *)panel;
        const uint8_t *q = (const uint8_t *)(panel + VK_PAD * 4);
        float part[VK_PAD] = { 0.0f }, inputs = 0.0f;
        for (int k = 0; k < HALF; k++) {
            float low = vk_b2f(x[first + k]), high = vk_b2f(x[first + HALF + k]);
            inputs += low + high;
            __builtin_prefetch((const char *)q + 2048);
            EACH(c, VK_PAD)
                part[c] += low * (float)(q[k * VK_PAD + c] & 15) + high * (float)(q[k * VK_PAD + c] >> 4);
        }
        EACH(c, VK_PAD) total[c] += scale[c] * (part[c] - 8.0f * inputs);
    }
    memcpy(sums, total, sizeof total);
}
/* a panel as bf16: two values of k side by side for each of 32 rows */
static VK_CLONES void vk_quant_widen(uint16_t *out, const char *panel, int k_padded, int bits) {
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK, panel += VK_PAD * (4 + VK_QUANT_BLOCK * bits / 8)) {
        const float *scale = (const float *)(const void *)panel;
        const uint8_t *q = (const uint8_t *)(panel + VK_PAD * 4);
        for (int k = 0; k < VK_QUANT_BLOCK; k += 2, out += 2 * VK_PAD)
            for (int odd = 0; odd < 2; odd++) {
                int at = k + odd, line = bits == 8 ? at : at % (VK_QUANT_BLOCK / 2),
                    shift = at / (VK_QUANT_BLOCK / 2) * 4;
                const uint8_t *from = q + line * VK_PAD;
                if (bits == 8) EACH(c, VK_PAD) out[2 * c + odd] = vk_f2b(scale[c] * (float)(int8_t)from[c]);
                else EACH(c, VK_PAD) out[2 * c + odd] = vk_f2b(scale[c] * (float)((from[c] >> shift & 15) - 8));
            }
    }
}
/* what one thread widens to: a panel of the longest rows */
static void *vk_quant_room(const vk_cpu *cpu, int thread) {
    return (char *)cpu->widened + (size_t)thread * cpu->widened_bytes;
}
#endif
