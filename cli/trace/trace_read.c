/* trace_read.c: reads a Chrome trace of vlmprof or torch.profiler into arrays of events. The format is the one that
 * Kineto writes. The file is read event by event; memory is 64 bytes per slice, plus every name once. Times are int64
 * nanoseconds, converted from the file's decimal microseconds without a double in between. */
#include "trace/trace_read.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>

/* Limit of a time, and of the sum of all durations: the sum of two fits into an int64. */
#define TRACE_NS_LIMIT INT64_C(4000000000000000000)

int is_host_category(int category) { return category <= TRACE_SPAN; }
int is_device_work(int category) { return category == TRACE_KERNEL || category == TRACE_COPY || category == TRACE_SET; }
int is_annotation(int category) { return category == TRACE_USER || category == TRACE_DEVICE_USER; }

void trace_free(struct trace *trace) {
    text_table_free(&trace->names);
    text_table_free(&trace->tracks);
    text_table_free(&trace->processes);
    text_table_free(&trace->unknown);
    FREE_ALL(trace->labels, trace->process_labels, trace->events, trace->memory);
}

/* ---- the file, piece by piece */
struct trace_input {
    FILE *file;
    void *gzip; /* zlib's file instead of `file`; NULL: not compressed */
    int (*gzip_read)(void *gzip, void *bytes, unsigned count);
    int (*gzip_close)(void *gzip);
    const char *path;
    struct text_buffer value;                    /* the last value read */
    struct text_buffer again;                    /* bytes that are read again before the next ones of the block */
    const unsigned char *next, *end;             /* the bytes to read next, in block or in again */
    const unsigned char *block_next, *block_end; /* those of block while others are read again; otherwise NULL */
    int64_t depth; /* within a value: open brackets; 1 inside a string; 1 after a backslash there */
    int in_string, is_escaped;
    int is_damaged;        /* 1: zlib could not decompress further */
    int64_t start, offset; /* byte offsets in the file: start of that value; next byte */
    struct parsed json;
    struct buffer scratch;
    unsigned char block[65536];
};
typedef enum value_end { VALUE_WHOLE, VALUE_CUT, VALUE_LARGE } value_end;

/* Fills the block again, or returns to it. Returns the next byte; -1 at the end. */
static int input_fill(struct trace_input *in) {
    if (in->block_end) {
        in->next = in->block_next;
        in->end = in->block_end;
        in->block_end = NULL;
        if (in->next < in->end) return *in->next;
    }
    const int got = in->gzip ? in->gzip_read(in->gzip, in->block, sizeof in->block)
                             : (int)fread(in->block, 1, sizeof in->block, in->file);
    if (got < 0) in->is_damaged = 1;
    in->next = in->block;
    in->end = in->block + (got > 0 ? got : 0);
    return got > 0 ? *in->next : -1;
}
/* Returns the next byte without consuming it; -1 at the end. */
static inline int input_peek(struct trace_input *in) { return in->next < in->end ? *in->next : input_fill(in); }
/* Returns and consumes the next byte; -1 at the end. */
static int input_take(struct trace_input *in) {
    int byte = input_peek(in);
    if (byte >= 0) { in->next++; in->offset++; }
    return byte;
}
/* Skips white space. Returns the next byte without consuming it; -1 at the end. */
static int input_space(struct trace_input *in) {
    int byte;
    while ((byte = input_peek(in)) == ' ' || byte == '\n' || byte == '\r' || byte == '\t') input_take(in);
    return byte;
}
/* Reads on to the end of the value that input_value began. Keeps its bytes in in->value, up to TRACE_VALUE_BYTES_MAX;
 * keeps none if `is_skipped`. */
static value_end input_rest(struct trace_input *in, int is_skipped) {
    struct text_buffer *value = &in->value;
    size_t bytes = is_skipped;
    int byte;
    while ((byte = input_peek(in)) >= 0) {
        if (!in->in_string && !in->depth && bytes + value->bytes && byte && strchr(" \n\r\t,:]}", byte))
            return VALUE_WHOLE;
        if (!is_skipped) {
            if (value->bytes >= TRACE_VALUE_BYTES_MAX) return VALUE_LARGE;
            if (value->bytes + 2 > value->capacity) {
                value->capacity = (value->bytes + 2) * 2;
                value->data = resize(value->data, value->capacity, 1);
            }
            value->data[value->bytes++] = (char)byte;
        }
        in->next++;
        in->offset++;
        if (in->in_string) {
            if (in->is_escaped) in->is_escaped = 0;
            else if (byte == '\\') in->is_escaped = 1;
            else if (byte == '"') in->in_string = 0;
            if (in->in_string || in->depth) continue;
            return VALUE_WHOLE;
        }
        if (byte == '"') in->in_string = 1;
        else if (byte == '{' || byte == '[') in->depth++;
        else if ((byte == '}' || byte == ']') && --in->depth <= 0) return VALUE_WHOLE;
    }
    return VALUE_CUT;
}
/* Reads the bytes of one value into in->value, up to its closing bracket or quote. parse_json checks later if they are
 * JSON. VALUE_LARGE: it is longer; input_rest skips the rest. */
