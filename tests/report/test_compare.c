/* test_compare.c: compares two sweeps, on result files with known answers: equal, slower, less accurate, not comparable; the number of samples
 * that it needs; the printed texts, word by word. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "vlmprof_analysis.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

static const char *verdict_of(const char *of) { /* the verdict over all configurations */
    static char text[32];
    uint32_t rows = get(0, "comparisons");
    text[0] = 0;
    for (uint32_t i = 0; i < count_of(rows); i++) {
        uint32_t row = vp_json_at(&json, rows, i);
        if (is_text(get(row, "of"), of) && json.nodes[get(row, "configuration")].type == VP_JSON_NULL) vp_json_text(&json, get(row, "verdict"), text, sizeof text, NULL);
    }
    return text;
}
static void test_compare(void) {
    truth t = truth_of(200, 3);
    check_case("A/A is SAME, with exit code 0");
    write_sweep("a", &t);
    t.noise_seed = 2;
    write_sweep("b", &t);
    if (RUNS_JSON(0, "compare %%F/a %%F/b --accuracy_margin 10 --json")) {
        CHECK_TEXT(verdict_of("T_total"), "SAME");
        CHECK_TEXT(verdict_of("accuracy"), "SAME");
        CHECK_INT(count_of(get(0, "comparisons")), 13 * 7);
    }
    CHECK_INT(run("compare %%F/a %%F/a"), 0);
    check_case("a planted slow-down of 3 %% exits 1, a gain of 3 %% exits 0");
    t.noise_seed = 3;
    t.slower = 1.03;
    write_sweep("b", &t);
    if (RUNS_JSON(1, "compare %%F/a %%F/b --accuracy_margin 10 --json")) {
        uint32_t row = vp_json_at(&json, get(0, "comparisons"), 0);
        CHECK_TEXT(verdict_of("T_total"), "SLOWER");
        CHECK_TEXT(verdict_of("T_LLM_prefill"), "SLOWER");
        CHECK_TEXT(verdict_of("accuracy"), "SAME");
        CHECK(holds(get(row, "difference_interval"), 0.03));
    }
    if (RUNS_JSON(0, "compare %%F/b %%F/a --json")) CHECK_TEXT(verdict_of("T_total"), "FASTER");
    check_case("a margin above the change gives SAME");
    if (RUNS_JSON(0, "compare %%F/a %%F/b --json --margin 5")) CHECK_TEXT(verdict_of("T_total"), "SAME");
    check_case("a loss of accuracy exits 1, by McNemar's test if scores are 0 or 1");
    t.slower = 1;
    t.skill_less = 0.15;
    write_sweep("b", &t);
    if (RUNS_JSON(1, "compare %%F/a %%F/b --json")) {
        uint32_t rows = get(0, "comparisons"), row = vp_json_at(&json, rows, count_of(rows) - 1);
        CHECK_TEXT(verdict_of("accuracy"), "WORSE");
        CHECK(is_text(get(row, "of"), "accuracy") && is_text(get(row, "test"), "mcnemar"));
    }
    CHECK_INT(run("compare %%F/b %%F/a"), 0);
    CHECK(strstr(last.out, "BETTER") && !strstr(last.out, "WORSE"));
}
/* checks the first line of the text, and the JSON key */
static void check_verdict(const char *arguments, int code, const char *verdict) {
    char line[64];
    size_t bytes = (size_t)snprintf(line, sizeof line, "verdict: %s", verdict);
    check_note(run("compare %s", arguments) == code, __FILE__, __LINE__, "compare %s: exit %d, expected %d", arguments, last.code, code);
    check_note(!strncmp(last.out, line, bytes), __FILE__, __LINE__, "compare %s: the first line is not %s", arguments, line);
    if (RUNS_JSON(code, "compare %s --json", arguments)) CHECK(is_text(get(0, "verdict"), verdict));
}
/* The overall verdict is the worst of all comparisons: SLOWER, WORSE, INCONCLUSIVE, FASTER, BETTER, SAME. */
static void test_verdict(void) {
    truth t = truth_of(5, 1);
    check_case("the verdict is the worst of all; too few samples are inconclusive, which fails only with --fail_on_unsure");
    t.noise = 0.3;
    write_sweep("a", &t);
    t.noise_seed = 3;
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 0, "INCONCLUSIVE");
    CHECK(strstr(last.out, "\"worse\": false"));
    check_verdict("%F/a %F/b --fail_on_unsure", 1, "INCONCLUSIVE");
    t = truth_of(400, 1);
    write_sweep("a", &t);
    t.noise_seed = 3;
    t.slower = 1.1;
    t.skill_less = 0.2;
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 1, "SLOWER"); /* and WORSE */
    check_verdict("%F/b %F/a --accuracy_margin 60 --margin 20", 0, "SAME");
    t.slower = 0.8;
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 1, "WORSE"); /* and FASTER */
    check_verdict("%F/a %F/b --accuracy_margin 60", 0, "FASTER");
    t.slower = 1;
    write_sweep("b", &t);
    check_verdict("%F/b %F/a --margin 20", 0, "BETTER");
}
static void test_not_quiet(void) {
    truth t = truth_of(400, 1);
    check_case("on a busy machine, latencies get no verdict without --force noise, but accuracies do");
    write_sweep("a", &t);
    t.noise_seed = 3;
    t.slower = 1.1;
    t.busy_blocks = 1; /* 1 of 20: below a tenth */
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 1, "SLOWER");
    t.busy_blocks = 2;
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 0, "INCONCLUSIVE");
    check_verdict("%F/b %F/a", 0, "INCONCLUSIVE");
    check_verdict("%F/a %F/b --fail_on_unsure", 1, "INCONCLUSIVE");
    CHECK(strstr(last.out, "latencies measured while other programs ran get a verdict only if they differ"));
    check_verdict("%F/a %F/b --force noise", 1, "SLOWER");
    CHECK(strstr(last.out, "the machine was not quiet") && !strstr(last.out, "get no verdict")); /* accuracies have a verdict */
    run("compare %%F/a %%F/b");
    CHECK(!strstr(last.out, "INCONCLUSIVE: not quiet") && strstr(last.out, " INCONCLUSIVE comparisons are not shown; use --all to show them"));
    /* noise is the reason, so no number of samples and no margin is */
    CHECK(strstr(last.out, " of the INCONCLUSIVE comparisons need a quieter machine; more samples would not decide them\n"));
    CHECK(!strstr(last.out, "near the margin"));
    run("compare %%F/a %%F/b --all");
    CHECK(!strstr(last.out, "not shown; use --all"));
    CHECK(strstr(last.out, "INCONCLUSIVE: not quiet") && strstr(last.out, "/b: other processes used 50 %") && !strstr(last.out, "/a: other processes"));
    t.skill_less = 0.2;
    write_sweep("b", &t);
    check_verdict("%F/a %F/b", 1, "WORSE");
}
/* synthetic A/A pairs on a machine whose speed drifts: comparison in order rarely finds a change, comparison by pairs often does */
static void test_drift(void) {
    enum { PAIRS = 60, TRIALS = 400 };
    int ordered = 0, paired = 0, quiet = 0;
    vp_random random;
    check_case("consecutive correlated pairs count as fewer");
    vp_random_seed(&random, 5);
    for (int trial = 0; trial < TRIALS; trial++) {
        double first[PAIRS], drifting[PAIRS], free_of_it[PAIRS], state = 0, time = 0;
        vp_comparison one, two, three;
        for (int i = -30; i < PAIRS; i++) {
            double noise = vp_normal_quantile((vp_random_below(&random, 999998) + 1.0) / 1000000.0);
            state = 0.8 * state + 0.03 * noise;
            if (i < 0) continue;
            first[i] = 20 + i % 7;
            drifting[i] = first[i] * exp(state);
            free_of_it[i] = first[i] * exp(0.05 * noise);
        }
        CHECK_INT(vp_compare_ordered(first, drifting, PAIRS, VP_SCALE_LOG, 0.02, 0.05, &time, &one), VP_OK);
        CHECK(time >= 1);
        CHECK_INT(vp_compare_paired(first, drifting, PAIRS, VP_SCALE_LOG, 0.02, 0.05, &two), VP_OK);
        CHECK_INT(vp_compare_ordered(first, free_of_it, PAIRS, VP_SCALE_LOG, 0.02, 0.05, NULL, &three), VP_OK);
        ordered += one.p_difference <= 0.05;
        paired += two.p_difference <= 0.05;
        quiet += three.p_difference <= 0.05;
    }
    printf("A/A on a drifting machine: changes found by ordered pairs %.1f %%, by independent ones %.1f %%; on a steady machine by ordered ones %.1f %%\n",
           100.0 * ordered / TRIALS, 100.0 * paired / TRIALS, 100.0 * quiet / TRIALS);
    CHECK(ordered < TRIALS * 0.15 && paired > TRIALS * 0.3 && quiet < TRIALS * 0.06);
    check_case("few pairs, equal pairs, NULL");
    {
        const double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, twos[8] = {2, 2, 2, 2, 2, 2, 2, 2}, rising[8] = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
        vp_comparison comparison, plain;
        double time = 0;
        CHECK_INT(vp_compare_ordered(ones, twos, 8, VP_SCALE_LOG, 0.02, 0.05, &time, &comparison), VP_OK);
        CHECK(isnan(comparison.low) && comparison.verdict == VP_VERDICT_SLOWER && comparison.p_difference == 1.0 / 128); /* a sign test */
        CHECK_INT(vp_compare_ordered(ones, rising, 7, VP_SCALE_LOG, 0.02, 0.05, &time, &comparison), VP_OK);
        CHECK_INT(vp_compare_paired(ones, rising, 7, VP_SCALE_LOG, 0.02, 0.05, &plain), VP_OK);
        CHECK(comparison.low == plain.low && time == 1);
        CHECK_INT(vp_compare_ordered(ones, rising, 8, VP_SCALE_LOG, 0.02, 0.05, &time, &comparison), VP_OK);
        CHECK(time > 1.5);
        CHECK_INT(vp_compare_ordered(ones, rising, 1, VP_SCALE_LOG, 0.02, 0.05, &time, &comparison), VP_ERR_RANGE);
    }
}
/* writes a folder with one configuration of `count` pairs: log times and scores */
static void write_pairs(const char *name, const double *logs, const double *scores, int count, const char *more) {
    char path[64], *text = (char *)malloc(64 * (size_t)count + 400), *at = text;
    snprintf(path, sizeof path, "/%s/made_imgsizetier-low_crops2_topk4_blocks12.json", name);
    mkdir(in_folder(name), 0700);
    at += sprintf(at, "{\"dataset_name\": \"made\", \"accuracy_metric\": \"em\", \"top_k\": 4, \"num_active_blocks\": 12%s, \"per_sample_results\": [", more);
    for (int i = 0; i < count; i++) at += sprintf(at, "%s{\"sample_id\": %d, \"T_total\": %.6f, \"accuracy\": %g}", i ? ", " : "", i, 50 * exp(logs[i]), scores[i]);
    strcpy(at, "]}");
    put_file(path, text);
    free(text);
}
static double normal_of(vp_random *random) { return vp_normal_quantile((vp_random_below(random, 999998) + 1.0) / 1000000.0); }
static double end_of(uint32_t row, const char *key, uint32_t which) { return number(vp_json_at(&json, get(row, key), which)); }
/* Random pairs with any effect, spread, drift, kind of score and number: the verdict is what the printed interval says. */
static void test_verdict_is_its_interval(void) {
    enum { MOST = 60 };
    static const char *const says[] = {"SAME", "SLOWER", "BETTER", "FASTER", "WORSE", "INCONCLUSIVE"};
    int seen[6] = {0};
    vp_random random;
    vp_random_seed(&random, 56);
    check_case("300 random pairs of sweeps: no verdict is weaker or stronger than its interval");
    for (int draw = 0; draw < 300; draw++) {
        const int count = 2 + (int)vp_random_below(&random, MOST - 2), graded = (int)vp_random_below(&random, 1);
        const double spread = 0.002 * (double)(1 << vp_random_below(&random, 6)), effect = 0.02 * ((double)vp_random_below(&random, 4) - 2) * (draw % 7 ? 1 : 10),
                     drift = draw % 5 ? 0 : 0.3, better = 0.25 * (double)vp_random_below(&random, 4);
        double logs[2][MOST], scores[2][MOST];
        for (int i = 0; i < count; i++) {
            for (int side = 0; side < 2; side++) logs[side][i] = spread * normal_of(&random) + side * (effect + drift * (0.5 - (double)i / count));
            scores[0][i] = graded ? vp_random_below(&random, 4) / 8.0 : 0;
            scores[1][i] = (vp_random_below(&random, 999) < 1000 * better) ? 1 : scores[0][i];
        }
        write_pairs("p", logs[0], scores[0], count, "");
        write_pairs("q", logs[1], scores[1], count, "");
        run("compare %%F/p %%F/q --json");
        if (!read_json(last.out)) continue;
        for (uint32_t i = 0; i < count_of(get(0, "comparisons")); i++) {
            const uint32_t row = vp_json_at(&json, get(0, "comparisons"), i);
            const int is_time = is_text(get(row, "scale"), "log");
            const double margin = number(get(0, is_time ? "margin" : "accuracy_margin")), low = end_of(row, "difference_interval", 0),
                         high = end_of(row, "difference_interval", 1);
            const char *expected = low > -margin && high < margin ? "SAME" : low > 0 ? is_time ? "SLOWER" : "BETTER"
                                   : high < 0 ? is_time ? "FASTER" : "WORSE" : "INCONCLUSIVE";
            if (json.nodes[get(row, "difference_interval")].type == VP_JSON_NULL) continue;
            check_note(is_text(get(row, "verdict"), expected), __FILE__, __LINE__, "draw %d: [%g, %g] is not %s", draw, low, high, expected);
            for (int k = 0; k < 6; k++) seen[k] += is_text(get(row, "verdict"), says[k]);
        }
    }
    CHECK(seen[0] > 5 && seen[1] > 20 && seen[2] > 20 && seen[3] > 20 && seen[5] > 20);
    check_case("all 202 answers become right, 20 times faster: decided, whatever the metric and the other programs");
    double logs[2][202], scores[2][202];
    for (int i = 0; i < 202; i++)
        for (int side = 0; side < 2; side++) { logs[side][i] = 0.1 * normal_of(&random) - 3 * side; scores[side][i] = side; }
    for (int known = 0; known < 2; known++) {
        write_pairs("p", logs[0], scores[0], 202, known ? "" : ", \"accuracy_metric\": \"other\"");
        write_pairs("q", logs[1], scores[1], 202, known ? "" : ", \"accuracy_metric\": \"other\"");
        EXITS(run("compare %%F/p %%F/q --all"), 0, out, "1 FASTER, 1 BETTER");
    }
}
/* Two equal sweeps, one after the other, on a machine that changes: log ratios fall from 0.2 to -0.1 */
static void test_drift_is_named(void) {
    enum { PAIRS = 13, DRAWS = 300 };
    int named[2] = {0, 0};
    double none[PAIRS] = {0};
    vp_random random;
    vp_random_seed(&random, 6);
    check_case("a difference that drifts is named, and one that does not rarely");
    for (int draw = 0; draw < DRAWS; draw++)
        for (int drifts = 0; drifts < 2; drifts++) {
            double logs[PAIRS], began, ended, ones[PAIRS], twos[PAIRS];
            for (int i = 0; i < PAIRS; i++) {
                logs[i] = drifts * (0.2 - 0.3 * i / (PAIRS - 1)) + 0.046 * normal_of(&random);
                ones[i] = 1;
                twos[i] = exp(logs[i]);
            }
            named[drifts] += vp_compare_drift(ones, twos, PAIRS, VP_SCALE_LOG, &began, &ended) <= 0.025;
            if (!drifts || draw) continue;
            write_pairs("p", none, none, PAIRS, "");
            write_pairs("q", logs, none, PAIRS, "");
            check_verdict("%F/p %F/q", 0, "INCONCLUSIVE");
            CHECK(strstr(last.out, "\"reason\": \"drifts\"") && strstr(last.out, "\"samples_needed\": null"));
            EXITS(run("compare %%F/p %%F/q --all"), 0, out, "the difference drifts over the samples: in T_total, B began ");
            CHECK(strstr(last.out, " % faster. If the machine changed, measure A and B alternately"));
        }
    printf("drift named in %d of %d drifting and in %d independent draws\n", named[1], DRAWS, named[0]);
    CHECK(named[1] >= 0.99 * DRAWS && named[0] <= 0.05 * DRAWS);
}
static void test_not_comparable(void) {
    truth t = truth_of(20, 1);
    check_case("sweeps that differ are rejected, unless --force allows that difference");
    write_sweep("a", &t);
    t.device = "cuda:0: other";
    t.seed = 43;
    write_sweep("b", &t);
    check_refused(run("compare %%F/a %%F/b"), 2, "device (cpu: test / cuda:0: other), seed (42 / 43); --force device seed");
    check_refused(run("compare %%F/a %%F/b --force device"), 2, "seed (42 / 43)");
    EXITS(run("compare %%F/a %%F/b --force device seed"), 0, out, "A and B differ in device");
    CHECK_INT(run("compare %%F/a %%F/b --force all"), 0);
    t = truth_of(15, 1);
    t.first_id = 10;
    write_sweep("drawn", &t);
    if (CHECK(system("sed -i 's/\"data_hash\": \"77\"/\"data_hash\": \"78\"/' \"$TEST_FOLDER\"/drawn/*.json") == 0)) run("compare %%F/a %%F/drawn");
    check_refused(last.code, 2, "data (77 / 78: 20 / 15 samples, 10 of them with the same ids); --force data");
    check_refused(run("compare %%F/a %%F/b --force seeds"), 2, "--force: unknown value \"seeds\"; did you mean seed?");
    run("compare %%F/a/made_imgsizetier-low_crops1_topk4_blocks12.json %%F/a/made_imgsizetier-low_crops1_topk8_blocks12.json");
    check_refused(last.code, 2, "configuration (low k4 b12 / low k8 b12)");
    CHECK_INT(run("compare %%F/a/made_imgsizetier-low_crops1_topk4_blocks12.json %%F/a/made_imgsizetier-low_crops1_topk8_blocks12.json --force configuration"), 1);
    check_case("two sweeps with nothing in common");
    t = truth_of(20, 1);
    t.first_id = 100;
    write_sweep("b", &t);
    check_refused(run("compare %%F/a %%F/b"), 2, "no measured sample in common");
    t.task = "other";
    write_sweep("b", &t);
    check_refused(run("compare %%F/a %%F/b"), 2, "no configuration in common");
}
/* With the sample size that it recommends, A/A is SAME and 3 % are found. */
static void test_plan(void) {
    truth t = truth_of(400, 3);
    int needed;
    check_case("the sample size that it recommends (test_analysis.c: it is enough)");
    t.size_count = t.block_count = 1;
    t.noise = 0.06;
    t.runs = 1;
    write_sweep("a", &t);
    t.noise_seed = 2;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b --json");
    if (!read_json(last.out)) return;
    needed = (int)whole(get(vp_json_at(&json, get(0, "comparisons"), 0), "samples_needed"));
    CHECK(needed > 50 && needed < 5000);
}
/* A few pairs that agree prove little. The interval, the verdict and the plan allow for a remaining difference. */
static void test_few(void) {
    static const struct { int pairs, least, most; double high; } table[] = {{1, 380, 900, 0.7935}, {3, 380, 900, 0.5615}, {13, 380, 900, 0.2281}, {50, 380, 900, 0.0713}};
    truth t = truth_of(400, 3);
    t.size_count = t.top_k_count = t.block_count = 1;
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
        check_case("%d pairs that agree are INCONCLUSIVE", table[k].pairs);
        t.samples = table[k].pairs;
        t.noise_seed = 1;
        write_sweep("a", &t);
        t.noise_seed = 2;
        write_sweep("b", &t);
        if (!RUNS_JSON(0, "compare %%F/a %%F/b --json")) continue;
        uint32_t rows = get(0, "comparisons");
        uint32_t row = vp_json_at(&json, rows, count_of(rows) - 1);
        CHECK(is_text(get(row, "of"), "accuracy") && is_text(get(row, "verdict"), "INCONCLUSIVE") && is_text(get(row, "interval_method"), "tango"));
        CHECK(number(get(row, "difference")) == 0 && fabs(number(vp_json_at(&json, get(row, "difference_interval"), 1)) - table[k].high) < 1e-4);
        CHECK(fabs(number(vp_json_at(&json, get(row, "difference_interval"), 0)) + table[k].high) < 1e-4);
        CHECK(whole(get(row, "samples_needed")) >= table[k].least && whole(get(row, "samples_needed")) <= table[k].most);
        CHECK(whole(get(0, "more_samples_needed")) >= table[k].least - table[k].pairs);
        row = vp_json_at(&json, rows, 0);
        if (t.samples == 1) CHECK(is_text(get(row, "verdict"), "INCONCLUSIVE") && is_text(get(row, "reason"), "only 1 pair: no spread, no interval")
                                  && json.nodes[get(row, "difference_interval")].type == VP_JSON_NULL);
    }
    check_case("a folder compared with itself is IDENTICAL, even with --fail_on_unsure; with other noise it is not");
    CHECK_INT(run("compare %%F/a %%F/a --fail_on_unsure"), 0);
    CHECK(!strncmp(last.out, "verdict: IDENTICAL\n", 19)
          && strstr(last.out, "the same numbers in all samples of 1 configuration\n") && !strstr(last.out, "INCONCLUSIVE"));
    if (RUNS_JSON(0, "compare %%F/a %%F/a --json --fail_on_unsure")) CHECK(is_text(get(0, "verdict"), "IDENTICAL"));
    CHECK_INT(run("compare %%F/a %%F/b"), 0);
    CHECK(!strstr(last.out, "IDENTICAL"));
    check_case("if all answers are equal, the times decide the verdict; proportional times count once in Holm's correction");
    if (RUNS_JSON(0, "compare %%F/a %%F/b --margin 20 --json --fail_on_unsure")) {
        const uint32_t rows = get(0, "comparisons");
        CHECK(is_text(get(0, "verdict"), "SAME") && is_text(get(vp_json_at(&json, rows, count_of(rows) - 1), "verdict"), "INCONCLUSIVE"));
        CHECK(whole(get(0, "adjusted_for")) < count_of(rows)); /* all answers have the same length */
        for (uint32_t i = 0; i < count_of(rows); i++) {
            const uint32_t row = vp_json_at(&json, rows, i);
            if (is_text(get(row, "of"), "T_decode_per_token")) CHECK(json.nodes[get(row, "proportional_to")].type == VP_JSON_STRING);
        }
    }
    check_case("with equal ratios there is no spread of latencies to judge by");
    t.noise_seed = 1;
    t.noise = t.skill_less = 0;
    t.size_count = t.top_k_count = t.block_count = 1;
    write_sweep("a", &t);
    t.slower = 1.5;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b --all");
    CHECK(!strstr(last.out, "[+0.00, +0.00]") && !strstr(last.out, "IDENTICAL"));
    t = truth_of(60, 3);
    t.size_count = t.top_k_count = 1;
    check_case("forecasts end at 10,000 samples");
    t.size_count = t.top_k_count = t.block_count = 1;
    t.noise = 0.3;
    write_sweep("a", &t);
    t.noise_seed = 3;
    write_sweep("b", &t);
    EXITS(run("compare %%F/a %%F/b --margin 0.1"), 0, out, "more than 10,000 additional samples would be needed to decide ");
    t = truth_of(400, 3);
    t.size_count = t.top_k_count = 1;
    check_case("a change of accuracy far beyond the margin: the forecast is for this change, and McNemar's test decides");
    mkdir(in_folder("c"), 0700);
    mkdir(in_folder("d"), 0700);
    for (int side = 0; side < 2; side++) {
        char text[9000] = "{\"dataset_name\": \"made\", \"accuracy_metric\": \"em\", \"top_k\": 4, \"num_active_blocks\": 12, \"per_sample_results\": [";
        for (int i = 0; i < 40; i++) /* 4 of 40 answers become right, none wrong: p 0.125, Tango's interval excludes 0 */
            sprintf(text + strlen(text), "%s{\"sample_id\": %d, \"T_total\": %d, \"accuracy\": %d}", i ? ", " : "", i, 50 + (i * 7 + side) % 11, i < 20 + 4 * side);
        strcat(text, "]}");
        put_file(side ? "/d/made_imgsizetier-low_crops2_topk4_blocks12.json" : "/c/made_imgsizetier-low_crops2_topk4_blocks12.json", text);
    }
    run("compare %%F/c %%F/d --all --margin 60");
    CHECK(strstr(last.out, "accuracy +10 [0, +23] points") && strstr(last.out, "points     40  INCONCLUSIVE\n"));
    CHECK(strstr(last.out, " more samples should decide the inconclusive cases if the spread and the difference stay the same") && !strstr(last.out, "not worth it"));
    check_case("report: one slow sample of three, and the ratio of means keeps a positive interval");
    mkdir(in_folder("e"), 0700);
    put_file("/e/made_imgsizetier-low_crops2_topk4_blocks2.json",
             "{\"dataset_name\": \"made\", \"accuracy_metric\": \"em\", \"top_k\": 4, \"num_active_blocks\": 2, "
             "\"per_sample_results\": [{\"sample_id\": 0, \"T_total\": 76, \"accuracy\": 1}, "
             "{\"sample_id\": 1, \"T_total\": 80, \"accuracy\": 1}, {\"sample_id\": 2, \"T_total\": 70, \"accuracy\": 1}]}");
    put_file("/e/made_imgsizetier-low_crops2_topk4_blocks5.json",
             "{\"dataset_name\": \"made\", \"accuracy_metric\": \"em\", \"top_k\": 4, \"num_active_blocks\": 5, "
             "\"per_sample_results\": [{\"sample_id\": 0, \"T_total\": 351, \"accuracy\": 1}, "
             "{\"sample_id\": 1, \"T_total\": 340, \"accuracy\": 1}, {\"sample_id\": 2, \"T_total\": 2400, \"accuracy\": 1}]}");
    EXITS(run("report %%F/e"), 0, out, "unning 5 blocks has no significant effect on mean T_total compared with 2 (13.7 [0.7, ");
    check_case("with few samples, no interval in report or best has zero width");
    t.samples = 3;
    t.block_count = 2;
    write_sweep("a", &t);
    CHECK_INT(run("report %%F/a"), 0);
    CHECK(!strstr(last.out, "no effect") && strstr(last.out, "no significant effect on accuracy") && !strstr(last.out, "points [+0.00, +0.00]"));
    if (RUNS_JSON(0, "best %%F/a --budget_ms 100000 --json")) {
        uint32_t interval = get(get(0, "best"), "accuracy_interval");
        CHECK(number(vp_json_at(&json, interval, 1)) - number(vp_json_at(&json, interval, 0)) > 0.5);
    }
}
/* The range of an unknown metric is unknown: it gets Student's interval, and without spread no interval but a message. */
static void test_unknown_range(void) {
    truth t = truth_of(20, 1);
    uint32_t rows, row;
    check_case("scores of a metric with unknown range");
    t.metric = "somebody_else_s";
    write_sweep("a", &t);
    t.noise_seed = 2;
    write_sweep("b", &t);
    EXITS(run("compare %%F/a %%F/b --all"), 0, out, "if they have an unknown range: Student's t");
    CHECK(strstr(last.out, "INCONCLUSIVE: all differences are equal and the metric's range is unknown") != NULL);
    if (RUNS_JSON(0, "compare %%F/a %%F/b --json")) {
        rows = get(0, "comparisons");
        row = vp_json_at(&json, rows, count_of(rows) - 1);
        CHECK(is_text(get(row, "interval_method"), "student") && is_text(get(row, "verdict"), "INCONCLUSIVE")
              && json.nodes[get(row, "difference_interval")].type == VP_JSON_NULL && json.nodes[get(row, "samples_needed")].type == VP_JSON_NULL);
    }
    t.skill_less = 0.3;
    write_sweep("b", &t);
    if (RUNS_JSON(1, "compare %%F/a %%F/b --json")) {
        rows = get(0, "comparisons");
        row = vp_json_at(&json, rows, count_of(rows) - 1);
        CHECK(is_text(get(row, "interval_method"), "student") && json.nodes[get(row, "difference_interval")].type == VP_JSON_ARRAY);
    }
    EXITS(run("report %%F/a"), 0, out, "the score range of this metric is unknown");
    check_case("means over configurations are scores between 0 and 1");
    t.metric = "em";
    t.skill_less = 0;
    write_sweep("a", &t);
    if (RUNS_JSON(0, "compare %%F/a %%F/a --json")) {
        int found = 0;
        rows = get(0, "comparisons");
        for (uint32_t i = 0; i < count_of(rows); i++) found += is_text(get(vp_json_at(&json, rows, i), "interval_method"), "gaffke");
        CHECK_INT(found, 1);
    }
}
/* removes the colours and carriage returns from a text; returns the number of colours */
static int drop_colors(char *text) {
    int count = 0;
    char *to = text;
    for (const char *from = text; *from;) {
        if (*from == '\r') from++; /* of the terminal's line ends */
        else if (*from == '\033') {
            from += strcspn(from, "m") + 1;
            count++;
        } else *to++ = *from++;
    }
    *to = 0;
    return count;
}
/* verdicts have colours on a terminal without NO_COLOR; columns do not change, and redirected output has no colours */
static void test_color(void) {
    truth t = truth_of(60, 2);
    check_case("compare: colours of verdicts");
    write_sweep("a", &t);
    t.noise_seed = 3;
    t.slower = 1.05;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b --all");
    CHECK(!strchr(last.out, '\033'));
    char *plain = strdup(last.out);
    if (system("script --version >/dev/null 2>&1") != 0) {
        check_skip("colours on a terminal", "no program \"script\"");
        free(plain);
        return;
    }
    for (int off = 0; off < 2; off++) {
        char line[1200];
        check_case("compare: colours on a terminal, NO_COLOR=%s", off ? "1" : "");
        snprintf(line, sizeof line,
                 "TERM=xterm NO_COLOR=%s script -qec '%s compare \"$TEST_FOLDER/a\" \"$TEST_FOLDER/b\" --all' \"$TEST_FOLDER/typescript\" >/dev/null 2>&1",
                 off ? "1" : "", program);
        CHECK_INT(WEXITSTATUS(system(line)), 1);
        char *shown = text_of_file(in_folder("typescript"));
        CHECK(strstr(shown, "verdict: SLOWER") && (strstr(shown, "\033[31mverdict: SLOWER (T_total)\033[0m") == NULL) == off);
        CHECK((strstr(shown, "  \033[31mSLOWER\033[0m") == NULL) == off && (strstr(shown, "\033[33mINCONCLUSIVE\033[0m") == NULL) == off);
        CHECK((drop_colors(shown) > 4) == !off);
        CHECK(strstr(shown, plain) != NULL);
        free(shown);
    }
    free(plain);
}
/* tables, warnings, plan and JSON; a stage that did not run in one sweep does not have a latency of 0 */
static void test_texts(void) {
    truth t = truth_of(60, 2);
    static const char *const calls[] = {"", "--json", "--margin 4 --accuracy_margin 3"};
    char file[64];
    write_sweep("a", &t);
    t.noise_seed = 3;
    t.slower = 1.05;
    t.skill_less = 0.2;
    write_sweep("b", &t);
    for (int i = 0; i < 3; i++) {
        check_case("compare %s", calls[i]);
        run("compare %%F/a %%F/b %s", calls[i]);
        snprintf(file, sizeof file, "compare-%d.txt", i);
        check_kept_run(file, 1);
    }
    check_case("configurations and samples that are in only one folder");
    t.task = "second";
    write_made("b", &t, 0, 0, 0);
    write_made("a", &t, 0, 0, 0);
    write_made("a", &t, 1, 1, 1);
    remove(in_folder("b/made_imgsizetier-low_crops1_topk8_blocks16.json"));
    run("compare %%F/a %%F/b --force all");
    check_kept_run("compare-parted.txt", 1);
    check_case("a decode of 0 ms is not paired");
    make_empty(in_folder("a"));
    make_empty(in_folder("b"));
    write_foreign(in_folder("a/t_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    write_foreign(in_folder("b/t_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROW("7", "161.0", "39.5", "2", "1.0") ","
                  FOREIGN_ROW("3", "151.0", "80.5", "3", "0.3") "," FOREIGN_ROW("5", "141.0", "12.0", "2", "0.6"));
    run("compare %%F/a %%F/b --json");
    if (read_json(last.out)) {
        uint32_t rows = get(0, "comparisons");
        for (uint32_t i = 0; i < count_of(rows); i++)
            if (is_text(get(vp_json_at(&json, rows, i), "of"), "T_LLM_decode")) CHECK_INT(whole(get(vp_json_at(&json, rows, i), "pairs")), 2);
    }
    check_kept_run("compare-zero.json", 0);
}

int main(void) {
    if (!program_begin("compare")) return 1;
    RUN_TESTS(test_compare, test_verdict, test_not_quiet, test_drift, test_verdict_is_its_interval, test_drift_is_named,
              test_not_comparable, test_plan, test_few,
              test_unknown_range, test_color, test_texts);
    free(json_nodes);
    return program_done("test_compare");
}
