/* json.c: small helpers over the library's JSON writer and reader.
 * Values go in and JSON text comes out at the writer's sink; or JSON text goes in and values come out. */
#include "base/json.h"

#include "base/console.h"
#include "base/files.h"

#include <math.h>

vp_result text_sink(void *user, const char *text, size_t bytes) {
    text_add((struct text_buffer *)user, text, bytes);
    return VP_OK;
}
vp_result file_sink(void *user, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, (FILE *)user) == bytes ? VP_OK : VP_ERR_WRITE;
}

int json_end(vp_json_writer *writer) {
    /* flushed, so that stderr does not split a line if both streams go to the same pipe */
    return vp_json_finish(writer) == VP_OK && putchar('\n') != EOF && !fflush(stdout) ? 0 : output_failed();
}
void json_lossy(vp_json_writer *writer, const char *text) {
    char *copy = copy_text(text, strlen(text));
    for (char *rest = copy; *rest;) {
        rest += vp_utf8_valid_bytes(rest, strlen(rest));
        if (*rest) *rest++ = '?';
    }
    vp_json_string(writer, copy);
    free(copy);
}
void put_text(vp_json_writer *writer, const char *key, const char *text) { PUT(writer, KEY(key, text)); }
void put_int(vp_json_writer *writer, const char *key, int64_t value) { PUT(writer, KEY(key, value)); }
void put_bool(vp_json_writer *writer, const char *key, int value) { PUT(writer, KEY_BOOL(key, value)); }
void json_double_or_null(vp_json_writer *writer, double value) {
    if (isfinite(value)) vp_json_double(writer, value);
    else vp_json_null(writer);
}
void put_double(vp_json_writer *writer, const char *key, double value) { PUT(writer, KEY(key, value)); }
void put_pair(vp_json_writer *writer, const char *key, int64_t first, int64_t second) {
    PUT(writer, KEY_ARRAY(key), KEY(NULL, first), KEY(NULL, second), END_ARRAY);
}
void put_null(vp_json_writer *writer, const char *key) { PUT(writer, KEY_NULL(key)); }
void put_ints(vp_json_writer *writer, const char *key, const int32_t *values, int32_t count) {
    PUT(writer, KEY_ARRAY(key));
    for (int32_t i = 0; i < count; i++) vp_json_int(writer, values[i]);
    vp_json_end_array(writer);
}
vp_result parse_json(struct parsed *parsed, const char *text, size_t bytes, vp_error *error) {
    size_t needed = 0;
    vp_result result = vp_json_parse(text, bytes, parsed->nodes, parsed->capacity, &parsed->json, &needed, error);
    if (result != VP_ERR_CAPACITY) return result;
    parsed->capacity = needed * 2;
    parsed->nodes = resize(parsed->nodes, parsed->capacity, sizeof *parsed->nodes);
    return vp_json_parse(text, bytes, parsed->nodes, parsed->capacity, &parsed->json, &needed, error);
}
int json_file_read(const char *folder, const char *name, int required, struct json_file *file, uint64_t *identity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *path = join_path(folder, name);
    int code = 0;
    if (required || file_is_in(folder, name))
        code = file_read_in(folder, name, &file->text, &file->bytes, identity);
    if (!code && file->text) {
        if (file->bytes > 2 && !memcmp(file->text, "\xEF\xBB\xBF", 3)) memset(file->text, ' ', 3);
        vp_json_blank_words(file->text, file->bytes);
        vp_result result = parse_json(&file->parsed, file->text, file->bytes, &error);
        if (result == VP_OK && !node_is(&file->parsed.json, 0, VP_JSON_OBJECT))
            result = vp_error_set(&error, VP_ERR_FORMAT, -1, path, "not a JSON object");
        if (result != VP_OK) code = complain_result(exit_code_of(result), path, result, &error);
    }
    free(path);
    return code;
}
int model_files_read(const char *folder, int needs_config, struct model_files *files, uint64_t *identity) {
    static const char *const names[CONFIG_COUNT] = {"preprocessor_config.json", "processor_config.json", "config.json"};
    int code = 0;
    for (int i = CONFIG_COUNT - 1; i >= 0 && !code; i--) {
        code = json_file_read(folder, names[i], needs_config && i == MODEL_CONFIG, &files->file[i], identity);
        if (files->file[i].text) files->json[i] = &files->file[i].parsed.json;
    }
    return code;
}
void model_files_free(struct model_files *files) {
    for (int i = 0; i < CONFIG_COUNT; i++) FREE_ALL(files->file[i].text, files->file[i].parsed.nodes);
}
int node_is(const vp_json *json, uint32_t node, vp_json_type type) {
    return node != VP_JSON_NONE && json->nodes[node].type == (uint8_t)type;
}
char *node_text(const vp_json *json, uint32_t node) {
    size_t needed = 0;
    if (!node_is(json, node, VP_JSON_STRING)) return NULL;
    char *out = resize(NULL, (size_t)json->nodes[node].bytes + 1, 1); /* a text without its escapes is never longer */
    if (vp_json_text(json, node, out, (size_t)json->nodes[node].bytes + 1, &needed) != VP_OK || strlen(out) != needed) {
        free(out);
        return NULL;
    }
    return out;
}
char *node_value(const vp_json *json, uint32_t node) {
    return node_is(json, node, VP_JSON_NUMBER)
               ? copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes)
               : node_text(json, node);
}
/* Adds the elements of a list. Returns 0 if one is not a text. */
static int add_values(const vp_json *json, uint32_t list, struct text_list *values) {
    if (!node_is(json, list, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end) {
        char *text = node_is(json, i, VP_JSON_NULL) ? copy_text("", 0) : node_value(json, i);
        if (!text) return 0;
        text_list_take(values, text);
    }
    return 1;
}
const char *json_options(const vp_json *json, uint32_t object, struct text_list *options, struct text_list *labels) {
    static const char wrong[] =
        "\"options\" (or \"choices\") must be a list of strings, or an object that maps labels to strings";
    const char *key = has_value(json, object, "options") ? "options" : "choices";
    const uint32_t node = vp_json_get(json, object, key);
    const uint32_t texts = node_is(json, node, VP_JSON_OBJECT) ? vp_json_get(json, node, "text") : VP_JSON_NONE;
    if (!has_value(json, object, key)) return NULL;
    if (node_is(json, node, VP_JSON_STRING)) {
        struct parsed parsed = {0};
        struct text_buffer whole = {NULL, 0, 0};
        char *text = node_text(json, node);
        text_add_string(&whole, "{\"options\": ");
        text_add_string(&whole, text ? text : "");
        text_add_string(&whole, "}");
        const int is_json = parse_json(&parsed, whole.data, whole.bytes, NULL) == VP_OK
                            && !node_is(&parsed.json, vp_json_get(&parsed.json, 0, "options"), VP_JSON_STRING);
        const char *bad = is_json ? json_options(&parsed.json, 0, options, labels) : wrong;
        FREE_ALL(parsed.nodes, text, whole.data);
        return bad;
    }
    if (node_is(json, texts, VP_JSON_ARRAY)) {
        const uint32_t names = vp_json_get(json, node, "label");
        const int good = add_values(json, texts, options) && (names == VP_JSON_NONE || add_values(json, names, labels));
        return good && (!labels->count || labels->count == options->count) ? NULL : wrong;
    }
    if (!node_is(json, node, VP_JSON_OBJECT)) return add_values(json, node, options) ? NULL : wrong;
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i + 1].end) {
        char *label = node_text(json, i), *text = node_value(json, i + 1);
        if (label) text_list_take(labels, label);
        if (text) text_list_take(options, text);
        if (!label || !text) return wrong;
    }
    return NULL;
}
double node_number(const vp_json *json, uint32_t node) {
    double value = 0;
    return node_is(json, node, VP_JSON_NUMBER) && vp_json_to_double(json, node, &value) == VP_OK ? value : (double)NAN;
}
void add_fields(const vp_json *json, uint32_t object, struct text_buffer *out) {
    for (uint32_t key = object + 1; key < json->nodes[object].end; key = json->nodes[key + 1].end) {
        char *name = node_text(json, key);
        if (name && out->bytes) text_add_string(out, ", ");
        if (name) text_add_string(out, name);
        free(name);
    }
}
int has_value(const vp_json *json, uint32_t object, const char *key) {
    uint32_t node = vp_json_get(json, object, key);
    return node != VP_JSON_NONE && !node_is(json, node, VP_JSON_NULL);
}
void json_node(vp_json_writer *writer, const vp_json *json, uint32_t node) {
    const vp_json_node *value = &json->nodes[node];
    const size_t quotes = value->type == VP_JSON_STRING; /* the node of a string starts after the quote */
    char *text = copy_text(json->text + value->start - quotes, (size_t)value->bytes + 2 * quotes);
    for (char *end = text; (end = strpbrk(end, "\r\n")) != NULL;) *end = ' '; /* strings contain no raw line ends */
    vp_json_raw(writer, text, (size_t)value->bytes + 2 * quotes);
    free(text);
}
char *json_text(const vp_json *json, uint32_t node) {
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    if (node == VP_JSON_NONE) return NULL;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    json_node(&writer, json, node);
    if (vp_json_finish(&writer) == VP_OK) return text.data;
    free(text.data);
    return NULL;
}
/* The levels of objects and lists; 0 for any other value. */
static int json_depth(const vp_json *json, uint32_t node) {
    uint32_t ends[64]; /* ends of the containers around the node; vp_json_parse reads 64 levels */
    int depth = 0, deepest = 0;
    for (uint32_t at = node; at < json->nodes[node].end; at++) {
        while (depth && at >= ends[depth - 1]) depth--;
        if (!node_is(json, at, VP_JSON_OBJECT) && !node_is(json, at, VP_JSON_ARRAY)) continue;
        ends[depth++] = json->nodes[at].end;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}
char *json_foreign(const char *text, size_t bytes) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    const int is_usable = text && parse_json(&parsed, text, bytes, NULL) == VP_OK
                          && node_is(&parsed.json, 0, VP_JSON_OBJECT)
                          && json_depth(&parsed.json, 0) <= FOREIGN_DEPTH_MAX;
    char *line = is_usable ? json_text(&parsed.json, 0) : NULL;
    free(parsed.nodes);
    return line;
}

