/* vlmprof_torch_trace.h - v0.2.0 - Chrome traces as torch.profiler writes them - MIT licence
 *
 * Do this:
 *     vp_error error = {VP_OK, -1, "", ""};
 *     vp_torch_trace_options options = vp_torch_trace_options_default();
 *     vp_trace *trace;
 *     options.path = "chrome_trace.json";
 *     if (vp_torch_trace_open(&options, &trace, &error) != VP_OK) return 1;
 *     vp_trace_step_begin(trace, 0, vp_clock_ns(), &error);
 *     vp_trace_step_end(trace, vp_clock_ns(), &error);
 *     printf("%s\n", vp_torch_trace_close(trace, NULL, &error) == VP_OK ? "written" : error.text);
 *     vp_torch_trace_free(trace);
 * It prints written, and the file is a Chrome trace as torch.profiler (Kineto) writes it. chrome://tracing, Perfetto,
 * the TensorBoard plugin and HolisticTraceAnalysis load it. Between begin and end of a step, call vp_trace_ranges,
 * vp_trace_launches, vp_trace_memory and the functions of vlmprof_trace.h, such as vp_trace_stages: a slice of a
 * program's own is a cpu_op.
 *
 * Events go to a temporary file piece by piece (vp_output in vlmprof_file.h); vp_torch_trace_close gives the file its
 * final name. Steps, host ranges and memory need no engine.
 *
 * The events, by cat:
 *   on the track of process and thread
 *     user_annotation      ProfilerStep#N; stage::vit .. stage::decode and decode[1] ..: the host's time for a step,
 *                          stage or decode step
 *     cpu_op               ranges by name; vlmprof::attention .. for each part of each block. On the CPU, or with
 *                          shapes or stacks, each launch by name inside it
 *     cuda_runtime         cudaLaunchKernel, cudaMemcpyAsync: the host submits a launch
 *   on the track of device and stream 7
 *     kernel, gpu_memcpy   launches, linked to their runtime call by correlation and an ac2g flow
 *     gpu_user_annotation  stage::vit .. stage::decode and decode[1] ..: the device's time between boundaries
 *   on the track of process and worker
 *     thread_span          on the CPU, the work of each worker thread in a launch
 *   also cpu_instant_event ([memory]) and "PyTorch Profiler (0)", cat Trace, which encloses all
 * events. If several slices have names that contain "ProfilerStep", HTA drops all events from the last of them. So
 * several steps are followed by an empty slice, "end of ProfilerStep#N". Readers do not count it as a step, because the
 * name of a step begins with "ProfilerStep#". HTA rounds to whole us unless HTA_DISABLE_NS_ROUNDING=1 is set. CPU
 * traces have no GPU events: viewers and TensorBoard's operator view show them, but HTA's kernel analyses and
 * TensorBoard's kernel view are empty. torch-tb-profiler 0.4.3 does not support cuda_runtime: it shows 0 as the device
 * time of operators, even for torch's own traces (kineto PR 1166).
 *
 * All times come from vp_clock_ns. Slices of a track nest or do not overlap. A slice that would violate this is moved:
 * edges usually by 1 ns, so that the enclosing slice begins earlier; a slice that crosses one of another call goes to
 * another track of its thread. vp_torch_trace_info counts both.
 * errors, memory, threads: as vlmprof_trace.h; vp_torch_trace_close removes the temporary file after a failed write
 * source:  pytorch/kineto 002d991 libkineto/src/output_json.cpp; readers: torch-tb-profiler 0.4.3,
 *          HolisticTraceAnalysis f4d0062
 *
 * Includes vlmprof.h, vlmprof_trace.h, vlmprof_file.h, vlmprof_ranges.h and vlmprof_stages.h if needed. In one file,
 * define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or VLMPROF_TORCH_TRACE_IMPLEMENTATION and
 * VLMPROF_TRACE_IMPLEMENTATION for these two. The manual is in vlmprof.h. */
#ifndef VLMPROF_TORCH_TRACE_H
#define VLMPROF_TORCH_TRACE_H
/* strict ISO mode hides POSIX unless it is requested before the first system header */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TORCH_TRACE_IMPLEMENTATION)) \
    && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
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
#ifndef VLMPROF_TRACE_H
#include "vlmprof_trace.h"
#endif

VP_EXTERN_C_BEGIN

/* 64 is TensorBoard's own limit; 7 is the number of PyTorch's default stream in a trace */
enum { VP_TRACE_DEVICES_LIMIT = 64, VP_TRACE_RANKS_LIMIT = 65536, VP_TRACE_STREAM = 7 };
#define VP_TRACE_NAME "chrome_trace.json"      /* for callers that want a fixed name */

/* deviceProperties; 0 is unknown and not written */
typedef struct vp_trace_device {
    int32_t id;                       /* 0..63; unique */
    const char *name;
    const char *kind;                 /* what it is, without blanks: "NPU"; NULL: "GPU", whose calls are CUDA's */
    uint64_t memory_bytes;
    int32_t compute_major, compute_minor;
    int32_t threads_per_block, threads_per_multiprocessor, registers_per_block, registers_per_multiprocessor,
        warp_threads;
    int32_t shared_bytes_per_block, shared_bytes_per_multiprocessor, shared_bytes_per_block_optin, multiprocessor_count;
} vp_trace_device;
typedef struct vp_trace_metadata { const char *key, *text; } vp_trace_metadata;

typedef struct vp_torch_trace_options {
    const char *path;                 /* path of the file; an existing file is replaced when the trace is closed */
    uint64_t max_bytes;               /* recording stops before the file exceeds this; default VP_TRACE_MAX_BYTES */
    /* time 0 of the trace, by vp_clock_ns and since 1970; default: now. No event may begin earlier */
    int64_t base_ns, base_unix_ns;
    /* ids of this process and its main thread. Default for both: the process id, plus 1000000 if it is below 64 */
    int32_t process, thread;
    const char *process_name;         /* "vlmprof" */
    const vp_trace_device *devices; int32_t device_count; /* NULL and 0: only the CPU */
    int emulated;                     /* 1: the devices are emulated, and the trace is marked accordingly */
    int record_shapes, with_stack;    /* adds Input Dims, Call stack to launches and ranges; larger files */
    int profile_memory;               /* only a flag for readers; vp_trace_memory provides the data */
    const char *backend;              /* distributedInfo; "none" */
    int32_t rank, world_size;         /* 0 of 1 */
    /* additional top-level members; their keys must differ from the standard ones */
    const vp_trace_metadata *metadata; int32_t metadata_count;
} vp_torch_trace_options;
/* the defaults above; path, devices and metadata are NULL */
VP_API vp_torch_trace_options vp_torch_trace_options_default(void);

/* the state of the trace; the first two members are also in the file's header, as "trace_truncated" and
 * "dropped_steps" */
typedef struct vp_torch_trace_info {
    int truncated;                    /* 1: max_bytes was reached; the events in the file are complete */
    int64_t dropped_steps;            /* steps that began after that */
    int64_t dropped_launches;         /* launches of the truncated and of later requests */
    uint64_t bytes;
    int64_t events, steps, launches;  /* in the file */
    /* events moved by more than edges need, the largest move, and slices on another track than their thread's */
    int64_t moved_slices, moved_ns, other_row_slices;
} vp_torch_trace_info;

/* "<worker>.<ns>.pt.trace.json", the name that TensorBoard's plugin looks for.
 * in:      worker   NULL: "<host name>_<process id>", as in torch's tensorboard_trace_handler; each / becomes _
 *          unix_ns  time since 1970, which distinguishes traces of one worker
 * out:     name    char [capacity]  on success
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: unix_ns < 0 or an empty worker */
VP_API vp_result vp_trace_file_name(const char *worker, int64_t unix_ns, char *name, size_t capacity);
/* Makes a GPU's device properties from the results of vp_device_describe. Further ones are derived from the compute
 * capability (8.0, 8.6, 8.9, 9.0, 10.0, 12.0).
 * in:      name     not copied; must live until vp_torch_trace_open returns
 * source:  CUDA C++ Programming Guide 13.0, technical specifications per compute capability */
VP_API vp_trace_device vp_trace_device_of(int32_t id, const char *name, uint64_t memory_bytes, int32_t compute_major,
                                          int32_t compute_minor, int32_t multiprocessor_count);
/* Opens a trace file and writes its header.
 * in:      options  texts and devices are read only during the call
 * out:     trace    on success; release it with vp_torch_trace_free
 * returns: VP_OK; VP_ERR_RANGE: an option is outside its range, or max_bytes cannot hold header and end (some KB);
 *          VP_ERR_WRITE: the temporary file cannot be created or written; VP_ERR_MEMORY */
VP_API vp_result vp_torch_trace_open(const vp_torch_trace_options *options, vp_trace **trace, vp_error *error);

/* The calls that record. Each returns VP_OK; VP_ERR_RANGE: a value is outside its stated range, or a time is before
 * base_ns (nothing was written); VP_ERR_CAPACITY: max_bytes is reached, and this and all later events are dropped (in a
 * request, starting at the first decode step or stage that does not fit completely); VP_ERR_STATE: the trace is closed;
 * VP_ERR_WRITE. */
/* A step, "ProfilerStep#<step>". Steps follow one another. A step that is still open when the trace is closed ends with
 * the last event. The schedule gives the step numbers.
 * returns: as above; VP_ERR_STATE also if a step is already open (begin), or none is (end) */
