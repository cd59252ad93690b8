/* vlmprof_families.h - v0.2.0 - token counts of other model families by image size - MIT licence
 *
 * Do this:
 *     printf("%d\n", (int)vp_count_tokens("qwen3-vl", 640, 480));
 * It prints 300, the tokens of a 640 x 480 image in Qwen3-VL. A negative number is an error, a vp_result.
 *
 * To use limits other than the published ones, set the keys of a family: vp_family_find, vp_family_default,
 * vp_family_set, vp_family_count. For a checkpoint's own files, use vp_family_from_config. A count needs only the
 * image's width and height. A preset describes one family: its name, its rule (which several families may share), its
 * configuration keys with the values of the published checkpoints, and the certainty of the rule. A family is a preset
 * with its keys set.
 * memory:  none
 * threads: reentrant
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_FAMILIES_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_FAMILIES_H
#define VLMPROF_FAMILIES_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
/* vp_family_from_config exists if the reader of JSON is in the same folder, or is included before this header. */
#if !defined(VLMPROF_JSON_H) && defined(__has_include)
#if __has_include("vlmprof_json.h")
#include "vlmprof_json.h"
#endif
#endif

VP_EXTERN_C_BEGIN

enum {
    VP_FAMILY_PX_LIMIT = 16777216, /* longest side of an image: its square times a rule's factors is exact in a
                                    * double */
    VP_FAMILY_TILES_LIMIT = 256,   /* largest tile count of a tiling rule */
    VP_FAMILY_GRIDS_LIMIT = 1466,  /* grids of at most 256 tiles: the sum of the divisor counts of 1..256 */
    VP_FAMILY_KEYS_LIMIT = 8
};
/* the evidence that the numbers are right */
typedef enum vp_certainty {
    VP_CERTAINTY_EXECUTED, /* the official code was run on the golden sizes, and every column is equal */
    VP_CERTAINTY_NUMBERS,  /* rule from official code; matches numbers in its tests or reported by users */
    VP_CERTAINTY_READ,     /* rule read in official code, but not executed */
    /* no code is published: from the vendor's documentation, or inferred from published measurements */
    VP_CERTAINTY_DOCUMENTED
} vp_certainty;
/* The word for a certainty ("executed", ...); never NULL. */
VP_API const char *vp_certainty_text(vp_certainty certainty);

/* the meaning of a configuration key for a rule; also its index in vp_family.value */
typedef enum vp_family_slot {
    VP_SLOT_MIN,    /* least pixels, patches, tokens or tiles */
    VP_SLOT_MAX,    /* most of them */
    VP_SLOT_SIDE,   /* longest side: pixels, or patches for Kimi */
    VP_SLOT_TILE,   /* side of a tile [px] */
    VP_SLOT_PATCH,  /* side of a patch [px] */
    VP_SLOT_MERGE,  /* patches per side that are merged into one token */
    VP_SLOT_TOKENS, /* tokens per view, or per side of a view */
    VP_SLOT_SPLIT,  /* a switch, or the index of a word */
    VP_SLOT_MIN_TOKENS,
    VP_SLOT_MAX_TOKENS,
    VP_SLOT_RATIO, /* the only slot that may be fractional */
    VP_SLOT_COUNT
} vp_family_slot;
typedef struct vp_family_key {
    const char *name; /* name in the configuration; NULL: fixed by the family */
    vp_family_slot slot;
    double fallback; /* value of the published checkpoints */
} vp_family_key;
typedef struct vp_family_preset {
    const char *name, *aliases; /* aliases: separated by spaces */
    const char *rule;           /* name of its rule */
    int32_t rule_index, variant, markers;
    vp_certainty certainty;
    const char *words;    /* values of VP_SLOT_SPLIT, separated by spaces; NULL: 0 or 1 */
    int32_t column_count; /* the first column_count keys vary in the golden data and are columns of vlmprof
                                 * tile */
    vp_family_key keys[VP_FAMILY_KEYS_LIMIT];
} vp_family_preset;
/* Presets in the order of the list; NULL past the end. A preset lives as long as the program. */
VP_API const vp_family_preset *vp_family_at(int32_t index);
/* The preset of a name, alias, model_type or published name, or NULL. Case and - _ . do not matter. Of a published
 * name, such as "Qwen/Qwen2.5-VL-7B-Instruct", the owner, sizes, dates, formats and words such as Instruct do not
 * count. A name with any other word, or with two presets that fit equally well, gives NULL. */
VP_API const vp_family_preset *vp_family_find(const char *name);

/* A preset with its keys set, and values derived from them. Treat the members as read-only: vp_family_default and
 * vp_family_set fill them. */
typedef struct vp_family {
    const vp_family_preset *preset;
    int64_t value[VP_SLOT_COUNT];
    double ratio;                     /* VP_SLOT_RATIO */
    uint32_t given;                   /* bit 1 << slot: set by the caller */
    int32_t grid_count, canvas_count; /* canvas_count > 0: the caller set a list */
    int32_t grid_side;                /* longest side of a canvas, in tiles */
    double grid_ratio[VP_FAMILY_GRIDS_LIMIT];
    int16_t grid_cols[VP_FAMILY_GRIDS_LIMIT], grid_rows[VP_FAMILY_GRIDS_LIMIT];
    int16_t grid_first[VP_FAMILY_TILES_LIMIT + 2]; /* index of the first grid with this number of tiles */
} vp_family;
/* The family of a preset with the values of its published checkpoints.
 * memory:  about 19 kB in the caller's struct */
VP_API void vp_family_default(const vp_family_preset *preset, vp_family *family);
/* Sets a key by its name in the configuration. The text is a number, a word, true or false.
 * returns: VP_OK; VP_ERR_NOT_FOUND: no such key (the error names the nearest); VP_ERR_RANGE: a number or word that the
 *          key does not accept, or a key or text that is NULL. On failure the family is untouched */
VP_API vp_result vp_family_set(vp_family *family, const char *key, const char *text, vp_error *error);
VP_API vp_result vp_family_set_number(vp_family *family, const char *key, double number, vp_error *error);
/* Sets the canvases that a canvas rule (LLaVA, Aria, DeepSeek-VL2) chooses from. They are in tiles, in the order of the
 * configuration. As there, height comes before width, except for llava_next_original and deepseek_vl2.
 * returns: VP_OK; VP_ERR_UNSUPPORTED: the rule has no such list; VP_ERR_RANGE: count outside
 *          1..VP_FAMILY_GRIDS_LIMIT or a side outside 1..16 */
VP_API vp_result vp_family_set_canvases(vp_family *family, const int32_t (*sides)[2], int32_t count, vp_error *error);

#ifdef VLMPROF_JSON_H
/* Where transformers finds the settings of the image processor: "image_processor" of processor_config.json, or if that
 * has none, the whole preprocessor_config.json. Returns the file, with the object in *node; NULL: there are none.
 * source: transformers 5.24.0, image_processing_base.py, get_image_processor_dict */
VP_API const vp_json *vp_image_settings(const vp_json *const files[3], uint32_t *node);
/* Sets a family's keys from these files, as vp_family_from_config does, without its checks.
 * returns: VP_OK; VP_ERR_RANGE: a value that the key does not accept */
VP_API vp_result vp_family_read(const vp_family_preset *preset, const vp_json *const files[3], vp_family *family,
                                vp_error *error);
/* Chooses the family and its keys from the files of a checkpoint. Each file may be absent.
 * in:      files  preprocessor_config.json, processor_config.json, config.json, in this order; NULL: absent. The
 *          top-level node of each is an object
 * returns: VP_OK; VP_ERR_NOT_FOUND: neither model_type nor image_processor_type names a preset; VP_ERR_UNSUPPORTED:
 *          a switch that the rule does not model has an unusual value, or the token count of a size is not known;
 *          VP_ERR_RANGE: a value that the key does not accept
 * rule:    model_type decides, except for llava, where the image processor decides. The first of vp_image_settings,
 *          processor_config.json and config.json that has a key sets it. A key that the processor's class sets itself
 *          is not read; for an absent key of an image processor the default of its class applies
 * source:  transformers 5.24.0, images_kwargs of processing_*.py, attributes of image_processing_*.py */
VP_API vp_result vp_family_from_config(vp_family *family, const vp_json *const files[3], vp_error *error);
#endif

/* the counts of one image; -1: the rule has no such number */
typedef struct vp_vision_count {
    int64_t resized_width_px, resized_height_px; /* image or canvas after the resize */
    int64_t rows, cols; /* of patches before merging (Qwen-VL ...), tokens (Pixtral), or else tiles; 0,0: none */
    int64_t views;                               /* images that the vision tower sees, global view included */
    int64_t feature_tokens, separator_tokens, marker_tokens;
    /* tokens that the processor inserts for one image; tokens that only a chat template writes are not counted */
    int64_t total_tokens;
} vp_vision_count;
/* Image size -> tokens.
 * in:      width_px, height_px  of the image, 1..VP_FAMILY_PX_LIMIT
 * out:     count                on success
 * returns: VP_OK; VP_ERR_RANGE: a side out of range, or the family's own code rejects the size (the error gives the
 *          reason); VP_ERR_UNSUPPORTED: the rule for such a size is not published
 * rule:    the family's own, operation by operation
 * numeric: IEEE double, float32 and rounding half to even, each where the original uses it
 * source:  transformers 5.23.0, mistral-common 1.13.1, qwen-vl-utils 0.0.14, llava-torch 1.2.2, the repositories of
 *          DeepSeek-VL2, Ovis, MiniCPM-V and Phi-3.5, and the vendors' documentation, according to the preset's
 *          certainty */
VP_API vp_result vp_family_count(const vp_family *family, int32_t width_px, int32_t height_px, vp_vision_count *count,
                                 vp_error *error);
/* Counts tokens by model name, with the values of the published checkpoints: vp_count_tokens("qwen3-vl", 1920, 1080).
 * in:      model  as for vp_family_find: "qwen3-vl" or "Qwen/Qwen3-VL-8B-Instruct"
 * returns: total_tokens of the image; or an error, which is above -100 and below 0, also as an int: VP_ERR_NOT_FOUND:
 *          no such preset; VP_ERR_RANGE or VP_ERR_UNSUPPORTED as in vp_family_count
 * memory:  about 20 kB of stack */
VP_API int64_t vp_count_tokens(const char *model, int32_t width_px, int32_t height_px);
/* The key that limits a family's tokens (max_pixels, max_crops, longest_edge ...), or NULL. */
VP_API const vp_family_key *vp_family_knob(const vp_family *family);
/* Finds the largest value of the knob that keeps images within a token limit.
 * in:      sizes_px    [size_count][2] width, height
 *          max_tokens  limit of total_tokens for that share of the images
 *          share       share of the images, 0 < share <= 1. 1: all of them; 0.95: the smallest number of images that is
 *                      at least 95 %
 * out:     value, on success. unlimited is 1 if no value of the knob exceeds max_tokens; value is then the largest one
 *          tried
 * returns: VP_OK; VP_ERR_NOT_FOUND: the family has no knob, or no value is small enough; VP_ERR_RANGE: an
 *          argument is out of range
 * rule:    a size that the family rejects at some value counts as over the limit. Knobs with up to 65536 values are
 *          tried in descending order. Others are bisected, because their tokens grow with the knob */
VP_API vp_result vp_family_largest(const vp_family *family, const int32_t (*sizes_px)[2], size_t size_count,
                                   double share, int64_t max_tokens, int64_t *value, int *unlimited, vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_FAMILIES_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_FAMILIES_IMPLEMENTATION)) \
    && !defined(VLMPROF_FAMILIES_IMPLEMENTATION_DONE)
#define VLMPROF_FAMILIES_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

/* Rules, in the order of vp_impl_rules. A new family with a known rule needs a row in vp_impl_presets. A new rule needs
 * an index here and its function vp_impl_count_.. at the same index of vp_impl_rules. If it chooses from grids, it also
 * needs a case in vp_impl_family_grids. */
    enum {
        VP_IMPL_SMART,
        VP_IMPL_NAVIT,
        VP_IMPL_BUDGET,
        VP_IMPL_MUSE,
        VP_IMPL_NEMOTRON,
        VP_IMPL_POOLED,
        VP_IMPL_PAN,
        VP_IMPL_CLOSEST,
        VP_IMPL_OCR,
        VP_IMPL_FIT,
        VP_IMPL_MOLMO,
        VP_IMPL_LONGEST,
        VP_IMPL_ANYRES,
        VP_IMPL_CANVAS,
        VP_IMPL_SPLIT,
        VP_IMPL_PHI4,
        VP_IMPL_PHI3,
        VP_IMPL_COVER,
        VP_IMPL_LFM2,
        VP_IMPL_SLICE,
        VP_IMPL_PERCEPTION,
        VP_IMPL_WINDOW,
        VP_IMPL_CONSTANT,
        VP_IMPL_CLAUDE,
        VP_IMPL_OPENAI_TILES,
        VP_IMPL_OPENAI_PATCHES,
        VP_IMPL_GEMINI
    };
/* variants of a rule */
enum {
    VP_IMPL_RATIO_200 = 1,
    VP_IMPL_CLAMP_FIRST = 2,
    VP_IMPL_CLAMP_FLOOR = 4,
    VP_IMPL_FRAMES_2 = 8,
    VP_IMPL_ENLARGE = 16,
    VP_IMPL_WIDEN = 32,
    VP_IMPL_ROW_ENDS = 64,
    VP_IMPL_AUTO_LIMITS = 128,
    VP_IMPL_QWEN = VP_IMPL_RATIO_200 | VP_IMPL_CLAMP_FLOOR
};
enum { VP_IMPL_PLAIN, VP_IMPL_TAGS, VP_IMPL_DOCLING };                   /* closest */
enum { VP_IMPL_COHERE, VP_IMPL_LLAMA4, VP_IMPL_MLLAMA, VP_IMPL_MOLMO2 }; /* fit */
enum { VP_IMPL_HEIGHT_FIRST, VP_IMPL_WIDTH_FIRST, VP_IMPL_ONEVISION };   /* anyres */
enum { VP_IMPL_ARIA, VP_IMPL_DEEPSEEK };                                 /* canvas */

#define VP_IMPL_PIXELS(min, max) {"min_pixels", VP_SLOT_MIN, min}, {"max_pixels", VP_SLOT_MAX, max}
#define VP_IMPL_PATCHES(patch, merge) {"patch_size", VP_SLOT_PATCH, patch}, {"merge_size", VP_SLOT_MERGE, merge}
#define VP_IMPL_TILES(min, max, tile) \
    {"min_patches", VP_SLOT_MIN, min}, {"max_patches", VP_SLOT_MAX, max}, {"size", VP_SLOT_TILE, tile}
#define VP_IMPL_IMAGE_TOKENS(tokens) {"image_seq_length", VP_SLOT_TOKENS, tokens}
#define VP_IMPL_OPENAI_TILED(name, aliases, base, tile) \
    {name, aliases, "openai_tiles", VP_IMPL_OPENAI_TILES, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 2, \
     {{"base_tokens", VP_SLOT_MIN, base}, {"tile_tokens", VP_SLOT_TOKENS, tile}}}
#define VP_IMPL_OPENAI_PATCHED(name, aliases, multiplier) \
    {name, aliases, "openai_patches", VP_IMPL_OPENAI_PATCHES, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 3, \
     {{"patch_budget", VP_SLOT_MAX, 1536}, {"max_side", VP_SLOT_SIDE, 2048}, {"multiplier", VP_SLOT_RATIO, multiplier}}}
