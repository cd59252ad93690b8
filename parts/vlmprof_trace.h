/* vlmprof_trace.h - v0.2.0 - slices of a program as a Chrome trace - MIT licence
 *
 * Do this:
 *     vp_trace *trace;
 *     if (vp_trace_open("trace.json", NULL, NULL, &trace, NULL) != VP_OK) return 1;
 *     vp_trace_begin(trace, 0, "request", vp_clock_ns(), NULL);
 *     vp_trace_end(trace, 0, vp_clock_ns(), NULL);
 *     printf("%s\n", vp_trace_close(trace, NULL, NULL) == VP_OK ? "written" : "failed");
 *     vp_trace_free(trace);
 * It prints written. chrome://tracing and Perfetto read the file. vp_trace_slice writes a slice whose times are known,
 * vp_trace_stages the marks of a stage clock. vlmprof_torch_trace.h writes torch.profiler's dialect on top of this.
 *
 * Threads are numbers that the caller chooses, also for devices and streams. Each has a row. Calls may come in any
 * order. Slices of a row nest or do not overlap: a slice that would cross an earlier one of its thread goes to another
 * row of the thread, and vp_trace_info counts it. Times are those of vp_clock_ns; the file has us with three decimals.
 * errors:  a failed write is permanent: every later call returns its code
 * memory:  300 KB and 16 to 32 bytes per slice, from VP_CALLOC and VP_REALLOC, until vp_trace_free
 * threads: one trace belongs to one thread at a time; with a stage clock for each thread, write them at the end
 * example: samples/06_threads_and_device.c
 *
 * Includes vlmprof.h if needed. In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes,
 * or VLMPROF_TRACE_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_TRACE_H
#define VLMPROF_TRACE_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

enum { VP_TRACE_THREADS_LIMIT = 1024, VP_TRACE_OPEN_LIMIT = 256, VP_TRACE_ROWS_LIMIT = 4096 };
#define VP_TRACE_MAX_BYTES UINT64_C(250000000) /* chrome://tracing reads at most about 256 MB */

typedef struct vp_trace vp_trace;
/* a value that viewers show with a slice: a text or, if that is NULL, a finite number */
typedef struct vp_trace_arg { const char *key, *text; double number; } vp_trace_arg;
typedef struct vp_trace_info {
    int truncated;                 /* 1: VP_TRACE_MAX_BYTES was reached; the events in the text are complete */
    int32_t open_slices;           /* begun and not ended: not in the text */
    uint64_t bytes;
    int64_t events, other_row_slices; /* other_row_slices: slices that are not on the first row of their thread */
} vp_trace_info;

/* Begins a trace. An existing file is replaced at once.
 * in:      path  the file, until the trace is closed; NULL: the text goes to the sink in pieces
 * out:     trace  on success; release it with vp_trace_free
 * returns: VP_OK; VP_ERR_RANGE: neither path nor sink; VP_ERR_WRITE; VP_ERR_MEMORY */
VP_API vp_result vp_trace_open(const char *path, vp_json_sink sink, void *user, vp_trace **trace, vp_error *error);

/* The calls that record. Each returns VP_OK; VP_ERR_RANGE: a name or key is NULL, a thread is outside
 * 0..VP_TRACE_THREADS_LIMIT - 1, a value is not finite, a slice ends before it begins, or a time is below 0 or above
 * 2^60 (nothing was written); VP_ERR_CAPACITY: the text has VP_TRACE_MAX_BYTES, and this and all later events are
 * dropped; VP_ERR_STATE: the trace is closed; VP_ERR_WRITE; VP_ERR_MEMORY, also for more than VP_TRACE_ROWS_LIMIT rows.
 * Names are written as Kineto does: / for \, no line breaks, "unknown" if a character cannot be printed. */
VP_API vp_result vp_trace_thread_name(vp_trace *trace, int32_t thread, const char *name, vp_error *error);
/* in: args  vp_trace_arg [arg_count]  NULL and 0: none */
VP_API vp_result vp_trace_slice(vp_trace *trace, int32_t thread, const char *name, int64_t begin_ns, int64_t end_ns,
                                const vp_trace_arg *args, int32_t arg_count, vp_error *error);
/* A slice as it happens; vp_trace_end ends the innermost open one of the thread. The name must live until then.
 * returns: as above; VP_ERR_CAPACITY also if VP_TRACE_OPEN_LIMIT slices are open; VP_ERR_STATE also if none is open */
