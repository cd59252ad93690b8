/* score_groups.h: scores of whole sets whose rows belong together: MME's sums over pictures, POPE's F1. Intervals are
 * by bootstrap over the groups: pictures, questions. A score job's rows come in; a line of JSON for each set goes out.
 */
#ifndef VLMPROF_CLI_SCORE_GROUPS_H
#define VLMPROF_CLI_SCORE_GROUPS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"

/* Scores sets: {"sets": [{"name", "rows": [..]}, ..]}, lines of such sets, or lines of rows, which are one set. Returns
 * 0 or an exit code. */
int score_sets(struct score_job *job, int metric);

#endif
