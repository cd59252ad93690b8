/* vlmprof_chat.c: implements what vlmprof_chat.h declares */
#include "vlmprof_chat.h"
#include "vlmprof_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names, and functions that write and read each API's JSON: a body without the model, an object of an answer */
#define VP_IMPL_CHAT_FUNCTIONS(id, name, path, text) \
    static void vp_impl_chat_put_##name(vp_json_writer *writer, const vp_chat_request *request); \
    static vp_result vp_impl_chat_read_##name(vp_chat_reply *reply, const vp_json *json);
VP_CHAT_APIS(VP_IMPL_CHAT_FUNCTIONS, VP_IMPL_CHAT_FUNCTIONS)
static const struct {
    const char *name, *path;
    void (*put)(vp_json_writer *writer, const vp_chat_request *request);
    vp_result (*read)(vp_chat_reply *reply, const vp_json *json);
} vp_impl_chat_apis[] = {
#define VP_IMPL_CHAT_ROW(id, name, path, text) {#name, path, vp_impl_chat_put_##name, vp_impl_chat_read_##name},
    VP_CHAT_APIS(VP_IMPL_CHAT_ROW, VP_IMPL_CHAT_ROW)
#undef VP_IMPL_CHAT_ROW
};
VP_API const char *vp_chat_api_name(int32_t api) {
    return api >= 0 && api < VP_CHAT_API_LAST_ ? vp_impl_chat_apis[api].name : NULL;
}
VP_API const char *vp_chat_api_path(int32_t api) {
    return api >= 0 && api < VP_CHAT_API_LAST_ ? vp_impl_chat_apis[api].path : NULL;
}
/* Length of a URL without an ending and the slashes before it; the first `least` bytes, up to the host, are kept. */
static size_t vp_impl_chat_without(const char *url, size_t bytes, const char *end, size_t least) {
    const size_t end_bytes = strlen(end);
    if (bytes > least + end_bytes && memcmp(url + bytes - end_bytes, end, end_bytes) == 0) bytes -= end_bytes;
    while (bytes > least && url[bytes - 1] == '/') bytes--;
    return bytes;
}
VP_API size_t vp_chat_base_bytes(const char *url) {
    const char *host = strstr(url, "://");
    const size_t least = host ? (size_t)(host - url) + 3 : 0;
    size_t bytes = vp_impl_chat_without(url, strlen(url), "", least);
    int32_t i;
    for (i = 0; i < VP_CHAT_API_LAST_; i++) bytes = vp_impl_chat_without(url, bytes, vp_impl_chat_apis[i].path, least);
    return vp_impl_chat_without(url, bytes, "/v1", least);
}
VP_API vp_result vp_chat_api_find(const char *name, vp_chat_api *api) {
    for (int32_t i = 0; name && i < VP_CHAT_API_LAST_; i++) {
        if (strcmp(name, vp_impl_chat_apis[i].name) != 0) continue;
        *api = (vp_chat_api)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

/* ---- growing texts */
typedef struct vp_impl_chat_text { char *text; size_t bytes, capacity; } vp_impl_chat_text;

/* Makes room for `count` more bytes and a NUL. */
static vp_result vp_impl_chat_grow(char **text, size_t bytes, size_t *capacity, size_t count) {
    size_t needed, doubled;
    if (!vp_size_add(bytes, count, &needed) || !vp_size_add(needed, 1, &needed)) return VP_ERR_MEMORY;
    if (needed <= *capacity) return VP_OK;
    if (!vp_size_multiply(*capacity, 2, &doubled) || doubled < needed) doubled = needed;
    if (doubled < 64) doubled = 64;
    char *grown = (char *)VP_REALLOC(*text, doubled);
    if (!grown) return VP_ERR_MEMORY;
    *text = grown;
    *capacity = doubled;
    return VP_OK;
}
static vp_result vp_impl_chat_append(char **text, size_t *bytes, size_t *capacity, const char *more, size_t count) {
    if (vp_impl_chat_grow(text, *bytes, capacity, count) != VP_OK) return VP_ERR_MEMORY;
    if (count) memcpy(*text + *bytes, more, count);
    *bytes += count;
    (*text)[*bytes] = 0;
    return VP_OK;
}
static vp_result vp_impl_chat_sink(void *user, const char *text, size_t bytes) {
    vp_impl_chat_text *out = (vp_impl_chat_text *)user;
    return vp_impl_chat_append(&out->text, &out->bytes, &out->capacity, text, bytes);
}

/* ---- base64 */
VP_API size_t vp_base64_bytes(size_t count) { return count / 3 * 4 + (count % 3 ? 4 : 0); }
VP_API size_t vp_base64(const void *bytes, size_t count, char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = (const unsigned char *)bytes;
    char *out = text;
    for (; count >= 3; count -= 3, from += 3) {
        const uint32_t three = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = digits[three >> 6 & 63];
        *out++ = digits[three & 63];
    }
    if (count) {
        const uint32_t rest = (uint32_t)from[0] << 16 | (count > 1 ? (uint32_t)from[1] << 8 : 0);
        *out++ = digits[rest >> 18];
        *out++ = digits[rest >> 12 & 63];
        *out++ = count > 1 ? digits[rest >> 6 & 63] : '=';
        *out++ = '=';
    }
    *out = 0;
    return (size_t)(out - text);
}

/* ---- the body */
static int vp_impl_chat_is_media_type(const char *text) {
    const char *at;
    if (!text || !strchr(text, '/')) return 0;
    for (at = text; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9')
              || strchr("/+-.", *at))) return 0;
    return 1;
}
/* Writes a data: URL, or only the base64. */
static void vp_impl_chat_image_text(vp_json_writer *writer, const vp_chat_image *image, int is_bare) {
    const char *const pieces[] = {"data:", image->media_type, ";base64,"};
    vp_impl_chat_text out = {NULL, 0, 0};
    vp_result result = VP_OK;
    for (size_t i = 0; !is_bare && i < 3 && result == VP_OK; i++)
        result = vp_impl_chat_sink(&out, pieces[i], strlen(pieces[i]));
    if (result == VP_OK)
        result = vp_impl_chat_grow(&out.text, out.bytes, &out.capacity, vp_base64_bytes(image->byte_count));
    if (result == VP_OK) {
        out.bytes += vp_base64(image->bytes, image->byte_count, out.text + out.bytes);
        vp_json_string_bytes(writer, out.text, out.bytes);
    } else {
        vp_json_fail(writer, result);
    }
    VP_FREE(out.text);
}
static void vp_impl_chat_member(vp_json_writer *writer, const char *key, const char *text) {
    vp_json_key(writer, key);
    vp_json_string(writer, text);
}
static void vp_impl_chat_flag(vp_json_writer *writer, const char *key, int value) {
    vp_json_key(writer, key);
    vp_json_bool(writer, value);
}
/* Writes a list with one user message; its content is written between the two calls. */
static void vp_impl_chat_begin_message(vp_json_writer *writer) {
    vp_json_key(writer, "messages");
    vp_json_begin_array(writer);
    vp_json_begin_object(writer);
    vp_impl_chat_member(writer, "role", "user");
}
static void vp_impl_chat_end_message(vp_json_writer *writer) {
    vp_json_end_object(writer);
    vp_json_end_array(writer);
}
static void vp_impl_chat_limits(vp_json_writer *writer, const vp_chat_request *request, const char *key) {
    vp_json_key(writer, "temperature");
    vp_json_int(writer, 0);
    if (request->max_tokens <= 0) return;
    vp_json_key(writer, key);
    vp_json_int(writer, request->max_tokens);
}
static void vp_impl_chat_image_part(vp_json_writer *writer, const vp_chat_image *image) {
    vp_json_begin_object(writer);
    vp_impl_chat_member(writer, "type", "image_url");
    vp_json_key(writer, "image_url");
    vp_json_begin_object(writer);
    vp_json_key(writer, "url");
    vp_impl_chat_image_text(writer, image, 0);
    vp_json_end_object(writer);
    vp_json_end_object(writer);
}
static void vp_impl_chat_text_part(vp_json_writer *writer, const char *text, size_t bytes) {
    vp_json_begin_object(writer);
    vp_impl_chat_member(writer, "type", "text");
    vp_json_key(writer, "text");
    vp_json_string_bytes(writer, text, bytes);
    vp_json_end_object(writer);
}
/* Writes the images and the text as parts of a list; without image_places the images come first. */
static void vp_impl_chat_parts(vp_json_writer *writer, const vp_chat_request *request) {
    const size_t bytes = strlen(request->text);
    size_t done = 0;
    vp_json_key(writer, "content");
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < request->image_count; i++) {
        const size_t place = request->image_places ? request->image_places[i] : 0;
        if (place > done) vp_impl_chat_text_part(writer, request->text + done, place - done);
        vp_impl_chat_image_part(writer, &request->images[i]);
        done = place;
    }
    if (done < bytes || !done) vp_impl_chat_text_part(writer, request->text + done, bytes - done);
    vp_json_end_array(writer);
}
/* Hosted servers reject unknown members, so each is written only if requested. */
static void vp_impl_chat_put_chat(vp_json_writer *writer, const vp_chat_request *request) {
    vp_impl_chat_begin_message(writer);
    vp_impl_chat_parts(writer, request);
    vp_impl_chat_end_message(writer);
    vp_impl_chat_limits(writer, request, "max_tokens");
    if (request->ignore_eos) vp_impl_chat_flag(writer, "ignore_eos", 1);
    if (request->ignore_eos && request->max_tokens > 0) { /* vLLM: the model may have more stop tokens */
        vp_json_key(writer, "min_tokens");
        vp_json_int(writer, request->max_tokens);
    }
    if (request->no_cache) vp_impl_chat_flag(writer, "cache_prompt", 0);
    if (request->cache_salt) vp_impl_chat_member(writer, "cache_salt", request->cache_salt);
    vp_impl_chat_flag(writer, "stream", !request->no_stream);
    if (request->no_stream) return;
    vp_json_key(writer, "stream_options");
    vp_json_begin_object(writer);
    vp_impl_chat_flag(writer, "include_usage", 1);
    vp_json_end_object(writer);
}
static void vp_impl_chat_put_ollama(vp_json_writer *writer, const vp_chat_request *request) {
    vp_impl_chat_begin_message(writer);
    vp_impl_chat_member(writer, "content", request->text);
    if (request->image_count > 0) {
        vp_json_key(writer, "images");
        vp_json_begin_array(writer);
        for (int32_t i = 0; i < request->image_count; i++) vp_impl_chat_image_text(writer, &request->images[i], 1);
        vp_json_end_array(writer);
    }
    vp_impl_chat_end_message(writer);
    vp_json_key(writer, "options");
    vp_json_begin_object(writer);
    vp_impl_chat_limits(writer, request, "num_predict");
    vp_json_end_object(writer);
    vp_impl_chat_flag(writer, "stream", !request->no_stream);
}

