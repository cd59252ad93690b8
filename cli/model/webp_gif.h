/* webp_gif.h: picture files beyond PNG and JPEG: WebP by libwebp, which is opened at run time, and GIF's first
 * frame. The bytes of any picture file come in; the size, or upright RGB, comes out. */
#ifndef VLMPROF_CLI_WEBP_GIF_H
#define VLMPROF_CLI_WEBP_GIF_H
#include "vlmprof_image.h"

/* As vp_image_size and vp_image_decode, of PNG, JPEG, WebP and GIF. Alpha is dropped, not blended. */
vp_result any_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error);
vp_result any_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error);

#endif
