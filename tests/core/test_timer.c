/* test_timer.c: the clock moves forward; sums, means, deviations and percentiles equal numpy's, bit for bit (golden/stats); intervals, outliers, the stop rule and the
 * resolution of a sample size are checked against scipy and other derivations. */
#define VLMPROF_IMPLEMENTATION
#include "support/check.h"
#include "support/scan.h"
#include "sweep/journal.h"
#include "sweep/result_gather.h"
#include "vlmprof_statistics.h"

/* Returns 1 if both have the same bits, or both are zero, of either sign. */
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
    check_case("stats.json, bit by bit");
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
        for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
            const double want = scan_number(percentiles, quantiles[i], NULL), q = atof(quantiles[i]);
            check_note(same(sorted_percentile(values, count, q), want), __FILE__, __LINE__, "array %d: percentile %g", arrays, q);
            if (q == 0) CHECK(same(s.min, want));
            if (q == 50) CHECK(same(s.p50, want));
            if (q == 95) CHECK(same(s.p95, want));
            if (q == 99) CHECK(same(s.p99, want));
            if (q == 100) CHECK(same(s.max, want));
        }
        CHECK_INT(s.count, count);
        FREE_ALL(values, scratch);
        p = percentiles;
        arrays++;
    }
    CHECK_INT(arrays, 40);
    free(text);
}
/* numpy's algorithm, independent of the header's code */
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
/* Every length up to several splits, with values whose sums are all inexact, so that the first wrong limit is detected. */
static void test_lengths(void) {
    static double values[2200];
    const uint32_t seed = 3;
    vp_random random;
    check_case("the sum of every length (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (size_t i = 0; i < 2200; i++) values[i] = vp_random_double(&random) * pow(2, (double)vp_random_below(&random, 20));
    for (size_t i = 0; i <= 2200; i += i < 700 ? 1 : 37) CHECK(same(vp_statistics_sum(values, i), slow_sum(values, i)));
}
static void test_errors(void) {
    double values[4] = {1, 2, 3, 4}, scratch[4];
    vp_statistics s, poison;
    check_case("statistics reject inputs that have none");
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
/* Expected numbers from mpmath 1.4.1 (40 digits) and scipy 1.17.1, 2026-11-21; quantiles are for the exact double. */
static void test_student(void) {
    static const struct { double probability, degrees, t; } table[] = {
        {0.8, 1, 1.3763819204711739}, {0.975, 1, 12.706204736174693}, {0.995, 1, 63.656741162871524}, {0.999999999, 1, 318309895.18620931},
        {0.8, 2, 1.0606601717798215}, {0.975, 2, 4.3026527297494618}, {0.9999, 2, 70.700071074968172}, {0.999999999, 2, 22360.680057658491},
        {0.975, 3, 3.1824463052837084}, {0.995, 3, 5.8409093097333554}, {0.975, 4, 2.7764451051977935}, {0.9999, 4, 13.033671720896822},
        {0.975, 5, 2.5705818356363148}, {0.995, 9, 3.2498355415921257}, {0.975, 10, 2.2281388519862742}, {0.999999999, 10, 20.144697824931784},
        {0.975, 29, 2.0452296421327039}, {0.995, 30, 2.749995653567225}, {0.8, 100, 0.84523042449101624}, {0.975, 100, 1.9839715185235519},
        {0.9999, 999, 3.7328654996083125}, {0.975, 99999, 1.9599877077718444}, {0.999999999, 99999, 5.9983614718192406},
        {0.9999, 99999, 3.7191543840204036}, {0.975, 1e7, 1.9599642217672051}, {0.999999999, 1e7, 5.9978125636323338},
        /* from 1e5 degrees, by the expansion: its second term matters here */
        {0.975, 100000, 1.9599877075346093}, {0.9999, 100000, 3.7191543826413722}, {0.999999999, 100000, 5.9983614662742779}, {0.999999999, 200000, 5.9980842319267825},
        {0.9999, 1e12, 3.7190164854694976}, {0.8, INFINITY, 0.84162123357291436},
        {0.975, INFINITY, 1.9599639845400539}, {0.995, INFINITY, 2.5758293035489005}, {0.999999999, INFINITY, 5.9978070196016374}};
    check_case("quantiles of Student's t, to 1e-11 of mpmath");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const double t = vp_statistics_student(table[i].probability, table[i].degrees);
        check_note(fabs(t - table[i].t) <= 1e-11 * table[i].t, __FILE__, __LINE__, "p %.10g, %g degrees: %.17g, expected %.17g",
                   table[i].probability, table[i].degrees, t, table[i].t);
    }
    CHECK_NEAR(vp_statistics_student(0.025, 7), -vp_statistics_student(0.975, 7), 1e-12);
    CHECK(vp_statistics_student(0.5, 7) == 0.0);
    CHECK(vp_statistics_student(0.49, 7) < 0 && vp_statistics_student(0.51, 7) > 0);
    CHECK(isnan(vp_statistics_student(0, 7)) && isnan(vp_statistics_student(1, 7)) && isnan(vp_statistics_student((double)NAN, 7)));
    CHECK(isnan(vp_statistics_student(0.9, 0.5)) && isnan(vp_statistics_student(0.9, (double)NAN)) && isnan(vp_statistics_student(-1, 7)));
}
static void test_percentile_interval(void) {
    /* ranks from scipy.stats.binom.cdf and .sf; 0: rejected */
    static const struct { size_t count; double percentile, confidence; int low, high; } table[] = {
        {1, 50, 0.1, 0, 0}, {2, 50, 0.5, 1, 2}, {3, 50, 0.75, 1, 3}, {5, 50, 0.95, 0, 0}, {6, 50, 0.95, 1, 6}, {10, 50, 0.95, 2, 9},
        {15, 50, 0.95, 4, 12}, {20, 50, 0.95, 6, 15}, {30, 50, 0.99, 8, 23}, {100, 50, 0.95, 40, 61}, {500, 50, 0.95, 228, 273},
        {100000, 50, 0.95, 49690, 50311}, {1000000, 50, 0.95, 499020, 500981}, {71, 95, 0.95, 0, 0}, {72, 95, 0.95, 64, 72},
        {100, 95, 0.95, 90, 100}, {1000, 95, 0.95, 936, 964}, {367, 99, 0.95, 0, 0}, {368, 99, 0.95, 360, 368}, {1000, 99, 0.95, 983, 997},
        {100000, 99, 0.95, 98938, 99062}, {40, 10, 0.9, 1, 8}, {50, 25, 0.8, 9, 17}, {10000, 99.9, 0.95, 9983, 9997}};
    double *values = (double *)malloc(1000000 * sizeof *values), low = -7, high = -7;
    check_case("intervals of percentiles: ranks match scipy's, too few values are rejected");
    for (size_t i = 0; i < 1000000; i++) values[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const vp_result want = table[i].low ? VP_OK : VP_ERR_UNSUPPORTED;
        low = high = -7;
        CHECK_INT(vp_statistics_percentile_interval(values, table[i].count, table[i].percentile, table[i].confidence, &low, &high), want);
        check_note(low == (want == VP_OK ? table[i].low : -7) && high == (want == VP_OK ? table[i].high : -7), __FILE__, __LINE__,
                   "%zu values, P%g at %g: %g..%g", table[i].count, table[i].percentile, table[i].confidence, low, high);
        CHECK((table[i].count >= vp_statistics_percentile_needs(table[i].percentile, table[i].confidence)) == (want == VP_OK));
    }
    CHECK_INT(vp_statistics_percentile_needs(50, 0.95), 6);
    CHECK_INT(vp_statistics_percentile_needs(95, 0.95), 72);
    CHECK_INT(vp_statistics_percentile_needs(99, 0.95), 368);
    CHECK_INT(vp_statistics_percentile_needs(1, 0.95), 368);
    CHECK(vp_statistics_percentile_needs(1e-300, 0.95) == SIZE_MAX && vp_statistics_percentile_needs(1e-12, 0.95) > 300000000000000);
    CHECK_INT(vp_statistics_percentile_needs(50, 1e-300), 1);
    check_case("intervals of percentiles: bad arguments, outputs unchanged");
    low = high = -7;
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 0, 0.95, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 100, 0.95, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 100, (double)NAN, 0.95, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 50, 0, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 50, 1, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 50, (double)NAN, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_percentile_interval(values, 0, 50, 0.95, &low, &high), VP_ERR_UNSUPPORTED);
    values[39] = (double)NAN;
    CHECK_INT(vp_statistics_percentile_interval(values, 100, 50, 0.95, &low, &high), VP_ERR_RANGE);
    CHECK(low == -7 && high == -7);
    CHECK_INT(vp_statistics_percentile_needs(0, 0.95), 0);
    CHECK_INT(vp_statistics_percentile_needs(50, (double)NAN), 0);
    free(values);
    check_case("a percentile needs 3 / min(p, 1 - p) values");
    CHECK(!vp_statistics_percentile_supported(5, 50) && vp_statistics_percentile_supported(6, 50));
    CHECK(!vp_statistics_percentile_supported(59, 95) && vp_statistics_percentile_supported(60, 95));
    CHECK(!vp_statistics_percentile_supported(299, 99) && vp_statistics_percentile_supported(300, 99));
    CHECK(!vp_statistics_percentile_supported(299, 1) && vp_statistics_percentile_supported(300, 1));
    CHECK(!vp_statistics_percentile_supported(2999, 99.9) && vp_statistics_percentile_supported(3000, 99.9));
    CHECK(!vp_statistics_percentile_supported(SIZE_MAX, 0) && !vp_statistics_percentile_supported(SIZE_MAX, 100));
    CHECK(!vp_statistics_percentile_supported(SIZE_MAX, (double)NAN) && !vp_statistics_percentile_supported(SIZE_MAX, 101));
}
static void test_mean_interval(void) {
    static const double values[] = {10.2, 9.9, 10.5, 10.0, 10.1, 9.8}, two[] = {1.5, 2.25}, huge[] = {1e308, -1e308, 1e308};
    double roots[30], low = -7, high = -7;
    check_case("Student's interval of the mean: scipy.stats.t.interval");
    CHECK_INT(vp_statistics_mean_interval(values, 6, 0.95, &low, &high), VP_OK);
    CHECK_NEAR(low, 9.822729352152104, 1e-12);
    CHECK_NEAR(high, 10.343937314514564, 1e-12);
    CHECK_INT(vp_statistics_mean_interval(two, 2, 0.95, &low, &high), VP_OK);
    CHECK_NEAR(low, -2.88982677606551, 1e-12);
    CHECK_NEAR(high, 6.63982677606551, 1e-12);
    for (int i = 0; i < 30; i++) roots[i] = sqrt(i + 1);
    CHECK_INT(vp_statistics_mean_interval(roots, 30, 0.99, &low, &high), VP_OK);
    CHECK_NEAR(low, 3.1005792398871295, 1e-12);
    CHECK_NEAR(high, 4.371610441159064, 1e-12);
    low = high = -7;
    CHECK_INT(vp_statistics_mean_interval(values, 1, 0.95, &low, &high), VP_ERR_UNSUPPORTED);
    CHECK_INT(vp_statistics_mean_interval(values, 0, 0.95, &low, &high), VP_ERR_UNSUPPORTED);
    CHECK_INT(vp_statistics_mean_interval(values, 6, 1, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_mean_interval(values, 6, (double)NAN, &low, &high), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_mean_interval(huge, 3, 0.95, &low, &high), VP_ERR_RANGE);
    roots[29] = (double)NAN;
    CHECK_INT(vp_statistics_mean_interval(roots, 30, 0.95, &low, &high), VP_ERR_RANGE);
    CHECK(low == -7 && high == -7);
}
static void test_outliers(void) {
    static const struct { double values[12]; size_t count; double threshold; int outliers, slow; unsigned flags; } table[] = {
        /* hyperfine's own cases, src/outlier_detection.rs at 01876804 */
        {{0.5, 0.30, 0.29, 0.31, 0.30}, 5, 10, 1, 1, 1},
        {{2.33269488, 1.42195907, -0.57527698, -0.31293437, 2.2948158, 0.75813273, -1.0712388, -0.96394741, -1.15897446, 1.10976285}, 10, 10, 0, 0, 0},
        {{2.33269488, 1.42195907, -0.57527698, -0.31293437, 2.2948158, 0.75813273, -1.0712388, -0.96394741, -1.15897446, 1.10976285, 20, -500},
         12, 10, 2, 0, 0xC00},
        /* half of the values are equal, so the mean deviation is used: 90 / (1.253314 * 11.25) = 6.38, 90 / (1.253314 * 20) = 3.59 */
        {{10, 10, 10, 10, 10, 10, 10, 100}, 8, 3.5, 1, 0, 0x80}, {{10, 10, 10, 10, 10, 10, 10, 100}, 8, 6.5, 0, 0, 0},
        {{10, 10, 10, 10, 10, 10, 10, 100, 100}, 9, 3.5, 2, 0, 0x180}, {{7, 7, 7, 7, 7, 7}, 6, 3.5, 0, 0, 0},
        /* median 4.5, mad 1, scores of the ends -+2.36; median 5, mad 1, score of the first 2.698 */
        {{1, 4, 6, 5, 4, 8}, 6, 2.3, 2, 0, 0x21}, {{1, 4, 6, 5, 4, 8}, 6, 2.4, 0, 0, 0}, {{9, 4, 6, 5, 4, 5}, 6, 2.6, 1, 1, 1},
        {{9, 4, 6, 5, 4, 5}, 6, 2.7, 0, 0, 0}};
    double scratch[12], values[5] = {1, 2, 3, 4, 5};
    uint8_t flags[12];
    struct outliers o, poison;
    check_case("outliers: modified z scores, a slow first value");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        unsigned got = 0;
        memset(flags, 0xA5, sizeof flags);
        CHECK_INT(find_outliers(table[i].values, table[i].count, table[i].threshold, scratch, flags, &o), VP_OK);
        for (size_t k = 0; k < table[i].count; k++) got |= (unsigned)flags[k] << k;
        check_note(got == table[i].flags && (int)o.count == table[i].outliers && o.slow_first == table[i].slow, __FILE__, __LINE__,
                   "case %zu: flags %x, %zu outliers, slow first %d", i, got, o.count, o.slow_first);
        CHECK(table[i].count == 12 || flags[table[i].count] == 0xA5);
    }
    CHECK_INT(find_outliers(table[7].values, 6, OUTLIER_THRESHOLD, scratch, NULL, &o), VP_OK);
    CHECK_NEAR(o.median, 4.5, 0);
    CHECK_NEAR(o.mad, 1.0, 0);
    CHECK_NEAR(o.first_score, -0.6745 * 3.5, 1e-12);
    check_case("outliers: too few or invalid values are rejected");
    memset(&poison, 0xA5, sizeof poison);
    o = poison;
    CHECK_INT(find_outliers(values, 4, 3.5, scratch, flags, &o), VP_ERR_UNSUPPORTED);
    CHECK_INT(find_outliers(values, 0, 3.5, scratch, flags, &o), VP_ERR_UNSUPPORTED);
    CHECK_INT(find_outliers(values, 5, 0, scratch, flags, &o), VP_ERR_RANGE);
    CHECK_INT(find_outliers(values, 5, (double)NAN, scratch, flags, &o), VP_ERR_RANGE);
    values[1] = 1.7e308;
    values[0] = values[2] = values[4] = -1.7e308;
    CHECK_INT(find_outliers(values, 5, 3.5, scratch, flags, &o), VP_ERR_RANGE);
    values[1] = (double)NAN;
    CHECK_INT(find_outliers(values, 5, 3.5, scratch, flags, &o), VP_ERR_RANGE);
    CHECK(memcmp(&o, &poison, sizeof o) == 0);
}
static void test_paired(void) {
    static const double a[] = {10.0, 11.0, 12.0, 10.5, 11.5, 10.2, 10.8}, b[] = {10.1, 11.3, 11.9, 10.9, 11.6, 10.2, 11.0};
    static const double up[] = {1, 2}, down[] = {3, 3}, odd[] = {1, INFINITY};
    double scratch[7];
    vp_paired p, poison;
    check_case("paired differences: mean and median with intervals, absolute and relative");
    CHECK_INT(vp_statistics_paired(a, b, 7, scratch, &p), VP_OK);
    CHECK_INT(p.count, 7);
    CHECK_NEAR(p.mean.value, 0.14285714285714285, 1e-13);
    CHECK_NEAR(p.mean.low, -0.01605442105915833, 1e-12);
    CHECK_NEAR(p.mean.high, 0.30176870677344403, 1e-12);
    CHECK_NEAR(p.median.value, 0.1, 1e-12);
    CHECK_NEAR(p.median.low, -0.1, 1e-12); /* smallest and largest of seven */
    CHECK_NEAR(p.median.high, 0.4, 1e-12);
    CHECK_NEAR(p.relative_mean.value, 0.14285714285714285 / 10.857142857142858, 1e-13);
    CHECK_NEAR(p.relative_mean.high, 0.30176870677344403 / 10.857142857142858, 1e-12);
    CHECK_NEAR(p.relative_median.low, -0.1 / 10.857142857142858, 1e-12);
    CHECK_NEAR(p.share_greater, 5.0 / 7, 1e-15);
    CHECK_INT(vp_statistics_paired(up, down, 2, scratch, &p), VP_OK); /* five or fewer have no interval of the median; one has no interval at all */
    CHECK(p.mean.value == 1.5 && isfinite(p.mean.low) && p.median.value == 1.5 && isnan(p.median.low) && isnan(p.relative_median.high));
    CHECK_INT(vp_statistics_paired(up, down, 1, scratch, &p), VP_OK);
    CHECK(p.mean.value == 2 && isnan(p.mean.low) && isnan(p.mean.high) && p.relative_mean.value == 2 && p.share_greater == 1);
    scratch[0] = 0;
    CHECK_INT(vp_statistics_paired(scratch, down, 1, scratch, &p), VP_OK); /* no relative difference from 0; scratch may be the same array as a */
    CHECK(p.mean.value == 3 && isnan(p.relative_mean.value) && isnan(p.relative_median.value));
    memset(&poison, 0xA5, sizeof poison);
    p = poison;
    CHECK_INT(vp_statistics_paired(a, b, 0, scratch, &p), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_paired(up, odd, 2, scratch, &p), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_paired(odd, odd, 2, scratch, &p), VP_ERR_RANGE);
    CHECK(memcmp(&p, &poison, sizeof p) == 0);
}
static enum stop_reason decide(const struct stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns) {
    double scratch[64];
    enum stop_reason stop = STOP_MAX;
    CHECK_INT(decide_stop(rule, values, count, elapsed_ns, scratch, &stop), VP_OK);
    return stop;
}
static void test_stop(void) {
    const struct stop_rule fixed = {3, 3, 0, 0.95, 100}, narrow = {3, 12, 0.01, 0.95, 1000}, open = {3, 12, 0.01, 0.95, 0};
    double steady[12], wild[12], scratch[12];
    enum stop_reason stop = STOP_MAX;
    for (size_t i = 0; i < 12; i++) {
        steady[i] = 100 + (i % 2 ? 0.99 : -0.99); /* interval 99.01..100.99: half-width 0.99 % */
        wild[i] = 100 + (i % 2 ? 1.01 : -1.01);
    }
    check_case("stop: all runs, whatever the time");
    CHECK_INT(decide(&fixed, steady, 0, 0), STOP_NOT);
    CHECK_INT(decide(&fixed, steady, 2, 1000), STOP_NOT);
    CHECK_INT(decide(&fixed, steady, 3, 0), STOP_RUNS);
    CHECK_INT(decide(&fixed, wild, 5, 1000), STOP_RUNS);
    check_case("stop: by the interval, by the maximum number of runs, by the time");
    CHECK_INT(decide(&narrow, steady, 5, 0), STOP_NOT); /* five values have no interval, even if all are equal */
    CHECK_INT(decide(&narrow, steady, 6, 0), STOP_INTERVAL);
    CHECK_INT(decide(&narrow, steady, 12, 5000), STOP_INTERVAL);
    CHECK_INT(decide(&narrow, wild, 6, 999), STOP_NOT);
    CHECK_INT(decide(&narrow, wild, 6, 1000), STOP_BOX);
    CHECK_INT(decide(&narrow, wild, 2, 5000), STOP_NOT); /* the minimum number of runs is always made */
    CHECK_INT(decide(&narrow, wild, 3, 5000), STOP_BOX);
    CHECK_INT(decide(&narrow, wild, 12, 999), STOP_MAX);
    CHECK_INT(decide(&narrow, wild, 12, 5000), STOP_MAX);
    CHECK_INT(decide(&open, wild, 11, INT64_MAX), STOP_NOT); /* no time limit */
    CHECK_INT(decide(&open, wild, 12, INT64_MAX), STOP_MAX);
    for (size_t i = 0; i < 12; i++) wild[i] = 0;
    CHECK_INT(decide(&open, wild, 6, 0), STOP_INTERVAL);
    for (size_t i = 0; i < 12; i++) wild[i] = -steady[i];
    CHECK_INT(decide(&open, wild, 6, 0), STOP_NOT); /* no relative width for values below 0 */
    check_case("stop: rules outside their ranges, output unchanged");
    for (int k = 0; k < 10; k++) {
        struct stop_rule bad = narrow;
        if (k == 0) bad.min_runs = 0;
        if (k == 1) bad.max_runs = 2;
        if (k == 2) bad.half_width = -0.01;
        if (k == 3) bad.half_width = 1;
        if (k == 4) bad.half_width = (double)NAN;
        if (k == 5) bad.confidence = 1;
        if (k == 6) bad.confidence = (double)NAN;
        if (k == 7) bad.box_ns = -1;
        if (k == 9) steady[3] = (double)NAN;
        check_note(decide_stop(&bad, steady, 6, k == 8 ? -1 : 5, scratch, &stop) == VP_ERR_RANGE, __FILE__, __LINE__, "case %d", k);
    }
    CHECK_INT(stop, STOP_MAX);
    CHECK_TEXT(stop_name(STOP_RUNS), "runs");
    CHECK_TEXT(stop_name(STOP_INTERVAL), "interval");
    CHECK_TEXT(stop_name(STOP_BOX), "box");
    CHECK_TEXT(stop_name(STOP_MAX), "max");
    CHECK(stop_name(-1) == NULL && stop_name(5) == NULL);
}
static void test_clock(void) {
    int64_t before = vp_clock_ns(), start = before;
    struct timespec pause;
    check_case("the clock never goes back, and counts nanoseconds");
    CHECK(before > 0);
    for (int i = 0; i < 1000; i++) {
        const int64_t now = vp_clock_ns();
        CHECK(now >= before);
        before = now;
    }
    pause.tv_sec = 0;
    pause.tv_nsec = 20000000;
    start = vp_clock_ns();
    nanosleep(&pause, NULL);
    before = vp_clock_ns() - start;
    CHECK(before >= 20000000);
    clock_gettime(CLOCK_MONOTONIC, &pause);
    before = vp_clock_ns();
    CHECK(before >= pause.tv_sec * 1000000000 + pause.tv_nsec);
    clock_gettime(CLOCK_MONOTONIC, &pause);
    CHECK(before <= pause.tv_sec * 1000000000 + pause.tv_nsec);
}
int main(void) {
    RUN_TESTS(test_golden, test_lengths, test_errors, test_student, test_percentile_interval, test_mean_interval, test_outliers, test_paired, test_stop, test_clock);
    return check_done("test_timer");
}
