/* test_analysis.c: fronts, regression, tests and recalibration equal golden/analysis (numpy, scipy, exact rationals); special functions equal
 * scipy's; bootstrap, epsilon fronts, signs and leaving out equal the slow way; on sweeps with a known truth the truth is found within the stated
 * intervals (VLMPROF_REPEATS=1000 for the full count). */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"

/* ---------------------------------------------------------------------------------------------- golden files */
typedef struct document { char *text; vp_json_node *nodes; vp_json json; } document;

static int document_open(document *d, const char *name) {
    size_t bytes = 0, needed = 0;
    memset(d, 0, sizeof *d);
    d->text = check_read(check_golden(name), &bytes);
    if (!d->text) return 0;
    vp_json_parse(d->text, bytes, NULL, 0, NULL, &needed, NULL);
    d->nodes = (vp_json_node *)malloc((needed + 1) * sizeof *d->nodes);
    return d->nodes && vp_json_parse(d->text, bytes, d->nodes, needed, &d->json, &needed, NULL) == VP_OK;
}
static void document_close(document *d) {
    free(d->text);
    free(d->nodes);
}
/* a number; NaN for null and for what is not there */
static double number(const document *d, uint32_t object, const char *key) {
    double value = (double)NAN;
    vp_json_to_double(&d->json, vp_json_get(&d->json, object, key), &value);
    return value;
}
/* all numbers under a member, nested or not; malloc'ed */
static double *numbers(const document *d, uint32_t object, const char *key, size_t *count) {
    const uint32_t at = vp_json_get(&d->json, object, key);
    const uint32_t end = at == VP_JSON_NONE ? 0 : d->nodes[at].end;
    double *out = (double *)malloc(((size_t)end + 1) * sizeof *out);
    size_t n = 0;
    uint32_t i;
    for (i = at; i < end; i++) if (vp_json_to_double(&d->json, i, &out[n]) == VP_OK) n++;
    *count = n;
    return out;
}
static int flag(const document *d, uint32_t object, const char *key) {
    const uint32_t at = vp_json_get(&d->json, object, key);
    return at != VP_JSON_NONE && d->nodes[at].type == VP_JSON_TRUE;
}
#define ROWS(d, list, i) for (i = (list) + 1; (list) != VP_JSON_NONE && i < (d)->nodes[list].end; i = (d)->nodes[i].end)

/* equal within `relative` of the expected value, or within `absolute`; NaN equals only NaN */
static int near(double got, double want, double relative, double absolute) {
    if (want != want) return got != got;
    return fabs(got - want) <= relative * fabs(want) || fabs(got - want) <= absolute;
}
#define NEAR(got, want, relative, absolute) \
    check_note(near(got, want, relative, absolute), __FILE__, __LINE__, "row %d: %s is %.17g, expected %.17g", row, #got, (double)(got), (double)(want))

static void *memory(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p || bytes == SIZE_MAX) { printf("no memory\n"); exit(1); }
    memset(p, 0xA5, bytes);
    return p;
}
static double *doubles(size_t count) { return (double *)memory(count * sizeof(double)); }

static void test_pareto_golden(void) {
    static const struct { const char *key; vp_pareto_rule rule; } rules[] = {{"front_keep_duplicates", VP_PARETO_ALL},
        {"front_first_of_duplicates", VP_PARETO_FIRST}, {"weakly_undominated", VP_PARETO_WEAK}, {"reference_sweep", VP_PARETO_SWEEP}};
    document d;
    uint32_t set;
    int row = 0;
    check_case("pareto.json: index lists equal");
    CHECK(document_open(&d, "analysis/pareto.json"));
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
        free(points);
        free(latency);
        free(accuracy);
        free(front);
        row++;
    }
    CHECK_INT(row, 36);
    document_close(&d);
}

