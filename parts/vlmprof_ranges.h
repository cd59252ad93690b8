/* vlmprof_ranges.h - v0.2.0 - ranges of a program's own code, table of operations, schedule - MIT licence
 *
 * Do this:
 *     static vp_range_record records[1000];
 *     static vp_op rows[10];
 *     vp_ranges ranges;
 *     vp_ops ops;
 *     vp_ranges_init(&ranges, records, 1000, 0, "main", NULL);
 *     for (int i = 0; i < 3; i++) {
 *         VP_RANGE(&ranges, "work");
 *         vp_range_end(&ranges);
 *     }
 *     vp_ops_init(&ops, rows, 10, 0, 0);
 *     vp_ops_add_ranges(&ops, &ranges);
 *     printf("%s: %d calls\n", ops.rows[0].name, (int)ops.rows[0].calls);
 * It prints work: 3 calls; ops.rows also contains the times. vp_ops_sort and vp_ops_print_torch print the table as
 * torch.profiler does, vp_ops_print_cprofile as cProfile does.
 *
 * A range costs about 42 ns, of which the two clock reads take 36; about 67 ns if its record is not in the cache, and
 * 172 ns if its memory is touched for the first time (2-core Intel Xeon virtual machine, gcc 12 -O2;
 * tests/bench/bench_ranges.c); with VLMPROF_OFF, nothing. Each thread has its own vp_ranges; add them to the table when
 * the threads are done.
 * vp_range_set(&ranges, &payload) within a range records FLOPs, bytes, memory and shape. Nothing is lost silently:
 * ranges that do not fit in the buffer are counted and reported below the table. vp_schedule_at decides which steps of
 * a loop to record. vp_ops_write_json saves a table; vp_ops_read_json reads it back, for instance to sort it by another
 * key. For Nsight Systems, pass the hooks of vp_engine_range_hooks() to vp_ranges_init: the ranges then appear there
 * too.
 *
 * The table uses the terms of torch.profiler and cProfile. Names, files, stages and parts are not copied: they must
 * outlive the object that refers to them.
 * memory:  the caller's arrays
 * threads: one vp_ranges per thread; fill the tables when the threads are done
 * example: samples/04_profile_yourself.c
 *
 * Includes vlmprof_json.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_RANGES_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_RANGES_H
#define VLMPROF_RANGES_H
#ifndef VLMPROF_JSON_H
#include "vlmprof_json.h"
#endif

VP_EXTERN_C_BEGIN

/* the work of a range; every member is optional */
typedef struct vp_range_payload {
    int64_t flops, bytes;            /* done and moved by the range itself, without nested ranges */
    int64_t memory_bytes;            /* allocated (+) or freed (-) by the range itself */
    int32_t shape[4], dimensions;    /* dimensions: 0..4 */
} vp_range_payload;
typedef struct vp_range_record {
    const char *name, *file;         /* file NULL: not known */
    int32_t line, depth;             /* depth 0: outermost */
    /* index of the enclosing range; -1 if there is none. Ranges are in order of their start */
    int64_t parent;
    int64_t begin_ns, end_ns;        /* vp_clock_ns; end_ns is INT64_MIN while it is open */
    /* time in direct children, including those without a record: self = end - begin - children */
    int64_t children_ns;
    int64_t children_memory_bytes;   /* memory_bytes of all nested ranges that have a record */
    vp_range_payload payload;
} vp_range_record;
/* Callbacks for a program that mirrors its ranges in a tool (NVTX: vp_engine_range_hooks). They are called for every
 * range, even if it has no record. */
typedef struct vp_range_hooks {
    void (*push)(void *user, const char *name);
    void (*pop)(void *user);
    void *user;
} vp_range_hooks;
typedef struct vp_ranges {
    vp_range_record *records;
    int64_t capacity, count;
    int64_t open;                    /* index of the innermost open record; -1 if there is none */
    int64_t dropped;                 /* ranges that did not fit: not in `records` */
    int64_t dropped_ns;              /* time of the outermost of them; also in children_ns of the enclosing range */
    int64_t dropped_open, dropped_begin_ns; /* those open now, and the start of the outermost */
    const char *thread_name;         /* the caller's; may be NULL */
    int32_t thread;                  /* the caller's number for this thread */
    const vp_range_hooks *hooks;     /* NULL: no hooks */
} vp_ranges;

/* Starts recording into a buffer.
 * in:      records      vp_range_record [capacity]  touch it first, so that page faults do not count as measured time
 *          thread_name  for reports; NULL: none
 *          hooks        NULL: no hooks; otherwise both functions must be set. It must outlive `ranges`
 * returns: VP_OK; VP_ERR_RANGE: capacity < 0, records NULL with a capacity above 0, or only one of the hooks */
VP_API vp_result vp_ranges_init(vp_ranges *ranges, vp_range_record *records, int64_t capacity, int32_t thread,
                                const char *thread_name, const vp_range_hooks *hooks);
/* Begins a range inside the innermost open one. VP_RANGE(ranges, "name") fills in file and line; its name must be a
 * string literal.
 * returns: VP_OK; VP_ERR_CAPACITY: no room for a record. The range is counted in `dropped`; end it like any other.
 *          VP_ERR_RANGE: name is NULL (no range was begun)
 * numeric: two clock reads per pair */
VP_API vp_result vp_range_begin(vp_ranges *ranges, const char *name, const char *file, int32_t line);
#define VP_RANGE(ranges, name) vp_range_begin((ranges), "" name, __FILE__, __LINE__)
/* Sets the work of the innermost open range. A second call replaces the first.
 * returns: VP_OK; VP_ERR_RANGE: dimensions outside 0..4, flops or bytes < 0; VP_ERR_STATE: no range is open;
 *          VP_ERR_CAPACITY: the range has no record */
VP_API vp_result vp_range_set(vp_ranges *ranges, const vp_range_payload *payload);
/* Ends the innermost open range.
 * returns: VP_OK; VP_ERR_STATE: no range is open (nothing changes); VP_ERR_RANGE: the range ended, but the memory sum
 * of its nested ranges overflows int64 */
VP_API vp_result vp_range_end(vp_ranges *ranges);
/* Discards all records, so that the buffer can be reused, for example after each step, once its ranges are in a table.
 * returns: VP_OK; VP_ERR_STATE: a range is open */
VP_API vp_result vp_ranges_clear(vp_ranges *ranges);

/* ---- the table of operations: one row for all calls that agree in name and in everything the table groups by, such as
 * stage or shape */
enum {
    VP_OPS_BY_SHAPE = 1, VP_OPS_BY_STAGE = 2, VP_OPS_BY_PART = 4, VP_OPS_BY_BLOCK = 8, VP_OPS_BY_STEP = 16,
    VP_OPS_BY_PLACE = 32,            /* file and line */
    VP_OPS_BY_ALL = 63,
    VP_OP_STACK_LIMIT = 8,
    VP_OP_NONE = -1,                 /* not in a block, not in a step */
    /* block, step, dimensions: the row's calls differ. Then stage and part are "*", file is NULL and line is 0 */
    VP_OP_SEVERAL = -2
};
typedef struct vp_op_frame { const char *name, *file; int32_t line; } vp_op_frame; /* file NULL: not known */
/* A sample of one call for a table, or a row, which is the sum of its calls. Host times are CPU times; device times are
 * GPU times, or 0 without a GPU. */
typedef struct vp_op {
    const char *name;                /* UTF-8, not empty */
    const char *stage, *part, *file; /* NULL: not given */
    int32_t line, block, step;
    int32_t shape[4], dimensions;    /* 0: no shape */
    /* JSON text of the shapes of all inputs, "[[2, 3], []]", as torch records them; NULL: only `shape` is known */
    const char *shapes;
    /* number of frames: 0..VP_OP_STACK_LIMIT; in a row, at most as many as the table groups by */
    int32_t stack_count;
    vp_op_frame stack[VP_OP_STACK_LIMIT]; /* innermost first, starting with the operation's own position */
    int64_t calls, primitive_calls;  /* primitive: not inside another call of the same row */
    /* total: with nested calls, counting each call of a recursion (torch); self: without nested calls */
    int64_t host_total_ns, host_self_ns;
    int64_t host_cumulative_ns;      /* total of only the primitive calls (cProfile) */
    int64_t host_min_ns, host_max_ns; /* smallest and largest total of a single call */
    int64_t device_total_ns, device_self_ns, device_min_ns, device_max_ns;
    int64_t flops, bytes;            /* work of the operation itself, without nested calls */
    int64_t host_memory_bytes, host_self_memory_bytes; /* allocated less freed, with and without nested calls */
    int64_t device_memory_bytes, device_self_memory_bytes;
    int64_t memory_peak_bytes;       /* largest peak of the calls; 0: not known */
    int64_t next, bucket;            /* used by the table: 1 + row; 0: no row */
} vp_op;
/* the peak rates of a device; 0: not known */
typedef struct vp_op_ceilings { double bytes_per_s, flops_per_s; } vp_op_ceilings;
typedef enum vp_ops_clock { VP_OPS_HOST, VP_OPS_DEVICE } vp_ops_clock;
typedef struct vp_ops {
    vp_op *rows;
    int64_t capacity, count;
    uint32_t group_by;               /* VP_OPS_BY_.. */
    int32_t group_by_stack_n;        /* innermost frames that distinguish rows: 0..VP_OP_STACK_LIMIT */
    /* the clock of cProfile's columns and of the rates: VP_OPS_HOST, unless the caller sets it */
    vp_ops_clock clock;
    /* set by the caller: with "CUDA", torch's table has CUDA columns if a row has device time. NULL: no such columns */
    const char *device_name;
    vp_op_ceilings ceilings;         /* for the share of the roofline; not known unless the caller sets them */
    const char *sort_key;            /* key of the last vp_ops_sort; NULL: rows are in order of their first call */
    /* calls that are in no row: ranges without a record, and samples that did not fit in the table */
    int64_t dropped_calls;
    int64_t dropped_host_ns, dropped_device_ns; /* their known self times */
} vp_ops;

/* A sample to be filled in: one call, no times, no stage; block and step are VP_OP_NONE. */
VP_API vp_op vp_op_default(void);
/* Begins an empty table.
 * in:      rows      vp_op [capacity]
 *          group_by  sum of VP_OPS_BY_..; 0: only by name, as key_averages() does
 * returns: VP_OK; VP_ERR_RANGE: capacity < 0, rows NULL with a capacity above 0, or group_by or group_by_stack_n
 *          outside its range */
VP_API vp_result vp_ops_init(vp_ops *ops, vp_op *rows, int64_t capacity, uint32_t group_by, int32_t group_by_stack_n);
/* Adds a sample, or a row of another table.
 * in:      op  a single call (calls = 1) has primitive_calls 0 or 1; its host_cumulative_ns, host_min_ns, host_max_ns,
 *              device_min_ns and device_max_ns are derived, not read. With more calls, all must be set
 * returns: VP_OK; VP_ERR_FORMAT: a name that is NULL, empty or not UTF-8, or another text that is not UTF-8;
 *          VP_ERR_RANGE: calls < 1, primitive_calls outside 0..calls, a time, flops or bytes below 0, self above total,
 *          min above max, cumulative above total, dimensions outside 0..4, stack_count outside its range, or a sum
 *          exceeds INT64_MAX; VP_ERR_CAPACITY: no row is free; the calls are counted in `dropped_calls`
 * rule:    a member that the table does not group by keeps its value while all calls of the row agree; if they differ,
 *          it becomes "several". The stack is cut to group_by_stack_n. "ProfilerStep#<N>" is counted as
 *          "ProfilerStep*", as torch does */
VP_API vp_result vp_ops_add(vp_ops *ops, const vp_op *op);
/* Adds all ranges of a thread; their stacks are their enclosing ranges.
 * returns: as vp_ops_add, VP_ERR_CAPACITY after all that fit were added; VP_ERR_STATE: a range is open (nothing was
 *          added) */
VP_API vp_result vp_ops_add_ranges(vp_ops *ops, const vp_ranges *ranges);
/* Adds all rows of another table, whose grouping must be at least as fine. Also adds its dropped calls.
 * Returns the same as vp_ops_add. */
VP_API vp_result vp_ops_merge(vp_ops *ops, const vp_ops *from);
/* The sum of all rows, as one op named "Total".
 * returns: VP_OK; VP_ERR_RANGE: a sum exceeds INT64_MAX */
VP_API vp_result vp_ops_total(const vp_ops *ops, vp_op *total);

/* Sort keys: torch's attributes (cuda_ is device_), then cProfile's, whose times are those of ops->clock. Numbers are
 * sorted in descending order, texts in ascending order. */
#define VP_OPS_KEYS(X) \
    X("cpu_time", HOST_AVERAGE, "average CPU time") X("cpu_time_total", HOST_TOTAL, "total CPU time") \
    X("self_cpu_time_total", HOST_SELF, "self CPU time") X("device_time", DEVICE_AVERAGE, "average device time") \
    X("device_time_total", DEVICE_TOTAL, "total device time") \
    X("self_device_time_total", DEVICE_SELF, "self device time") \
    X("cuda_time", DEVICE_AVERAGE, "average device time") X("cuda_time_total", DEVICE_TOTAL, "total device time") \
    X("self_cuda_time_total", DEVICE_SELF, "self device time") X("cpu_memory_usage", HOST_MEMORY, "CPU memory") \
    X("self_cpu_memory_usage", HOST_SELF_MEMORY, "self CPU memory") \
    X("device_memory_usage", DEVICE_MEMORY, "device memory") \
    X("self_device_memory_usage", DEVICE_SELF_MEMORY, "self device memory") \
    X("cuda_memory_usage", DEVICE_MEMORY, "device memory") \
    X("self_cuda_memory_usage", DEVICE_SELF_MEMORY, "self device memory") \
    X("count", CALLS, "call count") X("flops", FLOPS, "FLOPs") X("bytes", BYTES, "bytes moved") \
    X("calls", CALLS, "call count") X("ncalls", CALLS, "call count") X("pcalls", PRIMITIVE, "primitive call count") \
    X("cumulative", CUMULATIVE, "cumulative time") X("cumtime", CUMULATIVE, "cumulative time") \
    X("time", SELF, "internal time") X("tottime", SELF, "internal time") X("name", NAME, "function name") \
    X("filename", FILE, "file name") X("module", FILE, "file name") X("line", LINE, "line number") \
    X("nfl", NAME_FILE_LINE, "name/file/line") X("stdname", STANDARD_NAME, "standard name")
VP_API const char *vp_ops_key_name(int32_t index); /* NULL past the end: for help texts */
/* Sorts the rows by one of VP_OPS_KEYS.
 * returns: VP_OK; VP_ERR_NOT_FOUND: no such key (the order is unchanged)
 * rule:    ties are ordered by name, then by everything else that distinguishes rows, so the result does not depend on
 *          the previous order
 * source:  torch 2.15 torch/autograd/profiler_util.py; CPython 3.11 Lib/pstats.py */
VP_API vp_result vp_ops_sort(vp_ops *ops, const char *key);

typedef struct vp_op_rates {
    double gb_per_s, tflop_per_s;    /* achieved; NaN without bytes, FLOPs or time */
    /* share of the lower roof; NaN if no roof applies. Above 100: cached operands, or a ceiling that is too low */
    double ceiling_percent;
    int memory_bound;                /* 1: the memory roof is the lower one; 0: the compute roof */
} vp_op_rates;
/* Achieved rates of a row over its self time, and their share of the roofline.
 * rule:    ceiling_percent = 100 max(flops / flops_per_s, bytes / bytes_per_s) / time, over the known ceilings */
