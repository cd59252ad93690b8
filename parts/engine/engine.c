/* engine.c - opens, describes and closes an engine */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

VP_API vp_engine_options vp_engine_options_default(void) {
    vp_engine_options options = {0};
    options.seed = 42;
    options.device = "auto";
    return options;
}

VP_API const char *vp_engine_gemm(const vp_engine *engine, int32_t rows) {
    return engine->backend->gemm(engine->queue, engine->wide, rows);
}

VP_API const char *vp_engine_device(const vp_engine *engine) { return engine->device; }

VP_API const char *vp_engine_launch_timer(const vp_engine *engine) {
    return engine->backend->launch_timer(engine->queue);
}

VP_API const char *vp_engine_device_note(const vp_engine *engine) {
    return engine->device_note[0] ? engine->device_note : engine->queue->note;
}

VP_API int vp_engine_broken(const vp_engine *engine) {
    return engine->queue->error != 0; /* vk_recover has cleared all other errors */
}

VP_API vp_opening vp_engine_opening(const vp_engine *engine) { return engine->opening; }

VP_API uint64_t vp_engine_bytes(const vp_engine *engine) { return engine->memory_bytes; }

VP_API uint64_t vp_engine_free_bytes(const vp_engine *engine) { return engine->backend->free_bytes(engine->queue); }

static vp_result vk_check_options(const vp_engine_options *options, vp_error *error) {
    const vk_precision bits = vk_precision_of(options->weights, options->head_weights, options->vision_weights);
    const vp_model_config *config = options->config;
    if (!config) return vp_error_set(error, VP_ERR_RANGE, -1, "config", "an engine needs a model config");
    if (options->max_sequence < 1 || options->max_views < 0 || options->threads < 0
        || options->threads > VK_THREADS_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "engine options",
                            "max_sequence must be positive, max_views must not be negative, threads must be 0..4096");
    if (options->weights == VP_WEIGHTS_FP32 && (bits.head || bits.vision))
        return vp_error_set(error, VP_ERR_RANGE, -1, bits.head ? "head_weights" : "vision_weights",
                            "fp32 arithmetic cannot be used with integer weights");
    return vk_check_config(config, error);
}

static void vk_append(vp_error *error, const char *text) {
    size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, "%s", text);
}

VP_API const char *vp_activations_name(vp_activations kind) {
    static const char *const names[VP_ACTIVATIONS_COUNT] = {"auto", "bf16", "int16", "int8"};
    return (unsigned)kind < VP_ACTIVATIONS_COUNT ? names[kind] : "unknown";
}
VP_API vp_result vp_engine_activations(const vp_engine *engine, vp_activations wanted, vp_activations *used,
                                       vp_error *error) {
    const int has_integers = engine->bits.blocks || engine->bits.vision;
    const uint32_t kinds = (uint32_t)!engine->wide << VP_ACTIVATIONS_BF16 | (has_integers ? engine->queue->inputs : 0);
    int kind = (int)wanted;
    if (!kind && has_integers) kind = engine->queue->usual ? engine->queue->usual : VP_ACTIVATIONS_BF16;
    if (!kind || ((unsigned)kind < VP_ACTIVATIONS_COUNT && kinds >> kind & 1)) {
        *used = (vp_activations)kind;
        return VP_OK;
    }
    vp_failf(error, VP_ERR_RANGE, -1, "activations", "%s cannot be used: %s; expected auto",
             vp_activations_name(wanted),
             engine->wide                 ? "fp32 arithmetic has fp32 inputs"
             : !has_integers              ? "neither weights nor vision_weights are int8 or int4"
             : engine->backend->row_major ? "a GPU multiplies integer weights by bf16 inputs"
                                          : "the processor, or the kernel of --gemm, cannot do that for many rows");
    for (kind = VP_ACTIVATIONS_BF16; error && kind < VP_ACTIVATIONS_COUNT; kind++) {
        if (!(kinds >> kind & 1)) continue;
        vk_append(error, ", ");
        vk_append(error, vp_activations_name((vp_activations)kind));
    }
    return VP_ERR_RANGE;
}

void vk_recover(vp_engine *engine) {
    if (engine->queue->error) engine->backend->recover(engine->queue);
}

