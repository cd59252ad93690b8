/* score_answers.h: turns answer files of other tools into rows of the score command: lmms-eval's --log_samples and
 * VLMEvalKit's tables. */
#ifndef VLMPROF_CLI_SCORE_ANSWERS_H
#define VLMPROF_CLI_SCORE_ANSWERS_H
#include "base/memory.h"
#include <stddef.h>

enum answers_kind { ANSWERS_NONE, ANSWERS_LMMS, ANSWERS_VLMEVALKIT, ANSWERS_SPREADSHEET };

/* Detects the kind of a text from its start. */
enum answers_kind answers_kind(const char *text, size_t bytes);
const char *answers_tool(enum answers_kind kind); /* "lmms-eval" .. */

/* Appends one JSON object per row to `out`: {"id", "prediction", "references" or "answer", "options", ..}. Reads
 * `text`, or for VLMEvalKit the file at `path`. Returns 0 or an exit code after a message. */
int answers_convert(enum answers_kind kind, const char *path, const char *text, size_t bytes, struct text_buffer *out);

#endif
