/* trace_tables.h: the events of a trace to tables. */
#ifndef VLMPROF_CLI_TRACE_TABLES_H
#define VLMPROF_CLI_TRACE_TABLES_H
#include "trace/trace_read.h"
#include "vlmprof.h"
#include "vlmprof_ranges.h"

/* a stretch of a track without a gap, and how much of the track is covered before it */
struct cover { int64_t begin, end, before; };

struct trace_row {
    const char *name, *where;
    int64_t calls, total_ns, min_ns, max_ns, busy_ns, bytes;
    int64_t host_wait_ns, kernel_wait_ns, queue_most; /* of a stream */
    double queue_mean;
};
struct trace_rows { struct trace_row *items; size_t count; };
enum { TRACE_DEVICES = 257 }; /* the CPU, and devices 0..255 */
/* allocated, reserved: the most; -1: not told */
struct trace_peak { int64_t changes, allocated, reserved, left, at_ns; };

struct trace_tables {
    const struct trace *trace;
    int64_t first_ns, last_ns, kernel_ns;
    /* slices of a thread that overlap without nesting; device slices with and without their launch */
    int64_t overlaps, launched, unlaunched;
    /* us, start on the device less end of the launching call; all 0 where there is none */
    vp_statistics delay;
    struct text_table keys;
    vp_ops ops; vp_op *op_rows;
    struct cover *covers; size_t *cover_start;     /* of each track, [track_count + 1] */
    int64_t *within_ns;                     /* of each host slice that is no worker's part: what slices within cover */
    struct trace_rows annotations, kernels, calls, tracks;
    struct trace_peak peaks[TRACE_DEVICES];
};

int trace_ops_failed(const struct trace_tables *tables, vp_result result);
int trace_summarise(struct trace_tables *tables, struct trace *trace, int by_shapes);
void trace_tables_free(struct trace_tables *tables);

#endif
