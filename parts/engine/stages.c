/* stages.c - the stages of a model, sent to a backend operation by operation */
#include "engine_internal.h"

#include <string.h>

void vk_vit(vp_engine *e, int first, int count) {
    const vp_model_config *c = &e->config;
    const vk_model *m = &e->model;
    const vk_backend *to = e->backend;
    vk_buffers *b = &e->buffers;
    vk_queue *queue = e->queue;
    int w = c->vit_width, ld = vk_padded(w), ld3 = vk_padded(3 * w), ldh = vk_padded(c->vit_mlp_dim), patches = c->vit_positions - 1,
        rows = count * c->vit_positions, wide = e->wide, values = vk_patch_values(c), ldp = vk_padded(values);
    size_t element = wide ? 4 : 2, view_floats = (size_t)c->vit_positions * (size_t)w;
    vk_attention_job job;
    vk_at(queue, VP_PART_VIT_EMBED, -1);
    to->kernels.convert(queue, b->patches, e->pixels + (size_t)first * (size_t)patches * (size_t)values, count * patches, values, ldp, wide);
    to->linear(queue, b->patch_rows, w, b->patches, ldp, count * patches, &m->patch, VK_STORE_F32);
    to->kernels.vit_embed(queue, b->vit_x, b->patch_rows, m->class_embedding, m->positions, count, c->vit_positions, w);
    to->kernels.layernorm(queue, b->vit_x, b->vit_x, m->pre_ln.weight, m->pre_ln.bias, rows, w, w, c->vit_norm_eps, 1);
    memset(&job, 0, sizeof job);
    job.y = b->vit_attended; job.ldy = ld;
    job.q = b->vit_qkv; job.k = (char *)b->vit_qkv + (size_t)w * element; job.v = (char *)b->vit_qkv + 2 * (size_t)w * element;
    job.ldq = job.ldk = ld3;
    job.batch = count; job.tokens = c->vit_positions; job.heads = c->vit_head_count; job.head_dim = c->vit_head_dim;
    for (int i = 0; i < c->vit_blocks_needed; i++) {
        const vk_vit_block *v = &m->vit[i];
        vk_at(queue, VP_PART_VIT_DENSE, i);
        to->kernels.layernorm(queue, b->vit_normed, b->vit_x, v->attention_norm.weight, v->attention_norm.bias, rows, w, ld, c->vit_norm_eps, wide);
        to->linear(queue, b->vit_qkv, ld3, b->vit_normed, ld, rows, &v->qkv, VK_STORE);
        vk_at(queue, VP_PART_VIT_ATTENTION, i);
        to->attention(queue, &job);
        vk_at(queue, VP_PART_VIT_DENSE, i);
        to->linear(queue, b->vit_x, w, b->vit_attended, ld, rows, &v->wo, VK_ADD_F32);
        to->kernels.layernorm(queue, b->vit_normed, b->vit_x, v->ffn_norm.weight, v->ffn_norm.bias, rows, w, ld, c->vit_norm_eps, wide);
        to->linear(queue, b->vit_hidden, ldh, b->vit_normed, ld, rows, &v->w1, VK_QUICKGELU);
        to->linear(queue, b->vit_x, w, b->vit_hidden, ldh, rows, &v->w2, VK_ADD_F32);
        for (int l = 0; l < c->vit_layer_count; l++)
            if (e->vit_layer_at[l] == i)
                to->copy(queue, b->hidden + ((size_t)l * (size_t)e->max_views + (size_t)first) * view_floats, b->vit_x,
                         (size_t)count * view_floats * sizeof(float));
    }
}
void vk_connector(vp_engine *e, int first, int count) {
    const vp_model_config *c = &e->config;
    const vk_model *m = &e->model;
    const vk_backend *to = e->backend;
    vk_buffers *b = &e->buffers;
    vk_queue *queue = e->queue;
    int w = c->vit_width, layers = c->vit_layer_count, ldf = vk_padded(w * layers), ld = vk_padded(w), ldh = vk_padded(c->projector_dim),
        wide = e->wide, side = vp_geometry_patches_per_side(&c->geometry), pool = c->geometry.pool, n = pool * pool,
        per_view = vp_geometry_tokens_per_crop(&c->geometry), windows = count * per_view;
    size_t view_floats = (size_t)c->vit_positions * (size_t)w;
    float *features = b->image_features + (size_t)first * (size_t)per_view * (size_t)c->d_model;
    vk_at(queue, VP_PART_POOLING, -1);
    to->kernels.pool_windows(queue, b->pool_keys, b->pool_query_in, b->hidden + (size_t)first * view_floats,
                             e->masks + (size_t)first * (size_t)(side * side), b->dead + first, m->pad_embed, (size_t)e->max_views * view_floats,
                             count, layers, w, side, pool, ldf, wide);
    to->linear(queue, b->pool_query, w, b->pool_query_in, ldf, windows, &m->pool_query, VK_STORE_F32);
    to->linear(queue, b->pool_key_value, 2 * w, b->pool_keys, ldf, windows * n, &m->pool_key_value, VK_STORE_F32);
    to->kernels.pool_attention(queue, b->pool_attended, b->pool_query, b->pool_key_value, windows, n, c->vit_head_count, c->vit_head_dim, ld, wide);
    to->linear(queue, b->pool_out, ld, b->pool_attended, ld, windows, &m->pool_out, VK_STORE);
    vk_at(queue, VP_PART_PROJECTOR, -1);
    to->linear(queue, b->projector_gate_up, 2 * c->projector_dim, b->pool_out, ld, windows, &m->projector_gate_up, VK_STORE_F32);
    to->kernels.silu_mul(queue, b->projector_hidden, b->projector_gate_up, windows, c->projector_dim, ldh, wide);
    to->linear(queue, features, c->d_model, b->projector_hidden, ldh, windows, &m->projector_down, VK_STORE_F32);
}

