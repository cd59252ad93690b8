/* test_chat.c: request bodies for each API against their text; knobs; base64; server-sent events and answers, split at every byte, whole, wrong, too long and without
 * memory. Pure: it opens no connection. The part is included so that its allocations can fail. */
#include "support/allocations.h"
#include "vlmprof_chat.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#include "support/check.h"
#include "support/golden_rows.h"

/* ---------------------------------------------------------------------------------------------------------- requests */
static void test_names(void) {
    vp_chat_api api = VP_CHAT_COMPLETIONS;
    check_case("names and paths of the APIs");
    for (int32_t i = 0; i < VP_CHAT_API_LAST_; i++) CHECK(vp_chat_api_find(vp_chat_api_name(i), &api) == VP_OK && (int32_t)api == i);
    CHECK_TEXT(vp_chat_api_path(VP_CHAT_COMPLETIONS), "/v1/chat/completions");
    CHECK_TEXT(vp_chat_api_path(VP_CHAT_OLLAMA), "/api/chat");
    CHECK(!vp_chat_api_name(-1) && !vp_chat_api_name(VP_CHAT_API_LAST_) && !vp_chat_api_path(-1) && !vp_chat_api_path(VP_CHAT_API_LAST_));
    CHECK_INT(vp_chat_api_find("Chat", &api), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_chat_api_find(NULL, &api), VP_ERR_NOT_FOUND);
    CHECK_INT(api, VP_CHAT_API_LAST_ - 1);
}

static void test_base64(void) {
    static const struct { const char *bytes, *text; } vectors[] = { /* RFC 4648, 10 */
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    char text[16];
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        check_case("base64 of \"%s\"", vectors[i].bytes);
        memset(text, 'x', sizeof text);
        CHECK_INT(vp_base64(vectors[i].bytes, strlen(vectors[i].bytes), text), strlen(vectors[i].text));
        CHECK_TEXT(text, vectors[i].text);
        CHECK_INT(vp_base64_bytes(strlen(vectors[i].bytes)), strlen(vectors[i].text));
        CHECK_INT(text[strlen(vectors[i].text) + 1], 'x');
    }
    check_case("base64 of high bytes");
    vp_base64("\xff\xfe\xfb", 3, text);
    CHECK_TEXT(text, "//77");
    CHECK_INT(vp_base64_bytes(SIZE_MAX), SIZE_MAX / 3 * 4); /* no overflow in between: SIZE_MAX is a multiple of 3 */
}