VP_API vp_result vp_trace_step_begin(vp_trace *trace, int64_t step, int64_t at_ns, vp_error *error);
VP_API vp_result vp_trace_step_end(vp_trace *trace, int64_t at_ns, vp_error *error);

/* a request of the engine */
typedef struct vp_trace_run {
    /* vp_clock_ns just before vp_engine_run; the times of launches are relative to it */
    int64_t begin_ns;
    int32_t device;                   /* id of one of options.devices; -1: the CPU */
    const vp_launch *launches; int64_t launch_count;
    const vp_stage_times *times;      /* NULL: a stage spans its launches */
    const char *const *stage_names;   /* [VP_STAGE_COUNT], your own; NULL, also for one of them: as vp_stage_name */
    /* the time of each decode step in vp_reply, on the device or, without one, on the host. NULL and 0: the time of its
     * launches */
    const int64_t *step_ns; int32_t step_count;
    const vp_span *spans; int64_t span_count; /* CPU: from vp_reply; NULL and 0: threads are not shown */
} vp_trace_run;
/* A request: its stages, decode steps, parts and launches, on the host and on the device; on the CPU also the spans of
 * each worker thread.
 * in:      launches  in the engine's order
 * returns: as above; VP_ERR_RANGE also for a device that was not in the options; VP_ERR_MISMATCH: launches are out of
 *          order (an earlier stage or decode step after a later one)
 * rule:    one offset per request moves the device's times to the host's clock. It is the smallest for which no launch
 *          begins before the host submits it, or before the device's earlier work ends. Stages on the device record it
 *          as "device clock offset ns" */
VP_API vp_result vp_trace_launches(vp_trace *trace, const vp_trace_run *run, vp_error *error);
/* The ranges of a thread as cpu_op, with their payload, and with shapes and stacks if the trace has them. Thread 0 is
 * the main thread. Its ranges must nest with the steps and requests of the trace; they do if the calls nest in the
 * program. Other threads get separate tracks.
 * in:      ranges  thread 0..VP_TRACE_THREADS_LIMIT - 1
 * returns: as above; VP_ERR_STATE also if a range is still open */
VP_API vp_result vp_trace_ranges(vp_trace *trace, const vp_ranges *ranges, vp_error *error);
/* An allocation or release of memory, for TensorBoard's memory view.
 * in:      device     id of a device; -1: the host
 *          address    identifies the memory block
 *          bytes      < 0: freed
 *          allocated_bytes, reserved_bytes  totals after the event; reserved is the memory taken from the system */
VP_API vp_result vp_trace_memory(vp_trace *trace, int64_t at_ns, int32_t device, uint64_t address, int64_t bytes,
                                 uint64_t allocated_bytes, uint64_t reserved_bytes, vp_error *error);

/* Writes the end of the steps and of the record, and gives the file the name options.path.
 * out:     info  may be NULL; on VP_OK and VP_ERR_STATE
 * returns: VP_OK, truncated or not; VP_ERR_STATE: the trace is already closed, and the file is unchanged; VP_ERR_WRITE:
 *          any old file at options.path remains, and the temporary file is removed */
VP_API vp_result vp_torch_trace_close(vp_trace *trace, vp_torch_trace_info *info, vp_error *error);
/* The state of the trace so far. */
VP_API vp_torch_trace_info vp_torch_trace_tell(const vp_trace *trace);
/* Releases the memory. A trace that was not closed is abandoned, and its temporary file is removed. NULL is allowed. */
VP_API void vp_torch_trace_free(vp_trace *trace);

VP_EXTERN_C_END
#endif /* VLMPROF_TORCH_TRACE_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TORCH_TRACE_IMPLEMENTATION)) \
    && !defined(VLMPROF_TORCH_TRACE_IMPLEMENTATION_DONE)
#define VLMPROF_TORCH_TRACE_IMPLEMENTATION_DONE
#ifndef VLMPROF_TRACE_PRIVATE_DONE
#include "vlmprof_trace.h"
#endif
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h> /* lseek */
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

/* If the file is nearly full, a unit that must be complete (a stage or a decode step) is measured first: the same code
 * runs but only counts. A request's host and device tracks each have a cursor; no new event begins before it. */
enum {
    VP_IMPL_TRACE_EDGE_NS = 8,      /* smaller moves, for the edges of nested slices, are not counted */
    /* bytes reserved for closing a file: the open step, decode stage and record, and the end of the steps */
    VP_IMPL_TRACE_RESERVE = 6144,
    VP_IMPL_TRACE_LAUNCH = 4096,    /* more than all events of a launch without their texts */
    VP_IMPL_TRACE_FRAMES = 16,      /* frames per call stack */
    VP_IMPL_TRACE_PIDS = 64         /* lower process ids are device ids */
};
/* instead of vp_stage_name and vp_part_name, so that this header can be compiled without vlmprof_stages.h */
#define VP_IMPL_TRACE_WORD(name, text) text,
static const char *const vp_impl_trace_stages[] = {VP_STAGES(VP_IMPL_TRACE_WORD)};
static const char *const vp_impl_trace_parts[] = {VP_PARTS(VP_IMPL_TRACE_WORD)};
#undef VP_IMPL_TRACE_WORD

/* the state that is restored after a counting-only attempt */
typedef struct vp_impl_torch_state {
    vp_impl_trace_state of_trace;
    vp_torch_trace_info info;
    int64_t correlation, event_index, device_ns[VP_TRACE_DEVICES_LIMIT]; /* device_ns: end of the last slice */
} vp_impl_torch_state;
struct vp_torch_trace {
    vp_impl_torch_state state;
    vp_torch_trace_options options;             /* devices are a copy; texts are not read after opening */
    vp_output output;
    uint64_t flags_at;                          /* file offset of trace_truncated and dropped_steps */
    int64_t step, step_ns, step_end_ns;
    int step_open;
    /* 1: the track has been named; workers first, then threads with ranges */
    unsigned char named[2 * VP_TRACE_THREADS_LIMIT];
};
static vp_impl_torch_state vp_impl_torch_count(vp_trace *trace) {
    vp_impl_torch_state before = trace->torch->state;
    before.of_trace = trace->state;
    trace->counting = 1;
    return before;
}
/* Returns the bytes since vp_impl_torch_count, and restores its state. */
static uint64_t vp_impl_torch_counted(vp_trace *trace, const vp_impl_torch_state *before) {
    const uint64_t bytes = trace->state.info.bytes - before->of_trace.info.bytes;
    trace->counting = 0;
    trace->torch->state = *before;
    trace->state = before->of_trace;
    return bytes;
}

static vp_result vp_impl_torch_ready(const vp_trace *trace, vp_error *error) {
    vp_result result = vp_impl_trace_ready(trace, error);
    if (result != VP_OK || trace->torch) return result;
    return vp_error_set(error, VP_ERR_STATE, -1, trace->path, "the trace was not opened with vp_torch_trace_open");
}

/* ---- events ---- */
static void vp_impl_trace_arg(vp_trace *trace, const char *key, int64_t value) {
    vp_impl_trace_put(trace, trace->args++ ? ", '%s': %d" : "'%s': %d", key, value);
}
static void vp_impl_trace_flow(vp_trace *trace, int start, int64_t id, int64_t process, int64_t thread, int64_t at) {
    vp_impl_trace_put(trace, start
        ? ",\n{'ph': 's', 'id': %d, 'pid': %d, 'tid': %d, 'ts': %t, 'cat': 'ac2g', 'name': 'ac2g'}"
        : ",\n{'ph': 'f', 'id': %d, 'pid': %d, 'tid': %d, 'ts': %t, 'cat': 'ac2g', 'name': 'ac2g', 'bp': 'e'}",
        id, process, thread, at);
    trace->state.info.events++;
}
static void vp_impl_trace_name_thread(vp_trace *trace, int64_t process, int64_t thread, const char *name,
                                      int64_t order) {
    vp_impl_trace_label(trace, "thread_name", process, thread, "name", name, 0);
    vp_impl_trace_label(trace, "thread_sort_index", process, thread, "sort_index", NULL, order);
}
/* Names the track of a worker (kind 0) or of a thread with ranges (kind 1) on first use; returns its number. */
static int64_t vp_impl_trace_track(vp_trace *trace, int kind, int32_t thread, const char *given) {
    const int64_t at = (int64_t)kind * VP_TRACE_THREADS_LIMIT + thread, track = (int64_t)trace->first_tid + 1 + at;
    char name[160];
    if (trace->torch->named[at]) return track;
    if (kind) snprintf(name, sizeof name, "thread %lld (%.100s)", (long long)track, given ? given : "ranges");
    else
        snprintf(name, sizeof name, "thread %lld (worker %d%s)", (long long)track, (int)thread, thread ? "" : ": main");
    vp_impl_trace_name_thread(trace, trace->process, track, name, 1 + at);
    if (!trace->counting) trace->torch->named[at] = 1;
    return track;
}
static const vp_trace_device *vp_impl_trace_device(const vp_trace *trace, int32_t id) {
    for (int32_t i = 0; i < trace->torch->options.device_count; i++)
        if (trace->torch->options.devices[i].id == id) return &trace->torch->options.devices[i];
    return NULL;
}

