/* vlmprof_analysis.c: implements what vlmprof_analysis.h declares */
#include "vlmprof_analysis.h"
#include "vlmprof_statistics.h"
#include <math.h>
#include <string.h>

/* ---- shared helpers */
/* order of indices: by key, then by descending `second` (unless NULL), then by index */
static int vp_impl_index_before(const double *key, const double *second, uint32_t left, uint32_t right) {
    if (key[left] < key[right] || key[left] > key[right]) return key[left] < key[right];
    if (second && (second[left] < second[right] || second[left] > second[right])) return second[left] > second[right];
    return left < right;
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

static int vp_impl_share(double value) { /* strictly between 0 and 1; false for NaN */
    return value > 0.0 && value < 1.0;
}

static int vp_impl_number(double value) { return value - value == 0.0; }

static int vp_impl_counts_fit(size_t count) { return (uint64_t)count <= UINT32_MAX; }

/* ---- distributions */
VP_API double vp_normal_tail(double z) { return 0.5 * erfc(z * 0.70710678118654752440); }

static double vp_impl_polynomial(const double *coefficient, int count, double x) { /* highest power first */
    double sum = coefficient[0];
    for (int i = 1; i < count; i++) sum = sum * x + coefficient[i];
    return sum;
}

/* Wichura's algorithm AS 241, PPND16 (Applied Statistics 37, 1988): three rational functions */
VP_API double vp_normal_quantile(double probability) {
    static const double a[8] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
                                45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
                                133.14166789178437745, 3.387132872796366608};
    static const double b[8] = {
        5226.495278852545925,  28729.085735721942674, 39307.89580009271061,  21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083,  42.313330701600911252, 1.0};
    static const double c[8] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                1.27045825245236838258,   3.64784832476320460504,   5.7694972214606914055,
                                4.6303378461565452959,    1.42343711074968357734};
    static const double d[8] = {
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
        0.68976733498510000455,    1.6763848301838038494,   2.05319162663775882187,   1.0};
    static const double e[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                0.026532189526576123093,   0.29656057182850489123,    1.7848265399172913358,
                                5.4637849111641143699,     6.6579046435011037772};
    static const double f[8] = {
        2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
        0.0148753612908506148525,   0.13692988092273580531,   0.59983220655588793769,   1.0};
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
    return t < 0.0 ? 1.0 - vp_statistics_student_upper(-t, degrees) : vp_statistics_student_upper(t, degrees);
}

VP_API double vp_binomial_half(uint64_t successes, uint64_t count) {
    if (count >= UINT64_C(1) << 53) return (double)NAN;
    if (successes >= count) return 1.0;
    return vp_statistics_beta((double)(count - successes), (double)successes + 1.0, 0.5, 0.5);
}

/* ---- tests and intervals */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank,
                                    double *coverage) {
    if (!count || count >= UINT64_C(1) << 53 || count >= SIZE_MAX || !vp_impl_share(level) || !low_rank || !high_rank
        || !coverage)
        return VP_ERR_RANGE;
    uint64_t rank = (uint64_t)vp_statistics_order_rank((size_t)count, 0.5, 0.5 * (1.0 - level));
    if (!rank) return VP_ERR_MISMATCH;
    *coverage = 1.0 - 2.0 * vp_binomial_half(rank - 1, count);
    *low_rank = rank;
    *high_rank = count + 1 - rank;
    return VP_OK;
}

VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct) {
    const uint64_t least = only_first_correct < only_second_correct ? only_first_correct : only_second_correct;
    const uint64_t limit = UINT64_C(1) << 53;
    if (only_first_correct >= limit || only_second_correct >= limit) return (double)NAN;
    double p = 2.0 * vp_binomial_half(least, only_first_correct + only_second_correct);
    return p > 1.0 ? 1.0 : p;
}

/* Student's interval from a mean and a sum of squared deviations; `quantile` is for count - 1 degrees */
static vp_result vp_impl_mean_interval(size_t count, double mean, double squares, double quantile,
                                       vp_mean_interval *out) {
    vp_mean_interval made;
    made.count = count;
    made.degrees = (double)(count - 1);
    made.mean = mean;
    made.error = sqrt(squares / made.degrees / (double)count);
    made.t = made.error > 0.0 ? mean / made.error : mean > 0.0 ? HUGE_VAL : mean < 0.0 ? -HUGE_VAL : 0.0;
    made.p = made.error > 0.0           ? 2.0 * vp_statistics_student_upper(fabs(made.t), made.degrees)
             : mean < 0.0 || mean > 0.0 ? 0.0
                                        : 1.0;
    double reach = made.error * quantile;
    made.low = mean - reach;
    made.high = mean + reach;
    if (!vp_impl_number(made.low) || !vp_impl_number(made.high) || !vp_impl_number(made.error)) return VP_ERR_RANGE;
    *out = made;
    return VP_OK;
}

/* Student's t quantile with count - 1 degrees, for a two-sided interval */
static double vp_impl_quantile(size_t count, double level) {
    return vp_statistics_student(0.5 + 0.5 * level, (double)(count - 1));
}

VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval) {
    double mean = 0.0, squares = 0.0, rest = 0.0, step;
    if (!y || count < 2 || !vp_impl_share(level) || !interval) return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++) {
        step = x ? y[i] - x[i] : y[i];
        if (!vp_impl_number(step)) return VP_ERR_RANGE;
        mean += step;
    }
    mean /= (double)count;
    for (size_t i = 0; i < count; i++) { /* `rest` removes the rounding error of the mean */
        step = (x ? y[i] - x[i] : y[i]) - mean;
        rest += step;
        squares += step * step;
    }
    mean += rest / (double)count;
    squares -= rest * rest / (double)count;
    return vp_impl_mean_interval(count, mean, squares > 0.0 ? squares : 0.0, vp_impl_quantile(count, level), interval);
}

/* ---- differences that a sample size can resolve */
VP_API vp_result vp_statistics_resolution(size_t count, double discordance, double variation,
                                          vp_resolution *resolution) {
    const double n = (double)count, one = vp_statistics_student(0.975, (double)INFINITY),
                 two = vp_statistics_student(0.8, (double)INFINITY);
    vp_resolution out = {(double)NAN, (double)NAN, (double)NAN};
    if (!(discordance >= 0.0 && discordance <= 1.0) || !(variation >= 0.0 && variation - variation == 0.0))
        return VP_ERR_RANGE;
    if (n * discordance >= 10.0) { /* solves the rule for d, a quadratic equation */
        const double d = sqrt(discordance) * (one * sqrt(n) + two * sqrt(n + two * two - one * one)) / (n + two * two);
        if (d <= discordance) out.accuracy = d;
    }
    if (count >= 2) {
        const double degrees = 2.0 * n - 2.0;
        out.mean =
            (vp_statistics_student(0.975, degrees) + vp_statistics_student(0.8, degrees)) * variation * sqrt(2.0 / n);
        out.p50 = 1.2533141373155003 * out.mean;
    }
    *resolution = out;
    return VP_OK;
}

/* ---- confidence intervals for accuracy */
static int vp_impl_rates_good(uint64_t only_first, uint64_t only_second, uint64_t count) {
    return count && count < UINT64_C(1) << 53 && only_first <= count && only_second <= count - only_first;
}

VP_API vp_result vp_rate_interval(uint64_t successes, uint64_t count, double level, double *low, double *high) {
    const double n = (double)count, p = (double)successes / n;
    if (!vp_impl_rates_good(successes, 0, count) || !vp_impl_share(level) || !low || !high) return VP_ERR_RANGE;
    double z = vp_normal_quantile(0.5 + 0.5 * level);
    double middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    double half = z / (1.0 + z * z / n) * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    *low = successes && middle > half ? middle - half : 0.0;
    *high = successes < count && middle + half < 1.0 ? middle + half : 1.0;
    return VP_OK;
}

/* Tango's statistic T(d) for 0 <= d < 1, with his symbols: b samples only correct in the second, c only in the first; q
 * is the most likely rate of c if the difference of the rates is d. T decreases with d. */
static double vp_impl_tango(double b, double c, double n, double d) {
    const double linear = (2.0 * n - b + c) * d - b - c, rest = c * d * (1.0 - d);
    const double root = sqrt(linear * linear + 8.0 * n * rest);
    /* the positive root of 2 n q^2 + linear q - rest, without cancellation */
    const double q = linear > 0.0 ? 2.0 * rest / (root + linear) : (root - linear) / (4.0 * n);
    const double variance = n * (2.0 * q + d * (1.0 - d)), distance = b - c - n * d;
    if (variance > 0.0) return distance / sqrt(variance);
    return distance > 0.0 ? HUGE_VAL : distance < 0.0 ? -HUGE_VAL : 0.0;
}
static double vp_impl_rate_score(double b, double c, double n, double d) {
    return d < 0.0 ? -vp_impl_tango(c, b, n, -d) : vp_impl_tango(b, c, n, d);
}

/* the largest d with T(d) >= -z */
static double vp_impl_rate_high(double b, double c, double n, double z) {
    double inside = (b - c) / n, outside = 1.0, middle;
    if (!(inside < 1.0)) return 1.0;
    for (;;) {
        middle = 0.5 * (inside + outside);
        if (!(middle > inside && middle < outside)) return outside;
        if (vp_impl_rate_score(b, c, n, middle) >= -z) inside = middle; else outside = middle;
    }
}

