/* metrics.h: the numbers of a timed pass: their keys in result files, and their computation from time stamps.
 * A pass_result comes in; a number in ms (or a count) comes out, NaN if the pass lacks it. */
#ifndef VLMPROF_CLI_METRICS_H
#define VLMPROF_CLI_METRICS_H
#include "vlmprof_chat.h"
#include "vlmprof_stages.h"

/* Times that servers report in their answers, under many names. */
enum { SERVER_QUEUE, SERVER_PREPROCESS, SERVER_ENCODER, SERVER_PREFILL, SERVER_TIMES };

/* The result of a server's pass: the arrival of its answer, instead of the times of stages. Times count from the first
 * byte sent; -1 if the event did not happen. It owns its texts and pieces. */
struct served {
    int64_t delay_ns;                    /* before the first byte: the client's own delay, and connecting; or -1 */
    int64_t sent_ns, headers_ns, end_ns; /* headers read, end of the body; sent: 0, in older journals the delay */
    int64_t uploaded_ns, first_chunk_ns; /* last byte sent, first part of a stream; not in journals */
    int64_t first_ns, first_output_ns;   /* first piece, and first without reasoning; -1 if in one body */
    vp_chat_piece *pieces; size_t piece_count; /* at_ns also counts from the start */
    vp_chat_usage usage;                       /* -1: not reported by the server */
    char *model, *finish_reason, *reasoning, *timings; /* the server's texts, or NULL; timings is a JSON object */
    int is_streamed, is_new_connection;        /* 1 or 0 */
    int http_status; int32_t attempts;
    int image_dropped;            /* 1 if its prompt is too short for its images, 0 if not, -1 if not known */
    int reported; double server_ms[SERVER_TIMES]; /* from `timings`; bit 1 << time of `reported`: it is there */
};
void served_read_timings(struct served *served); /* sets `reported` and server_ms */

/* Numbers of a pass that journals store, one per row: name, key, unit, meaning, and the value at the end of a pass of
 * the engine (in request_run; NaN if none). Each is also a metric: results have its mean and runs. */
#define KEPT_ROWS(ROW, ...) \
    ROW(ENERGY, "energy_j", "J", \
        "energy that the GPU used from the start of a request to its end, by NVML's counter", joules, __VA_ARGS__)
#define KEPT_ID(id, key, unit, meaning, value, ...) KEPT_##id,
#define KEPT_TERM(id, key, unit, meaning, value, ROW) ROW(METRIC_##id, key, unit, meaning)
enum { KEPT_ROWS(KEPT_ID, 0) KEPT_COUNT };

/* The result of one timed pass. total_ns covers the whole pass, the times of the stages are inside it. On a server,
 * total_ns ends with the last piece, or with an answer that has no pieces. A server's pass has no stages, tokens or
 * step_ns; its token_count comes from the server's usage, 0 if that is not reported. */
struct pass_result {
    int64_t total_ns;
    int64_t overhead_ns;   /* in total_ns, before the pass: the time of a policy's choice */
    struct served *served; /* NULL for a pass of the engine. runs_free frees it */
    vp_reply reply;        /* the engine's, with the times of the host's stages */
    char *answer;          /* malloc'ed; it may contain NULs, so answer_bytes is its length */
    size_t answer_bytes;
    int64_t engine_begin_ns; /* the clock at the start of the engine; only if launches were recorded */
    /* for a GPU that counts energy; the resolution is the energy used per step of the counter */
    double energy_resolution_j; /* NaN for others, and if not known */
    double kept[KEPT_COUNT];    /* NaN: none */
};

/* Allocates run_count results with space for new_tokens each. runs_free frees them; it accepts NULL. */
struct pass_result *runs_make(int32_t run_count, int32_t new_tokens);
void runs_free(struct pass_result *runs, int32_t run_count);
void runs_set_unknown(struct pass_result *run); /* sets the numbers of KEPT_ROWS and the resolution to NaN */

/* The definitions of all numbers: key, unit, and a sentence with the field's name for the number. Tables, the report,
 * its page and the guide `definitions` print them from here. The metrics come first, in order. */
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
    ROW(METRIC_TOKEN_ENERGY, "energy_per_token_j", "J", \
        "energy_j / output tokens, including the energy of the prompt") \
    ROW(METRIC_DELAY, "T_client_delay", "ms", \
        "server only: time until the client sent the first byte, including connecting; TTFT and T_total include it " \
        "only under load") \
    ROW(METRIC_QUEUE, "T_queue", "ms", "server only: time in the server's queue, by its own clock")
#define TERM_ROWS(ROW) \
    ROW(TERM_STEP, "T_decode_per_step", "ms", \
        "ITL, inter-token latency: time of one decode step; TPOT is its mean over a request") \
    ROW(TERM_DECODE_RATE, "decode_tokens_per_s", "tokens/s", \
        "decode rate: 1000 / TPOT, excluding the time to the first token") \
    ROW(TERM_OUTPUT_RATE, "output_tokens_per_s", "tokens/s", \
        "output rate: output tokens / T_total, including the time to the first token")
/* The definitions that differ for a server, as measured by its client. */
#define SERVED_ROWS(ROW) \
    ROW(METRIC_DECODE, "decode: from the first piece of the answer to the last") \
    ROW(METRIC_VISION, "vision encoder, by the server's clock") \
    ROW(METRIC_PREFILL, "prefill, by the server's clock; it may include the vision encoder") \
    ROW(METRIC_TOTAL, \
        "E2E, request latency: from the first byte sent (under load: the due time) to the answer's last piece") \
    ROW(METRIC_TTFT, \
        "time to first token: from the first byte sent (under load: the due time) to the answer's first piece") \
    ROW(TERM_STEP, "ITL: from one piece of the answer to the next; a piece may contain several tokens")
