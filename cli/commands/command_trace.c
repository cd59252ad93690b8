/* command_trace.c: a Chrome trace, told in tables. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
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

static const option_spec TRACE_OPTIONS[] = {
    OPTION_CSV,
    OPTION_SORT_BY,
    {"row_limit", COUNT, "N", "20", 0, INT32_MAX, NULL,
     "most rows of a table; --json and --csv have all unless it is given"},
    {"group_by_input_shape", FLAG, NULL, NULL, 0, 0, NULL,
     "a row for each operation and its input shapes, which stand behind the name"},
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile",
     "of the operations: key_averages' table, or cProfile's (ncalls tottime ...)"},
    {"table", CHOICE, "WHICH", "all", 0, 0, "all summary annotations ops kernels launches tracks memory",
     "only this one: summary annotations ops kernels launches tracks memory; of --csv ops unless it is given"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL, "a file that is cut off: show what lies before the cut"},
    OPTION_JSON,
    OPTION_HELP,
};

/* ---- as text */
static char *time_text(double ns, char out[32]) { /* as torch prints times */
    if (ns >= 1e9) snprintf(out, 32, "%.3fs", ns / 1e9);
    else if (ns >= 1e6) snprintf(out, 32, "%.3fms", ns / 1e6);
    else snprintf(out, 32, "%.3fus", ns / 1e3);
    return out;
}
static void print_name(const char *name) { /* 55 columns, the rest is cut between characters */
    char text[56];
    size_t bytes = strlen(name), columns = 0;
    if (bytes > 55) {
        size_t kept = 52;
        while (kept && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
        snprintf(text, sizeof text, "%.*s...", (int)kept, name);
    } else snprintf(text, sizeof text, "%s", name);
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p < 32 || *p == 127) *p = '?';
        columns += ((unsigned char)*p & 0xc0) != 0x80;
    }
    printf("%s%*s", text, columns < 55 ? (int)(55 - columns) : 0, "");
}
static void print_more(size_t count, int64_t limit) {
    if (limit >= 0 && (size_t)limit < count) printf("... %zu more (--row_limit)\n", count - (size_t)limit);
}
static size_t shown(const trace_rows *rows, int64_t limit) { return limit >= 0 && (size_t)limit < rows->count ? (size_t)limit : rows->count; }
static double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static void print_annotations(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    double whole = (double)(x->last_ns - x->first_ns);
    printf("\n%-55s %-6s %9s %12s %12s %12s %12s %8s %8s\n", "annotation", "where", "calls", "total", "avg", "busy", "idle", "idle %", "share %");
    for (size_t i = 0; i < shown(&x->annotations, limit); i++) {
        const trace_row *r = &x->annotations.items[i];
        print_name(r->name);
        printf(" %-6s %9lld %12s %12s %12s %12s %8.2f %8.2f\n", r->where, (long long)r->calls, time_text((double)r->total_ns, a),
               time_text((double)r->total_ns / (double)r->calls, b), time_text((double)r->busy_ns, c),
               time_text((double)(r->total_ns - r->busy_ns), d), share_of((double)(r->total_ns - r->busy_ns), (double)r->total_ns),
               share_of((double)r->total_ns, whole));
    }
    print_more(x->annotations.count, limit);
}
static void print_calls(const trace_rows *rows, const char *head, double whole, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    printf("\n%-55s %9s %12s %12s %12s %12s %8s\n", head, "calls", "total", "avg", "min", "max", "share %");
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const trace_row *r = &rows->items[i];
        print_name(r->name);
        printf(" %9lld %12s %12s %12s %12s %8.2f\n", (long long)r->calls, time_text((double)r->total_ns, a),
               time_text((double)r->total_ns / (double)r->calls, b), time_text((double)r->min_ns, c), time_text((double)r->max_ns, d),
               share_of((double)r->total_ns, whole));
    }
    print_more(rows->count, limit);
}
static void print_launches(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    double whole = 0;
    for (size_t i = 0; i < x->calls.count; i++) whole += (double)x->calls.items[i].total_ns;
    if (x->calls.count) print_calls(&x->calls, "call of the runtime", whole, limit);
    if (!x->launched) return;
    printf("launch delay, end of the call to start on the device: mean %s, P50 %s, P99 %s, most %s", time_text(x->delay.mean * 1e3, a),
           time_text(x->delay.p50 * 1e3, b), time_text(x->delay.p99 * 1e3, c), time_text(x->delay.max * 1e3, d));
    printf("; %lld device slices, %lld more without their launch\n", (long long)x->launched, (long long)x->unlaunched);
}
static void print_tracks(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32], e[32];
    printf("\n%-55s %-6s %9s %12s %12s %12s %8s %12s %12s %7s %9s\n", "track", "where", "slices", "span", "busy", "idle", "idle %", "host wait",
           "kernel wait", "queue", "mean");
    for (size_t i = 0; i < shown(&x->tracks, limit); i++) {
        const trace_row *r = &x->tracks.items[i];
        int on_device = !strcmp(r->where, "device");
        print_name(r->name);
        printf(" %-6s %9lld %12s %12s %12s %8.2f", r->where, (long long)r->calls, time_text((double)r->total_ns, a), time_text((double)r->busy_ns, b),
               time_text((double)(r->total_ns - r->busy_ns), c), share_of((double)(r->total_ns - r->busy_ns), (double)r->total_ns));
        if (on_device)
            printf(" %12s %12s %7lld %9.3f\n", time_text((double)r->host_wait_ns, d), time_text((double)r->kernel_wait_ns, e),
                   (long long)r->queue_most, r->queue_mean);
        else printf(" %12s %12s %7s %9s\n", "-", "-", "-", "-");
    }
    print_more(x->tracks.count, limit);
}
static void print_memory(const trace_tables *x) {
    printf("\n%-12s %9s %16s %16s %16s   %s\n", "memory", "changes", "most allocated", "most reserved", "taken - given", "most at");
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const trace_peak *p = &x->peaks[i];
        char name[24], at[32];
        if (!p->changes) continue;
        if (i) snprintf(name, sizeof name, "device %d", i - 1); else snprintf(name, sizeof name, "CPU");
        printf("%-12s %9lld %16lld %16lld %16lld   %s\n", name, (long long)p->changes, (long long)p->allocated, (long long)p->reserved,
               (long long)p->left, time_text((double)(p->at_ns - x->first_ns), at));
    }
}
static const trace_row *row_named(const trace_rows *rows, const char *name) {
    for (size_t i = 0; i < rows->count; i++) if (!strcmp(rows->items[i].name, name)) return &rows->items[i];
    return NULL;
}
static void print_trace_summary(const trace_tables *x) {
    const trace *t = x->t;
    const trace_row *steps = row_named(&x->annotations, "ProfilerStep*");
    char a[32], b[32], c[32];
    printf("trace     ");
    print_visible(t->path, strlen(t->path));
    printf(": %lld events in %lld bytes%s\n", (long long)t->seen, (long long)t->bytes, t->is_cut ? ", CUT OFF there" : "");
    printf("events    %zu slices, %zu changes of memory, %lld flows, %lld counter values\n", t->count, t->memory_count, (long long)t->flows,
           (long long)t->counters);
    if (t->no_duration + t->no_time + t->no_name + t->other)
        printf("left out  %lld without dur, %lld whose ts or dur is no number in range, %lld without a name, %lld of another kind\n",
               (long long)t->no_duration, (long long)t->no_time, (long long)t->no_name, (long long)t->other);
    if (x->overlaps) printf("overlaps  %lld slices of host threads overlap without nesting\n", (long long)x->overlaps);
    printf("duration  %s, first slice to last\n", time_text((double)(x->last_ns - x->first_ns), a));
    if (steps)
        printf("steps     %lld, avg %s, min %s, max %s\n", (long long)steps->calls, time_text((double)steps->total_ns / (double)steps->calls, a),
               time_text((double)steps->min_ns, b), time_text((double)steps->max_ns, c));
    if (t->device_count >= 0)
        printf("devices   %s%s\n", t->devices == NO_INDEX ? "none: CPU only" : text_table_at(&t->names, t->devices),
               t->is_emulated && t->devices != NO_INDEX && !strstr(text_table_at(&t->names, t->devices), "emulated") ? " (emulated)" : "");
    if (t->rank >= 0) printf("rank      %lld of %lld\n", (long long)t->rank, (long long)t->world_size);
    if (t->host_name != NO_INDEX) {
        printf("host      ");
        print_visible(text_table_at(&t->names, t->host_name), strlen(text_table_at(&t->names, t->host_name)));
        putchar('\n');
    }
}

