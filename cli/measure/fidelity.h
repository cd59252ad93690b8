/* fidelity.h: how near the next-token distributions of one request are to those of a baseline.
 * Logits, or a server's lists of likely tokens, along the baseline's answer come in; struct fidelity goes out, whose
 * members results/fields.h describes.
 * source: llama.cpp, tools/perplexity (--kl-divergence): KL divergence of each next token from the baseline's, its
 * mean, median, 99th percentile and maximum over all tokens, and the share of equal likeliest tokens */
#ifndef VLMPROF_CLI_FIDELITY_H
#define VLMPROF_CLI_FIDELITY_H
#include "base/json.h"
#include "results/fields.h"

#include <stddef.h>
#include <stdint.h>

/* KL(baseline || other) = sum of p log(p / q), in nats; sums in double. Infinite where the other excludes a token. */
double kl_divergence(const float *baseline, const float *other, size_t count);

/* A pass along an answer that is given. fidelity_step takes the logits of each step, as vp_dump's on_logits. */
struct fidelity_pass {
    const float *baseline; /* [answer_count, width]; NULL: the answer alone is known */
    const int32_t *answer; int32_t answer_count;
    size_t width;          /* of the vocabulary */
    struct fidelity *to;   /* fidelity_begin made it */
};
/* Nothing is compared yet, or can be: `reason` says why not. Both texts are copied; fields_free(&FIDELITY_OBJECT)
 * frees. */
void fidelity_begin(struct fidelity *fidelity, const char *baseline, const char *reason);
void fidelity_step(void *pass, int32_t step, const float *logits);

/* A server's token, and those that it says were likely in its place. */
struct likely { char *text; size_t bytes; double logprob; };
struct likely_step { struct likely own; struct likely *top; size_t top_count; };
struct likely_steps { struct likely_step *steps; size_t count; };
enum { LIKELY_STEP_MOST = 64 }; /* tokens of a list that are read */

/* Reads choices[0].logprobs of a chat completion; of NULL and anything else there are no steps. */
void likely_read(const char *logprobs, struct likely_steps *steps);
void likely_free(struct likely_steps *steps);

/* KL divergence of which only the likeliest tokens are known. Lower bound: the tokens that both lists have, all others
 * as one. Upper bound: a token that a list lacks is not less likely than e^-16, the smallest probability that llama.cpp
 * stores of a baseline. */
struct divergence likely_divergence(const struct likely_step *baseline, const struct likely_step *other);

/* Compares two answers by their lists: to the first different token, behind which the two see different texts. Without
 * lists by their texts alone. */
struct answer_of { const char *text; size_t bytes; const struct likely_steps *steps; };
void fidelity_of_answers(struct fidelity *fidelity, const struct answer_of *baseline, const struct answer_of *other);

/* Mean, median, 99th percentile and maximum; NaN: there are none. */
struct divergence_summary { double mean, median, p99, most, mean_at_most; };
struct divergence_summary divergences_summary(const struct divergence *divergences, size_t count);

/* Writes what a row of a result file has of it. */
void put_fidelity_row(vp_json_writer *writer, const struct fidelity *fidelity);

#endif