static int vp_impl_chat_is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

/* ---- members set by the caller */
enum { VP_IMPL_CHAT_STEPS_MAX = 32, VP_IMPL_CHAT_NODES_MAX = 1 << 20 };
typedef enum vp_impl_chat_step_kind { VP_IMPL_CHAT_KEY, VP_IMPL_CHAT_ITEM, VP_IMPL_CHAT_ALL } vp_impl_chat_step_kind;
typedef struct vp_impl_chat_step {
    vp_impl_chat_step_kind kind;
    const char *key; size_t key_bytes;
    uint32_t item;
} vp_impl_chat_step;
typedef struct vp_impl_chat_setting {
    const char *value; size_t value_bytes;
    int is_text; /* the value is not JSON */
    vp_impl_chat_step steps[VP_IMPL_CHAT_STEPS_MAX];
    int32_t step_count;
    const vp_json *json;   /* the body so far */
    vp_impl_chat_text out; /* the new one */
    size_t copied;         /* size of the old body that is already copied */
} vp_impl_chat_setting;

/* Reads "[12]" or "[*]"; NULL for anything else. */
static const char *vp_impl_chat_bracket(const char *at, vp_impl_chat_step *step) {
    step->kind = at[1] == '*' ? VP_IMPL_CHAT_ALL : VP_IMPL_CHAT_ITEM;
    step->item = 0;
    at++;
    if (*at == '*') return at[1] == ']' ? at + 2 : NULL;
    if (*at == ']') return NULL;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (step->item > 100000000) return NULL;
        step->item = step->item * 10 + (uint32_t)(*at - '0');
    }
    return *at == ']' ? at + 1 : NULL;
}
/* Splits a path. Returns 0 if it is not a path. */
static int vp_impl_chat_path(const char *path, vp_impl_chat_setting *setting) {
    const char *at = path;
    if (!path || vp_utf8_valid_bytes(path, strlen(path)) != strlen(path)) return 0;
    for (;;) {
        vp_impl_chat_step *step = &setting->steps[setting->step_count];
        if (setting->step_count++ == VP_IMPL_CHAT_STEPS_MAX) return 0;
        step->kind = VP_IMPL_CHAT_KEY;
        step->key = at;
        step->key_bytes = strcspn(at, ".[");
        if (step->key_bytes == 0) return 0;
        for (at += step->key_bytes; *at == '[';) {
            if (setting->step_count == VP_IMPL_CHAT_STEPS_MAX) return 0;
            at = vp_impl_chat_bracket(at, &setting->steps[setting->step_count++]);
            if (!at) return 0;
        }
        if (*at == 0) return 1;
        if (*at++ != '.') return 0;
    }
}
static uint32_t vp_impl_chat_get(const vp_json *json, uint32_t object, const char *key, size_t bytes) {
    uint32_t at, found = VP_JSON_NONE;
    for (at = object + 1; at < json->nodes[object].end; at = json->nodes[at + 1].end)
        if (vp_json_equals_bytes(json, at, key, bytes)) found = at + 1;
    return found;
}
/* A value's position in the text, including quotes. */
static void vp_impl_chat_span(const vp_json *json, uint32_t node, size_t *start, size_t *bytes) {
    const size_t quotes = json->nodes[node].type == VP_JSON_STRING;
    *start = (size_t)json->nodes[node].start - quotes;
    *bytes = (size_t)json->nodes[node].bytes + 2 * quotes;
}
/* Writes the value inside the objects named by the steps starting at `step`. */
static vp_result vp_impl_chat_put(vp_impl_chat_setting *setting, int32_t step) {
    vp_json_writer writer;
    char key[512];
    vp_json_writer_init_sink(&writer, vp_impl_chat_sink, &setting->out, 0);
    for (int32_t at = step; at < setting->step_count; at++) {
        if (setting->steps[at].key_bytes >= sizeof key) return VP_ERR_FORMAT;
        memcpy(key, setting->steps[at].key, setting->steps[at].key_bytes);
        key[setting->steps[at].key_bytes] = 0;
        /* the first step is written into an existing object, without its own braces */
        vp_json_begin_object(&writer);
        if (at == step) setting->out.bytes--;
        vp_json_key(&writer, key);
    }
    if (setting->is_text) vp_json_string_bytes(&writer, setting->value, setting->value_bytes);
    else vp_json_raw(&writer, setting->value, setting->value_bytes);
    for (int32_t at = step; at < setting->step_count; at++) vp_json_end_object(&writer);
    if (step < setting->step_count) setting->out.bytes--;
    return vp_json_finish(&writer);
}
/* Copies the old body up to offset `upto`. */
static vp_result vp_impl_chat_copy(vp_impl_chat_setting *setting, size_t upto) {
    const size_t from = setting->copied;
    setting->copied = upto;
    return vp_impl_chat_sink(&setting->out, setting->json->text + from, upto - from);
}
/* Sets the target of the steps starting at `step`, relative to `node`. List items are visited in text order. */
static vp_result vp_impl_chat_walk(vp_impl_chat_setting *setting, uint32_t node, int32_t step) {
    const vp_json *json = setting->json;
    const vp_impl_chat_step *now = &setting->steps[step];
    size_t start, bytes;
    uint32_t child;
    vp_result result = VP_OK;
    vp_impl_chat_span(json, node, &start, &bytes);
    if (step == setting->step_count) {
        if (vp_impl_chat_copy(setting, start) != VP_OK) return VP_ERR_MEMORY;
        setting->copied = start + bytes;
        return vp_impl_chat_put(setting, step);
    }
    if (json->nodes[node].type != (now->kind == VP_IMPL_CHAT_KEY ? VP_JSON_OBJECT : VP_JSON_ARRAY))
        return VP_ERR_MISMATCH;
    if (now->kind == VP_IMPL_CHAT_ALL) {
        for (child = node + 1; child < json->nodes[node].end && result == VP_OK; child = json->nodes[child].end)
            result = vp_impl_chat_walk(setting, child, step + 1);
        return result;
    }
    child = now->kind == VP_IMPL_CHAT_ITEM ? vp_json_at(json, node, now->item)
                                           : vp_impl_chat_get(json, node, now->key, now->key_bytes);
    if (child != VP_JSON_NONE) return vp_impl_chat_walk(setting, child, step + 1);
    for (int32_t rest = step; rest < setting->step_count; rest++)
        if (setting->steps[rest].kind != VP_IMPL_CHAT_KEY) return VP_ERR_NOT_FOUND;
    result = vp_impl_chat_copy(setting, start + bytes - 1);
    if (result == VP_OK && json->nodes[node].count > 0) result = vp_impl_chat_sink(&setting->out, ", ", 2);
    return result == VP_OK ? vp_impl_chat_put(setting, step) : result;
}
/* "image_url.detail": a member of each part's "image_url". */
static vp_result vp_impl_chat_walk_images(vp_impl_chat_setting *setting) {
    const vp_json *json = setting->json;
    const uint32_t parts = vp_json_get(json, vp_json_at(json, vp_json_get(json, 0, "messages"), 0), "content");
    vp_result result = VP_OK;
    if (parts == VP_JSON_NONE || json->nodes[parts].type != VP_JSON_ARRAY) return VP_ERR_MISMATCH;
    for (uint32_t part = parts + 1; part < json->nodes[parts].end && result == VP_OK; part = json->nodes[part].end) {
        if (vp_json_get(json, part, "image_url") != VP_JSON_NONE) result = vp_impl_chat_walk(setting, part, 0);
    }
    return result;
}
/* Parses into a growing array of nodes. */
static vp_result vp_impl_chat_parse(const char *text, size_t bytes, vp_json_node **nodes, size_t *capacity,
                                    vp_json *json, vp_error *error) {
    size_t needed = 0;
    vp_json_node *grown;
    vp_result result = vp_json_parse(text, bytes, *nodes, *capacity, json, &needed, error);
    if (result != VP_ERR_CAPACITY) return result;
    if (needed > VP_IMPL_CHAT_NODES_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "JSON", "the text has more than a million values");
    grown = (vp_json_node *)VP_REALLOC(*nodes, needed * 2 * sizeof **nodes);
    if (!grown) return vp_error_set(error, VP_ERR_MEMORY, -1, "JSON", "not enough memory for the JSON text");
    *nodes = grown;
    *capacity = needed * 2;
    return vp_json_parse(text, bytes, *nodes, *capacity, json, NULL, error);
}
static const char *vp_impl_chat_knob_text(vp_result result) {
    switch (result) {
    case VP_ERR_FORMAT: return "a path is keys separated by dots, and [N] or [*] for list items; a value is UTF-8";
    case VP_ERR_NOT_FOUND: return "the body has no such list item";
    case VP_ERR_MISMATCH: return "the path leads into a value that is not an object or list";
    default: return vp_result_text(result);
    }
}
static vp_result vp_impl_chat_knob(const vp_chat_knob *knob, vp_impl_chat_text *body) {
    vp_impl_chat_setting setting = {0};
    vp_json_node *nodes = NULL;
    size_t capacity = 0;
    vp_json json;
    vp_result result = VP_OK;
    setting.value = knob->value;
    if (!knob->value || !vp_impl_chat_path(knob->path, &setting)) return VP_ERR_FORMAT;
    setting.value_bytes = strlen(knob->value);
    setting.is_text = vp_json_parse(knob->value, setting.value_bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_FORMAT;
    while (!setting.is_text && vp_impl_chat_is_blank(*setting.value)) setting.value++, setting.value_bytes--;
    while (!setting.is_text && vp_impl_chat_is_blank(setting.value[setting.value_bytes - 1])) setting.value_bytes--;
    result = vp_impl_chat_parse(body->text, body->bytes, &nodes, &capacity, &json, NULL);
    if (result == VP_OK) {
        setting.json = &json;
        result = strncmp(knob->path, "image_url.", 10) == 0 ? vp_impl_chat_walk_images(&setting)
                                                            : vp_impl_chat_walk(&setting, 0, 0);
        if (result == VP_OK) result = vp_impl_chat_copy(&setting, body->bytes);
    }
    VP_FREE(nodes);
    if (result != VP_OK) {
        VP_FREE(setting.out.text);
        return result;
    }
    VP_FREE(body->text);
    *body = setting.out;
    return VP_OK;
}

/* The first text of a request that is missing or not UTF-8; NULL if all are valid. */
static const char *vp_impl_chat_bad_text(const vp_chat_request *request) {
    const char *const texts[] = {request->model, request->text, request->cache_salt ? request->cache_salt : ""};
    const char *const names[] = {"model", "text", "cache_salt"};
    for (int32_t i = 0; i < 3; i++)
        if (!texts[i] || vp_utf8_valid_bytes(texts[i], strlen(texts[i])) != strlen(texts[i])) return names[i];
    for (int32_t i = 0; i < request->image_count; i++)
        if (!vp_impl_chat_is_media_type(request->images[i].media_type)) return "media_type";
    for (int32_t i = 0; request->image_places && i < request->image_count; i++) {
        const size_t place = request->image_places[i];
        if (place > strlen(request->text) || (i && place < request->image_places[i - 1])
            || ((unsigned char)request->text[place] & 0xc0) == 0x80)
            return "image_places";
    }
    return NULL;
}
VP_API vp_result vp_chat_body(vp_chat_api api, const vp_chat_request *request, char **body, size_t *bytes,
                              vp_error *error) {
    vp_impl_chat_text out = {NULL, 0, 0};
    vp_json_writer writer;
    vp_result result;
    if (!vp_chat_api_name((int32_t)api) || request->image_count < 0 || request->max_tokens < 0)
        return vp_error_set(error, VP_ERR_RANGE, -1, "request", "a count is negative, or the API is unknown");
    if (vp_impl_chat_bad_text(request))
        return vp_error_set(error, VP_ERR_FORMAT, -1, vp_impl_chat_bad_text(request),
                            "the text is missing or not UTF-8, the"
                            " media type is invalid, or image_places are not ascending byte offsets into the text");
    vp_json_writer_init_sink(&writer, vp_impl_chat_sink, &out, 0);
    vp_json_begin_object(&writer);
    vp_impl_chat_member(&writer, "model", request->model);
    vp_impl_chat_apis[api].put(&writer, request);
    vp_json_end_object(&writer);
    result = vp_json_finish(&writer);
    if (result != VP_OK) vp_error_set(error, result, -1, "body", vp_result_text(result));
    for (size_t i = 0; result == VP_OK && i < request->knob_count; i++) {
        result = vp_impl_chat_knob(&request->knobs[i], &out);
        if (result != VP_OK)
            vp_error_set(error, result, -1, request->knobs[i].path ? request->knobs[i].path : "path",
                         vp_impl_chat_knob_text(result));
    }
    if (result != VP_OK) {
        VP_FREE(out.text);
        return result;
    }
    *body = out.text;
    *bytes = out.bytes;
    return VP_OK;
}

/* ---- server-sent events */
VP_API void vp_sse_init(vp_sse *sse, size_t most_bytes, vp_sse_event event, void *user) {
    memset(sse, 0, sizeof *sse);
    sse->most_bytes = most_bytes;
    sse->event = event;
    sse->user = user;
}
VP_API void vp_sse_free(vp_sse *sse) {
    VP_FREE(sse->line);
    VP_FREE(sse->data);
    vp_sse_init(sse, sse->most_bytes, sse->event, sse->user);
}
static vp_result vp_impl_sse_append(vp_sse *sse, char **text, size_t *bytes, size_t *capacity, const char *more,
                                    size_t count) {
    if (count > sse->most_bytes || *bytes > sse->most_bytes - count) return VP_ERR_RANGE;
    return vp_impl_chat_append(text, bytes, capacity, more, count);
}
static vp_result vp_impl_sse_data(vp_sse *sse, const char *value, size_t bytes) {
    vp_result result =
        sse->has_data ? vp_impl_sse_append(sse, &sse->data, &sse->data_bytes, &sse->data_capacity, "\n", 1) : VP_OK;
    sse->has_data = 1;
    if (result != VP_OK) return result;
    return vp_impl_sse_append(sse, &sse->data, &sse->data_bytes, &sse->data_capacity, value, bytes);
}
static vp_result vp_impl_sse_end_of_event(vp_sse *sse) {
    vp_result result = VP_OK;
    if (sse->has_data) result = sse->event(sse->user, sse->name, sse->data, sse->data_bytes);
    sse->has_data = 0;
    sse->data_bytes = 0;
    sse->name[0] = 0;
    return result;
}
static void vp_impl_sse_name(vp_sse *sse, const char *name, size_t bytes) {
    if (bytes >= sizeof sse->name) bytes = sizeof sse->name - 1;
    memcpy(sse->name, name, bytes);
    sse->name[bytes] = 0;
}
static vp_result vp_impl_sse_line(vp_sse *sse) {
    const char *line = sse->line, *colon, *value;
    size_t bytes = sse->line_bytes, field, value_bytes;
    sse->line_bytes = 0;
    if (!sse->after_start && bytes >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3;
        bytes -= 3;
    }
    sse->after_start = 1;
    if (bytes == 0) return vp_impl_sse_end_of_event(sse);
    colon = (const char *)memchr(line, ':', bytes);
    field = colon ? (size_t)(colon - line) : bytes;
    value = line + field + (colon != NULL);
    value_bytes = bytes - field - (colon != NULL);
    if (value_bytes > 0 && *value == ' ') {
        value++;
        value_bytes--;
    }
    if (field == 4 && memcmp(line, "data", 4) == 0) return vp_impl_sse_data(sse, value, value_bytes);
    if (field == 5 && memcmp(line, "event", 5) == 0) vp_impl_sse_name(sse, value, value_bytes);
    if (field == 5 && memcmp(line, "error", 5) == 0) {
        vp_impl_sse_name(sse, "error", 5);
        return vp_impl_sse_data(sse, value, value_bytes);
    }
    return VP_OK;
}
VP_API vp_result vp_sse_feed(vp_sse *sse, const char *bytes, size_t count) {
    const char *at = bytes, *end = bytes + count;
    while (at < end) {
        const char *stop = at;
        vp_result result;
        if (sse->after_cr) {
            sse->after_cr = 0;
            if (*at == '\n') {
                at++;
                continue;
            }
        }
        while (stop < end && *stop != '\n' && *stop != '\r') stop++;
        result = vp_impl_sse_append(sse, &sse->line, &sse->line_bytes, &sse->line_capacity, at, (size_t)(stop - at));
        if (result != VP_OK) return result;
        if (stop == end) break;
        sse->after_cr = *stop == '\r';
        result = vp_impl_sse_line(sse);
        if (result != VP_OK) return result;
        at = stop + 1;
    }
    return VP_OK;
}

/* ---- answers: state */
typedef enum vp_impl_chat_form { VP_IMPL_CHAT_UNKNOWN, VP_IMPL_CHAT_EVENTS, VP_IMPL_CHAT_LINES, VP_IMPL_CHAT_WHOLE }
    vp_impl_chat_form;
typedef struct vp_impl_chat_state {
    vp_chat_api api;
    size_t most_bytes;
    vp_impl_chat_form form, announced; /* announced: by the content type */
    char type[40];                     /* the content type's beginning */
    vp_sse sse;
    vp_impl_chat_text body;            /* a whole JSON text, or a line */
    vp_json_node *nodes; size_t node_capacity;
    size_t text_capacity, reasoning_capacity, piece_capacity;
    int64_t now_ns;
    int is_done, has_calls;                               /* 1 if "[DONE]" arrived; if there are calls of tools */
    char *blanked;                                        /* a text without NaN and Infinity */
    int64_t timed_prompt, timed_cached, timed_completion; /* llama.cpp's "timings" also contain token counts */
    vp_result result;                                     /* the error that ended it */
    vp_error error;
} vp_impl_chat_state;
enum { VP_IMPL_CHAT_TIMINGS_MAX = 65536 };

static vp_result vp_impl_chat_fail(vp_chat_reply *reply, vp_result code, const char *where, const char *text) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    if (state->result == VP_OK) state->result = vp_error_set(&state->error, code, -1, where, text);
    return state->result;
}
static vp_result vp_impl_chat_no_memory(vp_chat_reply *reply) {
    return vp_impl_chat_fail(reply, VP_ERR_MEMORY, "answer", "not enough memory for the server's answer");
}

