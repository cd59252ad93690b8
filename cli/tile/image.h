/* image.h: an image file to RGB, with the reason when it cannot be read. */
#ifndef VLMPROF_CLI_IMAGE_H
#define VLMPROF_CLI_IMAGE_H
#include "vlmprof_image.h"

int load_image(const char *path, vp_image *image, char *reason, size_t capacity);

#endif
