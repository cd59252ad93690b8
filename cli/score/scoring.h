/* scoring.h: an object with an answer and references to its score; what many scores come to. */
#ifndef VLMPROF_CLI_SCORING_H
#define VLMPROF_CLI_SCORING_H
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_score.h"

typedef struct scoring {
    vp_score_sample sample;
    char **owned; size_t owned_count, owned_capacity; /* the texts of the row */
    const char **lists[3]; size_t capacities[3];
    size_t text_bytes;
    buffer scratch, more; /* for the score, and for what is shown beside it */
} scoring;

void scoring_clear(scoring *s);
void scoring_free(scoring *s);
const char *scoring_own(scoring *s, char *text);
size_t scoring_room(const scoring *s);

/* One text or an array of them; 0 when some are none. */
int scoring_list(scoring *s, int which, const vp_json *j, uint32_t node, const char *const **list, size_t *count);

/* Reads what a row says; the prediction is the caller's. Returns NULL, or what is wrong with it. */
const char *scoring_read(scoring *s, int metric, const vp_json *j, uint32_t object);

vp_result scoring_run(scoring *s, vp_score_metric metric, vp_score_cleaning cleaning, vp_score_outcome *outcome);

/* As a sweep takes a record: one string is a list of one, and an empty list is no answer to compare with. */
void scoring_as_run(scoring *s);

typedef struct tally {
    int is_binary;
    int64_t row_count, scored_count, unscored_count, unparsed_count, empty_count;
    double mean, spread; /* spread: sum of squared distances from the mean (Welford) */
} tally;

void tally_add(tally *t, double score, int is_unparsed, int is_empty); /* NaN: no score */
double tally_error(const tally *t); /* of the mean: sample standard deviation / sqrt(count) */
int tally_interval(const tally *t, double *low, double *high); /* 95 %, of 0/1 scores */
void tally_print(const tally *t, const char *metric);

#endif
