/* An engine with two threads and a device that works on its own: each marks its stages on a clock of its own, and all
 * clocks go into one Chrome trace. The device here only pretends: it says when a piece of work began and ended, as CUDA
 * events or an NPU's log do. With -DVLMPROF_OFF the marks compile to nothing.
 * cc -I. -Iparts samples/06_threads_and_device.c -lm -lpthread -o threads && ./threads trace.json */
#define _POSIX_C_SOURCE 200809L
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_trace.h"
#include <pthread.h>
#include <stdio.h>

enum { REQUESTS = 8, STEPS = 4, MARKS = REQUESTS * (STEPS + 2), VISION = 0, LANGUAGE = 1, DEVICE = 2, ROWS = 3 };
static const char *const names[ROWS] = {"vision thread", "language thread", "device"};
static vp_stage_clock clocks[ROWS];

static void work(int64_t ns) {
    for (const int64_t begin_ns = vp_clock_ns(); vp_clock_ns() - begin_ns < ns;) {}
}
/* The device starts when it is free, and tells its times afterwards. Only the language thread uses it. With CUDA:
 *     cudaEventRecord(base, stream), cudaEventSynchronize(base);
 *     const int64_t base_ns = vp_clock_ns();                              once, while the stream is idle
 *     cudaEventRecord(first, stream); ...; cudaEventRecord(last, stream); around the kernels of a stage
 *     cudaEventSynchronize(last);
 *     cudaEventElapsedTime(&begin_ms, base, first), cudaEventElapsedTime(&end_ms, base, last);
 *     vp_stage_add(&clock, "prefill", base_ns + (int64_t)(begin_ms * 1e6), base_ns + (int64_t)(end_ms * 1e6));
 * base_ns is some microseconds late, since the host must notice the event; after some seconds, take a new base, because
 * the float has only 24 bits. A row of a result file needs only durations: {"prefill", (int64_t)((end_ms - begin_ms) *
 * 1e6)} is its vp_results_stage; or mark "request" around the stages and call vp_results_stages (sample 02). */
static void device_run(const char *name, int64_t ns) {
    const int64_t begin_ns = vp_clock_ns();
    work(ns); /* a real engine goes on here, and asks for the times of the events later */
    vp_stage_add(&clocks[DEVICE], name, begin_ns, begin_ns + ns);
}
static void *see(void *unused) {
    for (int i = 0; i < REQUESTS; i++) {
        vp_stage_begin(&clocks[VISION], "encode image");
        work(300000);
        vp_stage_end(&clocks[VISION]);
    }
    return unused;
}
static void *speak(void *unused) {
    for (int i = 0; i < REQUESTS; i++) {
        vp_stage_begin(&clocks[LANGUAGE], "request");
        for (int step = 0; step <= STEPS; step++) {
            vp_stage_begin(&clocks[LANGUAGE], step ? "decode" : "prefill");
            device_run(step ? "decode kernels" : "prefill kernels", step ? 20000 : 100000);
            vp_stage_end(&clocks[LANGUAGE]);
        }
        vp_stage_end(&clocks[LANGUAGE]);
    }
    return unused;
}

int main(int argc, char **argv) {
    static vp_stage_mark marks[ROWS][MARKS];
    const char *path = argc > 1 ? argv[1] : "trace.json";
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = NULL;
    pthread_t threads[2];
    double scratch[MARKS];
    vp_statistics decode;

    for (int32_t i = 0; i < ROWS; i++) {
        clocks[i] = vp_stage_clock_over(marks[i], MARKS);
        clocks[i].thread = i;
    }
    if (pthread_create(&threads[0], NULL, see, NULL) || pthread_create(&threads[1], NULL, speak, NULL)) return 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);

    if (vp_stage_statistics(&clocks[LANGUAGE], "decode", scratch, &decode) == VP_OK)
        printf("%d decode steps, P50 %.0f us\n", (int)decode.count, decode.p50 / 1000);
    vp_result result = vp_trace_open(path, NULL, NULL, &trace, &error);
    for (int32_t i = 0; i < ROWS && result == VP_OK; i++) {
        result = vp_trace_thread_name(trace, i, names[i], &error);
        if (result == VP_OK) result = vp_trace_stages(trace, &clocks[i], &error);
    }
    if (result == VP_OK) result = vp_trace_close(trace, NULL, &error);
    printf("%s: %s\n", path, result == VP_OK ? "written" : error.text);
    vp_trace_free(trace);
    return result != VP_OK;
}
