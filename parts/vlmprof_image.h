/* vlmprof_image.h - v0.2.0 - image file -> upright RGB -> crops -> patches - MIT licence
 *
 * Do this:
 *     static uint8_t file[1 << 16];
 *     FILE *in = fopen("samples/cat.jpg", "rb");
 *     size_t bytes = in ? fread(file, 1, sizeof file, in) : 0;
 *     vp_image image;
 *     if (vp_image_decode(file, bytes, &image, NULL) != VP_OK) return 1;
 *     printf("%d x %d\n", (int)image.width_px, (int)image.height_px);
 *     vp_image_free(&image);
 *     fclose(in);
 * It prints 451 x 300. image.rgb contains the upright image, three bytes per pixel.
 *
 * PNG and JPEG files become upright 8-bit RGB; the error for any other format names that format. vp_preprocess turns
 * RGB into the input of the vision transformer. Resizing is antialiased bilinear, as in torch, and covers only the
 * parts that a view shows.
 *
 * stb_image decodes the pixels; this header compiles a private, static copy of it. Switches, defined before the
 * include:
 *   VLMPROF_STB_IMAGE     the header to copy, for instance "stb_image.h"; default <stb/stb_image.h> (Debian, Ubuntu:
 *                         package libstb-dev)
 *   VLMPROF_STB_EXTERNAL  no copy: the program implements stb_image itself (STB_IMAGE_IMPLEMENTATION), in any of its
 *                         files. This is assumed if stb_image.h was included before this header's implementation.
 *                         stb_image must decode PNG and JPEG with its initial settings. Its own limits, not ours, then
 *                         bound its memory and the size of inflated PNG data.
 *   VLMPROF_NO_STB        no stb_image: vp_image_size, _decode and _resized return VP_ERR_UNSUPPORTED; preprocessing
 *                         still works
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_IMAGE_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_IMAGE_H
#define VLMPROF_IMAGE_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

enum { VP_IMAGE_PIXELS_MAX = 100000000 }; /* limit of a decoded image, and of all views of one image together */

typedef struct vp_image {
    int32_t width_px, height_px; /* upright */
    /* [height, width, 3]; the library allocates it: release it with vp_image_free, never with free() */
    uint8_t *rgb;
} vp_image;

/* Upright size of an image file, read only from its headers.
 * in:      file    uint8 [bytes]  PNG or JPEG. The start of a file is enough if it contains the frame header and any
 *                  EXIF block
 * out:     width_px, height_px    on VP_OK
 * returns: VP_OK; VP_ERR_FORMAT: not an image, or headers truncated or damaged; VP_ERR_UNSUPPORTED: another format, or
 *          an unsupported kind of PNG or JPEG (CgBI; CMYK, arithmetic, lossless, 12-bit); VP_ERR_RANGE: a NULL
 * rule:    EXIF orientations 5..8 swap width and height; no limit on the size
 * threads: reentrant */
VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px,
                               vp_error *error);
/* Decodes an image file into upright RGB.
 * in:      file    uint8 [bytes]  the whole PNG or JPEG file; bytes after its end mark are ignored
 * out:     image   on VP_OK
 * returns: VP_OK; VP_ERR_FORMAT: not an image, truncated, damaged (PNG checksums are verified), or with more or less
 *          data than its header promises; VP_ERR_UNSUPPORTED: as vp_image_size, and JPEGs without tables or with over
 *          500 scans, and files over 2 GiB; VP_ERR_RANGE: a NULL, more than VP_IMAGE_PIXELS_MAX pixels, or a side over
 *          2^24; VP_ERR_MEMORY
 * rule:    grey is copied to three channels; 1, 2 and 4 bits are stretched to 0..255. Palettes are looked up (black
 *          beyond their end); alpha and colour keys are dropped, not blended. 16-bit RGB keeps the high byte; 16-bit
 *          grey saturates, min(v, 255), as in the reference's image library
 * source:  stb_image decodes PNG and JPEG data, with zlib output bounded by the size in the header; containers and EXIF
 *          (CIPA DC-008) are parsed here
 * numeric: PNG exact; JPEG differs from libjpeg by up to 3 levels. Only 4:2:2 has more, in one column: the left one of
 *          the last pair (the last column of an odd width), whose chroma stb_image weights 1:3 instead of 3:1; up to 27
 *          in photos, 151 in noise
 * memory:  3 bytes per pixel in the result; up to about 24 per pixel while decoding
 * threads: reentrant */
VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error);
/* Releases an image and clears the struct; NULL and an empty image are allowed. */
VP_API void vp_image_free(vp_image *image);
/* For other formats: the orientation, 1 to 8, in EXIF data (an embedded TIFF file; 1 if it has none or is damaged), and
 * turning a stored image upright. VP_OK, or VP_ERR_MEMORY with the image unchanged. */
VP_API int32_t vp_image_orientation(const uint8_t *exif, size_t bytes);
VP_API vp_result vp_image_turn(vp_image *image, int32_t orientation);

/* ------------------------------------------------------------------------------------------------------- preprocess */
/* Scratch size in bytes that vp_preprocess needs for this layout, at any alignment; 0 for a geometry or layout that it
 * rejects.
 * memory:  the size grows with the canvas width and a band of source rows, not with the resized image: 1x5000 filled to
 *          336x3472 needs 16 kB, 1200x800 with 12 crops 78 kB, 10000x10000 0.5 MB */
VP_API size_t vp_preprocess_scratch_bytes(const vp_geometry *geometry, const vp_layout *layout);
/* Number of floats in the pixel output, views * crop_px * crop_px * 3; 0 for a geometry or layout that vp_preprocess
 * rejects. */
VP_API size_t vp_preprocess_pixel_count(const vp_geometry *geometry, const vp_layout *layout);
/* Resizes, normalises and cuts an image into the patches of all views.
 * in:      layout       as vp_layout_compute made it for this image and geometry
 *          rgb          uint8 [height, width, 3]  the upright image
 *          scratch      scratch_bytes, at least vp_preprocess_scratch_bytes; any alignment
 * out:     pixels       f32 [views, patches, patch_px * patch_px * 3]  global view first, then crops row by row;
 *                       patches row by row; inside a patch (y, x, channel)
 *          image_masks  f32 [views, patches] share of each patch that is image, not padding. Row i is for crop i, not
 *                       counting the global view; the last row is -1. The model was trained with this shift
 * returns: VP_OK; VP_ERR_RANGE: a NULL, a bad geometry, sides or views < 1, or over VP_IMAGE_PIXELS_MAX pixels in the
 *          image or in all views; VP_ERR_MISMATCH: the layout is inconsistent; VP_ERR_CAPACITY: scratch
 *          is too small
 * rule:    u8 / 255; horizontal pass, then vertical pass, skipping an axis of unchanged size; clip to 0..1; VP_FIT_PAD:
 *          centre on a canvas of 0, VP_FIT_FILL: cut out the centre; (v - mean) / std. Global view and crops are both
 *          made from the original image
 * source:  ChulanZhang/molmo_hf preprocessing_molmo.py (pad) and multimodal_preprocessor.py (fill); torch 2.5
 *          upsample_bilinear2d_aa
 * numeric: float32 throughout, also for weights and positions. Products are accumulated by fused multiply-add in
 *          ascending order, so results are bit-identical with and without AVX2
 * memory:  only scratch
 * threads: reentrant */
VP_API vp_result vp_preprocess(const vp_geometry *geometry, const vp_layout *layout, const uint8_t *rgb, float *pixels,
                               float *image_masks, void *scratch, size_t scratch_bytes);
/* Resizes a whole image to any size.
 * in:      rgb      uint8 [height, width, 3]
 *          sizes    from 1 x 1 to VP_IMAGE_PIXELS_MAX pixels
 * out:     resized  uint8 [new_height, new_width, 3]; on success only
 * returns: VP_OK; VP_ERR_RANGE: a NULL or a size; VP_ERR_MEMORY
 * rule:    the weights of vp_preprocess, vertical axis first; the result is rounded to the nearest level
 * numeric: float32; equals vp_preprocess, which starts with the horizontal axis, to within half a level plus rounding
 * memory:  one row of floats, and the weights of all columns
 * threads: reentrant */
VP_API vp_result vp_image_resize(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                 int32_t new_width_px, int32_t new_height_px);
/* The same, as a new image; at the same size it is a copy.
 * out:     resized  on success; release with vp_image_free
 * returns: as vp_image_resize */
VP_API vp_result vp_image_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized);

VP_EXTERN_C_END
#endif /* VLMPROF_IMAGE_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_IMAGE_IMPLEMENTATION)) \
    && !defined(VLMPROF_IMAGE_IMPLEMENTATION_DONE)
#define VLMPROF_IMAGE_IMPLEMENTATION_DONE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

/* ---------------------------------------------------------------------------------------------------------- preprocess
 * No part of the image is resized unless a view shows it. Source rows are read once, from top to bottom. The horizontal
 * pass resizes each to the window's width. A ring buffer keeps the rows that one output row of the vertical pass needs.
 * Every finished canvas row is cut into the patches of all views that show it. The canvas and the resized image never
 * exist as a whole. */

