/* twin_pairs.h: sends a server requests with an image and with its twin, alternately.
 * An image with its question comes in; pairs of times come out, from which server/checks/twins.h computes the cost of
 * the image. */
#ifndef VLMPROF_CLI_TWIN_PAIRS_H
#define VLMPROF_CLI_TWIN_PAIRS_H
#include "server/ask.h"
#include "server/checks/twins.h"

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
};
struct twins {
    int64_t prompt_tokens; /* prompt tokens of the image request */
    int64_t image_tokens;  /* prompt_tokens minus the tokens of the question without the image */
    struct twin_pair *pairs; int32_t count;
};

/* Finds the text and measures the pairs. Returns 0, EXIT_INTERRUPTED with the complete pairs, or an exit code with a
 * line in `reason`. Call twins_free in all cases. */
int twins_measure(const struct twin_plan *plan, struct twins *twins, char *reason, size_t capacity);
void twins_free(struct twins *twins);

#endif
