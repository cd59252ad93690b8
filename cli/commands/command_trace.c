/* command_trace.c: a Chrome trace as tables.
 * A trace file, or a table that `run --profile` saved, comes in. trace/ reads and summarises it; this file prints the
 * tables as text, CSV or JSON on stdout. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "trace/trace_read.h"
#include "trace/trace_tables.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_ranges.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec TRACE_OPTIONS[] = {
    OPTION_GROUP("what is shown"),
    {"table", CHOICE, "WHICH", "all", 0, 0, "all summary annotations ops kernels launches tracks memory",
     "only this one: summary annotations ops kernels launches tracks memory; of --csv ops unless it is given",
     .excludes = "json", .because = "--json has all tables"},
    OPTION_SORT_BY,
    {"row_limit", COUNT, "N", "20", 0, INT32_MAX, NULL,
     "most rows of a table; --json and --csv have all unless it is given"},
    {"group_by_input_shape", FLAG, NULL, NULL, 0, 0, NULL,
     "a row for each operation and its input shapes"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL, "a file that is cut off: show what lies before the cut"},
    OPTION_GROUP("output"),
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile",
     "of the operations: key_averages' table, or cProfile's (ncalls tottime ...)"},
    OPTION_CSV,
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* ---- as text */
/* A time in the unit that torch would print it in. */
static char *time_text(double ns, char out[32]) {
    if (ns >= 1e9) snprintf(out, 32, "%.3fs", ns / 1e9);
    else if (ns >= 1e6) snprintf(out, 32, "%.3fms", ns / 1e6);
    else snprintf(out, 32, "%.3fus", ns / 1e3);
    return out;
}
/* Prints a name in 55 columns; a longer one is cut between two characters. */
static void print_name(const char *name) {
    char text[56];
    size_t bytes = strlen(name), columns;
    if (bytes > 55) {
        size_t kept = 52;
        while (kept && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
        snprintf(text, sizeof text, "%.*s...", (int)kept, name);
    } else snprintf(text, sizeof text, "%s", name);
    hide_control_bytes(text);
    columns = text_width(text);
    print_plain("%s%*s", text, columns < 55 ? (int)(55 - columns) : 0, "");
}
static void print_caption(const char *text) { print_plain("%s\n", text); }
static void print_more(size_t count, int64_t limit) {
    if (limit >= 0 && (size_t)limit < count) print_plain("... %zu more (--row_limit)\n", count - (size_t)limit);
}
/* How many rows of a table are shown; a limit below 0 is none. */
static size_t shown(const struct trace_rows *rows, int64_t limit) {
    return limit >= 0 && (size_t)limit < rows->count ? (size_t)limit : rows->count;
}
/* Percent; 0 of nothing. */
static double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static void print_annotations(const struct trace_tables *tables, int64_t limit) {
    char total[32], average[32], busy[32], idle[32];
    double whole = (double)(tables->last_ns - tables->first_ns);
    print_plain("\n%-55s %-6s %9s %12s %12s %12s %12s %8s %8s\n", "annotation", "where", "calls", "total", "avg",
                "busy", "idle", "idle %", "share %");
    for (size_t i = 0; i < shown(&tables->annotations, limit); i++) {
        const struct trace_row *row = &tables->annotations.items[i];
        print_name(row->name);
        print_plain(" %-6s %9lld %12s %12s %12s %12s %8.2f %8.2f\n", row->where, (long long)row->calls,
                    time_text((double)row->total_ns, total),
                    time_text((double)row->total_ns / (double)row->calls, average),
                    time_text((double)row->busy_ns, busy), time_text((double)(row->total_ns - row->busy_ns), idle),
                    share_of((double)(row->total_ns - row->busy_ns), (double)row->total_ns),
                    share_of((double)row->total_ns, whole));
    }
    print_more(tables->annotations.count, limit);
    print_caption("total: sum over the calls, avg: total / calls; busy: covered by slices within, on a device by its "
                  "kernels and copies; idle: the rest; share: of the duration");
}
static void print_calls(const struct trace_rows *rows, const char *head, double whole, int64_t limit) {
    char total[32], average[32], least[32], most[32];
    print_plain("\n%-55s %9s %12s %12s %12s %12s %8s\n", head, "calls", "total", "avg", "min", "max", "share %");
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const struct trace_row *row = &rows->items[i];
        print_name(row->name);
        print_plain(" %9lld %12s %12s %12s %12s %8.2f\n", (long long)row->calls,
                    time_text((double)row->total_ns, total),
                    time_text((double)row->total_ns / (double)row->calls, average),
                    time_text((double)row->min_ns, least), time_text((double)row->max_ns, most),
                    share_of((double)row->total_ns, whole));
    }
    print_more(rows->count, limit);
    print_caption("total, avg, min, max: of the durations of the calls; share: of all rows of this table");
}
static void print_launches(const struct trace_tables *tables, int64_t limit) {
    char mean[32], median[32], p99[32], most[32];
    double whole = 0;
    for (size_t i = 0; i < tables->calls.count; i++) whole += (double)tables->calls.items[i].total_ns;
    if (tables->calls.count) print_calls(&tables->calls, "call of the runtime", whole, limit);
    if (!tables->launched) return;
    print_plain("launch delay, end of the call to start on the device: mean %s, P50 %s, P99 %s, most %s",
                time_text(tables->delay.mean * 1e3, mean), time_text(tables->delay.p50 * 1e3, median),
                time_text(tables->delay.p99 * 1e3, p99), time_text(tables->delay.max * 1e3, most));
    print_plain("; %lld device slices, %lld more without their launch\n", (long long)tables->launched,
                (long long)tables->unlaunched);
}
static void print_tracks(const struct trace_tables *tables, int64_t limit) {
    char total[32], busy[32], idle[32], host_wait[32], kernel_wait[32];
    print_plain("\n%-55s %-6s %9s %12s %12s %12s %8s %12s %12s %7s %9s\n", "track", "where", "slices", "span", "busy",
                "idle", "idle %", "host wait", "kernel wait", "queue", "mean");
    for (size_t i = 0; i < shown(&tables->tracks, limit); i++) {
        const struct trace_row *row = &tables->tracks.items[i];
        int on_device = !strcmp(row->where, "device");
        print_name(row->name);
        print_plain(" %-6s %9lld %12s %12s %12s %8.2f", row->where, (long long)row->calls,
                    time_text((double)row->total_ns, total), time_text((double)row->busy_ns, busy),
                    time_text((double)(row->total_ns - row->busy_ns), idle),
                    share_of((double)(row->total_ns - row->busy_ns), (double)row->total_ns));
        if (on_device)
            print_plain(" %12s %12s %7lld %9.3f\n", time_text((double)row->host_wait_ns, host_wait),
                        time_text((double)row->kernel_wait_ns, kernel_wait), (long long)row->queue_most,
                        row->queue_mean);
        else print_plain(" %12s %12s %7s %9s\n", "-", "-", "-", "-");
    }
    print_more(tables->tracks.count, limit);
    print_caption("span: first slice to last; busy: covered by slices; host wait: gaps that began before the next "
                  "launch; kernel wait: others below 30 us\n(as HTA computes it; its documentation says 30 ns); queue "
                  "and mean: most and mean launches that wait");
}
static void print_memory(const struct trace_tables *tables) {
    print_plain("\n%-12s %9s %16s %16s %16s   %s\n", "memory", "changes", "most allocated", "most reserved",
                "taken - given",
                "most at");
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const struct trace_peak *peak = &tables->peaks[i];
        char name[24], at[32];
        if (!peak->changes) continue;
        if (i) snprintf(name, sizeof name, "device %d", i - 1); else snprintf(name, sizeof name, "CPU");
        print_plain("%-12s %9lld %16lld %16lld %16lld   %s\n", name, (long long)peak->changes,
                    (long long)peak->allocated,
                    (long long)peak->reserved, (long long)peak->left,
                    time_text((double)(peak->at_ns - tables->first_ns), at));
    }
}
/* The row of a name, or NULL. */
static const struct trace_row *row_named(const struct trace_rows *rows, const char *name) {
    for (size_t i = 0; i < rows->count; i++) if (!strcmp(rows->items[i].name, name)) return &rows->items[i];
    return NULL;
}
static void print_trace_summary(const struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    const struct trace_row *steps = row_named(&tables->annotations, "ProfilerStep*");
    char text[32], least[32], most[32];
    print_plain("trace     ");
    print_visible(trace->path, strlen(trace->path));
    print_plain(": %lld events in %lld bytes%s\n", (long long)trace->seen, (long long)trace->bytes,
                trace->is_cut ? ", CUT OFF there" : "");
    print_plain("events    %zu slices, %zu changes of memory, %lld flows, %lld counter values\n", trace->count,
                trace->memory_count, (long long)trace->flows, (long long)trace->counters);
    if (trace->no_duration + trace->no_time + trace->no_name + trace->other)
        print_plain(
            "left out  %lld without dur, %lld whose ts or dur is no number in range, %lld without a name, %lld of "
            "another kind\n",
            (long long)trace->no_duration, (long long)trace->no_time, (long long)trace->no_name,
            (long long)trace->other);
    if (tables->overlaps)
        print_plain("overlaps  %lld slices of host threads overlap without nesting\n", (long long)tables->overlaps);
    print_plain("duration  %s, first slice to last\n", time_text((double)(tables->last_ns - tables->first_ns), text));
    if (steps)
        print_plain("steps     %lld, avg %s, min %s, max %s\n", (long long)steps->calls,
                    time_text((double)steps->total_ns / (double)steps->calls, text),
                    time_text((double)steps->min_ns, least), time_text((double)steps->max_ns, most));
    if (trace->device_count >= 0)
        print_plain("devices   %s%s\n",
                    trace->devices == NO_INDEX ? "none: CPU only" : text_table_at(&trace->names, trace->devices),
                    trace->is_emulated && trace->devices != NO_INDEX
                       && !strstr(text_table_at(&trace->names, trace->devices), "emulated")
                   ? " (emulated)"
                   : "");
    if (trace->rank >= 0) print_plain("rank      %lld of %lld\n", (long long)trace->rank, (long long)trace->world_size);
    if (trace->host_name != NO_INDEX) {
        print_plain("host      ");
        print_visible(text_table_at(&trace->names, trace->host_name),
                      strlen(text_table_at(&trace->names, trace->host_name)));
        putchar('\n');
    }
}