/* name, aliases, name of the rule, its index, variant, markers, certainty, words of VP_SLOT_SPLIT, columns, {keys} */
static const vp_family_preset vp_impl_presets[] = {
    {"qwen2_vl_hf", "qwen2-vl", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 12845056), VP_IMPL_PATCHES(14, 2)}},
    {"qwen2_5_vl_hf", "qwen2.5-vl", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 12845056), VP_IMPL_PATCHES(14, 2)}},
    {"qwen3_vl_hf", "qwen3-vl qwen3_vl_moe qwen3.5 qwen3_5_moe qwen3.6", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(65536, 16777216), VP_IMPL_PATCHES(16, 2)}},
    {"qwen_vl_utils", "", "smart", VP_IMPL_SMART, VP_IMPL_RATIO_200 | VP_IMPL_CLAMP_FIRST | VP_IMPL_AUTO_LIMITS, 0,
     VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"image_patch_size", VP_SLOT_PATCH, 14}, VP_IMPL_PIXELS(3136, 12845056), {"merge_size", VP_SLOT_MERGE, 2}}},
    {"glm4v", "glm-4.1v glm-4.5v glm4v_moe", "smart",
     VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_FRAMES_2 | VP_IMPL_ENLARGE, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(12544, 9633792), VP_IMPL_PATCHES(14, 2)}},
    {"glm46v", "glm-4.6v glm46v_moe glm-ocr", "smart",
     VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_FRAMES_2 | VP_IMPL_ENLARGE, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(12544, 9633792), VP_IMPL_PATCHES(14, 2)}},
    {"ernie4_5_vl", "ernie-4.5-vl ernie4_5_vl_moe", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 4842768), VP_IMPL_PATCHES(14, 2)}},
    {"paddleocr_vl", "", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_WIDEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(147456, 2359296), VP_IMPL_PATCHES(14, 2)}},
    {"minimax_m3_vl", "minimax-m3", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 451584), VP_IMPL_PATCHES(14, 2)}},
    {"hunyuan_vl", "hunyuanvl hunyuan-ocr", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_ROW_ENDS, 2,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(262144, 4194304), VP_IMPL_PATCHES(16, 2)}},
    {"video_llama_3", "videollama3", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 1003520), VP_IMPL_PATCHES(14, 1)}},
    {"kimi_k25", "kimi-k2.5 kimi-k2.6", "navit", VP_IMPL_NAVIT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_patches", VP_SLOT_MAX, 16384}, {"max_side_patches", VP_SLOT_SIDE, 512}, VP_IMPL_PATCHES(14, 2)}},
    {"kimi_vl", "", "navit", VP_IMPL_NAVIT, 1, 0, VP_CERTAINTY_READ, NULL, 2,
     {{"in_token_limit", VP_SLOT_MAX, 4096}, {"max_side_patches", VP_SLOT_SIDE, 512}, VP_IMPL_PATCHES(14, 2)}},
    {"glm5_next", "glm-5-next glm5", "budget", VP_IMPL_BUDGET, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_image_tokens", VP_SLOT_MIN, 16}, {"max_image_tokens", VP_SLOT_MAX, 8000}, VP_IMPL_PATCHES(14, 2)}},
    {"muse_glimmer", "", "muse", VP_IMPL_MUSE, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_image_tokens", VP_SLOT_MAX, 4096}, VP_IMPL_PATCHES(14, 2)}},
    {"nemotron_h_omni", "nemotron-3-nano-omni nemotron_h_omni_reasoning_v3", "nemotron", VP_IMPL_NEMOTRON, 0, 2,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_num_patches", VP_SLOT_MIN, 1024}, {"max_num_patches", VP_SLOT_MAX, 13312},
      {"max_model_len", VP_SLOT_SIDE, 16384}, VP_IMPL_PATCHES(16, 2)}},
    {"gemma4", "", "pooled", VP_IMPL_POOLED, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_soft_tokens", VP_SLOT_MAX, 280}, {"patch_size", VP_SLOT_PATCH, 16},
      {"pooling_kernel_size", VP_SLOT_MERGE, 3}}},
    /* inferred: equal to 10 of 10 measured sizes */
    {"gemini_3", "", "pooled", VP_IMPL_POOLED, 0, 1, VP_CERTAINTY_DOCUMENTED, NULL, 1,
     {{"max_soft_tokens", VP_SLOT_MAX, 1120}, {NULL, VP_SLOT_PATCH, 16}, {NULL, VP_SLOT_MERGE, 3}}},
    {"gemma3", "", "pan_and_scan", VP_IMPL_PAN, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 4,
     {{"do_pan_and_scan", VP_SLOT_SPLIT, 0}, {"min_crop_size", VP_SLOT_TILE, 256}, {"max_num_crops", VP_SLOT_MAX, 4},
      {"min_ratio_to_activate", VP_SLOT_RATIO, 1.2}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"internvl", "internvl2 internvl2.5 internvl3 internvl3.5 internvl_chat", "closest",
     VP_IMPL_CLOSEST, VP_IMPL_PLAIN, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 448), VP_IMPL_IMAGE_TOKENS(256)}},
    {"got_ocr2", "got-ocr-2.0", "closest", VP_IMPL_CLOSEST, VP_IMPL_PLAIN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 1024), VP_IMPL_IMAGE_TOKENS(256)}},
    {"aya_vision", "", "closest", VP_IMPL_CLOSEST, VP_IMPL_TAGS, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 364), VP_IMPL_IMAGE_TOKENS(169)}},
    {"granite_docling", "granite-docling-500m granite-for-docling", "closest", VP_IMPL_CLOSEST, VP_IMPL_DOCLING, 3,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_patches", VP_SLOT_MAX, 32}, {"image_seq_len", VP_SLOT_TOKENS, 64}, {"min_patches", VP_SLOT_MIN, 1},
      {"size", VP_SLOT_TILE, 512}}},
    {"deepseek_ocr_unlimited_ocr", "unlimited_ocr", "ocr", VP_IMPL_OCR, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 32}, {"tile_size", VP_SLOT_TILE, 640},
      {"size", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"deepseek_ocr", "deepseek-ocr-gundam", "ocr", VP_IMPL_OCR, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 6}, {"tile_size", VP_SLOT_TILE, 640},
      {"size", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"deepseek_ocr2", "", "ocr", VP_IMPL_OCR, 1, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 6}, {"tile_size", VP_SLOT_TILE, 768},
      {"size", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"cohere2_vision", "command-a-vision", "fit", VP_IMPL_FIT, VP_IMPL_COHERE, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 512), VP_IMPL_IMAGE_TOKENS(256)}},
    {"llama4", "", "fit", VP_IMPL_FIT, VP_IMPL_LLAMA4, 3, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_patches", VP_SLOT_MAX, 16}, {"tile_size", VP_SLOT_TILE, 336}, {"patch_size", VP_SLOT_PATCH, 14},
      {NULL, VP_SLOT_MERGE, 2}}},
    {"mllama", "llama-3.2-vision llama3.2-vision", "fit", VP_IMPL_FIT, VP_IMPL_MLLAMA, 1,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_image_tiles", VP_SLOT_MAX, 4}, {"tile_size", VP_SLOT_TILE, 560}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"molmo2", "", "fit", VP_IMPL_FIT, VP_IMPL_MOLMO2, 4, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_crops", VP_SLOT_MAX, 8}, {"low_res_col_tokens", VP_SLOT_SPLIT, 0}}},
    {"molmo", "molmoe molmo-7b-d molmo-7b-o molmoe-1b molmo-72b molmo-0924",
     "molmo", VP_IMPL_MOLMO, 0, 4, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_crops", VP_SLOT_MAX, 12}}},
    {"pixtral_hf", "pixtral", "longest", VP_IMPL_LONGEST, 0, 1, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16},
      {"spatial_merge_size", VP_SLOT_MERGE, 1}}},
    {"mistral3_hf", "mistral-small-3.1 mistral3 ministral-3", "longest", VP_IMPL_LONGEST, 0, 1,
     VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1540}, {"patch_size", VP_SLOT_PATCH, 14},
      {"spatial_merge_size", VP_SLOT_MERGE, 2}}},
    {"mistral_common", "", "longest", VP_IMPL_LONGEST, 1, 1, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"max_image_size", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16},
      {"spatial_merge_size", VP_SLOT_MERGE, 1}}},
    {"llava_next_hf", "llava-next llava-1.6 llava-v1.6", "anyres", VP_IMPL_ANYRES, VP_IMPL_HEIGHT_FIRST, 0,
     VP_CERTAINTY_EXECUTED, "llava_1_6 granite_vision", 1,
     {{"preset", VP_SLOT_SPLIT, 0}, {"size", VP_SLOT_TILE, 336}, {"patches_per_side", VP_SLOT_TOKENS, 24}}},
    {"granite_vision", "granite-vision-3.3", "anyres", VP_IMPL_ANYRES, VP_IMPL_HEIGHT_FIRST, 0,
     VP_CERTAINTY_EXECUTED, "llava_1_6 granite_vision", 1,
     {{"preset", VP_SLOT_SPLIT, 1}, {"size", VP_SLOT_TILE, 384}, {"patches_per_side", VP_SLOT_TOKENS, 27}}},
    {"llava_next_original", "", "anyres", VP_IMPL_ANYRES, VP_IMPL_WIDTH_FIRST, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{"size", VP_SLOT_TILE, 336}, {"patches_per_side", VP_SLOT_TOKENS, 24}}},
    {"llava_onevision_hf", "llava-onevision", "anyres", VP_IMPL_ANYRES, VP_IMPL_ONEVISION, 0,
     VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"anyres_max", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 384}, {"patches_per_side", VP_SLOT_TOKENS, 27}}},
    {"deepseek_vl2", "deepseek_vl_v2", "canvas", VP_IMPL_CANVAS, VP_IMPL_DEEPSEEK, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"cropping", VP_SLOT_SPLIT, 1}, {"size", VP_SLOT_TILE, 384}, {"patch_size", VP_SLOT_PATCH, 14},
      {"downsample_ratio", VP_SLOT_MERGE, 2}}},
    {"aria", "", "canvas", VP_IMPL_CANVAS, VP_IMPL_ARIA, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_image_size", VP_SLOT_SIDE, 980}, {"split_image", VP_SLOT_SPLIT, 0}, {NULL, VP_SLOT_TILE, 490}}},
    {"idefics3_smolvlm", "idefics3", "split", VP_IMPL_SPLIT, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1456}, {"tile_size", VP_SLOT_TILE, 364}, {"image_seq_len", VP_SLOT_TOKENS, 169},
      {"do_image_splitting", VP_SLOT_SPLIT, 1}}},
    {"smolvlm", "smolvlm2 smolvlm2-video smolvlm-256m smolvlm-500m granite-docling-258m", "split", VP_IMPL_SPLIT, 0, 3,
     VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 2048}, {"tile_size", VP_SLOT_TILE, 512}, {"image_seq_len", VP_SLOT_TOKENS, 64},
      {"do_image_splitting", VP_SLOT_SPLIT, 1}}},
    {"smolvlm_2_2b", "smolvlm2-2.2b smolvlm-2.2b smolvlm-instruct smolvlm-base smolvlm-synthetic", "split",
     VP_IMPL_SPLIT, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1536}, {"tile_size", VP_SLOT_TILE, 384}, {"image_seq_len", VP_SLOT_TOKENS, 81},
      {"do_image_splitting", VP_SLOT_SPLIT, 1}}},
    {"phi4_multimodal", "phi-4-multimodal", "padded", VP_IMPL_PHI4, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"dynamic_hd", VP_SLOT_MAX, 36}, {"size", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"phi3_5_vision", "phi-3.5-vision phi3-v", "growing", VP_IMPL_PHI3, 0, 0, VP_CERTAINTY_NUMBERS, NULL, 1,
     {{"num_crops", VP_SLOT_MAX, 4}}},
    {"ovis2_hf", "ovis2", "covering", VP_IMPL_COVER, 1, 3, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_patches", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 448}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"ovis2_original", "", "covering", VP_IMPL_COVER, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_partition", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 448}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"lfm2_vl", "lfm2.5-vl", "lfm2", VP_IMPL_LFM2, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 5,
     {{"min_tiles", VP_SLOT_MIN, 2}, {"max_tiles", VP_SLOT_MAX, 10}, {"min_image_tokens", VP_SLOT_MIN_TOKENS, 64},
      {"max_image_tokens", VP_SLOT_MAX_TOKENS, 256}, {"do_image_splitting", VP_SLOT_SPLIT, 1},
      {"tile_size", VP_SLOT_TILE, 512}, {"encoder_patch_size", VP_SLOT_PATCH, 16},
      {"downsample_factor", VP_SLOT_MERGE, 2}}},
    {"minicpm_v_2_6", "minicpm-v-2.6 minicpm-o-2.6 minicpm-v-4 minicpm-v-4.5 minicpmv minicpmo", "slices",
     VP_IMPL_SLICE, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_slice_nums", VP_SLOT_MAX, 9}, {"image_feature_size", VP_SLOT_TOKENS, 64},
      {"scale_resolution", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"minicpm_v_4_6", "", "slices", VP_IMPL_SLICE, 1, 3, VP_CERTAINTY_EXECUTED, "16x 4x", 2,
     {{"max_slice_nums", VP_SLOT_MAX, 9}, {"downsample_mode", VP_SLOT_SPLIT, 0},
      {"scale_resolution", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"perception_lm", "plm", "perception", VP_IMPL_PERCEPTION, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_num_tiles", VP_SLOT_MAX, 36}, {"tile_size", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14},
      {"pooling_ratio", VP_SLOT_MERGE, 2}}},
    {"step3p7", "step-3.7 step-3.7-flash", "windows", VP_IMPL_WINDOW, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{"patch_size", VP_SLOT_TILE, 504}, {"max_image_size", VP_SLOT_SIDE, 3024}, {"size", VP_SLOT_MAX, 728}}},
    {"llava_1_5", "llava llava-v1.5", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 576}}},
    {"paligemma_224", "paligemma paligemma2 paligemma2-224", "constant", VP_IMPL_CONSTANT, 0, 0,
     VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 256}}},
    {"paligemma_448", "paligemma2-448", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 1024}}},
    {"paligemma_896", "paligemma2-896", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 4096}}},
    {"gemma3n", "", "constant", VP_IMPL_CONSTANT, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 256}}},
    {"janus", "janus-pro", "constant", VP_IMPL_CONSTANT, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 576}}},
    {"deepseek_vl", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 576}}},
    {"deepseek_vl_hybrid", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 576}}},
    {"got_ocr2_no_crop", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 256}}},
    {"claude", "claude-standard", "claude", VP_IMPL_CLAUDE, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 2,
     {{"max_side", VP_SLOT_SIDE, 1568}, {"max_image_tokens", VP_SLOT_MAX, 1568}}},
    {"claude_high_resolution", "claude-4.7 claude-hi-res", "claude", VP_IMPL_CLAUDE, 0, 0,
     VP_CERTAINTY_DOCUMENTED, NULL, 2,
     {{"max_side", VP_SLOT_SIDE, 2576}, {"max_image_tokens", VP_SLOT_MAX, 4784}}},
    VP_IMPL_OPENAI_TILED("openai_tiles", "gpt-4o gpt-4.1 gpt-4.5", 85, 170),
    VP_IMPL_OPENAI_TILED("openai_tiles_gpt_5", "gpt-5", 70, 140),
    VP_IMPL_OPENAI_TILED("openai_tiles_o", "o1 o3", 75, 150),
    VP_IMPL_OPENAI_TILED("openai_tiles_4o_mini", "gpt-4o-mini", 2833, 5667),
    VP_IMPL_OPENAI_TILED("openai_tiles_computer_use", "computer-use", 65, 129),
    VP_IMPL_OPENAI_PATCHED("openai_patches", "", 1),
    VP_IMPL_OPENAI_PATCHED("openai_patches_mini", "gpt-5-mini gpt-4.1-mini", 1.62),
    VP_IMPL_OPENAI_PATCHED("openai_patches_nano", "gpt-5-nano gpt-4.1-nano", 2.46),
    VP_IMPL_OPENAI_PATCHED("openai_patches_o4_mini", "o4-mini", 1.72),
    {"gemini_2", "gemini-2.0 gemini-2.5", "gemini", VP_IMPL_GEMINI, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 258}}},
};

