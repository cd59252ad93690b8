/* result_scores.h: scores of an outside scorer, put into result files; and the answers that such a scorer needs. */
#ifndef VLMPROF_CLI_RESULT_SCORES_H
#define VLMPROF_CLI_RESULT_SCORES_H
#include "base/memory.h"

/* One JSON object per answer on stdout: {"id", "sample_id", "config", "dataset_name", "prediction", and the members of
 * the sample's record}. Returns 0 or an exit code. */
int predictions_print(const char *const *operands, size_t operand_count);

/* What score --scores does. FILE has lines {"id": ID, "score": 0..1}. ID is the record's own id or a sample_id;
 * "sample_id" instead of "id" is only the latter, and "config" limits a line to one result file. */
struct score_request {
    const char *file, *name, *folder; /* of the scores; of the metric; where the new result files go */
    const char *const *operands; size_t operand_count;
    int is_json;
};

/* Writes each result file that has a score into the folder, which must not have a file of its name: its rows get these
 * scores, and its statistics are computed from them. Prints a summary. Returns 0 or an exit code; nothing is
 * written if a line is wrong. */
int scores_apply(const struct score_request *request);

#endif
