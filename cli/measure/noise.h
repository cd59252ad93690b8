/* noise.h: describes the machine's other activity during a measurement. */
#ifndef VLMPROF_CLI_NOISE_H
#define VLMPROF_CLI_NOISE_H
#include "base/document.h"
#include "vlmprof_noise.h"

const char *noise_root(void); /* the root of the system's files: "", except in programs for tests */

/* As vp_noise_read; the processes of a group count as this process. group 0: none. */
void noise_read(const char *root, vp_noise_reading *reading, int64_t group);

/* The activity between the two calls becomes one block of the summary. The first call empties the summary. */
void noise_begin(vp_noise_summary *summary, vp_noise_reading *reading);
void noise_end(vp_noise_summary *summary, const vp_noise_reading *reading);

const char *noise_advice_sweep(double runs_per_sample); /* advises more runs only if there were few; NaN: not known */
#define NOISE_ADVICE_COMPARE \
    "latencies measured while other programs ran get a verdict only if they differ by more than such programs can " \
    "cause: sweep again on a quiet machine; --force noise compares them anyway"
#define NOISE_ADVICE_RUN "stop other programs and run again, with more --num_runs"

/* ---- costs hidden by noise */
/* Returns 1 if the interval of a cost is narrow enough: 1 percentage point, or a tenth of the cost. */
int is_cost_known(vp_estimate percent);

/* The number of pairs that an interval of +-1 percentage point needs, if `count` pairs of the same spread gave this
 * one: the width is inversely proportional to the root of their number. Two digits, rounded up; 0 if there is no
 * interval. */
int64_t pairs_to_tell(vp_estimate percent, size_t count);

/* "+2.31 [+1.90, +2.72]", with decimals according to the interval's width; "-17 to +50" for a cost that is not known;
 * "-" without an interval. */
struct number_text number_cost(vp_estimate percent);

/* Writes why a cost is not known and how many `pairs` (their name) would be enough. */
void say_unknown_cost(char *text, size_t capacity, vp_estimate percent, size_t count, const char *pairs);

/* ---- warnings */
#define NOISE_WARNING "the machine was not quiet"
/* Adds a warning if the machine was not quiet: the worst observation among the items, and what to do. Each sweep
 * (folder of the paths) has its own clause.
 * paths: [count]; NULL if all items are of one sweep. names: [count]; not read if there is only one item. */
void noise_warn(struct text_list *warnings, const vp_noise_summary *items, const char *const *paths,
                const char *const *names, size_t count, const char *advice);

#endif
