/* stages.c - the stages of a model, sent to a backend operation by operation */
#include "engine_internal.h"

#include <string.h>

void vk_vit(vp_engine *engine, int first, int count) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = config->vit_width, ld = vk_padded(width), ld3 = vk_padded(3 * width),
        ldh = vk_padded(config->vit_mlp_dim), patches = config->vit_positions - 1, rows = count * config->vit_positions,
        wide = engine->wide, values = vk_patch_values(config), ldp = vk_padded(values);
    size_t element = wide ? 4 : 2, view_floats = (size_t)config->vit_positions * (size_t)width;
    vk_attention_job job;
    vk_at(queue, VP_PART_VIT_EMBED, -1);
    to->kernels.convert(queue, buffers->patches, engine->pixels + (size_t)first * (size_t)patches * (size_t)values,
                        count * patches, values, ldp, wide);
    to->linear(queue, buffers->patch_rows, width, buffers->patches, ldp, count * patches, &model->patch, VK_STORE_F32);
    to->kernels.vit_embed(queue, buffers->vit_x, buffers->patch_rows, model->class_embedding, model->positions, count,
                          config->vit_positions, width);
    to->kernels.layernorm(queue, buffers->vit_x, buffers->vit_x, model->pre_ln.weight, model->pre_ln.bias, rows, width,
                          width, config->vit_norm_eps, 1);
    memset(&job, 0, sizeof job);
    job.y = buffers->vit_attended;
    job.ldy = ld;
    job.q = buffers->vit_qkv;
    job.k = (char *)buffers->vit_qkv + (size_t)width * element;
    job.v = (char *)buffers->vit_qkv + 2 * (size_t)width * element;
    job.ldq = job.ldk = ld3;
    job.batch = count;
    job.tokens = config->vit_positions;
    job.heads = config->vit_head_count;
    job.head_dim = config->vit_head_dim;
    for (int i = 0; i < config->vit_blocks_needed; i++) {
        const vk_vit_block *layer = &model->vit[i];
        vk_at(queue, VP_PART_VIT_DENSE, i);
        to->kernels.layernorm(queue, buffers->vit_normed, buffers->vit_x, layer->attention_norm.weight,
                              layer->attention_norm.bias, rows, width, ld, config->vit_norm_eps, wide);
        to->linear(queue, buffers->vit_qkv, ld3, buffers->vit_normed, ld, rows, &layer->qkv, VK_STORE);
        vk_at(queue, VP_PART_VIT_ATTENTION, i);
        to->attention(queue, &job);
        vk_at(queue, VP_PART_VIT_DENSE, i);
        to->linear(queue, buffers->vit_x, width, buffers->vit_attended, ld, rows, &layer->wo, VK_ADD_F32);
        to->kernels.layernorm(queue, buffers->vit_normed, buffers->vit_x, layer->ffn_norm.weight, layer->ffn_norm.bias,
                              rows, width, ld, config->vit_norm_eps, wide);
        to->linear(queue, buffers->vit_hidden, ldh, buffers->vit_normed, ld, rows, &layer->w1, VK_QUICKGELU);
        to->linear(queue, buffers->vit_x, width, buffers->vit_hidden, ldh, rows, &layer->w2, VK_ADD_F32);
        for (int l = 0; l < config->vit_layer_count; l++)
            if (engine->vit_layer_at[l] == i)
                to->copy(queue, buffers->hidden + ((size_t)l * (size_t)engine->max_views + (size_t)first) * view_floats,
                         buffers->vit_x, (size_t)count * view_floats * sizeof(float));
    }
}

void vk_connector(vp_engine *engine, int first, int count) {
    const vp_model_config *config = &engine->config;
    const vk_model *model = &engine->model;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int width = config->vit_width, layers = config->vit_layer_count, ldf = vk_padded(width * layers),
        ld = vk_padded(width), ldh = vk_padded(config->projector_dim), wide = engine->wide,
        side = vp_geometry_patches_per_side(&config->geometry), pool = config->geometry.pool, n = pool * pool,
        per_view = vp_geometry_tokens_per_crop(&config->geometry), windows = count * per_view;
    size_t view_floats = (size_t)config->vit_positions * (size_t)width;
    float *features = buffers->image_features + (size_t)first * (size_t)per_view * (size_t)config->d_model;
    vk_at(queue, VP_PART_POOLING, -1);
    to->kernels.pool_windows(
        queue, buffers->pool_keys, buffers->pool_query_in, buffers->hidden + (size_t)first * view_floats,
        engine->masks + (size_t)first * (size_t)(side * side), buffers->dead + first, model->pad_embed,
        (size_t)engine->max_views * view_floats, count, layers, width, side, pool, ldf, wide);
    to->linear(queue, buffers->pool_query, width, buffers->pool_query_in, ldf, windows, &model->pool_query,
               VK_STORE_F32);
    to->linear(queue, buffers->pool_key_value, 2 * width, buffers->pool_keys, ldf, windows * n, &model->pool_key_value,
               VK_STORE_F32);
    to->kernels.pool_attention(queue, buffers->pool_attended, buffers->pool_query, buffers->pool_key_value, windows, n,
                               config->vit_head_count, config->vit_head_dim, ld, wide);
    to->linear(queue, buffers->pool_out, ld, buffers->pool_attended, ld, windows, &model->pool_out, VK_STORE);
    vk_at(queue, VP_PART_PROJECTOR, -1);
    to->linear(queue, buffers->projector_gate_up, 2 * config->projector_dim, buffers->pool_out, ld, windows,
               &model->projector_gate_up, VK_STORE_F32);
    to->kernels.silu_mul(queue, buffers->projector_hidden, buffers->projector_gate_up, windows, config->projector_dim,
                         ldh, wide);
    to->linear(queue, features, config->d_model, buffers->projector_hidden, ldh, windows, &model->projector_down,
               VK_STORE_F32);
}

