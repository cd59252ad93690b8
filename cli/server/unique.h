/* unique.h: gives each request an image whose bytes and decoded pixels are in no server cache. A file or
 * pixels come in; a file whose pixels depend on a number comes out, at little cost.
 *
 * A JPEG stays a JPEG of the same size: the number sets one bit in the size of a coefficient of up to 64 blocks of its
 * luminance. A block's pixels depend only on its own coefficients, so two numbers that differ in a bit give different
 * pixels in that block. To find blocks whose pixels change with their bit, the file is decoded once unchanged and once
 * with all bits flipped. Any other image becomes a PNG whose last row is not compressed; the number is in the lowest
 * bits of that row. */
#ifndef VLMPROF_CLI_UNIQUE_H
#define VLMPROF_CLI_UNIQUE_H
#include "server/picture.h"
#include <stdint.h>

struct unique_bit { size_t at; unsigned char mask; };
struct unique {
    struct picture picture; /* the file, for one number */
    size_t from, to;        /* range of the bytes that depend on the number */
    struct unique_bit *bits; size_t bit_count; /* for a JPEG: positions of the number's bits */
    size_t row_at, row_bytes; /* for a PNG: the last row, `row_at` bytes after `from` */
    uint32_t adler;                      /* checksum of the rows before it */
};

/* Servers may have caches, so each request has its own image. */
#define OPTION_SAME_IMAGE \
    {"same_image", FLAG, NULL, NULL, 0, 0, NULL, \
     "send the file unchanged in every request: a server may answer from its caches; otherwise every request has " \
     "different pixels"}

/* Makes a unique image from a file or from pixels [height, width, 3]. unique_of_file returns 0, or an exit code with a
 * reason in `reason`, and prints nothing. Call unique_free in both cases. */
int unique_of_file(const char *path, struct unique *unique, char *reason, size_t capacity);
void unique_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct unique *unique);
void unique_free(struct unique *unique);

/* Rewrites `part`, a copy of the file's bytes `from` to `to`, for a number. Images with fewer than 22 columns and JPEGs
 * with few details only use the lowest bits of the number. */
void unique_mark(const struct unique *unique, uint64_t number, char *part);

#endif
