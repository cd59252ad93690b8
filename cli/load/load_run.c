/* load_run.c: one trial: sends requests to a server at given times, or keeps a fixed number in flight. */
#include "load/load_run.h"

#include "base/console.h"
#include "base/memory.h"
#include "server/ask.h"
#include "vlmprof.h"
#include "vlmprof_server.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Requests are handed over this long before they are due. The client sends them itself, without a wake-up for each. */
static const int64_t AHEAD_NS = INT64_C(200000000);
static const int64_t PROGRESS_NS = INT64_C(500000000);
enum { FAILURES_FROM_THE_START = 20 }; /* then the server is not available and nothing can be measured */
enum { HOPELESS_LEAST = 20 };

/* A request in flight. */
struct flight {
    vp_exchange exchange;
    size_t body;
    char *json; size_t json_capacity; /* the body, if its image is unique; reused for the next request */
    int64_t due_ns, queued_ns;
    int is_used;
    struct flight *next_free;
};
struct trial {
    struct endpoint *endpoint;
    struct load_plan *plan;
    struct load_records *records;
    struct flight **flights; size_t flight_count; /* allocated flights: the most ever needed at once */
    struct flight *free_flights;
    int64_t begin_ns, shown_ns, looked_ns;
    vp_random repeats; /* draws which images are repeated (repeat_share) */
    size_t begun, in_flight;
    int is_full; /* 1 if all slots were taken at the last attempt to send the next request */
    int64_t failed;
};

void load_record_free(struct load_record *record) {
    FREE_ALL(record->answer, record->id, record->reason, record->gaps_us);
}
void load_records_free(struct load_records *records) {
    for (size_t i = 0; i < records->count; i++) load_record_free(&records->items[i]);
    free(records->items);
    memset(records, 0, sizeof *records);
}

static struct flight *flight_take(struct trial *trial) {
    struct flight *flight = trial->free_flights;
    if (flight) {
        trial->free_flights = flight->next_free;
        return flight;
    }
    trial->flights = (struct flight **)resize((void *)trial->flights, trial->flight_count + 1, sizeof *trial->flights);
    return trial->flights[trial->flight_count++] = zeroed(1, sizeof *flight);
}
/* Makes an image of the body unique: writes a number into its pixels. */
static void mark_image(char *json, const struct load_body *body, size_t image, uint64_t number) {
    const struct unique *unique = &body->unique[image];
    const size_t from = unique->from / 3 * 3, whole = unique->picture.byte_count;
    const size_t to = unique->to + 2 < whole ? (unique->to + 2) / 3 * 3 : whole;
    char *part = resize(NULL, to - from, 1), *text = resize(NULL, vp_base64_bytes(to - from) + 1, 1);
    memcpy(part, unique->picture.bytes + from, to - from);
    unique_mark(unique, number, part + (unique->from - from));
    memcpy(json + body->image_at[image] + from / 3 * 4, text, vp_base64(part, to - from, text));
    FREE_ALL(part, text);
}
/* A copy of the body in which each image gets a new number, except images drawn by --repeat_image, which are repeated
 * from the sample's last request. */
static const char *body_of_its_own(struct trial *trial, struct flight *flight, const struct load_body *body) {
    if (flight->json_capacity < body->bytes + 1)
        flight->json = resize(flight->json, flight->json_capacity = body->bytes + 1, 1);
    memcpy(flight->json, body->json, body->bytes + 1); /* including its NUL */
    for (size_t i = 0; i < body->image_count; i++) {
        const double share = trial->plan->repeat_share;
        const int repeats = share > 0 && body->marks[i] && vp_random_double(&trial->repeats) < share;
        if (!repeats) body->marks[i] = ask_mark();
        mark_image(flight->json, body, i, body->marks[i]);
    }
    return flight->json;
}
/* Hands over a request that is due due_ns after the start. Returns 0 or an exit code. */
static int request_begin(struct trial *trial, int64_t due_ns, int64_t queued_ns) {
    const struct load_plan *plan = trial->plan;
    struct flight *flight = flight_take(trial);
    const struct load_body *body;
    vp_error error = {VP_OK, -1, "", ""};
    memset(&flight->exchange, 0, sizeof flight->exchange);
    flight->body = plan->order[trial->begun++ % plan->order_count];
    body = &plan->bodies[flight->body];
    flight->due_ns = due_ns;
    flight->queued_ns = queued_ns;
    flight->is_used = 1;
    flight->exchange.body = body->unique ? body_of_its_own(trial, flight, body) : body->json;
    flight->exchange.body_bytes = body->bytes;
    flight->exchange.scheduled_ns = trial->begin_ns + due_ns;
    flight->exchange.user = flight;
    trial->in_flight++;
    vp_result result = vp_server_start(trial->endpoint->server, &flight->exchange, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_DEVICE, trial->endpoint->url, result, &error);
}