void vk_embed(vp_engine *engine, const int32_t *ids, int rows) {
    vk_at(engine->queue, VP_PART_EMBED, -1);
    engine->backend->kernels.embed(engine->queue, engine->buffers.x, engine->model.embedding, ids, rows,
                                   engine->config.d_model, engine->wide);
}

void vk_add_image(vp_engine *engine, int views) {
    vk_buffers *buffers = &engine->buffers;
    engine->backend->kernels.scatter_add(engine->queue, buffers->x, buffers->image_features, buffers->image_index,
                                         views * vp_geometry_tokens_per_crop(&engine->config.geometry),
                                         engine->config.d_model);
}

/* the experts of many tokens where nothing leaves the device: lists and tiles, two products, sums */
static void vk_moe_tiles(vp_engine *engine, const vk_block *layer, int first, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, second = config->expert_count > 1;
    vk_experts_job job;
    job.y = buffers->expert_out;
    job.hidden = buffers->expert_hidden;
    job.ldx = vk_padded(d);
    job.x = (const char *)buffers->normed + (size_t)first * (size_t)job.ldx * (engine->wide ? 4 : 2);
    job.gate_up = &layer->gate_up[0];
    job.down = &layer->down[0];
    job.gate_up_stride = (size_t)((char *)layer->gate_up[second].weights - (char *)layer->gate_up[0].weights);
    job.down_stride = (size_t)((char *)layer->down[second].weights - (char *)layer->down[0].weights);
    job.start = buffers->expert_start;
    job.list = buffers->expert_list;
    job.tiles = buffers->expert_tiles;
    job.pairs = rows * top_k;
    job.top_k = top_k;
    job.experts = config->expert_count;
    to->kernels.moe_lists(engine->queue, buffers->expert_count, buffers->expert_start, buffers->expert_list,
                          buffers->slot_row, buffers->expert_tiles, buffers->expert_index, config->expert_count,
                          job.pairs, to->tile_rows);
    to->experts(engine->queue, &job);
    to->kernels.combine(engine->queue, buffers->x + (size_t)first * (size_t)d, buffers->expert_out, buffers->slot_row,
                        buffers->expert_weight, rows, top_k, d);
}

/* the experts of many tokens: gather the rows of each expert, one product an expert, combine. On a GPU, where fp32
 * comes here, the host waits once a block for the counts: cuBLAS takes its sizes from the host. */
