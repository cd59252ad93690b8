/* vlmprof_policy.h - v0.2.0 - what a policy that chooses for each sample can gain - MIT licence
 *
 * Every sample was measured with every choice (a configuration, a model, a tier). This header compares policies that
 * select a choice for each sample within a latency budget: the best single choice, a random mix of two, a table of what
 * is known before the request, an oracle, and policies of the caller.
 *
 *     vp_policy_options options = vp_policy_options_default();
 *     vp_policy_row rows[VP_POLICY_GIVEN];
 *     options.budget_ms = 200.0;
 *     if (vp_policy_compute(&outcomes, fields, 1, NULL, 0, &options, rows, NULL, NULL) == VP_OK)
 *         printf("a table gains %.1f points\n", 100.0 * rows[VP_POLICY_LOOKUP].gain);
 *
 * Choices, samples and fields are numbered from 0. Gains are differences of accuracy, not points.
 * numeric: double, additions in a fixed order: the same input and seed give the same bits
 * memory:  one block from VP_MALLOC, released before the call returns: about 190 bytes for each choice of each sample,
 *          a third of which is usually touched (216 choices, 2,000 samples: 25 MB, 1.1 s); 6 KB of stack
 * threads: reentrant */
#ifndef VLMPROF_POLICY_H
#define VLMPROF_POLICY_H
#include "vlmprof.h"

VP_EXTERN_C_BEGIN

enum { VP_POLICY_FIELDS_LIMIT = 8, VP_POLICY_BINS_LIMIT = 16, VP_POLICY_FOLDS_LIMIT = 20 };
/* Measured outcomes. NaN in both arrays: the choice failed on this sample. A policy that uses it there is wrong, and
 * takes the mean latency of the choice's measured samples: failing does not make it faster. The oracle does not use it,
 * unless all choices failed. */
typedef struct vp_policy_outcomes {
    const double *accuracy;   /* [choices, samples]  0..1 */
    const double *latency_ms; /* [choices, samples]  > 0 */
    size_t choice_count, sample_count;
} vp_policy_outcomes;
/* What is known of a sample before the request. */
typedef struct vp_policy_field {
    const double *values; /* [samples]  code of a category, or a number; NaN: unknown, which is a category of its own */
    int is_number;        /* 1: cut at quantiles of the training samples; equal cuts merge */
} vp_policy_field;
typedef enum vp_policy_budget {
    VP_POLICY_MEAN, /* the mean latency is at most the budget */
    VP_POLICY_EACH, /* every latency is */
    VP_POLICY_P95   /* the sorted latency at rank ceil(0.95 (n - 1)), from 0, is; so numpy's linear P95 is, too */
} vp_policy_budget;
typedef struct vp_policy_options {
    double budget_ms; /* > 0; infinite: no limit */
    vp_policy_budget budget;
    double overhead_ms; /* >= 0: added to each latency of the adaptive policies: all but static and mixture */
    size_t folds;       /* 1..VP_POLICY_FOLDS_LIMIT, at most the samples; 1: fitted and judged on all samples */
    size_t bins;        /* 1..VP_POLICY_BINS_LIMIT: of a field that is a number */
    size_t cell_least;  /* >= 1: a cell with fewer training samples uses its parent's choice */
    size_t resamples;   /* 2..1000000; 0: intervals are NaN */
    size_t shuffles;    /* 1..10000: of the luck; 0: its row is NaN */
    double confidence;  /* of the intervals, 0..1, ends excluded */
    uint32_t seed;
    size_t compared; /* 1 + the choice that is static, within the budget or not; 0: the best one within the budget */
} vp_policy_options;
/* no limit, MEAN, no overhead, 5 folds, 3 bins, cells of 10, 400 resamples, 20 shuffles, confidence 0.95, seed 42 */
VP_API vp_policy_options vp_policy_options_default(void);

/* rows of the result; the caller's policies follow from VP_POLICY_GIVEN */
enum { VP_POLICY_STATIC, VP_POLICY_MIXTURE, VP_POLICY_LOOKUP, VP_POLICY_ORACLE, VP_POLICY_LUCK, VP_POLICY_GIVEN };
typedef struct vp_policy_row {
    double accuracy, accuracy_low, accuracy_high;
    /* numpy's linear percentiles; both latencies of a sample in the mixture count by their share. NaN for luck */
    double mean_ms, p50_ms, p95_ms;
    double mean_low_ms, mean_high_ms; /* interval of the mean over samples, for the choices as made */
    double share_within;             /* share of the samples with a latency within the budget; NaN for luck */
    double gain, gain_low, gain_high; /* accuracy - static's, on the same samples */
    /* accuracy - mixture's: a table by a field that says nothing also gains over static, since it shares the time */
    double mix_gain, mix_gain_low, mix_gain_high;
    /* the most accuracy that a complete search could add on the samples it was fitted to; 0: optimal */
    double gap;
    size_t samples, missing; /* samples judged; those that a given policy left out, or whose choice failed */
    /* 0: even the lightest choices exceed the budget on the samples the policy was fitted to (given policies: it
     * exceeds the budget on the samples judged) */
    int feasible;
} vp_policy_row;
/* A cell of the table: the samples that agree in the first `level` fields. */
typedef struct vp_policy_cell {
    size_t level, count; /* count: samples */
    uint32_t parent;     /* cell with one field fewer; the root is its own parent */
    uint32_t choice;
    int fell_back; /* 1: fewer than cell_least samples, so the choice is the parent's */
    /* keys of the first `level` fields: a category is low = high = its code, a number is low <= number < high,
     * unknown is NaN */
    double low[VP_POLICY_FIELDS_LIMIT], high[VP_POLICY_FIELDS_LIMIT];
} vp_policy_cell;
/* The policies fitted to all samples, for use. */
typedef struct vp_policy_table {
    vp_policy_cell *cells; /* [vp_policy_cells_limit], filled by level, the root first; the caller's */
    size_t cell_count;
    /* [samples] choices, the caller's; each may be NULL. held_out: the lookup's as judged, fitted without the fold */
    uint32_t *lookup, *oracle, *held_out;
    uint32_t best, mix[2];     /* static's choice; the mixture's two */
    double mix_share;          /* share of mix[1] */
} vp_policy_table;
/* The largest number of cells: 1 + samples * fields; SIZE_MAX if that overflows. */
VP_API size_t vp_policy_cells_limit(size_t sample_count, size_t field_count);

