/* trace_read.h: a Chrome trace, ours or torch.profiler's, to arrays of events. */
#ifndef VLMPROF_CLI_TRACE_READ_H
#define VLMPROF_CLI_TRACE_READ_H
#include "base/memory.h"
#include <stddef.h>
#include <stdint.h>

enum { TRACE_VALUE_BYTES_MAX = 4 << 20, TRACE_ROWS_MAX = 1 << 18, ENDS_EARLY = -1, IS_TABLE = -2 };

#define NO_INDEX UINT32_MAX

/* every text once */
typedef struct text_table { text_buffer text; size_t *starts; uint32_t count, capacity; uint32_t *slots; size_t slot_count; } text_table;

const char *text_table_at(const text_table *n, uint32_t index);
uint32_t text_table_add(text_table *n, const char *text);
void text_table_free(text_table *n);

typedef enum trace_category { TRACE_OP, TRACE_USER, TRACE_RUNTIME, TRACE_PYTHON, TRACE_SPAN, TRACE_KERNEL, TRACE_COPY, TRACE_SET, TRACE_DEVICE_USER,
                              TRACE_NOTHING } trace_category; /* SPAN: a worker's part of an operation */

int is_host_category(int c);
int is_device_work(int c);
int is_annotation(int c);

typedef struct trace_event {
    int64_t begin_ns, ns, external, correlation, bytes; /* external, correlation: -1 none */
    uint32_t name, shapes, track, order;                /* shapes: a name, or NO_INDEX */
    uint8_t category;
} trace_event;
typedef struct trace_memory { int64_t ns, bytes, allocated, reserved; int32_t type, device; } trace_memory; /* type 0: CPU, its device -1 */

typedef struct trace {
    const char *path;
    text_table names, tracks;               /* a track's text is "pid tid" */
    uint32_t *labels; uint32_t label_count; /* of tracks: a name, or NO_INDEX */
    trace_event *events; size_t count, capacity;
    trace_memory *memory; size_t memory_count, memory_capacity;
    int64_t seen, flows, counters, instants, marks; /* events of the file, and those that are no slices */
    int64_t no_name, no_time, no_duration, other;   /* left out: events that lack it, phases that are not read */
    int64_t schema, world_size, rank, device_count;  /* -1: not told */
    uint32_t devices, trace_name, host_name;         /* names, or NO_INDEX */
    int is_own, is_emulated, is_partial, is_cut; /* partial: what lies before the cut is enough */
    int64_t bytes, all_ns;             /* of the file; sum of all durations */
} trace;

void trace_free(trace *t);
int trace_read(trace *t, const char *path, int is_partial);

#endif
