/* weights.c - rows of weights from a checkpoint, or drawn from their names, to where the backend wants them */
#include "weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "host_loops.h"
#include "model.h"
#include "vlmprof_gguf.h"

int vk_host_threads(int wanted) {
#ifdef _OPENMP
    return wanted > 0 ? wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}

static int vk_bits_of(vp_weights weights) {
    return weights == VP_WEIGHTS_INT8 ? 8 : weights == VP_WEIGHTS_INT4 ? 4 : 0;
}
vk_precision vk_precision_of(vp_weights blocks, vp_weights head, vp_weights vision) {
    const vk_precision bits = { vk_bits_of(blocks), vk_bits_of(head), vk_bits_of(vision) };
    return bits;
}

void vk_layout_linear(vk_arena *arena, vk_linear *linear, int outputs, int inputs, int has_bias, int wide, int bits) {
    linear->n = outputs;
    linear->k = inputs;
    linear->k_padded = (int)vk_round_up((size_t)inputs, VK_PAD);
    linear->wide = wide;
    linear->bits = bits;
    linear->weights = vk_take(arena, vk_round_up((size_t)outputs, VK_PAD) / VK_PAD, vk_panel_bytes(linear));
    linear->scales = vk_row_scales(linear);
    linear->bias = has_bias ? (float *)vk_take(arena, (size_t)outputs, 4) : NULL;
    linear->bias_bf16 = NULL; /* no weight: memory.c */
}

void vk_layout_norm(vk_arena *arena, vk_norm *norm, int width, int has_bias) {
    norm->weight = vk_take(arena, (size_t)width, 4);
    norm->bias = has_bias ? (float *)vk_take(arena, (size_t)width, 4) : NULL;
}

enum { VK_BLOCK_VALUES_MAX = 256 };
uint64_t vk_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

int vk_ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

vk_source vk_open_source(vk_loader *loader, const char *name, int64_t rows, int64_t columns) {
    vk_source source;
    memset(&source, 0, sizeof source);
    source.times = loader->times;
    source.plus = loader->plus;
    if (loader->result != VP_OK) return source;
    if (loader->checkpoint) {
        vp_result found = vp_checkpoint_find(loader->checkpoint, name, &source.tensor);
        int64_t elements = 1;
        for (int i = 0; i < source.tensor.dimensions; i++) elements *= source.tensor.shape[i];
        if (found != VP_OK)
            loader->result = vp_fail(loader->error, found, -1, name, "the checkpoint has no such tensor");
        else if (elements != rows * columns || columns % vp_dtype_block(source.tensor.dtype))
            loader->result = vp_fail(loader->error, VP_ERR_MISMATCH, -1, name,
                                     "the tensor has another shape than the config says");
        else vp_checkpoint_advise(loader->checkpoint, &source.tensor, 1);
        if (source.tensor.with_one) source.plus = 0.0f;
        return source;
    }
    source.synthetic = 1;
    source.key = vk_mix(loader->seed + 0x9e3779b97f4a7c15ull);
    for (const char *p = name; *p; p++) source.key = vk_mix(source.key ^ (unsigned char)*p);
    /* fan-in scaling keeps every activation near unit size; a uniform draw on (-1, 1) has a standard deviation of
     * 1 / sqrt(3) */
    source.scale = sqrtf(3.0f / (float)columns);
    for (const vk_draw *draw = loader->description ? loader->description->draws : NULL; draw && draw->end; draw++) {
        if (!vk_ends_with(name, draw->end)) continue;
        source.offset = draw->offset;
        source.scale = draw->scale;
        break;
    }
    return source;
}

/* element i of an in-type array */
static inline void vk_put(void *out, size_t i, float value, int wide) {
    if (wide) ((float *)out)[i] = value;
    else ((uint16_t *)out)[i] = vk_f2b(value);
}

/* a convolution's kernel, its three colours moved after its pixels */
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

static uint32_t vk_row_key(const vk_source *source, int64_t row) {
    return (uint32_t)vk_mix(source->key ^ (uint64_t)row);
}
/* uniform(-1, 1): murmur3's finalizer on a counter */
static inline float vk_drawn(uint32_t key, uint32_t column) {
    uint32_t h = column * 0x9e3779b1u + key;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return (float)(int32_t)(h ^ (h >> 16)) * 4.656612873e-10f;
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
        else if (i < columns)
            value = vk_element_of(&source->tensor, (size_t)(from * source->columns + row));
        vk_put(out, (size_t)i, value, wide);
    }
}

