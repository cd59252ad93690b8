/* model_molmoe.c - MolmoE: its weights by name, what it asks of the kernels, the order of its stages
 *
 * source: github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/modeling_molmoe.py. The numbers of a config.json come
 * as vp_model_config. */
#include "model.h"

#include "engine_internal.h"

static vp_result molmoe_check(const vp_model_config *config, vp_error *error) {
    const vp_geometry *geometry = &config->geometry;
    if (config->expert_count > VK_EXPERTS_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "moe_num_experts", "at most 1024 experts");
    if ((int64_t)config->vit_head_count * geometry->pool * geometry->pool > VK_POOL_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "image_num_heads",
                       "too many heads for the pooling kernel (heads * 4 <= 1024)");
    if (config->vit_layer_count < 1 || config->vit_layer_count > VP_VIT_LAYERS_MAX)
        return vp_fail(error, VP_ERR_RANGE, -1, "vit_layers", "1 to 4 layers");
    return VP_OK;
}

/* ---- weights, in the order of loading. A packed file is this, bf16: a change of order, panels or padding needs a new
 * VP_PACKED_VERSION. */

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
static void vision_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    int width = config->vit_width, features = width * config->vit_layer_count, hidden = config->projector_dim;
    vk_pass_floats(pass, &model->class_embedding, 1, width, VIT "class_embedding");
    vk_pass_floats(pass, &model->positions, config->vit_positions, width, VIT "positional_embedding");
    vk_pass_floats(pass, &model->pad_embed, 2, features, "model.vision_backbone.pad_embed");
    vk_pass_norm(pass, &model->pre_ln, width, VK_BIAS, VIT "pre_ln");
    vk_pass_linear(pass, &model->patch, width, vk_patch_values(config), 0, VIT "patch_embedding");
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
    vk_pass_linear(pass, &block->att_proj, 3 * d, d, 0, BLOCK "attn.att_proj", index);
    vk_pass_linear(pass, &block->attn_out, d, d, 0, BLOCK "attn.attn_out", index);
    vk_pass_linear(pass, &block->router, config->expert_count, d, VK_FP32, BLOCK "mlp.gate", index);
    for (int e = 0; e < config->expert_count; e++) {
        vk_pass_place(pass, &block->gate_up[e], 2 * hidden, d, 0);
        vk_pass_rows(pass, &block->gate_up[e], 0, hidden, EXPERT "gate_proj", index, e);
        vk_pass_rows(pass, &block->gate_up[e], hidden, hidden, EXPERT "up_proj", index, e);
        vk_pass_linear(pass, &block->down[e], d, hidden, 0, EXPERT "down_proj", index, e);
    }
}

static void molmoe_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    int d = config->d_model, base = config->embedding_size, added = config->additional_vocab_size;
    vk_pass_table(pass, &model->embedding, base + added, d);
    vk_pass_table_rows(pass, model->embedding, 0, base, d, "model.transformer.wte.embedding");
    if (added) vk_pass_table_rows(pass, model->embedding, base, added, d, "model.transformer.wte.new_embedding");
    vk_pass_norm(pass, &model->ln_f, d, 0, "model.transformer.ln_f");
    for (int b = 0; b < config->block_count; b++) block_weights(pass, &model->blocks[b], config, b);
    vision_weights(pass, model, config);
    vk_pass_linear(pass, &model->head, base, d, 0, "lm_head");
}

/* synthetic weights: norms near 1, small biases, embeddings near the size of what they are added to */
static const vk_draw molmoe_draws[] = {
    { "norm.weight", 1.0f, 0.1f },
    { "ln_f.weight", 1.0f, 0.1f },
    { "pre_ln.weight", 1.0f, 0.1f },
    { ".bias", 0.0f, 0.05f },
    { "wte.embedding", 0.0f, 1.7320508f },
    { "new_embedding", 0.0f, 1.7320508f },
    { "embedding", 0.0f, 0.5f },
    { "pad_embed", 0.0f, 0.3f },
    { NULL, 0.0f, 0.0f }
};
/* tensors of more than one dimension that the weights above hold in fp32 */
static const char *const molmoe_fp32[] = { ".mlp.gate.weight", "pad_embed", "positional_embedding", NULL };

static vk_linear *molmoe_rounded(vk_model *model, const vp_model_config *config, int index) {
    int blocks = config->vit_blocks_needed;
    if (index > 2 * blocks) return NULL;
    if (index == 2 * blocks) return &model->pool_out;
    return index & 1 ? &model->vit[index / 2].w1 : &model->vit[index / 2].qkv;
}

/* a view whose pixels hold exactly -1 anywhere is a padding view to the reference: its features are zeroed */
static int32_t molmoe_is_dead_view(const float *pixels, size_t count) {
    int dead = 0;
    for (size_t i = 0; i < count; i++) dead |= pixels[i] == -1.0f;
    return dead;
}

/* ---- stages, in their order */

static void molmoe_prefill(vp_engine *engine, const vp_request *request, vp_reply *reply) {
    int views = request->views, batch = engine->view_batch;
    if (views) {
        for (int v = 0; v < views; v += batch) vk_vit(engine, v, views - v < batch ? views - v : batch);
        vk_end_stage(engine, reply, VP_STAGE_VIT);
        for (int v = 0; v < views; v += batch) vk_connector(engine, v, views - v < batch ? views - v : batch);
        vk_end_stage(engine, reply, VP_STAGE_CONNECTOR);
        if (request->dump) vk_dump_vision(engine, request);
    }
    vk_embed(engine, engine->buffers.ids, request->input_count);
    if (views) vk_add_image(engine, views);
    vk_end_stage(engine, reply, VP_STAGE_EMBED);
    for (int i = 0; i < request->active_block_count; i++) {
        vk_block_forward(engine, request->active_blocks[i], request->input_count, 0, request->top_k);
        if (request->dump) vk_dump_block(engine, request, i);
    }
    vk_end_stage(engine, reply, VP_STAGE_PREFILL);
    vk_head(engine, request->input_count - 1);
    vk_end_stage(engine, reply, VP_STAGE_HEAD);
    vk_sample(engine, request->input_count);
    vk_end_stage(engine, reply, VP_STAGE_SAMPLE);
}

static void molmoe_step(vp_engine *engine, const vp_request *request, int position) {
    vk_embed(engine, engine->buffers.token, 1);
    for (int i = 0; i < request->active_block_count; i++)
        vk_block_forward(engine, request->active_blocks[i], 1, position, request->top_k);
    vk_end_step(engine);
}

const vk_description vk_molmoe = {
    "MolmoE",       molmoe_check,        molmoe_weights, molmoe_draws, molmoe_fp32,
    molmoe_rounded, molmoe_is_dead_view, molmoe_prefill, molmoe_step
};
