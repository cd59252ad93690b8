/* load_answer.c: finds the highest load at which an objective is met, from trials at several loads. */
#include "load/load_answer.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

const char *const LOAD_VERDICTS[] = {"holds", "fails", "undecided"};
/* Squared z scores. Each further trial on a side adds to what chance can produce: the sum of k squared halves. */
static const double Z2_LEVEL = 3.841459, Z2_PER_TRIAL = 1.4;
/* For the curve: distances in the logarithm of the load, and logits per unit of it. */
static const double NEAR = 0.25, FAR = 0.15, SLOPE_LEAST = 0.5, SLOPE_MOST = 400;
static const double CURVE_LEVEL = 3.841459;   /* limit of twice the log-likelihood ratio, from simulated searches */
enum { CURVE_TRIALS = 3, STEPS = 10, NARROWINGS = 20 };

struct load_point load_point_of(const struct load_summary *summary, double at, double accuracy_limit) {
    const vp_series_value *good = &summary->good_share;
    const double latency_time = summary->latency[LOAD_E2E][LOAD_P50].correlation_time;
    const vp_estimate *scored = &summary->accuracy;
    const vp_series_value accuracy = {scored->value, scored->low, scored->high, (double)NAN};
    struct load_point point = {at, good->value, 0, 1, 0, load_trial_of_accuracy(&accuracy, accuracy_limit)};
    double time;
    if (isnan(good->value)) return point;
    point.count = (double)(summary->due - summary->empty);
    point.time = good->correlation_time >= 1 ? good->correlation_time : 1;
    /* Bad requests come in clumps, and a short trial may have seen none. When a queue grows, all latencies depend on
     * each other and every request is bad. */
    time = point.good > 0.5 && latency_time > point.time ? latency_time : point.time;
    point.independent = fmax(1, point.count / time);
    return point;
}
/* How strongly a trial contradicts a share of at most (is_above) or at least `share` at its load. */
static double contradiction(const struct load_point *point, double share, int is_above) {
    const double more = is_above ? point->good - share : share - point->good;
    const double evidence = more > 0 ? point->independent * more * more / (share * (1 - share)) : 0;
    if (point->accuracy == VP_TRIAL_FAILS) return is_above ? 0 : 1e6;
    return evidence;
}
/* How strongly all trials contradict an answer between the trials which - 1 and `which`; count: above all trials. */
static double cost_of(const struct load_point *points, size_t count, size_t which, double share) {
    double cost = 0;
    for (size_t i = 0; i < count; i++)
        if (points[i].independent > 0) cost += contradiction(&points[i], share, i >= which);
    return cost;
}
static double limit_near(const struct load_point *points, size_t count, double at) {
    size_t near = 0;
    for (size_t i = 0; i < count; i++)
        near += at > 0 && fabs(log(points[i].at / at)) <= NEAR && points[i].independent > 0;
    return Z2_LEVEL + Z2_PER_TRIAL * (near > 2 ? (double)(near - 1) / 2 : 0);
}
/* Uses only the order of the trials. */
static void answer_by_order(const struct load_point *points, size_t count, double share, struct load_answer *answer) {
    double *costs = resize(NULL, count + 1, sizeof *costs), least = HUGE_VAL;
    size_t first = 0, last = 0;
    for (size_t gap = 0; gap <= count; gap++) {
        costs[gap] = cost_of(points, count, gap, share);
        if (costs[gap] < least - 1e-9) { least = costs[gap]; first = gap; }
        if (costs[gap] <= least + 1e-9) last = gap;
    }
    answer->likely_low = first ? points[first - 1].at : 0;
    answer->likely_high = last < count ? points[last].at : HUGE_VAL;
    answer->low = HUGE_VAL;
    answer->high = 0;
    for (size_t gap = 0; gap <= count; gap++) {
        const double from = gap ? points[gap - 1].at : 0, to = gap < count ? points[gap].at : HUGE_VAL;
        if (costs[gap] - least > limit_near(points, count, from > 0 ? from : to)) continue;
        if (from < answer->low) answer->low = from;
        if (to > answer->high) answer->high = to;
    }
    free(costs);
}

