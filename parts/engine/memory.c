/* memory.c - the memory of an engine: its size, its layout, and its contents when the engine opens */
#include "engine_internal.h"
#include "host_loops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *vk_take_rows(vk_arena *arena, size_t rows, int width, int wide) {
    return vk_take(arena, (rows + VK_ROWS_MAX) * (size_t)vk_padded(width), wide ? 4 : 2);
}

/* linears with a bias and results of the compute type: in the tower's blocks, then in the connector */
static vk_linear *vk_with_bias(vk_model *model, const vp_model_config *config, int index) {
    int per_block = config->vit_qkv_bias + !config->vit_gated, blocks = per_block * config->vit_blocks_needed;
    if (index < blocks) {
        vk_vit_block *block = &model->vit[index / per_block];
        return config->vit_qkv_bias && index % per_block == 0 ? &block->qkv : &block->w1;
    }
    if (index > blocks)
        return index - blocks <= config->deepstack_count ? &model->deepstack[index - blocks - 1].in : NULL;
    if (model->pool_out.n) return &model->pool_out;
    return model->projector_in.n ? &model->projector_in : NULL;
}
vk_linear *vk_rounded(vp_engine *engine, int index) {
    if (engine->wide || !engine->backend->rounds_bias) return NULL;
    return vk_with_bias(&engine->model, &engine->config, index);
}

/* the largest number of patches along a side of a native image */
static size_t vk_native_side(const vp_engine *engine) {
    return (size_t)engine->max_views * (size_t)engine->config.geometry.pool;
}

/* f32 [rows, 2 * hidden], empty if the product applies the gate itself */
static float *vk_take_gates(vk_arena *arena, const vp_engine *engine, size_t rows, int hidden) {
    return (float *)vk_take(arena, vk_gates_in_product(engine, hidden) ? 0 : rows * 2 * (size_t)hidden, 4);
}
static void vk_layout_pooling_buffers(vk_arena *arena, vp_engine *engine, size_t rows, size_t windows) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, features = width * config->vit_layer_count, wide = engine->wide;
    buffers->pool_keys = vk_take_rows(arena, rows, features, wide);
    buffers->pool_query_in = vk_take_rows(arena, windows, features, wide);
    buffers->pool_query = vk_take(arena, windows * (size_t)width, 4);
    buffers->pool_key_value = vk_take(arena, rows * 2 * (size_t)width, 4);
    buffers->pool_attended = vk_take_rows(arena, windows, width, wide);
    buffers->pool_out = vk_take_rows(arena, windows, width, wide);
    buffers->projector_gate_up = vk_take_gates(arena, engine, windows, config->projector_dim);
    buffers->projector_hidden = vk_take_rows(arena, windows, config->projector_dim, wide);
}

static void vk_layout_native_buffers(vk_arena *arena, vp_engine *engine, size_t rows) {
    vk_buffers *buffers = &engine->buffers;
    buffers->places = vk_take(arena, 2 * rows, 4);
    buffers->view_place = vk_take(arena, (size_t)engine->max_views, 4);
    buffers->vit_cs = vk_take(arena, vk_native_side(engine) * (size_t)(engine->config.vit_head_dim / 2), 4);
}

