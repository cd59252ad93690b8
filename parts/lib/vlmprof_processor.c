/* vlmprof_processor.c: implements what vlmprof_processor.h declares */
#include "vlmprof_processor.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------------- settings */

static vp_result vp_impl_processor_wrong(vp_error *error, vp_result code, const char *field, const char *text) {
    vp_impl_message where = {{0}, 0};
    vp_impl_message_text(&where, "preprocessor_config.json: ");
    vp_impl_message_text(&where, field);
    return vp_error_set(error, code, -1, where.text, text);
}

/* an integer at "a" or "a.b"; 0 if there is none */
static int32_t vp_impl_processor_int(const vp_json *json, const char *field, const char *inner) {
    uint32_t node = vp_json_get(json, 0, field);
    int64_t value = 0;
    if (node != VP_JSON_NONE && inner) node = vp_json_get(json, node, inner);
    if (node == VP_JSON_NONE || vp_json_to_int(json, node, &value) != VP_OK || value < 1 || value > 65536) return 0;
    return (int32_t)value;
}

/* Checks that each step in the file equals the official processor's. Absent steps do. */
static vp_result vp_impl_processor_steps(vp_processor_kind kind, const vp_json *json, vp_error *error) {
    static const struct { const char *name; unsigned kinds; } steps[] = {
        {"do_resize", 766}, {"do_rescale", 766}, {"do_normalize", 766}, {"do_center_crop", 2},
        {"do_image_splitting", 4}};
    static const int resample[VP_PROCESSOR_COUNT] = {0, 3, 1, 3, 3, 3, 2, 2, 0, 3}; /* Pillow's constants */
    uint32_t node;
    double factor = 0;
    int64_t filter = -1;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        node = vp_json_get(json, 0, steps[i].name);
        if (!(steps[i].kinds >> kind & 1u) || node == VP_JSON_NONE || json->nodes[node].type == VP_JSON_NULL
            || json->nodes[node].type == VP_JSON_TRUE)
            continue;
        return vp_impl_processor_wrong(error, VP_ERR_UNSUPPORTED, steps[i].name, "only true is implemented");
    }
    node = vp_json_get(json, 0, "resample");
    if (node != VP_JSON_NONE && (vp_json_to_int(json, node, &filter) != VP_OK || filter != resample[kind]))
        return vp_impl_processor_wrong(error, VP_ERR_UNSUPPORTED, "resample",
                                       kind == VP_PROCESSOR_IDEFICS3 ? "only 1 (Lanczos) is implemented"
                                       : resample[kind] == 2         ? "only 2 (bilinear) is implemented"
                                                                     : "only 3 (bicubic) is implemented");
    node = vp_json_get(json, 0, "rescale_factor");
    if (node != VP_JSON_NONE && (vp_json_to_double(json, node, &factor) != VP_OK || fabs(factor * 255 - 1) > 1e-12))
        return vp_impl_processor_wrong(error, VP_ERR_UNSUPPORTED, "rescale_factor", "only 1/255 is implemented");
    return VP_OK;
}

static vp_result vp_impl_processor_llava(vp_processor *processor, const vp_json *json, vp_error *error) {
    const int32_t crop = processor->geometry.crop_px, height = vp_impl_processor_int(json, "crop_size", "height"),
                  width = vp_impl_processor_int(json, "crop_size", "width");
    processor->shortest_edge_px = vp_impl_processor_int(json, "size", "shortest_edge");
    if (!processor->shortest_edge_px)
        return vp_impl_processor_wrong(error, VP_ERR_NOT_FOUND, "size.shortest_edge",
                                       "must be a number of pixels; other forms are not supported");
    if (height != crop || width != crop)
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "crop_size", "differs from the tower's image_size");
    if (processor->shortest_edge_px < crop)
        return vp_impl_processor_wrong(error, VP_ERR_UNSUPPORTED, "size.shortest_edge",
                                       "is below crop_size, which would need padding");
    return VP_OK;
}

/* Sets the rule's keys from the file, and the tokens of a view from the tower. */
static vp_result vp_impl_processor_family(vp_processor *processor, const char *name, const vp_json *json,
                                          vp_error *error) {
    const vp_json *const files[3] = {json, NULL, NULL};
    vp_error wrong;
    vp_result result = vp_family_read(vp_family_find(name), files, &processor->family, &wrong);
    const vp_family_key *key = processor->family.preset->keys;
    if (result != VP_OK) return vp_impl_processor_wrong(error, result, wrong.where, wrong.text);
    while (key->name && key->slot != VP_SLOT_TOKENS) key++;
    return key->name ? vp_family_set_number(&processor->family, key->name,
                                            vp_geometry_tokens_per_crop(&processor->geometry), error)
                     : VP_OK;
}
static int vp_impl_processor_has(const vp_processor *processor, vp_family_slot slot) {
    return processor->family.given >> slot & 1u;
}

static vp_result vp_impl_processor_idefics3(vp_processor *processor, const vp_json *json, vp_error *error) {
    const int64_t *value = processor->family.value;
    vp_result result = vp_impl_processor_family(processor, "smolvlm", json, error);
    if (result != VP_OK) return result;
    if (!vp_impl_processor_has(processor, VP_SLOT_SIDE))
        return vp_impl_processor_wrong(error, VP_ERR_NOT_FOUND, "size.longest_edge", "is not a number of pixels");
    if (value[VP_SLOT_TILE] - value[VP_SLOT_TILE] % processor->geometry.patch_px != processor->geometry.crop_px)
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "max_image_size.longest_edge",
                                       "differs from the tower's image_size");
    processor->longest_edge_px = (int32_t)value[VP_SLOT_SIDE];
    processor->view_px = (int32_t)value[VP_SLOT_TILE];
    return VP_OK;
}

static int vp_impl_processor_is_internvl(const vp_processor *processor) {
    return processor->kind == VP_PROCESSOR_INTERNVL || processor->kind == VP_PROCESSOR_INTERNVL_CHAT;
}
/* Returns 1 if `size` has both sides of the tower's image. */
static int vp_impl_processor_is_square(const vp_processor *processor, const vp_json *json) {
    return vp_impl_processor_int(json, "size", "height") == processor->geometry.crop_px
           && vp_impl_processor_int(json, "size", "width") == processor->geometry.crop_px;
}
/* The original form has CLIP's file, whose size is one number; the tile limits are in config.json, by default 6. */
static vp_result vp_impl_processor_internvl(vp_processor *processor, const vp_json *json, vp_error *error) {
    const int is_chat = processor->kind == VP_PROCESSOR_INTERNVL_CHAT;
    if (is_chat ? vp_impl_processor_int(json, "size", NULL) != processor->geometry.crop_px
                : !vp_impl_processor_is_square(processor, json))
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "size", "differs from the tower's image_size");
    vp_result result = vp_impl_processor_family(processor, "internvl", json, error);
    if (result == VP_OK && is_chat) return vp_family_set_number(&processor->family, "max_patches", 6, error);
    for (int slot = VP_SLOT_MIN; slot <= VP_SLOT_MAX && result == VP_OK; slot++)
        if (!vp_impl_processor_has(processor, (vp_family_slot)slot))
            result = vp_impl_processor_wrong(error, VP_ERR_NOT_FOUND,
                                             slot == VP_SLOT_MIN ? "min_patches" : "max_patches",
                                             "is not a valid number of tiles");
    return result;
}

static vp_result vp_impl_processor_gemma3(vp_processor *processor, const vp_json *json, vp_error *error) {
    if (!vp_impl_processor_is_square(processor, json))
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "size", "differs from the tower's image_size");
    return vp_impl_processor_family(processor, "gemma3", json, error);
}

