/* json_stream.h: one JSON object of any size, read through a window that moves along the file.
 * A path goes in; a visitor gets each element of one array and each other member. Results are vp_result. */
#ifndef VLMPROF_CLI_JSON_STREAM_H
#define VLMPROF_CLI_JSON_STREAM_H
#include "base/memory.h"
#include "vlmprof_json.h"
#include <sys/types.h>

/* A file that is read by offset: through `fd`, or from memory if it is not a regular file (a pipe). */
struct source { const char *path; int fd; char *memory; size_t memory_bytes; };

vp_result source_open(struct source *source, const char *path, vp_error *error);
void source_close(struct source *source);

/* Reads up to `bytes` bytes from an offset. Returns their count: 0 at the end, -1 after a read error. */
ssize_t source_read(const struct source *source, int64_t offset, char *out, size_t bytes);

/* Reads exactly `bytes` bytes into `out` and replaces its text. */
vp_result source_text(const struct source *source, int64_t offset, int64_t bytes, struct text_buffer *out,
                      vp_error *error);

enum { WINDOW_BYTES = 1 << 18, VALUE_BYTES_MAX = 64 << 20 };

/* The callbacks for each element of one array and for each other member. If a call fails, the walk ends and returns
 * that failure. */
struct stream_visitor {
    const char *array; /* the key of the array whose elements are visited */
    vp_result (*element)(void *user, const vp_json *value, int64_t place, size_t bytes, vp_error *error);
    vp_result (*member)(void *user, const char *key, const vp_json *value); /* may be NULL */
    void *user;
    int found; /* 1 if the array exists */
};

/* Visits {..., ARRAY: [...], ...} from front to back. Memory: twice the longest single value, and its nodes. */
vp_result stream_walk(const struct source *source, struct stream_visitor *visitor, vp_error *error);

#endif
