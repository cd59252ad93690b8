/* bench_ranges.c: what a pair of vp_range_begin and vp_range_end, or of a stage, costs, and how much of it is the two clock reads. Medians and spread of 201 short
 * rounds, so that most of them fall between two interruptions; a round of each kind follows the other, so that drift hits all equally. The budget is 50 ns.
 * Build: cc -O2 -I. tests/bench/bench_ranges.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 201, PAIRS = 2000, DEEP = 8 };
typedef enum kind { CLOCK, PAIR, NESTED, WITH_PAYLOAD, HOOKED, FULL, STAGE, KINDS } kind;
static const char *const names[KINDS] = { "two clock reads", "begin and end", "8 deep", "with payload", "with hooks", "buffer full", "stage begin and end" };
static int64_t pushed;

static void push(void *user, const char *name) { pushed += user != NULL || name != NULL; }
static void pop(void *user) { pushed += user != NULL; }

/* nanoseconds a pair */
static double one(kind what, vp_range_record *records) {
    const vp_range_payload payload = { 1000, 2000, 0, { 64, 2048, 0, 0 }, 2 };
    const vp_range_hooks hooks = { push, pop, NULL };
    static vp_stage_mark marks[PAIRS];
    vp_stage_clock clock = vp_stage_clock_over(marks, PAIRS);
    vp_ranges ranges;
    int64_t start, last = 0;
    int i, k;
    vp_ranges_init(&ranges, records, what == FULL ? 0 : PAIRS, 0, NULL, what == HOOKED ? &hooks : NULL);
    start = vp_clock_ns();
    for (i = 0; i < PAIRS; i++) {
        if (what == STAGE) {
            vp_stage_begin(&clock, "stage");
            vp_stage_end(&clock);
        } else if (what == CLOCK) {
            last += vp_clock_ns() - vp_clock_ns();
        } else if (what == NESTED) {
            for (k = 0; k < DEEP && i + k < PAIRS; k++) VP_RANGE(&ranges, "nested");
            for (; k > 0; k--) vp_range_end(&ranges);
            i += DEEP - 1;
        } else {
            VP_RANGE(&ranges, "pair");
            if (what == WITH_PAYLOAD) vp_range_set(&ranges, &payload);
            vp_range_end(&ranges);
        }
    }
    last = vp_clock_ns() + (last > 0);
    return (double)(last - start) / PAIRS;
}

int main(void) {
    static double ns[KINDS][ROUNDS];
    vp_range_record *records = (vp_range_record *)malloc(PAIRS * sizeof *records);
    vp_statistics s, clock;
    if (!records) return 1;
    memset(records, 0, PAIRS * sizeof *records); /* touched: page faults are not part of what is measured */
    for (int round = -1; round < ROUNDS; round++) {  /* round -1 warms up */
        for (int what = 0; what < KINDS; what++) {
            const double pair_ns = one((kind)what, records);
            if (round >= 0) ns[what][round] = pair_ns;
        }
    }
    if (vp_statistics_compute(ns[CLOCK], ROUNDS, ns[CLOCK], &clock) != VP_OK) return 1;
    for (int what = 0; what < KINDS; what++) {
        if (vp_statistics_compute(ns[what], ROUNDS, ns[what], &s) != VP_OK) return 1;
        printf("%-28s %7.1f ns a pair (min %.1f, P95 %.1f, %d rounds), clock's share %3.0f %%%s\n", names[what], s.p50, s.min, s.p95, ROUNDS,
               100.0 * clock.p50 / s.p50, what == CLOCK ? "" : s.p50 <= 50.0 ? ", within the budget" : ", OVER the budget of 50 ns");
    }
    free(records);
    return pushed > 0 ? 0 : 1;
}
