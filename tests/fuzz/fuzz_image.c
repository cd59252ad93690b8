/* fuzz_image.c: any bytes to any_image_size and any_image_decode (PNG, JPEG, GIF, WebP); what decodes must have the size that was announced, bytes that can all be
 * read, and go through vp_preprocess. PNG checksums are put right first, or no change would get past them. Seeds: corpus/image. */
#define VLMPROF_IMAGE_IMPLEMENTATION
#include "model/image.h"
#include "vlmprof.h"
#include "vlmprof_image.h"
#include <stdint.h>
#include <string.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes);

static void mend_checksums(uint8_t *file, size_t bytes) {
    uint32_t table[256];
    size_t at = 8;
    vp_impl_crc_table(table);
    while (bytes >= 20 && bytes - at >= 12) {
        size_t length = vp_impl_be32(file + at);
        if (length > bytes - at - 12) return;
        uint32_t crc = vp_impl_crc(table, file + at + 4, length + 4);
        at += length + 12;
        file[at - 4] = (uint8_t)(crc >> 24);
        file[at - 3] = (uint8_t)(crc >> 16);
        file[at - 2] = (uint8_t)(crc >> 8);
        file[at - 1] = (uint8_t)crc;
    }
}

static void preprocess(const vp_image *image, int fill) {
    vp_geometry geometry = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_layout layout;
    geometry.crop_px = 112; /* small, to see more inputs a second */
    geometry.margin_left_patches = geometry.margin_right_patches = 2;
    options.fit = fill ? VP_FIT_FILL : VP_FIT_PAD;
    options.max_crops = 4;
    if (vp_layout_compute(&geometry, &options, image->width_px, image->height_px, &layout, NULL) != VP_OK) return;
    size_t scratch_bytes = vp_preprocess_scratch_bytes(&geometry, &layout);
    if (!scratch_bytes) abort();
    void *scratch = malloc(scratch_bytes);
    float *pixels = (float *)malloc(vp_preprocess_pixel_count(&geometry, &layout) * sizeof(float));
    float *masks = (float *)malloc((size_t)layout.views * 64 * sizeof(float));
    if (scratch && pixels && masks && vp_preprocess(&geometry, &layout, image->rgb, pixels, masks, scratch, scratch_bytes) != VP_OK) abort();
    free(scratch);
    free(pixels);
    free(masks);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes) {
    uint8_t *file = (uint8_t *)malloc(bytes ? bytes : 1);
    int32_t width = 0, height = 0;
    vp_image image = {0, 0, NULL};
    vp_error error;
    unsigned sum = 0;
    if (!file) return 0;
    if (bytes) memcpy(file, input, bytes);
    if (bytes > 8 && file[0] == 0x89) mend_checksums(file, bytes);
    vp_result size_result = any_image_size(file, bytes, &width, &height, &error);
    if (size_result == VP_OK && (int64_t)width * height > 1000000) { /* right, but slow */
        free(file);
        return 0;
    }
    vp_result result = any_image_decode(file, bytes, &image, &error);
    if (result == VP_OK) {
        if (size_result != VP_OK || image.width_px != width || image.height_px != height) abort();
        for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++) sum += image.rgb[i];
        preprocess(&image, (int)(sum & 1));
    } else if (image.rgb || error.code != result || !error.text[0]) {
        abort();
    }
    vp_image_free(&image);
    free(file);
    return 0;
}
