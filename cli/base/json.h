/* json.h: small helpers over the library's JSON writer and reader.
 * put_... writes a key and its value into the open object. node_... reads a node of parsed JSON. */
#ifndef VLMPROF_CLI_JSON_H
#define VLMPROF_CLI_JSON_H
#include "base/memory.h"
#include "vlmprof.h"

/* Where a writer's bytes go: user is a struct text_buffer, or a FILE. */
vp_result text_sink(void *user, const char *text, size_t bytes);
vp_result file_sink(void *user, const char *text, size_t bytes);

/* Writes any bytes as a string: what is not UTF-8 (in file names and arguments) becomes '?'. */
void json_lossy(vp_json_writer *writer, const char *text);
void put_text(vp_json_writer *writer, const char *key, const char *text); /* NULL: null */
void put_int(vp_json_writer *writer, const char *key, int64_t value);
void put_bool(vp_json_writer *writer, const char *key, int value);
void json_double_or_null(vp_json_writer *writer, double value);
void put_double(vp_json_writer *writer, const char *key, double value); /* not finite: null */
void put_pair(vp_json_writer *writer, const char *key, int64_t first, int64_t second);
void put_null(vp_json_writer *writer, const char *key);
void put_ints(vp_json_writer *writer, const char *key, const int32_t *values, int32_t count);

/* Parsed text with its array of nodes, which the next parse_json uses again. The caller frees `nodes`. */
struct parsed { vp_json json; vp_json_node *nodes; size_t capacity; };

/* Parses a text, which must outlive the result. */
vp_result parse_json(struct parsed *parsed, const char *text, size_t bytes, vp_error *error);
int node_is(const vp_json *json, uint32_t node, vp_json_type type);
/* A malloc'ed copy of a string without escapes; NULL when the node is no string or holds \u0000. */
char *node_text(const vp_json *json, uint32_t node);
double node_number(const vp_json *json, uint32_t node); /* NaN when it is no number */
/* Fails with VP_ERR_FORMAT: "KEY" must be WANT. */
vp_result bad_member(vp_error *error, const char *key, const char *want);
int has_value(const vp_json *json, uint32_t object, const char *key);       /* truth: the key is there and not null */
/* Writes the node as it was read, on one line. */
void json_node(vp_json_writer *writer, const vp_json *json, uint32_t node);
int json_depth(const vp_json *json, uint32_t node); /* levels of objects and lists; 0 for any other value */

/* Writes an object that a server sent, on one line; null for a text that is not one, is NULL or is nested deeper than
 * FOREIGN_DEPTH_MAX: journals and results put levels of their own around it, and no JSON text may have more than 64. */
enum { FOREIGN_DEPTH_MAX = 48 };
void json_object_or_null(vp_json_writer *writer, const char *text, size_t bytes);

/* The integer under a key, or `otherwise`. */
int64_t node_int(const vp_json *json, uint32_t object, const char *key, int64_t otherwise);
/* [low, high]; null when an end is not finite, or when `known` is 0. */
void put_range(vp_json_writer *writer, const char *key, double low, double high);
void put_interval(vp_json_writer *writer, const char *key, int known, double low, double high);

void put_list(vp_json_writer *writer, const char *key, const struct text_list *list);

#endif