void vk_embed(vp_engine *e, const int32_t *ids, int rows) {
    vk_at(e->queue, VP_PART_EMBED, -1);
    e->backend->kernels.embed(e->queue, e->buffers.x, e->model.embedding, ids, rows, e->config.d_model, e->wide);
}
void vk_add_image(vp_engine *e, int views) {
    vk_buffers *b = &e->buffers;
    e->backend->kernels.scatter_add(e->queue, b->x, b->image_features, b->image_index,
                                    views * vp_geometry_tokens_per_crop(&e->config.geometry), e->config.d_model);
}

/* the experts of many tokens where nothing leaves the device: lists and tiles, two products, sums */
static void vk_moe_tiles(vp_engine *e, const vk_block *k, int first, int rows, int top_k) {
    const vp_model_config *c = &e->config;
    const vk_backend *to = e->backend;
    vk_buffers *b = &e->buffers;
    int d = c->d_model, second = c->expert_count > 1;
    vk_experts_job job;
    job.y = b->expert_out; job.hidden = b->expert_hidden; job.ldx = vk_padded(d);
    job.x = (const char *)b->normed + (size_t)first * (size_t)job.ldx * (e->wide ? 4 : 2);
    job.gate_up = &k->gate_up[0]; job.down = &k->down[0];
    job.gate_up_stride = (size_t)((char *)k->gate_up[second].weights - (char *)k->gate_up[0].weights);
    job.down_stride = (size_t)((char *)k->down[second].weights - (char *)k->down[0].weights);
    job.start = b->expert_start; job.list = b->expert_list; job.tiles = b->expert_tiles;
    job.pairs = rows * top_k; job.top_k = top_k; job.experts = c->expert_count;
    to->kernels.moe_lists(e->queue, b->expert_count, b->expert_start, b->expert_list, b->slot_row, b->expert_tiles, b->expert_index, c->expert_count,
                          job.pairs, to->tile_rows);
    to->experts(e->queue, &job);
    to->kernels.combine(e->queue, b->x + (size_t)first * (size_t)d, b->expert_out, b->slot_row, b->expert_weight, rows, top_k, d);
}
/* the experts of many tokens: gather the rows of each expert, one product an expert, combine. On a GPU, where fp32 comes here, the host waits once
 * a block for the counts: cuBLAS takes its sizes from the host. */
