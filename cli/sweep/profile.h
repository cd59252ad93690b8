/* profile.h: a request operation by operation: tables, schedules, traces, and what that costs. */
#ifndef VLMPROF_CLI_PROFILE_H
#define VLMPROF_CLI_PROFILE_H
#include "base/metrics.h"
#include "base/options.h"
#include "request/input.h"
#include "request/request.h"

/* a point of a sweep, as the files of its profile say it */
typedef struct profile_place { size_t configuration; const char *file_name; int64_t sample_id; int is_first; } profile_place;

int profile_check(const options *o);
int profile_run(const options *o, run_state *x);

int profile_check_sweep(const options *o);

/* A measured point once more, operation by operation, into profiler_results_config_<i>_sample_<j>.txt and, when asked for, a trace. Nothing of it
 * enters the journal. A device that fails here fails the next point as well, and is dealt with there. */
int profile_point(const options *o, session *s, const work *base, timing *run, const profile_place *profiled);

#endif
