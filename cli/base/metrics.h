/* metrics.h: the numbers of a timed pass: their keys in result files, and how they follow from its time stamps.
 * A pass_result comes in; a number in ms (or a count) comes out, NaN where the pass does not have it. */
#ifndef VLMPROF_CLI_METRICS_H
#define VLMPROF_CLI_METRICS_H
#include "vlmprof.h"
#include "vlmprof_stages.h"

/* What one timed pass gave. total_ns is taken around the whole pass, the times of the stages inside it. */
struct pass_result {
    int64_t total_ns;
    vp_stage_times times;
    int32_t token_count; int ended_by_eos;
    int32_t *tokens;  /* [new_tokens] */
    int64_t *step_ns; /* [new_tokens] */
    char *answer;     /* malloc'ed; it may contain NULs, so answer_bytes is its length */
    size_t answer_bytes;
    /* only where launches were recorded: the clock when the engine began, and how many records there are */
    int64_t engine_begin_ns, launch_count, span_count;
};

/* An array of run_count results with room for new_tokens each; runs_free frees it, NULL included. */
struct pass_result *runs_make(int32_t run_count, int32_t new_tokens);
void runs_free(struct pass_result *runs, int32_t run_count);

/* The numbers of a pass, in ms, named by the keys of the result files. The numbers of the stages follow from
 * METRIC_STAGE on (stage_metric): first the ms of every stage, then one detail of every stage after the other. */
enum { METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TOTAL, METRIC_PER_TOKEN, METRIC_TTFT, METRIC_UNACCOUNTED,
       METRIC_CLOSURE, METRIC_STAGE };

/* What a number is, with the field's name for it: key, unit, one sentence. This is the only place that says so: tables,
 * the report, its page and the guide `definitions` print it from here. First the metrics, in their order. */
#define METRIC_ROWS(ROW) \
    ROW("T_vision_total", "ms", "vision: the stages vit and connector") \
    ROW("T_LLM_prefill", "ms", "prefill: the stages embed, prefill, head and sample") \
    ROW("T_LLM_decode", "ms", "decode: all decode steps of a request") \
    ROW("T_total", "ms", "E2E, request latency: from the decoded image to the answer's text") \
    ROW("T_decode_per_token", "ms", \
        "TPOT, time per output token after the first: T_LLM_decode / (output tokens - 1)") \
    ROW("TTFT", "ms", "time to first token: the stages from preprocess to sample") \
    ROW("unaccounted", "ms", "T_total less the sum of all stages") \
    ROW("closure", "", "sum of all stages / T_total")
#define TERM_ROWS(ROW) \
    ROW("T_decode_per_step", "ms", "ITL, inter-token latency: one decode step; TPOT is the mean over a request") \
    ROW("decode_tokens_per_s", "tokens/s", "decode rate: 1000 / TPOT, without the time to the first token") \
    ROW("output_tokens_per_s", "tokens/s", "output rate: output tokens / T_total, with the time to the first token")
struct term { const char *key, *unit, *meaning; };
enum { TERM_STEP = METRIC_STAGE, TERM_DECODE_RATE, TERM_OUTPUT_RATE, TERM_COUNT };
extern const struct term TERMS[TERM_COUNT];

/* The terms behind the columns of a table of latencies. */
enum { LATENCY_TERM_COUNT = 7 };
extern const int LATENCY_TERMS[LATENCY_TERM_COUNT];

/* "KEY: what it is". */
enum { TERM_BYTES = 200 };
const char *term_line(int which, char out[TERM_BYTES]);

/* Adds such a line for each of the terms. */
struct document;
void terms_add(struct document *document, const int *which, size_t count);

/* Details of a stage; 0 is its ms. */
enum { DETAIL_WALL = 1, DETAIL_DEVICE, DETAIL_LAUNCHES, DETAIL_FLOPS, DETAIL_BYTES, DETAIL_COUNT };

extern const char *const METRIC_KEYS[METRIC_STAGE];
extern const char *const DETAIL_KEYS[DETAIL_COUNT];

/* The index of a stage's detail among the metrics. */
int stage_metric(int stage, int detail);

/* Truth: the stage runs on the host, so its time is the host's. The time of any other stage is taken on the device: on
 * a GPU the host's clock shows only how long it took to send the work. */
int is_host_stage(int stage);

/* A detail of a stage; NaN when the stage did not run, or runs on the host and has no such detail there. */
double stage_value(const struct pass_result *run, int stage, int detail);

/* A metric of one run; NaN when its stages did not run or were not timed. */
double metric_of(const struct pass_result *run, int metric);

/* decode_tokens_per_s and output_tokens_per_s of one run. The decode rate is NaN where there is no TPOT. */
double decode_rate_of(const struct pass_result *run);
double output_rate_of(const struct pass_result *run);

/* The mean of a metric over runs; NaN when one of them lacks it. */
double metric_mean(const struct pass_result *runs, int32_t run_count, int metric);

extern const char OPS_COLUMNS_TEXT[]; /* what the times in the table of operations are; a line */

vp_estimate estimate_none(void); /* all NaN */

/* The median and its 95 % interval, NaN where there are too few values. Sorts the values. */
vp_estimate median_of(double *values, size_t count);

/* A median and a range of two of the values that covers the median of their distribution at `level`: at 95 % or the
 * next level above it; of 3 to 5 values, which have no such range, from the smallest to the largest. */
struct median_range { double median, low, high, level; };

/* Below 3 values low, high and level are NaN; without values, or with one that is not finite, the median is, too. Sorts
 * the values. */
struct median_range median_range_of(double *values, size_t count);

/* What the range of `count` values is, in words ("[min, max] of 3 runs covers the median at 75 %"); empty where it has
 * no level. Returns out. */
enum { RANGE_WORDS = 100 };
const char *range_words(size_t count, const char *what, double level, char out[RANGE_WORDS]);

#endif
