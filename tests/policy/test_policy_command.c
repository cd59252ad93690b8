/* test_policy_command.c: vlmprof policy on result files with a known truth: easy samples are answered by every configuration, hard ones by the large one only. Verdict,
 * rows, table and choices are the known ones; failures, unknown fields, conditions and bad input have their words. Runs $PROGRAM; files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

enum { SAMPLES = 300 };
/* What a file of one configuration is made of. */
typedef struct made { const char *tier; int top_k, samples, failed, lacks_kind, all_right; double ms, rate; } made;
static int is_hard(int sample) { return sample % 3 == 0; }
static void write_file_of(const char *into, made m) {
    char path[700];
    snprintf(path, sizeof path, "%s/m_%s_%d_%g.json", in_folder(into), m.tier, m.top_k, m.rate);
    FILE *f = fopen(path, "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "{\"dataset_name\": \"m\", \"tier\": \"%s\", \"top_k\": %d, \"num_active_blocks\": 16, ", m.tier, m.top_k);
    if (m.rate > 0) fprintf(f, "\"knobs\": {\"noise\": %g}, ", m.rate);
    fprintf(f, "\"per_sample_results\": [");
    for (int i = 0; i < m.samples; i++) {
        const double ms = m.ms + 0.01 * ((i * 37) % 100);
        fprintf(f, "%s{\"sample_id\": %d, \"status\": \"%s\", ", i ? ",\n" : "", i, i < m.failed ? "failed" : "ok");
        if (i >= m.failed)
            fprintf(f, "\"accuracy\": %d, \"T_total\": %.4f, \"T_LLM_prefill\": %.4f, \"T_LLM_decode\": 1, \"actual_image_size\": [336, %d], ",
                    m.all_right || !is_hard(i) || m.ms > 100, ms, ms - 1, 336 * (1 + i % 2));
        fprintf(f, "\"metadata\": {\"id\": \"q%d\"", i);
        if (i >= m.lacks_kind) fprintf(f, ", \"kind\": \"%s\"", is_hard(i) ? "hard" : "easy");
        fprintf(f, ", \"number\": %d}}", i);
    }
    fprintf(f, "]}\n");
    fclose(f);
}
static void write_pair(const char *into, double rate, double slower) {
    char command[700];
    snprintf(command, sizeof command, "mkdir -p '%s'", in_folder(into));
    CHECK_INT(system(command), 0);
    write_file_of(into, (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .ms = 50 * slower, .rate = rate});
    write_file_of(into, (made){.tier = "high", .top_k = 8, .samples = SAMPLES, .ms = 200 * slower, .rate = rate});
}
static uint32_t policy_named(uint32_t rows, const char *name) {
    for (uint32_t i = 0; i < count_of(rows); i++)
        if (is_text(get(vp_json_at(&json, rows, i), "name"), name)) return vp_json_at(&json, rows, i);
    return VP_JSON_NONE;
}
static double of_policy(const char *name, const char *key) { return number(get(policy_named(get(0, "policies"), name), key)); }

static void test_planted(void) {
    check_case("static, mixture, lookup, oracle: the planted accuracies and latencies");
    write_pair("two", 0, 1);
    CHECK_INT(run("policy %%F/two --budget_ms 120 --by kind --output_dir %%F/out --json"), 0);
    if (!read_json(last.out)) return;
    CHECK_NEAR(of_policy("static", "accuracy"), 2. / 3, 1e-12);
    CHECK_NEAR(of_policy("static", "mean_ms"), 50.495, 1e-9);
    CHECK_NEAR(of_policy("lookup", "accuracy"), 1, 0);
    CHECK_NEAR(of_policy("lookup", "mean_ms"), 100.495, 1e-9);
    CHECK_NEAR(of_policy("lookup", "beats_static_points"), 100. / 3, 1e-9);
    CHECK(holds(get(policy_named(get(0, "policies"), "lookup"), "beats_static_interval"), 100. / 3));
    CHECK_NEAR(of_policy("oracle", "accuracy"), 1, 0);
    CHECK_NEAR(of_policy("oracle", "mean_ms"), 100.495, 1e-9);
    /* p of large with a mean of 120: 50.495 + 150 p = 120, and each adds a third */
    CHECK_NEAR(of_policy("mixture", "accuracy"), 2. / 3 + (120 - 50.495) / 150 / 3, 0.002);
    CHECK_NEAR(of_policy("static", "share_within"), 1, 0);
    CHECK(of_policy("luck", "beats_static_points") < 1);
    CHECK(is_text(get(0, "budget"), "mean") && number(get(0, "budget_ms")) == 120);
    check_case("the text: verdict first");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --by kind"), 0);
    check_kept("policy-lookup", last.out);
    check_case("the written choices are judged like the table; a number as a field is cut at quantiles");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --choices %%F/out/choices.jsonl --by number aspect --json"), 0);
    if (!read_json(last.out)) return;
    char name[700];
    snprintf(name, sizeof name, "choices:%s", in_folder("out/choices.jsonl"));
    CHECK_NEAR(of_policy(name, "accuracy"), 1, 0);
    CHECK_NEAR(of_policy(name, "mean_ms"), 100.495, 1e-9);
    CHECK(of_policy("lookup", "beats_static_points") < 20);
    check_case("each and p95: no request of the lookup takes longer, or 5 % do");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --budget each --by kind --json"), 0);
    if (read_json(last.out)) CHECK(of_policy("oracle", "accuracy") < 0.67 && of_policy("oracle", "share_within") == 1);
    CHECK_INT(run("policy %%F/two --budget_ms 120 --budget p95 --json"), 0);
    if (read_json(last.out))
        CHECK(of_policy("oracle", "share_within") < 1 && of_policy("oracle", "p95_ms") <= 120 && policy_named(get(0, "policies"), "lookup") == VP_JSON_NONE);
    check_case("without a budget: a curve, which ends at the largest configuration's accuracy");
    CHECK_INT(run("policy %%F/two --by kind --json"), 0);
    if (read_json(last.out)) {
        const uint32_t curve = get(0, "curve"), last_of = vp_json_at(&json, curve, count_of(curve) - 1);
        CHECK(count_of(curve) == 16 && number(get(policy_named(get(last_of, "policies"), "static"), "accuracy")) == 1);
        CHECK(number(get(get(0, "mean_gain_points"), "oracle")) >= number(get(get(0, "mean_gain_points"), "lookup")));
        CHECK(number(get(get(0, "mean_gain_points"), "lookup")) > number(get(get(0, "mean_gain_points"), "mixture")));
    }
    CHECK_INT(run("policy %%F/two --by kind"), 0);
    CHECK(strstr(last.out, "an oracle gains") && strstr(last.out, "budget, ms"));
}
static void test_condition(void) {
    check_case("--condition: a table for each value, and what it costs to use the other's");
    write_pair("busy", 1, 1);
    write_pair("busy", 2, 2);
    CHECK_INT(run("policy %%F/busy --budget_ms 120 --by kind --condition noise --json"), 0);
    if (!read_json(last.out)) return;
    const uint32_t parts = get(0, "conditions"), busy = vp_json_at(&json, parts, 1), other = get(busy, "with_table_of");
    CHECK(count_of(parts) == 2 && is_text(get(busy, "value"), "2"));
    CHECK_NEAR(number(get(policy_named(get(busy, "policies"), "lookup"), "accuracy")), 2. / 3, 1e-12); /* 2 / 3 * 100 + 400 / 3 = 200 ms */
    CHECK_NEAR(number(get(policy_named(other, "1"), "accuracy")), 1, 0);
    CHECK(number(get(policy_named(other, "1"), "is_within_budget")) == 0);
    CHECK_INT(run("policy %%F/busy --budget_ms 120 --by kind --condition noise"), 0);
    CHECK(strstr(last.out, "noise=2 with the table for 1: -33.3 points less") && strstr(last.out, "beyond the budget"));
    make_empty(in_folder("percent"));
    for (int knob = 0; knob < 2; knob++) {
        char name[40], text[300];
        snprintf(name, sizeof name, "percent/%d.json", knob);
        snprintf(text, sizeof text, "{\"dataset_name\": \"d\", \"knobs\": {\"a\": %d}, \"per_sample_results\": ["
                 "{\"sample_id\": 1, \"T_total\": 5, \"accuracy\": 100}, {\"sample_id\": 2, \"T_total\": 6, \"accuracy\": 0}]}", knob);
        write_text(in_folder(name), text);
    }
    check_refused(run("policy %%F/percent --budget_ms 9"), 3, "0.json: accuracies are 0..1");
    check_refused(run("policy %%F/busy --budget_ms 120 --condition colour"), 2, "has no such knob");
}
static void write_choices(const char *text) { write_text(in_folder("mine.jsonl"), text); }
static void test_words(void) {
    check_case("failed points, unknown values, samples that a file lacks");
    CHECK_INT(system("mkdir -p \"$TEST_FOLDER/holes\" \"$TEST_FOLDER/one\" \"$TEST_FOLDER/same\" \"$TEST_FOLDER/single\""), 0);
    write_file_of("holes", (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .lacks_kind = 7, .ms = 50});
    write_file_of("holes", (made){.tier = "high", .top_k = 8, .samples = SAMPLES, .failed = 3, .lacks_kind = 7, .ms = 200});
    write_file_of("holes", (made){.tier = "high", .top_k = 4, .samples = SAMPLES - 20, .lacks_kind = 7, .ms = 190});
    CHECK_INT(run("policy %%F/holes --budget_ms 150 --by kind"), 0);
    CHECK(strstr(last.out, "3 of 840 points failed") && strstr(last.out, "20 samples are excluded") && strstr(last.out, "7 records lack kind"));
    CHECK(strstr(last.out, "kind unknown"));
    check_case("no field of that name, one configuration, one sample, equal answers, a budget below the fastest");
    check_refused(run("policy %%F/two --budget_ms 120 --by colour"), 2, "the records' metadata have id, kind, number");
    write_file_of("one", (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .ms = 50});
    CHECK_INT(run("policy %%F/one --budget_ms 120 --by kind"), 0);
    CHECK(strstr(last.out, "There is one configuration, so there is nothing to choose."));
    write_file_of("single", (made){.tier = "low", .top_k = 2, .samples = 1, .ms = 50});
    write_file_of("single", (made){.tier = "high", .top_k = 2, .samples = 1, .ms = 200});
    CHECK_INT(run("policy %%F/single --budget_ms 250 --by kind"), 0);
    CHECK(strstr(last.out, "1 sample: too few"));
    write_file_of("same", (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .ms = 50, .all_right = 1});
    write_file_of("same", (made){.tier = "high", .top_k = 2, .samples = SAMPLES, .ms = 200, .all_right = 1});
    CHECK_INT(run("policy %%F/same --budget_ms 250 --by kind"), 0);
    CHECK(strstr(last.out, "not even an oracle's"));
    CHECK_INT(run("policy %%F/two --budget_ms 10 --by kind"), 1);
    CHECK(strstr(last.out, "No policy meets") && strstr(last.err, "no policy meets the budget"));
    check_case("files of choices: missing ones and strangers are notes; what cannot be read is an error with its line");
    write_choices("{\"id\": \"q0\", \"knobs\": {\"top_k\": 8}}\n\n{\"id\": 5, \"config\": \"m_low_2_0.json\"}\n{\"id\": \"q5\", \"config\": \"m_low_2_0.json\"}\n");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 0);
    CHECK(strstr(last.out, "has no choice for 298 of 300 samples, such as \"q1\"") && strstr(last.out, "has 1 lines for samples that are not"));
    write_choices("{\"id\": \"q0\", \"knobs\": {\"top_k\": 8}}\n{\"id\": \"q0\", \"knobs\": {\"top_k\": 2}}\n");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 3, "line 2: an earlier line has the same id");
    write_choices("{\"id\": \"q0\", \"knobs\": {\"num_active_blocks\": 16}}\n");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 3, "line 1: 2 of the 2 configurations match");
    write_choices("{\"id\": \"q0\", \"knobs\": {\"tier\": \"medium\"}}\n");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 3, "line 1: 0 of the 2 configurations match");
    write_choices("[]\n");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 3, "line 1: expected {\"id\": ID");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/none.jsonl"), 3, "none.jsonl");
    check_refused(run("policy %%F/two --budget_ms 0"), 2, "--budget_ms must be above 0");
    check_refused(run("policy"), 2, "policy needs a folder");
    check_refused(run("policy %%F/two --budget each"), 2, "--budget needs --budget_ms");
}
int main(void) {
    if (!program_begin("policy")) return 1;
    RUN_TESTS(test_planted, test_condition, test_words);
    program_end();
    free(json_nodes);
    return check_done("test_policy_command");
}
