/* request.c - a request, from checking it to reporting its times */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* checks that the views of all images add up and that their grids fit */
static vp_result vk_check_images(const vp_model_config *config, const vp_request *request, vp_error *error) {
    const int is_stitched = config->connector == VP_CONNECTOR_STITCHED;
    int64_t sum = 0;
    if (request->image_count < 0 || (request->image_count && !request->images)
        || (request->image_count > 1 && is_stitched))
        return vp_error_set(error, VP_ERR_RANGE, -1, "request images",
                            is_stitched ? "this model's windows span the crops of one image"
                                        : "images must have image_count entries");
    for (int i = 0; i < vk_image_count(request); i++) {
        const vp_image_views image = vk_image_at(request, i);
        sum += image.views;
        if ((is_stitched || config->vit_native)
            && (image.rows < 1 || image.cols < 1 || (int64_t)image.rows * image.cols + is_stitched != image.views))
            return vp_error_set(error, VP_ERR_RANGE, i, "request grid",
                                is_stitched ? "rows times columns plus one must equal the number of views"
                                            : "rows times columns must equal the number of views");
        if (image.views < 1)
            return vp_error_set(error, VP_ERR_RANGE, i, "request images", "an image needs at least one view");
    }
    return sum == request->views
               ? VP_OK
               : vp_error_set(error, VP_ERR_RANGE, -1, "request images", "the views of all images must sum to `views`");
}
/* checks sizes, knobs and room for records, also for requests that are only counted */
static vp_result vk_check_shape(const vp_engine *engine, const vp_request *request, vp_error *error) {
    const vp_model_config *config = &engine->config;
    vp_activations used;
    char text[160];
    if (request->input_count < 1 || request->max_new_tokens < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "request", "needs at least one input token and one new token");
    if ((int64_t)request->input_count + request->max_new_tokens - 1 > engine->max_sequence) {
        snprintf(text, sizeof text,
                 "%d input tokens and %d new ones exceed the %d positions that this engine was opened for",
                 request->input_count, request->max_new_tokens, engine->max_sequence);
        return vp_error_set(error, VP_ERR_RANGE, -1, "request", text);
    }
    if (request->views < 0 || request->views > engine->max_views)
        return vp_error_set(error, VP_ERR_RANGE, -1, "request views", "more views than this engine was opened for");
    if (vk_check_images(config, request, error) != VP_OK) return VP_ERR_RANGE;
    if (request->views && !config->vit_block_count)
        return vp_error_set(error, VP_ERR_RANGE, -1, "request views", "this model accepts only text");
    if (request->top_k < (config->expert_count > 0) || request->top_k > config->expert_count) {
        if (config->expert_count)
            snprintf(text, sizeof text, "is %d; this model has %d experts", request->top_k, config->expert_count);
        else snprintf(text, sizeof text, "is %d; this model has no experts: it must be 0", request->top_k);
        return vp_error_set(error, VP_ERR_RANGE, -1, "top_k", text);
    }
    if (request->active_block_count < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "active_blocks", "at least one block must be active");
    for (int i = 0; i < request->active_block_count; i++)
        if (request->active_blocks[i] < 0 || request->active_blocks[i] >= config->block_count
            || (i && request->active_blocks[i] <= request->active_blocks[i - 1]))
            return vp_error_set(error, VP_ERR_RANGE, i, "active_blocks",
                                "must be ascending block numbers of this model");
    if (request->views && config->image_bidirectional && !request->span_ends)
        return vp_error_set(error, VP_ERR_RANGE, -1, "span_ends", "this model's images need them");
    for (int i = 0; i < request->input_count && request->span_ends && config->image_bidirectional; i++)
        if (request->span_ends[i] <= i || request->span_ends[i] > request->input_count)
            return vp_error_set(error, VP_ERR_RANGE, i, "span_ends",
                                "must be above the token's index and at most input_count");
    if ((int)request->timing < VP_TIMING_STAGE || (int)request->timing > VP_TIMING_KERNEL)
        return vp_error_set(error, VP_ERR_RANGE, -1, "timing",
                            "must be VP_TIMING_STAGE, VP_TIMING_OFF or VP_TIMING_KERNEL");
    if (request->launch_capacity < 0 || (request->launch_capacity && !request->launches))
        return vp_error_set(error, VP_ERR_RANGE, -1, "launches", "launches must have room for launch_capacity records");
    if (request->span_capacity < 0 || (request->span_capacity && !request->spans))
        return vp_error_set(error, VP_ERR_RANGE, -1, "spans", "spans must have room for span_capacity records");
    if (request->prune && request->prune->method != VP_PRUNE_NONE && request->views && !engine->prunes)
        return vp_error_set(error, VP_ERR_RANGE, -1, "prune", "this engine was opened without `prunes`");
    vp_result result = vp_engine_activations(engine, request->activations, &used, error);
    return result == VP_OK ? vk_plan_pruning(config, request, NULL, error) : result;
}
static vp_result vk_check_request(const vp_engine *engine, const vp_request *request, vp_error *error) {
    const vp_model_config *config = &engine->config;
    const vp_result result = vk_check_shape(engine, request, error);
    if (result != VP_OK) return result;
    if (request->views && (!request->pixels || !request->image_masks || !request->image_input_idx))
        return vp_error_set(error, VP_ERR_RANGE, -1, "request",
                            "an image needs pixels, image_masks and image_input_idx");
    for (int i = 0; i < request->input_count; i++)
        if (request->input_ids[i] < 0
            || request->input_ids[i] >= config->embedding_size + config->additional_vocab_size)
            return vp_error_set(error, VP_ERR_RANGE, i, "input_ids", "a token id without an embedding");
    for (int i = 0; request->forced_tokens && i < request->max_new_tokens; i++)
        if (request->forced_tokens[i] < 0
            || request->forced_tokens[i] >= config->embedding_size + config->additional_vocab_size)
            return vp_error_set(error, VP_ERR_RANGE, i, "forced_tokens", "a token id without an embedding");
    int64_t index_count = request->views ? vk_request_image_tokens(config, request) : 0;
    for (int64_t i = 0; i < index_count; i++)
        if (request->image_input_idx[i] >= request->input_count)
            return vp_error_set(error, VP_ERR_RANGE, i, "image_input_idx", "a position beyond the end of the sequence");
        else if (config->vit_native && request->image_input_idx[i] <= (i ? request->image_input_idx[i - 1] : -1))
            return vp_error_set(error, VP_ERR_RANGE, i, "image_input_idx", "must ascend: views are in order");
    return VP_OK;
}