/* Bit-exact results need fused multiply-add. Without -mfma, fmaf() is a library call per value. So x86 has a second
 * version of the three inner loops, chosen at run time, with the same results. Elsewhere fmaf() is one instruction. GCC
 * for Windows does not align the stack for these vectors (GCC bug 54412). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(_WIN32)
#define VP_IMPL_PREPROCESS_AVX2
    /* vector extensions instead of immintrin.h, which would take a quarter of this header's compile time. Unaligned,
 * because they can be anywhere within a row */
    typedef float vp_impl_f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vp_impl_f4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t vp_impl_i8 __attribute__((vector_size(32)));
#ifdef __clang__
typedef uint8_t vp_impl_u8 __attribute__((vector_size(8), aligned(1), may_alias));
#else
typedef char vp_impl_c16 __attribute__((vector_size(16)));
typedef int64_t vp_impl_l2 __attribute__((vector_size(16)));
typedef int64_t vp_impl_l1 __attribute__((aligned(1), may_alias));
#endif
#if defined(__clang__) && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma)
#define VP_IMPL_FMA8 __builtin_elementwise_fma
#define VP_IMPL_FMA4 __builtin_elementwise_fma
#endif
#endif
#ifndef VP_IMPL_FMA8
#define VP_IMPL_FMA8 __builtin_ia32_vfmaddps256
#define VP_IMPL_FMA4 __builtin_ia32_vfmaddps
#endif
#endif

enum { VP_IMPL_LANES = 24 }; /* floats per blend step: whole pixels and whole vectors */

/* one direction of a resize: `count` pixels of the resized image, from `begin`, land on the canvas at `at` */
typedef struct vp_impl_axis {
    int32_t source, resized, begin, count, at, canvas;
    int32_t taps;       /* most source pixels per output pixel */
    int32_t first, end; /* source pixels that the window needs */
} vp_impl_axis;

typedef struct vp_impl_resizer {
    vp_impl_axis x, y;
    size_t stride;      /* floats per ring row */
    int32_t *x_first;   /* [x.count] leftmost source pixel, relative to x.first */
    float *x_weights;   /* [x.count, x.taps] */
    float *line;        /* one source row as float, followed by x.taps black pixels */
    float *ring;        /* [y.taps, stride]  rows after the horizontal pass */
    const float **rows; /* [y.taps] ring rows that one output row needs */
    float *y_weights;   /* [y.taps] */
    float *canvas;      /* one finished row */
    float mean[VP_IMPL_LANES], std[VP_IMPL_LANES], padding[VP_IMPL_LANES];
    int wide; /* 1: use the vector version of the loops */
} vp_impl_resizer;

/* The product rounded to float32, even if the compiler could fuse it with another operation. */
static inline float vp_impl_product(float left, float right) {
    volatile float product = left * right;
    return product;
}

/* Finds the source pixels of one pixel of the resized axis and, if weights is not NULL, their weights; returns their
 * number. All steps are in float32 and in this order, because the reference's positions are float32. */
static int32_t vp_impl_axis_at(const vp_impl_axis *axis, int32_t pixel, int32_t *first, float *weights) {
    float scale = (float)axis->source / (float)axis->resized;
    float support = scale >= 1.0f ? scale : 1.0f, inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
    float centre = vp_impl_product(scale, (float)pixel + 0.5f), sum = 0.0f;
    int32_t low = (int32_t)(centre - support + 0.5f), high = (int32_t)(centre + support + 0.5f), j;
    if (axis->source == axis->resized) {
        *first = pixel;
        if (weights) weights[0] = 1.0f;
        return 1;
    }
    if (low < 0) low = 0;
    if (high > axis->source) high = axis->source;
    /* beyond 2^23 pixels, float32 positions may round past the end; the last pixel is then used */
    if (low > axis->source - 1) low = axis->source - 1;
    if (high <= low) high = low + 1;
    *first = low;
    if (!weights) return high - low;
    for (j = 0; j < high - low; j++) {
        float weight = 1.0f - fabsf(vp_impl_product((float)(j + low) - centre + 0.5f, inverse));
        weights[j] = weight > 0.0f ? weight : 0.0f;
        sum += weights[j];
    }
    if (!(sum > 0.0f)) weights[0] = sum = 1.0f;
    for (j = 0; j < high - low; j++) weights[j] /= sum;
    return high - low;
}

/* Fills an axis. Returns 0 if the layout is inconsistent. */
static int vp_impl_axis_set(vp_impl_axis *axis, vp_fit fit, int32_t source, int32_t resized, int32_t offset,
                            int32_t canvas) {
    int32_t i, first, taps;
    if (source < 1 || resized < 1 || canvas < 1 || offset < 0) return 0;
    axis->source = source;
    axis->resized = resized;
    axis->canvas = canvas;
    if (fit == VP_FIT_PAD) {
        if (resized > canvas || offset > canvas - resized) return 0;
        axis->begin = 0;
        axis->count = resized;
        axis->at = offset;
    } else {
        if (resized < canvas || offset > resized - canvas) return 0;
        axis->begin = offset;
        axis->count = canvas;
        axis->at = 0;
    }
    axis->taps = 0;
    vp_impl_axis_at(axis, axis->begin, &axis->first, NULL);
    for (i = 0; i < axis->count; i++) {
        taps = vp_impl_axis_at(axis, axis->begin + i, &first, NULL);
        if (taps > axis->taps) axis->taps = taps;
        axis->end = first + taps;
    }
    return 1;
}

/* Checks the layout and sets both axes of the global view (which = 0) or of the crops (which = 1). */
static vp_result vp_impl_resizer_set(const vp_geometry *geometry, const vp_layout *layout, int which,
                                     vp_impl_resizer *resizer) {
    int64_t side = geometry->crop_px, window = vp_geometry_window_px(geometry), views = layout->views, pixels;
    int32_t width = which ? layout->canvas_width_px : geometry->crop_px,
            height = which ? layout->canvas_height_px : geometry->crop_px;
    int good;
    if (layout->fit != VP_FIT_PAD && layout->fit != VP_FIT_FILL) return VP_ERR_RANGE;
    if (layout->width_px < 1 || layout->height_px < 1) return VP_ERR_RANGE;
    if ((int64_t)layout->width_px * layout->height_px > VP_IMAGE_PIXELS_MAX) return VP_ERR_RANGE;
    if (layout->tiling.rows < 1 || layout->tiling.cols < 1 || views < 2 || window < 1) return VP_ERR_RANGE;
    if ((int64_t)layout->tiling.rows * layout->tiling.cols != views - 1) return VP_ERR_MISMATCH;
    if (layout->canvas_width_px != layout->tiling.cols * window + (side - window)) return VP_ERR_MISMATCH;
    if (layout->canvas_height_px != layout->tiling.rows * window + (side - window)) return VP_ERR_MISMATCH;
    pixels = side * side; /* side < 2^31 */
    if (pixels > VP_IMAGE_PIXELS_MAX || views > VP_IMAGE_PIXELS_MAX / pixels) return VP_ERR_RANGE;
    if (which)
        good = vp_impl_axis_set(&resizer->x, layout->fit, layout->width_px, layout->resized_width_px,
                                layout->offset_left_px, width)
               && vp_impl_axis_set(&resizer->y, layout->fit, layout->height_px, layout->resized_height_px,
                                   layout->offset_top_px, height);
    else
        good = vp_impl_axis_set(&resizer->x, layout->fit, layout->width_px, layout->global_resized_width_px,
                                layout->global_offset_left_px, width)
               && vp_impl_axis_set(&resizer->y, layout->fit, layout->height_px, layout->global_resized_height_px,
                                   layout->global_offset_top_px, height);
    if (!good) return VP_ERR_MISMATCH;
    /* one pixel more than the window, for the four-float stores of the horizontal pass, rounded up to whole blend
     * steps */
    resizer->stride = ((size_t)resizer->x.count * 3 + 3 + VP_IMPL_LANES - 1) / VP_IMPL_LANES * VP_IMPL_LANES;
    return VP_OK;
}

/* Takes the buffers from the arena or, if arena is NULL, adds up their sizes. Returns 0 if they do not fit or
 * overflow. */
static int vp_impl_resizer_take(vp_impl_resizer *resizer, vp_arena *arena, size_t *bytes) {
    struct { size_t count, element_bytes; } want[7];
    void *got[7];
    size_t columns = (size_t)(resizer->x.end - resizer->x.first), x_taps = (size_t)resizer->x.taps,
           y_taps = (size_t)resizer->y.taps, size;
    int i;
    if (!vp_size_multiply((size_t)resizer->x.count, x_taps, &want[1].count)) return 0;
    if (!vp_size_multiply(columns + x_taps + 2, 3, &want[2].count)) return 0;
    if (!vp_size_multiply(y_taps, resizer->stride, &want[3].count)) return 0;
    want[0].count = (size_t)resizer->x.count;
    want[4].count = want[5].count = y_taps;
    want[6].count = (size_t)resizer->x.canvas * 3 + VP_IMPL_LANES;
    for (i = 0; i < 7; i++) want[i].element_bytes = i == 0 ? sizeof(int32_t) : i == 4 ? sizeof(float *) : sizeof(float);
    for (i = 0; i < 7; i++) {
        if (arena) {
            got[i] = vp_arena_take(arena, want[i].count, want[i].element_bytes);
            if (!got[i]) return 0;
        } else if (!vp_size_multiply(want[i].count, want[i].element_bytes, &size) || !vp_size_add(size, 63, &size)
                   || !vp_size_add(*bytes, size, bytes)) {
            return 0;
        }
    }
    if (!arena) return 1;
    resizer->x_first = (int32_t *)got[0];
    resizer->x_weights = (float *)got[1];
    resizer->line = (float *)got[2];
    resizer->ring = (float *)got[3];
    resizer->rows = (const float **)got[4];
    resizer->y_weights = (float *)got[5];
    resizer->canvas = (float *)got[6];
    return 1;
}

