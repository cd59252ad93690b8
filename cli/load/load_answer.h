/* load_answer.h: the highest load at which an objective is met, from trials at several loads. The search for a rate,
 * `best` and `report` all take the answer from here. Shares of good requests come in; an interval of the highest load
 * and a verdict on each trial come out. */
#ifndef VLMPROF_CLI_LOAD_ANSWER_H
#define VLMPROF_CLI_LOAD_ANSWER_H
#include "load/load_stats.h"

/* A trial. at: the requests per second that were really due, or the requests at once. time: the correlation time of its
 * good and bad requests. independent: how many independent requests carry as much information as its `count` do, a
 * careful estimate. accuracy: whether it meets the objective's. */
struct load_point { double at, good, count, time, independent; vp_trial accuracy; };
struct load_answer {
    double low, high;             /* the highest load that meets the objective, at 95 %; 0, infinite: not bounded */
    double likely_low, likely_high; /* the two trials that most likely enclose it; 0, infinite: beyond all */
    double fitted;                /* the most likely load, from the curve through the trials; NaN: there is no curve */
    double weight;                /* sum of ln(at / fitted), weighted by the information in the trials on the curve */
    size_t near;                  /* how many trials are on the curve */
    int is_by_accuracy;           /* 1 if the accuracy sets the upper bound */
};

/* Makes a point from a summary whose good requests were counted with the objective. With NaN shares, good is NaN and
 * the point carries no information. */
struct load_point load_point_of(const struct load_summary *summary, double at, double accuracy_limit);

/* The answer from all trials together, assuming that a higher load never makes the share larger. rule: a load x is
 * within the interval unless the trials contradict it: those at x or above whose share is too large, and those below it
 * whose share is too small, by the sum of their squared z scores (one trial alone: Wilson's 95 % interval). If three
 * trials or more are within 25 % of the answer, a logistic curve of the share over the logarithm of the load is fitted
 * to them, and its profile likelihood gives the interval. A load whose accuracy misses the objective is too high. */
void load_answer_of(const struct load_point *points, size_t count, double share, struct load_answer *answer);

extern const char *const LOAD_VERDICTS[]; /* by vp_trial */
/* Is the objective met at a load? */
vp_trial load_answer_at(const struct load_answer *answer, const struct load_point *point);

#endif
