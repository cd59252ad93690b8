/* image.c: converts an image file to RGB, and RGB to a PNG file's bytes. The file is read as a whole and decoded by the
 * library. An error becomes one line that names the file. */
#include "model/image.h"

#include "base/console.h"
#include "base/files.h"
#include "model/webp_gif.h"
#include "vlmprof.h"
#include "vlmprof_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* like all memory of the program: if it runs out, the program ends with a message */
#define STBIW_MALLOC(bytes) resize(NULL, (size_t)(bytes), 1)
#define STBIW_REALLOC(memory, bytes) resize(memory, (size_t)(bytes), 1)
#define STBIW_FREE(memory) free(memory)
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

int load_image(const char *path, vp_image *image, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK) result = any_image_decode((const uint8_t *)file, bytes, image, &error);
    free(file);
    if (result == VP_OK) return 0;
    error_line(line, sizeof line, result, &error);
    if (strstr(line, path)) snprintf(reason, capacity, "%s", line);
    else snprintf(reason, capacity, "%.180s: %.320s", path, line);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}
int has_image_size(int64_t width_px, int64_t height_px) {
    return width_px > 0 && height_px > 0 && width_px <= VP_IMAGE_PIXELS_MAX / height_px;
}
static void add_bytes(void *out, void *data, int bytes) { text_add((struct text_buffer *)out, data, (size_t)bytes); }
int add_png(struct text_buffer *out, const uint8_t *rgb, int32_t width_px, int32_t height_px) {
    /* stb counts bytes in int and does not check products for overflow */
    if (!has_image_size(width_px, height_px)) return 0;
    return stbi_write_png_to_func(add_bytes, out, width_px, height_px, 3, rgb, width_px * 3);
}
