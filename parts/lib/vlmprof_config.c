/* vlmprof_config.c: implements what vlmprof_config.h declares */
#include "vlmprof_config.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* snprintf that always terminates its output */
static void vp_impl_print(char *out, size_t capacity, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(out, capacity, format, list);
    va_end(list);
}

VP_API vp_result vp_json_load(const char *text, size_t bytes, const char *where, vp_json *json, vp_error *error) {
    vp_error local;
    vp_json_node *nodes;
    size_t needed = 0, total;
    vp_result result = vp_json_parse(text, bytes, NULL, 0, NULL, &needed, &local);
    if (result != VP_OK && result != VP_ERR_CAPACITY)
        return vp_error_set(error, result, local.offset, where, local.text);
    if (!vp_size_multiply(needed ? needed : 1, sizeof *nodes, &total) || !(nodes = (vp_json_node *)VP_MALLOC(total)))
        return vp_error_set(error, VP_ERR_MEMORY, -1, where, "not enough memory for the JSON text");
    result = vp_json_parse(text, bytes, nodes, needed, json, &needed, &local);
    if (result == VP_OK) return VP_OK;
    VP_FREE(nodes);
    return vp_error_set(error, result, local.offset, where, local.text);
}

/* ----------------------------------------------------------------------------------------------------------- config */
/* One object of a config file. `result` keeps the first error, so that reading a list of fields needs no checks. */
typedef struct vp_impl_fields {
    const vp_json *json;
    uint32_t object;
    const char *prefix; /* before field names in errors */
    vp_result result;
    vp_error *error;
} vp_impl_fields;

static void vp_impl_fields_fail(vp_impl_fields *fields, vp_result code, const char *field, const char *text) {
    char where[sizeof fields->error->where];
    vp_impl_print(where, sizeof where, "%s%s", fields->prefix, field);
    if (fields->result == VP_OK) fields->result = vp_error_set(fields->error, code, -1, where, text);
}

/* node of a field, or VP_JSON_NONE if absent; with `null_is_absent`, null counts as absent */
static uint32_t vp_impl_fields_get(const vp_impl_fields *fields, const char *field, int null_is_absent) {
    uint32_t node = vp_json_get(fields->json, fields->object, field);
    if (node != VP_JSON_NONE && null_is_absent && fields->json->nodes[node].type == VP_JSON_NULL) return VP_JSON_NONE;
    return node;
}

/* An integer in minimum..maximum. fallback < 0: the field is required. */
static int32_t vp_impl_fields_int(vp_impl_fields *fields, const char *field, int32_t minimum, int32_t maximum,
                                  int32_t fallback) {
    char text[128];
    int64_t value = 0;
    if (fields->result != VP_OK) return 0;
    uint32_t node = vp_impl_fields_get(fields, field, fallback >= 0);
    if (node == VP_JSON_NONE) {
        if (fallback < 0) vp_impl_fields_fail(fields, VP_ERR_NOT_FOUND, field, "this field is missing");
        return fallback;
    }
    if (fields->json->nodes[node].type != VP_JSON_NUMBER
        || vp_json_to_int(fields->json, node, &value) == VP_ERR_FORMAT) {
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be an integer");
        return 0;
    }
    if (vp_json_to_int(fields->json, node, &value) != VP_OK || value < minimum || value > maximum) {
        vp_impl_print(text, sizeof text, "this field must be in %d..%d", (int)minimum, (int)maximum);
        vp_impl_fields_fail(fields, VP_ERR_RANGE, field, text);
        return 0;
    }
    return (int32_t)value;
}

/* Fails if an integer in 1..maximum is present and is not `wanted`; `absent`: as vp_impl_fields_int's fallback. */
static void vp_impl_fields_equal(vp_impl_fields *fields, const char *field, int32_t maximum, int32_t absent,
                                 int32_t wanted, vp_result code, const char *text) {
    if (vp_impl_fields_int(fields, field, 1, maximum, absent) != wanted) vp_impl_fields_fail(fields, code, field, text);
}

/* A number with minimum < value < maximum; the fallback if the field is absent or null. */
static double vp_impl_fields_double(vp_impl_fields *fields, const char *field, double minimum, double maximum,
                                    double fallback) {
    char text[128];
    double value = 0;
    if (fields->result != VP_OK) return 0;
    uint32_t node = vp_impl_fields_get(fields, field, 1);
    if (node == VP_JSON_NONE) return fallback;
    if (fields->json->nodes[node].type != VP_JSON_NUMBER) {
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be a number");
    } else if (vp_json_to_double(fields->json, node, &value) != VP_OK || !(value > minimum && value < maximum)) {
        vp_impl_print(text, sizeof text, "this field must be between %g and %g", minimum, maximum);
        vp_impl_fields_fail(fields, VP_ERR_RANGE, field, text);
    }
    return value;
}

/* An array of integers; its length is 1..capacity. If it is absent, `out` is unchanged and the result is 0. */
static int32_t vp_impl_fields_ints(vp_impl_fields *fields, const char *field, int32_t minimum, int32_t maximum,
                                   int32_t capacity, int32_t *out) {
    char text[128];
    int64_t value = 0;
    if (fields->result != VP_OK) return 0;
    uint32_t node = vp_impl_fields_get(fields, field, 0);
    if (node == VP_JSON_NONE) return 0;
    uint32_t count = fields->json->nodes[node].count;
    vp_impl_print(text, sizeof text, "this field must be a list of 1 to %d integers in %d..%d", (int)capacity,
                  (int)minimum, (int)maximum);
    if (fields->json->nodes[node].type != VP_JSON_ARRAY || count < 1 || count > (uint32_t)capacity) {
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, text);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t item = vp_json_at(fields->json, node, i);
        if (fields->json->nodes[item].type != VP_JSON_NUMBER || vp_json_to_int(fields->json, item, &value) != VP_OK) {
            vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, text);
            return 0;
        }
        if (value < minimum || value > maximum) {
            vp_impl_fields_fail(fields, VP_ERR_RANGE, field, text);
            return 0;
        }
        out[i] = (int32_t)value;
    }
    return (int32_t)count;
}

/* Reads three finite numbers; `out` is unchanged if the field is absent. */
static void vp_impl_fields_rgb(vp_impl_fields *fields, const char *field, float out[3]) {
    double value[3] = {0, 0, 0};
    if (fields->result != VP_OK) return;
    uint32_t node = vp_impl_fields_get(fields, field, 0);
    if (node == VP_JSON_NONE) return;
    if (fields->json->nodes[node].type != VP_JSON_ARRAY || fields->json->nodes[node].count != 3) {
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be a list of 3 numbers");
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t item = vp_json_at(fields->json, node, i);
        if (fields->json->nodes[item].type != VP_JSON_NUMBER) {
            vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be a list of 3 numbers");
            return;
        }
        if (vp_json_to_double(fields->json, item, &value[i]) != VP_OK || !(value[i] > -1e6 && value[i] < 1e6)) {
            vp_impl_fields_fail(fields, VP_ERR_RANGE, field, "each number must be between -1e6 and 1e6");
            return;
        }
    }
    for (uint32_t i = 0; i < 3; i++) out[i] = (float)value[i];
}

/* A setting with only some values implemented. `wanted` and `absent` are JSON, but strings have no quotes; `absent` is
 * the reference's default. */
typedef struct vp_impl_setting { const char *field, *wanted, *other_wanted, *absent; } vp_impl_setting;

static int vp_impl_setting_is(const vp_json *json, uint32_t node, const char *wanted) {
    const vp_json_node *found = &json->nodes[node];
    int64_t value = 0;
    size_t bytes = strlen(wanted);
    if (found->type == VP_JSON_STRING)
        return wanted[0] >= 'a' && strcmp(wanted, "null") && strcmp(wanted, "true") && strcmp(wanted, "false")
               && vp_json_equals(json, node, wanted);
    if (found->type == VP_JSON_NUMBER)
        return bytes == 1 && vp_json_to_int(json, node, &value) == VP_OK && value == wanted[0] - '0';
    return found->bytes == bytes && memcmp(json->text + found->start, wanted, bytes) == 0;
}

static void vp_impl_fields_settings(vp_impl_fields *fields, const vp_impl_setting *settings, size_t count) {
    char text[sizeof fields->error->text], got[64];
    for (size_t i = 0; i < count && fields->result == VP_OK; i++) {
        const vp_impl_setting *setting = &settings[i];
        uint32_t node = vp_impl_fields_get(fields, setting->field, 0);
        if (node != VP_JSON_NONE) {
            const vp_json_node *found = &fields->json->nodes[node];
            if (vp_impl_setting_is(fields->json, node, setting->wanted)
                || vp_impl_setting_is(fields->json, node, setting->other_wanted))
                continue;
            vp_impl_print(got, sizeof got, "%.*s", (int)(found->bytes < 40 ? found->bytes : 40),
                          fields->json->text + found->start);
            vp_impl_print(text, sizeof text, "the value %s is not implemented; vlmprof needs %s", got, setting->wanted);
        } else {
            if (!strcmp(setting->absent, setting->wanted) || !strcmp(setting->absent, setting->other_wanted)) continue;
            vp_impl_print(text, sizeof text, "the field is absent, which means %s; vlmprof needs %s", setting->absent,
                          setting->wanted);
        }
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, setting->field, text);
    }
}

static void vp_impl_molmoe_settings(vp_impl_fields *fields) {
    static const vp_impl_setting settings[] = {
        {"block_type", "moe", "moe", "sequential"},
        {"block_group_size", "1", "1", "1"},
        {"activation_type", "swiglu", "swiglu", "swiglu"},
        {"alibi", "false", "false", "false"},
        {"attention_layer_norm", "true", "true", "false"},
        {"attention_layer_norm_with_affine", "true", "true", "true"},
        {"attn_logit_softcapping", "null", "null", "null"},
        {"bias_for_layer_norm", "false", "null", "null"},
        {"clip_qkv", "null", "null", "null"},
        /* the only mode of the HF processor */
        {"crop_mode", "overlap-and-resize-c2", "overlap-and-resize-c2", "overlap-and-resize-c2"},
        {"final_logit_softcapping", "null", "null", "null"},
        {"fix_image_input_idx", "2", "2", "2"},
        {"image_padding_embed", "pad_and_partial_pad", "pad_and_partial_pad", "null"},
        {"image_pooling_2d", "attention-meanq", "attention-meanq", "attention"},
        {"image_pooling_h", "2", "2", "2"},
        {"image_pooling_w", "2", "2", "2"},
        {"image_projector", "mlp", "mlp", "mlp"},
        {"include_bias", "false", "false", "true"},
        {"layer_norm_type", "rms", "rms", "default"},
        {"layer_norm_with_affine", "true", "true", "true"},
        {"moe_dropless", "true", "null", "true"},
        {"moe_interleave", "false", "null", "false"},
        {"moe_shared_expert", "false", "null", "false"},
        {"multi_query_attention", "null", "false", "null"},
        {"norm_after", "false", "false", "false"},
        {"normalize_input_embeds", "false", "false", "false"},
        {"pad_to", "null", "null", "null"},
        {"qkv_bias", "false", "false", "false"},
        {"quantization_config", "null", "null", "null"},
        {"rope", "true", "true", "false"},
        {"rope_impl", "llama", "llama", "cockatoo"},
        {"rope_scaling", "null", "null", "null"},
        {"scale_logits", "false", "false", "false"},
        {"unconditioned", "false", "false", "false"},
        {"use_cls_feature", "false", "false", "false"},
        {"use_col_tokens", "true", "true", "true"},
        {"weight_tying", "false", "false", "true"},
    };
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
}

static void vp_impl_molmoe_language(vp_impl_fields *fields, vp_model_config *config) {
    config->d_model = vp_impl_fields_int(fields, "d_model", 2, 65536, -1);
    config->head_count = vp_impl_fields_int(fields, "n_heads", 1, 4096, -1);
    config->block_count = vp_impl_fields_int(fields, "n_layers", 1, 1024, -1);
    config->expert_count = vp_impl_fields_int(fields, "moe_num_experts", 1, 1024, -1);
    config->top_k = vp_impl_fields_int(fields, "moe_top_k", 1, 1024, -1);
    config->vocab_size = vp_impl_fields_int(fields, "vocab_size", 1, 1 << 24, -1);
    config->embedding_size =
        vp_impl_fields_int(fields, "embedding_size", 1, 1 << 24, config->vocab_size > 0 ? config->vocab_size : 0);
    config->additional_vocab_size = vp_impl_fields_int(fields, "additional_vocab_size", 0, 1 << 24, 0);
    config->max_sequence_length = vp_impl_fields_int(fields, "max_sequence_length", 1, 1 << 24, 1024);
    config->max_positions =
        vp_impl_fields_int(fields, "max_position_embeddings", 1, 1 << 24, config->max_sequence_length);
    config->rope_theta = vp_impl_fields_double(fields, "rope_theta", 0, 1e30, 10000.0);
    config->norm_eps = (float)vp_impl_fields_double(fields, "layer_norm_eps", 0, 1, 1e-5);
    int32_t ratio = vp_impl_fields_int(fields, "mlp_ratio", 1, 65536, 4);
    int32_t hidden = vp_impl_fields_int(fields, "mlp_hidden_size", 2, 1 << 20, 0);
    if (fields->result != VP_OK) return;
    if (hidden == 0) {
        if ((int64_t)ratio * config->d_model > 1 << 20) {
            vp_impl_fields_fail(fields, VP_ERR_RANGE, "mlp_ratio", "mlp_ratio * d_model is above 1048576");
            return;
        }
        hidden = ratio * config->d_model;
    }
    config->expert_dim = config->projector_dim = hidden / 2; /* the reference's floor division */
    config->head_dim = config->d_model / config->head_count;
    config->kv_head_count = config->head_count;
    config->qk_norm = VP_QK_NORM_WHOLE;
    if (config->d_model % config->head_count)
        vp_impl_fields_fail(fields, VP_ERR_MISMATCH, "d_model", "d_model is not a multiple of n_heads");
    else if (config->head_dim % 2)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "n_heads", "d_model / n_heads is odd; RoPE rotates pairs");
    else if (vp_impl_fields_int(fields, "head_dim", 1, 65536, config->head_dim) != config->head_dim)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "head_dim", "only d_model / n_heads is implemented");
    else if (vp_impl_fields_int(fields, "n_kv_heads", 1, 4096, config->head_count) != config->head_count)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "n_kv_heads",
                            "grouped-query attention is not implemented; n_kv_heads must be null or n_heads");
    else if (config->top_k > config->expert_count)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "moe_top_k", "moe_top_k is above moe_num_experts");
    else if (config->embedding_size < config->vocab_size)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "embedding_size", "embedding_size is below vocab_size");
    else if (vp_impl_fields_get(fields, "additional_vocab_size", 1) == VP_JSON_NONE)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "additional_vocab_size",
                            "models without additional embedding rows are not supported");
    else if (!(config->norm_eps > 0))
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "layer_norm_eps", "the value is 0 in float32");
}

/* the ViT of the Molmo models; `vit_layers` is in the outer object. MolmoE and Molmo-7B have different defaults for
 * absent fields. */
