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

/* ---- unique.c: pictures that no cache has seen */
struct unique_bit { size_t at; unsigned char mask; };
struct unique {
    struct picture picture; /* the file, for one number */
    size_t from, to;        /* range of the bytes that depend on the number */
    struct unique_bit *bits; size_t bit_count; /* for a JPEG: positions of the number's bits */
    size_t row_at, row_bytes; /* for a PNG: the last row, `row_at` bytes after `from` */
    uint32_t adler;           /* checksum of the rows before it */
};

/* Servers may have caches, so each request has its own image. */
#define OPTION_SAME_IMAGE \
    {"same_image", FLAG, NULL, NULL, 0, 0, NULL, \
     "send the file unchanged in every request, which a server may answer from its caches; otherwise every request " \
     "has different pixels"}

/* Makes a unique image from a file or from pixels [height, width, 3]. unique_of_file returns 0, or an exit code with a
 * reason in `reason`, and prints nothing. Call unique_free in both cases. */
int unique_of_file(const char *path, struct unique *unique, char *reason, size_t capacity);
void unique_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct unique *unique);
void unique_free(struct unique *unique);

/* Rewrites `part`, a copy of the file's bytes `from` to `to`, for a number. Images with fewer than 22 columns and JPEGs
 * with few details only use the lowest bits of the number. */
void unique_mark(const struct unique *unique, uint64_t number, char *part);

/* ---- jpeg_bits.c */
/* A bit and the block of luminance whose pixels it changes. */
struct jpeg_bit { size_t at; unsigned char mask; int32_t x_px, y_px; };

/* Finds at most one bit per block of 8 x 8 pixels, in file order, no two in a byte. Flipping a bit changes one
 * coefficient by DELTA_LEAST or more, and no length. Returns the number of bits; *bits is malloc'ed. Returns 0 if the
 * file is truncated or of an unsupported kind (arithmetic coding, more than 8 bits, lossless, luminance at a lower
 * resolution). */
size_t jpeg_bits(const uint8_t *file, size_t bytes, struct jpeg_bit **bits);

#endif
