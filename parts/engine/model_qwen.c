/* model_qwen.c - Qwen2.5-VL, Qwen3-VL and Qwen3-VL-MoE: towers for images of any size, mergers, Qwen2 or Qwen3
 *
 * source: transformers 5.23.0, models/{qwen2_5_vl,qwen3_vl,qwen3_vl_moe}/modeling_*.py. Qwen2.5-VL's tower has windows,
 * RMS norms and SwiGLU; Qwen3-VL's has a stretched table of positions, and also provides features for the first blocks
 * of the language model. Tensors have the names and layouts of published checkpoints. */
#include "description.h"

#define LAYER "%sblocks.%d."
static void vit_block_weights(vk_pass *pass, vk_vit_block *block, const vp_model_config *config, const char *tower,
                              int index) {
    int width = config->vit_width, hidden = config->vit_mlp_dim, norm = config->vit_rms ? 0 : VK_BIAS;
    vk_pass_norm(pass, &block->attention_norm, width, norm, LAYER "norm1", tower, index);
    vk_pass_norm(pass, &block->ffn_norm, width, norm, LAYER "norm2", tower, index);
    vk_pass_linear(pass, &block->qkv, 3 * width, width, VK_BIAS, LAYER "attn.qkv", tower, index);
    vk_pass_linear(pass, &block->wo, width, width, VK_BIAS, LAYER "attn.proj", tower, index);
    if (config->vit_gated) {
        vk_pass_place(pass, &block->w1, 2 * hidden, width, VK_BIAS);
        vk_pass_rows(pass, &block->w1, 0, hidden, LAYER "mlp.gate_proj", tower, index);
        vk_pass_rows(pass, &block->w1, hidden, hidden, LAYER "mlp.up_proj", tower, index);
        vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, LAYER "mlp.down_proj", tower, index);
        return;
    }
    vk_pass_linear(pass, &block->w1, hidden, width, VK_BIAS, LAYER "mlp.linear_fc1", tower, index);
    vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, LAYER "mlp.linear_fc2", tower, index);
}

/* the patch embedding stays in fp32, which costs nothing, because bf16 cannot represent the sum of two frames' weights
 * exactly */
static void qwen2_5_vl_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    const char *const tower = "visual.";
    int merged = config->projector_dim;
    vk_pass_language(pass, model, config, "model.", "lm_head");
    vk_pass_patches(pass, &model->patch, config->vit_width, config->geometry.patch_px, 2, VK_FP32,
                    "visual.patch_embed.proj");
    for (int b = 0; b < config->vit_blocks_needed; b++) vit_block_weights(pass, &model->vit[b], config, tower, b);
    vk_pass_norm(pass, &model->projector_norm, config->vit_width, 0, "visual.merger.ln_q");
    vk_pass_linear(pass, &model->projector_in, merged, merged, VK_BIAS, "visual.merger.mlp.0");
    vk_pass_linear(pass, &model->projector_down, config->d_model, merged, VK_BIAS, "visual.merger.mlp.2");
}

static void qwen3_vl_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    const char *const tower = "model.visual.";
    int merged = config->projector_dim, side = config->vit_table_side;
    vk_pass_language(pass, model, config, "model.language_model.", "lm_head");
    vk_pass_patches(pass, &model->patch, config->vit_width, config->geometry.patch_px, 2, VK_FP32 | VK_BIAS,
                    "model.visual.patch_embed.proj");
    vk_pass_floats(pass, &model->positions, side * side, config->vit_width, "%spos_embed.weight", tower);
    for (int b = 0; b < config->vit_blocks_needed; b++) vit_block_weights(pass, &model->vit[b], config, tower, b);
    vk_pass_norm(pass, &model->projector_norm, config->vit_width, VK_BIAS, "%smerger.norm", tower);
    vk_pass_linear(pass, &model->projector_in, merged, merged, VK_BIAS, "%smerger.linear_fc1", tower);
    vk_pass_linear(pass, &model->projector_down, config->d_model, merged, VK_BIAS, "%smerger.linear_fc2", tower);
    for (int l = 0; l < config->deepstack_count; l++) {
        vk_merger *merger = &model->deepstack[l];
        vk_pass_norm(pass, &merger->norm, merged, VK_BIAS, "%sdeepstack_merger_list.%d.norm", tower, l);
        vk_pass_linear(pass, &merger->in, merged, merged, VK_BIAS, "%sdeepstack_merger_list.%d.linear_fc1", tower, l);
        vk_pass_linear(pass, &merger->down, config->d_model, merged, VK_BIAS, "%sdeepstack_merger_list.%d.linear_fc2",
                       tower, l);
    }
}

static vp_result check(const vp_model_config *config, vp_error *error) {
    if (6 * config->geometry.patch_px * config->geometry.patch_px > VK_PATCH_VALUES_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "patch_size", "must be at most 26 (2 frames per patch)");
    return VP_OK;
}

const vk_description vk_qwen2_5_vl = {"Qwen2.5-VL", check, qwen2_5_vl_weights, vk_common_draws, NULL};
const vk_description vk_qwen3_vl = {"Qwen3-VL", check, qwen3_vl_weights, vk_common_draws, NULL};
