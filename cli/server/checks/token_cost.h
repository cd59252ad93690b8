/* token_cost.h: checks whether an image token adds as much to a server's TTFT as a text token.
 * Times of alternating requests come in; the cost per token of both kinds, and a hint if the image token's is lower,
 * come out. The language model does the same work for both, and an image also passes through an encoder. A lower cost
 * hints at image tokens that do not reach all blocks. Counts cannot show this, because servers count tokens before
 * pruning. Nothing is sent. */
#ifndef VLMPROF_CLI_TOKEN_COST_H
#define VLMPROF_CLI_TOKEN_COST_H
#include "base/memory.h"
#include "vlmprof.h"
#include <stddef.h>
#include <stdint.h>

/* The requests of a round, in order. */
enum cost_request { COST_SMALL_IMAGE, COST_SHORT_TEXT, COST_LARGE_IMAGE, COST_LONG_TEXT, COST_REQUESTS };
struct cost_round { int64_t tokens[COST_REQUESTS]; double ms[COST_REQUESTS]; };

enum { COST_TOKENS_LEAST = 64 }; /* the larger request must have this many more tokens */
/* The cost of a token in ms; difference: image token minus text token, paired by round. */
struct token_cost { size_t rounds; vp_estimate image, text, difference; int is_hint; };
/* Returns 1, or 0 if a round's sizes are too similar or there are fewer than 2 rounds. */
int token_cost_find(const struct cost_round *rounds, size_t count, struct token_cost *cost);
/* Adds the hint, or a sentence that there is none, with the evidence. */
void token_cost_words(const struct token_cost *cost, struct text_list *out);

/* A text of this many common words, malloc'ed. It differs for each number, so that no cache contains it. */
char *token_cost_text(int64_t words, uint64_t number);

#endif
