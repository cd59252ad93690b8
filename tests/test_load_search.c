/* test_load_search.c: the search for the highest rate, over queues simulated on a virtual clock. The right rate is known from M/M/1 theory or
 * from millions of requests. Counts how often the interval contains it, and how often it is as narrow as requested. VLMPROF_SEARCHES=200 runs 200 searches per queue,
 * which takes about 15 minutes; VLMPROF_VERBOSE=1 prints each trial. */
#include "load/load_search.h"
#include "load/load_stats.h"
#include "support/check.h"
#include <math.h>
#include <stdlib.h>

enum queue { QUEUE_MM1, QUEUE_MD1, QUEUE_BATCH, QUEUE_COUNT };
static const char *const QUEUE_NAMES[QUEUE_COUNT] = {"M/M/1", "M/D/1", "batches of 8 at most"};
static const double SERVICE_S = 0.04, LIMIT_MS = 200, SHARE = 0.95, RAMP_S = 6, COOL_S = 6, DURATION_S = 60;

/* A queue, empty at first, whose requests arrive at a rate. */
struct sim { enum queue kind; vp_arrivals arrivals; vp_random random; double free_s, next_s; double batch_end_s[8]; };
static void sim_begin(struct sim *sim, enum queue kind, double rate, uint32_t seed) {
    memset(sim, 0, sizeof *sim);
    sim->kind = kind;
    vp_random_seed(&sim->random, seed ^ 0x5bd1e995u);
    vp_arrivals_begin(VP_ARRIVALS_POISSON, rate, 1, seed, &sim->arrivals);
    sim->next_s = vp_arrivals_next(&sim->arrivals);
}
static double uniform(vp_random *random) { return 1 - vp_random_double(random); } /* above 0 */
/* Appends the requests that are due before end_s; a batch that starts before end_s is completed. */
static void sim_until(struct sim *sim, double end_s, struct load_records *records) {
    while (sim->next_s < end_s) {
        double due_s[8];
        int count = 0;
        due_s[count++] = sim->next_s;
        sim->next_s = vp_arrivals_next(&sim->arrivals);
        double begin_s = fmax(due_s[0], sim->free_s);
        while (sim->kind == QUEUE_BATCH && count < 8 && sim->next_s <= begin_s) {
            due_s[count++] = sim->next_s;
            sim->next_s = vp_arrivals_next(&sim->arrivals);
        }
        double service_s = sim->kind == QUEUE_MM1 ? -log(uniform(&sim->random)) * SERVICE_S
                           : sim->kind == QUEUE_MD1 ? SERVICE_S : SERVICE_S * (0.7 + 0.3 * count);
        sim->free_s = begin_s + service_s;
        for (int i = 0; i < count; i++) {
            if (records->count == records->capacity) {
                records->capacity = 2 * records->capacity + 1024;
                records->items = realloc(records->items, records->capacity * sizeof *records->items);
            }
            struct load_record *record = &records->items[records->count++];
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
    if (kind == QUEUE_MM1) return 1 / SERVICE_S - log(1 / (1 - SHARE)) / (LIMIT_MS / 1e3); /* response times are exponential */
    if (kind == QUEUE_MD1) { low = 17; high = 17.6; }
    if (kind == QUEUE_BATCH) { low = 46; high = 48; }
    while (high / low > 1.002) {
        const double middle = sqrt(low * high);
        if (share_at(kind, middle) >= SHARE) low = middle; else high = middle;
    }
    return sqrt(low * high);
}
/* Returns 1 if load_run.c would judge the trial hopeless. */
static int is_hopeless(const struct load_records *records) {
    size_t after = 0, all = 0;
    for (size_t i = 0; i < records->count; i++) {
        const struct load_record *record = &records->items[i];
        if ((double)record->due_ns / 1e9 < RAMP_S) continue;
        all++;
        after++;
        if (load_latency(record, LOAD_TTFT) <= LIMIT_MS) after = 0;
    }
    return after >= 20 && 2 * after >= all;
}
/* The part of a summary that the search reads. Omitting the percentiles makes it many times faster. */
static struct load_summary summarize(const struct load_records *records, double from_s, double to_s, const vp_slo *slo) {
    struct load_summary summary = {0};
    uint8_t *flags = malloc(records->count + 1);
    double *values = malloc((records->count + 1) * sizeof *values), *scratch = malloc((3 * records->count + 1) * sizeof *scratch);
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++) {
        const double due_s = (double)records->items[i].due_ns / 1e9;
        if (due_s < from_s || due_s >= to_s) continue;
        flags[count] = (uint8_t)load_is_good(&records->items[i], slo);
        values[count] = load_latency(&records->items[i], LOAD_E2E);
        summary.most[LOAD_E2E] = fmax(summary.most[LOAD_E2E], values[count++]);
    }
    summary.from_s = from_s;
    summary.to_s = to_s;
    summary.due = summary.latency_count[LOAD_E2E] = (int64_t)count;
    summary.offered = (double)count / (to_s - from_s);
    summary.accuracy.value = summary.accuracy.low = summary.accuracy.high = (double)NAN;
    if (vp_series_share(flags, count, 0.95, scratch, &summary.good_share) != VP_OK) summary.good_share.value = (double)NAN;
    vp_series_percentile(values, count, 50, 0.95, scratch, &summary.latency[LOAD_E2E][LOAD_P50]);
    FREE_ALL(flags, values, scratch);
    return summary;
}
/* A whole search on the virtual clock, as in command_load.c. */
static void search_once(enum queue kind, uint32_t seed, double first, double budget_s, struct load_search *search) {
    memset(search, 0, sizeof *search);
    search->share = SHARE;
    search->duration_s = DURATION_S;
    search->ramp_s = RAMP_S;
    search->cool_down_s = COOL_S;
    search->budget_s = budget_s;
    vp_slo_parse("ttft:200", &search->slo, NULL);
    CHECK(load_search_begin(search, first, 0.1) == VP_OK);
    while (!isnan(search->next)) {
        const double rate = search->next;
        double duration_s = search->next_s, longer_s = duration_s;
        struct load_records records = {NULL, 0, 0, 0, 0};
        struct load_summary summary;
        struct sim sim;
        int hopeless = 0;
        sim_begin(&sim, kind, rate, load_search_seed(seed, rate));
        do {
            duration_s = longer_s;
            for (double end_s = RAMP_S; end_s < duration_s && !hopeless; end_s += 2) {
                sim_until(&sim, end_s, &records);
                if ((hopeless = is_hopeless(&records)) != 0) duration_s = end_s;
            }
            sim_until(&sim, duration_s, &records);
            summary = summarize(&records, RAMP_S, hopeless ? duration_s : duration_s - COOL_S, &search->slo);
            longer_s = hopeless ? duration_s : load_search_longer(search, &summary, duration_s);
        } while (longer_s > duration_s);
        load_search_take(search, &summary, rate, duration_s, hopeless, fmax(duration_s, sim.free_s));
        if (getenv("VLMPROF_VERBOSE"))
            printf("  rate %-8g (%.4g) %4.0f s: %.4f good -> [%.4g, %.4g] likely %.4g, %zu near; %.0f s\n", rate, summary.offered, duration_s,
                   summary.good_share.value, search->answer.low, search->answer.high, search->answer.fitted, search->answer.near, search->spent_s);
        free(records.items);
    }
}
static void test_searches(void) {
    const char *wanted = getenv("VLMPROF_SEARCHES");
    const int searches = wanted && atoi(wanted) > 2 ? atoi(wanted) : 2; /* two searches verify that each ends, and its width */
    for (int kind = 0; kind < QUEUE_COUNT; kind++) {
        const double right = right_rate((enum queue)kind);
        int contained = 0, narrow = 0, above = 0, below = 0;
        double spent_s = 0, trials = 0;
        check_case("%s, right rate %.4g: %d searches contain it, with narrow intervals", QUEUE_NAMES[kind], right, searches);
        for (int i = 0; i < searches; i++) {
            struct load_search search;
            search_once((enum queue)kind, (uint32_t)(1000 * kind + i), 1 + i % 7, 1e6, &search);
            contained += search.answer.low <= right && right <= search.answer.high;
            above += search.answer.low > right;
            below += search.answer.high < right;
            narrow += load_search_is_precise(&search);
            spent_s += search.spent_s / searches;
            trials += (double)search.trial_count / searches;
            load_search_free(&search);
        }
        printf("%s: %.1f %% contain %.4g (%d above it, %d below), %.1f %% are at most 10 %% wide, %.0f s and %.1f trials a search\n", QUEUE_NAMES[kind],
               100.0 * contained / searches, right, above, below, 100.0 * narrow / searches, spent_s, trials);
        CHECK(contained * 100 >= searches * 93);
        CHECK(narrow * 100 >= searches * 90);
    }
}
/* Wilson's interval of one trial; the order of several; accuracy. */
static void test_answers(void) {
    const struct load_point good = {1, 1, 100, 1, 100, VP_TRIAL_HOLDS}, bad = {4, 0.5, 100, 1, 100, VP_TRIAL_HOLDS},
                            few = {1, 1, 60, 1, 60, VP_TRIAL_HOLDS}, wrong = {2, 1, 100, 1, 100, VP_TRIAL_FAILS};
    struct load_point points[3];
    struct load_answer answer;
    check_case("a single trial meets or misses by its own 95 %% interval");
    load_answer_of(&good, 1, SHARE, &answer);
    CHECK(load_answer_at(&answer, &good) == VP_TRIAL_HOLDS && answer.low == 1 && answer.high == HUGE_VAL);
    load_answer_of(&bad, 1, SHARE, &answer);
    CHECK(load_answer_at(&answer, &bad) == VP_TRIAL_FAILS && answer.low == 0 && answer.high == 4);
    load_answer_of(&few, 1, SHARE, &answer); /* 73 good requests of 73 would be enough */
    CHECK(load_answer_at(&answer, &few) == VP_TRIAL_UNDECIDED && answer.low == 0 && answer.high == HUGE_VAL);
    check_case("two trials bound the rate; a single undecided trial below one that meets the objective also meets it");
    points[0] = few; points[0].at = 0.5; points[1] = good; points[2] = bad;
    load_answer_of(points, 3, SHARE, &answer);
    CHECK(answer.low == 1 && answer.high == 4 && load_answer_at(&answer, &points[0]) == VP_TRIAL_HOLDS);
    CHECK(answer.likely_low == 1 && answer.likely_high == 4 && isnan(answer.fitted));
    check_case("a load whose accuracy misses the objective is too high, even if its requests are in time");
    points[0] = good; points[1] = wrong; points[2] = bad;
    load_answer_of(points, 3, SHARE, &answer);
    CHECK(answer.low == 1 && answer.high == 2 && answer.is_by_accuracy);
}
/* If the budget is too small, it is never exceeded, and the interval is as narrow as the trials allow. */
static void test_budgets(void) {
    char text[32];
    check_case("long times are written in minutes or hours");
    CHECK_TEXT(load_search_time(111, text), "111 s");
    CHECK_TEXT(load_search_time(1200, text), "20 minutes");
    CHECK_TEXT(load_search_time(18000, text), "5 hours");
    static const double budgets_s[] = {300, 600, 1200};
    for (size_t i = 0; i < sizeof budgets_s / sizeof *budgets_s; i++) {
        struct load_search search;
        check_case("the whole search stays within a budget of %g s", budgets_s[i]);
        search_once(QUEUE_MM1, 5, 1, budgets_s[i], &search);
        /* load_run.c abandons open requests when the budget ends; here the last queue is drained, which takes about a second */
        CHECK(search.spent_s <= budgets_s[i] + 2);
        CHECK(load_search_is_precise(&search) ? search.end == LOAD_FOUND : search.end == LOAD_BUDGET && search.spent_s > 0.5 * budgets_s[i]);
        load_search_free(&search);
    }
}
int main(void) {
    test_answers();
    test_budgets();
    test_searches();
    return check_done("test_load_search");
}
