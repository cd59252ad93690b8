/* load.c: what servers did under load. */
#include "report/load.h"

#include "report/series.h"
#include "report/tradeoff.h"

#include <math.h>

/* ---- configurations */
static size_t set_times(struct load_row *row, int metric, vp_estimate *p50, vp_estimate *p95) {
    double *values;
    const size_t count = requests_of(row->file, metric, &values);
    *p50 = series_percentile(values, count, 50);
    *p95 = series_percentile(values, count, 95);
    free(values);
    return count;
}
static void add_row(const struct results *results, const struct result_file *file, load_namer *name,
                    struct load_rows *rows) {
    struct load_row *row = ADDED(rows->items, rows->count);
    double seconds = 0, due = 0, completed = 0, in_flight = 0;
    row->file = file;
    name(results, file, row->configuration);
    row->accuracy = file_accuracy(file);
    row->failed = file->failed_count;
    row->others = -1;
    row->blocks = (int64_t)file->load_count;
    set_times(row, METRIC_TTFT, &row->ttft_p50, &row->ttft_p95);
    const int64_t known = (int64_t)set_times(row, METRIC_TOTAL, &row->total_p50, &row->total_p95) + row->failed;
    for (size_t i = 0; i < file->load_count; i++) {
        const struct load_line *block = &file->loads[i];
        row->in_blocks += block->requests;
        row->late += block->late;
        row->growing += block->is_growing > 0;
        if (block->waiting > row->waiting && block->is_growing > 0) row->waiting = block->waiting;
        if (block->other_requests >= 0) row->others = (row->others < 0 ? 0 : row->others) + block->other_requests;
        if (!(block->window_s > 0) || !isfinite(block->completed_per_s)) continue;
        seconds += block->window_s;
        due += block->offered_per_s * block->window_s;
        completed += block->completed_per_s * block->window_s;
        in_flight += block->mean_in_flight * block->window_s;
    }
    row->requests = known > row->in_blocks ? known : row->in_blocks;
    row->offered = due / seconds;
    row->completed = completed / seconds;
    row->in_flight = in_flight / seconds;
    row->correct = (vp_estimate){row->completed * row->accuracy.value, (double)NAN, (double)NAN};
}
struct load_rows load_rows_make(const struct results *results, load_namer *name) {
    struct load_rows rows = {NULL, 0};
    for (size_t i = 0; i < results->count; i++)
        if (knobs_are_loaded(&results->files[i].knobs)) add_row(results, &results->files[i], name, &rows);
    return rows;
}
static const struct table_column LOADS[] = {
    {CELL(struct load_row, configuration), "configuration", "configuration"},
    {CELL(struct load_row, offered), "offered_per_s", "due/s", .is_measured = 1},
    {CELL(struct load_row, completed), "completed_per_s", "done/s", .is_measured = 1},
    {CELL(struct load_row, in_flight), "mean_in_flight", "in flight", .is_measured = 1},
    {CELL_ESTIMATE(struct load_row, ttft_p50), "TTFT_p50", "TTFT P50, ms", .range_key = "TTFT_p50_interval",
     .is_measured = 1},
    {CELL_ESTIMATE(struct load_row, ttft_p95), "TTFT_p95", "P95", .range_key = "TTFT_p95_interval", .is_measured = 1},
    {CELL_ESTIMATE(struct load_row, total_p50), "T_total_p50", "T_total P50, ms", .range_key = "T_total_p50_interval",
     .is_measured = 1},
    {CELL_ESTIMATE(struct load_row, total_p95), "T_total_p95", "P95", .range_key = "T_total_p95_interval",
     .is_measured = 1},
    {CELL_ESTIMATE(struct load_row, accuracy), "accuracy", "accuracy", .range_key = "accuracy_interval"},
    {CELL(struct load_row, correct.value), "correct_per_s", "correct/s", .is_measured = 1},
    {CELL(struct load_row, requests), "requests", "requests"},
    {CELL(struct load_row, failed), "failed", "failed"},
    {CELL(struct load_row, growing), "growing_blocks", NULL},
    {CELL(struct load_row, late), "late", NULL},
    {CELL(struct load_row, others), "other_requests", NULL, .rules = COLUMN_FROM_0}};
struct table load_table(const struct load_rows *rows) {
    return (struct table)TABLE(LOADS, rows->items, rows->count, NULL, 0);
}
void load_find(const struct load_rows *rows, struct text_list *findings) {
    for (size_t i = 0; i < rows->count; i++) {
        const struct load_row *row = &rows->items[i];
        if (row->growing)
            text_list_add(findings, "%s: no steady state in %lld of %lld blocks: up to %lld requests were waiting at "
                                    "the end, so longer blocks would show longer times",
                          row->configuration, (long long)row->growing, (long long)row->blocks, (long long)row->waiting);
        if (row->failed)
            text_list_add(findings, "%s: %lld samples failed and count as wrong; the first: %.200s", row->configuration,
                          (long long)row->failed, row->file->failed_reason ? row->file->failed_reason : "no reason");
        if (row->in_blocks < row->requests)
            text_list_add(findings, "%s: due/s, done/s and in flight cover %lld of %lld requests, because a block was "
                                    "stopped", row->configuration, (long long)row->in_blocks, (long long)row->requests);
        if (100 * row->late > row->in_blocks)
            text_list_add(findings, "%s: the client sent %lld of %lld requests more than 5 ms late: use a faster or "
                                    "quieter machine, or lower rates",
                          row->configuration, (long long)row->late, (long long)row->in_blocks);
        if (row->others > 0)
            text_list_add(findings, "%s: other clients also sent the server %lld requests", row->configuration,
                          (long long)row->others);
    }
}
