/* load_tables.h: makes the tables of trials in reports and in the output of `load`. Trials come in; tables that explain
 * their columns go out. */
#ifndef VLMPROF_CLI_LOAD_TABLES_H
#define VLMPROF_CLI_LOAD_TABLES_H
#include "load/load_result.h"

/* Adds the trials as tables that explain their columns. Returns 0 or an exit code after a message. */
int load_levels_add(struct document *document, const struct load_level *levels, size_t count);

#endif