/* Rounding of quotients that are not negative and below 2^51 to integers. */
static int64_t vp_impl_ceiling(double value) {
    const int64_t whole = (int64_t)value;
    return whole + ((double)whole < value);
}
/* adding 2^52 leaves no bits for the fraction, so the addition rounds to an integer, half to even */
static int64_t vp_impl_half_even(double value) {
    return (int64_t)(vp_impl_rounded(value) + 4503599627370496.0 - 4503599627370496.0);
}
static int64_t vp_impl_least(int64_t one, int64_t other) { return one < other ? one : other; }
static int64_t vp_impl_most(int64_t one, int64_t other) { return one > other ? one : other; }
/* fmod(dividend, divisor) for an integer dividend < 2^24 and a divisor > 1. It is exact and avoids the library's slow
 * long division: the divisor is split into two halves whose products with the quotient have at most 53 bits. */
static double vp_impl_remainder(double dividend, double divisor) {
    double high, rest, quotient = (double)(int64_t)(dividend / divisor);
    uint64_t bits;
    memcpy(&bits, &divisor, sizeof bits);
    bits &= ~UINT64_C(0x7ffffff);
    memcpy(&high, &bits, sizeof high);
    rest = dividend - quotient * high - quotient * (divisor - high);
    if (rest < 0.0) rest += divisor;
    return rest >= divisor ? rest - divisor : rest;
}
/* CPython's dividend // divisor for floats. It differs from floor(dividend / divisor), which can be one more if the
 * quotient is nearly an integer. */
static int64_t vp_impl_floor_division(double dividend, double divisor) {
    const double quotient = (dividend - vp_impl_remainder(dividend, divisor)) / divisor,
                 whole = (double)(int64_t)quotient;
    return (int64_t)(quotient - whole > 0.5 ? whole + 1.0 : whole);
}

/* A rule takes the family and the size and fills the count, whose members start at -1 and token counts at 0. It returns
 * NULL, or the reason why the family's own code rejects the size. */
typedef const char *(*vp_impl_rule)(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c);
static const char vp_impl_no_pixel[] = "a side of the resized image is less than a pixel";

static void vp_impl_resized(vp_vision_count *count, int64_t width, int64_t height) {
    count->resized_width_px = width;
    count->resized_height_px = height;
}
static void vp_impl_cells(vp_vision_count *count, int64_t rows, int64_t cols) {
    count->rows = rows;
    count->cols = cols;
}

/* ---- whole images, resized to multiples of a unit */
static const char *vp_impl_smart_resize(int64_t *width, int64_t *height, int64_t unit, int64_t least, int64_t most,
                                        int how) {
    const double factor = (double)unit, frames = how & VP_IMPL_FRAMES_2 ? 2.0 : 1.0;
    double wide = (double)*width, tall = (double)*height, pixels, beta;
    if ((how & VP_IMPL_ENLARGE) && (tall < factor || wide < factor)) {
        const double scale = factor / tall > factor / wide ? factor / tall : factor / wide;
        tall = (double)(int64_t)(tall * scale);
        wide = (double)(int64_t)(wide * scale);
    }
    if ((how & VP_IMPL_WIDEN) && tall < factor) {
        wide = (double)vp_impl_half_even(wide * factor / tall);
        tall = factor;
    }
    if ((how & VP_IMPL_WIDEN) && wide < factor) {
        tall = (double)vp_impl_half_even(tall * factor / wide);
        wide = factor;
    }
    if ((how & VP_IMPL_RATIO_200) && (wide > tall ? wide / tall : tall / wide) > 200.0)
        return "the sides differ by more than a factor of 200";
    int64_t rounded_w = vp_impl_half_even(wide / factor) * unit;
    int64_t rounded_h = vp_impl_half_even(tall / factor) * unit;
    if (how & VP_IMPL_CLAMP_FIRST) {
        rounded_w = vp_impl_most(rounded_w, unit);
        rounded_h = vp_impl_most(rounded_h, unit);
    }
    pixels = frames * (double)rounded_h * (double)rounded_w;
    if (pixels > (double)most) {
        beta = sqrt(frames * tall * wide / (double)most);
        rounded_h = (int64_t)(tall / beta / factor) * unit;
        rounded_w = (int64_t)(wide / beta / factor) * unit;
        if (how & VP_IMPL_CLAMP_FLOOR) {
            rounded_w = vp_impl_most(rounded_w, unit);
            rounded_h = vp_impl_most(rounded_h, unit);
        }
    } else if (pixels < (double)least) {
        beta = sqrt((double)least / (frames * tall * wide));
        rounded_h = vp_impl_ceiling(tall * beta / factor) * unit;
        rounded_w = vp_impl_ceiling(wide * beta / factor) * unit;
    }
    if (rounded_w < 1 || rounded_h < 1) return vp_impl_no_pixel;
    *width = rounded_w;
    *height = rounded_h;
    return NULL;
}
/* sets the size, the grid of patches, and one feature per merge x merge patches */
static void vp_impl_patches(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t patch = family->value[VP_SLOT_PATCH], merge = family->value[VP_SLOT_MERGE];
    vp_impl_resized(count, width, height);
    vp_impl_cells(count, height / patch, width / patch);
    count->feature_tokens = count->rows / merge * (count->cols / merge);
    count->marker_tokens = family->preset->markers;
}
static const char *vp_impl_count_smart(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t *value = family->value, unit = value[VP_SLOT_PATCH] * value[VP_SLOT_MERGE];
    if ((family->preset->variant & VP_IMPL_AUTO_LIMITS) && value[VP_SLOT_MIN] > value[VP_SLOT_MAX])
        return "max_pixels must not be below min_pixels";
    const char *refused =
        vp_impl_smart_resize(&width, &height, unit, value[VP_SLOT_MIN], value[VP_SLOT_MAX], family->preset->variant);
    if (refused) return refused;
    vp_impl_patches(family, width, height, count);
    if (family->preset->variant & VP_IMPL_ROW_ENDS) count->separator_tokens = count->rows / value[VP_SLOT_MERGE];
    return NULL;
}
/* Kimi: the image is shrunk first and padded to the unit afterwards, so the result may exceed the limit. */
static const char *vp_impl_count_navit(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t *value = family->value, patch = value[VP_SLOT_PATCH], unit = patch * value[VP_SLOT_MERGE];
    const double most = (double)value[VP_SLOT_MAX], side = (double)(value[VP_SLOT_SIDE] * patch);
    double patches, scale = 1.0;
    if (family->preset->variant) { /* the first generation rejects long sides instead of scaling them */
        patches = (double)(width / patch) * (double)(height / patch);
        if (patches > most) {
            scale = sqrt(most / patches);
            width = (int64_t)((double)width * scale);
            height = (int64_t)((double)height * scale);
        }
        width = (width + unit - 1) / unit * unit;
        height = (height + unit - 1) / unit * unit;
        if (width < 1 || height < 1) return vp_impl_no_pixel;
        if (vp_impl_most(width, height) / patch >= value[VP_SLOT_SIDE]) return "a side has too many patches";
    } else {
        patches = (double)vp_impl_most(1, height / patch) * (double)vp_impl_most(1, width / patch);
        if (sqrt(most / patches) < scale) scale = sqrt(most / patches);
        if (side / (double)height < scale) scale = side / (double)height;
        if (side / (double)width < scale) scale = side / (double)width;
        height = vp_impl_least(vp_impl_most(1, (int64_t)((double)height * scale)), (int64_t)side);
        width = vp_impl_least(vp_impl_most(1, (int64_t)((double)width * scale)), (int64_t)side);
        height = (height + unit - 1) / unit * unit;
        width = (width + unit - 1) / unit * unit;
    }
    vp_impl_patches(family, width, height, count);
    return NULL;
}
/* GLM-5: sides are rounded up to multiples of the unit. Over the budget, bisection finds the largest height that fits
 * after rounding. */