/* A value's text, or its JSON, on one line, not truncated. NULL if out of memory. */
static char *vp_impl_chat_words(const vp_json *json, uint32_t node) {
    char *text;
    size_t start, bytes = 0;
    if (vp_json_text(json, node, NULL, 0, &bytes) == VP_ERR_CAPACITY) {
        text = (char *)VP_MALLOC(bytes + 1);
        if (!text) return NULL;
        vp_json_text(json, node, text, bytes + 1, NULL);
    } else {
        vp_impl_chat_span(json, node, &start, &bytes);
        text = (char *)VP_MALLOC(bytes + 1);
        if (!text) return NULL;
        memcpy(text, json->text + start, bytes);
        text[bytes] = 0;
    }
    vp_text_copy(text, bytes + 1, text);
    return text;
}
/* Sets a member to a value's text; a missing text leaves it unchanged. */
static vp_result vp_impl_chat_keep(vp_chat_reply *reply, char **member, const vp_json *json, uint32_t node) {
    if (node == VP_JSON_NONE || json->nodes[node].type == VP_JSON_NULL) return VP_OK;
    char *words = vp_impl_chat_words(json, node);
    if (!words) return vp_impl_chat_no_memory(reply);
    VP_FREE(*member);
    *member = words;
    return VP_OK;
}
static vp_result vp_impl_chat_keep_text(vp_chat_reply *reply, char **member, const vp_json *json, uint32_t node,
                                        const char *name) {
    if (node != VP_JSON_NONE && json->nodes[node].type != VP_JSON_STRING && json->nodes[node].type != VP_JSON_NULL)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, name, "the server sent something that is not text");
    return vp_impl_chat_keep(reply, member, json, node);
}
/* {"error": "text"}, {"error": {"message": "text"}}: the value with the most specific message. */
static uint32_t vp_impl_chat_said(const vp_json *json, uint32_t error) {
    static const char *const names[] = {"message", "text", "detail"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const uint32_t message = vp_json_get(json, error, names[i]);
        if (message != VP_JSON_NONE && json->nodes[message].type == VP_JSON_STRING) return message;
    }
    return error;
}
static int vp_impl_chat_is_set(const vp_json *json, uint32_t node) {
    return node != VP_JSON_NONE && json->nodes[node].type != VP_JSON_NULL;
}
static vp_result vp_impl_chat_failure(vp_chat_reply *reply, const vp_json *json, uint32_t error) {
    return reply->failure ? VP_OK : vp_impl_chat_keep(reply, &reply->failure, json, vp_impl_chat_said(json, error));
}
/* The message in an error's body, on one line, not truncated. NULL if out of memory. */
static char *vp_impl_chat_body_words(const char *body, size_t bytes) {
    static const char *const names[] = {"error", "message", "detail"};
    vp_json_node *nodes = NULL;
    size_t node_capacity = 0, i;
    vp_json json;
    uint32_t said = VP_JSON_NONE;
    char *copy;
    if (vp_impl_chat_parse(body, bytes, &nodes, &node_capacity, &json, NULL) == VP_OK)
        for (i = 0; i < 3 && !vp_impl_chat_is_set(&json, said); i++) said = vp_json_get(&json, 0, names[i]);
    if (nodes && vp_impl_chat_is_set(&json, said)) {
        copy = vp_impl_chat_words(&json, vp_impl_chat_said(&json, said));
        VP_FREE(nodes);
        return copy;
    }
    VP_FREE(nodes);
    copy = (char *)VP_MALLOC(bytes + 1);
    if (!copy) return NULL;
    for (i = 0; i < bytes; i++) copy[i] = body[i] ? body[i] : ' ';
    copy[bytes] = 0;
    for (i = 0; (i += vp_utf8_valid_bytes(copy + i, bytes - i)) < bytes;) copy[i] = '?';
    vp_text_copy(copy, bytes + 1, copy);
    return copy;
}
VP_API void vp_chat_failure(const char *body, size_t bytes, char *out, size_t capacity) {
    char *words = vp_impl_chat_body_words(body, bytes);
    vp_text_copy(out, capacity, words);
    VP_FREE(words);
}

