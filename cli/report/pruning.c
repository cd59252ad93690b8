/* pruning.c: the loss from pruning image tokens, compared with all tokens and with the same number of random ones. */
#include "report/pruning.h"

#include <math.h>

#define SAME_COUNT 0.05 /* share by which kept tokens may differ, because DART keeps multiples of its pivots */

static const struct result_file *file_of(const struct tradeoff *tradeoff, const struct results *results,
                                         size_t config) {
    return &results->files[tradeoff->group->paired[config]];
}
/* Returns 1 if the text is the method, or the method and keys. */
static int is_method(const char *text, const char *method) {
    const size_t bytes = strlen(method);
    return text && !strncmp(text, method, bytes) && (!text[bytes] || text[bytes] == ':');
}
/* The mean of a column over the samples that have it; NaN if none does. */
static double column_mean(const struct result_file *file, int column) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        const double value = result_at(file, column, i);
        if (!isfinite(value)) continue;
        sum += value;
        count++;
    }
    return count ? sum / (double)count : (double)NAN;
}
/* Returns 1 if all knobs except the pruning have the same values. */
static int is_same_otherwise(const struct knob_values *left, const struct knob_values *right) {
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (knob != KNOB_PRUNE && knob_compare(knob, left, right) != 0) return 0;
    return 1;
}
static int is_pruned(const char *prune) { return prune && !is_method(prune, "none"); }
static void find_controls(const struct tradeoff *tradeoff, const struct results *results, struct pruned_row *row) {
    const struct result_file *file = file_of(tradeoff, results, row->config);
    double nearest = INFINITY, nearest_rows = INFINITY;
    row->full = row->random = tradeoff->config_count;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const struct result_file *other = file_of(tradeoff, results, i);
        const char *prune = knob_text(&other->knobs, KNOB_PRUNE);
        if (!is_same_otherwise(&file->knobs, &other->knobs)) continue;
        if (is_method(prune, "none")) row->full = i;
        if (!is_method(prune, "random") || is_method(knob_text(&file->knobs, KNOB_PRUNE), "random")) continue;
        /* the nearest number of tokens; on a tie, the nearest number of rows in the blocks */
        double off = fabs(column_mean(other, COLUMN_KEPT_TOKENS) - row->kept);
        double rows = fabs(column_mean(other, COLUMN_SEQUENCE) - column_mean(file, COLUMN_SEQUENCE));
        if (!(off <= SAME_COUNT * row->kept) || off > nearest || (off >= nearest && !(rows < nearest_rows))) continue;
        nearest = off;
        nearest_rows = rows;
        row->random = i;
    }
}
static vp_bounded_interval difference_to(const struct tradeoff *tradeoff, size_t config, size_t other) {
    vp_bounded_interval unknown = {0};
    unknown.mean = unknown.low = unknown.high = (double)NAN;
    if (other == tradeoff->config_count || !tradeoff->accuracy) return unknown;
    return accuracy_interval(tradeoff->range, tradeoff->accuracy + other * tradeoff->sample_count,
                             tradeoff->accuracy + config * tradeoff->sample_count, tradeoff->sample_count);
}
/* Prefill time plus the time to choose the tokens. */
static double prefill_of(const struct result_file *file) {
    const double prune = column_mean(file, stage_column(VP_STAGE_PRUNE, 0));
    return column_mean(file, METRIC_PREFILL) + (isfinite(prune) ? prune : 0);
}
static int by_method(const void *left_item, const void *right_item) {
    const struct pruned_row *left = left_item, *right = right_item;
    const double kept = left->kept >= 0 ? left->kept : -1, other = right->kept >= 0 ? right->kept : -1; /* NaN: last */
    if (kept < other || kept > other) return kept > other ? -1 : 1;
    return left->config < right->config ? -1 : left->config > right->config;
}
/* A pruning without its counts: only the method. */
static void method_text(const char *prune, char out[80]) {
    static const char *const counts[] = {"keep=", "dominant=", "contextual=", "per_pivot=", "layers=", "ratios="};
    size_t used = strcspn(prune, ":");
    snprintf(out, 80, "%.*s", (int)used, prune);
    for (const char *pair = prune + used; *pair; pair += strcspn(pair, ",")) {
        int is_count = 0;
        pair++;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            is_count |= !strncmp(pair, counts[i], strlen(counts[i]));
        used = strlen(out);
        if (!is_count) snprintf(out + used, 80 - used, ",%.*s", (int)strcspn(pair, ","), pair);
    }
}
struct pruned_rows pruned_rows_make(const struct tradeoff *tradeoff, const struct results *results) {
    struct pruned_rows rows = {NULL, 0};
    for (size_t i = 0; i < tradeoff->config_count && !tradeoff->reason[0]; i++) {
        const struct result_file *file = file_of(tradeoff, results, i);
        if (!is_pruned(knob_text(&file->knobs, KNOB_PRUNE))) continue;
        struct pruned_row *row = ADDED(rows.items, rows.count);
        setting_text(file, row->name);
        method_text(knob_text(&file->knobs, KNOB_PRUNE), row->method);
        row->config = i;
        row->accuracy = point_accuracy(&tradeoff->points[i]);
        row->cache_bytes = column_mean(file, COLUMN_CACHE_BYTES);
        row->full_cache_bytes = column_mean(file, COLUMN_FULL_CACHE_BYTES);
        row->kept = column_mean(file, COLUMN_KEPT_TOKENS);
        row->share = row->kept / column_mean(file, COLUMN_VISION_TOKENS);
        find_controls(tradeoff, results, row);
        row->prefill_ratio = row->full < tradeoff->config_count
                                 ? prefill_of(file_of(tradeoff, results, row->full)) / prefill_of(file)
                                 : (double)NAN;
        row->to_full = difference_to(tradeoff, i, row->full);
        row->to_random = difference_to(tradeoff, i, row->random);
    }
    if (rows.count) qsort(rows.items, rows.count, sizeof *rows.items, by_method);
    return rows;
}
#define DIFFERENCE(member) CELL_RANGE(struct pruned_row, member.mean, member.low, member.high)
static const struct table_column PRUNED[] = {
    {CELL(struct pruned_row, name), "configuration", "configuration"},
    {CELL(struct pruned_row, method), "method", NULL},
    {CELL(struct pruned_row, kept), "kept_vision_tokens", "kept tokens", .format = "%.1f"},
    {CELL(struct pruned_row, share), "kept_share", "kept %", .format = "%.1f", .scale = 100},
    {CELL(struct pruned_row, cache_bytes), "kv_cache_bytes", "KV cache MB", .format = "%.4g", .scale = 1e-6},
    {CELL(struct pruned_row, full_cache_bytes), "kv_cache_bytes_unpruned", NULL},
    {CELL(struct pruned_row, prefill_ratio), "prefill_speedup", "prefill", .format = "%.2f"},
    {CELL_ESTIMATE(struct pruned_row, accuracy), "accuracy", "accuracy", .range_key = "accuracy_interval"},
    {DIFFERENCE(to_full), "accuracy_to_none", "points vs none", .scale = 100, .range_key = "accuracy_to_none_interval"},
    {DIFFERENCE(to_random), "accuracy_to_random", "points vs random", .scale = 100,
     .range_key = "accuracy_to_random_interval"}};
