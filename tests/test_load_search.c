/* test_load_search.c: the search for the highest rate, over queues that are simulated on a made-up clock: the right rate is known, from the latency model of M/M/1 or
 * from millions of requests. How often the interval contains it, and how often it is as narrow as was asked for. VLMPROF_SEARCHES=200: so
 * many searches a queue, which takes longer than the slow tests may. */
#include "load/load_search.h"
#include "load/load_stats.h"
#include "support/check.h"
#include <math.h>
#include <stdlib.h>

enum queue { QUEUE_MM1, QUEUE_MD1, QUEUE_BATCH, QUEUE_COUNT };
static const char *const QUEUE_NAMES[QUEUE_COUNT] = {"M/M/1", "M/D/1", "batches of 8 at most"};
static const double SERVICE_S = 0.04, LIMIT_MS = 200, SHARE = 0.95, RAMP_S = 6, COOL_S = 6, DURATION_S = 60;

/* A queue in which requests come at a rate, from an empty one on. */
struct sim { enum queue kind; vp_arrivals arrivals; vp_random random; double free_s, next_s; double batch_end_s[8]; };
static void sim_begin(struct sim *sim, enum queue kind, double rate, uint32_t seed) {
    memset(sim, 0, sizeof *sim);
    sim->kind = kind;
    vp_random_seed(&sim->random, seed ^ 0x5bd1e995u);
    vp_arrivals_begin(VP_ARRIVALS_POISSON, rate, 1, seed, &sim->arrivals);
    sim->next_s = vp_arrivals_next(&sim->arrivals);
}
static double uniform(vp_random *random) { return 1 - vp_random_double(random); } /* above 0 */
/* Appends the requests that are due before end_s; a batch that begins before it is whole. */
static void sim_until(struct sim *sim, double end_s, struct load_records *records) {
    while (sim->next_s < end_s) {
        double due_s[8];
        int count = 0;
        double begin_s, service_s;
        due_s[count++] = sim->next_s;
        sim->next_s = vp_arrivals_next(&sim->arrivals);
        begin_s = fmax(due_s[0], sim->free_s);
        while (sim->kind == QUEUE_BATCH && count < 8 && sim->next_s <= begin_s) {
            due_s[count++] = sim->next_s;
            sim->next_s = vp_arrivals_next(&sim->arrivals);
        }
        service_s = sim->kind == QUEUE_MM1 ? -log(uniform(&sim->random)) * SERVICE_S
                    : sim->kind == QUEUE_MD1 ? SERVICE_S : SERVICE_S * (0.7 + 0.3 * count);
        sim->free_s = begin_s + service_s;
        for (int i = 0; i < count; i++) {
            struct load_record *record;
            if (records->count == records->capacity) {
                records->capacity = 2 * records->capacity + 1024;
                records->items = realloc(records->items, records->capacity * sizeof *records->items);
            }
            record = &records->items[records->count++];
            memset(record, 0, sizeof *record);
            record->due_ns = record->start_ns = (int64_t)(due_s[i] * 1e9);
            record->first_ns = record->last_ns = record->end_ns = (int64_t)(sim->free_s * 1e9);
            record->usage.completion_tokens = 1;
            record->attempts = 1;
        }
    }
}
static double share_at(enum queue kind, double rate) {
    struct sim sim;
    struct load_records records = {NULL, 0, 0, 0, 0};
    size_t good = 0, all = 0;
    sim_begin(&sim, kind, rate, 7);
    for (double end_s = 1e4; end_s <= 15e4; end_s += 1e4) {
        records.count = 0;
        sim_until(&sim, end_s, &records);
        all += records.count;
        for (size_t i = 0; i < records.count; i++) good += load_latency(&records.items[i], LOAD_TTFT) <= LIMIT_MS;
    }
    free(records.items);
    return (double)good / (double)all;
}
/* The rate at which SHARE of the requests meet the limit. */
static double right_rate(enum queue kind) {
    double low = 1, high = 24;
    if (kind == QUEUE_MM1) return 1 / SERVICE_S - log(1 / (1 - SHARE)) / (LIMIT_MS / 1e3); /* stays are exponential */
    if (kind == QUEUE_BATCH) high = 70;
    while (high / low > 1.002) {
        const double middle = sqrt(low * high);
        if (share_at(kind, middle) >= SHARE) low = middle; else high = middle;
    }
    return sqrt(low * high);
}
/* A whole search on the made-up clock, as command_load.c makes it. */
static void search_once(enum queue kind, uint32_t seed, double first, struct load_search *search) {
    memset(search, 0, sizeof *search);
    search->share = SHARE;
    search->duration_s = DURATION_S;
    search->ramp_s = RAMP_S;
    search->cool_down_s = COOL_S;
    search->budget_s = 1e9;
    vp_slo_parse("ttft:200", &search->slo, NULL);
    CHECK(load_search_begin(search, first, 0.1) == VP_OK);
    while (!isnan(search->rates.next)) {
        struct load_trial trial = {search->rates.next, 0, load_search_duration(search), {0, 0, 0, 0}, VP_TRIAL_UNDECIDED};
        struct load_records records = {NULL, 0, 0, 0, 0};
        struct sim sim;
        sim_begin(&sim, kind, trial.rate, load_search_seed(seed, trial.rate));
        for (;;) {
            double longer_s = load_search_longer(search, trial.duration_s);
            sim_until(&sim, trial.duration_s, &records);
            trial.verdict = load_search_judge(search, &records, trial.duration_s - COOL_S);
            if (trial.verdict != VP_TRIAL_UNDECIDED || !(longer_s > trial.duration_s)) break;
            trial.duration_s = longer_s;
        }
        load_search_take(search, &trial, trial.duration_s);
        free(records.items);
    }
}
static void test_searches(void) {
    const char *wanted = getenv("VLMPROF_SEARCHES");
    const int searches = wanted && atoi(wanted) > 2 ? atoi(wanted) : 2; /* two check that each search ends, and its width */
    for (int kind = 0; kind < QUEUE_COUNT; kind++) {
        const double right = right_rate((enum queue)kind);
        int contained = 0, narrow = 0;
        double spent_s = 0;
        check_case("%s, right rate %.4g: %d searches contain it, and are narrow", QUEUE_NAMES[kind], right, searches);
        for (int i = 0; i < searches; i++) {
            struct load_search search;
            search_once((enum queue)kind, (uint32_t)(1000 * kind + i), 1 + i % 7, &search);
            contained += search.rates.low <= right && right <= search.rates.high;
            narrow += load_search_is_precise(&search);
            spent_s += search.spent_s / searches;
            load_search_free(&search);
        }
        printf("%s: %.1f %% contain %.4g, %.1f %% are at most 10 %% wide, %.0f s a search\n", QUEUE_NAMES[kind], 100.0 * contained / searches, right,
               100.0 * narrow / searches, spent_s);
        CHECK(contained * 100 >= searches * 93);
        CHECK(narrow * 100 >= searches * 90);
    }
}
int main(void) {
    test_searches();
    return check_done("test_load_search");
}
