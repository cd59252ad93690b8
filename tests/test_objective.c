/* test_objective.c: `best --slo` over sweeps of the engine and of servers and over load trials, and `compare` of servers, on files with known answers: shares and their
 * intervals are counted again here. Hostile files, exit codes. Runs $PROGRAM (default ./vlmprof) from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/made_server.h"

enum { SAMPLES = 40 };

/* ---- sweeps */
/* The number of samples of a file that meet the limits, from its own numbers. */
static int count_good(const char *path, double ttft_ms, double tpot_ms, double e2e_ms) {
    char *text = text_of_file(path);
    int good = 0;
    if (read_json(text)) {
        uint32_t rows = get(0, "per_sample_results");
        for (uint32_t i = 0; i < count_of(rows); i++) {
            uint32_t row = vp_json_at(&json, rows, i);
            int one = whole(get(row, "output_tokens")) == 1;
            good += number(get(row, "TTFT")) <= ttft_ms && (one || number(get(row, "T_decode_per_token")) <= tpot_ms) && number(get(row, "T_total")) <= e2e_ms;
        }
    }
    free(text);
    return good;
}
static void test_sweep(void) {
    double low = 0, high = 0;
    server one = SERVER;
    char path[600];
    check_case("servers: the share of samples that meet all limits, with Wilson's interval");
    write_server("a", &SERVER, 7, SAMPLES);
    one.sizes = 1;
    write_server("one", &one, 7, SAMPLES);
    snprintf(path, sizeof path, "%s/t_imgsize%d_made-vl0.json", in_folder("one"), TARGETS[0]);
    int good = count_good(path, 100, 5, 150);
    CHECK(good > 5 && good < SAMPLES); /* otherwise the case tests nothing */
    vp_rate_interval((uint64_t)good, SAMPLES, 0.95, &low, &high);
    CHECK_INT(run("best %%F/one --slo ttft:100,tpot:5,e2e:150 --slo_share %.3f --json", 100.0 * good / SAMPLES - 0.01), 0);
    if (read_json(last.out)) {
        CHECK_INT(whole(at_path("best.good_samples")), good);
        CHECK_NEAR(number(at_path("best.good_share_interval.0")), low, 1e-12);
        CHECK_NEAR(number(at_path("best.good_share_interval.1")), high, 1e-12);
        CHECK_INT(whole(at_path("best.target_vision_tokens")), TARGETS[0]);
    }
    CHECK_INT(run("best %%F/a --slo e2e:100000"), 0);
    CHECK(strstr(last.out, "in 95 % of the samples") && strstr(last.out, "100.0 % of 40 samples") && strstr(last.out, "too few samples to be sure"));
    CHECK(strstr(last.out, "run it: vlmprof run IMAGE -p TEXT --endpoint http://127.0.0.1:8000 --endpoint_model made-vl") != NULL);
    run("best %%F/a --slo ttft:1");
    check_refused(1, "none of 5 configurations meets ttft:1");
    run("best %%F/a --slo e2e:100000 --min_accuracy 0.9");
    check_refused(1, "with an accuracy of 0.9");
}
static void test_engine(void) {
    truth t = truth_default();
    double cost = true_mean(&t, 1, 1, 1);
    check_case("the engine: the most accurate configuration that meets the objective");
    write_sweep("engine", &t);
    CHECK_INT(run("best %%F/engine --slo e2e:%.3f", cost * 1.2), 0);
    CHECK(strstr(last.out, "medium k8 b16: the best of made that meets e2e:") && strstr(last.out, "runner-up: "));
    CHECK(strstr(last.out, "run it: vlmprof run IMAGE -p TEXT --model made") != NULL);
    run("best %%F/engine --slo ttft:1000000,tpot:1000000");
    CHECK(last.code == 0 || strstr(last.err, "which --slo limits")); /* data that the files lack are rejected, never taken as met */
}

