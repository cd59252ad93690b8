/* accuracy.h: intervals of accuracies, from the range of the scores that a metric gives. Scores of result files come
 * in; a mean, or the mean of paired differences, goes out with its 95 % interval. */
#ifndef VLMPROF_CLI_ACCURACY_H
#define VLMPROF_CLI_ACCURACY_H
#include "results/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

/* The range of one sample's score. is_known 0: the file does not give it, and intervals are Student's. */
struct score_range { double low, high; int is_known; };

/* The range by the file's metric. The experiments' own files do not name it, but all their rules score 0..1. It is also
 * unknown if a score of the file is outside it. */
struct score_range score_range_of(const struct result_file *file);

/* The range that applies to both. */
struct score_range score_range_common(struct score_range left, struct score_range right);

/* The mean of second - first, paired; first NULL: of second alone. If the range is not known and there are fewer than 2
 * scores, or all are equal, the ends and p are NaN: nothing can be concluded. */
vp_bounded_interval accuracy_interval(struct score_range range, const double *first, const double *second,
                                      size_t count);

/* The accuracy of a file over all its scored samples; the ends are NaN if there is no interval. */
vp_estimate file_accuracy(const struct result_file *file);

#endif
