/* score_by.h: scores by the value of a field, with one tally per category. */
#ifndef VLMPROF_CLI_SCORE_BY_H
#define VLMPROF_CLI_SCORE_BY_H
#include "base/json.h"
#include "score/scoring.h"

struct score_groups_by { struct text_list names; struct tally *tallies; };

/* Counts a row's score for its value of `field`, "-" for a row without it. After 1,000 values, the rest is "others". */
void by_add(struct score_groups_by *by, const vp_json *json, const char *field, int is_binary, int is_empty,
            const vp_score_outcome *outcome);

/* by_put writes {"VALUE": {"rows", "mean", ..}} under "by", with "unread" for rules of other tools. by_print prints one
 * line per value on stderr. */
void by_put(vp_json_writer *writer, const struct score_groups_by *by, const char *metric, int is_tool);
void by_print(const struct score_groups_by *by);
void by_free(struct score_groups_by *by);

#endif