static void vk_layout_vision_buffers(vk_arena *arena, vp_engine *engine) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int width = config->vit_width, features = width * config->vit_layer_count, wide = engine->wide;
    size_t batch = (size_t)engine->view_batch, views = (size_t)engine->max_views,
           rows = batch * (size_t)config->vit_positions, features_rows,
           windows = batch * (size_t)vk_view_tokens(config),
           members = (size_t)(config->window_pool * config->window_pool), patches = (size_t)vk_vit_patches(config);
    if (!config->vit_block_count) return;
    if (!engine->backend->host_memory) {
        buffers->pixels = vk_take(arena, views * patches * (size_t)vk_patch_values(config), 4);
        buffers->masks = vk_take(arena, views * patches, 4);
    }
    buffers->dead = vk_take(arena, views, 4);
    buffers->patches = vk_take_rows(arena, rows, vk_patch_values(config), wide || config->vit_native);
    buffers->patch_rows = vk_take(arena, rows * (size_t)width, 4);
    buffers->vit_x = vk_take(arena, rows * (size_t)width, 4);
    buffers->vit_normed = vk_take_rows(arena, rows, width, wide);
    buffers->vit_qkv = vk_take_rows(arena, rows, 3 * width, wide);
    buffers->vit_attended = vk_take_rows(arena, rows, width, wide);
    buffers->vit_hidden = vk_take_rows(arena, rows, config->vit_mlp_dim, wide);
    buffers->hidden = vk_take(arena, views * (size_t)config->vit_positions * (size_t)features, 4);
    if (config->vit_gated)
        buffers->vit_gate_up = vk_take_gates(arena, engine, (size_t)vk_gated_rows(engine), config->vit_mlp_dim);
    if (config->vit_native) vk_layout_native_buffers(arena, engine, rows);
    if (config->connector == VP_CONNECTOR_STITCHED)
        buffers->places = vk_take(arena, views * (size_t)vk_view_tokens(config) * members, 4);
    if (config->connector == VP_CONNECTOR_POOLING) vk_layout_pooling_buffers(arena, engine, rows, windows);
    else if (config->connector == VP_CONNECTOR_STITCHED)
        vk_layout_pooling_buffers(arena, engine, windows * members, windows);
    else {
        int norm = config->connector == VP_CONNECTOR_NORM_MLP || config->connector == VP_CONNECTOR_MERGER
                   || config->connector == VP_CONNECTOR_MEAN;
        buffers->pool_query_in = vk_take_rows(arena, windows, vk_window_width(config), wide);
        buffers->projector_gate_up = vk_take(arena, norm ? windows * (size_t)vk_window_width(config) : 0, 4);
        buffers->projector_hidden = vk_take_rows(arena, windows, config->projector_dim, wide);
    }
    features_rows = views * (size_t)vk_view_tokens(config);
    buffers->image_features =
        vk_take(arena, (size_t)(1 + config->deepstack_count) * features_rows * (size_t)config->d_model, 4);
    buffers->image_index = vk_take(arena, features_rows, 4);
    for (int i = 0; vk_rounded(engine, i); i++)
        vk_rounded(engine, i)->bias_bf16 = vk_take(arena, (size_t)vk_rounded(engine, i)->n, 2);
}

/* scratch of a decode step: all scores, or sums and maxima of the splits, or the best rows of the head's blocks */
static size_t vk_decode_floats(int width, int heads, int max_sequence) {
    size_t splits = VK_SPLITS * ((size_t)width + 2 * (size_t)heads), scores = (size_t)heads * (size_t)max_sequence;
    return vk_max(vk_max(scores, splits), 2 * VK_DECODE_BLOCKS);
}

