/* test_flame_page.c: the page of run --profile --html. A profiled request becomes a page, which is parsed again: its markup is plain, its script runs by its nonce, its
 * table has the rows of the tool's own table with the same sums, and the chart's data contain each operation at a time within its stage. Synthetic requests of a large
 * model show that the page stays small and lists its omissions. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "page/flame.h"
#include "support/check.h"
#include "support/page_reader.h"
#include "support/program.h"
#include <inttypes.h>
#include <unistd.h>

#define TINY "run samples/cat.jpg -p \"What is this?\" --synthetic tiny --max_new_tokens 6"

/* ---- the data of the chart */
enum { NODES_MOST = 2000000 };
static vp_json_node *nodes;
static vp_json json;
static char *data_copy;
static int data_parse(const char *page) {
    const char *from = strstr(page, "id=\"data\">"), *to = from ? strstr(from, "</script>") : NULL;
    if (!to) return 0;
    from += strlen("id=\"data\">");
    free(data_copy);
    data_copy = strndup(from, (size_t)(to - from));
    return vp_json_parse(data_copy, strlen(data_copy), nodes, NODES_MOST, &json, NULL, NULL) == VP_OK;
}
static int64_t whole(uint32_t node) {
    int64_t value = -1;
    return vp_json_to_int(&json, node, &value) == VP_OK ? value : -1;
}
static int64_t member(uint32_t array, uint32_t index) { return whole(vp_json_at(&json, array, index)); }
/* Number and total time of the operations in the data, and how many are outside their stage (or group) or overlap. */
typedef struct drawn { int64_t count, ns, outside; } drawn;
static drawn drawn_of(const char *name) { /* NULL: all */
    uint32_t runs = vp_json_get(&json, 0, "runs"), stages = vp_json_get(&json, 0, "stages"), groups = vp_json_get(&json, 0, "groups"),
             calls = vp_json_get(&json, 0, "calls"), names = vp_json_get(&json, 0, "names");
    drawn sum = {0, 0, 0};
    for (uint32_t run = runs + 1, i = 0; i < nodes[runs].count; i++, run = nodes[run].end) {
        uint32_t stage = vp_json_at(&json, stages, (uint32_t)member(run, 0)), list = vp_json_at(&json, run, 4), group;
        int64_t at = member(run, 3), low = member(stage, 1), high = low + member(stage, 2);
        if (member(run, 1) >= 0) {
            group = vp_json_at(&json, groups, (uint32_t)member(run, 1));
            if (member(group, 2) > low) low = member(group, 2);
            if (member(group, 2) + member(group, 3) < high) high = member(group, 2) + member(group, 3);
        }
        for (uint32_t k = list + 1; k < nodes[list].end; k += 3) {
            uint32_t call = vp_json_at(&json, calls, (uint32_t)whole(k));
            int64_t ns = whole(k + 2);
            at += whole(k + 1);
            if (!name || vp_json_equals(&json, vp_json_at(&json, names, (uint32_t)member(call, 0)), name)) { sum.count++; sum.ns += ns; }
            if (at < low || at + ns > high || ns < 0) sum.outside++;
            at += ns;
        }
    }
    return sum;
}
/* ---- tests */
/* Each row of the saved table is on the page with its self and total time; so is the sum. */
static void check_rows(const char *page, const char *table) {
    vp_json_node *rows = malloc(400000 * sizeof *rows);
    vp_json read;
    char *text = text_of_file(table), name[200], cells[120];
    int64_t self, total, sum = 0;
    uint32_t list, row;
    if (CHECK_INT(vp_json_parse(text, strlen(text), rows, 400000, &read, NULL, NULL), VP_OK)) {
        list = vp_json_get(&read, 0, "rows");
        CHECK_INT(page_count(page, "<tr><th scope=\"row\" class=\"x\">"), rows[list].count);
        CHECK(rows[list].count > 30);
        row = list + 1;
        for (uint32_t i = 0; i < rows[list].count; i++, row = rows[row].end) {
            CHECK_INT(vp_json_text(&read, vp_json_get(&read, row, "name"), name, sizeof name, NULL), VP_OK);
            vp_json_to_int(&read, vp_json_get(&read, row, "host_self_ns"), &self);
            vp_json_to_int(&read, vp_json_get(&read, row, "host_total_ns"), &total);
            snprintf(cells, sizeof cells, "<td data-v=\"%lld\">%.4f<td>", (long long)self, (double)self / 2 / 1e6);
            check_note(strstr(page, cells) && strstr(page, name), __FILE__, __LINE__, "%s is not there with %s", name, cells);
            snprintf(cells, sizeof cells, "<td data-v=\"%lld\">%.4f<td>", (long long)total, (double)total / 2 / 1e6);
            check_note(strstr(page, cells) != NULL, __FILE__, __LINE__, "%s is not there with %s", name, cells);
            sum += self;
        }
        snprintf(cells, sizeof cells, "<td data-v=\"%lld\">%.4f<td>100.0", (long long)sum, (double)sum / 2 / 1e6);
        CHECK(strstr(page, cells) != NULL);
    }
    FREE_ALL(text, rows);
}
static const char *const PARTS[] = {"<h1>tiny, cat.jpg: &ldquo;What is this?&rdquo;</h1>", "id=\"findings\"", "The stage ", " % of a request",
    "the most expensive operation is", "which cost time", "id=\"flame\"", "2 recorded requests", "id=\"data\"", "id=\"stages\"", "id=\"table\"", "all operations",
    "id=\"words\"", "id=\"source\"", "What is this?", "<dt>device</dt>", "--html"};
