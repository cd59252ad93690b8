/* test_policy.c: static, table and oracle equal enumeration on small instances; planted policies are found; simulations show the coverage of the intervals, that an
 * unrelated field claims no gain, and the error of the luck. */
#include "vlmprof_analysis.h"
#include "vlmprof_policy.h"
#include "support/check.h"
#include "support/numbers.h"

enum { SAMPLES = 2000, CHOICES = 12 };
static double accuracy[CHOICES * SAMPLES], latency[CHOICES * SAMPLES], kind[SAMPLES], size[SAMPLES];
static vp_random random_state;
static const vp_policy_field FIELDS[2] = {{kind, 0}, {size, 1}};
static int below(int count) { return (int)vp_random_below(&random_state, (uint64_t)count - 1); }
static vp_policy_options quick(double budget_ms, vp_policy_budget budget) { /* fitted and judged on all samples */
    vp_policy_options options = vp_policy_options_default();
    options.budget_ms = budget_ms;
    options.budget = budget;
    options.folds = options.cell_least = 1;
    options.resamples = options.shuffles = 0;
    return options;
}
static int compute(size_t choices, size_t samples, size_t fields, const vp_policy_options *options, vp_policy_row *rows, vp_policy_table *table) {
    const vp_policy_outcomes outcomes = {accuracy, latency, choices, samples};
    return vp_policy_compute(&outcomes, FIELDS, fields, NULL, 0, options, rows, table, NULL);
}

/* ---- enumeration: groups of samples, each with one choice */
typedef struct solution { double accuracy, mean_ms; int feasible; } solution;
typedef struct instance { int choices, samples, groups, group[8], known[8]; vp_policy_options options; double overhead, usual[4]; } instance;
static int over(const instance *in, double ms) { return in->options.budget == VP_POLICY_MEAN ? 0 : ms + in->overhead > in->options.budget_ms; }
/* the total of accuracy, milliseconds and weight of a group's choice; weight NaN: not allowed */
static void group_total(const instance *in, int group, int choice, int oracle, double *total) {
    memset(total, 0, 3 * sizeof *total);
    for (int i = 0; i < in->samples; i++) {
        const int failed = isnan(accuracy[choice * in->samples + i]);
        const double ms = failed ? in->usual[choice] : latency[choice * in->samples + i];
        if (in->group[i] != group) continue;
        if (failed && oracle && in->known[i]) total[2] = (double)NAN;
        total[0] += failed ? 0.0 : accuracy[choice * in->samples + i];
        total[1] += ms + in->overhead;
        total[2] += in->options.budget == VP_POLICY_MEAN ? ms + in->overhead : over(in, ms);
    }
}
static int better(const double *l, const double *r) { /* accuracy, then milliseconds */
    return l[0] > r[0] + 1e-9 || (l[0] > r[0] - 1e-9 && l[1] < r[1] - 1e-9);
}
static solution enumerate(const instance *in, int oracle) {
    double best[3] = {-1, 0, 0}, lightest[3] = {0, 0, 0}, capacity = 0.0, totals[8][4][3];
    long count = 1, code;
    int g, c;
    if (in->options.budget == VP_POLICY_MEAN) capacity = in->options.budget_ms * in->samples * (1 + 1e-12);
    if (in->options.budget == VP_POLICY_P95) capacity = in->samples - 1 - (95 * (in->samples - 1) + 99) / 100;
    if (in->options.budget_ms >= HUGE_VAL) capacity = HUGE_VAL;
    for (g = 0; g < in->groups; g++) {
        int light = -1;
        count *= in->choices;
        for (c = 0; c < in->choices; c++) {
            double *t = totals[g][c];
            group_total(in, g, c, oracle, t);
            if (!isnan(t[2]) && (light < 0 || t[2] < totals[g][light][2] || (t[2] == totals[g][light][2] && better(t, totals[g][light])))) light = c;
        }
        for (c = 0; c < 3; c++) lightest[c] += totals[g][light][c];
    }
    for (code = 0; code < count; code++) {
        double sum[3] = {0, 0, 0};
        long rest = code;
        for (g = 0; g < in->groups; g++, rest /= in->choices) for (c = 0; c < 3; c++) sum[c] += totals[g][rest % in->choices][c];
        if (sum[2] <= capacity && better(sum, best)) memcpy(best, sum, sizeof best);
    }
    const solution out = {(best[0] < 0 ? lightest[0] : best[0]) / in->samples, (best[0] < 0 ? lightest[1] : best[1]) / in->samples, best[0] >= 0};
    return out;
}
static void test_enumeration(void) {
    static const double scores[] = {0, 0.3, 0.6, 1};
    static const int policies[] = {VP_POLICY_STATIC, VP_POLICY_LOOKUP, VP_POLICY_ORACLE};
    int infeasible = 0;
    check_case("enumeration: 900 random instances");
    vp_random_seed(&random_state, 1);
    for (int round = 0; round < 900; round++) {
        vp_policy_row rows[VP_POLICY_GIVEN];
        instance in;
        memset(&in, 0, sizeof in);
        in.choices = 1 + below(4);
        in.samples = 1 + below(7);
        in.options = quick(round % 10 == 9 ? HUGE_VAL : 1 + below(12), (vp_policy_budget)(round % 3));
        in.options.overhead_ms = below(3) ? 0 : 2;
        for (int i = 0; i < in.samples; i++) kind[i] = below(4) ? below(3) : (double)NAN;
        for (int c = 0; c < in.choices; c++) {
            double measured = 0;
            for (int i = 0; i < in.samples; i++) {
                const int failed = i && !below(6), at = c * in.samples + i;
                accuracy[at] = failed ? (double)NAN : round % 7 == 6 ? 1 : scores[round & 1 ? below(4) : 3 * below(2)];
                latency[at] = failed ? (double)NAN : 1 + below(round % 5 ? 12 : 3);
                measured += !failed;
                in.known[i] += !failed;
                in.usual[c] += failed ? 0 : latency[at];
            }
            in.usual[c] /= measured;
        }
        CHECK_INT(compute((size_t)in.choices, (size_t)in.samples, 1, &in.options, rows, NULL), VP_OK);
        for (int p = 0; p < 3; p++) {
            double codes[8];
            in.groups = 0;
            in.overhead = p ? in.options.overhead_ms : 0;
            for (int i = 0; i < in.samples; i++) {
                int g = p == 2 ? in.groups : 0;
                while (g < in.groups && !(p == 0 || codes[g] == kind[i] || (isnan(codes[g]) && isnan(kind[i])))) g++;
                codes[g] = kind[i];
                in.group[i] = g;
                if (g == in.groups) in.groups++;
            }
            const solution want = enumerate(&in, p == 2);
            const vp_policy_row *row = &rows[policies[p]];
            check_note(near(row->accuracy, want.accuracy, 0, 1e-9) && near(row->mean_ms, want.mean_ms, 0, 1e-9) && row->feasible == want.feasible && row->gap <= 0,
                       __FILE__, __LINE__, "round %d, policy %d: %g %g %d, expected %g %g %d", round, p, row->accuracy, row->mean_ms, row->feasible,
                       want.accuracy, want.mean_ms, want.feasible);
            infeasible += !want.feasible;
        }
    }
    CHECK(infeasible > 200);
}

