/* virtual_server.h: a chat server and its client in one, on a virtual clock: it replaces the library's vp_clock_ns and the functions of vlmprof_server.h. No request
 * leaves the process, waiting takes no time, and every run has the same times. The server takes service_ns for a request, image_ns more for each image, and token_ns for
 * each of their tokens. The answer's three pieces come gap_ns apart. $B/tests/vlmprof-virtual is the program with it (VLMPROF_VIRTUAL in the environment:
 * "image_us=40000 gap_us=1000 ..."). */
#ifndef VIRTUAL_SERVER_H
#define VIRTUAL_SERVER_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
int64_t virtual_clock_ns(void);
#define VLMPROF_CLOCK_NS virtual_clock_ns()
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#undef VLMPROF_IMPLEMENTATION
#include "vlmprof_chat.h"
#include "vlmprof_families.h"
#include "vlmprof_server.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int64_t image_ns, token_ns, gap_ns;
    int64_t images_most;  /* of a request; 0: any number; below 0: none */
    int64_t interrupt_ns; /* time since the start at which SIGINT comes; 0: never */
    int64_t has_cache;    /* an image with known bytes costs nothing, and its tokens count as cached */
    int64_t service_ns;   /* of a request; one worker */
    int64_t wrong_ns;     /* an answer is wrong after a longer wait for the worker; 0: never */
    int64_t fail_every;   /* every so many requests get HTTP 429; 0: none */
    int64_t crash_at;     /* from this request on, none is answered; 0: never */
    int64_t jitter, jitter_seed; /* service_ns changes by up to so many percent */
} virtual_server = {0, 0, 500000, 0, 0, 0, 8000000, 0, 0, 0, 0, 1};
enum { VIRTUAL_PIECES = 3, VIRTUAL_FLIGHTS = 4096, VIRTUAL_NETWORK_NS = 100000, VIRTUAL_START_NS = 1000000000, VIRTUAL_TICK_NS = 1000 };
static int64_t virtual_now_ns = VIRTUAL_START_NS, virtual_free_ns;

struct vp_server {
    vp_server_options options;
    char url[300];
    int is_used; /* has a connection */
    vp_exchange *flights[VIRTUAL_FLIGHTS]; int flight_count;
};
static int64_t virtual_count; /* requests */

static void virtual_setting(const char *name, int64_t *to, int64_t unit) {
    const char *all = getenv("VLMPROF_VIRTUAL"), *at = all ? strstr(all, name) : NULL;
    if (at && at[strlen(name)] == '=') *to = (int64_t)(atof(at + strlen(name) + 1) * (double)unit);
}
static void virtual_read(void) {
    virtual_setting("cache", &virtual_server.has_cache, 1);
    virtual_setting("image_us", &virtual_server.image_ns, 1000);
    virtual_setting("token_us", &virtual_server.token_ns, 1000);
    virtual_setting("images_most", &virtual_server.images_most, 1);
    virtual_setting("gap_us", &virtual_server.gap_ns, 1000);
    virtual_setting("interrupt_ms", &virtual_server.interrupt_ns, 1000000);
    virtual_setting("service_us", &virtual_server.service_ns, 1000);
    virtual_setting("wrong_ms", &virtual_server.wrong_ns, 1000000);
    virtual_setting("fail_every", &virtual_server.fail_every, 1);
    virtual_setting("crash_at", &virtual_server.crash_at, 1);
    virtual_setting("jitter", &virtual_server.jitter, 1);
    virtual_setting("jitter_seed", &virtual_server.jitter_seed, 1);
}
int64_t virtual_clock_ns(void) { return virtual_now_ns += VIRTUAL_TICK_NS; }