/* The numbers of a pass, in ms, named by the keys of the result files. The numbers of the stages start at METRIC_STAGE
 * (see stage_metric): first the ms of every stage, then one detail after another, each for every stage. */
#define TERM_ID(id, key, unit, meaning) id,
enum { METRIC_ROWS(TERM_ID) METRIC_STAGE };
enum { TERM_BEFORE = METRIC_STAGE - 1, TERM_ROWS(TERM_ID) TERM_COUNT };
struct term { const char *key, *unit, *meaning; };
extern const struct term TERMS[TERM_COUNT];

/* The terms for the columns of a table of latencies. */
enum { LATENCY_TERM_COUNT = 7 };
extern const int LATENCY_TERMS[LATENCY_TERM_COUNT];

/* The meaning of a term for a server's pass. */
const char *served_meaning(int which);

/* Adds a line "KEY: MEANING" for each term. */
struct document;
void terms_add(struct document *document, int is_served, const int *which, size_t count);

/* Details of a stage; 0 is its ms. */
enum { DETAIL_WALL = 1, DETAIL_DEVICE, DETAIL_LAUNCHES, DETAIL_FLOPS, DETAIL_BYTES, DETAIL_COUNT };

extern const char *const METRIC_KEYS[METRIC_STAGE];
extern const char *const DETAIL_KEYS[DETAIL_COUNT];

/* The index of a stage's detail among the metrics. */
int stage_metric(int stage, int detail);

/* Returns 1 if the stage runs on the host, so its time is the host's. Any other stage is timed on the device. On a GPU,
 * the host's clock would only show the time to submit the work. */
int is_host_stage(int stage);
/* Returns 1 if the stage is a copy: work without kernels, so its whole time counts as busy. */
int is_copy_stage(int stage);

/* A detail of a stage; NaN if the stage did not run, or runs on the host, which does not have this detail. */
double stage_value(const struct pass_result *run, int stage, int detail);

/* A metric of one run; NaN if its stages did not run or were not timed, or if a server's answer does not contain it. */
double metric_of(const struct pass_result *run, int metric);

/* Returns 1 if all runs gave the same tokens; for a server, whose tokens are not known, the same text. */
int answers_are_equal(const struct pass_result *runs, int32_t run_count);

/* Returns 1 if files omit this metric when it has no value: only some GPUs count energy. */
int is_left_out(int metric, double value);

/* Returns 1 if the server reports that half of the prompt or more came from a cache, so the times are not those of a
 * first request. A few cached tokens do not count: the first tokens of a chat template are always the same. */
int is_prompt_cached(const struct pass_result *run);

/* Adds a warning if servers read prompts of measured runs from a cache, and one if they dropped images. */
struct text_list;
void warn_of_served_runs(struct text_list *warnings, int64_t cached_count, int64_t dropped_count, int64_t run_count);

/* Why a server's pass lacks this metric; NULL if it has it. */
const char *served_lacks(const struct pass_result *run, int metric);

/* A time stamp of a server's pass in ms; NaN if the event did not happen. */
double served_ms(int64_t ns);

/* Time of the first piece of a server's answer with text other than white space; -1 if there is none. */
int64_t served_visible_ns(const struct pass_result *run);

/* Times between consecutive pieces of a server's answer, in ms. out has space for piece_count - 1.
 * Returns their number. */
size_t served_gaps(const struct served *served, double *out);

/* decode_tokens_per_s and output_tokens_per_s of one run. The decode rate is NaN without a TPOT. Both are NaN if the
 * server does not report how many tokens it generated. */
double decode_rate_of(const struct pass_result *run);
double output_rate_of(const struct pass_result *run);

/* The mean of a metric over runs; NaN if one of them lacks it. */
double metric_mean(const struct pass_result *runs, int32_t run_count, int metric);

extern const char FIDELITY_TEXT[]; /* definitions of the columns of a comparison with a baseline */
extern const char TWINS_TEXT[]; /* definition of T_image_outside; one line */
extern const char OPS_COLUMNS_TEXT[]; /* definitions of the times in the table of operations; one line */

vp_estimate estimate_none(void); /* all NaN */

/* The mean of scores in 0..1 and its 95 % interval, NaN if there are no scores. */
vp_estimate mean_score(const double *scores, size_t count);

/* The median and its 95 % interval, NaN if there are too few values. Sorts the values. */
vp_estimate median_of(double *values, size_t count);

/* A median and a range between two of the values, which covers the median of their distribution at `level`: 95 % or the
 * next possible level above it. 3 to 5 values have no such range; theirs is from the smallest to the largest. */
struct median_range { double median, low, high, level; };

/* With fewer than 3 values, low, high and level are NaN. Without values, or if one is not finite, the median is also
 * NaN. Sorts the values. */
struct median_range median_range_of(double *values, size_t count);

/* A term of one run: a metric or a rate. */
double term_of(const struct pass_result *run, int term);

/* TPOT of a server's answer with fewer tokens is not shown, because a single late piece would dominate it. */
enum { TPOT_TOKENS_LEAST = 5 };

/* No server decodes a request this fast. At a higher rate, the answer was buffered and sent all at once. */
static const double CREDIBLE_TOKENS_PER_S = 50000;

/* The median of a number over runs, and its range. */
struct median_range range_of_runs(const struct pass_result *runs, int32_t run_count,
                                  double (*number)(const struct pass_result *, int), int which);

/* Describes the range of `count` values: "[min, max] of 3 runs contains the median with 75 % confidence";
 * empty if it has no level. Returns out. */
enum { RANGE_WORDS = 100 };
const char *range_words(size_t count, const char *what, double level, char out[RANGE_WORDS]);

#endif
