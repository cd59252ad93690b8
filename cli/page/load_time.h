/* load_time.h: a trial over time: latencies next to the server's metrics, as figures of a page. */
#ifndef VLMPROF_CLI_LOAD_TIME_H
#define VLMPROF_CLI_LOAD_TIME_H
#include "load/load_result.h"

/* Adds a section with figures for each trial whose server has metrics, if there are any. Returns 0 or an exit code
 * after a message. */
int load_time_add(struct text_buffer *out, const struct load_levels *levels);

#endif
