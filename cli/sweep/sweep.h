/* sweep.h: the state of a running sweep. commands/command_sweep.c makes its plan; sweep/sweep_point.c and, for servers,
 * sweep/served_point.c measure with it. */
#ifndef VLMPROF_CLI_SWEEP_H
#define VLMPROF_CLI_SWEEP_H
#include "base/json.h"
#include "base/launcher.h"
#include "base/options.h"
#include "data/plan.h"
#include "measure/engine.h"
#include "model/model.h"
#include "profile/profiler.h"
#include "results/metrics.h"
#include "server/checks/twins.h"
#include "server/endpoint.h"
#include "sweep/baseline.h"
#include "sweep/journal.h"
#include "sweep/result_write.h"
#include "vlmprof_image.h"
#include "vlmprof_noise.h"
#include "vlmprof_stages.h"

/* A point of the current sample: one per configuration of its data set. */
struct open_point {
    struct configuration *configuration;
    struct cuts own_cuts; const struct cuts *cuts; /* NULL: text only, or an image cannot be used */
    int32_t *ids; /* if they depend on the image's cuts */
    struct pass_input input;
    vp_pruned pruned;           /* result of pruning; image_tokens is 0 without pruning */
    struct sent_pictures *sent; /* to a server: the images as sent; NULL: text only */
    double overhead_ms;         /* of a policy: the time of its choice */
    int64_t tokens_by_rule;     /* its tokens by the rule of --family; -1: not known */
    int is_open;                /* 1 if it has runs to do */
    int lacks_kernels;          /* 1 if it is measured, but the requested kernels of its shape are not in the journal */
    int is_first;               /* 1 if it belongs to the configuration's first sample */
    int bare_is_due;            /* 1 if a pair of runs without and with stage times belongs to it */
    int has_bare;               /* 1 if that pair is measured */
    int has_twins;              /* 1 if its twins are measured, or could not be */
    int64_t twins_at;           /* place in the journal of its pairs so far; -1: none */
    int has_fidelity;           /* 1 if it was compared with the baseline, or could not be */
    int is_wanted;              /* 1 if it is the baseline of an open point */
    int32_t runs;               /* number of measured runs */
    int32_t retries;            /* repeated attempts of all runs */
    int64_t last;               /* offset of its last line in the journal; -1: none yet */
    int64_t spent_ns;           /* the sum of its runs */
    double *totals, *scratch;   /* [rule.max_runs]; totals: ns of each run */
};

/* A kind of pass that an engine has already run. */
struct warm_pass { struct shape shape; const struct knob_values *knobs; };

/* An engine of a sweep, one for each of the plan's weights. For servers there is only one entry, without an engine. */
struct sweep_engine {
    const char *weights;
    vp_engine_options settings;
    struct session session;
    int was_open;       /* 1 if this process has opened it before */
    int64_t session_at; /* offset of its line in the journal; -1: not written yet */
    struct warm_pass *warm; size_t warm_count; /* passes that it has run */
};

struct sweep;
/* The differences between measuring the engine and measuring servers. Functions print their errors and return 0 or an
 * exit code. */
struct sweep_backend {
    /* write members of the journal's head; the "sizes" of a point */
    void (*put_head)(vp_json_writer *writer, const struct sweep *sweep);
    void (*put_sizes)(vp_json_writer *writer, const struct sweep *sweep, const struct open_point *point,
                      const struct sample *sample);

    /* Makes a point's request. `reason` becomes empty, or the reason why there is none; *has_vanished: 1 if the image's
     * file no longer exists. end: called after the last point of the sample, unless it is NULL. */
    int (*begin)(struct sweep *sweep, struct open_point *point, const struct sample *sample, const struct entry *entry,
                 char *reason, size_t capacity, int *has_vanished);
    void (*end)(struct sweep *sweep);

    /* Runs it once into sweep->run, and again after device errors. Before the first run it opens and warms up
     * everything needed, and writes the session's line. `reason` becomes empty, or the reason of the failure;
     * *is_device: 1 if the device or the server failed, not the request. The exit code ends the sweep. */
    int (*run)(struct sweep *sweep, struct open_point *point, const struct sample *sample, char *reason,
               size_t capacity, int *is_device);
};

/* How to measure, in addition to the plan, and where to. */
struct sweep_settings {
    vp_engine_options engine; /* without a rank's own GPU and a configuration's weights */
    struct profile_settings profile;
    struct endpoint_settings endpoint;
    const char *output_dir;   /* may be NULL with --plan */
    int32_t twins; /* pairs of twins per point; 0: none */
    int no_cache, same_image, retry_failed;
    int is_uniform; double ramp_s; /* of a load: see struct load */
};

struct sweep {
    /* the measured models and servers */
    const struct options *options; /* for the head of the journal and the provenance */
    struct sweep_settings settings;
    struct model model;
    struct plan plan;
    const struct sweep_backend *backend;
    struct served_sweep *served; /* the open connections to servers; NULL: the engine is measured */
    char device[32];             /* --device; with several processes on one machine, each its own GPU */
    struct launched rank;

    /* the way of measuring */
    struct stop_rule rule;
    int32_t max_retries;
    int32_t bare_every; /* 0: no pairs */
    int timing_off;     /* 1 if --timing off */
    int kernel_pass;    /* 1 if --kernel_pass */

    struct baseline baseline; /* state of --baseline */

