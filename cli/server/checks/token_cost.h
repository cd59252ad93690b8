/* token_cost.h: does a token of an image cost a server as much time to its first token as a token of text does?
 * Times of requests in turns come in; what a token of each adds, and a hint where the image's adds less, come out. A
 * language model works on both alike, and an image also passes an encoder: less time hints at image tokens that do
 * not reach all blocks. Counts cannot show that, since a server bills the tokens before it prunes. Nothing is sent. */
#ifndef VLMPROF_CLI_TOKEN_COST_H
#define VLMPROF_CLI_TOKEN_COST_H
#include "base/memory.h"
#include "vlmprof.h"
#include <stddef.h>
#include <stdint.h>

/* The requests of a round, in their order. */
enum cost_request { COST_SMALL_IMAGE, COST_SHORT_TEXT, COST_LARGE_IMAGE, COST_LONG_TEXT, COST_REQUESTS };
struct cost_round { int64_t tokens[COST_REQUESTS]; double ms[COST_REQUESTS]; };

enum { COST_TOKENS_LEAST = 64 }; /* the larger request has so many more tokens */
/* What a token adds, ms; difference: of the image's token less the text's, paired by round. */
struct token_cost { size_t rounds; vp_estimate image, text, difference; int is_hint; };
/* Returns 1, or 0 where a round's sizes are too much alike or there are fewer than 2 rounds. */
int token_cost_find(const struct cost_round *rounds, size_t count, struct token_cost *cost);
/* Adds the hint, or that there is none, with its evidence. */
void token_cost_words(const struct token_cost *cost, struct text_list *out);

/* A text of so many common words, another one for each number, so that no cache knows it; malloc'ed. */
char *token_cost_text(int64_t words, uint64_t number);

#endif
