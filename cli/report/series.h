/* series.h: requests that waited for each other: their times in the order of measurement, and percentiles of these. */
#ifndef VLMPROF_CLI_REPORT_SERIES_H
#define VLMPROF_CLI_REPORT_SERIES_H
#include "results/result_read.h"
#include "vlmprof_statistics.h"

/* For a server's file under load, in which each request counts instead of the mean of a sample's runs. Returns the
 * number of requests that have the time, METRIC_TOTAL or METRIC_TTFT, and writes them to *out, malloc'ed, in
 * the order in which they were sent; 0 for other files and metrics. */
size_t requests_of(const struct result_file *file, int metric, double **out);

/* A percentile of values in the order of their measurement, with a 95 % interval that allows for correlated neighbours;
 * percentile -1: the mean. The bounds are NaN if the values are worth too few independent ones.
 * rule:    order statistics as if there were count / correlation time independent values (vp_compare_ordered of "is at
 *          or below the percentile"), which must be twice as many as an interval needs
 * numeric: coverage for waiting times in a queue with equal service times (tests): 93 to 97 % where there is one */
vp_estimate series_percentile(const double *values, size_t count, double percentile);

#endif
