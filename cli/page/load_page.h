/* load_page.h: writes load trials of a server as an HTML page: latency, throughput, goodput and accuracy against the
 * load. The page needs no network and no other file. */
#ifndef VLMPROF_CLI_LOAD_PAGE_H
#define VLMPROF_CLI_LOAD_PAGE_H
#include "base/memory.h"
#include "load/load_result.h"

/* Returns 0 or an exit code after a message. */
int load_page_write(const struct load_levels *levels, struct text_buffer *out);

#endif
