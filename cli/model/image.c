/* image.c: converts an image file to RGB, and RGB to a PNG file's bytes. The file is read as a whole and decoded by the
 * library. An error becomes one line that names the file. */
#include "model/image.h"

#include "base/console.h"
#include "base/files.h"
#include "vlmprof_file.h"

#include <dlfcn.h>

/* like all memory of the program: if it runs out, the program ends with a message */
#define STBI_MALLOC(bytes) resize(NULL, (size_t)(bytes), 1)
#define STBI_REALLOC(memory, bytes) resize(memory, (size_t)(bytes), 1)
#define STBI_FREE(memory) free(memory)
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_GIF
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBIW_MALLOC(bytes) resize(NULL, (size_t)(bytes), 1)
#define STBIW_REALLOC(memory, bytes) resize(memory, (size_t)(bytes), 1)
#define STBIW_FREE(memory) free(memory)
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- WebP and GIF, by their libraries */
static int is_webp(const uint8_t *file, size_t bytes) {
    return bytes >= 12 && !memcmp(file, "RIFF", 4) && !memcmp(file + 8, "WEBP", 4);
}
static int is_gif(const uint8_t *file, size_t bytes) { return bytes >= 6 && !memcmp(file, "GIF8", 4); }
static int is_too_large(int32_t width_px, int32_t height_px) {
    return (int64_t)width_px * height_px > VP_IMAGE_PIXELS_MAX;
}
/* Copies RGB into an image that the library owns. */
static vp_result take_pixels(uint8_t *rgb, int32_t width_px, int32_t height_px, vp_image *image) {
    vp_image borrowed = {width_px, height_px, rgb};
    return vp_image_resized(&borrowed, width_px, height_px, image);
}

/* ---- WebP */
struct webp {
    uint8_t *(*decode)(const uint8_t *data, size_t bytes, int *width, int *height);
    void (*release)(void *memory);
};
/* The library, opened when the first WebP file needs it; NULL if it is not installed. */
static const struct webp *webp_library(void) {
    static const char *const names[] = {"libwebp.so.7", "libwebp.so.6"};
    static struct webp webp;
    static int is_tried;
    void *library = NULL, *symbols[2] = {NULL, NULL};
    for (size_t i = 0; !is_tried && !library && i < 2; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    is_tried = 1;
    if (library) {
        symbols[0] = dlsym(library, "WebPDecodeRGB");
        symbols[1] = dlsym(library, "WebPFree");
        /* ISO C has no cast from an object to a function pointer */
        memcpy(&webp.decode, &symbols[0], sizeof webp.decode);
        memcpy(&webp.release, &symbols[1], sizeof webp.release);
    }
    return webp.decode && webp.release ? &webp : NULL;
}
/* An integer from `count` bytes, lowest byte first. */
static uint32_t number_at(const uint8_t *at, int count) {
    uint32_t number = 0;
    while (count--) number = number << 8 | at[count];
    return number;
}
/* The size and orientation of a WebP file of any of its three kinds, from its header (RFC 9649). */
static vp_result webp_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px,
                           int32_t *orientation, vp_error *error) {
    uint32_t width = 0, height = 0;
    *orientation = 1;
    if (bytes >= 30 && !memcmp(file + 12, "VP8X", 4)) {
        width = number_at(file + 24, 3) + 1;
        height = number_at(file + 27, 3) + 1;
        for (size_t at = 12, length; bytes - at >= 8; at += 8 + length + (length & 1)) {
            length = number_at(file + at + 4, 4);
            if (length > bytes - at - 8) break;
            if (memcmp(file + at, "EXIF", 4) != 0) {
                if (bytes - at - 8 - length < 9) break;
                continue;
            }
            const size_t skipped = length >= 6 && !memcmp(file + at + 8, "Exif\0\0", 6) ? 6 : 0;
            *orientation = vp_image_orientation(file + at + 8 + skipped, length - skipped);
            break;
        }
    } else if (bytes >= 25 && !memcmp(file + 12, "VP8L", 4) && file[20] == 0x2f) {
        width = (number_at(file + 21, 2) & 0x3fff) + 1;
        height = (number_at(file + 22, 3) >> 6 & 0x3fff) + 1;
    } else if (bytes >= 30 && !memcmp(file + 12, "VP8 ", 4) && !memcmp(file + 23, "\x9d\x01\x2a", 3)) {
        width = number_at(file + 26, 2) & 0x3fff;
        height = number_at(file + 28, 2) & 0x3fff;
    }
    if (!width || !height) return vp_error_set(error, VP_ERR_FORMAT, -1, "", "truncated or damaged WebP");
    *width_px = (int32_t)width;
    *height_px = (int32_t)height;
    return VP_OK;
}
static vp_result webp_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    const struct webp *webp = webp_library();
    int32_t width_px, height_px, orientation;
    int width = 0, height = 0;
    vp_result result = webp_size(file, bytes, &width_px, &height_px, &orientation, error);
    if (result != VP_OK) return result;
    if (!webp)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "",
                            "a WebP file, but libwebp is not installed (Debian: package libwebp7); install it, or "
                            "convert the file to PNG");
    if (is_too_large(width_px, height_px)) return vp_error_set(error, VP_ERR_RANGE, -1, "", "over 100000000 pixels");
    uint8_t *rgb = webp->decode(file, bytes, &width, &height);
    if (!rgb || width != width_px || height != height_px) {
        if (rgb) webp->release(rgb);
        return vp_error_set(error, VP_ERR_FORMAT, -1, "", "damaged WebP, or an animation; convert it to PNG");
    }
    result = take_pixels(rgb, width, height, image);
    webp->release(rgb);
    return result == VP_OK ? vp_image_turn(image, orientation) : result;
}