/* ---- names and devices ---- */
VP_API vp_result vp_trace_file_name(const char *worker, int64_t unix_ns, char *name, size_t capacity) {
    char own[300], made[600], host[256];
    if (!name || unix_ns < 0 || (worker && !worker[0])) return VP_ERR_RANGE;
    if (!worker) {
        vp_host_name(host, sizeof host);
        snprintf(own, sizeof own, "%s_%lld", host[0] ? host : "localhost", (long long)vp_process_id());
        worker = own;
    }
    if (strlen(worker) > 500) return VP_ERR_RANGE;
    snprintf(made, sizeof made, "%s.%lld.pt.trace.json", worker, (long long)unix_ns);
    if (strlen(made) + 1 > capacity) return VP_ERR_CAPACITY;
    for (char *at = made; *at; at++)
        if (*at == '/') *at = '_';
    memcpy(name, made, strlen(made) + 1);
    return VP_OK;
}
VP_API vp_trace_device vp_trace_device_of(int32_t id, const char *name, uint64_t memory_bytes, int32_t compute_major,
                                          int32_t compute_minor, int32_t multiprocessor_count) {
    static const struct { int32_t major, minor, threads, shared, optin; } known[] = {
        {8, 0, 2048, 167936, 166912}, {8, 6, 1536, 102400, 101376},  {8, 9, 1536, 102400, 101376},
        {9, 0, 2048, 233472, 232448}, {10, 0, 2048, 233472, 232448}, {12, 0, 1536, 102400, 101376}};
    vp_trace_device device;
    memset(&device, 0, sizeof device);
    device.id = id;
    device.name = name;
    device.memory_bytes = memory_bytes;
    device.compute_major = compute_major;
    device.compute_minor = compute_minor;
    device.multiprocessor_count = multiprocessor_count;
    device.threads_per_block = 1024;
    device.warp_threads = 32;
    device.shared_bytes_per_block = 49152;
    device.registers_per_block = device.registers_per_multiprocessor = 65536;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].major != compute_major || known[i].minor != compute_minor) continue;
        device.threads_per_multiprocessor = known[i].threads;
        device.shared_bytes_per_multiprocessor = known[i].shared;
        device.shared_bytes_per_block_optin = known[i].optin;
    }
    return device;
}
VP_API vp_torch_trace_options vp_torch_trace_options_default(void) {
    vp_torch_trace_options options;
    const int64_t id = vp_process_id();
    memset(&options, 0, sizeof options);
    options.max_bytes = VP_TRACE_MAX_BYTES;
    options.base_ns = vp_clock_ns();
    options.base_unix_ns = vp_unix_ns();
    options.process = options.thread = (int32_t)(id < VP_IMPL_TRACE_PIDS ? id + 1000000 : id);
    options.process_name = "vlmprof";
    options.backend = "none";
    options.world_size = 1;
    return options;
}

/* ---- the header ---- */
static vp_result vp_impl_trace_check(const vp_torch_trace_options *options, vp_error *error) {
    if (!options || !options->path || !options->path[0] || strlen(options->path) > 4000)
        return vp_error_set(error, VP_ERR_RANGE, -1, "path", "a trace needs a file name");
    if (!options->process_name || !options->backend)
        return vp_error_set(error, VP_ERR_RANGE, -1, "options", "process_name and backend must not be NULL");
    if (options->process < VP_IMPL_TRACE_PIDS || options->thread < 0
        || options->thread > INT32_MAX - 4 * VP_TRACE_THREADS_LIMIT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "process",
                            "must be 64 or more (lower numbers are devices); thread must not be negative");
    if (options->base_unix_ns < 0)
        return vp_error_set(error, VP_ERR_RANGE, -1, "base_unix_ns", "must not be before 1970");
    if (options->world_size < 1 || options->world_size > VP_TRACE_RANKS_LIMIT || options->rank < 0
        || options->rank >= options->world_size)
        return vp_error_set(error, VP_ERR_RANGE, -1, "rank", "must be 0 .. world_size - 1");
    if (options->device_count < 0 || options->device_count > VP_TRACE_DEVICES_LIMIT
        || (options->device_count && !options->devices) || options->metadata_count < 0
        || (options->metadata_count && !options->metadata))
        return vp_error_set(error, VP_ERR_RANGE, -1, "options", "a count is outside its range");
    for (int32_t i = 0; i < options->device_count; i++) {
        const vp_trace_device *device = &options->devices[i];
        if (device->id < 0 || device->id >= VP_TRACE_DEVICES_LIMIT || !device->name
            || (device->kind && strchr(device->kind, ' ')))
            return vp_error_set(error, VP_ERR_RANGE, i, "devices", "a device needs a name and an id of 0..63");
        for (int32_t k = 0; k < i; k++)
            if (options->devices[k].id == device->id)
                return vp_error_set(error, VP_ERR_RANGE, i, "devices", "two devices have the same id");
    }
    for (int32_t i = 0; i < options->metadata_count; i++) {
        const vp_trace_metadata *entry = &options->metadata[i];
        if (!entry->key || !entry->key[0] || !entry->text)
            return vp_error_set(error, VP_ERR_RANGE, i, "metadata", "key and text must not be NULL");
        if (vp_utf8_valid_bytes(entry->key, strlen(entry->key)) != strlen(entry->key)
            || vp_utf8_valid_bytes(entry->text, strlen(entry->text)) != strlen(entry->text))
            return vp_error_set(error, VP_ERR_RANGE, i, "metadata", "key or text is not UTF-8");
    }
    return VP_OK;
}
static vp_result vp_impl_trace_sink(void *user, const char *text, size_t bytes) {
    vp_impl_trace_bytes((vp_trace *)user, text, bytes);
    return VP_OK;
}
static void vp_impl_trace_quote(vp_trace *trace, const char *text) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, vp_impl_trace_sink, trace, 0);
    vp_json_string(&writer, text);
}
static void vp_impl_trace_properties(vp_trace *trace, const vp_trace_device *device) {
    const struct { const char *key; int64_t value; } properties[] = {
        {"totalGlobalMem", device->memory_bytes > (uint64_t)INT64_MAX ? 0 : (int64_t)device->memory_bytes},
        {"computeMajor", device->compute_major},
        {"computeMinor", device->compute_major > 0 ? (int64_t)device->compute_minor : -1},
        {"maxThreadsPerBlock", device->threads_per_block},
        {"maxThreadsPerMultiprocessor", device->threads_per_multiprocessor},
        {"regsPerBlock", device->registers_per_block}, {"regsPerMultiprocessor", device->registers_per_multiprocessor},
        {"warpSize", device->warp_threads}, {"sharedMemPerBlock", device->shared_bytes_per_block},
        {"sharedMemPerMultiprocessor", device->shared_bytes_per_multiprocessor},
        {"numSms", device->multiprocessor_count}, {"sharedMemPerBlockOptin", device->shared_bytes_per_block_optin}};
    vp_impl_trace_put(trace, "{'id': %d, 'name': %q", (int64_t)device->id, device->name);
    if (device->kind) vp_impl_trace_put(trace, ", 'kind': %q", device->kind);
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (properties[i].value > 0 || (i == 2 && !properties[i].value))
            vp_impl_trace_put(trace, ", '%s': %d", properties[i].key, properties[i].value);
    vp_impl_trace_put(trace, "}");
}
/* HTA searches each line for "rank": N, with a blank */
static void vp_impl_trace_distributed(vp_trace *trace, const vp_torch_trace_options *options) {
    vp_impl_trace_put(trace, "'distributedInfo': {'backend': %q, 'rank': %d, 'world_size': %d, 'pg_count': 1, "
                      "'pg_config': [{'pg_name': '0', 'pg_desc': 'default_pg', 'backend_config': %q, 'pg_size': %d, "
                      "'ranks': [", options->backend, (int64_t)options->rank, (int64_t)options->world_size,
                      options->backend, (int64_t)options->world_size);
    for (int32_t i = 0; i < options->world_size; i++) vp_impl_trace_put(trace, i ? ", %d" : "%d", (int64_t)i);
    vp_impl_trace_put(trace, "]}], 'nccl_version': 'none'},\n");
}
/* vp_torch_trace_close overwrites this, so its width must not depend on the values */
static void vp_impl_trace_flags(const vp_trace *trace, char out[64]) {
    snprintf(out, 64, "\"trace_truncated\": %d,\n\"dropped_steps\": %20lld,\n", trace->state.info.truncated,
             (long long)trace->torch->state.info.dropped_steps);
}
static void vp_impl_trace_head(vp_trace *trace, const vp_torch_trace_options *options) {
    char flags[64], text[64], host[256];
    vp_impl_trace_put(trace, "{\n'schemaVersion': 1,\n'deviceProperties': [");
    for (int32_t i = 0; i < options->device_count; i++) {
        vp_impl_trace_put(trace, i ? ",\n" : "\n");
        vp_impl_trace_properties(trace, &options->devices[i]);
    }
    vp_impl_trace_put(trace, "\n],\n");
    if (options->record_shapes) vp_impl_trace_put(trace, "'record_shapes': 1,\n");
    if (options->profile_memory) vp_impl_trace_put(trace, "'profile_memory': 1,\n");
    if (options->with_stack) vp_impl_trace_put(trace, "'with_stack': 1,\n");
    if (options->emulated) vp_impl_trace_put(trace, "'emulated': 1,\n");
    snprintf(text, sizeof text, "%016llX%08lX", (unsigned long long)options->base_unix_ns,
             (unsigned long)options->process);
    vp_host_name(host, sizeof host);
    vp_impl_trace_put(trace, "'trace_id': '%s',\n'host_name': %q,\n'generator': 'vlmprof " VLMPROF_VERSION "',\n",
                      text, host);
    trace->torch->flags_at = trace->state.info.bytes;
    vp_impl_trace_flags(trace, flags);
    vp_impl_trace_put(trace, "%s", flags);
    for (int32_t i = 0; i < options->metadata_count; i++) {
        vp_impl_trace_quote(trace, options->metadata[i].key);
        vp_impl_trace_put(trace, ": ");
        vp_impl_trace_quote(trace, options->metadata[i].text);
        vp_impl_trace_put(trace, ",\n");
    }
    vp_impl_trace_distributed(trace, options);
    vp_impl_trace_put(trace, "'displayTimeUnit': 'ms',\n'baseTimeNanoseconds': %d,\n'traceEvents': [",
                      options->base_unix_ns);
}
static void vp_impl_trace_rows(vp_trace *trace, const vp_torch_trace_options *options) {
    char name[64];
    vp_impl_trace_label(trace, "process_name", options->process, -1, "name", options->process_name, 0);
    vp_impl_trace_label(trace, "process_labels", options->process, -1, "labels", "CPU", 0);
    vp_impl_trace_label(trace, "process_sort_index", options->process, -1, "sort_index", NULL, 0);
    snprintf(name, sizeof name, "thread %ld (main)", (long)options->thread);
    vp_impl_trace_name_thread(trace, options->process, options->thread, name, 0);
    for (int32_t i = 0; i < options->device_count; i++) {
        const int32_t id = options->devices[i].id;
        vp_impl_trace_label(trace, "process_name", id, -1, "name", options->process_name, 0);
        snprintf(name, sizeof name, options->emulated ? "%.30s %ld (emulated)" : "%.30s %ld",
                 options->devices[i].kind ? options->devices[i].kind : "GPU", (long)id);
        vp_impl_trace_label(trace, "process_labels", id, -1, "labels", name, 0);
        vp_impl_trace_label(trace, "process_sort_index", id, -1, "sort_index", NULL, 5000000 + (int64_t)id);
        vp_impl_trace_name_thread(trace, id, VP_TRACE_STREAM, "stream 7", VP_TRACE_STREAM);
    }
}
static vp_result vp_impl_torch_sink(void *user, const char *text, size_t bytes) {
    return vp_output_write((vp_output *)user, text, bytes, NULL);
}
VP_API vp_result vp_torch_trace_open(const vp_torch_trace_options *options, vp_trace **trace, vp_error *error) {
    vp_result result = vp_impl_trace_check(options, error);
    if (result != VP_OK) return result;
    if (!trace) return vp_error_set(error, VP_ERR_RANGE, -1, "trace", "the output pointer is NULL");
    const size_t bytes = strlen(options->path) + 1;
    const size_t device_bytes = (size_t)options->device_count * sizeof(vp_trace_device);
    vp_trace *made = (vp_trace *)VP_CALLOC(1, sizeof *made);
    struct vp_torch_trace *torch = (struct vp_torch_trace *)VP_CALLOC(1, sizeof *torch + device_bytes + bytes);
    if (!made || !torch) {
        VP_FREE(made); VP_FREE(torch);
        return vp_error_set(error, VP_ERR_MEMORY, -1, options->path, "not enough memory");
    }
    torch->output.fd = -1;
    torch->options = *options;
    torch->options.devices = (const vp_trace_device *)(void *)(torch + 1);
    if (device_bytes) memcpy(torch + 1, options->devices, device_bytes);
    made->path = (char *)memcpy((char *)(torch + 1) + device_bytes, options->path, bytes);
    made->torch = torch;
    made->sink = vp_impl_torch_sink;
    made->user = &torch->output;
    made->process = options->process;
    made->first_tid = options->thread;
    made->other_tids = (int64_t)options->thread + 1 + VP_TRACE_THREADS_LIMIT;
    made->free_tid = made->other_tids + VP_TRACE_THREADS_LIMIT;
    made->base_ns = options->base_ns;
    made->max_bytes = options->max_bytes;
    made->reserve = VP_IMPL_TRACE_RESERVE + 6 * bytes;
    made->state.first_ns = INT64_MAX;
    result = vp_output_open(options->path, &torch->output, error);
    if (result == VP_OK) {
        vp_impl_trace_head(made, options);
        vp_impl_trace_rows(made, options);
        vp_impl_trace_flush(made);
        result = vp_impl_trace_done(made, error);
        if (result == VP_OK && !vp_impl_trace_room(made, VP_IMPL_TRACE_EVENT))
            result = vp_failf(error, VP_ERR_RANGE, -1, "max_bytes", "must be at least %llu here to fit an event",
                              (unsigned long long)(made->state.info.bytes + made->reserve + VP_IMPL_TRACE_EVENT));
    }
    if (result != VP_OK) vp_torch_trace_free(made); else *trace = made;
    return result;
}
VP_API void vp_torch_trace_free(vp_trace *trace) {
    if (!trace) return;
    vp_output_discard(&trace->torch->output);
    VP_FREE(trace->torch);
    vp_trace_free(trace);
}

