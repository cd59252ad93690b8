/* stages.c - submits the stages of a model to a backend, one operation at a time */
#include "engine_internal.h"

#include <math.h>
#include <string.h>

/* adds the output of attention or the MLP in a tower's block, directly or scaled by its own weights */
static void vk_vit_add(vp_engine *engine, const void *from, int ld, int rows, const vk_linear *linear,
                       const float *scale) {
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int width = engine->config.vit_width;
    if (!scale) {
        to->linear(engine->queue, buffers->vit_x, width, from, ld, rows, linear, VK_ADD_F32);
        return;
    }
    to->linear(engine->queue, buffers->patch_rows, width, from, ld, rows, linear, VK_STORE_F32);
    to->kernels.add_scaled(engine->queue, buffers->vit_x, buffers->patch_rows, scale, rows, width);
}

/* turns the pixels of `count` views into the input rows of the tower's blocks */
static void vk_vit_embed(vp_engine *engine, int first, int count) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = config->vit_width, patches = vk_vit_patches(config), rows = count * config->vit_positions,
        values = vk_patch_values(config), ldp = vk_padded(values);
    vk_at(queue, VP_PART_VIT_EMBED, -1);
    to->kernels.convert(queue, buffers->patches, engine->pixels + (size_t)first * (size_t)patches * (size_t)values,
                        count * patches, values, ldp, engine->wide || config->vit_native);
    to->linear(queue, buffers->patch_rows, width, buffers->patches, ldp, count * patches, &model->patch, VK_STORE_F32);
    for (int i = 0; config->vit_native && i < engine->picture_count; i++) {
        const vk_picture *picture = &engine->pictures[i];
        const size_t row = (size_t)(picture->first * config->vit_positions);
        to->kernels.grid_embed(queue, buffers->vit_x + row * (size_t)width, buffers->patch_rows + row * (size_t)width,
                               model->positions, buffers->places + 2 * row, &picture->grid, width);
    }
    if (config->vit_native) return;
    to->kernels.vit_embed(queue, buffers->vit_x, buffers->patch_rows, model->class_embedding, model->positions, count,
                          config->vit_positions, width);
    if (model->pre_ln.weight)
        to->kernels.layernorm(queue, buffers->vit_x, buffers->vit_x, model->pre_ln.weight, model->pre_ln.bias, rows,
                              width, width, config->vit_norm_eps, 1);
}

/* copies the output of a block to where the connector reads it */
static void vk_vit_keep(vp_engine *engine, int layer, int first, int count) {
    const vp_model_config *config = &engine->config;
    const vk_norm *norm = &engine->model.post_ln;
    int rows = count * config->vit_positions, width = config->vit_width;
    size_t view_floats = (size_t)config->vit_positions * (size_t)width;
    float *out = engine->buffers.hidden + ((size_t)layer * (size_t)engine->max_views + (size_t)first) * view_floats;
    if (norm->weight)
        engine->backend->kernels.layernorm(engine->queue, out, engine->buffers.vit_x, norm->weight, norm->bias, rows,
                                           width, width, config->vit_norm_eps, 1);
    else engine->backend->copy(engine->queue, out, engine->buffers.vit_x, (size_t)count * view_floats * sizeof(float));
}

static void vk_vit_norm(vp_engine *engine, void *out, const float *in, const vk_norm *norm, int rows, int ld,
                        int wide) {
    const vp_model_config *config = &engine->config;
    const vk_kernels *kernels = &engine->backend->kernels;
    if (config->vit_rms)
        kernels->rmsnorm(engine->queue, out, in, norm->weight, rows, config->vit_width, ld, config->vit_norm_eps, wide);
    else
        kernels->layernorm(engine->queue, out, in, norm->weight, norm->bias, rows, config->vit_width, ld,
                           config->vit_norm_eps, wide);
}

/* eps of the norms of q and k: a constant in transformers, separate from the configuration's eps */
#define VK_VIT_QK_EPS 1e-6f

/* attention of a block, from vit_qkv to vit_attended: one view at a time; in a native tower, one image or one square at
 * a time */
static void vk_vit_attend(vp_engine *engine, int block, int count) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, ld = vk_padded(width), ld3 = vk_padded(3 * width),
        squares = config->vit_window && !(config->vit_full_blocks >> block & 1);
    size_t element = engine->wide ? 4 : 2;
    vk_attention_job job = {0};
    job.ldy = ld;
    job.ldq = job.ldk = ld3;
    const vk_window views = { 0, count, config->vit_positions },
                    *sequences = !config->vit_native ? &views : squares ? engine->windows : engine->wholes;
    const int sequence_count = !config->vit_native ? 1 : squares ? engine->window_count : engine->picture_count;
    job.heads = job.kv_heads = config->vit_head_count;
    job.head_dim = config->vit_head_dim;
    if (config->vit_native)
        to->kernels.grid_turn(engine->queue, buffers->vit_qkv, buffers->vit_cs, buffers->places,
                              count * config->vit_positions, 2 * job.heads, job.head_dim, ld3, engine->wide);
    for (int i = 0; i < sequence_count; i++) {
        const size_t first = (size_t)sequences[i].first;
        job.batch = sequences[i].batch;
        job.tokens = sequences[i].tokens;
        job.y = (char *)buffers->vit_attended + first * (size_t)ld * element;
        job.q = (char *)buffers->vit_qkv + first * (size_t)ld3 * element;
        job.k = (const char *)job.q + (size_t)width * element;
        job.v = (const char *)job.q + 2 * (size_t)width * element;
        to->attention(engine->queue, &job);
    }
}

