/* test_server.c: requests to a hostile server of the tests: outcomes, number of attempts, order of time stamps; the requests sent; options; many
 * at once; signals; no text contains the API key; missing libcurl. The part is included so that dlopen can fail. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
static const char *hidden_library, *hidden_function; /* the library or function that dlopen or dlsym does not find; "" stands for every library */
static void *test_dlopen(const char *name, int flags) {
    if (hidden_library && (!*hidden_library || !__builtin_strcmp(name, hidden_library))) return (void *)0;
    return dlopen(name, flags);
}
static void *test_dlsym(void *library, const char *name) {
    return hidden_function && !__builtin_strcmp(name, hidden_function) ? (void *)0 : dlsym(library, name);
}
#include "support/allocations.h"
#define dlopen test_dlopen
#define dlsym test_dlsym
#include "vlmprof_server.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef dlopen
#undef dlsym
#include "support/check.h"
#include "support/folder.h"
#include "support/hostile_server.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
static const char BODY[] = "{\"model\": \"m\"}";

static vp_server_options options_of(const hostile_server *hostile) {
    static char urls[4][64];
    static int turn;
    vp_server_options options = vp_server_options_default();
    char *url = urls[turn++ & 3];
    snprintf(url, sizeof urls[0], "http://127.0.0.1:%d/v1", hostile->port);
    options.url = url;
    options.idle_timeout_ms = options.total_timeout_ms = 20000; /* so that a hanging test ends */
    return options;
}
static vp_server *open_server(const vp_server_options *options) {
    vp_server *server = NULL;
    vp_error error = {VP_OK, 0, "", ""};
    if (!CHECK_INT(vp_server_open(options, &server, &error), VP_OK)) {
        printf("  %s: %s\n", error.where, error.text);
        exit(check_done("test_server"));
    }
    return server;
}
static vp_exchange exchange_of(const char *body) {
    vp_exchange exchange = {.body = body, .body_bytes = strlen(body)};
    return exchange;
}
static void end_of(vp_exchange *exchange, vp_server *server, hostile_server *hostile) {
    vp_exchange_free(exchange);
    vp_server_close(server);
    hostile_stop(hostile);
}
/* Checks the order of all stamps that were set. */
static void check_stamps(const vp_exchange *exchange, int is_whole) {
    const vp_chat_reply *reply = &exchange->reply;
    int64_t last = exchange->scheduled_ns;
    const int64_t stamps[] = {exchange->start_ns, exchange->sent_ns, exchange->headers_ns, reply->first_ns, reply->last_ns, exchange->end_ns};
    for (size_t i = 0; i < 6; i++) {
        CHECK(stamps[i] != 0 || !is_whole);
        if (stamps[i] != 0) CHECK(stamps[i] >= last);
        if (stamps[i] != 0) last = stamps[i];
    }
    if (is_whole) CHECK(exchange->uploaded_ns >= exchange->sent_ns && exchange->uploaded_ns <= exchange->end_ns);
    for (size_t i = 1; i < reply->piece_count; i++) CHECK(reply->pieces[i].at_ns >= reply->pieces[i - 1].at_ns);
}