VP_API vp_result vp_trace_begin(vp_trace *trace, int32_t thread, const char *name, int64_t at_ns, vp_error *error);
VP_API vp_result vp_trace_end(vp_trace *trace, int32_t thread, int64_t at_ns, vp_error *error);
/* The marks of a stage clock, on the row of clock->thread.
 * returns: as above; VP_ERR_STATE also if a mark is open; VP_ERR_CAPACITY also if the clock lost marks: the others are
 *          written. With VP_ERR_RANGE, the marks before the wrong one are */
VP_API vp_result vp_trace_stages(vp_trace *trace, const vp_stage_clock *clock, vp_error *error);

/* Writes the end of the trace.
 * out:     info  may be NULL; on VP_OK
 * returns: VP_OK, truncated or not; VP_ERR_STATE: the trace is already closed; VP_ERR_WRITE: a regular file is gone */
VP_API vp_result vp_trace_close(vp_trace *trace, vp_trace_info *info, vp_error *error);
/* Releases the memory. The file of a trace that was not closed is removed. NULL is allowed. */
VP_API void vp_trace_free(vp_trace *trace);

VP_EXTERN_C_END
#endif /* VLMPROF_TRACE_H */

/* ================================================================================================= implementation */
/* what vlmprof_torch_trace.h uses, too */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TRACE_IMPLEMENTATION) \
     || defined(VLMPROF_TORCH_TRACE_IMPLEMENTATION)) && !defined(VLMPROF_TRACE_PRIVATE_DONE)
#define VLMPROF_TRACE_PRIVATE_DONE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH
#define VP_IMPL_TRACE_NS_LIMIT (INT64_C(1) << 60) /* 36 years: a sum of four stays below INT64_MAX */
enum { VP_IMPL_TRACE_BUFFER = 65536, VP_IMPL_TRACE_EVENT = 640 }; /* more than any event without its texts */

/* restored after a counting-only attempt; times are relative to base_ns */
typedef struct vp_impl_trace_state { vp_trace_info info; int64_t first_ns, last_ns, external_id; } vp_impl_trace_state;
/* A row of the viewer. Its edges are sorted: 2 * time + 1 for the begin of a slice, 2 * time for the end. */
typedef struct vp_impl_trace_row { int64_t process, thread, tid, *edges; size_t count, capacity; } vp_impl_trace_row;
typedef struct vp_impl_trace_slice { const char *name; int32_t thread; int64_t begin_ns; } vp_impl_trace_slice;

struct vp_trace {
    vp_impl_trace_state state;
    struct vp_torch_trace *torch;     /* NULL: not of vlmprof_torch_trace.h */
    vp_json_sink sink;
    void *user;
    FILE *file;
    const char *path;                 /* "trace" for a sink */
    uint64_t max_bytes, reserve;      /* reserve: bytes for closing the text */
    int64_t base_ns, process, first_tid, other_tids, free_tid; /* thread 0 has first_tid, n has other_tids + n */
    vp_impl_trace_row rows[VP_TRACE_ROWS_LIMIT];
    size_t row_count, buffered;
    int closed, counting, failed, args; /* failed: errno */
    vp_impl_trace_slice open[VP_TRACE_OPEN_LIMIT];
    char buffer[VP_IMPL_TRACE_BUFFER];
};

