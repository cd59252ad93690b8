/* report_page.h: the report as an HTML page. */
#ifndef VLMPROF_CLI_REPORT_PAGE_H
#define VLMPROF_CLI_REPORT_PAGE_H
#include "base/memory.h"
#include "report/report.h"

/* Adds the whole page. */
void report_page_write(const struct report *report, struct text_buffer *out);

#endif
