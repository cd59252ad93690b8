/* fuzz_result.c: any bytes as one or two result files (the second begins after the first 0xFF), read, grouped and paired as the reports do it,
 * and taken as measurements for a latency model. libFuzzer entry. */
#include "fuzz.h"
#undef _OPENMP /* one reader: a pool of threads would only wait */
#include "cli/results/result_read.c"
#include "report/measurements.h"

static void check_file(const struct result_file *file) {
    char name[80];
    MUST(!file->error[0] && file->dataset_name && setting_text(file, name) == name);
    MUST(file->is_served ? !knob_is_set(&file->knobs, KNOB_TOP_K) && knob_text(&file->knobs, KNOB_ENDPOINT_MODEL) && knob_text(&file->knobs, KNOB_REQUEST)
                         : knob_number(&file->knobs, KNOB_BLOCKS) >= 1);
    for (size_t i = 0; i < file->count; i++) {
        MUST((!i || file->ids[i - 1] < file->ids[i]) && file->run_at[i] <= file->run_at[i + 1]);
        MUST(result_row(file, file->ids[i]) == i && result_at(file, METRIC_TOTAL, i) > 0);
        for (size_t run = file->run_at[i]; run < file->run_at[i + 1]; run++) MUST(file->run_ms[METRIC_TOTAL][run] >= 0);
        for (int column = 0; column < COLUMN_COUNT; column++) MUST(!isinf(result_at(file, column, i)));
    }
}
static void check_group(const struct results *results, const struct result_group *group) {
    static const int columns[] = {METRIC_TOTAL, COLUMN_ACCURACY};
    MUST(group->first + group->count <= results->count && group->paired_count <= group->count);
    for (int used = 1; used <= 2; used++) {
        int64_t *ids;
        size_t count = paired_ids(results, group, columns, used, &ids);
        double *values = count ? paired_column(results, group, columns[used - 1], ids, count) : NULL; /* the reports ask for 2 and more */
        MUST(count <= group->id_count && (!count || group->paired_count));
        for (size_t i = 0; i < count * group->paired_count; i++) MUST(isfinite(values[i]));
        free(values);
        free(ids);
    }
}
static void check_measurements(const struct results *results) {
    struct measurements measurements = {0};
    measurements_read(&measurements, results, 64, NULL);
    for (size_t i = 0; i < measurements.count; i++) MUST(isfinite(measurements.total[i]) && measurements.configs[i] < results->count);
    measurements_free(&measurements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static struct memory_file files[2];
    const char *paths[2];
    const uint8_t *second;
    struct results results;
    size_t second_bytes, first_bytes = fuzz_split(data, bytes, &second, &second_bytes);
    fuzz_silence();
    paths[0] = memory_file_fill(&files[0], data, first_bytes);
    if (second) paths[1] = memory_file_fill(&files[1], second, second_bytes);
    int code = results_read(&results, paths, second ? 2 : 1);
    MUST(code == 0 || (code == EXIT_INPUT && !results.count && !results.group_count));
    for (size_t i = 0; i < results.count; i++) check_file(&results.files[i]);
    for (size_t i = 0; i < results.group_count; i++) check_group(&results, &results.groups[i]);
    if (results.count) check_measurements(&results);
    results_free(&results);
    knob_own_forget();
    return 0;
}
