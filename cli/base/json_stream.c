/* json_stream.c: one JSON object of any size, read through a window that moves along the file. The window starts at
 * the current position; it only grows if a single value does not fit. The end of a value is found by quotes and
 * brackets alone; then the library's strict reader parses it. */
#include "base/json_stream.h"

#include "base/json.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

vp_result source_open(struct source *source, const char *path, vp_error *error) {
    struct stat info;
    source->path = path;
    source->memory = NULL;
    source->fd = -1;
    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return vp_stream_read(path, SIZE_MAX / 4, &source->memory, &source->memory_bytes, error);
    return vp_file_open(path, &source->fd, error);
}
void source_close(struct source *source) {
    if (source->fd >= 0) close(source->fd);
    free(source->memory);
    source->fd = -1;
    source->memory = NULL;
}
ssize_t source_read(const struct source *source, int64_t offset, char *out, size_t bytes) {
    ssize_t got;
    if (source->fd >= 0) {
        while ((got = pread(source->fd, out, bytes, (off_t)offset)) < 0 && errno == EINTR) {}
        return got;
    }
    if ((uint64_t)offset >= source->memory_bytes) return 0;
    if (bytes > source->memory_bytes - (size_t)offset) bytes = source->memory_bytes - (size_t)offset;
    memcpy(out, source->memory + offset, bytes);
    return (ssize_t)bytes;
}
vp_result source_text(const struct source *source, int64_t offset, int64_t bytes, struct text_buffer *out,
                      vp_error *error) {
    out->bytes = 0;
    while ((int64_t)out->bytes < bytes) {
        char piece[65536];
        int64_t left = bytes - (int64_t)out->bytes;
        ssize_t got = source_read(source, offset + (int64_t)out->bytes, piece,
                                  left < (int64_t)sizeof piece ? (size_t)left : sizeof piece);
        if (got <= 0)
            return vp_error_set(error, VP_ERR_READ, offset + (int64_t)out->bytes, source->path,
                                "the file changed while it was being read");
        text_add(out, piece, (size_t)got);
    }
    return VP_OK;
}
struct json_stream {
    const struct source *source;
    char *data; size_t begin, end, capacity; /* unread bytes are data[begin, end) */
    int64_t base;                            /* offset of data[0] in the source */
    int ended;                               /* the source has no more bytes, or cannot be read */
    struct parsed value;                     /* the latest value */
};

static int64_t stream_place(const struct json_stream *stream) { return stream->base + (int64_t)stream->begin; }
static vp_result stream_fail(const struct json_stream *stream, const char *text, vp_error *error) {
    return vp_error_set(error, VP_ERR_FORMAT, stream_place(stream), stream->source->path, text);
}
/* Reads more bytes after those in the window. Returns 1 if there were any; 0 at the end or after a read error. */
static int stream_has_read(struct json_stream *stream) {
    ssize_t got;
    if (stream->ended) return 0;
    if (stream->begin) memmove(stream->data, stream->data + stream->begin, stream->end - stream->begin);
    stream->base += (int64_t)stream->begin;
    stream->end -= stream->begin;
    stream->begin = 0;
    if (stream->capacity - stream->end < WINDOW_BYTES) {
        stream->capacity = stream->end * 2 + WINDOW_BYTES;
        stream->data = resize(stream->data, stream->capacity, 1);
    }
    got = source_read(stream->source, stream->base + (int64_t)stream->end, stream->data + stream->end, WINDOW_BYTES);
    if (got <= 0) stream->ended = 1;
    else stream->end += (size_t)got;
    return got > 0;
}
/* Skips white space and returns the next character without consuming it; 0 at the end. */
static char stream_peek(struct json_stream *stream) {
    for (;; stream->begin++) {
        if (stream->begin == stream->end && !stream_has_read(stream)) return 0;
        if (!strchr(" \t\r\n", stream->data[stream->begin]) || !stream->data[stream->begin])
            return stream->data[stream->begin];
    }
}
/* Consumes the next character if it is the wanted one. Returns 1 if it was. */
static int stream_has_taken(struct json_stream *stream, char wanted) {
    if (stream_peek(stream) != wanted || stream->begin == stream->end) return 0;
    stream->begin++;
    return 1;
}
/* The length of the value that starts here; 0 if it does not end or is too long. Its text may still be invalid. */
static size_t stream_extent(struct json_stream *stream) {
    size_t at = 0;
    int depth = 0, quoted = 0, escaped = 0;
    for (;; at++) {
        if (at == VALUE_BYTES_MAX) return 0;
        if (stream->begin + at == stream->end && !stream_has_read(stream)) return depth || quoted ? 0 : at;
        char byte = stream->data[stream->begin + at];
        if (quoted) {
            if (escaped) escaped = 0;
            else if (byte == '\\') escaped = 1;
            else if (byte == '"') {
                quoted = 0;
                if (!depth) return at + 1;
            }
        } else if (byte == '"' && (depth || !at)) quoted = 1;
        else if (byte == '{' || byte == '[') depth++;
        else if (byte == '}' || byte == ']') {
            if (!depth) return at;
            if (!--depth) return at + 1;
        } else if (!depth
                   && (byte == ',' || byte == ':' || byte == '"' || byte == ' ' || byte == '\t' || byte == '\r'
                       || byte == '\n'))
            return at;
    }
}
/* Parses the next value into stream->value, which is valid until the next call. *place is its offset in the file. */
static vp_result stream_value(struct json_stream *stream, int64_t *place, size_t *bytes, vp_error *error) {
    vp_error inner = {VP_OK, -1, "", ""};
    stream_peek(stream);
    *bytes = stream_extent(stream); /* may move the window, but not the position in the file */
    *place = stream_place(stream);
    if (!*bytes && stream->end - stream->begin >= VALUE_BYTES_MAX)
        return stream_fail(stream, "a value is longer than 64 MiB", error);
    if (!*bytes) return stream_fail(stream, "the file ends inside a value, or a value is missing", error);
    vp_result result = parse_json(&stream->value, stream->data + stream->begin, *bytes, &inner);
    if (result != VP_OK)
        return vp_error_set(error, result, *place + (inner.offset < 0 ? 0 : inner.offset), stream->source->path,
                            inner.text);
    stream->begin += *bytes;
    return VP_OK;
}

