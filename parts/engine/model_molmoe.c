/* model_molmoe.c - MolmoE: the names of its weights and its constraints on kernels; also the tower of all Molmo models
 *
 * source: github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/modeling_molmoe.py. Sizes come from config.json as
 * vp_model_config. */
#include "engine_internal.h"

vp_result vk_check_molmo_vision(const vp_model_config *config, vp_error *error) {
    const vp_geometry *geometry = &config->geometry;
    if ((int64_t)config->vit_head_count * geometry->pool * geometry->pool > VK_POOL_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "image_num_heads",
                            "too many heads for the pooling kernel (heads * 4 <= 1024)");
    return VP_OK;
}

/* ---- weights, in loading order */

#define VIT "model.vision_backbone.image_vit."
#define VIT_BLOCK VIT "transformer.resblocks.%d."
static void vit_block_weights(vk_pass *pass, vk_vit_block *block, const vp_model_config *config, int index) {
    int width = config->vit_width, hidden = config->vit_mlp_dim;
    vk_pass_norm(pass, &block->attention_norm, width, VK_BIAS, VIT_BLOCK "attention_norm", index);
    vk_pass_norm(pass, &block->ffn_norm, width, VK_BIAS, VIT_BLOCK "ffn_norm", index);
    vk_pass_place(pass, &block->qkv, 3 * width, width, VK_BIAS);
    vk_pass_rows(pass, &block->qkv, 0, width, VIT_BLOCK "attention.wq", index);
    vk_pass_rows(pass, &block->qkv, width, width, VIT_BLOCK "attention.wk", index);
    vk_pass_rows(pass, &block->qkv, 2 * width, width, VIT_BLOCK "attention.wv", index);
    vk_pass_linear(pass, &block->wo, width, width, VK_BIAS, VIT_BLOCK "attention.wo", index);
    vk_pass_linear(pass, &block->w1, hidden, width, VK_BIAS, VIT_BLOCK "feed_forward.w1", index);
    vk_pass_linear(pass, &block->w2, width, hidden, VK_BIAS, VIT_BLOCK "feed_forward.w2", index);
}

#define POOLING "model.vision_backbone.image_pooling_2d."
#define PROJECTOR "model.vision_backbone.image_projector."
static void molmo_vision(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    int width = config->vit_width, features = width * config->vit_layer_count, hidden = config->projector_dim;
    int clip = config->vit_class_token; /* Molmo2 has SigLIP's tower, and its images have no padding */
    if (clip) vk_pass_floats(pass, &model->class_embedding, 1, width, VIT "class_embedding");
    vk_pass_floats(pass, &model->positions, config->vit_positions, width, VIT "positional_embedding");
    if (clip) vk_pass_floats(pass, &model->pad_embed, 2, features, "model.vision_backbone.pad_embed");
    if (clip) vk_pass_norm(pass, &model->pre_ln, width, VK_BIAS, VIT "pre_ln");
    vk_pass_linear(pass, &model->patch, width, vk_patch_values(config), clip ? 0 : VK_BIAS, VIT "patch_embedding");
    for (int b = 0; b < config->vit_blocks_needed; b++) vit_block_weights(pass, &model->vit[b], config, b);
    vk_pass_linear(pass, &model->pool_query, width, features, VK_BIAS, POOLING "wq");
    vk_pass_place(pass, &model->pool_key_value, 2 * width, features, VK_BIAS);
    vk_pass_rows(pass, &model->pool_key_value, 0, width, POOLING "wk");
    vk_pass_rows(pass, &model->pool_key_value, width, width, POOLING "wv");
    vk_pass_linear(pass, &model->pool_out, width, width, VK_BIAS, POOLING "wo");
    vk_pass_place(pass, &model->projector_gate_up, 2 * hidden, width, 0);
    vk_pass_rows(pass, &model->projector_gate_up, 0, hidden, PROJECTOR "w1");
    vk_pass_rows(pass, &model->projector_gate_up, hidden, hidden, PROJECTOR "w3");
    vk_pass_linear(pass, &model->projector_down, config->d_model, hidden, 0, PROJECTOR "w2");
}

