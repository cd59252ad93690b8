/* vlmprof_trace.h - v0.2.0 - Chrome traces as torch.profiler writes them - MIT licence
 *
 * Writes a Chrome trace as torch.profiler (Kineto) writes it: chrome://tracing, Perfetto, the TensorBoard plugin and HolisticTraceAnalysis load it.
 * The events go to PATH.tmp piece by piece and nothing is kept but a small buffer; vp_trace_close gives the file its name. Any program can use it:
 * steps, host ranges, memory and counters need no engine.
 *
 *     vp_trace_options options = vp_trace_options_default();
 *     options.path = "chrome_trace.json";
 *     vp_trace *trace;
 *     if (vp_trace_open(&options, &trace, &error) != VP_OK) ...
 *     vp_trace_step_begin(trace, 0, vp_clock_ns(), &error);
 *     ...                                                       vp_trace_ranges, vp_trace_launches, vp_trace_memory, vp_trace_counter
 *     vp_trace_step_end(trace, vp_clock_ns(), &error);
 *     result = vp_trace_close(trace, &info, &error);
 *     vp_trace_free(trace);
 *
 * What a reader finds (cat, name, track):
 *   user_annotation      ProfilerStep#N; stage::vit .. stage::decode and decode[1] ..: host's time of a step, stage, decode step    process, thread
 *   cpu_op               ranges by their names; vlmprof::attention .. for each part of each block. On the CPU, or with shapes or stacks,
 *                        each launch by its name below it                                                                          process, thread
 *   cuda_runtime         cudaLaunchKernel, cudaMemcpyAsync: the host sends a launch                                                process, thread
 *   kernel, gpu_memcpy   launches, linked to the call that sent them by correlation and an ac2g flow                               device, stream 7
 *   gpu_user_annotation  stage::vit .. stage::decode and decode[1] ..: the device's time between the boundaries                    device, stream 7
 *   thread_span          CPU: what each worker thread did of a launch                                                              process, worker
 *   cpu_instant_event    [memory];  counters (ph C);  Trace: PyTorch Profiler (0), all of it
 * After the last step stands an empty one, because HTA drops the last. HTA reads whole us unless HTA_DISABLE_NS_ROUNDING=1 is set. Traces of the
 * CPU hold no GPU event: viewers and TensorBoard's operator view show them; HTA's kernel analyses and TensorBoard's kernel view have nothing to tell.
 * torch-tb-profiler 0.4.3 does not know cuda_runtime: there the device's time of operators is 0, for torch's own traces too (kineto PR 1166).
 *
 * All times are vp_clock_ns's. In the file ts and dur are us with three decimals: ns, exactly. Slices of a track nest or do not touch: one that
 * begins or ends where another forbids it is moved (mostly by 1 ns, so that what encloses it begins before it), and vp_trace_info counts them.
 * errors:  a write that failed sticks: every later call says VP_ERR_WRITE, and vp_trace_close removes the temporary file
 * threads: one trace belongs to one thread at a time
 * source:  pytorch/kineto 002d991 libkineto/src/output_json.cpp; the readers' needs: torch-tb-profiler 0.4.3, HolisticTraceAnalysis f4d0062
 *
 * Needs vlmprof.h, vlmprof_file.h, vlmprof_ranges.h and vlmprof_stages.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_TRACE_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_TRACE_H
#define VLMPROF_TRACE_H
/* strict ISO mode hides POSIX unless it is asked for before the first system header */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TRACE_IMPLEMENTATION)) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) \
    && !defined(_POSIX_C_SOURCE)
#define _DEFAULT_SOURCE 1
#endif
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
#ifndef VLMPROF_FILE_H
#include "vlmprof_file.h"
#endif
#ifndef VLMPROF_RANGES_H
#include "vlmprof_ranges.h"
#endif
#ifndef VLMPROF_STAGES_H
#include "vlmprof_stages.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VP_TRACE_DEVICES_LIMIT = 64,      /* TensorBoard's own limit */
    VP_TRACE_THREADS_LIMIT = 1024,    /* worker threads */
    VP_TRACE_RANKS_LIMIT = 65536,
    VP_TRACE_STREAM = 7               /* what PyTorch's default stream is called in a trace */
};
#define VP_TRACE_MAX_BYTES UINT64_C(250000000) /* chrome://tracing reads no more than about 256 MB */
#define VP_TRACE_NAME "chrome_trace.json"      /* for who wants one name that does not change */

/* deviceProperties; 0: not known, and not written */
typedef struct vp_trace_device {
    int32_t id;                       /* 0..63; no two alike */
    const char *name;
    uint64_t memory_bytes;
    int32_t compute_major, compute_minor;
    int32_t threads_per_block, threads_per_multiprocessor, registers_per_block, registers_per_multiprocessor, warp_threads;
    int32_t shared_bytes_per_block, shared_bytes_per_multiprocessor, shared_bytes_per_block_optin, multiprocessor_count;
} vp_trace_device;
typedef struct vp_trace_metadata { const char *key, *text; } vp_trace_metadata;

typedef struct vp_trace_options {
    const char *path;                 /* of the file; an existing one is replaced, at the end */
    uint64_t max_bytes;               /* recording stops before the file is larger; VP_TRACE_MAX_BYTES */
    int64_t base_ns, base_unix_ns;    /* the moment 0 of the trace, by vp_clock_ns and since 1970: now. Nothing may begin earlier */
    int32_t process, thread;          /* this process's and its main thread's numbers; both the process id, and 1000000 more where that is below 64 */
    const char *process_name;         /* "vlmprof" */
    const vp_trace_device *devices; int32_t device_count; /* NULL and 0: the CPU alone */
    int emulated;                     /* 1: the devices are not real, and the trace says so */
    int record_shapes, with_stack;    /* launches and ranges with Input Dims, Call stack: more bytes */
    int profile_memory;               /* only told to readers: memory is what vp_trace_memory gets */
    const char *backend;              /* distributedInfo; "none" */
    int32_t rank, world_size;         /* 0 of 1 */
    const vp_trace_metadata *metadata; int32_t metadata_count; /* more top-level members; keys that differ from those that stand there anyway */
} vp_trace_options;
VP_API vp_trace_options vp_trace_options_default(void); /* as above; path, devices and metadata NULL */

typedef struct vp_trace vp_trace;
/* what became of it; the first two members are in the file's head too, as "trace_truncated" and "dropped_steps" */
typedef struct vp_trace_info {
    int truncated;                    /* 1: max_bytes was reached; what stands in the file is whole */
    int64_t dropped_steps;            /* that began after that */
    int64_t dropped_launches;         /* of the request in which that happened, and later */
    uint64_t bytes;
    int64_t events, steps, launches;  /* in the file; steps without the closing one */
    int64_t moved_slices, moved_ns;   /* placed elsewhere than measured by more than the ns of an edge, and the farthest of them */
} vp_trace_info;

/* "<worker>.<ns>.pt.trace.json", the name that TensorBoard's plugin looks for.
 * in:      worker  NULL: "<host's name>_<process id>", as torch's tensorboard_trace_handler; a / becomes _
 *          unix_ns time since 1970; traces of one worker differ by it
 * out:     name    char [capacity]  on success
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: unix_ns < 0 or an empty worker */
VP_API vp_result vp_trace_file_name(const char *worker, int64_t unix_ns, char *name, size_t capacity);
/* Device properties of a GPU that vp_device_describe told of: what follows from its compute capability (8.0, 8.6, 8.9, 9.0, 10.0, 12.0) is filled in.
 * in:      name     kept as a pointer: it must live until vp_trace_open has returned
 * source:  CUDA C++ Programming Guide 13.0, technical specifications per compute capability */
VP_API vp_trace_device vp_trace_device_of(int32_t id, const char *name, uint64_t memory_bytes, int32_t compute_major, int32_t compute_minor,
                                          int32_t multiprocessor_count);
/* Begins a file and writes its head.
 * in:      options  texts and devices are read during the call only
 * out:     trace    on success; give it to vp_trace_free
 * returns: VP_OK; VP_ERR_RANGE: an option outside the above, or max_bytes below the head and end (some KB); VP_ERR_WRITE: the temporary file
 *          cannot be made or written; VP_ERR_MEMORY */
VP_API vp_result vp_trace_open(const vp_trace_options *options, vp_trace **trace, vp_error *error);

/* The calls that record. Each returns VP_OK; VP_ERR_RANGE: a value outside what it says, or a time before base_ns (nothing was written);
 * VP_ERR_CAPACITY: max_bytes is reached, and this and all later events are left out (of a request: from the first decode step or stage that does
 * not fit as a whole); VP_ERR_STATE: the trace is closed; VP_ERR_WRITE. */
/* A step, "ProfilerStep#<step>"; they follow each other. One that is still open when the trace is closed ends with the last event. Steps from the
 * schedule's numbers.
 * returns: also VP_ERR_STATE: a step is open already, or none is */
VP_API vp_result vp_trace_step_begin(vp_trace *trace, int64_t step, int64_t at_ns, vp_error *error);
VP_API vp_result vp_trace_step_end(vp_trace *trace, int64_t at_ns, vp_error *error);

/* a request of the engine */
typedef struct vp_trace_run {
    int64_t begin_ns;                 /* vp_clock_ns at the request's start, from which its launches count: read just before vp_engine_run */
    int32_t device;                   /* id of one of options.devices; -1: the CPU */
    const vp_launch *launches; int64_t launch_count;
    const vp_stage_times *times;      /* NULL: a stage is as long as its launches */
    const int64_t *step_ns; int32_t step_count; /* vp_reply's; NULL and 0: a decode step is as long as its launches */
    const vp_span *spans; int64_t span_count; /* CPU: vp_reply's; NULL and 0: the threads are not shown */
} vp_trace_run;
/* A request: its stages, decode steps, parts and launches, on the host and on the device; on the CPU also what each worker did.
 * in:      launches  in the order of the engine
 * returns: as above; VP_ERR_RANGE also for a device that was not in the options; VP_ERR_MISMATCH: launches out of order: an earlier stage or decode
 *          step after a later one
 * rule:    the device's times are put onto the host's clock by one offset for each request: the least that lets no launch begin before the host
 *          sends it, nor before what the device did earlier. The stages on the device tell it, as "device clock offset ns" */
