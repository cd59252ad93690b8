/* metrics.h: the numbers of a timed pass: their keys in result files, and how they follow from its stamps. */
#ifndef VLMPROF_CLI_METRICS_H
#define VLMPROF_CLI_METRICS_H
#include "vlmprof.h"
#include "vlmprof_stages.h"

/* what one pass gave; total_ns is read around the whole chain, the stages inside it */
typedef struct timing {
    int64_t total_ns;
    vp_stage_times times;
    int32_t token_count; int ended_by_eos;
    int32_t *tokens;  /* [new_tokens] */
    int64_t *step_ns; /* [new_tokens] */
    char *answer;     /* malloc'ed; a model may write a NUL, so its length counts */
    size_t answer_bytes;
    int64_t engine_begin_ns, launch_count, span_count; /* with launches: the clock when the engine began, and how many there were */
} timing;

timing *timings_make(int32_t runs, int32_t new_tokens);
void timings_free(timing *t, int32_t runs);

/* The numbers of a pass, by the keys of the result files, in ms; behind METRIC_STAGE those of the stages: first each one's ms, then by DETAIL. */
enum { METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TOTAL, METRIC_PER_TOKEN, METRIC_TTFT, METRIC_UNACCOUNTED, METRIC_CLOSURE, METRIC_STAGE };
enum { DETAIL_WALL = 1, DETAIL_DEVICE, DETAIL_LAUNCHES, DETAIL_FLOPS, DETAIL_BYTES, DETAIL_COUNT };

extern const char *const METRIC_KEYS[METRIC_STAGE];
extern const char *const DETAIL_KEYS[DETAIL_COUNT];

int stage_metric(int stage, int detail);

/* A stage takes the time between its boundaries on the device: on a GPU the host's clock shows only how long sending took. */
int is_host_stage(int stage);

double stage_value(const timing *t, int stage, int detail); /* NaN: did not run, or means nothing on the host */
double metric_of(const timing *t, int metric); /* NaN: did not run */

/* mean over runs; NaN when one of them lacks the number */
double metric_mean(const timing *t, int32_t runs, int metric);

vp_estimate estimate_none(void);

/* Median with its interval; sorts the values. */
vp_estimate median_of(double *values, size_t count);

#endif
