/* webp_gif.h: reads WebP and GIF files, and all other pictures by the library. WebP needs libwebp, which is opened at
 * run time; of a GIF, the first frame is read. The result is the size, or upright RGB. */
#ifndef VLMPROF_CLI_WEBP_GIF_H
#define VLMPROF_CLI_WEBP_GIF_H
#include "vlmprof_image.h"

/* Like vp_image_size and vp_image_decode, for PNG, JPEG, WebP and GIF. Alpha is dropped, not blended. */
vp_result any_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error);
vp_result any_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error);

#endif
