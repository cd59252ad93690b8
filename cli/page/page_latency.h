/* page_latency.h: the page's sections about where the time of a request goes (E1): stages, scaling, rooflines. */
#ifndef VLMPROF_CLI_PAGE_LATENCY_H
#define VLMPROF_CLI_PAGE_LATENCY_H
#include "base/memory.h"
#include "report/report.h"

/* Adds mean times as stacked bars, and the parts of prefill and decode, for each data set. */
void page_stages(struct text_buffer *out, const struct report *report);

/* Adds the curves of each data set: times against what they should grow with. */
void page_scaling(struct text_buffer *out, const struct report *report);

/* Adds the plot of work and time and the roofline, if any work was counted. */
void page_rooflines(struct text_buffer *out, const struct report *report);

#endif
