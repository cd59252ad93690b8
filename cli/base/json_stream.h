/* json_stream.h: one JSON object of any size, read through a window that moves along the file. */
#ifndef VLMPROF_CLI_JSON_STREAM_H
#define VLMPROF_CLI_JSON_STREAM_H
#include "base/memory.h"
#include "vlmprof.h"
#include <sys/types.h>

typedef struct source { const char *path; int fd; char *memory; size_t memory_bytes; } source;

vp_result source_open(source *s, const char *path, vp_error *error);
void source_close(source *s);

/* Up to `bytes` bytes from a place; 0 at the end, -1 after a read error. */
ssize_t source_read(const source *s, int64_t offset, char *out, size_t bytes);
vp_result source_text(const source *s, int64_t offset, int64_t bytes, text_buffer *out, vp_error *error);

enum { WINDOW_BYTES = 1 << 18, VALUE_BYTES_MAX = 64 << 20 };

/* What is told of each element of the array and of each other member (key NULL, key); a failure ends the walk with it. */
typedef struct stream_visitor {
    const char *array; /* name of the array whose elements are visited */
    vp_result (*element)(void *user, const vp_json *value, int64_t place, size_t bytes, vp_error *error);
    vp_result (*member)(void *user, const char *key, const vp_json *value); /* may be NULL */
    void *user;
    int found;
} stream_visitor;

/* Goes through {..., ARRAY: [...], ...}; memory: the longest single value, twice, and its nodes. */
vp_result stream_walk(const source *s, stream_visitor *v, vp_error *error);

#endif
