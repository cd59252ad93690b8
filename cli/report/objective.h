/* objective.h: which samples of a configuration meet a latency objective (--slo). */
#ifndef VLMPROF_CLI_OBJECTIVE_H
#define VLMPROF_CLI_OBJECTIVE_H
#include "results/result_read.h"
#include "vlmprof_load.h"

/* The objective of a command line. */
struct objective { const char *text; vp_slo slo; double share; }; /* share of samples or requests that must be good */

/* The samples whose mean over runs meets all limits, with Wilson's 95 % interval. */
struct objective_share { size_t good, count; double share, low, high; };
struct objective_share objective_share_of(const struct result_file *file, const int64_t *ids, size_t id_count,
                                          const vp_slo *slo);

/* The key of a limited time that no sample of the file has; NULL if there is none. */
const char *objective_lacks(const struct result_file *file, const vp_slo *slo);

#endif
