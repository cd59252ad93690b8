/* hf.c: the rules of models whose Hugging Face folders describe how prompts and images are made. Their processor cuts
 * the image, and the image's tokens replace a placeholder in the prompt. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "model/model.h"
#include "model/rules.h"

static vp_processor_kind kind_of(const vp_model_config *config) {
    static const vp_processor_kind kinds[VP_ARCHITECTURE_COUNT] = { /* 0, of all others, is OLMoE's */
        [VP_ARCHITECTURE_LLAVA] = VP_PROCESSOR_LLAVA, [VP_ARCHITECTURE_IDEFICS3] = VP_PROCESSOR_IDEFICS3,
        [VP_ARCHITECTURE_SMOLVLM] = VP_PROCESSOR_IDEFICS3, [VP_ARCHITECTURE_INTERNVL] = VP_PROCESSOR_INTERNVL,
        [VP_ARCHITECTURE_INTERNVL_CHAT] = VP_PROCESSOR_INTERNVL_CHAT,
        [VP_ARCHITECTURE_QWEN2_5_VL] = VP_PROCESSOR_QWEN2_5_VL, [VP_ARCHITECTURE_QWEN3_VL] = VP_PROCESSOR_QWEN3_VL,
        [VP_ARCHITECTURE_QWEN3_VL_MOE] = VP_PROCESSOR_QWEN3_VL, [VP_ARCHITECTURE_GEMMA3] = VP_PROCESSOR_GEMMA3,
        [VP_ARCHITECTURE_MOLMO2] = VP_PROCESSOR_MOLMO2, [VP_ARCHITECTURE_LLAMA] = VP_PROCESSOR_PLAIN,
        [VP_ARCHITECTURE_QWEN2] = VP_PROCESSOR_PLAIN, [VP_ARCHITECTURE_QWEN3] = VP_PROCESSOR_PLAIN,
        [VP_ARCHITECTURE_QWEN3_MOE] = VP_PROCESSOR_PLAIN, [VP_ARCHITECTURE_GEMMA3_TEXT] = VP_PROCESSOR_PLAIN};
    return kinds[config->architecture];
}

/* Reads eos_token_id: an id or a list of ids. Absent or null leaves *count unchanged. Returns 0 or an exit code. */
static int read_eos(const char *folder, const vp_json *json, uint32_t object, int32_t *eos, uint32_t *count) {
    const uint32_t node = vp_json_get(json, object, "eos_token_id");
    const int is_list = node_is(json, node, VP_JSON_ARRAY);
    uint32_t found = 0, item = is_list ? node + 1 : node;
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return 0;
    if (is_list && json->nodes[node].count > MORE_EOS_MOST + 1)
        return complain(EXIT_INPUT, "%s: eos_token_id lists %u end tokens; vlmprof supports at most %d", folder,
                        json->nodes[node].count, MORE_EOS_MOST + 1);
    for (; item < json->nodes[node].end; item = json->nodes[item].end) {
        int64_t id = -1;
        if (vp_json_to_int(json, item, &id) != VP_OK || id < 0 || id > INT32_MAX)
            return complain(EXIT_INPUT, "%s: eos_token_id is neither a token id nor a list of token ids", folder);
        eos[found++] = (int32_t)id;
    }
    *count = found;
    return 0;
}
static int load_eos(struct model *model, const vp_json *config) {
    const char *folder = model->name;
    int32_t found[MORE_EOS_MOST + 1];
    struct json_file generation = {0};
    uint32_t count = 0;
    int code = json_file_read(folder, "generation_config.json", 0, &generation, &model->identity);
    if (!code && generation.text) code = read_eos(folder, &generation.parsed.json, 0, found, &count);
    if (!code && !count) code = read_eos(folder, config, 0, found, &count);
    if (!code && !count) {
        const uint32_t inner = vp_json_get(config, 0, "text_config");
        if (inner != VP_JSON_NONE) code = read_eos(folder, config, inner, found, &count);
    }
    if (!code && count) {
        model->ids.eos = found[0];
        model->more_eos_count = (int32_t)count - 1;
        memcpy(model->more_eos, found + 1, (count - 1) * sizeof *found);
    }
    FREE_ALL(generation.parsed.nodes, generation.text);
    return code;
}

