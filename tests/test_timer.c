/* test_timer.c: the clock moves forward; sums, means, deviations and percentiles are numpy's, bit for bit (golden/stats). */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"
#include "scan.h"

/* equal as numbers of the same bits; zero of any sign is zero */
static int same(double got, double want) {
    return memcmp(&got, &want, sizeof got) == 0 || (got == 0.0 && want == 0.0);
}

static double sorted_percentile(const double *values, size_t count, double q) {
    double *copy = (double *)malloc(count * sizeof *copy), result;
    vp_statistics statistics;
    vp_statistics_compute(values, count, copy, &statistics);
    result = vp_statistics_percentile(copy, count, q);
    free(copy);
    return result;
}

static void test_golden(void) {
    static const char *quantiles[] = {"0", "5", "25", "50", "75", "90", "95", "99", "100"};
    char *text = check_read(check_golden("stats/stats.json"), NULL);
    const char *p = text;
    int arrays = 0;
    size_t i;
    check_case("stats.json, bit for bit");
    CHECK(text != NULL);
    while (p && (p = scan_key(p, "values", NULL)) != NULL) {
        size_t count;
        double *values = scan_numbers(p, &count), *scratch = (double *)malloc(count * sizeof *scratch);
        const double mean = scan_number(p, "mean", NULL), std = scan_number(p, "std", NULL);
        const char *percentiles = scan_key(p, "percentiles", NULL);
        vp_statistics s;
        memset(&s, 0xA5, sizeof s);
        CHECK_INT(vp_statistics_compute(values, count, scratch, &s), VP_OK);
        check_note(same(s.mean, mean), __FILE__, __LINE__, "array %d: mean %.17g, expected %.17g", arrays, s.mean, mean);
        check_note(same(s.std, std), __FILE__, __LINE__, "array %d: std %.17g, expected %.17g", arrays, s.std, std);
        CHECK(same(vp_statistics_mean(values, count), mean) && same(vp_statistics_std(values, count), std));
        for (i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
            const double want = scan_number(percentiles, quantiles[i], NULL), q = atof(quantiles[i]);
            check_note(same(sorted_percentile(values, count, q), want), __FILE__, __LINE__, "array %d: percentile %g", arrays, q);
            if (q == 0) CHECK(same(s.min, want));
            if (q == 50) CHECK(same(s.p50, want));
            if (q == 95) CHECK(same(s.p95, want));
            if (q == 99) CHECK(same(s.p99, want));
            if (q == 100) CHECK(same(s.max, want));
        }
        CHECK_INT(s.count, count);
        free(values);
        free(scratch);
        p = percentiles;
        arrays++;
    }
    CHECK_INT(arrays, 40);
    free(text);
}

/* Numbers for which the order of additions shows: the plain loop gives another last bit, so a lost rule cannot hide. */
static void test_order(void) {
    double values[1000], loop = 0.0;
    size_t i;
    check_case("the sum is pairwise, not a loop");
    for (i = 0; i < 1000; i++) loop += values[i] = 3.3;
    CHECK(vp_statistics_sum(values, 1000) != loop);
    CHECK(same(vp_statistics_mean(values, 1000), 3.299999999999999));
    CHECK(vp_statistics_sum(values, 0) == 0.0);
}

/* numpy's words for it, written apart from the header's code */
static double slow_sum(const double *values, size_t count) {
    double r[8], sum = 0;
    size_t i, half = count / 2 / 8 * 8;
    if (count > 128) return slow_sum(values, half) + slow_sum(values + half, count - half);
    for (i = 0; count < 8 && i < count; i++) sum += values[i];
    if (count < 8) return sum;
    memcpy(r, values, sizeof r);
    for (i = 8; i < count / 8 * 8; i++) r[i % 8] += values[i];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < count; i++) sum += values[i];
    return sum;
}

