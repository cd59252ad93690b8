/* metrics.h: the numbers of a timed pass: their keys in result files, and how they follow from its time stamps.
 * A pass_result comes in; a number in ms (or a count) comes out, NaN where the pass does not have it. */
#ifndef VLMPROF_CLI_METRICS_H
#define VLMPROF_CLI_METRICS_H
#include "vlmprof.h"
#include "vlmprof_chat.h"
#include "vlmprof_stages.h"

/* What a pass of a server gave: its answer as it arrived, instead of the times of stages. The times are counted from
 * the moment at which the request was handed over; -1: it did not come to that. It owns its texts and pieces. */
struct served {
    int64_t sent_ns, headers_ns, end_ns; /* first byte sent, headers read, body ended */
    int64_t uploaded_ns, first_chunk_ns; /* last byte sent, first part of a stream; journals do not keep them */
    int64_t first_ns, first_output_ns;   /* first piece; first that is not reasoning. -1 for an answer in one body */
    vp_chat_piece *pieces; size_t piece_count; /* at_ns is counted from the start as well */
    vp_chat_usage usage;                       /* -1: the server does not say */
    char *model, *finish_reason, *reasoning, *timings; /* as the server says them; timings is a JSON object; or NULL */
    int is_streamed, is_new_connection;        /* truths */
    int http_status; int32_t attempts;
};

/* Numbers of a pass that journals keep, a row each: name, key, unit, meaning, and the value where a pass of the engine
 * ends (request_run; NaN: none). Each is a metric as well: results have its mean and its runs, reports its columns. */
#define KEPT_ROWS(ROW, ...) \
    ROW(ENERGY, "energy_j", "J", \
        "energy that the GPU used from the beginning of a request to its end, by NVML's counter", joules, __VA_ARGS__)
#define KEPT_ID(id, key, unit, meaning, value, ...) KEPT_##id,
#define KEPT_TERM(id, key, unit, meaning, value, ROW) ROW(METRIC_##id, key, unit, meaning)
enum { KEPT_ROWS(KEPT_ID, 0) KEPT_COUNT };

/* What one timed pass gave. total_ns is taken around the whole pass, the times of the stages inside it. Of a server's
 * pass it is the time to the last piece, or to the end of an answer without pieces; it has no stages, no tokens and no
 * step_ns, and token_count is what the server's usage says, 0 where it says nothing. */
struct pass_result {
    int64_t total_ns;
    struct served *served; /* NULL: a pass of the engine. runs_free frees it */
    vp_stage_times times;
    int32_t token_count; int ended_by_eos;
    int32_t *tokens;  /* [new_tokens] */
    int64_t *step_ns; /* [new_tokens] */
    char *answer;     /* malloc'ed; it may contain NULs, so answer_bytes is its length */
    size_t answer_bytes;
    /* only where launches were recorded: the clock when the engine began, and how many records there are */
    int64_t engine_begin_ns, launch_count, span_count;
    /* with pruning and a dump, as vp_reply has them */
    int32_t kept_count, kept_tokens, skips_features;
    /* of a GPU that counts it; the resolution is what the device used in one step of its counter */
    int has_energy; double energy_resolution_j;
    double kept[KEPT_COUNT]; int has_kept[KEPT_COUNT]; /* has_kept: truths */
};

/* An array of run_count results with room for new_tokens each; runs_free frees it, NULL included. */
struct pass_result *runs_make(int32_t run_count, int32_t new_tokens);
void runs_free(struct pass_result *runs, int32_t run_count);

/* What a number is, with the field's name for it: key, unit, one sentence. This is the only place that says so: tables,
 * the report, its page and the guide `definitions` print it from here. First the metrics, in their order. */
#define METRIC_ROWS(ROW) \
    ROW(METRIC_VISION, "T_vision_total", "ms", "vision: the stages vit and connector") \
    ROW(METRIC_PREFILL, "T_LLM_prefill", "ms", "prefill: the stages embed, prefill, head and sample") \
    ROW(METRIC_DECODE, "T_LLM_decode", "ms", "decode: all decode steps of a request") \
    ROW(METRIC_TOTAL, "T_total", "ms", "E2E, request latency: from the decoded image to the answer's text") \
    ROW(METRIC_PER_TOKEN, "T_decode_per_token", "ms", \
        "TPOT, time per output token after the first: T_LLM_decode / (output tokens - 1)") \
    ROW(METRIC_TTFT, "TTFT", "ms", "time to first token: the stages from preprocess to sample") \
    ROW(METRIC_UNACCOUNTED, "unaccounted", "ms", "T_total minus the sum of all stages") \
    ROW(METRIC_CLOSURE, "closure", "", "sum of all stages / T_total") \
    KEPT_ROWS(KEPT_TERM, ROW) \
    ROW(METRIC_TOKEN_ENERGY, "energy_per_token_j", "J", "energy_j / output tokens, the prompt's share included")
#define TERM_ROWS(ROW) \
    ROW(TERM_STEP, "T_decode_per_step", "ms", \
        "ITL, inter-token latency: one decode step; TPOT is the mean over a request") \
    ROW(TERM_DECODE_RATE, "decode_tokens_per_s", "tokens/s", \
        "decode rate: 1000 / TPOT, without the time to the first token") \
    ROW(TERM_OUTPUT_RATE, "output_tokens_per_s", "tokens/s", \
        "output rate: output tokens / T_total, with the time to the first token")