/* The three inner loops in plain C. bytes -> 0..1: divides by 255, because a product with 1/255 rounds differently. */
static void vp_impl_row_to_float(const uint8_t *bytes, size_t count, float *out) {
    for (size_t i = 0; i < count; i++) out[i] = (float)bytes[i] / 255.0f;
}

/* Horizontal pass: out [count, 3]. All pixels use the same number of taps; extra weights of 0 do not change the
 * result. */
static void vp_impl_row_filter(const float *line, const int32_t *first, const float *weights, int32_t taps,
                               int32_t count, float *out) {
    for (int32_t x = 0; x < count; x++, weights += taps, out += 3) {
        const float *pixel = line + (size_t)first[x] * 3;
        float red = pixel[0] * weights[0], green = pixel[1] * weights[0], blue = pixel[2] * weights[0];
        for (int32_t j = 1; j < taps; j++) {
            red = fmaf(pixel[3 * j], weights[j], red);
            green = fmaf(pixel[3 * j + 1], weights[j], green);
            blue = fmaf(pixel[3 * j + 2], weights[j], blue);
        }
        out[0] = red;
        out[1] = green;
        out[2] = blue;
    }
}

/* Vertical pass; clips to 0..1 and normalises. `floats` is a multiple of VP_IMPL_LANES. */
static void vp_impl_row_blend(const vp_impl_resizer *resizer, int32_t taps, size_t floats, float *out) {
    for (size_t i = 0; i < floats; i += VP_IMPL_LANES) {
        for (size_t lane = 0; lane < VP_IMPL_LANES; lane++) {
            float value = resizer->rows[0][i + lane] * resizer->y_weights[0];
            for (int32_t j = 1; j < taps; j++) value = fmaf(resizer->rows[j][i + lane], resizer->y_weights[j], value);
            value = value > 0.0f ? value : 0.0f;
            value = value < 1.0f ? value : 1.0f;
            out[i + lane] = (value - resizer->mean[lane]) / resizer->std[lane];
        }
    }
}

#ifdef VP_IMPL_PREPROCESS_AVX2
__attribute__((target("avx2,fma"))) static void vp_impl_row_to_float_avx2(const uint8_t *bytes, size_t count,
                                                                          float *out) {
    size_t i;
    for (i = 0; i + 8 <= count; i += 8) {
#ifdef __clang__
        vp_impl_i8 wide = __builtin_convertvector(*(const vp_impl_u8 *)(bytes + i), vp_impl_i8);
#else /* GCC 12 would widen the bytes one by one */
        vp_impl_l2 eight = {*(const vp_impl_l1 *)(bytes + i), 0};
        vp_impl_i8 wide = (vp_impl_i8)__builtin_ia32_pmovzxbd256((vp_impl_c16)eight);
#endif
        *(vp_impl_f8 *)(out + i) = __builtin_convertvector(wide, vp_impl_f8) / 255.0f;
    }
    for (; i < count; i++) out[i] = (float)bytes[i] / 255.0f;
}

/* One pixel per vector. Its fourth lane belongs to the next pixel; the next store overwrites it. Three pixels are
 * processed at a time, because each is one chain of dependent additions. */
__attribute__((target("avx2,fma"))) static void vp_impl_row_filter_avx2(const float *line, const int32_t *first,
                                                                        const float *weights, int32_t taps,
                                                                        int32_t count, float *out) {
    const vp_impl_f4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    const float *w0 = weights, *w1, *w2;
    int32_t x, j;
    for (x = 0; x + 3 <= count; x += 3, w0 = w2 + taps, out += 9) {
        const float *p0 = line + (size_t)first[x] * 3, *p1 = line + (size_t)first[x + 1] * 3,
                    *p2 = line + (size_t)first[x + 2] * 3;
        vp_impl_f4 sum0 = *(const vp_impl_f4 *)p0 * w0[0], sum1, sum2;
        w1 = w0 + taps;
        w2 = w1 + taps;
        sum1 = *(const vp_impl_f4 *)p1 * w1[0];
        sum2 = *(const vp_impl_f4 *)p2 * w2[0];
        for (j = 1; j < taps; j++) {
            sum0 = VP_IMPL_FMA4(*(const vp_impl_f4 *)(p0 + 3 * j), w0[j] - zero, sum0);
            sum1 = VP_IMPL_FMA4(*(const vp_impl_f4 *)(p1 + 3 * j), w1[j] - zero, sum1);
            sum2 = VP_IMPL_FMA4(*(const vp_impl_f4 *)(p2 + 3 * j), w2[j] - zero, sum2);
        }
        *(vp_impl_f4 *)out = sum0;
        *(vp_impl_f4 *)(out + 3) = sum1;
        *(vp_impl_f4 *)(out + 6) = sum2;
    }
    for (; x < count; x++, w0 += taps, out += 3) {
        const float *pixel = line + (size_t)first[x] * 3;
        vp_impl_f4 sum = *(const vp_impl_f4 *)pixel * w0[0];
        for (j = 1; j < taps; j++) sum = VP_IMPL_FMA4(*(const vp_impl_f4 *)(pixel + 3 * j), w0[j] - zero, sum);
        *(vp_impl_f4 *)out = sum;
    }
}

__attribute__((target("avx2,fma"))) static void vp_impl_row_blend_avx2(const vp_impl_resizer *resizer, int32_t taps,
                                                                       size_t floats, float *out) {
    const vp_impl_f8 zero = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}, one = zero + 1.0f;
    for (size_t i = 0; i < floats; i += VP_IMPL_LANES) {
        const float *row = resizer->rows[0] + i;
        vp_impl_f8 weight = resizer->y_weights[0] - zero, sum[3];
        for (int k = 0; k < 3; k++) sum[k] = *(const vp_impl_f8 *)(row + 8 * k) * weight;
        for (int32_t j = 1; j < taps; j++) {
            row = resizer->rows[j] + i;
            weight = resizer->y_weights[j] - zero;
            for (int k = 0; k < 3; k++) sum[k] = VP_IMPL_FMA8(*(const vp_impl_f8 *)(row + 8 * k), weight, sum[k]);
        }
        for (int k = 0; k < 3; k++) { /* clipped to 0..1 by masks */
            sum[k] = (vp_impl_f8)((vp_impl_i8)sum[k] & (vp_impl_i8)(sum[k] > zero));
            vp_impl_i8 below_one = (vp_impl_i8)(sum[k] < one);
            sum[k] = (vp_impl_f8)(((vp_impl_i8)sum[k] & below_one) | ((vp_impl_i8)one & ~below_one));
            *(vp_impl_f8 *)(out + i + 8 * k) =
                (sum[k] - *(const vp_impl_f8 *)(resizer->mean + 8 * k)) / *(const vp_impl_f8 *)(resizer->std + 8 * k);
        }
    }
}
#endif /* VP_IMPL_PREPROCESS_AVX2 */

/* Horizontal pass of one source row into its slot of the ring. */
static void vp_impl_resizer_push(vp_impl_resizer *resizer, const uint8_t *rgb, int32_t source_row) {
    const uint8_t *bytes = rgb + ((size_t)source_row * (size_t)resizer->x.source + (size_t)resizer->x.first) * 3;
    float *out = resizer->ring + (size_t)(source_row % resizer->y.taps) * resizer->stride;
    size_t count = (size_t)(resizer->x.end - resizer->x.first) * 3, filled = (size_t)resizer->x.count * 3;
#ifdef VP_IMPL_PREPROCESS_AVX2
    if (resizer->wide) {
        vp_impl_row_to_float_avx2(bytes, count, resizer->line);
        vp_impl_row_filter_avx2(resizer->line, resizer->x_first, resizer->x_weights, resizer->x.taps, resizer->x.count,
                                out);
    } else
#endif
    {
        vp_impl_row_to_float(bytes, count, resizer->line);
        vp_impl_row_filter(resizer->line, resizer->x_first, resizer->x_weights, resizer->x.taps, resizer->x.count, out);
    }
    memset(out + filled, 0, (resizer->stride - filled) * sizeof(float)); /* the last blend step reads past the end */
}

/* Fills canvas pixels [begin, end) of the row with the normalised black of the padding. */
static void vp_impl_resizer_pad(vp_impl_resizer *resizer, int32_t begin, int32_t end) {
    size_t i, floats = (size_t)end * 3;
    for (i = (size_t)begin * 3; i < floats; i++) resizer->canvas[i] = resizer->padding[i % 3];
}

