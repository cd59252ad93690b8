/* pack.c - packs rows of weights, read or drawn, into panels for the CPU's kernels, or into rows of integers if the
 * backend uses rows */
#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host_loops.h"

uint64_t vk_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}


/* ---- rows of a source */

/* element i of an in-type array */
static inline void vk_put(void *out, size_t i, float value, int wide) {
    if (wide) ((float *)out)[i] = value;
    else ((uint16_t *)out)[i] = vk_f2b(value);
}

/* a convolution kernel with the colour dimension moved last */
static void vk_source_patch(const vk_source *source, int64_t row, void *out, int columns, int padded_columns,
                            int wide) {
    vk_source plain = *source;
    float values[VK_PATCH_VALUES_MAX];
    int pixels = columns / 3, frames = source->frames;
    plain.patch_px = 0;
    plain.times = 0.0f;
    vk_source_row(&plain, row, values, frames * columns, frames * columns, 1);
    for (int i = 0; i < columns; i++) {
        float sum = 0.0f;
        for (int f = 0; f < frames; f++) sum += values[(i % 3 * frames + f) * pixels + i / 3];
        vk_put(out, (size_t)i, sum, wide);
    }
    for (int i = columns; i < padded_columns; i++) vk_put(out, (size_t)i, 0.0f, wide);
}

static float vk_element_of(const vp_tensor *tensor, size_t at) {
    uint16_t half;
    float value;
    if (tensor->dtype == VP_DTYPE_F32) {
        memcpy(&value, tensor->data + at * 4, 4);
        return value;
    }
    memcpy(&half, tensor->data + at * 2, 2);
    return tensor->dtype == VP_DTYPE_F16 ? vp_f16_to_f32(half) : vp_bf16_to_f32(half);
}

/* column `row` of a transposed matrix */
static void vk_source_column(const vk_source *source, int64_t row, void *out, int columns, int padded_columns,
                             int wide) {
    for (int i = 0; i < padded_columns; i++) {
        int64_t from = source->first + i;
        float value = 0.0f;
        if (i < columns && source->synthetic)
            value = source->offset + source->scale * vk_drawn(vk_row_key(source, from), (uint32_t)row);
        else if (i < columns) value = vk_element_of(&source->tensor, (size_t)(from * source->columns + row));
        vk_put(out, (size_t)i, value, wide);
    }
}

static VK_CLONES void vk_read_row(const vk_source *source, int64_t row, void *out, int columns, int padded_columns,
                                  int wide) {
    const unsigned char *data = source->tensor.data;
    size_t first = (size_t)(source->first + row) * (size_t)columns;
    int rest = padded_columns - columns;
    if (source->patch_px) {
        vk_source_patch(source, row, out, columns, padded_columns, wide);
        return;
    }
    if (source->columns) {
        vk_source_column(source, row, out, columns, padded_columns, wide);
        return;
    }
    if (source->synthetic) {
        uint32_t key = vk_row_key(source, source->first + row);
        float scale = source->scale, offset = source->offset;
        VK_SIMD for (int i = 0; i < columns; i++)
            vk_put(out, (size_t)i, offset + scale * vk_drawn(key, (uint32_t)i), wide);
    } else if (source->tensor.dtype == VP_DTYPE_F32) {
        for (int i = 0; i < columns; i++) {
            float v;
            memcpy(&v, data + (first + (size_t)i) * 4, 4);
            if (wide) ((float *)out)[i] = v;
            else ((uint16_t *)out)[i] = vp_f32_to_bf16(v);
        }
    } else if (source->tensor.dtype == VP_DTYPE_BF16 && !wide) {
        memcpy(out, data + first * 2, (size_t)columns * 2);
    } else {
        int half = source->tensor.dtype == VP_DTYPE_F16;
        for (int i = 0; i < columns; i++) {
            uint16_t u;
            memcpy(&u, data + (first + (size_t)i) * 2, 2);
            float v = half ? vp_f16_to_f32(u) : vp_bf16_to_f32(u);
            if (wide) ((float *)out)[i] = v;
            else ((uint16_t *)out)[i] = vp_f32_to_bf16(v);
        }
    }
    VK_SIMD for (int i = 0; i < rest; i++) vk_put(out, (size_t)(columns + i), 0.0f, wide);
}

