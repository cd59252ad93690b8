/* report.h: computes where the time of a request goes (E1), and what accuracy it buys (E2). */
#ifndef VLMPROF_CLI_REPORT_H
#define VLMPROF_CLI_REPORT_H
#include "base/memory.h"
#include "base/metrics.h"
#include "base/options.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_stages.h"

enum { KNOB_SIZE, KNOB_TOP_K, KNOB_BLOCKS, KNOBS };

extern const char *const KNOB_NAMES[KNOBS];
extern const char *const KNOB_KEYS[KNOBS];

typedef struct report_settings {
    int axis;             /* METRIC_*: the latency that accuracy is held against */
    double percentile;    /* over samples; -1: the mean */
    size_t resamples;
    uint32_t seed;
    double epsilon_share, epsilon_accuracy; /* of the median latency; absolute */
    double peak_tflops, peak_gbs;           /* NaN: the best that these files reach */
    double budget, min_accuracy;            /* infinite: none */
} report_settings;

typedef enum bound { BOUND_NONE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LAUNCH } bound;

extern const char *const BOUND_NAMES[];

typedef struct stage_cost {
    vp_estimate p50;             /* ms over samples */
    double mean, share;          /* ms; of the mean T_total */
    double flops, bytes, launches, tflops, gbs; /* means a request; achieved; NaN: not counted */
    double host_share;           /* wall / ms: on a GPU the share of the time in which the host was still sending work */
    double idle_share;           /* of the device, where kernels were timed; NaN: not known */
    double parts[VP_PART_COUNT]; /* shares of the same time by part of the model; with idle_share 1 where any is known, else NaN */
    bound limit;                 /* what holds it up */
} stage_cost;

typedef struct decomposition {   /* of one file */
    const result_file *file;
    vp_estimate p50[METRIC_STAGE];
    double mean[METRIC_STAGE], p95[METRIC_STAGE], p99[METRIC_STAGE];
    size_t counts[METRIC_STAGE]; /* samples that have it */
    stage_cost stages[VP_STAGE_COUNT];
    double closure, unaccounted_share, idle_share, run_spread; /* run_spread: median over samples of a sample's runs' std / mean */
} decomposition;

typedef struct curve_bin { double x; vp_estimate y; size_t count; } curve_bin;

typedef struct curve { /* a latency against what it should grow with */
    const char *name, *x_name, *y_name, *unit; /* unit of the slope */
    char label[48];                            /* of which configurations */
    curve_bin *bins; size_t bin_count;
    vp_estimate slope; double intercept, r2; size_t count; /* NaN: x does not vary */
} curve;

typedef struct knob_front { int knob; int32_t level; uint32_t *front; size_t count; double area; } knob_front;
typedef struct knob_gain { size_t from, to; int knob; vp_gain gain; } knob_gain;

typedef struct tradeoff {        /* of one group; indices are places in group->paired */
    const result_group *group;
    char reason[160];            /* why there is none; empty: there is */
    int is_corpus;               /* accuracy of whole files only: no intervals */
    int64_t *ids; size_t config_count, sample_count;
    double *latency, *accuracy;  /* [config_count, sample_count]; accuracy NULL for a corpus metric */
    vp_bootstrap_point *points;  /* [config_count]; NaN where not known */
    double *at_latency, *at_accuracy; /* the points as two arrays */
    uint32_t *front, *kept; size_t front_count, kept_count; /* kept: after epsilon */
    double epsilon_latency, area, area_latency, area_accuracy;
    int32_t *levels; vp_knobs knobs; int knob_of[KNOBS]; /* knobs that vary: KNOB_* of each column of levels */
    size_t level_example[KNOBS][VP_KNOB_LEVEL_LIMIT];    /* a configuration with that level, for its name */
    vp_effect *effects[2]; size_t effect_count; double *shares[2]; int32_t order; /* of latency and accuracy, means over samples; 0: none */
    knob_front *fronts; size_t knob_front_count;
    knob_gain *gains; size_t gain_count;
} tradeoff;

typedef struct report {
    const results *r;
    report_settings settings;
    text_list warnings, findings;
    decomposition *items;        /* [r->count] */
    double peak_tflops, peak_gbs;
    int peaks_are_given;
    curve *curves; size_t curve_count; size_t *curve_group; /* group of each */
    tradeoff *tradeoffs;         /* [r->group_count] */
} report;

size_t equal_points(const tradeoff *t, size_t config); /* how many have this very latency and accuracy, itself included */
void tradeoff_make(tradeoff *t, const results *r, const result_group *g, const report_settings *s);
void tradeoff_free(tradeoff *t);

/* "medium", "576 tokens", "4": a knob's level */
const char *report_level_text(const tradeoff *t, const results *r, int knob, int32_t level, char out[48]);

void report_make(report *p, const results *r, const report_settings *s);
void report_free(report *p);
const char *percentile_text(double percentile);

/* "low k4 b12", with the data set in front where there are several */
const char *report_full_name(const results *r, const result_file *f, char out[160]);
int stage_is_known(const report *p, int stage);

/* What prefill and decode are made of, where kernels were timed one by one. */
extern const int PART_STAGES[];

int stage_has_parts(const stage_cost *c);

int is_listed(const uint32_t *items, size_t count, size_t value);
void effect_name(const tradeoff *t, const results *r, const vp_effect *e, char out[160]);
void put_setting_of(vp_json_writer *w, const result_file *f);

/* What report and best share; a figure that is not given is NaN or infinite. */
report_settings report_settings_of(const options *o);

#endif
