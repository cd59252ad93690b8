/* load_page.h: a server under load as a page of HTML: latency, throughput, goodput and accuracy against the load.
 * Trials that were read come in; a page that needs no network and no other file goes out. */
#ifndef VLMPROF_CLI_LOAD_PAGE_H
#define VLMPROF_CLI_LOAD_PAGE_H
#include "base/memory.h"
#include "load/load_result.h"

/* Returns 0 or an exit code after a message. */
int load_page_write(const struct load_levels *levels, struct text_buffer *out);

#endif