static void vk_layout_language_buffers(vk_arena *arena, vp_engine *engine) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int d = config->d_model, wide = engine->wide, q = vk_q_width(config), kv = vk_kv_width(config);
    size_t rows = (size_t)engine->max_sequence, mlp_rows = (size_t)engine->moe_rows,
           pairs = config->expert_count ? mlp_rows : 0, experts = (size_t)config->expert_count;
    size_t cache = ((size_t)config->block_count * rows + (size_t)VK_ROWS_MAX) * (size_t)kv;
    buffers->ids = vk_take(arena, rows, 4);
    buffers->token = vk_take(arena, 1, 4);
    buffers->position = vk_take(arena, VK_REGIONS_MAX + 1, 4);
    buffers->x = vk_take(arena, rows * (size_t)d, 4);
    buffers->normed = vk_take_rows(arena, rows, d, wide);
    buffers->normed_wide = wide ? buffers->normed : vk_take_rows(arena, rows, d, 1);
    buffers->y = config->norm_after || config->norm_around ? vk_take(arena, rows * (size_t)d, 4) : NULL;
    buffers->qkv = vk_take(arena, rows * (size_t)(q + 2 * kv), 4);
    buffers->q = vk_take_rows(arena, rows, q, wide);
    buffers->attended = vk_take_rows(arena, rows, q, wide);
    engine->cache_bytes = arena->used;
    buffers->key = vk_take(arena, cache, wide ? 4 : 2);
    buffers->value = vk_take(arena, cache, wide ? 4 : 2);
    engine->cache_bytes = arena->used - engine->cache_bytes;
    buffers->cs = vk_take(arena, rows * (size_t)config->head_dim, 4);
    buffers->cs_local = config->rope_local_theta > 0 ? vk_take(arena, rows * (size_t)config->head_dim, 4) : NULL;
    buffers->reach = config->image_bidirectional ? vk_take(arena, rows, 4) : NULL;
    if (vk_has_mrope(config)) {
        buffers->cs_table = vk_take(arena, rows * (size_t)config->head_dim, 4);
        buffers->rope_positions = vk_take(arena, 3 * rows, 4);
        buffers->rope_axes = vk_take(arena, (size_t)config->head_dim / 2, 4);
    }
    buffers->decode_scratch = vk_take(arena, vk_decode_floats(q, config->head_count, engine->max_sequence), 4);
    buffers->logits = vk_take(arena, (size_t)config->embedding_size, 4);
    buffers->router_logits = vk_take(arena, rows * experts, 4);
    buffers->expert_index = vk_take(arena, pairs, 4);
    buffers->expert_weight = vk_take(arena, pairs, 4);
    buffers->expert_count = vk_take(arena, experts, 4);
    buffers->expert_start = vk_take(arena, experts + 1, 4);
    buffers->expert_list = vk_take(arena, pairs, 4);
    buffers->slot_row = vk_take(arena, pairs, 4);
    buffers->gathered = vk_take_rows(arena, vk_has_tiles(engine) ? 0 : pairs, d, wide);
    buffers->gate_up = vk_take_gates(arena, engine, vk_has_tiles(engine) ? 0 : mlp_rows, vk_mlp_dim(config));
    if (vk_has_tiles(engine)) buffers->expert_tiles = vk_take(arena, 2 * (pairs / (size_t)VK_TILE_ROWS + experts), 4);
    buffers->expert_hidden = vk_take_rows(arena, mlp_rows, vk_mlp_dim(config), wide);
    buffers->expert_out =
        vk_has_tiles(engine) ? vk_take_rows(arena, pairs, d, 0) : vk_take(arena, pairs * (size_t)d, 4);
}

/* largest total of the tokens' members: patches, squares of tokens, or patches of windows that span crops */
static size_t vk_members_most(const vp_engine *engine) {
    size_t windows = (size_t)(engine->config.window_pool * engine->config.window_pool);
    return vk_max(vk_tower_rows(engine), vk_tokens_most(engine) * vk_max(4, windows));
}
static void vk_layout_prune_buffers(vk_arena *arena, vp_engine *engine) {
    const vp_model_config *config = &engine->config;
    vk_prune_buffers *prune = &engine->buffers.prune;
    size_t tokens = vk_tokens_most(engine), rows = (size_t)engine->max_sequence, d = (size_t)config->d_model,
           tower = vk_tower_rows(engine), metric = (size_t)config->vit_head_dim, pivots = VP_PRUNE_PIVOTS_MAX,
           heads = (size_t)(config->vit_head_count > config->head_count ? config->vit_head_count : config->head_count),
           cs = VK_REGIONS_MAX * rows * (size_t)config->head_dim;
    prune->features = vk_take(arena, (size_t)(1 + config->deepstack_count) * tokens * d, 4);
    prune->tokens = vk_take(arena, tokens * (size_t)config->vit_width, 4);
    prune->unit = vk_take(arena, vk_max(tokens * d, tower * metric), 4);
    prune->pivots = vk_take(arena, pivots * d, 4);
    prune->products = vk_take(arena, pivots * tokens, 4);
    prune->scores = vk_take(arena, vk_max(rows, vk_max(tokens, tower)), 4);
    prune->tops = vk_take(arena, vk_max(tower, 1) * heads * 2, 4);
    prune->patch_keys = vk_take(arena, tower * metric, 4);
    prune->metric = vk_take(arena, tokens * metric, 4);
    prune->x = vk_take(arena, rows * d, 4);
    prune->cs = vk_take(arena, cs, 4);
    prune->cs_local = config->rope_local_theta > 0 ? vk_take(arena, cs, 4) : NULL;
    prune->gone = config->sliding_window ? vk_take(arena, VK_REGIONS_MAX * rows, 4) : NULL;
    prune->index = vk_take(arena, vk_max(rows, vk_max(tokens, tower)) + 1, 4);
    prune->list = vk_take(arena, vk_members_most(engine), 4);
    prune->start = vk_take(arena, vk_max(rows, tokens) + 1, 4);
    prune->positions = vk_take(arena, 3 * rows, 4);
    prune->axes = vk_take(arena, (size_t)config->head_dim / 2, 4);
}
static void vk_layout_host(vk_arena *arena, const vp_engine *engine, vk_prune_host *host) {
    size_t tokens = vk_tokens_most(engine), rows = (size_t)engine->max_sequence, tower = vk_tower_rows(engine),
           most = vk_max(rows, vk_max(tokens, tower)) + 1;
    host->place = vk_take(arena, tokens, 4);
    host->source = vk_take(arena, tokens, 4);
    host->kept = vk_take(arena, most, 4);
    host->chosen = vk_take(arena, most, 4);
    host->row_at = vk_take(arena, rows, 4);
    host->base = vk_take(arena, most, 4);
    host->list = vk_take(arena, vk_max(vk_members_most(engine), most), 4);
    host->start = vk_take(arena, most + 1, 4);
    host->index = vk_take(arena, most, 4);
    host->positions = vk_take(arena, 3 * rows, 4);
    host->reach = vk_take(arena, rows, 4);
    host->gone = vk_take(arena, VK_REGIONS_MAX * rows, 4);
    host->scores = vk_take(arena, vk_max(most, VP_PRUNE_PIVOTS_MAX * tokens), 4);
    host->ranks = vk_take(arena, most, sizeof(vk_rank));
    host->dominant = vk_take(arena, most, 4);
    host->targets = vk_take(arena, most, 4);
    host->merged = vk_take(arena, most, 4);
    host->assigned = vk_take(arena, most, 4);
    host->draws = vk_take(arena, tokens, sizeof(int64_t));
    host->flags = vk_take(arena, most, 1);
}
static int vk_place_pruning(vp_engine *engine) {
    vk_prune_host *host = &engine->pruning.host;
    vk_arena arena = {NULL, 0};
    engine->segments = calloc((size_t)vk_segments_most(engine), sizeof *engine->segments);
    if (!engine->prunes || !engine->segments) return engine->segments != NULL;
    vk_layout_host(&arena, engine, host);
    host->memory = calloc(arena.used, 1);
    arena.base = host->memory;
    arena.used = 0;
    if (host->memory) vk_layout_host(&arena, engine, host);
    return host->memory != NULL;
}

