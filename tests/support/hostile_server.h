/* hostile_server.h: an HTTP server for tests, on a free port of 127.0.0.1, that follows a script. It sends the script's bytes one by one, late, half, wrong or forever,
 * closes and resets. Each request takes the next reply of the script; the last one repeats. One thread per connection. */
#ifndef HOSTILE_SERVER_H
#define HOSTILE_SERVER_H
#include "loopback.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum hostile_act {
    HOSTILE_SEND,    /* text */
    HOSTILE_BYTES,   /* `number` bytes of text */
    HOSTILE_SPLIT,   /* text, each byte a packet */
    HOSTILE_CHUNK,   /* text as a chunk of a chunked body; "" ends the body */
    HOSTILE_REPEAT,  /* text, `number` times */
    HOSTILE_ENDLESS, /* text until the other side has gone */
    HOSTILE_ECHO,    /* the request's headers, with Content-Length and an empty line before them */
    HOSTILE_WAIT,    /* `number` ms, or until the server is stopped */
    HOSTILE_CALL,    /* the result of the server's `call` for the request's body */
    HOSTILE_RESET,   /* a TCP reset */
    HOSTILE_CLOSE,   /* at the end of each reply except those that keep the connection */
    HOSTILE_KEEP     /* the reply is whole: the next request may come */
} hostile_act;
typedef struct hostile_step { hostile_act act; const char *text; int number; } hostile_step;
/* The steps of a reply; the last one is CLOSE, RESET or KEEP. */
typedef const hostile_step *hostile_reply;

/* Writes a whole reply to a request, followed by a NUL. */
typedef void (*hostile_call)(const char *headers, const char *body, char *reply, size_t capacity);

typedef struct hostile_server {
    int port, listening, is_stopped;
    int drop_count;             /* connections that are closed once they are taken */
    const hostile_reply *replies; int reply_count;
    hostile_reply (*choose)(struct hostile_server *server); /* the reply to `request`, instead of the script's */
    int connection_count, request_count, open_count;
    char request[8192];         /* the last one's line and headers */
    size_t request_body_bytes;
    char request_body[8192];    /* its beginning */
    hostile_call call;          /* set after hostile_start and before the first request; NULL: bodies are not kept */
    int sockets[4096];          /* of the open connections */
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t thread;
} hostile_server;
typedef struct hostile_connection { hostile_server *server; int socket; char *body; /* for `call` */ } hostile_connection;

