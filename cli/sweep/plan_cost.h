/* plan_cost.h: sweep --plan: the memory and the time of a sweep, and what its samples can distinguish.
 * A plan comes in; text or JSON goes to stdout. */
#ifndef VLMPROF_CLI_PLAN_COST_H
#define VLMPROF_CLI_PLAN_COST_H
#include "base/options.h"
#include "data/plan.h"
#include "model/model.h"
#include "sweep/baseline.h"

/* Times a few blocks of the model's shape to estimate the rest, and prints the forecast; journals that are in
 * output_dir already replace estimates. Of the model only its shape is used; model NULL: of servers, whose times only a
 * journal shows. Returns 0 or an exit code. */
int plan_cost_show(const struct options *options, const struct model *model, const struct plan *plan,
                   const struct baseline *baseline);

#endif
