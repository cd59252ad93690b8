/* memory.c - everything that an engine holds: how much, where, and what is put there when it opens */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *vk_take_rows(vk_arena *arena, size_t rows, int width, int wide) {
    return vk_take(arena, (rows + VK_ROWS_MAX) * (size_t)vk_padded(width), wide ? 4 : 2);
}
vk_linear *vk_rounded(vp_engine *e, int i) {
    if (e->wide || !e->backend->rounds_bias) return NULL;
    return e->model.description->rounded(&e->model, &e->config, i);
}
static void vk_layout_vision_buffers(vk_arena *arena, vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int w = c->vit_width, features = w * c->vit_layer_count, wide = e->wide;
    size_t batch = (size_t)e->view_batch, views = (size_t)e->max_views, rows = batch * (size_t)c->vit_positions,
           windows = batch * (size_t)vp_geometry_tokens_per_crop(&c->geometry), patches = (size_t)c->vit_positions - 1;
    if (!e->backend->host_memory) {
        b->pixels = vk_take(arena, views * patches * (size_t)vk_patch_values(c), 4);
        b->masks = vk_take(arena, views * patches, 4);
    }
    b->dead = vk_take(arena, views, 4);
    b->patches = vk_take_rows(arena, rows, vk_patch_values(c), wide);
    b->patch_rows = vk_take(arena, rows * (size_t)w, 4);
    b->vit_x = vk_take(arena, rows * (size_t)w, 4);
    b->vit_normed = vk_take_rows(arena, rows, w, wide);
    b->vit_qkv = vk_take_rows(arena, rows, 3 * w, wide);
    b->vit_attended = vk_take_rows(arena, rows, w, wide);
    b->vit_hidden = vk_take_rows(arena, rows, c->vit_mlp_dim, wide);
    b->hidden = vk_take(arena, views * (size_t)c->vit_positions * (size_t)features, 4);
    b->pool_keys = vk_take_rows(arena, rows, features, wide);
    b->pool_query_in = vk_take_rows(arena, windows, features, wide);
    b->pool_query = vk_take(arena, windows * (size_t)w, 4);
    b->pool_key_value = vk_take(arena, rows * 2 * (size_t)w, 4);
    b->pool_attended = vk_take_rows(arena, windows, w, wide);
    b->pool_out = vk_take_rows(arena, windows, w, wide);
    b->projector_gate_up = vk_take(arena, windows * 2 * (size_t)c->projector_dim, 4);
    b->projector_hidden = vk_take_rows(arena, windows, c->projector_dim, wide);
    b->image_features = vk_take(arena, views * (size_t)vp_geometry_tokens_per_crop(&c->geometry) * (size_t)c->d_model, 4);
    b->image_index = vk_take(arena, views * (size_t)vp_geometry_tokens_per_crop(&c->geometry), 4);
    for (int i = 0; vk_rounded(e, i); i++) vk_rounded(e, i)->bias_bf16 = vk_take(arena, (size_t)vk_rounded(e, i)->n, 2);
}
/* of a decode step's scratch: all scores, or the sums and tops of the splits, or the best rows of the head's blocks */
static size_t vk_decode_floats(int d, int heads, int max_sequence) {
    size_t splits = VK_SPLITS * ((size_t)d + 2 * (size_t)heads), scores = (size_t)heads * (size_t)max_sequence;
    return vk_max(vk_max(scores, splits), 2 * VK_DECODE_BLOCKS);
}
static void vk_layout_language_buffers(vk_arena *arena, vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int d = c->d_model, wide = e->wide;
    size_t rows = (size_t)e->max_sequence, pairs = (size_t)e->moe_rows, experts = (size_t)c->expert_count, gathered = vk_has_tiles(e) ? 0 : pairs;
    size_t cache = (size_t)c->block_count * rows * (size_t)d + (size_t)VK_ROWS_MAX * (size_t)d;
    b->ids = vk_take(arena, rows, 4);
    b->token = vk_take(arena, 1, 4);
    b->position = vk_take(arena, 1, 4);
    b->x = vk_take(arena, rows * (size_t)d, 4);
    b->normed = vk_take_rows(arena, rows, d, wide);
    b->normed_wide = wide ? b->normed : vk_take_rows(arena, rows, d, 1);
    b->qkv = vk_take(arena, rows * 3 * (size_t)d, 4);
    b->q = vk_take_rows(arena, rows, d, wide);
    b->attended = vk_take_rows(arena, rows, d, wide);
    e->cache_bytes = arena->used;
    b->key = vk_take(arena, cache, wide ? 4 : 2);
    b->value = vk_take(arena, cache, wide ? 4 : 2);
    e->cache_bytes = arena->used - e->cache_bytes;
    b->cs = vk_take(arena, rows * (size_t)c->head_dim, 4);
    b->decode_scratch = vk_take(arena, vk_decode_floats(d, c->head_count, e->max_sequence), 4);
    b->logits = vk_take(arena, (size_t)c->embedding_size, 4);
    b->router_logits = vk_take(arena, rows * experts, 4);
    b->expert_index = vk_take(arena, pairs, 4);
    b->expert_weight = vk_take(arena, pairs, 4);
    b->expert_count = vk_take(arena, experts, 4);
    b->expert_start = vk_take(arena, experts + 1, 4);
    b->expert_list = vk_take(arena, pairs, 4);
    b->slot_row = vk_take(arena, pairs, 4);
    b->gathered = vk_take_rows(arena, gathered, d, wide);
    b->gate_up = vk_take(arena, gathered * 2 * (size_t)c->expert_dim, 4);
    if (vk_has_tiles(e)) b->expert_tiles = vk_take(arena, 2 * (pairs / (size_t)e->backend->tile_rows + experts), 4);
    b->expert_hidden = vk_take_rows(arena, pairs, c->expert_dim, wide);
    b->expert_out = vk_take(arena, pairs * (size_t)d, 4);
}
void vk_layout_buffers(vk_arena *arena, vp_engine *e) {
    vk_layout_vision_buffers(arena, e);
    e->vision_bytes = arena->used;
    vk_layout_language_buffers(arena, e);
    e->scratch_bytes = arena->used;
    e->buffers.scratch = vk_take(arena, e->backend->scratch_bytes(e->queue, &e->extent), 1);
    e->scratch_bytes = arena->used - e->scratch_bytes;
}
void vk_fill_extent(vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_extent *x = &e->extent;
    x->wide = e->wide;
    x->marks = (int64_t)VP_STAGE_COUNT + 1 + e->max_sequence;
    x->experts = c->expert_count;
    x->vit.tokens = c->vit_positions; x->vit.heads = c->vit_head_count; x->vit.head_dim = c->vit_head_dim;
    x->llm.tokens = e->max_sequence; x->llm.heads = c->head_count; x->llm.head_dim = c->head_dim;
}

