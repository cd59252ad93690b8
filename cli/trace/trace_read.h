/* trace_read.h: a Chrome trace, ours or torch.profiler's, to arrays of events. */
#ifndef VLMPROF_CLI_TRACE_READ_H
#define VLMPROF_CLI_TRACE_READ_H
#include "base/memory.h"
#include "trace/text_table.h"
#include <stddef.h>
#include <stdint.h>

enum { TRACE_VALUE_BYTES_MAX = 4 << 20, TRACE_ROWS_MAX = 1 << 18 };

/* Next to exit codes, which are 0 and more. IS_TABLE: the file is a saved table of operations. ENDS_EARLY stays within
 * trace_read.c. */
enum { ENDS_EARLY = -1, IS_TABLE = -2 };

/* What a slice is. First come those of the host; TRACE_SPAN is a worker's part of an operation. TRACE_NOTHING is left
 * out. */
typedef enum trace_category {
    TRACE_OP, TRACE_USER, TRACE_RUNTIME, TRACE_PYTHON, TRACE_SPAN,
    TRACE_KERNEL, TRACE_COPY, TRACE_SET, TRACE_DEVICE_USER,
    TRACE_NOTHING
} trace_category;

int is_host_category(int category);
int is_device_work(int category); /* a kernel, a copy or a fill */
int is_annotation(int category);  /* of the user, on the host or on the device */

/* A slice. */
struct trace_event {
    int64_t begin_ns, ns, bytes;
    int64_t external, correlation; /* "External id" and "correlation"; -1: none */
    uint32_t name, shapes, track;  /* places in names, names and tracks; shapes may be NO_INDEX */
    uint32_t order;                /* place in the file */
    uint8_t category;
};
struct trace_memory {
    int64_t ns, bytes;           /* bytes: what was taken, below 0 what was given back */
    int64_t allocated, reserved; /* after it; -1: not said */
    int32_t type, device;        /* 0: the CPU, its device is -1; 1: a device, 0..255 */
};

struct trace {
    const char *path;
    struct text_table names, tracks;               /* a track's text is "pid tid" */
    uint32_t *labels; uint32_t label_count;        /* of tracks: a name, or NO_INDEX */
    struct trace_event *events; size_t count, capacity;
    struct trace_memory *memory; size_t memory_count, memory_capacity;
    int64_t seen, flows, counters, instants, marks; /* events of the file, and those that are not slices */
    int64_t no_name, no_time, no_duration, other;   /* left out: events that lack it, phases that are not read */
    int64_t schema, world_size, rank, device_count; /* -1: not said */
    uint32_t devices, trace_name, host_name;        /* names, or NO_INDEX */
    int is_own, is_emulated;                        /* 1 if written by vlmprof; its device was emulated */
    int is_partial, is_cut;                         /* 1 if what is before a cut is enough; the file is cut off */
    int64_t bytes, all_ns;                          /* of the file; sum of all durations */
};

/* Reads a file, or stdin for "-". is_partial: a file that is cut off is not an error. 0, IS_TABLE or an exit code;
 * after each of them the trace is to be freed. */
int trace_read(struct trace *trace, const char *path, int is_partial);
void trace_free(struct trace *trace);

#endif