static vp_result vp_impl_processor_molmo2(vp_processor *processor, const vp_json *json, vp_error *error) {
    const vp_geometry *geometry = &processor->geometry;
    const uint32_t node = vp_json_get(json, 0, "pooling_size"), size = vp_json_get(json, 0, "size");
    int64_t pool = 2, other = 2;
    if (size != VP_JSON_NONE && !vp_impl_processor_is_square(processor, json))
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "size", "differs from the tower's image_size");
    if (vp_json_get(json, 0, "patch_size") != VP_JSON_NONE
        && vp_impl_processor_int(json, "patch_size", NULL) != geometry->patch_px)
        return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, "patch_size", "differs from the tower's");
    if (node != VP_JSON_NONE
        && (json->nodes[node].type != VP_JSON_ARRAY || json->nodes[node].count != 2
            || vp_json_to_int(json, vp_json_at(json, node, 0), &pool) != VP_OK
            || vp_json_to_int(json, vp_json_at(json, node, 1), &other) != VP_OK || pool != other || pool < 1
            || pool > 32))
        return vp_impl_processor_wrong(error, VP_ERR_UNSUPPORTED, "pooling_size",
                                       "only square windows are implemented");
    processor->window_pool = (int32_t)pool;
    processor->col_tokens = processor->low_col_tokens = processor->low_start = 1;
    vp_family_default(vp_family_find("molmo2"), &processor->family);
    return vp_family_set_number(&processor->family, "max_crops", geometry->max_crops, error);
}
static vp_result vp_impl_processor_switch(const vp_json *json, const char *name, int32_t *value, vp_error *error) {
    const uint32_t node = vp_json_get(json, 0, name);
    if (node == VP_JSON_NONE || json->nodes[node].type == VP_JSON_NULL) return VP_OK;
    *value = json->nodes[node].type == VP_JSON_TRUE;
    if (*value || json->nodes[node].type == VP_JSON_FALSE) return VP_OK;
    return vp_error_set(error, VP_ERR_FORMAT, -1, name, "this field of processor_config.json must be true or false");
}
VP_API vp_result vp_processor_read_text(vp_processor *processor, const vp_json *processor_config,
                                        const vp_json *tokenizer_config, vp_error *error) {
    static const char *const names[2] = {"bos_token", "eos_token"}; /* eos_token if there is no bos_token */
    vp_result result = VP_OK;
    size_t needed = 0;
    if (!processor) return vp_error_set(error, VP_ERR_RANGE, -1, "processor", "is NULL");
    if (processor->kind != VP_PROCESSOR_MOLMO2) return VP_OK;
    if (processor_config)
        result = vp_impl_processor_switch(processor_config, "image_use_col_tokens", &processor->col_tokens, error);
    processor->low_col_tokens = processor->col_tokens;
    if (processor_config && result == VP_OK)
        result =
            vp_impl_processor_switch(processor_config, "use_single_crop_col_tokens", &processor->low_col_tokens, error);
    if (processor_config && result == VP_OK)
        result =
            vp_impl_processor_switch(processor_config, "use_single_crop_start_token", &processor->low_start, error);
    for (int i = 0; i < 2 && tokenizer_config && result == VP_OK && !processor->front[0]; i++) {
        uint32_t node = vp_json_get(tokenizer_config, 0, names[i]);
        if (node != VP_JSON_NONE && tokenizer_config->nodes[node].type == VP_JSON_OBJECT)
            node = vp_json_get(tokenizer_config, node, "content");
        if (node == VP_JSON_NONE || tokenizer_config->nodes[node].type != VP_JSON_STRING) continue;
        if (vp_json_text(tokenizer_config, node, processor->front, sizeof processor->front, &needed) != VP_OK) {
            processor->front[0] = 0;
            result = vp_error_set(error, VP_ERR_UNSUPPORTED, -1, names[i], "is longer than 63 bytes");
        }
    }
    return result;
}

static int vp_impl_processor_is_qwen(const vp_processor *processor) {
    return processor->kind == VP_PROCESSOR_QWEN2_5_VL || processor->kind == VP_PROCESSOR_QWEN3_VL;
}
static vp_result vp_impl_processor_qwen(vp_processor *processor, const vp_json *json, vp_error *error) {
    static const char *const names[3] = {"patch_size", "merge_size", "temporal_patch_size"};
    const vp_geometry *geometry = &processor->geometry;
    const int32_t wanted[3] = {geometry->patch_px, geometry->pool, 2};
    const int64_t *value = processor->family.value;
    for (int i = 0; i < 3; i++)
        if (vp_json_get(json, 0, names[i]) != VP_JSON_NONE && vp_impl_processor_int(json, names[i], NULL) != wanted[i])
            return vp_impl_processor_wrong(error, VP_ERR_MISMATCH, names[i], "differs from the tower's");
    vp_result result = vp_impl_processor_family(
        processor, processor->kind == VP_PROCESSOR_QWEN3_VL ? "qwen3-vl" : "qwen2.5-vl", json, error);
    for (int slot = VP_SLOT_MIN; slot <= VP_SLOT_MAX && result == VP_OK; slot++) {
        const char *name = slot == VP_SLOT_MIN ? "min_pixels" : "max_pixels";
        if (value[slot] > VP_PROCESSOR_VIEW_PIXELS_MAX)
            result = vp_impl_processor_wrong(error, VP_ERR_RANGE, name, "is not a pixel count up to 100 million");
        else if (vp_json_get(json, 0, "size") != VP_JSON_NONE
                 && !vp_impl_processor_has(processor, (vp_family_slot)slot))
            result = vp_impl_processor_wrong(error, VP_ERR_NOT_FOUND, name, "is missing, and so is an edge in size");
    }
    if (result == VP_OK) result = vp_family_set_number(&processor->family, "patch_size", geometry->patch_px, error);
    return result == VP_OK ? vp_family_set_number(&processor->family, "merge_size", geometry->pool, error) : result;
}

VP_API vp_result vp_processor_read(vp_processor_kind kind, const vp_geometry *geometry, const vp_json *preprocessor,
                                   vp_processor *processor, vp_error *error) {
    if ((unsigned)kind >= VP_PROCESSOR_COUNT || !geometry || !processor)
        return vp_error_set(error, VP_ERR_RANGE, -1, "processor", "unknown kind, or geometry or processor is NULL");
    memset(processor, 0, sizeof *processor);
    processor->kind = kind;
    processor->geometry = *geometry;
    processor->view_px = geometry->crop_px;
    if (!vp_processor_placeholder(kind)) return VP_OK;
    if (vp_geometry_check(geometry) != VP_OK)
        return vp_error_set(error, VP_ERR_RANGE, -1, "processor", "the geometry is inconsistent");
    if (!preprocessor)
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, "preprocessor_config.json",
                            "is missing, so it is unknown how to resize images");
    if (preprocessor->nodes[0].type != VP_JSON_OBJECT)
        return vp_error_set(error, VP_ERR_FORMAT, -1, "preprocessor_config.json", "is not a JSON object");
    vp_result result = vp_impl_processor_steps(kind, preprocessor, error);
    if (result != VP_OK) return result;
    if (kind == VP_PROCESSOR_LLAVA) return vp_impl_processor_llava(processor, preprocessor, error);
    if (kind == VP_PROCESSOR_IDEFICS3) return vp_impl_processor_idefics3(processor, preprocessor, error);
    if (vp_impl_processor_is_qwen(processor)) return vp_impl_processor_qwen(processor, preprocessor, error);
    if (kind == VP_PROCESSOR_GEMMA3) return vp_impl_processor_gemma3(processor, preprocessor, error);
    if (kind == VP_PROCESSOR_MOLMO2) return vp_impl_processor_molmo2(processor, preprocessor, error);
    return vp_impl_processor_internvl(processor, preprocessor, error);
}

/* ------------------------------------------------------------------------------------------------------------ views */

