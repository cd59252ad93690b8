/* prune.c - pruning the image tokens of a request: the plan, the choice, and the remaining rows */
#include "engine_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

VP_API vp_prune vp_prune_default(vp_prune_method method) {
    vp_prune prune = {0};
    prune.method = method;
    prune.pivot_image = prune.pivot_text = 4;
    if (method == VP_PRUNE_FASTV || method == VP_PRUNE_DART) prune.layer = 2;
    return prune;
}
VP_API const char *vp_prune_name(vp_prune_method method) {
    static const char *const names[] = {
#define VK_PRUNE_TEXT(name, text) text,
        VP_PRUNE_METHODS(VK_PRUNE_TEXT)
#undef VK_PRUNE_TEXT
    };
    return (int)method >= 0 && method < VP_PRUNE_METHOD_COUNT ? names[method] : "unknown";
}

/* ---- the plan */
static vp_result vk_refuse(vp_error *error, vp_result result, const vp_prune *prune, const char *why) {
    return vp_failf(error, result, -1, "prune", "%s: %s", vp_prune_name(prune->method), why);
}
static int vk_is_active(const vp_request *request, int block) {
    for (int i = 0; i < request->active_block_count; i++) if (request->active_blocks[i] == block) return 1;
    return 0;
}
static int vk_image_token_count(const vp_model_config *config, const vp_request *request) {
    int all = vk_request_image_tokens(config, request), count = 0;
    if (!request->views) return 0;
    if (!request->image_input_idx)
        return request->prune && request->prune->image_tokens ? request->prune->image_tokens : all;
    for (int i = 0; i < all; i++) count += request->image_input_idx[i] >= 0;
    return count;
}
/* number of tokens after the image */
static int vk_text_behind(const vp_model_config *config, const vp_request *request) {
    int all = vk_request_image_tokens(config, request), last = -1;
    if (!request->image_input_idx) return VP_PRUNE_PIVOTS_MAX;
    for (int i = 0; i < all; i++) if (request->image_input_idx[i] > last) last = request->image_input_idx[i];
    return request->input_count - 1 - last;
}