/* `count` values from element `first` on, both whole blocks */
static void vk_source_blocks(const vp_tensor *tensor, size_t first, int count, void *out, int wide) {
    int step = vp_dtype_block(tensor->dtype);
    const unsigned char *block = tensor->data + first / (size_t)step * (size_t)vp_dtype_block_bytes(tensor->dtype);
    float values[VK_BLOCK_VALUES_MAX];
    for (int i = 0; i < count; i += step, block += vp_dtype_block_bytes(tensor->dtype)) {
        vp_dtype_to_f32(tensor->dtype, block, (size_t)step, values);
        for (int k = 0; k < step; k++) vk_put(out, (size_t)(i + k), values[k], wide);
    }
}
/* where the file has a row of a head whose rows are in pairs */
static int64_t vk_paired_row(const vp_tensor *tensor, int64_t row) {
    int64_t rows = tensor->shape[0] / tensor->paired_heads, half = rows / 2, in = row % rows;
    return row - in + (in < half ? 2 * in : 2 * (in - half) + 1);
}

static VK_CLONES void vk_read_row(const vk_source *source, int64_t row, void *out, int columns, int padded_columns,
                             int wide) {
    const unsigned char *data = source->tensor.data;
    int64_t at = source->first + row;
    size_t first = (size_t)(source->tensor.paired_heads ? vk_paired_row(&source->tensor, at) : at) * (size_t)columns;
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
    } else if (source->tensor.dtype > VP_DTYPE_F16) {
        vk_source_blocks(&source->tensor, first, columns, out, wide);
    } else if (source->tensor.dtype == VP_DTYPE_BF16 && !wide) {
        memcpy(out, data + first * 2, (size_t)columns * 2);
    } else {
        int half = source->tensor.dtype == VP_DTYPE_F16;
        for (int i = 0; i < columns; i++) {
            uint16_t u;
            float v;
            memcpy(&u, data + (first + (size_t)i) * 2, 2);
            v = half ? vp_f16_to_f32(u) : vp_bf16_to_f32(u);
            if (wide) ((float *)out)[i] = v;
            else ((uint16_t *)out)[i] = vp_f32_to_bf16(v);
        }
    }
    VK_SIMD for (int i = 0; i < rest; i++) vk_put(out, (size_t)(columns + i), 0.0f, wide);
}

/* as read, then scaled: in bf16 both round, as the references do */
void vk_source_row(const vk_source *source, int64_t row, void *out, int columns, int padded_columns, int wide) {
    vk_read_row(source, row, out, columns, padded_columns, wide);
    for (int i = 0; source->times && i < columns; i++) {
        float value = wide ? ((float *)out)[i] : vp_bf16_to_f32(((uint16_t *)out)[i]);
        vk_put(out, (size_t)i, source->times * (value + source->plus), wide);
    }
}

void vk_loaded(vk_loader *loader, const vk_source *source, const char *name, int64_t bytes) {
    loader->done += bytes;
    if (!source->synthetic) vp_checkpoint_advise(loader->checkpoint, &source->tensor, 0);
    if (loader->result == VP_OK && loader->progress
        && loader->progress(loader->progress_user, name, loader->done, loader->total) != VP_OK)
        loader->result = vp_fail(loader->error, VP_ERR_INTERRUPTED, -1, name, "loading was stopped");
}

/* `rows` rows, each padded with zeros, to backend memory unchanged */
static void vk_send_rows(vk_loader *loader, const vk_source *source, char *to, int64_t rows, int columns,
                         int padded_columns, int wide) {
    size_t row_bytes = (size_t)padded_columns * (wide ? 4 : 2);
    int64_t most = (int64_t)(loader->backend->stage_bytes / row_bytes);
    for (int64_t first = 0; first < rows; first += most) {
        int64_t now = rows - first < most ? rows - first : most;
        char *at = (char *)loader->backend->stage(loader->queue, to + (size_t)first * row_bytes,
                                                  (size_t)now * row_bytes);
        VK_PRAGMA(omp parallel for schedule(static) num_threads(loader->threads) if (now > 1))
        for (int64_t r = 0; r < now; r++)
            vk_source_row(source, first + r, at + (size_t)r * row_bytes, columns, padded_columns, wide);
        loader->backend->commit(loader->queue, to + (size_t)first * row_bytes, (size_t)now * row_bytes);
    }
}

void vk_load_rows(vk_loader *loader, const char *name, void *out, int64_t rows, int columns, int wide) {
    vk_source source = vk_open_source(loader, name, rows, columns);
    if (loader->result != VP_OK) return;
    vk_send_rows(loader, &source, (char *)out, rows, columns, columns, wide);
    vk_loaded(loader, &source, name, rows * columns * (wide ? 4 : 2));
}

