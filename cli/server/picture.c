/* picture.c: an image in the form sent to a server: the bytes of a file. */
#include "server/picture.h"

#include "base/console.h"
#include "base/files.h"
#include "model/image.h"
#include "vlmprof_file.h"

const char *media_type_of(const char *bytes, size_t count) {
    if (count >= 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8)) return "image/png";
    if (count >= 3 && !memcmp(bytes, "\xff\xd8\xff", 3)) return "image/jpeg";
    if (count >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4)) return "image/webp";
    if (count >= 6 && (!memcmp(bytes, "GIF87a", 6) || !memcmp(bytes, "GIF89a", 6))) return "image/gif";
    return NULL;
}
/* Finds the size of a known kind of file. */
static vp_result picture_measure(struct picture *picture, vp_error *error) {
    char text[LINE_BYTES];
    const vp_result result = any_image_size((const uint8_t *)picture->bytes, picture->byte_count, &picture->width_px,
                                            &picture->height_px, error);
    if (result != VP_OK || has_image_size(picture->width_px, picture->height_px)) return result;
    snprintf(text, sizeof text, "the header specifies %d x %d pixels; the limit is %d in total", picture->width_px,
             picture->height_px, VP_IMAGE_PIXELS_MAX);
    return vp_error_set(error, VP_ERR_RANGE, -1, "", text);
}
int picture_of_file(const char *path, struct picture *picture, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
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
    return image_failed(result, &error, path, reason, capacity);
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
