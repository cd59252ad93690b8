/* input.c: a prompt and its knobs to a request that is ready to run. */
#include "request/input.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof_tokenizer.h"

#include <stdlib.h>
#include <string.h>

int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout) {
    return tiles->rule == VP_TILE_TOKENS ? tiles->vision_tokens : layout->theoretical_tokens;
}

/* ---- knobs of the engine: how each is set in a request */
static void no_apply(struct pass_input *input, const struct knob_value *value) { (void)input; (void)value; }
static void apply_top_k(struct pass_input *input, const struct knob_value *value) {
    input->top_k = (int32_t)value->number;
}
static void apply_blocks(struct pass_input *input, const struct knob_value *value) {
    input->blocks = value->list;
    input->block_count = value->list_count;
}
#define APPLY_OF(id, sweep, run, apply, ...) apply,
static void (*const APPLY[KNOB_COUNT])(struct pass_input *, const struct knob_value *) = {KNOB_ROWS(APPLY_OF)};
void input_apply_knobs(struct pass_input *input, const struct knob_values *values) {
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (knob_is_set(values, knob)) APPLY[knob](input, &values->of[knob]);
}

int tokenize_prompt(const struct model *model, struct sample *sample) {
    size_t count = 0, bytes = strlen(sample->prompt);
    vp_result result;
    sample->text_ids = resize(NULL, bytes + 1, sizeof *sample->text_ids); /* a byte makes one token at most... */
    result = vp_tokenizer_encode(model->tokenizer, sample->prompt, bytes, sample->text_ids, bytes + 1, &count);
    if (result == VP_ERR_CAPACITY) { /* ... but normalisation can lengthen the text */
        sample->text_ids = resize(sample->text_ids, count, sizeof *sample->text_ids);
        result = vp_tokenizer_encode(model->tokenizer, sample->prompt, bytes, sample->text_ids, count, &count);
    }
    if (result != VP_OK || count > INT32_MAX / 2)
        return complain(result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE, "the prompt cannot be tokenized: %s",
                        result != VP_OK ? vp_result_text(result) : "it is too long");
    sample->text_count = (int32_t)count;
    sample->text_ids = resize(sample->text_ids, count, sizeof *sample->text_ids); /* a data set keeps many */
    return 0;
}

