/* load_compare.h: two sets of trials at equal loads: is B slower than A? */
#ifndef VLMPROF_CLI_LOAD_COMPARE_H
#define VLMPROF_CLI_LOAD_COMPARE_H
#include "load/load_result.h"

/* Prints E2E and goodput of B against A at each load that both have. names: what A and B are called. Returns the exit
 * code: EXIT_WORK where B is slower or has less goodput, or, with fails_unsure, where nothing could be decided. */
int load_compare(const struct load_levels *before, const struct load_levels *after, const char *const names[2],
                 int is_json, int fails_unsure);

#endif
