/* load_tables.h: makes the tables of trials in reports and in the output of `load`. Trials come in; tables that explain
 * their columns go out. */
#ifndef VLMPROF_CLI_LOAD_TABLES_H
#define VLMPROF_CLI_LOAD_TABLES_H
#include "load/load_result.h"

/* The mean, minimum and maximum of a metric within the window; NaN if the server does not report it. */
vp_estimate load_metric_of(const struct load_level *level, int metric);

/* Adds the trials as tables that explain their columns. Returns 0 or an exit code after a message. */
int load_levels_add(struct document *document, const struct load_level *levels, size_t count);

#endif