/* The text of a token in tokenizer_config.json, malloc'ed: a string, or an object with `content`. */
static char *token_text(const vp_json *json, const char *key) {
    uint32_t node = vp_json_get(json, 0, key);
    if (node_is(json, node, VP_JSON_OBJECT)) node = vp_json_get(json, node, "content");
    return node_is(json, node, VP_JSON_STRING) ? node_text(json, node) : NULL;
}
/* settings from files next to preprocessor_config.json */
static int load_text(struct model *model) {
    static const char *const names[] = {"processor_config.json", "tokenizer_config.json"};
    struct json_file file[2] = {0};
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++)
        code = json_file_read(model->name, names[i], 0, &file[i], &model->identity);
    vp_result result = code ? VP_OK
                            : vp_processor_read_text(&model->processor, file[0].text ? &file[0].parsed.json : NULL,
                                                     file[1].text ? &file[1].parsed.json : NULL, &error);
    if (result != VP_OK) code = complain_result(EXIT_INPUT, model->name, result, &error);
    for (int i = 0; i < 2; i++) FREE_ALL(file[i].parsed.nodes, file[i].text);
    return code;
}

/* Reports whether prompts follow the folder's chat template. */
static void note_template(struct model *model, int has_template, int is_known) {
    char note[LINE_BYTES];
    if (model->processor.kind == VP_PROCESSOR_PLAIN) {
        if (!has_template) return;
        snprintf(note, sizeof note, "unknown chat template: the prompt is the raw text");
    } else if (is_known) return;
    else
        snprintf(note, sizeof note,
                 "%s; using the prompt of the published %s (--show_prompt prints it, --raw_prompt replaces it)",
                 has_template ? "its chat template is unknown" : "it has no chat template",
                 vp_architecture_name(model->config.architecture));
    model->prompt_note = copy_text(note, strlen(note));
}
/* Reads the folder's chat template from where transformers looks for it: chat_template.jinja, chat_template.json,
 * tokenizer_config.json. */
static int load_template(struct model *model) {
    static const char *const names[] = {"chat_template.json", "tokenizer_config.json"};
    const char *folder = model->name;
    char *template_text = NULL;
    size_t bytes = 0;
    int code = file_is_in(folder, "chat_template.jinja")
                   ? file_read_in(folder, "chat_template.jinja", &template_text, &bytes, &model->identity)
                   : 0;
    for (int i = 0; i < 2 && !code; i++) {
        struct json_file file = {0};
        const vp_json *json = &file.parsed.json;
        code = json_file_read(folder, names[i], 0, &file, &model->identity);
        if (!code && file.text && !template_text)
            template_text = node_text(json, vp_json_get(json, 0, "chat_template"));
        /* OLMoE's template begins with this token; the others name theirs */
        if (!code && file.text && i == 1 && model->processor.kind == VP_PROCESSOR_OLMOE)
            model->prompt_front = token_text(json, "bos_token");
        FREE_ALL(file.parsed.nodes, file.text);
    }
    if (template_text && model->processor.kind == VP_PROCESSOR_PLAIN)
        model->processor.kind = vp_processor_text_kind(template_text, strlen(template_text));
    note_template(model, template_text != NULL,
                  template_text
                      && vp_processor_knows_template(model->processor.kind, template_text, strlen(template_text)));
    free(template_text);
    return code;
}

/* InternVL's original format: config.json has the numbers of tiles and the name of the prompt's template, and the
 * template's separator ends an answer. The reference does not use the chat_template of its tokenizer. */