static void vk_moe_tokens(vp_engine *e, const vk_block *k, int first, int rows, int top_k) {
    const vp_model_config *c = &e->config;
    const vk_backend *to = e->backend;
    vk_buffers *b = &e->buffers;
    vk_queue *queue = e->queue;
    int d = c->d_model, ld = vk_padded(d), h = c->expert_dim, ldh = vk_padded(h), pairs = rows * top_k;
    size_t element = e->wide ? 4 : 2, start = 0;
    const char *normed = (const char *)b->normed + (size_t)first * (size_t)ld * element;
    /* what stays when the device has failed; when launches are only counted, experts share the rows evenly: no request has more launches */
    for (int i = 0; i < c->expert_count; i++) e->counts[i] = queue->dry ? pairs / c->expert_count + (i < pairs % c->expert_count) : 0;
    to->kernels.moe_lists(queue, b->expert_count, b->expert_start, b->expert_list, b->slot_row, NULL, b->expert_index, c->expert_count, pairs, 1);
    to->fetch(queue, e->counts, b->expert_count, (size_t)c->expert_count * sizeof *e->counts);
    to->kernels.gather(queue, b->gathered, normed, b->expert_list, pairs, top_k, (int)((size_t)ld * element));
    for (int i = 0; i < c->expert_count; i++) {
        vk_gemm_job *job = &e->jobs[i];
        job->y = b->gate_up + start * 2 * (size_t)h; job->ldy = 2 * h;
        job->x = (char *)b->gathered + start * (size_t)ld * element; job->ldx = ld;
        job->w = &k->gate_up[i]; job->m = e->counts[i];
        start += (size_t)e->counts[i];
    }
    to->grouped(queue, e->jobs, c->expert_count, VK_STORE_F32);
    to->kernels.silu_mul(queue, b->expert_hidden, b->gate_up, pairs, h, ldh, e->wide);
    start = 0;
    for (int i = 0; i < c->expert_count; i++) {
        vk_gemm_job *job = &e->jobs[i];
        job->y = b->expert_out + start * (size_t)d; job->ldy = d;
        job->x = (char *)b->expert_hidden + start * (size_t)ldh * element; job->ldx = ldh;
        job->w = &k->down[i];
        start += (size_t)e->counts[i];
    }
    to->grouped(queue, e->jobs, c->expert_count, VK_STORE_F32);
    to->kernels.combine(queue, b->x + (size_t)first * (size_t)d, b->expert_out, b->slot_row, b->expert_weight, rows, top_k, d);
}
void vk_moe(vp_engine *e, int block, int first, int rows, int top_k) {
    const vk_block *k = &e->model.blocks[block];
    vk_buffers *b = &e->buffers;
    vk_at(e->queue, VP_PART_ROUTER, block);
    e->backend->kernels.router(e->queue, b->expert_index, b->expert_weight, b->router_logits + (size_t)first * (size_t)e->config.expert_count, rows,
                               e->config.expert_count, top_k);
    vk_at(e->queue, VP_PART_EXPERTS, block);
    if (vk_has_tiles(e)) vk_moe_tiles(e, k, first, rows, top_k);
    else vk_moe_tokens(e, k, first, rows, top_k);
}

