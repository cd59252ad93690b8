/* picture.c: an image in the form sent to a server: the bytes of a file. */
#include "server/picture.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "model/image.h"
#include "vlmprof_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *media_type_of(const char *bytes, size_t count) {
    if (count >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8)) return "image/png";
    if (count >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3)) return "image/jpeg";
    if (count >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4)) return "image/webp";
    if (count >= 6 && (!memcmp(bytes, "GIF87a", 6) || !memcmp(bytes, "GIF89a", 6))) return "image/gif";
    return NULL;
}
/* An integer from `count` bytes, lowest byte first. */
static int32_t number_at(const char *bytes, int count) {
    uint32_t number = 0;
    while (count--) number = number << 8 | (unsigned char)bytes[count];
    return (int32_t)number;
}
/* The size of a GIF file, or of a WebP file of any of its three kinds (RFC 9649). Returns 1, or 0 if it is damaged. */
static int size_at(const char *bytes, size_t count, int32_t *width_px, int32_t *height_px) {
    const int is_gif = count >= 10 && bytes[0] == 'G';
    const int is_extended = count >= 30 && !memcmp(bytes + 12, "VP8X", 4);
    const int is_lossless = count >= 25 && !memcmp(bytes + 12, "VP8L", 4) && bytes[20] == 0x2f;
    const int is_lossy = count >= 30 && !memcmp(bytes + 12, "VP8 ", 4) && !memcmp(bytes + 23, "\x9d\x01\x2a", 3);
    if (is_gif) {
        *width_px = number_at(bytes + 6, 2);
        *height_px = number_at(bytes + 8, 2);
    } else if (is_extended) {
        *width_px = number_at(bytes + 24, 3) + 1;
        *height_px = number_at(bytes + 27, 3) + 1;
    } else if (is_lossless) {
        *width_px = (number_at(bytes + 21, 2) & 0x3fff) + 1;
        *height_px = (number_at(bytes + 22, 3) >> 6 & 0x3fff) + 1;
    } else if (is_lossy) {
        *width_px = number_at(bytes + 26, 2) & 0x3fff;
        *height_px = number_at(bytes + 28, 2) & 0x3fff;
    } else return 0;
    return *width_px > 0 && *height_px > 0;
}
/* Finds the size of a known kind of file. */
static vp_result picture_measure(struct picture *picture, vp_error *error) {
    char text[LINE_BYTES];
    vp_result result = VP_OK;
    if (!strcmp(picture->media_type, "image/png") || !strcmp(picture->media_type, "image/jpeg"))
        result = vp_image_size((const uint8_t *)picture->bytes, picture->byte_count, &picture->width_px,
                               &picture->height_px, error);
    else if (!size_at(picture->bytes, picture->byte_count, &picture->width_px, &picture->height_px))
        return vp_error_set(error, VP_ERR_FORMAT, -1, "", "its header is truncated or damaged");
    if (result != VP_OK || has_image_size(picture->width_px, picture->height_px)) return result;
    snprintf(text, sizeof text, "the header specifies %d x %d pixels, the limit is %d in total", picture->width_px,
             picture->height_px, VP_IMAGE_PIXELS_MAX);
    return vp_error_set(error, VP_ERR_RANGE, -1, "", text);
}
int picture_of_file(const char *path, struct picture *picture, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    char line[LINE_BYTES];
    memset(picture, 0, sizeof *picture);
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &picture->bytes, &picture->byte_count, &error);
    if (result == VP_OK) {
        picture->media_type = media_type_of(picture->bytes, picture->byte_count);
        result = picture->media_type
                     ? picture_measure(picture, &error)
                     : vp_error_set(&error, VP_ERR_UNSUPPORTED, -1, "", "not a PNG, JPEG, WebP or GIF file");
    }
    if (result == VP_OK) return 0;
    picture_free(picture);
    error_line(line, sizeof line, result, &error);
    if (strstr(line, path)) snprintf(reason, capacity, "%s", line);
    else snprintf(reason, capacity, "%.180s: %.320s", path, line);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}
int picture_of_pixels(const uint8_t *rgb, int32_t width_px, int32_t height_px, struct picture *picture) {
    struct text_buffer png = {NULL, 0, 0};
    memset(picture, 0, sizeof *picture);
    if (!add_png(&png, rgb, width_px, height_px)) return 0;
    picture->bytes = png.data;
    picture->byte_count = png.bytes;
    picture->media_type = "image/png";
    picture->width_px = width_px;
    picture->height_px = height_px;
    return 1;
}
int picture_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized,
                    struct picture *picture, char *reason, size_t capacity) {
    const vp_result result = vp_image_resized(image, width_px, height_px, resized);
    if (result == VP_OK) picture_of_pixels(resized->rgb, width_px, height_px, picture);
    else if (result == VP_ERR_MEMORY) snprintf(reason, capacity, "%s", vp_result_text(result));
    else
        snprintf(reason, capacity, "%dx%d: an image must have 1 to %d pixels", width_px, height_px,
                 VP_IMAGE_PIXELS_MAX);
    return result == VP_OK ? 0 : result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE;
}
void picture_free(struct picture *picture) {
    free(picture->bytes);
    memset(picture, 0, sizeof *picture);
}