static int load_internvl_chat(struct model *model, const vp_json *json) {
    static const char *const flags[] = {"dynamic_image_size", "use_thumbnail"};
    static const char *const numbers[][2] = {{"min_dynamic_patch", "min_patches"},
                                             {"max_dynamic_patch", "max_patches"}};
    const uint32_t template_node = vp_json_get(json, 0, "template");
    vp_error error = {VP_OK, -1, "", ""};
    for (int i = 0; i < 2; i++) {
        const uint32_t flag = vp_json_get(json, 0, flags[i]), number = vp_json_get(json, 0, numbers[i][0]);
        int64_t value = 0;
        if (!node_is(json, flag, VP_JSON_TRUE))
            return complain(EXIT_INPUT, "%s: config.json: %s: only true is supported", model->name, flags[i]);
        if (number == VP_JSON_NONE) continue;
        if (vp_json_to_int(json, number, &value) != VP_OK
            || vp_family_set_number(&model->processor.family, numbers[i][1], (double)value, &error) != VP_OK)
            return complain(EXIT_INPUT, "%s: config.json: %s is not a number of tiles", model->name, numbers[i][0]);
    }
    note_template(model, 1,
                  node_is(json, template_node, VP_JSON_STRING) && vp_json_equals(json, template_node, "internvl2_5"));
    model->ids.eos = vp_tokenizer_added_id(model->tokenizer, "<|im_end|>");
    return 0;
}

static int hf_load(struct model *model, const char *what, const vp_json *config_json, const vp_json *preprocessor) {
    const vp_model_config *config = &model->config;
    const vp_processor_kind kind = kind_of(config);
    const char *image_token = vp_processor_image_token(kind);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_processor_read(kind, &config->geometry, preprocessor, &model->processor, &error);
    int32_t rows = config->embedding_size + config->additional_vocab_size;
    (void)what;
    if (result != VP_OK) return complain_result(EXIT_INPUT, model->name, result, &error);
    memset(&model->ids, 0xFF, sizeof model->ids);
    model->ids.bos = vp_tokenizer_bos(model->tokenizer);
    model->image_token = vp_tokenizer_added_id(model->tokenizer, image_token);
    if (image_token && model->image_token < 0)
        return complain(EXIT_INPUT, "%s: its tokenizer has no token %s, which represents an image", model->name,
                        image_token);
    if (model->image_token >= rows || model->ids.bos >= rows)
        return complain(EXIT_INPUT, "%s: a special token of tokenizer.json has no embedding: config.json has only %d "
                                    "rows",
                        model->name, rows);
    if (kind == VP_PROCESSOR_INTERNVL_CHAT) return load_internvl_chat(model, config_json);
    int code = load_eos(model, config_json);
    if (!code && kind == VP_PROCESSOR_MOLMO2) code = load_text(model);
    return code ? code : load_template(model);
}

/* ---- presets */
static const char *const markers_of[VP_PROCESSOR_COUNT][8] = {
    {"<|endoftext|>"},
    {"</s>", "<image>"},
    {"<end_of_utterance>", "<image>", "<|im_start|>", "<fake_token_around_image>", "<global-img>"},
    {"<|im_end|>", "<IMG_CONTEXT>", "<|im_start|>", "<img>", "</img>"},
    {"<|im_end|>", "<|image_pad|>", "<|im_start|>", "<|vision_start|>", "<|vision_end|>"},
    {"<|im_end|>", "<|image_pad|>", "<|im_start|>", "<|vision_start|>", "<|vision_end|>"},
    {"<end_of_turn>", "<image_soft_token>", "<start_of_turn>", "<start_of_image>", "<end_of_image>", "<bos>"},
    {"<|im_end|>", "<im_patch>", "<|im_start|>", "<|image|>", "<im_start>", "<low_res_im_start>", "<im_end>",
     "<im_col>"},
    {"<|endoftext|>"},
    {"<|im_end|>", "<IMG_CONTEXT>", "<|im_start|>", "<img>", "</img>"},
}; /* the first id ends an answer */

/* Lists all markers of a kind; Idefics3's also name the positions of its views. */
static void list_markers(vp_processor_kind kind, struct text_list *markers) {
    for (int i = 0; i < 8 && markers_of[kind][i]; i++) text_list_copy(markers, markers_of[kind][i]);
    for (int place = 0; kind == VP_PROCESSOR_IDEFICS3 && place < 36; place++)
        text_list_add(markers, "<row_%d_col_%d>", place / 6 + 1, place % 6 + 1);
}
/* Makes a tokenizer.json with one token per byte, in GPT-2's alphabet, and the markers; the first marker has the last
 * id. */
