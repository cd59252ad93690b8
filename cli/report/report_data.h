/* report_data.h: the report as CSV and JSON. */
#ifndef VLMPROF_CLI_REPORT_DATA_H
#define VLMPROF_CLI_REPORT_DATA_H
#include "base/memory.h"
#include "report/report.h"
#include "vlmprof.h"

void report_csv_heads(text_buffer *out);
void report_csv_row(text_buffer *out, const report *p, size_t file);
void report_put_e1(vp_json_writer *w, const report *p);
void report_put_e2(vp_json_writer *w, const report *p);

#endif
