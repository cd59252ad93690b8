/* test_analysis.c: fronts and tests equal golden/analysis (numpy, scipy, exact rationals). Special functions equal scipy's. Bootstrap and epsilon fronts equal a slow
 * implementation. On sweeps with a known truth the stated intervals contain it (VLMPROF_REPEATS=1000 for the full count). */
#include "vlmprof_statistics.h"
#include "vlmprof_score.h"
#include "vlmprof_analysis.h"
#include "support/check.h"
#include "support/numbers.h"

static void test_pareto_golden(void) {
    static const struct { const char *key; vp_pareto_rule rule; } rules[] = {{"front_keep_duplicates", VP_PARETO_ALL},
        {"front_first_of_duplicates", VP_PARETO_FIRST}, {"weakly_undominated", VP_PARETO_WEAK}, {"reference_sweep", VP_PARETO_SWEEP}};
    document d;
    uint32_t set;
    int row = 0;
    check_case("pareto.json: index lists equal");
    CHECK(json_open(check_golden("analysis/pareto.json"), &d));
    ROWS(&d, 0, set) {
        size_t count, wanted, got, i, k;
        double *points = numbers(&d, set, "points", &count), *latency, *accuracy;
        uint32_t *front;
        count /= 2;
        latency = doubles(count);
        accuracy = doubles(count);
        front = (uint32_t *)memory(count * sizeof *front);
        for (i = 0; i < count; i++) {
            latency[i] = points[2 * i];
            accuracy[i] = points[2 * i + 1];
        }
        for (k = 0; k < 4; k++) {
            double *want = numbers(&d, set, rules[k].key, &wanted);
            CHECK_INT(vp_pareto_front(latency, accuracy, count, rules[k].rule, front, &got), VP_OK);
            CHECK_INT(got, wanted);
            for (i = 0; i < got && i < wanted; i++) check_note(front[i] == want[i], __FILE__, __LINE__, "set %d, %s: place %d", row, rules[k].key, (int)i);
            free(want);
        }
        FREE_ALL(points, latency, accuracy, front);
        row++;
    }
    CHECK_INT(row, 36);
    json_close(&d);
}
static void test_intervals_golden(void) {
    document d;
    uint32_t list, set;
    int row = 0;
    check_case("intervals.json: Wilson, median from order statistics, McNemar");
    CHECK(json_open(check_golden("analysis/intervals.json"), &d));
    list = vp_json_get(&d.json, 0, "wilson_95");
    ROWS(&d, list, set) {
        double low = -1.0, high = -1.0;
        CHECK_INT(vp_rate_interval((uint64_t)number(&d, set, "k"), (uint64_t)number(&d, set, "n"), 0.95, &low, &high), VP_OK);
        NEAR(low, number(&d, set, "lower"), 0, low == 0.0 ? 0.0 : 1e-12);
        NEAR(high, number(&d, set, "upper"), 0, high == 1.0 ? 0.0 : 1e-12);
        row++;
    }
    CHECK_INT(row, 40);
    list = vp_json_get(&d.json, 0, "median_order_statistics_95");
    ROWS(&d, list, set) {
        const double lower = number(&d, set, "lower");
        uint64_t low = 0, high = 0;
        double coverage = 0.0;
        const vp_result result = vp_median_interval((uint64_t)number(&d, set, "n"), 0.95, &low, &high, &coverage);
        CHECK_INT(result, lower == lower ? VP_OK : VP_ERR_MISMATCH);
        if (lower == lower) {
            CHECK_INT(low, lower);
            CHECK_INT(high, number(&d, set, "upper"));
            NEAR(coverage, number(&d, set, "coverage"), 0, 1e-12);
        }
        row++;
    }
    CHECK_INT(row, 182);
    list = vp_json_get(&d.json, 0, "median_interval_data");
    ROWS(&d, list, set) {
        size_t count;
        double *values = numbers(&d, set, "values", &count), *sorted = doubles(count), low = -1.0, high = -1.0, coverage;
        uint64_t first = 1, last = 1;
        vp_statistics s;
        CHECK_INT(vp_statistics_compute(values, count, sorted, &s), VP_OK);
        CHECK_INT(vp_median_interval(count, 0.95, &first, &last, &coverage), VP_OK);
        CHECK(s.p50 == number(&d, set, "median") && sorted[first - 1] == number(&d, set, "lower") && sorted[last - 1] == number(&d, set, "upper"));
        CHECK_INT(vp_statistics_percentile_interval(sorted, count, 50, 0.95, &low, &high), VP_OK);
        CHECK(low == sorted[first - 1] && high == sorted[last - 1]);
        FREE_ALL(values, sorted);
        row++;
    }
    CHECK_INT(row, 212);
    list = vp_json_get(&d.json, 0, "mcnemar_exact");
    ROWS(&d, list, set) {
        NEAR(vp_mcnemar((uint64_t)number(&d, set, "only_first_correct"), (uint64_t)number(&d, set, "only_second_correct")), number(&d, set, "p"), 1e-10, 0);
        row++;
    }
    CHECK_INT(row, 248);
    json_close(&d);
}
static void test_tests_golden(void) {
    document d;
    uint32_t list, set;
    int row = 0;
    check_case("intervals.json: paired t");
    CHECK(json_open(check_golden("analysis/intervals.json"), &d));
    list = vp_json_get(&d.json, 0, "paired");
    ROWS(&d, list, set) {
        size_t count, i;
        double *x = numbers(&d, set, "x", &count), *y = numbers(&d, set, "y", &i);
        vp_mean_interval t;
        CHECK_INT(vp_paired_t(y, x, count, 0.95, &t), VP_OK);
        NEAR(t.t, number(&d, set, "t"), 1e-9, 0);
        NEAR(t.p, number(&d, set, "p_t"), 1e-9, 0);
        CHECK_INT(t.degrees, number(&d, set, "df"));
        FREE_ALL(x, y);
        row++;
    }
    CHECK_INT(row, 30);
    json_close(&d);
}
static void test_statistics_golden(void) {
    document d;
    uint32_t set;
    int row = 0;
    check_case("statistics.json: the experiments' summaries, 1e-12");
    CHECK(json_open(check_golden("analysis/statistics.json"), &d));
    ROWS(&d, 0, set) {
        size_t count;
        double *values = numbers(&d, set, "values", &count), *scratch = doubles(count);
        vp_statistics s;
        CHECK_INT(vp_statistics_compute(values, count, scratch, &s), VP_OK);
        NEAR(s.p50, number(&d, set, "P50"), 1e-12, 1e-12);
        NEAR(s.p95, number(&d, set, "P95"), 1e-12, 1e-12);
        NEAR(s.p99, number(&d, set, "P99"), 1e-12, 1e-12);
        NEAR(s.mean, number(&d, set, "mean"), 1e-12, 1e-12);
        NEAR(s.std, number(&d, set, "std"), 1e-12, 1e-12);
        NEAR(s.min, number(&d, set, "min"), 1e-12, 1e-12);
        NEAR(s.max, number(&d, set, "max"), 1e-12, 1e-12);
        FREE_ALL(values, scratch);
        row++;
    }
    CHECK_INT(row, 32);
    json_close(&d);
}
/* ---------------------------------------------------------------------------------------------- special functions */
/* scipy 1.17.1: stats.norm.sf and ppf, t.sf, binom.cdf, false_discovery_control */
static void test_special(void) {
    static const double normal[][2] = {{0, 0.5}, {0.5, 0.3085375387259869}, {-0.5, 0.6914624612740131}, {1.959963984540054, 0.025},
        {3, 0.0013498980316300933}, {-4, 0.9999683287581669}, {8, 6.22096057427174e-16}, {20, 2.7536241186061556e-89}, {37, 5.7255712225239266e-300}};
    static const double quantile[][2] = {{0.5, 0.0}, {0.975, 1.959963984540054}, {0.025, -1.9599639845400545}, {0.9, 1.2815515655446004},
        {0.001, -3.090232306167813}, {1e-10, -6.361340902404056}, {1e-300, -37.0470962993612}, {0.999999, 4.753424308817087},
        {0.07, -1.4757910281791706}, {0.93, 1.475791028179171}, {0.425, -0.18911842627279252}};
    static const double student[][3] = {{0, 3, 0.5}, {1, 1, 0.25}, {2.5, 1, 0.12111894159084341}, {-1.3, 2, 0.8383764840919798},
        {2.0, 4.5, 0.054128953590562495}, {12.7, 5, 2.6904813420260058e-05}, {3.0, 10, 0.006671827511284785}, {40, 10, 1.1404288715428768e-12},
        {1.96, 1000, 0.025136592477874368}, {0.01, 30, 0.49604374628658887}, {8, 1e6, 6.227531716601252e-16}, {2.2, 1e9, 0.013903447627443001},
        {-6, 0.7, 0.911698153406143}};
    static const double half[][3] = {{0, 1, 0.5}, {3, 10, 0.171875}, {5, 10, 0.623046875}, {50, 100, 0.5397946186935889}, {10, 100, 1.5316450877189923e-17},
        {0, 1000, 9.332636185032189e-302}, {499, 1000, 0.48738749091081973}, {450, 1000, 0.0008652680424882506}, {20000, 40504, 0.006221407627249208},
        {6, 7, 0.9921875}, {7, 7, 1}, {9, 7, 1}, {0, 0, 1}};
    double again;
    check_case("distributions equal scipy's");
    for (int row = 0; row < 9; row++) NEAR(vp_normal_tail(normal[row][0]), normal[row][1], 1e-13, 0);
    for (int row = 0; row < 11; row++) NEAR(vp_normal_quantile(quantile[row][0]), quantile[row][1], 1e-14, 0);
    for (int row = 0; row < 13; row++) NEAR(vp_student_tail(student[row][0], student[row][1]), student[row][2], student[row][1] > 1e6 ? 1e-7 : 1e-11, 0);
    for (int row = 0; row < 13; row++) NEAR(vp_binomial_half((uint64_t)half[row][0], (uint64_t)half[row][1]), half[row][2], fmax(1e-12, 3e-16 * half[row][1]), 0);
    for (int row = 1; row < 1000; row++) { /* quantile and tail are inverses of each other */
        again = vp_normal_tail(-vp_normal_quantile(row / 1000.0));
        NEAR(again, row / 1000.0, 1e-14, 0);
    }
    CHECK(isnan(vp_normal_quantile(0)) && isnan(vp_normal_quantile(1)) && isnan(vp_normal_quantile((double)NAN)) && isnan(vp_normal_tail((double)NAN)));
    CHECK(isnan(vp_student_tail((double)NAN, 3)) && isnan(vp_student_tail(1, 0)) && isnan(vp_student_tail(1, (double)NAN)));
    CHECK(isnan(vp_binomial_half(3, UINT64_C(1) << 53)) && isnan(vp_mcnemar(UINT64_C(1) << 53, 1)));
}
static void test_adjust(void) {
    static const double p[8] = {0.01, 0.04, 0.03, 0.005, 0.5, 0.04, 1.0, 0.2}; /* Benjamini-Hochberg: scipy; Holm: by hand */
    static const double bh[8] = {0.04, 0.064, 0.064, 0.04, 0.5714285714285714, 0.064, 1.0, 0.26666666666666666};
    static const double holm[8] = {0.07, 0.2, 0.18, 0.04, 1, 0.2, 1, 0.6};
    double out[8], bad[2] = {0.5, (double)NAN};
    uint32_t order[8];
    check_case("adjusted p values");
    CHECK_INT(vp_adjust(p, 8, VP_ADJUST_BENJAMINI_HOCHBERG, order, out), VP_OK);
    for (int row = 0; row < 8; row++) NEAR(out[row], bh[row], 1e-14, 0);
    memcpy(out, p, sizeof out);
    CHECK_INT(vp_adjust(out, 8, VP_ADJUST_HOLM, order, out), VP_OK);
    for (int row = 0; row < 8; row++) NEAR(out[row], holm[row], 1e-14, 0);
    CHECK_INT(vp_adjust(p, 8, VP_ADJUST_NONE, order, out), VP_OK);
    CHECK(memcmp(out, p, sizeof p) == 0);
    CHECK_INT(vp_adjust(NULL, 0, VP_ADJUST_HOLM, NULL, NULL), VP_OK);
    CHECK_INT(vp_adjust(bad, 2, VP_ADJUST_HOLM, order, out), VP_ERR_RANGE);
    bad[1] = 1.0000001;
    CHECK_INT(vp_adjust(bad, 2, VP_ADJUST_HOLM, order, out), VP_ERR_RANGE);
    CHECK_INT(vp_adjust(p, 8, (vp_adjustment)7, order, out), VP_ERR_RANGE);
    CHECK(memcmp(out, p, sizeof p) == 0);
}
/* ---------------------------------------------------------------------------------------------- fronts */
enum { SMALL = 9 };
/* size of the smallest set of points that epsilon-dominates all, found by trying every subset */
static size_t smallest_cover(const double *l, const double *a, size_t n, vp_epsilon e) {
    size_t best = n, mask, i, j;
    for (mask = 1; mask < (size_t)1 << n; mask++) {
        size_t size = 0, covered = 0;
        for (i = 0; i < n; i++) size += mask >> i & 1;
        for (i = 0; i < n; i++) {
            for (j = 0; j < n; j++) {
                if (!(mask >> j & 1)) continue;
                if (l[j] <= l[i] + (e.relative ? e.latency * fabs(l[i]) : e.latency) && a[j] >= a[i] - (e.relative ? e.accuracy * fabs(a[i]) : e.accuracy)) break;
            }
            covered += j < n;
        }
        if (covered == n && size < best) best = size;
    }
    return best;
}
static void test_epsilon(void) {
    const uint32_t seed = 11;
    vp_random random;
    check_case("epsilon fronts are the smallest covers (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (int round = 0; round < 400; round++) {
        double l[SMALL], a[SMALL], area;
        uint32_t front[SMALL], kept[SMALL];
        size_t n = 1 + (size_t)vp_random_below(&random, SMALL - 1), i, j, count, kept_count, best_i;
        vp_epsilon e;
        for (i = 0; i < n; i++) {
            l[i] = 50 + (double)vp_random_below(&random, 20); /* coarse: ties and equal points */
            a[i] = (double)vp_random_below(&random, 10) / 10 + (l[i] - 50) / 40;
        }
        e.relative = round & 1;
        e.latency = (e.relative ? 0.02 : 1.0) * (double)vp_random_below(&random, 4);
        e.accuracy = (e.relative ? 0.05 : 0.07) * (double)vp_random_below(&random, 4);
        CHECK_INT(vp_pareto_front(l, a, n, VP_PARETO_FIRST, front, &count), VP_OK);
        CHECK_INT(vp_pareto_epsilon(l, a, n, front, count, e, kept, &kept_count), VP_OK);
        CHECK_INT(kept_count, smallest_cover(l, a, n, e));
        for (i = 0; i < n; i++) {
            for (j = 0; j < kept_count; j++) {
                const double li = l[i] + (e.relative ? e.latency * l[i] : e.latency), ai = a[i] - (e.relative ? e.accuracy * a[i] : e.accuracy);
                if (l[kept[j]] <= li && a[kept[j]] >= ai) break;
            }
            CHECK(j < kept_count);
        }
        area = vp_pareto_area(l, a, n, front, count, 80, -1); /* compared with a sum over thin columns of latency, whose edges are integers */
        for (i = 50; i < 80; i++) {
            double highest = -1;
            for (j = 0; j < n; j++) if (l[j] <= (double)i) highest = fmax(highest, a[j]);
            area -= highest + 1;
        }
        CHECK_NEAR(area, 0, 1e-9);
        for (best_i = n, i = 0; i < n; i++) {
            if (l[i] > 60 || a[i] < 0.3) continue;
            if (best_i == n || a[i] > a[best_i] || (a[i] == a[best_i] && l[i] < l[best_i])) best_i = i;
        }
        kept[0] = 77;
        CHECK_INT(vp_pareto_best(l, a, n, 60, 0.3, kept), best_i == n ? VP_ERR_NOT_FOUND : VP_OK);
        CHECK_INT(kept[0], best_i == n ? 77 : best_i);
    }
}
static void test_front_errors(void) {
    double l[3] = {1, 2, 3}, a[3] = {1, 2, 3};
    int32_t keys[3] = {4, 5, 4};
    uint32_t front[3] = {9, 9, 9};
    size_t count = 99;
    vp_epsilon e = {0, 0, 0};
    check_case("fronts reject values that are not numbers");
    CHECK_INT(vp_pareto_front(NULL, NULL, 0, VP_PARETO_ALL, NULL, &count), VP_OK);
    CHECK_INT(count, 0);
    count = 99;
    CHECK_INT(vp_pareto_front(l, a, 3, (vp_pareto_rule)4, front, &count), VP_ERR_RANGE);
    CHECK_INT(vp_pareto_front(l, a, 3, VP_PARETO_ALL, front, NULL), VP_ERR_RANGE);
    l[1] = (double)NAN;
    CHECK_INT(vp_pareto_front(l, a, 3, VP_PARETO_ALL, front, &count), VP_ERR_RANGE);
    CHECK_INT(vp_pareto_best(l, a, 3, 9, 0, front), VP_ERR_RANGE);
    l[1] = 2;
    a[2] = (double)INFINITY;
    CHECK_INT(vp_pareto_front(l, a, 3, VP_PARETO_ALL, front, &count), VP_ERR_RANGE);
    CHECK_INT(vp_pareto_front_fixed(l, a, keys, 4, 3, front, &count), VP_ERR_RANGE);
    a[2] = 3;
    CHECK_INT(vp_pareto_best(l, a, 3, (double)NAN, 0, front), VP_ERR_RANGE);
    CHECK(front[0] == 9 && count == 99);
    CHECK_INT(vp_pareto_front_fixed(l, a, keys, 4, 3, front, &count), VP_OK);
    CHECK(count == 2 && front[0] == 0 && front[1] == 2);
    CHECK_INT(vp_pareto_front_fixed(l, a, keys, 6, 3, front, &count), VP_OK);
    CHECK_INT(count, 0);
    front[0] = 1;
    front[1] = 0;
    CHECK_INT(vp_pareto_epsilon(l, a, 3, front, 2, e, front, &count), VP_ERR_RANGE); /* unsorted */
    front[1] = 3;
    CHECK_INT(vp_pareto_epsilon(l, a, 3, front, 2, e, front, &count), VP_ERR_RANGE);
    front[1] = 2;
    e.latency = -1;
    CHECK_INT(vp_pareto_epsilon(l, a, 3, front, 2, e, front, &count), VP_ERR_RANGE);
    e.latency = 1;
    e.relative = 1;
    CHECK_INT(vp_pareto_epsilon(l, a, 3, front, 2, e, front, &count), VP_ERR_RANGE);
    e.relative = 0;
    e.accuracy = (double)NAN;
    CHECK_INT(vp_pareto_epsilon(l, a, 3, front, 2, e, front, &count), VP_ERR_RANGE);
    CHECK(isnan(vp_pareto_area(l, a, 3, front, 2, (double)NAN, 0)));
}
/* Counting through sorted samples equals sorting every resample; membership matches its definition. */
static void test_bootstrap(void) {
    enum { CONFIGS = 5, SAMPLES = 37, ROUNDS = 60 };
    static const double percentiles[] = {50, 95, 99, 0, 100, 33.3, -1}, tail = 50 * (1 - 0.95);
    double latency[CONFIGS * SAMPLES], accuracy[CONFIGS * SAMPLES], l[CONFIGS][ROUNDS], a[CONFIGS][ROUNDS], axis[CONFIGS], mean[CONFIGS], drawn[SAMPLES];
    const size_t bytes = vp_bootstrap_scratch_bytes(CONFIGS, SAMPLES, ROUNDS);
    void *scratch = memory(bytes);
    vp_bootstrap_options options = vp_bootstrap_options_default();
    vp_bootstrap_point points[CONFIGS], before[CONFIGS];
    size_t i, c, k, p, index[SAMPLES], member[CONFIGS];
    vp_random random;
    check_case("bootstrap equals sorting every resample");
    vp_random_seed(&random, 5);
    for (i = 0; i < CONFIGS * SAMPLES; i++) {
        latency[i] = floor(100 * vp_random_double(&random)) / 3 + 10.0 * (double)(i / SAMPLES);
        accuracy[i] = vp_random_double(&random) < 0.3 + 0.1 * (double)(i / SAMPLES);
    }
    options.resamples = ROUNDS;
    options.seed = 123;
    options.accuracy_rule = VP_ACCURACY_PERCENTILE;
    for (p = 0; p < 7; p++) {
        options.percentile = percentiles[p];
        options.budget = 45;
        options.min_accuracy = 0.35;
        CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_OK);
        vp_random_seed(&random, 123);
        memset(member, 0, sizeof member);
        for (k = 0; k < ROUNDS; k++) {
            for (i = 0; i < SAMPLES; i++) index[i] = (size_t)vp_random_below(&random, SAMPLES - 1);
            for (c = 0; c < CONFIGS; c++) {
                vp_statistics s;
                for (i = 0; i < SAMPLES; i++) drawn[i] = accuracy[c * SAMPLES + index[i]];
                mean[c] = a[c][k] = vp_statistics_mean(drawn, SAMPLES);
                for (i = 0; i < SAMPLES; i++) drawn[i] = latency[c * SAMPLES + index[i]];
                vp_statistics_compute(drawn, SAMPLES, drawn, &s);
                axis[c] = l[c][k] = percentiles[p] < 0 ? s.mean : vp_statistics_percentile(drawn, SAMPLES, percentiles[p]);
            }
            for (c = 0; c < CONFIGS; c++) {
                int dominated = 0;
                for (i = 0; i < CONFIGS; i++) dominated |= axis[i] <= axis[c] && mean[i] >= mean[c] && (axis[i] < axis[c] || mean[i] > mean[c]);
                member[c] += !dominated;
            }
        }
        for (c = 0; c < CONFIGS; c++) {
            vp_statistics s;
            double within = 0;
            const double exact = percentiles[p] < 0 ? 1e-12 : 0.0;
            for (k = 0; k < ROUNDS; k++) within += (l[c][k] <= 45 && a[c][k] >= 0.35) / (double)ROUNDS;
            vp_statistics_compute(l[c], ROUNDS, l[c], &s);
            CHECK_NEAR(points[c].latency_low, vp_statistics_percentile(l[c], ROUNDS, tail), exact * 100);
            CHECK_NEAR(points[c].latency_high, vp_statistics_percentile(l[c], ROUNDS, 100 - tail), exact * 100);
            vp_statistics_compute(a[c], ROUNDS, a[c], &s);
            CHECK_NEAR(points[c].accuracy_low, vp_statistics_percentile(a[c], ROUNDS, tail), 1e-12);
            CHECK_NEAR(points[c].accuracy_high, vp_statistics_percentile(a[c], ROUNDS, 100 - tail), 1e-12);
            CHECK_NEAR(points[c].membership, (double)member[c] / ROUNDS, 1e-15);
            CHECK_NEAR(points[c].within_budget, within, 1e-12);
            memcpy(drawn, latency + c * SAMPLES, sizeof drawn);
            vp_statistics_compute(drawn, SAMPLES, drawn, &s);
            CHECK_NEAR(points[c].latency, percentiles[p] < 0 ? s.mean : vp_statistics_percentile(drawn, SAMPLES, percentiles[p]), exact * 100);
        }
    }
    check_case("intervals of bounded accuracies depend on the width of the scores, not on the draws");
    options.accuracy_rule = VP_ACCURACY_BOUNDED;
    for (i = 0; i < SAMPLES; i++) accuracy[i] = 1;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_OK);
    for (c = 0; c < CONFIGS; c++) {
        double low, high;
        CHECK_INT(vp_rate_interval((uint64_t)(points[c].accuracy * SAMPLES + 0.5), SAMPLES, 0.95, &low, &high), VP_OK);
        CHECK(points[c].accuracy_low == low && points[c].accuracy_high == high && high > low);
    }
    memset(before, 0x5A, sizeof before);
    memcpy(points, before, sizeof points);
    check_case("bootstrap rejects bad input");
    options.accuracy_range_high = 0.5;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.accuracy_range_high = 1;
    options.accuracy_rule = (vp_accuracy_rule)2;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.accuracy_rule = VP_ACCURACY_BOUNDED;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes / 2, points), VP_ERR_CAPACITY);
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, NULL, bytes, points), VP_ERR_CAPACITY);
    CHECK_INT(vp_bootstrap(latency, accuracy, 0, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    CHECK_INT(vp_bootstrap(latency, accuracy, SIZE_MAX / 4, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    CHECK(vp_bootstrap_scratch_bytes(SIZE_MAX / 4, SAMPLES, 10) == SIZE_MAX);
    options.percentile = (double)NAN;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.percentile = 50;
    options.budget = (double)NAN;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.budget = 1;
    options.level = 1;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.level = 0.9;
    options.resamples = 0;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    options.resamples = ROUNDS;
    latency[7] = (double)NAN;
    CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_ERR_RANGE);
    CHECK(memcmp(points, before, sizeof points) == 0);
    free(scratch);
}
/* ---------------------------------------------------------------------------------------------- coupling */
/* A synthetic sweep with known answers: configurations are a grid of knobs, and a value is the sum of the truth, an effect of the sample that all configurations share,
 * and noise. */
enum { KNOBS = 3, GRID = 3 * 2 * 4, LEVELS_MOST = 4 };
typedef struct sweep {
    int32_t levels[GRID * KNOBS];
    vp_knobs knobs;
    double grand, main[KNOBS][LEVELS_MOST], pair[KNOBS][KNOBS][LEVELS_MOST][LEVELS_MOST]; /* each sums to 0 over every index */
} sweep;

/* `holes`: number of configurations of the full grid that were not measured */
static void sweep_make(sweep *s, vp_random *random, int coupled, int holes) {
    static const int32_t counts[KNOBS] = {3, 2, 4};
    int32_t a, b, i, j, c, n = 0;
    memset(s, 0, sizeof *s);
    s->grand = 100;
    for (a = 0; a < KNOBS; a++) {
        double sum = 0;
        for (i = 0; i < counts[a]; i++) sum += s->main[a][i] = 10 * normal_draw(random);
        for (i = 0; i < counts[a]; i++) s->main[a][i] -= sum / counts[a];
        for (b = a + 1; b < KNOBS && coupled; b++) { /* product of two vectors that sum to 0 */
            double u[LEVELS_MOST], v[LEVELS_MOST], us = 0, vs = 0;
            for (i = 0; i < counts[a]; i++) us += u[i] = 2 * normal_draw(random);
            for (j = 0; j < counts[b]; j++) vs += v[j] = normal_draw(random);
            for (i = 0; i < counts[a]; i++) for (j = 0; j < counts[b]; j++) s->pair[a][b][i][j] = (u[i] - us / counts[a]) * (v[j] - vs / counts[b]);
        }
    }
    for (c = 0; c < GRID; c++) {
        if (c % 5 == 3 && holes-- > 0) continue;
        s->levels[n * KNOBS] = c / 8;
        s->levels[n * KNOBS + 1] = c / 4 % 2;
        s->levels[n * KNOBS + 2] = c % 4;
        n++;
    }
    s->knobs.levels = s->levels;
    s->knobs.knob_count = KNOBS;
    memcpy(s->knobs.level_counts, counts, sizeof counts);
    s->knobs.config_count = (size_t)n;
}
static double sweep_truth(const sweep *s, size_t config) {
    const int32_t *l = s->levels + config * KNOBS;
    double value = s->grand;
    for (int a = 0; a < KNOBS; a++) {
        value += s->main[a][l[a]];
        for (int b = a + 1; b < KNOBS; b++) value += s->pair[a][b][l[a]][l[b]];
    }
    return value;
}
static void sweep_measure(const sweep *s, vp_random *random, double of_sample, double noise, size_t samples, double *values) {
    for (size_t i = 0; i < samples; i++) {
        const double own = of_sample * normal_draw(random);
        for (size_t c = 0; c < s->knobs.config_count; c++) values[c * samples + i] = sweep_truth(s, c) + own + noise * normal_draw(random);
    }
}
static double effect_truth(const sweep *s, const vp_effect *e) {
    if (e->kind == VP_EFFECT_MEAN) return s->grand;
    if (e->kind == VP_EFFECT_MAIN) return s->main[e->knob_a][e->level_a];
    if (e->kind == VP_EFFECT_STEP) return s->main[e->knob_a][e->level_a] - s->main[e->knob_a][e->level_a - 1];
    return s->pair[e->knob_a][e->knob_b][e->level_a][e->level_b];
}
static void test_effects(void) {
    enum { SAMPLES = 6, EFFECTS = 1 + 5 + 3 + 7 + 6 + 12 + 8 };
    double values[GRID * SAMPLES], shares[KNOBS + 3 + 1], total = 0;
    vp_effect effects[EFFECTS], kept[EFFECTS];
    size_t bytes, i, next;
    void *scratch;
    vp_random random;
    vp_error error;
    sweep s;
    int holes, row = 0;
    check_case("effects of a sweep without noise are exact, even if configurations are missing");
    vp_random_seed(&random, 9);
    for (holes = 0; holes < 4; holes++) {
        sweep_make(&s, &random, 1, holes);
        sweep_measure(&s, &random, 30, 0, SAMPLES, values);
        bytes = vp_effects_scratch_bytes(&s.knobs, 2);
        scratch = memory(bytes);
        CHECK_INT(vp_effect_count(&s.knobs, 2), EFFECTS);
        CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_OK);
        for (i = 0, total = 0; i < KNOBS + 3 + 1; i++) total += shares[i];
        for (i = 1; i < EFFECTS; i++) NEAR(effects[i].estimate, effect_truth(&s, &effects[i]), 0, 1e-10); /* the mean includes the samples' effects */
        if (!holes) NEAR(total, 1, 1e-12, 0);
        CHECK(shares[KNOBS + 3] < 1e-20);
        free(scratch);
    }
    check_case("differences of the last bit are no effects");
    for (i = 0; i < GRID * SAMPLES; i++) values[i] = i / SAMPLES % 2 ? 0.1 + 0.2 : 0.3;
    sweep_make(&s, &random, 1, 0);
    bytes = vp_effects_scratch_bytes(&s.knobs, 2);
    scratch = memory(bytes);
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_OK);
    for (i = 1; i < EFFECTS; i++) CHECK(effects[i].estimate == 0 && effects[i].low == 0 && effects[i].high == 0);
    for (i = 0; i < KNOBS + 4; i++) CHECK(shares[i] == 0);
    free(scratch);
    check_case("effects on a full grid are differences of marginal means");
    sweep_make(&s, &random, 1, 0);
    sweep_measure(&s, &random, 5, 3, SAMPLES, values);
    bytes = vp_effects_scratch_bytes(&s.knobs, 2);
    scratch = memory(bytes);
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_OK);
    for (i = 0; i < EFFECTS; i++) {
        const vp_effect *e = &effects[i];
        double each[SAMPLES];
        vp_mean_interval want;
        if (e->kind == VP_EFFECT_STEP || e->kind == VP_EFFECT_PAIR) continue;
        for (size_t k = 0; k < SAMPLES; k++) {
            double sum = 0, all = 0;
            int n = 0;
            for (size_t c = 0; c < GRID; c++) {
                const int in = e->kind == VP_EFFECT_MEAN || s.levels[c * KNOBS + (size_t)e->knob_a] == e->level_a;
                sum += in ? values[c * SAMPLES + k] : 0;
                n += in;
                all += values[c * SAMPLES + k] / GRID;
            }
            each[k] = sum / n - (e->kind == VP_EFFECT_MEAN ? 0 : all);
        }
        CHECK_INT(vp_paired_t(NULL, each, SAMPLES, 0.95, &want), VP_OK);
        NEAR(e->estimate, want.mean, 0, 1e-10);
        NEAR(e->low, want.low, 0, 1e-9);
        NEAR(e->high, want.high, 0, 1e-9);
        NEAR(e->p, want.p, 1e-6, 1e-12);
    }
    CHECK(effects[1].kind == VP_EFFECT_MAIN && effects[4].kind == VP_EFFECT_STEP && effects[4].level_a == 1 && effects[EFFECTS - 1].knob_b == 2);
    memcpy(kept, effects, sizeof kept);
    check_case("effects reject indistinguishable levels and bad input");
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes / 2, effects, shares, &error), VP_ERR_CAPACITY);
    CHECK_INT(vp_effects(&s.knobs, values, 1, 2, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_RANGE);
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 3, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_RANGE);
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, (double)NAN, scratch, bytes, effects, shares, &error), VP_ERR_RANGE);
    s.knobs.config_count = 9; /* nearly all have the first level of knob 0 */
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_MISMATCH);
    CHECK(strstr(error.text, "order 1") != NULL);
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 1, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_MISMATCH);
    s.knobs.config_count = GRID;
    values[5] = (double)NAN;
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_RANGE);
    values[5] = 1;
    s.levels[4] = 2;
    CHECK_INT(vp_effects(&s.knobs, values, SAMPLES, 2, 0.95, scratch, bytes, effects, shares, &error), VP_ERR_RANGE);
    s.levels[4] = 0;
    CHECK(memcmp(kept, effects, sizeof kept) == 0);
    s.knobs.level_counts[0] = 0;
    CHECK(vp_effect_count(&s.knobs, 2) == 0 && vp_effects_scratch_bytes(&s.knobs, 2) == SIZE_MAX);
    s.knobs.level_counts[0] = 3;
    check_case("neighbours along a knob");
    next = 99;
    sweep_make(&s, &random, 0, 1); /* without (0, 0, 3) */
    CHECK(vp_knob_next(&s.knobs, 0, 2, &next) == VP_OK && next == 1);
    CHECK(vp_knob_next(&s.knobs, 0, 0, &next) == VP_OK && next == 7);
    CHECK(vp_knob_next(&s.knobs, 0, 1, &next) == VP_OK && next == 3);
    CHECK(vp_knob_next(&s.knobs, 2, 2, &next) == VP_ERR_NOT_FOUND && next == 3);
    CHECK(vp_knob_next(&s.knobs, 99, 0, &next) == VP_ERR_RANGE && vp_knob_next(&s.knobs, 0, 3, &next) == VP_ERR_RANGE && next == 3);
    free(scratch);
}
static void test_gain(void) {
    double l1[4] = {1, 2, 3, 4}, l2[4] = {3, 4.5, 4.5, 6}, a1[4] = {0, 1, 0, 1}, a2[4] = {1, 1, 0.5, 1}, root;
    vp_gain gain, kept;
    int row = 0;
    check_case("marginal gain and Fieller's interval");
    CHECK_INT(vp_gain_compute(l1, a1, l2, a2, 4, 0.95, &gain), VP_OK);
    NEAR(gain.gain, 0.375 / 2.0, 1e-14, 0);
    NEAR(gain.latency.mean, 2.0, 1e-14, 0);
    for (root = gain.low; ; root = gain.high) { /* at both ends, the difference a - r l is just significant */
        double rest[4];
        vp_mean_interval t;
        for (int i = 0; i < 4; i++) rest[i] = (a2[i] - a1[i]) - root * (l2[i] - l1[i]);
        CHECK_INT(vp_paired_t(NULL, rest, 4, 0.95, &t), VP_OK);
        NEAR(t.p, 0.05, 1e-6, 0);
        if (root == gain.high) break;
    }
    kept = gain;
    CHECK_INT(vp_gain_compute(l1, a1, l2, a2, 1, 0.95, &gain), VP_ERR_RANGE);
    a2[0] = (double)NAN;
    CHECK_INT(vp_gain_compute(l1, a1, l2, a2, 4, 0.95, &gain), VP_ERR_RANGE);
    CHECK(memcmp(&kept, &gain, sizeof gain) == 0);
    a2[0] = 1;
    l2[3] = -20; /* the latency difference may be 0 */
    CHECK_INT(vp_gain_compute(l1, a1, l2, a2, 4, 0.95, &gain), VP_OK);
    CHECK(gain.low == -HUGE_VAL && gain.high == HUGE_VAL);
    CHECK_INT(vp_gain_compute(l1, a1, l1, a2, 4, 0.95, &gain), VP_OK);
    CHECK(isnan(gain.gain));
}
/* Latencies are lognormal, scores are right or wrong; both are correlated over configurations because the samples are the same. */
static void test_bootstrap_coverage(void) {
    enum { CONFIGS = 4, SAMPLES = 250, ROUNDS = 400 };
    static double latency[CONFIGS * SAMPLES], accuracy[CONFIGS * SAMPLES];
    static const double right[CONFIGS] = {0.4, 0.6, 0.8, 0.65};
    const size_t bytes = vp_bootstrap_scratch_bytes(CONFIGS, SAMPLES, ROUNDS);
    void *scratch = memory(bytes);
    vp_bootstrap_options options = vp_bootstrap_options_default();
    vp_bootstrap_point points[CONFIGS];
    double median = 0, mean = 0, share = 0, front = 0, off = 0, budget = 0;
    vp_random random;
    check_case("coverage: bootstrap of a front; the true front is found");
    vp_random_seed(&random, 1002);
    options.resamples = ROUNDS;
    for (int round = 0; round < repeats; round++) {
        for (int i = 0; i < SAMPLES; i++) {
            const double size = normal_draw(&random), hard = vp_random_double(&random);
            for (int c = 0; c < CONFIGS; c++) {
                latency[c * SAMPLES + i] = 100 * (1 + c) * exp(0.25 * size + 0.1 * normal_draw(&random));
                accuracy[c * SAMPLES + i] = vp_random_below(&random, 1) ? hard < right[c] : vp_random_double(&random) < right[c];
            }
        }
        options.seed = (uint32_t)round;
        options.percentile = 50;
        options.budget = 300;
        CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_OK);
        for (int c = 0; c < CONFIGS; c++) {
            median += points[c].latency_low <= 100 * (1 + c) && 100 * (1 + c) <= points[c].latency_high;
            share += points[c].accuracy_low <= right[c] && right[c] <= points[c].accuracy_high;
        }
        front += points[0].membership > 0.9 && points[1].membership > 0.9 && points[2].membership > 0.9;
        off += points[3].membership < 0.5; /* the last is slower and less accurate than the third */
        budget += points[0].within_budget == 1 && points[3].within_budget == 0;
        options.percentile = -1;
        CHECK_INT(vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points), VP_OK);
        for (int c = 0; c < CONFIGS; c++) {
            const double truth = 100 * (1 + c) * exp((0.25 * 0.25 + 0.01) / 2);
            mean += points[c].latency_low <= truth && truth <= points[c].latency_high;
        }
    }
    check_coverage("P50 of latency by bootstrap", median, CONFIGS * repeats);
    check_coverage("the mean of latency by bootstrap", mean, CONFIGS * repeats);
    check_coverage("accuracy by bootstrap", share, CONFIGS * repeats);
    CHECK(front > 0.9 * repeats && off > 0.9 * repeats && budget == repeats);
    free(scratch);
}
/* A/A and a planted slow-down, with as many samples as the plan requires, 12 comparisons of one family at a time. */
static void test_verdicts(void) {
    enum { FAMILY = 12, MOST = 4000 };
    static double first[MOST], second[MOST];
    const double noise = 0.04, deviation = noise * sqrt(2.0);
    vp_comparison family[FAMILY];
    size_t n = 0, i;
    int round, k, change, counts[3][4];
    vp_random random;
    check_case("A/A gives SAME, 3 %% slower gives SLOWER, with the planned number of samples");
    vp_random_seed(&random, 1005);
    CHECK_INT(vp_compare_plan(deviation, 0.01, 0.03, 0.05 / FAMILY, 0.99, &n), VP_OK);
    CHECK(n > 100 && n <= MOST);
    memset(counts, 0, sizeof counts);
    for (round = 0; round < 9; round++) {
        for (k = 0; k < FAMILY; k++) {
            static const double factor[3] = {1.0, 1.03, 0.97};
            change = (round + k) % 3;
            for (i = 0; i < n; i++) {
                const double size = 100 * exp(0.3 * normal_draw(&random));
                first[i] = size * exp(noise * normal_draw(&random));
                second[i] = size * factor[change] * exp(noise * normal_draw(&random));
            }
            CHECK_INT(vp_compare_paired(first, second, n, VP_SCALE_LOG, 0.01, 0.05 / FAMILY, &family[k]), VP_OK);
        }
        for (k = 0; k < FAMILY; k++) counts[(round + k) % 3][family[k].verdict]++;
    }
    CHECK(counts[0][VP_VERDICT_SAME] >= 35 && counts[1][VP_VERDICT_SLOWER] >= 35 && counts[2][VP_VERDICT_FASTER] >= 35); /* both of 36 */
    check_case("A/A only: SAME in at least 95 of 100; INCONCLUSIVE with too few samples, rarely SLOWER or FASTER");
    CHECK_INT(vp_compare_plan(deviation, 0.01, 0.03, 0.05, 0.99, &n), VP_OK);
    memset(counts, 0, sizeof counts);
    for (round = 0; round < 200; round++) {
        const size_t used = round < 100 ? n : 20;
        vp_comparison c;
        for (i = 0; i < used; i++) {
            first[i] = 100 * exp(noise * normal_draw(&random));
            second[i] = 100 * exp(noise * normal_draw(&random));
        }
        CHECK_INT(vp_compare_paired(first, second, used, VP_SCALE_RELATIVE, 0.01, 0.05, &c), VP_OK);
        counts[round < 100 ? 0 : 1][c.verdict]++;
    }
    CHECK(counts[0][VP_VERDICT_SAME] >= 95);
    CHECK(counts[1][VP_VERDICT_INCONCLUSIVE] >= 85 && counts[1][VP_VERDICT_SLOWER] + counts[1][VP_VERDICT_FASTER] <= 12);
}
static void test_compare_errors(void) {
    double a[3] = {10, 20, 30}, b[3] = {10, 20, 30};
    vp_comparison c, kept;
    size_t n = 7;
    int row = 0;
    check_case("comparisons: cases without noise, and bad input");
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_RELATIVE, 0.01, 0.05, &c), VP_OK); /* no difference and no spread */
    CHECK(c.verdict == VP_VERDICT_INCONCLUSIVE && c.p_difference == 1 && c.p_equivalence == 1 && c.estimate == 0 && c.low != c.low && c.high != c.high);
    b[0] = 11;
    b[1] = 21;
    b[2] = 31;
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_RELATIVE, 0.01, 0.05, &c), VP_OK);
    CHECK(c.verdict == VP_VERDICT_INCONCLUSIVE && c.low != c.low);
    NEAR(c.estimate, 0.05, 1e-15, 0);
    b[0] = 10 * 1.1; /* equal ratios, except for rounding */
    b[1] = 20 * 1.1;
    b[2] = 30 * 1.1;
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_LOG, 0.01, 0.05, &c), VP_OK);
    CHECK(c.verdict == VP_VERDICT_INCONCLUSIVE && c.low != c.low);
    b[0] = 11;
    b[1] = 21;
    b[2] = 31.01;
    CHECK_INT(vp_compare_paired(b, a, 3, VP_SCALE_ABSOLUTE, 0.5, 0.05, &c), VP_OK);
    CHECK_INT(c.verdict, VP_VERDICT_FASTER);
    CHECK_INT(vp_compare_paired(b, a, 3, VP_SCALE_ABSOLUTE, 2, 0.05, &c), VP_OK);
    CHECK_INT(c.verdict, VP_VERDICT_SAME); /* a difference that is certain, and within the margin */
    kept = c;
    CHECK_INT(vp_compare_paired(a, b, 1, VP_SCALE_ABSOLUTE, 2, 0.05, &c), VP_ERR_RANGE);
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_ABSOLUTE, 0, 0.05, &c), VP_ERR_RANGE);
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_ABSOLUTE, (double)NAN, 0.05, &c), VP_ERR_RANGE);
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_ABSOLUTE, 1, 0.5, &c), VP_ERR_RANGE);
    CHECK_INT(vp_compare_paired(a, b, 3, (vp_scale)3, 1, 0.05, &c), VP_ERR_RANGE);
    b[2] = 0;
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_LOG, 1, 0.05, &c), VP_ERR_RANGE);
    CHECK_INT(vp_compare_paired(b, a, 3, VP_SCALE_RELATIVE, 1, 0.05, &c), VP_ERR_RANGE);
    b[2] = (double)NAN;
    CHECK_INT(vp_compare_paired(a, b, 3, VP_SCALE_ABSOLUTE, 1, 0.05, &c), VP_ERR_RANGE);
    CHECK(memcmp(&kept, &c, sizeof c) == 0);
    CHECK_INT(vp_compare_plan(0.05, 0.03, 0.03, 0.05, 0.9, &n), VP_ERR_RANGE);
    CHECK_INT(vp_compare_plan(0.05, 0.01, 0.03, 0.05, 1, &n), VP_ERR_RANGE);
    CHECK_INT(vp_compare_plan(1e9, 1e-3, 1, 0.05, 0.9, &n), VP_ERR_RANGE);
    CHECK_INT(n, 7);
    CHECK_INT(vp_compare_plan(0, 0.01, 0.03, 0.05, 0.9, &n), VP_OK);
    CHECK_INT(n, 2);
    CHECK_INT(vp_compare_plan(0.1, 0.01, 0.03, 0.05, 0.9, &n), VP_OK);
    CHECK_INT(n, 1302); /* 100 (1.96 + 1.6449)^2 = 1299.5, plus a few for t */
    check_case("t rejects bad input");
    vp_mean_interval t;
    CHECK_INT(vp_paired_t(a, b, 3, 0.95, &t), VP_ERR_RANGE);
    CHECK_INT(vp_paired_t(a, a, 1, 0.95, &t), VP_ERR_RANGE);
    CHECK_INT(vp_paired_t(a, a, 3, 1.0, &t), VP_ERR_RANGE);
    uint64_t low = 3, high = 4;
    double coverage = 5;
    CHECK_INT(vp_median_interval(0, 0.95, &low, &high, &coverage), VP_ERR_RANGE);
    CHECK_INT(vp_median_interval(UINT64_C(1) << 53, 0.95, &low, &high, &coverage), VP_ERR_RANGE);
    CHECK_INT(vp_median_interval(9, 1, &low, &high, &coverage), VP_ERR_RANGE);
    CHECK_INT(vp_median_interval(5, 0.95, &low, &high, &coverage), VP_ERR_MISMATCH);
    CHECK(low == 3 && high == 4 && coverage == 5);
}
int main(void) {
    repeats_asked();
    RUN_TESTS(test_pareto_golden, test_intervals_golden, test_tests_golden, test_statistics_golden, test_special,
              test_adjust, test_epsilon, test_front_errors, test_bootstrap, test_effects, test_gain,
              test_bootstrap_coverage, test_verdicts, test_compare_errors);
    return check_done("test_analysis");
}
