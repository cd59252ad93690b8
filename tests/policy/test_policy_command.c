/* test_policy_command.c: vlmprof policy on result files with a known truth: easy samples are answered by every configuration, hard ones by the large one only. Verdict,
 * rows, table and choices are the known ones; failures, unknown fields, fixed knobs and bad input have their words. Runs $PROGRAM; files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

enum { SAMPLES = 300 };
/* What a file of one configuration is made of. */
typedef struct made { const char *tier; int top_k, samples, failed, unscored, lacks_kind, all_right; double ms; const char *head; int is_policy; } made;
static int is_hard(int sample) { return sample % 3 == 0; }
static void write_file_of(const char *into, made m) {
    char path[700];
    snprintf(path, sizeof path, m.is_policy ? "%s/policy-choices.json" : "%s/m_%s_%d_%g.json", in_folder(into), m.tier, m.top_k, m.ms);
    FILE *f = fopen(path, "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "{\"dataset_name\": \"m\", \"num_active_blocks\": 16, %s", m.head ? m.head : "");
    if (m.is_policy) fprintf(f, "\"knobs\": {\"policy\": \"choices\"}, ");
    else fprintf(f, "\"tier\": \"%s\", \"top_k\": %d, ", m.tier, m.top_k);
    fprintf(f, "\"per_sample_results\": [");
    for (int i = 0; i < m.samples; i++) {
        const double ms = (m.is_policy && is_hard(i) ? 4 * m.ms : m.ms) + 0.01 * ((i * 37) % 100);
        fprintf(f, "%s{\"sample_id\": %d, \"status\": \"%s\", ", i ? ",\n" : "", i, i < m.failed ? "failed" : "ok");
        if (i >= m.failed)
            fprintf(f, "%s%d, \"T_total\": %.4f, \"T_LLM_prefill\": %.4f, \"T_LLM_decode\": 1, \"actual_image_size\": [336, %d], ",
                    i >= m.samples - m.unscored ? "\"accuracy\": null, \"level\": " : "\"accuracy\": ",
                    m.all_right || !is_hard(i) || m.ms > 100, ms, ms - 1, 336 * (1 + i % 2));
        fprintf(f, "\"metadata\": {\"id\": \"q%d\"", i);
        if (i >= m.lacks_kind) fprintf(f, ", \"kind\": \"%s\"", is_hard(i) ? "hard" : "easy");
        fprintf(f, ", \"number\": %d}}", i);
    }
    fprintf(f, "]}\n");
    fclose(f);
}
#define SERVED(url, number) "\"endpoint\": \"" url "\", \"endpoint_model\": \"m\", \"request_knobs\": {\"max_pixels\": " number "}, "
static void write_pair(const char *into, const char *head, double slower) {
    char command[700];
    snprintf(command, sizeof command, "mkdir -p '%s'", in_folder(into));
    CHECK_INT(system(command), 0);
    write_file_of(into, (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .ms = 50 * slower, .head = head});
    write_file_of(into, (made){.tier = "high", .top_k = 8, .samples = SAMPLES, .ms = 200 * slower, .head = head});
}
static uint32_t policy_named(uint32_t rows, const char *name) {
    for (uint32_t i = 0; i < count_of(rows); i++)
        if (is_text(get(vp_json_at(&json, rows, i), "name"), name)) return vp_json_at(&json, rows, i);
    return VP_JSON_NONE;
}
static double of_policy(const char *name, const char *key) { return number(get(policy_named(get(0, "policies"), name), key)); }

static void test_planted(void) {
    check_case("static, mixture, lookup, oracle: the planted accuracies and latencies");
    write_pair("two", NULL, 1);
    if (!RUNS_JSON(0, "policy %%F/two --budget_ms 120 --by kind --output_dir %%F/out --json")) return;
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
    CHECK(of_policy("luck", "beats_static_points") < 1);
    CHECK(is_text(get(0, "budget"), "mean") && number(get(0, "budget_ms")) == 120);
    check_case("the text: verdict first");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --by kind"), 0);
    check_kept("policy-lookup", last.out);
    check_case("the written choices are judged like the table; a number as a field is cut at quantiles");
    if (!RUNS_JSON(0, "policy %%F/two --budget_ms 120 --choices %%F/out/choices.jsonl --by number aspect --json")) return;
    char name[700];
    snprintf(name, sizeof name, "choices:%s", in_folder("out/choices.jsonl"));
    CHECK_NEAR(of_policy(name, "accuracy"), 1, 0);
    CHECK_NEAR(of_policy(name, "mean_ms"), 100.495, 1e-9);
    CHECK(of_policy("lookup", "beats_static_points") < 20);
    check_case("each and p95: no request of the lookup takes longer, or 5 % do");
    if (RUNS_JSON(0, "policy %%F/two --budget_ms 120 --budget each --by kind --json"))
        CHECK(of_policy("oracle", "accuracy") < 0.67 && of_policy("oracle", "share_within") == 1);
    if (RUNS_JSON(0, "policy %%F/two --budget_ms 120 --budget p95 --by kind --json"))
        CHECK(of_policy("oracle", "share_within") < 1 && of_policy("oracle", "p95_ms") <= 120 && isnan(number(get(get(0, "same_accuracy"), "mean_ms"))));
    check_case("without a budget: a curve, which ends at the largest configuration's accuracy");
    if (RUNS_JSON(0, "policy %%F/two --by kind --json")) {
        const uint32_t curve = get(0, "curve"), last_of = vp_json_at(&json, curve, count_of(curve) - 1);
        CHECK(count_of(curve) == 16 && number(get(policy_named(get(last_of, "policies"), "static"), "accuracy")) == 1);
    }
    CHECK_INT(run("policy %%F/two --by kind"), 0);
    CHECK(strstr(last.out, "an oracle gains 21.9") && strstr(last.out, "a lookup 15.1, a random mix of two configurations 11.6") && strstr(last.out, "budget, ms"));
    check_case("the time saved at the accuracy of the best configuration, which is the large one: 2 / 3 of the samples take a quarter");
    if (RUNS_JSON(0, "policy %%F/two --budget_ms 250 --by kind --json")) CHECK_NEAR(number(get(get(0, "same_accuracy"), "mean_ms")), 100.495, 1e-9);
    EXITS(run("policy %%F/two --budget_ms 250 --by kind"), 0, out, "not even an oracle's");
    CHECK(strstr(last.out, "To match the best static's accuracy, the lookup needs a mean of 100.5 ms instead of 200.5: 49.9 [49.9, 53.6] % less."));
}
static void test_knobs(void) {
    static const char *const fixed[][3] = {
        {"\"weights\": \"int4\", ", "\"weights\": \"bf16\", ", "Choosing weights (int4, bf16) per request needs a model in memory for each value"},
        {SERVED("a", "1") "\"knobs\": {\"kv\": 1}, ", SERVED("a", "1") "\"knobs\": {\"kv\": 22}, ", "Choosing kv (1, 22) per request needs a running server"},
        {SERVED("a", "1"), SERVED("bb", "1"), "Choosing endpoint (a, bb) per request needs a running server"},
        {SERVED("a", "1"), SERVED("a", "12"), NULL}, {"\"knobs\": {\"noise\": 1}, ", "\"knobs\": {\"noise\": 22}, ", NULL},
        {"\"knobs\": {\"concurrency\": 1}, ", "\"knobs\": {\"concurrency\": 22}, ", "policy: concurrency is 1 in some files and 22 in others"},
        {"\"knobs\": {\"request_rate\": 1}, ", "\"knobs\": {\"request_rate\": 22}, ", "--at request_rate=1"}};
    check_case("a knob that no request can change: what it needs; members of requests and knobs of other engines are choices; a load is none");
    for (int i = 0; i < 7; i++) {
        make_empty(in_folder("fixed"));
        for (int k = 0; k < 2; k++) write_pair("fixed", fixed[i][k], 1 + k);
        CHECK_INT(run("policy %%F/fixed --budget_ms 120 --by kind --output_dir %%F/chosen"), i > 4 ? 2 : 0);
        CHECK(fixed[i][2] ? strstr(i > 4 ? last.err : last.out, fixed[i][2]) != NULL : !strstr(last.out, "Choosing "));
        if (i < 5) CHECK_INT(run("policy %%F/fixed --budget_ms 120 --choices %%F/chosen/choices.jsonl"), 0);
        if (i == 3) CHECK_INT(system("! grep -q '}, .max_pixels\\|weights' \"$TEST_FOLDER/chosen/choices.jsonl\""), 0); /* a sweep would not know them */
    }
    EXITS(run("policy %%F/fixed --budget_ms 120 --by kind --at request_rate=1 --output_dir %%F/chosen"), 0, out, "under load, a request waits for others");
    if (!RUNS_JSON(0, "policy %%F/fixed --budget_ms 120 --at request_rate=22 --choices %%F/chosen/choices.jsonl --json")) return;
    const uint32_t calm = vp_json_at(&json, get(0, "policies"), 4);
    CHECK(fabs(number(get(calm, "mean_ms")) - 200.495) < 1e-9 && number(get(calm, "is_within_budget")) == 0 && number(get(calm, "accuracy")) == 1);
    make_empty(in_folder("percent"));
    write_text(in_folder("percent/0.json"), "{\"dataset_name\": \"d\", \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": 5, \"accuracy\": 100}, "
               "{\"sample_id\": 2, \"T_total\": 6, \"accuracy\": 0}]}");
    check_refused(run("policy %%F/percent --budget_ms 9"), 3, "0.json: accuracies must be 0..1");
}
static void test_check(void) {
    static const struct { int samples, failed, has_half; double ms; int code; const char *says; } cases[] = {
        {SAMPLES, 0, 0, 50, 0, "The promise is kept: over 300 measured samples, the policy gains 33.3 [28.2, 38.8] points"},
        {SAMPLES, 0, 0, 50.8, 0, "The promise is kept"}, {SAMPLES, 0, 0, 80, 1, "not kept, because it takes longer"},
        {SAMPLES, 60, 0, 50, 1, "not kept, because it gains less"}, {SAMPLES, 0, 1, 50, 1, "not kept, because it gains less"},
        {SAMPLES, 0, 0, 61, 0, "The promise is undecided: over"}, {4, 0, 0, 50, 0, "The promise is undecided (1"}};
    check_case("--check: the policy as measured against the best single configuration, and what was promised");
    for (int i = 0; i < 7; i++) {
        make_empty(in_folder("run"));
        write_file_of("run", (made){.tier = "low", .top_k = 2, .samples = cases[i].samples, .ms = 50});
        write_file_of("run", (made){.is_policy = 1, .samples = cases[i].samples, .ms = cases[i].ms, .all_right = !cases[i].has_half, .failed = cases[i].failed});
        CHECK_INT(run("policy %%F/two --budget_ms 120 --by kind --check %%F/run"), cases[i].code);
        CHECK(strstr(last.out, cases[i].says) && strstr(last.out, "the best single configuration, low k2 b16"));
        CHECK((strstr(last.out, "60 of the points failed and are scored as wrong") != NULL) == (cases[i].failed > 0));
    }
    if (RUNS_JSON(0, "policy %%F/two --budget_ms 120 --choices %%F/out/choices.jsonl --check %%F/run --json"))
        CHECK(is_text(get(get(0, "check"), "verdict"), "undecided") && number(get(get(0, "check"), "samples")) == 4);
    check_refused(run("policy %%F/two --budget_ms 120 --by kind --check %%F/two"), 2, "expected results of one policy, found 0");
    check_refused(run("policy %%F/two --budget_ms 120 --check %%F/run"), 2, "--check needs the policy that was run");
    write_file_of("run", (made){.is_policy = 1, .samples = SAMPLES, .ms = 50, .all_right = 1});
    EXITS(run("policy %%F/two --budget_ms 120 --by kind --check %%F/run/policy-choices.json %%F/two"), 0, out, "were measured in two sweeps");
}
static void write_choices(const char *text) { write_text(in_folder("mine.jsonl"), text); }
static void test_words(void) {
    check_case("failed points, unknown values, samples that a file lacks");
    CHECK_INT(system("mkdir -p \"$TEST_FOLDER/holes\" \"$TEST_FOLDER/one\""), 0);
    write_file_of("holes", (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .lacks_kind = 7, .ms = 50});
    write_file_of("holes", (made){.tier = "high", .top_k = 8, .samples = SAMPLES, .failed = 3, .lacks_kind = 7, .ms = 200});
    write_file_of("holes", (made){.tier = "high", .top_k = 4, .samples = SAMPLES - 20, .lacks_kind = 7, .ms = 190, .unscored = 5});
    CHECK_INT(run("policy %%F/holes --budget_ms 150 --by kind"), 0);
    CHECK(strstr(last.out, "3 of 825 points failed") && strstr(last.out, "their score: 25") && strstr(last.out, "7 records lack kind"));
    CHECK(strstr(last.out, "kind unknown"));
    check_case("no field of that name, one configuration, a budget below the fastest");
    check_refused(run("policy %%F/two --budget_ms 120 --by colour"), 2, "the records' metadata have id, kind, number");
    write_file_of("one", (made){.tier = "low", .top_k = 2, .samples = SAMPLES, .ms = 50});
    EXITS(run("policy %%F/one --budget_ms 120 --by kind"), 0, out, "There is one configuration, so there is nothing to choose.");
    CHECK_INT(run("policy %%F/two --budget_ms 10 --by kind"), 1);
    CHECK(strstr(last.out, "No policy meets") && strstr(last.err, "no policy meets the budget"));
    check_case("files of choices: missing ones and strangers are notes; what cannot be read is an error (test_choices has them)");
    write_choices("{\"id\": \"q0\", \"knobs\": {\"top_k\": 8}}\n\n{\"id\": 5, \"config\": \"m_low_2_50.json\"}\n{\"id\": \"q5\", \"config\": \"m_low_2_50.json\"}\n");
    CHECK_INT(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 0);
    CHECK(strstr(last.out, "has no choice for 298 of 300 samples; it is") && strstr(last.out, "has 1 lines for samples that are not"));
    write_choices("[]\n");
    check_refused(run("policy %%F/two --budget_ms 120 --choices %%F/mine.jsonl"), 3, "line 1: expected {\"id\": ID");
    check_refused(run("policy %%F/two --budget_ms 0"), 2, "--budget_ms must be above 0");
}
int main(void) {
    if (!program_begin("policy")) return 1;
    RUN_TESTS(test_planted, test_knobs, test_check, test_words);
    program_end();
    free(json_nodes);
    return check_done("test_policy_command");
}