void vk_load_norm(vk_loader *loader, const char *prefix, const vk_norm *norm, int width) {
    char name[192];
    snprintf(name, sizeof name, "%s.weight", prefix);
    vk_load_rows(loader, name, norm->weight, 1, width, 1);
    if (!norm->bias) return;
    snprintf(name, sizeof name, "%s.bias", prefix);
    vk_load_rows(loader, name, norm->bias, 1, width, 1);
}

/* `count` of 32 rows of words (two bf16 along k, or one f32) -> columns first.. of a panel, whose line j has word j
 * of all 32 */
static VK_CLONES void vk_interleave(uint32_t *panel, const uint32_t *rows, int first, int count, int words) {
    for (int j = 0; j < words; j++)
        for (int c = 0; c < count; c++)
            panel[(size_t)j * VK_PAD + (size_t)(first + c)] = rows[(size_t)c * (size_t)words + (size_t)j];
}

/* Returns 1 if rows can be drawn where they belong, without a row in between. */
static int vk_is_drawn_whole(const vk_source *source) {
    return source->synthetic && !source->patch_px && !source->columns && !source->times;
}
/* The same bits as VK_PAD rows from vk_source_row, interleaved: a value depends on its row and column alone. */
static VK_CLONES void vk_draw_panel(const vk_source *source, int64_t row, uint32_t *panel, int k, int k_padded,
                                    int wide) {
    const int whole = wide ? k : k / 2, words = wide ? k_padded : k_padded / 2;
    const float scale = source->scale, offset = source->offset;
    uint32_t keys[VK_PAD];
    for (int c = 0; c < VK_PAD; c++) keys[c] = vk_row_key(source, source->first + row + c);
    for (int j = 0; j < whole; j++) {
        uint32_t *line = panel + (size_t)j * VK_PAD;
        if (wide) {
            VK_SIMD for (int c = 0; c < VK_PAD; c++)
                ((float *)(void *)line)[c] = offset + scale * vk_drawn(keys[c], (uint32_t)j);
        } else {
            VK_SIMD for (int c = 0; c < VK_PAD; c++)
                line[c] = vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(2 * j)))
                          | (uint32_t)vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(2 * j + 1))) << 16;
        }
    }
    if (!wide && k % 2)
        for (int c = 0; c < VK_PAD; c++)
            panel[(size_t)whole * VK_PAD + (size_t)c] =
                vk_f2b(offset + scale * vk_drawn(keys[c], (uint32_t)(k - 1)));
    for (int j = whole + (!wide && k % 2); j < words; j++) memset(panel + (size_t)j * VK_PAD, 0, VK_PAD * 4);
}

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
/* Half away from zero, as roundf; NaN and what is over 512 become 512. Comparisons are of integers: compilers do not
 * vectorise those of floats, which may trap. */
static inline int vk_rounded_off(float value) {
    const uint32_t word = vk_bits(value), held = (word & 0x7fffffffu) > 0x44000000u ? 0x44000000u : word;
    /* the largest float below 0.5 */
    return (int)(vk_float(held) + vk_float((held & 0x80000000u) | 0x3effffffu));
}
static inline int vk_clamped(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}
/* bf16, of the largest value: integers are chosen by the rounded scale, so that rounding it costs next to nothing */
static inline uint16_t vk_scale_of(float most, int bits) {
    const float scale = bits == 8 ? vk_float(vk_bits(most) & 0x7fffffffu) / 127.0f : most / -8.0f;
    return (vk_bits(scale) & 0x7fffffffu) > 0x7f800000u ? 0x7fc0 : vk_f2b(scale);
}
/* a block of VK_QUANT_BLOCK lines of a panel of integers: kernels/cpu/quant_rows.h */
static inline void vk_quantise_columns(char *block, const float *lines, int first, int last, int bits) {
    static const int line_of[4] = {0, 2, 1, 3}; /* of a word's bytes */
    const int each = bits == 8 ? 4 : 8;
    uint32_t most[VK_PAD] = {0}, *words = (uint32_t *)(void *)(block + VK_PAD * 2);
    uint16_t *scales = (uint16_t *)(void *)block;
    float inverse[VK_PAD];
    for (int k = 0; k < VK_QUANT_BLOCK; k++) {
        const float *line = lines + (size_t)k * VK_PAD;
        VK_SIMD for (int c = first; c < last; c++) { /* a NaN is above all: the scale says it, and the logits will */
            const uint32_t word = vk_bits(line[c]);
            most[c] = (word & 0x7fffffffu) > (most[c] & 0x7fffffffu) ? word : most[c];
        }
    }
    VK_SIMD for (int c = first; c < last; c++) {
        const uint16_t scale = vk_scale_of(vk_float(most[c]), bits);
        const uint32_t word = (uint32_t)scale << 16, is_zero = (word & 0x7fffffffu) == 0;
        scales[c] = scale;
        inverse[c] = 1.0f / vk_float(is_zero ? 0x7f800000u : word); /* 1 / infinity: 0 */
    }
    for (int k = 0; k < VK_QUANT_BLOCK; k += each, words += VK_PAD) {
        VK_SIMD for (int c = first; c < last; c++) words[c] = 0;
        for (int i = 0; i < 4; i++) {
            const float *low = lines + (size_t)(k + line_of[i]) * VK_PAD, *high = bits == 8 ? low : low + 4 * VK_PAD;
            if (bits == 8) {
                VK_SIMD for (int c = first; c < last; c++)
                    words[c] |= (uint32_t)(vk_clamped(vk_rounded_off(low[c] * inverse[c]), -127, 127) & 0xff) << 8 * i;
            } else {
                VK_SIMD for (int c = first; c < last; c++)
                    words[c] |= (uint32_t)(vk_clamped(vk_rounded_off(low[c] * inverse[c]) + 8, 0, 15)
                                           | vk_clamped(vk_rounded_off(high[c] * inverse[c]) + 8, 0, 15) << 4) << 8 * i;
            }
        }
    }
}

