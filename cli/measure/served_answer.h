/* served_answer.h: gets a server's answer with the next-token probabilities that it reports.
 * A question comes in; the answer's text and lists of likely tokens go out. Nothing is timed. */
#ifndef VLMPROF_CLI_SERVED_ANSWER_H
#define VLMPROF_CLI_SERVED_ANSWER_H
#include "measure/fidelity.h"
#include "server/ask.h"

/* Zeroed before use. */
struct served_answer { char *text; size_t bytes; struct likely_steps steps; };
void served_answer_free(struct served_answer *answer);

/* Requests the longest lists that the server allows, or none. *most_likely: their length so far; -1: the server gives
 * none; 0: not tried yet. Returns 0, EXIT_INTERRUPTED, or an exit code with a line in `reason`. */
int served_answer_ask(struct endpoint *endpoint, const struct question *question, int *most_likely,
                      struct served_answer *answer, char *reason, size_t capacity);

/* Compares two answers. `reason` becomes empty, or describes what is not known. */
void served_answers_compare(const struct served_answer *baseline, const struct served_answer *other,
                            struct fidelity *fidelity, char *reason, size_t capacity);

#endif