/* converts `keep` to a number of tokens, *count */
static vp_result vk_plan_keep(const vp_prune *prune, int tokens, int *count, vp_error *error) {
    char text[160];
    int is_share = prune->keep > 0 && prune->keep < 1;
    if (!is_share && !(prune->keep >= 1 && prune->keep <= INT32_MAX && prune->keep == (double)(int32_t)prune->keep))
        return vk_refuse(error, VP_ERR_RANGE, prune,
                         "keep must be a whole number of tokens, or a share between 0 and 1");
    *count = is_share ? vk_prune_count(prune->keep, tokens) : (int)prune->keep;
    if (*count >= 1 && *count <= tokens) return VP_OK;
    if (*count < 1) snprintf(text, sizeof text, "keep=%g of %d image tokens keeps none", prune->keep, tokens);
    else snprintf(text, sizeof text, "keep=%d, but the image has %d tokens", *count, tokens);
    return vk_refuse(error, VP_ERR_RANGE, prune, text);
}
/* adds a cut before `block`, unless it would drop nothing */
static vp_result vk_plan_cut(const vp_request *request, vk_pruning *plan, int block, int keep, vp_error *error) {
    char text[160];
    const int last = request->active_blocks[request->active_block_count - 1],
              before = plan->cut_count ? plan->cuts[plan->cut_count - 1].keep : plan->tokens;
    if (block < 0 || block > last) {
        snprintf(text, sizeof text, "layer %d: the last block that runs is %d", block, last);
        return vk_refuse(error, VP_ERR_RANGE, &plan->how, text);
    }
    if (keep >= before) return VP_OK;
    plan->cuts[plan->cut_count].block = block;
    plan->cuts[plan->cut_count++].keep = keep;
    return VP_OK;
}
static vp_result vk_needs_block(const vp_request *request, const vp_prune *prune, int block, vp_error *error) {
    char text[120];
    if (vk_is_active(request, block)) return VP_OK;
    snprintf(text, sizeof text, "its scores come from block %d, which does not run", block);
    return vk_refuse(error, VP_ERR_RANGE, prune, text);
}
static vp_result vk_plan_late(const vp_request *request, vk_pruning *plan, int keep, vp_error *error) {
    const vp_prune *prune = &plan->how;
    if (prune->layer < 1) return vk_refuse(error, VP_ERR_RANGE, prune, "layer must be at least 1");
    vp_result result = vk_plan_cut(request, plan, prune->layer, keep, error);
    return result == VP_OK ? vk_needs_block(request, prune, prune->layer - 1, error) : result;
}
static vp_result vk_plan_dart(const vp_model_config *config, const vp_request *request, vk_pruning *plan,
                              vp_error *error) {
    vp_prune *prune = &plan->how;
    const int pivots = prune->pivot_image + prune->pivot_text, behind = vk_text_behind(config, request);
    int keep = 0;
    vp_result result = VP_OK;
    if (prune->pivot_image < 1 || prune->pivot_text < 0 || pivots > VP_PRUNE_PIVOTS_MAX
        || prune->pivot_image > plan->tokens)
        return vk_refuse(error, VP_ERR_RANGE, prune,
                         "pivot_image must be at least 1, pivot_text at least 0, and their sum at most 64");
    if (!prune->per_pivot) {
        result = vk_plan_keep(prune, plan->tokens, &keep, error);
        prune->per_pivot = keep / pivots;
    }
    if (result == VP_OK && prune->per_pivot < 1)
        result = vk_refuse(error, VP_ERR_RANGE, prune,
                           "keep must be at least the number of pivots, because each pivot keeps the same number of "
                           "tokens");
    if (result != VP_OK) return result;
    plan->text_pivots = prune->pivot_text < behind ? prune->pivot_text : behind;
    int64_t kept = prune->pivot_image + (int64_t)(prune->pivot_image + plan->text_pivots) * prune->per_pivot;
    return vk_plan_late(request, plan, kept < plan->tokens ? (int)kept : plan->tokens, error);
}
static vp_result vk_plan_pyramid(const vp_request *request, vk_pruning *plan, vp_error *error) {
    const vp_prune *prune = &plan->how;
    vp_result result = VP_OK;
    if (prune->cut_count < 1 || prune->cut_count > VP_PRUNE_CUTS_MAX)
        return vk_refuse(error, VP_ERR_RANGE, prune, "layers and ratios must have 1 to 8 numbers each");
    for (int i = 0; i < prune->cut_count && result == VP_OK; i++) {
        const int keep = prune->ratios[i] > 0 && prune->ratios[i] < 1 ? (int)(plan->tokens * prune->ratios[i]) : 0;
        if (!keep || (i && (prune->ratios[i] >= prune->ratios[i - 1] || prune->layers[i] <= prune->layers[i - 1])))
            return vk_refuse(error, VP_ERR_RANGE, prune,
                             "layers must ascend; ratios must descend, be between 0 and 1, and keep 1 token or more");
        result = vk_plan_cut(request, plan, prune->layers[i], keep, error);
        if (result == VP_OK) result = vk_needs_block(request, prune, prune->layers[i], error);
    }
    return result;
}
static int vk_is_plain_projector(const vp_model_config *config, const vp_request *request) {
    return config->connector == VP_CONNECTOR_MLP && config->geometry.pool == 1 && config->vit_class_token
           && request->views == 1 && config->vit_layer_count == 1;
}
static vp_result vk_plan_zip(const vp_model_config *config, const vp_request *request, vk_pruning *plan,
                             vp_error *error) {
    const vp_prune *prune = &plan->how;
    const int is_published = vk_is_plain_projector(config, request) && prune->positions != VP_PRUNE_KEEP;
    int keep = 0, most;
    char text[160];
    vp_result result = VP_OK;
    plan->dominant = prune->dominant;
    plan->contextual = prune->contextual;
    if (!prune->dominant && !prune->contextual) {
        result = vk_plan_keep(prune, plan->tokens, &keep, error);
        plan->contextual = vk_prune_count(10.0 / 64.0, keep);
        plan->dominant = keep - plan->contextual;
    }
    if (result != VP_OK) return result;
    most = plan->tokens + is_published - plan->dominant;
    if (plan->dominant < 1 || plan->contextual < 0 || most < 0) {
        snprintf(text, sizeof text, "dominant must be 1 to %d, contextual 0 or more", plan->tokens + is_published);
        return vk_refuse(error, VP_ERR_RANGE, prune, text);
    }
    if (plan->contextual > most) plan->contextual = most;
    plan->early_keep = plan->dominant + plan->contextual;
    if (plan->early_keep > plan->tokens) {
        snprintf(text, sizeof text, "dominant and contextual sum to %d, but the image has %d tokens", plan->early_keep,
                 plan->tokens);
        return vk_refuse(error, VP_ERR_RANGE, prune, text);
    }
    if (plan->early_keep == plan->tokens) return VP_OK; /* all tokens are kept: nothing is pruned */
    plan->early = is_published ? VK_EARLY_CONNECTOR : VK_EARLY_MERGE;
    plan->skips_features = is_published;
    return VP_OK;
}
static vp_result vk_plan_pool(const vp_model_config *config, const vp_request *request, vk_pruning *plan,
                              vp_error *error) {
    const int side = vp_geometry_patches_per_side(&config->geometry) / config->geometry.pool;
    if (plan->how.positions == VP_PRUNE_KEEP)
        return vk_refuse(error, VP_ERR_RANGE, &plan->how, "the mean of four tokens has no position to keep");
    if (vk_has_mrope(config))
        return vk_refuse(error, VP_ERR_UNSUPPORTED, &plan->how,
                         "compact positions are undefined for this model's 3-D positions; random, "
                         "stride, divprune, visionzip, fastv, dart and pdrop keep the original ones");
    if (config->vit_native || config->connector == VP_CONNECTOR_STITCHED
        || plan->tokens != request->views * side * side)
        return vk_refuse(error, VP_ERR_UNSUPPORTED, &plan->how,
                         "the tokens of this model's crops are not whole grids; --image_knob and tiers make images "
                         "smaller");
    plan->early_keep = request->views * vk_prune_pool_count(side, side);
    plan->early = plan->early_keep < plan->tokens ? VK_EARLY_POOL : VK_EARLY_NONE;
    return VP_OK;
}
static vp_result vk_plan_method(const vp_model_config *config, const vp_request *request, vk_pruning *plan,
                                vp_error *error) {
    const vp_prune *prune = &plan->how;
    int keep = 0;
    vp_result result;
    switch (prune->method) {
    case VP_PRUNE_POOL: return vk_plan_pool(config, request, plan, error);
    case VP_PRUNE_VISIONZIP: return vk_plan_zip(config, request, plan, error);
    case VP_PRUNE_DART: return vk_plan_dart(config, request, plan, error);
    case VP_PRUNE_PDROP: return vk_plan_pyramid(request, plan, error);
    default: break;
    }
    result = vk_plan_keep(prune, plan->tokens, &keep, error);
    if (result != VP_OK) return result;
    if (prune->method == VP_PRUNE_FASTV) return vk_plan_late(request, plan, keep, error);
    if (prune->layer > 0 && prune->method != VP_PRUNE_DIVPRUNE)
        return vk_plan_cut(request, plan, prune->layer, keep, error);
    if (prune->layer)
        return vk_refuse(error, VP_ERR_RANGE, prune,
                         prune->layer < 0 ? "layer must be 0 or more"
                                          : "acts before the language model, so layer must be 0");
    plan->early_keep = keep;
    plan->early = keep < plan->tokens ? VK_EARLY_CHOICE : VK_EARLY_NONE;
    return VP_OK;
}
/* decides whether kept tokens keep their positions, and rejects conflicting options */
static vp_result vk_plan_positions(const vp_model_config *config, vk_pruning *plan, vp_error *error) {
    const vp_prune *prune = &plan->how;
    const int is_mrope = vk_has_mrope(config);
    if (is_mrope && prune->positions == VP_PRUNE_COMPACT)
        return vk_refuse(error, VP_ERR_UNSUPPORTED, prune,
                         "compact positions are undefined for this model's 3-D positions; use positions=keep");
    plan->keeps_positions =
        prune->positions == VP_PRUNE_PUBLISHED
            ? is_mrope || plan->early == VK_EARLY_MERGE || (plan->cut_count && prune->method != VP_PRUNE_PDROP)
            : prune->positions == VP_PRUNE_KEEP;
    if (plan->early == VK_EARLY_NONE && !plan->cut_count) plan->keeps_positions = 0;
    return VP_OK;
}
static void vk_plan_regions(const vp_request *request, vk_pruning *plan) {
    int rows = request->input_count - (plan->early ? plan->tokens - plan->early_keep : 0);
    plan->region_count = 1;
    plan->regions[0].rows = rows;
    for (int i = 0; i < plan->cut_count; i++) {
        vk_region *region = &plan->regions[plan->region_count++];
        region->first_block = plan->cuts[i].block;
        region->rows = request->input_count - plan->tokens + plan->cuts[i].keep;
    }
    plan->features = plan->early ? plan->early_keep : plan->tokens;
}

