/* trace_read.c: a Chrome trace, ours or torch.profiler's, to arrays of events.
 * As Kineto writes it. The file is read event by event: what is held of it is 64 bytes a slice and every name once.
 * Times are int64 nanoseconds, made of the file's decimal microseconds without a double in between. */
#include "trace/trace_read.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "vlmprof.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_NS_LIMIT INT64_C(4000000000000000000) /* of a time, and of all durations together: sums of two fit */

const char *text_table_at(const text_table *n, uint32_t index) { return n->text.data + n->starts[index]; }
static void text_table_grow(text_table *n) {
    size_t slots = n->slot_count ? n->slot_count * 2 : 256;
    n->slots = resize(n->slots, slots, sizeof *n->slots);
    n->slot_count = slots;
    memset(n->slots, 0xff, slots * sizeof *n->slots);
    for (uint32_t i = 0; i < n->count; i++) {
        size_t at = (size_t)hash_text(HASH_START, text_table_at(n, i)) & (slots - 1);
        while (n->slots[at] != NO_INDEX) at = (at + 1) & (slots - 1);
        n->slots[at] = i;
    }
}
uint32_t text_table_add(text_table *n, const char *text) {
    size_t at;
    if ((size_t)n->count * 2 >= n->slot_count) text_table_grow(n);
    at = (size_t)hash_text(HASH_START, text) & (n->slot_count - 1);
    for (; n->slots[at] != NO_INDEX; at = (at + 1) & (n->slot_count - 1)) if (!strcmp(text_table_at(n, n->slots[at]), text)) return n->slots[at];
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? n->capacity * 2 : 256;
        n->starts = resize(n->starts, n->capacity, sizeof *n->starts);
    }
    n->starts[n->count] = n->text.bytes;
    text_add(&n->text, text, strlen(text) + 1);
    n->slots[at] = n->count;
    return n->count++;
}
void text_table_free(text_table *n) {
    free(n->text.data);
    free(n->starts);
    free(n->slots);
}
int is_host_category(int c) { return c <= TRACE_SPAN; }
int is_device_work(int c) { return c == TRACE_KERNEL || c == TRACE_COPY || c == TRACE_SET; }
int is_annotation(int c) { return c == TRACE_USER || c == TRACE_DEVICE_USER; }

void trace_free(trace *t) {
    text_table_free(&t->names);
    text_table_free(&t->tracks);
    free(t->labels);
    free(t->events);
    free(t->memory);
}

/* ---- the file, piece by piece */
typedef struct trace_input {
    FILE *file;
    const char *path;
    text_buffer value;     /* the value that was read last, and where it began */
    int64_t start, offset;
    size_t at, filled;
    parsed json;
    buffer scratch;
    unsigned char block[65536];
} trace_input;
typedef enum value_end { VALUE_WHOLE, VALUE_CUT, VALUE_LARGE } value_end;

static int input_peek(trace_input *in) { /* -1: the end */
    if (in->at == in->filled) {
        in->filled = fread(in->block, 1, sizeof in->block, in->file);
        in->at = 0;
        if (!in->filled) return -1;
    }
    return in->block[in->at];
}
static int input_take(trace_input *in) {
    int c = input_peek(in);
    if (c >= 0) { in->at++; in->offset++; }
    return c;
}
static int input_space(trace_input *in) { /* the next byte that is no white space, left where it is */
    int c;
    while ((c = input_peek(in)) == ' ' || c == '\n' || c == '\r' || c == '\t') input_take(in);
    return c;
}
static int is_value_end(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':' || c == ']' || c == '}'; }
/* The bytes of one value: up to its closing bracket or quote; whether it is JSON is the strict reader's business. */
static value_end input_value(trace_input *in) {
    text_buffer *v = &in->value;
    int64_t depth = 0;
    int in_string = 0, escaped = 0, c;
    v->bytes = 0;
    input_space(in);
    in->start = in->offset;
    while ((c = input_peek(in)) >= 0) {
        if (!in_string && !depth && v->bytes && is_value_end(c)) return VALUE_WHOLE;
        if (v->bytes >= TRACE_VALUE_BYTES_MAX) return VALUE_LARGE;
        in->at++;
        in->offset++;
        if (v->bytes + 2 > v->capacity) {
            v->capacity = (v->bytes + 2) * 2;
            v->data = resize(v->data, v->capacity, 1);
        }
        v->data[v->bytes++] = (char)c;
        if (in_string) {
            if (escaped) escaped = 0;
            else if (c == '\\') escaped = 1;
            else if (c == '"') in_string = 0;
            if (in_string || depth) continue;
            return VALUE_WHOLE;
        }
        if (c == '"') in_string = 1;
        else if (c == '{' || c == '[') depth++;
        else if ((c == '}' || c == ']') && --depth <= 0) return VALUE_WHOLE;
    }
    return VALUE_CUT;
}

