/* series.c: requests that waited for each other, and percentiles of their times. */
#include "report/series.h"

#include "vlmprof_analysis.h"

#include <math.h>

size_t requests_of(const struct result_file *file, int metric, double **out) {
    const double *values = metric < METRIC_STAGE ? file->run_ms[metric] : NULL;
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
/* This many of the values are worth one independent value. */
static double correlation_time(const double *values, size_t count) {
    double *zeros = zeroed(count, sizeof *zeros), time = 1;
    vp_comparison comparison;
    if (vp_compare_ordered(zeros, values, count, VP_SCALE_ABSOLUTE, 1, 0.05, &time, &comparison) != VP_OK) time = 1;
    free(zeros);
    return fmax(time, 1);
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
    const size_t independent = (size_t)((double)count / correlation_time(flags, count)),
                 needs = vp_statistics_percentile_needs(percentile, 0.95);
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
/* Whether so many values above a limit, of independent ones, show that at most this share of all is. */
static int share_meets(double above, double count, double allowed) {
    const double tail = 0.025;
    if (above < count && vp_statistics_beta(above + 1, count - above, allowed, 1 - allowed) >= 1 - tail) return 1;
    return above > 0 && vp_statistics_beta(above, count - above + 1, allowed, 1 - allowed) <= tail ? -1 : 0;
}
int series_meets(const double *values, size_t count, double percentile, double limit, size_t *enough) {
    double *sorted = resize(NULL, 2 * count + 1, sizeof *sorted), *flags = sorted + count, above = 0, more = 1;
    const double time = correlation_time(values, count), allowed = 1 - percentile / 100;
    double times[2];
    memcpy(sorted, values, count * sizeof *sorted);
    vp_sort_double(sorted, count);
    const double ends[2] = {count ? vp_statistics_percentile(sorted, count, percentile) : 0, limit};
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < count; i++) flags[i] = values[i] > ends[k];
        times[k] = correlation_time(flags, count);
    }
    for (size_t i = 0; i < count; i++) above += flags[i];
    free(sorted);
    const double worth = (double)count / fmax(time, fmax(times[0], times[1])), share = above / (double)count;
    const int meets = count ? share_meets(share * worth, worth, allowed) : 0;
    while (count && more < 100 && !share_meets(share * worth * more, worth * more, allowed)) more *= 1.02;
    *enough = more < 100 ? (size_t)ceil((double)count * more) : 0;
    return meets;
}
