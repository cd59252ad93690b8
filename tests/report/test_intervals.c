/* test_intervals.c: intervals of accuracies equal published worked examples and the exact ones they generalise. They always have a width, and their coverage over 1 to 50
 * samples and all rates is at least that of the table below. Student's interval, which they replace, fails the same limits. */
#include "vlmprof_statistics.h"
#include "vlmprof_score.h"
#include "vlmprof_analysis.h"
#include "support/check.h"

enum { MOST = 4000 };
static double scratch[2 * MOST + 16];

static double power(double base, int exponent) { return exponent ? pow(base, exponent) : 1; }
static double choose(int n, int a, int b) { /* log of n! / (a! b! (n - a - b)!) */
    return lgamma(n + 1.0) - lgamma(a + 1.0) - lgamma(b + 1.0) - lgamma(n - a - b + 1.0);
}
/* n values: `more` of them are 1, `less` are -1, the rest 0 */
static const double *made(int n, int more, int less) {
    static double values[MOST];
    for (int i = 0; i < n; i++) values[i] = i < more ? 1 : i < more + less ? -1 : 0;
    return values;
}
static vp_bounded_interval bounded(const double *values, int n, double low, double high, double level) {
    vp_bounded_interval interval = {0};
    CHECK_INT(vp_bounded_mean(NULL, values, (size_t)n, low, high, level, scratch, sizeof scratch, &interval), VP_OK);
    return interval;
}
static void test_published(void) {
    static const struct { uint64_t hits, count; double low, high; } rates[] = { /* R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I */
        {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    /* Newcombe, ibid. 2635-2650, table II, and Tango, ibid. 891-908: cells f and g, samples, the score interval */
    static const struct { uint64_t f, g, count; double low, high; } pairs[] = {{12, 2, 50, 0.0611, 0.3447}, {0, 0, 54, -0.0664, 0.0664}, {1, 0, 44, -0.0594, 0.1181}};
    double low, high;
    check_case("Wilson's interval matches Newcombe's table");
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        CHECK_INT(vp_rate_interval(rates[i].hits, rates[i].count, 0.95, &low, &high), VP_OK);
        CHECK_NEAR(low, rates[i].low, 5.1e-5);
        CHECK_NEAR(high, rates[i].high, 5.1e-5);
    }
    check_case("Tango's interval matches Newcombe's table and Tango's example");
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        CHECK_INT(vp_rate_difference(pairs[i].g, pairs[i].f, pairs[i].count, 0.95, &low, &high), VP_OK);
        CHECK_NEAR(low, pairs[i].low, 5.1e-5);
        CHECK_NEAR(high, pairs[i].high, 5.1e-5);
    }
    for (uint64_t n = 1; n < 2000; n += n / 2 + 1) { /* without discordant samples: +-z^2 / (n + z^2) */
        const double z = vp_normal_quantile(0.975);
        CHECK_INT(vp_rate_difference(0, 0, n, 0.95, &low, &high), VP_OK);
        CHECK_NEAR(high, z * z / ((double)n + z * z), 1e-12);
        CHECK(low == -high);
    }
}
static void test_bounded_exact(void) {
    check_case("the bounded mean of 0 and 1 equals Clopper and Pearson's interval");
    for (int n = 1; n <= 40; n += 3) {
        for (int hits = 0; hits <= n; hits++) {
            const vp_bounded_interval interval = bounded(made(n, hits, 0), n, 0, 1, 0.95);
            if (hits) CHECK_NEAR(vp_statistics_beta(hits, n - hits + 1, interval.low, 1 - interval.low), 0.025, 1e-9); else CHECK(interval.low < 1e-12);
            if (hits < n) CHECK_NEAR(vp_statistics_beta(n - hits, hits + 1, 1 - interval.high, interval.high), 0.025, 1e-9); else CHECK(interval.high > 1 - 1e-12);
        }
    }
    check_case("the bounded mean matches random weights");
    {
        static const double values[7] = {0.3, 0.6, 0.6, 1, 0, 0.9, 0.3};
        enum { DRAWS = 40000 };
        static double sums[DRAWS];
        const vp_bounded_interval interval = bounded(values, 7, 0, 1, 0.9);
        vp_random random;
        vp_random_seed(&random, 5);
        for (int draw = 0; draw < DRAWS; draw++) {
            double whole = 0, sum = 0;
            for (int i = 0; i < 8; i++) {
                const double weight = -log(1 - vp_random_double(&random));
                whole += weight;
                sum += weight * (i < 7 ? values[i] : 1);
            }
            sums[draw] = sum / whole;
        }
        vp_sort_double(sums, DRAWS);
        CHECK_NEAR(interval.high, sums[DRAWS * 95 / 100], 0.004); /* 3 standard errors of that quantile */
    }
    check_case("the saddlepoint formula continues the recurrence; for many samples the width is Student's");
    for (int n = 200; n <= 3200; n *= 2) {
        static double values[MOST];
        vp_random random;
        double low, high, width;
        vp_random_seed(&random, (uint32_t)n);
        for (int i = 0; i < n; i++) values[i] = (double)vp_random_below(&random, 10) / 10;
        vp_bounded_interval interval = bounded(values, n, 0, 1, 0.95);
        CHECK_INT(vp_statistics_mean_interval(values, (size_t)n, 0.95, &low, &high), VP_OK);
        width = (interval.high - interval.low) / (high - low);
        check_note(width > 1 && width < 1 + 3 / sqrt((double)n), __FILE__, __LINE__, "%d samples: %.5f of Student's width", n, width);
    }
    for (int n = 120; n <= 180; n += 4) { /* a quarter on one side: the method changes at 148 values (2^12 pairs) */
        const double here = bounded(made(n, n / 4, n / 4), n, -1, 1, 0.95).high, next = bounded(made(n + 4, n / 4 + 1, n / 4 + 1), n + 4, -1, 1, 0.95).high;
        check_note(fabs(here / next - sqrt((n + 4.0) / n)) < 1e-3, __FILE__, __LINE__, "%d samples: %.6f, then %.6f", n, here, next); /* 1 / sqrt(n) */
    }
}
/* The tail at the mean itself is between the tails just above and below it. */
static void test_bounded_middle(void) {
    static double values[MOST], none[MOST];
    check_case("the saddlepoint formula has no step at the mean");
    for (int n = 200; n <= 800; n *= 2) {
        double sum = 1, p[3]; /* including the end of the range: the mean of the tail's weights */
        for (int i = 0; i < n; i++) sum += values[i] = i % 10 ? 0.02 : 0.9;
        for (int k = 0; k < 3; k++) {
            vp_comparison comparison;
            CHECK_INT(vp_compare_accuracy(none, values, (size_t)n, 0, 1, sum / (n + 1) * (1 + 0.0005 * (k - 1)), 0.05, scratch, sizeof scratch, &comparison), VP_OK);
            p[k] = comparison.p_equivalence;
        }
        check_note(p[0] > p[2] && fabs(p[1] - 0.5 * (p[0] + p[2])) < 1e-5 * p[1], __FILE__, __LINE__, "%d samples: %.6f, %.6f, %.6f", n, p[0], p[1], p[2]);
    }
}
static void test_properties(void) {
    check_case("every interval has a width and is in the range; swapping sides mirrors it; more samples narrow it");
    for (int n = 1; n <= 30; n++) {
        for (int f = 0; f <= n; f++) {
            for (int g = 0; f + g <= n; g++) {
                double low, high, swapped_low, swapped_high, twice_low, twice_high;
                CHECK_INT(vp_rate_difference((uint64_t)g, (uint64_t)f, (uint64_t)n, 0.95, &low, &high), VP_OK);
                CHECK_INT(vp_rate_difference((uint64_t)f, (uint64_t)g, (uint64_t)n, 0.95, &swapped_low, &swapped_high), VP_OK);
                CHECK_INT(vp_rate_difference((uint64_t)(2 * g), (uint64_t)(2 * f), (uint64_t)(2 * n), 0.95, &twice_low, &twice_high), VP_OK);
                CHECK(low == -swapped_high && high == -swapped_low);
                CHECK(low >= -1 && high <= 1 && high - low > 0.01 && twice_high - twice_low < high - low);
                CHECK(low <= (f - g) / (double)n && (f - g) / (double)n <= high);
                if (n % 5) continue;
                vp_bounded_interval one = bounded(made(n, f, g), n, -1, 1, 0.95);
                vp_bounded_interval other = bounded(made(n, g, f), n, -1, 1, 0.95);
                CHECK(fabs(one.low + other.high) < 1e-11 && one.low >= -1 && one.high <= 1 && one.high - one.low > 0.01);
                CHECK((one.p < 0.05 - 1e-9) == (one.low > 1e-9 || one.high < -1e-9) || fabs(one.p - 0.05) < 1e-6);
            }
        }
    }
    check_case("Wilson's interval computed by hand, and at its ends");
    {
        double low = 7, high = 7;
        CHECK_INT(vp_rate_interval(8, 10, 0.95, &low, &high), VP_OK); /* (0.8 + z2/20 -+ ...) / (1 + z2/10) */
        CHECK_NEAR(low, 0.49016247153664183, 1e-12);
        CHECK_NEAR(high, 0.9433178485456247, 1e-12);
        CHECK_INT(vp_rate_interval(0, 5, 0.95, &low, &high), VP_OK);
        CHECK_NEAR(low, 0, 0);
        CHECK_INT(vp_rate_interval(5, 5, 0.95, &low, &high), VP_OK);
        CHECK_NEAR(high, 1, 0);
    }
    check_case("intervals reject invalid input");
    {
        double low = 7, high = 7, values[2] = {0.5, 1.5};
        vp_bounded_interval interval;
        interval.low = 7;
        CHECK_INT(vp_rate_interval(2, 1, 0.95, &low, &high), VP_ERR_RANGE);
        CHECK_INT(vp_rate_interval(0, 0, 0.95, &low, &high), VP_ERR_RANGE);
        CHECK_INT(vp_rate_difference(1, 2, 2, 0.95, &low, &high), VP_ERR_RANGE);
        CHECK_INT(vp_rate_difference(1, 1, 2, 1, &low, &high), VP_ERR_RANGE);
        CHECK(vp_rate_difference_p(0, 0, 0, 0) != 0 && isnan(vp_rate_difference_p(0, 0, 3, 1.5)));
        CHECK_INT(vp_bounded_mean(NULL, values, 2, 0, 1, 0.95, scratch, sizeof scratch, &interval), VP_ERR_RANGE);
        CHECK_INT(vp_bounded_mean(NULL, values, 1, 1, 0, 0.95, scratch, sizeof scratch, &interval), VP_ERR_RANGE);
        CHECK_INT(vp_bounded_mean(NULL, values, 0, 0, 1, 0.95, scratch, sizeof scratch, &interval), VP_ERR_RANGE);
        CHECK_INT(vp_bounded_mean(NULL, values, 1, 0, 1, 0.95, scratch, 8, &interval), VP_ERR_CAPACITY);
        CHECK_INT(vp_accuracy_interval(values, values, 2, 0, 1, 0.95, scratch, sizeof scratch, &interval), VP_ERR_RANGE);
        CHECK(low == 7 && high == 7 && interval.low == 7);
    }
}
/* ---- coverage, as a sum over all outcomes */
enum { WILSON_OR_TANGO, BOUNDED, STUDENT, METHODS };
static const char *const NAMES[METHODS] = {"score", "bounded", "student"};
struct coverage { double sum, least, count, under, width; };
static void coverage_add(struct coverage *all, double held, double width) {
    if (!(all->count > 0) || held < all->least) all->least = held;
    all->sum += held;
    all->width += width;
    all->count++;
    all->under += held < 0.93;
}
static void coverage_print(const char *of, int method, const struct coverage *all) {
    printf("%-24s %-8s mean %.4f  least %.4f  under 0.93: %5.2f %%  width %.4f\n", of, NAMES[method], all->sum / all->count, all->least,
           100 * all->under / all->count, all->width / all->count);
}
static void ends(int method, int n, int f, int g, int is_pair, double *low, double *high) {
    if (method == WILSON_OR_TANGO && is_pair) vp_rate_difference((uint64_t)g, (uint64_t)f, (uint64_t)n, 0.95, low, high);
    else if (method == WILSON_OR_TANGO) vp_rate_interval((uint64_t)f, (uint64_t)n, 0.95, low, high);
    else if (method == BOUNDED) {
        const vp_bounded_interval interval = bounded(made(n, f, g), n, is_pair ? -1 : 0, 1, 0.95);
        *low = interval.low;
        *high = interval.high;
    } else {
        *low = *high = (f - g) / (double)n;
        if (n > 1) vp_statistics_mean_interval(made(n, f, g), (size_t)n, 0.95, low, high);
    }
}
static struct coverage rate_coverage(int method) {
    struct coverage all = {0, 0, 0, 0, 0};
    for (int n = 1; n <= 50; n++) {
        double low[51], high[51];
        for (int k = 0; k <= n; k++) ends(method, n, k, 0, 0, &low[k], &high[k]);
        for (int step = 0; step <= 100; step++) {
            const double rate = step / 100.0;
            double held = 0, width = 0;
            for (int k = 0; k <= n; k++) {
                const double chance = exp(choose(n, k, 0)) * power(rate, k) * power(1 - rate, n - k);
                held += low[k] <= rate + 1e-9 && high[k] >= rate - 1e-9 ? chance : 0;
                width += chance * (high[k] - low[k]);
            }
            coverage_add(&all, held, width);
        }
    }
    return all;
}
static struct coverage pair_coverage(int method) {
    static double low[51][51], high[51][51];
    struct coverage all = {0, 0, 0, 0, 0};
    for (int n = 1; n <= 50; n += n < 8 ? 1 : n < 20 ? 4 : 10) {
        for (int f = 0; f <= n; f++) for (int g = 0; f + g <= n; g++) ends(method, n, f, g, 1, &low[f][g], &high[f][g]);
        for (int i = 0; i <= 20; i++) {
            for (int k = 0; i + k <= 20; k++) {
                const double more = i / 20.0, less = k / 20.0, rest = i + k == 20 ? 0 : 1 - more - less;
                double held = 0, width = 0;
                for (int f = 0; f <= n; f++) {
                    for (int g = 0; f + g <= n; g++) {
                        const double chance = exp(choose(n, f, g)) * power(more, f) * power(less, g) * power(rest, n - f - g);
                        held += low[f][g] <= more - less + 1e-9 && high[f][g] >= more - less - 1e-9 ? chance : 0;
                        width += chance * (high[f][g] - low[f][g]);
                    }
                }
                coverage_add(&all, held, width);
            }
        }
    }
    return all;
}
/* Random scores in tenths: right at one rate, wrong at another, otherwise anything in between. */
static struct coverage graded_coverage(int method) {
    struct coverage all = {0, 0, 0, 0, 0};
    vp_random random;
    vp_random_seed(&random, 11);
    for (int n = 1; n <= 50; n += n < 8 ? 2 : 14) {
        for (int i = 0; i <= 10; i += 2) {
            for (int k = 0; i + k <= 10; k += 2) {
                const double truth = i / 10.0 + 0.5 * (10 - i - k) / 10.0;
                double held = 0, width = 0;
                enum { ROUNDS = 200 };
                for (int round = 0; round < ROUNDS; round++) {
                    double values[50], sum = 0, low, high;
                    for (int j = 0; j < n; j++) {
                        const int kind = (int)vp_random_below(&random, 9);
                        values[j] = kind < i ? 1 : kind < i + k ? 0 : (double)(1 + (int)vp_random_below(&random, 8)) / 10;
                        sum += values[j];
                    }
                    low = high = sum / n;
                    if (method == BOUNDED) {
                        const vp_bounded_interval interval = bounded(values, n, 0, 1, 0.95);
                        low = interval.low;
                        high = interval.high;
                    } else if (n > 1) vp_statistics_mean_interval(values, (size_t)n, 0.95, &low, &high);
                    held += (low <= truth + 1e-9 && high >= truth - 1e-9) / (double)ROUNDS;
                    width += (high - low) / ROUNDS;
                }
                coverage_add(&all, held, width);
            }
        }
    }
    return all;
}
/* Limits by measurement. Score: a sample of 1 covers 0.8 at worst. The bounded mean reaches its level everywhere. Newcombe's method 10, measured once over 1 to 20 pairs
 * next to Tango's: mean 0.944 against 0.970, below 0.93 in 24 % of the rates against 6 %. The bounded mean of pairs is safe but a fifth wider than Tango's. So right or
 * wrong answers use Tango's, and McNemar's exact test must also agree before anything is called worse. */
