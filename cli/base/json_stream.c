/* json_stream.c: one JSON object of any size, read through a window that moves along the file. */
#include "base/json_stream.h"

#include "base/json.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

vp_result source_open(source *s, const char *path, vp_error *error) {
    struct stat info;
    s->path = path;
    s->memory = NULL;
    s->fd = -1;
    if (stat(path, &info) || !S_ISREG(info.st_mode)) return vp_file_read(path, SIZE_MAX / 4, &s->memory, &s->memory_bytes, error);
    s->fd = open(path, O_RDONLY);
    return s->fd >= 0 ? VP_OK : vp_fail(error, VP_ERR_READ, -1, path, strerror(errno));
}
void source_close(source *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->memory);
    s->fd = -1;
    s->memory = NULL;
}
ssize_t source_read(const source *s, int64_t offset, char *out, size_t bytes) {
    ssize_t n;
    if (s->fd >= 0) {
        while ((n = pread(s->fd, out, bytes, (off_t)offset)) < 0 && errno == EINTR) { }
        return n;
    }
    if ((uint64_t)offset >= s->memory_bytes) return 0;
    if (bytes > s->memory_bytes - (size_t)offset) bytes = s->memory_bytes - (size_t)offset;
    memcpy(out, s->memory + offset, bytes);
    return (ssize_t)bytes;
}
vp_result source_text(const source *s, int64_t offset, int64_t bytes, text_buffer *out, vp_error *error) {
    out->bytes = 0;
    while ((int64_t)out->bytes < bytes) {
        char piece[65536];
        int64_t left = bytes - (int64_t)out->bytes;
        ssize_t n = source_read(s, offset + (int64_t)out->bytes, piece, left < (int64_t)sizeof piece ? (size_t)left : sizeof piece);
        if (n <= 0) return vp_fail(error, VP_ERR_READ, offset + (int64_t)out->bytes, s->path, "the file changed while it was read");
        text_add(out, piece, (size_t)n);
    }
    return VP_OK;
}
typedef struct json_stream {
    const source *s;
    char *data; size_t begin, end, capacity; /* unread bytes are data[begin, end) */
    int64_t base;                            /* place of data[0] in the source */
    int ended;
    parsed value;                            /* the latest one */
} json_stream;

