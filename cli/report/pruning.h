/* pruning.h: what pruning image tokens loses, compared with all tokens and with random ones of the same number.
 * The configurations of a data set come in; for each pruned one come the differences, paired over the samples. */
#ifndef VLMPROF_CLI_PRUNING_H
#define VLMPROF_CLI_PRUNING_H
#include "base/table.h"
#include "report/tradeoff.h"

/* A pruned configuration. Configurations count as in struct tradeoff; config_count: there is no such one. */
struct pruned_row {
    char name[80], method[80]; /* of the configuration; its pruning without the counts, "random,layer=2" */
    size_t config;
    size_t full, random;  /* the same but for the pruning: without any; random with as many tokens, within 5 % */
    double kept, share;   /* image tokens that go on, the mean over samples; of all image tokens */
    double cache_bytes, full_cache_bytes; /* of the KV cache, the means over samples; NaN: the file does not say it */
    double prefill_ratio; /* T_LLM_prefill of `full` / of this one, prune included; NaN: not known */
    vp_estimate accuracy;
    vp_bounded_interval to_full, to_random; /* accuracy less that of these; NaN: not known */
};
struct pruned_rows { struct pruned_row *items; size_t count; };

/* The pruned configurations, those that keep most first. items is malloc'ed. */
struct pruned_rows pruned_rows_make(const struct tradeoff *tradeoff, const struct results *results);

/* The same as a table; its rows are those of `rows`. */
struct table pruned_table(const struct pruned_rows *rows);

/* Returns 1 if the configuration keeps all tokens, or is more accurate than random ones of the same number: the whole
 * 95 % interval of the paired difference is above 0. */
int is_better_than_random(const struct pruned_rows *rows, size_t config);

/* "1.8 times faster prefill; 3.1 points [1.2, 5.0] less accurate than none; not distinguishable from random" */
void pruned_finding(const struct pruned_row *row, const struct tradeoff *tradeoff, char *out, size_t capacity);

#endif
