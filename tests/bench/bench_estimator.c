/* bench_estimator.c: what a prediction of a request's latency costs; medians and spread of nine rounds over requests of all shapes.
 * Build: cc -O2 -I. tests/bench/bench_estimator.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_latency.h"
#include <stdio.h>

enum { ROUNDS = 9, REQUESTS = 512, CALLS = 200000 };
static vp_latency_request requests[REQUESTS];
static double measured[REQUESTS * VP_LATENCY_STAGE_COUNT];

static void fill(void) {
    vp_random random;
    vp_random_seed(&random, 5);
    for (int i = 0; i < REQUESTS; i++) {
        vp_latency_request *q = &requests[i];
        q->views = 2 + (int32_t)vp_random_below(&random, 14);
        q->vision_tokens = 100 * q->views;
        q->text_tokens = 10 + (int32_t)vp_random_below(&random, 50);
        q->sequence = 1 + q->text_tokens + q->vision_tokens;
        q->output_tokens = 1 + (int32_t)vp_random_below(&random, 31);
        q->top_k = 1 + (int32_t)vp_random_below(&random, 11);
        q->expert_count = 64;
        q->active_blocks = 8 + (int32_t)vp_random_below(&random, 8);
        for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) measured[i * VP_LATENCY_STAGE_COUNT + s] = 1 + q->views + 0.01 * q->sequence * q->top_k;
    }
}
static void print(const char *name, double *per_call_ns) {
    vp_statistics s;
    if (vp_statistics_compute(per_call_ns, ROUNDS, per_call_ns, &s) == VP_OK)
        printf("%-36s %10.1f ns (min %.1f, max %.1f, %d rounds)\n", name, s.p50, s.min, s.max, ROUNDS);
}

int main(void) {
    static const char *const names[] = {"vp_latency_predict, physical", "vp_latency_predict, seed", "vp_latency_predict, mean"};
    static vp_latency_model model;
    double per_call_ns[ROUNDS], sum = 0;
    fill();
    for (int kind = 0; kind <= VP_LATENCY_MEAN; kind++) {
        if (vp_latency_fit((vp_latency_features)kind, requests, measured, REQUESTS, &model, NULL) != VP_OK) return 1;
        for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
            const int64_t start = vp_clock_ns();
            for (int i = 0; i < CALLS; i++) {
                vp_latency_prediction p;
                if (vp_latency_predict(&model, &requests[i % REQUESTS], &p) == VP_OK) sum += p.total;
            }
            if (round >= 0) per_call_ns[round] = (double)(vp_clock_ns() - start) / CALLS;
        }
        print(names[kind], per_call_ns);
    }
    return sum > 0 ? 0 : 1;
}
