/* vlmprof_analysis.h - v0.2.0 - Pareto fronts, coupling of knobs, regression, latency model, tests and verdicts - MIT licence
 *
 * From measured rows to answers: which configuration, what couples the knobs, what a request will cost, whether a change made it slower.
 * Latency may be in any unit; lower is better, of accuracy more is better. Configurations, samples and rows are counted from 0; index lists are
 * uint32_t, and a count over 2^32 - 1 is VP_ERR_RANGE. Values must be finite. Intervals are two-sided at `level` (0.95).
 * `scratch` is any memory of at least vp_..._scratch_bytes(...) bytes (SIZE_MAX when that overflows), else VP_ERR_CAPACITY.
 * numeric: double, additions in a fixed order: the same input gives the same bits
 * memory:  none but the caller's and the stack said beside a function, else under 4 KB
 * threads: reentrant
 *
 * Needs vlmprof.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_ANALYSIS_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_ANALYSIS_H
#define VLMPROF_ANALYSIS_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distributions; NaN in, or a parameter out of range, gives NaN. The binomial's relative error is below 1e-12 + 3e-16 * count */
VP_API double vp_normal_tail(double z);                          /* P(Z > z); relative error below 1e-13 where it does not underflow */
VP_API double vp_normal_quantile(double probability);            /* z with P(Z <= z) = probability, 0 < probability < 1 (Wichura, AS 241) */
VP_API double vp_student_tail(double t, double degrees);         /* P(T > t) of Student's t; relative 1e-11 for degrees to 10^6, 1e-7 to 10^9 */
VP_API double vp_binomial_half(uint64_t successes, uint64_t count); /* P(X <= successes), X binomial(count, 1/2), count < 2^53 */

/* ---- tests and intervals */
/* Distribution-free interval of the median by order statistics.
 * out:     low_rank, high_rank  from 1: the interval is [x(low_rank), x(high_rank)] of the sorted values
 *          coverage             its exact probability for continuous values
 * returns: VP_OK; VP_ERR_MISMATCH too few values for this level; VP_ERR_RANGE count 0 or over 2^53, level outside 0..1
 * rule:    the largest low_rank with P(X <= low_rank - 1) <= (1 - level) / 2, X binomial(count, 1/2); high_rank = count + 1 - low_rank */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank, double *coverage);
/* McNemar's exact test of paired right/wrong answers: two-sided p = min(1, 2 P(X <= min)), X binomial(sum, 1/2); 1 for 0 and 0.
 * in:      the two counts of samples that only one side has right, together under 2^53; otherwise NaN */
VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct);

/* mean of differences with Student's interval */
typedef struct vp_mean_interval {
    size_t count;
    double mean, error;     /* error: standard error of the mean (n - 1) */
    double low, high;
    double t, degrees, p;   /* of "the mean is 0", two-sided; all differences equal: p 1 where they are 0, else 0 */
} vp_mean_interval;
/* Paired t test of y - x; x NULL: of y alone.
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 values, a value that is not finite or too large, level outside 0..1 */
VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval);

typedef struct vp_rank_test {
    double statistic;           /* Wilcoxon: min(W+, W-);  Mann-Whitney: U of x */
    size_t used;                /* Wilcoxon: differences that are not 0;  Mann-Whitney: all values */
    int ties;                   /* some ranks are shared */
    double p_normal;            /* normal approximation with the variance reduced by ties, no continuity correction */
    double p_normal_continuity; /* with 0.5; Mann-Whitney only, else NaN */
    double p_exact;             /* NaN with ties, with zero differences, and past VP_EXACT_LIMIT */
} vp_rank_test;
enum { VP_EXACT_WILCOXON_LIMIT = 500, VP_EXACT_MANN_WHITNEY_LIMIT = 4096 }; /* most differences; most count_x * count_y */
VP_API size_t vp_wilcoxon_scratch_bytes(size_t count);
/* Wilcoxon's signed-rank test of paired values: differences of 0 are dropped, equal ones share their mean rank. Two-sided.
 * returns: VP_OK (all differences 0: p 1); VP_ERR_RANGE count 0 or a value that is not finite; VP_ERR_CAPACITY
 * source:  as scipy.stats.wilcoxon 1.17, methods "asymptotic" and "exact" */
VP_API vp_result vp_wilcoxon(const double *x, const double *y, size_t count, void *scratch, size_t scratch_bytes, vp_rank_test *test);
VP_API size_t vp_mann_whitney_scratch_bytes(size_t count_x, size_t count_y);
/* Mann-Whitney's U test of two independent groups. Two-sided.
 * returns: as vp_wilcoxon
 * source:  as scipy.stats.mannwhitneyu 1.17 */
VP_API vp_result vp_mann_whitney(const double *x, size_t count_x, const double *y, size_t count_y, void *scratch, size_t scratch_bytes,
                                 vp_rank_test *test);

typedef enum vp_adjustment { VP_ADJUST_NONE, VP_ADJUST_HOLM, VP_ADJUST_BENJAMINI_HOCHBERG } vp_adjustment;
/* Adjusts p values for their number: Holm bounds the chance of any false finding, Benjamini-Hochberg the share of false ones among the findings.
 * in:      p         double [count], 0..1
 *          order     uint32 [count], scratch
 * out:     adjusted  double [count], on success only; may be p
 * returns: VP_OK; VP_ERR_RANGE a p outside 0..1 or an unknown method */
VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted);

/* Has it become slower? Paired by sample, with a margin inside which a difference does not matter. */
typedef enum vp_verdict { VP_VERDICT_UNSURE, VP_VERDICT_SAME, VP_VERDICT_FASTER, VP_VERDICT_SLOWER } vp_verdict;
typedef enum vp_scale {
    VP_SCALE_ABSOLUTE, /* margin and results in the unit of the values */
    VP_SCALE_RELATIVE, /* as shares of the first side's mean: 0.03 = 3 % slower. All first values must be > 0 */
    VP_SCALE_LOG       /* mean of log(second / first), given back as a share: each sample counts the same. All values must be > 0 */
} vp_scale;
typedef struct vp_comparison {
    size_t count;
    double estimate, low, high; /* second - first, on the scale */
    double p_difference;        /* of "no difference", paired t */
    double p_equivalence;       /* of "the difference is outside the margin": the larger of two one-sided tests */
    vp_verdict verdict;
} vp_comparison;
/* VP_VERDICT_FASTER etc. in words; NULL outside the list */
VP_API const char *vp_verdict_name(vp_verdict verdict);
/* Compares paired values; the verdict is that of this comparison alone (see vp_compare_adjust).
 * in:      margin  > 0, on the scale;  alpha  0..0.5: the interval is at 1 - alpha
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 pairs, values that are not finite or not fit for the scale, margin or alpha out of range
 * rule:    p_equivalence <= alpha: SAME; else p_difference <= alpha: FASTER (second lower) or SLOWER; else UNSURE. A difference that is certain
 *          but proven to be inside the margin is SAME
 * numeric: RELATIVE takes the first side's mean as known: with a spread of samples far above that of the differences, prefer LOG */
VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale, double margin, double alpha,
                                   vp_comparison *comparison);
/* Verdicts of several comparisons together: both kinds of p values are adjusted and replaced, then the rule above decides again.
 * in:      order  uint32 [count], values  double [count]: scratch
 * returns: VP_OK; VP_ERR_RANGE (comparisons untouched) */
VP_API vp_result vp_compare_adjust(vp_comparison *comparisons, size_t count, vp_adjustment method, double alpha, uint32_t *order, double *values);
/* Samples that a comparison needs.
 * in:      deviation  standard deviation of the differences on the scale;  margin > 0;  effect: smallest difference to be found, > margin
 *          power      chance of SAME when nothing changed, and of FASTER or SLOWER when `effect` is there: 0.5..1
 * out:     count      the larger of the two needs, at least 2
 * returns: VP_OK; VP_ERR_RANGE (also for over 10^9 samples)
 * rule:    deviation * (t(1 - alpha) + t(1 - (1 - power) / 2)) <= margin * sqrt(n); deviation * (t(1 - alpha / 2) + t(power)) <= effect * sqrt(n) */
VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power, size_t *count);

/* ---- Pareto fronts */
typedef enum vp_pareto_rule {
    VP_PARETO_FIRST, /* not dominated; of equal points the first: what a tool should print */
    VP_PARETO_ALL,   /* not dominated; equal points all */
    VP_PARETO_WEAK,  /* no other point is better in both; for comparison */
    VP_PARETO_SWEEP  /* a second rule of the experiments' plot scripts; keeps dominated points; for comparison */
} vp_pareto_rule;
/* Points that no other point dominates: as good in both and better in one.
 * in:      latency, accuracy  double [count], finite; count 0 is an empty front
 * out:     front              uint32 [count], the first *front_count sorted by latency, then index
 * returns: VP_OK; VP_ERR_RANGE a value is not finite, an unknown rule
 * rule:    SWEEP: sorted by latency, then index; kept when accuracy >= best so far - 1e-9, which starts at -1
 * source:  ChulanZhang/molmo_hf, the four copies of the front's function (ALL) and two plot scripts (SWEEP)
 * numeric: comparisons only; O(n log n) */
VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule, uint32_t *front,
                                 size_t *front_count);
/* The front (FIRST) of the points whose knob is held: keys[i] == key. Indices are those of all points. */
VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key, size_t count,
                                       uint32_t *front, size_t *front_count);
typedef struct vp_epsilon { double latency, accuracy; int relative; } vp_epsilon; /* relative: shares of the dominated point's values, below 1 */
/* The fewest points of the front that epsilon-dominate every point: latency <= its + epsilon and accuracy >= its - epsilon. Steps of the front
 * that are smaller than what matters (or than what was measured) go.
 * in:      front  as vp_pareto_front gives it (FIRST or ALL), front_count indices below count
 * out:     kept   uint32 [front_count], may be front; the first *kept_count, sorted as the front
 * returns: VP_OK; VP_ERR_RANGE an epsilon negative, not finite, or relative and >= 1; an index or order that is no front's */
VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                                   vp_epsilon epsilon, uint32_t *kept, size_t *kept_count);
/* The area that a front dominates, up to a reference point (a latency and an accuracy that are worse than all that matter; points beyond it count
 * nothing): fronts with a knob held compare by it. Same `front` as above; NaN for what is no front. */
VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                             double latency_limit, double accuracy_limit);
/* The most accurate point within a budget; of equal ones the fastest, then the first.
 * in:      budget, min_accuracy  infinite: no limit
 * returns: VP_OK; VP_ERR_NOT_FOUND no point holds both; VP_ERR_RANGE NaN */
VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy, uint32_t *best);

typedef struct vp_bootstrap_options {
    size_t resamples;            /* 1..1000000 */
    uint32_t seed;
    double percentile;           /* the latency axis: percentile over samples 0..100; below 0: the mean */
    double level;                /* of the intervals */
    double budget, min_accuracy; /* of `best`; infinite: no limit */
} vp_bootstrap_options;
VP_API vp_bootstrap_options vp_bootstrap_options_default(void); /* 1000 resamples, seed 42, P50, 0.95, no limits */
typedef struct vp_bootstrap_point {
    double latency, accuracy; /* of the samples as they are; accuracy is the mean */
    double latency_low, latency_high, accuracy_low, accuracy_high; /* percentile intervals */
    double membership;        /* share of the resamples in which it is on the front (ALL) */
    double within_budget;     /* ... in which it holds the budget and the least accuracy */
    double best;              /* ... in which vp_pareto_best names it */
} vp_bootstrap_point;
VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples);
/* How sure a front is: the samples are drawn again with replacement, the same ones for all configurations.
 * in:      latency, accuracy  double [config_count, sample_count]; each sample measured by every configuration
 * out:     points             [config_count], on success only
 * returns: VP_OK; VP_ERR_RANGE a count of 0, a value that is not finite, an option out of range; VP_ERR_CAPACITY
 * rule:    resample = sample_count draws vp_random_below(sample_count - 1) of one generator of that seed: numpy's RandomState(seed).randint(0, n, n)
 *          call after call; percentiles are numpy's, as vp_statistics_percentile
 * numeric: equal bit by bit to sorting every resample; the samples are sorted once and counted through. 336 configurations x 1,000 samples x 1,000
 *          resamples: about a second */
VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes, vp_bootstrap_point *points);

/* ---- coupling of the knobs */
enum { VP_KNOB_LIMIT = 8, VP_KNOB_LEVEL_LIMIT = 256, VP_EFFECT_COLUMNS_LIMIT = 1024 };
typedef struct vp_knobs {
    const int32_t *levels;  /* [config_count, knob_count], level of each knob, 0..level_counts - 1 */
    int32_t knob_count;     /* 1..VP_KNOB_LIMIT */
    int32_t level_counts[VP_KNOB_LIMIT];
    size_t config_count;
} vp_knobs;
typedef enum vp_effect_kind { VP_EFFECT_MEAN, VP_EFFECT_MAIN, VP_EFFECT_STEP, VP_EFFECT_PAIR } vp_effect_kind;
typedef struct vp_effect {
    vp_effect_kind kind;
    int32_t knob_a, level_a, knob_b, level_b; /* -1 where there is none */
    double estimate, low, high, p;
} vp_effect;
/* Rows of vp_effects; 0 for knobs out of range. order 1: main effects, 2: and interactions of two knobs. */
VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order);
VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order);
/* What each knob does to the mean of a value, and where two knobs together do something else than the sum of both.
 * in:      values   double [config_count, sample_count], each sample measured by every configuration; the grid may have holes
 * out:     effects  [vp_effect_count]: the mean; then per knob all levels as MAIN (mean of that level - grand mean) and from level 1 as STEP (level -
 *                   the level below); then, order 2, per pair of knobs all pairs of levels as PAIR (what is left over mean and mains)
 *          shares   double [knobs + pairs (order 2) + 1], may be NULL: each term's share of the variance between configurations, knobs first, then
 *                   pairs, last what no term explains; they add up to 1 on a full grid
 *          error    may be NULL
 * returns: VP_OK; VP_ERR_RANGE; VP_ERR_CAPACITY; VP_ERR_MISMATCH these configurations cannot tell the terms apart (use order 1)
 * rule:    least squares with effects that add up to 0 over a knob's levels, for each sample; estimate and Student's interval over the samples, so
 *          what a sample does to all configurations alike cancels out
 * memory:  none on the heap; the factor of the design lies in scratch */
VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order, double level, void *scratch,
                            size_t scratch_bytes, vp_effect *effects, double *shares, vp_error *error);
/* The configuration that differs from `config` only by the next measured level of a knob.
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_RANGE */
VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next);
typedef struct vp_gain {
    vp_mean_interval latency, accuracy; /* second - first, paired */
    double gain;                        /* accuracy per unit of latency; NaN for equal latency */
    double low, high;                   /* Fieller's interval; infinite where the latency's difference may be 0 */
} vp_gain;
/* Marginal gain: accuracy per ms of a step from one configuration to another.
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 samples, a value that is not finite
 * source:  E. C. Fieller, JRSS B 16 (1954) */
VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy, const double *second_latency,
                                 const double *second_accuracy, size_t sample_count, double level, vp_gain *gain);

