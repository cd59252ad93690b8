/* fuzz_chat.c: what a server sends, whole and in pieces: both are read alike, limits are kept, what comes out is well formed. libFuzzer entry.
 * First byte: bits 0-1 the API (2: Ollama's, 3: the rest is a knob, its path and after 0xFF its value), bits 2-3 the content type, bits 4-7 how it is cut. */
#include "fuzz.h"
#include "vlmprof_chat.h"
#include "vlmprof_json.h"

enum { MOST = 600 };
struct said { vp_result result, end; vp_chat_reply reply; };

/* Reads the stream in pieces of 1 to `most` bytes, whose sizes follow from `seed`; most 0: in one. */
static void read_all(struct said *said, vp_chat_api api, const char *type, const char *text, size_t bytes, size_t most, uint32_t seed) {
    vp_error error;
    size_t at = 0;
    int64_t now = 1;
    said->result = VP_OK;
    MUST(vp_chat_reply_begin(&said->reply, api, type, MOST) == VP_OK);
    while (at < bytes && said->result == VP_OK) {
        size_t piece = most ? 1 + seed % most : bytes;
        seed = seed * 1664525u + 1013904223u;
        if (piece > bytes - at) piece = bytes - at;
        char *copy = (char *)malloc(piece);
        MUST(copy != NULL);
        memcpy(copy, text + at, piece);
        said->result = vp_chat_reply_feed(&said->reply, copy, piece, now++, &error);
        free(copy);
        at += piece;
    }
    said->end = vp_chat_reply_end(&said->reply, &error);
    MUST(said->result == VP_OK || said->end == said->result);
    MUST(said->end == VP_OK || said->end == VP_ERR_FORMAT || said->end == VP_ERR_RANGE);
}
static int same_text(const char *left, const char *right) { return left && right ? strcmp(left, right) == 0 : left == right; }
static void must_be_line(const char *text) {
    if (!text) return;
    MUST(vp_utf8_valid_bytes(text, strlen(text)) == strlen(text) && strlen(text) < 4096);
    for (; *text; text++) MUST((unsigned char)*text >= ' ');
}
static void must_be_good(const vp_chat_reply *reply, vp_result end) {
    const int64_t counts[] = {reply->usage.prompt_tokens, reply->usage.completion_tokens, reply->usage.image_tokens,
                              reply->usage.cached_tokens, reply->usage.reasoning_tokens};
    int64_t bytes = 0, last = 0;
    MUST(reply->text_bytes + reply->reasoning_bytes <= MOST && reply->text[reply->text_bytes] == 0 && reply->reasoning[reply->reasoning_bytes] == 0);
    MUST(vp_utf8_valid_bytes(reply->text, reply->text_bytes) == reply->text_bytes);
    MUST(vp_utf8_valid_bytes(reply->reasoning, reply->reasoning_bytes) == reply->reasoning_bytes);
    for (size_t i = 0; i < 5; i++) MUST(counts[i] >= -1);
    for (size_t i = 0; i < reply->piece_count; i++) {
        MUST(reply->pieces[i].at_ns >= last && reply->pieces[i].text_bytes > 0);
        last = reply->pieces[i].at_ns;
        bytes += reply->pieces[i].text_bytes;
    }
    if (end == VP_OK) MUST(bytes == (int64_t)(reply->text_bytes + reply->reasoning_bytes));
    if (reply->piece_count) MUST(reply->first_ns == reply->pieces[0].at_ns && reply->last_ns == last);
    else MUST(reply->first_ns == 0 && reply->last_ns == 0 && reply->first_output_ns == 0);
    if (end == VP_OK) MUST(reply->is_complete || reply->failure);
    must_be_line(reply->finish_reason);
    must_be_line(reply->model);
    must_be_line(reply->failure);
    if (reply->timings) MUST(reply->timings[0] == '{' && vp_json_parse(reply->timings, strlen(reply->timings), NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
}
static void try_stream(unsigned choice, const char *text, size_t bytes) {
    static const char *const types[] = {NULL, "text/event-stream", "application/x-ndjson", "application/json"};
    const char *type = types[choice >> 2 & 3];
    const vp_chat_api api = (choice & 3) == 2 ? VP_CHAT_OLLAMA : VP_CHAT_COMPLETIONS;
    struct said whole, cut;
    read_all(&whole, api, type, text, bytes, 0, 0);
    read_all(&cut, api, type, text, bytes, 1 + (choice >> 4 & 15), choice);
    must_be_good(&whole.reply, whole.end);
    must_be_good(&cut.reply, cut.end);
    MUST(whole.end == cut.end && whole.reply.is_complete == cut.reply.is_complete && whole.reply.is_streamed == cut.reply.is_streamed);
    MUST(whole.reply.text_bytes == cut.reply.text_bytes && memcmp(whole.reply.text, cut.reply.text, cut.reply.text_bytes) == 0);
    MUST(whole.reply.reasoning_bytes == cut.reply.reasoning_bytes && memcmp(whole.reply.reasoning, cut.reply.reasoning, cut.reply.reasoning_bytes) == 0);
    MUST(memcmp(&whole.reply.usage, &cut.reply.usage, sizeof cut.reply.usage) == 0 && whole.reply.piece_count == cut.reply.piece_count);
    MUST(same_text(whole.reply.finish_reason, cut.reply.finish_reason) && same_text(whole.reply.model, cut.reply.model));
    MUST(same_text(whole.reply.timings, cut.reply.timings) && same_text(whole.reply.failure, cut.reply.failure));
    vp_chat_reply_free(&whole.reply);
    vp_chat_reply_free(&cut.reply);
    {
        char words[50];
        vp_chat_failure(text, bytes, words, sizeof words);
        must_be_line(words);
    }
}
/* A body with a knob is JSON, and a knob that is set a second time changes nothing. */
static void try_knob(unsigned choice, const uint8_t *data, size_t bytes) {
    const vp_chat_image images[2] = {{"abc", 3, "image/png"}, {"de", 2, "image/jpeg"}};
    const uint8_t *second;
    size_t second_bytes, first_bytes = fuzz_split(data, bytes, &second, &second_bytes), once_bytes = 0, twice_bytes = 0;
    char *path = (char *)calloc(1, first_bytes + 1), *value = (char *)calloc(1, second_bytes + 1), *once = NULL, *twice = NULL;
    vp_chat_request request = {0};
    vp_chat_knob knobs[2];
    vp_error error;
    vp_result result;
    MUST(path && value);
    memcpy(path, data, first_bytes);
    if (second) memcpy(value, second, second_bytes);
    request.model = "m";
    request.text = "t";
    request.images = images;
    request.image_count = 2;
    request.knobs = knobs;
    request.knob_count = 1;
    knobs[0].path = knobs[1].path = path;
    knobs[0].value = knobs[1].value = value;
    result = vp_chat_body((vp_chat_api)((choice >> 2 & 3) % VP_CHAT_API_LAST_), &request, &once, &once_bytes, &error);
    if (result == VP_OK) {
        const vp_result parsed = vp_json_parse(once, once_bytes, NULL, 0, NULL, NULL, NULL);
        MUST(parsed == VP_ERR_CAPACITY || parsed == VP_ERR_RANGE); /* a deep value in a deep place */
        request.knob_count = 2;
        result = vp_chat_body((vp_chat_api)((choice >> 2 & 3) % VP_CHAT_API_LAST_), &request, &twice, &twice_bytes, &error);
        MUST(result == VP_OK ? twice_bytes == once_bytes && memcmp(once, twice, once_bytes) == 0 : result == VP_ERR_RANGE && !twice);
        free(twice);
    } else {
        MUST(!once && error.code == result && error.text[0]);
    }
    free(once);
    free(path);
    free(value);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (bytes == 0) return 0;
    if ((data[0] & 3) == 3) try_knob(data[0], data + 1, bytes - 1);
    else try_stream(data[0], (const char *)data + 1, bytes - 1);
    return 0;
}
