/* vlmprof_processor.h - v0.2.0 - question and image -> text and pixels, for models other than Molmo - MIT licence
 *
 * Reproduces the official processors of OLMoE, LLaVA-1.5, Idefics3, SmolVLM, InternVL, Qwen2.5-VL, Qwen3-VL, Gemma 3
 * and Molmo2: the text around a question, the tokens of an image, and its pixels. It follows the "fast" processors of
 * transformers, which resize 8-bit images as torch does (Molmo2: float32 images). Only resizing uses malloc. */
#ifndef VLMPROF_PROCESSOR_H
#define VLMPROF_PROCESSOR_H
#include "vlmprof.h"
#include "vlmprof_families.h"

VP_EXTERN_C_BEGIN

/* OLMOE, PLAIN, CHATML and those after it do not read images. IDEFICS3 also serves SmolVLM, and QWEN3_VL Qwen3-VL-MoE.
 * INTERNVL_CHAT is InternVL's original form, with its own system message and the tiles of its config.json. PLAIN leaves
 * a question unchanged. CHATML and those after it are chat templates of language models */
typedef enum vp_processor_kind {
    VP_PROCESSOR_OLMOE, VP_PROCESSOR_LLAVA, VP_PROCESSOR_IDEFICS3, VP_PROCESSOR_INTERNVL, VP_PROCESSOR_QWEN2_5_VL,
    VP_PROCESSOR_QWEN3_VL, VP_PROCESSOR_GEMMA3, VP_PROCESSOR_MOLMO2, VP_PROCESSOR_PLAIN,
    VP_PROCESSOR_INTERNVL_CHAT, VP_PROCESSOR_CHATML, VP_PROCESSOR_QWEN2_5, VP_PROCESSOR_GEMMA3_TEXT,
    VP_PROCESSOR_COUNT
} vp_processor_kind;
enum { VP_PROCESSOR_VIEW_PIXELS_MAX = 100000000 }; /* limit of all views of one image together, and of resized images */

/* Treat the members as read-only: vp_processor_read fills them. */
typedef struct vp_processor {
    vp_processor_kind kind;
    vp_geometry geometry;     /* crop_px: side that the tower reads of a view, for Qwen a token's part; pool, mean,
                                * std */
    int32_t view_px;          /* side of a view: crop_px, or for Idefics3 up to a patch more, which is not read */
    int32_t shortest_edge_px; /* LLaVA: of the image, before the centre is cut out */
    int32_t longest_edge_px;  /* Idefics3: of the image, after the first resize */
    int32_t window_pool;      /* Molmo2: side of a window in patches; geometry.pool is then 1 */
    /* Molmo2: 1: <im_col> follows each row of the crops; of the first view; the first view has its own start token */
    int32_t col_tokens, low_col_tokens, low_start;
    char front[64];   /* Molmo2: prepended to a text that does not begin with it; "": nothing */
    vp_family family; /* rule for the grid of views; Molmo2 uses only max_crops; OLMoE and LLaVA do not use
                                * it */
} vp_processor;
/* Reads the settings of an image processor.
 * in:      geometry      the tower's crop_px, patch_px, pool, mean and std
 *          preprocessor  preprocessor_config.json, whose top-level node is an object; NULL for kinds that do not read
 *          images
 * out:     processor     on success
 * returns: VP_OK; VP_ERR_NOT_FOUND: no file, or it lacks a size; VP_ERR_UNSUPPORTED: a step that differs from the
 *          official one (where names it); VP_ERR_MISMATCH: sizes differ from the tower's; VP_ERR_FORMAT: a value of the
 *          wrong type; VP_ERR_RANGE: a value is out of range, or NULL
 * rule:    vp_family_read reads the values: InternVL always cuts tiles, and Gemma 3's images are whole unless
 *          vp_processor_set requests crops, as their processors do. Qwen: min_pixels and max_pixels take precedence
 *          over size; the class's defaults are 3136 and 1003520
 * source:  transformers 5.23.0, processing_{llava,smolvlm,internvl,qwen2_5_vl,qwen3_vl}.py,
 *          image_processing_{clip,smolvlm,got_ocr2,qwen2_vl}*.py
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_processor_read(vp_processor_kind kind, const vp_geometry *geometry, const vp_json *preprocessor,
                                   vp_processor *processor, vp_error *error);

/* Reads settings for Molmo2's text, which are outside preprocessor_config.json. Other models have none.
 * in:      processor_config, tokenizer_config  the files with these names; NULL: no file, and the class's defaults
 *          apply
 * out:     processor  on success
 * returns: VP_OK; VP_ERR_FORMAT: a switch that is not a boolean; VP_ERR_UNSUPPORTED: the first token exceeds 63 bytes
 * source:  transformers 5.23.0, processing_molmo2.py
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_processor_read_text(vp_processor *processor, const vp_json *processor_config,
                                        const vp_json *tokenizer_config, vp_error *error);

/* Computes how an image is cut into views.
 * in:      width_px, height_px  of the upright image
 * out:     layout   on success. tiling: the grid of views. crops: its count. views: also includes the whole image if
 *                   there are several; it is last, but first for Gemma 3 and Molmo2. canvas and resized sides: the
 *                   image that views are cut from. offset: position of LLaVA's view. feature_tokens: image tokens,
 *                   views times the tokens of one (except Molmo2). col_tokens and marker_tokens: other tokens between
 *                   and around them. The other members are 0
 * returns: VP_OK; VP_ERR_UNSUPPORTED: the model reads no images; VP_ERR_RANGE: a side is out of range, a resized side
 *          is below one pixel, too many pixels, or NULL
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_processor_layout(const vp_processor *processor, int32_t width_px, int32_t height_px,
                                     vp_layout *layout, vp_error *error);
/* The names of this processor's settings for the image size, as in its file; NULL past the end. vp_processor_aim sets
 * the first one. LLaVA's images have one size, and Molmo's have crops (vp_tile_options). */