VP_API vp_result vp_rate_difference(uint64_t only_first, uint64_t only_second, uint64_t count, double level,
                                    double *low, double *high) {
    if (!vp_impl_rates_good(only_first, only_second, count) || !vp_impl_share(level) || !low || !high)
        return VP_ERR_RANGE;
    double z = vp_normal_quantile(0.5 + 0.5 * level);
    *low = -vp_impl_rate_high((double)only_first, (double)only_second, (double)count, z);
    *high = vp_impl_rate_high((double)only_second, (double)only_first, (double)count, z);
    return VP_OK;
}

VP_API double vp_rate_difference_p(uint64_t only_first, uint64_t only_second, uint64_t count, double difference) {
    if (!vp_impl_rates_good(only_first, only_second, count) || !(difference >= -1.0 && difference <= 1.0))
        return (double)NAN;
    return 2.0
           * vp_normal_tail(
               fabs(vp_impl_rate_score((double)only_second, (double)only_first, (double)count, difference)));
}

/* largest number of pairs of stages for the recurrence */
enum { VP_IMPL_RACE_LIMIT = 4096 };

/* The values of a bounded mean, with a slot for the bound after them. */
typedef struct vp_impl_bounded {
    size_t count; /* values, without the bound */
    double range_low, range_high, mean;
    double *values, *chance; /* [count + 1], [count + 2] */
} vp_impl_bounded;

/* P(sum of E_i a_i > 0), a_i = sign (values[i] - t), E_i exponential, by Lugannani and Rice: K(s) = -sum of
 * log(1 - s a_i) is the sum's cumulant function, and s solves K'(s) = 0 between 1 / least and 1 / most. */
static double vp_impl_signed_sum_tail(const double *values, size_t count, double sign, double t, double least,
                                      double most) {
    double below = 1.0 / least, above = 1.0 / most, s = 0.0, slope, bend, skew, sum, w, v;
    size_t i;
    for (int round = 0; round < 100; round++) {
        for (slope = bend = 0.0, i = 0; i < count; i++) {
            const double part = sign * (values[i] - t) / (1.0 - s * sign * (values[i] - t));
            slope += part;
            bend += part * part;
        }
        if (slope > 0.0) above = s; else below = s;
        double next = s - slope / bend;
        if (!(next > below && next < above)) next = 0.5 * (below + above);
        if (!(fabs(next - s) * sqrt(bend) > 1e-9)) break; /* the minimum of the tail's exponent */
        s = next;
    }
    for (bend = skew = sum = 0.0, i = 0; i < count; i++) {
        const double part = sign * (values[i] - t) / (1.0 - s * sign * (values[i] - t));
        bend += part * part;
        skew += 2.0 * part * part * part;
        sum += log1p(-s * sign * (values[i] - t));
    }
    w = sqrt(sum > 0.0 ? 2.0 * sum : 0.0);
    if (s < 0.0) w = -w;
    v = s * sqrt(bend);
    if (fabs(w) < 1e-3) return 0.5 - skew / (6.0 * bend * sqrt(bend)) * 0.39894228040143267794;
    return vp_normal_tail(w) + 0.39894228040143267794 * exp(-0.5 * w * w) * (1.0 / v - 1.0 / w);
}

/* P(sum of w_i c_i > t), w uniform on the simplex, c the values and range_high; sign -1: P(sum < t), c with range_low.
 * Two chains run in parallel; their stages last |c_i - t| on average. The sum is beyond t if the chain of values beyond
 * t ends last. chance[k] is the probability of that if the other chain has k stages left. */
static double vp_impl_simplex_tail(const vp_impl_bounded *bounded, double sign, double t) {
    double *values = bounded->values, least = 0.0, most = 0.0;
    size_t positive = 0, negative = 0, i, j, k;
    values[bounded->count] = sign > 0.0 ? bounded->range_high : bounded->range_low;
    for (i = 0; i <= bounded->count; i++) {
        const double step = sign * (values[i] - t);
        positive += step > 0.0;
        negative += step < 0.0;
        if (step < least) least = step;
        if (step > most) most = step;
    }
    if (!positive) return 0.0;
    if (!negative) return 1.0;
    if (positive > 1 && negative > 1 && positive > VP_IMPL_RACE_LIMIT / negative)
        return vp_impl_signed_sum_tail(values, bounded->count + 1, sign, t, least, most);
    bounded->chance[0] = 1.0;
    for (k = 1; k <= negative; k++) bounded->chance[k] = 0.0;
    for (i = 0; i <= bounded->count; i++) {
        const double own = sign * (values[i] - t);
        if (!(own > 0.0)) continue;
        for (j = 0, k = 1; k <= negative; j++) {
            const double other = -sign * (values[j] - t);
            if (!(other > 0.0)) continue;
            bounded->chance[k] = (own * bounded->chance[k - 1] + other * bounded->chance[k]) / (own + other);
            k++;
        }
    }
    return bounded->chance[negative];
}

/* the t furthest from the mean with a tail above `chance` */
static double vp_impl_bounded_end(const vp_impl_bounded *bounded, double sign, double chance) {
    const double close = 1e-13 * (bounded->range_high - bounded->range_low);
    double inside = bounded->mean, outside = sign > 0.0 ? bounded->range_high : bounded->range_low;
    while (fabs(outside - inside) > close) {
        const double middle = 0.5 * (inside + outside);
        if (vp_impl_simplex_tail(bounded, sign, middle) > chance) inside = middle; else outside = middle;
    }
    return outside;
}

/* Two-sided p of "the mean is t, or beyond it in the direction of `sign`" */
static double vp_impl_bounded_p(const vp_impl_bounded *bounded, double sign, double t) {
    const double p = 2.0 * vp_impl_simplex_tail(bounded, sign, t);
    return p < 1.0 ? p : 1.0;
}

/* Computes the mean, the interval and p of values in the range. */
static void vp_impl_bounded_solve(vp_impl_bounded *bounded, double level, vp_bounded_interval *out) {
    const double chance = 0.5 * (1.0 - level);
    double sum = 0.0;
    for (size_t i = 0; i < bounded->count; i++) sum += bounded->values[i];
    bounded->mean = sum / (double)bounded->count;
    if (bounded->mean < bounded->range_low) bounded->mean = bounded->range_low;
    if (bounded->mean > bounded->range_high) bounded->mean = bounded->range_high;
    out->count = bounded->count;
    out->mean = bounded->mean;
    out->low = vp_impl_bounded_end(bounded, -1.0, chance);
    out->high = vp_impl_bounded_end(bounded, 1.0, chance);
    out->p = (double)NAN;
    if (bounded->range_low < 0.0 && bounded->range_high > 0.0)
        out->p = vp_impl_bounded_p(bounded, bounded->mean > 0.0 ? -1.0 : 1.0, 0.0);
}

/* Fills *bounded if y, or y - x, is in the range. If scratch is too small, bounded->values stays NULL. */
static vp_result vp_impl_bounded_fill(vp_impl_bounded *bounded, const double *x, const double *y, size_t count,
                                      double range_low, double range_high, void *scratch, size_t scratch_bytes) {
    vp_arena arena = vp_arena_over(scratch, scratch_bytes);
    const double slack = 1e-9 * (range_high - range_low); /* differences of scores in tenths have rounding errors */
    if (!y || !count || !vp_impl_counts_fit(count) || !vp_impl_number(range_low) || !vp_impl_number(range_high)
        || !(range_low < range_high) || !vp_impl_number(range_high - range_low))
        return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++) {
        const double value = x ? y[i] - x[i] : y[i];
        if (!(value >= range_low - slack && value <= range_high + slack)) return VP_ERR_RANGE;
    }
    bounded->values = (double *)vp_arena_take(&arena, count + 1, sizeof(double));
    bounded->chance = (double *)vp_arena_take(&arena, count + 2, sizeof(double));
    if (!bounded->values || !bounded->chance) return VP_ERR_CAPACITY;
    bounded->count = count;
    bounded->range_low = range_low;
    bounded->range_high = range_high;
    for (size_t i = 0; i < count; i++) {
        const double value = x ? y[i] - x[i] : y[i];
        bounded->values[i] = value < range_low ? range_low : value > range_high ? range_high : value;
    }
    return VP_OK;
}

VP_API size_t vp_bounded_scratch_bytes(size_t count) {
    size_t bytes = 64, places;
    if (!vp_size_add(count, 2, &places)) return SIZE_MAX;
    vp_arena_need(&bytes, places, sizeof(double));
    vp_arena_need(&bytes, places, sizeof(double));
    return bytes;
}

VP_API vp_result vp_bounded_mean(const double *x, const double *y, size_t count, double range_low, double range_high,
                                 double level, void *scratch, size_t scratch_bytes, vp_bounded_interval *interval) {
    vp_impl_bounded bounded;
    if (!vp_impl_share(level) || !interval) return VP_ERR_RANGE;
    vp_result result = vp_impl_bounded_fill(&bounded, x, y, count, range_low, range_high, scratch, scratch_bytes);
    if (result == VP_OK) vp_impl_bounded_solve(&bounded, level, interval);
    return result;
}

/* Counts right answers: [0] only the first is right, [1] only the second, [2] the second. */
static int vp_impl_count_answers(const double *first, const double *second, size_t count, double range_low,
                                 double range_high, uint64_t counts[3]) {
    counts[0] = counts[1] = counts[2] = 0;
    for (size_t i = 0; i < count; i++) {
        const int right = !(second[i] < range_high), was_right = first && !(first[i] < range_high);
        if ((!right && second[i] > range_low) || second[i] > range_high) return 0;
        if (first && ((!was_right && first[i] > range_low) || first[i] > range_high)) return 0;
        counts[0] += (uint64_t)(was_right && !right);
        counts[1] += (uint64_t)(right && !was_right);
        counts[2] += (uint64_t)right;
    }
    return 1;
}