void vk_layout_buffers(vk_arena *arena, vp_engine *engine) {
    vk_layout_vision_buffers(arena, engine);
    engine->vision_bytes = arena->used;
    vk_layout_language_buffers(arena, engine);
    engine->prune_bytes = arena->used;
    if (engine->prunes) vk_layout_prune_buffers(arena, engine);
    engine->prune_bytes = arena->used - engine->prune_bytes;
    engine->scratch_bytes = arena->used;
    engine->buffers.scratch = vk_take(arena, engine->backend->scratch_bytes(engine->queue, &engine->extent), 1);
    engine->scratch_bytes = arena->used - engine->scratch_bytes;
}

/* the number of inputs of the widest linear in tower and connector */
static int vk_widest_of_vision(const vp_model_config *config) {
    const int inputs[] = {vk_patch_values(config), config->vit_width,
                          config->vit_mlp_dim,     config->vit_width * config->vit_layer_count,
                          vk_window_width(config), config->projector_dim};
    int widest = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) if (inputs[i] > widest) widest = inputs[i];
    return widest;
}
/* the number of inputs of the widest linear; including tower and connector if `vision` */
static int vk_widest(const vp_model_config *config, int vision) {
    int q = vk_q_width(config), mlp = vk_mlp_dim(config), widest = config->d_model;
    if (q > widest) widest = q;
    if (mlp > widest) widest = mlp;
    return vision && vk_widest_of_vision(config) > widest ? vk_widest_of_vision(config) : widest;
}
static int64_t vk_max_values(int64_t left, int64_t right) { return left > right ? left : right; }
/* an upper bound on a linear's weights: outputs are at most the widest inputs, d_model, or two adjacent MLPs */
static int64_t vk_most_of_vision(const vp_model_config *config) {
    int64_t widest = vk_padded(vk_widest_of_vision(config));
    return widest * vk_max_values(2 * widest, config->d_model);
}