VP_API vp_op_rates vp_op_rate(const vp_op *op, vp_ops_clock clock, vp_op_ceilings ceilings);

/* ---- printing, to a function that receives the text in pieces; its first failure stops the printing and is
 * returned */
typedef vp_json_sink vp_text_sink;
typedef struct vp_ops_print_options {
    int64_t row_limit;               /* -1: all rows */
    int32_t max_name_column_width;   /* 4 or more; -1: the width of the longest name */
    int32_t max_shapes_column_width, max_src_column_width; /* the same */
    const char *time_unit;           /* "us", "ms" or "s" for all times; NULL: a suitable unit for each */
    const char *header;              /* a line above the table; NULL: no line */
    int with_memory, with_flops;     /* profile_memory, with_flops */
    int with_rates;                  /* not in torch: GB/s, TFLOP/s and, with ops->ceilings, the share of the
                                      * roofline */
    int32_t decimals;                /* decimals of seconds in cProfile's table, 3..9 */
} vp_ops_print_options;
/* torch's defaults: 100 rows, widths 55, 80 and 75, no optional columns; 3 decimals */
VP_API vp_ops_print_options vp_ops_print_options_default(void);
/* Prints the columns, widths and units of key_averages().table(). If rows are grouped by stage, part, block or step, a
 * column for each follows "# of Calls".
 * returns: VP_OK; VP_ERR_RANGE: an option outside its range; the sink's error
 * rule:    as torch, with two exceptions. If there are stacks, FLOPs are under their own heading (torch swaps these two
 *          columns). If a share of the ceiling exceeds 100 %, a line below the table explains it. An empty table prints
 *          nothing
 * source:  torch 2.15 torch/autograd/profiler_util.py _build_table */
VP_API vp_result vp_ops_print_torch(const vp_ops *ops, const vp_ops_print_options *options, vp_text_sink sink,
                                    void *user);
/* Prints the columns of print_stats(): ncalls tottime percall cumtime percall filename:lineno(function), in seconds of
 * ops->clock. Other groupings follow the name, in brackets. Only the options row_limit and decimals are used. Returns
 * the same as vp_ops_print_torch.
 * source:  CPython 3.11 Lib/pstats.py */
VP_API vp_result vp_ops_print_cprofile(const vp_ops *ops, const vp_ops_print_options *options, vp_text_sink sink,
                                       void *user);
/* Prints all rows as CSV. The columns are the members of vp_op and vp_op_rates; stack frames are "file(line): name",
 * separated by "; ". */
VP_API vp_result vp_ops_print_csv(const vp_ops *ops, vp_text_sink sink, void *user);
/* Prints folded stacks for FlameGraph and speedscope: "outermost;..;innermost nanoseconds", one line per row with self
 * time on ops->clock. The frames are the row's stack, or its name if it has none; for whole stacks, group by
 * VP_OP_STACK_LIMIT frames. In a row with a block, the frame "block N" encloses its part or, without a part, the row
 * itself.
 * returns: as vp_ops_print_csv
 * source:  brendangregg/FlameGraph, flamegraph.pl: input format */
VP_API vp_result vp_ops_print_folded(const vp_ops *ops, vp_text_sink sink, void *user);

#define VP_OPS_SCHEMA "vlmprof-ops-1"
/* Writes a table as one JSON value. vp_ops_read_json reads it back, and it can then be sorted by another key.
 * returns: writer->result
 * rule:    {"schema": "vlmprof-ops-1", "group_by": ["shape" ..], "group_by_stack_n", "clock": "host" | "device",
 *          "sort_key": text or null, "device_name", "ceilings": {"bytes_per_s", "flops_per_s"}, "dropped": {"calls",
 *          "host_ns", "device_ns"}, "rows": [{...}]}; a row has the members of vp_op by name. "shape" is an array, of
 *          arrays if vp_op has `shapes`; "*" is several; "stack" contains {"name", "file", "line"}; a missing value is
 *          null. For readers, a row also has "host_average_ns", "device_average_ns", "self_percent" (of ops->clock) and
 *          the members of vp_op_rates, or null */
VP_API vp_result vp_ops_write_json(vp_json_writer *writer, const vp_ops *ops);
/* Reads a table that vp_ops_write_json wrote. Derived numbers are not read; unknown keys are skipped.
 * in:      object  the node of that value; 0 for a whole text
 *          ops     rows and capacity as vp_ops_init set them; the grouping is replaced by that of the text
 *          text    char [capacity]  receives all names; the size of the JSON text is always enough
 * returns: VP_OK; VP_ERR_CAPACITY: more rows than fit, or `text` too small; VP_ERR_MISMATCH: another schema;
 *          VP_ERR_FORMAT: a member that is missing or has the wrong type; VP_ERR_RANGE: a row that vp_ops_add rejects,
 *          or two rows with one key. On failure the table is empty */
VP_API vp_result vp_ops_read_json(vp_ops *ops, const vp_json *json, uint32_t object, char *text, size_t capacity,
                                  vp_error *error);

/* ---- schedule: the steps of a loop to record. A step is one request, or whatever the caller counts, from 0 */
typedef enum vp_schedule_state { VP_SCHEDULE_NONE, VP_SCHEDULE_WARMUP, VP_SCHEDULE_RECORD,
                                 VP_SCHEDULE_RECORD_AND_SAVE } vp_schedule_state;
/* "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"; NULL for another value */
VP_API const char *vp_schedule_state_name(vp_schedule_state state);
/* skip_first steps, then cycles of wait, warmup and active steps */
typedef struct vp_schedule {
    int64_t skip_first;
    int64_t wait, warmup, active;    /* active >= 1 */
    int64_t repeat;                  /* cycles; 0: until the loop ends */
    int skip_first_wait;             /* 1: the first cycle has no wait */
    /* distance between the starts of cycles in steps, at least wait + warmup + active; 0: no gap between cycles */
    int64_t every_n_steps;
} vp_schedule;
typedef struct vp_schedule_step {
    vp_schedule_state state;
    int64_t cycle;                   /* cycle number from 0; -1 before the first and after the last cycle */
    /* 1: save the recording after this step; the state is then RECORD_AND_SAVE */
    int ends_cycle;
} vp_schedule_step;
typedef struct vp_schedule_sum {
    int64_t cycles;                  /* completed cycles, each of them saved */
    int64_t recorded_steps;          /* active steps of completed cycles */
    int64_t partial_steps;           /* active steps of an unfinished last cycle; if above 0, save them too */
} vp_schedule_sum;
VP_API vp_schedule vp_schedule_default(void); /* skip 0, wait 1, warmup 1, active 3, repeat 1, every_n_steps 0 */
/* Checks a schedule.
 * out:     no_warmup  may be NULL; 1: warmup is 0, so the first recorded step includes start-up costs and the caller
 *                     should warn
 * returns: VP_OK; VP_ERR_RANGE: active < 1, another number below 0, skip_first_wait not 0 or 1, every_n_steps shorter
 *          than a cycle, or a number above 2^53 */
VP_API vp_result vp_schedule_check(const vp_schedule *schedule, int *no_warmup, vp_error *error);
/* The state of a step.
 * returns: VP_OK; VP_ERR_RANGE: step < 0 or above 2^53, or vp_schedule_check rejects the schedule
 * source:  torch.profiler.schedule of torch 2.15; every_n_steps is an addition */
VP_API vp_result vp_schedule_at(const vp_schedule *schedule, int64_t step, vp_schedule_step *out);
/* Counts the records of a loop of `steps` steps, and those to be saved at its end. Returns the same as
 * vp_schedule_at. */
VP_API vp_result vp_schedule_count(const vp_schedule *schedule, int64_t steps, vp_schedule_sum *sum);

VP_EXTERN_C_END
#endif /* VLMPROF_RANGES_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_RANGES_IMPLEMENTATION)) \
    && !defined(VLMPROF_RANGES_IMPLEMENTATION_DONE)
#define VLMPROF_RANGES_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

VP_API vp_result vp_ranges_init(vp_ranges *ranges, vp_range_record *records, int64_t capacity, int32_t thread,
                                const char *thread_name, const vp_range_hooks *hooks) {
    if (capacity < 0 || (capacity > 0 && !records) || (hooks && (!hooks->push || !hooks->pop))) return VP_ERR_RANGE;
    memset(ranges, 0, sizeof *ranges);
    ranges->records = records;
    ranges->capacity = capacity;
    ranges->open = -1;
    ranges->thread = thread;
    ranges->thread_name = thread_name;
    ranges->hooks = hooks;
    return VP_OK;
}
/* *sum += value. Returns 0 if that overflows (*sum is then unchanged). */
static inline int vp_impl_int64_add(int64_t *sum, int64_t value) {
    if (value > 0 ? *sum > INT64_MAX - value : *sum < INT64_MIN - value) return 0;
    *sum += value;
    return 1;
}
#undef vp_range_begin /* an earlier include of this file may have defined them, for VLMPROF_OFF */
#undef vp_range_set
#undef vp_range_end
/* The clock is read last when a range begins and first when it ends, so that the measured time excludes bookkeeping. */
VP_API vp_result vp_range_begin(vp_ranges *ranges, const char *name, const char *file, int32_t line) {
    if (!name) return VP_ERR_RANGE;
    if (ranges->hooks) ranges->hooks->push(ranges->hooks->user, name);
    /* true until the range ends, so ranges nested in one without a record have none either */
    if (ranges->count >= ranges->capacity) {
        ranges->dropped++;
        if (ranges->dropped_open++ == 0) ranges->dropped_begin_ns = vp_clock_ns();
        return VP_ERR_CAPACITY;
    }
    vp_range_record *range = &ranges->records[ranges->count];
    memset(&range->payload, 0, sizeof range->payload);
    range->name = name;
    range->file = file;
    range->line = line;
    range->parent = ranges->open;
    range->depth = ranges->open >= 0 ? ranges->records[ranges->open].depth + 1 : 0;
    range->end_ns = INT64_MIN;
    range->children_ns = 0;
    range->children_memory_bytes = 0;
    ranges->open = ranges->count++;
    range->begin_ns = vp_clock_ns();
    return VP_OK;
}
VP_API vp_result vp_range_set(vp_ranges *ranges, const vp_range_payload *payload) {
    if (payload->dimensions < 0 || payload->dimensions > 4 || payload->flops < 0 || payload->bytes < 0)
        return VP_ERR_RANGE;
    if (ranges->dropped_open > 0) return VP_ERR_CAPACITY;
    if (ranges->open < 0) return VP_ERR_STATE;
    ranges->records[ranges->open].payload = *payload;
    return VP_OK;
}
VP_API vp_result vp_range_end(vp_ranges *ranges) {
    const int64_t now = vp_clock_ns();
    vp_result result = VP_OK;
    if (ranges->dropped_open > 0) {
        if (--ranges->dropped_open == 0) {
            ranges->dropped_ns += now - ranges->dropped_begin_ns;
            if (ranges->open >= 0) ranges->records[ranges->open].children_ns += now - ranges->dropped_begin_ns;
        }
    } else {
        if (ranges->open < 0) return VP_ERR_STATE;
        vp_range_record *range = &ranges->records[ranges->open];
        range->end_ns = now;
        ranges->open = range->parent;
        if (range->parent >= 0) {
            int64_t memory_bytes = range->children_memory_bytes;
            vp_range_record *parent = &ranges->records[range->parent];
            parent->children_ns += now - range->begin_ns;
            if (!vp_impl_int64_add(&memory_bytes, range->payload.memory_bytes)
                || !vp_impl_int64_add(&parent->children_memory_bytes, memory_bytes))
                result = VP_ERR_RANGE;
        }
    }
    if (ranges->hooks) ranges->hooks->pop(ranges->hooks->user);
    return result;
}
VP_API vp_result vp_ranges_clear(vp_ranges *ranges) {
    if (ranges->open >= 0 || ranges->dropped_open > 0) return VP_ERR_STATE;
    ranges->count = ranges->dropped = ranges->dropped_ns = 0;
    return VP_OK;
}

/* ---- table of operations. Rows are found by a hash of the grouping members. Hash chains are stored in the rows: row i
 * contains the head (`bucket`) of the chain with hash % capacity = i, and the `next` of its own chain. */
