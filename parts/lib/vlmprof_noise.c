/* vlmprof_noise.c: implements what vlmprof_noise.h declares */
#include "vlmprof_noise.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers in the kernel's text files */
#define VP_IMPL_NOISE_NUMBER_MAX (INT64_C(1) << 56) /* more ticks than any machine reaches; sums do not overflow */
/* Reads digits after blanks and moves *at past them. Returns -1 if there are none or too many. */
static int64_t vp_impl_noise_number(const char **at) {
    int64_t value = 0;
    const char *text = *at;
    while (*text == ' ' || *text == '\t') text++;
    if (*text < '0' || *text > '9') return -1;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > VP_IMPL_NOISE_NUMBER_MAX / 10) return -1;
        value = value * 10 + (*text - '0');
    }
    *at = text;
    return value < VP_IMPL_NOISE_NUMBER_MAX ? value : -1;
}
/* The same with a fraction, independent of the locale; NaN if there is no number. */
static double vp_impl_noise_decimal(const char **at) {
    int64_t whole = vp_impl_noise_number(at);
    double part = 0.0, scale = 1.0;
    if (whole < 0) return (double)NAN;
    if (**at != '.') return (double)whole;
    for (++*at; **at >= '0' && **at <= '9'; ++*at) {
        if (scale > 1e6) continue; /* more digits than the kernel prints */
        part = part * 10.0 + (**at - '0');
        scale *= 10.0;
    }
    return ((double)whole * scale + part) / scale;
}
/* Reads the start of a file and appends a NUL; "" for a missing file. */
static void vp_impl_noise_text(const char *root, const char *name, char *text, size_t capacity) {
    char path[480];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%.300s%s", root, name);
    FILE *file = fopen(path, "rb");
    if (file) {
        bytes = fread(text, 1, capacity - 1, file);
        fclose(file);
    }
    text[bytes] = 0;
}

