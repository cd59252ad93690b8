/* dump.c: writes the intermediate values of a request as NumPy files. */
#include "measure/engine.h"

#include "base/console.h"
#include "base/files.h"
#include "vlmprof_file.h"

#include <math.h>

/* Writes DIR/NAME.npy (version 1.0, little-endian as the machine is, C order); returns 0 or an exit code. */
static int write_npy(const char *folder, const char *name, const char *type, int dimensions, const int64_t *shape,
                     const void *data, size_t element_bytes) {
    char file[64], header[320] = "\x93NUMPY\1", *path;
    size_t count = 1, used = 10, padded; /* two bytes after the version: the length of the rest of the header */
    vp_error error = {VP_OK, -1, "", ""};
    vp_output out;
    vp_result result;
    int code;
    snprintf(file, sizeof file, "%s.npy", name);
    used += (size_t)snprintf(header + used, sizeof header - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             type);
    for (int i = 0; i < dimensions; i++) {
        count *= (size_t)shape[i];
        used += (size_t)snprintf(header + used, sizeof header - used, "%lld%s", (long long)shape[i],
                                 dimensions == 1 ? "," : i + 1 < dimensions ? ", " : "");
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "), }");
    padded = (used + 1 + 63) / 64 * 64; /* the data start at a multiple of 64; the header ends with a line feed */
    used += (size_t)snprintf(header + used, sizeof header - used, "%*s\n", (int)(padded - used - 1), "");
    header[8] = (char)((padded - 10) & 255);
    header[9] = (char)((padded - 10) >> 8);
    path = join_path(folder, file);
    result = vp_output_open(path, &out, &error);
    if (result == VP_OK) {
        result = vp_output_write(&out, header, used, &error);
        if (result == VP_OK) result = vp_output_write(&out, data, count * element_bytes, &error);
        if (result == VP_OK) result = vp_output_commit(&out, &error);
        else vp_output_discard(&out);
    }
    code = result == VP_OK ? 0 : complain_result(exit_code_of(result), path, result, &error);
    free(path);
    return code;
}
static int64_t *widen(const int32_t *values, size_t count) {
    int64_t *out = resize(NULL, count, sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = values[i];
    return out;
}

/* The pixels in the layout of processors other than Molmo's: [views, 3, crop_px, crop_px]. */
static float *planes_of(const vp_geometry *geometry, int64_t views, const float *pixels) {
    const size_t crop = (size_t)geometry->crop_px, patch = (size_t)geometry->patch_px, side = crop / patch,
                 view_values = crop * crop * 3;
    float *planes = resize(NULL, (size_t)views * view_values + 1, sizeof *planes);
    for (size_t i = 0; i < (size_t)views * view_values; i++) {
        const size_t at = i % view_values, cell = at / (patch * patch * 3), value = at % (patch * patch * 3);
        const size_t y = cell / side * patch + value / 3 / patch, x = cell % side * patch + value / 3 % patch;
        planes[i - at + (value % 3 * crop + y) * crop + x] = pixels[i];
    }
    return planes;
}
/* The layout of Qwen's processor: [patches, channel, frame, y, x]; both frames contain the same picture. */
static float *frames_of(const vp_geometry *geometry, int64_t patches, const float *pixels) {
    const size_t area = (size_t)geometry->patch_px * (size_t)geometry->patch_px;
    float *frames = resize(NULL, (size_t)patches * 6 * area + 1, sizeof *frames);
    for (size_t i = 0; i < (size_t)patches * 6 * area; i++)
        frames[i] = pixels[(i / (6 * area) * area + i % area) * 3 + i % (6 * area) / (2 * area)];
    return frames;
}
static float *dump_pixels(const struct session *session, const struct pass_input *input, int *dimensions,
                          int64_t shape[4]) {
    const vp_geometry *geometry = &session->model->config.geometry;
    const float *pixels = (const float *)session->inputs.pixels.data;
    const int64_t side = vp_geometry_patches_per_side(geometry), views = layout_of(input) ? layout_of(input)->views : 0,
                  values = (int64_t)geometry->patch_px * geometry->patch_px * 3;
    const int is_stitched = session->model->config.connector == VP_CONNECTOR_STITCHED;
    float *own;
    shape[0] = views;
    if (session->model->rules->is_tiled || !layout_of(input) || is_stitched) {
        *dimensions = 3;
        shape[1] = side * side;
        shape[2] = values;
        own = resize(NULL, (size_t)(views * side * side * values) + 1, sizeof *own);
        if (views) memcpy(own, pixels, (size_t)(views * side * side * values) * sizeof *own);
        return own;
    }
    if (session->model->config.vit_native) {
        *dimensions = 2;
        shape[0] = views * side * side;
        shape[1] = 2 * values;
        return frames_of(geometry, shape[0], pixels);
    }
    *dimensions = 4;
    shape[1] = 3;
    shape[2] = shape[3] = geometry->crop_px;
    return planes_of(geometry, views, pixels);
}

double rounding_of(const vp_model_config *config, int with_text) {
    const int tower = config->vit_blocks_needed, vision = tower ? tower * (11 + 6) + 6 : 0,
              text = with_text ? config->block_count * (14 + 7) + 3 : 0;
    return ldexp(1, -9) * sqrt(vision + text);
}
double relative_error(const float *tested, const float *reference, size_t count) {
    double mean = 0, difference = 0, spread = 0;
    for (size_t i = 0; i < count; i++) mean += (double)reference[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        difference += ((double)tested[i] - (double)reference[i]) * ((double)tested[i] - (double)reference[i]);
        spread += ((double)reference[i] - mean) * ((double)reference[i] - mean);
    }
    return difference == 0 ? 0 : sqrt(difference / spread);
}

/* The width of the tower's output for the connector: one row per patch, with all layers that the connector reads. */
static int64_t tower_width(const vp_model_config *config) {
    return (int64_t)config->vit_layer_count * config->vit_width;
}
static int64_t tower_patches(const vp_model_config *config) { return config->vit_positions - config->vit_class_token; }
void dump_free(vp_dump *dump) {
    FREE_ALL(dump->image_features, dump->vit_features, dump->deepstack_features, dump->block_last, dump->logits,
             dump->kept, dump->kept_features);
    memset(dump, 0, sizeof *dump);
}
void dump_reserve(vp_dump *dump, const struct model *model, const struct pass_input *input) {
    size_t rows = layout_of(input)
                      ? (size_t)layout_of(input)->views * (size_t)vp_geometry_tokens_per_crop(&model->config.geometry)
                      : 0;
    memset(dump, 0, sizeof *dump);
    if (rows)
        dump->vit_features = zeroed((size_t)(layout_of(input)->views * tower_patches(&model->config)),
                                    (size_t)tower_width(&model->config) * sizeof(float));
    if (rows) dump->image_features = zeroed(rows * (size_t)model->config.d_model, sizeof(float));
    if (rows && model->config.deepstack_count)
        dump->deepstack_features =
            zeroed((size_t)model->config.deepstack_count * rows * (size_t)model->config.d_model, sizeof(float));
    dump->block_last = zeroed((size_t)input->engine.active_block_count * (size_t)model->config.d_model, sizeof(float));
    if (rows && input->prune.how.method != VP_PRUNE_NONE) {
        dump->kept = zeroed(rows, sizeof(int32_t));
        dump->kept_features = zeroed(rows * (size_t)model->config.d_model, sizeof(float));
    }
    dump->logits = zeroed((size_t)input->engine.max_new_tokens * (size_t)model->config.embedding_size, sizeof(float));
}

int dump_write(const char *folder, const struct session *session, const struct pass_input *input,
               const struct pass_result *run, const vp_dump *dump) {
    const vp_geometry *geometry = &session->model->config.geometry;
    int64_t views = layout_of(input) ? layout_of(input)->views : 0, per_crop = vp_geometry_tokens_per_crop(geometry),
            side = vp_geometry_patches_per_side(geometry);
    int64_t sequence[1] = {sequence_of(input)}, steps[1] = {run->reply.token_count}, index[2] = {views, per_crop},
            masks[2] = {session->model->rules->is_tiled ? views : 0, side * side}; /* other models have none */
    int64_t features[3] = {views, per_crop, session->model->config.d_model},
            deepstack[3] = {session->model->config.deepstack_count, views, session->model->config.d_model};
    int64_t last[2] = {input->engine.active_block_count, session->model->config.d_model},
            logits[2] = {run->reply.token_count, session->model->config.embedding_size};
    if (session->model->config.connector == VP_CONNECTOR_STITCHED && views) { /* one for the whole picture */
        index[0] = features[0] = 1;
        index[1] = features[1] = layout_of(input)->feature_tokens;
    }
    int64_t *ids = widen((const int32_t *)session->inputs.ids.data, (size_t)sequence[0]),
            *tokens = widen(run->reply.tokens, (size_t)steps[0]);
    int code = write_npy(folder, "input_ids", "<i8", 1, sequence, ids, sizeof *ids);
    if (!code)
        code = write_npy(folder, "image_input_idx", "<i4", 2, index, session->inputs.index.data, sizeof(int32_t));
    if (!code) code = write_npy(folder, "image_masks", "<f4", 2, masks, session->inputs.masks.data, sizeof(float));
    if (!code) {
        int64_t pixels_shape[4];
        int pixels_dimensions;
        float *pixels = dump_pixels(session, input, &pixels_dimensions, pixels_shape);
        code = write_npy(folder, "pixels", "<f4", pixels_dimensions, pixels_shape, pixels, sizeof *pixels);
        free(pixels);
    }
    if (!code && dump->vit_features) {
        const int64_t tower[3] = {views, tower_patches(&session->model->config), tower_width(&session->model->config)};
        code = write_npy(folder, "tower", "<f4", 3, tower, dump->vit_features, sizeof(float));
    }
    if (!code && !run->reply.skips_features)
        code = write_npy(folder, "image_features", "<f4", 3, features, dump->image_features, sizeof(float));
    if (!code && session->model->config.deepstack_count)
        code = write_npy(folder, "deepstack_features", "<f4", 3, deepstack, dump->deepstack_features, sizeof(float));
    if (!code) code = write_npy(folder, "block_last", "<f4", 2, last, dump->block_last, sizeof(float));
    if (!code) code = write_npy(folder, "logits", "<f4", 2, logits, dump->logits, sizeof(float));
    if (!code) code = write_npy(folder, "tokens", "<i8", 1, steps, tokens, sizeof *tokens);
    if (!code && dump->kept && run->reply.kept_count) {
        const int64_t kept[1] = {run->reply.kept_count};
        code = write_npy(folder, "kept", "<i4", 1, kept, dump->kept, sizeof *dump->kept);
    }
    if (!code && dump->kept_features && run->reply.kept_tokens) {
        const int64_t kept[2] = {run->reply.kept_tokens, session->model->config.d_model};
        code = write_npy(folder, "kept_features", "<f4", 2, kept, dump->kept_features, sizeof(float));
    }
    FREE_ALL(ids, tokens);
    return code;
}
