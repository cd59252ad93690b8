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

/* The same for rows that come one by one: a set is made, rows are added, and each total of a tool ("official",
 * "vlmevalkit", "lmms_eval") is visited with its 95 % interval. The ends are NaN where a draw has no such number.
 * judged_add returns NULL or what is wrong with the row; `prediction` is taken over. */
struct judged_set;
struct judged_set *judged_new(void);
void judged_free(struct judged_set *set);
const char *judged_add(struct judged_set *set, struct scoring *scoring, const vp_json *json, uint32_t node,
                       char *prediction);
typedef void total_visitor(void *user, const char *tool, const char *name, double value, double low, double high);
void judged_totals(struct judged_set *set, int metric, const char *tool, total_visitor *visit, void *user);

#endif
