/* test_metrics.c: the numbers of a pass from made-up time stamps: each stage has another power of two, so a sum tells which stages are in it. */
#include "base/metrics.h"
#include "support/check.h"

enum { MS = 1000000 };
/* stage i: 2^i ms on the device, 1000 + i ms on the host */
static struct pass_result *made(int32_t count) {
    struct pass_result *runs = runs_make(count, 5);
    for (int32_t k = 0; k < count; k++) {
        runs[k].total_ns = INT64_C(4000) * MS * (k + 1);
        runs[k].token_count = 4;
        for (int i = 0; i < 5; i++) runs[k].step_ns[i] = (i + 1) * 10 * MS;
        for (int i = 0; i < VP_STAGE_COUNT; i++) {
            runs[k].times.ran[i] = 1;
            runs[k].times.device_ns[i] = (INT64_C(1) << i) * MS;
            runs[k].times.wall_ns[i] = (INT64_C(1000) + i) * MS;
            runs[k].times.launches[i] = 100 + i;
            runs[k].times.flops[i] = 200 + i;
            runs[k].times.bytes[i] = 300 + i;
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
    check_case("each metric holds its own stages");
    CHECK(is_host_stage(VP_STAGE_PREPROCESS) && is_host_stage(VP_STAGE_DETOK) && !is_host_stage(VP_STAGE_H2D) && !is_host_stage(VP_STAGE_DECODE));
    CHECK_NEAR(metric_of(run, METRIC_VISION), power(VP_STAGE_VIT, VP_STAGE_CONNECTOR), 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_VISION), 4 + 8, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_PREFILL), 16 + 32 + 64 + 128, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 10 + 20 + 30, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_PER_TOKEN), 20, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_TOTAL), 4000, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_TTFT), power(0, VP_STAGE_SAMPLE), 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_UNACCOUNTED), 4000 - sum, 1e-9);
    CHECK_NEAR(metric_of(run, METRIC_CLOSURE), sum / 4000, 1e-12);
    check_case("each detail of each stage has an index of its own");
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
    check_case("keys of metrics and details");
    CHECK_TEXT(METRIC_KEYS[METRIC_UNACCOUNTED], "unaccounted");
    CHECK_TEXT(METRIC_KEYS[METRIC_TTFT], "TTFT");
    CHECK_TEXT(DETAIL_KEYS[DETAIL_BYTES], "bytes");
    runs_free(run, 1);
    runs_free(NULL, 3);
}
static void test_missing(void) {
    struct pass_result *run = made(1);
    check_case("a stage that did not run has no number and adds nothing");
    run->times.ran[VP_STAGE_VIT] = 0;
    CHECK(isnan(metric_of(run, METRIC_VISION)) && isnan(metric_of(run, stage_metric(VP_STAGE_VIT, 0))));
    CHECK_NEAR(metric_of(run, METRIC_TTFT), power(0, VP_STAGE_SAMPLE) - 4, 1e-9);
    run->times.ran[VP_STAGE_HEAD] = 0;
    CHECK_NEAR(metric_of(run, METRIC_PREFILL), 16 + 32 + 128, 1e-9);
    run->token_count = 1;
    CHECK(isnan(metric_of(run, METRIC_PER_TOKEN)));
    CHECK_NEAR(metric_of(run, METRIC_DECODE), 0, 0);
    run->token_count = 2;
    CHECK_NEAR(metric_of(run, METRIC_PER_TOKEN), 10, 1e-9);
    run->times.ran[VP_STAGE_PREFILL] = 0; /* no stage was timed: the total alone is known */
    for (int metric = 0; metric < stage_metric(0, DETAIL_COUNT); metric++) CHECK(isnan(metric_of(run, metric)) == (metric != METRIC_TOTAL));
    runs_free(run, 1);
}
static void test_many(void) {
    struct pass_result *runs = made(3);
    double few[] = {5}, eight[] = {8, 3, 1, 7, 5, 2, 6, 4}, none[] = {(double)NAN, 1};
    vp_estimate middle;
    check_case("means over runs: none where one lacks the number");
    CHECK_NEAR(metric_mean(runs, 3, METRIC_TOTAL), 8000, 1e-9);
    CHECK_NEAR(metric_mean(runs, 1, METRIC_TOTAL), 4000, 1e-9);
    runs[1].times.ran[VP_STAGE_PREFILL] = 0;
    CHECK(isnan(metric_mean(runs, 3, METRIC_DECODE)));
    CHECK_NEAR(metric_mean(runs, 1, METRIC_DECODE), 60, 1e-9);
    runs_free(runs, 3);
    check_case("a median and its interval, each where the values are enough");
    middle = median_of(few, 1);
    CHECK(middle.value == 5 && isnan(middle.low) && isnan(middle.high));
    middle = median_of(eight, 8); /* from the smallest to the largest: 99.2 %; one less at each end: 93 % */
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

int main(void) {
    test_metric();
    test_missing();
    test_many();
    return check_done("test_metrics");
}