VP_API vp_op vp_op_default(void) {
    vp_op op;
    memset(&op, 0, sizeof op);
    op.block = op.step = VP_OP_NONE;
    op.calls = op.primitive_calls = 1;
    return op;
}
VP_API vp_result vp_ops_init(vp_ops *ops, vp_op *rows, int64_t capacity, uint32_t group_by, int32_t group_by_stack_n) {
    if (capacity < 0 || (capacity > 0 && !rows) || (group_by & ~(uint32_t)VP_OPS_BY_ALL)) return VP_ERR_RANGE;
    if (group_by_stack_n < 0 || group_by_stack_n > VP_OP_STACK_LIMIT) return VP_ERR_RANGE;
    memset(ops, 0, sizeof *ops);
    ops->rows = rows;
    ops->capacity = capacity;
    ops->group_by = group_by;
    ops->group_by_stack_n = group_by_stack_n;
    ops->clock = VP_OPS_HOST;
    for (int64_t i = 0; i < capacity; i++) rows[i].bucket = 0;
    return VP_OK;
}
static int vp_impl_op_text_good(const char *text) {
    size_t bytes = text ? strlen(text) : 0;
    return !text || vp_utf8_valid_bytes(text, bytes) == bytes;
}
/* checks that an op is well-formed, except for its numbers */
static vp_result vp_impl_op_check_key(const vp_op *op) {
    if (op->stack_count < 0 || op->stack_count > VP_OP_STACK_LIMIT) return VP_ERR_RANGE;
    if (op->dimensions != VP_OP_SEVERAL && (op->dimensions < 0 || op->dimensions > 4)) return VP_ERR_RANGE;
    if (op->block < VP_OP_SEVERAL || op->step < VP_OP_SEVERAL) return VP_ERR_RANGE;
    if (!op->name || !op->name[0] || !vp_impl_op_text_good(op->name)) return VP_ERR_FORMAT;
    if (!vp_impl_op_text_good(op->stage) || !vp_impl_op_text_good(op->part) || !vp_impl_op_text_good(op->file)
        || !vp_impl_op_text_good(op->shapes))
        return VP_ERR_FORMAT;
    for (int32_t i = 0; i < op->stack_count; i++)
        if (!op->stack[i].name || !vp_impl_op_text_good(op->stack[i].name) || !vp_impl_op_text_good(op->stack[i].file))
            return VP_ERR_FORMAT;
    return VP_OK;
}
static vp_result vp_impl_op_check_numbers(const vp_op *op) {
    if (op->calls < 1 || op->primitive_calls < 0 || op->primitive_calls > op->calls) return VP_ERR_RANGE;
    if (op->host_self_ns < 0 || op->host_self_ns > op->host_total_ns || op->device_self_ns < 0
        || op->device_self_ns > op->device_total_ns)
        return VP_ERR_RANGE;
    if (op->host_cumulative_ns < 0 || op->host_cumulative_ns > op->host_total_ns || op->flops < 0 || op->bytes < 0)
        return VP_ERR_RANGE;
    if (op->host_min_ns < 0 || op->host_min_ns > op->host_max_ns || op->host_max_ns > op->host_total_ns)
        return VP_ERR_RANGE;
    if (op->device_min_ns < 0 || op->device_min_ns > op->device_max_ns || op->device_max_ns > op->device_total_ns)
        return VP_ERR_RANGE;
    return VP_OK;
}
/* "ProfilerStep#12" -> "ProfilerStep*" */
static const char *vp_impl_op_name(const char *name) {
    static const char step[] = "ProfilerStep#";
    return strncmp(name, step, sizeof step - 1) == 0 ? "ProfilerStep*" : name;
}
static uint64_t vp_impl_hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *raw = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ raw[i]) * UINT64_C(0x100000001B3); /* FNV-1a */
    return hash;
}
static uint64_t vp_impl_hash_text(uint64_t hash, const char *text) {
    return text ? vp_impl_hash_bytes(hash, text, strlen(text) + 1) : hash * 31 + 1;
}
static uint64_t vp_impl_op_hash(const vp_ops *ops, const vp_op *op) {
    uint64_t hash = vp_impl_hash_text(UINT64_C(0xCBF29CE484222325), op->name);
    if (ops->group_by & VP_OPS_BY_STAGE) hash = vp_impl_hash_text(hash, op->stage);
    if (ops->group_by & VP_OPS_BY_PART) hash = vp_impl_hash_text(hash, op->part);
    if (ops->group_by & VP_OPS_BY_BLOCK) hash = vp_impl_hash_bytes(hash, &op->block, sizeof op->block);
    if (ops->group_by & VP_OPS_BY_STEP) hash = vp_impl_hash_bytes(hash, &op->step, sizeof op->step);
    if (ops->group_by & VP_OPS_BY_PLACE)
        hash = vp_impl_hash_bytes(vp_impl_hash_text(hash, op->file), &op->line, sizeof op->line);
    if ((ops->group_by & VP_OPS_BY_SHAPE) && op->dimensions > 0)
        hash = vp_impl_hash_bytes(hash, op->shape, (size_t)op->dimensions * 4);
    if (ops->group_by & VP_OPS_BY_SHAPE) hash = vp_impl_hash_text(hash, op->shapes);
    for (int32_t i = 0; i < op->stack_count && i < ops->group_by_stack_n; i++) {
        hash = vp_impl_hash_text(vp_impl_hash_text(hash, op->stack[i].name), op->stack[i].file);
        hash = vp_impl_hash_bytes(hash, &op->stack[i].line, sizeof op->stack[i].line);
    }
    return hash ^ hash >> 32; /* mixes the high bits, which depend on all input, into the low ones, which a small table
                               * uses */
}
static int vp_impl_compare_int(int64_t left, int64_t right) { return left < right ? -1 : left > right; }
static int vp_impl_compare_text(const char *left, const char *right) {
    if (left == right) return 0;
    return !left ? -1 : !right ? 1 : strcmp(left, right);
}
static int vp_impl_compare_shape(const vp_op *left, const vp_op *right) {
    int32_t i;
    for (i = 0; i < left->dimensions && i < right->dimensions; i++)
        if (left->shape[i] != right->shape[i]) return left->shape[i] < right->shape[i] ? -1 : 1;
    i = vp_impl_compare_int(left->dimensions, right->dimensions);
    return i ? i : vp_impl_compare_text(left->shapes, right->shapes);
}
static int vp_impl_compare_place(const char *file_a, int32_t line_a, const char *file_b, int32_t line_b) {
    int order = vp_impl_compare_text(file_a, file_b);
    return order ? order : vp_impl_compare_int(line_a, line_b);
}
static int vp_impl_compare_stack(const vp_op *left, const vp_op *right, int32_t frames) {
    int order = 0;
    for (int32_t i = 0; !order && i < frames && i < left->stack_count && i < right->stack_count; i++) {
        order = vp_impl_compare_text(left->stack[i].name, right->stack[i].name);
        if (!order)
            order = vp_impl_compare_place(left->stack[i].file, left->stack[i].line, right->stack[i].file,
                                          right->stack[i].line);
    }
    if (order) return order;
    return vp_impl_compare_int(left->stack_count < frames ? left->stack_count : frames,
                               right->stack_count < frames ? right->stack_count : frames);
}
/* the order of two ops by the grouping members of this table; 0 means the same row */
static int vp_impl_op_compare_key(const vp_ops *ops, const vp_op *left, const vp_op *right) {
    int order = vp_impl_compare_text(left->name, right->name);
    if (!order && (ops->group_by & VP_OPS_BY_STAGE)) order = vp_impl_compare_text(left->stage, right->stage);
    if (!order && (ops->group_by & VP_OPS_BY_PART)) order = vp_impl_compare_text(left->part, right->part);
    if (!order && (ops->group_by & VP_OPS_BY_BLOCK)) order = vp_impl_compare_int(left->block, right->block);
    if (!order && (ops->group_by & VP_OPS_BY_STEP)) order = vp_impl_compare_int(left->step, right->step);
    if (!order && (ops->group_by & VP_OPS_BY_SHAPE)) order = vp_impl_compare_shape(left, right);
    if (!order && (ops->group_by & VP_OPS_BY_PLACE))
        order = vp_impl_compare_place(left->file, left->line, right->file, right->line);
    if (!order) order = vp_impl_compare_stack(left, right, ops->group_by_stack_n);
    return order;
}
/* Returns 1 + row, or 0 if there is none; *bucket is the head of its chain. The capacity must be at least 1. */
static int64_t vp_impl_ops_find(const vp_ops *ops, const vp_op *op, int64_t *bucket) {
    *bucket = (int64_t)(vp_impl_op_hash(ops, op) % (uint64_t)ops->capacity);
    int64_t at = ops->rows[*bucket].bucket;
    while (at && vp_impl_op_compare_key(ops, &ops->rows[at - 1], op) != 0) at = ops->rows[at - 1].next;
    return at;
}
static int vp_impl_op_sum(vp_op *row, const vp_op *op) {
    if (op->host_min_ns < row->host_min_ns) row->host_min_ns = op->host_min_ns;
    if (op->host_max_ns > row->host_max_ns) row->host_max_ns = op->host_max_ns;
    if (op->device_min_ns < row->device_min_ns) row->device_min_ns = op->device_min_ns;
    if (op->device_max_ns > row->device_max_ns) row->device_max_ns = op->device_max_ns;
    if (op->memory_peak_bytes > row->memory_peak_bytes) row->memory_peak_bytes = op->memory_peak_bytes;
    return vp_impl_int64_add(&row->calls, op->calls) && vp_impl_int64_add(&row->primitive_calls, op->primitive_calls)
           && vp_impl_int64_add(&row->host_total_ns, op->host_total_ns)
           && vp_impl_int64_add(&row->host_self_ns, op->host_self_ns)
           && vp_impl_int64_add(&row->host_cumulative_ns, op->host_cumulative_ns)
           && vp_impl_int64_add(&row->device_total_ns, op->device_total_ns)
           && vp_impl_int64_add(&row->device_self_ns, op->device_self_ns) && vp_impl_int64_add(&row->flops, op->flops)
           && vp_impl_int64_add(&row->bytes, op->bytes)
           && vp_impl_int64_add(&row->host_memory_bytes, op->host_memory_bytes)
           && vp_impl_int64_add(&row->host_self_memory_bytes, op->host_self_memory_bytes)
           && vp_impl_int64_add(&row->device_memory_bytes, op->device_memory_bytes)
           && vp_impl_int64_add(&row->device_self_memory_bytes, op->device_self_memory_bytes);
}
/* marks the members of a row in which its calls differ, with "*" or VP_OP_SEVERAL */
static void vp_impl_op_blur(vp_op *row, const vp_op *op) {
    if (vp_impl_compare_text(row->stage, op->stage)) row->stage = "*";
    if (vp_impl_compare_text(row->part, op->part)) row->part = "*";
    if (row->block != op->block) row->block = VP_OP_SEVERAL;
    if (row->step != op->step) row->step = VP_OP_SEVERAL;
    if (vp_impl_compare_shape(row, op)) {
        row->dimensions = VP_OP_SEVERAL;
        row->shapes = NULL;
    }
    if (vp_impl_compare_place(row->file, row->line, op->file, op->line)) {
        row->file = NULL;
        row->line = 0;
    }
}
VP_API vp_result vp_ops_add(vp_ops *ops, const vp_op *op) {
    vp_op one = *op, *row;
    vp_result result = vp_impl_op_check_key(op);
    int64_t at = 0, bucket = 0, next;
    if (result != VP_OK) return result;
    one.name = vp_impl_op_name(op->name);
    if (one.stack_count > ops->group_by_stack_n) one.stack_count = ops->group_by_stack_n;
    if (one.calls == 1) {
        one.host_cumulative_ns = one.primitive_calls ? one.host_total_ns : 0;
        one.host_min_ns = one.host_max_ns = one.host_total_ns;
        one.device_min_ns = one.device_max_ns = one.device_total_ns;
    }
    result = vp_impl_op_check_numbers(&one);
    if (result != VP_OK) return result;
    if (ops->capacity > 0) at = vp_impl_ops_find(ops, &one, &bucket);
    if (!at && ops->count >= ops->capacity) {
        if (!vp_impl_int64_add(&ops->dropped_calls, one.calls)
            || !vp_impl_int64_add(&ops->dropped_host_ns, one.host_self_ns)
            || !vp_impl_int64_add(&ops->dropped_device_ns, one.device_self_ns))
            return VP_ERR_RANGE;
        return VP_ERR_CAPACITY;
    }
    if (at) {
        vp_op sum = ops->rows[at - 1];
        if (!vp_impl_op_sum(&sum, &one)) return VP_ERR_RANGE;
        vp_impl_op_blur(&sum, &one);
        ops->rows[at - 1] = sum;
        return VP_OK;
    }
    row = &ops->rows[ops->count];
    next = row->bucket; /* belongs to the unrelated chain that begins here */
    *row = one;
    row->bucket = next;
    row->next = ops->rows[bucket].bucket;
    ops->rows[bucket].bucket = ++ops->count;
    ops->sort_key = NULL; /* a new row is at the end */
    return VP_OK;
}
/* the op of a range, without its numbers */
static vp_op vp_impl_op_of_range(const vp_ops *ops, const vp_ranges *ranges, const vp_range_record *range) {
    vp_op op = vp_op_default();
    op.name = vp_impl_op_name(range->name);
    op.file = range->file;
    op.line = range->line;
    op.dimensions = range->payload.dimensions;
    memcpy(op.shape, range->payload.shape, sizeof op.shape);
    while (op.stack_count < ops->group_by_stack_n) {
        op.stack[op.stack_count].name = range->name;
        op.stack[op.stack_count].file = range->file;
        op.stack[op.stack_count++].line = range->line;
        if (range->parent < 0) break;
        range = &ranges->records[range->parent];
    }
    return op;
}
/* Returns 1 if a range of the same row encloses this one. */
static int vp_impl_range_nested(const vp_ops *ops, const vp_ranges *ranges, const vp_range_record *range,
                                const vp_op *op) {
    for (int64_t at = range->parent; at >= 0; at = ranges->records[at].parent) {
        const vp_range_record *above = &ranges->records[at];
        if (strcmp(vp_impl_op_name(above->name), op->name)) continue;
        vp_op outer = vp_impl_op_of_range(ops, ranges, above);
        if (vp_impl_op_compare_key(ops, &outer, op) == 0) return 1;
    }
    return 0;
}
static vp_result vp_impl_ops_add_range(vp_ops *ops, const vp_ranges *ranges, const vp_range_record *range) {
    vp_op op = vp_impl_op_of_range(ops, ranges, range);
    op.host_total_ns = range->end_ns - range->begin_ns;
    op.host_self_ns = op.host_total_ns - range->children_ns;
    op.flops = range->payload.flops;
    op.bytes = range->payload.bytes;
    op.host_self_memory_bytes = op.host_memory_bytes = range->payload.memory_bytes;
    if (!vp_impl_int64_add(&op.host_memory_bytes, range->children_memory_bytes)) return VP_ERR_RANGE;
    if (vp_impl_range_nested(ops, ranges, range, &op)) op.primitive_calls = 0;
    return vp_ops_add(ops, &op);
}
VP_API vp_result vp_ops_add_ranges(vp_ops *ops, const vp_ranges *ranges) {
    vp_result result = VP_OK, one;
    if (ranges->open >= 0 || ranges->dropped_open > 0) return VP_ERR_STATE;
    for (int64_t i = 0; i < ranges->count; i++) {
        one = vp_impl_ops_add_range(ops, ranges, &ranges->records[i]);
        if (one != VP_OK && one != VP_ERR_CAPACITY) return one;
        if (one != VP_OK) result = one;
    }
    if (!vp_impl_int64_add(&ops->dropped_calls, ranges->dropped)
        || !vp_impl_int64_add(&ops->dropped_host_ns, ranges->dropped_ns))
        return VP_ERR_RANGE;
    return result;
}
VP_API vp_result vp_ops_merge(vp_ops *ops, const vp_ops *from) {
    vp_result result = VP_OK, one;
    for (int64_t i = 0; i < from->count; i++) {
        one = vp_ops_add(ops, &from->rows[i]);
        if (one != VP_OK && one != VP_ERR_CAPACITY) return one;
        if (one != VP_OK) result = one;
    }
    if (!vp_impl_int64_add(&ops->dropped_calls, from->dropped_calls)
        || !vp_impl_int64_add(&ops->dropped_host_ns, from->dropped_host_ns)
        || !vp_impl_int64_add(&ops->dropped_device_ns, from->dropped_device_ns))
        return VP_ERR_RANGE;
    return result;
}
VP_API vp_result vp_ops_total(const vp_ops *ops, vp_op *total) {
    vp_op sum = vp_op_default();
    sum.name = "Total";
    sum.calls = sum.primitive_calls = 0;
    if (ops->count > 0) {
        sum.host_min_ns = ops->rows[0].host_min_ns;
        sum.device_min_ns = ops->rows[0].device_min_ns;
    }
    for (int64_t i = 0; i < ops->count; i++)
        if (!vp_impl_op_sum(&sum, &ops->rows[i])) return VP_ERR_RANGE;
    *total = sum;
    return VP_OK;
}
VP_API vp_op_rates vp_op_rate(const vp_op *op, vp_ops_clock clock, vp_op_ceilings ceilings) {
    const double ns = (double)(clock == VP_OPS_DEVICE ? op->device_self_ns : op->host_self_ns);
    double memory_ns = 0.0, compute_ns = 0.0;
    vp_op_rates rates;
    rates.gb_per_s = ns > 0.0 && op->bytes > 0 ? (double)op->bytes / ns : (double)NAN;
    rates.tflop_per_s = ns > 0.0 && op->flops > 0 ? (double)op->flops / ns / 1e3 : (double)NAN;
    if (ceilings.bytes_per_s > 0.0) memory_ns = (double)op->bytes / ceilings.bytes_per_s * 1e9;
    if (ceilings.flops_per_s > 0.0) compute_ns = (double)op->flops / ceilings.flops_per_s * 1e9;
    rates.memory_bound = memory_ns > compute_ns;
    rates.ceiling_percent = rates.memory_bound ? memory_ns : compute_ns;
    rates.ceiling_percent = ns > 0.0 && rates.ceiling_percent > 0.0 ? 100.0 * rates.ceiling_percent / ns : (double)NAN;
    return rates;
}

/* ---- "file:line(name)" in pieces, as pstats names a function; without a file, "name", or "{name}" for "<name>" */
typedef struct vp_impl_pieces {
    const char *text[6];
    size_t bytes[6], count;
    char digits[24];
} vp_impl_pieces;