/* ---- answers: texts, pieces, counts */
/* Adds a text to the answer or to the reasoning. For lists of parts, which some servers send, it adds their texts. */
static vp_result vp_impl_chat_add(vp_chat_reply *reply, const vp_json *json, uint32_t node, int is_reasoning,
                                  size_t *added) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    char **text = is_reasoning ? &reply->reasoning : &reply->text;
    size_t *bytes = is_reasoning ? &reply->reasoning_bytes : &reply->text_bytes,
           *capacity = is_reasoning ? &state->reasoning_capacity : &state->text_capacity, count = 0;
    if (!vp_impl_chat_is_set(json, node)) return VP_OK;
    if (json->nodes[node].type == VP_JSON_ARRAY) {
        for (uint32_t part = node + 1; part < json->nodes[node].end; part = json->nodes[part].end) {
            const uint32_t words = vp_json_get(json, part, "text");
            vp_result result;
            if (json->nodes[part].type != VP_JSON_OBJECT
                || (words != VP_JSON_NONE && json->nodes[words].type != VP_JSON_STRING))
                return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "content", "a part of the answer is not text");
            result = vp_impl_chat_add(reply, json, words, is_reasoning, added);
            if (result != VP_OK) return result;
        }
        return VP_OK;
    }
    if (json->nodes[node].type != VP_JSON_STRING)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "content", "a piece of the answer is not text");
    vp_json_text(json, node, NULL, 0, &count);
    if (count > state->most_bytes - reply->text_bytes - reply->reasoning_bytes)
        return vp_impl_chat_fail(reply, VP_ERR_RANGE, "answer", "the answer exceeds the size limit");
    if (vp_impl_chat_grow(text, *bytes, capacity, count) != VP_OK) return vp_impl_chat_no_memory(reply);
    vp_json_text(json, node, *text + *bytes, count + 1, NULL);
    *bytes += count;
    *added += count;
    return VP_OK;
}
static vp_result vp_impl_chat_piece(vp_chat_reply *reply, size_t text_bytes, size_t reasoning_bytes) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    const size_t bytes = text_bytes + reasoning_bytes;
    if (bytes == 0) return VP_OK;
    if (reply->piece_count == state->piece_capacity) {
        const size_t capacity = state->piece_capacity ? state->piece_capacity * 2 : 64;
        vp_chat_piece *grown = (vp_chat_piece *)VP_REALLOC(reply->pieces, capacity * sizeof *grown);
        if (!grown) return vp_impl_chat_no_memory(reply);
        reply->pieces = grown;
        state->piece_capacity = capacity;
    }
    reply->pieces[reply->piece_count].at_ns = state->now_ns;
    reply->pieces[reply->piece_count].text_bytes = (int64_t)bytes;
    if (reply->piece_count++ == 0) reply->first_ns = state->now_ns;
    if (text_bytes > 0 && reply->text_bytes == text_bytes) reply->first_output_ns = state->now_ns;
    reply->last_ns = state->now_ns;
    return VP_OK;
}
/* Reads an integer of 0 or more; if it is missing, the number is unchanged. */
static vp_result vp_impl_chat_number(vp_chat_reply *reply, const vp_json *json, uint32_t object, const char *name,
                                     int64_t most, int64_t *number) {
    const uint32_t node = vp_json_get(json, object, name);
    int64_t value;
    if (!vp_impl_chat_is_set(json, node)) return VP_OK;
    if (vp_json_to_int(json, node, &value) != VP_OK || value < 0 || value > most)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, name, "the server sent something that is not a count");
    *number = value;
    return VP_OK;
}
/* Reads a token count of at most INT32_MAX, so that sums and differences of counts cannot overflow. */
static vp_result vp_impl_chat_count(vp_chat_reply *reply, const vp_json *json, uint32_t object, const char *name,
                                    int64_t *count) {
    return vp_impl_chat_number(reply, json, object, name, INT32_MAX, count);
}
typedef struct vp_impl_chat_counter { const char *object, *name; int64_t *count; } vp_impl_chat_counter;
static vp_result vp_impl_chat_count_all(vp_chat_reply *reply, const vp_json *json, uint32_t root,
                                        const vp_impl_chat_counter *counters, size_t count) {
    vp_result result = VP_OK;
    for (size_t i = 0; i < count && result == VP_OK; i++)
        result =
            vp_impl_chat_count(reply, json, counters[i].object ? vp_json_get(json, root, counters[i].object) : root,
                               counters[i].name, counters[i].count);
    return result;
}
static vp_chat_usage vp_impl_chat_no_usage(void) {
    const vp_chat_usage none = {-1, -1, -1, -1, -1};
    return none;
}
static vp_result vp_impl_chat_usage_of(vp_chat_reply *reply, const vp_json *json, uint32_t usage) {
    vp_chat_usage *to = &reply->usage;
    const vp_impl_chat_counter counters[] = {
        {NULL, "prompt_tokens", &to->prompt_tokens}, {NULL, "completion_tokens", &to->completion_tokens},
        {NULL, "reasoning_tokens", &to->reasoning_tokens}, /* SGLang */
        {"prompt_tokens_details", "cached_tokens", &to->cached_tokens},
        {"prompt_tokens_details", "image_tokens", &to->image_tokens},
        {"completion_tokens_details", "reasoning_tokens", &to->reasoning_tokens}};
    if (!vp_impl_chat_is_set(json, usage)) return VP_OK;
    if (json->nodes[usage].type != VP_JSON_OBJECT)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "usage", "the server sent something that is not an object");
    *to = vp_impl_chat_no_usage();
    vp_result result =
        vp_impl_chat_count(reply, json, /* vLLM 0.32 */
                           vp_json_get(json, vp_json_get(json, usage, "prompt_tokens_details"), "multimodal_tokens"),
                           "image", &to->image_tokens);
    if (result != VP_OK) return result;
    return vp_impl_chat_count_all(reply, json, usage, counters, sizeof counters / sizeof *counters);
}
/* Stores an unchanged part of the body, replacing an earlier one. */
static vp_result vp_impl_chat_keep_json(vp_chat_reply *reply, char **kept, const char *text, size_t bytes) {
    char *copy = (char *)VP_MALLOC(bytes + 1);
    if (!copy) return vp_impl_chat_no_memory(reply);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    VP_FREE(*kept);
    *kept = copy;
    return VP_OK;
}
static vp_result vp_impl_chat_set_timings(vp_chat_reply *reply, const char *text, size_t bytes) {
    if (bytes > VP_IMPL_CHAT_TIMINGS_MAX)
        return vp_impl_chat_fail(reply, VP_ERR_RANGE, "timings", "the server's timings exceed 64 KiB");
    return vp_impl_chat_keep_json(reply, &reply->timings, text, bytes);
}
static vp_result vp_impl_chat_timings_of(vp_chat_reply *reply, const vp_json *json, uint32_t root) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    const vp_impl_chat_counter counters[] = {{NULL, "prompt_n", &state->timed_prompt},
        {NULL, "cache_n", &state->timed_cached}, {NULL, "predicted_n", &state->timed_completion}};
    uint32_t timings = vp_json_get(json, root, "timings");
    if (!vp_impl_chat_is_set(json, timings)) timings = vp_json_get(json, root, "metrics");
    if (timings == VP_JSON_NONE || json->nodes[timings].type != VP_JSON_OBJECT) return VP_OK;
    vp_result result =
        vp_impl_chat_set_timings(reply, json->text + json->nodes[timings].start, (size_t)json->nodes[timings].bytes);
    if (result != VP_OK) return result;
    return vp_impl_chat_count_all(reply, json, timings, counters, sizeof counters / sizeof *counters);
}