static const char *vp_impl_count_budget(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t unit = family->value[VP_SLOT_PATCH] * family->value[VP_SLOT_MERGE],
                  least = family->value[VP_SLOT_MIN], most = family->value[VP_SLOT_MAX];
    int64_t rows = (height + unit - 1) / unit, cols = (width + unit - 1) / unit, low = 1, high = height;
    if (rows * cols < least) {
        const double scale = sqrt((double)(least * 2 * unit * unit) / (2.0 * (double)height * (double)width));
        rows = (vp_impl_most(1, vp_impl_ceiling((double)height * scale)) + unit - 1) / unit;
        cols = (vp_impl_most(1, vp_impl_ceiling((double)width * scale)) + unit - 1) / unit;
    }
    if (rows * cols > most) {
        rows = cols = 1;
        while (low <= high) {
            const int64_t middle = (low + high) / 2;
            const int64_t other = vp_impl_most(1, (int64_t)((double)(width * middle) / (double)height));
            const int64_t middle_rows = (middle + unit - 1) / unit, other_cols = (other + unit - 1) / unit;
            if (middle_rows * other_cols <= most) {
                rows = middle_rows;
                cols = other_cols;
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
    }
    vp_impl_patches(family, cols * unit, rows * unit, count);
    return NULL;
}
/* CPython iterates over sets in hash table order. If two grids are equally good, this order decides. */
static uint64_t vp_impl_pair_hash(uint64_t first, uint64_t second) { /* hash of a tuple of two small integers */
    const uint64_t one = UINT64_C(11400714785074694791), two = UINT64_C(14029467366897019727),
                   five = UINT64_C(2870177450012600261);
    uint64_t hash = five + first * two;
    hash = (hash << 31 | hash >> 33) * one + second * two;
    return (hash << 31 | hash >> 33) * one + (2 ^ (five ^ UINT64_C(3527539)));
}
/* Inserts a new element's index into a table of mask + 1 slots; free slots are -1. */
static void vp_impl_set_insert(int16_t *table, uint64_t mask, uint64_t hash, int16_t index) {
    uint64_t perturb = hash, place = hash & mask, i;
    for (;;) {
        for (i = place; i <= place + (place + 9 <= mask ? 9 : 0); i++) {
            if (table[i] >= 0) continue;
            table[i] = index;
            return;
        }
        perturb >>= 5;
        place = (place * 5 + 1 + perturb) & mask;
    }
}
/* Muse Glimmer: the grid below or above the ideal one with the nearest aspect ratio. For squares two of them tie; the
 * iteration order of CPython's set of pairs then decides. */
static const char *vp_impl_count_muse(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t unit = family->value[VP_SLOT_PATCH] * family->value[VP_SLOT_MERGE];
    const double most = (double)family->value[VP_SLOT_MAX], aspect = (double)height / (double)width;
    double ideal_rows = (double)height / (double)unit, ideal_cols = (double)width / (double)unit, best = INFINITY;
    int64_t rows[2], cols[2], best_rows = 0, best_cols = 0;
    int16_t set[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, i;
    if (ideal_rows * ideal_cols > most) {
        const double ratio = ideal_cols / ideal_rows;
        ideal_rows = pow(most / ratio, 0.5);
        ideal_cols = ideal_rows * ratio;
    }
    rows[0] = (int64_t)ideal_rows;
    cols[0] = (int64_t)ideal_cols;
    rows[1] = vp_impl_ceiling(ideal_rows);
    cols[1] = vp_impl_ceiling(ideal_cols);
    for (i = 0; i < 4; i++) {
        if ((i >> 1 && rows[0] == rows[1]) || ((i & 1) && cols[0] == cols[1])) continue; /* a duplicate pair */
        vp_impl_set_insert(set, 7, vp_impl_pair_hash((uint64_t)rows[i >> 1], (uint64_t)cols[i & 1]), i);
    }
    for (i = 0; i < 8; i++) {
        const int64_t grid_rows = set[i] < 0 ? 0 : rows[set[i] >> 1], grid_cols = set[i] < 0 ? 0 : cols[set[i] & 1];
        if (grid_rows < 1 || grid_cols < 1 || (double)(grid_rows * grid_cols) > most) continue;
        double distance = fabs((double)grid_rows / (double)grid_cols - aspect);
        if (distance < best) {
            best = distance;
            best_rows = grid_rows;
            best_cols = grid_cols;
        }
    }
    if (!best_rows) {
        best_rows = vp_impl_most(1, vp_impl_half_even(ideal_rows));
        best_cols = vp_impl_most(1, vp_impl_half_even(ideal_cols));
    }
    vp_impl_patches(family, best_cols * unit, best_rows * unit, count);
    return NULL;
}
/* a side of Nemotron's grid as a multiple of merge; rounded up if the limit allows it */
static int64_t vp_impl_even_side(int64_t side, int64_t other, int64_t merge, int64_t most) {
    const int64_t rest = side % merge;
    if (!rest) return side;
    return (side + merge - rest) * other <= most ? side + merge - rest : vp_impl_most(merge, side - rest);
}
static const char *vp_impl_count_nemotron(const vp_family *family, int64_t width, int64_t height,
                                          vp_vision_count *count) {
    const int64_t *value = family->value, patch = value[VP_SLOT_PATCH], merge = value[VP_SLOT_MERGE],
                  least = value[VP_SLOT_MIN];
    const int64_t length = vp_impl_most((value[VP_SLOT_SIDE] - 4) * merge * merge, least);
    const int64_t most = vp_impl_most(vp_impl_least(length, value[VP_SLOT_MAX]), least);
    int64_t rows = vp_impl_half_even((double)height / (double)patch + 0.5),
            cols = vp_impl_half_even((double)width / (double)patch + 0.5);
    if (rows * cols < 1) return vp_impl_no_pixel;
    double factor = sqrt((double)most / (double)(rows * cols));
    if (factor < 1.0) {
        rows = (int64_t)(factor * (double)rows);
        cols = (int64_t)(factor * (double)cols);
    }
    if (rows * cols < 1) return vp_impl_no_pixel;
    if (most > least && rows * cols < least) {
        factor = sqrt((double)least / (double)(rows * cols));
        rows = vp_impl_ceiling(factor * (double)rows);
        cols = vp_impl_ceiling(factor * (double)cols);
    }
    rows = vp_impl_even_side(rows, cols, merge, most);
    cols = vp_impl_even_side(cols, rows, merge, most);
    vp_impl_patches(family, cols * patch, rows * patch, count);
    return NULL;
}
/* Gemma 4: the image is scaled up or down to as many pixels as the budget allows. */
static const char *vp_impl_count_pooled(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t merge = family->value[VP_SLOT_MERGE], patch = family->value[VP_SLOT_PATCH], unit = merge * patch,
                  soft = family->value[VP_SLOT_MAX];
    const double wide = (double)width, tall = (double)height, pixels = (double)(soft * unit * unit),
                 factor = sqrt(pixels / (tall * wide));
    int64_t rows = (int64_t)(factor * tall / (double)unit), cols = (int64_t)(factor * wide / (double)unit);
    if (!rows && !cols) return vp_impl_no_pixel;
    if (!rows) {
        rows = 1;
        cols = vp_impl_least(width / height, soft);
    } else if (!cols) {
        cols = 1;
        rows = vp_impl_least(height / width, soft);
    }
    if (rows * cols > soft) return "the resized image exceeds the budget";
    vp_impl_resized(count, cols * unit, rows * unit);
    vp_impl_cells(count, rows, cols);
    count->feature_tokens = rows * cols;
    count->marker_tokens = family->preset->markers;
    return NULL;
}
/* Pixtral: the image fits into a square, then its sides are rounded up to multiples of the unit. */
static const char *vp_impl_count_longest(const vp_family *family, int64_t width, int64_t height,
                                         vp_vision_count *count) {
    const int64_t unit = family->value[VP_SLOT_PATCH] * family->value[VP_SLOT_MERGE];
    const double side = (double)family->value[VP_SLOT_SIDE], tall = (double)height / side, wide = (double)width / side;
    const double ratio = tall > wide ? tall : wide;
    if (ratio > 1.0 && family->preset->variant) {
        width = vp_impl_most(1, vp_impl_half_even((double)width / ratio));
        height = vp_impl_most(1, vp_impl_half_even((double)height / ratio));
    } else if (ratio > 1.0) {
        width = (int64_t)((double)width / ratio);
        height = (int64_t)((double)height / ratio);
    }
    if (width < 1 || height < 1) return vp_impl_no_pixel;
    vp_impl_cells(count, (height - 1) / unit + 1, (width - 1) / unit + 1);
    vp_impl_resized(count, count->cols * unit, count->rows * unit);
    count->feature_tokens = count->rows * count->cols;
    count->separator_tokens = count->rows - 1;
    count->marker_tokens = 1;
    return NULL;
}
/* Step 3.7: one squashed view, and windows whose side is 504 pixels or the short side. */
static int64_t vp_impl_window_side(int64_t side, int64_t window) {
    if (side < window) return side;
    return window * (side / window + ((double)(side % window) > 0.2 * (double)window));
}
static const char *vp_impl_count_window(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t patch = family->value[VP_SLOT_TILE], limit = family->value[VP_SLOT_SIDE],
                  size = family->value[VP_SLOT_MAX];
    int64_t small = vp_impl_least(width, height), large = vp_impl_most(width, height), window = patch, rows = 0,
            cols = 0;
    double ratio = (double)large / (double)small;
    if (small < 32 && ratio > 4.0) width = height = large;
    if (large > limit) {
        const double scale = (double)limit / (double)large;
        width = (int64_t)((double)width * scale);
        height = (int64_t)((double)height * scale);
    }
    small = vp_impl_least(width, height);
    large = vp_impl_most(width, height);
    if (small < 1) return vp_impl_no_pixel;
    ratio = (double)large / (double)small;
    if (large <= size) window = ratio > 1.5 ? small : 0;
    else if (ratio > 4.0) window = vp_impl_least(small, patch);
    if (window) {
        rows = vp_impl_most(1, vp_impl_window_side(height, window) / window);
        cols = vp_impl_most(1, vp_impl_window_side(width, window) / window);
    }
    vp_impl_resized(count, width, height);
    vp_impl_cells(count, rows, cols);
    count->views = rows * cols + 1;
    count->feature_tokens = (size / 56) * (size / 56) + rows * cols * (patch / 56) * (patch / 56);
    count->separator_tokens = rows ? rows - 1 : 0;
    count->marker_tokens = 2 * count->views;
    return NULL;
}
static const char *vp_impl_count_pan(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t crop = family->value[VP_SLOT_TILE], small = vp_impl_least(width, height),
                  large = vp_impl_most(width, height);
    const double ratio = (double)large / (double)small;
    int64_t crops = 0;
    if (family->value[VP_SLOT_SPLIT] && !(ratio < family->ratio)) {
        crops = vp_impl_least(family->value[VP_SLOT_MAX],
                              vp_impl_most(2, vp_impl_least(large / crop, (int64_t)(ratio + 0.5))));
        if (vp_impl_least((large + crops - 1) / crops, small) < crop) crops = 0;
    }
    vp_impl_cells(count, width >= height && crops ? 1 : crops, width >= height ? crops : crops > 0);
    count->views = crops + 1;
    count->feature_tokens = family->value[VP_SLOT_TOKENS] * count->views;
    count->marker_tokens = 2 * count->views;
    return NULL;
}
static const char *vp_impl_count_constant(const vp_family *family, int64_t width, int64_t height,
                                          vp_vision_count *count) {
    (void)width;
    (void)height;
    count->views = 1;
    count->feature_tokens = family->value[VP_SLOT_TOKENS];
    count->marker_tokens = family->preset->markers;
    return NULL;
}

/* ---- tiles: the grid with the nearest aspect ratio */
/* InternVL's search over the grids in order of tile count. Among equal distances, a later grid wins if the image has
 * more than half of the grid's pixels. */
static void vp_impl_closest(const vp_family *family, int64_t width, int64_t height, int64_t *rows, int64_t *cols) {
    const double tile = (double)family->value[VP_SLOT_TILE], aspect = (double)width / (double)height,
                 area = (double)width * (double)height;
    const double half = 0.5 * tile * tile;
    double best = INFINITY;
    int32_t i, found = -1;
    for (i = 0; i < family->grid_count; i++) {
        const double distance = fabs(aspect - family->grid_ratio[i]);
        if (distance > best) continue;
        if (distance < best || area > half * (double)(family->grid_cols[i] * family->grid_rows[i])) {
            best = distance;
            found = i;
        }
    }
    *rows = found < 0 ? 1 : family->grid_rows[found];
    *cols = found < 0 ? 1 : family->grid_cols[found];
}
static const char *vp_impl_count_closest(const vp_family *family, int64_t width, int64_t height,
                                         vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE];
    vp_impl_closest(family, width, height, &count->rows, &count->cols);
    vp_impl_resized(count, count->cols * tile, count->rows * tile);
    count->views = count->rows * count->cols + (count->rows * count->cols > 1);
    count->feature_tokens = count->views * family->value[VP_SLOT_TOKENS];
    count->marker_tokens = family->preset->markers;
    if (family->preset->variant == VP_IMPL_TAGS) count->separator_tokens = count->views;
    if (family->preset->variant == VP_IMPL_DOCLING) {
        count->separator_tokens = count->rows * (2 * count->cols + 1);
        if (count->views == 1) count->marker_tokens = 0;
    }
    return NULL;
}
static const char *vp_impl_count_ocr(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t *value = family->value, tile = value[VP_SLOT_TILE], side = value[VP_SLOT_SIDE],
                  unit = value[VP_SLOT_PATCH], ratio = value[VP_SLOT_MERGE];
    const int exact = family->preset->variant; /* the other variant floors the division by the patch first */
    const int64_t whole = exact ? (side + unit * ratio - 1) / (unit * ratio) : (side / unit + ratio - 1) / ratio;
    const int64_t part = exact ? (tile + unit * ratio - 1) / (unit * ratio) : (tile / unit + ratio - 1) / ratio;
    const int64_t small = vp_impl_least(width, height), large = vp_impl_most(width, height);
    if (vp_impl_half_even((double)small * ((double)side / (double)large)) < 1) return vp_impl_no_pixel;
    vp_impl_cells(count, 1, 1);
    count->views = 1;
    count->feature_tokens = whole * whole;
    count->separator_tokens = family->preset->variant ? 1 : whole + 1;
    if (large <= tile) return NULL;
    vp_impl_closest(family, width, height, &count->rows, &count->cols);
    vp_impl_resized(count, count->cols * tile, count->rows * tile);
    count->views += count->rows * count->cols;
    count->feature_tokens += count->rows * count->cols * part * part;
    if (!family->preset->variant) count->separator_tokens += count->rows * part;
    return NULL;
}
static const char *vp_impl_count_lfm2(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t *value = family->value, patch = value[VP_SLOT_PATCH], merge = value[VP_SLOT_MERGE],
                  unit = patch * merge, side = value[VP_SLOT_TILE] / patch;
    const int64_t per_tile = (side + merge - 1) / merge * ((side + merge - 1) / merge);
    const int64_t rounded_width = vp_impl_most(patch, vp_impl_half_even((double)width / (double)unit) * unit);
    const int64_t rounded_height = vp_impl_most(patch, vp_impl_half_even((double)height / (double)unit) * unit);
    const int split = value[VP_SLOT_SPLIT] && !(value[VP_SLOT_MIN] == 1 && value[VP_SLOT_MAX] == 1);
    int64_t view_w = width, view_h = height;
    if (value[VP_SLOT_SPLIT] && value[VP_SLOT_MIN] > value[VP_SLOT_MAX]) return "max_tiles must not be below min_tiles";
    vp_impl_smart_resize(&view_w, &view_h, unit, value[VP_SLOT_MIN_TOKENS] * unit * unit,
                         value[VP_SLOT_MAX_TOKENS] * unit * unit, VP_IMPL_CLAMP_FIRST | VP_IMPL_CLAMP_FLOOR);
    vp_impl_cells(count, 1, 1);
    if (split
        && (double)rounded_width * (double)rounded_height > (double)(value[VP_SLOT_MAX_TOKENS] * unit * unit) * 2.0) {
        vp_impl_closest(family, width, height, &count->rows, &count->cols);
        if (count->rows * count->cols == 1) view_w = view_h = value[VP_SLOT_TILE]; /* the only tile, no thumbnail */
    }
    vp_impl_resized(count, view_w, view_h);
    count->views = 1;
    count->feature_tokens = view_w / unit * (view_h / unit);
    count->marker_tokens = family->preset->markers;
    if (count->rows * count->cols > 1) {
        if (value[VP_SLOT_SIDE]) count->views = count->feature_tokens = 0; /* without a thumbnail */
        count->views += count->rows * count->cols;
        count->feature_tokens += count->rows * count->cols * per_tile;
        count->separator_tokens = count->views;
    }
    return NULL;
}
static const char *vp_impl_count_phi4(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE], patch = family->value[VP_SLOT_PATCH], side = tile / patch;
    int64_t rows = (height + tile - 1) / tile, cols = (width + tile - 1) / tile, new_width, new_height, valid_cols,
            valid_rows;
    if (rows * cols > family->value[VP_SLOT_MAX]) vp_impl_closest(family, width, height, &rows, &cols);
    new_width = tile * cols;
    new_height = tile * rows;
    double wide = (double)new_width / (double)width;
    double tall = (double)new_height / (double)height;
    if (wide < tall) new_height = (int64_t)((double)height * wide);
    else new_width = (int64_t)((double)width * tall);
    if (new_height < 10 || new_width < 10) return "the resized image has a side below 10 pixels"; /* a tile is more */
    valid_cols = side * cols - (tile * cols - new_width) / patch;
    valid_rows = side * rows - (tile * rows - new_height) / patch;
    vp_impl_resized(count, tile * cols, tile * rows);
    vp_impl_cells(count, rows, cols);
    count->views = rows * cols + 1;
    count->feature_tokens = 256 + (valid_rows + 1) / 2 * ((valid_cols + 1) / 2);
    count->separator_tokens = 16 + (valid_rows + 1) / 2 + 1;
    return NULL;
}
/* Phi-3.5: the image is scaled up until the crops are used up; each row of tiles adds newline tokens. */
static const char *vp_impl_count_phi3(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int tall = width < height;
    const double ratio = (double)vp_impl_most(width, height) / (double)vp_impl_least(width, height);
    int64_t scale = 1, other;
    while (scale * vp_impl_ceiling((double)scale / ratio) <= family->value[VP_SLOT_MAX]) scale++;
    scale--;
    other = ((int64_t)((double)(scale * 336) / ratio) + 335) / 336;
    if (other < 1) return vp_impl_no_pixel;
    vp_impl_cells(count, tall ? scale : other, tall ? other : scale);
    vp_impl_resized(count, count->cols * 336, count->rows * 336);
    count->views = count->rows * count->cols + 1;
    count->feature_tokens = count->views * 144;
    count->separator_tokens = 1 + (count->rows + 1) * 12;
    return NULL;
}

/* ---- tiles: the canvas that the image fits */
/* Among grids of at most `most` tiles, the smallest scale >= 1 wins, or if there is none, the largest. Ties go to the
 * first grid with the fewest tiles. As in vp_impl_adaptive, the tilings that come first for their scale form a path.
 * Quotients are compared as the original rounds them, in float32 or double. */
static void vp_impl_fit_tiles(double width, double height, int64_t tile, int64_t most, int narrow, int64_t *rows,
                              int64_t *cols) {
    int64_t row_count = 1, col_count = 1;
    /* only for Molmo, whose sizes exclude the margin: every scale is negative, and that of 1x1 is the largest */
    if (width < 0.0 || height < 0.0) {
        *rows = *cols = 1;
        return;
    }
    for (;;) {
        const double tall = height > 0.0 ? (narrow ? (double)((float)(tile * row_count) / (float)height)
                                                   : (double)(tile * row_count) / height)
                                         : INFINITY;
        const double wide = width > 0.0 ? (narrow ? (double)((float)(tile * col_count) / (float)width)
                                                  : (double)(tile * col_count) / width)
                                        : INFINITY;
        *rows = row_count;
        *cols = col_count;
        if (tall >= 1.0 && wide >= 1.0) return;
        row_count += tall <= wide;
        col_count += wide <= tall;
        if (row_count * col_count > most) return;
    }
}
/* Llama 3.2: the size of the image inside its canvas */
static void vp_impl_inside(int64_t width, int64_t height, int64_t tile, vp_vision_count *count) {
    const int64_t target_w = vp_impl_least(vp_impl_most(width, tile), count->cols * tile);
    const int64_t target_h = vp_impl_least(vp_impl_most(height, tile), count->rows * tile);
    const double tall = (double)target_h / (double)height, wide = (double)target_w / (double)width;
    if (wide < tall)
        vp_impl_resized(count, target_w, vp_impl_least(vp_impl_most(1, (int64_t)((double)height * wide)), target_h));
    else vp_impl_resized(count, vp_impl_least(vp_impl_most(1, (int64_t)((double)width * tall)), target_w), target_h);
}
static const char *vp_impl_count_fit(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t *value = family->value, tile = value[VP_SLOT_TILE],
                  side = value[VP_SLOT_PATCH] ? tile / value[VP_SLOT_PATCH] : 0;
    const int variant = family->preset->variant, narrow = variant == VP_IMPL_LLAMA4 || variant == VP_IMPL_MOLMO2;
    const int64_t margin = variant == VP_IMPL_MOLMO2 ? 112 : 0, window = variant == VP_IMPL_MOLMO2 ? 266 : tile;
    vp_impl_fit_tiles((double)(width - margin), (double)(height - margin), window, value[VP_SLOT_MAX], narrow,
                      &count->rows, &count->cols);
    int64_t tiles = count->rows * count->cols;
    vp_impl_resized(count, count->cols * window + margin, count->rows * window + margin);
    count->views = tiles + (tiles > 1);
    count->marker_tokens = family->preset->markers;
    if (variant == VP_IMPL_COHERE) {
        count->feature_tokens = count->views * value[VP_SLOT_TOKENS];
        count->separator_tokens = count->views;
    } else if (variant == VP_IMPL_LLAMA4) {
        count->feature_tokens = count->views * (side * side / (value[VP_SLOT_MERGE] * value[VP_SLOT_MERGE]));
        count->separator_tokens = tiles > 1 ? tiles : 0;
    } else if (variant == VP_IMPL_MLLAMA) { /* cross-attention: the sequence itself has one token */
        vp_impl_inside(width, height, tile, count);
        count->views = tiles;
        count->feature_tokens = tiles * (side * side + 1);
        count->total_tokens = 1;
    } else {
        const int64_t token_rows = (19 * count->rows + 9) / 2, token_cols = (19 * count->cols + 9) / 2;
        count->views = tiles + 1;
        count->feature_tokens = 196 + token_rows * token_cols;
        count->separator_tokens = token_rows + (value[VP_SLOT_SPLIT] ? 14 : 0);
    }
    return NULL;
}
static const char *vp_impl_count_molmo(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const vp_geometry geometry = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_layout layout;
    memset(&layout, 0, sizeof layout); /* gcc 12 at -O3 cannot tell that it is initialized after VP_OK */
    options.max_crops = (int32_t)family->value[VP_SLOT_MAX];
    if (vp_layout_compute(&geometry, &options, (int32_t)width, (int32_t)height, &layout, NULL) != VP_OK)
        return vp_impl_no_pixel;
    vp_impl_resized(count, layout.resized_width_px, layout.resized_height_px);
    vp_impl_cells(count, layout.tiling.rows, layout.tiling.cols);
    count->views = layout.views;
    count->feature_tokens = layout.feature_tokens;
    count->separator_tokens = layout.col_tokens;
    count->marker_tokens = layout.marker_tokens;
    return NULL;
}

/* select_best_resolution of transformers and LLaVA: keep the most pixels of the image, then waste the fewest; of
 * equals, take the first. The grids are sorted by area, and grids of equal area are in the configuration's order. Large
 * grids are examined first, which rules out most others before any rounding. */
static void vp_impl_best_canvas(const vp_family *family, int64_t width, int64_t height, int64_t *rows, int64_t *cols) {
    const double image_width = (double)width, image_height = (double)height, tile = (double)family->value[VP_SLOT_TILE],
                 area = image_width * image_height;
    double wide[17], tall[17], best = 0.0, least_waste = INFINITY;
    for (int32_t i = 1; i <= family->grid_side; i++) {
        wide[i] = (double)i * tile / image_width;
        tall[i] = (double)i * tile / image_height;
    }
    *rows = *cols = 1;
    for (int32_t i = family->grid_count - 1; i >= 0; i--) {
        const int32_t grid_rows = family->grid_rows[i], grid_cols = family->grid_cols[i];
        const double scale = wide[grid_cols] < tall[grid_rows] ? wide[grid_cols] : tall[grid_rows],
                     across = image_width * scale, down = image_height * scale;
        if (across * down < best) continue; /* truncated sides cannot give more */
        double kept = (double)(int64_t)across * (double)(int64_t)down;
        if (kept > area) kept = area;
        double waste = (double)(grid_rows * grid_cols) * tile * tile - kept;
        if (kept > best || (kept == best && waste <= least_waste)) { /* the first of equals is kept */
            best = kept;
            least_waste = waste;
            *rows = grid_rows;
            *cols = grid_cols;
        }
    }
}
/* LLaVA-NeXT, OneVision: a base view, and the patches of the canvas without its padding; each row has an end token. */
static const char *vp_impl_count_anyres(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE], side = family->value[VP_SLOT_TOKENS];
    const int original = family->preset->variant == VP_IMPL_WIDTH_FIRST;
    int64_t rows, cols, kept;
    vp_impl_best_canvas(family, width, height, &count->rows, &count->cols);
    rows = count->rows * side;
    cols = count->cols * side;
    /* transformers' int(round(x, 7)) is the exact floor up to 2^24 pixels */
    if ((double)width / (double)height > (double)cols / (double)rows) {
        kept = original ? (int64_t)((double)height * ((double)cols / (double)width)) : height * cols / width;
        rows -= (rows - kept) / 2 * 2;
    } else {
        kept = original ? (int64_t)((double)width * ((double)rows / (double)height)) : width * rows / height;
        cols -= (cols - kept) / 2 * 2;
    }
    if (family->preset->variant == VP_IMPL_ONEVISION) {
        const double ratio = sqrt((double)(rows * cols) / (double)(family->value[VP_SLOT_MAX] * side * side));
        if (ratio > 1.1) {
            rows = vp_impl_floor_division((double)rows, ratio);
            cols = vp_impl_floor_division((double)cols, ratio);
        }
    }
    vp_impl_resized(count, count->cols * tile, count->rows * tile);
    count->views = count->rows * count->cols + 1;
    count->feature_tokens = side * side + rows * cols;
    count->separator_tokens = rows;
    return NULL;
}
static const char *vp_impl_count_canvas(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t *value = family->value, tile = value[VP_SLOT_TILE], side = value[VP_SLOT_SIDE];
    int64_t rows = 1, cols = 1, local;
    if (value[VP_SLOT_SPLIT]) vp_impl_best_canvas(family, width, height, &rows, &cols);
    if (family->preset->variant == VP_IMPL_ARIA) {
        count->views = 1;
        if (value[VP_SLOT_SPLIT]) {
            vp_impl_resized(count, cols * tile, rows * tile);
            count->views = (cols * tile + side - 1) / side * ((rows * tile + side - 1) / side);
        }
        count->feature_tokens = count->views * (side == 980 ? 256 : 128);
        return NULL;
    }
    local = (tile / value[VP_SLOT_PATCH] + value[VP_SLOT_MERGE] - 1) / value[VP_SLOT_MERGE];
    vp_impl_resized(count, cols * tile, rows * tile);
    vp_impl_cells(count, rows, cols);
    count->views = rows * cols + 1;
    count->feature_tokens = local * local + rows * cols * local * local;
    count->separator_tokens = local + rows * local + 1;
    return NULL;
}
/* Idefics3: the longest side is scaled up or down to a fixed length; then both sides are rounded up to tiles.
 * Rounding may make the other side the longer one. */
