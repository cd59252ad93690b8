/* test_ranges.c: ranges on a clock that the test moves; the table of operations, its orders and printers against the output of torch and pstats (golden/ranges); JSON
 * there and back, and damaged; the schedule against torch.profiler.schedule. The core of the header is enough for all of it. */
#define VLMPROF_IMPLEMENTATION
#include <stdint.h>
static int64_t now_ns;
#define VLMPROF_CLOCK_NS now_ns
#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include "support/check.h"

/* 0 .. count - 1 */
static int64_t below(vp_random *random, uint64_t count) { return (int64_t)vp_random_below(random, count - 1); }

/* ---- ranges */
static vp_result at(vp_ranges *ranges, int64_t ns, const char *name) {
    now_ns = ns;
    return vp_range_begin(ranges, name, "file.c", (int32_t)ns);
}
static vp_result end_at(vp_ranges *ranges, int64_t ns) {
    now_ns = ns;
    return vp_range_end(ranges);
}
static void test_nesting(void) {
    const vp_range_payload payload = {100, 200, 4096, {64, 2048, 0, 0}, 2};
    vp_range_record records[8];
    vp_ranges r;
    memset(records, 0xA5, sizeof records);
    check_case("nested ranges: parents, self times, payload");
    CHECK_INT(vp_ranges_init(&r, records, 8, 3, "worker", NULL), VP_OK);
    CHECK_INT(at(&r, 0, "outer"), VP_OK); CHECK_INT(at(&r, 10, "inner"), VP_OK);
    CHECK_INT(vp_range_set(&r, &payload), VP_OK);
    CHECK_INT(at(&r, 15, "leaf"), VP_OK);
    CHECK_INT(vp_range_set(&r, &payload), VP_OK);
    CHECK_INT(end_at(&r, 18), VP_OK);
    CHECK_INT(records[1].end_ns, INT64_MIN);
    CHECK_INT(end_at(&r, 30), VP_OK);
    now_ns = 40;
    CHECK_INT(VP_RANGE(&r, "inner"), VP_OK);
    CHECK_INT(end_at(&r, 45), VP_OK);
    CHECK_INT(vp_ranges_clear(&r), VP_ERR_STATE);
    CHECK_INT(end_at(&r, 100), VP_OK);
    CHECK_INT(r.count, 4); CHECK_INT(r.open, -1);
    CHECK_INT(records[0].parent, -1); CHECK_INT(records[0].depth, 0); CHECK_INT(records[0].begin_ns, 0); CHECK_INT(records[0].end_ns, 100);
    CHECK_INT(records[0].children_ns, 25); CHECK_INT(records[0].children_memory_bytes, 8192); CHECK_INT(records[0].payload.dimensions, 0);
    CHECK_INT(records[1].parent, 0); CHECK_INT(records[1].children_ns, 3); CHECK_INT(records[1].children_memory_bytes, 4096);
    CHECK_INT(records[1].payload.shape[1], 2048);
    CHECK_INT(records[2].parent, 1); CHECK_INT(records[2].depth, 2); CHECK_INT(records[2].line, 15);
    CHECK_INT(records[3].parent, 0);
    CHECK(strstr(records[3].file, "test_ranges.c") != NULL && records[3].line > 0);
    CHECK_INT(vp_ranges_clear(&r), VP_OK);
    CHECK_INT(r.count, 0);
}
static void test_misuse(void) {
    vp_range_record records[2];
    vp_ranges r;
    vp_range_payload payload = {0};
    check_case("ranges: errors");
    CHECK_INT(vp_ranges_init(&r, NULL, 1, 0, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_ranges_init(&r, records, -1, 0, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_ranges_init(&r, records, 2, 0, NULL, NULL), VP_OK);
    CHECK_INT(vp_range_end(&r), VP_ERR_STATE);
    CHECK_INT(vp_range_set(&r, &payload), VP_ERR_STATE);
    CHECK_INT(vp_range_begin(&r, NULL, NULL, 0), VP_ERR_RANGE);
    CHECK_INT(r.open, -1);
    CHECK_INT(at(&r, 1, "a"), VP_OK);
    payload.dimensions = 5;
    CHECK_INT(vp_range_set(&r, &payload), VP_ERR_RANGE);
    payload.dimensions = 0; payload.flops = -1;
    CHECK_INT(vp_range_set(&r, &payload), VP_ERR_RANGE);
    payload.flops = 0; payload.memory_bytes = INT64_MAX;
    CHECK_INT(vp_range_set(&r, &payload), VP_OK);
    CHECK_INT(at(&r, 2, "b"), VP_OK);
    CHECK_INT(vp_range_set(&r, &payload), VP_OK);
    CHECK_INT(end_at(&r, 3), VP_OK); CHECK_INT(end_at(&r, 3), VP_OK);
    CHECK_INT(vp_range_end(&r), VP_ERR_STATE);
    vp_op row;
    vp_ops ops;
    CHECK_INT(vp_ops_init(&ops, &row, 1, 0, 0), VP_OK);
    CHECK_INT(vp_ops_add_ranges(&ops, &r), VP_ERR_RANGE); /* 2 * INT64_MAX bytes in "a" */
}
/* a buffer of 3: the fourth range and those inside it have no record, but nesting stays correct */
static void test_full(void) {
    vp_range_record records[3];
    vp_op rows[4];
    vp_ranges r;
    vp_ops ops;
    vp_range_payload payload = {0};
    check_case("a full buffer drops records, counts them, and keeps the nesting");
    CHECK_INT(vp_ranges_init(&r, records, 3, 0, NULL, NULL), VP_OK);
    CHECK_INT(at(&r, 0, "a"), VP_OK); CHECK_INT(at(&r, 1, "b"), VP_OK); CHECK_INT(end_at(&r, 2), VP_OK); CHECK_INT(at(&r, 3, "c"), VP_OK);
    CHECK_INT(at(&r, 10, "d"), VP_ERR_CAPACITY);
    CHECK_INT(vp_range_set(&r, &payload), VP_ERR_CAPACITY);
    CHECK_INT(at(&r, 11, "e"), VP_ERR_CAPACITY);
    CHECK_INT(vp_ops_init(&ops, rows, 4, 0, 0), VP_OK);
    CHECK_INT(vp_ops_add_ranges(&ops, &r), VP_ERR_STATE);
    CHECK_INT(ops.count, 0);
    CHECK_INT(end_at(&r, 12), VP_OK); CHECK_INT(end_at(&r, 20), VP_OK); CHECK_INT(end_at(&r, 21), VP_OK); CHECK_INT(at(&r, 22, "f"), VP_ERR_CAPACITY);
    CHECK_INT(end_at(&r, 25), VP_OK); CHECK_INT(end_at(&r, 30), VP_OK);
    CHECK_INT(vp_range_end(&r), VP_ERR_STATE);
    CHECK_INT(r.count, 3); CHECK_INT(r.dropped, 3); CHECK_INT(r.dropped_ns, 13);
    CHECK_INT(records[0].end_ns, 30);
    CHECK_INT(records[2].end_ns, 21); CHECK_INT(records[2].children_ns, 10);
    CHECK_INT(records[0].children_ns, 1 + 18 + 3);
    CHECK_INT(vp_ops_add_ranges(&ops, &r), VP_OK);
    CHECK_INT(ops.dropped_calls, 3); CHECK_INT(ops.dropped_host_ns, 13);
    CHECK_INT(ops.rows[0].host_self_ns + ops.rows[1].host_self_ns + ops.rows[2].host_self_ns + ops.dropped_host_ns, 30);
    CHECK_INT(vp_ranges_clear(&r), VP_OK);
    CHECK_INT(r.dropped + r.dropped_ns, 0);
}
/* appends "+name" for a push, "-" for a pop */
static void note_push(void *user, const char *name) { strcat(strcat((char *)user, "+"), name); }
static void note_pop(void *user) { strcat((char *)user, "-"); }
static void test_hooks(void) {
    char notes[64] = "";
    vp_range_hooks hooks = {note_push, note_pop, NULL};
    vp_range_record record;
    vp_ranges r;
    hooks.user = notes;
    check_case("hooks see each range, even those without a record");
    CHECK_INT(vp_ranges_init(&r, &record, 1, 0, NULL, &hooks), VP_OK);
    CHECK_INT(at(&r, 0, "a"), VP_OK); CHECK_INT(at(&r, 1, "b"), VP_ERR_CAPACITY); CHECK_INT(end_at(&r, 2), VP_OK); CHECK_INT(end_at(&r, 3), VP_OK);
    CHECK_INT(vp_range_end(&r), VP_ERR_STATE);
    CHECK_TEXT(notes, "+a+b--");
    hooks.pop = NULL;
    CHECK_INT(vp_ranges_init(&r, &record, 1, 0, NULL, &hooks), VP_ERR_RANGE);
}

/* ---- rows */
static vp_op sample(const char *name, int64_t host_ns, int64_t device_ns) {
    vp_op op = vp_op_default();
    op.name = name; op.host_total_ns = op.host_self_ns = host_ns; op.device_total_ns = op.device_self_ns = device_ns;
    return op;
}
static const vp_op *row_of(const vp_ops *ops, const char *name) {
    for (int64_t i = 0; i < ops->count; i++)
        if (strcmp(ops->rows[i].name, name) == 0) return &ops->rows[i];
    return NULL;
}
static void recurse(vp_ranges *r, int depth) {
    at(r, now_ns + 1, "f");
    if (depth > 0) {
        recurse(r, depth - 1);
        at(r, now_ns + 1, "g");
        end_at(r, now_ns + 1);
        recurse(r, depth - 1);
    }
    end_at(r, now_ns + 1);
}
/* the sums of a recursive program against a count by hand: f is called 15 times, once of them from outside; g 7 times */
static void test_recursion(void) {
    vp_range_record records[64];
    vp_op rows[4];
    vp_ranges r;
    vp_ops ops;
    int64_t whole = 0, i;
    check_case("recursion: calls, primitive calls, total, self, cumulative");
    now_ns = 0;
    vp_ranges_init(&r, records, 64, 0, NULL, NULL);
    recurse(&r, 3);
    CHECK_INT(vp_ops_init(&ops, rows, 4, 0, 0), VP_OK);
    CHECK_INT(vp_ops_add_ranges(&ops, &r), VP_OK);
    const vp_op *f = row_of(&ops, "f");
    const vp_op *g = row_of(&ops, "g");
    CHECK_INT(ops.count, 2);
    if (f && g) {
        for (i = 0; i < r.count; i++)
            if (strcmp(records[i].name, "f") == 0) whole += records[i].end_ns - records[i].begin_ns;
        CHECK_INT(f->calls, 15); CHECK_INT(f->primitive_calls, 1);
        CHECK_INT(g->calls, 7); CHECK_INT(g->primitive_calls, 7);
        CHECK_INT(f->host_total_ns, whole); CHECK_INT(f->host_cumulative_ns, records[0].end_ns - records[0].begin_ns);
        CHECK_INT(f->host_self_ns + g->host_self_ns, f->host_cumulative_ns);
        CHECK_INT(f->host_min_ns, 1); CHECK_INT(f->host_max_ns, f->host_cumulative_ns);
        CHECK_INT(f->line, 0); /* started at several lines */
        CHECK(f->file == NULL);
    }
    check_case("recursion by stack: f in f in f is one row, f in g another");
    CHECK_INT(vp_ops_init(&ops, rows, 4, 0, 2), VP_OK);
    CHECK_INT(vp_ops_add_ranges(&ops, &r), VP_ERR_CAPACITY); /* lines differ, so there are more than 4 rows */
    CHECK_INT(ops.count, 4);
    for (i = whole = 0; i < ops.count; i++) whole += ops.rows[i].calls;
    CHECK_INT(whole + ops.dropped_calls, r.count);
}
static void test_rows(void) {
    vp_op rows[4], op = sample("gemm", 100, 70), total;
    vp_ops ops;
    check_case("rows: sums, minimum and maximum, differences between calls");
    CHECK_INT(vp_ops_init(&ops, rows, 4, VP_OPS_BY_SHAPE, 0), VP_OK);
    op.stage = "prefill"; op.part = "experts"; op.block = 3; op.step = 0; op.dimensions = 2; op.shape[0] = 64; op.shape[1] = 2048;
    op.file = "kernels.cu"; op.line = 12; op.flops = 1000; op.bytes = 500; op.device_memory_bytes = op.device_self_memory_bytes = 64;
    op.memory_peak_bytes = 80;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(rows[0].block, 3);
    op.host_total_ns = 300; op.block = 4; op.stage = "decode"; op.memory_peak_bytes = 90;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(ops.count, 1);
    CHECK_INT(rows[0].calls, 2); CHECK_INT(rows[0].host_total_ns, 400); CHECK_INT(rows[0].host_self_ns, 200); CHECK_INT(rows[0].host_min_ns, 100);
    CHECK_INT(rows[0].host_max_ns, 300); CHECK_INT(rows[0].device_self_ns, 140); CHECK_INT(rows[0].device_max_ns, 70); CHECK_INT(rows[0].flops, 2000);
    CHECK_INT(rows[0].bytes, 1000); CHECK_INT(rows[0].device_memory_bytes, 128); CHECK_INT(rows[0].memory_peak_bytes, 90);
    CHECK_INT(rows[0].block, VP_OP_SEVERAL); CHECK_INT(rows[0].step, 0); CHECK_TEXT(rows[0].stage, "*"); CHECK_TEXT(rows[0].part, "experts");
    CHECK_TEXT(rows[0].file, "kernels.cu");
    op.shape[1] = 1024;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(ops.count, 2);
    op.dimensions = 1;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(ops.count, 3);
    CHECK_INT(vp_ops_total(&ops, &total), VP_OK);
    CHECK_INT(total.calls, 4); CHECK_INT(total.host_total_ns, 1000); CHECK_INT(total.host_min_ns, 100);
    op = sample("ProfilerStep#7", 1, 0);
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_TEXT(rows[3].name, "ProfilerStep*");
    op = sample("one more", 5, 6);
    CHECK_INT(vp_ops_add(&ops, &op), VP_ERR_CAPACITY);
    CHECK_INT(ops.dropped_calls, 1); CHECK_INT(ops.dropped_host_ns, 5); CHECK_INT(ops.dropped_device_ns, 6);
}
static void refused(vp_ops *ops, const vp_op *op, vp_result want, int line) {
    const int64_t count = ops->count;
    const vp_op before = ops->rows[0];
    check_note(vp_ops_add(ops, op) == want && ops->count == count && memcmp(&before, &ops->rows[0], sizeof before) == 0, __FILE__, line,
               "not refused with %d, or the table changed", (int)want);
}
#define REFUSED(change, want) do { vp_op op = sample("a", 10, 10); change; refused(&ops, &op, want, __LINE__); } while (0)

static void test_refused_samples(void) {
    vp_op rows[2], first = sample("a", 10, 10);
    vp_ops ops;
    check_case("rejected samples");
    CHECK_INT(vp_ops_init(&ops, rows, 2, 64, 0), VP_ERR_RANGE);
    CHECK_INT(vp_ops_init(&ops, rows, 2, 0, 9), VP_ERR_RANGE);
    CHECK_INT(vp_ops_init(&ops, rows, 2, 0, -1), VP_ERR_RANGE);
    CHECK_INT(vp_ops_init(&ops, NULL, 2, 0, 0), VP_ERR_RANGE);
    CHECK_INT(vp_ops_init(&ops, rows, -1, 0, 0), VP_ERR_RANGE);
    CHECK_INT(vp_ops_init(&ops, rows, 2, 0, 0), VP_OK);
    CHECK_INT(vp_ops_add(&ops, &first), VP_OK);
    REFUSED(op.name = NULL, VP_ERR_FORMAT);
    REFUSED(op.name = "", VP_ERR_FORMAT);
    REFUSED(op.name = "\xC3", VP_ERR_FORMAT);
    REFUSED(op.file = "\xFF", VP_ERR_FORMAT);
    REFUSED(op.stage = "\xFF", VP_ERR_FORMAT);
    REFUSED(op.part = "\x80", VP_ERR_FORMAT);
    REFUSED(op.stack_count = 1, VP_ERR_FORMAT);
    REFUSED(op.stack_count = 9, VP_ERR_RANGE);
    REFUSED(op.stack_count = -1, VP_ERR_RANGE);
    REFUSED(op.dimensions = 5, VP_ERR_RANGE);
    REFUSED(op.dimensions = -1, VP_ERR_RANGE);
    REFUSED(op.block = -3, VP_ERR_RANGE);
    REFUSED(op.step = -3, VP_ERR_RANGE);
    REFUSED(op.calls = 0, VP_ERR_RANGE);
    REFUSED(op.primitive_calls = 2, VP_ERR_RANGE);
    REFUSED(op.primitive_calls = -1, VP_ERR_RANGE);
    REFUSED(op.host_self_ns = 11, VP_ERR_RANGE);
    REFUSED(op.host_self_ns = -1, VP_ERR_RANGE);
    REFUSED(op.device_self_ns = 11, VP_ERR_RANGE);
    REFUSED(op.device_self_ns = -1, VP_ERR_RANGE);
    REFUSED(op.flops = -1, VP_ERR_RANGE);
    REFUSED(op.bytes = -1, VP_ERR_RANGE);
    REFUSED(op.flops = INT64_MAX; vp_ops_add(&ops, &op); op.flops = 1, VP_ERR_RANGE);
    REFUSED(op.calls = 2; op.host_cumulative_ns = 11, VP_ERR_RANGE);
    REFUSED(op.calls = 2; op.host_min_ns = 3; op.host_max_ns = 2, VP_ERR_RANGE);
    REFUSED(op.calls = 2; op.host_max_ns = 11, VP_ERR_RANGE);
    REFUSED(op.calls = 2; op.device_min_ns = 3; op.device_max_ns = 2, VP_ERR_RANGE);
    REFUSED(op.calls = 2; op.device_max_ns = 11, VP_ERR_RANGE);
}
static void test_rates(void) {
    vp_op op = sample("gemm", 2000, 1000);
    vp_op_ceilings ceilings = {2e12, 1e15};
    check_case("rates and the share of the roofline");
    op.flops = 500000000; /* 0.5 TFLOP in 1000 ns: 500 TFLOP/s, half of the ceiling */
    op.bytes = 1000000;   /* 1000 GB/s, also half of the ceiling */
    vp_op_rates rates = vp_op_rate(&op, VP_OPS_DEVICE, ceilings);
    CHECK_NEAR(rates.gb_per_s, 1000.0, 1e-9);
    CHECK_NEAR(rates.tflop_per_s, 500.0, 1e-9);
    CHECK_NEAR(rates.ceiling_percent, 50.0, 1e-9);
    op.bytes = 1500000;
    rates = vp_op_rate(&op, VP_OPS_DEVICE, ceilings);
    CHECK_NEAR(rates.ceiling_percent, 75.0, 1e-9);
    CHECK_INT(rates.memory_bound, 1);
    rates = vp_op_rate(&op, VP_OPS_HOST, ceilings);
    CHECK_NEAR(rates.tflop_per_s, 250.0, 1e-9);
    ceilings.bytes_per_s = 0.0;
    rates = vp_op_rate(&op, VP_OPS_DEVICE, ceilings);
    CHECK_NEAR(rates.ceiling_percent, 50.0, 1e-9);
    CHECK_INT(rates.memory_bound, 0);
    ceilings.flops_per_s = 0.0;
    rates = vp_op_rate(&op, VP_OPS_DEVICE, ceilings);
    CHECK(rates.ceiling_percent != rates.ceiling_percent);
    op.device_self_ns = op.flops = op.bytes = 0;
    rates = vp_op_rate(&op, VP_OPS_DEVICE, ceilings);
    CHECK(rates.gb_per_s != rates.gb_per_s && rates.tflop_per_s != rates.tflop_per_s);
}

/* ---- printers */
typedef struct kept_text { char *text; size_t capacity, length_bytes; } kept_text;
static kept_text buffer_of(char *text, size_t capacity) { return (kept_text){text, capacity, 0}; }
#define PRINTED(form) (buffer = buffer_of(text, sizeof text), vp_ops_print_##form(&ops, &print, keep_text, &buffer))
static vp_result keep_text(void *user, const char *text, size_t bytes) {
    kept_text *kept = (kept_text *)user;
    if (bytes >= kept->capacity - kept->length_bytes) return VP_ERR_CAPACITY;
    memcpy(kept->text + kept->length_bytes, text, bytes), kept->text[kept->length_bytes += bytes] = 0;
    return VP_OK;
}
/* Prints the first line that differs, for readable failures. */
static int same_text(const char *got, const char *want, const char *what) {
    int line = 1;
    while (*got && *got == *want) {
        line += *got == '\n';
        got++;
        want++;
    }
    return check_note(*got == *want, __FILE__, __LINE__, "%s, line %d: got \"%.*s\", expected \"%.*s\"", what, line, (int)strcspn(got, "\n"), got,
                      (int)strcspn(want, "\n"), want);
}
static int64_t option(const vp_json *json, uint32_t options, const char *key, int64_t otherwise) {
    int64_t value = otherwise;
    vp_json_to_int(json, vp_json_get(json, options, key), &value);
    return value;
}
static int option_on(const vp_json *json, uint32_t options, const char *key) {
    const uint32_t node = vp_json_get(json, options, key);
    return node != VP_JSON_NONE && json->nodes[node].type == VP_JSON_TRUE;
}
static const char *option_text(const vp_json *json, uint32_t options, const char *key, char out[64]) {
    return vp_json_text(json, vp_json_get(json, options, key), out, 64, NULL) == VP_OK ? out : NULL;
}
/* one case of tables.json: reads the table, sorts it, prints it */
static void golden_case(const vp_json *json, uint32_t at_node, char *names, size_t names_bytes) {
    static char got[65536], want[65536];
    static vp_op rows[64];
    const uint32_t options = vp_json_get(json, at_node, "options"), table = vp_json_get(json, at_node, "table");
    const int torch = vp_json_equals(json, vp_json_get(json, at_node, "printer"), "torch");
    char sort_by[64], header[64], unit[64];
    const char *key = option_text(json, options, "sort_by", sort_by);
    vp_ops_print_options print = vp_ops_print_options_default();
    kept_text buffer = buffer_of(got, sizeof got);
    vp_ops ops;
    vp_error error;
    print.row_limit = option(json, options, "row_limit", 100);
    print.max_name_column_width = (int32_t)option(json, options, "max_name_column_width", 55);
    print.max_shapes_column_width = (int32_t)option(json, options, "max_shapes_column_width", 80);
    print.max_src_column_width = (int32_t)option(json, options, "max_src_column_width", 75);
    print.header = option_text(json, options, "header", header); print.time_unit = option_text(json, options, "time_unit", unit);
    print.with_memory = option_on(json, options, "with_memory"); print.with_flops = option_on(json, options, "with_flops");
    CHECK_INT(vp_ops_init(&ops, rows, 64, 0, 0), VP_OK);
    check_note(vp_ops_read_json(&ops, json, table, names, names_bytes, &error) == VP_OK, __FILE__, __LINE__, "%s: %s", error.where, error.text);
    if (key) CHECK_INT(vp_ops_sort(&ops, key), VP_OK);
    got[0] = 0;
    CHECK_INT((torch ? vp_ops_print_torch : vp_ops_print_cprofile)(&ops, &print, keep_text, &buffer), VP_OK);
    CHECK_INT(vp_json_text(json, vp_json_get(json, at_node, "text"), want, sizeof want, NULL), VP_OK);
    CHECK_INT(buffer.length_bytes, strlen(got));
    same_text(got, want, torch ? "torch" : "pstats");
}
static void test_golden_tables(void) {
    size_t bytes = 0, needed = 0;
    char *text = check_read(check_golden("ranges/tables.json"), &bytes), *names = (char *)malloc(bytes + 1);
    vp_json_node *nodes;
    vp_json json;
    int count = 0;
    check_case("golden/ranges/tables.json");
    CHECK(text != NULL && names != NULL);
    if (!text || !names) return;
    CHECK_INT(vp_json_parse(text, bytes, NULL, 0, NULL, &needed, NULL), VP_ERR_CAPACITY);
    nodes = (vp_json_node *)malloc(needed * sizeof *nodes);
    CHECK(nodes != NULL);
    if (!nodes) return;
    CHECK_INT(vp_json_parse(text, bytes, nodes, needed, &json, NULL, NULL), VP_OK);
    for (uint32_t node = 1; node < nodes[0].end; node = nodes[node].end, count++) {
        char key[64];
        const char *sort_by = option_text(&json, vp_json_get(&json, node, "options"), "sort_by", key);
        check_case("tables.json, case %d (sorted by %s)", count, sort_by ? sort_by : "nothing");
        golden_case(&json, node, names, bytes + 1);
    }
    check_case("tables.json has all its cases");
    CHECK(count >= 29);
    FREE_ALL(nodes, names, text);
}
/* Numbers of all sizes against the C library, especially ties, where rounding by way of a shortest text is wrong. */
static void test_fixed(void) {
    static const double values[] = {0.0, -0.0, 0.0005, 0.0015, 0.5, 1.5, 2.5, 1.0005, 2.675, 0.125, 0.375, 1e-300, 5e-324, 999.9995, 9007199254740993.0, 1e15,
                                    123456789.0625, 0.9999999995, 4503599627370497.5, 8999999999999.0};
    vp_random random;
    char got[48], want[400];
    vp_random_seed(&random, 11);
    check_case("fixed decimals as printf (seed 11)");
    for (int i = 0; i < 40000; i++) {
        double value = i < 20 ? values[i] : ldexp(vp_random_double(&random), (int)below(&random, 100) - 60);
        if (i % 3 == 0 && i >= 20) value = (double)below(&random, 1u << 20) / 2048.0; /* many ties */
        if (i % 2) value = -value;
        for (int32_t decimals = 0; decimals <= 9; decimals++) {
            if (fabs(value) * pow(10.0, decimals) > 8e18) continue;
            snprintf(want, sizeof want, "%.*f", (int)decimals, value);
            CHECK_INT(vp_impl_fixed(value, decimals, got), strlen(want));
            if (!CHECK_TEXT(got, want)) return;
        }
    }
    CHECK_INT(vp_impl_fixed(1e300, 3, got), 6);
    CHECK_TEXT(got, "1e+300");
}
static vp_result full_sink(void *user, const char *text, size_t bytes) {
    int *calls = (int *)user;
    (void)text;
    (void)bytes;
    return --*calls < 0 ? VP_ERR_WRITE : VP_OK;
}
static void test_print_options(void) {
    vp_op rows[2], op = sample("gemm\n\x1b[2J", 1500000, 1000);
    vp_ops_print_options print = vp_ops_print_options_default();
    char text[4096];
    kept_text buffer = buffer_of(text, sizeof text);
    vp_ops ops;
    check_case("printers: options, sinks, custom columns");
    vp_ops_init(&ops, rows, 2, VP_OPS_BY_STAGE | VP_OPS_BY_BLOCK | VP_OPS_BY_SHAPE, 0);
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK_INT(buffer.length_bytes, 0);
    op.stage = "prefill"; op.block = 7; op.flops = 3000000; op.bytes = 2000000;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    ops.device_name = "CUDA"; ops.clock = VP_OPS_DEVICE; ops.ceilings.bytes_per_s = 4e12; ops.dropped_calls = 12;
    print.with_rates = 1;
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK(strstr(text, "gemm??[2J") != NULL && !strchr(text, 27)); /* control characters of a name do not reach the terminal */
    CHECK(strstr(text, "Self CUDA") && strstr(text, "Stage") && strstr(text, "prefill") && strstr(text, "Block") && strstr(text, "TFLOP/s"));
    CHECK(strstr(text, "    2000.000         3.000        50.000  \n") != NULL && !strstr(text, "above 100"));
    ops.ceilings.bytes_per_s = 1e12;
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK(strstr(text, "       200.000  \n") && strstr(text, "\n% of ceiling above 100: some of the counted bytes came from caches"));
    print.row_limit = 0; /* the value is not printed */
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK(!strstr(text, "above 100"));
    print.row_limit = 100, ops.ceilings.bytes_per_s = 4e12;
    CHECK(strstr(text, "a buffer was full: 12\n") != NULL);
    CHECK_INT(PRINTED(cprofile), VP_OK);
    CHECK(strstr(text, "        1    0.000    0.000    0.000    0.000 gemm??[2J [prefill, block 7]\n") != NULL);
    CHECK(strstr(text, "a buffer was full: 12\n") != NULL);
    print.decimals = 6;
    CHECK_INT(PRINTED(cprofile), VP_OK);
    CHECK(strstr(text, "   ncalls     tottime     percall     cumtime     percall filename") && strstr(text, "        1    0.000001    0.000001"));
    for (int i = 0; i < 3; i++) {
        int calls = 5;
        CHECK_INT(i == 0 ? vp_ops_print_torch(&ops, &print, full_sink, &calls)
                  : i == 1 ? vp_ops_print_cprofile(&ops, &print, full_sink, &calls) : vp_ops_print_csv(&ops, full_sink, &calls), VP_ERR_WRITE);
        CHECK_INT(calls, -1); /* it is not called again after its failure */
    }
    print.row_limit = -2;
    CHECK_INT(PRINTED(torch), VP_ERR_RANGE);
    print.row_limit = 100;
    CHECK_INT(vp_ops_print_torch(&ops, &print, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_ops_print_cprofile(&ops, &print, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_ops_print_csv(&ops, NULL, NULL), VP_ERR_RANGE);
    print = vp_ops_print_options_default(), print.time_unit = "min";
    CHECK_INT(PRINTED(torch), VP_ERR_RANGE);
    print = vp_ops_print_options_default(), print.max_name_column_width = 3;
    CHECK_INT(PRINTED(torch), VP_ERR_RANGE);
    print = vp_ops_print_options_default(), print.decimals = 10;
    CHECK_INT(PRINTED(cprofile), VP_ERR_RANGE);
}
/* cases that the golden tables lack: other groups, rows with and without a stack, a row without a primitive call, sums that exceed int64 */
static void test_print_rest(void) {
    vp_op rows[4], op = sample("<lambda>", 10, 0);
    vp_ops_print_options print = vp_ops_print_options_default();
    char text[8192];
    kept_text buffer = buffer_of(text, sizeof text);
    vp_json_writer w;
    vp_ops ops;
    check_case("printers: parts and steps, rows without a stack, without a primitive call");
    vp_ops_init(&ops, rows, 4, VP_OPS_BY_PART | VP_OPS_BY_STEP | VP_OPS_BY_STAGE, 1);
    op.primitive_calls = 0; op.part = "experts"; op.step = 12;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    op = sample("with a stack", 5, 0);
    op.stage = "*"; op.step = VP_OP_SEVERAL; op.stack_count = 1; op.stack[0].name = "caller";
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK(strstr(text, "       Stage          Part          Step  Source Location  \n") != NULL);
    CHECK(strstr(text, "             1                     experts            12              \n")
          && strstr(text, "             1             *                           *  caller      \n"));
    CHECK_INT(PRINTED(cprofile), VP_OK);
    CHECK(strstr(text, "         2 function calls (1 primitive calls) in 0.000 seconds\n") != NULL);
    CHECK(strstr(text, "      1/0    0.000    0.000    0.000          {lambda} [experts, step 12]\n") != NULL);
    CHECK(strstr(text, "        1    0.000    0.000    0.000    0.000 with a stack [*, step *]\n") != NULL);
    check_case("printers: sums that exceed int64 are rejected");
    op = sample("half of all time", INT64_MAX - 1, 0);
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    buffer = buffer_of(text, sizeof text);
    CHECK_INT(PRINTED(torch), VP_ERR_RANGE);
    CHECK_INT(PRINTED(cprofile), VP_ERR_RANGE);
    CHECK_INT(vp_ops_print_csv(&ops, keep_text, &buffer), VP_ERR_RANGE);
    CHECK_INT(buffer.length_bytes, 0);
    vp_json_writer_init(&w, text, sizeof text, 0);
    CHECK_INT(vp_ops_write_json(&w, &ops), VP_ERR_RANGE);
    check_case("printers: a single row with the largest times is printed");
    vp_ops_init(&ops, rows, 4, 0, 0);
    op.flops = op.bytes = INT64_MAX; op.host_memory_bytes = INT64_MIN;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    print.with_rates = print.with_flops = print.with_memory = 1; print.time_unit = "us";
    CHECK_INT(PRINTED(torch), VP_OK);
    CHECK(strstr(text, "9223372036854776.0us") != NULL && strstr(text, "-8589934592.00 GB") != NULL);
}
static void test_folded(void) {
    vp_op rows[4], op = sample("gemm; fast", 1500, 700);
    char text[1024];
    kept_text buffer = buffer_of(text, sizeof text);
    vp_ops ops;
    check_case("folded stacks: outermost first, the block around the part, no semicolons in names, nothing without self time");
    vp_ops_init(&ops, rows, 4, VP_OPS_BY_PART | VP_OPS_BY_BLOCK, VP_OP_STACK_LIMIT);
    op.part = "dense"; op.block = 3; op.stack_count = 3;
    op.stack[0].name = "gemm; fast";
    op.stack[1].name = "dense"; op.stack[2].name = "stage";
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    op.part = NULL; op.stack_count = 2; op.stack[1].name = "loop\n";
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    op = sample("step", 900, 0);
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    op = sample("idle", 900, 0);
    op.host_self_ns = 0;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(vp_ops_print_folded(&ops, keep_text, &buffer), VP_OK);
    CHECK_TEXT(text, "stage;block 3;dense;gemm, fast 1500\nloop,;block 3;gemm, fast 1500\nstep 900\n");
    ops.clock = VP_OPS_DEVICE;
    buffer = buffer_of(text, sizeof text);
    CHECK_INT(vp_ops_print_folded(&ops, keep_text, &buffer), VP_OK);
    CHECK_TEXT(text, "stage;block 3;dense;gemm, fast 700\nloop,;block 3;gemm, fast 700\n");
    CHECK_INT(vp_ops_print_folded(&ops, NULL, NULL), VP_ERR_RANGE);
}
static void test_csv(void) {
    vp_op rows[2], op = sample("a \"quoted\", name", 1500, 0);
    char text[4096];
    kept_text buffer = buffer_of(text, sizeof text);
    vp_ops ops;
    check_case("CSV: quotes, empty fields, one line per row");
    vp_ops_init(&ops, rows, 2, VP_OPS_BY_SHAPE, 1);
    op.dimensions = 2; op.shape[0] = 3; op.shape[1] = 4; op.stack_count = 1; op.stack[0].name = "f"; op.stack[0].file = "x.c"; op.stack[0].line = 5;
    op.bytes = 3000;
    CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    CHECK_INT(vp_ops_print_csv(&ops, keep_text, &buffer), VP_OK);
    CHECK_TEXT(text,
               "name,stage,part,block,step,shape,file,line,stack,calls,primitive_calls,host_total_ns,host_self_ns,host_cumulative_ns,host_min_ns,host_max_ns,"
               "device_total_ns,device_self_ns,device_min_ns,device_max_ns,flops,bytes,host_memory_bytes,host_self_memory_bytes,device_memory_bytes,"
               "device_self_memory_bytes,memory_peak_bytes,host_average_ns,device_average_ns,self_percent,gb_per_s,tflop_per_s,ceiling_percent\n"
               "\"a \"\"quoted\"\", name\",,,,,\"[3, 4]\",,,\"x.c(5): f\",1,1,1500,1500,1500,1500,1500,0,0,0,0,0,3000,0,0,0,0,0,1500.0,0.0,100.0,2.0,,\n");
}

/* ---- orders */
static void test_sort(void) {
    static vp_op rows[300];
    vp_ops ops;
    vp_random random;
    int32_t k;
    char name[300][8];
    check_case("sort: every key, no key, many rows");
    CHECK(vp_ops_key_name(-1) == NULL && vp_ops_key_name(1000) == NULL);
    vp_ops_init(&ops, rows, 300, 0, 0);
    CHECK_INT(vp_ops_sort(&ops, "nonsense"), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_ops_sort(&ops, NULL), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_ops_sort(&ops, "time"), VP_OK);
    vp_random_seed(&random, 3);
    for (int i = 0; i < 300; i++) {
        snprintf(name[i], sizeof name[i], "n%03d", (i * 7) % 300);
        vp_op op = sample(name[i], below(&random, 20), 3);
        CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    }
    for (k = 0; vp_ops_key_name(k); k++) {
        CHECK_INT(vp_ops_sort(&ops, vp_ops_key_name(k)), VP_OK);
        CHECK_TEXT(ops.sort_key, vp_ops_key_name(k));
    }
    CHECK(k >= 30);
    CHECK_INT(vp_ops_sort(&ops, "self_cpu_time_total"), VP_OK);
    for (int i = 1; i < 300; i++) {
        const vp_op *a = &rows[i - 1], *b = &rows[i];
        if (!CHECK(a->host_self_ns > b->host_self_ns || (a->host_self_ns == b->host_self_ns && strcmp(a->name, b->name) < 0))) return;
    }
    for (int i = 0; i < 300; i++) { /* can still be found after the rows moved */
        vp_op op = sample(name[i], 1, 0);
        CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    }
    CHECK_INT(ops.count, 300);
}

/* ---- JSON */
enum { TEXT_BYTES = 65536, NODES = 4096 };
static char json_text[TEXT_BYTES], names[TEXT_BYTES];
static vp_json_node nodes[NODES];

static vp_result read_back(vp_ops *ops, const char *text, size_t capacity, vp_error *error) {
    vp_json json;
    vp_result result = vp_json_parse(text, strlen(text), nodes, NODES, &json, NULL, error);
    return result == VP_OK ? vp_ops_read_json(ops, &json, 0, names, capacity, error) : result;
}
static void fill_table(vp_ops *ops, vp_op *rows, int64_t capacity) {
    vp_op op = sample("sch\xC3\xB6n \"1\"\n", 100, 50);
    vp_ops_init(ops, rows, capacity, VP_OPS_BY_SHAPE | VP_OPS_BY_PLACE, 2);
    op.file = "a/b.c"; op.line = 7; op.stage = "decode"; op.block = 4; op.dimensions = 3; op.shape[0] = 1; op.stack_count = 2;
    op.stack[0].name = "inner"; op.stack[1].name = "outer"; op.stack[1].file = "c.c"; op.stack[1].line = 9; op.host_self_memory_bytes = -5;
    op.flops = INT64_C(1) << 60;
    vp_ops_add(ops, &op);
    op.block = 5; op.stage = NULL;
    vp_ops_add(ops, &op);
    op = sample("plain", 7, 0);
    op.block = 12; op.dimensions = VP_OP_SEVERAL;
    vp_ops_add(ops, &op);
    ops->clock = VP_OPS_DEVICE; ops->device_name = "CUDA"; ops->ceilings.bytes_per_s = 4.8e12; ops->dropped_calls = 3; ops->dropped_host_ns = 33;
    vp_ops_sort(ops, "cumtime");
}
static void test_json(void) {
    static char again[TEXT_BYTES];
    vp_op rows[4], read_rows[4];
    vp_ops ops, read;
    vp_json_writer w;
    vp_error error;
    check_case("JSON: the table that is read equals the one that was written");
    fill_table(&ops, rows, 4);
    vp_json_writer_init(&w, json_text, sizeof json_text, 1);
    CHECK_INT(vp_ops_write_json(&w, &ops), VP_OK);
    CHECK_INT(vp_json_finish(&w), VP_OK);
    vp_ops_init(&read, read_rows, 4, 0, 0);
    CHECK_INT(read_back(&read, json_text, strlen(json_text), &error), VP_OK);
    CHECK_INT(read.count, 2); CHECK_INT(read.group_by, ops.group_by); CHECK_INT(read.clock, VP_OPS_DEVICE); CHECK_TEXT(read.sort_key, "cumtime");
    CHECK_INT(read.dropped_host_ns, 33);
    CHECK(read.ceilings.bytes_per_s == 4.8e12 && read.ceilings.flops_per_s == 0.0);
    CHECK_TEXT(read_rows[0].stage, "*");
    vp_json_writer_init(&w, again, sizeof again, 1);
    vp_ops_write_json(&w, &read);
    CHECK_INT(vp_json_finish(&w), VP_OK);
    CHECK_TEXT(again, json_text);
    CHECK_INT(vp_ops_sort(&read, "name"), VP_OK);
    CHECK_TEXT(read_rows[0].name, "plain");

    check_case("JSON: a table that is too small, names that are too long");
    vp_ops_init(&read, read_rows, 1, VP_OPS_BY_STEP, 0);
    CHECK_INT(read_back(&read, json_text, sizeof names, &error), VP_ERR_CAPACITY);
    CHECK_INT(read.count, 0); CHECK_INT(read.group_by, VP_OPS_BY_STEP);
    vp_ops_init(&read, read_rows, 4, 0, 0);
    for (size_t i = 0; i < 40; i++) CHECK_INT(read_back(&read, json_text, i, &error), VP_ERR_CAPACITY);
    check_case("JSON: with any one byte damaged, it is either read or rejected as a whole");
    strcpy(again, json_text);
    for (size_t i = 0; again[i]; i++) {
        const char was = again[i];
        again[i] = was == '1' ? '-' : '1';
        vp_ops_init(&read, read_rows, 4, 0, 0);
        vp_result result = read_back(&read, again, sizeof names, &error);
        if (!CHECK(result == VP_OK ? read.count == 2 : read.count == 0 && result < 0)) return;
        again[i] = was;
    }
}
/* reads a whole table with one text replaced */
static vp_result read_with(const char *old, const char *fresh) {
    static char text[TEXT_BYTES];
    static const char whole[] =
        "{\"schema\": \"vlmprof-ops-1\", \"group_by\": [\"shape\"], \"group_by_stack_n\": 1, \"clock\": \"host\", \"sort_key\": null, \"device_name\": null, "
        "\"ceilings\": {\"bytes_per_s\": null, \"flops_per_s\": 1e12}, \"dropped\": {\"calls\": 0, \"host_ns\": 0, \"device_ns\": 0}, \"rows\": [{"
        "\"name\": \"a\", \"stage\": null, \"part\": null, \"block\": 1, \"step\": null, \"shape\": [2], \"file\": \"f.c\", \"line\": 3, "
        "\"stack\": [{\"name\": \"s\", \"file\": null, \"line\": 0}], \"calls\": 2, \"primitive_calls\": 2, \"host_total_ns\": 10, \"host_self_ns\": 9, "
        "\"host_cumulative_ns\": 10, \"host_min_ns\": 4, \"host_max_ns\": 6, \"device_total_ns\": 0, \"device_self_ns\": 0, \"device_min_ns\": 0, "
        "\"device_max_ns\": 0, \"flops\": 5, \"bytes\": 5, \"host_memory_bytes\": 0, \"host_self_memory_bytes\": 0, \"device_memory_bytes\": 0, "
        "\"device_self_memory_bytes\": 0, \"memory_peak_bytes\": 0}]}";
    const char *found = strstr(whole, old);
    vp_op rows[2];
    vp_ops ops;
    vp_error error;
    if (!CHECK(found != NULL)) return VP_OK;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(found - whole), whole, fresh, found + strlen(old));
    vp_ops_init(&ops, rows, 2, 0, 0);
    vp_result result = read_back(&ops, text, strlen(text), &error);
    CHECK_INT(ops.count, result == VP_OK ? 1 : 0);
    return result;
}
static void test_json_errors(void) {
    check_case("JSON: a single error");
    CHECK_INT(read_with("\"vlmprof-ops-1\"", "\"vlmprof-ops-1\""), VP_OK);
    CHECK_INT(read_with("vlmprof-ops-1", "vlmprof-ops-2"), VP_ERR_MISMATCH);
    CHECK_INT(read_with("\"schema\"", "\"scheme\""), VP_ERR_MISMATCH);
    CHECK_INT(read_with("[\"shape\"]", "[\"color\"]"), VP_ERR_FORMAT);
    CHECK_INT(read_with("[\"shape\"]", "null"), VP_ERR_FORMAT);
    CHECK_INT(read_with("stack_n\": 1", "stack_n\": 9"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"host\", ", "\"sun\", "), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"sort_key\": null", "\"sort_key\": \"luck\""), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"sort_key\": null", "\"sort_key\": \"time\""), VP_OK);
    CHECK_INT(read_with("1e12", "-1"), VP_ERR_RANGE);
    CHECK_INT(read_with("1e12", "\"much\""), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"calls\": 0", "\"calls\": -1"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"rows\": [", "\"rows\": [7, "), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"name\": \"a\"", "\"name\": null"), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"name\": \"a\"", "\"name\": \"\""), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"name\": \"a\"", "\"name\": \"a\\u0000b\""), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"name\": \"a\"", "\"name\": \"\\u00e4\""), VP_OK);
    CHECK_INT(read_with("\"block\": 1", "\"block\": -2"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"block\": 1", "\"block\": \"*\""), VP_OK);
    CHECK_INT(read_with("\"block\": 1", "\"block\": \"all\""), VP_ERR_FORMAT);
    CHECK_INT(read_with("[2]", "[2, 2, 2, 2, 2]"), VP_ERR_RANGE);
    CHECK_INT(read_with("[2]", "[2.5]"), VP_ERR_FORMAT);
    CHECK_INT(read_with("[2]", "[3000000000]"), VP_ERR_RANGE);
    CHECK_INT(read_with("[2]", "\"*\""), VP_OK);
    CHECK_INT(read_with("\"stack\": [{", "\"stack\": [1, {"), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"stack\": [", "\"stack\": [{\"name\": \"s\", \"file\": null, \"line\": 0},"), VP_OK); /* truncated to group_by_stack_n */
    CHECK_INT(read_with("\"stack\": [", "\"stack\": [0, 1, 2, 3, 4, 5, 6, 7,"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"calls\": 2", "\"calls\": 1e30"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"calls\": 2", "\"calls\": 0"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"host_self_ns\": 9", "\"host_self_ns\": 11"), VP_ERR_RANGE);
    CHECK_INT(read_with("\"flops\": 5, ", ""), VP_ERR_FORMAT);
    CHECK_INT(read_with("\"flops\": 5, ", "\"flops\": 5, \"colour\": 7, "), VP_OK);
}
static void test_json_two_rows_of_one_key(void) {
    vp_op rows[4], op = sample("gemm", 1, 0);
    vp_ops ops;
    vp_json_writer w;
    vp_error error;
    check_case("JSON: two rows with one key are rejected");
    vp_ops_init(&ops, rows, 4, VP_OPS_BY_SHAPE, 0);
    vp_ops_add(&ops, &op);
    op.dimensions = 1;
    vp_ops_add(&ops, &op);
    vp_json_writer_init(&w, json_text, sizeof json_text, 0);
    vp_ops_write_json(&w, &ops);
    CHECK_INT(vp_json_finish(&w), VP_OK);
    CHECK_INT(read_back(&ops, json_text, sizeof names, &error), VP_OK);
    CHECK_INT(ops.count, 2);
    char *groups = strstr(json_text, "[\"shape\"]");
    CHECK(groups != NULL);
    if (groups) memcpy(groups, "[]       ", 9);
    CHECK_INT(read_back(&ops, json_text, sizeof names, &error), VP_ERR_RANGE);
    CHECK_INT(ops.count, 0);
    CHECK(error.offset > 0);
}