VP_API vp_result vp_trace_launches(vp_trace *trace, const vp_trace_run *run, vp_error *error);
/* The ranges of a thread as cpu_op, with their payload; with shapes and stacks when the trace has them. Thread 0 is the main thread: its ranges must
 * nest with the steps and requests given to the trace, as they do when the calls nest in the program. Other threads get tracks of their own.
 * in:      ranges  thread 0..VP_TRACE_THREADS_LIMIT - 1
 * returns: as above; VP_ERR_STATE also where a range is still open */
VP_API vp_result vp_trace_ranges(vp_trace *trace, const vp_ranges *ranges, vp_error *error);
/* A moment at which memory was taken or given back: TensorBoard's memory view.
 * in:      device     id of a device; -1: the host
 *          address    tells blocks apart
 *          bytes      < 0: given back
 *          allocated_bytes, reserved_bytes  afterwards; reserved is what was taken from the system */
VP_API vp_result vp_trace_memory(vp_trace *trace, int64_t at_ns, int32_t device, uint64_t address, int64_t bytes, uint64_t allocated_bytes,
                                 uint64_t reserved_bytes, vp_error *error);
/* A value over time, drawn as a curve: power, clocks, queue lengths.
 * in:      device  whose row it stands in; -1: the process's
 *          value   finite */
VP_API vp_result vp_trace_counter(vp_trace *trace, int64_t at_ns, int32_t device, const char *name, double value, vp_error *error);

/* Ends the file: closing step, end of the record, and the name PATH.
 * out:     info  may be NULL; on VP_OK and VP_ERR_STATE
 * returns: VP_OK, truncated or not; VP_ERR_STATE: it is closed already: a notice, nothing was done and the file is as it was; VP_ERR_WRITE: nothing
 *          stands under PATH but what stood there before, and the temporary file is gone */
VP_API vp_result vp_trace_close(vp_trace *trace, vp_trace_info *info, vp_error *error);
/* What became of it so far. */
VP_API vp_trace_info vp_trace_tell(const vp_trace *trace);
/* Gives the memory back; a trace that was not closed is abandoned, its temporary file removed. NULL is fine. */
VP_API void vp_trace_free(vp_trace *trace);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_TRACE_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TRACE_IMPLEMENTATION)) && !defined(VLMPROF_TRACE_IMPLEMENTATION_DONE)
#define VLMPROF_TRACE_IMPLEMENTATION_DONE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Events are formatted straight into a small buffer. What must be whole (a stage, a decode step) is measured first when the file is nearly full: the
 * same code runs and only counts. The two tracks of a request, host and device, each have a cursor behind which nothing begins any more. */
enum {
    VP_IMPL_TRACE_BUFFER = 65536,
    VP_IMPL_TRACE_EDGE_NS = 8,      /* what the edges of nested slices may cost: moves up to here are not counted */
    VP_IMPL_TRACE_RESERVE = 6144,   /* bytes kept for what closes a file: the step, decode stage and record that are open, and the closing step */
    VP_IMPL_TRACE_EVENT = 640,      /* more than any event without its texts */
    VP_IMPL_TRACE_LAUNCH = 4096,    /* the same of all events of a launch */
    VP_IMPL_TRACE_FRAMES = 16,      /* of a call stack */
    VP_IMPL_TRACE_PIDS = 64         /* process ids below are taken by devices */
};
/* vp_stage_name and vp_part_name are the engine's: a program that writes traces need not link it */
#define VP_IMPL_TRACE_WORD(name, text) text,
static const char *const vp_impl_trace_stages[] = {VP_STAGES(VP_IMPL_TRACE_WORD)}, *const vp_impl_trace_parts[] = {VP_PARTS(VP_IMPL_TRACE_WORD)};
#undef VP_IMPL_TRACE_WORD
#define VP_IMPL_TRACE_NS_LIMIT (INT64_C(1) << 60) /* 36 years: sums of four stay below INT64_MAX */

/* what an attempt that only counts puts back */
typedef struct vp_impl_trace_state {
    uint64_t bytes;                             /* of the file, with those in the buffer */
    int64_t events, launches, moved_slices, moved_ns;
    int64_t correlation, external_id, event_index;
    int64_t first_ns, last_ns;                  /* from the trace's zero, as all times below */
    int64_t device_ns[VP_TRACE_DEVICES_LIMIT];  /* end of the last slice */
} vp_impl_trace_state;

struct vp_trace {
    vp_impl_trace_state state;
    char *path, *temporary;
    vp_trace_device *devices;
    int32_t device_count, process, thread;
    uint64_t max_bytes, reserve, flags_at;      /* flags_at: where the head tells whether it is whole */
    int64_t base_ns, step, step_ns, step_end_ns, steps, dropped_steps, dropped_launches;
    int fd, emulated, shapes, stacks, step_open, closed, full, counting, failed, args; /* failed: errno */
    unsigned char named[2 * VP_TRACE_THREADS_LIMIT]; /* tracks that have got their names: workers, then threads of ranges */
    size_t buffered;
    char buffer[VP_IMPL_TRACE_BUFFER];
};

/* ---- text ---- */
static void vp_impl_trace_flush(vp_trace *t) {
    size_t at = 0;
    while (at < t->buffered && !t->failed) {
        ssize_t wrote = write(t->fd, t->buffer + at, t->buffered - at);
        if (wrote > 0) at += (size_t)wrote;
        else if (wrote == 0 || errno != EINTR) t->failed = wrote && errno ? errno : EIO;
    }
    t->buffered = 0;
}
static void vp_impl_trace_bytes(vp_trace *t, const char *text, size_t bytes) {
    t->state.bytes += bytes;
    while (bytes && !t->counting && !t->failed) {
        size_t some = sizeof t->buffer - t->buffered;
        if (some > bytes) some = bytes;
        memcpy(t->buffer + t->buffered, text, some);
        t->buffered += some;
        text += some;
        bytes -= some;
        if (t->buffered == sizeof t->buffer) vp_impl_trace_flush(t);
    }
}
static void vp_impl_trace_put(vp_trace *t, const char *text) { vp_impl_trace_bytes(t, text, strlen(text)); }
static void vp_impl_trace_int(vp_trace *t, int64_t value) {
    char text[20], *p = text + sizeof text;
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    do *--p = (char)('0' + rest % 10); while (rest /= 10);
    if (value < 0) *--p = '-';
    vp_impl_trace_bytes(t, p, (size_t)(text + sizeof text - p));
}
/* ns -> us with three decimals */
static void vp_impl_trace_us(vp_trace *t, int64_t ns) {
    char rest[4];
    rest[0] = '.';
    rest[1] = (char)('0' + ns % 1000 / 100);
    rest[2] = (char)('0' + ns % 100 / 10);
    rest[3] = (char)('0' + ns % 10);
    vp_impl_trace_int(t, ns / 1000);
    vp_impl_trace_bytes(t, rest, 4);
}
/* Kineto's rules for names: no line breaks, / for \, and "unknown" for what cannot be printed; here also for what is not UTF-8. A bracket is escaped
 * where `bracket` says so: TensorBoard cuts a file at its last one. */
static void vp_impl_trace_text(vp_trace *t, const char *text, int bracket) {
    size_t bytes = strlen(text), i, run = 0;
    int good = vp_utf8_valid_bytes(text, bytes) == bytes;
    for (i = 0; i < bytes && good; i++) good = ((unsigned char)text[i] >= 32 && text[i] != 127) || text[i] == '\n';
    vp_impl_trace_put(t, "\"");
    if (!good) {
        text = "unknown";
        bytes = 7;
    }
    for (i = 0; i < bytes; i++) {
        const char *instead = text[i] == '"' ? "\\\"" : text[i] == '\\' ? "/" : text[i] == '\n' ? "" : text[i] == ']' && bracket ? "\\u005d" : NULL;
        if (!instead) continue;
        vp_impl_trace_bytes(t, text + run, i - run);
        vp_impl_trace_put(t, instead);
        run = i + 1;
    }
    vp_impl_trace_bytes(t, text + run, bytes - run);
    vp_impl_trace_put(t, "\"");
}