vp_server_options vp_server_options_default(void) {
    vp_server_options options = {0};
    options.most_bytes = 1 << 20;
    return options;
}
vp_result vp_server_open(const vp_server_options *options, vp_server **server, vp_error *error) {
    vp_server *made = (vp_server *)calloc(1, sizeof *made);
    (void)error;
    if (!made) return VP_ERR_MEMORY;
    virtual_read();
    made->options = *options;
    snprintf(made->url, sizeof made->url, "%.*s", (int)vp_chat_base_bytes(options->url), options->url);
    *server = made;
    return VP_OK;
}
void vp_server_close(vp_server *server) { free(server); }
const char *vp_server_url(const vp_server *server) { return server->url; }
const char *vp_server_library(const vp_server *server) { (void)server; return "virtual/1"; }
void vp_exchange_free(vp_exchange *exchange) { vp_chat_reply_free(&exchange->reply); }
/* The pixels of a PNG file in base64 at `at`, from its bytes 16 to 23; 0 x 0: it is another kind of file. */
static void virtual_size(const char *at, int32_t *width, int32_t *height) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char bytes[24];
    *width = *height = 0;
    if (strncmp(at - 9, "image/png", 9)) return;
    for (int i = 0, k = 0; i < 32; i += 4, k += 3) {
        unsigned four = 0;
        for (int d = 0; d < 4; d++) four = four << 6 | (unsigned)(strchr(digits, at[8 + i + d]) - digits);
        bytes[k] = (unsigned char)(four >> 16), bytes[k + 1] = (unsigned char)(four >> 8 & 255), bytes[k + 2] = (unsigned char)(four & 255);
    }
    *width = bytes[18] << 8 | bytes[19];
    *height = bytes[22] << 8 | bytes[23];
}
/* The images of a request, and their tokens as counted by Qwen2-VL, or 64 for files other than PNG. Images beyond images_most are dropped. */
static int64_t virtual_image_tokens(const char *body, int64_t *images) {
    int64_t tokens = 0;
    *images = 0;
    for (const char *at = body; (at = strstr(at, ";base64,")) != NULL; at++) {
        int32_t width, height;
        if (virtual_server.images_most && *images >= virtual_server.images_most) break;
        virtual_size(at, &width, &height);
        tokens += width ? vp_count_tokens("qwen2-vl", width, height) : 64;
        ++*images;
    }
    return tokens;
}
/* One text token for each two bytes of the question. */
static long virtual_prompt_tokens(const char *body) {
    const char *said = strstr(body, "\"type\": \"text\", \"text\": \""), *plain = strstr(body, "\"content\": \"");
    const char *text = said ? said + 25 : plain ? plain + 12 : "";
    int64_t images;
    return 7 + (long)virtual_image_tokens(body, &images) + (long)(strcspn(text, "\"") + 1) / 2;
}
/* Images seen before, by a hash of their base64: their tokens are cached. */
static uint64_t virtual_images[4096];
static int virtual_image_count;
static int64_t virtual_cached_tokens(const char *body) {
    int64_t cached = 0;
    for (const char *at = body; virtual_server.has_cache && (at = strstr(at, ";base64,")) != NULL; at++) {
        uint64_t hash = 14695981039346656037u;
        int is_known = 0;
        for (const char *c = at; *c && *c != '"'; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        for (int i = 0; i < virtual_image_count; i++) is_known |= virtual_images[i] == hash;
        if (is_known) {
            int32_t width, height;
            virtual_size(at, &width, &height);
            cached += width ? vp_count_tokens("qwen2-vl", width, height) : 64;
        } else if (virtual_image_count < 4096) virtual_images[virtual_image_count++] = hash;
    }
    return cached;
}
/* Advances the clock to this time. Returns 1 if a signal came. */
static int virtual_pass(int64_t until_ns) {
    if (until_ns > virtual_now_ns) virtual_now_ns = until_ns;
    if (!virtual_server.interrupt_ns || virtual_now_ns < VIRTUAL_START_NS + virtual_server.interrupt_ns) return 0;
    virtual_server.interrupt_ns = 0;
    raise(SIGINT);
    return 1;
}
static int64_t virtual_service_ns(void) {
    static vp_random random;
    static int is_seeded;
    if (!virtual_server.jitter) return virtual_server.service_ns;
    if (!is_seeded++) vp_random_seed(&random, (uint32_t)virtual_server.jitter_seed);
    return (int64_t)((double)virtual_server.service_ns * (1 + (double)virtual_server.jitter / 100 * (2 * vp_random_double(&random) - 1)));
}
/* Sends a request; the times of its answer follow. */
static void virtual_send(vp_server *server, vp_exchange *exchange) {
    int64_t images;
    const int64_t tokens = virtual_image_tokens(exchange->body, &images) - virtual_cached_tokens(exchange->body);
    const int64_t arrived = virtual_now_ns + VIRTUAL_NETWORK_NS;
    exchange->state = VP_EXCHANGE_SENT;
    exchange->start_ns = virtual_now_ns;
    exchange->sent_ns = exchange->uploaded_ns = virtual_now_ns + VIRTUAL_NETWORK_NS / 2;
    exchange->attempts = 1;
    exchange->is_new_connection = !server->is_used++;
    virtual_count++;
    exchange->http_status = virtual_server.fail_every && virtual_count % virtual_server.fail_every == 0 ? 429 : 200;
    if (virtual_server.crash_at && virtual_count >= virtual_server.crash_at) exchange->http_status = 0;
    if (exchange->http_status == 200)
        virtual_free_ns = (arrived > virtual_free_ns ? arrived : virtual_free_ns) + virtual_service_ns()
                          + (tokens > 0 ? virtual_server.image_ns * images + virtual_server.token_ns * tokens : 0);
    exchange->headers_ns = exchange->http_status == 200 ? virtual_free_ns : arrived;
    exchange->end_ns = exchange->headers_ns + virtual_server.gap_ns * (VIRTUAL_PIECES - 1);
    exchange->reply.last_ns = tokens; /* until its end */
}
static vp_result virtual_end(const vp_server *server, vp_exchange *exchange) {
    const int64_t cached = virtual_image_tokens(exchange->body, &(int64_t){0}) - exchange->reply.last_ns;
    const int is_wrong = virtual_server.wrong_ns && exchange->headers_ns - exchange->start_ns > virtual_server.wrong_ns;
    char text[400];
    exchange->state = VP_EXCHANGE_FAILED;
    if (exchange->http_status != 200)
        return exchange->result = vp_error_set(&exchange->error, VP_ERR_DEVICE, -1, server->url,
                                               exchange->http_status ? "HTTP 429: too many requests" : "Connection reset by peer");
    vp_chat_reply_begin(&exchange->reply, server->options.api, "text/event-stream", 1 << 20);
    for (int i = 0; i < VIRTUAL_PIECES; i++) {
        snprintf(text, sizeof text, "data: {\"id\":\"virtual-7\",\"choices\":[{\"delta\":{\"content\":\"%s \"}}]}\n\n", is_wrong ? "b" : "a");
        vp_chat_reply_feed(&exchange->reply, text, strlen(text), exchange->headers_ns + virtual_server.gap_ns * i, NULL);
    }
    snprintf(text, sizeof text, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%ld,\"completion_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%ld}}}\n\n"
             "data: [DONE]\n\n", virtual_prompt_tokens(exchange->body), VIRTUAL_PIECES, (long)cached);
    vp_chat_reply_feed(&exchange->reply, text, strlen(text), exchange->end_ns, NULL);
    exchange->result = vp_chat_reply_end(&exchange->reply, &exchange->error);
    if (exchange->result == VP_OK) exchange->state = VP_EXCHANGE_DONE;
    return exchange->result;
}
vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error) {
    if (virtual_pass(virtual_now_ns)) return VP_ERR_INTERRUPTED;
    virtual_send(server, exchange);
    if (virtual_pass(exchange->end_ns)) return VP_ERR_INTERRUPTED;
    virtual_end(server, exchange);
    if (error) *error = exchange->error;
    return exchange->result;
}
vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error) {
    if (server->flight_count == VIRTUAL_FLIGHTS) return vp_error_set(error, VP_ERR_CAPACITY, -1, "virtual server", "too many requests");
    exchange->state = VP_EXCHANGE_WAITING;
    server->flights[server->flight_count++] = exchange;
    return VP_OK;
}
vp_result vp_server_step(vp_server *server, int64_t until_ns, vp_exchange **finished, vp_error *error) {
    (void)error;
    *finished = NULL;
    for (;;) {
        int next = -1;
        int64_t at = INT64_MAX;
        for (int i = 0; i < server->flight_count; i++) {
            const vp_exchange *exchange = server->flights[i];
            const int64_t when = exchange->state == VP_EXCHANGE_SENT ? exchange->end_ns : exchange->scheduled_ns;
            if (when < at) { at = when; next = i; }
        }
        if (next < 0 && !until_ns) return VP_OK;
        if (until_ns && at > until_ns) return virtual_pass(until_ns) ? VP_ERR_INTERRUPTED : VP_OK;
        if (virtual_pass(at)) return VP_ERR_INTERRUPTED;
        if (server->flights[next]->state == VP_EXCHANGE_WAITING) { virtual_send(server, server->flights[next]); continue; }
        *finished = server->flights[next];
        server->flights[next] = server->flights[--server->flight_count];
        virtual_end(server, *finished);
        return VP_OK;
    }
}
vp_result vp_server_get(vp_server *server, const char *path, int *status, char **text, size_t *bytes, vp_error *error) {
    static const char models[] = "{\"data\":[{\"id\":\"m\"}]}";
    (void)server, (void)error;
    *status = strcmp(path, "/v1/models") ? 404 : 200;
    if (*status == 404) return VP_OK;
    *text = strdup(models);
    *bytes = sizeof models - 1;
    return VP_OK;
}
#endif