/* LLaVA: the image is scaled by its shortest edge, then its centre is cut out */
static void vp_impl_processor_llava_layout(const vp_processor *processor, vp_layout *layout) {
    const double edge = processor->shortest_edge_px;
    const int32_t crop = processor->geometry.crop_px;
    const int wide = layout->width_px > layout->height_px;
    const double longest =
        wide ? edge * layout->width_px / layout->height_px : edge * layout->height_px / layout->width_px;
    const int32_t other = longest < 1e9 ? (int32_t)longest : 1000000000;
    layout->resized_width_px = wide ? other : processor->shortest_edge_px;
    layout->resized_height_px = wide ? processor->shortest_edge_px : other;
    layout->offset_left_px = (layout->resized_width_px - crop) / 2;
    layout->offset_top_px = (layout->resized_height_px - crop) / 2;
    layout->tiling.rows = layout->tiling.cols = layout->views = 1;
}

/* The size after the first resize. Idefics3 resizes again later. Its longest edge is scaled to longest_edge_px, at most
 * 4096; the other one is truncated and made even. */
static void vp_impl_processor_first(const vp_processor *processor, const vp_layout *layout, int32_t *width_px,
                                    int32_t *height_px) {
    const double aspect = (double)layout->width_px / (double)layout->height_px;
    const int wide = layout->width_px >= layout->height_px;
    int32_t longest = processor->longest_edge_px, other;
    *width_px = layout->resized_width_px;
    *height_px = layout->resized_height_px;
    if (processor->kind != VP_PROCESSOR_IDEFICS3) return;
    other = (int32_t)(wide ? longest / aspect : longest * aspect);
    other += other & 1;
    if (other < 1) other = 1;
    double again = wide ? (double)longest / other : (double)other / longest;
    if (longest > 4096) {
        longest = 4096;
        other = (int32_t)(wide ? 4096.0 / again : 4096.0 * again);
        if (other < 1) other = 1;
    }
    *width_px = wide ? longest : other;
    *height_px = wide ? other : longest;
}

/* Gemma 3: the image and its crops are each squeezed to a square; an image too small for its crops is an error */
static vp_result vp_impl_processor_gemma3_layout(const vp_processor *processor, vp_layout *layout, vp_error *error) {
    vp_vision_count count;
    vp_result result = vp_family_count(&processor->family, layout->width_px, layout->height_px, &count, error);
    if (result != VP_OK) return result;
    layout->resized_width_px = layout->resized_height_px = processor->geometry.crop_px;
    layout->views = (int32_t)count.views;
    layout->tiling.rows = count.rows ? (int32_t)count.rows : 1;
    layout->tiling.cols = count.cols ? (int32_t)count.cols : 1;
    layout->marker_tokens = (int32_t)count.marker_tokens;
    int64_t parts = count.views > 2 ? count.views - 1 : 1;
    int64_t side = layout->tiling.cols > 1 ? layout->width_px : layout->height_px;
    if ((side + parts - 1) / parts * (parts - 1) >= side)
        return vp_error_set(error, VP_ERR_RANGE, -1, "picture",
                            "has too few pixels for this many crops: the last is empty");
    return VP_OK;
}
/* number of windows over the crops of an axis; remaining patches get their own */
static int32_t vp_impl_molmo2_windows(const vp_processor *processor, int32_t crops) {
    const vp_geometry *geometry = &processor->geometry;
    const int32_t margins = geometry->margin_left_patches + geometry->margin_right_patches,
                  patches = crops * (geometry->crop_px / geometry->patch_px - margins) + margins;
    return (patches + processor->window_pool - 1) / processor->window_pool;
}
/* Molmo2: the whole image, then overlapping crops; each axis is stretched separately */
static vp_result vp_impl_processor_molmo2_layout(const vp_processor *processor, vp_layout *layout, vp_error *error) {
    const vp_geometry *geometry = &processor->geometry;
    const int32_t window = vp_geometry_window_px(geometry), margin = vp_geometry_margin_px(geometry),
                  low = vp_impl_molmo2_windows(processor, 1);
    vp_tiling tiling = {0, 0};
    if (vp_tiler_adaptive(geometry, layout->width_px, layout->height_px,
                          (int32_t)processor->family.value[VP_SLOT_MAX], &tiling) != VP_OK)
        return vp_error_set(error, VP_ERR_RANGE, -1, "picture", "max_crops is out of range");
    int32_t rows = vp_impl_molmo2_windows(processor, tiling.rows);
    int32_t cols = vp_impl_molmo2_windows(processor, tiling.cols);
    layout->tiling = tiling;
    layout->views = 1 + tiling.rows * tiling.cols;
    layout->resized_width_px = tiling.cols * window + margin;
    layout->resized_height_px = tiling.rows * window + margin;
    layout->feature_tokens = low * low + rows * cols;
    layout->col_tokens = (processor->low_col_tokens ? low : 0) + (processor->col_tokens ? rows : 0);
    layout->marker_tokens = 4;
    return VP_OK;
}

VP_API vp_result vp_processor_layout(const vp_processor *processor, int32_t width_px, int32_t height_px,
                                     vp_layout *layout, vp_error *error) {
    vp_layout made = {0};
    vp_vision_count count;
    vp_result result;
    int32_t first_width, first_height;
    if (!processor || !layout || width_px < 1 || height_px < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "picture", "processor or layout is NULL, or the image is empty");
    if (!vp_processor_placeholder(processor->kind))
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "image", "this model accepts only text");
    made.width_px = width_px;
    made.height_px = height_px;
    if (processor->kind == VP_PROCESSOR_LLAVA) {
        vp_impl_processor_llava_layout(processor, &made);
    } else if (processor->kind == VP_PROCESSOR_GEMMA3) {
        result = vp_impl_processor_gemma3_layout(processor, &made, error);
        if (result != VP_OK) return result;
    } else if (processor->kind == VP_PROCESSOR_MOLMO2) {
        result = vp_impl_processor_molmo2_layout(processor, &made, error);
        if (result != VP_OK) return result;
    } else {
        result = vp_family_count(&processor->family, width_px, height_px, &count, error);
        if (result != VP_OK) return result;
        made.resized_width_px = (int32_t)count.resized_width_px;
        made.resized_height_px = (int32_t)count.resized_height_px;
        made.tiling.rows = count.rows ? (int32_t)count.rows : 1; /* a single view has 0 rows in count */
        made.tiling.cols = count.cols ? (int32_t)count.cols : 1;
        made.views = (int32_t)count.views;
        if (vp_impl_processor_is_qwen(processor)) { /* rows and columns are patches, and the view is the image */
            made.tiling.rows /= processor->geometry.pool;
            made.tiling.cols /= processor->geometry.pool;
            made.views = made.tiling.rows * made.tiling.cols;
        }
        made.col_tokens = (int32_t)count.separator_tokens;
        made.marker_tokens = (int32_t)count.marker_tokens;
    }
    if (processor->kind != VP_PROCESSOR_MOLMO2)
        made.feature_tokens = made.views * vp_geometry_tokens_per_crop(&processor->geometry);
    vp_impl_processor_first(processor, &made, &first_width, &first_height);
    if ((double)made.resized_width_px * made.resized_height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX
        || (double)first_width * made.height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX
        || (double)made.resized_width_px * first_height > (double)VP_PROCESSOR_VIEW_PIXELS_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "picture", "the resized image has over 100 million pixels");
    made.crops = made.tiling.rows * made.tiling.cols;
    made.canvas_width_px = made.resized_width_px;
    made.canvas_height_px = made.resized_height_px;
    made.theoretical_tokens = made.feature_tokens;
    made.image_tokens = made.feature_tokens + made.col_tokens + made.marker_tokens;
    *layout = made;
    return VP_OK;
}

/* --------------------------------------------------------------------------------------------------- size of images */