static void test_coverage(void) {
    static const struct { const char *name; struct coverage (*measure)(int); int first; double mean, least[METHODS]; } tables[] = {
        {"one rate, 1-50", rate_coverage, WILSON_OR_TANGO, 0.95, {0.79, 0.95, 0}},
        {"pairs, 1-50", pair_coverage, WILSON_OR_TANGO, 0.95, {0.79, 0.95, 0}},
        {"tenths, 1-50, drawn", graded_coverage, BOUNDED, 0.95, {0, 0.91, 0}}}; /* 200 rounds: 0.91 is 2.6 standard errors below 0.95 */
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        check_case("coverage of %s", tables[i].name);
        for (int method = tables[i].first; method < METHODS; method++) {
            const struct coverage all = tables[i].measure(method);
            coverage_print(tables[i].name, method, &all);
            if (method == STUDENT) CHECK(all.sum / all.count < 0.92 && all.least < 0.1); /* the method used before would not pass */
            else CHECK(all.sum / all.count >= tables[i].mean && all.least >= tables[i].least[method] && all.under / all.count <= 0.08);
        }
    }
}
static void test_compare(void) {
    double first[MOST], second[MOST];
    vp_comparison c;
    size_t n;
    check_case("equal answers give SAME only if there are enough of them; verdicts follow the printed interval");
    for (int i = 0; i < MOST; i++) first[i] = second[i] = i % 2;
    CHECK_INT(vp_compare_accuracy(first, second, 1, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_OK);
    CHECK_INT(c.verdict, VP_VERDICT_INCONCLUSIVE);
    CHECK_INT(vp_compare_accuracy(first, second, 380, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_OK);
    CHECK(c.verdict == VP_VERDICT_INCONCLUSIVE && c.high > 0.01 && c.p_difference == 1);
    CHECK_INT(vp_compare_accuracy(first, second, 381, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_OK);
    CHECK(c.verdict == VP_VERDICT_SAME && c.high < 0.01 && c.low > -0.01);
    for (int i = 0; i < MOST; i++) first[i] = second[i] = 0.3;
    for (size_t k = 1; k <= 800; k = k * 2 + 1) {
        CHECK_INT(vp_compare_accuracy(first, second, k, 0, 1, 0.02, 0.05, scratch, sizeof scratch, &c), VP_OK);
        CHECK((c.verdict == VP_VERDICT_SAME) == (c.low > -0.02 && c.high < 0.02) && c.high > c.low);
    }
    for (int more = 0; more <= 40; more++) {
        for (int i = 0; i < 40; i++) { first[i] = 0; second[i] = i < more; }
        CHECK_INT(vp_compare_accuracy(first, second, 40, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_OK);
        CHECK((c.verdict == VP_VERDICT_SLOWER) == (c.low > 0));
        CHECK((c.verdict == VP_VERDICT_SLOWER) == (more >= 6)); /* McNemar: 2 / 2^6 = 0.031 */
    }
    check_case("comparisons of accuracies reject values outside their range");
    {
        const vp_comparison kept = c;
        first[0] = 0.5;
        CHECK_INT(vp_compare_accuracy(first, second, 40, 0, 1, 0.01, 0.05, scratch, 8, &c), VP_ERR_CAPACITY);
        first[0] = 1.5;
        CHECK_INT(vp_compare_accuracy(first, second, 40, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_ERR_RANGE);
        first[0] = 0;
        CHECK_INT(vp_compare_accuracy(first, second, 0, 0, 1, 0.01, 0.05, scratch, sizeof scratch, &c), VP_ERR_RANGE);
        CHECK_INT(vp_compare_accuracy(first, second, 40, 0, 1, 0, 0.05, scratch, sizeof scratch, &c), VP_ERR_RANGE);
        CHECK_INT(vp_compare_accuracy(first, second, 40, 0, 1, 0.01, 0.5, scratch, sizeof scratch, &c), VP_ERR_RANGE);
        CHECK(memcmp(&kept, &c, sizeof c) == 0);
    }
    check_case("the plan requires enough samples if no pair differs");
    CHECK_INT(vp_compare_accuracy_plan(0, 1, 1, 0.01, 0.02, 0.05, 0.95, &n), VP_OK);
    CHECK_INT(n, 381);
    CHECK_INT(vp_compare_accuracy_plan(0, 1, 0, 0.01, 0.02, 0.05, 0.95, &n), VP_OK);
    CHECK_INT(n, 368);
    CHECK_INT(vp_compare_accuracy_plan(0.3, 1, 1, 0.01, 0.02, 0.05, 0.95, &n), VP_OK);
    CHECK(n > 381 + 10000);
    CHECK_INT(vp_compare_accuracy_plan(0, 1, 1, 2, 3, 0.05, 0.95, &n), VP_ERR_RANGE);
}
static void test_effects(void) {
    enum { CONFIGS = 4, SAMPLES = 5 };
    static const int32_t levels[CONFIGS * 2] = {0, 0, 0, 1, 1, 0, 1, 1};
    double values[CONFIGS * SAMPLES];
    vp_effect effects[16];
    vp_knobs knobs = {.levels = levels, .knob_count = 2};
    knobs.level_counts[0] = knobs.level_counts[1] = 2;
    knobs.config_count = CONFIGS;
    check_case("effects of equal scores have intervals, within the range of the scores' weights");
    for (int i = 0; i < CONFIGS * SAMPLES; i++) values[i] = 1;
    size_t bytes = vp_effects_bounded_scratch_bytes(&knobs, SAMPLES, 2);
    void *room = malloc(bytes);
    if (!CHECK(room != NULL)) return;
    CHECK_INT(vp_effects(&knobs, values, SAMPLES, 2, 0.95, room, bytes, effects, NULL, NULL), VP_OK);
    CHECK(effects[1].high - effects[1].low < 1e-9); /* Student's interval has no width */
    CHECK_INT(vp_effects_bounded(&knobs, values, SAMPLES, 2, 0, 1, 0.95, room, bytes, effects, NULL), VP_OK);
    for (size_t i = 0; i < vp_effect_count(&knobs, 2); i++) {
        /* a mean is in 0..1, a main effect and an interaction in -0.5..0.5, a step in -1..1: upper limits of no difference at 5 samples */
        const double range = effects[i].kind == VP_EFFECT_MAIN || effects[i].kind == VP_EFFECT_PAIR ? 0.5 : 1;
        const double limit = range * (1 - pow(0.025, 1.0 / SAMPLES));
        if (effects[i].kind == VP_EFFECT_MEAN) CHECK(effects[i].high > 1 - 1e-9 && fabs(effects[i].low - (1 - limit)) < 1e-9);
        else CHECK(fabs(effects[i].high - limit) < 1e-9 && fabs(effects[i].low + limit) < 1e-9 && effects[i].p > 0.99);
    }
    values[3] = 2;
    CHECK_INT(vp_effects_bounded(&knobs, values, SAMPLES, 2, 0, 1, 0.95, room, bytes, effects, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_effects_bounded(&knobs, values, SAMPLES, 2, 0, 2, 0.95, room, 64, effects, NULL), VP_ERR_CAPACITY);
    free(room);
}
static void test_resolution(void) {
    /* scipy.optimize.brentq on the rule, scipy.stats.norm and t */
    static const struct { size_t count; double discordance, variation, accuracy, mean, p50; } table[] = {
        {500, 0.2, 0.3, 0.055899692822084755, 0.053208333182439366, 0.06668675620054469},
        {100, 0.5, 0.05, 0.19577555292507248, 0.019908293293699295, 0.02495134543481669},
        {1000, 1, 0.1, 0.08848949811378531, 0.012535187722216797, 0.015710527986157994},
        {20, 0.5, 0.1, 0.4173224726960702, 0.09093372655413191, 0.11396852504907543}};
    vp_resolution r, poison;
    check_case("resolution: the rules, solved by scipy");
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(vp_statistics_resolution(table[i].count, table[i].discordance, table[i].variation, &r), VP_OK);
        CHECK_NEAR(r.accuracy, table[i].accuracy, 1e-9);
        CHECK_NEAR(r.mean, table[i].mean, 1e-12);
        CHECK_NEAR(r.p50, table[i].p50, 1e-12);
    }
    check_case("resolution: too few samples, and bad arguments");
    CHECK_INT(vp_statistics_resolution(49, 0.2, 0.1, &r), VP_OK);
    CHECK(isnan(r.accuracy) && r.mean > 0 && r.p50 > r.mean);
    CHECK_INT(vp_statistics_resolution(1, 1, 0.1, &r), VP_OK);
    CHECK(isnan(r.accuracy) && isnan(r.mean) && isnan(r.p50));
    CHECK_INT(vp_statistics_resolution(0, 0, 0, &r), VP_OK);
    CHECK(isnan(r.accuracy) && isnan(r.mean) && isnan(r.p50));
    CHECK_INT(vp_statistics_resolution(SIZE_MAX, 1, 0, &r), VP_OK);
    CHECK(r.accuracy > 0 && r.accuracy < 1e-8 && r.mean == 0);
    memset(&poison, 0xA5, sizeof poison);
    r = poison;
    CHECK_INT(vp_statistics_resolution(500, -0.1, 0.1, &r), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_resolution(500, 1.1, 0.1, &r), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_resolution(500, (double)NAN, 0.1, &r), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_resolution(500, 0.5, -0.1, &r), VP_ERR_RANGE);
    CHECK_INT(vp_statistics_resolution(500, 0.5, (double)INFINITY, &r), VP_ERR_RANGE);
    CHECK(memcmp(&r, &poison, sizeof r) == 0);
}
int main(void) {
    RUN_TESTS(test_published, test_bounded_exact, test_bounded_middle, test_properties, test_coverage, test_compare,
              test_effects, test_resolution);
    return check_done("test_intervals");
}