/* y in-type [rows, vk_padded(hidden)] = activation(gate) * up of x; gate_up: from vk_take_gates */
static void vk_gated(vp_engine *engine, void *y, float *gate_up, const void *x, int ld, int rows,
                     const vk_linear *linear, vk_epilogue epilogue) {
    const vk_backend *to = engine->backend;
    int hidden = linear->n / 2, ldh = vk_padded(hidden), fused = vk_gates_in_product(engine, hidden);
    to->linear(engine->queue, fused ? y : gate_up, fused ? ldh : 2 * hidden, x, ld, rows, linear,
               fused ? epilogue : VK_STORE_F32);
    if (!fused)
        to->kernels.gate_mul(engine->queue, y, gate_up, rows, hidden, ldh, epilogue == VK_GELU_MUL, engine->wide);
}

/* vit_x += the block's MLP of vit_normed */
static void vk_vit_mlp(vp_engine *engine, const vk_vit_block *layer, int rows) {
    static const vk_epilogue gelu[] = {VK_QUICKGELU, VK_GELU, VK_GELU_TANH}; /* in the order of vp_gelu */
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int hidden = config->vit_mlp_dim, ld = vk_padded(config->vit_width), ldh = vk_padded(hidden);
    size_t element = engine->wide ? 4 : 2;
    if (!config->vit_gated)
        to->linear(engine->queue, buffers->vit_hidden, ldh, buffers->vit_normed, ld, rows, &layer->w1,
                   gelu[config->vit_gelu]);
    for (int first = 0; config->vit_gated && first < rows; first += vk_gated_rows(engine)) {
        int now = rows - first < vk_gated_rows(engine) ? rows - first : vk_gated_rows(engine);
        vk_gated(engine, (char *)buffers->vit_hidden + (size_t)first * (size_t)ldh * element, buffers->vit_gate_up,
                 (char *)buffers->vit_normed + (size_t)first * (size_t)ld * element, ld, now, &layer->w1, VK_SILU_MUL);
    }
    vk_vit_add(engine, buffers->vit_hidden, ldh, rows, &layer->w2, layer->scale2);
}

/* computes adjacent q, k and v of a block, from vit_normed to vit_qkv; q and k with norms pass through fp32 rows */
static void vk_vit_qkv(vp_engine *engine, const vk_vit_block *layer, int rows) {
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    const vk_linear *const linears[] = {&layer->q, &layer->k};
    const vk_norm *const norms[] = {&layer->q_norm, &layer->k_norm};
    int width = engine->config.vit_width, ld = vk_padded(width), ld3 = vk_padded(3 * width);
    size_t part = (size_t)width * (engine->wide ? 4 : 2);
    for (int i = 0; i < 2 && engine->config.vit_qk_norm; i++) {
        to->linear(engine->queue, buffers->patch_rows, width, buffers->vit_normed, ld, rows, linears[i], VK_STORE_F32);
        to->kernels.rmsnorm(engine->queue, (char *)buffers->vit_qkv + (size_t)i * part, buffers->patch_rows,
                            norms[i]->weight, rows, width, ld3, VK_VIT_QK_EPS, engine->wide);
    }
    to->linear(engine->queue, (char *)buffers->vit_qkv + (engine->config.vit_qk_norm ? 2 * part : 0), ld3,
               buffers->vit_normed, ld, rows, &layer->qkv, VK_STORE);
}

void vk_vit(vp_engine *engine, int first, int count) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int ld = vk_padded(config->vit_width), rows = count * config->vit_positions, wide = engine->wide;
    vk_vit_embed(engine, first, count);
    for (int i = 0; i < config->vit_blocks_needed; i++) {
        const vk_vit_block *layer = &engine->model.vit[i];
        vk_at(queue, VP_PART_VIT_DENSE, i);
        vk_vit_norm(engine, buffers->vit_normed, buffers->vit_x, &layer->attention_norm, rows, ld, wide);
        vk_vit_qkv(engine, layer, rows);
        vk_at(queue, VP_PART_VIT_ATTENTION, i);
        vk_vit_attend(engine, i, count);
        if (vk_prunes_tower(engine, i)) {
            vk_end_stage(engine, engine->pruning.reply, VP_STAGE_VIT);
            vk_prune_tower(engine, first, count);
        }
        vk_at(queue, VP_PART_VIT_DENSE, i);
        vk_vit_add(engine, buffers->vit_attended, ld, rows, &layer->wo, layer->scale1);
        vk_vit_norm(engine, buffers->vit_normed, buffers->vit_x, &layer->ffn_norm, rows, ld, wide);
        vk_vit_mlp(engine, layer, rows);
        for (int l = 0; l < config->vit_layer_count; l++)
            if (engine->vit_layer_at[l] == i) vk_vit_keep(engine, l, first, count);
    }
}

/* attention over `windows` windows of n patches, then SwiGLU. places: the patches of each window if windows extend
 * beyond an edge, otherwise NULL */