/* ---- as CSV and JSON; times in us with the file's three decimals */
static double us_of(int64_t ns) { return (double)ns / 1e3; }
static void csv_whole(text_buffer *out, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, ",%lld", (long long)value);
    text_add_string(out, text);
}
/* Empty: means nothing for this kind of row. */
static void csv_trace_row(text_buffer *out, const trace_row *r, double whole, int has_busy, int has_queue) {
    const double none = (double)NAN;
    csv_text(out, r->name);
    text_add_string(out, ",");
    csv_text(out, r->where);
    csv_whole(out, r->calls);
    csv_number(out, us_of(r->total_ns));
    csv_number(out, us_of(r->total_ns) / (double)r->calls);
    csv_number(out, us_of(r->min_ns));
    csv_number(out, us_of(r->max_ns));
    csv_number(out, share_of((double)r->total_ns, whole));
    csv_number(out, has_busy ? us_of(r->busy_ns) : none);
    csv_number(out, has_busy ? us_of(r->total_ns - r->busy_ns) : none);
    csv_number(out, has_queue ? us_of(r->host_wait_ns) : none);
    csv_number(out, has_queue ? us_of(r->kernel_wait_ns) : none);
    csv_number(out, has_queue ? (double)r->queue_most : none);
    csv_number(out, has_queue ? r->queue_mean : none);
    csv_whole(out, r->bytes);
    text_add_string(out, "\n");
}
static int print_trace_csv(trace_tables *x, const char *which, int64_t limit) {
    const trace_rows *rows = !strcmp(which, "annotations") ? &x->annotations : !strcmp(which, "kernels") ? &x->kernels
                           : !strcmp(which, "launches") ? &x->calls : !strcmp(which, "tracks") ? &x->tracks : NULL;
    text_buffer out = {NULL, 0, 0};
    double whole = rows == &x->kernels ? (double)x->kernel_ns : (double)(x->last_ns - x->first_ns);
    if (!strcmp(which, "all") || !strcmp(which, "ops")) return trace_ops_failed(x, vp_ops_print_csv(&x->ops, file_sink, stdout));
    if (rows) {
        int is_tracks = rows == &x->tracks;
        text_add_string(&out, "name,where,calls,total_us,avg_us,min_us,max_us,share_percent,busy_us,idle_us,host_wait_us,kernel_wait_us,queue_most,"
                              "queue_mean,bytes\n");
        for (size_t i = 0; i < shown(rows, limit); i++)
            csv_trace_row(&out, &rows->items[i], whole, is_tracks || rows == &x->annotations, is_tracks && !strcmp(rows->items[i].where, "device"));
    } else {
        text_add_string(&out, "device,changes,most_allocated_bytes,most_reserved_bytes,left_bytes,at_us\n");
        for (int i = 0; i < TRACE_DEVICES; i++) {
            const trace_peak *p = &x->peaks[i];
            char line[200];
            if (!p->changes) continue;
            snprintf(line, sizeof line, "%s%d,%lld,%lld,%lld,%lld,%.3f\n", i ? "device " : "CPU ", i ? i - 1 : 0, (long long)p->changes,
                     (long long)p->allocated, (long long)p->reserved, (long long)p->left, us_of(p->at_ns - x->first_ns));
            text_add_string(&out, line);
        }
    }
    fwrite(out.data, 1, out.bytes, stdout); /* main checks stdout */
    free(out.data);
    return 0;
}