/* What the same words mean where a server answers, seen from its client. */
#define SERVED_ROWS(ROW) \
    ROW(METRIC_DECODE, "decode: from the first piece of the answer to the last") \
    ROW(METRIC_TOTAL, "E2E, request latency: from the request's start to the last piece of the answer") \
    ROW(METRIC_TTFT, "time to first token: from the request's start to the first piece of the answer") \
    ROW(TERM_STEP, "ITL: from one piece of the answer to the next; a piece may contain several tokens")
/* The numbers of a pass, in ms, named by the keys of the result files. The numbers of the stages follow from
 * METRIC_STAGE on (stage_metric): first the ms of every stage, then one detail of every stage after the other. */
#define TERM_ID(id, key, unit, meaning) id,
enum { METRIC_ROWS(TERM_ID) METRIC_STAGE };
enum { TERM_BEFORE = METRIC_STAGE - 1, TERM_ROWS(TERM_ID) TERM_COUNT };
struct term { const char *key, *unit, *meaning; };
extern const struct term TERMS[TERM_COUNT];

/* The terms for the columns of a table of latencies. */
enum { LATENCY_TERM_COUNT = 7 };
extern const int LATENCY_TERMS[LATENCY_TERM_COUNT];

/* What a term means in a server's pass. */
const char *served_meaning(int which);

/* "KEY: what it is". */
enum { TERM_BYTES = 200 };
const char *term_line(int which, char out[TERM_BYTES]);

/* Adds such a line for each of the terms. */
struct document;
void terms_add(struct document *document, const int *which, size_t count);
/* The same as seen from outside a server. */
void served_terms_add(struct document *document, const int *which, size_t count);

/* Details of a stage; 0 is its ms. */
enum { DETAIL_WALL = 1, DETAIL_DEVICE, DETAIL_LAUNCHES, DETAIL_FLOPS, DETAIL_BYTES, DETAIL_COUNT };

extern const char *const METRIC_KEYS[METRIC_STAGE];
extern const char *const DETAIL_KEYS[DETAIL_COUNT];

/* The index of a stage's detail among the metrics. */
int stage_metric(int stage, int detail);

/* Returns 1 if the stage runs on the host, so its time is the host's. The time of any other stage is taken on the
 * device: on a GPU the host's clock shows only how long it took to send the work. */
int is_host_stage(int stage);

/* A detail of a stage; NaN when the stage did not run, or runs on the host and has no such detail there. */
double stage_value(const struct pass_result *run, int stage, int detail);

/* A metric of one run; NaN when its stages did not run or were not timed, or when a server's answer does not show
 * it. */
double metric_of(const struct pass_result *run, int metric);

/* Returns 1 if all runs gave the same answer, by its tokens; of a server's answers only the text is known. */
int answers_are_equal(const struct pass_result *runs, int32_t run_count);

/* Returns 1 if files leave this metric out where it has no value: only some GPUs count energy. */
int is_left_out(int metric, double value);

/* Returns 1 if the server says that half of the prompt or more came from a cache, so the times are not those of the
 * first request. The first tokens of a chat template are always the same: a few cached ones say nothing. */
int is_prompt_cached(const struct pass_result *run);

/* Adds a warning when servers read prompts of measured runs from a cache. */
struct text_list;
void warn_of_cached_runs(struct text_list *warnings, int64_t cached_count, int64_t run_count);

/* Why a server's pass lacks this metric; NULL: it has it. */
const char *served_lacks(const struct pass_result *run, int metric);

/* Milliseconds of a stamp of a server's pass; NaN: it did not come to that. */
double served_ms(int64_t ns);

/* From one piece of a server's answer to the next in ms: out has room for piece_count - 1. Returns how many. */
size_t served_gaps(const struct served *served, double *out);

/* decode_tokens_per_s and output_tokens_per_s of one run. The decode rate is NaN where there is no TPOT, both are where
 * a server does not say how many tokens it made. */
double decode_rate_of(const struct pass_result *run);
double output_rate_of(const struct pass_result *run);

/* The mean of a metric over runs; NaN when one of them lacks it. */
double metric_mean(const struct pass_result *runs, int32_t run_count, int metric);

extern const char FIDELITY_TEXT[]; /* what the columns of a comparison with a baseline are */
extern const char TWINS_TEXT[]; /* what T_image_outside is; a line */
extern const char OPS_COLUMNS_TEXT[]; /* what the times in the table of operations are; a line */

vp_estimate estimate_none(void); /* all NaN */

/* The median and its 95 % interval, NaN where there are too few values. Sorts the values. */
vp_estimate median_of(double *values, size_t count);

/* A median and a range of two of the values that covers the median of their distribution at `level`: at 95 % or the
 * next level above it; of 3 to 5 values, which have no such range, from the smallest to the largest. */
struct median_range { double median, low, high, level; };

/* Below 3 values low, high and level are NaN; without values, or with one that is not finite, the median is as well.
 * Sorts the values. */
struct median_range median_range_of(double *values, size_t count);

/* A term of one run: a metric or a rate. */
double term_of(const struct pass_result *run, int term);

/* TPOT of a server's answer of fewer tokens is not shown, because one late piece would decide it. */
enum { TPOT_TOKENS_LEAST = 5 };

/* No server decodes a request so fast: where the rate is higher, the answer was buffered and came at once. */
static const double CREDIBLE_TOKENS_PER_S = 50000;

/* The median of a number over runs, and its range. */
struct median_range range_of_runs(const struct pass_result *runs, int32_t run_count,
                                  double (*number)(const struct pass_result *, int), int which);

/* What the range of `count` values is, in words ("[min, max] of 3 runs covers the median at 75 %"); empty where it has
 * no level. Returns out. */
enum { RANGE_WORDS = 100 };
const char *range_words(size_t count, const char *what, double level, char out[RANGE_WORDS]);

#endif
