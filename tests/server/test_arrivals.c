/* test_arrivals.c: requests under load against a server with a known law, on a virtual clock: arrivals, the queue, closed loops, percentiles of correlated times, and
 * what is said of a block. The law of one worker with equal service times D, arrivals at rate l and r = l D: P(wait <= t) = (1 - r) sum over j <= t / D of
 * (l (j D - t))^j / j! exp(l (t - j D)) (Erlang 1909). */
#include "support/virtual_server.h"
#include "support/check.h"
#include "base/console.h"
#include "report/series.h"
#include "server/arrivals.h"

enum { SERVICE_NS = 8000000 };
static struct endpoint endpoint = {.url = (char *)"http://127.0.0.1:8"};
static double *ttft; /* ms from the due time, [requests of a block] */
static size_t failures;
static int body_of(void *user, size_t request, vp_exchange *exchange) {
    (void)user, (void)request;
    memset(exchange, 0, sizeof *exchange);
    exchange->body = strdup("{\"content\": \"what\"}");
    return exchange->body ? 0 : 4;
}
static int ended(void *user, size_t request, vp_exchange *exchange) {
    (void)user;
    failures += exchange->state != VP_EXCHANGE_DONE;
    ttft[request] = (double)(exchange->reply.first_ns - exchange->scheduled_ns) / 1e6;
    return 0;
}
static struct load_record *run_load(struct load load, size_t count, size_t *records) {
    const struct load_work work = {count, body_of, ended, NULL, "test"};
    vp_server_options options = {.url = endpoint.url};
    struct load_record *all = NULL;
    if (!endpoint.server && vp_server_open(&options, &endpoint.server, NULL) != VP_OK) return NULL;
    virtual_server.gap_ns = 0;
    failures = 0;
    ttft = realloc(ttft, count * sizeof *ttft);
    CHECK_INT(load_run(&endpoint, &load, &work, &all, records), 0);
    return all;
}

/* ---- the law */
static double wait_probability(double t, double rate, double service) {
    long double sum = 0, factorial = 1;
    for (int j = 0; j <= (int)(t / service); j++) {
        const long double x = (long double)rate * ((long double)t - j * (long double)service);
        factorial *= j ? j : 1;
        sum += (j % 2 ? -1 : 1) * powl(x, j) / factorial * expl(x);
    }
    return (double)(sum * (1 - (long double)rate * service));
}
/* The percentile of TTFT in ms. */
static double law(double percentile, double utilisation) {
    const double service = SERVICE_NS / 1e9, rate = utilisation / service, p = percentile / 100;
    double low = 0, high = 0.5;
    if (wait_probability(0, rate, service) >= p) high = 0;
    for (int i = 0; i < 50 && high > 0; i++) {
        const double middle = (low + high) / 2;
        if (wait_probability(middle, rate, service) < p) low = middle; else high = middle;
    }
    return 1e3 * (high + service) + VIRTUAL_NETWORK_NS / 1e6;
}
static int by_value(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}
static void test_law(void) {
    static const struct { double utilisation; size_t blocks; } levels[] = {{0.3, 5}, {0.6, 20}, {0.8, 60}};
    enum { BLOCK = 10000 };
    for (size_t level = 0; level < 3; level++) {
        const double utilisation = levels[level].utilisation;
        double *all = malloc(levels[level].blocks * BLOCK * sizeof *all);
        size_t records, wrong = 0;
        if (!all) return;
        for (size_t block = 0; block < levels[level].blocks; block++) {
            const struct load load = {.rate = utilisation * 1e9 / SERVICE_NS, .seed = 100 + (uint32_t)block, .ramp_s = 2};
            struct load_record *items = run_load(load, BLOCK, &records);
            int64_t free_ns = 0;
            for (size_t i = 0; i < records; i++) { /* Lindley's recursion */
                const int64_t arrived = items[i].due_ns + VIRTUAL_NETWORK_NS, begin = arrived > free_ns ? arrived : free_ns;
                free_ns = begin + SERVICE_NS;
                wrong += llabs(items[i].first_ns - free_ns) > 100000;
            }
            free(items);
            memcpy(all + block * BLOCK, ttft, BLOCK * sizeof *all);
        }
        check_case("TTFT from the due time is that of the queue, request by request");
        CHECK_INT(wrong, 0);
        check_case("P50 and P95 of TTFT are within 3 % of the law at 30, 60 and 80 % utilisation");
        qsort(all, levels[level].blocks * BLOCK, sizeof *all, by_value);
        for (int p = 50; p < 100; p += 45) {
            const double measured = all[levels[level].blocks * BLOCK * (size_t)p / 100];
            const double by_law = law(p, utilisation);
            if (fabs(measured / by_law - 1) > 0.03) printf("utilisation %.1f: P%d is %.2f ms, by the law %.2f\n", utilisation, p, measured, by_law);
            CHECK(fabs(measured / by_law - 1) <= 0.03);
        }
        free(all);
    }
}
/* TTFTs of a queue with equal service times, in its steady state. */
static void waits(uint32_t seed, double utilisation, double *values, int count) {
    double now = 0, free_at = 0;
    vp_random random;
    vp_random_seed(&random, seed);
    for (int i = -500; i < count; i++) {
        now += -log1p(-vp_random_double(&random)) * SERVICE_NS / 1e6 / utilisation;
        free_at = (now + 0.1 > free_at ? now + 0.1 : free_at) + SERVICE_NS / 1e6;
        if (i >= 0) values[i] = free_at - now;
    }
}
static void test_intervals(void) {
    static double values[5000];
    check_case("intervals of percentiles contain the law's in at least 90 of 100 series, where there is one");
    for (int level = 0; level < 3; level++)
        for (int p = 50; p < 100; p += 45) {
            const double utilisation = level == 2 ? 0.8 : 0.3 * (level + 1), truth = law(p, utilisation);
            int covered = 0, known = 0;
            for (uint32_t seed = 0; seed < 200; seed++) {
                waits(seed, utilisation, values, 5000);
                const vp_estimate estimate = series_percentile(values, 5000, p);
                known += isfinite(estimate.low) != 0;
                covered += estimate.low <= truth + 1e-6 && estimate.high >= truth - 1e-6;
            }
            printf("utilisation %.1f, P%d: %d of %d intervals contain the law's\n", utilisation, p, covered, known);
            CHECK(known >= 100 && covered * 10 >= known * 9);
        }
}