static void vp_impl_pieces_add(vp_impl_pieces *pieces, const char *text, size_t bytes) {
    pieces->text[pieces->count] = text;
    pieces->bytes[pieces->count++] = bytes;
}
static size_t vp_impl_int_text(char *digits, int64_t value) {
    char reversed[24];
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    size_t count = 0, i;
    do reversed[count++] = (char)('0' + rest % 10); while (rest /= 10);
    if (value < 0) reversed[count++] = '-';
    for (i = 0; i < count; i++) digits[i] = reversed[count - 1 - i];
    digits[count] = 0;
    return count;
}
static void vp_impl_standard_name(const vp_op *op, vp_impl_pieces *pieces) {
    const size_t bytes = strlen(op->name);
    const int angled = bytes >= 2 && op->name[0] == '<' && op->name[bytes - 1] == '>';
    pieces->count = 0;
    if (op->file) {
        vp_impl_pieces_add(pieces, op->file, strlen(op->file));
        vp_impl_pieces_add(pieces, ":", 1);
        vp_impl_pieces_add(pieces, pieces->digits, vp_impl_int_text(pieces->digits, op->line));
    }
    if (op->file || angled) vp_impl_pieces_add(pieces, op->file ? "(" : "{", 1);
    if (op->file || !angled) vp_impl_pieces_add(pieces, op->name, bytes);
    else vp_impl_pieces_add(pieces, op->name + 1, bytes - 2);
    if (op->file || angled) vp_impl_pieces_add(pieces, op->file ? ")" : "}", 1);
}
static int vp_impl_compare_pieces(const vp_impl_pieces *left, const vp_impl_pieces *right) {
    size_t left_piece = 0, right_piece = 0, left_at = 0, right_at = 0;
    for (;;) {
        while (left_piece < left->count && left_at == left->bytes[left_piece]) { left_piece++; left_at = 0; }
        while (right_piece < right->count && right_at == right->bytes[right_piece]) { right_piece++; right_at = 0; }
        if (left_piece == left->count || right_piece == right->count)
            return (left_piece < left->count) - (right_piece < right->count);
        if (left->text[left_piece][left_at] != right->text[right_piece][right_at])
            return (unsigned char)left->text[left_piece][left_at] < (unsigned char)right->text[right_piece][right_at]
                       ? -1
                       : 1;
        left_at++;
        right_at++;
    }
}

/* ---- order of the rows */
typedef enum vp_impl_sort {
    VP_IMPL_SORT_HOST_AVERAGE, VP_IMPL_SORT_HOST_TOTAL, VP_IMPL_SORT_HOST_SELF, VP_IMPL_SORT_DEVICE_AVERAGE,
    VP_IMPL_SORT_DEVICE_TOTAL, VP_IMPL_SORT_DEVICE_SELF, VP_IMPL_SORT_HOST_MEMORY, VP_IMPL_SORT_HOST_SELF_MEMORY,
    VP_IMPL_SORT_DEVICE_MEMORY, VP_IMPL_SORT_DEVICE_SELF_MEMORY, VP_IMPL_SORT_CALLS, VP_IMPL_SORT_PRIMITIVE,
    VP_IMPL_SORT_FLOPS, VP_IMPL_SORT_BYTES, VP_IMPL_SORT_CUMULATIVE, VP_IMPL_SORT_SELF, VP_IMPL_SORT_NAME,
    VP_IMPL_SORT_FILE, VP_IMPL_SORT_LINE, VP_IMPL_SORT_NAME_FILE_LINE, VP_IMPL_SORT_STANDARD_NAME
} vp_impl_sort;
typedef struct vp_impl_sort_key { const char *name, *meaning; vp_impl_sort sort; } vp_impl_sort_key;
static const vp_impl_sort_key vp_impl_sort_keys[] = {
#define VP_IMPL_SORT_KEY(name, sort, meaning) { name, meaning, VP_IMPL_SORT_##sort },
    VP_OPS_KEYS(VP_IMPL_SORT_KEY)
#undef VP_IMPL_SORT_KEY
};
enum { VP_IMPL_SORT_KEYS = (int)(sizeof vp_impl_sort_keys / sizeof *vp_impl_sort_keys) };

VP_API const char *vp_ops_key_name(int32_t index) {
    return index >= 0 && index < VP_IMPL_SORT_KEYS ? vp_impl_sort_keys[index].name : NULL;
}
static const vp_impl_sort_key *vp_impl_sort_find(const char *name) {
    for (int i = 0; name && i < VP_IMPL_SORT_KEYS; i++)
        if (strcmp(vp_impl_sort_keys[i].name, name) == 0) return &vp_impl_sort_keys[i];
    return NULL;
}
static int64_t vp_impl_op_self(const vp_op *op, vp_ops_clock clock) {
    return clock == VP_OPS_DEVICE ? op->device_self_ns : op->host_self_ns;
}
static int64_t vp_impl_op_cumulative(const vp_op *op, vp_ops_clock clock) {
    return clock == VP_OPS_DEVICE ? op->device_total_ns : op->host_cumulative_ns;
}
static int64_t vp_impl_sort_number(const vp_op *op, vp_impl_sort sort, vp_ops_clock clock) {
    switch (sort) {
        case VP_IMPL_SORT_HOST_TOTAL: return op->host_total_ns;
        case VP_IMPL_SORT_HOST_SELF: return op->host_self_ns;
        case VP_IMPL_SORT_DEVICE_TOTAL: return op->device_total_ns;
        case VP_IMPL_SORT_DEVICE_SELF: return op->device_self_ns;
        case VP_IMPL_SORT_HOST_MEMORY: return op->host_memory_bytes;
        case VP_IMPL_SORT_HOST_SELF_MEMORY: return op->host_self_memory_bytes;
        case VP_IMPL_SORT_DEVICE_MEMORY: return op->device_memory_bytes;
        case VP_IMPL_SORT_DEVICE_SELF_MEMORY: return op->device_self_memory_bytes;
        case VP_IMPL_SORT_CALLS: return op->calls;
        case VP_IMPL_SORT_PRIMITIVE: return op->primitive_calls;
        case VP_IMPL_SORT_FLOPS: return op->flops;
        case VP_IMPL_SORT_BYTES: return op->bytes;
        case VP_IMPL_SORT_CUMULATIVE: return vp_impl_op_cumulative(op, clock);
        case VP_IMPL_SORT_SELF: return vp_impl_op_self(op, clock);
        default: return 0;
    }
}
static int vp_impl_compare_average(int64_t total_a, int64_t calls_a, int64_t total_b, int64_t calls_b) {
    const double left = (double)total_a / (double)calls_a, right = (double)total_b / (double)calls_b;
    return left < right ? -1 : left > right;
}
/* pstats shows a missing file as "~" */
static const char *vp_impl_op_file(const vp_op *op) { return op->file ? op->file : "~"; }

/* Returns a number below 0 if row `left` precedes row `right`. */
static int vp_impl_op_order(const vp_ops *ops, vp_impl_sort sort, const vp_op *left, const vp_op *right) {
    vp_impl_pieces left_name, right_name;
    int order = 0;
    switch (sort) {
    case VP_IMPL_SORT_HOST_AVERAGE:
        order = vp_impl_compare_average(right->host_total_ns, right->calls, left->host_total_ns, left->calls);
        break;
    case VP_IMPL_SORT_DEVICE_AVERAGE:
        order = vp_impl_compare_average(right->device_total_ns, right->calls, left->device_total_ns, left->calls);
        break;
    case VP_IMPL_SORT_FILE: order = vp_impl_compare_text(vp_impl_op_file(left), vp_impl_op_file(right)); break;
    case VP_IMPL_SORT_LINE: order = vp_impl_compare_int(left->line, right->line); break;
    case VP_IMPL_SORT_NAME: break;
    case VP_IMPL_SORT_NAME_FILE_LINE:
        order = vp_impl_compare_text(left->name, right->name);
        if (!order)
            order = vp_impl_compare_place(vp_impl_op_file(left), left->line, vp_impl_op_file(right), right->line);
        break;
    case VP_IMPL_SORT_STANDARD_NAME:
        vp_impl_standard_name(left, &left_name);
        vp_impl_standard_name(right, &right_name);
        order = vp_impl_compare_pieces(&left_name, &right_name);
        break;
    default:
        order = vp_impl_compare_int(vp_impl_sort_number(right, sort, ops->clock),
                                    vp_impl_sort_number(left, sort, ops->clock));
    }
    return order ? order : vp_impl_op_compare_key(ops, left, right);
}
static void vp_impl_ops_swap(vp_op *left, vp_op *right) {
    const vp_op copy = *left;
    *left = *right;
    *right = copy;
}
static void vp_impl_ops_sift(const vp_ops *ops, vp_impl_sort sort, int64_t at, int64_t count) {
    int64_t child;
    for (; (child = at * 2 + 1) < count; at = child) {
        if (child + 1 < count && vp_impl_op_order(ops, sort, &ops->rows[child], &ops->rows[child + 1]) < 0) child++;
        if (vp_impl_op_order(ops, sort, &ops->rows[at], &ops->rows[child]) >= 0) return;
        vp_impl_ops_swap(&ops->rows[at], &ops->rows[child]);
    }
}
VP_API vp_result vp_ops_sort(vp_ops *ops, const char *key) {
    const vp_impl_sort_key *found = vp_impl_sort_find(key);
    if (!found) return VP_ERR_NOT_FOUND;
    /* heap sort: n log n for any rows; no two rows are equal, so it need not be stable */
    for (int64_t i = ops->count / 2 - 1; i >= 0; i--) vp_impl_ops_sift(ops, found->sort, i, ops->count);
    for (int64_t i = ops->count - 1; i > 0; i--) {
        vp_impl_ops_swap(&ops->rows[0], &ops->rows[i]);
        vp_impl_ops_sift(ops, found->sort, 0, i);
    }
    for (int64_t i = 0; i < ops->capacity; i++) ops->rows[i].bucket = 0;
    for (int64_t i = 0; i < ops->count; i++) { /* the rows moved: rebuild the chains */
        int64_t bucket = (int64_t)(vp_impl_op_hash(ops, &ops->rows[i]) % (uint64_t)ops->capacity);
        ops->rows[i].next = ops->rows[bucket].bucket;
        ops->rows[bucket].bucket = i + 1;
    }
    ops->sort_key = found->name;
    return VP_OK;
}

/* ---- printing */
/* the sink's first failure is kept */
typedef struct vp_impl_text { vp_text_sink sink; void *user; vp_result result; } vp_impl_text;

static void vp_impl_put_bytes(vp_impl_text *out, const char *text, size_t bytes) {
    if (out->result == VP_OK && bytes > 0) out->result = out->sink(out->user, text, bytes);
}
static void vp_impl_put(vp_impl_text *out, const char *text) { vp_impl_put_bytes(out, text, strlen(text)); }

static void vp_impl_put_repeated(vp_impl_text *out, char character, int64_t count) {
    char piece[64];
    memset(piece, character, sizeof piece);
    for (; count > (int64_t)sizeof piece; count -= (int64_t)sizeof piece) vp_impl_put_bytes(out, piece, sizeof piece);
    if (count > 0) vp_impl_put_bytes(out, piece, (size_t)count);
}
static void vp_impl_put_int(vp_impl_text *out, int64_t value) {
    char digits[24];
    vp_impl_put_bytes(out, digits, vp_impl_int_text(digits, value));
}
/* number of characters in a UTF-8 text */
static size_t vp_impl_characters(const char *text, size_t bytes) {
    size_t i, count = 0;
    for (i = 0; i < bytes; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}
/* the byte offset of character number `character` */
static size_t vp_impl_character_at(const char *text, size_t bytes, size_t character) {
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80 && character-- == 0) return i;
    return bytes;
}
/* A name can come from anywhere: control characters would break the table or the terminal. */
static void vp_impl_put_clean(vp_impl_text *out, const char *text, size_t bytes) {
    size_t at = 0;
    while (at < bytes) {
        const size_t shown = vp_utf8_visible_bytes(text + at, bytes - at);
        vp_impl_put_bytes(out, text + at, shown);
        at += shown;
        if (at < bytes) vp_impl_put(out, "?");
        at += vp_utf8_control(text + at, bytes - at);
    }
}
static void vp_impl_put_cell(vp_impl_text *out, const char *text, size_t bytes, int32_t width, int left) {
    const int64_t blanks = (int64_t)width - (int64_t)vp_impl_characters(text, bytes);
    if (!left) vp_impl_put_repeated(out, ' ', blanks);
    vp_impl_put_clean(out, text, bytes);
    if (left) vp_impl_put_repeated(out, ' ', blanks);
}
/* A finite number with a fixed count of decimals (0..9), as C's and Python's %.3f: the double's exact value, rounded
 * half to even. value * 10^decimals is high * 2^32 + low, at most 83 bits; at 9e18 and above, vp_number_format is used.
 * Returns the number of bytes without the NUL. */
static size_t vp_impl_fixed(double value, int32_t decimals, char out[48]) {
    const double magnitude = fabs(value);
    uint64_t mantissa, high, low, whole, power = 1;
    int32_t exponent, shift, i;
    for (i = 0; i < decimals; i++) power *= 10;
    if (!(magnitude < 9e18 / (double)power)) return vp_number_format(value, out);
    mantissa = (uint64_t)ldexp(frexp(magnitude, &exponent), 53);
    shift = 53 - exponent; /* magnitude = mantissa / 2^shift */
    low = (mantissa & UINT32_MAX) * power;
    high = (mantissa >> 32) * power + (low >> 32);
    low &= UINT32_MAX;
    if (shift <= 0) {
        whole = (mantissa << -shift) * power;
    } else if (shift > 84) {
        whole = 0;
    } else {
        const uint64_t half_high = shift > 32 ? UINT64_C(1) << (shift - 33) : 0,
                       half_low = shift > 32 ? 0 : UINT64_C(1) << (shift - 1);
        const uint64_t rest_high = shift > 32 ? high & ((half_high << 1) - 1) : 0,
                       rest_low = shift >= 32 ? low : low & ((half_low << 1) - 1);
        whole = shift >= 32 ? high >> (shift - 32) : high << (32 - shift) | low >> shift;
        if (rest_high != half_high ? rest_high > half_high
            : rest_low != half_low ? rest_low > half_low
                                   : (whole & 1) != 0)
            whole++;
    }
    out[0] = '-';
    size_t start = value < 0.0 || (value == 0.0 && 1.0 / value < 0.0) ? 1 : 0;
    size_t bytes = start + vp_impl_int_text(out + start, (int64_t)(whole / power));
    if (decimals > 0) out[bytes++] = '.';
    for (i = decimals; i > 0; i--, whole /= 10) out[bytes + (size_t)i - 1] = (char)('0' + whole % 10);
    bytes += (size_t)decimals;
    out[bytes] = 0;
    return bytes;
}

