/* twin_pairs.h: asks a server for an image and its twin in turns.
 * An image with its question comes in; pairs of times come out, which server/checks/twins.h turns into what the image
 * costs. */
#ifndef VLMPROF_CLI_TWIN_PAIRS_H
#define VLMPROF_CLI_TWIN_PAIRS_H
#include "server/checks/twins.h"
#include "server/endpoint.h"
#include "server/unique.h"

#define OPTIONS_OF_TWINS \
    {"twins", COUNT, "N", NULL, 1, 10000, NULL, \
     "measure what the image costs: N times in turns with a text of as many prompt tokens; TTFT differs by " \
     "preprocessing, upload and vision encoder"}, \
    {"twins_method", CHOICE, "NAME", "exact", 0, 0, TWIN_METHODS, \
     "exact: only texts of exactly as many tokens; adjusted: the nearest one, corrected by what a token of text " \
     "costs", \
     .needs = "twins"}

struct twin_plan {
    struct endpoint *endpoint;
    const struct unique *images; int32_t image_count; /* each request gets pixels of its own, */
    int is_same_image;          /* unless 1 */
    const size_t *places;       /* as struct question has them */
    const char *text;           /* the question that goes with them */
    const vp_chat_knob *knobs; size_t knob_count, text_knob_count; /* text: those before the image's own */
    int no_cache;          /* 1 if --no_cache */
    enum twin_method method;
    int32_t pairs;         /* wanted, after one that warms up */
    uint64_t seed;         /* of the order within the pairs */
    const char *name;      /* for the progress line */
    struct twin_memory *memory;
};
struct twins {
    int64_t prompt_tokens; /* of the image's request */
    int64_t image_tokens;  /* those less the tokens of its question alone */
    struct twin_pair *pairs; int32_t count;
};
/* --twins_method. */
enum twin_method twin_method_of(const struct options *options);

/* Finds the text and asks for the pairs. Returns 0, EXIT_INTERRUPTED with the pairs that are whole, or an exit code
 * with a line in `reason`. twins_free frees in all cases. */
int twins_measure(const struct twin_plan *plan, struct twins *twins, char *reason, size_t capacity);
void twins_free(struct twins *twins);

#endif
