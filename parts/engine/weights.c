/* weights.c - puts rows of weights, read from a checkpoint or drawn from their names, into the backend's memory */
#include "weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "host_loops.h"
#include "description.h"

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
    const vk_precision bits = {vk_bits_of(blocks), vk_bits_of(head), vk_bits_of(vision)};
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

int vk_ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}

vk_source vk_open_source(vk_loader *loader, const char *name, int64_t rows, int64_t columns) {
    vk_source source = {0};
    source.times = loader->times;
    source.plus = loader->plus;
    if (loader->result != VP_OK) return source;
    if (loader->checkpoint) {
        vp_result found = vp_checkpoint_find(loader->checkpoint, name, &source.tensor);
        int64_t elements = 1;
        for (int i = 0; i < source.tensor.dimensions; i++) elements *= source.tensor.shape[i];
        if (found != VP_OK)
            loader->result = vp_error_set(loader->error, found, -1, name, "the checkpoint has no such tensor");
        else if (elements != rows * columns)
            loader->result = vp_error_set(loader->error, VP_ERR_MISMATCH, -1, name,
                                          "the shape of the tensor does not match the config");
        else vp_checkpoint_advise(loader->checkpoint, &source.tensor, 1);
        source.row_bytes = (size_t)source.tensor.bytes / (size_t)rows;
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

void vk_loaded(vk_loader *loader, const vk_source *source, const char *name, int64_t bytes) {
    loader->done += bytes;
    if (!source->synthetic) vp_checkpoint_advise(loader->checkpoint, &source->tensor, 0);
    if (loader->result == VP_OK && loader->progress
        && loader->progress(loader->progress_user, name, loader->done, loader->total) != VP_OK)
        loader->result = vp_error_set(loader->error, VP_ERR_INTERRUPTED, -1, name, "loading was stopped");
}

/* The number of rows to read before their pages are released, so that a large tensor is not in memory twice. A
 * transposed tensor is read whole. */
static int64_t vk_rows_at_once(const vk_source *source, int64_t rows) {
    const int64_t most = 8 << 20; /* bytes */
    if (!source->row_bytes || source->columns) return rows;
    return VK_PAD * (most / (int64_t)source->row_bytes / VK_PAD + 1);
}
static void vk_release_rows(const vk_loader *loader, const vk_source *source, int64_t first, int64_t rows) {
    vp_tensor part = source->tensor;
    if (!source->row_bytes || source->columns) return;
    part.data += (size_t)(source->first + first) * source->row_bytes;
    part.bytes = (uint64_t)rows * source->row_bytes;
    vp_checkpoint_advise(loader->checkpoint, &part, 0);
}

/* copies `rows` rows, each padded with zeros, to backend memory unchanged */
static void vk_send_rows(vk_loader *loader, const vk_source *source, char *to, int64_t rows, int columns,
                         int padded_columns, int wide) {
    size_t row_bytes = (size_t)padded_columns * (wide ? 4 : 2);
    int64_t most = (int64_t)(loader->backend->stage_bytes / row_bytes), at_once = vk_rows_at_once(source, rows);
    if (at_once < most) most = at_once;
    for (int64_t first = 0; first < rows; first += most) {
        int64_t now = rows - first < most ? rows - first : most;
        char *at =
            (char *)loader->backend->stage(loader->queue, to + (size_t)first * row_bytes, (size_t)now * row_bytes);
        VK_PRAGMA(omp parallel for schedule(static) num_threads(loader->threads) if (now > 1))
        for (int64_t r = 0; r < now; r++)
            vk_source_row(source, first + r, at + (size_t)r * row_bytes, columns, padded_columns, wide);
        loader->backend->commit(loader->queue, to + (size_t)first * row_bytes, (size_t)now * row_bytes);
        vk_release_rows(loader, source, first, now);
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

/* loads `rows` rows of the source into rows of a linear, in the backend's layout */
static void vk_fill_linear(vk_loader *loader, const char *name, const vk_source *source, const vk_linear *linear,
                           int first_row, int rows) {
    const size_t row_bytes = (size_t)linear->k_padded * (linear->wide ? 4 : 2);
    const int row_major = loader->backend->row_major, is_plain = row_major && !linear->bits;
    if (is_plain)
        vk_send_rows(loader, source, (char *)linear->weights + (size_t)first_row * row_bytes, rows, linear->k,
                     linear->k_padded, linear->wide);
    else if (!(row_major ? vk_send_integers(loader, source, linear, first_row, rows)
                         : vk_pack_rows(loader, source, linear, first_row, rows)))
        loader->result =
            vp_error_set(loader->error, VP_ERR_MEMORY, -1, name, "not enough memory for the packing buffer");
}
void vk_load_linear_piece(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows,
                          const vk_piece *piece) {
    size_t row_bytes = (size_t)linear->k_padded * (linear->wide ? 4 : 2);
    int at_once = rows;
    vk_source source = vk_open_source(
        loader, name, piece->of, piece->columns ? piece->columns : linear->k * (piece->patch_px ? piece->frames : 1));
    if (loader->result != VP_OK) return;
    source.first = piece->first;
    source.patch_px = piece->patch_px;
    source.frames = piece->frames;
    source.columns = piece->columns;
    if (row_bytes > loader->backend->stage_bytes)
        loader->result = vp_error_set(loader->error, VP_ERR_UNSUPPORTED, -1, name, "rows exceed the upload buffer");
    else if (!loader->backend->row_major && vk_rows_at_once(&source, rows) < rows)
        at_once = (int)vk_rows_at_once(&source, rows);
    for (int done = 0, now; done < rows && loader->result == VP_OK; done += now) {
        now = rows - done < at_once ? rows - done : at_once;
        vk_fill_linear(loader, name, &source, linear, first_row + done, now);
        vk_release_rows(loader, &source, 0, now);
        source.first += now;
    }
    if (linear->bits) row_bytes = vk_panel_bytes(linear) / VK_PAD;
    vk_loaded(loader, &source, name, (int64_t)rows * (int64_t)row_bytes);
}

void vk_load_linear_rows(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows) {
    const vk_piece whole = {0, rows, 0, 1, 0};
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