static void vk_moe_tokens(vp_engine *engine, const vk_block *layer, int first, int rows, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int d = config->d_model, ld = vk_padded(d), hidden = config->expert_dim, ldh = vk_padded(hidden),
        pairs = rows * top_k;
    size_t element = engine->wide ? 4 : 2, start = 0;
    const char *normed = (const char *)buffers->normed + (size_t)first * (size_t)ld * element;
    /* what stays when the device has failed; when launches are only counted, experts share the rows evenly: no request
     * has more launches */
    for (int i = 0; i < config->expert_count; i++)
        engine->counts[i] = queue->dry ? pairs / config->expert_count + (i < pairs % config->expert_count) : 0;
    to->kernels.moe_lists(queue, buffers->expert_count, buffers->expert_start, buffers->expert_list, buffers->slot_row,
                          NULL, buffers->expert_index, config->expert_count, pairs, 1);
    to->fetch(queue, engine->counts, buffers->expert_count, (size_t)config->expert_count * sizeof *engine->counts);
    to->kernels.gather(queue, buffers->gathered, normed, buffers->expert_list, pairs, top_k,
                       (int)((size_t)ld * element));
    for (int i = 0; i < config->expert_count; i++) {
        vk_gemm_job *job = &engine->jobs[i];
        job->y = buffers->gate_up + start * 2 * (size_t)hidden;
        job->ldy = 2 * hidden;
        job->x = (char *)buffers->gathered + start * (size_t)ld * element;
        job->ldx = ld;
        job->w = &layer->gate_up[i];
        job->m = engine->counts[i];
        start += (size_t)engine->counts[i];
    }
    to->grouped(queue, engine->jobs, config->expert_count, VK_STORE_F32);
    to->kernels.silu_mul(queue, buffers->expert_hidden, buffers->gate_up, pairs, hidden, ldh, engine->wide);
    start = 0;
    for (int i = 0; i < config->expert_count; i++) {
        vk_gemm_job *job = &engine->jobs[i];
        job->y = buffers->expert_out + start * (size_t)d;
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
    vk_buffers *buffers = &engine->buffers;
    vk_at(engine->queue, VP_PART_ROUTER, block);
    engine->backend->kernels.router(engine->queue, buffers->expert_index, buffers->expert_weight,
                                    buffers->router_logits + (size_t)first * (size_t)engine->config.expert_count, rows,
                                    engine->config.expert_count, top_k);
    vk_at(engine->queue, VP_PART_EXPERTS, block);
    if (vk_has_tiles(engine)) vk_moe_tiles(engine, layer, first, rows, top_k);
    else vk_moe_tokens(engine, layer, first, rows, top_k);
}

/* one transformer block over one token, as vk_block_forward; everything is decided on the device */
static void vk_block_decode(vp_engine *engine, int block, int position, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_decode_kernels *to = engine->backend->decode;
    vk_buffers *buffers = &engine->buffers;
    size_t cache = (size_t)block * (size_t)engine->max_sequence * (size_t)config->d_model * (engine->wide ? 4 : 2);
    int second = config->expert_count > 1;
    vk_decode_job job;
    memset(&job, 0, sizeof job);
    job.att_proj = &layer->att_proj;
    job.attn_out = &layer->attn_out;
    job.router = &layer->router;
    job.gate_up = &layer->gate_up[0];
    job.down = &layer->down[0];
    job.gate_up_stride = (size_t)((char *)layer->gate_up[second].weights - (char *)layer->gate_up[0].weights);
    job.down_stride = (size_t)((char *)layer->down[second].weights - (char *)layer->down[0].weights);
    job.attn_norm = layer->attn_norm.weight;
    job.q_norm = layer->q_norm.weight;
    job.k_norm = layer->k_norm.weight;
    job.ff_norm = layer->ff_norm.weight;
    job.cs = buffers->cs;
    job.eps = config->norm_eps;
    job.d = config->d_model;
    job.head_dim = config->head_dim;
    job.expert_dim = config->expert_dim;
    job.top_k = top_k;
    job.max_sequence = engine->max_sequence;
    job.keys = position + 1;
    job.position = buffers->position;
    job.x = buffers->x;
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
    vk_at(engine->queue, VP_PART_DENSE, block);
    to->qkv(engine->queue, &job);
    vk_at(engine->queue, VP_PART_ATTENTION, block);
    to->attention(engine->queue, &job);
    vk_at(engine->queue, VP_PART_DENSE, block);
    to->attn_out(engine->queue, &job);
    vk_at(engine->queue, VP_PART_ROUTER, block);
    to->router(engine->queue, &job);
    vk_at(engine->queue, VP_PART_EXPERTS, block);
    to->gate_up(engine->queue, &job);
    to->down(engine->queue, &job);
}

void vk_block_forward(vp_engine *engine, int block, int rows, int position, int top_k) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_queue *queue = engine->queue;
    int d = config->d_model, ld = vk_padded(d), wide = engine->wide, chunk = engine->moe_rows / top_k;
    size_t element = wide ? 4 : 2, cache = (size_t)block * (size_t)engine->max_sequence * (size_t)d * element;
    char *key = (char *)buffers->key + cache, *value = (char *)buffers->value + cache;
    if (rows == 1 && to->decode) {
        vk_block_decode(engine, block, position, top_k);
        return;
    }
    vk_at(queue, VP_PART_DENSE, block);
    to->kernels.rmsnorm(queue, buffers->normed, buffers->x, layer->attn_norm.weight, rows, d, ld, config->norm_eps,
                        wide);
    to->linear(queue, buffers->qkv, 3 * d, buffers->normed, ld, rows, &layer->att_proj, VK_STORE_F32);
    vk_at(queue, VP_PART_ATTENTION, block);
    to->kernels.qk_norm_rope(queue, buffers->q, key, value, buffers->qkv, layer->q_norm.weight, layer->k_norm.weight,
                             buffers->cs, buffers->position, rows, d, config->head_dim, ld, config->norm_eps, wide);
    if (rows == 1) {
        to->kernels.attention_decode(queue, buffers->attended, buffers->q, key, value, buffers->decode_scratch,
                                     buffers->position, position + 1, engine->max_sequence, d, config->head_dim, wide);
    } else {
        vk_attention_job job;
        memset(&job, 0, sizeof job);
        job.y = buffers->attended;
        job.ldy = ld;
        job.q = buffers->q;
        job.ldq = ld;
        job.k = key;
        job.v = value;
        job.ldk = d;
        job.batch = 1;
        job.tokens = rows;
        job.heads = config->head_count;
        job.head_dim = config->head_dim;
        job.causal = 1;
        to->attention(queue, &job);
    }
    vk_at(queue, VP_PART_DENSE, block);
    to->linear(queue, buffers->x, d, buffers->attended, ld, rows, &layer->attn_out, VK_ADD_F32);
    to->kernels.rmsnorm(queue, buffers->normed, buffers->x, layer->ff_norm.weight, rows, d, ld, config->norm_eps, wide);
    vk_at(queue, VP_PART_ROUTER, block);
    if (!wide)
        to->kernels.rmsnorm(queue, buffers->normed_wide, buffers->x, layer->ff_norm.weight, rows, d, ld,
                            config->norm_eps, 1);
    to->linear(queue, buffers->router_logits, config->expert_count, buffers->normed_wide, ld, rows, &layer->router,
               VK_STORE_F32);
    for (int first = 0; first < rows; first += chunk)
        vk_moe(engine, block, first, rows - first < chunk ? rows - first : chunk, top_k);
}

