/* test_pack.c - packing weights into panels: integers and scales of random, tied, tiny, infinite and NaN values follow the rule, written here value by value,
 * in whole panels and in some columns of one */

#include "engine/pack.c"

#include "support/check.h"

/* A block of a row by the rule: scale and integers. With 8 bits, the largest value becomes 127; with 4 bits, -8, and values are limited to 7. If the scale is NaN, the
 * integers are meaningless. */
static void rule(const float *row, int bits, uint16_t *scale, int *integers) {
    float most = 0.0f;
    for (int k = 0; k < VK_QUANT_BLOCK; k++)
        if ((vk_bits(row[k]) & 0x7fffffffu) > (vk_bits(most) & 0x7fffffffu)) most = row[k];
    most = bits == 8 ? fabsf(most) / 127.0f : most / -8.0f;
    *scale = isnan(most) ? 0x7fc0 : vp_f32_to_bf16(most);
    for (int k = 0; k < VK_QUANT_BLOCK; k++) {
        float by = vp_bf16_to_f32(*scale), times = row[k] * (by == 0.0f ? 0.0f : 1.0f / by);
        int least = bits == 8 ? -127 : -8, largest = bits == 8 ? 127 : 7;
        int sign = vk_bits(times) >> 31 ? -1 : 1;
        integers[k] = !(fabsf(times) < 512.0f) ? sign * 512 : (int)roundf(times);
        integers[k] = integers[k] < least ? least : integers[k] > largest ? largest : integers[k];
    }
}
static int integer_in(const char *block, int column, int k, int bits) {
    static const int byte_of[4] = {0, 2, 1, 3};
    const unsigned char *words = (const unsigned char *)block + VK_PAD * 2;
    if (bits == 8) return (signed char)words[(k / 4 * VK_PAD + column) * 4 + byte_of[k % 4]];
    return (words[(k / 8 * VK_PAD + column) * 4 + byte_of[k % 4]] >> (k % 8 / 4 * 4) & 15) - 8;
}
static float drawn(uint64_t *seed, int kind) {
    const uint64_t bits = *seed = vk_mix(*seed + 0x9e3779b97f4a7c15ull);
    float value = vp_bf16_to_f32((uint16_t)bits);
    switch (kind) {
    case 0: return (float)(int32_t)bits * 4.656612873e-10f;
    case 1: return (float)((int)(bits % 33) - 16) / 4.0f;                      /* ties, and magnitudes up to the largest */
    case 2: return vk_float((uint32_t)bits);                                  /* any bits, including NaN and infinity */
    case 3: return vk_float((uint32_t)bits & 0x8000ffffu);                    /* subnormal */
    case 4: return bits % 5 ? 0.0f : -0.0f;
    case 5: return vk_float(((uint32_t)bits & 0x80ffffffu) | (bits >> 60 ? 0x01000000u : 0)); /* scales near the smallest normal number */
    default: return bits >> 58 == 0 ? INFINITY : value;
    }
}
static void test_blocks(int bits) {
    enum { BYTES = VK_PAD * 2 + VK_PAD * VK_QUANT_BLOCK };
    uint64_t seed = 7;
    for (int kind = 0; kind < 7; kind++) {
        int64_t wrong = 0, outside = 0;
        check_case("integers of %d bits, values of kind %d", bits, kind);
        for (int round = 0; round < 300; round++) {
            const int first = round % 3 ? 0 : round % 31, count = round % 3 ? VK_PAD : 1 + (round * 7) % (VK_PAD - first);
            char block[BYTES], was[BYTES];
            float lines[VK_QUANT_BLOCK * VK_PAD], row[VK_QUANT_BLOCK];
            for (int i = 0; i < VK_QUANT_BLOCK * VK_PAD; i++) lines[i] = drawn(&seed, kind);
            for (int i = 0; i < BYTES; i++) block[i] = was[i] = (char)(i * 31);
            vk_quantise_block(block, lines, first, count, bits);
            for (int c = 0; c < VK_PAD; c++) {
                const uint16_t *scales = (const uint16_t *)(const void *)block, *scales_were = (const uint16_t *)(const void *)was;
                int integers[VK_QUANT_BLOCK], is_inside = c >= first && c < first + count;
                uint16_t scale;
                for (int k = 0; k < VK_QUANT_BLOCK; k++) row[k] = lines[k * VK_PAD + c];
                rule(row, bits, &scale, integers);
                if (is_inside) wrong += scales[c] != scale;
                else outside += scales[c] != scales_were[c];
                for (int k = 0; k < VK_QUANT_BLOCK; k++) {
                    if (is_inside) wrong += (scale & 0x7f80) != 0x7f80 && integer_in(block, c, k, bits) != integers[k];
                    else outside += integer_in(block, c, k, bits) != integer_in(was, c, k, bits);
                }
            }
        }
        CHECK_INT(wrong, 0);
        CHECK_INT(outside, 0);
    }
}

int main(void) {
    test_blocks(8);
    test_blocks(4);
    return check_done("test_pack");
}
