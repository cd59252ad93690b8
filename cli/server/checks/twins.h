/* twins.h: what an image costs, from outside: an image's request against a text's with as many prompt tokens.
 * Two requests whose prompts have equally many tokens take equally long from the first block of the language model on.
 * So their TTFT differs by the image's preprocessing, upload and vision encoder. Here are the search for such
 * a text and what pairs of times say; nothing here sends a request: server/checks/twin_pairs.h does. */
#ifndef VLMPROF_CLI_TWINS_H
#define VLMPROF_CLI_TWINS_H
#include "base/json.h"
#include "base/memory.h"
#include "results/fields.h"
#include "results/metrics.h"
#include <stdint.h>

/* ---- the text: a mark that no cache knows, then a filler, repeated until the prompt has as many tokens as wanted */
enum { TWIN_FILLERS = 4, TWIN_TRIES = 60 };
struct twin_text { int filler; int64_t repeats, tokens; };
struct twin_search {
    int64_t wanted;          /* prompt tokens */
    int filler, tries;
    int64_t low, low_tokens, high, high_tokens; /* repeats with fewer and with more tokens than wanted; -1: none */
    int64_t next;            /* repeats to be tried now; -1: the search has ended */
    int is_found;            /* 1 if `nearest` is exact */
    struct twin_text nearest; /* of all that were tried; tokens -1: none was */
};
/* known: a text of the same server to begin at; NULL: none. One that is exact already is found. */
void twin_search_begin(int64_t wanted, const struct twin_text *known, struct twin_search *search);
/* Takes the prompt tokens of the text with `next` repeats, and sets the next one. Where the number of tokens jumps over
 * the wanted one the next filler is tried. It ends after TWIN_TRIES at the latest, whatever the counts are. */
void twin_search_take(struct twin_search *search, int64_t tokens);
/* The text, malloc'ed. Its mark is eight letters between spaces, which are as many tokens for every mark with nearly
 * all tokenizers: these have a token for such a letter, and join no two words. */
char *twin_text(int filler, int64_t repeats, uint64_t mark);

/* Texts that were found for one server, model and setting. All zero: none. */
struct twin_memory {
    struct twin_text *texts; size_t count;
    uint64_t question; int64_t question_tokens; /* hash of the last question, and its prompt tokens without an image */
};
const struct twin_text *twin_recall(const struct twin_memory *memory, int64_t wanted); /* the nearest; NULL: none */
void twin_remember(struct twin_memory *memory, const struct twin_text *text);
void twin_forget(struct twin_memory *memory);

/* ---- pairs (struct twin_pair) */
enum twin_method { TWINS_EXACT, TWINS_ADJUSTED };
/* What is compared: TTFT; where no text came, the first part of the stream; else the server's time of the prompt. */
enum twin_basis { TWINS_TTFT, TWINS_CHUNK, TWINS_SERVER, TWINS_BASES };
enum { TWIN_PAIRS_LEAST = 5 }; /* fewer give no number */
#define TWIN_METHODS "exact adjusted"
struct twin_result {
    enum twin_basis basis;
    struct median_range difference;          /* of the pairs, ms */
    double image_chunk_ms, text_chunk_ms, chunk_difference_ms; /* medians to the first part of the stream */
    double image_ms, text_ms, floor_ms, upload_ms; /* medians */
    double image_prompt_ms, text_prompt_ms, prompt_difference_ms; /* medians by the server's clock; NaN: it has none */
    double ms_per_token;                     /* of text, by which pairs were adjusted; NaN: none was */
    int32_t pairs, adjusted;                 /* that count; those of them that were adjusted */
    int32_t cached, unequal, silent;         /* left out: answered by a cache; other numbers of tokens; no text came */
    double image_cached, text_cached;        /* tokens from caches, means over the pairs that say it; NaN: none does */
};
/* A pair is left out where a cache had half of a prompt or more. A pair whose numbers of tokens differ is left
 * out with TWINS_EXACT; with TWINS_ADJUSTED its difference is corrected by what a token of text costs: the median
 * TTFT of the texts less that of the floor, per token. */
struct twin_result twins_result(const struct twin_pair *pairs, int32_t count, enum twin_method method);

/* "T_image_outside": the result as an object. prompt_tokens, image_tokens: below 0: null. */
void twins_put(vp_json_writer *writer, const struct twin_result *result, int64_t prompt_tokens, int64_t image_tokens);

/* The words of a basis: "TTFT", "first_chunk", "server_prompt_ms". */
extern const char *const TWIN_BASES[TWINS_BASES];

/* Returns 1 if the whole range is below 0, which no image can cost; `out` gets a line with the likely cause. */
int twins_are_wrong(const struct twin_result *result, char *out, size_t capacity);

/* Why pairs do not count, and what is doubtful about those that do. */
void twins_warn(struct text_list *warnings, const struct twin_result *result);

/* The prompt's time in what a server says about its own clock (llama.cpp, Ollama), ms; NaN: it does not say. */
double twin_prompt_ms(const char *timings);

#endif