void vk_head(vp_engine *engine, int row) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, ld = vk_padded(d);
    vk_at(engine->queue, VP_PART_HEAD, -1);
    engine->backend->kernels.rmsnorm(engine->queue, buffers->normed, buffers->x + (size_t)row * (size_t)d,
                                     engine->model.ln_f.weight, 1, d, ld, config->norm_eps, engine->wide);
    engine->backend->linear(engine->queue, buffers->logits, config->embedding_size, buffers->normed, ld, 1,
                            &engine->model.head, VK_STORE_F32);
}

void vk_sample(vp_engine *engine, int rows) {
    vk_at(engine->queue, VP_PART_SAMPLE, -1);
    engine->backend->kernels.argmax(engine->queue, engine->buffers.token, engine->buffers.logits, 1,
                                    engine->config.embedding_size);
    engine->backend->kernels.advance(engine->queue, engine->buffers.position, rows);
}

/* logits and the next token of a decode step, its one row, by kernels made for that */
static void vk_end_decode(vp_engine *engine) {
    vk_buffers *buffers = &engine->buffers;
    vk_decode_end_job job;
    memset(&job, 0, sizeof job);
    job.x = buffers->x;
    job.norm = engine->model.ln_f.weight;
    job.eps = engine->config.norm_eps;
    job.head = &engine->model.head;
    job.logits = buffers->logits;
    job.scratch = buffers->decode_scratch;
    job.token = buffers->token;
    job.position = buffers->position;
    vk_at(engine->queue, VP_PART_HEAD, -1);
    engine->backend->decode->head(engine->queue, &job);
    vk_at(engine->queue, VP_PART_SAMPLE, -1);
    engine->backend->decode->pick(engine->queue, &job);
}

void vk_end_step(vp_engine *engine) {
    if (engine->backend->decode) {
        vk_end_decode(engine);
        return;
    }
    vk_head(engine, 0);
    vk_sample(engine, 1);
}

/* A decode step: sent kernel by kernel the first time and recorded behind that, replayed from then on. Nothing in it
 * depends on the step but what lies on the device (token, position, caches), so one recording serves all steps with
 * these knobs. Recording costs the host some time, once: warm up with at least two tokens. */
void vk_send_step(vp_engine *engine, const vp_request *request, int position) {
    const vk_backend *to = engine->backend;
    uint64_t key = vk_mix((uint64_t)request->top_k);
    for (int i = 0; i < request->active_block_count; i++) key = vk_mix(key ^ (uint64_t)(request->active_blocks[i] + 1));
    if (to->replay && !engine->queue->log && to->replay(engine->queue, key)) {
        engine->queue->dry = 1; /* the replay does the work; this counts it, with this step's number of keys */
        vk_step(engine, request, position);
        engine->queue->dry = 0;
        return;
    }
    vk_step(engine, request, position);
    if (to->record && !engine->queue->log) {
        vk_work counted = engine->queue->work; /* what is recorded is not sent */
        if (!to->record(engine->queue)) return;
        vk_step(engine, request, position);
        to->keep(engine->queue, key);
        engine->queue->work = counted;
    }
}
