/* report_page.h: the report as an HTML page. */
#ifndef VLMPROF_CLI_REPORT_PAGE_H
#define VLMPROF_CLI_REPORT_PAGE_H
#include "report/report.h"

/* Adds the whole page. */
void report_page_write(const struct report *report, struct text_buffer *out);

/* ---- the page's sections about where the time of a request goes (E1): stages and scaling */
/* Adds mean times as stacked bars, and the parts of prefill and decode, for each data set. */
void page_stages(struct text_buffer *out, const struct report *report);

/* Adds the curves of each data set: times against what they should grow with. */
void page_scaling(struct text_buffer *out, const struct report *report);

/* ---- the page's sections about the latency cost of accuracy (E2) */
/* Adds the front of each data set. */
void page_fronts(struct text_buffer *out, const struct report *report);

/* Adds times and correct answers against the load, if servers were measured under load. */
void page_loads(struct text_buffer *out, const struct report *report);

/* Adds the loss from pruning image tokens for each data set that has pruned configurations. */
void page_pruning(struct text_buffer *out, const struct report *report);
/* Adds how close configurations are to the baseline, for each data set that has one. */
void page_agreement(struct text_buffer *out, const struct report *report);
void page_categories(struct text_buffer *out, const struct report *report);

/* Adds the knobs' shares of the variance, effects and interactions for each data set. */
void page_knobs(struct text_buffer *out, const struct report *report);

/* Adds a section with a part for each data set that has what it shows; nothing if none has. */
void page_groups(struct text_buffer *out, const struct report *report, const char *id, const char *title,
                 int (*has)(const struct report *, size_t),
                 void (*show)(struct text_buffer *, const struct report *, size_t));
#endif
