/* test_result_gather.c: a journal's points as lists of numbers: the counted runs, the pairs, the spread between times of equal work, and a journal whose
 * lines cannot be read back. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "sweep/result_gather.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/lines.h"
#include "support/room.h"
#include <fcntl.h>

#define HEAD "{\"schema\": \"vlmprof-journal-2\", \"plan\": \"abc\", \"rank\": 0, \"world_size\": 1, \"model\": \"tiny\", \"synthetic\": true, " \
    "\"timing\": \"stage\", \"ignore_eos\": true, \"num_runs_per_sample\": 2, \"num_total_blocks\": 6, \"bare_every\": 1, \"options\": {}, " \
    "\"data\": [{\"task\": \"first\", \"path\": \"a.jsonl\", \"metric\": \"vqa_seed\", \"content_hash\": \"77\", \"max_new_tokens\": 8, \"num_samples\": 20}], " \
    "\"configs\": [{\"file_name\": \"x_imgsize\", \"set\": 0, \"tier\": \"low\", \"target_vision_tokens\": null, \"max_crops\": 3, \"top_k\": 1, " \
    "\"num_active_blocks\": 3, \"active_block_indices\": [0, 2, 5]}]}\n"
#define SESSION "{\"session\": {\"version\": \"0\", \"build\": \"b\", \"host\": \"h\", \"date\": \"d\", \"device\": \"cpu\", " \
    "\"seed\": 1, \"argv\": [], \"stamp_cost_ns\": 3, \"cold\": {}}}\n"
#define TIERS_IN "\"sizes\": {\"tier\": \"low\", \"target_vision_tokens\": 432, \"target_crops\": 2, \"top_k\": 1, \"num_active_blocks\": 3, " \
    "\"theoretical_num_crops\": 2, \"theoretical_tiling\": [1, 2], \"theoretical_image_size\": [336, 560], \"theoretical_vision_tokens\": 432, " \
    "\"actual_num_crops\": 2, \"actual_tiling\": [1, 2], \"actual_image_size\": [336, 560], \"actual_vision_tokens\": 384, " \
    "\"input_text_tokens\": 3, \"actual_text_tokens\": 3, \"total_sequence_length\": 387}"

static struct journal_index book;
static void fresh(void) {
    lines.bytes = 0;
    add(HEAD);
}
static int read_book(void) {
    index_free(&book);
    write_text(in_folder("journal.jsonl"), lines.data);
    CHECK_INT(HEARD(index_read(&book, in_folder("journal.jsonl"), open(in_folder("journal.jsonl"), O_RDONLY), 1)), 0);
    return CHECK_TEXT(room_said, "") && CHECK_INT(index_sort(&book), 0);
}
/* appends a line of a point; returns its offset */
static long long add_line(int id, long long before, const char *format, ...) {
    char members[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(members, sizeof members, format, list);
    va_end(list);
    return add("{\"config\": \"x_imgsize\", \"sample_id\": %d, %s, \"prev\": %lld}\n", id, members, before);
}
static long long add_run(int id, long long before, int run, long long session, long long total_ns, const char *throttled) {
    return add_line(id, before,
                    "\"run\": %d, \"session\": %lld, \"unix_s\": %d, \"total_ns\": %lld, \"stamps\": 22, \"stages\": {\"vit\": [1000000, 1000000, 1, 500, 1], "
                    "\"decode\": [5000000, 5000000, 1, 1, 1]}, \"step_ns\": [2000000, 3000000], \"tokens\": [1, 2, 3], \"answer\": \"%s\", "
                    "\"ended_by_eos\": false, \"throttled\": %s, \"telemetry\": null",
                    run, session, 1000 + id * 10 + run, total_ns, id % 4 ? "a cat" : "", throttled);
}
static void add_sample(int id) {
    add("{\"sample\": %d, \"set\": 0, \"prompt\": \"p\", \"input_text_tokens\": 3, \"metadata\": {\"question\": \"What?\", \"answers\": [\"a cat\"], "
        "\"image_id\": null, \"id\": null}}\n", id);
}
/* a sample with two runs and a pair of runs, without and with stage times */
static void add_point(int id, long long session, long long first_ns, long long second_ns, long long bare_ns, long long staged_ns) {
    long long at;
    add_sample(id);
    at = add_run(id, -1, 0, session, first_ns, "false");
    at = add_run(id, at, 1, session, second_ns, id == 3 ? "true" : "false");
    if (bare_ns)
        at = add_line(id, at, "\"bare\": {\"bare_total_ns\": %lld, \"staged_total_ns\": %lld, \"bare_first\": true}, \"session\": %lld", bare_ns, staged_ns, session);
    add_line(id, at, "\"done\": 2, \"stop\": \"%s\", \"retries\": 1, " TIERS_IN, id % 2 ? "runs" : "box");
}
static int by_number(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }
static double middle_of(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_number);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
/* the spread that vlmprof_noise.h defines */
static double spread_of(double *ratios, int count) {
    double middle = middle_of(ratios, count);
    for (int i = 0; i < count; i++) ratios[i] = fabs(ratios[i] - middle);
    return 1.4826 * middle_of(ratios, count) / sqrt(2.0);
}
static void check_list(const struct gathered *gathered, int list, size_t count, double first, double last) {
    const struct number_list *numbers = &gathered->lists[list];
    if (!CHECK_INT(numbers->count, count) || !count) return;
    CHECK_NEAR(numbers->values[0], first, 1e-12 * fabs(first));
    CHECK_NEAR(numbers->values[count - 1], last, 1e-12 * fabs(last));
}

enum { POINTS = 13 };
static void test_points(void) {
    struct gathered gathered = {0};
    double bare[POINTS], repeats[POINTS];
    long long session;
    fresh();
    session = add(SESSION);
    for (int i = 0; i < POINTS; i++) { /* the machine slows down over time, so only times within a pair are alike */
        const long long first_ns = 10000000 + 1000000 * i, second_ns = first_ns + 10000 * (i * 7 % 13), bare_ns = 20000000 + 3000000 * i,
                        staged_ns = bare_ns + 50000 * (i * 5 % 13);
        bare[i] = log((double)staged_ns / (double)bare_ns);
        repeats[i] = log((double)second_ns / (double)first_ns);
        add_point(i, session, first_ns, second_ns, bare_ns, staged_ns);
    }
    add_sample(15);
    add_line(15, -1, "\"failed\": \"why\", \"attempts\": 3, \"retries\": 2, " TIERS_IN);
    add_sample(16);
    add_run(16, -1, 0, session, 5000000, "false"); /* this point is open, so it is not gathered */
    check_case("completed points are counted, the others are missing");
    if (!read_book() || !CHECK_INT(gather_configuration(&book, &book.configurations[0], &gathered), 0)) return;
    CHECK_INT(gathered.ok_count, POINTS);
    CHECK_INT(gathered.failed_count, 1);
    CHECK_INT(gathered.missing_count, 20 - POINTS - 1);
    CHECK_INT(gathered.run_count, 2 * POINTS);
    CHECK_INT(gathered.retry_count, POINTS + 2);
    CHECK_INT(gathered.throttled_count, 1);
    CHECK_INT(gathered.empty_count, 4); /* samples 0, 4, 8, 12 */
    CHECK_INT(gathered.truncated_count, 0); /* 0, because EOS was ignored */
    CHECK_INT(gathered.first_s, 1000);
    CHECK_INT(gathered.last_s, 1000 + (POINTS - 1) * 10 + 1);
    CHECK(gathered.session_count == 1 && gathered.sessions[0].at == session && gathered_session(&gathered, 0, session) == 0);
    CHECK_INT(gathered_session(&gathered, 0, session + 1), 1);
    for (int i = 0; i <= STOP_LAST_; i++)
        CHECK_INT(gathered.stops[i], !strcmp(stop_name(i), "runs") ? POINTS / 2 : !strcmp(stop_name(i), "box") ? POINTS - POINTS / 2 : 0);
    check_case("layouts, tokens and rates, one per point; steps, one per run");
    check_list(&gathered, LIST_TARGET, POINTS + 1, 432, 432);
    check_list(&gathered, LIST_ACTUAL, POINTS + 1, 384, 384);
    check_list(&gathered, LIST_DIFF, POINTS + 1, 48, 48);
    check_list(&gathered, LIST_CROPS, POINTS + 1, 2, 2);
    check_list(&gathered, LIST_TILING, POINTS + 1, 65536 + 2, 65536 + 2);
    check_list(&gathered, LIST_HEIGHT, POINTS + 1, 336, 336);
    check_list(&gathered, LIST_WIDTH, POINTS + 1, 560, 560);
    check_list(&gathered, LIST_TOKENS, POINTS + 1, 432, 432);
    check_list(&gathered, LIST_OUTPUT, POINTS, 3, 3);
    check_list(&gathered, LIST_STAMPS, POINTS, 22, 22);
    check_list(&gathered, LIST_STEP, 2 * 2 * POINTS, 2, 3);
    check_list(&gathered, LIST_STEP_AT, 2 * 2 * POINTS, 1, 2);
    check_list(&gathered, LIST_OUTPUT_RATE, POINTS, 1e3 * 3 / 10, 1e3 * 3 / (22 + 0.01 * (12 * 7 % 13) / 2));
    check_case("pairs of runs without and with stage times, and the spread of their ratios");
    check_list(&gathered, LIST_BARE, POINTS, 20, 56);
    check_list(&gathered, LIST_STAGED, POINTS, 20, 56 + 0.05 * (12 * 5 % 13));
    CHECK_INT(gathered.noise.bare_pair_count, POINTS);
    CHECK_NEAR(gathered.noise.bare_spread, spread_of(bare, POINTS), 1e-12);
    check_case("runs of one request show the spread of its times");
    CHECK_INT(gathered.noise.pair_count, POINTS);
    CHECK_NEAR(gathered.noise.spread, spread_of(repeats, POINTS), 1e-12);
    check_case("runs of equal work are neighbours, except across sessions");
    CHECK_INT(gathered.lists[LIST_NEIGHBOURS].count, POINTS - 1);
    gathered_free(&gathered);
    memset(&gathered, 0, sizeof gathered);
    fresh();
    for (int i = 0; i < 3; i++) {
        if (i != 1) session = add(SESSION);
        add_point(i, session, 10000000, 11000000, 0, 0);
    }
    if (read_book()) CHECK_INT(gather_configuration(&book, &book.configurations[0], &gathered), 0);
    CHECK_INT(gathered.lists[LIST_NEIGHBOURS].count, 1);
    gathered_free(&gathered);
}
/* index_read saw whole lines; then the file was changed */
static void test_changed(void) {
    static const char *const words[] = {"\"done\"", "\"run\": 1", "{\"sample\": 2,"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct gathered gathered = {0};
        check_case("a point's line that can no longer be read is an error: %s", words[i]);
        fresh();
        for (int k = 0; k < 3; k++) add_point(k, -1, 10000000, 11000000, 0, 0);
        if (!read_book()) return;
        char *at = strstr(strstr(lines.data, "\"sample\": 2"), words[i]);
        if (!at) at = strstr(lines.data, words[i]);
        int fd = open(in_folder("journal.jsonl"), O_WRONLY);
        CHECK(pwrite(fd, "\"\"\"", 3, (off_t)(at - lines.data)) == 3);
        close(fd);
        FAILS(gather_configuration(&book, &book.configurations[0], &gathered), EXIT_INPUT, "journal.jsonl cannot be read back at byte ");
        CHECK_INT(gathered.ok_count, 2);
        gathered_free(&gathered);
    }
}

int main(void) {
    if (!folder_make("result_gather")) return 1;
    test_points();
    test_changed();
    index_free(&book);
    free(lines.data);
    return room_end("test_result_gather");
}