/* ---- steps ---- */
static void vp_impl_trace_step(vp_trace *trace, const char *before, int64_t begin, int64_t end) {
    char name[64];
    snprintf(name, sizeof name, "%sProfilerStep#%lld", before, (long long)trace->torch->step);
    vp_impl_trace_event(trace, "user_annotation", name, trace->process, trace->first_tid, begin, end - begin);
    vp_impl_trace_arg(trace, "External id", ++trace->state.external_id);
    vp_impl_trace_put(trace, "}}");
}
VP_API vp_result vp_trace_step_begin(vp_trace *trace, int64_t step, int64_t at_ns, vp_error *error) {
    vp_result result = vp_impl_torch_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (trace->torch->step_open)
        return vp_error_set(error, VP_ERR_STATE, -1, "step", "the previous step is still open");
    if (step < 0 || step == INT64_MAX || !vp_impl_trace_time(trace, at_ns, &at) || at < trace->torch->step_end_ns)
        return vp_error_set(error, VP_ERR_RANGE, -1, "step",
                            "must be 0 or more, and begin after the trace and after the previous step");
    if (!vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT)) {
        trace->torch->state.info.dropped_steps++;
        return vp_impl_trace_done(trace, error);
    }
    trace->torch->step_open = 1;
    trace->torch->step = step;
    trace->torch->step_ns = at;
    return VP_OK;
}
/* This works even if the file is full: open events have their room in the reserve. */
VP_API vp_result vp_trace_step_end(vp_trace *trace, int64_t at_ns, vp_error *error) {
    vp_result result = vp_impl_torch_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (!trace->torch->step_open) {
        if (trace->torch->state.info.dropped_steps) return vp_impl_trace_done(trace, error);
        return vp_error_set(error, VP_ERR_STATE, -1, "step", "no step is open");
    }
    if (!vp_impl_trace_time(trace, at_ns, &at) || at < trace->torch->step_ns)
        return vp_error_set(error, VP_ERR_RANGE, -1, "step", "must not end before it begins");
    vp_impl_trace_step(trace, "", trace->torch->step_ns, at);
    trace->torch->step_open = 0;
    trace->torch->step_end_ns = at;
    trace->torch->state.info.steps++;
    return trace->failed ? vp_impl_trace_done(trace, error) : VP_OK;
}

/* ---- requests ---- */
/* the position within a request; times are relative to base_ns */
typedef struct vp_impl_trace_walk {
    const vp_trace_run *run;
    const vp_trace_device *device;     /* NULL: the CPU */
    int64_t next;                      /* launch */
    int64_t begin, shift;              /* start of the request on the host; the offset that is added to device times */
    int64_t host, on_device;           /* cursors: no later event begins before them */
    int64_t op;                        /* "External id" of the innermost op */
} vp_impl_trace_walk;
/* relative to the request's begin; begin INT64_MAX: not known */
typedef struct vp_impl_trace_edges { int64_t begin, end; } vp_impl_trace_edges;

static void vp_impl_trace_moved(vp_trace *trace, int64_t wanted, int64_t placed) {
    const int64_t by = placed > wanted ? placed - wanted : wanted - placed;
    if (by <= VP_IMPL_TRACE_EDGE_NS) return;
    trace->torch->state.info.moved_slices++;
    if (by > trace->torch->state.info.moved_ns) trace->torch->state.info.moved_ns = by;
}
/* Begins a slice that encloses others. The cursor moves to 1 ns after its begin, and it ends 1 ns after the last slice
 * inside it. */
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
/* the wanted end, but before the next launch begins */
static int64_t vp_impl_trace_until(int64_t wanted, int64_t next) { return next - 2 < wanted ? next - 2 : wanted; }
/* A slice without inner slices. It begins at the cursor or later, and ends before the next one begins. */
static vp_impl_trace_edges vp_impl_trace_leaf(vp_trace *trace, int64_t *cursor, int64_t begin, int64_t ns,
                                              int64_t next) {
    vp_impl_trace_edges edges;
    int64_t end = begin + ns;
    edges.begin = begin > *cursor ? begin : *cursor;
    edges.end = end < next ? end : next;
    *cursor = edges.end = edges.end < edges.begin ? edges.begin : edges.end;
    vp_impl_trace_moved(trace, begin, edges.begin);
    vp_impl_trace_moved(trace, end, edges.end);
    return edges;
}
static int64_t vp_impl_trace_host_of(const vp_impl_trace_walk *walk, int64_t index) {
    return index < walk->run->launch_count ? walk->begin + walk->run->launches[index].host_begin_ns : INT64_MAX;
}
static int64_t vp_impl_trace_device_of(const vp_impl_trace_walk *walk, int64_t index) {
    return index < walk->run->launch_count ? walk->begin + walk->shift + walk->run->launches[index].begin_ns
                                           : INT64_MAX;
}
/* "Input Dims" of a launch, by the meaning of vp_launch.shape: operands of a product, queries and keys of attention, or
 * rows. */