/* the columns of a set's terms: "1", "x1", "x1^2", "x1*x2" */
static double term(const char *name, size_t bytes, const double *x) {
    double value = 1.0;
    size_t i;
    for (i = 0; i < bytes; i++) {
        if (name[i] == 'x') value *= x[name[i + 1] - '1'];
        if (name[i] == '^') value *= x[name[i - 1] - '1']; /* only squares */
    }
    return value;
}

static void test_least_squares_golden(void) {
    document d;
    uint32_t list, set, t;
    int row = 0;
    check_case("regression.json: least squares against exact rationals, 1e-9");
    CHECK(document_open(&d, "analysis/regression.json"));
    list = vp_json_get(&d.json, 0, "least_squares");
    ROWS(&d, list, set) {
        const uint32_t terms = vp_json_get(&d.json, set, "terms"), exact = vp_json_get(&d.json, set, "exact");
        const size_t columns = d.nodes[terms].count;
        size_t cells, rows, n, i, j;
        double *raw = numbers(&d, set, "x", &cells), *y = numbers(&d, set, "y", &rows), *want = numbers(&d, exact, "coefficients", &n);
        double *fitted = numbers(&d, exact, "fitted", &i), *x = doubles(rows * columns), *predicted = doubles(rows), *scratch = doubles(rows), most = 0.0;
        vp_linear_options options = vp_linear_options_default();
        vp_linear_errors e;
        vp_linear fit;
        CHECK(i == rows && n == columns);
        j = 0;
        ROWS(&d, terms, t) {
            for (i = 0; i < rows; i++) x[i * columns + j] = term(d.text + d.nodes[t].start, (size_t)d.nodes[t].bytes, raw + i * (cells / rows));
            j++;
        }
        CHECK_INT(vp_linear_compute(x, y, rows, columns, &options, &fit, NULL), VP_OK);
        for (j = 0; j < columns; j++) NEAR(fit.coefficient[j], want[j], 1e-9, 0);
        for (i = 0; i < rows; i++) {
            predicted[i] = vp_linear_value(&fit, x + i * columns);
            most = fmax(most, fabs(y[i]));
        }
        for (i = 0; i < rows; i++) NEAR(predicted[i], fitted[i], 1e-9, 1e-9 * most);
        CHECK_INT(vp_linear_errors_compute(y, predicted, rows, scratch, &e), VP_OK);
        NEAR(e.r2, number(&d, exact, "r2"), 1e-9, 0);
        NEAR(e.mae, number(&d, exact, "mae"), 1e-9, 1e-9 * most);
        NEAR(e.rmse, number(&d, exact, "rmse"), 1e-9, 1e-9 * most);
        NEAR(e.mape, number(&d, exact, "mape"), 1e-9, 1e-9 * most);
        CHECK(fit.condition >= 1.0 && fit.used_columns == (int32_t)columns);
        free(raw);
        free(y);
        free(want);
        free(fitted);
        free(x);
        free(predicted);
        free(scratch);
        row++;
    }
    CHECK_INT(row, 60);
    document_close(&d);
}

static void test_nonnegative_golden(void) {
    unsigned char signs[VP_LINEAR_COLUMNS_LIMIT];
    document d;
    uint32_t list, set;
    int row = 0;
    check_case("regression.json: non-negative least squares, 1e-9, zeros exactly 0");
    memset(signs, 1, sizeof signs);
    CHECK(document_open(&d, "analysis/regression.json"));
    list = vp_json_get(&d.json, 0, "nonnegative_least_squares");
    ROWS(&d, list, set) {
        size_t cells, rows, columns, i, j;
        double *a = numbers(&d, set, "a", &cells), *b = numbers(&d, set, "b", &rows), *want = numbers(&d, set, "x_exact", &columns), square = 0.0;
        vp_linear_options options = vp_linear_options_default();
        vp_linear fit;
        options.nonnegative = signs;
        CHECK_INT(vp_linear_compute(a, b, rows, columns, &options, &fit, NULL), VP_OK);
        for (j = 0; j < columns; j++) {
            if (want[j] > 0.0) NEAR(fit.coefficient[j], want[j], 1e-9, 0);
            else CHECK(fit.coefficient[j] == 0.0 && fit.state[j] == VP_LINEAR_AT_ZERO && fit.error[j] == 0.0);
        }
        for (i = 0; i < rows; i++) square += pow(b[i] - vp_linear_value(&fit, a + i * columns), 2);
        NEAR(sqrt(square), number(&d, set, "residual_norm"), 1e-9, 0);
        if (fit.degrees > 0.0) NEAR(fit.sigma * sqrt(fit.degrees), number(&d, set, "residual_norm"), 1e-9, 0);
        free(a);
        free(b);
        free(want);
        row++;
    }
    CHECK_INT(row, 30);
    document_close(&d);
}