/* ---- regression */
enum { VP_LINEAR_COLUMNS_LIMIT = 24 };
/* AT_ZERO: held there by its sign; DROPPED: see options */
typedef enum vp_linear_state { VP_LINEAR_USED, VP_LINEAR_AT_ZERO, VP_LINEAR_DROPPED } vp_linear_state;
typedef struct vp_linear_options {
    const double *weights;            /* [rows], > 0; NULL: all 1. Variance of a row is sigma^2 / weight */
    const unsigned char *nonnegative; /* [columns], 1: the coefficient must be >= 0; NULL: none */
    int drop_dependent;               /* 1: a column that the columns before it explain is left out; 0: it is an error */
} vp_linear_options;
VP_API vp_linear_options vp_linear_options_default(void); /* no weights, no signs, dependent columns are an error */
/* A linear model and what its intervals need; plain data, can be stored. */
typedef struct vp_linear {
    uint64_t rows;
    int32_t columns, used_columns;
    double condition;                          /* 2-norm condition number of the used columns, each scaled to length 1 */
    double sigma;                              /* residual deviation at weight 1: sqrt(sum w r^2 / degrees); NaN for degrees 0 */
    double degrees;                            /* rows - used columns */
    double coefficient[VP_LINEAR_COLUMNS_LIMIT];  /* exactly 0 where the state is not USED */
    double error[VP_LINEAR_COLUMNS_LIMIT];        /* standard errors; 0 where the state is not USED, NaN for degrees 0 */
    double root[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT]; /* [columns, columns] B with covariance = sigma^2 B B' */
    unsigned char state[VP_LINEAR_COLUMNS_LIMIT]; /* vp_linear_state */
} vp_linear;
/* Weighted least squares, with signs where asked.
 * in:      x     double [rows, columns], columns 1..VP_LINEAR_COLUMNS_LIMIT; an intercept is a column of ones
 *          y     double [rows]
 * out:     fit   on success only;  error  may be NULL, names the column
 * returns: VP_OK; VP_ERR_RANGE a count or value out of range, or an overflow; VP_ERR_MISMATCH fewer rows than columns, or dependent columns
 * rule:    Householder QR over blocks of rows, columns scaled to length 1; dependent: less than 1e-11 of a column is not in the span of those before
 *          it. Signs: Lawson and Hanson's active set on the triangle; coefficients held at 0 are exactly 0
 * source:  Golub and Van Loan, Matrix Computations, 5.2 and 5.3; Lawson and Hanson, Solving Least Squares Problems, ch. 23
 * numeric: errors and intervals of a fit with signs take the active set as known
 * memory:  40 KB of stack, whatever the rows */
VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *options, vp_linear *fit,
                                vp_error *error);
VP_API double vp_linear_value(const vp_linear *fit, const double *x); /* x'coefficient; columns in order */
typedef struct vp_linear_range { double value, mean_low, mean_high, low, high; } vp_linear_range; /* mean: of the line; low, high: of a new value */
/* Intervals of the mean and of a new measurement at x.
 * in:      weight  of the new measurement, > 0
 * returns: VP_OK; VP_ERR_MISMATCH degrees 0; VP_ERR_RANGE */
VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level, vp_linear_range *range);
/* Student's interval of a coefficient; [0, 0] for a column that is not used. returns: as above */
VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high);
typedef struct vp_linear_errors {
    size_t count;
    double r2;                     /* 1 - sum r^2 / sum (y - mean)^2; NaN when all y are equal */
    double mae, rmse, bias;        /* bias: mean of predicted - measured */
    double mape;                   /* mean of |r| / |y|, a fraction; NaN when a y is 0 */
    double p95_absolute, max_absolute;
} vp_linear_errors;
/* How far predictions are off.
 * in:      scratch  double [count]
 * returns: VP_OK; VP_ERR_RANGE count 0 or a value that is not finite */
VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count, double *scratch, vp_linear_errors *errors);
VP_API size_t vp_linear_leave_out_scratch_bytes(size_t columns, size_t group_count);
/* Leave-one-group-out: each row is predicted by a fit of the rows of all other groups (configurations, image sizes).
 * in:      groups     uint32 [rows], 0..group_count - 1; every group may be empty
 * out:     predicted  double [rows], on success only
 * returns: as vp_linear_compute, VP_ERR_MISMATCH when what is left for a group cannot be fitted; VP_ERR_CAPACITY
 * numeric: as vp_linear_compute on the other rows; time grows with rows + groups, not with their product
 * memory:  60 KB of stack */
VP_API vp_result vp_linear_leave_out(const double *x, const double *y, const uint32_t *groups, size_t rows, size_t columns, size_t group_count,
                                  const vp_linear_options *options, void *scratch, size_t scratch_bytes, double *predicted, vp_error *error);

/* ---- what a request costs: one linear model per stage */
#define VP_LATENCY_STAGES(X) X(VISION, "vision") X(PREFILL, "prefill") X(DECODE, "decode") X(OTHER, "other")
typedef enum vp_latency_stage {
#define VP_LATENCY_ENUM(name, text) VP_LATENCY_##name,
    VP_LATENCY_STAGES(VP_LATENCY_ENUM)
#undef VP_LATENCY_ENUM
    VP_LATENCY_STAGE_COUNT
} vp_latency_stage; /* T_vision_total, T_LLM_prefill, T_LLM_decode, and T_total minus these */
typedef enum vp_latency_features {
    VP_LATENCY_PHYSICAL, /* vp_latency_column_name; no coefficient is negative; rows weigh 1 / measured^2: what counts is the relative error */
    VP_LATENCY_SEED,     /* the experiments' inputs: 1, vision_tokens, text_tokens, tier_index, top_k, num_active_blocks, output_tokens */
    VP_LATENCY_MEAN      /* the mean of what was measured */
} vp_latency_features;
enum { VP_LATENCY_COLUMNS_LIMIT = 7 };
typedef struct vp_latency_request {
    int32_t views;         /* passes of the vision transformer: crops + global view; 0 for text only */
    int32_t vision_tokens; /* that the language model sees */
    int32_t text_tokens;
    int32_t sequence;      /* prompt positions: BOS, image and text */
    int32_t output_tokens; /* decode steps are one fewer */
    int32_t tier_index, top_k, expert_count, active_blocks;
} vp_latency_request;
/* One row of a stage's model.
 * out:     x        double [VP_LATENCY_COLUMNS_LIMIT], the first *columns
 * returns: VP_OK; VP_ERR_RANGE a count negative, sequence or output_tokens or active_blocks < 1, top_k outside 1..expert_count
 * rule:    vision: 1, views, vision tokens. prefill: 1, n, B, B n, B n k (expert FLOPs), B n^2 (attention), B E (1 - (1 - k / E)^n) (experts whose
 *          bytes are read, on average). decode: S, S B, S B k (bytes of experts), B (S n + S (S - 1) / 2) (positions read from the cache). other:
 *          1, views, n. n sequence, B active blocks, k top_k, E experts, S steps; a stage that does not run has only zeros */
VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double *x,
                                int32_t *columns);
/* The name of a column; NULL past the last. */
VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column);
VP_API const char *vp_latency_stage_name(vp_latency_stage stage);
typedef struct vp_affine { /* measured = slope * predicted + offset */
    double slope, offset;
    double condition;      /* of the columns 1, predicted, scaled to length 1 */
    int ill_conditioned;   /* condition over VP_AFFINE_CONDITION_LIMIT: the predictions are almost all the same, the line is worthless elsewhere */
    size_t count;          /* points it was made of; 0: the identity */
} vp_affine;
#define VP_AFFINE_CONDITION_LIMIT 4000.0 /* a spread of 0.05 % of the mean */
/* plain data, can be stored */
typedef struct vp_latency_model {
    vp_latency_features features;
    unsigned char fitted[VP_LATENCY_STAGE_COUNT]; /* 0: there was nothing measured of this stage */
    vp_linear fit[VP_LATENCY_STAGE_COUNT];
    vp_affine affine[VP_LATENCY_STAGE_COUNT];
} vp_latency_model;
/* Fits the stages.
 * in:      requests  [rows]
 *          measured  double [rows, VP_LATENCY_STAGE_COUNT]; NaN: not measured; rows whose stage did not run are left out
 *          error     may be NULL
 * returns: VP_OK; VP_ERR_RANGE a request, or a value that is infinite (or <= 0 for PHYSICAL); VP_ERR_MISMATCH no stage could be fitted
 * rule:    columns that these rows cannot tell from those before are dropped (a sweep with one top_k says nothing about top_k) */
VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests, const double *measured, size_t rows,
                                vp_latency_model *model, vp_error *error);
typedef struct vp_latency_prediction { double stage[VP_LATENCY_STAGE_COUNT], total; } vp_latency_prediction; /* NaN for a stage that is not fitted */
/* What a request will cost; under a microsecond.
 * out:     prediction  total: the sum of the stages that are fitted
 * returns: VP_OK; VP_ERR_RANGE as vp_latency_row */
VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request, vp_latency_prediction *prediction);
/* Interval of a new measurement of a stage, recalibration included (its own uncertainty is not). returns: as vp_linear_interval */
VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage, const vp_latency_request *request, double level,
                                     vp_linear_range *range);
VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count);
/* Predictions of a stage by models that never saw the row's group.
 * in:      groups     uint32 [rows], 0..group_count - 1
 *          measured   double [rows] of this stage
 * out:     predicted  double [rows]; NaN where measured is NaN or the stage did not run
 * returns: as vp_latency_fit and vp_linear_leave_out */
VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                      const double *measured, const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error);

/* ---- recalibration to a new device, guardrails */
/* The line through points, by least squares.
 * returns: VP_OK, also when it is ill-conditioned: look; VP_ERR_MISMATCH fewer than 2 points or all predictions equal; VP_ERR_RANGE
 * numeric: differences to the first point are taken before anything is multiplied: right to 1e-6 where x differs in its sixth digit only */
VP_API vp_result vp_affine_fit(const double *predicted, const double *measured, size_t count, vp_affine *affine);
VP_API double vp_affine_apply(const vp_affine *affine, double predicted);
/* Recalibrates every stage that has measurements; the model keeps its fits, earlier recalibrations are replaced.
 * in:      measured  as vp_latency_fit
 *          force     1: takes ill-conditioned lines too
 *          scratch   double [2 * rows]
 * returns: VP_OK; VP_ERR_MISMATCH a stage whose line is ill-conditioned or cannot be drawn (model untouched; error names it); VP_ERR_RANGE */
VP_API vp_result vp_latency_recalibrate(vp_latency_model *model, const vp_latency_request *requests, const double *measured, size_t rows, int force,
                                        double *scratch, vp_error *error);
typedef struct vp_affine_curve {
    size_t points, draws;   /* measurements used; draws that gave a line */
    size_t refused;         /* draws whose line was ill-conditioned or could not be drawn */
    double before;          /* MAPE of all points without a line */
    double mean, low, high; /* MAPE of the points left out: mean, P5 and P95 over the draws */
} vp_affine_curve;
VP_API size_t vp_affine_curve_scratch_bytes(size_t count, size_t draws);
/* Learning curve: what `points` measurements, drawn at random, do for all others.
 * in:      points  2..count - 1;  draws  1..100000;  measured  none 0
 * returns: VP_OK; VP_ERR_MISMATCH no draw gave a line; VP_ERR_CAPACITY; VP_ERR_RANGE */
VP_API vp_result vp_affine_learning(const double *predicted, const double *measured, size_t count, size_t points, size_t draws, uint32_t seed,
                                    void *scratch, size_t scratch_bytes, vp_affine_curve *curve);
typedef struct vp_guardrail {
    double budget;
    size_t count, accepted, over_budget, violations, false_accepts, false_rejects;
    double violation_rate;    /* of the accepted: measured > tolerance * budget */
    double false_accept_rate; /* of those over budget: accepted */
    double false_reject_rate; /* of those within budget: not accepted. Rates are NaN where there is nothing to divide by */
} vp_guardrail;
/* What happens when only requests predicted to hold a budget are let through.
 * in:      safety     a request is accepted when predicted * safety <= budget; > 0, 1: as predicted
 *          tolerance  of violations, >= 1: the experiments' 1.1
 * returns: VP_OK; VP_ERR_RANGE count 0, values that are not finite
 * rule:    budgets are the caller's: the experiments take 0.5, 0.7, 0.85 and 1.0 of a reference latency */
VP_API vp_result vp_guardrail_compute(const double *predicted, const double *measured, size_t count, double budget, double safety, double tolerance,
                                      vp_guardrail *guardrail);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_ANALYSIS_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_ANALYSIS_IMPLEMENTATION)) && !defined(VLMPROF_ANALYSIS_IMPLEMENTATION_DONE)
#define VLMPROF_ANALYSIS_IMPLEMENTATION_DONE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- what all parts share */
/* order of indices: by key, then by `second` from large to small (NULL: not), then by index */
static int vp_impl_index_before(const double *key, const double *second, uint32_t a, uint32_t b) {
    if (key[a] < key[b] || key[a] > key[b]) return key[a] < key[b];
    if (second && (second[a] < second[b] || second[a] > second[b])) return second[a] > second[b];
    return a < b;
}

/* heap sort, as vp_sort_double */
static void vp_impl_sort_index(const double *key, const double *second, uint32_t *index, size_t count) {
    size_t start = count / 2, end = count, parent, child;
    while (end > 1) {
        uint32_t held;
        if (start > 0) {
            held = index[--start];
        } else {
            held = index[--end];
            index[end] = index[0];
        }
        parent = start;
        while ((child = 2 * parent + 1) < end) {
            if (child + 1 < end && vp_impl_index_before(key, second, index[child], index[child + 1])) child++;
            if (!vp_impl_index_before(key, second, held, index[child])) break;
            index[parent] = index[child];
            parent = child;
        }
        index[parent] = held;
    }
}

static int vp_impl_share(double x) { /* strictly between 0 and 1; NaN is not */
    return x > 0.0 && x < 1.0;
}

static int vp_impl_number(double x) {
    return x - x == 0.0;
}

static int vp_impl_counts_fit(size_t count) {
    return (uint64_t)count <= UINT32_MAX;
}

/* bytes of `count` elements in an arena, added to *bytes; SIZE_MAX once it overflows */
static void vp_impl_arena_need(size_t *bytes, size_t count, size_t element_bytes) {
    size_t size;
    if (*bytes == SIZE_MAX) return;
    if (!vp_size_multiply(count, element_bytes, &size) || !vp_size_add(size, 64, &size) || !vp_size_add(*bytes, size, bytes))
        *bytes = SIZE_MAX;
}

static vp_arena vp_impl_arena_of(void *scratch, size_t scratch_bytes) {
    vp_arena arena;
    arena.base = (unsigned char *)scratch;
    arena.capacity_bytes = scratch ? scratch_bytes : 0;
    arena.used_bytes = 0;
    return arena;
}

/* ---- distributions */
VP_API double vp_normal_tail(double z) {
    return 0.5 * erfc(z * 0.70710678118654752440);
}

static double vp_impl_polynomial(const double *coefficient, int count, double x) { /* highest power first */
    double sum = coefficient[0];
    int i;
    for (i = 1; i < count; i++) sum = sum * x + coefficient[i];
    return sum;
}

/* Wichura's algorithm AS 241, PPND16 (Applied Statistics 37, 1988): three rational functions */
VP_API double vp_normal_quantile(double probability) {
    static const double a[8] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                                13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608};
    static const double b[8] = {5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                                5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0};
    static const double c[8] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
                                3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734};
    static const double d[8] = {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
                                0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0};
    static const double e[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
                                0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772};
    static const double f[8] = {2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
                                0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0};
    const double q = probability - 0.5;
    double r, value;
    if (!vp_impl_share(probability)) return (double)NAN;
    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        return q * vp_impl_polynomial(a, 8, r) / vp_impl_polynomial(b, 8, r);
    }
    r = sqrt(-log(q < 0.0 ? probability : 1.0 - probability));
    if (r <= 5.0) value = vp_impl_polynomial(c, 8, r - 1.6) / vp_impl_polynomial(d, 8, r - 1.6);
    else value = vp_impl_polynomial(e, 8, r - 5.0) / vp_impl_polynomial(f, 8, r - 5.0);
    return q < 0.0 ? -value : value;
}

VP_API double vp_student_tail(double t, double degrees) {
    if (!(t - t == 0.0) || !(degrees > 0.0)) return (double)NAN;
    return t < 0.0 ? 1.0 - vp_student_upper(-t, degrees) : vp_student_upper(t, degrees);
}

VP_API double vp_binomial_half(uint64_t successes, uint64_t count) {
    if (count >= UINT64_C(1) << 53) return (double)NAN;
    if (successes >= count) return 1.0;
    return vp_beta((double)(count - successes), (double)successes + 1.0, 0.5, 0.5);
}

