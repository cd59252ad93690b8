/* load_sizing.c: the workers that a request rate needs if vision encoder and language model run separately. */
#include "load/load_sizing.h"

#include "base/memory.h"
#include "vlmprof_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARRIVALS = 20000 };
/* ms since the first arrival; ready: the end of the previous stage */
struct arrival { double due, ready, image_wait, model_wait, ttft; struct stage_times times; };

int64_t sizing_workers(double rate, double seconds, double busy) {
    return (int64_t)ceil(rate * seconds / busy * (1 - 1e-12)); /* 8 / 0.8 must be 10, not 11 */
}
COMPARE_BY(by_ready, struct arrival, ready)
/* Takes the first free worker. Returns the start time. */
static double take_worker(double *free_at, int64_t workers, double ready, double busy) {
    int64_t first = 0;
    for (int64_t i = 1; i < workers; i++) if (free_at[i] < free_at[first]) first = i;
    double begin = fmax(ready, free_at[first]);
    free_at[first] = begin + busy;
    return begin;
}
static void draw(const struct sizing *sizing, const struct stage_times *requests, size_t count, uint32_t seed,
                 struct arrival *arrivals) {
    vp_arrivals process;
    vp_random random;
    vp_arrivals_begin(VP_ARRIVALS_POISSON, sizing->rate, 1, seed, &process);
    vp_random_seed(&random, seed ^ 0x9e3779b9u);
    for (size_t i = 0; i < ARRIVALS; i++) {
        arrivals[i].due = 1e3 * vp_arrivals_next(&process);
        arrivals[i].times = requests[(size_t)(vp_random_double(&random) * (double)count)];
    }
}
/* A percentile of a member over the counted arrivals. */
static double percentile_of(const struct arrival *arrivals, size_t offset, double percentile) {
    const size_t first = ARRIVALS / 10;
    double *values = resize(NULL, ARRIVALS - first, sizeof *values), found;
    for (size_t i = first; i < ARRIVALS; i++)
        memcpy(&values[i - first], (const char *)&arrivals[i] + offset, sizeof *values);
    vp_sort_double(values, ARRIVALS - first);
    found = vp_statistics_percentile(values, ARRIVALS - first, percentile);
    free(values);
    return found;
}
void sizing_simulate(const struct sizing *sizing, const struct stage_times *requests, size_t count, uint32_t seed,
                     struct sizing_waits *waits) {
    struct arrival *arrivals = zeroed(ARRIVALS, sizeof *arrivals);
    double *free_at = zeroed((size_t)(sizing->encoders + sizing->models) + 1, sizeof *free_at);
    double busy[2] = {0, 0};
    draw(sizing, requests, count, seed, arrivals);
    for (size_t i = 0; i < count; i++) {
        busy[0] += sizing->rate * requests[i].image / 1e3 / (double)count;
        busy[1] += sizing->rate * (requests[i].prefill + requests[i].decode / sizing->batch) / 1e3 / (double)count;
    }
    for (size_t i = 0; i < ARRIVALS; i++) {
        struct arrival *arrival = &arrivals[i];
        arrival->ready = arrival->due;
        if (arrival->times.image <= 0) continue;
        arrival->image_wait = take_worker(free_at, sizing->encoders, arrival->due, arrival->times.image) - arrival->due;
        arrival->ready += arrival->image_wait + arrival->times.image;
    }
    qsort(arrivals, ARRIVALS, sizeof *arrivals, by_ready);
    for (size_t i = 0; i < ARRIVALS; i++) {
        struct arrival *arrival = &arrivals[i];
        const double begin = take_worker(free_at + sizing->encoders, sizing->models, arrival->ready,
                                         arrival->times.prefill + arrival->times.decode / sizing->batch);
        arrival->model_wait = begin - arrival->ready;
        arrival->ttft = begin + arrival->times.prefill - arrival->due;
    }
    waits->image_p50 = percentile_of(arrivals, offsetof(struct arrival, image_wait), 50);
    waits->image_p95 = percentile_of(arrivals, offsetof(struct arrival, image_wait), 95);
    waits->model_p50 = percentile_of(arrivals, offsetof(struct arrival, model_wait), 50);
    waits->model_p95 = percentile_of(arrivals, offsetof(struct arrival, model_wait), 95);
    waits->ttft_p50 = percentile_of(arrivals, offsetof(struct arrival, ttft), 50);
    waits->ttft_p95 = percentile_of(arrivals, offsetof(struct arrival, ttft), 95);
    if (busy[0] >= (double)sizing->encoders && busy[0] > 0)
        waits->image_p50 = waits->image_p95 = waits->ttft_p50 = waits->ttft_p95 = (double)NAN;
    if (busy[1] >= (double)sizing->models)
        waits->model_p50 = waits->model_p95 = waits->ttft_p50 = waits->ttft_p95 = (double)NAN;
    FREE_ALL(arrivals, free_at);
}
