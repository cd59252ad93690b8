/* load_check.h: does the summary in a trial's file agree with its requests? The file's summary and a recomputed one
 * come in; an exit code comes out. */
#ifndef VLMPROF_CLI_LOAD_CHECK_H
#define VLMPROF_CLI_LOAD_CHECK_H
#include "vlmprof.h"

/* Compares the members of a file's summary with `computed`, an object with the same members, recomputed from the file's
 * requests. Members that the file lacks are skipped, because older files have fewer. Returns 0, or EXIT_INPUT after a
 * message with both numbers. */
int load_check_summary(const char *path, const vp_json *json, uint32_t summary, const vp_json *computed);

#endif
