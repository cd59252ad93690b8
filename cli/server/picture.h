/* picture.h: an image as a server gets it: the bytes of a file.
 * A path or pixels come in; bytes, their media type and the size of the image come out. */
#ifndef VLMPROF_CLI_PICTURE_H
#define VLMPROF_CLI_PICTURE_H
#include "vlmprof_image.h"
#include <stddef.h>
#include <stdint.h>

struct picture {
    char *bytes; size_t byte_count;
    const char *media_type;      /* "image/png" ...; static */
    int32_t width_px, height_px; /* upright */
};
/* What a file's first bytes say that it is: "image/png", "image/jpeg", "image/webp", "image/gif"; NULL: none of
 * them. */
const char *media_type_of(const char *bytes, size_t count);

/* The bytes of a file unchanged; at most VP_IMAGE_PIXELS_MAX pixels by its header. Like picture_resized it returns 0,
 * or an exit code with a reason in `reason`; nothing is printed. */
int picture_of_file(const char *path, struct picture *picture, char *reason, size_t capacity);

/* A PNG file of pixels, [height, width, 3]. Returns 0, and an empty picture, for a size that has_image_size rejects. */
int picture_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct picture *picture);

/* An image in this size, and a PNG file of it. *resized gets the pixels, which the caller frees with vp_image_free. */
int picture_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized,
                    struct picture *picture, char *reason, size_t capacity);

void picture_free(struct picture *picture); /* and empties it */

#endif