/* reads, then scales; in bf16 both steps round, as in the references */
void vk_source_row(const vk_source *source, int64_t row, void *out, int columns, int padded_columns, int wide) {
    vk_read_row(source, row, out, columns, padded_columns, wide);
    for (int i = 0; source->times && i < columns; i++) {
        float value = wide ? ((float *)out)[i] : vp_bf16_to_f32(((uint16_t *)out)[i]);
        vk_put(out, (size_t)i, source->times * (value + source->plus), wide);
    }
}

/* ---- panels */

/* inlined into each clone of its callers */
#ifdef __GNUC__
#define VK_ALWAYS inline __attribute__((always_inline))
#else
#define VK_ALWAYS inline
#endif
enum { VK_PIECE_WORDS = 16 }; /* words per row that are converted at once: one cache line */

/* Interleaves `count` of 32 rows of words (two bf16 along k, or one f32), `stride` apart, into columns first.. of
 * `words` lines. A line has one word of each of the 32 rows. It uses a small copy, because rows are often a multiple of
 * 4 kB apart and would evict each other from the cache. */
static VK_CLONES void vk_interleave(uint32_t *lines, const uint32_t *rows, size_t stride, int first, int count,
                                    int words) {
    uint32_t piece[VK_PAD][VK_PIECE_WORDS];
    for (int j = 0; j < words; j += VK_PIECE_WORDS, rows += VK_PIECE_WORDS, lines += VK_PIECE_WORDS * VK_PAD) {
        for (int c = 0; c < count; c++) memcpy(piece[c], rows + (size_t)c * stride, sizeof piece[c]);
        for (int i = 0; i < VK_PIECE_WORDS; i++)
            for (int c = 0; c < count; c++) lines[i * VK_PAD + first + c] = piece[c][i];
    }
}

/* ---- drawn weights: the same bits as VK_PAD interleaved rows of vk_source_row, because a value depends only on its
 * row and column */

/* Returns 1 if rows can be drawn directly into the panel, without a temporary row. */
static int vk_is_drawn_whole(const vk_source *source) {
    return source->synthetic && !source->patch_px && !source->columns && !source->times;
}
static void vk_draw_keys(const vk_source *source, int64_t row, uint32_t *keys) {
    for (int c = 0; c < VK_PAD; c++) keys[c] = vk_row_key(source, source->first + row + c);
}
/* draws f32 lines, starting at first */
static VK_CLONES void vk_draw_lines(const vk_source *source, const uint32_t *keys, float *lines, int first, int count,
                                    int k) {
    const float scale = source->scale, offset = source->offset;
    for (int j = first; j < first + count && j < k; j++, lines += VK_PAD)
        VK_SIMD for (int c = 0; c < VK_PAD; c++) lines[c] = offset + scale * vk_drawn(keys[c], (uint32_t)j);
    for (int j = first > k ? first : k; j < first + count; j++, lines += VK_PAD)
        memset(lines, 0, VK_PAD * sizeof *lines);
}
/* lines of two bf16 */
static VK_CLONES void vk_draw_pairs(const vk_source *source, const uint32_t *keys, uint32_t *lines, int k,
                                    int k_padded) {
    const float scale = source->scale, offset = source->offset;
    for (int j = 0; j < k / 2; j++, lines += VK_PAD)
        VK_SIMD for (int c = 0; c < VK_PAD; c++) lines[c] =
            vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(2 * j)))
            | (uint32_t)vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(2 * j + 1))) << 16;
    if (k % 2) {
        for (int c = 0; c < VK_PAD; c++) lines[c] = vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(k - 1)));
        lines += VK_PAD;
    }
    memset(lines, 0, (size_t)(k_padded / 2 - (k + 1) / 2) * VK_PAD * sizeof *lines);
}

/* ---- integers */
static inline uint32_t vk_bits(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
}
static inline float vk_float(uint32_t word) {
    float value;
    memcpy(&value, &word, 4);
    return value;
}
/* Rounds half away from zero like roundf, for values of at most 2^22. */
static inline int vk_rounded_off(float value) {
    /* the largest float below 0.5 */
    return (int)(value + vk_float((vk_bits(value) & 0x80000000u) | 0x3effffffu));
}
/* Limits magnitudes to 512, and turns NaN into 512. It compares integers, because compilers do not vectorise float
 * comparisons, which may trap. */
