/* noise.h: what else the machine did while something was measured, in words. */
#ifndef VLMPROF_CLI_NOISE_H
#define VLMPROF_CLI_NOISE_H
#include "base/document.h"
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_noise.h"

/* Where the files of the system are: "", or the folder that the environment variable VLMPROF_TEST_SYSTEM names. It is
 * for tests, whose outputs must not depend on what else the machine does. */
const char *noise_root(void);

/* What happens between the two calls becomes one block of the summary; the first call empties it. */
void noise_begin(vp_noise_summary *summary, vp_noise_reading *reading);
void noise_end(vp_noise_summary *summary, const vp_noise_reading *reading);

const char *noise_advice_sweep(double runs_per_sample); /* with more runs only where there were few; NaN: not known */
#define NOISE_ADVICE_COMPARE \
    "latencies measured next to other programs get no verdict: sweep again on a quiet machine; --force noise " \
    "compares them anyway"
#define NOISE_ADVICE_RUN "stop other programs and run again, with more --num_runs"

/* ---- a cost that noise hides */
/* Returns 1 if the interval of a cost says how large it is: to 1 percentage point, or to a tenth of itself. */
int is_cost_known(vp_estimate percent);

/* How many pairs give an interval of +-1 percentage point, when `count` pairs of the same spread gave this one: the
 * width goes with the root of their number. Two digits, rounded up. 0: there is no interval. */
int64_t pairs_to_tell(vp_estimate percent, size_t count);

/* "+2.31 [+1.90, +2.72]", with as many decimals as the interval's width makes sense of; "-17 to +50" for a cost that is
 * not known; "-" without an interval. */
struct number_text number_cost(vp_estimate percent);

/* A sentence about a cost that is not known: why, and how many `pairs` (a word) would decide. */
void say_unknown_cost(char *text, size_t capacity, vp_estimate percent, size_t count, const char *pairs);

/* ---- warnings */
#define NOISE_WARNING "the machine was not quiet"
/* Adds a warning when the machine was not quiet: what was seen, at its worst among the items, and what to do. Each
 * sweep (folder of the paths) has a clause of its own.
 * paths: [count]; NULL: one sweep. names: [count]; not read where there is one item. */
void noise_warn(struct text_list *warnings, const vp_noise_summary *items, const char *const *paths,
                const char *const *names, size_t count, const char *advice);

#endif