static void vk_pool_rows(vp_engine *engine, int windows, int n, const int32_t *places, float *features) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = config->vit_width, ldf = vk_padded(width * config->vit_layer_count), ld = vk_padded(width),
        ldh = vk_padded(config->projector_dim), wide = engine->wide;
    to->linear(queue, buffers->pool_query, width, buffers->pool_query_in, ldf, windows, &model->pool_query,
               VK_STORE_F32);
    to->linear(queue, buffers->pool_key_value, 2 * width, buffers->pool_keys, ldf, windows * n, &model->pool_key_value,
               VK_STORE_F32);
    to->kernels.pool_attention(queue, buffers->pool_attended, buffers->pool_query, buffers->pool_key_value, places,
                               windows, n, config->vit_head_count, config->vit_head_dim, ld, wide);
    to->linear(queue, buffers->pool_out, ld, buffers->pool_attended, ld, windows, &model->pool_out, VK_STORE);
    vk_at(queue, VP_PART_PROJECTOR, -1);
    vk_gated(engine, buffers->projector_hidden, buffers->projector_gate_up, buffers->pool_out, ld, windows,
             &model->projector_gate_up, VK_SILU_MUL);
    to->linear(queue, features, config->d_model, buffers->projector_hidden, ldh, windows, &model->projector_down,
               VK_STORE_F32);
}
static void vk_pool(vp_engine *engine, int first, int count, float *features) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, layers = config->vit_layer_count,
        side = vp_geometry_patches_per_side(&config->geometry), pool = config->geometry.pool;
    size_t view_floats = (size_t)config->vit_positions * (size_t)width;
    vk_at(engine->queue, VP_PART_POOLING, -1);
    engine->backend->kernels.pool_windows(engine->queue, buffers->pool_keys, buffers->pool_query_in,
                                          buffers->hidden + (size_t)first * view_floats,
                                          engine->masks + (size_t)first * (size_t)(side * side), buffers->dead + first,
                                          engine->model.pad_embed, (size_t)engine->max_views * view_floats, count,
                                          layers, width, side, pool, vk_padded(width * layers), engine->wide);
    vk_pool_rows(engine, count * vp_geometry_tokens_per_crop(&config->geometry), pool * pool, NULL, features);
}
/* windows that span crops, at most as many at once as in `count` views */
static void vk_stitch(vp_engine *engine, int first, int count, float *features) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, layers = config->vit_layer_count, n = config->window_pool * config->window_pool,
        most = count * vk_view_tokens(config), rest = engine->image_tokens - first * vk_view_tokens(config),
        windows = rest < most ? rest : most;
    const int32_t *places = buffers->places + (size_t)first * (size_t)vk_view_tokens(config) * (size_t)n;
    if (windows <= 0) return;
    vk_at(engine->queue, VP_PART_POOLING, -1);
    engine->backend->kernels.pool_places(engine->queue, buffers->pool_keys, buffers->pool_query_in, buffers->hidden,
                                         places,
                                         (size_t)engine->max_views * (size_t)config->vit_positions * (size_t)width,
                                         windows, n, layers, width, vk_padded(width * layers), engine->wide);
    vk_pool_rows(engine, windows, n, places, features);
}

#define VK_TORCH_EPS 1e-5f /* the default of torch.nn.LayerNorm; projector configs have no eps */
/* passes the concatenated patches of each window through one or two matrices */
static void vk_project(vp_engine *engine, int first, int count, float *features) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = vk_window_width(config), ld = vk_padded(width), ldh = vk_padded(config->projector_dim),
        windows = count * vp_geometry_tokens_per_crop(&config->geometry),
        norm = config->connector == VP_CONNECTOR_NORM_MLP;
    const float *hidden = buffers->hidden + (size_t)first * (size_t)config->vit_positions * (size_t)config->vit_width;
    vk_at(queue, VP_PART_POOLING, -1);
    to->kernels.patch_windows(queue, norm ? (void *)buffers->projector_gate_up : buffers->pool_query_in, hidden, count,
                              config->vit_class_token, config->vit_width,
                              vp_geometry_patches_per_side(&config->geometry), config->geometry.pool, norm ? width : ld,
                              norm || engine->wide);
    vk_at(queue, VP_PART_PROJECTOR, -1);
    if (norm)
        to->kernels.layernorm(queue, buffers->pool_query_in, buffers->projector_gate_up, model->projector_norm.weight,
                              model->projector_norm.bias, windows, width, ld, VK_TORCH_EPS, engine->wide);
    if (config->connector == VP_CONNECTOR_LINEAR) {
        to->linear(queue, features, config->d_model, buffers->pool_query_in, ld, windows, &model->projector_down,
                   VK_STORE_F32);
        return;
    }
    to->linear(queue, buffers->projector_hidden, ldh, buffers->pool_query_in, ld, windows, &model->projector_in,
               VK_GELU);
    to->linear(queue, features, config->d_model, buffers->projector_hidden, ldh, windows, &model->projector_down,
               VK_STORE_F32);
}

/* passes the normed mean of each window's patches through one matrix */
static void vk_mean(vp_engine *engine, int first, int count, float *features) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, ld = vk_padded(width),
        windows = count * vp_geometry_tokens_per_crop(&config->geometry);
    vk_at(engine->queue, VP_PART_POOLING, -1);
    to->kernels.mean_windows(engine->queue, buffers->projector_gate_up,
                             buffers->hidden + (size_t)first * (size_t)config->vit_positions * (size_t)width, count,
                             config->vit_class_token, width, vp_geometry_patches_per_side(&config->geometry),
                             config->geometry.pool);
    vk_at(engine->queue, VP_PART_PROJECTOR, -1);
    to->kernels.rmsnorm(engine->queue, buffers->pool_query_in, buffers->projector_gate_up, model->projector_norm.weight,
                        windows, width, ld, config->vit_norm_eps, engine->wide);
    to->linear(engine->queue, features, config->d_model, buffers->pool_query_in, ld, windows, &model->projector_down,
               VK_STORE_F32);
}

