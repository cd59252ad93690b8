/* model_molmoe.c - MolmoE: its weights by name */
#include "model.h"

#include <stdio.h>

static void vk_layout_vision(vk_arena *arena, vk_model *m, const vp_model_config *c, int wide) {
    int w = c->vit_width, features = w * c->vit_layer_count, patch_values = c->geometry.patch_px * c->geometry.patch_px * 3;
    m->class_embedding = vk_take(arena, (size_t)w, 4);
    m->positions = vk_take(arena, (size_t)c->vit_positions * (size_t)w, 4);
    m->pad_embed = vk_take(arena, 2 * (size_t)features, 4);
    vk_layout_norm(arena, &m->pre_ln, w, 1);
    vk_layout_linear(arena, &m->patch, w, patch_values, 0, wide);
    for (int b = 0; b < c->vit_blocks_needed; b++) {
        vk_vit_block *v = &m->vit[b];
        vk_layout_norm(arena, &v->attention_norm, w, 1);
        vk_layout_norm(arena, &v->ffn_norm, w, 1);
        vk_layout_linear(arena, &v->qkv, 3 * w, w, 1, wide);
        vk_layout_linear(arena, &v->wo, w, w, 1, wide);
        vk_layout_linear(arena, &v->w1, c->vit_mlp_dim, w, 1, wide);
        vk_layout_linear(arena, &v->w2, w, c->vit_mlp_dim, 1, wide);
    }
    vk_layout_linear(arena, &m->pool_query, w, features, 1, wide);
    vk_layout_linear(arena, &m->pool_key_value, 2 * w, features, 1, wide);
    vk_layout_linear(arena, &m->pool_out, w, w, 1, wide);
    vk_layout_linear(arena, &m->projector_gate_up, 2 * c->projector_dim, w, 0, wide);
    vk_layout_linear(arena, &m->projector_down, c->d_model, c->projector_dim, 0, wide);
}
/* in the order of loading, so that a file of it can be written front to back. A packed file is this, bf16: a change of order, panels or padding
 * needs a new VP_PACKED_VERSION. */
void vk_layout_model(vk_arena *arena, vk_model *m, const vp_model_config *c, int wide) {
    int d = c->d_model;
    m->embedding = vk_take(arena, (size_t)(c->embedding_size + c->additional_vocab_size) * (size_t)d, wide ? 4 : 2);
    vk_layout_norm(arena, &m->ln_f, d, 0);
    for (int b = 0; b < c->block_count; b++) {
        vk_block *k = &m->blocks[b];
        vk_layout_norm(arena, &k->attn_norm, d, 0);
        vk_layout_norm(arena, &k->ff_norm, d, 0);
        vk_layout_norm(arena, &k->q_norm, d, 0);
        vk_layout_norm(arena, &k->k_norm, d, 0);
        vk_layout_linear(arena, &k->att_proj, 3 * d, d, 0, wide);
        vk_layout_linear(arena, &k->attn_out, d, d, 0, wide);
        vk_layout_linear(arena, &k->router, c->expert_count, d, 0, 1);
        for (int e = 0; e < c->expert_count; e++) {
            vk_layout_linear(arena, &k->gate_up[e], 2 * c->expert_dim, d, 0, wide);
            vk_layout_linear(arena, &k->down[e], d, c->expert_dim, 0, wide);
        }
    }
    vk_layout_vision(arena, m, c, wide);
    vk_layout_linear(arena, &m->head, c->embedding_size, d, 0, wide);
}
static void vk_load_vision(vk_loader *loader, vk_model *m, const vp_model_config *c) {
    static const char *const qkv[3] = { "wq", "wk", "wv" };
    char prefix[160];
    int w = c->vit_width;
#define VK_V "model.vision_backbone."
    vk_load_rows(loader, VK_V "image_vit.class_embedding", m->class_embedding, 1, w, 1);
    vk_load_rows(loader, VK_V "image_vit.positional_embedding", m->positions, c->vit_positions, w, 1);
    vk_load_rows(loader, VK_V "pad_embed", m->pad_embed, 2, w * c->vit_layer_count, 1);
    vk_load_norm(loader, VK_V "image_vit.pre_ln", &m->pre_ln, w);
    vk_load_linear(loader, VK_V "image_vit.patch_embedding", &m->patch, 0, w);
    for (int b = 0; b < c->vit_blocks_needed; b++) {
        vk_vit_block *v = &m->vit[b];
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, VK_V "image_vit.transformer.resblocks.%d." text, b), prefix)
        vk_load_norm(loader, VK_NAME("attention_norm"), &v->attention_norm, w);
        vk_load_norm(loader, VK_NAME("ffn_norm"), &v->ffn_norm, w);
        for (int i = 0; i < 3; i++) {
            snprintf(prefix, sizeof prefix, VK_V "image_vit.transformer.resblocks.%d.attention.%s", b, qkv[i]);
            vk_load_linear(loader, prefix, &v->qkv, i * w, w);
        }
        vk_load_linear(loader, VK_NAME("attention.wo"), &v->wo, 0, w);
        vk_load_linear(loader, VK_NAME("feed_forward.w1"), &v->w1, 0, c->vit_mlp_dim);
        vk_load_linear(loader, VK_NAME("feed_forward.w2"), &v->w2, 0, w);