/* the settings of a kind, and the largest value of the first */
typedef struct vp_impl_processor_knobs { const char *names[2]; int32_t most; } vp_impl_processor_knobs;
static vp_impl_processor_knobs vp_impl_processor_knobs_of(const vp_processor *processor) {
    static const vp_impl_processor_knobs none = {{NULL, NULL}, 0}, edge = {{"longest_edge", NULL}, 4096},
                                         tiles = {{"max_patches", "min_patches"}, 64},
                                         pan = {{"max_num_crops", "min_crop_size"}, 64},
                                         crops = {{"max_crops", NULL}, 64},
                                         pixels = {{"max_pixels", "min_pixels"}, VP_PROCESSOR_VIEW_PIXELS_MAX};
    return processor && processor->kind == VP_PROCESSOR_IDEFICS3   ? edge
           : processor && vp_impl_processor_is_internvl(processor) ? tiles
           : processor && processor->kind == VP_PROCESSOR_GEMMA3   ? pan
           : processor && processor->kind == VP_PROCESSOR_MOLMO2   ? crops
           : processor && vp_impl_processor_is_qwen(processor)     ? pixels
                                                                   : none;
}
VP_API const char *vp_processor_knob(const vp_processor *processor, int32_t index) {
    return index >= 0 && index < 2 ? vp_impl_processor_knobs_of(processor).names[index] : NULL;
}

static vp_result vp_impl_processor_no_knob(const vp_processor *processor, const char *name, vp_error *error) {
    vp_impl_message text = {{0}, 0};
    if (!vp_processor_knob(processor, 0)) {
        vp_impl_message_text(&text, !vp_processor_placeholder(processor->kind) ? "this model does not read images"
                                                                               : "this model's images have one size, ");
        if (vp_processor_placeholder(processor->kind)) {
            vp_impl_message_int(&text, processor->geometry.crop_px);
            vp_impl_message_text(&text, " pixels per side: there is no setting");
        }
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, name, text.text);
    }
    vp_impl_message_text(&text, "is not an image setting of this model; valid settings: ");
    for (int32_t i = 0; vp_processor_knob(processor, i); i++) {
        vp_impl_message_text(&text, i ? ", " : "");
        vp_impl_message_text(&text, vp_processor_knob(processor, i));
    }
    return vp_error_set(error, VP_ERR_NOT_FOUND, -1, name, text.text);
}
VP_API vp_result vp_processor_set(vp_processor *processor, const char *name, int32_t value, vp_error *error) {
    vp_impl_message text = {{0}, 0};
    int32_t i = 0;
    if (!processor || !name) return vp_error_set(error, VP_ERR_RANGE, -1, "processor", "processor or name is NULL");
    while (vp_processor_knob(processor, i) && strcmp(vp_processor_knob(processor, i), name)) i++;
    if (!vp_processor_knob(processor, i)) return vp_impl_processor_no_knob(processor, name, error);
    if (vp_impl_processor_is_qwen(processor) && value > (double)VP_PROCESSOR_VIEW_PIXELS_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, name, "is not a pixel count up to 100 million");
    vp_family tried = processor->family;
    vp_result result = vp_family_set_number(&tried, name, value, error);
    if (result != VP_OK) return result;
    if (vp_impl_processor_is_qwen(processor) && tried.value[VP_SLOT_MAX] < tried.value[VP_SLOT_MIN]) {
        vp_impl_message_text(&text, i ? "is above max_pixels, which is " : "is below min_pixels, which is ");
        vp_impl_message_int(&text, tried.value[i ? VP_SLOT_MAX : VP_SLOT_MIN]);
        return vp_error_set(error, VP_ERR_RANGE, -1, name, text.text);
    }
    processor->family = tried;
    if (processor->kind == VP_PROCESSOR_IDEFICS3) processor->longest_edge_px = value;
    if (processor->kind == VP_PROCESSOR_GEMMA3) processor->family.value[VP_SLOT_SPLIT] = i || value > 1;
    return VP_OK;
}
/* bisects max_pixels, because the tokens of an image grow with it */
static vp_result vp_impl_processor_aim_pixels(vp_processor *processor, int32_t width_px, int32_t height_px,
                                              int32_t tokens, vp_error *error) {
    vp_processor tried = *processor;
    vp_layout layout;
    int64_t low = tried.family.value[VP_SLOT_MIN] - 1, high = VP_PROCESSOR_VIEW_PIXELS_MAX; /* low: fits; high: may */
    vp_impl_message text = {{0}, 0};
    vp_result result = vp_processor_layout(&tried, width_px, height_px, &layout, error);
    if (result != VP_OK) return result;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        tried.family.value[VP_SLOT_MAX] = middle;
        if (vp_processor_layout(&tried, width_px, height_px, &layout, NULL) == VP_OK && layout.feature_tokens <= tokens)
            low = middle;
        else high = middle - 1;
    }
    if (low >= tried.family.value[VP_SLOT_MIN]) return vp_processor_set(processor, "max_pixels", (int32_t)low, error);
    vp_impl_message_int(&text, tokens);
    vp_impl_message_text(&text, " tokens are too few for this image: min_pixels is ");
    vp_impl_message_int(&text, tried.family.value[VP_SLOT_MIN]);
    return vp_error_set(error, VP_ERR_RANGE, -1, "vision_tokens", text.text);
}
VP_API vp_result vp_processor_aim(vp_processor *processor, int32_t width_px, int32_t height_px, int32_t tokens,
                                  vp_error *error) {
    vp_layout layout;
    vp_impl_message text = {{0}, 0};
    if (!processor || tokens < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "processor", "processor is NULL, or tokens is below 1");
    vp_impl_processor_knobs knobs = vp_impl_processor_knobs_of(processor);
    if (!knobs.names[0]) {
        vp_impl_processor_no_knob(processor, "vision_tokens", error);
        return VP_ERR_UNSUPPORTED;
    }
    if (vp_impl_processor_is_qwen(processor))
        return vp_impl_processor_aim_pixels(processor, width_px, height_px, tokens, error);
    int32_t step = processor->kind == VP_PROCESSOR_IDEFICS3 ? processor->view_px : 1;
    /* this many steps give at least as many views */
    int32_t steps = processor->kind == VP_PROCESSOR_MOLMO2 ? knobs.most
                                                           : tokens / vp_geometry_tokens_per_crop(&processor->geometry);
    if (steps > knobs.most / step) steps = knobs.most / step;
    vp_result result = vp_processor_layout(processor, width_px, height_px, &layout, error);
    if (result != VP_OK) return result;
    vp_processor tried = *processor;
    for (; steps >= 1; steps--) {
        /* values below InternVL's min_patches have no grid */
        if (vp_processor_set(&tried, knobs.names[0], steps * step, NULL) != VP_OK
            || vp_processor_layout(&tried, width_px, height_px, &layout, NULL) != VP_OK
            || layout.feature_tokens > tokens)
            continue;
        *processor = tried;
        return VP_OK;
    }
    vp_impl_message_int(&text, tokens);
    vp_impl_message_text(&text, " tokens are too few for this image at any size");
    return vp_error_set(error, VP_ERR_RANGE, -1, "vision_tokens", text.text);
}

/* ----------------------------------------------------------------------------------------------------------- resize */