static inline float vk_cut(float value) {
    const uint32_t word = vk_bits(value), size = word & 0x7fffffffu;
    return vk_float((word & 0x80000000u) | (size > 0x44000000u ? 0x44000000u : size));
}
static inline int vk_clamped(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}
/* the bf16 scale for a largest value; integers are computed with the rounded scale, so its rounding hardly matters */
static inline uint16_t vk_scale_of(float most, int bits) {
    const float scale = bits == 8 ? vk_float(vk_bits(most) & 0x7fffffffu) / 127.0f : most / -8.0f;
    return (vk_bits(scale) & 0x7fffffffu) > 0x7f800000u ? 0x7fc0 : vk_f2b(scale);
}
static inline float vk_inverse_of(uint16_t scale) {
    const uint32_t word = (uint32_t)scale << 16, is_zero = (word & 0x7fffffffu) == 0;
    return 1.0f / vk_float(is_zero ? 0x7f800000u : word); /* 1 / infinity: 0 */
}
/* value * inverse -> 8 bits: -127 to 127; 4 bits: 0 to 15. is_tame: the scale is normal or 0, so values are at most
 * 127.5 or 8.5 times the scale. */
static inline uint32_t vk_integer_of(float value, float inverse, const int bits, const int is_tame) {
    const float times = value * inverse;
    int whole = vk_rounded_off(is_tame ? times : vk_cut(times));
    if (bits == 8) return (uint32_t)(is_tame ? whole : vk_clamped(whole, -127, 127)) & 0xff;
    whole += 8;
    whole = whole > 15 ? 15 : whole;
    return (uint32_t)(is_tame || whole > 0 ? whole : 0);
}
/* makes a line of words from the f32 lines that its bytes encode: kernels/cpu/quant_rows.h */
static VK_ALWAYS void vk_quantise_words(uint32_t *words, const float *lines, const float *inverse, int first, int last,
                                        const int bits, const int is_tame) {
    const float *a = lines, *b = lines + 2 * VK_PAD, *c = lines + VK_PAD, *d = lines + 3 * VK_PAD;
    VK_SIMD for (int i = first; i < last; i++) {
        uint32_t word = vk_integer_of(a[i], inverse[i], bits, is_tame)
                        | vk_integer_of(b[i], inverse[i], bits, is_tame) << 8
                        | vk_integer_of(c[i], inverse[i], bits, is_tame) << 16
                        | vk_integer_of(d[i], inverse[i], bits, is_tame) << 24;
        if (bits == 4)
            word |= vk_integer_of(a[i + 4 * VK_PAD], inverse[i], bits, is_tame) << 4
                    | vk_integer_of(b[i + 4 * VK_PAD], inverse[i], bits, is_tame) << 12
                    | vk_integer_of(c[i + 4 * VK_PAD], inverse[i], bits, is_tame) << 20
                    | vk_integer_of(d[i + 4 * VK_PAD], inverse[i], bits, is_tame) << 28;
        words[i] = word;
    }
}
static VK_ALWAYS void vk_quantise_columns(char *block, const float *lines, int first, int last, const int bits) {
    uint32_t most[VK_PAD] = {0}, *words = (uint32_t *)(void *)(block + VK_PAD * 2), wild = 0;
    uint16_t *scales = (uint16_t *)(void *)block;
    float inverse[VK_PAD];
    const int each = bits == 8 ? 4 : 8;
    for (int k = 0; k < VK_QUANT_BLOCK; k++) {
        const float *line = lines + (size_t)k * VK_PAD;
        VK_SIMD for (int c = first; c < last; c++) { /* NaN compares as largest, so it propagates to scale and logits */
            const uint32_t word = vk_bits(line[c]);
            most[c] = (word & 0x7fffffffu) > (most[c] & 0x7fffffffu) ? word : most[c];
        }
    }
    VK_PRAGMA(omp simd reduction(| : wild)) for (int c = first; c < last; c++) {
        const uint16_t scale = vk_scale_of(vk_float(most[c]), bits);
        const uint32_t size = scale & 0x7fff;
        scales[c] = scale;
        inverse[c] = vk_inverse_of(scale);
        wild |= (size - 1 < 0x7f) | (size >= 0x7f80);
    }
    for (int k = 0; k < VK_QUANT_BLOCK; k += each, words += VK_PAD, lines += each * VK_PAD) {
        if (wild) vk_quantise_words(words, lines, inverse, first, last, bits, 0);
        else vk_quantise_words(words, lines, inverse, first, last, bits, 1);
    }
}
/* Converts VK_QUANT_BLOCK lines of f32, each with one value of all VK_PAD rows, into columns first.. of a block in a
 * panel of integers. The largest value of a row becomes 127 or -127 in 8 bits, and -8 in 4 bits.
 * Each branch is specialised for its constants. */
