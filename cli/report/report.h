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

struct report_settings {
    int axis;             /* METRIC_*: the latency that accuracy is held against */
    double percentile;    /* over samples; -1: the mean */
    size_t resamples;
    uint32_t seed;
    double epsilon_share, epsilon_accuracy; /* of the median latency; absolute */
    double peak_tflops, peak_gbs;           /* NaN: the best that these files reach */
    double budget, min_accuracy;            /* infinite: none */
};

typedef enum bound { BOUND_NONE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LAUNCH } bound;

extern const char *const BOUND_NAMES[];

struct stage_cost {
    vp_estimate p50;             /* ms over samples */
    double mean, share;          /* ms; of the mean T_total */
    double flops, bytes, launches, tflops, gbs; /* means a request; achieved; NaN: not counted */
    /* wall / ms: on a GPU the share of the time in which the host was still sending work */
    double host_share;
    double idle_share;           /* of the device, where kernels were timed; NaN: not known */
    /* shares of the same time by part of the model; with idle_share 1 where any is known, else NaN */
    double parts[VP_PART_COUNT];
    bound limit;                 /* what holds it up */
};

struct decomposition {   /* of one file */
    const struct result_file *file;
    vp_estimate p50[METRIC_STAGE];
    double mean[METRIC_STAGE], p95[METRIC_STAGE], p99[METRIC_STAGE];
    size_t counts[METRIC_STAGE]; /* samples that have it */
    struct stage_cost stages[VP_STAGE_COUNT];
    /* run_spread: median over samples of a sample's runs' std / mean */
    double closure, unaccounted_share, idle_share, run_spread;
};

struct curve_bin { double x; vp_estimate y; size_t count; };

struct curve { /* a latency against what it should grow with */
    const char *name, *x_name, *y_name, *unit; /* unit of the slope */
    char label[48];                            /* of which configurations */
    struct curve_bin *bins; size_t bin_count;
    vp_estimate slope; double intercept, r2; size_t count; /* NaN: x does not vary */
};

struct knob_front { int knob; int32_t level; uint32_t *front; size_t count; double area; };
struct knob_gain { size_t from, to; int knob; vp_gain gain; };

struct tradeoff {        /* of one group; indices are places in group->paired */
    const struct result_group *group;
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
    /* of latency and accuracy, means over samples; 0: none */
    vp_effect *effects[2]; size_t effect_count; double *shares[2]; int32_t order;
    struct knob_front *fronts; size_t knob_front_count;
    struct knob_gain *gains; size_t gain_count;
};

struct report {
    const struct results *results;
    struct report_settings settings;
    struct text_list warnings, findings;
    struct decomposition *items;        /* [results->count] */
    double peak_tflops, peak_gbs;
    int peaks_are_given;
    struct curve *curves; size_t curve_count; size_t *curve_group; /* group of each */
    struct tradeoff *tradeoffs;         /* [results->group_count] */
};

/* how many have this very latency and accuracy, itself included */
size_t equal_points(const struct tradeoff *tradeoff, size_t config);
void tradeoff_make(struct tradeoff *tradeoff, const struct results *results, const struct result_group *group,
                   const struct report_settings *settings);
void tradeoff_free(struct tradeoff *tradeoff);

/* "medium", "576 tokens", "4": a knob's level */
const char *report_level_text(const struct tradeoff *tradeoff, const struct results *results, int knob, int32_t level,
                              char out[48]);

void report_make(struct report *report, const struct results *results, const struct report_settings *settings);
void report_free(struct report *report);
const char *percentile_text(double percentile);

/* "low k4 b12", with the data set in front where there are several */
const char *report_full_name(const struct results *results, const struct result_file *file, char out[160]);
int stage_is_known(const struct report *report, int stage);

/* What prefill and decode are made of, where kernels were timed one by one. */
extern const int PART_STAGES[];

int stage_has_parts(const struct stage_cost *cost);

int is_listed(const uint32_t *items, size_t count, size_t value);
void effect_name(const struct tradeoff *tradeoff, const struct results *results, const vp_effect *effect,
                 char out[160]);
void put_setting_of(vp_json_writer *writer, const struct result_file *file);

/* What report and best share; a figure that is not given is NaN or infinite. */
struct report_settings report_settings_of(const struct options *options);

#endif
