/* test_pack.c - packing weights into panels: integers and scales of random, tied, tiny, infinite and NaN values follow the rule, written here value by value,
 * in whole panels and in some columns of one; packed files of random weights have the bytes that they had on 2026-11-27 */
#include "vlmprof.h"
#include "vlmprof_engine.h"

#include "engine/pack.c"

#include "support/check.h"
#include "support/folder.h"

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

/* FNV-1a of a file */
static uint64_t hash_of(const char *path) {
    size_t bytes = 0;
    char *data = check_read(path, &bytes);
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; data && i < bytes; i++) hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3ull;
    free(data);
    return hash;
}
static void test_files(void) {
    static const struct { const char *preset; vp_weights blocks, head, vision; uint64_t hash; } files[] = {
        {"tiny", VP_WEIGHTS_INT8, VP_WEIGHTS_INT8, VP_WEIGHTS_INT4, 0x9ac12754efa1ac22ull},
        {"tiny", VP_WEIGHTS_INT4, VP_WEIGHTS_INT4, VP_WEIGHTS_INT8, 0x04c4a1e0a0fe39c8ull},
        {"tiny-gemma3", VP_WEIGHTS_INT8, VP_WEIGHTS_INT4, VP_WEIGHTS_BF16, 0x0e34dcdc3c7f6607ull},
        {"tiny-qwen3-vl-moe", VP_WEIGHTS_INT4, VP_WEIGHTS_INT8, VP_WEIGHTS_INT4, 0x384b9c3e52e288d3ull}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        vp_convert_options options = vp_convert_options_default();
        vp_model_config config;
        check_case("the packed file of %s, precisions %d %d %d", files[i].preset, files[i].blocks, files[i].head, files[i].vision);
        CHECK_INT(vp_model_config_preset(files[i].preset, &config), VP_OK);
        options.config = &config;
        options.directory = folder;
        options.layout = VP_CONVERT_PACKED;
        options.weights = files[i].blocks; options.head_weights = files[i].head; options.vision_weights = files[i].vision;
        options.threads = 2;
        make_empty(folder);
        CHECK_INT(vp_engine_convert(&options, NULL), VP_OK);
        uint64_t hash = hash_of(in_folder(VP_PACKED_FILE));
        if (!CHECK(hash == files[i].hash)) printf("  0x%016llxull\n", (unsigned long long)hash);
    }
}

int main(void) {
    if (!folder_make("pack")) return 1;
    test_blocks(8);
    test_blocks(4);
    test_files();
    remove_folder(folder);
    return check_done("test_pack");
}
