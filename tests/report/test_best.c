/* test_best.c: the most accurate configuration within a budget, on result files with a known truth; exit codes; the printed texts, word by word.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

static void test_best(void) {
    truth t = truth_of(400, 3);
    double cost = true_mean(&t, 1, 1, 1);
    check_case("the best within a budget");
    write_sweep("made", &t);
    if (RUNS_JSON(0, "best %%F/made --percentile mean --budget_ms %.3f --json", cost * 1.02)) {
        uint32_t best = get(0, "best");
        CHECK(is_text(get(best, "tier"), "medium") && whole(get(best, "top_k")) == 8 && whole(get(best, "num_active_blocks")) == 16);
        CHECK(number(get(best, "probability_within_budget")) > 0.95);
        CHECK(number(get(best, "probability_best")) > 0.5);
        CHECK(is_text(get(best, "options"), "--model made --tier medium --top_k 8 --active_blocks 0,1,3 --max_new_tokens 8"));
        CHECK(get(0, "runner_up") != VP_JSON_NONE && is_text(get(get(0, "runner_up"), "tier"), "medium"));
        CHECK_INT(whole(get(0, "requests")), 800);
        CHECK(number(get(0, "requests_within_budget")) > 0.3 && number(get(0, "requests_within_budget")) < 0.9);
        CHECK(holds(get(0, "requests_within_budget_interval"), number(get(0, "requests_within_budget"))));
    }
    CHECK_INT(run("best %%F/made --budget_ms 1000000"), 0);
    CHECK(strstr(last.out, "high k8 b16: the best") && strstr(last.out, "100.0 % of 800 timed requests") && strstr(last.out, "vlmprof run IMAGE -p TEXT --model made"));
    check_case("if no configuration meets it: exit 1, and the fastest one");
    check_refused(run("best %%F/made --budget_ms 1"), 1, "the fastest is low k4 b12");
    check_refused(run("best %%F/made --budget_ms 1000 --min_accuracy 0.99"), 1, "0.99");
}

/* Notes are shown whether a configuration meets the budget or not, in text and JSON; files of one configuration are an error. */
static void test_notes(void) {
    truth t = truth_of(20, 3);
    t.runs = 2;
    write_sweep("noted", &t);
    write_text(in_folder("noted/other.json"), "{\"a\": 1}");
    for (int meets = 0; meets < 2; meets++) {
        check_case("notes of best, in text and JSON, %s", meets ? "if the budget is met" : "if none meets it");
        for (int is_json = 0; is_json < 2; is_json++) {
            CHECK_INT(run("best %%F/noted --budget_ms %s%s", meets ? "100000" : "1", is_json ? " --json" : ""), !meets);
            CHECK(strstr(last.err, "other.json is not a result file: skipped"));
        }
        if (!read_json(last.out)) continue;
        CHECK(count_of(get(0, "warnings")) == 1 && json.nodes[get(0, "best")].type == (meets ? VP_JSON_OBJECT : VP_JSON_NULL));
        if (meets) CHECK(json.nodes[get(get(0, "best"), "probability_within_budget")].type == VP_JSON_NULL); /* P95 needs 72 samples */
    }
    check_case("20 samples are 20 samples, however many of their runs are within the budget");
    EXITS(run("best %%F/noted --budget_ms 100000 --percentile 50"), 0, out,
          "100.0 % of 40 timed requests (20 samples) within it [83.9, 100.0]; the P50 meets it in 95.2 % of 1000 resamples");
    check_case("two files of one configuration");
    CHECK(system("cp \"$TEST_FOLDER\"/noted/made_imgsizetier-low_crops1_topk4_blocks12.json \"$TEST_FOLDER\"/noted/again.json") == 0);
    for (int meets = 0; meets < 2; meets++) {
        EXITS(run("best %%F/noted --budget_ms %s --json", meets ? "100000" : "1"), 2, err, " is the same configuration as ");
        CHECK(strstr(last.err, "give only one of them") && strstr(last.err, "other.json is not a result file: skipped"));
    }
}