/* ---- torch's table */
VP_API vp_ops_print_options vp_ops_print_options_default(void) {
    vp_ops_print_options options;
    memset(&options, 0, sizeof options);
    options.row_limit = 100;
    options.max_name_column_width = 55;
    options.max_shapes_column_width = 80;
    options.max_src_column_width = 75;
    options.decimals = 3;
    return options;
}
typedef enum vp_impl_cell {
    VP_IMPL_CELL_NAME, VP_IMPL_CELL_HOST_SELF_PERCENT, VP_IMPL_CELL_HOST_SELF, VP_IMPL_CELL_HOST_TOTAL_PERCENT,
    VP_IMPL_CELL_HOST_TOTAL, VP_IMPL_CELL_HOST_AVERAGE, VP_IMPL_CELL_DEVICE_SELF, VP_IMPL_CELL_DEVICE_SELF_PERCENT,
    VP_IMPL_CELL_DEVICE_TOTAL, VP_IMPL_CELL_DEVICE_AVERAGE, VP_IMPL_CELL_HOST_MEMORY, VP_IMPL_CELL_HOST_SELF_MEMORY,
    VP_IMPL_CELL_DEVICE_MEMORY, VP_IMPL_CELL_DEVICE_SELF_MEMORY, VP_IMPL_CELL_CALLS, VP_IMPL_CELL_STAGE,
    VP_IMPL_CELL_PART, VP_IMPL_CELL_BLOCK, VP_IMPL_CELL_STEP, VP_IMPL_CELL_SHAPES, VP_IMPL_CELL_SOURCE,
    VP_IMPL_CELL_FLOPS, VP_IMPL_CELL_GB_PER_S, VP_IMPL_CELL_TFLOP_PER_S, VP_IMPL_CELL_CEILING, VP_IMPL_CELLS
} vp_impl_cell;
typedef struct vp_impl_column {
    vp_impl_cell cell;
    const char *before, *after;
    int names_device;
    int32_t width;
} vp_impl_column;
typedef struct vp_impl_table {
    const vp_ops *ops;
    const vp_ops_print_options *options;
    vp_impl_column columns[VP_IMPL_CELLS];
    int32_t count;
    int64_t host_self_ns, device_self_ns; /* sums over all rows */
    double flops_scale;
    vp_impl_text out;
} vp_impl_table;

static void vp_impl_table_column(vp_impl_table *table, vp_impl_cell cell, const char *before, const char *after,
                                 int names_device, int32_t width) {
    const vp_impl_column column = {cell, before, after, names_device, width};
    table->columns[table->count++] = column;
}
static int32_t vp_impl_limit_width(size_t longest, int32_t limit) {
    const int32_t width = longest > (size_t)INT32_MAX - 8 ? INT32_MAX - 4 : (int32_t)longest + 4;
    return limit >= 0 && width > limit ? limit : width;
}
/* the `shapes`, or the shape as text in `out`; "" if there is none */
static const char *vp_impl_op_shape_text(const vp_op *op, char out[64]) {
    size_t bytes = 0;
    if (op->shapes) return op->shapes;
    if (op->dimensions > 0) out[bytes++] = '[';
    for (int32_t i = 0; i < op->dimensions; i++) {
        if (i > 0) { out[bytes++] = ','; out[bytes++] = ' '; }
        bytes += vp_impl_int_text(out + bytes, op->shape[i]);
    }
    if (op->dimensions > 0) out[bytes++] = ']';
    out[bytes] = 0;
    return out;
}
/* "file(line): name" */
static void vp_impl_frame_pieces(const vp_op_frame *frame, vp_impl_pieces *pieces) {
    pieces->count = 0;
    if (frame->file) {
        vp_impl_pieces_add(pieces, frame->file, strlen(frame->file));
        vp_impl_pieces_add(pieces, "(", 1);
        vp_impl_pieces_add(pieces, pieces->digits, vp_impl_int_text(pieces->digits, frame->line));
        vp_impl_pieces_add(pieces, "): ", 3);
    }
    vp_impl_pieces_add(pieces, frame->name, strlen(frame->name));
}
static size_t vp_impl_pieces_characters(const vp_impl_pieces *pieces) {
    size_t i, count = 0;
    for (i = 0; i < pieces->count; i++) count += vp_impl_characters(pieces->text[i], pieces->bytes[i]);
    return count;
}
typedef struct vp_impl_widest { size_t name, stage, part, shape, frame; } vp_impl_widest;
static vp_impl_widest vp_impl_ops_widest(const vp_ops *ops) {
    vp_impl_widest widest = { 0, 0, 0, 0, 0 };
    vp_impl_pieces pieces;
    const char *shape;
    char text[64];
#define VP_IMPL_WIDEN(member, length) \
    do { const size_t now = (length); if (now > widest.member) widest.member = now; } while (0)
    for (int64_t i = 0; i < ops->count; i++) {
        const vp_op *op = &ops->rows[i];
        VP_IMPL_WIDEN(name, vp_impl_characters(op->name, strlen(op->name)));
        if (op->stage) VP_IMPL_WIDEN(stage, vp_impl_characters(op->stage, strlen(op->stage)));
        if (op->part) VP_IMPL_WIDEN(part, vp_impl_characters(op->part, strlen(op->part)));
        shape = vp_impl_op_shape_text(op, text);
        VP_IMPL_WIDEN(shape, vp_impl_characters(shape, strlen(shape)));
        for (int32_t k = 0; k < op->stack_count; k++) {
            vp_impl_frame_pieces(&op->stack[k], &pieces);
            VP_IMPL_WIDEN(frame, vp_impl_pieces_characters(&pieces));
        }
    }
#undef VP_IMPL_WIDEN
    return widest;
}
/* the columns after "# of Calls" */
static void vp_impl_table_choose_last(vp_impl_table *table, const vp_impl_widest *widest, int64_t least_flops) {
    static const char *const units[] = { "FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs" };
    const vp_ops *ops = table->ops;
    const vp_ops_print_options *options = table->options;
    const int32_t stage = vp_impl_limit_width(widest->stage, options->max_name_column_width);
    const int32_t part = vp_impl_limit_width(widest->part, options->max_name_column_width);
    if (ops->group_by & VP_OPS_BY_STAGE)
        vp_impl_table_column(table, VP_IMPL_CELL_STAGE, "Stage", "", 0, stage > 12 ? stage : 12);
    if (ops->group_by & VP_OPS_BY_PART)
        vp_impl_table_column(table, VP_IMPL_CELL_PART, "Part", "", 0, part > 12 ? part : 12);
    if (ops->group_by & VP_OPS_BY_BLOCK) vp_impl_table_column(table, VP_IMPL_CELL_BLOCK, "Block", "", 0, 12);
    if (ops->group_by & VP_OPS_BY_STEP) vp_impl_table_column(table, VP_IMPL_CELL_STEP, "Step", "", 0, 12);
    if ((ops->group_by & VP_OPS_BY_SHAPE) && widest->shape > 0)
        vp_impl_table_column(table, VP_IMPL_CELL_SHAPES, "Input Shapes", "", 0,
                             vp_impl_limit_width(widest->shape, options->max_shapes_column_width));
    if (widest->frame > 0)
        vp_impl_table_column(table, VP_IMPL_CELL_SOURCE, "Source Location", "", 0,
                             vp_impl_limit_width(widest->frame, options->max_src_column_width));
    if (options->with_flops && least_flops > 0) { /* the unit suits the smallest row, as in torch */
        double thousands = log10((double)least_flops) / 3.0;
        thousands = thousands > 5.0 ? 5.0 : thousands;
        table->flops_scale = pow(10.0, floor(thousands) * -3.0);
        vp_impl_table_column(table, VP_IMPL_CELL_FLOPS, "Total ", units[(int)thousands], 0, 12);
    }
    if (options->with_rates) {
        vp_impl_table_column(table, VP_IMPL_CELL_GB_PER_S, "GB/s", "", 0, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_TFLOP_PER_S, "TFLOP/s", "", 0, 12);
        if (ops->ceilings.bytes_per_s > 0.0 || ops->ceilings.flops_per_s > 0.0)
            vp_impl_table_column(table, VP_IMPL_CELL_CEILING, "% of ceiling", "", 0, 12);
    }
}
static void vp_impl_table_choose(vp_impl_table *table) {
    const vp_ops *ops = table->ops;
    const vp_impl_widest widest = vp_impl_ops_widest(ops);
    int has_device_time = 0, has_device_memory = 0;
    int64_t least_flops = 0, i;
    for (i = 0; i < ops->count; i++) {
        const vp_op *op = &ops->rows[i];
        has_device_time |= ops->device_name && op->device_self_ns > 0;
        has_device_memory |= ops->device_name && op->device_self_memory_bytes > 0;
        if (op->flops > 0 && (least_flops == 0 || op->flops < least_flops)) least_flops = op->flops;
    }
    vp_impl_table_column(table, VP_IMPL_CELL_NAME, "Name", "", 0,
                         vp_impl_limit_width(widest.name, table->options->max_name_column_width));
    vp_impl_table_column(table, VP_IMPL_CELL_HOST_SELF_PERCENT, "Self CPU %", "", 0, 12);
    vp_impl_table_column(table, VP_IMPL_CELL_HOST_SELF, "Self CPU", "", 0, 12);
    vp_impl_table_column(table, VP_IMPL_CELL_HOST_TOTAL_PERCENT, "CPU total %", "", 0, 12);
    vp_impl_table_column(table, VP_IMPL_CELL_HOST_TOTAL, "CPU total", "", 0, 12);
    vp_impl_table_column(table, VP_IMPL_CELL_HOST_AVERAGE, "CPU time avg", "", 0, 12);
    if (has_device_time) {
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_SELF, "Self ", "", 1, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_SELF_PERCENT, "Self ", " %", 1, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_TOTAL, "", " total", 1, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_AVERAGE, "", " time avg", 1, 12);
    }
    if (table->options->with_memory) {
        vp_impl_table_column(table, VP_IMPL_CELL_HOST_MEMORY, "CPU Mem", "", 0, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_HOST_SELF_MEMORY, "Self CPU Mem", "", 0, 12);
    }
    if (table->options->with_memory && has_device_memory) {
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_MEMORY, "", " Mem", 1, 12);
        vp_impl_table_column(table, VP_IMPL_CELL_DEVICE_SELF_MEMORY, "Self ", " Mem", 1, 12);
    }
    vp_impl_table_column(table, VP_IMPL_CELL_CALLS, "# of Calls", "", 0, 12);
    vp_impl_table_choose_last(table, &widest, least_flops);
}
/* 999.000us, 1.000ms, 1.000s */
static size_t vp_impl_time_text(double us, const char *unit, char out[64]) {
    if (!unit) unit = us >= 1e6 ? "s" : us >= 1e3 ? "ms" : "us";
    size_t bytes = vp_impl_fixed(unit[0] == 's' ? us / 1e6 : unit[0] == 'm' ? us / 1e3 : us, 3, out);
    memcpy(out + bytes, unit, strlen(unit) + 1);
    return bytes + strlen(unit);
}
static size_t vp_impl_percent_text(int64_t part_ns, int64_t whole_ns, char out[64]) {
    if (whole_ns == 0) {
        memcpy(out, "NaN", 4);
        return 3;
    }
    size_t bytes = vp_impl_fixed((double)part_ns / 1e3 * 100.0 / ((double)whole_ns / 1e3), 2, out);
    memcpy(out + bytes, "%", 2);
    return bytes + 1;
}
static size_t vp_impl_memory_text(int64_t memory_bytes, char out[64]) {
    static const char *const units[] = { " B", " KB", " MB", " GB" };
    const double value = (double)memory_bytes, magnitude = fabs(value);
    const int unit = magnitude >= 1073741824.0 ? 3 : magnitude >= 1048576.0 ? 2 : magnitude >= 1024.0 ? 1 : 0;
    const double divisor[] = { 1.0, 1024.0, 1048576.0, 1073741824.0 };
    size_t bytes = unit ? vp_impl_fixed(value / divisor[unit], 2, out) : vp_impl_int_text(out, memory_bytes);
    memcpy(out + bytes, units[unit], strlen(units[unit]) + 1);
    return bytes + strlen(units[unit]);
}
/* text of a block or step: "" for none, "*" for several */
static size_t vp_impl_index_text(int32_t index, char out[64]) {
    if (index >= 0) return vp_impl_int_text(out, index);
    out[0] = '*';
    out[index == VP_OP_SEVERAL] = 0;
    return index == VP_OP_SEVERAL;
}
static size_t vp_impl_rate_text(double rate, char out[64]) {
    if (rate == rate) return vp_impl_fixed(rate, 3, out);
    memcpy(out, "--", 3);
    return 2;
}
/* the cells that are numbers */
static size_t vp_impl_table_number(const vp_impl_table *table, const vp_op *op, vp_impl_cell cell, char out[64]) {
    const char *unit = table->options->time_unit;
    const vp_op_rates rates = vp_op_rate(op, table->ops->clock, table->ops->ceilings);
    const double calls = (double)op->calls;
    switch (cell) {
        case VP_IMPL_CELL_HOST_SELF_PERCENT: return vp_impl_percent_text(op->host_self_ns, table->host_self_ns, out);
        case VP_IMPL_CELL_HOST_SELF: return vp_impl_time_text((double)op->host_self_ns / 1e3, unit, out);
        case VP_IMPL_CELL_HOST_TOTAL_PERCENT: return vp_impl_percent_text(op->host_total_ns, table->host_self_ns, out);
        case VP_IMPL_CELL_HOST_TOTAL: return vp_impl_time_text((double)op->host_total_ns / 1e3, unit, out);
        case VP_IMPL_CELL_HOST_AVERAGE: return vp_impl_time_text((double)op->host_total_ns / 1e3 / calls, unit, out);
        case VP_IMPL_CELL_DEVICE_SELF: return vp_impl_time_text((double)op->device_self_ns / 1e3, unit, out);
        case VP_IMPL_CELL_DEVICE_SELF_PERCENT:
            return vp_impl_percent_text(op->device_self_ns, table->device_self_ns, out);
        case VP_IMPL_CELL_DEVICE_TOTAL: return vp_impl_time_text((double)op->device_total_ns / 1e3, unit, out);
        case VP_IMPL_CELL_DEVICE_AVERAGE:
            return vp_impl_time_text((double)op->device_total_ns / 1e3 / calls, unit, out);
        case VP_IMPL_CELL_HOST_MEMORY: return vp_impl_memory_text(op->host_memory_bytes, out);
        case VP_IMPL_CELL_HOST_SELF_MEMORY: return vp_impl_memory_text(op->host_self_memory_bytes, out);
        case VP_IMPL_CELL_DEVICE_MEMORY: return vp_impl_memory_text(op->device_memory_bytes, out);
        case VP_IMPL_CELL_DEVICE_SELF_MEMORY: return vp_impl_memory_text(op->device_self_memory_bytes, out);
        case VP_IMPL_CELL_CALLS: return vp_impl_int_text(out, op->calls);
        case VP_IMPL_CELL_BLOCK: return vp_impl_index_text(op->block, out);
        case VP_IMPL_CELL_STEP: return vp_impl_index_text(op->step, out);
        case VP_IMPL_CELL_FLOPS:
            return vp_impl_rate_text(op->flops > 0 ? (double)op->flops * table->flops_scale : (double)NAN, out);
        case VP_IMPL_CELL_GB_PER_S: return vp_impl_rate_text(rates.gb_per_s, out);
        case VP_IMPL_CELL_TFLOP_PER_S: return vp_impl_rate_text(rates.tflop_per_s, out);
        case VP_IMPL_CELL_CEILING: return vp_impl_rate_text(rates.ceiling_percent, out);
        default: out[0] = 0; return 0;
    }
}
/* Prints the last `width` characters of a frame; if it is cut, "..." replaces the first three of them. */
static void vp_impl_put_frame(vp_impl_text *out, const vp_op_frame *frame, int32_t width) {
    vp_impl_pieces pieces;
    size_t skip = 0, i, characters;
    vp_impl_frame_pieces(frame, &pieces);
    characters = vp_impl_pieces_characters(&pieces);
    if (characters > (size_t)width) {
        skip = characters - (size_t)width;
        if (width > 3) {
            skip += 3;
            vp_impl_put(out, "...");
        }
    }
    for (i = 0; i < pieces.count; i++) {
        const size_t here = vp_impl_characters(pieces.text[i], pieces.bytes[i]), from = skip < here ? skip : here;
        const size_t at = vp_impl_character_at(pieces.text[i], pieces.bytes[i], from);
        vp_impl_put_clean(out, pieces.text[i] + at, pieces.bytes[i] - at);
        skip -= from;
    }
    vp_impl_put_repeated(out, ' ', (int64_t)width - (int64_t)characters);
}
/* Names of limit - 3 characters or more end in "...", as in torch. */
static void vp_impl_put_name(vp_impl_text *out, const char *name, int32_t width, int32_t limit) {
    const size_t bytes = strlen(name), characters = vp_impl_characters(name, bytes);
    if (limit < 0 || characters < (size_t)limit - 3) {
        vp_impl_put_cell(out, name, bytes, width, 0);
        return;
    }
    vp_impl_put_repeated(out, ' ', (int64_t)width - limit);
    vp_impl_put_clean(out, name, vp_impl_character_at(name, bytes, (size_t)limit - 3));
    vp_impl_put(out, "...");
}
static void vp_impl_table_cell(vp_impl_table *table, const vp_op *op, const vp_impl_column *column) {
    const int32_t limit = table->options->max_name_column_width;
    const char *shape;
    char text[64];
    size_t bytes;
    switch (column->cell) {
        case VP_IMPL_CELL_NAME: vp_impl_put_name(&table->out, op->name, column->width, limit); break;
        case VP_IMPL_CELL_STAGE: vp_impl_put_name(&table->out, op->stage ? op->stage : "", column->width, limit); break;
        case VP_IMPL_CELL_PART: vp_impl_put_name(&table->out, op->part ? op->part : "", column->width, limit); break;
        case VP_IMPL_CELL_SHAPES:
            shape = vp_impl_op_shape_text(op, text);
            bytes = vp_impl_character_at(shape, strlen(shape), (size_t)column->width);
            vp_impl_put_cell(&table->out, shape, bytes, column->width, 0);
            break;
        case VP_IMPL_CELL_SOURCE:
            if (op->stack_count > 0) vp_impl_put_frame(&table->out, &op->stack[0], column->width);
            else vp_impl_put_repeated(&table->out, ' ', column->width);
            break;
        default:
            bytes = vp_impl_table_number(table, op, column->cell, text);
            vp_impl_put_cell(&table->out, text, bytes, column->width, 0);
    }
    vp_impl_put(&table->out, "  ");
}
/* the frames after the first, one per line, then an empty line */
static void vp_impl_table_stack(vp_impl_table *table, const vp_op *op) {
    for (int32_t frame = 1; frame <= op->stack_count || frame == 1; frame++) {
        for (int32_t i = 0; i < table->count; i++) {
            if (table->columns[i].cell == VP_IMPL_CELL_SOURCE && frame < op->stack_count)
                vp_impl_put_frame(&table->out, &op->stack[frame], table->columns[i].width);
            else
                vp_impl_put_repeated(&table->out, ' ', table->columns[i].width);
            vp_impl_put(&table->out, "  ");
        }
        vp_impl_put(&table->out, "\n");
    }
}
static void vp_impl_table_rule(vp_impl_table *table) {
    for (int32_t i = 0; i < table->count; i++) {
        vp_impl_put_repeated(&table->out, '-', table->columns[i].width);
        vp_impl_put(&table->out, "  ");
    }
    vp_impl_put(&table->out, "\n");
}
static void vp_impl_table_titles(vp_impl_table *table) {
    for (int32_t i = 0; i < table->count; i++) {
        const vp_impl_column *column = &table->columns[i];
        const char *device = column->names_device ? table->ops->device_name : "";
        const size_t bytes = strlen(device);
        const int left = column->cell == VP_IMPL_CELL_SOURCE;
        const int64_t blanks = (int64_t)column->width
                               - (int64_t)(strlen(column->before) + vp_impl_characters(device, bytes)
                                           + strlen(column->after));
        if (!left) vp_impl_put_repeated(&table->out, ' ', blanks);
        vp_impl_put(&table->out, column->before);
        vp_impl_put_clean(&table->out, device, bytes);
        vp_impl_put(&table->out, column->after);
        if (left) vp_impl_put_repeated(&table->out, ' ', blanks);
        vp_impl_put(&table->out, "  ");
    }
    vp_impl_put(&table->out, "\n");
}
/* Explains shares above 100 % if a printed row has one. */
static void vp_impl_table_ceiling_note(vp_impl_table *table) {
    const vp_ops *ops = table->ops;
    if (table->columns[table->count - 1].cell != VP_IMPL_CELL_CEILING) return;
    for (int64_t i = 0; i < ops->count && i != table->options->row_limit; i++) {
        if (!(vp_op_rate(&ops->rows[i], ops->clock, ops->ceilings).ceiling_percent > 100.0)) continue;
        vp_impl_put(&table->out, "% of ceiling above 100: some of the counted bytes came from caches, or the operation "
                                 "suits the device better than the read and the square matrix products used to measure "
                                 "the ceilings\n");
        return;
    }
}
static void vp_impl_table_foot(vp_impl_table *table) {
    char text[64];
    int32_t i;
    vp_impl_put(&table->out, "Self CPU time total: ");
    vp_impl_put_bytes(&table->out, text,
                      vp_impl_time_text((double)table->host_self_ns / 1e3, table->options->time_unit, text));
    vp_impl_put(&table->out, "\n");
    for (i = 0; i < table->count && table->columns[i].cell != VP_IMPL_CELL_DEVICE_SELF; i++) continue;
    if (i < table->count) {
        vp_impl_put(&table->out, "Self ");
        vp_impl_put_clean(&table->out, table->ops->device_name, strlen(table->ops->device_name));
        vp_impl_put(&table->out, " time total: ");
        vp_impl_put_bytes(&table->out, text,
                          vp_impl_time_text((double)table->device_self_ns / 1e3, table->options->time_unit, text));
        vp_impl_put(&table->out, "\n");
    }
    if (table->ops->dropped_calls > 0) {
        vp_impl_put(&table->out, "Calls in no row, because a buffer was full: ");
        vp_impl_put_int(&table->out, table->ops->dropped_calls);
        vp_impl_put(&table->out, "\n");
    }
}
static int vp_impl_print_options_good(const vp_ops_print_options *options) {
    const char *unit = options->time_unit;
    const int32_t widths[] = {options->max_name_column_width, options->max_shapes_column_width,
                              options->max_src_column_width};
    for (int i = 0; i < 3; i++)
        if (widths[i] != -1 && widths[i] < 4) return 0;
    if (unit && strcmp(unit, "us") && strcmp(unit, "ms") && strcmp(unit, "s")) return 0;
    return options->row_limit >= -1 && options->decimals >= 3 && options->decimals <= 9;
}
VP_API vp_result vp_ops_print_torch(const vp_ops *ops, const vp_ops_print_options *options, vp_text_sink sink,
                                    void *user) {
    vp_impl_table table;
    vp_op total;
    int64_t i, length = -2;
    int stacks = 0;
    if (!vp_impl_print_options_good(options) || !sink || vp_ops_total(ops, &total) != VP_OK) return VP_ERR_RANGE;
    if (ops->count == 0) return VP_OK;
    memset(&table, 0, sizeof table);
    table.ops = ops;
    table.options = options;
    table.out.sink = sink;
    table.out.user = user;
    table.host_self_ns = total.host_self_ns;
    table.device_self_ns = total.device_self_ns;
    vp_impl_table_choose(&table);
    for (int32_t k = 0; k < table.count; k++) {
        length += table.columns[k].width + 2;
        stacks |= table.columns[k].cell == VP_IMPL_CELL_SOURCE;
    }
    if (options->header) {
        vp_impl_put_repeated(&table.out, '=', length);
        vp_impl_put(&table.out, "\n");
        vp_impl_put(&table.out, options->header);
        vp_impl_put(&table.out, "\n");
    }
    vp_impl_table_rule(&table);
    vp_impl_table_titles(&table);
    vp_impl_table_rule(&table);
    for (i = 0; i < ops->count && i != options->row_limit; i++) {
        for (int32_t k = 0; k < table.count; k++) vp_impl_table_cell(&table, &ops->rows[i], &table.columns[k]);
        vp_impl_put(&table.out, "\n");
        if (stacks) vp_impl_table_stack(&table, &ops->rows[i]);
    }
    vp_impl_table_rule(&table);
    vp_impl_table_foot(&table);
    vp_impl_table_ceiling_note(&table);
    return table.out.result;
}

