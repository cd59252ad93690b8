/* test_scores.c: score --scores and --predictions: the scores of another scorer become the accuracy of result files, which report, best, compare and fit then use.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "base/files.h"
#include "support/command.h"
#include "vlmprof.h"

#define LOW "set_imgsizetier-low_crops0_topk"
static const char LOW_1[] = LOW "1_blocks2", LOW_2[] = LOW "2_blocks2";

static void put(const char *name, const char *text) { write_text(in_folder(name), text); }
/* Applies these lines to the sweep in out/; the new files are in OUTPUT. Returns the exit code. */
static int apply(const char *lines, const char *output, const char *more) {
    char command[400];
    put("s.jsonl", lines);
    snprintf(command, sizeof command, "score %%F/out --scores %%F/s.jsonl -o %%F/%s %s", output, more);
    return cli(command);
}
static int load_result(document *d, const char *from, const char *config) {
    char name[300];
    snprintf(name, sizeof name, "%s/%s.json", from, config);
    return CHECK(load(d, in_folder(name)));
}
static uint32_t row_of(const document *d, uint32_t index) { return vp_json_at(&d->json, member(d, 0, "per_sample_results"), index); }
static double end_of(const document *d, uint32_t object, const char *key, uint32_t index) {
    double value = (double)NAN;
    vp_json_to_double(&d->json, vp_json_at(&d->json, member(d, object, key), index), &value);
    return value;
}

/* four samples: two with ids, one whose image is missing, one without an id; and two configurations */
static void make_sweep(void) {
    put("set.jsonl", "{\"id\": \"a\", \"question\": \"One?\", \"answers\": [\"x\"]}\n{\"id\": 7, \"question\": \"Two?\", \"answers\": [\"x\"]}\n"
        "{\"id\": \"c\", \"question\": \"Three?\", \"image\": \"none.png\"}\n{\"question\": \"Four?\", \"answers\": [\"x\"]}\n");
    CHECK_INT(cli("sweep --synthetic tiny --data %F/set.jsonl --output_dir %F/out --tier_list low --top_k_list 1 2 --num_active_blocks_list 2 "
                  "--num_runs_per_sample 1 --max_new_tokens 2 --threads 1 --quiet"), 1);
}