/* ---- planted data: easy samples need no large choice, hard ones do */
enum { NOISE, KNOWN, HIDDEN };
static double chance(int world, int hard, int c, int choices) { return world == NOISE ? 0.6 : hard ? 0.2 + 0.6 * c / (choices - 1) : 0.9; }
static double probability[CHOICES * SAMPLES];
static void draw(int world, int choices, int samples) {
    for (int i = 0; i < samples; i++) {
        const int hard = below(2);
        const double speed = exp(0.2 * normal_draw(&random_state));
        kind[i] = world == KNOWN ? hard : below(2);
        size[i] = vp_random_double(&random_state);
        for (int c = 0; c < choices; c++) {
            probability[c * samples + i] = chance(world, hard, c, choices);
            accuracy[c * samples + i] = vp_random_double(&random_state) < probability[c * samples + i];
            latency[c * samples + i] = speed * (100 + 300.0 * c / (choices - 1));
        }
    }
}
static void test_planted(void) {
    vp_policy_row rows[VP_POLICY_GIVEN + 1];
    vp_policy_options options = vp_policy_options_default();
    vp_policy_cell cells[1 + 2 * 100];
    uint32_t lookup[100], oracle[100], held_out[100];
    int32_t own[100];
    const int32_t *given = own;
    vp_policy_table table = {cells, 0, lookup, oracle, held_out, 0, {0, 0}, 0};
    const vp_policy_outcomes outcomes = {accuracy, latency, 2, 100};
    check_case("planted: easy samples are solved by the small choice, hard ones by the large");
    for (int i = 0; i < 100; i++) {
        kind[i] = i % 2 ? 7 : 3;
        size[i] = i < 4 ? (double)NAN : i;
        accuracy[i] = !(i % 2);
        accuracy[100 + i] = i % 2 ? 1 : 0.25;
        latency[i] = 100;
        latency[100 + i] = 300;
        own[i] = i < 10 ? -1 : 1 - i % 2;
    }
    options.budget_ms = 210;
    options.overhead_ms = 10;
    options.cell_least = 5;
    CHECK_INT(vp_policy_compute(&outcomes, FIELDS, 2, &given, 1, &options, rows, &table, NULL), VP_OK);
    CHECK_NEAR(rows[VP_POLICY_STATIC].accuracy, 0.5, 1e-12);
    CHECK_NEAR(rows[VP_POLICY_LOOKUP].accuracy, 1, 0.05); /* folds can have unequal halves, which the budget then cuts */
    double held = 0;
    for (int i = 0; i < 100; i++) held += accuracy[100 * held_out[i] + (unsigned)i] / 100;
    CHECK_NEAR(rows[VP_POLICY_LOOKUP].accuracy, held, 1e-12); /* the choices that the row judges */
    CHECK_NEAR(rows[VP_POLICY_ORACLE].accuracy, 1, 1e-12);
    CHECK_NEAR(rows[VP_POLICY_ORACLE].mean_ms, 210, 1e-9);
    CHECK_NEAR(rows[VP_POLICY_ORACLE].gain, 0.5, 1e-12);
    CHECK_INT(rows[VP_POLICY_GIVEN].missing, 10);
    CHECK_INT(rows[VP_POLICY_GIVEN].samples, 90);
    CHECK_INT(rows[VP_POLICY_GIVEN].feasible, 1);
    CHECK_NEAR(rows[VP_POLICY_GIVEN].accuracy, 0.125, 1e-12);
    CHECK_NEAR(rows[VP_POLICY_GIVEN].gain, 0.125 - 0.5, 1e-12);
    CHECK_NEAR(rows[VP_POLICY_GIVEN].p95_ms, 310, 1e-9);
    CHECK_INT(table.cell_count, 1 + 2 + 2 * 4); /* each kind: three thirds and unknown */
    CHECK_INT(cells[1].count, 50);
    CHECK_NEAR(cells[1].low[0], 3, 0);
    CHECK_NEAR(cells[2].high[0], 7, 0);
    CHECK_INT(cells[3].level, 2);
    CHECK(cells[3].low[1] < -1e300 && cells[4].low[1] == cells[3].high[1] && isnan(cells[6].low[1]));
    CHECK_NEAR(cells[3].high[1], 4 + 95 / 3.0, 1e-9);
    CHECK_INT(cells[3].count, 16); /* 4, 6, .., 34 */
    CHECK(!cells[3].fell_back && cells[6].fell_back && cells[6].count == 2 && cells[6].parent == 1);
    for (int i = 0; i < 100; i++) check_note(lookup[i] == (uint32_t)(i % 2) && oracle[i] == lookup[i], __FILE__, __LINE__, "choice of sample %d", i);
    options = quick(180, VP_POLICY_MEAN); /* the hard ones' step is too dear, so the root's, which gains less, is not worth its price either */
    CHECK_INT(compute(2, 100, 1, &options, rows, &table), VP_OK);
    CHECK(cells[2].choice == 0 && cells[0].choice == 0);
    for (int i = 0; i < 100; i++) accuracy[i] = 0.4, accuracy[100 + i] = i % 2 ? 1 : 0.6;
    options = quick(150, VP_POLICY_MEAN);
    CHECK_INT(compute(2, 100, 0, &options, rows, &table), VP_OK);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].accuracy, 0.75 * 0.4 + 0.25 * 0.8, 1e-9);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].mean_ms, 150, 1e-9);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].share_within, 0.75, 1e-9);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].p50_ms, 100, 0);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].p95_ms, 300, 0);
    CHECK(table.best == 0 && table.mix[0] == 0 && table.mix[1] == 1 && table.cell_count == 1);
    CHECK(isnan(rows[VP_POLICY_LUCK].gain) && isnan(rows[VP_POLICY_LOOKUP].gain_low));
    for (int i = 0; i < 100; i++) latency[i] = 100 + i; /* linear percentiles: 75 % of a ramp to 199, the rest at 300 */
    options = quick(0.75 * 149.5 + 0.25 * 300, VP_POLICY_MEAN);
    CHECK_INT(compute(2, 100, 0, &options, rows, &table), VP_OK);
    CHECK_NEAR(rows[VP_POLICY_STATIC].p95_ms, 100 + 0.95 * 99, 1e-9);
    CHECK_NEAR(rows[VP_POLICY_MIXTURE].p50_ms, 100 + 0.5 * 99 / 0.75, 1e-9);
    options.compared = 2; /* beyond the budget */
    CHECK_INT(compute(2, 100, 0, &options, rows, &table), VP_OK);
    CHECK(table.best == 1 && rows[VP_POLICY_STATIC].mean_ms == 300 && rows[VP_POLICY_LOOKUP].gain < 0);
    for (int i = 0; i < 100; i++) latency[i] = 100;
    options = quick(50, VP_POLICY_EACH);
    CHECK_INT(compute(2, 100, 0, &options, rows, &table), VP_OK);
    CHECK(!rows[VP_POLICY_STATIC].feasible && !rows[VP_POLICY_MIXTURE].feasible && !rows[VP_POLICY_LOOKUP].feasible && !rows[VP_POLICY_ORACLE].feasible);
}
static void test_errors(void) {
    vp_policy_row rows[VP_POLICY_GIVEN + 1];
    vp_policy_options options = quick(10, VP_POLICY_MEAN), bad;
    const vp_policy_outcomes outcomes = {accuracy, latency, 2, 3};
    const int32_t own[3] = {0, 2, 0}, *given = own;
    vp_error error;
    check_case("errors");
    for (int i = 0; i < 6; i++) accuracy[i] = 1, latency[i] = 5;
    CHECK_INT(compute(2, 3, 0, &options, rows, NULL), VP_OK);
    CHECK_INT(compute(0, 3, 0, &options, rows, NULL), VP_ERR_RANGE);
    CHECK_INT(compute(2, 0, 0, &options, rows, NULL), VP_ERR_RANGE);
#define BAD(member, value) do { bad = options; bad.member = (value); CHECK_INT(compute(2, 3, 0, &bad, rows, NULL), VP_ERR_RANGE); } while (0)
    BAD(compared, 3); BAD(budget_ms, 0); BAD(budget_ms, (double)NAN); BAD(overhead_ms, -1); BAD(folds, 0); BAD(folds, VP_POLICY_FOLDS_LIMIT + 1); BAD(bins, 0);
    BAD(bins, VP_POLICY_BINS_LIMIT + 1); BAD(cell_least, 0); BAD(resamples, 1); BAD(shuffles, 10001); BAD(confidence, 1); BAD(budget, (vp_policy_budget)3);
    CHECK_INT(vp_policy_compute(&outcomes, FIELDS, 0, &given, 1, &options, rows, NULL, &error), VP_ERR_RANGE);
    bad = vp_policy_options_default();
    for (size_t samples = 1; samples <= 3; samples++) {
        CHECK_INT(compute(1, samples, 2, &bad, rows, NULL), VP_OK);
        CHECK(rows[VP_POLICY_LOOKUP].accuracy >= 1 && rows[VP_POLICY_LOOKUP].gain_low >= 0 && rows[VP_POLICY_LOOKUP].gain_high <= 0);
        CHECK(rows[VP_POLICY_LUCK].gain <= 0 && rows[VP_POLICY_ORACLE].p95_ms >= 5);
    }
    kind[1] = HUGE_VAL;
    CHECK_INT(compute(2, 3, 1, &options, rows, NULL), VP_ERR_RANGE);
    accuracy[4] = (double)NAN;
    CHECK_INT(compute(2, 3, 0, &options, rows, NULL), VP_ERR_RANGE);
    latency[4] = (double)NAN;
    CHECK_INT(compute(2, 3, 0, &options, rows, NULL), VP_OK);
    for (int i = 3; i < 6; i++) accuracy[i] = latency[i] = (double)NAN;
    CHECK_INT(vp_policy_compute(&outcomes, FIELDS, 0, NULL, 0, &options, rows, NULL, &error), VP_ERR_RANGE);
    CHECK_INT(error.offset, 1);
    CHECK_INT(vp_policy_cells_limit(SIZE_MAX, 2) == SIZE_MAX && vp_policy_cells_limit(10, 2) == 21, 1);
}

