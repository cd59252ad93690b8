/* bench_peers.c - this project's side of tests/bench/peers.py: for each line on stdin one turn, answered by one line of JSON with milliseconds.
 *   bench_peers engine MODEL VIT_BLOCKS BLOCKS VIEWS TOKENS [WEIGHTS [GEMM]]   vision, prefill, decode a step. MODEL: a preset, with random weights, or
 *                                   a folder of a text model. VIT_BLOCKS and BLOCKS: the first ones of a preset; 0: all. VIEWS 0: text alone.
 *                                   WEIGHTS: bf16; int8, in the tower as well, or int4; +head: the head as well
 *   bench_peers crops PHOTO                                       a decoded photograph to a global view and 12 crops of normalised patches */
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEW = 17, TOKENS_MAX = 2048, VIEWS_MAX = 1024, CROPS = 12, PATH_CHARS = 4096 };

static void fail(const char *what, const vp_error *error) {
    fprintf(stderr, "bench_peers: %s: %s\n", what, error ? error->text : "failed");
    exit(1);
}
static void *room(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory) fail("no memory", NULL);
    return memory;
}
/* waits for the next turn; 0: there is none */
static int turn(void) {
    char line[16];
    return fgets(line, sizeof line, stdin) != NULL;
}
static double ms_since(int64_t start) { return (double)(vp_clock_ns() - start) / 1e6; }
static void ready(const char *what) {
    printf("%s\n", what);
    fflush(stdout);
}

static double stages_ms(const vp_reply *reply, vp_stage first, vp_stage last) {
    double ns = 0.0;
    for (int stage = (int)first; stage <= (int)last; stage++) ns += (double)reply->times.device_ns[stage];
    return ns / 1e6;
}
static vp_model_config config;
static vp_checkpoint *checkpoint; /* NULL: weights are random */
static void open_folder(const char *folder) {
    char path[PATH_CHARS], *json = NULL;
    size_t bytes = 0;
    vp_error error;
    snprintf(path, sizeof path, "%s/config.json", folder);
    if (vp_file_read(path, SIZE_MAX / 4, &json, &bytes, &error) != VP_OK || vp_model_config_parse(json, bytes, NULL, 0, &config, &error) != VP_OK ||
        vp_checkpoint_open(folder, &config, &checkpoint, &error) != VP_OK) fail(folder, &error);
    free(json);
}
static void open_preset(const char *name, int vit_blocks, int blocks) {
    if (vp_model_config_preset(name, &config) != VP_OK) fail(name, NULL);
    if (blocks) config.block_count = blocks;
    if (!vit_blocks) return;
    config.vit_blocks_needed = vit_blocks;
    config.vit_block_count = vit_blocks + 1;
    if (vit_blocks < 8) config.vit_layers[1] = -2; /* the real one takes its second features from a block that is not there */
}
static vp_engine *open_engine(const char *model, int vit_blocks, int blocks, int views, int tokens, const char *weights, const char *gemm) {
    vp_engine_options options = vp_engine_options_default();
    vp_engine *engine = NULL;
    vp_error error;
    if (strchr(model, '/')) open_folder(model);
    else open_preset(model, vit_blocks, blocks);
    options.config = &config; options.checkpoint = checkpoint; options.device = "cpu"; options.gemm = gemm; options.max_sequence = tokens + NEW;
    options.max_views = views ? views : 1;
    if (!strncmp(weights, "int8", 4)) options.weights = options.vision_weights = VP_WEIGHTS_INT8;
    else if (!strncmp(weights, "int4", 4)) options.weights = VP_WEIGHTS_INT4;
    else if (strcmp(weights, "bf16")) fail("weights are bf16, int8, int4, int8+head or int4+head", NULL);
    if (strlen(weights) > 4 && !strcmp(weights + 4, "+head")) options.head_weights = options.weights;
    if (vp_engine_open(&options, &engine, &error) != VP_OK) fail("open", &error);
    return engine;
}
/* pixels of noise for so many views; the tokens of the images are the first after BOS */
static void fill_image(vp_request *request, vp_image_views *image, int views, int tokens) {
    size_t patches = (size_t)views * (size_t)(config.vit_positions - config.vit_class_token);
    size_t values = patches * (size_t)(3 * config.geometry.patch_px * config.geometry.patch_px);
    size_t places = (size_t)views * (size_t)(config.vit_native ? 1 : vp_geometry_tokens_per_crop(&config.geometry));
    float *pixels = (float *)room(values * sizeof *pixels), *masks = (float *)room(patches * sizeof *masks);
    int32_t *index = (int32_t *)room(places * sizeof *index);
    uint32_t state = 1;
    for (size_t i = 0; i < values; i++) { state = state * 1664525u + 1013904223u; pixels[i] = (float)(int32_t)state * 4.6e-10f; }
    for (size_t i = 0; i < patches; i++) masks[i] = 1.0f;
    for (size_t i = 0; i < places; i++) index[i] = (int)i + 1 < tokens ? (int)i + 1 : -1;
    while (config.vit_native && image->rows * image->rows < views) image->rows++;
    image->views = views; image->cols = image->rows;
    if (config.vit_native && image->rows * image->rows != views) fail("this tower needs a square number of views, 196 for a picture of 448x448", NULL);
    request->pixels = pixels; request->image_masks = masks; request->image_input_idx = index; request->views = views;
    if (config.vit_native) { request->images = image; request->image_count = 1; }
}
static int bench_engine(const char *model, int vit_blocks, int blocks, int views, int tokens, const char *weights, const char *gemm) {
    static int32_t ids[TOKENS_MAX], made[NEW], active[128];
    static int64_t step_ns[NEW];
    vp_image_views image = {0};
    vp_request request = {0};
    vp_error error;
    if (views < 0 || views > VIEWS_MAX || tokens < 1 || tokens > TOKENS_MAX) fail("at most 1024 views and 2048 tokens", NULL);
    vp_engine *engine = open_engine(model, vit_blocks, blocks, views, tokens, weights, gemm);
    for (int i = 0; i < TOKENS_MAX; i++) ids[i] = (i * 379 + 7) % 49000;
    for (int i = 0; i < 128; i++) active[i] = i;
    request.input_ids = ids; request.input_count = tokens; request.max_new_tokens = NEW; request.ignore_eos = 1;
    request.timing = VP_TIMING_STAGE; request.top_k = config.top_k; request.active_blocks = active; request.active_block_count = config.block_count;
    if (views) fill_image(&request, &image, views, tokens);
    ready(vp_engine_gemm(engine, 577));
    while (turn()) {
        vp_reply reply = {0};
        reply.tokens = made; reply.step_ns = step_ns;
        if (vp_engine_run(engine, &request, &reply, &error) != VP_OK) fail("request", &error);
        if (views) printf("{\"vision\": %.3f, ", stages_ms(&reply, VP_STAGE_VIT, VP_STAGE_CONNECTOR));
        printf("%s\"prefill\": %.3f, \"decode\": %.3f}\n", views ? "" : "{", stages_ms(&reply, VP_STAGE_EMBED, VP_STAGE_SAMPLE),
               stages_ms(&reply, VP_STAGE_DECODE, VP_STAGE_DECODE) / (NEW - 1));
        fflush(stdout);
    }
    vp_engine_close(engine);
    vp_checkpoint_close(checkpoint);
    free((void *)request.pixels); free((void *)request.image_masks); free((void *)request.image_input_idx);
    return 0;
}

