/* load_sizing.h: how many workers a rate of requests needs where vision encoder and language model are apart (EPD).
 * Times of the two stages come in; numbers of workers, and the waits of a simulated queue of them, come out. */
#ifndef VLMPROF_CLI_LOAD_SIZING_H
#define VLMPROF_CLI_LOAD_SIZING_H
#include "vlmprof.h"
#include <stddef.h>
#include <stdint.h>

/* ms that a request takes one at a time; image 0: text only. A worker of the language model is busy for the prefill and
 * for decode / batch: it decodes `batch` requests at once, each as fast as one alone. */
struct stage_times { double image, prefill, decode; };

/* The fewest workers that are busy for at most a share `busy` of the time. seconds: of a request. */
int64_t sizing_workers(double rate, double seconds, double busy);

struct sizing { double rate, batch; int64_t encoders, models; };
/* ms; what requests wait before a stage, and from arrival to the first token; NaN: the queue grows without end */
struct sizing_waits { double image_p50, image_p95, model_p50, model_p95, ttft_p50, ttft_p95; };

/* Poisson arrivals of these requests, each as often as the others, first come first served: 20,000 of them, of which
 * the first tenth is not counted. */
void sizing_simulate(const struct sizing *sizing, const struct stage_times *requests, size_t count, uint32_t seed,
                     struct sizing_waits *waits);

#endif