static int input_bad(const trace_input *in, int64_t offset, const char *what) {
    return complain(EXIT_INPUT, "%s: malformed at byte %lld: %s", in->path, (long long)offset, what);
}
/* The file ends too early, or its reading fails. */
static int input_ended(trace *t, const trace_input *in, const char *where) {
    if (ferror(in->file)) return complain(EXIT_INPUT, "%s: cannot be read beyond byte %lld: %s", in->path, (long long)in->offset, strerror(errno));
    if (!in->offset) return complain(EXIT_INPUT, "%s: the file is empty", in->path);
    t->is_cut = 1;
    if (t->is_partial) return ENDS_EARLY;
    return complain(EXIT_INPUT, "%s: cut off at byte %lld, %s; %lld whole events lie before it (--partial shows them)", in->path,
                    (long long)in->offset, where, (long long)t->seen);
}
/* A whole value, parsed into in->json; 0 or an exit code. */
static int input_parse(trace *t, trace_input *in, const char *where) {
    vp_error error = {VP_OK, -1, "", ""};
    value_end end = input_value(in);
    if (end == VALUE_CUT) return input_ended(t, in, where);
    if (end == VALUE_LARGE)
        return complain(EXIT_INPUT, "%s: the value at byte %lld is longer than %d MiB: this is no trace", in->path, (long long)in->start,
                        TRACE_VALUE_BYTES_MAX >> 20);
    if (parse_json(&in->json, in->value.data, in->value.bytes, &error) == VP_OK) return 0;
    return input_bad(in, in->start + (error.offset > 0 ? error.offset : 0), error.text);
}

/* ---- one event */
static const char *scratch_text(trace_input *in, uint32_t node, size_t *bytes) { /* NULL: no string */
    const vp_json *j = &in->json.json;
    size_t capacity, needed = 0;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    capacity = (size_t)j->nodes[node].bytes + 1;
    reserve(&in->scratch, capacity, 1);
    if (vp_json_text(j, node, (char *)in->scratch.data, capacity, &needed) != VP_OK) return NULL;
    if (bytes) *bytes = needed;
    return (const char *)in->scratch.data;
}
static uint32_t text_name(trace *t, trace_input *in, uint32_t node) { /* NO_INDEX: no string */
    const char *text = scratch_text(in, node, NULL);
    return text ? text_table_add(&t->names, text) : NO_INDEX;
}
/* A number, or a string that holds one, times 10^power as a whole number, rounded half away from zero; 0: it is none, or beyond TRACE_NS_LIMIT. */
static int node_decimal(const vp_json *j, uint32_t node, int power, int64_t *out) {
    const char *p;
    size_t bytes, i;
    double value;
    int64_t sum = 0;
    if (!node_is(j, node, VP_JSON_NUMBER) && !node_is(j, node, VP_JSON_STRING)) return 0;
    p = j->text + j->nodes[node].start;
    bytes = (size_t)j->nodes[node].bytes;
    if (vp_number_parse(p, bytes, &value) != VP_OK || !(fabs(value) * pow(10, power) < (double)TRACE_NS_LIMIT)) return 0;
    if (memchr(p, 'e', bytes) || memchr(p, 'E', bytes)) {
        *out = llround(value * pow(10, power));
        return 1;
    }
    for (i = *p == '-'; i < bytes && p[i] != '.'; i++) sum = sum * 10 + (p[i] - '0');
    i += i < bytes;
    for (int places = 0; places < power; places++) sum = sum * 10 + (i < bytes ? p[i++] - '0' : 0);
    sum += i < bytes && p[i] >= '5';
    *out = *p == '-' ? -sum : sum;
    return 1;
}
static int64_t node_whole(const vp_json *j, uint32_t node, int64_t fallback) {
    int64_t value;
    return node_decimal(j, node, 0, &value) ? value : fallback;
}
/* The values of some keys of an object, in one pass; of equal keys the last counts. */
static void find_members(const vp_json *j, uint32_t object, const char *const *keys, uint32_t *found, int count) {
    for (int k = 0; k < count; k++) found[k] = VP_JSON_NONE;
    if (!node_is(j, object, VP_JSON_OBJECT)) return;
    for (uint32_t key = object + 1; key < j->nodes[object].end; key = j->nodes[key + 1].end)
        for (int k = 0; k < count; k++) if (vp_json_equals(j, key, keys[k])) { found[k] = key + 1; break; }
}

