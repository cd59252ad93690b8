/* load_answer.h: up to which load an objective holds, from trials at several loads. The only place that decides it: the
 * search for a rate, `best` and `report` all ask here.
 * Shares of good requests come in; an interval of the highest load comes out, and with it the verdict on each trial. */
#ifndef VLMPROF_CLI_LOAD_ANSWER_H
#define VLMPROF_CLI_LOAD_ANSWER_H
#include "load/load_stats.h"

/* A trial. at: requests per second that were really due, or requests at once. time: the correlation time of its good
 * and bad requests; independent: as many independent requests would say as much as its `count` do, carefully.
 * accuracy: whether it meets the objective's. */
struct load_point { double at, good, count, time, independent; vp_trial accuracy; };
struct load_answer {
    double low, high;             /* the highest load that meets the objective, at 95 %; 0, infinite: not bounded */
    double likely_low, likely_high; /* the two trials between which it is most likely; 0, infinite: beyond all */
    double fitted;                /* the most likely load, by the curve through the trials; NaN: there is no curve */
    double weight;                /* sum of ln(at / fitted), weighted by what the trials on the curve say */
    size_t near;                  /* how many trials are on the curve */
    int is_by_accuracy;           /* 1 if the accuracy sets the upper bound */
};

/* The point of a summary whose good requests were counted with the objective. NaN shares: good is NaN, and the point
 * says nothing. */
struct load_point load_point_of(const struct load_summary *summary, double at, double accuracy_limit);

/* What the trials say together. It is assumed that a higher load never makes the share larger.
 * rule: a load x is within the interval unless the trials contradict it: those at x or above whose share is too large,
 *       and those below it whose share is too small, by the sum of their squared z scores (one trial alone: Wilson's
 *       95 % interval). Where three trials or more are within 25 % of the answer, a logistic curve of the share over
 *       the logarithm of the load is fitted to them, and its profile likelihood gives the interval.
 *       A load whose accuracy misses the objective is too high. */
void load_answer_of(const struct load_point *points, size_t count, double share, struct load_answer *answer);

extern const char *const LOAD_VERDICTS[]; /* by vp_trial */
/* Is the objective met at a load? */
vp_trial load_answer_at(const struct load_answer *answer, const struct load_point *point);

#endif
