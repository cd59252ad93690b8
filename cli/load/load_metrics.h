/* load_metrics.h: a server's Prometheus metrics during a trial: its queue, its KV cache and its cache hits. The text of
 * /metrics comes in; a sample of numbers for each poll comes out. */
#ifndef VLMPROF_CLI_LOAD_METRICS_H
#define VLMPROF_CLI_LOAD_METRICS_H
#include "results/fields.h"
#include "server/endpoint.h"

enum { PROM_WAITING, PROM_RUNNING, PROM_KV, PROM_PREFIX, PROM_ENCODER, PROM_SPECULATIVE, PROM_PREEMPTED,
       PROM_COUNT };
/* A server's series: a gauge, summed or averaged over its labels; or the growth of a counter since the previous sample;
 * or that growth divided by the growth of the counter `per`, or by that of both. The first row of a metric whose series
 * exists is used. */
enum metric_kind { PROM_SUM, PROM_MEAN, PROM_INCREASE, PROM_SHARE, PROM_PART };
struct metric_row { int metric; enum metric_kind kind; const char *name, *per; };
enum { PROM_ROWS_MAX = 32 };
extern const struct metric_row PROM_ROWS[];
extern const size_t PROM_ROW_COUNT;

struct load_sample { int64_t at_ns; double values[PROM_COUNT]; }; /* at_ns: since the trial's start; NaN: not known */
extern const struct fields LOAD_SAMPLE;
extern const char *const PROM_KEYS[PROM_COUNT];

/* Polls a server during the requests of a trial. */
struct load_metrics {
    const char *url;         /* NULL: no polling */
    struct load_sample *items; size_t count;
    int64_t begin_ns;        /* start of the trial */
    int64_t next_ns;         /* when the server is polled next */
    int is_pending;          /* 1 while `exchange` is in flight */
    vp_exchange exchange;
    double before[PROM_ROWS_MAX][2]; /* counters of the previous sample; NaN if none */
};

/* Adds a sample from the text. Returns the number of its metrics. */
size_t load_metrics_take(struct load_metrics *metrics, const char *text, int64_t at_ns);

/* Polls once, before the trials. url NULL: the server's /metrics. If the server has no metrics, metrics->url stays NULL
 * and a line says why. The caller calls load_metrics_free after the endpoint is closed. */
void load_metrics_open(struct load_metrics *metrics, struct endpoint *endpoint, const char *url);
void load_metrics_free(struct load_metrics *metrics);

/* Call this at the start of a trial. */
void load_metrics_begin(struct load_metrics *metrics, int64_t begin_ns);
/* Polls if it is time. Sets *until_ns to the time of the next poll if that is earlier, or if *until_ns is 0. */
void load_metrics_poll(struct load_metrics *metrics, struct endpoint *endpoint, int64_t now_ns, int64_t *until_ns);
/* Returns 1 if the exchange belongs to this poll, and takes its answer. */
int load_metrics_ended(struct load_metrics *metrics, const vp_exchange *exchange);

#endif