static double vp_impl_processor_filter_sinc(double x) {
    const double pi = 3.14159265358979323846;
    return x == 0.0 ? 1.0 : sin(x * pi) / (x * pi);
}
static double vp_impl_processor_filter(vp_filter filter, double x) {
    const double a = -0.5;
    if (filter == VP_FILTER_LANCZOS)
        return x >= -3.0 && x < 3.0 ? vp_impl_processor_filter_sinc(x) * vp_impl_processor_filter_sinc(x / 3.0) : 0.0;
    x = fabs(x);
    if (filter == VP_FILTER_BILINEAR) return x < 1.0 ? 1.0 - x : 0.0;
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

/* The weights of one axis: output i uses count[i] inputs, starting at first[i]; weights are in units of 1 / (1 <<
 * bits). */
typedef struct vp_impl_processor_axis {
    int32_t *first, *count;
    int16_t *weights;
    int32_t taps, bits;
} vp_impl_processor_axis;

static void vp_impl_processor_axis_free(vp_impl_processor_axis *axis) {
    VP_FREE(axis->first);
    VP_FREE(axis->count);
    VP_FREE(axis->weights);
}
static vp_result vp_impl_processor_axis_make(vp_impl_processor_axis *axis, int32_t in, int32_t out, vp_filter filter) {
    const double scale = (double)in / out,
                 wide = filter == VP_FILTER_LANCZOS ? 3.0 : filter == VP_FILTER_BICUBIC ? 2.0 : 1.0,
                 support = scale >= 1.0 ? wide * scale : wide, inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
    double *exact, largest = 0;
    memset(axis, 0, sizeof *axis);
    axis->taps = (int32_t)ceil(support) * 2 + 1;
    axis->first = (int32_t *)VP_MALLOC((size_t)out * sizeof *axis->first);
    axis->count = (int32_t *)VP_MALLOC((size_t)out * sizeof *axis->count);
    axis->weights = (int16_t *)VP_MALLOC((size_t)out * (size_t)axis->taps * sizeof *axis->weights);
    exact = (double *)VP_MALLOC((size_t)out * (size_t)axis->taps * sizeof *exact);
    if (!axis->first || !axis->count || !axis->weights || !exact) {
        VP_FREE(exact);
        vp_impl_processor_axis_free(axis);
        return VP_ERR_MEMORY;
    }
    for (int32_t i = 0; i < out; i++) {
        const double center = scale * (i + 0.5);
        int64_t from = (int64_t)(center - support + 0.5), to = (int64_t)(center + support + 0.5);
        double *weights = exact + (size_t)i * (size_t)axis->taps, total = 0;
        if (from < 0) from = 0;
        if (to > in) to = in;
        axis->first[i] = (int32_t)from;
        axis->count[i] = to - from > axis->taps ? axis->taps : to < from ? 0 : (int32_t)(to - from);
        for (int32_t k = 0; k < axis->count[i]; k++) {
            weights[k] = vp_impl_processor_filter(filter, ((double)(k + from) - center + 0.5) * inverse);
            total += weights[k];
        }
        for (int32_t k = 0; k < axis->count[i]; k++) {
            if (total != 0.0) weights[k] /= total;
            if (weights[k] > largest) largest = weights[k];
        }
    }
    while (axis->bits < 22 && (int)(0.5 + largest * (double)(1 << (axis->bits + 1))) < 32768) axis->bits++;
    for (int32_t i = 0; i < out; i++)
        for (int32_t k = 0; k < axis->count[i]; k++) {
            const double weight = exact[(size_t)i * (size_t)axis->taps + (size_t)k] * (double)(1 << axis->bits);
            axis->weights[(size_t)i * (size_t)axis->taps + (size_t)k] =
                (int16_t)(weight < 0 ? (int)(-0.5 + weight) : (int)(0.5 + weight));
        }
    VP_FREE(exact);
    return VP_OK;
}

/* One axis of an image with `lines` lines. Elements of `step` bytes are consecutive along it; `channels` of each are
 * weighted together. Lines are `in_stride` and `out_stride` bytes apart. */
typedef struct vp_impl_processor_pass {
    const uint8_t *in;
    uint8_t *out;
    size_t lines, in_stride, out_stride, step, channels;
} vp_impl_processor_pass;

static vp_result vp_impl_resize_axis(const vp_impl_processor_pass *pass, int32_t in, int32_t out, vp_filter filter) {
    vp_impl_processor_axis axis;
    vp_result result = vp_impl_processor_axis_make(&axis, in, out, filter);
    if (result != VP_OK) return result;
    for (size_t line = 0; line < pass->lines; line++)
        for (int32_t i = 0; i < out; i++) {
            const int16_t *weights = axis.weights + (size_t)i * (size_t)axis.taps;
            const uint8_t *from = pass->in + line * pass->in_stride + (size_t)axis.first[i] * pass->step;
            uint8_t *to = pass->out + line * pass->out_stride + (size_t)i * pass->step;
            for (size_t channel = 0; channel < pass->channels; channel++) {
                int32_t sum = axis.bits ? 1 << (axis.bits - 1) : 0;
                for (int32_t k = 0; k < axis.count[i]; k++) sum += weights[k] * from[(size_t)k * pass->step + channel];
                sum = sum < 0 ? 0 : sum >> axis.bits;
                to[channel] = (uint8_t)(sum > 255 ? 255 : sum);
            }
        }
    vp_impl_processor_axis_free(&axis);
    return VP_OK;
}

VP_API vp_result vp_processor_resize(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                     int32_t new_width_px, int32_t new_height_px, vp_filter filter) {
    const size_t width = (size_t)width_px, height = (size_t)height_px, new_width = (size_t)new_width_px;
    vp_impl_processor_pass across = {rgb, resized, height, width * 3, new_width * 3, 3, 3};
    vp_impl_processor_pass down = {rgb, resized, 1, 0, 0, new_width * 3, new_width * 3};
    uint8_t *between = NULL;
    vp_result result = VP_OK;
    if (!rgb || !resized || width_px < 1 || height_px < 1 || new_width_px < 1 || new_height_px < 1
        || (double)width_px * height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX
        || (double)new_width_px * height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX
        || (double)new_width_px * new_height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX)
        return VP_ERR_RANGE;
    if (width_px == new_width_px && height_px == new_height_px) {
        memcpy(resized, rgb, width * height * 3);
        return VP_OK;
    }
    if (width_px != new_width_px && height_px != new_height_px) {
        between = (uint8_t *)VP_MALLOC(new_width * height * 3);
        if (!between) return VP_ERR_MEMORY;
        across.out = between;
        down.in = between;
    }
    if (width_px != new_width_px) result = vp_impl_resize_axis(&across, width_px, new_width_px, filter);
    if (result == VP_OK && height_px != new_height_px)
        result = vp_impl_resize_axis(&down, height_px, new_height_px, filter);
    VP_FREE(between);
    return result;
}

/* position of output i of an axis: between inputs `first` and `second`, with their weights */
typedef struct vp_impl_source_place { int32_t first, second; float behind, before; } vp_impl_source_place;
static vp_impl_source_place vp_impl_resize_place(int32_t i, int32_t in, int32_t out) {
    const float scale = (float)in / (float)out, at = ((float)i + 0.5f) * scale - 0.5f, from = at > 0.0f ? at : 0.0f;
    vp_impl_source_place place;
    place.first = (int32_t)from < in - 1 ? (int32_t)from : in - 1;
    place.second = place.first + (place.first < in - 1);
    place.behind = from - (float)place.first < 1.0f ? from - (float)place.first : 1.0f;
    place.before = 1.0f - place.behind;
    return place;
}
static float vp_impl_resize_between(float one, float other, const vp_impl_source_place *place) {
    return fmaf(one, place->before, other * place->behind);
}
VP_API vp_result vp_processor_resize_plain(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                           int32_t new_width_px, int32_t new_height_px) {
    vp_impl_source_place *columns;
    if (!rgb || !resized || width_px < 1 || height_px < 1 || new_width_px < 1 || new_height_px < 1
        || (double)width_px * height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX
        || (double)new_width_px * new_height_px > (double)VP_PROCESSOR_VIEW_PIXELS_MAX)
        return VP_ERR_RANGE;
    columns = (vp_impl_source_place *)VP_MALLOC((size_t)new_width_px * sizeof *columns);
    if (!columns) return VP_ERR_MEMORY;
    for (int32_t x = 0; x < new_width_px; x++) columns[x] = vp_impl_resize_place(x, width_px, new_width_px);
    for (int32_t y = 0; y < new_height_px; y++) {
        const vp_impl_source_place row = vp_impl_resize_place(y, height_px, new_height_px);
        const uint8_t *upper = rgb + (size_t)row.first * (size_t)width_px * 3,
                      *lower = rgb + (size_t)row.second * (size_t)width_px * 3;
        for (int32_t x = 0; x < new_width_px; x++)
            for (int32_t channel = 0; channel < 3; channel++) {
                const vp_impl_source_place *column = &columns[x];
                const size_t one = (size_t)column->first * 3 + (size_t)channel,
                             other = (size_t)column->second * 3 + (size_t)channel;
                const float above = vp_impl_resize_between((float)upper[one], (float)upper[other], column),
                            below = vp_impl_resize_between((float)lower[one], (float)lower[other], column);
                *resized++ = (uint8_t)rintf(vp_impl_resize_between(above, below, &row));
            }
    }
    VP_FREE(columns);
    return VP_OK;
}

/* ----------------------------------------------------------------------------------------------------------- pixels */

/* The image after all resizes except that for the whole-image view, malloc'ed. */
static vp_result vp_impl_processor_resized(const vp_processor *processor, const vp_layout *layout, const uint8_t *rgb,
                                           uint8_t **resized) {
    const vp_filter filter = processor->kind == VP_PROCESSOR_IDEFICS3 ? VP_FILTER_LANCZOS : VP_FILTER_BICUBIC;
    int32_t width, height;
    vp_impl_processor_first(processor, layout, &width, &height);
    uint8_t *first = (uint8_t *)VP_MALLOC((size_t)width * (size_t)height * 3);
    vp_result result = first
                           ? vp_processor_resize(rgb, layout->width_px, layout->height_px, first, width, height, filter)
                           : VP_ERR_MEMORY;
    *resized = first;
    if (result != VP_OK || (width == layout->resized_width_px && height == layout->resized_height_px)) return result;
    uint8_t *second = (uint8_t *)VP_MALLOC((size_t)layout->resized_width_px * (size_t)layout->resized_height_px * 3);
    result = second ? vp_processor_resize(first, width, height, second, layout->resized_width_px,
                                          layout->resized_height_px, filter)
                    : VP_ERR_MEMORY;
    VP_FREE(first);
    *resized = second;
    return result;
}

/* Gemma 3: the whole image, then its crops, all of one size except the last of a row or column */
static vp_result vp_impl_views_gemma3(const vp_processor *processor, const vp_layout *layout, const uint8_t *rgb,
                                      uint8_t *views) {
    const int32_t side = processor->view_px, width = layout->width_px, height = layout->height_px,
                  across = (width + layout->tiling.cols - 1) / layout->tiling.cols,
                  down = (height + layout->tiling.rows - 1) / layout->tiling.rows;
    const size_t view_bytes = (size_t)side * (size_t)side * 3;
    vp_result result = vp_processor_resize(rgb, width, height, views, side, side, VP_FILTER_BILINEAR);
    if (layout->views < 2 || result != VP_OK) return result;
    uint8_t *crop = (uint8_t *)VP_MALLOC((size_t)across * (size_t)down * 3);
    if (!crop) return VP_ERR_MEMORY;
    for (int32_t view = 1; result == VP_OK && view < layout->views; view++) {
        const int32_t left = (view - 1) % layout->tiling.cols * across, top = (view - 1) / layout->tiling.cols * down,
                      wide = left + across > width ? width - left : across,
                      high = top + down > height ? height - top : down;
        for (int32_t y = 0; y < high; y++)
            memcpy(crop + (size_t)y * (size_t)wide * 3, rgb + ((size_t)(top + y) * (size_t)width + (size_t)left) * 3,
                   (size_t)wide * 3);
        result =
            vp_processor_resize(crop, wide, high, views + (size_t)view * view_bytes, side, side, VP_FILTER_BILINEAR);
    }
    VP_FREE(crop);
    return result;
}
/* Molmo2: the whole image squeezed to a square, then the crops of the stretched one */
static vp_result vp_impl_views_molmo2(const vp_processor *processor, const vp_layout *layout, const uint8_t *rgb,
                                      uint8_t *views) {
    const size_t crop = (size_t)processor->geometry.crop_px, line = (size_t)layout->resized_width_px * 3,
                 window = (size_t)vp_geometry_window_px(&processor->geometry);
    uint8_t *resized = (uint8_t *)VP_MALLOC((size_t)layout->resized_height_px * line);
    vp_result result;
    if (!resized) return VP_ERR_MEMORY;
    result = vp_processor_resize_plain(rgb, layout->width_px, layout->height_px, views, (int32_t)crop, (int32_t)crop);
    if (result == VP_OK)
        result = vp_processor_resize_plain(rgb, layout->width_px, layout->height_px, resized, layout->resized_width_px,
                                           layout->resized_height_px);
    for (int32_t view = 0; result == VP_OK && view < layout->tiling.rows * layout->tiling.cols; view++) {
        const size_t left = (size_t)(view % layout->tiling.cols) * window,
                     top = (size_t)(view / layout->tiling.cols) * window;
        for (size_t y = 0; y < crop; y++)
            memcpy(views + (((size_t)view + 1) * crop + y) * crop * 3, resized + (top + y) * line + left * 3, crop * 3);
    }
    VP_FREE(resized);
    return result;
}

VP_API vp_result vp_processor_views(const vp_processor *processor, const vp_layout *layout, const uint8_t *rgb,
                                    uint8_t *views) {
    const int is_idefics3 = processor && processor->kind == VP_PROCESSOR_IDEFICS3;
    const size_t side = processor ? (size_t)processor->view_px : 0, view_bytes = side * side * 3;
    uint8_t *resized = NULL;
    int32_t view;
    if (!processor || !layout || !rgb || !views) return VP_ERR_RANGE;
    if (processor->kind == VP_PROCESSOR_GEMMA3) return vp_impl_views_gemma3(processor, layout, rgb, views);
    if (processor->kind == VP_PROCESSOR_MOLMO2) return vp_impl_views_molmo2(processor, layout, rgb, views);
    vp_result result = vp_impl_processor_resized(processor, layout, rgb, &resized);
    for (view = 0; result == VP_OK && view < layout->tiling.rows * layout->tiling.cols; view++) {
        const size_t left = (size_t)layout->offset_left_px + (size_t)(view % layout->tiling.cols) * side,
                     top = (size_t)layout->offset_top_px + (size_t)(view / layout->tiling.cols) * side;
        for (size_t y = 0; y < side; y++)
            memcpy(views + (size_t)view * view_bytes + y * side * 3,
                   resized + ((top + y) * (size_t)layout->resized_width_px + left) * 3, side * 3);
    }
    /* the whole-image view: Idefics3 makes it from the enlarged image, InternVL from the original */
    if (result == VP_OK && layout->views > layout->tiling.rows * layout->tiling.cols)
        result = vp_processor_resize(
            is_idefics3 ? resized : rgb, is_idefics3 ? layout->resized_width_px : layout->width_px,
            is_idefics3 ? layout->resized_height_px : layout->height_px, views + (size_t)view * view_bytes,
            processor->view_px, processor->view_px, is_idefics3 ? VP_FILTER_LANCZOS : VP_FILTER_BICUBIC);
    VP_FREE(resized);
    return result;
}

VP_API void vp_processor_pixels(const vp_processor *processor, const vp_layout *layout, const uint8_t *views,
                                float *pixels) {
    const vp_geometry *geometry = &processor->geometry;
    const size_t patch = (size_t)geometry->patch_px, crop = (size_t)processor->view_px, side = crop / patch;
    float table[3][256];
    for (int channel = 0; channel < 3; channel++) {
        const float mean = (float)((double)geometry->mean[channel] * 255.0),
                    std = (float)((double)geometry->std[channel] * 255.0);
        for (int level = 0; level < 256; level++) table[channel][level] = ((float)level - mean) / std;
    }
    for (size_t view = 0; view < (size_t)layout->views; view++)
        for (size_t row = 0; row < side; row++)
            for (size_t col = 0; col < side; col++)
                for (size_t y = 0; y < patch; y++) {
                    const uint8_t *from = views + ((view * crop + row * patch + y) * crop + col * patch) * 3;
                    for (size_t x = 0; x < patch * 3; x++) *pixels++ = table[x % 3][from[x]];
                }
}

/* ------------------------------------------------------------------------------------------------------------- text */

/* out NULL: only counts */
typedef struct vp_impl_processor_text { char *out; size_t bytes; } vp_impl_processor_text;

static void vp_impl_processor_add_bytes(vp_impl_processor_text *text, const char *add, size_t bytes) {
    if (text->out && bytes) memcpy(text->out + text->bytes, add, bytes);
    text->bytes += bytes;
}
static void vp_impl_processor_add(vp_impl_processor_text *text, const char *add) {
    vp_impl_processor_add_bytes(text, add, strlen(add));
}
static void vp_impl_processor_add_int(vp_impl_processor_text *text, int32_t number) {
    vp_impl_message digits = {{0}, 0};
    vp_impl_message_int(&digits, number);
    vp_impl_processor_add(text, digits.text);
}

/* InternVL's original form: the template internvl2_5 in OpenGVLab/InternVL's conversation.py, whose system message
 * names the model's developers in Chinese */
static const struct {
    const char *placeholder, *video, *before, *with_image, *without_image, *after;
    uint64_t chat_templates[2]; /* FNV-1a of the templates that produce this text */
} vp_impl_processor_formats[VP_PROCESSOR_COUNT] = {
    {NULL, NULL, "<|user|>\n", "", "", "\n<|assistant|>\n", {UINT64_C(0x38edd7b9e2cc8fc1), 0}},
    {"<image>", NULL, "USER: ", "<image>\n", "", " ASSISTANT:", {UINT64_C(0xd9ced1d7141b9c24), 0}},
    {"<image>", NULL, "<|im_start|>User:", "<image>", " ", "<end_of_utterance>\nAssistant:",
     {UINT64_C(0x92cf2b51e627e013), 0}},
    {"<IMG_CONTEXT>", NULL, "<|im_start|>user\n", "<IMG_CONTEXT>\n", "", "<|im_end|>\n<|im_start|>assistant\n",
     {UINT64_C(0xa2e9d9ef77347fee), 0}},
    {"<|image_pad|>", "<|video_pad|>",
     "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n",
     "<|vision_start|><|image_pad|><|vision_end|>", "", "<|im_end|>\n<|im_start|>assistant\n",
     {UINT64_C(0x71242f76359e71e8), 0}},
    {"<|image_pad|>", "<|video_pad|>", "<|im_start|>user\n", "<|vision_start|><|image_pad|><|vision_end|>", "",
     "<|im_end|>\n<|im_start|>assistant\n", {UINT64_C(0xedf56504a829b677), UINT64_C(0x99ac253185d6f7c1)}},
    {"<start_of_image>", NULL, "<bos><start_of_turn>user\n", "<start_of_image>", "",
     "<end_of_turn>\n<start_of_turn>model\n", {UINT64_C(0xd19b6ff3a49deea5), 0}},
    {"<|image|>", "<|video|>", "", "<|image|><|im_start|>user\n", "<|im_start|>user\n",
     "<|im_end|>\n<|im_start|>assistant\n", {UINT64_C(0x0784b649a4c6b3e8), 0}},
    {NULL, NULL, "", "", "", "", {0, 0}},
    {"<IMG_CONTEXT>", NULL,
     "<|im_start|>system\n"
     "\xE4\xBD\xA0\xE6\x98\xAF\xE4\xB9\xA6\xE7\x94\x9F\xC2\xB7\xE4\xB8\x87\xE8\xB1\xA1\xEF\xBC\x8C"
     "\xE8\x8B\xB1\xE6\x96\x87\xE5\x90\x8D\xE6\x98\xAF"
     "InternVL\xEF\xBC\x8C\xE6\x98\xAF\xE7\x94\xB1\xE4\xB8\x8A\xE6\xB5\xB7\xE4\xBA\xBA\xE5\xB7\xA5"
     "\xE6\x99\xBA\xE8\x83\xBD\xE5\xAE\x9E\xE9\xAA\x8C\xE5\xAE\xA4\xE3\x80\x81\xE6\xB8\x85\xE5\x8D\x8E"
     "\xE5\xA4\xA7\xE5\xAD\xA6\xE5\x8F\x8A\xE5\xA4\x9A\xE5\xAE\xB6\xE5\x90\x88\xE4\xBD\x9C\xE5\x8D\x95"
     "\xE4\xBD\x8D\xE8\x81\x94\xE5\x90\x88\xE5\xBC\x80\xE5\x8F\x91\xE7\x9A\x84\xE5\xA4\x9A\xE6\xA8\xA1"
     "\xE6\x80\x81\xE5\xA4\xA7\xE8\xAF\xAD\xE8\xA8\x80\xE6\xA8\xA1\xE5\x9E\x8B\xE3\x80\x82"
     "<|im_end|>\n<|im_start|>user\n",
     "<IMG_CONTEXT>\n", "", "<|im_end|>\n<|im_start|>assistant\n", {0, 0}},
    {NULL, NULL, "<|im_start|>user\n", "", "", "<|im_end|>\n<|im_start|>assistant\n",
     {UINT64_C(0x88bf4138d5c826f0), 0}},
    {NULL, NULL,
     "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
     "<|im_start|>user\n",
     "", "", "<|im_end|>\n<|im_start|>assistant\n", {UINT64_C(0xe642ce246d7f2e3d), 0}},
    {NULL, NULL, "<start_of_turn>user\n", "", "", "<end_of_turn>\n<start_of_turn>model\n",
     {UINT64_C(0xd19b6ff3a49deea5), 0}},
};

VP_API const char *vp_processor_placeholder(vp_processor_kind kind) {
    return (unsigned)kind < VP_PROCESSOR_COUNT ? vp_impl_processor_formats[kind].placeholder : NULL;
}
VP_API const char *vp_processor_video(vp_processor_kind kind) {
    return (unsigned)kind < VP_PROCESSOR_COUNT ? vp_impl_processor_formats[kind].video : NULL;
}

VP_API const char *vp_processor_image_token(vp_processor_kind kind) {
    return kind == VP_PROCESSOR_GEMMA3   ? "<image_soft_token>"
           : kind == VP_PROCESSOR_MOLMO2 ? "<im_patch>"
                                         : vp_processor_placeholder(kind);
}

VP_API int vp_processor_knows_template(vp_processor_kind kind, const char *chat_template, size_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if ((unsigned)kind >= VP_PROCESSOR_COUNT || !chat_template) return 0;
    while (bytes && (chat_template[bytes - 1] == '\n' || chat_template[bytes - 1] == '\r')) bytes--;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (uint8_t)chat_template[i]) * UINT64_C(0x100000001b3);
    return hash && (hash == vp_impl_processor_formats[kind].chat_templates[0]
                    || hash == vp_impl_processor_formats[kind].chat_templates[1]);
}