/* ---- as CSV and JSON; times in us, with three decimals as in the trace */
static double us_of(int64_t ns) { return (double)ns / 1e3; }
static void csv_whole(struct text_buffer *out, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, ",%lld", (long long)value);
    text_add_string(out, text);
}
/* Appends a row. Fields that mean nothing for its kind stay empty: has_busy, has_queue. */
static void csv_trace_row(struct text_buffer *out, const struct trace_row *row, double whole, int has_busy,
                          int has_queue) {
    const double none = (double)NAN;
    csv_text(out, row->name);
    text_add_string(out, ",");
    csv_text(out, row->where);
    csv_whole(out, row->calls);
    csv_number(out, us_of(row->total_ns));
    csv_number(out, us_of(row->total_ns) / (double)row->calls);
    csv_number(out, us_of(row->min_ns));
    csv_number(out, us_of(row->max_ns));
    csv_number(out, share_of((double)row->total_ns, whole));
    csv_number(out, has_busy ? us_of(row->busy_ns) : none);
    csv_number(out, has_busy ? us_of(row->total_ns - row->busy_ns) : none);
    csv_number(out, has_queue ? us_of(row->host_wait_ns) : none);
    csv_number(out, has_queue ? us_of(row->kernel_wait_ns) : none);
    csv_number(out, has_queue ? (double)row->queue_most : none);
    csv_number(out, has_queue ? row->queue_mean : none);
    csv_whole(out, row->bytes);
    text_add_string(out, "\n");
}
static void csv_trace_rows(struct text_buffer *out, const struct trace_tables *tables, const struct trace_rows *rows,
                           int64_t limit) {
    const int is_tracks = rows == &tables->tracks, has_busy = is_tracks || rows == &tables->annotations;
    double whole = rows == &tables->kernels ? (double)tables->kernel_ns : (double)(tables->last_ns - tables->first_ns);
    text_add_string(out,
                    "name,where,calls,total_us,avg_us,min_us,max_us,share_percent,busy_us,idle_us,host_wait_us,"
                    "kernel_wait_us,queue_most,queue_mean,bytes\n");
    for (size_t i = 0; i < shown(rows, limit); i++)
        csv_trace_row(out, &rows->items[i], whole, has_busy, is_tracks && !strcmp(rows->items[i].where, "device"));
}
static void csv_trace_memory(struct text_buffer *out, const struct trace_tables *tables) {
    text_add_string(out, "device,changes,most_allocated_bytes,most_reserved_bytes,left_bytes,at_us\n");
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const struct trace_peak *peak = &tables->peaks[i];
        char line[200];
        if (!peak->changes) continue;
        snprintf(line, sizeof line, "%s%d,%lld,%lld,%lld,%lld,%.3f\n", i ? "device " : "CPU ", i ? i - 1 : 0,
                 (long long)peak->changes, (long long)peak->allocated, (long long)peak->reserved, (long long)peak->left,
                 us_of(peak->at_ns - tables->first_ns));
        text_add_string(out, line);
    }
}
/* Prints one table as CSV: of the operations unless `which` names another. Returns 0 or an exit code. */
static int print_trace_csv(struct trace_tables *tables, const char *which, int64_t limit) {
    const struct trace_rows *rows = !strcmp(which, "annotations") ? &tables->annotations
                                    : !strcmp(which, "kernels")   ? &tables->kernels
                                    : !strcmp(which, "launches")  ? &tables->calls
                                    : !strcmp(which, "tracks")    ? &tables->tracks
                                                                  : NULL;
    struct text_buffer out = {NULL, 0, 0};
    if (!strcmp(which, "all") || !strcmp(which, "ops"))
        return trace_ops_code(tables, vp_ops_print_csv(&tables->ops, file_sink, stdout));
    if (rows) csv_trace_rows(&out, tables, rows, limit);
    else csv_trace_memory(&out, tables);
    fwrite(out.data, 1, out.bytes, stdout); /* main finds an error of stdout */
    free(out.data);
    return 0;
}

