/* bench_server.c: how many streams and chunks one thread reads, and how late its stamps are. A process of its own sends to STREAMS connections in turn,
 * CHUNKS pieces to each, RATE of them a second in all; each contains the time at which it was sent. Arguments: STREAMS CHUNKS RATE (2000 50 50000). */
#include "vlmprof_server.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
static const char END[] = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

/* Sends everything; a client that does not read for a while delays the others, as its socket's buffer is small. */
static void send_all(int to, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(to, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0) exit(2);
        text += sent;
        bytes -= (size_t)sent;
    }
}
static void serve(int listening, int streams, int chunks, double rate) {
    int *sockets = (int *)malloc((size_t)streams * sizeof *sockets), i, chunk;
    char text[4096];
    const int yes = 1;
    for (i = 0; i < streams; i++) {
        sockets[i] = accept(listening, NULL, NULL);
        if (sockets[i] < 0) { perror("accept"); exit(2); }
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    for (i = 0; i < streams; i++) {
        if (recv(sockets[i], text, sizeof text, 0) <= 0) exit(2); /* headers and body are one packet */
        send_all(sockets[i], HEAD, sizeof HEAD - 1);
    }
    int64_t begin = vp_clock_ns();
    for (chunk = 0; chunk < chunks; chunk++)
        for (i = 0; i < streams; i++) {
            const int64_t due = begin + (int64_t)(((double)chunk * streams + i) * 1e9 / rate);
            int64_t now;
            while ((now = vp_clock_ns()) < due) {
                const struct timespec pause = {0, due - now < 1000000 ? (long)(due - now) : 1000000};
                nanosleep(&pause, NULL);
            }
            snprintf(text, sizeof text, "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":"
                     "[{\"index\":0,\"delta\":{\"content\":\"%020lld\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", (long long)now);
            send_all(sockets[i], text, strlen(text));
        }
    fprintf(stderr, "sent in %.3f s\n", (double)(vp_clock_ns() - begin) / 1e9);
    for (i = 0; i < streams; i++) {
        send_all(sockets[i], END, sizeof END - 1);
        close(sockets[i]);
    }
    exit(0);
}
static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}
/* Delays of a finished exchange's stamps, in us. */
static size_t take_delays(const vp_exchange *exchange, double *delays) {
    size_t i, at = 0, count = 0;
    for (i = 0; i < exchange->reply.piece_count; i++) {
        const vp_chat_piece *piece = &exchange->reply.pieces[i];
        for (; at + 20 <= exchange->reply.text_bytes && piece->text_bytes == 20; ) {
            char digits[21];
            memcpy(digits, exchange->reply.text + at, 20);
            digits[20] = 0;
            delays[count++] = (double)(piece->at_ns - strtoll(digits, NULL, 10)) / 1000.0;
            at += 20;
            break;
        }
    }
    return count;
}
int main(int argument_count, char **arguments) {
    const int streams = argument_count > 1 ? atoi(arguments[1]) : 2000, chunks = argument_count > 2 ? atoi(arguments[2]) : 50;
    const double rate = argument_count > 3 ? atof(arguments[3]) : 50000.0;
    struct rlimit files;
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    vp_server_options options = vp_server_options_default();
    vp_exchange *exchanges = (vp_exchange *)calloc((size_t)streams, sizeof *exchanges), *finished;
    double *delays = (double *)malloc((size_t)streams * (size_t)chunks * sizeof *delays), cpu, wall;
    int64_t first = 0, last = 0;
    size_t delay_count = 0;
    vp_server *server;
    vp_error error;
    char url[64];
    int listening, i, failed = 0;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 4096)
        || getsockname(listening, (struct sockaddr *)&address, &bytes)) {
        perror("bench_server");
        return 1;
    }
    pid_t child = fork();
    if (child == 0) serve(listening, streams, chunks, rate);
    close(listening);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    options.url = url;
    if (vp_server_open(&options, &server, &error) != VP_OK) {
        printf("skipped: %s\n", error.text);
        return 0;
    }
    for (i = 0; i < streams; i++) {
        exchanges[i].body = "{}";
        exchanges[i].body_bytes = 2;
        if (vp_server_start(server, &exchanges[i], &error) != VP_OK) return printf("%s\n", error.text), 1;
    }
    cpu = cpu_s();
    for (i = 0; i < streams; i++) {
        if (vp_server_step(server, 0, &finished, &error) != VP_OK || !finished) return printf("%s: %s\n", error.where, error.text), 1;
        if (finished->result != VP_OK && !failed++) printf("%s: %s\n", finished->error.where, finished->error.text);
        if (finished->result == VP_OK) {
            delay_count += take_delays(finished, delays + delay_count);
            if (first == 0 || finished->reply.first_ns < first) first = finished->reply.first_ns;
            if (finished->reply.last_ns > last) last = finished->reply.last_ns;
        }
        vp_exchange_free(finished);
    }
    cpu = cpu_s() - cpu;
    wall = (double)(last - first) / 1e9;
    vp_sort_double(delays, delay_count);
    printf("%d streams, %zu chunks in %.3f s: %.0f a second; %d failed; CPU %.2f s, %.1f us a chunk\n", streams, delay_count, wall, (double)delay_count / wall, failed,
           cpu,
           cpu * 1e6 / (double)delay_count);
    if (delay_count)
        printf("stamp after the write began [us]: p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f\n", vp_statistics_percentile(delays, delay_count, 50.0),
               vp_statistics_percentile(delays, delay_count, 90.0), vp_statistics_percentile(delays, delay_count, 99.0),
               vp_statistics_percentile(delays, delay_count, 99.9),
               delays[delay_count - 1]);
    vp_server_close(server);
    waitpid(child, NULL, 0);
    free(exchanges);
    free(delays);
    return failed != 0;
}
