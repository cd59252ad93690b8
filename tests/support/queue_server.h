/* queue_server.h: a chat server for load tests, on a free port of 127.0.0.1: one thread, any number of connections, and a queue with a known model. It serves `places`
 * requests at once, each for service_us; the others wait in order of arrival. An answer comes in `pieces` pieces, gap_us apart. The server records when each request was
 * complete and when its first piece was sent. */
#ifndef QUEUE_SERVER_H
#define QUEUE_SERVER_H
#include "loopback.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_CONNECTIONS = 8192, QUEUE_REQUESTS = 1 << 18, QUEUE_PLACES = 4096 };

struct queue_connection {
    int socket, pieces_left, is_first, request;
    char head[4096]; size_t head_bytes;
    size_t body_left; int has_head;
    int64_t next_ns; /* when the next piece is due */
    int heap_place;  /* -1: nothing is due */
};
struct queue_server {
    int port, places, pieces;
    int64_t service_us, gap_us;
    int listening, epoll, stop, timer;
    pthread_t thread;
    struct queue_connection *connections; /* [QUEUE_CONNECTIONS], by socket */
    int *heap; int heap_count;            /* sockets, by next_ns */
    int64_t free_ns[QUEUE_PLACES];        /* when each place is free again */
    int64_t *whole_ns, *served_ns; int request_count; /* [QUEUE_REQUESTS] */
    int64_t pieces_sent, latest_ns;       /* by how much the latest piece was late */
    int is_named;                         /* 1: /v1/models has its model, m */
};

static inline int64_t queue_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
/* ---- the heap of what is due */
static inline int64_t queue_due(const struct queue_server *server, int place) { return server->connections[server->heap[place]].next_ns; }
static inline void queue_swap(struct queue_server *server, int left, int right) {
    const int held = server->heap[left];
    server->heap[left] = server->heap[right];
    server->heap[right] = held;
    server->connections[server->heap[left]].heap_place = left;
    server->connections[server->heap[right]].heap_place = right;
}
static inline void queue_sift(struct queue_server *server, int place) {
    while (place > 0 && queue_due(server, place) < queue_due(server, (place - 1) / 2)) {
        queue_swap(server, place, (place - 1) / 2);
        place = (place - 1) / 2;
    }
    for (;;) {
        int least = place;
        for (int child = 2 * place + 1; child < 2 * place + 3 && child < server->heap_count; child++)
            if (queue_due(server, child) < queue_due(server, least)) least = child;
        if (least == place) return;
        queue_swap(server, place, least);
        place = least;
    }
}
static inline void queue_push(struct queue_server *server, int socket, int64_t next_ns) {
    server->connections[socket].next_ns = next_ns;
    server->connections[socket].heap_place = server->heap_count;
    server->heap[server->heap_count++] = socket;
    queue_sift(server, server->heap_count - 1);
}
static inline void queue_remove(struct queue_server *server, int socket) {
    const int place = server->connections[socket].heap_place;
    if (place < 0) return;
    queue_swap(server, place, server->heap_count - 1);
    server->heap_count--;
    server->connections[socket].heap_place = -1;
    if (place < server->heap_count) queue_sift(server, place);
}

