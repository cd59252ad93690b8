/* report_text.h: the report as text and Markdown. */
#ifndef VLMPROF_CLI_REPORT_TEXT_H
#define VLMPROF_CLI_REPORT_TEXT_H
#include "base/document.h"
#include "report/report.h"
#include "vlmprof.h"

struct number_text number_plain(double value);
struct number_text number_of_estimate(vp_estimate estimate);
void report_text_write(struct document *document, const struct report *report);

#endif
