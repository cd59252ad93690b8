/* pruning.h: the loss from pruning image tokens, compared with all tokens and with equally many random ones. For each
 * pruned configuration of a data set, the differences are paired over the samples. */
#ifndef VLMPROF_CLI_PRUNING_H
#define VLMPROF_CLI_PRUNING_H
#include "base/table.h"
#include "report/tradeoff.h"

/* A pruned configuration. Configurations are numbered as in struct tradeoff; config_count means none. */
struct pruned_row {
    char name[80], method[80]; /* name of the configuration; its pruning without counts, like "random,layer=2" */
    size_t config;
    size_t full, random; /* equal except for the pruning: unpruned; random with the same number of tokens, within 5 % */
    double kept, share;  /* kept image tokens, mean over samples; all image tokens */
    double cache_bytes, full_cache_bytes; /* size of the KV cache, means over samples; NaN if not in the file */
    double prefill_ratio;                 /* T_LLM_prefill of `full` / of this one, including prune; NaN if unknown */
    vp_estimate accuracy;
    vp_bounded_interval to_full, to_random; /* accuracy minus that of these; NaN if unknown */
};
struct pruned_rows { struct pruned_row *items; size_t count; };

/* The pruned configurations, in descending order of kept tokens. items is malloc'ed. */
struct pruned_rows pruned_rows_make(const struct tradeoff *tradeoff, const struct results *results);

/* The pruned configurations as a table with the rows of `rows`. */
struct table pruned_table(const struct pruned_rows *rows);

/* "1.8 times faster prefill; 3.1 points [1.2, 5.0] less accurate than none; not distinguishable from random" */
void pruned_finding(const struct pruned_row *row, const struct tradeoff *tradeoff, char *out, size_t capacity);

#endif
