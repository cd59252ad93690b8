/* test_load_run.c: trials against a server whose queue is known: what is late, what waits, what fails. The waits that load measures are those of
 * Lindley's recursion over the arrivals that the server wrote down, and the mean wait of the queue's theory lies in its interval. */
#define _GNU_SOURCE
#include "support/queue_server.h"

#include "base/console.h"

#include "load/load_run.h"
#include "load/load_stats.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"
#include "vlmprof_load.h"
#include <signal.h>
#include <sys/wait.h>

static struct queue_server server;
static const char BODY[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"?\"}],\"stream\":true}";
static const struct load_body bodies[] = {{BODY, sizeof BODY - 1}};
static const uint32_t order[] = {0};

static int open_server(struct endpoint *endpoint) {
    vp_server_options options = vp_server_options_default();
    char url[64];
    memset(endpoint, 0, sizeof *endpoint);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    options.url = url;
    options.max_retries = 0;
    endpoint->url = strdup(url);
    return vp_server_open(&options, &endpoint->server, NULL) == VP_OK;
}
static void start(int places, int64_t service_us, int pieces, int64_t gap_us) {
    memset(&server, 0, sizeof server);
    server.places = places;
    server.service_us = service_us;
    server.pieces = pieces;
    server.gap_us = gap_us;
    CHECK(queue_start(&server));
}
static struct load_plan plan_of(const double *due_s, size_t due_count, int32_t concurrency, double duration_s) {
    const struct load_plan plan = {bodies, 1, order, 1, due_s, due_count, concurrency, duration_s, 0};
    return plan;
}

/* ---- a queue with one place: what a request waits follows from when the others came */
static void test_queue(void) {
    enum { REQUESTS = 600 };
    static double due_s[REQUESTS], waits_s[REQUESTS], scratch[3 * REQUESTS], measured_s[REQUESTS];
    const double service_s = 0.01, load = 0.6, expected = load * service_s / 2 / (1 - load);
    struct endpoint endpoint;
    struct load_plan plan;
    struct load_records records;
    struct load_summary summary;
    vp_arrivals arrivals;
    double worst = 0, lindley = 0, mean_measured = 0, mean_lindley = 0;
    check_case("a queue at 60 %% load: each wait is that of the recursion over the arrivals");
    start(1, (int64_t)(service_s * 1e6), 1, 0);
    CHECK(open_server(&endpoint));
    vp_arrivals_begin(VP_ARRIVALS_POISSON, load / service_s, 1, 7, &arrivals);
    for (int i = 0; i < REQUESTS; i++) due_s[i] = vp_arrivals_next(&arrivals);
    plan = plan_of(due_s, REQUESTS, 0, due_s[REQUESTS - 1] + 1);
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    CHECK_INT(records.count, REQUESTS);
    CHECK_INT(server.request_count, REQUESTS);
    for (int i = 0; i < REQUESTS && i < server.request_count; i++) {
        /* the recursion over the server's own arrivals, and the same over the times at which requests were due */
        const double gap_s = i ? (double)(server.whole_ns[i] - server.whole_ns[i - 1]) / 1e9 : 0;
        lindley = i ? fmax(0, lindley + service_s - gap_s) : 0;
        waits_s[i] = lindley;
        mean_lindley += lindley / REQUESTS;
        worst = fmax(worst, fabs((double)(server.served_ns[i] - server.whole_ns[i]) / 1e9 - service_s - lindley));
        CHECK(!records.items[i].reason);
        measured_s[i] = load_latency(&records.items[i], LOAD_TTFT) / 1e3 - service_s;
        mean_measured += measured_s[i] / REQUESTS;
    }
    CHECK(worst < 1e-5); /* the server is the queue that it says it is */
    printf("mean wait: measured from when requests were due %.3f ms, by the recursion %.3f ms, in theory %.3f ms\n", 1e3 * mean_measured,
           1e3 * mean_lindley, 1e3 * expected);
    {
        vp_series_value value;
        double overhead[REQUESTS];
        /* what the client and the network add is there at every load: the typical difference between both */
        for (int i = 0; i < REQUESTS; i++) overhead[i] = measured_s[i] - waits_s[i];
        CHECK(vp_series_percentile(overhead, REQUESTS, 50, 0.95, scratch, &value) == VP_OK);
        printf("client and network: P50 %.3f ms\n", 1e3 * value.value);
        CHECK(value.value > 0 && value.value < 0.01);
    }
    check_case("the summary of that trial: nothing failed, the offered rate is the arrivals', goodput follows its limits");
    {
        vp_slo slo;
        CHECK(vp_slo_parse("e2e:15", &slo, NULL) == VP_OK);
        summary = load_summarize(&records, 0, due_s[REQUESTS - 1] + 0.001, &slo);
        CHECK_INT(summary.due, REQUESTS);
        CHECK_INT(summary.failed, 0);
        CHECK_NEAR(summary.offered, load / service_s, 0.15 * load / service_s);
        CHECK(summary.good_share.value > 0.1 && summary.good_share.value < 0.95);
        CHECK(summary.good_share.low < summary.good_share.value && summary.good_share.high > summary.good_share.value);
        CHECK_NEAR(summary.goodput, summary.good_share.value * summary.offered, 1e-9);
        CHECK(summary.latency[LOAD_E2E][LOAD_P50].value >= 1e3 * service_s);
        CHECK_INT(summary.latency_count[LOAD_TPOT], 0); /* one token has no decode step */
    }
    load_records_free(&records);
    vp_server_close(endpoint.server);
    free(endpoint.url);
    queue_stop(&server);
}

/* ---- so many at once */
static void test_concurrency(void) {
    struct endpoint endpoint;
    struct load_plan plan = plan_of(NULL, 0, 8, 1);
    struct load_records records;
    struct load_summary summary;
    check_case("8 at once on 2 places of 10 ms: 200 requests per second end, each waits for 3 others");
    start(2, 10000, 3, 1000);
    CHECK(open_server(&endpoint));
    CHECK_INT(load_run(&endpoint, &plan, &records), 0);
    summary = load_summarize(&records, 0.2, 1, NULL);
    CHECK(summary.ended > 120 && summary.ended <= 210);
    CHECK(summary.in_flight > 7 && summary.in_flight <= 8.01);
    CHECK(summary.latency[LOAD_TTFT][LOAD_P50].value > 25);
    CHECK(summary.latency[LOAD_TPOT][LOAD_P50].value > 0.5);
    CHECK(summary.good_share.value >= 1);
    load_records_free(&records);
    vp_server_close(endpoint.server);
    free(endpoint.url);
    queue_stop(&server);
}

/* ---- a client that stands still */
static struct { int64_t from_ns, ms; } stall;
static void *stall_thread(void *process) {
    const struct timespec before = {0, 300000000}, during = {0, (long)stall.ms * 1000000};
    (void)process;
    nanosleep(&before, NULL);
    kill(getppid(), SIGSTOP);
    nanosleep(&during, NULL);
    kill(getppid(), SIGCONT);
    return NULL;
}
static void test_stall(void) {
    enum { REQUESTS = 100 };
    static double due_s[REQUESTS];
    struct endpoint endpoint;
    struct load_plan plan;
    struct load_records records;
    struct load_summary summary;
    pid_t child, stopper;
    int results[2], status;
    double numbers[4] = {0, 0, 0, 0};
    check_case("a client that stands still for 400 ms: seen in the times from when requests were due, hidden in those from the send");
    start(64, 1000, 1, 0);
    CHECK(pipe(results) == 0);
    for (int i = 0; i < REQUESTS; i++) due_s[i] = 0.01 * i;
    /* a process of its own is stopped; its child wakes it again */
    if ((child = fork()) == 0) {
        stall.ms = 400;
        if ((stopper = fork()) == 0) { stall_thread(NULL); _exit(0); }
        if (!open_server(&endpoint)) _exit(1);
        plan = plan_of(due_s, REQUESTS, 0, 1);
        if (load_run(&endpoint, &plan, &records)) _exit(1);
        summary = load_summarize(&records, 0, 1, NULL);
        numbers[0] = summary.latency[LOAD_E2E][LOAD_P90].value;
        numbers[1] = summary.latency[LOAD_E2E_SENT][LOAD_P90].value;
        numbers[2] = (double)summary.late;
        numbers[3] = summary.latest_ms;
        waitpid(stopper, &status, 0);
        _exit(write(results[1], numbers, sizeof numbers) != sizeof numbers);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(read(results[0], numbers, sizeof numbers) == sizeof numbers);
    CHECK(numbers[2] >= 25 && numbers[3] > 250);
    CHECK(numbers[0] > 200);
    CHECK(numbers[1] < numbers[0] / 2);
    close(results[0]);
    close(results[1]);
    queue_stop(&server);
}

/* ---- nobody is there, and a signal */
static void test_failures(void) {
    enum { REQUESTS = 40 };
    static double due_s[REQUESTS];
    struct endpoint endpoint;
    struct load_plan plan;
    struct load_records records;
    check_case("a server that is away: the trial ends after its first failures, with exit code 4");
    start(1, 1000, 1, 0);
    CHECK(open_server(&endpoint));
    queue_stop(&server);
    for (int i = 0; i < REQUESTS; i++) due_s[i] = 0.001 * i;
    plan = plan_of(due_s, REQUESTS, 0, 60);
    listen_begin();
    CHECK_INT(load_run(&endpoint, &plan, &records), EXIT_DEVICE);
    listen_end();
    CHECK(strstr(room_said, "answers nothing: the first 20 requests failed") != NULL);
    CHECK(records.count >= 20 && records.items[0].reason != NULL);
    load_records_free(&records);
    vp_server_close(endpoint.server);
    free(endpoint.url);
}

int main(void) {
    struct endpoint endpoint;
    if (!folder_make("test_load_run")) return 1;
    server.port = 1;
    if (!open_server(&endpoint)) {
        check_skip("trials of load", "libcurl is not there");
        return check_done("test_load_run");
    }
    vp_server_close(endpoint.server);
    free(endpoint.url);
    test_queue();
    test_concurrency();
    test_stall();
    test_failures();
    remove_folder(folder);
    return check_done("test_load_run");
}