static int64_t since(int64_t stamp_ns, int64_t begin_ns) { return stamp_ns ? stamp_ns - begin_ns : -1; }
static void take_reply(struct load_record *record, vp_exchange *exchange, int64_t begin_ns) {
    vp_chat_reply *reply = &exchange->reply;
    if (reply->is_streamed) record->first_ns = since(reply->first_ns, begin_ns);
    if (exchange->state != VP_EXCHANGE_DONE) record->last_ns = since(reply->last_ns, begin_ns);
    else record->last_ns = reply->is_streamed && reply->last_ns ? reply->last_ns - begin_ns : record->end_ns;
    record->gap_count = reply->piece_count ? reply->piece_count - 1 : 0;
    if (record->gap_count) record->gaps_us = zeroed(record->gap_count, sizeof *record->gaps_us);
    for (size_t i = 1; i < reply->piece_count; i++) {
        const int64_t at_ns = reply->pieces[i].at_ns, before_ns = reply->pieces[i - 1].at_ns;
        if (at_ns - before_ns > record->longest_gap_ns) record->longest_gap_ns = at_ns - before_ns;
        record->gaps_us[i - 1] = (int32_t)((at_ns - begin_ns) / 1000 - (before_ns - begin_ns) / 1000);
    }
    record->piece_count = reply->piece_count;
    record->usage = reply->usage;
    record->is_complete = reply->is_complete;
    record->is_empty = exchange->state == VP_EXCHANGE_DONE && !reply->text_bytes && !reply->reasoning_bytes;
    record->id = reply->id;
    reply->id = NULL;
    record->answer = copy_text(reply->text ? reply->text : "", reply->text_bytes);
    record->answer_bytes = reply->text_bytes;
}
static void request_end(struct trial *trial, vp_exchange *exchange) {
    static const vp_chat_usage unknown = {-1, -1, -1, -1, -1};
    struct load_records *records = trial->records;
    struct flight *flight = exchange->user;
    if (records->count == records->capacity) {
        records->capacity = records->capacity * 2 + 256;
        records->items = resize(records->items, records->capacity, sizeof *records->items);
    }
    struct load_record *record = &records->items[records->count++];
    memset(record, 0, sizeof *record);
    record->body = flight->body;
    record->due_ns = flight->due_ns;
    record->queued_ns = flight->queued_ns;
    record->start_ns = since(exchange->start_ns, trial->begin_ns);
    record->sent_ns = since(exchange->sent_ns, trial->begin_ns);
    record->headers_ns = since(exchange->headers_ns, trial->begin_ns);
    record->end_ns = since(exchange->end_ns, trial->begin_ns);
    record->first_ns = record->last_ns = -1;
    record->usage = unknown;
    record->attempts = exchange->attempts;
    record->http_status = exchange->http_status;
    record->is_new_connection = exchange->is_new_connection;
    record->accuracy = (double)NAN;
    if (exchange->state == VP_EXCHANGE_DONE || exchange->reply.first_chunk_ns)
        take_reply(record, exchange, trial->begin_ns); /* if the stream broke, the text before that */
    else record->answer = copy_text("", 0);
    if (exchange->state != VP_EXCHANGE_DONE) {
        char reason[LINE_BYTES];
        error_line(reason, sizeof reason, exchange->result, &exchange->error);
        record->reason = copy_text(reason, strlen(reason));
        trial->failed++;
    }
    vp_exchange_free(exchange);
    flight->next_free = trial->free_flights;
    flight->is_used = 0;
    trial->free_flights = flight;
    trial->in_flight--;
}