static void test_intervals_golden(void) {
    document d;
    uint32_t list, set;
    int row = 0;
    check_case("intervals.json: Wilson, median by order statistics, McNemar");
    CHECK(document_open(&d, "analysis/intervals.json"));
    list = vp_json_get(&d.json, 0, "wilson_95");
    ROWS(&d, list, set) {
        double low = -1.0, high = -1.0;
        CHECK_INT(vp_score_wilson(number(&d, set, "k"), number(&d, set, "n"), 1.959963984540054, &low, &high), VP_OK);
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
        uint64_t first, last;
        vp_statistics s;
        CHECK_INT(vp_statistics_compute(values, count, sorted, &s), VP_OK);
        CHECK_INT(vp_median_interval(count, 0.95, &first, &last, &coverage), VP_OK);
        CHECK(s.p50 == number(&d, set, "median") && sorted[first - 1] == number(&d, set, "lower") && sorted[last - 1] == number(&d, set, "upper"));
        CHECK_INT(vp_statistics_percentile_interval(sorted, count, 50, 0.95, &low, &high), VP_OK);
        CHECK(low == sorted[first - 1] && high == sorted[last - 1]);
        free(values);
        free(sorted);
        row++;
    }
    CHECK_INT(row, 212);
    list = vp_json_get(&d.json, 0, "mcnemar_exact");
    ROWS(&d, list, set) {
        NEAR(vp_mcnemar((uint64_t)number(&d, set, "only_first_correct"), (uint64_t)number(&d, set, "only_second_correct")), number(&d, set, "p"), 1e-10, 0);
        row++;
    }
    CHECK_INT(row, 248);
    document_close(&d);
}