/* ---- answers: chat completions */
static vp_result vp_impl_chat_choice(vp_chat_reply *reply, const vp_json *json, uint32_t choice) {
    static const char *const thoughts[] = {"reasoning_content", "reasoning", "reasoning_details"};
    const uint32_t logprobs = vp_json_get(json, choice, "logprobs");
    uint32_t delta = vp_json_get(json, choice, "delta"), thought;
    size_t text_bytes = 0, reasoning_bytes = 0;
    vp_result result;
    if (!reply->logprobs && logprobs != VP_JSON_NONE && json->nodes[logprobs].type == VP_JSON_OBJECT) {
        result = vp_impl_chat_keep_json(reply, &reply->logprobs, json->text + json->nodes[logprobs].start,
                                        (size_t)json->nodes[logprobs].bytes);
        if (result != VP_OK) return result;
    }
    if (!vp_impl_chat_is_set(json, delta)) delta = vp_json_get(json, choice, "message");
    if (vp_impl_chat_is_set(json, delta)) {
        if (json->nodes[delta].type != VP_JSON_OBJECT)
            return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "delta", "the server sent something that is not an object");
        /* vLLM sends the same text under two names, others an empty one under the first; OpenRouter has a list */
        for (size_t i = 0; i < 3; i++) {
            thought = vp_json_get(json, delta, thoughts[i]);
            if (vp_impl_chat_is_set(json, thought)
                && (json->nodes[thought].type != VP_JSON_STRING || json->nodes[thought].bytes))
                break;
        }
        result = vp_impl_chat_add(reply, json, thought, 1, &reasoning_bytes);
        if (result == VP_OK)
            result = vp_impl_chat_add(reply, json, vp_json_get(json, delta, "content"), 0, &text_bytes);
        if (result == VP_OK)
            result = vp_impl_chat_add(reply, json, vp_json_get(json, delta, "refusal"), 0, &text_bytes);
        if (result == VP_OK) result = vp_impl_chat_piece(reply, text_bytes, reasoning_bytes);
        if (result != VP_OK) return result;
        if (vp_impl_chat_is_set(json, vp_json_get(json, delta, "tool_calls")))
            ((vp_impl_chat_state *)reply->state)->has_calls = 1;
        if (!reply->is_streamed) reply->is_complete = 1;
    }
    if (vp_impl_chat_is_set(json, vp_json_get(json, choice, "finish_reason"))) reply->is_complete = 1;
    return vp_impl_chat_keep(reply, &reply->finish_reason, json, vp_json_get(json, choice, "finish_reason"));
}
static vp_result vp_impl_chat_read_chat(vp_chat_reply *reply, const vp_json *json) {
    const uint32_t choices = vp_json_get(json, 0, "choices");
    uint32_t choice, place = 0;
    vp_result result = vp_impl_chat_keep_text(reply, &reply->model, json, vp_json_get(json, 0, "model"), "model");
    if (result == VP_OK && vp_impl_chat_is_set(json, choices)) {
        if (json->nodes[choices].type != VP_JSON_ARRAY)
            return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "choices", "the server sent something that is not a list");
        for (choice = choices + 1; choice < json->nodes[choices].end && result == VP_OK;
             choice = json->nodes[choice].end, place++) {
            int64_t index = place;
            if (json->nodes[choice].type != VP_JSON_OBJECT)
                return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "choices", "a choice in the answer is not an object");
            result = vp_impl_chat_count(reply, json, choice, "index", &index);
            if (result == VP_OK && index == 0) result = vp_impl_chat_choice(reply, json, choice);
        }
    }
    if (result == VP_OK) result = vp_impl_chat_usage_of(reply, json, vp_json_get(json, 0, "usage"));
    return result == VP_OK ? vp_impl_chat_timings_of(reply, json, 0) : result;
}

