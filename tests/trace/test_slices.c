/* test_slices.c: vlmprof_trace.h alone. Random slices of several threads, in random order, become a trace whose slices nest on every row, checked pair by pair on
 * what was written; nothing is lost or changed; slices move only if they must. Each refusal and its words; limits, failed writes, lack of memory. */
#include <stdint.h>
#include <stdlib.h>
static int memory_left = INT32_MAX;
static void *limited_realloc(void *memory, size_t bytes) { return memory_left-- > 0 ? realloc(memory, bytes) : NULL; }
#define VP_MALLOC(bytes) malloc(bytes)
#define VP_CALLOC(count, bytes) calloc(count, bytes)
#define VP_REALLOC(memory, bytes) limited_realloc(memory, bytes)
#define VP_FREE(memory) free(memory)
#define VLMPROF_STATIC
#define VLMPROF_IMPLEMENTATION
#include "vlmprof_json.h"
#include "vlmprof_trace.h"
#include "support/check.h"
#include "support/folder.h"
#include <unistd.h>

enum { MOST = 400, THREADS = 4, TEXT = 1 << 18 };
typedef struct slice { int thread; long long begin, ns; } slice;
static char text[TEXT];
static size_t text_bytes, text_limit = TEXT;
static vp_result take(void *user, const char *piece, size_t bytes) {
    (void)user;
    if (text_bytes + bytes >= text_limit) return VP_ERR_WRITE;
    memcpy(text + text_bytes, piece, bytes);
    text[text_bytes += bytes] = 0;
    return VP_OK;
}
static vp_trace *open_trace(void) {
    vp_trace *trace = NULL;
    text_bytes = 0;
    CHECK_INT(vp_trace_open(NULL, take, NULL, &trace, NULL), VP_OK);
    return trace;
}
/* the slices of the text, which must be JSON; -1: a line is not as it should be */
static int read_slices(slice *slices) {
    int count = 0;
    CHECK_INT(vp_json_parse(text, text_bytes, NULL, 0, NULL, NULL, NULL), VP_ERR_CAPACITY);
    for (const char *at = text; (at = strstr(at, "\"ph\": \"X\"")) != NULL; at++) {
        long long begin_us, ns_us;
        int begin_rest, ns_rest;
        const char *tid = strstr(at, "\"tid\"");
        if (!tid || sscanf(tid, "\"tid\": %d, \"ts\": %lld.%3d, \"dur\": %lld.%3d", &slices[count].thread, &begin_us, &begin_rest, &ns_us, &ns_rest) != 5) return -1;
        slices[count].begin = 1000 * begin_us + begin_rest;
        slices[count++].ns = 1000 * ns_us + ns_rest;
    }
    return count;
}
static int cross(const slice *a, const slice *b) {
    return (a->begin < b->begin && b->begin < a->begin + a->ns && a->begin + a->ns < b->begin + b->ns)
           || (b->begin < a->begin && a->begin < b->begin + b->ns && b->begin + b->ns < a->begin + a->ns);
}
/* The rows nest, and slice i came out with its times; on its thread's first row unless it crosses an earlier slice there. Returns the slices on other rows. */
static int check_rows(const slice *in, int count) {
    static slice out[MOST];
    int other = 0;
    if (!CHECK_INT(read_slices(out), count)) return -1;
    for (int i = 0; i < count; i++) {
        int crosses = 0;
        CHECK(out[i].begin == in[i].begin && out[i].ns == in[i].ns);
        for (int k = 0; k < i; k++) {
            CHECK(out[k].thread != out[i].thread || !cross(&out[k], &out[i]));
            CHECK(out[k].thread != out[i].thread || in[k].thread == in[i].thread);
            crosses += out[k].thread == in[i].thread && cross(&in[k], &in[i]);
        }
        CHECK_INT(out[i].thread != in[i].thread, crosses > 0);
        other += crosses > 0;
    }
    return other;
}
static void test_random(void) {
    static slice in[MOST];
    vp_random random;
    const struct { const char *what; uint32_t span, longest; int threads; } forms[] = {
        {"few places, so that edges coincide", 12, 8, 1}, {"several threads", 1000, 400, THREADS}, {"short slices", 100000, 50, 2}, {"long slices", 1000, 1000, 1}};
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        check_case("random slices: %s", forms[form].what);
        for (uint32_t seed = 0; seed < 20; seed++) {
            vp_trace *trace = open_trace();
            vp_trace_info info;
            const int count = 10 + (int)(seed * (form == 3 ? 4 : 15));
            vp_random_seed(&random, seed);
            for (int i = 0; i < count; i++) {
                in[i].thread = (int)(vp_random_u32(&random) % (uint32_t)forms[form].threads);
                in[i].begin = vp_random_u32(&random) % forms[form].span;
                in[i].ns = vp_random_u32(&random) % forms[form].longest;
                CHECK_INT(vp_trace_slice(trace, in[i].thread, "slice", in[i].begin, in[i].begin + in[i].ns, NULL, 0, NULL), VP_OK);
            }
            CHECK_INT(vp_trace_close(trace, &info, NULL), VP_OK);
            CHECK_INT(check_rows(in, count), info.other_row_slices);
            int64_t names = 0; /* of rows but the first of a thread */
            for (const char *at = text; (at = strstr(at, "\"overlapping slices of thread ")) != NULL; at++) names++;
            CHECK(!names == !info.other_row_slices && names <= info.other_row_slices);
            CHECK_INT(info.events, count + 1 + names); CHECK_INT(info.bytes, text_bytes);
            vp_trace_free(trace);
        }
    }
}
/* Nested calls of two threads, with begin and end: nothing moves, whichever slice ends first. */
static void test_live(void) {
    slice in[4] = {{0, 20, 30}, {1, 15, 45}, {0, 10, 50}, {0, 60, 5}};
    vp_trace *trace = open_trace();
    vp_trace_info info;
    check_case("slices as they happen");
    CHECK_INT(vp_trace_end(trace, 0, 5, NULL), VP_ERR_STATE); CHECK_INT(vp_trace_begin(trace, 0, "request", 10, NULL), VP_OK);
    CHECK_INT(vp_trace_begin(trace, 1, "other", 15, NULL), VP_OK); CHECK_INT(vp_trace_begin(trace, 0, "inner", 20, NULL), VP_OK);
    CHECK_INT(vp_trace_end(trace, 0, 19, NULL), VP_ERR_RANGE); /* before it began: it stays open */ CHECK_INT(vp_trace_end(trace, 0, 50, NULL), VP_OK);
    CHECK_INT(vp_trace_end(trace, 1, 60, NULL), VP_OK); CHECK_INT(vp_trace_end(trace, 1, 60, NULL), VP_ERR_STATE);
    CHECK_INT(vp_trace_end(trace, 0, 60, NULL), VP_OK);
    CHECK_INT(vp_trace_slice(trace, 0, "next", 60, 65, NULL, 0, NULL), VP_OK);
    for (int i = 0; i < VP_TRACE_OPEN_LIMIT; i++) CHECK_INT(vp_trace_begin(trace, 2, "open", 70, NULL), VP_OK);
    CHECK_INT(vp_trace_begin(trace, 2, "open", 70, NULL), VP_ERR_CAPACITY);
    CHECK_INT(vp_trace_close(trace, &info, NULL), VP_OK);
    CHECK_INT(info.open_slices, VP_TRACE_OPEN_LIMIT);
    CHECK_INT(check_rows(in, 4), 0);
    CHECK_INT(vp_trace_close(trace, NULL, NULL), VP_ERR_STATE);
    CHECK_INT(vp_trace_slice(trace, 0, "late", 1, 2, NULL, 0, NULL), VP_ERR_STATE);
    vp_trace_free(trace);
}
static void test_text(void) {
    const vp_trace_arg args[] = {{"rows", NULL, 12}, {"what \"it\" is", "a \\ b\nc", 0}, {"share", NULL, 0.1}};
    const char *const expected[] = {"\"name\": \"de/code\\\"\"",
                                    "\"args\": {\"rows\": 12.0, \"what \\\"it\\\" is\": \"a / bc\", \"share\": 0.1}}", "\"name\": \"unknown\"",
                                    "\"thread_name\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": 1, \"tid\": 7, \"args\": {\"name\": \"the NPU\"}",
                                    "\"ts\": 1.001, \"dur\": 1.234"};
    vp_trace *trace = open_trace();
    check_case("names, arguments, thread names");
    CHECK_INT(vp_trace_slice(trace, 7, "de\\code\"", 1001, 2235, args, 3, NULL), VP_OK);
    CHECK_INT(vp_trace_slice(trace, 7, "\xff", 1001, 1001, NULL, 0, NULL), VP_OK);
    CHECK_INT(vp_trace_thread_name(trace, 7, "the NPU", NULL), VP_OK);
    CHECK_INT(vp_trace_close(trace, NULL, NULL), VP_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) check_note(strstr(text, expected[i]) != NULL, __FILE__, __LINE__, "no %s in %s", expected[i], text);
    vp_trace_free(trace);
}
static void test_refusals(void) {
    const vp_trace_arg bad[] = {{NULL, "text", 0}, {"number", NULL, (double)NAN}};
    const struct { int thread; const char *name; int64_t begin_ns, end_ns; const char *says; } rows[] = {
        {0, NULL, 100, 200, "no name"}, {-1, "x", 100, 200, "its thread"}, {VP_TRACE_THREADS_LIMIT, "x", 100, 200, "its thread"},
        {0, "x", 200, 199, "ends before it begins"}, {0, "x", 49, 200, "before base_ns"}, {0, "x", 100, INT64_MAX, "too long after"},
        {0, "x", INT64_MIN, INT64_MAX, "before base_ns"}};
    static const char nowhere[] = "/no/such/folder/trace.json";
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = NULL;
    check_case("refusals write nothing");
    CHECK_INT(vp_trace_open(NULL, NULL, NULL, &trace, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_open(nowhere, NULL, NULL, &trace, &error), VP_ERR_WRITE);
    CHECK_TEXT(error.where, nowhere);
    trace = open_trace();
    trace->base_ns = 50, trace->max_bytes = 4096; /* as vlmprof_torch_trace.h sets them */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(vp_trace_slice(trace, rows[i].thread, rows[i].name, rows[i].begin_ns, rows[i].end_ns, NULL, 0, &error), VP_ERR_RANGE);
        CHECK(strstr(error.text, rows[i].says) != NULL);
    }
    for (int i = 0; i < 2; i++) CHECK_INT(vp_trace_slice(trace, 0, "x", 100, 200, &bad[i], 1, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_stages(trace, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_slice(NULL, 0, "x", 1, 2, NULL, 0, NULL), VP_ERR_RANGE);
    check_case("the limit in bytes");
    vp_result result = VP_OK;
    for (int i = 0; i < 100 && result == VP_OK; i++) result = vp_trace_slice(trace, 0, "slice", 100 + i, 101 + i, NULL, 0, &error);
    CHECK_INT(result, VP_ERR_CAPACITY);
    CHECK(strstr(error.text, "limit in bytes") != NULL);
    vp_trace_info info;
    CHECK_INT(vp_trace_close(trace, &info, NULL), VP_OK);
    CHECK(info.truncated && text_bytes <= 4096 && text_bytes > 3000);
    CHECK_INT(vp_json_parse(text, text_bytes, NULL, 0, NULL, NULL, NULL), VP_ERR_CAPACITY);
    vp_trace_free(trace);
}
static void test_failures(void) {
    vp_error error = {VP_OK, -1, "", ""};
    check_case("no memory and a failed write are permanent");
    vp_trace *trace = open_trace();
    memory_left = 0;
    CHECK_INT(vp_trace_slice(trace, 0, "x", 1, 2, NULL, 0, &error), VP_ERR_MEMORY);
    memory_left = INT32_MAX;
    CHECK_INT(vp_trace_close(trace, NULL, NULL), VP_ERR_MEMORY);
    vp_trace_free(trace);
    trace = open_trace();
    text_limit = 10;
    CHECK_INT(vp_trace_close(trace, NULL, &error), VP_ERR_WRITE);
    CHECK(error.code == VP_ERR_WRITE && error.text[0]);
    text_limit = TEXT;
    vp_trace_free(trace);
    vp_trace_free(NULL);
    check_case("an incomplete file is removed, but never a link");
    for (int is_link = 0; is_link < 2; is_link++) {
        struct stat found;
        if (is_link) CHECK_INT(symlink("slices-file.json", in_folder("slices.json")), 0);
        CHECK_INT(vp_trace_open(in_folder("slices.json"), NULL, NULL, &trace, NULL), VP_OK);
        vp_trace_free(trace); /* not closed */
        CHECK_INT(lstat(in_folder("slices.json"), &found), is_link ? 0 : -1);
    }
    check_case("marks that a clock lost are an error, after the others are written");
    vp_stage_mark mark = {"a", 1, 2, SIZE_MAX};
    vp_stage_clock clock = vp_stage_clock_over(&mark, 1);
    clock.count = clock.lost = 1;
    trace = open_trace();
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_ERR_CAPACITY);
    CHECK(strstr(error.text, "lost marks") != NULL);
    CHECK_INT(vp_trace_close(trace, NULL, NULL), VP_OK);
    CHECK(strstr(text, "\"name\": \"a\"") != NULL);
    vp_trace_free(trace);
}

int main(void) {
    if (!folder_make("slices")) return 1;
    RUN_TESTS(test_random, test_live, test_text, test_refusals, test_failures);
    remove_folder(folder);
    return check_done("test_slices");
}