static vp_result stream_array(struct json_stream *stream, struct stream_visitor *visitor, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    vp_result result = VP_OK;
    visitor->found = 1;
    if (!stream_has_taken(stream, '[')) return stream_fail(stream, "expected an array here", error);
    if (stream_has_taken(stream, ']')) return VP_OK;
    do {
        result = stream_value(stream, &place, &bytes, error);
        if (result == VP_OK) result = visitor->element(visitor->user, &stream->value.json, place, bytes, error);
    } while (result == VP_OK && stream_has_taken(stream, ','));
    if (result != VP_OK) return result;
    return stream_has_taken(stream, ']') ? VP_OK
                                         : stream_fail(stream, "a comma or the end of the array is missing", error);
}
/* Visits one member: a key, a colon, and the array or another value. */
static vp_result stream_member(struct json_stream *stream, struct stream_visitor *visitor, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    char *key = NULL;
    vp_result result = stream_value(stream, &place, &bytes, error);
    if (result == VP_OK && (key = node_text(&stream->value.json, 0)) == NULL)
        result = stream_fail(stream, "expected a key", error);
    if (result == VP_OK && !stream_has_taken(stream, ':')) result = stream_fail(stream, "a colon is missing", error);
    if (result == VP_OK && !strcmp(key, visitor->array)) result = stream_array(stream, visitor, error);
    else if (result == VP_OK) {
        result = stream_value(stream, &place, &bytes, error);
        if (result == VP_OK && visitor->member) result = visitor->member(visitor->user, key, &stream->value.json);
    }
    free(key);
    return result;
}
static vp_result stream_object(struct json_stream *stream, struct stream_visitor *visitor, vp_error *error) {
    vp_result result = VP_OK;
    if (!stream_has_taken(stream, '{')) return stream_fail(stream, "expected one JSON object", error);
    if (!stream_has_taken(stream, '}')) {
        do result = stream_member(stream, visitor, error);
        while (result == VP_OK && stream_has_taken(stream, ','));
        if (result != VP_OK) return result;
        if (!stream_has_taken(stream, '}'))
            return stream_fail(stream, "a comma or the end of the object is missing", error);
    }
    return stream_peek(stream) || stream->begin < stream->end
               ? stream_fail(stream, "unexpected text after the object", error)
               : VP_OK;
}
vp_result stream_walk(const struct source *source, struct stream_visitor *visitor, vp_error *error) {
    struct json_stream stream = {.source = source};
    vp_result result = stream_object(&stream, visitor, error);
    FREE_ALL(stream.data, stream.value.nodes);
    return result;
}
