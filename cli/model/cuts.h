/* cuts.h: a prompt as a model sees it: the sizes of its images, how they are cut, and its tokens. */
#ifndef VLMPROF_CLI_CUTS_H
#define VLMPROF_CLI_CUTS_H
#include "vlmprof.h"

enum { IMAGES_MOST = 256 }; /* images of one request */

/* The size of an image, upright. */
struct image_px { int32_t width_px, height_px; };

/* How the images of a prompt are cut, in order. For one image, `whole` is its layout. For several, it has only their
 * sums of crops, views and tokens. model_cut makes it, cuts_free frees it. */
struct cuts { vp_layout whole; vp_layout *each; vp_image_views *views; int32_t count; };

/* A prompt as tokens, malloc'ed: for a tiled model, the text after BOS and image, otherwise the whole sequence. */
struct prompt_tokens {
    int32_t *ids;
    int32_t count; /* tokens that do not represent an image */
    int no_bos;    /* 1 if there is no BOS before the text */
};

#endif