vp_result vk_plan_pruning(const vp_model_config *config, const vp_request *request, vk_pruning *plan, vp_error *error) {
    const vp_prune *prune = request->prune;
    vk_pruning made = {0};
    vp_result result = VP_OK;
    if (prune && ((int)prune->method < 0 || prune->method >= VP_PRUNE_METHOD_COUNT || (int)prune->positions < 0
                  || prune->positions > VP_PRUNE_COMPACT))
        return vp_error_set(error, VP_ERR_RANGE, -1, "prune", "unknown method or position rule");
    if (prune && prune->method != VP_PRUNE_NONE) {
        made.how = *prune;
        made.tokens = vk_image_token_count(config, request);
        if (vk_image_count(request) > 1)
            return vk_refuse(error, VP_ERR_UNSUPPORTED, prune,
                             "methods are published for one image per prompt, and this prompt has several");
        if (!config->vit_block_count)
            return vk_refuse(error, VP_ERR_UNSUPPORTED, prune, "this model accepts only text: it has no image tokens");
        if (made.tokens > request->input_count)
            return vk_refuse(error, VP_ERR_RANGE, prune, "more image tokens than are in the prompt");
        if (made.tokens) result = vk_plan_method(config, request, &made, error);
        if (result == VP_OK && made.tokens) result = vk_plan_positions(config, &made, error);
        if (!made.tokens) made.how.method = VP_PRUNE_NONE;
    }
    if (result != VP_OK) return result;
    vk_plan_regions(request, &made);
    if (plan) *plan = made;
    return VP_OK;
}

/* the region of a block */
static int vk_region_at(const vk_pruning *plan, int block) {
    int region = 0;
    for (int r = 1; r < plan->region_count; r++) if (plan->regions[r].first_block <= block) region = r;
    return region;
}
VP_API vp_result vp_prune_request(const vp_model_config *config, const vp_request *request, vp_weights weights,
                                  vp_pruned *pruned, vp_error *error) {
    const uint64_t row = 2 * (uint64_t)(weights == VP_WEIGHTS_FP32 ? 4 : 2) * (uint64_t)vk_kv_width(config);
    vk_pruning plan;
    vp_result result = vk_plan_pruning(config, request, &plan, error);
    double sum = 0;
    if (result != VP_OK) return result;
    memset(pruned, 0, sizeof *pruned);
    if (plan.how.method == VP_PRUNE_NONE) plan.tokens = plan.features = vk_image_token_count(config, request);
    pruned->image_tokens = plan.tokens;
    pruned->kept_tokens = plan.cut_count ? plan.cuts[plan.cut_count - 1].keep : plan.features;
    pruned->region_count = plan.region_count;
    for (int r = 0; r < plan.region_count; r++) {
        pruned->first_block[r] = plan.regions[r].first_block;
        pruned->rows[r] = plan.regions[r].rows;
    }
    pruned->keeps_positions = plan.keeps_positions;
    for (int i = 0; i < request->active_block_count; i++) {
        const int rows = plan.regions[vk_region_at(&plan, request->active_blocks[i])].rows;
        sum += plan.tokens - (request->input_count - rows);
        pruned->cache_bytes += row * (uint64_t)(rows + request->max_new_tokens - 1);
        pruned->full_cache_bytes += row * (uint64_t)(request->input_count + request->max_new_tokens - 1);
    }
    pruned->mean_image_tokens = request->active_block_count ? sum / request->active_block_count : 0;
    return VP_OK;
}

/* ---- the start of a request */
static int vk_order_draws(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}
/* finds the image tokens in the language model's order. A request that is only counted may omit their positions; they
 * then come first. */
static void vk_find_tokens(vp_engine *engine, const vp_request *request) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    int all = vk_request_image_tokens(&engine->config, request), count = 0;
    for (int i = 0; i < all && request->image_input_idx; i++)
        if (request->image_input_idx[i] >= 0) host->draws[count++] = (int64_t)request->image_input_idx[i] << 32 | i;
    for (; count < pruning->tokens; count++) host->draws[count] = (int64_t)count << 32 | count;
    qsort(host->draws, (size_t)count, sizeof *host->draws, vk_order_draws);
    for (int i = 0; i < count; i++) {
        host->place[i] = (int32_t)(host->draws[i] >> 32);
        host->source[i] = (int32_t)(host->draws[i] & INT32_MAX);
        host->kept[i] = i;
    }
}
void vk_begin_pruning(vp_engine *engine, const vp_request *request) {
    vk_pruning *pruning = &engine->pruning;
    const vk_prune_host host = pruning->host;
    (void)vk_plan_pruning(&engine->config, request, pruning, NULL); /* cannot fail after vk_check_shape */
    pruning->host = host;
    pruning->kept = pruning->tokens;
    pruning->now_rows = request->input_count;
    pruning->from = engine->buffers.image_features;
    pruning->level =
        (size_t)engine->max_views * (size_t)vk_view_tokens(&engine->config) * (size_t)engine->config.d_model;
    if (pruning->how.method == VP_PRUNE_NONE) return;
    vk_find_tokens(engine, request);
    for (int row = 0; row < request->input_count; row++) host.row_at[row] = row;
}

/* ---- remaining rows */
static void vk_send_ints(vp_engine *engine, int32_t *to, const int32_t *from, int count) {
    vk_send(engine, to, from, (size_t)count * sizeof *to);
}
/* Finds the rows of the whole sequence that remain: text, and chosen[count] of the image tokens present so far. Sets
 * kept, row_at and index (the current rows of the kept tokens). */