/* Cuts one canvas row into the patches of all crops that show it. Crops overlap, so a pixel belongs to up to four of
 * them. */
static void vp_impl_row_scatter(const vp_geometry *geometry, const vp_impl_resizer *resizer, int32_t row, int32_t rows,
                                int32_t cols, float *pixels) {
    size_t side = (size_t)geometry->crop_px, patch = (size_t)geometry->patch_px,
           window = (size_t)vp_geometry_window_px(geometry);
    size_t per_side = side / patch, values = patch * patch * 3, i, j, k;
    for (i = 0; i < (size_t)rows; i++) {
        size_t inside = (size_t)row - i * window;
        if ((size_t)row < i * window || inside >= side) continue;
        for (j = 0; j < (size_t)cols; j++) {
            const float *from = resizer->canvas + j * window * 3;
            float *to = pixels + ((i * (size_t)cols + j) * per_side + inside / patch) * per_side * values
                        + inside % patch * patch * 3;
            for (k = 0; k < per_side; k++) memcpy(to + k * values, from + k * patch * 3, patch * 3 * sizeof(float));
        }
    }
}

/* Resizes, normalises and cuts the image into the pixels of `rows` x `cols` crops. */
static void vp_impl_resizer_run(const vp_geometry *geometry, vp_impl_resizer *resizer, const uint8_t *rgb, int32_t rows,
                                int32_t cols, float *pixels) {
    size_t floats = ((size_t)resizer->x.count * 3 + VP_IMPL_LANES - 1) / VP_IMPL_LANES * VP_IMPL_LANES;
    int32_t next = resizer->y.first, x, y, i, j, first, taps;
    memset(resizer->line, 0,
           ((size_t)(resizer->x.end - resizer->x.first) + (size_t)resizer->x.taps + 2) * 3 * sizeof(float));
    for (x = 0; x < resizer->x.count; x++) {
        float *weights = resizer->x_weights + (size_t)x * (size_t)resizer->x.taps;
        taps = vp_impl_axis_at(&resizer->x, resizer->x.begin + x, &first, weights);
        resizer->x_first[x] = first - resizer->x.first;
        for (j = taps; j < resizer->x.taps; j++) weights[j] = 0.0f;
    }
    for (i = 0; i < VP_IMPL_LANES; i++) {
        resizer->mean[i] = geometry->mean[i % 3];
        resizer->std[i] = geometry->std[i % 3];
        resizer->padding[i] = (0.0f - resizer->mean[i]) / resizer->std[i];
    }
    for (y = 0; y < resizer->y.canvas; y++) {
        i = y - resizer->y.at;
        if (i < 0 || i >= resizer->y.count) {
            vp_impl_resizer_pad(resizer, 0, resizer->x.canvas);
        } else {
            taps = vp_impl_axis_at(&resizer->y, resizer->y.begin + i, &first, resizer->y_weights);
            while (next < first + taps) vp_impl_resizer_push(resizer, rgb, next++);
            for (j = 0; j < taps; j++)
                resizer->rows[j] = resizer->ring + (size_t)((first + j) % resizer->y.taps) * resizer->stride;
            vp_impl_resizer_pad(resizer, 0, resizer->x.at);
#ifdef VP_IMPL_PREPROCESS_AVX2
            if (resizer->wide)
                vp_impl_row_blend_avx2(resizer, taps, floats, resizer->canvas + (size_t)resizer->x.at * 3);
            else
#endif
                vp_impl_row_blend(resizer, taps, floats, resizer->canvas + (size_t)resizer->x.at * 3);
            vp_impl_resizer_pad(resizer, resizer->x.at + resizer->x.count, resizer->x.canvas);
        }
        vp_impl_row_scatter(geometry, resizer, y, rows, cols, pixels);
    }
}

/* number of pixels of [begin, begin + length) inside the axis' window */
static int32_t vp_impl_axis_overlap(const vp_impl_axis *axis, int32_t begin, int32_t length) {
    int32_t low = begin > axis->at ? begin : axis->at, end = begin + length;
    if (end > axis->at + axis->count) end = axis->at + axis->count;
    return end > low ? end - low : 0;
}

/* Mean of the canvas mask (1 image, 0 padding) per patch. */
static void vp_impl_masks(const vp_geometry *geometry, const vp_impl_resizer *resizer, int32_t rows, int32_t cols,
                          float *masks) {
    int32_t per_side = vp_geometry_patches_per_side(geometry), patch = geometry->patch_px,
            window = vp_geometry_window_px(geometry);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++)
            for (int32_t y = 0; y < per_side; y++)
                for (int32_t x = 0; x < per_side; x++) {
                    int32_t high = vp_impl_axis_overlap(&resizer->y, i * window + y * patch, patch);
                    int32_t wide = vp_impl_axis_overlap(&resizer->x, j * window + x * patch, patch);
                    *masks++ = (float)(high * wide) / (float)(patch * patch);
                }
    for (int32_t i = 0; i < per_side * per_side; i++) *masks++ = -1.0f;
}

/* Sets resizers[0] (global view) and [1] (crops), and computes the larger one's scratch size. */
static vp_result vp_impl_preprocess_plan(const vp_geometry *geometry, const vp_layout *layout,
                                         vp_impl_resizer *resizers, size_t *scratch_bytes) {
    size_t bytes[2] = {63, 63};
    if (!geometry || !layout) return VP_ERR_RANGE;
    vp_result result = vp_geometry_check(geometry);
    for (int which = 0; which < 2 && result == VP_OK; which++) {
        result = vp_impl_resizer_set(geometry, layout, which, &resizers[which]);
        if (result == VP_OK && !vp_impl_resizer_take(&resizers[which], NULL, &bytes[which])) result = VP_ERR_RANGE;
    }
    if (result == VP_OK) *scratch_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    return result;
}

VP_API size_t vp_preprocess_scratch_bytes(const vp_geometry *geometry, const vp_layout *layout) {
    vp_impl_resizer resizers[2];
    size_t bytes = 0;
    return vp_impl_preprocess_plan(geometry, layout, resizers, &bytes) == VP_OK ? bytes : 0;
}

VP_API size_t vp_preprocess_pixel_count(const vp_geometry *geometry, const vp_layout *layout) {
    vp_impl_resizer resizers[2];
    size_t bytes, per_side;
    if (vp_impl_preprocess_plan(geometry, layout, resizers, &bytes) != VP_OK) return 0;
    /* cannot overflow after a valid plan: at most 3 * 10^8 floats */
    per_side = (size_t)vp_geometry_patches_per_side(geometry) * (size_t)geometry->patch_px;
    return (size_t)layout->views * per_side * per_side * 3;
}

VP_API vp_result vp_preprocess(const vp_geometry *geometry, const vp_layout *layout, const uint8_t *rgb, float *pixels,
                               float *image_masks, void *scratch, size_t scratch_bytes) {
    vp_impl_resizer resizers[2];
    vp_arena arena;
    size_t needed = 0, view;
    int which;
    memset(resizers, 0, sizeof resizers);
    vp_result result = vp_impl_preprocess_plan(geometry, layout, resizers, &needed);
    if (result != VP_OK) return result;
    if (!rgb || !pixels || !image_masks || !scratch) return VP_ERR_RANGE;
    if (scratch_bytes < needed) return VP_ERR_CAPACITY;
    view = (size_t)vp_geometry_patches_per_side(geometry) * (size_t)geometry->patch_px;
    view *= view * 3;
    for (which = 0; which < 2; which++) {
        vp_impl_resizer *resizer = &resizers[which];
#ifdef VP_IMPL_PREPROCESS_AVX2
        resizer->wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
        arena.base = (unsigned char *)scratch;
        arena.capacity_bytes = scratch_bytes;
        arena.used_bytes = 0;
        if (!vp_impl_resizer_take(resizer, &arena, NULL)) return VP_ERR_CAPACITY; /* cannot happen: counted above */
        if (which) vp_impl_resizer_run(geometry, resizer, rgb, layout->tiling.rows, layout->tiling.cols, pixels + view);
        else vp_impl_resizer_run(geometry, resizer, rgb, 1, 1, pixels);
    }
    vp_impl_masks(geometry, &resizers[1], layout->tiling.rows, layout->tiling.cols, image_masks);
    return VP_OK;
}