/* VP_OK if the text of `made` bytes fits */
static vp_result vp_impl_processor_room(size_t made, const char *out, size_t capacity, size_t *needed) {
    *needed = made;
    return out && made < capacity ? VP_OK : VP_ERR_CAPACITY;
}

VP_API vp_processor_kind vp_processor_text_kind(const char *chat_template, size_t bytes) {
    int kind = VP_PROCESSOR_CHATML;
    while (kind < VP_PROCESSOR_COUNT && !vp_processor_knows_template((vp_processor_kind)kind, chat_template, bytes))
        kind++;
    return kind < VP_PROCESSOR_COUNT ? (vp_processor_kind)kind : VP_PROCESSOR_PLAIN;
}

VP_API const char *vp_processor_one_image(vp_processor_kind kind) {
    return (unsigned)kind >= VP_PROCESSOR_COUNT || !vp_processor_placeholder(kind) ? "it does not read images"
           : kind == VP_PROCESSOR_LLAVA  ? "LLaVA-1.5 was trained with one image per conversation"
           : kind == VP_PROCESSOR_MOLMO2 ? "the numbered images of Molmo2's prompts are not implemented"
                                         : NULL;
}

/* adds a piece of a question; Gemma 3's template trims */
static void vp_impl_processor_add_piece(vp_impl_processor_text *text, vp_processor_kind kind, const char *piece,
                                        size_t bytes) {
    if (kind == VP_PROCESSOR_GEMMA3 || kind == VP_PROCESSOR_GEMMA3_TEXT) {
        while (bytes && strchr(" \t\n\r\v\f", piece[bytes - 1])) bytes--;
        while (bytes && strchr(" \t\n\r\v\f", *piece)) { piece++; bytes--; }
    }
    vp_impl_processor_add_bytes(text, piece, bytes);
}
VP_API vp_result vp_processor_prompt(vp_processor_kind kind, const char *question, const size_t *places,
                                     int32_t image_count, char *out, size_t capacity, size_t *needed) {
    vp_impl_processor_text text = {NULL, 0};
    size_t bytes, done;
    if ((unsigned)kind >= VP_PROCESSOR_COUNT || !question || !needed || image_count < 0
        || (image_count && !vp_processor_placeholder(kind)) || (image_count > 1 && vp_processor_one_image(kind)))
        return VP_ERR_RANGE;
    bytes = strlen(question);
    for (int32_t i = 0; places && i < image_count; i++)
        if (places[i] > bytes || (i && places[i] < places[i - 1])) return VP_ERR_RANGE;
    if (vp_processor_one_image(kind)) places = NULL; /* the image comes first */
    for (int pass = 0; pass < 2; pass++) {
        text.bytes = done = 0;
        vp_impl_processor_add(&text, vp_impl_processor_formats[kind].before);
        if (!image_count || (places && places[0]))
            vp_impl_processor_add(&text, vp_impl_processor_formats[kind].without_image);
        for (int32_t i = 0; i < image_count; i++) {
            const size_t place = places ? places[i] : 0;
            vp_impl_processor_add_piece(&text, kind, question + done, place - done);
            vp_impl_processor_add(&text, vp_impl_processor_formats[kind].with_image);
            done = place;
        }
        vp_impl_processor_add_piece(&text, kind, question + done, bytes - done);
        vp_impl_processor_add(&text, vp_impl_processor_formats[kind].after);
        if (!pass && vp_impl_processor_room(text.bytes, out, capacity, needed) != VP_OK) return VP_ERR_CAPACITY;
        text.out = out;
    }
    out[text.bytes] = 0;
    return VP_OK;
}

