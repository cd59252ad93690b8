/* test_load.c: due times of requests, objectives, percentiles and shares of correlated series, and the search for a rate. Queues follow Lindley's recursion, so the
 * true waiting times are known. */
#include "vlmprof_load.h"

#include "support/check.h"

enum { SERIES = 5000, REPEATS = 200 };

/* waiting times of a queue with one server: wait' = max(0, wait + service - gap) */
static void lindley(const double *due_s, const double *service_s, size_t count, double *wait_s) {
    wait_s[0] = 0;
    for (size_t i = 1; i < count; i++) {
        const double wait = wait_s[i - 1] + service_s[i - 1] - (due_s[i] - due_s[i - 1]);
        wait_s[i] = wait > 0 ? wait : 0;
    }
}

/* ---- due times */
static void test_arrivals(void) {
    static const struct { const char *text; double shape; } rows[] = {
        {"constant", HUGE_VAL}, {"poisson", 1}, {"gamma:0.25", 0.25}, {"gamma:1", 1}, {"gamma:7.5", 7.5}};
    vp_arrivals arrivals, again;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        const int count = 200000;
        double sum = 0, squares = 0, before = 0;
        check_case("%s: gaps are at least 0, their mean is 1 / rate, their variance is mean squared / shape", rows[row].text);
        CHECK(vp_arrivals_parse(rows[row].text, 8, 1, &arrivals) == VP_OK);
        for (int i = 0; i < count; i++) {
            const double due = vp_arrivals_next(&arrivals), gap = due - before;
            if (!(gap >= 0)) { CHECK(gap >= 0); break; }
            before = due;
            sum += gap;
            squares += gap * gap;
        }
        CHECK_NEAR(sum / count * 8, 1, 4 / sqrt(count * rows[row].shape) + 1e-9);
        CHECK_NEAR((squares / count - (sum / count) * (sum / count)) * 64, 1 / rows[row].shape, 0.05 / rows[row].shape + 1e-9);
    }
    check_case("the same seed gives the same draws, another seed does not");
    CHECK(vp_arrivals_parse("poisson", 3, 5, &arrivals) == VP_OK && vp_arrivals_parse("poisson", 3, 5, &again) == VP_OK);
    CHECK(vp_arrivals_next(&arrivals) == vp_arrivals_next(&again)); /* NOLINT: bit-identical */
    CHECK(vp_arrivals_parse("poisson", 3, 6, &again) == VP_OK);
    CHECK(vp_arrivals_next(&arrivals) != vp_arrivals_next(&again));
    check_case("invalid arrival processes are rejected");
    CHECK_INT(vp_arrivals_parse("burst", 3, 5, &arrivals), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_arrivals_parse("", 3, 5, &arrivals), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_arrivals_parse("const", 3, 5, &arrivals), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_arrivals_parse("gamma", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("gamma:", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("gamma:2x", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("poisson:2", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("gamma:0", 3, 5, &arrivals), VP_ERR_RANGE);
    CHECK_INT(vp_arrivals_parse("gamma:nan", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("gamma:1e999", 3, 5, &arrivals), VP_ERR_FORMAT);
    CHECK_INT(vp_arrivals_parse("poisson", 0, 5, &arrivals), VP_ERR_RANGE);
    CHECK_INT(vp_arrivals_parse("poisson", (double)NAN, 5, &arrivals), VP_ERR_RANGE);
}

/* ---- objectives */
static void test_slo(void) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_slo slo;
    check_case("one limit or all three, in any order");
    CHECK(vp_slo_parse("e2e:5000,ttft:500,tpot:50.5", &slo, &error) == VP_OK);
    CHECK(slo.ttft_ms == 500 && slo.tpot_ms == 50.5 && slo.e2e_ms == 5000);
    CHECK(vp_slo_parse("tpot:20", &slo, &error) == VP_OK);
    CHECK(isnan(slo.ttft_ms) && slo.tpot_ms == 20 && isnan(slo.e2e_ms));
    CHECK(isnan(slo.accuracy) && vp_slo_parse("accuracy:0.8,ttft:5", &slo, &error) == VP_OK && slo.accuracy == 0.8 && slo.ttft_ms == 5);
    CHECK(vp_slo_parse("accuracy:1", &slo, &error) == VP_OK && slo.accuracy == 1 && vp_slo_holds(&slo, 1e9, 1e9, 1e9));
    CHECK(vp_slo_parse("tpot:20", &slo, &error) == VP_OK);
    check_case("a request is good if it meets every limit, including values equal to the limit");
    CHECK(vp_slo_holds(&slo, 1e9, 20, 1e9) && !vp_slo_holds(&slo, 0, 20.001, 0));
    CHECK(!vp_slo_holds(&slo, 0, (double)NAN, 0));
    static const struct { const char *text, *where; vp_result result; } bad[] = {
        {"", "", VP_ERR_FORMAT}, {"ttft", "ttft", VP_ERR_FORMAT}, {"itl:5", "itl:5", VP_ERR_FORMAT}, {"ttft:5,", "", VP_ERR_FORMAT},
        {"ttft:5,ttft:6", "ttft:6", VP_ERR_FORMAT}, {"ttft:", "ttft:", VP_ERR_FORMAT}, {"ttft:5ms", "ttft:5ms", VP_ERR_FORMAT},
        {"ttft:0", "ttft:0", VP_ERR_RANGE}, {"e2e:-1,ttft:5", "e2e:-1", VP_ERR_RANGE}, {"ttft:inf", "ttft:inf", VP_ERR_FORMAT},
        {"ttft:nan", "ttft:nan", VP_ERR_FORMAT}, {"ttft:1,e2e", "e2e", VP_ERR_FORMAT}, {"accuracy:80", "accuracy:80", VP_ERR_RANGE},
        {"accuracy:0", "accuracy:0", VP_ERR_RANGE}, {",", "", VP_ERR_FORMAT}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_case("\"%s\" is rejected", bad[i].text);
        CHECK_INT(vp_slo_parse(bad[i].text, &slo, &error), bad[i].result);
        CHECK_TEXT(error.where, bad[i].where);
    }
}

/* ---- series */
static double draw_exponential(vp_random *random) { return -log1p(-vp_random_double(random)); }
/* waits of a queue with exponential service of mean 1 s, at a load below 1 */
static void draw_waits(vp_random *random, double load, size_t count, double *wait_s) {
    double *due_s = malloc(count * sizeof *due_s), *service_s = malloc(count * sizeof *service_s), now = 0;
    for (size_t i = 0; i < count; i++) {
        due_s[i] = now += draw_exponential(random) / load;
        service_s[i] = draw_exponential(random);
    }
    lindley(due_s, service_s, count, wait_s);
    FREE_ALL(due_s, service_s);
}
/* the quantile of waiting time in such a queue: 1 - load * exp(-(1 - load) t) = share */
static double wait_quantile(double load, double share) {
    return share <= 1 - load ? 0 : log(load / (1 - share)) / (1 - load);
}
static void test_percentiles(void) {
    static const double loads[] = {0, 0.5, 0.8}, percentiles[] = {50, 95};
    static double wait_s[SERIES], scratch[3 * SERIES];
    vp_random random;
    vp_random_seed(&random, 24);
    for (size_t l = 0; l < sizeof loads / sizeof *loads; l++)
        for (size_t p = 0; p < sizeof percentiles / sizeof *percentiles; p++) {
            int covered = 0, known = 0, naive = 0;
            const double share = percentiles[p] / 100;
            const double truth = loads[l] > 0 ? wait_quantile(loads[l], share) : -log1p(-share);
            double time = 0;
            check_case("P%.0f of the waits in a queue at %.0f %% load: its interval covers the truth", percentiles[p], 100 * loads[l]);
            for (int repeat = 0; repeat < REPEATS; repeat++) {
                vp_series_value value;
                double low = 0, high = 0;
                if (loads[l] > 0) draw_waits(&random, loads[l], SERIES, wait_s);
                else for (int i = 0; i < SERIES; i++) wait_s[i] = draw_exponential(&random);
                CHECK(vp_series_percentile(wait_s, SERIES, percentiles[p], 0.95, scratch, &value) == VP_OK);
                known += isfinite(value.low);
                covered += value.low <= truth && truth <= value.high;
                time += value.correlation_time / REPEATS;
                vp_statistics_percentile_interval(scratch, SERIES, percentiles[p], 0.95, &low, &high);
                naive += low <= truth && truth <= high;
            }
            printf("load %.1f P%.0f: %d of %d series have an interval, %.1f %% of these cover (as if independent %.1f %%), correlation time %.1f\n",
                   loads[l], percentiles[p], known, REPEATS, 100.0 * covered / known, 100.0 * naive / REPEATS, time);
            CHECK(known >= REPEATS / 2 && covered >= known * 85 / 100);
            if (loads[l] > 0.7) CHECK(naive < REPEATS * 60 / 100);
        }
    check_case("a series that is too short has a percentile but no interval; invalid series are rejected");
    {
        const double few[] = {3, 1, 2}, hole[] = {1, (double)NAN};
        vp_series_value value;
        CHECK(vp_series_percentile(few, 3, 50, 0.95, scratch, &value) == VP_OK);
        CHECK(value.value == 2 && isnan(value.low) && isnan(value.high));
        CHECK_INT(vp_series_percentile(few, 0, 50, 0.95, scratch, &value), VP_ERR_RANGE);
        CHECK_INT(vp_series_percentile(few, 3, 100, 0.95, scratch, &value), VP_ERR_RANGE);
        CHECK_INT(vp_series_percentile(hole, 2, 50, 0.95, scratch, &value), VP_ERR_RANGE);
    }
}
static void test_shares(void) {
    static double wait_s[SERIES], scratch[2 * SERIES];
    static uint8_t is_good[SERIES];
    vp_series_value share;
    vp_random random;
    vp_random_seed(&random, 25);
    for (int load = 5; load <= 8; load += 3) {
        const double limit = wait_quantile(load / 10.0, 0.9);
        int covered = 0;
        check_case("the share of short waits at %d0 %% load: its interval covers the truth, 90 %%", load);
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            draw_waits(&random, load / 10.0, SERIES, wait_s);
            for (int i = 0; i < SERIES; i++) is_good[i] = wait_s[i] <= limit;
            CHECK(vp_series_share(is_good, SERIES, 0.95, scratch, &share) == VP_OK);
            covered += share.low <= 0.9 && 0.9 <= share.high;
        }
        printf("load 0.%d share: covered %.1f %%\n", load, 100.0 * covered / REPEATS);
        CHECK(covered >= REPEATS * 85 / 100);
    }
    check_case("all requests good: the share is 1, with Wilson's interval");
    memset(is_good, 1, sizeof is_good);
    CHECK(vp_series_share(is_good, 50, 0.95, scratch, &share) == VP_OK);
    CHECK(share.value == 1 && share.low < 1 && share.low > 0.9 && share.high == 1);
    CHECK_INT(vp_series_share(is_good, 0, 0.95, scratch, &share), VP_ERR_RANGE);
}

static void test_verdicts(void) {
    const vp_series_value good = {0.99, 0.96, 1, 1}, bad = {0.9, 0.85, 0.94, 1}, open = {0.95, 0.9, 0.99, 1};
    check_case("verdicts from shares");
    CHECK(vp_trial_of(&good, 0.95) == VP_TRIAL_HOLDS && vp_trial_of(&bad, 0.95) == VP_TRIAL_FAILS);
    CHECK(vp_trial_of(&open, 0.95) == VP_TRIAL_UNDECIDED);
}

int main(void) {
    test_arrivals();
    test_slo();
    test_percentiles();
    test_shares();
    test_verdicts();
    return check_done("test_load");
}
