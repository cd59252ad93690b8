/* scoring.h: an object with an answer and references to its score; what many scores come to. */
#ifndef VLMPROF_CLI_SCORING_H
#define VLMPROF_CLI_SCORING_H
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_score.h"

struct scoring {
    vp_score_sample sample;
    char **owned; size_t owned_count, owned_capacity; /* the texts of the row */
    const char **lists[3]; size_t capacities[3];
    size_t text_bytes;
    struct buffer scratch, more; /* for the score, and for what is shown beside it */
};

void scoring_clear(struct scoring *scoring);
void scoring_free(struct scoring *scoring);
const char *scoring_own(struct scoring *scoring, char *text);
size_t scoring_room(const struct scoring *scoring);

/* One text or an array of them; 0 when some are none. */
int scoring_can_read_list(struct scoring *scoring, int which, const vp_json *json, uint32_t node,
                          const char *const **list, size_t *count);

/* Reads what a row says; the prediction is the caller's. Returns NULL, or what is wrong with it. */
const char *scoring_read(struct scoring *scoring, int metric, const vp_json *json, uint32_t object);

vp_result scoring_run(struct scoring *scoring, vp_score_metric metric, vp_score_cleaning cleaning,
                      vp_score_outcome *outcome);

/* As a sweep takes a record: one string is a list of one, and an empty list is no answer to compare with. */
void scoring_as_run(struct scoring *scoring);

struct tally {
    int is_binary;
    int64_t row_count, scored_count, unscored_count, unparsed_count, empty_count;
    double mean, spread; /* spread: sum of squared distances from the mean (Welford) */
};

void tally_add(struct tally *tally, double score, int is_unparsed, int is_empty); /* NaN: no score */
double tally_error(const struct tally *tally); /* of the mean: sample standard deviation / sqrt(count) */
int tally_has_interval(const struct tally *tally, double *low, double *high); /* 95 %, of 0/1 scores */
void tally_print(const struct tally *tally, const char *metric);

#endif