/* Returns 1 if all scores are numbers in the range. */
static int vp_impl_scores_good(const double *first, const double *second, size_t count, double range_low,
                               double range_high) {
    if (!second || !count || !vp_impl_number(range_low) || !vp_impl_number(range_high) || !(range_low < range_high)
        || !vp_impl_number(range_high - range_low))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!(second[i] >= range_low && second[i] <= range_high)) return 0;
        if (first && !(first[i] >= range_low && first[i] <= range_high)) return 0;
    }
    return 1;
}

VP_API vp_result vp_accuracy_interval(const double *first, const double *second, size_t count, double range_low,
                                      double range_high, double level, void *scratch, size_t scratch_bytes,
                                      vp_bounded_interval *interval) {
    const double span = range_high - range_low;
    uint64_t counts[3];
    if (!vp_impl_share(level) || !interval || !vp_impl_scores_good(first, second, count, range_low, range_high))
        return VP_ERR_RANGE;
    if (!vp_impl_count_answers(first, second, count, range_low, range_high, counts))
        return vp_bounded_mean(first, second, count, first ? -span : range_low, first ? span : range_high, level,
                               scratch, scratch_bytes, interval);
    interval->count = count;
    interval->p = (double)NAN;
    if (first) {
        const double exact = vp_mcnemar(counts[0], counts[1]);
        vp_rate_difference(counts[0], counts[1], count, level, &interval->low, &interval->high);
        interval->mean = ((double)counts[1] - (double)counts[0]) / (double)count * span;
        interval->low *= span;
        interval->high *= span;
        interval->p = vp_rate_difference_p(counts[0], counts[1], count, 0.0);
        if (exact > interval->p) interval->p = exact;
        if (interval->p > 1.0 - level) { /* the interval excludes 0 only where both tests do */
            if (interval->low > 0.0) interval->low = 0.0;
            if (interval->high < 0.0) interval->high = 0.0;
        }
    } else {
        vp_rate_interval(counts[2], count, level, &interval->low, &interval->high);
        interval->mean = range_low + span * (double)counts[2] / (double)count;
        interval->low = range_low + span * interval->low;
        interval->high = range_low + span * interval->high;
    }
    return VP_OK;
}

VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted) {
    double held = 0.0, value;
    if (count && (!p || !order || !adjusted)) return VP_ERR_RANGE;
    if ((method != VP_ADJUST_NONE && method != VP_ADJUST_HOLM && method != VP_ADJUST_BENJAMINI_HOCHBERG)
        || !vp_impl_counts_fit(count))
        return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++)
        if (!(p[i] >= 0.0 && p[i] <= 1.0)) return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    vp_impl_sort_index(p, NULL, order, count);
    if (method == VP_ADJUST_NONE && adjusted != p)
        for (size_t i = 0; i < count; i++) adjusted[i] = p[i];
    if (method == VP_ADJUST_HOLM) { /* begins with the smallest; no adjusted value is below its predecessor */
        for (size_t i = 0; i < count; i++) {
            value = p[order[i]] * (double)(count - i);
            if (value > held) held = value;
            adjusted[order[i]] = held > 1.0 ? 1.0 : held;
        }
    }
    if (method == VP_ADJUST_BENJAMINI_HOCHBERG) { /* begins with the largest; no adjusted value exceeds its successor */
        held = 1.0;
        for (size_t i = 0; i < count; i++) {
            size_t k = count - 1 - i;
            value = p[order[k]] * (double)count / (double)(k + 1);
            if (value < held) held = value;
            adjusted[order[k]] = held;
        }
    }
    return VP_OK;
}

static vp_verdict vp_impl_verdict(const vp_comparison *comparison, double alpha) {
    if (comparison->p_equivalence <= alpha) return VP_VERDICT_SAME;
    if (!(comparison->p_difference <= alpha)) return VP_VERDICT_INCONCLUSIVE;
    return comparison->estimate < 0.0 ? VP_VERDICT_FASTER : VP_VERDICT_SLOWER;
}

/* Computes a pair's difference before the scale's factor. Returns 0 if the pair is invalid for the scale. */
static int vp_impl_compare_step(double first, double second, vp_scale scale, double *step) {
    if (scale != VP_SCALE_ABSOLUTE && !(first > 0.0)) return 0;
    if (scale == VP_SCALE_LOG && !(second > 0.0)) return 0;
    *step = scale == VP_SCALE_LOG ? log(second) - log(first) : second - first;
    return vp_impl_number(*step) && vp_impl_number(first);
}

