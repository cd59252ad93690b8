/* compare.h: compares two stacks' values for one request, stage by stage. Pure: it reads and prints nothing. */
#ifndef VLMPROF_CLI_CONFORM_COMPARE_H
#define VLMPROF_CLI_CONFORM_COMPARE_H
#include "conform/stack.h"

/* UNSEEN: one of the stacks does not show the stage, or the request does not have it. EQUAL: no value differs.
 * ROUNDING: the precision explains the difference. PARTED: it does not. */
enum verdict { VERDICT_UNSEEN, VERDICT_EQUAL, VERDICT_ROUNDING, VERDICT_PARTED, VERDICTS };
extern const char *const VERDICT_NAMES[VERDICTS];

struct stage_verdict {
    enum verdict verdict;
    /* The distance. Integers: how many differ; the bound is 0. Reals: relative_error. A server's logits: the largest
     * difference in a token's log probability, in nats. tokens: the margin, in nats, by which our logits prefer our
     * token where the answers diverge; 0 if they do not. NaN if unknown. */
    double distance, bound;
    char note[160];
};
struct conformity { struct stage_verdict stages[CONFORM_STAGES]; };

/* The compared values. ours is the built-in engine in fp32. rounded is the same engine in the other stack's precision,
 * or NULL if that is fp32. */
struct conform_pair {
    const struct model *model;
    const struct stack *ours, *rounded, *theirs;
    enum precision precision;
};
void conform_compare(const struct conform_pair *pair, struct conformity *out);

/* The first stage that diverges; CONFORM_STAGES if there is none. */
int conform_first(const struct conformity *conformity);

/* Adds another case: each stage keeps its worse verdict. */
void conform_merge(struct conformity *all, const struct conformity *one);

#endif
