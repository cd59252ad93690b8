/* test_metrics.c: the numbers of a pass from synthetic time stamps: each stage is a different power of two, so a sum shows its stages. */
#include "results/metrics.h"
#include "support/check.h"

enum { MS = 1000000 };
/* stage i: 2^i ms on the device, 1000 + i ms on the host */
static struct pass_result *made(int32_t count) {
    struct pass_result *runs = runs_make(count, 5);
    for (int32_t k = 0; k < count; k++) {
        runs[k].total_ns = INT64_C(4000) * MS * (k + 1);
        runs[k].reply.token_count = 4;
        for (int i = 0; i < 5; i++) runs[k].reply.step_ns[i] = (i + 1) * 10 * MS;
        for (int i = 0; i < VP_STAGE_COUNT; i++) {
            runs[k].reply.times.ran[i] = 1;
            runs[k].reply.times.device_ns[i] = (INT64_C(1) << i) * MS;
            runs[k].reply.times.wall_ns[i] = (INT64_C(1000) + i) * MS;
            runs[k].reply.times.launches[i] = 100 + i;
            runs[k].reply.times.flops[i] = 200 + i;
            runs[k].reply.times.bytes[i] = 300 + i;
        }
    }
    return runs;
}
static double power(int first, int last) {
    double sum = 0;
    for (int i = first; i <= last; i++) sum += is_host_stage(i) ? 1000 + i : pow(2, i);
    return sum;
}
static void test_metric(void) {
    struct pass_result *run = made(1);
    double sum = power(0, VP_STAGE_COUNT - 1);
    check_case("each metric is the sum of its own stages");
    CHECK(is_host_stage(VP_STAGE_PREPROCESS) && is_host_stage(VP_STAGE_DETOK) && !is_host_stage(VP_STAGE_H2D) && !is_host_stage(VP_STAGE_DECODE));
    CHECK_NEAR(metric_of(run, METRIC_VISION), power(VP_STAGE_VIT, VP_STAGE_CONNECTOR), 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_VISION), 4 + 8, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_PREFILL), 32 + 64 + 128 + 256, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 10 + 20 + 30, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_PER_TOKEN), 20, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_TOTAL), 4000, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_TTFT), power(0, VP_STAGE_SAMPLE), 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_UNACCOUNTED), 4000 - sum, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_CLOSURE), sum / 4000, 1e-12);
    check_case("each detail of each stage has its own index");
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        int host = is_host_stage(i);
        CHECK_INT(stage_metric(i, 0), METRIC_STAGE + i);
        CHECK_NEAR(metric_of(run, stage_metric(i, 0)), host ? 1000 + i : pow(2, i), 1e-9);
        CHECK_NEAR(metric_of(run, stage_metric(i, DETAIL_WALL)), 1000 + i, 1e-9);
        for (int detail = DETAIL_DEVICE; detail < DETAIL_COUNT; detail++) {
            double value = metric_of(run, stage_metric(i, detail));
            if (host) CHECK(isnan(value));
            else CHECK_NEAR(value, detail == DETAIL_DEVICE ? pow(2, i) : (detail - 2) * 100 + i, 1e-9);
        }
    }
    check_case("rates: of decode steps, and of the whole request");
    CHECK_NEAR(decode_rate_of(run), 1000 / 20.0, 1e-9);
    CHECK_NEAR(output_rate_of(run), 4 / 4.0, 1e-12);
    check_case("keys of metrics and details, and their meanings");
    for (int i = 0; i < TERM_COUNT; i++) {
        CHECK(TERMS[i].unit && *TERMS[i].meaning);
        if (i < METRIC_STAGE) CHECK_TEXT(TERMS[i].key, METRIC_KEYS[i]);
        for (int k = 0; k < i; k++) CHECK(strcmp(TERMS[i].key, TERMS[k].key) != 0);
    }
    CHECK(strstr(TERMS[TERM_STEP].meaning, "ITL") && strstr(TERMS[METRIC_PER_TOKEN].meaning, "TPOT") && strstr(TERMS[METRIC_TOTAL].meaning, "E2E"));
    CHECK_TEXT(TERMS[TERM_DECODE_RATE].key, "decode_tokens_per_s");
    CHECK_TEXT(TERMS[TERM_OUTPUT_RATE].key, "output_tokens_per_s");
    CHECK_TEXT(METRIC_KEYS[METRIC_UNACCOUNTED], "unaccounted");
    CHECK_TEXT(METRIC_KEYS[METRIC_TTFT], "TTFT");
    CHECK_TEXT(DETAIL_KEYS[DETAIL_BYTES], "bytes");
    runs_free(run, 1);
    runs_free(NULL, 3);
}
static void test_missing(void) {
    struct pass_result *run = made(1);
    check_case("a stage that did not run has no number and adds nothing");
    run->reply.times.ran[VP_STAGE_VIT] = 0;
    CHECK(isnan(metric_of(run, METRIC_VISION)) && isnan(metric_of(run, stage_metric(VP_STAGE_VIT, 0))));
    CHECK_NEAR(metric_of(run, METRIC_TTFT), power(0, VP_STAGE_SAMPLE) - 4, 1e-9);
    run->reply.times.ran[VP_STAGE_HEAD] = 0;
    CHECK_NEAR(metric_of(run, METRIC_PREFILL), 32 + 64 + 256, 1e-9);
    run->reply.token_count = 1;
    CHECK(isnan(metric_of(run, METRIC_PER_TOKEN)) && isnan(decode_rate_of(run)));
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 0, 0);
    run->reply.token_count = 2;
    CHECK_NEAR(metric_of(run, METRIC_PER_TOKEN), 10, 1e-9);
    run->reply.times.ran[VP_STAGE_PREFILL] = 0; /* no stage was timed, so only the total is known */
    for (int metric = 0; metric < stage_metric(0, DETAIL_COUNT); metric++) CHECK(isnan(metric_of(run, metric)) == (metric != METRIC_TOTAL));
    runs_free(run, 1);
}
static void test_many(void) {
    struct pass_result *runs = made(3);
    double few[] = {5}, eight[] = {8, 3, 1, 7, 5, 2, 6, 4}, none[] = {(double)NAN, 1};
    check_case("means over runs: none if a run lacks the number");
    CHECK_NEAR(metric_mean(runs, 3, METRIC_TOTAL), 8000, 1e-9);
    CHECK_NEAR(metric_mean(runs, 1, METRIC_TOTAL), 4000, 1e-9);
    runs[1].reply.times.ran[VP_STAGE_PREFILL] = 0;
    CHECK(isnan(metric_mean(runs, 3, METRIC_DECODE)));
    CHECK_NEAR(metric_mean(runs, 1, METRIC_DECODE), 60, 1e-9);
    runs_free(runs, 3);
    check_case("a median and its interval, each if there are enough values");
    vp_estimate middle = median_of(few, 1);
    CHECK(middle.value == 5 && isnan(middle.low) && isnan(middle.high));
    middle = median_of(eight, 8); /* from the smallest to the largest: 99.2 %; without the outermost two: 93 % */
    CHECK_NEAR(middle.value, 4.5, 0);
    CHECK(middle.low == 1 && middle.high == 8);
    for (int i = 0; i < 8; i++) CHECK_NEAR(eight[i], i + 1, 0);
    middle = median_of(eight, 0);
    CHECK(isnan(middle.value) && isnan(middle.low) && isnan(middle.high));
    middle = median_of(none, 2);
    CHECK(isnan(middle.value));
    middle = estimate_none();
    CHECK(isnan(middle.value) && isnan(middle.low) && isnan(middle.high));
}
/* Levels of the range from smallest to largest: 1 - 2 / 2^n; from the second smallest: 1 - 2 (1 + n) / 2^n. */
#define RANGE(ends, count, level) ends " of " #count " runs contains the median with " level " % confidence"
static void test_ranges(void) {
    static const struct { size_t count, low; double level; const char *words; } cases[] = {
        {1, 0, 0, ""}, {2, 0, 0, ""}, {3, 1, 0.75, RANGE("[min, max]", 3, "75")}, {4, 1, 0.875, RANGE("[min, max]", 4, "87.5")},
        {5, 1, 0.9375, RANGE("[min, max]", 5, "93.8")}, {6, 1, 0.96875, RANGE("[low, high]", 6, "96.9")}, {8, 1, 0.9921875, RANGE("[low, high]", 8, "99.2")},
        {9, 2, 1 - 20 / 512.0, RANGE("[low, high]", 9, "96.1")}};
    double values[16];
    char words[RANGE_WORDS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("the range of the median of %zu values", cases[i].count);
        for (size_t k = 0; k < cases[i].count; k++) values[k] = (double)(cases[i].count - k);
        struct median_range range = median_range_of(values, cases[i].count);
        CHECK_NEAR(range.median, 0.5 * (double)(cases[i].count + 1), 0);
        if (cases[i].low) {
            CHECK_NEAR(range.low, (double)cases[i].low, 0);
            CHECK_NEAR(range.high, (double)(cases[i].count + 1 - cases[i].low), 0);
            CHECK_NEAR(range.level, cases[i].level, 1e-12);
        } else CHECK(isnan(range.low) && isnan(range.high) && isnan(range.level));
        CHECK_TEXT(range_words(cases[i].count, "runs", range.level, words), cases[i].words);
    }
    values[0] = (double)NAN;
    CHECK(isnan(median_range_of(values, 3).median) && isnan(median_range_of(values, 3).level) && isnan(median_range_of(values, 0).median));
}

