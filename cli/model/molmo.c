/* molmo.c: the rules of MolmoE and Molmo: tiling, prompts with styles, and a sequence of BOS, image and text. */
#include "base/console.h"
#include "model/model.h"
#include "model/prompt.h"
#include "model/rules.h"
#include "vlmprof_image.h"

/* special ids are at the end of the vocabulary: if they have embedding rows, so do the tokens of text */
static int check_ids(const struct model *model, const char *what) {
    const int32_t ids[] = {model->ids.bos, model->ids.im_start, model->ids.im_end, model->ids.im_patch,
                           model->ids.im_col};
    int32_t rows = model->config.embedding_size + model->config.additional_vocab_size;
    for (int i = 0; i < 5; i++)
        if (ids[i] >= rows)
            return complain(EXIT_INPUT, "%s: token %d has no embedding: config.json has only %d "
                                        "rows", what, ids[i], rows);
    return 0;
}
/* All Molmo tokenizers have special tokens with the same contents. */
static int molmo_load(struct model *model, const char *what, const vp_json *config, const vp_json *preprocessor) {
    vp_error error = {VP_OK, -1, "", ""};
    (void)config;
    (void)preprocessor;
    if (vp_tokenizer_bos(model->tokenizer) >= 0)
        return complain(EXIT_INPUT, "%s: the template puts a token before the text; no Molmo tokenizer does", what);
    vp_result result = vp_tokenizer_special_ids(model->tokenizer, &model->ids, &error);
    return result == VP_OK ? check_ids(model, what) : complain_result(EXIT_INPUT, what, result, &error);
}
static int molmo_load_preset(struct model *model) {
    vp_result result = vp_model_preset_ids(model->name, &model->ids);
    if (result == VP_OK) result = vp_tokenizer_bytes(&model->ids, &model->tokenizer);
    return result == VP_OK ? 0
                           : complain(exit_code_of(result), "--synthetic %s: %s", model->name, vp_result_text(result));
}

static const char *molmo_one_image(const struct model *model) {
    (void)model;
    return "Molmo's published preprocessing accepts only one image per prompt";
}
static char *molmo_prompt(const struct model *model, const char *style, const char *question, const size_t *places,
                          int32_t image_count) {
    (void)model;
    (void)places;
    (void)image_count;
    return make_prompt(style, question);
}
static int molmo_knobs(const struct model *model, const struct image_size *size, const char *option) {
    (void)option;
    if (!size->knob || (!strcmp(size->knob, "max_crops") && size->knob_value <= 1024)) return 0;
    return complain(EXIT_USAGE, "--image_knob %s=%d: %s has max_crops, up to 1024", size->knob, size->knob_value,
                    vp_architecture_name(model->config.architecture));
}
vp_tile_options image_size_tiles(const struct image_size *size) {
    vp_tile_options tiles = vp_tile_options_default();
    if (size->tiles) return *size->tiles;
    if (size->knob) {
        tiles.max_crops = size->knob_value;
        return tiles;
    }
    tiles.fit = VP_FIT_FILL;
    tiles.rule = size->tier ? VP_TILE_TIER : VP_TILE_TOKENS;
    tiles.tier = size->tier;
    tiles.vision_tokens = size->vision_tokens;
    return tiles;
}
static vp_result molmo_cut(const struct model *model, const struct image_size *size, int32_t width_px,
                           int32_t height_px, vp_layout *layout, vp_error *error) {
    const struct image_size own = {NULL, 0, "max_crops", model->config.geometry.max_crops, NULL};
    const int is_own = !size->tier && !size->vision_tokens && !size->knob && !size->tiles;
    const vp_tile_options tiles = image_size_tiles(is_own ? &own : size);
    return vp_layout_compute(&model->config.geometry, &tiles, width_px, height_px, layout, error);
}

static int molmo_count(const struct model *model, const char *prompt, int32_t image_count,
                       struct prompt_tokens *tokens) {
    (void)image_count;
    return tokenize_text(model, prompt, tokens);
}
static int molmo_tokenize(const struct model *model, const char *prompt, const struct cuts *cuts,
                          struct prompt_tokens *tokens) {
    (void)cuts;
    return tokenize_text(model, prompt, tokens);
}

static size_t molmo_scratch_bytes(const struct model *model, const vp_layout *layout) {
    return vp_preprocess_scratch_bytes(&model->config.geometry, layout);
}
static vp_result molmo_fill(const struct model *model, const struct cuts *cuts, const vp_image *images,
                            const struct prompt_tokens *tokens, int32_t count, struct input_buffers *buffers) {
    const vp_geometry *geometry = &model->config.geometry;
    const vp_layout *layout = cuts->each;
    int32_t *ids = (int32_t *)buffers->ids.data;
    if (!tokens->no_bos) ids[0] = model->ids.bos; /* only a prompt without an image can lack it */
    memcpy(ids + count - tokens->count, tokens->ids, (size_t)tokens->count * sizeof *ids);
    if (!cuts->count) return VP_OK;
    vp_result result = vp_preprocess(geometry, layout, images->rgb, (float *)buffers->pixels.data,
                                     (float *)buffers->masks.data, buffers->scratch.data, buffers->scratch.bytes);
    if (result == VP_OK)
        result = vp_tokens_image_ids(geometry, layout, &model->ids, ids + 1, (size_t)layout->image_tokens);
    if (result == VP_OK)
        result = vp_tokens_index_map(geometry, layout, 1, (int32_t *)buffers->index.data,
                                     buffers->index.bytes / sizeof(int32_t));
    return result;
}

const struct model_rules MOLMO_RULES = {
    .has_styles = 1, .is_tiled = 1, .decode_flags = VP_DECODE_CLEAN_UP, /* the reference scores it like this */
    .one_image = molmo_one_image, .load = molmo_load, .load_preset = molmo_load_preset,
    .prompt = molmo_prompt, .knobs = molmo_knobs,
    .cut = molmo_cut, .count = molmo_count, .tokenize = molmo_tokenize, .scratch_bytes = molmo_scratch_bytes,
    .fill = molmo_fill};