/* ---- text ---- */
static void vp_impl_trace_flush(vp_trace *trace) {
    errno = 0;
    if (!trace->failed && trace->buffered
        && (trace->file ? fwrite(trace->buffer, 1, trace->buffered, trace->file) != trace->buffered
                        : trace->sink(trace->user, trace->buffer, trace->buffered) != VP_OK))
        trace->failed = errno ? errno : EIO;
    trace->buffered = 0;
}
static void vp_impl_trace_bytes(vp_trace *trace, const char *text, size_t bytes) {
    trace->state.info.bytes += bytes;
    while (bytes && !trace->counting && !trace->failed) {
        size_t some = sizeof trace->buffer - trace->buffered;
        if (some > bytes) some = bytes;
        memcpy(trace->buffer + trace->buffered, text, some);
        trace->buffered += some;
        text += some;
        bytes -= some;
        if (trace->buffered == sizeof trace->buffer) vp_impl_trace_flush(trace);
    }
}
/* A name. With `bracket`, brackets are escaped, because TensorBoard cuts a file at the last one. */
static void vp_impl_trace_text(vp_trace *trace, const char *text, int bracket) {
    size_t bytes = strlen(text), i;
    int good = vp_utf8_valid_bytes(text, bytes) == bytes;
    for (i = 0; i < bytes && good; i++) good = ((unsigned char)text[i] >= 32 && text[i] != 127) || text[i] == '\n';
    vp_impl_trace_bytes(trace, "\"", 1);
    for (text = good ? text : "unknown"; *text; text += *text != 0) {
        const size_t run = strcspn(text, bracket ? "\"\\\n]" : "\"\\\n");
        vp_impl_trace_bytes(trace, text, run);
        text += run;
        const char *instead = *text == '"' ? "\\\"" : *text == '\\' ? "/" : *text == ']' ? "\\u005d" : "";
        vp_impl_trace_bytes(trace, instead, strlen(instead));
    }
    vp_impl_trace_bytes(trace, "\"", 1);
}
/* ' a quote, %s a text as it is, %q a name in quotes, %d an int64_t, %t ns as us, %f a double */
static void vp_impl_trace_put(vp_trace *trace, const char *format, ...) {
    char text[32];
    va_list list;
    va_start(list, format);
    for (size_t run; *format; format += run) {
        run = *format == '%' ? 2 : *format == '\'' ? 1 : strcspn(format, "%'");
        if (*format != '%') vp_impl_trace_bytes(trace, run == 1 && *format == '\'' ? "\"" : format, run);
        else if (format[1] == 'q') vp_impl_trace_text(trace, va_arg(list, const char *), 0);
        else {
            const char *piece = format[1] == 's' ? va_arg(list, const char *) : text;
            const int64_t value = format[1] == 'd' || format[1] == 't' ? va_arg(list, int64_t) : 0;
            if (format[1] == 'f' && !vp_number_format(va_arg(list, double), text)) memcpy(text, "0.0", 4);
            if (format[1] == 'd') snprintf(text, sizeof text, "%lld", (long long)value);
            if (format[1] == 't')
                snprintf(text, sizeof text, "%lld.%03d", (long long)(value / 1000), (int)(value % 1000));
            vp_impl_trace_bytes(trace, piece, strlen(piece));
        }
    }
    va_end(list);
}
/* Writes a line of metadata about a process (thread -1) or a thread. If `text` is NULL, the value is `number`. */
static void vp_impl_trace_label(vp_trace *trace, const char *name, int64_t process, int64_t thread, const char *key,
                                const char *text, int64_t number) {
    vp_impl_trace_put(trace, "%s\n{'name': '%s', 'ph': 'M', 'ts': 0.000, 'pid': %d, 'tid': %d, 'args': {'%s': ",
                      trace->state.info.events ? "," : "", name, process, thread < 0 ? INT64_C(0) : thread, key);
    if (text) vp_impl_trace_put(trace, "%q}}", text); else vp_impl_trace_put(trace, "%d}}", number);
    trace->state.info.events++;
}

