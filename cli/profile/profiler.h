/* profiler.h: times every operation of requests, and records them into one table and into a trace.
 * A session and requests come in; the sums, the table and the trace's file go out. Functions that can fail print an
 * error on stderr and return 0 or an exit code. */
#ifndef VLMPROF_CLI_PROFILER_H
#define VLMPROF_CLI_PROFILER_H
#include "base/options.h"
#include "measure/engine.h"
#include "measure/input.h"
#include "measure/measure.h"
#include "page/flame.h"
#include "results/metrics.h"
#include "vlmprof_engine.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"
#include "vlmprof_torch_trace.h"

enum { PROFILE_RANGES = 64 };
/* What to record and to write. A text is NULL, and a number 0, if its option is not given. */
struct profile_settings {
    const struct options *options; /* all of them, for the provenance and "config" */
    vp_engine_options engine;
    const char *weights; /* their name, for the page */
    uint32_t groups; int32_t stack_frames; /* VP_OPS_BY_...; frames that distinguish rows */
    const char *sort_by; int64_t row_limit;
    int record_shapes, with_stack, profile_memory;
    const char *output_dir, *trace_dir; /* trace_dir: folder of traces; NULL: none */
    /* the samples of each configuration that a sweep profiles */
    enum profiled_points { PROFILE_NONE, PROFILE_FIRST, PROFILE_ALL } points;
    /* only for run */
    const char *format, *output, *html;
    const char *trace; /* file of the first trace */
    int json, cold;
    vp_schedule schedule; int64_t steps; /* number of requests; 0: as many as the cycles need */
};

/* One recorded request, for the page. */
struct kept_request {
    struct flame_request drawn; /* refers to the members below */
    vp_launch *launches;
    vp_range_record ranges[PROFILE_RANGES];
    vp_stage_times times;
    int64_t *step_ns;
};
struct profiler {
    const struct profile_settings *settings;
    struct session *session;
    struct request *request; struct timed_runs timed; /* for run --profile */
    int on_gpu;
    int64_t step_begin_ns;

    /* records of the last request */
    vp_launch *launches; int64_t launch_capacity;
    vp_span *spans; int64_t span_capacity; /* spans of the CPU's threads; NULL before the first trace, and on a GPU */
    vp_range_record records[PROFILE_RANGES];
    vp_ranges ranges;

    /* sums over all recorded steps */
    vp_op *rows; vp_ops ops;
    vp_ceilings first_ceilings; /* measured before the requests */
    int64_t steps;
    int64_t lost_launches;                                  /* launches that did not fit */
    double stage_ns[VP_STAGE_COUNT], op_ns[VP_STAGE_COUNT]; /* stages and their launches on the device */
    double total_ns;                                        /* total of the whole steps, on the host */
    int64_t negative_idle; /* stages whose launches took longer than the stage itself */

    int keeps_request; struct kept_request kept; /* the last recorded request, if the caller wants it */

    vp_trace *trace;              /* NULL if none is open */
    struct unfinished unfinished; /* the open trace: its temporary file is removed if memory runs out */
    char *trace_path;             /* path of the open trace, or of the last one */
    int64_t traces;               /* number of closed traces */
    struct text_list notes;       /* for stderr at the end */
};

/* Measures the ceilings, before the requests and again after them, and keeps the larger values. Returns 0 or an exit
 * code. */
int profiler_ceilings(struct profiler *profiler, int is_again);
/* Returns 1 if the second measurement raised a ceiling by more than 5 %: the machine was busier at the first. */
int profiler_ceilings_rose(const struct profiler *profiler);

/* Prepares a zeroed profiler for requests of at most new_tokens new tokens on the session's engine, whose ceilings are
 * measured. The caller must call profiler_free, even after a failure. A trace that is still open leaves no file. */
int profiler_open(struct profiler *profiler, const struct profile_settings *settings, struct session *session,
                  int32_t new_tokens);
void profiler_free(struct profiler *profiler);

/* Starts a step: its time starts here, and the ranges of the previous step are dropped. */
void profiler_step_begin(struct profiler *profiler);

/* Runs the step's request with every launch timed. record: the step goes into the table and into the open trace, as
 * number `step`; otherwise it is only a warm-up. *run is the pass itself. */
int profiler_step_run(struct profiler *profiler, const struct pass_input *asked, struct pass_result *run, int64_t step,
                      int record);

/* Opens the trace of the settings, if any. The first goes to --trace FILE; without it, each goes to
 * DIR/profiler_traces/<worker>.<ns>.pt.trace.json. For `run`, worker is NULL. */
int profiler_trace_begin(struct profiler *profiler, const char *worker);

/* Closes the open trace, if there is one, and adds a note about its content. */
int profiler_trace_end(struct profiler *profiler);

#endif
