/* test_several.c - several images a prompt, for the models that accept them, against transformers (tests/golden/several): the
 * prompt's text and ids, positions in three dimensions, features, logits and greedy tokens; image first, and between texts. Our own preprocessing. Also the inputs that
 * the engine and the rules reject. With TEST_DEVICE (a device's name): the same on that device. ONLY runs just the models whose name contains it.
 * links: engine and program */
#include "engine/engine_internal.h"
#include "measure/input.h"
#include "model/image.h"

#include "support/check.h"
#include "support/json_file.h"

#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif
enum { STEPS = 6, IMAGES = 3, EACH = 8 }; /* EACH: the golden has one of every EACH rows of features */
static const char *const MODELS[] = { "smolvlm", "internvl", "qwen2_5_vl", "qwen3_vl", "gemma3" }, *const CASES[] = { "two", "between" };

typedef struct several {
    struct model model;
    struct sample sample;
    vp_image images[IMAGES];
    struct image_px sizes[IMAGES];
    struct cuts cuts;
    size_t places[IMAGES];
    char *question;
    json_file info;
    char folder[200];
} several;

static const char *case_file(const several *s, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return check_golden(path);
}
static uint32_t member(const several *s, const char *key) { return vp_json_get(&s->info.json, 0, key); }
static char *text_at(const several *s, uint32_t node) { return node_text(&s->info.json, node); }
/* the question in "content", and the positions of its images */
static void read_case(several *s) {
    const vp_json *json = &s->info.json;
    const uint32_t content = member(s, "content"), names = member(s, "images");
    struct text_buffer question = { NULL, 0, 0 };
    int count = 0;
    for (uint32_t i = content + 1; i < json->nodes[content].end; i = json->nodes[i].end) {
        char *text = text_at(s, i);
        if (text) text_add_string(&question, text);
        else s->places[count++] = question.bytes;
        free(text);
    }
    s->question = question.data;
    count = 0;
    for (uint32_t i = names + 1; i < json->nodes[names].end; i = json->nodes[i].end) {
        char *name = text_at(s, i), path[256], reason[300] = "";
        snprintf(path, sizeof path, "tests/golden/othermodels/images/%s", name);
        if (!CHECK_INT(load_image(path, &s->images[count], reason, sizeof reason), 0)) printf("%s\n", reason);
        s->sizes[count] = (struct image_px){ s->images[count].width_px, s->images[count].height_px };
        text_list_copy(&s->sample.images, path);
        count++;
        free(name);
    }
}
static int open_case(const char *name, const char *test, several *s) {
    static char folder[2][200];
    const struct image_size size = { NULL, 0, NULL, 0, NULL };
    vp_error error = { VP_OK, -1, "", "" };
    memset(s, 0, sizeof *s);
    snprintf(folder[0], sizeof folder[0], "othermodels/%s/checkpoint/model.safetensors", name);
    if (!check_golden(folder[0])) { check_skip(name, "its weights are not here"); return 0; }
    snprintf(folder[1], sizeof folder[1], "%s", check_golden(folder[0]));
    *strrchr(folder[1], '/') = 0;
    s->model.name = folder[1];
    snprintf(s->folder, sizeof s->folder, "several/%s/%s", name, test);
    if (!CHECK(json_open(case_file(s, "case.json"), &s->info)) || !CHECK_INT(model_load_folder(&s->model), 0) || !CHECK_INT(checkpoint_open(&s->model), 0))
        return 0;
    read_case(s);
    return CHECK_INT(model_cut(&s->model, &size, s->sizes, (int32_t)s->sample.images.count, &s->cuts, &error), VP_OK);
}
static void close_case(several *s) {
    for (int i = 0; i < IMAGES; i++) if (s->images[i].rgb) vp_image_free(&s->images[i]);
    cuts_free(&s->cuts);
    free(s->question);
    json_close(&s->info);
    sample_free(&s->sample);
    model_free(&s->model);
}
static void check_ints(const several *s, uint32_t list, const int32_t *got, int32_t count) {
    int32_t at = 0;
    CHECK_INT((int64_t)s->info.json.nodes[list].count, count);
    for (uint32_t i = list + 1; i < s->info.json.nodes[list].end && at < count; i = s->info.json.nodes[i].end) {
        int64_t want = -1;
        vp_json_to_int(&s->info.json, i, &want);
        CHECK_INT(got[at++], want);
    }
}
/* The prompt's text as in the template, and its ids. Gemma 3 has the text's own <bos> and the tokenizer's. */
static void check_prompt(several *s) {
    char *want = text_at(s, member(s, "text"));
    s->sample.prompt = s->model.rules->prompt(&s->model, NULL, s->question, s->places, s->cuts.count);
    CHECK_TEXT(s->sample.prompt, want);
    if (CHECK_INT(tokenize_sample(&s->model, &s->cuts, &s->sample), 0))
        check_ints(s, member(s, "input_ids"), s->sample.tokens.ids, s->sample.tokens.count + s->cuts.whole.image_tokens);
    free(want);
}
static struct pass_input input_of(const several *s, int32_t *blocks) {
    struct pass_input input = {0};
    for (int32_t b = 0; b < s->model.config.block_count; b++) blocks[b] = b;
    input.images = s->images; input.cuts = &s->cuts;
    input.tokens = s->sample.tokens;
    input.engine.top_k = s->model.config.top_k; input.engine.active_blocks = blocks; input.engine.active_block_count = s->model.config.block_count;
    input.engine.max_new_tokens = STEPS; input.engine.ignore_eos = 1; input.engine.timing = VP_TIMING_OFF;
    return input;
}
static void check_features(const several *s, const vp_dump *dump) {
    const int64_t d = s->model.config.d_model, count = s->cuts.whole.feature_tokens, rows = (count + EACH - 1) / EACH,
                  levels = 1 + s->model.config.deepstack_count;
    float *kept = (float *)malloc((size_t)(levels * rows * d) * sizeof *kept);
    check_array a;
    for (int64_t level = 0; level < levels; level++)
        for (int64_t row = 0; row < rows; row++)
            memcpy(kept + (level * rows + row) * d,
                   (level ? dump->deepstack_features + ((level - 1) * count + row * EACH) * d : dump->image_features + row * EACH * d), (size_t)d * sizeof *kept);
    if (CHECK(check_npy(case_file(s, "image_features.npy"), &a)) && CHECK_INT(a.count, levels * rows * d))
        CHECK_NEAR(relative(kept, &a, 0, a.count), 0, 5e-6);
    check_free(&a);
    free(kept);
}
/* M-RoPE: time, row and column of each position of the prompt */
static void check_positions(const several *s, const struct session *session) {
    const uint32_t axes = member(s, "positions");
    int32_t count = s->sample.tokens.count + s->cuts.whole.image_tokens, *positions;
    vp_request request = {0};
    if (axes == VP_JSON_NONE) { CHECK(!vk_has_mrope(&s->model.config)); return; }
    request.views = s->cuts.whole.views; request.images = s->cuts.views; request.image_count = s->cuts.count;
    request.image_input_idx = (const int32_t *)session->inputs.index.data;
    positions = (int32_t *)malloc(3 * ((size_t)count + 1) * sizeof *positions);
    vk_fill_positions(&request, positions, (size_t)count + 1, count + 1);
    for (uint32_t i = axes + 1, axis = 0; axis < 3; i = s->info.json.nodes[i].end, axis++) check_ints(s, i, positions + axis * ((size_t)count + 1), count);
    int64_t delta = 0;
    vp_json_to_int(&s->info.json, member(s, "rope_delta"), &delta);
    CHECK_INT(positions[count], count + delta);
    free(positions);
}
static void run_case(several *s, struct session *session) {
    const vp_model_config *config = &s->model.config;
    const int64_t n = config->embedding_size, features = s->cuts.whole.feature_tokens;
    int32_t blocks[64];
    struct pass_input input = input_of(s, blocks);
    struct pass_result *run = runs_make(1, STEPS);
    vp_error error = { VP_OK, -1, "", "" };
    check_array a;
    vp_dump dump = {.logits = (float *)malloc((size_t)(STEPS * n) * sizeof(float)),
                    .image_features = (float *)malloc((size_t)(features * config->d_model) * sizeof(float)),
                    .deepstack_features = (float *)malloc((size_t)(config->deepstack_count * features * config->d_model + 1) * sizeof(float))};
    input.engine.dump = &dump;
    if (!CHECK_INT(request_run(session, &input, run, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    check_positions(s, session);
    check_features(s, &dump);
    if (CHECK(check_npy(case_file(s, "logits.npy"), &a)) && CHECK_INT(a.count, 2 * n)) {
        CHECK_NEAR(relative(dump.logits, &a, 0, n), 0, 2e-5);
        CHECK_NEAR(relative(dump.logits + (STEPS - 1) * n, &a, n, n), 0, 2e-5);
    }
    check_free(&a);
    check_ints(s, member(s, "tokens"), run->reply.tokens, run->reply.token_count);
    input.engine.dump = NULL; /* without a dump, a GPU replays its recorded steps: the tokens must not change */
    if (CHECK_INT(request_run(session, &input, run, &error), VP_OK)) check_ints(s, member(s, "tokens"), run->reply.tokens, run->reply.token_count);
    free(dump.logits); free(dump.image_features); free(dump.deepstack_features);
    runs_free(run, 1);
}
/* the order of images matters: with the second image in place of the first, the logits differ */
static void run_swapped(several *s, struct session *session) {
    int32_t blocks[64];
    struct pass_input input = input_of(s, blocks);
    struct pass_result *run = runs_make(1, STEPS);
    vp_error error = { VP_OK, -1, "", "" };
    check_array a;
    const vp_image first = s->images[0];
    const vp_layout cut = s->cuts.each[0];
    const vp_image_views views = s->cuts.views[0];
    if (s->cuts.count != 2) { runs_free(run, 1); return; }
    vp_dump dump = {.logits = (float *)malloc((size_t)(STEPS * s->model.config.embedding_size) * sizeof(float))};
    input.engine.dump = &dump;
    s->images[0] = s->images[1]; s->images[1] = first;
    s->cuts.each[0] = s->cuts.each[1]; s->cuts.each[1] = cut;
    s->cuts.views[0] = s->cuts.views[1]; s->cuts.views[1] = views;
    if (CHECK_INT(request_run(session, &input, run, &error), VP_OK) && CHECK(check_npy(case_file(s, "logits.npy"), &a))) {
        CHECK(relative(dump.logits, &a, 0, s->model.config.embedding_size) > 1e-3);
        check_free(&a);
    }
    free(dump.logits);
    runs_free(run, 1);
}
/* inputs that do not fit, and pruning, are rejected before anything runs */
static void check_rejections(const several *s, vp_engine *engine) {
    const int32_t ids[4] = { 5, 6, 7, 8 };
    int32_t block = 0;
    vp_image_views views[3] = { { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 } };
    vp_prune prune = vp_prune_default(VP_PRUNE_STRIDE);
    vp_request r = {0};
    vp_pruned pruned;
    vp_stage_times work;
    vp_error error = { VP_OK, -1, "", "" };
    r.input_ids = ids; r.input_count = 4; r.views = 2; r.images = views; r.image_count = 2;
    r.top_k = s->model.config.top_k; r.active_blocks = &block; r.active_block_count = 1; r.max_new_tokens = 1;
    r.span_ends = (const int32_t[]){ 1, 2, 3, 4 };
    CHECK_INT(vp_engine_count(engine, &r, &work, &error), VP_OK);
    r.views = 1;
    CHECK_INT(vp_engine_count(engine, &r, &work, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "the views of all images must sum to `views`");
    r.views = 2; r.image_count = 3;
    CHECK_INT(vp_engine_count(engine, &r, &work, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, s->model.config.vit_native ? "request grid" : "request images");
    r.image_count = 2; r.images = NULL;
    CHECK_INT(vp_engine_count(engine, &r, &work, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "images must have image_count entries");
    r.images = views; r.prune = &prune; prune.keep = 1; prune.image_tokens = 2;
    CHECK_INT(vp_prune_request(&s->model.config, &r, VP_WEIGHTS_FP32, &pruned, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "one image per prompt, and this prompt has several"));
}
static void run_model(const char *name) {
    for (int i = 0; i < 2; i++) {
        vp_engine_options options = vp_engine_options_default();
        vp_error error = { VP_OK, -1, "", "" };
        several s;
        check_case("%s: %s", name, CASES[i]);
        if (!open_case(name, CASES[i], &s)) continue;
        check_prompt(&s);
        struct session session = {.model = &s.model, .energy.update_ns = -1};
        options.config = &s.model.config; options.checkpoint = s.model.checkpoint; options.device = TEST_DEVICE; options.weights = VP_WEIGHTS_FP32;
        options.max_sequence = 512; options.max_views = s.cuts.whole.views;
        if (CHECK_INT(vp_engine_open(&options, &session.engine, &error), VP_OK)) {
            run_case(&s, &session);
            run_swapped(&s, &session);
            check_rejections(&s, session.engine);
        } else printf("%s: %s\n", error.where, error.text);
        session_free(&session);
        close_case(&s);
    }
}
/* models that take one image reject several */
static void test_one_image(void) {
    size_t needed;
    const size_t places[] = { 0, 3 }, back[] = { 3, 1 }, beyond[] = { 0, 9 };
    check_case("models that take one image, and invalid image positions");
    CHECK(!vp_processor_one_image(VP_PROCESSOR_QWEN3_VL) && !vp_processor_one_image(VP_PROCESSOR_GEMMA3));
    CHECK(strstr(vp_processor_one_image(VP_PROCESSOR_LLAVA), "one image per conversation"));
    CHECK(vp_processor_one_image(VP_PROCESSOR_MOLMO2) && vp_processor_one_image(VP_PROCESSOR_PLAIN));
    CHECK(strstr(MOLMO_RULES.one_image(NULL), "only one image per prompt"));
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_LLAVA, "What?", NULL, 2, NULL, 0, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_LLAVA, "What?", NULL, 1, NULL, 0, &needed), VP_ERR_CAPACITY);
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_INTERNVL, "What?", places, 2, NULL, 0, &needed), VP_ERR_CAPACITY);
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_INTERNVL, "What?", back, 2, NULL, 0, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_INTERNVL, "What?", beyond, 2, NULL, 0, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_processor_prompt(VP_PROCESSOR_INTERNVL, "What?", NULL, -1, NULL, 0, &needed), VP_ERR_RANGE);
}
int main(void) {
    const char *only = getenv("ONLY");
    test_one_image();
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) if (!only || strstr(MODELS[i], only)) run_model(MODELS[i]);
    return check_done("test_several");
}
