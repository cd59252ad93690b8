/* pruning.h: what pruning image tokens loses, compared with all tokens and with random ones of the same number.
 * The configurations of a data set come in; for each pruned one come the differences, paired over the samples. */
#ifndef VLMPROF_CLI_PRUNING_H
#define VLMPROF_CLI_PRUNING_H
#include "report/tradeoff.h"

/* A pruned configuration. Configurations count as in struct tradeoff; config_count: there is no such one. */
struct pruned_row {
    size_t config;
    size_t full, random;  /* the same but for the pruning: without any; random with as many tokens, within 5 % */
    double kept, share;   /* image tokens that go on, the mean over samples; of all image tokens */
    double prefill_ratio; /* T_LLM_prefill of `full` / of this one, prune included; NaN: not known */
    vp_bounded_interval to_full, to_random; /* accuracy less that of these; NaN: not known */
};

/* The pruned configurations, by method and kept tokens. *rows is malloc'ed. Returns how many there are. */
size_t pruned_rows(const struct tradeoff *tradeoff, const struct results *results, struct pruned_row **rows);

/* Truth: the configuration keeps all tokens, or is more accurate than random ones of the same number: the whole 95 %
 * interval of the paired difference is above 0. */
int is_better_than_random(const struct pruned_row *rows, size_t count, size_t config);

/* "1.8 times faster prefill; 3.1 points [1.2, 5.0] less accurate than none; not distinguishable from random" */
void pruned_finding(const struct pruned_row *row, const struct tradeoff *tradeoff, char *out, size_t capacity);

#endif