/* ---- answers: Ollama */
static vp_result vp_impl_chat_ollama_times(vp_chat_reply *reply, const vp_json *json) {
    static const char *const names[] = {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"};
    vp_impl_chat_text out = {NULL, 0, 0};
    vp_json_writer writer;
    vp_result result;
    int any = 0;
    vp_json_writer_init_sink(&writer, vp_impl_chat_sink, &out, 0);
    vp_json_begin_object(&writer);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t duration = -1;
        result = vp_impl_chat_number(reply, json, 0, names[i], INT64_MAX, &duration);
        if (result != VP_OK) break;
        if (duration < 0) continue;
        vp_json_key(&writer, names[i]);
        vp_json_int(&writer, duration);
        any = 1;
    }
    vp_json_end_object(&writer);
    result = ((vp_impl_chat_state *)reply->state)->result;
    if (result == VP_OK && vp_json_finish(&writer) != VP_OK) result = vp_impl_chat_no_memory(reply);
    if (result == VP_OK && any) result = vp_impl_chat_set_timings(reply, out.text, out.bytes);
    VP_FREE(out.text);
    return result;
}
static vp_result vp_impl_chat_read_ollama(vp_chat_reply *reply, const vp_json *json) {
    const uint32_t message = vp_json_get(json, 0, "message"), done = vp_json_get(json, 0, "done");
    const vp_impl_chat_counter counters[] = {{NULL, "prompt_eval_count", &reply->usage.prompt_tokens},
                                             {NULL, "eval_count", &reply->usage.completion_tokens}};
    size_t text_bytes = 0, reasoning_bytes = 0;
    vp_result result = vp_impl_chat_keep_text(reply, &reply->model, json, vp_json_get(json, 0, "model"), "model");
    if (result == VP_OK && message == VP_JSON_NONE && vp_json_get(json, 0, "choices") != VP_JSON_NONE)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "message",
                                 "expected an answer from Ollama's API, got chat completions (choices): use chat");
    if (vp_impl_chat_is_set(json, message) && json->nodes[message].type != VP_JSON_OBJECT)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "message", "the server sent something that is not an object");
    if (result == VP_OK)
        result = vp_impl_chat_add(reply, json, vp_json_get(json, message, "thinking"), 1, &reasoning_bytes);
    if (result == VP_OK) result = vp_impl_chat_add(reply, json, vp_json_get(json, message, "content"), 0, &text_bytes);
    if (result == VP_OK) result = vp_impl_chat_piece(reply, text_bytes, reasoning_bytes);
    if (result != VP_OK || done == VP_JSON_NONE || json->nodes[done].type != VP_JSON_TRUE) return result;
    reply->is_complete = 1;
    result =
        vp_impl_chat_keep_text(reply, &reply->finish_reason, json, vp_json_get(json, 0, "done_reason"), "done_reason");
    if (result == VP_OK) result = vp_impl_chat_count_all(reply, json, 0, counters, sizeof counters / sizeof *counters);
    return result == VP_OK ? vp_impl_chat_ollama_times(reply, json) : result;
}