static void put_trace_rows(vp_json_writer *writer, const char *key, const struct trace_rows *rows, double whole,
                           int64_t limit) {
    vp_json_key(writer, key);
    vp_json_begin_array(writer);
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const struct trace_row *row = &rows->items[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("name", row->name), KEY("where", row->where), KEY("calls", row->calls),
            KEY("total_us", us_of(row->total_ns)), KEY("avg_us", us_of(row->total_ns) / (double)row->calls),
            KEY("min_us", us_of(row->min_ns)), KEY("max_us", us_of(row->max_ns)),
            KEY("share_percent", share_of((double)row->total_ns, whole)));
        if (!strcmp(key, "annotations") || !strcmp(key, "tracks")) {
            PUT(writer, KEY("busy_us", us_of(row->busy_ns)), KEY("idle_us", us_of(row->total_ns - row->busy_ns)));
        }
        if (!strcmp(key, "tracks") && !strcmp(row->where, "device")) {
            PUT(writer, KEY("host_wait_us", us_of(row->host_wait_ns)),
                KEY("kernel_wait_us", us_of(row->kernel_wait_ns)), KEY("queue_most", row->queue_most),
                KEY("queue_mean", row->queue_mean));
        }
        if (row->bytes) put_int(writer, "bytes", row->bytes);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}