/* ---- cProfile's table */

/* The grouping members except name and position: " [prefill, experts, block 3, step 1, [64, 2048], in request]". */
static void vp_impl_put_group(vp_impl_text *out, int *any, const char *word, const char *text) {
    if (!text || !text[0]) return;
    vp_impl_put(out, (*any)++ ? ", " : " [");
    vp_impl_put(out, word);
    vp_impl_put_clean(out, text, strlen(text));
}
static void vp_impl_put_groups(vp_impl_text *out, const vp_ops *ops, const vp_op *op) {
    char text[64];
    int any = 0;
    if (ops->group_by & VP_OPS_BY_STAGE) vp_impl_put_group(out, &any, "", op->stage);
    if (ops->group_by & VP_OPS_BY_PART) vp_impl_put_group(out, &any, "", op->part);
    vp_impl_index_text(op->block, text);
    if (ops->group_by & VP_OPS_BY_BLOCK) vp_impl_put_group(out, &any, "block ", text);
    vp_impl_index_text(op->step, text);
    if (ops->group_by & VP_OPS_BY_STEP) vp_impl_put_group(out, &any, "step ", text);
    if (ops->group_by & VP_OPS_BY_SHAPE) vp_impl_put_group(out, &any, "", vp_impl_op_shape_text(op, text));
    for (int32_t i = 1; i < op->stack_count; i++) vp_impl_put_group(out, &any, "in ", op->stack[i].name);
    if (any) vp_impl_put(out, "]");
}
/* seconds, right-aligned as %8.3f */
static void vp_impl_put_seconds(vp_impl_text *out, double seconds, int32_t decimals, const char *behind) {
    char text[64];
    const size_t bytes = vp_impl_fixed(seconds, decimals, text);
    vp_impl_put_cell(out, text, bytes, 5 + decimals, 0);
    vp_impl_put(out, behind);
}
static void vp_impl_put_profile_row(vp_impl_text *out, const vp_ops *ops, const vp_op *op, int32_t decimals) {
    const double self = (double)vp_impl_op_self(op, ops->clock) / 1e9,
                 cumulative = (double)vp_impl_op_cumulative(op, ops->clock) / 1e9;
    vp_impl_pieces pieces;
    char calls[64];
    size_t bytes = vp_impl_int_text(calls, op->calls), i;
    if (op->primitive_calls != op->calls) {
        calls[bytes++] = '/';
        bytes += vp_impl_int_text(calls + bytes, op->primitive_calls);
    }
    vp_impl_put_cell(out, calls, bytes, 9, 0);
    vp_impl_put(out, " ");
    vp_impl_put_seconds(out, self, decimals, " ");
    vp_impl_put_seconds(out, self / (double)op->calls, decimals, " ");
    vp_impl_put_seconds(out, cumulative, decimals, " ");
    if (op->primitive_calls > 0) vp_impl_put_seconds(out, cumulative / (double)op->primitive_calls, decimals, " ");
    else vp_impl_put_repeated(out, ' ', 6 + decimals);
    vp_impl_standard_name(op, &pieces);
    for (i = 0; i < pieces.count; i++) vp_impl_put_clean(out, pieces.text[i], pieces.bytes[i]);
    vp_impl_put_groups(out, ops, op);
    vp_impl_put(out, "\n");
}
static void vp_impl_put_profile_titles(vp_impl_text *out, int32_t decimals) {
    static const char *const titles[] = { "tottime", "percall", "cumtime", "percall" };
    vp_impl_put(out, "   ncalls ");
    for (int i = 0; i < 4; i++) {
        vp_impl_put_cell(out, titles[i], 7, 5 + decimals, 0);
        vp_impl_put(out, " ");
    }
    vp_impl_put(out, "filename:lineno(function)\n");
}
VP_API vp_result vp_ops_print_cprofile(const vp_ops *ops, const vp_ops_print_options *options, vp_text_sink sink,
                                       void *user) {
    const vp_impl_sort_key *key = vp_impl_sort_find(ops->sort_key);
    vp_impl_text out = {sink, user, VP_OK};
    vp_op total;
    char text[64];
    int64_t rows = ops->count, i;
    if (!vp_impl_print_options_good(options) || !sink || vp_ops_total(ops, &total) != VP_OK) return VP_ERR_RANGE;
    if (options->row_limit >= 0 && options->row_limit < rows) rows = options->row_limit;
    vp_impl_put_repeated(&out, ' ', 9);
    vp_impl_put_int(&out, total.calls);
    vp_impl_put(&out, " function calls ");
    if (total.calls != total.primitive_calls) {
        vp_impl_put(&out, "(");
        vp_impl_put_int(&out, total.primitive_calls);
        vp_impl_put(&out, " primitive calls) ");
    }
    vp_impl_put(&out, "in ");
    vp_impl_put_bytes(&out, text,
                      vp_impl_fixed((double)vp_impl_op_self(&total, ops->clock) / 1e9, options->decimals, text));
    vp_impl_put(&out, " seconds\n\n");
    if (rows == 0) return out.result;
    vp_impl_put(&out, key ? "   Ordered by: " : "   Random listing order was used");
    vp_impl_put(&out, key ? key->meaning : "");
    vp_impl_put(&out, "\n");
    if (rows < ops->count) {
        vp_impl_put(&out, "   List reduced from ");
        vp_impl_put_int(&out, ops->count);
        vp_impl_put(&out, " to ");
        vp_impl_put_int(&out, rows);
        vp_impl_put(&out, " due to restriction <");
        vp_impl_put_int(&out, rows);
        vp_impl_put(&out, ">\n");
    }
    vp_impl_put(&out, "\n");
    vp_impl_put_profile_titles(&out, options->decimals);
    for (i = 0; i < rows; i++) vp_impl_put_profile_row(&out, ops, &ops->rows[i], options->decimals);
    vp_impl_put(&out, "\n\n");
    if (ops->dropped_calls > 0) {
        vp_impl_put(&out, "   Calls in no row, because a buffer was full: ");
        vp_impl_put_int(&out, ops->dropped_calls);
        vp_impl_put(&out, "\n");
    }
    return out.result;
}

