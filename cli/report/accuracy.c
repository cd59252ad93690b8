/* accuracy.c: confidence intervals for accuracy, from the metric's score range. */
#include "report/tradeoff.h"

#include "vlmprof_score.h"

#include <math.h>

struct score_range score_range_of(const struct result_file *file) {
    struct score_range range = {0, 1, 0};
    vp_score_metric metric;
    const char *name = file->accuracy_metric;
    if (name && !strcmp(name, "cider")) range.high = 10; /* CIDEr-D is ten times a cosine */
    range.is_known = name ? vp_score_metric_find(name, &metric) == VP_OK || range.high > 1 || file->is_agreement
                                || file->accuracy_from
                          : file->is_foreign;
    for (size_t i = 0; range.is_known && i < file->count; i++) {
        double score = result_at(file, COLUMN_ACCURACY, i);
        if (score < range.low || score > range.high) range.is_known = 0;
    }
    return range;
}
struct score_range score_range_common(struct score_range left, struct score_range right) {
    left.is_known &= right.is_known;
    if (right.low < left.low) left.low = right.low;
    if (right.high > left.high) left.high = right.high;
    return left;
}
vp_bounded_interval accuracy_interval(struct score_range range, const double *first, const double *second,
                                      size_t count) {
    size_t bytes = vp_bounded_scratch_bytes(count);
    vp_bounded_interval interval;
    vp_mean_interval student;
    void *scratch = resize(NULL, bytes, 1);
    interval.count = count;
    interval.mean = interval.low = interval.high = interval.p = (double)NAN;
    if (range.is_known) {
        if (vp_accuracy_interval(first, second, count, range.low, range.high, 0.95, scratch, bytes, &interval) != VP_OK)
            interval.mean = (double)NAN;
    } else if (vp_paired_t(first, second, count, 0.95, &student) == VP_OK) {
        interval.mean = student.mean;
        if (student.error > 0) {
            interval.low = student.low;
            interval.high = student.high;
            interval.p = student.p;
        }
    } else if (count == 1) interval.mean = first ? second[0] - first[0] : second[0];
    free(scratch);
    return interval;
}
vp_estimate file_accuracy(const struct result_file *file) {
    vp_estimate estimate = estimate_none();
    double *scores = resize(NULL, file->count + 1, sizeof *scores);
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        scores[count] = result_at(file, COLUMN_ACCURACY, i);
        count += isfinite(scores[count]) != 0;
    }
    estimate.value = file->accuracy;
    if (count) {
        vp_bounded_interval interval = accuracy_interval(score_range_of(file), NULL, scores, count);
        estimate.low = interval.low;
        estimate.high = interval.high;
    }
    free(scores);
    return estimate;
}
