/* read_message.c: records that are messages: OpenAI, LLaVA, AIPerf, vLLM. */
#include "formats/table.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Decodes "data:MIME;base64,..". Returns 0 if it is not base64. */
static int take_data_url(struct row *row, const char *url, struct example *example) {
    const char *comma = strchr(url, ',');
    size_t bytes;
    unsigned char *data;
    if (!comma || comma - url < 7 || strncasecmp(comma - 7, ";base64", 7)) return 0;
    if ((data = base64_decode(comma + 1, strlen(comma + 1), &bytes)) == NULL) return 0;
    example_add_picture(example)->blob = row_take_blob(row, data, bytes);
    return 1;
}
/* Adds a picture given as a data: URL, a file: URL or a path. A web address is added to `urls`, and the record
 * fails. */
static void take_url(struct row *row, const char *url, struct text_list *urls, struct example *example) {
    if (!strncmp(url, "data:", 5)) {
        if (!take_data_url(row, url, example)) example_fail(example, "picture %zu: its data: URL is not base64",
                                                            example->picture_count + 1);
    } else if (!strncasecmp(url, "http://", 7) || !strncasecmp(url, "https://", 8)) {
        text_list_copy(urls, url);
        example_fail(example,
                     "picture \"%.200s\" is on the web, but vlmprof does not download: fetch it (curl -O URL) and give "
                     "the file instead",
                     url);
    } else if (!strncmp(url, "file://", 7)) {
        add_path(example, copy_text(url + 7, strlen(url + 7)));
        example->pictures[example->picture_count - 1].hides_path = 1;
    } else add_path(example, copy_text(url, strlen(url)));
}

/* ---- OpenAI */
static void read_content(struct row *row, uint32_t content, struct text_list *urls, struct example *example) {
    const vp_json *json = &row->parsed.json;
    char *text = node_text(json, content);
    if (text) example_add_text(example, text, strlen(text));
    free(text);
    if (!node_is(json, content, VP_JSON_ARRAY)) return;
    for (uint32_t i = content + 1; i < json->nodes[content].end; i = json->nodes[i].end) {
        uint32_t image = node_is(json, i, VP_JSON_OBJECT) ? vp_json_get(json, i, "image_url") : VP_JSON_NONE;
        char *url, *piece = node_is(json, i, VP_JSON_OBJECT) ? member_text(json, i, "text") : node_text(json, i);
        if (piece) example_add_text(example, piece, strlen(piece));
        else if (image == VP_JSON_NONE)
            example_fail(example, "a part of a message has neither \"text\" nor \"image_url\"");
        free(piece);
        if (image == VP_JSON_NONE) continue;
        url = node_is(json, image, VP_JSON_OBJECT) ? member_text(json, image, "url") : node_text(json, image);
        example_add_place(example, example->picture_count + urls->count);
        if (url) take_url(row, url, urls, example);
        else example_fail(example, "an \"image_url\" has no \"url\"");
        free(url);
    }
}
static int is_role(const vp_json *json, uint32_t message, const char *role) {
    return node_is(json, message, VP_JSON_OBJECT) && vp_json_equals(json, vp_json_get(json, message, "role"), role);
}
/* The text of a message, with its parts joined. */
static char *message_text(const vp_json *json, uint32_t message) {
    uint32_t content = vp_json_get(json, message, "content");
    struct text_buffer out = {NULL, 0, 0};
    if (!node_is(json, content, VP_JSON_ARRAY)) return node_text(json, content);
    text_add_string(&out, "");
    for (uint32_t i = content + 1; i < json->nodes[content].end; i = json->nodes[i].end) {
        char *piece = node_is(json, i, VP_JSON_OBJECT) ? member_text(json, i, "text") : NULL;
        if (piece) text_add_string(&out, piece);
        free(piece);
    }
    return out.data;
}
/* Reads the last user message as the question; an assistant message after it is the reference. */
static void read_openai(struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    struct text_list urls = {NULL, 0};
    uint32_t body = vp_json_get(json, 0, "body"), messages, asked = VP_JSON_NONE, answer = VP_JSON_NONE;
    char *system = NULL;
    if (!node_is(json, body, VP_JSON_OBJECT)) body = 0;
    set_id(example, json, has_value(json, 0, "custom_id") ? "custom_id" : "id", index);
    messages = vp_json_get(json, body, "messages");
    for (uint32_t i = messages + 1; node_is(json, messages, VP_JSON_ARRAY) && i < json->nodes[messages].end;
         i = json->nodes[i].end) {
        if (is_role(json, i, "user")) {
            asked = i;
            answer = VP_JSON_NONE;
        } else if (is_role(json, i, "assistant")) answer = i;
        else if (is_role(json, i, "system") || is_role(json, i, "developer")) {
            free(system);
            system = message_text(json, i);
        }
    }
    if (asked == VP_JSON_NONE) example_fail(example, "\"messages\" has no message with the role \"user\"");
    else read_content(row, vp_json_get(json, asked, "content"), &urls, example);
    if (answer != VP_JSON_NONE) {
        char *text = message_text(json, answer);
        if (text) text_list_take(&example->answers, text);
    }
    example->has_answers = 1;
    int64_t limit = node_int(json, body, "max_tokens", node_int(json, body, "max_completion_tokens", -1));
    if (limit >= 0) example_more_int(example, "max_new_tokens", limit);
    else example_more_text(example, "max_new_tokens", NULL);
    example_more_text(example, "system", system);
    if (urls.count) example_more_list(example, "image_urls", &urls);
    text_list_free(&urls);
    free(system);
}

