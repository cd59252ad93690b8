/* load_answer.h: finds the highest load at which an objective is met, from trials at several loads. The search for a
 * rate, `best` and `report` all use this answer. Shares of good requests come in; an interval of the highest load and a
 * verdict on each trial come out. */
#ifndef VLMPROF_CLI_LOAD_ANSWER_H
#define VLMPROF_CLI_LOAD_ANSWER_H
#include "load/load_stats.h"

/* A trial. at: the requests per second that were actually due, or the requests at once. time: the correlation time of
 * its good and bad requests. independent: the number of independent requests with as much information as its `count`
 * requests, a careful estimate. accuracy: whether it meets the objective's accuracy. */
struct load_point { double at, good, count, time, independent; vp_trial accuracy; };
struct load_answer {
    double low, high;             /* 95 % interval of the highest load that meets it; 0 or infinite: not bounded */
    double likely_low, likely_high; /* the two trials that most likely enclose it; 0 or infinite: beyond all */
    double fitted;                /* the most likely load, from the curve through the trials; NaN without a curve */
    double weight;                /* sum of ln(at / fitted), weighted by the information in the trials on the curve */
    size_t near;                  /* number of trials on the curve */
    int is_by_accuracy;           /* 1 if the accuracy sets the upper bound */
};

/* Makes a point from a summary whose good requests were counted with the objective. With NaN shares, good is NaN and
 * the point has no information. */
struct load_point load_point_of(const struct load_summary *summary, double at, double accuracy_limit);

/* The answer from all trials together, assuming that a higher load never makes the share larger. rule: a load x is
 * within the interval unless the trials contradict it. Trials at x or above contradict it if their share is too large,
 * trials below it if their share is too small. The sum of their squared z scores decides; for a single trial, its
 * Wilson 95 % interval. If at least three trials are within 25 % of the answer, a logistic curve of the share over the
 * logarithm of the load is fitted to them, and its profile likelihood gives the interval. A load whose accuracy misses
 * the objective is too high. */
void load_answer_of(const struct load_point *points, size_t count, double share, struct load_answer *answer);

extern const char *const LOAD_VERDICTS[]; /* indexed by vp_trial */
/* The verdict on the objective at a load. */
vp_trial load_answer_at(const struct load_answer *answer, const struct load_point *point);

#endif
