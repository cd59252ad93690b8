/* test_choices.c: sweep --choices: the rows of a policy against those of the grid, one file, the controller's time, resuming, ranks, servers,
 * commands that read its file beside the grid's, and each mistake. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"

#define COMMON "sweep --synthetic tiny --data samples/questions.jsonl --num_samples 4 --num_runs_per_sample 2 --max_new_tokens 4 --device cpu --bare_every 0 "
#define GRID COMMON "--tier_list low medium --top_k_list 1 2 --weights_list bf16 int4 "
static const char *const NAMES[] = {
    "questions_imgsizetier-low_crops1_topk1_blocks4_weightsbf16.json", "questions_imgsizetier-medium_crops6_topk2_blocks4_weightsint4.json"};
/* the drawn samples, and what is chosen for each: an index in NAMES */
enum { SAMPLES = 4 };
static char ids[SAMPLES][16];
static const int CHOSEN[SAMPLES] = {0, 1, 0, 1};

static uint32_t row_of(const document *d, uint32_t index) { return vp_json_at(&d->json, vp_json_get(&d->json, 0, "per_sample_results"), index); }
static double in_row(const document *d, uint32_t index, const char *key) {
    double value = NAN;
    vp_json_to_double(&d->json, vp_json_get(&d->json, row_of(d, index), key), &value);
    return value;
}
static int is_text_in_row(const document *d, uint32_t index, const char *key, const char *text) {
    return vp_json_equals(&d->json, vp_json_get(&d->json, row_of(d, index), key), text);
}
static int is_same_text(const document *a, const document *b, uint32_t index, const char *key) {
    const vp_json_node *one = &a->nodes[vp_json_get(&a->json, row_of(a, index), key)], *two = &b->nodes[vp_json_get(&b->json, row_of(b, index), key)];
    return one->bytes == two->bytes && !memcmp(a->json.text + one->start, b->json.text + two->start, (size_t)one->bytes);
}
/* Writes the choices of the first `count` samples; more: a last line. */
static void write_choices(int count, const char *more) {
    char text[4000];
    size_t used = 0;
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{\"id\": \"%s\", \"config\": \"%s\", %s%s}\n", ids[i], NAMES[CHOSEN[i]],
                                 i % 2 ? "\"knobs\": {\"tier\": \"medium\", \"top_k\": 2, \"weights\": \"int4\"}" : "\"note\": 1",
                                 i == 1 ? ", \"overhead_ms\": 2500.5" : "");
    snprintf(text + used, sizeof text - used, "%s", more);
    write_text(in_folder("mine.v2.jsonl"), text);
}