/* ---- answers: from bytes to objects */
/* Keeps a copy of the text without NaN and Infinity, which Python writes for logprobs. Returns their number, or -1: no
 * memory. */
static int64_t vp_impl_chat_blank_words(const char *text, size_t bytes, vp_impl_chat_state *state) {
    char *copy = (char *)VP_REALLOC(state->blanked, bytes + 1);
    if (!copy) return -1;
    state->blanked = copy;
    memcpy(copy, text, bytes);
    return vp_json_blank_words(copy, bytes);
}
/* Returns 1 for an error that is the object itself: {"object": "error", "message": ..} of vLLM before 0.10,
 * {"error_code": 50002, "text": ..} of FastChat, {"detail": ..} of FastAPI. */
static int vp_impl_chat_is_bare_error(const vp_json *json) {
    const uint32_t object = vp_json_get(json, 0, "object");
    int64_t code;
    if (object != VP_JSON_NONE && vp_json_equals(json, object, "error")) return 1;
    if (vp_json_to_int(json, vp_json_get(json, 0, "error_code"), &code) == VP_OK && code) return 1;
    return json->nodes[0].count == 1 && vp_impl_chat_is_set(json, vp_json_get(json, 0, "detail"));
}
/* Processes one JSON text from the server. */
static vp_result vp_impl_chat_object(vp_chat_reply *reply, const char *text, size_t bytes, int is_error) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    vp_json json;
    uint32_t error;
    vp_result result = vp_impl_chat_parse(text, bytes, &state->nodes, &state->node_capacity, &json, &state->error);
    const int64_t blanked = result == VP_ERR_FORMAT ? vp_impl_chat_blank_words(text, bytes, state) : 0;
    if (blanked < 0) return vp_impl_chat_no_memory(reply);
    if (blanked) {
        text = state->blanked;
        result = vp_impl_chat_parse(text, bytes, &state->nodes, &state->node_capacity, &json, &state->error);
    }
    if (result == VP_ERR_FORMAT && state->form == VP_IMPL_CHAT_WHOLE && *text != '{') {
        char words[80];
        snprintf(words, sizeof words, "the answer is not JSON%s%.40s", state->type[0] ? ", but " : "", state->type);
        return vp_impl_chat_fail(reply, result, "answer", *text == '<' ? "the answer is a web page, not JSON" : words);
    }
    if (result != VP_OK) return state->result = result;
    if (!reply->first_chunk_ns) reply->first_chunk_ns = state->now_ns;
    if (json.nodes[0].type != VP_JSON_OBJECT)
        return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "answer", "the server sent JSON that is not an object");
    error = vp_json_get(&json, 0, "error");
    if (vp_impl_chat_is_set(&json, error)) return vp_impl_chat_failure(reply, &json, error);
    if (is_error || vp_impl_chat_is_bare_error(&json)) return vp_impl_chat_failure(reply, &json, 0);
    return vp_impl_chat_apis[state->api].read(reply, &json);
}
static vp_result vp_impl_chat_event(void *user, const char *name, const char *data, size_t bytes) {
    vp_chat_reply *reply = (vp_chat_reply *)user;
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    const int is_error = strcmp(name, "error") == 0;
    while (bytes > 0 && vp_impl_chat_is_blank(data[bytes - 1])) bytes--;
    for (; bytes > 0 && vp_impl_chat_is_blank(*data); bytes--) data++;
    if (state->is_done || bytes == 0) return VP_OK;
    if (bytes == 6 && memcmp(data, "[DONE]", 6) == 0) {
        state->is_done = reply->is_complete = 1;
        return VP_OK;
    }
    if (is_error && *data != '{') { /* plain text without JSON */
        if (reply->failure) return VP_OK;
        reply->failure = vp_impl_chat_body_words(data, bytes);
        return reply->failure ? VP_OK : vp_impl_chat_no_memory(reply);
    }
    return vp_impl_chat_object(reply, data, bytes, is_error);
}
/* Returns 1 if the header's value is this type; ignores case and parameters. */
static int vp_impl_chat_is_type(const char *content_type, const char *type) {
    size_t i;
    while (*content_type == ' ' || *content_type == '\t') content_type++;
    for (i = 0; type[i]; i++) {
        const char letter =
            content_type[i] >= 'A' && content_type[i] <= 'Z' ? (char)(content_type[i] + 32) : content_type[i];
        if (letter != type[i]) return 0;
    }
    return content_type[i] == 0 || content_type[i] == ';' || content_type[i] == ' ' || content_type[i] == '\t';
}
VP_API vp_result vp_chat_reply_begin(vp_chat_reply *reply, vp_chat_api api, const char *content_type,
                                     size_t most_bytes) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)VP_CALLOC(1, sizeof *state);
    memset(reply, 0, sizeof *reply);
    reply->text = (char *)VP_CALLOC(1, 1);
    reply->reasoning = (char *)VP_CALLOC(1, 1);
    if (!state || !reply->text || !reply->reasoning) {
        VP_FREE(state);
        vp_chat_reply_free(reply);
        return VP_ERR_MEMORY;
    }
    reply->state = state;
    reply->usage = vp_impl_chat_no_usage();
    state->api = api;
    state->most_bytes = most_bytes;
    state->text_capacity = state->reasoning_capacity = 1;
    state->timed_prompt = state->timed_cached = state->timed_completion = -1;
    if (content_type) snprintf(state->type, sizeof state->type, "%.*s", (int)strcspn(content_type, "; "), content_type);
    if (content_type && vp_impl_chat_is_type(content_type, "text/event-stream")) state->announced = VP_IMPL_CHAT_EVENTS;
    if (content_type && vp_impl_chat_is_type(content_type, "application/x-ndjson"))
        state->announced = VP_IMPL_CHAT_LINES;
    vp_sse_init(&state->sse, most_bytes, vp_impl_chat_event, reply);
    return VP_OK;
}
/* Treats a reply that starts with { as a whole JSON reply, because servers send errors as JSON with the content type of
 * events. Event fields begin with a letter or a colon, possibly after a byte order mark. */