static char *bytes_json(const struct text_list *markers, int32_t last_id) {
    struct text_buffer json = {NULL, 0, 0};
    char row[200];
    int32_t shifted = 256;
    text_add_string(&json, "{\"version\":\"1.0\",\"added_tokens\":[");
    for (size_t i = 0; i < markers->count; i++) {
        snprintf(row, sizeof row,
                 "%s{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                 "\"normalized\":false,\"special\":true}",
                 i ? "," : "", last_id - (int32_t)i, markers->items[i]);
        text_add_string(&json, row);
    }
    text_add_string(&json, "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
                           "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int32_t byte = 0; byte < 256; byte++) {
        const int is_shown = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        text_add_format(&json, "\"\\u%04x\":%d,", (unsigned)(is_shown ? byte : shifted++), byte);
    }
    for (size_t i = 0; i < markers->count; i++)
        text_add_format(&json, "%s\"%s\":%d", i ? "," : "", markers->items[i], last_id - (int32_t)i);
    text_add_string(&json, "},\"merges\":[]}}");
    return json.data;
}
static int hf_load_preset(struct model *model) {
    const vp_processor_kind kind = kind_of(&model->config);
    const char *preprocessor = vp_model_preset_preprocessor(model->name);
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = preprocessor ? parse_json(&parsed, preprocessor, strlen(preprocessor), &error) : VP_OK;
    struct text_list markers = {NULL, 0};
    list_markers(kind, &markers);
    char *json = bytes_json(&markers, model->config.vocab_size - 1);
    text_list_free(&markers);
    if (result == VP_OK)
        result = vp_processor_read(kind, &model->config.geometry, preprocessor ? &parsed.json : NULL, &model->processor,
                                   &error);
    if (result == VP_OK && preprocessor) /* a preset has one file */
        result = vp_processor_read_text(&model->processor, &parsed.json, NULL, &error);
    if (result == VP_OK) result = vp_tokenizer_load(json, strlen(json), &model->tokenizer, &error);
    FREE_ALL(parsed.nodes, json);
    if (result != VP_OK) return complain_result(exit_code_of(result), model->name, result, &error);
    memset(&model->ids, 0xFF, sizeof model->ids);
    model->ids.eos = vp_tokenizer_added_id(model->tokenizer, markers_of[kind][0]);
    model->image_token = vp_tokenizer_added_id(model->tokenizer, vp_processor_image_token(kind));
    return 0;
}

/* ---- images */
static int hf_knobs(const struct model *model, const struct image_size *size, const char *option) {
    const char *name = vp_architecture_name(model->config.architecture);
    vp_processor tried = model->processor;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    if (size->knob) result = vp_processor_set(&tried, size->knob, size->knob_value, &error);
    else if (size->vision_tokens && (!vp_processor_knob(&tried, 0) || model_is_blind(model)))
        result = vp_processor_aim(&tried, 1, 1, size->vision_tokens, &error);
    else if (size->vision_tokens && tried.kind != VP_PROCESSOR_MOLMO2
             && size->vision_tokens < vp_geometry_tokens_per_crop(&tried.geometry))
        return complain(EXIT_USAGE, "--%s %d: even one view of %s has %d tokens", option, size->vision_tokens, name,
                        vp_geometry_tokens_per_crop(&tried.geometry));
    return result == VP_OK ? 0 : complain(EXIT_USAGE, "--%s: %s: %s: %s", size->knob ? "image_knob" : option, name,
                                            error.where, error.text);
}
/* The text around the views of Idefics3 and Gemma 3 may have tokens of its own or not: the line break after the last
 * row, and rows and columns beyond the sixth. The number of markers becomes what the tokenizer makes of them. */
