/* report_page.h: the report as one page of HTML. */
#ifndef VLMPROF_CLI_REPORT_PAGE_H
#define VLMPROF_CLI_REPORT_PAGE_H
#include "base/memory.h"
#include "report/report.h"

/* Adds the whole page. */
void report_page_write(const struct report *report, struct text_buffer *out);

#endif
