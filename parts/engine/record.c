/* record.c - the records of a request: times and counts of its stages, and the copies for --dump */
#include "engine_internal.h"

void vk_dump_fetch(vp_engine *engine, void *host, const void *from, size_t bytes) {
    vk_queue *queue = engine->queue;
    vk_work before = queue->work;
    vp_launch *log = queue->log;
    queue->log = NULL;
    engine->backend->fetch(queue, host, from, bytes);
    queue->log = log;
    queue->work = before;
}

void vk_dump_vision(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    size_t width = (size_t)config->vit_width, layers = (size_t)config->vit_layer_count,
           patches = (size_t)vk_vit_patches(config), positions = (size_t)config->vit_positions,
           views = (size_t)engine->max_views;
    if (request->dump->image_features && !engine->pruning.skips_features)
        vk_dump_fetch(engine, request->dump->image_features, engine->buffers.image_features,
                      (size_t)engine->image_tokens * (size_t)config->d_model * sizeof(float));
    for (size_t l = 0; l < (size_t)config->deepstack_count && request->dump->deepstack_features; l++) {
        size_t level = (size_t)request->views * (size_t)config->d_model;
        vk_dump_fetch(engine, request->dump->deepstack_features + l * level,
                      engine->buffers.image_features + (1 + l) * views * (size_t)config->d_model,
                      level * sizeof(float));
    }
    if (!request->dump->vit_features) return;
    /* a tower with windows orders its views differently from the image */
    const int32_t *view_place = config->vit_native ? engine->host_places + 2 * views * patches : NULL;
    for (size_t v = 0; v < (size_t)request->views; v++) {
        const size_t place = view_place ? (size_t)view_place[v] : v;
        for (size_t l = 0; l < layers; l++)
            for (size_t p = 0; p < patches; p++)
                vk_dump_fetch(engine, request->dump->vit_features + ((v * patches + p) * layers + l) * width,
                              engine->buffers.hidden
                                  + ((l * views + place) * positions + positions - patches + p) * width,
                              width * sizeof(float));
    }
}

void vk_dump_logits(vp_engine *engine, const vp_dump *dump, int step) {
    size_t count = (size_t)engine->config.embedding_size;
    float *to = dump->logits + (dump->on_logits || !dump->logits ? 0 : (size_t)step * count);
    if (!dump->logits) return;
    vk_dump_fetch(engine, to, engine->buffers.logits, count * sizeof *to);
    if (dump->on_logits) dump->on_logits(dump->with, step, to);
}

void vk_dump_block(vp_engine *engine, const vp_request *request, int slot, int row_count) {
    size_t d = (size_t)engine->config.d_model, rows = (size_t)row_count;
    float *out = request->dump->block_mean ? request->dump->block_mean + (size_t)slot * d : NULL;
    if (request->dump->block_last)
        vk_dump_fetch(engine, request->dump->block_last + (size_t)slot * d, engine->buffers.x + (rows - 1) * d,
                      d * sizeof(float));
    if (!out) return;
    enum { COLUMNS = 256 }; /* one strip at a time, so that a dump needs no extra memory */
    for (size_t from = 0; from < d; from += COLUMNS) {
        size_t count = d - from < (size_t)COLUMNS ? d - from : (size_t)COLUMNS;
        double sum[COLUMNS] = {0.0};
        float row[COLUMNS] = {0.0f};
        for (size_t row_index = 0; row_index < rows; row_index++) {
            vk_dump_fetch(engine, row, engine->buffers.x + row_index * d + from, count * sizeof(float));
            for (size_t i = 0; i < count; i++) sum[i] += (double)row[i];
        }
        for (size_t i = 0; i < count; i++) out[from + i] = (float)(sum[i] / (double)rows);
    }
}

void vk_end_count(vp_engine *engine, vp_stage_times *times, vp_stage stage) {
    const vk_work *now = &engine->queue->work;
    times->launches[stage] += now->launches - engine->counted.launches;
    times->flops[stage] += now->flops - engine->counted.flops;
    times->bytes[stage] += now->bytes - engine->counted.bytes;
    times->ran[stage] = 1;
    engine->counted = *now;
}

void vk_end_stage(vp_engine *engine, vp_reply *reply, vp_stage stage) {
    int64_t now_ns;
    const int ended = reply->times.ran[stage];
    vk_segment *segment = &engine->segments[engine->segment_count];
    vk_end_count(engine, &reply->times, stage);
    if (engine->queue->dry) return;
    segment->stage = stage;
    segment->slot = ended ? (int)vk_spare_marks(engine) + engine->segment_count : (int)stage + 1;
    engine->segment_count++;
    now_ns =
        engine->backend->mark(engine->queue, segment->slot, stage == VP_STAGE_SAMPLE ? engine->buffers.token : NULL);
    reply->times.wall_ns[stage] += now_ns - engine->since_ns;
    engine->since_ns = now_ns;
    for (; engine->queue->log && engine->logged < engine->queue->log_count
           && engine->logged < engine->queue->log_capacity;
         engine->logged++)
        engine->queue->log[engine->logged].stage = stage;
}
