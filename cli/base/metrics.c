/* metrics.c: the numbers of a timed pass: their keys in result files, and how they follow from its stamps. */
#include "base/metrics.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

timing *timings_make(int32_t runs, int32_t new_tokens) {
    timing *t = zeroed((size_t)runs, sizeof *t);
    for (int32_t i = 0; i < runs; i++) {
        t[i].tokens = zeroed((size_t)new_tokens, sizeof *t[i].tokens);
        t[i].step_ns = zeroed((size_t)new_tokens, sizeof *t[i].step_ns);
    }
    return t;
}
void timings_free(timing *t, int32_t runs) {
    for (int32_t i = 0; t && i < runs; i++) {
        free(t[i].tokens);
        free(t[i].step_ns);
        free(t[i].answer);
    }
    free(t);
}
const char *const METRIC_KEYS[METRIC_STAGE] = {"T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token", "TTFT",
                                                      "unaccounted", "closure"};

const char *const DETAIL_KEYS[DETAIL_COUNT] = {"ms", "wall_ms", "device_ms", "launches", "flops", "bytes"};

int stage_metric(int stage, int detail) { return METRIC_STAGE + detail * VP_STAGE_COUNT + stage; }

int is_host_stage(int stage) { return stage == VP_STAGE_PREPROCESS || stage == VP_STAGE_DETOK; }
static int64_t stage_ns(const timing *t, int stage) { return is_host_stage(stage) ? t->times.wall_ns[stage] : t->times.device_ns[stage]; }

static int64_t stages_ns(const timing *t, int first, int last) {
    int64_t sum = 0;
    for (int i = first; i <= last; i++) if (t->times.ran[i]) sum += stage_ns(t, i);
    return sum;
}

double stage_value(const timing *t, int stage, int detail) {
    if (!t->times.ran[stage] || (detail > DETAIL_WALL && is_host_stage(stage))) return (double)NAN;
    switch (detail) {
    case DETAIL_WALL: return (double)t->times.wall_ns[stage] / 1e6;
    case DETAIL_DEVICE: return (double)t->times.device_ns[stage] / 1e6;
    case DETAIL_LAUNCHES: return (double)t->times.launches[stage];
    case DETAIL_FLOPS: return (double)t->times.flops[stage];
    case DETAIL_BYTES: return (double)t->times.bytes[stage];
    default: return (double)stage_ns(t, stage) / 1e6;
    }
}
double metric_of(const timing *t, int metric) {
    int64_t steps = 0, sum = stages_ns(t, 0, VP_STAGE_COUNT - 1);
    if (metric != METRIC_TOTAL && !t->times.ran[VP_STAGE_PREFILL]) return (double)NAN; /* without stage times */
    if (metric >= METRIC_STAGE) return stage_value(t, (metric - METRIC_STAGE) % VP_STAGE_COUNT, (metric - METRIC_STAGE) / VP_STAGE_COUNT);
    for (int32_t i = 0; i + 1 < t->token_count; i++) steps += t->step_ns[i];
    switch (metric) {
    case METRIC_VISION: return t->times.ran[VP_STAGE_VIT] ? (double)stages_ns(t, VP_STAGE_VIT, VP_STAGE_CONNECTOR) / 1e6 : (double)NAN;
    case METRIC_PREFILL: return (double)stages_ns(t, VP_STAGE_EMBED, VP_STAGE_SAMPLE) / 1e6;
    case METRIC_DECODE: return (double)steps / 1e6;
    case METRIC_TOTAL: return (double)t->total_ns / 1e6;
    case METRIC_PER_TOKEN: return t->token_count > 1 ? (double)steps / (t->token_count - 1) / 1e6 : (double)NAN;
    case METRIC_TTFT: return (double)stages_ns(t, 0, VP_STAGE_DECODE - 1) / 1e6;
    case METRIC_UNACCOUNTED: return (double)(t->total_ns - sum) / 1e6;
    default: return (double)sum / (double)t->total_ns;
    }
}
double metric_mean(const timing *t, int32_t runs, int metric) {
    double *values = resize(NULL, (size_t)runs, sizeof *values), mean;
    for (int32_t i = 0; i < runs; i++) values[i] = metric_of(&t[i], metric);
    mean = vp_statistics_mean(values, (size_t)runs);
    free(values);
    return mean;
}

vp_estimate estimate_none(void) {
    vp_estimate e = {(double)NAN, (double)NAN, (double)NAN};
    return e;
}
vp_estimate median_of(double *values, size_t count) {
    vp_estimate e = estimate_none();
    vp_statistics s;
    if (!count || vp_statistics_compute(values, count, values, &s) != VP_OK) return e;
    e.value = s.p50;
    if (vp_statistics_percentile_interval(values, count, 50, 0.95, &e.low, &e.high) != VP_OK) e.low = e.high = (double)NAN;
    return e;
}
