/* score_pairs.h: compares the scores of two answer files, paired by the ids of their rows. */
#ifndef VLMPROF_CLI_SCORE_PAIRS_H
#define VLMPROF_CLI_SCORE_PAIRS_H
#include "base/json.h"
#include "vlmprof.h"

struct scored { uint64_t id; double score; size_t row; };
struct pairs {
    struct scored *rows; size_t count, capacity;
    double *first, *second; size_t joined; /* scores of the rows in both files: baseline's, scored file's */
    size_t alone, baseline_alone, repeated; /* rows without a partner on either side; ids that a file repeats */
};

/* Adds a row by its "id". Rows without a score are skipped. */
void pairs_add(struct pairs *pairs, const vp_json *json, double score);

/* Pairs the rows of a file with those of its baseline. Returns 0, or an exit code if no id is in both. */
int pairs_join(struct pairs *pairs, struct pairs *baseline, const char *name, const char *baseline_name);
void pairs_put(vp_json_writer *writer, const struct pairs *pairs);
void pairs_print(const struct pairs *pairs);
void pairs_free(struct pairs *pairs);

#endif
