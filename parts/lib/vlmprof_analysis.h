/* vlmprof_analysis.h - v0.2.0 - tests and verdicts, Pareto fronts, coupling of knobs - MIT licence
 *
 * Analyses measurements: Pareto fronts to choose a configuration, coupling of knobs, verdicts on whether a change made
 * the model slower. Latency may be in any unit; lower is better. For accuracy, higher is better. Configurations,
 * samples and rows are numbered from 0. Index lists are uint32_t, and a count above 2^32 - 1 is VP_ERR_RANGE. Values
 * must be finite. Intervals are two-sided at `level` (0.95). `scratch` needs vp_..._scratch_bytes(...) bytes (SIZE_MAX
 * if that overflows), otherwise VP_ERR_CAPACITY.
 * numeric: double, additions in a fixed order: the same input gives the same bits
 * memory:  only the caller's, and under 4 KB of stack unless a function's comment states more
 * threads: reentrant */
#ifndef VLMPROF_ANALYSIS_H
#define VLMPROF_ANALYSIS_H
#include "vlmprof.h"

VP_EXTERN_C_BEGIN

/* ---- distributions. NaN input, or a parameter out of range, returns NaN. The binomial's relative error is below
 * 1e-12 + 3e-16 * count */
/* P(Z > z); relative error below 1e-13 where it does not underflow */
VP_API double vp_normal_tail(double z);
/* z with P(Z <= z) = probability, 0 < probability < 1 (Wichura, AS 241) */
VP_API double vp_normal_quantile(double probability);
/* P(T > t) of Student's t; relative error 1e-11 for up to 10^6 degrees, 1e-7 for up to 10^9 */
VP_API double vp_student_tail(double t, double degrees);
/* P(X <= successes), X binomial(count, 1/2), count < 2^53 */
VP_API double vp_binomial_half(uint64_t successes, uint64_t count);

/* ---- tests and intervals */
/* Distribution-free interval of the median by order statistics.
 * out:     low_rank, high_rank  from 1: the interval is [x(low_rank), x(high_rank)] of the sorted values
 *          coverage             exact coverage probability for continuous values
 * returns: VP_OK; VP_ERR_MISMATCH: too few values for this level; VP_ERR_RANGE: count 0 or over 2^53, level outside
 *          0..1
 * rule:    the largest low_rank with P(X <= low_rank - 1) <= (1 - level) / 2, X binomial(count, 1/2); high_rank =
 * count + 1 - low_rank */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank,
                                    double *coverage);
/* McNemar's exact test of paired right/wrong answers: two-sided p = min(1, 2 P(X <= min)), X binomial(sum, 1/2); 1 if
 * both counts are 0.
 * in:      counts of samples that only one side answered correctly. Their sum must be below 2^53, otherwise NaN */
VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct);

/* a mean of differences with Student's interval */
typedef struct vp_mean_interval {
    size_t count;
    double mean, error; /* error: standard error of the mean (n - 1) */
    double low, high;
    double t, degrees, p; /* test of "the mean is 0", two-sided; if all differences are equal, p is 1 if they are 0,
                             * else 0 */
} vp_mean_interval;
/* Paired t test of y - x, or of y if x is NULL.
 * returns: VP_OK; VP_ERR_RANGE: fewer than 2 values, a value that is not finite or too large, level outside 0..1 */
VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval);

/* The smallest differences between two configurations that a two-sided test at 5 % detects with power 0.8. NaN if there
 * are too few values. */
typedef struct vp_resolution {
    double accuracy; /* absolute difference of 0/1 scores, by McNemar's test over the same questions */
    /* differences of a latency, as shares of it, with `count` separate measurements of each configuration; pairs over
     * the same samples detect smaller ones */
    double mean, p50;
} vp_resolution;
/* The differences that a sample size can resolve.
 * in:      discordance  0..1  share of the questions that only one side answers correctly; 0.5: both guess; 1: the
 *                       worst case
 *          variation    >= 0  coefficient of variation (standard deviation / mean) of the latency
 * returns: VP_OK; VP_ERR_RANGE: a share outside its range
 * rule:    accuracy: the d with sqrt(count) d = z(0.975) sqrt(discordance) + z(0.8) sqrt(discordance - d^2); NaN for
 *          fewer than 10 discordant questions. mean: (t(0.975) + t(0.8)) variation sqrt(2 / count), 2 count - 2
 *          degrees; p50: sqrt(pi / 2) times that, as for normal values
 * source:  Connor, Sample size for testing differences in proportions for the paired-sample design (Biometrics 43,
 *          1987) */