/* ------------------------------------------------------------------------------------------------- one request, one reply */
#define SAY(text) {HOSTILE_SEND, text, 0}
#define STEPS(...) (const hostile_step[]) {__VA_ARGS__}
static const hostile_step good[] = {SAY(HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_ANSWER), {HOSTILE_CLOSE, NULL, 0}};
static char gzipped[4096];
static hostile_step gzip_steps[] = {SAY(HOSTILE_STREAM "Content-Encoding: gzip\r\nConnection: close\r\n\r\n"), {HOSTILE_BYTES, gzipped, 0}, {HOSTILE_CLOSE, NULL, 0}};
static const struct single {
    const char *name;
    const hostile_step *steps;
    vp_result result;
    int status, attempts;
    const char *text, *error; /* the start of the answer; a part of the error */
} singles[] = {
    {"a stream that ends with the connection", good, VP_OK, 200, 1, "Hello", ""},
    {"each byte a packet", STEPS({HOSTILE_SPLIT, HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_ANSWER, 0}, {HOSTILE_CLOSE, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"chunks that split events", STEPS(SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, "data: {\"choices\":[{\"delta\":{\"con", 0}, {HOSTILE_WAIT, NULL, 5},
        {HOSTILE_CHUNK, "tent\":\"Hello\"}}]}\n", 0}, {HOSTILE_WAIT, NULL, 5}, {HOSTILE_CHUNK, "\n", 0}, {HOSTILE_CHUNK, HOSTILE_END, 0}, {HOSTILE_CHUNK, "", 0},
        {HOSTILE_KEEP, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"HTTP/1.0", STEPS(SAY("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" HOSTILE_ANSWER), {HOSTILE_CLOSE, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"100 Continue before it", STEPS(SAY("HTTP/1.1 100 Continue\r\n\r\n"), {HOSTILE_WAIT, NULL, 10}, SAY(HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_ANSWER),
        {HOSTILE_CLOSE, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"a slow sender", STEPS(SAY("HTTP/1.1 200 OK\r\n"), {HOSTILE_WAIT, NULL, 30}, SAY("content-TYPE:text/event-stream\r\n\r\n"), {HOSTILE_WAIT, NULL, 30},
        SAY(HOSTILE_DELTA("Hel")), {HOSTILE_WAIT, NULL, 30}, SAY(HOSTILE_DELTA("lo") HOSTILE_END), {HOSTILE_CLOSE, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"one piece with its length", STEPS(SAY("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 45\r\n\r\n"
        "{\"choices\":[{\"message\":{\"content\":\"Hello\"}}]}"), {HOSTILE_KEEP, NULL, 0}), VP_OK, 200, 1, "Hello", ""},
    {"compressed, though nobody asked", gzip_steps, VP_OK, 200, 1, "Hello", ""},
    {"trailers", STEPS(SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_ANSWER, 0}, SAY("0\r\nHTTP/1.1 503 Busy: yes\r\nRetry-After: 5\r\n\r\n"), {HOSTILE_KEEP, NULL,
        0}), VP_OK, 200, 1,
        "Hello", ""},
    /* replies without an answer */
    {"400 with an object", STEPS(SAY(HOSTILE_NO("400 Bad Request", "", "{\"error\":{\"message\":\"no\\n such \\u001b[2Jmodel\",\"code\":400}}")),
        {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 400, 1, NULL, "HTTP 400: no? such ?[2Jmodel"},
    {"404 of a framework", STEPS(SAY(HOSTILE_NO("404 Not Found", "", "{\"detail\":\"Not Found\"}")), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE, 404, 1, NULL,
        "HTTP 404: Not Found"},
    {"500 without a word", STEPS(SAY(HOSTILE_NO("500 Oops", "", "")), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE, 500, 1, NULL, "HTTP 500"},
    {"500 without end", STEPS(SAY(HOSTILE_NO("500 Oops", "", "a lot")), {HOSTILE_ENDLESS, " and more", 0}, {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE, 500, 1,
        NULL, "HTTP 500: a lot and more"},
    {"503 again and again", STEPS(SAY(HOSTILE_NO("503 Busy", "Retry-After: 0\r\n", "{\"error\":\"busy\"}")), {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 503, 3, NULL, "HTTP 503: busy (after 3 attempts)"},
    {"429 with a date that is over", STEPS(SAY(HOSTILE_NO("429 Slow", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n", "")), {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 429, 3, NULL, "HTTP 429 (after 3 attempts)"},
    {"429 with a long pause", STEPS(SAY(HOSTILE_NO("429 Slow", "Retry-After: 3600\r\n", "")), {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 429, 1, NULL, "HTTP 429 (it requests a pause of 3600 s)"},
    {"redirect within the server", STEPS(SAY(HOSTILE_NO("307 Away", "Location: /v2/chat\r\n", "")), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE, 307, 1, NULL,
        "another path of the same server"},
    {"wrong JSON", STEPS(SAY(HOSTILE_STREAM "\r\ndata: {oops\n\n"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 200, 1, NULL, ""},
    {"wrong JSON, and then without end", STEPS(SAY(HOSTILE_STREAM "\r\ndata: {oops\n\n"), {HOSTILE_ENDLESS, HOSTILE_DELTA("x"), 0}, {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_FORMAT, 200, 1, NULL, ""},
    {"a page", STEPS(SAY("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 200, 1, NULL, ""},
    {"an empty answer", STEPS(SAY("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), {HOSTILE_KEEP, NULL, 0}), VP_ERR_FORMAT, 200, 1, NULL,
        "the server's answer is empty"},
    {"no content", STEPS(SAY("HTTP/1.1 204 No Content\r\n\r\n"), {HOSTILE_KEEP, NULL, 0}), VP_ERR_FORMAT, 204, 1, NULL, "the server's answer is empty"},
    {"an error inside the stream", STEPS(SAY(HOSTILE_STREAM "\r\n" HOSTILE_DELTA("half") "data: {\"error\":{\"message\":\"out of memory\"}}\n\n"),
        {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 200, 1, "half", "the server reports an error: out of memory"},
    {"an error inside the stream, and a reset", STEPS(SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, "data: {\"error\":\"out of memory\"}\n\n", 0}, {HOSTILE_WAIT, NULL, 50},
        {HOSTILE_RESET, NULL, 0}), VP_ERR_DEVICE, 200, 1, "", "the server reports an error: out of memory"},
    {"an error inside the stream, and nonsense", STEPS(SAY(HOSTILE_STREAM "\r\ndata: {\"error\":\"out of memory\"}\n\ndata: {oops\n\n"), {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 200, 1, "", "the server reports an error: out of memory"},
    {"a date far in the future", STEPS(SAY(HOSTILE_NO("503 Busy", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", "")), {HOSTILE_CLOSE, NULL, 0}),
        VP_ERR_DEVICE, 503, 1, NULL, "HTTP 503 (it requests a pause of 1000000000 s)"},
    {"a stream that ends too early", STEPS(SAY(HOSTILE_STREAM "\r\n" HOSTILE_DELTA("half")), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 200, 1, "half",
        "before the server marked"},
    {"half a chunk", STEPS(SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_DELTA("half"), 0}, SAY("40\r\ndata: {"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE,
        200, 1, "half", ""},
    {"a reset inside the answer", STEPS(SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_DELTA("half"), 0}, {HOSTILE_WAIT, NULL, 50}, {HOSTILE_RESET, NULL, 0}),
        VP_ERR_DEVICE, 200, 1, "half", ""},
    {"half of the length", STEPS(SAY("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"choices\":"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_DEVICE, 200, 1, NULL, ""},
    {"a megabyte of headers", STEPS(SAY("HTTP/1.1 200 OK\r\n"), {HOSTILE_REPEAT, "X-More: 0123456789012345678901234567890123456789\r\n", 20000},
        SAY("\r\n" HOSTILE_ANSWER),
        {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 0, 1, NULL, "64 KiB of headers"},
    {"one header without end", STEPS(SAY("HTTP/1.1 200 OK\r\nX: "), {HOSTILE_ENDLESS, "0123456789", 0}, {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 0, 1, NULL,
        "header line that is too long"},
    {"no HTTP", STEPS(SAY("hello\r\n\r\n"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 0, 1, NULL, ""},
    {"a status of letters", STEPS(SAY("HTTP/1.1 abc OK\r\n\r\n"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 0, 1, NULL, ""},
    {"no gzip", STEPS(SAY(HOSTILE_STREAM "Content-Encoding: gzip\r\n\r\nthis is none"), {HOSTILE_CLOSE, NULL, 0}), VP_ERR_FORMAT, 200, 1, NULL, ""}};
static void test_singles(void) {
    gzip_steps[1].number = (int)hostile_gzip(HOSTILE_ANSWER, gzipped);
    for (int i = 0; i < COUNT(singles); i++) {
        const struct single *single = &singles[i];
        hostile_server hostile;
        hostile_reply reply = single->steps;
        vp_exchange exchange = exchange_of(BODY);
        vp_error error = {VP_OK, 0, "", ""};
        check_case("a reply: %s", single->name);
        hostile_start(&hostile, &reply, 1);
        vp_server_options options = options_of(&hostile);
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, &error), single->result);
        CHECK(exchange.result == single->result && exchange.state == (single->result == VP_OK ? VP_EXCHANGE_DONE : VP_EXCHANGE_FAILED));
        CHECK_INT(exchange.http_status, single->status);
        CHECK_INT(exchange.attempts, single->attempts);
        CHECK_INT(hostile_count(&hostile, &hostile.request_count), single->attempts);
        if (single->text) CHECK(exchange.reply.text && strcmp(exchange.reply.text, single->text) == 0);
        if (!CHECK(strstr(exchange.error.text, single->error) != NULL)) printf("  %s\n", exchange.error.text);
        CHECK_TEXT(error.text, exchange.error.text);
        if (single->result != VP_OK) CHECK(error.text[0] && strstr(error.where, "/v1/chat/completions") && strncmp(error.where, "http://127.0.0.1:", 17) == 0);
        CHECK(exchange.end_ns >= exchange.start_ns && exchange.is_new_connection);
        check_stamps(&exchange, single->result == VP_OK);
        if (single->result == VP_OK) CHECK_INT(exchange.reply.usage.prompt_tokens, single->text && strstr(single->name, "one piece") ? -1 : 7);
        end_of(&exchange, server, &hostile);
    }
}

/* -------------------------------------------------------------------------------------------------------- several replies */
static void test_retries(void) {
    static const hostile_step busy[] = {SAY(HOSTILE_NO("503 Busy", "Retry-After: 0\r\n", "{}")), {HOSTILE_CLOSE, NULL, 0}},
                              later[] = {SAY(HOSTILE_NO("429 Slow", "Retry-After: 1\r\n", "{}")), {HOSTILE_CLOSE, NULL, 0}},
                              plain[] = {SAY(HOSTILE_NO("502 Gone", "", "{}")), {HOSTILE_CLOSE, NULL, 0}},
                              silent[] = {{HOSTILE_CLOSE, NULL, 0}}, reset[] = {{HOSTILE_RESET, NULL, 0}},
                              heads[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CLOSE, NULL, 0}};
    static const hostile_reply busy_replies[] = {busy, busy, good}, later_replies[] = {later, good}, plain_replies[] = {plain, good},
                               silent_replies[] = {silent, good}, reset_replies[] = {reset, good}, heads_replies[] = {heads, good};
    static const struct { const char *name; const hostile_reply *replies; int count, attempts, least_ms; } cases[] = {
        {"503, 503, then an answer", busy_replies, 3, 3, 0}, {"429 with a pause of 1 s, then an answer", later_replies, 2, 2, 1000},
        {"502 without a pause: half a second", plain_replies, 2, 2, 500}, {"closed before the headers", silent_replies, 2, 2, 500},
        {"reset before the headers", reset_replies, 2, 2, 500}, {"closed after the headers", heads_replies, 2, 2, 500}};
    for (int i = 0; i < COUNT(cases); i++) {
        hostile_server hostile;
        vp_exchange exchange = exchange_of(BODY);
        const int64_t begin = vp_clock_ns();
        check_case("retries: %s", cases[i].name);
        hostile_start(&hostile, cases[i].replies, cases[i].count);
        vp_server_options options = options_of(&hostile);
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
        CHECK_INT(exchange.attempts, cases[i].attempts);
        CHECK_INT(hostile.request_count, cases[i].attempts);
        CHECK_TEXT(exchange.reply.text, "Hello");
        CHECK(vp_clock_ns() - begin >= (int64_t)cases[i].least_ms * 1000000);
        CHECK(exchange.start_ns - begin >= (int64_t)cases[i].least_ms * 1000000); /* the start of the last attempt */
        check_stamps(&exchange, 1);
        end_of(&exchange, server, &hostile);
    }
    {
        hostile_server hostile;
        const hostile_reply replies[] = {busy};
        vp_exchange exchange = exchange_of(BODY);
        check_case("retries: none if none are allowed");
        hostile_start(&hostile, replies, 1);
        vp_server_options options = options_of(&hostile);
        options.max_retries = 0;
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_DEVICE);
        CHECK(exchange.attempts == 1 && hostile.request_count == 1);
        CHECK_TEXT(exchange.error.text, "HTTP 503: {}");
        vp_exchange_free(&exchange);
        hostile_stop(&hostile);
        check_case("an unreachable server");
        exchange = exchange_of(BODY);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_DEVICE);
        CHECK(exchange.http_status == 0 && exchange.sent_ns == 0 && exchange.attempts == 1 && strstr(exchange.error.text, "onnect"));
        CHECK_INT(exchange.reply.usage.prompt_tokens, -1); /* unknown is not 0 */
        vp_exchange_free(&exchange);
        vp_server_close(server);
    }
}
/* A server that accepts a second request on a kept connection and closes it without a reply. */
static void test_dead_connections(void) {
    static const hostile_step kept[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_ANSWER, 0}, {HOSTILE_CHUNK, "", 0}, {HOSTILE_KEEP, NULL, 0}},
                              gone[] = {{HOSTILE_CLOSE, NULL, 0}};
    hostile_reply replies[40];
    hostile_server hostile;
    check_case("a kept connection fails during each of many requests: each is retried on a new connection");
    for (int i = 0; i < 40; i++) replies[i] = i % 2 ? gone : kept;
    hostile_start(&hostile, replies, 40);
    vp_server_options options = options_of(&hostile);
    options.max_retries = 0;
    vp_server *server = open_server(&options);
    for (int i = 0; i < 12; i++) {
        vp_exchange exchange = exchange_of(BODY);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
        CHECK_INT(exchange.attempts, 1);
        vp_exchange_free(&exchange);
    }
    CHECK_INT(hostile.request_count, 23);
    vp_server_close(server);
    hostile_stop(&hostile);
}
static void test_connections(void) {
    static const hostile_step kept[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_ANSWER, 0}, {HOSTILE_CHUNK, "", 0}, {HOSTILE_KEEP, NULL, 0}},
                              left[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_ANSWER, 0}, {HOSTILE_CHUNK, "", 0}, {HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply keep[] = {kept}, leave[] = {left};
    hostile_server hostile;
    vp_server_options options;
    vp_server *server;
    char url[64];
    for (int turn = 0; turn < 2; turn++) {
        check_case(turn ? "a kept connection that the server closed is made anew" : "connections are kept");
        hostile_start(&hostile, turn ? leave : keep, 1);
        options = options_of(&hostile);
        server = open_server(&options);
        for (int i = 0; i < 4; i++) {
            vp_exchange exchange = exchange_of(BODY);
            CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
            CHECK_INT(exchange.is_new_connection, turn || i == 0);
            CHECK_INT(exchange.attempts, 1);
            check_stamps(&exchange, 1);
            vp_exchange_free(&exchange);
            if (turn) usleep(20000);
        }
        CHECK_INT(hostile.connection_count, turn ? 4 : 1);
        vp_server_close(server);
        hostile_stop(&hostile);
    }
    {
        const hostile_step away[] = {SAY("HTTP/1.1 302 Found\r\nLocation: http://user:secret@127.0.0.1:"), {HOSTILE_SEND, url, 0},
            SAY("/v1/chat/completions\r\nContent-Length: 0\r\n\r\n"), {HOSTILE_KEEP, NULL, 0}};
        const hostile_reply replies[] = {away};
        hostile_server other;
        vp_exchange exchange = exchange_of(BODY);
        char own_url[64], want[160];
        check_case("a redirect to another host is not followed");
        hostile_start(&other, keep, 1);
        snprintf(url, sizeof url, "%d", other.port);
        hostile_start(&hostile, replies, 1);
        options = options_of(&hostile);
        options.api_key = "a-long-secret-key";
        server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_DEVICE);
        snprintf(want, sizeof want, "HTTP 302: the server redirects to 127.0.0.1:%s, and redirects are not followed: use that URL", url);
        CHECK_TEXT(exchange.error.text, want);
        CHECK_INT(other.connection_count, 0);
        end_of(&exchange, server, &hostile);

        check_case("no proxy for loopback, whatever the environment variables");
        snprintf(want, sizeof want, "http://127.0.0.1:%d", other.port);
        setenv("http_proxy", want, 1);
        setenv("ALL_PROXY", want, 1);
        hostile_start(&hostile, keep, 1);
        options = options_of(&hostile);
        server = open_server(&options);
        exchange = exchange_of(BODY);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
        CHECK(other.connection_count == 0 && hostile.connection_count == 1);
        vp_exchange_free(&exchange);
        vp_server_close(server);
        snprintf(own_url, sizeof own_url, "http://localhost:%d", hostile.port);
        options.url = own_url;
        server = open_server(&options);
        exchange = exchange_of(BODY);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
        CHECK_INT(other.connection_count, 0);
        vp_exchange_free(&exchange);
        vp_server_close(server);
        unsetenv("http_proxy");
        unsetenv("ALL_PROXY");
        hostile_stop(&hostile);
        hostile_stop(&other);
    }
}
static void test_request(void) {
    static const hostile_step kept[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_ANSWER, 0}, {HOSTILE_CHUNK, "", 0}, {HOSTILE_KEEP, NULL, 0}};
    const hostile_reply keep[] = {kept};
    hostile_server hostile;
    size_t bytes = (size_t)3 << 20;
    char url[64], want[64], *large = (char *)malloc(bytes + 1);
    check_case("the content of a request");
    hostile_start(&hostile, keep, 1);
    vp_server_options options = options_of(&hostile);
    options.api_key = "sk-0123456789";
    vp_server *server = open_server(&options);
    vp_exchange exchange = exchange_of(BODY);
    CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
    vp_exchange_free(&exchange);
    CHECK_TEXT(hostile.request_body, BODY);
    CHECK(strncmp(hostile.request, "POST /v1/chat/completions HTTP/1.1\r\n", 36) == 0);
    snprintf(want, sizeof want, "\r\nHost: 127.0.0.1:%d\r\n", hostile.port);
    CHECK(strstr(hostile.request, want) != NULL);
    CHECK(strstr(hostile.request, "\r\nAuthorization: Bearer sk-0123456789\r\n") && strstr(hostile.request, "\r\nContent-Type: application/json\r\n"));
    CHECK(strstr(hostile.request, "\r\nUser-Agent: vlmprof/" VLMPROF_VERSION "\r\n") && strstr(hostile.request, "\r\nAccept-Encoding: identity\r\n"));
    CHECK(!strstr(hostile.request, "Expect") && !strstr(hostile.request, "Transfer-Encoding"));
    check_case("a body of 3 MB does not wait for 100 Continue");
    memset(large, 'x', bytes);
    large[bytes] = 0;
    exchange = exchange_of(large);
    CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
    CHECK_INT(hostile.request_body_bytes, bytes);
    CHECK(!strstr(hostile.request, "Expect"));
    CHECK(exchange.sent_ns < exchange.headers_ns);
    vp_exchange_free(&exchange);
    vp_server_close(server);
    check_case("the paths of the other APIs, and a base URL with a path");
    options.api_key = NULL;
    snprintf(url, sizeof url, "HTTP://127.0.0.1:%d//", hostile.port);
    options.url = url;
    options.api = VP_CHAT_OLLAMA;
    server = open_server(&options);
    exchange = exchange_of(BODY);
    vp_server_ask(server, &exchange, NULL);
    vp_exchange_free(&exchange);
    vp_server_close(server);
    CHECK(strncmp(hostile.request, "POST /api/chat HTTP/1.1\r\n", 25) == 0 && !strstr(hostile.request, "Authorization"));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/some/v1/", hostile.port);
    options.url = url;
    options.api = VP_CHAT_COMPLETIONS;
    server = open_server(&options);
    snprintf(want, sizeof want, "http://127.0.0.1:%d/some", hostile.port);
    CHECK_TEXT(vp_server_url(server), want);
    CHECK(strncmp(vp_server_library(server), "libcurl/", 8) == 0);
    exchange = exchange_of(BODY);
    vp_server_ask(server, &exchange, NULL);
    vp_exchange_free(&exchange);
    vp_server_close(server);
    CHECK(strncmp(hostile.request, "POST /some/v1/chat/completions HTTP/1.1\r\n", 41) == 0);
    hostile_stop(&hostile);
    free(large);
}

/* A server that returns the key in every part of its reply. No output may contain it. */
static void test_long_words(void) {
    static const hostile_step refused[] = {SAY(HOSTILE_NO("400 No", "", "{\"error\":\"")), {HOSTILE_REPEAT, "\xc3\xa9", 2000}, SAY("\"}"), {HOSTILE_CLOSE, NULL, 0}},
        inside[] = {SAY(HOSTILE_STREAM "\r\ndata: {\"error\":\"x"), {HOSTILE_REPEAT, "\xc3\xa9", 2000}, SAY("\"}\n\n"), {HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply replies[] = {refused, inside};
    hostile_server hostile;
    check_case("a server's message is truncated between characters");
    hostile_start(&hostile, replies, 2);
    vp_server_options options = options_of(&hostile);
    vp_server *server = open_server(&options);
    for (int i = 0; i < 2; i++) {
        vp_exchange exchange = exchange_of(BODY);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_DEVICE);
        CHECK(strlen(exchange.error.text) > 300 && strlen(exchange.error.text) < 340 && !strchr(exchange.error.text, '?'));
        if (i) CHECK_INT(strlen(exchange.reply.failure), 299);
        vp_exchange_free(&exchange);
    }
    vp_server_close(server);
    hostile_stop(&hostile);
}

#define FIFTY "01234567890123456789012345678901234567890123456789"
static void test_key(void) {
    static const char key[] = "sk-very-secret-key/0123456789";
    static const hostile_step echoed[] = {SAY("HTTP/1.1 401 No\r\nContent-Type: text/plain\r\n"), {HOSTILE_ECHO, NULL, 0}, {HOSTILE_KEEP, NULL, 0}},
        cut[] = {SAY(HOSTILE_NO("401 No", "", FIFTY FIFTY FIFTY FIFTY FIFTY "01234567890123456789012345 at the cut: sk-very-secret-key/0123456789")),
            {HOSTILE_CLOSE, NULL, 0}},
        escaped[] = {SAY(HOSTILE_NO("401 No", "", "{\"error\":\"bad sk-very-secret-key\\/\\u00301234567\\u003890\"}")), {HOSTILE_CLOSE, NULL, 0}},
        inside[] = {SAY(HOSTILE_STREAM "\r\ndata: {\"model\":\"sk-very-secret-key/0123456789\",\"choices\":[{\"delta\":{\"content\":\"I am "
        "sk-very-secret-key/0123456789!\","
            "\"reasoning\":\"sk-very-secret-key/0123456789\"},\"finish_reason\":\"sk-very-secret-key/0123456789\"}],"
        "\"timings\":{\"k\":\"sk-very-secret-key/0123456789\"}}\n\n"
            "data: {\"error\":\"sk-very-secret-key/0123456789 sk-very-secret-key/0123456789\"}\n\n"), {HOSTILE_CLOSE, NULL, 0}},
        moved[] = {SAY(HOSTILE_NO("302 Away", "Location: http://sk-very-secret-key/0123456789\r\n", "")), {HOSTILE_CLOSE, NULL, 0}};
    static const hostile_step *const scripts[] = {echoed, cut, escaped, inside, moved};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        const hostile_reply replies[] = {scripts[i]};
        hostile_server hostile;
        vp_exchange exchange = exchange_of(BODY);
        vp_error error = {VP_OK, 0, "", ""};
        char all[8192], *body = NULL;
        size_t bytes = 0;
        int status = 0;
        check_case("the API key in replies: %d", (int)i);
        hostile_start(&hostile, replies, 1);
        vp_server_options options = options_of(&hostile);
        options.api_key = key;
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, &error), VP_ERR_DEVICE);
        CHECK(strstr(hostile.request, key) != NULL);
        snprintf(all, sizeof all, "%s %s %s %s %s %s %s %s %s %s", error.text, error.where, exchange.error.text, exchange.error.where,
                 exchange.reply.text ? exchange.reply.text : "", exchange.reply.reasoning ? exchange.reply.reasoning : "",
                 exchange.reply.model ? exchange.reply.model : "", exchange.reply.finish_reason ? exchange.reply.finish_reason : "",
                 exchange.reply.timings ? exchange.reply.timings : "", exchange.reply.failure ? exchange.reply.failure : "");
        CHECK(strstr(all, i == 1 ? "at the cut: " : "[key]") != NULL);
        if (!CHECK(strstr(all, "sk-v") == NULL)) printf("  %s\n", all);
        if (i == 3) CHECK_TEXT(exchange.reply.text, "I am [key]!");
        if (i == 3) CHECK_INT(exchange.reply.text_bytes, 11);
        CHECK_INT(vp_server_get(server, "/v1/models", &status, &body, &bytes, NULL), VP_OK);
        if (body) CHECK(strstr(body, key) == NULL && strlen(body) == bytes);
        free(body);
        end_of(&exchange, server, &hostile);
    }
}

/* Spells a key as a server might: each character unchanged, as an escape of JSON or of a URL, as JSON inside JSON, or followed by a newline. */
enum { SPELLINGS = 8 };
static size_t spell(const char *key, int spelling, vp_random *random, char *out) {
    char *to = out;
    for (; *key; key++) {
        const int way = spelling < SPELLINGS - 1 ? spelling : (int)(vp_random_double(random) * (SPELLINGS - 1));
        const int is_special = *key == '"' || *key == '\\' || *key == '/';
        switch (way) {
        case 1: to += sprintf(to, "\\u%04x", *key); break;
        case 2: to += sprintf(to, "\\u%04X", *key); break;
        case 3: to += sprintf(to, "%%%02X", *key); break;
        case 4: to += sprintf(to, is_special ? "\\%c" : "%c", *key); break;
        case 5: to += sprintf(to, "%c%s", *key, (const char *[]){"\n", "\r\n\t", "\\n", "?"}[key[1] % 4]); break;
        case 6: to += sprintf(to, "\\\\u%04x", *key); break;
        default: *to++ = *key;
        }
    }
    *to = 0;
    return (size_t)(to - out);
}
/* The forms in which a reader could still find a key: with escapes decoded twice, and line ends and their escapes removed. */
#define HEX "0123456789abcdefABCDEF"
static void read_through(char *text) {
    for (int pass = 0; pass < 2; pass++) {
        char *to = text;
        for (const char *at = text; *at; ) {
            unsigned value;
            if (at[0] == '\\' && at[1] == 'u' && strspn(at + 2, HEX) >= 4 && sscanf(at + 2, "%4x", &value) == 1) *to++ = (char)value, at += 6;
            else if (at[0] == '%' && strspn(at + 1, HEX) >= 2 && sscanf(at + 1, "%2x", &value) == 1) *to++ = (char)value, at += 3;
            else if (at[0] == '\\' && at[1] == 'n') at += 2;
            else if (at[0] == '\\' && at[1] && strchr("/\\\"", at[1])) *to++ = at[1], at += 2;
            else if ((unsigned char)*at > ' ' && *at != '?') *to++ = *at++;
            else at++;
        }
        *to = 0;
    }
}
static void test_scrub(void) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=~\"";
    static char text[8192], before[8192], spelled[4096];
    vp_random random;
    char key[201], first[9] = "";
    int found = 0, lost = 0, changed = 0;
    vp_server server = {.api_key = key};
    check_case("keys of 8 to 200 characters, seed 38: at every position, in every spelling, with every cut");
    vp_random_seed(&random, 38);
    for (size_t length = 8; length <= 200; length += length < 40 ? 1 : 20) {
        for (size_t i = 0; i < length; i++) key[i] = letters[(size_t)(vp_random_double(&random) * (double)(sizeof letters - 1))];
        key[length] = 0;
        memcpy(first, key, 8);
        for (int spelling = 0; spelling < SPELLINGS; spelling++) {
            const size_t bytes = spell(key, spelling, &random, spelled);
            for (size_t place = 0; place < 12; place++) {
                const size_t used = place % 4, rest = place / 4;
                for (size_t cut = rest ? bytes : 1; cut <= bytes; cut++) { /* cut only at the end of a text */
                    size_t kept = 0;
                    memset(text, '#', used);
                    memcpy(text + used, spelled, cut);
                    memset(text + used + cut, '#', rest);
                    text[used + cut + rest] = 0;
                    kept = vp_impl_server_scrub(&server, text, used + cut + rest);
                    lost += kept != strlen(text) || strspn(text, "#") < used;
                    found += cut == bytes && strstr(text, "[key]") == NULL;
                    read_through(text);
                    lost += strstr(text, first) != NULL;
                }
            }
        }
        snprintf(text, sizeof text, "{\"a\":\"%.*s\",\"b\":\"#\"}", 8, "########");
        snprintf(before, sizeof before, "%s", text);
        changed += vp_impl_server_scrub(&server, text, strlen(text)) != strlen(before) || strcmp(text, before) != 0;
    }
    CHECK_INT(found, 0);
    CHECK_INT(lost, 0);
    CHECK_INT(changed, 0);
    check_case("the first 8 characters at the end of a JSON string are masked; 7 are not, nor are 8 inside a text");
    strcpy(key, "sk-of-a-user-0815");
    strcpy(text, "{\"a\": \"sk-of-a-\", \"b\": \"sk-of-a\", \"c\": \"sk-of-a-boat\"}");
    vp_impl_server_scrub(&server, text, strlen(text));
    CHECK_TEXT(text, "{\"a\": \"[key]\", \"b\": \"sk-of-a\", \"c\": \"sk-of-a-boat\"}");
    strcpy(key, "EMPTY");
    strcpy(text, "EMPTY");
    CHECK_INT(vp_impl_server_scrub(&server, text, 5), 5);
    CHECK_TEXT(text, "EMPTY");
}
/* The ways in which keys have leaked: escaped in timings, truncated, broken off, with a line end inside. */
static void test_key_spelled(void) {
    static const char key[] = "sk-very-secret-key/0123456789";
    static const hostile_step escaped[] = {SAY(HOSTILE_STREAM "\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}],"
            "\"timings\":{\"k\":\"\\u0073k-very-secret-key\\/0123456789\"}}\n\ndata: [DONE]\n\n"), {HOSTILE_CLOSE, NULL, 0}},
        cut[] = {SAY(HOSTILE_STREAM "\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}],\"model\":\""),
            {HOSTILE_REPEAT, "x", 4070}, SAY("sk-very-secret-key/0123456789\"}\n\ndata: [DONE]\n\n"), {HOSTILE_CLOSE, NULL, 0}},
        moved[] = {SAY(HOSTILE_NO("302 Away", "Location: http://sk-very-secret-key%2f012345678/x\r\n", "")), {HOSTILE_CLOSE, NULL, 0}},
        half[] = {SAY(HOSTILE_NO("302 Away", "Location: http://sk-very-secret-key/0123456789\r\n", "")), {HOSTILE_CLOSE, NULL, 0}},
        broken[] = {SAY(HOSTILE_NO("401 No", "", "{\"error\":\"bad sk-very-sec\\nret-key/0123456789\"}")), {HOSTILE_CLOSE, NULL, 0}},
        lines[] = {SAY(HOSTILE_STREAM "\r\nevent: error\ndata: bad sk-very-sec\ndata: ret-key/0123456789\n\n"), {HOSTILE_CLOSE, NULL, 0}};
    static const hostile_step *const scripts[] = {escaped, cut, moved, half, broken, lines};
    for (int i = 0; i < COUNT(scripts); i++) {
        const hostile_reply replies[] = {scripts[i]};
        hostile_server hostile;
        vp_exchange exchange = exchange_of(BODY);
        vp_error error = {VP_OK, 0, "", ""};
        char all[8192];
        check_case("the API key in another spelling: %d", i);
        hostile_start(&hostile, replies, 1);
        vp_server_options options = options_of(&hostile);
        options.api_key = key;
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, &error), i < 2 ? VP_OK : VP_ERR_DEVICE);
        snprintf(all, sizeof all, "%s %s %s %s", error.text, exchange.reply.model ? exchange.reply.model : "",
                 exchange.reply.timings ? exchange.reply.timings : "", exchange.reply.failure ? exchange.reply.failure : "");
        if (!CHECK(strstr(all, "k-very") == NULL)) printf("  %s\n", all);
        CHECK(i == 1 || strstr(all, "[key]") != NULL);
        end_of(&exchange, server, &hostile);
    }
}

/* The connection is reset after each byte of a reply: an error each time, or the whole answer if only its end is missing. */
static void test_resets(void) {
    static const char whole[] = HOSTILE_STREAM "\r\ndata: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"\xc3\xa9\"},\"finish_reason\":\"stop\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
    int answers = 0, wrong = 0;
    check_case("a reset after each byte of an answer");
    for (int cut = 0; cut < (int)sizeof whole; cut++) {
        const hostile_step broken[] = {{HOSTILE_BYTES, whole, cut}, {HOSTILE_WAIT, NULL, 1}, {HOSTILE_RESET, NULL, 0}};
        const hostile_reply replies[] = {broken};
        hostile_server hostile;
        vp_exchange exchange = exchange_of(BODY);
        vp_error error = {VP_OK, 0, "", ""};
        hostile_start(&hostile, replies, 1);
        vp_server_options options = options_of(&hostile);
        options.max_retries = 0;
        vp_server *server = open_server(&options);
        vp_result result = vp_server_ask(server, &exchange, &error);
        answers += result == VP_OK;
        wrong += result != VP_OK && ((result != VP_ERR_DEVICE && result != VP_ERR_FORMAT) || !error.text[0] || exchange.state != VP_EXCHANGE_FAILED);
        end_of(&exchange, server, &hostile);
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(answers, 0); /* a reset does not end a body */
}

/* --------------------------------------------------------------------------------------------------------------- waiting */
static void test_timeouts(void) {
    static const hostile_step stalled[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_CHUNK, HOSTILE_DELTA("half"), 0}, {HOSTILE_WAIT, NULL, 60000}, {HOSTILE_CLOSE, NULL, 0}},
        mute[] = {{HOSTILE_WAIT, NULL, 60000}, {HOSTILE_CLOSE, NULL, 0}}, endless[] = {SAY(HOSTILE_STREAM "\r\n"), {HOSTILE_ENDLESS, ": ping\n\n", 0},
        {HOSTILE_CLOSE, NULL, 0}},
        flood[] = {SAY(HOSTILE_STREAM "\r\n"), {HOSTILE_ENDLESS, HOSTILE_DELTA("0123456789"), 0}, {HOSTILE_CLOSE, NULL, 0}},
        said[] = {SAY(HOSTILE_STREAM "\r\ndata: {\"error\":\"out of memory\"}\n\n"), {HOSTILE_WAIT, NULL, 60000}, {HOSTILE_CLOSE, NULL, 0}},
        drip[] = {SAY(HOSTILE_STREAM "\r\n" HOSTILE_DELTA("Hel")), {HOSTILE_WAIT, NULL, 400}, SAY(": ping\n"), {HOSTILE_WAIT, NULL, 400}, SAY(":\n\n"),
        {HOSTILE_WAIT, NULL, 400},
            SAY(HOSTILE_DELTA("lo") HOSTILE_END), {HOSTILE_CLOSE, NULL, 0}};
    static const struct { const char *name; const hostile_step *steps; int idle_ms, total_ms; size_t most_bytes; vp_result result; const char *error,
        *text; } cases[] = {
        {"no byte", mute, 100, 5000, 1 << 20, VP_ERR_DEVICE, "no byte arrived for 0.100 s", NULL},
        {"no further byte", stalled, 100, 5000, 1 << 20, VP_ERR_DEVICE, "no byte arrived for 0.100 s", "half"},
        {"pings without end", endless, 5000, 200, 1 << 20, VP_ERR_DEVICE, "the answer is incomplete after 0.200 s", ""},
        {"a flood", flood, 5000, 5000, 5000, VP_ERR_RANGE, "exceeds the size limit", NULL},
        {"an error, and no further byte", said, 100, 5000, 1 << 20, VP_ERR_DEVICE, "the server reports an error: out of memory", ""},
        {"pauses that are short enough", drip, 1000, 20000, 1 << 20, VP_OK, "", "Hello"}};
    for (int i = 0; i < COUNT(cases); i++) {
        const hostile_reply replies[] = {cases[i].steps};
        hostile_server hostile;
        vp_exchange exchange = exchange_of(BODY);
        check_case("waiting: %s", cases[i].name);
        hostile_start(&hostile, replies, 1);
        vp_server_options options = options_of(&hostile);
        options.idle_timeout_ms = cases[i].idle_ms;
        options.total_timeout_ms = cases[i].total_ms;
        options.most_bytes = cases[i].most_bytes;
        vp_server *server = open_server(&options);
        CHECK_INT(vp_server_ask(server, &exchange, NULL), cases[i].result);
        if (!CHECK(strstr(exchange.error.text, cases[i].error) != NULL)) printf("  %s\n", exchange.error.text);
        if (cases[i].text) CHECK_TEXT(exchange.reply.text, cases[i].text);
        CHECK_INT(exchange.attempts, 1);
        check_stamps(&exchange, cases[i].result == VP_OK);
        end_of(&exchange, server, &hostile);
    }
}
static volatile sig_atomic_t alarm_count, alarm_stops, stop_flag;
static void on_alarm(int number) {
    (void)number;
    alarm_count++;
    stop_flag = alarm_stops;
}
/* Signals arrive while a request waits, as for a program that was stopped and continues; then one that sets the flag. */
static void test_stop_flag(void) {
    static const hostile_step late[] = {{HOSTILE_WAIT, NULL, 300}, SAY(HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_ANSWER), {HOSTILE_CLOSE, NULL, 0}};
    static const hostile_step mute[] = {{HOSTILE_WAIT, NULL, 60000}, {HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply replies[] = {late, mute};
    struct itimerval soon = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    hostile_server hostile;
    vp_exchange exchange = exchange_of(BODY);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    hostile_start(&hostile, replies, 2);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    vp_server_options options = options_of(&hostile);
    options.stop = &stop_flag;
    vp_server *server = open_server(&options);
    alarm_count = alarm_stops = stop_flag = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    check_case("signals that do not set the flag do not end vp_server_ask");
    CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_OK);
    CHECK(alarm_count > 0);
    vp_exchange_free(&exchange);
    check_case("a signal that sets the flag ends it");
    alarm_stops = 1;
    exchange = exchange_of(BODY);
    CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_INTERRUPTED);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(stop_flag == 1);
    end_of(&exchange, server, &hostile);
}
static void test_signals(void) {
    static const hostile_step mute[] = {{HOSTILE_WAIT, NULL, 60000}, {HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply replies[] = {mute};
    /* repeatedly, because on a busy machine the first signal may arrive before the wait begins */
    struct itimerval soon = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    hostile_server hostile;
    vp_exchange exchange = exchange_of(BODY), *finished = &exchange;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the server's threads inherit this mask, so that this thread gets the signal */
    hostile_start(&hostile, replies, 1);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    vp_server_options options = options_of(&hostile);
    check_case("a signal ends vp_server_ask");
    vp_server *server = open_server(&options);
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK_INT(vp_server_ask(server, &exchange, NULL), VP_ERR_INTERRUPTED);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(exchange.state == VP_EXCHANGE_FAILED && exchange.result == VP_ERR_INTERRUPTED);
    vp_exchange_free(&exchange);
    check_case("a signal interrupts vp_server_step, and the wait continues");
    exchange = exchange_of(BODY);
    CHECK_INT(vp_server_start(server, &exchange, NULL), VP_OK);
    CHECK_INT(vp_server_start(server, &exchange, NULL), VP_ERR_STATE);
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_ERR_INTERRUPTED);
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(finished == NULL && exchange.state <= VP_EXCHANGE_SENT);
    finished = &exchange;
    CHECK_INT(vp_server_step(server, vp_clock_ns() + 20000000, &finished, NULL), VP_OK);
    CHECK(finished == NULL && exchange.state <= VP_EXCHANGE_SENT);
    check_case("closing a server aborts the requests in flight");
    vp_server_close(server);
    CHECK(exchange.state == VP_EXCHANGE_FAILED && exchange.result == VP_ERR_INTERRUPTED);
    vp_exchange_free(&exchange);
    hostile_stop(&hostile);
    vp_server_close(NULL);
}
static void test_schedule(void) {
    const hostile_reply replies[] = {good};
    hostile_server hostile;
    vp_exchange late = exchange_of(BODY), later = exchange_of(BODY), *finished = NULL;
    hostile_start(&hostile, replies, 1);
    vp_server_options options = options_of(&hostile);
    vp_server *server = open_server(&options);
    check_case("no requests in flight");
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_OK);
    CHECK(finished == NULL);
    int64_t now = vp_clock_ns();
    CHECK_INT(vp_server_step(server, now + 30000000, &finished, NULL), VP_OK); /* it sleeps, because a caller's loop must not spin */
    CHECK(finished == NULL && vp_clock_ns() >= now + 30000000);
    check_case("a request is sent when it is due");
    now = vp_clock_ns();
    later.scheduled_ns = now + 500000000;
    late.scheduled_ns = now + 400000000;
    CHECK_INT(vp_server_start(server, &later, NULL), VP_OK);
    CHECK_INT(vp_server_start(server, &late, NULL), VP_OK);
    CHECK_INT(vp_server_step(server, now + 30000000, &finished, NULL), VP_OK);
    CHECK(finished == NULL && vp_clock_ns() >= now + 30000000);
    int early = late.state == VP_EXCHANGE_WAITING && late.start_ns == 0 && hostile_count(&hostile, &hostile.connection_count) == 0;
    CHECK(early || vp_clock_ns() >= late.scheduled_ns); /* (this program may have been stopped for that long) */
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_OK);
    CHECK(finished == &late && late.start_ns >= late.scheduled_ns);
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_OK);
    CHECK(finished == &later && later.start_ns >= later.scheduled_ns);
    check_stamps(&late, 1);
    check_stamps(&later, 1);
    check_case("vp_server_ask keeps the results of other requests");
    vp_exchange_free(&late);
    vp_exchange_free(&later);
    late = exchange_of(BODY);
    later = exchange_of(BODY);
    later.scheduled_ns = vp_clock_ns() + 100000000;
    CHECK_INT(vp_server_start(server, &late, NULL), VP_OK);
    CHECK_INT(vp_server_ask(server, &later, NULL), VP_OK);
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_OK);
    CHECK(finished == &late && late.state == VP_EXCHANGE_DONE);
    CHECK_INT(vp_server_step(server, 0, &finished, NULL), VP_OK);
    CHECK(finished == NULL);
    vp_exchange_free(&late);
    vp_exchange_free(&later);
    vp_server_close(server);
    hostile_stop(&hostile);
}
static void test_many(void) {
    enum { MANY = 200 };
    static vp_exchange exchanges[MANY];
    static const hostile_step kept[] = {SAY(HOSTILE_CHUNKED), {HOSTILE_WAIT, NULL, 20}, {HOSTILE_CHUNK, HOSTILE_DELTA("Hel"), 0}, {HOSTILE_WAIT, NULL, 20},
        {HOSTILE_CHUNK, HOSTILE_DELTA("lo") HOSTILE_END, 0}, {HOSTILE_CHUNK, "", 0}, {HOSTILE_KEEP, NULL, 0}};
    const hostile_reply keep[] = {kept};
    hostile_server hostile;
    vp_exchange *finished;
    hostile_start(&hostile, keep, 1);
    vp_server_options options = options_of(&hostile);
    vp_server *server = open_server(&options);
    for (int turn = 0; turn < 2; turn++) {
        check_case(turn ? "200 more requests use the same connections" : "200 requests at once");
        for (int i = 0; i < MANY; i++) {
            exchanges[i] = exchange_of(BODY);
            exchanges[i].user = &exchanges[i];
            CHECK_INT(vp_server_start(server, &exchanges[i], NULL), VP_OK);
        }
        for (int done = 0; done < MANY; done++) {
            if (!CHECK(vp_server_step(server, 0, &finished, NULL) == VP_OK && finished != NULL)) break;
            CHECK(finished->state == VP_EXCHANGE_DONE && finished->user == finished && strcmp(finished->reply.text, "Hello") == 0 && finished->reply.piece_count == 2);
            CHECK_INT(finished->is_new_connection, !turn);
            check_stamps(finished, 1);
            vp_exchange_free(finished);
        }
        CHECK_INT(hostile_count(&hostile, &hostile.connection_count), MANY);
        CHECK_INT(hostile_count(&hostile, &hostile.request_count), MANY * (turn + 1));
    }
    vp_server_close(server);
    hostile_stop(&hostile);
}

/* ------------------------------------------------------------------------------------------------------- GET, options, libcurl */
static void test_get(void) {
    static const hostile_step models[] = {SAY("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"data\":[]}"), {HOSTILE_KEEP, NULL, 0}},
        nothing[] = {SAY("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), {HOSTILE_KEEP, NULL, 0}}, missing[] = {SAY("HTTP/1.1 404 "
        "No\r\nContent-Length: 2\r\n\r\nno"), {HOSTILE_KEEP, NULL, 0}},
        flood[] = {SAY("HTTP/1.1 200 OK\r\n\r\n"), {HOSTILE_ENDLESS, "0123456789", 0}, {HOSTILE_CLOSE, NULL, 0}}, gone[] = {{HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply replies[] = {models, nothing, missing, flood, gone, models, models};
    hostile_server hostile;
    vp_error error = {VP_OK, 0, "", ""};
    char *text = NULL;
    size_t bytes = 9;
    int status = 9;
    hostile_start(&hostile, replies, COUNT(replies));
    vp_server_options options = options_of(&hostile);
    options.most_bytes = 1000;
    options.max_retries = 0;
    options.api_key = "sk-0123456789";
    vp_server *server = open_server(&options);
    check_case("GET");
    CHECK_INT(vp_server_get(server, "/v1/models", &status, &text, &bytes, NULL), VP_OK);
    CHECK_INT(status, 200);
    CHECK_TEXT(text, "{\"data\":[]}");
    CHECK_INT(bytes, 11);
    CHECK(strncmp(hostile.request, "GET /v1/models HTTP/1.1\r\n", 25) == 0 && strstr(hostile.request, "Bearer sk-0123456789\r\n") && !strstr(hostile.request,
        "Content-"));
    free(text);
    check_case("GET of an empty page");
    text = NULL;
    CHECK_INT(vp_server_get(server, "/props", &status, &text, &bytes, NULL), VP_OK);
    CHECK_TEXT(text, "");
    CHECK_INT(bytes, 0);
    free(text);
    check_case("GET of a missing page");
    text = NULL;
    CHECK_INT(vp_server_get(server, "/props", &status, &text, &bytes, NULL), VP_OK);
    CHECK(status == 404 && text == NULL);
    check_case("GET of a page that is too large");
    CHECK_INT(vp_server_get(server, "/props", &status, &text, &bytes, &error), VP_ERR_RANGE);
    CHECK(text == NULL && strstr(error.where, "/props"));
    check_case("GET from a server that closes");
    CHECK_INT(vp_server_get(server, "/props", &status, &text, &bytes, &error), VP_ERR_DEVICE);
    CHECK(text == NULL && status == 404);
    check_case("GET carries the key");
    CHECK_INT(vp_server_get(server, "/metrics", &status, &text, &bytes, NULL), VP_OK);
    CHECK_TEXT(text, "{\"data\":[]}");
    CHECK(!strncmp(hostile.request, "GET /metrics HTTP/1.1\r\n", 23) && strstr(hostile.request, "sk-0123456789"));
    free(text);
    check_case("GET of an invalid path");
    CHECK_INT(vp_server_get(server, "props", &status, &text, &bytes, &error), VP_ERR_RANGE);
    CHECK_INT(vp_server_get(server, "/a b", &status, &text, &bytes, &error), VP_ERR_RANGE);
    CHECK_INT(vp_server_get(server, "/a\r\nX: y", &status, &text, &bytes, &error), VP_ERR_RANGE);
    vp_server_close(server);
    hostile_stop(&hostile);
}
static void test_urls(void) {
    static const struct { const char *url, *base, *error; } cases[] = {
        {"http://a", "http://a", NULL}, {"http://a/", "http://a", NULL}, {"http://a/v1", "http://a", NULL}, {"https://a:8000/v1///", "https://a:8000", NULL},
        {"http://a/x/v1/", "http://a/x", NULL}, {"http://a/v1/chat/completions", "http://a", NULL},
        {"http://a/x/v1/chat/completions/", "http://a/x", NULL}, {"http://a/api/chat", "http://a", NULL}, {"http://a/v1x", "http://a/v1x", NULL},
        {"http://v1", "http://v1", NULL}, {"http://[::1]:8000/v1",
        "http://[::1]:8000", NULL},
        {"http://[fe80::1]", "http://[fe80::1]", NULL}, {"http://a:65535", "http://a:65535", NULL}, {"Https://A/v1", "Https://A", NULL}, {NULL, NULL, "http://"},
        {"", NULL, "http://"}, {"a", NULL, "http://"}, {"ftp://a", NULL, "http://"}, {"file:///etc/passwd", NULL, "http://"}, {"http:/a", NULL, "http://"},
        {"http://", NULL, "no host"}, {"http:///v1", NULL, "no host"}, {"http://:80", NULL, "no host"}, {"http://[]", NULL, "no host"}, {"http://[::1", NULL, "]"},
        {"http://[::1]x", NULL, "malformed"}, {"http://a:", NULL, "port"}, {"http://a:0", NULL, "port"}, {"http://a:65536", NULL, "port"},
        {"http://a:99999999999", NULL, "port"},
        {"http://a:8x", NULL, "port"}, {"http://user:secret@a", NULL, "password"}, {"http://secret@a/v1", NULL, "password"}, {"http://a?key=secret", NULL,
        "?"}, {"http://a#b", NULL, "#"},
        {"http://a b", NULL, "character"}, {"http://a\r\nHost: b", NULL, "character"}, {"http://\xc3\xa9", NULL, "character"}, {"http://a\\b", NULL, "character"}};
    vp_server_options options = vp_server_options_default();
    for (int i = 0; i < COUNT(cases); i++) {
        vp_server *server = NULL;
        vp_error error = {VP_OK, 0, "", ""};
        check_case("URL %s", cases[i].url ? cases[i].url : "NULL");
        options.url = cases[i].url;
        CHECK_INT(vp_server_open(&options, &server, &error), cases[i].base ? VP_OK : VP_ERR_FORMAT);
        CHECK((server != NULL) == (cases[i].base != NULL));
        if (server) CHECK_TEXT(vp_server_url(server), cases[i].base);
        else CHECK(strstr(error.text, cases[i].error) != NULL && !strstr(error.text, "secret") && !strstr(error.where, "secret"));
        vp_server_close(server);
    }
    check_case("loopback addresses");
    CHECK(vp_impl_server_is_loopback("http://127.0.0.1:80/x") && vp_impl_server_is_loopback("https://127.255.3.4") && vp_impl_server_is_loopback("http://localhost")
          && vp_impl_server_is_loopback("http://localhost:8000/x") && vp_impl_server_is_loopback("http://[::1]:8000"));
    CHECK(!vp_impl_server_is_loopback("http://127.evil.example") && !vp_impl_server_is_loopback("http://localhost.example") &&
        !vp_impl_server_is_loopback("http://10.0.0.1")
          && !vp_impl_server_is_loopback("http://[::2]") && !vp_impl_server_is_loopback("http://1127.0.0.1"));
}
static void test_options(void) {
    static const char *const names[] = {"api", "connect_timeout_ms", "idle_timeout_ms", "total_timeout_ms", "max_retries", "max_retries", "most_bytes",
        "api_key", "api_key", "api_key"};
    char long_key[3000];
    memset(long_key, 'k', sizeof long_key - 1);
    long_key[sizeof long_key - 1] = 0;
    for (int i = 0; i < COUNT(names); i++) {
        vp_server_options options = vp_server_options_default();
        vp_server *server = NULL;
        vp_error error = {VP_OK, 0, "", ""};
        check_case("an option outside its range: %s (%d)", names[i], i);
        options.url = "http://127.0.0.1";
        if (i == 0) options.api = VP_CHAT_API_LAST_;
        if (i == 1) options.connect_timeout_ms = 0;
        if (i == 2) options.idle_timeout_ms = -1;
        if (i == 3) options.total_timeout_ms = 0;
        if (i == 4) options.max_retries = -1;
        if (i == 5) options.max_retries = 101;
        if (i == 6) options.most_bytes = 0;
        if (i == 7) options.api_key = "";
        if (i == 8) options.api_key = "a\r\nX: y";
        if (i == 9) options.api_key = long_key;
        CHECK_INT(vp_server_open(&options, &server, &error), VP_ERR_RANGE);
        CHECK_TEXT(error.where, names[i]);
        CHECK(server == NULL && !strstr(error.text, "X: y") && !strstr(error.text, "kkk"));
    }
}
static void test_library(void) {
    vp_server_options options = vp_server_options_default();
    vp_server *server = NULL;
    vp_error error = {VP_OK, 0, "", ""};
    options.url = "http://127.0.0.1";
    check_case("without libcurl, the error names the package to install");
    hidden_library = "";
    CHECK_INT(vp_server_open(&options, &server, &error), VP_ERR_UNSUPPORTED);
    CHECK(server == NULL && strstr(error.text, "libcurl4") && strstr(error.text, "dnf install libcurl"));
    CHECK_TEXT(error.where, "libcurl.so.4");
    hidden_library = NULL;
    check_case("a libcurl that lacks a function");
    hidden_function = "curl_multi_socket_action";
    CHECK_INT(vp_server_open(&options, &server, &error), VP_ERR_UNSUPPORTED);
    CHECK(server == NULL && strcmp(error.where, hidden_function) == 0);
    hidden_function = NULL;
}

/* A server with a self-signed certificate for "localhost", made by the openssl program. */
static void test_tls(void) {
    static const struct { const char *name, *host; int is_trusted; vp_result result; } cases[] = {{"a certificate that is trusted", "localhost", 1, VP_OK},
        {"a certificate that is not", "localhost", 0, VP_ERR_DEVICE}, {"another host's certificate", "127.0.0.1", 1, VP_ERR_DEVICE}};
    char port[40], url[64];
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), i, wait;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!folder_make("tls") || bind(listening, (struct sockaddr *)&address, sizeof address) || getsockname(listening, (struct sockaddr *)&address, &bytes)) exit(1);
    close(listening); /* that port is free now */
    snprintf(port, sizeof port, "127.0.0.1:%d", ntohs(address.sin_port));
    if (system("cd \"$TEST_FOLDER\" && openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost "
               "-addext subjectAltName=DNS:localhost >log 2>&1") != 0) {
        check_skip("certificates", "no openssl command that makes one");
        remove_folder(folder);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) == 0 && freopen("log", "w", stdout) && freopen("log", "w", stderr))
            execlp("openssl", "openssl", "s_server", "-accept", port, "-cert", "cert", "-key", "key", "-www", "-naccept", "20", (char *)NULL);
        _exit(1);
    }
    for (i = 0; i < COUNT(cases); i++) {
        vp_server_options options = vp_server_options_default();
        vp_error error = {VP_OK, 0, "", ""};
        vp_result result = VP_ERR_DEVICE;
        char *text = NULL;
        size_t text_bytes;
        int status;
        check_case("TLS: %s", cases[i].name);
        snprintf(url, sizeof url, "https://%s:%d", cases[i].host, ntohs(address.sin_port));
        options.url = url;
        options.ca_file = cases[i].is_trusted ? in_folder("cert") : NULL;
        options.max_retries = 0;
        vp_server *server = open_server(&options);
        for (wait = 0; wait < 100; wait++) { /* until it listens */
            result = vp_server_get(server, "/", &status, &text, &text_bytes, &error);
            if (result == VP_OK || !strstr(error.text, "onnect to")) break;
            usleep(50000);
        }
        if (!CHECK_INT(result, cases[i].result)) printf("  %s\n", error.text);
        if (result != VP_OK) CHECK(strstr(error.text, "certificate") != NULL);
        free(text);
        vp_server_close(server);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    remove_folder(folder);
}
/* The n-th allocation of the section fails: VP_ERR_MEMORY, without a leak (checked by the sanitizer). */
static void test_memory(void) {
    static const hostile_step refused[] = {SAY(HOSTILE_NO("400 No", "", "{}")), {HOSTILE_CLOSE, NULL, 0}};
    const hostile_reply replies[] = {good, refused};
    hostile_server hostile;
    long failing;
    int turn, whole = 0;
    for (turn = 0; turn < 3; turn++) {
        vp_result result = VP_ERR_MEMORY;
        check_case("no memory: %s", turn == 0 ? "an answer" : turn == 1 ? "a refusal" : "GET");
        hostile_start(&hostile, turn ? replies + 1 : replies, 1);
        for (failing = 0; result == VP_ERR_MEMORY && failing < 100; failing++) {
            vp_exchange exchange = exchange_of(BODY);
            vp_server *server = NULL;
            char *text = NULL;
            size_t bytes = 0;
            int status = 0;
            vp_server_options options = options_of(&hostile);
            options.api_key = "sk-0123456789";
            allocations_left = failing;
            result = vp_server_open(&options, &server, NULL);
            CHECK((server != NULL) == (result == VP_OK));
            if (result == VP_OK) result = turn < 2 ? vp_server_ask(server, &exchange, NULL) : vp_server_get(server, "/x", &status, &text, &bytes, NULL);
            allocations_left = -1;
            free(text);
            vp_exchange_free(&exchange);
            vp_server_close(server);
        }
        CHECK_INT(result, turn == 1 ? VP_ERR_DEVICE : VP_OK);
        CHECK(failing > 5 && failing < 100);
        whole += (int)failing;
        hostile_stop(&hostile);
    }
    CHECK(whole > 20);
}

int main(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    test_library();
    if (!library) {
        check_skip("requests to a server", "libcurl.so.4 is not installed (Debian: libcurl4)");
        return check_done("test_server");
    }
    RUN_TESTS(test_options, test_urls, test_singles, test_retries, test_connections, test_dead_connections,
              test_request, test_key, test_key_spelled, test_scrub, test_resets, test_long_words, test_timeouts,
              test_signals, test_stop_flag, test_schedule, test_many, test_get, test_tls, test_memory);
    return check_done("test_server");
}
