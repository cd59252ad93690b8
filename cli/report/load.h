/* load.h: what servers did under load, by the blocks and requests in their files. */
#ifndef VLMPROF_CLI_REPORT_LOAD_H
#define VLMPROF_CLI_REPORT_LOAD_H
#include "base/table.h"
#include "results/result_read.h"

/* A configuration under load. Times over requests; failed requests count as wrong. */
struct load_row {
    const struct result_file *file;
    char configuration[160];
    vp_estimate ttft_p50, ttft_p95, total_p50, total_p95, accuracy, correct; /* correct/s: completed x accuracy */
    double offered, completed, in_flight; /* requests/s; mean number */
    /* requests: measured or failed; in_blocks: those of blocks that ended; growing: blocks; waiting: most of them */
    int64_t requests, in_blocks, failed, late, waiting, growing, others, blocks;
};
struct load_rows { struct load_row *items; size_t count; };

/* Makes a row for each file under load, in their order; `name` is report_full_name. */
typedef const char *load_namer(const struct results *results, const struct result_file *file, char out[160]);
struct load_rows load_rows_make(const struct results *results, load_namer *name);

struct table load_table(const struct load_rows *rows);

/* Adds findings: no steady state, late senders, requests of others, failures with their reason. */
void load_find(const struct load_rows *rows, struct text_list *findings);

#endif