static void vk_keep_rows(vp_engine *engine, const vp_request *request, int count) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    int next = 0, kept = 0, rows = 0;
    for (int i = 0; i < count; i++) host->kept[i] = host->kept[host->chosen[i]]; /* safe: chosen ascends */
    for (int row = 0; row < request->input_count; row++) {
        if (next < pruning->tokens && host->place[next] == row) {
            const int goes_on = kept < count && host->kept[kept] == next;
            next++;
            if (!goes_on) continue;
            host->index[kept++] = rows;
        }
        host->row_at[rows++] = row;
    }
    pruning->kept = count;
    pruning->now_rows = rows;
}
/* A window counts positions. Finds, for each of `rows` rows, the number of rows before it that are outside its
 * window. */
static void vk_window_region(vp_engine *engine, const int32_t *positions, int rows, int region) {
    const size_t at = (size_t)engine->max_sequence * (size_t)region;
    int32_t *counted = engine->pruning.host.gone + at, *gone = engine->buffers.prune.gone + at;
    int left = 0;
    for (int row = 0; row < rows; row++) {
        while (positions[row] - positions[left] >= engine->config.sliding_window) left++;
        counted[row] = left;
    }
    vk_send_ints(engine, gone, counted, rows);
    engine->pruning.regions[region].gone = gone;
    engine->pruning.regions[region].gone_counted = counted;
}
/* fills the region's table from the positions of its rows and of the tokens generated after them */
static void vk_turn_region(vp_engine *engine, const vp_request *request, int region) {
    const vp_model_config *config = &engine->config;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &engine->buffers.prune;
    const int is_mrope = vk_has_mrope(config), axes = is_mrope ? 3 : 1, added = request->max_new_tokens - 1,
              rows = pruning->now_rows, all = request->input_count;
    const size_t stride = (size_t)engine->max_sequence, table = stride * (size_t)config->head_dim * (size_t)region;
    if (is_mrope && !engine->queue->dry) vk_fill_positions(request, host->positions, stride, all + added);
    for (int axis = 0; axis < axes; axis++) {
        int32_t *positions = host->positions + (size_t)axis * stride;
        for (int row = 0; row < rows; row++) /* row_at ascends and is never below row */
            positions[row] = is_mrope ? positions[host->row_at[row]] : host->row_at[row];
        for (int i = 0; i < added; i++) positions[rows + i] = is_mrope ? positions[all + i] : all + i;
        vk_send_ints(engine, prune->positions + (size_t)axis * stride, positions, rows + added);
    }
    engine->backend->kernels.compose_rope(
        engine->queue, prune->cs + table, is_mrope ? engine->buffers.cs_table : engine->buffers.cs, prune->positions,
        is_mrope ? engine->buffers.rope_axes : prune->axes, rows + added, engine->max_sequence, config->head_dim);
    pruning->regions[region].cs = prune->cs + table;
    if (config->sliding_window) vk_window_region(engine, host->positions, rows + added, region);
    if (!prune->cs_local) return;
    engine->backend->kernels.compose_rope(engine->queue, prune->cs_local + table, engine->buffers.cs_local,
                                          prune->positions, prune->axes, rows + added, engine->max_sequence,
                                          config->head_dim);
    pruning->regions[region].cs_local = prune->cs_local + table;
}
void vk_count_scores(vp_engine *engine, int rows, const int32_t *reach, const int32_t *gone) {
    int window = engine->config.sliding_window;
    engine->scores[0] = engine->scores[1] = 0;
    if (!reach && !window) return;
    for (int row = 0; row < rows; row++) {
        int end = reach ? reach[row] : row + 1;
        engine->scores[0] += end;
        engine->scores[1] += end - VK_GONE(gone, window, row);
    }
}
/* updates masks and positions after a cut */
static void vk_begin_region(vp_engine *engine, const vp_request *request, int region) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    int end = 0;
    for (int row = 0; row < pruning->now_rows && engine->has_reach; row++) {
        while (end < pruning->now_rows && host->row_at[end] < request->span_ends[host->row_at[row]]) end++;
        host->reach[row] = end;
    }
    if (engine->has_reach) vk_send_ints(engine, engine->buffers.reach, host->reach, pruning->now_rows);
    if (pruning->keeps_positions) vk_turn_region(engine, request, region);
    vk_count_scores(engine, pruning->now_rows, engine->has_reach ? host->reach : NULL,
                    pruning->regions[region].gone_counted);
}
/* After a choice before the language model: sends the ids and places of the remaining rows. */
static void vk_shorten(vp_engine *engine, const vp_request *request, int count) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    const size_t tokens = vk_tokens_most(engine);
    vk_keep_rows(engine, request, count);
    for (int row = 0; row < pruning->now_rows && !engine->queue->dry; row++)
        host->list[row] = request->input_ids[host->row_at[row]];
    vk_send_ints(engine, engine->buffers.ids, host->list, pruning->now_rows);
    vk_send_ints(engine, engine->buffers.image_index, host->index, count);
    pruning->from = engine->buffers.prune.features;
    pruning->level = tokens * (size_t)engine->config.d_model;
    vk_begin_region(engine, request, 0);
}

/* ---- scores and choices */
/* A failed device can return any choice. Indices are clamped, and the request fails later. */
static void vk_check_chosen(vp_engine *engine, int32_t *chosen, int count, int tokens) {
    int is_good = !engine->queue->dry;
    for (int i = 0; i < count && is_good; i++)
        is_good = chosen[i] >= 0 && chosen[i] < tokens && (!i || chosen[i] > chosen[i - 1]);
    if (!is_good) vk_prune_stride(tokens, count, chosen);
}
void vk_prune_spread(const vk_backend *to, vk_queue *queue, const float *rows, float *distance, int32_t *picked,
                     int count, int width, int keep, int32_t *order) {
    to->kernels.second_nearest(queue, distance, rows, count, width);
    for (int i = 0; i < keep; i++) {
        to->kernels.argmax(queue, picked + i, distance, 1, count);
        if (i + 1 < keep) to->kernels.spread(queue, distance, rows, picked + i, count, width, i == 0);
    }
    to->fetch(queue, order, picked, (size_t)keep * sizeof *order);
}
static void vk_choose_spread(vp_engine *engine, int keep) {
    const vk_backend *to = engine->backend;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_buffers *prune = &engine->buffers.prune;
    const int d = engine->config.d_model;
    vk_send_ints(engine, prune->index, pruning->host.source, pruning->tokens);
    to->kernels.unit_rows(engine->queue, prune->unit, engine->buffers.image_features, prune->index, pruning->tokens, d,
                          d);
    vk_prune_spread(to, engine->queue, prune->unit, prune->scores, prune->start, pruning->tokens, d, keep,
                    pruning->host.chosen);
    vk_prune_sort(pruning->host.chosen, keep);
}
/* chooses among the remaining tokens: random and stride */
static int vk_choose_blindly(vp_engine *engine, int keep) {
    vk_pruning *pruning = &engine->pruning;
    if (pruning->how.method == VP_PRUNE_RANDOM)
        vk_prune_random(pruning->kept, keep, pruning->how.seed, pruning->host.draws, pruning->host.chosen);
    else if (pruning->how.method == VP_PRUNE_STRIDE) vk_prune_stride(pruning->kept, keep, pruning->host.chosen);
    else return 0;
    return 1;
}