/* ---- simulations, with fixed seeds */
static void test_coverage(void) {
    static const struct { int world, samples, choices; } cases[] = {{NOISE, 150, 5}, {KNOWN, 150, 5}, {HIDDEN, 200, 6}};
    enum { DRAWS = 500 };
    static vp_policy_row all[DRAWS][VP_POLICY_GIVEN];
    check_case("coverage of the expected gain, and no gain of an unrelated field");
    for (int at = 0; at < 3; at++) {
        vp_random_seed(&random_state, 11);
        for (int round = 0; round < DRAWS; round++) {
            vp_policy_options options = vp_policy_options_default();
            draw(cases[at].world, cases[at].choices, cases[at].samples);
            options.budget_ms = 250;
            options.resamples = 100;
            options.shuffles = 0;
            options.seed = (uint32_t)round;
            CHECK_INT(compute((size_t)cases[at].choices, (size_t)cases[at].samples, 1, &options, all[round], NULL), VP_OK);
        }
        for (int p = VP_POLICY_LOOKUP; p <= VP_POLICY_ORACLE; p++) {
            double mean = 0, covered = 0, claimed = 0;
            for (int round = 0; round < DRAWS; round++) mean += all[round][p].gain / DRAWS;
            for (int round = 0; round < DRAWS; round++) {
                covered += (all[round][p].gain_low <= mean && mean <= all[round][p].gain_high) / (double)DRAWS;
                claimed += (all[round][p].gain_low > 0) / (double)DRAWS;
            }
            check_note(covered >= 0.93 && covered <= 0.97, __FILE__, __LINE__, "world %d, policy %d: coverage %.3f", at, p, covered);
            if (p == VP_POLICY_LOOKUP && cases[at].world == NOISE) check_note(claimed <= 0.05, __FILE__, __LINE__, "world %d: claimed %.3f", at, claimed);
        }
    }
}
static void test_luck(void) {
    static const struct { int world, samples, choices, draws; } cases[] = {
        {NOISE, 500, 2, 60}, {NOISE, 500, 3, 60}, {NOISE, 500, 12, 60}, {NOISE, 2000, 12, 10}, {KNOWN, 500, 2, 60}, {KNOWN, 500, 3, 60}, {KNOWN, 500, 12, 60},
        {KNOWN, 2000, 12, 10}, {HIDDEN, 2000, 12, 80}, {HIDDEN, 500, 12, 60},
        {KNOWN, 500, 8, 60}, {NOISE, 500, 8, 60}};
    check_case("luck: within 1 point of the oracle's accuracy minus that of the best policy by the true probabilities");
    for (int at = 0; at < 12; at++) { /* 11 choices show the type of a sample only roughly; 8: four times two choices, as precisions may be */
        const size_t choices = (size_t)cases[at].choices, samples = (size_t)cases[at].samples;
        double error = 0;
        vp_random_seed(&random_state, 5);
        for (int round = 0; round < cases[at].draws; round++) {
            const vp_policy_outcomes truth = {probability, latency, choices, samples};
            vp_policy_row rows[VP_POLICY_GIVEN], known[VP_POLICY_GIVEN];
            vp_policy_options options = quick(250, VP_POLICY_MEAN);
            draw(cases[at].world, choices == 8 ? 2 : cases[at].choices, cases[at].samples);
            for (size_t i = 2 * samples; i < 8 * samples && choices == 8; i++)
                accuracy[i] = accuracy[i % (2 * samples)], latency[i] = latency[i % (2 * samples)], probability[i] = probability[i % (2 * samples)];
            CHECK_INT(vp_policy_compute(&truth, FIELDS, 0, NULL, 0, &options, known, NULL, NULL), VP_OK);
            options.folds = 5;
            options.cell_least = 10;
            options.shuffles = 5;
            CHECK_INT(compute(choices, samples, cases[at].world == KNOWN, &options, rows, NULL), VP_OK);
            error += rows[VP_POLICY_LUCK].gain - (rows[VP_POLICY_ORACLE].accuracy - known[VP_POLICY_ORACLE].accuracy);
        }
        error /= cases[at].draws;
        check_note(fabs(error) <= (at >= 8 ? 0.015 : 0.01), __FILE__, __LINE__, "case %d: %.4f", at, error);
    }
}

int main(void) {
    RUN_TESTS(test_enumeration, test_planted, test_errors, test_coverage, test_luck);
    return check_done("test_policy");
}