static void vp_impl_molmo_vision(vp_impl_fields *fields, vp_impl_fields *vision, vp_model_config *config) {
    const int moe = config->architecture == VP_ARCHITECTURE_MOLMOE;
    const vp_impl_setting settings[] = {
        {"image_model_type", "openai", "openai", "openai"},
        {"image_mlp_activations", "quick_gelu", "quick_gelu", moe ? "gelu" : "quick_gelu"},
        {"resize_mode", "default", "default", "default"},
    };
    vp_impl_fields_settings(vision, settings, sizeof settings / sizeof settings[0]);
    config->vit_width = vp_impl_fields_int(vision, "image_emb_dim", 1, 65536, 1024);
    config->vit_head_count = vp_impl_fields_int(vision, "image_num_heads", 1, 4096, 16);
    config->vit_head_dim = vp_impl_fields_int(vision, "image_head_dim", 1, 4096, 64);
    config->vit_mlp_dim = vp_impl_fields_int(vision, "image_mlp_dim", 1, 1 << 20, 4096);
    config->vit_block_count = vp_impl_fields_int(vision, "image_num_layers", 1, 1024, moe ? 24 : 23);
    config->vit_positions = vp_impl_fields_int(vision, "image_num_pos", 2, 1 << 20, 577);
    config->vit_norm_eps = (float)vp_impl_fields_double(vision, "image_norm_eps", 0, 1, 1e-5);
    if (vision->result != VP_OK) return;
    if (config->vit_head_count * config->vit_head_dim != config->vit_width)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "image_head_dim",
                            "only image_emb_dim / image_num_heads is implemented");
    else if (vp_impl_fields_int(vision, "image_num_key_value_heads", 1, 4096, config->vit_head_count)
             != config->vit_head_count)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "image_num_key_value_heads",
                            "grouped-query attention is not implemented");
    else if (!(config->vit_norm_eps > 0))
        vp_impl_fields_fail(vision, VP_ERR_RANGE, "image_norm_eps", "the value is 0 in float32");
    if (vision->result != VP_OK) return;
    config->vit_class_token = config->vit_qkv_bias = 1;
    config->vit_gelu = VP_GELU_QUICK;
    config->connector = VP_CONNECTOR_POOLING;
    config->vit_layers[0] = moe ? -1 : -2;
    config->vit_layers[1] = moe ? 0 : -9;
    config->vit_layer_count = moe ? 1 : 2;
    int32_t i = vp_impl_fields_ints(fields, "vit_layers", -config->vit_block_count, config->vit_block_count - 1,
                                    VP_VIT_LAYERS_MAX, config->vit_layers);
    if (i > 0) config->vit_layer_count = i;
    config->vit_blocks_needed = 0;
    for (i = 0; i < config->vit_layer_count; i++) {
        int32_t block =
            config->vit_layers[i] < 0 ? config->vit_layers[i] + config->vit_block_count : config->vit_layers[i];
        if (block < 0) /* only for the default layers: a list in the file was checked above */
            vp_impl_fields_fail(fields, VP_ERR_MISMATCH, "vit_layers",
                                "this field is absent, and the tower has too few blocks for the default layers");
        if (block + 1 > config->vit_blocks_needed) config->vit_blocks_needed = block + 1;
    }
}

/* the side of a square given as [side, side]; 0 if absent */
static int32_t vp_impl_fields_side(vp_impl_fields *fields, const char *field) {
    int32_t side[2] = {0, 0}, count = vp_impl_fields_ints(fields, field, 1, 65536, 2, side);
    if (fields->result == VP_OK && count == 1)
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be a list of 2 integers");
    if (fields->result == VP_OK && count == 2 && side[0] != side[1])
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, field, "only square crops are implemented");
    return side[0];
}

static void vp_impl_fields_margins(vp_impl_fields *fields, vp_geometry *geometry) {
    int32_t margins[2] = {4, 4}, count = vp_impl_fields_ints(fields, "overlap_margins", 0, 65536, 2, margins);
    if (fields->result == VP_OK && count == 1)
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, "overlap_margins", "this field must be a list of 2 integers");
    if (count != 2) return;
    geometry->margin_left_patches = margins[0];
    geometry->margin_right_patches = margins[1];
}

/* the geometry in config.json */
static void vp_impl_config_geometry(vp_impl_fields *fields, vp_impl_fields *vision, vp_geometry *geometry) {
    int32_t side = vp_impl_fields_side(vision, "image_default_input_size");
    *geometry = vp_geometry_default();
    if (side) geometry->crop_px = side;
    geometry->patch_px = vp_impl_fields_int(vision, "image_patch_size", 1, 1024, 14);
    vp_impl_fields_equal(vision, "image_pos_patch_size", 1024, geometry->patch_px, geometry->patch_px,
                         VP_ERR_UNSUPPORTED, "differs from image_patch_size; interpolation is not implemented");
    vp_impl_fields_margins(fields, geometry);
    geometry->max_crops = vp_impl_fields_int(fields, "max_crops", 1, 4096, geometry->max_crops);
}

/* the fields of preprocessor_config.json, with the result so far */
static vp_impl_fields vp_impl_fields_preprocessor(const vp_impl_fields *fields, const vp_json *preprocessor) {
    vp_impl_fields file = *fields;
    file.json = preprocessor;
    file.object = 0;
    file.prefix = "preprocessor_config.json: ";
    if (preprocessor->nodes[0].type != VP_JSON_OBJECT && file.result == VP_OK)
        file.result = vp_error_set(fields->error, VP_ERR_FORMAT, 0, "preprocessor_config.json",
                                   "the text is not a JSON object");
    return file;
}

/* preprocessor_config.json overrides the geometry but must not contradict the ViT */
static void vp_impl_config_preprocessor(vp_impl_fields *fields, vp_geometry *geometry) {
    static const vp_impl_setting settings[] = {
        {"do_normalize", "true", "true", "true"},
        {"image_padding_mask", "true", "true", "true"},
    };
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    int32_t side = vp_impl_fields_side(fields, "base_image_input_size");
    if (fields->result == VP_OK && side && side != geometry->crop_px)
        vp_impl_fields_fail(fields, VP_ERR_MISMATCH, "base_image_input_size",
                            "differs from vision_backbone.image_default_input_size in config.json");
    vp_impl_fields_equal(fields, "image_patch_size", 1024, geometry->patch_px, geometry->patch_px, VP_ERR_MISMATCH,
                         "differs from vision_backbone.image_patch_size in config.json");
    vp_impl_fields_margins(fields, geometry);
    geometry->max_crops = vp_impl_fields_int(fields, "max_crops", 1, 4096, geometry->max_crops);
    vp_impl_fields_rgb(fields, "image_mean", geometry->mean);
    vp_impl_fields_rgb(fields, "image_std", geometry->std);
    const int32_t tokens = geometry->crop_px / geometry->patch_px / geometry->pool;
    vp_impl_fields_equal(fields, "image_token_length_h", 65536, tokens, tokens, VP_ERR_MISMATCH,
                         "is not crop side / patch side / 2");
    vp_impl_fields_equal(fields, "image_token_length_w", 65536, tokens, tokens, VP_ERR_MISMATCH,
                         "is not crop side / patch side / 2");
}

/* the tower of the Molmo models, and the settings for cutting their images */
static vp_result vp_impl_molmo_pictures(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    vp_impl_fields vision = *fields;
    vision.prefix = "vision_backbone.";
    vision.object = vp_impl_fields_get(fields, "vision_backbone", 1);
    if (vision.object != VP_JSON_NONE && fields->json->nodes[vision.object].type != VP_JSON_OBJECT)
        return vp_error_set(fields->error, VP_ERR_FORMAT, -1, "vision_backbone", "this field must be an object");
    vp_impl_molmo_vision(fields, &vision, config);
    if (vision.result != VP_OK || fields->result != VP_OK)
        return vision.result != VP_OK ? vision.result : fields->result;
    vp_impl_config_geometry(fields, &vision, &config->geometry);
    if (vision.result != VP_OK || fields->result != VP_OK)
        return vision.result != VP_OK ? vision.result : fields->result;
    if (preprocessor) {
        vp_impl_fields processor = vp_impl_fields_preprocessor(fields, preprocessor);
        vp_impl_config_preprocessor(&processor, &config->geometry);
        if (processor.result != VP_OK) return processor.result;
    }
    if (vp_geometry_check(&config->geometry) != VP_OK)
        return vp_error_set(fields->error, VP_ERR_RANGE, -1, "geometry",
                            "crop side, patch side, overlap_margins, max_crops, mean and std are inconsistent");
    int64_t side = config->geometry.crop_px / config->geometry.patch_px;
    if (config->vit_positions != side * side + 1)
        return vp_error_set(fields->error, VP_ERR_MISMATCH, -1, "vision_backbone.image_num_pos",
                            "is not 1 + (image size / patch size)^2");
    return VP_OK;
}

static vp_result vp_impl_config_molmoe(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    vp_impl_molmoe_settings(fields);
    vp_impl_molmoe_language(fields, config);
    if (fields->result != VP_OK) return fields->result;
    if (vp_impl_fields_get(fields, "vision_backbone", 1) == VP_JSON_NONE)
        return vp_error_set(fields->error, VP_ERR_UNSUPPORTED, -1, "vision_backbone",
                            "models without a vision backbone are not supported");
    return vp_impl_molmo_pictures(fields, preprocessor, config);
}

/* ---- configs in transformers' format */
static int vp_impl_fields_flag(vp_impl_fields *fields, const char *field, int absent) {
    uint32_t node = fields->result == VP_OK ? vp_impl_fields_get(fields, field, 1) : VP_JSON_NONE;
    if (node == VP_JSON_NONE) return absent;
    if (fields->json->nodes[node].type == VP_JSON_TRUE) return 1;
    if (fields->json->nodes[node].type != VP_JSON_FALSE)
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be true or false");
    return 0;
}
/* an inner object; if it is absent or null, it has no fields, unless it is required */
static vp_impl_fields vp_impl_fields_inner(vp_impl_fields *fields, const char *field, const char *prefix,
                                           int required) {
    vp_impl_fields inner = *fields;
    inner.prefix = prefix;
    inner.object = fields->result == VP_OK ? vp_impl_fields_get(fields, field, 1) : VP_JSON_NONE;
    if (inner.object != VP_JSON_NONE && fields->json->nodes[inner.object].type != VP_JSON_OBJECT) {
        vp_impl_fields_fail(fields, VP_ERR_FORMAT, field, "this field must be an object");
        inner.result = fields->result;
    }
    if (inner.object == VP_JSON_NONE && required) {
        vp_impl_fields_fail(fields, VP_ERR_NOT_FOUND, field, "this field is missing");
        inner.result = fields->result;
    }
    return inner;
}
/* Returns 1 if the field is this text, 0 if it is absent or differs. */
static int vp_impl_fields_is(const vp_impl_fields *fields, const char *field, const char *text) {
    uint32_t node = vp_impl_fields_get(fields, field, 1);
    return node != VP_JSON_NONE && fields->json->nodes[node].type == VP_JSON_STRING
           && vp_json_equals(fields->json, node, text);
}
/* a side, given as a number or as [side, side] */
static int32_t vp_impl_fields_square(vp_impl_fields *fields, const char *field, int32_t absent) {
    uint32_t node = fields->result == VP_OK ? vp_impl_fields_get(fields, field, 1) : VP_JSON_NONE;
    if (node != VP_JSON_NONE && fields->json->nodes[node].type == VP_JSON_ARRAY)
        return vp_impl_fields_side(fields, field);
    return vp_impl_fields_int(fields, field, 1, 65536, absent);
}

static void vp_impl_config_yarn(vp_impl_fields *rope, vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"truncate", "true", "null", "true"},
                                               {"mscale", "null", "null", "null"},
                                               {"mscale_all_dim", "null", "null", "null"}};
    const double factor = config->rope.factor;
    vp_impl_fields_settings(rope, settings, sizeof settings / sizeof settings[0]);
    config->rope.low_frequency = vp_impl_fields_double(rope, "beta_slow", 0, 1e9, 1.0);
    config->rope.high_frequency = vp_impl_fields_double(rope, "beta_fast", 0, 1e9, 32.0);
    config->rope.original_positions =
        vp_impl_fields_double(rope, "original_max_position_embeddings", 0, 1e9, config->max_positions);
    config->rope.magnitude =
        vp_impl_fields_double(rope, "attention_factor", 0, 1e9, factor > 1 ? 0.1 * log(factor) + 1.0 : 1.0);
    if (rope->result == VP_OK && !(config->rope.high_frequency > config->rope.low_frequency))
        vp_impl_fields_fail(rope, VP_ERR_RANGE, "beta_fast", "must be above beta_slow");
    if (rope->result == VP_OK && !(config->rope_theta > 1))
        vp_impl_fields_fail(rope, VP_ERR_RANGE, "rope_theta", "must be above 1 if yarn scales the frequencies");
}

static void vp_impl_config_rope_of(vp_impl_fields *fields, vp_impl_fields *rope, vp_model_config *config) {
    static const char *const types[] = {"default", "linear", "llama3", "yarn", "dynamic", "mrope"};
    const char *field = "rope_type";
    int type = 0;
    config->rope_theta = vp_impl_fields_double(rope, "rope_theta", 0, 1e30, config->rope_theta);
    if (fields->result != VP_OK || rope->object == VP_JSON_NONE) return;
    if (vp_impl_fields_get(rope, field, 1) == VP_JSON_NONE) field = "type";
    uint32_t node = vp_impl_fields_get(rope, field, 1);
    while (node != VP_JSON_NONE && type < 6 && !vp_impl_fields_is(rope, field, types[type])) type++;
    if (type == 6)
        vp_impl_fields_fail(rope, VP_ERR_UNSUPPORTED, field, "expected default, linear, llama3, yarn or dynamic");
    if (vp_impl_fields_double(rope, "partial_rotary_factor", 0, 1e9, 1.0) != 1.0)
        vp_impl_fields_fail(rope, VP_ERR_UNSUPPORTED, "partial_rotary_factor", "only 1 (whole heads) is implemented");
    /* mrope is plain; dynamic is plain up to the training length, which limits max_positions */
    if (type >= 1 && type <= 3) {
        config->rope.scaling = type == 1 ? VP_ROPE_LINEAR : type == 2 ? VP_ROPE_LLAMA3 : VP_ROPE_YARN;
        config->rope.factor = vp_impl_fields_double(rope, "factor", 0, 1e9, 1.0);
    }
    if (type == 2) {
        config->rope.low_frequency = vp_impl_fields_double(rope, "low_freq_factor", 0, 1e9, 1.0);
        config->rope.high_frequency = vp_impl_fields_double(rope, "high_freq_factor", 0, 1e9, 4.0);
        config->rope.original_positions =
            vp_impl_fields_double(rope, "original_max_position_embeddings", 0, 1e9, 8192.0);
        if (rope->result == VP_OK && !(config->rope.high_frequency > config->rope.low_frequency))
            vp_impl_fields_fail(rope, VP_ERR_RANGE, "high_freq_factor", "must be above low_freq_factor");
    }
    if (type == 3) vp_impl_config_yarn(rope, config);
    if (rope->result != VP_OK && fields->result == VP_OK) fields->result = rope->result;
}
/* RoPE: rope_parameters (transformers 5), or rope_theta and rope_scaling */
static void vp_impl_config_rope(vp_impl_fields *fields, double theta, vp_model_config *config) {
    vp_impl_fields rope = vp_impl_fields_inner(fields, "rope_parameters", "rope_parameters.", 0), full, local;
    config->rope_theta = vp_impl_fields_double(fields, "rope_theta", 0, 1e30, theta);
    if (config->rope_local_theta > 0) { /* blocks of two kinds: the default was set before */
        full = vp_impl_fields_inner(&rope, "full_attention", "rope_parameters.full_attention.", 0);
        local = vp_impl_fields_inner(&rope, "sliding_attention", "rope_parameters.sliding_attention.", 0);
        if (rope.object == VP_JSON_NONE) full = vp_impl_fields_inner(fields, "rope_scaling", "rope_scaling.", 0);
        config->rope_local_theta =
            vp_impl_fields_double(fields, "rope_local_base_freq", 0, 1e30, config->rope_local_theta);
        config->rope_local_theta = vp_impl_fields_double(&local, "rope_theta", 0, 1e30, config->rope_local_theta);
        if (local.object != VP_JSON_NONE && vp_impl_fields_get(&local, "rope_type", 1) != VP_JSON_NONE
            && !vp_impl_fields_is(&local, "rope_type", "default"))
            vp_impl_fields_fail(&local, VP_ERR_UNSUPPORTED, "rope_type", "only default is implemented here");
        if (local.result != VP_OK && fields->result == VP_OK) fields->result = local.result;
        vp_impl_config_rope_of(fields, &full, config);
        return;
    }
    if (rope.object == VP_JSON_NONE) rope = vp_impl_fields_inner(fields, "rope_scaling", "rope_scaling.", 0);
    vp_impl_config_rope_of(fields, &rope, config);
}