/* One row of the resized image: blends source rows into `line`, and the columns of `line` into `out`. */
static void vp_impl_resize_row(const vp_impl_axis *x, const uint8_t *rgb, const float *row_weights, int32_t row_taps,
                               const int32_t *x_first, const float *x_weights, float *line, uint8_t *out) {
    const int32_t values = x->source * 3;
    int32_t i, j, c;
    for (i = 0; i < values; i++) line[i] = 0.0f;
    for (j = 0; j < row_taps; j++)
        for (i = 0; i < values; i++) line[i] += row_weights[j] * (float)rgb[(size_t)j * (size_t)values + (size_t)i];
    for (i = 0; i < x->resized; i++)
        for (c = 0; c < 3; c++) {
            const float *weights = x_weights + (size_t)i * (size_t)x->taps;
            float sum = 0.0f;
            for (j = 0; j < x->taps && x_first[i] + j < x->source; j++)
                sum += weights[j] * line[(x_first[i] + j) * 3 + c];
            out[i * 3 + c] = (uint8_t)(sum < 0.0f ? 0.5f : sum > 255.0f ? 255.5f : sum + 0.5f);
        }
}
VP_API vp_result vp_image_resize(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                 int32_t new_width_px, int32_t new_height_px) {
    vp_impl_axis x, y;
    float *line, *x_weights, *y_weights;
    int32_t *x_first, first, taps, i, j;
    if (!rgb || !resized || width_px < 1 || height_px < 1 || new_width_px < 1 || new_height_px < 1
        || (int64_t)width_px * height_px > VP_IMAGE_PIXELS_MAX
        || (int64_t)new_width_px * new_height_px > VP_IMAGE_PIXELS_MAX
        || !vp_impl_axis_set(&x, VP_FIT_PAD, width_px, new_width_px, 0, new_width_px)
        || !vp_impl_axis_set(&y, VP_FIT_PAD, height_px, new_height_px, 0, new_height_px))
        return VP_ERR_RANGE;
    line = (float *)VP_MALLOC((size_t)width_px * 3 * sizeof *line);
    x_weights = (float *)VP_MALLOC((size_t)new_width_px * (size_t)x.taps * sizeof *x_weights);
    y_weights = (float *)VP_MALLOC((size_t)y.taps * sizeof *y_weights);
    x_first = (int32_t *)VP_MALLOC((size_t)new_width_px * sizeof *x_first);
    if (line && x_weights && y_weights && x_first) {
        for (i = 0; i < new_width_px; i++) {
            float *weights = x_weights + (size_t)i * (size_t)x.taps;
            taps = vp_impl_axis_at(&x, i, &x_first[i], weights);
            for (j = taps; j < x.taps; j++) weights[j] = 0.0f;
        }
        for (i = 0; i < new_height_px; i++) {
            taps = vp_impl_axis_at(&y, i, &first, y_weights);
            vp_impl_resize_row(&x, rgb + (size_t)first * (size_t)width_px * 3, y_weights, taps, x_first, x_weights,
                               line, resized + (size_t)i * (size_t)new_width_px * 3);
        }
    }
    i = line && x_weights && y_weights && x_first;
    VP_FREE(line);
    VP_FREE(x_weights);
    VP_FREE(y_weights);
    VP_FREE(x_first);
    return i ? VP_OK : VP_ERR_MEMORY;
}

/* --------------------------------------------------------------------------------------------------------------- image
 * Every bound of the containers is checked before stb_image gets a byte, because stb_image tolerates truncated JPEGs,
 * trusts headers, checks no CRC and inflates without limit. */
#ifndef VLMPROF_NO_STB
#define VP_IMPL_IMAGE_SIDE_MAX (1 << 24) /* a row of 16-bit RGBA fits in an int */
#if defined(STBI_INCLUDE_STB_IMAGE_H) && !defined(VLMPROF_STB_EXTERNAL)
#define VLMPROF_STB_EXTERNAL
#endif
#ifndef VLMPROF_STB_IMAGE
#define VLMPROF_STB_IMAGE <stb/stb_image.h>
#endif
VP_EXACT_END
VP_EXTERN_C_END
#ifdef VLMPROF_STB_EXTERNAL
/* only the declarations, even if the program implements stb_image further below */
#ifndef STBI_INCLUDE_STB_IMAGE_H
#ifdef STB_IMAGE_IMPLEMENTATION
#undef STB_IMAGE_IMPLEMENTATION
#include VLMPROF_STB_IMAGE
#define STB_IMAGE_IMPLEMENTATION
#else
#include VLMPROF_STB_IMAGE
#endif
#endif
#else
/* stb_image's memory. It is zeroed, so that a damaged file always decodes to the same bytes. Every block stores its
 * first size; for inflated PNG data this is the size given in the header. A stream that needs more than twice that is a
 * decompression bomb. */
enum { VP_IMPL_BLOCK_HEADER = 16, VP_IMPL_BLOCK_SLACK = 65536 };

static void *vp_impl_stb_malloc(size_t bytes) {
    unsigned char *block =
        bytes <= SIZE_MAX - VP_IMPL_BLOCK_HEADER ? (unsigned char *)VP_CALLOC(1, bytes + VP_IMPL_BLOCK_HEADER) : NULL;
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + VP_IMPL_BLOCK_HEADER;
}

static void *vp_impl_stb_realloc(void *memory, size_t old_bytes, size_t bytes) {
    /* a block without a first size: the compressed data, which the file bounds */
    size_t first = SIZE_MAX / 4;
    unsigned char *block = memory ? (unsigned char *)memory - VP_IMPL_BLOCK_HEADER : NULL;
    if (block) memcpy(&first, block, sizeof first);
    if (bytes > SIZE_MAX / 2 || (bytes > VP_IMPL_BLOCK_SLACK && bytes / 2 > first)) {
        errno = ERANGE; /* vp_impl_stb_fail distinguishes this from ENOMEM */
        return NULL;
    }
    block = (unsigned char *)VP_REALLOC(block, bytes + VP_IMPL_BLOCK_HEADER);
    if (!block) return NULL;
    if (bytes > old_bytes) memset(block + VP_IMPL_BLOCK_HEADER + old_bytes, 0, bytes - old_bytes);
    memcpy(block, &first, sizeof first);
    return block + VP_IMPL_BLOCK_HEADER;
}

static void vp_impl_stb_free(void *memory) {
    if (memory) VP_FREE((unsigned char *)memory - VP_IMPL_BLOCK_HEADER);
}

#define STBI_MALLOC(bytes) vp_impl_stb_malloc(bytes)
#define STBI_REALLOC_SIZED(memory, old_bytes, bytes) vp_impl_stb_realloc(memory, old_bytes, bytes)
#define STBI_FREE(memory) vp_impl_stb_free(memory)
#define STBI_ASSERT(condition) ((void)(condition))
#define STBI_MAX_DIMENSIONS VP_IMPL_IMAGE_SIDE_MAX
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
/* gcc warns about static functions that are declared but never defined, even in a system header: those of the GIF
 * reader, and one that stb_image 2.27 defines under a misspelt name */
#define STBI_NO_GIF
#define stbi__unpremultiply_on_load_thread stbi_set_unpremultiply_on_load_thread
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
/* on truncated JPEG data, stb_image shifts zeros by over 31 bits and lets sums wrap: harmless, but sanitizers would
 * stop there */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("shift", "signed-integer-overflow"))), apply_to = function)
#endif
#include VLMPROF_STB_IMAGE
#if defined(__clang__)
#pragma clang attribute pop
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#undef stbi__unpremultiply_on_load_thread
#undef STB_IMAGE_STATIC
#undef STB_IMAGE_IMPLEMENTATION
#undef STBI_ASSERT
#undef STBI_MALLOC
#undef STBI_REALLOC_SIZED
#undef STBI_FREE
#endif /* VLMPROF_STB_EXTERNAL */
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

/* Allocation of vp_image.rgb: stb_image's allocator if stb_image is our copy, plain malloc if it is the program's. */
#ifdef VLMPROF_STB_EXTERNAL
enum { VP_IMPL_BLOCK_SLACK = 65536 };
static void *vp_impl_rgb_malloc(size_t bytes) { return VP_MALLOC(bytes ? bytes : 1); }
static void vp_impl_rgb_free(uint8_t *rgb) { VP_FREE(rgb); }
static uint8_t *vp_impl_rgb_take(uint8_t *decoded, size_t bytes) {
    uint8_t *rgb = decoded ? (uint8_t *)vp_impl_rgb_malloc(bytes) : NULL;
    if (rgb) memcpy(rgb, decoded, bytes);
    stbi_image_free(decoded);
    return rgb;
}
#else
static void *vp_impl_rgb_malloc(size_t bytes) { return vp_impl_stb_malloc(bytes); }
static void vp_impl_rgb_free(uint8_t *rgb) { vp_impl_stb_free(rgb); }
static uint8_t *vp_impl_rgb_take(uint8_t *decoded, size_t bytes) {
    (void)bytes;
    return decoded;
}
#endif

typedef struct vp_impl_image_info {
    int jpeg;                         /* 1: JPEG; 0: PNG */
    int64_t width_px, height_px;      /* stored size, before orientation is applied */
    int32_t orientation;              /* EXIF, 1..8 */
    int32_t depth, colour;            /* PNG: bits per channel, colour type */
    int32_t components, scans;        /* JPEG */
    int stray;                        /* JPEG: 1 if there are bytes between its segments */
    int tables;                       /* JPEG: bit 1: quantisation table seen; bit 2: Huffman table seen */
    int whole;                        /* 1: the end marker was found */
    uint64_t data_bytes;              /* PNG: size of the IDAT data */
    size_t palette_at, palette_bytes; /* PNG: data of the PLTE chunk */
} vp_impl_image_info;

/* Both formats are big-endian. */
static uint32_t vp_impl_be16(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }
static uint32_t vp_impl_be32(const uint8_t *bytes) { return vp_impl_be16(bytes) << 16 | vp_impl_be16(bytes + 2); }

