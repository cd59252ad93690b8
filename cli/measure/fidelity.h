/* fidelity.h: compares the next-token distributions of one request with those of a baseline.
 * Logits, or a server's lists of likely tokens, along the baseline's answer come in; struct fidelity goes out.
 * results/fields.h describes its members.
 * source: llama.cpp, tools/perplexity (--kl-divergence): KL divergence of each next token from the baseline's, its
 * mean, median, 99th percentile and maximum over all tokens, and the share of equal most likely tokens */
#ifndef VLMPROF_CLI_FIDELITY_H
#define VLMPROF_CLI_FIDELITY_H
#include "results/fields.h"
#include "server/ask.h"

/* KL(baseline || other) = sum of p log(p / q), in nats; summed in double. Infinite if the other excludes a token. */
double kl_divergence(const float *baseline, const float *other, size_t count);

/* A pass along a given answer. fidelity_step takes the logits of each step, as vp_dump's on_logits. */
struct fidelity_pass {
    const float *baseline; /* [answer_count, width]; NULL: only the answer is known */
    const int32_t *answer; int32_t answer_count;
    size_t width;          /* size of the vocabulary */
    struct fidelity *to;   /* made by fidelity_begin */
};
/* Starts a comparison; `reason` is why nothing was compared so far. Both texts are copied. Free with
 * fields_free(&FIDELITY_OBJECT). */
void fidelity_begin(struct fidelity *fidelity, const char *baseline, const char *reason);
void fidelity_step(void *pass, int32_t step, const float *logits);

/* A server's token, and the likely tokens that the server reports for its position. */
struct likely { char *text; size_t bytes; double logprob; };
struct likely_step { struct likely own; struct likely *top; size_t top_count; };
struct likely_steps { struct likely_step *steps; size_t count; };
enum { LIKELY_STEP_MOST = 64 }; /* most tokens read from a list */

/* Bounds of the KL divergence if only the most likely tokens are known. Lower bound: all tokens that are not in both
 * lists count as one. Upper bound: a token missing in a list has at least probability e^-16, the smallest that
 * llama.cpp stores for a baseline. */
struct divergence likely_divergence(const struct likely_step *baseline, const struct likely_step *other);

/* Compares two answers by their lists, up to the first different token: after it, the two models see different texts.
 * Without lists, only the texts are compared. */
struct answer_of { const char *text; size_t bytes; const struct likely_steps *steps; };
void fidelity_of_answers(struct fidelity *fidelity, const struct answer_of *baseline, const struct answer_of *other);

/* Mean, median, 99th percentile and maximum; NaN if there are no divergences. */
struct divergence_summary { double mean, median, p99, most, mean_at_most; };
struct divergence_summary divergences_summary(const struct divergence *divergences, size_t count);

/* Writes its members in a row of a result file. */
void put_fidelity_row(vp_json_writer *writer, const struct fidelity *fidelity);

/* ---- a server's answer with the probabilities of its tokens, untimed */
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
