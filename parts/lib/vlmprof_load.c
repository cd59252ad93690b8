/* vlmprof_load.c: implements what vlmprof_load.h declares */
#include "vlmprof_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

VP_API const char *vp_arrivals_name(int32_t kind) {
    switch (kind) {
#define VP_ARRIVALS_NAME(id, name) case id: return name;
        VP_ARRIVALS(VP_ARRIVALS_NAME)
#undef VP_ARRIVALS_NAME
    default: return NULL;
    }
}
VP_API vp_result vp_arrivals_begin(vp_arrivals_kind kind, double rate, double shape, uint32_t seed,
                                   vp_arrivals *arrivals) {
    if (!vp_arrivals_name((int32_t)kind) || !arrivals || !(rate >= 1e-6 && rate <= 1e6)) return VP_ERR_RANGE;
    if (kind == VP_ARRIVALS_GAMMA && !(shape >= 0.01 && shape <= 1e6)) return VP_ERR_RANGE;
    arrivals->kind = kind;
    arrivals->rate = rate;
    arrivals->shape = kind == VP_ARRIVALS_GAMMA ? shape : 1.0;
    arrivals->now_s = 0.0;
    vp_random_seed(&arrivals->random, seed);
    return VP_OK;
}
/* Parses a JSON number, independent of the locale; a 0 before the point may be missing. */
static int vp_impl_load_number(const char *text, size_t bytes, double *value) {
    char number[64] = "0";
    const size_t zero = *text == '.';
    if (bytes + zero > sizeof number) return 0;
    memcpy(number + zero, text, bytes);
    return vp_number_parse(number, bytes + zero, value) == VP_OK;
}
VP_API vp_result vp_arrivals_parse(const char *text, double rate, uint32_t seed, vp_arrivals *arrivals) {
    const size_t bytes = strcspn(text, ":");
    double shape = 1.0;
    int32_t kind = 0;
    while (vp_arrivals_name(kind)
           && (strncmp(vp_arrivals_name(kind), text, bytes) != 0 || vp_arrivals_name(kind)[bytes]))
        kind++;
    if (!vp_arrivals_name(kind)) return VP_ERR_NOT_FOUND;
    if ((kind == VP_ARRIVALS_GAMMA) != (text[bytes] == ':')) return VP_ERR_FORMAT;
    if (text[bytes] == ':' && !vp_impl_load_number(text + bytes + 1, strlen(text + bytes + 1), &shape))
        return VP_ERR_FORMAT;
    return vp_arrivals_begin((vp_arrivals_kind)kind, rate, shape, seed, arrivals);
}
/* Box-Muller; the second of the two values is discarded, so that draws are independent of earlier ones. */
static double vp_impl_arrivals_normal(vp_random *random) {
    const double radius = sqrt(-2.0 * log1p(-vp_random_double(random)));
    return radius * cos(6.283185307179586 * vp_random_double(random));
}
static double vp_impl_arrivals_gamma(vp_random *random, double shape) {
    const double d = (shape < 1.0 ? shape + 1.0 : shape) - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    double x, v, u;
    do {
        do {
            x = vp_impl_arrivals_normal(random);
            v = 1.0 + c * x;
        } while (!(v > 0.0));
        v = v * v * v;
        u = 1.0 - vp_random_double(random);
    } while (!(log(u) < 0.5 * x * x + d * (1.0 - v + log(v))));
    return shape < 1.0 ? d * v * pow(1.0 - vp_random_double(random), 1.0 / shape) : d * v;
}
VP_API double vp_arrivals_next(vp_arrivals *arrivals) {
    double gap = 1.0;
    if (arrivals->kind == VP_ARRIVALS_POISSON) gap = -log1p(-vp_random_double(&arrivals->random));
    else if (arrivals->kind == VP_ARRIVALS_GAMMA)
        gap = vp_impl_arrivals_gamma(&arrivals->random, arrivals->shape) / arrivals->shape;
    return arrivals->now_s += gap / arrivals->rate;
}

