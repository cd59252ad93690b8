/* request.c - one request from its check to its times */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vp_result vk_check_request(const vp_engine *e, const vp_request *r, vp_error *error) {
    const vp_model_config *c = &e->config;
    int64_t index_count = (int64_t)r->views * vp_geometry_tokens_per_crop(&c->geometry);
    char text[160];
    if (r->input_count < 1 || r->max_new_tokens < 1)
        return vp_fail(error, VP_ERR_RANGE, -1, "request", "needs at least one input token and one new token");
    if ((int64_t)r->input_count + r->max_new_tokens - 1 > e->max_sequence) {
        snprintf(text, sizeof text, "%d input tokens and %d new ones do not fit the %d positions this engine was opened for", r->input_count,
                 r->max_new_tokens, e->max_sequence);
        return vp_fail(error, VP_ERR_RANGE, -1, "request", text);
    }
    if (r->views < 0 || r->views > e->max_views)
        return vp_fail(error, VP_ERR_RANGE, -1, "request views", "more views than this engine was opened for");
    if (r->views && (!r->pixels || !r->image_masks || !r->image_input_idx))
        return vp_fail(error, VP_ERR_RANGE, -1, "request", "an image needs pixels, image_masks and image_input_idx");
    if (r->top_k < 1 || r->top_k > c->expert_count) {
        snprintf(text, sizeof text, "is %d; this model has %d experts", r->top_k, c->expert_count);
        return vp_fail(error, VP_ERR_RANGE, -1, "top_k", text);
    }
    if (r->active_block_count < 1) return vp_fail(error, VP_ERR_RANGE, -1, "active_blocks", "at least one block must be active");
    for (int i = 0; i < r->active_block_count; i++)
        if (r->active_blocks[i] < 0 || r->active_blocks[i] >= c->block_count || (i && r->active_blocks[i] <= r->active_blocks[i - 1]))
            return vp_fail(error, VP_ERR_RANGE, i, "active_blocks", "must be ascending block numbers of this model");
    for (int i = 0; i < r->input_count; i++)
        if (r->input_ids[i] < 0 || r->input_ids[i] >= c->embedding_size + c->additional_vocab_size)
            return vp_fail(error, VP_ERR_RANGE, i, "input_ids", "a token id without an embedding");
    for (int64_t i = 0; i < index_count; i++)
        if (r->image_input_idx[i] >= r->input_count)
            return vp_fail(error, VP_ERR_RANGE, i, "image_input_idx", "a position behind the end of the sequence");
    if ((int)r->timing < VP_TIMING_STAGE || (int)r->timing > VP_TIMING_KERNEL)
        return vp_fail(error, VP_ERR_RANGE, -1, "timing", "is none of VP_TIMING_STAGE, VP_TIMING_OFF, VP_TIMING_KERNEL");
    if (r->launch_capacity < 0 || (r->launch_capacity && !r->launches))
        return vp_fail(error, VP_ERR_RANGE, -1, "launches", "launch_capacity needs that much room in launches");
    if (r->span_capacity < 0 || (r->span_capacity && !r->spans))
        return vp_fail(error, VP_ERR_RANGE, -1, "spans", "span_capacity needs that much room in spans");
    return VP_OK;
}
/* A dump is no work of the model: it is neither counted nor timed. */
static void vk_dump_fetch(vp_engine *e, void *host, const void *from, size_t bytes) {
    vk_queue *queue = e->queue;
    vk_work before = queue->work;
    vp_launch *log = queue->log;
    queue->log = NULL;
    e->backend->fetch(queue, host, from, bytes);
    queue->log = log;
    queue->work = before;
}
void vk_dump_vision(vp_engine *e, const vp_request *r) {
    const vp_model_config *c = &e->config;
    size_t w = (size_t)c->vit_width, layers = (size_t)c->vit_layer_count, patches = (size_t)c->vit_positions - 1, views = (size_t)e->max_views,
           windows = (size_t)vp_geometry_tokens_per_crop(&c->geometry);
    if (r->dump->image_features)
        vk_dump_fetch(e, r->dump->image_features, e->buffers.image_features,
                      (size_t)r->views * windows * (size_t)c->d_model * sizeof(float));
    if (!r->dump->vit_features) return;
    for (size_t v = 0; v < (size_t)r->views; v++)
        for (size_t l = 0; l < layers; l++)
            for (size_t p = 0; p < patches; p++)
                vk_dump_fetch(e, r->dump->vit_features + ((v * patches + p) * layers + l) * w,
                              e->buffers.hidden + ((l * views + v) * (patches + 1) + p + 1) * w, w * sizeof(float));
}
void vk_dump_block(vp_engine *e, const vp_request *r, int slot) {
    size_t d = (size_t)e->config.d_model, rows = (size_t)r->input_count;
    float *out = r->dump->block_mean ? r->dump->block_mean + (size_t)slot * d : NULL;
    if (r->dump->block_last)
        vk_dump_fetch(e, r->dump->block_last + (size_t)slot * d, e->buffers.x + (rows - 1) * d, d * sizeof(float));
    if (!out) return;
    enum { COLUMNS = 256 }; /* a strip at a time: a dump needs no memory of its own */
    for (size_t from = 0; from < d; from += COLUMNS) {
        size_t count = d - from < (size_t)COLUMNS ? d - from : (size_t)COLUMNS;
        double sum[COLUMNS] = { 0.0 };
        float row[COLUMNS] = { 0.0f };
        for (size_t r2 = 0; r2 < rows; r2++) {
            vk_dump_fetch(e, row, e->buffers.x + r2 * d + from, count * sizeof(float));
            for (size_t i = 0; i < count; i++) sum[i] += (double)row[i];
        }
        for (size_t i = 0; i < count; i++) out[from + i] = (float)(sum[i] / (double)rows);
    }
}
void vk_end_stage(vp_engine *e, vp_reply *reply, vp_stage stage) {
    const vk_work *now = &e->queue->work;
    int64_t now_ns;
    if (e->queue->dry) return;
    now_ns = e->backend->mark(e->queue, stage + 1, stage == VP_STAGE_SAMPLE ? e->buffers.token : NULL);
    reply->times.wall_ns[stage] = now_ns - e->since_ns;
    reply->times.launches[stage] = now->launches - e->counted.launches;
    reply->times.flops[stage] = now->flops - e->counted.flops;
    reply->times.bytes[stage] = now->bytes - e->counted.bytes;
    reply->times.ran[stage] = 1;
    e->since_ns = now_ns;
    e->counted = *now;
    for (; e->queue->log && e->logged < e->queue->log_count && e->logged < e->queue->log_capacity; e->logged++)
        e->queue->log[e->logged].stage = stage;
}
static vp_result vk_not_numbers(vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, -1, "logits", "are not numbers: the weights or the pixels hold NaN or infinity, or overflow on the way");
}
void vk_send_request(vp_engine *e, const vp_request *r) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    size_t views = (size_t)r->views, patches = (size_t)c->vit_positions - 1, values = patches * (size_t)vk_patch_values(c);
    int32_t zero = 0;
    vk_at(e->queue, VP_PART_INPUT, -1);
    vk_send(e, b->ids, r->input_ids, (size_t)r->input_count * sizeof(int32_t));
    vk_send(e, b->position, &zero, sizeof zero);
    if (!r->views) return;
    vk_send(e, b->image_index, r->image_input_idx, views * (size_t)vp_geometry_tokens_per_crop(&c->geometry) * sizeof(int32_t));
    e->pixels = r->pixels;
    e->masks = r->image_masks;
    if (!e->backend->host_memory) {
        vk_send(e, b->pixels, r->pixels, views * values * sizeof(float));
        vk_send(e, b->masks, r->image_masks, views * patches * sizeof(float));
        e->pixels = b->pixels;
        e->masks = b->masks;
    }
    /* while the pixels travel */
    for (size_t first = 0; first < views; first += 64) {
        int32_t dead[64];
        size_t count = views - first < 64 ? views - first : 64;
        for (size_t v = 0; v < count; v++) dead[v] = e->model.description->is_dead_view(r->pixels + (first + v) * values, values);
        vk_send(e, b->dead + first, dead, count * sizeof dead[0]);
    }
}
/* mark of token `index`: the first comes out of the sample stage */
static int vk_token_mark(int index) { return index ? VP_STAGE_COUNT + index : VP_STAGE_SAMPLE + 1; }
static void vk_decode_step(vp_engine *e, const vp_request *r, int step) {
    e->queue->step = step;
    vk_send_step(e, r, r->input_count + step - 1);
    e->backend->mark(e->queue, vk_token_mark(step), e->buffers.token);
}
/* tokens until the last. Where results are known late, the step after token i is sent before token i is known; one that EOS made superfluous is
 * neither waited for nor counted. */