/* A language model of the Llama kind, with its class's defaults, which published configs omit. kv_heads 0: as many as
 * heads; head_dim 0: hidden_size / heads. */
typedef struct vp_impl_language {
    const char *model_type;
    int32_t vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, max_positions, qkv_bias;
    double eps;
    vp_qk_norm qk_norm;
    double rope_theta;
} vp_impl_language;
static const vp_impl_language vp_impl_languages[] = {
    {"llama", 32000, 4096, 11008, 32, 32, 0, 0, 2048, 0, 1e-6, VP_QK_NORM_NONE, 1e4},
    {"qwen2", 151936, 4096, 22016, 32, 32, 32, 0, 32768, 1, 1e-6, VP_QK_NORM_NONE, 1e4},
    {"qwen3", 151936, 4096, 22016, 32, 32, 32, 128, 32768, 0, 1e-6, VP_QK_NORM_HEAD, 1e4},
    {"olmoe", 50304, 2048, 2048, 16, 16, 0, 0, 4096, 0, 1e-5, VP_QK_NORM_WHOLE, 1e4},
};

static void vp_impl_language_heads(vp_impl_fields *fields, const vp_impl_language *kind, vp_model_config *config) {
    config->head_count = vp_impl_fields_int(fields, "num_attention_heads", 1, 4096, kind->heads);
    config->kv_head_count = vp_impl_fields_int(fields, "num_key_value_heads", 1, 4096,
                                               kind->kv_heads ? kind->kv_heads : config->head_count);
    if (fields->result != VP_OK) return;
    config->head_dim = vp_impl_fields_int(fields, "head_dim", 1, 65536,
                                          kind->head_dim ? kind->head_dim : config->d_model / config->head_count);
    if (fields->result != VP_OK) return;
    if (config->head_count % config->kv_head_count)
        vp_impl_fields_fail(fields, VP_ERR_MISMATCH, "num_key_value_heads", "does not divide num_attention_heads");
    else if (!config->head_dim)
        vp_impl_fields_fail(fields, VP_ERR_MISMATCH, "num_attention_heads", "is above hidden_size; head_dim is absent");
    else if (config->head_dim % 2)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "head_dim", "is odd; RoPE rotates pairs");
}
/* if there is a list of block types, all must be full_attention */
static void vp_impl_config_all_full(vp_impl_fields *fields) {
    uint32_t types = fields->result == VP_OK ? vp_impl_fields_get(fields, "layer_types", 1) : VP_JSON_NONE, item;
    if (types == VP_JSON_NONE || fields->json->nodes[types].type != VP_JSON_ARRAY) return;
    for (item = types + 1; item < fields->json->nodes[types].end; item = fields->json->nodes[item].end)
        if (fields->json->nodes[item].type != VP_JSON_STRING || !vp_json_equals(fields->json, item, "full_attention"))
            vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "layer_types", "only full_attention is implemented");
}
static void vp_impl_config_llama(vp_impl_fields *fields, const vp_impl_language *kind, vp_model_config *config) {
    static const vp_impl_setting settings[] = {
        {"hidden_act", "silu", "silu", "silu"},          {"attention_bias", "false", "false", "false"},
        {"mlp_bias", "false", "false", "false"},         {"use_sliding_window", "false", "null", "false"},
        {"quantization_config", "null", "null", "null"},
    };
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    if (config->rope_local_theta <= 0) vp_impl_config_all_full(fields);
    config->d_model = vp_impl_fields_int(fields, "hidden_size", 2, 65536, kind->hidden_size);
    config->block_count = vp_impl_fields_int(fields, "num_hidden_layers", 1, 1024, kind->layers);
    config->vocab_size = vp_impl_fields_int(fields, "vocab_size", 1, 1 << 24, kind->vocab_size);
    config->max_positions = vp_impl_fields_int(fields, "max_position_embeddings", 1, 1 << 24, kind->max_positions);
    config->mlp_dim = vp_impl_fields_int(fields, "intermediate_size", 1, 1 << 20, kind->intermediate_size);
    config->norm_eps = (float)vp_impl_fields_double(fields, "rms_norm_eps", 0, 1, kind->eps);
    config->tied_head = vp_impl_fields_flag(fields, "tie_word_embeddings", config->tied_head);
    config->embedding_size = config->vocab_size;
    config->max_sequence_length = config->max_positions;
    config->qkv_bias = kind->qkv_bias;
    config->qk_norm = kind->qk_norm;
    vp_impl_language_heads(fields, kind, config);
    vp_impl_config_rope(fields, kind->rope_theta, config);
    if (fields->result == VP_OK && !(config->norm_eps > 0))
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "rms_norm_eps", "the value is 0 in float32");
}
/* text_config, for one of the first `kinds` of vp_impl_languages; without a model_type, for the first. InternVL's
 * original form calls it llm_config, where the language model alone sets tie_word_embeddings. In transformers 5.24 the
 * outer value decides, and LLaVA's and Qwen2.5-VL's head is tied if either is true. InternVL's outer default is true,
 * but published folders say false inside and have a head. */
static void vp_impl_config_language(vp_impl_fields *fields, size_t kinds, vp_model_config *config) {
    const int is_chat = config->architecture == VP_ARCHITECTURE_INTERNVL_CHAT;
    const int is_hf = config->architecture == VP_ARCHITECTURE_INTERNVL,
              is_llava = config->architecture == VP_ARCHITECTURE_LLAVA;
    const int tied = vp_impl_fields_flag(fields, "tie_word_embeddings", -1);
    size_t kind = 0;
    config->tied_head = is_hf;
    vp_impl_fields text = is_chat ? vp_impl_fields_inner(fields, "llm_config", "llm_config.", 1)
                                  : vp_impl_fields_inner(fields, "text_config", "text_config.", 1);
    if (fields->result != VP_OK) return;
    if (vp_impl_fields_get(&text, "model_type", 1) != VP_JSON_NONE)
        while (kind < kinds && !vp_impl_fields_is(&text, "model_type", vp_impl_languages[kind].model_type)) kind++;
    if (kind == kinds)
        vp_impl_fields_fail(&text, VP_ERR_UNSUPPORTED, "model_type",
                            kinds > 1 ? "expected llama, qwen2 or qwen3" : "expected llama");
    else vp_impl_config_llama(&text, &vp_impl_languages[kind], config);
    if (!is_chat) config->tied_head = tied == 1 || (config->tied_head && (is_llava || (is_hf && tied < 0)));
    fields->result = text.result;
}

/* A tower in transformers' format, with the defaults of its class. */
typedef struct vp_impl_tower {
    int32_t hidden_size, intermediate_size, layers, heads, image_size, patch_size, class_token;
    const char *act;
    vp_gelu gelu;
    double eps;
} vp_impl_tower;
static void vp_impl_config_tower(vp_impl_fields *vision, const vp_impl_tower *kind, int32_t pool,
                                 vp_model_config *config) {
    const vp_impl_setting settings[] = {{"hidden_act", kind->act, kind->act, kind->act},
                                        {"num_channels", "3", "3", "3"}};
    vp_geometry *geometry = &config->geometry;
    vp_impl_fields_settings(vision, settings, sizeof settings / sizeof settings[0]);
    config->vit_width = vp_impl_fields_int(vision, "hidden_size", 1, 65536, kind->hidden_size);
    config->vit_mlp_dim = vp_impl_fields_int(vision, "intermediate_size", 1, 1 << 20, kind->intermediate_size);
    config->vit_block_count = vp_impl_fields_int(vision, "num_hidden_layers", 1, 1024, kind->layers);
    config->vit_head_count = vp_impl_fields_int(vision, "num_attention_heads", 1, 4096, kind->heads);
    config->vit_norm_eps = (float)vp_impl_fields_double(vision, "layer_norm_eps", 0, 1, kind->eps);
    config->vit_class_token = kind->class_token;
    config->vit_gelu = kind->gelu;
    config->vit_qkv_bias = 1;
    *geometry = vp_geometry_default();
    geometry->crop_px = vp_impl_fields_square(vision, "image_size", kind->image_size);
    geometry->patch_px = vp_impl_fields_square(vision, "patch_size", kind->patch_size);
    geometry->pool = pool;
    geometry->margin_left_patches = geometry->margin_right_patches = 0;
    if (vision->result != VP_OK) return;
    if (config->vit_width % config->vit_head_count) {
        vp_impl_fields_fail(vision, VP_ERR_MISMATCH, "hidden_size", "is not a multiple of num_attention_heads");
        return;
    }
    if (!(config->vit_norm_eps > 0)) {
        vp_impl_fields_fail(vision, VP_ERR_RANGE, "layer_norm_eps", "the value is 0 in float32");
        return;
    }
    /* SigLIP's convolution ignores the remainder: 384 pixels are 27 patches of 14 */
    if (!kind->class_token) geometry->crop_px -= geometry->crop_px % geometry->patch_px;
    if (geometry->crop_px < 1 || geometry->crop_px % geometry->patch_px
        || geometry->crop_px / geometry->patch_px % pool) {
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "image_size",
                            "is not a multiple of the patch size, or the patches do not fill whole windows");
        return;
    }
    int32_t side = geometry->crop_px / geometry->patch_px;
    config->vit_head_dim = config->vit_width / config->vit_head_count;
    config->vit_positions = side * side + kind->class_token;
    config->vit_layers[0] = -1;
    config->vit_layer_count = 1;
    config->vit_blocks_needed = config->vit_block_count;
    config->image_replaces = 1;
}
/* mean and std of the processor; the processor itself handles tiles and sizes */
static void vp_impl_config_colours(vp_impl_fields *fields, const vp_json *preprocessor, vp_geometry *geometry) {
    if (!preprocessor || fields->result != VP_OK) return;
    vp_impl_fields processor = vp_impl_fields_preprocessor(fields, preprocessor);
    vp_impl_fields_rgb(&processor, "image_mean", geometry->mean);
    vp_impl_fields_rgb(&processor, "image_std", geometry->std);
    fields->result = processor.result;
    if (fields->result == VP_OK && vp_geometry_check(geometry) != VP_OK)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "geometry", "crop side, patch side, mean and std are inconsistent");
}

/* the block output that the connector gets, counted as in transformers' hidden_states: 0 is before block 0 */
static void vp_impl_config_feature_layer(vp_impl_fields *fields, int32_t absent, vp_model_config *config) {
    const char *field = config->architecture == VP_ARCHITECTURE_INTERNVL_CHAT ? "select_layer" : "vision_feature_layer";
    int32_t blocks = config->vit_block_count, layer = vp_impl_fields_int(fields, field, -blocks, blocks, 0);
    if (fields->result != VP_OK) return;
    if (vp_impl_fields_get(fields, field, 1) == VP_JSON_NONE) layer = absent;
    if (layer == 0) vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, field, "0 (no block) is not implemented");
    if (layer < -blocks)
        vp_impl_fields_fail(fields, VP_ERR_MISMATCH, field,
                            "this field is absent, and the tower has too few blocks for the default layer");
    config->vit_layers[0] = layer < 0 ? layer : layer - 1;
    config->vit_blocks_needed = layer < 0 ? blocks + layer + 1 : layer;
}

/* The experts that replace the MLP of a block, with the class's defaults. */
static void vp_impl_config_experts(vp_impl_fields *fields, int32_t count, int32_t top_k, vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"decoder_sparse_step", "1", "1", "1"},
                                               {"mlp_only_layers", "[]", "null", "[]"}};
    const char *field = "num_experts";
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    if (vp_impl_fields_get(fields, field, 1) == VP_JSON_NONE) field = "num_local_experts";
    config->mlp_dim = 0;
    config->expert_count = vp_impl_fields_int(fields, field, 1, 1024, count);
    config->top_k = vp_impl_fields_int(fields, "num_experts_per_tok", 1, 1024, top_k);
    if (config->top_k > config->expert_count)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "num_experts_per_tok", "is above the number of experts");
}
static vp_result vp_impl_config_qwen3_moe(vp_impl_fields *fields, vp_model_config *config) {
    static const vp_impl_language kind = {"qwen3_moe", 151936,          2048, 6144, 24, 32, 4, 0, 32768, 0,
                                          1e-6,        VP_QK_NORM_HEAD, 1e4};
    config->geometry = vp_geometry_default();
    vp_impl_config_llama(fields, &kind, config);
    config->expert_dim = vp_impl_fields_int(fields, "moe_intermediate_size", 1, 1 << 20, 768);
    vp_impl_config_experts(fields, 128, 8, config);
    config->norm_topk = vp_impl_fields_flag(fields, "norm_topk_prob", 0);
    return fields->result;
}
static vp_result vp_impl_config_olmoe(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    (void)preprocessor;
    config->geometry = vp_geometry_default();
    vp_impl_config_llama(fields, &vp_impl_languages[3], config);
    config->expert_dim = config->mlp_dim;
    vp_impl_config_experts(fields, 64, 8, config);
    config->norm_topk = vp_impl_fields_flag(fields, "norm_topk_prob", 0);
    config->clip_qkv = (float)vp_impl_fields_double(fields, "clip_qkv", 0, 1e30, 0.0);
    return fields->result;
}

static vp_result vp_impl_config_molmo(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_setting settings[] = {
        {"clip_qkv", "null", "null", "null"},
        {"layer_norm_type", "rms", "rms", "rms"},
        {"quantization_config", "null", "null", "null"},
        {"tie_word_embeddings", "false", "false", "false"},
        {"weight_tying", "false", "false", "false"},
    };
    static const vp_impl_language kind = {"molmo", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, VP_QK_NORM_NONE, 1e4};
    (void)preprocessor; /* the published processor ignores its file */
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    config->d_model = vp_impl_fields_int(fields, "hidden_size", 2, 65536, -1);
    config->block_count = vp_impl_fields_int(fields, "num_hidden_layers", 1, 1024, -1);
    vp_impl_fields_int(fields, "num_attention_heads", 1, 4096, -1);
    config->vocab_size = vp_impl_fields_int(fields, "vocab_size", 1, 1 << 24, -1);
    config->embedding_size =
        vp_impl_fields_int(fields, "embedding_size", 1, 1 << 24, config->vocab_size > 0 ? config->vocab_size : 0);
    config->additional_vocab_size = vp_impl_fields_int(fields, "additional_vocab_size", 1, 1 << 24, 128);
    config->max_positions = vp_impl_fields_int(fields, "max_position_embeddings", 1, 1 << 24, -1);
    config->max_sequence_length = config->max_positions;
    config->mlp_dim = vp_impl_fields_int(fields, "intermediate_size", 2, 1 << 20, -1) / 2;
    config->norm_eps = (float)vp_impl_fields_double(fields, "layer_norm_eps", 0, 1, 1e-5);
    config->qk_norm = vp_impl_fields_flag(fields, "attention_layer_norm", 0) ? VP_QK_NORM_WHOLE : VP_QK_NORM_NONE;
    config->qkv_bias = vp_impl_fields_flag(fields, "qkv_bias", 0);
    config->norm_after = vp_impl_fields_flag(fields, "norm_after", 0);
    vp_impl_language_heads(fields, &kind, config);
    vp_impl_config_rope(fields, kind.rope_theta, config);
    if (fields->result == VP_OK && !(config->norm_eps > 0))
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "layer_norm_eps", "the value is 0 in float32");
    if (fields->result == VP_OK && config->embedding_size < config->vocab_size)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "embedding_size", "embedding_size is below vocab_size");
    if (fields->result != VP_OK) return fields->result;
    config->projector_dim = config->mlp_dim;
    return vp_impl_molmo_pictures(fields, NULL, config);
}

static vp_result vp_impl_config_llava(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_tower clip = {768, 3072, 12, 12, 224, 32, 1, "quick_gelu", VP_GELU_QUICK, 1e-5};
    static const vp_impl_setting settings[] = {
        {"projector_hidden_act", "gelu", "gelu", "gelu"},
        {"multimodal_projector_bias", "true", "true", "true"},
        {"vision_feature_select_strategy", "default", "default", "default"},
        {"quantization_config", "null", "null", "null"},
    };
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    vp_impl_config_language(fields, 3, config);
    vp_impl_fields vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_config_tower(&vision, &clip, 1, config);
    fields->result = vision.result;
    vp_impl_config_feature_layer(fields, -2, config);
    config->connector = VP_CONNECTOR_MLP;
    config->projector_dim = config->d_model;
    config->geometry.max_crops = 1;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}