/* ---- VisionZip */
int vk_prunes_tower(const vp_engine *engine, int block) {
    return engine->pruning.early >= VK_EARLY_MERGE && block == engine->config.vit_blocks_needed - 1;
}
/* attention that `tokens` keys receive from one query or from all, in `batch` sequences, starting at row `first` */
static void vk_score_tower(vp_engine *engine, int first, int out, int batch, int tokens) {
    const vp_model_config *config = &engine->config;
    const int ld = vk_padded(3 * config->vit_width), element = engine->wide ? 4 : 2;
    for (int i = 0; i < batch; i++) {
        vk_scores_job job = {0};
        job.tops = engine->buffers.prune.tops;
        job.received = engine->buffers.prune.scores + out + i * tokens;
        job.q = (const char *)engine->buffers.vit_qkv + (size_t)(first + i * tokens) * (size_t)ld * (size_t)element;
        job.k = (const char *)job.q + (size_t)config->vit_width * (size_t)element;
        job.queries = config->vit_class_token ? 1 : tokens;
        job.keys = tokens;
        job.heads = job.kv_heads = config->vit_head_count;
        job.head_dim = config->vit_head_dim;
        job.ldq = job.ldk = ld;
        job.scale = 1.0f / sqrtf((float)config->vit_head_dim);
        engine->backend->kernels.attention_tops(engine->queue, &job, engine->wide);
        engine->backend->kernels.attention_received(engine->queue, &job, engine->wide);
    }
}
void vk_prune_tower(vp_engine *engine, int first, int count) {
    const vp_model_config *config = &engine->config;
    const int block = config->vit_blocks_needed - 1, rows = count * config->vit_positions,
              out = first * config->vit_positions,
              is_windowed = config->vit_window && !(config->vit_full_blocks >> block & 1);
    const size_t element = engine->wide ? 4 : 2;
    vk_at(engine->queue, VP_PART_PRUNE, block);
    for (int i = 0; i < (is_windowed ? engine->window_count : 1); i++) {
        const vk_window *window = &engine->windows[i];
        if (is_windowed) vk_score_tower(engine, window->first, out + window->first, window->batch, window->tokens);
        else if (config->vit_native) vk_score_tower(engine, 0, out, 1, rows);
        else vk_score_tower(engine, 0, out, count, config->vit_positions);
    }
    engine->backend->kernels.mean_heads(
        engine->queue, engine->buffers.prune.patch_keys + (size_t)out * (size_t)config->vit_head_dim,
        (const char *)engine->buffers.vit_qkv + (size_t)config->vit_width * element, rows, config->vit_head_count,
        config->vit_head_dim, vk_padded(3 * config->vit_width), engine->wide);
    vk_end_stage(engine, engine->pruning.reply, VP_STAGE_PRUNE);
}
/* the rows of the tower that form an image token */
static int vk_members_of(const vp_engine *engine, int token, int32_t *members) {
    const vp_model_config *config = &engine->config;
    const int feature = engine->pruning.host.source[token], pool = config->geometry.pool,
              side = vp_geometry_patches_per_side(&config->geometry), across = side / pool,
              per_view = vp_geometry_tokens_per_crop(&config->geometry);
    int count = 0;
    if (config->connector == VP_CONNECTOR_STITCHED) {
        const int windows = config->window_pool * config->window_pool;
        for (int i = 0; i < windows; i++) {
            const int32_t patch = engine->host_places[feature * windows + i];
            if (patch >= 0) members[count++] = patch;
        }
    } else if (config->vit_native) {
        const int32_t *view_place = engine->host_places + 2 * (size_t)engine->max_views * (size_t)(pool * pool);
        for (int i = 0; i < pool * pool; i++) members[count++] = view_place[feature] * pool * pool + i;
    } else {
        const int view = feature / per_view, window = feature % per_view;
        for (int i = 0; i < pool * pool; i++)
            members[count++] = view * config->vit_positions + config->vit_class_token
                               + (window / across * pool + i / pool) * side + window % across * pool + i % pool;
    }
    return count;
}
/* Once the dominant rows are known, picks the targets and assigns every other row to one, using the normalised rows in
 * prune.unit. Puts the lists of the kept rows, as indices into `rows`, into host->base, list and start. */