static int bench_crops(const char *photo) {
    const vp_geometry geometry = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_image image;
    vp_layout layout;
    vp_error error;
    char *file = NULL;
    size_t bytes = 0, scratch_bytes;
    float *pixels, *masks;
    options.rule = VP_TILE_CROPS;
    options.crops = CROPS;
    if (vp_file_read(photo, SIZE_MAX / 4, &file, &bytes, &error) != VP_OK) fail(photo, &error);
    if (vp_image_decode((const uint8_t *)file, bytes, &image, &error) != VP_OK) fail(photo, &error);
    if (vp_layout_compute(&geometry, &options, image.width_px, image.height_px, &layout, &error) != VP_OK) fail(photo, &error);
    scratch_bytes = vp_preprocess_scratch_bytes(&geometry, &layout);
    pixels = (float *)room(vp_preprocess_pixel_count(&geometry, &layout) * sizeof *pixels);
    masks = (float *)room((size_t)layout.views * 576 * sizeof *masks);
    void *scratch = room(scratch_bytes);
    printf("%d %d %d %d %d %d\n", layout.views, layout.tiling.rows, layout.tiling.cols, layout.resized_width_px, layout.resized_height_px,
           image.width_px * image.height_px);
    fflush(stdout);
    while (turn()) {
        int64_t start = vp_clock_ns();
        if (vp_preprocess(&geometry, &layout, image.rgb, pixels, masks, scratch, scratch_bytes) != VP_OK) fail("preprocess", NULL);
        printf("{\"crops\": %.4f", ms_since(start));
        start = vp_clock_ns();
        vp_image_free(&image);
        if (vp_image_decode((const uint8_t *)file, bytes, &image, &error) != VP_OK) fail(photo, &error);
        printf(", \"decode_file\": %.4f}\n", ms_since(start));
        fflush(stdout);
    }
    vp_image_free(&image);
    free(file); free(pixels); free(masks); free(scratch);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 7 && !strcmp(argv[1], "engine"))
        return bench_engine(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]), argc > 7 ? argv[7] : "bf16", argc > 8 ? argv[8] : NULL);
    if (argc == 3 && !strcmp(argv[1], "crops")) return bench_crops(argv[2]);
    fprintf(stderr, "bench_peers engine MODEL VIT_BLOCKS BLOCKS VIEWS TOKENS [WEIGHTS [GEMM]] | crops PHOTO\n");
    return argc > 1 ? 2 : 0; /* without arguments, as make bench runs every program: it is for make bench-peers */
}
