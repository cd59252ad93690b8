/* trace_tables.h: the events of a trace to tables. */
#ifndef VLMPROF_CLI_TRACE_TABLES_H
#define VLMPROF_CLI_TRACE_TABLES_H
#include "trace/trace_read.h"
#include "vlmprof.h"
#include "vlmprof_ranges.h"

/* A stretch of a track without a gap, ns; before: how much of the track is covered before it. */
struct cover { int64_t begin, end, before; };

struct trace_row {
    const char *name, *where; /* where: "host" or "device" */
    int64_t calls, total_ns, min_ns, max_ns, busy_ns, bytes;
    int64_t host_wait_ns, kernel_wait_ns, queue_most; /* of a stream: its gaps, and its queue */
    double queue_mean;
};
struct trace_rows { struct trace_row *items; size_t count; };
enum { TRACE_DEVICES = 257 }; /* the CPU, and devices 0..255 */
/* Of a device. changes: records; allocated, reserved: the most, -1: not said; left: bytes at the end; at_ns: when the
 * most was allocated. */
struct trace_peak { int64_t changes, allocated, reserved, left, at_ns; };

struct trace_tables {
    const struct trace *trace;
    int64_t first_ns, last_ns, kernel_ns;
    /* slices of a thread that overlap without nesting; device slices with and without their launch */
    int64_t overlaps, launched, unlaunched;
    /* us from the end of the launching call to the start on the device; all 0 where nothing was launched */
    vp_statistics delay;
    struct text_table keys;                 /* of the operations: what distinguishes rows */
    vp_ops ops; vp_op *op_rows;
    struct cover *covers; size_t *cover_start; /* cover_start: of each track, [track_count + 1] */
    int64_t *within_ns;                     /* [trace->count] of host slices: what slices within cover */
    struct trace_rows annotations, kernels, calls, tracks;
    struct trace_peak peaks[TRACE_DEVICES]; /* the CPU, then devices */
};

/* Makes all tables of a trace, whose slices it sorts; the trace must live as long as they. by_shapes: operations have a
 * row for each of their shapes. 0 or an exit code; the tables are to be freed after both. */
int trace_summarise(struct trace_tables *tables, struct trace *trace, int by_shapes);

/* The exit code of a function on tables->ops; says on stderr why it is not 0. */
int trace_ops_code(const struct trace_tables *tables, vp_result result);
void trace_tables_free(struct trace_tables *tables);

#endif