int image_knob_read(const struct options *options, char **name, int32_t **values, size_t *count) {
    const char *text = text_of(options, "image_knob"), *at = text ? strchr(text, '=') : NULL;
    int64_t value = 0;
    *name = NULL;
    *values = NULL;
    *count = 0;
    if (!text) return 0;
    if (!at || at == text) return complain(EXIT_USAGE, "--image_knob: want NAME=NUMBER, not \"%s\"", text);
    *name = copy_text(text, (size_t)(at - text));
    while (at) {
        const char *start = at + 1;
        char *number;
        at = strchr(start, ',');
        number = copy_text(start, at ? (size_t)(at - start) : strlen(start));
        const int good = can_parse_number(number, &value) && value >= 1 && value <= INT32_MAX;
        free(number);
        if (!good)
            return complain(EXIT_USAGE, "--image_knob: \"%s\": want whole numbers from 1, like %s=4", text, *name);
        *values = resize(*values, *count + 1, sizeof **values);
        (*values)[(*count)++] = (int32_t)value;
    }
    return 0;
}
vp_tile_options image_size_tiles(const struct image_size *size) {
    vp_tile_options tiles = vp_tile_options_default();
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
int image_size_check(const struct options *options, const struct model *model, const struct image_size *size) {
    const char *name = vp_architecture_name(model->config.architecture),
               *option = size->knob                             ? "image_knob"
                         : has_option(options, "vision_tokens") ? "vision_tokens"
                                                                : "vision_tokens_list";
    vp_processor tried = model->other.processor;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    if (model_is_molmo(model)) {
        if (!size->knob || (!strcmp(size->knob, "max_crops") && size->knob_value <= 1024)) return 0;
        return complain(EXIT_USAGE, "--image_knob %s=%d: %s has max_crops, up to 1024", size->knob, size->knob_value,
                        name);
    }
    if (size->knob) result = vp_processor_set(&tried, size->knob, size->knob_value, &error);
    else if (size->vision_tokens && (!vp_processor_knob(&tried, 0) || model_is_blind(model)))
        result = vp_processor_aim(&tried, 1, 1, size->vision_tokens, &error);
    else if (size->vision_tokens && tried.kind != VP_PROCESSOR_MOLMO2
             && size->vision_tokens < vp_geometry_tokens_per_crop(&tried.geometry))
        return complain(EXIT_USAGE, "--%s %d: one view of %s has %d tokens already", option, size->vision_tokens, name,
                        vp_geometry_tokens_per_crop(&tried.geometry));
    return result == VP_OK ? 0 : complain(EXIT_USAGE, "--%s: %s: %s: %s", option, name, error.where, error.text);
}

/* How an image is cut by a processor, as a layout, which counts its tokens. */
static void layout_of_picture(const vp_picture *picture, vp_layout *layout) {
    memset(layout, 0, sizeof *layout);
    layout->width_px = picture->width_px;
    layout->height_px = picture->height_px;
    layout->tiling.rows = picture->rows;
    layout->tiling.cols = picture->cols;
    layout->crops = picture->rows * picture->cols;
    layout->views = picture->views;
    layout->canvas_width_px = layout->resized_width_px = picture->resized_width_px;
    layout->canvas_height_px = layout->resized_height_px = picture->resized_height_px;
    layout->theoretical_tokens = layout->feature_tokens = picture->tokens;
    layout->col_tokens = picture->separator_tokens;
    layout->marker_tokens = picture->marker_tokens;
    layout->image_tokens = picture->tokens + picture->separator_tokens + picture->marker_tokens;
}
/* What stands around Idefics3's views and Gemma 3's is text, which the tokenizer knows as tokens of its own or does
 * not: the line ends behind the last row, rows and columns beyond the sixth. The markers' count becomes what it makes
 * of them. */
static vp_result count_markers(const struct model *model, vp_picture *picture) {
    const vp_processor *processor = &model->other.processor;
    const char *placeholder = vp_processor_placeholder(processor->kind);
    size_t bytes = 0, count = 0;
    char *text;
    vp_result result;
    vp_processor_expand(processor, picture, placeholder, NULL, 0, &bytes);
    text = resize(NULL, bytes + 1, 1);
    result = vp_processor_expand(processor, picture, placeholder, text, bytes + 1, &bytes);
    if (result == VP_OK) result = vp_tokenizer_encode(model->tokenizer, text, bytes, NULL, 0, &count);
    free(text);
    if (result != VP_OK && result != VP_ERR_CAPACITY) return result;
    picture->marker_tokens = (int32_t)count - picture->tokens - picture->separator_tokens;
    return VP_OK;
}
vp_result image_size_layout(const struct model *model, const struct image_size *size, int32_t width_px,
                            int32_t height_px, vp_picture *picture, vp_layout *layout, vp_error *error) {
    vp_processor processor = model->other.processor;
    vp_result result = VP_OK;
    if (model_is_molmo(model)) {
        const vp_tile_options tiles = image_size_tiles(size);
        return vp_layout_compute(&model->config.geometry, &tiles, width_px, height_px, layout, error);
    }
    if (size->knob) result = vp_processor_set(&processor, size->knob, size->knob_value, error);
    else if (size->vision_tokens)
        result = vp_processor_aim(&processor, width_px, height_px, size->vision_tokens, error);
    if (result == VP_OK) result = vp_processor_picture(&processor, width_px, height_px, picture, error);
    if (result != VP_OK) return result;
    if (processor.kind == VP_PROCESSOR_IDEFICS3 || processor.kind == VP_PROCESSOR_GEMMA3)
        result = count_markers(model, picture);
    layout_of_picture(picture, layout);
    return result;
}

int model_is_blind(const struct model *model) {
    return !model_is_molmo(model) && !vp_processor_placeholder(model->other.processor.kind);
}
char *prompt_of_other(const struct model *model, const char *text, int has_image) {
    struct text_buffer made = {NULL, 0, 0};
    const vp_processor_kind kind = model->other.processor.kind;
    size_t needed = 0;
    char *formatted;
    vp_processor_prompt(kind, text, has_image, NULL, 0, &needed);
    formatted = resize(NULL, needed + 1, 1);
    vp_processor_prompt(kind, text, has_image, formatted, needed + 1, &needed);
    if (model->other.prompt_front) text_add_string(&made, model->other.prompt_front);
    text_add_string(&made, formatted);
    free(formatted);
    return made.data;
}
void warn_of_template(const struct model *model) {
    if (!model_is_molmo(model) && model->other.processor.kind == VP_PROCESSOR_PLAIN) {
        if (model->other.has_template)
            complain(0, "%s: its chat template is none that vlmprof knows: the prompt is the text as it stands",
                     model->name);
        return;
    }
    if (!model_is_molmo(model) && !model->other.knows_template)
        complain(0,
                 "%s: %s; the prompt is as the published %s has it (--show_prompt prints it, --raw_prompt takes "
                 "another)",
                 model->name,
                 model->other.has_template ? "its chat template is not the known one" : "it has no chat template",
                 vp_architecture_name(model->config.architecture));
}

/* Complains about a prompt with the token of a video. */
static int check_videos(const struct model *model, const char *prompt, int code) {
    const char *video = vp_processor_video(model->other.processor.kind);
    return !video || !strstr(prompt, video)
               ? 0
               : complain(code, "%s in a prompt stands for a video; vlmprof shows models one picture", video);
}
int tokenize_other(const struct model *model, const vp_picture *picture, const vp_layout *layout,
                   struct sample *sample) {
    const char *placeholder = vp_processor_placeholder(model->other.processor.kind);
    char *prompt = sample->prompt, *expanded;
    size_t needed = 0;
    int code = check_videos(model, prompt, EXIT_USAGE);
    if (code) return code;
    if (vp_processor_expand(&model->other.processor, picture, prompt, NULL, 0, &needed) == VP_ERR_MISMATCH)
        return complain(EXIT_USAGE,
                        picture ? "the prompt must have %s once, where the image goes"
                                : "the prompt has %s, but no image is given",
                        placeholder);
    expanded = resize(NULL, needed + 1, 1);
    vp_processor_expand(&model->other.processor, picture, prompt, expanded, needed + 1, &needed);
    sample->prompt = expanded;
    code = tokenize_prompt(model, sample);
    sample->prompt = prompt;
    free(expanded);
    sample->no_bos = 1;
    if (code || model->ids.bos < 0) {
        if (!code && picture) sample->text_count -= layout->image_tokens;
        return code;
    }
    sample->text_ids = resize(sample->text_ids, (size_t)sample->text_count + 1, sizeof *sample->text_ids);
    memmove(sample->text_ids + 1, sample->text_ids, (size_t)sample->text_count * sizeof *sample->text_ids);
    sample->text_ids[0] = model->ids.bos;
    sample->text_count += 1 - (picture ? layout->image_tokens : 0);
    return 0;
}

int count_text_of_other(const struct model *model, int has_image, struct sample *sample) {
    const char *placeholder = vp_processor_placeholder(model->other.processor.kind), *first = sample->prompt;
    int32_t found = 0;
    int code = check_videos(model, first, EXIT_INPUT);
    if (code) return code;
    while (placeholder && (first = strstr(first, placeholder)) != NULL) {
        first += strlen(placeholder);
        found++;
    }
    if (found != has_image)
        return complain(EXIT_INPUT, "the question has %s in it, which stands for an image", placeholder);
    code = tokenize_prompt(model, sample);
    sample->text_count += (model->ids.bos >= 0) - has_image; /* the placeholder is one token */
    if (strncmp(sample->prompt, model->other.processor.front, strlen(model->other.processor.front)))
        sample->text_count++; /* the processor puts it there */
    sample->no_bos = 1;
    return code;
}

int tokenize_input(struct run_state *state) {
    int code = model_is_molmo(&state->model)
                   ? tokenize_prompt(&state->model, &state->sample)
                   : tokenize_other(&state->model, state->input.picture, state->input.layout, &state->sample);
    state->input.no_bos = state->sample.no_bos;
    state->input.text_ids = state->sample.text_ids;
    state->input.text_count = state->sample.text_count;
    return code;
}

int check_sequence(const struct model *model, const struct pass_input *input) {
    if (positions_of(input) <= model->config.max_positions) return 0;
    return complain(EXIT_USAGE,
                    "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), the model has %d: "
                    "use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(input), input->layout ? input->layout->image_tokens : 0, input->text_count,
                    input->new_tokens, model->config.max_positions);
}