/* ---- rows ---- */
/* Returns 1 if a slice nests with those of a row: what ends inside it has begun inside it, and the other way round. */
static int vp_impl_trace_nests(const vp_impl_trace_row *row, int64_t begin, int64_t end) {
    int64_t with = 0, inside = 0; /* open slices that began at the same time, and inside it */
    size_t i = row->count;
    while (i && row->edges[i - 1] > 2 * begin) i--; /* most slices come in the order of their times */
    for (; i < row->count && row->edges[i] < 2 * end; i++) {
        if (row->edges[i] == 2 * begin + 1) with++;
        else if (row->edges[i] & 1) inside++;
        else if (inside) inside--;
        else if (!with--) return 0;
    }
    for (; i < row->count && row->edges[i] == 2 * end; i++) inside--;
    return inside <= 0;
}
static void vp_impl_trace_keep(vp_trace *trace, vp_impl_trace_row *row, int64_t edge) {
    const size_t capacity = 2 * row->capacity + 64;
    size_t at = row->count;
    if (row->count == row->capacity) {
        int64_t *grown = (int64_t *)VP_REALLOC(row->edges, capacity * sizeof *grown);
        if (!grown) {
            trace->failed = ENOMEM;
            return;
        }
        row->edges = grown;
        row->capacity = capacity;
    }
    for (row->count++; at && row->edges[at - 1] >= edge; at--) row->edges[at] = row->edges[at - 1];
    row->edges[at] = edge;
}
/* The tid of the first row of a thread in which the slice nests; a new row if there is none. */
static int64_t vp_impl_trace_place(vp_trace *trace, int64_t process, int64_t thread, int64_t begin, int64_t end) {
    vp_impl_trace_row *row = trace->rows, *const end_row = row + trace->row_count;
    int64_t tid = thread;
    char name[64];
    for (; row < end_row; row++) {
        if (row->process != process || row->thread != thread) continue;
        if (vp_impl_trace_nests(row, begin, end)) break;
        tid = trace->free_tid;
    }
    if (row == end_row) {
        if (trace->row_count == VP_TRACE_ROWS_LIMIT) return trace->failed = ENOMEM, thread;
        trace->row_count++;
        row->process = process, row->thread = thread, row->tid = tid;
        trace->free_tid += tid != thread;
        snprintf(name, sizeof name, "overlapping slices of thread %lld", (long long)thread);
        if (tid != thread && !trace->torch) vp_impl_trace_label(trace, "thread_name", process, tid, "name", name, 0);
    }
    if (begin < end) vp_impl_trace_keep(trace, row, 2 * begin + 1), vp_impl_trace_keep(trace, row, 2 * end);
    trace->state.info.other_row_slices += row->tid != thread;
    return row->tid;
}

/* ---- events ---- */
static void vp_impl_trace_saw(vp_trace *trace, int64_t begin, int64_t ns) {
    trace->state.info.events++;
    if (begin < trace->state.first_ns) trace->state.first_ns = begin;
    if (begin + ns > trace->state.last_ns) trace->state.last_ns = begin + ns;
}
/* Writes a complete event without its closing braces; args follow. Returns the tid of its row. */
static int64_t vp_impl_trace_event(vp_trace *trace, const char *category, const char *name, int64_t process,
                                   int64_t thread, int64_t begin, int64_t ns) {
    const int64_t tid = trace->counting ? thread : vp_impl_trace_place(trace, process, thread, begin, begin + ns);
    vp_impl_trace_put(trace, ",\n{'ph': 'X', 'cat': '%s', 'name': %q, 'pid': %d, 'tid': %d, 'ts': %t, 'dur': %t, "
                      "'args': {", category, name, process, tid, begin, ns);
    trace->args = 0;
    vp_impl_trace_saw(trace, begin, ns);
    return tid;
}
/* *at = the caller's time, relative to base_ns. Returns 0 if it is before base_ns or too far from it. */
static int vp_impl_trace_time(const vp_trace *trace, int64_t ns, int64_t *at) {
    *at = (int64_t)((uint64_t)ns - (uint64_t)trace->base_ns);
    return ns >= trace->base_ns && *at >= 0 && *at <= VP_IMPL_TRACE_NS_LIMIT;
}
static vp_result vp_impl_trace_done(const vp_trace *trace, vp_error *error) {
    if (trace->failed)
        return vp_error_set(error, trace->failed == ENOMEM ? VP_ERR_MEMORY : VP_ERR_WRITE, -1, trace->path,
                            strerror(trace->failed));
    return !trace->state.info.truncated ? VP_OK : vp_error_set(error, VP_ERR_CAPACITY, -1, trace->path,
        "the trace has reached its limit in bytes; nothing more is recorded");
}
static vp_result vp_impl_trace_ready(const vp_trace *trace, vp_error *error) {
    if (!trace) return vp_error_set(error, VP_ERR_RANGE, -1, "trace", "trace is NULL");
    if (trace->closed) return vp_error_set(error, VP_ERR_STATE, -1, trace->path, "the trace is already closed");
    return trace->failed ? vp_impl_trace_done(trace, error) : VP_OK;
}
/* Returns 1 if this many bytes fit. If not, recording stops. */
static int vp_impl_trace_room(vp_trace *trace, uint64_t bytes) {
    if (bytes > trace->max_bytes || trace->state.info.bytes + bytes + trace->reserve > trace->max_bytes)
        trace->state.info.truncated = 1;
    return !trace->state.info.truncated;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TRACE_IMPLEMENTATION)) \
    && !defined(VLMPROF_TRACE_IMPLEMENTATION_DONE)
#define VLMPROF_TRACE_IMPLEMENTATION_DONE
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

