/* bench_load.c: how many streams one thread of the client keeps, and whether the waits that it measures are a queue's.
 *     bench_load [STREAMS]     2,000 requests at once, each of whose answers comes in pieces 40 ms apart, 50,000 pieces a second in all, from a server
 *                              on this machine. Prints what was asked for and what came: pieces per second, sends that were late, and how long a piece
 *                              waited, by the server's clock and by the longest gaps that the client saw
 *     bench_load waits [COUNT] Poisson arrivals at a server with one place that serves each request in 50 ms, at 60 % load: the mean wait as the client
 *                              measures it, by Lindley's recursion over the arrivals that the server wrote down, and in theory (M/D/1)
 *     bench_load serve         the server alone, for other clients (tests/servers/load_clients.py): each request is answered after 100 ms in 20 pieces,
 *                              50 ms apart. Prints its address, and for each line of its input what it has stamped since the last one */
#define _GNU_SOURCE
#include "../support/queue_server.h"

#include "load/load_run.h"
#include "load/load_stats.h"
#include "vlmprof_load.h"
#include <math.h>

static const char BODY[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"stream\":true}";
static const struct load_body bodies[] = {{BODY, sizeof BODY - 1}};
static const uint32_t order[] = {0};
static struct queue_server server;
static struct endpoint endpoint;
static char url[64];

static int begin(int places, int64_t service_us, int pieces, int64_t gap_us) {
    vp_server_options options = vp_server_options_default();
    server.places = places;
    server.service_us = service_us;
    server.pieces = pieces;
    server.gap_us = gap_us;
    if (!queue_start(&server)) { printf("no server can be started\n"); return 1; }
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    options.url = endpoint.url = url;
    if (vp_server_open(&options, &endpoint.server, NULL) != VP_OK) { printf("libcurl is not there\n"); return 1; }
    return 0;
}
static void end(void) {
    vp_server_close(endpoint.server);
    queue_stop(&server);
}

/* ---- waits */
enum { WAITS_MAX = 20000, BATCHES = 20 };
/* The mean of a series whose neighbours depend on each other, with its 95 % interval: Student's over 20 batches. */
static void print_mean(const char *name, const double *values, int count) {
    const int size = count / BATCHES;
    double mean = 0, squares = 0;
    for (int i = 0; i < size * BATCHES; i++) mean += values[i] / (size * BATCHES);
    for (int batch = 0; batch < BATCHES; batch++) {
        double part = 0;
        for (int i = 0; i < size; i++) part += values[batch * size + i] / size;
        squares += (part - mean) * (part - mean);
    }
    printf("%-60s %7.3f +- %.3f ms\n", name, mean, 2.093 * sqrt(squares / (BATCHES - 1) / BATCHES));
}
static int bench_waits(int count) {
    static double due_s[WAITS_MAX], recursion_ms[WAITS_MAX], measured_ms[WAITS_MAX], sent_ms[WAITS_MAX], beyond_ms[WAITS_MAX];
    const double service_ms = 50, load = 0.6;
    struct load_plan plan = {bodies, 1, order, 1, due_s, (size_t)count, .concurrency = 0};
    struct load_records records;
    vp_arrivals arrivals;
    double wait_ms = 0;
    if (count < BATCHES || count > WAITS_MAX) { printf("COUNT is %d to %d\n", BATCHES, WAITS_MAX); return 1; }
    if (begin(1, (int64_t)(1e3 * service_ms), 1, 0)) return 1;
    vp_arrivals_begin(VP_ARRIVALS_POISSON, 1e3 * load / service_ms, 1, 7, &arrivals);
    for (int i = 0; i < count; i++) due_s[i] = vp_arrivals_next(&arrivals);
    plan.duration_s = due_s[count - 1] + 1;
    if (load_run(&endpoint, &plan, &records)) return 1;
    if (records.count != (size_t)count || server.request_count != count) { printf("%zu of %d requests ended\n", records.count, count); return 1; }
    for (int i = 0; i < count; i++) {
        const double gap_ms = i ? (double)(server.whole_ns[i] - server.whole_ns[i - 1]) / 1e6 : 0;
        wait_ms = i ? fmax(0, wait_ms + service_ms - gap_ms) : 0;
        recursion_ms[i] = wait_ms;
        measured_ms[i] = load_latency(&records.items[i], LOAD_TTFT) - service_ms;
        sent_ms[i] = (double)(records.items[i].first_ns - records.items[i].sent_ns) / 1e6 - service_ms;
        beyond_ms[i] = measured_ms[i] - wait_ms;
    }
    printf("%d requests, Poisson, 60 %% load, %.0f ms each; mean waits, 95 %% intervals from %d batches\n", count, service_ms, BATCHES);
    print_mean("measured: TTFT from when a request was due, less 50 ms", measured_ms, count);
    print_mean("the same from when it was sent", sent_ms, count);
    print_mean("Lindley's recursion over the server's arrivals", recursion_ms, count);
    print_mean("the first less the third: client, network, parsing", beyond_ms, count);
    printf("%-60s %7.3f ms\n", "theory (M/D/1)", load * service_ms / 2 / (1 - load));
    load_records_free(&records);
    end();
    return 0;
}

/* ---- streams */
static int bench_streams(int streams) {
    struct load_plan plan = {bodies, 1, order, 1, NULL, 0, streams, 10, .ramp_s = 2};
    struct load_records records;
    double pieces = 0, longest = 0;
    struct rusage usage;
    if (begin(streams < QUEUE_PLACES ? streams : QUEUE_PLACES, 40000, 100, 40000)) return 1;
    if (load_run(&endpoint, &plan, &records)) return 1;
    struct load_summary summary = load_summarize(&records, 2, 10, NULL);
    for (size_t i = 0; i < records.count; i++) {
        const struct load_record *record = &records.items[i];
        if (record->reason) continue;
        pieces += (double)record->piece_count;
        if ((double)record->longest_gap_ns > longest) longest = (double)record->longest_gap_ns;
    }
    getrusage(RUSAGE_THREAD, &usage);
    printf("%d streams, a piece every 40 ms: %.0f pieces/s asked for\n", streams, streams / 0.04);
    printf("requests %zu, failed %lld, late sends %lld, latest send %.2f ms\n", records.count, (long long)summary.failed, (long long)summary.late,
           summary.latest_ms);
    printf("TPOT P50 %.3f ms, P99 %.3f ms (40 by the server's plan); longest gap of all %.1f ms\n", summary.latency[LOAD_TPOT][LOAD_P50].value,
           summary.latency[LOAD_TPOT][LOAD_P99].value, longest / 1e6);
    printf("server: latest piece %.2f ms after its time; client's thread: %.1f s of CPU for %.0f pieces\n", (double)server.latest_ns / 1e6,
           (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6, pieces);
    load_records_free(&records);
    end();
    return 0;
}

/* ---- a server for other clients */
static int by_value(const void *left, const void *right) { return (*(const double *)left > *(const double *)right) - (*(const double *)left < *(const double *)right); }
static int bench_serve(void) {
    static double ttft_ms[QUEUE_REQUESTS];
    char line[16];
    int from = 0;
    server.is_named = 1;
    if (begin(QUEUE_PLACES, 100000, 20, 50000)) return 1;
    printf("%s\n", url);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const int count = server.request_count - from;
        double mean = 0;
        for (int i = 0; i < count; i++) {
            ttft_ms[i] = (double)(server.served_ns[from + i] - server.whole_ns[from + i]) / 1e6;
            mean += ttft_ms[i] / count;
        }
        qsort(ttft_ms, (size_t)count, sizeof *ttft_ms, by_value);
        printf("{\"requests\": %d, \"ttft_mean_ms\": %.3f, \"ttft_p95_ms\": %.3f, \"latest_piece_ms\": %.3f}\n", count, mean,
               count ? ttft_ms[count * 95 / 100] : 0.0, (double)server.latest_ns / 1e6);
        fflush(stdout);
        from += count;
        server.latest_ns = 0;
    }
    end();
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "serve")) return bench_serve();
    if (argc > 1 && !strcmp(argv[1], "waits")) return bench_waits(argc > 2 ? atoi(argv[2]) : 1800);
    return bench_streams(argc > 1 ? atoi(argv[1]) : 2000);
}
