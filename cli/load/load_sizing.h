/* load_sizing.h: the workers that a request rate needs if vision encoder and language model run separately (EPD).
 * Times of the two stages come in; worker counts, and the waits from a simulated queue, come out. */
#ifndef VLMPROF_CLI_LOAD_SIZING_H
#define VLMPROF_CLI_LOAD_SIZING_H
#include <stddef.h>
#include <stdint.h>

/* The ms of a single request; image is 0 for text only. A worker of the language model is busy for the prefill and for
 * decode / batch: it decodes `batch` requests at once, each as fast as a single one. */
struct stage_times { double image, prefill, decode; };

/* The fewest workers that are busy for at most the share `busy` of the time. seconds: time per request. */
int64_t sizing_workers(double rate, double seconds, double busy);

struct sizing { double rate, batch; int64_t encoders, models; };
/* ms: the waits of a request before each stage, and its time from arrival to first token; NaN if the queue grows
 * forever */
struct sizing_waits { double image_p50, image_p95, model_p50, model_p95, ttft_p50, ttft_p95; };

/* Simulates 20,000 Poisson arrivals of these requests, all equally frequent, first come first served. The first tenth
 * is not counted. */
void sizing_simulate(const struct sizing *sizing, const struct stage_times *requests, size_t count, uint32_t seed,
                     struct sizing_waits *waits);

#endif
