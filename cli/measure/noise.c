/* noise.c: describes the machine's other activity during a measurement. */
#include "measure/noise.h"
#include "vlmprof_statistics.h"

#include <dirent.h>
#include <math.h>

const char *noise_root(void) {
    const char *root = NULL;
#ifdef VLMPROF_TEST_HOOKS
    root = getenv("VLMPROF_TEST_SYSTEM"); /* outputs of tests do not depend on the machine's other activity */
#endif
    return root ? root : "";
}

void noise_read(const char *root, vp_noise_reading *reading, int64_t group) {
    char path[512];
    vp_noise_read(root, reading);
    snprintf(path, sizeof path, "%s/proc", root);
    DIR *folder = group && reading->own_ticks >= 0 ? opendir(path) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char text[512] = "";
        long long of_group = 0, ticks[4];
        snprintf(path, sizeof path, "%s/proc/%.20s/stat", root, entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        const size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
        const char *at = bytes ? strrchr(text, ')') : NULL; /* the name before it may contain any characters */
        if (file) fclose(file);
        if (at && sscanf(at + 1, " %*c %*d %lld %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld", &of_group, ticks,
                         ticks + 1, ticks + 2, ticks + 3) == 5 && of_group == group)
            reading->own_ticks += ticks[0] + ticks[1] + ticks[2] + ticks[3];
    }
    if (folder) closedir(folder);
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
    else if (!is_cost_known(percent)) snprintf(number.text, sizeof number.text, "%+.0f to %+.0f", low, high);
    else
        snprintf(number.text, sizeof number.text, "%+.*f [%+.*f, %+.*f]", decimals, rounded(percent.value, decimals),
                 decimals, low, decimals, high);
    return number;
}
void say_unknown_cost(char *text, size_t capacity, vp_estimate percent, size_t count, const char *pairs) {
    const size_t least = vp_statistics_percentile_needs(50, 0.95);
    int64_t needed = pairs_to_tell(percent, count);
    if (!needed)
        snprintf(text, capacity, "%zu %s are too few for a verdict: an interval needs %zu", count, pairs, least);
    else
        snprintf(text, capacity,
                 "this machine is too noisy for a verdict: between %+.0f and %+.0f %%; with this noise, about %lld %s "
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
    const int is_busy = reason == VP_NOISE_IS_BUSY,
              is_bare = !(summary->bare_spread <= summary->spread) && summary->bare_spread > VP_NOISE_SPREAD;
    const long long bad = is_busy ? summary->busy_samples : summary->stolen_samples,
                    all = is_busy ? summary->other_samples : summary->steal_samples;
    const double percent = is_busy ? summary->busy_percent : summary->stolen_percent;
    if (reason == VP_NOISE_IS_SPREAD) {
        snprintf(seen, capacity, "%s differ by %.1f %% (standard deviation, %lld pairs)",
                 is_bare ? "two runs of one request" : "neighbouring runs of equal work",
                 100 * (is_bare ? summary->bare_spread : summary->spread),
                 (long long)(is_bare ? summary->bare_pair_count : summary->pair_count));
        return;
    }
    snprintf(seen, capacity, "%s %.0f %% of the CPU",
             is_busy ? "other processes used" : "the host of this virtual machine took", percent);
    size_t bytes = strlen(seen);
    if (all > 1) snprintf(seen + bytes, capacity - bytes, " during %lld of %lld blocks of runs", bad, all);
    else snprintf(seen + bytes, capacity - bytes, " during the runs");
}
const char *noise_advice_sweep(double runs_per_sample) {
    return runs_per_sample >= 3 ? "stop other programs and sweep again into another folder"
                                : "stop other programs and sweep again into another folder, with --num_runs_per_sample "
                                  "3 or more";
}
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}
static int are_of_one_sweep(const char *const *paths, size_t first, size_t second) {
    return !paths
           || (folder_bytes(paths[first]) == folder_bytes(paths[second])
               && !memcmp(paths[first], paths[second], folder_bytes(paths[first])));
}
/* Adds what was seen in the sweep of the item `first`. Each number is followed by the configuration that it is of. */
static void say_sweep(struct text_buffer *out, const vp_noise_summary *items, const char *const *paths,
                      const char *const *names, size_t first, size_t count) {
    static const int reasons[] = {VP_NOISE_IS_BUSY, VP_NOISE_IS_STOLEN, VP_NOISE_IS_SPREAD};
    size_t affected = 0, all = 0, shown = count;
    for (size_t k = first; k < count; k++) {
        if (!are_of_one_sweep(paths, first, k)) continue;
        all++;
        affected += vp_noise_reasons(&items[k]) != 0;
    }
    if (affected && out->bytes) text_add_string(out, "; ");
    if (affected && all < count) text_add_format(out, "%.*s: ", (int)folder_bytes(paths[first]), paths[first]);
    for (size_t i = 0; affected && i < sizeof reasons / sizeof *reasons; i++) {
        char seen[SEEN_BYTES];
        size_t worst = first;
        for (size_t k = first; k < count; k++)
            if (are_of_one_sweep(paths, first, k)
                && badness(&items[k], reasons[i]) > badness(&items[worst], reasons[i]))
                worst = k;
        if (!(badness(&items[worst], reasons[i]) > 0)) continue;
        if (shown < count && shown != worst) text_add_format(out, " (worst: %.200s)", names[shown]);
        if (shown < count) text_add_string(out, "; ");
        say_seen(seen, sizeof seen, &items[worst], reasons[i]);
        text_add_string(out, seen);
        shown = worst;
    }
    if (affected && all > 1)
        text_add_format(out, " (worst: %.200s; %zu of %zu configurations are affected)", names[shown], affected, all);
}
void noise_warn(struct text_list *warnings, const vp_noise_summary *items, const char *const *paths,
                const char *const *names, size_t count, const char *advice) {
    struct text_buffer seen = {NULL, 0, 0};
    for (size_t first = 0; first < count; first++) {
        size_t earlier = 0;
        while (earlier < first && !are_of_one_sweep(paths, earlier, first)) earlier++;
        if (earlier == first) say_sweep(&seen, items, paths, names, first, count);
    }
    if (seen.bytes) text_list_add(warnings, NOISE_WARNING ": %s. Times may be too high: %s", seen.data, advice);
    free(seen.data);
}