/* ---- tests and intervals */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank, double *coverage) {
    uint64_t rank;
    if (!count || count >= UINT64_C(1) << 53 || count >= SIZE_MAX || !vp_impl_share(level) || !low_rank || !high_rank || !coverage)
        return VP_ERR_RANGE;
    rank = (uint64_t)vp_order_rank((size_t)count, 0.5, 0.5 * (1.0 - level));
    if (!rank) return VP_ERR_MISMATCH;
    *coverage = 1.0 - 2.0 * vp_binomial_half(rank - 1, count);
    *low_rank = rank;
    *high_rank = count + 1 - rank;
    return VP_OK;
}

VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct) {
    const uint64_t least = only_first_correct < only_second_correct ? only_first_correct : only_second_correct;
    const uint64_t limit = UINT64_C(1) << 53;
    double p;
    if (only_first_correct >= limit || only_second_correct >= limit) return (double)NAN;
    p = 2.0 * vp_binomial_half(least, only_first_correct + only_second_correct);
    return p > 1.0 ? 1.0 : p;
}

/* Student's interval from a mean and a sum of squared deviations; `quantile` is that of count - 1 degrees */
static vp_result vp_impl_mean_interval(size_t count, double mean, double squares, double quantile, vp_mean_interval *out) {
    vp_mean_interval made;
    double reach;
    made.count = count;
    made.degrees = (double)(count - 1);
    made.mean = mean;
    made.error = sqrt(squares / made.degrees / (double)count);
    made.t = made.error > 0.0 ? mean / made.error : mean > 0.0 ? HUGE_VAL : mean < 0.0 ? -HUGE_VAL : 0.0;
    made.p = made.error > 0.0 ? 2.0 * vp_student_upper(fabs(made.t), made.degrees) : mean < 0.0 || mean > 0.0 ? 0.0 : 1.0;
    reach = made.error * quantile;
    made.low = mean - reach;
    made.high = mean + reach;
    if (!vp_impl_number(made.low) || !vp_impl_number(made.high) || !vp_impl_number(made.error)) return VP_ERR_RANGE;
    *out = made;
    return VP_OK;
}

/* of Student's t with count - 1 degrees, for a two-sided interval */
static double vp_impl_quantile(size_t count, double level) {
    return vp_statistics_student(0.5 + 0.5 * level, (double)(count - 1));
}

VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval) {
    double mean = 0.0, squares = 0.0, rest = 0.0, step;
    size_t i;
    if (!y || count < 2 || !vp_impl_share(level) || !interval) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        step = x ? y[i] - x[i] : y[i];
        if (!vp_impl_number(step)) return VP_ERR_RANGE;
        mean += step;
    }
    mean /= (double)count;
    for (i = 0; i < count; i++) { /* the mean's own rounding is what `rest` takes out */
        step = (x ? y[i] - x[i] : y[i]) - mean;
        rest += step;
        squares += step * step;
    }
    mean += rest / (double)count;
    squares -= rest * rest / (double)count;
    return vp_impl_mean_interval(count, mean, squares > 0.0 ? squares : 0.0, vp_impl_quantile(count, level), interval);
}

/* Mean ranks of |values| (or of values) in `order`, from 1; returns the sum of t^3 - t over groups of equal ones. */
static double vp_impl_ranks(const double *values, const uint32_t *order, size_t count, double *ranks) {
    double ties = 0.0;
    size_t i, j, k;
    for (i = 0; i < count; i = j) {
        double group;
        for (j = i + 1; j < count && !(values[order[j]] > values[order[i]]); j++) {}
        group = (double)(j - i);
        ties += group * group * group - group;
        for (k = i; k < j; k++) ranks[order[k]] = 0.5 * (double)(i + 1 + j);
    }
    return ties;
}

VP_API size_t vp_wilcoxon_scratch_bytes(size_t count) {
    size_t bytes = 64;
    const size_t n = count < VP_EXACT_WILCOXON_LIMIT ? count : (size_t)VP_EXACT_WILCOXON_LIMIT;
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, n * (n + 1) / 4 + 1, sizeof(double));
    return bytes;
}

/* P(W <= statistic) of the signed-rank sum: each rank is in or out with 1/2. Only additions of positive numbers: no digit is lost. */
static double vp_impl_wilcoxon_below(size_t count, size_t statistic, double *chance) {
    double sum = 0.0;
    size_t i, rank;
    memset(chance, 0, (statistic + 1) * sizeof *chance);
    chance[0] = 1.0;
    for (rank = 1; rank <= count; rank++) {
        for (i = statistic + 1; i-- > 0;) chance[i] = 0.5 * (i >= rank ? chance[i] + chance[i - rank] : chance[i]);
    }
    for (i = 0; i <= statistic; i++) sum += chance[i];
    return sum;
}

VP_API vp_result vp_wilcoxon(const double *x, const double *y, size_t count, void *scratch, size_t scratch_bytes, vp_rank_test *test) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    const size_t most = count < VP_EXACT_WILCOXON_LIMIT ? count : (size_t)VP_EXACT_WILCOXON_LIMIT;
    double *size = (double *)vp_arena_take(&arena, count, sizeof(double)), *ranks = (double *)vp_arena_take(&arena, count, sizeof(double));
    uint32_t *order = (uint32_t *)vp_arena_take(&arena, count, sizeof(uint32_t));
    double *chance = (double *)vp_arena_take(&arena, most * (most + 1) / 4 + 1, sizeof(double));
    double ties, plus = 0.0, minus = 0.0, n, deviation;
    vp_rank_test made;
    size_t i, used = 0;
    if (!x || !y || !test || !count || !vp_impl_counts_fit(count)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!vp_impl_number(x[i] - y[i])) return VP_ERR_RANGE;
    if (!size || !ranks || !order || !chance) return VP_ERR_CAPACITY;
    for (i = 0; i < count; i++) {
        size[i] = fabs(x[i] - y[i]);
        if (size[i] > 0.0) order[used++] = (uint32_t)i;
    }
    vp_impl_sort_index(size, NULL, order, used);
    ties = vp_impl_ranks(size, order, used, ranks);
    for (i = 0; i < used; i++) {
        if (x[order[i]] > y[order[i]]) plus += ranks[order[i]];
        else minus += ranks[order[i]];
    }
    n = (double)used;
    made.statistic = plus < minus ? plus : minus;
    made.used = used;
    made.ties = ties > 0.0;
    deviation = sqrt((n * (n + 1.0) * (2.0 * n + 1.0) - 0.5 * ties) / 24.0);
    made.p_normal = used ? erfc((0.25 * n * (n + 1.0) - made.statistic) / deviation * 0.70710678118654752440) : 1.0;
    made.p_normal_continuity = (double)NAN;
    made.p_exact = (double)NAN;
    if (!made.ties && used == count && used <= VP_EXACT_WILCOXON_LIMIT) {
        const double p = 2.0 * vp_impl_wilcoxon_below(used, (size_t)made.statistic, chance);
        made.p_exact = p > 1.0 ? 1.0 : p;
    }
    *test = made;
    return VP_OK;
}

static int vp_impl_mann_whitney_exact(size_t count_x, size_t count_y) {
    return count_x && count_y <= VP_EXACT_MANN_WHITNEY_LIMIT / count_x;
}

VP_API size_t vp_mann_whitney_scratch_bytes(size_t count_x, size_t count_y) {
    size_t bytes = 64, all;
    if (!vp_size_add(count_x, count_y, &all)) return SIZE_MAX;
    vp_impl_arena_need(&bytes, all, sizeof(double));
    vp_impl_arena_need(&bytes, all, sizeof(double));
    vp_impl_arena_need(&bytes, all, sizeof(uint32_t));
    if (vp_impl_mann_whitney_exact(count_x, count_y))
        vp_impl_arena_need(&bytes, ((count_x < count_y ? count_x : count_y) + 1) * (count_x * count_y / 2 + 1), sizeof(double));
    return bytes;
}

/* P(U <= statistic). Of m + n ranked values the largest is of x with m / (m + n), and beats all n of y: P(m, n, u) = m / (m + n) P(m - 1, n, u - n) +
 * n / (m + n) P(m, n - 1, u). `chance`: [short + 1, statistic + 1], rows m, made for n = 0, 1, ... long. Only additions of positive numbers. */
static double vp_impl_mann_whitney_below(size_t shorter, size_t longer, size_t statistic, double *chance) {
    const size_t width = statistic + 1;
    double sum = 0.0;
    size_t m, n, u;
    memset(chance, 0, (shorter + 1) * width * sizeof *chance);
    for (m = 0; m <= shorter; m++) chance[m * width] = 1.0;
    for (n = 1; n <= longer; n++) {
        for (m = 1; m <= shorter; m++) { /* row m - 1 is already that of n */
            const double with = (double)m / (double)(m + n), without = (double)n / (double)(m + n);
            for (u = 0; u < width; u++) {
                double p = without * chance[m * width + u];
                if (u >= n) p += with * chance[(m - 1) * width + u - n];
                chance[m * width + u] = p;
            }
        }
    }
    for (u = 0; u < width; u++) sum += chance[shorter * width + u];
    return sum;
}

VP_API vp_result vp_mann_whitney(const double *x, size_t count_x, const double *y, size_t count_y, void *scratch, size_t scratch_bytes,
                                 vp_rank_test *test) {
    const size_t all = count_x + count_y, shorter = count_x < count_y ? count_x : count_y;
    const double n1 = (double)count_x, n2 = (double)count_y, n = n1 + n2;
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    double *values, *ranks, *chance = NULL, ties, sum = 0.0, larger, variance, p;
    uint32_t *order;
    vp_rank_test made;
    size_t i;
    if (!x || !y || !test || !count_x || !count_y || all < count_x || !vp_impl_counts_fit(all)) return VP_ERR_RANGE;
    if (!vp_all_finite(x, count_x) || !vp_all_finite(y, count_y)) return VP_ERR_RANGE;
    values = (double *)vp_arena_take(&arena, all, sizeof(double));
    ranks = (double *)vp_arena_take(&arena, all, sizeof(double));
    order = (uint32_t *)vp_arena_take(&arena, all, sizeof(uint32_t));
    if (vp_impl_mann_whitney_exact(count_x, count_y))
        chance = (double *)vp_arena_take(&arena, (shorter + 1) * (count_x * count_y / 2 + 1), sizeof(double));
    if (!values || !ranks || !order || (!chance && vp_impl_mann_whitney_exact(count_x, count_y))) return VP_ERR_CAPACITY;
    memcpy(values, x, count_x * sizeof *x);
    memcpy(values + count_x, y, count_y * sizeof *y);
    for (i = 0; i < all; i++) order[i] = (uint32_t)i;
    vp_impl_sort_index(values, NULL, order, all);
    ties = vp_impl_ranks(values, order, all, ranks);
    for (i = 0; i < count_x; i++) sum += ranks[i];
    made.statistic = sum - 0.5 * n1 * (n1 + 1.0);
    made.used = all;
    made.ties = ties > 0.0;
    larger = made.statistic > n1 * n2 - made.statistic ? made.statistic : n1 * n2 - made.statistic;
    variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    made.p_normal = variance > 0.0 ? erfc((larger - 0.5 * n1 * n2) / sqrt(variance) * 0.70710678118654752440) : 1.0;
    p = variance > 0.0 ? erfc((larger - 0.5 * n1 * n2 - 0.5) / sqrt(variance) * 0.70710678118654752440) : 1.0;
    made.p_normal_continuity = p > 1.0 ? 1.0 : p;
    made.p_exact = (double)NAN;
    if (!made.ties && chance) {
        p = 2.0 * vp_impl_mann_whitney_below(shorter, all - shorter, (size_t)(n1 * n2 - larger), chance);
        made.p_exact = p > 1.0 ? 1.0 : p;
    }
    *test = made;
    return VP_OK;
}

VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted) {
    double held = 0.0, value;
    size_t i, k;
    if (count && (!p || !order || !adjusted)) return VP_ERR_RANGE;
    if ((method != VP_ADJUST_NONE && method != VP_ADJUST_HOLM && method != VP_ADJUST_BENJAMINI_HOCHBERG) || !vp_impl_counts_fit(count))
        return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!(p[i] >= 0.0 && p[i] <= 1.0)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) order[i] = (uint32_t)i;
    vp_impl_sort_index(p, NULL, order, count);
    if (method == VP_ADJUST_NONE && adjusted != p) for (i = 0; i < count; i++) adjusted[i] = p[i];
    if (method == VP_ADJUST_HOLM) { /* from the smallest: no adjusted value is below the one before it */
        for (i = 0; i < count; i++) {
            value = p[order[i]] * (double)(count - i);
            if (value > held) held = value;
            adjusted[order[i]] = held > 1.0 ? 1.0 : held;
        }
    }
    if (method == VP_ADJUST_BENJAMINI_HOCHBERG) { /* from the largest: none is above the one behind it */
        held = 1.0;
        for (i = 0; i < count; i++) {
            k = count - 1 - i;
            value = p[order[k]] * (double)count / (double)(k + 1);
            if (value < held) held = value;
            adjusted[order[k]] = held;
        }
    }
    return VP_OK;
}

VP_API const char *vp_verdict_name(vp_verdict verdict) {
    switch ((int)verdict) {
    case VP_VERDICT_UNSURE: return "UNSURE";
    case VP_VERDICT_SAME: return "SAME";
    case VP_VERDICT_FASTER: return "FASTER";
    case VP_VERDICT_SLOWER: return "SLOWER";
    default: return NULL;
    }
}

static vp_verdict vp_impl_verdict(const vp_comparison *c, double alpha) {
    if (c->p_equivalence <= alpha) return VP_VERDICT_SAME;
    if (!(c->p_difference <= alpha)) return VP_VERDICT_UNSURE;
    return c->estimate < 0.0 ? VP_VERDICT_FASTER : VP_VERDICT_SLOWER;
}

/* One pair's difference before the scale's factor; 0: the pair does not fit the scale. */
static int vp_impl_compare_step(double first, double second, vp_scale scale, double *step) {
    if (scale != VP_SCALE_ABSOLUTE && !(first > 0.0)) return 0;
    if (scale == VP_SCALE_LOG && !(second > 0.0)) return 0;
    *step = scale == VP_SCALE_LOG ? log(second) - log(first) : second - first;
    return vp_impl_number(*step) && vp_impl_number(first);
}

/* mean and squared deviations of the steps, both passes; 0: a value that does not fit */
static int vp_impl_compare_moments(const double *first, const double *second, size_t count, vp_scale scale, double *mean, double *squares) {
    double sum = 0.0, base = 0.0, rest = 0.0, step;
    size_t i;
    for (i = 0; i < count; i++) {
        if (!vp_impl_compare_step(first[i], second[i], scale, &step)) return 0;
        sum += step;
        base += first[i];
    }
    base = scale == VP_SCALE_RELATIVE ? (double)count / base : 1.0;
    *mean = sum / (double)count;
    *squares = 0.0;
    for (i = 0; i < count; i++) {
        vp_impl_compare_step(first[i], second[i], scale, &step);
        step -= *mean;
        rest += step;
        *squares += step * step;
    }
    *mean = (*mean + rest / (double)count) * base;
    *squares = (*squares - rest * rest / (double)count) * base * base;
    if (*squares < 0.0) *squares = 0.0;
    return 1;
}

/* the one-sided p value of "the mean lies beyond the margin" */
static double vp_impl_one_sided(double distance, double error, double degrees) {
    if (!(error > 0.0)) return distance > 0.0 ? 0.0 : 1.0;
    return vp_student_tail(distance / error, degrees);
}

VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale, double margin, double alpha,
                                   vp_comparison *comparison) {
    const int logarithmic = scale == VP_SCALE_LOG;
    vp_mean_interval interval;
    vp_comparison made;
    double mean, squares, below, above;
    if (!first || !second || !comparison || count < 2 || !(margin > 0.0 && margin < HUGE_VAL) || !(alpha > 0.0 && alpha < 0.5)) return VP_ERR_RANGE;
    if (scale != VP_SCALE_ABSOLUTE && scale != VP_SCALE_RELATIVE && scale != VP_SCALE_LOG) return VP_ERR_RANGE;
    if (!vp_impl_compare_moments(first, second, count, scale, &mean, &squares)) return VP_ERR_RANGE;
    if (vp_impl_mean_interval(count, mean, squares, vp_impl_quantile(count, 1.0 - alpha), &interval) != VP_OK) return VP_ERR_RANGE;
    /* a share of -margin is the logarithm of 1 / (1 + margin): as far from 0 as that of +margin */
    below = logarithmic ? log1p(margin) : margin;
    above = below;
    made.count = count;
    made.estimate = logarithmic ? expm1(interval.mean) : interval.mean;
    made.low = logarithmic ? expm1(interval.low) : interval.low;
    made.high = logarithmic ? expm1(interval.high) : interval.high;
    made.p_difference = interval.p;
    below = vp_impl_one_sided(interval.mean + below, interval.error, interval.degrees);
    above = vp_impl_one_sided(above - interval.mean, interval.error, interval.degrees);
    made.p_equivalence = below > above ? below : above;
    made.verdict = vp_impl_verdict(&made, alpha);
    *comparison = made;
    return VP_OK;
}

VP_API vp_result vp_compare_adjust(vp_comparison *comparisons, size_t count, vp_adjustment method, double alpha, uint32_t *order, double *values) {
    size_t i;
    if ((count && (!comparisons || !order || !values)) || !(alpha > 0.0 && alpha < 0.5)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        if (!(comparisons[i].p_difference >= 0.0 && comparisons[i].p_difference <= 1.0)) return VP_ERR_RANGE;
        values[i] = comparisons[i].p_equivalence;
    }
    if (vp_adjust(values, count, method, order, values) != VP_OK) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        comparisons[i].p_equivalence = values[i];
        values[i] = comparisons[i].p_difference;
    }
    vp_adjust(values, count, method, order, values);
    for (i = 0; i < count; i++) {
        comparisons[i].p_difference = values[i];
        comparisons[i].verdict = vp_impl_verdict(&comparisons[i], alpha);
    }
    return VP_OK;
}

/* the least n >= 2 with deviation * (t(first) + t(second)) <= distance * sqrt(n); 0: over 10^9. t falls with n, so that one n parts no from yes. */
static size_t vp_impl_plan(double deviation, double distance, double first, double second) {
    size_t low = 1, high = 1000000001;
    while (high - low > 1) {
        const size_t n = low + (high - low) / 2;
        const double degrees = (double)(n - 1);
        const double reach = deviation * (vp_statistics_student(first, degrees) + vp_statistics_student(second, degrees));
        if (reach <= distance * sqrt((double)n)) high = n; else low = n;
    }
    return high <= 1000000000 ? high : 0;
}

VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power, size_t *count) {
    size_t same, found;
    if (!(deviation >= 0.0 && deviation < HUGE_VAL) || !(margin > 0.0 && margin < effect && effect < HUGE_VAL) || !count) return VP_ERR_RANGE;
    if (!(alpha >= 1e-9 && alpha < 0.5) || !(power >= 0.5 && power <= 1.0 - 1e-9)) return VP_ERR_RANGE;
    same = vp_impl_plan(deviation, margin, 1.0 - alpha, 0.5 + 0.5 * power);
    found = vp_impl_plan(deviation, effect, 1.0 - 0.5 * alpha, power);
    if (!same || !found) return VP_ERR_RANGE;
    *count = same > found ? same : found;
    return VP_OK;
}

/* ---- Pareto fronts */
/* The front of the points in index[0..count), in place; returns how many are left. */
static size_t vp_impl_front(const double *latency, const double *accuracy, vp_pareto_rule rule, uint32_t *index, size_t count) {
    const int strict = rule == VP_PARETO_FIRST || rule == VP_PARETO_ALL;
    double best = rule == VP_PARETO_SWEEP ? -1.0 : -HUGE_VAL, faster = -HUGE_VAL; /* best so far; best of those that are strictly faster */
    size_t i, kept = 0;
    vp_impl_sort_index(latency, strict ? accuracy : NULL, index, count);
    for (i = 0; i < count; i++) {
        const uint32_t p = index[i];
        int keep;
        if (i > 0 && latency[p] > latency[index[i - 1]]) faster = best; /* index[i - 1] is still itself: kept <= i - 1 only moves earlier ones */
        if (strict) {
            const int again = kept > 0 && !(latency[p] > latency[index[kept - 1]]) && !(accuracy[p] < accuracy[index[kept - 1]]);
            keep = accuracy[p] > best || (rule == VP_PARETO_ALL && again);
        } else if (rule == VP_PARETO_WEAK) {
            keep = accuracy[p] >= faster;
        } else {
            keep = accuracy[p] >= best - 1e-9;
        }
        if (accuracy[p] > best) best = accuracy[p];
        if (keep) index[kept++] = p;
    }
    return kept;
}

static int vp_impl_points_good(const double *latency, const double *accuracy, size_t count) {
    return vp_impl_counts_fit(count) && (!count || (latency && accuracy && vp_all_finite(latency, count) && vp_all_finite(accuracy, count)));
}

VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule, uint32_t *front,
                                 size_t *front_count) {
    size_t i;
    if (!vp_impl_points_good(latency, accuracy, count) || (count && !front) || !front_count) return VP_ERR_RANGE;
    if ((int)rule < VP_PARETO_FIRST || (int)rule > VP_PARETO_SWEEP) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) front[i] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, rule, front, count);
    return VP_OK;
}

VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key, size_t count,
                                       uint32_t *front, size_t *front_count) {
    size_t i, held = 0;
    if (!vp_impl_points_good(latency, accuracy, count) || (count && (!front || !keys)) || !front_count) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (keys[i] == key) front[held++] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, VP_PARETO_FIRST, front, held);
    return VP_OK;
}

/* a front as vp_pareto_front gives it: both axes rise, equal points at most stand side by side */
static int vp_impl_is_front(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count) {
    size_t i;
    if (!vp_impl_counts_fit(count) || front_count > count || (front_count && (!latency || !accuracy || !front))) return 0;
    for (i = 0; i < front_count; i++) {
        if (front[i] >= count || !vp_impl_number(latency[front[i]]) || !vp_impl_number(accuracy[front[i]])) return 0;
        if (i > 0) {
            const double l = latency[front[i]] - latency[front[i - 1]], a = accuracy[front[i]] - accuracy[front[i - 1]];
            if (!((l > 0.0 && a > 0.0) || (l >= 0.0 && l <= 0.0 && a >= 0.0 && a <= 0.0))) return 0;
        }
    }
    return 1;
}

VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                                   vp_epsilon epsilon, uint32_t *kept, size_t *kept_count) {
    size_t i = 0, j, n = 0;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || (front_count && !kept) || !kept_count) return VP_ERR_RANGE;
    if (!(epsilon.latency >= 0.0 && epsilon.latency < HUGE_VAL) || !(epsilon.accuracy >= 0.0 && epsilon.accuracy < HUGE_VAL)) return VP_ERR_RANGE;
    if (epsilon.relative && (epsilon.latency >= 1.0 || epsilon.accuracy >= 1.0)) return VP_ERR_RANGE;
    /* the fastest point that is not covered yet needs a point that is at most epsilon slower: the slowest of these covers most of what follows */
    while (i < front_count) {
        const double l = latency[front[i]], reach = l + (epsilon.relative ? epsilon.latency * fabs(l) : epsilon.latency);
        uint32_t chosen;
        for (j = i; j + 1 < front_count && latency[front[j + 1]] <= reach; j++) {}
        while (j > i && !(latency[front[j]] > latency[front[j - 1]])) j--; /* of equal points the first */
        chosen = front[j];
        for (i = j + 1; i < front_count; i++) {
            const double a = accuracy[front[i]];
            if (!(accuracy[chosen] >= a - (epsilon.relative ? epsilon.accuracy * fabs(a) : epsilon.accuracy))) break;
        }
        kept[n++] = chosen; /* kept may be front: n <= j */
    }
    *kept_count = n;
    return VP_OK;
}

VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                             double latency_limit, double accuracy_limit) {
    double area = 0.0;
    size_t i;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || !vp_impl_number(latency_limit) || !vp_impl_number(accuracy_limit))
        return (double)NAN;
    for (i = 0; i < front_count; i++) {
        const double next = i + 1 < front_count && latency[front[i + 1]] < latency_limit ? latency[front[i + 1]] : latency_limit;
        const double width = next - latency[front[i]], height = accuracy[front[i]] - accuracy_limit;
        if (width > 0.0 && height > 0.0) area += width * height;
    }
    return area;
}

static size_t vp_impl_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy) {
    size_t i, best = count;
    for (i = 0; i < count; i++) {
        if (!(latency[i] <= budget && accuracy[i] >= min_accuracy)) continue;
        if (best == count || accuracy[i] > accuracy[best] || (!(accuracy[i] < accuracy[best]) && latency[i] < latency[best])) best = i;
    }
    return best;
}

VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy, uint32_t *best) {
    size_t found;
    if (!vp_impl_points_good(latency, accuracy, count) || !(budget <= HUGE_VAL) || !(min_accuracy <= HUGE_VAL) || !best) return VP_ERR_RANGE;
    found = vp_impl_best(latency, accuracy, count, budget, min_accuracy);
    if (found == count) return VP_ERR_NOT_FOUND;
    *best = (uint32_t)found;
    return VP_OK;
}

/* ---- bootstrap of a front */
VP_API vp_bootstrap_options vp_bootstrap_options_default(void) {
    vp_bootstrap_options o;
    o.resamples = 1000;
    o.seed = 42;
    o.percentile = 50.0;
    o.level = 0.95;
    o.budget = HUGE_VAL;
    o.min_accuracy = -HUGE_VAL;
    return o;
}

typedef struct vp_impl_bootstrap {
    const double *latency, *accuracy;       /* [configs, samples] */
    size_t configs, samples, resamples;
    double percentile;
    vp_random random;
    uint32_t *order;                        /* [configs, samples], each row by latency; percentiles only */
    uint32_t *times;                        /* [samples]: how often this resample drew each */
    double *axis_latency, *axis_accuracy;   /* [configs] of this resample */
    double *all_latency, *all_accuracy;     /* [configs, resamples] */
    uint32_t *front;                        /* [configs] */
    uint32_t *member, *within, *best;       /* [configs] counts */
} vp_impl_bootstrap;

static int vp_impl_bootstrap_take(vp_impl_bootstrap *b, vp_arena *arena) {
    b->order = (uint32_t *)vp_arena_take(arena, b->configs * b->samples, sizeof(uint32_t)); /* the caller's matrices are larger: no overflow */
    b->times = (uint32_t *)vp_arena_take(arena, b->samples, sizeof(uint32_t));
    b->axis_latency = (double *)vp_arena_take(arena, b->configs, sizeof(double));
    b->axis_accuracy = (double *)vp_arena_take(arena, b->configs, sizeof(double));
    b->all_latency = (double *)vp_arena_take(arena, b->configs, b->resamples * sizeof(double));
    b->all_accuracy = (double *)vp_arena_take(arena, b->configs, b->resamples * sizeof(double));
    b->front = (uint32_t *)vp_arena_take(arena, b->configs, 4 * sizeof(uint32_t));
    if (!b->order || !b->times || !b->axis_latency || !b->axis_accuracy || !b->all_latency || !b->all_accuracy || !b->front) return 0;
    b->member = b->front + b->configs;
    b->within = b->member + b->configs;
    b->best = b->within + b->configs;
    memset(b->member, 0, 3 * b->configs * sizeof(uint32_t));
    return 1;
}

VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples) {
    size_t bytes = 64, points, draws;
    if (!vp_size_multiply(config_count, sample_count, &points) || !vp_size_multiply(config_count, resamples, &draws)) return SIZE_MAX;
    vp_impl_arena_need(&bytes, points, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, sample_count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, config_count, sizeof(double));
    vp_impl_arena_need(&bytes, config_count, sizeof(double));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    vp_impl_arena_need(&bytes, config_count, 4 * sizeof(uint32_t));
    return bytes;
}

/* The percentile of a row in which value j stands times[j] times, as vp_statistics_percentile of the sorted copies: counts through the sorted row
 * from its nearer end until the two neighbours of the place are found. */
static double vp_impl_percentile_times(const double *row, const uint32_t *order, const uint32_t *times, size_t count, double percentile) {
    const double place = (double)(count - 1) * (percentile / 100.0);
    size_t low = (size_t)place, high, seen = 0, j;
    double pair[2], part, step;
    if (low > count - 1) low = count - 1;
    high = low + 1 < count ? low + 1 : low;
    part = place - (double)low;
    if (percentile <= 50.0) {
        for (j = 0; (seen += times[order[j]]) <= low; j++) {}
        pair[0] = row[order[j]];
        if (seen <= high) while (!times[order[++j]]) {}
        pair[1] = row[order[j]];
    } else {
        const size_t from_top = count - 1 - high;
        for (j = count - 1; (seen += times[order[j]]) <= from_top; j--) {}
        pair[1] = row[order[j]];
        if (seen <= count - 1 - low) while (!times[order[--j]]) {}
        pair[0] = row[order[j]];
    }
    step = pair[1] - pair[0];
    if (part < 0.5) {
        step = step * part;
        return pair[0] + step;
    }
    step = step * (1.0 - part);
    return pair[1] - step;
}

static double vp_impl_mean_times(const double *row, const uint32_t *times, size_t count) {
    double part[4] = {0.0, 0.0, 0.0, 0.0};
    size_t i;
    for (i = 0; i + 4 <= count; i += 4) { /* four sums, so that one addition need not wait for the one before it */
        part[0] += row[i] * (double)times[i];
        part[1] += row[i + 1] * (double)times[i + 1];
        part[2] += row[i + 2] * (double)times[i + 2];
        part[3] += row[i + 3] * (double)times[i + 3];
    }
    for (; i < count; i++) part[0] += row[i] * (double)times[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) / (double)count;
}

static void vp_impl_bootstrap_axes(const vp_impl_bootstrap *b) {
    size_t c;
    for (c = 0; c < b->configs; c++) {
        const double *row = b->latency + c * b->samples;
        b->axis_latency[c] = b->percentile < 0.0 ? vp_impl_mean_times(row, b->times, b->samples)
                                                 : vp_impl_percentile_times(row, b->order + c * b->samples, b->times, b->samples, b->percentile);
        b->axis_accuracy[c] = vp_impl_mean_times(b->accuracy + c * b->samples, b->times, b->samples);
    }
}

static void vp_impl_bootstrap_draw(vp_impl_bootstrap *b, size_t round, double budget, double min_accuracy) {
    size_t i, n;
    memset(b->times, 0, b->samples * sizeof *b->times);
    for (i = 0; i < b->samples; i++) b->times[vp_random_below(&b->random, (uint64_t)b->samples - 1)]++;
    vp_impl_bootstrap_axes(b);
    for (i = 0; i < b->configs; i++) {
        b->front[i] = (uint32_t)i;
        b->all_latency[i * b->resamples + round] = b->axis_latency[i];
        b->all_accuracy[i * b->resamples + round] = b->axis_accuracy[i];
        if (b->axis_latency[i] <= budget && b->axis_accuracy[i] >= min_accuracy) b->within[i]++;
    }
    n = vp_impl_best(b->axis_latency, b->axis_accuracy, b->configs, budget, min_accuracy);
    if (n < b->configs) b->best[n]++;
    n = vp_impl_front(b->axis_latency, b->axis_accuracy, VP_PARETO_ALL, b->front, b->configs);
    for (i = 0; i < n; i++) b->member[b->front[i]]++;
}

static vp_result vp_impl_bootstrap_check(const vp_impl_bootstrap *b, const vp_bootstrap_options *o) {
    size_t points;
    if (!b->latency || !b->accuracy || !b->configs || !b->samples || !vp_impl_counts_fit(b->configs) || !vp_impl_counts_fit(b->samples))
        return VP_ERR_RANGE;
    if (!vp_size_multiply(b->configs, b->samples, &points) || points > SIZE_MAX / sizeof(double)) return VP_ERR_RANGE;
    if (o->resamples < 1 || o->resamples > 1000000 || !(o->percentile <= 100.0) || !vp_impl_share(o->level)) return VP_ERR_RANGE;
    if (!(o->budget <= HUGE_VAL) || !(o->min_accuracy <= HUGE_VAL)) return VP_ERR_RANGE;
    return vp_all_finite(b->latency, points) && vp_all_finite(b->accuracy, points) ? VP_OK : VP_ERR_RANGE;
}

VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes, vp_bootstrap_point *points) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    vp_impl_bootstrap b;
    size_t c, i;
    if (!options || !points) return VP_ERR_RANGE;
    b.latency = latency;
    b.accuracy = accuracy;
    b.configs = config_count;
    b.samples = sample_count;
    b.resamples = options->resamples;
    b.percentile = options->percentile;
    if (vp_impl_bootstrap_check(&b, options) != VP_OK) return VP_ERR_RANGE;
    if (!vp_impl_bootstrap_take(&b, &arena)) return VP_ERR_CAPACITY;
    vp_random_seed(&b.random, options->seed);
    for (c = 0; c < config_count && options->percentile >= 0.0; c++) {
        for (i = 0; i < sample_count; i++) b.order[c * sample_count + i] = (uint32_t)i;
        vp_impl_sort_index(latency + c * sample_count, NULL, b.order + c * sample_count, sample_count);
    }
    for (i = 0; i < b.resamples; i++) vp_impl_bootstrap_draw(&b, i, options->budget, options->min_accuracy);
    for (i = 0; i < sample_count; i++) b.times[i] = 1; /* the samples as they are */
    vp_impl_bootstrap_axes(&b);
    for (c = 0; c < config_count; c++) {
        double *l = b.all_latency + c * b.resamples, *a = b.all_accuracy + c * b.resamples;
        const double below = 50.0 * (1.0 - options->level);
        vp_sort_double(l, b.resamples);
        vp_sort_double(a, b.resamples);
        points[c].latency = b.axis_latency[c];
        points[c].accuracy = b.axis_accuracy[c];
        points[c].latency_low = vp_statistics_percentile(l, b.resamples, below);
        points[c].latency_high = vp_statistics_percentile(l, b.resamples, 100.0 - below);
        points[c].accuracy_low = vp_statistics_percentile(a, b.resamples, below);
        points[c].accuracy_high = vp_statistics_percentile(a, b.resamples, 100.0 - below);
        points[c].membership = (double)b.member[c] / (double)b.resamples;
        points[c].within_budget = (double)b.within[c] / (double)b.resamples;
        points[c].best = (double)b.best[c] / (double)b.resamples;
    }
    return VP_OK;
}

/* ---- Householder's reflections, the base of all fits */
/* Makes the reflection that leaves nothing of v below `row`: v[row] becomes the length, its vector stays below.
 * returns: its factor for vp_impl_reflect; 0: there was nothing below */
static double vp_impl_reflection(double *v, size_t rows, size_t row) {
    double largest = 0.0, sum = 0.0, length, factor;
    size_t i;
    for (i = row + 1; i < rows; i++) if (fabs(v[i]) > largest) largest = fabs(v[i]);
    if (!(largest > 0.0)) return 0.0;
    if (fabs(v[row]) > largest) largest = fabs(v[row]);
    for (i = row; i < rows; i++) sum += (v[i] / largest) * (v[i] / largest);
    length = v[row] > 0.0 ? -largest * sqrt(sum) : largest * sqrt(sum);
    factor = (length - v[row]) / length;
    for (i = row + 1; i < rows; i++) v[i] /= v[row] - length;
    v[row] = length;
    return factor;
}

static void vp_impl_reflect(const double *v, double factor, size_t rows, size_t row, double *y) {
    double dot = y[row];
    size_t i;
    for (i = row + 1; i < rows; i++) dot += v[i] * y[i];
    dot *= factor;
    y[row] -= dot;
    for (i = row + 1; i < rows; i++) y[i] -= dot * v[i];
}

/* ---- coupling of the knobs */
static int vp_impl_knobs_good(const vp_knobs *k, int32_t order) {
    int32_t i;
    if (!k || !k->levels || k->knob_count < 1 || k->knob_count > VP_KNOB_LIMIT || (order != 1 && order != 2) || !k->config_count) return 0;
    for (i = 0; i < k->knob_count; i++) if (k->level_counts[i] < 1 || k->level_counts[i] > VP_KNOB_LEVEL_LIMIT) return 0;
    return k->config_count <= SIZE_MAX / VP_KNOB_LIMIT && vp_impl_counts_fit(k->config_count);
}

static size_t vp_impl_effect_columns(const vp_knobs *k, int32_t order) {
    size_t columns = 1;
    int32_t a, b;
    for (a = 0; a < k->knob_count; a++) {
        columns += (size_t)(k->level_counts[a] - 1);
        for (b = a + 1; order == 2 && b < k->knob_count; b++) columns += (size_t)(k->level_counts[a] - 1) * (size_t)(k->level_counts[b] - 1);
    }
    return columns; /* at most 8 * 256 + 28 * 2^16 */
}

VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order) {
    size_t count = 1;
    int32_t a, b;
    if (!vp_impl_knobs_good(knobs, order)) return 0;
    for (a = 0; a < knobs->knob_count; a++) {
        count += 2 * (size_t)knobs->level_counts[a] - 1;
        for (b = a + 1; order == 2 && b < knobs->knob_count; b++) count += (size_t)knobs->level_counts[a] * (size_t)knobs->level_counts[b];
    }
    return count;
}

typedef struct vp_impl_effects {
    const vp_knobs *knobs;
    int32_t order;
    size_t rows, columns, count;
    double *design;  /* [columns, rows], then its factor */
    double *factor;  /* [columns], of the reflections */
    double *vector;  /* [rows]: one sample */
    double *means;   /* [rows]: of the configurations */
    double *mean, *squares, *value; /* [count] */
} vp_impl_effects;

static int vp_impl_effects_take(vp_impl_effects *e, vp_arena *arena, size_t *need) {
    const size_t rows = e->rows, want[7] = {e->columns, e->columns, rows, rows, e->count, e->count, e->count};
    double *got[7];
    size_t i;
    for (i = 0; i < 7; i++) {
        const size_t each = (i == 0 ? rows : 1) * sizeof(double); /* rows fit 32 bits, columns 1024 */
        if (need) vp_impl_arena_need(need, want[i], each);
        got[i] = arena ? (double *)vp_arena_take(arena, want[i], each) : NULL;
        if (arena && !got[i]) return 0;
    }
    e->design = got[0];
    e->factor = got[1];
    e->vector = got[2];
    e->means = got[3];
    e->mean = got[4];
    e->squares = got[5];
    e->value = got[6];
    return 1;
}

VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order) {
    vp_impl_effects e;
    size_t bytes = 64;
    if (!vp_impl_knobs_good(knobs, order) || vp_impl_effect_columns(knobs, order) > VP_EFFECT_COLUMNS_LIMIT) return SIZE_MAX;
    e.rows = knobs->config_count;
    e.columns = vp_impl_effect_columns(knobs, order);
    e.count = vp_effect_count(knobs, order);
    vp_impl_effects_take(&e, NULL, &bytes);
    return bytes;
}

/* the code of a level in a knob's column: effects add up to 0, so that the last level is minus all others */
static double vp_impl_code(int32_t level, int32_t level_count, int32_t column) {
    return level == level_count - 1 ? -1.0 : level == column ? 1.0 : 0.0;
}

static void vp_impl_design_row(const vp_impl_effects *e, size_t row) {
    const vp_knobs *k = e->knobs;
    const int32_t *level = k->levels + row * (size_t)k->knob_count;
    size_t c = 0;
    int32_t a, b, i, j;
    e->design[c++ * e->rows + row] = 1.0;
    for (a = 0; a < k->knob_count; a++) {
        for (i = 0; i + 1 < k->level_counts[a]; i++) e->design[c++ * e->rows + row] = vp_impl_code(level[a], k->level_counts[a], i);
    }
    for (a = 0; a < k->knob_count && e->order == 2; a++) {
        for (b = a + 1; b < k->knob_count; b++) {
            for (i = 0; i + 1 < k->level_counts[a]; i++) {
                for (j = 0; j + 1 < k->level_counts[b]; j++) {
                    e->design[c++ * e->rows + row] = vp_impl_code(level[a], k->level_counts[a], i) * vp_impl_code(level[b], k->level_counts[b], j);
                }
            }
        }
    }
}

/* Factor of the design; 0: its columns depend on each other. Its numbers are small integers: what is left of a dependent column is rounding. */
static int vp_impl_design_factor(const vp_impl_effects *e) {
    size_t r, c, i;
    if (e->rows < e->columns) return 0;
    for (r = 0; r < e->rows; r++) vp_impl_design_row(e, r);
    for (c = 0; c < e->columns; c++) {
        double *column = e->design + c * e->rows, whole = 0.0;
        for (r = 0; r < e->rows; r++) whole += column[r] * column[r];
        e->factor[c] = vp_impl_reflection(column, e->rows, c);
        if (!(fabs(column[c]) > 1e-9 * sqrt(whole))) return 0;
        for (i = c + 1; i < e->columns; i++) vp_impl_reflect(column, e->factor[c], e->rows, c, e->design + i * e->rows);
    }
    return 1;
}

/* coefficients of the values in e->vector, into its first places */
static void vp_impl_design_solve(const vp_impl_effects *e) {
    double *y = e->vector;
    size_t c, r;
    for (c = 0; c < e->columns; c++) vp_impl_reflect(e->design + c * e->rows, e->factor[c], e->rows, c, y);
    for (c = e->columns; c-- > 0;) {
        y[c] /= e->design[c * e->rows + c];
        for (r = 0; r < c; r++) y[r] -= e->design[c * e->rows + r] * y[c];
    }
}

/* the effect of a pair of levels: where a level is the last one, minus the sum over the others */
static double vp_impl_pair_effect(const double *coefficient, int32_t levels_a, int32_t levels_b, int32_t level_a, int32_t level_b) {
    double sum = 0.0;
    int32_t i, j;
    for (i = 0; i + 1 < levels_a; i++) {
        for (j = 0; j + 1 < levels_b; j++) {
            sum += vp_impl_code(level_a, levels_a, i) * vp_impl_code(level_b, levels_b, j) * coefficient[i * (levels_b - 1) + j];
        }
    }
    return sum;
}

/* All effects of one sample from its coefficients, in the order of the rows; labels go to `effects` where it is not NULL. */
static void vp_impl_effects_expand(const vp_impl_effects *e, double *value, vp_effect *effects) {
    const vp_knobs *k = e->knobs;
    const double *coefficient = e->vector;
    vp_effect label;
    size_t n = 0;
    int32_t a, b, i, j, step;
    memset(&label, 0, sizeof label);
    label.kind = VP_EFFECT_MEAN;
    label.knob_a = label.level_a = label.knob_b = label.level_b = -1;
    if (effects) effects[n] = label;
    value[n++] = *coefficient++;
    for (a = 0; a < k->knob_count; coefficient += k->level_counts[a++] - 1) {
        const size_t first = n;
        for (step = 0; step < 2; step++) {
            for (i = step; i < k->level_counts[a]; i++) {
                label.kind = step ? VP_EFFECT_STEP : VP_EFFECT_MAIN;
                label.knob_a = a;
                label.level_a = i;
                if (effects) effects[n] = label;
                /* a main effect is a pair with a knob of two levels of which the first is meant */
                value[n] = step ? value[first + (size_t)i] - value[first + (size_t)i - 1]
                                : vp_impl_pair_effect(coefficient, k->level_counts[a], 2, i, 0);
                n++;
            }
        }
    }
    label.kind = VP_EFFECT_PAIR;
    for (a = 0; a < k->knob_count && e->order == 2; a++) {
        for (b = a + 1; b < k->knob_count; b++) {
            const int32_t count_a = k->level_counts[a], count_b = k->level_counts[b];
            for (i = 0; i < count_a; i++) {
                for (j = 0; j < count_b; j++) {
                    label.knob_a = a;
                    label.level_a = i;
                    label.knob_b = b;
                    label.level_b = j;
                    if (effects) effects[n] = label;
                    value[n++] = vp_impl_pair_effect(coefficient, count_a, count_b, i, j);
                }
            }
            coefficient += (count_a - 1) * (count_b - 1);
        }
    }
}

/* shares of the variance between configurations, from the estimates in e->mean and the means in e->means */
static void vp_impl_effects_shares(const vp_impl_effects *e, double *shares) {
    const vp_knobs *k = e->knobs;
    double average = 0.0, total = 0.0;
    size_t c, n, term, terms = (size_t)k->knob_count + (e->order == 2 ? (size_t)(k->knob_count * (k->knob_count - 1) / 2) : 0);
    int32_t a, b;
    for (c = 0; c < e->rows; c++) average += e->means[c];
    average /= (double)e->rows;
    for (term = 0; term <= terms; term++) shares[term] = 0.0;
    for (c = 0; c < e->rows; c++) {
        const int32_t *level = k->levels + c * (size_t)k->knob_count;
        double rest = e->means[c] - e->mean[0], part;
        total += (e->means[c] - average) * (e->means[c] - average);
        for (a = 0, n = 1, term = 0; a < k->knob_count; n += 2 * (size_t)k->level_counts[a++] - 1, term++) {
            part = e->mean[n + (size_t)level[a]];
            shares[term] += part * part;
            rest -= part;
        }
        for (a = 0; a < k->knob_count && e->order == 2; a++) {
            for (b = a + 1; b < k->knob_count; b++, term++) {
                part = e->mean[n + (size_t)level[a] * (size_t)k->level_counts[b] + (size_t)level[b]];
                shares[term] += part * part;
                rest -= part;
                n += (size_t)k->level_counts[a] * (size_t)k->level_counts[b];
            }
        }
        shares[terms] += rest * rest;
    }
    for (term = 0; term <= terms; term++) shares[term] = total > 0.0 ? shares[term] / total : 0.0;
}

static vp_result vp_impl_effects_check(const vp_knobs *k, const double *values, size_t samples, int32_t order, vp_error *error) {
    size_t i, points;
    if (!vp_impl_knobs_good(k, order)) return vp_fail(error, VP_ERR_RANGE, -1, "knobs", "counts out of range; order is 1 or 2");
    for (i = 0; i < k->config_count * (size_t)k->knob_count; i++) {
        if (k->levels[i] < 0 || k->levels[i] >= k->level_counts[i % (size_t)k->knob_count])
            return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "knobs", "a level is outside 0..level_count - 1");
    }
    if (vp_impl_effect_columns(k, order) > VP_EFFECT_COLUMNS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "knobs", "over 1024 coefficients; use order 1 or fewer levels");
    if (samples < 2 || !values || !vp_impl_counts_fit(samples) || !vp_size_multiply(k->config_count, samples, &points)
        || points > SIZE_MAX / sizeof(double) || !vp_all_finite(values, points))
        return vp_fail(error, VP_ERR_RANGE, -1, "values", "needs 2 or more samples, all finite");
    return VP_OK;
}

VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order, double level, void *scratch,
                            size_t scratch_bytes, vp_effect *effects, double *shares, vp_error *error) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    vp_impl_effects e;
    vp_mean_interval interval;
    double quantile, step;
    size_t s, i;
    if (!effects || !vp_impl_share(level)) return vp_fail(error, VP_ERR_RANGE, -1, "effects", "no place for them, or a level outside 0..1");
    if (vp_impl_effects_check(knobs, values, sample_count, order, error) != VP_OK) return VP_ERR_RANGE;
    e.knobs = knobs;
    e.order = order;
    e.rows = knobs->config_count;
    e.columns = vp_impl_effect_columns(knobs, order);
    e.count = vp_effect_count(knobs, order);
    if (!vp_impl_effects_take(&e, &arena, NULL)) return vp_fail(error, VP_ERR_CAPACITY, -1, "effects", "scratch is too small");
    if (!vp_impl_design_factor(&e)) {
        return vp_fail(error, VP_ERR_MISMATCH, -1, "effects", order == 2 ? "these configurations cannot tell the interactions apart; use order 1"
                                                                         : "these configurations cannot tell the knobs' effects apart");
    }
    memset(e.mean, 0, e.count * sizeof(double));
    memset(e.squares, 0, e.count * sizeof(double));
    memset(e.means, 0, e.rows * sizeof(double));
    for (s = 0; s < sample_count; s++) { /* Welford's running mean and squares */
        for (i = 0; i < e.rows; i++) {
            e.vector[i] = values[i * sample_count + s];
            e.means[i] += e.vector[i];
        }
        vp_impl_design_solve(&e);
        vp_impl_effects_expand(&e, e.value, NULL);
        for (i = 0; i < e.count; i++) {
            step = e.value[i] - e.mean[i];
            e.mean[i] += step / (double)(s + 1);
            e.squares[i] += step * (e.value[i] - e.mean[i]);
        }
    }
    for (i = 0; i < e.rows; i++) e.means[i] /= (double)sample_count;
    quantile = vp_impl_quantile(sample_count, level);
    for (i = 0; i < e.count; i++) {
        if (vp_impl_mean_interval(sample_count, e.mean[i], e.squares[i], quantile, &interval) != VP_OK)
            return vp_fail(error, VP_ERR_RANGE, -1, "values", "too large to add up");
    }
    vp_impl_effects_expand(&e, e.value, effects);
    for (i = 0; i < e.count; i++) {
        vp_impl_mean_interval(sample_count, e.mean[i], e.squares[i], quantile, &interval);
        effects[i].estimate = e.mean[i];
        effects[i].low = interval.low;
        effects[i].high = interval.high;
        effects[i].p = interval.p;
    }
    if (shares) vp_impl_effects_shares(&e, shares);
    return VP_OK;
}

VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next) {
    const int32_t *own, *other;
    size_t c, found;
    int32_t i;
    if (!vp_impl_knobs_good(knobs, 1) || config >= knobs->config_count || knob < 0 || knob >= knobs->knob_count || !next) return VP_ERR_RANGE;
    own = knobs->levels + config * (size_t)knobs->knob_count;
    found = knobs->config_count;
    for (c = 0; c < knobs->config_count; c++) {
        other = knobs->levels + c * (size_t)knobs->knob_count;
        if (other[knob] <= own[knob]) continue;
        for (i = 0; i < knobs->knob_count && (i == knob || other[i] == own[i]); i++) {}
        if (i == knobs->knob_count && (found == knobs->config_count || other[knob] < knobs->levels[found * (size_t)knobs->knob_count + (size_t)knob]))
            found = c;
    }
    if (found == knobs->config_count) return VP_ERR_NOT_FOUND;
    *next = found;
    return VP_OK;
}

VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy, const double *second_latency,
                                 const double *second_accuracy, size_t sample_count, double level, vp_gain *gain) {
    vp_gain made;
    double together = 0.0, reach, l, a, half;
    size_t i;
    if (!first_latency || !first_accuracy || !gain) return VP_ERR_RANGE;
    if (vp_paired_t(first_latency, second_latency, sample_count, level, &made.latency) != VP_OK) return VP_ERR_RANGE;
    if (vp_paired_t(first_accuracy, second_accuracy, sample_count, level, &made.accuracy) != VP_OK) return VP_ERR_RANGE;
    l = made.latency.mean;
    a = made.accuracy.mean;
    for (i = 0; i < sample_count; i++) together += (second_latency[i] - first_latency[i] - l) * (second_accuracy[i] - first_accuracy[i] - a);
    together /= made.latency.degrees * (double)sample_count; /* covariance of the two means */
    reach = vp_impl_quantile(sample_count, level);
    reach *= reach;
    made.gain = l > 0.0 || l < 0.0 ? a / l : (double)NAN;
    made.low = -HUGE_VAL;
    made.high = HUGE_VAL;
    /* the ratios r for which a - r l is not significantly different from 0: a quadratic in r */
    half = l * l - reach * made.latency.error * made.latency.error;
    if (half > 0.0) {
        const double middle = a * l - reach * together, last = a * a - reach * made.accuracy.error * made.accuracy.error;
        const double root = middle * middle - half * last;
        made.low = (middle - sqrt(root > 0.0 ? root : 0.0)) / half;
        made.high = (middle + sqrt(root > 0.0 ? root : 0.0)) / half;
    }
    *gain = made;
    return VP_OK;
}

/* ---- regression
 * All fits go through a triangle: the R of the QR factorisation of the rows [sqrt(weight) x, sqrt(weight) y], made block by block, so that the
 * memory does not grow with the rows; triangles of groups of rows add up the same way, which makes leaving one group out cheap. */
enum {
    VP_IMPL_LINEAR_WIDTH = VP_LINEAR_COLUMNS_LIMIT + 1,
    VP_IMPL_LINEAR_BLOCK = 32,
    VP_IMPL_LINEAR_STRIDE = VP_IMPL_LINEAR_WIDTH + VP_IMPL_LINEAR_BLOCK
};
typedef struct vp_impl_gather {
    size_t width, held; /* columns and y; rows below the triangle */
    uint64_t rows;
    double a[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_STRIDE]; /* column-major: the triangle's rows first */
} vp_impl_gather;

static void vp_impl_gather_open(vp_impl_gather *g, size_t columns) {
    g->width = columns + 1;
    g->held = 0;
    g->rows = 0;
    memset(g->a, 0, sizeof g->a);
}

static void vp_impl_gather_close(vp_impl_gather *g) {
    const size_t rows = g->width + g->held;
    size_t i, j;
    for (j = 0; g->held && j < g->width; j++) {
        double *v = g->a + j * VP_IMPL_LINEAR_STRIDE;
        const double factor = vp_impl_reflection(v, rows, j);
        for (i = j + 1; i < g->width; i++) vp_impl_reflect(v, factor, rows, j, g->a + i * VP_IMPL_LINEAR_STRIDE);
        for (i = j + 1; i < rows; i++) v[i] = 0.0;
    }
    g->held = 0;
}

static void vp_impl_gather_row(vp_impl_gather *g, const double *x, double y, double weight) {
    const double root = sqrt(weight);
    const size_t row = g->width + g->held;
    size_t j;
    for (j = 0; j + 1 < g->width; j++) g->a[j * VP_IMPL_LINEAR_STRIDE + row] = root * x[j];
    g->a[j * VP_IMPL_LINEAR_STRIDE + row] = root * y;
    g->rows++;
    if (++g->held == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(g);
}

/* a triangle [width, width], column-major, as further rows */
static void vp_impl_gather_triangle(vp_impl_gather *g, const double *triangle) {
    size_t i, j;
    for (i = 0; i < g->width; i++) {
        for (j = 0; j < g->width; j++) g->a[j * VP_IMPL_LINEAR_STRIDE + g->width + g->held] = triangle[j * g->width + i];
        if (++g->held == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(g);
    }
}

static void vp_impl_gather_copy(vp_impl_gather *g, double *triangle) {
    size_t i, j;
    vp_impl_gather_close(g);
    for (j = 0; j < g->width; j++) for (i = 0; i < g->width; i++) triangle[j * g->width + i] = g->a[j * VP_IMPL_LINEAR_STRIDE + i];
}

static double vp_impl_length(const double *v, size_t count) {
    double largest = 0.0, sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) if (fabs(v[i]) > largest) largest = fabs(v[i]);
    for (i = 0; largest > 0.0 && i < count; i++) sum += (v[i] / largest) * (v[i] / largest);
    return largest * sqrt(sum);
}

/* a least-squares problem of some columns of a triangle, each scaled to length 1 */
typedef struct vp_impl_subset {
    size_t count, column[VP_LINEAR_COLUMNS_LIMIT];      /* which, ascending */
    double r[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH]; /* column-major, stride VP_IMPL_LINEAR_WIDTH; y behind the last column */
    double factor[VP_IMPL_LINEAR_WIDTH];
    double x[VP_LINEAR_COLUMNS_LIMIT];                  /* of the scaled columns */
    double rest;                                     /* length of the residual */
} vp_impl_subset;

/* less of a column than this outside the span of those before it is rounding */
#define VP_IMPL_LINEAR_DEPENDENT 1e-11

/* Solves for the columns with use[j]; one that depends on those before it is taken out of `use` (drop) or ends it.
 * returns: the dependent column when it ended, else width */
static size_t vp_impl_subset_solve(const double *triangle, size_t width, const double *length, unsigned char *use, int drop, vp_impl_subset *s) {
    size_t i, j, n = 0;
    for (j = 0; j < width; j++) {
        double *column = s->r + n * VP_IMPL_LINEAR_WIDTH;
        const double scale = j + 1 < width && length[j] > 0.0 ? length[j] : 1.0;
        if (j + 1 < width && !use[j]) continue;
        for (i = 0; i < width; i++) column[i] = triangle[j * width + i] / scale;
        for (i = 0; i < n; i++) vp_impl_reflect(s->r + i * VP_IMPL_LINEAR_WIDTH, s->factor[i], width, i, column);
        if (j + 1 == width) break;
        if (!(vp_impl_length(column + n, width - n) > VP_IMPL_LINEAR_DEPENDENT)) {
            if (!drop) return j;
            use[j] = 0;
            continue;
        }
        s->factor[n] = vp_impl_reflection(column, width, n);
        s->column[n++] = j;
    }
    s->count = n;
    s->rest = vp_impl_length(s->r + n * VP_IMPL_LINEAR_WIDTH + n, width - n);
    for (i = n; i-- > 0;) {
        s->x[i] = s->r[n * VP_IMPL_LINEAR_WIDTH + i];
        for (j = i + 1; j < n; j++) s->x[i] -= s->r[j * VP_IMPL_LINEAR_WIDTH + i] * s->x[j];
        s->x[i] /= s->r[i * VP_IMPL_LINEAR_WIDTH + i];
    }
    return width;
}

/* how much the residual of the solution x (all columns, scaled) falls when column j grows: column_j'(y - A x) */
static double vp_impl_gradient(const double *triangle, size_t width, const double *length, const double *x, size_t column) {
    double sum = 0.0;
    size_t i, j;
    for (i = 0; i < width; i++) {
        double rest = triangle[(width - 1) * width + i];
        for (j = 0; j + 1 < width; j++) if (x[j] < 0.0 || x[j] > 0.0) rest -= triangle[j * width + i] / length[j] * x[j];
        sum += triangle[column * width + i] / length[column] * rest;
    }
    return sum;
}

/* From x towards the solution in s as far as no signed coefficient becomes negative; those that reach 0 leave `use`. 1: s itself is allowed. */
static int vp_impl_signed_step(const vp_impl_subset *s, const unsigned char *nonnegative, unsigned char *use, double *x) {
    double part = 1.0;
    size_t i, first = s->count;
    for (i = 0; i < s->count; i++) {
        const double from = x[s->column[i]];
        if (!nonnegative[s->column[i]] || s->x[i] > 0.0) continue;
        if (first == s->count || from / (from - s->x[i]) < part) {
            part = from > 0.0 ? from / (from - s->x[i]) : 0.0;
            first = i;
        }
    }
    for (i = 0; i < s->count; i++) {
        const size_t j = s->column[i];
        x[j] = first == s->count ? s->x[i] : x[j] + part * (s->x[i] - x[j]);
        if (first < s->count && nonnegative[j] && (i == first || !(x[j] > 0.0))) {
            x[j] = 0.0;
            use[j] = 0;
        }
    }
    return first == s->count;
}

/* Lawson and Hanson's active set. `use`: in, the columns that may be used; out, those that are. 0: it did not settle. */
static int vp_impl_signed_solve(const double *triangle, size_t width, const double *length, const unsigned char *nonnegative, unsigned char *use,
                                vp_impl_subset *s) {
    unsigned char may[VP_LINEAR_COLUMNS_LIMIT], barred[VP_LINEAR_COLUMNS_LIMIT];
    double x[VP_LINEAR_COLUMNS_LIMIT], least;
    size_t j, best, round;
    memcpy(may, use, sizeof may);
    memset(barred, 0, sizeof barred);
    memset(x, 0, sizeof x);
    least = 1e-13 * vp_impl_length(triangle + (width - 1) * width, width); /* a gradient below this is rounding */
    for (j = 0; j + 1 < width; j++) use[j] = (unsigned char)(may[j] && !nonnegative[j]);
    for (round = 0; round < 64 * width; round++) {
        double most = least;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        while (!vp_impl_signed_step(s, nonnegative, use, x)) {
            if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        }
        for (j = 0, best = width; j + 1 < width; j++) {
            const double gradient = may[j] && !use[j] && !barred[j] ? vp_impl_gradient(triangle, width, length, x, j) : 0.0;
            if (gradient > most) {
                most = gradient;
                best = j;
            }
        }
        if (best == width) return 1;
        use[best] = 1;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        for (j = 0; s->column[j] != best; j++) {}
        if (s->x[j] > 0.0) memset(barred, 0, sizeof barred);
        else { /* its gradient was rounding after all: without this it would come and go for ever */
            use[best] = 0;
            barred[best] = 1;
        }
    }
    return 0;
}

/* ratio of the largest to the smallest singular value of the subset's R, by one-sided Jacobi rotations of its columns */
static double vp_impl_condition(const vp_impl_subset *s) {
    double a[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT], largest = 0.0, smallest = HUGE_VAL;
    const size_t n = s->count;
    size_t i, j, k, sweep, turned = 1;
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) a[j * n + i] = i <= j ? s->r[j * VP_IMPL_LINEAR_WIDTH + i] : 0.0;
    for (sweep = 0; turned && sweep < 60; sweep++) {
        turned = 0;
        for (i = 0; i + 1 < n; i++) {
            for (j = i + 1; j < n; j++) {
                double ii = 0.0, jj = 0.0, ij = 0.0, turn, c, held;
                for (k = 0; k < n; k++) {
                    ii += a[i * n + k] * a[i * n + k];
                    jj += a[j * n + k] * a[j * n + k];
                    ij += a[i * n + k] * a[j * n + k];
                }
                if (!(fabs(ij) > 1e-15 * sqrt(ii * jj))) continue;
                turned = 1;
                turn = (jj - ii) / (2.0 * ij);
                turn = (turn < 0.0 ? -1.0 : 1.0) / (fabs(turn) + sqrt(1.0 + turn * turn));
                c = 1.0 / sqrt(1.0 + turn * turn);
                for (k = 0; k < n; k++) {
                    held = a[i * n + k];
                    a[i * n + k] = c * (held - turn * a[j * n + k]);
                    a[j * n + k] = c * (a[j * n + k] + turn * held);
                }
            }
        }
    }
    for (j = 0; j < n; j++) {
        const double length = vp_impl_length(a + j * n, n);
        if (length > largest) largest = length;
        if (length < smallest) smallest = length;
    }
    return n ? largest / smallest : 1.0;
}

/* the fit that a solved subset means, in the units of the columns */
static void vp_impl_linear_fill(const vp_impl_subset *s, const double *length, const unsigned char *state, size_t columns, uint64_t rows,
                                vp_linear *fit) {
    size_t i, j, k;
    memset(fit, 0, sizeof *fit);
    fit->rows = rows;
    fit->columns = (int32_t)columns;
    fit->used_columns = (int32_t)s->count;
    fit->condition = vp_impl_condition(s);
    fit->degrees = (double)rows - (double)s->count;
    fit->sigma = fit->degrees > 0.0 ? s->rest / sqrt(fit->degrees) : (double)NAN;
    memcpy(fit->state, state, columns);
    for (k = 0; k < s->count; k++) { /* column k of R^-1 by back substitution; its rows scaled are the root's */
        double inverse[VP_LINEAR_COLUMNS_LIMIT];
        for (i = k + 1; i-- > 0;) {
            inverse[i] = i == k ? 1.0 : 0.0;
            for (j = i + 1; j <= k; j++) inverse[i] -= s->r[j * VP_IMPL_LINEAR_WIDTH + i] * inverse[j];
            inverse[i] /= s->r[i * VP_IMPL_LINEAR_WIDTH + i];
            fit->root[s->column[i] * columns + k] = inverse[i] / length[s->column[i]];
        }
    }
    for (k = 0; k < s->count; k++) {
        fit->coefficient[s->column[k]] = s->x[k] / length[s->column[k]];
        fit->error[s->column[k]] = fit->sigma * vp_impl_length(fit->root + s->column[k] * columns, columns);
    }
}

