/* profile.h: run --profile and sweep --use_profiler: profiles requests by operation, as tables and traces.
 * Settings and a request that is ready to run come in; a table goes to stdout or into a file. Functions return 0 or an
 * exit code after a message on stderr. */
#ifndef VLMPROF_CLI_PROFILE_H
#define VLMPROF_CLI_PROFILE_H
#include "measure/engine.h"
#include "measure/input.h"
#include "profile/profiler.h"
#include "results/metrics.h"

/* run --profile: opens the engine, runs the requests of the schedule, prints the table. The request is ready except
 * for its session, which the caller closes. */
int profile_run(const struct profile_settings *settings, struct request *request);

/* A point of a sweep, for the names of its profile's files. */
struct profile_place {
    size_t configuration_index; /* index in the plan */
    const char *file_name;      /* name of the configuration's result file */
    int64_t sample_id;
    int is_first; /* 1 for the configuration's first sample, the only one with PROFILE_FIRST */
};

/* With settings->points, runs a measured point once more and writes profiler_results_config_<i>_sample_<j>.txt and,
 * with --trace, a trace. An existing file of this point is kept. The journal stays unchanged. *run is overwritten.
 * Returns 0 or EXIT_OUTPUT. A device that fails here also fails at the next point and is handled there. */
int profile_point(const struct profile_settings *settings, struct session *session, const struct pass_input *input,
                  struct pass_result *run, const struct profile_place *place);

/* ---- run --profile --html FILE: writes the recorded profile as a page */
/* Writes the page of the last recorded request into the file of --html. The table of operations must be sorted, and the
 * profiler must keep a request. Returns 0 or an exit code after a message on stderr. */
int profile_page_write(const struct profiler *profiler);
#endif
