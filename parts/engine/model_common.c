/* model_common.c - weights that several models share, with transformers' names */
#include "engine_internal.h"

#include <stdio.h>

/* synthetic weights: norms near 1, small biases, embeddings as large as the rows that they are added to */
const vk_draw vk_common_draws[] = {{"norm.weight", 1.0f, 0.1f},
                                   {"norm1.weight", 1.0f, 0.1f},
                                   {"norm2.weight", 1.0f, 0.1f},
                                   {"layernorm_before.weight", 1.0f, 0.1f},
                                   {"layernorm_after.weight", 1.0f, 0.1f},
                                   {"lambda_1", 0.3f, 0.1f},
                                   {"lambda_2", 0.3f, 0.1f},
                                   {".bias", 0.0f, 0.05f},
                                   {"embed_tokens.weight", 0.0f, 1.7320508f},
                                   {"position_embedding.weight", 0.0f, 0.5f},
                                   {"pos_embed.weight", 0.0f, 0.5f},
                                   {"ln_q.weight", 1.0f, 0.1f},
                                   {"position_embeddings", 0.0f, 0.5f},
                                   {"class_embedding", 0.0f, 0.5f},
                                   {"cls_token", 0.0f, 0.5f},
                                   {NULL, 0.0f, 0.0f}};

/* all experts of a layer, in two tensors [experts, inputs, outputs] */
static void packed_experts(vk_pass *pass, vk_block *block, const vp_model_config *config, const char *prefix,
                           int index) {
    int d = config->d_model, dim = config->expert_dim, count = config->expert_count;
    for (int e = 0; e < count; e++) {
        const vk_piece gate_up = {e * d, count * d, 0, 1, 2 * dim}, down = {e * dim, count * dim, 0, 1, d};
        vk_pass_place(pass, &block->gate_up[e], 2 * dim, d, VK_LLM);
        vk_pass_piece(pass, &block->gate_up[e], 0, 2 * dim, &gate_up, "%slayers.%d.mlp.experts.gate_up_proj", prefix,
                      index);
        vk_pass_place(pass, &block->down[e], d, dim, VK_LLM);
        vk_pass_piece(pass, &block->down[e], 0, d, &down, "%slayers.%d.mlp.experts.down_proj", prefix, index);
    }
}
static void layer_experts(vk_pass *pass, vk_block *block, const vp_model_config *config, const char *prefix,
                          int index) {
    int d = config->d_model, dim = config->expert_dim;
    vk_pass_linear(pass, &block->router, config->expert_count, d, VK_FP32, "%slayers.%d.mlp.gate", prefix, index);
    if (config->architecture == VP_ARCHITECTURE_QWEN3_VL_MOE) {
        packed_experts(pass, block, config, prefix, index);
        return;
    }
    for (int e = 0; e < config->expert_count; e++) {
        vk_pass_place(pass, &block->gate_up[e], 2 * dim, d, VK_LLM);
        vk_pass_rows(pass, &block->gate_up[e], 0, dim, "%slayers.%d.mlp.experts.%d.gate_proj", prefix, index, e);
        vk_pass_rows(pass, &block->gate_up[e], dim, dim, "%slayers.%d.mlp.experts.%d.up_proj", prefix, index, e);
        vk_pass_linear(pass, &block->down[e], d, dim, VK_LLM, "%slayers.%d.mlp.experts.%d.down_proj", prefix, index, e);
    }
}

/* Norms around attention and MLP have their own names. q's scale is folded into its norm's weights: RoPE preserves
 * it. */
static void layer_norms(vk_pass *pass, vk_block *block, const vp_model_config *config, const char *prefix, int index) {
    int d = config->d_model, whole = config->qk_norm == VP_QK_NORM_WHOLE, around = config->norm_around;
    float plus = config->norm_plus_one ? 1.0f : 0.0f;
    vk_pass_scale(pass, 1.0f, plus);
    vk_pass_norm(pass, &block->attn_norm, d, 0, "%slayers.%d.input_layernorm", prefix, index);
    vk_pass_norm(pass, around ? &block->attn_after : &block->ff_norm, d, 0, "%slayers.%d.post_attention_layernorm",
                 prefix, index);
    if (around) {
        vk_pass_norm(pass, &block->ff_norm, d, 0, "%slayers.%d.pre_feedforward_layernorm", prefix, index);
        vk_pass_norm(pass, &block->ff_after, d, 0, "%slayers.%d.post_feedforward_layernorm", prefix, index);
    }
    if (config->qk_norm) {
        vk_pass_norm(pass, &block->k_norm, whole ? vk_kv_width(config) : config->head_dim, 0,
                     "%slayers.%d.self_attn.k_norm", prefix, index);
        vk_pass_scale(pass, config->query_scale > 0.0f ? config->query_scale : 1.0f, plus);
        vk_pass_norm(pass, &block->q_norm, whole ? vk_q_width(config) : config->head_dim, 0,
                     "%slayers.%d.self_attn.q_norm", prefix, index);
    }
    vk_pass_scale(pass, 0.0f, 0.0f);
}

