/* picture_header.h: format and size of a picture file, from its first bytes. */
#ifndef VLMPROF_CLI_PICTURE_HEADER_H
#define VLMPROF_CLI_PICTURE_HEADER_H
#include <stddef.h>
#include <stdint.h>

/* The format by PIL's name: PNG, JPEG, WEBP, GIF, BMP, TIFF; NULL if none of them. */
const char *picture_format(const unsigned char *data, size_t bytes);

/* Reads the size as stored, without EXIF rotation. Returns 0 if the header is truncated or damaged. */
int picture_size(const unsigned char *data, size_t bytes, int32_t *width_px, int32_t *height_px);

#endif
