/* ask.h: sends a server a question about pictures and returns the answer as a timed pass. A question comes in; the body
 * of a request, and later a struct pass_result and its JSON, come out. */
#ifndef VLMPROF_CLI_ASK_H
#define VLMPROF_CLI_ASK_H
#include "results/metrics.h"
#include "server/endpoint.h"
#include "server/picture.h"
#include "vlmprof_chat.h"
#include "vlmprof_server.h"

struct question {
    vp_chat_request request; /* its model and images are set by ask_begin; with no_cache, ask_once sets its salt */
    const struct picture *pictures; int32_t picture_count; /* 0: text only */
    const struct unique *unique; /* [picture_count]: each request gets unique pictures; NULL: `pictures` */
};

/* Builds the body of a request: *exchange is new and ready for endpoint_try. On failure error->where names the knob
 * that the body does not accept. Free it with ask_free. */
vp_result ask_begin(const struct endpoint *endpoint, const struct question *question, vp_exchange *exchange,
                    vp_error *error);
void ask_free(vp_exchange *exchange);

/* Builds such a body and discards it, before anything is sent. Returns 0, or an exit code after a complaint if the body
 * does not accept a knob. */
int ask_check(const struct endpoint *endpoint, const struct question *question);

/* Returns a number that is unique, also among processes. */
uint64_t ask_mark(void);

/* Builds the body of one request, with pictures and a salt of its own. Returns 0, or an exit code with a line in
 * `reason`; ask_free frees it in both cases. */
int ask_prepare(const struct endpoint *endpoint, const struct question *question, vp_exchange *exchange, char *reason,
                size_t capacity);

/* Turns a finished exchange into a timed pass; its texts move to *run, which runs_free frees. Times count from the time
 * at which it was due or, if that is not set, from its first byte. */
void ask_result(vp_exchange *exchange, struct pass_result *run);

/* Sends one request and times it; the body is built before its clock starts. Returns 0 with *run filled, which
 * runs_free frees, EXIT_INTERRUPTED, or an exit code with a line in `reason`; *sent is always set. The server's texts
 * in *run do not show the key. */
struct sent_request { int http_status; int32_t attempts; };
int ask_once(struct endpoint *endpoint, const struct question *question, struct pass_result *run,
             struct sent_request *sent, char *reason, size_t capacity);

/* The text tokens of the prompt: all tokens minus image tokens, if both are known; otherwise -1. */
/* Returns 1 if the prompt has fewer tokens than its words, and 16 for each image of 112 x 112 pixels or more: models
 * of all known families need more. */
int is_image_missing(const struct question *question, int64_t prompt_tokens);
int64_t text_tokens_of(const vp_chat_usage *usage);

/* "usage": the server's counts, null if not reported. */
void put_usage(vp_json_writer *writer, const vp_chat_usage *usage);

/* Writes elements of the open array: the times between the pieces of an answer, ms. */
void put_run_gaps(vp_json_writer *writer, const struct served *served);

/* "server_timings": as reported by the server, or null. */
void put_server_timings(vp_json_writer *writer, const struct served *served);

/* "runs": a list of objects with each run's metrics, usage and times of events, in ms since its start. */
void put_served_runs(vp_json_writer *writer, const struct pass_result *runs, int32_t run_count);

/* "null_reasons": why runs lack a metric, by metric. */
void put_null_reasons(vp_json_writer *writer, const struct pass_result *runs, int32_t run_count);

#endif