/* texts and JSON of the choice: weights and blocks in its command, the nearest configurations, a budget that none meets */
static void test_texts(void) {
    truth t = truth_of(60, 3);
    static const char *const calls[] = {"--budget_ms 120", "--budget_ms 120 --json", "--budget_ms 300 --percentile mean --min_accuracy 0.5",
        "--budget_ms 40 --latency prefill --percentile 99", "--budget_ms 90 --latency ttft --percentile 50 --json", "--budget_ms 1",
        "--budget_ms 1 --json", "--budget_ms 1000 --min_accuracy 0.99"};
    char file[64];
    t.weights = "fp32";
    write_sweep("fp32", &t);
    for (int i = 0; i < 8; i++) {
        check_case("best %s", calls[i]);
        run("best %%F/fp32 --resamples 50 %s", calls[i]);
        snprintf(file, sizeof file, "best-%d.txt", i);
        check_kept_run(file, i > 4);
    }
    check_case("the fastest one is not the first; answers without an end token");
    for (int noise_seed = 1; noise_seed < 20; noise_seed++) { /* vision time is the same in four configurations, except for noise */
        t.noise_seed = noise_seed;
        write_sweep("fastest", &t);
        run("best %%F/fastest --resamples 50 --budget_ms 1 --latency vision --percentile 99");
        if (!strstr(last.err, "low k4 b12")) break;
    }
    check_kept_run("best-fastest.txt", 1);
    check_case("a percentile of too few samples has no bracket");
    t.samples = 3;
    write_sweep("few", &t);
    EXITS(run("best %%F/few --budget_ms 1000"), 0, out, " ms; P95 of latency: no 95 % interval, which needs 72 samples\n");
    CHECK_INT(run("best %%F/few --budget_ms 1000 --percentile mean"), 0);
    CHECK(strstr(last.out, "] ms\n") && !strstr(last.out, "no 95 % interval"));
    t.samples = 60;
    t.more = ", \"head_weights\": \"int8\", \"vision_weights\": \"bf16\"";
    write_sweep("head", &t);
    EXITS(run("best %%F/head --budget_ms 1000"), 0, out, " --weights fp32 --head_weights int8 --max_new_tokens 8");
    t.more = ", \"ignore_eos\": true";
    write_sweep("more", &t);
    EXITS(run("best %%F/more --budget_ms 1000"), 0, out, " --max_new_tokens 8 --ignore_eos");
    CHECK_INT(run("best %%F/fp32 --budget_ms 1000"), 0);
    CHECK(!strstr(last.out, "--ignore_eos"));
    CHECK(strstr(last.out, " --weights fp32 --max_new_tokens 8") != NULL);
}
/* Vision takes the same time whatever top_k is, and with few samples accuracies are often equal. */
static void test_ties(void) {
    truth t = truth_of(8, 3);
    int ties = 0;
    check_case("equal accuracy and no known difference in latency: a tie, and the fewest experts");
    t.noise = 0.05;
    for (t.seed = 1; t.seed <= 12; t.seed++) {
        write_sweep("tie", &t);
        CHECK_INT(run("best %%F/tie --latency vision --percentile 50 --budget_ms 1000"), 0);
        if (!strstr(last.out, "; tied: it is unclear which of the two is faster\n")) continue;
        if (!RUNS_JSON(0, "best %%F/tie --latency vision --percentile 50 --budget_ms 1000 --json")) continue;
        ties++;
        CHECK(whole(get(get(0, "best"), "top_k")) <= whole(get(get(0, "runner_up"), "top_k")));
        CHECK(number(get(get(0, "best"), "accuracy")) == number(get(get(0, "runner_up"), "accuracy")));
    }
    CHECK(ties > 2);
    check_case("a difference that every sample shows is not a tie");
    t.noise = 0.001;
    write_sweep("tie", &t);
    CHECK_INT(run("best %%F/tie --percentile 50 --budget_ms 1000"), 0);
    CHECK(!strstr(last.out, "; tied"));
}
int main(void) {
    if (!program_begin("best")) return 1;
    RUN_TESTS(test_best, test_notes, test_ties, test_texts);
    free(json_nodes);
    return program_done("test_best");
}