static void vk_zip_rows(vp_engine *engine, int rows, int width, int in_place) {
    const vk_backend *to = engine->backend;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &engine->buffers.prune;
    vk_zip zip = {pruning->dominant, pruning->contextual, 0, host->dominant, host->targets,
                  host->merged,      host->assigned};
    zip.merged_count = rows - pruning->early_keep;
    (void)vk_prune_targets(rows, zip.dominant, zip.dominant_count, zip.target_count, zip.targets, zip.merged);
    memset(zip.assigned, 0, (size_t)zip.merged_count * sizeof *zip.assigned);
    if (zip.target_count && zip.merged_count) {
        vk_send_ints(engine, prune->index, zip.merged, zip.merged_count);
        vk_send_ints(engine, prune->start, zip.targets, zip.target_count);
        to->kernels.nearest_target(engine->queue, prune->list, prune->unit, prune->index, zip.merged_count,
                                   prune->start, zip.target_count, width);
        to->fetch(engine->queue, zip.assigned, prune->list, (size_t)zip.merged_count * sizeof *zip.assigned);
    } else zip.merged_count = 0; /* nothing to merge into */
    vk_prune_merge(&zip, in_place, host->base, host->list, host->start);
}
/* sends the kept rows in host->base, list and start to the device */
static void vk_send_lists(vp_engine *engine) {
    const vk_pruning *pruning = &engine->pruning;
    const vk_prune_host *host = &pruning->host;
    const vk_prune_buffers *prune = &engine->buffers.prune;
    const int keep = pruning->early_keep, members = host->start[keep];
    if (pruning->early != VK_EARLY_POOL) vk_send_ints(engine, prune->index, host->base, keep);
    vk_send_ints(engine, prune->start, host->start, keep + 1);
    if (members) vk_send_ints(engine, prune->list, host->list, members);
}
/* writes the sums of the sent rows to out: f32 [early_keep, width] */
static void vk_send_merged(vp_engine *engine, float *out, const float *from, int width) {
    const vk_pruning *pruning = &engine->pruning;
    const vk_prune_buffers *prune = &engine->buffers.prune;
    engine->backend->kernels.mean_rows(engine->queue, out, from, pruning->early == VK_EARLY_POOL ? NULL : prune->index,
                                       prune->list, prune->start, pruning->early_keep,
                                       pruning->host.start[pruning->early_keep], width);
}
/* passes rows f32 [count, vit_width], which are already tokens, through a connector of two matrices */
static void vk_project_rows(vp_engine *engine, const float *rows, int count, float *features) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    int ld = vk_padded(config->vit_width), ldh = vk_padded(config->projector_dim);
    to->kernels.convert(engine->queue, buffers->pool_query_in, rows, count, config->vit_width, ld, engine->wide);
    to->linear(engine->queue, buffers->projector_hidden, ldh, buffers->pool_query_in, ld, count,
               &engine->model.projector_in, VK_GELU);
    to->linear(engine->queue, features, config->d_model, buffers->projector_hidden, ldh, count,
               &engine->model.projector_down, VK_STORE_F32);
}
/* VisionZip as published: keeps the tower's class token and dominant patches, followed by contextual sums */
void vk_prune_connector(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &engine->buffers.prune;
    const int rows = config->vit_positions, patches = rows - 1, dominant = pruning->dominant - 1;
    if (pruning->early != VK_EARLY_CONNECTOR) return;
    vk_at(engine->queue, VP_PART_PRUNE, -1);
    to->fetch(engine->queue, host->scores, prune->scores, (size_t)rows * sizeof *host->scores);
    if (!engine->queue->dry) vk_prune_top(host->scores + 1, patches, dominant, host->ranks, host->dominant + 1);
    else vk_prune_stride(patches, dominant, host->dominant + 1);
    host->dominant[0] = 0;
    for (int i = 1; i <= dominant; i++) host->dominant[i]++;
    to->kernels.unit_rows(engine->queue, prune->unit, prune->patch_keys, NULL, rows, config->vit_head_dim,
                          config->vit_head_dim);
    vk_zip_rows(engine, rows, config->vit_head_dim, 0);
    vk_send_lists(engine);
    vk_send_merged(engine, prune->tokens, engine->buffers.hidden, config->vit_width);
    for (int i = 0; i < pruning->early_keep; i++) host->chosen[i] = i; /* the first places of the image */
    vk_shorten(engine, request, pruning->early_keep);
    for (int i = 0; i < dominant; i++) host->kept[i] = host->dominant[i + 1] - 1;
    vk_end_stage(engine, pruning->reply, VP_STAGE_PRUNE);
    vk_at(engine->queue, VP_PART_PROJECTOR, -1);
    vk_project_rows(engine, prune->tokens, pruning->early_keep, prune->features);
}
/* VisionZip in place: scores each image token by the mean of its patches */
static void vk_choose_merged(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &engine->buffers.prune;
    const int tokens = pruning->tokens, width = config->vit_head_dim;
    int members = 0;
    to->fetch(engine->queue, host->scores, prune->scores,
              (size_t)request->views * (size_t)config->vit_positions * sizeof *host->scores);
    for (int token = 0; token < tokens; token++) {
        float sum = 0.0f;
        const int count = vk_members_of(engine, token, host->list + members);
        for (int i = 0; i < count; i++) sum += host->scores[host->list[members + i]];
        host->start[token] = members;
        members += count;
        host->ranks[token].score = sum / (float)count;
    }
    host->start[tokens] = members;
    for (int token = 0; token < tokens; token++) host->scores[token] = host->ranks[token].score;
    vk_send_ints(engine, prune->start, host->start, tokens + 1);
    vk_send_ints(engine, prune->list, host->list, members);
    to->kernels.mean_rows(engine->queue, prune->metric, prune->patch_keys, NULL, prune->list, prune->start, tokens,
                          members, width);
    to->kernels.unit_rows(engine->queue, prune->unit, prune->metric, NULL, tokens, width, width);
    if (!engine->queue->dry) vk_prune_top(host->scores, tokens, pruning->dominant, host->ranks, host->dominant);
    else vk_prune_stride(tokens, pruning->dominant, host->dominant);
    vk_zip_rows(engine, tokens, width, 1);
    memcpy(host->chosen, host->base, (size_t)pruning->early_keep * sizeof *host->chosen);
    for (int i = 0; i < host->start[pruning->early_keep]; i++) host->list[i] = host->source[host->list[i]];
}

/* ---- pool: the tokens of each square become one; the results get the first places of a view */
static void vk_choose_squares(vp_engine *engine) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    const vp_model_config *config = &engine->config;
    const int side = vp_geometry_patches_per_side(&config->geometry) / config->geometry.pool,
              squares = vk_prune_pool_count(side, side);
    int next = 0;
    for (int i = 0; i < pruning->early_keep; i++) {
        const int first = i / squares * side * side,
                  count = vk_prune_pool_members(side, side, i % squares, host->list + next);
        host->start[i] = next;
        host->chosen[i] = first + i % squares; /* the first places of each view */
        for (int m = 0; m < count; m++, next++) host->list[next] = host->source[first + host->list[next]];
    }
    host->start[pruning->early_keep] = next;
}

