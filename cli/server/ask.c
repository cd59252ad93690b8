/* ask.c: sends a server a question about pictures and returns the answer as a timed pass. */
#include "server/ask.h"

#include "base/console.h"
#include "base/json.h"

#include <math.h>
#include <unistd.h>

vp_result ask_begin(const struct endpoint *endpoint, const struct question *question, vp_exchange *exchange,
                    vp_error *error) {
    vp_chat_image *images;
    char *body = NULL;
    vp_result result;
    memset(exchange, 0, sizeof *exchange);
    for (size_t i = 0; i < question->request.knob_count && !question->picture_count; i++)
        if (!strncmp(question->request.knobs[i].path, "image_url.", 10))
            return vp_error_set(error, VP_ERR_NOT_FOUND, -1, question->request.knobs[i].path, "there is no image");
    vp_chat_request request = question->request;
    images = zeroed((size_t)question->picture_count, sizeof *images);
    for (int32_t i = 0; i < question->picture_count; i++)
        images[i] = (vp_chat_image){question->pictures[i].bytes, question->pictures[i].byte_count,
                                    question->pictures[i].media_type};
    request.model = endpoint->model;
    request.images = images;
    request.image_count = question->picture_count;
    result = vp_chat_body(endpoint->api, &request, &body, &exchange->body_bytes, error);
    free(images);
    exchange->body = body;
    return result;
}
void ask_free(vp_exchange *exchange) {
    vp_exchange_free(exchange);
    free((void *)exchange->body);
    exchange->body = NULL;
    exchange->body_bytes = 0;
}

/* A time stamp relative to the first byte sent; -1 if the event did not happen. */
static int64_t since(int64_t stamp_ns, int64_t start_ns) { return stamp_ns ? stamp_ns - start_ns : -1; }
/* The text moves to the caller. */
static char *taken(char **text) {
    char *moved = *text;
    *text = NULL;
    return moved;
}
void ask_result(vp_exchange *exchange, struct pass_result *run) {
    vp_chat_reply *reply = &exchange->reply;
    struct served *served = zeroed(1, sizeof *served);
    const int64_t sent = exchange->sent_ns ? exchange->sent_ns : exchange->start_ns;
    const int64_t due = exchange->scheduled_ns, start = due && due < sent ? due : sent;
    served->delay_ns = sent - (due && due < sent ? due : exchange->start_ns);
    served->image_dropped = -1;
    served->uploaded_ns = since(exchange->uploaded_ns, start);
    served->headers_ns = since(exchange->headers_ns, start);
    served->end_ns = since(exchange->end_ns, start);
    served->first_ns = reply->is_streamed ? since(reply->first_ns, start) : -1;
    served->first_chunk_ns = reply->is_streamed ? since(reply->first_chunk_ns, start) : -1;
    served->first_output_ns = reply->is_streamed ? since(reply->first_output_ns, start) : -1;
    served->piece_count = reply->piece_count;
    served->pieces = resize(NULL, reply->piece_count + 1, sizeof *served->pieces);
    for (size_t i = 0; i < reply->piece_count; i++) {
        served->pieces[i] = reply->pieces[i];
        served->pieces[i].at_ns -= start;
    }
    served->usage = reply->usage;
    served->model = taken(&reply->model);
    served->finish_reason = taken(&reply->finish_reason);
    served->timings = json_foreign(reply->timings, reply->timings ? strlen(reply->timings) : 0);
    served_read_timings(served);
    served->reasoning = reply->reasoning_bytes ? copy_text(reply->reasoning, reply->reasoning_bytes) : NULL;
    served->is_streamed = reply->is_streamed;
    served->is_new_connection = exchange->is_new_connection;
    served->http_status = exchange->http_status;
    served->attempts = exchange->attempts;
    run->served = served;
    run->total_ns = reply->is_streamed && reply->last_ns ? reply->last_ns - start : exchange->end_ns - start;
    run->answer = copy_text(reply->text ? reply->text : "", reply->text_bytes);
    run->answer_bytes = reply->text_bytes;
    run->reply.token_count = reply->usage.completion_tokens > 0 && reply->usage.completion_tokens <= INT32_MAX
                                 ? (int32_t)reply->usage.completion_tokens
                                 : 0;
    run->reply.ended_by_eos = served->finish_reason && !strcmp(served->finish_reason, "stop");
}
int ask_check(const struct endpoint *endpoint, const struct question *question) {
    vp_exchange exchange;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = ask_begin(endpoint, question, &exchange, &error);
    ask_free(&exchange);
    return result == VP_OK ? 0 : complain_result(EXIT_USAGE, "--request_knob", result, &error);
}
uint64_t ask_mark(void) {
    static int64_t turn;
    return hash_number(hash_number(hash_number(HASH_START, vp_clock_ns()), (int64_t)getpid()), turn++);
}
int ask_prepare(const struct endpoint *endpoint, const struct question *question, vp_exchange *exchange, char *reason,
                size_t capacity) {
    struct question asked = *question;
    struct picture *marked = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    char salt[40];
    if (asked.unique) asked.pictures = marked = zeroed((size_t)asked.picture_count, sizeof *marked);
    for (int32_t i = 0; asked.unique && i < asked.picture_count; i++) {
        marked[i] = asked.unique[i].picture;
        marked[i].bytes = resize(NULL, marked[i].byte_count, 1);
        memcpy(marked[i].bytes, asked.unique[i].picture.bytes, marked[i].byte_count);
        unique_mark(&asked.unique[i], ask_mark(), marked[i].bytes + asked.unique[i].from);
    }
    snprintf(salt, sizeof salt, "vlmprof-%016llx", (unsigned long long)ask_mark());
    if (asked.request.no_cache) asked.request.cache_salt = salt;
    const vp_result result = ask_begin(endpoint, &asked, exchange, &error);
    for (int32_t i = 0; marked && i < asked.picture_count; i++) picture_free(&marked[i]);
    free(marked);
    if (result == VP_OK) return 0;
    error_line(reason, capacity, result, &error);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE;
}
int ask_once(struct endpoint *endpoint, const struct question *question, struct pass_result *run,
             struct sent_request *sent, char *reason, size_t capacity) {
    vp_exchange exchange;
    int code = ask_prepare(endpoint, question, &exchange, reason, capacity);
    if (!code) code = endpoint_try(endpoint, &exchange, reason, capacity);
    if (!code) ask_result(&exchange, run);
    *sent = (struct sent_request){exchange.http_status, exchange.attempts};
    ask_free(&exchange);
    return code;
}
int is_image_missing(const struct question *question, int64_t prompt_tokens) {
    int64_t images = 0, words = 0;
    for (int32_t i = 0; i < question->picture_count; i++)
        images += question->pictures[i].width_px >= 112 && question->pictures[i].height_px >= 112;
    for (const char *at = question->request.text; *at; at++) words += *at != ' ' && (at[1] == ' ' || !at[1]);
    return images && prompt_tokens >= 0 && prompt_tokens < words + 16 * images;
}
int64_t text_tokens_of(const vp_chat_usage *usage) {
    return usage->prompt_tokens >= 0 && usage->image_tokens >= 0 ? usage->prompt_tokens - usage->image_tokens : -1;
}