static value_end input_value(struct trace_input *in) {
    in->value.bytes = 0;
    in->depth = in->in_string = in->is_escaped = 0;
    input_space(in);
    in->start = in->offset;
    return input_rest(in, 0);
}
/* Lets the bytes of in->value from `from` be read again. */
static void input_return(struct trace_input *in, size_t from) {
    struct text_buffer again = {NULL, 0, 0};
    text_add(&again, in->value.data + from, in->value.bytes - from);
    if (in->block_end) text_add(&again, (const char *)in->next, (size_t)(in->end - in->next));
    else {
        in->block_next = in->next;
        in->block_end = in->end;
    }
    free(in->again.data);
    in->again = again;
    in->next = (const unsigned char *)again.data;
    in->end = in->next + again.bytes;
    in->offset -= (int64_t)(in->value.bytes - from);
}
static int input_bad(const struct trace_input *in, int64_t offset, const char *what) {
    return complain(EXIT_INPUT, "%s: malformed at byte %lld: %s", in->path, (long long)offset, what);
}
/* Complains that the file ends too early or cannot be read further. Returns ENDS_EARLY if the part before is enough,
 * otherwise an exit code. */
static int input_ended(struct trace *trace, const struct trace_input *in, const char *where) {
    if (in->is_damaged || ferror(in->file))
        return complain(EXIT_INPUT, "%s: cannot be read beyond byte %lld%s: %s", in->path, (long long)in->offset,
                        in->gzip ? " of its decompressed text" : "",
                        in->is_damaged ? "it is cut off or damaged" : strerror(errno));
    if (!in->offset) return complain(EXIT_INPUT, "%s: the file is empty", in->path);
    trace->is_cut = 1;
    if (trace->is_partial) return ENDS_EARLY;
    return complain(EXIT_INPUT, "%s: cut off at byte %lld, %s; %lld complete events precede it (--partial shows them)",
                    in->path, (long long)in->offset, where, (long long)trace->seen);
}
/* Reads a whole value and parses it into in->json; a value that is too long is skipped, and reads as null. Returns 0,
 * ENDS_EARLY or an exit code. */
static int input_parse(struct trace *trace, struct trace_input *in, const char *where) {
    vp_error error = {VP_OK, -1, "", ""};
    value_end end = input_value(in);
    const int is_large = end == VALUE_LARGE;
    if (is_large) end = input_rest(in, 1);
    if (end == VALUE_CUT) return input_ended(trace, in, where);
    if (parse_json(&in->json, is_large ? "null" : in->value.data, is_large ? 4 : in->value.bytes, &error) == VP_OK)
        return 0;
    return input_bad(in, in->start + (error.offset > 0 ? error.offset : 0), error.text);
}
/* Skips a value of any length. Returns 0, ENDS_EARLY or an exit code. */
static int input_skip(struct trace *trace, struct trace_input *in, const char *where) {
    in->value.bytes = 0;
    in->depth = in->in_string = in->is_escaped = 0;
    input_space(in);
    const int64_t start = in->start = in->offset;
    if (input_rest(in, 1) == VALUE_CUT) return input_ended(trace, in, where);
    return in->offset > start ? 0 : input_bad(in, start, "a value is missing");
}
/* The place in in->value where the next event seems to begin: after a } and a comma, before a { and a known key; or
 * where the events end; 0 if there is none. */
static size_t next_event(const struct text_buffer *value) {
    static const char *const keys[] = {"\"ph\"",  "\"cat\"", "\"name\"", "\"pid\"",
                                       "\"tid\"", "\"ts\"",  "\"args\"", "\"id\""};
    for (size_t at = 0; at + 1 < value->bytes; at++) {
        size_t next = at + 1, start;
        if (value->data[at] != '}') continue;
        while (next < value->bytes && strchr(" \t\r\n", value->data[next])) next++;
        if (next >= value->bytes || value->data[next] != ',') continue;
        start = next;
        for (next++; next < value->bytes && strchr(" \t\r\n", value->data[next]);) next++;
        if (next >= value->bytes || value->data[next] != '{') continue;
        for (next++; next < value->bytes && strchr(" \t\r\n", value->data[next]);) next++;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (value->bytes - next > strlen(keys[k]) && !memcmp(value->data + next, keys[k], strlen(keys[k])))
                return start;
    }
    return 0;
}
enum { MISPLACED_MOST = 1000 }; /* each may cost a search through TRACE_VALUE_BYTES_MAX */

