/* page_latency.h: the page's sections on where the time of a request goes (E1): stages, scaling, rooflines. */
#ifndef VLMPROF_CLI_PAGE_LATENCY_H
#define VLMPROF_CLI_PAGE_LATENCY_H
#include "base/memory.h"
#include "report/report.h"

/* Of each data set mean times as stacked bars, and the parts of prefill and decode. */
void page_stages(struct text_buffer *out, const struct report *report);

/* Of each data set its curves: times against what they should grow with. */
void page_scaling(struct text_buffer *out, const struct report *report);

/* Work against time, and the roofline; nothing where no work was counted. */
void page_rooflines(struct text_buffer *out, const struct report *report);

#endif
