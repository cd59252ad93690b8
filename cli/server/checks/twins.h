/* twins.h: the cost of an image, measured from outside: a request with the image against a text of equal length.
 * Requests whose prompts have the same number of tokens take the same time in the language model. Their TTFT therefore
 * differs by the image's preprocessing, upload and vision encoder. This file searches for such a text and evaluates
 * pairs of times. twin_pairs.c sends the requests. */
#ifndef VLMPROF_CLI_TWINS_H
#define VLMPROF_CLI_TWINS_H
#include "results/fields.h"
#include "results/metrics.h"
#include "server/ask.h"

/* ---- the text: a mark that is in no cache, then a filler, repeated until the prompt has the wanted tokens */
enum { TWIN_FILLERS = 4, TWIN_TRIES = 60 };
struct twin_text { int filler; int64_t repeats, tokens; };
struct twin_search {
    int64_t wanted; /* prompt tokens */
    int filler, tries;
    int64_t low, low_tokens, high, high_tokens; /* repeats with too few and too many tokens; -1: none yet */
    int64_t next;                               /* repeats to try next; -1: the search has ended */
    int is_found;                               /* 1 if `nearest` is exact */
    struct twin_text nearest;                   /* the nearest text so far; tokens -1 if none */
};
/* known: a text of the same server to start from, or NULL. An exact one ends the search. */
void twin_search_begin(int64_t wanted, const struct twin_text *known, struct twin_search *search);
/* Takes the prompt tokens of the text with `next` repeats, and sets the next one. If the number of tokens jumps over
 * the wanted one, the next filler is tried. The search always ends after TWIN_TRIES. */
void twin_search_take(struct twin_search *search, int64_t tokens);
/* The text, malloc'ed. Its mark is eight letters between spaces. With nearly all tokenizers every mark has the same
 * number of tokens: they have a token for such a letter and do not join words. */
char *twin_text(int filler, int64_t repeats, uint64_t mark);

/* The texts found for one server, model and setting. All zero if there are none. */
struct twin_memory {
    struct twin_text *texts; size_t count;
    uint64_t question; int64_t question_tokens; /* hash of the last question, and its prompt tokens without an image */
    int is_away;                                /* the last request failed without a whole answer */
};
const struct twin_text *twin_recall(const struct twin_memory *memory, int64_t wanted); /* the nearest, or NULL */
void twin_remember(struct twin_memory *memory, const struct twin_text *text);
void twin_forget(struct twin_memory *memory);

/* ---- pairs (struct twin_pair) */
/* The compared time: TTFT; without text, the first part of the stream; otherwise the server's prompt time. */
enum twin_basis { TWINS_TTFT, TWINS_CHUNK, TWINS_SERVER, TWINS_BASES };
enum { TWIN_PAIRS_LEAST = 5 }; /* a result needs at least this many */
struct twin_result {
    enum twin_basis basis;
    struct median_range difference;                               /* median difference of the pairs, ms */
    double image_chunk_ms, text_chunk_ms, chunk_difference_ms;    /* medians to the first part of the stream */
    double image_ms, text_ms, floor_ms, upload_ms;                /* medians */
    double image_prompt_ms, text_prompt_ms, prompt_difference_ms; /* medians by the server's clock, or NaN */
    double ms_per_token;              /* cost of a text token for the adjustment; NaN if none */
    int32_t pairs, adjusted;          /* usable pairs; adjusted ones among them */
    int32_t cached, unequal, silent;  /* dropped: answered by a cache; unequal tokens; no text */
    double image_cached, text_cached; /* mean tokens from caches, over pairs that report them; or NaN */
};
/* A pair is dropped if half of a prompt or more came from a cache. The difference of a pair with unequal numbers
 * of tokens is corrected by the cost of a text token, the median TTFT of the texts minus that of the floor, per token;
 * the pair is dropped if that is not known. */
struct twin_result twins_result(const struct twin_pair *pairs, int32_t count);

/* "T_image_outside": the result as an object. prompt_tokens and image_tokens are null if negative. */
void twins_put(vp_json_writer *writer, const struct twin_result *result, int64_t prompt_tokens, int64_t image_tokens);

/* The names of the compared times (enum twin_basis): "TTFT", "first_chunk", "server_prompt_ms". */
extern const char *const TWIN_BASES[TWINS_BASES];

/* Returns 1 if the whole range is below 0, which is impossible; `out` gets a line with the likely cause. */
int twins_are_wrong(const struct twin_result *result, char *out, size_t capacity);

/* Adds warnings about dropped pairs, and doubts about the usable ones. */
void twins_warn(struct text_list *warnings, const struct twin_result *result);

/* The prompt time in a server's own timings (llama.cpp, Ollama), ms; NaN if not reported. */
double twin_prompt_ms(const char *timings);

/* ---- pairs of requests, sent alternately (twin_pairs.c) */
#define OPTION_TWINS \
    {"twins", COUNT, "N", NULL, 1, 10000, NULL, \
     "measure the cost of the image with N pairs of requests: one with the image, one with a text of the same number " \
     "of prompt tokens; their TTFTs differ by preprocessing, upload and vision encoder"}

struct twin_plan {
    struct endpoint *endpoint;
    struct question question; size_t text_knob_count; /* text_knob_count: the knobs before the images' */
    int32_t pairs;    /* requested pairs, after one warm-up pair */
    uint64_t seed;    /* seed of the order within the pairs */
    const char *name; /* for the progress line */
    struct twin_memory *memory;
    const struct twin_pair *known; int32_t known_count; /* pairs measured before, which count */
};
struct twins {
    int64_t prompt_tokens; /* prompt tokens in the image request */
    int64_t image_tokens;  /* prompt_tokens minus the tokens of the question without the image */
    struct twin_pair *pairs; int32_t count;
};

/* Finds the text and measures the pairs; a pair whose answer breaks off is measured again, twice at most. Returns 0,
 * EXIT_INTERRUPTED, or an exit code with a line in `reason`: memory->is_away is then 1 if the server gave no whole
 * answer, as after a crash. The complete pairs are there in all cases. The caller must call twins_free. */
int twins_measure(const struct twin_plan *plan, struct twins *twins, char *reason, size_t capacity);
void twins_free(struct twins *twins);

#endif