/* VK_QUANT_BLOCK lines of f32, each with a value of all VK_PAD rows -> columns first.. of a block of a panel of
 * integers. 8 bits: the largest value of a row becomes 127 or -127; 4 bits: -8, as GGUF's Q4_0 has it. Each branch is
 * compiled for its own constants. */
static VK_CLONES void vk_quantise_block(char *block, const float *lines, int first, int count, int bits) {
    if (count < VK_PAD) vk_quantise_columns(block, lines, first, first + count, bits);
    else if (bits == 8) vk_quantise_columns(block, lines, 0, VK_PAD, 8);
    else vk_quantise_columns(block, lines, 0, VK_PAD, 4);
}

/* Rows first.. of a panel, `count` of them from row `from` of the source on. rows: room for VK_PAD rows unchanged
 * read; lines: f32 [k_padded, VK_PAD], for integers alone. */
static void vk_pack_panel(const vk_source *source, const vk_linear *linear, int64_t from, char *panel, int first,
                          int count, char *rows, float *lines) {
    const int wide = linear->wide || linear->bits;
    const size_t row_bytes = (size_t)linear->k_padded * (wide ? 4 : 2);
    uint32_t *words = linear->bits ? (uint32_t *)(void *)lines : (uint32_t *)(void *)panel;
    if (count == VK_PAD && vk_is_drawn_whole(source)) {
        vk_draw_panel(source, from, words, linear->k, linear->k_padded, wide);
    } else {
        for (int r = 0; r < count; r++)
            vk_source_row(source, from + r, rows + (size_t)r * row_bytes, linear->k, linear->k_padded, wide);
        vk_interleave(words, (const uint32_t *)(const void *)rows, first, count, (int)(row_bytes / 4));
    }
    for (int k = 0; linear->bits && k < linear->k_padded; k += VK_QUANT_BLOCK) {
        vk_quantise_block(panel, lines + (size_t)k * VK_PAD, first, count, linear->bits);
        panel += VK_PAD * 2 + VK_PAD * VK_QUANT_BLOCK * linear->bits / 8;
    }
}

/* A row by the same rule -> integers and scales, where rows follow each other. Of 4 bits eight values are in four
 * bytes: value 2 i in nibble i, value 2 i + 1 in nibble i + 4. */
