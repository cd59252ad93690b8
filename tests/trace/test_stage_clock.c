/* test_stage_clock.c: stage marks on the test's clock: times, nesting, unaccounted time, no room for marks. The companions use the program's own allocation
 * functions and free everything. */
#include <stdint.h>
#include <stdlib.h>
static int64_t made_up_ns;
static int blocks_held, asked;
static void *count_malloc(size_t bytes) { blocks_held++; asked++; return malloc(bytes); }
static void *count_calloc(size_t count, size_t bytes) { blocks_held++; asked++; return calloc(count, bytes); }
static void *count_realloc(void *memory, size_t bytes) { blocks_held += !memory; asked++; return realloc(memory, bytes); }
static void count_free(void *memory) { blocks_held -= memory != NULL; free(memory); }
#define VP_MALLOC(bytes) count_malloc(bytes)
#define VP_CALLOC(count, bytes) count_calloc(count, bytes)
#define VP_REALLOC(memory, bytes) count_realloc(memory, bytes)
#define VP_FREE(memory) count_free(memory)
#define VLMPROF_CLOCK_NS made_up_ns
#define VLMPROF_STATIC
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_tokenizer.c"
#include "support/check.h"

enum { ROOM = 32 };
/* one request: 5 ns before the vision encoder, 100 in it, 7 after it, 40 of prefill with 30 of attention inside, 3 at the end */
static void request(vp_stage_clock *clock, int64_t vision_ns) {
    vp_stage_begin(clock, "request");
    made_up_ns += 5;
    vp_stage_begin(clock, "vision");
    made_up_ns += vision_ns;
    vp_stage_end(clock);
    made_up_ns += 7;
    vp_stage_begin(clock, "prefill");
    made_up_ns += 6;
    vp_stage_begin(clock, "attention");
    made_up_ns += 30;
    vp_stage_end(clock);
    made_up_ns += 4;
    vp_stage_end(clock);
    made_up_ns += 3;
    vp_stage_end(clock);
}
static void test_marks(void) {
    vp_stage_mark marks[ROOM];
    vp_stage_clock clock = vp_stage_clock_over(marks, ROOM);
    double scratch[ROOM];
    vp_statistics statistics;
    check_case("stages: statistics of each name, in nanoseconds");
    made_up_ns = 1000;
    request(&clock, 100);
    request(&clock, 300);
    CHECK_INT(clock.count, 8);
    CHECK_INT(vp_stage_statistics(&clock, "vision", scratch, &statistics), VP_OK);
    CHECK(statistics.count == 2 && statistics.mean == 200 && statistics.min == 100 && statistics.max == 300 && statistics.p50 == 200);
    CHECK_INT(vp_stage_statistics(&clock, "request", scratch, &statistics), VP_OK);
    CHECK(statistics.count == 2 && statistics.min == 155 && statistics.max == 355);
    CHECK_INT(vp_stage_statistics(&clock, "attention", scratch, &statistics), VP_OK);
    CHECK(statistics.mean == 30 && statistics.std == 0);
    check_case("stages: nesting");
    CHECK(marks[0].inside == SIZE_MAX && marks[1].inside == 0 && marks[2].inside == 0 && marks[3].inside == 2 && marks[4].inside == SIZE_MAX);
}
static void test_refusals(void) {
    vp_stage_mark marks[3];
    vp_stage_clock clock = vp_stage_clock_over(marks, 3);
    vp_statistics statistics, poison;
    double scratch[3];
    memset(&poison, 0xA5, sizeof poison);
    statistics = poison;
    check_case("stages: nothing is open, nothing has ended, unknown name");
    CHECK_INT(vp_stage_end(&clock), VP_ERR_STATE);
    CHECK_INT(vp_stage_statistics(&clock, "vision", scratch, &statistics), VP_ERR_NOT_FOUND);
    vp_stage_begin(&clock, "vision");
    CHECK_INT(vp_stage_statistics(&clock, "vision", scratch, &statistics), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_stage_end(&clock), VP_OK);
    CHECK_INT(vp_stage_statistics(&clock, "prefill", scratch, &statistics), VP_ERR_NOT_FOUND);
    CHECK(memcmp(&statistics, &poison, sizeof poison) == 0);
    CHECK_INT(vp_stage_end(&clock), VP_ERR_STATE);
    check_case("stages: a mark without room is counted, and its end does not end another mark");
    request(&clock, 10); /* request and vision have room, prefill and attention do not */
    CHECK(clock.count == 3 && clock.lost == 2 && clock.lost_open == 0 && clock.open == SIZE_MAX);
    CHECK_INT(marks[1].end_ns - marks[1].begin_ns, 65);
    CHECK_INT(marks[2].end_ns - marks[2].begin_ns, 10);
    CHECK_INT(vp_stage_statistics(&clock, "vision", scratch, &statistics), VP_ERR_CAPACITY);
    CHECK(memcmp(&statistics, &poison, sizeof poison) == 0);
    check_case("stages: a mark without a name is lost with those inside it; a clock over NULL has room for none");
    clock = vp_stage_clock_over(marks, 3);
    vp_stage_begin(&clock, NULL);
    vp_stage_begin(&clock, "vision");
    CHECK(clock.count == 0 && clock.lost == 2 && clock.lost_open == 2);
    CHECK_INT(vp_stage_end(&clock), VP_OK);
    CHECK_INT(vp_stage_end(&clock), VP_OK);
    CHECK_INT(vp_stage_statistics(&clock, "vision", scratch, &statistics), VP_ERR_CAPACITY);
    clock = vp_stage_clock_over(NULL, 5);
    request(&clock, 10);
    CHECK(clock.count == 0 && clock.lost == 4 && clock.lost_open == 0);
}
/* Stages whose times come from a device, and each way in which they can be wrong. A request is open from 100; at 200, stages are added. */
static void test_added(void) {
    static const struct { int64_t begin_ns, end_ns; vp_result result; } rows[] = {
        {110, 150, VP_OK}, {160, 170, VP_OK}, {150, 160, VP_OK} /* between the two */, {170, 170, VP_OK}, {149, 151, VP_ERR_RANGE}, {115, 120, VP_ERR_RANGE},
        {105, 180, VP_ERR_RANGE}, {99, 105, VP_ERR_RANGE} /* before the request */, {180, 201, VP_ERR_RANGE} /* in the future */, {190, 185, VP_ERR_RANGE},
        {-5, -1, VP_ERR_RANGE}, {100, 110, VP_OK}, {180, 200, VP_OK}};
    vp_stage_mark marks[ROOM];
    vp_stage_clock clock = vp_stage_clock_over(marks, ROOM);
    double scratch[ROOM];
    vp_statistics statistics;
    check_case("stages with given times");
    made_up_ns = 100;
    clock.thread = 3;
    vp_stage_begin(&clock, "request");
    made_up_ns = 200;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_note(vp_stage_add(&clock, "device", rows[i].begin_ns, rows[i].end_ns) == rows[i].result, __FILE__, __LINE__, "row %d", (int)i);
    CHECK_INT(vp_stage_reset(&clock), VP_ERR_STATE);
    CHECK_INT(vp_stage_add(&clock, NULL, 200, 200), VP_ERR_CAPACITY);
    CHECK_INT(clock.lost, 1);
    clock.lost = 0;
    made_up_ns = 230;
    vp_stage_end(&clock);
    CHECK_INT(vp_stage_statistics(&clock, "device", scratch, &statistics), VP_OK);
    CHECK(statistics.count == 6 && statistics.max == 40 && statistics.min == 0);
    CHECK_INT(vp_stage_add(&clock, "device", 229, 230), VP_ERR_RANGE); /* nothing is open: it overlaps the request */
    CHECK_INT(vp_stage_add(&clock, "device", 230, 230), VP_OK);
    CHECK_INT(vp_stage_reset(&clock), VP_OK);
    CHECK(clock.count == 0 && clock.thread == 3);
    CHECK_INT(vp_stage_add(&clock, "device", 110, 120), VP_OK);
    clock = vp_stage_clock_over(marks, 1);
    CHECK_INT(vp_stage_add(&clock, "a", 1, 2), VP_OK);
    CHECK_INT(vp_stage_add(&clock, "b", 2, 3), VP_ERR_CAPACITY);
    CHECK_INT(clock.lost, 1);
}
static void test_memory(void) {
    char *text = NULL;
    size_t bytes = 0;
    vp_image image;
    vp_tokenizer *tokenizer = NULL;
    check_case("memory: only the program's own functions are used, and everything is freed");
    CHECK_INT(vp_file_read("samples/sign.png", SIZE_MAX, &text, &bytes, NULL), VP_OK);
    CHECK_INT(blocks_held, 1);
    if (text && vp_image_decode((const uint8_t *)text, bytes, &image, NULL) == VP_OK) vp_image_free(&image);
    VP_FREE(text);
    CHECK_INT(blocks_held, 0);
    CHECK_INT(vp_file_read("tests/golden/tokenizer/small-tokenizer.json", SIZE_MAX, &text, &bytes, NULL), VP_OK);
    CHECK_INT(vp_tokenizer_load(text, bytes, &tokenizer, NULL), VP_OK);
    VP_FREE(text);
    CHECK(blocks_held > 3);
    vp_tokenizer_free(tokenizer);
    CHECK_INT(blocks_held, 0);
    CHECK(asked > 10);
}

int main(void) {
    RUN_TESTS(test_marks, test_refusals, test_added, test_memory);
    return check_done("test_stage_clock");
}