static void test_apply(void) {
    static const char lines[] = "{\"id\": \"a\", \"score\": 1}\n\n{\"id\": \"7\", \"score\": 0.25, \"why\": \"half\"}\n{\"sample_id\": 3, \"score\": 0}\n";
    document d, report;
    char digits[65], from[100], before[300];
    size_t bytes = 0, kept = 0;
    check_case("scores become the accuracy of every configuration, in new files");
    snprintf(before, sizeof before, "%s", in_folder("out/" LOW "1_blocks2.json"));
    char *old = check_read(before, &bytes);
    CHECK_INT(apply(lines, "new", "--name judge"), 0);
    CHECK(last.out && strstr(last.out, LOW "1_blocks2") && strstr(last.out, LOW "2_blocks2") && strstr(last.out, "0.42 ["));
    CHECK(last.err && !strstr(last.err, "no sample") && !strstr(last.err, "without a score"));
    char *now = check_read(before, &kept);
    CHECK(old && now && bytes == kept && !memcmp(old, now, bytes)); /* the input is untouched */
    FREE_ALL(old, now);
    if (!load_result(&d, "new", LOW_1)) return;
    sha256_text(lines, sizeof lines - 1, digits);
    snprintf(from, sizeof from, "s.jsonl sha256:%s", digits);
    CHECK(is_text(&d, 0, "accuracy_metric", "judge") && is_text(&d, 0, "accuracy_from", from));
    CHECK_NEAR(number(&d, 0, "accuracy"), 1.25 / 3, 1e-15);
    CHECK_NEAR(number(&d, 0, "accuracy_std"), sqrt((1 + 0.0625) / 3 - 1.25 * 1.25 / 9), 1e-12);
    CHECK_NEAR(number(&d, 0, "accuracy_standard_error"), sqrt(((1 + 0.0625) / 3 - 1.25 * 1.25 / 9) / 2), 1e-12);
    CHECK_INT(number(&d, 0, "accuracy_count"), 3);
    CHECK(is_null(&d, 0, "accuracy_reason") && end_of(&d, 0, "accuracy_interval", 0) > 0 && end_of(&d, 0, "accuracy_interval", 1) < 1);
    CHECK_INT(member(&d, 0, "accuracy_from"), member(&d, 0, "accuracy_metric") + 2); /* next to it */
    CHECK_NEAR(number(&d, row_of(&d, 1), "accuracy"), 0.25, 0);
    CHECK(is_null(&d, row_of(&d, 1), "accuracy_reason"));
    CHECK(is_null(&d, row_of(&d, 2), "accuracy") && is_text(&d, row_of(&d, 2), "status", "failed"));
    check_case("report, its front, best, compare and fit use them");
    CHECK_INT(cli("report %F/new --json"), 0);
    if (CHECK(last.out && parse(&report, last.out, strlen(last.out)))) {
        const uint32_t sets = member(&report, member(&report, 0, "e2_pareto_coupling"), "datasets"),
                       first = vp_json_at(&report.json, member(&report, vp_json_at(&report.json, sets, 0), "configurations"), 0);
        CHECK_NEAR(number(&report, first, "accuracy"), 1.25 / 3, 1e-15);
        for (uint32_t i = 0; i < 2; i++) /* scores in 0..1, so the interval is the file's */
            CHECK_NEAR(end_of(&report, first, "accuracy_interval", i), end_of(&d, 0, "accuracy_interval", i), 1e-9);
        free(report.nodes);
    }
    EXITS(cli("report %F/new"), 0, out, "accuracy by judge");
    CHECK_INT(cli("report %F/new --html"), 0);
    CHECK(last.out && strstr(last.out, "scores from") && strstr(last.out, from));
    EXITS(cli("best %F/new --budget_ms 100000 --json"), 0, out, "\"accuracy\": 0.416666666666666");
    EXITS(cli("compare %F/new %F/new --force noise"), 0, out, "verdict: ");
    EXITS(cli("compare %F/out %F/new --force noise"), 2, err, "metric (vqa_seed / judge)");
    cli("fit %F/new");
    CHECK(last.err && !strstr(last.err, "accuracy"));
    unload(&d);
    check_case("scores replace scores; --json");
    put("s.jsonl", "{\"id\": \"a\", \"score\": 0}\n{\"id\": \"nobody\", \"score\": 0}\n");
    CHECK_INT(cli("score %F/new --scores %F/s.jsonl -o %F/newer --json"), 0);
    if (CHECK(last.out && parse(&d, last.out, strlen(last.out)))) {
        const uint32_t file = vp_json_at(&d.json, member(&d, 0, "files"), 0);
        CHECK(is_text(&d, 0, "accuracy_metric", "scores") && number(&d, 0, "unknown") == 1 && number(&d, 0, "lines") == 2);
        CHECK(is_text(&d, file, "config", LOW_1) && number(&d, file, "scored") == 1 && number(&d, file, "missing") == 2);
        free(d.nodes);
    }
    if (!load_result(&d, "newer", LOW_2)) return;
    CHECK(is_null(&d, 0, "accuracy_standard_error") && number(&d, 0, "accuracy") == 0);
    CHECK(is_text(&d, row_of(&d, 3), "accuracy_reason", "s.jsonl has no score for this sample"));
    unload(&d);
}