/* ---- events ---- */
static void vp_impl_trace_saw(vp_trace *t, int64_t begin, int64_t ns) {
    t->state.events++;
    if (begin < t->state.first_ns) t->state.first_ns = begin;
    if (begin + ns > t->state.last_ns) t->state.last_ns = begin + ns;
}
static void vp_impl_trace_key(vp_trace *t, const char *key) {
    vp_impl_trace_put(t, t->args++ ? ", \"" : "\"");
    vp_impl_trace_put(t, key);
    vp_impl_trace_put(t, "\": ");
}
static void vp_impl_trace_arg(vp_trace *t, const char *key, int64_t value) {
    vp_impl_trace_key(t, key);
    vp_impl_trace_int(t, value);
}
static void vp_impl_trace_arg_text(vp_trace *t, const char *key, const char *text) {
    vp_impl_trace_key(t, key);
    vp_impl_trace_text(t, text, 0);
}
static void vp_impl_trace_arg_real(vp_trace *t, const char *key, double value) {
    char text[26];
    size_t bytes = vp_number_format(value, text);
    vp_impl_trace_key(t, key);
    if (bytes) vp_impl_trace_bytes(t, text, bytes); else vp_impl_trace_put(t, "0.0");
}
/* A complete event without its closing braces: args follow. */
static void vp_impl_trace_slice(vp_trace *t, const char *category, const char *name, int64_t process, int64_t thread, int64_t begin, int64_t ns) {
    vp_impl_trace_put(t, ",\n{\"ph\": \"X\", \"cat\": \"");
    vp_impl_trace_put(t, category);
    vp_impl_trace_put(t, "\", \"name\": ");
    vp_impl_trace_text(t, name, 0);
    vp_impl_trace_put(t, ", \"pid\": ");
    vp_impl_trace_int(t, process);
    vp_impl_trace_put(t, ", \"tid\": ");
    vp_impl_trace_int(t, thread);
    vp_impl_trace_put(t, ", \"ts\": ");
    vp_impl_trace_us(t, begin);
    vp_impl_trace_put(t, ", \"dur\": ");
    vp_impl_trace_us(t, ns);
    vp_impl_trace_put(t, ", \"args\": {");
    t->args = 0;
    vp_impl_trace_saw(t, begin, ns);
}
static void vp_impl_trace_end(vp_trace *t) { vp_impl_trace_put(t, "}}"); }
static void vp_impl_trace_flow(vp_trace *t, int start, int64_t id, int64_t process, int64_t thread, int64_t at) {
    vp_impl_trace_put(t, start ? ",\n{\"ph\": \"s\", \"id\": " : ",\n{\"ph\": \"f\", \"id\": ");
    vp_impl_trace_int(t, id);
    vp_impl_trace_put(t, ", \"pid\": ");
    vp_impl_trace_int(t, process);
    vp_impl_trace_put(t, ", \"tid\": ");
    vp_impl_trace_int(t, thread);
    vp_impl_trace_put(t, ", \"ts\": ");
    vp_impl_trace_us(t, at);
    vp_impl_trace_put(t, start ? ", \"cat\": \"ac2g\", \"name\": \"ac2g\"}" : ", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"}");
    t->state.events++;
}
/* One line of metadata about a process (thread -1) or a thread; `text` NULL: a number. */
static void vp_impl_trace_label(vp_trace *t, const char *name, int64_t process, int64_t thread, const char *key, const char *text, int64_t number) {
    vp_impl_trace_put(t, t->state.events ? ",\n{\"name\": \"" : "\n{\"name\": \"");
    vp_impl_trace_put(t, name);
    vp_impl_trace_put(t, "\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": ");
    vp_impl_trace_int(t, process);
    vp_impl_trace_put(t, ", \"tid\": ");
    vp_impl_trace_int(t, thread < 0 ? 0 : thread);
    vp_impl_trace_put(t, ", \"args\": {");
    t->args = 0;
    if (text) vp_impl_trace_arg_text(t, key, text); else vp_impl_trace_arg(t, key, number);
    vp_impl_trace_end(t);
    t->state.events++;
}
static void vp_impl_trace_name_thread(vp_trace *t, int64_t process, int64_t thread, const char *name, int64_t order) {
    vp_impl_trace_label(t, "thread_name", process, thread, "name", name, 0);
    vp_impl_trace_label(t, "thread_sort_index", process, thread, "sort_index", NULL, order);
}
/* Names the track of a worker (kind 0) or of a thread of ranges (kind 1) when it is first used; returns the track's number. */
static int64_t vp_impl_trace_track(vp_trace *t, int kind, int32_t thread, const char *given) {
    const int64_t at = (int64_t)kind * VP_TRACE_THREADS_LIMIT + thread, track = (int64_t)t->thread + 1 + at;
    char name[160];
    if (t->named[at]) return track;
    if (kind) snprintf(name, sizeof name, "thread %lld (%.100s)", (long long)track, given ? given : "ranges");
    else snprintf(name, sizeof name, "thread %lld (worker %d%s)", (long long)track, (int)thread, thread ? "" : ": main");
    vp_impl_trace_name_thread(t, t->process, track, name, 1 + at);
    if (!t->counting) t->named[at] = 1;
    return track;
}

/* ---- may it be recorded? ---- */
static vp_result vp_impl_trace_write_failed(const vp_trace *t, vp_error *error) {
    return vp_failf(error, VP_ERR_WRITE, -1, t->temporary, "the trace cannot be written: %s", strerror(t->failed));
}
static vp_result vp_impl_trace_is_full(const vp_trace *t, vp_error *error) {
    return vp_failf(error, VP_ERR_CAPACITY, -1, t->path, "the trace has reached its limit of %llu bytes: nothing more is recorded",
                         (unsigned long long)t->max_bytes);
}
static vp_result vp_impl_trace_ready(const vp_trace *t, vp_error *error) {
    if (!t) return vp_fail(error, VP_ERR_RANGE, -1, "trace", "there is no trace");
    if (t->closed) return vp_fail(error, VP_ERR_STATE, -1, t->path, "the trace is closed already");
    if (t->failed) return vp_impl_trace_write_failed(t, error);
    return VP_OK;
}
static vp_result vp_impl_trace_done(const vp_trace *t, vp_error *error) { return t->failed ? vp_impl_trace_write_failed(t, error) : VP_OK; }
/* Is there room for so many bytes? Otherwise recording is over. */
static int vp_impl_trace_room(vp_trace *t, uint64_t bytes) {
    if (!t->full && (bytes > t->max_bytes || t->state.bytes + bytes + t->reserve > t->max_bytes)) t->full = 1;
    return !t->full;
}
/* *at = a time of the caller from the trace's zero; 0 when it lies before that, or too far off */
static int vp_impl_trace_time(const vp_trace *t, int64_t ns, int64_t *at) {
    if (ns < t->base_ns || (uint64_t)ns - (uint64_t)t->base_ns > (uint64_t)VP_IMPL_TRACE_NS_LIMIT) return 0;
    *at = (int64_t)((uint64_t)ns - (uint64_t)t->base_ns);
    return 1;
}
static const vp_trace_device *vp_impl_trace_device(const vp_trace *t, int32_t id) {
    int32_t i;
    for (i = 0; i < t->device_count; i++)
        if (t->devices[i].id == id) return &t->devices[i];
    return NULL;
}

/* ---- names and devices ---- */
VP_API vp_result vp_trace_file_name(const char *worker, int64_t unix_ns, char *name, size_t capacity) {
    char own[300], made[600];
    struct utsname host;
    size_t bytes, i;
    int wrote;
    if (!name || unix_ns < 0 || (worker && !worker[0])) return VP_ERR_RANGE;
    if (!worker) {
        snprintf(own, sizeof own, "%.255s_%ld", uname(&host) == 0 && host.nodename[0] ? host.nodename : "localhost", (long)getpid());
        worker = own;
    }
    if (strlen(worker) > 500) return VP_ERR_RANGE;
    wrote = snprintf(made, sizeof made, "%s.%lld.pt.trace.json", worker, (long long)unix_ns);
    bytes = wrote > 0 ? (size_t)wrote : 0;
    if (bytes + 1 > capacity) return VP_ERR_CAPACITY;
    for (i = 0; i < bytes; i++)
        if (made[i] == '/') made[i] = '_';
    memcpy(name, made, bytes + 1);
    return VP_OK;
}
VP_API vp_trace_device vp_trace_device_of(int32_t id, const char *name, uint64_t memory_bytes, int32_t compute_major, int32_t compute_minor,
                                          int32_t multiprocessor_count) {
    static const struct { int32_t major, minor, threads, shared, optin; } known[] = {{8, 0, 2048, 167936, 166912}, {8, 6, 1536, 102400, 101376},
        {8, 9, 1536, 102400, 101376}, {9, 0, 2048, 233472, 232448}, {10, 0, 2048, 233472, 232448}, {12, 0, 1536, 102400, 101376}};
    vp_trace_device d;
    size_t i;
    memset(&d, 0, sizeof d);
    d.id = id;
    d.name = name;
    d.memory_bytes = memory_bytes;
    d.compute_major = compute_major;
    d.compute_minor = compute_minor;
    d.multiprocessor_count = multiprocessor_count;
    d.threads_per_block = 1024;
    d.warp_threads = 32;
    d.shared_bytes_per_block = 49152;
    d.registers_per_block = d.registers_per_multiprocessor = 65536;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].major != compute_major || known[i].minor != compute_minor) continue;
        d.threads_per_multiprocessor = known[i].threads;
        d.shared_bytes_per_multiprocessor = known[i].shared;
        d.shared_bytes_per_block_optin = known[i].optin;
    }
    return d;
}
VP_API vp_trace_options vp_trace_options_default(void) {
    vp_trace_options o;
    struct timespec now;
    const long id = (long)getpid();
    memset(&o, 0, sizeof o);
    o.max_bytes = VP_TRACE_MAX_BYTES;
    o.base_ns = vp_clock_ns();
    if (timespec_get(&now, TIME_UTC) == TIME_UTC) o.base_unix_ns = (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
    o.process = o.thread = (int32_t)(id < VP_IMPL_TRACE_PIDS ? id + 1000000 : id);
    o.process_name = "vlmprof";
    o.backend = "none";
    o.world_size = 1;
    return o;
}

/* ---- the head ---- */
static vp_result vp_impl_trace_check(const vp_trace_options *o, vp_error *error) {
    int32_t i, k;
    if (!o || !o->path || !o->path[0] || strlen(o->path) > 4000) return vp_fail(error, VP_ERR_RANGE, -1, "path", "a trace needs a file's name");
    if (!o->process_name || !o->backend) return vp_fail(error, VP_ERR_RANGE, -1, "options", "process_name and backend must be there");
    if (o->process < VP_IMPL_TRACE_PIDS || o->thread < 0 || o->thread > INT32_MAX - 4 * VP_TRACE_THREADS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "process", "must be 64 or more, numbers below are devices; thread not below 0");
    if (o->base_unix_ns < 0) return vp_fail(error, VP_ERR_RANGE, -1, "base_unix_ns", "must not lie before 1970");
    if (o->world_size < 1 || o->world_size > VP_TRACE_RANKS_LIMIT || o->rank < 0 || o->rank >= o->world_size)
        return vp_fail(error, VP_ERR_RANGE, -1, "rank", "must be 0 .. world_size - 1");
    if (o->device_count < 0 || o->device_count > VP_TRACE_DEVICES_LIMIT || (o->device_count && !o->devices) || o->metadata_count < 0
        || (o->metadata_count && !o->metadata))
        return vp_fail(error, VP_ERR_RANGE, -1, "options", "a count is outside its range");
    for (i = 0; i < o->device_count; i++) {
        if (o->devices[i].id < 0 || o->devices[i].id >= VP_TRACE_DEVICES_LIMIT || !o->devices[i].name)
            return vp_fail(error, VP_ERR_RANGE, i, "devices", "a device needs a name and a number of 0..63");
        for (k = 0; k < i; k++)
            if (o->devices[k].id == o->devices[i].id) return vp_fail(error, VP_ERR_RANGE, i, "devices", "two devices have the same number");
    }
    for (i = 0; i < o->metadata_count; i++) {
        const vp_trace_metadata *m = &o->metadata[i];
        if (!m->key || !m->key[0] || !m->text) return vp_fail(error, VP_ERR_RANGE, i, "metadata", "key and text must be there");
        if (vp_utf8_valid_bytes(m->key, strlen(m->key)) != strlen(m->key) || vp_utf8_valid_bytes(m->text, strlen(m->text)) != strlen(m->text))
            return vp_fail(error, VP_ERR_RANGE, i, "metadata", "key or text is not UTF-8");
    }
    return VP_OK;
}
static vp_result vp_impl_trace_sink(void *user, const char *text, size_t bytes) {
    vp_impl_trace_bytes((vp_trace *)user, text, bytes);
    return VP_OK;
}
static void vp_impl_trace_quote(vp_trace *t, const char *text) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, vp_impl_trace_sink, t, 0);
    vp_json_string(&w, text);
}
static void vp_impl_trace_property(vp_trace *t, const char *key, int64_t value) {
    if (value > 0) vp_impl_trace_arg(t, key, value);
}
static void vp_impl_trace_properties(vp_trace *t, const vp_trace_device *d) {
    t->args = 0;
    vp_impl_trace_put(t, "{");
    vp_impl_trace_arg(t, "id", d->id);
    vp_impl_trace_arg_text(t, "name", d->name);
    vp_impl_trace_property(t, "totalGlobalMem", d->memory_bytes > (uint64_t)INT64_MAX ? 0 : (int64_t)d->memory_bytes);
    vp_impl_trace_property(t, "computeMajor", d->compute_major);
    if (d->compute_major > 0) vp_impl_trace_arg(t, "computeMinor", d->compute_minor);
    vp_impl_trace_property(t, "maxThreadsPerBlock", d->threads_per_block);
    vp_impl_trace_property(t, "maxThreadsPerMultiprocessor", d->threads_per_multiprocessor);
    vp_impl_trace_property(t, "regsPerBlock", d->registers_per_block);
    vp_impl_trace_property(t, "regsPerMultiprocessor", d->registers_per_multiprocessor);
    vp_impl_trace_property(t, "warpSize", d->warp_threads);
    vp_impl_trace_property(t, "sharedMemPerBlock", d->shared_bytes_per_block);
    vp_impl_trace_property(t, "sharedMemPerMultiprocessor", d->shared_bytes_per_multiprocessor);
    vp_impl_trace_property(t, "numSms", d->multiprocessor_count);
    vp_impl_trace_property(t, "sharedMemPerBlockOptin", d->shared_bytes_per_block_optin);
    vp_impl_trace_put(t, "}");
}
/* HTA looks for "rank": N, with a blank, line by line */
static void vp_impl_trace_distributed(vp_trace *t, const vp_trace_options *o) {
    int32_t i;
    vp_impl_trace_put(t, "\"distributedInfo\": {\"backend\": ");
    vp_impl_trace_text(t, o->backend, 0);
    vp_impl_trace_put(t, ", \"rank\": ");
    vp_impl_trace_int(t, o->rank);
    vp_impl_trace_put(t, ", \"world_size\": ");
    vp_impl_trace_int(t, o->world_size);
    vp_impl_trace_put(t, ", \"pg_count\": 1, \"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": ");
    vp_impl_trace_text(t, o->backend, 0);
    vp_impl_trace_put(t, ", \"pg_size\": ");
    vp_impl_trace_int(t, o->world_size);
    vp_impl_trace_put(t, ", \"ranks\": [");
    for (i = 0; i < o->world_size; i++) {
        if (i) vp_impl_trace_put(t, ", ");
        vp_impl_trace_int(t, i);
    }
    vp_impl_trace_put(t, "]}], \"nccl_version\": \"none\"},\n");
}
/* what close writes over: the width must not depend on the values */
static void vp_impl_trace_flags(const vp_trace *t, char out[64]) {
    snprintf(out, 64, "\"trace_truncated\": %d,\n\"dropped_steps\": %20lld,\n", t->full, (long long)t->dropped_steps);
}
static void vp_impl_trace_head(vp_trace *t, const vp_trace_options *o) {
    char flags[64], text[64];
    struct utsname host;
    int32_t i;
    vp_impl_trace_put(t, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
    for (i = 0; i < o->device_count; i++) {
        vp_impl_trace_put(t, i ? ",\n" : "\n");
        vp_impl_trace_properties(t, &o->devices[i]);
    }
    vp_impl_trace_put(t, "\n],\n");
    if (o->record_shapes) vp_impl_trace_put(t, "\"record_shapes\": 1,\n");
    if (o->profile_memory) vp_impl_trace_put(t, "\"profile_memory\": 1,\n");
    if (o->with_stack) vp_impl_trace_put(t, "\"with_stack\": 1,\n");
    if (o->emulated) vp_impl_trace_put(t, "\"emulated\": 1,\n");
    snprintf(text, sizeof text, "%016llX%08lX", (unsigned long long)o->base_unix_ns, (unsigned long)o->process);
    vp_impl_trace_put(t, "\"trace_id\": \"");
    vp_impl_trace_put(t, text);
    vp_impl_trace_put(t, "\",\n\"host_name\": ");
    vp_impl_trace_text(t, uname(&host) == 0 ? host.nodename : "", 0);
    vp_impl_trace_put(t, ",\n\"generator\": \"vlmprof " VLMPROF_VERSION "\",\n");
    t->flags_at = t->state.bytes;
    vp_impl_trace_flags(t, flags);
    vp_impl_trace_put(t, flags);
    for (i = 0; i < o->metadata_count; i++) {
        vp_impl_trace_quote(t, o->metadata[i].key);
        vp_impl_trace_put(t, ": ");
        vp_impl_trace_quote(t, o->metadata[i].text);
        vp_impl_trace_put(t, ",\n");
    }
    vp_impl_trace_distributed(t, o);
    vp_impl_trace_put(t, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ");
    vp_impl_trace_int(t, o->base_unix_ns);
    vp_impl_trace_put(t, ",\n\"traceEvents\": [");
}
static void vp_impl_trace_rows(vp_trace *t, const vp_trace_options *o) {
    char name[64];
    int32_t i;
    vp_impl_trace_label(t, "process_name", o->process, -1, "name", o->process_name, 0);
    vp_impl_trace_label(t, "process_labels", o->process, -1, "labels", "CPU", 0);
    vp_impl_trace_label(t, "process_sort_index", o->process, -1, "sort_index", NULL, 0);
    snprintf(name, sizeof name, "thread %ld (main)", (long)o->thread);
    vp_impl_trace_name_thread(t, o->process, o->thread, name, 0);
    for (i = 0; i < o->device_count; i++) {
        const int32_t id = o->devices[i].id;
        vp_impl_trace_label(t, "process_name", id, -1, "name", o->process_name, 0);
        snprintf(name, sizeof name, o->emulated ? "GPU %ld (emulated)" : "GPU %ld", (long)id);
        vp_impl_trace_label(t, "process_labels", id, -1, "labels", name, 0);
        vp_impl_trace_label(t, "process_sort_index", id, -1, "sort_index", NULL, 5000000 + (int64_t)id);
        vp_impl_trace_name_thread(t, id, VP_TRACE_STREAM, "stream 7", VP_TRACE_STREAM);
    }
}
static vp_trace *vp_impl_trace_make(const vp_trace_options *o) {
    const size_t bytes = strlen(o->path) + 1;
    vp_trace *t = (vp_trace *)calloc(1, sizeof *t);
    if (!t) return NULL;
    t->fd = -1;
    t->path = (char *)malloc(bytes);
    t->temporary = (char *)malloc(bytes + 4);
    t->devices = (vp_trace_device *)calloc((size_t)o->device_count + 1, sizeof *t->devices);
    if (!t->path || !t->temporary || !t->devices) {
        vp_trace_free(t);
        return NULL;
    }
    memcpy(t->path, o->path, bytes);
    memcpy(t->temporary, o->path, bytes);
    memcpy(t->temporary + bytes - 1, ".tmp", 5);
    if (o->device_count) memcpy(t->devices, o->devices, (size_t)o->device_count * sizeof *t->devices);
    t->device_count = o->device_count;
    t->process = o->process;
    t->thread = o->thread;
    t->base_ns = o->base_ns;
    t->max_bytes = o->max_bytes;
    t->reserve = VP_IMPL_TRACE_RESERVE + 6 * bytes;
    t->emulated = o->emulated;
    t->shapes = o->record_shapes;
    t->stacks = o->with_stack;
    t->state.first_ns = INT64_MAX;
    return t;
}
VP_API vp_result vp_trace_open(const vp_trace_options *options, vp_trace **trace, vp_error *error) {
    vp_result result = vp_impl_trace_check(options, error);
    vp_trace *t;
    if (result != VP_OK) return result;
    if (!trace) return vp_fail(error, VP_ERR_RANGE, -1, "trace", "there is no place for it");
    t = vp_impl_trace_make(options);
    if (!t) return vp_fail(error, VP_ERR_MEMORY, -1, options->path, "not enough memory");
    t->fd = open(t->temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (t->fd < 0) result = vp_failf(error, VP_ERR_WRITE, -1, t->temporary, "the file cannot be made: %s", strerror(errno));
    else {
        vp_impl_trace_head(t, options);
        vp_impl_trace_rows(t, options);
        vp_impl_trace_flush(t);
        result = vp_impl_trace_done(t, error);
        if (result == VP_OK && !vp_impl_trace_room(t, VP_IMPL_TRACE_EVENT))
            result = vp_failf(error, VP_ERR_RANGE, -1, "max_bytes", "must be %llu or more here: less holds no event",
                                   (unsigned long long)(t->state.bytes + t->reserve + VP_IMPL_TRACE_EVENT));
    }
    if (result != VP_OK) {
        vp_trace_free(t);
        return result;
    }
    *trace = t;
    return VP_OK;
}
VP_API void vp_trace_free(vp_trace *trace) {
    if (!trace) return;
    if (trace->fd >= 0) {
        close(trace->fd);
        unlink(trace->temporary);
    }
    free(trace->path);
    free(trace->temporary);
    free(trace->devices);
    free(trace);
}

/* ---- steps ---- */
static void vp_impl_trace_step(vp_trace *t, int64_t step, int64_t begin, int64_t end) {
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%lld", (long long)step);
    vp_impl_trace_slice(t, "user_annotation", name, t->process, t->thread, begin, end - begin);
    vp_impl_trace_arg(t, "External id", ++t->state.external_id);
    vp_impl_trace_end(t);
}
VP_API vp_result vp_trace_step_begin(vp_trace *trace, int64_t step, int64_t at_ns, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (trace->step_open) return vp_fail(error, VP_ERR_STATE, -1, "step", "the step before it is still open");
    if (step < 0 || step == INT64_MAX || !vp_impl_trace_time(trace, at_ns, &at) || at < trace->step_end_ns)
        return vp_fail(error, VP_ERR_RANGE, -1, "step", "must be 0 or more, and begin after the trace and after the step before it");
    if (!vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT)) {
        trace->dropped_steps++;
        return vp_impl_trace_is_full(trace, error);
    }
    trace->step_open = 1;
    trace->step = step;
    trace->step_ns = at;
    return VP_OK;
}
/* Also when the file is full: what is open keeps its room in the reserve. */
VP_API vp_result vp_trace_step_end(vp_trace *trace, int64_t at_ns, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (!trace->step_open) {
        if (trace->full && trace->dropped_steps) return vp_impl_trace_is_full(trace, error);
        return vp_fail(error, VP_ERR_STATE, -1, "step", "no step is open");
    }
    if (!vp_impl_trace_time(trace, at_ns, &at) || at < trace->step_ns)
        return vp_fail(error, VP_ERR_RANGE, -1, "step", "must not end before it begins");
    vp_impl_trace_step(trace, trace->step, trace->step_ns, at);
    trace->step_open = 0;
    trace->step_end_ns = at;
    trace->steps++;
    return vp_impl_trace_done(trace, error);
}

/* ---- requests ---- */
/* the way through a request; times from the trace's zero */
typedef struct vp_impl_trace_walk {
    const vp_trace_run *run;
    const vp_trace_device *device;     /* NULL: the CPU */
    int64_t next;                      /* launch */
    int64_t begin, shift;              /* of the request on the host; what the device's times are moved by */
    int64_t host, on_device;           /* cursors: nothing begins before */
    int64_t op;                        /* External id of the innermost op */
} vp_impl_trace_walk;
typedef struct vp_impl_trace_edges { int64_t begin, end; } vp_impl_trace_edges; /* from the request's begin; begin INT64_MAX: not known */

static void vp_impl_trace_moved(vp_trace *t, int64_t wanted, int64_t placed) {
    const int64_t by = placed > wanted ? placed - wanted : wanted - placed;
    if (by <= VP_IMPL_TRACE_EDGE_NS) return;
    t->state.moved_slices++;
    if (by > t->state.moved_ns) t->state.moved_ns = by;
}
/* Something that encloses others begins, and the cursor stands 1 ns later; it ends 1 ns behind the last that it encloses. */
static int64_t vp_impl_trace_enter(int64_t *cursor, int64_t wanted) {
    const int64_t begin = wanted > *cursor ? wanted : *cursor;
    *cursor = begin + 1;
    return begin;
}
static int64_t vp_impl_trace_leave(int64_t *cursor, int64_t wanted) {
    const int64_t end = wanted > *cursor + 1 ? wanted : *cursor + 1;
    *cursor = end;
    return end;
}
/* the end that is asked for, but not into the next launch */
static int64_t vp_impl_trace_until(int64_t wanted, int64_t next) { return next - 2 < wanted ? next - 2 : wanted; }
/* A slice without others in it: not before the cursor, and not into what comes next. */
static vp_impl_trace_edges vp_impl_trace_leaf(vp_trace *t, int64_t *cursor, int64_t begin, int64_t ns, int64_t next) {
    vp_impl_trace_edges e;
    int64_t end = begin + ns;
    e.begin = begin > *cursor ? begin : *cursor;
    e.end = end < next ? end : next;
    if (e.end < e.begin) e.end = e.begin;
    *cursor = e.end;
    vp_impl_trace_moved(t, begin, e.begin);
    vp_impl_trace_moved(t, end, e.end);
    return e;
}
static int64_t vp_impl_trace_host_of(const vp_impl_trace_walk *w, int64_t i) {
    return i < w->run->launch_count ? w->begin + w->run->launches[i].host_begin_ns : INT64_MAX;
}
static int64_t vp_impl_trace_device_of(const vp_impl_trace_walk *w, int64_t i) {
    return i < w->run->launch_count ? w->begin + w->shift + w->run->launches[i].begin_ns : INT64_MAX;
}

static void vp_impl_trace_list(vp_trace *t, const char *key, const int32_t *values, int32_t count) {
    int32_t i;
    vp_impl_trace_key(t, key);
    for (i = 0; i < count; i++) {
        vp_impl_trace_put(t, i ? ", " : "[");
        vp_impl_trace_int(t, values[i]);
    }
    vp_impl_trace_put(t, count ? "]" : "[]");
}
/* Input Dims of a launch by vp_launch.shape's meanings: a product's operands, attention's queries and keys, rows. */
static void vp_impl_trace_dims(vp_trace *t, const int32_t *s, int32_t dimensions) {
    char text[120];
    if (dimensions == 3) snprintf(text, sizeof text, "[[%d, %d], [%d, %d]]", (int)s[0], (int)s[2], (int)s[2], (int)s[1]);
    else if (dimensions == 4) snprintf(text, sizeof text, "[[%d, %d, %d], [%d, %d, %d]]", (int)s[0], (int)s[1], (int)s[3], (int)s[0], (int)s[2],
                                       (int)s[3]);
    else if (dimensions == 2) snprintf(text, sizeof text, "[[%d, %d]]", (int)s[0], (int)s[1]);
    else if (dimensions == 1) snprintf(text, sizeof text, "[[%d]]", (int)s[0]);
    else snprintf(text, sizeof text, "[]");
    vp_impl_trace_key(t, "Input Dims");
    vp_impl_trace_put(t, text);
}
static void vp_impl_trace_op_args(vp_trace *t, int64_t id) {
    vp_impl_trace_arg(t, "External id", id);
    vp_impl_trace_arg(t, "Record function id", 0);
    vp_impl_trace_arg(t, "Ev Idx", t->state.event_index++);
}
static int64_t vp_impl_trace_whole(uint64_t count) { return count > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)count; }
/* A launch as an operation of the host. */
static void vp_impl_trace_launch_op(vp_trace *t, const vp_launch *l, int64_t id, int64_t begin, int64_t end) {
    char stack[64];
    vp_impl_trace_slice(t, "cpu_op", l->name, t->process, t->thread, begin, end - begin);
    vp_impl_trace_op_args(t, id);
    if (t->shapes) vp_impl_trace_dims(t, l->shape, l->dimensions);
    if (t->stacks) {
        snprintf(stack, sizeof stack, "vlmprof_kernels.cu(%d): ", (int)l->line);
        vp_impl_trace_key(t, "Call stack");
        vp_impl_trace_put(t, "\"");
        vp_impl_trace_put(t, stack);
        vp_impl_trace_put(t, vp_impl_trace_parts[l->part]);
        vp_impl_trace_put(t, "\"");
    }
    vp_impl_trace_arg(t, "flops", vp_impl_trace_whole(l->flops));
    vp_impl_trace_arg(t, "bytes", vp_impl_trace_whole(l->bytes));
    vp_impl_trace_end(t);
}
/* Share of a multiprocessor's threads that a kernel can keep busy, in per cent; -1: not known.
 * source: kineto libkineto/src/CuptiActivity.cpp kernelOccupancy; the CUDA occupancy calculator's limits: threads, registers, shared memory, and at
 * most 32 blocks */
static int64_t vp_impl_trace_occupancy(const vp_trace_device *d, const vp_launch *l) {
    double resident = 32.0, blocks;
    if (d->threads_per_multiprocessor <= 0 || d->multiprocessor_count <= 0 || !l->grid || !l->threads) return -1;
    blocks = (double)(d->threads_per_multiprocessor / (int32_t)(l->threads > 4096 ? 4096 : l->threads));
    if (blocks < resident) resident = blocks;
    if (l->registers && d->registers_per_multiprocessor > 0) {
        /* registers are given out by the warp, 256 at a time */
        const double warps = floor((double)d->registers_per_multiprocessor / (ceil(l->registers * 32.0 / 256.0) * 256.0));
        blocks = floor(warps / ceil(l->threads / 32.0));
        if (blocks < resident) resident = blocks;
    }
    if (l->shared_bytes && d->shared_bytes_per_multiprocessor > 0) {
        blocks = floor((double)d->shared_bytes_per_multiprocessor / (l->shared_bytes + 1024.0));
        if (blocks < resident) resident = blocks;
    }
    blocks = (double)l->grid / d->multiprocessor_count;
    if (blocks < resident) resident = blocks;
    return (int64_t)(0.5 + 100.0 * resident * l->threads / d->threads_per_multiprocessor);
}
static void vp_impl_trace_kernel_args(vp_trace *t, const vp_trace_device *d, const vp_launch *l) {
    const int64_t occupancy = vp_impl_trace_occupancy(d, l);
    if (l->grid && l->threads) { /* products are cuBLAS's: their geometry is not known, and readers take its absence better than zeros */
        const int32_t grid[3] = {(int32_t)(l->grid > INT32_MAX ? INT32_MAX : l->grid), 1, 1}, block[3] = {(int32_t)(l->threads & 0xffff), 1, 1};
        vp_impl_trace_arg(t, "registers per thread", l->registers);
        vp_impl_trace_arg(t, "shared memory", l->shared_bytes);
        if (d->multiprocessor_count > 0) {
            const double blocks = (double)l->grid / d->multiprocessor_count;
            vp_impl_trace_arg_real(t, "blocks per SM", blocks);
            vp_impl_trace_arg_real(t, "warps per SM", blocks * l->threads / 32.0);
        }
        vp_impl_trace_list(t, "grid", grid, 3);
        vp_impl_trace_list(t, "block", block, 3);
        if (occupancy >= 0) vp_impl_trace_arg(t, "est. achieved occupancy %", occupancy);
    }
    vp_impl_trace_arg(t, "flops", vp_impl_trace_whole(l->flops));
    vp_impl_trace_arg(t, "bytes", vp_impl_trace_whole(l->bytes));
}
/* The device's side of a launch. */
static void vp_impl_trace_device_slice(vp_trace *t, const vp_trace_device *d, const vp_launch *l, int64_t op, int64_t correlation,
                                       vp_impl_trace_edges at) {
    static const char *const copies[] = {"", "Memcpy DtoD (Device -> Device)", "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"};
    const int kernel = l->kind == VP_LAUNCH_KERNEL;
    vp_impl_trace_slice(t, kernel ? "kernel" : "gpu_memcpy", kernel ? l->name : copies[l->kind], d->id, VP_TRACE_STREAM, at.begin, at.end - at.begin);
    vp_impl_trace_arg(t, "External id", op);
    if (kernel) vp_impl_trace_arg(t, "queued", 0);
    vp_impl_trace_arg(t, "device", d->id);
    vp_impl_trace_arg(t, "context", 1);
    vp_impl_trace_arg(t, "stream", VP_TRACE_STREAM);
    vp_impl_trace_arg(t, "correlation", correlation);
    if (kernel) vp_impl_trace_kernel_args(t, d, l);
    else {
        /* a copy within the device is counted twice in vp_launch.bytes: read and written */
        const int64_t bytes = vp_impl_trace_whole(l->kind == VP_LAUNCH_COPY ? l->bytes / 2 : l->bytes);
        vp_impl_trace_arg(t, "bytes", bytes);
        vp_impl_trace_arg_real(t, "memory bandwidth (GB/s)", at.end > at.begin ? (double)bytes / (double)(at.end - at.begin) : 0.0);
    }
    vp_impl_trace_end(t);
}
/* One launch: on the CPU an op; on a GPU the call that sends it, what the device does, and the flow between. */
static void vp_impl_trace_launch(vp_trace *t, vp_impl_trace_walk *w) {
    const vp_launch *l = &w->run->launches[w->next];
    const int copy = l->kind != VP_LAUNCH_KERNEL, own = w->device && (t->shapes || t->stacks);
    const int64_t begin = w->begin + l->host_begin_ns;
    int64_t op = w->op, correlation, around = 0;
    vp_impl_trace_edges host, on;
    if (own) around = vp_impl_trace_enter(&w->host, begin - 1);
    host = vp_impl_trace_leaf(t, &w->host, begin, l->host_ns, vp_impl_trace_host_of(w, w->next + 1));
    if (!w->device) vp_impl_trace_launch_op(t, l, ++t->state.external_id, host.begin, host.end);
    else {
        if (own) vp_impl_trace_launch_op(t, l, op = ++t->state.external_id, around, vp_impl_trace_leave(&w->host, host.end));
        correlation = ++t->state.correlation;
        if (w->on_device <= host.begin) w->on_device = host.begin + 1; /* the edges of what is around it may have moved the call */
        on = vp_impl_trace_leaf(t, &w->on_device, vp_impl_trace_device_of(w, w->next), l->ns, vp_impl_trace_device_of(w, w->next + 1));
        vp_impl_trace_slice(t, "cuda_runtime", copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", t->process, t->thread, host.begin,
                            host.end - host.begin);
        vp_impl_trace_arg(t, "External id", op);
        vp_impl_trace_arg(t, "cbid", copy ? 41 : 211);
        vp_impl_trace_arg(t, "correlation", correlation);
        vp_impl_trace_end(t);
        vp_impl_trace_flow(t, 1, correlation, t->process, t->thread, host.begin);
        vp_impl_trace_device_slice(t, w->device, l, op, correlation, on);
        vp_impl_trace_flow(t, 0, correlation, w->device->id, VP_TRACE_STREAM, on.begin);
    }
    t->state.launches++;
    w->next++;
}
/* Launches up to `to`: each run of the same part of the same block is an op around them. */
static void vp_impl_trace_unit(vp_trace *t, vp_impl_trace_walk *w, int64_t to) {
    while (w->next < to) {
        const vp_launch *first = &w->run->launches[w->next], *last;
        char name[64];
        int64_t until = w->next + 1, begin = vp_impl_trace_enter(&w->host, vp_impl_trace_host_of(w, w->next) - 1), end;
        while (until < to && w->run->launches[until].part == first->part && w->run->launches[until].block == first->block) until++;
        w->op = ++t->state.external_id;
        {
            const int64_t id = w->op;
            while (w->next < until) vp_impl_trace_launch(t, w);
            last = &w->run->launches[until - 1];
            end = vp_impl_trace_until(w->begin + last->host_begin_ns + last->host_ns, vp_impl_trace_host_of(w, w->next));
            end = vp_impl_trace_leave(&w->host, end);
            snprintf(name, sizeof name, "vlmprof::%s", vp_impl_trace_parts[first->part]);
            vp_impl_trace_slice(t, "cpu_op", name, t->process, t->thread, begin, end - begin);
            vp_impl_trace_op_args(t, id);
            if (first->block >= 0) vp_impl_trace_arg(t, "model block", first->block);
            vp_impl_trace_end(t);
        }
    }
}
/* Does a unit fit? By a bound, and where that says no by an attempt that only counts. Two annotations come with it. */
static int vp_impl_trace_fits(vp_trace *t, const vp_impl_trace_walk *w, int64_t to) {
    const uint64_t around = 4 * VP_IMPL_TRACE_EVENT;
    uint64_t bound = around;
    vp_impl_trace_state state;
    vp_impl_trace_walk copy;
    int64_t i;
    if (t->full) return 0;
    for (i = w->next; i < to; i++) bound += VP_IMPL_TRACE_LAUNCH + 4 * strlen(w->run->launches[i].name);
    if (t->state.bytes + bound + t->reserve <= t->max_bytes) return 1;
    state = t->state;
    copy = *w;
    t->counting = 1;
    vp_impl_trace_unit(t, &copy, to);
    t->counting = 0;
    bound = t->state.bytes - state.bytes + around;
    t->state = state;
    return vp_impl_trace_room(t, bound);
}
/* What stands around a stage or decode step, on the host and on the device. */
typedef struct vp_impl_trace_around { int64_t host, device; } vp_impl_trace_around;
static vp_impl_trace_around vp_impl_trace_open_around(vp_impl_trace_walk *w, vp_impl_trace_edges host, vp_impl_trace_edges device, int64_t to) {
    int64_t host_at = w->next < to ? vp_impl_trace_host_of(w, w->next) - 1 : INT64_MAX,
            device_at = w->next < to ? vp_impl_trace_device_of(w, w->next) - 1 : INT64_MAX;
    vp_impl_trace_around a = {0, 0};
    if (host.begin != INT64_MAX && w->begin + host.begin < host_at) host_at = w->begin + host.begin;
    if (device.begin != INT64_MAX && w->begin + w->shift + device.begin < device_at) device_at = w->begin + w->shift + device.begin;
    a.host = vp_impl_trace_enter(&w->host, host_at == INT64_MAX ? w->host : host_at);
    if (w->device) a.device = vp_impl_trace_enter(&w->on_device, device_at == INT64_MAX ? w->on_device : device_at);
    return a;
}
static void vp_impl_trace_close_around(vp_trace *t, vp_impl_trace_walk *w, vp_impl_trace_around a, vp_impl_trace_edges host,
                                       vp_impl_trace_edges device, const char *name) {
    int64_t end = host.begin == INT64_MAX ? 0 : vp_impl_trace_until(w->begin + host.end, vp_impl_trace_host_of(w, w->next));
    end = vp_impl_trace_leave(&w->host, end);
    vp_impl_trace_slice(t, "user_annotation", name, t->process, t->thread, a.host, end - a.host);
    vp_impl_trace_arg(t, "External id", ++t->state.external_id);
    vp_impl_trace_end(t);
    if (!w->device) return;
    end = device.begin == INT64_MAX ? 0 : vp_impl_trace_until(w->begin + w->shift + device.end, vp_impl_trace_device_of(w, w->next));
    end = vp_impl_trace_leave(&w->on_device, end);
    vp_impl_trace_slice(t, "gpu_user_annotation", name, w->device->id, VP_TRACE_STREAM, a.device, end - a.device);
    vp_impl_trace_arg(t, "External id", t->state.external_id);
    vp_impl_trace_arg(t, "device clock offset ns", w->shift);
    vp_impl_trace_end(t);
}
static int64_t vp_impl_trace_end_of(const vp_impl_trace_walk *w, int32_t stage, int32_t step) {
    int64_t i = w->next;
    while (i < w->run->launch_count && w->run->launches[i].stage == stage && (step < 0 || w->run->launches[i].step == step)) i++;
    return i;
}
/* The decode steps. Their place on the device follows from their times; on the host only their launches tell it. */
static void vp_impl_trace_steps(vp_trace *t, vp_impl_trace_walk *w, vp_impl_trace_edges stage) {
    vp_impl_trace_edges unknown = {INT64_MAX, INT64_MAX}, device = unknown;
    int64_t at = stage.begin;
    int32_t step, taken = 0;
    while (!t->full) {
        const int more = w->next < w->run->launch_count && w->run->launches[w->next].stage == VP_STAGE_DECODE;
        vp_impl_trace_around around;
        char name[32];
        int64_t to;
        if (!more && taken >= w->run->step_count) break;
        step = more ? w->run->launches[w->next].step : taken + 1;
        to = vp_impl_trace_end_of(w, VP_STAGE_DECODE, step);
        if (!vp_impl_trace_fits(t, w, to)) break;
        device = unknown;
        if (at != INT64_MAX && taken < w->run->step_count) {
            device.begin = at;
            device.end = at += w->run->step_ns[taken];
        }
        taken++;
        if (!more && device.begin == INT64_MAX) continue;
        snprintf(name, sizeof name, "decode[%ld]", (long)step);
        around = vp_impl_trace_open_around(w, unknown, device, to);
        vp_impl_trace_unit(t, w, to);
        vp_impl_trace_close_around(t, w, around, unknown, device, name);
    }
}
static void vp_impl_trace_stage(vp_trace *t, vp_impl_trace_walk *w, int32_t stage, vp_impl_trace_edges host, vp_impl_trace_edges device) {
    const int64_t to = vp_impl_trace_end_of(w, stage, -1);
    const int decode = stage == VP_STAGE_DECODE;
    vp_impl_trace_around around;
    char name[64];
    if (t->full || (to == w->next && host.begin == INT64_MAX && device.begin == INT64_MAX)) return;
    if (!vp_impl_trace_fits(t, w, decode ? vp_impl_trace_end_of(w, stage, w->next < to ? w->run->launches[w->next].step : 0) : to)) return;
    snprintf(name, sizeof name, "stage::%s", vp_impl_trace_stages[stage]);
    around = vp_impl_trace_open_around(w, host, device, to);
    if (decode) vp_impl_trace_steps(t, w, device);
    else vp_impl_trace_unit(t, w, to);
    vp_impl_trace_close_around(t, w, around, host, device, name);
}
/* Spans are in no order; a thread's do not overlap, because it can do one thing at a time. */
static int vp_impl_trace_spans_good(const vp_trace_run *run) {
    int64_t i;
    for (i = 0; i < run->span_count; i++) {
        const vp_span *s = &run->spans[i];
        if (s->launch < 0 || s->thread < 0 || s->thread >= VP_TRACE_THREADS_LIMIT || s->begin_ns < 0
            || s->begin_ns > VP_IMPL_TRACE_NS_LIMIT || s->ns < 0 || s->ns > VP_IMPL_TRACE_NS_LIMIT)
            return 0;
    }
    return 1;
}
/* what the workers did of the launches that were written */
static void vp_impl_trace_spans(vp_trace *t, const vp_impl_trace_walk *w) {
    int64_t i;
    for (i = 0; i < w->run->span_count && !t->full; i++) {
        const vp_span *s = &w->run->spans[i];
        const char *name;
        if (s->launch >= w->next) continue; /* left out, or the caller's buffer had no room for it */
        name = w->run->launches[s->launch].name;
        if (!vp_impl_trace_room(t, 3 * VP_IMPL_TRACE_EVENT + 4 * (uint64_t)strlen(name))) continue;
        vp_impl_trace_slice(t, "thread_span", name, t->process, vp_impl_trace_track(t, 0, s->thread, NULL), w->begin + s->begin_ns, s->ns);
        vp_impl_trace_arg(t, "launch", s->launch);
        vp_impl_trace_end(t);
    }
}
/* *shift: see vp_trace_launches. 0 when a number is outside its range, -1 when launches are out of order. */
static int vp_impl_trace_check_run(const vp_trace *t, const vp_trace_run *run, int64_t begin, int64_t *shift) {
    int64_t i, least = 0;
    const vp_launch *before = NULL;
    for (i = 0; i < run->launch_count; i++) {
        const vp_launch *l = &run->launches[i];
        const int64_t limit = VP_IMPL_TRACE_NS_LIMIT;
        if (!l->name || l->stage < 0 || l->stage >= VP_STAGE_COUNT || l->part < 0 || l->part >= VP_PART_COUNT || l->kind < VP_LAUNCH_KERNEL
            || l->kind > VP_LAUNCH_COPY_TO_HOST || l->step < 0 || l->dimensions < 0 || l->dimensions > 4 || l->begin_ns < 0 || l->begin_ns > limit
            || l->ns < 0 || l->ns > limit || l->host_begin_ns < 0 || l->host_begin_ns > limit || l->host_ns < 0 || l->host_ns > limit)
            return 0;
        if (before && (l->stage < before->stage || (l->stage == before->stage && l->step < before->step))) return -1;
        if (l->host_begin_ns - l->begin_ns >= least) least = l->host_begin_ns - l->begin_ns + 1;
        before = l;
    }
    for (i = 0; i < run->step_count; i++)
        if (run->step_ns[i] < 0 || run->step_ns[i] > VP_IMPL_TRACE_NS_LIMIT / (run->step_count + 1)) return 0;
    for (i = 0; run->times && i < VP_STAGE_COUNT; i++) {
        const vp_stage_times *times = run->times;
        const int64_t limit = VP_IMPL_TRACE_NS_LIMIT / 16;
        if (times->begin_ns[i] < 0 || times->begin_ns[i] > limit || times->wall_ns[i] < 0 || times->wall_ns[i] > limit || times->device_ns[i] < 0
            || times->device_ns[i] > limit)
            return 0;
    }
    if (run->device >= 0 && t->state.device_ns[run->device] - begin > least) least = t->state.device_ns[run->device] - begin;
    *shift = least;
    return 1;
}
VP_API vp_result vp_trace_launches(vp_trace *trace, const vp_trace_run *run, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    vp_impl_trace_edges host = {0, 0}, device = {0, 0}, unknown = {INT64_MAX, INT64_MAX};
    vp_impl_trace_walk w;
    int64_t launches;
    int good;
    int32_t stage;
    if (result != VP_OK) return result;
    memset(&w, 0, sizeof w);
    if (!run || run->launch_count < 0 || (run->launch_count && !run->launches) || run->step_count < 0 || (run->step_count && !run->step_ns)
        || run->span_count < 0 || (run->span_count && !run->spans) || run->device < -1 || !vp_impl_trace_time(trace, run->begin_ns, &w.begin))
        return vp_fail(error, VP_ERR_RANGE, -1, "run", "a count is outside its range, or the request began before the trace");
    if (run->device >= 0 && !(w.device = vp_impl_trace_device(trace, run->device)))
        return vp_fail(error, VP_ERR_RANGE, -1, "device", "the trace was opened without this device");
    good = vp_impl_trace_check_run(trace, run, w.begin, &w.shift);
    if (good < 0) return vp_fail(error, VP_ERR_MISMATCH, -1, "launches", "a launch of an earlier stage or decode step stands after a later one");
    if (!good || !vp_impl_trace_spans_good(run))
        return vp_fail(error, VP_ERR_RANGE, -1, "run", "a time, stage, part, kind, shape or thread is outside its range, or a launch has no name");
    w.run = run;
    w.host = w.begin;
    w.on_device = run->device >= 0 && trace->state.device_ns[run->device] > w.begin ? trace->state.device_ns[run->device] : w.begin;
    launches = trace->state.launches;
    for (stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        const int known = run->times && run->times->ran[stage];
        host.begin = host.end;
        if (known) {
            host.end += run->times->wall_ns[stage];
            device.begin = run->times->begin_ns[stage];
            device.end = device.begin + run->times->device_ns[stage];
        }
        /* an emulated device's launches are sent by a clock that is not the caller's: there they alone tell how long the host took */
        vp_impl_trace_stage(trace, &w, stage, known && !trace->emulated ? host : unknown, known ? device : unknown);
    }
    if (w.device) trace->state.device_ns[run->device] = w.on_device;
    vp_impl_trace_spans(trace, &w);
    trace->dropped_launches += run->launch_count - (trace->state.launches - launches);
    if (trace->failed) return vp_impl_trace_write_failed(trace, error);
    return trace->full ? vp_impl_trace_is_full(trace, error) : VP_OK;
}

/* ---- ranges, memory, counters ---- */
/* "file(line): name;.." from the range outwards, as torch writes it */
static void vp_impl_trace_stack(vp_trace *t, const vp_ranges *ranges, int64_t i) {
    int frame;
    vp_impl_trace_key(t, "Call stack");
    vp_impl_trace_put(t, "\"");
    for (frame = 0; i >= 0 && frame < VP_IMPL_TRACE_FRAMES; i = ranges->records[i].parent, frame++) {
        const vp_range *r = &ranges->records[i];
        const char *texts[2];
        int k;
        texts[0] = r->file ? r->file : "unknown";
        texts[1] = r->name;
        if (frame) vp_impl_trace_put(t, ";");
        for (k = 0; k < 2; k++) {
            const char *p = texts[k];
            if (k) {
                vp_impl_trace_put(t, "(");
                vp_impl_trace_int(t, r->line);
                vp_impl_trace_put(t, "): ");
            }
            /* what a name may not hold is left out here: the text is one of many */
            for (; *p; p++)
                if ((unsigned char)*p >= 32 && (unsigned char)*p < 127 && *p != '"' && *p != ';') vp_impl_trace_bytes(t, *p == '\\' ? "/" : p, 1);
        }
    }
    vp_impl_trace_put(t, "\"");
}
static void vp_impl_trace_range(vp_trace *t, const vp_ranges *ranges, int64_t i, int64_t begin) {
    const vp_range *r = &ranges->records[i];
    const int64_t track = ranges->thread ? vp_impl_trace_track(t, 1, ranges->thread, ranges->thread_name) : t->thread;
    vp_impl_trace_slice(t, "cpu_op", r->name, t->process, track, begin, r->end_ns - r->begin_ns);
    vp_impl_trace_op_args(t, ++t->state.external_id);
    if (t->shapes && r->payload.dimensions) {
        vp_impl_trace_key(t, "Input Dims");
        vp_impl_trace_put(t, "[");
        {
            int32_t k;
            for (k = 0; k < r->payload.dimensions; k++) {
                vp_impl_trace_put(t, k ? ", " : "[");
                vp_impl_trace_int(t, r->payload.shape[k]);
            }
        }
        vp_impl_trace_put(t, "]]");
    }
    if (t->stacks) vp_impl_trace_stack(t, ranges, i);
    if (r->payload.flops) vp_impl_trace_arg(t, "flops", r->payload.flops);
    if (r->payload.bytes) vp_impl_trace_arg(t, "bytes", r->payload.bytes);
    vp_impl_trace_end(t);
}
/* Ranges lie in the order in which they began, each within its parent and behind those before it that are not around it. */
static int vp_impl_trace_ranges_nest(const vp_trace *t, const vp_ranges *ranges) {
    int64_t i, before, at;
    for (i = 0; i < ranges->count; i++) {
        const vp_range *r = &ranges->records[i];
        if (!r->name || r->parent < -1 || r->parent >= i || r->end_ns < r->begin_ns || !vp_impl_trace_time(t, r->begin_ns, &at)
            || !vp_impl_trace_time(t, r->end_ns, &at) || r->payload.dimensions < 0 || r->payload.dimensions > 4 || r->payload.flops < 0
            || r->payload.bytes < 0)
            return 0;
        if (r->parent >= 0 && (r->begin_ns < ranges->records[r->parent].begin_ns || r->end_ns > ranges->records[r->parent].end_ns)) return 0;
        for (before = i - 1; before > r->parent; before = ranges->records[before].parent)
            if (r->begin_ns < ranges->records[before].end_ns) return 0;
        if (before != r->parent) return 0;
    }
    return 1;
}
VP_API vp_result vp_trace_ranges(vp_trace *trace, const vp_ranges *ranges, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t i, at = 0;
    if (result != VP_OK) return result;
    if (!ranges || ranges->count < 0 || (ranges->count && !ranges->records) || ranges->thread < 0 || ranges->thread >= VP_TRACE_THREADS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "ranges", "there are none, or the thread's number is outside its range");
    for (i = 0; i < ranges->count; i++)
        if (ranges->records[i].end_ns == INT64_MIN) return vp_fail(error, VP_ERR_STATE, i, "ranges", "a range is still open");
    if (!vp_impl_trace_ranges_nest(trace, ranges))
        return vp_fail(error, VP_ERR_RANGE, -1, "ranges", "one has no name, began before the trace, does not nest, or has a bad payload");
    for (i = 0; i < ranges->count && !trace->full; i++) {
        vp_impl_trace_state state = trace->state;
        uint64_t bytes;
        vp_impl_trace_time(trace, ranges->records[i].begin_ns, &at);
        trace->counting = 1;
        vp_impl_trace_range(trace, ranges, i, at);
        trace->counting = 0;
        bytes = trace->state.bytes - state.bytes;
        trace->state = state;
        if (vp_impl_trace_room(trace, bytes)) vp_impl_trace_range(trace, ranges, i, at);
    }
    if (trace->failed) return vp_impl_trace_write_failed(trace, error);
    return trace->full ? vp_impl_trace_is_full(trace, error) : VP_OK;
}
VP_API vp_result vp_trace_memory(vp_trace *trace, int64_t at_ns, int32_t device, uint64_t address, int64_t bytes, uint64_t allocated_bytes,
                                 uint64_t reserved_bytes, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (device < -1 || (device >= 0 && !vp_impl_trace_device(trace, device)) || !vp_impl_trace_time(trace, at_ns, &at))
        return vp_fail(error, VP_ERR_RANGE, -1, "device", "the trace was opened without this device, or the time lies before it");
    if (address > (uint64_t)INT64_MAX || allocated_bytes > (uint64_t)INT64_MAX || reserved_bytes > (uint64_t)INT64_MAX)
        return vp_fail(error, VP_ERR_RANGE, -1, "bytes", "must be below 2^63");
    if (!vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT)) return vp_impl_trace_is_full(trace, error);
    vp_impl_trace_put(trace, ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": ");
    vp_impl_trace_int(trace, trace->process);
    vp_impl_trace_put(trace, ", \"tid\": ");
    vp_impl_trace_int(trace, trace->thread);
    vp_impl_trace_put(trace, ", \"ts\": ");
    vp_impl_trace_us(trace, at);
    vp_impl_trace_put(trace, ", \"args\": {");
    trace->args = 0;
    vp_impl_trace_arg(trace, "Addr", (int64_t)address);
    vp_impl_trace_arg(trace, "Bytes", bytes);
    vp_impl_trace_arg(trace, "Total Allocated", (int64_t)allocated_bytes);
    vp_impl_trace_arg(trace, "Total Reserved", (int64_t)reserved_bytes);
    vp_impl_trace_arg(trace, "Device Type", device >= 0);
    vp_impl_trace_arg(trace, "Device Id", device);
    vp_impl_trace_arg(trace, "Ev Idx", trace->state.event_index++);
    vp_impl_trace_end(trace);
    vp_impl_trace_saw(trace, at, 0);
    return vp_impl_trace_done(trace, error);
}
VP_API vp_result vp_trace_counter(vp_trace *trace, int64_t at_ns, int32_t device, const char *name, double value, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (!name || !(value >= -1.7e308 && value <= 1.7e308) || device < -1 || (device >= 0 && !vp_impl_trace_device(trace, device))
        || !vp_impl_trace_time(trace, at_ns, &at))
        return vp_fail(error, VP_ERR_RANGE, -1, "counter", "no name, a value that is not finite, an unknown device, or a time before the trace");
    if (!vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT + 4 * (uint64_t)strlen(name))) return vp_impl_trace_is_full(trace, error);
    vp_impl_trace_put(trace, ",\n{\"ph\": \"C\", \"name\": ");
    vp_impl_trace_text(trace, name, 0);
    vp_impl_trace_put(trace, ", \"pid\": ");
    vp_impl_trace_int(trace, device >= 0 ? device : trace->process);
    vp_impl_trace_put(trace, ", \"ts\": ");
    vp_impl_trace_us(trace, at);
    vp_impl_trace_put(trace, ", \"args\": {");
    trace->args = 0;
    vp_impl_trace_arg_real(trace, "value", value);
    vp_impl_trace_end(trace);
    vp_impl_trace_saw(trace, at, 0);
    return vp_impl_trace_done(trace, error);
}

