/* trace_tables.h: makes tables of the events of a trace. */
#ifndef VLMPROF_CLI_TRACE_TABLES_H
#define VLMPROF_CLI_TRACE_TABLES_H
#include "trace/trace_read.h"
#include "vlmprof_ranges.h"

/* A stretch of a track without a gap, in ns; before: covered time of the track before it. */
struct cover { int64_t begin, end, before; };

struct trace_row {
    const char *name, *where; /* where: "host" or "device" */
    int64_t calls, total_ns, min_ns, max_ns, busy_ns, bytes;
    int64_t host_wait_ns, kernel_wait_ns, queue_most; /* for a stream: its gaps, and its queue */
    double queue_mean;
};
struct trace_rows { struct trace_row *items; size_t count; };
/* The memory of a device. type, device: as in trace_memory; changes: number of records; allocated, reserved: maxima, -1
 * if unknown; left: bytes at the end; at_ns: time of the maximum allocation. */
struct trace_peak { int type, device; int64_t changes, allocated, reserved, left, at_ns; };

struct id_index;
/* Launching calls by correlation; and for each process of the trace, the one of the host that launches its work. */
struct trace_launches { struct id_index *calls; size_t count; uint32_t *launcher; };

struct trace_tables {
    const struct trace *trace;
    int64_t first_ns, last_ns, kernel_ns;
    /* slices of a thread that overlap without nesting; device slices with and without a launch; those of no operation,
     * and how many of these because several processes have their id */
    int64_t overlaps, launched, unlaunched, unowned, unowned_ns, repeated_ids;
    struct trace_launches launches;
    /* us from the end of the launching call to the start on the device; all 0 if nothing was launched */
    vp_statistics delay;
    struct text_table keys;                 /* for operations: distinguishes rows */
    vp_ops ops; vp_op *op_rows;
    struct cover *covers; size_t *cover_start; /* cover_start: of each track, [track_count + 1] */
    int64_t *within_ns;                     /* [trace->count] for host slices: time covered by inner slices */
    struct trace_rows annotations, kernels, calls, tracks;
    struct trace_peak *peaks; size_t peak_count; /* the CPU, then devices */
};

/* Makes all tables of a trace and sorts its slices. The trace must live as long as the tables. by_shapes: operations
 * have one row for each of their shapes. Returns 0 or an exit code; the tables must be freed in both cases. */
int trace_summarise(struct trace_tables *tables, struct trace *trace, int by_shapes);

/* The exit code for the result of a function on tables->ops. Prints a message on stderr if it is not 0. */
int trace_ops_code(const struct trace_tables *tables, vp_result result);
void trace_tables_free(struct trace_tables *tables);

#endif
