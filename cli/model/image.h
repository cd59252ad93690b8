/* image.h: converts an image file to RGB, and RGB to a PNG file's bytes. */
#ifndef VLMPROF_CLI_IMAGE_H
#define VLMPROF_CLI_IMAGE_H
#include "base/memory.h"
#include "vlmprof_image.h"

/* Decodes an image file; vp_image_free frees the pixels. Returns 0, or an exit code with a reason in `reason`. Prints
 * nothing. */
int load_image(const char *path, vp_image *image, char *reason, size_t capacity);
/* Writes why an image cannot be used. Returns the exit code. */
int image_failed(vp_result result, const vp_error *error, const char *path, char *reason, size_t capacity);

/* Returns 1 if an image may have this size: 1 to VP_IMAGE_PIXELS_MAX pixels. */
int has_image_size(int64_t width_px, int64_t height_px);

/* Appends a PNG file of RGB pixels, [height, width, 3], to out. Returns 0, and appends nothing, for a size that
 * has_image_size rejects. */
int add_png(struct text_buffer *out, const uint8_t *rgb, int32_t width_px, int32_t height_px);

/* Like vp_image_size and vp_image_decode, for PNG, JPEG, WebP and GIF. Alpha is dropped, not blended. */
vp_result any_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error);
vp_result any_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error);

/* ---- a prompt as a model sees it */
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
