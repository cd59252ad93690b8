/* test_report_text.c: the output of report, word by word, in each of its forms (tests/golden/texts), on result files with known answers: a sweep on a CPU, one on a GPU
 * with kernels by part and time in no stage, two data sets, a corpus metric, two samples, files of the experiments. Runs $PROGRAM from the
 * repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

/* one sweep in the first `count` forms: report-NAME.txt .json .csv */
static void check_forms(const char *name, const char *options, int count) {
    static const char *const forms[][2] = {{"", "txt"}, {"--json", "json"}, {"--csv", "csv"}};
    char file[64];
    for (int i = 0; i < count; i++) {
        check_case("report of %s %s", name, forms[i][0]);
        run("report %%F/%s %s %s", name, options, forms[i][0]);
        snprintf(file, sizeof file, "report-%s.%s", name, forms[i][1]);
        check_kept_run(file, 0);
    }
}
static void test_cpu(void) {
    truth t = truth_of(60, 3);
    t.sending = 0.95; /* the ceilings of a GPU do not apply to a CPU */
    write_sweep("cpu", &t);
    check_forms("cpu", "--resamples 50", 3);
}
/* other latencies and percentiles, given roofs, larger steps of the front */
static void test_options(void) {
    static const char *const options[] = {"--latency prefill --percentile 95", "--latency vision --percentile mean",
        "--latency decode --percentile 99 --peak_tflops 0.5 --peak_gbs 3", "--latency ttft"};
    char file[64];
    for (int i = 0; i < 4; i++) {
        check_case("report %s", options[i]);
        run("report %%F/cpu --resamples 50 %s", options[i]);
        snprintf(file, sizeof file, "report-options-%d.txt", i);
        check_kept_run(file, 0);
    }
}
static void test_gpu(void) {
    truth t = truth_of(40, 3);
    t.device = "cuda:0: test";
    t.weights = "fp32";
    t.parts = 1;
    t.lost_share = 0.2;
    t.sending = 0.95;
    write_sweep("gpu", &t);
    check_forms("gpu", "--resamples 50", 2);
    EXITS(run("report %%F/gpu --resamples 50"), 0, out, "takes the host up to 95.0 % of the decode time: host-bound");
    CHECK_INT(run("report %%F/cpu --resamples 50"), 0);
    CHECK(strstr(last.out, "submitting decode work") == NULL);
}
static void test_two_sets(void) {
    truth t = truth_of(30, 2);
    write_sweep("sets", &t);
    t.task = "second";
    t.skill_less = 0.3;
    for (int size = 0; size < 2; size++)
        for (int k = 0; k < 2; k++) write_made("sets", &t, size, k, 0);
    check_forms("sets", "--resamples 50", 3);
    t.is_corpus = 1;
    t.metric = "cider";
    make_empty(in_folder("corpus"));
    for (int size = 0; size < 2; size++) write_made("corpus", &t, size, 0, 0);
    check_forms("corpus", "--resamples 50", 1);
}
/* two samples: no fitted line, no interval of a percentile */
static void test_few(void) {
    truth t = truth_of(2, 1);
    t.runs = 1;
    write_sweep("few", &t);
    check_forms("few", "--resamples 20", 1);
    make_empty(in_folder("one"));
    write_made("one", &t, 0, 0, 0);
    check_forms("one", "--resamples 20", 2);
}
static void test_experiments(void) {
    make_empty(in_folder("foreign"));
    write_foreign(in_folder("foreign/text-vqa_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    check_forms("foreign", "--resamples 20", 2);
}

int main(void) {
    if (!program_begin("report_text")) return 1;
    RUN_TESTS(test_cpu, test_options, test_gpu, test_two_sets, test_few, test_experiments);
    free(json_nodes);
    return program_done("test_report_text");
}