/* ---- trials */
static void test_load(void) {
    static const trial TRIALS[] = {{1, 5, 0, 1200, 0, NULL, 0}, {2, 30, 0, 1200, 0, NULL, 0}, {4, 400, 0, 1200, 0, NULL, 0}, {0, 5, 2, 1200, 0, NULL, 0}};
    trial failing = {1, 5, 0, 400, 4, NULL, 0};
    check_case("the highest load that meets the objective");
    for (int i = 0; i < 4; i++) write_trial("load", &SERVER, &TRIALS[i], 20 + (uint32_t)i);
    CHECK_INT(run("best %%F/load --slo ttft:300 --json"), 0);
    if (read_json(last.out)) {
        CHECK_NEAR(number(at_path("best_rate.request_rate")), 2, 1e-12);
        CHECK_INT(whole(at_path("best_concurrency.concurrency")), 2);
        CHECK(is_text(at_path("levels.2.trial"), "fails") && is_text(at_path("levels.0.trial"), "holds"));
        CHECK_NEAR(number(at_path("best_rate.goodput_per_s")), 2 * number(at_path("best_rate.good_share")), 1e-6);
    }
    CHECK_INT(run("best %%F/load --slo ttft:300"), 0);
    CHECK(strstr(last.out, "rate 2: the highest load that reliably meets ttft:300 (ms) for 95 % of the requests") && strstr(last.out, "concurrency 2: the highest"));
    check_case("no load meets the objective; failed requests are not good");
    CHECK_INT(run("best %%F/load --slo ttft:20"), 1);
    CHECK(strstr(last.out, "no tested rate reliably meets ttft:20") != NULL);
    write_trial("failing", &SERVER, &failing, 3);
    CHECK_INT(run("best %%F/failing --slo e2e:100000 --json"), 1);
    if (read_json(last.out)) CHECK_NEAR(number(at_path("levels.0.good_share")), 0.75, 1e-9);
    check_case("a trial with damaged requests");
    {
        char *text = text_of_file(in_folder("failing/t_load_rate1.json")), *at = strstr(text, "\"due_ms\": 1");
        if (at) memcpy(at, "\"due_ms\":-1", 11);
        write_text(in_folder("failing/t_load_rate1.json"), text);
        run("best %%F/failing --slo e2e:100000");
        check_refused(3, "\"requests\" is not a list of requests with due times");
        free(text);
    }
}
/* ---- compare */
static void test_compare_sweeps(void) {
    server slower = SERVER;
    check_case("two sweeps of servers: other URLs are paired, and a slower server is found");
    slower.url = "http://127.0.0.1:9000";
    slower.fixed *= 1.4;
    slower.image *= 1.4;
    slower.text *= 1.4;
    write_server("slower", &slower, 7, SAMPLES); /* the same seed, so the same requests */
    CHECK_INT(run("compare %%F/a %%F/slower --json"), 1);
    if (read_json(last.out)) {
        uint32_t ttft = find(get(0, "comparisons"), "of", "TTFT", NULL, NULL), step = find(get(0, "comparisons"), "of", "T_decode_per_token", NULL, NULL);
        CHECK(is_text(get(0, "verdict"), "SLOWER"));
        CHECK(is_text(get(ttft, "verdict"), "SLOWER") && number(get(ttft, "difference")) > 0.2 && number(get(ttft, "difference")) < 0.4);
        CHECK(!is_text(get(step, "verdict"), "SLOWER") && fabs(number(get(step, "difference"))) < 1e-9);
    }
    CHECK_INT(run("compare %%F/slower %%F/a"), 0);
    CHECK(strstr(last.out, "FASTER") && strstr(last.out, "64 tokens"));
    check_case("a folder with two values of a knob against a folder with one of them; the other value is listed");
    slower.knobs = "\"max_pixels\": 501760";
    write_server("knob", &slower, 8, SAMPLES);
    CHECK_INT(run("compare %%F/a %%F/knob"), 1);
    CHECK(strstr(last.out, "the request knobs of A and B differ ({} / {\"max_pixels\": 501760})") != NULL);
    slower.knobs = "\"max_pixels\": 1003520";
    write_server("knob", &slower, 9, SAMPLES);
    slower = SERVER;
    slower.knobs = "\"max_pixels\": 501760";
    write_server("knob_before", &slower, 8, SAMPLES);
    CHECK_INT(run("compare %%F/knob_before %%F/knob"), 1);
    CHECK(strstr(last.out, "5 configurations") && strstr(last.out, "5 configurations are only in") && strstr(last.out, "SLOWER"));
}
static void test_compare_loads(void) {
    trial t = {1, 5, 0, 300, 0, "ttft:250", 100};
    check_case("trials at equal loads: a verdict only if intervals do not overlap");
    write_trial("before", &SERVER, &t, 1);
    t.p50 = 102;
    write_trial("alike", &SERVER, &t, 2);
    t.p50 = 130;
    write_trial("later", &SERVER, &t, 3);
    t.rate = 2;
    write_trial("before", &SERVER, &t, 1); /* a load that only one side has */
    CHECK_INT(run("compare %%F/before %%F/alike"), 0);
    CHECK(strstr(last.out, "verdict: INCONCLUSIVE") && strstr(last.out, "1 load is compared, from 2 in A and 1 in B") && strstr(last.out, "do not overlap"));
    CHECK_INT(run("compare %%F/before %%F/alike --fail_on_unsure"), 1);
    CHECK_INT(run("compare %%F/before %%F/later --json"), 1);
    if (read_json(last.out)) {
        CHECK(is_text(get(0, "verdict"), "SLOWER") && count_of(get(0, "comparisons")) == 6);
        CHECK(is_text(at_path("comparisons.3.of"), "T_total_p50") && is_text(at_path("comparisons.5.verdict"), "WORSE"));
        CHECK_NEAR(number(at_path("comparisons.4.b")), 260, 26);
    }
    CHECK_INT(run("compare %%F/later %%F/before"), 0);
    CHECK(strstr(last.out, "FASTER") && strstr(last.out, "BETTER") && strstr(last.out, "verdict: FASTER"));
    check_case("other objectives: no verdict on goodput; other loads, sweeps, options");
    t.rate = 1;
    t.slo = "ttft:500";
    write_trial("other", &SERVER, &t, 4);
    CHECK_INT(run("compare %%F/before %%F/other"), 1);
    CHECK(strstr(last.out, "A and B differ in objective (ttft:250 / ttft:500)") && !strstr(last.out, "WORSE"));
    t.rate = 5;
    write_trial("far", &SERVER, &t, 1);
    run("compare %%F/before %%F/far");
    check_refused(2, "no common load");
    run("compare %%F/before %%F/a");
    check_refused(2, "does not");
    run("compare %%F/before %%F/later --effect 3");
    check_refused(2, "--effect is for sweeps");
}
static void test_usage(void) {
    check_case("usage of --slo");
    run("best %%F/a");
    check_refused(2, "best needs --budget_ms MS or --slo LIMITS");
    run("best %%F/a --slo ttft:300 --budget_ms 3");
    check_refused(2, "cannot be used together");
    run("best %%F/a --budget_ms 3 --slo_share 90");
    check_refused(2, "--slo_share needs --slo");
    run("best %%F/a --slo ttft:x");
    check_refused(2, "--slo");
    run("best %%F/a --slo ttft:-3");
    check_refused(2, "--slo");
}

int main(void) {
    if (!program_begin("objective")) return 1;
    test_sweep();
    test_engine();
    test_load();
    test_compare_sweeps();
    test_compare_loads();
    test_usage();
    program_end();
    free(json_nodes);
    return check_done("test_objective");
}
