/* profile_page.h: run --profile --html FILE: writes the recorded profile as a page. */
#ifndef VLMPROF_CLI_PROFILE_PAGE_H
#define VLMPROF_CLI_PROFILE_PAGE_H
#include "profile/profile_cost.h"
#include "profile/profiler.h"

/* Writes the page of the last recorded request into the file of --html. The table of operations must be sorted, and the
 * profiler must keep a request. Returns 0 or an exit code after a message on stderr. */
int profile_page_write(const struct profiler *profiler, const struct cost_report *cost);

#endif
