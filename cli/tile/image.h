/* image.h: an image file to RGB.
 * A path comes in; pixels, or the reason why there are none, come out. */
#ifndef VLMPROF_CLI_IMAGE_H
#define VLMPROF_CLI_IMAGE_H
#include "vlmprof_image.h"

/* Decodes an image file; vp_image_free frees the pixels. Returns 0, or an exit code with a reason in `reason`; nothing
 * is printed. */
int load_image(const char *path, vp_image *image, char *reason, size_t capacity);

#endif