static const char *vp_impl_count_split(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE], side = family->value[VP_SLOT_SIDE];
    double aspect = (double)width / (double)height;
    if (width >= height) {
        width = side;
        height = (int64_t)((double)side / aspect);
        height = vp_impl_most(1, height + (height & 1));
    } else {
        height = side;
        width = (int64_t)((double)side * aspect);
        width = vp_impl_most(1, width + (width & 1));
    }
    aspect = (double)width / (double)height;
    if (width >= height && width > 4096) {
        width = 4096;
        height = vp_impl_most(1, (int64_t)(4096.0 / aspect));
    } else if (height > width && height > 4096) {
        height = 4096;
        width = vp_impl_most(1, (int64_t)(4096.0 * aspect));
    }
    aspect = (double)width / (double)height;
    if (!family->value[VP_SLOT_SPLIT]) {
        vp_impl_cells(count, 1, 1); /* the image is squeezed to one view */
    } else if (width >= height) {
        count->cols = (width + tile - 1) / tile;
        count->rows = ((int64_t)((double)(count->cols * tile) / aspect) + tile - 1) / tile;
    } else {
        count->rows = (height + tile - 1) / tile;
        count->cols = ((int64_t)((double)(count->rows * tile) * aspect) + tile - 1) / tile;
    }
    if (count->rows < 1 || count->cols < 1) return vp_impl_no_pixel;
    vp_impl_resized(count, count->cols * tile, count->rows * tile);
    count->views = 1;
    count->marker_tokens = family->preset->markers;
    if (count->rows > 1 || count->cols > 1) {
        count->views += count->rows * count->cols;
        count->separator_tokens = count->rows * (2 * count->cols + 1);
    } else {
        vp_impl_cells(count, 0, 0);
    }
    count->feature_tokens = count->views * family->value[VP_SLOT_TOKENS];
    return NULL;
}
/* Ovis2: the number of pixels that a tile keeps of its part of the image */
static double vp_impl_kept(int64_t width, int64_t height, int64_t tile) {
    const double large = (double)vp_impl_most(width, height), small = (double)vp_impl_least(width, height),
                 side = (double)tile;
    return large > side ? small / large * side * side : large * small;
}
/* The grid with the fewest tiles that keeps more than nine tenths of the image; if none does, the grid that keeps
 * most. */
static const char *vp_impl_count_cover(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE];
    double best = -1.0, enough = -1.0;
    int32_t i, found = 0, tiles = 0;
    for (i = 0; i < family->grid_count; i++) {
        /* the original sorts by area, then rows */
        const int32_t rows = family->grid_cols[i], cols = family->grid_rows[i];
        const int64_t row = height / rows, col = width / cols, last_row = height - row * (rows - 1),
                      last_col = width - col * (cols - 1);
        const double inner = vp_impl_kept(col, row, tile), right = vp_impl_kept(last_col, row, tile);
        const double below = vp_impl_kept(col, last_row, tile), corner = vp_impl_kept(last_col, last_row, tile);
        double sum = 0.0, share;
        if (tiles && rows * cols > tiles) break;
        for (int32_t r = 0; r < rows; r++) {
            for (int32_t k = 0; k + 1 < cols; k++) sum += r + 1 < rows ? inner : below;
            sum += r + 1 < rows ? right : corner;
        }
        share = sum / ((double)width * (double)height);
        if (share > 0.9 && share > enough) {
            enough = share;
            tiles = rows * cols;
            found = i;
        }
        if (!tiles && share > best) {
            best = share;
            found = i;
        }
    }
    if (family->preset->variant) { /* transformers swaps rows and columns */
        vp_impl_cells(count, family->grid_rows[found], family->grid_cols[found]);
        vp_impl_resized(count, count->cols * tile, count->rows * tile);
    } else {
        vp_impl_cells(count, family->grid_cols[found], family->grid_rows[found]);
    }
    count->views = count->rows * count->cols + (count->rows * count->cols > 1);
    count->feature_tokens = count->views * family->value[VP_SLOT_TOKENS];
    count->separator_tokens = count->rows * count->cols - 1;
    count->marker_tokens = family->preset->markers;
    return NULL;
}

/* ---- MiniCPM-V: an overview and slices */
static int64_t vp_impl_slice_side(double side, int64_t unit) {
    return vp_impl_most(unit, vp_impl_half_even(side / (double)unit) * unit);
}
static void vp_impl_slice_size(double width, double height, double scale, int scaled, int64_t unit, int64_t size[2]) {
    if (scaled || height * width > scale * scale) {
        const double aspect = width / height;
        height = (double)(int64_t)(scale / sqrt(aspect));
        width = (double)(int64_t)(height * aspect);
    }
    size[0] = vp_impl_slice_side(width, unit);
    size[1] = vp_impl_slice_side(height, unit);
}
/* The grid whose log aspect ratio is nearest to the image's, with about as many slices as areas of scale x scale fit
 * into the image. Version 2.6 tries ascending columns and keeps the first on a tie; 4.6 tries ascending rows and
 * prefers more rows on a tie. */
static void vp_impl_slice_grid(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const double scale = (double)family->value[VP_SLOT_TILE], aspect = log((double)width / (double)height);
    const int64_t most = family->value[VP_SLOT_MAX];
    const double areas = (double)(width * height) / (scale * scale);
    const int64_t slices = areas > (double)most ? most : vp_impl_ceiling(areas);
    double best = INFINITY;
    vp_impl_cells(count, 0, 0);
    if (slices <= 1) return;
    vp_impl_cells(count, 1, 1);
    for (int64_t n = slices - 1; n <= slices + 1; n++) {
        if (n == 1 || n > most) continue;
        int32_t first = family->grid_first[n];
        int32_t grid_count = family->grid_first[n + 1] - first;
        for (int32_t i = 0; i < grid_count; i++) {
            const int32_t at = family->preset->variant ? first + grid_count - 1 - i : first + i;
            const double distance = fabs(aspect - family->grid_ratio[at]);
            if (distance < best
                || (family->preset->variant && distance == best && family->grid_rows[at] > count->rows)) {
                best = distance;
                vp_impl_cells(count, family->grid_rows[at], family->grid_cols[at]);
            }
        }
    }
}
static const char *vp_impl_count_slice(const vp_family *family, int64_t width, int64_t height, vp_vision_count *count) {
    const double scale = (double)family->value[VP_SLOT_TILE];
    const int64_t patch = family->value[VP_SLOT_PATCH],
                  merge = !family->preset->variant       ? 1
                          : family->value[VP_SLOT_SPLIT] ? 2
                                                         : 4,
                  unit = patch * merge;
    int64_t size[2], part[2], slices;
    vp_impl_slice_grid(family, width, height, count);
    slices = count->rows * count->cols;
    vp_impl_slice_size((double)width, (double)height, scale, !slices, unit, size);
    vp_impl_resized(count, size[0], size[1]);
    count->views = slices + 1;
    count->separator_tokens = slices ? count->rows - 1 : 0;
    count->marker_tokens = 2 * count->views + family->preset->markers;
    if (!family->preset->variant) {
        count->feature_tokens = count->views * family->value[VP_SLOT_TOKENS];
        return NULL;
    }
    count->feature_tokens = size[0] / unit * (size[1] / unit);
    if (slices) {
        const double across = (double)vp_impl_slice_side((double)width, count->cols) / (double)count->cols;
        const double down = (double)vp_impl_slice_side((double)height, count->rows) / (double)count->rows;
        vp_impl_slice_size(across, down, scale, 1, unit, part);
        count->feature_tokens += slices * (part[0] / unit) * (part[1] / unit);
    }
    return NULL;
}
/* Perception-LM: the canvas that fits the whole image at the largest scale. If there is none, the largest canvas of the
 * nearest smaller aspect ratio. */
static const char *vp_impl_count_perception(const vp_family *family, int64_t width, int64_t height,
                                            vp_vision_count *count) {
    const int64_t tile = family->value[VP_SLOT_TILE],
                  side = tile / family->value[VP_SLOT_PATCH] / family->value[VP_SLOT_MERGE];
    const int64_t least_cols = (width + tile - 1) / tile, least_rows = (height + tile - 1) / tile;
    const double image_width = (double)width, image_height = (double)height, aspect = image_width / image_height;
    double best = -1.0, nearest = INFINITY;
    int32_t i, found = -1;
    for (i = 0; i < family->grid_count; i++) {
        const double across = (double)(family->grid_cols[i] * tile), down = (double)(family->grid_rows[i] * tile);
        if (family->grid_cols[i] < least_cols || family->grid_rows[i] < least_rows) continue;
        double scale = across / image_width < down / image_height ? across / image_width : down / image_height;
        double grown = aspect > 1.0   ? (double)(int64_t)(scale * image_width / aspect)
                       : aspect < 1.0 ? (double)(int64_t)(scale * image_height * aspect)
                                      : scale * image_height;
        if (grown >= best) {
            best = grown;
            found = i;
        }
    }
    for (i = 0; i < family->grid_count && best < 0.0; i++) {
        const double ratio = family->grid_ratio[i];
        if (aspect >= 1.0 ? ratio > aspect : ratio <= aspect) continue;
        double distance = aspect >= 1.0 ? fabs(ratio - aspect) : fabs(1.0 / ratio - 1.0 / aspect);
        if (distance < nearest) {
            nearest = distance;
            found = i;
        }
    }
    vp_impl_cells(count, family->grid_rows[found], family->grid_cols[found]);
    vp_impl_resized(count, count->cols * tile, count->rows * tile);
    count->views = count->rows * count->cols + 1;
    count->feature_tokens = count->views * side * side;
    return NULL;
}

