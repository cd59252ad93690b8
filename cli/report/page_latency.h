/* page_latency.h: the page's section on where the time of a request goes (E1). */
#ifndef VLMPROF_CLI_PAGE_LATENCY_H
#define VLMPROF_CLI_PAGE_LATENCY_H
#include "base/memory.h"
#include "report/report.h"

/* The plots: mean times as stacked bars, the parts of prefill and decode, work against time, the roofline, and the
 * curves of each data set. */
void page_latency(struct text_buffer *out, const struct report *report);

#endif
