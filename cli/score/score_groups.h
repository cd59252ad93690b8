/* score_groups.h: scores of whole sets whose rows belong together: MME's sums over pictures, POPE's F1, and the circular
 * rows of MMBench. Intervals are by bootstrap over the groups: pictures, questions, circular questions.
 * A score job's rows come in; a line of JSON for each set goes out. */
#ifndef VLMPROF_CLI_SCORE_GROUPS_H
#define VLMPROF_CLI_SCORE_GROUPS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"

/* Metrics of sets, as the negative values of score_rule.metric behind those of captions. */
enum { RULE_MME_SETS = -20, RULE_POPE_SETS = -21 };

/* Scores sets: {"sets": [{"name", "rows": [..]}, ..]}, lines of such sets, or lines of rows, which are one set. Returns 0
 * or an exit code. */
int score_sets(struct score_job *job, int metric);

/* The score of the circular rows of one question: 1 when all are right. *undecided: no row is wrong, and of some the rule
 * reads no letter. Returns NULL or what is wrong with the rows. */
const char *score_circular(struct scoring *scoring, const vp_json *json, uint32_t rows, double *score, int *undecided);

/* The questions that circular rows belong to: g_index, else index or id modulo 1,000,000. Scores are taken down row by
 * row; the mean over questions and its interval come out. */
struct circle { int64_t key; int is_right; };
struct circles { struct circle *items; size_t count, capacity; };
void circles_add(struct circles *circles, const vp_json *json, double score);
void circles_put(vp_json_writer *writer, struct circles *circles);
void circles_print(struct circles *circles);
void circles_free(struct circles *circles);

#endif