static void layer_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, const char *prefix,
                          int index) {
    int d = config->d_model, dim = config->mlp_dim, q = vk_q_width(config), kv = vk_kv_width(config);
    layer_norms(pass, block, config, prefix, index);
    vk_pass_place(pass, &block->att_proj, q + 2 * kv, d, VK_LLM | (config->qkv_bias ? VK_BIAS : 0));
    vk_pass_rows(pass, &block->att_proj, 0, q, "%slayers.%d.self_attn.q_proj", prefix, index);
    vk_pass_rows(pass, &block->att_proj, q, kv, "%slayers.%d.self_attn.k_proj", prefix, index);
    vk_pass_rows(pass, &block->att_proj, q + kv, kv, "%slayers.%d.self_attn.v_proj", prefix, index);
    vk_pass_linear(pass, &block->attn_out, d, q, VK_LLM, "%slayers.%d.self_attn.o_proj", prefix, index);
    if (config->expert_count) {
        layer_experts(pass, block, config, prefix, index);
        return;
    }
    vk_pass_place(pass, &block->gate_up[0], 2 * dim, d, VK_LLM);
    vk_pass_rows(pass, &block->gate_up[0], 0, dim, "%slayers.%d.mlp.gate_proj", prefix, index);
    vk_pass_rows(pass, &block->gate_up[0], dim, dim, "%slayers.%d.mlp.up_proj", prefix, index);
    vk_pass_linear(pass, &block->down[0], d, dim, VK_LLM, "%slayers.%d.mlp.down_proj", prefix, index);
}

float vk_embedding_scale(const vp_model_config *config, int wide) {
    return wide ? config->embedding_scale : vp_bf16_to_f32(vp_f32_to_bf16(config->embedding_scale));
}

void vk_pass_language(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix,
                      const char *head) {
    int d = config->d_model, rows = config->embedding_size, once;
    char table[96];
    snprintf(table, sizeof table, "%sembed_tokens.weight", prefix);
    once = config->tied_head && !(pass->arena ? pass->bits.head : model->head.bits);
    if (!once) {
        vk_pass_table(pass, &model->embedding, rows, d);
        vk_pass_scale(pass, vk_embedding_scale(config, pass->wide), 0.0f);
        vk_pass_table_rows(pass, model->embedding, 0, rows, d, "%sembed_tokens.weight", prefix);
    }
    vk_pass_scale(pass, config->norm_plus_one ? 1.0f : 0.0f, 1.0f);
    vk_pass_norm(pass, &model->ln_f, d, 0, "%snorm", prefix);
    vk_pass_scale(pass, 0.0f, 0.0f);
    for (int b = 0; b < config->block_count; b++) layer_weights(pass, &model->blocks[b], config, prefix, b);
    /* a tied integer head is a second copy */
    if (config->tied_head) vk_pass_linear(pass, &model->head, rows, d, VK_HEAD, "%sembed_tokens", prefix);
    else vk_pass_linear(pass, &model->head, rows, d, VK_HEAD, "%s", head);
    if (once) model->embedding = model->head.weights;
}

/* CLIP and SigLIP: CLIP has a class token and a norm before its blocks, SigLIP a bias in its patch embedding */
void vk_pass_clip(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix) {
    int width = config->vit_width, hidden = config->vit_mlp_dim, is_clip = config->vit_class_token;
    char patches[96];
    snprintf(patches, sizeof patches, "%sembeddings.patch_embedding", prefix);
    if (is_clip) vk_pass_floats(pass, &model->class_embedding, 1, width, "%sembeddings.class_embedding", prefix);
    vk_pass_floats(pass, &model->positions, config->vit_positions, width, "%sembeddings.position_embedding.weight",
                   prefix);
    if (is_clip) vk_pass_norm(pass, &model->pre_ln, width, VK_BIAS, "%spre_layrnorm", prefix);
    vk_pass_patches(pass, &model->patch, width, config->geometry.patch_px, 1, is_clip ? 0 : VK_BIAS, patches);
    for (int b = 0; b < config->vit_blocks_needed; b++) {
        vk_vit_block *block = &model->vit[b];
        vk_pass_norm(pass, &block->attention_norm, width, VK_BIAS, "%sencoder.layers.%d.layer_norm1", prefix, b);
        vk_pass_norm(pass, &block->ffn_norm, width, VK_BIAS, "%sencoder.layers.%d.layer_norm2", prefix, b);
        vk_pass_place(pass, &block->qkv, 3 * width, width, VK_BIAS);
        vk_pass_rows(pass, &block->qkv, 0, width, "%sencoder.layers.%d.self_attn.q_proj", prefix, b);
        vk_pass_rows(pass, &block->qkv, width, width, "%sencoder.layers.%d.self_attn.k_proj", prefix, b);
        vk_pass_rows(pass, &block->qkv, 2 * width, width, "%sencoder.layers.%d.self_attn.v_proj", prefix, b);
        vk_pass_linear(pass, &block->wo, width, width, VK_BIAS, "%sencoder.layers.%d.self_attn.out_proj", prefix, b);
        vk_pass_linear(pass, &block->w1, hidden, width, VK_BIAS, "%sencoder.layers.%d.mlp.fc1", prefix, b);
        vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, "%sencoder.layers.%d.mlp.fc2", prefix, b);
    }
}

void vk_pass_projector(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix) {
    int in = vk_window_width(config), hidden = config->projector_dim;
    if (config->connector == VP_CONNECTOR_NORM_MLP)
        vk_pass_norm(pass, &model->projector_norm, in, VK_BIAS, "%slayer_norm", prefix);
    vk_pass_linear(pass, &model->projector_in, hidden, in, VK_BIAS, "%slinear_1", prefix);
    vk_pass_linear(pass, &model->projector_down, config->d_model, hidden, VK_BIAS, "%slinear_2", prefix);
}