VP_API const char *vp_processor_knob(const vp_processor *processor, int32_t index);
/* Sets one of these settings. Gemma 3's turn on pan and scan, with the processor's defaults for the others (at most 4
 * crops of at least 256 pixels, if the ratio of sides is at least 1.2); max_num_crops 1 turns it off.
 * returns: VP_OK; VP_ERR_NOT_FOUND: the processor has no such setting (the error lists its settings); VP_ERR_RANGE.
 *          On failure the processor is untouched
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_processor_set(vp_processor *processor, const char *name, int32_t value, vp_error *error);
/* Sets the first setting to the largest value for which this image has at most this many image tokens: Idefics3's
 * longest_edge in whole views, up to 4096 pixels, InternVL's max_patches, Gemma 3's max_num_crops and Molmo2's
 * max_crops up to 64, Qwen's max_pixels up to VP_PROCESSOR_VIEW_PIXELS_MAX.
 * returns: VP_OK; VP_ERR_UNSUPPORTED: the processor has no setting; VP_ERR_RANGE: the image has more tokens with any
 *          value, or vp_processor_layout rejects it. On failure the processor is untouched
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_processor_aim(vp_processor *processor, int32_t width_px, int32_t height_px, int32_t tokens,
                                  vp_error *error);
/* Makes the 8-bit pixels of the views.
 * in:      rgb uint8 [height, width, 3]
 *          layout    layout of this image, from vp_processor_layout
 * out:     views     uint8 [views, view_px, view_px, 3]
 * returns: VP_OK; VP_ERR_MEMORY; VP_ERR_RANGE: a NULL
 * memory:  3 bytes per pixel of the image after each resize, and the weights of one axis
 * threads: reentrant */
VP_API vp_result vp_processor_views(const vp_processor *processor, const vp_layout *layout, const uint8_t *rgb,
                                    uint8_t *views);
/* out:     pixels    f32 [views, patches, patch_px * patch_px * 3]: patches row by row; inside a patch (y, x, channel)
 * rule:    (value - 255 mean) / (255 std), both rounded to float32
 * memory:  none
 * threads: reentrant */
VP_API void vp_processor_pixels(const vp_processor *processor, const vp_layout *layout, const uint8_t *views,
                                float *pixels);

