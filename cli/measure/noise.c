/* noise.c: describes the machine's other activity during a measurement. */
#include "measure/noise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *noise_root(void) {
    const char *root = getenv("VLMPROF_TEST_SYSTEM");
    return root ? root : "";
}

void noise_begin(vp_noise_summary *summary, vp_noise_reading *reading) {
    *summary = vp_noise_summary_none();
    vp_noise_read(noise_root(), reading);
}
void noise_end(vp_noise_summary *summary, const vp_noise_reading *reading) {
    vp_noise_reading now;
    vp_noise noise;
    vp_noise_read(noise_root(), &now);
    if (vp_noise_between(reading, &now, &noise)) vp_noise_add(summary, &noise);
}

/* ---- costs hidden by noise */
static double half_width(vp_estimate percent) { return (percent.high - percent.low) / 2; }
int is_cost_known(vp_estimate percent) {
    double half = half_width(percent);
    return half <= 1 || (half <= fabs(percent.value) / 10 && isfinite(percent.value));
}
int64_t pairs_to_tell(vp_estimate percent, size_t count) {
    double needed = (double)count * half_width(percent) * half_width(percent), digit = 1;
    if (!isfinite(needed) || needed > 1e15) return 0;
    while (needed / digit >= 100) digit *= 10;
    return (int64_t)(ceil(needed / digit) * digit);
}
/* Rounded, and never -0. */
static double rounded(double value, int decimals) {
    const double scale = pow(10, decimals);
    return round(value * scale) / scale + 0.0;
}
struct number_text number_cost(vp_estimate percent) {
    struct number_text number;
    const double half = half_width(percent);
    const int decimals = half >= 10 || !is_cost_known(percent) ? 0 : half >= 1 ? 1 : 2;
    const double low = rounded(percent.low, decimals), high = rounded(percent.high, decimals);
    if (!isfinite(half)) snprintf(number.text, sizeof number.text, "-");
    else if (!is_cost_known(percent))
        snprintf(number.text, sizeof number.text, "%+.0f to %+.0f", low, high);
    else
        snprintf(number.text, sizeof number.text, "%+.*f [%+.*f, %+.*f]", decimals,
                 rounded(percent.value, decimals), decimals, low, decimals, high);
    return number;
}
void say_unknown_cost(char *text, size_t capacity, vp_estimate percent, size_t count, const char *pairs) {
    const size_t least = vp_statistics_percentile_needs(50, 0.95);
    int64_t needed = pairs_to_tell(percent, count);
    if (!needed)
        snprintf(text, capacity, "%zu %s are too few for a verdict: an interval needs %zu", count, pairs, least);
    else
        snprintf(text, capacity,
                 "this machine is too noisy for a verdict: between %+.0f and %+.0f %%; at this noise about %lld %s "
                 "would resolve 1 %%, fewer on a quiet machine",
                 rounded(percent.low, 0), rounded(percent.high, 0), (long long)needed, pairs);
}

/* ---- words */
enum { SEEN_BYTES = 160 };

/* The size of a reason, as a share of the item's time or as spread. The worst item is shown. */
static double badness(const vp_noise_summary *summary, int reason) {
    if (!(vp_noise_reasons(summary) & reason)) return 0;
    if (reason == VP_NOISE_IS_BUSY)
        return (double)summary->busy_samples * summary->busy_percent / (double)summary->other_samples;
    if (reason == VP_NOISE_IS_STOLEN)
        return (double)summary->stolen_samples * summary->stolen_percent / (double)summary->steal_samples;
    return fmax(summary->spread, summary->bare_spread);
}
static void say_seen(char *seen, size_t capacity, const vp_noise_summary *summary, int reason) {
    const int is_busy = reason == VP_NOISE_IS_BUSY, is_bare = !(summary->bare_spread <= summary->spread)
                                                              && summary->bare_spread > VP_NOISE_SPREAD;
    const long long bad = is_busy ? summary->busy_samples : summary->stolen_samples,
                    all = is_busy ? summary->other_samples : summary->steal_samples;
    const double percent = is_busy ? summary->busy_percent : summary->stolen_percent;
    size_t bytes;
    if (reason == VP_NOISE_IS_SPREAD) {
        snprintf(seen, capacity, "%s differ by %.1f %% (standard deviation, %lld pairs)",
                 is_bare ? "two runs of one request" : "neighbouring runs of equal work",
                 100 * (is_bare ? summary->bare_spread : summary->spread),
                 (long long)(is_bare ? summary->bare_pair_count : summary->pair_count));
        return;
    }
    snprintf(seen, capacity, "%s %.0f %% of the CPU", is_busy ? "other processes used"
                                                              : "the host of this virtual machine took", percent);
    bytes = strlen(seen);
    if (all > 1) snprintf(seen + bytes, capacity - bytes, " during %lld of %lld blocks of runs", bad, all);
    else snprintf(seen + bytes, capacity - bytes, " during the runs");
}
const char *noise_advice_sweep(double runs_per_sample) {
    return runs_per_sample >= 3 ? "stop other programs and sweep again into another folder"
                                : "stop other programs and sweep again into another folder, with --num_runs_per_sample "
                                  "3 or more";
}
void noise_warn(struct text_list *warnings, const vp_noise_summary *items, const char *const *names, size_t count,
                const char *advice) {
    static const int reasons[] = {VP_NOISE_IS_BUSY, VP_NOISE_IS_STOLEN, VP_NOISE_IS_SPREAD};
    char seen[3 * SEEN_BYTES] = "", where[320] = "";
    size_t shown = 0, affected = 0;
    for (size_t k = 0; k < count; k++) affected += vp_noise_reasons(&items[k]) != 0;
    if (!affected) return;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        size_t worst = 0, bytes = strlen(seen);
        for (size_t k = 0; k < count; k++)
            if (badness(&items[k], reasons[i]) > badness(&items[worst], reasons[i])) worst = k;
        if (!(badness(&items[worst], reasons[i]) > 0)) continue;
        if (!bytes) shown = worst;
        bytes += (size_t)snprintf(seen + bytes, sizeof seen - bytes, "%s", bytes ? "; " : "");
        say_seen(seen + bytes, sizeof seen - bytes, &items[worst], reasons[i]);
    }
    if (count > 1)
        snprintf(where, sizeof where, " (worst: %.200s; %zu of %zu configurations are affected)", names[shown],
                 affected, count);
    text_list_add(warnings, "the machine was not quiet: %s%s. Times may be too high: %s", seen, where, advice);
}