static VK_CLONES void vk_quantise_block(char *block, const float *lines, int first, int count, int bits) {
    if (count == VK_PAD && bits == 8) vk_quantise_columns(block, lines, 0, VK_PAD, 8);
    else if (count == VK_PAD) vk_quantise_columns(block, lines, 0, VK_PAD, 4);
    else if (bits == 8) vk_quantise_columns(block, lines, first, first + count, 8);
    else vk_quantise_columns(block, lines, first, first + count, 4);
}

/* Returns 1 if rows of the source can be read as bf16 without loss. */
static int vk_is_bf16(const vk_source *source) {
    return !source->synthetic && source->tensor.dtype == VP_DTYPE_BF16 && !source->patch_px && !source->times;
}
/* converts 16 lines of two bf16 to 32 lines of f32 */
static VK_CLONES void vk_split_pairs(float *lines, const uint32_t *pairs) {
    for (int j = 0; j < VK_QUANT_BLOCK / 2; j++, pairs += VK_PAD, lines += 2 * VK_PAD)
        VK_SIMD for (int c = 0; c < VK_PAD; c++) {
            lines[c] = vk_float(pairs[c] << 16);
            lines[c + VK_PAD] = vk_float(pairs[c] & 0xffff0000u);
        }
}
/* Makes a panel of integers block by block. rows: NULL (drawn), bf16 if is_bf16, otherwise f32; they are `stride` words
 * apart */
static void vk_pack_integers(const vk_source *source, const vk_linear *linear, int64_t from, char *panel, int first,
                             int count, const uint32_t *rows, size_t stride, int is_bf16) {
    float lines[VK_QUANT_BLOCK * VK_PAD];
    uint32_t keys[VK_PAD], pairs[VK_QUANT_BLOCK / 2 * VK_PAD] = {0};
    if (!rows) vk_draw_keys(source, from, keys);
    for (int k = 0; k < linear->k_padded; k += VK_QUANT_BLOCK) {
        if (!rows) vk_draw_lines(source, keys, lines, k, VK_QUANT_BLOCK, linear->k);
        else if (is_bf16) {
            vk_interleave(pairs, rows + k / 2, stride, first, count, VK_QUANT_BLOCK / 2);
            vk_split_pairs(lines, pairs);
        } else vk_interleave((uint32_t *)(void *)lines, rows + k, stride, first, count, VK_QUANT_BLOCK);
        vk_quantise_block(panel, lines, first, count, linear->bits);
        panel += VK_PAD * 2 + VK_PAD * VK_QUANT_BLOCK * linear->bits / 8;
    }
}
/* Fills `count` rows of a panel, starting at `first`, from row `from` of the source. rows: room for VK_PAD rows. */
static void vk_pack_panel(const vk_source *source, const vk_linear *linear, int64_t from, char *panel, int first,
                          int count, uint32_t *rows) {
    const int is_drawn = count == VK_PAD && vk_is_drawn_whole(source), is_bf16 = linear->bits && vk_is_bf16(source),
              wide = linear->wide || (linear->bits && !is_bf16);
    const size_t words = (size_t)linear->k_padded / (wide ? 1 : 2);
    for (int r = 0; r < count && !is_drawn; r++)
        vk_source_row(source, from + r, rows + (size_t)r * words, linear->k, linear->k_padded, wide);
    if (linear->bits)
        vk_pack_integers(source, linear, from, panel, first, count, is_drawn ? NULL : rows, words, is_bf16);
    else if (!is_drawn) vk_interleave((uint32_t *)(void *)panel, rows, words, first, count, (int)words);
    else {
        uint32_t keys[VK_PAD];
        vk_draw_keys(source, from, keys);
        if (wide) vk_draw_lines(source, keys, (float *)(void *)panel, 0, linear->k_padded, linear->k);
        else vk_draw_pairs(source, keys, (uint32_t *)(void *)panel, linear->k, linear->k_padded);
    }
}
int vk_pack_rows(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row, int rows) {
    const size_t row_bytes = (size_t)linear->k_padded * (linear->wide || linear->bits ? 4 : 2);
    int first_panel = first_row / VK_PAD, last_panel = (first_row + rows - 1) / VK_PAD, failed = 0;
    VK_PRAGMA(omp parallel num_threads(loader->threads) reduction(| : failed)) {
        uint32_t *buffer = malloc(row_bytes * VK_PAD);
        failed = buffer == NULL;
        VK_PRAGMA(omp for schedule(dynamic))
        for (int p = first_panel; p <= last_panel; p++) {
            int from = p * VK_PAD > first_row ? p * VK_PAD : first_row,
                to = (p + 1) * VK_PAD < first_row + rows ? (p + 1) * VK_PAD : first_row + rows;
            if (!buffer) continue;
            vk_pack_panel(source, linear, from - first_row,
                          (char *)linear->weights + (size_t)p * vk_panel_bytes(linear), from - p * VK_PAD, to - from,
                          buffer);
        }
        free(buffer);
    }
    (void)loader; /* without OpenMP there is one thread */
    return !failed;
}

