/* jpeg_bits.h: bits of a JPEG file that change its pixels and nothing else. The bytes of a file come in; positions of
 * bits come out. */
#ifndef VLMPROF_CLI_JPEG_BITS_H
#define VLMPROF_CLI_JPEG_BITS_H
#include <stddef.h>
#include <stdint.h>

/* A bit, and the block of luminance whose pixels it changes. */
struct jpeg_bit { size_t at; unsigned char mask; int32_t x_px, y_px; };

/* At most one bit for each block of 8 x 8 pixels, in the file's order, no two in a byte. Flipping one changes one
 * coefficient by DELTA_LEAST or more and no length. Returns how many; *bits is malloc'ed. 0: the file is cut off, or of
 * a kind not read here (arithmetic coding, more than 8 bits, lossless, luminance at a lower resolution). */
size_t jpeg_bits(const uint8_t *file, size_t bytes, struct jpeg_bit **bits);

#endif