static void test_ids(void) {
    document d;
    char lines[600];
    check_case("unknown, repeated and missing ids are counted and named; none is guessed");
    CHECK_INT(apply("{\"id\": \"a\", \"score\": 1}\n{\"id\": 7, \"score\": 1}\n{\"id\": \"7\", \"score\": 1}\n{\"id\": \"c\", \"score\": 1}\n"
                    "{\"id\": 99, \"score\": 1}\n", "b", ""), 0);
    CHECK(last.err && strstr(last.err, "s.jsonl: ids that match no answered sample: 2 (c, 99)"));
    CHECK(last.err && strstr(last.err, "s.jsonl: ids with several scores, so their samples get none: 1 (7)"));
    CHECK(last.err && strstr(last.err, "s.jsonl: samples without a score: 4 (sample 1 of " LOW "1_blocks2, sample 3 of "));
    if (load_result(&d, "b", LOW_1)) {
        CHECK_INT(number(&d, 0, "accuracy_count"), 1);
        CHECK(is_null(&d, row_of(&d, 1), "accuracy") && is_text(&d, row_of(&d, 1), "accuracy_reason", "s.jsonl has several scores for this id"));
        CHECK(is_null(&d, row_of(&d, 3), "accuracy"));
        unload(&d);
    }
    check_case("config limits a line to one result file; a file without a score is not written");
    snprintf(lines, sizeof lines, "{\"id\": \"a\", \"score\": 1, \"config\": \"%s.json\"}\n{\"id\": 7, \"score\": 0.5, \"config\": \"%s\"}\n", LOW_2, LOW_2);
    CHECK_INT(apply(lines, "c", ""), 0);
    CHECK(last.err && strstr(last.err, "no score for 1 of 2 result files, which are not written"));
    CHECK(access(in_folder("c/" LOW "1_blocks2.json"), F_OK) != 0);
    if (load_result(&d, "c", LOW_2)) {
        CHECK_NEAR(number(&d, 0, "accuracy"), 0.75, 0);
        unload(&d);
    }
    check_case("an id that may be a sample's own id or the sample_id of another one has one meaning in all lines");
    mkdir(in_folder("two"), 0777);
#define HEAD(name, top_k) "{\"dataset_name\": \"" name "\", \"top_k\": " top_k ", \"num_active_blocks\": 12, \"per_sample_results\": ["
#define SAMPLE(sample, id, pred) \
    "{\"sample_id\": " sample ", \"T_total\": 1, \"accuracy\": 0, \"pred\": \"" pred "\", \"metadata\": {\"id\": " id ", \"question\": \"q\"}}"
    put("two/x_imgsizetier-low_crops2_topk4_blocks12.json", HEAD("x", "4")
        SAMPLE("0", "1", "A") ", " SAMPLE("1", "2", "B") ", " SAMPLE("2", "\"q\"", "C") "]}");
    put("s.jsonl", "{\"id\": 1, \"score\": 1}\n{\"id\": 2, \"score\": 0}\n"); /* both can be own ids: they are */
    CHECK_INT(cli("score %F/two --scores %F/s.jsonl -o %F/own"), 0);
    if (load_result(&d, "own", "x_imgsizetier-low_crops2_topk4_blocks12")) {
        CHECK(number(&d, row_of(&d, 0), "accuracy") == 1 && number(&d, row_of(&d, 1), "accuracy") == 0 && is_null(&d, row_of(&d, 2), "accuracy"));
        CHECK(is_text(&d, 0, "accuracy_metric", "scores") && number(&d, 0, "accuracy") == 0.5); /* members that this foreign file lacked */
        unload(&d);
    }
    put("s.jsonl", "{\"id\": 0, \"score\": 1}\n{\"id\": 1, \"score\": 0}\n"); /* 0 is only a sample_id, so 1 is one too */
    CHECK_INT(cli("score %F/two --scores %F/s.jsonl -o %F/sample"), 0);
    if (load_result(&d, "sample", "x_imgsizetier-low_crops2_topk4_blocks12")) {
        CHECK(number(&d, row_of(&d, 0), "accuracy") == 1 && number(&d, row_of(&d, 1), "accuracy") == 0);
        unload(&d);
    }
    put("s.jsonl", "{\"id\": 0, \"score\": 1}\n{\"id\": 1, \"score\": 0}\n{\"id\": \"q\", \"score\": 0}\n");
    REFUSED("score %F/two --scores %F/s.jsonl -o %F/x", 3, "line 2: 1 is the id of one sample and the sample_id of another");
    put("s.jsonl", "{\"sample_id\": 0, \"score\": 1}\n{\"sample_id\": 1, \"score\": 0}\n{\"id\": \"q\", \"score\": 0}\n");
    CHECK_INT(cli("score %F/two --scores %F/s.jsonl -o %F/said"), 0);
    check_case("an id in several data sets; one score for different answers");
    put("two/y_imgsizetier-low_crops2_topk4_blocks12.json", HEAD("y", "4") SAMPLE("0", "1", "A") "]}");
    put("s.jsonl", "{\"id\": 1, \"score\": 1}\n");
    REFUSED("score %F/two --scores %F/s.jsonl -o %F/x", 3, "line 1: 1 is in the data sets x and y");
    put("two/y_imgsizetier-low_crops2_topk4_blocks12.json", HEAD("x", "8") SAMPLE("0", "1", "B") "]}");
    EXITS(cli("score %F/two --scores %F/s.jsonl -o %F/differ"), 0, err, "1 line without \"config\" scores samples that configurations answered differently");
}