static void put_trace_memory(vp_json_writer *writer, const struct trace_tables *tables) {
    vp_json_key(writer, "memory");
    vp_json_begin_array(writer);
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const struct trace_peak *peak = &tables->peaks[i];
        if (!peak->changes) continue;
        PUT(writer, KEY_OBJECT(NULL), KEY("device_type", i ? "device" : "CPU"), KEY("device", i - 1),
            KEY("changes", peak->changes), KEY("most_allocated_bytes", peak->allocated),
            KEY("most_reserved_bytes", peak->reserved), KEY("left_bytes", peak->left),
            KEY("at_us", us_of(peak->at_ns - tables->first_ns)), END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_trace_summary(vp_json_writer *writer, const struct trace_tables *tables) {
    const struct trace *trace = tables->trace;
    const struct trace_row *steps = row_named(&tables->annotations, "ProfilerStep*");
    PUT(writer, KEY_OBJECT("summary"), KEY("file", trace->path), KEY("bytes", trace->bytes),
        KEY_BOOL("cut_off", trace->is_cut), KEY("events", trace->seen), KEY("slices", trace->count),
        KEY("without_dur", trace->no_duration), KEY("with_bad_times", trace->no_time),
        KEY("without_name", trace->no_name), KEY("of_another_kind", trace->other), KEY("overlaps", tables->overlaps),
        KEY("duration_us", us_of(tables->last_ns - tables->first_ns)), KEY("steps", steps ? steps->calls : 0),
        KEY("step_avg_us", steps ? us_of(steps->total_ns) / (double)steps->calls : (double)NAN),
        KEY("devices", trace->devices == NO_INDEX ? NULL : text_table_at(&trace->names, trace->devices)),
        KEY_BOOL("emulated", trace->is_emulated), KEY_KNOWN("rank", !(trace->rank < 0), trace->rank),
        KEY_KNOWN("world_size", !(trace->world_size < 0), trace->world_size),
        KEY("host_name", trace->host_name == NO_INDEX ? NULL : text_table_at(&trace->names, trace->host_name)),
        KEY("trace_name", trace->trace_name == NO_INDEX ? NULL : text_table_at(&trace->names, trace->trace_name)),
        END_OBJECT);
}
static void put_trace_launches(vp_json_writer *writer, const struct trace_tables *tables, int64_t limit) {
    double whole = 0;
    for (size_t i = 0; i < tables->calls.count; i++) whole += (double)tables->calls.items[i].total_ns;
    vp_json_key(writer, "launches");
    vp_json_begin_object(writer);
    put_trace_rows(writer, "calls", &tables->calls, whole, limit);
    put_int(writer, "device_slices_with_launch", tables->launched);
    put_int(writer, "device_slices_without_launch", tables->unlaunched);
    vp_json_key(writer, "delay_us");
    if (tables->launched) {
        PUT(writer, KEY_OBJECT(NULL), KEY("mean", tables->delay.mean), KEY("min", tables->delay.min),
            KEY("p50", tables->delay.p50), KEY("p95", tables->delay.p95), KEY("p99", tables->delay.p99),
            KEY("max", tables->delay.max), END_OBJECT);
    } else vp_json_null(writer);
    vp_json_end_object(writer);
}
static int print_trace_json(struct trace_tables *tables, int64_t limit) {
    vp_json_writer writer;
    double whole = (double)(tables->last_ns - tables->first_ns);
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-trace-1"));
    put_trace_summary(&writer, tables);
    put_trace_rows(&writer, "annotations", &tables->annotations, whole, limit);
    vp_json_key(&writer, "ops");
    vp_ops_write_json(&writer, &tables->ops);
    put_trace_rows(&writer, "kernels", &tables->kernels, (double)tables->kernel_ns, limit);
    put_trace_launches(&writer, tables, limit);
    put_trace_rows(&writer, "tracks", &tables->tracks, whole, limit);
    put_trace_memory(&writer, tables);
    vp_json_end_object(&writer);
    putchar('\n');
    return trace_ops_code(tables, vp_json_finish(&writer));
}

/* Prints one table, or all that have rows. Returns 0 or an exit code. */
static int print_trace_text(struct trace_tables *tables, const char *which, int64_t limit,
                            const vp_ops_print_options *how, int is_cprofile) {
    int all = !strcmp(which, "all");
    vp_result result = VP_OK;
    if (all || !strcmp(which, "summary")) print_trace_summary(tables);
    if ((all && tables->annotations.count) || !strcmp(which, "annotations")) print_annotations(tables, limit);
    if ((all && tables->ops.count) || !strcmp(which, "ops")) {
        if (all) putchar('\n');
        result = (is_cprofile ? vp_ops_print_cprofile : vp_ops_print_torch)(&tables->ops, how, file_sink, stdout);
        if (!is_cprofile) print_more((size_t)tables->ops.count, limit);
        if (!is_cprofile) print_plain("%s", OPS_COLUMNS_TEXT);
    }
    if ((all && tables->kernels.count) || !strcmp(which, "kernels"))
        print_calls(&tables->kernels, "kernel or copy", (double)tables->kernel_ns, limit);
    if ((all && tables->calls.count) || !strcmp(which, "launches")) print_launches(tables, limit);
    if ((all && tables->tracks.count) || !strcmp(which, "tracks")) print_tracks(tables, limit);
    if ((all && tables->trace->memory_count) || !strcmp(which, "memory")) print_memory(tables);
    return trace_ops_code(tables, result);
}

/* Prints a saved table in the form that --profile_format, --csv or --json asks for. */
static vp_result print_saved(const struct options *options, vp_ops *ops, const vp_ops_print_options *how) {
    vp_json_writer writer;
    vp_result result;
    if (is_given(options, "csv")) return vp_ops_print_csv(ops, file_sink, stdout);
    if (!is_given(options, "json"))
        return (strcmp(text_of(options, "profile_format"), "torch") ? vp_ops_print_cprofile
                                                                    : vp_ops_print_torch)(ops, how, file_sink, stdout);
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    vp_ops_write_json(&writer, ops);
    result = vp_json_finish(&writer);
    putchar('\n');
    return result;
}
/* A saved table: its operations point into the text and the rows. */
struct saved_ops { vp_ops ops; vp_op *rows; char *text, *held; };
/* Reads the table of operations that `run --profile` saved as JSON. The caller frees rows, text and held, also after an
 * error. */
static vp_result read_saved(const char *path, struct saved_ops *saved, vp_error *error) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    size_t bytes = 0, capacity = 64;
    vp_result result = vp_stream_read(path, JSON_FILE_BYTES_MAX, &saved->text, &bytes, error);
    if (result == VP_OK) result = parse_json(&parsed, saved->text, bytes, error);
    if (result == VP_OK) {
        uint32_t table = vp_json_get(&parsed.json, 0, "ops"), array;
        if (table == VP_JSON_NONE) table = 0;
        array = vp_json_get(&parsed.json, table, "rows");
        if (node_is(&parsed.json, array, VP_JSON_ARRAY)) capacity += parsed.json.nodes[array].count;
        saved->rows = resize(NULL, capacity, sizeof *saved->rows);
        saved->held = resize(NULL, bytes + 1, 1);
        result = vp_ops_init(&saved->ops, saved->rows, (int64_t)capacity, 0, 0);
        if (result == VP_OK)
            result = vp_ops_read_json(&saved->ops, &parsed.json, table, saved->held, bytes + 1, error);
    }
    free(parsed.nodes);
    return result;
}
/* Prints a table that `run --profile` saved, sorted again. Returns 0 or an exit code. */
static int show_saved(const struct options *options, const char *path) {
    const int is_torch = !is_given(options, "csv") && !is_given(options, "json")
                         && !strcmp(text_of(options, "profile_format"), "torch");
    const char *key = text_of(options, "sort_by");
    vp_ops_print_options how = vp_ops_print_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    struct saved_ops saved;
    vp_result result;
    int code = 0;
    memset(&saved, 0, sizeof saved);
    result = read_saved(path, &saved, &error);
    if (result == VP_OK && key) result = vp_ops_sort(&saved.ops, key);
    how.row_limit = number_of(options, "row_limit");
    how.with_flops = how.with_rates = 1;
    for (int64_t i = 0; result == VP_OK && i < saved.ops.count; i++)
        how.with_memory |= saved.ops.rows[i].host_memory_bytes || saved.ops.rows[i].device_memory_bytes;
    if (result == VP_OK) result = print_saved(options, &saved.ops, &how);
    if (result != VP_OK)
        code = complain_result(EXIT_INPUT, path, result, &error);
    else if (is_torch) {
        print_more((size_t)saved.ops.count, how.row_limit);
        print_plain("%s", OPS_COLUMNS_TEXT);
    }
    free(saved.text);
    free(saved.held);
    free(saved.rows);
    return code;
}
/* Checks that the options go together. Returns 0 or an exit code. */
static int check_trace_options(const struct options *options) {
    if (!options->operand_count) return complain(EXIT_USAGE, "trace needs a file: a *.pt.trace.json, or - for stdin");
    if (is_given(options, "csv") && !strcmp(text_of(options, "table"), "summary"))
        return complain(EXIT_USAGE, "--csv has tables only, no summary");
    return check_sort_key(text_of(options, "sort_by"));
}
static int run_command(const struct options *options) {
    vp_ops_print_options print = vp_ops_print_options_default();
    int64_t limit = is_given(options, "row_limit") || !(is_given(options, "json") || is_given(options, "csv"))
                        ? number_of(options, "row_limit")
                        : -1;
    const char *key = text_of(options, "sort_by"), *which = text_of(options, "table");
    struct trace trace;
    struct trace_tables tables;
    int code;
    if ((code = check_trace_options(options)) != 0) return code;
    memset(&tables, 0, sizeof tables);
    code = trace_read(&trace, options->operands[0], is_given(options, "partial"));
    if (code == IS_TABLE) {
        trace_free(&trace);
        if (!strcmp(options->operands[0], "-"))
            return complain(EXIT_USAGE, "a saved table of operations is read from a file, not from stdin");
        return show_saved(options, options->operands[0]);
    }
    if (!code) code = trace_summarise(&tables, &trace, is_given(options, "group_by_input_shape"));
    if (!code) {
        tables.ops.device_name = tables.kernel_ns ? "CUDA" : NULL;
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
    "where the time of a trace goes, ours or torch.profiler's: "
    "steps, stages, operations, kernels, launches, idle streams",
    "vlmprof trace chrome_trace.json --row_limit 10\n"
    "  gunzip -c worker.1.pt.trace.json.gz | vlmprof trace - --table ops --sort_by cuda_time_total\n"
    "  vlmprof trace run.pt.trace.json --csv --table kernels",
    1,
    TRACE_OPTIONS,
    sizeof TRACE_OPTIONS / sizeof *TRACE_OPTIONS,
    NULL,
    run_command};
