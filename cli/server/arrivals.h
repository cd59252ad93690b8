/* arrivals.h: sends the requests of a block under load: when they are due, while others are in flight. Bodies come in;
 * finished exchanges, and what the block was like, come out. */
#ifndef VLMPROF_CLI_ARRIVALS_H
#define VLMPROF_CLI_ARRIVALS_H
#include "results/fields.h"
#include "server/endpoint.h"

/* An open loop with `rate` requests/s or, if `concurrency` is above 0, a closed loop. */
struct load {
    double rate;
    int32_t concurrency;
    int is_uniform;   /* equal gaps; otherwise exponentially distributed (Poisson arrivals) */
    uint32_t seed;    /* of the gaps */
    double ramp_s;    /* before the first and after the last counted request, other requests are sent and not counted */
};

/* A request, in the order of due times. Times in ns since the start of the block; -1: did not happen. */
struct load_record {
    size_t request; /* its number among the counted ones, or whose body it repeats */
    int is_ramp, has_failed;
    int64_t due_ns, start_ns, first_ns, end_ns; /* start: handed to libcurl */
};

/* What a block sends. Each of `count` requests is counted once; in the ramps they are repeated. */
struct load_work {
    size_t count;
    /* Builds the body of a request; ask_free frees it. Returns 0, or an exit code after a complaint. */
    int (*body)(void *user, size_t request, vp_exchange *exchange);
    /* Called when a counted request has ended. A result other than 0 ends the block. */
    int (*ended)(void *user, size_t request, vp_exchange *exchange);
    void *user;
    const char *words; /* of the progress */
};

/* Runs a block: builds the counted bodies, sends all requests and waits for their ends. *records is malloc'ed, also
 * after a failure. Returns 0, EXIT_INTERRUPTED or an exit code; after these two the endpoint has no connection. */
int load_run(struct endpoint *endpoint, const struct load *load, const struct load_work *work,
             struct load_record **records, size_t *record_count);

/* Fills what follows from the records.
 * rule:    the window lasts from the due time of the first counted request to that of the last one. A queue grows if at
 *          the window's end at least 8 requests, and 5 % of the counted ones, more wait for their first token than at
 *          its begin, and the mean time of the last quarter of requests is 1.2 times that of the second quarter, or
 *          requests of it failed */
void load_summarize(const struct load_record *records, size_t count, struct load_line *line);

/* The processor time of this thread, and its wait for a processor, in ns; -1: not known. */
struct client_time { int64_t at_ns, cpu_ns, wait_ns; };
struct client_time client_time_now(void);

/* Requests that a server has finished, and that it holds, by its Prometheus metrics; -1: not known. */
struct server_counts { int64_t finished, held; };
struct server_counts server_counts_of(const char *metrics);
struct server_counts server_counts_ask(struct endpoint *endpoint);

#endif
