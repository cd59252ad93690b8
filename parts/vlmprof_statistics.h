/* vlmprof_statistics.h - v0.2.0 - intervals and paired differences of measured values - MIT licence
 *
 * Do this:
 *     double ms[6] = {10.1, 10.2, 10.3, 10.4, 10.5, 10.6}, low, high;
 *     if (vp_statistics_percentile_interval(ms, 6, 50.0, 0.95, &low, &high) == VP_OK)
 *         printf("%.1f to %.1f\n", low, high);
 * It prints 10.1 to 10.6, the 95 % interval of the median. Means and percentiles are in vlmprof.h.
 *
 * A confidence is a share: 0.95. If there are too few values for an answer, the result is VP_ERR_UNSUPPORTED or, in a
 * struct, NaN; it is never a guess. Values must be independent; the caller removes warm-up and drift.
 * memory:  none
 * threads: reentrant
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_STATISTICS_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_STATISTICS_H
#define VLMPROF_STATISTICS_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

/* Returns whether `count` values are enough for this percentile.
 * returns: 1 if count is at least 3 / min(p, 1 - p) (P50: 6, P95: 60, P99: 300); at least one value is then beyond the
 *          percentile with 95 % probability. Otherwise 0, also for percentiles 0, 100 and NaN */
VP_API int vp_statistics_percentile_supported(size_t count, double percentile);
/* The smallest count that has an interval of this percentile (see below); 6 for P50 at confidence 0.95.
 * returns: the count; 0 if the percentile is not inside 0..100 or the confidence not inside 0..1, limits excluded */
VP_API size_t vp_statistics_percentile_needs(double percentile, double confidence);
/* Distribution-free confidence interval of a percentile; its ends are two of the values.
 * in:      sorted      double [count], ascending
 *          percentile  0..100, confidence 0..1, ends excluded
 * returns: VP_OK; VP_ERR_RANGE: a percentile or confidence is outside its range, or an end of the interval is not
 *          finite; VP_ERR_UNSUPPORTED: fewer values than vp_statistics_percentile_needs
 * rule:    B binomial (count, p): low is the l-th value, with the largest l for which P(B < l) <= (1 - confidence) / 2;
 *          high is the h-th value, with the smallest h for which P(B >= h) <= (1 - confidence) / 2. The coverage is at
 *          least `confidence`
 * source:  Hahn and Meeker, Statistical Intervals (1991), 5.2 */
VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile,
                                                   double confidence, double *low, double *high);
/* Quantile of Student's t distribution.
 * in:      probability  1e-12..1 - 1e-12
 *          degrees      >= 1; infinity is the normal distribution
 * returns: t with P(T <= t) = probability; NaN outside the ranges
 * numeric: 1e-8 relative or better, by bisection of the regularised incomplete beta function */
VP_API double vp_statistics_student(double probability, double degrees);
/* Student's confidence interval of the mean.
 * returns: VP_OK; VP_ERR_RANGE: a value or an end is not finite, or the confidence is outside 0..1; VP_ERR_UNSUPPORTED:
 *          fewer than 2 values
 * rule:    mean -+ t(1/2 + confidence / 2, count - 1) * s / sqrt(count), where s divides by count - 1 */
VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low,
                                             double *high);

typedef struct vp_paired {
    size_t count;
    vp_estimate mean, median;                   /* second - first; 95 % intervals: Student's, order statistics */
    vp_estimate relative_mean, relative_median; /* the same, divided by the mean of first; NaN unless it is above 0 */
    double share_greater;                       /* share of pairs with second > first */
} vp_paired;
/* Paired differences, such as between runs without and with stage times, or between two configurations on the same
 * samples.
 * in:      first, second  double [count], finite
 * out:     scratch        double [count]: the sorted differences
 * returns: VP_OK; VP_ERR_RANGE: count 0, or a difference is not finite */
VP_API vp_result vp_statistics_paired(const double *first, const double *second, size_t count, double *scratch,
                                      vp_paired *paired);

/* The regularised incomplete beta function I_x(a, b). The caller passes both x and y = 1 - x, because the one near 1
 * cannot represent the other precisely. */
VP_API double vp_statistics_beta(double a, double b, double x, double y);
/* P(T > t) of Student's t distribution; infinite degrees: the normal distribution. t >= 0, degrees > 0, unchecked. */
VP_API double vp_statistics_student_upper(double t, double degrees);
/* The largest l in 0..count with P(B < l) <= tail, B binomial (count, chance); 0 if not even the smallest value can be
 * an end of an interval. */
VP_API size_t vp_statistics_order_rank(size_t count, double chance, double tail);