/* ---- rows of integers */

/* Converts a row by the same rule, for backends with consecutive rows. With 4 bits, four bytes contain eight values:
 * value 2 i in nibble i, value 2 i + 1 in nibble i + 4. */
static VK_CLONES void vk_quantise_row(char *out, uint16_t *scales, const float *row, int k_padded, int bits) {
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK, out += VK_QUANT_BLOCK * bits / 8) {
        const float *from = row + first;
        float most = 0.0f, inverse;
        int integers[VK_QUANT_BLOCK];
        for (int k = 0; k < VK_QUANT_BLOCK; k++) most = !(fabsf(from[k]) <= fabsf(most)) ? from[k] : most;
        scales[first / VK_QUANT_BLOCK] = vk_scale_of(most, bits);
        inverse = vk_inverse_of(scales[first / VK_QUANT_BLOCK]);
        for (int k = 0; k < VK_QUANT_BLOCK; k++) integers[k] = (int)vk_integer_of(from[k], inverse, bits, 0);
        for (int k = 0; bits == 8 && k < VK_QUANT_BLOCK; k++) out[k] = (char)integers[k];
        for (int k = 0; bits == 4 && k < VK_QUANT_BLOCK / 2; k++) { /* byte k: nibbles 2 k and 2 k + 1 of a word */
            const int *low = integers + k / 4 * 8 + k % 2 * 4 + k % 4 / 2;
            out[k] = (char)(low[0] | low[2] << 4);
        }
    }
}
/* tensor [rows, k] -> integers and scales of a linear's rows, starting at first_row. Returns 0 if out of memory. */
int vk_send_integers(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row,
                     int64_t rows) {
    size_t blocks = (size_t)linear->k_padded / VK_QUANT_BLOCK,
           row_bytes = (size_t)linear->k_padded * (size_t)linear->bits / 8;
    int64_t most = (int64_t)(loader->backend->stage_bytes / row_bytes);
    int failed = 0;
    uint16_t *scales = malloc(vk_max((size_t)(rows < most ? rows : most) * blocks * sizeof *scales, 1));
    for (int64_t first = 0; first < rows && scales && !failed; first += most) {
        int64_t now = rows - first < most ? rows - first : most;
        char *to = (char *)linear->weights + (size_t)(first_row + first) * row_bytes,
             *at = (char *)loader->backend->stage(loader->queue, to, (size_t)now * row_bytes);
        uint16_t *scales_to = linear->scales + (size_t)(first_row + first) * blocks;
        VK_PRAGMA(omp parallel num_threads(loader->threads) reduction(| : failed)) {
            float *row = malloc((size_t)linear->k_padded * sizeof *row);
            failed = row == NULL;
            VK_PRAGMA(omp for schedule(static))
            for (int64_t r = 0; r < now; r++) {
                if (!row) continue;
                vk_source_row(source, first + r, row, linear->k, linear->k_padded, 1);
                vk_quantise_row(at + (size_t)r * row_bytes, scales + (size_t)r * blocks, row, linear->k_padded,
                                linear->bits);
            }
            free(row);
        }
        loader->backend->commit(loader->queue, to, (size_t)now * row_bytes);
        memcpy(loader->backend->stage(loader->queue, scales_to, (size_t)now * blocks * sizeof *scales), scales,
               (size_t)now * blocks * sizeof *scales);
        loader->backend->commit(loader->queue, scales_to, (size_t)now * blocks * sizeof *scales);
    }
    failed |= scales == NULL;
    free(scales);
    return !failed;
}