static inline int hostile_count(hostile_server *server, const int *count) {
    pthread_mutex_lock(&server->lock);
    int value = *count;
    pthread_mutex_unlock(&server->lock);
    return value;
}
static inline int hostile_write(int socket, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(socket, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0) return 0;
        text += sent;
        bytes -= (size_t)sent;
    }
    return 1;
}
static inline void hostile_pause(hostile_server *server, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&server->lock);
    while (!server->is_stopped && pthread_cond_timedwait(&server->change, &server->lock, &until) == 0) {}
    pthread_mutex_unlock(&server->lock);
}
/* Reads a request; 0: the other side has gone. */
static inline int hostile_read(hostile_connection *connection, char *headers, size_t capacity, char beginning[8192]) {
    hostile_server *server = connection->server;
    size_t used = 0, body = 0, length = 0;
    char *end = NULL, *field, rest[16384];
    while (!end) {
        const ssize_t got = recv(connection->socket, headers + used, capacity - 1 - used, 0);
        if (got <= 0) return 0; /* also when the headers fill all the room */
        used += (size_t)got;
        headers[used] = 0;
        end = strstr(headers, "\r\n\r\n");
        if (!end && used + 1 == capacity) return 0;
    }
    field = strstr(headers, "Content-Length: ");
    if (field && field < end) length = (size_t)strtoull(field + 16, NULL, 10);
    body = used - (size_t)(end + 4 - headers);
    memcpy(beginning, end + 4, body);
    end[4] = 0;
    beginning[body] = 0;
    if (server->call) {
        connection->body = (char *)realloc(connection->body, length + 1);
        memcpy(connection->body, beginning, body < length ? body : length);
        connection->body[length] = 0;
    }
    while (body < length) {
        const ssize_t got = recv(connection->socket, rest, sizeof rest, 0);
        if (got <= 0) return 0;
        if (server->call && body + (size_t)got <= length) memcpy(connection->body + body, rest, (size_t)got);
        if (body < 8191) { /* as much as there is room for */
            const size_t room = 8191 - body, kept = (size_t)got < room ? (size_t)got : room;
            memcpy(beginning + body, rest, kept);
            beginning[body + kept] = 0;
        }
        body += (size_t)got;
    }
    pthread_mutex_lock(&server->lock);
    memcpy(server->request, headers, (size_t)(end + 5 - headers));
    snprintf(server->request_body, sizeof server->request_body, "%s", beginning);
    server->request_body_bytes = body;
    pthread_mutex_unlock(&server->lock);
    return 1;
}
/* 1: the reply is whole and the connection stays. */
static inline int hostile_follow(hostile_connection *connection, hostile_reply step, const char *headers) {
    const int to = connection->socket;
    char head[64], reply[4096];
    int i, good = 1;
    size_t at;
    for (; good; step++) {
        switch (step->act) {
        case HOSTILE_SEND: good = hostile_write(to, step->text, strlen(step->text)); break;
        case HOSTILE_BYTES: good = hostile_write(to, step->text, (size_t)step->number); break;
        case HOSTILE_SPLIT: for (at = 0; good && step->text[at]; at++) good = hostile_write(to, step->text + at, 1); break;
        case HOSTILE_CHUNK:
            snprintf(head, sizeof head, "%zx\r\n", strlen(step->text));
            good = hostile_write(to, head, strlen(head)) && hostile_write(to, step->text, strlen(step->text)) && hostile_write(to, "\r\n", 2);
            break;
        case HOSTILE_REPEAT: for (i = 0; good && i < step->number; i++) good = hostile_write(to, step->text, strlen(step->text)); break;
        case HOSTILE_ENDLESS: while (hostile_write(to, step->text, strlen(step->text))) {} return 0;
        case HOSTILE_ECHO:
            snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", strlen(headers));
            good = hostile_write(to, head, strlen(head)) && hostile_write(to, headers, strlen(headers));
            break;
        case HOSTILE_CALL:
            connection->server->call(headers, connection->body, reply, sizeof reply);
            good = hostile_write(to, reply, strlen(reply));
            break;
        case HOSTILE_WAIT: hostile_pause(connection->server, step->number); break;
        case HOSTILE_RESET: {
            const struct linger now = {1, 0};
            setsockopt(to, SOL_SOCKET, SO_LINGER, &now, sizeof now);
            return 0;
        }
        case HOSTILE_CLOSE: return 0;
        case HOSTILE_KEEP: return 1;
        }
    }
    return 0;
}
static inline void *hostile_serve(void *argument) {
    hostile_connection *connection = (hostile_connection *)argument;
    hostile_server *server = connection->server;
    char headers[8192], body[8192];
    int is_open = 1, turn;
    while (is_open && hostile_read(connection, headers, sizeof headers, body)) {
        pthread_mutex_lock(&server->lock);
        turn = server->request_count++;
        if (turn >= server->reply_count) turn = server->reply_count - 1;
        pthread_mutex_unlock(&server->lock);
        is_open = hostile_follow(connection, server->choose ? server->choose(server) : server->replies[turn], headers);
    }
    pthread_mutex_lock(&server->lock);
    server->sockets[connection->socket] = 0;
    close(connection->socket);
    server->open_count--;
    pthread_cond_broadcast(&server->change);
    pthread_mutex_unlock(&server->lock);
    FREE_ALL(connection->body, connection);
    return NULL;
}
static inline void *hostile_listen(void *argument) {
    hostile_server *server = (hostile_server *)argument;
    const int yes = 1;
    for (;;) {
        hostile_connection *connection;
        pthread_attr_t attributes;
        pthread_t thread;
        const int taken = accept(server->listening, NULL, NULL);
        if (taken < 0 || taken >= 4096) return NULL; /* it was shut down */
        setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        pthread_mutex_lock(&server->lock);
        if (server->connection_count++ < server->drop_count) {
            close(taken);
            pthread_mutex_unlock(&server->lock);
            continue;
        }
        server->sockets[taken] = 1;
        server->open_count++;
        pthread_mutex_unlock(&server->lock);
        connection = (hostile_connection *)calloc(1, sizeof *connection);
        connection->server = server;
        connection->socket = taken;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, 256 << 10);
        if (pthread_create(&thread, &attributes, hostile_serve, connection) != 0) abort();
        pthread_attr_destroy(&attributes);
    }
}
static inline void hostile_start(hostile_server *server, const hostile_reply *replies, int reply_count) {
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    loopback_or_skip();
    memset(server, 0, sizeof *server);
    server->replies = replies;
    server->reply_count = reply_count;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->change, NULL);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listening = socket(AF_INET, SOCK_STREAM, 0);
    if (server->listening < 0 || bind(server->listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(server->listening, 4096) != 0
        || getsockname(server->listening, (struct sockaddr *)&address, &bytes) != 0
        || pthread_create(&server->thread, NULL, hostile_listen, server) != 0) {
        perror("hostile_server");
        exit(1);
    }
    server->port = ntohs(address.sin_port);
}
/* Waits until all its threads are gone. */
static inline void hostile_stop(hostile_server *server) {
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
    pthread_mutex_lock(&server->lock);
    server->is_stopped = 1;
    pthread_cond_broadcast(&server->change);
    for (int i = 0; i < 4096; i++)
        if (server->sockets[i]) shutdown(i, SHUT_RDWR);
    while (server->open_count > 0) pthread_cond_wait(&server->change, &server->lock);
    pthread_mutex_unlock(&server->lock);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->change);
}