/* mean and squared deviations of the steps, in two passes; returns 0 if a value is invalid for the scale */
static int vp_impl_compare_moments(const double *first, const double *second, size_t count, vp_scale scale,
                                   double *mean, double *squares) {
    double sum = 0.0, base = 0.0, rest = 0.0, step;
    for (size_t i = 0; i < count; i++) {
        if (!vp_impl_compare_step(first[i], second[i], scale, &step)) return 0;
        sum += step;
        base += first[i];
    }
    base = scale == VP_SCALE_RELATIVE ? (double)count / base : 1.0;
    *mean = sum / (double)count;
    *squares = 0.0;
    for (size_t i = 0; i < count; i++) {
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

/* Sums the products of the deviations of steps that are `lag` apart. */
static double vp_impl_compare_products(const double *first, const double *second, size_t count, vp_scale scale,
                                       double mean, size_t lag) {
    double sum = 0.0, left = 0.0, right = 0.0;
    for (size_t i = 0; i + lag < count; i++) {
        vp_impl_compare_step(first[i], second[i], scale, &left);
        vp_impl_compare_step(first[i + lag], second[i + lag], scale, &right);
        sum += (left - mean) * (right - mean);
    }
    return sum;
}
/* The correlation time of the steps; *variance: the factor by which their variance is too low. */
static double vp_impl_compare_time(const double *first, const double *second, size_t count, vp_scale scale,
                                   double *variance) {
    double mean = 0.0, squares, sum = 0.0, before = HUGE_VAL, step, time;
    *variance = 1.0;
    if (count < 8) return 1.0;
    for (size_t i = 0; i < count; i++) {
        vp_impl_compare_step(first[i], second[i], scale, &step);
        mean += step;
    }
    mean /= (double)count;
    squares = vp_impl_compare_products(first, second, count, scale, mean, 0);
    if (!(squares > 0.0)) return 1.0;
    for (size_t lag = 0; lag + 1 < count / 2; lag += 2) {
        double pair = 0.0;
        for (size_t i = lag; i < lag + 2; i++)
            pair += i ? vp_impl_compare_products(first, second, count, scale, mean, i) / squares + 1.0 / (double)count
                      : 1.0;
        if (!(pair > 0.0)) break;
        before = pair < before ? pair : before;
        sum += before;
    }
    time = 2.0 * sum - 1.0;
    if (!(time > 1.0)) return 1.0;
    if (time > 0.5 * (double)count) time = 0.5 * (double)count;
    *variance = time < 0.8 * (double)count ? 1.0 / (1.0 - time / (double)count) : 5.0;
    return time;
}

/* vp_compare_paired with a given number of independent values, and a factor on the variance. */
static vp_result vp_impl_compare(const double *first, const double *second, size_t count, vp_scale scale, double margin,
                                 double alpha, size_t independent, double variance, vp_comparison *comparison) {
    const int logarithmic = scale == VP_SCALE_LOG;
    vp_mean_interval interval;
    vp_comparison made;
    double mean, squares, below, above, floor;
    if (!first || !second || !comparison || count < 2 || !(margin > 0.0 && margin < HUGE_VAL)
        || !(alpha > 0.0 && alpha < 0.5))
        return VP_ERR_RANGE;
    if (scale != VP_SCALE_ABSOLUTE && scale != VP_SCALE_RELATIVE && scale != VP_SCALE_LOG) return VP_ERR_RANGE;
    if (!vp_impl_compare_moments(first, second, count, scale, &mean, &squares)) return VP_ERR_RANGE;
    squares *= variance * (double)(independent - 1) / (double)(count - 1);
    if (vp_impl_mean_interval(independent, mean, squares, vp_impl_quantile(independent, 1.0 - alpha), &interval)
        != VP_OK)
        return VP_ERR_RANGE;
    below = !logarithmic ? margin : margin < 1.0 ? -log1p(-margin) : HUGE_VAL; /* no ratio is below 0 */
    above = logarithmic ? log1p(margin) : margin;
    made.count = count;
    made.estimate = logarithmic ? expm1(interval.mean) : interval.mean;
    made.low = made.high = (double)NAN;
    made.p_difference = made.p_equivalence = 1.0;
    /* differences below this are equal up to rounding */
    floor = 1e-12 * (scale == VP_SCALE_ABSOLUTE ? fabs(first[0]) + fabs(second[0]) : 1.0);
    if (interval.error > floor) {
        made.low = logarithmic ? expm1(interval.low) : interval.low;
        made.high = logarithmic ? expm1(interval.high) : interval.high;
        made.p_difference = interval.p;
        below = below < HUGE_VAL ? vp_student_tail((interval.mean + below) / interval.error, interval.degrees) : 0.0;
        above = vp_student_tail((above - interval.mean) / interval.error, interval.degrees);
        made.p_equivalence = 2.0 * (below > above ? below : above);
        if (made.p_equivalence > 1.0) made.p_equivalence = 1.0;
    } else if (fabs(interval.mean) > floor) made.p_difference = ldexp(1.0, 1 - (int)(count < 1000 ? count : 1000));
    made.verdict = vp_impl_verdict(&made, alpha);
    *comparison = made;
    return VP_OK;
}

VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale,
                                   double margin, double alpha, vp_comparison *comparison) {
    return vp_impl_compare(first, second, count, scale, margin, alpha, count, 1.0, comparison);
}

VP_API vp_result vp_compare_ordered(const double *first, const double *second, size_t count, vp_scale scale,
                                    double margin, double alpha, double *correlation_time, vp_comparison *comparison) {
    double time, variance;
    vp_result result = vp_compare_paired(first, second, count, scale, margin, alpha, comparison);
    if (result != VP_OK) return result;
    time = vp_impl_compare_time(first, second, count, scale, &variance);
    size_t independent = (size_t)((double)count / time);
    if (independent < 2) independent = 2;
    if (correlation_time) *correlation_time = time * variance;
    return vp_impl_compare(first, second, count, scale, margin, alpha, independent, variance, comparison);
}

VP_API double vp_compare_drift(const double *first, const double *second, size_t count, vp_scale scale, double *began,
                               double *ended) {
    const size_t third = count / 3;
    double middle = 0.5 * ((double)count - 1.0), mean = 0.0, squares = 0.0, slope = 0.0, step, part[2] = {0.0, 0.0};
    for (size_t i = 0; i < count; i++) {
        if (!vp_impl_compare_step(first[i], second[i], scale, &step)) return (double)NAN;
        mean += step / (double)count;
        if (i < third) part[0] += step / (double)third;
        if (i >= count - third) part[1] += step / (double)third;
    }
    if (count < 6) return 1.0;
    for (size_t i = 0; i < count; i++) {
        vp_impl_compare_step(first[i], second[i], scale, &step);
        squares += (step - mean) * (step - mean);
        slope += (step - mean) * ((double)i - middle);
    }
    *began = scale == VP_SCALE_LOG ? expm1(part[0]) : part[0];
    *ended = scale == VP_SCALE_LOG ? expm1(part[1]) : part[1];
    /* what the line explains, and what it leaves: count (count^2 - 1) / 12 is the spread of the places */
    slope *= slope / ((double)count * (middle + 1.0) * middle / 3.0);
    if (!(slope > 0.0)) return 1.0;
    slope *= (double)(count - 2) / (squares - slope);
    return slope > 0.0 && slope < HUGE_VAL ? 2.0 * vp_student_tail(sqrt(slope), (double)(count - 2)) : 0.0;
}

VP_API vp_result vp_compare_accuracy(const double *first, const double *second, size_t count, double range_low,
                                     double range_high, double margin, double alpha, void *scratch,
                                     size_t scratch_bytes, vp_comparison *comparison) {
    const double span = range_high - range_low;
    vp_bounded_interval interval;
    vp_comparison made;
    uint64_t counts[3];
    double below = 0.0, above = 0.0; /* p of "the difference is -margin or less", "margin or more" */
    if (!first || !comparison || !(margin > 0.0 && margin < HUGE_VAL) || !(alpha > 0.0 && alpha < 0.5))
        return VP_ERR_RANGE;
    vp_result result = vp_accuracy_interval(first, second, count, range_low, range_high, 1.0 - alpha, scratch,
                                            scratch_bytes, &interval);
    if (result != VP_OK) return result;
    made.count = count;
    made.estimate = interval.mean;
    made.low = interval.low;
    made.high = interval.high;
    made.p_difference = interval.p;
    if (margin < span && vp_impl_count_answers(first, second, count, range_low, range_high, counts)) {
        below = made.estimate > -margin ? vp_rate_difference_p(counts[0], counts[1], count, -margin / span) : 1.0;
        above = made.estimate < margin ? vp_rate_difference_p(counts[0], counts[1], count, margin / span) : 1.0;
    } else if (margin < span) {
        vp_impl_bounded bounded;
        result = vp_impl_bounded_fill(&bounded, first, second, count, -span, span, scratch, scratch_bytes);
        if (result != VP_OK) return result;
        below = vp_impl_bounded_p(&bounded, -1.0, -margin);
        above = vp_impl_bounded_p(&bounded, 1.0, margin);
    }
    made.p_equivalence = below > above ? below : above;
    made.verdict = vp_impl_verdict(&made, alpha);
    *comparison = made;
    return VP_OK;
}

/* the smallest n >= 2 with deviation * (t(first) + t(second)) <= distance * sqrt(n); 0: above 10^9. t decreases with n,
 * so the condition holds from a single n. */
static size_t vp_impl_plan(double deviation, double distance, double first, double second) {
    size_t low = 1, high = 1000000001;
    while (high - low > 1) {
        const size_t n = low + (high - low) / 2;
        const double degrees = (double)(n - 1);
        const double reach = deviation
                             * (vp_statistics_student(first, degrees) + vp_statistics_student(second, degrees));
        if (reach <= distance * sqrt((double)n)) high = n; else low = n;
    }
    return high <= 1000000000 ? high : 0;
}

VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power,
                                 size_t *count) {
    if (!(deviation >= 0.0 && deviation < HUGE_VAL) || !(margin > 0.0 && margin < effect && effect < HUGE_VAL)
        || !count)
        return VP_ERR_RANGE;
    if (!(alpha >= 1e-9 && alpha < 0.5) || !(power >= 0.5 && power <= 1.0 - 1e-9)) return VP_ERR_RANGE;
    size_t same = vp_impl_plan(deviation, margin, 1.0 - 0.5 * alpha, 0.5 + 0.5 * power);
    size_t found = vp_impl_plan(deviation, effect, 1.0 - 0.5 * alpha, power);
    if (!same || !found) return VP_ERR_RANGE;
    *count = same > found ? same : found;
    return VP_OK;
}

VP_API vp_result vp_compare_accuracy_plan(double deviation, double range, int is_binary, double margin, double effect,
                                          double alpha, double power, size_t *count) {
    const double share = margin / range;
    size_t by_spread;
    double by_range;
    if (!(share > 0.0 && share < 1.0) || !(alpha < 0.5) || !count) return VP_ERR_RANGE;
    if (vp_compare_plan(deviation, margin, effect, alpha, power, &by_spread) != VP_OK) return VP_ERR_RANGE;
    if (is_binary) {
        const double z = vp_normal_quantile(1.0 - 0.5 * alpha);
        by_range = ceil(z * z * (1.0 - share) / share);
    } else by_range = ceil(log(0.5 * alpha) / log1p(-share));
    if (!(by_range + (double)by_spread <= 1e9)) return VP_ERR_RANGE;
    *count = deviation > 0.0 ? by_spread + (size_t)by_range : (size_t)by_range;
    return VP_OK;
}

/* ---- Pareto fronts */
/* Reduces the points in index[0..count) to their front, in place; returns its size. */
static size_t vp_impl_front(const double *latency, const double *accuracy, vp_pareto_rule rule, uint32_t *index,
                            size_t count) {
    const int strict = rule == VP_PARETO_FIRST || rule == VP_PARETO_ALL;
    /* best so far; best of strictly faster points */
    double best = rule == VP_PARETO_SWEEP ? -1.0 : -HUGE_VAL, faster = -HUGE_VAL;
    size_t i, kept = 0;
    vp_impl_sort_index(latency, strict ? accuracy : NULL, index, count);
    for (i = 0; i < count; i++) {
        const uint32_t point = index[i];
        int keep;
        /* index[i - 1] is still unchanged, because kept <= i - 1 */
        if (i > 0 && latency[point] > latency[index[i - 1]]) faster = best;
        if (strict) {
            const int again = kept > 0 && !(latency[point] > latency[index[kept - 1]])
                              && !(accuracy[point] < accuracy[index[kept - 1]]);
            keep = accuracy[point] > best || (rule == VP_PARETO_ALL && again);
        } else if (rule == VP_PARETO_WEAK) {
            keep = accuracy[point] >= faster;
        } else {
            keep = accuracy[point] >= best - 1e-9;
        }
        if (accuracy[point] > best) best = accuracy[point];
        if (keep) index[kept++] = point;
    }
    return kept;
}

static int vp_impl_points_good(const double *latency, const double *accuracy, size_t count) {
    return vp_impl_counts_fit(count)
           && (!count
               || (latency && accuracy && vp_statistics_all_finite(latency, count)
                   && vp_statistics_all_finite(accuracy, count)));
}

VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule,
                                 uint32_t *front, size_t *front_count) {
    if (!vp_impl_points_good(latency, accuracy, count) || (count && !front) || !front_count) return VP_ERR_RANGE;
    if ((int)rule < VP_PARETO_FIRST || (int)rule > VP_PARETO_SWEEP) return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++) front[i] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, rule, front, count);
    return VP_OK;
}

VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key,
                                       size_t count, uint32_t *front, size_t *front_count) {
    size_t i, held = 0;
    if (!vp_impl_points_good(latency, accuracy, count) || (count && (!front || !keys)) || !front_count)
        return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (keys[i] == key) front[held++] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, VP_PARETO_FIRST, front, held);
    return VP_OK;
}

