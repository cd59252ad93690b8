/* plan_cost.h: sweep --plan: the work, memory and time of a sweep, and the differences that its samples can resolve. A
 * plan comes in; text or JSON goes to stdout. */
#ifndef VLMPROF_CLI_PLAN_COST_H
#define VLMPROF_CLI_PLAN_COST_H
#include "sweep/sweep.h"

/* Prints what a sweep needs: work and memory by count, time from the journals in output_dir. Only the model's shape is
 * used. Returns 0 or an exit code. */
int plan_cost_show(const struct sweep *sweep, int as_json);

#endif
