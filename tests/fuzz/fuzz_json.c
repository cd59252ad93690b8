/* fuzz_json.c: what must be true of every text that the reader accepts. libFuzzer entry. */
#include "vlmprof_json.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "fuzz_json: line %d: %s\n", __LINE__, #condition); abort(); } } while (0)

/* Checks a node's place in the tree and writes it again; returns the index after it. Depth is bounded by the reader. */
static uint32_t rewrite(const vp_json *json, uint32_t index, vp_json_writer *w, char *text, size_t capacity) {
    const vp_json_node *node = &json->nodes[index];
    uint32_t at = index + 1, i;
    size_t bytes;
    int64_t whole;
    double real;
    MUST(index < json->node_count && node->end > index && node->end <= json->node_count);
    switch (node->type) {
    case VP_JSON_STRING:
        MUST(vp_json_text(json, index, text, capacity, &bytes) == VP_OK && bytes <= node->bytes && vp_utf8_valid_bytes(text, bytes) == bytes);
        MUST(vp_json_equals(json, index, text) == (strlen(text) == bytes));
        vp_json_string_bytes(w, text, bytes);
        break;
    case VP_JSON_NUMBER:
        MUST(node->bytes < capacity);
        memcpy(text, json->text + node->start, (size_t)node->bytes);
        text[node->bytes] = 0;
        if (vp_json_to_double(json, index, &real) == VP_OK) {
            double other = strtod(text, NULL);
            MUST(memcmp(&real, &other, sizeof real) == 0);
            if (vp_json_to_int(json, index, &whole) == VP_OK) MUST((double)whole == real);
            vp_json_double(w, real);
        } else {
            MUST(strtod(text, NULL) - strtod(text, NULL) != 0); /* infinite */
            vp_json_raw(w, text, (size_t)node->bytes);
        }
        break;
    case VP_JSON_ARRAY:
        vp_json_begin_array(w);
        for (i = 0; i < node->count; i++) {
            if (i < 3) MUST(vp_json_at(json, index, i) == at);
            at = rewrite(json, at, w, text, capacity);
        }
        MUST(vp_json_at(json, index, node->count) == VP_JSON_NONE);
        vp_json_end_array(w);
        break;
    case VP_JSON_OBJECT: {
        uint32_t *scratch = (uint32_t *)malloc(((size_t)node->count + 1) * sizeof *scratch), duplicate;
        MUST(vp_json_has_duplicates(json, index, scratch, node->count, &duplicate) == VP_OK);
        free(scratch);
        vp_json_begin_object(w);
        for (i = 0; i < node->count; i++) {
            MUST(json->nodes[at].type == VP_JSON_STRING && json->nodes[at].end == at + 1);
            MUST(vp_json_text(json, at, text, capacity, &bytes) == VP_OK);
            if (strlen(text) == bytes) {
                uint32_t found = vp_json_get(json, index, text);
                MUST(duplicate == VP_JSON_NONE ? found == at + 1 : found != VP_JSON_NONE && found > at);
                vp_json_key(w, text);
            } else {
                vp_json_key(w, "NUL");
            }
            at = rewrite(json, at + 1, w, text, capacity);
        }
        vp_json_end_object(w);
        break;
    }
    case VP_JSON_NULL: vp_json_null(w); break;
    default: vp_json_bool(w, node->type == VP_JSON_TRUE); break;
    }
    MUST(at == node->end);
    return at;
}

/* Parses a text in memory of its exact size and writes it again; NULL when it was refused. */
static char *pass(const char *text, size_t bytes, int32_t indent, size_t *node_count) {
    vp_json json;
    vp_json_node *nodes;
    vp_json_writer w;
    vp_error error;
    size_t capacity = bytes * 40 + 4096; /* a level of 64 may be indented by 2 * 64; checked by the writer */
    vp_result result = vp_json_parse(text, bytes, NULL, 0, NULL, node_count, &error);
    if (result != VP_ERR_CAPACITY) {
        MUST(result == VP_ERR_FORMAT || result == VP_ERR_RANGE);
        MUST(error.offset >= 0 && error.offset <= (int64_t)bytes);
        return NULL;
    }
    nodes = (vp_json_node *)malloc(*node_count * sizeof *nodes);
    char *room = (char *)malloc(bytes + 1);
    char *out = (char *)malloc(capacity);
    MUST(nodes && room && out);
    MUST(vp_json_parse(text, bytes, nodes, *node_count - 1, &json, NULL, NULL) == VP_ERR_CAPACITY);
    MUST(vp_json_parse(text, bytes, nodes, *node_count, &json, NULL, NULL) == VP_OK);
    vp_json_writer_init(&w, out, capacity, indent);
    MUST(rewrite(&json, 0, &w, room, bytes + 1) == json.node_count);
    result = vp_json_finish(&w);
    MUST(result == VP_OK || (result == VP_ERR_CAPACITY && indent > 0));
    free(nodes);
    free(room);
    if (result != VP_OK) { free(out); return NULL; }
    return out;
}

#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *copy = (char *)malloc(bytes + !bytes), *first, *second, *third;
    size_t nodes, again;
    double value;
    MUST(copy != NULL);
    if (bytes) memcpy(copy, data, bytes);
    vp_number_parse(copy, bytes, &value);
    first = pass(copy, bytes, 0, &nodes);
    if (first) { /* written, read and written: the same nodes, and from then on the same text, whatever the indent between */
        second = pass(first, strlen(first), 3, &again);
        MUST(nodes == again);
        if (second) {
            third = pass(second, strlen(second), 0, &again);
            MUST(third && nodes == again && strcmp(first, third) == 0);
            free(third);
        }
        free(second);
    }
    free(first);
    free(copy);
    return 0;
}