/* Counts an event that is not JSON, and remembers the first. */
static void count_malformed(struct trace *trace, const struct trace_input *in, const vp_error *error) {
    const long long at = (long long)(in->start + (error->offset > 0 ? error->offset : 0));
    if (!trace->malformed++)
        snprintf(trace->malformed_at, sizeof trace->malformed_at, "event %lld, at byte %lld: %.60s",
                 (long long)trace->seen + 1, at, error->text);
    trace->seen++;
}
/* Finds the end of an event that is not JSON, whose bytes up to its closing bracket or to `end` are in in->value.
 * Returns the number of its bytes, or 0. */
static size_t malformed_end(struct trace_input *in, value_end *end, vp_error *error) {
    for (int tries = 0; tries < 100; tries++) {
        const int byte = *end == VALUE_WHOLE ? input_space(in) : -1;
        const size_t next = next_event(&in->value);
        if (next) return next;
        if (byte == ',' || byte == ']') return in->value.bytes;
        if (*end != VALUE_WHOLE) break;
        in->depth = 1; /* brackets in its texts closed it too early */
        in->in_string = 0;
        *end = input_rest(in, 0);
    }
    if (*end != VALUE_LARGE || input_rest(in, 1) != VALUE_WHOLE) return 0;
    snprintf(error->text, sizeof error->text, "longer than %d MiB", TRACE_VALUE_BYTES_MAX >> 20);
    return in->value.bytes;
}
/* Returns 1 if the value is JSON without NaN and inf, and with U+FFFD for bytes that are not UTF-8, in in->json. */
static int can_repair(struct trace *trace, struct trace_input *in) {
    struct text_buffer whole = {NULL, 0, 0};
    for (size_t at = 0, valid; at < in->value.bytes; at += valid + 1) {
        valid = vp_utf8_valid_bytes(in->value.data + at, in->value.bytes - at);
        text_add(&whole, in->value.data + at, valid);
        if (at + valid < in->value.bytes) text_add_string(&whole, "\xef\xbf\xbd");
    }
    const int64_t words = vp_json_blank_words(whole.data, whole.bytes);
    const int can = parse_json(&in->json, whole.data, whole.bytes, NULL) == VP_OK;
    trace->no_values += can && words;
    free(can ? in->value.data : whole.data);
    if (can) in->value = whole;
    return can;
}
/* Reads the next event into in->json; one that is not JSON is counted, and in->json is null. Returns 0, ENDS_EARLY or
 * an exit code. */
static int read_event(struct trace *trace, struct trace_input *in) {
    vp_error error = {VP_ERR_FORMAT, -1, "", "its end was not found"};
    value_end end = input_value(in);
    if (end == VALUE_WHOLE) {
        const vp_result result = parse_json(&in->json, in->value.data, in->value.bytes, &error);
        const int byte = input_space(in), is_object = result == VP_OK && in->json.json.nodes[0].type == VP_JSON_OBJECT;
        if (is_object && (byte == ',' || byte == ']' || byte < 0)) return 0;
        if (result == VP_OK) error.offset = is_object ? in->offset - in->start : 0;
        if (result == VP_OK)
            snprintf(error.text, sizeof error.text, "%s",
                     is_object ? "a comma or ] is missing after an event" : "an event must be an object");
        if (result != VP_OK && can_repair(trace, in)) return 0;
    }
    const int is_cut = end == VALUE_CUT;
    const size_t next = malformed_end(in, &end, &error);
    if (!next && is_cut) {
        char where[64];
        snprintf(where, sizeof where, "in event %lld", (long long)trace->seen + 1);
        return input_ended(trace, in, where);
    }
    if (!next) return input_bad(in, in->start + (error.offset > 0 ? error.offset : 0), error.text);
    if (next < in->value.bytes) {
        if (++trace->misplaced > MISPLACED_MOST)
            return complain(EXIT_INPUT, "%s: over %d events without a clear end; the first malformed is %s", in->path,
                            MISPLACED_MOST, trace->malformed_at);
        input_return(in, next);
    }
    count_malformed(trace, in, &error);
    return parse_json(&in->json, "null", 4, &error) == VP_OK ? 0 : EXIT_DEVICE;
}

/* ---- one event */
/* The text of a string, valid until the next call; NULL if the node is not a string. */
static const char *scratch_text(struct trace_input *in, uint32_t node) {
    const vp_json *json = &in->json.json;
    size_t capacity, needed = 0;
    if (!node_is(json, node, VP_JSON_STRING)) return NULL;
    capacity = (size_t)json->nodes[node].bytes + 1;
    reserve(&in->scratch, capacity, 1);
    if (vp_json_text(json, node, (char *)in->scratch.data, capacity, &needed) != VP_OK) return NULL;
    return (const char *)in->scratch.data;
}
/* The number of a string among the names, or NO_INDEX. */
static uint32_t name_of(struct trace *trace, struct trace_input *in, uint32_t node) {
    const char *text = scratch_text(in, node);
    return text ? text_table_add(&trace->names, text) : NO_INDEX;
}
/* Reads a number, or a string that contains one. Sets the integer nearest to it times 10^power; halves round away from
 * zero. Returns 1 if there is one, within TRACE_NS_LIMIT. */
