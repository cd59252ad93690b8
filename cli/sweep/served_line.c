/* served_line.c: what a server's pass gave, as the journal keeps it. */
#include "sweep/served_line.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void put_count(vp_json_writer *writer, const char *key, int64_t count) {
    if (count < 0 || count > INT32_MAX) put_null(writer, key); else put_int(writer, key, count);
}
static void put_pieces(vp_json_writer *writer, const struct served *served) {
    vp_json_key(writer, "piece_ns");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < served->piece_count; i++) vp_json_int(writer, served->pieces[i].at_ns);
    vp_json_end_array(writer);
    vp_json_key(writer, "piece_bytes");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < served->piece_count; i++) vp_json_int(writer, served->pieces[i].text_bytes);
    vp_json_end_array(writer);
}
void served_put(vp_json_writer *writer, const struct served *served) {
    vp_json_key(writer, "served");
    vp_json_begin_object(writer);
    put_int(writer, "sent_ns", served->sent_ns);
    put_int(writer, "headers_ns", served->headers_ns);
    put_int(writer, "end_ns", served->end_ns);
    put_int(writer, "first_ns", served->first_ns);
    put_int(writer, "first_output_ns", served->first_output_ns);
    put_pieces(writer, served);
    vp_json_key(writer, "usage");
    vp_json_begin_object(writer);
    put_count(writer, "prompt_tokens", served->usage.prompt_tokens);
    put_count(writer, "completion_tokens", served->usage.completion_tokens);
    put_count(writer, "image_tokens", served->usage.image_tokens);
    put_count(writer, "cached_tokens", served->usage.cached_tokens);
    put_count(writer, "reasoning_tokens", served->usage.reasoning_tokens);
    vp_json_end_object(writer);
    put_text(writer, "model", served->model);
    put_text(writer, "finish_reason", served->finish_reason);
    put_text(writer, "reasoning", served->reasoning);
    vp_json_key(writer, "timings");
    json_object_or_null(writer, served->timings, served->timings ? strlen(served->timings) : 0);
    put_bool(writer, "is_streamed", served->is_streamed);
    put_bool(writer, "is_new_connection", served->is_new_connection);
    put_int(writer, "http_status", served->http_status);
    put_int(writer, "attempts", served->attempts);
    vp_json_end_object(writer);
}

/* A list of integers beside the pieces, into every piece's number at `offset`. */
static void read_pieces(const vp_json *json, uint32_t list, struct served *served, size_t offset) {
    uint32_t item = list + 1;
    for (size_t i = 0; i < served->piece_count; i++, item = json->nodes[item].end) {
        int64_t value = 0;
        if (vp_json_to_int(json, item, &value) == VP_OK)
            memcpy((char *)&served->pieces[i] + offset, &value, sizeof value);
    }
}
static char *read_timings(const vp_json *json, uint32_t node) {
    return node_is(json, node, VP_JSON_OBJECT)
               ? copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes)
               : NULL;
}
struct served *served_read(const vp_json *json, uint32_t node) {
    struct served *served = zeroed(1, sizeof *served);
    const uint32_t pieces = vp_json_get(json, node, "piece_ns"), usage = vp_json_get(json, node, "usage");
    served->sent_ns = node_int(json, node, "sent_ns", -1);
    served->uploaded_ns = -1;
    served->headers_ns = node_int(json, node, "headers_ns", -1);
    served->end_ns = node_int(json, node, "end_ns", -1);
    served->first_ns = node_int(json, node, "first_ns", -1);
    served->first_output_ns = node_int(json, node, "first_output_ns", -1);
    served->piece_count = node_is(json, pieces, VP_JSON_ARRAY) ? json->nodes[pieces].count : 0;
    served->pieces = zeroed(served->piece_count + 1, sizeof *served->pieces);
    read_pieces(json, pieces, served, offsetof(vp_chat_piece, at_ns));
    read_pieces(json, vp_json_get(json, node, "piece_bytes"), served, offsetof(vp_chat_piece, text_bytes));
    served->usage.prompt_tokens = node_int(json, usage, "prompt_tokens", -1);
    served->usage.completion_tokens = node_int(json, usage, "completion_tokens", -1);
    served->usage.image_tokens = node_int(json, usage, "image_tokens", -1);
    served->usage.cached_tokens = node_int(json, usage, "cached_tokens", -1);
    served->usage.reasoning_tokens = node_int(json, usage, "reasoning_tokens", -1);
    served->model = node_text(json, vp_json_get(json, node, "model"));
    served->finish_reason = node_text(json, vp_json_get(json, node, "finish_reason"));
    served->reasoning = node_text(json, vp_json_get(json, node, "reasoning"));
    served->timings = read_timings(json, vp_json_get(json, node, "timings"));
    served->is_streamed = node_is(json, vp_json_get(json, node, "is_streamed"), VP_JSON_TRUE);
    served->is_new_connection = node_is(json, vp_json_get(json, node, "is_new_connection"), VP_JSON_TRUE);
    served->http_status = (int)node_int(json, node, "http_status", 0);
    served->attempts = (int32_t)node_int(json, node, "attempts", 1);
    return served;
}