void vk_prune_early_rows(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    const int keep = pruning->early_keep, d = config->d_model;
    const size_t tokens = vk_tokens_most(engine);
    if (pruning->early == VK_EARLY_NONE || pruning->early == VK_EARLY_CONNECTOR) return;
    vk_at(engine->queue, VP_PART_PRUNE, -1);
    host->start[keep] = 0;
    if (pruning->early == VK_EARLY_MERGE) vk_choose_merged(engine, request);
    else if (pruning->early == VK_EARLY_POOL) vk_choose_squares(engine);
    else {
        if (!vk_choose_blindly(engine, keep)) vk_choose_spread(engine, keep);
        vk_check_chosen(engine, host->chosen, keep, pruning->tokens);
        for (int i = 0; i <= keep; i++) host->start[i] = 0;
    }
    for (int i = 0; i < keep; i++) host->base[i] = host->source[host->chosen[i]];
    vk_send_lists(engine);
    for (int level = 0; level <= config->deepstack_count; level++)
        vk_send_merged(engine, engine->buffers.prune.features + (size_t)level * tokens * (size_t)d,
                       engine->buffers.image_features + (size_t)level * pruning->level, d);
    vk_shorten(engine, request, keep);
    vk_end_stage(engine, pruning->reply, VP_STAGE_PRUNE);
}

/* ---- before a block */
/* finds the rows of the remaining image tokens: host->index, which each cut sets, or `place` before the first cut */
static void vk_find_rows(vk_pruning *pruning) {
    if (pruning->kept == pruning->tokens)
        memcpy(pruning->host.index, pruning->host.place, (size_t)pruning->tokens * sizeof(int32_t));
}
/* computes the attention of one query to all rows in the cache of block `block`: f32 in prune.scores */
static void vk_score_query(vp_engine *engine, int block, const void *query, int rows) {
    const vp_model_config *config = &engine->config;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &engine->buffers.prune;
    const vk_heads heads = vk_heads_of(engine, block);
    const int kv = vk_kv_width(config), gone = VK_GONE(heads.gone_counted, heads.window, rows - 1);
    vk_scores_job job = {0};
    job.tops = prune->tops;
    job.received = prune->scores;
    job.q = query;
    job.k = (const char *)engine->buffers.key + vk_cache_of(engine, block)
            + (size_t)gone * (size_t)kv * (engine->wide ? 4 : 2);
    job.queries = 1;
    job.keys = rows - gone;
    job.heads = config->head_count;
    job.kv_heads = config->kv_head_count;
    job.head_dim = config->head_dim;
    job.ldq = vk_padded(vk_q_width(config));
    job.ldk = kv;
    job.scale = 1.0f / sqrtf((float)config->head_dim);
    engine->backend->kernels.attention_tops(engine->queue, &job, engine->wide);
    engine->backend->kernels.attention_received(engine->queue, &job, engine->wide);
    engine->backend->fetch(engine->queue, host->scores + gone, prune->scores, (size_t)job.keys * sizeof *host->scores);
    for (int i = 0; i < gone; i++) host->scores[i] = 0.0f;
}
/* chooses by the last query's attention to image tokens */
static void vk_choose_attended(vp_engine *engine, int keep) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    for (int i = 0; i < pruning->kept && !engine->queue->dry; i++) host->scores[i] = host->scores[host->index[i]];
    vk_prune_top(host->scores, pruning->kept, keep, host->ranks, host->chosen);
}
static void vk_choose_fastv(vp_engine *engine, int block, int keep, int rows) {
    const size_t ld = (size_t)vk_padded(vk_q_width(&engine->config)), element = engine->wide ? 4 : 2;
    vk_score_query(engine, block - 1, (const char *)engine->buffers.q + (size_t)(rows - 1) * ld * element, rows);
    vk_choose_attended(engine, keep);
}
/* PyramidDrop: computes the block's own keys for all rows and its query for the last one. The block recomputes them for
 * the remaining rows. Weights are in panels of VK_PAD rows; if keys begin inside a panel, all rows get a query. */