/* 250 ms to the first part, then parts 10, 40 and 50 ms apart; `tokens` as reported by the server */
static struct pass_result *answered(int64_t tokens, size_t pieces) {
    static const int64_t at_ms[] = {250, 260, 300, 350};
    struct pass_result *run = runs_make(1, 0);
    struct served *served = calloc(1, sizeof *served);
    run->served = served;
    served->pieces = calloc(4, sizeof *served->pieces);
    served->piece_count = pieces;
    for (size_t i = 0; i < pieces; i++) served->pieces[i].at_ns = at_ms[i] * MS;
    served->first_ns = pieces ? at_ms[0] * MS : -1;
    served->is_streamed = 1;
    served->usage.completion_tokens = tokens;
    run->reply.token_count = tokens > 0 ? (int32_t)tokens : 0;
    run->total_ns = (pieces ? at_ms[pieces - 1] : 400) * MS;
    return run;
}
static void lacks(struct pass_result *run, int metric, const char *why) {
    const char *reason = served_lacks(run, metric);
    CHECK(isnan(metric_of(run, metric)));
    CHECK(reason && strstr(reason, why));
}
static void test_served(void) {
    struct pass_result *run = answered(11, 4);
    double gaps[3];
    check_case("a server's pass: from its stream and its own token count");
    CHECK_NEAR(metric_of(run, METRIC_TOTAL), 350, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_TTFT), 250, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 100, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_PER_TOKEN), 10, 1e-9); /* 100 ms for 10 tokens, not for 3 parts */
    CHECK_NEAR(decode_rate_of(run), 100, 1e-9);
    CHECK_NEAR(output_rate_of(run), 11 / 0.35, 1e-9);
    struct pass_result *silent = answered(0, 1), *uncounted = answered(-1, 1);
    CHECK(output_rate_of(silent) == 0 && isnan(output_rate_of(uncounted)));
    runs_free(silent, 1);
    runs_free(uncounted, 1);
    CHECK_INT(served_gaps(run->served, gaps), 3);
    CHECK(gaps[0] == 10 && gaps[1] == 40 && gaps[2] == 50);
    CHECK(!served_lacks(run, METRIC_TOTAL) && !served_lacks(run, METRIC_TTFT) && !served_lacks(run, METRIC_PER_TOKEN));
    for (int metric = 0; metric < METRIC_STAGE + VP_STAGE_COUNT; metric++)
        if (metric != METRIC_TOTAL && metric != METRIC_TTFT && metric != METRIC_DECODE && metric != METRIC_PER_TOKEN) lacks(run, metric, "only the device");
    run->served->is_streamed = 0;
    CHECK_INT(served_gaps(run->served, gaps), 0);
    for (int metric = METRIC_DECODE; metric <= METRIC_TTFT; metric++) if (metric != METRIC_TOTAL) lacks(run, metric, "single response body");
    runs_free(run, 1);
    check_case("values that a server does not report are not numbers");
    run = answered(-1, 4);
    lacks(run, METRIC_PER_TOKEN, "does not report");
    CHECK(isnan(output_rate_of(run)) && isnan(decode_rate_of(run)));
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 100, 1e-9);
    runs_free(run, 1);
    run = answered(8, 1); /* 8 tokens in one part are not 0 ms apart */
    lacks(run, METRIC_PER_TOKEN, "one piece");
    lacks(run, METRIC_DECODE, "one piece");
    CHECK_NEAR(metric_of(run, METRIC_TTFT), 250, 1e-9);
    CHECK_INT(served_gaps(run->served, gaps), 0);
    runs_free(run, 1);
    run = answered(1, 2);
    lacks(run, METRIC_PER_TOKEN, "single token");
    runs_free(run, 1);
    run = answered(0, 0);
    lacks(run, METRIC_TTFT, "empty");
    lacks(run, METRIC_DECODE, "empty");
    CHECK_NEAR(metric_of(run, METRIC_TOTAL), 400, 1e-9);
    CHECK_INT(served_gaps(run->served, gaps), 0);
    runs_free(run, 1);
    check_case("the meaning of a term for a server");
    CHECK(strstr(served_meaning(METRIC_TTFT), "first piece") && strstr(served_meaning(TERM_STEP), "piece"));
    CHECK_TEXT(served_meaning(METRIC_PER_TOKEN), TERMS[METRIC_PER_TOKEN].meaning);
}
int main(void) {
    RUN_TESTS(test_ranges, test_metric, test_missing, test_many, test_served);
    return check_done("test_metrics");
}
