/* test_run_endpoint.c: `run --endpoint` as a user runs it, against a server of this test: what the model's name asks for, that it answers. Exit
 * codes, both outputs, what was sent, what each failure says, Ctrl-C, and that the API key stands nowhere. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/program.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#define KEY "sekret-4711-key"

/* ---- the server: a process for each connection */
static struct { int asked; } *shared; /* of all processes: requests of the model "retry" */
static int server_port;
static pid_t server_pid;

static void say(int peer, const char *format, ...) {
    char text[8192];
    va_list list;
    va_start(list, format);
    const int bytes = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (write(peer, text, (size_t)bytes) != bytes) _exit(0);
}
static void nap(int ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}
static void whole(int peer, int status, const char *type, const char *text) {
    say(peer, "HTTP/1.1 %d Status\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", status, type, strlen(text), text);
}
static void stream_begin(int peer) { say(peer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); }
/* an event as a chunk of its own */
static void event(int peer, const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    say(peer, "%zx\r\ndata: %s\n\n\r\n", strlen(text) + 8, text);
}
static void piece(int peer, const char *text) { event(peer, "{\"model\":\"served\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"}}]}", text); }
/* the end of a stream; usage and timings: members of the last object, "" for none */
static void stream_end(int peer, const char *usage) {
    event(peer, "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}");
    if (usage[0]) event(peer, "{\"choices\":[],%s}", usage);
    event(peer, "[DONE]");
    say(peer, "0\r\n\r\n");
}
static int asks_for(const char *request, const char *model) {
    char member[80];
    snprintf(member, sizeof member, "\"model\": \"%s\"", model);
    return strstr(request, member) != NULL;
}
#define USAGE(cached) "\"usage\":{\"prompt_tokens\":289,\"completion_tokens\":4,\"prompt_tokens_details\":{\"image_tokens\":256,\"cached_tokens\":" cached "}}"
static void answer_post(int peer, const char *request) {
    const char *authorization = strstr(request, "Authorization: ");
    if (asks_for(request, "refuses")) whole(peer, 400, "application/json", "{\"error\":{\"message\":\"image too wide\",\"code\":400}}");
    else if (asks_for(request, "none")) whole(peer, 404, "application/json", "{\"error\":{\"message\":\"no such model\"}}");
    else if (asks_for(request, "locked") && (!authorization || strncmp(authorization + 15, "Bearer " KEY "\r\n", strlen(KEY) + 9))) {
        char words[400];
        snprintf(words, sizeof words, "{\"error\":{\"message\":\"wrong key: %.60s\"}}", authorization ? strtok(strdup(authorization + 15), "\r\n") : "none");
        whole(peer, 401, "application/json", words);
    } else if (asks_for(request, "retry") && !shared->asked++)
        say(peer, "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy");
    else if (asks_for(request, "whole"))
        whole(peer, 200, "application/json",
              "{\"model\":\"served\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]," USAGE("0") "}");
    else if (asks_for(request, "nonsense")) whole(peer, 200, "text/html", "<html>a web site</html>");
    else {
        stream_begin(peer);
        event(peer, "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}");
        if (asks_for(request, "silent")) { stream_end(peer, USAGE("0")); return; }
        piece(peer, "Hel\\u001b[31m");
        if (asks_for(request, "breaks")) _exit(0);
        if (asks_for(request, "slow")) nap(20000);
        if (asks_for(request, "locked") && authorization) piece(peer, " open");
        if (asks_for(request, "lump")) {
            stream_end(peer, "\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":8}");
            return;
        }
        nap(20);
        piece(peer, "lo");
        nap(20);
        piece(peer, "!");
        if (asks_for(request, "other")) piece(peer, shared->asked++ % 2 ? "a" : "b");
        stream_end(peer, asks_for(request, "cached")    ? USAGE("288") ",\"timings\":{\"prompt_ms\":12.5,\"cache_n\":288}"
                         : asks_for(request, "nousage") ? ""
                                                        : USAGE("5"));
    }
}
static void answer(int peer, const char *request) {
    if (!strncmp(request, "POST /v1/chat/completions ", 26)) answer_post(peer, request);
    else if (!strncmp(request, "GET /v1/models ", 15)) whole(peer, 200, "application/json", "{\"object\":\"list\",\"data\":[{\"id\":\"good\"},{\"id\":\"cached\"}]}");
    else if (!strncmp(request, "GET /version ", 13)) whole(peer, 200, "application/json", "{\"version\":\"0.99\"}");
    else whole(peer, 404, "text/plain", "not here");
}
/* Answers the requests of one connection; the latest body stays in the folder. */
static void serve(int peer) {
    enum { MOST = 1 << 24 };
    char *request = calloc(1, MOST);
    size_t bytes = 0;
    for (;;) {
        char *head_end = strstr(request, "\r\n\r\n"), *length = strstr(request, "Content-Length: ");
        size_t wanted = head_end ? (size_t)(head_end + 4 - request) + (length && length < head_end ? strtoul(length + 16, NULL, 10) : 0) : MOST;
        if (bytes < wanted) {
            const ssize_t more = bytes + 65536 < MOST ? read(peer, request + bytes, 65536) : 0;
            if (more <= 0) _exit(0);
            bytes += (size_t)more;
            continue;
        }
        if (!strncmp(request, "POST", 4)) write_file(in_folder("request"), request, wanted);
        answer(peer, request);
        bytes -= wanted;
        memmove(request, request + wanted, bytes);
        memset(request + bytes, 0, wanted);
    }
}
static int server_begin(void) {
    struct sockaddr_in place;
    socklen_t bytes = sizeof place;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(&place, 0, sizeof place);
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 16)
        || getsockname(listener, (struct sockaddr *)&place, &bytes) || shared == MAP_FAILED)
        return 0;
    server_port = ntohs(place.sin_port);
    if ((server_pid = fork()) == 0) {
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
            const int peer = accept(listener, NULL, NULL), on = 1;
            setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            if (fork() == 0) {
                close(listener);
                serve(peer);
            }
            close(peer);
        }
    }
    close(listener);
    return server_pid > 0;
}

