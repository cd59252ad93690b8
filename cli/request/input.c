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

int prompt_of_other(const struct model *model, const char *text, int raw, int has_image, char **prompt) {
    struct text_buffer made = {NULL, 0, 0};
    const vp_processor_kind kind = model->other.processor.kind;
    size_t needed = 0;
    char *formatted;
    if (has_image && kind == VP_PROCESSOR_OLMOE)
        return complain(EXIT_USAGE, "%s: %s reads text only: leave the image out", model->name,
                        vp_architecture_name(model->config.architecture));
    if (raw) {
        *prompt = copy_text(text, strlen(text));
        return 0;
    }
    vp_processor_prompt(kind, text, has_image, NULL, 0, &needed);
    formatted = resize(NULL, needed + 1, 1);
    vp_processor_prompt(kind, text, has_image, formatted, needed + 1, &needed);
    if (model->other.prompt_front) text_add_string(&made, model->other.prompt_front);
    text_add_string(&made, formatted);
    free(formatted);
    *prompt = made.data;
    if (!model->other.knows_template)
        complain(0,
                 "%s: %s; the prompt is as the published %s has it (--show_prompt prints it, --raw_prompt takes "
                 "another)",
                 model->name,
                 model->other.has_template ? "its chat template is not the known one" : "it has no chat template",
                 vp_architecture_name(model->config.architecture));
    return 0;
}

int picture_of_other(const struct model *model, const char *path, int32_t width_px, int32_t height_px,
                     vp_picture *picture, vp_layout *layout) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_processor_picture(&model->other.processor, width_px, height_px, picture, &error);
    if (result != VP_OK) return complain_result(EXIT_INPUT, path, result, &error);
    memset(layout, 0, sizeof *layout);
    layout->width_px = width_px;
    layout->height_px = height_px;
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
    return 0;
}

/* Tokenizes sample->prompt with the image's tokens in their places, behind the tokenizer's first token where it has
 * one. picture: NULL without an image. sample->text_ids becomes the whole sequence, sample->text_count what of it
 * stands for no image, sample->no_bos true. */
static int tokenize_other(const struct model *model, const vp_picture *picture, const vp_layout *layout,
                          struct sample *sample) {
    const char *placeholder = vp_processor_placeholder(model->other.processor.kind);
    char *prompt = sample->prompt, *expanded;
    size_t needed = 0;
    int code;
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