static void test_page(void) {
    struct drawn all;
    check_case("the page of a request: table, chart and text; --output and --trace can be combined with it");
    CHECK_INT(run(TINY " --profile --num_runs 2 --html %%F/page.html --profile_format json -o %%F/ops.json --trace %%F/trace.json"), 0);
    CHECK(strstr(last.err, "trace written") && strstr(last.err, "vlmprof: the page is in "));
    char *page = text_of_file(in_folder("page.html"));
    page_is_good(page);
    CHECK_INT(parts_in_order(page, PARTS, sizeof PARTS / sizeof *PARTS), sizeof PARTS / sizeof *PARTS);
    check_rows(page, in_folder("ops.json"));
    CHECK(strlen(page) > 30000 && strlen(page) < 200000);
    CHECK(!strstr(page, "id=\"left\""));
    check_case("the chart's operations are within their stages, passes and steps");
    if (CHECK(data_parse(page))) {
        all = drawn_of(NULL);
        CHECK(all.count > 400 && all.ns > 0 && all.ns < whole(vp_json_get(&json, 0, "total")));
        CHECK_INT(all.outside, 0);
        CHECK_INT(nodes[vp_json_get(&json, 0, "stages")].count, 12); /* 4 of the host, 8 of the engine */
        CHECK_INT(nodes[vp_json_get(&json, 0, "groups")].count, 3 + 5); /* views and decode steps */
    }
    free(page);
}
/* For one recorded request, the chart's sums equal the table's. */
static void test_sums(void) {
    static const char *const names[] = {"gemm", "attention", "k_rmsnorm", "k_argmax", "copy"};
    char *page, cells[80];
    check_case("for one request, the chart's operations add up to the table's rows");
    CHECK_INT(run(TINY " --profile --num_runs 1 --group_by none --html %%F/one.html"), 0);
    page = text_of_file(in_folder("one.html"));
    page_is_good(page);
    CHECK(strstr(page, "1 recorded request: "));
    if (CHECK(data_parse(page)))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            drawn sum = drawn_of(names[i]);
            snprintf(cells, sizeof cells, "</i>%s<td>%lld<td data-v=\"%lld\">", names[i], (long long)sum.count, (long long)sum.ns);
            check_note(sum.count && strstr(page, cells), __FILE__, __LINE__, "%s is not there", cells);
        }
    free(page);
}
static void test_forms(void) {
    static const char *const forms[] = {"--group_by shape stage part block step place", "--profile_format folded -o %F/t",
        "--group_by part shape --sort_by count --row_limit 2", "--repeat 2 --wait 1 --active 1", "--json"};
    const char *said;
    char *page;
    int calls;
    check_case("groupings, table formats, schedules");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        CHECK_INT(run(TINY " --profile --html %%F/form.html --num_runs 4 %s", forms[i]), 0);
        page = text_of_file(in_folder("form.html"));
        page_is_good(page);
        CHECK(strlen(page) < 2000000 && data_parse(page));
        calls = 0; /* all calls of the most expensive operation, however rows are grouped */
        said = strstr(page, "the most expensive operation is <b>");
        CHECK(said && (said = strstr(said, " self time in ")) != NULL && sscanf(said, " self time in %d calls", &calls) == 1 && calls > 2);
        remove(in_folder("form.html"));
        free(page);
    }
    check_case("without an image, there is no vision pass and no vision stage");
    CHECK_INT(run("run -p Hello --synthetic tiny --max_new_tokens 1 --profile --html %%F/text.html"), 0);
    page = text_of_file(in_folder("text.html"));
    page_is_good(page);
    CHECK(strstr(page, "tiny, no image: &ldquo;Hello&rdquo;") && !strstr(page, "[\"vit\","));
    if (CHECK(data_parse(page))) CHECK_INT(nodes[vp_json_get(&json, 0, "groups")].count, 0);
    free(page);
}
static void test_hostile(void) {
    check_case("a question with markup remains text; a long one is shortened only in the title");
    CHECK_INT(run("run samples/cat.jpg -p \"</script><img src=x onerror=alert(1)>&\\\"'\" --synthetic tiny --max_new_tokens 1 --profile --num_runs 1 "
                  "--html %%F/odd.html"), 0);
    char *page = text_of_file(in_folder("odd.html"));
    page_is_good(page);
    CHECK(strstr(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#39;"));
    CHECK_INT(page_count(page, "</script>"), 2);
    free(page);
    CHECK_INT(run("run -p %s%s%s%s --synthetic tiny --max_new_tokens 1 --profile --num_runs 1 --html %%F/odd.html",
                  "ääääääääääääääääääääääääääääääää", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccccccccc",
                  "dddddddddddddddddddddddddddddddd"), 0);
    page = text_of_file(in_folder("odd.html"));
    page_is_good(page);
    CHECK(strstr(page, "ccddd\xE2\x80\xA6&rdquo;</h1>") && strstr(page, "dddddddddddddddddddddddddddddddd</dd>"));
    free(page);
}
static void test_usage(void) {
    check_case("--html needs --profile; a file that cannot be written is exit code 5");
    EXITS(run(TINY " --html %%F/never.html"), 2, err, "--html needs --profile");
    CHECK(access(in_folder("never.html"), F_OK) != 0);
    EXITS(run(TINY " --profile --num_runs 1 --html %%F/no/such/page.html"), 5, err, "no/such/page.html");
}
/* ---- synthetic requests, with as many launches as a large model */
enum { VIT_BLOCKS = 23, LLM_BLOCKS = 16 };
typedef struct made { vp_launch *launches; int64_t count, capacity, clock_ns; } made;
static void launch(made *m, const char *name, int stage, int step, int part, int block, int width) {
    vp_launch one = {0};
    one.name = name; one.stage = stage; one.step = step; one.part = part; one.block = block;
    one.dimensions = 2; one.shape[0] = 1 + step; one.shape[1] = width;
    one.begin_ns = one.host_begin_ns = m->clock_ns; one.ns = one.host_ns = 12345 + block;
    one.flops = 123456789; one.bytes = 12345678;
    m->clock_ns += one.ns + 321;
    if (m->count == m->capacity) m->launches = realloc(m->launches, (size_t)(m->capacity = m->capacity ? 2 * m->capacity : 1024) * sizeof *m->launches);
    m->launches[m->count++] = one;
}
static void make_request(made *m, vp_stage_times *times, int views, int steps) {
    memset(m, 0, sizeof *m);
    memset(times, 0, sizeof *times);
    for (int view = 0; view < views; view++) {
        launch(m, "gemm", VP_STAGE_VIT, 0, VP_PART_VIT_EMBED, -1, 1024);
        launch(m, "k_vit_embed", VP_STAGE_VIT, 0, VP_PART_VIT_EMBED, -1, 1024);
        for (int block = 0; block < VIT_BLOCKS; block++)
            for (int i = 0; i < 8; i++) launch(m, i == 3 ? "attention" : "gemm", VP_STAGE_VIT, 0, i == 3 ? VP_PART_VIT_ATTENTION : VP_PART_VIT_DENSE, block, 1024 * i);
    }
    times->device_ns[VP_STAGE_VIT] = m->clock_ns;
    for (int step = 0; step <= steps; step++) {
        int stage = step ? VP_STAGE_DECODE : VP_STAGE_PREFILL;
        if (step == 1) times->begin_ns[VP_STAGE_DECODE] = m->clock_ns;
        for (int block = 0; block < LLM_BLOCKS; block++)
            for (int i = 0; i < 15; i++)
                launch(m, i == 6 ? "k_attention_decode" : i > 10 ? "gemm_grouped" : "gemm", stage, step, i > 10 ? VP_PART_EXPERTS : VP_PART_DENSE, block, 2048 + i);
        if (!step) times->device_ns[VP_STAGE_PREFILL] = m->clock_ns - times->device_ns[VP_STAGE_VIT];
    }
    times->begin_ns[VP_STAGE_PREFILL] = times->device_ns[VP_STAGE_VIT];
    times->device_ns[VP_STAGE_DECODE] = m->clock_ns - times->begin_ns[VP_STAGE_DECODE];
    times->ran[VP_STAGE_VIT] = times->ran[VP_STAGE_PREFILL] = times->ran[VP_STAGE_DECODE] = 1;
}
/* The page of a synthetic request, whose table has `rows` rows. */
static char *made_page(int views, int steps, int rows, int64_t *launches) {
    static vp_op table[5000];
    double none[VP_STAGE_COUNT] = {0};
    struct text_buffer out = {NULL, 0, 0};
    struct text_list warnings = {NULL, 0};
    struct flame flame = {0};
    vp_stage_times times;
    int64_t *step_ns = calloc((size_t)steps + 1, sizeof *step_ns);
    vp_ops ops;
    made m;
    make_request(&m, &times, views, steps);
    for (int i = 0; i < steps; i++) step_ns[i] = times.device_ns[VP_STAGE_DECODE] / steps;
    CHECK_INT(vp_ops_init(&ops, table, 5000, VP_OPS_BY_PART | VP_OPS_BY_STEP, 0), VP_OK);
    for (int i = 0; i < rows; i++) {
        vp_op op = vp_op_default();
        op.name = "gemm"; op.part = "dense"; op.stage = "decode"; op.step = i; op.host_total_ns = op.host_self_ns = 1000 + i;
        CHECK_INT(vp_ops_add(&ops, &op), VP_OK);
    }
    flame.model = "large"; flame.question = "?"; flame.device = "made up"; flame.date = "2026-11-22"; flame.warnings = &warnings;
    flame.request_count = 1; flame.total_ns = (double)m.clock_ns; flame.ops = &ops; flame.stage_ns = flame.op_ns = none;
    flame.request.total_ns = m.clock_ns; flame.request.launches = m.launches; *launches = flame.request.launch_count = m.count;
    flame.request.times = &times; flame.request.step_ns = step_ns; flame.request.step_count = steps;
    flame_page_write(&flame, &out);
    FREE_ALL(m.launches, step_ns);
    return out.data;
}
static void test_size(void) {
    static const struct { int views, steps, rows, is_whole; } cases[] = {{13, 63, 50, 1}, {13, 500, 4000, 0}, {1000, 0, 2000, 0}, {300, 4000, 4999, 0}};
    check_case("a large model's page stays below 2 MB: omitted boxes are counted, boxes of passes and steps remain");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t launches, left = 0, of = 0;
        char *page = made_page(cases[i].views, cases[i].steps, cases[i].rows, &launches);
        const char *said = strstr(page, "<p id=\"left\">");
        page_is_good(page);
        check_note(strlen(page) < 2000000, __FILE__, __LINE__, "the page has %zu bytes", strlen(page));
        CHECK_INT(said == NULL, cases[i].is_whole);
        if (said) CHECK_INT(sscanf(said, "<p id=\"left\">To keep the page small, %" SCNd64 " of %" SCNd64 " operations are not drawn", &left, &of), 2);
        if (!CHECK(data_parse(page))) continue;
        drawn all = drawn_of(NULL);
        CHECK_INT(all.count + left, launches);
        if (said) CHECK_INT(of, launches);
        CHECK(all.count > 5000);
        CHECK_INT(nodes[vp_json_get(&json, 0, "groups")].count, cases[i].views + cases[i].steps);
        CHECK_INT(page_count(page, "<tr><th scope=\"row\" class=\"x\">"), cases[i].rows < FLAME_ROWS_MOST ? cases[i].rows : FLAME_ROWS_MOST);
        CHECK_INT(strstr(page, "more rows are not on this page") != NULL, cases[i].rows > FLAME_ROWS_MOST);
        free(page);
    }
}
static void test_kinds(void) {
    static const struct { const char *name; int kind; } cases[] = {{"gemm", FLAME_PRODUCT}, {"gemm_grouped", FLAME_EXPERTS}, {"attention", FLAME_ATTENTION},
        {"attention_norm", FLAME_ATTENTION}, {"k_attention_decode", FLAME_ATTENTION}, {"k_qk_norm_rope", FLAME_NORM}, {"k_decode_router", FLAME_ROUTING},
        {"k_decode_qkv", FLAME_PRODUCT}, {"k_decode_gate_up", FLAME_EXPERTS}, {"k_gate_mul", FLAME_OTHER}, {"copy_to_host", FLAME_COPY}, {"k_convert", FLAME_COPY},
        {"k_argmax", FLAME_ROUTING}};
    check_case("kinds of operations are recognised by name");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_note(flame_kind(cases[i].name) == cases[i].kind, __FILE__, __LINE__, "%s is of another kind", cases[i].name);
}
int main(void) {
    if (!program_begin("flame")) return 1;
    program = built("tests/vlmprof-hooks"); /* with given ceilings */
    nodes = malloc(NODES_MOST * sizeof *nodes);
    if (!nodes) return 1;
    RUN_TESTS(test_kinds, test_page, test_sums, test_forms, test_hostile, test_usage, test_size);
    FREE_ALL(nodes, data_copy);
    return program_done("test_flame_page");
}
