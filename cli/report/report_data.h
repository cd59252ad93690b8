/* report_data.h: the report as CSV and JSON. */
#ifndef VLMPROF_CLI_REPORT_DATA_H
#define VLMPROF_CLI_REPORT_DATA_H
#include "base/memory.h"
#include "report/report.h"
#include "vlmprof.h"

/* CSV: a row for each configuration, which is a file by its place in results->files. */
void report_csv_heads(struct text_buffer *out, const struct report *report);
void report_csv_row(struct text_buffer *out, const struct report *report, size_t file_index);
/* JSON: an object "vlmprof-report-e1-1" of where the time goes, and one "vlmprof-report-e2-1" of what it buys. */
void report_put_e1(vp_json_writer *writer, const struct report *report);
void report_put_e2(vp_json_writer *writer, const struct report *report);

#endif