static int can_read_decimal(const vp_json *json, uint32_t node, int power, int64_t *out) {
    size_t bytes, at;
    double value;
    int64_t sum = 0;
    if (!node_is(json, node, VP_JSON_NUMBER) && !node_is(json, node, VP_JSON_STRING)) return 0;
    const char *digits = json->text + json->nodes[node].start;
    bytes = (size_t)json->nodes[node].bytes;
    if (vp_number_parse(digits, bytes, &value) != VP_OK || !(fabs(value) * pow(10, power) < (double)TRACE_NS_LIMIT))
        return 0;
    if (memchr(digits, 'e', bytes) || memchr(digits, 'E', bytes)) {
        *out = llround(value * pow(10, power));
        return 1;
    }
    for (at = *digits == '-'; at < bytes && digits[at] != '.'; at++) sum = sum * 10 + (digits[at] - '0');
    at += at < bytes;
    for (int places = 0; places < power; places++) sum = sum * 10 + (at < bytes ? digits[at++] - '0' : 0);
    sum += at < bytes && digits[at] >= '5';
    *out = *digits == '-' ? -sum : sum;
    return 1;
}
static int64_t node_whole(const vp_json *json, uint32_t node, int64_t fallback) {
    int64_t value;
    return can_read_decimal(json, node, 0, &value) ? value : fallback;
}
/* Finds the values of some keys of an object in one pass: VP_JSON_NONE for a missing key, the last of equal keys. */
static void find_members(const vp_json *json, uint32_t object, const char *const *keys, uint32_t *found, int count) {
    for (int k = 0; k < count; k++) found[k] = VP_JSON_NONE;
    if (!node_is(json, object, VP_JSON_OBJECT)) return;
    for (uint32_t key = object + 1; key < json->nodes[object].end; key = json->nodes[key + 1].end)
        for (int k = 0; k < count; k++) if (vp_json_equals(json, key, keys[k])) { found[k] = key + 1; break; }
}

enum { FIELD_PHASE, FIELD_CATEGORY, FIELD_NAME, FIELD_PROCESS, FIELD_THREAD, FIELD_TIME, FIELD_DURATION,
       FIELD_ARGUMENTS, FIELD_COUNT };
static const char *const FIELD_KEYS[FIELD_COUNT] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};
enum { ARGUMENT_EXTERNAL, ARGUMENT_EXTERNAL_OLD, ARGUMENT_CORRELATION, ARGUMENT_BYTES, ARGUMENT_SHAPES,
       ARGUMENT_STREAM, ARGUMENT_COUNT };
static const char *const ARGUMENT_KEYS[ARGUMENT_COUNT] = {"External id", "external id", "correlation", "bytes",
                                                          "Input Dims", "stream"};
enum { MEMORY_BYTES, MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_TYPE, MEMORY_DEVICE, MEMORY_COUNT };
static const char *const MEMORY_KEYS[MEMORY_COUNT] = {"Bytes", "Total Allocated", "Total Reserved", "Device Type",
                                                      "Device Id"};

/* Categories of Kineto, of torch 1.8 to 1.11 (from Operator on), and of other devices. */
static const struct { const char *name; trace_category category; } CATEGORIES[] = {
    {"cpu_op", TRACE_OP}, {"user_annotation", TRACE_USER}, {"gpu_user_annotation", TRACE_DEVICE_USER},
    {"kernel", TRACE_KERNEL}, {"gpu_memcpy", TRACE_COPY}, {"gpu_memset", TRACE_SET},
    {"python_function", TRACE_PYTHON}, {"thread_span", TRACE_SPAN}, {"overhead", TRACE_OVERHEAD},
    {"Operator", TRACE_OP}, {"Kernel", TRACE_KERNEL}, {"Memcpy", TRACE_COPY}, {"Memset", TRACE_SET},
    {"Runtime", TRACE_RUNTIME}, {"Python", TRACE_PYTHON},
    {"mtia_ccp_events", TRACE_KERNEL}, {"mtia_workloadd", TRACE_KERNEL}, {"cuda_profiler_range", TRACE_KERNEL},
    {"hpu_op", TRACE_KERNEL}, {"xpu", TRACE_KERNEL}, {"collective_comm", TRACE_KERNEL},
    {"Trace", TRACE_NOTHING}, {"cuda_sync", TRACE_NOTHING}, {"cuda_event", TRACE_NOTHING},
    {"mtia_insight", TRACE_NOTHING}};

/* The category of a slice by its "cat"; NULL if the file does not give one. An unknown one is a kernel's on a device's
 * stream, otherwise an operation's, and its name is remembered. */