/* number of weights of the largest dense linear */
static int64_t vk_most_weights(const vp_model_config *config) {
    int64_t d = vk_padded(config->d_model), q = vk_q_width(config), mlp = config->mlp_dim,
            most = (q + 2 * vk_kv_width(config)) * d;
    if (vk_padded((int)q) * d > most) most = vk_padded((int)q) * d;
    return 2 * vk_padded((int)mlp) * d > most ? 2 * vk_padded((int)mlp) * d : most;
}

void vk_fill_extent(vp_engine *engine) {
    const vp_model_config *config = &engine->config;
    vk_extent *extent = &engine->extent;
    extent->wide = engine->wide;
    extent->marks = vk_spare_marks(engine) + (engine->prunes ? vk_segments_most(engine) : 0);
    extent->experts = config->expert_count;
    extent->quant_k = vk_has_integers(&engine->bits) ? vk_padded(vk_widest(config, engine->bits.vision > 0)) : 0;
    extent->quant_values =
        engine->bits.blocks || (engine->bits.head && !engine->backend->decode) ? vk_most_weights(config) : 0;
    if (engine->bits.vision) extent->quant_values = vk_max_values(extent->quant_values, vk_most_of_vision(config));
    extent->vit.tokens = config->vit_positions * (config->vit_native ? engine->max_views : 1);
    extent->vit.heads = extent->vit.kv_heads = config->vit_head_count;
    extent->vit.head_dim = config->vit_head_dim;
    extent->llm.tokens = engine->max_sequence;
    extent->llm.heads = config->head_count;
    extent->llm.kv_heads = config->kv_head_count;
    extent->llm.head_dim = config->head_dim;
}

void vk_send(vp_engine *engine, void *to, const void *from, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        size_t piece = bytes - at < engine->backend->stage_bytes ? bytes - at : engine->backend->stage_bytes;
        if (!engine->queue->dry)
            memcpy(engine->backend->stage(engine->queue, (char *)to + at, piece), (const char *)from + at, piece);
        engine->backend->commit(engine->queue, (char *)to + at, piece);
        at += piece;
    }
}

/* source: transformers 5.23.0, modeling_rope_utils.py */
/* the (fractional) index of the pair that turns `turns` times in the original positions */
static double vk_yarn_pair(const vp_rope *rope, int head_dim, double theta, double turns) {
    return head_dim * log(rope->original_positions / (turns * 2.0 * 3.14159265358979323846)) / (2.0 * log(theta));
}
static float vk_yarn_frequency(float frequency, int pair, int head_dim, double theta, const vp_rope *rope) {
    double low = fmax(floor(vk_yarn_pair(rope, head_dim, theta, rope->high_frequency)), 0.0);
    double high = fmin(ceil(vk_yarn_pair(rope, head_dim, theta, rope->low_frequency)), head_dim - 1);
    float share = (float)((pair - low) / (high == low ? 0.001 : high - low));
    share = share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
    return frequency / (float)rope->factor * share + frequency * (1.0f - share);
}
static float vk_scale_frequency(float frequency, const vp_rope *rope) {
    double wave = 2.0 * 3.14159265358979323846 / (double)frequency, smooth;
    if (rope->scaling == VP_ROPE_LINEAR) return frequency / (float)rope->factor;
    if (rope->scaling == VP_ROPE_PLAIN || wave < rope->original_positions / rope->high_frequency) return frequency;
    if (wave > rope->original_positions / rope->low_frequency) return frequency / (float)rope->factor;
    smooth = (rope->original_positions / wave - rope->low_frequency) / (rope->high_frequency - rope->low_frequency);
    return (float)((1.0 - smooth) * (double)frequency / rope->factor + smooth * (double)frequency);
}
void vk_fill_rope(float *cs, int positions, int head_dim, double theta, const vp_rope *rope) {
    const int is_yarn = rope->scaling == VP_ROPE_YARN;
    const double magnitude = is_yarn ? rope->magnitude : 1.0;
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        float plain = 1.0f / (float)pow(theta, (double)((float)(2 * i) / (float)head_dim));
        float frequency =
            is_yarn ? vk_yarn_frequency(plain, i, head_dim, theta, rope) : vk_scale_frequency(plain, rope);
        for (int p = 0; p < positions; p++) {
            float angle = (float)p * frequency;
            cs[(size_t)p * (size_t)head_dim + (size_t)i] = (float)(magnitude * cos((double)angle));
            cs[(size_t)p * (size_t)head_dim + (size_t)(half + i)] = (float)(magnitude * sin((double)angle));
        }
    }
}

