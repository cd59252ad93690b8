/* load_compare.h: compares two sets of trials at equal loads: is B slower than A? */
#ifndef VLMPROF_CLI_LOAD_COMPARE_H
#define VLMPROF_CLI_LOAD_COMPARE_H
#include "load/load_result.h"

/* margins: shares below which differences count as the same; forces_images: 1 if caches may be used differently;
 * fails_unsure: 1 if an undecided comparison is a failure. */
struct load_margins { double latency, share; int forces_images, is_json, fails_unsure; };

/* Prints TTFT, TPOT, E2E and the good requests of B against A at each load that both have. names: the names of A and B.
 * Returns the exit code: EXIT_WORK if B is slower or has fewer good requests or, with fails_unsure, if a comparison
 * could not be decided. */
int load_compare(const struct load_levels *before, const struct load_levels *after, const char *const names[2],
                 const struct load_margins *margins);

#endif