VP_EXTERN_C_END
#endif /* VLMPROF_STATISTICS_H */

#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_STATISTICS_IMPLEMENTATION)) \
    && !defined(VLMPROF_STATISTICS_IMPLEMENTATION_DONE)
#define VLMPROF_STATISTICS_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH
/* ---- distributions, all based on the regularised incomplete beta function */
/* ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2] for x >= 10: Stirling's series, truncated below 1e-15 */
static double vp_impl_stirling(double x) {
    const double r = 1.0 / (x * x);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360))))))
           / x;
}

/* ln B(a, b), a and b >= 1/2. Written with ratios: a difference of three large ln Gamma would lose the significant
 * digits for large a or b. */
static double vp_impl_log_beta(double a, double b) {
    double raised = 1.0, small, large, share;
    for (; a < 10.0; a += 1.0) raised *= (a + b) / a; /* B(a, b) = B(a + 1, b) (a + b) / a */
    for (; b < 10.0; b += 1.0) raised *= (a + b) / b;
    small = a < b ? a : b;
    large = a < b ? b : a;
    share = small / (small + large);
    return log(raised) + 0.91893853320467274178 - 0.5 * log(large) + (small - 0.5) * log(share) + large * log1p(-share)
           + vp_impl_stirling(a) + vp_impl_stirling(b) - vp_impl_stirling(a + b);
}

/* The continued fraction of the incomplete beta function by Lentz's rule (Numerical Recipes 6.4); it needs about
 * sqrt(max(a, b)) terms. If it has not converged by then, the result is NaN, so that the caller's comparison fails
 * instead of using a wrong value. */
static double vp_impl_beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), h, m, factor;
    d = 1.0 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (m = 1.0; m < 1e6; m += 1.0) {
        const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 + even * d;
        c = 1.0 + even / c;
        d = 1.0 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        h *= d * c;
        d = 1.0 + odd * d;
        c = 1.0 + odd / c;
        d = 1.0 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        factor = d * c;
        h *= factor;
        if (fabs(factor - 1.0) < 4e-16) return h;
    }
    return (double)NAN;
}

VP_API double vp_statistics_beta(double a, double b, double x, double y) {
    double front;
    if (x <= 0.0) return 0.0;
    if (y <= 0.0) return 1.0;
    front = exp(a * (x < 0.5 ? log(x) : log1p(-y)) + b * (y < 0.5 ? log(y) : log1p(-x)) - vp_impl_log_beta(a, b));
    if (x < (a + 1.0) / (a + b + 2.0)) return front * vp_impl_beta_fraction(a, b, x) / a;
    return 1.0 - front * vp_impl_beta_fraction(b, a, y) / b;
}

VP_API double vp_statistics_student_upper(double t, double degrees) {
    const double ratio = t / sqrt(degrees) * (t / sqrt(degrees));
    if (!(degrees < (double)INFINITY)) return 0.5 * erfc(t * 0.70710678118654752440);
    return 0.5
           * vp_statistics_beta(0.5 * degrees, 0.5, 1.0 / (1.0 + ratio), ratio > 0.0 ? 1.0 / (1.0 + 1.0 / ratio) : 0.0);
}

VP_API double vp_statistics_student(double probability, double degrees) {
    const double tail = probability < 0.5 ? probability : 1.0 - probability, many = 1e5,
                 solved = degrees < many ? degrees : (double)INFINITY;
    double low = 0.0, high = 1.0, middle, square;
    if (!(probability >= 1e-12 && probability <= 1.0 - 1e-12) || !(degrees >= 1.0)) return (double)NAN;
    /* at most 2^39: the tail of 1 degree is about 1 / (pi t) */
    while (high < 1e12 && vp_statistics_student_upper(high, solved) > tail) high *= 2.0;
    for (int step = 0; step < 1200 && (middle = low + (high - low) * 0.5) > low && middle < high; step++) {
        if (vp_statistics_student_upper(middle, solved) > tail) low = middle; else high = middle;
    }
    /* the fraction loses digits here; the Cornish-Fisher expansion is accurate to 1e-11 (Abramowitz and Stegun
     * 26.7.5) */
    if (degrees >= many) {
        square = high * high;
        high += high * (square + 1.0) / (4.0 * degrees)
                + high * ((5.0 * square + 16.0) * square + 3.0) / (96.0 * degrees * degrees);
    }
    return probability < 0.5 ? -high : tail < 0.5 ? high : 0.0;
}