/* ---- GIF */
struct gif { uint8_t *at, *end, *background; int32_t left, top, width, height; }; /* background: a colour, or NULL */
static int32_t little16(const uint8_t *at) { return at[0] | at[1] << 8; }

/* Skips the sub-blocks of an extension or a frame. Returns 0 if the file ends within them. */
static int skip_blocks(struct gif *gif) {
    while (gif->at < gif->end && *gif->at) {
        if ((size_t)(gif->end - gif->at) <= *gif->at) return 0;
        gif->at += *gif->at + 1;
    }
    return gif->at++ < gif->end;
}
static void skip_palette(struct gif *gif, uint8_t flags) {
    const ptrdiff_t bytes = flags & 128 ? 3 * (2 << (flags & 7)) : 0;
    gif->at = bytes < gif->end - gif->at ? gif->at + bytes : gif->end;
}
/* Finds the first frame and makes it the whole picture of the file, with all its colours opaque. Returns 0 if the file
 * is damaged or ends within the frame. */
static int open_gif(struct gif *gif, uint8_t *file, size_t bytes) {
    if (bytes < 13) return 0;
    *gif = (struct gif){.at = file + 13, .end = file + bytes};
    if (file[10] & 128 && file[11] < 2 << (file[10] & 7)) gif->background = file + 13 + 3 * file[11];
    skip_palette(gif, file[10]);
    while (gif->end - gif->at > 3 && *gif->at == 0x21) { /* an extension: its label, then blocks */
        if (gif->at[1] == 0xF9) gif->at[3] &= 0xFE;      /* no colour is transparent */
        gif->at += 2;
        if (!skip_blocks(gif)) return 0;
    }
    uint8_t *frame = gif->at;
    if (gif->end - frame < 11 || *frame != 0x2C) return 0;
    gif->left = little16(frame + 1);
    gif->top = little16(frame + 3);
    gif->width = little16(frame + 5);
    gif->height = little16(frame + 7);
    const int is_inside = gif->width > 0 && gif->height > 0 && gif->left + gif->width <= little16(file + 6)
                          && gif->top + gif->height <= little16(file + 8);
    memcpy(file + 6, frame + 5, 4);
    memset(frame + 1, 0, 4);
    gif->at += 10;
    skip_palette(gif, frame[9]);
    gif->at++; /* the size of a code */
    return is_inside && skip_blocks(gif);
}
static vp_result gif_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    static const uint8_t black[3] = {0, 0, 0};
    const int32_t screen_width = bytes < 10 ? 0 : little16(file + 6),
                  screen_height = bytes < 10 ? 0 : little16(file + 8);
    const size_t pixels = (size_t)screen_width * (size_t)screen_height;
    uint8_t *copy = resize(NULL, bytes, 1), *frame = NULL, *rgb;
    struct gif gif = {0};
    int width = 0, height = 0, channels = 0;
    vp_result result = is_too_large(screen_width, screen_height)
                           ? vp_error_set(error, VP_ERR_RANGE, -1, "", "over 100000000 pixels") : VP_OK;
    memcpy(copy, file, bytes);
    if (result == VP_OK && open_gif(&gif, copy, bytes))
        frame = stbi_load_from_memory(copy, (int)bytes, &width, &height, &channels, 3);
    if (result == VP_OK && !frame) result = vp_error_set(error, VP_ERR_FORMAT, -1, "", "truncated or damaged GIF");
    if (result == VP_OK) {
        rgb = resize(NULL, pixels, 3);
        for (size_t i = 0; i < pixels; i++) memcpy(rgb + 3 * i, gif.background ? gif.background : black, 3);
        for (int32_t y = 0; y < height; y++)
            memcpy(rgb + 3 * ((size_t)(gif.top + y) * (size_t)screen_width + (size_t)gif.left),
                   frame + 3 * (size_t)y * (size_t)width, 3 * (size_t)width);
        result = take_pixels(rgb, screen_width, screen_height, image);
        free(rgb);
    }
    FREE_ALL(copy, frame);
    return result;
}