/* windows of a native image: their patches are normed, concatenated and passed through two matrices. The outputs of the
 * DeepStack blocks are processed in the same way, but normed after concatenation. */
static void vk_merge(vp_engine *engine, int count) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = vk_window_width(config), ld = vk_padded(width), d = config->d_model;
    size_t layer = (size_t)engine->max_views * (size_t)width;
    for (int l = 0; l <= config->deepstack_count; l++) {
        const vk_merger *level = &model->deepstack[l ? l - 1 : 0];
        vk_at(queue, VP_PART_POOLING, -1);
        if (l)
            to->kernels.layernorm(queue, buffers->pool_query_in, buffers->hidden + (size_t)l * layer,
                                  level->norm.weight, level->norm.bias, count, width, ld, config->vit_norm_eps,
                                  engine->wide);
        else {
            vk_vit_norm(engine, buffers->projector_gate_up, buffers->hidden, &model->projector_norm,
                        count * config->vit_positions, config->vit_width, 1);
            to->kernels.take_rows(queue, buffers->pool_query_in, buffers->projector_gate_up, buffers->view_place, count,
                                  width, ld, engine->wide);
        }
        vk_at(queue, VP_PART_PROJECTOR, -1);
        to->linear(queue, buffers->projector_hidden, ld, buffers->pool_query_in, ld, count,
                   l ? &level->in : &model->projector_in, VK_GELU);
        to->linear(queue, buffers->image_features + (size_t)l * (size_t)engine->max_views * (size_t)d, d,
                   buffers->projector_hidden, ld, count, l ? &level->down : &model->projector_down, VK_STORE_F32);
    }
}

void vk_connector(vp_engine *engine, int first, int count) {
    float *features = engine->buffers.image_features
                      + (size_t)first * (size_t)vk_view_tokens(&engine->config) * (size_t)engine->config.d_model;
    if (engine->config.connector == VP_CONNECTOR_MERGER) vk_merge(engine, count);
    else if (engine->config.connector == VP_CONNECTOR_POOLING) vk_pool(engine, first, count, features);
    else if (engine->config.connector == VP_CONNECTOR_MEAN) vk_mean(engine, first, count, features);
    else if (engine->config.connector == VP_CONNECTOR_STITCHED) vk_stitch(engine, first, count, features);
    else vk_project(engine, first, count, features);
}

static vk_table vk_embedding_of(const vp_engine *engine) {
    const vk_model *model = &engine->model;
    vk_table table = {model->embedding, engine->config.d_model, 0, 0.0f};
    if (model->embedding == model->head.weights) {
        table.ld = model->head.k_padded;
        table.panels = !engine->backend->row_major;
        table.scale = vk_embedding_scale(&engine->config, engine->wide);
    }
    return table;
}
void vk_embed(vp_engine *engine, const int32_t *ids, int rows) {
    vk_table table = vk_embedding_of(engine);
    vk_at(engine->queue, VP_PART_EMBED, -1);
    engine->backend->kernels.embed(engine->queue, engine->buffers.x, &table, ids, rows, engine->config.d_model,
                                   engine->wide);
}

void vk_add_image(vp_engine *engine) {
    vk_buffers *buffers = &engine->buffers;
    const vk_kernels *kernels = &engine->backend->kernels;
    (engine->config.image_replaces ? kernels->place_rows : kernels->scatter_add)(
        engine->queue, buffers->x, engine->pruning.from, buffers->image_index,
        engine->pruning.early ? engine->pruning.early_keep : engine->image_tokens, engine->config.d_model);
}

void vk_compose_rope(vp_engine *engine, int rows) {
    vk_buffers *buffers = &engine->buffers;
    vk_at(engine->queue, VP_PART_EMBED, -1);
    engine->backend->kernels.compose_rope(engine->queue, buffers->cs, buffers->cs_table, buffers->rope_positions,
                                          buffers->rope_axes, rows, engine->max_sequence, engine->config.head_dim);
}

/* adds the DeepStack features of a level to the image tokens after block `block` */
static void vk_add_deepstack(vp_engine *engine, int block, int views) {
    vk_buffers *buffers = &engine->buffers;
    vk_at(engine->queue, VP_PART_EMBED, block);
    engine->backend->kernels.scatter_add(
        engine->queue, buffers->x, engine->pruning.from + (size_t)(1 + block) * engine->pruning.level,
        buffers->image_index, engine->pruning.early ? engine->pruning.early_keep : views, engine->config.d_model);
}

/* the experts of many tokens without leaving the device: lists and tiles, two products, sums */
static void vk_moe_tiles(vp_engine *engine, const vk_block *layer, int first, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, second = config->expert_count > 1;
    vk_experts_job job;
    job.stream = buffers->x + (size_t)first * (size_t)d;
    job.y = buffers->expert_out;
    job.hidden = buffers->expert_hidden;
    job.ldx = job.ldy = vk_padded(d);
    job.x = (const char *)buffers->normed + (size_t)first * (size_t)job.ldx * (engine->wide ? 4 : 2);
    job.gate_up = &layer->gate_up[0];
    job.down = &layer->down[0];
    job.gate_up_stride = (size_t)((char *)layer->gate_up[second].weights - (char *)layer->gate_up[0].weights);
    job.down_stride = (size_t)((char *)layer->down[second].weights - (char *)layer->down[0].weights);
    job.start = buffers->expert_start;
    job.list = buffers->expert_list;
    job.slot_row = buffers->slot_row;
    job.tiles = buffers->expert_tiles;
    job.weight = buffers->expert_weight;
    job.pairs = rows * top_k;
    job.top_k = top_k;
    job.experts = config->expert_count;
    to->kernels.moe_lists(engine->queue, buffers->expert_count, buffers->expert_start, buffers->expert_list,
                          buffers->slot_row, buffers->expert_tiles, buffers->expert_index, config->expert_count,
                          job.pairs, VK_TILE_ROWS);
    to->experts(engine->queue, &job);
}