static void test_rejections(void) {
    static const struct { const char *lines, *words; } bad[] = {
        {"{\"id\": \"a\", \"score\": 1}\nnonsense\n", "line 2: expected a JSON object"}, {"[1]\n", "line 1: expected a JSON object"},
        {"{\"id\": \"a\", \"score\": 1.5}\n", "line 1: \"score\" must be a number from 0 to 1"}, {"\n{\"id\": \"a\", \"score\": -0.1}\n", "line 2: \"score\""},
        {"{\"id\": \"a\", \"score\": \"1\"}\n", "\"score\""}, {"{\"id\": \"a\", \"score\": true}\n", "\"score\""}, {"{\"id\": \"a\"}\n", "\"score\""},
        {"{\"id\": \"a\", \"score\": null}\n", "\"score\""}, {"{\"score\": 1}\n", "\"id\" must be a number or a string"},
        {"{\"id\": [1], \"score\": 1}\n", "\"id\" must be"}, {"{\"id\": \"a\", \"score\": 1, \"config\": \"other\"}\n", "line 1: no result file is named \"other\""},
        {"{\"id\": \"a\", \"score\": 1, \"config\": 3}\n", "\"config\" must be the name"}, {"", "the file contains no lines"},
        {"{\"id\": \"zz\", \"score\": 1}\n", "no sample gets a score, so nothing is written"}};
    check_case("invalid lines: nothing is written, and the message names the line");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(apply(bad[i].lines, "never", ""), 3);
        check_note(last.err && strstr(last.err, bad[i].words) != NULL, __FILE__, __LINE__, "%s: %s", bad[i].words, last.err ? last.err : "");
    }
    CHECK(access(in_folder("never"), F_OK) != 0);
    check_case("no file is overwritten; what is missing on the command line");
    CHECK_INT(apply("{\"id\": \"a\", \"score\": 1}\n", "out", ""), 2);
    CHECK(last.err && strstr(last.err, "exists and would be overwritten"));
    REFUSED("score %F/out --scores %F/s.jsonl", 2, "needs -o DIR");
    REFUSED("score --scores %F/s.jsonl -o %F/x", 2, "needs result files");
    REFUSED("score %F/out --scores %F/s.jsonl -o %F/x --name ''", 2, "--name must not be empty");
    REFUSED("score %F/out --scores %F/s.jsonl -o %F/x --metric em", 2, "cannot be used together");
    REFUSED("score %F/out --scores %F/none -o %F/x", 3, "none");
    REFUSED("score %F/out --scores %F/out -o %F/x", 3, "is a folder");
    REFUSED("score %F/none --scores %F/s.jsonl -o %F/x", 3, "no such file or folder");
    mkdir(in_folder("same"), 0777);
    put("same/y_imgsizetier-low_crops2_topk4_blocks12.json", HEAD("x", "9") SAMPLE("0", "1", "B") "]}");
    put("s.jsonl", "{\"id\": 1, \"score\": 1}\n");
    REFUSED("score %F/two %F/same --scores %F/s.jsonl -o %F/x", 2, "two result files have the same name");
    REFUSED("score --name x a", 2, "--name needs --scores");
}

static void test_predictions(void) {
    document d;
    check_case("predictions: a line for each answer, with id, configuration, question and answers");
    CHECK_INT(cli("score --predictions %F/out"), 0);
    int answers = 0;
    for (const char *line = last.out; line && *line; line = next_line(line)) answers++;
    CHECK_INT(answers, 6);
    CHECK(last.err && strstr(last.err, "2 samples have no answer"));
    if (CHECK(last.out && parse(&d, last.out, strcspn(last.out, "\n")))) {
        CHECK(is_text(&d, 0, "id", "a") && is_text(&d, 0, "config", LOW_1) && is_text(&d, 0, "question", "One?") && is_text(&d, 0, "dataset_name", "set"));
        check_keys(&d, 0, "id sample_id config dataset_name prediction question answers");
        free(d.nodes);
    }
    CHECK(last.out && strstr(last.out, "{\"id\": 3, \"sample_id\": 3, ")); /* without an id of its own */
    char *lines = last.out ? strdup(last.out) : NULL;
    CHECK_INT(cli("score --predictions %F/out/" LOW "2_blocks2.json"), 0);
    CHECK(lines && last.out && *last.out && strstr(lines, last.out)); /* each file's own rows */
    check_case("score reads these lines");
    if (lines) CHECK_INT(cli_with("score --metric em --json", lines, in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "{\"summary\": {\"metric\": \"em\", \"rows\": 6, \"scored\": 6"));
    free(lines);
    REFUSED("score --predictions", 2, "needs result files");
    REFUSED("score --predictions --scores x y", 2, "cannot be used together");
}

int main(void) {
    if (!command_begin("scores")) return 1;
    RUN_TESTS(make_sweep, test_apply, test_ids, test_rejections, test_predictions);
    return command_end("test_scores");
}