VP_API vp_result vp_statistics_resolution(size_t count, double discordance, double variation,
                                          vp_resolution *resolution);

/* ---- intervals of accuracies: valid for few samples and even if all answers agree. Their width is never 0, unless the
 * level is so low that it rounds to 0 Wilson's score interval of one rate.
 * in:      successes   0..count, whole; count  > 0, below 2^53
 * out:     low, high   within 0..1
 * returns: VP_OK; VP_ERR_RANGE
 * source:  E. B. Wilson, JASA 22 (1927) */
VP_API vp_result vp_rate_interval(uint64_t successes, uint64_t count, double level, double *low, double *high);
/* Tango's score interval of the difference of two paired rates, second - first.
 * in:      only_first, only_second   samples that only one side answered correctly; count  all samples, below 2^53
 * out:     low, high                 within -1..1; swapping the sides swaps and negates them exactly
 * returns: VP_OK; VP_ERR_RANGE: more discordant samples than samples, level outside 0..1
 * rule:    the differences d with |T(d)| <= z, where T is the score statistic with the discordant rate fitted under d.
 *          Without discordant samples, the interval is +-z^2 / (count + z^2)
 * source:  T. Tango, Statistics in Medicine 17 (1998) 891-908. tests/report/test_intervals.c compares it with
 *          Newcombe's method 10 and the bounded mean below, over 1 to 50 samples; it contains the numbers and the
 *          reason for the choice
 * numeric: bisection to the last bit of double */
VP_API vp_result vp_rate_difference(uint64_t only_first, uint64_t only_second, uint64_t count, double level,
                                    double *low, double *high);
/* Two-sided p of "the difference is `difference`", from the test that vp_rate_difference inverts. NaN if `difference`
 * is outside -1..1 or counts are out of range. */
VP_API double vp_rate_difference_p(uint64_t only_first, uint64_t only_second, uint64_t count, double difference);

/* a mean with its interval; p: of "the mean is 0", two-sided, below 1 - level if and only if the interval excludes 0 */
typedef struct vp_bounded_interval { size_t count; double mean, low, high, p; } vp_bounded_interval;
VP_API size_t vp_bounded_scratch_bytes(size_t count);
/* Gaffke's interval for the mean of values in a known range, for any distribution.
 * in:      x, y                  double [count], count >= 1; the mean of y - x, or of y if x is NULL
 *          range_low, range_high the range of each difference (of y if x is NULL)
 * returns: VP_OK; VP_ERR_RANGE: a value outside the range or not finite, level outside 0..1; VP_ERR_CAPACITY
 * rule:    high = the quantile at (1 + level) / 2 of sum(w_i value_i) + w_0 range_high, w uniform on the simplex
 *          (Dirichlet of ones); low is the same with range_low. For values at the two ends the interval is
 *          Clopper-Pearson's
 * source:  N. Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
 *          variable, Math. Methods of Statistics 14 (2005); E. Learned-Miller, P. Thomas, arXiv:1905.06208
 * numeric: sum(w_i c_i) > t exactly if sum(E_i (c_i - t)) > 0 for exponential E_i. This is a race of two chains of
 *          exponential stages, whose probability is a recurrence of positive terms, exact to rounding. Above 2^12 pairs
 *          of stages, the saddlepoint formula of Lugannani and Rice is used; its tail is within 0.5 % of the exact one.
 *          There are no random draws. Each end takes about 45 evaluations of at most 2^12 or about 10 * count steps: 2
 *          ms for 1,000 values, 15 ms for 10,000 on a desktop processor */
VP_API vp_result vp_bounded_mean(const double *x, const double *y, size_t count, double range_low, double range_high,
                                 double level, void *scratch, size_t scratch_bytes, vp_bounded_interval *interval);