static trace_category category_of(struct trace *trace, const char *text, int is_on_stream) {
    const size_t bytes = text ? strlen(text) : 0;
    if (!bytes) return is_on_stream ? TRACE_KERNEL : TRACE_OP;
    for (size_t i = 0; i < sizeof CATEGORIES / sizeof *CATEGORIES; i++)
        if (!strcmp(text, CATEGORIES[i].name)) return CATEGORIES[i].category;
    if ((bytes > 8 && !strcmp(text + bytes - 8, "_runtime")) || (bytes > 7 && !strcmp(text + bytes - 7, "_driver")))
        return TRACE_RUNTIME;
    if (trace->unknown.count < 1000) text_table_add(&trace->unknown, text);
    return is_on_stream ? TRACE_KERNEL : TRACE_OP;
}
static void add_spelled(struct text_buffer *text, const vp_json *json, uint32_t node) {
    if (node_is(json, node, VP_JSON_STRING) || node_is(json, node, VP_JSON_NUMBER))
        text_add(text, json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
    else text_add(text, "-", 1);
}
/* The number of a text, which is freed. A new one has no label. */
static uint32_t labelled(struct text_table *table, struct text_buffer *text, uint32_t **labels, uint32_t *count) {
    const uint32_t index = text_table_add(table, text->data);
    free(text->data);
    if (index == *count) {
        *labels = grown(*labels, *count, sizeof **labels);
        (*labels)[(*count)++] = NO_INDEX;
    }
    return index;
}
static uint32_t process_of(struct trace *trace, const vp_json *json, uint32_t node) {
    struct text_buffer text = {NULL, 0, 0};
    add_spelled(&text, json, node);
    return labelled(&trace->processes, &text, &trace->process_labels, &trace->process_label_count);
}
/* The number of a track. A track is a process and a thread. */
static uint32_t track_of(struct trace *trace, const vp_json *json, uint32_t process, uint32_t thread) {
    struct text_buffer text = {NULL, 0, 0};
    add_spelled(&text, json, process);
    text_add(&text, " ", 1);
    add_spelled(&text, json, thread);
    return labelled(&trace->tracks, &text, &trace->labels, &trace->label_count);
}
/* The number of an event's shapes among the names, formatted as in torch's table; NO_INDEX if none. */
static uint32_t shapes_of(struct trace *trace, const vp_json *json, uint32_t node) {
    size_t bytes = 0;
    int in_string = 0;
    if (!node_is(json, node, VP_JSON_ARRAY) || !json->nodes[node].count || !node_is(json, node + 1, VP_JSON_ARRAY))
        return NO_INDEX;
    char *text = resize(NULL, (size_t)json->nodes[node].bytes, 2);
    for (int64_t i = 0; i < (int64_t)json->nodes[node].bytes; i++) {
        const char byte = json->text[json->nodes[node].start + i];
        if (!in_string && strchr(" \t\r\n", byte)) continue;
        if (byte == '"') in_string = !in_string;
        text[bytes++] = byte;
        if (byte == ',' && !in_string) text[bytes++] = ' ';
        if (byte == '\\') text[bytes++] = json->text[json->nodes[node].start + ++i];
    }
    text[bytes] = 0;
    uint32_t shapes = text_table_add(&trace->names, text);
    free(text);
    return shapes;
}
static void keep_event(struct trace *trace, struct trace_event event) {
    event.order = (uint32_t)trace->count;
    *ADDED(trace->events, trace->count) = event;
}
/* The number of the name without the index at its end: the steps decode[0], decode[1], .. are one row. */
static uint32_t name_without_index(struct trace *trace, uint32_t name) {
    const char *text = text_table_at(&trace->names, name);
    const size_t kept = strcspn(text, "["), digits = text[kept] ? strspn(text + kept + 1, "0123456789") : 0;
    char own[120];
    if (!kept || kept >= sizeof own || !digits || strcmp(text + kept + 1 + digits, "]") != 0) return name;
    snprintf(own, sizeof own, "%.*s", (int)kept, text);
    return text_table_add(&trace->names, own);
}
/* Adds a slice, or counts the reason for leaving it out. */
static void add_slice(struct trace *trace, struct trace_input *in, const uint32_t *fields) {
    const vp_json *json = &in->json.json;
    uint32_t arguments[ARGUMENT_COUNT];
    find_members(json, fields[FIELD_ARGUMENTS], ARGUMENT_KEYS, arguments, ARGUMENT_COUNT);
    const int is_on_stream = node_whole(json, arguments[ARGUMENT_STREAM], -1) >= 0;
    struct trace_event event = {
        .category = (uint8_t)category_of(trace, scratch_text(in, fields[FIELD_CATEGORY]), is_on_stream)};
    if (event.category == TRACE_NOTHING) return;
    if (fields[FIELD_DURATION] == VP_JSON_NONE) { trace->no_duration++; return; }
    if (!can_read_decimal(json, fields[FIELD_TIME], 3, &event.begin_ns)
        || !can_read_decimal(json, fields[FIELD_DURATION], 3, &event.ns) || event.ns < 0
        || event.ns > TRACE_NS_LIMIT - trace->all_ns) {
        trace->no_time++;
        return;
    }
    event.name = name_of(trace, in, fields[FIELD_NAME]);
    if (event.name == NO_INDEX || !*text_table_at(&trace->names, event.name)) { trace->no_name++; return; }
    trace->all_ns += event.ns;
    if (!strncmp(text_table_at(&trace->names, event.name), "ProfilerStep#", 13)) {
        if (trace->is_own && event.ns == 1000) return; /* the empty step at the end of older vlmprof files */
        event.name = text_table_add(&trace->names, "ProfilerStep*");
    } else if (trace->is_own && !strncmp(text_table_at(&trace->names, event.name), "end of ProfilerStep#", 20)) return;
    if (trace->is_own) event.name = name_without_index(trace, event.name);
    event.external = node_whole(
        json, arguments[arguments[ARGUMENT_EXTERNAL] == VP_JSON_NONE ? ARGUMENT_EXTERNAL_OLD : ARGUMENT_EXTERNAL], 0);
    event.correlation = node_whole(json, arguments[ARGUMENT_CORRELATION], 0);
    /* before October 2024, Kineto gave a slice without an operation its own correlation as External id */
    if (event.external == event.correlation) event.external = 0;
    event.process = process_of(trace, json, fields[FIELD_PROCESS]);
    event.bytes = node_whole(json, arguments[ARGUMENT_BYTES], 0);
    event.track = track_of(trace, json, fields[FIELD_PROCESS], fields[FIELD_THREAD]);
    event.shapes = shapes_of(trace, json, arguments[ARGUMENT_SHAPES]);
    keep_event(trace, event);
}
/* Adds the data of a "[memory]" event, or counts the reason for leaving it out. */
static void add_memory(struct trace *trace, const vp_json *json, const uint32_t *fields) {
    struct trace_memory memory;
    uint32_t arguments[MEMORY_COUNT];
    find_members(json, fields[FIELD_ARGUMENTS], MEMORY_KEYS, arguments, MEMORY_COUNT);
    if (!can_read_decimal(json, fields[FIELD_TIME], 3, &memory.ns)
        || !can_read_decimal(json, arguments[MEMORY_BYTES], 0, &memory.bytes)) {
        trace->no_time++;
        return;
    }
    memory.allocated = node_whole(json, arguments[MEMORY_ALLOCATED], -1);
    memory.reserved = node_whole(json, arguments[MEMORY_RESERVED], -1);
    const int64_t type = node_whole(json, arguments[MEMORY_TYPE], 0),
                  device = node_whole(json, arguments[MEMORY_DEVICE], 0);
    if (type && !(type > 0 && type < 256 && device >= 0 && device < 256)) { trace->other++; return; }
    memory.type = (int32_t)type; /* 0 is the CPU */
    memory.device = memory.type ? (int32_t)device : -1;
    *ADDED(trace->memory, trace->memory_count) = memory;
}
static void add_event(struct trace *trace, struct trace_input *in) {
    const vp_json *json = &in->json.json;
    uint32_t fields[FIELD_COUNT];
    trace->seen++;
    find_members(json, 0, FIELD_KEYS, fields, FIELD_COUNT);
    if (!node_is(json, fields[FIELD_PHASE], VP_JSON_STRING) || json->nodes[fields[FIELD_PHASE]].bytes != 1) {
        trace->other++;
        return;
    }
    switch (json->text[json->nodes[fields[FIELD_PHASE]].start]) {
    case 'X': add_slice(trace, in, fields); break;
    case 'i': case 'I':
        trace->instants++;
        if (vp_json_equals(json, fields[FIELD_NAME], "[memory]")) add_memory(trace, json, fields);
        break;
    case 'M':
        trace->marks++;
        if (vp_json_equals(json, fields[FIELD_NAME], "thread_name")) {
            uint32_t label = name_of(trace, in, vp_json_get(json, fields[FIELD_ARGUMENTS], "name")),
                     track = track_of(trace, json, fields[FIELD_PROCESS], fields[FIELD_THREAD]);
            if (label != NO_INDEX) trace->labels[track] = label;
        } else if (vp_json_equals(json, fields[FIELD_NAME], "process_labels")) {
            const uint32_t label = name_of(trace, in, vp_json_get(json, fields[FIELD_ARGUMENTS], "labels")),
                           process = process_of(trace, json, fields[FIELD_PROCESS]);
            if (label != NO_INDEX) trace->process_labels[process] = label;
        }
        break;
    case 's': case 't': case 'f': trace->flows++; break;
    case 'C': trace->counters++; break;
    case 'B': case 'E': trace->pairs++; break;
    default: trace->other++;
    }
}

/* ---- the whole file */
/* The number of devices, and their names in one text. */
static void add_devices(struct trace *trace, struct trace_input *in) {
    const vp_json *json = &in->json.json;
    struct text_buffer all = {NULL, 0, 0};
    trace->device_count = json->nodes[0].count;
    for (uint32_t i = 1; i < json->nodes[0].end; i = json->nodes[i].end) {
        if (i == 1) trace->kind = name_of(trace, in, vp_json_get(json, i, "kind"));
        const char *name = scratch_text(in, vp_json_get(json, i, "name"));
        if (all.bytes) text_add(&all, ", ", 2);
        text_add_string(&all, name ? name : "?");
    }
    trace->devices = all.bytes ? text_table_add(&trace->names, all.data) : NO_INDEX;
    free(all.data);
}
static int is_metadata(const char *key) {
    static const char *const keys[] = {"schema",        "schemaVersion", "traceName",       "host_name",
                                       "dropped_steps", "emulated",      "distributedInfo", "deviceProperties"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) if (!strcmp(key, keys[i])) return 1;
    return 0;
}
/* Reads a member of the file other than its events. Returns 0 or an exit code. */
static int add_metadata(struct trace *trace, struct trace_input *in, const char *key) {
    const vp_json *json = &in->json.json;
    if (!strcmp(key, "schema")
        && (vp_json_equals(json, 0, "vlmprof-ops-1") || vp_json_equals(json, 0, "vlmprof-profile-1")))
        return complain(EXIT_INPUT, "%s: a table of operations, not a trace: run --profile --trace FILE writes one",
                        in->path);
    if (!strcmp(key, "schemaVersion")) trace->schema = node_whole(json, 0, -1);
    else if (!strcmp(key, "traceName")) trace->trace_name = name_of(trace, in, 0);
    else if (!strcmp(key, "host_name")) trace->host_name = name_of(trace, in, 0);
    else if (!strcmp(key, "dropped_steps")) trace->is_own = 1; /* vp_torch_trace_open wrote it */
    else if (!strcmp(key, "emulated"))
        trace->is_emulated = node_is(json, 0, VP_JSON_TRUE) || node_whole(json, 0, 0) == 1;
    else if (!strcmp(key, "distributedInfo")) {
        trace->rank = node_whole(json, vp_json_get(json, 0, "rank"), -1);
        trace->world_size = node_whole(json, vp_json_get(json, 0, "world_size"), -1);
    } else if (!strcmp(key, "deviceProperties") && node_is(json, 0, VP_JSON_ARRAY)) add_devices(trace, in);
    return 0;
}
/* Reads the array of events, after its opening bracket. Returns 0, ENDS_EARLY or an exit code. */
static int read_events(struct trace *trace, struct trace_input *in) {
    int byte = input_space(in), code;
    if (byte == ']') { input_take(in); return 0; }
    for (;;) {
        if ((code = read_event(trace, in)) != 0) return code;
        if (trace->count >= NO_INDEX - 1) return complain(EXIT_DEVICE, "%s: more than 2^32 slices", in->path);
        if (in->json.json.nodes[0].type == VP_JSON_OBJECT) add_event(trace, in);
        if ((byte = input_space(in)) < 0) return input_ended(trace, in, "after an event");
        input_take(in);
        if (byte == ']') return 0;
        if (byte != ',') return input_bad(in, in->offset - 1, "a comma or ] is missing after an event");
        if (input_space(in) == ']') { input_take(in); return 0; } /* some writers end with a comma */
    }
}
/* Reads the object of the file, after its opening brace. Returns 0, ENDS_EARLY or an exit code. */
static int read_members(struct trace *trace, struct trace_input *in) {
    int byte = input_space(in), code, has_events = 0;
    while (byte != '}') {
        char key[64];
        const char *text;
        if ((code = input_parse(trace, in, "among the file's members")) != 0) return code;
        if (!(text = scratch_text(in, 0))) return input_bad(in, in->start, "a member's name is missing");
        snprintf(key, sizeof key, "%s", text);
        if ((byte = input_space(in)) < 0) return input_ended(trace, in, "after a member's name");
        if (input_take(in) != ':') return input_bad(in, in->offset - 1, "a colon is missing after a member's name");
        byte = input_space(in);
        if (!strcmp(key, "traceEvents") && byte == '[') {
            if (has_events++) return input_bad(in, in->offset, "traceEvents appears twice");
            input_take(in);
            code = read_events(trace, in);
        } else if (!is_metadata(key)) code = input_skip(trace, in, "in the file's metadata");
        else if ((code = input_parse(trace, in, "in the file's metadata")) == 0) code = add_metadata(trace, in, key);
        if (code) return code;
        if ((byte = input_space(in)) < 0) return input_ended(trace, in, "after a member");
        if (byte != ',' && byte != '}') return input_bad(in, in->offset, "a comma or } is missing after a member");
        if (byte == ',') {
            input_take(in);
            if ((byte = input_space(in)) == '}') return input_bad(in, in->offset, "unexpected comma before }");
            if (byte < 0) return input_ended(trace, in, "among the file's members");
        }
    }
    input_take(in);
    return has_events ? 0
                      : complain(EXIT_INPUT, "%s: there is no array traceEvents, so this is not a Chrome "
                                             "trace", in->path);
}
/* Reads the file again from its start, through zlib. Returns 0 or an exit code. */
static int open_gzip(struct trace_input *in) {
    void *(*open)(const char *path, const char *mode) = NULL;
    void *zlib = in->file == stdin ? NULL : dlopen("libz.so.1", RTLD_NOW);
    if (!zlib && in->file != stdin) zlib = dlopen("libz.1.dylib", RTLD_NOW);
    if (zlib) {
        *(void **)&open = dlsym(zlib, "gzopen");
        *(void **)&in->gzip_read = dlsym(zlib, "gzread");
        *(void **)&in->gzip_close = dlsym(zlib, "gzclose");
    }
    if (!open || !in->gzip_read || !in->gzip_close)
        return complain(EXIT_INPUT, "%s: compressed with gzip%s: use gunzip -c FILE.gz | vlmprof trace -", in->path,
                        in->file == stdin ? "" : ", and zlib (libz.so.1) is not installed");
    if (!(in->gzip = open(in->path, "rb")))
        return complain(EXIT_INPUT, "%s: cannot be opened: %s", in->path, strerror(errno));
    in->next = in->end = in->block;
    in->offset = 0;
    return 0;
}
/* Gives tracks of several processes that share a label the label of their process: two GPUs each have a "stream 7". */
static void name_tracks(struct trace *trace) {
    const size_t names = trace->names.count;
    uint32_t *process = zeroed((size_t)trace->tracks.count + 1, sizeof *process),
             *first = resize(NULL, names + 1, sizeof *first);
    char *is_shared = zeroed(names + 1, 1);
    memset(first, 0xff, (names + 1) * sizeof *first);
    for (size_t i = 0; i < trace->count; i++) process[trace->events[i].track] = trace->events[i].process;
    for (uint32_t i = 0; i < trace->label_count; i++) {
        const uint32_t label = trace->labels[i];
        if (label == NO_INDEX) continue;
        if (first[label] == NO_INDEX) first[label] = process[i];
        else is_shared[label] |= first[label] != process[i];
    }
    for (uint32_t i = 0; i < trace->label_count; i++) {
        const uint32_t label = trace->labels[i], of = process[i];
        struct text_buffer text = {NULL, 0, 0};
        if (label == NO_INDEX || !is_shared[label] || of >= trace->process_label_count) continue;
        const uint32_t own = trace->process_labels[of];
        if (own == NO_INDEX) text_add_string(&text, "process ");
        text_add_string(&text,
                        own == NO_INDEX ? text_table_at(&trace->processes, of) : text_table_at(&trace->names, own));
        text_add_string(&text, " ");
        text_add_string(&text, text_table_at(&trace->names, label));
        trace->labels[i] = text_table_add(&trace->names, text.data);
        free(text.data);
    }
    FREE_ALL(process, first, is_shared);
}
static int read_top(struct trace *trace, struct trace_input *in) {
    int byte = input_space(in), code;
    if (byte == 0x1f && !in->gzip) {
        if ((code = open_gzip(in)) != 0) return code;
        byte = input_space(in);
    }
    if (byte < 0) return input_ended(trace, in, "at its start");
    if (byte != '{' && byte != '[')
        return complain(EXIT_INPUT, "%s: expected JSON, but it begins with byte 0x%02x", in->path, (unsigned)byte);
    input_take(in);
    if ((code = byte == '[' ? read_events(trace, in) : read_members(trace, in)) != 0) return code;
    if (input_space(in) >= 0) return input_bad(in, in->offset, "there is text after the end");
    return ferror(in->file) ? input_ended(trace, in, "at its end") : 0;
}
int trace_read(struct trace *trace, const char *path, int is_partial) {
    struct trace_input *in = zeroed(1, sizeof *in);
    int code;
    memset(trace, 0, sizeof *trace);
    trace->path = in->path = strcmp(path, "-") ? path : "stdin";
    trace->is_partial = is_partial;
    trace->schema = trace->world_size = trace->rank = trace->device_count = -1;
    trace->devices = trace->kind = trace->trace_name = trace->host_name = NO_INDEX;
    in->file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in->file) code = complain(EXIT_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    else if (is_folder(path))
        code = complain(EXIT_INPUT, "%s is a folder: give one of its *.pt.trace.json files", path);
    else code = read_top(trace, in);
    if (code == ENDS_EARLY) code = 0;
    if (!code && trace->malformed && trace->malformed == trace->seen)
        code =
            complain(EXIT_INPUT, "%s: none of its events is JSON; the first is %s", trace->path, trace->malformed_at);
    if (!code) name_tracks(trace);
    trace->bytes = in->offset;
    if (in->gzip) in->gzip_close(in->gzip);
    if (in->file && in->file != stdin) fclose(in->file);
    FREE_ALL(in->value.data, in->again.data, in->scratch.data, in->json.nodes, in);
    return code;
}