struct table pruned_table(const struct pruned_rows *rows) {
    return (struct table)TABLE(PRUNED, rows->items, rows->count, NULL, 0);
}
static void difference_text(const char *than, const vp_bounded_interval *difference, char out[120]) {
    if (!isfinite(difference->low) || !isfinite(difference->high)) snprintf(out, 120, "%s: not measured", than);
    else if (difference->low <= 0 && difference->high >= 0)
        snprintf(out, 120, "not distinguishable from %s: %+.2f points [%+.2f, %+.2f]", than, 100 * difference->mean,
                 100 * difference->low, 100 * difference->high);
    else
        snprintf(out, 120, "%.2f points [%.2f, %.2f] %s accurate than %s", 100 * fabs(difference->mean),
                 100 * fmin(fabs(difference->low), fabs(difference->high)),
                 100 * fmax(fabs(difference->low), fabs(difference->high)), difference->mean > 0 ? "more" : "less",
                 than);
}
void pruned_finding(const struct pruned_row *row, const struct tradeoff *tradeoff, char *out, size_t capacity) {
    char full[120], random[120], faster[60] = "", share[60] = "share of kept image tokens unknown";
    difference_text("none", &row->to_full, full);
    difference_text("random", &row->to_random, random);
    if (isfinite(row->prefill_ratio))
        snprintf(faster, sizeof faster, "%.2f times the prefill speed; ", row->prefill_ratio);
    if (isfinite(row->share)) snprintf(share, sizeof share, "%.1f %% of image tokens kept", 100 * row->share);
    snprintf(out, capacity, "%s: %s%s%s%s", share, faster, full, row->random < tradeoff->config_count ? "; " : "",
             row->random < tradeoff->config_count ? random : "");
}
