/* model_internvl.c - InternVL3 and 3.5: InternViT-300M or 6B, a norm and two matrices over windows of patches, Qwen2,
 * Qwen3 or Llama; in transformers' form or with the original names
 *
 * source: transformers 5.23.0, models/internvl/modeling_internvl.py; convert_internvl_weights_to_hf.py of
 * huggingface/transformers 015d3b2; OpenGVLab/InternVL, modeling_intern_vit.py and modeling_internvl_chat.py */
#include "description.h"

#define TOWER "vision_tower."
#define LAYER TOWER "encoder.layer.%d."
static void vit_block_weights(vk_pass *pass, vk_vit_block *block, const vp_model_config *config, int index) {
    int width = config->vit_width, hidden = config->vit_mlp_dim, norm = config->vit_rms ? 0 : VK_BIAS,
        bias = config->vit_qkv_bias ? VK_BIAS : 0;
    vk_pass_floats(pass, &block->scale1, 1, width, LAYER "lambda_1", index);
    vk_pass_floats(pass, &block->scale2, 1, width, LAYER "lambda_2", index);
    vk_pass_norm(pass, &block->attention_norm, width, norm, LAYER "layernorm_before", index);
    vk_pass_norm(pass, &block->ffn_norm, width, norm, LAYER "layernorm_after", index);
    if (config->vit_qk_norm) {
        vk_pass_norm(pass, &block->q_norm, width, 0, LAYER "attention.q_norm", index);
        vk_pass_norm(pass, &block->k_norm, width, 0, LAYER "attention.k_norm", index);
        vk_pass_linear(pass, &block->q, width, width, bias, LAYER "attention.q_proj", index);
        vk_pass_linear(pass, &block->k, width, width, bias, LAYER "attention.k_proj", index);
        vk_pass_linear(pass, &block->qkv, width, width, bias, LAYER "attention.v_proj", index);
    } else {
        vk_pass_place(pass, &block->qkv, 3 * width, width, bias);
        vk_pass_rows(pass, &block->qkv, 0, width, LAYER "attention.q_proj", index);
        vk_pass_rows(pass, &block->qkv, width, width, LAYER "attention.k_proj", index);
        vk_pass_rows(pass, &block->qkv, 2 * width, width, LAYER "attention.v_proj", index);
    }
    vk_pass_linear(pass, &block->wo, width, width, VK_BIAS, LAYER "attention.projection_layer", index);
    vk_pass_linear(pass, &block->w1, hidden, width, VK_BIAS, LAYER "mlp.fc1", index);
    vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, LAYER "mlp.fc2", index);
}

static void internvl_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    int width = config->vit_width;
    vk_pass_language(pass, model, config, "language_model.model.", "language_model.lm_head");
    vk_pass_floats(pass, &model->class_embedding, 1, width, TOWER "embeddings.cls_token");
    vk_pass_floats(pass, &model->positions, config->vit_positions, width, TOWER "embeddings.position_embeddings");
    vk_pass_patches(pass, &model->patch, width, config->geometry.patch_px, 1, VK_BIAS,
                    TOWER "embeddings.patch_embeddings.projection");
    for (int b = 0; b < config->vit_blocks_needed; b++) vit_block_weights(pass, &model->vit[b], config, b);
    vk_pass_projector(pass, model, config, "multi_modal_projector.");
}

const vk_description vk_internvl = {"InternVL", NULL, internvl_weights, vk_common_draws, NULL};

/* ---- the original form: q, k and v are one matrix */
#undef TOWER
#undef LAYER
#define TOWER "vision_model."
#define LAYER TOWER "encoder.layers.%d."
static void chat_block_weights(vk_pass *pass, vk_vit_block *block, const vp_model_config *config, int index) {
    int width = config->vit_width, hidden = config->vit_mlp_dim, norm = config->vit_rms ? 0 : VK_BIAS;
    vk_pass_floats(pass, &block->scale1, 1, width, LAYER "ls1", index);
    vk_pass_floats(pass, &block->scale2, 1, width, LAYER "ls2", index);
    vk_pass_norm(pass, &block->attention_norm, width, norm, LAYER "norm1", index);
    vk_pass_norm(pass, &block->ffn_norm, width, norm, LAYER "norm2", index);
    if (config->vit_qk_norm) {
        vk_linear *const parts[] = {&block->q, &block->k, &block->qkv};
        vk_pass_norm(pass, &block->q_norm, width, 0, LAYER "attn.q_norm", index);
        vk_pass_norm(pass, &block->k_norm, width, 0, LAYER "attn.k_norm", index);
        for (int i = 0; i < 3; i++) {
            const vk_piece piece = {i * width, 3 * width, 0, 1, 0};
            vk_pass_place(pass, parts[i], width, width, 0);
            vk_pass_piece(pass, parts[i], 0, width, &piece, LAYER "attn.qkv.weight", index);
        }
    } else
        vk_pass_linear(pass, &block->qkv, 3 * width, width, config->vit_qkv_bias ? VK_BIAS : 0, LAYER "attn.qkv",
                       index);
    vk_pass_linear(pass, &block->wo, width, width, VK_BIAS, LAYER "attn.proj", index);
    vk_pass_linear(pass, &block->w1, hidden, width, VK_BIAS, LAYER "mlp.fc1", index);
    vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, LAYER "mlp.fc2", index);
}
static void internvl_chat_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    int width = config->vit_width, in = width * config->geometry.pool * config->geometry.pool;
    vk_pass_language(pass, model, config, "language_model.model.", "language_model.lm_head");
    vk_pass_floats(pass, &model->class_embedding, 1, width, TOWER "embeddings.class_embedding");
    vk_pass_floats(pass, &model->positions, config->vit_positions, width, TOWER "embeddings.position_embedding");
    vk_pass_patches(pass, &model->patch, width, config->geometry.patch_px, 1, VK_BIAS,
                    TOWER "embeddings.patch_embedding");
    for (int b = 0; b < config->vit_blocks_needed; b++) chat_block_weights(pass, &model->vit[b], config, b);
    vk_pass_norm(pass, &model->projector_norm, in, VK_BIAS, "mlp1.0");
    vk_pass_linear(pass, &model->projector_in, config->projector_dim, in, VK_BIAS, "mlp1.1");
    vk_pass_linear(pass, &model->projector_down, config->d_model, config->projector_dim, VK_BIAS, "mlp1.3");
}
const vk_description vk_internvl_chat = {"InternVL (original)", NULL, internvl_chat_weights, vk_common_draws, NULL};
