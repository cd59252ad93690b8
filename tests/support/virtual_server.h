/* virtual_server.h: a chat server and its client in one, on a virtual clock: it replaces the library's vp_clock_ns and the functions of vlmprof_server.h. No request
 * leaves the process, waiting takes no time, and every run has the same times. The server is a queue: it serves `places` requests at once, each for service_ns (with
 * images image_ns more for each, and token_ns for each of their tokens); the others wait in order of arrival. The answer's pieces come gap_ns apart. A test includes this
 * before everything else and sets virtual_server; $B/tests/vlmprof-virtual is the program with it (VLMPROF_VIRTUAL in the environment: "places=2 service_us=10000 ..").
 * */
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
#include "vlmprof_image.h"
#include "vlmprof_server.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times are in ns since the program began. */
static struct {
    int places, pieces, count; /* count: of requests that were sent */
    int64_t service_ns, image_ns, token_ns, gap_ns;
    int64_t images_most; /* of a request; 0: any number */
    int64_t stall_at_ns, stall_ns; /* the client then stalls for this long; 0: never */
    int64_t interrupt_ns;          /* SIGINT comes; 0: never */
    int64_t tick_ns;               /* that the clock goes on at each reading */
    int metrics;                   /* the metrics of /metrics: 1 vLLM, 2 SGLang, 3 llama.cpp, 4 none of them; 0: no such page */
    int wrong_every;               /* each Nth answer is "b", not "a"; 0: none */
    int64_t wrong_wait_ns;         /* and so are those that waited longer; 0: none */
    int64_t jitter, jitter_seed;   /* service_ns varies at random by up to this percentage */
    int has_cache;                 /* an image with known bytes costs nothing, and its tokens count as cached */
    int64_t byte_ns, text_ns;      /* the time of each byte of an image and each token of text */
    int has_sizes;                 /* JPEG files are counted by their size too */
    int break_every;               /* each Nth stream breaks after its first piece; 0: none */
    int empty_every;               /* each Nth answer has no text; 0: none */
    int fail_from;                 /* the number of the first request that the server rejects with 503; 0: none */
    int64_t jam_at_ns, jam_ns;     /* the server starts no answer in this time; 0: never */
    int64_t sent_ns[65536], served_ns[65536]; /* for each request, in the order in which they were sent */
} virtual_server = {1, 3, 0, 8000000, 0, 0, 500000, 0, 0, 0, 0, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}};
enum { VIRTUAL_PLACES = 64, VIRTUAL_FLIGHTS = 4096, VIRTUAL_NETWORK_NS = 100000 };
static int64_t virtual_now_ns = 1000000000, virtual_free_ns[VIRTUAL_PLACES];

struct vp_server {
    vp_server_options options;
    char url[300];
    vp_exchange *flights[VIRTUAL_FLIGHTS]; /* that wait or were sent */
    int flight_count;
};

static void virtual_setting(const char *name, int64_t *to, int64_t unit) {
    const char *all = getenv("VLMPROF_VIRTUAL"), *at = all ? strstr(all, name) : NULL;
    if (at && at[strlen(name)] == '=') *to = (int64_t)(atof(at + strlen(name) + 1) * (double)unit);
}
static void virtual_read(void) {
    int64_t places = virtual_server.places, pieces = virtual_server.pieces, fail = 0, empty = 0, cache = 0, broken = 0, wrong = 0;
    int64_t metrics = virtual_server.metrics;
    virtual_setting("break_every", &broken, 1);
    virtual_setting("cache", &cache, 1);
    virtual_setting("places", &places, 1);
    virtual_setting("pieces", &pieces, 1);
    virtual_setting("fail_from", &fail, 1);
    virtual_setting("wrong_every", &wrong, 1);
    virtual_setting("wrong_wait_us", &virtual_server.wrong_wait_ns, 1000);
    virtual_server.wrong_every = (int)wrong;
    virtual_setting("metrics", &metrics, 1);
    virtual_server.metrics = (int)metrics;
    virtual_setting("empty_every", &empty, 1);
    virtual_setting("jitter", &virtual_server.jitter, 1);
    virtual_setting("jitter_seed", &virtual_server.jitter_seed, 1);
    virtual_setting("service_us", &virtual_server.service_ns, 1000);
    virtual_setting("image_us", &virtual_server.image_ns, 1000);
    virtual_setting("token_us", &virtual_server.token_ns, 1000);
    virtual_setting("images_most", &virtual_server.images_most, 1);
    virtual_setting("gap_us", &virtual_server.gap_ns, 1000);
    virtual_setting("stall_at_ms", &virtual_server.stall_at_ns, 1000000);
    virtual_setting("jam_at_ms", &virtual_server.jam_at_ns, 1000000);
    virtual_setting("jam_ms", &virtual_server.jam_ns, 1000000);
    virtual_setting("stall_ms", &virtual_server.stall_ns, 1000000);
    virtual_setting("interrupt_ms", &virtual_server.interrupt_ns, 1000000);
    virtual_server.places = (int)places;
    virtual_server.pieces = (int)pieces;
    virtual_server.fail_from = (int)fail;
    virtual_server.empty_every = (int)empty;
    virtual_server.has_cache = (int)cache;
    virtual_setting("byte_ns", &virtual_server.byte_ns, 1);
    virtual_setting("text_us", &virtual_server.text_ns, 1000);
    virtual_server.has_sizes = getenv("VLMPROF_VIRTUAL") && strstr(getenv("VLMPROF_VIRTUAL"), "sizes=1") != NULL;
    virtual_server.break_every = (int)broken;
}
int64_t virtual_clock_ns(void) { return virtual_now_ns += virtual_server.tick_ns; }

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
vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error) {
    if (exchange->state != VP_EXCHANGE_NEW || server->flight_count == VIRTUAL_FLIGHTS) return vp_fail(error, VP_ERR_STATE, -1, "start", "too many");
    exchange->state = VP_EXCHANGE_WAITING;
    server->flights[server->flight_count++] = exchange;
    return VP_OK;
}