static vp_result vp_impl_image_fail(vp_error *error, vp_result code, size_t offset, const char *text) {
    return vp_error_set(error, code, (int64_t)offset, "image", text);
}

/* EXIF is an embedded TIFF file in either byte order. Returns the orientation, or 1 if it is missing or invalid. */
static int32_t vp_impl_exif_orientation(const uint8_t *tiff, size_t bytes) {
    int little, orientation = 1;
    size_t at, count, i;
    if (bytes < 8) return 1;
    if (memcmp(tiff, "II*\0", 4) == 0) little = 1;
    else if (memcmp(tiff, "MM\0*", 4) == 0) little = 0;
    else return 1;
#define VP_IMPL_TIFF16(p) (little ? (uint32_t)(p)[0] | (uint32_t)(p)[1] << 8 : vp_impl_be16(p))
#define VP_IMPL_TIFF32(p) (little ? VP_IMPL_TIFF16(p) | VP_IMPL_TIFF16((p) + 2) << 16 : vp_impl_be32(p))
    at = VP_IMPL_TIFF32(tiff + 4);
    if (at > bytes - 2) return 1;
    count = VP_IMPL_TIFF16(tiff + at);
    for (i = 0, at += 2; i < count && bytes - at >= 12; i++, at += 12) {
        const uint8_t *entry = tiff + at;
        uint32_t type = VP_IMPL_TIFF16(entry + 2), value;
        if (VP_IMPL_TIFF16(entry) != 0x0112 || VP_IMPL_TIFF32(entry + 4) != 1) continue;
        if (type == 1) value = entry[8];
        else if (type == 3) value = VP_IMPL_TIFF16(entry + 8);
        else if (type == 4) value = VP_IMPL_TIFF32(entry + 8);
        else continue;
        orientation = value >= 1 && value <= 8 ? (int32_t)value : 1;
    }
#undef VP_IMPL_TIFF16
#undef VP_IMPL_TIFF32
    return orientation;
}

/* PNG's CRC-32, over a chunk's type and data; table: uint32_t [256]. */
static void vp_impl_crc_table(uint32_t *table) {
    uint32_t i, bit, value;
    for (i = 0; i < 256; i++) {
        for (value = i, bit = 0; bit < 8; bit++) value = value & 1 ? 0xEDB88320u ^ value >> 1 : value >> 1;
        table[i] = value;
    }
}
static uint32_t vp_impl_crc(const uint32_t *table, const uint8_t *bytes, size_t count) {
    uint32_t crc = 0xFFFFFFFFu;
    while (count--) crc = table[(crc ^ *bytes++) & 255] ^ crc >> 8;
    return crc ^ 0xFFFFFFFFu;
}

static vp_result vp_impl_png_header(const uint8_t *data, size_t at, vp_impl_image_info *info, vp_error *error) {
    int depth = data[8], colour = data[9], good;
    info->width_px = vp_impl_be32(data);
    info->height_px = vp_impl_be32(data + 4);
    info->depth = depth;
    info->colour = colour;
    if (info->width_px < 1 || info->height_px < 1 || info->width_px > INT32_MAX || info->height_px > INT32_MAX)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                  "PNG with an impossible width or height; the file is damaged");
    good = depth == 8 || (depth == 16 && colour != 3)
           || ((depth == 1 || depth == 2 || depth == 4) && (colour == 0 || colour == 3));
    if (!good || (colour != 0 && colour != 2 && colour != 3 && colour != 4 && colour != 6) || data[10] || data[11]
        || data[12] > 1)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                  "PNG with an impossible bit depth, colour type or method; the file is damaged");
    return VP_OK;
}

/* Walks the chunks once. With `all` = 0 it reads only size and orientation, and ignores errors after the header. */
static vp_result vp_impl_png_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info,
                                  vp_error *error) {
    uint32_t table[256];
    size_t at = 8;
    if (all) vp_impl_crc_table(table);
    while (bytes - at >= 12) {
        const uint8_t *chunk = file + at, *data = chunk + 8;
        size_t length = vp_impl_be32(chunk);
        int critical = !(chunk[4] & 32), first = at == 8;
        if (memcmp(chunk + 4, "CgBI", 4) == 0)
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at,
                                      "Apple's private variant of PNG (CgBI); convert it to plain PNG");
        if (first != (memcmp(chunk + 4, "IHDR", 4) == 0) || (first && length != 13))
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                      first ? "PNG that does not begin with a header chunk" : "PNG with two headers");
        if (length > bytes - at - 12) { /* truncated inside this chunk; the 13 bytes of a header may still be
                                         * complete */
            if (first || all) break;
            return VP_OK;
        }
        if (all && critical && vp_impl_crc(table, chunk + 4, length + 4) != vp_impl_be32(data + length))
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "PNG chunk with a wrong checksum; the file is damaged");
        if (first) {
            vp_result result = vp_impl_png_header(data, at, info, error);
            if (result != VP_OK) return result;
        } else if (memcmp(chunk + 4, "PLTE", 4) == 0) {
            info->palette_at = at + 8;
            info->palette_bytes = length;
        } else if (memcmp(chunk + 4, "IDAT", 4) == 0) {
            if (!length && !info->data_bytes) /* stb_image would add 0 to NULL */
                return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "PNG whose first data chunk is empty");
            info->data_bytes += length;
        } else if (memcmp(chunk + 4, "eXIf", 4) == 0) {
            info->orientation = vp_impl_exif_orientation(data, length);
        } else if (memcmp(chunk + 4, "IEND", 4) == 0) {
            info->whole = 1;
            return VP_OK;
        } else if (all && critical) {
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "PNG with an unknown critical chunk");
        }
        at += length + 12;
    }
    if (info->width_px && !all) return VP_OK;
    return vp_impl_image_fail(error, VP_ERR_FORMAT, bytes, "truncated PNG: the file ends before its end chunk");
}

/* Reads SOF, the frame header of a JPEG. `segment` begins after the length. */
static vp_result vp_impl_jpeg_frame(int marker, const uint8_t *segment, size_t length, size_t at,
                                    vp_impl_image_info *info, vp_error *error) {
    if (length < 6)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with a truncated frame header; the file is damaged");
    if (info->width_px)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with two frame headers; the file is damaged");
    info->height_px = vp_impl_be16(segment + 1);
    info->width_px = vp_impl_be16(segment + 3);
    info->components = segment[5];
    if (info->width_px < 1)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with width 0; the file is damaged");
    if (info->height_px < 1)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at,
                                  "JPEG whose height comes after the data (DNL); save it again");
    if (marker > 0xC2)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at,
                                  marker > 0xC8    ? "arithmetic-coded JPEG; save it as baseline or progressive"
                                  : marker == 0xC3 ? "lossless JPEG; save it as PNG or baseline JPEG"
                                                   : "hierarchical JPEG; save it as baseline or progressive");
    if (segment[0] != 8)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "JPEG with over 8 bits per channel; save it with 8");
    if (info->components == 4) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "CMYK JPEG; convert it to RGB");
    if (info->components != 1 && info->components != 3)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG must have 1 or 3 components; the file is damaged");
    return VP_OK;
}

/* Position of the next marker's 0xFF at or after `at`, or `bytes` if there is none. Skips entropy-coded data (with
 * stuffed zeros and restart markers) and stray bytes. */
static size_t vp_impl_jpeg_marker(const uint8_t *file, size_t bytes, size_t at) {
    while (at < bytes) {
        const uint8_t *found = (const uint8_t *)memchr(file + at, 0xFF, bytes - at);
        if (!found) return bytes;
        at = (size_t)(found - file);
        if (bytes - at < 2) return bytes;
        if (found[1] == 0xFF) at++; /* fill byte */
        else if (found[1] == 0 || (found[1] >= 0xD0 && found[1] <= 0xD7) || found[1] == 1) at += 2;
        else return at;
    }
    return bytes;
}

/* DHT: stb_image 2.27 writes past the end of its table if the code counts add up to more than 256 symbols. It also
 * reads past the end of a segment that ends within a table. */
static int vp_impl_jpeg_huffman(const uint8_t *segment, size_t length) {
    size_t i, symbols;
    while (length >= 17) {
        for (symbols = 0, i = 1; i <= 16; i++) symbols += segment[i];
        if (symbols > 256 || symbols + 17 > length) return 0;
        segment += symbols + 17;
        length -= symbols + 17;
    }
    return length == 0;
}

/* Walks the segments once, up to the end marker. So bytes after it (a second image, a phone's trailer) are harmless,
 * and the end of an embedded thumbnail is not mistaken for it. `all` = 0 stops at the first scan. */