/* The interval of an accuracy, or of a difference of two: vp_rate_interval or vp_rate_difference if all scores are at
 * an end of the range (right or wrong), else vp_bounded_mean.
 * in:      first, second         scores [count], count >= 1; of second - first, or of second if first is NULL
 *          range_low, range_high the range of a score
 * returns: as vp_bounded_mean
 * rule:    p for right or wrong answers is the larger of Tango's and McNemar's exact p, and the interval is extended to
 *          0 where p is above 1 - level. For one side, p of "the mean is 0" has no meaning and is NaN */
VP_API vp_result vp_accuracy_interval(const double *first, const double *second, size_t count, double range_low,
                                      double range_high, double level, void *scratch, size_t scratch_bytes,
                                      vp_bounded_interval *interval);

typedef enum vp_adjustment { VP_ADJUST_NONE, VP_ADJUST_HOLM, VP_ADJUST_BENJAMINI_HOCHBERG } vp_adjustment;
/* Adjusts p values for multiple comparisons. Holm bounds the probability of any false finding; Benjamini-Hochberg
 * bounds the share of false findings.
 * in:      p         double [count], 0..1
 *          order     uint32 [count], scratch
 * out:     adjusted  double [count], on success only; may be p
 * returns: VP_OK; VP_ERR_RANGE: a p outside 0..1 or an unknown method */
VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted);

/* Verdicts on whether the second side is slower: a test paired by sample, with a margin within which a difference does
 * not matter. */
typedef enum vp_verdict { VP_VERDICT_INCONCLUSIVE, VP_VERDICT_SAME, VP_VERDICT_FASTER, VP_VERDICT_SLOWER } vp_verdict;
typedef enum vp_scale {
    VP_SCALE_ABSOLUTE, /* margin and results in the unit of the values */
    VP_SCALE_RELATIVE, /* margin and results as shares of the first side's mean: 0.03 is 3 % slower. All first values
                        * must be > 0 */
    /* mean of log(second / first), returned as a share: each sample has the same weight. All values must be > 0 */
    VP_SCALE_LOG
} vp_scale;
typedef struct vp_comparison {
    size_t count;
    double estimate, low, high; /* second - first, on the scale */
    double p_difference;        /* p of "no difference", paired t */
    double p_equivalence;       /* smallest alpha at which the interval at 1 - alpha is inside the margin */
    vp_verdict verdict;
} vp_comparison;
/* Compares paired values.
 * in:      margin  > 0, on the scale;  alpha  0..0.5: the interval is at 1 - alpha. For one of m comparisons, alpha / m
 *          makes all m verdicts and intervals valid together (Bonferroni)
 * returns: VP_OK; VP_ERR_RANGE: fewer than 2 pairs, values that are not finite or invalid for the scale, margin or
 * alpha out of range
 * rule:    p_equivalence <= alpha: SAME; else p_difference <= alpha: FASTER (second lower) or SLOWER; else
 *          INCONCLUSIVE. So the verdict always agrees with the interval: SAME is inside the margin, FASTER and SLOWER
 *          exclude 0, and INCONCLUSIVE is neither. If all differences are equal, the spread is unknown: low and high
 *          are NaN, p_equivalence is 1, and p_difference is that of a sign test, 2^(1 - count), or 1 for equal values
 * numeric: RELATIVE treats the first side's mean as known. If the samples spread far more than the differences,
 *          prefer LOG */
VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale,
                                   double margin, double alpha, vp_comparison *comparison);
/* Compares paired accuracies with the interval of vp_accuracy_interval; one pair is enough.
 * in:      as there; margin  > 0, in the unit of the scores; alpha  0..0.5
 * returns: VP_OK; VP_ERR_RANGE; VP_ERR_CAPACITY (vp_bounded_scratch_bytes)
 * rule:    as vp_compare_paired */
VP_API vp_result vp_compare_accuracy(const double *first, const double *second, size_t count, double range_low,
                                     double range_high, double margin, double alpha, void *scratch,
                                     size_t scratch_bytes, vp_comparison *comparison);