/* ---- LLaVA */
/* Adds a piece of text without newlines around it. */
static void add_trimmed(struct example *example, const char *text, size_t bytes) {
    while (bytes && *text == '\n') {
        text++;
        bytes--;
    }
    while (bytes && text[bytes - 1] == '\n') bytes--;
    example_add_text(example, text, bytes);
}
static void cut_turn(struct example *example) {
    static const char mark[] = "<image>";
    struct text_buffer question = {NULL, 0, 0};
    const char *at = example->question, *found, *end;
    size_t marks = 0, places = 0;
    for (const char *scan = at; (found = strstr(scan, mark)) != NULL; scan = found + strlen(mark)) marks++;
    if (marks > example->picture_count)
        example_fail(example, "its "
                              "text has <image> %zu times, but there are %zu pictures", marks, example->picture_count);
    for (; places + marks < example->picture_count; places++) example_add_place(example, places);
    text_add_string(&question, "");
    while ((found = strstr(at, mark)) != NULL) {
        add_trimmed(example, at, (size_t)(found - at));
        text_add(&question, at, (size_t)(found - at));
        example_add_place(example, places++);
        at = found + strlen(mark);
    }
    add_trimmed(example, at, strlen(at));
    text_add_string(&question, at);
    at = question.data;
    end = at + strlen(at);
    while (at < end && strchr(" \n\r\t", *at)) at++;
    while (end > at && strchr(" \n\r\t", end[-1])) end--;
    example->prompt = copy_text(at, (size_t)(end - at));
    example->shows_prompt = 1;
    free(question.data);
}
static void read_llava(const struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    uint32_t turns = vp_json_get(json, 0, "conversations");
    struct text_list images = {NULL, 0};
    int64_t count = 0;
    set_id(example, json, "id", index);
    read_texts(json, vp_json_get(json, 0, "image"), &images);
    for (size_t i = 0; i < images.count; i++) add_path(example, copy_text(images.items[i], strlen(images.items[i])));
    text_list_free(&images);
    for (uint32_t i = turns + 1; node_is(json, turns, VP_JSON_ARRAY) && i < json->nodes[turns].end;
         i = json->nodes[i].end) {
        char *from = node_is(json, i, VP_JSON_OBJECT) ? member_text(json, i, "from") : NULL;
        if (from && (!strcmp(from, "human") || !strcmp(from, "user"))) {
            if (!count++) example->question = member_text(json, i, "value");
        } else if (from && count == 1 && !example->answers.count &&
                   (!strcmp(from, "gpt") || !strcmp(from, "assistant"))) {
            char *value = member_text(json, i, "value");
            if (value) text_list_take(&example->answers, value);
        }
        free(from);
    }
    example->has_answers = 1;
    example->shows_raw = 1;
    example_more_int(example, "turns", count);
    if (example->question) cut_turn(example);
    else example_fail(example, "\"conversations\" has no turn \"from\": \"human\" with a text");
}