static vp_result vp_impl_jpeg_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info,
                                   vp_error *error) {
    size_t at = 2, end = 2, length;
    int exif = 0, scan = 0;
    while ((at = vp_impl_jpeg_marker(file, bytes, end)) < bytes) {
        int marker = file[at + 1];
        const uint8_t *segment = file + at + 4;
        info->stray |= (at != end && !scan) || marker == 0xDC; /* DNL: libjpeg skips it */
        if (marker == 0xD8)
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                      "JPEG with a second start marker before its end; the file is damaged");
        if (marker == 0xD9) {
            info->whole = 1;
            break;
        }
        if (bytes - at < 4) break;
        length = vp_impl_be16(file + at + 2);
        if (length < 2)
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                      "JPEG with a segment of impossible length; the file is damaged");
        length -= 2;
        if (length > bytes - at - 4) break;
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
            vp_result result = vp_impl_jpeg_frame(marker, segment, length, at, info, error);
            if (result != VP_OK) return result;
        } else if (marker == 0xE1 && !exif && length >= 6 && memcmp(segment, "Exif\0\0", 6) == 0) {
            info->orientation = vp_impl_exif_orientation(segment + 6, length - 6);
            exif = 1;
        } else if (marker == 0xDB) {
            info->tables |= 1;
        } else if (marker == 0xC4) {
            if (!vp_impl_jpeg_huffman(segment, length))
                return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                          "JPEG with an impossible Huffman table; the file is damaged");
            info->tables |= 2;
        } else if (marker == 0xDA) {
            if (!info->width_px)
                return vp_impl_image_fail(error, VP_ERR_FORMAT, at,
                                          "JPEG with image data before the frame header; the file is damaged");
            if (!all) return VP_OK;
            info->scans++;
            exif = 1; /* metadata precede the image */
        }
        scan = marker == 0xDA;
        end = at + 4 + length;
    }
    if (info->whole && !info->width_px) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG without an image");
    if (info->width_px && (info->whole || !all)) return VP_OK;
    return vp_impl_image_fail(error, VP_ERR_FORMAT, bytes, "truncated JPEG: the file ends before its end marker");
}

/* The description of a recognised but unsupported image format, or NULL. */
static const char *vp_impl_image_foreign(const uint8_t *file, size_t bytes) {
    static const struct {
        int at, length;
        const char *magic, *text;
    } foreign[] = {
        {0, 4, "GIF8", "a GIF file; convert it to PNG"}, {8, 4, "WEBP", "a WebP file; convert it to PNG or JPEG"},
        {4, 8, "ftypavif", "an AVIF file; convert it to PNG or JPEG"},
        {4, 8, "ftypavis", "an AVIF file; convert it to PNG or JPEG"},
        {4, 7, "ftyphei", "a HEIC file; convert it to JPEG"}, {4, 7, "ftyphev", "a HEIC file; convert it to JPEG"},
        {4, 8, "ftypmif1", "a HEIF file; convert it to JPEG"}, {4, 8, "ftypmsf1", "a HEIF file; convert it to JPEG"},
        {4, 4, "ftyp", "a video or another file of the MP4 family; extract a frame as PNG or JPEG"},
        {0, 4, "II*\0", "a TIFF file; convert it to PNG"}, {0, 4, "MM\0*", "a TIFF file; convert it to PNG"},
        {0, 2, "BM", "a BMP file; convert it to PNG"}, {0, 4, "8BPS", "a Photoshop file; export it as PNG"},
        {0, 12, "\0\0\0\014JXL \r\n\207\n", "a JPEG XL file; convert it to PNG or JPEG"},
        {0, 2, "\377\012", "a JPEG XL file; convert it to PNG or JPEG"},
        {0, 8, "\0\0\0\014jP  ", "a JPEG 2000 file; convert it to PNG"},
        {0, 4, "\377\117\377\121", "a JPEG 2000 file; convert it to PNG"},
        {0, 4, "%PDF", "a PDF file; export the page as PNG"}, {0, 4, "<svg", "an SVG file; export it as PNG"},
        {0, 5, "<?xml", "an XML file (SVG?); export it as PNG"},
        {8, 4, "AVI ", "a video (AVI); extract a frame as PNG or JPEG"},
        {0, 4, "\032\105\337\243", "a video (WebM or Matroska); extract a frame as PNG or JPEG"}};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t at = (size_t)foreign[i].at, length = (size_t)foreign[i].length;
        if (bytes >= at + length && memcmp(file + at, foreign[i].magic, length) == 0) return foreign[i].text;
    }
    if (bytes >= 3 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7'
        && (file[2] == '\n' || file[2] == ' ' || file[2] == '\r'))
        return "a PNM file (PBM, PGM, PPM, PAM); convert it to PNG";
    return NULL;
}

static vp_result vp_impl_image_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info,
                                    vp_error *error) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    vp_impl_message message = {{0}, 0};
    memset(info, 0, sizeof *info);
    info->orientation = 1;
    if (!file) return vp_error_set(error, VP_ERR_RANGE, -1, "image", "no file data");
    if (bytes == 0) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "the file is empty");
    if (bytes >= 8 && memcmp(file, png, 8) == 0) return vp_impl_png_walk(file, bytes, all, info, error);
    if (bytes >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF) {
        info->jpeg = 1;
        return vp_impl_jpeg_walk(file, bytes, all, info, error);
    }
    const char *foreign = vp_impl_image_foreign(file, bytes);
    if (!foreign) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "neither a PNG nor a JPEG file");
    vp_impl_message_text(&message, "only PNG and JPEG are supported; this is ");
    vp_impl_message_text(&message, foreign);
    return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, message.text);
}

/* Checks that the file is large enough for its pixels. Deflate expands at most 1032-fold, and every JPEG block takes at
 * least one bit (64 pixels of grey; with the most extreme subsampling, 9 blocks for 1024 pixels). */
static vp_result vp_impl_image_plausible(const vp_impl_image_info *info, size_t bytes, vp_error *error) {
    static const int32_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    uint64_t pixels = (uint64_t)info->width_px * (uint64_t)info->height_px, raw;
    vp_impl_message message = {{0}, 0};
    if (info->width_px * info->height_px > VP_IMAGE_PIXELS_MAX || info->width_px > VP_IMPL_IMAGE_SIDE_MAX
        || info->height_px > VP_IMPL_IMAGE_SIDE_MAX) {
        vp_impl_message_text(&message, "the header declares ");
        vp_impl_message_int(&message, info->width_px);
        vp_impl_message_text(&message, " x ");
        vp_impl_message_int(&message, info->height_px);
        vp_impl_message_text(&message, " pixels; the limit is ");
        vp_impl_message_int(&message, VP_IMAGE_PIXELS_MAX);
        vp_impl_message_text(&message, " in total and 16777216 per side; make it smaller");
        return vp_impl_image_fail(error, VP_ERR_RANGE, 0, message.text);
    }
    if (info->jpeg) {
        if (pixels / 1024 > bytes)
            return vp_impl_image_fail(error, VP_ERR_FORMAT, 0,
                                      "the JPEG header declares more pixels than the file can contain");
        if (info->scans > 500)
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0,
                                      "JPEG with over 500 scans, probably malicious; save it again");
        if (info->tables != 3)
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, "JPEG without its own tables; save it again");
        return VP_OK;
    }
    raw = ((uint64_t)info->width_px * (uint64_t)(info->depth * channels[info->colour]) + 7) / 8
          * (uint64_t)info->height_px;
    if (raw / 1032 > info->data_bytes)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "the PNG header declares more pixels than the file can "
            "contain");
    if (info->colour == 3 && (info->palette_bytes < 3 || info->palette_bytes > 768 || info->palette_bytes % 3))
        return vp_impl_image_fail(error, VP_ERR_FORMAT, info->palette_at,
                                  "PNG with a palette of impossible length; the file is damaged");
    return VP_OK;
}

/* For missing palette entries, stb_image reads uninitialised stack. This returns a copy of the file whose palette has
 * all 256 entries; the added ones are black. Its checksum is then wrong, but stb_image does not check it. */
static uint8_t *vp_impl_png_palette(const uint8_t *file, size_t bytes, const vp_impl_image_info *info) {
    size_t more = 768 - info->palette_bytes, end = info->palette_at + info->palette_bytes;
    uint8_t *copy = bytes <= SIZE_MAX - more ? (uint8_t *)VP_MALLOC(bytes + more) : NULL;
    if (!copy) return NULL;
    memcpy(copy, file, end);
    memset(copy + end, 0, more);
    memcpy(copy + end + more, file + end, bytes - end);
    copy[info->palette_at - 6] = 3; /* length 0x300 */
    copy[info->palette_at - 5] = 0;
    return copy;
}

/* A copy of a JPEG that vp_impl_jpeg_walk accepted, without the bytes between segments that libjpeg skips and stb_image
 * rejects, and without metadata; also without stuffed bytes at the end of a scan if `trims`. */
static uint8_t *vp_impl_jpeg_clean(const uint8_t *file, size_t bytes, int trims, size_t *clean_bytes) {
    uint8_t *copy = (uint8_t *)VP_MALLOC(bytes);
    size_t at, end = 2, used = 2;
    int marker = 0;
    if (!copy) return NULL;
    memcpy(copy, file, 2);
    for (; marker != 0xD9 && (at = vp_impl_jpeg_marker(file, bytes, end)) < bytes; used += end - at) {
        if (marker == 0xDA) { /* after its header: the scan */
            memcpy(copy + used, file + end, at - end);
            used += at - end;
            while (trims && copy[used - 2] == 0xFF && !copy[used - 1]) used -= 2;
        }
        marker = file[at + 1];
        end = at + 2 + (marker == 0xD9 ? 0 : vp_impl_be16(file + at + 2));
        if (marker == 0xDC || marker == 0xFE || (marker > 0xE0 && marker < 0xF0 && marker != 0xEE)) at = end;
        memcpy(copy + used, file + at, end - at);
    }
    *clean_bytes = used;
    return copy;
}

