/* series.h: requests that waited for each other: their times in the order of measurement, and percentiles of these. */
#ifndef VLMPROF_CLI_REPORT_SERIES_H
#define VLMPROF_CLI_REPORT_SERIES_H
#include "results/result_read.h"
#include "vlmprof_statistics.h"

/* For a server's file under load, in which each request counts instead of the mean of a sample's runs. Returns the
 * number of requests that have this metric, and writes its values to *out, malloc'ed, in the order in which the
 * requests were sent; 0 for other files and for parts of a stage. */
size_t requests_of(const struct result_file *file, int metric, double **out);

/* A percentile of values in the order of their measurement, with a 95 % interval that allows for correlated neighbours;
 * percentile -1: the mean. The bounds are NaN if the values are worth too few independent ones.
 * rule:    order statistics as if there were count / correlation time independent values (vp_compare_ordered of "is at
 *          or below the percentile"), which must be twice as many as an interval needs
 * numeric: coverage for waiting times in a queue with equal service times (tests): 93 to 97 % where there is one */
vp_estimate series_percentile(const double *values, size_t count, double percentile);

/* Whether the percentile of what such values are a sample of is at most a limit: 1 yes, -1 no, 0 undecided. *enough:
 * about how many such values would decide it; 0: more than 100 times as many.
 * rule:    exact binomial bounds of the share of values above the limit, 97.5 % each, as if there were count /
 *          correlation time values: the longest one of the values, of "is above the limit" and "above the percentile"
 * numeric: wrong in at most 5 % of samples of 100 to 1000 waiting times, also for a limit equal to the percentile, in
 *          queues with equal or exponential service times at up to 90 % utilisation */
int series_meets(const double *values, size_t count, double percentile, double limit, size_t *enough);

#endif
