/* report_data.h: the report as CSV and JSON. */
#ifndef VLMPROF_CLI_REPORT_DATA_H
#define VLMPROF_CLI_REPORT_DATA_H
#include "base/memory.h"
#include "base/table.h"
#include "report/report.h"
#include "vlmprof.h"

/* CSV: a header line, and one row per configuration. */
void report_csv(struct text_buffer *out, const struct report *report);
/* JSON: an object "vlmprof-report-e1-1" with the times, and a "vlmprof-report-e2-1" with the accuracy they buy. */
void report_put_e1(vp_json_writer *writer, const struct report *report);
void report_put_e2(vp_json_writer *writer, const struct report *report);

/* A table of the shares of the variance explained by knobs and pairs of knobs. The caller frees table.rows. */
struct table variance_shares(const struct tradeoff *tradeoff);

#endif