/* checks for a front of vp_pareto_front: both axes increase, except between equal points */
static int vp_impl_is_front(const double *latency, const double *accuracy, size_t count, const uint32_t *front,
                            size_t front_count) {
    if (!vp_impl_counts_fit(count) || front_count > count || (front_count && (!latency || !accuracy || !front)))
        return 0;
    for (size_t i = 0; i < front_count; i++) {
        if (front[i] >= count || !vp_impl_number(latency[front[i]]) || !vp_impl_number(accuracy[front[i]])) return 0;
        if (i > 0) {
            const double latency_step = latency[front[i]] - latency[front[i - 1]],
                         accuracy_step = accuracy[front[i]] - accuracy[front[i - 1]];
            if (!((latency_step > 0.0 && accuracy_step > 0.0)
                  || (latency_step >= 0.0 && latency_step <= 0.0 && accuracy_step >= 0.0 && accuracy_step <= 0.0)))
                return 0;
        }
    }
    return 1;
}

VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front,
                                   size_t front_count, vp_epsilon epsilon, uint32_t *kept, size_t *kept_count) {
    size_t i = 0, j, used = 0;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || (front_count && !kept) || !kept_count)
        return VP_ERR_RANGE;
    if (!(epsilon.latency >= 0.0 && epsilon.latency < HUGE_VAL)
        || !(epsilon.accuracy >= 0.0 && epsilon.accuracy < HUGE_VAL))
        return VP_ERR_RANGE;
    if (epsilon.relative && (epsilon.latency >= 1.0 || epsilon.accuracy >= 1.0)) return VP_ERR_RANGE;
    /* the fastest uncovered point needs one that is at most epsilon slower; the slowest such point covers the most
     * later points */
    while (i < front_count) {
        const double start = latency[front[i]],
                     reach = start + (epsilon.relative ? epsilon.latency * fabs(start) : epsilon.latency);
        for (j = i; j + 1 < front_count && latency[front[j + 1]] <= reach; j++) {}
        while (j > i && !(latency[front[j]] > latency[front[j - 1]])) j--; /* the first of equal points */
        uint32_t chosen = front[j];
        for (i = j + 1; i < front_count; i++) {
            const double wanted = accuracy[front[i]];
            if (!(accuracy[chosen] >= wanted - (epsilon.relative ? epsilon.accuracy * fabs(wanted) : epsilon.accuracy)))
                break;
        }
        kept[used++] = chosen; /* kept may be front: used <= j */
    }
    *kept_count = used;
    return VP_OK;
}

VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front,
                             size_t front_count, double latency_limit, double accuracy_limit) {
    double area = 0.0;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || !vp_impl_number(latency_limit)
        || !vp_impl_number(accuracy_limit))
        return (double)NAN;
    for (size_t i = 0; i < front_count; i++) {
        const double next =
            i + 1 < front_count && latency[front[i + 1]] < latency_limit ? latency[front[i + 1]] : latency_limit;
        const double width = next - latency[front[i]], height = accuracy[front[i]] - accuracy_limit;
        if (width > 0.0 && height > 0.0) area += width * height;
    }
    return area;
}

static size_t vp_impl_best(const double *latency, const double *accuracy, size_t count, double budget,
                           double min_accuracy) {
    size_t i, best = count;
    for (i = 0; i < count; i++) {
        if (!(latency[i] <= budget && accuracy[i] >= min_accuracy)) continue;
        if (best == count || accuracy[i] > accuracy[best]
            || (!(accuracy[i] < accuracy[best]) && latency[i] < latency[best]))
            best = i;
    }
    return best;
}

VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget,
                                double min_accuracy, uint32_t *best) {
    if (!vp_impl_points_good(latency, accuracy, count) || !(budget <= HUGE_VAL) || !(min_accuracy <= HUGE_VAL) || !best)
        return VP_ERR_RANGE;
    size_t found = vp_impl_best(latency, accuracy, count, budget, min_accuracy);
    if (found == count) return VP_ERR_NOT_FOUND;
    *best = (uint32_t)found;
    return VP_OK;
}

/* ---- bootstrap of a front */
VP_API vp_bootstrap_options vp_bootstrap_options_default(void) {
    vp_bootstrap_options options;
    options.resamples = 1000;
    options.seed = 42;
    options.percentile = 50.0;
    options.level = 0.95;
    options.budget = HUGE_VAL;
    options.min_accuracy = -HUGE_VAL;
    options.accuracy_rule = VP_ACCURACY_BOUNDED;
    options.accuracy_range_low = 0.0;
    options.accuracy_range_high = 1.0;
    return options;
}

typedef struct vp_impl_bootstrap {
    const double *latency, *accuracy; /* [configs, samples] */
    size_t configs, samples, resamples;
    double percentile;
    vp_random random;
    uint32_t *order;                        /* [configs, samples], each row by latency; percentiles only */
    uint32_t *times;                        /* [samples]: number of times that this resample drew each */
    double *axis_latency, *axis_accuracy;   /* [configs], this resample */
    double *all_latency, *all_accuracy;     /* [configs, resamples] */
    uint32_t *front;                        /* [configs] */
    uint32_t *member, *within, *best;       /* [configs] counts */
    void *bounded; size_t bounded_bytes;    /* scratch of one interval */
} vp_impl_bootstrap;

static int vp_impl_bootstrap_take(vp_impl_bootstrap *bootstrap, vp_arena *arena) {
    /* cannot overflow: the caller's matrices are larger */
    bootstrap->order = (uint32_t *)vp_arena_take(arena, bootstrap->configs * bootstrap->samples, sizeof(uint32_t));
    bootstrap->times = (uint32_t *)vp_arena_take(arena, bootstrap->samples, sizeof(uint32_t));
    bootstrap->axis_latency = (double *)vp_arena_take(arena, bootstrap->configs, sizeof(double));
    bootstrap->axis_accuracy = (double *)vp_arena_take(arena, bootstrap->configs, sizeof(double));
    bootstrap->all_latency = (double *)vp_arena_take(arena, bootstrap->configs, bootstrap->resamples * sizeof(double));
    bootstrap->all_accuracy = (double *)vp_arena_take(arena, bootstrap->configs, bootstrap->resamples * sizeof(double));
    bootstrap->front = (uint32_t *)vp_arena_take(arena, bootstrap->configs, 4 * sizeof(uint32_t));
    bootstrap->bounded_bytes = vp_bounded_scratch_bytes(bootstrap->samples);
    bootstrap->bounded = vp_arena_take(arena, bootstrap->bounded_bytes, 1);
    if (!bootstrap->bounded || !bootstrap->order || !bootstrap->times || !bootstrap->axis_latency
        || !bootstrap->axis_accuracy || !bootstrap->all_latency || !bootstrap->all_accuracy || !bootstrap->front)
        return 0;
    bootstrap->member = bootstrap->front + bootstrap->configs;
    bootstrap->within = bootstrap->member + bootstrap->configs;
    bootstrap->best = bootstrap->within + bootstrap->configs;
    memset(bootstrap->member, 0, 3 * bootstrap->configs * sizeof(uint32_t));
    return 1;
}

VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples) {
    size_t bytes = 64, points, draws;
    if (!vp_size_multiply(config_count, sample_count, &points) || !vp_size_multiply(config_count, resamples, &draws))
        return SIZE_MAX;
    vp_arena_need(&bytes, points, sizeof(uint32_t));
    vp_arena_need(&bytes, sample_count, sizeof(uint32_t));
    vp_arena_need(&bytes, config_count, sizeof(double));
    vp_arena_need(&bytes, config_count, sizeof(double));
    vp_arena_need(&bytes, draws, sizeof(double));
    vp_arena_need(&bytes, draws, sizeof(double));
    vp_arena_need(&bytes, config_count, 4 * sizeof(uint32_t));
    vp_arena_need(&bytes, vp_bounded_scratch_bytes(sample_count), 1);
    return bytes;
}

/* The percentile of a row in which value j occurs times[j] times, equal to vp_statistics_percentile of the sorted
 * copies. It counts through the sorted row from the nearer end up to the two values around the percentile. */
static double vp_impl_percentile_times(const double *row, const uint32_t *order, const uint32_t *times, size_t count,
                                       double percentile) {
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
    for (i = 0; i + 4 <= count; i += 4) { /* four sums, so that additions are independent */
        part[0] += row[i] * (double)times[i];
        part[1] += row[i + 1] * (double)times[i + 1];
        part[2] += row[i + 2] * (double)times[i + 2];
        part[3] += row[i + 3] * (double)times[i + 3];
    }
    for (; i < count; i++) part[0] += row[i] * (double)times[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) / (double)count;
}

static void vp_impl_bootstrap_axes(const vp_impl_bootstrap *bootstrap) {
    for (size_t config = 0; config < bootstrap->configs; config++) {
        const double *row = bootstrap->latency + config * bootstrap->samples;
        bootstrap->axis_latency[config] =
            bootstrap->percentile < 0.0
                ? vp_impl_mean_times(row, bootstrap->times, bootstrap->samples)
                : vp_impl_percentile_times(row, bootstrap->order + config * bootstrap->samples, bootstrap->times,
                                           bootstrap->samples, bootstrap->percentile);
        bootstrap->axis_accuracy[config] =
            vp_impl_mean_times(bootstrap->accuracy + config * bootstrap->samples, bootstrap->times, bootstrap->samples);
    }
}