vp_result vp_server_start_get(vp_server *server, const char *path, vp_exchange *exchange, vp_error *error) {
    exchange->body = NULL; /* a GET */
    exchange->scheduled_ns = virtual_now_ns;
    (void)path;
    return vp_server_start(server, exchange, error);
}
/* The pixels of a PNG file in base64 at `at`, from its bytes 16 to 23; 0 x 0: it is another kind of file. */
static void virtual_size(const char *at, int32_t *width, int32_t *height) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char bytes[24];
    *width = *height = 0;
    if (virtual_server.has_sizes && !strncmp(at - 10, "image/jpeg", 10)) {
        const size_t letters = strcspn(at + 8, "\"");
        uint8_t *file = (uint8_t *)malloc(letters);
        size_t count = 0;
        for (size_t i = 0; file && i + 3 < letters; i += 4) {
            unsigned four = 0;
            for (int d = 0; d < 4; d++) four = four << 6 | (at[8 + i + (size_t)d] == '=' ? 0u : (unsigned)(strchr(digits, at[8 + i + (size_t)d]) - digits));
            file[count++] = (uint8_t)(four >> 16), file[count++] = (uint8_t)(four >> 8 & 255), file[count++] = (uint8_t)(four & 255);
        }
        if (file) vp_image_size(file, count, width, height, NULL);
        free(file);
        return;
    }
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
        if (virtual_server.images_most && *images == virtual_server.images_most) break;
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
/* Images seen before, by a hash of their base64, and what requests in flight found of theirs: cached tokens, and the remaining work. */
static uint64_t virtual_images[65536];
static int virtual_image_count;
static struct { const vp_exchange *exchange; int64_t tokens; } virtual_cached[VIRTUAL_FLIGHTS];
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
        } else if (virtual_image_count < 65536) virtual_images[virtual_image_count++] = hash;
    }
    return cached;
}
static void virtual_keep_cached(const vp_exchange *exchange, int64_t tokens) {
    int place = 0;
    while (place < VIRTUAL_FLIGHTS - 1 && virtual_cached[place].exchange && virtual_cached[place].exchange != exchange) place++;
    virtual_cached[place].exchange = exchange;
    virtual_cached[place].tokens = tokens;
}
static int64_t virtual_cached_of(const vp_exchange *exchange) {
    for (int i = 0; i < VIRTUAL_FLIGHTS; i++) if (virtual_cached[i].exchange == exchange) return virtual_cached[i].tokens;
    return 0;
}
static int64_t virtual_image_ns(const vp_exchange *exchange) {
    int64_t images;
    const int64_t all = virtual_image_tokens(exchange->body, &images), tokens = all - virtual_cached_of(exchange);
    const int64_t bytes = virtual_server.byte_ns && tokens > 0 ? (int64_t)strcspn(strstr(exchange->body, ";base64,") + 8, "\"") * 3 / 4 : 0;
    const int64_t text = virtual_prompt_tokens(exchange->body) - all;
    return (tokens > 0 ? virtual_server.image_ns * images + virtual_server.token_ns * tokens : 0) + virtual_server.byte_ns * bytes + virtual_server.text_ns * text;
}
static int64_t virtual_service_ns(void) {
    static vp_random random;
    static int is_seeded;
    if (!virtual_server.jitter) return virtual_server.service_ns;
    if (!is_seeded++) vp_random_seed(&random, (uint32_t)virtual_server.jitter_seed);
    return virtual_server.service_ns + (int64_t)((double)virtual_server.service_ns * (double)virtual_server.jitter / 100 * (2 * vp_random_double(&random) - 1));
}
/* The text of /metrics: the current queue, counters by the number of requests, two engines of vLLM. */
static char *virtual_metrics(const struct vp_server *server) {
    int waiting = 0, running = 0;
    const int count = virtual_server.count;
    char text[1200];
    for (int i = 0; i < server->flight_count; i++) {
        const vp_exchange *exchange = server->flights[i];
        if (!exchange->body || exchange->state != VP_EXCHANGE_SENT) continue;
        if (exchange->headers_ns - virtual_server.service_ns - virtual_image_ns(exchange) > virtual_now_ns) waiting++; else running++;
    }
    if (virtual_server.metrics == 1)
        snprintf(text, sizeof text, "# HELP vllm:num_requests_waiting Number of requests waiting.\n# TYPE vllm:num_requests_waiting gauge\n"
                 "vllm:num_requests_waiting{engine=\"0\",model_name=\"a } b\"} %d.0\nvllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 1.0\n"
                 "vllm:num_requests_running{engine=\"0\"} %d.0\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.25\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n"
                 "vllm:prefix_cache_queries_total{engine=\"0\"} %d.0\nvllm:prefix_cache_hits_total{engine=\"0\"} %d.0\n"
                 "vllm:mm_cache_queries_total %d\nvllm:mm_cache_hits_total %d\nvllm:num_preemptions_total{engine=\"0\"} %d\n",
                 waiting, running, 100 + 32 * count, 50 + 8 * count, 7 + 4 * count, 3 + 3 * count, 5 + 2 * count);
    else if (virtual_server.metrics == 2)
        snprintf(text, sizeof text, "sglang:num_queue_reqs{model_name=\"m\"} %d.0\nsglang:num_running_reqs{model_name=\"m\"} %d.0\nsglang:token_usage 0.5\n"
                 "sglang:cache_hit_rate 0.125\nsglang:spec_accept_rate 0.7\nsglang:num_retracted_requests_total %d\n", waiting, running, count);
    else if (virtual_server.metrics == 3)
        snprintf(text, sizeof text, "llamacpp:requests_processing %d\nllamacpp:requests_deferred %d\nllamacpp:prompt_tokens_total %d\n"
                 "llamacpp:prompt_tokens_cached_total %d\nllamacpp:spec_decode_num_draft_tokens_total 0\nllamacpp:spec_decode_num_accepted_tokens_total 0\n",
                 running, waiting, 9 + 10 * count, 3 + 30 * count);
    else snprintf(text, sizeof text, "process_cpu %d %d\n", running, waiting);
    return strdup(text);
}
static void virtual_end_get(const struct vp_server *server, vp_exchange *exchange) {
    exchange->http_status = virtual_server.metrics ? 200 : 404;
    exchange->state = VP_EXCHANGE_DONE;
    if (!virtual_server.metrics) return;
    exchange->reply.text = virtual_metrics(server);
    exchange->reply.text_bytes = strlen(exchange->reply.text);
}
/* Sends a request that is due; the times of its answer follow from those before it. */
static void virtual_send(vp_exchange *exchange) {
    int place = 0;
    const int64_t arrived = virtual_now_ns + VIRTUAL_NETWORK_NS;
    for (int i = 1; i < virtual_server.places; i++) if (virtual_free_ns[i] < virtual_free_ns[place]) place = i;
    int64_t begin = arrived > virtual_free_ns[place] ? arrived : virtual_free_ns[place];
    if (begin >= 1000000000 + virtual_server.jam_at_ns && begin < 1000000000 + virtual_server.jam_at_ns + virtual_server.jam_ns)
        begin = 1000000000 + virtual_server.jam_at_ns + virtual_server.jam_ns;
    if (exchange->body) virtual_keep_cached(exchange, virtual_cached_tokens(exchange->body));
    exchange->state = VP_EXCHANGE_SENT;
    exchange->start_ns = virtual_now_ns;
    exchange->sent_ns = exchange->uploaded_ns = virtual_now_ns + VIRTUAL_NETWORK_NS / 2;
    exchange->attempts = 1;
    if (!exchange->body) { exchange->headers_ns = exchange->end_ns = arrived; return; }
    exchange->is_new_connection = virtual_server.count == 0;
    exchange->headers_ns = virtual_free_ns[place] = begin + virtual_service_ns() + virtual_image_ns(exchange);
    exchange->end_ns = exchange->headers_ns + virtual_server.gap_ns * (virtual_server.pieces - 1);
    if (virtual_server.count < 65536) {
        virtual_server.sent_ns[virtual_server.count] = virtual_now_ns;
        virtual_server.served_ns[virtual_server.count] = exchange->headers_ns;
    }
    virtual_server.count++;
    if (virtual_server.fail_from && virtual_server.count >= virtual_server.fail_from) exchange->http_status = 503;
}
static void virtual_end(vp_exchange *exchange, const vp_server_options *options) {
    static int ended;
    const int is_empty = virtual_server.empty_every && (ended + 1) % virtual_server.empty_every == 0;
    const int is_broken = virtual_server.break_every && (ended + 1) % virtual_server.break_every == 0;
    const int64_t waited_ns = exchange->headers_ns - exchange->start_ns - virtual_server.service_ns - virtual_image_ns(exchange) - VIRTUAL_NETWORK_NS;
    const int is_wrong = (virtual_server.wrong_every && (ended + 1) % virtual_server.wrong_every == 0)
                         || (virtual_server.wrong_wait_ns && waited_ns > virtual_server.wrong_wait_ns);
    char text[400];
    ended++;
    if (exchange->http_status == 503) {
        exchange->state = VP_EXCHANGE_FAILED;
        exchange->result = vp_fail(&exchange->error, VP_ERR_DEVICE, -1, "server", "HTTP 503: busy");
        return;
    }
    exchange->http_status = 200;
    vp_chat_reply_begin(&exchange->reply, options->api, "text/event-stream", 1 << 20);
    for (int i = 0; i < virtual_server.pieces && !is_empty; i++) {
        snprintf(text, sizeof text, "data: {\"id\":\"virtual-7\",\"choices\":[{\"delta\":{\"content\":\"%s \"}}]}\n\n", is_wrong ? "b" : "a");
        vp_chat_reply_feed(&exchange->reply, text, strlen(text), exchange->headers_ns + virtual_server.gap_ns * i, NULL);
        if (!is_broken) continue;
        exchange->state = VP_EXCHANGE_FAILED;
        exchange->result = vp_fail(&exchange->error, VP_ERR_DEVICE, -1, "server", "the connection was reset");
        return;
    }
    snprintf(text, sizeof text, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%ld,\"completion_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%ld}}}\n\n"
             "data: [DONE]\n\n", virtual_prompt_tokens(exchange->body), virtual_server.pieces, (long)virtual_cached_of(exchange));
    vp_chat_reply_feed(&exchange->reply, text, strlen(text), exchange->end_ns, NULL);
    exchange->result = vp_chat_reply_end(&exchange->reply, &exchange->error);
    exchange->state = exchange->result == VP_OK ? VP_EXCHANGE_DONE : VP_EXCHANGE_FAILED;
}
/* Advances the clock to this time, over a stall and a signal. */
static int virtual_pass(int64_t until_ns) {
    const int64_t began = 1000000000;
    if (virtual_server.stall_ns && until_ns >= began + virtual_server.stall_at_ns) {
        until_ns = until_ns > began + virtual_server.stall_at_ns + virtual_server.stall_ns ? until_ns
                                                                                             : began + virtual_server.stall_at_ns + virtual_server.stall_ns;
        virtual_server.stall_ns = 0;
    }
    if (until_ns > virtual_now_ns) virtual_now_ns = until_ns;
    if (!virtual_server.interrupt_ns || virtual_now_ns < began + virtual_server.interrupt_ns) return 0;
    virtual_server.interrupt_ns = 0;
    raise(SIGINT);
    return 1;
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
        if (server->flights[next]->state == VP_EXCHANGE_WAITING) { virtual_send(server->flights[next]); continue; }
        *finished = server->flights[next];
        server->flights[next] = server->flights[--server->flight_count];
        if ((*finished)->body) virtual_end(*finished, &server->options); else virtual_end_get(server, *finished);
        return VP_OK;
    }
}
vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error) {
    vp_exchange *finished = NULL;
    vp_result result = vp_server_start(server, exchange, error);
    if (result == VP_OK) result = vp_server_step(server, 0, &finished, error);
    if (result != VP_OK) { server->flight_count = 0; return result; }
    if (error) *error = exchange->error;
    return exchange->result;
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
