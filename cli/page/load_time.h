/* load_time.h: a trial over its time: latencies next to what the server's metrics said, as figures of a page. */
#ifndef VLMPROF_CLI_LOAD_TIME_H
#define VLMPROF_CLI_LOAD_TIME_H
#include "load/load_result.h"

/* Adds a section with figures for each trial whose server has metrics; nothing where there is none. Returns 0 or an
 * exit code after a message. */
int load_time_add(struct text_buffer *out, const struct load_levels *levels);

#endif