static vp_result vk_not_numbers(vp_error *error) {
    return vp_error_set(error, VP_ERR_FORMAT, -1, "logits",
                        "are not numbers: the weights or pixels contain NaN or infinity, or a value overflowed");
}

void vk_send_request(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    vk_buffers *buffers = &engine->buffers;
    int32_t (*is_dead)(const float *, size_t) = engine->model.description->is_dead_view;
    size_t views = (size_t)request->views, patches = (size_t)vk_vit_patches(config),
           values = patches * (size_t)vk_patch_values(config);
    static const int32_t zero[VP_PRUNE_CUTS_MAX + 1];
    vk_begin_pruning(engine, request);
    engine->has_reach = config->image_bidirectional && request->span_ends;
    vk_count_scores(engine, request->input_count, engine->has_reach ? request->span_ends : NULL, NULL);
    vk_at(engine->queue, VP_PART_INPUT, -1);
    vk_send(engine, buffers->ids, request->input_ids, (size_t)request->input_count * sizeof(int32_t));
    vk_send(engine, buffers->position, zero, (size_t)engine->pruning.region_count * sizeof zero[0]);
    if (vk_has_mrope(config)) vk_send_positions(engine, request);
    if (engine->has_reach)
        vk_send(engine, buffers->reach, request->span_ends, (size_t)request->input_count * sizeof(int32_t));
    if (!request->views) return;
    if (config->vit_native) vk_send_grid(engine, request);
    if (config->connector == VP_CONNECTOR_STITCHED) vk_send_windows(engine, request);
    engine->image_tokens = vk_request_image_tokens(config, request);
    vk_send(engine, buffers->image_index, request->image_input_idx, (size_t)engine->image_tokens * sizeof(int32_t));
    engine->pixels = request->pixels;
    engine->masks = request->image_masks;
    if (!engine->backend->host_memory) {
        vk_send(engine, buffers->pixels, request->pixels, views * values * sizeof(float));
        vk_send(engine, buffers->masks, request->image_masks, views * patches * sizeof(float));
        engine->pixels = buffers->pixels;
        engine->masks = buffers->masks;
    }
    /* while the pixels are copied */
    for (size_t first = 0; first < views; first += 64) {
        int32_t dead[64];
        size_t count = views - first < 64 ? views - first : 64;
        for (size_t v = 0; v < count; v++)
            dead[v] = is_dead && !engine->queue->dry ? is_dead(request->pixels + (first + v) * values, values) : 0;
        vk_send(engine, buffers->dead + first, dead, count * sizeof dead[0]);
    }
}

/* the time mark of token `index`; the mark of the first token is the end of the sample stage */
static int vk_token_mark(int index) { return index ? VP_STAGE_COUNT + index : VP_STAGE_SAMPLE + 1; }

