/* served_answer.h: a server's answer with what it shows of its next-token distributions.
 * A question comes in; the answer's text and lists of likely tokens go out. Nothing is timed. */
#ifndef VLMPROF_CLI_SERVED_ANSWER_H
#define VLMPROF_CLI_SERVED_ANSWER_H
#include "measure/fidelity.h"
#include "server/ask.h"

/* Zeroed before use. */
struct served_answer { char *text; size_t bytes; struct likely_steps steps; };
void served_answer_free(struct served_answer *answer);

/* Asks for lists as long as the server gives them, else without any. *most_likely: how long they were before; -1: it
 * gave none; 0: it was not asked yet. Returns 0, EXIT_INTERRUPTED, or an exit code with
 * a line in `reason`. */
int served_answer_ask(struct endpoint *endpoint, const struct question *question, int *most_likely,
                      struct served_answer *answer, char *reason, size_t capacity);

/* Compares two answers; `reason` becomes empty, or says what is not known. */
void served_answers_compare(const struct served_answer *baseline, const struct served_answer *other,
                            struct fidelity *fidelity, char *reason, size_t capacity);

#endif
