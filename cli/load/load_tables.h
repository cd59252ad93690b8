/* load_tables.h: what reports and `load` print of trials.
 * Trials come in; tables with what their columns are go out. */
#ifndef VLMPROF_CLI_LOAD_TABLES_H
#define VLMPROF_CLI_LOAD_TABLES_H
#include "load/load_result.h"

/* The mean of a metric within the window and its ends; NaN: the server does not say. */
vp_estimate load_metric_of(const struct load_level *level, int metric);

/* The trials as tables, with what their columns are; and the same on stdout. Return 0 or an exit code after a message.
 */
int load_levels_add(struct document *document, const struct load_level *levels, size_t count);
int load_levels_print(const struct load_level *levels, size_t count);

#endif
