/* test_load_sizing.c: worker counts, and the simulated queue of `predict --workers` against a second simulation of the same two stages, which goes from event to event,
 * while load_sizing.c goes from request to request. */
#include "load/load_sizing.h"
#include "support/check.h"
#include "vlmprof_load.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 20000, STAGES = 2 };
struct one { double due, waits[STAGES], ttft, service[STAGES], prefill, began; };
/* The next event: a request enters or leaves a stage. */
struct event { double at; int request, stage, is_end; };
static struct one all[REQUESTS];
static struct event heap[4 * REQUESTS];
static int heap_count, queue[STAGES][REQUESTS], heads[STAGES], tails[STAGES];

static void push(double at, int request, int stage, int is_end) {
    int place = heap_count++;
    const struct event event = {at, request, stage, is_end};
    while (place && heap[(place - 1) / 2].at > at) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = event;
}
static struct event pop(void) {
    const struct event first = heap[0], last = heap[--heap_count];
    int place = 0;
    for (;;) {
        int child = 2 * place + 1;
        if (child >= heap_count) break;
        child += child + 1 < heap_count && heap[child + 1].at < heap[child].at;
        if (heap[child].at >= last.at) break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = last;
    return first;
}
static void run_events(const struct sizing *sizing) {
    int64_t idle[STAGES] = {sizing->encoders, sizing->models};
    memset(heads, 0, sizeof heads);
    memset(tails, 0, sizeof tails);
    heap_count = 0;
    for (int i = 0; i < REQUESTS; i++) push(all[i].due, i, all[i].service[0] > 0 ? 0 : 1, 0);
    while (heap_count) {
        const struct event event = pop();
        if (event.is_end) {
            idle[event.stage]++;
            if (!event.stage) push(event.at, event.request, 1, 0);
        } else {
            all[event.request].waits[event.stage] = event.at;
            queue[event.stage][tails[event.stage]++] = event.request;
        }
        for (int stage = 0; stage < STAGES; stage++)
            while (idle[stage] && heads[stage] < tails[stage]) {
                struct one *next = &all[queue[stage][heads[stage]++]];
                idle[stage]--;
                next->waits[stage] = event.at - next->waits[stage];
                if (stage) next->ttft = event.at + next->prefill - next->due;
                push(event.at + next->service[stage], (int)(next - all), stage, 1);
            }
    }
}
static int by_number(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}
static double percentile(size_t offset, double percent, size_t first, size_t end) {
    static double values[REQUESTS];
    for (size_t i = first; i < end; i++) memcpy(&values[i - first], (const char *)&all[i] + offset, sizeof *values);
    qsort(values, end - first, sizeof *values, by_number);
    return vp_statistics_percentile(values, end - first, percent);
}
/* Arrivals of the same process as in load_sizing.c, but other draws. */
static void draw(const struct sizing *sizing, const struct stage_times *times, size_t count) {
    vp_arrivals arrivals;
    vp_random random;
    vp_arrivals_begin(VP_ARRIVALS_POISSON, sizing->rate, 1, 977, &arrivals);
    vp_random_seed(&random, 5);
    for (int i = 0; i < REQUESTS; i++) {
        const struct stage_times *own = &times[vp_random_below(&random, count - 1)];
        const struct one one = {1e3 * vp_arrivals_next(&arrivals), {0, 0}, 0, {own->image, own->prefill + own->decode / sizing->batch}, own->prefill, 0};
        all[i] = one;
    }
}
static void test_counts(void) {
    check_case("the smallest number of workers that are busy at most a given share of the time");
    CHECK_INT(sizing_workers(10, 0.08, 0.8), 1);
    CHECK_INT(sizing_workers(10, 0.0801, 0.8), 2);
    CHECK_INT(sizing_workers(1, 0, 0.8), 0);
    CHECK_INT(sizing_workers(100, 0.25, 0.5), 50);
}
static void test_queues(void) {
    static const struct stage_times mixed[] = {{60, 40, 300}, {110, 70, 500}, {0, 25, 200}};
    static const struct { struct sizing sizing; const char *words; } rows[] = {
        {{12, 1, 1, 6}, "12 a second, 1 encoder, 6 language models"}, {{30, 8, 3, 5}, "30 a second, 3 and 5, 8 requests decoded at once"},
        {{4, 1, 3, 2}, "4 a second, 3 encoders that are hardly busy, 2 language models"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sizing_waits waits;
        check_case("two stages, three kinds of requests: %s: waits and TTFT equal those of an event simulation", rows[i].words);
        sizing_simulate(&rows[i].sizing, mixed, 3, 42, &waits);
        draw(&rows[i].sizing, mixed, 3);
        run_events(&rows[i].sizing);
        CHECK_NEAR(waits.ttft_p50, percentile(offsetof(struct one, ttft), 50, 2000, REQUESTS), 0.08 * waits.ttft_p50);
        CHECK_NEAR(waits.ttft_p95, percentile(offsetof(struct one, ttft), 95, 2000, REQUESTS), 0.12 * waits.ttft_p95);
        CHECK_NEAR(waits.image_p95, percentile(offsetof(struct one, waits), 95, 2000, REQUESTS), 0.12 * waits.image_p95 + 2);
        CHECK_NEAR(waits.model_p95, percentile(offsetof(struct one, waits) + sizeof(double), 95, 2000, REQUESTS), 0.2 * waits.model_p95 + 2);
    }
}
/* The number of workers that sizing returns is enough; one fewer than the work needs is not. */
static void test_enough(void) {
    static const struct stage_times times[] = {{70, 50, 400}};
    const double rate = 20;
    struct sizing sizing = {rate, 1, sizing_workers(rate, 0.07, 0.8), sizing_workers(rate, 0.45, 0.8)};
    struct sizing_waits waits;
    check_case("with the workers that sizing recommends, the last requests wait no longer than the first; with fewer, the queue grows");
    CHECK(sizing.encoders == 2 && sizing.models == 12);
    draw(&sizing, times, 1);
    run_events(&sizing);
    CHECK(percentile(offsetof(struct one, ttft), 50, 15000, REQUESTS) < 1.2 * percentile(offsetof(struct one, ttft), 50, 1000, 6000));
    sizing.models = 8; /* 9 are busy on average */
    draw(&sizing, times, 1);
    run_events(&sizing);
    CHECK(percentile(offsetof(struct one, ttft), 50, 15000, REQUESTS) > 3 * percentile(offsetof(struct one, ttft), 50, 1000, 6000));
    sizing_simulate(&sizing, times, 1, 42, &waits);
    CHECK(isnan(waits.model_p95) && isnan(waits.ttft_p50) && isfinite(waits.image_p95));
}
int main(void) {
    test_counts();
    test_queues();
    test_enough();
    return check_done("test_load_sizing");
}
