/* fuzz_report.c: any bytes after the first as one or two result files (the second begins after the first 0xFF), which become a report; the first
 * byte chooses its form and settings. Text and page are UTF-8, JSON can be read. Without a report the latency models are fitted. libFuzzer entry. */
#include "fuzz.h"
#undef _OPENMP /* one reader: a pool of threads would only wait */
#include "cli/results/result_read.c"
#define run_command run_report
#include "cli/commands/command_report.c"
#undef run_command
#include "report/estimator.h"

static void make_report(const struct results *results, int choice) {
    struct report_settings settings = {0};
    struct text_buffer out = {NULL, 0, 0};
    struct report report;
    settings.axis = choice & 8 ? METRIC_TOTAL : METRIC_PREFILL;
    settings.percentile = choice & 16 ? -1 : 50;
    settings.resamples = 10;
    settings.peak_tflops = settings.peak_gbs = choice & 32 ? 100 : (double)NAN;
    settings.budget = INFINITY;
    settings.min_accuracy = -INFINITY;
    report_make(&report, results, &settings);
    const report_form form = (report_form)((choice & 7) % FORM_COUNT);
    report_form_write(&report, form, &out);
    MUST(out.data != NULL && vp_utf8_valid_bytes(out.data, out.bytes) == out.bytes);
    if (form == FORM_JSON || form >= FORM_E1) MUST(vp_json_parse(out.data, out.bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
    free(out.data);
    report_free(&report);
}
static void fit_models(const struct results *results) {
    struct measurements measurements = {0};
    struct evaluation *evaluation = (struct evaluation *)zeroed(1, sizeof *evaluation);
    struct estimator *estimator;
    measurements_read(&measurements, results, 8, NULL);
    for (int kind = 0; kind < ESTIMATE_KINDS && measurements.count; kind++) {
        estimator = (struct estimator *)zeroed(1, sizeof *estimator);
        if (!estimator_make(&measurements, results, (vp_latency_features)kind, 8, estimator))
            estimator_evaluate(&measurements, (vp_latency_features)kind, evaluation);
        estimator_free(estimator);
    }
    measurements_free(&measurements);
    free(evaluation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct memory_file files[2];
    const char *paths[2];
    const uint8_t *second;
    struct results results;
    size_t second_bytes, first_bytes;
    if (!bytes) return 0;
    fuzz_silence();
    first_bytes = fuzz_split(data + 1, bytes - 1, &second, &second_bytes);
    paths[0] = memory_file_fill(&files[0], data + 1, first_bytes);
    if (second) paths[1] = memory_file_fill(&files[1], second, second_bytes);
    if (results_read(&results, paths, second ? 2 : 1) == 0) {
        if ((data[0] & 7) == 7) fit_models(&results); else make_report(&results, data[0]);
    }
    results_free(&results);
    return 0;
}