static void vp_impl_trace_dims(vp_trace *trace, const int32_t *shape, int32_t dimensions) {
    char text[120];
    if (dimensions == 3)
        snprintf(text, sizeof text, "[[%d, %d], [%d, %d]]", (int)shape[0], (int)shape[2], (int)shape[2], (int)shape[1]);
    else if (dimensions == 4)
        snprintf(text, sizeof text, "[[%d, %d, %d], [%d, %d, %d]]", (int)shape[0], (int)shape[1], (int)shape[3],
                 (int)shape[0], (int)shape[2], (int)shape[3]);
    else if (dimensions == 2) snprintf(text, sizeof text, "[[%d, %d]]", (int)shape[0], (int)shape[1]);
    else if (dimensions == 1) snprintf(text, sizeof text, "[[%d]]", (int)shape[0]);
    else snprintf(text, sizeof text, "[]");
    vp_impl_trace_put(trace, ", 'Input Dims': %s", text);
}
/* the first arguments of an operation */
static void vp_impl_trace_op_args(vp_trace *trace, int64_t id) {
    vp_impl_trace_put(trace, "'External id': %d, 'Record function id': 0, 'Ev Idx': %d", id,
                      trace->torch->state.event_index++);
    trace->args++;
}
static int64_t vp_impl_trace_whole(uint64_t count) { return count > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)count; }
/* Writes a launch as a host operation. */
static void vp_impl_trace_launch_op(vp_trace *trace, const vp_launch *launch, int64_t id, int64_t begin, int64_t end) {
    char stack[64];
    vp_impl_trace_event(trace, "cpu_op", launch->name, trace->process, trace->first_tid, begin, end - begin);
    vp_impl_trace_op_args(trace, id);
    if (trace->torch->options.record_shapes) vp_impl_trace_dims(trace, launch->shape, launch->dimensions);
    if (trace->torch->options.with_stack) {
        snprintf(stack, sizeof stack, "%.40s(%d)", launch->file, (int)launch->line);
        vp_impl_trace_put(trace, ", 'Call stack': '%s: %s'", stack, vp_impl_trace_parts[launch->part]);
    }
    vp_impl_trace_arg(trace, "flops", vp_impl_trace_whole(launch->flops));
    vp_impl_trace_arg(trace, "bytes", vp_impl_trace_whole(launch->bytes));
    vp_impl_trace_put(trace, "}}");
}
/* The share of a multiprocessor's threads that a kernel can keep busy, in percent; -1: unknown.
 * source:  kineto libkineto/src/CuptiActivity.cpp kernelOccupancy; the CUDA occupancy calculator's limits: threads,
 *          registers, shared memory, and at most 32 blocks */
static int64_t vp_impl_trace_occupancy(const vp_trace_device *device, const vp_launch *launch) {
    double resident = 32.0, blocks;
    if (device->threads_per_multiprocessor <= 0 || device->multiprocessor_count <= 0 || !launch->grid
        || !launch->threads)
        return -1;
    blocks = (double)(device->threads_per_multiprocessor / (int32_t)(launch->threads > 4096 ? 4096 : launch->threads));
    if (blocks < resident) resident = blocks;
    if (launch->registers && device->registers_per_multiprocessor > 0) {
        /* registers are allocated per warp, 256 at a time */
        const double warps = floor((double)device->registers_per_multiprocessor
                                   / (ceil(launch->registers * 32.0 / 256.0) * 256.0));
        blocks = floor(warps / ceil(launch->threads / 32.0));
        if (blocks < resident) resident = blocks;
    }
    if (launch->shared_bytes && device->shared_bytes_per_multiprocessor > 0) {
        blocks = floor((double)device->shared_bytes_per_multiprocessor / (launch->shared_bytes + 1024.0));
        if (blocks < resident) resident = blocks;
    }
    blocks = (double)launch->grid / device->multiprocessor_count;
    if (blocks < resident) resident = blocks;
    return (int64_t)(0.5 + 100.0 * resident * launch->threads / device->threads_per_multiprocessor);
}
static void vp_impl_trace_kernel_args(vp_trace *trace, const vp_trace_device *device, const vp_launch *launch) {
    const int64_t occupancy = vp_impl_trace_occupancy(device, launch);
    /* the launch geometry of cuBLAS's products is unknown, and readers handle missing values better than zeros */
    if (launch->grid && launch->threads) {
        vp_impl_trace_arg(trace, "registers per thread", launch->registers);
        vp_impl_trace_arg(trace, "shared memory", launch->shared_bytes);
        if (device->multiprocessor_count > 0) {
            const double blocks = (double)launch->grid / device->multiprocessor_count;
            vp_impl_trace_put(trace, ", 'blocks per SM': %f, 'warps per SM': %f", blocks,
                              blocks * launch->threads / 32.0);
        }
        vp_impl_trace_put(trace, ", 'grid': [%d, 1, 1], 'block': [%d, 1, 1]",
                          (int64_t)(launch->grid > INT32_MAX ? INT32_MAX : launch->grid),
                          (int64_t)(launch->threads & 0xffff));
        if (occupancy >= 0) vp_impl_trace_arg(trace, "est. achieved occupancy %", occupancy);
    }
    vp_impl_trace_arg(trace, "flops", vp_impl_trace_whole(launch->flops));
    vp_impl_trace_arg(trace, "bytes", vp_impl_trace_whole(launch->bytes));
}
/* Writes the device's part of a launch. */
static void vp_impl_trace_device_slice(vp_trace *trace, const vp_trace_device *device, const vp_launch *launch,
                                       int64_t op, int64_t correlation, vp_impl_trace_edges at) {
    static const char *const copies[] = {"", "Memcpy DtoD (Device -> Device)", "Memcpy HtoD (Pinned -> Device)",
                                         "Memcpy DtoH (Device -> Pinned)"};
    const int kernel = launch->kind == VP_LAUNCH_KERNEL;
    const char *name = launch->kernel ? launch->kernel : launch->name;
    vp_impl_trace_event(trace, kernel ? "kernel" : "gpu_memcpy", kernel ? name : copies[launch->kind], device->id,
                        VP_TRACE_STREAM, at.begin, at.end - at.begin);
    vp_impl_trace_put(trace, kernel ? "'External id': %d, 'queued': 0" : "'External id': %d", op);
    vp_impl_trace_put(trace, ", 'device': %d, 'context': 1, 'stream': %d, 'correlation': %d", (int64_t)device->id,
                      (int64_t)VP_TRACE_STREAM, correlation);
    trace->args++;
    if (kernel) vp_impl_trace_kernel_args(trace, device, launch);
    else {
        /* a copy within the device is counted twice in vp_launch.bytes: read and written */
        const int64_t bytes = vp_impl_trace_whole(launch->kind == VP_LAUNCH_COPY ? launch->bytes / 2 : launch->bytes);
        vp_impl_trace_put(trace, ", 'bytes': %d, 'memory bandwidth (GB/s)': %f", bytes,
                          at.end > at.begin ? (double)bytes / (double)(at.end - at.begin) : 0.0);
    }
    vp_impl_trace_put(trace, "}}");
}
/* Writes one launch: on the CPU, an op; on a GPU, the runtime call, the device's slice, and the flow between the
 * two. */
