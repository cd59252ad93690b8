/* sweep_point.h: measures the points of a sweep and writes each one to the journal. */
#ifndef VLMPROF_CLI_SWEEP_POINT_H
#define VLMPROF_CLI_SWEEP_POINT_H
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/options.h"
#include "dataset/plan.h"
#include "request/model.h"
#include "request/request.h"
#include "sweep/journal.h"
#include "sweep/result_write.h"
#include "vlmprof.h"
#include "vlmprof_stages.h"

/* a point of the sample that is being measured */
struct open_point {
    struct configuration *configuration;
    vp_layout own_layout; const vp_layout *layout; /* NULL: text only */
    struct pass_input input;
    int is_open, has_bare, bare_is_due, is_first; /* first: of its configuration */
    int32_t runs, retries;
    int64_t last, spent_ns;               /* last: place of its last line */
    double *totals, *scratch;             /* [max_runs] */
};

struct sweep {
    const struct options *options;
    struct model model;
    struct plan plan;
    struct session session;
    struct journal journal;
    struct journal_index index;                         /* what was there when this process began */
    struct parsed scratch;
    struct pass_result *run;                    /* the one that is being measured */
    struct open_point *open;               /* per cell of a data set */
    struct shape *warm; size_t warm_count;
    vp_rank rank;
    char device[32];
    vp_stop_rule rule;
    int32_t max_retries, bare_every;
    int timing_off, kernel_pass, was_open;
    int64_t session_at, start_ns, runs_now;
    vp_telemetry telemetry; int64_t telemetry_ns; int has_telemetry, is_throttled;
    struct text_buffer held; int streak;   /* lines of points that failed in a row */
    size_t point_count, done, done_before; /* of this process */
    int64_t failed;
    struct summaries results; int has_merged;
};

int sweep_message(const struct sweep *sweep, const char *what);

int is_same_grid(const struct sweep *sweep);
int write_head(struct sweep *sweep);
int sweep_loop(struct sweep *sweep);

#endif