/* ---- schedule */
static void test_schedule_golden(void) {
    char *text = check_read(check_golden("ranges/schedule.txt"), NULL), *line, states[64];
    int lines = 0, refusals = 0;
    check_case("golden/ranges/schedule.txt");
    CHECK(text != NULL);
    for (line = text; line && *line; line = strchr(line, '\n') + 1) {
        vp_schedule s = vp_schedule_default();
        long long skip_first, wait, warmup, active, repeat;
        int first, warnings, no_warmup = -1, i;
        lines++;
        CHECK_INT(sscanf(line, "%lld %lld %lld %lld %lld %d %d %63s", &skip_first, &wait, &warmup, &active, &repeat, &first, &warnings, states), 8);
        s.skip_first = skip_first; s.wait = wait; s.warmup = warmup; s.active = active; s.repeat = repeat; s.skip_first_wait = first;
        if (strcmp(states, "refused") == 0) {
            refusals++;
            CHECK_INT(vp_schedule_check(&s, &no_warmup, NULL), VP_ERR_RANGE);
            CHECK_INT(no_warmup, -1);
            continue;
        }
        CHECK_INT(vp_schedule_check(&s, &no_warmup, NULL), VP_OK);
        CHECK_INT(no_warmup, warnings);
        for (i = 0; states[i]; i++) {
            vp_schedule_step step;
            CHECK_INT(vp_schedule_at(&s, i, &step), VP_OK);
            if (!check_note((int)step.state == states[i] - '0', __FILE__, __LINE__, "line %d, step %d: %d, expected %c", lines, i, (int)step.state, states[i]))
                return;
        }
    }
    CHECK(lines == 400 && refusals > 0);
    free(text);
}
/* counts against a walk over all steps; cycles that begin every n steps equal cycles with a longer final wait */
static void test_schedule_property(void) {
    vp_random random;
    vp_random_seed(&random, 9);
    check_case("schedule: counts and every_n_steps against a walk (seed 9)");
    for (int round = 0; round < 3000; round++) {
        vp_schedule s;
        vp_schedule_sum sum, walked = {0};
        vp_schedule_step step;
        const int64_t steps = below(&random, 80);
        int64_t i, open = 0;
        s.skip_first = below(&random, 10); s.wait = below(&random, 5); s.warmup = below(&random, 4); s.active = 1 + below(&random, 4);
        s.repeat = below(&random, 4); s.skip_first_wait = (int)below(&random, 2);
        s.every_n_steps = below(&random, 2) ? s.wait + s.warmup + s.active + below(&random, 9) : 0;
        for (i = 0; i < steps; i++) {
            const int64_t period = s.every_n_steps ? s.every_n_steps : s.wait + s.warmup + s.active;
            const int64_t place = i - s.skip_first + (s.skip_first_wait ? s.wait : 0);
            int want = VP_SCHEDULE_NONE;
            CHECK_INT(vp_schedule_at(&s, i, &step), VP_OK);
            if (i >= s.skip_first && (s.repeat == 0 || place < s.repeat * period)) {
                const int64_t in = place % period - s.wait;
                if (in >= 0 && in < s.warmup) want = VP_SCHEDULE_WARMUP;
                else if (in >= s.warmup && in < s.warmup + s.active) want = in == s.warmup + s.active - 1 ? VP_SCHEDULE_RECORD_AND_SAVE : VP_SCHEDULE_RECORD;
                CHECK_INT(step.cycle, place / period);
            } else {
                CHECK_INT(step.cycle, -1);
            }
            CHECK_INT(step.state, want); CHECK_INT(step.ends_cycle, want == VP_SCHEDULE_RECORD_AND_SAVE);
            open += want >= VP_SCHEDULE_RECORD;
            if (want == VP_SCHEDULE_RECORD_AND_SAVE) {
                walked.cycles++;
                walked.recorded_steps += open;
                open = 0;
            }
        }
        walked.partial_steps = open;
        CHECK_INT(vp_schedule_count(&s, steps, &sum), VP_OK);
        CHECK_INT(sum.cycles, walked.cycles); CHECK_INT(sum.recorded_steps, walked.recorded_steps);
        if (!CHECK_INT(sum.partial_steps, walked.partial_steps)) return;
    }
}
static void test_schedule_errors(void) {
    const int64_t limit = INT64_C(1) << 53;
    vp_schedule s = vp_schedule_default();
    vp_schedule_step step;
    vp_schedule_sum sum;
    vp_error error;
    check_case("schedule: errors and limits");
    CHECK_TEXT(vp_schedule_state_name(VP_SCHEDULE_RECORD_AND_SAVE), "RECORD_AND_SAVE");
    CHECK_TEXT(vp_schedule_state_name(VP_SCHEDULE_NONE), "NONE");
    CHECK_TEXT(vp_schedule_state_name(VP_SCHEDULE_WARMUP), "WARMUP");
    CHECK_TEXT(vp_schedule_state_name(VP_SCHEDULE_RECORD), "RECORD");
    CHECK(vp_schedule_state_name((vp_schedule_state)4) == NULL);
    CHECK_INT(vp_schedule_at(&s, -1, &step), VP_ERR_RANGE);
    CHECK_INT(vp_schedule_at(&s, limit + 1, &step), VP_ERR_RANGE);
    CHECK_INT(vp_schedule_count(&s, -1, &sum), VP_ERR_RANGE);
    s.active = 0;
    CHECK_INT(vp_schedule_check(&s, NULL, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "active is 0: a cycle records at least one step");
    s.active = 3; s.wait = -1;
    CHECK_INT(vp_schedule_check(&s, NULL, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "wait is -1, below 0");
    s.wait = 1; s.every_n_steps = 4;
    CHECK_INT(vp_schedule_check(&s, NULL, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "every_n_steps is 4, shorter than wait + warmup + active");
    CHECK_INT(vp_schedule_at(&s, 0, &step), VP_ERR_RANGE);
    s.every_n_steps = 0; s.skip_first_wait = 2;
    CHECK_INT(vp_schedule_check(&s, NULL, NULL), VP_ERR_RANGE);
    s.skip_first_wait = 1; s.wait = INT64_MAX;
    CHECK_INT(vp_schedule_at(&s, 0, &step), VP_ERR_RANGE);
    s.skip_first = s.wait = s.warmup = s.active = s.repeat = limit; /* no overflow at the limits */
    CHECK_INT(vp_schedule_at(&s, limit, &step), VP_OK);
    CHECK_INT(step.state, VP_SCHEDULE_WARMUP);
    CHECK_INT(vp_schedule_count(&s, limit, &sum), VP_OK);
    CHECK_INT(sum.cycles + sum.partial_steps, 0);
}

int main(void) {
    RUN_TESTS(test_nesting, test_misuse, test_full, test_hooks, test_recursion, test_rows, test_refused_samples,
              test_rates, test_fixed, test_golden_tables, test_print_options, test_print_rest, test_csv, test_folded,
              test_sort, test_json, test_json_errors, test_json_two_rows_of_one_key, test_schedule_golden,
              test_schedule_property, test_schedule_errors);
    return check_done("test_ranges");
}