static void put_trace_rows(vp_json_writer *w, const char *key, const trace_rows *rows, double whole, int64_t limit) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const trace_row *r = &rows->items[i];
        vp_json_begin_object(w);
        put_text(w, "name", r->name);
        put_text(w, "where", r->where);
        put_int(w, "calls", r->calls);
        put_double(w, "total_us", us_of(r->total_ns));
        put_double(w, "avg_us", us_of(r->total_ns) / (double)r->calls);
        put_double(w, "min_us", us_of(r->min_ns));
        put_double(w, "max_us", us_of(r->max_ns));
        put_double(w, "share_percent", share_of((double)r->total_ns, whole));
        if (!strcmp(key, "annotations") || !strcmp(key, "tracks")) {
            put_double(w, "busy_us", us_of(r->busy_ns));
            put_double(w, "idle_us", us_of(r->total_ns - r->busy_ns));
        }
        if (!strcmp(key, "tracks") && !strcmp(r->where, "device")) {
            put_double(w, "host_wait_us", us_of(r->host_wait_ns));
            put_double(w, "kernel_wait_us", us_of(r->kernel_wait_ns));
            put_int(w, "queue_most", r->queue_most);
            put_double(w, "queue_mean", r->queue_mean);
        }
        if (r->bytes) put_int(w, "bytes", r->bytes);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_trace_memory(vp_json_writer *w, const trace_tables *x) {
    vp_json_key(w, "memory");
    vp_json_begin_array(w);
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const trace_peak *p = &x->peaks[i];
        if (!p->changes) continue;
        vp_json_begin_object(w);
        put_text(w, "device_type", i ? "device" : "CPU");
        put_int(w, "device", i - 1);
        put_int(w, "changes", p->changes);
        put_int(w, "most_allocated_bytes", p->allocated);
        put_int(w, "most_reserved_bytes", p->reserved);
        put_int(w, "left_bytes", p->left);
        put_double(w, "at_us", us_of(p->at_ns - x->first_ns));
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_trace_summary(vp_json_writer *w, const trace_tables *x) {
    const trace *t = x->t;
    const trace_row *steps = row_named(&x->annotations, "ProfilerStep*");
    vp_json_key(w, "summary");
    vp_json_begin_object(w);
    put_text(w, "file", t->path);
    put_int(w, "bytes", t->bytes);
    put_bool(w, "cut_off", t->is_cut);
    put_int(w, "events", t->seen);
    put_int(w, "slices", (int64_t)t->count);
    put_int(w, "without_dur", t->no_duration);
    put_int(w, "with_bad_times", t->no_time);
    put_int(w, "without_name", t->no_name);
    put_int(w, "of_another_kind", t->other);
    put_int(w, "overlaps", x->overlaps);
    put_double(w, "duration_us", us_of(x->last_ns - x->first_ns));
    put_int(w, "steps", steps ? steps->calls : 0);
    put_double(w, "step_avg_us", steps ? us_of(steps->total_ns) / (double)steps->calls : (double)NAN);
    put_text(w, "devices", t->devices == NO_INDEX ? NULL : text_table_at(&t->names, t->devices));
    put_bool(w, "emulated", t->is_emulated);
    if (t->rank < 0) put_null(w, "rank"); else put_int(w, "rank", t->rank);
    if (t->world_size < 0) put_null(w, "world_size"); else put_int(w, "world_size", t->world_size);
    put_text(w, "host_name", t->host_name == NO_INDEX ? NULL : text_table_at(&t->names, t->host_name));
    put_text(w, "trace_name", t->trace_name == NO_INDEX ? NULL : text_table_at(&t->names, t->trace_name));
    vp_json_end_object(w);
}
static int print_trace_json(trace_tables *x, int64_t limit) {
    vp_json_writer w;
    double whole = (double)(x->last_ns - x->first_ns), calls = 0;
    for (size_t i = 0; i < x->calls.count; i++) calls += (double)x->calls.items[i].total_ns;
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-trace-1");
    put_trace_summary(&w, x);
    put_trace_rows(&w, "annotations", &x->annotations, whole, limit);
    vp_json_key(&w, "ops");
    vp_ops_write_json(&w, &x->ops);
    put_trace_rows(&w, "kernels", &x->kernels, (double)x->kernel_ns, limit);
    vp_json_key(&w, "launches");
    vp_json_begin_object(&w);
    put_trace_rows(&w, "calls", &x->calls, calls, limit);
    put_int(&w, "device_slices_with_launch", x->launched);
    put_int(&w, "device_slices_without_launch", x->unlaunched);
    vp_json_key(&w, "delay_us");
    if (x->launched) {
        vp_json_begin_object(&w);
        put_double(&w, "mean", x->delay.mean);
        put_double(&w, "min", x->delay.min);
        put_double(&w, "p50", x->delay.p50);
        put_double(&w, "p95", x->delay.p95);
        put_double(&w, "p99", x->delay.p99);
        put_double(&w, "max", x->delay.max);
        vp_json_end_object(&w);
    } else vp_json_null(&w);
    vp_json_end_object(&w);
    put_trace_rows(&w, "tracks", &x->tracks, whole, limit);
    put_trace_memory(&w, x);
    vp_json_end_object(&w);
    putchar('\n');
    return trace_ops_failed(x, vp_json_finish(&w));
}

static int print_trace_text(trace_tables *x, const char *which, int64_t limit, const vp_ops_print_options *how, int is_cprofile) {
    int all = !strcmp(which, "all");
    vp_result r = VP_OK;
    if (all || !strcmp(which, "summary")) print_trace_summary(x);
    if ((all && x->annotations.count) || !strcmp(which, "annotations")) print_annotations(x, limit);
    if ((all && x->ops.count) || !strcmp(which, "ops")) {
        if (all) putchar('\n');
        r = (is_cprofile ? vp_ops_print_cprofile : vp_ops_print_torch)(&x->ops, how, file_sink, stdout);
        if (!is_cprofile) print_more((size_t)x->ops.count, limit);
    }
    if ((all && x->kernels.count) || !strcmp(which, "kernels")) print_calls(&x->kernels, "kernel or copy", (double)x->kernel_ns, limit);
    if ((all && x->calls.count) || !strcmp(which, "launches")) print_launches(x, limit);
    if ((all && x->tracks.count) || !strcmp(which, "tracks")) print_tracks(x, limit);
    if ((all && x->t->memory_count) || !strcmp(which, "memory")) print_memory(x);
    return trace_ops_failed(x, r);
}

/* The operations in the words that --profile_format, --csv or --json ask for, to stdout. */
static vp_result print_saved(const options *o, vp_ops *ops, const vp_ops_print_options *how) {
    vp_json_writer w;
    vp_result r;
    if (given(o, "csv")) return vp_ops_print_csv(ops, file_sink, stdout);
    if (!given(o, "json"))
        return (strcmp(text_of(o, "profile_format"), "torch") ? vp_ops_print_cprofile : vp_ops_print_torch)(ops, how, file_sink, stdout);
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_ops_write_json(&w, ops);
    r = vp_json_finish(&w);
    putchar('\n');
    return r;
}
/* What run --profile saved as JSON, sorted again. */
static int show_saved(const options *o, const char *path) {
    vp_ops_print_options how = vp_ops_print_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL, *held = NULL;
    size_t bytes = 0, capacity = 64;
    const char *key = text_of(o, "sort_by");
    vp_op *rows = NULL;
    vp_ops ops;
    int code = 0;
    vp_result r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r == VP_OK) {
        uint32_t table = vp_json_get(&p.json, 0, "ops"), array;
        if (table == VP_JSON_NONE) table = 0;
        array = vp_json_get(&p.json, table, "rows");
        if (node_is(&p.json, array, VP_JSON_ARRAY)) capacity += p.json.nodes[array].count;
        rows = resize(NULL, capacity, sizeof *rows);
        held = resize(NULL, bytes + 1, 1);
        r = vp_ops_init(&ops, rows, (int64_t)capacity, 0, 0);
        if (r == VP_OK) r = vp_ops_read_json(&ops, &p.json, table, held, bytes + 1, &error);
    }
    if (r == VP_OK && key) r = vp_ops_sort(&ops, key);
    how.row_limit = number_of(o, "row_limit");
    how.with_flops = how.with_rates = 1;
    for (int64_t i = 0; r == VP_OK && i < ops.count; i++) how.with_memory |= ops.rows[i].host_memory_bytes || ops.rows[i].device_memory_bytes;
    if (r == VP_OK) r = print_saved(o, &ops, &how);
    if (r != VP_OK) code = complain_result(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, path, r, &error);
    else if (!given(o, "csv") && !given(o, "json") && !strcmp(text_of(o, "profile_format"), "torch")) print_more((size_t)ops.count, how.row_limit);
    free(p.nodes);
    free(text);
    free(held);
    free(rows);
    return code;
}
static int run_command(const options *o) {
    vp_ops_print_options print = vp_ops_print_options_default();
    int64_t limit = given(o, "row_limit") || !(given(o, "json") || given(o, "csv")) ? number_of(o, "row_limit") : -1;
    const char *key = text_of(o, "sort_by"), *which = text_of(o, "table");
    trace t;
    trace_tables x;
    int code;
    if (!o->operand_count) return complain(EXIT_USAGE, "trace needs a file: a *.pt.trace.json, or - for stdin");
    if (given(o, "json") && given(o, "csv")) return complain(EXIT_USAGE, "--json and --csv exclude each other");
    if (given(o, "json") && given(o, "table")) return complain(EXIT_USAGE, "--json has all tables: leave --table out");
    if (given(o, "csv") && !strcmp(which, "summary")) return complain(EXIT_USAGE, "--csv has tables only, no summary");
    if ((code = check_sort_key(key)) != 0) return code;
    memset(&x, 0, sizeof x);
    code = trace_read(&t, o->operands[0], given(o, "partial"));
    if (code == IS_TABLE) {
        trace_free(&t);
        if (!strcmp(o->operands[0], "-")) return complain(EXIT_USAGE, "a saved table of operations is read from a file, not from stdin");
        return show_saved(o, o->operands[0]);
    }
    if (!code) code = trace_summarise(&x, &t, given(o, "group_by_input_shape"));
    if (!code) {
        x.ops.device_name = x.kernel_ns ? "CUDA" : NULL;
        print.row_limit = limit;
        print.with_memory = t.memory_count > 0;
        if (given(o, "group_by_input_shape")) print.max_name_column_width = -1;
        code = trace_ops_failed(&x, vp_ops_sort(&x.ops, key ? key : x.kernel_ns ? "device_time_total" : "self_cpu_time_total"));
    }
    if (!code) {
        if (given(o, "json")) code = print_trace_json(&x, limit);
        else if (given(o, "csv")) code = print_trace_csv(&x, which, limit);
        else code = print_trace_text(&x, which, limit, &print, strcmp(text_of(o, "profile_format"), "torch"));
    }
    trace_tables_free(&x);
    trace_free(&t);
    return code;
}

const command command_trace = {
    "trace", "FILE",
    "where the time of a trace goes, ours or torch.profiler's: steps, stages, operations, kernels, launches, idle streams",
    "vlmprof trace chrome_trace.json --row_limit 10\n  gunzip -c worker.1.pt.trace.json.gz | vlmprof trace - --table ops --sort_by cuda_time_total\n"
    "  vlmprof trace run.pt.trace.json --csv --table kernels",
    1, TRACE_OPTIONS, sizeof TRACE_OPTIONS / sizeof *TRACE_OPTIONS, NULL, run_command};
