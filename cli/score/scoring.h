/* scoring.h: the score of one answer, and the tally of many scores.
 * A JSON object with the input of a scoring rule (a golden row, a data set's record, a result's metadata) and a
 * prediction come in; a score comes out, NaN if there is none. */
#ifndef VLMPROF_CLI_SCORING_H
#define VLMPROF_CLI_SCORING_H
#include "base/memory.h"
#include "vlmprof_score.h"

/* One row: its sample and the sample's memory, which the next row reuses. Zeroed before use. */
struct scoring {
    vp_score_sample sample;
    char **owned;
    size_t owned_count;                               /* the texts of the row */
    const char **lists[3]; size_t capacities[3];      /* references, options, option names: pointers into `owned` */
    size_t text_bytes;                                /* total size of the row's texts */
    struct buffer scratch, more;                      /* for the score, and for the details next to it */
};

void scoring_clear(struct scoring *scoring); /* before each row */
void scoring_free(struct scoring *scoring);

/* The rule with which a sweep scores rows of this metric; captions are scored one by one. Returns 0 if there is none;
 * *metric is then unchanged. */
int find_row_metric(const char *name, vp_score_metric *metric);

/* The rule of a row whose data set is unknown: mc if its answer is one of its options, otherwise vqa_seed. */
vp_score_metric scoring_default_metric(struct scoring *scoring, const vp_json *json);

/* The warning about samples with only 1 or 2 reference answers, which cannot reach the full score of a VQA rule.
 * Returns `line`. */
const char *few_answers_text(vp_score_metric metric, size_t count, char *line, size_t capacity);
/* Returns 1 if the row has 1 or 2 reference answers, too few for a full score by vqa_seed or vqa_official. */
int has_few_answers(const struct scoring *scoring, vp_score_metric metric);

/* Takes over a malloc'ed text until the next scoring_clear; NULL stays NULL. */
const char *scoring_own(struct scoring *scoring, char *text);

/* Bytes of scratch memory that any rule of the library needs for this row. */
size_t scoring_room(const struct scoring *scoring);

/* Reads one text or an array of texts into lists[which]. Returns 1 if all are texts, and *list and *count are set. */
int scoring_can_read_list(struct scoring *scoring, int which, const vp_json *json, uint32_t node,
                          const char *const **list, size_t *count);

/* Reads everything except the prediction from a row. Returns NULL, or a text with the error in the row. */
const char *scoring_read(struct scoring *scoring, int metric, const vp_json *json, uint32_t object);

/* Computes the score of the sample. The outcome's texts are valid until the next call. */
vp_result scoring_run(struct scoring *scoring, vp_score_metric metric, vp_score_cleaning cleaning,
                      vp_score_outcome *outcome);

/* Changes the sample to the form that a sweep scores: a string becomes a list of one, an empty list no references. */
void scoring_as_run(struct scoring *scoring);

struct tally {
    int is_binary;
    int keeps_values; /* 1: of fractional scores, for their interval; tally_free frees them */
    double *values;
    int64_t row_count, scored_count, unscored_count, unparsed_count, empty_count;
    int64_t nearest_count; /* answers that name no option: the rule took the nearest one */
    double mean, spread;   /* statistics of the scored rows; spread: sum of squared distances from the mean (Welford) */
};

/* Counts one row. NaN counts as no score, an unparsed answer as 0. */
void tally_add(struct tally *tally, double score, int is_unparsed, int is_empty);

void tally_free(struct tally *tally);

/* The standard error of the mean: sample standard deviation / sqrt(count); NaN with fewer than two scores. */
double tally_error(const struct tally *tally);

/* Prints the summary on stderr. */
void tally_print(const struct tally *tally, const char *metric);

/* Writes the same numbers into the open object. */
void tally_put(vp_json_writer *writer, const struct tally *tally, const char *metric);

#endif
