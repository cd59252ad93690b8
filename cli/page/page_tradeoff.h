/* page_tradeoff.h: the page's sections about the cost of accuracy in latency (E2). */
#ifndef VLMPROF_CLI_PAGE_TRADEOFF_H
#define VLMPROF_CLI_PAGE_TRADEOFF_H
#include "base/memory.h"
#include "report/report.h"

/* Adds the front of each data set. */
void page_fronts(struct text_buffer *out, const struct report *report);

/* Adds the loss from pruning image tokens for each data set that has pruned configurations. */
void page_pruning(struct text_buffer *out, const struct report *report);
/* Adds how close configurations are to the baseline, for each data set that has one. */
void page_agreement(struct text_buffer *out, const struct report *report);
void page_categories(struct text_buffer *out, const struct report *report);

/* Adds the knobs' shares of the variance, effects and interactions for each data set. */
void page_knobs(struct text_buffer *out, const struct report *report);

#endif