/* The trace takes a slice of a thread; *tid is its row. */
static vp_result vp_impl_trace_check_slice(const vp_trace *trace, int32_t thread, const char *name, int64_t begin_ns,
                                           int64_t end_ns, int64_t *tid, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    const char *wrong = !name ? "it has no name"
        : thread < 0 || thread >= VP_TRACE_THREADS_LIMIT ? "its thread is not 0 to VP_TRACE_THREADS_LIMIT - 1"
        : end_ns < begin_ns ? "it ends before it begins"
        : !vp_impl_trace_time(trace, begin_ns, &at) ? "it began before the trace was opened (before base_ns)"
        : !vp_impl_trace_time(trace, end_ns, &at) ? "it ends too long after the trace was opened" : NULL;
    *tid = thread ? trace->other_tids + thread : trace->first_tid;
    return wrong ? vp_error_set(error, VP_ERR_RANGE, -1, name ? name : "slice", wrong) : VP_OK;
}
VP_API vp_result vp_trace_thread_name(vp_trace *trace, int32_t thread, const char *name, vp_error *error) {
    const int64_t base_ns = trace ? trace->base_ns : 0;
    int64_t tid;
    vp_result result = vp_impl_trace_check_slice(trace, thread, name, base_ns, base_ns, &tid, error);
    if (result != VP_OK) return result;
    if (vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT + 6 * (uint64_t)strlen(name)))
        vp_impl_trace_label(trace, "thread_name", trace->process, tid, "name", name, 0);
    return vp_impl_trace_done(trace, error);
}
VP_API vp_result vp_trace_slice(vp_trace *trace, int32_t thread, const char *name, int64_t begin_ns, int64_t end_ns,
                                const vp_trace_arg *args, int32_t arg_count, vp_error *error) {
    int64_t tid;
    vp_result result = vp_impl_trace_check_slice(trace, thread, name, begin_ns, end_ns, &tid, error);
    if (result != VP_OK) return result;
    uint64_t bytes = VP_IMPL_TRACE_EVENT + 6 * (uint64_t)strlen(name);
    for (int32_t i = 0; i < arg_count; i++) {
        if (!args[i].key || (!args[i].text && !(args[i].number >= -1.7e308 && args[i].number <= 1.7e308)))
            return vp_error_set(error, VP_ERR_RANGE, i, "args", "a key is NULL, or a number is not finite");
        bytes += 40 + 6 * (uint64_t)(strlen(args[i].key) + (args[i].text ? strlen(args[i].text) : 0));
    }
    if (!vp_impl_trace_room(trace, bytes)) return vp_impl_trace_done(trace, error);
    vp_impl_trace_event(trace, "cpu_op", name, trace->process, tid, begin_ns - trace->base_ns, end_ns - begin_ns);
    if (trace->torch) trace->args++, vp_impl_trace_put(trace, "'External id': %d", ++trace->state.external_id);
    for (int32_t i = 0; i < arg_count; i++) {
        vp_impl_trace_put(trace, trace->args++ ? ", %q: " : "%q: ", args[i].key);
        if (args[i].text) vp_impl_trace_put(trace, "%q", args[i].text);
        else vp_impl_trace_put(trace, "%f", args[i].number);
    }
    vp_impl_trace_put(trace, "}}");
    return vp_impl_trace_done(trace, error);
}
VP_API vp_result vp_trace_begin(vp_trace *trace, int32_t thread, const char *name, int64_t at_ns, vp_error *error) {
    int64_t tid;
    vp_result result = vp_impl_trace_check_slice(trace, thread, name, at_ns, at_ns, &tid, error);
    if (result != VP_OK) return result;
    if (trace->state.info.open_slices == VP_TRACE_OPEN_LIMIT)
        return vp_error_set(error, VP_ERR_CAPACITY, -1, name, "VP_TRACE_OPEN_LIMIT slices are open");
    const vp_impl_trace_slice open = {name, thread, at_ns};
    return trace->open[trace->state.info.open_slices++] = open, VP_OK;
}
VP_API vp_result vp_trace_end(vp_trace *trace, int32_t thread, int64_t at_ns, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int32_t i = result == VP_OK ? trace->state.info.open_slices : 0;
    while (i > 0 && trace->open[i - 1].thread != thread) i--;
    if (result != VP_OK) return result;
    if (!i) return vp_error_set(error, VP_ERR_STATE, -1, "thread", "no slice is open on this thread");
    const vp_impl_trace_slice *open = &trace->open[i - 1];
    result = vp_trace_slice(trace, thread, open->name, open->begin_ns, at_ns, NULL, 0, error);
    if (result != VP_ERR_RANGE) /* then it stays open */
        memmove(&trace->open[i - 1], &trace->open[i], (size_t)(trace->state.info.open_slices-- - i) * sizeof *open);
    return result;
}
VP_API vp_result vp_trace_stages(vp_trace *trace, const vp_stage_clock *clock, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    if (!clock || clock->count > clock->capacity || (clock->count && !clock->marks))
        return vp_error_set(error, VP_ERR_RANGE, -1, "clock", "clock is NULL, or its count exceeds its capacity");
    for (size_t i = 0; i < clock->count && result == VP_OK; i++)
        if (clock->marks[i].end_ns == -1)
            result = vp_error_set(error, VP_ERR_STATE, (int64_t)i, "marks", "a mark is still open");
    for (size_t i = 0; i < clock->count && result == VP_OK; i++) {
        const vp_stage_mark *mark = &clock->marks[i];
        result = vp_trace_slice(trace, clock->thread, mark->name, mark->begin_ns, mark->end_ns, NULL, 0, error);
    }
    if (result == VP_OK && clock->lost)
        return vp_error_set(error, VP_ERR_CAPACITY, -1, "marks", "the clock lost marks, so the trace lacks them");
    return result;
}

