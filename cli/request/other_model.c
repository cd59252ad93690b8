/* other_model.c: what models other than Molmo need around the engine. */
#include "request/other_model.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "request/input.h"
#include "vlmprof_tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static vp_processor_kind kind_of(const struct model *model) {
    switch (model->config.architecture) {
    case VP_ARCHITECTURE_LLAVA: return VP_PROCESSOR_LLAVA;
    case VP_ARCHITECTURE_IDEFICS3:
    case VP_ARCHITECTURE_SMOLVLM: return VP_PROCESSOR_IDEFICS3;
    case VP_ARCHITECTURE_INTERNVL: return VP_PROCESSOR_INTERNVL;
    default: return VP_PROCESSOR_OLMOE;
    }
}

/* A JSON file of the folder that may be absent: *text is NULL then. The caller frees *text and parsed->nodes. */
static int read_optional(struct model *model, const char *name, char **text, struct parsed *parsed) {
    char *path = join_path(model->name, name);
    size_t bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code = access(path, F_OK) == 0 ? file_read_in(model->name, name, text, &bytes, &model->identity) : 0;
    if (!code && *text && (result = parse_json(parsed, *text, bytes, &error)) != VP_OK)
        code = complain_result(EXIT_INPUT, path, result, &error);
    free(path);
    return code;
}

/* eos_token_id: a number or a list; of a list the first one. Returns how many there are. */
static uint32_t read_eos(const vp_json *json, uint32_t object, int32_t *eos) {
    uint32_t node = vp_json_get(json, object, "eos_token_id"), count = 1;
    int64_t id = -1;
    if (node != VP_JSON_NONE && json->nodes[node].type == VP_JSON_ARRAY) {
        count = json->nodes[node].count;
        node = vp_json_at(json, node, 0);
    }
    if (node == VP_JSON_NONE || vp_json_to_int(json, node, &id) != VP_OK || id < 0 || id > INT32_MAX) return 0;
    *eos = (int32_t)id;
    return count;
}
static int load_eos(struct model *model, const vp_json *config) {
    struct parsed generation = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    uint32_t count = 0;
    int code = read_optional(model, "generation_config.json", &text, &generation);
    if (!code && text) count = read_eos(&generation.json, 0, &model->ids.eos);
    if (!code && !count) count = read_eos(config, 0, &model->ids.eos);
    if (!code && !count) {
        const uint32_t inner = vp_json_get(config, 0, "text_config");
        if (inner != VP_JSON_NONE) count = read_eos(config, inner, &model->ids.eos);
    }
    if (!code && count > 1)
        complain(0, "%s: generation_config.json names %u tokens that end an answer; here %d alone does", model->name,
                 count, model->ids.eos);
    free(generation.nodes);
    free(text);
    return code;
}

/* The text of a token in tokenizer_config.json, malloc'ed: a string, or an object with `content`. */
static char *token_text(const vp_json *json, const char *key) {
    uint32_t node = vp_json_get(json, 0, key);
    if (node_is(json, node, VP_JSON_OBJECT)) node = vp_json_get(json, node, "content");
    return node_is(json, node, VP_JSON_STRING) ? node_text(json, node) : NULL;
}
/* A string of JSON, unescaped and malloc'ed; NULL: it is none. */
static char *whole_text(const vp_json *json, uint32_t node) {
    size_t needed = 0;
    char *text;
    if (!node_is(json, node, VP_JSON_STRING)) return NULL;
    text = resize(NULL, (size_t)json->nodes[node].bytes + 1, 1);
    if (vp_json_text(json, node, text, (size_t)json->nodes[node].bytes + 1, &needed) == VP_OK) return text;
    free(text);
    return NULL;
}

/* The folder's chat template, where transformers looks for it: chat_template.jinja, chat_template.json,
 * tokenizer_config.json. */