void vk_send(vp_engine *e, void *to, const void *from, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        size_t piece = bytes - at < e->backend->stage_bytes ? bytes - at : e->backend->stage_bytes;
        memcpy(e->backend->stage(e->queue, (char *)to + at, piece), (const char *)from + at, piece);
        e->backend->commit(e->queue, (char *)to + at, piece);
        at += piece;
    }
}
void vk_fill_rope(float *cs, int positions, int head_dim, double theta) {
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        float frequency = 1.0f / (float)pow(theta, (double)((float)(2 * i) / (float)head_dim));
        for (int p = 0; p < positions; p++) {
            float angle = (float)p * frequency;
            cs[(size_t)p * (size_t)head_dim + (size_t)i] = (float)cos((double)angle);
            cs[(size_t)p * (size_t)head_dim + (size_t)(half + i)] = (float)sin((double)angle);
        }
    }
}
static int vk_send_tables(vp_engine *e) {
    size_t floats = (size_t)e->max_sequence * (size_t)e->config.head_dim;
    float *cs = malloc(floats * sizeof *cs);
    if (!cs) return 0;
    vk_fill_rope(cs, e->max_sequence, e->config.head_dim, e->config.rope_theta);
    vk_send(e, e->buffers.cs, cs, floats * sizeof *cs);
    free(cs);
    return 1;
}

