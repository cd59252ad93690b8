/* accuracy.h: intervals of accuracies, from the range of the scores that a metric gives. For the scores of result
 * files, it returns the mean, or the mean of paired differences, with a 95 % interval. */
#ifndef VLMPROF_CLI_ACCURACY_H
#define VLMPROF_CLI_ACCURACY_H
#include "results/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

/* The range of a sample's score. If is_known is 0, the file does not define it, and Student's intervals are used. */
struct score_range { double low, high; int is_known; };

/* The range of the file's metric. The experiments' own files do not name their metric, but all their rules score 0 to
 * 1. The range is also unknown if one of the file's scores is outside it. */
struct score_range score_range_of(const struct result_file *file);

/* The range that applies to both files. */
struct score_range score_range_common(struct score_range left, struct score_range right);

/* The mean of second - first, paired, or of only second if first is NULL. If the range is unknown and there are fewer
 * than 2 scores, or all are equal, the bounds and p are NaN: nothing can be concluded. */
vp_bounded_interval accuracy_interval(struct score_range range, const double *first, const double *second,
                                      size_t count);

/* The accuracy of a file over all its scored samples; the bounds are NaN if there is no interval. */
vp_estimate file_accuracy(const struct result_file *file);

#endif