/* chooses the batch sizes */
static void vk_choose_batches(vp_engine *engine) {
    int experts = engine->config.expert_count, most = engine->backend->view_batch;
    engine->view_batch = engine->max_views < most || engine->config.vit_native ? engine->max_views : most;
    /* tiles need less memory per row, and read the weights of experts once for all rows */
    if (!experts) { /* a dense MLP reads its weights once for this many rows */
        engine->moe_rows = engine->max_sequence < 1024 ? engine->max_sequence : 1024;
        return;
    }
    engine->moe_rows = (int)vk_max(vk_has_tiles(engine) ? 32768 : 16384, (size_t)experts);
    if ((int64_t)engine->max_sequence * experts < engine->moe_rows) engine->moe_rows = engine->max_sequence * experts;
}

/* loads or draws the weights, then rounds the biases for backends with rounds_bias */
static vp_result vk_load(vp_engine *engine, const vp_engine_options *options, vp_error *error) {
    vk_loader loader = {0};
    loader.backend = engine->backend;
    loader.queue = engine->queue;
    loader.checkpoint = options->checkpoint;
    loader.seed = options->seed;
    loader.wide = engine->wide;
    loader.threads = vk_host_threads(options->threads);
    loader.progress = options->progress;
    loader.progress_user = options->progress_user;
    loader.error = error;
    loader.total = (int64_t)engine->weights_bytes;
    vp_result result = vk_load_model(&loader, &engine->model, &engine->config);
    for (int i = 0; result == VP_OK && vk_rounded(engine, i); i++) {
        const vk_linear *linear = vk_rounded(engine, i);
        engine->backend->kernels.convert(engine->queue, linear->bias_bf16, linear->bias, 1, linear->n, linear->n, 0);
    }
    return result;
}

/* finds the backend for the device in the options, and checks the model and its weights against it */
static vp_result vk_open_backend(vp_engine *engine, const vp_engine_options *options, vp_error *error) {
    const char *device = options->device ? options->device : "auto";
    vp_activations used;
    vk_setup setup = {0};
    setup.threads = vk_host_threads(options->threads);
    setup.wide = engine->wide;
    setup.counts_only = options->counts_only;
    setup.gpu = options->gpu;
    setup.gemm = options->gemm && strcmp(options->gemm, "auto") ? options->gemm : NULL;
    vp_result result = vk_choose_device(engine, device, &setup.device, error);
    if (result == VP_OK && setup.gpu && !engine->backend->row_major) {
        const size_t bytes = strlen(engine->device_note);
        snprintf(engine->device_note + bytes, sizeof engine->device_note - bytes, "%s--gpu has no effect on a CPU",
                 bytes ? "; " : "");
    }
    if (result == VP_OK && setup.gpu & VP_GPU_LIBRARY && engine->backend->by_cublas)
        engine->backend = engine->backend->by_cublas;
    if (result == VP_OK && engine->backend->decode && engine->config.d_model % 4)
        result = vp_failf(error, VP_ERR_UNSUPPORTED, -1, "hidden_size",
                          "%d is not a multiple of 4, and the GPU's decode steps read four values at once: run this "
                          "model with --device cpu", (int)engine->config.d_model);
    if (result == VP_OK) result = vk_model_new(&engine->model, &engine->config, error);
    if (result != VP_OK) return result;
    result = engine->backend->open(&setup, &engine->queue, error);
    if (result == VP_ERR_DEVICE && error && strcmp(device, "auto") == 0)
        vk_append(error, "; --device cpu does not need it");
    for (int kind = 0; result == VP_OK && kind < 32; kind++)
        if (options->activations >> kind & 1)
            result = vp_engine_activations(engine, (vp_activations)kind, &used, error);
    return result;
}

