/* decomposition.h: the stages that make up the time of a request (E1), and how they grow. */
#ifndef VLMPROF_CLI_DECOMPOSITION_H
#define VLMPROF_CLI_DECOMPOSITION_H
#include "results/metrics.h"
#include "results/result_read.h"

/* What limits a stage. BOUND_NONE: unknown, because its work was not counted. */
typedef enum bound { BOUND_NONE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LAUNCH } bound;

extern const char *const BOUND_NAMES[];

struct stage_cost {
    vp_estimate p50;               /* ms, over samples */
    double mean, share;            /* ms; share of the mean T_total */
    double flops, bytes, launches; /* means per request; NaN if not counted */
    double tflops, gbs;            /* achieved rates; NaN if not counted */
    /* the host's time for the stage / ms: on a GPU, the share of time in which the host was still submitting work */
    double host_share;
    double idle_share; /* idle share of the device, if kernels were timed; otherwise NaN */
    /* shares of that time by part of the model; they add up to 1 with idle_share; NaN if unknown */
    double parts[VP_PART_COUNT];
    bound limit;
};

/* The decomposition of one file. */
struct decomposition {
    const struct result_file *file;
    vp_estimate p50[METRIC_STAGE];
    double mean[METRIC_STAGE], p95[METRIC_STAGE], p99[METRIC_STAGE];
    size_t counts[METRIC_STAGE]; /* samples that have it; T_total: only those with a TTFT, if any has one */
    struct stage_cost stages[VP_STAGE_COUNT];
    double closure, unaccounted_share, idle_share;
    double run_spread; /* std / mean over the runs of a sample; median over samples */
};

/* std / mean over the runs of a sample; the median over the samples. */
double run_spread_of(const struct result_file *file);

/* A part's share of the time of all requests; requests without the part count as 0. */
double share_of_total(const struct decomposition *decomposition, int metric);

/* Fills everything except the stages' limits, which need the roofs of all files. */
void decompose(struct decomposition *decomposition, const struct result_file *file);

/* The stages that have parts: prefill and decode, if their kernels were timed. */
enum { PART_STAGE_COUNT = 2 };
extern const int PART_STAGES[PART_STAGE_COUNT];

int stage_has_parts(const struct stage_cost *cost);

/* Points of about the same x, in ms. p50 is their median, for the tables. mean is the statistic that a least-squares
 * line also estimates, for the plots. x is the median and mean_x the mean of their x. */
struct curve_bin { double x, mean_x; vp_estimate p50, mean; size_t count; };

/* A latency as a function of the quantity it should grow with. */
struct curve {
    const char *name, *x_name, *y_name, *unit; /* unit of the slope */
    char label[48];                            /* name of the configurations */
    size_t group;                              /* index of their data set in results->groups */
    struct curve_bin *bins; size_t bin_count;
    vp_estimate slope, intercept; double r2;   /* NaN if x does not vary */
    size_t count;                              /* points */
};
struct curve_list { struct curve *items; size_t count; };

/* Adds the curves of a data set: vision over views; then, for each language model, the image cost from outside over its
 * tokens, prefill, decode and decode context. */
void curves_add(struct curve_list *curves, const struct results *results, size_t group);
void curves_free(struct curve_list *curves);

#endif
