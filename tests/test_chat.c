/* test_chat.c: request bodies for each API against their text; knobs; base64; server-sent events and answers, split at every byte, whole, wrong, too long and without
 * memory. Pure: it opens no connection. The part is included so that its allocations can fail. */
#include <stdlib.h>
#include <string.h>
static long allocations_left = -1; /* -1: no limit */
static int may_allocate(void) {
    if (allocations_left < 0) return 1;
    if (allocations_left == 0) return 0;
    allocations_left--;
    return 1;
}
static long held; /* pieces of memory not yet freed */
static void *counted(void *memory) { held += memory != NULL; return memory; }
static void *test_malloc(size_t bytes) { return may_allocate() ? counted(malloc(bytes)) : NULL; }
static void *test_calloc(size_t count, size_t bytes) { return may_allocate() ? counted(calloc(count, bytes)) : NULL; }
static void *test_realloc(void *memory, size_t bytes) {
    if (!memory) return test_malloc(bytes);
    return may_allocate() ? realloc(memory, bytes) : NULL;
}
static void test_free(void *memory) {
    held -= memory != NULL;
    free(memory);
}
#define malloc test_malloc
#define calloc test_calloc
#define realloc test_realloc
#define free test_free
#include "vlmprof_chat.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#include "support/check.h"

