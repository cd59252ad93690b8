/* picture.h: an image in the form sent to a server: the bytes of a file. A path or pixels come in; bytes, their media
 * type and the size of the image come out. */
#ifndef VLMPROF_CLI_PICTURE_H
#define VLMPROF_CLI_PICTURE_H
#include "vlmprof_image.h"
#include <stddef.h>
#include <stdint.h>

struct picture {
    char *bytes; size_t byte_count;
    const char *media_type;      /* "image/png", ...; static */
    int32_t width_px, height_px; /* size of the upright image */
};
/* The media type by a file's first bytes: "image/png", "image/jpeg", "image/webp", "image/gif" or NULL. */
const char *media_type_of(const char *bytes, size_t count);

/* Reads a file unchanged. Its header may specify at most VP_IMAGE_PIXELS_MAX pixels. Like picture_resized, it returns
 * 0, or an exit code with a reason in `reason`, and prints nothing. */
int picture_of_file(const char *path, struct picture *picture, char *reason, size_t capacity);

/* Makes a PNG file of pixels, [height, width, 3]. Returns 0 with an empty picture for a size that has_image_size
 * rejects. */
int picture_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct picture *picture);

/* Resizes an image and makes a PNG file of it. *resized gets the pixels, which the caller frees with vp_image_free. */
int picture_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized,
                    struct picture *picture, char *reason, size_t capacity);

void picture_free(struct picture *picture); /* also empties it */

#endif
