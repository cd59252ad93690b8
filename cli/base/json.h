/* json.h: small helpers over the library's JSON writer and reader. */
#ifndef VLMPROF_CLI_JSON_H
#define VLMPROF_CLI_JSON_H
#include "base/memory.h"
#include "vlmprof.h"

vp_result text_sink(void *user, const char *p, size_t bytes);
vp_result file_sink(void *user, const char *p, size_t bytes);

/* any bytes: what is not UTF-8 (file names, argv) becomes '?' */
void json_lossy(vp_json_writer *w, const char *text);
void put_text(vp_json_writer *w, const char *key, const char *text);
void put_int(vp_json_writer *w, const char *key, int64_t value);
void put_bool(vp_json_writer *w, const char *key, int value);
void json_double_or_null(vp_json_writer *w, double value);
void put_double(vp_json_writer *w, const char *key, double value); /* NaN: not measured */
void put_pair(vp_json_writer *w, const char *key, int64_t first, int64_t second);
void put_null(vp_json_writer *w, const char *key);
void put_ints(vp_json_writer *w, const char *key, const int32_t *values, int32_t count);

/* Parsed text with its own node array, reused from line to line. */
typedef struct parsed { vp_json json; vp_json_node *nodes; size_t capacity; } parsed;

vp_result parse_json(parsed *p, const char *text, size_t bytes, vp_error *error);
int node_is(const vp_json *j, uint32_t node, vp_json_type type);
char *node_text(const vp_json *j, uint32_t node); /* unescaped copy; NULL when the node is no string or holds \u0000 */
double node_number(const vp_json *j, uint32_t node); /* NaN for null and whatever is no number */
int has_value(const vp_json *j, uint32_t object, const char *key); /* null is as good as none */
void json_node(vp_json_writer *w, const vp_json *j, uint32_t node); /* a string's node leaves its quotes out */

int64_t node_int(const vp_json *j, uint32_t object, const char *key, int64_t otherwise);
void put_interval(vp_json_writer *w, const char *key, int known, double low, double high);

void put_list(vp_json_writer *w, const char *key, const text_list *l);
void put_range(vp_json_writer *w, const char *key, double low, double high);

#endif