/* A triangle to a fit. */
static vp_result vp_impl_linear_solve(const double *triangle, size_t width, uint64_t rows, const unsigned char *nonnegative, int drop, vp_linear *fit,
                                   vp_error *error) {
    unsigned char use[VP_LINEAR_COLUMNS_LIMIT], state[VP_LINEAR_COLUMNS_LIMIT], sign[VP_LINEAR_COLUMNS_LIMIT];
    double length[VP_IMPL_LINEAR_WIDTH];
    vp_message m = {{0}, 0};
    vp_impl_subset s;
    size_t j, dependent;
    int signs = 0;
    memset(use, 0, sizeof use);
    memset(sign, 0, sizeof sign);
    memset(length, 0, sizeof length);
    for (j = 0; j < width; j++) {
        length[j] = vp_impl_length(triangle + j * width, width);
        if (!vp_impl_number(length[j]) || length[j] > 1e300) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "the values are too large to add up");
        if (j + 1 == width) break;
        use[j] = 1;
        sign[j] = (unsigned char)(nonnegative && nonnegative[j]);
        signs |= sign[j];
    }
    dependent = vp_impl_subset_solve(triangle, width, length, use, drop, &s);
    if (dependent != width) {
        vp_message_text(&m, "column ");
        vp_message_int(&m, (int64_t)dependent);
        vp_message_text(&m, rows < width - 1 ? ": there are fewer rows than columns"
                                                  : " is zero or depends on those before it in these rows; leave it out, or measure more kinds");
        return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", m.text);
    }
    for (j = 0; j + 1 < width; j++) state[j] = (unsigned char)(use[j] ? VP_LINEAR_USED : VP_LINEAR_DROPPED);
    if (signs && !vp_impl_signed_solve(triangle, width, length, sign, use, &s))
        return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", "the columns are too nearly dependent to find their signs");
    for (j = 0; j + 1 < width; j++) if (state[j] == VP_LINEAR_USED && !use[j]) state[j] = VP_LINEAR_AT_ZERO;
    vp_impl_linear_fill(&s, length, state, width - 1, rows, fit);
    return VP_OK;
}

VP_API vp_linear_options vp_linear_options_default(void) {
    vp_linear_options o;
    o.weights = NULL;
    o.nonnegative = NULL;
    o.drop_dependent = 0;
    return o;
}

static vp_result vp_impl_linear_check(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *o, vp_error *error) {
    size_t i, points;
    if (!x || !y || !o || !rows || columns < 1 || columns > VP_LINEAR_COLUMNS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows, and 1 to 24 columns");
    if (!vp_size_multiply(rows, columns, &points) || points > SIZE_MAX / sizeof(double) || !vp_all_finite(x, points)
        || !vp_all_finite(y, rows))
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "a value is not finite");
    for (i = 0; o->weights && i < rows; i++) {
        if (!(o->weights[i] > 0.0 && o->weights[i] < HUGE_VAL)) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a weight is not above 0");
    }
    return VP_OK;
}

VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *options, vp_linear *fit,
                                vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather g;
    size_t i;
    if (!fit) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "no place for the result");
    if (vp_impl_linear_check(x, y, rows, columns, options, error) != VP_OK) return VP_ERR_RANGE;
    vp_impl_gather_open(&g, columns);
    for (i = 0; i < rows; i++) vp_impl_gather_row(&g, x + i * columns, y[i], options->weights ? options->weights[i] : 1.0);
    vp_impl_gather_copy(&g, triangle);
    return vp_impl_linear_solve(triangle, columns + 1, (uint64_t)rows, options->nonnegative, options->drop_dependent, fit, error);
}

static int vp_impl_linear_good(const vp_linear *fit) {
    return fit && fit->columns >= 1 && fit->columns <= VP_LINEAR_COLUMNS_LIMIT;
}

VP_API double vp_linear_value(const vp_linear *fit, const double *x) {
    double sum = 0.0;
    int32_t j;
    if (!vp_impl_linear_good(fit) || !x) return (double)NAN;
    for (j = 0; j < fit->columns; j++) sum += fit->coefficient[j] * x[j];
    return sum;
}

VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level, vp_linear_range *range) {
    double spread = 0.0, t;
    int32_t i, j;
    if (!vp_impl_linear_good(fit) || !x || !(weight > 0.0 && weight < HUGE_VAL) || !vp_impl_share(level) || !range) return VP_ERR_RANGE;
    if (!vp_all_finite(x, (size_t)fit->columns)) return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    for (j = 0; j < fit->columns; j++) { /* x' B B' x */
        double sum = 0.0;
        for (i = 0; i < fit->columns; i++) sum += x[i] * fit->root[i * fit->columns + j];
        spread += sum * sum;
    }
    t = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->sigma;
    range->value = vp_linear_value(fit, x);
    range->mean_low = range->value - t * sqrt(spread);
    range->mean_high = range->value + t * sqrt(spread);
    range->low = range->value - t * sqrt(spread + 1.0 / weight);
    range->high = range->value + t * sqrt(spread + 1.0 / weight);
    return VP_OK;
}

VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high) {
    double reach;
    if (!vp_impl_linear_good(fit) || column < 0 || column >= fit->columns || !vp_impl_share(level) || !low || !high) return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    reach = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->error[column];
    *low = fit->coefficient[column] - reach;
    *high = fit->coefficient[column] + reach;
    return VP_OK;
}

VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count, double *scratch, vp_linear_errors *errors) {
    double mean, squares = 0.0, spread = 0.0, n = (double)count;
    vp_linear_errors made;
    size_t i;
    if (!measured || !predicted || !count || !scratch || !errors) return VP_ERR_RANGE;
    if (!vp_all_finite(measured, count) || !vp_all_finite(predicted, count)) return VP_ERR_RANGE;
    memset(&made, 0, sizeof made);
    mean = vp_statistics_mean(measured, count);
    for (i = 0; i < count; i++) {
        const double rest = predicted[i] - measured[i];
        made.mae += fabs(rest);
        made.bias += rest;
        made.mape += fabs(rest) / fabs(measured[i]); /* measured 0: infinite or NaN */
        squares += rest * rest;
        spread += (measured[i] - mean) * (measured[i] - mean);
        scratch[i] = fabs(rest);
    }
    vp_sort_double(scratch, count);
    made.count = count;
    made.r2 = scratch[0] >= 0.0 && spread > 0.0 ? 1.0 - squares / spread : (double)NAN;
    made.mae /= n;
    made.bias /= n;
    made.mape = vp_impl_number(made.mape) ? made.mape / n : (double)NAN;
    made.rmse = sqrt(squares / n);
    made.p95_absolute = vp_statistics_percentile(scratch, count, 95.0);
    made.max_absolute = scratch[count - 1];
    if (!vp_impl_number(made.rmse)) return VP_ERR_RANGE;
    *errors = made;
    return VP_OK;
}

VP_API size_t vp_linear_leave_out_scratch_bytes(size_t columns, size_t group_count) {
    size_t bytes = 64;
    if (columns < 1 || columns > VP_LINEAR_COLUMNS_LIMIT) return SIZE_MAX;
    vp_impl_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, columns * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, sizeof(uint64_t));
    return bytes;
}

/* what leaving out works on: a triangle, a triangle of all groups behind it, coefficients and a row count for each group */
typedef struct vp_impl_leave_out {
    double *own, *behind, *coefficient; /* [groups, width, width] twice, [groups, columns] */
    uint64_t *rows;                     /* [groups] */
    size_t width, groups;
} vp_impl_leave_out;

static int vp_impl_leave_out_take(vp_impl_leave_out *l, size_t columns, size_t groups, void *scratch, size_t scratch_bytes) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    const size_t square = (columns + 1) * (columns + 1) * sizeof(double);
    l->width = columns + 1;
    l->groups = groups;
    l->own = (double *)vp_arena_take(&arena, groups, square);
    l->behind = (double *)vp_arena_take(&arena, groups, square);
    l->coefficient = (double *)vp_arena_take(&arena, groups, columns * sizeof(double));
    l->rows = (uint64_t *)vp_arena_take(&arena, groups, sizeof(uint64_t));
    if (!l->own || !l->behind || !l->coefficient || !l->rows) return 0;
    memset(l->own, 0, groups * square);
    memset(l->rows, 0, groups * sizeof(uint64_t));
    return 1;
}

/* one more row of a group: a rotation of it into the group's triangle, element by element, so that rows may come in any order of groups */
static void vp_impl_leave_out_row(vp_impl_leave_out *l, size_t group, const double *x, double y, double weight) {
    double *t = l->own + group * l->width * l->width, row[VP_IMPL_LINEAR_WIDTH];
    const double root = sqrt(weight);
    size_t i, j;
    for (j = 0; j + 1 < l->width; j++) row[j] = root * x[j];
    row[j] = root * y;
    l->rows[group]++;
    for (i = 0; i < l->width; i++) {
        double c, s, length;
        if (!(row[i] < 0.0 || row[i] > 0.0)) continue;
        length = hypot(t[i * l->width + i], row[i]);
        c = t[i * l->width + i] / length;
        s = row[i] / length;
        for (j = i; j < l->width; j++) {
            const double above = t[j * l->width + i];
            t[j * l->width + i] = c * above + s * row[j];
            row[j] = c * row[j] - s * above;
        }
    }
}

/* A fit for each group that has rows, of all the other groups: what lies before it was added up on the way, what lies behind it beforehand. */
static vp_result vp_impl_leave_out_solve(vp_impl_leave_out *l, const unsigned char *nonnegative, int drop, vp_error *error) {
    const size_t square = l->width * l->width, columns = l->width - 1;
    double before[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], others[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather g;
    vp_linear fit;
    uint64_t all = 0;
    size_t k;
    for (k = l->groups; k-- > 0;) {
        all += l->rows[k];
        if (k + 1 == l->groups) {
            memset(l->behind + k * square, 0, square * sizeof(double));
            continue;
        }
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, l->behind + (k + 1) * square);
        vp_impl_gather_triangle(&g, l->own + (k + 1) * square);
        vp_impl_gather_copy(&g, l->behind + k * square);
    }
    memset(before, 0, sizeof before);
    for (k = 0; k < l->groups; k++) {
        vp_result result;
        if (!l->rows[k]) continue;
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, before);
        vp_impl_gather_triangle(&g, l->behind + k * square);
        vp_impl_gather_copy(&g, others);
        result = vp_impl_linear_solve(others, l->width, all - l->rows[k], nonnegative, drop, &fit, error);
        if (result != VP_OK) return result;
        memcpy(l->coefficient + k * columns, fit.coefficient, columns * sizeof(double));
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, before);
        vp_impl_gather_triangle(&g, l->own + k * square);
        vp_impl_gather_copy(&g, before);
    }
    return VP_OK;
}

static double vp_impl_leave_out_value(const vp_impl_leave_out *l, size_t group, const double *x) {
    const double *coefficient = l->coefficient + group * (l->width - 1);
    double sum = 0.0;
    size_t j;
    for (j = 0; j + 1 < l->width; j++) sum += coefficient[j] * x[j];
    return sum;
}

VP_API vp_result vp_linear_leave_out(const double *x, const double *y, const uint32_t *groups, size_t rows, size_t columns, size_t group_count,
                                  const vp_linear_options *options, void *scratch, size_t scratch_bytes, double *predicted, vp_error *error) {
    vp_impl_leave_out l;
    vp_result result;
    size_t i;
    if (!groups || !predicted) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "no groups, or no place for the result");
    if (vp_impl_linear_check(x, y, rows, columns, options, error) != VP_OK) return VP_ERR_RANGE;
    for (i = 0; i < rows; i++) {
        if (groups[i] >= group_count) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a group is not below group_count");
    }
    if (!vp_impl_leave_out_take(&l, columns, group_count, scratch, scratch_bytes))
        return vp_fail(error, VP_ERR_CAPACITY, -1, "fit", "scratch is too small");
    for (i = 0; i < rows; i++) vp_impl_leave_out_row(&l, groups[i], x + i * columns, y[i], options->weights ? options->weights[i] : 1.0);
    result = vp_impl_leave_out_solve(&l, options->nonnegative, options->drop_dependent, error);
    for (i = 0; result == VP_OK && i < rows; i++) predicted[i] = vp_impl_leave_out_value(&l, groups[i], x + i * columns);
    return result;
}

/* ---- what a request costs */
VP_API const char *vp_latency_stage_name(vp_latency_stage stage) {
    switch ((int)stage) {
#define VP_IMPL_LATENCY_CASE(name, text) case VP_LATENCY_##name: return text;
    VP_LATENCY_STAGES(VP_IMPL_LATENCY_CASE)
#undef VP_IMPL_LATENCY_CASE
    default: return NULL;
    }
}

VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column) {
    static const char *const physical[VP_LATENCY_STAGE_COUNT][VP_LATENCY_COLUMNS_LIMIT] = {
        {"1", "views", "vision_tokens", NULL, NULL, NULL, NULL},
        {"1", "sequence", "blocks", "blocks*sequence", "blocks*sequence*top_k", "blocks*sequence^2", "blocks*experts_read"},
        {"steps", "steps*blocks", "steps*blocks*top_k", "blocks*positions_read", NULL, NULL, NULL},
        {"1", "views", "sequence", NULL, NULL, NULL, NULL},
    };
    static const char *const seed[VP_LATENCY_COLUMNS_LIMIT] = {"1", "vision_tokens", "text_tokens", "tier_index", "top_k", "num_active_blocks",
                                                               "output_tokens"};
    if ((int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || column < 0 || column >= VP_LATENCY_COLUMNS_LIMIT) return NULL;
    if (features == VP_LATENCY_PHYSICAL) return physical[stage][column];
    if (features == VP_LATENCY_SEED) return seed[column];
    return features == VP_LATENCY_MEAN && column == 0 ? "1" : NULL;
}

static int vp_impl_latency_good(const vp_latency_request *r) {
    return r->views >= 0 && r->vision_tokens >= 0 && r->text_tokens >= 0 && r->sequence >= 1 && r->output_tokens >= 1 && r->tier_index >= 0
        && r->top_k >= 1 && r->top_k <= r->expert_count && r->active_blocks >= 1;
}

static int vp_impl_latency_runs(vp_latency_stage stage, const vp_latency_request *r) {
    return stage == VP_LATENCY_VISION ? r->views > 0 : stage != VP_LATENCY_DECODE || r->output_tokens > 1;
}

static int32_t vp_impl_latency_physical(vp_latency_stage stage, const vp_latency_request *r, double *x) {
    const double n = (double)r->sequence, blocks = (double)r->active_blocks, k = (double)r->top_k, steps = (double)r->output_tokens - 1.0;
    switch (stage) {
    case VP_LATENCY_VISION:
    case VP_LATENCY_OTHER:
        x[0] = 1.0;
        x[1] = (double)r->views;
        x[2] = stage == VP_LATENCY_VISION ? (double)r->vision_tokens : n;
        return 3;
    case VP_LATENCY_PREFILL:
        x[0] = 1.0;
        x[1] = n;
        x[2] = blocks;
        x[3] = blocks * n;
        x[4] = blocks * n * k;
        x[5] = blocks * n * n;
        /* E (1 - (1 - k / E)^n), written for many experts and few tokens too */
        x[6] = blocks * (double)r->expert_count * (r->top_k < r->expert_count ? -expm1(n * log1p(-k / (double)r->expert_count)) : 1.0);
        return 7;
    default:
        x[0] = steps;
        x[1] = steps * blocks;
        x[2] = steps * blocks * k;
        x[3] = blocks * (steps * n + 0.5 * steps * (steps - 1.0));
        return 4;
    }
}

/* the row of a request that was checked */
static int32_t vp_impl_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *r, double *x) {
    const int runs = vp_impl_latency_runs(stage, r);
    int32_t count = 1, i;
    x[0] = 1.0;
    if (features == VP_LATENCY_PHYSICAL) {
        count = vp_impl_latency_physical(stage, r, x);
    } else if (features == VP_LATENCY_SEED) {
        x[1] = (double)r->vision_tokens;
        x[2] = (double)r->text_tokens;
        x[3] = (double)r->tier_index;
        x[4] = (double)r->top_k;
        x[5] = (double)r->active_blocks;
        x[6] = (double)r->output_tokens;
        count = 7;
    }
    for (i = 0; !runs && i < count; i++) x[i] = 0.0;
    return count;
}