enum { FIELD_PHASE, FIELD_CATEGORY, FIELD_NAME, FIELD_PROCESS, FIELD_THREAD, FIELD_TIME, FIELD_DURATION, FIELD_ARGUMENTS, FIELD_COUNT };

static const char *const FIELD_KEYS[FIELD_COUNT] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};

enum { ARGUMENT_EXTERNAL, ARGUMENT_EXTERNAL_OLD, ARGUMENT_CORRELATION, ARGUMENT_BYTES, ARGUMENT_SHAPES, ARGUMENT_COUNT };

static const char *const ARGUMENT_KEYS[ARGUMENT_COUNT] = {"External id", "external id", "correlation", "bytes", "Input Dims"};

enum { MEMORY_BYTES, MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_TYPE, MEMORY_DEVICE, MEMORY_COUNT };

static const char *const MEMORY_KEYS[MEMORY_COUNT] = {"Bytes", "Total Allocated", "Total Reserved", "Device Type", "Device Id"};

static trace_category category_of(const char *text) { /* NULL: a slice of a program that names none */
    size_t bytes = text ? strlen(text) : 0;
    if (!bytes || !strcmp(text, "cpu_op")) return TRACE_OP;
    if (!strcmp(text, "user_annotation")) return TRACE_USER;
    if (!strcmp(text, "gpu_user_annotation")) return TRACE_DEVICE_USER;
    if (!strcmp(text, "kernel")) return TRACE_KERNEL;
    if (!strcmp(text, "gpu_memcpy")) return TRACE_COPY;
    if (!strcmp(text, "gpu_memset")) return TRACE_SET;
    if (!strcmp(text, "python_function")) return TRACE_PYTHON;
    if (!strcmp(text, "thread_span")) return TRACE_SPAN;
    if ((bytes > 8 && !strcmp(text + bytes - 8, "_runtime")) || (bytes > 7 && !strcmp(text + bytes - 7, "_driver"))) return TRACE_RUNTIME;
    if (!strcmp(text, "Trace") || !strcmp(text, "cuda_sync") || !strcmp(text, "cuda_event")) return TRACE_NOTHING;
    return TRACE_OP;
}
/* A process and a thread as the file spells them, numbers and texts alike. */
static uint32_t track_of(trace *t, const vp_json *j, uint32_t process, uint32_t thread) {
    uint32_t pair[2] = {process, thread}, track;
    text_buffer text = {NULL, 0, 0};
    for (int i = 0; i < 2; i++) {
        if (i) text_add(&text, " ", 1);
        if (node_is(j, pair[i], VP_JSON_STRING) || node_is(j, pair[i], VP_JSON_NUMBER))
            text_add(&text, j->text + j->nodes[pair[i]].start, (size_t)j->nodes[pair[i]].bytes);
        else text_add(&text, "-", 1);
    }
    track = text_table_add(&t->tracks, text.data);
    free(text.data);
    if (track == t->label_count) {
        t->labels = resize(t->labels, (size_t)track + 1, sizeof *t->labels);
        t->labels[t->label_count++] = NO_INDEX;
    }
    return track;
}
static void add_slice(trace *t, trace_input *in, const uint32_t *f) {
    const vp_json *j = &in->json.json;
    trace_event e;
    uint32_t a[ARGUMENT_COUNT];
    memset(&e, 0, sizeof e);
    e.category = (uint8_t)category_of(scratch_text(in, f[FIELD_CATEGORY], NULL));
    if (e.category == TRACE_NOTHING) return;
    if (f[FIELD_DURATION] == VP_JSON_NONE) { t->no_duration++; return; }
    if (!node_decimal(j, f[FIELD_TIME], 3, &e.begin_ns) || !node_decimal(j, f[FIELD_DURATION], 3, &e.ns) || e.ns < 0
        || e.ns > TRACE_NS_LIMIT - t->all_ns) {
        t->no_time++;
        return;
    }
    if ((e.name = text_name(t, in, f[FIELD_NAME])) == NO_INDEX) { t->no_name++; return; }
    t->all_ns += e.ns;
    if (!strncmp(text_table_at(&t->names, e.name), "ProfilerStep#", 13)) {
        if (t->is_own && e.ns == 1000) return; /* closes the file, for readers that drop the last step */
        e.name = text_table_add(&t->names, "ProfilerStep*");
    }
    find_members(j, f[FIELD_ARGUMENTS], ARGUMENT_KEYS, a, ARGUMENT_COUNT);
    e.external = node_whole(j, a[a[ARGUMENT_EXTERNAL] == VP_JSON_NONE ? ARGUMENT_EXTERNAL_OLD : ARGUMENT_EXTERNAL], -1);
    e.correlation = node_whole(j, a[ARGUMENT_CORRELATION], -1);
    e.bytes = node_whole(j, a[ARGUMENT_BYTES], 0);
    e.track = track_of(t, j, f[FIELD_PROCESS], f[FIELD_THREAD]);
    e.shapes = NO_INDEX;
    if (node_is(j, a[ARGUMENT_SHAPES], VP_JSON_ARRAY)) {
        char *text = copy_text(j->text + j->nodes[a[ARGUMENT_SHAPES]].start, (size_t)j->nodes[a[ARGUMENT_SHAPES]].bytes);
        e.shapes = text_table_add(&t->names, text);
        free(text);
    }
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 4096;
        t->events = resize(t->events, t->capacity, sizeof *t->events);
    }
    e.order = (uint32_t)t->count;
    t->events[t->count++] = e;
}
static void add_memory(trace *t, const vp_json *j, const uint32_t *f) {
    trace_memory m;
    int64_t device;
    uint32_t a[MEMORY_COUNT];
    find_members(j, f[FIELD_ARGUMENTS], MEMORY_KEYS, a, MEMORY_COUNT);
    if (!node_decimal(j, f[FIELD_TIME], 3, &m.ns) || !node_decimal(j, a[MEMORY_BYTES], 0, &m.bytes)) { t->no_time++; return; }
    m.allocated = node_whole(j, a[MEMORY_ALLOCATED], -1);
    m.reserved = node_whole(j, a[MEMORY_RESERVED], -1);
    m.type = node_whole(j, a[MEMORY_TYPE], 0) != 0; /* 0: the CPU */
    device = node_whole(j, a[MEMORY_DEVICE], 0);
    if (m.type && !(device >= 0 && device < 256)) { t->other++; return; }
    m.device = m.type ? (int32_t)device : -1;
    if (t->memory_count == t->memory_capacity) {
        t->memory_capacity = t->memory_capacity ? t->memory_capacity * 2 : 1024;
        t->memory = resize(t->memory, t->memory_capacity, sizeof *t->memory);
    }
    t->memory[t->memory_count++] = m;
}
static void add_event(trace *t, trace_input *in) {
    const vp_json *j = &in->json.json;
    uint32_t f[FIELD_COUNT];
    t->seen++;
    find_members(j, 0, FIELD_KEYS, f, FIELD_COUNT);
    if (!node_is(j, f[FIELD_PHASE], VP_JSON_STRING) || j->nodes[f[FIELD_PHASE]].bytes != 1) { t->other++; return; }
    switch (j->text[j->nodes[f[FIELD_PHASE]].start]) {
    case 'X': add_slice(t, in, f); break;
    case 'i': case 'I':
        t->instants++;
        if (vp_json_equals(j, f[FIELD_NAME], "[memory]")) add_memory(t, j, f);
        break;
    case 'M':
        t->marks++;
        if (vp_json_equals(j, f[FIELD_NAME], "thread_name")) {
            uint32_t label = text_name(t, in, vp_json_get(j, f[FIELD_ARGUMENTS], "name")), track = track_of(t, j, f[FIELD_PROCESS], f[FIELD_THREAD]);
            if (label != NO_INDEX) t->labels[track] = label;
        }
        break;
    case 's': case 't': case 'f': t->flows++; break;
    case 'C': t->counters++; break;
    default: t->other++;
    }
}