#undef VK_NAME
    }
    vk_load_linear(loader, VK_V "image_pooling_2d.wq", &m->pool_query, 0, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wk", &m->pool_key_value, 0, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wv", &m->pool_key_value, w, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wo", &m->pool_out, 0, w);
    vk_load_linear(loader, VK_V "image_projector.w1", &m->projector_gate_up, 0, c->projector_dim);
    vk_load_linear(loader, VK_V "image_projector.w3", &m->projector_gate_up, c->projector_dim, c->projector_dim);
    vk_load_linear(loader, VK_V "image_projector.w2", &m->projector_down, 0, c->d_model);
#undef VK_V
}
vp_result vk_load_model(vk_loader *loader, vk_model *m, const vp_model_config *c) {
    char prefix[160];
    int d = c->d_model;
    size_t table_row = (size_t)d * (loader->wide ? 4 : 2);
    vk_load_rows(loader, "model.transformer.wte.embedding", m->embedding, c->embedding_size, d, loader->wide);
    if (c->additional_vocab_size)
        vk_load_rows(loader, "model.transformer.wte.new_embedding", (char *)m->embedding + (size_t)c->embedding_size * table_row,
                     c->additional_vocab_size, d, loader->wide);
    vk_load_norm(loader, "model.transformer.ln_f", &m->ln_f, d);
    for (int b = 0; b < c->block_count; b++) {
        vk_block *k = &m->blocks[b];
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, "model.transformer.blocks.%d." text, b), prefix)
        vk_load_norm(loader, VK_NAME("attn.attn_norm"), &k->attn_norm, d);
        vk_load_norm(loader, VK_NAME("mlp.ff_norm"), &k->ff_norm, d);
        vk_load_norm(loader, VK_NAME("attn.q_norm"), &k->q_norm, d);
        vk_load_norm(loader, VK_NAME("attn.k_norm"), &k->k_norm, d);
        vk_load_linear(loader, VK_NAME("attn.att_proj"), &k->att_proj, 0, 3 * d);
        vk_load_linear(loader, VK_NAME("attn.attn_out"), &k->attn_out, 0, d);
        vk_load_linear(loader, VK_NAME("mlp.gate"), &k->router, 0, c->expert_count);
#undef VK_NAME
        for (int e = 0; e < c->expert_count; e++) {
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, "model.transformer.blocks.%d.mlp.experts.%d." text, b, e), prefix)
            vk_load_linear(loader, VK_NAME("gate_proj"), &k->gate_up[e], 0, c->expert_dim);
            vk_load_linear(loader, VK_NAME("up_proj"), &k->gate_up[e], c->expert_dim, c->expert_dim);
            vk_load_linear(loader, VK_NAME("down_proj"), &k->down[e], 0, d);
#undef VK_NAME
        }
    }
    vk_load_vision(loader, m, c);
    vk_load_linear(loader, "lm_head", &m->head, 0, c->embedding_size);
    return loader->result;
}