/* ---- CSV and JSON: the numbers of an op by member name */
typedef struct vp_impl_op_number { const char *name; size_t offset; } vp_impl_op_number;
static const vp_impl_op_number vp_impl_op_numbers[] = {
#define VP_IMPL_OP_NUMBER(member) { #member, offsetof(vp_op, member) }
    VP_IMPL_OP_NUMBER(calls), VP_IMPL_OP_NUMBER(primitive_calls), VP_IMPL_OP_NUMBER(host_total_ns),
    VP_IMPL_OP_NUMBER(host_self_ns), VP_IMPL_OP_NUMBER(host_cumulative_ns), VP_IMPL_OP_NUMBER(host_min_ns),
    VP_IMPL_OP_NUMBER(host_max_ns), VP_IMPL_OP_NUMBER(device_total_ns), VP_IMPL_OP_NUMBER(device_self_ns),
    VP_IMPL_OP_NUMBER(device_min_ns), VP_IMPL_OP_NUMBER(device_max_ns), VP_IMPL_OP_NUMBER(flops),
    VP_IMPL_OP_NUMBER(bytes), VP_IMPL_OP_NUMBER(host_memory_bytes), VP_IMPL_OP_NUMBER(host_self_memory_bytes),
    VP_IMPL_OP_NUMBER(device_memory_bytes), VP_IMPL_OP_NUMBER(device_self_memory_bytes),
    VP_IMPL_OP_NUMBER(memory_peak_bytes)
#undef VP_IMPL_OP_NUMBER
};
enum { VP_IMPL_OP_NUMBERS = (int)(sizeof vp_impl_op_numbers / sizeof *vp_impl_op_numbers), VP_IMPL_OP_DERIVED = 6 };
static const char *const vp_impl_op_derived_names[VP_IMPL_OP_DERIVED] = {
    "host_average_ns", "device_average_ns", "self_percent", "gb_per_s", "tflop_per_s", "ceiling_percent" };

static int64_t *vp_impl_op_number_of(vp_op *op, int index) {
    return (int64_t *)(void *)((char *)op + vp_impl_op_numbers[index].offset);
}
/* numbers that readers would compute from the members; NaN if undefined */
static void vp_impl_op_derive(const vp_ops *ops, const vp_op *op, int64_t self_ns, double derived[VP_IMPL_OP_DERIVED]) {
    const vp_op_rates rates = vp_op_rate(op, ops->clock, ops->ceilings);
    derived[0] = (double)op->host_total_ns / (double)op->calls;
    derived[1] = (double)op->device_total_ns / (double)op->calls;
    derived[2] = self_ns > 0 ? 100.0 * (double)vp_impl_op_self(op, ops->clock) / (double)self_ns : (double)NAN;
    derived[3] = rates.gb_per_s;
    derived[4] = rates.tflop_per_s;
    derived[5] = rates.ceiling_percent;
}
static void vp_impl_put_doubled(vp_impl_text *out, const char *text, size_t bytes) {
    size_t i, run = 0;
    for (i = 0; i < bytes; i++) {
        if (text[i] != '"') continue;
        vp_impl_put_bytes(out, text + run, i + 1 - run);
        run = i; /* doubles the quote */
    }
    vp_impl_put_bytes(out, text + run, bytes - run);
}
/* Puts an apostrophe before text that a spreadsheet would run as a formula; names can come from an untrusted trace. */
static void vp_impl_put_guard(vp_impl_text *out, const char *text) {
    if (*text && strchr("=+-@", *text) && text[1 + strspn(text + 1, ".0123456789")]) vp_impl_put(out, "'");
}
/* a field, quoted if RFC 4180 requires it, and a comma; NULL: an empty field */
static void vp_impl_put_field(vp_impl_text *out, const char *text) {
    const char *const quote = text && strpbrk(text, "\",\r\n") ? "\"" : "";
    vp_impl_put(out, quote);
    if (text) vp_impl_put_guard(out, text);
    if (text) vp_impl_put_doubled(out, text, strlen(text));
    vp_impl_put(out, quote);
    vp_impl_put(out, ",");
}
static void vp_impl_put_stack_field(vp_impl_text *out, const vp_op *op) {
    vp_impl_pieces pieces;
    if (op->stack_count > 0) vp_impl_put(out, "\"");
    for (int32_t frame = 0; frame < op->stack_count; frame++) {
        if (frame > 0) vp_impl_put(out, "; ");
        vp_impl_frame_pieces(&op->stack[frame], &pieces);
        if (frame == 0 && pieces.count > 0) vp_impl_put_guard(out, pieces.text[0]);
        for (size_t i = 0; i < pieces.count; i++) vp_impl_put_doubled(out, pieces.text[i], pieces.bytes[i]);
    }
    if (op->stack_count > 0) vp_impl_put(out, "\"");
    vp_impl_put(out, ",");
}
static void vp_impl_put_csv_row(vp_impl_text *out, const vp_ops *ops, const vp_op *op, int64_t self_ns) {
    vp_op copy = *op;
    double derived[VP_IMPL_OP_DERIVED];
    char text[64];
    vp_impl_put_field(out, op->name);
    vp_impl_put_field(out, op->stage);
    vp_impl_put_field(out, op->part);
    vp_impl_index_text(op->block, text);
    vp_impl_put_field(out, text);
    vp_impl_index_text(op->step, text);
    vp_impl_put_field(out, text);
    vp_impl_put_field(out, op->dimensions == VP_OP_SEVERAL ? "*" : vp_impl_op_shape_text(op, text));
    vp_impl_put_field(out, op->file);
    vp_impl_int_text(text, op->line);
    vp_impl_put_field(out, op->file ? text : NULL);
    vp_impl_put_stack_field(out, op);
    for (int i = 0; i < VP_IMPL_OP_NUMBERS; i++) {
        vp_impl_put_int(out, *vp_impl_op_number_of(&copy, i));
        vp_impl_put(out, ",");
    }
    vp_impl_op_derive(ops, op, self_ns, derived);
    for (int i = 0; i < VP_IMPL_OP_DERIVED; i++) {
        vp_impl_put_bytes(out, text, vp_number_format(derived[i], text)); /* nothing for NaN */
        vp_impl_put(out, i + 1 < VP_IMPL_OP_DERIVED ? "," : "\n");
    }
}
/* Prints a frame's name without semicolons and newlines, which would end the frame or the line. */
static void vp_impl_put_folded_frame(vp_impl_text *out, const char *name) {
    char text[2] = {0, 0};
    for (; *name; name++) {
        text[0] = *name == ';' || *name == '\n' || *name == '\r' ? ',' : *name;
        vp_impl_put(out, text);
    }
}
VP_API vp_result vp_ops_print_folded(const vp_ops *ops, vp_text_sink sink, void *user) {
    vp_impl_text out = {sink, user, VP_OK};
    vp_op total;
    if (!sink || vp_ops_total(ops, &total) != VP_OK) return VP_ERR_RANGE;
    for (int64_t i = 0; i < ops->count; i++) {
        const vp_op *op = &ops->rows[i];
        const int64_t self_ns = ops->clock == VP_OPS_DEVICE ? op->device_self_ns : op->host_self_ns;
        int32_t frame, part = 0;
        if (self_ns <= 0) continue;
        for (frame = op->stack_count - 1; frame > 0 && op->part; frame--)
            if (!strcmp(op->stack[frame].name, op->part)) part = frame;
        for (frame = op->stack_count ? op->stack_count - 1 : 0; frame >= 0; frame--) {
            if (frame == part && op->block >= 0) {
                vp_impl_put(&out, "block ");
                vp_impl_put_int(&out, op->block);
                vp_impl_put(&out, ";");
            }
            vp_impl_put_folded_frame(&out, op->stack_count ? op->stack[frame].name : op->name);
            vp_impl_put(&out, frame ? ";" : " ");
        }
        vp_impl_put_int(&out, self_ns);
        vp_impl_put(&out, "\n");
    }
    return out.result;
}
VP_API vp_result vp_ops_print_csv(const vp_ops *ops, vp_text_sink sink, void *user) {
    vp_impl_text out = {sink, user, VP_OK};
    vp_op total;
    int64_t i;
    if (!sink || vp_ops_total(ops, &total) != VP_OK) return VP_ERR_RANGE;
    vp_impl_put(&out, "name,stage,part,block,step,shape,file,line,stack,");
    for (i = 0; i < VP_IMPL_OP_NUMBERS; i++) vp_impl_put_field(&out, vp_impl_op_numbers[i].name);
    for (i = 0; i < VP_IMPL_OP_DERIVED; i++) {
        vp_impl_put(&out, vp_impl_op_derived_names[i]);
        vp_impl_put(&out, i + 1 < VP_IMPL_OP_DERIVED ? "," : "\n");
    }
    for (i = 0; i < ops->count; i++) vp_impl_put_csv_row(&out, ops, &ops->rows[i], vp_impl_op_self(&total, ops->clock));
    return out.result;
}
static void vp_impl_json_text_or_null(vp_json_writer *writer, const char *key, const char *text) {
    vp_json_key(writer, key);
    if (text) vp_json_string(writer, text);
    else vp_json_null(writer);
}
static void vp_impl_json_double_or_null(vp_json_writer *writer, const char *key, double value) {
    vp_json_key(writer, key);
    if (value - value == 0.0) vp_json_double(writer, value);
    else vp_json_null(writer);
}
static void vp_impl_json_int(vp_json_writer *writer, const char *key, int64_t value) {
    vp_json_key(writer, key);
    vp_json_int(writer, value);
}
static void vp_impl_json_index(vp_json_writer *writer, const char *key, int32_t index) {
    vp_json_key(writer, key);
    if (index == VP_OP_NONE) vp_json_null(writer);
    else if (index == VP_OP_SEVERAL) vp_json_string(writer, "*");
    else vp_json_int(writer, index);
}
static void vp_impl_json_shape(vp_json_writer *writer, const vp_op *op) {
    vp_json_key(writer, "shape");
    if (op->dimensions == VP_OP_SEVERAL) {
        vp_json_string(writer, "*");
        return;
    }
    if (op->shapes) {
        vp_json_raw(writer, op->shapes, strlen(op->shapes));
        return;
    }
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < op->dimensions; i++) vp_json_int(writer, op->shape[i]);
    vp_json_end_array(writer);
}
static void vp_impl_json_op(vp_json_writer *writer, const vp_ops *ops, const vp_op *op, int64_t self_ns) {
    vp_op copy = *op;
    double derived[VP_IMPL_OP_DERIVED];
    vp_json_begin_object(writer);
    vp_impl_json_text_or_null(writer, "name", op->name);
    vp_impl_json_text_or_null(writer, "stage", op->stage);
    vp_impl_json_text_or_null(writer, "part", op->part);
    vp_impl_json_index(writer, "block", op->block);
    vp_impl_json_index(writer, "step", op->step);
    vp_impl_json_shape(writer, op);
    vp_impl_json_text_or_null(writer, "file", op->file);
    vp_impl_json_int(writer, "line", op->line);
    vp_json_key(writer, "stack");
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < op->stack_count; i++) {
        vp_json_begin_object(writer);
        vp_impl_json_text_or_null(writer, "name", op->stack[i].name);
        vp_impl_json_text_or_null(writer, "file", op->stack[i].file);
        vp_impl_json_int(writer, "line", op->stack[i].line);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
    for (int32_t i = 0; i < VP_IMPL_OP_NUMBERS; i++) {
        vp_impl_json_int(writer, vp_impl_op_numbers[i].name, *vp_impl_op_number_of(&copy, i));
    }
    vp_impl_op_derive(ops, op, self_ns, derived);
    for (int32_t i = 0; i < VP_IMPL_OP_DERIVED; i++)
        vp_impl_json_double_or_null(writer, vp_impl_op_derived_names[i], derived[i]);
    vp_json_end_object(writer);
}
/* VP_OPS_BY_.., lowest bit first */
static const char *const vp_impl_ops_groups[] = { "shape", "stage", "part", "block", "step", "place" };

VP_API vp_result vp_ops_write_json(vp_json_writer *writer, const vp_ops *ops) {
    vp_op total;
    int64_t i;
    if (vp_ops_total(ops, &total) != VP_OK) {
        vp_json_fail(writer, VP_ERR_RANGE);
        return writer->result;
    }
    vp_json_begin_object(writer);
    vp_impl_json_text_or_null(writer, "schema", VP_OPS_SCHEMA);
    vp_json_key(writer, "group_by");
    vp_json_begin_array(writer);
    for (i = 0; i < 6; i++)
        if (ops->group_by >> i & 1) vp_json_string(writer, vp_impl_ops_groups[i]);
    vp_json_end_array(writer);
    vp_impl_json_int(writer, "group_by_stack_n", ops->group_by_stack_n);
    vp_impl_json_text_or_null(writer, "clock", ops->clock == VP_OPS_DEVICE ? "device" : "host");
    vp_impl_json_text_or_null(writer, "sort_key", ops->sort_key);
    vp_impl_json_text_or_null(writer, "device_name", ops->device_name);
    vp_json_key(writer, "ceilings");
    vp_json_begin_object(writer);
    vp_impl_json_double_or_null(writer, "bytes_per_s",
                                ops->ceilings.bytes_per_s > 0.0 ? ops->ceilings.bytes_per_s : (double)NAN);
    vp_impl_json_double_or_null(writer, "flops_per_s",
                                ops->ceilings.flops_per_s > 0.0 ? ops->ceilings.flops_per_s : (double)NAN);
    vp_json_end_object(writer);
    vp_json_key(writer, "dropped");
    vp_json_begin_object(writer);
    vp_impl_json_int(writer, "calls", ops->dropped_calls);
    vp_impl_json_int(writer, "host_ns", ops->dropped_host_ns);
    vp_impl_json_int(writer, "device_ns", ops->dropped_device_ns);
    vp_json_end_object(writer);
    vp_json_key(writer, "rows");
    vp_json_begin_array(writer);
    for (i = 0; i < ops->count; i++) vp_impl_json_op(writer, ops, &ops->rows[i], vp_impl_op_self(&total, ops->clock));
    vp_json_end_array(writer);
    vp_json_end_object(writer);
    return writer->result;
}

/* ---- reading a table back. The first failure is kept, and reported once. */
typedef struct vp_impl_ops_reader {
    const vp_json *json;
    char *text;
    size_t capacity, used;
    vp_result result;
    const char *where; /* the member that failed */
    uint32_t node;
} vp_impl_ops_reader;