/* ---- the files */
/* "cpu  user nice system idle iowait irq softirq steal ...", then a line for each CPU. Guest time is part of user. */
static void vp_impl_noise_stat(const char *root, vp_noise_reading *reading) {
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    char text[32768];
    int64_t ticks[FIELDS], cpus = 0;
    const char *at = text + 4, *line;
    int count = 0;
    vp_impl_noise_text(root, "/proc/stat", text, sizeof text);
    if (strncmp(text, "cpu ", 4) != 0) return;
    for (; count < FIELDS; count++) {
        ticks[count] = vp_impl_noise_number(&at);
        if (ticks[count] < 0) break;
    }
    /* the last number of a truncated line may lack digits; a complete one ends with a blank or newline */
    if (count < FIELDS || (*at != ' ' && *at != '\n')) return;
    for (line = text; (line = strstr(line, "\ncpu")) != NULL; line += 4) cpus += line[4] >= '0' && line[4] <= '9';
    if (cpus == 0) return;
    reading->cpu_count = cpus;
    reading->steal_ticks = ticks[STEAL];
    reading->busy_ticks = ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ];
    reading->total_ticks = reading->busy_ticks + ticks[STEAL] + ticks[IDLE] + ticks[IOWAIT];
}
/* "pid (name) state ...", where the name can contain any characters; the times are fields 14 to 17. */
static void vp_impl_noise_self(const char *root, vp_noise_reading *reading) {
    char text[1024];
    int64_t sum = 0;
    int field;
    vp_impl_noise_text(root, "/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') return;
    for (at += 2, field = 3; field < 14; field++) { /* some fields are negative, and the state is a letter */
        at = strchr(at, ' ');
        if (at == NULL) return;
        at++;
    }
    for (; field <= 17; field++) {
        int64_t ticks = vp_impl_noise_number(&at);
        if (ticks < 0 || *at != ' ') return;
        sum += ticks;
    }
    reading->own_ticks = sum;
}
static void vp_impl_noise_mhz(vp_noise_reading *reading, double mhz) {
    if (!(mhz > 0.0 && mhz < 1e6)) return;
    if (!(reading->mhz_low <= mhz)) reading->mhz_low = mhz;
    if (!(reading->mhz_high >= mhz)) reading->mhz_high = mhz;
}
/* Virtual machines have no cpufreq, but "cpu MHz : 2100.000" in /proc/cpuinfo. */
static void vp_impl_noise_frequency(const char *root, vp_noise_reading *reading) {
    char text[16384], name[96];
    const char *line;
    int cpu;
    for (cpu = 0; cpu < VP_NOISE_CPUS_MAX; cpu++) {
        const char *at = text;
        snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
        vp_impl_noise_text(root, name, text, sizeof text);
        int64_t khz = vp_impl_noise_number(&at);
        if (khz > 0 && *at == '\n') vp_impl_noise_mhz(reading, (double)khz / 1000.0);
    }
    if (reading->mhz_high > 0.0) return;
    vp_impl_noise_text(root, "/proc/cpuinfo", text, sizeof text);
    for (line = text, cpu = 0; cpu < VP_NOISE_CPUS_MAX && (line = strstr(line, "\ncpu MHz")) != NULL; cpu++) {
        const char *at = line + 8 + strspn(line + 8, " \t");
        double mhz = *at == ':' ? (at++, vp_impl_noise_decimal(&at)) : (double)NAN;
        if (*at == '\n') vp_impl_noise_mhz(reading, mhz);
        line += 8;
    }
}
VP_API void vp_noise_read(const char *root, vp_noise_reading *reading) {
    const vp_noise_reading nothing = {-1, -1, -1, -1, -1, (double)NAN, (double)NAN, (double)NAN};
    char text[128];
    const char *at = text;
    *reading = nothing;
    vp_impl_noise_stat(root, reading);
    vp_impl_noise_self(root, reading);
    vp_impl_noise_text(root, "/proc/loadavg", text, sizeof text);
    reading->load = vp_impl_noise_decimal(&at);
    if (*at != ' ') reading->load = (double)NAN;
    vp_impl_noise_frequency(root, reading);
}

/* ---- a block */
/* Ticks per CPU between two readings; -1 if not known. */
static int64_t vp_impl_noise_ticks(const vp_noise_reading *before, const vp_noise_reading *after) {
    if (before->total_ticks < 0 || after->total_ticks < before->total_ticks) return -1;
    return (after->total_ticks - before->total_ticks) / after->cpu_count;
}
VP_API int vp_noise_is_long_enough(const vp_noise_reading *before, const vp_noise_reading *after) {
    int64_t ticks = vp_impl_noise_ticks(before, after);
    return ticks < 0 || ticks >= VP_NOISE_TICKS_MIN;
}
/* Not isnan, which mingw defines as a macro that converts to float. */
static int vp_impl_noise_is_known(double value) { return value >= -HUGE_VAL; }
VP_API int vp_noise_between(const vp_noise_reading *before, const vp_noise_reading *after, vp_noise *noise) {
    const vp_noise nothing = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    int64_t total = after->total_ticks - before->total_ticks, busy = after->busy_ticks - before->busy_ticks,
            steal = after->steal_ticks - before->steal_ticks, own = after->own_ticks - before->own_ticks;
    *noise = nothing;
    noise->load = after->load;
    noise->mhz_low = fmin(before->mhz_low, after->mhz_low); /* fmin ignores an unknown (NaN) value */
    noise->mhz_high = fmax(before->mhz_high, after->mhz_high);
    if (vp_impl_noise_ticks(before, after) >= VP_NOISE_TICKS_MIN && busy >= 0 && steal >= 0 && busy + steal <= total) {
        noise->steal_percent = 100.0 * (double)steal / (double)total;
        /* if its own time much exceeds that of all CPUs, the files are inconsistent */
        if (before->own_ticks >= 0 && own >= 0 && own - busy <= total / 10)
            noise->other_cpu_percent = 100.0 * (double)(busy - own) / (double)total;
    }
    return vp_impl_noise_is_known(noise->load) || vp_impl_noise_is_known(noise->steal_percent)
           || vp_impl_noise_is_known(noise->mhz_high);
}

/* ---- the rule */
VP_API vp_noise_summary vp_noise_summary_none(void) {
    vp_noise_summary none = {0};
    none.load = none.steal_percent = none.other_cpu_percent = none.busy_percent = none.stolen_percent = (double)NAN;
    none.mhz_low = none.mhz_high = none.spread = none.bare_spread = (double)NAN;
    return none;
}
/* Adds a value to a mean of *count values; unknown values are ignored. */
static void vp_impl_noise_mean(double *mean, double value, int64_t *count) {
    if (!vp_impl_noise_is_known(value)) return;
    ++*count;
    *mean = *count == 1 ? value : *mean + (value - *mean) / (double)*count;
}
VP_API void vp_noise_add(vp_noise_summary *summary, const vp_noise *noise) {
    summary->samples++;
    vp_impl_noise_mean(&summary->load, noise->load, &summary->load_samples);
    vp_impl_noise_mean(&summary->steal_percent, noise->steal_percent, &summary->steal_samples);
    vp_impl_noise_mean(&summary->other_cpu_percent, noise->other_cpu_percent, &summary->other_samples);
    if (noise->steal_percent >= VP_NOISE_STEAL_PERCENT)
        vp_impl_noise_mean(&summary->stolen_percent, noise->steal_percent, &summary->stolen_samples);
    if (noise->other_cpu_percent >= VP_NOISE_OTHER_PERCENT)
        vp_impl_noise_mean(&summary->busy_percent, noise->other_cpu_percent, &summary->busy_samples);
    summary->mhz_low = fmin(summary->mhz_low, noise->mhz_low);
    summary->mhz_high = fmax(summary->mhz_high, noise->mhz_high);
}
static int vp_impl_noise_order(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}
VP_API double vp_noise_spread(double *log_ratios, size_t count) {
    if (count < VP_NOISE_PAIRS_MIN) return (double)NAN;
    qsort(log_ratios, count, sizeof *log_ratios, vp_impl_noise_order);
    double middle = vp_statistics_percentile(log_ratios, count, 50.0);
    for (size_t i = 0; i < count; i++) log_ratios[i] = fabs(log_ratios[i] - middle);
    qsort(log_ratios, count, sizeof *log_ratios, vp_impl_noise_order);
    /* 1.4826: standard deviation of a normal distribution over its median absolute deviation */
    return 1.4826 * vp_statistics_percentile(log_ratios, count, 50.0) / sqrt(2.0);
}
VP_API int vp_noise_reasons(const vp_noise_summary *summary) {
    const double busy = (double)summary->busy_samples, stolen = (double)summary->stolen_samples;
    int reasons = 0;
    if (busy > 0.0 && busy >= VP_NOISE_BLOCKS_SHARE * (double)summary->other_samples) reasons |= VP_NOISE_IS_BUSY;
    if (stolen > 0.0 && stolen >= VP_NOISE_BLOCKS_SHARE * (double)summary->steal_samples) reasons |= VP_NOISE_IS_STOLEN;
    if (summary->spread > VP_NOISE_SPREAD || summary->bare_spread > VP_NOISE_SPREAD) reasons |= VP_NOISE_IS_SPREAD;
    return reasons;
}