/* one transformer block over one token, as vk_block_forward; everything is decided on the device */
static void vk_block_decode(vp_engine *e, int block, int position, int top_k) {
    const vp_model_config *c = &e->config;
    const vk_block *k = &e->model.blocks[block];
    const vk_decode_kernels *to = e->backend->decode;
    vk_buffers *b = &e->buffers;
    size_t cache = (size_t)block * (size_t)e->max_sequence * (size_t)c->d_model * (e->wide ? 4 : 2);
    int second = c->expert_count > 1;
    vk_decode_job job;
    memset(&job, 0, sizeof job);
    job.att_proj = &k->att_proj; job.attn_out = &k->attn_out; job.router = &k->router; job.gate_up = &k->gate_up[0]; job.down = &k->down[0];
    job.gate_up_stride = (size_t)((char *)k->gate_up[second].weights - (char *)k->gate_up[0].weights);
    job.down_stride = (size_t)((char *)k->down[second].weights - (char *)k->down[0].weights);
    job.attn_norm = k->attn_norm.weight; job.q_norm = k->q_norm.weight; job.k_norm = k->k_norm.weight; job.ff_norm = k->ff_norm.weight;
    job.cs = b->cs; job.eps = c->norm_eps;
    job.d = c->d_model; job.head_dim = c->head_dim; job.expert_dim = c->expert_dim; job.top_k = top_k; job.max_sequence = e->max_sequence;
    job.keys = position + 1; job.position = b->position;
    job.x = b->x; job.qkv = b->qkv; job.scratch = b->decode_scratch; job.logits = b->router_logits; job.weight = b->expert_weight;
    job.key = (char *)b->key + cache; job.value = (char *)b->value + cache; job.q = b->q; job.attended = b->attended; job.normed = b->normed;
    job.hidden = b->expert_hidden; job.index = b->expert_index;
    vk_at(e->queue, VP_PART_DENSE, block);
    to->qkv(e->queue, &job);
    vk_at(e->queue, VP_PART_ATTENTION, block);
    to->attention(e->queue, &job);
    vk_at(e->queue, VP_PART_DENSE, block);
    to->attn_out(e->queue, &job);
    vk_at(e->queue, VP_PART_ROUTER, block);
    to->router(e->queue, &job);
    vk_at(e->queue, VP_PART_EXPERTS, block);
    to->gate_up(e->queue, &job);
    to->down(e->queue, &job);
}
void vk_block_forward(vp_engine *e, int block, int rows, int position, int top_k) {
    const vp_model_config *c = &e->config;
    const vk_block *k = &e->model.blocks[block];
    const vk_backend *to = e->backend;
    vk_buffers *b = &e->buffers;
    vk_queue *queue = e->queue;
    int d = c->d_model, ld = vk_padded(d), wide = e->wide, chunk = e->moe_rows / top_k;
    size_t element = wide ? 4 : 2, cache = (size_t)block * (size_t)e->max_sequence * (size_t)d * element;
    char *key = (char *)b->key + cache, *value = (char *)b->value + cache;
    if (rows == 1 && to->decode) { vk_block_decode(e, block, position, top_k); return; }
    vk_at(queue, VP_PART_DENSE, block);
    to->kernels.rmsnorm(queue, b->normed, b->x, k->attn_norm.weight, rows, d, ld, c->norm_eps, wide);
    to->linear(queue, b->qkv, 3 * d, b->normed, ld, rows, &k->att_proj, VK_STORE_F32);
    vk_at(queue, VP_PART_ATTENTION, block);
    to->kernels.qk_norm_rope(queue, b->q, key, value, b->qkv, k->q_norm.weight, k->k_norm.weight, b->cs, b->position, rows, d, c->head_dim, ld,
                             c->norm_eps, wide);
    if (rows == 1) {
        to->kernels.attention_decode(queue, b->attended, b->q, key, value, b->decode_scratch, b->position, position + 1, e->max_sequence, d,
                                     c->head_dim, wide);
    } else {
        vk_attention_job job;
        memset(&job, 0, sizeof job);
        job.y = b->attended; job.ldy = ld; job.q = b->q; job.ldq = ld; job.k = key; job.v = value; job.ldk = d;
        job.batch = 1; job.tokens = rows; job.heads = c->head_count; job.head_dim = c->head_dim; job.causal = 1;
        to->attention(queue, &job);
    }
    vk_at(queue, VP_PART_DENSE, block);
    to->linear(queue, b->x, d, b->attended, ld, rows, &k->attn_out, VK_ADD_F32);
    to->kernels.rmsnorm(queue, b->normed, b->x, k->ff_norm.weight, rows, d, ld, c->norm_eps, wide);
    vk_at(queue, VP_PART_ROUTER, block);
    if (!wide) to->kernels.rmsnorm(queue, b->normed_wide, b->x, k->ff_norm.weight, rows, d, ld, c->norm_eps, 1);
    to->linear(queue, b->router_logits, c->expert_count, b->normed_wide, ld, rows, &k->router, VK_STORE_F32);
    for (int first = 0; first < rows; first += chunk) vk_moe(e, block, first, rows - first < chunk ? rows - first : chunk, top_k);
}
void vk_head(vp_engine *e, int row) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int d = c->d_model, ld = vk_padded(d);
    vk_at(e->queue, VP_PART_HEAD, -1);
    e->backend->kernels.rmsnorm(e->queue, b->normed, b->x + (size_t)row * (size_t)d, e->model.ln_f.weight, 1, d, ld, c->norm_eps, e->wide);
    e->backend->linear(e->queue, b->logits, c->embedding_size, b->normed, ld, 1, &e->model.head, VK_STORE_F32);
}
void vk_sample(vp_engine *e, int rows) {
    vk_at(e->queue, VP_PART_SAMPLE, -1);
    e->backend->kernels.argmax(e->queue, e->buffers.token, e->buffers.logits, 1, e->config.embedding_size);
    e->backend->kernels.advance(e->queue, e->buffers.position, rows);
}
/* logits and the next token of a decode step, its one row, by kernels made for that */
static void vk_end_decode(vp_engine *e) {
    vk_buffers *b = &e->buffers;
    vk_decode_end_job job;
    memset(&job, 0, sizeof job);
    job.x = b->x; job.norm = e->model.ln_f.weight; job.eps = e->config.norm_eps; job.head = &e->model.head;
    job.logits = b->logits; job.scratch = b->decode_scratch; job.token = b->token; job.position = b->position;
    vk_at(e->queue, VP_PART_HEAD, -1);
    e->backend->decode->head(e->queue, &job);
    vk_at(e->queue, VP_PART_SAMPLE, -1);
    e->backend->decode->pick(e->queue, &job);
}
void vk_end_step(vp_engine *e) {
    if (e->backend->decode) { vk_end_decode(e); return; }
    vk_head(e, 0);
    vk_sample(e, 1);
}
/* A decode step: sent kernel by kernel the first time and recorded behind that, replayed from then on. Nothing in it depends on the step but what
 * lies on the device (token, position, caches), so one recording serves all steps with these knobs. Recording costs the host some time, once:
 * warm up with at least two tokens. */
void vk_send_step(vp_engine *e, const vp_request *r, int position) {
    const vk_backend *to = e->backend;
    uint64_t key = vk_mix((uint64_t)r->top_k);
    for (int i = 0; i < r->active_block_count; i++) key = vk_mix(key ^ (uint64_t)(r->active_blocks[i] + 1));
    if (to->replay && !e->queue->log && to->replay(e->queue, key)) {
        e->queue->dry = 1; /* the replay does the work; this counts it, with this step's number of keys */
        vk_step(e, r, position);
        e->queue->dry = 0;
        return;
    }
    vk_step(e, r, position);
    if (to->record && !e->queue->log) {
        vk_work counted = e->queue->work; /* what is recorded is not sent */
        if (!to->record(e->queue)) return;
        vk_step(e, r, position);
        to->keep(e->queue, key);
        e->queue->work = counted;
    }
}