#define BLOCK "model.transformer.blocks.%d."
#define EXPERT BLOCK "mlp.experts.%d."
static void block_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, int index) {
    int d = config->d_model, hidden = config->expert_dim;
    vk_pass_norm(pass, &block->attn_norm, d, 0, BLOCK "attn.attn_norm", index);
    vk_pass_norm(pass, &block->ff_norm, d, 0, BLOCK "mlp.ff_norm", index);
    vk_pass_norm(pass, &block->q_norm, d, 0, BLOCK "attn.q_norm", index);
    vk_pass_norm(pass, &block->k_norm, d, 0, BLOCK "attn.k_norm", index);
    vk_pass_linear(pass, &block->att_proj, 3 * d, d, VK_LLM, BLOCK "attn.att_proj", index);
    vk_pass_linear(pass, &block->attn_out, d, d, VK_LLM, BLOCK "attn.attn_out", index);
    vk_pass_linear(pass, &block->router, config->expert_count, d, VK_FP32, BLOCK "mlp.gate", index);
    for (int e = 0; e < config->expert_count; e++) {
        vk_pass_place(pass, &block->gate_up[e], 2 * hidden, d, VK_LLM);
        vk_pass_rows(pass, &block->gate_up[e], 0, hidden, EXPERT "gate_proj", index, e);
        vk_pass_rows(pass, &block->gate_up[e], hidden, hidden, EXPERT "up_proj", index, e);
        vk_pass_linear(pass, &block->down[e], d, hidden, VK_LLM, EXPERT "down_proj", index, e);
    }
}

void vk_pass_molmo_text(vk_pass *pass, vk_model *model, const vp_model_config *config, vk_block_weights *block) {
    int d = config->d_model, base = config->embedding_size, added = config->additional_vocab_size;
    vk_pass_table(pass, &model->embedding, base + added, d);
    vk_pass_table_rows(pass, model->embedding, 0, base, d, "model.transformer.wte.embedding");
    if (added) vk_pass_table_rows(pass, model->embedding, base, added, d, "model.transformer.wte.new_embedding");
    vk_pass_norm(pass, &model->ln_f, d, 0, "model.transformer.ln_f");
    for (int b = 0; b < config->block_count; b++) block(pass, &model->blocks[b], config, b);
    molmo_vision(pass, model, config);
}
static void molmoe_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_molmo_text(pass, model, config, block_weights);
    vk_pass_linear(pass, &model->head, config->embedding_size, config->d_model, VK_HEAD, "lm_head");
}

/* synthetic weights: norms near 1, small biases, embeddings as large as the rows that they are added to */
const vk_draw vk_molmo_draws[] = {
    {"norm.weight", 1.0f, 0.1f}, {"ln_f.weight", 1.0f, 0.1f},         {"pre_ln.weight", 1.0f, 0.1f},
    {".bias", 0.0f, 0.05f},      {"wte.embedding", 0.0f, 1.7320508f}, {"new_embedding", 0.0f, 1.7320508f},
    {"embedding", 0.0f, 0.5f},   {"pad_embed", 0.0f, 0.3f},           {NULL, 0.0f, 0.0f}};

/* the reference treats a view with a pixel of exactly -1 as padding: its features are zeroed */
int32_t vk_molmo_is_dead_view(const float *pixels, size_t count) {
    int dead = 0;
#pragma omp simd reduction(| : dead)
    for (size_t i = 0; i < count; i++) dead |= pixels[i] == -1.0f;
    return dead;
}

const vk_description vk_molmoe = {"MolmoE", vk_check_molmo_vision, molmoe_weights, vk_molmo_draws,
                                  vk_molmo_is_dead_view};