static void vp_impl_read_fail(vp_impl_ops_reader *in, vp_result result, const char *where, uint32_t node) {
    if (in->result != VP_OK) return;
    in->result = result;
    in->where = where;
    in->node = node;
}
static int vp_impl_read_type(const vp_impl_ops_reader *in, uint32_t node) {
    return node < in->json->node_count ? (int)in->json->nodes[node].type : -1;
}
/* reads a text into the caller's memory; NULL for null */
static const char *vp_impl_read_text(vp_impl_ops_reader *in, uint32_t object, const char *key) {
    const uint32_t node = vp_json_get(in->json, object, key);
    char *text = in->text + in->used;
    size_t bytes = 0;
    if (in->result != VP_OK || vp_impl_read_type(in, node) == VP_JSON_NULL) return NULL;
    vp_result result = vp_json_text(in->json, node, text, in->capacity - in->used, &bytes);
    if (result == VP_OK && strlen(text) != bytes) result = VP_ERR_FORMAT; /* it contains a NUL */
    if (result != VP_OK) {
        vp_impl_read_fail(in, result == VP_ERR_CAPACITY ? result : VP_ERR_FORMAT, key, node);
        return NULL;
    }
    in->used += bytes + 1;
    return text;
}
static int64_t vp_impl_read_int(vp_impl_ops_reader *in, uint32_t object, const char *key, int64_t low, int64_t high) {
    const uint32_t node = vp_json_get(in->json, object, key);
    int64_t value = 0;
    const vp_result result = vp_json_to_int(in->json, node, &value);
    if (result != VP_OK) vp_impl_read_fail(in, result == VP_ERR_RANGE ? result : VP_ERR_FORMAT, key, node);
    else if (value < low || value > high) vp_impl_read_fail(in, VP_ERR_RANGE, key, node);
    return in->result == VP_OK ? value : 0;
}
/* reads a block or step: null, "*" or a number >= 0 */
static int32_t vp_impl_read_index(vp_impl_ops_reader *in, uint32_t object, const char *key) {
    const uint32_t node = vp_json_get(in->json, object, key);
    if (vp_impl_read_type(in, node) == VP_JSON_NULL) return VP_OP_NONE;
    if (vp_json_equals(in->json, node, "*")) return VP_OP_SEVERAL;
    return (int32_t)vp_impl_read_int(in, object, key, 0, INT32_MAX);
}
/* reads a positive number; 0 for null */
static double vp_impl_read_ceiling(vp_impl_ops_reader *in, uint32_t object, const char *key) {
    const uint32_t node = vp_json_get(in->json, object, key);
    double value = 0.0;
    if (vp_impl_read_type(in, node) == VP_JSON_NULL) return 0.0;
    if (vp_json_to_double(in->json, node, &value) != VP_OK) vp_impl_read_fail(in, VP_ERR_FORMAT, key, node);
    else if (!(value > 0.0)) vp_impl_read_fail(in, VP_ERR_RANGE, key, node);
    return value;
}
static uint32_t vp_impl_read_member(vp_impl_ops_reader *in, uint32_t object, const char *key, vp_json_type type) {
    const uint32_t node = vp_json_get(in->json, object, key);
    if (vp_impl_read_type(in, node) != (int)type) vp_impl_read_fail(in, VP_ERR_FORMAT, key, node);
    return in->result == VP_OK ? node : VP_JSON_NONE;
}
/* copies the JSON text of an array into the caller's memory */
static const char *vp_impl_read_shapes(vp_impl_ops_reader *in, uint32_t node) {
    const size_t bytes = (size_t)in->json->nodes[node].bytes;
    char *text = in->text + in->used;
    if (bytes >= in->capacity - in->used) {
        vp_impl_read_fail(in, VP_ERR_CAPACITY, "shape", node);
        return NULL;
    }
    memcpy(text, in->json->text + in->json->nodes[node].start, bytes);
    text[bytes] = 0;
    in->used += bytes + 1;
    return text;
}
static void vp_impl_read_shape(vp_impl_ops_reader *in, uint32_t object, vp_op *op) {
    uint32_t node = vp_json_get(in->json, object, "shape"), at;
    int64_t value;
    if (vp_json_equals(in->json, node, "*")) {
        op->dimensions = VP_OP_SEVERAL;
        return;
    }
    node = vp_impl_read_member(in, object, "shape", VP_JSON_ARRAY);
    if (node == VP_JSON_NONE) return;
    if (in->json->nodes[node].count > 0 && vp_impl_read_type(in, node + 1) == VP_JSON_ARRAY) {
        op->shapes = vp_impl_read_shapes(in, node);
        return;
    }
    if (in->json->nodes[node].count > 4) {
        vp_impl_read_fail(in, VP_ERR_RANGE, "shape", node);
        return;
    }
    for (at = node + 1; at < in->json->nodes[node].end; at = in->json->nodes[at].end) {
        const vp_result result = vp_json_to_int(in->json, at, &value);
        if (result != VP_OK || value < INT32_MIN || value > INT32_MAX) {
            vp_impl_read_fail(in, result == VP_OK || result == VP_ERR_RANGE ? VP_ERR_RANGE : VP_ERR_FORMAT, "shape",
                              at);
            return;
        }
        op->shape[op->dimensions++] = (int32_t)value;
    }
}
static void vp_impl_read_stack(vp_impl_ops_reader *in, uint32_t object, vp_op *op) {
    const uint32_t node = vp_impl_read_member(in, object, "stack", VP_JSON_ARRAY);
    if (node == VP_JSON_NONE) return;
    if (in->json->nodes[node].count > VP_OP_STACK_LIMIT) {
        vp_impl_read_fail(in, VP_ERR_RANGE, "stack", node);
        return;
    }
    for (uint32_t at = node + 1; at < in->json->nodes[node].end; at = in->json->nodes[at].end) {
        vp_op_frame *frame = &op->stack[op->stack_count++];
        if (vp_impl_read_type(in, at) != VP_JSON_OBJECT) vp_impl_read_fail(in, VP_ERR_FORMAT, "stack", at);
        frame->name = vp_impl_read_text(in, at, "name");
        frame->file = vp_impl_read_text(in, at, "file");
        frame->line = (int32_t)vp_impl_read_int(in, at, "line", INT32_MIN, INT32_MAX);
    }
}
static void vp_impl_read_op(vp_impl_ops_reader *in, uint32_t object, vp_op *op) {
    *op = vp_op_default();
    if (vp_impl_read_type(in, object) != VP_JSON_OBJECT) vp_impl_read_fail(in, VP_ERR_FORMAT, "rows", object);
    op->name = vp_impl_read_text(in, object, "name");
    op->stage = vp_impl_read_text(in, object, "stage");
    op->part = vp_impl_read_text(in, object, "part");
    op->file = vp_impl_read_text(in, object, "file");
    op->line = (int32_t)vp_impl_read_int(in, object, "line", INT32_MIN, INT32_MAX);
    op->block = vp_impl_read_index(in, object, "block");
    op->step = vp_impl_read_index(in, object, "step");
    vp_impl_read_shape(in, object, op);
    vp_impl_read_stack(in, object, op);
    for (int i = 0; i < VP_IMPL_OP_NUMBERS && in->result == VP_OK; i++)
        *vp_impl_op_number_of(op, i) = vp_impl_read_int(in, object, vp_impl_op_numbers[i].name, INT64_MIN, INT64_MAX);
}
static uint32_t vp_impl_read_groups(vp_impl_ops_reader *in, uint32_t object) {
    const uint32_t node = vp_impl_read_member(in, object, "group_by", VP_JSON_ARRAY);
    uint32_t at, groups = 0;
    int i;
    if (node == VP_JSON_NONE) return 0;
    for (at = node + 1; at < in->json->nodes[node].end; at = in->json->nodes[at].end) {
        for (i = 0; i < 6 && !vp_json_equals(in->json, at, vp_impl_ops_groups[i]); i++) continue;
        if (i == 6) vp_impl_read_fail(in, VP_ERR_FORMAT, "group_by", at);
        else groups |= UINT32_C(1) << i;
    }
    return groups;
}
/* reads everything except the rows */
static void vp_impl_read_head(vp_impl_ops_reader *in, uint32_t object, vp_ops *head) {
    const uint32_t ceilings = vp_impl_read_member(in, object, "ceilings", VP_JSON_OBJECT);
    const uint32_t dropped = vp_impl_read_member(in, object, "dropped", VP_JSON_OBJECT);
    const uint32_t clock = vp_impl_read_member(in, object, "clock", VP_JSON_STRING),
                   key = vp_json_get(in->json, object, "sort_key");
    int i;
    if (in->result != VP_OK) return;
    head->clock = vp_json_equals(in->json, clock, "device") ? VP_OPS_DEVICE : VP_OPS_HOST;
    if (head->clock == VP_OPS_HOST && !vp_json_equals(in->json, clock, "host"))
        vp_impl_read_fail(in, VP_ERR_FORMAT, "clock", clock);
    for (i = 0; i < VP_IMPL_SORT_KEYS && !vp_json_equals(in->json, key, vp_impl_sort_keys[i].name); i++) continue;
    if (i < VP_IMPL_SORT_KEYS) head->sort_key = vp_impl_sort_keys[i].name;
    else if (vp_impl_read_type(in, key) != VP_JSON_NULL) vp_impl_read_fail(in, VP_ERR_FORMAT, "sort_key", key);
    head->device_name = vp_impl_read_text(in, object, "device_name");
    head->ceilings.bytes_per_s = vp_impl_read_ceiling(in, ceilings, "bytes_per_s");
    head->ceilings.flops_per_s = vp_impl_read_ceiling(in, ceilings, "flops_per_s");
    head->dropped_calls = vp_impl_read_int(in, dropped, "calls", 0, INT64_MAX);
    head->dropped_host_ns = vp_impl_read_int(in, dropped, "host_ns", 0, INT64_MAX);
    head->dropped_device_ns = vp_impl_read_int(in, dropped, "device_ns", 0, INT64_MAX);
}
static void vp_impl_read_rows(vp_impl_ops_reader *in, uint32_t rows, vp_ops *ops) {
    vp_op op;
    for (uint32_t at = rows + 1; in->result == VP_OK && at < in->json->nodes[rows].end; at = in->json->nodes[at].end) {
        const int64_t before = ops->count;
        vp_impl_read_op(in, at, &op);
        if (in->result != VP_OK) return;
        vp_result result = vp_ops_add(ops, &op);
        if (result == VP_OK && ops->count == before) result = VP_ERR_RANGE; /* a second row with this key */
        if (result != VP_OK) vp_impl_read_fail(in, result, "rows", at);
    }
}
VP_API vp_result vp_ops_read_json(vp_ops *ops, const vp_json *json, uint32_t object, char *text, size_t capacity,
                                  vp_error *error) {
    vp_impl_ops_reader in;
    vp_ops read;
    memset(&in, 0, sizeof in);
    in.json = json;
    in.text = text;
    in.capacity = capacity;
    in.node = VP_JSON_NONE;
    if (!vp_json_equals(json, vp_json_get(json, object, "schema"), VP_OPS_SCHEMA))
        vp_impl_read_fail(&in, VP_ERR_MISMATCH, "schema", object);
    int64_t frames = vp_impl_read_int(&in, object, "group_by_stack_n", 0, VP_OP_STACK_LIMIT);
    vp_ops_init(&read, ops->rows, ops->capacity, vp_impl_read_groups(&in, object), (int32_t)frames);
    uint32_t rows = vp_impl_read_member(&in, object, "rows", VP_JSON_ARRAY);
    if (rows != VP_JSON_NONE) vp_impl_read_rows(&in, rows, &read);
    vp_impl_read_head(&in, object, &read);
    if (in.result == VP_OK) {
        *ops = read;
        return VP_OK;
    }
    vp_ops_init(ops, ops->rows, ops->capacity, ops->group_by, ops->group_by_stack_n);
    const int64_t offset = in.node < json->node_count ? (int64_t)json->nodes[in.node].start : -1;
    return vp_error_set(error, in.result, offset, in.where,
                        in.result == VP_ERR_CAPACITY ? "the rows or names of the table do not fit in the buffers"
                        : in.result == VP_ERR_MISMATCH
                            ? "this is not a table of operations: schema is not \"" VP_OPS_SCHEMA "\""
                            : "a member of the table of operations is missing, has the wrong type or is out of range");
}

/* ---- schedule */
VP_API const char *vp_schedule_state_name(vp_schedule_state state) {
    static const char *const names[] = {"NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"};
    return (int)state >= 0 && (int)state < 4 ? names[state] : NULL;
}
VP_API vp_schedule vp_schedule_default(void) {
    vp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    schedule.wait = schedule.warmup = schedule.repeat = 1;
    schedule.active = 3;
    return schedule;
}
#define VP_IMPL_STEP_LIMIT (INT64_C(1) << 53) /* sums of a few of them fit in an int64 */

static vp_result vp_impl_schedule_fail(vp_error *error, const char *name, int64_t value, const char *rule) {
    vp_impl_message message = { { 0 }, 0 };
    vp_impl_message_text(&message, name);
    vp_impl_message_text(&message, " is ");
    vp_impl_message_int(&message, value);
    vp_impl_message_text(&message, rule);
    return vp_error_set(error, VP_ERR_RANGE, -1, "schedule", message.text);
}
VP_API vp_result vp_schedule_check(const vp_schedule *schedule, int *no_warmup, vp_error *error) {
    const char *names[] = { "skip_first", "wait", "warmup", "active", "repeat", "every_n_steps" };
    const int64_t values[] = {schedule->skip_first, schedule->wait,   schedule->warmup,
                              schedule->active,     schedule->repeat, schedule->every_n_steps};
    for (int i = 0; i < 6; i++) {
        if (values[i] < 0) return vp_impl_schedule_fail(error, names[i], values[i], ", below 0");
        if (values[i] > VP_IMPL_STEP_LIMIT) return vp_impl_schedule_fail(error, names[i], values[i], ", above 2^53");
    }
    if (schedule->active == 0) return vp_impl_schedule_fail(error, "active", 0, ": a cycle records at least one step");
    if (schedule->skip_first_wait != 0 && schedule->skip_first_wait != 1)
        return vp_impl_schedule_fail(error, "skip_first_wait", schedule->skip_first_wait, ", expected 0 or 1");
    int64_t cycle = schedule->wait + schedule->warmup + schedule->active;
    if (schedule->every_n_steps > 0 && schedule->every_n_steps < cycle)
        return vp_impl_schedule_fail(error, "every_n_steps", schedule->every_n_steps,
                                     ", shorter than wait + warmup + active");
    if (no_warmup) *no_warmup = schedule->warmup == 0;
    return VP_OK;
}
static int64_t vp_impl_schedule_period(const vp_schedule *schedule) {
    return schedule->every_n_steps > 0 ? schedule->every_n_steps : schedule->wait + schedule->warmup + schedule->active;
}
VP_API vp_result vp_schedule_at(const vp_schedule *schedule, int64_t step, vp_schedule_step *out) {
    vp_schedule_step found;
    if (step < 0 || step > VP_IMPL_STEP_LIMIT) return VP_ERR_RANGE;
    if (vp_schedule_check(schedule, NULL, NULL) != VP_OK) return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    found.state = VP_SCHEDULE_NONE;
    found.cycle = -1;
    if (step >= schedule->skip_first) {
        step -= schedule->skip_first;
        if (schedule->skip_first_wait) step += schedule->wait;
        int64_t period = vp_impl_schedule_period(schedule);
        int64_t record = schedule->wait + schedule->warmup;
        int64_t end = record + schedule->active;
        if (schedule->repeat == 0 || step / period < schedule->repeat) {
            found.cycle = step / period;
            step %= period;
            if (step >= schedule->wait && step < record) found.state = VP_SCHEDULE_WARMUP;
            else if (step >= record && step < end)
                found.state = step < end - 1 ? VP_SCHEDULE_RECORD : VP_SCHEDULE_RECORD_AND_SAVE;
            found.ends_cycle = step == end - 1;
        }
    }
    *out = found;
    return VP_OK;
}
VP_API vp_result vp_schedule_count(const vp_schedule *schedule, int64_t steps, vp_schedule_sum *sum) {
    vp_schedule_sum found;
    if (steps < 0 || steps > VP_IMPL_STEP_LIMIT || vp_schedule_check(schedule, NULL, NULL) != VP_OK)
        return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    int64_t period = vp_impl_schedule_period(schedule);
    int64_t record = schedule->wait + schedule->warmup;
    int64_t left = steps - schedule->skip_first;
    if (left > 0) {
        if (schedule->skip_first_wait) left += schedule->wait;
        if (left >= record + schedule->active) found.cycles = (left - record - schedule->active) / period + 1;
        if (schedule->repeat > 0 && found.cycles >= schedule->repeat) {
            found.cycles = schedule->repeat;
        } else if (left - found.cycles * period > record) {
            found.partial_steps = left - found.cycles * period - record;
        }
        found.recorded_steps = found.cycles * schedule->active;
    }
    *sum = found;
    return VP_OK;
}
VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */

#if defined(VLMPROF_OFF) && !defined(vp_range_begin)
#define vp_range_begin(ranges, name, file, line) \
    ((void)(ranges), (void)(name), (void)(file), (void)(line), vp_impl_off())
#define vp_range_set(ranges, payload) ((void)(ranges), (void)(payload), vp_impl_off())
#define vp_range_end(ranges) ((void)(ranges), vp_impl_off())
#endif