static void vp_impl_processor_add_view(vp_impl_processor_text *text, const vp_processor *processor) {
    int32_t i, tokens = vp_geometry_tokens_per_crop(&processor->geometry);
    for (i = 0; i < tokens; i++) vp_impl_processor_add(text, vp_processor_image_token(processor->kind));
}

/* Gemma 3's views are separate, the whole image first */
static void vp_impl_processor_add_gemma3(vp_impl_processor_text *text, const vp_processor *processor, int32_t views) {
    if (views > 1) vp_impl_processor_add(text, "Here is the original image ");
    for (int32_t view = 0; view < views; view++) {
        if (view == 1) vp_impl_processor_add(text, " and here are some crops to help you see better ");
        if (view > 1) vp_impl_processor_add(text, " ");
        vp_impl_processor_add(text, "\n\n<start_of_image>");
        vp_impl_processor_add_view(text, processor);
        vp_impl_processor_add(text, "<end_of_image>\n\n");
    }
}

/* adds a grid of Molmo2's windows */
static void vp_impl_processor_add_windows(vp_impl_processor_text *text, const char *start, int32_t rows, int32_t cols,
                                          int32_t col_tokens) {
    vp_impl_processor_add(text, start);
    for (int32_t row = 0; row < rows; row++) {
        for (int32_t col = 0; col < cols; col++) vp_impl_processor_add(text, "<im_patch>");
        if (col_tokens) vp_impl_processor_add(text, "<im_col>");
    }
    vp_impl_processor_add(text, "<im_end>");
}
/* adds the tokens of an image */
static void vp_impl_processor_add_image(vp_impl_processor_text *text, const vp_processor *processor,
                                        const vp_layout *layout) {
    if (processor->kind == VP_PROCESSOR_MOLMO2) {
        const int32_t low = vp_impl_molmo2_windows(processor, 1);
        vp_impl_processor_add_windows(text, processor->low_start ? "<low_res_im_start>" : "<im_start>", low, low,
                                      processor->low_col_tokens);
        vp_impl_processor_add_windows(text, "<im_start>", vp_impl_molmo2_windows(processor, layout->tiling.rows),
                                      vp_impl_molmo2_windows(processor, layout->tiling.cols), processor->col_tokens);
        return;
    }
    if (vp_impl_processor_is_internvl(processor)) vp_impl_processor_add(text, "<img>");
    if (processor->kind == VP_PROCESSOR_GEMMA3) {
        vp_impl_processor_add_gemma3(text, processor, layout->views);
        return;
    }
    if (processor->kind != VP_PROCESSOR_IDEFICS3)
        for (int32_t view = 0; view < layout->views; view++) vp_impl_processor_add_view(text, processor);
    if (vp_impl_processor_is_internvl(processor)) vp_impl_processor_add(text, "</img>");
    if (processor->kind != VP_PROCESSOR_IDEFICS3) return;
    for (int32_t row = 1; layout->views > 1 && row <= layout->tiling.rows; row++) {
        for (int32_t col = 1; col <= layout->tiling.cols; col++) {
            vp_impl_processor_add(text, "<fake_token_around_image><row_");
            vp_impl_processor_add_int(text, row);
            vp_impl_processor_add(text, "_col_");
            vp_impl_processor_add_int(text, col);
            vp_impl_processor_add(text, ">");
            vp_impl_processor_add_view(text, processor);
        }
        vp_impl_processor_add(text, row < layout->tiling.rows ? "\n" : "\n\n");
    }
    vp_impl_processor_add(text, "<fake_token_around_image><global-img>");
    vp_impl_processor_add_view(text, processor);
    vp_impl_processor_add(text, "<fake_token_around_image>");
}