    /* the output */
    struct journal journal;
    struct journal_index index; /* journals as they were when this process started */
    struct parsed scratch;
    struct text_buffer pending; /* lines of consecutive failed points, not yet in the journal */
    int streak;                 /* the number of consecutive failures */
    struct summaries results; int has_merged;

    /* engines */
    struct sweep_engine *engines; size_t engine_count;
    struct sweep_engine *engine; /* the engine of the current point */
    int fits;           /* 1 if all of them are known to fit into memory together */
    vp_telemetry telemetry; int64_t telemetry_ns; /* the last reading and its time; 0: never */
    int has_telemetry, is_throttled;              /* flags of the last reading */

    /* the current block of runs: the counters at its start, and the offset of its first line */
    vp_noise_reading block_reading;
    int64_t block_from, block_runs; /* block_runs: runs_now at its start */
    int64_t server_group;           /* the processes of --server; 0: none */

    /* the progress; done and failed count points of this process's share */
    struct pass_result *run; /* the current run */
    /* of the current sample; NULL until a point needs them */
    vp_image *images;
    struct open_point *open; /* [configurations of the plan]: those of the current data set are first */
    size_t point_count, done, done_before;
    char first_failure[256]; /* first failure in this process, with its sample; empty if there is none */
    int64_t failed, runs_now;
    int64_t start_ns;
};

/* ---- sweep_run.c: a planned sweep */
/* Continues the sweep from the journals of its folder, measures this process's points, and writes the result files.
 * Returns 0 or an exit code. */
int sweep_run(struct sweep *sweep);
void sweep_free(struct sweep *sweep);

/* ---- sweep_point.c: measures points */
extern const struct sweep_backend ENGINE_BACKEND;

/* Prints the sweep's progress on stderr; `what` is why it stopped. */
#define RESTART_REMEDY "restart the server, then "
void sweep_message(const struct sweep *sweep, const char *what, const char *remedy);

/* Returns 1 if the newest head of the journal has exactly the plan's configurations. */
int is_same_grid(const struct sweep *sweep);

/* Writes the grid, and the model and machine it is measured on, as a head line. */
int write_head(struct sweep *sweep);

/* Measures the rest of this process's share, until it is done or a signal arrives. */
int sweep_loop(struct sweep *sweep);

/* Continues a point from its last line in the journal; totals: [rule.max_runs]. */
int point_resume(struct sweep *sweep, struct open_point *point, const struct index_entry *entry);

/* Lines of a point, which become its last one, and of a sample. A failure of the device waits in sweep->pending. */
int point_write_run(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                    const struct pass_result *run);
int point_write_done(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                     enum stop_reason stop);
int point_write_failed(struct sweep *sweep, struct open_point *point, const struct sample *sample, const char *reason,
                       int is_device);
int sweep_write_sample(struct sweep *sweep, size_t set, const struct sample *sample);

/* The order of the configurations in a round of a sample; -1: of all samples. For servers it is drawn again each time,
 * because the first request after a pause is slower. */
void sweep_draw_order(const struct sweep *sweep, size_t *order, size_t count, int64_t sample, int64_t round);

/* Ends a block of runs, whose noise becomes a line. */
void sweep_block_begin(struct sweep *sweep);
int sweep_block_end(struct sweep *sweep);

/* ---- served_point.c: the part that is specific to servers */
/* Opens the endpoints of all variants and builds a request for each, so that mistakes are reported before anything is
 * written. It does not connect. sweep->served becomes its state; call served_close even after a failure. */
int served_open(struct sweep *sweep);
void served_close(struct sweep *sweep);

extern const struct sweep_backend SERVER_BACKEND;

/* A point's images stay after its sample: served_keep after the backend's begin, served_release in the end. */
void served_keep(struct sweep *sweep);
void served_release(struct open_point *point);

struct endpoint *served_endpoint(const struct sweep *sweep, const struct configuration *configuration);
struct question served_question(const struct sweep *sweep, const struct open_point *point, const struct sample *sample);

/* Sends each server one request, so that it is loaded and connected, and writes the session's line. Returns 0 or the
 * exit code that ends the sweep. */
int served_warm_up(struct sweep *sweep, const struct open_point *point);

/* Warns if the prompt of sweep->run is too short for its images, once per variant. */
void served_check_prompt(struct sweep *sweep, const struct open_point *point, const struct sample *sample);

/* ---- served_load.c: sweep_loop of servers under load */
int served_load_loop(struct sweep *sweep);

/* Returns 1 if the point needs twins: they are requested and there is an image. */
int served_wants_twins(const struct sweep *sweep, const struct open_point *point);

/* Measures the twins of a point after its runs, beyond the known ones. `reason` becomes empty, or the reason why there
 * are no more pairs. Returns 0, EXIT_INTERRUPTED, or EXIT_DEVICE if the server is away. In all cases the caller must
 * call twins_free. */
struct twins_object;
int served_twins(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                 const struct twins_object *known, struct twins *twins,
                 char *reason, size_t capacity);

/* Queries the baseline's server and the point's server to compare the answers. `reason` becomes empty, or describes
 * what is not known. Returns 0 or EXIT_INTERRUPTED. */
int served_ask_baseline(struct sweep *sweep, const struct open_point *first, const struct sample *sample);
int served_follow_baseline(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                           struct fidelity *fidelity, char *reason, size_t capacity);

/* ---- plan_cost.c: sweep --plan */
/* Prints what a sweep needs: work and memory by count, time from the journals in output_dir. Only the model's shape is
 * used. Returns 0 or an exit code. */
int plan_cost_show(const struct sweep *sweep, int as_json);

#endif