static int64_t stream_place(const json_stream *j) { return j->base + (int64_t)j->begin; }
static vp_result stream_fail(const json_stream *j, const char *text, vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, stream_place(j), j->s->path, text);
}
/* More bytes behind those that are there: 0 at the end, or when a read failed. */
static int stream_more(json_stream *j) {
    ssize_t n;
    if (j->ended) return 0;
    if (j->begin) memmove(j->data, j->data + j->begin, j->end - j->begin);
    j->base += (int64_t)j->begin;
    j->end -= j->begin;
    j->begin = 0;
    if (j->capacity - j->end < WINDOW_BYTES) {
        j->capacity = j->end * 2 + WINDOW_BYTES;
        j->data = resize(j->data, j->capacity, 1);
    }
    n = source_read(j->s, j->base + (int64_t)j->end, j->data + j->end, WINDOW_BYTES);
    if (n <= 0) j->ended = 1;
    else j->end += (size_t)n;
    return n > 0;
}
/* The next character behind white space, which stays; 0 at the end. */
static char stream_peek(json_stream *j) {
    for (;; j->begin++) {
        if (j->begin == j->end && !stream_more(j)) return 0;
        if (!strchr(" \t\r\n", j->data[j->begin]) || !j->data[j->begin]) return j->data[j->begin];
    }
}
/* Takes one character if it is the next. */
static int stream_take(json_stream *j, char c) {
    if (stream_peek(j) != c || j->begin == j->end) return 0;
    j->begin++;
    return 1;
}
/* Length of the value that begins here; 0: it does not end, or is too long. The strict reader judges it afterwards. */
static size_t stream_extent(json_stream *j) {
    size_t at = 0;
    int depth = 0, quoted = 0, escaped = 0;
    for (;; at++) {
        char c;
        if (at == VALUE_BYTES_MAX) return 0;
        if (j->begin + at == j->end && !stream_more(j)) return depth || quoted ? 0 : at;
        c = j->data[j->begin + at];
        if (quoted) {
            if (escaped) escaped = 0;
            else if (c == '\\') escaped = 1;
            else if (c == '"') {
                quoted = 0;
                if (!depth) return at + 1;
            }
        } else if (c == '"' && (depth || !at)) quoted = 1;
        else if (c == '{' || c == '[') depth++;
        else if (c == '}' || c == ']') {
            if (!depth) return at;
            if (!--depth) return at + 1;
        } else if (!depth && (c == ',' || c == ':' || c == '"' || c == ' ' || c == '\t' || c == '\r' || c == '\n')) return at;
    }
}
/* The next value -> j->value, whose text is good until the next call; *place is where it stands. */
static vp_result stream_value(json_stream *j, int64_t *place, size_t *bytes, vp_error *error) {
    vp_error inner = {VP_OK, -1, "", ""};
    vp_result r;
    stream_peek(j);
    *bytes = stream_extent(j); /* can move the window, not its place in the file */
    *place = stream_place(j);
    if (!*bytes && j->end - j->begin >= VALUE_BYTES_MAX) return stream_fail(j, "a value is longer than 64 MiB", error);
    if (!*bytes) return stream_fail(j, "the file ends inside a value, or a value is missing", error);
    r = parse_json(&j->value, j->data + j->begin, *bytes, &inner);
    if (r != VP_OK) return vp_fail(error, r, *place + (inner.offset < 0 ? 0 : inner.offset), j->s->path, inner.text);
    j->begin += *bytes;
    return VP_OK;
}

static vp_result stream_array(json_stream *j, stream_visitor *v, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    vp_result r = VP_OK;
    v->found = 1;
    if (!stream_take(j, '[')) return stream_fail(j, "an array must stand here", error);
    if (stream_take(j, ']')) return VP_OK;
    do {
        r = stream_value(j, &place, &bytes, error);
        if (r == VP_OK) r = v->element(v->user, &j->value.json, place, bytes, error);
    } while (r == VP_OK && stream_take(j, ','));
    if (r != VP_OK) return r;
    return stream_take(j, ']') ? VP_OK : stream_fail(j, "a comma or the end of the array is missing", error);
}
static vp_result stream_object(json_stream *j, stream_visitor *v, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    vp_result r = VP_OK;
    if (!stream_take(j, '{')) return stream_fail(j, "want one JSON object", error);
    if (!stream_take(j, '}')) {
        do {
            char *key = NULL;
            r = stream_value(j, &place, &bytes, error);
            if (r == VP_OK && (key = node_text(&j->value.json, 0)) == NULL) r = stream_fail(j, "want a key", error);
            if (r == VP_OK && !stream_take(j, ':')) r = stream_fail(j, "a colon is missing", error);
            if (r == VP_OK && !strcmp(key, v->array)) r = stream_array(j, v, error);
            else if (r == VP_OK && (r = stream_value(j, &place, &bytes, error)) == VP_OK && v->member) r = v->member(v->user, key, &j->value.json);
            free(key);
        } while (r == VP_OK && stream_take(j, ','));
        if (r != VP_OK) return r;
        if (!stream_take(j, '}')) return stream_fail(j, "a comma or the end of the object is missing", error);
    }
    return stream_peek(j) || j->begin < j->end ? stream_fail(j, "text stands behind the object", error) : VP_OK;
}
vp_result stream_walk(const source *s, stream_visitor *v, vp_error *error) {
    json_stream j;
    vp_result r;
    memset(&j, 0, sizeof j);
    j.s = s;
    r = stream_object(&j, v, error);
    free(j.data);
    free(j.value.nodes);
    return r;
}
