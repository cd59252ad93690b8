/* load_export.h: writes trials in the formats of other tools, and their requests as CSV. Files of trials come in; one
 * file per trial, or one for all trials, goes out. */
#ifndef VLMPROF_CLI_LOAD_EXPORT_H
#define VLMPROF_CLI_LOAD_EXPORT_H
#include "load/load_bodies.h"
#include "load/load_result.h"

#define LOAD_EXPORT_FORMATS "aiperf vllm openmetrics"

/* Checks pairs of a format and a file name. Returns 0 or an exit code after a message. */
int load_export_check(const char *const *pairs, size_t count);

/* Writes the trials, whose files have been read, in a format. aiperf and vllm get one file per trial; with several
 * trials, the trial's name is inserted before the dot of `path`. Returns 0 or an exit code after a message. */
int load_export(const char *format, const char *path, const struct load_level *levels, size_t count);

/* Writes the requests of all trials, one per line, with the "id" of the record and whether the summary counts the
 * request. Returns 0 or an exit code after a message. */
int load_export_requests(const char *path, const struct load_level *levels, size_t count,
                         const struct load_bodies *bodies);

#endif