/* ---- the program */
/* Asks the model of this name; more: options, or NULL. */
static int ask(const char *model, const char *more) {
    shared->asked = 0;
    run("run samples/cat.jpg -p Hi --endpoint http://127.0.0.1:%d --endpoint_model %s --max_new_tokens 8 %s", server_port, model, more ? more : "");
    CHECK(!strstr(last.out, KEY) && !strstr(last.err, KEY));
    return last.code;
}
static int said(const char *words) {
    const int found = strstr(last.err, words) != NULL;
    check_note(found, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, last.err);
    return found;
}
static int shows(const char *words) {
    const int found = strstr(last.out, words) != NULL;
    check_note(found, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, last.out);
    return found;
}
static vp_json json;
static vp_json_node nodes[8192];
static void parse(void) {
    size_t needed;
    CHECK_INT(vp_json_parse(last.out, strlen(last.out), nodes, 8192, &json, &needed, NULL), VP_OK);
}
/* a member by its path, keys between dots; NaN when it is no number */
static double value(const char *path) {
    char keys[200], *key, *rest = keys;
    uint32_t node = 0;
    double number = (double)NAN;
    snprintf(keys, sizeof keys, "%s", path);
    while (node != VP_JSON_NONE && (key = strtok_r(rest, ".", &rest)) != NULL)
        node = json.nodes[node].type == VP_JSON_ARRAY ? vp_json_at(&json, node, (uint32_t)atoi(key)) : vp_json_get(&json, node, key);
    if (node != VP_JSON_NONE && json.nodes[node].type == VP_JSON_NUMBER) vp_json_to_double(&json, node, &number);
    return number;
}
static void test_text(void) {
    check_case("the answer and its numbers as text");
    CHECK_INT(ask("good", "--num_runs 3"), 0);
    shows("answer   Hel\\x1b[31mlo!\n"); /* what would steer a terminal is shown as bytes */
    shows("model    good (the server says served)\n");
    shows(", vLLM 0.99, /v1/chat/completions\n");
    shows("image    451x300; sent as image/jpeg, 37853 bytes\n");
    shows("prompt   289 tokens = 256 image + 33 text\n");
    shows("cache    5 of the prompt's tokens came from the server's cache\n");
    shows("output   4 tokens in 3 pieces; finish_reason stop\n");
    shows("3 runs after a warm-up; medians");
    shows("TTFT ");
    shows("median..longest");
    CHECK_TEXT(last.err, "");
    CHECK_INT(ask("other", "--num_runs 2"), 0);
    shows("run 1; other runs gave other answers");
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:%d/v1/ --endpoint_model good", server_port), 0);
    CHECK(!strstr(last.out, "image    "));
    check_case("what a server does not say is named");
    CHECK_INT(ask("nousage", NULL), 0);
    shows("prompt   ? tokens, text and image");
    shows("output   ? tokens in 3 pieces");
    shows("the server does not say how many tokens it made");
    shows("cache    the server does not say");
    CHECK_INT(ask("whole", NULL), 0);
    shows("answer   Hello\n");
    shows("in one body");
    shows("its first token cannot be seen");
    CHECK_INT(ask("silent", NULL), 0);
    shows("the answer is empty");
    CHECK_INT(ask("lump", NULL), 0);
    shows("the answer came in one piece");
    said("8 tokens came in 1 piece");
    check_case("a cached prompt, retries and new connections are warned about");
    CHECK_INT(ask("cached", "--num_runs 2"), 0);
    said("2 of 2 runs read the prompt from the server's cache (run 1: 288 of 289 tokens)");
    said("--unique_image avoids that");
    shows("  prompt_ms                12.5\n");
    CHECK_INT(ask("cached", "--no_cache"), 0);
    said("--no_cache has no effect");
    CHECK_INT(ask("retry", "--cold"), 0);
    said("run 1 took 2 attempts");
    CHECK_INT(ask("good", "--cold"), 0);
    said("1 of 1 runs opened a new connection: connecting");
    shows("1 run without a warm-up (--cold)");
    CHECK_INT(ask("good", "--ignore_eos"), 0);
    said("--ignore_eos had no effect: 4 tokens of 8");
}
static void test_json(void) {
    check_case("the same as JSON");
    CHECK_INT(ask("good", "--num_runs 2 --json --family llava-1.5 --resize 100x50"), 0);
    parse();
    CHECK(strstr(last.out, "\"schema\": \"vlmprof-served-run-1\""));
    CHECK_NEAR(value("usage.prompt_tokens"), 289, 0);
    CHECK_NEAR(value("usage.completion_tokens"), 4, 0);
    CHECK_NEAR(value("usage.image_tokens"), 256, 0);
    CHECK_NEAR(value("usage.cached_tokens"), 5, 0);
    CHECK_NEAR(value("image_tokens_by_rule"), 576, 0);
    CHECK_NEAR(value("sent_size.0"), 50, 0);
    CHECK_NEAR(value("image_size.1"), 451, 0);
    CHECK_NEAR(value("num_runs"), 2, 0);
    CHECK_NEAR(value("pieces"), 3, 0);
    CHECK_NEAR(value("TTFT"), (value("runs.0.TTFT") + value("runs.1.TTFT")) / 2, 1e-6);
    CHECK_NEAR(value("runs.0.T_decode_per_token"), (value("runs.0.T_total") - value("runs.0.TTFT")) / 3, 1e-6);
    CHECK_NEAR(value("itl.1"), value("runs.0.at_ms.pieces.2") - value("runs.0.at_ms.pieces.1"), 1e-6);
    CHECK(value("itl.0") >= 19 && value("itl.3") >= 19 && isnan(value("itl.4"))); /* the server's naps; 2 gaps of 2 runs */
    CHECK(value("runs.0.at_ms.sent") <= value("runs.0.at_ms.headers") && value("runs.0.at_ms.headers") <= value("runs.0.TTFT"));
    CHECK(value("runs.0.T_total") <= value("runs.0.at_ms.end"));
    CHECK_NEAR(value("medians.TTFT.median"), value("TTFT"), 1e-6);
    CHECK(isnan(value("T_vision_total")) && isnan(value("server_timings.prompt_ms")));
    CHECK(strstr(last.out, "\"T_vision_total\": \"only the device"));
    CHECK(strstr(last.out, "\"client\": \"libcurl/"));
    said("the server counts 256 image tokens, the rule of");
    CHECK_INT(ask("cached", "--json"), 0);
    parse();
    CHECK_NEAR(value("server_timings.prompt_ms"), 12.5, 0);
    CHECK_INT(ask("nousage", "--json"), 0);
    parse();
    CHECK(isnan(value("usage.prompt_tokens")) && isnan(value("T_decode_per_token")) && isnan(value("output_tokens_per_s")));
    CHECK(strstr(last.out, "\"T_decode_per_token\": \"the server does not say"));
    CHECK(isfinite(value("TTFT")));
}
static char *sent(void) { return text_of_file(in_folder("request")); }
static void test_sent(void) {
    char *one, *other;
    check_case("what is sent: knobs, length, cache switches, the picture");
    CHECK_INT(ask("good", "--request_knob mm_processor_kwargs.max_pixels=50176 image_url.detail=low --no_cache --ignore_eos"), 0);
    one = sent();
    CHECK(strstr(one, "\"max_pixels\": 50176") && strstr(one, "\"detail\": \"low\"") && strstr(one, "data:image/jpeg;base64,"));
    CHECK(strstr(one, "\"cache_prompt\": false") && strstr(one, "\"cache_salt\": \"vlmprof-"));
    CHECK(strstr(one, "\"ignore_eos\": true") && strstr(one, "8"));
    free(one);
    CHECK_INT(ask("good", "--unique_image --cold"), 0);
    one = sent();
    CHECK(strstr(one, "data:image/png;base64,") && !strstr(one, "cache_salt"));
    CHECK_INT(ask("good", "--unique_image --cold"), 0);
    other = sent();
    CHECK(one && other && strcmp(one, other) != 0);
    free(one);
    free(other);
    CHECK_INT(ask("good", "--cold"), 0);
    one = sent();
    CHECK_INT(ask("good", "--cold"), 0);
    other = sent();
    CHECK_TEXT(one, other); /* without it the same bytes each time */
    free(one);
    free(other);
}
static void test_key(void) {
    check_case("the key: from the environment or a file, and in no output");
    CHECK_INT(ask("locked", NULL), 4);
    said("no API key was sent: set OPENAI_API_KEY");
    setenv("OPENAI_API_KEY", KEY, 1);
    CHECK_INT(ask("locked", "--json"), 0);
    CHECK_INT(ask("refuses", "--json"), 4);
    unsetenv("OPENAI_API_KEY");
    setenv("OTHER_KEY", KEY, 1);
    CHECK_INT(ask("locked", "--api_key_env OTHER_KEY --json"), 0);
    setenv("OTHER_KEY", "x" KEY, 1);
    CHECK_INT(ask("locked", "--api_key_env OTHER_KEY"), 4);
    said("wrong key: Bearer [key];");
    said("the API key was read from OTHER_KEY");
    setenv("OTHER_KEY", "two\nlines", 1);
    CHECK_INT(ask("locked", "--api_key_env OTHER_KEY"), 3);
    said("OTHER_KEY: an API key has no blanks");
    unsetenv("OTHER_KEY");
    CHECK_INT(ask("locked", "--api_key_env " KEY), 2); /* the key by mistake: not repeated */
    said("never the key");
    write_file(in_folder("key"), KEY "\nmore\n", strlen(KEY) + 6);
    chmod(in_folder("key"), 0600);
    CHECK_INT(ask("locked", "--api_key_file %F/key"), 0);
    CHECK_TEXT(last.err, "");
    chmod(in_folder("key"), 0644);
    CHECK_INT(ask("locked", "--api_key_file %F/key --json"), 0);
    said("others can read this API key: chmod 600");
    CHECK_INT(ask("locked", "--api_key_file %F/key --api_key_env HOME"), 2);
    CHECK_INT(ask("locked", "--api_key_file %F/no-such-key"), 3);
    write_file(in_folder("key"), "\n", 1);
    CHECK_INT(ask("locked", "--api_key_file %F/key"), 3);
    said("the first line is empty");
}
static void test_failures(void) {
    check_case("a server that is away, refuses, breaks off or answers nonsense");
    CHECK_INT(ask("refuses", NULL), 4);
    said("image too wide");
    CHECK_TEXT(last.out, "");
    CHECK_INT(ask("none", NULL), 4);
    said("; its models: good, cached");
    CHECK_INT(ask("none", "--endpoint_api ollama"), 4);
    said("does it speak ollama?");
    CHECK_INT(ask("breaks", NULL), 4);
    CHECK_TEXT(last.out, "");
    CHECK_INT(ask("nonsense", NULL), 3);
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:1 --endpoint_model good --timeout_s 5"), 4);
    said("is the server up");
    CHECK_INT(ask("slow", "--timeout_s 1 --cold"), 4);
    check_case("usage");
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:%d", server_port), 2);
    said("needs --endpoint_model NAME; http://127.0.0.1:");
    said("has: good, cached");
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:1"), 2);
    said("the server does not list its models");
    CHECK_INT(run("run --endpoint http://127.0.0.1:%d --endpoint_model good", server_port), 2);
    said("-p TEXT");
    CHECK_INT(ask("good", "--model x"), 2);
    said("--model and --endpoint exclude each other");
    CHECK_INT(ask("good", "--synthetic tiny"), 2);
    CHECK_INT(ask("good", "--top_k 1"), 2);
    said("--top_k is for vlmprof's own engine");
    CHECK_INT(ask("good", "--profile"), 2);
    CHECK_INT(ask("good", "--dump x"), 2);
    CHECK_INT(ask("good", "--max_crops 4"), 2);
    CHECK_INT(ask("good", "--max_crops 4 --family molmo"), 0);
    CHECK_INT(ask("good", "--family no-such"), 2);
    CHECK_INT(ask("good", "--family qwen2-vl --max_tiles 4"), 2);
    said("unknown option --max_tiles");
    CHECK_INT(ask("good", "--resize 0x5"), 2);
    CHECK_INT(ask("good", "--resize big"), 2);
    said("WIDTHxHEIGHT");
    CHECK_INT(ask("good", "--request_knob a=1,2"), 2);
    said("one value of each");
    CHECK_INT(ask("good", "--request_knob messages[9].content=1"), 2);
    said("messages[9]");
    CHECK_INT(ask("good", "--request_knob nothing"), 2);
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good --request_knob image_url.detail=low", server_port), 2);
    said("there is no image");
    CHECK_INT(run("run -p Hi --synthetic tiny --no_cache"), 2);
    said("--no_cache is for a server: it needs --endpoint URL");
    CHECK_INT(run("run -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good --resize 5x5", server_port), 2);
    said("need an image");
    CHECK_INT(run("run -p Hi --endpoint ftp://127.0.0.1 --endpoint_model good"), 2);
    CHECK_INT(run("run %%F/none.jpg -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good", server_port), 3);
    said("none.jpg");
    CHECK_INT(run("run README.md -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good", server_port), 3);
    said("no PNG, JPEG, WebP or GIF");
}
/* Ctrl-C while a run waits for the server: the runs that are whole are printed. */
static void test_interrupt(void) {
    char url[80];
    int status = 0;
    pid_t child;
    check_case("Ctrl-C ends a wait");
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server_port);
    if ((child = fork()) == 0) {
        if (!freopen(in_folder("out"), "w", stdout) || !freopen(in_folder("err"), "w", stderr)) _exit(99);
        execl(program, program, "run", "-p", "Hi", "--endpoint", url, "--endpoint_model", "slow", "--cold", (char *)NULL);
        _exit(99);
    }
    nap(700);
    kill(child, SIGINT);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 130);
}

int main(void) {
    unsetenv("OPENAI_API_KEY");
    if (!program_begin("run-endpoint")) return 1;
    if (!server_begin()) { perror("server"); return 1; }
    test_text();
    test_json();
    test_sent();
    test_key();
    test_failures();
    test_interrupt();
    kill(server_pid, SIGTERM);
    waitpid(server_pid, NULL, 0);
    program_end();
    return check_done("test_run_endpoint");
}
