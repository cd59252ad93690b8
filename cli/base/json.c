/* json.c: small helpers over the library's JSON writer and reader. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vp_result text_sink(void *user, const char *p, size_t bytes) {
    text_add((text_buffer *)user, p, bytes);
    return VP_OK;
}
vp_result file_sink(void *user, const char *p, size_t bytes) { return fwrite(p, 1, bytes, (FILE *)user) == bytes ? VP_OK : VP_ERR_WRITE; }

void json_lossy(vp_json_writer *w, const char *text) {
    char *copy = copy_text(text, strlen(text));
    for (char *p = copy; *p;) {
        p += vp_utf8_valid_bytes(p, strlen(p));
        if (*p) *p++ = '?';
    }
    vp_json_string(w, copy);
    free(copy);
}
void put_text(vp_json_writer *w, const char *key, const char *text) {
    vp_json_key(w, key);
    if (text) json_lossy(w, text); else vp_json_null(w);
}
void put_int(vp_json_writer *w, const char *key, int64_t value) { vp_json_key(w, key); vp_json_int(w, value); }
void put_bool(vp_json_writer *w, const char *key, int value) { vp_json_key(w, key); vp_json_bool(w, value); }
void json_double_or_null(vp_json_writer *w, double value) { if (isfinite(value)) vp_json_double(w, value); else vp_json_null(w); }
void put_double(vp_json_writer *w, const char *key, double value) {
    vp_json_key(w, key);
    json_double_or_null(w, value);
}
void put_pair(vp_json_writer *w, const char *key, int64_t first, int64_t second) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    vp_json_int(w, first);
    vp_json_int(w, second);
    vp_json_end_array(w);
}
void put_null(vp_json_writer *w, const char *key) { vp_json_key(w, key); vp_json_null(w); }
void put_ints(vp_json_writer *w, const char *key, const int32_t *values, int32_t count) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (int32_t i = 0; i < count; i++) vp_json_int(w, values[i]);
    vp_json_end_array(w);
}
vp_result parse_json(parsed *p, const char *text, size_t bytes, vp_error *error) {
    size_t needed = 0;
    vp_result r = vp_json_parse(text, bytes, p->nodes, p->capacity, &p->json, &needed, error);
    if (r != VP_ERR_CAPACITY) return r;
    p->capacity = needed * 2;
    p->nodes = resize(p->nodes, p->capacity, sizeof *p->nodes);
    return vp_json_parse(text, bytes, p->nodes, p->capacity, &p->json, &needed, error);
}
int node_is(const vp_json *j, uint32_t node, vp_json_type type) { return node != VP_JSON_NONE && j->nodes[node].type == (uint8_t)type; }
char *node_text(const vp_json *j, uint32_t node) {
    size_t needed = 0;
    char *out;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    out = resize(NULL, (size_t)j->nodes[node].bytes + 1, 1); /* unescaping never lengthens */
    if (vp_json_text(j, node, out, (size_t)j->nodes[node].bytes + 1, &needed) != VP_OK || strlen(out) != needed) { free(out); return NULL; }
    return out;
}
double node_number(const vp_json *j, uint32_t node) {
    double value = 0;
    return node_is(j, node, VP_JSON_NUMBER) && vp_json_to_double(j, node, &value) == VP_OK ? value : (double)NAN;
}
int has_value(const vp_json *j, uint32_t object, const char *key) {
    uint32_t node = vp_json_get(j, object, key);
    return node != VP_JSON_NONE && !node_is(j, node, VP_JSON_NULL);
}
void json_node(vp_json_writer *w, const vp_json *j, uint32_t node) {
    const vp_json_node *n = &j->nodes[node];
    int quotes = n->type == VP_JSON_STRING;
    vp_json_raw(w, j->text + n->start - quotes, (size_t)n->bytes + 2 * (size_t)quotes);
}

int64_t node_int(const vp_json *j, uint32_t object, const char *key, int64_t otherwise) {
    int64_t value = 0;
    return vp_json_to_int(j, vp_json_get(j, object, key), &value) == VP_OK ? value : otherwise;
}
void put_interval(vp_json_writer *w, const char *key, int known, double low, double high) {
    vp_json_key(w, key);
    if (!known || !isfinite(low) || !isfinite(high)) { vp_json_null(w); return; }
    vp_json_begin_array(w);
    vp_json_double(w, low);
    vp_json_double(w, high);
    vp_json_end_array(w);
}

void put_list(vp_json_writer *w, const char *key, const text_list *l) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < l->count; i++) json_lossy(w, l->items[i]);
    vp_json_end_array(w);
}
void put_range(vp_json_writer *w, const char *key, double low, double high) { put_interval(w, key, 1, low, high); }