/* Every length up to some splits, with values whose sums are all inexact: the first wrong limit shows. */
static void test_lengths(void) {
    static double values[2200];
    const uint32_t seed = 3;
    vp_random random;
    size_t i;
    check_case("the sum of every length (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (i = 0; i < 2200; i++) values[i] = vp_random_double(&random) * pow(2, (double)vp_random_below(&random, 20));
    for (i = 0; i <= 2200; i += i < 700 ? 1 : 37) CHECK(same(vp_statistics_sum(values, i), slow_sum(values, i)));
}

static void test_errors(void) {
    double values[4] = {1, 2, 3, 4}, scratch[4];
    vp_statistics s, poison;
    check_case("statistics refuse what has no statistics");
    memset(&poison, 0xA5, sizeof poison);
    s = poison;
    CHECK_INT(vp_statistics_compute(values, 0, scratch, &s), VP_ERR_RANGE);
    values[2] = (double)NAN;
    CHECK_INT(vp_statistics_compute(values, 4, scratch, &s), VP_ERR_RANGE);
    values[2] = (double)INFINITY;
    CHECK_INT(vp_statistics_compute(values, 4, scratch, &s), VP_ERR_RANGE);
    values[2] = -(double)INFINITY;
    CHECK_INT(vp_statistics_compute(values, 4, scratch, &s), VP_ERR_RANGE);
    CHECK(memcmp(&s, &poison, sizeof s) == 0);
    CHECK(isnan(vp_statistics_mean(values, 0)));
    CHECK(isnan(vp_statistics_std(values, 0)));
    CHECK(isnan(vp_statistics_percentile(values, 0, 50)));
    CHECK(isnan(vp_statistics_percentile(values, 2, -0.001)));
    CHECK(isnan(vp_statistics_percentile(values, 2, 100.001)));
    CHECK(isnan(vp_statistics_percentile(values, 2, (double)NAN)));
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Random arrays: the sort is libc's, percentiles grow, sums agree with a wider sum to the bound of pairwise summation. */
static void test_property(void) {
    enum { MOST = 700 };
    static double values[MOST], scratch[MOST], sorted[MOST];
    const uint32_t seed = 20261121;
    vp_random random;
    int round;
    check_case("property: random arrays (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (round = 0; round < 400; round++) {
        const size_t count = 1 + (size_t)vp_random_below(&random, MOST - 1);
        const double steps = (double)(1 + vp_random_below(&random, 60)); /* few steps make ties */
        long double wide = 0, size = 0;
        double before, q;
        vp_statistics s;
        size_t i;
        for (i = 0; i < count; i++) {
            values[i] = floor(vp_random_double(&random) * steps) / 7 - 3;
            wide += values[i];
            size += fabs(values[i]);
        }
        memcpy(sorted, values, sizeof sorted);
        qsort(sorted, count, sizeof *sorted, compare_doubles);
        CHECK_INT(vp_statistics_compute(values, count, scratch, &s), VP_OK);
        CHECK(memcmp(sorted, scratch, count * sizeof *sorted) == 0);
        /* pairwise: at most 16 + log2(n) roundings on any path */
        CHECK_NEAR(vp_statistics_sum(values, count), (double)wide, 26 * 1.2e-16 * (double)size);
        before = s.min;
        for (q = 0; q <= 100; q += 2.5) {
            const double now = vp_statistics_percentile(sorted, count, q);
            CHECK(now >= before - 1e-12 && now <= s.max);
            before = now;
        }
        CHECK(s.std >= 0 && s.mean >= s.min - 1e-12 && s.mean <= s.max + 1e-12);
        CHECK_INT(vp_statistics_compute(values, count, values, &s), VP_OK); /* scratch may be the values */
        CHECK(memcmp(sorted, values, count * sizeof *sorted) == 0);
    }
}

static void test_clock(void) {
    int64_t before = vp_clock_ns(), start = before;
    struct timespec pause;
    int i;
    check_case("the clock never goes back and counts nanoseconds");
    CHECK(before > 0);
    for (i = 0; i < 1000; i++) {
        const int64_t now = vp_clock_ns();
        CHECK(now >= before);
        before = now;
    }
    pause.tv_sec = 0;
    pause.tv_nsec = 20000000;
    start = vp_clock_ns();
    nanosleep(&pause, NULL);
    before = vp_clock_ns() - start;
    CHECK(before >= 20000000 && before < (int64_t)20000000000); /* a loaded machine may be late, but not a thousandfold */
    clock_gettime(CLOCK_MONOTONIC, &pause);
    before = vp_clock_ns();
    CHECK(before >= pause.tv_sec * 1000000000 + pause.tv_nsec);
    clock_gettime(CLOCK_MONOTONIC, &pause);
    CHECK(before <= pause.tv_sec * 1000000000 + pause.tv_nsec);
}

int main(void) {
    test_golden();
    test_order();
    test_lengths();
    test_errors();
    test_property();
    test_clock();
    return check_done("test_timer");
}