/* ---- pieces of scripts */
#define HOSTILE_STREAM "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define HOSTILE_CHUNKED HOSTILE_STREAM "Transfer-Encoding: chunked\r\n\r\n"
#define HOSTILE_DELTA(text) "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"finish_reason\":null}]}\n\n"
#define HOSTILE_END "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
#define HOSTILE_ANSWER HOSTILE_DELTA("Hel") HOSTILE_DELTA("lo") HOSTILE_END
#define HOSTILE_NO(status, more, body) "HTTP/1.1 " status "\r\n" more "Content-Type: application/json\r\nConnection: close\r\n\r\n" body

/* A text as a gzip file of one stored block; returns its bytes. */
static inline size_t hostile_gzip(const char *text, char *out) {
    const size_t bytes = strlen(text);
    unsigned char *to = (unsigned char *)out;
    uint32_t crc = 0xffffffffu, size = (uint32_t)bytes;
    static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    for (size_t i = 0; i < bytes; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    crc = ~crc;
    memcpy(to, head, 10);
    to[10] = 1;
    to[11] = (unsigned char)(bytes & 255);
    to[12] = (unsigned char)(bytes >> 8);
    to[13] = (unsigned char)~to[11];
    to[14] = (unsigned char)~to[12];
    memcpy(to + 15, text, bytes);
    for (size_t i = 0; i < 4; i++) {
        to[15 + bytes + i] = (unsigned char)(crc >> (8 * i));
        to[19 + bytes + i] = (unsigned char)(size >> (8 * i));
    }
    return bytes + 23;
}
/* The size in the header of the PNG file that a request's body has in base64; returns 0 if there is none. */
static inline int hostile_png_size(const char *body, int32_t side[2]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strstr(body, "image/png;base64,");
    unsigned char bytes[24];
    if (!at || strlen(at) < 17 + 32) return 0;
    at += 17;
    for (int i = 0; i < 24; i += 3, at += 4) {
        uint32_t bits = 0;
        for (int k = 0; k < 4; k++) bits = bits << 6 | (uint32_t)(strchr(digits, at[k]) - digits);
        for (int k = 0; k < 3; k++) bytes[i + k] = (unsigned char)(bits >> (16 - 8 * k));
    }
    for (int i = 0; i < 2; i++)
        side[i] = (int32_t)((uint32_t)bytes[16 + 4 * i] << 24 | (uint32_t)bytes[17 + 4 * i] << 16 | (uint32_t)bytes[18 + 4 * i] << 8 | bytes[19 + 4 * i]);
    return 1;
}
#endif