/* The same for pairs in measurement order, if neighbouring pairs may share the machine's state, such as its clock or
 * other programs. Correlated pairs contain less information than independent ones, so the interval is wider.
 * out:     correlation_time  number of pairs that are worth one independent pair, at least 1; may be NULL
 * returns: as vp_compare_paired
 * rule:    Student's over count / correlation_time values. correlation_time is 1 + 2 * (sum of the autocorrelations),
 *          by the initial monotone sequence. To correct for the estimated mean, 1 / count is added to each
 *          autocorrelation, and the variance is multiplied by 1 / (1 - correlation_time / count), at most 5. With fewer
 *          than 8 pairs it is 1
 * source:  C. J. Geyer, Practical Markov chain Monte Carlo, Statistical Science 7 (1992)
 * numeric: coverage of 95 % intervals for first-order series of 60 pairs (tests): 97 % at a correlation of 0, 93 % at
 *          0.5, 89 % at 0.8 (vp_compare_paired: 94, 75, 50 %). A series cannot reveal a change that lasts longer than
 *          the series */
VP_API vp_result vp_compare_ordered(const double *first, const double *second, size_t count, vp_scale scale,
                                    double margin, double alpha, double *correlation_time, vp_comparison *comparison);
/* p of "the difference of pairs in measurement order has no trend", Student's test of its correlation with the place; 1
 * for fewer than 6 pairs, NaN for values that are invalid for the scale.
 * in:      scale         VP_SCALE_ABSOLUTE or VP_SCALE_LOG
 * out:     began, ended  means over the first and the last third of the pairs; untouched if there are fewer than 6 */
VP_API double vp_compare_drift(const double *first, const double *second, size_t count, vp_scale scale, double *began,
                               double *ended);
/* The number of samples that a comparison needs.
 * in:      deviation  standard deviation of the differences on the scale;  margin > 0;  effect: smallest difference to
 * be detected, > margin
 *          power      probability of SAME if nothing changed, and of FASTER or SLOWER if the difference is `effect`:
 *          0.5..1
 * out:     count      number of samples that satisfies both, at least 2
 * returns: VP_OK; VP_ERR_RANGE (also for over 10^9 samples)
 * rule:    deviation * (t(1 - alpha / 2) + t(1 - (1 - power) / 2)) <= margin * sqrt(n); deviation * (t(1 - alpha / 2) +
 * t(power)) <= effect * sqrt(n) */
VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power,
                                 size_t *count);

/* The number of samples that a comparison of accuracies needs.
 * in:      as vp_compare_plan; range: range_high - range_low of a score, above margin; is_binary: scores are right or
 *                                     wrong
 * rule:    the count of vp_compare_plan, plus the count that the interval of vp_compare_accuracy
 *          needs if no pair differs: z^2 (1 - m) / m, m = margin / range, for right or wrong answers, else log(alpha /
 *          2) / log(1 - m). Agreement so far does not prove that all pairs agree */
VP_API vp_result vp_compare_accuracy_plan(double deviation, double range, int is_binary, double margin, double effect,
                                          double alpha, double power, size_t *count);

/* ---- Pareto fronts */
typedef enum vp_pareto_rule {
    VP_PARETO_FIRST, /* not dominated; of equal points, only the first: a tool should print these */
    VP_PARETO_ALL,   /* not dominated; all of equal points */
    VP_PARETO_WEAK,  /* no other point is better in both; only for comparison */
    VP_PARETO_SWEEP  /* the rule of the experiments' plot scripts, which keeps dominated points; only for comparison */
} vp_pareto_rule;
/* Finds the points that no other point dominates. A point dominates another if it is at least as good in both values
 * and better in one.
 * in:      latency, accuracy  double [count], finite; count 0 is an empty front
 * out:     front              uint32 [count]; the first *front_count are used, sorted by latency, then index
 * returns: VP_OK; VP_ERR_RANGE: a value that is not finite, or an unknown rule
 * rule:    SWEEP: sorted by latency, then index; kept if accuracy >= best so far - 1e-9; the best starts at -1
 * source:  ChulanZhang/molmo_hf, the four copies of the front function (ALL) and two plot scripts (SWEEP)
 * numeric: comparisons only; O(n log n) */
VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule,
                                 uint32_t *front, size_t *front_count);
/* The front (FIRST) of the points with one knob fixed: keys[i] == key. Indices refer to all points. */
VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key,
                                       size_t count, uint32_t *front, size_t *front_count);
