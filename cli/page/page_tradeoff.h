/* page_tradeoff.h: the page's sections on what accuracy costs in latency (E2). */
#ifndef VLMPROF_CLI_PAGE_TRADEOFF_H
#define VLMPROF_CLI_PAGE_TRADEOFF_H
#include "base/memory.h"
#include "report/report.h"

/* The front of each data set. */
void page_fronts(struct text_buffer *out, const struct report *report);

/* Of each data set what leaving image tokens out loses; nothing where no configuration does. */
void page_pruning(struct text_buffer *out, const struct report *report);
/* Of each data set how near its configurations are to its baseline; nothing where it has none. */
void page_agreement(struct text_buffer *out, const struct report *report);
void page_categories(struct text_buffer *out, const struct report *report);

/* Of each data set the knobs' shares of the variance, effects and interactions. */
void page_knobs(struct text_buffer *out, const struct report *report);

#endif
