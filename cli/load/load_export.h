/* load_export.h: trials in the forms of other tools, and their requests as CSV.
 * Files of trials come in; one file for each trial, or one for all, goes out. */
#ifndef VLMPROF_CLI_LOAD_EXPORT_H
#define VLMPROF_CLI_LOAD_EXPORT_H
#include "load/load_bodies.h"
#include "load/load_result.h"

#define LOAD_EXPORT_FORMATS "aiperf vllm openmetrics"

/* Checks pairs of a format and a file name. Returns 0 or an exit code after a message. */
int load_export_check(const char *const *pairs, size_t count);

/* Writes the trials, whose files are read, in a format. aiperf, vllm: a file for each trial, with the trial's name
 * before the dot of `path` if there are several. Returns 0 or an exit code after a message. */
int load_export(const char *format, const char *path, const struct load_level *levels, size_t count);

/* Writes the requests of all trials, a line each, with whether the summary counts it and the "id" of its record.
 * Returns 0 or an exit code after a message. */
int load_export_requests(const char *path, const struct load_level *levels, size_t count,
                         const struct load_bodies *bodies);

#endif