/* copies, for each pair of a head, the index of the position that rotates it */
static void vk_send_axes(vp_engine *engine) {
    const vp_rope *rope = &engine->config.rope;
    int32_t axis[256];
    for (int first = 0; first < engine->config.head_dim / 2; first += 256) {
        int count = engine->config.head_dim / 2 - first < 256 ? engine->config.head_dim / 2 - first : 256;
        for (int i = 0; i < count; i++) {
            int pair = first + i, by = pair % 3;
            if (rope->interleaved) axis[i] = pair < 3 * rope->sections[by] ? by : 0;
            else axis[i] = pair < rope->sections[0] ? 0 : pair < rope->sections[0] + rope->sections[1] ? 1 : 2;
        }
        vk_send(engine, engine->buffers.rope_axes + first, axis, (size_t)count * sizeof axis[0]);
    }
}
static int vk_send_tables(vp_engine *engine) {
    static const vp_rope plain;
    const vp_model_config *config = &engine->config;
    int mrope = vk_has_mrope(config), side = (int)vk_native_side(engine), half = config->vit_head_dim / 2;
    size_t floats = (size_t)engine->max_sequence * (size_t)config->head_dim,
           grid_floats = config->vit_native ? (size_t)side * (size_t)half : 0;
    float *cs = malloc(vk_max(floats, grid_floats) * sizeof *cs);
    if (!cs) return 0;
    vk_fill_rope(cs, engine->max_sequence, config->head_dim, config->rope_theta, &config->rope);
    vk_send(engine, mrope ? engine->buffers.cs_table : engine->buffers.cs, cs, floats * sizeof *cs);
    if (mrope) vk_send_axes(engine);
    if (config->rope_local_theta > 0) {
        vk_fill_rope(cs, engine->max_sequence, config->head_dim, config->rope_local_theta, &plain);
        vk_send(engine, engine->buffers.cs_local, cs, floats * sizeof *cs);
    }
    if (config->vit_native) {
        vk_fill_rope(cs, side, half, config->vit_rope_theta, &plain);
        vk_send(engine, engine->buffers.vit_cs, cs, grid_floats * sizeof *cs);
    }
    free(cs);
    return 1;
}

void vk_measure(vp_engine *engine) {
    vk_arena weights = {NULL, 0}, buffers = {NULL, 0};
    vk_fill_extent(engine);
    vk_layout_model(&weights, &engine->model, &engine->config, engine->wide, &engine->bits);
    vk_layout_buffers(&buffers, engine);
    engine->weights_bytes = weights.used;
    engine->memory_bytes = weights.used + buffers.used;
}

/* Assigns the addresses and makes the host's tables. Returns 1, or 0 if out of memory. */
static int vk_place(vp_engine *engine, char *weights_base, char *buffers_base) {
    vk_arena weights = {weights_base, 0}, buffers = {buffers_base, 0};
    size_t places = vk_max(2 * (size_t)engine->config.vit_positions + 1,
                           (size_t)vk_view_tokens(&engine->config)
                               * (size_t)(engine->config.window_pool * engine->config.window_pool));
    engine->weights = weights.base;
    vk_layout_model(&weights, &engine->model, &engine->config, engine->wide, &engine->bits);
    vk_layout_buffers(&buffers, engine);
    engine->jobs = calloc((size_t)engine->config.expert_count + 1, sizeof *engine->jobs);
    engine->counts = calloc((size_t)engine->config.expert_count + 1, sizeof *engine->counts);
    engine->host_places = calloc(vk_max(3 * (size_t)engine->max_sequence, (size_t)engine->max_views * places),
                                 sizeof *engine->host_places);
    engine->pictures = calloc((size_t)engine->max_views, sizeof *engine->pictures);
    engine->wholes = calloc((size_t)engine->max_views, sizeof *engine->wholes);
    engine->windows = calloc((size_t)engine->max_views, sizeof *engine->windows);
    return vk_place_pruning(engine) && engine->jobs && engine->counts && engine->host_places && engine->pictures
           && engine->wholes && engine->windows;
}