static vp_result count_markers(const struct model *model, vp_layout *layout) {
    const vp_processor *processor = &model->processor;
    const char *placeholder = vp_processor_placeholder(processor->kind);
    size_t bytes = 0, count = 0;
    vp_processor_expand(processor, layout, 1, placeholder, NULL, 0, &bytes);
    char *text = resize(NULL, bytes + 1, 1);
    vp_result result = vp_processor_expand(processor, layout, 1, placeholder, text, bytes + 1, &bytes);
    if (result == VP_OK) result = vp_tokenizer_encode(model->tokenizer, text, bytes, NULL, 0, &count);
    free(text);
    if (result != VP_OK && result != VP_ERR_CAPACITY) return result;
    layout->image_tokens = (int32_t)count;
    layout->marker_tokens = (int32_t)count - layout->feature_tokens - layout->col_tokens;
    return VP_OK;
}
static vp_result hf_cut(const struct model *model, const struct image_size *size, int32_t width_px, int32_t height_px,
                        vp_layout *layout, vp_error *error) {
    vp_processor processor = model->processor;
    vp_result result = VP_OK;
    if (size->knob) result = vp_processor_set(&processor, size->knob, size->knob_value, error);
    else if (size->vision_tokens)
        result = vp_processor_aim(&processor, width_px, height_px, size->vision_tokens, error);
    if (result == VP_OK) result = vp_processor_layout(&processor, width_px, height_px, layout, error);
    return result == VP_OK && (processor.kind == VP_PROCESSOR_IDEFICS3 || processor.kind == VP_PROCESSOR_GEMMA3)
               ? count_markers(model, layout)
               : result;
}
static size_t hf_scratch_bytes(const struct model *model, const vp_layout *layout) {
    const size_t view_px = (size_t)model->processor.view_px;
    return (size_t)layout->views * view_px * view_px * 3;
}

/* ---- prompts */
static const char *hf_one_image(const struct model *model) { return vp_processor_one_image(model->processor.kind); }
static char *hf_prompt(const struct model *model, const char *style, const char *question, const size_t *places,
                       int32_t image_count) {
    struct text_buffer made = {NULL, 0, 0};
    const vp_processor_kind kind = model->processor.kind;
    size_t needed = 0;
    (void)style;
    vp_processor_prompt(kind, question, places, image_count, NULL, 0, &needed);
    char *formatted = resize(NULL, needed + 1, 1);
    vp_processor_prompt(kind, question, places, image_count, formatted, needed + 1, &needed);
    if (model->prompt_front) text_add_string(&made, model->prompt_front);
    text_add_string(&made, formatted);
    free(formatted);
    return made.data;
}
/* Complains about a prompt that contains the video token. */
static int check_videos(const struct model *model, const char *prompt, int code) {
    const char *video = vp_processor_video(model->processor.kind);
    return !video || !strstr(prompt, video)
               ? 0
               : complain(code, "%s in a prompt represents a video; give a video's frames as \"images\"", video);
}
static int hf_count(const struct model *model, const char *prompt, int32_t image_count, struct prompt_tokens *tokens) {
    const char *placeholder = vp_processor_placeholder(model->processor.kind), *front = model->processor.front,
               *first = prompt;
    int32_t found = 0;
    int code = check_videos(model, prompt, EXIT_INPUT);
    if (code) return code;
    while (placeholder && (first = strstr(first, placeholder)) != NULL) {
        first += strlen(placeholder);
        found++;
    }
    if (found != image_count)
        return complain(EXIT_INPUT, "the question contains %s, which represents an image", placeholder);
    code = tokenize_text(model, prompt, tokens);
    free(tokens->ids);
    tokens->ids = NULL;
    tokens->count += (model->ids.bos >= 0) - image_count;       /* a placeholder is one token */
    if (strncmp(prompt, front, strlen(front))) tokens->count++; /* the processor inserts it */
    tokens->no_bos = 1;
    return code;
}
static int hf_tokenize(const struct model *model, const char *prompt, const struct cuts *cuts,
                       struct prompt_tokens *tokens) {
    const char *placeholder = vp_processor_placeholder(model->processor.kind);
    size_t needed = 0;
    int code = check_videos(model, prompt, EXIT_USAGE);
    if (code) return code;
    if (vp_processor_expand(&model->processor, cuts->each, cuts->count, prompt, NULL, 0, &needed) == VP_ERR_MISMATCH)
        return !cuts->count ? complain(EXIT_USAGE, "the prompt has %s, but no image is given", placeholder)
               : cuts->count == 1
                   ? complain(EXIT_USAGE, "the prompt must contain %s once, at the position of the image", placeholder)
                   : complain(EXIT_USAGE, "the prompt must contain %s %d times, at the positions of the "
                                          "images", placeholder,
                              cuts->count);
    char *expanded = resize(NULL, needed + 1, 1);
    vp_processor_expand(&model->processor, cuts->each, cuts->count, prompt, expanded, needed + 1, &needed);
    code = tokenize_text(model, expanded, tokens);
    free(expanded);
    tokens->no_bos = 1;
    if (code) return code;
    if (model->ids.bos >= 0) {
        tokens->ids = resize(tokens->ids, (size_t)tokens->count + 1, sizeof *tokens->ids);
        memmove(tokens->ids + 1, tokens->ids, (size_t)tokens->count++ * sizeof *tokens->ids);
        tokens->ids[0] = model->ids.bos;
    }
    if (cuts->count) tokens->count -= cuts->whole.image_tokens;
    return 0;
}

