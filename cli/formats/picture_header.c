/* picture_header.c: format and size of a picture file, from its first bytes. */
#include "formats/picture_header.h"

#include <string.h>

static uint32_t big(const unsigned char *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}
static uint32_t little(const unsigned char *at, int bytes) {
    uint32_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    return value;
}
const char *picture_format(const unsigned char *data, size_t bytes) {
    if (bytes >= 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8)) return "PNG";
    if (bytes >= 3 && !memcmp(data, "\xff\xd8\xff", 3)) return "JPEG";
    if (bytes >= 12 && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4)) return "WEBP";
    if (bytes >= 6 && (!memcmp(data, "GIF87a", 6) || !memcmp(data, "GIF89a", 6))) return "GIF";
    if (bytes >= 18 && !memcmp(data, "BM", 2)) return "BMP";
    if (bytes >= 4 && (!memcmp(data, "II*\0", 4) || !memcmp(data, "MM\0*", 4))) return "TIFF";
    return NULL;
}
/* Finds the first frame header of a JPEG. */
static int jpeg_size(const unsigned char *data, size_t bytes, uint32_t *width, uint32_t *height) {
    size_t at = 2;
    while (at + 4 <= bytes) {
        unsigned char marker = data[at + 1];
        if (data[at] != 0xFF) return 0;
        if (marker == 0xFF) at++;
        else if (marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) at += 2;
        else if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
            if (at + 9 > bytes) return 0;
            *height = big(data + at + 5, 2);
            *width = big(data + at + 7, 2);
            return 1;
        } else at += 2 + big(data + at + 2, 2);
    }
    return 0;
}
static int webp_size(const unsigned char *data, size_t bytes, uint32_t *width, uint32_t *height) {
    if (bytes < 30) return 0;
    if (!memcmp(data + 12, "VP8X", 4)) {
        *width = little(data + 24, 3) + 1;
        *height = little(data + 27, 3) + 1;
    } else if (!memcmp(data + 12, "VP8L", 4)) {
        *width = (little(data + 21, 4) & 0x3FFF) + 1;
        *height = (little(data + 21, 4) >> 14 & 0x3FFF) + 1;
    } else if (!memcmp(data + 12, "VP8 ", 4)) {
        *width = little(data + 26, 2) & 0x3FFF;
        *height = little(data + 28, 2) & 0x3FFF;
    } else return 0;
    return 1;
}
/* Reads the tags ImageWidth and ImageLength of the first directory. */
static int tiff_size(const unsigned char *data, size_t bytes, uint32_t *width, uint32_t *height) {
    uint32_t (*number)(const unsigned char *, int) = data[0] == 'I' ? little : big;
    if (bytes < 8) return 0;
    size_t at = number(data + 4, 4);
    if (at + 2 > bytes) return 0;
    size_t count = number(data + at, 2);
    for (at += 2; count && at + 12 <= bytes; count--, at += 12) {
        uint32_t tag = number(data + at, 2), value = number(data + at + 8, number(data + at + 2, 2) == 3 ? 2 : 4);
        if (tag == 256) *width = value;
        if (tag == 257) *height = value;
    }
    return 1;
}
int picture_size(const unsigned char *data, size_t bytes, int32_t *width_px, int32_t *height_px) {
    const char *format = picture_format(data, bytes);
    uint32_t width = 0, height = 0;
    if (!format) return 0;
    if (!strcmp(format, "PNG") && bytes >= 24) {
        width = big(data + 16, 4);
        height = big(data + 20, 4);
    } else if (!strcmp(format, "GIF") && bytes >= 10) {
        width = little(data + 6, 2);
        height = little(data + 8, 2);
    } else if (!strcmp(format, "BMP") && bytes >= 26) {
        int is_old = little(data + 14, 4) == 12;
        width = is_old ? little(data + 18, 2) : little(data + 18, 4);
        height = is_old ? little(data + 20, 2) : little(data + 22, 4);
        if (height > INT32_MAX) height = 0u - height; /* the first row is the top one */
    } else if (!strcmp(format, "JPEG")) jpeg_size(data, bytes, &width, &height);
    else if (!strcmp(format, "WEBP")) webp_size(data, bytes, &width, &height);
    else if (!strcmp(format, "TIFF")) tiff_size(data, bytes, &width, &height);
    if (!width || !height || width > INT32_MAX || height > INT32_MAX) return 0;
    *width_px = (int32_t)width;
    *height_px = (int32_t)height;
    return 1;
}
