/* test_request.c: one timed pass of the small trained model (samples/tiny/model). The ranges that it opens are closed on every exit path, and the same session runs the
 * next pass. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "measure/input.h"

enum { NEW_TOKENS = 4, RANGES = 16, IMAGE_PX = 64 };

static struct model model;
static struct session session;
static vp_ranges ranges;
static vp_range_record records[RANGES];
static int64_t hook_depth; /* depth of ranges that another tool would show as open */

static void hook_push(void *user, const char *name) { (void)user; (void)name; hook_depth++; }
static void hook_pop(void *user) { (void)user; hook_depth--; }
static const vp_range_hooks HOOKS = {hook_push, hook_pop, NULL};

/* ---- a question about a grey picture */
static struct sample sample;
static vp_layout layout;
static struct cuts cuts;
static vp_image_views views;
static uint8_t rgb[IMAGE_PX * IMAGE_PX * 3];
static const vp_image image = {IMAGE_PX, IMAGE_PX, rgb};
static int32_t blocks[64];
static struct pass_result *run;

static struct pass_input good_input(void) {
    struct pass_input input = {0};
    input.images = &image;
    input.cuts = &cuts;
    input.tokens = sample.tokens;
    input.engine.top_k = 1;
    input.engine.active_blocks = blocks;
    input.engine.active_block_count = model.config.block_count;
    input.engine.max_new_tokens = NEW_TOKENS;
    input.engine.ignore_eos = 1;
    input.engine.timing = VP_TIMING_STAGE;
    input.ranges = &ranges;
    return input;
}
static int set_up(void) {
    static char prompt[] = " User: What is it? Assistant:";
    vp_engine_options settings = vp_engine_options_default();
    vp_tile_options tiles = vp_tile_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    check_case("the small model is loaded");
    model.name = "samples/tiny/model";
    sample.prompt = prompt;
    if (!CHECK_INT(model_load_folder(&model), 0) || !CHECK_INT(checkpoint_open(&model), 0)) return 0;
    memset(rgb, 128, sizeof rgb);
    tiles.max_crops = 1;
    if (!CHECK_INT(tokenize_sample(&model, NULL, &sample), 0)
        || !CHECK_INT(vp_layout_compute(&model.config.geometry, &tiles, IMAGE_PX, IMAGE_PX, &layout, &error), VP_OK))
        return 0;
    cuts = (struct cuts){layout, &layout, &views, 1};
    views = (vp_image_views){layout.views, layout.tiling.rows, layout.tiling.cols};
    for (int32_t i = 0; i < model.config.block_count; i++) blocks[i] = i;
    run = runs_make(1, NEW_TOKENS);
    settings.config = &model.config;
    settings.checkpoint = model.checkpoint;
    settings.max_sequence = 1024;
    settings.max_views = layout.views;
    session.model = &model;
    return CHECK_INT(vp_engine_open(&settings, &session.engine, &error), VP_OK) && CHECK_INT(vp_ranges_init(&ranges, records, RANGES, 0, "main", &HOOKS), VP_OK);
}

/* ---- the ranges of one pass */
static void check_nothing_open(void) {
    CHECK_INT(ranges.open, -1);
    CHECK_INT(ranges.dropped_open, 0);
    CHECK_INT(hook_depth, 0);
    for (int64_t i = 0; i < ranges.count; i++)
        check_note(records[i].end_ns >= records[i].begin_ns, __FILE__, __LINE__, "range \"%s\" has no end", records[i].name);
}
/* names: first the range around the pass, then the ranges within it */
static void check_ranges(const char *const *names, int64_t count) {
    check_nothing_open();
    CHECK_INT(ranges.count, count);
    for (int64_t i = 0; i < count && i < ranges.count; i++) {
        CHECK_TEXT(records[i].name, names[i]);
        CHECK_INT(records[i].depth, i > 0);
    }
}
/* Each failure is followed by a good pass: the failure leaves no trace in the session. */
static void check_good_pass(void) {
    static const char *const names[] = {"request", "preprocess", "engine", "detok"};
    struct pass_input input = good_input();
    vp_error error = {VP_OK, -1, "", ""};
    CHECK_INT(vp_ranges_clear(&ranges), VP_OK);
    CHECK_INT(request_run(&session, &input, run, &error), VP_OK);
    check_ranges(names, 4);
    CHECK_INT(run->reply.token_count, NEW_TOKENS);
    CHECK(run->total_ns >= records[0].end_ns - records[0].begin_ns);
    CHECK(run->reply.times.ran[VP_STAGE_PREPROCESS] && run->reply.times.ran[VP_STAGE_DETOK]);
}
static void check_failure(const struct pass_input *input, vp_result want, const char *const *names, int64_t count) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_ranges_init(&ranges, records, RANGES, 0, "main", &HOOKS); /* whatever an earlier failure left open */
    hook_depth = 0;
    CHECK_INT(request_run(&session, input, run, &error), want);
    CHECK_INT(error.code, want);
    check_ranges(names, count);
    /* a full buffer counts the ranges that it cannot record; these are also closed */
    ranges.capacity = 0;
    CHECK_INT(vp_ranges_clear(&ranges), VP_OK);
    CHECK_INT(request_run(&session, input, run, &error), want);
    check_nothing_open();
    ranges.capacity = RANGES;
    check_good_pass();
}

static void test_preprocess_fails(void) {
    static const char *const names[] = {"request", "preprocess"};
    const vp_image no_pixels = {IMAGE_PX, IMAGE_PX, NULL};
    struct pass_input input = good_input();
    check_case("preprocessing fails: the ranges are closed");
    input.images = &no_pixels;
    check_failure(&input, VP_ERR_RANGE, names, 2);
}
static void test_engine_fails(void) {
    static const char *const names[] = {"request", "preprocess", "engine"};
    struct pass_input input = good_input();
    check_case("the engine rejects a request: the ranges are closed");
    input.engine.top_k = model.config.expert_count + 1;
    check_failure(&input, VP_ERR_RANGE, names, 3);
}

int main(void) {
    if (set_up()) {
        check_case("a pass records its ranges");
        check_good_pass();
        test_preprocess_fails();
        test_engine_fails();
    }
    session_free(&session);
    if (run) runs_free(run, 1);
    sample.prompt = NULL;
    sample_free(&sample);
    model_free(&model);
    return check_done("test_request");
}