static void vk_choose_pyramid(vp_engine *engine, int cut, int keep, int rows) {
    const int block = engine->pruning.cuts[cut].block;
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_heads heads = vk_heads_in(engine, block, &engine->pruning.regions[cut]); /* the rows from before the cut */
    const int q = vk_q_width(config), kv = vk_kv_width(config), ld = vk_padded(config->d_model), ldq = vk_padded(q),
              wide = engine->wide, last = rows - 1, is_apart = q % VK_PAD == 0, first = is_apart ? q : 0;
    const size_t element = wide ? 4 : 2;
    const vk_linear linear = vk_rows_of(&layer->att_proj, first, q + 2 * kv - first, wide);
    int32_t *position = buffers->position + VK_REGIONS_MAX;
    char *key = (char *)buffers->key + vk_cache_of(engine, block),
         *value = (char *)buffers->value + vk_cache_of(engine, block);
    vk_norm_before(engine, &layer->attn_norm, 0, rows);
    to->linear(engine->queue, buffers->qkv, linear.n, buffers->normed, ld, rows, &linear, VK_STORE_F32);
    heads.heads = is_apart ? 0 : config->head_count;
    to->kernels.qk_norm_rope(engine->queue, buffers->q, key, value, buffers->qkv, &heads, buffers->position + cut, rows,
                             ldq, wide);
    if (is_apart) {
        heads.heads = config->head_count;
        vk_send(engine, position, &last, sizeof last);
        to->linear(engine->queue, buffers->qkv, q + 2 * kv,
                   (const char *)buffers->normed + (size_t)last * (size_t)ld * element, ld, 1, &layer->att_proj,
                   VK_STORE_F32);
        to->kernels.qk_norm_rope(engine->queue, buffers->q, key, value, buffers->qkv, &heads, position, 1, ldq, wide);
    }
    vk_score_query(engine, block, (const char *)buffers->q + (is_apart ? 0 : (size_t)last * (size_t)ldq * element),
                   rows);
    vk_choose_attended(engine, keep);
}
/* DART: picks pivots by the norm of their keys, then the tokens least similar to each pivot */
static void vk_choose_dart(vp_engine *engine, int block, int keep, int rows) {
    const vp_model_config *config = &engine->config;
    const vk_backend *to = engine->backend;
    vk_buffers *buffers = &engine->buffers;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_prune_buffers *prune = &buffers->prune;
    const int d = config->d_model, ld = vk_padded(d), kv = vk_kv_width(config), tokens = pruning->kept,
              images = pruning->how.pivot_image, pivots = images + pruning->text_pivots,
              behind = host->index[tokens - 1] + 1;
    int32_t *pivot = host->base;
    to->kernels.row_size(engine->queue, prune->scores, (const char *)buffers->key + vk_cache_of(engine, block - 1),
                         rows, kv, kv, engine->wide);
    to->fetch(engine->queue, host->scores, prune->scores, (size_t)rows * sizeof *host->scores);
    memset(host->flags, 0, (size_t)tokens);
    if (!engine->queue->dry) {
        vk_prune_top(host->scores + behind, rows - behind, pruning->text_pivots, host->ranks, pivot + images);
        for (int i = images; i < pivots; i++) pivot[i] += behind;
        for (int i = 0; i < tokens; i++) host->scores[i] = host->scores[host->index[i]];
        vk_prune_top(host->scores, tokens, images, host->ranks, pivot);
        for (int i = 0; i < images; i++) {
            host->flags[pivot[i]] = 1;
            pivot[i] = host->index[pivot[i]];
        }
    }
    to->kernels.rmsnorm(engine->queue, buffers->normed_wide, buffers->x, engine->model.ln_f.weight, rows, d, ld,
                        config->norm_eps, 1);
    vk_send_ints(engine, prune->index, host->index, tokens);
    vk_send_ints(engine, prune->start, pivot, pivots);
    to->kernels.unit_rows(engine->queue, prune->unit, buffers->normed_wide, prune->index, tokens, d, ld);
    to->kernels.unit_rows(engine->queue, prune->pivots, buffers->normed_wide, prune->start, pivots, d, ld);
    to->kernels.row_products(engine->queue, prune->products, prune->pivots, prune->unit, pivots, tokens, d);
    to->fetch(engine->queue, host->scores, prune->products, (size_t)pivots * (size_t)tokens * sizeof *host->scores);
    (void)vk_prune_dart(host->scores, pivots, tokens, pruning->how.per_pivot, host->flags, host->ranks, host->chosen);
    vk_check_chosen(engine, host->chosen, keep, tokens);
}
/* finds the rows to which DeepStack features are added after this cut; -1: no row */
static void vk_place_levels(vp_engine *engine) {
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    int32_t *to = host->list;
    if (pruning->early) return; /* no method prunes both early and before a block */
    for (int i = 0; i < engine->image_tokens; i++) to[i] = -1;
    for (int i = 0; i < pruning->kept; i++) to[host->source[host->kept[i]]] = host->index[i];
    vk_send_ints(engine, engine->buffers.image_index, to, engine->image_tokens);
}
static void vk_cut_rows(vp_engine *engine, const vp_request *request, int cut) {
    const vk_backend *to = engine->backend;
    vk_pruning *pruning = &engine->pruning;
    vk_prune_host *host = &pruning->host;
    vk_buffers *buffers = &engine->buffers;
    const int block = pruning->cuts[cut].block, keep = pruning->cuts[cut].keep, d = engine->config.d_model,
              rows = pruning->now_rows;
    int at = 0;
    vk_find_rows(pruning);
    vk_at(engine->queue, VP_PART_PRUNE, block);
    if (vk_choose_blindly(engine, keep)) vk_check_chosen(engine, host->chosen, keep, pruning->kept);
    else if (pruning->how.method == VP_PRUNE_FASTV) vk_choose_fastv(engine, block, keep, rows);
    else if (pruning->how.method == VP_PRUNE_DART) vk_choose_dart(engine, block, keep, rows);
    else vk_choose_pyramid(engine, cut, keep, rows);
    memcpy(host->base, host->row_at, (size_t)rows * sizeof *host->base);
    vk_keep_rows(engine, request, keep);
    for (int row = 0; row < pruning->now_rows; row++) { /* finds each row among the previous ones; both are ascending */
        while (host->base[at] != host->row_at[row]) at++;
        host->start[row] = at;
    }
    vk_send_ints(engine, buffers->prune.index, host->start, pruning->now_rows);
    to->kernels.take_rows(engine->queue, buffers->prune.x, buffers->x, buffers->prune.index, pruning->now_rows, d, d,
                          1);
    to->copy(engine->queue, buffers->x, buffers->prune.x, (size_t)pruning->now_rows * (size_t)d * sizeof(float));
    if (engine->config.deepstack_count > block) vk_place_levels(engine);
    vk_begin_region(engine, request, cut + 1);
    vk_end_stage(engine, pruning->reply, VP_STAGE_PRUNE);
}
void vk_prune_before_block(vp_engine *engine, const vp_request *request, int block) {
    const vk_pruning *pruning = &engine->pruning;
    for (int cut = 0; cut < pruning->cut_count; cut++) {
        if (pruning->cuts[cut].block != block) continue;
        vk_end_stage(engine, pruning->reply, VP_STAGE_PREFILL);
        vk_cut_rows(engine, request, cut);
        if (cut + 1 == pruning->cut_count && request->dump && !engine->queue->dry) vk_dump_kept(engine, request);
    }
}

void vk_dump_kept(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    vk_pruning *pruning = &engine->pruning;
    const vk_prune_host *host = &pruning->host;
    const vp_dump *dump = request->dump;
    const size_t d = (size_t)config->d_model, stride = (size_t)engine->max_sequence,
                 count = (size_t)request->input_count;
    pruning->reply->kept_tokens = pruning->kept;
    pruning->reply->skips_features = pruning->skips_features;
    pruning->reply->kept_count = pruning->early == VK_EARLY_POOL        ? 0
                                 : pruning->early == VK_EARLY_CONNECTOR ? pruning->dominant - 1
                                                                        : pruning->kept;
    if (dump->kept) memcpy(dump->kept, host->kept, (size_t)pruning->reply->kept_count * sizeof *dump->kept);
    for (int i = 0; i < pruning->kept && dump->kept_features; i++)
        vk_dump_fetch(engine, dump->kept_features + (size_t)i * d, engine->buffers.x + (size_t)host->index[i] * d,
                      d * sizeof(float));
    if (!dump->kept_positions) return;
    for (size_t axis = 0; axis < 3; axis++)
        for (int row = 0; row < pruning->now_rows; row++)
            dump->kept_positions[axis * count + (size_t)row] = !pruning->keeps_positions ? row
                                                               : axis && !vk_has_mrope(config)
                                                                   ? host->row_at[row]
                                                                   : host->positions[axis * stride + (size_t)row];
}