/* the experts of many tokens: gather the rows of each expert, one product per expert, combine. A GPU uses this for
 * fp32 and with VP_GPU_LIBRARY. The host then waits once per block for the counts: cuBLAS needs the sizes there. */
static void vk_moe_tokens(vp_engine *engine, const vk_block *layer, int first, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int d = config->d_model, ld = vk_padded(d), hidden = config->expert_dim, ldh = vk_padded(hidden),
        pairs = rows * top_k, fused = vk_gates_in_product(engine, hidden);
    size_t element = engine->wide ? 4 : 2, start = 0;
    const char *normed = (const char *)buffers->normed + (size_t)first * (size_t)ld * element;
    /* These counts are used if the device has failed. A dry run spreads the rows evenly over the experts, which gives
     * the largest number of launches. */
    for (int i = 0; i < config->expert_count; i++)
        engine->counts[i] = queue->dry ? pairs / config->expert_count + (i < pairs % config->expert_count) : 0;
    to->kernels.moe_lists(queue, buffers->expert_count, buffers->expert_start, buffers->expert_list, buffers->slot_row,
                          NULL, buffers->expert_index, config->expert_count, pairs, 1);
    to->fetch(queue, engine->counts, buffers->expert_count, (size_t)config->expert_count * sizeof *engine->counts);
    to->kernels.gather(queue, buffers->gathered, normed, buffers->expert_list, pairs, top_k,
                       (int)((size_t)ld * element));
    for (int i = 0; i < config->expert_count; i++) {
        vk_gemm_job *job = &engine->jobs[i];
        job->y = fused ? (char *)buffers->expert_hidden + start * (size_t)ldh * element
                       : (char *)(buffers->gate_up + start * 2 * (size_t)hidden);
        job->ldy = fused ? ldh : 2 * hidden;
        job->x = (char *)buffers->gathered + start * (size_t)ld * element;
        job->ldx = ld;
        job->w = &layer->gate_up[i];
        job->m = engine->counts[i];
        start += (size_t)engine->counts[i];
    }
    to->grouped(queue, engine->jobs, config->expert_count, fused ? VK_SILU_MUL : VK_STORE_F32);
    if (!fused)
        to->kernels.gate_mul(queue, buffers->expert_hidden, buffers->gate_up, pairs, hidden, ldh, 0, engine->wide);
    start = 0;
    for (int i = 0; i < config->expert_count; i++) {
        vk_gemm_job *job = &engine->jobs[i];
        job->y = (float *)buffers->expert_out + start * (size_t)d;
        job->ldy = d;
        job->x = (char *)buffers->expert_hidden + start * (size_t)ldh * element;
        job->ldx = ldh;
        job->w = &layer->down[i];
        start += (size_t)engine->counts[i];
    }
    to->grouped(queue, engine->jobs, config->expert_count, VK_STORE_F32);
    to->kernels.combine(queue, buffers->x + (size_t)first * (size_t)d, buffers->expert_out, buffers->slot_row,
                        buffers->expert_weight, rows, top_k, d);
}

void vk_moe(vp_engine *engine, int block, int first, int rows, int top_k) {
    const vk_block *layer = &engine->model.blocks[block];
    vk_at(engine->queue, VP_PART_EXPERTS, block);
    if (vk_has_tiles(engine)) vk_moe_tiles(engine, layer, first, rows, top_k);
    else vk_moe_tokens(engine, layer, first, rows, top_k);
}

/* a dense MLP; its input is `normed`, starting at row `first` */
static void vk_dense(vp_engine *engine, const vk_block *layer, int first, int rows) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, ld = vk_padded(d), hidden = config->mlp_dim, ldh = vk_padded(hidden);
    const char *normed = (const char *)buffers->normed + (size_t)first * (size_t)ld * (engine->wide ? 4 : 2);
    int after = layer->ff_after.weight != NULL;
    float *out = (after ? buffers->y : buffers->x) + (size_t)first * (size_t)d;
    vk_gated(engine, buffers->expert_hidden, buffers->gate_up, normed, ld, rows, &layer->gate_up[0],
             config->gated_gelu ? VK_GELU_MUL : VK_SILU_MUL);
    to->linear(engine->queue, out, d, buffers->expert_hidden, ldh, rows, &layer->down[0],
               after ? VK_STORE_F32 : VK_ADD_F32);
}