/* mingw defines isnan as a macro that converts to float. */
static int vp_impl_nan(double value) { return !(value >= -HUGE_VAL); }
static vp_result vp_impl_slo_fail(vp_error *error, vp_result result, const char *part, size_t bytes,
                                  const char *text) {
    if (error) {
        memset(error, 0, sizeof *error);
        error->code = result;
        error->offset = -1;
        if (bytes > sizeof error->where - 1) bytes = sizeof error->where - 1;
        memcpy(error->where, part, bytes);
        memcpy(error->text, text, strlen(text));
    }
    return result;
}
VP_API vp_result vp_slo_parse(const char *text, vp_slo *slo, vp_error *error) {
    static const char *const names[] = {"ttft", "tpot", "e2e", "accuracy"};
    double limits[4] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    while (*text || vp_impl_nan(limits[0] + limits[1] + limits[2] + limits[3])) {
        const size_t bytes = strcspn(text, ",");
        size_t name = strcspn(text, ":"), i = 0;
        while (i < 4 && (strlen(names[i]) != name || memcmp(names[i], text, name) != 0)) i++;
        if (i == 4 || name >= bytes)
            return vp_impl_slo_fail(error, VP_ERR_FORMAT, text, bytes,
                                    "is not ttft:MS, tpot:MS, e2e:MS or accuracy:SHARE");
        if (!vp_impl_nan(limits[i])) return vp_impl_slo_fail(error, VP_ERR_FORMAT, text, bytes, "occurs twice");
        if (!vp_impl_load_number(text + name + 1, bytes - name - 1, &limits[i]))
            return vp_impl_slo_fail(error, VP_ERR_FORMAT, text, bytes, i == 3 ? "has no number"
                                                                               : "needs a number of milliseconds");
        if (!(limits[i] > 0.0 && limits[i] < (i == 3 ? 1.0 + 1e-12 : 1e12)))
            return vp_impl_slo_fail(error, VP_ERR_RANGE, text, bytes, i == 3 ? "must be above 0, and at most 1"
                                                                              : "must be above 0");
        if (!text[bytes]) break;
        text += bytes + 1;
    }
    slo->ttft_ms = limits[0];
    slo->tpot_ms = limits[1];
    slo->e2e_ms = limits[2];
    slo->accuracy = limits[3];
    return VP_OK;
}
VP_API int vp_slo_holds(const vp_slo *slo, double ttft_ms, double tpot_ms, double e2e_ms) {
    return (vp_impl_nan(slo->ttft_ms) || ttft_ms <= slo->ttft_ms)
           && (vp_impl_nan(slo->tpot_ms) || tpot_ms <= slo->tpot_ms)
           && (vp_impl_nan(slo->e2e_ms) || e2e_ms <= slo->e2e_ms);
}

/* The number of values that are worth one independent value. zeros: double [count], overwritten. */
static double vp_impl_series_time(const double *values, size_t count, double *zeros) {
    vp_comparison comparison;
    double time = 1.0;
    for (size_t i = 0; i < count; i++) zeros[i] = 0.0;
    if (vp_compare_ordered(zeros, values, count, VP_SCALE_ABSOLUTE, 1.0, 0.05, &time, &comparison) != VP_OK)
        return 1.0;
    return time > 1.0 ? time : 1.0;
}
static int vp_impl_series_order(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}
VP_API vp_result vp_series_percentile(const double *values, size_t count, double percentile, double level,
                                      double *scratch, vp_series_value *out) {
    double *sorted = scratch, *flags, *ranks, low, high;
    size_t i, independent;
    if (!values || !scratch || !out || !count || !(percentile > 0.0 && percentile < 100.0)
        || !(level > 0.0 && level < 1.0))
        return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        if (!(fabs(values[i]) < HUGE_VAL)) return VP_ERR_RANGE;
        sorted[i] = values[i];
    }
    flags = scratch + count;
    ranks = flags + count;
    qsort(sorted, count, sizeof *sorted, vp_impl_series_order);
    out->value = vp_statistics_percentile(sorted, count, percentile);
    out->low = out->high = (double)NAN;
    for (i = 0; i < count; i++) flags[i] = values[i] <= out->value;
    out->correlation_time = vp_impl_series_time(flags, count, ranks);
    independent = (size_t)((double)count / out->correlation_time);
    for (i = 0; i < independent; i++) ranks[i] = (double)i;
    if (independent
        && vp_statistics_percentile_interval(ranks, independent, percentile, level, &low, &high) == VP_OK) {
        const double stretch = (double)count / (double)independent;
        out->low = sorted[(size_t)(low * stretch)];
        i = (size_t)ceil((high + 1.0) * stretch) - 1;
        out->high = sorted[i < count ? i : count - 1];
    }
    return VP_OK;
}
VP_API vp_result vp_series_share(const uint8_t *flags, size_t count, double level, double *scratch,
                                 vp_series_value *out) {
    size_t i, ones = 0, independent;
    double share;
    if (!flags || !scratch || !out || !count) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        scratch[i] = flags[i] != 0;
        ones += flags[i] != 0;
    }
    out->correlation_time = vp_impl_series_time(scratch, count, scratch + count);
    independent = (size_t)((double)count / out->correlation_time);
    if (!independent) independent = 1;
    share = (double)ones / (double)count;
    out->value = share;
    return vp_rate_interval((uint64_t)(share * (double)independent + 0.5), independent, level, &out->low, &out->high);
}

VP_API vp_trial vp_trial_of(const vp_series_value *share, double target) {
    return share->low >= target ? VP_TRIAL_HOLDS : share->high < target ? VP_TRIAL_FAILS : VP_TRIAL_UNDECIDED;
}