/* Idefics3 and SmolVLM, which are two classes in transformers */
static vp_result vp_impl_config_idefics3(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_tower siglip = {1152, 3072, 12, 16, 224, 32, 0, "gelu_pytorch_tanh", VP_GELU_TANH, 1e-6};
    static const vp_impl_setting settings[] = {{"quantization_config", "null", "null", "null"}};
    int32_t pool = vp_impl_fields_int(fields, "scale_factor", 1, 64, 2);
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    vp_impl_config_language(fields, 1, config);
    vp_impl_fields vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_config_tower(&vision, &siglip, pool, config);
    fields->result = vision.result;
    config->connector = VP_CONNECTOR_LINEAR;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}

/* settings of the two forms of InternVL. The original's tower defaults to that of InternViT-6B. The processor handles
 * the original's dynamic tiles and prompt template. */
static void vp_impl_internvl_settings(vp_impl_fields *fields, vp_impl_fields *vision, int is_chat) {
    static const vp_impl_setting settings[] = {
        {"projector_hidden_act", "gelu", "gelu", "gelu"},
        {"vision_feature_select_strategy", "default", "default", "default"},
        {"quantization_config", "null", "null", "null"},
    };
    static const vp_impl_setting chat_settings[] = {
        {"ps_version", "v2", "v2", "v1"},
        {"use_backbone_lora", "0", "0", "0"},
        {"use_llm_lora", "0", "0", "0"},
        {"pad2square", "false", "false", "false"},
        {"quantization_config", "null", "null", "null"},
    };
    static const vp_impl_setting chat_vision_settings[] = {
        {"norm_type", "layer_norm", "rms_norm", "rms_norm"},
        {"use_moe", "false", "null", "false"},
    };
    static const vp_impl_setting vision_settings[] = {
        {"norm_type", "layer_norm", "rms_norm", "layer_norm"},
        {"use_absolute_position_embeddings", "true", "true", "true"},
        {"use_mask_token", "false", "false", "false"},
        {"use_mean_pooling", "true", "true", "true"},
    };
    if (is_chat) vp_impl_fields_settings(fields, chat_settings, sizeof chat_settings / sizeof chat_settings[0]);
    else vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    if (is_chat)
        vp_impl_fields_settings(vision, chat_vision_settings,
                                sizeof chat_vision_settings / sizeof chat_vision_settings[0]);
    else vp_impl_fields_settings(vision, vision_settings, sizeof vision_settings / sizeof vision_settings[0]);
}
static vp_result vp_impl_config_internvl(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_tower intern = {1024, 4096, 24, 16, 448, 14, 1, "gelu", VP_GELU_ERF, 1e-6},
                               intern_6b = {3200, 12800, 48, 25, 224, 14, 1, "gelu", VP_GELU_ERF, 1e-6};
    const int is_chat = config->architecture == VP_ARCHITECTURE_INTERNVL_CHAT;
    double ratio = vp_impl_fields_double(fields, "downsample_ratio", 0, 1.5, 0.5);
    int32_t pool = ratio > 1.0 / 128 ? (int32_t)(1.0 / ratio + 0.5) : 0;
    if (fields->result == VP_OK && (pool < 1 || pool > 64 || ratio * pool != 1.0))
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "downsample_ratio", "is not 1 / N for an integer N up to 64");
    vp_impl_fields vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    vp_impl_internvl_settings(fields, &vision, is_chat);
    vp_impl_config_language(fields, 3, config);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_config_tower(&vision, is_chat ? &intern_6b : &intern, pool, config);
    config->vit_qkv_bias = vp_impl_fields_flag(&vision, is_chat ? "qkv_bias" : "attention_bias", 0);
    config->vit_qk_norm = vp_impl_fields_flag(&vision, is_chat ? "qk_normalization" : "use_qk_norm", is_chat);
    config->vit_rms = is_chat ? !vp_impl_fields_is(&vision, "norm_type", "layer_norm")
                              : vp_impl_fields_is(&vision, "norm_type", "rms_norm");
    if (vision.result == VP_OK && is_chat && config->vit_qkv_bias && config->vit_qk_norm)
        vp_impl_fields_fail(&vision, VP_ERR_UNSUPPORTED, "qkv_bias", "cannot be combined with qk_normalization");
    fields->result = vision.result;
    if (is_chat)
        vp_impl_fields_equal(fields, "force_image_size", 65536, config->geometry.crop_px, config->geometry.crop_px,
                             VP_ERR_UNSUPPORTED,
                             "differs from the tower's image_size; stretching positions is not implemented");
    vp_impl_config_feature_layer(fields, -1, config);
    config->connector = VP_CONNECTOR_NORM_MLP;
    config->projector_dim = config->d_model;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}

/* ---- Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE */
/* like vp_impl_languages */
static const vp_impl_language vp_impl_qwen_languages[3] = {
    {"qwen2_5_vl_text", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1, 1e-5, VP_QK_NORM_NONE, 1e6},
    {"qwen3_vl_text", 151936, 4096, 22016, 32, 32, 32, 128, 128000, 0, 1e-6, VP_QK_NORM_HEAD, 5e5},
    {"qwen3_vl_moe_text", 151936, 2048, 5632, 24, 16, 16, 0, 128000, 0, 1e-6, VP_QK_NORM_HEAD, 5e5},
};

/* the pairs of a head that rotate by time, row and column */
static void vp_impl_qwen_sections(vp_impl_fields *text, vp_model_config *config) {
    vp_impl_fields rope = vp_impl_fields_inner(text, "rope_parameters", "rope_parameters.", 0);
    int32_t *sections = config->rope.sections, count, interleaved = config->architecture != VP_ARCHITECTURE_QWEN2_5_VL;
    if (rope.object == VP_JSON_NONE) rope = vp_impl_fields_inner(text, "rope_scaling", "rope_scaling.", 0);
    if (text->result != VP_OK) return;
    config->rope.interleaved = interleaved;
    sections[0] = interleaved ? 24 : 16;
    sections[1] = sections[2] = interleaved ? 20 : 24;
    if (rope.object != VP_JSON_NONE) {
        count = vp_impl_fields_ints(&rope, "mrope_section", 0, 65536, 3, sections);
        if (rope.result == VP_OK && count && count != 3)
            vp_impl_fields_fail(&rope, VP_ERR_FORMAT, "mrope_section", "this field must be a list of 3 integers");
        if (vp_impl_fields_flag(&rope, "mrope_interleaved", interleaved) != interleaved)
            vp_impl_fields_fail(&rope, VP_ERR_UNSUPPORTED, "mrope_interleaved",
                                interleaved ? "this model's is true" : "this model's is false");
    }
    if (rope.result == VP_OK && config->rope.scaling != VP_ROPE_PLAIN)
        vp_impl_fields_fail(&rope, VP_ERR_UNSUPPORTED, "rope_type", "only plain frequencies are implemented here");
    if (rope.result == VP_OK && sections[0] + sections[1] + sections[2] != config->head_dim / 2)
        vp_impl_fields_fail(&rope, VP_ERR_MISMATCH, "mrope_section", "does not sum to half of head_dim");
    text->result = rope.result;
}

static void vp_impl_qwen_language(vp_impl_fields *fields, vp_model_config *config) {
    const int moe = config->architecture == VP_ARCHITECTURE_QWEN3_VL_MOE;
    const vp_impl_language *kind = &vp_impl_qwen_languages[config->architecture - VP_ARCHITECTURE_QWEN2_5_VL];
    int tied = vp_impl_fields_flag(fields, "tie_word_embeddings", 0);
    vp_impl_fields text = vp_impl_fields_inner(fields, "text_config", "text_config.", kind != vp_impl_qwen_languages);
    if (fields->result != VP_OK) return;
    if (text.object == VP_JSON_NONE) text = *fields; /* published configs of Qwen2.5-VL */
    else if (vp_impl_fields_get(&text, "model_type", 1) != VP_JSON_NONE
             && !vp_impl_fields_is(&text, "model_type", kind->model_type))
        vp_impl_fields_fail(&text, VP_ERR_UNSUPPORTED, "model_type", "is not this model's language model");
    vp_impl_config_llama(&text, kind, config);
    config->tied_head = tied || (kind == vp_impl_qwen_languages && config->tied_head); /* Qwen2.5-VL: as LLaVA */
    vp_impl_qwen_sections(&text, config);
    if (moe) {
        config->norm_topk = 1;
        config->expert_dim = vp_impl_fields_int(&text, "moe_intermediate_size", 1, 1 << 20, 1408);
        vp_impl_config_experts(&text, 60, 4, config);
    }
    fields->result = text.result;
}

/* reads block indices, 0..limit - 1; they are unchanged if the list is absent, and none if it is empty */
static int32_t vp_impl_qwen_blocks(vp_impl_fields *vision, const char *field, int32_t limit, int32_t most,
                                   int32_t absent, int32_t *blocks) {
    uint32_t node = vision->result == VP_OK ? vp_impl_fields_get(vision, field, 1) : VP_JSON_NONE;
    if (node == VP_JSON_NONE) return absent;
    if (vision->json->nodes[node].type == VP_JSON_ARRAY && !vision->json->nodes[node].count) return 0;
    return vp_impl_fields_ints(vision, field, 0, limit - 1, most, blocks);
}

/* reads the blocks that attend to the whole image; the others attend to squares of window_size pixels */
static void vp_impl_qwen_windows(vp_impl_fields *vision, vp_model_config *config) {
    int32_t blocks[64] = {7, 15, 23, 31}, count, i, unit = config->geometry.crop_px,
            side = vp_impl_fields_int(vision, "window_size", 1, 65536, 112);
    count = vp_impl_qwen_blocks(vision, "fullatt_block_indexes", 64, 64, 4, blocks);
    if (vision->result != VP_OK) return;
    if (side % unit)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "window_size", "is not a whole number of merged patches");
    config->vit_window = side / unit;
    for (i = 0; i < count; i++) config->vit_full_blocks |= UINT64_C(1) << blocks[i];
}
/* reads the learned positions, and the blocks whose outputs go to the language model's first blocks */
static void vp_impl_qwen_deepstack(vp_impl_fields *vision, vp_model_config *config) {
    int32_t places = vp_impl_fields_int(vision, "num_position_embeddings", 1, 1 << 20, 2304), side = 1, i,
            *layers = config->vit_layers;
    int32_t taps[VP_VIT_LAYERS_MAX - 1] = {8, 16, 24}, count = vp_impl_qwen_blocks(
                                                           vision, "deepstack_visual_indexes", config->vit_block_count,
                                                           VP_VIT_LAYERS_MAX - 1, VP_VIT_LAYERS_MAX - 1, taps);
    if (vision->result != VP_OK) return;
    while (side * side < places) side++;
    if (side * side != places)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "num_position_embeddings", "is not a square");
    config->vit_table_side = side;
    config->deepstack_count = count;
    for (i = 0; i < count; i++) {
        if (taps[i] >= config->vit_block_count || (i && taps[i] <= taps[i - 1]) || i >= config->block_count)
            vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "deepstack_visual_indexes",
                                "must be ascending blocks of the tower, and no more than the language model has");
        layers[1 + i] = taps[i];
    }
    config->vit_layer_count = 1 + count;
}

static void vp_impl_qwen_tower(vp_impl_fields *vision, vp_model_config *config) {
    const int third = config->architecture != VP_ARCHITECTURE_QWEN2_5_VL;
    const char *const act = third ? "gelu_pytorch_tanh" : "silu";
    const vp_impl_setting settings[] = {{"hidden_act", act, act, act},
                                        {"in_channels", "3", "3", "3"},
                                        {"in_chans", "3", "3", "3"},
                                        {"temporal_patch_size", "2", "2", "2"}};
    vp_impl_fields rope = vp_impl_fields_inner(vision, "rope_parameters", "vision_config.rope_parameters.", 0);
    int32_t merge = vp_impl_fields_int(vision, "spatial_merge_size", 1, 16, 2);
    vp_impl_fields_settings(vision, settings, sizeof settings / sizeof settings[0]);
    config->vit_width = vp_impl_fields_int(vision, "hidden_size", 1, 65536, third ? 1152 : 3584);
    config->vit_mlp_dim = vp_impl_fields_int(vision, "intermediate_size", 1, 1 << 20, third ? 4304 : 3420);
    config->vit_block_count = vp_impl_fields_int(vision, "depth", 1, 64, third ? 27 : 32);
    config->vit_head_count = vp_impl_fields_int(vision, "num_heads", 1, 4096, 16);
    config->geometry = vp_geometry_default();
    config->geometry.patch_px = vp_impl_fields_square(vision, "patch_size", third ? 16 : 14);
    config->geometry.crop_px = config->geometry.patch_px * merge;
    config->geometry.pool = merge;
    config->geometry.margin_left_patches = config->geometry.margin_right_patches = 0;
    config->vit_rope_theta =
        rope.object == VP_JSON_NONE ? 1e4 : vp_impl_fields_double(&rope, "rope_theta", 0, 1e30, 1e4);
    if (vision->result == VP_OK) vision->result = rope.result;
    vp_impl_fields_equal(vision, "out_hidden_size", 65536, 3584, config->d_model, VP_ERR_MISMATCH,
                         "is not the language model's hidden_size");
    if (vision->result == VP_OK && config->vit_width % (4 * config->vit_head_count))
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "hidden_size",
                            "must be a multiple of 4 num_heads, because heads rotate by row and column");
    if (vision->result != VP_OK) return;
    config->vit_head_dim = config->vit_width / config->vit_head_count;
    config->vit_positions = merge * merge;
    config->vit_native = config->vit_qkv_bias = config->image_replaces = 1;
    config->vit_rms = config->vit_gated = !third;
    config->vit_gelu = VP_GELU_TANH;
    config->vit_norm_eps = 1e-6f;
    config->vit_layers[0] = -1;
    config->vit_layer_count = 1;
    config->vit_blocks_needed = config->vit_block_count;
    config->connector = VP_CONNECTOR_MERGER;
    config->projector_dim = merge * merge * config->vit_width;
    if (third) vp_impl_qwen_deepstack(vision, config);
    else vp_impl_qwen_windows(vision, config);
}

static vp_result vp_impl_config_qwen(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"quantization_config", "null", "null", "null"}};
    vp_impl_fields_settings(fields, settings, 1);
    vp_impl_qwen_language(fields, config);
    vp_impl_fields vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_qwen_tower(&vision, config);
    fields->result = vision.result;
    for (int i = 0; i < 3 && config->architecture != VP_ARCHITECTURE_QWEN2_5_VL; i++)
        config->geometry.mean[i] = config->geometry.std[i] = 0.5f;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}

/* ---- Gemma 3 */
/* the blocks that attend to everything: listed, or every sixth */
static void vp_impl_gemma3_blocks(vp_impl_fields *text, vp_model_config *config) {
    int32_t pattern = vp_impl_fields_int(text, "sliding_window_pattern", 1, 1024, 6), i = 0;
    uint32_t types = text->result == VP_OK ? vp_impl_fields_get(text, "layer_types", 1) : VP_JSON_NONE, item;
    config->full_blocks = 0;
    if (text->result != VP_OK) return;
    if (config->block_count > 64) {
        vp_impl_fields_fail(text, VP_ERR_UNSUPPORTED, "num_hidden_layers", "must be at most 64 if blocks differ");
        return;
    }
    if (types == VP_JSON_NONE) {
        for (; i < config->block_count; i++) config->full_blocks |= (uint64_t)((i + 1) % pattern == 0) << i;
        return;
    }
    if (text->json->nodes[types].type == VP_JSON_ARRAY)
        for (item = types + 1; item < text->json->nodes[types].end; item = text->json->nodes[item].end, i++) {
            int full = vp_json_equals(text->json, item, "full_attention");
            if (!full && !vp_json_equals(text->json, item, "sliding_attention")) i = config->block_count;
            if (i < config->block_count) config->full_blocks |= (uint64_t)full << i;
        }
    if (i != config->block_count)
        vp_impl_fields_fail(text, VP_ERR_MISMATCH, "layer_types",
                            "must list full_attention or sliding_attention for each block");
}

