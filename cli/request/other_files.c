/* other_files.c: what the folder of a model other than Molmo says about prompts and images. */
#include "request/other_files.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static vp_processor_kind kind_of(const vp_model_config *config) {
    switch (config->architecture) {
    case VP_ARCHITECTURE_LLAVA: return VP_PROCESSOR_LLAVA;
    case VP_ARCHITECTURE_IDEFICS3:
    case VP_ARCHITECTURE_SMOLVLM: return VP_PROCESSOR_IDEFICS3;
    case VP_ARCHITECTURE_INTERNVL: return VP_PROCESSOR_INTERNVL;
    case VP_ARCHITECTURE_INTERNVL_CHAT: return VP_PROCESSOR_INTERNVL_CHAT;
    case VP_ARCHITECTURE_QWEN2_5_VL: return VP_PROCESSOR_QWEN2_5_VL;
    case VP_ARCHITECTURE_QWEN3_VL:
    case VP_ARCHITECTURE_QWEN3_VL_MOE: return VP_PROCESSOR_QWEN3_VL;
    case VP_ARCHITECTURE_GEMMA3: return VP_PROCESSOR_GEMMA3;
    case VP_ARCHITECTURE_MOLMO2: return VP_PROCESSOR_MOLMO2;
    case VP_ARCHITECTURE_LLAMA:
    case VP_ARCHITECTURE_QWEN2:
    case VP_ARCHITECTURE_QWEN3:
    case VP_ARCHITECTURE_QWEN3_MOE:
    case VP_ARCHITECTURE_GEMMA3_TEXT: return VP_PROCESSOR_PLAIN;
    default: return VP_PROCESSOR_OLMOE;
    }
}

/* A JSON file of the folder that may be absent: *text is NULL then. The caller frees *text and parsed->nodes. */
static int read_optional(const struct model_files *source, const char *name, char **text, struct parsed *parsed,
                         uint64_t *identity) {
    char *path = join_path(source->name, name);
    size_t bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code = model_files_has(source, name) ? model_files_read(source, name, text, &bytes, identity) : 0;
    if (!code && *text && (result = parse_json(parsed, *text, bytes, &error)) != VP_OK)
        code = complain_result(EXIT_INPUT, path, result, &error);
    free(path);
    return code;
}