/* ---- begin and end of a trace ---- */
VP_API vp_result vp_trace_open(const char *path, vp_json_sink sink, void *user, vp_trace **trace, vp_error *error) {
    if (!trace || (!path && !sink))
        return vp_error_set(error, VP_ERR_RANGE, -1, "trace", "it is NULL, or path and sink are");
    vp_trace *made = (vp_trace *)VP_CALLOC(1, sizeof *made);
    if (!made) return vp_error_set(error, VP_ERR_MEMORY, -1, "trace", "not enough memory");
    made->path = path ? path : "trace";
    made->sink = sink, made->user = user;
    made->max_bytes = VP_TRACE_MAX_BYTES, made->reserve = 16;
    made->state.first_ns = INT64_MAX;
    made->process = 1;
    made->free_tid = VP_TRACE_THREADS_LIMIT;
    if (path && !(made->file = fopen(path, "wb"))) {
        vp_trace_free(made);
        return vp_error_set(error, VP_ERR_WRITE, -1, path, strerror(errno));
    }
    vp_impl_trace_put(made, "{'traceEvents': [\n{'name': 'process_name', 'ph': 'M', 'pid': %d, 'args': {'name': "
                      "'vlmprof'}}", made->process);
    made->state.info.events = 1;
    *trace = made;
    return VP_OK;
}
/* Removes an incomplete file; never a device or a pipe, nor a link where lstat is declared (strict ISO C hides it). */
static void vp_impl_trace_discard(const char *path) {
    struct stat found;
#if defined(S_IFLNK) && !defined(_WIN32)
    if (!lstat(path, &found) && S_ISREG(found.st_mode)) remove(path);
#else
    if (!stat(path, &found) && S_ISREG(found.st_mode)) remove(path);
#endif
}
VP_API vp_result vp_trace_close(vp_trace *trace, vp_trace_info *info, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    if (result == VP_ERR_RANGE || result == VP_ERR_STATE) return result;
    if (trace->torch) return vp_error_set(error, VP_ERR_STATE, -1, trace->path, "close it with vp_torch_trace_close");
    vp_impl_trace_put(trace, "\n]}\n");
    vp_impl_trace_flush(trace);
    trace->closed = 1;
    if (trace->file && fclose(trace->file) != 0 && !trace->failed) trace->failed = errno ? errno : EIO;
    if (trace->file && trace->failed) vp_impl_trace_discard(trace->path);
    trace->file = NULL;
    if (trace->failed) return vp_impl_trace_done(trace, error);
    if (info) *info = trace->state.info;
    return VP_OK;
}
VP_API void vp_trace_free(vp_trace *trace) {
    if (!trace) return;
    if (trace->file) {
        fclose(trace->file);
        vp_impl_trace_discard(trace->path);
    }
    for (size_t i = 0; i < trace->row_count; i++) VP_FREE(trace->rows[i].edges);
    VP_FREE(trace);
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