/* ---- the end ---- */
VP_API vp_trace_info vp_trace_tell(const vp_trace *trace) {
    vp_trace_info info;
    memset(&info, 0, sizeof info);
    if (!trace) return info;
    info.truncated = trace->full;
    info.dropped_steps = trace->dropped_steps;
    info.dropped_launches = trace->dropped_launches;
    info.bytes = trace->state.bytes;
    info.events = trace->state.events;
    info.steps = trace->steps;
    info.launches = trace->state.launches;
    info.moved_slices = trace->state.moved_slices;
    info.moved_ns = trace->state.moved_ns;
    return info;
}
static void vp_impl_trace_instant(vp_trace *t, const char *name, const char *process, const char *thread, int64_t at) {
    vp_impl_trace_put(t, ",\n{\"name\": \"");
    vp_impl_trace_put(t, name);
    vp_impl_trace_put(t, "\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"");
    vp_impl_trace_put(t, process);
    vp_impl_trace_put(t, "\", \"tid\": \"");
    vp_impl_trace_put(t, thread);
    vp_impl_trace_put(t, "\", \"ts\": ");
    vp_impl_trace_us(t, at);
    vp_impl_trace_put(t, "}");
    t->state.events++;
}
/* The closing step and the record as a whole, then the only member that may follow the events: no bracket may stand behind theirs. */
static void vp_impl_trace_tail(vp_trace *t) {
    int64_t first, operations = t->state.events;
    if (t->step_open) {
        const int64_t end = t->state.last_ns > t->step_ns ? t->state.last_ns : t->step_ns;
        vp_impl_trace_step(t, t->step, t->step_ns, end);
        t->step_end_ns = end;
        t->steps++;
        t->step_open = 0;
    }
    if (t->steps) {
        const int64_t begin = (t->state.last_ns > t->step_end_ns ? t->state.last_ns : t->step_end_ns) + 1;
        vp_impl_trace_step(t, t->step + 1, begin, begin + 1000);
    }
    first = t->state.first_ns == INT64_MAX ? 0 : t->state.first_ns;
    vp_impl_trace_put(t, ",\n{\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": ");
    vp_impl_trace_us(t, first);
    vp_impl_trace_put(t, ", \"dur\": ");
    vp_impl_trace_us(t, t->state.last_ns > first ? t->state.last_ns - first : 0);
    vp_impl_trace_put(t, ", \"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\", \"name\": \"PyTorch Profiler (0)\", \"args\": {\"Op count\": ");
    vp_impl_trace_int(t, operations);
    vp_impl_trace_put(t, "}},\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": \"Spans\", \"tid\": 0, "
                         "\"args\": {\"sort_index\": 536870912}}");
    t->state.events += 2;
    vp_impl_trace_instant(t, "Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", first);
    vp_impl_trace_instant(t, "Record Window End", "", "", t->state.last_ns);
    vp_impl_trace_put(t, "\n],\n\"traceName\": ");
    vp_impl_trace_text(t, t->path, 1);
    vp_impl_trace_put(t, "\n}\n");
}
VP_API vp_result vp_trace_close(vp_trace *trace, vp_trace_info *info, vp_error *error) {
    char flags[64];
    size_t bytes;
    if (!trace) return vp_fail(error, VP_ERR_RANGE, -1, "trace", "there is no trace");
    if (trace->closed) {
        if (info) *info = vp_trace_tell(trace);
        return vp_fail(error, VP_ERR_STATE, -1, trace->path, "the trace is closed already: nothing was done");
    }
    if (!trace->failed) {
        vp_impl_trace_tail(trace);
        vp_impl_trace_flush(trace);
    }
    if (!trace->failed && (trace->full || trace->dropped_steps)) {
        vp_impl_trace_flags(trace, flags);
        bytes = strlen(flags);
        memcpy(trace->buffer, flags, bytes);
        trace->buffered = bytes;
        if (lseek(trace->fd, (off_t)trace->flags_at, SEEK_SET) < 0) trace->failed = errno;
        vp_impl_trace_flush(trace);
    }
    /* on the disk before it has its name; some file systems have no fsync */
    if (!trace->failed && fsync(trace->fd) && errno != EINVAL && errno != ENOTSUP) trace->failed = errno;
    if (close(trace->fd) && !trace->failed) trace->failed = errno;
    trace->fd = -1;
    trace->closed = 1;
    if (!trace->failed && rename(trace->temporary, trace->path)) trace->failed = errno;
    if (trace->failed) {
        unlink(trace->temporary);
        return vp_impl_trace_write_failed(trace, error);
    }
    if (info) *info = vp_trace_tell(trace);
    return VP_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
