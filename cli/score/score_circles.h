/* score_circles.h: MMBench's circular rows: a question counts only when all its rows are right. */
#ifndef VLMPROF_CLI_SCORE_CIRCLES_H
#define VLMPROF_CLI_SCORE_CIRCLES_H
#include "base/json.h"
#include "score/scoring.h"

/* The score of the circular rows of one question: 1 when all are right. *undecided: no row is wrong, but in some the
 * rule reads no letter. Returns NULL or what is wrong with the rows. */
const char *score_circular(struct scoring *scoring, const vp_json *json, uint32_t rows, double *score, int *undecided);

/* The questions that circular rows belong to: g_index, else index or id modulo 1,000,000. Scores are taken down row by
 * row; the mean over questions and its interval come out. */
struct circle { int64_t key; int is_right; };
struct circles { struct circle *items; size_t count, capacity; };
void circles_add(struct circles *circles, const vp_json *json, uint32_t node, double score);
/* The mean over questions and its interval. One entry a question stays. */
double circles_mean(struct circles *circles, double *low, double *high);
void circles_put(vp_json_writer *writer, struct circles *circles);
void circles_print(struct circles *circles);
void circles_free(struct circles *circles);

#endif
