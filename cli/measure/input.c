/* input.c: turns a prompt and its knobs into a request that is ready to run. */
#include "measure/input.h"

#include "base/console.h"
#include "base/memory.h"
#include "model/image.h"

#include <stdlib.h>
#include <string.h>

int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout) {
    return tiles->rule == VP_TILE_TOKENS ? tiles->vision_tokens : layout->theoretical_tokens;
}

/* ---- setting the knobs of the engine in a request */
static void apply_top_k(struct pass_input *input, const struct knob_value *value) {
    input->engine.top_k = (int32_t)value->number;
}
static void apply_blocks(struct pass_input *input, const struct knob_value *value) {
    input->engine.active_blocks = value->list;
    input->engine.active_block_count = value->list_count;
}
static void apply_activations(struct pass_input *input, const struct knob_value *value) {
    input->engine.activations = activations_of(value->text);
}
static void apply_prune(struct pass_input *input, const struct knob_value *value) {
    char reason[LINE_BYTES];
    (void)prune_read(value->text, &input->prune, reason, sizeof reason); /* prune_check has already checked it */
    input->prune.how.image_tokens = input->cuts ? input->cuts->whole.feature_tokens : 0;
}
/* Images are cut, and engines with their weights opened, before there is a request. */
static void (*const APPLY[KNOB_COUNT])(struct pass_input *, const struct knob_value *) = {
    [KNOB_TOP_K] = apply_top_k,
    [KNOB_BLOCKS] = apply_blocks,
    [KNOB_ACTIVATIONS] = apply_activations,
    [KNOB_PRUNE] = apply_prune,
};
void input_apply_knobs(struct pass_input *input, const struct knob_values *values) {
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (knob_is_set(values, knob) && APPLY[knob]) APPLY[knob](input, &values->of[knob]);
}

void input_seed_pruning(struct pass_input *input, uint32_t seed, int64_t sample) {
    const uint32_t own = input->prune.has_seed ? input->prune.how.seed : seed;
    input->prune.how.seed = (uint32_t)((uint64_t)own + (uint64_t)sample);
}
int image_knob_read(const char *text, char **name, int32_t **values, size_t *count) {
    const char *at = text ? strchr(text, '=') : NULL;
    int64_t value = 0;
    *name = NULL;
    *values = NULL;
    *count = 0;
    if (!text) return 0;
    if (!at || at == text) return complain(EXIT_USAGE, "--image_knob: expected NAME=NUMBER, got \"%s\"", text);
    *name = copy_text(text, (size_t)(at - text));
    while (at) {
        const char *start = at + 1;
        at = strchr(start, ',');
        char *number = copy_text(start, at ? (size_t)(at - start) : strlen(start));
        const int good = can_parse_number(number, &value) && value >= 1 && value <= INT32_MAX;
        free(number);
        if (!good)
            return complain(EXIT_USAGE, "--image_knob: "
                                        "\"%s\": expected integers of 1 or more, such as %s=4", text, *name);
        *values = resize(*values, *count + 1, sizeof **values);
        (*values)[(*count)++] = (int32_t)value;
    }
    return 0;
}
/* A sample's own prompt may have no BOS. */
static int take_tokens(struct prompt_tokens tokens, int code, struct sample *sample) {
    tokens.no_bos |= sample->tokens.no_bos;
    sample->tokens = tokens;
    return code;
}
int tokenize_sample(const struct model *model, const struct cuts *cuts, struct sample *sample) {
    static const struct cuts no_cuts;
    struct prompt_tokens tokens = {NULL, 0, 0};
    const int code = model->rules->tokenize(model, sample->prompt, cuts ? cuts : &no_cuts, &tokens);
    return take_tokens(tokens, code, sample);
}
int count_sample(const struct model *model, int32_t image_count, struct sample *sample) {
    struct prompt_tokens tokens = {NULL, 0, 0};
    const int code = model->rules->count(model, sample->prompt, image_count, &tokens);
    return take_tokens(tokens, code, sample);
}

int tokenize_input(struct request *request) {
    const int code = tokenize_sample(&request->model, request->input.cuts, &request->sample);
    request->input.tokens = request->sample.tokens;
    return code;
}
int request_load_images(struct request *request, const char *const *paths, size_t count,
                        const struct image_size *size) {
    struct sample *sample = &request->sample;
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    vp_result result;
    int code;
    request->images = zeroed(count, sizeof *request->images);
    sample->sizes = zeroed(count, sizeof *sample->sizes);
    for (size_t i = 0; i < count; i++) {
        text_list_copy(&sample->images, paths[i]);
        if ((code = load_image(paths[i], &request->images[i], reason, sizeof reason)) != 0)
            return complain(code, "%s", reason);
        sample->sizes[i] = (struct image_px){request->images[i].width_px, request->images[i].height_px};
    }
    request->input.images = request->images;
    request->input.cuts = &request->cuts;
    result = model_cut(&request->model, size, sample->sizes, (int32_t)count, &request->cuts, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, paths[request->cuts.count - 1], result, &error);
}
int request_open(const vp_engine_options *settings, struct request *request) {
    vp_error error = {VP_OK, -1, "", ""};
    const int32_t sequence = sequence_of(&request->input) + request->input.engine.max_new_tokens;
    request->session.model = &request->model;
    vp_result result = request_pruned(&request->session, &request->input, settings->weights, &request->pruned, &error);
    if (result != VP_OK) return complain_result(EXIT_USAGE, NULL, result, &error);
    result = engine_try(settings, &request->model, sequence, request->input.cuts ? request->cuts.whole.views : 1,
                        &request->session.engine, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), request->model.name, result, &error);
}
void request_close(struct request *request) {
    session_free(&request->session);
    model_free(&request->model);
    for (size_t i = 0; request->images && i < request->sample.images.count; i++)
        if (request->images[i].rgb) vp_image_free(&request->images[i]);
    free(request->images);
    cuts_free(&request->cuts);
    sample_free(&request->sample);
    knob_values_free(&request->knobs);
}

int check_sequence(const struct model *model, const struct pass_input *input) {
    if (positions_of(input) <= model->config.max_positions) return 0;
    return complain(EXIT_USAGE,
                    "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), the model has %d: "
                    "use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(input), input->cuts ? input->cuts->whole.image_tokens : 0,
                    input->tokens.count, input->engine.max_new_tokens, model->config.max_positions);
}