/* ---- the whole file */
/* 0, or IS_TABLE: this is no trace but a saved table of operations. */
static int add_metadata(trace *t, trace_input *in, const char *key) {
    const vp_json *j = &in->json.json;
    if (!strcmp(key, "schema") && (vp_json_equals(j, 0, "vlmprof-ops-1") || vp_json_equals(j, 0, "vlmprof-profile-1"))) return IS_TABLE;
    if (!strcmp(key, "schemaVersion")) t->schema = node_whole(j, 0, -1);
    else if (!strcmp(key, "traceName")) t->trace_name = text_name(t, in, 0);
    else if (!strcmp(key, "host_name")) t->host_name = text_name(t, in, 0);
    else if (!strcmp(key, "dropped_steps")) t->is_own = 1; /* vp_trace_open wrote it */
    else if (!strcmp(key, "emulated")) t->is_emulated = node_is(j, 0, VP_JSON_TRUE) || node_whole(j, 0, 0) == 1;
    else if (!strcmp(key, "distributedInfo")) {
        t->rank = node_whole(j, vp_json_get(j, 0, "rank"), -1);
        t->world_size = node_whole(j, vp_json_get(j, 0, "world_size"), -1);
    } else if (!strcmp(key, "deviceProperties") && node_is(j, 0, VP_JSON_ARRAY)) {
        text_buffer all = {NULL, 0, 0};
        t->device_count = j->nodes[0].count;
        for (uint32_t i = 1; i < j->nodes[0].end; i = j->nodes[i].end) {
            const char *name = scratch_text(in, vp_json_get(j, i, "name"), NULL);
            if (all.bytes) text_add(&all, ", ", 2);
            text_add_string(&all, name ? name : "?");
        }
        t->devices = all.bytes ? text_table_add(&t->names, all.data) : NO_INDEX;
        free(all.data);
    }
    return 0;
}
/* The array of events, behind its opening bracket. */
static int read_events(trace *t, trace_input *in) {
    int c = input_space(in), code;
    if (c == ']') { input_take(in); return 0; }
    for (;;) {
        char where[64];
        snprintf(where, sizeof where, "in event %lld", (long long)t->seen + 1);
        if ((code = input_parse(t, in, where)) != 0) return code;
        if (in->json.json.nodes[0].type != VP_JSON_OBJECT) return input_bad(in, in->start, "an event is an object");
        if (t->count >= NO_INDEX - 1) return complain(EXIT_DEVICE, "%s: more than 2^32 slices", in->path);
        add_event(t, in);
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind an event");
        input_take(in);
        if (c == ']') return 0;
        if (c != ',') return input_bad(in, in->offset - 1, "a comma or ] is missing behind an event");
    }
}
static int read_members(trace *t, trace_input *in) {
    int c = input_space(in), code, has_events = 0;
    while (c != '}') {
        char key[64];
        const char *text;
        if ((code = input_parse(t, in, "among the file's members")) != 0) return code;
        if (!(text = scratch_text(in, 0, NULL))) return input_bad(in, in->start, "a member's name is missing");
        snprintf(key, sizeof key, "%s", text);
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind a member's name");
        if (input_take(in) != ':') return input_bad(in, in->offset - 1, "a colon is missing behind a member's name");
        c = input_space(in);
        if (!strcmp(key, "traceEvents") && c == '[') {
            if (has_events++) return input_bad(in, in->offset, "traceEvents is there twice");
            input_take(in);
            code = read_events(t, in);
        } else if ((code = input_parse(t, in, "in the file's metadata")) == 0) code = add_metadata(t, in, key);
        if (code) return code;
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind a member");
        if (c != ',' && c != '}') return input_bad(in, in->offset, "a comma or } is missing behind a member");
        if (c == ',') {
            input_take(in);
            if ((c = input_space(in)) == '}') return input_bad(in, in->offset, "a comma stands before }");
            if (c < 0) return input_ended(t, in, "among the file's members");
        }
    }
    input_take(in);
    return has_events ? 0 : complain(EXIT_INPUT, "%s: there is no array traceEvents: this is no Chrome trace", in->path);
}
static int read_top(trace *t, trace_input *in) {
    int c = input_space(in), code;
    if (c == 0x1f) return complain(EXIT_INPUT, "%s: is gzip-compressed: gunzip it first, or gunzip -c FILE.gz | vlmprof trace -", in->path);
    if (c < 0) return input_ended(t, in, "at its start");
    if (c != '{' && c != '[') return complain(EXIT_INPUT, "%s: is no JSON: it begins with byte 0x%02x", in->path, (unsigned)c);
    input_take(in);
    if ((code = c == '[' ? read_events(t, in) : read_members(t, in)) != 0) return code;
    if (input_space(in) >= 0) return input_bad(in, in->offset, "there is text behind the end");
    return ferror(in->file) ? input_ended(t, in, "at its end") : 0;
}
int trace_read(trace *t, const char *path, int is_partial) {
    trace_input *in = zeroed(1, sizeof *in);
    int code;
    memset(t, 0, sizeof *t);
    t->path = in->path = strcmp(path, "-") ? path : "stdin";
    t->is_partial = is_partial;
    t->schema = t->world_size = t->rank = t->device_count = -1;
    t->devices = t->trace_name = t->host_name = NO_INDEX;
    in->file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in->file) code = complain(EXIT_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    else if (is_folder(path)) code = complain(EXIT_INPUT, "%s: is a folder: name one of its *.pt.trace.json files", path);
    else code = read_top(t, in);
    if (code == ENDS_EARLY) code = 0;
    t->bytes = in->offset;
    if (in->file && in->file != stdin) fclose(in->file);
    free(in->value.data);
    free(in->scratch.data);
    free(in->json.nodes);
    free(in);
    return code;
}