static void vp_impl_trace_launch(vp_trace *trace, vp_impl_trace_walk *walk) {
    const vp_launch *launch = &walk->run->launches[walk->next];
    const vp_torch_trace_options *options = &trace->torch->options;
    const int copy = launch->kind != VP_LAUNCH_KERNEL;
    const int own = walk->device && (options->record_shapes || options->with_stack);
    const int64_t begin = walk->begin + launch->host_begin_ns;
    int64_t op = walk->op, correlation, around = 0;
    vp_impl_trace_edges host, on;
    if (own) around = vp_impl_trace_enter(&walk->host, begin - 1);
    host = vp_impl_trace_leaf(trace, &walk->host, begin, launch->host_ns, vp_impl_trace_host_of(walk, walk->next + 1));
    if (!walk->device) vp_impl_trace_launch_op(trace, launch, ++trace->state.external_id, host.begin, host.end);
    else {
        if (own)
            vp_impl_trace_launch_op(trace, launch, op = ++trace->state.external_id, around,
                                    vp_impl_trace_leave(&walk->host, host.end));
        correlation = ++trace->torch->state.correlation;
        /* edges of enclosing slices may have moved the call */
        if (walk->on_device <= host.begin) walk->on_device = host.begin + 1;
        on = vp_impl_trace_leaf(trace, &walk->on_device, vp_impl_trace_device_of(walk, walk->next), launch->ns,
                                vp_impl_trace_device_of(walk, walk->next + 1));
        const char *call = launch->node ? "cudaGraphLaunch" : copy ? "cudaMemcpyAsync" : "cudaLaunchKernel";
        if (walk->device->kind) call = launch->node ? "graphLaunch" : copy ? "memcpyAsync" : "launchKernel";
        const int64_t tid = vp_impl_trace_event(trace, "cuda_runtime", call, trace->process, trace->first_tid,
                                                host.begin, host.end - host.begin);
        vp_impl_trace_arg(trace, "External id", op);
        vp_impl_trace_arg(trace, "cbid", launch->node ? 311 : copy ? 41 : 211);
        /* one call launched the whole graph; each node gets a share of the call's time */
        if (launch->node) vp_impl_trace_arg(trace, "graph node", launch->node);
        vp_impl_trace_arg(trace, "correlation", correlation);
        vp_impl_trace_put(trace, "}}");
        vp_impl_trace_flow(trace, 1, correlation, trace->process, tid, host.begin);
        vp_impl_trace_device_slice(trace, walk->device, launch, op, correlation, on);
        vp_impl_trace_flow(trace, 0, correlation, walk->device->id, VP_TRACE_STREAM, on.begin);
    }
    trace->torch->state.info.launches++;
    walk->next++;
}
/* Writes the launches before `to`. An op encloses each run of launches with the same part and block. */
static void vp_impl_trace_unit(vp_trace *trace, vp_impl_trace_walk *walk, int64_t to) {
    while (walk->next < to) {
        const vp_launch *first = &walk->run->launches[walk->next], *last;
        char name[64];
        int64_t until = walk->next + 1,
                begin = vp_impl_trace_enter(&walk->host, vp_impl_trace_host_of(walk, walk->next) - 1), end;
        while (until < to && walk->run->launches[until].part == first->part
               && walk->run->launches[until].block == first->block)
            until++;
        const int64_t id = walk->op = ++trace->state.external_id;
        while (walk->next < until) vp_impl_trace_launch(trace, walk);
        last = &walk->run->launches[until - 1];
        end = vp_impl_trace_until(walk->begin + last->host_begin_ns + last->host_ns,
                                  vp_impl_trace_host_of(walk, walk->next));
        end = vp_impl_trace_leave(&walk->host, end);
        snprintf(name, sizeof name, "vlmprof::%s", vp_impl_trace_parts[first->part]);
        vp_impl_trace_event(trace, "cpu_op", name, trace->process, trace->first_tid, begin, end - begin);
        vp_impl_trace_op_args(trace, id);
        if (first->block >= 0) vp_impl_trace_arg(trace, "model block", first->block);
        vp_impl_trace_put(trace, "}}");
    }
}
/* Returns 1 if a unit fits. First an upper bound is tried; if it does not fit, a counting-only attempt decides. The
 * unit includes two annotations. */
static int vp_impl_trace_fits(vp_trace *trace, const vp_impl_trace_walk *walk, int64_t to) {
    const uint64_t around = 4 * VP_IMPL_TRACE_EVENT;
    uint64_t bound = around;
    if (trace->state.info.truncated) return 0;
    for (int64_t i = walk->next; i < to; i++) bound += VP_IMPL_TRACE_LAUNCH + 4 * strlen(walk->run->launches[i].name);
    if (trace->state.info.bytes + bound + trace->reserve <= trace->max_bytes) return 1;
    vp_impl_torch_state before = vp_impl_torch_count(trace);
    vp_impl_trace_walk copy = *walk;
    vp_impl_trace_unit(trace, &copy, to);
    return vp_impl_trace_room(trace, vp_impl_torch_counted(trace, &before) + around);
}
/* The enclosing slices of a stage or decode step, on the host and on the device. */
typedef struct vp_impl_trace_around { int64_t host, device; } vp_impl_trace_around;
static vp_impl_trace_around vp_impl_trace_open_around(vp_impl_trace_walk *walk, vp_impl_trace_edges host,
                                                      vp_impl_trace_edges device, int64_t to) {
    int64_t host_at = walk->next < to ? vp_impl_trace_host_of(walk, walk->next) - 1 : INT64_MAX,
            device_at = walk->next < to ? vp_impl_trace_device_of(walk, walk->next) - 1 : INT64_MAX;
    vp_impl_trace_around around = {0, 0};
    if (host.begin != INT64_MAX && walk->begin + host.begin < host_at) host_at = walk->begin + host.begin;
    if (device.begin != INT64_MAX && walk->begin + walk->shift + device.begin < device_at)
        device_at = walk->begin + walk->shift + device.begin;
    around.host = vp_impl_trace_enter(&walk->host, host_at == INT64_MAX ? walk->host : host_at);
    if (walk->device)
        around.device = vp_impl_trace_enter(&walk->on_device, device_at == INT64_MAX ? walk->on_device : device_at);
    return around;
}
static void vp_impl_trace_close_around(vp_trace *trace, vp_impl_trace_walk *walk, vp_impl_trace_around around,
                                       vp_impl_trace_edges host, vp_impl_trace_edges device, const char *name) {
    int64_t end = host.begin == INT64_MAX ? 0 : vp_impl_trace_until(walk->begin + host.end,
                                                                    vp_impl_trace_host_of(walk, walk->next));
    end = vp_impl_trace_leave(&walk->host, end);
    vp_impl_trace_event(trace, "user_annotation", name, trace->process, trace->first_tid, around.host,
                        end - around.host);
    vp_impl_trace_arg(trace, "External id", ++trace->state.external_id);
    vp_impl_trace_put(trace, "}}");
    if (!walk->device) return;
    end = device.begin == INT64_MAX ? 0 : vp_impl_trace_until(walk->begin + walk->shift + device.end,
                                                              vp_impl_trace_device_of(walk, walk->next));
    end = vp_impl_trace_leave(&walk->on_device, end);
    vp_impl_trace_event(trace, "gpu_user_annotation", name, walk->device->id, VP_TRACE_STREAM, around.device,
                        end - around.device);
    vp_impl_trace_arg(trace, "External id", trace->state.external_id);
    vp_impl_trace_arg(trace, "device clock offset ns", walk->shift);
    vp_impl_trace_put(trace, "}}");
}
static int64_t vp_impl_trace_end_of(const vp_impl_trace_walk *walk, int32_t stage, int32_t step) {
    int64_t i = walk->next;
    while (i < walk->run->launch_count && walk->run->launches[i].stage == stage
           && (step < 0 || walk->run->launches[i].step == step))
        i++;
    return i;
}
/* The decode steps. On the processor that does the work, they follow one another according to their times; the first
 * begins with the stage or its launches. On the host of a GPU, only launches show them. */
