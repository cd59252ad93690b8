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
typedef struct open_point {
    cell *c;
    vp_layout layout; const vp_layout *l; /* NULL: text only */
    work k;
    int is_open, has_bare, bare_is_due, is_first; /* first: of its configuration */
    int32_t runs, retries;
    int64_t last, spent_ns;               /* last: place of its last line */
    double *totals, *scratch;             /* [max_runs] */
} open_point;

typedef struct sweep {
    const options *o;
    model m;
    plan p;
    session s;
    journal j;
    book b;                         /* what was there when this process began */
    parsed scratch;
    timing *run;                    /* the one that is being measured */
    open_point *open;               /* per cell of a data set */
    shape *warm; size_t warm_count;
    vp_rank rank;
    char device[32];
    vp_stop_rule rule;
    int32_t max_retries, bare_every;
    int timing_off, kernel_pass, was_open;
    int64_t session_at, start_ns, runs_now;
    vp_telemetry telemetry; int64_t telemetry_ns; int has_telemetry, is_throttled;
    text_buffer held; int streak;   /* lines of points that failed in a row */
    size_t point_count, done, done_before; /* of this process */
    int64_t failed;
    summaries results; int has_merged;
} sweep;

int sweep_message(const sweep *x, const char *what);

int is_same_grid(const sweep *x);
int write_head(sweep *x);
int sweep_loop(sweep *x);

#endif
