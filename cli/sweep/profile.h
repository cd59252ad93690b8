/* profile.h: a request operation by operation: tables, schedules, traces, and what that costs. */
#ifndef VLMPROF_CLI_PROFILE_H
#define VLMPROF_CLI_PROFILE_H
#include "base/metrics.h"
#include "base/options.h"
#include "request/input.h"
#include "request/request.h"

/* a point of a sweep, as the files of its profile say it */
struct profile_place { size_t configuration; const char *file_name; int64_t sample_id; int is_first; };

int profile_check(const struct options *options);
int profile_run(const struct options *options, struct run_state *state);

int profile_check_sweep(const struct options *options);

/* Runs a measured point once more, operation by operation, and writes profiler_results_config_<i>_sample_<j>.txt and,
 * when asked for, a trace. Nothing of it enters the journal. A device that fails here fails the next point as well, and
 * is dealt with there. */
int profile_point(const struct options *options, struct session *session, const struct pass_input *base,
                  struct pass_result *run, const struct profile_place *profiled);

#endif
