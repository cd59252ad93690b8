/* best_objective.h: `best --slo`: the best choice that meets a latency objective. */
#ifndef VLMPROF_CLI_BEST_OBJECTIVE_H
#define VLMPROF_CLI_BEST_OBJECTIVE_H
#include "base/options.h"
#include "load/load_result.h"
#include "report/objective.h"
#include "report/tradeoff.h"

/* The most accurate configuration whose samples meet the objective. options_text returns the options of `vlmprof run`
 * that set a configuration, malloc'ed. Returns the exit code. */
int best_of_sweep(const struct options *options, const struct objective *objective, const struct results *results,
                  const struct tradeoff *tradeoff, double min_accuracy,
                  char *(*options_text)(const struct result_file *file));

/* The highest load at which a trial's requests meet the objective. Returns the exit code. */
int best_of_load(const struct options *options, const struct objective *objective, struct load_levels *levels);

#endif
