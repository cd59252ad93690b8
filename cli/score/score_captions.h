/* score_captions.h: the rules of a whole corpus of captions: BLEU, CIDEr-D, ROUGE-L. */
#ifndef VLMPROF_CLI_SCORE_CAPTIONS_H
#define VLMPROF_CLI_SCORE_CAPTIONS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_caption.h"

typedef struct caption_row {
    char *id, *reason, *cleaned; /* owned; id is JSON */
    const char *id_key, *trouble; /* trouble: no score */
    size_t first, reference_count; /* its texts */
    int has_words; /* the row gave them, or the built-in tokenizer changed a text */
} caption_row;

typedef struct captions {
    int by_words; /* texts as they are: words between white space */
    size_t tokenised_count; /* texts that the built-in tokenizer took apart */
    vp_caption_text *texts; size_t text_count, text_capacity; /* owned; an image's candidate before its references */
    caption_row *rows; size_t row_count, row_capacity;
} captions;

void captions_free(captions *c);
caption_row *caption_add_row(captions *c, const vp_json *j, uint32_t id, const char *id_key);

/* candidate: NULL for none; the references are those of `object`. */
void caption_add(captions *c, caption_row *row, scoring *s, const vp_json *j, uint32_t object, const char *candidate, int is_words);

/* One line an image; the last line has the corpus too. */
int captions_print(const captions *c, int metric, const char *name, const char *source);

/* Lines of images, or of sets where the first is one. */
int caption_lines(score_job *job, scoring *s, parsed *p, int metric);

#endif
