/* series.c: requests that waited for each other, and percentiles of their times. */
#include "report/series.h"

#include "vlmprof_analysis.h"

#include <math.h>

size_t requests_of(const struct result_file *file, int metric, double **out) {
    const double *values = metric == METRIC_TOTAL ? file->run_total : metric == METRIC_TTFT ? file->run_ttft : NULL;
    size_t count = 0, runs = 0;
    *out = NULL;
    if (!knobs_are_loaded(&file->knobs) || !values) return 0;
    *out = resize(NULL, file->run_at[file->count], sizeof **out);
    for (size_t i = 0; i < file->count; i++)
        if (file->run_at[i + 1] - file->run_at[i] > runs) runs = file->run_at[i + 1] - file->run_at[i];
    for (size_t run = 0; run < runs; run++) /* each round was a block of its own */
        for (size_t i = 0; i < file->count; i++) {
            const size_t at = file->run_at[i] + run;
            if (at < file->run_at[i + 1] && isfinite(values[at])) (*out)[count++] = values[at];
        }
    return count;
}
/* The number of independent values that these are worth. */
static size_t independent_of(const double *values, size_t count) {
    double *zeros = zeroed(count, sizeof *zeros), time = 1;
    vp_comparison comparison;
    if (vp_compare_ordered(zeros, values, count, VP_SCALE_ABSOLUTE, 1, 0.05, &time, &comparison) != VP_OK) time = 1;
    free(zeros);
    return (size_t)((double)count / fmax(time, 1));
}
static vp_estimate series_mean(const double *values, size_t count) {
    vp_estimate mean = {count ? vp_statistics_mean(values, count) : (double)NAN, (double)NAN, (double)NAN};
    double *zeros = zeroed(count + 1, sizeof *zeros);
    vp_comparison comparison;
    if (count > 1
        && vp_compare_ordered(zeros, values, count, VP_SCALE_ABSOLUTE, 1, 0.05, NULL, &comparison) == VP_OK) {
        mean.low = comparison.low;
        mean.high = comparison.high;
    }
    free(zeros);
    return mean;
}
vp_estimate series_percentile(const double *values, size_t count, double percentile) {
    vp_estimate estimate = {(double)NAN, (double)NAN, (double)NAN};
    if (percentile < 0 || !count) return series_mean(values, count);
    double *sorted = resize(NULL, 2 * count, sizeof *sorted), *flags = sorted + count, low, high;
    memcpy(sorted, values, count * sizeof *sorted);
    vp_sort_double(sorted, count);
    estimate.value = vp_statistics_percentile(sorted, count, percentile);
    for (size_t i = 0; i < count; i++) flags[i] = values[i] <= estimate.value;
    const size_t independent = independent_of(flags, count), needs = vp_statistics_percentile_needs(percentile, 0.95);
    for (size_t i = 0; i < independent; i++) flags[i] = (double)i; /* their ranks */
    if (independent >= (independent < count ? 2 * needs : needs)
        && vp_statistics_percentile_interval(flags, independent, percentile, 0.95, &low, &high) == VP_OK) {
        const double stretch = (double)count / (double)independent;
        const size_t last = (size_t)ceil((high + 1) * stretch) - 1;
        estimate.low = sorted[(size_t)(low * stretch)];
        estimate.high = sorted[last < count ? last : count - 1];
    }
    free(sorted);
    return estimate;
}