static void test_tests_golden(void) {
    document d;
    uint32_t list, set;
    int row = 0;
    check_case("intervals.json: paired t, Wilcoxon, Mann-Whitney");
    CHECK(document_open(&d, "analysis/intervals.json"));
    list = vp_json_get(&d.json, 0, "paired");
    ROWS(&d, list, set) {
        size_t count, i;
        double *x = numbers(&d, set, "x", &count), *y = numbers(&d, set, "y", &i);
        const size_t bytes = vp_wilcoxon_scratch_bytes(count);
        void *scratch = memory(bytes);
        vp_mean_interval t;
        vp_rank_test w;
        CHECK_INT(vp_paired_t(y, x, count, 0.95, &t), VP_OK);
        NEAR(t.t, number(&d, set, "t"), 1e-9, 0);
        NEAR(t.p, number(&d, set, "p_t"), 1e-9, 0);
        CHECK_INT(t.degrees, number(&d, set, "df"));
        CHECK_INT(vp_wilcoxon(x, y, count, scratch, bytes, &w), VP_OK);
        NEAR(w.statistic, number(&d, set, "wilcoxon_statistic"), 0, 0);
        NEAR(w.p_normal, number(&d, set, "p_wilcoxon_normal"), 1e-10, 0);
        NEAR(w.p_exact, number(&d, set, "p_wilcoxon_exact"), 1e-10, 0);
        CHECK_INT(w.ties, flag(&d, set, "ties_in_absolute_differences"));
        CHECK_INT(count - w.used, number(&d, set, "zero_differences"));
        free(x);
        free(y);
        free(scratch);
        row++;
    }
    CHECK_INT(row, 30);
    list = vp_json_get(&d.json, 0, "mann_whitney");
    ROWS(&d, list, set) {
        size_t count_x, count_y;
        double *x = numbers(&d, set, "x", &count_x), *y = numbers(&d, set, "y", &count_y);
        const size_t bytes = vp_mann_whitney_scratch_bytes(count_x, count_y);
        void *scratch = memory(bytes);
        vp_rank_test u;
        CHECK_INT(vp_mann_whitney(x, count_x, y, count_y, scratch, bytes, &u), VP_OK);
        NEAR(u.statistic, number(&d, set, "u1"), 0, 0);
        NEAR(u.p_normal, number(&d, set, "p_normal"), 1e-10, 0);
        NEAR(u.p_normal_continuity, number(&d, set, "p_normal_continuity"), 1e-10, 0);
        NEAR(u.p_exact, number(&d, set, "p_exact"), 1e-10, 0);
        CHECK_INT(u.ties, flag(&d, set, "ties"));
        free(x);
        free(y);
        free(scratch);
        row++;
    }
    CHECK_INT(row, 60);
    document_close(&d);
}

static double mape(const vp_affine *line, const double *x, const double *y, size_t count) {
    double sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) sum += fabs(((line ? vp_affine_apply(line, x[i]) : x[i]) - y[i]) / y[i]);
    return sum / (double)count; /* NaN for 0 */
}

static void test_recalibration_golden(void) {
    document d;
    uint32_t set;
    int row = 0;
    check_case("recalibration.json: 1e-9, ill-conditioned ones 1e-6 and flagged");
    CHECK(document_open(&d, "analysis/recalibration.json"));
    ROWS(&d, 0, set) {
        const int bad = flag(&d, set, "ill_conditioned");
        const double relative = bad ? 1e-6 : 1e-9, absolute = bad ? 1e-6 : 1e-9;
        const size_t used = (size_t)number(&d, set, "fit_points");
        size_t count, i;
        double *x = numbers(&d, set, "predicted", &count), *y = numbers(&d, set, "measured", &i);
        vp_affine line;
        CHECK_INT(vp_affine_fit(x, y, used, &line), VP_OK);
        CHECK_INT(line.ill_conditioned, bad);
        NEAR(line.slope, number(&d, set, "a"), relative, 0);
        NEAR(line.offset, number(&d, set, "b"), relative, 0);
        NEAR(mape(NULL, x, y, used), number(&d, set, "mape_before_fit"), relative, absolute * 1e-6);
        NEAR(mape(&line, x, y, used), number(&d, set, "mape_after_fit"), relative, absolute);
        NEAR(mape(NULL, x + used, y + used, count - used), number(&d, set, "mape_before_rest"), relative, absolute * 1e-6);
        NEAR(mape(&line, x + used, y + used, count - used), number(&d, set, "mape_after_rest"), relative, absolute);
        free(x);
        free(y);
        row++;
    }
    CHECK_INT(row, 32);
    document_close(&d);
}

static void test_statistics_golden(void) {
    document d;
    uint32_t set;
    int row = 0;
    check_case("statistics.json: the experiments' summaries, 1e-12");
    CHECK(document_open(&d, "analysis/statistics.json"));
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
        free(values);
        free(scratch);
        row++;
    }
    CHECK_INT(row, 32);
    document_close(&d);
}

int main(void) {
    test_pareto_golden();
    test_least_squares_golden();
    test_nonnegative_golden();
    test_intervals_golden();
    test_tests_golden();
    test_recalibration_golden();
    test_statistics_golden();
    return check_done("test_analysis");
}
