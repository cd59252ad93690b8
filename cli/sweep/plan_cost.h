/* plan_cost.h: sweep --plan: the memory and time of a sweep, and the differences that its samples can resolve. A plan
 * comes in; text or JSON goes to stdout. */
#ifndef VLMPROF_CLI_PLAN_COST_H
#define VLMPROF_CLI_PLAN_COST_H
#include "base/options.h"
#include "data/plan.h"
#include "model/model.h"
#include "sweep/baseline.h"

/* Times a few blocks of the model's shape to estimate the rest, and prints the forecast; existing journals in
 * output_dir replace estimates. Only the model's shape is used. model NULL: servers, whose times can only come from a
 * journal. Returns 0 or an exit code. */
int plan_cost_show(const struct options *options, const struct model *model, const struct plan *plan,
                   const struct baseline *baseline);

#endif