/* Names all formats if the library, which reads only PNG and JPEG, rejects a file that has none of them. */
static vp_result name_formats(vp_result result, const uint8_t *file, size_t bytes, vp_error *error) {
    const int is_known = bytes >= 3 && (!memcmp(file, "\x89PN", 3) || !memcmp(file, "\xFF\xD8\xFF", 3));
    return result != VP_ERR_FORMAT || !bytes || is_known
               ? result
               : vp_error_set(error, result, -1, "", "not a PNG, JPEG, WebP or GIF file");
}
vp_result any_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error) {
    int32_t orientation;
    if (is_webp(file, bytes)) {
        const vp_result result = webp_size(file, bytes, width_px, height_px, &orientation, error);
        const int32_t stored_px = result == VP_OK ? *width_px : 0;
        if (stored_px && orientation >= 5) { *width_px = *height_px; *height_px = stored_px; }
        return result;
    }
    if (!is_gif(file, bytes))
        return name_formats(vp_image_size(file, bytes, width_px, height_px, error), file, bytes, error);
    *width_px = bytes < 10 ? 0 : little16(file + 6);
    *height_px = bytes < 10 ? 0 : little16(file + 8);
    return *width_px && *height_px ? VP_OK : vp_error_set(error, VP_ERR_FORMAT, -1, "", "truncated or damaged GIF");
}
vp_result any_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    if (is_webp(file, bytes)) return webp_decode(file, bytes, image, error);
    if (is_gif(file, bytes)) return gif_decode(file, bytes, image, error);
    return name_formats(vp_image_decode(file, bytes, image, error), file, bytes, error);
}

int image_failed(vp_result result, const vp_error *error, const char *path, char *reason, size_t capacity) {
    char line[LINE_BYTES];
    error_line(line, sizeof line, result, error);
    if (strstr(line, path)) snprintf(reason, capacity, "%s", line);
    else snprintf(reason, capacity, "%.600s: %.320s", path, error->text[0] ? error->text : line);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}
int load_image(const char *path, vp_image *image, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL;
    size_t bytes = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK) result = any_image_decode((const uint8_t *)file, bytes, image, &error);
    free(file);
    return result == VP_OK ? 0 : image_failed(result, &error, path, reason, capacity);
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
