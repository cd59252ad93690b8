/* twins.h: what an image costs, from outside: an image's request against a text's with as many prompt tokens.
 * Two requests whose prompts have equally many tokens take equally long from the first block of the language model on.
 * So their TTFT differs by the image's preprocessing, upload and vision encoder. Here are the search for such a text
 * and what pairs of times say; nothing here sends a request. */
#ifndef VLMPROF_CLI_TWINS_H
#define VLMPROF_CLI_TWINS_H
#include "base/metrics.h"
#include <stdint.h>

/* ---- the text: a filler, repeated until the prompt has exactly the wanted number of tokens */
enum { TWIN_FILLERS = 4, TWIN_TRIES = 60 };
struct twin_search {
    int64_t wanted;        /* prompt tokens */
    int filler, tries;
    int64_t low, low_tokens, high, high_tokens; /* repeats with fewer and with more tokens than wanted; high -1: none */
    int64_t next;          /* repeats to be tried now; -1: the search has ended */
    int64_t found;         /* repeats that are exact; -1: none */
};
void twin_search_begin(int64_t wanted, struct twin_search *search);
/* Takes the prompt tokens of the text with `next` repeats, and sets the next one. Token counts must not fall with the
 * number of repeats; where they jump over the wanted number the next filler is tried. */
void twin_search_take(struct twin_search *search, int64_t tokens);
/* The text: a mark that no cache knows, of always the same length, then the filler. malloc'ed. */
char *twin_text(int filler, int64_t repeats, uint64_t mark);

/* ---- pairs */
struct twin_pair {
    double image_ms, text_ms;                /* TTFT */
    int64_t image_tokens, text_tokens;       /* prompt tokens, as the server counts them */
    int64_t image_cached, text_cached;       /* of them from a cache; -1: it does not say */
};
struct twin_result {
    struct median_range difference;          /* of the paired TTFT, ms */
    double image_ms, text_ms;                /* medians */
    int32_t pairs, cached, unequal;          /* that count; left out: answered by a cache, other numbers of tokens */
};
/* A pair is left out where a cache held half of a prompt or more, or where the numbers of tokens differ. */
struct twin_result twins_result(const struct twin_pair *pairs, int32_t count);

#endif