static void vp_impl_trace_steps(vp_trace *trace, vp_impl_trace_walk *walk, vp_impl_trace_edges host_stage,
                                vp_impl_trace_edges device_stage) {
    const vp_impl_trace_edges unknown = {INT64_MAX, INT64_MAX};
    int64_t at = walk->device ? device_stage.begin : host_stage.begin;
    int32_t step, taken = 0;
    while (!trace->state.info.truncated) {
        const int more = walk->next < walk->run->launch_count
                         && walk->run->launches[walk->next].stage == VP_STAGE_DECODE;
        vp_impl_trace_around around;
        char name[32];
        if (!more && taken >= walk->run->step_count) break;
        step = more ? walk->run->launches[walk->next].step : taken + 1;
        int64_t to = vp_impl_trace_end_of(walk, VP_STAGE_DECODE, step);
        if (!vp_impl_trace_fits(trace, walk, to)) break;
        vp_impl_trace_edges edges = unknown;
        if (at == INT64_MAX && !walk->device && more) at = vp_impl_trace_host_of(walk, walk->next) - walk->begin;
        if (at != INT64_MAX && taken < walk->run->step_count) {
            edges.begin = at;
            edges.end = at += walk->run->step_ns[taken];
        }
        taken++;
        if (!more && edges.begin == INT64_MAX) continue;
        snprintf(name, sizeof name, "decode[%ld]", (long)step);
        around = vp_impl_trace_open_around(walk, walk->device ? unknown : edges, walk->device ? edges : unknown, to);
        vp_impl_trace_unit(trace, walk, to);
        vp_impl_trace_close_around(trace, walk, around, walk->device ? unknown : edges,
                                   walk->device ? edges : unknown, name);
    }
}
static void vp_impl_trace_stage(vp_trace *trace, vp_impl_trace_walk *walk, int32_t stage, vp_impl_trace_edges host,
                                vp_impl_trace_edges device) {
    const int64_t to = vp_impl_trace_end_of(walk, stage, -1);
    const int decode = stage == VP_STAGE_DECODE;
    char name[64];
    const int is_empty = to == walk->next && host.begin == INT64_MAX && device.begin == INT64_MAX;
    if (trace->state.info.truncated || is_empty) return;
    const int32_t step = !decode ? -1 : walk->next < to ? walk->run->launches[walk->next].step : 0;
    if (!vp_impl_trace_fits(trace, walk, vp_impl_trace_end_of(walk, stage, step))) return;
    const char *own = walk->run->stage_names ? walk->run->stage_names[stage] : NULL;
    snprintf(name, sizeof name, "stage::%.50s", own ? own : vp_impl_trace_stages[stage]);
    vp_impl_trace_around around = vp_impl_trace_open_around(walk, host, device, to);
    if (decode) vp_impl_trace_steps(trace, walk, host, device);
    else vp_impl_trace_unit(trace, walk, to);
    vp_impl_trace_close_around(trace, walk, around, host, device, name);
}
/* Reports the item and member of the run that is outside its range. */
static vp_result vp_impl_trace_refuse(vp_error *error, const char *list, int64_t index, const char *member) {
    char where[80];
    snprintf(where, sizeof where, "run.%s[%lld]%s%s", list, (long long)index, *member ? "." : "", member);
    return vp_error_set(error, VP_ERR_RANGE, index, where,
                        "outside its range; see vlmprof_stages.h and vlmprof_torch_trace.h");
}
/* Spans are unordered. Those of one thread do not overlap. */
static vp_result vp_impl_trace_check_spans(const vp_trace_run *run, vp_error *error) {
    for (int64_t i = 0; i < run->span_count; i++) {
        const vp_span *span = &run->spans[i];
        const char *member = span->launch < 0 ? "launch"
                             : span->thread < 0 || span->thread >= VP_TRACE_THREADS_LIMIT ? "thread"
                             : span->begin_ns < 0 || span->begin_ns > VP_IMPL_TRACE_NS_LIMIT ? "begin_ns"
                             : span->ns < 0 || span->ns > VP_IMPL_TRACE_NS_LIMIT ? "ns" : NULL;
        if (member) return vp_impl_trace_refuse(error, "spans", i, member);
    }
    return VP_OK;
}
/* writes the workers' spans for the launches that were written */
static void vp_impl_trace_spans(vp_trace *trace, const vp_impl_trace_walk *walk) {
    for (int64_t i = 0; i < walk->run->span_count && !trace->state.info.truncated; i++) {
        const vp_span *span = &walk->run->spans[i];
        if (span->launch >= walk->next) continue; /* dropped, or the caller's buffer was full */
        const char *name = walk->run->launches[span->launch].name;
        if (!vp_impl_trace_room(trace, 3 * VP_IMPL_TRACE_EVENT + 4 * (uint64_t)strlen(name))) continue;
        vp_impl_trace_event(trace, "thread_span", name, trace->process,
                            vp_impl_trace_track(trace, 0, span->thread, NULL), walk->begin + span->begin_ns, span->ns);
        vp_impl_trace_arg(trace, "launch", span->launch);
        vp_impl_trace_put(trace, "}}");
    }
}
/* The member of a launch that is outside its range, or NULL. */
static const char *vp_impl_trace_bad_member(const vp_launch *launch) {
    const int64_t limit = VP_IMPL_TRACE_NS_LIMIT;
    return !launch->name ? "name"
           : !launch->file ? "file"
           : launch->stage < 0 || launch->stage >= VP_STAGE_COUNT ? "stage"
           : launch->part < 0 || launch->part >= VP_PART_COUNT ? "part"
           : launch->kind < VP_LAUNCH_KERNEL || launch->kind > VP_LAUNCH_COPY_TO_HOST ? "kind"
           : launch->step < 0 ? "step"
           : launch->dimensions < 0 || launch->dimensions > 4 ? "dimensions"
           : launch->begin_ns < 0 || launch->begin_ns > limit ? "begin_ns"
           : launch->ns < 0 || launch->ns > limit ? "ns"
           : launch->host_begin_ns < 0 || launch->host_begin_ns > limit ? "host_begin_ns"
           : launch->host_ns < 0 || launch->host_ns > limit ? "host_ns" : NULL;
}
/* *shift: the offset described at vp_trace_launches. */
static vp_result vp_impl_trace_check_run(const vp_trace *trace, const vp_trace_run *run, int64_t begin, int64_t *shift,
                                         vp_error *error) {
    int64_t i, least = 0;
    const vp_launch *before = NULL;
    for (i = 0; i < run->launch_count; i++) {
        const vp_launch *launch = &run->launches[i];
        const char *member = vp_impl_trace_bad_member(launch);
        if (member) return vp_impl_trace_refuse(error, "launches", i, member);
        if (before
            && (launch->stage < before->stage || (launch->stage == before->stage && launch->step < before->step)))
            return vp_error_set(error, VP_ERR_MISMATCH, i, "launches",
                                "a launch of an earlier stage or decode step follows a later one");
        if (launch->host_begin_ns - launch->begin_ns >= least) least = launch->host_begin_ns - launch->begin_ns + 1;
        before = launch;
    }
    for (i = 0; i < run->step_count; i++)
        if (run->step_ns[i] < 0 || run->step_ns[i] > VP_IMPL_TRACE_NS_LIMIT / (run->step_count + 1))
            return vp_impl_trace_refuse(error, "step_ns", i, "");
    for (i = 0; run->times && i < VP_STAGE_COUNT; i++) {
        const int64_t values[] = {run->times->begin_ns[i], run->times->wall_ns[i], run->times->device_ns[i]};
        static const char *const lists[] = {"times->begin_ns", "times->wall_ns", "times->device_ns"};
        for (int k = 0; k < 3; k++)
            if (values[k] < 0 || values[k] > VP_IMPL_TRACE_NS_LIMIT / 16)
                return vp_impl_trace_refuse(error, lists[k], i, "");
    }
    if (run->device >= 0 && trace->torch->state.device_ns[run->device] - begin > least)
        least = trace->torch->state.device_ns[run->device] - begin;
    *shift = least;
    return VP_OK;
}
VP_API vp_result vp_trace_launches(vp_trace *trace, const vp_trace_run *run, vp_error *error) {
    vp_result result = vp_impl_torch_ready(trace, error);
    vp_impl_trace_edges host = {0, 0}, device = {0, 0}, unknown = {INT64_MAX, INT64_MAX};
    vp_impl_trace_walk walk;
    if (result != VP_OK) return result;
    memset(&walk, 0, sizeof walk);
    if (!run) return vp_error_set(error, VP_ERR_RANGE, -1, "run", "run is NULL");
    if (run->launch_count < 0 || (run->launch_count && !run->launches))
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.launches", "launch_count is negative, or launches is NULL");
    if (run->step_count < 0 || (run->step_count && !run->step_ns))
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.step_ns", "step_count is negative, or step_ns is NULL");
    if (run->span_count < 0 || (run->span_count && !run->spans))
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.spans", "span_count is negative, or spans is NULL");
    if (!vp_impl_trace_time(trace, run->begin_ns, &walk.begin))
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.begin_ns", "the request began before the trace's base_ns");
    if (run->device < -1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.device", "expected -1 for the CPU, or a device id");
    if (run->device >= 0 && !(walk.device = vp_impl_trace_device(trace, run->device)))
        return vp_error_set(error, VP_ERR_RANGE, -1, "run.device", "the trace was opened without this device");
    if ((result = vp_impl_trace_check_run(trace, run, walk.begin, &walk.shift, error)) != VP_OK
        || (result = vp_impl_trace_check_spans(run, error)) != VP_OK)
        return result;
    walk.run = run;
    walk.host = walk.begin;
    walk.on_device = run->device >= 0 && trace->torch->state.device_ns[run->device] > walk.begin
                         ? trace->torch->state.device_ns[run->device]
                         : walk.begin;
    int64_t launches = trace->torch->state.info.launches;
    for (int32_t stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        const int known = run->times && run->times->ran[stage];
        /* on the CPU, step times are enough to place the decode stage */
        const int is_by_steps = !known && stage == VP_STAGE_DECODE && run->device < 0
                                && walk.next == run->launch_count && run->step_count;
        host.begin = host.end;
        for (int32_t step = 0; is_by_steps && step < run->step_count; step++) host.end += run->step_ns[step];
        if (known) {
            host.end += run->times->wall_ns[stage];
            device.begin = run->times->begin_ns[stage];
            device.end = device.begin + run->times->device_ns[stage];
        }
        /* an emulated device does not use the caller's clock, so only launches show the host's time */
        const int has_host = is_by_steps || (known && !trace->torch->options.emulated);
        vp_impl_trace_stage(trace, &walk, stage, has_host ? host : unknown, known ? device : unknown);
    }
    if (walk.device) trace->torch->state.device_ns[run->device] = walk.on_device;
    vp_impl_trace_spans(trace, &walk);
    trace->torch->state.info.dropped_launches += run->launch_count - (trace->torch->state.info.launches - launches);
    return vp_impl_trace_done(trace, error);
}

/* ---- ranges, memory, counters ---- */
/* "file(line): name;.." innermost first, as torch writes it */
static void vp_impl_trace_stack(vp_trace *trace, const vp_ranges *ranges, int64_t index) {
    vp_impl_trace_put(trace, ", 'Call stack': '");
    for (int frame = 0; index >= 0 && frame < VP_IMPL_TRACE_FRAMES; index = ranges->records[index].parent, frame++) {
        const vp_range_record *range = &ranges->records[index];
        const char *const texts[2] = {range->file ? range->file : "unknown", range->name};
        if (frame) vp_impl_trace_put(trace, ";");
        for (int k = 0; k < 2; k++) {
            if (k) vp_impl_trace_put(trace, "(%d): ", (int64_t)range->line);
            /* drops characters that a name must not contain, instead of replacing the whole text */
            for (const char *at = texts[k]; *at; at++)
                if ((unsigned char)*at >= 32 && (unsigned char)*at < 127 && *at != '"' && *at != ';')
                    vp_impl_trace_bytes(trace, *at == '\\' ? "/" : at, 1);
        }
    }
    vp_impl_trace_put(trace, "'");
}
static void vp_impl_trace_range(vp_trace *trace, const vp_ranges *ranges, int64_t index, int64_t begin) {
    const vp_range_record *range = &ranges->records[index];
    const int64_t track = ranges->thread ? vp_impl_trace_track(trace, 1, ranges->thread, ranges->thread_name)
                                         : trace->first_tid;
    vp_impl_trace_event(trace, "cpu_op", range->name, trace->process, track, begin, range->end_ns - range->begin_ns);
    vp_impl_trace_op_args(trace, ++trace->state.external_id);
    if (trace->torch->options.record_shapes && range->payload.dimensions) {
        for (int32_t k = 0; k < range->payload.dimensions; k++)
            vp_impl_trace_put(trace, k ? ", %d" : ", 'Input Dims': [[%d", (int64_t)range->payload.shape[k]);
        vp_impl_trace_put(trace, "]]");
    }
    if (trace->torch->options.with_stack) vp_impl_trace_stack(trace, ranges, index);
    if (range->payload.flops) vp_impl_trace_arg(trace, "flops", range->payload.flops);
    if (range->payload.bytes) vp_impl_trace_arg(trace, "bytes", range->payload.bytes);
    vp_impl_trace_put(trace, "}}");
}
/* Ranges are in order of their start. Each is inside its parent, and after earlier ranges that do not enclose it.
 * Returns the index of the first wrong one, with the reason in *what; -1 if there is none. */
static int64_t vp_impl_trace_bad_range(const vp_trace *trace, const vp_ranges *ranges, const char **what) {
    int64_t i, before, at;
    for (i = 0; i < ranges->count; i++) {
        const vp_range_record *range = &ranges->records[i];
        *what = !range->name ? "it has no name"
            : range->end_ns < range->begin_ns ? "it ends before it begins"
            : !vp_impl_trace_time(trace, range->begin_ns, &at) ? "it began before the trace was opened (before base_ns)"
            : !vp_impl_trace_time(trace, range->end_ns, &at) ? "it ends too long after the trace was opened"
            : range->payload.dimensions < 0 || range->payload.dimensions > 4 || range->payload.flops < 0
              || range->payload.bytes < 0 ? "its payload has more than 4 dimensions, or negative flops or bytes" : NULL;
        if (*what) return i;
        *what = "it does not nest within its parent, or overlaps the previous range";
        if (range->parent < -1 || range->parent >= i
            || (range->parent >= 0 && (range->begin_ns < ranges->records[range->parent].begin_ns
                                       || range->end_ns > ranges->records[range->parent].end_ns)))
            return i;
        for (before = i - 1; before > range->parent; before = ranges->records[before].parent)
            if (range->begin_ns < ranges->records[before].end_ns) return i;
        if (before != range->parent) return i;
    }
    return -1;
}
VP_API vp_result vp_trace_ranges(vp_trace *trace, const vp_ranges *ranges, vp_error *error) {
    vp_result result = vp_impl_torch_ready(trace, error);
    int64_t i, at = 0;
    const char *what = "";
    char where[40];
    if (result != VP_OK) return result;
    if (!ranges || ranges->count < 0 || (ranges->count && !ranges->records))
        return vp_error_set(error, VP_ERR_RANGE, -1, "ranges", "ranges is NULL, or its count is negative");
    if (ranges->thread < 0 || ranges->thread >= VP_TRACE_THREADS_LIMIT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "ranges.thread", "expected 0 to VP_TRACE_THREADS_LIMIT - 1");
    for (i = 0; i < ranges->count; i++)
        if (ranges->records[i].end_ns == INT64_MIN)
            return vp_error_set(error, VP_ERR_STATE, i, "ranges", "a range is still open");
    if ((i = vp_impl_trace_bad_range(trace, ranges, &what)) >= 0) {
        snprintf(where, sizeof where, "ranges[%lld]", (long long)i);
        return vp_error_set(error, VP_ERR_RANGE, i, where, what);
    }
    for (i = 0; i < ranges->count && !trace->state.info.truncated; i++) {
        vp_impl_torch_state before = vp_impl_torch_count(trace);
        vp_impl_trace_time(trace, ranges->records[i].begin_ns, &at);
        vp_impl_trace_range(trace, ranges, i, at);
        const uint64_t bytes = vp_impl_torch_counted(trace, &before);
        if (vp_impl_trace_room(trace, bytes)) vp_impl_trace_range(trace, ranges, i, at);
    }
    return vp_impl_trace_done(trace, error);
}
VP_API vp_result vp_trace_memory(vp_trace *trace, int64_t at_ns, int32_t device, uint64_t address, int64_t bytes,
                                 uint64_t allocated_bytes, uint64_t reserved_bytes, vp_error *error) {
    vp_result result = vp_impl_torch_ready(trace, error);
    int64_t at;
    if (result != VP_OK) return result;
    if (device < -1 || (device >= 0 && !vp_impl_trace_device(trace, device)) || !vp_impl_trace_time(trace, at_ns, &at))
        return vp_error_set(error, VP_ERR_RANGE, -1, "device",
                            "the trace was opened without this device, or the time is before base_ns");
    if (address > (uint64_t)INT64_MAX || allocated_bytes > (uint64_t)INT64_MAX || reserved_bytes > (uint64_t)INT64_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "bytes", "must be below 2^63");
    if (!vp_impl_trace_room(trace, VP_IMPL_TRACE_EVENT)) return vp_impl_trace_done(trace, error);
    vp_impl_trace_put(trace, ",\n{'ph': 'i', 'cat': 'cpu_instant_event', 's': 't', 'name': '[memory]', 'pid': %d, "
                      "'tid': %d, 'ts': %t, 'args': {", trace->process, trace->first_tid, at);
    vp_impl_trace_put(trace, "'Addr': %d, 'Bytes': %d, 'Total Allocated': %d, 'Total Reserved': %d, 'Device Type': "
                      "%d, 'Device Id': %d, 'Ev Idx': %d}}", (int64_t)address, bytes, (int64_t)allocated_bytes,
                      (int64_t)reserved_bytes, (int64_t)(device >= 0), (int64_t)device,
                      trace->torch->state.event_index++);
    vp_impl_trace_saw(trace, at, 0);
    return vp_impl_trace_done(trace, error);
}

/* ---- the end ---- */
VP_API vp_torch_trace_info vp_torch_trace_tell(const vp_trace *trace) {
    vp_torch_trace_info info;
    memset(&info, 0, sizeof info);
    if (!trace || !trace->torch) return info;
    info = trace->torch->state.info;
    info.truncated = trace->state.info.truncated;
    info.bytes = trace->state.info.bytes;
    info.events = trace->state.info.events;
    info.other_row_slices = trace->state.info.other_row_slices;
    return info;
}
/* Writes the end of the steps and the whole record, then the only member that may follow the events, because no bracket
 * may come after theirs. */
static void vp_impl_trace_tail(vp_trace *trace) {
    int64_t first, operations = trace->state.info.events;
    struct vp_torch_trace *torch = trace->torch;
    if (torch->step_open) {
        torch->step_end_ns = trace->state.last_ns > torch->step_ns ? trace->state.last_ns : torch->step_ns;
        vp_impl_trace_step(trace, "", torch->step_ns, torch->step_end_ns);
        torch->state.info.steps++;
    }
    if (torch->state.info.steps > 1) {
        const int64_t last_ns = trace->state.last_ns;
        const int64_t begin = 1 + (last_ns > torch->step_end_ns ? last_ns : torch->step_end_ns);
        vp_impl_trace_step(trace, "end of ", begin, begin);
    }
    first = trace->state.first_ns == INT64_MAX ? 0 : trace->state.first_ns;
    vp_impl_trace_put( trace, ",\n{'ph': 'X', 'cat': 'Trace', 'ts': %t, 'dur': %t, 'pid': 'Spans', 'tid': 'PyTorch "
                      "Profiler', 'name': 'PyTorch Profiler (0)', 'args': {'Op count': %d}},\n{'name': "
                      "'process_sort_index', 'ph': 'M', 'ts': 0.000, 'pid': 'Spans', 'tid': 0, 'args': {'sort_index': "
                      "536870912}},\n{'name': 'Iteration Start: PyTorch Profiler', 'ph': 'i', 's': 'g', 'pid': "
                      "'Traces', 'tid': 'Trace PyTorch Profiler', 'ts': %t},\n{'name': 'Record Window End', 'ph': "
                      "'i', 's': 'g', 'pid': '', 'tid': '', 'ts': %t}\n],\n'traceName': ", first,
                      trace->state.last_ns > first ? trace->state.last_ns - first : INT64_C(0), operations, first,
                      trace->state.last_ns);
    trace->state.info.events += 4;
    vp_impl_trace_text(trace, trace->path, 1);
    vp_impl_trace_put(trace, "\n}\n");
}
VP_API vp_result vp_torch_trace_close(vp_trace *trace, vp_torch_trace_info *info, vp_error *error) {
    if (!trace || trace->closed || !trace->torch) {
        if (info && trace) *info = vp_torch_trace_tell(trace);
        return vp_impl_torch_ready(trace, error);
    }
    if (!trace->failed) {
        vp_impl_trace_tail(trace);
        vp_impl_trace_flush(trace);
    }
    if (!trace->failed && (trace->state.info.truncated || trace->torch->state.info.dropped_steps)) {
        vp_impl_trace_flags(trace, trace->buffer);
        trace->buffered = strlen(trace->buffer);
        if (lseek(trace->torch->output.fd, (off_t)trace->torch->flags_at, SEEK_SET) < 0) trace->failed = errno;
        vp_impl_trace_flush(trace);
    }
    trace->closed = 1;
    if (trace->failed) {
        vp_output_discard(&trace->torch->output);
        return vp_impl_trace_done(trace, error);
    }
    if (vp_output_commit(&trace->torch->output, error) != VP_OK) {
        trace->failed = errno ? errno : EIO;
        return VP_ERR_WRITE;
    }
    if (info) *info = vp_torch_trace_tell(trace);
    return VP_OK;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