static int load_template(struct model *model) {
    static const char *const files[] = {"chat_template.json", "tokenizer_config.json"};
    char *path = join_path(model->name, "chat_template.jinja"), *template_text = NULL;
    size_t bytes = 0;
    int code = access(path, F_OK) == 0 ? file_read_in(model->name, "chat_template.jinja", &template_text, &bytes,
                                                      &model->identity)
                                       : 0;
    for (int i = 0; i < 2 && !code; i++) {
        struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
        char *text = NULL;
        code = read_optional(model, files[i], &text, &parsed);
        if (!code && text && !template_text)
            template_text = whole_text(&parsed.json, vp_json_get(&parsed.json, 0, "chat_template"));
        /* OLMoE's template begins with this token, the others name theirs */
        if (!code && text && i == 1 && model->processor.kind == VP_PROCESSOR_OLMOE)
            model->prompt_front = token_text(&parsed.json, "bos_token");
        free(parsed.nodes);
        free(text);
    }
    model->has_template = template_text != NULL;
    model->knows_template =
        template_text && vp_processor_knows_template(model->processor.kind, template_text, strlen(template_text));
    free(template_text);
    free(path);
    return code;
}

int other_model_load(struct model *model, const vp_json *config, const vp_json *preprocessor) {
    const char *placeholder = vp_processor_placeholder(kind_of(model));
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int32_t rows = model->config.embedding_size + model->config.additional_vocab_size;
    int code = 0;
    memset(&model->ids, 0xFF, sizeof model->ids);
    model->ids.bos = vp_tokenizer_bos(model->tokenizer);
    result = vp_processor_read(kind_of(model), &model->config.geometry, preprocessor, &model->processor, &error);
    if (result != VP_OK) return complain_result(EXIT_INPUT, model->name, result, &error);
    model->image_token = vp_tokenizer_added_id(model->tokenizer, placeholder);
    if (placeholder && model->image_token < 0)
        return complain(EXIT_INPUT, "%s: tokenizer.json has no token %s, which stands for an image", model->name,
                        placeholder);
    if (model->image_token >= rows || model->ids.bos >= rows)
        return complain(EXIT_INPUT, "%s: a special token of tokenizer.json has no embedding: config.json has %d rows",
                        model->name, rows);
    code = load_eos(model, config);
    return code ? code : load_template(model);
}
void other_model_preset(struct model *model) {
    model->processor.kind = VP_PROCESSOR_OLMOE;
    model->ids.bos = model->image_token = -1;
    model->has_template = model->knows_template = 1;
}
void other_model_free(struct model *model) { free(model->prompt_front); }

int other_model_prompt(const struct model *model, const char *text, int raw, int has_image, char **prompt) {
    struct text_buffer made = {NULL, 0, 0};
    const vp_processor_kind kind = model->processor.kind;
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
    if (model->prompt_front) text_add_string(&made, model->prompt_front);
    text_add_string(&made, formatted);
    free(formatted);
    *prompt = made.data;
    if (!model->knows_template)
        complain(0,
                 "%s: %s; the prompt is as the published %s has it (--show_prompt prints it, --raw_prompt takes "
                 "another)",
                 model->name, model->has_template ? "its chat template is not the known one" : "it has no chat template",
                 vp_architecture_name(model->config.architecture));
    return 0;
}

int other_model_picture(const struct model *model, const char *path, int32_t width_px, int32_t height_px,
                        vp_picture *picture, vp_layout *layout) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_processor_picture(&model->processor, width_px, height_px, picture, &error);
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

int other_model_tokenize(const struct model *model, const vp_picture *picture, const vp_layout *layout,
                         struct sample *sample) {
    const char *placeholder = vp_processor_placeholder(model->processor.kind);
    char *prompt = sample->prompt, *expanded;
    size_t needed = 0;
    int code;
    if (vp_processor_expand(&model->processor, picture, prompt, NULL, 0, &needed) == VP_ERR_MISMATCH)
        return complain(EXIT_USAGE,
                        picture ? "the prompt must have %s once, where the image goes"
                                : "the prompt has %s, but no image is given",
                        placeholder);
    expanded = resize(NULL, needed + 1, 1);
    vp_processor_expand(&model->processor, picture, prompt, expanded, needed + 1, &needed);
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

int other_model_index(const struct model *model, const int32_t *ids, int32_t id_count, int32_t *index, size_t count) {
    size_t found = 0;
    for (int32_t i = 0; i < id_count; i++)
        if (ids[i] == model->image_token && found++ < count) index[found - 1] = i;
    return found == count;
}