VP_API size_t vp_statistics_order_rank(size_t count, double chance, double tail) {
    size_t low = 0, high = count + 1;
    while (high - low > 1) { /* P(B < low) <= tail, and P(B < high) is not */
        const size_t l = low + (high - low) / 2;
        const double below = vp_statistics_beta((double)(count - l + 1), (double)l, 1.0 - chance, chance);
        if (below <= tail * (1.0 + 1e-12)) low = l; else high = l;
    }
    return low;
}

VP_API int vp_statistics_percentile_supported(size_t count, double percentile) {
    const double rest = percentile < 50.0 ? percentile : 100.0 - percentile;
    return rest > 0.0 && (double)count * rest >= 300.0 * (1.0 - 1e-9); /* 100 - 99.9 is a little less than 0.1 */
}

VP_API size_t vp_statistics_percentile_needs(double percentile, double confidence) {
    const double rest = (percentile < 50.0 ? percentile : 100.0 - percentile) / 100.0;
    double count;
    if (!(percentile > 0.0 && percentile < 100.0) || !(confidence > 0.0 && confidence < 1.0)) return 0;
    count = ceil(log((1.0 - confidence) * 0.5) / log1p(-rest) - 1e-9); /* (1 - rest)^count <= (1 - confidence) / 2 */
    if (!(count < (double)SIZE_MAX)) return SIZE_MAX; /* more values than fit in memory, as for P1e-300 */
    return count < 1.0 ? 1 : (size_t)count;
}

VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile,
                                                   double confidence, double *low, double *high) {
    const double chance = percentile / 100.0, tail = (1.0 - confidence) * 0.5;
    double ends[2];
    if (!(percentile > 0.0 && percentile < 100.0) || !(confidence > 0.0 && confidence < 1.0)) return VP_ERR_RANGE;
    if (count < vp_statistics_percentile_needs(percentile, confidence)) return VP_ERR_UNSUPPORTED;
    size_t l = vp_statistics_order_rank(count, chance, tail);
    size_t h = vp_statistics_order_rank(count, 1.0 - chance, tail); /* counted from the other end */
    if (l == 0 || h == 0) return VP_ERR_UNSUPPORTED;
    ends[0] = sorted[l - 1];
    ends[1] = sorted[count - h];
    if (!vp_statistics_all_finite(ends, 2)) return VP_ERR_RANGE;
    *low = ends[0];
    *high = ends[1];
    return VP_OK;
}

VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low,
                                             double *high) {
    double mean, half, ends[2];
    if (!(confidence > 0.0 && confidence < 1.0) || !vp_statistics_all_finite(values, count)) return VP_ERR_RANGE;
    if (count < 2) return VP_ERR_UNSUPPORTED;
    mean = vp_statistics_mean(values, count);
    half = sqrt(vp_statistics_squares(values, count, mean) / (double)(count - 1) / (double)count);
    half *= vp_statistics_student(0.5 + 0.5 * confidence, (double)(count - 1));
    ends[0] = mean - half;
    ends[1] = mean + half;
    if (!vp_statistics_all_finite(ends, 2)) return VP_ERR_RANGE;
    *low = ends[0];
    *high = ends[1];
    return VP_OK;
}

static vp_estimate vp_impl_relative(vp_estimate estimate, double whole) {
    const double factor = whole > 0.0 ? 1.0 / whole : (double)NAN;
    estimate.value *= factor;
    estimate.low *= factor;
    estimate.high *= factor;
    return estimate;
}

VP_API vp_result vp_statistics_paired(const double *first, const double *second, size_t count, double *scratch,
                                      vp_paired *paired) {
    const vp_estimate nothing = {(double)NAN, (double)NAN, (double)NAN};
    const double whole = vp_statistics_mean(first, count);
    vp_paired out;
    size_t i, greater = 0;
    if (count == 0) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        scratch[i] = second[i] - first[i];
        greater += scratch[i] > 0.0;
    }
    if (!vp_statistics_all_finite(scratch, count)) return VP_ERR_RANGE;
    out.count = count;
    out.share_greater = (double)greater / (double)count;
    out.mean = out.median = nothing; /* intervals stay NaN if there are too few pairs */
    out.mean.value = vp_statistics_mean(scratch, count);
    vp_statistics_mean_interval(scratch, count, 0.95, &out.mean.low, &out.mean.high);
    vp_sort_double(scratch, count);
    out.median.value = vp_statistics_percentile(scratch, count, 50.0);
    vp_statistics_percentile_interval(scratch, count, 50.0, 0.95, &out.median.low, &out.median.high);
    out.relative_mean = vp_impl_relative(out.mean, whole);
    out.relative_median = vp_impl_relative(out.median, whole);
    *paired = out;
    return VP_OK;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