static void vp_impl_bootstrap_draw(vp_impl_bootstrap *bootstrap, size_t round, double budget, double min_accuracy) {
    size_t i, found;
    memset(bootstrap->times, 0, bootstrap->samples * sizeof *bootstrap->times);
    for (i = 0; i < bootstrap->samples; i++)
        bootstrap->times[vp_random_below(&bootstrap->random, (uint64_t)bootstrap->samples - 1)]++;
    vp_impl_bootstrap_axes(bootstrap);
    for (i = 0; i < bootstrap->configs; i++) {
        bootstrap->front[i] = (uint32_t)i;
        bootstrap->all_latency[i * bootstrap->resamples + round] = bootstrap->axis_latency[i];
        bootstrap->all_accuracy[i * bootstrap->resamples + round] = bootstrap->axis_accuracy[i];
        if (bootstrap->axis_latency[i] <= budget && bootstrap->axis_accuracy[i] >= min_accuracy) bootstrap->within[i]++;
    }
    found = vp_impl_best(bootstrap->axis_latency, bootstrap->axis_accuracy, bootstrap->configs, budget, min_accuracy);
    if (found < bootstrap->configs) bootstrap->best[found]++;
    found = vp_impl_front(bootstrap->axis_latency, bootstrap->axis_accuracy, VP_PARETO_ALL, bootstrap->front,
                          bootstrap->configs);
    for (i = 0; i < found; i++) bootstrap->member[bootstrap->front[i]]++;
}

static vp_result vp_impl_bootstrap_check(const vp_impl_bootstrap *bootstrap, const vp_bootstrap_options *options) {
    size_t points;
    if (!bootstrap->latency || !bootstrap->accuracy || !bootstrap->configs || !bootstrap->samples
        || !vp_impl_counts_fit(bootstrap->configs) || !vp_impl_counts_fit(bootstrap->samples))
        return VP_ERR_RANGE;
    if (!vp_size_multiply(bootstrap->configs, bootstrap->samples, &points) || points > SIZE_MAX / sizeof(double))
        return VP_ERR_RANGE;
    if (options->resamples < 1 || options->resamples > 1000000 || !(options->percentile <= 100.0)
        || !vp_impl_share(options->level))
        return VP_ERR_RANGE;
    if (!(options->budget <= HUGE_VAL) || !(options->min_accuracy <= HUGE_VAL)) return VP_ERR_RANGE;
    if (options->accuracy_rule != VP_ACCURACY_PERCENTILE
        && (options->accuracy_rule != VP_ACCURACY_BOUNDED
            || !vp_impl_scores_good(NULL, bootstrap->accuracy, points, options->accuracy_range_low,
                                    options->accuracy_range_high)))
        return VP_ERR_RANGE;
    return vp_statistics_all_finite(bootstrap->latency, points) && vp_statistics_all_finite(bootstrap->accuracy, points)
               ? VP_OK
               : VP_ERR_RANGE;
}

VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes,
                              vp_bootstrap_point *points) {
    vp_arena arena = vp_arena_over(scratch, scratch_bytes);
    vp_impl_bootstrap bootstrap;
    if (!options || !points) return VP_ERR_RANGE;
    bootstrap.latency = latency;
    bootstrap.accuracy = accuracy;
    bootstrap.configs = config_count;
    bootstrap.samples = sample_count;
    bootstrap.resamples = options->resamples;
    bootstrap.percentile = options->percentile;
    if (vp_impl_bootstrap_check(&bootstrap, options) != VP_OK) return VP_ERR_RANGE;
    if (!vp_impl_bootstrap_take(&bootstrap, &arena)) return VP_ERR_CAPACITY;
    vp_random_seed(&bootstrap.random, options->seed);
    for (size_t config = 0; config < config_count && options->percentile >= 0.0; config++) {
        for (size_t i = 0; i < sample_count; i++) bootstrap.order[config * sample_count + i] = (uint32_t)i;
        vp_impl_sort_index(latency + config * sample_count, NULL, bootstrap.order + config * sample_count,
                           sample_count);
    }
    for (size_t i = 0; i < bootstrap.resamples; i++)
        vp_impl_bootstrap_draw(&bootstrap, i, options->budget, options->min_accuracy);
    for (size_t i = 0; i < sample_count; i++) bootstrap.times[i] = 1; /* the original samples */
    vp_impl_bootstrap_axes(&bootstrap);
    for (size_t config = 0; config < config_count; config++) {
        double *latencies = bootstrap.all_latency + config * bootstrap.resamples,
               *accuracies = bootstrap.all_accuracy + config * bootstrap.resamples;
        const double below = 50.0 * (1.0 - options->level);
        vp_sort_double(latencies, bootstrap.resamples);
        vp_sort_double(accuracies, bootstrap.resamples);
        points[config].latency = bootstrap.axis_latency[config];
        points[config].accuracy = bootstrap.axis_accuracy[config];
        points[config].latency_low = vp_statistics_percentile(latencies, bootstrap.resamples, below);
        points[config].latency_high = vp_statistics_percentile(latencies, bootstrap.resamples, 100.0 - below);
        points[config].accuracy_low = vp_statistics_percentile(accuracies, bootstrap.resamples, below);
        points[config].accuracy_high = vp_statistics_percentile(accuracies, bootstrap.resamples, 100.0 - below);
        if (options->accuracy_rule == VP_ACCURACY_BOUNDED) {
            vp_bounded_interval interval; /* cannot fail: the scores were checked */
            vp_accuracy_interval(NULL, accuracy + config * sample_count, sample_count, options->accuracy_range_low,
                                 options->accuracy_range_high, options->level, bootstrap.bounded,
                                 bootstrap.bounded_bytes, &interval);
            points[config].accuracy_low = interval.low;
            points[config].accuracy_high = interval.high;
        }
        points[config].membership = (double)bootstrap.member[config] / (double)bootstrap.resamples;
        points[config].within_budget = (double)bootstrap.within[config] / (double)bootstrap.resamples;
        points[config].best = (double)bootstrap.best[config] / (double)bootstrap.resamples;
    }
    return VP_OK;
}

/* ---- Householder reflections */
VP_API double vp_reflection_make(double *v, size_t rows, size_t row) {
    double largest = 0.0, sum = 0.0, length, factor;
    for (size_t i = row + 1; i < rows; i++) if (fabs(v[i]) > largest) largest = fabs(v[i]);
    if (!(largest > 0.0)) return 0.0;
    if (fabs(v[row]) > largest) largest = fabs(v[row]);
    for (size_t i = row; i < rows; i++) sum += (v[i] / largest) * (v[i] / largest);
    length = v[row] > 0.0 ? -largest * sqrt(sum) : largest * sqrt(sum);
    factor = (length - v[row]) / length;
    for (size_t i = row + 1; i < rows; i++) v[i] /= v[row] - length;
    v[row] = length;
    return factor;
}

VP_API void vp_reflection_apply(const double *v, double factor, size_t rows, size_t row, double *y) {
    double dot = y[row];
    for (size_t i = row + 1; i < rows; i++) dot += v[i] * y[i];
    dot *= factor;
    y[row] -= dot;
    for (size_t i = row + 1; i < rows; i++) y[i] -= dot * v[i];
}

/* ---- coupling of the knobs */
static int vp_impl_knobs_good(const vp_knobs *knobs, int32_t order) {
    if (!knobs || !knobs->levels || knobs->knob_count < 1 || knobs->knob_count > VP_KNOB_LIMIT
        || (order != 1 && order != 2) || !knobs->config_count)
        return 0;
    for (int32_t i = 0; i < knobs->knob_count; i++)
        if (knobs->level_counts[i] < 1 || knobs->level_counts[i] > VP_KNOB_LEVEL_LIMIT) return 0;
    return knobs->config_count <= SIZE_MAX / VP_KNOB_LIMIT && vp_impl_counts_fit(knobs->config_count);
}

static size_t vp_impl_effect_columns(const vp_knobs *knobs, int32_t order) {
    size_t columns = 1;
    for (int32_t a = 0; a < knobs->knob_count; a++) {
        columns += (size_t)(knobs->level_counts[a] - 1);
        for (int32_t b = a + 1; order == 2 && b < knobs->knob_count; b++)
            columns += (size_t)(knobs->level_counts[a] - 1) * (size_t)(knobs->level_counts[b] - 1);
    }
    return columns; /* at most 8 * 256 + 28 * 2^16 */
}

VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order) {
    size_t count = 1;
    if (!vp_impl_knobs_good(knobs, order)) return 0;
    for (int32_t a = 0; a < knobs->knob_count; a++) {
        count += 2 * (size_t)knobs->level_counts[a] - 1;
        for (int32_t b = a + 1; order == 2 && b < knobs->knob_count; b++)
            count += (size_t)knobs->level_counts[a] * (size_t)knobs->level_counts[b];
    }
    return count;
}

typedef struct vp_impl_effects {
    const vp_knobs *knobs;
    int32_t order;
    size_t rows, columns, count;
    double *design;                 /* [columns, rows], then its factor */
    double *factor;                 /* [columns], factors of the reflections */
    double *vector;                 /* [rows]: one sample */
    double *means;                  /* [rows]: means of the configurations */
    double *mean, *squares, *value; /* [count] */
} vp_impl_effects;

static vp_impl_effects vp_impl_effects_of(const vp_knobs *knobs, int32_t order) {
    vp_impl_effects work = {0};
    work.knobs = knobs;
    work.order = order;
    work.rows = knobs->config_count;
    work.columns = vp_impl_effect_columns(knobs, order);
    work.count = vp_effect_count(knobs, order);
    return work;
}
static int vp_impl_effects_take(vp_impl_effects *work, vp_arena *arena, size_t *need) {
    const size_t rows = work->rows,
                 want[7] = {work->columns, work->columns, rows, rows, work->count, work->count, work->count};
    double *got[7];
    for (size_t i = 0; i < 7; i++) {
        const size_t each = (i == 0 ? rows : 1) * sizeof(double); /* rows fit in 32 bits; at most 1024 columns */
        if (need) vp_arena_need(need, want[i], each);
        got[i] = arena ? (double *)vp_arena_take(arena, want[i], each) : NULL;
        if (arena && !got[i]) return 0;
    }
    work->design = got[0];
    work->factor = got[1];
    work->vector = got[2];
    work->means = got[3];
    work->mean = got[4];
    work->squares = got[5];
    work->value = got[6];
    return 1;
}

VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order) {
    size_t bytes = 64;
    if (!vp_impl_knobs_good(knobs, order) || vp_impl_effect_columns(knobs, order) > VP_EFFECT_COLUMNS_LIMIT)
        return SIZE_MAX;
    vp_impl_effects work = vp_impl_effects_of(knobs, order);
    vp_impl_effects_take(&work, NULL, &bytes);
    return bytes;
}

/* the code of a level in a knob's column; effects add up to 0, so the last level is minus the sum of the others */
static double vp_impl_code(int32_t level, int32_t level_count, int32_t column) {
    return level == level_count - 1 ? -1.0 : level == column ? 1.0 : 0.0;
}

static void vp_impl_design_row(const vp_impl_effects *work, size_t row) {
    const vp_knobs *knobs = work->knobs;
    const int32_t *level = knobs->levels + row * (size_t)knobs->knob_count;
    size_t column = 0;
    work->design[column++ * work->rows + row] = 1.0;
    for (int32_t a = 0; a < knobs->knob_count; a++) {
        for (int32_t i = 0; i + 1 < knobs->level_counts[a]; i++)
            work->design[column++ * work->rows + row] = vp_impl_code(level[a], knobs->level_counts[a], i);
    }
    for (int32_t a = 0; a < knobs->knob_count && work->order == 2; a++) {
        for (int32_t b = a + 1; b < knobs->knob_count; b++) {
            for (int32_t i = 0; i + 1 < knobs->level_counts[a]; i++) {
                for (int32_t j = 0; j + 1 < knobs->level_counts[b]; j++) {
                    work->design[column++ * work->rows + row] = vp_impl_code(level[a], knobs->level_counts[a], i)
                                                                * vp_impl_code(level[b], knobs->level_counts[b], j);
                }
            }
        }
    }
}

/* Factors the design. Returns 0 if its columns are dependent. Its entries are small integers, so the remainder of a
 * dependent column is only rounding error. */
static int vp_impl_design_factor(const vp_impl_effects *work) {
    if (work->rows < work->columns) return 0;
    for (size_t r = 0; r < work->rows; r++) vp_impl_design_row(work, r);
    for (size_t c = 0; c < work->columns; c++) {
        double *column = work->design + c * work->rows, whole = 0.0;
        for (size_t r = 0; r < work->rows; r++) whole += column[r] * column[r];
        work->factor[c] = vp_reflection_make(column, work->rows, c);
        if (!(fabs(column[c]) > 1e-9 * sqrt(whole))) return 0;
        for (size_t i = c + 1; i < work->columns; i++)
            vp_reflection_apply(column, work->factor[c], work->rows, c, work->design + i * work->rows);
    }
    return 1;
}

/* computes the coefficients of the values in work->vector, and stores them at its start */
static void vp_impl_design_solve(const vp_impl_effects *work) {
    double *y = work->vector;
    for (size_t c = 0; c < work->columns; c++)
        vp_reflection_apply(work->design + c * work->rows, work->factor[c], work->rows, c, y);
    for (size_t c = work->columns; c-- > 0;) {
        y[c] /= work->design[c * work->rows + c];
        for (size_t r = 0; r < c; r++) y[r] -= work->design[c * work->rows + r] * y[c];
    }
}

/* the effect of a pair of levels; a last level is minus the sum over the others */
static double vp_impl_pair_effect(const double *coefficient, int32_t levels_a, int32_t levels_b, int32_t level_a,
                                  int32_t level_b) {
    double sum = 0.0;
    for (int32_t i = 0; i + 1 < levels_a; i++) {
        for (int32_t j = 0; j + 1 < levels_b; j++) {
            sum += vp_impl_code(level_a, levels_a, i) * vp_impl_code(level_b, levels_b, j)
                   * coefficient[i * (levels_b - 1) + j];
        }
    }
    return sum;
}

/* Computes all effects of one sample from its coefficients, in row order. Fills the labels of `effects` unless it is
 * NULL. */
static void vp_impl_effects_expand(const vp_impl_effects *work, double *value, vp_effect *effects) {
    const vp_knobs *knobs = work->knobs;
    const double *coefficient = work->vector;
    vp_effect label = {0};
    size_t at = 0;
    label.kind = VP_EFFECT_MEAN;
    label.knob_a = label.level_a = label.knob_b = label.level_b = -1;
    if (effects) effects[at] = label;
    value[at++] = *coefficient++;
    for (int32_t a = 0; a < knobs->knob_count; coefficient += knobs->level_counts[a++] - 1) {
        const size_t first = at;
        for (int32_t step = 0; step < 2; step++) {
            for (int32_t i = step; i < knobs->level_counts[a]; i++) {
                label.kind = step ? VP_EFFECT_STEP : VP_EFFECT_MAIN;
                label.knob_a = a;
                label.level_a = i;
                if (effects) effects[at] = label;
                /* a main effect is a pair with the first level of a two-level knob */
                value[at] = step ? value[first + (size_t)i] - value[first + (size_t)i - 1]
                                 : vp_impl_pair_effect(coefficient, knobs->level_counts[a], 2, i, 0);
                at++;
            }
        }
    }
    label.kind = VP_EFFECT_PAIR;
    for (int32_t a = 0; a < knobs->knob_count && work->order == 2; a++) {
        for (int32_t b = a + 1; b < knobs->knob_count; b++) {
            const int32_t count_a = knobs->level_counts[a], count_b = knobs->level_counts[b];
            for (int32_t i = 0; i < count_a; i++) {
                for (int32_t j = 0; j < count_b; j++) {
                    label.knob_a = a;
                    label.level_a = i;
                    label.knob_b = b;
                    label.level_b = j;
                    if (effects) effects[at] = label;
                    value[at++] = vp_impl_pair_effect(coefficient, count_a, count_b, i, j);
                }
            }
            coefficient += (count_a - 1) * (count_b - 1);
        }
    }
}

#define VP_IMPL_ROUNDING 1e-12 /* relative differences below this are of the arithmetic, not of the configurations */
/* computes shares of the variance between configurations, from the estimates in work->mean and the means in
 * work->means */
static void vp_impl_effects_shares(const vp_impl_effects *work, double *shares) {
    const vp_knobs *knobs = work->knobs;
    double average = 0.0, total = 0.0;
    size_t c, at, term,
        terms = (size_t)knobs->knob_count
                + (work->order == 2 ? (size_t)(knobs->knob_count * (knobs->knob_count - 1) / 2) : 0);
    int32_t a, b;
    for (c = 0; c < work->rows; c++) average += work->means[c];
    average /= (double)work->rows;
    for (term = 0; term <= terms; term++) shares[term] = 0.0;
    for (c = 0; c < work->rows; c++) {
        const int32_t *level = knobs->levels + c * (size_t)knobs->knob_count;
        double rest = work->means[c] - work->mean[0], part;
        total += (work->means[c] - average) * (work->means[c] - average);
        for (a = 0, at = 1, term = 0; a < knobs->knob_count; at += 2 * (size_t)knobs->level_counts[a++] - 1, term++) {
            part = work->mean[at + (size_t)level[a]];
            shares[term] += part * part;
            rest -= part;
        }
        for (a = 0; a < knobs->knob_count && work->order == 2; a++) {
            for (b = a + 1; b < knobs->knob_count; b++, term++) {
                part = work->mean[at + (size_t)level[a] * (size_t)knobs->level_counts[b] + (size_t)level[b]];
                shares[term] += part * part;
                rest -= part;
                at += (size_t)knobs->level_counts[a] * (size_t)knobs->level_counts[b];
            }
        }
        shares[terms] += rest * rest;
    }
    if (total <= VP_IMPL_ROUNDING * VP_IMPL_ROUNDING * average * average * (double)work->rows) total = 0.0;
    for (term = 0; term <= terms; term++) shares[term] = total > 0.0 ? shares[term] / total : 0.0;
}

static vp_result vp_impl_effects_check(const vp_knobs *knobs, const double *values, size_t samples, int32_t order,
                                       vp_error *error) {
    size_t i, points;
    if (!vp_impl_knobs_good(knobs, order))
        return vp_error_set(error, VP_ERR_RANGE, -1, "knobs", "a count is out of range, or order is not 1 or 2");
    for (i = 0; i < knobs->config_count * (size_t)knobs->knob_count; i++) {
        if (knobs->levels[i] < 0 || knobs->levels[i] >= knobs->level_counts[i % (size_t)knobs->knob_count])
            return vp_error_set(error, VP_ERR_RANGE, (int64_t)i, "knobs", "a level is outside 0..level_count - 1");
    }
    if (vp_impl_effect_columns(knobs, order) > VP_EFFECT_COLUMNS_LIMIT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "knobs", "over 1024 coefficients; use order 1 or fewer levels");
    if (samples < 2 || !values || !vp_impl_counts_fit(samples)
        || !vp_size_multiply(knobs->config_count, samples, &points) || points > SIZE_MAX / sizeof(double)
        || !vp_statistics_all_finite(values, points))
        return vp_error_set(error, VP_ERR_RANGE, -1, "values", "needs 2 or more samples, all finite");
    return VP_OK;
}

VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order,
                            double level, void *scratch, size_t scratch_bytes, vp_effect *effects, double *shares,
                            vp_error *error) {
    vp_arena arena = vp_arena_over(scratch, scratch_bytes);
    vp_mean_interval interval;
    if (!effects || !vp_impl_share(level))
        return vp_error_set(error, VP_ERR_RANGE, -1, "effects", "effects is NULL, or level is not between 0 and 1");
    if (vp_impl_effects_check(knobs, values, sample_count, order, error) != VP_OK) return VP_ERR_RANGE;
    vp_impl_effects work = vp_impl_effects_of(knobs, order);
    if (!vp_impl_effects_take(&work, &arena, NULL))
        return vp_error_set(error, VP_ERR_CAPACITY, -1, "effects", "scratch is too small");
    if (!vp_impl_design_factor(&work)) {
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "effects",
                            order == 2 ? "these configurations cannot separate the interactions; use order 1"
                                       : "these configurations cannot separate the knobs' effects");
    }
    memset(work.mean, 0, work.count * sizeof(double));
    memset(work.squares, 0, work.count * sizeof(double));
    memset(work.means, 0, work.rows * sizeof(double));
    for (size_t sample = 0; sample < sample_count; sample++) { /* Welford's running mean and squares */
        double scale = 0.0;
        for (size_t i = 0; i < work.rows; i++) {
            work.vector[i] = values[i * sample_count + sample];
            work.means[i] += work.vector[i];
            if (fabs(work.vector[i]) > scale) scale = fabs(work.vector[i]);
        }
        vp_impl_design_solve(&work);
        vp_impl_effects_expand(&work, work.value, NULL);
        for (size_t i = 0; i < work.count; i++) {
            if (fabs(work.value[i]) <= VP_IMPL_ROUNDING * scale) work.value[i] = 0.0;
            double step = work.value[i] - work.mean[i];
            work.mean[i] += step / (double)(sample + 1);
            work.squares[i] += step * (work.value[i] - work.mean[i]);
        }
    }
    for (size_t i = 0; i < work.rows; i++) work.means[i] /= (double)sample_count;
    double quantile = vp_impl_quantile(sample_count, level);
    for (size_t i = 0; i < work.count; i++) {
        if (vp_impl_mean_interval(sample_count, work.mean[i], work.squares[i], quantile, &interval) != VP_OK)
            return vp_error_set(error, VP_ERR_RANGE, -1, "values", "the sum is too large");
    }
    vp_impl_effects_expand(&work, work.value, effects);
    for (size_t i = 0; i < work.count; i++) {
        vp_impl_mean_interval(sample_count, work.mean[i], work.squares[i], quantile, &interval);
        effects[i].estimate = work.mean[i];
        effects[i].low = interval.low;
        effects[i].high = interval.high;
        effects[i].p = interval.p;
    }
    if (shares) vp_impl_effects_shares(&work, shares);
    return VP_OK;
}

VP_API size_t vp_effects_bounded_scratch_bytes(const vp_knobs *knobs, size_t sample_count, int32_t order) {
    size_t bytes = vp_effects_scratch_bytes(knobs, order), more = vp_bounded_scratch_bytes(sample_count), each;
    if (bytes == SIZE_MAX || more == SIZE_MAX || !vp_size_multiply(sample_count, sizeof(double), &each)
        || !vp_size_add(bytes, more, &bytes))
        return SIZE_MAX;
    vp_arena_need(&bytes, vp_effect_count(knobs, order), each);
    return bytes;
}

/* Computes the range of each effect of a sample whose values are in the range, into work->mean and work->squares. The
 * weight of a configuration is the effect of the value 1 there and 0 elsewhere. */
static void vp_impl_effect_ranges(const vp_impl_effects *work, double range_low, double range_high) {
    for (size_t i = 0; i < work->count; i++) work->mean[i] = work->squares[i] = 0.0;
    for (size_t config = 0; config < work->rows; config++) {
        for (size_t i = 0; i < work->rows; i++) work->vector[i] = i == config ? 1.0 : 0.0;
        vp_impl_design_solve(work);
        vp_impl_effects_expand(work, work->value, NULL);
        for (size_t i = 0; i < work->count; i++) {
            const double weight = work->value[i];
            work->mean[i] += weight * (weight > 0.0 ? range_low : range_high);
            work->squares[i] += weight * (weight > 0.0 ? range_high : range_low);
        }
    }
}

VP_API vp_result vp_effects_bounded(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order,
                                    double range_low, double range_high, double level, void *scratch,
                                    size_t scratch_bytes, vp_effect *effects, vp_error *error) {
    vp_arena arena = vp_arena_over(scratch, scratch_bytes);
    const size_t bounded_bytes = vp_bounded_scratch_bytes(sample_count);
    double *all;
    void *more;
    if (!effects || !vp_impl_share(level) || !(range_low < range_high))
        return vp_error_set(error, VP_ERR_RANGE, -1, "effects",
                            "effects is NULL, level is not between 0 and 1, or range_low is not below range_high");
    if (vp_impl_effects_check(knobs, values, sample_count, order, error) != VP_OK) return VP_ERR_RANGE;
    if (!vp_impl_scores_good(NULL, values, knobs->config_count * sample_count, range_low, range_high))
        return vp_error_set(error, VP_ERR_RANGE, -1, "values", "a score is outside the range");
    vp_impl_effects work = vp_impl_effects_of(knobs, order);
    if (!vp_impl_effects_take(&work, &arena, NULL)
        || !(all = (double *)vp_arena_take(&arena, work.count, sample_count * sizeof(double)))
        || !(more = vp_arena_take(&arena, bounded_bytes, 1)))
        return vp_error_set(error, VP_ERR_CAPACITY, -1, "effects", "scratch is too small");
    if (!vp_impl_design_factor(&work))
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "effects", "these configurations cannot separate the effects");
    for (size_t sample = 0; sample < sample_count; sample++) {
        for (size_t i = 0; i < work.rows; i++) work.vector[i] = values[i * sample_count + sample];
        vp_impl_design_solve(&work);
        vp_impl_effects_expand(&work, work.value, NULL);
        for (size_t i = 0; i < work.count; i++) all[i * sample_count + sample] = work.value[i];
    }
    vp_impl_effect_ranges(&work, range_low, range_high);
    for (size_t i = 0; i < work.count; i++) {
        vp_bounded_interval interval;
        /* an effect of a knob with one level is always 0 */
        if (!(work.squares[i] - work.mean[i] > 1e-9 * (range_high - range_low))) continue;
        if (vp_bounded_mean(NULL, all + i * sample_count, sample_count, work.mean[i], work.squares[i], level, more,
                            bounded_bytes, &interval)
            != VP_OK)
            return vp_error_set(error, VP_ERR_RANGE, -1, "values", "an effect is outside its range");
        effects[i].low = interval.low;
        effects[i].high = interval.high;
        effects[i].p = interval.p;
    }
    return VP_OK;
}

VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next) {
    int32_t i;
    if (!vp_impl_knobs_good(knobs, 1) || config >= knobs->config_count || knob < 0 || knob >= knobs->knob_count
        || !next)
        return VP_ERR_RANGE;
    const int32_t *own = knobs->levels + config * (size_t)knobs->knob_count;
    size_t found = knobs->config_count;
    for (size_t candidate = 0; candidate < knobs->config_count; candidate++) {
        const int32_t *other = knobs->levels + candidate * (size_t)knobs->knob_count;
        if (other[knob] <= own[knob]) continue;
        for (i = 0; i < knobs->knob_count && (i == knob || other[i] == own[i]); i++) {}
        if (i == knobs->knob_count
            && (found == knobs->config_count
                || other[knob] < knobs->levels[found * (size_t)knobs->knob_count + (size_t)knob]))
            found = candidate;
    }
    if (found == knobs->config_count) return VP_ERR_NOT_FOUND;
    *next = found;
    return VP_OK;
}

VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy,
                                 const double *second_latency, const double *second_accuracy, size_t sample_count,
                                 double level, vp_gain *gain) {
    vp_gain made;
    double together = 0.0, reach, l, a, half;
    if (!first_latency || !first_accuracy || !gain) return VP_ERR_RANGE;
    if (vp_paired_t(first_latency, second_latency, sample_count, level, &made.latency) != VP_OK) return VP_ERR_RANGE;
    if (vp_paired_t(first_accuracy, second_accuracy, sample_count, level, &made.accuracy) != VP_OK) return VP_ERR_RANGE;
    l = made.latency.mean;
    a = made.accuracy.mean;
    for (size_t i = 0; i < sample_count; i++)
        together += (second_latency[i] - first_latency[i] - l) * (second_accuracy[i] - first_accuracy[i] - a);
    together /= made.latency.degrees * (double)sample_count; /* covariance of the two means */
    reach = vp_impl_quantile(sample_count, level);
    reach *= reach;
    made.gain = l > 0.0 || l < 0.0 ? a / l : (double)NAN;
    made.low = -HUGE_VAL;
    made.high = HUGE_VAL;
    /* the ratios r for which a - r l does not differ significantly from 0: a quadratic in r */
    half = l * l - reach * made.latency.error * made.latency.error;
    if (half > 0.0) {
        const double middle = a * l - reach * together,
                     last = a * a - reach * made.accuracy.error * made.accuracy.error;
        const double root = middle * middle - half * last;
        made.low = (middle - sqrt(root > 0.0 ? root : 0.0)) / half;
        made.high = (middle + sqrt(root > 0.0 ? root : 0.0)) / half;
    }
    *gain = made;
    return VP_OK;
}