/* ---- the curve */
struct curve { const struct load_point *points; size_t from, to; double logit, *weights, *logs; };
/* Sets the weight of each trial. A trial far from the centre counts for fewer requests, because the curve is only
 * straight near the answer. All trials share one correlation time, the mean over bad requests. If each had its own, a
 * trial that saw no clump of bad requests by chance would outweigh one that saw several, and the answer would be too
 * high. */
static void set_weights(struct curve *curve, double centre) {
    double times = 0, sum = 0;
    for (size_t i = curve->from; i < curve->to; i++) {
        const double far = log(curve->points[i].at / centre) / FAR;
        curve->logs[i] = log(curve->points[i].at);
        curve->weights[i] = curve->points[i].count * exp(-far * far / 2);
        times += curve->weights[i] * (1 - curve->points[i].good) * curve->points[i].time;
        sum += curve->weights[i] * (1 - curve->points[i].good);
    }
    for (size_t i = curve->from; i < curve->to && sum > 0; i++) curve->weights[i] *= sum / times;
}
/* The log-likelihood of the points for a slope if the share is reached at `at`. */
static double likelihood_of(const struct curve *curve, double at, double slope) {
    const double log_at = log(at);
    double sum = 0;
    for (size_t i = curve->from; i < curve->to; i++) {
        const struct load_point *point = &curve->points[i];
        const double logit = curve->logit - slope * (curve->logs[i] - log_at);
        const double low = logit > 0 ? log1p(exp(-logit)) : log1p(exp(logit)) - logit; /* -ln of the good share */
        sum -= curve->weights[i] * (point->good * low + (1 - point->good) * (low + logit));
    }
    return sum;
}
/* The largest log-likelihood over all slopes if the share is reached at `at`. There is one maximum. */
static double profile_of(const struct curve *curve, double at, double *best_slope) {
    const double golden = 0.6180339887498949;
    double low = log(SLOPE_LEAST), high = log(SLOPE_MOST);
    double left = high - golden * (high - low), right = low + golden * (high - low);
    double at_left = likelihood_of(curve, at, exp(left)), at_right = likelihood_of(curve, at, exp(right));
    for (int i = 0; i < NARROWINGS; i++) {
        if (at_left > at_right) {
            high = right; right = left; at_right = at_left;
            left = high - golden * (high - low);
            at_left = likelihood_of(curve, at, exp(left));
        } else {
            low = left; left = right; at_left = at_right;
            right = low + golden * (high - low);
            at_right = likelihood_of(curve, at, exp(right));
        }
    }
    *best_slope = exp((low + high) / 2);
    return fmax(at_left, at_right);
}
/* The load between `inside` and `outside` at which the profile falls to `level`; `beyond` if it does not. */
static double crossing(const struct curve *curve, double inside, double outside, double level, double beyond) {
    double slope;
    if (profile_of(curve, outside, &slope) > level) return beyond;
    for (int i = 0; i < 14; i++) {
        const double middle = sqrt(inside * outside);
        if (profile_of(curve, middle, &slope) > level) inside = middle; else outside = middle;
    }
    return outside;
}
/* Pearson's statistic of the curve per degree of freedom, at least 1; above 1, trials differ by more than chance. */
static double dispersion_of(const struct curve *curve, double at, double slope) {
    double sum = 0;
    const size_t count = curve->to - curve->from;
    for (size_t i = curve->from; i < curve->to; i++) {
        const struct load_point *point = &curve->points[i];
        const double good = 1 / (1 + exp(slope * log(point->at / at) - curve->logit));
        sum += curve->weights[i] * (point->good - good) * (point->good - good) / fmax(1e-4, good * (1 - good));
    }
    return count > 4 ? fmax(1, sum / (double)(count - 2)) : 1;
}
/* Fits the trials near `centre`. A bound that the curve does not determine becomes 0 or infinite. */
static void answer_by_curve(const struct load_point *points, size_t count, double share, double centre,
                           double *weights, struct load_answer *answer) {
    struct curve curve = {points, 0, count, log(share / (1 - share)), weights, weights + count};
    double best = (double)NAN, most = -HUGE_VAL, slope = 1, level, weight = 0;
    while (curve.from < count && points[curve.from].at < centre * exp(-NEAR)) curve.from++;
    while (curve.to > curve.from && points[curve.to - 1].at > centre * exp(NEAR)) curve.to--;
    answer->near = curve.to - curve.from;
    if (answer->near < CURVE_TRIALS) return;
    set_weights(&curve, centre);
    for (int i = -STEPS; i <= STEPS; i++) {
        const double at = centre * exp(1.4 * NEAR * i / STEPS), found = profile_of(&curve, at, &slope);
        if (found > most) { most = found; best = at; }
    }
    for (double step = 1.4 * NEAR / STEPS / 2; step > 1e-4; step /= 2) {
        for (int side = -1; side <= 1; side += 2) {
            const double at = best * exp(side * step), found = profile_of(&curve, at, &slope);
            if (found > most) { most = found; best = at; }
        }
    }
    most = profile_of(&curve, best, &slope);
    answer->fitted = best;
    answer->weight = 0;
    for (size_t i = curve.from; i < curve.to; i++) {
        answer->weight += curve.weights[i] * log(points[i].at / best);
        weight += curve.weights[i];
    }
    answer->weight /= fmax(1, weight);
    level = most - CURVE_LEVEL / 2 * dispersion_of(&curve, best, slope);
    answer->low = crossing(&curve, best, centre * exp(-1.5 * NEAR), level, 0);
    answer->high = crossing(&curve, best, centre * exp(1.5 * NEAR), level, HUGE_VAL);
}
COMPARE_BY(by_load, struct load_point, at)
void load_answer_of(const struct load_point *points, size_t count, double share, struct load_answer *answer) {
    struct load_point *sorted = resize(NULL, count + 1, sizeof *sorted);
    double *weights = resize(NULL, 2 * count + 1, sizeof *weights);
    struct load_answer order, curve;
    double wrong = HUGE_VAL, right = 0, centre;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (points[i].accuracy == VP_TRIAL_FAILS && points[i].at < wrong) wrong = points[i].at;
        if (points[i].accuracy == VP_TRIAL_HOLDS && points[i].at > right) right = points[i].at;
        if (points[i].independent > 0) sorted[known++] = points[i];
    }
    qsort(sorted, known, sizeof *sorted, by_load);
    order.fitted = order.weight = (double)NAN;
    order.near = 0;
    order.is_by_accuracy = 0;
    answer_by_order(sorted, known, share, &order);
    *answer = order;
    if (order.likely_low > 0 && order.likely_high < HUGE_VAL && order.likely_high < order.likely_low * 1.6) {
        centre = sqrt(order.likely_low * order.likely_high);
        curve = order;
        for (int i = 0; i < 3; i++) { /* until the trials used are those near the answer */
            answer_by_curve(sorted, known, share, centre, weights, &curve);
            if (curve.near < CURVE_TRIALS) break;
            centre = fmin(fmax(curve.fitted, centre * 0.8), centre * 1.25);
        }
        if (curve.near >= CURVE_TRIALS && curve.fitted < wrong) { /* the order may give a bound if the curve does not */
            *answer = curve;
            if (curve.low <= 0) answer->low = fmin(order.low, curve.fitted);
            if (curve.high >= HUGE_VAL) answer->high = fmax(order.high, curve.fitted);
        }
    }
    FREE_ALL(sorted, weights);
    answer->is_by_accuracy = wrong < HUGE_VAL && wrong <= answer->high;
    if (answer->is_by_accuracy) answer->high = wrong;
    if (answer->low > right && answer->low > 0) answer->low = right;
    if (answer->low > answer->high) answer->low = 0;
}
vp_trial load_answer_at(const struct load_answer *answer, const struct load_point *point) {
    const vp_trial verdict = !(point->independent > 0) ? VP_TRIAL_UNDECIDED
                             : point->at <= answer->low ? VP_TRIAL_HOLDS
                             : point->at >= answer->high ? VP_TRIAL_FAILS : VP_TRIAL_UNDECIDED;
    return verdict;
}
