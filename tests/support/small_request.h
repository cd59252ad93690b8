/* small_request.h: a request of one view and nine text tokens on a shallow model, for tests that need a running engine but not its answers. The model is shallow because
 * every engine costs emulated time, and the calls are the same in all layers. Include it after check.h. */
#ifndef SMALL_REQUEST_H
#define SMALL_REQUEST_H
#include <math.h>

enum { TEXT_TOKENS = 9 };
static vp_model_config config;
static float *pixels, *masks; /* the caller frees them */
static int32_t ids[512], index_of[144], all_blocks[64];
static int32_t input_count;

static void make_inputs(void) {
    const size_t patches = 576, values = 588;
    CHECK_INT(vp_model_config_preset("tiny", &config), VP_OK);
    config.vit_block_count = config.vit_blocks_needed = 1;
    config.vit_layer_count = 1;
    config.vit_layers[0] = -1;
    config.block_count = 2;
    pixels = (float *)malloc(patches * values * sizeof *pixels);
    masks = (float *)malloc(patches * sizeof *masks);
    for (size_t i = 0; i < patches * values; i++) pixels[i] = 0.5f * sinf((float)i * 0.01f);
    for (size_t i = 0; i < patches; i++) masks[i] = 1.0f;
    input_count = 144 + TEXT_TOKENS;
    for (int i = 0; i < input_count; i++) ids[i] = 5 + i % 60;
    for (int i = 0; i < 144; i++) index_of[i] = i;
    for (int i = 0; i < config.block_count; i++) all_blocks[i] = i;
}
static vp_request small_request(vp_timing timing, int32_t new_tokens) {
    vp_request r = {0};
    r.input_ids = ids; r.input_count = input_count;
    r.pixels = pixels; r.image_masks = masks; r.image_input_idx = index_of; r.views = 1;
    r.top_k = 2; r.active_blocks = all_blocks; r.active_block_count = config.block_count;
    r.max_new_tokens = new_tokens; r.ignore_eos = 1; r.eos_id = -1;
    r.timing = timing;
    return r;
}
#endif