/* ---- AIPerf */
/* Reads texts under `one` or `many`: a text, a list of texts, or a list of {name, contents: [..]}. */
static void read_media(const vp_json *json, uint32_t object, const char *one, const char *many, struct text_list *list,
                       struct example *example) {
    uint32_t node = vp_json_get(json, object, many);
    if (has_value(json, object, one) && has_value(json, object, many))
        example_fail(example, "\"%s\" and \"%s\" are both set: AIPerf accepts only one", one, many);
    if (has_value(json, object, one)) read_texts(json, vp_json_get(json, object, one), list);
    for (uint32_t i = node + 1; node_is(json, node, VP_JSON_ARRAY) && i < json->nodes[node].end; i = json->nodes[i].end)
        read_texts(json, node_is(json, i, VP_JSON_OBJECT) ? vp_json_get(json, i, "contents") : i, list);
}
static void read_turn(struct row *row, uint32_t turn, int is_single, struct example *example) {
    const vp_json *json = &row->parsed.json;
    struct text_list texts = {NULL, 0}, images = {NULL, 0}, urls = {NULL, 0};
    read_media(json, turn, "text", "texts", &texts, example);
    read_media(json, turn, "image", "images", &images, example);
    for (size_t i = 0; i < images.count; i++) take_url(row, images.items[i], &urls, example);
    if (has_value(json, turn, "timestamp") && has_value(json, turn, "delay"))
        example_fail(example, "\"timestamp\" and \"delay\" are both set: AIPerf accepts only one");
    if (!texts.count && !images.count && !has_value(json, turn, "audio") && !has_value(json, turn, "audios")
        && !has_value(json, turn, "video") && !has_value(json, turn, "videos"))
        example_fail(example, "it has no text and no picture; accepted keys: text, texts, image, images");
    example->shows_prompt = 1;
    if (texts.count <= 1) {
        const char *text = texts.count ? texts.items[0] : "";
        example->question = copy_text(text, strlen(text));
        example_ask(example, FORM_NONE);
    }
    if (is_single) example_more_list(example, "texts", &texts);
    if (is_single && has_value(json, turn, "timestamp"))
        example_more_node(example, "timestamp_ms", json, vp_json_get(json, turn, "timestamp"));
    if (is_single && has_value(json, turn, "delay"))
        example_more_node(example, "delay_ms", json, vp_json_get(json, turn, "delay"));
    if (urls.count) example_more_list(example, "image_urls", &urls);
    text_list_free(&texts);
    text_list_free(&images);
    text_list_free(&urls);
}
static void read_aiperf(struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    uint32_t turns = vp_json_get(json, 0, "turns");
    set_id(example, json, "session_id", index);
    example->has_answers = 1;
    if (!node_is(json, turns, VP_JSON_ARRAY)) read_turn(row, 0, 1, example);
    else {
        example_more_int(example, "turns", json->nodes[turns].count);
        if (json->nodes[turns].count && node_is(json, turns + 1, VP_JSON_OBJECT)) read_turn(row, turns + 1, 0, example);
        else example_fail(example, "\"turns\" is empty");
    }
}

/* ---- vLLM */
/* Reads pictures. A name without file:// is a file next to the data. Only the first one is sent, as in vLLM. */
static void read_vllm(struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    struct text_list files = {NULL, 0}, urls = {NULL, 0};
    int64_t limit = node_int(json, 0, "output_tokens", -1);
    set_id(example, json, "", index);
    example->question = member_text(json, 0, "prompt");
    example->has_answers = 1;
    if (example->question) example_ask(example, FORM_NONE);
    else example_fail(example, "\"prompt\" must be a string");
    if (vp_json_get(json, 0, "image_files") != VP_JSON_NONE) {
        read_texts(json, vp_json_get(json, 0, "image_files"), &files);
        if (files.count) {
            take_url(row, files.items[0], &urls, example);
            if (example->picture_count) example->pictures[0].hides_path = 0;
        }
        example_more_int(example, "unused_images", files.count ? (int64_t)files.count - 1 : 0);
    } else if (limit >= 0) example_more_int(example, "max_new_tokens", limit);
    else example_more_text(example, "max_new_tokens", NULL);
    if (urls.count) example_more_list(example, "image_urls", &urls);
    text_list_free(&files);
    text_list_free(&urls);
}
void read_message_row(const struct table *table, struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    char *image;
    if (table->format == DATA_OPENAI) read_openai(row, index, example);
    else if (table->format == DATA_LLAVA) read_llava(row, index, example);
    else if (table->format == DATA_AIPERF) read_aiperf(row, index, example);
    else if (table->format == DATA_VLLM) read_vllm(row, index, example);
    else { /* LLaVA's questions: the text is the whole prompt */
        set_id(example, json, "question_id", index);
        example->has_answers = 1;
        example->question = member_text(json, 0, "text");
        if (example->question) example_ask(example, FORM_NONE);
        else example_fail(example, "\"text\" must be a string");
        if ((image = member_text(json, 0, "image")) != NULL) add_path(example, image);
    }
}