/* ---------------------------------------------------------------------------------------------------------- requests */
static void test_names(void) {
    vp_chat_api api = VP_CHAT_COMPLETIONS;
    check_case("names and paths of the APIs");
    for (int32_t i = 0; i < VP_CHAT_API_LAST_; i++) CHECK(vp_chat_api_find(vp_chat_api_name(i), &api) == VP_OK && (int32_t)api == i);
    CHECK_TEXT(vp_chat_api_path(VP_CHAT_COMPLETIONS), "/v1/chat/completions");
    CHECK_TEXT(vp_chat_api_path(VP_CHAT_RESPONSES), "/v1/responses");
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
    check_case("responses: an image and a text");
    check_body(VP_CHAT_RESPONSES, &request, "{\"model\": \"m\", \"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_image\", "
               "\"image_url\": \"data:image/png;base64,Zm9vYmFy\"}, {\"type\": \"input_text\", \"text\": \"What is \\\"this\\\"?\"}]}], "
               "\"temperature\": 0, \"stream\": true}");
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
    check_case("responses: everything");
    check_body(VP_CHAT_RESPONSES, &request, "{\"model\": \"m\", \"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_image\", "
               "\"image_url\": \"data:image/png;base64,Zm9vYmFy\"}, {\"type\": \"input_image\", \"image_url\": \"data:image/jpeg;base64,AAA=\"}, "
               "{\"type\": \"input_text\", \"text\": \"What is \\\"this\\\"?\"}]}], \"temperature\": 0, \"max_output_tokens\": 32, "
               "\"ignore_eos\": true, \"min_tokens\": 32, \"cache_prompt\": false, \"cache_salt\": \"s\", \"stream\": false}");
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
static void test_knobs(void) {
    static const struct { int api; const char *path, *value; vp_result result; const char *part; } cases[] = {
        {VP_CHAT_COMPLETIONS, "mm_processor_kwargs.max_pixels", "1024", VP_OK, "\"include_usage\": true}, \"mm_processor_kwargs\": {\"max_pixels\": 1024}}"},
        {VP_CHAT_COMPLETIONS, "a.b.c", "[1, {\"d\": null}]", VP_OK, ", \"a\": {\"b\": {\"c\": [1, {\"d\": null}]}}}"},
        {VP_CHAT_COMPLETIONS, "temperature", " \t0.25\n", VP_OK, "\"temperature\": 0.25, \"stream\""},
        {VP_CHAT_COMPLETIONS, "temperature", "0.5", VP_OK, "\"temperature\": 0.5, \"stream\""},
        {VP_CHAT_COMPLETIONS, "model", "other model", VP_OK, "{\"model\": \"other model\", \"messages\""},
        {VP_CHAT_COMPLETIONS, "model", "\"quoted\"", VP_OK, "{\"model\": \"quoted\", \"messages\""},
        {VP_CHAT_COMPLETIONS, "stream_options", "null", VP_OK, "\"stream_options\": null}"},
        {VP_CHAT_COMPLETIONS, "stream_options.x", "", VP_OK, "{\"include_usage\": true, \"x\": \"\"}}"},
        {VP_CHAT_COMPLETIONS, "messages[0].content[0].image_url.detail", "\"low\"", VP_OK, "Zm9vYmFy\", \"detail\": \"low\"}}"},
        {VP_CHAT_COMPLETIONS, "messages[*].content[*].uuid", "7", VP_OK, "\"uuid\": 7}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
            "\"data:image/png;base64,Zm9vYmFy\"}, \"uuid\": 7}, {\"type\": \"text\", \"text\": \"What is \\\"this\\\"?\", \"uuid\": 7}]"},
        {VP_CHAT_COMPLETIONS, "image_url.detail", "high", VP_OK, "Zm9vYmFy\", \"detail\": \"high\"}}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
            "\"data:image/png;base64,Zm9vYmFy\", \"detail\": \"high\"}}, {\"type\": \"text\", \"text\": \"What is \\\"this\\\"?\"}]"},
        {VP_CHAT_RESPONSES, "image_url.detail", "high", VP_OK, "Zm9vYmFy\", \"detail\": \"high\"}, {\"type\": \"input_image\""},
        {VP_CHAT_OLLAMA, "options.num_ctx", "4096", VP_OK, "\"options\": {\"temperature\": 0, \"num_ctx\": 4096}"},
        {VP_CHAT_OLLAMA, "messages[0].images[1]", "x", VP_OK, "\"images\": [\"Zm9vYmFy\", \"x\"]"},
        {VP_CHAT_COMPLETIONS, "image_url", "1", VP_OK, ", \"image_url\": 1}"},
        {VP_CHAT_COMPLETIONS, "\xc3\xa9", "1", VP_OK, ", \"\xc3\xa9\": 1}"},
        {VP_CHAT_COMPLETIONS, "messages[1].role", "x", VP_ERR_NOT_FOUND, NULL},
        {VP_CHAT_COMPLETIONS, "new[0]", "x", VP_ERR_NOT_FOUND, NULL},
        {VP_CHAT_COMPLETIONS, "messages[999999999].role", "x", VP_ERR_NOT_FOUND, NULL},
        {VP_CHAT_COMPLETIONS, "model.x", "1", VP_ERR_MISMATCH, NULL},
        {VP_CHAT_COMPLETIONS, "messages.role", "1", VP_ERR_MISMATCH, NULL},
        {VP_CHAT_COMPLETIONS, "stream_options[0]", "1", VP_ERR_MISMATCH, NULL},
        {VP_CHAT_COMPLETIONS, "stream_options[*]", "1", VP_ERR_MISMATCH, NULL},
        {VP_CHAT_OLLAMA, "image_url.detail", "high", VP_ERR_MISMATCH, NULL},
        {VP_CHAT_COMPLETIONS, "", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, NULL, "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a", NULL, VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a", "\xff", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "\xff", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a.", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, ".a", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a..b", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "[0]", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[]", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[0", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[-1]", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[*", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[99999999999]", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "messages[0]x", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.1.2.3.4.5.6.7", "1", VP_ERR_FORMAT, NULL},
        {VP_CHAT_COMPLETIONS, "a", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", VP_ERR_RANGE, NULL}};
    const vp_chat_image images[2] = {small_image, small_image};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vp_chat_knob knob;
        vp_chat_request request = request_of(images, 2);
        vp_error error = {VP_OK, 0, "", ""};
        char *body = NULL;
        size_t bytes = 0;
        check_case("knob %s=%s", cases[i].path ? cases[i].path : "NULL", cases[i].value ? cases[i].value : "NULL");
        knob.path = cases[i].path;
        knob.value = cases[i].value;
        request.knobs = &knob;
        request.knob_count = 1;
        CHECK_INT(vp_chat_body((vp_chat_api)cases[i].api, &request, &body, &bytes, &error), cases[i].result);
        CHECK((body != NULL) == (cases[i].result == VP_OK));
        if (body && !CHECK(strstr(body, cases[i].part) != NULL)) printf("  %s\n", body);
        if (body) CHECK(strlen(body) == bytes && vp_json_parse(body, bytes, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
        if (cases[i].result != VP_OK) CHECK_TEXT(error.where, cases[i].path ? cases[i].path : "path");
        free(body);
    }
    {
        static const vp_chat_knob several[] = {{"a", "{}"}, {"a.b", "1"}, {"a.c", "2"}, {"a.b", "3"}};
        vp_chat_request request = request_of(NULL, 0);
        check_case("knobs are set in order");
        request.knobs = several;
        request.knob_count = 4;
        check_body(VP_CHAT_OLLAMA, &request, "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"What is \\\"this\\\"?\"}], "
                   "\"options\": {\"temperature\": 0}, \"stream\": true, \"a\": {\"b\": 3, \"c\": 2}}");
    }
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
    static const struct { const char *name, *text, *want; } cases[] = {
        {"LF", "data: a\n\ndata: b\n\n", "<|a><|b>"},
        {"CR LF", "data: a\r\n\r\ndata: b\r\n\r\n", "<|a><|b>"},
        {"CR", "data: a\r\rdata: b\r\r", "<|a><|b>"},
        {"all of them", "data: a\r\n\ndata: b\n\r\ndata: c\r\rdata: d\n\n", "<|a><|b><|c><|d>"},
        {"comments and pings", ": ping\n\n:\n:\n\ndata: a\n: inside\ndata: b\n\n", "<|a\nb>"},
        {"byte order mark", "\xef\xbb\xbf" "data: a\n\ndata: b\n\n", "<|a><|b>"},
        {"a second mark is a field's", "data: a\n\n\xef\xbb\xbf" "data: b\n\ndata: c\n\n", "<|a><|c>"},
        {"names", "event: x\ndata: a\n\ndata: b\n\nevent: y\n\ndata: c\n\n", "<x|a><|b><|c>"},
        {"a blank is skipped, a second is not", "data:a\n\ndata: b\n\ndata:  c\n\ndata:\td\n\n", "<|a><|b><| c><|\td>"},
        {"several lines", "data: a\ndata\ndata:\ndata: b\n\n", "<|a\n\n\nb>"},
        {"several lines, CR LF", "data: a\r\ndata: b\r\n\r\n", "<|a\nb>"},
        {"empty data", "data\n\ndata:\n\n", "<|><|>"},
        {"unknown fields", "id: 1\nretry: 5\nfoo: bar\ndatax: 1\n data: 2\nDATA: 3\ndata: a\n\n", "<|a>"},
        {"colons", "data: a:b: c\n\ndata::\n\n", "<|a:b: c><|:>"},
        {"the last is not ended", "data: a\n\ndata: b\n", "<|a>"},
        {"older llama.cpp", "error: {\"code\":500}\n\n", "<error|{\"code\":500}>"},
        {"line ends of Unicode are text", "data: \xe2\x80\xa8\xc2\x85\x0b\x0c\n\n", "<|\xe2\x80\xa8\xc2\x85\x0b\x0c>"},
        {"a long name", "event: 1234567890123456789012345678901234567890123456789012345678901234567890\ndata: a\n\n",
            "<123456789012345678901234567890123456789012345678901234567890123|a>"},
        {"only line ends", "\n\r\r\n\n\n\r", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t bytes = strlen(cases[i].text);
        check_case("events: %s", cases[i].name);
        for (size_t cut = 0; cut <= bytes + 3; cut++) { /* every split into two, then pieces of 1, 2 and 3 */
            struct heard heard = {"", 0, VP_OK};
            vp_sse sse;
            vp_sse_init(&sse, 1000, hear, &heard);
            CHECK_INT(feed_events(&sse, cases[i].text, bytes, cut > bytes ? cut - bytes : 0, cut), VP_OK);
            CHECK_TEXT(heard.text, cases[i].want);
            vp_sse_free(&sse);
        }
    }
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
struct answer { const char *name; int api; const char *type, *text, *want; };
static const struct answer answers[] = {
    {"vLLM: roles, CR LF, usage at the end", VP_CHAT_COMPLETIONS, "text/event-stream; charset=utf-8",
        "data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
        "\"finish_reason\":null}]}\r\n\r\n"
        "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":null}]}\r\n\r\n"
        "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \xc3\xa9\xf0\x9f\x98\x80\\u00e9\\n\"},\"finish_reason\":null}]}\r\n\r\n"
        "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\",\"stop_reason\":null}]}\r\n\r\n"
        "data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":298,\"total_tokens\":300,\"completion_tokens\":2,"
        "\"prompt_tokens_details\":{\"cached_tokens\":16,\"image_tokens\":256}}}\r\n\r\ndata: [DONE]\r\n\r\n",
        "0 Hello \xc3\xa9\xf0\x9f\x98\x80\xc3\xa9\n||length|m|298 2 256 16 -1|-|2 pieces streamed complete|-"},
    {"vLLM 0.32: image tokens by modality", VP_CHAT_COMPLETIONS, "application/json",
        "{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":370,\"completion_tokens\":1,"
        "\"prompt_tokens_details\":{\"cached_tokens\":0,\"created_cache_tokens\":256,\"multimodal_tokens\":{\"image\":336}}}}",
        "0 a||stop|-|370 1 336 0 -1|-|1 pieces complete|-"},
    {"llama.cpp: pings, timings, no cached_tokens", VP_CHAT_COMPLETIONS, "text/event-stream",
        ":\n\ndata: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"model\":\"g\"}\n\n:\n\n"
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"
        "data: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1,\"prompt_tokens\":289},\"timings\":{\"cache_n\":288,\"prompt_n\":1,"
        "\"prompt_ms\":7.5,\"predicted_n\":1}}\n\n"
        "data: [DONE]\n\n",
        "0 a||stop|g|289 1 -1 288 -1|{\"cache_n\":288,\"prompt_n\":1,\"prompt_ms\":7.5,\"predicted_n\":1}|1 pieces streamed complete|-"},
    {"llama.cpp without usage: the timings count", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"finish_reason\":\"stop\",\"delta\":{\"content\":\"a\"}}],\"timings\":{\"cache_n\":8,\"prompt_n\":10,\"predicted_n\":3}}\n\n",
        "0 a||stop|-|18 3 -1 8 -1|{\"cache_n\":8,\"prompt_n\":10,\"predicted_n\":3}|1 pieces streamed complete|-"},
    {"reasoning under two names, usage with each piece", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"think\"}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n"
        "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"ing\",\"reasoning\":\"ing\"}}],\"usage\":{\"prompt_tokens\":5,"
        "\"completion_tokens\":2,\"prompt_tokens_details\":null}}\n\n"
        "data: {\"choices\":[{\"delta\":{\"content\":\"yes\",\"reasoning_content\":null}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,"
        "\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\ndata: [DONE]\n\n",
        "0 yes|thinking|-|-|5 3 -1 -1 2|-|3 pieces streamed complete|-"},
    {"of several counts the last ones", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
        "data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: {\"choices\":[],\"usage\":null}\n\ndata: [DONE]\n\n",
        "0 ||-|-|-1 3 -1 -1 -1|-|0 pieces streamed complete|-"},
    {"only the first of several choices", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"content\":\"yes\"}}]}\n\ndata: [DONE]\n\ndata: "
        "{\"error\":\"late\"}\n\n",
        "0 yes||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"no type: told by the first byte", VP_CHAT_COMPLETIONS, NULL, "\r\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
        "0 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"a mark before the first event", VP_CHAT_COMPLETIONS, NULL, "\xef\xbb\xbf" "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
        "0 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"in one piece", VP_CHAT_COMPLETIONS, "application/json",
        " {\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"A \\u0000b\",\"reasoning_content\":\"r\"},"
        "\"finish_reason\":\"stop\"}],"
        "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":0}},\"metrics\":{\"ttft\":1}}\n",
        "0 A |r|stop|m|7 2 -1 0 -1|{\"ttft\":1}|1 pieces complete|-"},
    {"in one piece, content in parts", VP_CHAT_COMPLETIONS, "application/json",
        "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"A\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"B\"}]},"
        "\"finish_reason\":null}]}",
        "0 AB||-|-|-1 -1 -1 -1 -1|-|1 pieces complete|-"},
    {"an empty answer that is whole", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":"
        "{\"prompt_tokens\":4,\"completion_tokens\":0}}\n\ndata: [DONE]\n\n", "0 ||stop|-|4 0 -1 -1 -1|-|0 pieces streamed complete|-"},
    {"a refusal is an answer", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"}}]}\n\ndata: [DONE]\n\n", "0 No.||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"an error in the stream, an object", VP_CHAT_COMPLETIONS, "text/event-stream",
        "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: {\"error\":{\"object\":\"error\",\"message\":\"out of\\nmemory\",\"code\":500}}\n\n",
        "0 half||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed|out of?memory"},
    {"an error in the stream, a text; TGI", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"error\":\"Input validation error\",\"error_type\":\"validation\"}\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|Input validation error"},
    {"an error in the stream, a number", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"error\":[500, \"x\"]}\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|[500, \"x\"]"},
    {"the first error counts", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"error\":\"one\"}\n\ndata: {\"error\":\"two\"}\n\ndata: [DONE]\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed complete|one"},
    {"an event called error", VP_CHAT_COMPLETIONS, "text/event-stream", "event: error\ndata: {\"message\":\"busy\"}\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|busy"},
    {"an event called error, words", VP_CHAT_COMPLETIONS, "text/event-stream", "event: error\ndata: out\ndata: of order \xff\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|out?of order ?"},
    {"an error as older llama.cpp sends it", VP_CHAT_COMPLETIONS, "text/event-stream", "error: {\"code\":500,\"message\":\"slot\"}\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|slot"},
    {"an error in one piece under the stream's type", VP_CHAT_COMPLETIONS, "text/event-stream", "{\"error\":{\"message\":\"no\"}}",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|no"},
    {"error null is none", VP_CHAT_COMPLETIONS, "application/json", "{\"error\":null,\"choices\":[{\"message\":{\"content\":\"x\"}}]}",
        "0 x||-|-|-1 -1 -1 -1 -1|-|1 pieces complete|-"},
    {"responses: a stream", VP_CHAT_RESPONSES, "text/event-stream",
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"model\":\"r\"}}\n\n"
        "event: response.reasoning_summary_text.delta\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"hm\"}\n\n"
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}\n\n"
        "data: {\"type\":\"response.output_text.delta\",\"delta\":\"lo\"}\n\ndata: {\"type\":\"response.output_text.done\",\"text\":\"Hello\"}\n\n"
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"error\":null,\"model\":\"r\",\"output\":[{\"type\":\"message\",\"content\":"
        "[{\"type\":\"output_text\",\"text\":\"Hello\"}]}],\"usage\":{\"input_tokens\":9,\"output_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":1},"
        "\"output_tokens_details\":{\"reasoning_tokens\":1}}}}\n\n",
        "0 Hello|hm|completed|r|9 3 -1 1 1|-|3 pieces streamed complete|-"},
    {"responses: cut off by max_output_tokens, all text at the end", VP_CHAT_RESPONSES, "text/event-stream",
        "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":"
        "[{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"s\"}]},{\"type\":\"message\","
        "\"content\":[{\"type\":\"output_text\",\"text\":\"T\"}]}]}}\n\n",
        "0 T|s|max_output_tokens|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"responses: failed", VP_CHAT_RESPONSES, "text/event-stream",
        "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"sorry\"}}}\n\n",
        "0 ||failed|-|-1 -1 -1 -1 -1|-|0 pieces streamed|sorry"},
    {"responses: an error event", VP_CHAT_RESPONSES, "text/event-stream", "event: error\ndata: {\"type\":\"error\",\"code\":\"x\","
        "\"message\":\"gone\",\"param\":null}\n\n",
        "0 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|gone"},
    {"responses: in one piece", VP_CHAT_RESPONSES, "application/json",
        "{\"status\":\"completed\",\"model\":\"r\",\"error\":null,\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"One\"}]}],"
        "\"usage\":{\"input_tokens\":2,\"output_tokens\":1}}", "0 One||completed|r|2 1 -1 -1 -1|-|1 pieces complete|-"},
    {"ollama: a stream", VP_CHAT_OLLAMA, "application/x-ndjson",
        "{\"model\":\"o\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"t\"},\"done\":false}\n{\"model\":\"o\","
        "\"message\":{\"content\":\"Hi\"},\"done\":false}\r\n\n"
        "{\"model\":\"o\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"total_duration\":90,\"load_duration\":1,\"prompt_eval_count\":12,"
        "\"prompt_eval_duration\":50,\"eval_count\":2,\"eval_duration\":30}",
        "0 Hi|t|stop|o|12 2 -1 -1 -1|{\"total_duration\": 90, \"load_duration\": 1, \"prompt_eval_duration\": 50, \"eval_duration\": 30}|2 pieces streamed complete|-"},
    {"ollama: in one piece", VP_CHAT_OLLAMA, "application/json; charset=utf-8",
        "{\"model\":\"o\",\"message\":{\"content\":\"Hi\"},\"done\":true,\"eval_count\":2}", "0 Hi||-|o|-1 2 -1 -1 -1|-|1 pieces complete|-"},
    {"ollama: an error in the stream", VP_CHAT_OLLAMA, "Application/X-NDJSON", "{\"message\":{\"content\":\"H\"},\"done\":false}\n{\"error\":\"model "
        "runner stopped\"}\n",
        "0 H||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed|model runner stopped"},
    {"ollama: an answer of chat completions", VP_CHAT_OLLAMA, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    /* replies that are not answers */
    {"nothing", VP_CHAT_COMPLETIONS, "text/event-stream", " \n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"a page", VP_CHAT_COMPLETIONS, "text/html", "<html>502</html>", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"words", VP_CHAT_COMPLETIONS, "text/plain", "Internal Server Error", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"a list", VP_CHAT_COMPLETIONS, "application/json", "[1]", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"an object of another kind", VP_CHAT_COMPLETIONS, "application/json", "{\"object\":\"list\"}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"no choices", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[]}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"two objects", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[]} {}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"half an object", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"an event that is no JSON", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {oops\n\ndata: [DONE]\n\n",
        "-3 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed|-"},
    {"no UTF-8", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n", "-3 ||-|-|-1 -1 -1 -1 "
        "-1|-|0 pieces streamed|-"},
    {"a stream that breaks off", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
        "-3 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed|-"},
    {"choices no list", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":{}}\n\n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"a choice no object", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[1]}\n\n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"delta no object", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":\"x\"}]}\n\n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"content a number", VP_CHAT_COMPLETIONS, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":5}}]}\n\n", "-3 ||-|-|-1 -1 -1 -1 "
        "-1|-|0 pieces streamed|-"},
    {"content a list of numbers", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{\"content\":[5]}}]}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"finish_reason a number", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{},\"finish_reason\":5}]}", "-3 ||-|-|-1 -1 -1 -1 "
        "-1|-|0 pieces complete|-"},
    {"index below 0", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"index\":-1,\"message\":{}}]}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"usage no object", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{}}],\"usage\":3}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"a count below 0", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":-5}}",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"a count with a fraction", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{}}],\"usage\":{\"completion_tokens\":1.5}}",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"a count above 64 bits", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{}}],\"usage\":{\"completion_tokens\":1e30}}",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"the largest counts", VP_CHAT_COMPLETIONS, "application/json",
        "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":2147483647,\"completion_tokens\":2147483647,"
        "\"prompt_tokens_details\":{\"image_tokens\":2147483647}}}",
        "0 ||-|-|2147483647 2147483647 2147483647 -1 -1|-|0 pieces complete|-"},
    {"a count above 31 bits", VP_CHAT_COMPLETIONS, "application/json", "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":2147483648}}",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"image tokens above 31 bits", VP_CHAT_COMPLETIONS, "application/json",
        "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens_details\":{\"image_tokens\":9223372036854775807}}}",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces complete|-"},
    {"counts whose sum is above 31 bits", VP_CHAT_COMPLETIONS, "application/json",
        "{\"choices\":[{\"message\":{}}],\"timings\":{\"prompt_n\":2147483647,\"cache_n\":1}}",
        "-3 ||-|-|-1 -1 -1 1 -1|{\"prompt_n\":2147483647,\"cache_n\":1}|0 pieces complete|-"},
    {"ollama: a count above 31 bits; durations are ns and may be", VP_CHAT_OLLAMA, "application/x-ndjson",
        "{\"message\":{\"content\":\"\"},\"done\":true,\"total_duration\":90000000000,\"eval_count\":4294967296}\n",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed complete|-"},
    {"ollama: durations of minutes", VP_CHAT_OLLAMA, "application/x-ndjson",
        "{\"message\":{\"content\":\"\"},\"done\":true,\"total_duration\":90000000000}\n",
        "0 ||-|-|-1 -1 -1 -1 -1|{\"total_duration\": 90000000000}|0 pieces streamed complete|-"},
    {"nested too deep", VP_CHAT_COMPLETIONS, "application/json", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "-1 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"responses: an event without a type", VP_CHAT_RESPONSES, "text/event-stream", "data: {}\n\n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"responses: a delta of another kind", VP_CHAT_RESPONSES, "text/event-stream", "data: {\"type\":\"response.output_text.delta\",\"delta\":{}}\n\n",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"responses: completed without a response", VP_CHAT_RESPONSES, "text/event-stream", "data: {\"type\":\"response.completed\"}\n\n",
        "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"responses: output no list", VP_CHAT_RESPONSES, "application/json", "{\"status\":\"completed\",\"output\":5}", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces|-"},
    {"ollama: message no object", VP_CHAT_OLLAMA, "application/x-ndjson", "{\"message\":\"x\",\"done\":true}\n", "-3 ||-|-|-1 -1 -1 -1 -1|-|0 pieces streamed|-"},
    {"ollama: a duration of words", VP_CHAT_OLLAMA, "application/x-ndjson", "{\"message\":{\"content\":\"x\"},\"done\":true,\"eval_duration\":\"5\"}\n",
        "-3 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed complete|-"},
    {"ollama: a line that is no JSON", VP_CHAT_OLLAMA, "application/x-ndjson", "{\"message\":{\"content\":\"x\"}}\nnope\n", "-3 x||-|-|-1 -1 -1 -1 "
        "-1|-|1 pieces streamed|-"},
    {"ollama: a stream that breaks off", VP_CHAT_OLLAMA, "application/x-ndjson", "{\"message\":{\"content\":\"x\"},\"done\":false}\n",
        "-3 x||-|-|-1 -1 -1 -1 -1|-|1 pieces streamed|-"}};
static void test_answers(void) {
    static char text[4000];
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct answer *answer = &answers[i];
        const size_t bytes = strlen(answer->text);
        check_case("answer: %s", answer->name);
        for (size_t cut = 0; cut <= bytes + 3; cut++) { /* every split into two, then pieces of 1, 2 and 3 */
            vp_chat_reply reply;
            vp_error error = {VP_OK, 0, "", ""};
            const long before = held;
            CHECK_INT(vp_chat_reply_begin(&reply, (vp_chat_api)answer->api, answer->type, 4000), VP_OK);
            vp_result result = feed_reply(&reply, answer->text, bytes, cut > bytes ? cut - bytes : 0, cut, &error);
            CHECK_TEXT(summary_of(&reply, result, text, sizeof text), answer->want);
            CHECK(error.code == result && (result == VP_OK || error.text[0]));
            CHECK_INT(vp_chat_reply_feed(&reply, "x", result != VP_OK, 1, NULL), result); /* the result that ended the reply is kept */
            vp_chat_reply_free(&reply);
            CHECK(!reply.text && !reply.pieces && !reply.state && held == before);
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
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
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
    test_names();
    test_base64();
    test_bodies();
    test_wrong_requests();
    test_knobs();
    test_events();
    test_answers();
    test_times();
    test_limits();
    test_refusals();
    test_memory();
    return check_done("test_chat");
}