/* Fits, judges and bounds policies.
 * in:      fields   [field_count], 0..VP_POLICY_FIELDS_LIMIT; a hierarchy: the parent of a cell drops the last field
 *          given    [given_count] arrays int32 [samples]: the choice of each sample, or -1
 * out:     rows     [VP_POLICY_GIVEN + given_count], on success only
 *          table    may be NULL
 * returns: VP_OK; VP_ERR_RANGE: a count, an option, an outcome or a choice is out of range, or a choice failed on all
 *          samples (the error's offset is the choice); VP_ERR_MEMORY
 * rule:    static, mixture and lookup are fitted to the samples outside a fold and judged inside it; the folds are a
 *          seeded permutation of the samples, in turns. The mixture is the best random mix of two choices, equal for
 *          all samples. The oracle knows the outcomes of all samples, so it is an upper bound. A given policy is judged
 *          on the samples that it has.
 *          One solver fits all of them: groups (all samples, each cell, or each sample), sums of accuracy and weight of
 *          each choice in each group, maximal accuracy with a total weight of at most a capacity. MEAN: the weight is
 *          the latency, the capacity budget * samples. EACH, P95: the weight is 1 if the latency exceeds the budget,
 *          the capacity 0, or what P95 leaves. Equal accuracy: the lower mean latency, then the lower index. If even
 *          the lightest choices exceed the capacity, they are taken. Small cells of one parent are one group with the
 *          parent's means. Cells without training samples take what is best at the solution's price of accuracy.
 *          Luck is the part of the oracle's gain that is noise of the outcomes: the oracle's accuracy minus that of the
 *          best policy that knows each sample's probability of success with every choice. Estimate: each choice's
 *          accuracies are shuffled over samples of equal static difficulty, that is within strata (the cell; in it, the
 *          mean accuracy over the other choices, in one quantile bin for 150 samples, equal means in one bin). Choices
 *          whose accuracies correlate by 0.7 or more with the first of them count as one, and are shuffled alike. Luck
 *          is the oracle's accuracy on shuffled outcomes, mean over the shuffles, minus that of the best policy by the
 *          strata's means. That policy is cross-fitted in five parts, chosen by the means of other parts and judged by
 *          those of its own: v4 with four of them, v2 with two. What it loses to noise is inverse to the samples, so
 *          its accuracy is v4 + (v4 - v2). Differences of samples that neither fields nor difficulty show count as
 *          luck. Noise can take the estimate below 0 or above the oracle's gain. The row's gain is the luck, its
 *          accuracy static's + luck; its intervals are NaN
 * source:  Kellerer, Pferschy and Pisinger, Knapsack Problems, ch. 11 (Lagrangian and branch and bound of the
 *          multiple-choice knapsack); Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13 and 17
 * numeric: intervals: paired bootstrap over samples; each resample selects again, and a sample stays in its fold. They
 *          are normal around the estimate, not percentiles of resamples: a resample has 63 % of the samples, so it
 *          selects worse. Its selections follow the noise of the data and of the draw, so they vary too much: the
 *          variance is that of the fixed selection, plus 0.45 of what selecting again adds. Intervals of 95 % had the
 *          expected gain of table and oracle in 95 % of 500 draws on average over 9 simulations with 200 to 500 samples
 *          (92 to 99 %; 91 % if a choice is just within the budget). Their width is 0 if all resamples agree.
 *          Mean error of the luck in simulations with 2, 3 or 12 choices: under 1 point, and 1.0 to 1.4 too much if
 *          only difficulty shows the types of samples; its standard deviation for 500 samples is 1 to 4 points */
VP_API vp_result vp_policy_compute(const vp_policy_outcomes *outcomes, const vp_policy_field *fields,
                                   size_t field_count, const int32_t *const *given, size_t given_count,
                                   const vp_policy_options *options, vp_policy_row *rows, vp_policy_table *table,
                                   vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_POLICY_H */