/* ---- requests and answers */
static inline void queue_close(struct queue_server *server, int socket) {
    queue_remove(server, socket);
    close(socket);
}
/* A request is complete: its place in the queue decides when it is served. */
static inline void queue_request(struct queue_server *server, int socket) {
    struct queue_connection *connection = &server->connections[socket];
    const int64_t now = queue_now();
    int place = 0;
    for (int i = 1; i < server->places; i++) if (server->free_ns[i] < server->free_ns[place]) place = i;
    int64_t begin = server->free_ns[place] > now ? server->free_ns[place] : now;
    int64_t done = begin + server->service_us * 1000;
    server->free_ns[place] = done;
    if (server->request_count < QUEUE_REQUESTS) {
        server->whole_ns[server->request_count] = now;
        connection->request = server->request_count;
        server->served_ns[server->request_count++] = done;
    } else connection->request = -1;
    connection->pieces_left = server->pieces;
    connection->is_first = 1;
    connection->has_head = 0;
    connection->head_bytes = 0;
    queue_push(server, socket, done);
}
static inline void queue_send(int socket, const char *text, size_t bytes) {
    if (send(socket, text, bytes, MSG_NOSIGNAL) < 0) return; /* the reader has gone; epoll says so */
}
static inline void queue_chunk(int socket, const char *event) {
    char chunk[512];
    const int bytes = snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n", strlen(event), event);
    queue_send(socket, chunk, (size_t)bytes);
}
static inline void queue_piece(struct queue_server *server, int socket) {
    struct queue_connection *connection = &server->connections[socket];
    const int64_t late = queue_now() - connection->next_ns;
    if (late > server->latest_ns) server->latest_ns = late;
    if (connection->is_first) {
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        queue_send(socket, head, sizeof head - 1);
        connection->is_first = 0;
        if (connection->request >= 0) server->served_ns[connection->request] = queue_now();
    }
    queue_chunk(socket, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \"},\"finish_reason\":null}]}\n\n");
    server->pieces_sent++;
    queue_remove(server, socket);
    if (--connection->pieces_left > 0) {
        queue_push(server, socket, connection->next_ns + server->gap_us * 1000);
        return;
    }
    {
        char event[400];
        snprintf(event, sizeof event, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":"
                 "{\"prompt_tokens\":10,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", server->pieces);
        queue_chunk(socket, event);
        queue_send(socket, "0\r\n\r\n", 5);
    }
}
static inline void queue_read(struct queue_server *server, int socket) {
    struct queue_connection *connection = &server->connections[socket];
    char bytes[65536], *at = bytes;
    ssize_t got = recv(socket, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) { queue_close(server, socket); return; }
    if (!connection->has_head) {
        size_t take = sizeof connection->head - 1 - connection->head_bytes;
        if (take > (size_t)got) take = (size_t)got;
        memcpy(connection->head + connection->head_bytes, bytes, take);
        connection->head[connection->head_bytes + take] = 0;
        char *end = strstr(connection->head, "\r\n\r\n");
        if (!end) { connection->head_bytes += take; return; }
        at = bytes + (size_t)(end + 4 - connection->head) - connection->head_bytes;
        {
            const char *field = strcasestr(connection->head, "content-length:");
            connection->body_left = field ? (size_t)strtoul(field + 15, NULL, 10) : 0;
        }
        connection->has_head = 1;
        got -= at - bytes;
    }
    connection->body_left -= (size_t)got < connection->body_left ? (size_t)got : connection->body_left;
    if (connection->body_left) return;
    if (!strncmp(connection->head, "POST ", 5)) { queue_request(server, socket); return; }
    if (server->is_named && strstr(connection->head, " /v1/models "))
        queue_send(socket, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 55\r\n\r\n"
                   "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\"}]}\n", 71 + 55);
    else queue_send(socket, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 45); /* it says nothing of itself */
    connection->has_head = 0;
    connection->head_bytes = 0;
}
static inline void queue_accept(struct queue_server *server) {
    struct epoll_event event;
    const int one = 1, socket = accept(server->listening, NULL, NULL);
    if (socket < 0) return;
    if (socket >= QUEUE_CONNECTIONS) { close(socket); return; }
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(socket, F_SETFL, O_NONBLOCK);
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    memset(&server->connections[socket], 0, sizeof *server->connections);
    server->connections[socket].heap_place = -1;
    event.events = EPOLLIN;
    event.data.fd = socket;
    epoll_ctl(server->epoll, EPOLL_CTL_ADD, socket, &event);
}
static inline void *queue_loop(void *argument) {
    struct queue_server *server = argument;
    for (;;) {
        struct epoll_event events[512];
        struct itimerspec alarm = {0};
        while (server->heap_count && queue_due(server, 0) <= queue_now()) queue_piece(server, server->heap[0]);
        if (server->heap_count) {
            const int64_t at = queue_due(server, 0);
            alarm.it_value.tv_sec = (time_t)(at / 1000000000);
            alarm.it_value.tv_nsec = (long)(at % 1000000000);
        }
        timerfd_settime(server->timer, TFD_TIMER_ABSTIME, &alarm, NULL);
        int count = epoll_wait(server->epoll, events, 512, -1);
        for (int i = 0; i < count; i++) {
            uint64_t expirations;
            if (events[i].data.fd == server->stop) return NULL;
            if (events[i].data.fd == server->timer) { if (read(server->timer, &expirations, sizeof expirations) < 0) continue; }
            else if (events[i].data.fd == server->listening) queue_accept(server);
            else queue_read(server, events[i].data.fd);
        }
    }
}
static inline void queue_watch(struct queue_server *server, int fd) {
    struct epoll_event event;
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event);
}
/* Returns 1 if it listens. places, service_us, pieces and gap_us are set first, the rest zeroed. */
static inline int queue_start(struct queue_server *server) {
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    struct rlimit limit;
    loopback_or_skip();
    if (!getrlimit(RLIMIT_NOFILE, &limit)) { limit.rlim_cur = limit.rlim_max; setrlimit(RLIMIT_NOFILE, &limit); }
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->connections = calloc(QUEUE_CONNECTIONS, sizeof *server->connections);
    server->heap = calloc(QUEUE_CONNECTIONS, sizeof *server->heap);
    server->whole_ns = calloc(QUEUE_REQUESTS, sizeof *server->whole_ns);
    server->served_ns = calloc(QUEUE_REQUESTS, sizeof *server->served_ns);
    server->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server->epoll = epoll_create1(0);
    server->stop = eventfd(0, 0);
    server->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (bind(server->listening, (struct sockaddr *)&address, sizeof address) || listen(server->listening, 4096)
        || getsockname(server->listening, (struct sockaddr *)&address, &bytes))
        return 0;
    server->port = ntohs(address.sin_port);
    queue_watch(server, server->listening);
    queue_watch(server, server->stop);
    queue_watch(server, server->timer);
    return pthread_create(&server->thread, NULL, queue_loop, server) == 0;
}
static inline void queue_stop(struct queue_server *server) {
    const uint64_t one = 1;
    if (write(server->stop, &one, sizeof one) < 0) return;
    pthread_join(server->thread, NULL);
    close(server->listening);
    close(server->epoll);
    close(server->stop);
    close(server->timer);
    FREE_ALL(server->connections, server->heap, server->whole_ns, server->served_ns);
}
#endif
