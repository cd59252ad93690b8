/* test_load_run.c: trials against a virtual server and its clock (support/virtual_server.h): late, waiting and failing requests. The waits that load measures follow
 * Lindley's recursion over the due times. */
#include "support/virtual_server.h"

#include "base/console.h"

#include "load/load_client.h"
#include "load/load_result.h"
#include "load/load_run.h"
#include "load/load_stats.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"
#include "vlmprof_load.h"

static const char BODY[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"stream\":true}";
static const struct load_body bodies[] = {{BODY, sizeof BODY - 1}};
static const uint32_t order[] = {0};

static void open_server(struct endpoint *endpoint, int places, int64_t service_us, int pieces, int64_t gap_us) {
    vp_server_options options = vp_server_options_default();
    memset(endpoint, 0, sizeof *endpoint);
    memset(&virtual_server, 0, sizeof virtual_server);
    memset(virtual_free_ns, 0, sizeof virtual_free_ns);
    virtual_server.places = places;
    virtual_server.service_ns = service_us * 1000;
    virtual_server.pieces = pieces;
    virtual_server.gap_ns = gap_us * 1000;
    virtual_now_ns = 1000000000;
    options.url = "http://127.0.0.1:8";
    endpoint->url = strdup(options.url);
    CHECK_INT(vp_server_open(&options, &endpoint->server, NULL), VP_OK);
}
static void close_server(struct endpoint *endpoint, struct load_records *records) {
    load_records_free(records);
    vp_server_close(endpoint->server);
    free(endpoint->url);
}
static struct load_plan plan_of(const double *due_s, size_t due_count, int32_t concurrency, double duration_s) {
    const struct load_plan plan = {bodies, 1, order, 1, due_s, due_count, concurrency, duration_s, 0};
    return plan;
}

/* ---- a queue with one slot: a request's wait follows from the earlier arrivals */
static void test_queue(void) {
    enum { REQUESTS = 600 };
    static double due_s[REQUESTS];
    const double service_s = 0.01, load = 0.6, network_s = 2e-4 / 2;
    struct endpoint endpoint;
    struct load_records records;
    vp_arrivals arrivals;
    vp_slo slo;
    double worst = 0, lindley = 0;
    check_case("a queue at 60 %% load: each wait equals the recursion over the due times");
    open_server(&endpoint, 1, (int64_t)(service_s * 1e6), 1, 0);
    vp_arrivals_begin(VP_ARRIVALS_POISSON, load / service_s, 1, 7, &arrivals);
    for (int i = 0; i < REQUESTS; i++) due_s[i] = vp_arrivals_next(&arrivals);
    struct load_plan plan = plan_of(due_s, REQUESTS, 0, due_s[REQUESTS - 1] + 1);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    CHECK_INT(records.count, REQUESTS);
    for (int i = 0; i < REQUESTS && i < (int)records.count; i++) {
        lindley = i ? fmax(0, lindley + service_s - (due_s[i] - due_s[i - 1])) : 0;
        worst = fmax(worst, fabs(load_latency(&records.items[i], LOAD_TTFT) / 1e3 - service_s - network_s - lindley));
        CHECK(!records.items[i].reason && load_latency(&records.items[i], LOAD_TTFT_SENT) == load_latency(&records.items[i], LOAD_TTFT));
    }
    CHECK_NEAR(worst, 0, 1e-7); /* due times are rounded to ns, and the error accumulates over 600 requests */
    check_case("the summary of that trial: nothing failed, the offered rate matches the arrivals, goodput follows its limits");
    CHECK(vp_slo_parse("e2e:15", &slo, NULL) == VP_OK);
    struct load_summary summary = load_summarize(&records, 0, due_s[REQUESTS - 1] + 0.001, &slo);
    CHECK_INT(summary.due, REQUESTS);
    CHECK_INT(summary.failed, 0);
    CHECK_NEAR(summary.offered, REQUESTS / (due_s[REQUESTS - 1] + 0.001), 1e-9);
    CHECK(summary.good_share.value > 0.1 && summary.good_share.value < 0.95);
    CHECK(summary.good_share.low < summary.good_share.value && summary.good_share.high > summary.good_share.value);
    CHECK_NEAR(summary.goodput, summary.good_share.value * summary.offered, 1e-9);
    CHECK(summary.latency[LOAD_E2E][LOAD_P50].value >= 1e3 * service_s);
    CHECK_INT(summary.latency_count[LOAD_TPOT], 0); /* a single token has no decode step */
    CHECK_INT(summary.incomplete, 0);
    records.items[3].is_complete = records.items[5].is_complete = 0;
    records.items[5].reason = strdup("a failed one is not counted twice");
    summary = load_summarize(&records, 0, due_s[REQUESTS - 1] + 0.001, &slo);
    CHECK(summary.incomplete == 1 && summary.failed == 1);
    close_server(&endpoint, &records);
}

/* ---- fixed concurrency */
static void test_concurrency(void) {
    struct endpoint endpoint;
    struct load_plan plan = plan_of(NULL, 0, 8, 1);
    struct load_records records;
    check_case("concurrency 8 on 2 slots of 10 ms: 200 requests per second complete, each waits for 3 others");
    open_server(&endpoint, 2, 10000, 3, 0);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    struct load_summary summary = load_summarize(&records, 0.2, 1, NULL);
    CHECK_NEAR(summary.ended / 0.8, 200 / 0.8, 5); /* per second */
    CHECK_NEAR(summary.in_flight, 8, 0.01);
    CHECK_NEAR(summary.latency[LOAD_TTFT][LOAD_P50].value, 40, 0.01);
    CHECK(summary.good_share.value >= 1);
    close_server(&endpoint, &records);
    check_case("pieces 1 ms apart: TPOT is 1 ms");
    open_server(&endpoint, 2, 10000, 3, 1000);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    summary = load_summarize(&records, 0.2, 1, NULL);
    CHECK_NEAR(summary.latency[LOAD_TPOT][LOAD_P50].value, 1, 1e-9);
    close_server(&endpoint, &records);
}

/* ---- a rate with a concurrency limit */
static void test_places(void) {
    enum { REQUESTS = 200 };
    static double due_s[REQUESTS];
    struct endpoint endpoint;
    struct load_records records;
    double free_s[3] = {0, 0, 0}, worst = 0;
    check_case("400 per second, at most 3 at once, 10 ms each: 3 in flight; requests that wait in the client are counted, but not as late");
    for (int i = 0; i < REQUESTS; i++) due_s[i] = 0.0025 * i;
    open_server(&endpoint, 64, 10000, 1, 0);
    struct load_plan plan = plan_of(due_s, REQUESTS, 3, 1);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    CHECK_INT(records.count, REQUESTS);
    for (size_t i = 0; i < records.count; i++) { /* slots are used in turn: 10 ms each, plus the network */
        const double queued_s = fmax(0, free_s[i % 3] - due_s[i]);
        worst = fmax(worst, fabs((double)records.items[i].queued_ns / 1e9 - queued_s));
        CHECK_INT(records.items[i].start_ns, records.items[i].due_ns + records.items[i].queued_ns);
        free_s[i % 3] = due_s[i] + queued_s + 0.0101;
    }
    CHECK_NEAR(worst, 0, 1e-6);
    struct load_summary summary = load_summarize(&records, 0.1, 0.4, NULL);
    CHECK_NEAR(summary.in_flight, 3, 0.01);
    CHECK(summary.late == 0 && summary.latency_count[LOAD_QUEUED] == summary.due && summary.most[LOAD_QUEUED] > 100);
    CHECK_NEAR(summary.latency[LOAD_E2E][LOAD_P50].value, summary.latency[LOAD_QUEUED][LOAD_P50].value + 10.1, 1e-5);
    CHECK_NEAR(summary.latency[LOAD_E2E_SENT][LOAD_P50].value, 10.1, 1e-6);
    close_server(&endpoint, &records);
    check_case("... without a limit, no request waits in the client");
    open_server(&endpoint, 64, 10000, 1, 0);
    plan = plan_of(due_s, REQUESTS, 0, 1);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    summary = load_summarize(&records, 0.1, 0.4, NULL);
    CHECK(summary.latency_count[LOAD_QUEUED] == 0 && records.items[REQUESTS - 1].queued_ns == -1);
    close_server(&endpoint, &records);
}
/* ---- gaps between parts */
static void test_gaps(void) {
    struct endpoint endpoint;
    struct load_plan plan = plan_of(NULL, 0, 2, 1);
    struct load_records records;
    check_case("3 pieces 1.5 ms apart: ITL is the gaps' statistics, with range, and token rates add up");
    open_server(&endpoint, 2, 10000, 3, 1500);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    struct load_summary summary = load_summarize(&records, 0.2, 1, NULL);
    CHECK_INT(summary.latency_count[LOAD_ITL], 2 * summary.due);
    CHECK_NEAR(summary.mean[LOAD_ITL], 1.5, 1e-9);
    CHECK_NEAR(summary.latency[LOAD_ITL][LOAD_P95].value, 1.5, 1e-9);
    CHECK(summary.least[LOAD_E2E] <= summary.mean[LOAD_E2E] + 1e-9 && summary.most[LOAD_E2E] >= summary.mean[LOAD_E2E] - 1e-9 && summary.std[LOAD_E2E] >= 0);
    CHECK_NEAR(summary.input_rate, summary.ended * (double)records.items[0].usage.prompt_tokens, 1e-9);
    CHECK_NEAR(summary.token_rate, summary.input_rate + summary.output_rate, 1e-9);
    close_server(&endpoint, &records);
}

/* ---- a client that stalls */
static void test_stall(void) {
    enum { REQUESTS = 100 };
    static double due_s[REQUESTS];
    struct endpoint endpoint;
    struct load_records records;
    check_case("a client that stalls for 400 ms: visible in times from the due time, hidden in times from sending");
    for (int i = 0; i < REQUESTS; i++) due_s[i] = 0.01 * i;
    open_server(&endpoint, 64, 1000, 1, 0);
    virtual_server.stall_at_ns = 300000000;
    virtual_server.stall_ns = 400000000;
    struct load_plan plan = plan_of(due_s, REQUESTS, 0, 1);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    struct load_summary summary = load_summarize(&records, 0, 1, NULL);
    CHECK(summary.late >= 39 && summary.late <= 41 && summary.latest_ms > 390 && summary.latest_ms <= 400);
    CHECK(summary.latency[LOAD_E2E][LOAD_P90].value > 250);
    CHECK_NEAR(summary.latency[LOAD_E2E_SENT][LOAD_P90].value, 1.1, 1e-6);
    close_server(&endpoint, &records);
}

/* ---- rejections by the server, and a signal */
static void test_failures(void) {
    enum { REQUESTS = 40 };
    static double due_s[REQUESTS];
    struct endpoint endpoint;
    struct load_records records;
    check_case("a server that rejects: the trial ends after its first failures, with exit code 4");
    for (int i = 0; i < REQUESTS; i++) due_s[i] = 0.001 * i;
    open_server(&endpoint, 1, 1000, 1, 0);
    virtual_server.fail_from = 1;
    struct load_plan plan = plan_of(due_s, REQUESTS, 0, 60);
    listen_begin();
    CHECK_INT(load_run(&endpoint, &plan, &records), EXIT_DEVICE);
    listen_end();
    CHECK(strstr(room_said, "does not answer: the first 20 requests failed") != NULL);
    CHECK(records.count >= 20 && records.items[0].reason != NULL);
    close_server(&endpoint, &records);
}

/* ---- numbers of a summary that decide about a finding */
static void test_summaries(void) {
    struct load_summary summary = {.to_s = 32, .due = 18, .offered = 18 / 32.0, .ended = 11 / 32.0, .growth = 7};
    check_case("a queue that grows is seen in a trial of 18 requests, 7 of which had not ended");
    CHECK(load_is_queue_growing(&summary));
    summary.ended = 15 / 32.0;
    CHECK(!load_is_queue_growing(&summary));
    summary.ended = 11 / 32.0;
    summary.growth = 1.9;
    CHECK(!load_is_queue_growing(&summary));
    check_case("one request that was sent 2.4 ms late does not matter at a TTFT of 143 ms, and does at one of 20 ms");
    summary.due = 39;
    summary.late = 1;
    summary.latest_ms = 2.4;
    summary.latency[LOAD_TTFT][LOAD_P50].value = 143;
    CHECK(!load_is_late(&summary));
    summary.latency[LOAD_TTFT][LOAD_P50].value = 20;
    CHECK(load_is_late(&summary));
    summary.due = 200;
    CHECK(!load_is_late(&summary));
}
/* ---- why requests failed, and when none received a piece */
static void test_trouble(void) {
    static char reset[] = "http://127.0.0.1:1/v1: connection reset",
                refused[2][120] = {"http://127.0.0.1:1/v1: Failed to connect to 127.0.0.1 port 1 after 0 ms: refused",
                                  "http://127.0.0.1:1/v1: Failed to connect to 127.0.0.1 port 1 after 3 ms: refused"};
    static int32_t gaps_us[10][3];
    struct load_record items[10];
    struct load_records records = {items, 10, 10, 0, 0};
    memset(items, 0, sizeof items);
    for (int i = 0; i < 10; i++) { /* one each second, with pieces after 100, 200, 300 and 400 ms */
        items[i].due_ns = items[i].start_ns = (int64_t)i * 1000000000;
        items[i].first_ns = items[i].start_ns + 100000000;
        items[i].gaps_us = gaps_us[i];
        items[i].gap_count = 3;
        items[i].piece_count = 4;
        for (int k = 0; k < 3; k++) gaps_us[i][k] = 100000;
        items[i].last_ns = items[i].end_ns = items[i].start_ns + 400000000;
    }
    check_case("without failures and silences there is no text; time without a request is not a silence");
    items[9].due_ns = items[9].start_ns = 20000000000;
    items[9].first_ns = 20100000000;
    items[9].last_ns = items[9].end_ns = 20400000000;
    CHECK(!load_failures_text(&records, 0, 30) && !load_silence_text(&records, 0, 30));
    check_case("a silence within an answer, while further requests wait");
    gaps_us[4][1] = 2500000;
    items[4].last_ns = items[4].end_ns = items[4].start_ns + 2800000000;
    for (int i = 5; i < 7; i++) items[i].first_ns = 7000000000, items[i].last_ns = items[i].end_ns = 7300000000;
    char *text = load_silence_text(&records, 0, 10);
    CHECK_TEXT(text, "no request received a piece for 2.5 s, from 4.2 s to 6.7 s of the trial; by then 3 requests were waiting");
    free(text);
    check_case("... which a request that fails in it does not end");
    items[5].reason = reset;
    items[5].first_ns = -1;
    items[5].end_ns = 5500000000;
    text = load_silence_text(&records, 0, 10);
    CHECK_TEXT(text, "no request received a piece for 2.5 s, from 4.2 s to 6.7 s of the trial; by then 2 requests were waiting");
    free(text);
    items[5].reason = NULL;
    CHECK(!load_silence_text(&records, 8, 10));
    check_case("failures: counted within the window, reasons without URL and ms, the most frequent first");
    items[9].due_ns = 9000000000;
    items[1].reason = items[6].reason = reset;
    for (int i = 7; i < 10; i++) items[i].reason = refused[i % 2];
    text = load_failures_text(&records, 2, 10);
    CHECK_TEXT(text, "4 of 8 requests failed, the first at 7.3 s: Failed to connect to 127.0.0.1 port 1 after 3 ms: refused (3); connection reset (1)");
    free(text);
}

/* ---- the client's count of requests next to the server's */
static void test_unseen(void) {
    struct load_level level;
    struct load_levels levels = {&level, 1};
    struct load_sample sample;
    struct text_list texts = {NULL, 0};
    memset(&level, 0, sizeof level);
    for (int i = 0; i < PROM_COUNT; i++) sample.values[i] = (double)NAN;
    sample.at_ns = 5000000000;
    sample.values[PROM_RUNNING] = 0.53;
    sample.values[PROM_WAITING] = 0;
    level.rate = 0.5;
    level.is_complete = 1;
    level.metrics = &sample;
    level.metric_count = 1;
    level.summary.to_s = 10;
    level.summary.in_flight = 1.39;
    check_case("requests in flight that the server's metrics do not show are a finding; those that they show are none");
    load_findings(&levels, &texts);
    CHECK(texts.count == 1 && strstr(texts.items[0], "rate 0.5: 1.39 requests were in flight, but by the server's metrics 0.53 were running and 0 waiting"));
    text_list_free(&texts);
    sample.values[PROM_WAITING] = 0.8;
    memset(&texts, 0, sizeof texts);
    load_findings(&levels, &texts);
    CHECK_INT(texts.count, 0);
    text_list_free(&texts);
}
/* A system with synthetic contents of its two files. */
static void test_client(void) {
    struct client_reading began, ended;
    struct load_level level = {0};
    const int64_t second_ns = 1000000000;
    check_case("the client's own CPU time and waiting: sums over its threads, as shares of the trial");
    CHECK(mkdir(in_folder("proc"), 0777) == 0 && mkdir(in_folder("proc/self"), 0777) == 0 && mkdir(in_folder("proc/self/task"), 0777) == 0);
    CHECK(mkdir(in_folder("proc/self/task/1"), 0777) == 0 && mkdir(in_folder("proc/self/task/2"), 0777) == 0);
    write_text(in_folder("proc/self/task/1/schedstat"), "100000000 5000000 7\n");
    write_text(in_folder("proc/self/task/2/schedstat"), "200000000 0 7\n");
    client_read(folder, &began);
    CHECK_INT(began.cpu_ns, 300000000);
    CHECK_INT(began.delay_ns, 5000000);
    write_text(in_folder("proc/self/task/2/schedstat"), "300000000 90000000 9\n");
    client_read(folder, &ended);
    ended.at_ns = began.at_ns + second_ns;
    client_take(&began, &ended, &level);
    CHECK_NEAR(level.client_cpu, 0.1, 1e-12);
    CHECK_NEAR(level.client_delay, 0.09, 1e-12);
    CHECK(client_was_busy(&level));
    check_case("... quiet, and on a system that reports nothing");
    ended.delay_ns = began.delay_ns + 1000000;
    client_take(&began, &ended, &level);
    CHECK(!client_was_busy(&level));
    client_read(in_folder("nowhere"), &ended);
    client_take(&began, &ended, &level);
    CHECK(isnan(level.client_cpu) && isnan(level.client_delay) && !client_was_busy(&level));
}

int main(void) {
    if (!folder_make("test_load_run")) return 1;
    test_queue();
    test_concurrency();
    test_places();
    test_gaps();
    test_stall();
    test_summaries();
    test_trouble();
    test_unseen();
    test_failures();
    test_client();
    remove_folder(folder);
    return check_done("test_load_run");
}
