/* input.c: turns a prompt and its knobs into a request that is ready to run. */
#include "measure/input.h"

#include "base/console.h"
#include "base/files.h"
#include "model/image.h"

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
                                        "\"%s\": expected positive integers, such as %s=4", text, *name);
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
/* ---- making a request */
/* Chooses the decoder blocks of the request: those of --active_blocks, or the number of --num_active_blocks. Returns 0
 * or an exit code. */
static int choose_blocks(struct request *request) {
    const int32_t all = request->model.config.block_count;
    const struct option_value *list = request->settings->active_blocks;
    int32_t *blocks = resize(NULL, (size_t)all, sizeof *blocks);
    int32_t count = list ? 0 : (int32_t)knob_number(&request->knobs, KNOB_BLOCKS);
    int code =
        list ? 0 : model_choose_blocks(request->settings->importance_scores_file, &request->model, count, blocks);
    for (int32_t block = 0; block < all && list; block++)
        for (size_t i = 0; i < list->count; i++) if (list->numbers[i] == block) blocks[count++] = block;
    for (size_t i = 0; list && i < list->count && !code; i++)
        if (list->numbers[i] >= all)
            code = complain(EXIT_USAGE, "--active_blocks %lld: the model has blocks 0..%d", (long long)list->numbers[i],
                            all - 1);
    if (!code) knob_set_list(&request->knobs, KNOB_BLOCKS, blocks, count);
    free(blocks);
    return code;
}
/* Sets the knobs of the request. Returns 0 or an exit code. */
static int choose_knobs(struct request *request) {
    const struct request_settings *settings = request->settings;
    const vp_model_config *config = &request->model.config;
    int code;
    for (int knob = 0; knob < KNOB_EACH_END; knob++) {
        const struct option_value *value = settings->knobs[knob];
        if (KNOBS[knob].of == KNOB_OF_IMAGES) continue; /* check_image_knob and the tiling's options */
        if (!value) knob_set_of_model(&request->knobs, knob, config);
        else if (KNOBS[knob].type == KNOB_IS_NUMBER) knob_set_number(&request->knobs, knob, value->number);
        else knob_set_text(&request->knobs, knob, value->text);
    }
    if (!config->expert_count && settings->knobs[KNOB_TOP_K])
        return complain(EXIT_USAGE, "--top_k: %s has no experts to choose from",
                        vp_architecture_name(config->architecture));
    if (knob_number(&request->knobs, KNOB_TOP_K) > config->expert_count)
        return complain(EXIT_USAGE, "--top_k %lld: the model has %d experts",
                        (long long)knob_number(&request->knobs, KNOB_TOP_K), config->expert_count);
    if (settings->active_blocks && (settings->knobs[KNOB_BLOCKS] || settings->importance_scores_file))
        return complain(EXIT_USAGE,
                        "--active_blocks names the blocks; remove --num_active_blocks and --importance_scores_file");
    if (request->tiles.tier) knob_set_text(&request->knobs, KNOB_TIER, request->tiles.tier->name);
    if ((code = choose_blocks(request)) != 0 || !settings->knobs[KNOB_PRUNE]) return code;
    return prune_check("prune", (const char *const[]){settings->knobs[KNOB_PRUNE]->text}, 1);
}
/* The requested size of the images. */
static struct image_size size_of(const struct request *request) {
    return (struct image_size){NULL, request->tiles.rule == VP_TILE_TOKENS ? request->tiles.vision_tokens : 0,
                               knob_text(&request->knobs, KNOB_IMAGE),
                               (int32_t)knob_number(&request->knobs, KNOB_IMAGE), &request->tiles};
}
/* Sets the knob of the images, and checks the knobs that do not apply to a model. Returns 0 or EXIT_USAGE. */
static int check_image_knobs(struct request *request) {
    const struct request_settings *settings = request->settings;
    const struct model *model = &request->model;
    const int is_tiled = model->rules->is_tiled;
    const char *family = vp_architecture_name(model->config.architecture);
    int32_t *values = NULL;
    size_t count = 0;
    char *name = NULL;
    int code = image_knob_read(settings->image_knob, &name, &values, &count);
    if (!code && count) {
        knob_set_text(&request->knobs, KNOB_IMAGE, name);
        knob_set_number(&request->knobs, KNOB_IMAGE, values[0]);
    }
    FREE_ALL(name, values);
    if (!code && count > 1) code = complain(EXIT_USAGE, "--image_knob: run takes only one value; sweep takes several");
    if (!code && count && (request->tiles.rule == VP_TILE_TOKENS || is_tiled))
        return complain(EXIT_USAGE, is_tiled ? "--image_knob: for Molmo's crops, use --max_crops, --tier ..."
                                             : "--image_knob and --vision_tokens cannot be used together");
    struct image_size size = size_of(request);
    size.tiles = NULL;
    if (!code) code = model->rules->knobs(model, &size, "vision_tokens");
    if (code || is_tiled) return code;
    if (settings->style)
        return complain(EXIT_USAGE, "--style: prompt styles exist only for Molmo models, not for %s", family);
    if (settings->only_tiled)
        return complain(EXIT_USAGE, "--%s: tiles and tiers exist only for Molmo models, not for %s",
                        settings->only_tiled, family);
    return 0;
}
/* Loads the images and cuts them. Returns 0 or an exit code after a message. */
static int load_images(struct request *request) {
    const char *const *paths = request->settings->images;
    const size_t count = request->settings->image_count;
    const struct image_size size = size_of(request);
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
    result = model_cut(&request->model, &size, sample->sizes, (int32_t)count, &request->cuts, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, paths[request->cuts.count - 1], result, &error);
}
/* Makes the prompt, cuts the images and tokenizes. Returns 0 or an exit code. */
static int make_input(struct request *request) {
    const struct request_settings *settings = request->settings;
    const struct model *model = &request->model;
    const char *text = settings->prompt;
    const int image_count = (int)settings->image_count;
    int code = 0;
    if (model_is_blind(model) && settings->knobs[KNOB_PRUNE])
        return complain(EXIT_USAGE, "--prune: %s accepts only text, so there are no image tokens",
                        vp_architecture_name(model->config.architecture));
    if (image_count && model_is_blind(model))
        return complain(EXIT_USAGE, "%s: %s accepts only text: remove the image", model->name,
                        vp_architecture_name(model->config.architecture));
    if ((code = check_image_count(model, image_count)) != 0) return code;
    request->sample.prompt = settings->is_raw ? copy_text(text, strlen(text))
                                              : model->rules->prompt(model, settings->style, text, NULL, image_count);
    if (!settings->is_raw) warn_of_template(model);
    request->sample.question = copy_text(text, strlen(text));
    if (image_count) code = load_images(request);
    return code ? code : tokenize_input(request);
}
int request_prepare(struct request *request) {
    const struct request_settings *settings = request->settings;
    int code;
    request->tiles = settings->tiles;
    if ((code = check_image_knobs(request)) != 0 || (code = choose_knobs(request)) != 0) return code;
    if (!settings->has_max_crops && request->tiles.rule == VP_TILE_ADAPTIVE)
        request->tiles.max_crops = request->model.config.geometry.max_crops;
    if ((code = make_input(request)) != 0) return code;
    request->input.engine.max_new_tokens = settings->new_tokens;
    request->input.engine.ignore_eos = settings->ignore_eos;
    input_apply_knobs(&request->input, &request->knobs); /* after the image, because pruning counts its tokens */
    input_seed_pruning(&request->input, (uint32_t)settings->engine.seed, 0);
    if ((code = check_sequence(&request->model, &request->input)) != 0) return code;
    return settings->dump ? make_folder(settings->dump) : 0;
}