vp_result vk_allocate(vp_engine *e, const vp_packed *packed, vp_error *error) {
    vk_arena weights = { NULL, 0 }, buffers = { NULL, 0 };
    uint64_t free_bytes;
    char text[240];
    vk_fill_extent(e);
    vk_layout_model(&weights, &e->model, &e->config, e->wide);
    vk_layout_buffers(&buffers, e);
    e->weights_bytes = weights.used;
    e->memory_bytes = weights.used + buffers.used;
    free_bytes = e->backend->free_bytes(e->queue);
    if (!packed) weights.base = (char *)e->backend->allocate(e->queue, e->memory_bytes);
    else if (!free_bytes || e->memory_bytes <= free_bytes) { /* mapped files count as free memory, but a step reads all of them */
        buffers.base = (char *)e->backend->allocate(e->queue, buffers.used);
        if (buffers.base) weights.base = (char *)(uintptr_t)packed->weights; /* nothing writes there */
    }
    if (!weights.base && e->queue->error) return e->backend->wait(e->queue, 0, error);
    if (!weights.base) {
        int hopeless = free_bytes && e->weights_bytes > free_bytes; /* whatever the request */
        snprintf(text, sizeof text, "weights need %.2f GB and buffers %.2f GB (%d positions, %d views), %.2f GB are free on %s; %s%s",
                 (double)e->weights_bytes / 1e9, (double)buffers.used / 1e9, e->max_sequence, e->max_views, (double)free_bytes / 1e9,
                 e->backend->host_memory ? "this machine" : "the GPU", e->wide ? "--weights bf16 halves it; " : "",
                 hopeless ? "the weights alone do not fit" : "smaller: fewer crops, a shorter prompt, fewer new tokens");
        return vp_fail(error, VP_ERR_MEMORY, -1, "engine memory", text);
    }
    if (!packed) buffers.base = weights.base + weights.used;
    e->weights = weights.base;
    e->weights_mapped = packed != NULL;
    weights.used = buffers.used = 0;
    vk_layout_model(&weights, &e->model, &e->config, e->wide);
    vk_layout_buffers(&buffers, e);
    e->jobs = calloc((size_t)e->config.expert_count, sizeof *e->jobs);
    e->counts = calloc((size_t)e->config.expert_count, sizeof *e->counts);
    if (e->jobs && e->counts && e->backend->use(e->queue, &e->extent, e->buffers.scratch) && vk_send_tables(e)) return VP_OK;
    if (e->queue->error) return e->backend->wait(e->queue, 0, error);
    return vp_fail(error, VP_ERR_MEMORY, -1, "engine", "no memory");
}

VP_API int32_t vp_engine_memory(const vp_engine *engine, int32_t index, vp_memory_block *out) {
    const vp_engine *e = engine;
    int host = e->backend->host_memory;
    uint64_t element = e->wide ? 4 : 2, beside = e->weights_bytes + e->cache_bytes + e->vision_bytes + e->scratch_bytes;
    vp_memory_block blocks[7];
    int32_t count = 0;
    memset(blocks, 0, sizeof blocks);
    blocks[count].name = e->weights_mapped ? "weights, mapped file" : "weights"; blocks[count++].bytes = e->weights_bytes;
    blocks[count].bytes_a_position = 2 * element * (uint64_t)e->config.d_model * (uint64_t)e->config.block_count;
    blocks[count].name = "KV cache"; blocks[count++].bytes = e->cache_bytes;
    blocks[count].name = "vision buffers"; blocks[count++].bytes = e->vision_bytes;
    blocks[count].name = "language buffers"; blocks[count++].bytes = e->memory_bytes - beside;
    blocks[count].name = "scratch"; blocks[count++].bytes = e->scratch_bytes;
    for (int32_t i = 0; i < count; i++) blocks[i].on_device = !host;
    blocks[count].name = "pinned host memory"; blocks[count].bytes = e->backend->pinned_bytes(e->queue);
    count += blocks[count].bytes > 0;
    blocks[count].name = "launch records"; blocks[count].bytes = (uint64_t)e->log_capacity * sizeof(vp_launch);
    count += blocks[count].bytes > 0;
    if (index < 0 || index >= count) return 0;
    *out = blocks[index];
    return 1;
}
