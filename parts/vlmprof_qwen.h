/* vlmprof_qwen.h - v0.2.0 - configs and tensors of Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE - MIT licence
 *
 * Two pieces of vlmprof_checkpoint.h, which includes them where their place is; it has no interface of its own. Needs
 * vlmprof.h. The manual stands in vlmprof.h.
 * source: transformers 5.23.0, models/{qwen2_5_vl,qwen3_vl,qwen3_vl_moe}/configuration_*.py and modeling_*.py */
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

/* ------------------------------------------------------------------------------------------------------ config.json */
#ifdef VP_IMPL_QWEN_CONFIG
/* as vp_impl_languages */
static const vp_impl_language vp_impl_qwen_languages[3] = {
    {"qwen2_5_vl_text", 152064, 8192, 29568, 80, 64, 8, 0, 32768, 1, 1e-5, VP_QK_NORM_NONE, 1e6},
    {"qwen3_vl_text", 151936, 4096, 22016, 32, 32, 32, 128, 128000, 0, 1e-6, VP_QK_NORM_HEAD, 5e5},
    {"qwen3_vl_moe_text", 151936, 2048, 5632, 24, 16, 16, 0, 128000, 0, 1e-6, VP_QK_NORM_HEAD, 5e5},
};

/* the pairs of a head that turn by time, row and column */
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
        vp_impl_fields_fail(&rope, VP_ERR_MISMATCH, "mrope_section", "does not sum up to half of head_dim");
    text->result = rope.result;
}

static void vp_impl_qwen_language(vp_impl_fields *fields, vp_model_config *config) {
    const int moe = config->architecture == VP_ARCHITECTURE_QWEN3_VL_MOE;
    const vp_impl_language *kind = &vp_impl_qwen_languages[config->architecture - VP_ARCHITECTURE_QWEN2_5_VL];
    vp_impl_fields text;
    config->tied_head = vp_impl_fields_flag(fields, "tie_word_embeddings", 0);
    text = vp_impl_fields_inner(fields, "text_config", "text_config.", kind != vp_impl_qwen_languages);
    if (fields->result != VP_OK) return;
    if (text.object == VP_JSON_NONE) text = *fields; /* published configs of Qwen2.5-VL */
    else if (vp_impl_fields_get(&text, "model_type", 1) != VP_JSON_NONE
             && !vp_impl_fields_is(&text, "model_type", kind->model_type))
        vp_impl_fields_fail(&text, VP_ERR_UNSUPPORTED, "model_type", "is not this model's language model");
    vp_impl_config_llama(&text, kind, config);
    vp_impl_qwen_sections(&text, config);
    if (moe) {
        static const vp_impl_setting settings[] = {{"decoder_sparse_step", "1", "1", "1"},
                                                   {"mlp_only_layers", "[]", "null", "[]"}};
        const char *count = "num_experts";
        vp_impl_fields_settings(&text, settings, sizeof settings / sizeof settings[0]);
        if (text.result == VP_OK && vp_impl_fields_get(&text, count, 1) == VP_JSON_NONE) count = "num_local_experts";
        config->mlp_dim = 0;
        config->norm_topk = 1;
        config->expert_dim = vp_impl_fields_int(&text, "moe_intermediate_size", 1, 1 << 20, 1408);
        config->expert_count = vp_impl_fields_int(&text, count, 1, 1024, 60);
        config->top_k = vp_impl_fields_int(&text, "num_experts_per_tok", 1, 1024, 4);
        if (text.result == VP_OK && config->top_k > config->expert_count)
            vp_impl_fields_fail(&text, VP_ERR_RANGE, "num_experts_per_tok", "is above the number of experts");
    }
    fields->result = text.result;
}