static vk_decode_job vk_decode_job_of(vp_engine *engine, int block, int position, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    vk_buffers *buffers = &engine->buffers;
    size_t cache = vk_cache_of(engine, block);
    int second = config->expert_count > 1;
    vk_decode_job job = {0};
    job.att_proj = &layer->att_proj;
    job.attn_out = &layer->attn_out;
    job.router = &layer->router;
    job.gate_up = &layer->gate_up[0];
    job.down = &layer->down[0];
    job.gate_up_stride = (size_t)((char *)layer->gate_up[second].weights - (char *)layer->gate_up[0].weights);
    job.down_stride = (size_t)((char *)layer->down[second].weights - (char *)layer->down[0].weights);
    job.attn_norm = layer->attn_norm.weight;
    job.ff_norm = layer->ff_norm.weight;
    job.attn_after = layer->attn_after.weight;
    job.ff_after = layer->ff_after.weight;
    job.gelu = config->gated_gelu;
    job.heads = vk_heads_of(engine, block);
    job.eps = config->norm_eps;
    job.d = config->d_model;
    job.expert_dim = vk_mlp_dim(config);
    job.top_k = top_k;
    job.norm_topk = config->norm_topk;
    job.max_sequence = engine->max_sequence;
    job.keys = position + 1;
    job.position = buffers->position + vk_region_of(engine, block);
    job.x = buffers->x;
    job.y = buffers->y;
    job.qkv = buffers->qkv;
    job.scratch = buffers->decode_scratch;
    job.logits = buffers->router_logits;
    job.weight = buffers->expert_weight;
    job.key = (char *)buffers->key + cache;
    job.value = (char *)buffers->value + cache;
    job.q = buffers->q;
    job.attended = buffers->attended;
    job.normed = buffers->normed;
    job.hidden = buffers->expert_hidden;
    job.index = buffers->expert_index;
    return job;
}

/* one transformer block over one token (row `row` of x), like vk_block_forward, but all choices are made on the
 * device */
static void vk_block_decode(vp_engine *engine, int block, int row, int position, int top_k) {
    const vk_decode_kernels *to = engine->backend->decode;
    vk_queue *queue = engine->queue;
    vk_decode_job job = vk_decode_job_of(engine, block, position, top_k);
    job.x += (size_t)row * (size_t)engine->config.d_model;
    vk_at(queue, VP_PART_DENSE, block);
    to->qkv(queue, &job);
    vk_at(queue, VP_PART_ATTENTION, block);
    to->attention(queue, &job);
    vk_at(queue, VP_PART_DENSE, block);
    to->attn_out(queue, &job);
    if (!engine->config.expert_count) {
        to->dense_gate_up(queue, &job);
        to->dense_down(queue, &job);
        return;
    }
    vk_at(queue, VP_PART_ROUTER, block);
    to->router(queue, &job);
    vk_at(queue, VP_PART_EXPERTS, block);
    to->gate_up(queue, &job);
    to->down(queue, &job);
}

/* attention over `rows` new tokens, from `normed` to `attended`; appends to the cache */
static void vk_attend(vp_engine *engine, int block, int rows, int position) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    vk_heads heads = vk_heads_of(engine, block);
    int q = vk_q_width(config), kv = vk_kv_width(config), ld = vk_padded(q), wide = engine->wide;
    size_t cache = vk_cache_of(engine, block);
    char *key = (char *)buffers->key + cache, *value = (char *)buffers->value + cache;
    int32_t *at = buffers->position + vk_region_of(engine, block);
    vk_attention_job job = {0};
    to->linear(queue, buffers->qkv, q + 2 * kv, buffers->normed, vk_padded(config->d_model), rows, &layer->att_proj,
               VK_STORE_F32);
    vk_at(queue, VP_PART_ATTENTION, block);
    to->kernels.qk_norm_rope(queue, buffers->q, key, value, buffers->qkv, &heads, at, rows, ld, wide);
    if (rows == 1) {
        to->kernels.attention_decode(queue, buffers->attended, buffers->q, key, value, buffers->decode_scratch, at,
                                     position + 1, engine->max_sequence, &heads, wide);
        return;
    }
    job.y = buffers->attended;
    job.q = buffers->q;
    job.ldy = job.ldq = ld;
    job.k = key;
    job.v = value;
    job.ldk = kv;
    job.batch = 1;
    job.tokens = rows;
    job.heads = config->head_count;
    job.kv_heads = config->kv_head_count;
    job.head_dim = config->head_dim;
    job.causal = 1;
    job.window = heads.window;
    job.gone = heads.gone;
    job.reach = engine->has_reach ? buffers->reach : NULL;
    job.scores = engine->scores[job.window > 0];
    to->attention(queue, &job);
}

/* chooses the experts for `rows` rows, starting at `first`, and computes `normed`, which the experts read */
static void vk_choose(vp_engine *engine, int block, int first, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, ld = vk_padded(d), experts = config->expert_count;
    size_t at = (size_t)first * (size_t)ld;
    const float *x = buffers->x + (size_t)first * (size_t)d;
    vk_at(engine->queue, VP_PART_DENSE, block);
    vk_norm_before(engine, &layer->ff_norm, first, rows);
    vk_at(engine->queue, VP_PART_ROUTER, block);
    if (!engine->wide)
        to->kernels.rmsnorm(engine->queue, (float *)buffers->normed_wide + at, x, layer->ff_norm.weight, rows, d, ld,
                            config->norm_eps, 1);
    to->linear(engine->queue, buffers->router_logits, experts, (float *)buffers->normed_wide + at, ld, rows,
               &layer->router, VK_STORE_F32);
    to->kernels.router(engine->queue, buffers->expert_index, buffers->expert_weight, buffers->router_logits, rows,
                       experts, top_k, config->norm_topk);
}