/* ---- hosted services, as documented */
static const char *vp_impl_count_claude(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    const int64_t side = family->value[VP_SLOT_SIDE], most = family->value[VP_SLOT_MAX];
    const int64_t large = vp_impl_most(width, height), small = vp_impl_least(width, height);
    int64_t low = 0, high = large, other = small;
    while (low < high) { /* the largest long side that fits, usually the image's own */
        const int64_t middle = low == 0 && high == large ? large : (low + high + 1) / 2;
        const int64_t fitted = vp_impl_most(1, vp_impl_half_even((double)(small * middle) / (double)large));
        const int64_t cells = (middle + 27) / 28, rows = (fitted + 27) / 28;
        if (cells * 28 <= side && rows * 28 <= side && cells * rows <= most) {
            low = middle;
            other = fitted;
        } else {
            high = middle - 1;
        }
    }
    if (!low) return "no size meets the limits";
    vp_impl_resized(count, width >= height ? low : other, width >= height ? other : low);
    vp_impl_cells(count, (count->resized_height_px + 27) / 28, (count->resized_width_px + 27) / 28);
    count->feature_tokens = count->rows * count->cols;
    return NULL;
}
/* The image is shrunk to fit 2048 x 2048, then until its short side is at most 768. Whether smaller images are enlarged
 * is not documented; here they are not. */
static const char *vp_impl_count_openai_tiles(const vp_family *family, int64_t width, int64_t height,
                                              vp_vision_count *count) {
    const int64_t large = vp_impl_most(width, height), small = vp_impl_least(width, height);
    int64_t up = 1, down = 1; /* the scale is up / down */
    if (large > 2048) {
        up = 2048;
        down = large;
    }
    if (small * up > 768 * down) {
        up = 768;
        down = small;
    }
    vp_impl_resized(count, vp_impl_most(1, width * up / down), vp_impl_most(1, height * up / down));
    vp_impl_cells(count, (height * up + 512 * down - 1) / (512 * down), (width * up + 512 * down - 1) / (512 * down));
    count->views = count->rows * count->cols;
    count->feature_tokens = count->views * family->value[VP_SLOT_TOKENS];
    count->marker_tokens = family->value[VP_SLOT_MIN];
    return NULL;
}
static const char *vp_impl_count_openai_patches(const vp_family *family, int64_t width, int64_t height,
                                                vp_vision_count *count) {
    const int64_t most = family->value[VP_SLOT_MAX], side = family->value[VP_SLOT_SIDE];
    const int64_t patches = (width + 31) / 32 * ((height + 31) / 32);
    if (patches > most || vp_impl_most(width, height) > side) {
        double scale = sqrt(1024.0 * (double)most / ((double)width * (double)height)), across, down;
        across = (double)width * scale / 32.0;
        down = (double)height * scale / 32.0;
        if (!(across >= 1.0 && down >= 1.0)) return "the documentation does not cover such a narrow image";
        across = (double)(int64_t)across / across;
        down = (double)(int64_t)down / down;
        scale *= across < down ? across : down;
        if (scale > 1.0) return "the documentation does not cover such a long image";
        width = (int64_t)((double)width * scale);
        height = (int64_t)((double)height * scale);
        if (vp_impl_most(width, height) > side) return "the documentation does not cover such a long image";
    }
    vp_impl_resized(count, width, height);
    vp_impl_cells(count, (height + 31) / 32, (width + 31) / 32);
    count->feature_tokens = vp_impl_ceiling((double)(count->rows * count->cols) * family->ratio);
    return NULL;
}
static const char *vp_impl_count_gemini(const vp_family *family, int64_t width, int64_t height,
                                        vp_vision_count *count) {
    if (vp_impl_most(width, height) > 384) return "the tiling of images over 384 pixels is not published";
    return vp_impl_count_constant(family, width, height, count);
}
static const vp_impl_rule vp_impl_rules[] = {
    vp_impl_count_smart,        vp_impl_count_navit,          vp_impl_count_budget,
    vp_impl_count_muse,         vp_impl_count_nemotron,       vp_impl_count_pooled,
    vp_impl_count_pan,          vp_impl_count_closest,        vp_impl_count_ocr,
    vp_impl_count_fit,          vp_impl_count_molmo,          vp_impl_count_longest,
    vp_impl_count_anyres,       vp_impl_count_canvas,         vp_impl_count_split,
    vp_impl_count_phi4,         vp_impl_count_phi3,           vp_impl_count_cover,
    vp_impl_count_lfm2,         vp_impl_count_slice,          vp_impl_count_perception,
    vp_impl_count_window,       vp_impl_count_constant,       vp_impl_count_claude,
    vp_impl_count_openai_tiles, vp_impl_count_openai_patches, vp_impl_count_gemini};

/* ---- presets, keys and values */
VP_API const char *vp_certainty_text(vp_certainty certainty) {
    static const char *const words[] = {"executed", "numbers", "read", "documented"};
    return (unsigned)certainty < 4 ? words[(unsigned)certainty] : "unknown";
}
VP_API const vp_family_preset *vp_family_at(int32_t index) {
    const int32_t count = (int32_t)(sizeof vp_impl_presets / sizeof vp_impl_presets[0]);
    return index >= 0 && index < count ? &vp_impl_presets[index] : NULL;
}
static const char *vp_impl_name_skip(const char *name) { return name + strspn(name, "-_."); }
/* The index, from 0, of the word that equals `name`, or -1. The words are separated by spaces. Case and - _ . do not
 * matter. */
static int32_t vp_impl_word_index(const char *words, const char *name) {
    int32_t index = 0;
    while (*words) {
        const char *name_at = vp_impl_name_skip(name), *word_at = vp_impl_name_skip(words);
        /* bit 5 is the case of a letter, and is set in digits */
        while (*name_at && *word_at && *word_at != ' ' && (*word_at | 32) == (*name_at | 32)) {
            word_at = vp_impl_name_skip(word_at + 1);
            name_at = vp_impl_name_skip(name_at + 1);
        }
        if (!*name_at && *name && (!*word_at || *word_at == ' ')) return index;
        words += strcspn(words, " ");
        words += *words == ' ';
        index++;
    }
    return -1;
}
static const vp_family_preset *vp_impl_family_named(const char *name) {
    for (int32_t turn = 0; name && turn < 2; turn++) /* names before aliases */
        for (int32_t i = 0; vp_family_at(i); i++)
            if (vp_impl_word_index(turn ? vp_impl_presets[i].aliases : vp_impl_presets[i].name, name) >= 0)
                return &vp_impl_presets[i];
    return NULL;
}
/* Returns 1 for a word of a published name that does not change the rule: a size (7b, 1.6b, a3b, 16e, 500m), a date
 * (2409, 07), or one of the list. */
static int vp_impl_is_dropped(const char *word, size_t bytes) {
    static const char words[] =
        " instruct it chat base synthetic pt mix mpo hf thinking reasoning preview latest pro flash scout maverick "
        "tiny small ov si awq gptq bnb int4 int8 fp8 fp16 bf16 4bit 8bit gguf mistral vicuna llama3 qwen2 ";
    char padded[16] = " ";
    size_t digits = 0, i;
    if (bytes == 0 || bytes > sizeof padded - 3) return 0;
    for (i = 0; i < bytes; i++) padded[i + 1] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] | 32 : word[i]);
    padded[bytes + 1] = ' ';
    if (strstr(words, padded)) return 1;
    i = padded[1] == 'a' || padded[1] == 'e' ? 2 : 1;
    while ((padded[i] >= '0' && padded[i] <= '9') || (padded[i] == '.' && digits)) digits += padded[i++] != '.';
    if (i == bytes + 1) return (bytes == 4 && digits == 4) || (bytes == 2 && padded[1] == '0');
    return digits && i == bytes && strchr("bme", padded[i]) != NULL;
}
/* Returns 1 if the rest of a name is the rest of a preset's word, with dropped words anywhere between. */
static int vp_impl_name_fits(const char *word, const char *name, const char *whole) {
    word = vp_impl_name_skip(word);
    name += strspn(name, "-_.:");
    size_t bytes = strcspn(name, "-_:");
    if ((name == whole || strchr("-_:", name[-1])) && vp_impl_is_dropped(name, bytes)
        && vp_impl_name_fits(word, name + bytes, whole))
        return 1;
    if (!*word || *word == ' ' || !*name) return !*name && (!*word || *word == ' ');
    return (*name | 32) == (*word | 32) && vp_impl_name_fits(word + 1, name + 1, whole);
}
VP_API const vp_family_preset *vp_family_find(const char *name) {
    const vp_family_preset *found = vp_impl_family_named(name);
    const char *whole = name && strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    size_t longest = 0;
    if (!found) found = vp_impl_family_named(whole);
    if (found || !whole || strlen(whole) > 100) return found;
    for (int32_t i = 0; vp_family_at(i); i++)
        for (int32_t turn = 0; turn < 2; turn++)
            for (const char *word = turn ? vp_impl_presets[i].aliases : vp_impl_presets[i].name; *word;
                 word += strspn(word, " ")) {
                size_t letters = 0;
                const int fits = vp_impl_name_fits(word, whole, whole);
                for (size_t bytes; *word && *word != ' '; word += bytes) { /* sizes count, other dropped words do not */
                    bytes = strcspn(word, "-_ ");
                    if ((*word >= '0' && *word <= '9') || !vp_impl_is_dropped(word, bytes)) letters += bytes;
                    word += strspn(word + bytes, "-_");
                }
                if (!fits || letters < longest) continue;
                found = letters > longest || found == &vp_impl_presets[i] ? &vp_impl_presets[i] : NULL;
                longest = letters;
            }
    return found;
}
/* the edit distance of two short names */
static int32_t vp_impl_name_distance(const char *one, const char *other) {
    int32_t row[49], i, j, corner, above;
    for (j = 0; j < 49; j++) row[j] = j;
    for (i = 1; one[i - 1] && i < 49; i++) {
        corner = row[0];
        row[0] = i;
        for (j = 1; j < 49 && other[j - 1]; j++) {
            above = row[j];
            row[j] = corner + (one[i - 1] != other[j - 1]);
            if (above + 1 < row[j]) row[j] = above + 1;
            if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
            corner = above;
        }
    }
    for (j = 0; j < 48 && other[j];) j++;
    return row[j];
}
static const vp_family_key *vp_impl_family_key(const vp_family *family, const char *name, vp_error *error) {
    const vp_family_key *nearest = NULL, *keys = family->preset->keys;
    vp_impl_message m = {{0}, 0};
    int32_t i, least = 1000, distance;
    if (!name) {
        vp_error_set(error, VP_ERR_RANGE, -1, "key", "is NULL");
        return NULL;
    }
    for (i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        if (!keys[i].name) continue;
        distance = vp_impl_name_distance(name, keys[i].name);
        if (!distance) return &keys[i];
        if (distance < least) {
            least = distance;
            nearest = &keys[i];
        }
    }
    vp_impl_message_text(&m, family->preset->name);
    vp_impl_message_text(&m, nearest ? " has no such key; the nearest is " : " has no keys");
    if (nearest) vp_impl_message_text(&m, nearest->name);
    vp_error_set(error, VP_ERR_NOT_FOUND, -1, name, m.text);
    return NULL;
}

static void vp_impl_add_grid(vp_family *family, int32_t rows, int32_t cols) {
    family->grid_side = (int32_t)vp_impl_most(family->grid_side, vp_impl_most(rows, cols));
    family->grid_rows[family->grid_count] = (int16_t)rows;
    family->grid_cols[family->grid_count] = (int16_t)cols;
    family->grid_ratio[family->grid_count++] = (double)cols / (double)rows;
}
/* all grids of least..most tiles, with at most `side` tiles per side, ordered by tiles, then columns; for MiniCPM the
 * ratios are logarithms */
static void vp_impl_grids_by_tiles(vp_family *family, int64_t least, int64_t most, int32_t side, int logarithms) {
    int32_t n, cols;
    for (n = 0; n <= most; n++) {
        family->grid_first[n] = (int16_t)family->grid_count;
        for (cols = 1; n >= least && cols <= n; cols++) {
            if (n % cols || cols > side || n / cols > side) continue;
            vp_impl_add_grid(family, n / cols, cols);
            if (logarithms)
                family->grid_ratio[family->grid_count - 1] = log(family->grid_ratio[family->grid_count - 1]);
        }
    }
    family->grid_first[n] = (int16_t)family->grid_count;
}
/* All grids of least..most tiles, ordered by tiles. Grids with equally many tiles are in the iteration order of the
 * original's set of (columns, rows). */
static void vp_impl_grids_by_set(vp_family *family, int32_t least, int32_t most) {
    int16_t tables[2][8192], pair[VP_FAMILY_GRIDS_LIMIT][2]; /* CPython allocates at most this many slots for 1466
                                                              * elements */
    int32_t n, cols, rows, used = 0, turn = 0, tiles;
    uint64_t mask = 7, i;
    memset(tables, 0xff, sizeof tables);
    for (n = least; n <= most; n++) {
        for (cols = 1; cols <= n; cols++) {
            /* the set already contains the grids of shorter sides */
            for (rows = n == least || cols == n ? 1 : n; rows <= n; rows++) {
                if (cols * rows < least || cols * rows > most) continue;
                pair[used][0] = (int16_t)cols;
                pair[used][1] = (int16_t)rows;
                vp_impl_set_insert(tables[turn], mask, vp_impl_pair_hash((uint64_t)cols, (uint64_t)rows),
                                   (int16_t)used);
                if ((uint64_t)++used * 5 < mask * 3) continue;
                turn = !turn; /* the set grows to the power of two above four times its elements */
                memset(tables[turn], 0xff, sizeof tables[turn]);
                for (i = mask, mask = 7; mask + 1 <= (uint64_t)used * 4;) mask = mask * 2 + 1;
                for (i++, tiles = 0; (uint64_t)tiles < i; tiles++) {
                    const int16_t at = tables[!turn][tiles];
                    if (at >= 0)
                        vp_impl_set_insert(tables[turn], mask,
                                           vp_impl_pair_hash((uint64_t)pair[at][0], (uint64_t)pair[at][1]), at);
                }
            }
        }
    }
    for (tiles = least; tiles <= most; tiles++) {
        for (i = 0; i <= mask; i++) {
            const int16_t at = tables[turn][i];
            if (at >= 0 && pair[at][0] * pair[at][1] == tiles) vp_impl_add_grid(family, pair[at][1], pair[at][0]);
        }
    }
}
/* Perception-LM's order: by descending tiles, then columns; grids of equal ratio are grouped at the position of the
 * first */
