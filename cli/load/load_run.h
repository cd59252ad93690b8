/* load_run.h: one trial: requests to a server at given times, or a fixed number at once, with the time of each event.
 * Request bodies and a plan come in; a record of each request comes out. Nothing is written while requests are in
 * flight. */
#ifndef VLMPROF_CLI_LOAD_RUN_H
#define VLMPROF_CLI_LOAD_RUN_H
#include "load/load_metrics.h"
#include "server/endpoint.h"
#include "server/unique.h"
#include "vlmprof_chat.h"
#include "vlmprof_load.h"
#include <stddef.h>
#include <stdint.h>

/* A request's body. unique: NULL, or its images, which differ in each request; image_at: where each image's base64
 * begins. */
struct load_body {
    const char *json; size_t bytes;
    struct unique *unique; size_t *image_at, image_count; /* [image_count] */
    uint64_t *marks; /* [image_count] the numbers in the latest request; 0: none was sent */
    int32_t width_px, height_px; /* of the first image, upright; 0: none */
};

struct load_record;
struct load_records;
struct load_plan {
    const struct load_body *bodies; size_t body_count;
    const uint32_t *order; size_t order_count; /* which body each request has, in their order; from the start again
                                                * after the last one */
    const double *due_s; size_t due_count;     /* when each request is due, ascending; NULL: always `concurrency` at
                                                * once */
    int32_t concurrency; /* with due_s: at most so many at once, the others wait; 0: no limit */
    double duration_s; /* no request is due after that */
    /* Called once all of due_s are handed over and duration_s is nearly over; NULL: the trial ends. All requests that
     * were due before before_s have ended. Returns 1 if it made due_s, due_count and duration_s longer. */
    int (*more)(struct load_plan *plan, const struct load_records *records, double before_s);
    void *user;
    /* A trial at a rate is ended early once no request meets its limits any more; NULL: never. is_good: whether a
     * request met them. */
    const vp_slo *slo;
    int (*is_good)(const struct load_record *record, const vp_slo *slo);
    int64_t deadline_ns; /* by vp_clock_ns: the trial then ends and requests in flight are dropped; 0: never */
    int is_hopeless;     /* set by load_run: the trial was ended early, and duration_s is how long it sent requests */
    double cut_s;        /* set by load_run: all requests due before then have ended; infinite: all have */
    struct load_metrics *metrics; /* asked during the trial; NULL: none */
    double repeat_share; uint32_t seed; /* of images that are sent again as in the sample's last request */
    double ramp_s;     /* the first requests of `concurrency` are due one after the other over this time */
};

/* The outcome of a request. Times are ns since the trial began; -1: it did not get that far. */
struct load_record {
    size_t body;
    int64_t due_ns, start_ns, sent_ns, headers_ns, first_ns, last_ns, end_ns;
    int64_t queued_ns;      /* from due until one of the plan's places was free; -1: they are not limited */
    int64_t longest_gap_ns; /* between two pieces */
    size_t piece_count;
    int32_t *gaps_us; size_t gap_count; /* from piece to piece, by stamps in whole us */
    vp_chat_usage usage;
    int32_t attempts; int http_status, is_new_connection, is_complete;
    char *answer; size_t answer_bytes; /* the outcome where the stream broke; "" if it did not */
    char *id;                          /* the server's name of the request; NULL: it gives none */
    int is_empty;                      /* it was answered without text and without reasoning */
    char *reason;                      /* why it failed; NULL: it did not */
    double accuracy;                   /* NaN: not scored */
};
struct load_records {
    struct load_record *items; size_t count, capacity; /* by due_ns */
    int64_t unfinished; /* requests in flight when a signal came */
    int64_t begin_unix_s;
};
void load_record_free(struct load_record *record); /* what it owns */
void load_records_free(struct load_records *records);

/* Runs the trial and waits for the last answer. *records is zeroed first. Returns 0; EXIT_INTERRUPTED after a signal,
 * with the requests that had ended by then; or an exit code after a message if the server answered no request. */
int load_run(struct endpoint *endpoint, struct load_plan *plan, struct load_records *records);

#endif