static int vp_impl_latency_kind(vp_latency_features features) {
    return features == VP_LATENCY_PHYSICAL || features == VP_LATENCY_SEED || features == VP_LATENCY_MEAN;
}

VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double *x,
                                int32_t *columns) {
    if (!request || !x || !columns || !vp_impl_latency_kind(features) || (int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT) return VP_ERR_RANGE;
    if (!vp_impl_latency_good(request)) return VP_ERR_RANGE;
    *columns = vp_impl_latency_row(features, stage, request, x);
    return VP_OK;
}

/* Is row i of a stage one to learn from? 1 and its weight; 0: no; -1: the row is wrong, and the error says why. */
static int vp_impl_latency_use(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double measured, size_t row,
                               double *weight, vp_error *error) {
    if (!vp_impl_latency_good(request)) {
        vp_fail(error, VP_ERR_RANGE, (int64_t)row, "request", "a count is out of range");
        return -1;
    }
    if (measured != measured || !vp_impl_latency_runs(stage, request)) return 0;
    if (!vp_impl_number(measured) || (features == VP_LATENCY_PHYSICAL && !(measured > 1e-100 && measured < 1e100))) {
        vp_fail(error, VP_ERR_RANGE, (int64_t)row, vp_latency_stage_name(stage), "a measured latency is not above 0");
        return -1;
    }
    *weight = features == VP_LATENCY_PHYSICAL ? 1.0 / (measured * measured) : 1.0;
    return 1;
}

static const unsigned char *vp_impl_latency_signs(vp_latency_features features) {
    static const unsigned char all[VP_LATENCY_COLUMNS_LIMIT] = {1, 1, 1, 1, 1, 1, 1};
    return features == VP_LATENCY_PHYSICAL ? all : NULL;
}

/* one stage; `stride` doubles from a measured value to the next row's */
static vp_result vp_impl_latency_fit_stage(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                           const double *measured, size_t stride, size_t rows, vp_linear *fit, unsigned char *fitted,
                                           vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], x[VP_LATENCY_COLUMNS_LIMIT], weight = 1.0;
    vp_impl_gather g;
    vp_latency_request any;
    size_t i;
    memset(&any, 0, sizeof any);
    vp_impl_gather_open(&g, (size_t)vp_impl_latency_row(features, stage, &any, x));
    for (i = 0; i < rows; i++) {
        const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i * stride], i, &weight, error);
        if (use < 0) return VP_ERR_RANGE;
        if (!use) continue;
        vp_impl_latency_row(features, stage, &requests[i], x);
        vp_impl_gather_row(&g, x, measured[i * stride], weight);
    }
    *fitted = g.rows > 0;
    if (!g.rows) return VP_OK;
    vp_impl_gather_copy(&g, triangle);
    return vp_impl_linear_solve(triangle, g.width, g.rows, vp_impl_latency_signs(features), 1, fit, error);
}

VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests, const double *measured, size_t rows,
                                vp_latency_model *model, vp_error *error) {
    vp_latency_model made;
    int32_t s, any = 0;
    if (!requests || !measured || !rows || !model || !vp_impl_latency_kind(features) || rows > SIZE_MAX / sizeof *requests)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows and a kind of features");
    memset(&made, 0, sizeof made);
    made.features = features;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_result result = vp_impl_latency_fit_stage(features, (vp_latency_stage)s, requests, measured + s, VP_LATENCY_STAGE_COUNT, rows,
                                                           &made.fit[s], &made.fitted[s], error);
        if (result != VP_OK) return result;
        made.affine[s].slope = 1.0;
        made.affine[s].condition = 1.0;
        any |= made.fitted[s];
    }
    if (!any) return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", "no stage has a measured row");
    *model = made;
    return VP_OK;
}

static int vp_impl_latency_model_good(const vp_latency_model *m) {
    int32_t s;
    if (!m || !vp_impl_latency_kind(m->features)) return 0;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (m->fitted[s] && (m->fit[s].columns < 1 || m->fit[s].columns > VP_LATENCY_COLUMNS_LIMIT)) return 0;
    }
    return 1;
}

VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request, vp_latency_prediction *prediction) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, sum;
    int32_t s, j, columns;
    if (!vp_impl_latency_model_good(model) || !request || !prediction || !vp_impl_latency_good(request)) return VP_ERR_RANGE;
    prediction->total = 0.0;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (!model->fitted[s]) {
            prediction->stage[s] = (double)NAN;
            continue;
        }
        prediction->stage[s] = 0.0;
        if (!vp_impl_latency_runs((vp_latency_stage)s, request)) continue;
        columns = vp_impl_latency_row(model->features, (vp_latency_stage)s, request, x);
        if (columns > model->fit[s].columns) columns = model->fit[s].columns;
        for (sum = 0.0, j = 0; j < columns; j++) sum += model->fit[s].coefficient[j] * x[j];
        prediction->stage[s] = model->affine[s].slope * sum + model->affine[s].offset;
        prediction->total += prediction->stage[s];
    }
    return VP_OK;
}

VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage, const vp_latency_request *request, double level,
                                     vp_linear_range *range) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, value, held, weight;
    vp_linear_range made;
    const vp_affine *line;
    vp_result result;
    if (!vp_impl_latency_model_good(model) || (int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || !request || !range) return VP_ERR_RANGE;
    if (!vp_impl_latency_good(request) || !vp_impl_latency_runs(stage, request)) return VP_ERR_RANGE;
    if (!model->fitted[stage]) return VP_ERR_MISMATCH;
    vp_impl_latency_row(model->features, stage, request, x);
    value = vp_linear_value(&model->fit[stage], x);
    weight = model->features == VP_LATENCY_PHYSICAL ? 1.0 / (value * value) : 1.0; /* what is not measured yet weighs as it is predicted */
    result = vp_linear_interval(&model->fit[stage], x, weight, level, &made);
    if (result != VP_OK) return result;
    line = &model->affine[stage];
    made.value = line->slope * made.value + line->offset;
    made.mean_low = line->slope * made.mean_low + line->offset;
    made.mean_high = line->slope * made.mean_high + line->offset;
    made.low = line->slope * made.low + line->offset;
    made.high = line->slope * made.high + line->offset;
    if (line->slope < 0.0) { /* a falling line turns them round */
        held = made.low;
        made.low = made.high;
        made.high = held;
        held = made.mean_low;
        made.mean_low = made.mean_high;
        made.mean_high = held;
    }
    *range = made;
    return VP_OK;
}

VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count) {
    return vp_linear_leave_out_scratch_bytes(VP_LATENCY_COLUMNS_LIMIT, group_count);
}

VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                      const double *measured, const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error) {
    double x[VP_LATENCY_COLUMNS_LIMIT], weight = 1.0;
    vp_latency_request any;
    vp_impl_leave_out l;
    vp_result result;
    size_t i, columns;
    int pass;
    memset(&any, 0, sizeof any);
    if (!requests || !measured || !groups || !rows || !predicted || !vp_impl_latency_kind(features) || (int)stage < 0
        || (int)stage >= VP_LATENCY_STAGE_COUNT)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows, groups, a stage and a kind of features");
    columns = (size_t)vp_impl_latency_row(features, stage, &any, x);
    for (i = 0; i < rows; i++) {
        if (groups[i] >= group_count) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a group is not below group_count");
    }
    if (!vp_impl_leave_out_take(&l, columns, group_count, scratch, scratch_bytes))
        return vp_fail(error, VP_ERR_CAPACITY, -1, "fit", "scratch is too small");
    for (pass = 0; pass < 2; pass++) { /* 0: learn, 1: predict */
        for (i = 0; i < rows; i++) {
            const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i], i, &weight, error);
            if (use < 0) return VP_ERR_RANGE;
            if (use) vp_impl_latency_row(features, stage, &requests[i], x);
            if (pass) predicted[i] = use ? vp_impl_leave_out_value(&l, groups[i], x) : (double)NAN;
            else if (use) vp_impl_leave_out_row(&l, groups[i], x, measured[i], weight);
        }
        result = pass ? VP_OK : vp_impl_leave_out_solve(&l, vp_impl_latency_signs(features), 1, error);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}

/* ---- recalibration, guardrails */
VP_API vp_result vp_affine_fit(const double *predicted, const double *measured, size_t count, vp_affine *affine) {
    double x = 0.0, y = 0.0, xx = 0.0, xy = 0.0, n = (double)count, dx, dy, spread, cosine;
    vp_affine made;
    size_t i;
    if (!predicted || !measured || !affine || !vp_all_finite(predicted, count) || !vp_all_finite(measured, count)) return VP_ERR_RANGE;
    if (count < 2) return VP_ERR_MISMATCH;
    for (i = 1; i < count; i++) { /* means of the differences to the first point */
        x += predicted[i] - predicted[0];
        y += measured[i] - measured[0];
    }
    x /= n;
    y /= n;
    for (i = 0; i < count; i++) {
        dx = predicted[i] - predicted[0] - x;
        dy = measured[i] - measured[0] - y;
        xx += dx * dx;
        xy += dx * dy;
    }
    if (!(xx > 0.0)) return VP_ERR_MISMATCH;
    made.slope = xy / xx;
    made.offset = (measured[0] + y) - made.slope * (predicted[0] + x);
    spread = sqrt(xx / n);
    cosine = fabs(predicted[0] + x) / hypot(predicted[0] + x, spread); /* of the angle between the columns; the two singular values are 1 -+ it */
    made.condition = (1.0 + cosine) * hypot(predicted[0] + x, spread) / spread;
    made.ill_conditioned = !(made.condition <= VP_AFFINE_CONDITION_LIMIT);
    made.count = count;
    if (!vp_impl_number(made.slope) || !vp_impl_number(made.offset)) return VP_ERR_RANGE;
    *affine = made;
    return VP_OK;
}

VP_API double vp_affine_apply(const vp_affine *affine, double predicted) {
    return affine ? affine->slope * predicted + affine->offset : (double)NAN;
}

VP_API vp_result vp_latency_recalibrate(vp_latency_model *model, const vp_latency_request *requests, const double *measured, size_t rows, int force,
                                        double *scratch, vp_error *error) {
    vp_affine line[VP_LATENCY_STAGE_COUNT];
    double weight = 1.0, x[VP_LATENCY_COLUMNS_LIMIT] = {0.0};
    vp_result result;
    size_t i, n;
    int32_t s;
    if (!vp_impl_latency_model_good(model) || !requests || !measured || !rows || !scratch)
        return vp_fail(error, VP_ERR_RANGE, -1, "recalibration", "needs a model and rows");
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_latency_stage stage = (vp_latency_stage)s;
        line[s] = model->affine[s];
        for (i = 0, n = 0; model->fitted[s] && i < rows; i++) {
            const double value = measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s];
            const int use = vp_impl_latency_use(model->features, stage, &requests[i], value, i, &weight, error);
            if (use < 0) return VP_ERR_RANGE;
            if (!use) continue;
            vp_impl_latency_row(model->features, stage, &requests[i], x);
            scratch[n] = vp_linear_value(&model->fit[s], x);
            scratch[rows + n++] = value;
        }
        if (!n) continue;
        result = vp_affine_fit(scratch, scratch + rows, n, &line[s]);
        if (result != VP_OK) {
            return vp_fail(error, result, -1, vp_latency_stage_name(stage),
                           "these measurements give no line: measure two or more requests of different sizes");
        }
        if (line[s].ill_conditioned && !force) {
            return vp_fail(error, VP_ERR_MISMATCH, -1, vp_latency_stage_name(stage),
                           "the measured requests are almost the same size, so that the line is worthless for others: measure different sizes");
        }
    }
    memcpy(model->affine, line, sizeof line);
    return VP_OK;
}

VP_API size_t vp_affine_curve_scratch_bytes(size_t count, size_t draws) {
    size_t bytes = 64;
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    return bytes;
}

/* the first `points` places of order become a random choice; the others follow */
static void vp_impl_draw_first(vp_random *random, uint32_t *order, size_t count, size_t points) {
    size_t i;
    for (i = 0; i < points; i++) {
        const size_t other = i + (size_t)vp_random_below(random, (uint64_t)(count - 1 - i));
        const uint32_t held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}

VP_API vp_result vp_affine_learning(const double *predicted, const double *measured, size_t count, size_t points, size_t draws, uint32_t seed,
                                    void *scratch, size_t scratch_bytes, vp_affine_curve *curve) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    double *x, *y, *errors, sum;
    vp_affine_curve made;
    vp_random random;
    uint32_t *order;
    vp_affine line;
    size_t i, d;
    if (!predicted || !measured || !curve || count < 3 || points < 2 || points >= count || draws < 1 || draws > 100000) return VP_ERR_RANGE;
    if (!vp_impl_counts_fit(count) || !vp_all_finite(predicted, count) || !vp_all_finite(measured, count)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!(measured[i] < 0.0 || measured[i] > 0.0)) return VP_ERR_RANGE;
    x = (double *)vp_arena_take(&arena, count, sizeof(double));
    y = (double *)vp_arena_take(&arena, count, sizeof(double));
    order = (uint32_t *)vp_arena_take(&arena, count, sizeof(uint32_t));
    errors = (double *)vp_arena_take(&arena, draws, sizeof(double));
    if (!x || !y || !order || !errors) return VP_ERR_CAPACITY;
    memset(&made, 0, sizeof made);
    made.points = points;
    for (i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        made.before += fabs((predicted[i] - measured[i]) / measured[i]) / (double)count;
    }
    vp_random_seed(&random, seed);
    for (d = 0; d < draws; d++) {
        vp_impl_draw_first(&random, order, count, points);
        for (i = 0; i < points; i++) {
            x[i] = predicted[order[i]];
            y[i] = measured[order[i]];
        }
        if (vp_affine_fit(x, y, points, &line) != VP_OK || line.ill_conditioned) {
            made.refused++;
            continue;
        }
        for (sum = 0.0, i = points; i < count; i++)
            sum += fabs((vp_affine_apply(&line, predicted[order[i]]) - measured[order[i]]) / measured[order[i]]);
        errors[made.draws++] = sum / (double)(count - points);
    }
    if (!made.draws) return VP_ERR_MISMATCH;
    made.mean = vp_statistics_mean(errors, made.draws);
    vp_sort_double(errors, made.draws);
    made.low = vp_statistics_percentile(errors, made.draws, 5.0);
    made.high = vp_statistics_percentile(errors, made.draws, 95.0);
    *curve = made;
    return VP_OK;
}

VP_API vp_result vp_guardrail_compute(const double *predicted, const double *measured, size_t count, double budget, double safety, double tolerance,
                                      vp_guardrail *guardrail) {
    vp_guardrail made;
    size_t i;
    if (!predicted || !measured || !guardrail || !count || !vp_impl_number(budget) || !(safety > 0.0 && safety < HUGE_VAL)
        || !(tolerance >= 1.0 && tolerance < HUGE_VAL) || !vp_all_finite(predicted, count) || !vp_all_finite(measured, count))
        return VP_ERR_RANGE;
    memset(&made, 0, sizeof made);
    made.budget = budget;
    made.count = count;
    for (i = 0; i < count; i++) {
        const int accepted = predicted[i] * safety <= budget, over = measured[i] > budget;
        made.accepted += (size_t)accepted;
        made.over_budget += (size_t)over;
        made.violations += accepted && measured[i] > tolerance * budget;
        made.false_accepts += accepted && over;
        made.false_rejects += !accepted && !over;
    }
    made.violation_rate = made.accepted ? (double)made.violations / (double)made.accepted : (double)NAN;
    made.false_accept_rate = made.over_budget ? (double)made.false_accepts / (double)made.over_budget : (double)NAN;
    made.false_reject_rate = count > made.over_budget ? (double)made.false_rejects / (double)(count - made.over_budget) : (double)NAN;
    *guardrail = made;
    return VP_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
