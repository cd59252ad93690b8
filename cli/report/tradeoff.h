/* tradeoff.h: the cost of accuracy in latency (E2): fronts, effects and gains of the knobs. */
#ifndef VLMPROF_CLI_TRADEOFF_H
#define VLMPROF_CLI_TRADEOFF_H
#include "results/result_read.h"
#include "vlmprof_analysis.h"

/* ---- confidence intervals for accuracy, from the metric's score range */
/* The range of a sample's score. If is_known is 0, the file does not define it, and Student's intervals are used. */
struct score_range { double low, high; int is_known; };

/* The range of the file's metric. The experiments' own files do not name their metric, but all their rules score 0 to
 * 1. The range is also unknown if one of the file's scores is outside it. */
struct score_range score_range_of(const struct result_file *file);

/* The range that applies to both files. */
struct score_range score_range_common(struct score_range left, struct score_range right);

/* The mean of second - first, paired, or of only second if first is NULL. If the range is unknown and there are fewer
 * than 2 scores, or all are equal, the bounds and p are NaN: nothing can be concluded. */
vp_bounded_interval accuracy_interval(struct score_range range, const double *first, const double *second,
                                      size_t count);

/* The accuracy of a file over all its scored samples; the bounds are NaN if there is no interval. */
vp_estimate file_accuracy(const struct result_file *file);

enum { BOOTSTRAP_SEED = 42 };
#define EPSILON_ACCURACY 0.01 /* minimum difference of neighbours on the epsilon front */
/* The settings shared by report and best. */
struct report_settings {
    int axis;          /* METRIC_*: the latency that accuracy is compared with */
    double percentile; /* percentile over samples; -1 for the mean */
    size_t resamples;
    double peak_tflops, peak_gbs; /* NaN to use the best that these files reach */
    double budget, min_accuracy;  /* infinite if none */
};

const char *percentile_text(double percentile); /* "mean", "P50", "P95" or "P99" */

struct knob_front { int knob; int32_t level; uint32_t *front; size_t count; double area; };
struct knob_gain { size_t from, to; int knob; vp_gain gain; };

/* The trade-off of one data set. Its configurations are numbered by their index in group->paired. */
struct tradeoff {
    const struct result_group *group;
    int is_loaded;               /* requests wait for each other: no intervals of means */
    char reason[160];            /* reason if there is no trade-off, only effects on latency; otherwise empty */
    int is_corpus;               /* 1 if only whole files have an accuracy, without intervals */
    int64_t *ids; size_t config_count, sample_count;
    double *latency, *accuracy;  /* [config_count, sample_count]; accuracy NULL if rows have none */
    struct score_range range;    /* range of a score */
    /* [config_count]; NaN if unknown. The accuracy's interval is from accuracy_interval, not from resampling. Shares of
     * the resamples are as of share_shown, and unknown if the latency has no interval */
    vp_bootstrap_point *points;
    double *at_latency, *at_accuracy; /* the points as two arrays */
    uint32_t *front, *kept; size_t front_count, kept_count; /* kept: those after a step of at least epsilon */
    double epsilon_latency, area, area_latency, area_accuracy;
    int shown_for, not_shown; /* two knobs that change together, of which the second is not in `knobs`; 0 and 0: none */
    int32_t *levels; vp_knobs knobs; int knob_of[KNOB_COUNT]; /* the knobs that vary: KNOB_* of each column of levels */
    size_t level_example[KNOB_COUNT][VP_KNOB_LEVEL_LIMIT];    /* a configuration with that level, used to name it */
    /* [0] for latency, [1] for accuracy: effects on the means over samples; order is 0 if none could be computed */
    vp_effect *effects[2]; size_t effect_count; double *shares[2]; int32_t order;
    struct knob_front *fronts; size_t knob_front_count;
    struct knob_gain *gains; size_t gain_count;
};

/* A share from this many samples, limited to 1 / (samples + 1) .. samples / (samples + 1): samples that agree
 * do not show more, however often they are resampled. */
double share_shown(double share, size_t samples);

/* Fills a zeroed tradeoff. If it cannot be computed, tradeoff->reason is set. */
void tradeoff_make(struct tradeoff *tradeoff, const struct results *results, const struct result_group *group,
                   const struct report_settings *settings);
void tradeoff_free(struct tradeoff *tradeoff);

/* The number of configurations with the same latency and accuracy as this one, including this one. */
size_t equal_points(const struct tradeoff *tradeoff, size_t config);
int is_listed(const uint32_t *items, size_t count, size_t value);

/* The reason if latencies have no interval (too few common samples); otherwise empty. Returns out. */
enum { NO_INTERVAL_BYTES = 80 };
const char *no_interval_text(const struct tradeoff *tradeoff, double percentile, char out[NO_INTERVAL_BYTES]);

/* Returns 1 if there are several configurations, and all have the same accuracy. */
int accuracies_are_equal(const struct tradeoff *tradeoff);

/* A point's value with its interval. */
vp_estimate point_latency(const vp_bootstrap_point *point);
vp_estimate point_accuracy(const vp_bootstrap_point *point);

/* A knob's level: "medium", "576 tokens", "4". Returns out. */
const char *report_level_text(const struct tradeoff *tradeoff, const struct results *results, int knob, int32_t level,
                              char out[KNOB_TEXT_BYTES]);

/* "top_k 4", "top_k 4 x blocks 12" or "mean". */
void effect_name(const struct tradeoff *tradeoff, const struct results *results, const vp_effect *effect,
                 char out[160]);
#endif