VP_API vp_result vp_processor_expand(const vp_processor *processor, const vp_layout *layouts, int32_t image_count,
                                     const char *text, char *out, size_t capacity, size_t *needed) {
    const char *placeholder = processor ? vp_processor_placeholder(processor->kind) : NULL, *at, *found;
    vp_impl_processor_text made = {NULL, 0};
    int32_t image = 0;
    if (!processor || !text || !needed || image_count < 0 || (image_count && !layouts)) return VP_ERR_RANGE;
    for (at = text; placeholder && (at = strstr(at, placeholder)) != NULL; at += strlen(placeholder)) image++;
    if (image != image_count) return VP_ERR_MISMATCH;
    for (int pass = 0; pass < 2; pass++) {
        made.bytes = 0;
        at = text;
        if (strncmp(text, processor->front, strlen(processor->front))) vp_impl_processor_add(&made, processor->front);
        for (image = 0; image < image_count; image++) {
            found = strstr(at, placeholder);
            vp_impl_processor_add_bytes(&made, at, (size_t)(found - at));
            vp_impl_processor_add_image(&made, processor, &layouts[image]);
            at = found + strlen(placeholder);
        }
        vp_impl_processor_add(&made, at);
        if (!pass && vp_impl_processor_room(made.bytes, out, capacity, needed) != VP_OK) return VP_ERR_CAPACITY;
        made.out = out;
    }
    out[made.bytes] = 0;
    return VP_OK;
}
