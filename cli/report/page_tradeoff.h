/* page_tradeoff.h: the page's section on what accuracy costs in latency (E2). */
#ifndef VLMPROF_CLI_PAGE_TRADEOFF_H
#define VLMPROF_CLI_PAGE_TRADEOFF_H
#include "base/memory.h"
#include "report/report.h"

/* The plots of each data set: the front, the knobs' shares of the variance, effects and interactions. */
void page_tradeoffs(struct text_buffer *out, const struct report *report);

#endif