static void vp_impl_grids_by_ratio(vp_family *family, int64_t most) {
    int32_t n, cols, i, at;
    for (n = (int32_t)most; n >= 1; n--) {
        for (cols = 1; cols <= n; cols++) {
            const double ratio = (double)cols / (double)(n / cols);
            if (n % cols) continue;
            for (at = family->grid_count; at > 0 && family->grid_ratio[at - 1] != ratio;) at--;
            if (!at) at = family->grid_count;
            for (i = family->grid_count++; i > at; i--) {
                family->grid_rows[i] = family->grid_rows[i - 1];
                family->grid_cols[i] = family->grid_cols[i - 1];
                family->grid_ratio[i] = family->grid_ratio[i - 1];
            }
            family->grid_rows[at] = (int16_t)(n / cols);
            family->grid_cols[at] = (int16_t)cols;
            family->grid_ratio[at] = ratio;
        }
    }
}
/* Sorts canvases by area; those of equal area keep the list's order. */
static void vp_impl_sort_canvases(vp_family *family) {
    int32_t i, k;
    for (i = 1; i < family->grid_count; i++) {
        const int16_t rows = family->grid_rows[i], cols = family->grid_cols[i];
        for (k = i; k > 0 && family->grid_rows[k - 1] * family->grid_cols[k - 1] > rows * cols; k--) {
            family->grid_rows[k] = family->grid_rows[k - 1];
            family->grid_cols[k] = family->grid_cols[k - 1];
        }
        family->grid_rows[k] = rows;
        family->grid_cols[k] = cols;
    }
}
/* Reads a list of canvases: pairs of hexadecimal digits, height before width. */
static void vp_impl_grids_of_list(vp_family *family, const char *list, int width_first) {
    for (; *list; list += 2) {
        const int32_t first = list[0] > '9' ? list[0] - 'a' + 10 : list[0] - '0',
                      second = list[1] > '9' ? list[1] - 'a' + 10 : list[1] - '0';
        vp_impl_add_grid(family, width_first ? second : first, width_first ? first : second);
    }
    vp_impl_sort_canvases(family);
}
static void vp_impl_family_grids(vp_family *family) {
    static const char llava[] = "1221223113", aria[] = "12131415161718242322213132414251617181",
                      deepseek[] = "1112211331144122155116612332177118812442199133",
                      granite[] = "1112131415161718191a21222324253132334142515261718191a1",
                      onevision[] = "111213141516212223242526313233343536414243444546515253545556616263646566";
    const int variant = family->preset->variant,
              list = family->preset->rule_index == VP_IMPL_CANVAS || family->preset->rule_index == VP_IMPL_ANYRES;
    if (list && family->canvas_count > 0) return;
    family->grid_count = family->grid_side = 0;
    switch (family->preset->rule_index) {
    case VP_IMPL_CLOSEST: case VP_IMPL_OCR:
        vp_impl_grids_by_tiles(family, family->value[VP_SLOT_MIN], family->value[VP_SLOT_MAX],
                               variant == VP_IMPL_DOCLING ? 16 : VP_FAMILY_TILES_LIMIT, 0);
        break;
    case VP_IMPL_LFM2:
        vp_impl_grids_by_set(family, (int32_t)family->value[VP_SLOT_MIN], (int32_t)family->value[VP_SLOT_MAX]);
        break;
    case VP_IMPL_PHI4: vp_impl_grids_by_set(family, 1, (int32_t)family->value[VP_SLOT_MAX]); break;
    case VP_IMPL_COVER: vp_impl_grids_by_tiles(family, 1, family->value[VP_SLOT_MAX], VP_FAMILY_TILES_LIMIT, 0); break;
    case VP_IMPL_SLICE: vp_impl_grids_by_tiles(family, 1, family->value[VP_SLOT_MAX], VP_FAMILY_TILES_LIMIT, 1); break;
    case VP_IMPL_PERCEPTION: vp_impl_grids_by_ratio(family, family->value[VP_SLOT_MAX]); break;
    case VP_IMPL_ANYRES:
        vp_impl_grids_of_list(family,
                              variant == VP_IMPL_ONEVISION   ? onevision
                              : family->value[VP_SLOT_SPLIT] ? granite
                                                             : llava,
                              variant == VP_IMPL_WIDTH_FIRST);
        break;
    case VP_IMPL_CANVAS:
        vp_impl_grids_of_list(family, variant == VP_IMPL_ARIA ? aria : deepseek, variant == VP_IMPL_DEEPSEEK);
        break;
    default: break;
    }
}
/* sets values that derive from others, unless the caller has set them */
static void vp_impl_family_derive(vp_family *family) {
    int64_t *value = family->value;
    if (family->preset->rule_index == VP_IMPL_SMART && (family->preset->variant & VP_IMPL_AUTO_LIMITS)) {
        const int64_t unit = value[VP_SLOT_PATCH] * value[VP_SLOT_MERGE];
        if (!(family->given >> VP_SLOT_MIN & 1u)) value[VP_SLOT_MIN] = 4 * unit * unit;
        if (!(family->given >> VP_SLOT_MAX & 1u)) value[VP_SLOT_MAX] = 16384 * unit * unit;
    }
    if (family->preset->rule_index == VP_IMPL_ANYRES && family->preset->words) {
        if (!(family->given >> VP_SLOT_TILE & 1u)) value[VP_SLOT_TILE] = value[VP_SLOT_SPLIT] ? 384 : 336;
        if (!(family->given >> VP_SLOT_TOKENS & 1u)) value[VP_SLOT_TOKENS] = value[VP_SLOT_SPLIT] ? 27 : 24;
    }
    vp_impl_family_grids(family);
}
VP_API void vp_family_default(const vp_family_preset *preset, vp_family *family) {
    memset(family, 0, sizeof *family);
    family->preset = preset;
    family->ratio = 1.0;
    for (int32_t i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &preset->keys[i];
        if (key->slot == VP_SLOT_RATIO) family->ratio = key->fallback;
        else if (key->fallback > 0.0) family->value[key->slot] = (int64_t)key->fallback; /* an unused entry has 0 */
    }
    vp_impl_family_derive(family);
}

/* Returns NULL, or the reason why a key does not accept a number. */
static const char *vp_impl_family_refuses(const vp_family *family, const vp_family_key *key, double number) {
    static const double most[VP_SLOT_COUNT] = {
        1099511627776.0, 1099511627776.0, 16777216.0, 32768.0, 4096.0, 64.0, 65536.0, 1.0, 65536.0, 65536.0, 1e6};
    const int rule = family->preset->rule_index;
    if (!(number >= (key->slot == VP_SLOT_SPLIT   ? 0.0
                     : key->slot == VP_SLOT_RATIO ? 1e-6
                                                  : 1.0)
          && number <= most[key->slot])) {
        return key->slot == VP_SLOT_SPLIT ? "must be 0 or 1" : "is out of range";
    }
    if (key->slot != VP_SLOT_RATIO && number != floor(number)) return "must be a whole number";
    if (rule == VP_IMPL_POOLED && key->slot == VP_SLOT_MAX && number != 70.0 && number != 140.0 && number != 280.0
        && number != 560.0 && number != 1120.0)
        return "must be 70, 140, 280, 560 or 1120";
    if (rule == VP_IMPL_CANVAS && key->slot == VP_SLOT_SIDE && number != 490.0 && number != 980.0)
        return "must be 490 or 980";
    if (key->slot <= VP_SLOT_MAX && rule >= VP_IMPL_CLOSEST && rule <= VP_IMPL_PERCEPTION
        && number > (double)VP_FAMILY_TILES_LIMIT)
        return "must be at most 256";
    if (rule == VP_IMPL_WINDOW && key->slot == VP_SLOT_MAX && number > 65536.0) return "is out of range";
    if (key->slot == VP_SLOT_TILE
        && family->value[VP_SLOT_PATCH] * vp_impl_most(1, family->value[VP_SLOT_MERGE]) > (int64_t)number)
        return "is less than a patch";
    if ((key->slot == VP_SLOT_PATCH || key->slot == VP_SLOT_MERGE) && family->value[VP_SLOT_TILE] > 0
        && number * (double)vp_impl_most(1, family->value[key->slot == VP_SLOT_PATCH ? VP_SLOT_MERGE : VP_SLOT_PATCH])
               > (double)family->value[VP_SLOT_TILE])
        return "is more than a tile";
    return NULL;
}
static vp_result vp_impl_family_put(vp_family *family, const vp_family_key *key, double number, vp_error *error) {
    const char *wrong = vp_impl_family_refuses(family, key, number);
    if (wrong) return vp_error_set(error, VP_ERR_RANGE, -1, key->name, wrong);
    if (key->slot == VP_SLOT_RATIO) family->ratio = number;
    else family->value[key->slot] = (int64_t)number;
    family->given |= 1u << key->slot;
    vp_impl_family_derive(family);
    return VP_OK;
}
VP_API vp_result vp_family_set_number(vp_family *family, const char *key, double number, vp_error *error) {
    const vp_family_key *found = vp_impl_family_key(family, key, error);
    if (!found) return key ? VP_ERR_NOT_FOUND : VP_ERR_RANGE;
    return vp_impl_family_put(family, found, number, error);
}
VP_API vp_result vp_family_set(vp_family *family, const char *key, const char *text, vp_error *error) {
    const vp_family_key *found = vp_impl_family_key(family, key, error);
    const char *at = text;
    double number = 0.0, unit = 1.0;
    int32_t word = -1, digits = 0;
    if (!found) return key ? VP_ERR_NOT_FOUND : VP_ERR_RANGE;
    if (!text) return vp_error_set(error, VP_ERR_RANGE, -1, key, "is NULL; expected a number, a word, true or false");
    if (found->slot == VP_SLOT_SPLIT) {
        word = vp_impl_word_index(family->preset->words ? family->preset->words : "false true", text);
        if (word < 0 && family->preset->words) return vp_error_set(error, VP_ERR_RANGE, -1, key, family->preset->words);
        if (word >= 0) return vp_impl_family_put(family, found, word, error);
    }
    for (; *at >= '0' && *at <= '9' && digits < 15; at++, digits++) number = number * 10.0 + (double)(*at - '0');
    /* dividend and divisor are exact, so the quotient is rounded once, as strtod would */
    if (*at == '.' && digits)
        for (at++; *at >= '0' && *at <= '9' && digits < 15; at++, digits++, unit *= 10.0)
            number = number * 10.0 + (double)(*at - '0');
    if (*at || !digits)
        return vp_error_set(error, VP_ERR_RANGE, -1, key,
                            "is not an unsigned decimal number of at most 15 digits");
    return vp_impl_family_put(family, found, number / unit, error);
}
VP_API vp_result vp_family_set_canvases(vp_family *family, const int32_t (*sides)[2], int32_t count, vp_error *error) {
    const int rule = family->preset->rule_index;
    const int width_first = rule == VP_IMPL_CANVAS ? family->preset->variant == VP_IMPL_DEEPSEEK
                                                   : family->preset->variant == VP_IMPL_WIDTH_FIRST;
    if (rule != VP_IMPL_ANYRES && rule != VP_IMPL_CANVAS)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, family->preset->name,
                            "does not choose from a list of canvases");
    if (count < 1 || count > VP_FAMILY_GRIDS_LIMIT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "canvases", "must be 1 to 1466");
    for (int32_t i = 0; i < count; i++)
        if (sides[i][0] < 1 || sides[i][0] > 16 || sides[i][1] < 1 || sides[i][1] > 16)
            return vp_error_set(error, VP_ERR_RANGE, -1, "canvases", "a side must be 1 to 16 tiles");
    family->grid_count = family->grid_side = 0;
    for (int32_t i = 0; i < count; i++) vp_impl_add_grid(family, sides[i][width_first], sides[i][!width_first]);
    vp_impl_sort_canvases(family);
    family->canvas_count = count;
    return VP_OK;
}

static const char *vp_impl_family_run(const vp_family *family, int32_t width, int32_t height, vp_vision_count *count) {
    if (width < 1 || height < 1 || width > VP_FAMILY_PX_LIMIT || height > VP_FAMILY_PX_LIMIT)
        return "both sides must be 1 to 16777216 pixels";
    count->resized_width_px = count->resized_height_px = count->rows = count->cols = count->views = -1;
    count->feature_tokens = count->separator_tokens = count->marker_tokens = count->total_tokens = 0;
    const char *refused = vp_impl_rules[family->preset->rule_index](family, width, height, count);
    if (!count->total_tokens)
        count->total_tokens = count->feature_tokens + count->separator_tokens + count->marker_tokens;
    return refused;
}
VP_API vp_result vp_family_count(const vp_family *family, int32_t width_px, int32_t height_px, vp_vision_count *count,
                                 vp_error *error) {
    vp_vision_count out;
    if (!vp_impl_arithmetic()) return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "arithmetic", VP_IMPL_INEXACT);
    const char *refused = vp_impl_family_run(family, width_px, height_px, &out);
    if (refused) {
        const int unknown = family->preset->certainty == VP_CERTAINTY_DOCUMENTED && width_px > 0 && height_px > 0;
        vp_impl_message m = {{0}, 0};
        vp_impl_message_int(&m, width_px);
        vp_impl_message_text(&m, "x");
        vp_impl_message_int(&m, height_px);
        vp_impl_message_text(&m, ": ");
        vp_impl_message_text(&m, refused);
        return vp_error_set(error, unknown ? VP_ERR_UNSUPPORTED : VP_ERR_RANGE, -1, family->preset->name, m.text);
    }
    *count = out;
    return VP_OK;
}

/* ---- checkpoints */
#ifdef VLMPROF_JSON_H
/* paths of keys that are not at the top level under their own name */
static const char *const vp_impl_config_places[][2] = {
    {"min_pixels", "size.shortest_edge"}, {"min_pixels", "size.min_pixels"}, {"max_pixels", "size.longest_edge"},
    {"max_pixels", "size.max_pixels"}, {"size", "size.height"}, {"size", "size.shortest_edge"},
    {"size", "force_image_size"}, {"tile_size", "max_image_size.longest_edge"}, {"tile_size", "size.height"},
    {"longest_edge", "size.longest_edge"}, {"patch_size", "patch_size.height"}, {"max_side_patches", "size.max_height"},
    {"max_side_patches", "media_proc_cfg.patch_limit_on_one_side"}, {"max_patches", "media_proc_cfg.in_patch_limit"},
    {"min_crop_size", "pan_and_scan_min_crop_size"}, {"max_num_crops", "pan_and_scan_max_num_crops"},
    {"min_ratio_to_activate", "pan_and_scan_min_ratio_to_activate"},
    {"low_res_col_tokens", "use_single_crop_col_tokens"}, {"min_patches", "min_dynamic_patch"},
    {"max_patches", "max_dynamic_patch"}, {"anyres_max", "vision_aspect_ratio"},
    {"image_seq_length", "mm_tokens_per_image"}
};
/* switches, and the values that the rules assume */
static const struct { const char *name; int usual;
} vp_impl_config_switches[] = {{"do_resize", 1},    {"use_thumbnail", 1},      {"slice_mode", 1},
                               {"use_image_id", 1}, {"resize_to_max_canvas", 0}, {"fine_route", 0},
                               {"crop_to_patches", 1}, {"use_covering_area_grid", 1}};
/* keys and switches that the processor's class sets to the preset's values, whatever the files say */
static const char *const vp_impl_config_own[][2] = {
    {"gemma3", "do_pan_and_scan min_crop_size max_num_crops min_ratio_to_activate"},
    {"aria", "max_image_size split_image"}, {"deepseek_ocr2", "min_patches max_patches crop_to_patches"},
    {"internvl", "crop_to_patches"}, {"aya_vision", "crop_to_patches"},
    {"got_ocr2_no_crop", "crop_to_patches"}};
static int vp_impl_config_owns(const vp_family *family, const char *key) {
    for (size_t i = 0; i < sizeof vp_impl_config_own / sizeof vp_impl_config_own[0]; i++)
        if (!strcmp(vp_impl_config_own[i][0], family->preset->name))
            return vp_impl_word_index(vp_impl_config_own[i][1], key) >= 0;
    return 0;
}
/* defaults of image processors' classes, where published checkpoints have other values */
static const struct { const char *preset, *key; double value;
} vp_impl_config_absent[] = {
    {"qwen2_vl_hf", "max_pixels", 1003520}, {"qwen2_5_vl_hf", "max_pixels", 1003520},
    {"qwen3_vl_hf", "max_pixels", 1003520}, {"qwen3_vl_hf", "min_pixels", 3136}, {"qwen3_vl_hf", "patch_size", 14},
    {"smolvlm", "longest_edge", 1456}, {"smolvlm", "tile_size", 364}, {"smolvlm", "image_seq_len", 169},
    {"ovis2_hf", "max_patches", 12}};

