/* score_circles.h: MMBench's circular rows: a question is only right if all its rows are right. */
#ifndef VLMPROF_CLI_SCORE_CIRCLES_H
#define VLMPROF_CLI_SCORE_CIRCLES_H
#include "base/json.h"
#include "score/scoring.h"

/* The score of the circular rows of one question: 1 if all are right. *undecided: 1 if no row is wrong, but the rule
 * reads no letter in some. Returns NULL or the error in the rows. */
const char *score_circular(struct scoring *scoring, const vp_json *json, uint32_t rows, double *score, int *undecided);

/* The questions of circular rows, identified by g_index, otherwise by index or id modulo 1,000,000. Scores are added
 * row by row; the mean over questions and its interval come out. */
struct circle { int64_t key; int is_right; };
struct circles { struct circle *items; size_t count, capacity; };
void circles_add(struct circles *circles, const vp_json *json, uint32_t node, double score);
/* The mean over questions and its interval. One entry per question remains. */
double circles_mean(struct circles *circles, double *low, double *high);
void circles_put(vp_json_writer *writer, struct circles *circles);
void circles_print(struct circles *circles);
void circles_free(struct circles *circles);

#endif