static void vk_decode_step(vp_engine *engine, const vp_request *request, int step) {
    engine->queue->step = step;
    vk_send_step(engine, request, request->input_count + step - 1);
    engine->backend->mark(engine->queue, vk_token_mark(step), engine->buffers.token);
}

/* Replaces the sampled token with a given one. Like the copies of a dump, this is not part of the model's work. */
static void vk_force_token(vp_engine *engine, int32_t token) {
    vk_work before = engine->queue->work;
    vk_send(engine, engine->buffers.token, &token, sizeof token);
    engine->queue->work = before;
}

/* Returns 1 if the token ends the answer. */
static int vk_ends(const vp_request *request, int32_t token) {
    int ends = token == request->eos_id;
    for (int32_t i = 0; i < request->more_eos_count; i++) ends |= token == request->more_eos_ids[i];
    return ends && !request->ignore_eos && !request->forced_tokens;
}

/* Decodes up to the last token. If results arrive late, the step after token i is submitted before token i is known. If
 * token i is EOS, that step is not awaited or counted. */
static vp_result vk_decode(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error) {
    const vk_backend *to = engine->backend;
    int ahead = to->run_ahead && !request->dump && !request->forced_tokens;
    vk_work before = engine->queue->work;
    int64_t logged = 0;
    for (int i = 0;; i++) {
        if (ahead && i + 1 < request->max_new_tokens) {
            before = engine->queue->work;
            logged = engine->queue->log_count;
            vk_decode_step(engine, request, i + 1);
        }
        vp_result result = to->wait(engine->queue, vk_token_mark(i), error);
        if (result != VP_OK) return result;
        reply->tokens[i] = to->token(engine->queue, vk_token_mark(i), engine->pruning.regions[0].rows + i);
        reply->token_count = i + 1;
        if (i)
            reply->step_ns[i - 1] = request->timing == VP_TIMING_OFF
                                        ? 0
                                        : to->between(engine->queue, vk_token_mark(i - 1), vk_token_mark(i));
        if (request->dump) vk_dump_logits(engine, request->dump, i);
        if (reply->tokens[i] < 0) return vk_not_numbers(error);
        if (i + 1 == request->max_new_tokens || vk_ends(request, reply->tokens[i])) break;
        if (request->forced_tokens) vk_force_token(engine, request->forced_tokens[i]);
        if (!ahead) vk_decode_step(engine, request, i + 1);
    }
    if (ahead && reply->token_count < request->max_new_tokens) {
        engine->queue->work = before;
        engine->queue->log_count = logged;
    }
    return VP_OK;
}

/* reads the device's times once all marks up to that of the last token are reached */
static void vk_read_times(vp_engine *engine, vp_reply *reply) {
    vp_stage_times *times = &reply->times;
    unsigned char begun[VP_STAGE_COUNT] = {0};
    int last = 0, timed = engine->queue->timing != VP_TIMING_OFF;
    int64_t at = 0;
    if (reply->token_count > 1) {
        vk_end_count(engine, times, VP_STAGE_DECODE);
        if (timed) times->wall_ns[VP_STAGE_DECODE] = vp_clock_ns() - engine->since_ns;
        engine->queue->stamps += timed;
    }
    times->stamps = engine->queue->stamps;
    for (int i = 0; i < engine->segment_count && timed; i++) {
        const vk_segment *segment = &engine->segments[i];
        int64_t took = engine->backend->between(engine->queue, last, segment->slot);
        if (!begun[segment->stage]++) times->begin_ns[segment->stage] = at;
        times->device_ns[segment->stage] += took;
        at += took;
        last = segment->slot;
    }
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_SAMPLE && timed; stage++)
        if (!begun[stage]) times->begin_ns[stage] = times->begin_ns[stage - 1] + times->device_ns[stage - 1];
    times->begin_ns[VP_STAGE_DECODE] = at;
    for (int32_t i = 0; timed && i + 1 < reply->token_count; i++)
        times->device_ns[VP_STAGE_DECODE] += reply->step_ns[i];
}

/* Counts the work of each stage in a dry run of the whole request. */
static void vk_count(vp_engine *engine, const vp_request *request, vp_stage_times *times) {
    const vk_work before = engine->queue->work;
    vp_request shape = *request;
    vp_reply reply = {0};
    if (!shape.pixels) shape.pixels = shape.image_masks = engine->weights; /* any address will do: nothing is read */
    engine->queue->dry = 1;
    engine->counted = before;
    vk_send_request(engine, &shape);
    vk_end_stage(engine, &reply, VP_STAGE_H2D);
    vk_prefill(engine, &shape, &reply);
    for (int i = 1; i < shape.max_new_tokens; i++) vk_step(engine, &shape, shape.input_count + i - 1);
    if (shape.max_new_tokens > 1) vk_end_count(engine, &reply.times, VP_STAGE_DECODE);
    engine->queue->dry = 0;
    engine->queue->work = before;
    *times = reply.times;
}

