/* report_text.h: the report as text and Markdown. */
#ifndef VLMPROF_CLI_REPORT_TEXT_H
#define VLMPROF_CLI_REPORT_TEXT_H
#include "base/document.h"
#include "report/report.h"
#include "vlmprof.h"

figure figure_x(double x);
figure figure_of_estimate(vp_estimate e);
void report_text_write(document *d, const report *p);

#endif