/* 16-bit grey -> RGB. The reference's image library saturates such values instead of scaling them, so most become
 * white. */
static uint8_t *vp_impl_grey16_to_rgb(const uint16_t *grey, size_t pixels) {
    uint8_t *rgb = (uint8_t *)vp_impl_rgb_malloc(pixels * 3); /* at most 3 * 10^8 */
    if (!rgb) return NULL;
    for (size_t i = 0; i < pixels; i++) memset(rgb + i * 3, grey[i] < 255 ? grey[i] : 255, 3);
    return rgb;
}

/* Turns the stored image upright. The orientation gives the stored corner that is top left, and the direction of the
 * first row. */
static uint8_t *vp_impl_image_upright(const uint8_t *rgb, int32_t orientation, int32_t *width_px, int32_t *height_px) {
    size_t width = (size_t)*width_px, height = (size_t)*height_px, x, y, step_x, step_y, origin;
    int turned = orientation >= 5;
    uint8_t *out = (uint8_t *)vp_impl_rgb_malloc(width * height * 3), *to = out;
    if (!out) return NULL;
    /* along the upright rows, the stored position moves by step_x and step_y pixels; negative steps wrap around in
     * size_t */
    step_x = turned ? width : 1;
    step_y = turned ? 1 : width;
    origin = 0;
    if (orientation == 2 || orientation == 3) { origin += width - 1; step_x = 0 - step_x; }
    if (orientation == 3 || orientation == 4) { origin += (height - 1) * width; step_y = 0 - step_y; }
    if (orientation == 6 || orientation == 7) { origin += (height - 1) * width; step_x = 0 - step_x; }
    if (orientation == 7 || orientation == 8) { origin += width - 1; step_y = 0 - step_y; }
    *width_px = (int32_t)(turned ? height : width);
    *height_px = (int32_t)(turned ? width : height);
    for (y = 0; y < (size_t)*height_px; y++) {
        for (x = 0; x < (size_t)*width_px; x++, to += 3) memcpy(to, rgb + (origin + y * step_y + x * step_x) * 3, 3);
    }
    return out;
}

VP_API int32_t vp_image_orientation(const uint8_t *exif, size_t bytes) { return vp_impl_exif_orientation(exif, bytes); }
VP_API vp_result vp_image_turn(vp_image *image, int32_t orientation) {
    if (orientation <= 1) return VP_OK;
    uint8_t *upright = vp_impl_image_upright(image->rgb, orientation, &image->width_px, &image->height_px);
    if (!upright) return VP_ERR_MEMORY;
    vp_impl_rgb_free(image->rgb);
    image->rgb = upright;
    return VP_OK;
}

/* Makes an error from stb_image's reason, which is a short, fixed text. */
static vp_result vp_impl_stb_fail(const vp_impl_image_info *info, vp_error *error) {
    const char *reason = stbi_failure_reason();
    vp_impl_message message = {{0}, 0};
    vp_result result = VP_ERR_FORMAT;
    vp_impl_message_text(&message, info->jpeg ? "JPEG that cannot be decoded: " : "PNG that cannot be decoded: ");
    if (!reason) reason = "unknown reason";
    /* out of memory, which stb_image does not always report, or beyond the size in the header */
    if (errno == ENOMEM || strcmp(reason, "outofmem") == 0) {
        if (errno != ERANGE) result = VP_ERR_MEMORY;
        reason = result == VP_ERR_MEMORY ? "not enough memory for it" : "it contains more data than its header "
            "declares";
    }
    vp_impl_message_text(&message, reason);
    return vp_error_set(error, result, -1, "image", message.text);
}

/* Decodes to RGB in the stored orientation. */
static vp_result vp_impl_image_stored(const uint8_t *file, size_t bytes, const vp_impl_image_info *info, vp_image *out,
                                      vp_error *error) {
    uint8_t *copy = NULL;
    int width = 0, height = 0, channels;
    errno = 0; /* vp_impl_stb_fail reads it */
    if (!info->jpeg && info->colour == 0 && info->depth == 16) {
        uint16_t *grey = stbi_load_16_from_memory(file, (int)bytes, &width, &height, &channels, 1);
        if (!grey) return vp_impl_stb_fail(info, error);
        out->rgb = vp_impl_grey16_to_rgb(grey, (size_t)width * (size_t)height);
        stbi_image_free(grey);
        if (!out->rgb) return vp_error_set(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
    } else {
        if (!info->jpeg && info->colour == 3 && info->palette_bytes < 768) {
            copy = vp_impl_png_palette(file, bytes, info);
            if (!copy) return vp_error_set(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
            bytes += 768 - info->palette_bytes;
        }
        for (int trims = 0; trims < 2; trims++) {
            size_t given = bytes;
            if (info->jpeg && (info->stray || trims)) {
                VP_FREE(copy);
                copy = vp_impl_jpeg_clean(file, bytes, trims, &given);
                if (!copy) return vp_error_set(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
            }
            out->rgb = stbi_load_from_memory(copy ? copy : file, (int)given, &width, &height, &channels, 3);
            if (out->rgb || !info->jpeg || !stbi_failure_reason() || strcmp(stbi_failure_reason(), "unknown marker"))
                break;
        }
        VP_FREE(copy);
        if (!out->rgb) return vp_impl_stb_fail(info, error);
        out->rgb = vp_impl_rgb_take(out->rgb, (size_t)width * (size_t)height * 3);
        if (!out->rgb) return vp_error_set(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
    }
    out->width_px = width;
    out->height_px = height;
    return VP_OK;
}

VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px,
                               vp_error *error) {
    vp_impl_image_info info;
    if (!width_px || !height_px) return vp_error_set(error, VP_ERR_RANGE, -1, "image", "width_px or height_px is NULL");
    vp_result result = vp_impl_image_walk(file, bytes, 0, &info, error);
    if (result != VP_OK) return result;
    *width_px = (int32_t)(info.orientation >= 5 ? info.height_px : info.width_px);
    *height_px = (int32_t)(info.orientation >= 5 ? info.width_px : info.height_px);
    return VP_OK;
}

VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    vp_impl_image_info info;
    vp_image out;
    if (!image) return vp_error_set(error, VP_ERR_RANGE, -1, "image", "the output image is NULL");
    vp_result result = vp_impl_image_walk(file, bytes, 1, &info, error);
    if (result != VP_OK) return result;
    result = vp_impl_image_plausible(&info, bytes, error);
    if (result != VP_OK) return result;
    if (bytes > INT32_MAX - 1024)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, "files over 2 GiB are not supported; make it smaller");
    result = vp_impl_image_stored(file, bytes, &info, &out, error);
    if (result != VP_OK) return result;
    if (vp_image_turn(&out, info.orientation) != VP_OK) {
        vp_image_free(&out);
        return vp_error_set(error, VP_ERR_MEMORY, -1, "image", "not enough memory to turn the image upright");
    }
    *image = out;
    return VP_OK;
}

VP_API vp_result vp_image_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized) {
    const int is_same = width_px == image->width_px && height_px == image->height_px;
    vp_image made;
    vp_result result = VP_OK;
    made.width_px = width_px;
    made.height_px = height_px;
    if (width_px < 1 || height_px < 1 || (int64_t)width_px * height_px > VP_IMAGE_PIXELS_MAX) return VP_ERR_RANGE;
    made.rgb = (uint8_t *)vp_impl_rgb_malloc((size_t)width_px * (size_t)height_px * 3);
    if (!made.rgb) return VP_ERR_MEMORY;
    if (is_same) memcpy(made.rgb, image->rgb, (size_t)width_px * (size_t)height_px * 3);
    else result = vp_image_resize(image->rgb, image->width_px, image->height_px, made.rgb, width_px, height_px);
    if (result == VP_OK) *resized = made; else vp_impl_rgb_free(made.rgb);
    return result;
}

VP_API void vp_image_free(vp_image *image) {
    if (!image) return;
    vp_impl_rgb_free(image->rgb);
    image->rgb = NULL;
    image->width_px = image->height_px = 0;
}
#else  /* VLMPROF_NO_STB */
static vp_result vp_impl_image_without_stb(vp_error *error) {
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "image",
                        "built without stb_image (VLMPROF_NO_STB): no image file can be read");
}
VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px,
                               vp_error *error) {
    (void)file, (void)bytes, (void)width_px, (void)height_px;
    return vp_impl_image_without_stb(error);
}
VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    (void)file, (void)bytes, (void)image;
    return vp_impl_image_without_stb(error);
}
VP_API vp_result vp_image_resized(const vp_image *image, int32_t width_px, int32_t height_px, vp_image *resized) {
    (void)image, (void)width_px, (void)height_px, (void)resized; /* no image can exist */
    return VP_ERR_UNSUPPORTED;
}
VP_API void vp_image_free(vp_image *image) { (void)image; /* no image can exist */ }
#endif /* VLMPROF_NO_STB */

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