VP_API const vp_json *vp_image_settings(const vp_json *const files[3], uint32_t *node) {
    *node = files[1] ? vp_json_get(files[1], 0, "image_processor") : VP_JSON_NONE;
    if (*node != VP_JSON_NONE && files[1]->nodes[*node].type == VP_JSON_OBJECT) return files[1];
    *node = 0;
    return files[0];
}
/* value of "a" or "a.b" that is neither null nor a container; *json: the file that contains it */
static uint32_t vp_impl_config_get(const vp_json *const files[3], const char *path, const vp_json **json) {
    const size_t first = strcspn(path, ".");
    char name[64];
    for (int i = 0; i < 3; i++) {
        uint32_t node = 0;
        const vp_json *file = i ? files[i] : vp_image_settings(files, &node);
        if (!file || first >= sizeof name) continue;
        memcpy(name, path, first);
        name[first] = 0;
        node = vp_json_get(file, node, name);
        if (path[first]) node = vp_json_get(file, node, path + first + 1);
        if (node == VP_JSON_NONE || file->nodes[node].type == VP_JSON_NULL || file->nodes[node].type >= VP_JSON_ARRAY)
            continue;
        *json = file;
        return node;
    }
    return VP_JSON_NONE;
}
static void vp_impl_config_text(const vp_json *json, uint32_t node, char out[64]) {
    const vp_json_node *found = &json->nodes[node];
    const size_t bytes = found->bytes > 63 ? 63 : (size_t)found->bytes;
    memcpy(out, json->text + found->start, bytes);
    out[bytes] = 0;
}
/* -1 if it is missing or not a whole number */
static int64_t vp_impl_config_int(const vp_json *const files[3], const char *path) {
    const vp_json *json = NULL;
    const uint32_t node = vp_impl_config_get(files, path, &json);
    int64_t value = -1;
    if (node == VP_JSON_NONE || vp_json_to_int(json, node, &value) != VP_OK || value < 1 || value > 65536) return -1;
    return value;
}
static const vp_family_preset *vp_impl_config_preset(const vp_json *const files[3], char model[64],
                                                     char processor[64]) {
    static const char *const tails[] = {"Fast", "Pil", "ImageProcessor"};
    static const char *const paligemma[] = {"paligemma_448", "paligemma_896"};
    const vp_json *json = NULL;
    uint32_t node = vp_impl_config_get(files, "image_processor_type", &json);
    processor[0] = model[0] = 0;
    if (node != VP_JSON_NONE) vp_impl_config_text(json, node, processor);
    for (int i = 0; i < 3; i++) {
        const size_t bytes = strlen(processor), tail = strlen(tails[i]);
        if (bytes > tail && !strcmp(processor + bytes - tail, tails[i])) processor[bytes - tail] = 0;
    }
    node = vp_impl_config_get(files, "model_type", &json);
    if (node != VP_JSON_NONE) vp_impl_config_text(json, node, model);
    const vp_family_preset *by_model = vp_impl_family_named(model);
    const vp_family_preset *by_processor = vp_impl_family_named(processor);
    if (by_model && !strcmp(by_model->name, "paligemma_224"))
        for (int i = 0; i < 2; i++)
            if (vp_impl_config_int(files, "vision_config.image_size") == 448 << i)
                by_model = vp_family_find(paligemma[i]);
    if (by_model && !strcmp(by_model->name, "got_ocr2")) return vp_family_find("got_ocr2_no_crop");
    return by_model && !(by_processor && !strcmp(model, "llava")) ? by_model : by_processor;
}
/* Sets the tokens of a view that processors compute from other keys. */
static vp_result vp_impl_config_tokens(vp_family *family, const vp_json *const files[3], vp_error *error) {
    const int64_t tile = family->value[VP_SLOT_TILE], side = vp_impl_config_int(files, "img_size");
    int64_t patch = vp_impl_config_int(files, "patch_size"), tokens = vp_impl_config_int(files, "num_image_tokens"),
            factor = vp_impl_config_int(files, "downsample_factor"), root = 1;
    if (patch < 0) patch = vp_impl_config_int(files, "vision_config.patch_size");
    if (!strcmp(family->preset->name, "aya_vision") && side > 0) {
        patch = (patch > 0 ? patch : 28) * (factor > 0 ? factor : 1);
        return vp_family_set_number(family, "image_seq_length", (double)(side / patch * (side / patch)), error);
    }
    if (family->preset->rule_index != VP_IMPL_ANYRES || (family->given >> VP_SLOT_TOKENS & 1u)) return VP_OK;
    while ((root + 1) * (root + 1) <= tokens) root++;
    if (family->preset->variant != VP_IMPL_ONEVISION || tokens < 0) root = patch > 0 ? tile / patch : 0;
    return root ? vp_family_set_number(family, "patches_per_side", (double)root, error) : VP_OK;
}
VP_API vp_result vp_family_read(const vp_family_preset *preset, const vp_json *const files[3], vp_family *family,
                                vp_error *error) {
    const size_t place_count = sizeof vp_impl_config_places / sizeof vp_impl_config_places[0];
    uint32_t image = 0;
    vp_family_default(preset, family);
    for (size_t i = 0; i < sizeof vp_impl_config_absent / sizeof vp_impl_config_absent[0]; i++)
        if (vp_image_settings(files, &image) && !strcmp(vp_impl_config_absent[i].preset, family->preset->name))
            vp_family_set_number(family, vp_impl_config_absent[i].key, vp_impl_config_absent[i].value, NULL);
    family->given = 0;
    for (int32_t i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &family->preset->keys[i];
        const vp_json *json = NULL;
        char text[64];
        if (!key->name || vp_impl_config_owns(family, key->name)) continue;
        /* Pixtral's processor passes its own patch_size to the image processor */
        const vp_json *const own[3] = {NULL, NULL, files[1]};
        uint32_t node = family->preset->rule_index == VP_IMPL_LONGEST ? vp_impl_config_get(own, key->name, &json)
                                                                      : VP_JSON_NONE;
        if (node == VP_JSON_NONE) node = vp_impl_config_get(files, key->name, &json);
        /* DeepSeek-OCR's size is that of its global view */
        const int is_tile = family->preset->rule_index == VP_IMPL_OCR && key->slot == VP_SLOT_TILE;
        for (size_t k = 0; k < place_count && node == VP_JSON_NONE && !is_tile; k++)
            if (!strcmp(vp_impl_config_places[k][0], key->name))
                node = vp_impl_config_get(files, vp_impl_config_places[k][1], &json);
        if (node == VP_JSON_NONE) continue;
        vp_impl_config_text(json, node, text);
        vp_result result = vp_family_set(family, key->name, strncmp(text, "anyres_max_", 11) ? text : text + 11, error);
        if (result != VP_OK) return result;
    }
    return vp_impl_config_tokens(family, files, error);
}
/* image_grid_pinpoints and similar keys: pairs of pixel sizes, multiples of the tile */
static vp_result vp_impl_config_canvases(vp_family *family, const vp_json *const files[3], vp_error *error) {
    static const char *const names[] = {"image_grid_pinpoints", "candidate_resolutions", "split_resolutions"};
    const int64_t tile = family->value[VP_SLOT_TILE];
    int32_t sides[256][2], count = 0;
    uint32_t list = VP_JSON_NONE, pair;
    const vp_json *json = NULL;
    if (family->preset->rule_index != VP_IMPL_ANYRES && family->preset->rule_index != VP_IMPL_CANVAS) return VP_OK;
    for (int i = 0; i < 9 && list == VP_JSON_NONE; i++) {
        uint32_t node = 0;
        json = i < 3 ? vp_image_settings(files, &node) : files[i / 3];
        if (json) list = vp_json_get(json, node, names[i % 3]);
        if (list != VP_JSON_NONE && json->nodes[list].type != VP_JSON_ARRAY) list = VP_JSON_NONE;
    }
    if (list == VP_JSON_NONE) return VP_OK;
    for (pair = list + 1; pair < json->nodes[list].end; pair = json->nodes[pair].end, count++) {
        for (int k = 0; k < 2; k++) {
            int64_t side = 0;
            if (count >= 256 || json->nodes[pair].type != VP_JSON_ARRAY
                || vp_json_to_int(json, vp_json_at(json, pair, (uint32_t)k), &side) != VP_OK || side < 1
                || side > 1000000 || side % tile)
                return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "canvases",
                                    "not a list of at most 256 pairs of multiples of the tile");
            sides[count][k] = (int32_t)(side / tile);
        }
    }
    return vp_family_set_canvases(family, (const int32_t(*)[2])sides, count, error);
}
/* Checks the assumptions of the rules. If one is false, the rules do not describe this family. */
static vp_result vp_impl_config_check(vp_family *family, const vp_json *const files[3], vp_error *error) {
    const int rule = family->preset->rule_index;
    for (size_t i = 0; i < sizeof vp_impl_config_switches / sizeof vp_impl_config_switches[0]; i++) {
        const char *name = vp_impl_config_switches[i].name;
        const vp_json *json = NULL;
        const uint32_t node = vp_impl_config_get(files, name, &json);
        uint32_t image = 0;
        int is_usual = node != VP_JSON_NONE
                       && json->nodes[node].type == (vp_impl_config_switches[i].usual ? VP_JSON_TRUE : VP_JSON_FALSE);
        if (node == VP_JSON_NONE) /* false is the default of Ovis2's class */
            is_usual = rule != VP_IMPL_COVER || strcmp(name, "crop_to_patches") || !vp_image_settings(files, &image);
        if (is_usual || vp_impl_config_owns(family, name)) continue;
        if (rule == VP_IMPL_LFM2 && !strcmp(name, "use_thumbnail")) {
            family->value[VP_SLOT_SIDE] = 1;
            continue;
        }
        if (strcmp(name, "crop_to_patches")
            || (rule != VP_IMPL_CLOSEST && rule != VP_IMPL_COVER && rule != VP_IMPL_FIT))
            return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, name,
                                "has an unusual value; its token counts are not known");
        family->value[VP_SLOT_MIN] = family->value[VP_SLOT_MAX] = 1;
        vp_impl_family_derive(family);
    }
    for (size_t i = 0; i < VP_FAMILY_KEYS_LIMIT && (rule == VP_IMPL_CLOSEST || rule == VP_IMPL_FIT); i++) {
        const vp_family_key *key = &family->preset->keys[i];
        if (key->name && key->slot == VP_SLOT_TILE && family->value[VP_SLOT_TILE] != (int64_t)key->fallback
            && family->value[VP_SLOT_TOKENS] && !(family->given >> VP_SLOT_TOKENS & 1u))
            return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "size",
                                "the token count of tiles of this size is not known");
    }
    const vp_json *file = NULL;
    const uint32_t type = vp_impl_config_get(files, "vision_input_type", &file);
    if (rule == VP_IMPL_PERCEPTION && type != VP_JSON_NONE && !vp_json_equals(file, type, "thumb+tile"))
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "vision_input_type", "only thumb+tile is implemented");
    int64_t image = vp_impl_config_int(files, "vision_config.image_size");
    int64_t patch = vp_impl_config_int(files, "vision_config.patch_size");
    const int64_t crop = vp_impl_config_int(files, "crop_size.height");
    if (!strcmp(family->preset->name, "llava_1_5") && crop > 0 && patch > 0)
        family->value[VP_SLOT_TOKENS] = crop / patch * (crop / patch);
    static const struct { const char *preset, *path; int64_t value;
    } fixed[] = {{"molmo2", "size.height", 378}, {"molmo2", "patch_size", 14}, {"molmo", "image_patch_size", 14}};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const int64_t value = vp_impl_config_int(files, fixed[i].path);
        if (!strcmp(family->preset->name, fixed[i].preset) && value >= 0 && value != fixed[i].value)
            return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, fixed[i].path, "differs from this family's");
    }
    if (rule == VP_IMPL_CONSTANT && image > 0 && patch > 0 && !family->preset->markers
        && (image / patch) * (image / patch) != family->value[VP_SLOT_TOKENS])
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "vision_config",
                            "number of patches differs from this family's");
    return VP_OK;
}
VP_API vp_result vp_family_from_config(vp_family *family, const vp_json *const files[3], vp_error *error) {
    char model[64], processor[64];
    const vp_family_preset *preset = vp_impl_config_preset(files, model, processor);
    if (!preset) {
        vp_impl_message m = {{0}, 0};
        vp_impl_message_text(&m, "neither model_type \"");
        vp_impl_message_text(&m, model);
        vp_impl_message_text(&m, "\" nor image processor \"");
        vp_impl_message_text(&m, processor);
        vp_impl_message_text(&m, "\" is a known family");
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, "config", m.text);
    }
    vp_result result = vp_family_read(preset, files, family, error);
    if (result == VP_OK) result = vp_impl_config_canvases(family, files, error);
    return result == VP_OK ? vp_impl_config_check(family, files, error) : result;
}
#endif

/* ---- counts by name, and the inverse: from a token limit to a key */
VP_API int64_t vp_count_tokens(const char *model, int32_t width_px, int32_t height_px) {
    const vp_family_preset *preset = vp_family_find(model);
    vp_family family;
    vp_vision_count count;
    if (!preset) return VP_ERR_NOT_FOUND;
    vp_family_default(preset, &family);
    vp_result result = vp_family_count(&family, width_px, height_px, &count, NULL);
    return result == VP_OK ? count.total_tokens : (int64_t)result;
}

VP_API const vp_family_key *vp_family_knob(const vp_family *family) {
    static const vp_family_slot order[] = {VP_SLOT_MAX, VP_SLOT_SIDE};
    const int rule = family->preset->rule_index;
    if (rule == VP_IMPL_WINDOW || rule == VP_IMPL_CANVAS) return NULL;
    for (int32_t turn = 0; turn < 2; turn++)
        for (int32_t i = 0; i < VP_FAMILY_KEYS_LIMIT; i++)
            if (family->preset->keys[i].name && family->preset->keys[i].slot == order[turn])
                return &family->preset->keys[i];
    return NULL;
}
/* Returns 1 if at least `wanted` of the sizes stay within the token limit. */
static int vp_impl_family_within(const vp_family *family, const int32_t (*sizes_px)[2], size_t size_count,
                                 size_t wanted, int64_t max_tokens) {
    vp_vision_count count;
    size_t i, good = 0;
    for (i = 0; i < size_count && good < wanted && good + (size_count - i) >= wanted; i++)
        good += !vp_impl_family_run(family, sizes_px[i][0], sizes_px[i][1], &count) && count.total_tokens <= max_tokens;
    return good >= wanted;
}
VP_API vp_result vp_family_largest(const vp_family *family, const int32_t (*sizes_px)[2], size_t size_count,
                                   double share, int64_t max_tokens, int64_t *value, int *unlimited, vp_error *error) {
    const vp_family_key *knob = vp_family_knob(family);
    vp_family tried = *family;
    int64_t low, high, most, middle;
    if (!knob)
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, family->preset->name, "has no key that limits its tokens");
    if (!size_count || !(share > 0.0 && share <= 1.0) || max_tokens < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "largest",
                            "size_count, share and max_tokens must be above 0, and share at most 1");
    size_t wanted = (size_t)ceil(share * (double)size_count);
    if (wanted > size_count) wanted = size_count;
    if (knob->slot == VP_SLOT_SIDE) most = 16384;
    else if (tried.preset->rule_index >= VP_IMPL_CLOSEST && tried.preset->rule_index <= VP_IMPL_PERCEPTION)
        most = VP_FAMILY_TILES_LIMIT;
    else most = tried.preset->rule_index == VP_IMPL_POOLED ? 1120 : INT64_C(1) << 40;
    for (low = 0, high = most; low < high;) {
        middle = most <= 65536 ? high : low == 0 && high == most ? most : low + (high - low + 1) / 2;
        if (vp_impl_family_put(&tried, knob, (double)middle, NULL) == VP_OK
            && vp_impl_family_within(&tried, sizes_px, size_count, wanted, max_tokens)) low = middle;
        else high = middle - 1;
    }
    if (!low)
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, knob->name, "no value keeps the images within so few tokens");
    *value = low;
    *unlimited = low == most;
    return VP_OK;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
