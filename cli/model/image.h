/* image.h: converts an image file to RGB, and RGB to a PNG file's bytes. */
#ifndef VLMPROF_CLI_IMAGE_H
#define VLMPROF_CLI_IMAGE_H
#include "base/memory.h"
#include "vlmprof_image.h"

/* Decodes an image file; vp_image_free frees the pixels. Returns 0, or an exit code with a reason in `reason`. Prints
 * nothing. */
int load_image(const char *path, vp_image *image, char *reason, size_t capacity);

/* Returns 1 if an image may have this size: 1 to VP_IMAGE_PIXELS_MAX pixels. */
int has_image_size(int64_t width_px, int64_t height_px);

/* Appends a PNG file of RGB pixels, [height, width, 3], to out. Returns 0, and appends nothing, for a size that
 * has_image_size rejects. */
int add_png(struct text_buffer *out, const uint8_t *rgb, int32_t width_px, int32_t height_px);

#endif