/* Makes a zeroed engine on its device, without memory yet. After a failure the caller closes *opened. */
static vp_result vk_begin(const vp_engine_options *options, vp_engine *opened, vp_error *error) {
    const vp_model_config *config = options->config;
    opened->config = *config;
    opened->wide = options->weights == VP_WEIGHTS_FP32;
    opened->bits = vk_precision_of(options->weights, options->head_weights, options->vision_weights);
    opened->max_sequence = options->max_sequence;
    opened->max_views = options->max_views;
    opened->prunes = options->prunes && options->max_views && config->vit_block_count;
    for (int l = 0; l < config->vit_layer_count; l++)
        opened->vit_layer_at[l] =
            config->vit_layers[l] < 0 ? config->vit_block_count + config->vit_layers[l] : config->vit_layers[l];
    vp_result result = vk_open_backend(opened, options, error);
    if (result != VP_OK) return result;
    opened->backend->describe(opened->queue, opened->device, sizeof opened->device);
    vk_choose_batches(opened);
    return VP_OK;
}

VP_API vp_result vp_engine_open(const vp_engine_options *options, vp_engine **engine, vp_error *error) {
    vp_result result = vk_check_options(options, error);
    vp_engine *opened;
    int64_t at[4] = {vp_clock_ns()}; /* start; device ready; memory ready; weights ready */
    if (result != VP_OK) return result;
    opened = calloc(1, sizeof *opened);
    if (!opened) return vp_error_set(error, VP_ERR_MEMORY, -1, "engine", "not enough memory");
    result = vk_begin(options, opened, error);
    if (options->counts_only) {
        if (result == VP_OK) result = vk_lay_out(opened, error);
        if (result != VP_OK && opened->queue) vk_recover(opened);
        if (result == VP_OK) *engine = opened;
        else vp_engine_close(opened);
        return result;
    }
    at[1] = vp_clock_ns();
    if (result == VP_OK) result = vk_allocate(opened, error);
    at[2] = vp_clock_ns();
    if (result == VP_OK) result = vk_load(opened, options, error);
    if (result == VP_OK) {
        opened->backend->mark(opened->queue, 0, NULL);
        result = opened->backend->wait(opened->queue, 0, error);
    }
    at[3] = vp_clock_ns();
    opened->opening.device_ns = at[1] - at[0];
    opened->opening.memory_ns = at[2] - at[1];
    opened->opening.weights_ns = at[3] - at[2];
    if (result != VP_OK) {
        if (opened->queue) vk_recover(opened);
        vp_engine_close(opened);
        return result;
    }
    *engine = opened;
    return VP_OK;
}

VP_API void vp_engine_settle(vp_engine *engine) {
    if (engine->counted_space_bytes) return;
    engine->queue->timing = VP_TIMING_STAGE;
    engine->backend->mark(engine->queue, 0, NULL);
    (void)engine->backend->wait(engine->queue, 0, NULL);
    vk_recover(engine); /* The failed work was optional. If the device is broken, the next request fails. */
}

/* the median of several rounds, so that a round interrupted by another process does not count */
VP_API int64_t vp_engine_stamp_cost_ns(vp_engine *engine) {
    enum { ROUNDS = 5, STAMPS = 32 };
    const vk_backend *to = engine->backend;
    vk_queue *queue = engine->queue;
    int64_t took[ROUNDS];
    vp_engine_settle(engine);
    for (int round = 0; round < ROUNDS && !queue->error; round++) {
        int64_t start = vp_clock_ns(), at;
        for (int i = 0; i < STAMPS; i++) to->mark(queue, i & 1, NULL);
        (void)to->wait(queue, (STAMPS - 1) & 1, NULL);
        for (int i = 0; i < STAMPS; i++) (void)to->between(queue, 0, 1);
        at = vp_clock_ns() - start;
        int place = round;
        for (; place > 0 && took[place - 1] > at; place--) took[place] = took[place - 1];
        took[place] = at;
    }
    vk_recover(engine);
    return queue->error ? -1 : (took[ROUNDS / 2] + STAMPS / 2) / STAMPS;
}

VP_API void vp_engine_close(vp_engine *engine) {
    if (!engine) return;
    if (engine->queue) engine->backend->close(engine->queue);
    vk_free_counted_space(engine);
    vk_model_free(&engine->model);
    free(engine->jobs);
    free(engine->counts);
    free(engine->host_places);
    free(engine->pictures);
    free(engine->wholes);
    free(engine->windows);
    free(engine->log);
    free(engine->segments);
    free(engine->pruning.host.memory);
    free(engine);
}