/* which blocks see the whole picture; the others see squares of window_size pixels */
static void vp_impl_qwen_windows(vp_impl_fields *vision, vp_model_config *config) {
    int32_t blocks[64] = {7, 15, 23, 31}, count, i, unit = config->geometry.crop_px,
            side = vp_impl_fields_int(vision, "window_size", 1, 65536, 112);
    count = vp_impl_fields_ints(vision, "fullatt_block_indexes", 0, 63, 64, blocks);
    if (vision->result != VP_OK) return;
    if (vp_impl_fields_get(vision, "fullatt_block_indexes", 1) == VP_JSON_NONE) count = 4;
    if (side % unit)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "window_size", "is not a whole number of merged patches");
    config->vit_window = side / unit;
    for (i = 0; i < count; i++) config->vit_full_blocks |= UINT64_C(1) << blocks[i];
}
/* the learned positions, and the blocks whose outputs go to the language model's first blocks */
static void vp_impl_qwen_deepstack(vp_impl_fields *vision, vp_model_config *config) {
    int32_t places = vp_impl_fields_int(vision, "num_position_embeddings", 1, 1 << 20, 2304), side = 1, i,
            *layers = config->vit_layers;
    int32_t taps[VP_VIT_LAYERS_MAX - 1] = {8, 16, 24},
            count = vp_impl_fields_ints(vision, "deepstack_visual_indexes", 0, config->vit_block_count - 1,
                                        VP_VIT_LAYERS_MAX - 1, taps);
    if (vision->result != VP_OK) return;
    if (vp_impl_fields_get(vision, "deepstack_visual_indexes", 1) == VP_JSON_NONE) count = VP_VIT_LAYERS_MAX - 1;
    while (side * side < places) side++;
    if (side * side != places)
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "num_position_embeddings", "is not a square");
    config->vit_table_side = side;
    config->deepstack_count = count;
    for (i = 0; i < count; i++) {
        if (taps[i] >= config->vit_block_count || (i && taps[i] <= taps[i - 1]) || i >= config->block_count)
            vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "deepstack_visual_indexes",
                                "must be ascending blocks of the tower, at most as many as the language model has");
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
    config->vit_rope_theta = rope.object == VP_JSON_NONE ? 1e4 : vp_impl_fields_double(&rope, "rope_theta", 0, 1e30, 1e4);
    if (vision->result == VP_OK) vision->result = rope.result;
    if (vision->result == VP_OK
        && vp_impl_fields_int(vision, "out_hidden_size", 1, 65536, 3584) != config->d_model && vision->result == VP_OK)
        vp_impl_fields_fail(vision, VP_ERR_MISMATCH, "out_hidden_size", "is not the language model's hidden_size");
    if (vision->result == VP_OK && config->vit_width % (4 * config->vit_head_count))
        vp_impl_fields_fail(vision, VP_ERR_UNSUPPORTED, "hidden_size",
                            "is not a multiple of 4 num_heads: heads are turned by row and column");
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
    vp_impl_fields vision;
    int i;
    vp_impl_fields_settings(fields, settings, 1);
    vp_impl_qwen_language(fields, config);
    vision = vp_impl_fields_inner(fields, "vision_config", "vision_config.", 1);
    if (fields->result != VP_OK) return fields->result;
    vp_impl_qwen_tower(&vision, config);
    fields->result = vision.result;
    for (i = 0; i < 3 && config->architecture != VP_ARCHITECTURE_QWEN2_5_VL; i++)
        config->geometry.mean[i] = config->geometry.std[i] = 0.5f;
    vp_impl_config_colours(fields, preprocessor, &config->geometry);
    return fields->result;
}
#endif

/* ---------------------------------------------------------------------------------------------------------- tensors */
#ifdef VP_IMPL_QWEN_WALK
static void vp_impl_walk_qwen_block(vp_impl_walk *walk, const vp_model_config *config, const char *tower, int block) {
    int64_t width = config->vit_width, dim = config->vit_mlp_dim;
    vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm1.weight", tower, block);
    if (!config->vit_rms) vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm1.bias", tower, block);
    vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm2.weight", tower, block);
    if (!config->vit_rms) vp_impl_walk_put(walk, width, 0, "%sblocks.%d.norm2.bias", tower, block);
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
    int32_t i;
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
    for (i = 0; i < config->vit_block_count; i++) vp_impl_walk_qwen_block(walk, config, tower, (int)i);
    vp_impl_walk_qwen_merger(walk, config, tower, -1);
    for (i = 0; i < config->deepstack_count; i++) vp_impl_walk_qwen_merger(walk, config, tower, (int)i);
}
#endif