int64_t node_int(const vp_json *json, uint32_t object, const char *key, int64_t otherwise) {
    int64_t value = 0;
    return vp_json_to_int(json, vp_json_get(json, object, key), &value) == VP_OK ? value : otherwise;
}
static void json_texts(vp_json_writer *writer, const struct text_list *list) {
    vp_json_begin_array(writer);
    for (size_t i = 0; i < list->count; i++) json_lossy(writer, list->items[i]);
    vp_json_end_array(writer);
}
void put_range(vp_json_writer *writer, const char *key, double low, double high) {
    if (!isfinite(low) || !isfinite(high)) put_null(writer, key);
    else PUT(writer, KEY_ARRAY(key), KEY(NULL, low), KEY(NULL, high), END_ARRAY);
}
void put_interval(vp_json_writer *writer, const char *key, int known, double low, double high) {
    put_range(writer, key, known ? low : (double)NAN, high);
}
struct json_member json_member_text(const char *key, const char *text) {
    return (struct json_member){key, text ? MEMBER_TEXT : MEMBER_NULL, .text = text};
}
struct json_member json_member_int(const char *key, int64_t value) {
    return (struct json_member){key, MEMBER_INT, .whole = value};
}
struct json_member json_member_real(const char *key, double value) {
    return (struct json_member){key, MEMBER_REAL, .real = value};
}
struct json_member json_member_known(const char *key, int known, int64_t value) {
    return (struct json_member){key, known ? MEMBER_INT : MEMBER_NULL, .whole = value};
}
static void put_member(vp_json_writer *writer, const struct json_member *member) {
    if (member->key) vp_json_key(writer, member->key);
    switch (member->type) {
    case MEMBER_TEXT: json_lossy(writer, member->text); break;
    case MEMBER_INT: vp_json_int(writer, member->whole); break;
    case MEMBER_REAL: json_double_or_null(writer, member->real); break;
    case MEMBER_BOOL: vp_json_bool(writer, member->whole != 0); break;
    case MEMBER_NULL: vp_json_null(writer); break;
    case MEMBER_RANGE: put_range(writer, NULL, member->low, member->high); break;
    case MEMBER_LIST: json_texts(writer, member->list); break;
    case MEMBER_OBJECT: vp_json_begin_object(writer); break;
    case MEMBER_END_OBJECT: vp_json_end_object(writer); break;
    case MEMBER_ARRAY: vp_json_begin_array(writer); break;
    case MEMBER_END_ARRAY: vp_json_end_array(writer); break;
    }
}
void json_put_all(vp_json_writer *writer, const struct json_member *members, size_t count) {
    for (size_t i = 0; i < count; i++) put_member(writer, &members[i]);
}
vp_result bad_member(vp_error *error, const char *key, const char *want) {
    char text[160];
    snprintf(text, sizeof text, "\"%s\" must be %s", key, want);
    return vp_error_set(error, VP_ERR_FORMAT, -1, "", text);
}
