/* score_captions.h: scores a whole corpus of captions: CIDEr-D.
 * Rows with a candidate and references are gathered first; then all are scored together and printed as lines of
 * JSON. */
#ifndef VLMPROF_CLI_SCORE_CAPTIONS_H
#define VLMPROF_CLI_SCORE_CAPTIONS_H
#include "base/json.h"
#include "score/score_rules.h"
#include "score/scoring.h"

/* Scores the job's lines: images of one corpus, or sets of images, each a corpus, if the first line is a set. Returns 0
 * or an exit code. */
int caption_lines(struct score_job *job, struct scoring *scoring, struct parsed *parsed, int metric);

#endif
