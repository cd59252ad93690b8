/* test_ask.c: `ask` against a server that answers as the model's name requests. Exit codes, both outputs, the requests sent, the
 * message of each failure, Ctrl-C, and that the API key never appears. */
#define _XOPEN_SOURCE 700
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/hostile_server.h"
#include <signal.h>

#define KEY "sekret-4711-key"
#define WRONG "wrong-" KEY

/* ---- the server's answers, selected by the path, then by the model's name */
static hostile_server server;
static int asked_before;   /* POST requests before the current command */
static char latest[8192];  /* the start of the last POST request's body */
#define SAY(text) {HOSTILE_SEND, text, 0}
#define PART(text) {HOSTILE_CHUNK, text, 0}
#define WAIT(ms) {HOSTILE_WAIT, NULL, ms}
#define JSON(status, text) {SAY(HOSTILE_NO(status, "", text)), {HOSTILE_CLOSE, NULL, 0}}
#define BEGIN SAY(HOSTILE_CHUNKED), PART("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")
#define STOP PART("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
#define DONE PART("data: [DONE]\n\n"), PART(""), {HOSTILE_KEEP, NULL, 0}
#define USAGE(cached) "\"usage\":{\"prompt_tokens\":289,\"completion_tokens\":4,\"prompt_tokens_details\":{\"image_tokens\":256,\"cached_tokens\":" cached "}}"
#define COUNTS(members) PART("data: {\"choices\":[]," members "}\n\n")
#define HELLO PART(HOSTILE_DELTA("Hel\\u001b[31m")), WAIT(20), PART(HOSTILE_DELTA("lo")), WAIT(20), PART(HOSTILE_DELTA("!"))
static const hostile_step good[] = {BEGIN, HELLO, STOP, COUNTS(USAGE("5")), DONE};
static const hostile_step other[] = {BEGIN, HELLO, PART(HOSTILE_DELTA("?")), STOP, COUNTS(USAGE("5")), DONE};
static const hostile_step burst[] = {BEGIN, PART(HOSTILE_DELTA("Hel")), WAIT(5), PART(HOSTILE_DELTA("lo")), STOP,
    COUNTS("\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":900000000}"), DONE};
static const hostile_step cached[] = {BEGIN, HELLO, STOP, COUNTS(USAGE("288") ",\"timings\":{\"prompt_ms\":12.5,\"cache_n\":288}"), DONE};
static const hostile_step nousage[] = {BEGIN, HELLO, STOP, DONE};
static const hostile_step early[] = {BEGIN, PART(HOSTILE_DELTA(" ")), WAIT(300), PART(HOSTILE_DELTA("Hel")), WAIT(5), PART(HOSTILE_DELTA("lo")), WAIT(5),
    PART(HOSTILE_DELTA("!")), STOP, COUNTS("\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}"), DONE};
static const hostile_step silent[] = {BEGIN, STOP, COUNTS(USAGE("0")), DONE};
static const hostile_step aborted[] = {BEGIN, HELLO, PART("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n"), DONE};
static const hostile_step bare[] = {SAY(HOSTILE_CHUNKED), PART("data: {\"object\":\"error\",\"message\":\"image too large\",\"code\":400}\n\n"), DONE};
#define WORDS HOSTILE_DELTA("a ") HOSTILE_DELTA("b ") HOSTILE_DELTA("c ") HOSTILE_DELTA("d ") HOSTILE_DELTA("e ") HOSTILE_DELTA("f ")
static const hostile_step buffered[] = {SAY(HOSTILE_CHUNKED), WAIT(300), PART(WORDS), STOP, COUNTS("\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":6}"), DONE};
static const hostile_step lump[] = {BEGIN, PART(HOSTILE_DELTA("all at once")), STOP, COUNTS("\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":8}"), DONE};
static const hostile_step breaks[] = {BEGIN, PART(HOSTILE_DELTA("Hel")), {HOSTILE_RESET, NULL, 0}};
static const hostile_step slow[] = {BEGIN, PART(HOSTILE_DELTA("Hel")), WAIT(20000), {HOSTILE_CLOSE, NULL, 0}};
#define THOUGHT PART("data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n"), WAIT(30)
static const hostile_step thinks[] = {BEGIN, THOUGHT, HELLO, STOP, COUNTS(USAGE("5")), DONE};
static const hostile_step ponders[] = {BEGIN, THOUGHT, STOP, COUNTS(USAGE("5")), DONE};
static const hostile_step body[] =
    JSON("200 OK", "{\"model\":\"served\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},"
         "\"finish_reason\":\"stop\"}]," USAGE("0") "}");
static const hostile_step nonsense[] = {SAY("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>a web site</html>"), {HOSTILE_CLOSE, NULL, 0}};
static const hostile_step refuses[] = JSON("400 Bad", "{\"error\":{\"message\":\"image too wide\",\"code\":400}}");
static const hostile_step none[] = JSON("404 Not Found", "{\"error\":{\"message\":\"no such model\"}}");
static const hostile_step busy[] = {SAY(HOSTILE_NO("503 Busy", "Retry-After: 0\r\n", "busy")), {HOSTILE_CLOSE, NULL, 0}};
/* the request's headers are echoed, including the key */
static const hostile_step locked[] = {SAY("HTTP/1.1 401 Locked\r\nConnection: close\r\n"), {HOSTILE_ECHO, NULL, 0}, {HOSTILE_CLOSE, NULL, 0}};
static const hostile_step models[] = JSON("200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"good\"},{\"id\":\"cached\"}]}");
static const hostile_step only[] = JSON("200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"good\"}]}");
static const hostile_step version[] = JSON("200 OK", "{\"version\":\"0.99\"}");

static const hostile_step forged[] = JSON("200 OK", "{\"data\":[{\"id\":\"good\\nvlmprof: all is well\"}]}");
static int has_one_model;

static hostile_reply choose(hostile_server *asked) {
    const char *headers = asked->request, *posted = asked->request_body;
    static const struct { const char *model; hostile_reply reply; } replies[] = {
        {"cached", cached}, {"burst", burst}, {"nousage", nousage}, {"early", early}, {"silent", silent}, {"aborted", aborted},
        {"bare", bare}, {"buffered", buffered}, {"lump", lump},
        {"breaks", breaks}, {"slow", slow},
        {"body", body}, {"thinks", thinks}, {"ponders", ponders}, {"nonsense", nonsense}, {"refuses", refuses}, {"none", none}};
    char model[40] = "";
    if (!strncmp(headers, "GET /v1/models ", 15))
        return has_one_model == 4 ? nonsense : has_one_model == 3 ? locked : has_one_model == 2 ? forged : has_one_model ? only : models;
    if (!strncmp(headers, "GET /version ", 13)) return version;
    if (strncmp(headers, "POST /v1/chat/completions ", 26)) return none;
    int turn = asked_before++;
    snprintf(latest, sizeof latest, "%s", posted);
    sscanf(posted, "{\"model\": \"%39[^\"]", model);
    if (!strcmp(model, "locked")) return strstr(headers, "Authorization: Bearer " KEY "\r\n") ? good : locked;
    if (!strcmp(model, "retry") && !turn) return busy;
    if (!strcmp(model, "other") && turn == 2) return other;
    if (!strcmp(model, "halts") && turn == 3) return refuses;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
        if (!strcmp(model, replies[i].model)) return replies[i].reply;
    return good;
}

/* ---- the program */
/* Asks the model with this name; more: further options, or NULL. */
static int ask(const char *model, const char *more) {
    asked_before = 0;
    run("ask samples/cat.jpg -p Hi --endpoint http://127.0.0.1:%d --endpoint_model %s --max_new_tokens 8 %s", server.port, model, more ? more : "");
    CHECK(!strstr(last.out, KEY) && !strstr(last.err, KEY));
    return last.code;
}
static int said(const char *words) {
    return check_note(strstr(last.err, words) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, last.err);
}
static int shows(const char *words) {
    return check_note(strstr(last.out, words) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", words, last.out);
}
static vp_json json;
static vp_json_node nodes[8192];
static void parse(void) {
    size_t needed;
    CHECK_INT(vp_json_parse(last.out, strlen(last.out), nodes, 8192, &json, &needed, NULL), VP_OK);
}
/* a member by its path, with dots between keys; NaN if it is not a number */
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
    shows("answer   Hel\x1b[31mlo!\n"); /* in a file, the answer's own bytes */
    shows("model    good (the server reports m)\n");
    shows(", vLLM 0.99, /v1/chat/completions\n");
    shows("image    451x300; sent as image/jpeg, 37853 bytes\n");
    shows("prompt   289 tokens = 256 image + 33 text\n");
    shows("cache    5 prompt tokens came from the server's cache\n");
    shows("output   4 tokens in 3 pieces; finish_reason stop\n");
    shows("3 runs after a warm-up; medians");
    shows("TTFT ");
    shows("the median; the longest took");
    CHECK_TEXT(last.err, "");
    CHECK_INT(ask("other", "--num_runs 2"), 0);
    shows("run 1; other runs gave different answers");
    CHECK_INT(run("ask -p Hi --endpoint http://127.0.0.1:%d/v1/ --endpoint_model good", server.port), 0);
    CHECK(!strstr(last.out, "image    "));
    check_case("values that a server does not report are listed as missing");
    CHECK_INT(ask("nousage", NULL), 0);
    shows("prompt   ? tokens, text and image");
    shows("output   ? tokens in 3 pieces");
    shows("the server does not report how many tokens it generated");
    shows("cache    the server does not report");
    CHECK_INT(ask("body", NULL), 0);
    shows("answer   Hello\n");
    shows("in one body");
    shows("its first token cannot be timed");
    CHECK_INT(ask("silent", NULL), 4);
    said(": the answer is empty (finish_reason stop)");
    CHECK_INT(ask("aborted", NULL), 4);
    said("it ended the answer with finish_reason abort");
    CHECK_INT(ask("bare", NULL), 4);
    said("image too large");
    CHECK_INT(ask("buffered", NULL), 0);
    shows("all pieces arrived at once: the answer was buffered on the way");
    CHECK_INT(ask("lump", NULL), 0);
    shows("the answer came in one piece");
    said("8 tokens came in 1 piece");
    check_case("reasoning: TTFT includes it, and the first output is next to it");
    CHECK_INT(ask("thinks", NULL), 0);
    shows("answer   Hel");
    shows("first_output ");
    CHECK_INT(ask("thinks", "--json"), 0);
    parse();
    CHECK(value("runs.0.at_ms.first_output") >= value("TTFT"));
    CHECK(value("runs.0.at_ms.first_output") >= 30); /* the server's wait before it */
    CHECK(strstr(last.out, "\"reasoning\": \"Hm\""));
    CHECK_INT(ask("ponders", NULL), 0);
    shows("answer   (only reasoning: raise --max_new_tokens)\n");
    check_case("warnings about a cached prompt, retries and new connections");
    EXITS(ask("cached", "--num_runs 2 --same_image"), 0, err, "2 of 2 runs read the prompt from the server's cache (run 1: 288 of 289 tokens)");
    said("this would not happen without --same_image");
    shows("\"prompt_ms\":12.5");
    EXITS(ask("cached", "--no_cache"), 0, err, "--no_cache did not prevent it");
    EXITS(ask("retry", "--cold"), 0, err, "run 1 took 2 attempts");
    EXITS(ask("good", "--cold"), 0, err, "1 of 1 run opened a new connection; T_client_delay includes the time to connect");
    shows("1 run without a warm-up (--cold)");
    EXITS(ask("good", "--ignore_eos"), 0, err, "--ignore_eos had no effect: the answer has 4 of 8 tokens");
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
    CHECK(value("itl.0") >= 0 && value("itl.3") >= 0 && isnan(value("itl.4"))); /* 2 gaps in each of 2 runs */
    CHECK(value("runs.0.T_total") >= 40 && value("runs.1.T_total") >= 40);       /* the server's waits */
    CHECK(value("runs.0.at_ms.sent") <= value("runs.0.at_ms.headers") && value("runs.0.at_ms.headers") <= value("runs.0.TTFT"));
    CHECK(value("runs.0.T_total") <= value("runs.0.at_ms.end"));
    CHECK_NEAR(value("medians.TTFT.median"), value("TTFT"), 1e-6);
    CHECK(isnan(value("T_vision_total")) && isnan(value("server_timings.prompt_ms")));
    CHECK(strstr(last.out, "\"T_vision_total\": \"only the device that runs the model knows"));
    CHECK(strstr(last.out, "\"client\": \"libcurl/"));
    said("the server counts 256 image tokens, but ");
    CHECK_INT(ask("cached", "--json"), 0);
    parse();
    CHECK_NEAR(value("server_timings.prompt_ms"), 12.5, 0);
    CHECK_INT(ask("nousage", "--json"), 0);
    parse();
    CHECK(isnan(value("usage.prompt_tokens")) && isnan(value("T_decode_per_token")) && isnan(value("output_tokens_per_s")));
    CHECK(strstr(last.out, "\"T_decode_per_token\": \"the server does not report"));
    CHECK(isfinite(value("TTFT")));
}
static char *sent(void) { return strdup(latest); }
static void test_sent(void) {
    check_case("the request: knobs, length, cache options, the picture");
    CHECK_INT(ask("good", "--resize 8x8 --request_knob mm_processor_kwargs.max_pixels=50176 image_url.detail=low --no_cache --ignore_eos"), 0);
    char *one = sent();
    CHECK(strstr(one, "\"max_pixels\": 50176") && strstr(one, "\"detail\": \"low\"") && strstr(one, "data:image/png;base64,"));
    CHECK(strstr(one, "\"cache_prompt\": false") && strstr(one, "\"cache_salt\": \"vlmprof-"));
    CHECK(strstr(one, "\"ignore_eos\": true") && strstr(one, "\"max_tokens\": 8"));
    free(one);
    CHECK_INT(ask("good", "--resize 8x8 --cold"), 0);
    one = sent();
    CHECK(strstr(one, "data:image/png;base64,") && !strstr(one, "cache_salt"));
    CHECK_INT(ask("good", "--resize 8x8 --cold"), 0);
    char *two = sent();
    CHECK(strcmp(one, two) != 0);
    FREE_ALL(one, two);
    CHECK_INT(ask("good", "--resize 8x8 --cold --same_image"), 0);
    one = sent();
    CHECK_INT(ask("good", "--resize 8x8 --cold --same_image"), 0);
    two = sent();
    CHECK_TEXT(one, two); /* the same bytes each time */
    FREE_ALL(one, two);
    check_case("a JPEG stays a JPEG of the same length, with different bytes in each request unless --same_image is given");
    CHECK_INT(ask("good", "--cold --same_image"), 0);
    one = sent();
    CHECK(strstr(one, "data:image/jpeg;base64,/9j/"));
    CHECK_INT(ask("good", "--cold"), 0);
    two = sent();
    CHECK(strstr(two, "data:image/jpeg;base64,/9j/") && strlen(one) == strlen(two)); /* test_virtual checks that they differ */
    CHECK(strstr(last.out, "sent as image/jpeg, 37853 bytes"));
    FREE_ALL(one, two);
}
static void test_key(void) {
    check_case("the API key: from the environment or a file, and in no output");
    EXITS(ask("locked", NULL), 4, err, "no API key was sent: set OPENAI_API_KEY");
    setenv("OPENAI_API_KEY", KEY, 1);
    CHECK_INT(ask("locked", "--json"), 0);
    CHECK_INT(ask("refuses", "--json"), 4);
    unsetenv("OPENAI_API_KEY");
    setenv("OTHER_KEY", KEY, 1);
    CHECK_INT(ask("locked", "--api_key_env OTHER_KEY --json"), 0);
    setenv("OTHER_KEY", WRONG, 1);
    CHECK_INT(ask("locked", "--api_key_env OTHER_KEY"), 4);
    CHECK(!strstr(last.err, WRONG));
    said("the API key was read from OTHER_KEY");
    setenv("OTHER_KEY", "two\nlines", 1);
    EXITS(ask("locked", "--api_key_env OTHER_KEY"), 3, err, "OTHER_KEY: an API key cannot contain blanks");
    unsetenv("OTHER_KEY");
    CHECK_INT(ask("locked", "--api_key_env " KEY), 2); /* the key given by mistake is not repeated */
    said("never the key");
    write_file(in_folder("key"), KEY "\nmore\n", strlen(KEY) + 6);
    chmod(in_folder("key"), 0600);
    CHECK_INT(ask("locked", "--api_key_file %F/key"), 0);
    CHECK_TEXT(last.err, "");
    chmod(in_folder("key"), 0644);
    EXITS(ask("locked", "--api_key_file %F/key --json"), 0, err, "other users can read this API key: use chmod 600");
    CHECK_INT(ask("locked", "--api_key_file %F/key --api_key_env HOME"), 2);
    CHECK_INT(ask("locked", "--api_key_file %F/no-such-key"), 3);
    write_file(in_folder("key"), "\n", 1);
    EXITS(ask("locked", "--api_key_file %F/key"), 3, err, "the first line is empty");
}
static void test_failures(void) {
    check_case("a server that is unreachable, rejects, breaks off or answers nonsense");
    EXITS(ask("refuses", NULL), 4, err, "image too wide");
    CHECK_TEXT(last.out, "");
    EXITS(ask("none", NULL), 4, err, "; its models: good, cached");
    EXITS(ask("none", "--endpoint_api ollama"), 4, err, "does it support ollama?");
    CHECK_INT(ask("breaks", NULL), 4);
    CHECK_TEXT(last.out, "");
    EXITS(ask("nonsense", NULL), 3, err, "the answer is a web page, not JSON: is http://127.0.0.1:");
    has_one_model = 4;
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d", server.port), 4, err, "/v1/models: answered with a web page, not JSON: is http://127.0.0.1:");
    CHECK(strstr(last.err, "the server's API (.../v1)?") && !strstr(last.err, "--endpoint_model"));
    has_one_model = 0;
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:1 --endpoint_model good --timeout_s 5"), 4, err, "is the server up");
    EXITS(ask("slow", "--timeout_s 1 --cold"), 4, err, "the answer is incomplete after 1.000 s; 1 piece came, the last after 0.0");
    CHECK(last.err && !strstr(last.err, "is the server up"));
    check_case("a run that fails after others: its number is named, and those before it are shown");
    EXITS(ask("halts", "--num_runs 4"), 4, err, "image too wide");
    said("run 3 of 4 failed: the results cover the 2 before it");
    shows("2 runs after a warm-up");
    check_case("usage");
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d", server.port), 2, err, "needs --endpoint_model NAME; http://127.0.0.1:");
    said("has: good, cached");
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:1"), 4, err, "is the server up");
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d/wrong", server.port), 2, err, "(.../v1)? If it is, give --endpoint_model NAME");
    EXITS(run("ask --endpoint http://127.0.0.1:%d --endpoint_model good", server.port), 2, err, "-p TEXT");
    EXITS(ask("good", "--top_k 1"), 2, err, "unknown option --top_k of ask (run has this option)");
    CHECK_INT(ask("good", "--max_crops 4"), 2);
    CHECK_INT(ask("good", "--max_crops 4 --family molmo"), 0);
    CHECK_INT(ask("good", "--family no-such"), 2);
    EXITS(ask("good", "--family qwen2-vl --max_tiles 4"), 2, err, "unknown option --max_tiles");
    CHECK_INT(ask("good", "--resize 0x5"), 2);
    EXITS(ask("good", "--resize big"), 2, err, "WIDTHxHEIGHT");
    EXITS(ask("good", "--request_knob a=1,2"), 2, err, "one value per knob");
    EXITS(ask("good", "--request_knob messages[9].content=1"), 2, err, "messages[9]");
    CHECK_INT(ask("good", "--request_knob nothing"), 2);
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good --request_knob image_url.detail=low", server.port), 2, err, "there is no image");
    EXITS(run("ask -p Hi"), 2, err, "ask needs --endpoint URL");
    EXITS(run("run -p Hi --endpoint http://127.0.0.1:%d", server.port), 2, err, "unknown option --endpoint of run (");
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good --resize 5x5", server.port), 2, err, "need an image");
    EXITS(run("ask -p Hi --endpoint ftp://127.0.0.1 --endpoint_model good"), 2, err, "vlmprof: --endpoint: a URL must begin with http://");
    EXITS(run("ask %%F/none.jpg -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good", server.port), 3, err, "none.jpg");
    EXITS(run("ask README.md -p Hi --endpoint http://127.0.0.1:%d --endpoint_model good", server.port), 3, err, "not a PNG, JPEG, WebP or GIF");
}
/* A missing or wrong scheme, and a model that need not be named. */
static void test_address(void) {
    const int port = server.port;
    check_case("a rate beyond any server's is not credible, and the warning gives the reason");
    EXITS(ask("burst", "--cold"), 0, err, " tokens/s is not credible, because no server decodes that fast: the answer was buffered");
    CHECK_INT(ask("good", "--cold"), 0);
    CHECK(last.err && !strstr(last.err, "not credible"));
    check_case("white space long before the first word: the time of the first visible text");
    CHECK_INT(ask("early", "--cold"), 0);
    shows("first_visible       3");
    CHECK_INT(ask("good", "--cold"), 0);
    CHECK(last.out && !strstr(last.out, "first_visible"));
    check_case("a prompt that is shorter than its image by the rule: the server dropped it");
    EXITS(ask("early", "--cold --family qwen2_vl"), 0, err, "the whole prompt has 12 tokens, but by qwen2_vl");
    said("the server dropped an image or does not count it; run vlmprof audit");
    EXITS(ask("early", "--cold"), 0, err, "the whole prompt has 12 tokens, too few for an image: the server dropped an image or does not count it");
    CHECK_INT(ask("good", "--cold --family qwen2_vl"), 0);
    CHECK(last.err && !strstr(last.err, "dropped"));
    check_case("a URL without a scheme: the error suggests one");
    CHECK_INT(run("ask -p Hi --endpoint 127.0.0.1:%d --endpoint_model good", port), 2);
    said("a URL must begin with http:// or https://; did you mean http://127.0.0.1:");
    EXITS(run("ask -p Hi --endpoint api.example.org/v1 --endpoint_model good"), 2, err, "did you mean https://api.example.org/v1?");
    CHECK_INT(run("ask -p Hi --endpoint me:secret@api.example.org --endpoint_model good"), 2);
    CHECK(last.err && !strstr(last.err, "secret"));
    check_case("a server's only model need not be named");
    has_one_model = 1;
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d", port), 0, err, "model: good, the server's only model");
    check_case("a server's name for its model cannot look like a line of this program");
    has_one_model = 2;
    run("ask -p Hi --endpoint http://127.0.0.1:%d", port);
    CHECK(last.err && strstr(last.err, "model: good?vlmprof: all is well") && !strstr(last.err, "\nvlmprof: all"));
    CHECK(last.out && !strstr(last.out, "\nvlmprof: all"));
    has_one_model = 3;
    EXITS(run("ask -p Hi --endpoint http://127.0.0.1:%d", server.port), 4, err, "HTTP status 401: rejected; no API key was sent: ");
    CHECK(!strstr(last.err, "--endpoint_model"));
    has_one_model = 0;
}
/* Ctrl-C while a run waits for the server: complete runs are printed. */
static void test_interrupt(void) {
    const struct timespec tick = {0, 50000000};
    char url[80];
    const int before = hostile_count(&server, &server.request_count);
    int status = 0;
    pid_t child;
    check_case("Ctrl-C ends the wait");
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    if ((child = fork()) == 0) {
        if (!freopen(in_folder("out"), "w", stdout) || !freopen(in_folder("err"), "w", stderr)) _exit(99);
        execl(program, program, "ask", "-p", "Hi", "--endpoint", url, "--endpoint_model", "slow", "--cold", (char *)NULL);
        _exit(99);
    }
    while (hostile_count(&server, &server.request_count) == before) nanosleep(&tick, NULL);
    kill(child, SIGINT);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 130);
    char *words = text_of_file(in_folder("err"));
    CHECK(words && strstr(words, "vlmprof: interrupted before a run was complete: nothing is kept; run the same command again\n"));
    free(words);
}

int main(void) {
    unsetenv("OPENAI_API_KEY");
    if (!program_begin("ask")) return 1;
    hostile_start(&server, NULL, 0);
    server.choose = choose;
    RUN_TESTS(test_text, test_json, test_sent, test_key, test_failures, test_address, test_interrupt);
    hostile_stop(&server);
    return program_done("test_ask");
}