static void vp_impl_gemma3_language(vp_impl_fields *text, vp_model_config *config) {
    static const vp_impl_language kind = {"gemma3_text", 262208,          2304, 9216, 26, 8, 4, 256, 131072, 0,
                                          1e-6,          VP_QK_NORM_HEAD, 1e6};
    static const vp_impl_setting settings[] = {
        {"hidden_activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh", "gelu_pytorch_tanh"},
        {"attn_logit_softcapping", "null", "null", "null"},
        {"final_logit_softcapping", "null", "null", "null"},
        {"use_bidirectional_attention", "false", "null", "false"},
    };
    if (vp_impl_fields_get(text, "model_type", 1) != VP_JSON_NONE
        && !vp_impl_fields_is(text, "model_type", kind.model_type))
        vp_impl_fields_fail(text, VP_ERR_UNSUPPORTED, "model_type", "is not this model's language model");
    vp_impl_fields_settings(text, settings, sizeof settings / sizeof settings[0]);
    config->rope_local_theta = 1e4;
    vp_impl_config_llama(text, &kind, config);
    config->sliding_window = vp_impl_fields_int(text, "sliding_window", 1, 1 << 24, 4096);
    double scalar = vp_impl_fields_double(text, "query_pre_attn_scalar", 0, 1e9, 256);
    vp_impl_gemma3_blocks(text, config);
    if (text->result == VP_OK && !(scalar > 0))
        vp_impl_fields_fail(text, VP_ERR_RANGE, "query_pre_attn_scalar", "must be positive");
    if (text->result == VP_OK) {
        config->query_scale = (float)sqrt((double)config->head_dim / scalar);
        config->embedding_scale = (float)sqrt((double)config->d_model);
    }
    config->norm_around = config->norm_plus_one = config->gated_gelu = config->image_bidirectional = 1;
}
static vp_result vp_impl_config_gemma3_text(vp_impl_fields *fields, vp_model_config *config) {
    config->geometry = vp_geometry_default();
    config->tied_head = 1;
    vp_impl_gemma3_language(fields, config);
    return fields->result;
}

static vp_result vp_impl_config_gemma3(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_tower siglip = {768, 3072, 12, 12, 224, 16, 0, "gelu_pytorch_tanh", VP_GELU_TANH, 1e-6};
    static const vp_impl_setting settings[] = {{"quantization_config", "null", "null", "null"}};
    int32_t tokens = vp_impl_fields_int(fields, "mm_tokens_per_image", 1, 65536, 256), across = 1, side, patch, pool;
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    const int tied = vp_impl_fields_flag(fields, "tie_word_embeddings", 1);
    vp_impl_fields text = vp_impl_fields_inner(fields, "text_config", "text_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_gemma3_language(&text, config);
    config->tied_head = tied;
    fields->result = text.result;
    vp_impl_fields vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    side = vp_impl_fields_square(&vision, "image_size", siglip.image_size);
    patch = vp_impl_fields_square(&vision, "patch_size", siglip.patch_size);
    if (vision.result != VP_OK) return fields->result = vision.result;
    side = patch ? side / patch : 0;
    while ((across + 1) * (across + 1) <= tokens) across++;
    pool = side / across;
    if (across * across != tokens || pool < 1 || pool * across != side)
        vp_impl_fields_fail(fields, VP_ERR_UNSUPPORTED, "mm_tokens_per_image",
                            "is not a square whose side divides the number of patches per image side");
    if (fields->result != VP_OK) return fields->result;
    vp_impl_config_tower(&vision, &siglip, pool, config);
    fields->result = vision.result;
    config->connector = VP_CONNECTOR_MEAN;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}

/* ---- Molmo2 */
/* the name or the older name of a field, whichever is present */
static const char *vp_impl_molmo2_name(const vp_impl_fields *fields, const char *name, const char *older) {
    return fields->result == VP_OK && vp_impl_fields_get(fields, name, 1) == VP_JSON_NONE ? older : name;
}

static void vp_impl_molmo2_language(vp_impl_fields *text, vp_model_config *config) {
    static const vp_impl_language kind = {"molmo2_text", 151936, 4096, 12288,           36, 32, 8, 128,
                                          36864,         0,      1e-6, VP_QK_NORM_HEAD, 1e4};
    static const vp_impl_setting settings[] = {
        {"hidden_act", "silu", "silu", "silu"},
        {"qk_norm_type", "qwen3", "olmo", "qwen3"},
        {"use_qk_norm", "true", "true", "true"},
        {"tie_word_embeddings", "false", "false", "false"},
    };
    vp_impl_fields_settings(text, settings, sizeof settings / sizeof settings[0]);
    config->d_model = vp_impl_fields_int(text, "hidden_size", 2, 65536, kind.hidden_size);
    config->block_count = vp_impl_fields_int(text, "num_hidden_layers", 1, 1024, kind.layers);
    config->vocab_size = vp_impl_fields_int(text, "vocab_size", 1, 1 << 24, kind.vocab_size);
    config->embedding_size = config->vocab_size;
    config->additional_vocab_size = vp_impl_fields_int(text, "additional_vocab_size", 0, 1 << 24, 128);
    config->max_positions = vp_impl_fields_int(text, "max_position_embeddings", 1, 1 << 24, kind.max_positions);
    config->max_sequence_length = config->max_positions;
    config->mlp_dim = vp_impl_fields_int(text, "intermediate_size", 1, 1 << 20, kind.intermediate_size);
    config->norm_eps =
        (float)vp_impl_fields_double(text, vp_impl_molmo2_name(text, "rms_norm_eps", "layer_norm_eps"), 0, 1, kind.eps);
    config->qkv_bias = vp_impl_fields_flag(text, vp_impl_molmo2_name(text, "attention_bias", "qkv_bias"), 0);
    config->qk_norm = vp_impl_fields_is(text, "qk_norm_type", "olmo") ? VP_QK_NORM_WHOLE : VP_QK_NORM_HEAD;
    config->norm_after = vp_impl_fields_flag(text, "norm_after", 0);
    config->image_bidirectional = 1;
    vp_impl_language_heads(text, &kind, config);
    vp_impl_config_rope(text, kind.rope_theta, config);
    if (text->result == VP_OK && config->rope.scaling != VP_ROPE_PLAIN)
        vp_impl_fields_fail(text, VP_ERR_UNSUPPORTED, "rope_parameters.rope_type",
                            "only plain frequencies are implemented here");
    if (text->result == VP_OK && !(config->norm_eps > 0))
        vp_impl_fields_fail(text, VP_ERR_RANGE, "rms_norm_eps", "the value is 0 in float32");
}

/* checks that heads equal those of the tower's blocks */
static void vp_impl_molmo2_heads(vp_impl_fields *fields, const vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"attention_bias", "true", "true", "true"}};
    const int32_t heads = config->vit_head_count;
    vp_impl_fields_settings(fields, settings, 1);
    const vp_result code = VP_ERR_UNSUPPORTED;
    vp_impl_fields_equal(fields, "hidden_size", 65536, 1152, config->vit_width, code, "differs from the tower's");
    vp_impl_fields_equal(fields, "num_attention_heads", 4096, 16, heads, code, "differs from the tower's");
    vp_impl_fields_equal(fields, "num_key_value_heads", 4096, 16, heads, code, "is not the number of heads");
    vp_impl_fields_equal(fields, "head_dim", 65536, 72, config->vit_head_dim, code,
                         "is not hidden_size / num_attention_heads");
}

/* older files have 27 blocks and count the layers from the end; their weights end with the deepest used layer */
static void vp_impl_molmo2_layers(vp_impl_fields *adapter, int older, vp_model_config *config) {
    int32_t i, blocks = config->vit_block_count, *layers = config->vit_layers;
    layers[0] = 24;
    layers[1] = 18;
    config->vit_layer_count = 2;
    i = vp_impl_fields_ints(adapter, vp_impl_molmo2_name(adapter, "vision_feature_layer", "vit_layers"), -blocks,
                            blocks - 1, VP_VIT_LAYERS_MAX, layers);
    if (i > 0) config->vit_layer_count = i;
    config->vit_blocks_needed = 0;
    for (i = 0; i < config->vit_layer_count; i++) {
        layers[i] = layers[i] < 0 ? layers[i] + blocks : layers[i];
        if (layers[i] >= blocks && adapter->result == VP_OK)
            vp_impl_fields_fail(adapter, VP_ERR_MISMATCH, "vision_feature_layer",
                                "this field is absent, and the tower has too few blocks for the default layers");
        if (layers[i] + 1 > config->vit_blocks_needed) config->vit_blocks_needed = layers[i] + 1;
    }
    if (older) config->vit_block_count = config->vit_blocks_needed;
}

static void vp_impl_molmo2_vision(vp_impl_fields *fields, int older, vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"hidden_act", "silu", "silu", "silu"},
                                               {"mlp_bias", "false", "false", "false"}};
    vp_impl_tower siglip = {1152, 4304, 25, 16, 378, 14, 0, "gelu_pytorch_tanh", VP_GELU_TANH, 1e-6};
    vp_impl_fields vision = vp_impl_fields_inner(fields, older ? "vit_config" : "vision_config",
                                                 older ? "vit_config." : "vision_config.", 1),
                   adapter;
    const char *places = vp_impl_molmo2_name(&vision, "num_position_embeddings", "image_num_pos");
    siglip.image_size = vp_impl_fields_square(&vision, "image_default_input_size", siglip.image_size);
    siglip.patch_size = vp_impl_fields_int(&vision, "image_patch_size", 1, 1024, siglip.patch_size);
    vp_impl_config_tower(&vision, &siglip, 1, config);
    if (vision.result == VP_OK) vp_impl_molmo2_heads(&vision, config);
    vp_impl_fields_equal(&vision, places, 1 << 24, config->vit_positions, config->vit_positions, VP_ERR_MISMATCH,
                         "is not (image size / patch size)^2");
    fields->result = vision.result;
    adapter = vp_impl_fields_inner(fields, "adapter_config", "adapter_config.", 1);
    if (fields->result != VP_OK) return;
    vp_impl_fields_settings(&adapter, settings, sizeof settings / sizeof settings[0]);
    vp_impl_molmo2_heads(&adapter, config);
    vp_impl_molmo2_layers(&adapter, older, config);
    config->projector_dim = vp_impl_fields_int(&adapter, "intermediate_size", 1, 1 << 20, 18944);
    vp_impl_fields_equal(&adapter, "text_hidden_size", 65536, 3584, config->d_model, VP_ERR_MISMATCH,
                         "is not the language model's hidden_size");
    config->connector = VP_CONNECTOR_STITCHED;
    config->image_replaces = 0;
    fields->result = adapter.result;
}

/* crops, their overlap and the windows, which are only in the processor's file */
static void vp_impl_molmo2_pictures(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    vp_geometry *geometry = &config->geometry;
    int32_t pool[2] = {2, 2}, i;
    geometry->margin_left_patches = geometry->margin_right_patches = 4;
    geometry->max_crops = 8;
    for (i = 0; i < 3; i++) geometry->mean[i] = geometry->std[i] = 0.5f;
    if (preprocessor) {
        vp_impl_fields file = vp_impl_fields_preprocessor(fields, preprocessor);
        if (vp_impl_fields_ints(&file, "pooling_size", 1, 32, 2, pool) == 1 || pool[0] != pool[1])
            vp_impl_fields_fail(&file, VP_ERR_UNSUPPORTED, "pooling_size", "only square windows are implemented");
        vp_impl_fields_margins(&file, geometry);
        geometry->max_crops = vp_impl_fields_int(&file, "max_crops", 1, 4096, geometry->max_crops);
        fields->result = file.result;
    }
    config->window_pool = pool[0];
    vp_impl_config_colours(fields, preprocessor, geometry);
    if (fields->result == VP_OK && vp_geometry_check(geometry) != VP_OK)
        vp_impl_fields_fail(fields, VP_ERR_RANGE, "geometry",
                            "crop side, patch side, overlap_margins and max_crops are inconsistent");
}

