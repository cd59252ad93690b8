/* forecast.h: sweep --plan: the memory and the time of a sweep, and what its samples can tell apart. */
#ifndef VLMPROF_CLI_FORECAST_H
#define VLMPROF_CLI_FORECAST_H
#include "base/options.h"
#include "dataset/plan.h"
#include "request/model.h"

/* sweep --plan, the model's shape and the plan being there */
int forecast_show(const options *o, const model *m, const plan *p);

#endif