static const vp_chat_image small_image = {"foobar", 6, "image/png"};
static vp_chat_request request_of(const vp_chat_image *images, int32_t count) {
    vp_chat_request request = {.model = "m", .text = "What is \"this\"?", .images = images, .image_count = count};
    return request;
}
static void check_body(vp_chat_api api, const vp_chat_request *request, const char *want) {
    vp_error error = {VP_OK, 0, "", ""};
    char *body = NULL;
    size_t bytes = 0;
    if (!CHECK_INT(vp_chat_body(api, request, &body, &bytes, &error), VP_OK)) printf("  %s: %s\n", error.where, error.text);
    CHECK_TEXT(body, want);
    CHECK_INT(bytes, strlen(want));
    free(body);
}
static void test_bodies(void) {
    vp_chat_image two[2];
    vp_chat_request request = request_of(&small_image, 1);
    two[0] = small_image;
    two[1].bytes = "\0\0";
    two[1].byte_count = 2;
    two[1].media_type = "image/jpeg";

    check_case("chat: an image and a text");
    check_body(VP_CHAT_COMPLETIONS, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
               "\"image_url\": {\"url\": \"data:image/png;base64,Zm9vYmFy\"}}, {\"type\": \"text\", \"text\": \"What is \\\"this\\\"?\"}]}], "
               "\"temperature\": 0, \"stream\": true, \"stream_options\": {\"include_usage\": true}}");
    check_case("ollama: an image and a text");
    check_body(VP_CHAT_OLLAMA, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"What is \\\"this\\\"?\", "
               "\"images\": [\"Zm9vYmFy\"]}], \"options\": {\"temperature\": 0}, \"stream\": true}");

    request = request_of(two, 2);
    request.max_tokens = 32;
    request.ignore_eos = request.no_stream = request.no_cache = 1;
    request.cache_salt = "s";
    check_case("chat: everything");
    check_body(VP_CHAT_COMPLETIONS, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
               "\"image_url\": {\"url\": \"data:image/png;base64,Zm9vYmFy\"}}, {\"type\": \"image_url\", \"image_url\": "
               "{\"url\": \"data:image/jpeg;base64,AAA=\"}}, {\"type\": \"text\", \"text\": \"What is \\\"this\\\"?\"}]}], \"temperature\": 0, "
               "\"max_tokens\": 32, \"ignore_eos\": true, \"min_tokens\": 32, \"cache_prompt\": false, \"cache_salt\": \"s\", \"stream\": false}");
    check_case("ollama: all of its features");
    check_body(VP_CHAT_OLLAMA, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"What is \\\"this\\\"?\", "
               "\"images\": [\"Zm9vYmFy\", \"AAA=\"]}], \"options\": {\"temperature\": 0, \"num_predict\": 32}, \"stream\": false}");

    request = request_of(NULL, 0);
    check_case("text only: the same body without the images");
    check_body(VP_CHAT_COMPLETIONS, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
               "\"text\": \"What is \\\"this\\\"?\"}]}], \"temperature\": 0, \"stream\": true, \"stream_options\": {\"include_usage\": true}}");
    check_body(VP_CHAT_OLLAMA, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"What is \\\"this\\\"?\"}], "
               "\"options\": {\"temperature\": 0}, \"stream\": true}");
}
static void test_wrong_requests(void) {
    static const struct { const char *name; vp_result result; } cases[] = {{"image_count", VP_ERR_RANGE}, {"max_tokens", VP_ERR_RANGE},
        {"api", VP_ERR_RANGE}, {"model NULL", VP_ERR_FORMAT}, {"text NULL", VP_ERR_FORMAT}, {"text no UTF-8", VP_ERR_FORMAT},
        {"cache_salt no UTF-8", VP_ERR_FORMAT}, {"media type NULL", VP_ERR_FORMAT}, {"media type with a quote", VP_ERR_FORMAT},
        {"media type without a slash", VP_ERR_FORMAT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vp_chat_image image = small_image;
        vp_chat_request request = request_of(&image, 1);
        vp_chat_api api = VP_CHAT_COMPLETIONS;
        vp_error error = {VP_OK, 0, "", ""};
        char *body = NULL;
        size_t bytes = 7;
        check_case("an invalid request: %s", cases[i].name);
        if (i == 0) request.image_count = -1;
        if (i == 1) request.max_tokens = -1;
        if (i == 2) api = VP_CHAT_API_LAST_;
        if (i == 3) request.model = NULL;
        if (i == 4) request.text = NULL;
        if (i == 5) request.text = "\xc3(";
        if (i == 6) request.cache_salt = "\xff";
        if (i == 7) image.media_type = NULL;
        if (i == 8) image.media_type = "image/png\"";
        if (i == 9) image.media_type = "png";
        CHECK_INT(vp_chat_body(api, &request, &body, &bytes, &error), cases[i].result);
        CHECK_INT(error.code, cases[i].result);
        CHECK(body == NULL && bytes == 7 && error.text[0]);
    }
}

/* ------------------------------------------------------------------------------------------------------------- knobs */
/* A body of two images with one knob; part: what it then has, NULL if the knob is rejected. */
static void check_knob(int64_t api, const char *path, const char *value, vp_result want, const char *part) {
    const vp_chat_image images[2] = {small_image, small_image};
    const vp_chat_knob knob = {path, value};
    vp_chat_request request = request_of(images, 2);
    vp_error error = {VP_OK, 0, "", ""};
    char *body = NULL;
    size_t bytes = 0;
    check_case("knob %s=%s", path ? path : "NULL", value ? value : "NULL");
    request.knobs = &knob;
    request.knob_count = 1;
    CHECK_INT(vp_chat_body((vp_chat_api)api, &request, &body, &bytes, &error), want);
    CHECK((body != NULL) == (want == VP_OK));
    if (body && !CHECK(part && strstr(body, part))) printf("  %s\n", body);
    if (body) CHECK(strlen(body) == bytes && vp_json_parse(body, bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
    if (want != VP_OK) CHECK_TEXT(error.where, path ? path : "path");
    free(body);
}
static void test_knobs(void) {
    golden_rows rows;
    check_knob(VP_CHAT_COMPLETIONS, "a", "\xff", VP_ERR_FORMAT, NULL);
    check_knob(VP_CHAT_COMPLETIONS, "\xff", "1", VP_ERR_FORMAT, NULL);
    if (golden_open(&rows, "chat/knobs.jsonl")) while (golden_next(&rows)) {
        char *path = golden_text(&rows, "path"), *value = golden_text(&rows, "value"), *part = golden_text(&rows, "part");
        int64_t api = -1;
        vp_json_to_int(&rows.json, vp_json_get(&rows.json, 0, "api"), &api);
        check_knob(api, path, value, golden_code(&rows), part);
        FREE_ALL(path, value, part);
    }
    CHECK_INT(rows.count, 38);
    static const vp_chat_knob several[] = {{"a", "{}"}, {"a.b", "1"}, {"a.c", "2"}, {"a.b", "3"}};
    vp_chat_request request = request_of(NULL, 0);
    check_case("knobs are set in order");
    request.knobs = several;
    request.knob_count = 4;
    check_body(VP_CHAT_OLLAMA, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"What is \\\"this\\\"?\"}], "
               "\"options\": {\"temperature\": 0}, \"stream\": true, \"a\": {\"b\": 3, \"c\": 2}}");
}

/* ------------------------------------------------------------------------------------------------- server-sent events */
struct heard { char text[600]; int events; vp_result answer; };
static vp_result hear(void *user, const char *name, const char *data, size_t bytes) {
    struct heard *heard = (struct heard *)user;
    const size_t used = strlen(heard->text);
    CHECK_INT(data[bytes], 0);
    snprintf(heard->text + used, sizeof heard->text - used, "<%s|%.*s>", name, (int)bytes, data);
    heard->events++;
    return heard->answer;
}
/* Splits into pieces of `step` bytes; if step is 0, into two pieces at byte `cut`. */
static vp_result feed_events(vp_sse *sse, const char *text, size_t bytes, size_t step, size_t cut) {
    size_t at = 0;
    vp_result result = VP_OK;
    while (at < bytes && result == VP_OK) {
        size_t piece = step ? step : at < cut ? cut : bytes - at;
        if (piece > bytes - at) piece = bytes - at;
        char *copy = (char *)malloc(piece ? piece : 1); /* exactly its size, for the sanitizer */
        memcpy(copy, text + at, piece);
        result = vp_sse_feed(sse, copy, piece);
        free(copy);
        at += piece;
    }
    return result;
}
static void test_events(void) {
    golden_rows rows;
    if (golden_open(&rows, "chat/events.jsonl")) while (golden_next(&rows)) {
        char *name = golden_text(&rows, "name"), *text = golden_text(&rows, "text"), *want = golden_text(&rows, "want");
        const size_t bytes = strlen(text);
        check_case("events: %s", name);
        for (size_t cut = 0; cut <= bytes + 3; cut++) { /* every split into two, then pieces of 1, 2 and 3 */
            struct heard heard = {"", 0, VP_OK};
            vp_sse sse;
            vp_sse_init(&sse, 1000, hear, &heard);
            CHECK_INT(feed_events(&sse, text, bytes, cut > bytes ? cut - bytes : 0, cut), VP_OK);
            CHECK_TEXT(heard.text, want);
            vp_sse_free(&sse);
        }
        FREE_ALL(name, text, want);
    }
    CHECK_INT(rows.count, 19);
    {
        struct heard heard = {"", 0, VP_ERR_STATE};
        vp_sse sse;
        check_case("events: an error from the callback ends the feed");
        vp_sse_init(&sse, 1000, hear, &heard);
        CHECK_INT(vp_sse_feed(&sse, "data: a\n\ndata: b\n\n", 18), VP_ERR_STATE);
        CHECK_INT(heard.events, 1);
        vp_sse_free(&sse);
        check_case("events: limits on the length of a line and of data");
        heard.answer = VP_OK;
        vp_sse_init(&sse, 8, hear, &heard);
        CHECK_INT(vp_sse_feed(&sse, "data: ab\n\n", 10), VP_OK);
        CHECK_INT(vp_sse_feed(&sse, ":12345678", 9), VP_ERR_RANGE);
        vp_sse_free(&sse);
        vp_sse_init(&sse, 8, hear, &heard);
        CHECK_INT(vp_sse_feed(&sse, "data:abc\ndata:def\n", 18), VP_OK);
        CHECK_INT(vp_sse_feed(&sse, "data:gh\n", 8), VP_ERR_RANGE);
        vp_sse_free(&sse);
    }
}

/* ----------------------------------------------------------------------------------------------------------- answers */
/* A reply as text, without times. */
static char *summary_of(const vp_chat_reply *reply, vp_result result, char *out, size_t capacity) {
    int64_t bytes = 0;
    for (size_t i = 0; i < reply->piece_count; i++) bytes += reply->pieces[i].text_bytes;
    CHECK_INT(bytes, reply->text_bytes + reply->reasoning_bytes);
    CHECK((reply->first_ns > 0) == (reply->piece_count > 0) && (reply->first_output_ns > 0) == (reply->text_bytes > 0));
    CHECK(reply->first_ns <= reply->last_ns && (!reply->first_output_ns || reply->first_ns <= reply->first_output_ns));
    CHECK(strlen(reply->text) <= reply->text_bytes && reply->text[reply->text_bytes] == 0 && reply->reasoning[reply->reasoning_bytes] == 0);
    snprintf(out, capacity, "%d %s|%s|%s|%s|%lld %lld %lld %lld %lld|%s|%d pieces%s%s|%s", (int)result, reply->text, reply->reasoning,
             reply->finish_reason ? reply->finish_reason : "-", reply->model ? reply->model : "-", (long long)reply->usage.prompt_tokens,
             (long long)reply->usage.completion_tokens, (long long)reply->usage.image_tokens, (long long)reply->usage.cached_tokens,
             (long long)reply->usage.reasoning_tokens, reply->timings ? reply->timings : "-", (int)reply->piece_count,
             reply->is_streamed ? " streamed" : "", reply->is_complete ? " complete" : "", reply->failure ? reply->failure : "-");
    return out;
}
static vp_result feed_reply(vp_chat_reply *reply, const char *text, size_t bytes, size_t step, size_t cut, vp_error *error) {
    size_t at = 0;
    vp_result result = VP_OK;
    int64_t now = 1000;
    while (at < bytes && result == VP_OK) {
        size_t piece = step ? step : at < cut ? cut : bytes - at;
        if (piece > bytes - at) piece = bytes - at;
        char *copy = (char *)malloc(piece ? piece : 1);
        memcpy(copy, text + at, piece);
        result = vp_chat_reply_feed(reply, copy, piece, now++, error);
        free(copy);
        at += piece;
    }
    if (result == VP_OK) result = vp_chat_reply_end(reply, error);
    return result;
}
/* tests/golden/chat/answers.jsonl, and what is not UTF-8 */
static struct answer { const char *name; int64_t api; const char *type, *text, *want; } answers[100] = {
    {"an event called error, words", VP_CHAT_COMPLETIONS, "text/event-stream", "event: error\ndata: out\ndata: of order \xff\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|out?of order ?"},
    {"no UTF-8", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"}};
static size_t answer_count = 2;
static void read_answers(void) {
    golden_rows rows;
    check_case("golden answers");
    if (!golden_open(&rows, "chat/answers.jsonl")) return;
    for (; golden_next(&rows) && answer_count < 100; answer_count++) {
        struct answer *answer = &answers[answer_count];
        *answer = (struct answer){golden_text(&rows, "name"), 0, golden_text(&rows, "type"), golden_text(&rows, "text"), golden_text(&rows, "want")};
        CHECK_INT(vp_json_to_int(&rows.json, vp_json_get(&rows.json, 0, "api"), &answer->api), VP_OK);
        CHECK(answer->name && answer->text && answer->want);
    }
    CHECK_INT(answer_count, 62);
}
static void test_answers(void) {
    static char text[4000];
    for (size_t i = 0; i < answer_count; i++) {
        const struct answer *answer = &answers[i];
        const size_t bytes = strlen(answer->text);
        check_case("answer: %s", answer->name);
        for (size_t cut = 0; cut <= bytes + 3; cut++) { /* every split into two, then pieces of 1, 2 and 3 */
            vp_chat_reply reply;
            vp_error error = {VP_OK, 0, "", ""};
            const long before = allocations_live;
            CHECK_INT(vp_chat_reply_begin(&reply, (vp_chat_api)answer->api, answer->type, 4000), VP_OK);
            vp_result result = feed_reply(&reply, answer->text, bytes, cut > bytes ? cut - bytes : 0, cut, &error);
            CHECK_TEXT(summary_of(&reply, result, text, sizeof text), answer->want);
            CHECK(error.code == result && (result == VP_OK || error.text[0]));
            CHECK_INT(vp_chat_reply_feed(&reply, "x", result != VP_OK, 1, NULL), result); /* the result that ended the reply is kept */
            vp_chat_reply_free(&reply);
            CHECK(!reply.text && !reply.pieces && !reply.state && allocations_live == before);
        }
    }
}
static void test_times(void) {
    static const char first[] = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
                      thought[] = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"ab\"}}]}\n\n",
                      output[] = "data: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n", end[] = "data: [DONE]\n\n";
    vp_chat_reply reply;
    check_case("times of the pieces");
    CHECK_INT(vp_chat_reply_begin(&reply, VP_CHAT_COMPLETIONS, "text/event-stream", 4000), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, first, sizeof first - 1, 100, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, thought, sizeof thought - 1, 200, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, output, 10, 300, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, output + 10, sizeof output - 11, 400, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, output, sizeof output - 1, 500, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, end, sizeof end - 1, 600, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_end(&reply, NULL), VP_OK);
    CHECK_INT(reply.first_ns, 200);
    CHECK_INT(reply.first_output_ns, 400);
    CHECK_INT(reply.last_ns, 500);
    if (CHECK_INT(reply.piece_count, 3)) {
        CHECK(reply.pieces[0].at_ns == 200 && reply.pieces[0].text_bytes == 2 && reply.pieces[1].at_ns == 400 && reply.pieces[2].at_ns == 500);
        CHECK_INT(reply.pieces[2].text_bytes, 1);
    }
    vp_chat_reply_free(&reply);
    check_case("times of an answer in one piece are those of its last byte");
    CHECK_INT(vp_chat_reply_begin(&reply, VP_CHAT_COMPLETIONS, "application/json", 4000), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "{\"choices\":[{\"message\":", 23, 100, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "{\"content\":\"x\"}}]}", 18, 200, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_end(&reply, NULL), VP_OK);
    CHECK(reply.first_ns == 200 && reply.first_output_ns == 200 && reply.last_ns == 200 && reply.piece_count == 1);
    vp_chat_reply_free(&reply);
}
static void test_limits(void) {
    static const char piece[] = "data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n";
    static const struct { const char *name, *type; } forms[] = {{"text of many pieces", "text/event-stream"}, {"an event", "text/event-stream"},
        {"a line", "application/x-ndjson"}, {"a whole JSON", "application/json"}};
    vp_chat_reply reply;
    vp_error error = {VP_OK, 0, "", ""};
    size_t form, i;
    for (form = 0; form < 4; form++) {
        vp_result result = VP_OK;
        check_case("limit: %s", forms[form].name);
        CHECK_INT(vp_chat_reply_begin(&reply, VP_CHAT_COMPLETIONS, forms[form].type, 100), VP_OK);
        if (form == 3) CHECK_INT(vp_chat_reply_feed(&reply, "{", 1, 1, NULL), VP_OK);
        for (i = 0; i < 1000 && result == VP_OK; i++)
            result = form == 0 ? vp_chat_reply_feed(&reply, piece, sizeof piece - 1, 1, &error) : vp_chat_reply_feed(&reply, " 2345678", 8, 1, &error);
        CHECK_INT(result, VP_ERR_RANGE);
        CHECK(i == (form == 0 ? 11 : 13) && strstr(error.text, "exceeds the size limit") != NULL);
        CHECK_INT(reply.text_bytes, form == 0 ? 100 : 0);
        vp_chat_reply_free(&reply);
    }
    check_case("limit: values in one JSON");
    CHECK_INT(vp_chat_reply_begin(&reply, VP_CHAT_COMPLETIONS, "application/json", (size_t)1 << 30), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "{\"a\":[0", 7, 1, NULL), VP_OK);
    for (i = 0; i < 1 << 20; i += 8) CHECK_INT(vp_chat_reply_feed(&reply, ",0,0,0,0,0,0,0,0", 16, 1, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "]}", 2, 1, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_end(&reply, &error), VP_ERR_RANGE);
    CHECK(strstr(error.text, "million") != NULL);
    vp_chat_reply_free(&reply);
    check_case("limit: the server's times");
    CHECK_INT(vp_chat_reply_begin(&reply, VP_CHAT_COMPLETIONS, "application/json", (size_t)1 << 20), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "{\"choices\":[{\"message\":{}}],\"timings\":{\"x\":\"", 44, 1, NULL), VP_OK);
    for (i = 0; i < 65536; i += 16) CHECK_INT(vp_chat_reply_feed(&reply, "0123456789abcdef", 16, 1, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_feed(&reply, "\"}}", 3, 1, NULL), VP_OK);
    CHECK_INT(vp_chat_reply_end(&reply, &error), VP_ERR_RANGE);
    vp_chat_reply_free(&reply);
}
static void test_refusals(void) {
    static const struct { const char *body, *want; } cases[] = {
        {"{\"error\":{\"message\":\"no \\\"m\\\"\",\"type\":\"x\"}}", "no \"m\""}, {"{\"error\":\"plain\"}", "plain"},
        {"{\"object\":\"error\",\"message\":\"vLLM of old\"}", "vLLM of old"}, {"{\"detail\":\"Not Found\"}", "Not Found"},
        {"{\"detail\":[{\"loc\":[\"body\"]}]}", "[{\"loc\":[\"body\"]}]"}, {"{\"error\":null,\"message\":\"m\"}", "m"},
        {"{\"error\":{\"code\":5}}", "{\"code\":5}"}, {"{\"other\":1}", "{\"other\":1}"}, {"<html>\n<b>502</b>\x1b[2J\x01", "<html>?<b>502</b>?[2J?"},
        {"", ""}, {"\xff\xfe", "??"}, {"{\"error\":\"a\\u0000b\"}", "a"}, {"a very long text that does not fit into the room there is",
        "a very long text that does not fit into"}};
    char out[40];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("the text of a refusal: %s", cases[i].body);
        memset(out, 'x', sizeof out);
        vp_chat_failure(cases[i].body, strlen(cases[i].body), out, sizeof out);
        CHECK_TEXT(out, cases[i].want);
    }
}

/* Without memory at the n-th allocation: returns VP_ERR_MEMORY, writes nothing, leaks nothing (the sanitizer counts). */
static void test_memory(void) {
    static const vp_chat_knob knobs[] = {{"a.b", "1"}, {"image_url.detail", "low"}};
    long failing;
    vp_result result = VP_ERR_MEMORY;
    check_case("no memory for a body");
    for (failing = 0; result == VP_ERR_MEMORY && failing < 1000; failing++) {
        vp_chat_request request = request_of(&small_image, 1);
        char *body = NULL;
        size_t bytes = 0;
        request.knobs = knobs;
        request.knob_count = 2;
        allocations_left = failing;
        result = vp_chat_body(VP_CHAT_COMPLETIONS, &request, &body, &bytes, NULL);
        allocations_left = -1;
        CHECK(result == VP_OK || (result == VP_ERR_MEMORY && !body));
        free(body);
    }
    CHECK(result == VP_OK && failing > 5);
    for (size_t i = 0; i < answer_count; i++) {
        static char text[4000];
        check_case("no memory for the answer: %s", answers[i].name);
        result = VP_ERR_MEMORY;
        for (failing = 0; result == VP_ERR_MEMORY && failing < 1000; failing++) {
            vp_chat_reply reply;
            const char *at = answers[i].text;
            allocations_left = failing;
            result = vp_chat_reply_begin(&reply, (vp_chat_api)answers[i].api, answers[i].type, 4000);
            if (result == VP_OK) {
                for (; *at && result == VP_OK; at++) result = vp_chat_reply_feed(&reply, at, 1, 1, NULL);
                if (result == VP_OK) result = vp_chat_reply_end(&reply, NULL);
            }
            allocations_left = -1;
            if (result != VP_ERR_MEMORY) CHECK_TEXT(summary_of(&reply, result, text, sizeof text), answers[i].want);
            vp_chat_reply_free(&reply);
        }
        CHECK(result != VP_ERR_MEMORY && failing > 3);
    }
}

int main(void) {
    RUN_TESTS(test_names, test_base64, test_bodies, test_wrong_requests, test_knobs, test_events, read_answers,
              test_answers, test_times, test_limits, test_refusals, test_memory);
    return check_done("test_chat");
}
