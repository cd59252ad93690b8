/* score_captions.h: scores a whole corpus of captions: BLEU, CIDEr-D, ROUGE-L.
 * Rows with a candidate and references are gathered first; then all are scored together and printed as lines of
 * JSON. */
#ifndef VLMPROF_CLI_SCORE_CAPTIONS_H
#define VLMPROF_CLI_SCORE_CAPTIONS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_caption.h"

struct caption_row {
    char *id, *reason, *cleaned;   /* owned; id is JSON, cleaned is shown as pred_cleaned; each may be NULL */
    const char *id_key;            /* the key of the id in the output */
    const char *trouble;           /* why there is no score; NULL if there is one */
    size_t first, reference_count; /* its texts: the candidate, then the references */
    int has_words;                 /* 1 if the words differ from the given texts, or were given as words */
};

struct captions {
    int by_words;           /* 1 if texts are already words, separated by white space */
    int with_summary;       /* 1 with --json: a line with the summary comes last */
    size_t tokenised_count; /* texts that the built-in tokenizer split into words */
    vp_caption_text *texts; size_t text_count, text_capacity; /* owned */
    struct caption_row *rows; size_t row_count, row_capacity;
};

void captions_free(struct captions *captions);

/* Adds a row without texts. `id` is a node of `json` or VP_JSON_NONE. The row is valid until the next one is added. */
struct caption_row *caption_add_row(struct captions *captions, const vp_json *json, uint32_t id, const char *id_key);

/* Adds the texts of a row: the candidate, NULL for none, and the references of `object`. Sets the row's `trouble` if it
 * cannot be scored. is_words: the texts are already words. */
void caption_add(struct captions *captions, struct caption_row *row, struct scoring *scoring, const vp_json *json,
                 uint32_t object, const char *candidate, int is_words);

/* Scores all rows together and prints one line per row; the last one also has the corpus. Returns 0 or an exit code. */
int captions_print(const struct captions *captions, int metric, const char *name, const char *source);

/* Scores the job's lines: images of one corpus, or sets of images, each a corpus, if the first line is a set. Returns 0
 * or an exit code. */
int caption_lines(struct score_job *job, struct scoring *scoring, struct parsed *parsed, int metric);

#endif