/* Resizes 8-bit RGB as Molmo2 does: bilinear without antialiasing, in float32, rounded half to even.
 * returns: VP_OK; VP_ERR_RANGE, as vp_processor_resize; VP_ERR_MEMORY
 * rule:    output pixel i of an axis is at (i + 0.5) * in / out - 0.5, at least 0; fma(a, 1 - w, b * w), width first
 * source:  pytorch, aten/src/ATen/native/cpu/UpSampleKernel.cpp (InterpolateLinear, separate channels)
 * memory:  16 bytes per column
 * threads: reentrant */
VP_API vp_result vp_processor_resize_plain(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                           int32_t new_width_px, int32_t new_height_px);
typedef enum vp_filter { VP_FILTER_BICUBIC, VP_FILTER_LANCZOS, VP_FILTER_BILINEAR } vp_filter;
/* Resizes 8-bit RGB with antialiasing, as torch does.
 * returns: VP_OK; VP_ERR_RANGE: a NULL, a side < 1 or over VP_PROCESSOR_VIEW_PIXELS_MAX pixels; VP_ERR_MEMORY
 * rule:    width first, rounded to 8 bits, then height; an axis of unchanged size is skipped. Pillow's coefficients
 *          (support times scale; cubic: a = -0.5), in 16 bits with as many fraction bits as the largest weight of the
 *          axis allows
 * source:  pytorch, aten/src/ATen/native/cpu/UpSampleKernel.cpp (_compute_index_ranges_int16_weights)
 * memory:  3 bytes per pixel between the axes, and 2 bytes per weight
 * threads: reentrant */
VP_API vp_result vp_processor_resize(const uint8_t *rgb, int32_t width_px, int32_t height_px, uint8_t *resized,
                                     int32_t new_width_px, int32_t new_height_px, vp_filter filter);

/* Makes the text of a conversation with one question, ready for the answer, with a placeholder for each image.
 * in:      places [image_count] ascending byte offsets into the question; each image precedes the text at its offset.
 *          NULL: before the question. Templates that put all images first (LLaVA, Molmo2) always do so
 * out:     out     [capacity] with NUL, on success only; NULL only counts
 *          needed  bytes without the NUL; on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: NULL, more images than the model accepts (vp_processor_one_image), or
 *          places that do not ascend or exceed the question
 * rule:    the text of the official chat template for such a conversation. OLMoE's begins with bos_token if the
 *          tokenizer's configuration has one; the caller adds it
 * threads: reentrant */
VP_API vp_result vp_processor_prompt(vp_processor_kind kind, const char *question, const size_t *places,
                                     int32_t image_count, char *out, size_t capacity, size_t *needed);
/* The reason why a prompt can have only one image; NULL if it can have several. */
VP_API const char *vp_processor_one_image(vp_processor_kind kind);
/* The placeholder of an image in a prompt, and the content of the token for one of its features, which are usually the
 * same; NULL if the model does not read images. */
VP_API const char *vp_processor_placeholder(vp_processor_kind kind);
VP_API const char *vp_processor_image_token(vp_processor_kind kind);
/* The placeholder of a video, which is not supported here; NULL if the model's prompts have none. */
VP_API const char *vp_processor_video(vp_processor_kind kind);
/* Returns 1 if this chat template produces the text of vp_processor_prompt. Trailing line ends are ignored. */
VP_API int vp_processor_knows_template(vp_processor_kind kind, const char *chat_template, size_t bytes);
/* Identifies a text model's prompt format from its complete chat template: ChatML without a system message, Qwen2.5's,
 * Gemma 3's (whose <bos> the tokenizer adds); PLAIN if none matches. memory: none. threads: reentrant */
VP_API vp_processor_kind vp_processor_text_kind(const char *chat_template, size_t bytes);
/* Makes the tokenizer's input: replaces each placeholder by the tokens of its image.
 * in:      layouts  [image_count], in the order of the placeholders
 * returns: VP_OK; VP_ERR_CAPACITY as above; VP_ERR_MISMATCH: the counts of placeholders and images differ;
 *          VP_ERR_RANGE: NULL
 * threads: reentrant */
VP_API vp_result vp_processor_expand(const vp_processor *processor, const vp_layout *layouts, int32_t image_count,
                                     const char *text, char *out, size_t capacity, size_t *needed);

VP_EXTERN_C_END
#endif /* VLMPROF_PROCESSOR_H */