static vp_impl_chat_form vp_impl_chat_form_of(const vp_impl_chat_state *state, char first) {
    const int is_letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
    if (state->announced == VP_IMPL_CHAT_LINES) return VP_IMPL_CHAT_LINES;
    if (first == '{') return VP_IMPL_CHAT_WHOLE;
    if (state->announced != VP_IMPL_CHAT_UNKNOWN) return state->announced;
    return is_letter || first == ':' || first == '\xEF' ? VP_IMPL_CHAT_EVENTS : VP_IMPL_CHAT_WHOLE;
}
/* Stores bytes of a JSON text until it is complete. */
static vp_result vp_impl_chat_hold(vp_chat_reply *reply, const char *bytes, size_t count) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    if (count > state->most_bytes - state->body.bytes)
        return vp_impl_chat_fail(reply, VP_ERR_RANGE, "answer", "the answer exceeds the size limit");
    return vp_impl_chat_sink(&state->body, bytes, count) == VP_OK ? VP_OK : vp_impl_chat_no_memory(reply);
}
/* Processes the stored line. */
static vp_result vp_impl_chat_line(vp_chat_reply *reply) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    size_t bytes = state->body.bytes;
    while (bytes > 0 && vp_impl_chat_is_blank(state->body.text[bytes - 1])) bytes--;
    state->body.bytes = 0;
    return bytes > 0 ? vp_impl_chat_object(reply, state->body.text, bytes, 0) : VP_OK;
}
static vp_result vp_impl_chat_feed(vp_chat_reply *reply, const char *bytes, size_t count) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    vp_result result = VP_OK;
    if (state->form == VP_IMPL_CHAT_UNKNOWN) {
        while (count > 0 && vp_impl_chat_is_blank(*bytes)) bytes++, count--;
        if (count == 0) return VP_OK;
        state->form = vp_impl_chat_form_of(state, *bytes);
        reply->is_streamed = state->form != VP_IMPL_CHAT_WHOLE;
    }
    if (state->form == VP_IMPL_CHAT_EVENTS) {
        state->sse.user = reply; /* the reply may have moved since the last feed */
        result = vp_sse_feed(&state->sse, bytes, count);
        if (result == VP_OK || state->result != VP_OK) return result;
        return vp_impl_chat_fail(reply, result, "answer",
                                 result == VP_ERR_RANGE ? "the server sent an event that exceeds the size limit"
                                                        : "not enough memory for the server's answer");
    }
    while (state->form == VP_IMPL_CHAT_LINES && result == VP_OK && count > 0) {
        const char *stop = (const char *)memchr(bytes, '\n', count);
        const size_t line = stop ? (size_t)(stop - bytes) : count;
        result = vp_impl_chat_hold(reply, bytes, line);
        if (result == VP_OK && stop) result = vp_impl_chat_line(reply);
        bytes += line + (stop != NULL);
        count -= line + (stop != NULL);
    }
    return result == VP_OK ? vp_impl_chat_hold(reply, bytes, count) : result;
}
/* Returns the error that ended the answer. */
static vp_result vp_impl_chat_report(const vp_impl_chat_state *state, vp_error *error) {
    if (state->result != VP_OK && error) *error = state->error;
    return state->result;
}
VP_API vp_result vp_chat_reply_feed(vp_chat_reply *reply, const char *bytes, size_t count, int64_t now_ns,
                                    vp_error *error) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    if (count == 0 || state->result != VP_OK) return vp_impl_chat_report(state, error);
    state->now_ns = now_ns;
    vp_impl_chat_feed(reply, bytes, count);
    return vp_impl_chat_report(state, error);
}
/* Sets the failure of an answer that its server gave up, or that is empty. */
static vp_result vp_impl_chat_ended_badly(vp_chat_reply *reply) {
    const char *reason = reply->finish_reason ? reply->finish_reason : "";
    const int is_ended = strstr(reason, "abort") || strstr(reason, "error") || strstr(reason, "cancel");
    const vp_impl_chat_state *state = (const vp_impl_chat_state *)reply->state;
    const int is_empty = !reply->text_bytes && !reply->reasoning_bytes && !state->has_calls;
    char words[160];
    if (!is_ended && !is_empty) return VP_OK;
    snprintf(words, sizeof words,
             is_ended  ? "it ended the answer with finish_reason %.100s"
             : *reason ? "the answer is empty (finish_reason %.100s)"
                       : "the answer is empty%s",
             reason);
    reply->failure = (char *)VP_MALLOC(strlen(words) + 1);
    if (!reply->failure) return VP_ERR_MEMORY;
    strcpy(reply->failure, words);
    return VP_OK;
}
VP_API vp_result vp_chat_reply_end(vp_chat_reply *reply, vp_error *error) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    vp_chat_usage *usage = &reply->usage;
    if (state->result == VP_OK && state->form == VP_IMPL_CHAT_WHOLE)
        vp_impl_chat_object(reply, state->body.text, state->body.bytes, 0);
    else if (state->result == VP_OK && state->form == VP_IMPL_CHAT_LINES) vp_impl_chat_line(reply);
    if (state->result == VP_OK && !reply->failure && !reply->is_complete)
        vp_impl_chat_fail(reply, VP_ERR_FORMAT, "answer",
                          state->form == VP_IMPL_CHAT_UNKNOWN ? "the server's answer is empty"
                          : reply->is_streamed ? "the stream ended before the server marked the answer as complete"
                                               : "the server sent JSON that contains no answer");
    if (state->result == VP_OK && !reply->failure && vp_impl_chat_ended_badly(reply) == VP_ERR_MEMORY)
        return vp_impl_chat_no_memory(reply), vp_impl_chat_report(state, error);
    if (usage->cached_tokens < 0) usage->cached_tokens = state->timed_cached;
    if (usage->completion_tokens < 0) usage->completion_tokens = state->timed_completion;
    /* llama.cpp counts the prompt without its cached tokens */
    if (usage->prompt_tokens < 0 && state->timed_prompt >= 0 && state->timed_cached >= 0) {
        if (state->timed_prompt > INT32_MAX - state->timed_cached)
            return vp_impl_chat_fail(reply, VP_ERR_FORMAT, "prompt_n", "the server sent something that is not a count"),
                   vp_impl_chat_report(state, error);
        usage->prompt_tokens = state->timed_prompt + state->timed_cached;
    }
    return vp_impl_chat_report(state, error);
}
VP_API void vp_chat_reply_free(vp_chat_reply *reply) {
    vp_impl_chat_state *state = (vp_impl_chat_state *)reply->state;
    if (state) {
        vp_sse_free(&state->sse);
        VP_FREE(state->body.text);
        VP_FREE(state->nodes);
        VP_FREE(state->blanked);
        VP_FREE(state);
    }
    VP_FREE(reply->text);
    VP_FREE(reply->reasoning);
    VP_FREE(reply->finish_reason);
    VP_FREE(reply->model);
    VP_FREE(reply->timings);
    VP_FREE(reply->logprobs);
    VP_FREE(reply->failure);
    VP_FREE(reply->pieces);
    memset(reply, 0, sizeof *reply);
}