static void trial_progress(struct trial *trial, int64_t now_ns) {
    const struct load_plan *plan = trial->plan;
    if (now_ns - trial->shown_ns < PROGRESS_NS) return;
    trial->shown_ns = now_ns;
    show_progress("%.0f of %.0f s, %zu requests ended, %zu in flight, %lld failed",
                  fmax(0, fmin((double)(now_ns - trial->begin_ns) / 1e9, plan->duration_s)), plan->duration_s,
                  trial->records->count, trial->in_flight, (long long)trial->failed);
}
/* The time in s before which all due requests have ended. */
static double ended_before(const struct trial *trial, int64_t now_ns) {
    int64_t before_ns = now_ns - trial->begin_ns;
    for (size_t i = 0; i < trial->flight_count; i++)
        if (trial->flights[i]->is_used && trial->flights[i]->due_ns < before_ns)
            before_ns = trial->flights[i]->due_ns;
    return (double)before_ns / 1e9;
}
/* Returns 1 if a request in flight already misses a limit. */
static int is_overdue(const struct trial *trial, const struct flight *flight, int64_t now_ns) {
    const vp_slo *slo = trial->plan->slo;
    const double age_ms = (double)(now_ns - trial->begin_ns - flight->due_ns) / 1e6;
    return age_ms > slo->e2e_ms || (age_ms > slo->ttft_ms && !flight->exchange.reply.first_ns);
}
/* Returns 1 if none of the latest due requests, at least half of those that count, met the limits. The queue is then
 * growing, and a longer trial would only increase it. */
static int is_hopeless(const struct trial *trial, int64_t now_ns) {
    const struct load_plan *plan = trial->plan;
    const struct load_records *records = trial->records;
    const int64_t from_ns = (int64_t)(plan->ramp_s * 1e9);
    int64_t good_ns = -1;
    size_t after = 0, all = 0;
    for (size_t i = 0; i < records->count; i++)
        if ((plan->is_good(&records->items[i], plan->slo) || records->items[i].is_empty)
            && records->items[i].due_ns > good_ns)
            good_ns = records->items[i].due_ns;
    for (size_t i = 0; i < records->count; i++) {
        all += records->items[i].due_ns >= from_ns;
        after += records->items[i].due_ns >= from_ns && records->items[i].due_ns > good_ns;
    }
    for (size_t i = 0; i < trial->flight_count; i++) {
        const struct flight *flight = trial->flights[i];
        if (!flight->is_used || flight->due_ns < from_ns || !is_overdue(trial, flight, now_ns)) continue;
        all++;
        after += flight->due_ns > good_ns;
    }
    return after >= HOPELESS_LEAST && 2 * after >= all;
}
/* Stops sending requests in a hopeless trial. */
static void end_hopeless(struct trial *trial, int64_t now_ns) {
    struct load_plan *plan = trial->plan;
    if (!plan->slo || !plan->due_s || plan->is_hopeless || now_ns - trial->looked_ns < PROGRESS_NS / 2
        || trial->begun == plan->due_count) return;
    trial->looked_ns = now_ns;
    if (!is_hopeless(trial, now_ns)) return;
    plan->is_hopeless = 1;
    plan->more = NULL;
    plan->due_count = trial->begun;
    plan->duration_s = fmin(plan->duration_s, (double)(now_ns - trial->begin_ns + AHEAD_NS) / 1e9);
}
/* Hands over the next request, unless all slots are taken. A free slot is reserved for it before it is due, because no
 * other request comes earlier. Returns 0 or an exit code. */
static int begin_planned(struct trial *trial, int64_t due_ns, int64_t now_ns) {
    const int32_t places = trial->plan->concurrency;
    const int64_t queued_ns = now_ns - trial->begin_ns - due_ns;
    const int was_full = trial->is_full;
    trial->is_full = places && trial->in_flight >= (size_t)places;
    if (trial->is_full) return 0;
    return request_begin(trial, due_ns, !places ? -1 : was_full && queued_ns > 0 ? queued_ns : 0);
}
/* Hands over the requests that are due soon. *until_ns becomes the time of the next call, or 0 for never. Returns 0 or
 * an exit code. */
