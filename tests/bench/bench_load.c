/* bench_load.c: how many streams one thread of the client keeps: 2,000 requests at once, each of whose answers comes in pieces 40 ms apart, 50,000
 * pieces a second in all, from a server on this machine. Prints what was asked for and what came: pieces per second, sends that were late, and how long
 * a piece waited, by the server's clock and by the longest gaps that the client saw. */
#define _GNU_SOURCE
#include "../support/queue_server.h"

#include "load/load_run.h"
#include "load/load_stats.h"
#include "vlmprof_load.h"

int main(int argc, char **argv) {
    static const char body[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"stream\":true}";
    static const struct load_body bodies[] = {{body, sizeof body - 1}};
    static const uint32_t order[] = {0};
    const int streams = argc > 1 ? atoi(argv[1]) : 2000;
    struct load_plan plan = {bodies, 1, order, 1, NULL, 0, streams, 10, 2};
    vp_server_options options = vp_server_options_default();
    struct queue_server server;
    struct endpoint endpoint;
    struct load_records records;
    struct load_summary summary;
    double pieces = 0, longest = 0;
    struct rusage usage;
    char url[64];
    memset(&server, 0, sizeof server);
    memset(&endpoint, 0, sizeof endpoint);
    server.places = streams < QUEUE_PLACES ? streams : QUEUE_PLACES;
    server.service_us = 40000;
    server.pieces = 100;
    server.gap_us = 40000;
    if (!queue_start(&server)) { printf("no server can be started\n"); return 1; }
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    options.url = endpoint.url = url;
    if (vp_server_open(&options, &endpoint.server, NULL) != VP_OK) { printf("libcurl is not there\n"); return 1; }
    if (load_run(&endpoint, &plan, &records)) return 1;
    summary = load_summarize(&records, 2, 10, NULL);
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
    vp_server_close(endpoint.server);
    queue_stop(&server);
    return 0;
}