static vp_result vp_impl_config_molmo2(vp_impl_fields *fields, const vp_json *preprocessor, vp_model_config *config) {
    static const vp_impl_setting settings[] = {{"quantization_config", "null", "null", "null"},
                                               {"tie_word_embeddings", "false", "false", "false"}};
    vp_impl_fields_settings(fields, settings, sizeof settings / sizeof settings[0]);
    vp_impl_fields text = vp_impl_fields_inner(fields, "text_config", "text_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_molmo2_language(&text, config);
    fields->result = text.result;
    if (fields->result != VP_OK) return fields->result;
    vp_impl_molmo2_vision(fields, vp_impl_fields_get(fields, "vision_config", 1) == VP_JSON_NONE, config);
    if (fields->result == VP_OK) vp_impl_molmo2_pictures(fields, preprocessor, config);
    return fields->result;
}

static const char *const vp_impl_architectures[VP_ARCHITECTURE_COUNT][3] = {
#define VP_IMPL_ARCHITECTURE_ROW(name, text, architecture, model_type, views) {text, architecture, model_type},
    VP_ARCHITECTURES(VP_IMPL_ARCHITECTURE_ROW)
#undef VP_IMPL_ARCHITECTURE_ROW
};
VP_API const char *vp_architecture_name(vp_architecture architecture) {
    return (int)architecture >= 0 && architecture < VP_ARCHITECTURE_COUNT ? vp_impl_architectures[architecture][0]
                                                                          : "unknown";
}

VP_API vp_views vp_architecture_views(const char *name) {
#define VP_IMPL_ARCHITECTURE_VIEWS(name, text, architecture, model_type, views) VP_VIEWS_##views,
    static const vp_views of[VP_ARCHITECTURE_COUNT] = {VP_ARCHITECTURES(VP_IMPL_ARCHITECTURE_VIEWS)};
#undef VP_IMPL_ARCHITECTURE_VIEWS
    int i = 0;
    while (name && i < VP_ARCHITECTURE_COUNT && strcmp(vp_impl_architectures[i][0], name)) i++;
    return name && i < VP_ARCHITECTURE_COUNT ? of[i] : VP_VIEWS_GLOBAL;
}

/* finds the model by model_type, or without it by architectures */
static vp_result vp_impl_config_find(vp_impl_fields *fields, vp_architecture *found) {
    uint32_t list = vp_impl_fields_get(fields, "architectures", 1), type = vp_impl_fields_get(fields, "model_type", 1);
    char text[sizeof fields->error->text];
    for (int i = 0; i < VP_ARCHITECTURE_COUNT; i++) {
        const char *const *row = vp_impl_architectures[i];
        int listed = list != VP_JSON_NONE && fields->json->nodes[list].type == VP_JSON_ARRAY
                     && fields->json->nodes[list].count && fields->json->nodes[list + 1].type == VP_JSON_STRING
                     && vp_json_equals(fields->json, list + 1, row[1]);
        if (type != VP_JSON_NONE ? !vp_impl_fields_is(fields, "model_type", row[2]) : !listed) continue;
        *found = (vp_architecture)i;
        if (i == VP_ARCHITECTURE_MOLMOE && vp_impl_fields_get(fields, "hidden_size", 1) != VP_JSON_NONE)
            *found = VP_ARCHITECTURE_MOLMO;
        return VP_OK;
    }
    if (type == VP_JSON_NONE) { *found = VP_ARCHITECTURE_MOLMOE; return VP_OK; } /* the default */
    vp_impl_print(text, sizeof text, "vlmprof does not run this model; it runs");
    for (int i = 1; i < VP_ARCHITECTURE_COUNT; i++) {
        size_t used = strlen(text);
        vp_impl_print(text + used, sizeof text - used, "%s %s", i > 1 ? "," : "", vp_impl_architectures[i][2]);
    }
    return vp_error_set(fields->error, VP_ERR_UNSUPPORTED, -1, "model_type", text);
}

static vp_result vp_impl_config_read(const vp_json *json, const vp_json *preprocessor, vp_model_config *config,
                                     vp_error *error) {
    vp_impl_fields fields;
    fields.json = json; fields.object = 0; fields.prefix = ""; fields.result = VP_OK; fields.error = error;
    if (json->nodes[0].type != VP_JSON_OBJECT)
        return vp_error_set(error, VP_ERR_FORMAT, 0, "config.json", "the text is not a JSON object");
    vp_result result = vp_impl_config_find(&fields, &config->architecture);
    if (result != VP_OK) return result;
    switch (config->architecture) {
    case VP_ARCHITECTURE_MOLMO: return vp_impl_config_molmo(&fields, preprocessor, config);
    case VP_ARCHITECTURE_OLMOE: return vp_impl_config_olmoe(&fields, preprocessor, config);
    case VP_ARCHITECTURE_LLAMA:
    case VP_ARCHITECTURE_QWEN2:
    case VP_ARCHITECTURE_QWEN3:
        config->geometry = vp_geometry_default();
        vp_impl_config_llama(&fields, &vp_impl_languages[config->architecture - VP_ARCHITECTURE_LLAMA], config);
        return fields.result;
    case VP_ARCHITECTURE_GEMMA3_TEXT: return vp_impl_config_gemma3_text(&fields, config);
    case VP_ARCHITECTURE_QWEN3_MOE: return vp_impl_config_qwen3_moe(&fields, config);
    case VP_ARCHITECTURE_LLAVA: return vp_impl_config_llava(&fields, preprocessor, config);
    case VP_ARCHITECTURE_IDEFICS3:
    case VP_ARCHITECTURE_SMOLVLM: return vp_impl_config_idefics3(&fields, preprocessor, config);
    case VP_ARCHITECTURE_INTERNVL:
    case VP_ARCHITECTURE_INTERNVL_CHAT: return vp_impl_config_internvl(&fields, preprocessor, config);
    case VP_ARCHITECTURE_QWEN2_5_VL:
    case VP_ARCHITECTURE_QWEN3_VL:
    case VP_ARCHITECTURE_QWEN3_VL_MOE: return vp_impl_config_qwen(&fields, preprocessor, config);
    case VP_ARCHITECTURE_GEMMA3: return vp_impl_config_gemma3(&fields, preprocessor, config);
    case VP_ARCHITECTURE_MOLMO2: return vp_impl_config_molmo2(&fields, preprocessor, config);
    default: return vp_impl_config_molmoe(&fields, preprocessor, config);
    }
}

VP_API vp_result vp_model_config_parse(const char *config_json, size_t config_bytes, const char *preprocessor_json,
                                       size_t preprocessor_bytes, vp_model_config *config, vp_error *error) {
    vp_json json = {0}, preprocessor = {0};
    vp_model_config made = {0};
    if (!config_json || !config)
        return vp_error_set(error, VP_ERR_RANGE, -1, "vp_model_config_parse", "a required pointer is NULL");
    vp_result result = vp_json_load(config_json, config_bytes, "config.json", &json, error);
    if (result == VP_OK && preprocessor_json)
        result = vp_json_load(preprocessor_json, preprocessor_bytes, "preprocessor_config.json", &preprocessor, error);
    if (result == VP_OK) result = vp_impl_config_read(&json, preprocessor_json ? &preprocessor : NULL, &made, error);
    VP_FREE((void *)json.nodes);
    VP_FREE((void *)preprocessor.nodes);
    if (result == VP_OK) *config = made;
    return result;
}

/* ---------------------------------------------------------------------------------------------------------- presets */
static vp_model_config vp_impl_preset_molmoe_1b(void) {
    vp_model_config config = {
        .architecture = VP_ARCHITECTURE_MOLMOE, .d_model = 2048, .head_count = 16, .kv_head_count = 16,
        .head_dim = 128, .block_count = 16, .qk_norm = VP_QK_NORM_WHOLE, .expert_count = 64, .expert_dim = 1024,
        .top_k = 8, .vocab_size = 50280, .embedding_size = 50304, .additional_vocab_size = 128,
        .max_sequence_length = 4096, .max_positions = 4096, .rope_theta = 10000.0, .norm_eps = 1e-5f,
        .vit_width = 1024, .vit_head_count = 16, .vit_head_dim = 64, .vit_mlp_dim = 4096, .vit_block_count = 23,
        .vit_positions = 577, .vit_class_token = 1, .vit_qkv_bias = 1, .connector = VP_CONNECTOR_POOLING,
        .vit_norm_eps = 1e-5f, .vit_layers = {-2, -9}, .vit_layer_count = 2, .vit_blocks_needed = 22,
        .projector_dim = 1024};
    config.geometry = vp_geometry_default();
    return config;
}

static vp_model_config vp_impl_preset_tiny(void) {
    vp_model_config config = vp_impl_preset_molmoe_1b();
    config.d_model = 128; config.head_count = config.kv_head_count = 4; config.head_dim = 32; config.block_count = 4;
    config.expert_count = 8; config.expert_dim = 64; config.top_k = 2;
    config.vocab_size = 259; config.embedding_size = 320; config.additional_vocab_size = 16;
    config.vit_width = 64; config.vit_head_count = 4; config.vit_head_dim = 16; config.vit_mlp_dim = 256;
    config.vit_block_count = 5; config.vit_layers[1] = -4; config.vit_blocks_needed = 4;
    config.projector_dim = 64;
    return config;
}

/* The other presets, as config.json and preprocessor_config.json. Checks in tests/model/test_checkpoint.c (2026-11-23):
 * except for the tiny ones, the shapes of each sum to the number of parameters in the test. molmo-7b-d, llava-1.5-7b,
 * smolvlm-2.2b, internvl3-1b, qwen2.5-vl-7b, qwen3-vl-4b and qwen3-vl-30b-a3b-12-blocks equal published files, field by
 * field. For the rest, fields that do not affect a tensor's shape (RoPE, eps, positions, image sizes) were not compared
 * with any file. */
typedef struct vp_impl_preset { const char *name, *config, *preprocessor; } vp_impl_preset;
#define VP_IMPL_SIZES(width, mlp, layers, heads) \
    "\"hidden_size\":" #width ",\"intermediate_size\":" #mlp ",\"num_hidden_layers\":" #layers \
    ",\"num_attention_heads\":" #heads
#define VP_IMPL_LANGUAGE(width, mlp, layers, heads, kv_heads) \
    VP_IMPL_SIZES(width, mlp, layers, heads) ",\"num_key_value_heads\":" #kv_heads
#define VP_IMPL_QWEN2_5_VISION(out) \
    "\"vision_config\":{\"hidden_size\":1280,\"depth\":32,\"out_hidden_size\":" out "}}", \
        "{\"min_pixels\":3136,\"max_pixels\":12845056,\"image_mean\":[0.48145466,0.4578275,0.40821073]," \
        "\"image_std\":[0.26862954,0.26130258,0.27577711]}"
#define VP_IMPL_QWEN3_FILE(least, most) \
    "{\"size\":{\"shortest_edge\":" least ",\"longest_edge\":" most "},\"image_mean\":[0.5,0.5,0.5]," \
    "\"image_std\":[0.5,0.5,0.5]}"
#define VP_IMPL_QWEN3_VISION(rest, out) \
    "\"vision_config\":{" rest "\"out_hidden_size\":" out "}}", VP_IMPL_QWEN3_FILE("65536", "16777216")
#define VP_IMPL_QWEN3_SMALL \
    "\"hidden_size\":1024,\"intermediate_size\":4096,\"depth\":24,\"deepstack_visual_indexes\":[5,11,17],"
#define VP_IMPL_QWEN3_TEXT \
    "\"head_dim\":128,\"rms_norm_eps\":1e-6,\"rope_theta\":5e6,\"max_position_embeddings\":262144,"
/* SmolVLM: views of 512 pixels in the small models, of 384 in the other, which are 27 patches of 14 */
#define VP_IMPL_SMOLVLM(language, vision, view, longest) \
    "{\"model_type\":\"idefics3\"," vision "\"text_config\":{\"model_type\":\"llama\"," language \
    ",\"rms_norm_eps\":1e-5}}", \
        "{\"size\":{\"longest_edge\":" longest "},\"max_image_size\":{\"longest_edge\":" view "}," \
        "\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5]}"
#define VP_IMPL_SMOLVLM_TEXT ",\"vocab_size\":49280,\"max_position_embeddings\":8192,\"rope_theta\":1e5"
#define VP_IMPL_SMOLVLM_SMALL \
    "\"scale_factor\":4,\"vision_config\":{\"hidden_size\":768,\"num_attention_heads\":12,\"patch_size\":16," \
    "\"image_size\":512},"
#define VP_IMPL_SMOLVLM_LARGE \
    "\"scale_factor\":3,\"vision_config\":{\"hidden_size\":1152,\"intermediate_size\":4304," \
    "\"num_hidden_layers\":27,\"patch_size\":14,\"image_size\":384},"
/* InternVL3 and 3.5; heads are not tied. 1B: the config printed in github.com/shivangjhalani/multicoco
 * (InternVL3-1B_data.md) */
#define VP_IMPL_INTERNVL(language) \
    "{\"model_type\":\"internvl\",\"tie_word_embeddings\":false,\"text_config\":{" language \
    "},\"vision_config\":{\"attention_bias\":true}}", \
        "{\"size\":{\"height\":448,\"width\":448},\"min_patches\":1,\"max_patches\":12," \
        "\"image_mean\":[0.485,0.456,0.406],\"image_std\":[0.229,0.224,0.225]}"
#define VP_IMPL_INTERNVL3 "\"model_type\":\"qwen2\",\"vocab_size\":151674,\"rope_theta\":1e6,"
#define VP_IMPL_INTERNVL3_5 \
    "\"model_type\":\"qwen3\",\"max_position_embeddings\":40960,\"num_key_value_heads\":8,\"rope_theta\":1e6,"
static const vp_impl_preset vp_impl_model_presets[] = {
    {"tiny", NULL, NULL},
    {"molmoe-1b", NULL, NULL},
    {"tiny-dense",
     "{\"model_type\":\"molmo\"," VP_IMPL_LANGUAGE(128, 384, 4, 8, 2) ",\"vocab_size\":259,\"embedding_size\":320,"
     "\"additional_vocab_size\":16,\"layer_norm_eps\":1e-6,\"max_position_embeddings\":4096,\"rope_theta\":1e6,"
     "\"qkv_bias\":true,\"vit_layers\":[-2,-4],\"vision_backbone\":{\"image_emb_dim\":64,\"image_num_heads\":4,"
     "\"image_head_dim\":16,\"image_mlp_dim\":256,\"image_num_layers\":5}}", NULL},
    {"molmo-7b-d",
     "{\"model_type\":\"molmo\"," VP_IMPL_LANGUAGE(3584, 37888, 28, 28, 4)
     ",\"vocab_size\":152064,\"layer_norm_eps\":1e-6,"
     "\"max_position_embeddings\":4096,\"rope_theta\":1e6,\"qkv_bias\":true}", NULL},
    {"molmo-7b-o",
     "{\"model_type\":\"molmo\"," VP_IMPL_SIZES(4096, 22016, 32, 32)
     ",\"vocab_size\":100278,\"embedding_size\":100352,\"layer_norm_eps\":1e-6,"
     "\"max_position_embeddings\":4096,\"rope_theta\":5e5,\"attention_layer_norm\":true,\"norm_after\":true}", NULL},
    {"olmoe-1b-7b", "{\"model_type\":\"olmoe\",\"intermediate_size\":1024}", NULL},
    {"llava-1.5-7b", /* absent fields have LlamaConfig's defaults */
     "{\"model_type\":\"llava\",\"text_config\":{\"vocab_size\":32064,\"max_position_embeddings\":4096,"
     "\"rms_norm_eps\":1e-5},\"vision_config\":{" VP_IMPL_SIZES(1024, 4096, 24,
                                                                16) ",\"image_size\":336,\"patch_size\":14}}",
     "{\"size\":{\"shortest_edge\":336},\"crop_size\":{\"height\":336,\"width\":336},"
     "\"image_mean\":[0.48145466,0.4578275,0.40821073],\"image_std\":[0.26862954,0.26130258,0.27577711]}"},
    {"smolvlm-256m",
     VP_IMPL_SMOLVLM(VP_IMPL_LANGUAGE(576, 1536, 30, 9, 3) VP_IMPL_SMOLVLM_TEXT, VP_IMPL_SMOLVLM_SMALL, "512", "2048")},
    {"smolvlm-500m", VP_IMPL_SMOLVLM(VP_IMPL_LANGUAGE(960, 2560, 32, 15, 5) VP_IMPL_SMOLVLM_TEXT, VP_IMPL_SMOLVLM_SMALL,
                                     "512", "2048")},
    {"smolvlm-2.2b",
     VP_IMPL_SMOLVLM(VP_IMPL_SIZES(2048, 8192, 24, 32) ",\"vocab_size\":49155,"
                     "\"max_position_embeddings\":16384,\"rope_theta\":273768", VP_IMPL_SMOLVLM_LARGE, "384", "1536")},
    {"internvl3-1b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3 VP_IMPL_LANGUAGE(896, 4864, 24, 14, 2))},
    {"internvl3-2b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3 VP_IMPL_LANGUAGE(1536, 8960, 28, 12, 2))},
    {"internvl3-8b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3 VP_IMPL_LANGUAGE(3584, 18944, 28, 28, 4))},
    {"internvl3.5-1b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3_5 VP_IMPL_SIZES(1024, 3072, 28, 16))},
    {"internvl3.5-2b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3_5 VP_IMPL_SIZES(2048, 6144, 28, 16))},
    {"internvl3.5-4b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3_5 VP_IMPL_SIZES(2560, 9728, 36, 32))},
    {"internvl3.5-8b", VP_IMPL_INTERNVL(VP_IMPL_INTERNVL3_5 VP_IMPL_SIZES(4096, 12288, 36, 32))},
    {"tiny-qwen3-vl-moe",
     "{\"model_type\":\"qwen3_vl_moe\",\"text_config\":{\"hidden_size\":128,\"num_hidden_layers\":4,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":32,\"rope_scaling\":{\"mrope_section\":[6,5,5]},"
     "\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64,\"vocab_size\":320,"
     "\"max_position_embeddings\":4096},\"vision_config\":{\"hidden_size\":64,\"intermediate_size\":128,"
     "\"num_heads\":4,\"depth\":4,\"num_position_embeddings\":64,\"deepstack_visual_indexes\":[0,1,2],"
     "\"out_hidden_size\":128}}",
     VP_IMPL_QWEN3_FILE("4096", "1048576")},
    {"qwen2.5-vl-3b",
     "{\"model_type\":\"qwen2_5_vl\"," VP_IMPL_LANGUAGE(
         2048, 11008, 36, 16,
         2) ",\"vocab_size\":151936,\"tie_word_embeddings\":true,"
            "\"rms_norm_eps\":1e-6,\"max_position_embeddings\":128000," VP_IMPL_QWEN2_5_VISION("2048")},
    {"qwen2.5-vl-7b", "{\"model_type\":\"qwen2_5_vl\"," VP_IMPL_LANGUAGE(
                          3584, 18944, 28, 28, 4) ",\"vocab_size\":152064,\"rms_norm_eps\":1e-6,"
                                                  "\"max_position_embeddings\":128000," VP_IMPL_QWEN2_5_VISION("3584")},
    {"qwen3-vl-2b",
     "{\"model_type\":\"qwen3_vl\",\"tie_word_embeddings\":true,\"text_config\":{" VP_IMPL_QWEN3_TEXT VP_IMPL_LANGUAGE(
         2048, 6144, 28, 16, 8) ",\"vocab_size\":151936}," VP_IMPL_QWEN3_VISION(VP_IMPL_QWEN3_SMALL, "2048")},
    {"qwen3-vl-4b",
     "{\"model_type\":\"qwen3_vl\",\"tie_word_embeddings\":true,\"text_config\":{" VP_IMPL_QWEN3_TEXT VP_IMPL_LANGUAGE(
         2560, 9728, 36, 32, 8) ",\"vocab_size\":151936}," VP_IMPL_QWEN3_VISION(VP_IMPL_QWEN3_SMALL, "2560")},
    {"qwen3-vl-8b", "{\"model_type\":\"qwen3_vl\",\"text_config\":{" VP_IMPL_QWEN3_TEXT VP_IMPL_LANGUAGE(
                        4096, 12288, 36, 32, 8) ",\"vocab_size\":151936}," VP_IMPL_QWEN3_VISION("", "4096")},
    /* source: config.json of allenai/Molmo2-4B, as in github.com/albud1978/CV 83e865d (src/models/Molmo2-4B) */
    {"molmo2-4b",
     "{\"model_type\":\"molmo2\",\"text_config\":{" VP_IMPL_LANGUAGE(2560, 9728, 36, 32, 8)
     ",\"head_dim\":128,\"vocab_size\":151936,"
     "\"rope_theta\":5e6,\"max_position_embeddings\":36864},\"vit_config\":{\"num_hidden_layers\":27},"
     "\"adapter_config\":{\"vit_layers\":[-3,-9],\"intermediate_size\":9728,\"text_hidden_size\":2560}}",
     "{\"max_crops\":8,\"use_single_crop_col_tokens\":false}"},
    {"qwen3-vl-30b-a3b-12-blocks",
     "{\"model_type\":\"qwen3_vl_moe\",\"text_config\":{" VP_IMPL_QWEN3_TEXT
     "\"hidden_size\":2048,\"num_hidden_layers\":12,\"num_attention_heads\":32,\"num_key_value_heads\":4,"
     "\"num_experts\":128,\"num_experts_per_tok\":8,\"moe_intermediate_size\":768,\"vocab_size\":151936},"
     VP_IMPL_QWEN3_VISION("", "2048")},
    {"tiny-gemma3",
     "{\"model_type\":\"gemma3\",\"mm_tokens_per_image\":16,\"text_config\":{" VP_IMPL_LANGUAGE(
         128, 256, 6, 4, 2) ",\"head_dim\":32,\"query_pre_attn_scalar\":32,\"vocab_size\":320,\"sliding_window\":32,"
                            "\"max_position_embeddings\":4096},\"vision_config\":{" VP_IMPL_SIZES(
                                64, 128, 3, 4) ",\"image_size\":112,\"patch_size\":14}}",
     "{\"size\":{\"height\":112,\"width\":112},\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5]}"},
    {"gemma-3-4b", /* absent fields have Gemma3TextConfig's defaults */
     "{\"model_type\":\"gemma3\",\"mm_tokens_per_image\":256,\"text_config\":{\"hidden_size\":2560,"
     "\"intermediate_size\":10240,\"num_hidden_layers\":34,\"sliding_window\":1024,"
     "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"}},\"vision_config\":{" VP_IMPL_SIZES(
         1152, 4304, 27, 16) ",\"image_size\":896,\"patch_size\":14}}",
     "{\"size\":{\"height\":896,\"width\":896},\"image_mean\":[0.5,0.5,0.5],\"image_std\":[0.5,0.5,0.5]}"},
};
enum { VP_IMPL_PRESETS = (int)(sizeof vp_impl_model_presets / sizeof vp_impl_model_presets[0]) };

VP_API const char *vp_model_preset_name(int32_t index) {
    return index >= 0 && index < VP_IMPL_PRESETS ? vp_impl_model_presets[index].name : NULL;
}

static int vp_impl_preset_find(const char *name) {
    int i = 0;
    while (i < VP_IMPL_PRESETS && strcmp(name, vp_impl_model_presets[i].name)) i++;
    return i;
}
VP_API const char *vp_model_preset_preprocessor(const char *name) {
    const int i = name ? vp_impl_preset_find(name) : VP_IMPL_PRESETS;
    return i < VP_IMPL_PRESETS ? vp_impl_model_presets[i].preprocessor : NULL;
}

VP_API vp_result vp_model_config_preset(const char *name, vp_model_config *config) {
    if (!name || !config) return VP_ERR_RANGE;
    int i = vp_impl_preset_find(name);
    if (i == VP_IMPL_PRESETS) return VP_ERR_NOT_FOUND;
    const vp_impl_preset *preset = &vp_impl_model_presets[i];
    if (preset->config)
        return vp_model_config_parse(preset->config, strlen(preset->config), preset->preprocessor,
                                     preset->preprocessor ? strlen(preset->preprocessor) : 0, config, NULL);
    *config = i ? vp_impl_preset_molmoe_1b() : vp_impl_preset_tiny();
    return VP_OK;
}

VP_API vp_result vp_model_preset_ids(const char *name, vp_special_ids *ids) {
    vp_model_config config;
    if (!name || !ids) return VP_ERR_RANGE;
    vp_result result = vp_model_config_preset(name, &config);
    if (result != VP_OK) return result;
    int32_t eos = config.vocab_size - 1;
    ids->pad = 1;
    ids->bos = ids->eos = eos;
    ids->im_start = eos + 1;
    ids->im_end = eos + 2;
    ids->im_patch = eos + 3;
    ids->im_col = eos + 4;
    ids->image = eos + 5;
    return VP_OK;
}

/* -------------------------------------------------------------------------------------------------- model tensors */
/* A walk over the tensors of a model that writes only tensor `wanted`. */
typedef struct vp_impl_walk {
    int64_t wanted, at;
    vp_tensor_spec *spec;
} vp_impl_walk;
/* visits the next tensor; columns 0: one dimension */
static void vp_impl_walk_put(vp_impl_walk *walk, int64_t rows, int64_t columns, const char *format, ...)
    VP_IMPL_FORMAT(4, 5);
static void vp_impl_walk_put(vp_impl_walk *walk, int64_t rows, int64_t columns, const char *format, ...) {
    va_list list;
    if (walk->at++ != walk->wanted) return;
    va_start(list, format);
    vsnprintf(walk->spec->name, sizeof walk->spec->name, format, list);
    va_end(list);
    walk->spec->dimensions = columns ? 2 : 1;
    walk->spec->shape[0] = rows;
    walk->spec->shape[1] = columns;
}
/* adds leading dimensions of 1, or a convolution kernel of side x side after the columns */
static void vp_impl_walk_reshape(const vp_impl_walk *walk, int32_t ones, int64_t side) {
    int64_t *shape = walk->spec ? walk->spec->shape : NULL;
    if (walk->at - 1 != walk->wanted) return;
    for (; ones > 0; ones--, walk->spec->dimensions++) {
        shape[3] = shape[2]; shape[2] = shape[1]; shape[1] = shape[0]; shape[0] = 1;
    }
    if (side) { shape[2] = shape[3] = side; walk->spec->dimensions = 4; }
}
/* adds one dimension after the others */
static void vp_impl_walk_behind(const vp_impl_walk *walk, int64_t length) {
    if (walk->at - 1 == walk->wanted) walk->spec->shape[walk->spec->dimensions++] = length;
}
/* skips the next `count` tensors if the wanted one is after them */
static int vp_impl_walk_past(vp_impl_walk *walk, int64_t count) {
    if (walk->wanted >= walk->at && walk->wanted < walk->at + count) return 0;
    walk->at += count;
    return 1;
}
/* a linear or a norm with its bias */
#define VP_IMPL_PUT_BOTH(walk, rows, columns, format, ...) \
    do { \
        vp_impl_walk_put(walk, rows, columns, format ".weight", __VA_ARGS__); \
        vp_impl_walk_put(walk, rows, 0, format ".bias", __VA_ARGS__); \
    } while (0)

/* ---- the Molmo models */
static void vp_impl_walk_molmo_vision(vp_impl_walk *walk, const vp_model_config *config) {
    static const char vit[] = "model.vision_backbone.image_vit.", pooling[] = "model.vision_backbone.image_pooling_2d.",
                      projector[] = "model.vision_backbone.image_projector.";
    int64_t width = config->vit_width, in = (int64_t)config->vit_layer_count * width, mlp = config->vit_mlp_dim,
            patch = (int64_t)config->geometry.patch_px * config->geometry.patch_px * 3;
    if (config->vit_class_token) vp_impl_walk_put(walk, 2, in, "model.vision_backbone.pad_embed");
    for (int k = 0; k < 4; k++) VP_IMPL_PUT_BOTH(walk, width, k < 3 ? in : width, "%sw%c", pooling, "qkvo"[k]);
    vp_impl_walk_put(walk, config->projector_dim, width, "%sw1.weight", projector);
    vp_impl_walk_put(walk, config->d_model, config->projector_dim, "%sw2.weight", projector);
    vp_impl_walk_put(walk, config->projector_dim, width, "%sw3.weight", projector);
    if (config->vit_class_token) vp_impl_walk_put(walk, width, 0, "%sclass_embedding", vit);
    vp_impl_walk_put(walk, config->vit_positions, width, "%spositional_embedding", vit);
    vp_impl_walk_put(walk, width, patch, "%spatch_embedding.weight", vit);
    if (!config->vit_class_token) vp_impl_walk_put(walk, width, 0, "%spatch_embedding.bias", vit);
    if (config->vit_class_token) VP_IMPL_PUT_BOTH(walk, width, 0, "%spre_ln", vit);
    for (int32_t i = 0; i < config->vit_block_count; i++) {
        if (vp_impl_walk_past(walk, 16)) continue;
        for (int k = 0; k < 4; k++)
            VP_IMPL_PUT_BOTH(walk, width, width, "%stransformer.resblocks.%d.attention.w%c", vit, (int)i, "qkvo"[k]);
        VP_IMPL_PUT_BOTH(walk, mlp, width, "%stransformer.resblocks.%d.feed_forward.w1", vit, (int)i);
        VP_IMPL_PUT_BOTH(walk, width, mlp, "%stransformer.resblocks.%d.feed_forward.w2", vit, (int)i);
        VP_IMPL_PUT_BOTH(walk, width, 0, "%stransformer.resblocks.%d.attention_norm", vit, (int)i);
        VP_IMPL_PUT_BOTH(walk, width, 0, "%stransformer.resblocks.%d.ffn_norm", vit, (int)i);
    }
}
static void vp_impl_walk_molmoe_block(vp_impl_walk *walk, const vp_model_config *config, int32_t block) {
    static const char prefix[] = "model.transformer.blocks.";
    int64_t d = config->d_model, dim = config->expert_dim;
    vp_impl_walk_put(walk, d, 0, "%s%d.attn.q_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.attn.k_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, 3 * d, d, "%s%d.attn.att_proj.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, d, "%s%d.attn.attn_out.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.attn.attn_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, config->expert_count, d, "%s%d.mlp.gate.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.mlp.ff_norm.weight", prefix, (int)block);
    for (int32_t e = 0; e < config->expert_count; e++) {
        vp_impl_walk_put(walk, dim, d, "%s%d.mlp.experts.%d.gate_proj.weight", prefix, (int)block, (int)e);
        vp_impl_walk_put(walk, dim, d, "%s%d.mlp.experts.%d.up_proj.weight", prefix, (int)block, (int)e);
        vp_impl_walk_put(walk, d, dim, "%s%d.mlp.experts.%d.down_proj.weight", prefix, (int)block, (int)e);
    }
}
static void vp_impl_walk_molmo_block(vp_impl_walk *walk, const vp_model_config *config, int32_t block) {
    static const char prefix[] = "model.transformer.blocks.";
    int64_t d = config->d_model, q = (int64_t)config->head_count * config->head_dim,
            kv = (int64_t)config->kv_head_count * config->head_dim;
    vp_impl_walk_put(walk, q + 2 * kv, d, "%s%d.att_proj.weight", prefix, (int)block);
    if (config->qkv_bias) vp_impl_walk_put(walk, q + 2 * kv, 0, "%s%d.att_proj.bias", prefix, (int)block);
    if (config->qk_norm) vp_impl_walk_put(walk, q, 0, "%s%d.q_norm.weight", prefix, (int)block);
    if (config->qk_norm) vp_impl_walk_put(walk, kv, 0, "%s%d.k_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, q, "%s%d.attn_out.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.attn_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, 2 * (int64_t)config->mlp_dim, d, "%s%d.ff_proj.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, config->mlp_dim, "%s%d.ff_out.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.ff_norm.weight", prefix, (int)block);
}
static void vp_impl_walk_molmo2_block(vp_impl_walk *walk, const vp_model_config *config, int32_t block) {
    static const char prefix[] = "model.transformer.blocks.";
    int64_t d = config->d_model, q = (int64_t)config->head_count * config->head_dim,
            kv = (int64_t)config->kv_head_count * config->head_dim, whole = config->qk_norm == VP_QK_NORM_WHOLE;
    vp_impl_walk_put(walk, d, 0, "%s%d.attn_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, 0, "%s%d.ff_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, q + 2 * kv, d, "%s%d.self_attn.att_proj.weight", prefix, (int)block);
    if (config->qkv_bias) vp_impl_walk_put(walk, q + 2 * kv, 0, "%s%d.self_attn.att_proj.bias", prefix, (int)block);
    vp_impl_walk_put(walk, whole ? q : config->head_dim, 0, "%s%d.self_attn.q_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, whole ? kv : config->head_dim, 0, "%s%d.self_attn.k_norm.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, q, "%s%d.self_attn.attn_out.weight", prefix, (int)block);
    vp_impl_walk_put(walk, 2 * (int64_t)config->mlp_dim, d, "%s%d.mlp.ff_proj.weight", prefix, (int)block);
    vp_impl_walk_put(walk, d, config->mlp_dim, "%s%d.mlp.ff_out.weight", prefix, (int)block);
}
static void vp_impl_walk_molmo(vp_impl_walk *walk, const vp_model_config *config) {
    int moe = config->architecture == VP_ARCHITECTURE_MOLMOE, second = config->architecture == VP_ARCHITECTURE_MOLMO2;
    int64_t d = config->d_model, start = walk->at, front;
    vp_impl_walk_put(walk, config->embedding_size, d, "model.transformer.wte.embedding");
    if (config->additional_vocab_size || !second)
        vp_impl_walk_put(walk, config->additional_vocab_size, d, "model.transformer.wte.new_embedding");
    vp_impl_walk_put(walk, d, 0, "model.transformer.ln_f.weight");
    front = walk->at - start;
    for (int32_t b = 0; b < config->block_count; b++) {
        if (b && vp_impl_walk_past(walk, (walk->at - start - front) / b)) continue; /* blocks have equal counts */
        if (moe) vp_impl_walk_molmoe_block(walk, config, b);
        else if (second) vp_impl_walk_molmo2_block(walk, config, b);
        else vp_impl_walk_molmo_block(walk, config, b);
    }
    vp_impl_walk_molmo_vision(walk, config);
    vp_impl_walk_put(walk, config->embedding_size, d,
                     moe || second ? "lm_head.weight" : "model.transformer.ff_out.weight");
}

/* ---- language models as transformers names them */
static void vp_impl_walk_layer(vp_impl_walk *walk, const vp_model_config *config, const char *prefix, int32_t layer) {
    int64_t d = config->d_model, q = (int64_t)config->head_count * config->head_dim,
            kv = (int64_t)config->kv_head_count * config->head_dim, whole = config->qk_norm == VP_QK_NORM_WHOLE;
    static const char names[] = "qkv";
    int32_t i, e, dim = config->expert_count ? config->expert_dim : config->mlp_dim;
    vp_impl_walk_put(walk, d, 0, "%slayers.%d.input_layernorm.weight", prefix, (int)layer);
    vp_impl_walk_put(walk, d, 0, "%slayers.%d.post_attention_layernorm.weight", prefix, (int)layer);
    for (i = 0; i < 2 && config->norm_around; i++)
        vp_impl_walk_put(walk, d, 0, "%slayers.%d.%s_feedforward_layernorm.weight", prefix, (int)layer,
                         i ? "post" : "pre");
    for (i = 0; i < 3; i++) {
        int64_t rows = i ? kv : q;
        vp_impl_walk_put(walk, rows, d, "%slayers.%d.self_attn.%c_proj.weight", prefix, (int)layer, names[i]);
        if (config->qkv_bias)
            vp_impl_walk_put(walk, rows, 0, "%slayers.%d.self_attn.%c_proj.bias", prefix, (int)layer, names[i]);
        if (i < 2 && config->qk_norm)
            vp_impl_walk_put(walk, whole ? rows : config->head_dim, 0, "%slayers.%d.self_attn.%c_norm.weight", prefix,
                             (int)layer, names[i]);
    }
    vp_impl_walk_put(walk, d, q, "%slayers.%d.self_attn.o_proj.weight", prefix, (int)layer);
    if (config->expert_count)
        vp_impl_walk_put(walk, config->expert_count, d, "%slayers.%d.mlp.gate.weight", prefix, (int)layer);
    if (config->architecture == VP_ARCHITECTURE_QWEN3_VL_MOE) { /* all experts of a layer in one tensor */
        vp_impl_walk_put(walk, config->expert_count, d, "%slayers.%d.mlp.experts.gate_up_proj", prefix, (int)layer);
        vp_impl_walk_behind(walk, 2 * dim);
        vp_impl_walk_put(walk, config->expert_count, dim, "%slayers.%d.mlp.experts.down_proj", prefix, (int)layer);
        vp_impl_walk_behind(walk, d);
        return;
    }
    for (e = 0; e < (config->expert_count ? config->expert_count : 1); e++) {
        char mlp[32] = "mlp.";
        if (config->expert_count) vp_impl_print(mlp, sizeof mlp, "mlp.experts.%d.", (int)e);
        vp_impl_walk_put(walk, dim, d, "%slayers.%d.%sgate_proj.weight", prefix, (int)layer, mlp);
        vp_impl_walk_put(walk, dim, d, "%slayers.%d.%sup_proj.weight", prefix, (int)layer, mlp);
        vp_impl_walk_put(walk, d, dim, "%slayers.%d.%sdown_proj.weight", prefix, (int)layer, mlp);
    }
}
static void vp_impl_walk_language(vp_impl_walk *walk, const vp_model_config *config, const char *prefix,
                                  const char *head) {
    int64_t start = walk->at;
    vp_impl_walk_put(walk, config->embedding_size, config->d_model, "%sembed_tokens.weight", prefix);
    vp_impl_walk_put(walk, config->d_model, 0, "%snorm.weight", prefix);
    for (int32_t i = 0; i < config->block_count; i++) {
        if (i && vp_impl_walk_past(walk, (walk->at - start - 2) / i)) continue; /* layers have equal counts */
        vp_impl_walk_layer(walk, config, prefix, i);
    }
    if (!config->tied_head) vp_impl_walk_put(walk, config->embedding_size, config->d_model, "%s.weight", head);
}

/* ---- towers and connectors */
/* CLIP and SigLIP; CLIP has a class token and an initial norm, SigLIP a patch bias */
static void vp_impl_walk_clip(vp_impl_walk *walk, const vp_model_config *config, const char *prefix) {
    static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                        "self_attn.out_proj"};
    int64_t width = config->vit_width, mlp = config->vit_mlp_dim;
    if (config->vit_class_token) vp_impl_walk_put(walk, width, 0, "%sembeddings.class_embedding", prefix);
    vp_impl_walk_put(walk, width, 3, "%sembeddings.patch_embedding.weight", prefix);
    vp_impl_walk_reshape(walk, 0, config->geometry.patch_px);
    if (!config->vit_class_token) vp_impl_walk_put(walk, width, 0, "%sembeddings.patch_embedding.bias", prefix);
    vp_impl_walk_put(walk, config->vit_positions, width, "%sembeddings.position_embedding.weight", prefix);
    if (config->vit_class_token) VP_IMPL_PUT_BOTH(walk, width, 0, "%spre_layrnorm", prefix);
    for (int32_t i = 0; i < config->vit_block_count; i++) {
        if (vp_impl_walk_past(walk, 16)) continue;
        VP_IMPL_PUT_BOTH(walk, width, 0, "%sencoder.layers.%d.layer_norm1", prefix, (int)i);
        VP_IMPL_PUT_BOTH(walk, width, 0, "%sencoder.layers.%d.layer_norm2", prefix, (int)i);
        for (int32_t k = 0; k < 4; k++)
            VP_IMPL_PUT_BOTH(walk, width, width, "%sencoder.layers.%d.%s", prefix, (int)i, names[k]);
        VP_IMPL_PUT_BOTH(walk, mlp, width, "%sencoder.layers.%d.mlp.fc1", prefix, (int)i);
        VP_IMPL_PUT_BOTH(walk, width, mlp, "%sencoder.layers.%d.mlp.fc2", prefix, (int)i);
    }
    VP_IMPL_PUT_BOTH(walk, width, 0, "%spost_layernorm", prefix);
}
/* the names of InternVL's tower; the original form has q, k and v in one matrix */
typedef struct vp_impl_intern_names {
    const char *prefix, *class_token, *patch, *positions, *layers, *scale, *norms[4], *separate[3], *projection;
} vp_impl_intern_names;
static const vp_impl_intern_names vp_impl_intern_hf = {
    "vision_tower.", "cls_token", "patch_embeddings.projection", "position_embeddings", "encoder.layer", "lambda_",
    {"layernorm_before", "layernorm_after", "attention.q_norm", "attention.k_norm"},
    {"attention.q_proj", "attention.k_proj", "attention.v_proj"}, "attention.projection_layer"};
static const vp_impl_intern_names vp_impl_intern_chat = {
    "vision_model.", "class_embedding", "patch_embedding", "position_embedding", "encoder.layers", "ls",
    {"norm1", "norm2", "attn.q_norm", "attn.k_norm"}, {NULL, NULL, NULL}, "attn.proj"};
static void vp_impl_walk_intern(vp_impl_walk *walk, const vp_model_config *config, const vp_impl_intern_names *names) {
    const char *prefix = names->prefix, *layers = names->layers;
    const int64_t width = config->vit_width, mlp = config->vit_mlp_dim, rows = names->separate[0] ? width : 3 * width;
    vp_impl_walk_put(walk, width, 0, "%sembeddings.%s", prefix, names->class_token);
    vp_impl_walk_reshape(walk, 2, 0);
    vp_impl_walk_put(walk, width, 3, "%sembeddings.%s.weight", prefix, names->patch);
    vp_impl_walk_reshape(walk, 0, config->geometry.patch_px);
    vp_impl_walk_put(walk, width, 0, "%sembeddings.%s.bias", prefix, names->patch);
    vp_impl_walk_put(walk, config->vit_positions, width, "%sembeddings.%s", prefix, names->positions);
    vp_impl_walk_reshape(walk, 1, 0);
    for (int i = 0; i < config->vit_block_count; i++) {
        for (int k = 1; k <= 2; k++)
            vp_impl_walk_put(walk, width, 0, "%s%s.%d.%s%d", prefix, layers, i, names->scale, k);
        for (int k = 0; k < (config->vit_qk_norm ? 4 : 2); k++) { /* before attention and MLP, then of q and k */
            vp_impl_walk_put(walk, width, 0, "%s%s.%d.%s.weight", prefix, layers, i, names->norms[k]);
            if (k < 2 && !config->vit_rms)
                vp_impl_walk_put(walk, width, 0, "%s%s.%d.%s.bias", prefix, layers, i, names->norms[k]);
        }
        for (int k = 0; k < (names->separate[0] ? 3 : 1); k++) {
            const char *name = names->separate[k] ? names->separate[k] : "attn.qkv";
            vp_impl_walk_put(walk, rows, width, "%s%s.%d.%s.weight", prefix, layers, i, name);
            if (config->vit_qkv_bias) vp_impl_walk_put(walk, rows, 0, "%s%s.%d.%s.bias", prefix, layers, i, name);
        }
        VP_IMPL_PUT_BOTH(walk, width, width, "%s%s.%d.%s", prefix, layers, i, names->projection);
        VP_IMPL_PUT_BOTH(walk, mlp, width, "%s%s.%d.mlp.fc1", prefix, layers, i);
        VP_IMPL_PUT_BOTH(walk, width, mlp, "%s%s.%d.mlp.fc2", prefix, layers, i);
    }
}
/* two matrices with GELU between, after an optional norm */
static void vp_impl_walk_projector(vp_impl_walk *walk, const vp_model_config *config) {
    static const char prefix[] = "multi_modal_projector.";
    int64_t in = (int64_t)config->vit_width * config->geometry.pool * config->geometry.pool;
    if (config->connector == VP_CONNECTOR_NORM_MLP) VP_IMPL_PUT_BOTH(walk, in, 0, "%slayer_norm", prefix);
    VP_IMPL_PUT_BOTH(walk, config->projector_dim, in, "%slinear_1", prefix);
    VP_IMPL_PUT_BOTH(walk, config->d_model, config->projector_dim, "%slinear_2", prefix);
}

/* ---- Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE */
static void vp_impl_walk_qwen_block(vp_impl_walk *walk, const vp_model_config *config, const char *tower, int block) {
    int64_t width = config->vit_width, dim = config->vit_mlp_dim;
    for (int i = 1; i <= 2; i++) {
        vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm%d.weight", tower, block, i);
        if (!config->vit_rms) vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm%d.bias", tower, block, i);
    }
    VP_IMPL_PUT_BOTH(walk, 3 * width, width, "%sblocks.%d.attn.qkv", tower, block);
    VP_IMPL_PUT_BOTH(walk, width, width, "%sblocks.%d.attn.proj", tower, block);
    if (config->vit_gated) {
        VP_IMPL_PUT_BOTH(walk, dim, width, "%sblocks.%d.mlp.gate_proj", tower, block);
        VP_IMPL_PUT_BOTH(walk, dim, width, "%sblocks.%d.mlp.up_proj", tower, block);
        VP_IMPL_PUT_BOTH(walk, width, dim, "%sblocks.%d.mlp.down_proj", tower, block);
    } else {
        VP_IMPL_PUT_BOTH(walk, dim, width, "%sblocks.%d.mlp.linear_fc1", tower, block);
        VP_IMPL_PUT_BOTH(walk, width, dim, "%sblocks.%d.mlp.linear_fc2", tower, block);
    }
}
static void vp_impl_walk_qwen_merger(vp_impl_walk *walk, const vp_model_config *config, const char *name, int level) {
    const int64_t in = config->projector_dim, d = config->d_model;
    char merger[64];
    vp_impl_print(merger, sizeof merger, level < 0 ? "%smerger" : "%sdeepstack_merger_list.%d", name, level);
    if (config->vit_rms) {
        vp_impl_walk_put(walk, config->vit_width, 0, "%s.ln_q.weight", merger);
        VP_IMPL_PUT_BOTH(walk, in, in, "%s.mlp.0", merger);
        VP_IMPL_PUT_BOTH(walk, d, in, "%s.mlp.2", merger);
        return;
    }
    VP_IMPL_PUT_BOTH(walk, level < 0 ? config->vit_width : in, 0, "%s.norm", merger);
    VP_IMPL_PUT_BOTH(walk, in, in, "%s.linear_fc1", merger);
    VP_IMPL_PUT_BOTH(walk, d, in, "%s.linear_fc2", merger);
}
static void vp_impl_walk_qwen(vp_impl_walk *walk, const vp_model_config *config) {
    const int third = config->architecture != VP_ARCHITECTURE_QWEN2_5_VL;
    const char *const tower = third ? "model.visual." : "visual.";
    vp_impl_walk_language(walk, config, third ? "model.language_model." : "model.", "lm_head");
    vp_impl_walk_put(walk, config->vit_width, 3, "%spatch_embed.proj.weight", tower);
    vp_impl_walk_behind(walk, 2); /* two frames */
    vp_impl_walk_behind(walk, config->geometry.patch_px);
    vp_impl_walk_behind(walk, config->geometry.patch_px);
    if (third) {
        vp_impl_walk_put(walk, config->vit_width, 0, "%spatch_embed.proj.bias", tower);
        vp_impl_walk_put(walk, (int64_t)config->vit_table_side * config->vit_table_side, config->vit_width,
                         "%spos_embed.weight", tower);
    }
    for (int32_t i = 0; i < config->vit_block_count; i++) vp_impl_walk_qwen_block(walk, config, tower, (int)i);
    vp_impl_walk_qwen_merger(walk, config, tower, -1);
    for (int32_t i = 0; i < config->deepstack_count; i++) vp_impl_walk_qwen_merger(walk, config, tower, (int)i);
}

static void vp_impl_walk_model(vp_impl_walk *walk, const vp_model_config *config) {
    int64_t block = (int64_t)config->geometry.pool * config->geometry.pool * config->vit_width;
    switch (config->architecture) {
    case VP_ARCHITECTURE_LLAMA:
    case VP_ARCHITECTURE_QWEN2:
    case VP_ARCHITECTURE_QWEN3:
    case VP_ARCHITECTURE_GEMMA3_TEXT:
    case VP_ARCHITECTURE_QWEN3_MOE:
    case VP_ARCHITECTURE_OLMOE: vp_impl_walk_language(walk, config, "model.", "lm_head"); break;
    case VP_ARCHITECTURE_LLAVA:
        vp_impl_walk_language(walk, config, "language_model.model.", "language_model.lm_head");
        vp_impl_walk_clip(walk, config, "vision_tower.vision_model.");
        vp_impl_walk_projector(walk, config);
        break;
    case VP_ARCHITECTURE_IDEFICS3:
    case VP_ARCHITECTURE_SMOLVLM:
        vp_impl_walk_language(walk, config, "model.text_model.", "lm_head");
        vp_impl_walk_clip(walk, config, "model.vision_model.");
        vp_impl_walk_put(walk, config->d_model, block, "model.connector.modality_projection.proj.weight");
        break;
    case VP_ARCHITECTURE_INTERNVL:
        vp_impl_walk_language(walk, config, "language_model.model.", "language_model.lm_head");
        vp_impl_walk_intern(walk, config, &vp_impl_intern_hf);
        vp_impl_walk_projector(walk, config);
        break;
    case VP_ARCHITECTURE_INTERNVL_CHAT:
        vp_impl_walk_language(walk, config, "language_model.model.", "language_model.lm_head");
        vp_impl_walk_intern(walk, config, &vp_impl_intern_chat);
        VP_IMPL_PUT_BOTH(walk, block, 0, "%s", "mlp1.0");
        VP_IMPL_PUT_BOTH(walk, config->projector_dim, block, "%s", "mlp1.1");
        VP_IMPL_PUT_BOTH(walk, config->d_model, config->projector_dim, "%s", "mlp1.3");
        break;
    case VP_ARCHITECTURE_QWEN2_5_VL:
    case VP_ARCHITECTURE_QWEN3_VL:
    case VP_ARCHITECTURE_QWEN3_VL_MOE: vp_impl_walk_qwen(walk, config); break;
    case VP_ARCHITECTURE_GEMMA3:
        vp_impl_walk_language(walk, config, "language_model.model.", "language_model.lm_head");
        vp_impl_walk_clip(walk, config, "vision_tower.vision_model.");
        vp_impl_walk_put(walk, config->vit_width, 0, "multi_modal_projector.mm_soft_emb_norm.weight");
        vp_impl_walk_put(walk, config->vit_width, config->d_model, "multi_modal_projector.mm_input_projection_weight");
        break;
    default: vp_impl_walk_molmo(walk, config); break;
    }
}

VP_API int64_t vp_model_tensor_count(const vp_model_config *config) {
    vp_impl_walk walk = {-1, 0, NULL};
    vp_impl_walk_model(&walk, config);
    return walk.at;
}

VP_API vp_result vp_model_tensor(const vp_model_config *config, int64_t index, vp_tensor_spec *spec) {
    vp_impl_walk walk;
    vp_tensor_spec found = {0};
    if (!config || !spec || index < 0) return VP_ERR_RANGE;
    walk.wanted = index; walk.at = 0; walk.spec = &found;
    vp_impl_walk_model(&walk, config);
    if (!found.dimensions) return VP_ERR_RANGE;
    *spec = found;
    return VP_OK;
}
