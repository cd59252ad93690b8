/* bench_timer.c: what measuring itself costs: a read of the clock, and the question whether another run is needed. Medians and spread of nine rounds.
 * Build: cc -O2 -I. tests/bench/bench_timer.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include <stdio.h>

enum { ROUNDS = 9, MOST = 1000 };

static void print(const char *name, double *per_call_ns) {
    vp_statistics s;
    if (vp_statistics_compute(per_call_ns, ROUNDS, per_call_ns, &s) == VP_OK)
        printf("%-28s %10.1f ns (min %.1f, max %.1f, %d rounds)\n", name, s.p50, s.min, s.max, ROUNDS);
}

static void bench_clock(void) {
    enum { CALLS = 1000000 };
    double per_call_ns[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        const int64_t start = vp_clock_ns();
        int64_t last = start;
        for (int i = 0; i < CALLS; i++) last = vp_clock_ns();
        if (round >= 0) per_call_ns[round] = (double)(last - start) / CALLS;
    }
    print("clock read", per_call_ns);
}

/* a rule that never ends: what it takes to sort the runs and to find the interval of their P50 */
static void bench_stop(const double *values, size_t count) {
    enum { CALLS = 200 };
    const vp_stop_rule rule = {3, INT64_MAX, 1e-9, 0.95, 0};
    double scratch[MOST], per_call_ns[ROUNDS];
    char name[64];
    int round, i, going = 0;
    for (round = -1; round < ROUNDS; round++) {
        const int64_t start = vp_clock_ns();
        for (i = 0; i < CALLS; i++) {
            vp_stop stop = VP_STOP_MAX;
            going += vp_stop_decide(&rule, values, count, 1, scratch, &stop) == VP_OK && stop == VP_STOP_NOT;
        }
        if (round >= 0) per_call_ns[round] = (double)(vp_clock_ns() - start) / CALLS;
    }
    snprintf(name, sizeof name, "vp_stop_decide, %d runs%s", (int)count, going == (ROUNDS + 1) * CALLS ? "" : " (WRONG)");
    print(name, per_call_ns);
}

int main(void) {
    static double values[MOST];
    vp_random random;
    vp_random_seed(&random, 6);
    for (int i = 0; i < MOST; i++) values[i] = 100.0 + vp_random_double(&random);
    bench_clock();
    bench_stop(values, 10);
    bench_stop(values, 100);
    bench_stop(values, MOST);
    return 0;
}