static vp_result vk_decode(vp_engine *e, const vp_request *r, vp_reply *reply, vp_error *error) {
    const vk_backend *to = e->backend;
    int ahead = to->run_ahead && !r->dump;
    size_t logits = (size_t)e->config.embedding_size;
    vk_work before = e->queue->work;
    int64_t logged = 0;
    for (int i = 0;; i++) {
        vp_result result;
        if (ahead && i + 1 < r->max_new_tokens) {
            before = e->queue->work;
            logged = e->queue->log_count;
            vk_decode_step(e, r, i + 1);
        }
        result = to->wait(e->queue, vk_token_mark(i), error);
        if (result != VP_OK) return result;
        reply->tokens[i] = to->token(e->queue, vk_token_mark(i));
        reply->token_count = i + 1;
        if (i) reply->step_ns[i - 1] = r->timing == VP_TIMING_OFF ? 0 : to->between(e->queue, vk_token_mark(i - 1), vk_token_mark(i));
        if (r->dump && r->dump->logits) vk_dump_fetch(e, r->dump->logits + (size_t)i * logits, e->buffers.logits, logits * sizeof(float));
        if (reply->tokens[i] < 0) return vk_not_numbers(error);
        if (i + 1 == r->max_new_tokens || (!r->ignore_eos && reply->tokens[i] == r->eos_id)) break;
        if (!ahead) vk_decode_step(e, r, i + 1);
    }
    if (ahead && reply->token_count < r->max_new_tokens) { e->queue->work = before; e->queue->log_count = logged; }
    return VP_OK;
}
/* the device's times, when all marks up to the last token's were reached */
static void vk_read_times(vp_engine *e, vp_reply *reply) {
    vp_stage_times *times = &reply->times;
    int last = 0, timed = e->queue->timing != VP_TIMING_OFF;
    int64_t at = 0;
    times->ran[VP_STAGE_DECODE] = reply->token_count > 1;
    if (times->ran[VP_STAGE_DECODE]) {
        times->launches[VP_STAGE_DECODE] = e->queue->work.launches - e->counted.launches;
        times->flops[VP_STAGE_DECODE] = e->queue->work.flops - e->counted.flops;
        times->bytes[VP_STAGE_DECODE] = e->queue->work.bytes - e->counted.bytes;
        if (timed) times->wall_ns[VP_STAGE_DECODE] = vp_clock_ns() - e->since_ns;
        e->queue->stamps += timed;
    }
    times->stamps = e->queue->stamps;
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_SAMPLE && timed; stage++) {
        times->begin_ns[stage] = at;
        if (!times->ran[stage]) continue;
        at += times->device_ns[stage] = e->backend->between(e->queue, last, stage + 1);
        last = stage + 1;
    }
    times->begin_ns[VP_STAGE_DECODE] = at;
    for (int32_t i = 0; timed && i + 1 < reply->token_count; i++) times->device_ns[VP_STAGE_DECODE] += reply->step_ns[i];
}
/* VP_TIMING_KERNEL: room for every launch that this request can make, found by a run that counts and sends nothing */
static vp_result vk_open_log(vp_engine *e, const vp_request *r, vp_reply *reply, vp_error *error) {
    vk_queue *queue = e->queue;
    vk_work before = queue->work;
    int64_t prefill, most;
    char text[160];
    queue->dry = 1;
    vk_send_request(e, r);
    vk_prefill(e, r, reply); /* leaves the reply alone: no stage ends in a dry run */
    prefill = queue->work.launches - before.launches;
    vk_step(e, r, r->input_count);
    most = prefill + (queue->work.launches - before.launches - prefill) * (r->max_new_tokens - 1);
    queue->dry = 0;
    queue->work = before;
    if (most > e->log_capacity) {
        vp_launch *grown = realloc(e->log, (size_t)most * sizeof *grown);
        if (grown) { e->log = grown; e->log_capacity = most; }
    }
    if (most > e->log_capacity || !e->backend->reserve_log(queue, most)) {
        if (queue->error) return e->backend->wait(queue, 0, error);
        snprintf(text, sizeof text, "no memory to time %lld launches one by one: fewer new tokens, or VP_TIMING_STAGE", (long long)most);
        return vp_fail(error, VP_ERR_MEMORY, -1, "timing", text);
    }
    queue->log = e->log;
    queue->log_capacity = most;
    e->spans.span = r->spans;
    e->spans.capacity = r->span_capacity;
    e->spans.count = 0;
    queue->spans = r->spans ? &e->spans : NULL;
    return VP_OK;
}
static void vk_read_log(vp_engine *e, const vp_request *r, vp_reply *reply) {
    vk_queue *queue = e->queue;
    int64_t copied = queue->log_count < r->launch_capacity ? queue->log_count : r->launch_capacity;
    if (queue->log_count > queue->log_capacity) return; /* cannot be; has_kernels would say it */
    e->backend->read_log(queue);
    for (int64_t i = 0; i < queue->log_count; i++) {
        reply->times.kernel_ns[queue->log[i].stage] += queue->log[i].ns;
        reply->times.part_ns[queue->log[i].stage][queue->log[i].part] += queue->log[i].ns;
    }
    reply->times.has_kernels = 1;
    reply->launch_count = queue->log_count;
    reply->span_count = e->spans.count;
    if (copied) memcpy(r->launches, queue->log, (size_t)copied * sizeof *r->launches);
}
static vp_result vk_run(vp_engine *e, const vp_request *r, vp_reply *reply, vp_error *error) {
    vp_result result;
    memset(&reply->times, 0, sizeof reply->times);
    reply->launch_count = reply->span_count = 0;
    e->queue->timing = r->timing;
    e->queue->stamps = e->queue->log_count = e->logged = 0;
    e->queue->step = 0;
    e->counted = e->queue->work;
    e->since_ns = e->backend->mark(e->queue, 0, NULL);
    vk_send_request(e, r);
    vk_end_stage(e, reply, VP_STAGE_H2D);
    vk_prefill(e, r, reply);
    result = vk_decode(e, r, reply, error);
    if (result != VP_OK) return result;
    vk_read_times(e, reply);
    if (e->queue->log) vk_read_log(e, r, reply);
    reply->ended_by_eos = !r->ignore_eos && reply->tokens[reply->token_count - 1] == r->eos_id;
    return e->queue->error ? e->backend->wait(e->queue, 0, error) : VP_OK;
}
VP_API vp_result vp_engine_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error) {
    vp_result result = vk_check_request(engine, request, error);
    if (result != VP_OK) return result;
    engine->backend->enter(engine->queue);
    if (request->timing == VP_TIMING_KERNEL) result = vk_open_log(engine, request, reply, error);
    if (result == VP_OK) result = vk_run(engine, request, reply, error);
    engine->queue->log = NULL;
    engine->queue->spans = NULL;
    vk_recover(engine);
    return result;
}
