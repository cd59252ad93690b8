/* metrics.c: the numbers of a timed pass: their keys in result files, and how they follow from its time stamps.
 * Everything is computed from one struct pass_result when it is asked for; nothing is kept. */
#include "base/metrics.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

struct pass_result *runs_make(int32_t run_count, int32_t new_tokens) {
    struct pass_result *runs = zeroed((size_t)run_count, sizeof *runs);
    for (int32_t i = 0; i < run_count; i++) {
        runs[i].tokens = zeroed((size_t)new_tokens, sizeof *runs[i].tokens);
        runs[i].step_ns = zeroed((size_t)new_tokens, sizeof *runs[i].step_ns);
    }
    return runs;
}
void runs_free(struct pass_result *runs, int32_t run_count) {
    for (int32_t i = 0; runs && i < run_count; i++) {
        free(runs[i].tokens);
        free(runs[i].step_ns);
        free(runs[i].answer);
    }
    free(runs);
}
const char *const METRIC_KEYS[METRIC_STAGE] = {"T_vision_total",     "T_LLM_prefill", "T_LLM_decode", "T_total",
                                               "T_decode_per_token", "TTFT",          "unaccounted",  "closure"};

const char *const DETAIL_KEYS[DETAIL_COUNT] = {"ms", "wall_ms", "device_ms", "launches", "flops", "bytes"};

int stage_metric(int stage, int detail) { return METRIC_STAGE + detail * VP_STAGE_COUNT + stage; }

int is_host_stage(int stage) { return stage == VP_STAGE_PREPROCESS || stage == VP_STAGE_DETOK; }
static int64_t stage_ns(const struct pass_result *run, int stage) {
    return is_host_stage(stage) ? run->times.wall_ns[stage] : run->times.device_ns[stage];
}

static int64_t stages_ns(const struct pass_result *run, int first, int last) {
    int64_t sum = 0;
    for (int i = first; i <= last; i++) if (run->times.ran[i]) sum += stage_ns(run, i);
    return sum;
}

double stage_value(const struct pass_result *run, int stage, int detail) {
    if (!run->times.ran[stage] || (detail > DETAIL_WALL && is_host_stage(stage))) return (double)NAN;
    switch (detail) {
    case DETAIL_WALL: return (double)run->times.wall_ns[stage] / 1e6;
    case DETAIL_DEVICE: return (double)run->times.device_ns[stage] / 1e6;
    case DETAIL_LAUNCHES: return (double)run->times.launches[stage];
    case DETAIL_FLOPS: return (double)run->times.flops[stage];
    case DETAIL_BYTES: return (double)run->times.bytes[stage];
    default: return (double)stage_ns(run, stage) / 1e6;
    }
}
double metric_of(const struct pass_result *run, int metric) {
    int64_t steps = 0, sum = stages_ns(run, 0, VP_STAGE_COUNT - 1);
    if (metric != METRIC_TOTAL && !run->times.ran[VP_STAGE_PREFILL]) return (double)NAN; /* stages were not timed */
    if (metric >= METRIC_STAGE)
        return stage_value(run, (metric - METRIC_STAGE) % VP_STAGE_COUNT, (metric - METRIC_STAGE) / VP_STAGE_COUNT);
    for (int32_t i = 0; i + 1 < run->token_count; i++) steps += run->step_ns[i];
    switch (metric) {
    case METRIC_VISION:
        return run->times.ran[VP_STAGE_VIT] ? (double)stages_ns(run, VP_STAGE_VIT, VP_STAGE_CONNECTOR) / 1e6
                                            : (double)NAN;
    case METRIC_PREFILL: return (double)stages_ns(run, VP_STAGE_EMBED, VP_STAGE_SAMPLE) / 1e6;
    case METRIC_DECODE: return (double)steps / 1e6;
    case METRIC_TOTAL: return (double)run->total_ns / 1e6;
    case METRIC_PER_TOKEN: return run->token_count > 1 ? (double)steps / (run->token_count - 1) / 1e6 : (double)NAN;
    case METRIC_TTFT: return (double)stages_ns(run, 0, VP_STAGE_DECODE - 1) / 1e6;
    case METRIC_UNACCOUNTED: return (double)(run->total_ns - sum) / 1e6;
    default: return (double)sum / (double)run->total_ns;
    }
}
double metric_mean(const struct pass_result *runs, int32_t run_count, int metric) {
    double *values = resize(NULL, (size_t)run_count, sizeof *values), mean;
    for (int32_t i = 0; i < run_count; i++) values[i] = metric_of(&runs[i], metric);
    mean = vp_statistics_mean(values, (size_t)run_count);
    free(values);
    return mean;
}

const char OPS_COLUMNS_TEXT[] = "times are sums over the calls; self: without the operations within, total: with them, "
                                "avg: total / calls; Self %: of all self times\n";
vp_estimate estimate_none(void) {
    vp_estimate estimate = {(double)NAN, (double)NAN, (double)NAN};
    return estimate;
}
vp_estimate median_of(double *values, size_t count) {
    vp_estimate estimate = estimate_none();
    vp_statistics statistics;
    if (!count || vp_statistics_compute(values, count, values, &statistics) != VP_OK) return estimate;
    estimate.value = statistics.p50;
    if (vp_statistics_percentile_interval(values, count, 50, 0.95, &estimate.low, &estimate.high) != VP_OK)
        estimate.low = estimate.high = (double)NAN;
    return estimate;
}
