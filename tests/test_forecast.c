/* test_forecast.c: sweep --plan beside a sweep that was measured: each configuration's time is the mean of its own rows, counts of what is done and
 * left, and the time left is that of the runs left.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"

#define SWEEP "sweep --synthetic tiny --data samples/questions.jsonl --output_dir %%F/out --top_k_list 1 --num_samples 2 --max_new_tokens 2 --ignore_eos " \
              "--bare_every 0 "
/* mean of T_total over the rows of the result file of that name */
static double rows_mean(const char *name) {
    char path[600], *text;
    vp_json_node *nodes;
    vp_json file;
    size_t needed = 0;
    double sum = 0, value = 0;
    uint32_t rows;
    snprintf(path, sizeof path, "%s/%s", in_folder("out"), name);
    text = check_read(path, NULL);
    if (!CHECK(text != NULL)) return (double)NAN;
    vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL);
    nodes = (vp_json_node *)malloc((needed + 1) * sizeof *nodes);
    CHECK_INT(vp_json_parse(text, strlen(text), nodes, needed, &file, NULL, NULL), VP_OK);
    rows = vp_json_get(&file, 0, "per_sample_results");
    for (uint32_t i = 0; i < nodes[rows].count; i++) {
        vp_json_to_double(&file, vp_json_get(&file, vp_json_at(&file, rows, i), "T_total"), &value);
        sum += value / nodes[rows].count;
    }
    free(nodes);
    free(text);
    return sum;
}
static void test_measured(void) {
    uint32_t all;
    double means[2] = {0, 0};
    check_case("each configuration's measured time is its own");
    CHECK_INT(run(SWEEP "--tier_list low high --num_runs_per_sample 1 --quiet"), 0);
    CHECK_INT(run(SWEEP "--tier_list low high --num_runs_per_sample 1 --plan --json"), 0);
    if (!read_json(last.out)) return;
    all = get(0, "configurations");
    CHECK_INT(count_of(all), 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t one = vp_json_at(&json, all, i);
        char name[200] = "";
        vp_json_text(&json, get(one, "file_name"), name, sizeof name, NULL);
        means[i] = rows_mean(name);
        CHECK_NEAR(number(get(one, "T_total_measured")), means[i], 1e-6 * means[i]);
        CHECK_INT(whole(get(one, "num_runs_measured")), 2);
        CHECK_INT(whole(get(one, "num_runs_left")), 0);
    }
    CHECK(means[1] > 1.2 * means[0]);
    CHECK(number(get(0, "expected_seconds")) == 0);
    CHECK(is_text(get(0, "expected_from"), "measured"));
}
/* estimates that no measurement scales: in the order of the work, and the time left is their sum over the runs left */
static void test_estimated(void) {
    uint32_t all;
    double sum = 0, before = 0;
    check_case("estimates: of each configuration its own, and their sum");
    CHECK_INT(run("sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium high --top_k_list 1 --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 2 --bare_every 0 --plan --json --output_dir %%F/none"), 0);
    if (!read_json(last.out)) return;
    all = get(0, "configurations");
    CHECK_INT(count_of(all), 3);
    for (uint32_t i = 0; i < count_of(all); i++) {
        uint32_t one = vp_json_at(&json, all, i);
        double ms = number(get(one, "T_total_estimate"));
        CHECK(ms > before);
        before = ms;
        CHECK_INT(whole(get(one, "num_runs_left")), 6);
        CHECK_INT(whole(get(one, "num_runs_measured")), 0);
        sum += ms / 1e3 * 6;
    }
    CHECK_INT(whole(get(0, "num_runs_left")), 18);
    CHECK_NEAR(number(get(0, "expected_seconds")), sum, 1e-6 * sum);
}

int main(void) {
    if (!program_begin("forecast")) return 1;
    test_measured();
    test_estimated();
    program_end();
    free(json_nodes);
    return check_done("test_forecast");
}
