/* jpeg_bits.h: finds bits of a JPEG file that only change its pixels. The bytes of a file come in; positions of
 * bits come out. */
#ifndef VLMPROF_CLI_JPEG_BITS_H
#define VLMPROF_CLI_JPEG_BITS_H
#include <stddef.h>
#include <stdint.h>

/* A bit and the block of luminance whose pixels it changes. */
struct jpeg_bit { size_t at; unsigned char mask; int32_t x_px, y_px; };

/* Finds at most one bit per block of 8 x 8 pixels, in file order, no two in a byte. Flipping a bit changes one
 * coefficient by DELTA_LEAST or more, and no length. Returns the number of bits; *bits is malloc'ed. Returns 0 if the
 * file is truncated or of an unsupported kind (arithmetic coding, more than 8 bits, lossless, luminance at a lower
 * resolution). */
size_t jpeg_bits(const uint8_t *file, size_t bytes, struct jpeg_bit **bits);

#endif
