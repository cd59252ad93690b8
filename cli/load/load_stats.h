/* load_stats.h: computes a trial's published numbers from its records. Records come in; percentiles, shares and rates
 * with their intervals come out. */
#ifndef VLMPROF_CLI_LOAD_STATS_H
#define VLMPROF_CLI_LOAD_STATS_H
#include "load/load_run.h"
#include "results/metrics.h"
#include "vlmprof_load.h"

/* Latencies of a request, in ms. From the due time, they are the user's wait; from the time of sending, the server's
 * time. */
enum { LOAD_TTFT, LOAD_E2E, LOAD_TTFT_SENT, LOAD_E2E_SENT, LOAD_TPOT, LOAD_LATENCY_COUNT };
/* Also in a summary: times between consecutive pieces of all requests, and the wait for one of --concurrency slots. */
enum { LOAD_ITL = LOAD_LATENCY_COUNT, LOAD_QUEUED, LOAD_SPREADS };
extern const char *const LOAD_KEYS[LOAD_SPREADS];
/* NaN if the request lacks the latency. No single request has LOAD_ITL. */
double load_latency(const struct load_record *record, int which);

/* The times between consecutive pieces in all these requests, ms, malloc'ed. */
double *load_gaps(const struct load_record *const *chosen, size_t count, size_t *gap_count);

/* Returns 1 if the request was answered and met all limits (slo NULL: none). A request of one token has no TPOT and
 * meets that limit. A limit that cannot be checked, without a token count or without a stream, is not met. */
int load_is_good(const struct load_record *record, const vp_slo *slo);

enum { LOAD_P50, LOAD_P90, LOAD_P95, LOAD_P99, LOAD_PERCENTILES };
extern const double LOAD_PERCENTILE[LOAD_PERCENTILES];

/* Numbers of the requests that were due within the window, excluding the ramp and the cool-down. */
struct load_summary {
    double from_s, to_s;             /* the window */
    int64_t due, failed, incomplete; /* incomplete: the server did not report the answer as complete */
    int64_t empty;                   /* answered without a text: neither failed nor good */
    int64_t late;                    /* sent more than LOAD_LATE_MS after they were due */
    double latest_ms;                /* longest delay of sending */
    int64_t retried, new_connections;
    vp_series_value latency[LOAD_SPREADS][LOAD_PERCENTILES]; /* ms; NaN if there are too few */
    int64_t latency_count[LOAD_SPREADS];
    double mean[LOAD_SPREADS], std[LOAD_SPREADS], least[LOAD_SPREADS], most[LOAD_SPREADS];
    double offered, ended; /* requests due and ended per second of the window, and tokens of the ended ones */
    double input_rate, output_rate, token_rate;
    double in_flight;                   /* requests at once, mean over the window */
    double growth;                      /* P50 of E2E in the last third of the window, divided by that in the first */
    vp_series_value good_share;         /* excludes empty answers; failed requests are not good */
    double goodput, goodput_low, goodput_high; /* good requests per second of the window */
    double correct, correct_low, correct_high; /* those that are also correct; NaN if none has a score */
    vp_estimate accuracy; int64_t accuracy_count;
    int64_t prompt_tokens, output_tokens, cached_tokens; /* sums */
    int64_t cached_known;                                /* requests whose cached tokens are known */
};
#define LOAD_LATE_MS 1.0
#define LOAD_RIGHT_SCORE 0.5 /* an answer with at least this score is correct */

/* Reads --slo. Returns 0, or EXIT_USAGE after a message that suggests a limit similar to an unknown one. */
int load_slo_read(const char *text, vp_slo *slo);

/* If slo is NULL, the share of good requests is the share of answered requests. */
struct load_summary load_summarize(const struct load_records *records, double from_s, double to_s, const vp_slo *slo);

/* The verdict on an accuracy with an interval against a limit; a limit of NaN means none. */
vp_trial load_trial_of_accuracy(const vp_series_value *accuracy, double limit);

/* Returns 1 if answers have fewer than TPOT_TOKENS_LEAST tokens on average. */
int load_has_few_tokens(const struct load_summary *summary);

/* Returns 1 if more than 1 % of the requests were sent late, and by a delay that counts next to the median TTFT. */
int load_is_late(const struct load_summary *summary);

/* Returns 1 if the queue grew: in a trial at a given rate, fewer requests finished or failed than were due, and the
 * later ones took longer. */
int load_is_queue_growing(const struct load_summary *summary);

/* "29 of 39 requests failed, the first at 8.1 s: connection refused (28); connection reset (1)" for the requests that
 * were due within the window, malloc'ed; NULL if none failed. */
char *load_failures_text(const struct load_records *records, double from_s, double to_s);

/* "no request received a piece for 4.8 s, from 6.9 s to 11.7 s of the trial; by then 17 requests were waiting",
 * malloc'ed; NULL unless the longest silence that overlaps the window exceeds a second, and 3 times the lower quartile
 * of TTFT from sending. */
char *load_silence_text(const struct load_records *records, double from_s, double to_s);

#endif
