/* load_check.h: does the summary of a trial's file say what its requests say?
 * The file's summary and one computed again come in; an exit code comes out. */
#ifndef VLMPROF_CLI_LOAD_CHECK_H
#define VLMPROF_CLI_LOAD_CHECK_H
#include "vlmprof.h"

/* Compares the members of a file's summary with `computed`: an object of the same members, computed from the file's
 * requests. Members that the file lacks are not compared, because older files have fewer. Returns 0, or EXIT_INPUT
 * after a message with both numbers. */
int load_check_summary(const char *path, const vp_json *json, uint32_t summary, const vp_json *computed);

#endif
