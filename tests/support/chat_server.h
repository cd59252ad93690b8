/* chat_server.h: a chat server for tests that gives the same answer to requests of the same model and length. It has two models, knobs that it rejects, and behaviour
 * that a test switches on. One request at a time. Include it after check.h; it needs only what hostile_server.h defines. */
#ifndef CHAT_SERVER_H
#define CHAT_SERVER_H
#include "hostile_server.h"

static struct {
    int piece_ms;      /* pause before each piece */
    int is_cached;     /* usage says that the whole prompt came from a cache */
    int broken_every;  /* every N-th answer breaks off in the middle; 0: none */
    int broken_from;   /* all answers from this one on break off; 0: none */
    int nonsense_from; /* from this answer on no JSON; 0: never */
    int is_silent;     /* usage is missing */
    int image_tokens;  /* of each image; 0: counts depend on the body's size */
    int dropped_every; /* every N-th image is dropped; 0: none */
    const char *metrics; /* members of vLLM's "metrics"; NULL: llama.cpp's timings */
    int answers;       /* so far */
} chat;

#define CHAT_EVENT(...) snprintf(text[used++], sizeof text[0], __VA_ARGS__)
static _Thread_local hostile_step chat_steps[24];
static inline hostile_reply chat_json(const char *status, const char *body) {
    static _Thread_local char reply[2048];
    snprintf(reply, sizeof reply, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
    chat_steps[0] = (hostile_step){HOSTILE_SEND, reply, 0};
    chat_steps[1] = (hostile_step){HOSTILE_KEEP, NULL, 0};
    return chat_steps;
}
static inline hostile_reply chat_choose(hostile_server *server) {
    static const char *const words[] = {"bus", "blue", "red bus", "car"};
    static _Thread_local char text[8][1024]; /* an abandoned connection may still be answered */
    const char *word, *model = strstr(server->request_body, "\"model-b\"") ? "model-b" : "model-a";
    const int is_b = !strcmp(model, "model-b");
    int used = 0, step = 0, tokens;
    if (!strncmp(server->request, "GET /v1/models", 14)) return chat_json("200 OK", "{\"object\": \"list\", \"data\": [{\"id\": \"model-a\"}, {\"id\": \"model-b\"}]}");
    if (!strncmp(server->request, "GET /props", 10)) return chat_json("200 OK", "{\"build_info\": \"b7-scripted\"}");
    if (strncmp(server->request, "POST /v1/chat/completions", 25)) return chat_json("404 Not Found", "{\"error\": {\"message\": \"nothing here\"}}");
    if (strstr(server->request_body, "\"refused\"")) return chat_json("400 Bad Request", "{\"error\": {\"message\": \"detail refused is none\"}}");
    chat.answers++;
    if (chat.nonsense_from && chat.answers >= chat.nonsense_from) return chat_json("200 OK", "{\"choices\": 7}");
    word = words[(server->request_body_bytes + (size_t)is_b) % 4];
    tokens = 20 + (int)(server->request_body_bytes % 97) * (is_b ? 2 : 1);
    const int is_dropped = chat.dropped_every && chat.answers % chat.dropped_every == 0;
    if (chat.image_tokens) tokens = 16 + (strstr(server->request_body, "image_url") && !is_dropped ? chat.image_tokens : 0);
    CHAT_EVENT("data: {\"model\":\"%s\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n", model);
    for (int i = 0; i < (is_b ? 3 : 2); i++)
        CHAT_EVENT("data: {\"model\":\"%s\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":null}]}\n\n", model, i ? " " : word);
    CHAT_EVENT("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    if (!chat.is_silent)
        CHAT_EVENT("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d,"
                   "\"image_tokens\":%d}},\"%s\":{%s}}\n\n",
                   tokens, is_b ? 3 : 2, chat.is_cached ? tokens - 1 : 3, tokens - 12, chat.metrics ? "metrics" : "timings",
                   chat.metrics ? chat.metrics : "\"prompt_ms\":1.5");
    CHAT_EVENT("data: [DONE]\n\n");
    chat_steps[step++] = (hostile_step){HOSTILE_SEND, HOSTILE_CHUNKED, 0};
    for (int i = 0; i < used; i++) {
        if (chat.piece_ms) chat_steps[step++] = (hostile_step){HOSTILE_WAIT, NULL, chat.piece_ms};
        if (i == 2 && ((chat.broken_every && chat.answers % chat.broken_every == 0) || (chat.broken_from && chat.answers >= chat.broken_from))) {
            chat_steps[step] = (hostile_step){HOSTILE_RESET, NULL, 0};
            return chat_steps;
        }
        chat_steps[step++] = (hostile_step){HOSTILE_CHUNK, text[i], 0};
    }
    chat_steps[step++] = (hostile_step){HOSTILE_CHUNK, "", 0};
    chat_steps[step] = (hostile_step){HOSTILE_KEEP, NULL, 0};
    return chat_steps;
}
static inline void chat_start(hostile_server *server) {
    static const hostile_step none[] = {{HOSTILE_CLOSE, NULL, 0}};
    static const hostile_reply replies[] = {none};
    memset(&chat, 0, sizeof chat);
    hostile_start(server, replies, 1);
    server->choose = chat_choose;
}
#endif
