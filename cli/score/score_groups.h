/* score_groups.h: scores whole sets whose rows belong together: MME's sums over pictures, POPE's F1. Intervals come
 * from a bootstrap over the groups: pictures or questions. A score job's rows come in; one line of JSON per set goes
 * out. */
#ifndef VLMPROF_CLI_SCORE_GROUPS_H
#define VLMPROF_CLI_SCORE_GROUPS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"

/* Scores sets: {"sets": [{"name", "rows": [..]}, ..]}, lines of such sets, or lines of rows, which are one set. Returns
 * 0 or an exit code. */
int score_sets(struct score_job *job, int metric);

/* The same for single rows: make a set, add rows, and visit each total of a tool ("official", "vlmevalkit",
 * "lmms_eval") with its 95 % interval, whose ends are NaN if a draw lacks the number. judged_add returns NULL or the
 * error in the row; it takes over `prediction`. */
struct judged_set;
struct judged_set *judged_new(void);
void judged_free(struct judged_set *set);
const char *judged_add(struct judged_set *set, struct scoring *scoring, const vp_json *json, uint32_t node,
                       char *prediction);
typedef void total_visitor(void *user, const char *tool, const char *name, double value, double low, double high);
void judged_totals(struct judged_set *set, int metric, const char *tool, total_visitor *visit, void *user);

#endif
