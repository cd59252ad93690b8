/* trace_tables.h: the events of a trace to tables. */
#ifndef VLMPROF_CLI_TRACE_TABLES_H
#define VLMPROF_CLI_TRACE_TABLES_H
#include "trace/trace_read.h"
#include "vlmprof.h"
#include "vlmprof_ranges.h"

typedef struct cover { int64_t begin, end, before; } cover; /* a stretch of a track without a gap, and how much of the track is covered before it */

typedef struct trace_row {
    const char *name, *where;
    int64_t calls, total_ns, min_ns, max_ns, busy_ns, bytes;
    int64_t host_wait_ns, kernel_wait_ns, queue_most; /* of a stream */
    double queue_mean;
} trace_row;
typedef struct trace_rows { trace_row *items; size_t count; } trace_rows;
enum { TRACE_DEVICES = 257 }; /* the CPU, and devices 0..255 */
typedef struct trace_peak { int64_t changes, allocated, reserved, left, at_ns; } trace_peak; /* allocated, reserved: the most; -1: not told */

typedef struct trace_tables {
    const trace *t;
    int64_t first_ns, last_ns, kernel_ns;
    int64_t overlaps, launched, unlaunched; /* slices of a thread that overlap without nesting; device slices with and without their launch */
    vp_statistics delay;                    /* us, start on the device less end of the launching call; all 0 where there is none */
    text_table keys;
    vp_ops ops; vp_op *op_rows;
    cover *covers; size_t *cover_start;     /* of each track, [track_count + 1] */
    int64_t *within_ns;                     /* of each host slice that is no worker's part: what slices within cover */
    trace_rows annotations, kernels, calls, tracks;
    trace_peak peaks[TRACE_DEVICES];
} trace_tables;

int trace_ops_failed(const trace_tables *x, vp_result r);
int trace_summarise(trace_tables *x, trace *t, int by_shapes);
void trace_tables_free(trace_tables *x);

#endif