static int begin_due(struct trial *trial, int64_t now_ns, int64_t *until_ns) {
    const struct load_plan *plan = trial->plan;
    *until_ns = 0;
    if (plan->more && trial->begun == plan->due_count) {
        const int64_t end_ns = trial->begin_ns + (int64_t)(plan->duration_s * 1e9) - AHEAD_NS;
        if (now_ns < end_ns) *until_ns = end_ns;
        else if (!plan->more(trial->plan, trial->records, ended_before(trial, now_ns))) trial->plan->more = NULL;
    }
    while (plan->due_s && trial->begun < plan->due_count) {
        const int64_t due_ns = (int64_t)(plan->due_s[trial->begun] * 1e9);
        int code;
        if (trial->begin_ns + due_ns > now_ns + AHEAD_NS) {
            *until_ns = trial->begin_ns + due_ns - AHEAD_NS / 2;
            break;
        }
        if ((code = begin_planned(trial, due_ns, now_ns)) != 0) return code;
        if (trial->is_full) break;
    }
    return 0;
}
/* Called after a request ends in a trial with a fixed number at once: the next one is due now. */
static int begin_next(struct trial *trial, int64_t now_ns) {
    const int64_t due_ns = now_ns - trial->begin_ns;
    if (trial->plan->due_s || (double)due_ns >= trial->plan->duration_s * 1e9) return 0;
    return request_begin(trial, due_ns, -1);
}
static int begin_first(struct trial *trial) {
    const struct load_plan *plan = trial->plan;
    int code = 0;
    for (int32_t i = 0; !plan->due_s && i < plan->concurrency && !code; i++)
        code = request_begin(trial, (int64_t)(plan->ramp_s * 1e9 * i / plan->concurrency), -1);
    return code;
}
static int trial_loop(struct trial *trial) {
    int code = begin_first(trial);
    while (!code && !interrupted) {
        int64_t now_ns = vp_clock_ns(), until_ns;
        vp_error error = {VP_OK, -1, "", ""};
        vp_exchange *finished = NULL;
        const int64_t deadline_ns = trial->plan->deadline_ns;
        if (deadline_ns && now_ns >= deadline_ns) {
            trial->plan->cut_s = ended_before(trial, now_ns);
            break;
        }
        end_hopeless(trial, now_ns);
        if ((code = begin_due(trial, now_ns, &until_ns)) != 0) break;
        if (!trial->in_flight && !until_ns) break;
        if (trial->plan->metrics) load_metrics_poll(trial->plan->metrics, trial->endpoint, now_ns, &until_ns);
        if (!until_ns || until_ns > now_ns + PROGRESS_NS) until_ns = now_ns + PROGRESS_NS;
        if (deadline_ns && until_ns > deadline_ns) until_ns = deadline_ns;
        vp_result result = vp_server_step(trial->endpoint->server, until_ns, &finished, &error);
        if (result == VP_ERR_INTERRUPTED) continue;
        if (result != VP_OK) return complain_result(EXIT_DEVICE, trial->endpoint->url, result, &error);
        if (finished && !(trial->plan->metrics && load_metrics_ended(trial->plan->metrics, finished))) {
            request_end(trial, finished);
            if (trial->failed == FAILURES_FROM_THE_START && trial->records->count == FAILURES_FROM_THE_START) {
                close_progress();
                return complain(EXIT_DEVICE, "%s does not answer: the first %d requests failed: %s",
                                trial->endpoint->url, FAILURES_FROM_THE_START, trial->records->items[0].reason);
            }
            code = begin_next(trial, vp_clock_ns());
        }
        trial_progress(trial, now_ns);
    }
    return code ? code : interrupted ? EXIT_INTERRUPTED : 0;
}
static int by_due(const void *left_item, const void *right_item) {
    const struct load_record *left = left_item, *right = right_item;
    if (left->due_ns != right->due_ns) return left->due_ns < right->due_ns ? -1 : 1;
    return left->start_ns < right->start_ns ? -1 : left->start_ns > right->start_ns;
}
int load_run(struct endpoint *endpoint, struct load_plan *plan, struct load_records *records) {
    memset(records, 0, sizeof *records);
    struct trial trial = {.endpoint = endpoint, .plan = plan, .records = records};
    plan->is_hopeless = 0;
    plan->cut_s = HUGE_VAL;
    vp_random_seed(&trial.repeats, plan->seed);
    trial.begin_ns = vp_clock_ns() + AHEAD_NS / 4; /* the first requests are also handed over before they are due */
    records->begin_unix_s = (int64_t)time(NULL);
    if (plan->metrics) load_metrics_begin(plan->metrics, trial.begin_ns);
    int code = trial_loop(&trial);
    close_progress();
    records->unfinished = (int64_t)trial.in_flight;
    if (trial.in_flight) { /* the client releases them before their memory is freed */
        vp_server_close(endpoint->server);
        endpoint->server = NULL;
    }
    for (size_t i = 0; i < trial.flight_count; i++) {
        vp_exchange_free(&trial.flights[i]->exchange);
        FREE_ALL(trial.flights[i]->json, trial.flights[i]);
    }
    free((void *)trial.flights);
    if (records->count) qsort(records->items, records->count, sizeof *records->items, by_due);
    return code;
}
