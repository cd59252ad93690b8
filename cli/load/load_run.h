/* load_run.h: one trial: sends requests to a server at given times, or a fixed number at once, and records each event.
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

/* A request's body. unique: its images, which differ in each request, or NULL; image_at: the offset of each image's
 * base64. */
struct load_body {
    const char *json; size_t bytes;
    struct unique *unique; size_t *image_at, image_count; /* [image_count] */
    uint64_t *marks; /* [image_count] the numbers in the latest request; 0 if none was sent */
    int32_t width_px, height_px; /* size of the first image, upright; 0 if there is none */
};

struct load_record;
struct load_records;
struct load_plan {
    const struct load_body *bodies; size_t body_count;
    const uint32_t *order; size_t order_count; /* body of each request, in order; starts again after the last
                                                * one */
    const double *due_s; size_t due_count;     /* due time of each request, ascending; NULL: always
                                                * `concurrency` at once */
    int32_t concurrency; /* with due_s: most requests at once, further ones wait; 0: no limit */
    double duration_s; /* no request is due after this time */
    /* Called when all of due_s are handed over and duration_s is nearly over; NULL: the trial ends. All requests that
     * were due before before_s have ended. Returns 1 if it extended due_s, due_count and duration_s. */
    int (*more)(struct load_plan *plan, const struct load_records *records, double before_s);
    void *user;
    /* A trial at a rate is ended early when requests no longer meet these limits; NULL: never. is_good: returns 1 if a
     * request met them. */
    const vp_slo *slo;
    int (*is_good)(const struct load_record *record, const vp_slo *slo);
    int64_t deadline_ns; /* in vp_clock_ns: the trial then ends and requests in flight are dropped; 0: never */
    int is_hopeless;     /* set by load_run: 1 if the trial was ended early; duration_s is then its time of sending */
    double cut_s;        /* set by load_run: all requests due before this have ended; infinite if all have */
    struct load_metrics *metrics; /* polled during the trial, or NULL */
    double repeat_share; uint32_t seed; /* share of images that are repeated from the sample's last request */
    double ramp_s;     /* the due times of the first `concurrency` requests are spread over this time */
};

/* The outcome of a request. Times are ns since the start of the trial; -1 if the event did not happen. */
struct load_record {
    size_t body;
    int64_t due_ns, start_ns, sent_ns, headers_ns, first_ns, last_ns, end_ns;
    int64_t queued_ns;      /* time from the due time until a slot was free; -1 without a limit of slots */
    int64_t longest_gap_ns; /* longest time between two pieces */
    size_t piece_count;
    int32_t *gaps_us; size_t gap_count; /* times between pieces, from time stamps in whole us */
    vp_chat_usage usage;
    int32_t attempts; int http_status, is_new_connection, is_complete;
    char *answer; size_t answer_bytes; /* if the stream broke, the text before that; "" otherwise */
    char *id;                          /* the server's id of the request, or NULL */
    int is_empty;                      /* 1 if the answer had no text and no reasoning */
    char *reason;                      /* why it failed; NULL if it did not */
    double accuracy;                   /* NaN: not scored */
};
struct load_records {
    struct load_record *items; size_t count, capacity; /* sorted by due_ns */
    int64_t unfinished; /* requests in flight when a signal was received */
    int64_t begin_unix_s;
};
void load_record_free(struct load_record *record); /* frees what it owns */
void load_records_free(struct load_records *records);

/* Runs the trial and waits for the last answer. *records is zeroed first. Returns 0; EXIT_INTERRUPTED after a signal,
 * with the requests that had ended by then; or an exit code after a message if the server answered no request. */
int load_run(struct endpoint *endpoint, struct load_plan *plan, struct load_records *records);

#endif