/* eos_token_id: an id or a list of them; absent or null leaves *count as it is. Returns 0 or an exit code. */
static int read_eos(const char *folder, const vp_json *json, uint32_t object, int32_t *eos, uint32_t *count) {
    const uint32_t node = vp_json_get(json, object, "eos_token_id");
    const int is_list = node_is(json, node, VP_JSON_ARRAY);
    uint32_t found = 0, item = is_list ? node + 1 : node;
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return 0;
    if (is_list && json->nodes[node].count > OTHER_MORE_EOS + 1)
        return complain(EXIT_INPUT, "%s: eos_token_id names %u tokens that end an answer; vlmprof reads %d", folder,
                        json->nodes[node].count, OTHER_MORE_EOS + 1);
    for (; item < json->nodes[node].end; item = json->nodes[item].end) {
        int64_t id = -1;
        if (vp_json_to_int(json, item, &id) != VP_OK || id < 0 || id > INT32_MAX)
            return complain(EXIT_INPUT, "%s: eos_token_id is neither a token's id nor a list of them", folder);
        eos[found++] = (int32_t)id;
    }
    *count = found;
    return 0;
}
static int load_eos(const struct model_files *source, const vp_json *config, struct other_files *files, int32_t *eos,
                    uint64_t *identity) {
    int32_t found[OTHER_MORE_EOS + 1];
    struct parsed generation = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    uint32_t count = 0;
    int code = read_optional(source, "generation_config.json", &text, &generation, identity);
    if (!code && text) code = read_eos(source->name, &generation.json, 0, found, &count);
    if (!code && !count) code = read_eos(source->name, config, 0, found, &count);
    if (!code && !count) {
        const uint32_t inner = vp_json_get(config, 0, "text_config");
        if (inner != VP_JSON_NONE) code = read_eos(source->name, config, inner, found, &count);
    }
    if (!code && count) {
        *eos = found[0];
        files->more_eos_count = (int32_t)count - 1;
        memcpy(files->more_eos, found + 1, (count - 1) * sizeof *found);
    }
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

/* what stands in files beside preprocessor_config.json */
static int load_text(const struct model_files *source, vp_processor *processor, uint64_t *identity) {
    static const char *const names[] = {"processor_config.json", "tokenizer_config.json"};
    struct parsed parsed[2] = {{{NULL, NULL, 0}, NULL, 0}, {{NULL, NULL, 0}, NULL, 0}};
    char *text[2] = {NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) code = read_optional(source, names[i], &text[i], &parsed[i], identity);
    result = code ? VP_OK : vp_processor_read_text(processor, text[0] ? &parsed[0].json : NULL,
                                                   text[1] ? &parsed[1].json : NULL, &error);
    if (result != VP_OK) code = complain_result(EXIT_INPUT, source->name, result, &error);
    for (int i = 0; i < 2; i++) {
        free(parsed[i].nodes);
        free(text[i]);
    }
    return code;
}

/* The folder's chat template, where transformers looks for it: chat_template.jinja, chat_template.json,
 * tokenizer_config.json. */
static int load_template(const struct model_files *source, struct other_files *files, uint64_t *identity) {
    static const char *const names[] = {"chat_template.json", "tokenizer_config.json"};
    char *template_text = NULL;
    size_t bytes = 0;
    int code = model_files_has(source, "chat_template.jinja")
                   ? model_files_read(source, "chat_template.jinja", &template_text, &bytes, identity)
                   : 0;
    for (int i = 0; i < 2 && !code; i++) {
        struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
        char *text = NULL;
        code = read_optional(source, names[i], &text, &parsed, identity);
        if (!code && text && !template_text)
            template_text = whole_text(&parsed.json, vp_json_get(&parsed.json, 0, "chat_template"));
        /* OLMoE's template begins with this token, the others name theirs */
        if (!code && text && i == 1 && files->processor.kind == VP_PROCESSOR_OLMOE)
            files->prompt_front = token_text(&parsed.json, "bos_token");
        free(parsed.nodes);
        free(text);
    }
    files->has_template = template_text != NULL;
    if (template_text && files->processor.kind == VP_PROCESSOR_PLAIN)
        files->processor.kind = vp_processor_text_kind(template_text, strlen(template_text));
    files->knows_template =
        template_text && vp_processor_knows_template(files->processor.kind, template_text, strlen(template_text));
    free(template_text);
    return code;
}

/* InternVL's original form: numbers of tiles and the name of the prompt's template stand in config.json, and the
 * template's separator ends an answer. A chat_template of its tokenizer is not used by the reference. */
static int load_internvl_chat(const struct model_files *source, const vp_json *json, const vp_tokenizer *tokenizer,
                              struct other_files *files, int32_t *eos) {
    static const char *const flags[] = {"dynamic_image_size", "use_thumbnail"};
    static const char *const numbers[][2] = {{"min_dynamic_patch", "min_patches"},
                                             {"max_dynamic_patch", "max_patches"}};
    const uint32_t template_node = vp_json_get(json, 0, "template");
    vp_error error = {VP_OK, -1, "", ""};
    for (int i = 0; i < 2; i++) {
        const uint32_t flag = vp_json_get(json, 0, flags[i]), number = vp_json_get(json, 0, numbers[i][0]);
        int64_t value = 0;
        if (!node_is(json, flag, VP_JSON_TRUE))
            return complain(EXIT_INPUT, "%s: config.json: %s: only true is implemented", source->name, flags[i]);
        if (number == VP_JSON_NONE) continue;
        if (vp_json_to_int(json, number, &value) != VP_OK
            || vp_family_set_number(&files->processor.family, numbers[i][1], (double)value, &error) != VP_OK)
            return complain(EXIT_INPUT, "%s: config.json: %s is no number of tiles", source->name, numbers[i][0]);
    }
    files->has_template = 1;
    files->knows_template = node_is(json, template_node, VP_JSON_STRING)
                            && vp_json_equals(json, template_node, "internvl2_5");
    *eos = vp_tokenizer_added_id(tokenizer, "<|im_end|>");
    return 0;
}

int other_files_load(const struct model_files *source, const vp_model_config *config, const vp_tokenizer *tokenizer,
                     const vp_json *config_json, const vp_json *preprocessor, struct other_files *files,
                     vp_special_ids *ids, uint64_t *identity) {
    const char *image_token = vp_processor_image_token(kind_of(config));
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_processor_read(kind_of(config), &config->geometry, preprocessor, &files->processor, &error);
    int32_t rows = config->embedding_size + config->additional_vocab_size;
    int code;
    if (result != VP_OK) return complain_result(EXIT_INPUT, source->name, result, &error);
    memset(ids, 0xFF, sizeof *ids);
    ids->bos = vp_tokenizer_bos(tokenizer);
    files->image_token = vp_tokenizer_added_id(tokenizer, image_token);
    if (image_token && files->image_token < 0)
        return complain(EXIT_INPUT, "%s: its tokenizer has no token %s, which stands for an image",
                        source->name, image_token);
    if (files->image_token >= rows || ids->bos >= rows)
        return complain(EXIT_INPUT, "%s: a special token of tokenizer.json has no embedding: config.json has %d rows",
                        source->name, rows);
    if (files->processor.kind == VP_PROCESSOR_INTERNVL_CHAT)
        return load_internvl_chat(source, config_json, tokenizer, files, &ids->eos);
    code = load_eos(source, config_json, files, &ids->eos, identity);
    if (!code && files->processor.kind == VP_PROCESSOR_MOLMO2)
        code = load_text(source, &files->processor, identity);
    return code ? code : load_template(source, files, identity);
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
}; /* the first one ends an answer */

/* all of a kind; Idefics3's name the places of its views, too */
static void list_markers(vp_processor_kind kind, struct text_list *markers) {
    for (int i = 0; i < 8 && markers_of[kind][i]; i++) text_list_copy(markers, markers_of[kind][i]);
    for (int place = 0; kind == VP_PROCESSOR_IDEFICS3 && place < 36; place++)
        text_list_add(markers, "<row_%d_col_%d>", place / 6 + 1, place % 6 + 1);
}
/* tokenizer.json of a token per byte, in GPT-2's alphabet, and of the markers, the first one with the last id */
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
        snprintf(row, sizeof row, "\"\\u%04x\":%d,", (unsigned)(is_shown ? byte : shifted++), byte);
        text_add_string(&json, row);
    }
    for (size_t i = 0; i < markers->count; i++) {
        snprintf(row, sizeof row, "%s\"%s\":%d", i ? "," : "", markers->items[i], last_id - (int32_t)i);
        text_add_string(&json, row);
    }
    text_add_string(&json, "},\"merges\":[]}}");
    return json.data;
}
int other_files_preset(const char *name, const vp_model_config *config, struct other_files *files, vp_special_ids *ids,
                       vp_tokenizer **tokenizer) {
    const vp_processor_kind kind = kind_of(config);
    const char *preprocessor = vp_model_preset_preprocessor(name), *image_token = vp_processor_image_token(kind);
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = preprocessor ? parse_json(&parsed, preprocessor, strlen(preprocessor), &error) : VP_OK;
    struct text_list markers = {NULL, 0};
    char *json;
    list_markers(kind, &markers);
    json = bytes_json(&markers, config->vocab_size - 1);
    text_list_free(&markers);
    if (result == VP_OK)
        result = vp_processor_read(kind, &config->geometry, preprocessor ? &parsed.json : NULL, &files->processor,
                                   &error);
    if (result == VP_OK && preprocessor) /* a preset has one file */
        result = vp_processor_read_text(&files->processor, &parsed.json, NULL, &error);
    if (result == VP_OK) result = vp_tokenizer_load(json, strlen(json), tokenizer, &error);
    free(parsed.nodes);
    free(json);
    if (result != VP_OK) return complain_result(exit_code_of(result), name, result, &error);
    memset(ids, 0xFF, sizeof *ids);
    ids->eos = vp_tokenizer_added_id(*tokenizer, markers_of[kind][0]);
    files->image_token = vp_tokenizer_added_id(*tokenizer, image_token);
    files->has_template = files->knows_template = 1;
    return 0;
}
void other_files_free(struct other_files *files) { free(files->prompt_front); }
