/* command_trace.c: prints a Chrome trace as tables: text, CSV or JSON. trace/ reads and summarises it. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "base/table.h"
#include "commands/commands.h"
#include "results/metrics.h"
#include "trace/trace_read.h"
#include "trace/trace_tables.h"
#include "vlmprof_file.h"
#include "vlmprof_ranges.h"

#include <math.h>

static const struct option_spec TRACE_OPTIONS[] = {
    OPTION_GROUP("what to show"),
    {"table", CHOICE, "WHICH", "all", 0, 0, "all summary annotations ops kernels launches tracks memory",
     "show only this table: summary, annotations, ops, kernels, launches, tracks or memory; --csv shows ops by default",
     .excludes = "json", .because = "--json contains all tables"},
    OPTION_SORT_BY,
    {"row_limit", COUNT, "N", "20", 0, INT32_MAX, NULL,
     "maximum rows per table; --json and --csv print all by default"},
    {"group_by_input_shape", FLAG, NULL, NULL, 0, 0, NULL, "separate rows for different input shapes of an operation"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL, "accept a truncated file: show the part before the cut"},
    OPTION_GROUP("output"),
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile",
     "format of the operations table: as in key_averages, or as in cProfile (ncalls tottime ...)"},
    OPTION_CSV,
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* ---- tables: text, CSV and JSON come from a description of the columns */
/* A row of any table except the operations. Times are in us; NaN or -1 if the table has no such column. */
struct trace_line {
    const char *name, *where;
    int64_t calls, queue_most, bytes;
    double total_us, average_us, min_us, max_us, share, busy_us, idle_us, idle_share, host_wait_us, kernel_wait_us,
        queue_mean;
};
/* Formats a time in us, in the unit that torch would print. */
static struct number_text time_text(double us) {
    return us >= 1e6   ? number_formatted("%.3fs", us / 1e6)
           : us >= 1e3 ? number_formatted("%.3fms", us / 1e3)
                       : number_formatted("%.3fus", us);
}
static void cell_bytes(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const struct trace_line *line = (const struct trace_line *)row;
    (void)context;
    (void)own;
    if (line->bytes) *cell = KEY(cell->key, line->bytes);
}
/* A name of at most 55 columns; a longer one is cut between two characters. */
static void cell_short(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const char *name = ((const struct trace_line *)row)->name;
    const size_t bytes = strlen(name);
    size_t kept = bytes > 55 ? 52 : bytes;
    (void)context;
    while (kept && kept < bytes && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
    snprintf(own, CELL_BYTES, "%.*s%s", (int)kept, name, kept < bytes ? "..." : "");
    cell_set_text(cell, own);
}
enum { OF_ANNOTATIONS = 1, OF_KERNELS = 2, OF_CALLS = 4, OF_TRACKS = 8, ONES = OF_KERNELS | OF_CALLS,
       CALLS_TOO = OF_ANNOTATIONS | ONES };
#define LINE(member) CELL(struct trace_line, member)
static const struct table_column TRACE_COLUMNS[] = {
    {LINE(name), "name"}, {LINE(where), "where"}, {LINE(calls), "calls"}, {LINE(total_us), "total_us"},
    {LINE(average_us), "avg_us"}, {LINE(min_us), "min_us"}, {LINE(max_us), "max_us"}, {LINE(share), "share_percent"},
    {LINE(busy_us), "busy_us", .rules = COLUMN_OR_NO_KEY}, {LINE(idle_us), "idle_us", .rules = COLUMN_OR_NO_KEY},
    {LINE(host_wait_us), "host_wait_us", .rules = COLUMN_OR_NO_KEY},
    {LINE(kernel_wait_us), "kernel_wait_us", .rules = COLUMN_OR_NO_KEY},
    {LINE(queue_most), "queue_most", .rules = COLUMN_OR_NO_KEY | COLUMN_FROM_0},
    {LINE(queue_mean), "queue_mean", .rules = COLUMN_OR_NO_KEY}, {LINE(bytes), "bytes", .rules = COLUMN_NOT_IN_JSON},
    {CELL_MADE(cell_bytes), "bytes", .rules = COLUMN_NOT_IN_CSV | COLUMN_OR_NO_KEY},
    /* columns that are shown as text */
    {CELL_MADE(cell_short), NULL, "annotation", .in = OF_ANNOTATIONS},
    {CELL_MADE(cell_short), NULL, "kernel or copy", .in = OF_KERNELS},
    {CELL_MADE(cell_short), NULL, "call of the runtime", .in = OF_CALLS},
    {CELL_MADE(cell_short), NULL, "track", .in = OF_TRACKS},
    {LINE(where), NULL, "where", .in = OF_ANNOTATIONS | OF_TRACKS},
    {LINE(calls), NULL, "calls", .in = CALLS_TOO}, {LINE(calls), NULL, "slices", .in = OF_TRACKS},
    {LINE(total_us), NULL, "total", .as = time_text, .in = CALLS_TOO},
    {LINE(total_us), NULL, "span", .as = time_text, .in = OF_TRACKS},
    {LINE(average_us), NULL, "avg", .as = time_text, .in = CALLS_TOO},
    {LINE(min_us), NULL, "min", .as = time_text, .in = ONES},
    {LINE(max_us), NULL, "max", .as = time_text, .in = ONES},
    {LINE(busy_us), NULL, "busy", .as = time_text, .in = OF_ANNOTATIONS | OF_TRACKS},
    {LINE(idle_us), NULL, "idle", .as = time_text, .in = OF_ANNOTATIONS | OF_TRACKS},
    {LINE(idle_share), NULL, "idle %", "%.2f", .in = OF_ANNOTATIONS | OF_TRACKS},
    {LINE(share), NULL, "share %", "%.2f", .in = CALLS_TOO},
    {LINE(host_wait_us), NULL, "host wait", .as = time_text, .in = OF_TRACKS},
    {LINE(kernel_wait_us), NULL, "kernel wait", .as = time_text, .in = OF_TRACKS},
    {LINE(queue_most), NULL, "queue", .rules = COLUMN_FROM_0, .in = OF_TRACKS},
    {LINE(queue_mean), NULL, "mean", "%.3f", .in = OF_TRACKS}};

/* The memory of a device. */
struct memory_line { char name[40], at[24], type[24]; int device; double at_us; struct trace_peak peak; };
#define PEAK(member) CELL(struct memory_line, member)
static const struct table_column MEMORY_COLUMNS[] = {
    {PEAK(name), "device", "memory", .rules = COLUMN_NOT_IN_JSON},
    {PEAK(type), "device_type", .rules = COLUMN_NOT_IN_CSV},
    {PEAK(device), "device", .rules = COLUMN_NOT_IN_CSV}, {PEAK(peak.changes), "changes", "changes"},
    {PEAK(peak.allocated), "most_allocated_bytes", "most allocated", .rules = COLUMN_FROM_0},
    {PEAK(peak.reserved), "most_reserved_bytes", "most reserved", .rules = COLUMN_FROM_0},
    {PEAK(peak.left), "left_bytes", "alloc - freed"},
    {PEAK(at), "at_us", .rules = COLUMN_NOT_IN_JSON},
    {PEAK(at_us), "at_us", "peak at", .as = time_text, .rules = COLUMN_NOT_IN_CSV}};

static double us_of(int64_t ns) { return (double)ns / 1e3; }
static double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/* A table of the first rows, up to the limit; all rows if it is negative. The caller frees table.rows. */
static struct table trace_table(const struct trace_tables *tables, const struct trace_rows *rows, double whole,
                                int64_t limit) {
    const unsigned kind = rows == &tables->annotations ? OF_ANNOTATIONS
                          : rows == &tables->tracks    ? OF_TRACKS
                          : rows == &tables->kernels   ? OF_KERNELS
                                                       : OF_CALLS;
    const size_t count = limit >= 0 && (size_t)limit < rows->count ? (size_t)limit : rows->count;
    struct trace_line *lines = zeroed(count + 1, sizeof *lines);
    for (size_t i = 0; i < count; i++) {
        const struct trace_row *row = &rows->items[i];
        const int has_busy = !(kind & ONES), has_queue = kind == OF_TRACKS && !strcmp(row->where, "device");
        const double none = (double)NAN, idle = (double)(row->total_ns - row->busy_ns);
        lines[i] = (struct trace_line){
            row->name, row->where, row->calls, has_queue ? row->queue_most : -1, row->bytes, us_of(row->total_ns),
            us_of(row->total_ns) / (double)row->calls, us_of(row->min_ns), us_of(row->max_ns),
            share_of((double)row->total_ns, whole), has_busy ? us_of(row->busy_ns) : none, has_busy ? idle / 1e3 : none,
            share_of(idle, (double)row->total_ns), has_queue ? us_of(row->host_wait_ns) : none,
            has_queue ? us_of(row->kernel_wait_ns) : none, has_queue ? row->queue_mean : none};
    }
    return (struct table)TABLE(TRACE_COLUMNS, lines, count, NULL, kind);
}
/* The type of a device by torch's number; "device" is CUDA, or the only type of most traces. */
static void name_device(int type, char name[24]) {
    static const char *const names[20] = {[0] = "CPU", [1] = "device", [6] = "HIP", [12] = "XPU", [13] = "MPS",
                                          [15] = "HPU", [19] = "MTIA"};
    if (type >= 0 && type < 20 && names[type]) snprintf(name, 24, "%s", names[type]);
    else snprintf(name, 24, "type %d", type);
}
/* The caller frees table.rows. */
static struct table memory_table(const struct trace_tables *tables) {
    struct memory_line *lines = zeroed(tables->peak_count + 1, sizeof *lines);
    for (size_t i = 0; i < tables->peak_count; i++) {
        struct memory_line *line = &lines[i];
        line->peak = tables->peaks[i];
        line->device = line->peak.device;
        name_device(line->peak.type, line->type);
        snprintf(line->name, sizeof line->name, "%s %d", line->type, line->device < 0 ? 0 : line->device);
        line->at_us = us_of(line->peak.at_ns - tables->first_ns);
        snprintf(line->at, sizeof line->at, "%.3f", line->at_us);
    }
    return (struct table)TABLE(MEMORY_COLUMNS, lines, tables->peak_count, NULL, 0);
}
static double duration_of(const struct trace_tables *tables) { return (double)(tables->last_ns - tables->first_ns); }
static double launches_ns(const struct trace_tables *tables) {
    double whole = 0;
    for (size_t i = 0; i < tables->calls.count; i++) whole += (double)tables->calls.items[i].total_ns;
    return whole;
}

/* ---- as text */
static void print_more(size_t count, int64_t limit) {
    if (limit >= 0 && (size_t)limit < count) print_plain("... %zu more (--row_limit)\n", count - (size_t)limit);
}
/* Prints the table, frees its rows, and reports how many of `count` are not in it. */
static void print_table(struct table table, size_t count, int64_t limit) {
    struct document document = {NULL, 0, NULL};
    print_plain("\n");
    document_add_table(&document, &table);
    print_document(&document); /* main checks stdout */
    free((void *)table.rows);
    print_more(count, limit);
}
static void print_rows(const struct trace_tables *tables, const struct trace_rows *rows, double whole, int64_t limit,
                       const char *words) {
    print_table(trace_table(tables, rows, whole, limit), rows->count, limit);
    print_plain("%s\n", words);
}
static const char CALLS_WORDS[] = "total, avg, min, max: call durations; share: of this table's total";
static void print_launches(const struct trace_tables *tables, int64_t limit) {
    if (tables->calls.count) print_rows(tables, &tables->calls, launches_ns(tables), limit, CALLS_WORDS);
    if (!tables->launched) return;
    print_plain("launch delay, from the end of the call to the start on the device: mean %s, P50 %s, P99 %s, max %s",
                time_text(tables->delay.mean).text, time_text(tables->delay.p50).text,
                time_text(tables->delay.p99).text, time_text(tables->delay.max).text);
    print_plain("; %lld device slices, %lld more without a launch\n", (long long)tables->launched,
                (long long)tables->unlaunched);
}
/* The steps of the host, or NULL: devices have copies of them, one a stream. */
static const struct trace_row *steps_of(const struct trace_rows *rows) {
    for (size_t i = 0; i < rows->count; i++)
        if (!strcmp(rows->items[i].name, "ProfilerStep*") && !strcmp(rows->items[i].where, "host"))
            return &rows->items[i];
    return NULL;
}
static void print_trace_summary(const struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    const struct trace_row *steps = steps_of(&tables->annotations);
    print_plain("trace     ");
    print_visible(trace->path, strlen(trace->path));
    print_plain(": %lld events in %lld bytes%s\n", (long long)trace->seen, (long long)trace->bytes,
                trace->is_cut ? ", CUT OFF there" : "");
    print_plain("events    %zu slices, %zu memory changes, %lld flows, %lld counter values\n", trace->count,
                trace->memory_count, (long long)trace->flows, (long long)trace->counters);
    if (trace->no_duration + trace->no_time + trace->no_name + trace->other)
        print_plain(
            "left out  %lld without dur, %lld whose ts or dur is not a number in range, %lld without a name, %lld of "
            "another kind\n",
            (long long)trace->no_duration, (long long)trace->no_time, (long long)trace->no_name,
            (long long)trace->other);
    if (trace->malformed)
        print_plain("malformed %lld event%s skipped: not JSON; the first is %s\n", (long long)trace->malformed,
                    plural_s(trace->malformed), trace->malformed_at);
    if (trace->no_values)
        print_plain("no value  %lld event%s with NaN or inf instead of a number, kept without the number\n",
                    (long long)trace->no_values, plural_s(trace->no_values));
    if (trace->pairs)
        print_plain("not read  %lld events that begin or end a slice (B, E): only complete events (X) are read\n",
                    (long long)trace->pairs);
    if (trace->unknown.count)
        print_plain("unknown   categories: %lu (--json lists them); slices on a stream count as kernels, others as "
                    "host operations\n",
                    (unsigned long)trace->unknown.count);
    if (tables->repeated_ids)
        print_plain("ids       of %lld device slice%s occur in several processes, so no operation is assigned to "
                    "them\n",
                    (long long)tables->repeated_ids, plural_s(tables->repeated_ids));
    if (tables->overlaps)
        print_plain("overlaps  %lld slices of host threads overlap without nesting\n", (long long)tables->overlaps);
    print_plain("duration  %s, first slice to last\n", time_text(duration_of(tables) / 1e3).text);
    if (steps)
        print_plain("steps     %lld, avg %s, min %s, max %s\n", (long long)steps->calls,
                    time_text(us_of(steps->total_ns) / (double)steps->calls).text, time_text(us_of(steps->min_ns)).text,
                    time_text(us_of(steps->max_ns)).text);
    if (trace->device_count >= 0)
        print_plain("devices   %s\n",
                    trace->devices == NO_INDEX ? "none: CPU only" : text_table_at(&trace->names, trace->devices));
}

/* ---- as CSV and JSON */
/* Prints one table as CSV: the operations, unless `which` names another. Returns 0 or an exit code. */
static int print_trace_csv(struct trace_tables *tables, const char *which, int64_t limit) {
    const struct trace_rows *rows = !strcmp(which, "annotations") ? &tables->annotations
                                    : !strcmp(which, "kernels")   ? &tables->kernels
                                    : !strcmp(which, "launches")  ? &tables->calls
                                    : !strcmp(which, "tracks")    ? &tables->tracks
                                                                  : NULL;
    struct text_buffer out = {NULL, 0, 0};
    struct table table;
    if (!strcmp(which, "all") || !strcmp(which, "ops"))
        return trace_ops_code(tables, vp_ops_print_csv(&tables->ops, file_sink, stdout));
    table = !rows ? memory_table(tables)
                  : trace_table(tables, rows,
                                rows == &tables->kernels ? (double)tables->kernel_ns : duration_of(tables), limit);
    table_csv(&out, &table);
    fwrite(out.data, 1, out.bytes, stdout); /* main checks stdout */
    FREE_ALL((void *)table.rows, out.data);
    return 0;
}
/* Writes the rows of a table under a key and frees them. */
static void put_lines(vp_json_writer *writer, const char *key, struct table table) {
    table_put(writer, key, &table);
    free((void *)table.rows);
}
static void put_trace_summary(vp_json_writer *writer, const struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    const struct trace_row *steps = steps_of(&tables->annotations);
    PUT(writer, KEY_OBJECT("summary"), KEY("file", trace->path), KEY("bytes", trace->bytes),
        KEY_BOOL("cut_off", trace->is_cut), KEY("events", trace->seen), KEY("slices", trace->count),
        KEY("without_dur", trace->no_duration), KEY("with_bad_times", trace->no_time),
        KEY("without_name", trace->no_name), KEY("of_another_kind", trace->other), KEY("malformed", trace->malformed),
        KEY("first_malformed", trace->malformed ? trace->malformed_at : NULL), KEY("with_nan", trace->no_values),
        KEY("begin_or_end", trace->pairs), KEY("with_repeated_ids", tables->repeated_ids),
        KEY_ARRAY("unknown_categories"));
    for (uint32_t i = 0; i < trace->unknown.count; i++) vp_json_string(writer, text_table_at(&trace->unknown, i));
    PUT(writer, END_ARRAY, KEY("overlaps", tables->overlaps),
        KEY("duration_us", us_of(tables->last_ns - tables->first_ns)), KEY("steps", steps ? steps->calls : 0),
        KEY("step_avg_us", steps ? us_of(steps->total_ns) / (double)steps->calls : (double)NAN),
        KEY("devices", trace->devices == NO_INDEX ? NULL : text_table_at(&trace->names, trace->devices)),
        KEY_BOOL("emulated", trace->is_emulated), KEY_KNOWN("rank", !(trace->rank < 0), trace->rank),
        KEY_KNOWN("world_size", !(trace->world_size < 0), trace->world_size),
        KEY("host_name", trace->host_name == NO_INDEX ? NULL : text_table_at(&trace->names, trace->host_name)),
        KEY("trace_name", trace->trace_name == NO_INDEX ? NULL : text_table_at(&trace->names, trace->trace_name)),
        END_OBJECT);
}
static int print_trace_json(struct trace_tables *tables, int64_t limit) {
    const vp_statistics *delay = &tables->delay;
    const double whole = duration_of(tables);
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-trace-1"));
    put_trace_summary(&writer, tables);
    put_lines(&writer, "annotations", trace_table(tables, &tables->annotations, whole, limit));
    vp_json_key(&writer, "ops");
    vp_ops_write_json(&writer, &tables->ops);
    put_lines(&writer, "kernels", trace_table(tables, &tables->kernels, (double)tables->kernel_ns, limit));
    PUT(&writer, KEY_OBJECT("launches"));
    put_lines(&writer, "calls", trace_table(tables, &tables->calls, launches_ns(tables), limit));
    PUT(&writer, KEY("device_slices_with_launch", tables->launched),
        KEY("device_slices_without_launch", tables->unlaunched));
    if (tables->launched)
        PUT(&writer, KEY_OBJECT("delay_us"), KEY("mean", delay->mean), KEY("min", delay->min), KEY("p50", delay->p50),
            KEY("p95", delay->p95), KEY("p99", delay->p99), KEY("max", delay->max), END_OBJECT);
    else put_null(&writer, "delay_us");
    vp_json_end_object(&writer);
    put_lines(&writer, "tracks", trace_table(tables, &tables->tracks, whole, limit));
    put_lines(&writer, "memory", memory_table(tables));
    vp_json_end_object(&writer);
    putchar('\n');
    return trace_ops_code(tables, vp_json_finish(&writer));
}

/* Prints one table, or all tables that have rows. Returns 0 or an exit code. */
static int print_trace_text(struct trace_tables *tables, const char *which, int64_t limit,
                            const vp_ops_print_options *how, int is_cprofile) {
    int all = !strcmp(which, "all");
    vp_result result = VP_OK;
    if (all || !strcmp(which, "summary")) print_trace_summary(tables);
    if ((all && tables->annotations.count) || !strcmp(which, "annotations"))
        print_rows(tables, &tables->annotations, duration_of(tables), limit,
                   "total: sum over the calls; avg: total / calls; busy: time covered by inner slices (on a device: "
                   "kernels and copies); idle: the rest; share: of the duration");
    if ((all && tables->ops.count) || !strcmp(which, "ops")) {
        if (all) putchar('\n');
        result = (is_cprofile ? vp_ops_print_cprofile : vp_ops_print_torch)(&tables->ops, how, file_sink, stdout);
        if (!is_cprofile) print_more((size_t)tables->ops.count, limit);
        if (!is_cprofile) print_plain("%s", OPS_COLUMNS_TEXT);
    }
    if ((all && tables->kernels.count) || !strcmp(which, "kernels"))
        print_rows(tables, &tables->kernels, (double)tables->kernel_ns, limit, CALLS_WORDS);
    if ((all && tables->calls.count) || !strcmp(which, "launches")) print_launches(tables, limit);
    if ((all && tables->tracks.count) || !strcmp(which, "tracks"))
        print_rows(tables, &tables->tracks, 0, limit,
                   "span: first slice to last; busy: time covered by slices; host wait: gaps that began before the "
                   "next launch; kernel wait: other gaps below 30 us\n(as HTA computes it; its documentation says 30 "
                   "ns); queue and mean: maximum and mean number of waiting launches");
    if ((all && tables->trace->memory_count) || !strcmp(which, "memory")) print_table(memory_table(tables), 0, -1);
    return trace_ops_code(tables, result);
}

/* Checks that the options fit together. Returns 0 or an exit code. */
static int check_trace_options(const struct options *options) {
    if (!options->operand_count) return complain(EXIT_USAGE, "trace needs a file: a *.pt.trace.json, or - for stdin");
    if (is_given(options, "csv") && !strcmp(text_of(options, "table"), "summary"))
        return complain(EXIT_USAGE, "--csv prints only tables, not the summary");
    return check_sort_key(text_of(options, "sort_by"));
}
static int run_command(const struct options *options) {
    vp_ops_print_options print = vp_ops_print_options_default();
    int64_t limit = is_given(options, "row_limit") || !(is_given(options, "json") || is_given(options, "csv"))
                        ? number_of(options, "row_limit")
                        : -1;
    const char *key = text_of(options, "sort_by"), *which = text_of(options, "table");
    struct trace trace;
    struct trace_tables tables = {0};
    int code;
    if ((code = check_trace_options(options)) != 0) return code;
    code = trace_read(&trace, options->operands[0], is_given(options, "partial"));
    if (!code) code = trace_summarise(&tables, &trace, is_given(options, "group_by_input_shape"));
    if (!code) {
        const char *kind = trace.kind == NO_INDEX ? "CUDA" : text_table_at(&trace.names, trace.kind);
        tables.ops.device_name = tables.kernel_ns ? kind : NULL;
        print.row_limit = limit;
        print.with_memory = trace.memory_count > 0;
        if (!key) key = tables.kernel_ns ? "device_time_total" : "self_cpu_time_total";
        code = trace_ops_code(&tables, vp_ops_sort(&tables.ops, key));
    }
    if (!code) {
        if (is_given(options, "json")) code = print_trace_json(&tables, limit);
        else if (is_given(options, "csv")) code = print_trace_csv(&tables, which, limit);
        else
            code = print_trace_text(&tables, which, limit, &print, strcmp(text_of(options, "profile_format"), "torch"));
    }
    trace_tables_free(&tables);
    trace_free(&trace);
    return code;
}

const struct command command_trace = {
    "trace",
    "FILE",
    "show where the time goes in a trace of vlmprof or torch.profiler: steps, stages, operations, kernels, launches, "
    "idle streams",
    "vlmprof trace chrome_trace.json --row_limit 10\n"
    "  vlmprof trace run.pt.trace.json --csv --table kernels",
    1,
    COMMAND_OPTIONS(TRACE_OPTIONS),
    NULL,
    run_command};