void vk_block_forward(vp_engine *engine, int block, int rows, int position, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int after = layer->attn_after.weight != NULL;
    int d = config->d_model, chunk = engine->moe_rows / (config->expert_count ? top_k : 1);
    if (rows == 1 && to->decode) {
        vk_block_decode(engine, block, 0, position, top_k);
        return;
    }
    vk_at(queue, VP_PART_DENSE, block);
    vk_norm_before(engine, &layer->attn_norm, 0, rows);
    vk_attend(engine, block, rows, position);
    vk_at(queue, VP_PART_DENSE, block);
    to->linear(queue, after ? buffers->y : buffers->x, d, buffers->attended, vk_padded(vk_q_width(config)), rows,
               &layer->attn_out, after ? VK_STORE_F32 : VK_ADD_F32);
    if (after)
        to->kernels.add_rmsnorm(queue, buffers->x, buffers->y, layer->attn_after.weight, rows, d, config->norm_eps);
    if (!config->expert_count) {
        vk_norm_before(engine, &layer->ff_norm, 0, rows);
        for (int first = 0; first < rows; first += chunk)
            vk_dense(engine, layer, first, rows - first < chunk ? rows - first : chunk);
        if (layer->ff_after.weight)
            to->kernels.add_rmsnorm(queue, buffers->x, buffers->y, layer->ff_after.weight, rows, d, config->norm_eps);
        return;
    }
    for (int first = 0; first < rows; first += chunk) {
        int now = rows - first < chunk ? rows - first : chunk;
        vk_choose(engine, block, first, now, top_k);
        vk_moe(engine, block, first, now, top_k);
    }
}

/* The last block of a prefill. Only its last row is used later, so it computes keys and values for the earlier rows,
 * then a decode step for the last row. The position becomes that of the last row. */
static void vk_block_last(vp_engine *engine, int block, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    vk_heads heads = vk_heads_of(engine, block);
    int q = vk_q_width(config), kv = vk_kv_width(config), wide = engine->wide;
    vk_linear linear = vk_rows_of(&layer->att_proj, q, 2 * kv, wide); /* its rows are q | k | v */
    size_t cache = vk_cache_of(engine, block);
    int32_t *at = buffers->position + vk_region_of(engine, block);
    heads.heads = 0;
    if (rows > 1) {
        vk_at(queue, VP_PART_DENSE, block);
        vk_norm_before(engine, &layer->attn_norm, 0, rows - 1);
        to->linear(queue, buffers->qkv, 2 * kv, buffers->normed, vk_padded(config->d_model), rows - 1, &linear,
                   VK_STORE_F32);
        vk_at(queue, VP_PART_ATTENTION, block);
        to->kernels.qk_norm_rope(queue, buffers->q, (char *)buffers->key + cache, (char *)buffers->value + cache,
                                 buffers->qkv, &heads, at, rows - 1, vk_padded(q), wide);
        to->kernels.advance(queue, at, rows - 1);
    }
    vk_block_decode(engine, block, rows - 1, rows - 1, top_k);
}

/* the job for logits of row `row` and the next token, with dedicated kernels */
static vk_decode_end_job vk_decode_end_job_of(vp_engine *engine, int row) {
    vk_buffers *buffers = &engine->buffers;
    vk_decode_end_job job = {0};
    job.x = buffers->x + (size_t)row * (size_t)engine->config.d_model;
    job.norm = engine->model.ln_f.weight;
    job.eps = engine->config.norm_eps;
    job.head = &engine->model.head;
    job.logits = buffers->logits;
    job.scratch = buffers->decode_scratch;
    job.table = vk_embedding_of(engine);
    job.token = buffers->token;
    job.position = buffers->position;
    return job;
}

void vk_head(vp_engine *engine, int row) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, ld = vk_padded(d);
    vk_at(engine->queue, VP_PART_HEAD, -1);
    if (engine->backend->decode) {
        vk_decode_end_job job = vk_decode_end_job_of(engine, row);
        engine->backend->decode->head(engine->queue, &job);
        return;
    }
    engine->backend->kernels.rmsnorm(engine->queue, buffers->normed, buffers->x + (size_t)row * (size_t)d,
                                     engine->model.ln_f.weight, 1, d, ld, config->norm_eps, engine->wide);
    engine->backend->linear(engine->queue, buffers->logits, config->embedding_size, buffers->normed, ld, 1,
                            &engine->model.head, VK_STORE_F32);
}

void vk_sample(vp_engine *engine, int rows) {
    vk_at(engine->queue, VP_PART_SAMPLE, -1);
    if (engine->backend->decode) {
        vk_decode_end_job job = vk_decode_end_job_of(engine, 0);
        engine->backend->decode->pick(engine->queue, &job);
        for (int region = 1; region < engine->pruning.region_count; region++)
            engine->backend->kernels.advance(engine->queue, engine->buffers.position + region, 1);
        return;
    }
    engine->backend->kernels.argmax(engine->queue, engine->buffers.token, engine->buffers.logits, 1,
                                    engine->config.embedding_size);
    for (int region = 0; region < engine->pruning.region_count; region++)
        engine->backend->kernels.advance(engine->queue, engine->buffers.position + region,
                                         rows > 1 ? engine->pruning.regions[region].rows : 1);
}