/* relative: 1 if both are shares of the dominated point's values, below 1 */
typedef struct vp_epsilon { double latency, accuracy; int relative; } vp_epsilon;
/* Finds the fewest points of the front that epsilon-dominate every point: latency <= its latency + epsilon, accuracy >=
 * its accuracy - epsilon. This removes steps of the front that are too small to matter or to measure.
 * in:      front  result of vp_pareto_front (FIRST or ALL), front_count indices below count
 * out:     kept   uint32 [front_count], may be front; the first *kept_count are used, in the front's order
 * returns: VP_OK; VP_ERR_RANGE: an epsilon that is negative, not finite, or relative and >= 1; an index or order that
 *          is invalid for a front */
VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front,
                                   size_t front_count, vp_epsilon epsilon, uint32_t *kept, size_t *kept_count);
/* The area that a front dominates, up to a reference point. The reference point is worse than all points of interest;
 * points beyond it add nothing. Use the area to compare fronts with a knob fixed. `front` is as above; the result is
 * NaN if it is not a front. */
VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front,
                             size_t front_count, double latency_limit, double accuracy_limit);
/* Finds the most accurate point within a budget; of equally accurate points the fastest, then the first.
 * in:      budget, min_accuracy  infinite: no limit
 * returns: VP_OK; VP_ERR_NOT_FOUND: no point meets both limits; VP_ERR_RANGE: NaN */
VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget,
                                double min_accuracy, uint32_t *best);

typedef enum vp_accuracy_rule {
    VP_ACCURACY_BOUNDED,   /* vp_accuracy_interval of the scores in accuracy_range_low..accuracy_range_high */
    VP_ACCURACY_PERCENTILE /* percentiles of the resamples, for scores of unknown range; zero width if all samples
                            * agree */
} vp_accuracy_rule;
typedef struct vp_bootstrap_options {
    size_t resamples; /* 1..1000000 */
    uint32_t seed;
    double percentile;              /* latency: percentile over the samples, 0..100; below 0: the mean */
    double level;                   /* confidence level of the intervals */
    double budget, min_accuracy;    /* limits for `best`; infinite: no limit */
    vp_accuracy_rule accuracy_rule; /* rule for accuracy_low and accuracy_high */
    double accuracy_range_low, accuracy_range_high;
} vp_bootstrap_options;
/* 1000 resamples, seed 42, P50, 0.95, no limits, bounded accuracies in 0..1 */
VP_API vp_bootstrap_options vp_bootstrap_options_default(void);
typedef struct vp_bootstrap_point {
    double latency, accuracy;           /* values of the original samples; accuracy is the mean */
    double latency_low, latency_high;   /* percentile interval */
    double accuracy_low, accuracy_high; /* interval by accuracy_rule */
    /* share of the resamples in which the point is on the front (ALL). 0 and 1 are not certainty: if the samples agree,
     * so do their resamples */
    double membership;
    double within_budget; /* share of the resamples in which it meets the budget and min_accuracy */
    double best;          /* share of the resamples in which vp_pareto_best selects it */
} vp_bootstrap_point;
VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples);
/* Estimates the certainty of a front: resamples the samples with replacement, with the same draws for all
 * configurations.
 * in:      latency, accuracy  double [config_count, sample_count]; each sample measured by every configuration
 * out:     points             [config_count], on success only
 * returns: VP_OK; VP_ERR_RANGE: a count of 0, a value that is not finite, an option out of range, a bounded score
 *          outside its range; VP_ERR_CAPACITY
 * rule:    a resample is sample_count draws of vp_random_below(sample_count - 1) from one generator with that seed, as
 *          in successive calls of numpy's RandomState(seed).randint(0, n, n). Percentiles are numpy's, as in
 *          vp_statistics_percentile
 * numeric: bit for bit equal to sorting every resample; the samples are sorted once, and each resample only counts
 *          them. 336 configurations x 1,000 samples x 1,000 resamples take about a second */
VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes,
                              vp_bootstrap_point *points);