static void test_limits(void) {
    static double values[400];
    size_t enough;
    check_case("a limit equal to the P95 gets a wrong yes or no in at most 5 %% of samples of 400 requests; a clear limit is decided");
    for (int level = 0; level < 3; level++) {
        const double utilisation = level == 2 ? 0.8 : 0.3 * (level + 1), truth = law(95, utilisation);
        int verdicts[3] = {0}; /* no, undecided, yes */
        for (uint32_t seed = 0; seed < 400; seed++) {
            waits(seed, utilisation, values, 400);
            verdicts[1 + series_meets(values, 400, 95, truth, &enough)]++;
            CHECK(series_meets(values, 400, 95, SERVICE_NS / 1e6, &enough) == -1);
        }
        CHECK(verdicts[0] <= 20 && verdicts[2] <= 20);
    }
    for (int i = 0; i < 180; i++) values[i] = 70 + i % 7;
    CHECK(series_meets(values, 180, 95, 800, &enough) == 1 && series_meets(values, 180, 95, 50, &enough) == -1);
    CHECK(series_meets(values, 40, 95, 800, &enough) == 0 && enough > 60 && series_meets(values, 0, 95, 1, &enough) == 0);
    check_case("the requests needed decide half of the simulated samples with the measured share above the limit, and fewer decide less");
    static const int above[] = {0, 1, 6};
    for (int k = 0; k < 3; k++) {
        vp_random random;
        int decided[2] = {0};
        size_t other;
        for (int i = 0; i < 60; i++) values[i] = above[k] && i % (60 / above[k]) == 5;
        CHECK(series_meets(values, 60, 95, 0.5, &enough) == 0 && enough > 60 && enough < 400);
        vp_random_seed(&random, 7);
        for (int trial = 0; trial < 800; trial++) {
            const size_t count = trial % 2 ? enough : enough * 2 / 3, needed = enough;
            for (size_t i = 0; i < count; i++) values[i] = vp_random_double(&random) * 60 < above[k];
            decided[trial % 2] += series_meets(values, count, 95, 0.5, &other) != 0;
            enough = needed;
        }
        printf("%d of 60 above: %zu needed decide %d of 400 samples, two thirds of them %d\n", above[k], enough, decided[1], decided[0]);
        CHECK(decided[1] >= 140 && (!k || decided[1] <= 260) && decided[0] < decided[1]);
    }
}