static VK_CLONES void vk_quantise_row(char *out, uint16_t *scales, const float *row, int k_padded, int bits) {
    for (int first = 0; first < k_padded; first += VK_QUANT_BLOCK, out += VK_QUANT_BLOCK * bits / 8) {
        const float *from = row + first;
        float most = 0.0f, scale, inverse;
        int integers[VK_QUANT_BLOCK];
        for (int k = 0; k < VK_QUANT_BLOCK; k++) most = !(fabsf(from[k]) <= fabsf(most)) ? from[k] : most;
        scales[first / VK_QUANT_BLOCK] = vk_scale_of(most, bits);
        scale = vk_float((uint32_t)scales[first / VK_QUANT_BLOCK] << 16);
        inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
        for (int k = 0; k < VK_QUANT_BLOCK; k++) {
            const int whole = vk_rounded_off(from[k] * inverse);
            integers[k] = bits == 8 ? vk_clamped(whole, -127, 127) : vk_clamped(whole + 8, 0, 15);
        }
        for (int k = 0; bits == 8 && k < VK_QUANT_BLOCK; k++) out[k] = (char)integers[k];
        for (int k = 0; bits == 4 && k < VK_QUANT_BLOCK / 2; k++) { /* byte k: nibbles 2 k and 2 k + 1 of a word */
            const int *low = integers + k / 4 * 8 + k % 2 * 4 + k % 4 / 2;
            out[k] = (char)(low[0] | low[2] << 4);
        }
    }
}
/* tensor [rows, k] -> integers of the rows first_row.. of a linear, and their scales; 0: no memory */
static int vk_send_integers(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row,
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
        VK_PRAGMA(omp parallel num_threads(loader->threads) reduction(| : failed))
        {
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

/* tensor [rows, k] -> rows first_row.. of panels */
static int vk_pack_rows(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row,
                        int rows) {
    const size_t row_bytes = (size_t)linear->k_padded * (linear->wide || linear->bits ? 4 : 2),
                 line_bytes = linear->bits ? (size_t)linear->k_padded * VK_PAD * 4 : 0;
    int first_panel = first_row / VK_PAD, last_panel = (first_row + rows - 1) / VK_PAD, failed = 0;
    VK_PRAGMA(omp parallel num_threads(loader->threads) reduction(| : failed))
    {
        char *buffer = malloc(row_bytes * VK_PAD + line_bytes);
        failed = buffer == NULL;
        VK_PRAGMA(omp for schedule(dynamic))
        for (int p = first_panel; p <= last_panel; p++) {
            int from = p * VK_PAD > first_row ? p * VK_PAD : first_row,
                to = (p + 1) * VK_PAD < first_row + rows ? (p + 1) * VK_PAD : first_row + rows;
            if (!buffer) continue;
            vk_pack_panel(source, linear, from - first_row,
                          (char *)linear->weights + (size_t)p * vk_panel_bytes(linear), from - p * VK_PAD, to - from,
                          buffer, (float *)(void *)(buffer + row_bytes * VK_PAD));
        }
        free(buffer);
    }
    (void)loader; /* without OpenMP no one asks for threads */
    return !failed;
}

void vk_load_linear_piece(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows,
                          const vk_piece *piece) {
    size_t row_bytes = (size_t)linear->k_padded * (linear->wide ? 4 : 2);
    vk_source source;
    if (loader->reached) loader->reached(loader, linear->weights);
    source = vk_open_source(loader, name, piece->of,
                            piece->columns ? piece->columns : linear->k * (piece->patch_px ? piece->frames : 1));
    if (loader->result != VP_OK) return;
    source.first = piece->first;
    source.patch_px = piece->patch_px;
    source.frames = piece->frames;
    source.columns = piece->columns;
    if (row_bytes > loader->backend->stage_bytes)
        loader->result = vp_fail(loader->error, VP_ERR_UNSUPPORTED, -1, name,
                                 "rows are longer than the buffer that uploads pass through");
    else if (linear->bits && loader->backend->row_major) {
        if (!vk_send_integers(loader, &source, linear, first_row, rows))
            loader->result = vp_fail(loader->error, VP_ERR_MEMORY, -1, name, "no memory for the packing buffer");
    } else if (loader->backend->row_major)
        vk_send_rows(loader, &source, (char *)linear->weights + (size_t)first_row * row_bytes, rows, linear->k,
                     linear->k_padded, linear->wide);
    else if (!vk_pack_rows(loader, &source, linear, first_row, rows))
        loader->result = vp_fail(loader->error, VP_ERR_MEMORY, -1, name, "no memory for the packing buffer");
    vk_loaded(loader, &source, name,
              (int64_t)rows * (int64_t)(linear->bits ? vk_panel_bytes(linear) / VK_PAD : row_bytes));
}

void vk_load_linear_rows(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows) {
    const vk_piece whole = { 0, rows, 0, 1, 0 };
    vk_load_linear_piece(loader, name, linear, first_row, rows, &whole);
}

void vk_load_linear(vk_loader *loader, const char *prefix, const vk_linear *linear, int first_row, int rows) {
    char name[192];
    snprintf(name, sizeof name, "%s.weight", prefix);
    vk_load_linear_rows(loader, name, linear, first_row, rows);
    if (!linear->bias) return;
    snprintf(name, sizeof name, "%s.bias", prefix);
    vk_load_rows(loader, name, (float *)(uintptr_t)(linear->bias + first_row), 1, rows, 1);
}