vp_result vk_lay_out(vp_engine *engine, vp_error *error) {
    vk_measure(engine);
    char *base = mmap(NULL, engine->memory_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
        engine->counted_space_bytes = engine->memory_bytes;
        engine->weights = base;
        if (vk_place(engine, base, base + engine->weights_bytes)) return VP_OK;
    }
    return vp_error_set(error, VP_ERR_MEMORY, -1, "engine", "not enough memory");
}
void vk_free_counted_space(vp_engine *engine) {
    if (engine->counted_space_bytes) munmap((void *)(uintptr_t)engine->weights, engine->counted_space_bytes);
}

vp_result vk_allocate(vp_engine *engine, vp_error *error) {
    vk_arena weights = {NULL, 0}, buffers = {NULL, 0};
    char text[240];
    vk_measure(engine);
    weights.used = engine->weights_bytes;
    buffers.used = engine->memory_bytes - engine->weights_bytes;
    uint64_t free_bytes = engine->backend->free_bytes(engine->queue);
    weights.base = (char *)engine->backend->allocate(engine->queue, engine->memory_bytes);
    if (!weights.base && engine->queue->error) return engine->backend->wait(engine->queue, 0, error);
    if (!weights.base) {
        int hopeless = free_bytes && engine->weights_bytes > free_bytes; /* for any request */
        snprintf(text, sizeof text,
                 "weights need %.2f GB and buffers %.2f GB (%d positions, %d views), but %.2f GB is free %s; %s%s",
                 (double)engine->weights_bytes / 1e9, (double)buffers.used / 1e9, engine->max_sequence,
                 engine->max_views, (double)free_bytes / 1e9,
                 engine->backend->host_memory ? "for this process" : "on the GPU",
                 engine->wide           ? "--weights bf16 halves it; "
                 : !engine->bits.blocks ? "--weights int8 needs half and int4 a third; "
                                        : "",
                 hopeless ? "even the weights do not fit" : "use fewer crops, a shorter prompt or fewer new tokens");
        return vp_error_set(error, VP_ERR_MEMORY, -1, "engine memory", text);
    }
    buffers.base = weights.base + weights.used;
    if (vk_place(engine, weights.base, buffers.base)
        && engine->backend->use(engine->queue, &engine->extent, engine->buffers.scratch) && vk_send_tables(engine))
        return VP_OK;
    if (engine->queue->error) return engine->backend->wait(engine->queue, 0, error);
    return vp_error_set(error, VP_ERR_MEMORY, -1, "engine", "not enough memory");
}

VP_API int32_t vp_engine_memory(const vp_engine *engine, int32_t index, vp_memory_block *out) {
    int host = engine->backend->host_memory;
    uint64_t element = engine->wide ? 4 : 2, beside = engine->weights_bytes + engine->cache_bytes + engine->vision_bytes
                                                      + engine->scratch_bytes + engine->prune_bytes;
    vp_memory_block blocks[8] = {0};
    int32_t count = 0;
    blocks[count].name = "weights";
    blocks[count++].bytes = engine->weights_bytes;
    blocks[count].bytes_a_position =
        2 * element * (uint64_t)vk_kv_width(&engine->config) * (uint64_t)engine->config.block_count;
    blocks[count].name = "KV cache";
    blocks[count++].bytes = engine->cache_bytes;
    blocks[count].name = "vision buffers";
    blocks[count++].bytes = engine->vision_bytes;
    blocks[count].name = "language buffers";
    blocks[count++].bytes = engine->memory_bytes - beside;
    blocks[count].name = "scratch";
    blocks[count++].bytes = engine->scratch_bytes;
    blocks[count].name = "pruning buffers";
    blocks[count].bytes = engine->prune_bytes;
    count += engine->prunes;
    for (int32_t i = 0; i < count; i++) blocks[i].on_device = !host;
    blocks[count].name = "pinned host memory";
    blocks[count].bytes = engine->backend->pinned_bytes(engine->queue);
    count += blocks[count].bytes > 0;
    blocks[count].name = "launch records";
    blocks[count].bytes = (uint64_t)engine->log_capacity * sizeof(vp_launch);
    count += blocks[count].bytes > 0;
    if (index < 0 || index >= count) return 0;
    *out = blocks[index];
    return 1;
}