/* ---- the engine's inputs */
/* Marks the tokens of an image that attend to each other: for Molmo2 all tokens starting at `first`, including start,
 * columns and end; for Gemma 3 the tokens of one view, which are adjacent. */
static void fill_span(int32_t *ends, int32_t first, int32_t tokens, int32_t count) {
    for (int32_t i = first < 0 ? 0 : first; i < first + tokens && i < count; i++) ends[i] = first + tokens;
}
static void fill_spans(const struct model *model, const int32_t *ids, int32_t image_tokens, int32_t count,
                       int32_t *ends) {
    const int32_t token = model->image_token;
    int32_t first = 0;
    for (int32_t i = 0; i < count; i++) ends[i] = i + 1;
    if (model->processor.kind == VP_PROCESSOR_MOLMO2) {
        while (first < count && ids[first] != token) first++;
        fill_span(ends, first - 1, image_tokens, count); /* its start is before the first feature */
        return;
    }
    for (int32_t i = count - 2; i >= 0; i--)
        if (ids[i] == token && ids[i + 1] == token) ends[i] = ends[i + 1];
}
static void hf_spans(const struct model *model, const vp_layout *layout, int32_t count, int32_t *ends) {
    const int is_molmo2 = model->processor.kind == VP_PROCESSOR_MOLMO2;
    const int32_t views = is_molmo2 ? 1 : layout->views,
                  tokens = is_molmo2 ? layout->image_tokens : layout->feature_tokens / views;
    for (int32_t i = 0; i < count; i++) ends[i] = i + 1;
    for (int32_t view = 0; view < views; view++) fill_span(ends, view * tokens, tokens, count);
}
/* The sequence is complete, and patches have no padding. */
static vp_result hf_fill(const struct model *model, const struct cuts *cuts, const vp_image *images,
                         const struct prompt_tokens *tokens, int32_t count, struct input_buffers *buffers) {
    const size_t view_values = (size_t)model->config.geometry.crop_px * (size_t)model->config.geometry.crop_px * 3;
    uint8_t *views = (uint8_t *)buffers->scratch.data;
    float *pixels = (float *)buffers->pixels.data;
    int32_t *ids = (int32_t *)buffers->ids.data;
    int32_t found = 0;
    memcpy(ids, tokens->ids, (size_t)count * sizeof *ids);
    if (!cuts->count) return VP_OK;
    for (int32_t i = 0; i < cuts->count; i++) {
        const vp_result result = vp_processor_views(&model->processor, &cuts->each[i], images[i].rgb, views);
        if (result != VP_OK) return result;
        vp_processor_pixels(&model->processor, &cuts->each[i], views, pixels);
        pixels += (size_t)cuts->each[i].views * view_values;
    }
    memset(buffers->masks.data, 0, buffers->masks.bytes);
    if (model->config.image_bidirectional)
        fill_spans(model, ids, cuts->whole.image_tokens, count, (int32_t *)buffers->spans.data);
    for (int32_t i = 0; i < count; i++) /* features are assigned to the image tokens in order */
        if (ids[i] == model->image_token && found++ < cuts->whole.feature_tokens)
            ((int32_t *)buffers->index.data)[found - 1] = i;
    return found == cuts->whole.feature_tokens ? VP_OK : VP_ERR_MISMATCH;
}

const struct model_rules HF_RULES = {
    .load = hf_load, .load_preset = hf_load_preset, .one_image = hf_one_image,
    .prompt = hf_prompt, .knobs = hf_knobs, .cut = hf_cut,
    .count = hf_count, .tokenize = hf_tokenize, .scratch_bytes = hf_scratch_bytes, .fill = hf_fill,
    .spans = hf_spans};