/* ---- coupling of the knobs */
enum { VP_KNOB_LIMIT = 16, VP_KNOB_LEVEL_LIMIT = 256, VP_EFFECT_COLUMNS_LIMIT = 1024 };
typedef struct vp_knobs {
    const int32_t *levels; /* [config_count, knob_count]: level of each knob, 0..level_counts - 1 */
    int32_t knob_count;    /* 1..VP_KNOB_LIMIT */
    int32_t level_counts[VP_KNOB_LIMIT];
    size_t config_count;
} vp_knobs;
typedef enum vp_effect_kind { VP_EFFECT_MEAN, VP_EFFECT_MAIN, VP_EFFECT_STEP, VP_EFFECT_PAIR } vp_effect_kind;
typedef struct vp_effect {
    vp_effect_kind kind;
    int32_t knob_a, level_a, knob_b, level_b; /* -1 if there is none */
    double estimate, low, high, p;
} vp_effect;
/* Number of rows of vp_effects; 0 if the knobs are out of range. order 1: main effects; 2: also interactions of two
 * knobs. */
VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order);
VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order);
/* Estimates the effect of each knob on the mean of a value, and the interactions of two knobs: their deviation from the
 * sum of both effects.
 * in:      values   double [config_count, sample_count]; every configuration measured each sample; the grid may have
 *                   holes
 * out:     effects  [vp_effect_count]: the mean; then per knob, all levels as MAIN (mean of the level - grand mean),
 *                   and levels from 1 as STEP (level - previous level); then, for order 2, per pair of knobs all pairs
 *                   of levels as PAIR (remainder after mean and main effects)
 *          shares   double [knobs + pairs (order 2) + 1], may be NULL: each term's share of the variance between
 *                   configurations, knobs first, then pairs, then the unexplained rest; they add up to 1 on a full grid
 *          error    may be NULL
 * returns: VP_OK; VP_ERR_RANGE; VP_ERR_CAPACITY; VP_ERR_MISMATCH: these configurations cannot separate the terms (use
 * order 1)
 * rule:    least squares for each sample, with effects that add up to 0 over a knob's levels. The estimate and
 *          Student's interval are over the samples, so a sample's influence on all configurations cancels out
 * memory:  no heap; scratch contains the factorised design */
VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order,
                            double level, void *scratch, size_t scratch_bytes, vp_effect *effects, double *shares,
                            vp_error *error);
VP_API size_t vp_effects_bounded_scratch_bytes(const vp_knobs *knobs, size_t sample_count, int32_t order);
/* Replaces the intervals and p of effects on a score with a known range by those of vp_bounded_mean. An effect is a
 * weighted sum of a sample's scores, so its range is known too. If all samples agree, Student's interval has width 0,
 * but this one does not.
 * in:      as vp_effects, with the effects that it filled; all values are in range_low..range_high
 * out:     effects  low, high and p
 * returns: as vp_effects
 * memory:  scratch contains every effect of every sample */
VP_API vp_result vp_effects_bounded(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order,
                                    double range_low, double range_high, double level, void *scratch,
                                    size_t scratch_bytes, vp_effect *effects, vp_error *error);
/* Finds the configuration that differs from `config` only by the next measured level of a knob.
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_RANGE */
VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next);
typedef struct vp_gain {
    vp_mean_interval latency, accuracy; /* second - first, paired */
    double gain;                        /* accuracy per unit of latency; NaN for equal latency */
    double low, high;                   /* Fieller's interval; infinite if the latency difference may be 0 */
} vp_gain;
/* Marginal gain: accuracy per unit of latency of a step from one configuration to another.
 * returns: VP_OK; VP_ERR_RANGE: fewer than 2 samples, a value that is not finite
 * source:  E. C. Fieller, JRSS B 16 (1954) */
VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy,
                                 const double *second_latency, const double *second_accuracy, size_t sample_count,
                                 double level, vp_gain *gain);

/* ---- Householder reflections, used by all fits
 * Makes the reflection that zeroes v[rows] below `row`: v[row] becomes the length, and the reflection vector is stored
 * below it.
 * returns: its factor for vp_reflection_apply; 0 if the values below were already 0 */
VP_API double vp_reflection_make(double *v, size_t rows, size_t row);
/* Applies a reflection that vp_reflection_make stored in v[rows], and its factor, to y[rows]. */
VP_API void vp_reflection_apply(const double *v, double factor, size_t rows, size_t row, double *y);

VP_EXTERN_C_END
#endif /* VLMPROF_ANALYSIS_H */