/* ---- as JSON */
void put_usage(vp_json_writer *writer, const vp_chat_usage *usage) {
#define TOKENS(member) KEY_KNOWN(#member, usage->member >= 0, usage->member)
    PUT(writer, KEY_OBJECT("usage"), TOKENS(prompt_tokens), TOKENS(completion_tokens), TOKENS(image_tokens),
        TOKENS(cached_tokens), TOKENS(reasoning_tokens), END_OBJECT);
}
void put_run_gaps(vp_json_writer *writer, const struct served *served) {
    double *gaps = resize(NULL, served->piece_count + 1, sizeof *gaps);
    const size_t count = served_gaps(served, gaps);
    for (size_t i = 0; i < count; i++) vp_json_double(writer, gaps[i]);
    free(gaps);
}
void put_server_timings(vp_json_writer *writer, const struct served *served) {
    vp_json_key(writer, "server_timings");
    if (served->timings) vp_json_raw(writer, served->timings, strlen(served->timings)); else vp_json_null(writer);
}
static void put_run(vp_json_writer *writer, const struct pass_result *run) {
    static const int shown[] = {METRIC_TOTAL,     METRIC_TTFT,      METRIC_DECODE,
                                METRIC_PER_TOKEN, TERM_DECODE_RATE, TERM_OUTPUT_RATE};
    const struct served *served = run->served;
    PUT(writer, KEY_OBJECT(NULL));
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
        PUT(writer, KEY(TERMS[shown[k]].key, term_of(run, shown[k])));
    put_usage(writer, &served->usage);
    PUT(writer, KEY("T_client_delay", served_ms(served->delay_ns)), KEY_OBJECT("at_ms"), KEY("sent", 0),
        KEY("uploaded", served_ms(served->uploaded_ns)), KEY("headers", served_ms(served->headers_ns)),
        KEY("first_chunk", served_ms(served->first_chunk_ns)), KEY("first_output", served_ms(served->first_output_ns)),
        KEY("first_visible", served_ms(served_visible_ns(run))), KEY_ARRAY("pieces"));
    for (size_t k = 0; k < served->piece_count; k++) vp_json_double(writer, (double)served->pieces[k].at_ns / 1e6);
    PUT(writer, END_ARRAY, KEY("end", served_ms(served->end_ns)), END_OBJECT, KEY_ARRAY("piece_bytes"));
    for (size_t k = 0; k < served->piece_count; k++) vp_json_int(writer, served->pieces[k].text_bytes);
    PUT(writer, END_ARRAY);
    vp_json_key(writer, "answer");
    vp_json_string_bytes(writer, run->answer, run->answer_bytes);
    PUT(writer, KEY("finish_reason", served->finish_reason), KEY("http_status", served->http_status),
        KEY("attempts", served->attempts), KEY_BOOL("new_connection", served->is_new_connection),
        KEY_BOOL("streamed", served->is_streamed));
    put_server_timings(writer, served);
    PUT(writer, END_OBJECT);
}
void put_served_runs(vp_json_writer *writer, const struct pass_result *runs, int32_t run_count) {
    PUT(writer, KEY_ARRAY("runs"));
    for (int32_t i = 0; i < run_count; i++) put_run(writer, &runs[i]);
    PUT(writer, END_ARRAY);
}
void put_null_reasons(vp_json_writer *writer, const struct pass_result *runs, int32_t run_count) {
    PUT(writer, KEY_OBJECT("null_reasons"));
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        const char *reason = NULL;
        if (is_left_out(metric, (double)NAN)) continue;
        for (int32_t i = 0; i < run_count && !reason; i++) reason = served_lacks(&runs[i], metric);
        if (reason) PUT(writer, KEY(METRIC_KEYS[metric], reason));
    }
    PUT(writer, END_OBJECT);
}
