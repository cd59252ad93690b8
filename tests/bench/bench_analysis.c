/* bench_analysis.c: what a report of a large sweep costs: 336 configurations (7 x 6 x 8), 1,000 samples each, 1,000 bootstrap resamples; one core. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_latency.h"
#include <stdio.h>
#include <stdlib.h>

enum { CONFIGS = 336, SAMPLES = 1000, RESAMPLES = 1000, ROWS = CONFIGS * SAMPLES };

static void *memory(size_t bytes) {
    void *p = malloc(bytes);
    if (!p) { printf("no memory\n"); exit(1); }
    return p;
}
static int64_t started;
static void say(const char *what, vp_result result) {
    const int64_t now = vp_clock_ns();
    printf("%-64s %9.1f ms%s\n", what, (double)(now - started) / 1e6, result == VP_OK ? "" : "  FAILED");
    if (result != VP_OK) exit(1);
    started = vp_clock_ns();
}

int main(void) {
    static const double percentiles[] = {50, 95, 99, -1};
    static const char *const names[] = {"bootstrap of the front, P50", "bootstrap of the front, P95", "bootstrap of the front, P99",
                                        "bootstrap of the front, mean"};
    static int32_t levels[CONFIGS * 3];
    double *latency = (double *)memory(ROWS * sizeof(double)), *accuracy = (double *)memory(ROWS * sizeof(double));
    double *measured = (double *)memory((size_t)ROWS * VP_LATENCY_STAGE_COUNT * sizeof(double)), *predicted = (double *)memory(ROWS * sizeof(double)), sum = 0.0;
    vp_latency_request *requests = (vp_latency_request *)memory(ROWS * sizeof *requests);
    uint32_t *groups = (uint32_t *)memory(ROWS * sizeof *groups);
    vp_bootstrap_point *points = (vp_bootstrap_point *)memory(CONFIGS * sizeof *points);
    vp_bootstrap_options options = vp_bootstrap_options_default();
    vp_latency_prediction prediction;
    vp_latency_model model;
    vp_effect *effects;
    vp_random random;
    vp_knobs knobs;
    vp_random_seed(&random, 1);
    for (int c = 0; c < CONFIGS; c++) {
        levels[3 * c] = c / 48;
        levels[3 * c + 1] = c / 8 % 6;
        levels[3 * c + 2] = c % 8;
        for (int i = 0; i < SAMPLES; i++) {
            vp_latency_request *r = &requests[c * SAMPLES + i];
            const double noise = 0.9 + 0.2 * vp_random_double(&random);
            r->views = 2 + 2 * levels[3 * c];
            r->vision_tokens = 100 * r->views + (int32_t)vp_random_below(&random, 50);
            r->text_tokens = 10 + (int32_t)vp_random_below(&random, 60);
            r->sequence = r->vision_tokens + r->text_tokens + 30;
            r->output_tokens = 2 + (int32_t)vp_random_below(&random, 20);
            r->tier_index = levels[3 * c] / 3;
            r->top_k = 2 + 2 * levels[3 * c + 1];
            r->expert_count = 64;
            r->active_blocks = 9 + levels[3 * c + 2];
            measured[(c * SAMPLES + i) * VP_LATENCY_STAGE_COUNT] = (1.0 + 1.5 * r->views) * noise;
            measured[(c * SAMPLES + i) * VP_LATENCY_STAGE_COUNT + 1] = (2.0 + 3e-4 * r->sequence * r->active_blocks * r->top_k) * noise;
            measured[(c * SAMPLES + i) * VP_LATENCY_STAGE_COUNT + 2] = (0.5 + 0.02 * r->active_blocks * r->top_k) * (r->output_tokens - 1) * noise;
            measured[(c * SAMPLES + i) * VP_LATENCY_STAGE_COUNT + 3] = (0.2 + 0.1 * r->views) * noise;
            latency[c * SAMPLES + i] = 10 * noise + c;
            accuracy[c * SAMPLES + i] = vp_random_double(&random) < 0.4 + 0.001 * c;
            groups[c * SAMPLES + i] = (uint32_t)c;
        }
    }
    size_t bytes = vp_bootstrap_scratch_bytes(CONFIGS, SAMPLES, RESAMPLES);
    void *scratch = memory(bytes);
    printf("%d configurations x %d samples, %d resamples; scratch %.1f MB\n", CONFIGS, SAMPLES, RESAMPLES, (double)bytes / 1e6);
    started = vp_clock_ns();
    for (int i = 0; i < 4; i++) {
        options.percentile = percentiles[i];
        say(names[i], vp_bootstrap(latency, accuracy, CONFIGS, SAMPLES, &options, scratch, bytes, points));
    }
    free(scratch);
    knobs.levels = levels;
    knobs.knob_count = 3;
    knobs.level_counts[0] = 7;
    knobs.level_counts[1] = 6;
    knobs.level_counts[2] = 8;
    knobs.config_count = CONFIGS;
    bytes = vp_effects_scratch_bytes(&knobs, 2);
    scratch = memory(bytes);
    effects = (vp_effect *)memory(vp_effect_count(&knobs, 2) * sizeof *effects);
    started = vp_clock_ns();
    say("effects and interactions of three knobs", vp_effects(&knobs, latency, SAMPLES, 2, 0.95, scratch, bytes, effects, NULL, NULL));
    free(scratch);
    bytes = vp_latency_leave_out_scratch_bytes(CONFIGS);
    scratch = memory(bytes);
    started = vp_clock_ns();
    say("latency model, four stages of 336,000 rows", vp_latency_fit(VP_LATENCY_PHYSICAL, requests, measured, ROWS, &model, NULL));
    for (int i = 0; i < ROWS; i++) latency[i] = measured[(size_t)i * VP_LATENCY_STAGE_COUNT + 1];
    started = vp_clock_ns();
    say("prefill, leave one of 336 configurations out", vp_latency_leave_out(VP_LATENCY_PHYSICAL, VP_LATENCY_PREFILL, requests, latency, groups, ROWS,
                                                                             CONFIGS, scratch, bytes, predicted, NULL));
    for (int i = 0; i < ROWS; i++) {
        if (vp_latency_predict(&model, &requests[i], &prediction) != VP_OK) return 1;
        sum += prediction.total;
    }
    printf("%-64s %9.1f ns\n", "one prediction, four stages", (double)(vp_clock_ns() - started) / ROWS);
    printf("(mean prediction %.1f ms)\n", sum / ROWS);
    free(scratch);
    free(effects);
    free(points);
    free(groups);
    free(requests);
    free(predicted);
    free(measured);
    free(accuracy);
    free(latency);
    return 0;
}
