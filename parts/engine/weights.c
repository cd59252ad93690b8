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
