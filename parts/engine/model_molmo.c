/* model_molmo.c - Molmo-7B-O, Molmo-7B-D and 72B: MolmoE's tower and pooling, then a dense language model
 *
 * source: the files next to the published Molmo-7B-D-0924 (modeling_molmo.py); github.com/allenai/molmo 793fa38,
 * olmo/model.py. O has norms of q and k over their whole width, and norms after attention and MLP. D and 72B have
 * grouped k and v heads, and a bias in the fused projection. */
#include "engine_internal.h"

#define BLOCK "model.transformer.blocks.%d."
static void block_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, int index) {
    int d = config->d_model, dim = config->mlp_dim, q = vk_q_width(config), kv = vk_kv_width(config),
        after = config->norm_after;
    const vk_piece up = {0, 2 * dim, 0, 1, 0}, gate = {dim, 2 * dim, 0, 1, 0}; /* ff_proj: up over gate */
    vk_pass_norm(pass, after ? &block->attn_after : &block->attn_norm, d, 0, BLOCK "attn_norm", index);
    vk_pass_norm(pass, after ? &block->ff_after : &block->ff_norm, d, 0, BLOCK "ff_norm", index);
    if (config->qk_norm) vk_pass_norm(pass, &block->q_norm, q, 0, BLOCK "q_norm", index);
    if (config->qk_norm) vk_pass_norm(pass, &block->k_norm, kv, 0, BLOCK "k_norm", index);
    vk_pass_linear(pass, &block->att_proj, q + 2 * kv, d, VK_LLM | (config->qkv_bias ? VK_BIAS : 0), BLOCK "att_proj",
                   index);
    vk_pass_linear(pass, &block->attn_out, d, q, VK_LLM, BLOCK "attn_out", index);
    vk_pass_place(pass, &block->gate_up[0], 2 * dim, d, VK_LLM);
    vk_pass_piece(pass, &block->gate_up[0], 0, dim, &gate, BLOCK "ff_proj.weight", index);
    vk_pass_piece(pass, &block->gate_up[0], dim, dim, &up, BLOCK "ff_proj.weight", index);
    vk_pass_linear(pass, &block->down[0], d, dim, VK_LLM, BLOCK "ff_out", index);
}

static void molmo_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_molmo_text(pass, model, config, block_weights);
    vk_pass_linear(pass, &model->head, config->embedding_size, config->d_model, VK_HEAD, "model.transformer.ff_out");
}

const vk_description vk_molmo = {"Molmo", vk_check_molmo_vision, molmo_weights, vk_molmo_draws, vk_molmo_is_dead_view};
