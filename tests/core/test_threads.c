/* test_threads.c: the manual's promises to programs with threads. Several threads, concurrent from their first calls, run an engine each, read one tokenizer,
 * one checkpoint and one parsed JSON text, and call reentrant functions; each must get the results of a single thread. `make test-threads` builds it with
 * ThreadSanitizer, which reports every race. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"
#include "vlmprof_tokenizer.h"
#include "support/check.h"
#include "support/folder.h"

#include <pthread.h>

enum { THREADS = 3, ENGINES = 2, ROUNDS = 2, NEW = 4, VIEWS = 2, TEXT_MAX = 64, VALUES = 2 * 577 * 588 };
static const char MODEL[] = "tests/golden/models/tiny-a", TEXT[] = "What is in the picture? Caf\xc3\xa9!";

/* created by the main thread, then only read */
static vp_model_config config;
static vp_special_ids ids_of_model;
static vp_tokenizer *tokenizer;
static vp_checkpoint *checkpoint;
static vp_json json;
static char *json_text, *image_file;
static size_t json_bytes, image_bytes;

/* inputs and results of a thread */
struct worker {
    int number, failed;
    const char *failed_at;
    vp_layout layout;
    int32_t ids[1024], index[VIEWS * 144], blocks[8], tokens[NEW];
    int64_t step_ns[NEW];
    float *pixels, *masks;
    char text[256];
    uint64_t sum; /* checksum of the results of the header's functions */
};
static int note(struct worker *worker, int good, const char *what) {
    if (!good && !worker->failed++) worker->failed_at = what;
    return good;
}
#define GOOD(worker, condition) note(worker, !!(condition), #condition)
static void add(struct worker *worker, const void *data, size_t bytes) {
    const unsigned char *octets = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) worker->sum = (worker->sum ^ octets[i]) * UINT64_C(1099511628211);
}
/* ---- the header: pixels, tokens, JSON, scores */
static int32_t fill_inputs(struct worker *worker) {
    vp_tile_options options = vp_tile_options_default();
    vp_image image = {0, 0, NULL};
    size_t text_count = 0, needed;
    int32_t count = 0;
    options.max_crops = 1;
    if (!GOOD(worker, vp_image_decode((const uint8_t *)image_file, image_bytes, &image, NULL) == VP_OK)) return 0;
    GOOD(worker, vp_layout_compute(&config.geometry, &options, image.width_px, image.height_px, &worker->layout, NULL) == VP_OK);
    GOOD(worker, worker->layout.views == VIEWS);
    needed = vp_preprocess_scratch_bytes(&config.geometry, &worker->layout);
    void *scratch = malloc(needed);
    GOOD(worker, vp_preprocess(&config.geometry, &worker->layout, image.rgb, worker->pixels, worker->masks, scratch, needed) == VP_OK);
    free(scratch);
    vp_image_free(&image);
    worker->ids[count++] = ids_of_model.bos;
    GOOD(worker, vp_tokens_image_ids(&config.geometry, &worker->layout, &ids_of_model, worker->ids + 1, 900) == VP_OK);
    count += worker->layout.image_tokens;
    GOOD(worker, vp_tokens_index_map(&config.geometry, &worker->layout, 1, worker->index, VIEWS * 144) == VP_OK);
    GOOD(worker, vp_tokenizer_encode(tokenizer, TEXT, strlen(TEXT), worker->ids + count, TEXT_MAX, &text_count) == VP_OK);
    add(worker, worker->ids, ((size_t)count + text_count) * sizeof *worker->ids);
    add(worker, worker->index, sizeof worker->index);
    return count + (int32_t)text_count;
}
static void read_shared(struct worker *worker) {
    static const char *const references[] = {"a cat", "cats", "caf\xc3\xa9"};
    vp_tensor_spec spec;
    vp_tensor tensor;
    char scratch[4096];
    double score = 0;
    for (int64_t i = 0; i < vp_model_tensor_count(&config); i++) {
        if (!GOOD(worker, vp_model_tensor(&config, i, &spec) == VP_OK)) break;
        if (!GOOD(worker, vp_checkpoint_find(checkpoint, spec.name, &tensor) == VP_OK)) break;
        add(worker, tensor.data, 16);
    }
    for (uint32_t node = vp_json_get(&json, 0, "model"), i = 0; i < 20; i++) {
        uint32_t vocabulary = vp_json_get(&json, node, "vocab");
        add(worker, &vocabulary, sizeof vocabulary);
    }
    GOOD(worker, vp_score_vqa_seed("A cat.", references, 3, scratch, sizeof scratch, &score) == VP_OK);
    add(worker, &score, sizeof score);
    GOOD(worker, vp_score_anls("CAF\xc3\x89", references, 3, scratch, sizeof scratch, &score) == VP_OK);
    add(worker, &score, sizeof score);
}
/* ---- an engine for each thread */
static void run_engine(struct worker *worker, int32_t count) {
    vp_engine_options options = vp_engine_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    vp_engine *engine = NULL;
    vp_request request = {0};
    vp_device_info device;
    size_t bytes = 0;
    int32_t devices = 0;
    vp_device_count(&devices, NULL);
    if (devices) vp_device_describe(0, &device, NULL);
    options.config = &config;
    options.checkpoint = checkpoint;
    options.device = "cpu";
    options.threads = 2;
    options.max_sequence = count + NEW;
    options.max_views = VIEWS;
    if (!note(worker, vp_engine_open(&options, &engine, &error) == VP_OK, "vp_engine_open")) return;
    request.input_ids = worker->ids;
    request.input_count = count;
    request.pixels = worker->pixels;
    request.image_masks = worker->masks;
    request.image_input_idx = worker->index;
    request.views = VIEWS;
    request.top_k = 2;
    for (int32_t i = 0; i < config.block_count; i++) worker->blocks[i] = i;
    request.active_blocks = worker->blocks;
    request.active_block_count = config.block_count;
    request.max_new_tokens = NEW;
    request.ignore_eos = 1;
    request.eos_id = ids_of_model.eos;
    request.timing = VP_TIMING_STAGE;
    vp_reply reply = {.tokens = worker->tokens, .step_ns = worker->step_ns};
    GOOD(worker, vp_engine_run(engine, &request, &reply, &error) == VP_OK);
    GOOD(worker, reply.token_count == NEW && vp_engine_device(engine)[0] && vp_engine_gemm(engine, 1)[0]);
    add(worker, worker->tokens, sizeof worker->tokens);
    GOOD(worker, vp_tokenizer_decode(tokenizer, worker->tokens, NEW, 0, worker->text, sizeof worker->text, &bytes) == VP_OK);
    add(worker, worker->text, bytes);
    vp_engine_close(engine);
}
static void *work(void *user) {
    struct worker *worker = (struct worker *)user;
    for (int round = 0; round < ROUNDS; round++) {
        int32_t count = fill_inputs(worker);
        read_shared(worker);
        if (count && worker->number < ENGINES) run_engine(worker, count);
    }
    return NULL;
}
static struct worker *worker_new(int number) {
    struct worker *worker = (struct worker *)calloc(1, sizeof *worker);
    worker->number = number;
    worker->pixels = (float *)calloc(VALUES, sizeof *worker->pixels);
    worker->masks = (float *)calloc(VALUES, sizeof *worker->masks);
    worker->sum = UINT64_C(14695981039346656037);
    return worker;
}
static void worker_free(struct worker *worker) {
    FREE_ALL(worker->pixels, worker->masks, worker);
}
static void load_shared(void) {
    char *text = NULL, *config_text = NULL, path[128];
    size_t bytes = 0, config_bytes = 0, needed = 0;
    vp_json_node *nodes;
    snprintf(path, sizeof path, "%s/config.json", MODEL);
    CHECK_INT(vp_file_read(path, 1 << 20, &config_text, &config_bytes, NULL), VP_OK);
    CHECK_INT(vp_model_config_parse(config_text, config_bytes, NULL, 0, &config, NULL), VP_OK);
    free(config_text);
    snprintf(path, sizeof path, "%s/tokenizer.json", MODEL);
    CHECK_INT(vp_file_read(path, 1 << 24, &text, &bytes, NULL), VP_OK);
    CHECK_INT(vp_tokenizer_load(text, bytes, &tokenizer, NULL), VP_OK);
    CHECK_INT(vp_tokenizer_special_ids(tokenizer, &ids_of_model, NULL), VP_OK);
    CHECK_INT(vp_checkpoint_open(MODEL, &config, &checkpoint, NULL), VP_OK);
    json_text = text;
    json_bytes = bytes;
    vp_json_parse(json_text, json_bytes, NULL, 0, NULL, &needed, NULL);
    nodes = (vp_json_node *)calloc(needed, sizeof *nodes);
    CHECK_INT(vp_json_parse(json_text, json_bytes, nodes, needed, &json, NULL, NULL), VP_OK);
    CHECK_INT(vp_file_read("tests/golden/images/img-200x150.png", 1 << 20, &image_file, &image_bytes, NULL), VP_OK);
}
int main(void) {
    struct worker *workers[THREADS], *alone[THREADS];
    pthread_t threads[THREADS];
    check_case("%d threads, %d of them with an engine, each get the results of a single thread", THREADS, ENGINES);
    load_shared();
    if (!check_state.case_failed) {
        for (int i = 0; i < THREADS; i++) workers[i] = worker_new(i);
        for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_create(&threads[i], NULL, work, workers[i]), 0);
        for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
        for (int i = 0; i < THREADS; i++) {
            alone[i] = worker_new(i);
            work(alone[i]);
            check_note(!workers[i]->failed, __FILE__, __LINE__, "thread %d: %s", i, workers[i]->failed_at);
            check_note(!alone[i]->failed, __FILE__, __LINE__, "alone: %s", alone[i]->failed_at);
            CHECK(workers[i]->sum == alone[i]->sum);
            worker_free(workers[i]);
            worker_free(alone[i]);
        }
    }
    vp_checkpoint_close(checkpoint);
    vp_tokenizer_free(tokenizer);
    FREE_ALL((void *)json.nodes, json_text, image_file);
    return check_done("test_threads");
}