/* ---- running it */
int request_open(struct request *request) {
    const vp_engine_options *settings = &request->settings->engine;
    vp_error error = {VP_OK, -1, "", ""};
    const int32_t sequence = sequence_of(&request->input) + request->input.engine.max_new_tokens;
    request->session.model = &request->model;
    vp_result result = request_pruned(&request->session, &request->input, settings->weights, &request->pruned, &error);
    if (result != VP_OK) return complain_result(EXIT_USAGE, NULL, result, &error);
    result = engine_try(settings, &request->model, sequence, request->input.cuts ? request->cuts.whole.views : 1,
                        &request->session.engine, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), request->model.name, result, &error);
}
static int run_once(void *with, struct pass_result *run) {
    struct request *request = with;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = request_run(&request->session, &request->input, run, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), NULL, result, &error);
}
/* After this, each run is copied out. */
static void begin_dumps(void *with) {
    struct request *request = with;
    dump_reserve(&request->dump, &request->model, &request->input);
    request->input.engine.dump = &request->dump;
}
int request_measure(struct request *request, struct timed_runs *timed) {
    const struct request_settings *settings = request->settings;
    const struct pass_backend engine = {request, run_once, settings->dump ? begin_dumps : NULL};
    timed->is_cold = settings->is_cold;
    int code = request_open(request);
    if (!code) code = runs_measure(&engine, settings->num_runs, settings->new_tokens, timed);
    if (code) return code;
    runs_warn_of_noise(timed);
    return settings->dump && timed->count ? dump_write(settings->dump, &request->session, &request->input,
                                                       &timed->runs[timed->count - 1], &request->dump)
                                          : 0;
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
    dump_free(&request->dump);
}

int check_sequence(const struct model *model, const struct pass_input *input) {
    if (positions_of(input) <= model->config.max_positions) return 0;
    return complain(EXIT_USAGE,
                    "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), but the model has "
                    "%d: use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(input), input->cuts ? input->cuts->whole.image_tokens : 0,
                    input->tokens.count, input->engine.max_new_tokens, model->config.max_positions);
}
