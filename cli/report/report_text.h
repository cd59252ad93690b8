/* report_text.h: the report as text. */
#ifndef VLMPROF_CLI_REPORT_TEXT_H
#define VLMPROF_CLI_REPORT_TEXT_H
#include "base/document.h"
#include "base/table.h"
#include "report/report.h"
#include "report/tradeoff.h"

/* A whole number with all its digits; other numbers as in number_short. */
struct number_text number_plain(double value);

/* "12.3 [12.0, 12.6]" */
struct number_text number_of_estimate(vp_estimate estimate);

/* A table of the latencies of a data set (SIZE_MAX: of all), and of accuracies and the front. */
struct table latency_table(const struct report *report, size_t group, int has_front);

/* A table of how close each configuration of a data set is to its baseline, and notes on its columns. */
struct table agreement_table(const struct results *results, size_t group);
void agreement_notes(struct text_list *notes, const struct results *results, size_t group);

/* Adds the heads, separated by |, and the cells of a table of the parts of prefill and decode. Returns 1 if any is
 * known. */
int parts_cells(const struct report *report, struct text_buffer *heads, struct text_list *cells);

/* Adds the whole report. */
void report_text_write(struct document *document, const struct report *report);

/* ---- the report as CSV and JSON */
/* CSV: a header line, and one row per configuration. */
void report_csv(struct text_buffer *out, const struct report *report);
/* JSON: an object "vlmprof-report-e1-1" with the times, and a "vlmprof-report-e2-1" with the accuracy they buy. */
void report_put_e1(vp_json_writer *writer, const struct report *report);
void report_put_e2(vp_json_writer *writer, const struct report *report);

/* A table of the shares of the variance explained by knobs and pairs of knobs. The caller frees table.rows. */
struct table variance_shares(const struct tradeoff *tradeoff);
#endif