static void check_policy(const char *path) {
    static const char *const same[] = {"pred", "output_token_ids", "actual_num_crops", "total_sequence_length", "tier", "top_k", "accuracy"};
    document grid[2], policy;
    CHECK(load(&grid[0], in_folder("grid/questions_imgsizetier-low_crops1_topk1_blocks4_weightsbf16.json")));
    CHECK(load(&grid[1], in_folder("grid/questions_imgsizetier-medium_crops6_topk2_blocks4_weightsint4.json")));
    if (CHECK(load(&policy, path))) {
        const uint32_t knobs = vp_json_get(&policy.json, 0, "knobs");
        CHECK(vp_json_equals(&policy.json, vp_json_get(&policy.json, knobs, "policy"), "mine.v2"));
        CHECK_INT(policy.nodes[vp_json_get(&policy.json, 0, "tier")].type, VP_JSON_NULL);
        CHECK_INT(policy.nodes[vp_json_get(&policy.json, 0, "top_k")].type, VP_JSON_NULL);
        CHECK_INT(policy.nodes[vp_json_get(&policy.json, 0, "weights")].type, VP_JSON_NULL);
        CHECK_INT(policy.nodes[vp_json_get(&policy.json, 0, "num_active_blocks")].type, VP_JSON_NUMBER);
        for (uint32_t i = 0; i < SAMPLES; i++) {
            for (size_t k = 0; k < sizeof same / sizeof *same; k++) CHECK(is_same_text(&policy, &grid[CHOSEN[i]], i, same[k]));
            CHECK(is_text_in_row(&policy, i, "chosen_config", NAMES[CHOSEN[i]]));
            CHECK_NEAR(in_row(&policy, i, "overhead_ms"), i == 1 ? 2500.5 : 0, 0);
            CHECK((in_row(&policy, i, "T_total") > 2500.5) == (i == 1) && (in_row(&policy, i, "TTFT") > 2500.5) == (i == 1));
            CHECK(in_row(&policy, i, "unaccounted") < 2000 && in_row(&policy, i, "closure") <= 1);
        }
    }
    unload(&grid[0]);
    unload(&grid[1]);
    unload(&policy);
}
static void test_policy(void) {
    document d;
    char more[200];
    check_case("choices: the grid, then the policy");
    CHECK_INT(cli(GRID "--output_dir %F/grid --quiet"), 0);
    if (CHECK(load(&d, in_folder("grid/questions_imgsizetier-low_crops1_topk1_blocks4_weightsbf16.json"))))
        for (uint32_t i = 0; i < SAMPLES; i++) {
            const vp_json_node *id = &d.nodes[vp_json_get(&d.json, vp_json_get(&d.json, row_of(&d, i), "metadata"), "id")];
            snprintf(ids[i], sizeof ids[i], "%.*s", (int)id->bytes, d.json.text + id->start);
        }
    unload(&d);
    write_choices(SAMPLES, "\n{\"id\": \"of another sweep\", \"config\": \"none\"}\n");
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/policy"), 0, err, "1 configuration, 4 points (4 measured now, 0 failed)");
    check_policy(in_folder("policy/policy-mine.v2.json"));
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/policy"), 0, err, "(0 measured now");
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/policy --plan"), 0, out, "policy-mine.v2.json");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/grid", 2, "belongs to another plan: --choices");
    check_case("choices: the best single configuration is measured in turn with the policy, as in the grid");
    snprintf(more, sizeof more, "{\"static\": true, \"config\": \"%s\"}\n", NAMES[1]);
    write_choices(SAMPLES, more);
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/turns --plan"), 0, out, "2 configurations, 8 points");
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/turns"), 0, err, "2 configurations, 8 points (8 measured now, 0 failed)");
    check_policy(in_folder("turns/policy-mine.v2.json"));
    write_choices(SAMPLES - 1, more);
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/x --plan"), 0, err, "1 of 4 samples have no line: they run under the static configuration");
    write_choices(SAMPLES, more);
    snprintf(more, sizeof more, "turns/%s", NAMES[1]);
    if (CHECK(load(&d, in_folder(more))))
        for (uint32_t i = 0; i < SAMPLES; i++)
            CHECK(is_text_in_row(&d, i, "tier", "medium") && vp_json_get(&d.json, row_of(&d, i), "chosen_config") == VP_JSON_NONE && in_row(&d, i, "T_total") < 2500);
    unload(&d);
    check_case("choices: half of the journal is there");
    char *text = check_read(in_folder("turns/journal.jsonl"), NULL), *end = text ? strchr(text + strlen(text) / 2, '\n') : NULL;
    if (!CHECK(end && strstr(end, "\"config\": \"policy-mine.v2.json\"") && !remove(in_folder("turns/policy-mine.v2.json")))) return;
    end[1] = 0;
    write_text(in_folder("turns/journal.jsonl"), text);
    free(text);
    EXITS(cli(GRID "--choices %F/mine.v2.jsonl --output_dir %F/turns"), 0, err, "points are already measured: resuming");
    check_policy(in_folder("turns/policy-mine.v2.json"));
    write_choices(SAMPLES, "");
    check_case("choices: commands that read it beside the grid");
    EXITS(cli("report %F/grid %F/policy/policy-mine.v2.json"), 0, out, " policy=mine.v2");
    CHECK_INT(cli("best %F/grid %F/policy --budget_ms 100000"), 0);
    CHECK_INT(cli("merge %F/policy"), 0);
    EXITS(cli("policy %F/grid %F/policy --json"), 0, out, "\"configurations\": 8");
    EXITS(cli("compare %F/grid/questions_imgsizetier-low_crops1_topk1_blocks4_weightsbf16.json %F/policy/policy-mine.v2.json --force configuration weights"), 0, out,
          "T_total");
    EXITS(cli("fit %F/grid %F/policy"), 3, err, "is from a policy");
}
/* A file with one line for the first sample. */
static void write_line(const char *rest) {
    char text[300];
    snprintf(text, sizeof text, "{\"id\": \"%s\", %s}\n", ids[0], rest);
    write_text(in_folder("mine.v2.jsonl"), text);
}
static void test_mistakes(void) {
    char again[300];
    check_case("choices: mistakes");
    write_choices(3, "");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "has no line; all samples of the sweep need one");
    snprintf(again, sizeof again, "{\"id\": \"%s\", \"config\": \"%s\"}\n", ids[2], NAMES[0]);
    write_choices(SAMPLES, again);
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "mine.v2.jsonl, line 5: an earlier line has the same id");
    write_line("\"knobs\": {\"tier\": \"high\"}");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "line 1: 0 of the 8 configurations match");
    write_line("\"knobs\": {\"teir\": \"low\"}");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "line 1: \"teir\" is not a knob of these configurations");
    write_line("\"knobs\": {\"tier\": \"low\"}");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "line 1: 4 of the 8 configurations match");
    write_line("\"knobs\": {\"tier\": \"low\"}, \"overhead_ms\": -1");
    REFUSED(GRID "--choices %F/mine.v2.jsonl --output_dir %F/m", 3, "line 1: overhead_ms: expected a number from 0");
    REFUSED(GRID "--choices %F/none.jsonl --output_dir %F/m", 3, "none.jsonl");
}
int main(void) {
    if (!command_begin("choices")) return 1;
    RUN_TESTS(test_policy, test_mistakes);
    return command_end("test_choices");
}