VP_API vp_result vp_engine_count(vp_engine *engine, const vp_request *request, vp_stage_times *work, vp_error *error) {
    const vp_result result = vk_check_shape(engine, request, error);
    if (result == VP_OK) vk_count(engine, request, work);
    return result;
}

/* VP_TIMING_KERNEL: reserves room for all possible launches of this request */
static vp_result vk_open_log(vp_engine *engine, const vp_request *request, vp_error *error) {
    vk_queue *queue = engine->queue;
    vp_request begun = *request;
    vp_stage_times work;
    int64_t most = 0;
    char text[160];
    if (begun.max_new_tokens > 2) begun.max_new_tokens = 2; /* the first step has the most launches */
    vk_count(engine, &begun, &work);
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++)
        most += work.launches[stage] * (stage == VP_STAGE_DECODE ? request->max_new_tokens - 1 : 1);
    if (most > engine->log_capacity) {
        vp_launch *grown = realloc(engine->log, (size_t)most * sizeof *grown);
        if (grown) {
            engine->log = grown;
            engine->log_capacity = most;
        }
    }
    if (most > engine->log_capacity || !engine->backend->reserve_log(queue, most)) {
        if (queue->error) return engine->backend->wait(queue, 0, error);
        snprintf(text, sizeof text, "not enough memory to time %lld launches: use fewer new tokens or VP_TIMING_STAGE",
                 (long long)most);
        return vp_error_set(error, VP_ERR_MEMORY, -1, "timing", text);
    }
    queue->log = engine->log;
    queue->log_capacity = most;
    engine->spans.span = request->spans;
    engine->spans.capacity = request->span_capacity;
    engine->spans.count = 0;
    queue->spans = request->spans ? &engine->spans : NULL;
    return VP_OK;
}

/* Returns 0 if times are missing. */
static int vk_read_log(vp_engine *engine, const vp_request *request, vp_reply *reply) {
    vk_queue *queue = engine->queue;
    int64_t copied = queue->log_count < request->launch_capacity ? queue->log_count : request->launch_capacity;
    if (queue->log_count > queue->log_capacity) return 1; /* cannot happen; has_kernels would reveal it */
    if (!engine->backend->read_log(queue)) return 0;
    for (int64_t i = 0; i < queue->log_count; i++) {
        reply->times.kernel_ns[queue->log[i].stage] += queue->log[i].ns;
        reply->times.part_ns[queue->log[i].stage][queue->log[i].part] += queue->log[i].ns;
    }
    reply->times.has_kernels = 1;
    reply->launch_count = queue->log_count;
    reply->span_count = engine->spans.count;
    if (copied) memcpy(request->launches, queue->log, (size_t)copied * sizeof *request->launches);
    return 1;
}

static vp_result vk_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error) {
    memset(&reply->times, 0, sizeof reply->times);
    reply->launch_count = reply->span_count = 0;
    reply->kept_count = reply->kept_tokens = reply->skips_features = 0;
    engine->queue->timing = request->timing;
    engine->queue->activations = (int)request->activations;
    engine->queue->stamps = engine->queue->log_count = engine->logged = 0;
    engine->segment_count = 0;
    engine->queue->step = 0;
    engine->counted = engine->queue->work;
    engine->since_ns = engine->backend->mark(engine->queue, 0, NULL);
    vk_send_request(engine, request);
    vk_end_stage(engine, reply, VP_STAGE_H2D);
    vk_prefill(engine, request, reply);
    vp_result result = vk_decode(engine, request, reply, error);
    if (result != VP_OK) return result;
    vk_read_times(engine, reply);
    engine->repeats = engine->queue->log && !vk_read_log(engine, request, reply);
    reply->ended_by_eos = vk_ends(request, reply->tokens[reply->token_count - 1]);
    return engine->queue->error ? engine->backend->wait(engine->queue, 0, error) : VP_OK;
}

VP_API vp_result vp_engine_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error) {
    vp_result result = vk_check_request(engine, request, error);
    if (result == VP_OK && engine->counted_space_bytes)
        result = vp_error_set(error, VP_ERR_STATE, -1, "engine", "was opened only to count requests");
    if (result != VP_OK) return result;
    engine->backend->enter(engine->queue);
    do { /* runs again with the other timer if launch times are missing */
        engine->repeats = 0;
        if (request->timing == VP_TIMING_KERNEL) result = vk_open_log(engine, request, error);
        if (result == VP_OK) result = vk_run(engine, request, reply, error);
    } while (result == VP_OK && engine->repeats);
    engine->queue->log = NULL;
    engine->queue->spans = NULL;
    vk_recover(engine);
    return result;
}