/* ---- loops */
static void test_closed(void) {
    struct load_line line = {0};
    size_t records;
    check_case("a closed loop of 4 has 4 requests in flight, and the worker's rate");
    struct load_record *items = run_load((struct load){.concurrency = 4, .ramp_s = 1}, 500, &records);
    load_summarize(items, records, &line);
    CHECK(fabs(line.mean_in_flight - 4) < 0.05 && fabs(line.completed_per_s - 125) < 1 && !line.is_growing);
    CHECK_INT(line.requests, 500);
    CHECK_INT(line.late + line.failed, 0);
    size_t most = 0, ramps = 0;
    for (size_t i = 0; i < records; i++) {
        size_t now = 0;
        ramps += items[i].is_ramp != 0;
        for (size_t k = 0; k < records; k++) now += items[k].due_ns <= items[i].due_ns && items[k].end_ns > items[i].due_ns;
        if (now > most) most = now;
    }
    CHECK_INT(most, 4);
    CHECK(ramps > 100 && records == 500 + ramps);
    free(items);
}
static void test_open(void) {
    struct load_line line = {0};
    size_t records;
    check_case("uniform arrivals have equal gaps; another seed has other arrivals, the same seed the same");
    struct load_record *items = run_load((struct load){.rate = 50, .is_uniform = 1, .ramp_s = 1}, 100, &records);
    for (size_t i = 1; i < records; i++) CHECK(llabs(items[i].due_ns - items[i - 1].due_ns - 20000000) <= 1);
    free(items);
    struct load_record *first = run_load((struct load){.rate = 50, .seed = 7}, 100, &records), *again = run_load((struct load){.rate = 50, .seed = 7}, 100, &records);
    struct load_record *other = run_load((struct load){.rate = 50, .seed = 8}, 100, &records);
    CHECK(first[50].due_ns == again[50].due_ns && first[50].due_ns != other[50].due_ns);
    check_case("few Poisson arrivals have the rate of the block, not one that is tens of percent off");
    load_summarize(first, 100, &line);
    CHECK(fabs(line.offered_per_s - 50) < 1e-3);
    free(first), free(again), free(other);
    check_case("a rate above the worker's: the queue grows, which is said");
    items = run_load((struct load){.rate = 160, .seed = 1, .ramp_s = 1}, 400, &records);
    load_summarize(items, records, &line);
    CHECK(line.is_growing && line.waiting > 50 && fabs(line.completed_per_s - 125) < 2 && line.offered_per_s > 140);
    free(items);
    check_case("without a request there is no block");
    items = run_load((struct load){.rate = 1}, 0, &records);
    load_summarize(items, records, &line);
    CHECK(!records && !line.requests && isnan(line.offered_per_s));
    free(items);
}
static void test_summary(void) {
    struct load_record records[40];
    struct load_line line;
    check_case("late and failed requests are counted, those of ramps are not");
    for (int i = 0; i < 40; i++)
        records[i] = (struct load_record){.request = (size_t)i, .is_ramp = i < 4, .has_failed = i == 2 || i == 30, .due_ns = i * 10000000,
                                          .start_ns = i * 10000000 + (i == 3 || i == 9 ? 6000000 : 0), .first_ns = i * 10000000 + 3000000,
                                          .end_ns = i * 10000000 + 5000000};
    load_summarize(records, 40, &line);
    CHECK(line.requests == 36 && line.late == 1 && line.failed == 1 && line.waiting == 1 && !line.is_growing);
    CHECK(fabs(line.offered_per_s - 100) < 1e-6 && fabs(line.window_s - 0.35) < 1e-9 && fabs(line.mean_in_flight - 0.5) < 0.01);
    check_case("percentiles of few or equal values have no interval, or one point");
    const double equal[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    CHECK(isnan(series_percentile(equal, 10, 95).low) && series_percentile(equal, 10, 95).value == 5);
    CHECK(isnan(series_percentile(NULL, 0, 50).value));
    CHECK(series_percentile(equal, 10, 50).low == 5 && series_percentile(equal, 10, -1).value == 5);
}
static void test_metrics(void) {
    check_case("requests of others, from the metrics of vLLM, SGLang and llama.cpp; unknown without them");
    struct server_counts counts = server_counts_of("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 2.0\n"
                                                   "vllm:num_requests_waiting{engine=\"0\"} 3.0\nvllm:request_success_total{finished_reason=\"stop\"} 40.0\n"
                                                   "vllm:request_success_total{finished_reason=\"length\"} 2.0\n");
    CHECK(counts.finished == 42 && counts.held == 5);
    counts = server_counts_of("sglang:num_requests_total{x=\"y\"} 7\nsglang:num_running_reqs 1");
    CHECK(counts.finished == 7 && counts.held == 1);
    counts = server_counts_of("llamacpp:requests_processing 4\nllamacpp:requests_deferred 1\n");
    CHECK(counts.finished == -1 && counts.held == 5);
    counts = server_counts_of("process_cpu 3\n\n\nvllm:num_requests_running nan\n");
    CHECK(counts.finished == -1 && counts.held == -1);
}
int main(void) {
    console_configure(1);
    RUN_TESTS(test_law, test_intervals, test_limits, test_closed, test_open, test_summary, test_metrics);
    vp_server_close(endpoint.server);
    free(ttft);
    return check_done("test_arrivals");
}