/* the stages of an image: its features, the kept ones, and their rows */
static void vk_prefill_image(vp_engine *engine, const vp_request *request, vp_reply *reply) {
    int views = request->views, batch = engine->view_batch;
    for (int v = 0; v < views; v += batch) vk_vit(engine, v, views - v < batch ? views - v : batch);
    vk_end_stage(engine, reply, VP_STAGE_VIT);
    vk_prune_connector(engine, request);
    for (int v = 0; v < views && !engine->pruning.skips_features; v += batch)
        vk_connector(engine, v, views - v < batch ? views - v : batch);
    vk_end_stage(engine, reply, VP_STAGE_CONNECTOR);
    if (request->dump && !engine->queue->dry) vk_dump_vision(engine, request);
    vk_prune_early_rows(engine, request);
}

void vk_prefill(vp_engine *engine, const vp_request *request, vp_reply *reply) {
    int views = request->views, one_row = -1, rows; /* one_row: the region whose last block ran for one row */
    vk_pruning *pruning = &engine->pruning;
    pruning->reply = reply;
    if (views) vk_prefill_image(engine, request, reply);
    vk_embed(engine, engine->buffers.ids, pruning->regions[0].rows);
    if (views) vk_add_image(engine);
    if (vk_has_mrope(&engine->config) && !pruning->regions[0].cs)
        vk_compose_rope(engine, request->input_count + request->max_new_tokens - 1);
    vk_end_stage(engine, reply, VP_STAGE_EMBED);
    if (pruning->early && request->dump && !engine->queue->dry) vk_dump_kept(engine, request);
    for (int b = 0, i = 0; b < engine->config.block_count; b++) {
        int is_active = i < request->active_block_count && request->active_blocks[i] == b,
            adds = views && b < engine->config.deepstack_count,
            is_last = is_active && i + 1 == request->active_block_count, region = vk_region_of(engine, b);
        vk_prune_before_block(engine, request, b);
        rows = pruning->regions[region].rows;
        /* a dump of only logits also skips the other rows of the last block, so that it is bit-identical */
        if (is_last && engine->backend->decode && !adds
            && !(request->dump && (request->dump->block_last || request->dump->block_mean)))
            one_row = region;
        if (is_last && one_row >= 0) vk_block_last(engine, b, rows, request->top_k);
        else if (is_active) vk_block_forward(engine, b, rows, 0, request->top_k);
        if (adds) vk_add_deepstack(engine, b, views);
        if (is_active && request->dump && !engine->queue->dry) vk_dump_block(engine, request, i, rows);
        i += is_active;
    }
    for (int region = 0; region < pruning->region_count && engine->backend->decode; region++) {
        rows = pruning->regions[region].rows;
        if (region != one_row && rows > 1)
            engine->backend->kernels.advance(engine->queue, engine->buffers.position + region, rows - 1);
    }
    vk_end_stage(engine, reply, VP_STAGE_PREFILL);
    rows = pruning->regions[pruning->region_count - 1].rows;
    vk_head(engine, rows - 1);
    vk_end_stage(engine, reply, VP_STAGE_HEAD);
    vk_sample(engine, request->input_count);
    vk_end_stage(engine, reply, VP_STAGE_SAMPLE);
}

void vk_step(vp_engine *engine, const vp_request *request, int position) {
    vk_embed(engine, engine->buffers.token, 1);
    for (int i = 0; i < request->active_block_count; i++) {
        int block = request->active_blocks[i],
            gone = request->input_count - engine->pruning.regions[vk_region_of(engine, block)].rows;
        vk_block_forward(engine, block, 1, position - gone, request->top_k);
    }
    vk_head(engine, 0);
    vk_sample(engine, 1);
}

typedef struct vk_step_work {
    vp_engine *engine;
    const vp_request *request;
    int position;
} vk_step_work;
static void vk_work_step(void *context) {
    const vk_step_work *work = context;
    vk_step(work->engine, work->request, work->position);
}

/* Submits a decode step: kernel by kernel the first time, then recorded, then replayed. Only data on the device (token,
 * position, caches) change between steps, so one recording serves all steps with these knobs. Recording once takes some
 * host time, so warm up with at least two tokens. */
void vk_send_step(vp_engine *engine, const vp_request *request, int position) {
    const vk_backend *to = engine->backend;
    uint64_t key = vk_mix((uint64_t)request->top_k);
    for (int i = 0; i < request->active_block_count; i++) {
        const int region = vk_region_of(engine, request->active_blocks[i]);
        const uint64_t turned = engine->pruning.regions[region].cs != NULL;
        key = vk_mix(key ^ ((uint64_t)(request->active_blocks[i] + 1) | (uint64_t)region << 32 | turned << 48));
    }
    key = vk_mix(key ^ ((uint64_t)(engine->pruning.region_count - 1) << 56));
    vk_queue *queue = engine->queue;
    const int replays = !queue->log || queue->traced; /* otherwise each launch is timed by two events */
    if (to->replay && replays && to->replay(queue, key)) {
        engine->queue->dry = 1; /* the replay does the work; this only counts it, with this step's number of keys */
        vk_step(engine, request, position);
        engine->queue->dry = 0;
        return;
    }
    if (to->together) {
        vk_step_work work = {engine, request, position};
        to->together(engine->queue, vk_work_step, &work);
        return;
    }
    vk_step(engine, request, position);
    if (to->record && replays && to->record(queue)) {
        vk_work counted = queue->work; /* recorded work is not submitted */
        vp_launch *log = queue->log;
        queue->log = NULL;
        vk_step(engine, request, position);
        to->keep(queue, key);
        queue->log = log;
        queue->work = counted;
    }
}
