/* vlmprof.h - v0.1.0 - stage-by-stage profiling of vision-language models - MIT licence
 *
 * MANUAL
 *
 * What it is
 *   Where do the milliseconds go when a vision-language model looks at an image, and what accuracy do they buy? This header holds what
 *   such a measurement needs around the model: tiling of images and counts of vision tokens, samplers, clock and statistics, JSON, image
 *   preprocessing, checkpoint and tokenizer files, scores, and the declarations of the model engine. It serves the program `vlmprof`
 *   and drops into other projects, with no GPU, no Python and no weights.
 *
 * How to include it
 *   Everywhere:               #include "vlmprof.h"
 *   In exactly one C or C++ file, before the include, and before any system header where that can be had:
 *                             #define VLMPROF_IMPLEMENTATION
 *   Switches of the includer, defined before the include:
 *     VLMPROF_IMPLEMENTATION  compiles the functions into this file
 *     VLMPROF_CORE            only result, tiler, select, tokens, sampler, timer and json: needs stdint, stddef, string, math and time
 *     VLMPROF_FAMILIES        with VLMPROF_CORE: families too, which take as long to compile as half of the rest of the core
 *     VLMPROF_STATIC          the functions are static; needs VLMPROF_CORE and VLMPROF_IMPLEMENTATION, because the engine lies in another file
 *     VLMPROF_CLOCK_NS        an int64_t expression that vp_clock_ns reads instead of the system's monotonic clock
 *     VP_API                  replaces the linkage word before every function, for shared libraries
 *   Link with -lm. Without VLMPROF_CORE the implementing file needs stb_image.h (Debian, Ubuntu: package libstb-dev); the functions
 *   vp_engine_... are in vlmprof_kernels.cu, which a C compiler takes with -x c -fopenmp. It is plain C11 that is C++17 as well.
 *
 * Smallest example (samples/01_count_tokens.c; cc -I. samples/01_count_tokens.c -lm)
 *
 *     #define VLMPROF_CORE
 *     #define VLMPROF_IMPLEMENTATION
 *     #include "vlmprof.h"
 *     #include <stdio.h>
 *     int main(void) {
 *         vp_geometry geometry = vp_geometry_default();        // MolmoE-1B
 *         vp_tile_options options = vp_tile_options_default(); // adaptive tiling, at most 12 crops
 *         vp_layout layout;
 *         if (vp_layout_compute(&geometry, &options, 640, 480, &layout, NULL) != VP_OK) return 1;
 *         printf("640x480: %d rows, %d columns, %d vision tokens\n", (int)layout.tiling.rows, (int)layout.tiling.cols, (int)layout.feature_tokens);
 *         return 0;
 *     }
 *
 * What it does not do
 *   - the GPU code is tested on an emulated GPU only, and written to be right before it is fast
 *   - no vision-language model but the MolmoE family, no training, no sampling but greedy, one request at a time
 *   - no network: nothing is downloaded, nothing is sent
 *   - the header starts no thread, installs no signal handler, prints nothing and never ends the program
 *   - no PNG or JPEG decoder of its own (stb_image), no video
 *
 * Table of contents: search for the tag; declarations and implementation follow the same order
 *   >>result          result codes, errors, arena
 *   >>tiler           geometry of crops and patches, tilings, layout of an image
 *   >>families        token counts of other model families from an image's size           (with VLMPROF_CORE only on request)
 *   >>select          target tokens <-> crops <-> tiling <-> resolution
 *   >>tokens          position of every vision token in the sequence
 *   >>sampler         MT19937 as NumPy has it, choice without replacement, active blocks, knob grids, ranks and shards
 *   >>timer           monotonic clock, sums and percentiles as NumPy computes them, intervals, outliers, stop rule
 *   >>json            writer, strict reader, numbers, UTF-8
 *   >>preprocess      pixels of an image -> crops -> patches and masks                     (from here on not with VLMPROF_CORE)
 *   >>image           file -> upright RGB
 *   >>checkpoint      config.json, safetensors
 *   >>tokenizer       byte-level BPE from tokenizer.json
 *   >>prompt          records of the nine data sets -> text, as the reference builds it
 *   >>score           scoring rules
 *   >>caption         CIDEr-D, BLEU and ROUGE-L of captions, built-in tokenizer
 *   >>analysis        Pareto fronts, coupling of knobs, regression, latency model, tests and verdicts
 *   >>model           the engine: one request, its stages and their times
 *   >>implementation  start of the second half
 *
 * Vocabulary
 *   pixel     one RGB value triple of the upright image (EXIF orientation applied)
 *   patch     square of 14 x 14 pixels, the unit of the vision transformer
 *   crop      square of 336 x 336 pixels = 24 x 24 patches that the vision transformer sees at once; neighbours overlap
 *   tile      the 224 x 224 pixels of a crop that are its own; a tiling is rows x columns of them
 *   view      a crop or the global view (the whole image in one 336 x 336 square): views = crops + 1
 *   token     one position of the language model's sequence; a vision token is 2 x 2 patches pooled (feature token)
 *   block     one layer of the language model; an inactive block is the identity
 *   prefill   the pass over the whole prompt, which gives the first new token; a decode step gives one token more: N tokens have N - 1
 *   stage     a named part of a request, see VP_STAGES
 *   _index    counts from 0;  _count  how many;  _bytes  bytes;  _capacity  how many would fit
 *   (the numbers are those of Molmo's geometry, vp_geometry_default; other ones come from config.json)
 *
 * Units
 *   Stand last in a name: _ns, _px, _bytes, _hz. Time is int64_t nanoseconds of a monotonic clock. MB = 10^6 bytes, MiB = 2^20.
 *   Shapes are written [outer, ..., inner], arrays lie in memory in that order. Tilings are [rows, columns]; sizes in a signature are
 *   width before height, as image files have it, and [height, width] in the result files.
 *
 * Errors
 *   A function that can fail returns a vp_result: VP_OK = 0, failures are negative and pinned (VP_RESULTS). Where there is something to
 *   tell it takes a vp_error, which may be NULL. Outputs are untouched on failure. A too small buffer gives VP_ERR_CAPACITY and,
 *   where the declaration says so, the count that is needed. Nothing is clamped in silence; zero is a value, never "the default":
 *   vp_..._default() fills in the defaults. Every file and every number of a caller is taken as hostile.
 *
 * Memory
 *   The core sections and preprocess never allocate: the caller passes buffers. image, checkpoint, tokenizer and the engine own memory
 *   from malloc or mmap and have a function that gives it back; vp_caption_corpus gives back its own before it returns.
 *
 * Threads
 *   No mutable global state: all functions are reentrant, one object belongs to one thread at a time. Objects that are only read
 *   (tokenizer, checkpoint, vp_json) can be shared. The engine uses OpenMP threads inside a call.
 *
 * Numerics
 *   Tilings, token counts, resized sizes, random draws, percentiles and sums repeat the reference's operations in its own float width
 *   and order, so that results are equal, not near. That needs IEEE arithmetic: never compile with options that let the compiler
 *   reorder floating point; contraction to fused multiply-add must be off (-ffp-contract=off; -std=c11 does it in gcc, not in clang).
 *   Checks are written so that NaN fails them.
 *
 * Sources
 *   The functions name theirs. The reference for tiling, preprocessing, the model and the experiments' rules is the repository
 *   ChulanZhang/molmo_hf at commit 09bce1fc; the model is described in "Molmo and PixMo" (arXiv 2409.17146) and "OLMoE"
 *   (arXiv 2409.02060); random numbers, percentiles and sums are those of NumPy 1.26.
 *
 * Last revisions
 *   0.1.0 (2026-11) first version
 */
#ifndef VLMPROF_H
#define VLMPROF_H

#define VLMPROF_VERSION "0.1.0"
#define VLMPROF_VERSION_MAJOR 0
#define VLMPROF_VERSION_MINOR 1
#define VLMPROF_VERSION_PATCH 0

/* In strict ISO mode (-std=c11) the C library hides clock_gettime and others unless it is asked before its first header. */
#if defined(VLMPROF_IMPLEMENTATION) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#if defined(VLMPROF_STATIC) && !(defined(VLMPROF_CORE) && defined(VLMPROF_IMPLEMENTATION))
#error "VLMPROF_STATIC needs VLMPROF_CORE and VLMPROF_IMPLEMENTATION"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef VP_API
#if defined(VLMPROF_STATIC) && defined(__GNUC__)
#define VP_API static __attribute__((unused))
#elif defined(VLMPROF_STATIC)
#define VP_API static
#else
#define VP_API
#endif
#endif

/* ================================================================================================ result >>result
 * Every function that can fail returns a vp_result; where there is something to tell it fills an optional vp_error.
 * On failure outputs are untouched, unless the declaration says otherwise. */
#define VP_RESULTS(X) \
    X(VP_OK, 0, "success") \
    X(VP_ERR_RANGE, -1, "a value is outside its allowed range") \
    X(VP_ERR_CAPACITY, -2, "a buffer of the caller is too small") \
    X(VP_ERR_FORMAT, -3, "the input is malformed") \
    X(VP_ERR_UNSUPPORTED, -4, "the input is well-formed but of a kind that is not supported") \
    X(VP_ERR_NOT_FOUND, -5, "a file, key or name does not exist") \
    X(VP_ERR_MISMATCH, -6, "names, shapes or types do not fit together") \
    X(VP_ERR_READ, -7, "a file could not be read") \
    X(VP_ERR_WRITE, -8, "output could not be written") \
    X(VP_ERR_MEMORY, -9, "not enough memory") \
    X(VP_ERR_DEVICE, -10, "the compute device failed or is missing") \
    X(VP_ERR_STATE, -11, "a call came in the wrong order") \
    X(VP_ERR_INTERRUPTED, -12, "the caller asked to stop")

typedef enum vp_result {
#define VP_RESULT_ENUM(name, value, text) name = value,
    VP_RESULTS(VP_RESULT_ENUM)
#undef VP_RESULT_ENUM
    VP_RESULT_LAST_ = -12
} vp_result;

/* what went wrong and where; `offset` is a byte offset into the input, or -1 */
typedef struct vp_error {
    vp_result code;
    int64_t offset;
    char where[160]; /* file, field, tensor or call */
    char text[640];  /* one line: what is wrong and what to do */
} vp_error;

/* The pinned text of a result code; never NULL. */
VP_API const char *vp_result_text(vp_result result);
/* Fills an error (NULL is allowed) and returns its code, so that `return vp_fail(...)` reads well. Long texts are cut. */
VP_API vp_result vp_fail(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text);

/* A bump allocator over the caller's memory; used by the sections that need more than fixed buffers. */
typedef struct vp_arena {
    unsigned char *base;
    size_t capacity_bytes;
    size_t used_bytes; /* high-water mark is what a retry needs at least */
} vp_arena;
/* Returns `count * element_bytes` bytes aligned to 64, or NULL when they do not fit or overflow (used_bytes then unchanged). */
VP_API void *vp_arena_take(vp_arena *arena, size_t count, size_t element_bytes);

/* =================================================================================== geometry and tiler >>tiler
 * Image size -> tiling (rows x cols of crops) -> canvas, resized size, pads. Integers in pixels; nothing is allocated; all functions are
 * reentrant. Words: an image of `crops` crops has `views` = crops + 1 (the global view); a crop has `patches` per side for the ViT and
 * `tokens` per side after pooling. Pointers must not be NULL unless it is said. */
enum {
    VP_CROPS_LIMIT = 65536,       /* most crops of any rule: more is VP_ERR_RANGE, so that no input makes a call slow */
    VP_CROP_PX_LIMIT = 32768,     /* longest side of a crop */
    VP_CANVAS_PX_LIMIT = 8388608  /* longest side of a canvas: float32, which decides resized sizes, has halves up to here */
};

typedef struct vp_geometry {
    int32_t crop_px;             /* side of one crop and of the global view: 336 */
    int32_t patch_px;            /* side of one ViT patch: 14 */
    int32_t margin_left_patches; /* overlap of neighbouring crops, from config overlap_margins: 4 */
    int32_t margin_right_patches;
    int32_t pool;                /* pooling window side in patches: 2 */
    int32_t max_crops;           /* adaptive tiling's limit, without the global view: 12 */
    float mean[3], std[3];       /* of RGB in 0..1 */
} vp_geometry;
/* The geometry of MolmoE-1B and all Molmo 0924 models, with CLIP's mean and std. */
VP_API vp_geometry vp_geometry_default(void);
/* Says whether a geometry makes sense.
 * returns: VP_OK; VP_ERR_RANGE: a side < 1 or crop_px > VP_CROP_PX_LIMIT; patch_px does not divide crop_px; pool does not divide the patches per
 *          side or a margin; the margins leave no window; max_crops outside 1..VP_CROPS_LIMIT; mean or std not finite, or std < 1e-6 */
VP_API vp_result vp_geometry_check(const vp_geometry *geometry);
/* Derived numbers; 0 for a geometry that vp_geometry_check refuses. */
VP_API int32_t vp_geometry_patches_per_side(const vp_geometry *geometry);  /* crop_px / patch_px: 24 */
VP_API int32_t vp_geometry_tokens_per_side(const vp_geometry *geometry);   /* patches / pool: 12 */
VP_API int32_t vp_geometry_tokens_per_crop(const vp_geometry *geometry);   /* 144 */
VP_API int32_t vp_geometry_window_px(const vp_geometry *geometry);         /* crop without its margins, the stride of the crops: 224 */
VP_API int32_t vp_geometry_margin_px(const vp_geometry *geometry);         /* both margins together: 112 */

/* a range of crop counts; the reference's third word for image size */
typedef struct vp_tier {
    const char *name; /* low, medium, high */
    int32_t min_crops, max_crops;
    int32_t preferred_count, preferred[4]; /* tried first, in this order */
} vp_tier;
/* Tier presets in order low (1-3), medium (4-8), high (9-15); NULL past the end. A preset lives as long as the program.
 * rule:    low never gives 3 crops: primes above 2 are passed over */
VP_API const vp_tier *vp_tier_at(int32_t index);
/* The preset of that name, or NULL. */
VP_API const vp_tier *vp_tier_find(const char *name);

typedef struct vp_tiling { int32_t rows, cols; } vp_tiling;

/* Molmo's own rule: the tiling that needs the least upscaling, or else the least downscaling.
 * in:      width_px, height_px  of the upright image, 1..INT32_MAX
 *          max_crops            1..VP_CROPS_LIMIT, without the global view
 * out:     tiling               on success
 * returns: VP_OK; VP_ERR_RANGE
 * rule:    scale(r, c) = min(window * r / (height - margin), window * c / (width - margin)); the smallest scale >= 1, or where there is none the
 *          largest; ties go to fewer crops, then fewer rows; an image smaller than the margin gets 1x1
 * source:  allenai/molmo olmo/data/model_preprocessor.py select_tiling
 * numeric: exact; the reference compares float32 quotients, which can differ only where max_crops times a side passes 2^23 */
VP_API vp_result vp_tiler_adaptive(const vp_geometry *geometry, int32_t width_px, int32_t height_px, int32_t max_crops, vp_tiling *tiling);
/* The experiments' rule: the crop count of a tier, and its factorisation, nearest to the image's aspect ratio.
 * in:      tier   a preset or the caller's own: 1 <= min_crops <= max_crops <= VP_CROPS_LIMIT, preferred_count 0..4
 * returns: VP_OK; VP_ERR_RANGE (also for tier NULL)
 * rule:    preferred counts first, then the others ascending; primes above 2 passed over; rows ascending; strictly smaller
 *          |cols / rows - width / height| wins; all counts prime: 1 x min_crops
 * source:  ChulanZhang/molmo_hf molmo/preprocessors/multimodal_preprocessor.py select_tiling
 * numeric: double */
VP_API vp_result vp_tiler_tier(const vp_tier *tier, int32_t width_px, int32_t height_px, vp_tiling *tiling);
/* Exactly `crops` crops, in the factorisation whose canvas is nearest to an aspect ratio.
 * in:      crops   1..VP_CROPS_LIMIT, primes included
 *          aspect  width / height, positive and finite
 * returns: VP_OK; VP_ERR_RANGE
 * rule:    smallest |(window * cols + margin) / (window * rows + margin) - aspect|; ties go to fewer rows. Unlike the tiers, the margin counts
 * source:  ChulanZhang/molmo_hf experiments, crops_to_tiling
 * numeric: double */
VP_API vp_result vp_tiler_exact(const vp_geometry *geometry, int32_t crops, double aspect, vp_tiling *tiling);
/* Size of an image shrunk or grown to fit inside a canvas (VP_FIT_PAD), also where vp_layout_compute refuses it because a side becomes 0.
 * in:      canvas 1..VP_CANVAS_PX_LIMIT, image >= 1 [px]
 * returns: VP_OK; VP_ERR_RANGE a side outside that
 * numeric: every step rounded to float32, as the reference does
 * memory:  none */
VP_API vp_result vp_tiler_shrink(int32_t canvas_width_px, int32_t canvas_height_px, int32_t width_px, int32_t height_px, int32_t *resized_width_px,
                                 int32_t *resized_height_px);

typedef enum vp_tile_rule { VP_TILE_ADAPTIVE, VP_TILE_TIER, VP_TILE_CROPS, VP_TILE_TOKENS } vp_tile_rule;
typedef enum vp_fit { VP_FIT_PAD, VP_FIT_FILL } vp_fit; /* fit inside and pad | fill and cut the centre */

/* how to turn an image into crops; the knob of the vision stage */
typedef struct vp_tile_options {
    vp_tile_rule rule;
    vp_fit fit;
    const vp_tier *tier;   /* VP_TILE_TIER */
    int32_t max_crops;     /* VP_TILE_ADAPTIVE */
    int32_t crops;         /* VP_TILE_CROPS, without the global view */
    int32_t vision_tokens; /* VP_TILE_TOKENS: target, crops = tokens / tokens_per_crop - 1 */
} vp_tile_options;
VP_API vp_tile_options vp_tile_options_default(void); /* adaptive, pad, 12 */

/* everything that follows from an image size; `views` = crops + the global view */
typedef struct vp_layout {
    int32_t width_px, height_px; /* of the upright image */
    vp_fit fit;
    vp_tiling tiling;
    int32_t crops, views;
    int32_t canvas_width_px, canvas_height_px;
    int32_t resized_width_px, resized_height_px;   /* image after resizing, before the pad or the cut */
    int32_t offset_left_px, offset_top_px;         /* pad before the image (VP_FIT_PAD) or cut from it (VP_FIT_FILL) */
    int32_t global_resized_width_px, global_resized_height_px;
    int32_t global_offset_left_px, global_offset_top_px;
    int32_t theoretical_tokens; /* views * tokens_per_crop */
    int32_t feature_tokens;     /* <im_patch>: what the LLM really sees */
    int32_t col_tokens, marker_tokens;
    int32_t image_tokens;       /* feature + col + marker: image part of the sequence, without BOS */
} vp_layout;
/* Image size and options -> tiling, sizes and token counts.
 * in:      options              only the member that its rule names is read
 *          width_px, height_px  of the upright image, 1..INT32_MAX
 * out:     layout               on success
 * returns: VP_OK; VP_ERR_RANGE: geometry, option or size out of range; VP_FIT_PAD: a resized side (of the grid or of the global view) is below
 *          one pixel, as for 1x5000; VP_FIT_FILL: a resized side passes INT32_MAX (1x5000 is fine: 336x1680000 before the cut)
 * rule:    canvas = window * cols + margin by window * rows + margin; s = min (pad) or max (fill) of canvas / image over both sides;
 *          pad: side = trunc(image * s), offset = (canvas - side) / 2; fill: side = max(canvas, ceil(image * s)), offset = (side - canvas) / 2;
 *          global view: the same with crop_px for both sides of the canvas. R rows, C columns of crops, T tokens per side, w tokens per window,
 *          m of both margins: H = w R + m, W = w C + m; features = T T + H W; columns = T + H; markers = 4 (start and end, twice)
 * numeric: float32 decides the resized sizes, each step rounded once: do not build with fast-math or x87 arithmetic */
VP_API vp_result vp_layout_compute(const vp_geometry *geometry, const vp_tile_options *options, int32_t width_px, int32_t height_px,
                                   vp_layout *layout, vp_error *error);

#if !defined(VLMPROF_CORE) || defined(VLMPROF_FAMILIES)
/* ============================================================================================ families >>families
 * How many tokens an image costs in other model families, from its width and height and the limits of the model's configuration alone. A preset is
 * one family: its name, the rule it shares with others, the keys that its configuration sets with the values of the published checkpoints, and how
 * certain the rule is. A family is a preset with its keys set. All functions are reentrant; nothing is allocated. */
enum {
    VP_FAMILY_PX_LIMIT = 16777216, /* longest side of an image: a product of two of them times what the rules multiply is exact in a double */
    VP_FAMILY_TILES_LIMIT = 256,   /* most tiles of a tiling rule */
    VP_FAMILY_GRIDS_LIMIT = 1466,  /* grids of at most 256 tiles: the sum of the numbers of divisors */
    VP_FAMILY_KEYS_LIMIT = 8
};
/* how it is known that the numbers are right */
typedef enum vp_certainty {
    VP_CERTAINTY_EXECUTED,  /* the official code was run on the golden sizes, and every column is equal */
    VP_CERTAINTY_NUMBERS,   /* rule read in official code, equal to numbers that its tests or users state */
    VP_CERTAINTY_READ,      /* rule read in official code, not executed */
    VP_CERTAINTY_DOCUMENTED /* the vendor's documentation, or inferred from published measurements: no code is published */
} vp_certainty;
/* The word for a mark ("executed", ...); never NULL. */
VP_API const char *vp_certainty_text(vp_certainty certainty);

/* what a key of a configuration means to a rule; its place in vp_family.value */
typedef enum vp_slot {
    VP_SLOT_MIN,   /* least pixels, patches, tokens or tiles */
    VP_SLOT_MAX,   /* most of them */
    VP_SLOT_SIDE,  /* longest side: pixels, or patches for Kimi */
    VP_SLOT_TILE,  /* side of a tile [px] */
    VP_SLOT_PATCH, /* side of a patch [px] */
    VP_SLOT_MERGE, /* patches a side that become one token */
    VP_SLOT_TOKENS, /* tokens of a view, or of its side */
    VP_SLOT_SPLIT, /* a switch, or the index of a word */
    VP_SLOT_MIN_TOKENS,
    VP_SLOT_MAX_TOKENS,
    VP_SLOT_RATIO, /* the only number that need not be whole */
    VP_SLOT_COUNT
} vp_slot;
typedef struct vp_family_key {
    const char *name; /* the configuration's own; NULL: fixed by the family */
    vp_slot slot;
    double fallback;  /* of the published checkpoints */
} vp_family_key;
typedef struct vp_family_preset {
    const char *name, *aliases; /* aliases: separated by spaces */
    const char *rule;           /* name of the rule that it shares with others */
    int32_t rule_index, variant, markers;
    vp_certainty certainty;
    const char *words;          /* values of VP_SLOT_SPLIT, separated by spaces; NULL: 0 or 1 */
    int32_t column_count;       /* the first keys: those that the golden data of the family vary, and columns of vlmprof tile */
    vp_family_key keys[VP_FAMILY_KEYS_LIMIT];
} vp_family_preset;
/* Presets in the order of the list; NULL past the end. A preset lives as long as the program. */
VP_API const vp_family_preset *vp_family_at(int32_t index);
/* The preset of that name, alias or model_type (case and - _ . do not matter), or NULL. */
VP_API const vp_family_preset *vp_family_find(const char *name);

/* A preset with its keys set, and what follows from them. Members are read only: vp_family_default and vp_family_set fill them. */
typedef struct vp_family {
    const vp_family_preset *preset;
    int64_t value[VP_SLOT_COUNT];
    double ratio;                     /* VP_SLOT_RATIO */
    uint32_t given;                   /* bit 1 << slot: set by the caller */
    int32_t grid_count, canvas_count; /* canvas_count > 0: the caller's list */
    int32_t grid_side;                /* longest side of a canvas, in tiles */
    double grid_ratio[VP_FAMILY_GRIDS_LIMIT];
    int16_t grid_cols[VP_FAMILY_GRIDS_LIMIT], grid_rows[VP_FAMILY_GRIDS_LIMIT];
    int16_t grid_first[VP_FAMILY_TILES_LIMIT + 2]; /* index of the first grid of so many tiles */
} vp_family;
/* The family of a preset with the values of its published checkpoints.
 * memory:  about 19 kB in the caller's struct */
VP_API void vp_family_default(const vp_family_preset *preset, vp_family *family);
/* Sets a key, by the configuration's name and a number, a word, true or false.
 * returns: VP_OK; VP_ERR_NOT_FOUND: no such key (the text names the nearest); VP_ERR_RANGE: not a number or word that the key can have. The family
 *          is untouched then */
VP_API vp_result vp_family_set(vp_family *family, const char *key, const char *text, vp_error *error);
VP_API vp_result vp_family_set_number(vp_family *family, const char *key, double number, vp_error *error);
/* Sets the canvases that a canvas rule (LLaVA, Aria, DeepSeek-VL2) chooses from, in tiles, in the order and with the sides as the configuration has
 * them: height before width, but width before height for llava_next_original and deepseek_vl2.
 * returns: VP_OK; VP_ERR_UNSUPPORTED: the rule has no such list; VP_ERR_RANGE: count outside 1..VP_FAMILY_GRIDS_LIMIT or a side outside 1..16 */
VP_API vp_result vp_family_set_canvases(vp_family *family, const int32_t (*sides)[2], int32_t count, vp_error *error);

/* Picks the family and its keys from the files of a checkpoint, each of which may be absent.
 * in:      files  preprocessor_config.json, processor_config.json, config.json, in this order; NULL: not there. Their top node is an object
 * returns: VP_OK; VP_ERR_NOT_FOUND: none of model_type and image_processor_type names a preset; VP_ERR_UNSUPPORTED: a switch that the rule
 *          does not follow is not at its usual place, or a size whose tokens are not known; VP_ERR_RANGE: a value that the key cannot have
 * rule:    model_type decides, unless it is llava's, then the image processor; of a key the first file that has it */
struct vp_json;
VP_API vp_result vp_family_from_config(vp_family *family, const struct vp_json *const files[3], vp_error *error);

/* what an image costs; -1: the rule has no such number */
typedef struct vp_vision_count {
    int64_t resized_width_px, resized_height_px; /* image or canvas after the resize */
    int64_t rows, cols;                          /* of patches, tokens or tiles; 0,0: no tiles */
    int64_t views;                               /* images that the vision tower sees, global view included */
    int64_t feature_tokens, separator_tokens, marker_tokens;
    int64_t total_tokens; /* what the processor puts in the place of one image; tokens that only a chat template writes are not counted */
} vp_vision_count;
/* Image size -> tokens.
 * in:      width_px, height_px  of the image, 1..VP_FAMILY_PX_LIMIT
 * out:     count                on success
 * returns: VP_OK; VP_ERR_RANGE: a side out of range, or the family's own code refuses the size (the text says why); VP_ERR_UNSUPPORTED: the rule
 *          for such a size is not published
 * rule:    that of the family, operation by operation
 * numeric: IEEE double where the original computes so, float32 where it does, half to even where it rounds so
 * source:  transformers 5.23.0, mistral-common 1.13.1, qwen-vl-utils 0.0.14, llava-torch 1.2.2, the repositories of DeepSeek-VL2, Ovis, MiniCPM-V
 *          and Phi-3.5, and the vendors' documentation, each as the preset's certainty says */
VP_API vp_result vp_family_count(const vp_family *family, int32_t width_px, int32_t height_px, vp_vision_count *count, vp_error *error);
/* The key that limits a family's tokens (max_pixels, max_crops, longest_edge ...), or NULL. */
VP_API const vp_family_key *vp_family_knob(const vp_family *family);
/* The largest value of the knob that keeps images under a number of tokens.
 * in:      sizes_px    [size_count][2] width, height
 *          max_tokens  total tokens that the share of the images must not pass
 *          share       of the images, 0 < share <= 1: 1 all, 0.95 the 95th percentile (the smallest number of images that is at least that share)
 * out:     value       on success; unlimited is 1 when no value of the knob passes max_tokens, and value is the largest one tried
 * returns: VP_OK; VP_ERR_NOT_FOUND: the family has no such knob, or no value of it is small enough; VP_ERR_RANGE: an argument out of range
 * rule:    a size that the family refuses at a value counts as over; knobs of up to 65536 values are tried from the top, others by bisection, where
 *          the tokens grow with the knob */
VP_API vp_result vp_family_largest(const vp_family *family, const int32_t (*sizes_px)[2], size_t size_count, double share, int64_t max_tokens,
                                   int64_t *value, int *unlimited, vp_error *error);
#endif

/* ================================================================================================ select >>select
 * The experiments' arithmetic between a vision-token target, crops, tiling and resolution. All return VP_OK, or VP_ERR_RANGE for an invalid
 * geometry and for arguments or results that are not positive or over the limits above; all are exact and reentrant.
 * source: ChulanZhang/molmo_hf experiments (theoretical tokens: every crop and the global view count whole) */
/* Crops of a token target: max(1, vision_tokens / tokens_per_crop - 1). */
VP_API vp_result vp_select_crops(const vp_geometry *geometry, int32_t vision_tokens, int32_t *crops);
/* Theoretical tokens of a crop count: (crops + 1) * tokens_per_crop. */
VP_API vp_result vp_select_vision_tokens(const vp_geometry *geometry, int32_t crops, int32_t *vision_tokens);
/* Canvas of a tiling: window * cols + margin by window * rows + margin. */
VP_API vp_result vp_select_canvas(const vp_geometry *geometry, vp_tiling tiling, int32_t *width_px, int32_t *height_px);
/* Tiling of a canvas or any size: (side - margin) / window, rounded half to even, at least 1. */
VP_API vp_result vp_select_tiling(const vp_geometry *geometry, int32_t canvas_width_px, int32_t canvas_height_px, vp_tiling *tiling);

/* ================================================================================================ tokens >>tokens
 * Sequence of an image: start, T rows of (T patch, col), end, start, H rows of (W patch, col), end; global view first. */
/* Position of every pooled feature in the sequence.
 * in:      layout           as vp_layout_compute made it for this geometry
 *          first_position   index of the first image token in the sequence (1 behind a BOS), >= 0
 *          capacity         entries of image_input_idx
 * out:     image_input_idx  int32 [views, tokens_per_crop], -100 = dropped (the overlap that a neighbouring crop shows)
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than layout->views * tokens_per_crop entries; VP_ERR_RANGE: an invalid geometry or tiling, or positions pass
 *          INT32_MAX; VP_ERR_MISMATCH: the layout belongs to another geometry
 * rule:    crop (i, j) drops its first margin_left / pool rows if i > 0, its last margin_right / pool rows if it is not the last; columns likewise */
VP_API vp_result vp_tokens_index_map(const vp_geometry *geometry, const vp_layout *layout, int32_t first_position, int32_t *image_input_idx,
                                     size_t capacity);
typedef struct vp_special_ids { int32_t bos, eos, pad, im_start, im_end, im_patch, im_col, image; } vp_special_ids;
/* The image tokens in sequence order.
 * in:      ids       im_start, im_end, im_patch and im_col are used, as they are
 *          capacity  entries of out
 * out:     out       int32 [layout->image_tokens]
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than layout->image_tokens entries; VP_ERR_RANGE, VP_ERR_MISMATCH as above */
VP_API vp_result vp_tokens_image_ids(const vp_geometry *geometry, const vp_layout *layout, const vp_special_ids *ids, int32_t *out, size_t capacity);

/* =============================================================================================== sampler >>sampler
 * Random draws that are numpy's, number for number, and what the experiments draw with them.
 * source: numpy.random.RandomState (legacy generator, frozen by numpy's policy); checked against numpy 1.26.4 */
/* MT19937 seeded with one 32-bit integer. memory: 2.5 KB, the caller's. threads: one generator per thread. */
typedef struct vp_random { uint32_t state[624]; int32_t position; } vp_random;
VP_API void vp_random_seed(vp_random *random, uint32_t seed); /* RandomState(seed); always first */
VP_API uint32_t vp_random_u32(vp_random *random);
VP_API double vp_random_double(vp_random *random);            /* [0, 1), 53 bits: random_sample() */
/* A number in 0..maximum, both included; randint(0, n) is vp_random_below(n - 1).
 * rule: draws under the next mask 2^k - 1 until one is <= maximum; 0 draws nothing; over 2^32 - 1 two words, high first */
VP_API uint64_t vp_random_below(vp_random *random, uint64_t maximum);
/* permutation(count): int64 [count] of 0..count-1. */
VP_API void vp_random_permutation(vp_random *random, int64_t *values, size_t count);
/* RandomState(seed).choice(population, size=count, replace=False), in drawing order.
 * out:     scratch  int64 [population]; the first `count` entries are the result
 * returns: VP_OK; VP_ERR_RANGE: count > population
 * memory:  2.5 KB of stack */
VP_API vp_result vp_sampler_choice(uint32_t seed, size_t population, size_t count, int64_t *scratch);
/* The experiments' choice of samples: all when count >= population, else the choice above, sorted.
 * out:     scratch  int64 [population]; the first *kept entries are the result, ascending
 * returns: VP_OK */
VP_API vp_result vp_sampler_dataset(uint32_t seed, size_t population, size_t count, int64_t *scratch, size_t *kept);
/* The same with a field's values (strata) in their proportions.
 * in:      stratum  uint32 [population]  number of each record's stratum, 0..strata - 1
 * out:     scratch  int64 [population + 2 * strata]; the first *kept entries are the result, ascending
 * returns: VP_OK; VP_ERR_RANGE: a stratum >= strata, or a population over 2^31 - 1
 * rule:    quota = count * members / population, cut to an integer; what is missing goes to the largest remainders, the lower stratum first;
 *          all when count >= population. One generator RandomState(seed): in order of strata, the members are shuffled as numpy does and the
 *          first `quota` are kept
 * numeric: integers only: the same records everywhere
 * memory:  2.5 KB of stack */
VP_API vp_result vp_sampler_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata, size_t count, int64_t *scratch,
                                       size_t *kept);
/* Active blocks of a configuration.
 * in:      active      1..block_count
 *          scores      double [block_count], NaN where the file has none; NULL or all NaN: the first `active` blocks
 *          file_order  int32 [block_count]: place of each block in the file, for ties; NULL: index order
 * out:     blocks      int32 [active], ascending
 * returns: VP_OK; VP_ERR_RANGE: active < 1 or > block_count; VP_ERR_MISMATCH: fewer scored blocks than there are places
 * rule:    first and last are kept (active 1: the first alone), the highest scores of the others fill up
 * source:  ChulanZhang/molmo_hf experiments/core_exp/acc_lat_profiling.py; there active 1 gives two blocks, too few scores too few blocks, and
 *          active > block_count all blocks: refused here */
VP_API vp_result vp_sampler_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order, int32_t *blocks);

/* Which points of the grid first knob (tiers, crops) x top_k x blocks a sweep visits. n is the length of a knob's list. */
#define VP_GRID_STRATEGIES(X) \
    X(VP_GRID_FULL, 0, "full", "every combination") \
    X(VP_GRID_BALANCED, 1, "balanced", "places 0, n/2, n-1 of each list") \
    X(VP_GRID_STRATIFIED, 2, "stratified", "the same places; the reference repeats them in lists under 3") \
    X(VP_GRID_BOUNDARY, 3, "boundary", "the same places, for top_k 0, n/4, n/2, 3n/4, n-1") \
    X(VP_GRID_CUSTOM_SPARSE, 4, "custom_sparse", "every second place from 0 on: can lose the last") \
    X(VP_GRID_LHS, 5, "lhs", "a Latin hypercube: each value of a knob equally often, give or take one") \
    X(VP_GRID_SEED_LHS, 6, "seed_lhs", "the reference's lhs: min(50, combinations / 4) independent draws")

typedef enum vp_grid_strategy {
#define VP_GRID_ENUM(name, value, text, meaning) name = value,
    VP_GRID_STRATEGIES(VP_GRID_ENUM)
#undef VP_GRID_ENUM
    VP_GRID_STRATEGY_LAST_ = 6
} vp_grid_strategy;

#define VP_GRID_LHS_POINTS_MAX 4096

/* The name of a strategy; NULL outside the list, so that 0, 1, ... up to NULL lists them. */
VP_API const char *vp_sampler_strategy_name(int32_t strategy);
/* returns: VP_OK; VP_ERR_NOT_FOUND: no strategy is called so */
VP_API vp_result vp_sampler_strategy_find(const char *name, vp_grid_strategy *strategy);
/* A point count for lhs: the reference's min(50, combinations / 4), but at least the longest list, so that no value is left out.
 * in:      counts  int32 [3]  lengths of the three lists
 * returns: 1..VP_GRID_LHS_POINTS_MAX; 0: a count < 1 */
VP_API size_t vp_sampler_lhs_points(const int32_t counts[3]);
/* The points a strategy visits, as places in the three lists, no point twice.
 * in:      counts      int32 [3]  lengths of the lists, each >= 1
 *          seed        lhs and seed_lhs only; the reference's is 42
 *          points      lhs only: 1..min(combinations, VP_GRID_LHS_POINTS_MAX)
 *          capacity    points that fit
 * out:     index       int32 [capacity, 3]  the first *needed rows; NULL only counts
 *          needed      number of points, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          duplicates  points that the reference visits again and that are left out here, may be NULL; as needed
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than *needed; VP_ERR_RANGE: an unknown strategy, a count < 1, points outside their range, or more bytes
 *          than size_t counts
 * rule:    first knob slowest, last one fastest; the two lhs in drawing order. lhs: a balanced design without repeats (rows walk the diagonals of
 *          the grid; values are renamed at random or, in a list longer than points, taken at equal steps), then random swaps within a knob that
 *          repeat no point
 * source:  ChulanZhang/molmo_hf, combined experiments (the current one takes any name and runs the full grid); lhs: McKay et al. 1979
 * numeric: integers only: the same points everywhere
 * memory:  3.2 KB of stack; lhs takes time with the square of points */
VP_API vp_result vp_sampler_grid(vp_grid_strategy strategy, const int32_t counts[3], uint32_t seed, size_t points, int32_t *index, size_t capacity,
                                 size_t *needed, size_t *duplicates);

/* Rank r of n works on indices r, r + n, r + 2n, ... below count: every index belongs to one rank, none is padded or repeated.
 * out:     first, stride, shard_count  index i of the shard, 0 <= i < *shard_count, is *first + i * *stride
 * returns: VP_OK, also for an empty shard; VP_ERR_RANGE: ranks < 1 or rank outside 0..ranks-1 */
VP_API vp_result vp_sampler_shard(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride, size_t *shard_count);

/* which of several processes this one is */
typedef struct vp_rank {
    const char *launcher;         /* "torchrun", "Open MPI", "PMI" (MPICH, Intel MPI, Hydra), "Slurm" or "none"; static text */
    const char *ignored;          /* the next launcher that left its variables here as well; NULL: none */
    int32_t rank, world_size;     /* 0..world_size - 1; alone: 0 and 1 */
    int32_t local_rank;           /* place among the processes of this machine; -1: not told */
    int32_t local_world_size;     /* processes on this machine; -1: not told */
} vp_rank;
/* Reads what launchers put into the environment.
 * in:      lookup  returns a variable's text or NULL where it is not set (getenv); user is handed to it
 * out:     rank    on VP_OK
 * returns: VP_OK, also where there is no launcher; VP_ERR_NOT_FOUND: one variable of a pair is missing; VP_ERR_FORMAT: a variable is no number
 *          from 0 on; VP_ERR_RANGE: a rank at or over its count. error->where is the variable's name
 * rule:    in this order, the first whose variables are there: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; OMPI_COMM_WORLD_RANK, _SIZE,
 *          _LOCAL_RANK, _LOCAL_SIZE; PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS; SLURM_PROCID, SLURM_NTASKS (before: SLURM_NPROCS),
 *          SLURM_LOCALID. Slurm's count only inside a step of srun: SLURM_STEP_ID is a number below 0xfffffff0 (batch scripts and the shells of
 *          salloc have SLURM_NTASKS too, and step numbers from there on). A local rank that the launcher does not tell is taken from a
 *          later one with the same rank and count
 * memory:  none. threads: as lookup */
VP_API vp_result vp_rank_from_environment(const char *(*lookup)(void *user, const char *name), void *user, vp_rank *rank, vp_error *error);
/* The device of a process: its local rank modulo the devices that it sees, so that a launcher that shows each process its own device works too.
 * returns: 0..visible_count - 1; -1: visible_count < 1, or several are visible and the local rank is not told */
VP_API int32_t vp_rank_device(const vp_rank *rank, int32_t visible_count);

/* ================================================================================================= timer >>timer
 * A clock, and the numbers that describe samples. Values may be of any unit; all functions but the clock are pure.
 * source:  numpy 1.26.4 mean, std (ddof 0), percentile (linear), bit for bit
 * numeric: double, IEEE. A compiler that fuses a * b + c (gcc outside -std=c11 on a target with FMA) changes last bits: -ffp-contract=off */
/* Nanoseconds of a monotonic clock with an arbitrary zero; only differences mean something. A macro VLMPROF_CLOCK_NS, an expression of type int64_t
 * that is defined where the implementation is compiled, replaces the system's clock. */
VP_API int64_t vp_clock_ns(void);
typedef struct vp_statistics {
    size_t count;
    double mean, std, min, p50, p95, p99, max; /* std: population (ddof 0); percentiles: numpy linear (type 7) */
} vp_statistics;
/* numpy's pairwise sum.
 * rule: below 8 values in order; up to 128 eight running sums; above, two halves split at a multiple of 8 */
VP_API double vp_statistics_sum(const double *values, size_t count);
VP_API double vp_statistics_mean(const double *values, size_t count); /* NaN for count 0 */
VP_API double vp_statistics_std(const double *values, size_t count);  /* population; NaN for count 0 */
/* Linear percentile.
 * in:      sorted      double [count], ascending
 *          percentile  0..100
 * returns: the value; NaN for count 0 and for a percentile outside 0..100
 * rule:    p = (count - 1) * (percentile / 100), t = p - floor(p), a and b its neighbours: a + (b - a) * t, or b - (b - a) * (1 - t) for t >= 0.5 */
VP_API double vp_statistics_percentile(const double *sorted, size_t count, double percentile);
/* All of vp_statistics.
 * in:      values   double [count], finite
 *          scratch  double [count], receives the sorted values; may be `values` itself
 * returns: VP_OK; VP_ERR_RANGE: count 0, or a value is NaN or infinite (std may still overflow to infinity, as in numpy) */
VP_API vp_result vp_statistics_compute(const double *values, size_t count, double *scratch, vp_statistics *statistics);

/* ---- what samples say of the quantity behind them. A confidence is a share: 0.95. Where there are too few values for an answer the result is
 * VP_ERR_UNSUPPORTED or, in a struct, NaN: never a guess. All of it supposes independent values; warm-up and drift are the caller's to remove. */
/* Can `count` values tell this percentile?
 * returns: 1 from 3 / min(p, 1 - p) values on (P50: 6, P95: 60, P99: 300): then one lies beyond it with 95 %; else 0, as for 0, 100 and NaN */
VP_API int vp_statistics_percentile_supported(size_t count, double percentile);
/* The least count that has an interval of this percentile (below): P50 at 0.95: 6.
 * returns: 0 for a percentile outside 0..100 or a confidence outside 0..1, ends excluded */
VP_API size_t vp_statistics_percentile_needs(double percentile, double confidence);
/* Interval of a percentile of any distribution, between two of the values.
 * in:      sorted      double [count], ascending
 *          percentile  0..100, confidence 0..1, ends excluded
 * returns: VP_OK; VP_ERR_RANGE: as above, or an end is not finite; VP_ERR_UNSUPPORTED: fewer values than vp_statistics_percentile_needs
 * rule:    B binomial (count, p): low is the largest value number l with P(B < l) <= (1 - confidence) / 2, high the smallest number h
 *          with P(B >= h) <= (1 - confidence) / 2. Covers with at least `confidence`
 * source:  Hahn and Meeker, Statistical Intervals (1991), 5.2 */
VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile, double confidence, double *low,
                                                   double *high);
/* Quantile of Student's t distribution.
 * in:      probability  1e-12..1 - 1e-12
 *          degrees      >= 1; infinity is the normal distribution
 * returns: t with P(T <= t) = probability; NaN outside the ranges
 * numeric: 1e-8 relative or better, by bisection of the regularised incomplete beta function */
VP_API double vp_statistics_student(double probability, double degrees);
/* Student's interval of the mean.
 * returns: VP_OK; VP_ERR_RANGE: a value, or an end, is not finite, or a confidence outside 0..1; VP_ERR_UNSUPPORTED: fewer than 2 values
 * rule:    mean -+ t(1/2 + confidence / 2, count - 1) * s / sqrt(count), s with count - 1 */
VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low, double *high);

#define VP_OUTLIER_THRESHOLD 3.5 /* Iglewicz and Hoaglin's; hyperfine's is 10 */
#define VP_OUTLIER_COUNT_MIN 5   /* at 3.5, of normal values are flagged: 10 % where there are 3, 5 % of 5, 1.7 % of 10, 0.1 % of 100 */
typedef struct vp_outliers {
    size_t count;         /* of flags */
    double median, mad;   /* mad: median absolute deviation from the median */
    double first_score;   /* modified z score of the first value */
    int slow_first;       /* 1: first_score > threshold: caches were cold, or warm-up was too short */
} vp_outliers;
/* Flags outliers; the caller keeps the values.
 * in:      values     double [count], in the order of measurement
 *          threshold  > 0: VP_OUTLIER_THRESHOLD
 * out:     scratch    double [count]; not `values`
 *          flags      uint8 [count], 0 or 1; may be NULL
 * returns: VP_OK; VP_ERR_RANGE: a value or a deviation is not finite, or the threshold not above 0; VP_ERR_UNSUPPORTED: fewer than
 *          VP_OUTLIER_COUNT_MIN values
 * rule:    |z| > threshold, z = 0.6745 (x - median) / mad; where mad is 0 (half of the values are equal) z = (x - median) / (1.253314 times
 *          the mean absolute deviation); where that is 0 too all values are equal and none is flagged
 * source:  Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993); the slow first value: sharkdp/hyperfine, its warnings */
VP_API vp_result vp_statistics_outliers(const double *values, size_t count, double threshold, double *scratch, uint8_t *flags,
                                        vp_outliers *outliers);

typedef struct vp_estimate { double value, low, high; } vp_estimate; /* an end that cannot be told is NaN */
typedef struct vp_paired {
    size_t count;
    vp_estimate mean, median;                   /* of b - a, with 95 % intervals: Student's, and by order statistics */
    vp_estimate relative_mean, relative_median; /* the same divided by the mean of a; NaN unless that is above 0 */
    double share_greater;                       /* share of pairs with b > a */
} vp_paired;
/* Differences of pairs: bare against staged runs, one configuration against another over the same samples.
 * in:      a, b     double [count], finite
 * out:     scratch  double [count]: the sorted differences
 * returns: VP_OK; VP_ERR_RANGE: count 0, or a difference is not finite */
VP_API vp_result vp_statistics_paired(const double *a, const double *b, size_t count, double *scratch, vp_paired *paired);

#define VP_STOPS(X) \
    X(VP_STOP_NOT, 0, "not", "go on") \
    X(VP_STOP_RUNS, 1, "runs", "all runs are there, and no half-width is asked for") \
    X(VP_STOP_INTERVAL, 2, "interval", "the interval is narrow enough") \
    X(VP_STOP_BOX, 3, "box", "the time is up") \
    X(VP_STOP_MAX, 4, "max", "no more runs are allowed")
typedef enum vp_stop {
#define VP_STOP_ENUM(name, value, text, meaning) name = value,
    VP_STOPS(VP_STOP_ENUM)
#undef VP_STOP_ENUM
    VP_STOP_LAST_ = 4
} vp_stop;
VP_API const char *vp_stop_name(int32_t stop); /* NULL outside the list */
typedef struct vp_stop_rule {
    int64_t min_runs, max_runs; /* 1 <= min_runs <= max_runs; max_runs only matters with a half-width */
    double half_width;          /* of the interval of P50, as a share of P50: 0.01 is +-1 %; 0: min_runs and no more */
    double confidence;          /* of that interval: 0.95 */
    int64_t box_ns;             /* time for all runs of a point; 0: no limit */
} vp_stop_rule;
/* Is another run needed? Asked after each one.
 * in:      values      double [count]  the runs so far
 *          elapsed_ns  since the first of them began
 * out:     scratch     double [count]
 *          stop        VP_STOP_NOT or the reason to stop
 * returns: VP_OK; VP_ERR_RANGE: a rule outside its ranges, elapsed_ns < 0, or a value is not finite
 * rule:    below min_runs go on, whatever the time; then "runs", or with a half-width the first that holds of "interval", "max" and "box".
 *          The half-width is half the distance of the ends of vp_statistics_percentile_interval; below vp_statistics_percentile_needs there is
 *          none. Looking after every run makes the stated confidence a little optimistic */
VP_API vp_result vp_stop_decide(const vp_stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns, double *scratch, vp_stop *stop);

/* The smallest differences between two configurations that are found with power 0.8 by a test at 5 %, two-sided. NaN: too few to tell any. */
typedef struct vp_resolution {
    double accuracy;  /* of 0/1 scores, absolute, by McNemar's test over the same questions */
    double mean, p50; /* of a latency, as a share of it, each configuration measured `count` times apart; pairs over the same samples find less */
} vp_resolution;
/* What a sample size can resolve.
 * in:      discordance  0..1  share of the questions on which just one of the two is right; 0.5: two that guess; 1: the worst case
 *          variation    >= 0  coefficient of variation (standard deviation / mean) of the latency
 * returns: VP_OK; VP_ERR_RANGE: a share outside its range
 * rule:    accuracy: the d with sqrt(count) d = z(0.975) sqrt(discordance) + z(0.8) sqrt(discordance - d^2); NaN below 10 discordant questions.
 *          mean: (t(0.975) + t(0.8)) variation sqrt(2 / count), 2 count - 2 degrees; p50: sqrt(pi / 2) times that, as for normal values
 * source:  Connor, Sample size for testing differences in proportions for the paired-sample design (Biometrics 43, 1987) */
VP_API vp_result vp_statistics_resolution(size_t count, double discordance, double variation, vp_resolution *resolution);

/* ================================================================================================== json >>json
 * Writer, strict reader and the two number conversions. No allocation, no stdio, no locale.
 * memory:  none but the caller's buffers (and less than 3 KiB of stack)
 * threads: reentrant; one writer per thread; a parsed vp_json is read-only and may be shared */

/* Gets the text piece by piece (a piece may be one byte, and is not NUL-terminated); anything but VP_OK stops the writer with that code. */
typedef vp_result (*vp_json_sink)(void *user, const char *text, size_t bytes);

/* Writes one JSON value into a caller's buffer or a sink; commas, quotes, escapes and line breaks are the writer's business. Errors stick:
 * every call may go unchecked, vp_json_finish tells.
 * returns: (in `result`, and from vp_json_finish) VP_OK; VP_ERR_STATE: a value without a key in an object, a key elsewhere, an end without its
 *          begin, a second or no top-level value, something left open; VP_ERR_FORMAT: text that is not UTF-8 or NULL, a raw value that is not
 *          JSON; VP_ERR_RANGE: NaN or infinity, more than 64 levels, an indent outside 0..16; VP_ERR_CAPACITY: the buffer is full; the sink's code
 * rule:    ", " and ": " between; with an indent members and containers stand on lines of their own, scalars of an array share one;
 *          escapes are \" \\ \n \r \t \b \f and \u00xx for other control characters, all else stays UTF-8
 * memory:  a full buffer holds the beginning of the text; length_bytes goes on counting, a buffer of length_bytes + 1 would have done */
typedef struct vp_json_writer {
    char *buffer;
    size_t capacity, length_bytes; /* length without the NUL */
    vp_json_sink sink;
    void *user;
    vp_result result;
    int32_t depth, indent;         /* indent: spaces a level, 0 = everything on one line */
    unsigned char open[64];        /* per level: '{' or '[' */
    unsigned char filled[64];      /* per level: empty, on one line so far, or broken over lines */
    int after_key;
} vp_json_writer;
/* in: buffer  char [capacity]  NULL only counts (VP_ERR_CAPACITY at the end, length_bytes is right) */
VP_API void vp_json_writer_init(vp_json_writer *w, char *buffer, size_t capacity, int32_t indent);
VP_API void vp_json_writer_init_sink(vp_json_writer *w, vp_json_sink sink, void *user, int32_t indent);
VP_API void vp_json_begin_object(vp_json_writer *w);
VP_API void vp_json_end_object(vp_json_writer *w);
VP_API void vp_json_begin_array(vp_json_writer *w);
VP_API void vp_json_end_array(vp_json_writer *w);
VP_API void vp_json_key(vp_json_writer *w, const char *key); /* duplicates are not noticed */
VP_API void vp_json_string(vp_json_writer *w, const char *text);
VP_API void vp_json_string_bytes(vp_json_writer *w, const char *text, size_t bytes); /* may hold NUL bytes: written as \u0000 */
VP_API void vp_json_int(vp_json_writer *w, int64_t value);
VP_API void vp_json_double(vp_json_writer *w, double value); /* as vp_number_format */
VP_API void vp_json_bool(vp_json_writer *w, int value);
VP_API void vp_json_null(vp_json_writer *w);
/* One complete JSON value, checked, then copied as it is. */
VP_API void vp_json_raw(vp_json_writer *w, const char *text, size_t bytes);
/* Checks that everything is closed and puts a NUL behind a buffer's text (in a full one at its last byte); returns w->result. */
VP_API vp_result vp_json_finish(vp_json_writer *w);

typedef enum vp_json_type { VP_JSON_NULL, VP_JSON_FALSE, VP_JSON_TRUE, VP_JSON_NUMBER, VP_JSON_STRING, VP_JSON_ARRAY, VP_JSON_OBJECT } vp_json_type;
typedef struct vp_json_node {
    uint8_t type;        /* a vp_json_type; keys are VP_JSON_STRING */
    uint8_t escaped;     /* string: holds a backslash */
    uint32_t count;      /* array: elements; object: members (a member is a key node followed by its value); else 0 */
    uint32_t end;        /* index one past this node's subtree: the next sibling */
    uint64_t start, bytes; /* the value's place in the text; a string without its quotes, still escaped */
} vp_json_node;
/* Nodes in document order: 0 is the top value, a container's children follow it. Borrows text and nodes. */
typedef struct vp_json { const char *text; const vp_json_node *nodes; uint32_t node_count; } vp_json;
#define VP_JSON_NONE UINT32_MAX /* "no such node"; every reader function takes it, so that lookups can be chained */

/* Reads one JSON text strictly: no trailing text, comments, NaN, byte order mark; strings must be UTF-8; at most 64 levels.
 * in:      text    char [bytes]       need not end with NUL
 * in:      nodes   [capacity]         NULL: only check and count; contents unspecified on failure
 * out:     json    may be NULL        on VP_OK
 * out:     needed  nodes the text has, may be NULL; on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK; VP_ERR_CAPACITY: the text is valid but has more nodes than fit (so always when counting with NULL); VP_ERR_FORMAT:
 *          malformed, error->offset is the byte; VP_ERR_RANGE: nested deeper than 64 levels, or more than 2^32 - 2 nodes
 * rule:    one pass, no recursion; duplicate keys are allowed here (see vp_json_has_duplicates)
 * source:  RFC 8259; UTF-8 by table 3-7 of the Unicode standard */
VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json, size_t *needed, vp_error *error);
/* Index of a member's value, or VP_JSON_NONE (also when `object` is none). Linear; keys are compared unescaped; of equal keys the last counts. */
VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key);
/* Index of an element, or VP_JSON_NONE. Linear: to visit all, start at array + 1 and follow `end`. */
VP_API uint32_t vp_json_at(const vp_json *json, uint32_t array, uint32_t index);
/* 1 when a node is a string that, unescaped, equals the text. */
VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text);
/* Finds the first key, in document order, that repeats an earlier one of the same object (nested objects are not looked into).
 * in:      scratch    uint32 [capacity]   at least one a member: nodes[object].count
 * out:     duplicate  node index of that key, or VP_JSON_NONE when all differ; on VP_OK
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not an object)
 * rule:    keys are compared unescaped; heap sort, so n log n whatever the keys are */
VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity, uint32_t *duplicate);
/* Unescaped text of a string or key, with NUL behind it. \u0000 becomes a NUL byte within: *needed tells the true length.
 * out:     needed  bytes without the closing NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY (out NULL only counts)
 * returns: VP_OK, VP_ERR_CAPACITY (fewer than *needed + 1), VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a string)
 * rule:    an escaped surrogate without its partner becomes U+FFFD */
VP_API vp_result vp_json_text(const vp_json *json, uint32_t string, char *out, size_t capacity, size_t *needed);
/* A number as an integer: 3, 3.0, 30e-1 are 3.
 * returns: VP_OK, VP_ERR_FORMAT (not whole), VP_ERR_RANGE (not an int64), VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a number)
 * numeric: exact, never by way of a double */
VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value);
/* A number as a double; returns and numeric: as vp_number_parse, VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a number) */
VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value);

/* The shortest text that reads back to the same double, in the layout of Python's repr: 0.1, 3.0, -0.0, 1e-07, 1.5e+300; valid JSON.
 * out:     out  char [26]  at most 24 bytes and a NUL
 * returns: bytes without the NUL; 0 and empty text for NaN and infinities, which JSON lacks
 * numeric: exact; among the shortest texts the one nearest to the value
 * source:  Steele, White: How to print floating-point numbers accurately (1990); Burger, Dybvig (1996) */
VP_API size_t vp_number_format(double value, char *out);
/* The double nearest to a JSON number of any length, ties to even; too small ones become subnormal or 0.
 * returns: VP_OK, VP_ERR_FORMAT (not exactly one JSON number: no blanks, no leading +), VP_ERR_RANGE (beyond the largest double)
 * numeric: correctly rounded; about 40 ns for up to 15 digits and small exponents, else about a microsecond */
VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value);
/* Bytes of valid UTF-8 at the start of a text; == bytes when all is valid. */
VP_API size_t vp_utf8_valid_bytes(const char *text, size_t bytes);

#ifndef VLMPROF_CORE

/* ============================================================================================ preprocess >>preprocess
 * Upright RGB -> what the vision transformer takes. Resizing is antialiased bilinear as torch does it, made only where a view shows it. */

/* Bytes of scratch that vp_preprocess wants for this layout, whatever the alignment of the memory; 0 for a geometry or layout that it refuses.
 * memory:  result is bounded by the canvas width and one band of source rows, never by the resized image: 1x5000 filled to 336x3472 needs
 *          16 kB, 1200x800 to 12 crops 78 kB, 10000x10000 0.5 MB */
VP_API size_t vp_preprocess_scratch_bytes(const vp_geometry *geometry, const vp_layout *layout);
/* Floats of the pixel output, views * crop_px * crop_px * 3; 0 for a geometry or layout that vp_preprocess refuses. */
VP_API size_t vp_preprocess_pixel_count(const vp_geometry *geometry, const vp_layout *layout);
/* Resizes, normalises and cuts an image into the patches of all views.
 * in:      layout       as vp_layout_compute made it for this image and geometry
 *          rgb          uint8 [height, width, 3]  the upright image
 *          scratch      scratch_bytes, at least vp_preprocess_scratch_bytes; any alignment
 * out:     pixels       f32 [views, patches, patch_px * patch_px * 3]  global view first, then crops row by row; patches row by row; inside a
 *                       patch (y, x, channel)
 *          image_masks  f32 [views, patches]  share of the patch that is image and not padding; row i belongs to crop i, counted without the
 *                       global view, and the last row is -1: the model was trained with this shift
 * returns: VP_OK; VP_ERR_RANGE: a NULL, a bad geometry, sides or views < 1, or over VP_IMAGE_PIXELS_MAX pixels in the image or in all views;
 *          VP_ERR_MISMATCH: the layout's numbers do not fit together; VP_ERR_CAPACITY: scratch is too small
 * rule:    u8 / 255; horizontal pass, then vertical pass, an axis of unchanged size skipped; clip to 0..1; VP_FIT_PAD: centred on a canvas of 0,
 *          VP_FIT_FILL: the centre is cut out; (v - mean) / std. Global view and crops are both made from the original image.
 * source:  ChulanZhang/molmo_hf preprocessing_molmo.py (pad) and multimodal_preprocessor.py (fill); torch 2.5 upsample_bilinear2d_aa
 * numeric: float32 throughout, weights and positions too; products are accumulated by fused multiply-add in ascending order, so the bits are
 *          the same with and without AVX2
 * memory:  none beside scratch
 * threads: reentrant */
VP_API vp_result vp_preprocess(const vp_geometry *geometry, const vp_layout *layout, const uint8_t *rgb, float *pixels, float *image_masks,
                               void *scratch, size_t scratch_bytes);

/* ================================================================================================= image >>image
 * PNG and JPEG files -> upright 8-bit RGB. Everything else is refused by name. With VLMPROF_NO_STB both readers return VP_ERR_UNSUPPORTED. */
enum { VP_IMAGE_PIXELS_MAX = 100000000 }; /* of a decoded image, and of all views of one image together */

typedef struct vp_image {
    int32_t width_px, height_px; /* upright */
    uint8_t *rgb;                /* [height, width, 3]; the library's memory: release with vp_image_free, never with free() */
} vp_image;

/* Upright size of an image file from its headers alone.
 * in:      file    uint8 [bytes]  PNG or JPEG; a beginning is enough if it holds the frame header and, where there is one, the EXIF block
 * out:     width_px, height_px    on VP_OK
 * returns: VP_OK; VP_ERR_FORMAT: not an image, cut or damaged in the headers; VP_ERR_UNSUPPORTED: another format, or a kind of PNG or JPEG that
 *          is not read (CgBI; CMYK, arithmetic, lossless, 12-bit); VP_ERR_RANGE: a NULL
 * rule:    EXIF orientations 5..8 swap the sides; no limit on the size
 * threads: reentrant */
VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error);
/* Decodes an image file into upright RGB.
 * in:      file    uint8 [bytes]  the whole PNG or JPEG file; bytes behind its end mark are ignored
 * out:     image   on VP_OK
 * returns: VP_OK; VP_ERR_FORMAT: not an image, truncated, damaged (PNG checksums are looked at), or a header that the data cannot fill or overflow;
 *          VP_ERR_UNSUPPORTED: as vp_image_size, and JPEGs without tables or with over 500 scans, and files over 2 GiB; VP_ERR_RANGE: a NULL,
 *          more than VP_IMAGE_PIXELS_MAX pixels, or a side over 2^24; VP_ERR_MEMORY
 * rule:    grey is copied to three channels, 1, 2 and 4 bits stretched to 0..255; palettes looked up (black beyond their end); alpha and colour
 *          keys dropped, not blended; 16-bit RGB keeps the high byte; 16-bit grey saturates, min(v, 255), as the reference's image library does
 * source:  PNG and JPEG data by stb_image, its zlib output bounded by what the header promises; containers and EXIF (CIPA DC-008) read here
 * numeric: PNG exact; JPEG differs from libjpeg's bytes by up to 3 levels (4:2:2 chroma: 27)
 * memory:  3 bytes a pixel that stay; while decoding up to about 24 a pixel
 * threads: reentrant */
VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error);
/* Releases an image and empties it; NULL and an empty image are allowed. */
VP_API void vp_image_free(vp_image *image);

/* ============================================================================================ checkpoint >>checkpoint
 * config.json -> the shape of a model; the tensors such a model has; safetensors files -> those tensors. Uses malloc, mmap and stdio. */
enum { VP_VIT_LAYERS_MAX = 4 };
/* The shape of a MolmoE model, from config.json (names of the fields there in brackets). Counts and widths are positive,
 * but for additional_vocab_size, which may be 0. */
typedef struct vp_model_config {
    int32_t d_model, head_count, head_dim, block_count;        /* [d_model, n_heads, d_model / n_heads, n_layers] */
    int32_t expert_count, expert_dim, top_k;                   /* [moe_num_experts, mlp_hidden_size or mlp_ratio * d_model, halved; moe_top_k] */
    int32_t vocab_size, embedding_size, additional_vocab_size; /* text tokens; rows of wte.embedding and lm_head; rows of wte.new_embedding */
    int32_t max_sequence_length;                               /* the length of training */
    int32_t max_positions;                                     /* most positions of a request [max_position_embeddings, else max_sequence_length] */
    double rope_theta;
    float norm_eps;                                            /* [layer_norm_eps] */
    int32_t vit_width, vit_head_count, vit_head_dim, vit_mlp_dim, vit_block_count, vit_positions; /* [vision_backbone.image_*] */
    float vit_norm_eps;
    int32_t vit_layers[VP_VIT_LAYERS_MAX], vit_layer_count;    /* block outputs used, as in the config (negative from the end) */
    int32_t vit_blocks_needed;                                 /* blocks that must run for them: 1 + the largest index */
    int32_t projector_dim;                                     /* hidden width of the image projector: = expert_dim */
    vp_geometry geometry;                                      /* preprocessor_config.json, else config.json */
} vp_model_config;

/* Reads the shape of a model; everything that the engine does not implement is refused by its name.
 * in:      config_json        bytes [config_bytes]        text of config.json
 *          preprocessor_json  bytes [preprocessor_bytes]  text of preprocessor_config.json; NULL: geometry from config.json and CLIP's mean and std
 * out:     config             on success only
 * returns: VP_OK; VP_ERR_FORMAT bad JSON or a value of the wrong type; VP_ERR_NOT_FOUND a field is missing; VP_ERR_RANGE a value is out of range;
 *          VP_ERR_UNSUPPORTED a feature the engine lacks; VP_ERR_MISMATCH two fields contradict each other; VP_ERR_MEMORY. error->where is the field.
 * rule:    an absent field has the default of the reference's ModelConfig, so that one whose default is not implemented is refused as well.
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/config_molmoe.py and modeling_molmoe.py
 * memory:  temporary: about 40 bytes a JSON value
 * threads: reentrant */
VP_API vp_result vp_model_config_parse(const char *config_json, size_t config_bytes, const char *preprocessor_json, size_t preprocessor_bytes,
                                       vp_model_config *config, vp_error *error);
/* Built-in shapes: "molmoe-1b" is the real model's; "tiny" runs in milliseconds and goes with the byte tokenizer.
 * returns: VP_OK, or VP_ERR_NOT_FOUND for another name (outputs untouched)
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_model_config_preset(const char *name, vp_model_config *config);
VP_API vp_result vp_model_preset_ids(const char *name, vp_special_ids *ids);

typedef enum vp_dtype { VP_DTYPE_F32, VP_DTYPE_BF16, VP_DTYPE_F16 } vp_dtype;
/* Conversions of one value. To f32 is exact (NaN becomes quiet); to bf16 rounds to nearest, ties to even: subnormals are kept, too large
 * values become infinity, NaN stays a quiet NaN of the same sign.
 * memory:  none
 * threads: reentrant */
VP_API float vp_bf16_to_f32(uint16_t value);
VP_API uint16_t vp_f32_to_bf16(float value);
VP_API float vp_f16_to_f32(uint16_t value);

/* A tensor that a model of this config has: name and shape, outermost dimension first. */
typedef struct vp_tensor_spec { char name[112]; int32_t dimensions; int64_t shape[2]; } vp_tensor_spec;
/* Number of tensors (3,573 for MolmoE-1B), and tensor `index` of them in a fixed order: embeddings, final norm, blocks, connector, ViT, head.
 * in:      config  as vp_model_config_parse or a preset fills it
 *          index   0..count-1, else VP_ERR_RANGE
 * out:     spec    on success only
 * memory:  none
 * threads: reentrant */
VP_API int64_t vp_model_tensor_count(const vp_model_config *config);
VP_API vp_result vp_model_tensor(const vp_model_config *config, int64_t index, vp_tensor_spec *spec);

/* A tensor of a file: row-major, little-endian; `data` points into the mapping and may be unaligned for its type. */
typedef struct vp_tensor {
    vp_dtype dtype;
    int32_t dimensions;
    int64_t shape[4];
    const unsigned char *data;
    uint64_t bytes;
    int32_t shard; /* index of its file; shards are in the order of their names */
} vp_tensor;
typedef struct vp_checkpoint vp_checkpoint; /* one mapped safetensors file or a folder of shards */

/* Opens a model folder: model.safetensors, else model.safetensors.index.json and the shards it names, else model.packed. Every header is
 * checked strictly before anything is read; with a config, names and shapes are compared and one error lists what is missing, extra or misshapen.
 * in:      directory   path of the folder
 *          config      NULL: any set of tensors is accepted
 * out:     checkpoint  on success only; close it with vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND no folder, no weights or a missing shard; VP_ERR_READ; VP_ERR_FORMAT a malformed file; VP_ERR_MISMATCH names
 *          or shapes differ from the index or the config, packed weights of another config, safetensors beside packed weights;
 *          VP_ERR_UNSUPPORTED pytorch_model.bin, OLMo's original format, packed weights of another version or byte order, or a needed tensor is
 *          not F32, BF16 or F16; VP_ERR_MEMORY
 * rule:    header <= 100,000,000 bytes of JSON that begins with "{"; offsets tile the buffer without hole, overlap or rest; each key once
 * source:  github.com/huggingface/safetensors, safetensors/src/tensor.rs
 * memory:  about 120 bytes a tensor; the files are mapped read-only and must not shrink while open
 * threads: one opener; a checkpoint may then be read from many threads */
VP_API vp_result vp_checkpoint_open(const char *directory, const vp_model_config *config, vp_checkpoint **checkpoint, vp_error *error);
/* One tensor by its name.
 * out:     tensor  on success only; tensor->data lives until vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND (always so in packed weights); VP_ERR_UNSUPPORTED a type other than F32, BF16, F16, or over 4 dimensions
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_checkpoint_find(const vp_checkpoint *checkpoint, const char *name, vp_tensor *tensor);
VP_API int32_t vp_checkpoint_shard_count(const vp_checkpoint *checkpoint);
/* Who reads a tensor says so before (needed 1: the system fetches it ahead) and after (needed 0: its pages leave this process's memory, and
 * would come back from the file), so that a checkpoint larger than the memory can be read tensor by tensor. Advice only: data never change.
 * memory:  none
 * threads: reentrant */
VP_API void vp_checkpoint_advise(const vp_checkpoint *checkpoint, const vp_tensor *tensor, int needed);

/* A packed file, which vp_engine_convert writes and vp_engine_open uses where it lies: a header, then the bf16 weights of the CPU engine byte
 * for byte as they stand in its memory. */
#define VP_PACKED_FILE "model.packed"
enum { VP_PACKED_VERSION = 1, VP_PACKED_HEADER_BYTES = 4096 };
typedef struct vp_packed {
    uint64_t model_hash;          /* vp_model_hash */
    uint64_t weights_bytes;
    uint32_t panel_columns;       /* of the kernels the weights were packed for */
    const unsigned char *weights; /* in the mapping; not part of the header */
} vp_packed;
/* Of all tensors' names and shapes, and of the number of vision blocks that run: packed weights fit configs of the same hash. */
VP_API uint64_t vp_model_hash(const vp_model_config *config);
/* The header for packed weights: magic "VLMPACK", byte order, version, own length, the fields above, zeros, and in its last 8 bytes the FNV-1a
 * hash of what stands before. */
VP_API void vp_packed_header(const vp_packed *packed, unsigned char header[VP_PACKED_HEADER_BYTES]);
/* out:     packed  on success only; packed->weights lives until vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND the folder held safetensors */
VP_API vp_result vp_checkpoint_packed(const vp_checkpoint *checkpoint, vp_packed *packed);
VP_API void vp_checkpoint_close(vp_checkpoint *checkpoint); /* NULL is allowed */

/* Reads a whole file (or pipe) into malloc'ed memory with a NUL behind it that is not counted.
 * in:      limit_bytes  a longer file is VP_ERR_RANGE
 * out:     text, bytes  on success only; release text with free
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_READ (a folder, no permission, a read error); VP_ERR_RANGE; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error);

/* ============================================================================================= tokenizer >>tokenizer
 * Byte-level BPE as GPT-2, GPT-NeoX and OLMo use it, read from a Hugging Face tokenizer.json; this section allocates.
 * A tokenizer is constant after loading: any number of threads may encode and decode with one. */
typedef struct vp_tokenizer vp_tokenizer;

/* Reads a tokenizer.json: NFC or no normaliser, ByteLevel pre-tokeniser and decoder, BPE model, no template.
 * in:      json       [bytes] the file's text, not kept
 * out:     tokenizer  release with vp_tokenizer_free
 *          error      may be NULL; names the option, token or merge, with its byte offset where there is one
 * returns: VP_OK; VP_ERR_FORMAT broken JSON, a missing part, a token twice, a merge of unknown tokens; VP_ERR_UNSUPPORTED a
 *          component or an option that is not implemented (by name), ids from 2^22 on, added tokens over 1024 bytes;
 *          VP_ERR_MISMATCH an added token whose id is not the one the reference gives it; VP_ERR_MEMORY; VP_ERR_RANGE
 *          JSON nested deeper than 64 levels, json or tokenizer NULL
 * rule:    nothing is ignored: an unknown member anywhere is refused, so that no tokenizer is ever half-obeyed
 * source:  huggingface/tokenizers 0.20.3 (models/bpe, pre_tokenizers/byte_level.rs, tokenizer/added_vocabulary.rs)
 * memory:  about 1.2 MB of Unicode tables + 60 bytes per token and merge; during the call about 12 times the file */
VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error);

/* The built-in byte tokenizer of the synthetic presets: byte b is id 2 + b; the special ids stand for their usual contents.
 * in:      ids  0 .. 2^22 - 1 each, none of 2..257, all different but bos = eos
 * returns: VP_OK, VP_ERR_RANGE (an id outside its range, NULL), VP_ERR_MISMATCH (two meanings for one id), VP_ERR_MEMORY
 * rule:    "<|endoftext|>" (eos), "<|padding|>", "<im_start>", "<im_end>", "<im_patch>", "<im_col>" and "<|image|>" in a text
 *          become their id and back; no normalisation; other ids vanish when decoded */
VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer);
/* NULL is allowed. */
VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer);

/* The special ids, found by content (added tokens and vocabulary); "<|endoftext|>" is both bos and eos.
 * returns: VP_OK; VP_ERR_NOT_FOUND with the missing content's name; VP_ERR_RANGE (NULL) */
VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error);

/* Text to ids. No BOS is put in front: that is the prompt builder's business.
 * in:      text      UTF-8 [bytes], at most 2^29 bytes; NUL is a character like any other
 *          capacity  of ids; 0 with ids NULL only counts
 * out:     ids       int32 [count], written only on VP_OK
 *          count     the number needed; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_FORMAT (not UTF-8), VP_ERR_RANGE (too long, NULL), VP_ERR_MEMORY
 * rule:    added tokens with normalized = false are cut out, leftmost and longest; each piece is normalised to NFC (Unicode 9.0);
 *          added tokens with normalized = true are cut out; each piece is split into words ('s 't 're 've 'm 'll 'd, or letters |
 *          numbers | others with one space in front, or white space; Unicode 14.0); BPE merges by rank, leftmost first, in each word.
 *          A byte that the vocabulary lacks vanishes, as in the reference.
 * memory:  about 2 times the text; a single word of n bytes over 64 takes 44 n for the time of its merges, O(n log n) time
 * threads: reentrant */
VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids, size_t capacity, size_t *count);

enum { VP_DECODE_SKIP_SPECIAL = 1, VP_DECODE_CLEAN_UP = 2 };
/* Ids to text.
 * in:      ids       int32 [count], any values: those outside the vocabulary vanish
 *          flags     VP_DECODE_SKIP_SPECIAL: special tokens vanish; VP_DECODE_CLEAN_UP: spaces before . ? ! , and English
 *                    contractions go, as transformers' clean_up_tokenization_spaces does
 * out:     out       UTF-8 with NUL, written only on VP_OK (a NUL character of the text may stand inside: see needed)
 *          needed    bytes without the last NUL; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY (out has no room for needed + 1), VP_ERR_RANGE (unknown flags, NULL, over 2^40 bytes), VP_ERR_MEMORY
 * rule:    a token's characters are bytes of the GPT-2 alphabet; a token with any other character is its own UTF-8 text; what is
 *          not UTF-8 after joining becomes one U+FFFD per maximal invalid part (Rust's from_utf8_lossy)
 * threads: reentrant */
VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags, char *out, size_t capacity,
                                     size_t *needed);

/* ================================================================================================ prompt >>prompt
 * A data set's record -> the text that the tokenizer gets. Several messages stand one behind the other; their ids are the ids of that text.
 * (A data set's metric: vp_score_metric_for_dataset.)
 * source: ChulanZhang/molmo_hf 09bce1f, molmo/data/academic_datasets.py and data_formatter.py (prompt_type uber_model, message_formatting role,
 *         system_prompt_kind demo_or_style, always_start_with_space), slips included; max_new_tokens: experiments/core_exp/answer_length_summary.md
 *         (recommended; its launch scripts have 16, 64, 16, 16, 32, 32, 16 and 64 in this order, without mmmu) */

/* how a data set makes its messages */
typedef enum vp_prompt_kind {
    VP_PROMPT_QUESTION,  /* one question; options of the record are not read */
    VP_PROMPT_QUESTIONS, /* all questions of an image, a message each: the model answers the last one */
    VP_PROMPT_SCIENCE,   /* question and options; a hint that is not empty stands twice in place of the question */
    VP_PROMPT_MMMU,      /* multiple choice or open, by question_type; two options that are image links drop the image, and with it BOS */
    VP_PROMPT_CAPTION    /* no question: one of ten templates by lot */
} vp_prompt_kind;
typedef struct vp_prompt_dataset {
    const char *name, *style; /* style: of mmmu's open questions; its multiple choice has a_okvqa_mc */
    int32_t max_new_tokens;   /* longest reference answer, rounded up to a power of two */
    vp_prompt_kind kind;
} vp_prompt_dataset;
/* The data sets; NULL outside the list, so that 0, 1, ... up to NULL lists them. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index);
/* NULL: none is called so (name NULL is allowed). */
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name);
/* The only data set with this style; NULL for vqa2, a_okvqa_mc and any other style. */
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style);

#define VP_PROMPT_OPTIONS 7       /* the reference has letters A to G; further options vanish */
#define VP_PROMPT_PLAIN_OPTIONS 26 /* without data set and style, which is no prompt of the reference: A to Z */

/* What is known of a record; zeroed fields are unknown. */
typedef struct vp_prompt {
    const vp_prompt_dataset *dataset;                        /* NULL: none of the nine; options then follow any question */
    const char *style;                                       /* NULL: the data set's; neither: no style in the text */
    const char *const *questions; size_t question_count;
    const char *const *options; size_t option_count;         /* NULL: the record has none */
    const char *hint, *question_type;                        /* question_type: "multiple-choice", else open */
    uint32_t rng_seed;                                       /* of the lot for captions: the experiment's seed (66, older ones 42) + data set index */
} vp_prompt;
typedef struct vp_prompt_info {
    const char *style;              /* in the text; NULL: none */
    int has_image, bos_prepended;   /* what the reference puts before the text */
    int has_subsegments;            /* more than one message */
    int32_t template_index;         /* of a caption, else -1 */
    size_t options_dropped;
} vp_prompt_info;

/* Record to text.
 * out:     out       [capacity] with NUL, on success only; NULL only counts
 *          needed    bytes without the NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          info      may be NULL; as needed
 *          error     may be NULL; where: the field concerned
 * returns: VP_OK; VP_ERR_CAPACITY fewer than *needed + 1 bytes; VP_ERR_MISMATCH the record lacks what its data set needs; VP_ERR_RANGE more than
 *          VP_PROMPT_PLAIN_OPTIONS options, a text over SIZE_MAX, NULL
 * rule:    message = " User: " + STYLE + ":" + (" " + prompt, if not empty) + " Assistant:", without a style " User: " + prompt + " Assistant:";
 *          prompt = question, or question + "\n" + "A: ..." lines + "\n"; template = RandomState(rng_seed).randint(0, 10);
 *          mmmu without question_type: multiple choice if the style is a_okvqa_mc, or if there are options and no style
 * memory:  2.5 KB of stack
 * threads: reentrant */
VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed, vp_prompt_info *info, vp_error *error);

/* ================================================================================================= score >>score
 * Texts in are UTF-8 with a NUL; case, white space, digits and word characters follow Python's str and re (Unicode 14.0).
 * Bytes that are no UTF-8 are kept as they are. */

/* A prediction as the experiments clean it before scoring: what stands between the first "Answer:" and the next; else, if it has newlines,
 * the last line that is not blank; both stripped. Else stripped, with each run of white space as one space.
 * out:     out      [capacity] with NUL; on success only, and not inside prediction
 *          needed   bytes without the NUL, at most those of the prediction; also written with VP_ERR_CAPACITY; may be NULL
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE a NULL text
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, experiments/base_experiment.py, compute_accuracy
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_clean(const char *prediction, char *out, size_t capacity, size_t *needed);
/* The VQA normalisation: lower case, punctuation, number words to digits, articles dropped, contractions expanded, words joined by one space.
 * out:     out, needed   as above; at most 1.5 times the bytes of the text
 * returns: as above
 * rule:    a punctuation character that stands beside a space anywhere is deleted everywhere (all are, when digit comma digit occurs), else it
 *          becomes a space; then the first 32 periods without a digit behind them are dropped
 * source:  the same repository, molmo/eval/vqa.py, preprocess_answer
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_vqa_normalise(const char *text, char *out, size_t capacity, size_t *needed);
/* The same as the VQA v2 evaluator does it, lower case last: only a capital sigma beside a deleted character can tell. The rest as above. */
VP_API vp_result vp_score_vqa_normalise_official(const char *text, char *out, size_t capacity, size_t *needed);
/* All that the VQA v2 evaluator does when the references are identical: newlines and tabs as spaces, stripped. The rest as above; never longer. */
VP_API vp_result vp_score_vqa_strip(const char *text, char *out, size_t capacity, size_t *needed);
/* vqa_seed, the experiments' VQA score: min(matching references / 3, 1), both sides normalised. One reference alone gives at most 1/3.
 * in:      prediction       as vp_score_clean leaves it
 *          references       [reference_count]; none: score 0
 *          scratch          any bytes; 4 * the longest text + 64 always suffice
 * out:     score            0..1, on success only
 * returns: VP_OK; VP_ERR_CAPACITY scratch is too small; VP_ERR_RANGE a NULL text
 * source:  the same file, vqa_score
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_vqa_seed(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                                   double *score);
/* The experiments' other cleaning (the evaluator classes'): stripped first; with newlines and without "Answer:" the most frequent line, of
 * equal ones the first; each line stripped, its runs of white space as one space, empty lines counted too.
 * in:      scratch   [scratch_bytes], vp_score_scratch_bytes(bytes of the prediction, 1) suffice
 * out:     out, needed   as vp_score_clean; out is not inside scratch
 * returns: VP_OK; VP_ERR_CAPACITY out (or scratch: *needed is untouched then) is too small; VP_ERR_RANGE a NULL text
 * source:  the same repository, molmo/eval/evaluators.py, VqaEval
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_clean_frequent(const char *prediction, char *scratch, size_t scratch_bytes, char *out, size_t capacity, size_t *needed);

/* Scratch that is enough for every rule below, for texts (prediction, references, options and names) of so many bytes together.
 * returns: the bytes; SIZE_MAX when that is beyond size_t */
VP_API size_t vp_score_scratch_bytes(size_t text_bytes, size_t text_count);

/* Scores of a prediction against references, all called like vp_score_vqa_seed; the prediction is taken as it is.
 * in:      scratch          vp_score_scratch_bytes of all texts
 * returns: VP_OK; VP_ERR_CAPACITY scratch is too small; VP_ERR_RANGE a NULL text; VP_ERR_MISMATCH no score is defined (see each)
 * memory:  none
 * threads: reentrant */
/* The VQA v2 evaluator: mean over the references of min(others that match / 3, 1). When all references are identical, nothing is normalised
 * on either side and case counts. No references: VP_ERR_MISMATCH.
 * source:  github.com/GT-Vision-Lab/VQA a013f00, PythonEvaluationTools/vqaEvaluation/vqaEval.py */
VP_API vp_result vp_score_vqa_official(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                       size_t scratch_bytes, double *score);
/* 1 when a reference is the same after lower-casing and stripping, else 0. source: base_experiment.py, compute_accuracy */
VP_API vp_result vp_score_em(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                             double *score);
/* The same without stripping. source: evaluators.py, VqaEval */
VP_API vp_result vp_score_em_unstripped(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                        size_t scratch_bytes, double *score);
/* Largest 1 - d over the references, where d is the edit distance in lower case over the longer length before lower-casing; 0 unless
 * d < 0.5. Two empty texts: VP_ERR_MISMATCH. numeric: exact to the last bit. source: vqa.py, anls_metric */
VP_API vp_result vp_score_anls(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                               double *score);
/* 1 when a reference is a number other than 0 and the prediction one within 5 % of it, or else when both are the same in lower case.
 * No references: VP_ERR_MISMATCH.
 * rule:    numbers are what Python's float() reads; a "%" at the very end divides by 100. source: vqa.py, relaxed_correctness */
VP_API vp_result vp_score_relaxed(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                  size_t scratch_bytes, double *score);
/* min(matching references / 3, 1) after lower-casing and stripping. source: vqa.py, a_okvqa_score */
VP_API vp_result vp_score_a_okvqa(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                  size_t scratch_bytes, double *score);
/* Largest |words in both| / |words in either| over the references, as sets after the VQA normalisation: what the experiments report for
 * captions. source: vqa.py, cider_score (its fallback, which always runs) */
VP_API vp_result vp_score_caption_jaccard(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                          size_t scratch_bytes, double *score);
/* Open questions of MMMU: 1 when a reference, normalised, is inside one of the prediction's strings or equals one of its numbers.
 * source: molmo/eval/mmmu_eval_utils.py, parse_open_response and eval_open */
VP_API vp_result vp_score_mmmu_open(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                    size_t scratch_bytes, double *score);

/* Edit distance (insertions, deletions, substitutions) in code points, both texts in lower case and stripped: what the text rule compares.
 * returns, memory, threads: as above. numeric: time is the product of the lengths, without what both begin and end with */
VP_API vp_result vp_score_option_distance(const char *prediction, const char *option, char *scratch, size_t scratch_bytes, size_t *distance);
/* The text rule of multiple choice, in lower case and stripped: the option that equals the prediction; else the only one that contains it; else
 * the nearest by edit distance, of equals the first.
 * out:     index  0..option_count - 1, on success only
 * returns: as above; VP_ERR_MISMATCH no options, or two that are equal in lower case and stripped (the reference stops there)
 * source:  vqa.py, select_mc_option */
VP_API vp_result vp_score_select_option(const char *prediction, const char *const *options, size_t option_count, char *scratch,
                                        size_t scratch_bytes, int32_t *index);
/* ScienceQA's rule: the first letter A-Z that stands alone, in upper case, when there is such an option; else the upper-cased prediction
 * among the names, else the text rule over the names; without names (name_count 0) the text rule over the options.
 * out, returns: as vp_score_select_option
 * source:  base_experiment.py, compute_accuracy */
VP_API vp_result vp_score_mc(const char *prediction, const char *const *options, size_t option_count, const char *const *names, size_t name_count,
                             char *scratch, size_t scratch_bytes, int32_t *index);
/* Multiple choice of MMMU: "(A)", else " A ", else (more than 5 words) an option's text; of several the last in the text.
 * out:     index  0..25 among the options that are not empty, on success only
 * returns: as above; VP_ERR_NOT_FOUND nothing was found (the reference picks at random there)
 * source:  mmmu_eval_utils.py, parse_multi_choice_response */
VP_API vp_result vp_score_mmmu_choice(const char *prediction, const char *const *options, size_t option_count, char *scratch,
                                      size_t scratch_bytes, int32_t *index);
/* The numbers that MMMU's open rule finds in a text: first those with thousands commas, then with exponents, then the others.
 * out:     numbers  texts in scratch, each with NUL
 * source:  mmmu_eval_utils.py, extract_numbers */
typedef struct vp_score_texts { const char *const *texts; size_t count; } vp_score_texts;
VP_API vp_result vp_score_mmmu_numbers(const char *text, char *scratch, size_t scratch_bytes, vp_score_texts *numbers);
/* What that rule makes of a prediction: two sets, in scratch; strings in the order of their bytes, numbers ascending with NaN last. */
typedef struct vp_score_mmmu_answer { vp_score_texts strings; const double *numbers; size_t number_count; } vp_score_mmmu_answer;
VP_API vp_result vp_score_mmmu_parse(const char *prediction, char *scratch, size_t scratch_bytes, vp_score_mmmu_answer *answer);

/* ---- metrics by name */
typedef enum vp_score_cleaning { VP_SCORE_CLEAN_NONE, VP_SCORE_CLEAN_LAST, VP_SCORE_CLEAN_FREQUENT } vp_score_cleaning;
/* X(metric, name, other names with a space on either side, cleaning in the rule's own evaluator, cleaning in a run of the experiments, 0/1 only)
 * Rules that the experiments' compute_accuracy has are run with its cleaning (LAST), those of VqaEval alone with that one's (FREQUENT). */
#define VP_SCORE_METRICS(X) \
    X(VQA_SEED, "vqa_seed", " vqa_score ", NONE, LAST, 0) \
    X(VQA_OFFICIAL, "vqa_official", " ", NONE, LAST, 0) \
    X(EM, "em", " ", LAST, LAST, 1) \
    X(ANLS, "anls", " ansl ansl_em ", NONE, LAST, 0) \
    X(RELAXED, "relaxed", " relaxed_correctness ", NONE, FREQUENT, 1) \
    X(MC, "mc", " ", LAST, LAST, 1) \
    X(MC_TEXT, "mc_ai2d", " mc_ai2d_transparent mc_ai2d_opaque ", FREQUENT, FREQUENT, 1) \
    X(MMMU, "mmmu", " mmmu_score ", NONE, LAST, 1) \
    X(MMMU_CHOICE, "mmmu_multiple_choice", " ", NONE, LAST, 1) \
    X(MMMU_OPEN, "mmmu_open", " ", NONE, LAST, 1) \
    X(A_OKVQA, "a_okvqa", " a_okvqa_score ", NONE, FREQUENT, 0) \
    X(REAL_WORLD_QA, "real_world_qa", " real_world_qa_score ", NONE, FREQUENT, 1) \
    X(SEED_BENCH, "seed_bench", " seed_bench_score ", FREQUENT, FREQUENT, 1) \
    X(MATH_VISTA, "math_vista_local", " math_vista math_vista_score ", NONE, FREQUENT, 1) \
    X(CAPTION_JACCARD, "caption_jaccard", " ", NONE, LAST, 0)
typedef enum vp_score_metric {
#define VP_IMPL_SCORE_ENUM(metric, name, others, own, run, binary) VP_SCORE_##metric,
    VP_SCORE_METRICS(VP_IMPL_SCORE_ENUM)
#undef VP_IMPL_SCORE_ENUM
    VP_SCORE_METRIC_COUNT
} vp_score_metric;
typedef struct vp_score_metric_info { const char *name, *others; vp_score_cleaning own_cleaning, run_cleaning; int is_binary; } vp_score_metric_info;
/* returns: the table's entry; NULL outside 0..VP_SCORE_METRIC_COUNT - 1. memory: static */
VP_API const vp_score_metric_info *vp_score_metric_of(vp_score_metric metric);
/* returns: VP_OK; VP_ERR_NOT_FOUND no metric has this name, among the others included; VP_ERR_RANGE */
VP_API vp_result vp_score_metric_find(const char *name, vp_score_metric *metric);
/* The experiments' metric of a data set ("text_vqa" or "text-vqa"), vqa_seed for unknown names; captions: caption_jaccard, as the seed reports
 * (its CIDEr path never runs). returns: as vp_score_metric_find, never VP_ERR_NOT_FOUND. source: base_experiment.py, get_metric_for_dataset */
VP_API vp_result vp_score_metric_for_dataset(const char *dataset_name, vp_score_metric *metric);

/* Everything that a rule may ask of a row; what it does not ask is ignored. vp_score_sample_default() first. */
typedef struct vp_score_sample {
    const char *prediction;                                 /* before cleaning */
    const char *const *references; size_t reference_count;  /* MMMU's multiple choice: letters. NULL: not known, which is not an empty list */
    int is_plain_reference; /* the one reference came as a string, not in a list: vqa_seed compares it unprocessed then */
    const char *const *options; size_t option_count;        /* math_vista: the choices */
    const char *const *option_names; size_t option_name_count;
    int64_t answer_index;                                   /* -1: none */
    const char *question_type, *answer_type;                /* NULL: none. mmmu without a type: multiple choice when there are options */
    int64_t precision;                                      /* math_vista; INT64_MIN: none */
} vp_score_sample;
VP_API vp_score_sample vp_score_sample_default(void);
typedef struct vp_score_outcome {
    double score;         /* NaN: none */
    const char *reason;   /* why there is none, static; else NULL */
    int is_unparsed;      /* no answer was found where the reference would pick one at random; score is NaN */
    int32_t option_index; /* the chosen option; -1: none */
    const char *cleaned;  /* what was scored, in scratch */
    const char *parsed;   /* math_vista: normalised, in scratch; NULL: none */
} vp_score_outcome;
/* Cleans a prediction and scores it.
 * in:      scratch  vp_score_scratch_bytes of all texts of the sample
 * out:     outcome  on VP_OK, which also says that there is no score (NaN and a reason)
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE a NULL text or an unknown metric or cleaning
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_score_compute(vp_score_metric metric, vp_score_cleaning cleaning, const vp_score_sample *sample, char *scratch,
                                  size_t scratch_bytes, vp_score_outcome *outcome);

/* Wilson's interval of a share of successes.
 * in:      successes  0..count; count > 0
 *          z          standard errors: 1.959963984540054 for 95 %
 * out:     low, high  within 0..1, on success only
 * returns: VP_OK; VP_ERR_RANGE (NaN included)
 * source:  E. B. Wilson, Probable inference, JASA 22 (1927) */
VP_API vp_result vp_score_wilson(double successes, double count, double z, double *low, double *high);

/* =============================================================================================== caption >>caption
 * Corpus scores of captions as pycocoevalcap 1.2 gives them, and a built-in tokenizer in place of its Java program. vp_caption_corpus takes
 * memory from malloc and gives it back before it returns; vp_caption_tokenise allocates nothing. */

/* any bytes, no NUL needed; {NULL, 0} is the empty text */
typedef struct vp_caption_text { const char *text; size_t bytes; } vp_caption_text;
typedef struct vp_caption_image {
    vp_caption_text candidate;
    const vp_caption_text *references; /* [reference_count], at least 1 */
    size_t reference_count;
} vp_caption_image;
/* the texts as they are (words between white space), or through vp_caption_tokenise first */
typedef enum vp_caption_input { VP_CAPTION_TOKENISED, VP_CAPTION_RAW } vp_caption_input;
typedef struct vp_caption_scores {
    double bleu[4];  /* BLEU-1 .. BLEU-4, 0..1 */
    double cider_d;  /* 0..10; 0 for each image of a corpus of one */
    double rouge_l;  /* 0..1 */
} vp_caption_scores;

/* A caption as words: lower case, split as the Penn treebank does, without punctuation, one space between two words. Wherever a number that
 * depends on it is printed it is named "built-in tokenizer": it follows the rules below, not every rule of the program it stands for.
 * in:      text      [bytes] any bytes; what is no UTF-8 vanishes, white space of any kind is a gap
 * out:     out       [capacity] with NUL; on success only, and not inside text
 *          needed    bytes without the NUL, at most 6 times those of the text; also written with VP_ERR_CAPACITY; may be NULL
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE a NULL text with bytes
 * rule:    of the tokens that could begin at a place the longest; don't, dog's, they'll, cannot, gonna ... are cut in two; ( ) [ ] { } become
 *          -lrb- -rrb- -lsb- -rsb- -lcb- -rcb- and stay; the quotes and . ? ! , : ; - -- ... vanish, several of ? ! together stay; a blank inside
 *          a token ("2 1/2", a telephone number, a tag) becomes U+00A0
 * source:  behaviour of Stanford CoreNLP 3.4.1's PTBTokenizer -preserveLines -lowerCase and of pycocoevalcap 1.2, tokenizer/ptbtokenizer.py
 * numeric: time grows with the bytes, whatever they are
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed);

/* CIDEr-D, BLEU-1..4 and ROUGE-L of each image and of the corpus.
 * in:      images       [image_count], at least 1; document frequencies are those of this corpus, so a score depends on all images
 *          input        what the texts are
 * out:     each         [image_count] on success only; may be NULL
 *          corpus       on success only; may be NULL
 *          error        may be NULL; names the image
 * returns: VP_OK; VP_ERR_RANGE no image, a NULL text, an image without references (leave it out), over 2^29 words in all; VP_ERR_MEMORY
 * rule:    BLEU: counts clipped by the largest in any one reference; reference length: the closest, the shorter of two; product of (correct +
 *          1e-15) / (words + 1e-9), k-th root, times exp(1 - 1 / ratio) when ratio = (length + 1e-15) / (reference length + 1e-9) < 1; corpus:
 *          the same over summed counts.
 *          CIDEr-D: weight of an n-gram = count * (log images - log max(1, images whose references have it)); cosine with the candidate's
 *          weight clipped at the reference's, times exp(-d^2 / 72), d = difference of the numbers of bigrams; mean over n = 1..4 and the
 *          references, times 10. ROUGE-L: largest precision and largest recall over the references, beta 1.2, words between single spaces.
 *          Corpus: means over the images.
 * source:  pycocoevalcap 1.2: bleu/bleu_scorer.py, cider/cider_scorer.py, rouge/rouge.py
 * numeric: double; as the reference within 1e-10. n-grams are compared, not only hashed: none is taken for another
 * memory:  at most 32 bytes a word, 64 a text and 100 a different word or n-gram of 2 to 4 words, released at the end. Time grows with the
 *          words, for ROUGE-L also with words of candidate * words of reference / 64
 * threads: reentrant */
VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, vp_caption_input input, vp_caption_scores *each,
                                   vp_caption_scores *corpus, vp_error *error);

/* ============================================================================================== analysis >>analysis
 * From measured rows to answers: which configuration, what couples the knobs, what a request will cost, whether a change made it slower.
 * Latency may be in any unit; lower is better, of accuracy more is better. Configurations, samples and rows are counted from 0; index lists are
 * uint32_t, and a count over 2^32 - 1 is VP_ERR_RANGE. Values must be finite. Intervals are two-sided at `level` (0.95).
 * `scratch` is any memory of at least vp_..._scratch_bytes(...) bytes (SIZE_MAX when that overflows), else VP_ERR_CAPACITY.
 * numeric: double, additions in a fixed order: the same input gives the same bits
 * memory:  none but the caller's and the stack said beside a function, else under 4 KB
 * threads: reentrant */

/* ---- distributions; NaN in, or a parameter out of range, gives NaN. The binomial's relative error is below 1e-12 + 3e-16 * count */
VP_API double vp_normal_tail(double z);                          /* P(Z > z); relative error below 1e-13 where it does not underflow */
VP_API double vp_normal_quantile(double probability);            /* z with P(Z <= z) = probability, 0 < probability < 1 (Wichura, AS 241) */
VP_API double vp_student_tail(double t, double degrees);         /* P(T > t) of Student's t; relative 1e-11 for degrees to 10^6, 1e-7 to 10^9 */
VP_API double vp_binomial_half(uint64_t successes, uint64_t count); /* P(X <= successes), X binomial(count, 1/2), count < 2^53 */

/* ---- tests and intervals */
/* Distribution-free interval of the median by order statistics.
 * out:     low_rank, high_rank  from 1: the interval is [x(low_rank), x(high_rank)] of the sorted values
 *          coverage             its exact probability for continuous values
 * returns: VP_OK; VP_ERR_MISMATCH too few values for this level; VP_ERR_RANGE count 0 or over 2^53, level outside 0..1
 * rule:    the largest low_rank with P(X <= low_rank - 1) <= (1 - level) / 2, X binomial(count, 1/2); high_rank = count + 1 - low_rank */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank, double *coverage);
/* McNemar's exact test of paired right/wrong answers: two-sided p = min(1, 2 P(X <= min)), X binomial(sum, 1/2); 1 for 0 and 0.
 * in:      the two counts of samples that only one side has right, together under 2^53; otherwise NaN */
VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct);

/* mean of differences with Student's interval */
typedef struct vp_mean_interval {
    size_t count;
    double mean, error;     /* error: standard error of the mean (n - 1) */
    double low, high;
    double t, degrees, p;   /* of "the mean is 0", two-sided; all differences equal: p 1 where they are 0, else 0 */
} vp_mean_interval;
/* Paired t test of y - x; x NULL: of y alone.
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 values, a value that is not finite or too large, level outside 0..1 */
VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval);

typedef struct vp_rank_test {
    double statistic;           /* Wilcoxon: min(W+, W-);  Mann-Whitney: U of x */
    size_t used;                /* Wilcoxon: differences that are not 0;  Mann-Whitney: all values */
    int ties;                   /* some ranks are shared */
    double p_normal;            /* normal approximation with the variance reduced by ties, no continuity correction */
    double p_normal_continuity; /* with 0.5; Mann-Whitney only, else NaN */
    double p_exact;             /* NaN with ties, with zero differences, and past VP_EXACT_LIMIT */
} vp_rank_test;
enum { VP_EXACT_WILCOXON_LIMIT = 500, VP_EXACT_MANN_WHITNEY_LIMIT = 4096 }; /* most differences; most count_x * count_y */
VP_API size_t vp_wilcoxon_scratch_bytes(size_t count);
/* Wilcoxon's signed-rank test of paired values: differences of 0 are dropped, equal ones share their mean rank. Two-sided.
 * returns: VP_OK (all differences 0: p 1); VP_ERR_RANGE count 0 or a value that is not finite; VP_ERR_CAPACITY
 * source:  as scipy.stats.wilcoxon 1.17, methods "asymptotic" and "exact" */
VP_API vp_result vp_wilcoxon(const double *x, const double *y, size_t count, void *scratch, size_t scratch_bytes, vp_rank_test *test);
VP_API size_t vp_mann_whitney_scratch_bytes(size_t count_x, size_t count_y);
/* Mann-Whitney's U test of two independent groups. Two-sided.
 * returns: as vp_wilcoxon
 * source:  as scipy.stats.mannwhitneyu 1.17 */
VP_API vp_result vp_mann_whitney(const double *x, size_t count_x, const double *y, size_t count_y, void *scratch, size_t scratch_bytes,
                                 vp_rank_test *test);

typedef enum vp_adjustment { VP_ADJUST_NONE, VP_ADJUST_HOLM, VP_ADJUST_BENJAMINI_HOCHBERG } vp_adjustment;
/* Adjusts p values for their number: Holm bounds the chance of any false finding, Benjamini-Hochberg the share of false ones among the findings.
 * in:      p         double [count], 0..1
 *          order     uint32 [count], scratch
 * out:     adjusted  double [count], on success only; may be p
 * returns: VP_OK; VP_ERR_RANGE a p outside 0..1 or an unknown method */
VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted);

/* Has it become slower? Paired by sample, with a margin inside which a difference does not matter. */
typedef enum vp_verdict { VP_VERDICT_UNSURE, VP_VERDICT_SAME, VP_VERDICT_FASTER, VP_VERDICT_SLOWER } vp_verdict;
typedef enum vp_scale {
    VP_SCALE_ABSOLUTE, /* margin and results in the unit of the values */
    VP_SCALE_RELATIVE, /* as shares of the first side's mean: 0.03 = 3 % slower. All first values must be > 0 */
    VP_SCALE_LOG       /* mean of log(second / first), given back as a share: each sample counts the same. All values must be > 0 */
} vp_scale;
typedef struct vp_comparison {
    size_t count;
    double estimate, low, high; /* second - first, on the scale */
    double p_difference;        /* of "no difference", paired t */
    double p_equivalence;       /* of "the difference is outside the margin": the larger of two one-sided tests */
    vp_verdict verdict;
} vp_comparison;
/* VP_VERDICT_FASTER etc. in words; NULL outside the list */
VP_API const char *vp_verdict_name(vp_verdict verdict);
/* Compares paired values; the verdict is that of this comparison alone (see vp_compare_adjust).
 * in:      margin  > 0, on the scale;  alpha  0..0.5: the interval is at 1 - alpha
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 pairs, values that are not finite or not fit for the scale, margin or alpha out of range
 * rule:    p_equivalence <= alpha: SAME; else p_difference <= alpha: FASTER (second lower) or SLOWER; else UNSURE. A difference that is certain
 *          but proven to be inside the margin is SAME
 * numeric: RELATIVE takes the first side's mean as known: with a spread of samples far above that of the differences, prefer LOG */
VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale, double margin, double alpha,
                                   vp_comparison *comparison);
/* Verdicts of several comparisons together: both kinds of p values are adjusted and replaced, then the rule above decides again.
 * in:      order  uint32 [count], values  double [count]: scratch
 * returns: VP_OK; VP_ERR_RANGE (comparisons untouched) */
VP_API vp_result vp_compare_adjust(vp_comparison *comparisons, size_t count, vp_adjustment method, double alpha, uint32_t *order, double *values);
/* Samples that a comparison needs.
 * in:      deviation  standard deviation of the differences on the scale;  margin > 0;  effect: smallest difference to be found, > margin
 *          power      chance of SAME when nothing changed, and of FASTER or SLOWER when `effect` is there: 0.5..1
 * out:     count      the larger of the two needs, at least 2
 * returns: VP_OK; VP_ERR_RANGE (also for over 10^9 samples)
 * rule:    deviation * (t(1 - alpha) + t(1 - (1 - power) / 2)) <= margin * sqrt(n); deviation * (t(1 - alpha / 2) + t(power)) <= effect * sqrt(n) */
VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power, size_t *count);

/* ---- Pareto fronts */
typedef enum vp_pareto_rule {
    VP_PARETO_FIRST, /* not dominated; of equal points the first: what a tool should print */
    VP_PARETO_ALL,   /* not dominated; equal points all */
    VP_PARETO_WEAK,  /* no other point is better in both; for comparison */
    VP_PARETO_SWEEP  /* a second rule of the experiments' plot scripts; keeps dominated points; for comparison */
} vp_pareto_rule;
/* Points that no other point dominates: as good in both and better in one.
 * in:      latency, accuracy  double [count], finite; count 0 is an empty front
 * out:     front              uint32 [count], the first *front_count sorted by latency, then index
 * returns: VP_OK; VP_ERR_RANGE a value is not finite, an unknown rule
 * rule:    SWEEP: sorted by latency, then index; kept when accuracy >= best so far - 1e-9, which starts at -1
 * source:  ChulanZhang/molmo_hf, the four copies of the front's function (ALL) and two plot scripts (SWEEP)
 * numeric: comparisons only; O(n log n) */
VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule, uint32_t *front,
                                 size_t *front_count);
/* The front (FIRST) of the points whose knob is held: keys[i] == key. Indices are those of all points. */
VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key, size_t count,
                                       uint32_t *front, size_t *front_count);
typedef struct vp_epsilon { double latency, accuracy; int relative; } vp_epsilon; /* relative: shares of the dominated point's values, below 1 */
/* The fewest points of the front that epsilon-dominate every point: latency <= its + epsilon and accuracy >= its - epsilon. Steps of the front
 * that are smaller than what matters (or than what was measured) go.
 * in:      front  as vp_pareto_front gives it (FIRST or ALL), front_count indices below count
 * out:     kept   uint32 [front_count], may be front; the first *kept_count, sorted as the front
 * returns: VP_OK; VP_ERR_RANGE an epsilon negative, not finite, or relative and >= 1; an index or order that is no front's */
VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                                   vp_epsilon epsilon, uint32_t *kept, size_t *kept_count);
/* The area that a front dominates, up to a reference point (a latency and an accuracy that are worse than all that matter; points beyond it count
 * nothing): fronts with a knob held compare by it. Same `front` as above; NaN for what is no front. */
VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                             double latency_limit, double accuracy_limit);
/* The most accurate point within a budget; of equal ones the fastest, then the first.
 * in:      budget, min_accuracy  infinite: no limit
 * returns: VP_OK; VP_ERR_NOT_FOUND no point holds both; VP_ERR_RANGE NaN */
VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy, uint32_t *best);

typedef struct vp_bootstrap_options {
    size_t resamples;            /* 1..1000000 */
    uint32_t seed;
    double percentile;           /* the latency axis: percentile over samples 0..100; below 0: the mean */
    double level;                /* of the intervals */
    double budget, min_accuracy; /* of `best`; infinite: no limit */
} vp_bootstrap_options;
VP_API vp_bootstrap_options vp_bootstrap_options_default(void); /* 1000 resamples, seed 42, P50, 0.95, no limits */
typedef struct vp_bootstrap_point {
    double latency, accuracy; /* of the samples as they are; accuracy is the mean */
    double latency_low, latency_high, accuracy_low, accuracy_high; /* percentile intervals */
    double membership;        /* share of the resamples in which it is on the front (ALL) */
    double within_budget;     /* ... in which it holds the budget and the least accuracy */
    double best;              /* ... in which vp_pareto_best names it */
} vp_bootstrap_point;
VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples);
/* How sure a front is: the samples are drawn again with replacement, the same ones for all configurations.
 * in:      latency, accuracy  double [config_count, sample_count]; each sample measured by every configuration
 * out:     points             [config_count], on success only
 * returns: VP_OK; VP_ERR_RANGE a count of 0, a value that is not finite, an option out of range; VP_ERR_CAPACITY
 * rule:    resample = sample_count draws vp_random_below(sample_count - 1) of one generator of that seed: numpy's RandomState(seed).randint(0, n, n)
 *          call after call; percentiles are numpy's, as vp_statistics_percentile
 * numeric: equal bit by bit to sorting every resample; the samples are sorted once and counted through. 336 configurations x 1,000 samples x 1,000
 *          resamples: about a second */
VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes, vp_bootstrap_point *points);

/* ---- coupling of the knobs */
enum { VP_KNOB_LIMIT = 8, VP_KNOB_LEVEL_LIMIT = 256, VP_EFFECT_COLUMNS_LIMIT = 1024 };
typedef struct vp_knobs {
    const int32_t *levels;  /* [config_count, knob_count], level of each knob, 0..level_counts - 1 */
    int32_t knob_count;     /* 1..VP_KNOB_LIMIT */
    int32_t level_counts[VP_KNOB_LIMIT];
    size_t config_count;
} vp_knobs;
typedef enum vp_effect_kind { VP_EFFECT_MEAN, VP_EFFECT_MAIN, VP_EFFECT_STEP, VP_EFFECT_PAIR } vp_effect_kind;
typedef struct vp_effect {
    vp_effect_kind kind;
    int32_t knob_a, level_a, knob_b, level_b; /* -1 where there is none */
    double estimate, low, high, p;
} vp_effect;
/* Rows of vp_effects; 0 for knobs out of range. order 1: main effects, 2: and interactions of two knobs. */
VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order);
VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order);
/* What each knob does to the mean of a value, and where two knobs together do something else than the sum of both.
 * in:      values   double [config_count, sample_count], each sample measured by every configuration; the grid may have holes
 * out:     effects  [vp_effect_count]: the mean; then per knob all levels as MAIN (mean of that level - grand mean) and from level 1 as STEP (level -
 *                   the level below); then, order 2, per pair of knobs all pairs of levels as PAIR (what is left over mean and mains)
 *          shares   double [knobs + pairs (order 2) + 1], may be NULL: each term's share of the variance between configurations, knobs first, then
 *                   pairs, last what no term explains; they add up to 1 on a full grid
 *          error    may be NULL
 * returns: VP_OK; VP_ERR_RANGE; VP_ERR_CAPACITY; VP_ERR_MISMATCH these configurations cannot tell the terms apart (use order 1)
 * rule:    least squares with effects that add up to 0 over a knob's levels, for each sample; estimate and Student's interval over the samples, so
 *          what a sample does to all configurations alike cancels out
 * memory:  none on the heap; the factor of the design lies in scratch */
VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order, double level, void *scratch,
                            size_t scratch_bytes, vp_effect *effects, double *shares, vp_error *error);
/* The configuration that differs from `config` only by the next measured level of a knob.
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_RANGE */
VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next);
typedef struct vp_gain {
    vp_mean_interval latency, accuracy; /* second - first, paired */
    double gain;                        /* accuracy per unit of latency; NaN for equal latency */
    double low, high;                   /* Fieller's interval; infinite where the latency's difference may be 0 */
} vp_gain;
/* Marginal gain: accuracy per ms of a step from one configuration to another.
 * returns: VP_OK; VP_ERR_RANGE fewer than 2 samples, a value that is not finite
 * source:  E. C. Fieller, JRSS B 16 (1954) */
VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy, const double *second_latency,
                                 const double *second_accuracy, size_t sample_count, double level, vp_gain *gain);

/* ---- regression */
enum { VP_LINEAR_COLUMNS_LIMIT = 24 };
/* AT_ZERO: held there by its sign; DROPPED: see options */
typedef enum vp_linear_state { VP_LINEAR_USED, VP_LINEAR_AT_ZERO, VP_LINEAR_DROPPED } vp_linear_state;
typedef struct vp_linear_options {
    const double *weights;            /* [rows], > 0; NULL: all 1. Variance of a row is sigma^2 / weight */
    const unsigned char *nonnegative; /* [columns], 1: the coefficient must be >= 0; NULL: none */
    int drop_dependent;               /* 1: a column that the columns before it explain is left out; 0: it is an error */
} vp_linear_options;
VP_API vp_linear_options vp_linear_options_default(void); /* no weights, no signs, dependent columns are an error */
/* A linear model and what its intervals need; plain data, can be stored. */
typedef struct vp_linear {
    uint64_t rows;
    int32_t columns, used_columns;
    double condition;                          /* 2-norm condition number of the used columns, each scaled to length 1 */
    double sigma;                              /* residual deviation at weight 1: sqrt(sum w r^2 / degrees); NaN for degrees 0 */
    double degrees;                            /* rows - used columns */
    double coefficient[VP_LINEAR_COLUMNS_LIMIT];  /* exactly 0 where the state is not USED */
    double error[VP_LINEAR_COLUMNS_LIMIT];        /* standard errors; 0 where the state is not USED, NaN for degrees 0 */
    double root[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT]; /* [columns, columns] B with covariance = sigma^2 B B' */
    unsigned char state[VP_LINEAR_COLUMNS_LIMIT]; /* vp_linear_state */
} vp_linear;
/* Weighted least squares, with signs where asked.
 * in:      x     double [rows, columns], columns 1..VP_LINEAR_COLUMNS_LIMIT; an intercept is a column of ones
 *          y     double [rows]
 * out:     fit   on success only;  error  may be NULL, names the column
 * returns: VP_OK; VP_ERR_RANGE a count or value out of range, or an overflow; VP_ERR_MISMATCH fewer rows than columns, or dependent columns
 * rule:    Householder QR over blocks of rows, columns scaled to length 1; dependent: less than 1e-11 of a column is not in the span of those before
 *          it. Signs: Lawson and Hanson's active set on the triangle; coefficients held at 0 are exactly 0
 * source:  Golub and Van Loan, Matrix Computations, 5.2 and 5.3; Lawson and Hanson, Solving Least Squares Problems, ch. 23
 * numeric: errors and intervals of a fit with signs take the active set as known
 * memory:  40 KB of stack, whatever the rows */
VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *options, vp_linear *fit,
                                vp_error *error);
VP_API double vp_linear_value(const vp_linear *fit, const double *x); /* x'coefficient; columns in order */
typedef struct vp_linear_range { double value, mean_low, mean_high, low, high; } vp_linear_range; /* mean: of the line; low, high: of a new value */
/* Intervals of the mean and of a new measurement at x.
 * in:      weight  of the new measurement, > 0
 * returns: VP_OK; VP_ERR_MISMATCH degrees 0; VP_ERR_RANGE */
VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level, vp_linear_range *range);
/* Student's interval of a coefficient; [0, 0] for a column that is not used. returns: as above */
VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high);
typedef struct vp_linear_errors {
    size_t count;
    double r2;                     /* 1 - sum r^2 / sum (y - mean)^2; NaN when all y are equal */
    double mae, rmse, bias;        /* bias: mean of predicted - measured */
    double mape;                   /* mean of |r| / |y|, a fraction; NaN when a y is 0 */
    double p95_absolute, max_absolute;
} vp_linear_errors;
/* How far predictions are off.
 * in:      scratch  double [count]
 * returns: VP_OK; VP_ERR_RANGE count 0 or a value that is not finite */
VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count, double *scratch, vp_linear_errors *errors);
VP_API size_t vp_linear_leave_out_scratch_bytes(size_t columns, size_t group_count);
/* Leave-one-group-out: each row is predicted by a fit of the rows of all other groups (configurations, image sizes).
 * in:      groups     uint32 [rows], 0..group_count - 1; every group may be empty
 * out:     predicted  double [rows], on success only
 * returns: as vp_linear_compute, VP_ERR_MISMATCH when what is left for a group cannot be fitted; VP_ERR_CAPACITY
 * numeric: as vp_linear_compute on the other rows; time grows with rows + groups, not with their product
 * memory:  60 KB of stack */
VP_API vp_result vp_linear_leave_out(const double *x, const double *y, const uint32_t *groups, size_t rows, size_t columns, size_t group_count,
                                  const vp_linear_options *options, void *scratch, size_t scratch_bytes, double *predicted, vp_error *error);

/* ---- what a request costs: one linear model per stage */
#define VP_LATENCY_STAGES(X) X(VISION, "vision") X(PREFILL, "prefill") X(DECODE, "decode") X(OTHER, "other")
typedef enum vp_latency_stage {
#define VP_LATENCY_ENUM(name, text) VP_LATENCY_##name,
    VP_LATENCY_STAGES(VP_LATENCY_ENUM)
#undef VP_LATENCY_ENUM
    VP_LATENCY_STAGE_COUNT
} vp_latency_stage; /* T_vision_total, T_LLM_prefill, T_LLM_decode, and T_total minus these */
typedef enum vp_latency_features {
    VP_LATENCY_PHYSICAL, /* vp_latency_column_name; no coefficient is negative; rows weigh 1 / measured^2: what counts is the relative error */
    VP_LATENCY_SEED,     /* the experiments' inputs: 1, vision_tokens, text_tokens, tier_index, top_k, num_active_blocks, output_tokens */
    VP_LATENCY_MEAN      /* the mean of what was measured */
} vp_latency_features;
enum { VP_LATENCY_COLUMNS_LIMIT = 7 };
typedef struct vp_latency_request {
    int32_t views;         /* passes of the vision transformer: crops + global view; 0 for text only */
    int32_t vision_tokens; /* that the language model sees */
    int32_t text_tokens;
    int32_t sequence;      /* prompt positions: BOS, image and text */
    int32_t output_tokens; /* decode steps are one fewer */
    int32_t tier_index, top_k, expert_count, active_blocks;
} vp_latency_request;
/* One row of a stage's model.
 * out:     x        double [VP_LATENCY_COLUMNS_LIMIT], the first *columns
 * returns: VP_OK; VP_ERR_RANGE a count negative, sequence or output_tokens or active_blocks < 1, top_k outside 1..expert_count
 * rule:    vision: 1, views, vision tokens. prefill: 1, n, B, B n, B n k (expert FLOPs), B n^2 (attention), B E (1 - (1 - k / E)^n) (experts whose
 *          bytes are read, on average). decode: S, S B, S B k (bytes of experts), B (S n + S (S - 1) / 2) (positions read from the cache). other:
 *          1, views, n. n sequence, B active blocks, k top_k, E experts, S steps; a stage that does not run has only zeros */
VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double *x,
                                int32_t *columns);
/* The name of a column; NULL past the last. */
VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column);
VP_API const char *vp_latency_stage_name(vp_latency_stage stage);
typedef struct vp_affine { /* measured = slope * predicted + offset */
    double slope, offset;
    double condition;      /* of the columns 1, predicted, scaled to length 1 */
    int ill_conditioned;   /* condition over VP_AFFINE_CONDITION_LIMIT: the predictions are almost all the same, the line is worthless elsewhere */
    size_t count;          /* points it was made of; 0: the identity */
} vp_affine;
#define VP_AFFINE_CONDITION_LIMIT 4000.0 /* a spread of 0.05 % of the mean */
/* plain data, can be stored */
typedef struct vp_latency_model {
    vp_latency_features features;
    unsigned char fitted[VP_LATENCY_STAGE_COUNT]; /* 0: there was nothing measured of this stage */
    vp_linear fit[VP_LATENCY_STAGE_COUNT];
    vp_affine affine[VP_LATENCY_STAGE_COUNT];
} vp_latency_model;
/* Fits the stages.
 * in:      requests  [rows]
 *          measured  double [rows, VP_LATENCY_STAGE_COUNT]; NaN: not measured; rows whose stage did not run are left out
 *          error     may be NULL
 * returns: VP_OK; VP_ERR_RANGE a request, or a value that is infinite (or <= 0 for PHYSICAL); VP_ERR_MISMATCH no stage could be fitted
 * rule:    columns that these rows cannot tell from those before are dropped (a sweep with one top_k says nothing about top_k) */
VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests, const double *measured, size_t rows,
                                vp_latency_model *model, vp_error *error);
typedef struct vp_latency_prediction { double stage[VP_LATENCY_STAGE_COUNT], total; } vp_latency_prediction; /* NaN for a stage that is not fitted */
/* What a request will cost; under a microsecond.
 * out:     prediction  total: the sum of the stages that are fitted
 * returns: VP_OK; VP_ERR_RANGE as vp_latency_row */
VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request, vp_latency_prediction *prediction);
/* Interval of a new measurement of a stage, recalibration included (its own uncertainty is not). returns: as vp_linear_interval */
VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage, const vp_latency_request *request, double level,
                                     vp_linear_range *range);
VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count);
/* Predictions of a stage by models that never saw the row's group.
 * in:      groups     uint32 [rows], 0..group_count - 1
 *          measured   double [rows] of this stage
 * out:     predicted  double [rows]; NaN where measured is NaN or the stage did not run
 * returns: as vp_latency_fit and vp_linear_leave_out */
VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                      const double *measured, const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error);

/* ---- recalibration to a new device, guardrails */
/* The line through points, by least squares.
 * returns: VP_OK, also when it is ill-conditioned: look; VP_ERR_MISMATCH fewer than 2 points or all predictions equal; VP_ERR_RANGE
 * numeric: differences to the first point are taken before anything is multiplied: right to 1e-6 where x differs in its sixth digit only */
VP_API vp_result vp_affine_fit(const double *predicted, const double *measured, size_t count, vp_affine *affine);
VP_API double vp_affine_apply(const vp_affine *affine, double predicted);
/* Recalibrates every stage that has measurements; the model keeps its fits, earlier recalibrations are replaced.
 * in:      measured  as vp_latency_fit
 *          force     1: takes ill-conditioned lines too
 *          scratch   double [2 * rows]
 * returns: VP_OK; VP_ERR_MISMATCH a stage whose line is ill-conditioned or cannot be drawn (model untouched; error names it); VP_ERR_RANGE */
VP_API vp_result vp_latency_recalibrate(vp_latency_model *model, const vp_latency_request *requests, const double *measured, size_t rows, int force,
                                        double *scratch, vp_error *error);
typedef struct vp_affine_curve {
    size_t points, draws;   /* measurements used; draws that gave a line */
    size_t refused;         /* draws whose line was ill-conditioned or could not be drawn */
    double before;          /* MAPE of all points without a line */
    double mean, low, high; /* MAPE of the points left out: mean, P5 and P95 over the draws */
} vp_affine_curve;
VP_API size_t vp_affine_curve_scratch_bytes(size_t count, size_t draws);
/* Learning curve: what `points` measurements, drawn at random, do for all others.
 * in:      points  2..count - 1;  draws  1..100000;  measured  none 0
 * returns: VP_OK; VP_ERR_MISMATCH no draw gave a line; VP_ERR_CAPACITY; VP_ERR_RANGE */
VP_API vp_result vp_affine_learning(const double *predicted, const double *measured, size_t count, size_t points, size_t draws, uint32_t seed,
                                    void *scratch, size_t scratch_bytes, vp_affine_curve *curve);
typedef struct vp_guardrail {
    double budget;
    size_t count, accepted, over_budget, violations, false_accepts, false_rejects;
    double violation_rate;    /* of the accepted: measured > tolerance * budget */
    double false_accept_rate; /* of those over budget: accepted */
    double false_reject_rate; /* of those within budget: not accepted. Rates are NaN where there is nothing to divide by */
} vp_guardrail;
/* What happens when only requests predicted to hold a budget are let through.
 * in:      safety     a request is accepted when predicted * safety <= budget; > 0, 1: as predicted
 *          tolerance  of violations, >= 1: the experiments' 1.1
 * returns: VP_OK; VP_ERR_RANGE count 0, values that are not finite
 * rule:    budgets are the caller's: the experiments take 0.5, 0.7, 0.85 and 1.0 of a reference latency */
VP_API vp_result vp_guardrail_compute(const double *predicted, const double *measured, size_t count, double budget, double safety, double tolerance,
                                      vp_guardrail *guardrail);

/* ================================================================================================= model >>model
 * The engine: one MolmoE request from pixels to token ids, stage by stage; implemented in vlmprof_kernels.cu (link its object). An engine owns
 * packed weights, KV cache and every buffer, sized once for the longest request: vp_engine_run allocates nothing. One engine per thread. */
typedef enum vp_weights { VP_WEIGHTS_BF16, VP_WEIGHTS_FP32 } vp_weights; /* fp32: fp32 arithmetic everywhere */
typedef struct vp_engine vp_engine;

typedef vp_result (*vp_progress)(void *user, const char *what, int64_t done, int64_t total); /* not VP_OK: stop with VP_ERR_INTERRUPTED */
typedef struct vp_engine_options {
    const vp_model_config *config;
    const vp_checkpoint *checkpoint; /* NULL: synthetic weights from `seed`; packed weights are used where they lie: bf16 on the CPU only */
    uint64_t seed;
    vp_weights weights;
    const char *device;              /* "auto", "cpu", "cuda", "cuda:N" */
    const char *gemm;                /* NULL or "auto": measured choice; else one of vp_engine_gemm_name */
    int32_t threads;                 /* 0: all cores this process may use */
    int32_t max_sequence;            /* longest prompt + new tokens of any request */
    int32_t max_views;               /* most views (crops + global) of any request */
    vp_progress progress; void *progress_user;
} vp_engine_options;
/* bf16, seed 42, device auto, measured kernels, all cores; config, max_sequence and max_views are the caller's to fill in */
VP_API vp_engine_options vp_engine_options_default(void);
/* CUDA devices. The GPU code is there when vlmprof_kernels.cu, compiled by nvcc, is linked beside the object that a C compiler makes of it. */
typedef struct vp_device_info {
    char name[128];
    int32_t compute_major, compute_minor, multiprocessor_count;
    int32_t driver_version, runtime_version; /* CUDA's: 13010 is 13.1 */
    uint64_t memory_bytes, free_bytes;
} vp_device_info;
/* How many CUDA devices this process can use, at least 1.
 * returns: VP_OK; VP_ERR_DEVICE with the reason: no GPU code in this build, no driver, a driver that is too old, no GPU
 * threads: reentrant */
VP_API vp_result vp_device_count(int32_t *count, vp_error *error);
/* Tells what device `index` is.
 * returns: VP_OK; VP_ERR_DEVICE as above, or no such device */
VP_API vp_result vp_device_describe(int32_t index, vp_device_info *info, vp_error *error);
VP_API int32_t vp_device_toolkit(void); /* the CUDA version that the GPU code was compiled with; 0: no GPU code in this build */

/* What a device says of its clocks and its health at one moment. A number that the device or its driver does not tell is NaN. */
#define VP_THROTTLE_REASONS(X) X(0, "gpu_idle") X(1, "applications_clocks_setting") X(2, "sw_power_cap") X(3, "hw_slowdown") X(4, "sync_boost") \
    X(5, "sw_thermal_slowdown") X(6, "hw_thermal_slowdown") X(7, "hw_power_brake_slowdown") X(8, "display_clock_setting")
#define VP_THROTTLE_SLOWED 0xecu /* the reasons that a measurement suffers from: power cap, heat, power brake */
typedef struct vp_telemetry {
    double sm_clock_mhz, sm_clock_max_mhz;         /* CPU: mean over the cores */
    double memory_clock_mhz, memory_clock_max_mhz; /* GPU */
    double power_w, power_limit_w;                 /* GPU */
    double temperature_c;
    double utilisation_percent;                    /* GPU: share of the last fraction of a second in which a kernel ran */
    uint64_t throttle_reasons;                     /* GPU: bits of VP_THROTTLE_REASONS, as NVML numbers them */
    int has_throttle_reasons;
    double throttle_count;                         /* CPU: how often its cores were slowed since it started; differences tell */
} vp_telemetry;
/* Reads them: of CUDA device `cuda_device` through NVML, opened with dlopen and found by the device's PCI address; -1: of the CPU, from /sys and
 * /proc. Takes up to some milliseconds (the first call on a GPU more): never inside what is timed.
 * out:     out  on success only
 * returns: VP_OK, also when single numbers are not told; VP_ERR_UNSUPPORTED with the reason: no NVML, NVML does not know the device, or a system
 *          that tells nothing of its CPU; VP_ERR_DEVICE no such device, or no GPU code in this build
 * threads: reentrant */
VP_API vp_result vp_device_telemetry(int32_t cuda_device, vp_telemetry *out, vp_error *error);
VP_API const char *vp_telemetry_throttle_name(int32_t bit); /* NULL: no reason has that bit */

/* Chooses kernels, reserves memory and loads or draws the weights. "auto" takes the first CUDA device when vp_device_count says that there is
 * one, and the CPU otherwise; vp_engine_device_note then says why.
 * in:      options  see the fields; checkpoint and config are read only during the call, but a packed checkpoint must stay open as long as the
 *                   engine
 * out:     engine   on success only; give it to vp_engine_close
 * returns: VP_OK; VP_ERR_RANGE a bad option, or a GEMM kernel that this processor or arithmetic lacks; VP_ERR_DEVICE the device is missing, is too
 *          old, lacks cuBLAS, or failed; VP_ERR_UNSUPPORTED a shape that the kernels lack, or packed weights in fp32 or for a GPU; VP_ERR_MEMORY
 *          with the bytes asked and free; VP_ERR_NOT_FOUND or VP_ERR_MISMATCH a tensor, or packed weights of another layout; VP_ERR_INTERRUPTED
 *          by progress
 * memory:  on the device, bf16: 2 bytes a parameter, buffers, and the KV cache: 4 bytes * d_model * blocks a position; fp32: twice that. On a GPU
 *          also 32 MiB of pinned host memory. While loading also one tensor of the checkpoint at a time
 * threads: one engine per thread */
VP_API vp_result vp_engine_open(const vp_engine_options *options, vp_engine **engine, vp_error *error);
VP_API void vp_engine_close(vp_engine *engine); /* NULL is fine */

/* HF: model.safetensors, or shards and their index, under the names of vp_model_tensor: bf16, but for values that bf16 would change and the engine
 * keeps in fp32 (norms, biases, router, positions). PACKED: VP_PACKED_FILE, which vp_engine_open uses without a copy. */
typedef enum vp_convert_layout { VP_CONVERT_HF, VP_CONVERT_PACKED } vp_convert_layout;
typedef struct vp_convert_options {
    const vp_model_config *config;
    const vp_checkpoint *checkpoint; /* NULL: synthetic weights from `seed` */
    uint64_t seed;
    const char *directory;           /* is there; files of the names above are overwritten */
    vp_convert_layout layout;
    uint64_t shard_bytes;            /* HF: most bytes of tensors in one file, where not one tensor alone has more */
    int32_t threads;                 /* 0: all cores this process may use */
    vp_progress progress; void *progress_user;
} vp_convert_options;
/* HF, seed 42, shards of 5 GB, all cores; config and directory are the caller's to fill in */
VP_API vp_convert_options vp_convert_options_default(void);
/* Writes the weights of a model in another form; a run in bf16 gives the same bits from every form. Each file is on the disk when this returns.
 * returns: VP_OK; VP_ERR_RANGE a bad option; VP_ERR_NOT_FOUND or VP_ERR_MISMATCH a tensor; VP_ERR_UNSUPPORTED a shape that the kernels lack;
 *          VP_ERR_WRITE no room, or a file cannot be written; VP_ERR_MEMORY; VP_ERR_INTERRUPTED by progress. What was written then stays behind
 * memory:  the largest tensor and 64 MiB; packed: addresses for all weights
 * threads: reentrant */
VP_API vp_result vp_engine_convert(const vp_convert_options *options, vp_error *error);
VP_API uint64_t vp_engine_bytes(const vp_engine *engine);            /* weights + cache + scratch, on the device */
VP_API const char *vp_engine_device(const vp_engine *engine);        /* "cpu: <model name>, N threads", "cuda:0: <name>, <GB> GB" */
/* why "auto" took the CPU, or why decode steps are not replayed as a graph on this GPU (then they are sent kernel by kernel); "" otherwise */
VP_API const char *vp_engine_device_note(const vp_engine *engine);
/* 1 after an error that the device does not recover from (a kernel's illegal address, a failed launch, a lost device): each request then fails
 * with VP_ERR_DEVICE, and the engine can only be closed. Closing the last engine resets the device for this process, and a new engine may then
 * open; where the driver refuses that too, vp_engine_open says VP_ERR_DEVICE and only a new process helps. 0: the next request can be served,
 * also after one that failed. */
VP_API int vp_engine_broken(const vp_engine *engine);
/* What one time stamp (vp_stage_times.stamps) costs on this backend, reading it included: measured by this call, in some microseconds on the CPU
 * and less than a millisecond on a GPU; 0: below the clock's resolution, -1: the device failed. Between requests only. */
VP_API int64_t vp_engine_stamp_cost_ns(vp_engine *engine);
VP_API const char *vp_engine_gemm(const vp_engine *engine, int32_t rows); /* kernel chosen for linears of so many rows; "cublas" on a GPU */
VP_API const char *vp_engine_gemm_name(int32_t index);               /* kernels this processor can run; NULL past the end */

/* stages of a request, in order; decode steps come separately */
#define VP_STAGES(X) X(PREPROCESS, "preprocess") X(H2D, "h2d") X(VIT, "vit") X(CONNECTOR, "connector") X(EMBED, "embed") \
    X(PREFILL, "prefill") X(HEAD, "head") X(SAMPLE, "sample") X(DECODE, "decode") X(DETOK, "detok")
typedef enum vp_stage {
#define VP_STAGE_ENUM(name, text) VP_STAGE_##name,
    VP_STAGES(VP_STAGE_ENUM)
#undef VP_STAGE_ENUM
    VP_STAGE_COUNT
} vp_stage;
VP_API const char *vp_stage_name(vp_stage stage);

/* What the boundaries of the stages recorded; 0 where a stage did not run (`ran` tells).
 * wall_ns is the host's clock: on a GPU the time it took to send the stage's work. device_ns is the time between the boundaries on the device
 * (CUDA events on the compute stream); on the CPU the two are the same. launches, flops and bytes count the kernels, products and copies of a
 * stage from their shapes: FLOPs that the arithmetic needs, and each operand of each launch read or written once. */
typedef struct vp_stage_times {
    int64_t wall_ns[VP_STAGE_COUNT], device_ns[VP_STAGE_COUNT];
    int64_t launches[VP_STAGE_COUNT], flops[VP_STAGE_COUNT], bytes[VP_STAGE_COUNT];
    unsigned char ran[VP_STAGE_COUNT];
    int64_t stamps;                                  /* time stamps that the engine took in the request; on a GPU one is an event and a clock read */
    int64_t kernel_ns[VP_STAGE_COUNT];               /* VP_TIMING_KERNEL: sum over the stage's launches. The device's time less this: idle */
    unsigned char has_kernels;                       /* 0: kernel_ns says nothing */
} vp_stage_times;

/* STAGE: a stamp at each boundary and each token. OFF: no stamp and no timing event; all times are 0 (`ran`, launches, flops and bytes as ever).
 * KERNEL: each launch, product and copy between two stamps of its own (GPU: events of a pool made before the request starts and read after it), and
 * decode steps are sent kernel by kernel. That costs time: totals of this mode are for comparison with its own kernel_ns only, and on a GPU
 * kernels shorter than the host needs to send one are told too long. Tokens and logits are the same bits in all modes. */
typedef enum vp_timing { VP_TIMING_STAGE, VP_TIMING_OFF, VP_TIMING_KERNEL } vp_timing;
/* what part of the model an operation serves: finer than a stage, and the same in prefill and decode */
#define VP_PARTS(X) X(INPUT, "input") X(VIT_EMBED, "vit_embed") X(VIT_DENSE, "vit_dense") X(VIT_ATTENTION, "vit_attention") \
    X(POOLING, "pooling") X(PROJECTOR, "projector") X(EMBED, "embed") X(DENSE, "dense") X(ATTENTION, "attention") X(ROUTER, "router") \
    X(EXPERTS, "experts") X(HEAD, "head") X(SAMPLE, "sample")
typedef enum vp_part {
#define VP_PART_ENUM(name, text) VP_PART_##name,
    VP_PARTS(VP_PART_ENUM)
#undef VP_PART_ENUM
    VP_PART_COUNT
} vp_part;
VP_API const char *vp_part_name(vp_part part);
typedef enum vp_launch_kind { VP_LAUNCH_KERNEL, VP_LAUNCH_COPY, VP_LAUNCH_COPY_TO_DEVICE, VP_LAUNCH_COPY_TO_HOST } vp_launch_kind;
/* On a GPU both clocks begin when the device starts the request, the host's being read just behind that: no launch appears after its kernel. The
 * device's times count from the last boundary of a stage or decode step, so their resolution does not fade, and lie within the stage's. */
typedef struct vp_launch {
    const char *name;                                /* of the kernel, or "gemm", "attention..", "copy.."; static */
    int32_t stage, step;                             /* vp_stage; decode step from 1 on, 0 before */
    int32_t part, block;                             /* vp_part; block of the ViT or the language model, -1 outside of blocks */
    int32_t kind, line;                              /* vp_launch_kind; where vlmprof_kernels.cu sends it */
    /* gemm [m, n, k]; grouped gemm [rows of all, n, k, experts that have any]; attention [batch, queries, keys, width]; gather [rows, bytes]; other
     * kernels [rows, width]; copies none */
    int32_t shape[4], dimensions;
    uint32_t grid, threads, registers, shared_bytes; /* kernels of this file: blocks, threads a block; GPU: registers a thread; 0: not known */
    int64_t begin_ns, ns;                            /* from the start of the request, on the device */
    int64_t host_begin_ns, host_ns;                  /* the host's clock from the start of the request: sending it; CPU: running it */
    uint64_t flops, bytes;
} vp_launch;

/* optional copies of inner values, for comparison with other implementations; NULL pointers are skipped */
typedef struct vp_dump {
    float *image_features; /* f32 [views, tokens_per_crop, d_model] */
    float *vit_features;   /* f32 [views, patches, vit_layer_count * vit_width], before pad_embed */
    float *block_last;     /* f32 [active blocks, d_model] */
    float *block_mean;     /* f32 [active blocks, d_model]: mean over positions */
    float *logits;         /* f32 [max_new_tokens, embedding_size] */
} vp_dump;

typedef struct vp_request {
    const int32_t *input_ids; int32_t input_count;   /* BOS, image tokens, text */
    const float *pixels;                             /* f32 [views, patches, patch_values]; NULL without an image */
    const float *image_masks;                        /* f32 [views, patches] */
    const int32_t *image_input_idx;                  /* int32 [views, tokens_per_crop] */
    int32_t views;
    int32_t top_k;                                   /* 1..expert_count */
    const int32_t *active_blocks; int32_t active_block_count; /* ascending; a block that is not listed is the identity */
    int32_t max_new_tokens; int ignore_eos; int32_t eos_id;
    const vp_dump *dump;                             /* NULL: nothing is copied */
    vp_timing timing;
    vp_launch *launches; int64_t launch_capacity;    /* VP_TIMING_KERNEL: room for the launches in their order; NULL and 0: not wanted */
} vp_request;

typedef struct vp_reply {
    int32_t *tokens; int64_t *step_ns;               /* caller's, [max_new_tokens] each; step_ns[i]: decode step i < token_count - 1 on the device */
    int32_t token_count; int ended_by_eos;           /* the EOS itself is counted */
    vp_stage_times times;                            /* H2D .. DECODE; the others are the caller's */
    int64_t launch_count;                            /* VP_TIMING_KERNEL: all launches, also those that request.launches has no room for; else 0 */
} vp_reply;
/* Runs a request: greedy, one token a step. N tokens take N - 1 decode steps.
 * in:      request  checked whole before anything runs: ids, positions, blocks and sizes within the model and the engine
 * out:     reply    tokens, step_ns (those that ran), token_count, ended_by_eos, times, launch_count
 * returns: VP_OK; VP_ERR_RANGE a value outside the model or the engine (reply untouched); VP_ERR_FORMAT logits that are not numbers: the weights or
 *          pixels are damaged (reply is then unusable); VP_ERR_DEVICE or VP_ERR_MEMORY a CUDA call that failed: the same request may succeed when
 *          sent again, unless vp_engine_broken
 * numeric: fp32 or bf16 as opened, fp32 sums; the same request gives the same bits on the same machine with the same kernels
 * memory:  none; VP_TIMING_KERNEL: a vp_launch a launch, on a GPU also two events, allocated before the request starts and kept for the next
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/modeling_molmoe.py
 * example: cli.c, run_chain */
VP_API vp_result vp_engine_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error);
/* Waits until the device is idle. A GPU may still work on a decode step that an end-of-sequence token made superfluous: call this between
 * requests, outside of what is timed, so that the next one does not wait for it. */
VP_API void vp_engine_settle(vp_engine *engine);
#endif /* !VLMPROF_CORE */

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_H */

/* ================================================================================================================
 * IMPLEMENTATION >>implementation
 * ================================================================================================================ */
#if defined(VLMPROF_IMPLEMENTATION) && !defined(VLMPROF_IMPLEMENTATION_DONE)
#define VLMPROF_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
#include <time.h>
#ifndef VLMPROF_CORE
#include <stdio.h>
#endif
#ifdef __cplusplus
extern "C" {
#endif
/* Strict ISO mode, and a system header was included before this file could ask for POSIX: the C library has this function, it only hides
 * its declaration (the timer section does the same for its clock). */
#if defined(__linux__) && !defined(__cplusplus) && !defined(VLMPROF_CORE) && !defined(CLOCK_MONOTONIC)
int fileno(FILE *stream);
#endif

/* ================================================================================================ result >>result */
VP_API const char *vp_result_text(vp_result result) {
    switch ((int)result) { /* as int: a caller may hand in any number */
#define VP_RESULT_CASE(name, value, text) case value: return text;
        VP_RESULTS(VP_RESULT_CASE)
#undef VP_RESULT_CASE
        default: return "unknown result code";
    }
}

/* *out = a + b; 0 when that overflows (out then untouched) */
static inline int vp_impl_size_add(size_t a, size_t b, size_t *out) {
    if (b > SIZE_MAX - a) return 0;
    *out = a + b;
    return 1;
}

/* *out = a * b; 0 when that overflows (out then untouched) */
static inline int vp_impl_size_multiply(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) return 0;
    *out = a * b;
    return 1;
}

/* Copies a text into `capacity` >= 1 bytes, always with a NUL. Names may come from hostile files: control bytes become '?' so that
 * an error stays one line, and a cut never splits a UTF-8 character. */
static inline void vp_impl_text_copy(char *out, size_t capacity, const char *text) {
    size_t i = 0;
    if (!text) text = "";
    for (; i + 1 < capacity && text[i]; i++) {
        unsigned char byte = (unsigned char)text[i];
        out[i] = byte < 32 || byte == 127 ? '?' : text[i];
    }
    if (text[i] && ((unsigned char)text[i] & 0xC0) == 0x80) {
        while (i > 0 && ((unsigned char)out[i - 1] & 0xC0) == 0x80) i--;
        if (i > 0) i--; /* the lead byte */
    }
    out[i] = 0;
}

/* A text in pieces, for error messages with numbers in them: the core knows no stdio. Start with {{0}, 0}; long texts are cut. */
typedef struct vp_impl_message {
    char text[320];
    size_t bytes;
} vp_impl_message;

static inline void vp_impl_message_text(vp_impl_message *message, const char *text) {
    for (; text && *text && message->bytes + 1 < sizeof message->text; text++) message->text[message->bytes++] = *text;
    message->text[message->bytes] = 0;
}

static inline void vp_impl_message_int(vp_impl_message *message, int64_t value) {
    char digits[24];
    size_t i = sizeof digits - 1;
    uint64_t rest = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + (char)(rest % 10));
        rest /= 10;
    } while (rest);
    if (value < 0) digits[--i] = '-';
    vp_impl_message_text(message, digits + i);
}

VP_API vp_result vp_fail(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text) {
    if (error) {
        error->code = code;
        error->offset = offset;
        vp_impl_text_copy(error->where, sizeof error->where, where);
        vp_impl_text_copy(error->text, sizeof error->text, text);
    }
    return code;
}

VP_API void *vp_arena_take(vp_arena *arena, size_t count, size_t element_bytes) {
    size_t bytes, start, end;
    if (!arena || !arena->base || arena->used_bytes > arena->capacity_bytes) return NULL;
    /* aligned as an address, not as an offset: the caller's base may lie anywhere */
    start = (size_t)(0 - ((uintptr_t)arena->base + arena->used_bytes)) & 63;
    if (!vp_impl_size_add(arena->used_bytes, start, &start)) return NULL;
    if (!vp_impl_size_multiply(count, element_bytes, &bytes) || !vp_impl_size_add(start, bytes, &end)) return NULL;
    if (end > arena->capacity_bytes) return NULL;
    arena->used_bytes = end;
    return arena->base + start;
}

/* =================================================================================== geometry and tiler >>tiler */
VP_API vp_geometry vp_geometry_default(void) {
    vp_geometry g;
    g.crop_px = 336;
    g.patch_px = 14;
    g.margin_left_patches = 4;
    g.margin_right_patches = 4;
    g.pool = 2;
    g.max_crops = 12;
    g.mean[0] = 0.48145466f;
    g.mean[1] = 0.4578275f;
    g.mean[2] = 0.40821073f;
    g.std[0] = 0.26862954f;
    g.std[1] = 0.26130258f;
    g.std[2] = 0.27577711f;
    return g;
}

/* what follows from a valid geometry; computed once per call so that nothing below divides by a caller's number unchecked */
typedef struct vp_impl_grid {
    int32_t patches, tokens;                           /* per side of one crop */
    int32_t window_px, margin_px;                      /* window + margin = crop_px */
    int32_t window_tokens, left_tokens, right_tokens;  /* window + left + right = tokens */
} vp_impl_grid;

static vp_result vp_impl_grid_of(const vp_geometry *g, vp_impl_grid *grid) {
    const int32_t limit = VP_CROP_PX_LIMIT; /* keeps every product below inside int32 */
    int32_t patches, window, i;
    if (g->crop_px < 1 || g->crop_px > limit || g->patch_px < 1 || g->patch_px > g->crop_px || g->crop_px % g->patch_px) return VP_ERR_RANGE;
    patches = g->crop_px / g->patch_px;
    if (g->pool < 1 || g->pool > patches || patches % g->pool) return VP_ERR_RANGE;
    if (g->margin_left_patches < 0 || g->margin_right_patches < 0) return VP_ERR_RANGE;
    if (g->margin_left_patches >= patches || g->margin_right_patches >= patches - g->margin_left_patches) return VP_ERR_RANGE;
    if (g->margin_left_patches % g->pool || g->margin_right_patches % g->pool) return VP_ERR_RANGE;
    if (g->max_crops < 1 || g->max_crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    for (i = 0; i < 3; i++) { /* finite, and a division by std must be possible; NaN fails every comparison */
        if (!(g->mean[i] >= -1e6f && g->mean[i] <= 1e6f) || !(g->std[i] >= 1e-6f && g->std[i] <= 1e6f)) return VP_ERR_RANGE;
    }
    window = patches - g->margin_left_patches - g->margin_right_patches;
    grid->patches = patches;
    grid->tokens = patches / g->pool;
    grid->window_px = window * g->patch_px;
    grid->margin_px = g->crop_px - grid->window_px;
    grid->left_tokens = g->margin_left_patches / g->pool;
    grid->right_tokens = g->margin_right_patches / g->pool;
    grid->window_tokens = grid->tokens - grid->left_tokens - grid->right_tokens;
    return VP_OK;
}

VP_API vp_result vp_geometry_check(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid);
}

VP_API int32_t vp_geometry_patches_per_side(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid) == VP_OK ? grid.patches : 0;
}

VP_API int32_t vp_geometry_tokens_per_side(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid) == VP_OK ? grid.tokens : 0;
}

VP_API int32_t vp_geometry_tokens_per_crop(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid) == VP_OK ? grid.tokens * grid.tokens : 0;
}

VP_API int32_t vp_geometry_window_px(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid) == VP_OK ? grid.window_px : 0;
}

VP_API int32_t vp_geometry_margin_px(const vp_geometry *geometry) {
    vp_impl_grid grid;
    return vp_impl_grid_of(geometry, &grid) == VP_OK ? grid.margin_px : 0;
}

static const vp_tier vp_impl_tiers[] = {
    {"low", 1, 3, 2, {2, 3, 0, 0}},
    {"medium", 4, 8, 3, {6, 4, 8, 0}},
    {"high", 9, 15, 3, {12, 9, 15, 0}},
};

VP_API const vp_tier *vp_tier_at(int32_t index) {
    const int32_t count = (int32_t)(sizeof vp_impl_tiers / sizeof vp_impl_tiers[0]);
    return index >= 0 && index < count ? &vp_impl_tiers[index] : NULL;
}

VP_API const vp_tier *vp_tier_find(const char *name) {
    int32_t i;
    for (i = 0; vp_tier_at(i); i++) {
        if (strcmp(vp_tier_at(i)->name, name) == 0) return vp_tier_at(i);
    }
    return NULL;
}

/* The reference lists all rows x cols <= max_crops in the order (rows * cols, rows) and takes the first tiling with the smallest scale >= 1,
 * else the first with the largest scale, where scale = min(window * rows / h, window * cols / w). Each quotient grows with its own side
 * only, so the tilings that come first for their scale form one path from 1x1: the side that limits grows by one. Walking it until the scale
 * reaches 1 or the crops run out gives the same tiling with no list, no sort and no division. Quotients are compared by cross products. */
static vp_tiling vp_impl_adaptive(const vp_impl_grid *grid, int32_t width_px, int32_t height_px, int32_t max_crops) {
    const int64_t width = (int64_t)width_px - grid->margin_px, height = (int64_t)height_px - grid->margin_px, window = grid->window_px;
    int64_t rows = 1, cols = 1, row_scale = width, col_scale = height; /* rows * width and cols * height: both scales times width * height / window */
    vp_tiling best;
    best.rows = best.cols = 1;
    /* An image smaller than the margin has only negative scales, the largest of which is that of 1x1. A side of just the margin divides by zero in
     * the reference, an infinite scale: here its own side is satisfied at once and the other one has the smaller product. */
    if (width < 0 || height < 0) return best;
    while (window * rows < height || window * cols < width) {
        const int grow_rows = row_scale <= col_scale, grow_cols = col_scale <= row_scale;
        if (grow_rows) {
            rows++;
            row_scale += width;
        }
        if (grow_cols) {
            cols++;
            col_scale += height;
        }
        if (rows * cols > max_crops) break;
        best.rows = (int32_t)rows;
        best.cols = (int32_t)cols;
    }
    return best;
}

VP_API vp_result vp_tiler_adaptive(const vp_geometry *geometry, int32_t width_px, int32_t height_px, int32_t max_crops, vp_tiling *tiling) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || width_px < 1 || height_px < 1) return VP_ERR_RANGE;
    if (max_crops < 1 || max_crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    *tiling = vp_impl_adaptive(&grid, width_px, height_px, max_crops);
    return VP_OK;
}

/* search for the tiling nearest to an aspect ratio; a canvas side is window * count + margin */
typedef struct vp_impl_nearest {
    double window, margin, aspect, mismatch;
    vp_tiling tiling;
} vp_impl_nearest;

static void vp_impl_nearer(vp_impl_nearest *best, int32_t rows, int32_t cols) {
    /* whole numbers far below 2^53: only the quotient and the difference are rounded, whether fused or not */
    const double width = best->window * (double)cols + best->margin, height = best->window * (double)rows + best->margin;
    const double distance = fabs(width / height - best->aspect);
    if (distance < best->mismatch) { /* strict: the first of equals stays */
        best->mismatch = distance;
        best->tiling.rows = rows;
        best->tiling.cols = cols;
    }
}

/* Tries every rows x cols == crops, rows ascending, against the best so far. Primes above 2 are passed over on request. */
static void vp_impl_factorise(vp_impl_nearest *best, int32_t crops, int skip_primes) {
    int32_t small, root = 1, divisors = 0;
    for (small = 1; small <= crops / small; small++) {
        root = small;
        divisors += crops % small == 0;
    }
    if (skip_primes && crops > 2 && divisors == 1) return;
    for (small = 1; small <= root; small++) {
        if (crops % small == 0) vp_impl_nearer(best, small, crops / small);
    }
    for (small = root; small >= 1; small--) {
        if (crops % small == 0 && crops / small != small) vp_impl_nearer(best, crops / small, small);
    }
}

VP_API vp_result vp_tiler_tier(const vp_tier *tier, int32_t width_px, int32_t height_px, vp_tiling *tiling) {
    vp_impl_nearest best;
    int32_t i, crops;
    if (!tier || width_px < 1 || height_px < 1) return VP_ERR_RANGE;
    if (tier->min_crops < 1 || tier->max_crops < tier->min_crops || tier->max_crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    if (tier->preferred_count < 0 || tier->preferred_count > (int32_t)(sizeof tier->preferred / sizeof tier->preferred[0])) return VP_ERR_RANGE;
    best.window = 1.0; /* tiers compare the plain cols / rows */
    best.margin = 0.0;
    best.aspect = (double)width_px / (double)height_px;
    best.mismatch = INFINITY;
    best.tiling.rows = 1; /* where all counts are primes the reference falls back to one row of the smallest */
    best.tiling.cols = tier->min_crops;
    for (i = 0; i < tier->preferred_count; i++) {
        crops = tier->preferred[i];
        if (crops >= tier->min_crops && crops <= tier->max_crops) vp_impl_factorise(&best, crops, 1);
    }
    /* the preferred ones come again here: as the first of equals stays, that changes nothing */
    for (crops = tier->min_crops; crops <= tier->max_crops; crops++) vp_impl_factorise(&best, crops, 1);
    *tiling = best.tiling;
    return VP_OK;
}

static vp_result vp_impl_exact(const vp_impl_grid *grid, int32_t crops, double aspect, vp_tiling *tiling) {
    vp_impl_nearest best;
    if (crops < 1 || crops > VP_CROPS_LIMIT || !(aspect > 0.0 && aspect < INFINITY)) return VP_ERR_RANGE;
    best.window = grid->window_px;
    best.margin = grid->margin_px;
    best.aspect = aspect;
    best.mismatch = INFINITY;
    best.tiling.rows = 1;
    best.tiling.cols = crops;
    vp_impl_factorise(&best, crops, 0);
    *tiling = best.tiling;
    return VP_OK;
}

VP_API vp_result vp_tiler_exact(const vp_geometry *geometry, int32_t crops, double aspect, vp_tiling *tiling) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK) return VP_ERR_RANGE;
    return vp_impl_exact(&grid, crops, aspect, tiling);
}

VP_API vp_tile_options vp_tile_options_default(void) {
    vp_tile_options options;
    options.rule = VP_TILE_ADAPTIVE;
    options.fit = VP_FIT_PAD;
    options.tier = NULL;
    options.max_crops = vp_geometry_default().max_crops;
    options.crops = 0;
    options.vision_tokens = 0;
    return options;
}

/* token counts of a tiling; 0 when they leave int32 */
static int vp_impl_count_tokens(const vp_impl_grid *grid, vp_tiling tiling, vp_layout *layout) {
    const int64_t per_crop = (int64_t)grid->tokens * grid->tokens, views = (int64_t)tiling.rows * tiling.cols + 1;
    const int64_t grid_rows = (int64_t)grid->window_tokens * tiling.rows + grid->left_tokens + grid->right_tokens;
    const int64_t grid_cols = (int64_t)grid->window_tokens * tiling.cols + grid->left_tokens + grid->right_tokens;
    const int64_t features = per_crop + grid_rows * grid_cols, columns = grid->tokens + grid_rows;
    /* no overflow on the way: sides of the grid < 2^31 each, views <= 2^16 + 1, per_crop <= 2^30 */
    if (views - 1 > VP_CROPS_LIMIT || views * per_crop > INT32_MAX || features + columns + 4 > INT32_MAX) return 0;
    layout->tiling = tiling;
    layout->crops = (int32_t)views - 1;
    layout->views = (int32_t)views;
    layout->theoretical_tokens = (int32_t)(views * per_crop);
    layout->feature_tokens = (int32_t)features;
    layout->col_tokens = (int32_t)columns;
    layout->marker_tokens = 4;
    layout->image_tokens = (int32_t)(features + columns + 4);
    return 1;
}

/* Sizes of the image inside (or around) a canvas. Every step is rounded to float32, as the reference does: 640x480 in 336x336 gives
 * 336x251, because 480 * (336 / 640) is 251.99999 there. Canvas sides are at most VP_CANVAS_PX_LIMIT, where float32 still has halves. */
static void vp_impl_scale(vp_fit fit, const int32_t canvas_px[2], const int32_t image_px[2], float side[2]) {
    const float image_0 = (float)image_px[0], image_1 = (float)image_px[1];
    const float scale_0 = (float)canvas_px[0] / image_0, scale_1 = (float)canvas_px[1] / image_1;
    const float smaller = scale_0 < scale_1 ? scale_0 : scale_1, larger = scale_0 < scale_1 ? scale_1 : scale_0;
    const float scale = fit == VP_FIT_PAD ? smaller : larger;
    side[0] = image_0 * scale;
    side[1] = image_1 * scale;
    if (fit == VP_FIT_FILL) {
        side[0] = ceilf(side[0]);
        side[1] = ceilf(side[1]);
    }
}
static vp_result vp_impl_fit(vp_fit fit, const int32_t canvas_px[2], const int32_t image_px[2], int32_t resized_px[2], int32_t offset_px[2]) {
    float side[2];
    int i;
    vp_impl_scale(fit, canvas_px, image_px, side);
    for (i = 0; i < 2; i++)
        if (!(side[i] >= 1.0f && side[i] < 2147483648.0f)) return VP_ERR_RANGE;
    for (i = 0; i < 2; i++) {
        resized_px[i] = (int32_t)side[i];
        if (fit == VP_FIT_FILL) {
            if (resized_px[i] < canvas_px[i]) resized_px[i] = canvas_px[i]; /* the product may round down past the canvas */
            offset_px[i] = (resized_px[i] - canvas_px[i]) / 2;
        } else {
            if (resized_px[i] > canvas_px[i]) return VP_ERR_RANGE;
            offset_px[i] = (canvas_px[i] - resized_px[i]) / 2;
        }
    }
    return VP_OK;
}

VP_API vp_result vp_tiler_shrink(int32_t canvas_width_px, int32_t canvas_height_px, int32_t width_px, int32_t height_px, int32_t *resized_width_px,
                                 int32_t *resized_height_px) {
    const int32_t canvas_px[2] = {canvas_width_px, canvas_height_px}, image_px[2] = {width_px, height_px};
    float side[2];
    int i;
    for (i = 0; i < 2; i++)
        if (canvas_px[i] < 1 || canvas_px[i] > VP_CANVAS_PX_LIMIT || image_px[i] < 1) return VP_ERR_RANGE;
    vp_impl_scale(VP_FIT_PAD, canvas_px, image_px, side);
    *resized_width_px = (int32_t)side[0];
    *resized_height_px = (int32_t)side[1];
    return VP_OK;
}

static vp_result vp_impl_choose(const vp_geometry *geometry, const vp_impl_grid *grid, const vp_tile_options *options, int32_t width_px,
                                int32_t height_px, vp_tiling *tiling, vp_error *error) {
    const double aspect = (double)width_px / (double)height_px;
    int32_t crops = options->crops;
    switch ((int)options->rule) {
        case VP_TILE_ADAPTIVE:
            if (options->max_crops < 1 || options->max_crops > VP_CROPS_LIMIT) {
                return vp_fail(error, VP_ERR_RANGE, -1, "max_crops", "must be 1 to 65536");
            }
            *tiling = vp_impl_adaptive(grid, width_px, height_px, options->max_crops);
            return VP_OK;
        case VP_TILE_TIER:
            if (vp_tiler_tier(options->tier, width_px, height_px, tiling) == VP_OK) return VP_OK;
            return vp_fail(error, VP_ERR_RANGE, -1, "tier", "a tier needs 1 <= min_crops <= max_crops <= 65536 and at most 4 preferred counts");
        case VP_TILE_TOKENS:
            if (vp_select_crops(geometry, options->vision_tokens, &crops) != VP_OK) {
                return vp_fail(error, VP_ERR_RANGE, -1, "vision_tokens", "must be positive and mean at most 65536 crops");
            }
            return vp_impl_exact(grid, crops, aspect, tiling);
        case VP_TILE_CROPS:
            if (vp_impl_exact(grid, crops, aspect, tiling) == VP_OK) return VP_OK;
            return vp_fail(error, VP_ERR_RANGE, -1, "crops", "must be 1 to 65536");
        default:
            return vp_fail(error, VP_ERR_RANGE, -1, "rule", "not one of vp_tile_rule");
    }
}

static vp_result vp_impl_fit_fail(vp_error *error, vp_fit fit, int32_t width_px, int32_t height_px, const int32_t canvas_px[2]) {
    vp_impl_message m = {{0}, 0};
    vp_impl_message_text(&m, "an image of ");
    vp_impl_message_int(&m, width_px);
    vp_impl_message_text(&m, "x");
    vp_impl_message_int(&m, height_px);
    vp_impl_message_text(&m, fit == VP_FIT_PAD ? " px fitted into " : " px that fills ");
    vp_impl_message_int(&m, canvas_px[0]);
    vp_impl_message_text(&m, "x");
    vp_impl_message_int(&m, canvas_px[1]);
    vp_impl_message_text(&m, fit == VP_FIT_PAD ? " px is less than a pixel on its short side; crop it, or use a fill mode"
                                               : " px is more than 2147483647 px on its long side; crop it first");
    return vp_fail(error, VP_ERR_RANGE, -1, "image size", m.text);
}

VP_API vp_result vp_layout_compute(const vp_geometry *geometry, const vp_tile_options *options, int32_t width_px, int32_t height_px,
                                   vp_layout *layout, vp_error *error) {
    vp_impl_grid grid;
    vp_layout out;
    vp_tiling tiling;
    vp_result result;
    int64_t canvas_width, canvas_height;
    int32_t image[2], canvas[2], crop[2], resized[2], offset[2];
    if (vp_impl_grid_of(geometry, &grid) != VP_OK) return vp_fail(error, VP_ERR_RANGE, -1, "geometry", "not a valid geometry; see vp_geometry_check");
    if (width_px < 1 || height_px < 1) return vp_fail(error, VP_ERR_RANGE, -1, "image size", "both sides must be at least 1 px");
    if (options->fit != VP_FIT_PAD && options->fit != VP_FIT_FILL) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "not one of vp_fit");
    result = vp_impl_choose(geometry, &grid, options, width_px, height_px, &tiling, error);
    if (result != VP_OK) return result;
    canvas_width = (int64_t)grid.window_px * tiling.cols + grid.margin_px;
    canvas_height = (int64_t)grid.window_px * tiling.rows + grid.margin_px;
    if (canvas_width > VP_CANVAS_PX_LIMIT || canvas_height > VP_CANVAS_PX_LIMIT || !vp_impl_count_tokens(&grid, tiling, &out)) {
        return vp_fail(error, VP_ERR_RANGE, -1, "tiling", "the canvas is over 8388608 px on a side, or the token counts leave 32 bits");
    }
    out.width_px = image[0] = width_px;
    out.height_px = image[1] = height_px;
    out.fit = options->fit;
    out.canvas_width_px = canvas[0] = (int32_t)canvas_width;
    out.canvas_height_px = canvas[1] = (int32_t)canvas_height;
    if (vp_impl_fit(out.fit, canvas, image, resized, offset) != VP_OK) return vp_impl_fit_fail(error, out.fit, width_px, height_px, canvas);
    out.resized_width_px = resized[0];
    out.resized_height_px = resized[1];
    out.offset_left_px = offset[0];
    out.offset_top_px = offset[1];
    crop[0] = crop[1] = geometry->crop_px;
    if (vp_impl_fit(out.fit, crop, image, resized, offset) != VP_OK) return vp_impl_fit_fail(error, out.fit, width_px, height_px, crop);
    out.global_resized_width_px = resized[0];
    out.global_resized_height_px = resized[1];
    out.global_offset_left_px = offset[0];
    out.global_offset_top_px = offset[1];
    *layout = out;
    return VP_OK;
}

#if !defined(VLMPROF_CORE) || defined(VLMPROF_FAMILIES)
/* ============================================================================================ families >>families */
#if defined(__FAST_MATH__)
#error "counts repeat other programs' floating point operation by operation: do not compile this file with fast-math"
#endif
/* rules; the index of VP_IMPL_RULES */
enum {
    VP_IMPL_SMART, VP_IMPL_NAVIT, VP_IMPL_BUDGET, VP_IMPL_MUSE, VP_IMPL_NEMOTRON, VP_IMPL_POOLED, VP_IMPL_PAN, VP_IMPL_CLOSEST, VP_IMPL_OCR,
    VP_IMPL_FIT, VP_IMPL_MOLMO, VP_IMPL_LONGEST, VP_IMPL_ANYRES, VP_IMPL_CANVAS, VP_IMPL_SPLIT, VP_IMPL_PHI4, VP_IMPL_PHI3, VP_IMPL_COVER,
    VP_IMPL_LFM2, VP_IMPL_SLICE, VP_IMPL_PERCEPTION, VP_IMPL_WINDOW, VP_IMPL_CONSTANT, VP_IMPL_CLAUDE, VP_IMPL_OPENAI_TILES,
    VP_IMPL_OPENAI_PATCHES, VP_IMPL_GEMINI
};
/* how the members of a rule differ */
enum {
    VP_IMPL_RATIO_200 = 1, VP_IMPL_CLAMP_FIRST = 2, VP_IMPL_CLAMP_FLOOR = 4, VP_IMPL_FRAMES_2 = 8, VP_IMPL_ENLARGE = 16, VP_IMPL_WIDEN = 32,
    VP_IMPL_ROW_ENDS = 64, VP_IMPL_AUTO_LIMITS = 128, VP_IMPL_QWEN = VP_IMPL_RATIO_200 | VP_IMPL_CLAMP_FLOOR
};
enum { VP_IMPL_PLAIN, VP_IMPL_TAGS, VP_IMPL_DOCLING };                                       /* closest */
enum { VP_IMPL_COHERE, VP_IMPL_LLAMA4, VP_IMPL_MLLAMA, VP_IMPL_MOLMO2 };                     /* fit */
enum { VP_IMPL_HEIGHT_FIRST, VP_IMPL_WIDTH_FIRST, VP_IMPL_ONEVISION };                       /* anyres */
enum { VP_IMPL_ARIA, VP_IMPL_DEEPSEEK };                                                     /* canvas */

#define VP_IMPL_PIXELS(min, max) {"min_pixels", VP_SLOT_MIN, min}, {"max_pixels", VP_SLOT_MAX, max}
#define VP_IMPL_PATCHES(patch, merge) {"patch_size", VP_SLOT_PATCH, patch}, {"merge_size", VP_SLOT_MERGE, merge}
#define VP_IMPL_TILES(min, max, tile) {"min_patches", VP_SLOT_MIN, min}, {"max_patches", VP_SLOT_MAX, max}, {"size", VP_SLOT_TILE, tile}
#define VP_IMPL_IMAGE_TOKENS(tokens) {"image_seq_length", VP_SLOT_TOKENS, tokens}
static const vp_family_preset vp_impl_presets[] = {
    {"qwen2_vl_hf", "qwen2-vl", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 12845056), VP_IMPL_PATCHES(14, 2)}},
    {"qwen2_5_vl_hf", "qwen2.5-vl", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 12845056), VP_IMPL_PATCHES(14, 2)}},
    {"qwen3_vl_hf", "qwen3-vl qwen3_vl_moe qwen3.5 qwen3_5_moe qwen3.6", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(65536, 16777216), VP_IMPL_PATCHES(16, 2)}},
    {"qwen_vl_utils", "", "smart", VP_IMPL_SMART, VP_IMPL_RATIO_200 | VP_IMPL_CLAMP_FIRST | VP_IMPL_AUTO_LIMITS, 0,
     VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"image_patch_size", VP_SLOT_PATCH, 14}, VP_IMPL_PIXELS(3136, 12845056), {"merge_size", VP_SLOT_MERGE, 2}}},
    {"glm4v", "glm-4.1v glm-4.5v glm4v_moe", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_FRAMES_2 | VP_IMPL_ENLARGE, 0,
     VP_CERTAINTY_EXECUTED, NULL, 2, {VP_IMPL_PIXELS(12544, 9633792), VP_IMPL_PATCHES(14, 2)}},
    {"glm46v", "glm-4.6v glm46v_moe glm-ocr", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_FRAMES_2 | VP_IMPL_ENLARGE, 0, VP_CERTAINTY_EXECUTED,
     NULL, 2, {VP_IMPL_PIXELS(12544, 9633792), VP_IMPL_PATCHES(14, 2)}},
    {"ernie4_5_vl", "ernie-4.5-vl ernie4_5_vl_moe", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 4842768), VP_IMPL_PATCHES(14, 2)}},
    {"paddleocr_vl", "", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_WIDEN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(147456, 2359296), VP_IMPL_PATCHES(14, 2)}},
    {"minimax_m3_vl", "minimax-m3", "smart", VP_IMPL_SMART, VP_IMPL_QWEN, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_PIXELS(3136, 451584), VP_IMPL_PATCHES(14, 2)}},
    {"hunyuan_vl", "hunyuanvl hunyuan-ocr", "smart", VP_IMPL_SMART, VP_IMPL_QWEN | VP_IMPL_ROW_ENDS, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
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
    {"nemotron_h_omni", "nemotron-3-nano-omni nemotron_h_omni_reasoning_v3", "nemotron", VP_IMPL_NEMOTRON, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_num_patches", VP_SLOT_MIN, 1024}, {"max_num_patches", VP_SLOT_MAX, 13312}, {"max_model_len", VP_SLOT_SIDE, 16384},
      VP_IMPL_PATCHES(16, 2)}},
    {"gemma4", "", "pooled", VP_IMPL_POOLED, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_soft_tokens", VP_SLOT_MAX, 280}, {"patch_size", VP_SLOT_PATCH, 16}, {"pooling_kernel_size", VP_SLOT_MERGE, 3}}},
    {"gemini_3", "", "pooled", VP_IMPL_POOLED, 0, 1, VP_CERTAINTY_DOCUMENTED, NULL, 1, /* inferred: equal to 10 of 10 measured sizes */
     {{"max_soft_tokens", VP_SLOT_MAX, 1120}, {NULL, VP_SLOT_PATCH, 16}, {NULL, VP_SLOT_MERGE, 3}}},
    {"gemma3", "", "pan_and_scan", VP_IMPL_PAN, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 4,
     {{"do_pan_and_scan", VP_SLOT_SPLIT, 0}, {"min_crop_size", VP_SLOT_TILE, 256}, {"max_num_crops", VP_SLOT_MAX, 4},
      {"min_ratio_to_activate", VP_SLOT_RATIO, 1.2}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"internvl", "internvl2 internvl2.5 internvl3 internvl3.5 internvl_chat", "closest", VP_IMPL_CLOSEST, VP_IMPL_PLAIN, 2,
     VP_CERTAINTY_EXECUTED, NULL, 2, {VP_IMPL_TILES(1, 12, 448), VP_IMPL_IMAGE_TOKENS(256)}},
    {"got_ocr2", "", "closest", VP_IMPL_CLOSEST, VP_IMPL_PLAIN, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 1024), VP_IMPL_IMAGE_TOKENS(256)}},
    {"aya_vision", "", "closest", VP_IMPL_CLOSEST, VP_IMPL_TAGS, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 364), VP_IMPL_IMAGE_TOKENS(169)}},
    {"granite_docling", "granite-docling-500m granite-for-docling", "closest", VP_IMPL_CLOSEST, VP_IMPL_DOCLING, 3, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_patches", VP_SLOT_MAX, 32}, {"image_seq_len", VP_SLOT_TOKENS, 64}, {"min_patches", VP_SLOT_MIN, 1}, {"size", VP_SLOT_TILE, 512}}},
    {"deepseek_ocr_unlimited_ocr", "unlimited_ocr", "ocr", VP_IMPL_OCR, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 32}, {"tile_size", VP_SLOT_TILE, 640}, {"size", VP_SLOT_SIDE, 1024},
      {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"deepseek_ocr", "deepseek-ocr-gundam", "ocr", VP_IMPL_OCR, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 6}, {"tile_size", VP_SLOT_TILE, 640}, {"size", VP_SLOT_SIDE, 1024},
      {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"deepseek_ocr2", "", "ocr", VP_IMPL_OCR, 1, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"min_patches", VP_SLOT_MIN, 2}, {"max_patches", VP_SLOT_MAX, 6}, {"tile_size", VP_SLOT_TILE, 768}, {"size", VP_SLOT_SIDE, 1024},
      {"patch_size", VP_SLOT_PATCH, 16}, {"downsample_ratio", VP_SLOT_MERGE, 4}}},
    {"cohere2_vision", "command-a-vision", "fit", VP_IMPL_FIT, VP_IMPL_COHERE, 2, VP_CERTAINTY_EXECUTED, NULL, 2,
     {VP_IMPL_TILES(1, 12, 512), VP_IMPL_IMAGE_TOKENS(256)}},
    {"llama4", "", "fit", VP_IMPL_FIT, VP_IMPL_LLAMA4, 3, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_patches", VP_SLOT_MAX, 16}, {"tile_size", VP_SLOT_TILE, 336}, {"patch_size", VP_SLOT_PATCH, 14}, {NULL, VP_SLOT_MERGE, 2}}},
    {"mllama", "llama-3.2-vision llama3.2-vision", "fit", VP_IMPL_FIT, VP_IMPL_MLLAMA, 1, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_image_tiles", VP_SLOT_MAX, 4}, {"tile_size", VP_SLOT_TILE, 560}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"molmo2", "", "fit", VP_IMPL_FIT, VP_IMPL_MOLMO2, 4, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_crops", VP_SLOT_MAX, 8}, {"low_res_col_tokens", VP_SLOT_SPLIT, 0}}},
    {"molmo", "molmo-7b-d molmoe-1b molmo-72b molmo-0924", "molmo", VP_IMPL_MOLMO, 0, 4, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_crops", VP_SLOT_MAX, 12}}},
    {"pixtral_hf", "pixtral", "longest", VP_IMPL_LONGEST, 0, 1, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16}, {"spatial_merge_size", VP_SLOT_MERGE, 1}}},
    {"mistral3_hf", "mistral-small-3.1 mistral3 ministral-3", "longest", VP_IMPL_LONGEST, 0, 1, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1540}, {"patch_size", VP_SLOT_PATCH, 14}, {"spatial_merge_size", VP_SLOT_MERGE, 2}}},
    {"mistral_common", "", "longest", VP_IMPL_LONGEST, 1, 1, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"max_image_size", VP_SLOT_SIDE, 1024}, {"patch_size", VP_SLOT_PATCH, 16}, {"spatial_merge_size", VP_SLOT_MERGE, 1}}},
    {"llava_next_hf", "llava-next llava-1.6 llava-v1.6", "anyres", VP_IMPL_ANYRES, VP_IMPL_HEIGHT_FIRST, 0, VP_CERTAINTY_EXECUTED,
     "llava_1_6 granite_vision", 1,
     {{"preset", VP_SLOT_SPLIT, 0}, {"size", VP_SLOT_TILE, 336}, {"patches_per_side", VP_SLOT_TOKENS, 24}}},
    {"granite_vision", "granite-vision-3.3", "anyres", VP_IMPL_ANYRES, VP_IMPL_HEIGHT_FIRST, 0, VP_CERTAINTY_EXECUTED,
     "llava_1_6 granite_vision", 1,
     {{"preset", VP_SLOT_SPLIT, 1}, {"size", VP_SLOT_TILE, 384}, {"patches_per_side", VP_SLOT_TOKENS, 27}}},
    {"llava_next_original", "", "anyres", VP_IMPL_ANYRES, VP_IMPL_WIDTH_FIRST, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{"size", VP_SLOT_TILE, 336}, {"patches_per_side", VP_SLOT_TOKENS, 24}}},
    {"llava_onevision_hf", "llava-onevision", "anyres", VP_IMPL_ANYRES, VP_IMPL_ONEVISION, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"anyres_max", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 384}, {"patches_per_side", VP_SLOT_TOKENS, 27}}},
    {"deepseek_vl2", "deepseek_vl_v2", "canvas", VP_IMPL_CANVAS, VP_IMPL_DEEPSEEK, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"cropping", VP_SLOT_SPLIT, 1}, {"size", VP_SLOT_TILE, 384}, {"patch_size", VP_SLOT_PATCH, 14}, {"downsample_ratio", VP_SLOT_MERGE, 2}}},
    {"aria", "", "canvas", VP_IMPL_CANVAS, VP_IMPL_ARIA, 0, VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_image_size", VP_SLOT_SIDE, 980}, {"split_image", VP_SLOT_SPLIT, 0}, {NULL, VP_SLOT_TILE, 490}}},
    {"idefics3_smolvlm", "idefics3", "split", VP_IMPL_SPLIT, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1456}, {"tile_size", VP_SLOT_TILE, 364}, {"image_seq_len", VP_SLOT_TOKENS, 169}}},
    {"smolvlm", "smolvlm2 smolvlm-256m smolvlm-500m granite-docling-258m", "split", VP_IMPL_SPLIT, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 2048}, {"tile_size", VP_SLOT_TILE, 512}, {"image_seq_len", VP_SLOT_TOKENS, 64}}},
    {"smolvlm_2_2b", "smolvlm2-2.2b smolvlm-2.2b", "split", VP_IMPL_SPLIT, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 3,
     {{"longest_edge", VP_SLOT_SIDE, 1536}, {"tile_size", VP_SLOT_TILE, 384}, {"image_seq_len", VP_SLOT_TOKENS, 81}}},
    {"phi4_multimodal", "phi-4-multimodal", "padded", VP_IMPL_PHI4, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"dynamic_hd", VP_SLOT_MAX, 36}, {"size", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14}}},
    {"phi3_5_vision", "phi-3.5-vision phi3-v", "growing", VP_IMPL_PHI3, 0, 0, VP_CERTAINTY_NUMBERS, NULL, 1, {{"num_crops", VP_SLOT_MAX, 4}}},
    {"ovis2_hf", "ovis2", "covering", VP_IMPL_COVER, 1, 3, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_patches", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 448}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"ovis2_original", "", "covering", VP_IMPL_COVER, 0, 3, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_partition", VP_SLOT_MAX, 9}, {"size", VP_SLOT_TILE, 448}, VP_IMPL_IMAGE_TOKENS(256)}},
    {"lfm2_vl", "lfm2.5-vl", "lfm2", VP_IMPL_LFM2, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 5,
     {{"min_tiles", VP_SLOT_MIN, 2}, {"max_tiles", VP_SLOT_MAX, 10}, {"min_image_tokens", VP_SLOT_MIN_TOKENS, 64},
      {"max_image_tokens", VP_SLOT_MAX_TOKENS, 256}, {"do_image_splitting", VP_SLOT_SPLIT, 1}, {"tile_size", VP_SLOT_TILE, 512},
      {"encoder_patch_size", VP_SLOT_PATCH, 16}, {"downsample_factor", VP_SLOT_MERGE, 2}}},
    {"minicpm_v_2_6", "minicpm-v-2.6 minicpm-o-2.6 minicpm-v-4 minicpm-v-4.5 minicpmv minicpmo", "slices", VP_IMPL_SLICE, 0, 3,
     VP_CERTAINTY_EXECUTED, NULL, 2,
     {{"max_slice_nums", VP_SLOT_MAX, 9}, {"image_feature_size", VP_SLOT_TOKENS, 64}, {"scale_resolution", VP_SLOT_TILE, 448},
      {"patch_size", VP_SLOT_PATCH, 14}}},
    {"minicpm_v_4_6", "", "slices", VP_IMPL_SLICE, 1, 3, VP_CERTAINTY_EXECUTED, "16x 4x", 2,
     {{"max_slice_nums", VP_SLOT_MAX, 9}, {"downsample_mode", VP_SLOT_SPLIT, 0}, {"scale_resolution", VP_SLOT_TILE, 448},
      {"patch_size", VP_SLOT_PATCH, 14}}},
    {"perception_lm", "plm", "perception", VP_IMPL_PERCEPTION, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 1,
     {{"max_num_tiles", VP_SLOT_MAX, 36}, {"tile_size", VP_SLOT_TILE, 448}, {"patch_size", VP_SLOT_PATCH, 14},
      {"pooling_ratio", VP_SLOT_MERGE, 2}}},
    {"step3p7", "step-3.7 step-3.7-flash", "windows", VP_IMPL_WINDOW, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{"patch_size", VP_SLOT_TILE, 504}, {"max_image_size", VP_SLOT_SIDE, 3024}, {"size", VP_SLOT_MAX, 728}}},
    {"llava_1_5", "llava", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 576}}},
    {"paligemma_224", "paligemma paligemma2", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0,
     {{NULL, VP_SLOT_TOKENS, 256}}},
    {"paligemma_448", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 1024}}},
    {"paligemma_896", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 4096}}},
    {"gemma3n", "", "constant", VP_IMPL_CONSTANT, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 256}}},
    {"janus", "janus-pro", "constant", VP_IMPL_CONSTANT, 0, 2, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 576}}},
    {"deepseek_vl", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 576}}},
    {"deepseek_vl_hybrid", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 576}}},
    {"got_ocr2_no_crop", "", "constant", VP_IMPL_CONSTANT, 0, 0, VP_CERTAINTY_EXECUTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 256}}},
    {"claude", "claude-standard", "claude", VP_IMPL_CLAUDE, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 2,
     {{"max_side", VP_SLOT_SIDE, 1568}, {"max_image_tokens", VP_SLOT_MAX, 1568}}},
    {"claude_high_resolution", "claude-4.7 claude-hi-res", "claude", VP_IMPL_CLAUDE, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 2,
     {{"max_side", VP_SLOT_SIDE, 2576}, {"max_image_tokens", VP_SLOT_MAX, 4784}}},
    {"openai_tiles", "gpt-4o gpt-4.1 gpt-4.5", "openai_tiles", VP_IMPL_OPENAI_TILES, 0, 85, VP_CERTAINTY_DOCUMENTED, NULL, 2,
     {{"base_tokens", VP_SLOT_MIN, 85}, {"tile_tokens", VP_SLOT_TOKENS, 170}}},
    {"openai_patches", "gpt-5-mini gpt-5-nano o4-mini", "openai_patches", VP_IMPL_OPENAI_PATCHES, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 3,
     {{"patch_budget", VP_SLOT_MAX, 1536}, {"max_side", VP_SLOT_SIDE, 2048}, {"multiplier", VP_SLOT_RATIO, 1}}},
    {"gemini_2", "gemini-2.0 gemini-2.5", "gemini", VP_IMPL_GEMINI, 0, 0, VP_CERTAINTY_DOCUMENTED, NULL, 0, {{NULL, VP_SLOT_TOKENS, 258}}},
};

/* Whole numbers out of quotients that are not negative and below 2^51. */
static int64_t vp_impl_ceiling(double x) {
    const int64_t whole = (int64_t)x;
    return whole + ((double)whole < x);
}
static int64_t vp_impl_half_even(double x) { /* adding 2^52 leaves no bits for the fraction: the addition rounds it away, halves to even */
    return (int64_t)(x + 4503599627370496.0 - 4503599627370496.0);
}
static int64_t vp_impl_least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t vp_impl_most(int64_t a, int64_t b) { return a > b ? a : b; }
/* fmod(x, y) of a whole x < 2^24 and y > 1, exact but without the library's long division: y is split into two halves whose products with the
 * quotient have no more than 53 bits. */
static double vp_impl_remainder(double x, double y) {
    double high, rest, quotient = (double)(int64_t)(x / y);
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    bits &= ~UINT64_C(0x7ffffff);
    memcpy(&high, &bits, sizeof high);
    rest = x - quotient * high - quotient * (y - high);
    if (rest < 0.0) rest += y;
    return rest >= y ? rest - y : rest;
}
/* CPython's x // y of floats: not floor(x / y), which can be one more where the quotient is nearly whole. */
static int64_t vp_impl_floor_division(double x, double y) {
    const double quotient = (x - vp_impl_remainder(x, y)) / y, whole = (double)(int64_t)quotient;
    return (int64_t)(quotient - whole > 0.5 ? whole + 1.0 : whole);
}

/* A rule takes the family and the size and fills the count, which starts as -1, and zero in the token counts; it returns NULL, or why the
 * family's own code refuses the size. */
typedef const char *(*vp_impl_rule)(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c);
static const char vp_impl_no_pixel[] = "a side of the resized image is less than a pixel";

static void vp_impl_resized(vp_vision_count *c, int64_t width, int64_t height) {
    c->resized_width_px = width;
    c->resized_height_px = height;
}
static void vp_impl_cells(vp_vision_count *c, int64_t rows, int64_t cols) {
    c->rows = rows;
    c->cols = cols;
}

/* ---- whole images, resized to multiples of a unit */
static const char *vp_impl_smart_resize(int64_t *width, int64_t *height, int64_t unit, int64_t least, int64_t most, int how) {
    const double f = (double)unit, frames = how & VP_IMPL_FRAMES_2 ? 2.0 : 1.0;
    double w = (double)*width, h = (double)*height, pixels, beta;
    int64_t rounded_w, rounded_h;
    if ((how & VP_IMPL_ENLARGE) && (h < f || w < f)) {
        const double scale = f / h > f / w ? f / h : f / w;
        h = (double)(int64_t)(h * scale);
        w = (double)(int64_t)(w * scale);
    }
    if ((how & VP_IMPL_WIDEN) && h < f) {
        w = (double)vp_impl_half_even(w * f / h);
        h = f;
    }
    if ((how & VP_IMPL_WIDEN) && w < f) {
        h = (double)vp_impl_half_even(h * f / w);
        w = f;
    }
    if ((how & VP_IMPL_RATIO_200) && (w > h ? w / h : h / w) > 200.0) return "the sides differ by more than a factor of 200";
    rounded_w = vp_impl_half_even(w / f) * unit;
    rounded_h = vp_impl_half_even(h / f) * unit;
    if (how & VP_IMPL_CLAMP_FIRST) {
        rounded_w = vp_impl_most(rounded_w, unit);
        rounded_h = vp_impl_most(rounded_h, unit);
    }
    pixels = frames * (double)rounded_h * (double)rounded_w;
    if (pixels > (double)most) {
        beta = sqrt(frames * h * w / (double)most);
        rounded_h = (int64_t)(h / beta / f) * unit;
        rounded_w = (int64_t)(w / beta / f) * unit;
        if (how & VP_IMPL_CLAMP_FLOOR) {
            rounded_w = vp_impl_most(rounded_w, unit);
            rounded_h = vp_impl_most(rounded_h, unit);
        }
    } else if (pixels < (double)least) {
        beta = sqrt((double)least / (frames * h * w));
        rounded_h = vp_impl_ceiling(h * beta / f) * unit;
        rounded_w = vp_impl_ceiling(w * beta / f) * unit;
    }
    if (rounded_w < 1 || rounded_h < 1) return vp_impl_no_pixel;
    *width = rounded_w;
    *height = rounded_h;
    return NULL;
}
/* size, grid of patches and one feature for merge x merge of them */
static void vp_impl_patches(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t patch = f->value[VP_SLOT_PATCH], merge = f->value[VP_SLOT_MERGE];
    vp_impl_resized(c, width, height);
    vp_impl_cells(c, height / patch, width / patch);
    c->feature_tokens = c->rows / merge * (c->cols / merge);
    c->marker_tokens = f->preset->markers;
}
static const char *vp_impl_count_smart(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, unit = v[VP_SLOT_PATCH] * v[VP_SLOT_MERGE];
    const char *refused;
    if ((f->preset->variant & VP_IMPL_AUTO_LIMITS) && v[VP_SLOT_MIN] > v[VP_SLOT_MAX]) return "max_pixels must not be below min_pixels";
    refused = vp_impl_smart_resize(&width, &height, unit, v[VP_SLOT_MIN], v[VP_SLOT_MAX], f->preset->variant);
    if (refused) return refused;
    vp_impl_patches(f, width, height, c);
    if (f->preset->variant & VP_IMPL_ROW_ENDS) c->separator_tokens = c->rows / v[VP_SLOT_MERGE];
    return NULL;
}
/* Kimi: shrunk, then padded to the unit, so that the limit may be passed. */
static const char *vp_impl_count_navit(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, patch = v[VP_SLOT_PATCH], unit = patch * v[VP_SLOT_MERGE];
    const double most = (double)v[VP_SLOT_MAX], side = (double)(v[VP_SLOT_SIDE] * patch);
    double patches, scale = 1.0;
    if (f->preset->variant) { /* the first generation refuses long sides instead of scaling them */
        patches = (double)(width / patch) * (double)(height / patch);
        if (patches > most) {
            scale = sqrt(most / patches);
            width = (int64_t)((double)width * scale);
            height = (int64_t)((double)height * scale);
        }
        width = (width + unit - 1) / unit * unit;
        height = (height + unit - 1) / unit * unit;
        if (width < 1 || height < 1) return vp_impl_no_pixel;
        if (vp_impl_most(width, height) / patch >= v[VP_SLOT_SIDE]) return "a side has too many patches";
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
    vp_impl_patches(f, width, height, c);
    return NULL;
}
/* GLM-5: sides up to multiples of the unit; over the budget, the largest height whose own multiples fit, by bisection. */
static const char *vp_impl_count_budget(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t unit = f->value[VP_SLOT_PATCH] * f->value[VP_SLOT_MERGE], least = f->value[VP_SLOT_MIN], most = f->value[VP_SLOT_MAX];
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
    vp_impl_patches(f, cols * unit, rows * unit, c);
    return NULL;
}
/* CPython's sets walk a table by hash, and where two grids are equally good the order of that walk decides. */
static uint64_t vp_impl_pair_hash(uint64_t first, uint64_t second) { /* of a tuple of two small whole numbers */
    const uint64_t one = UINT64_C(11400714785074694791), two = UINT64_C(14029467366897019727), five = UINT64_C(2870177450012600261);
    uint64_t hash = five + first * two;
    hash = (hash << 31 | hash >> 33) * one + second * two;
    return (hash << 31 | hash >> 33) * one + (2 ^ (five ^ UINT64_C(3527539)));
}
/* Puts a new element's index into a table of mask + 1 places, -1 where free. */
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
/* Muse Glimmer: the grid below or above the ideal one with the nearest aspect ratio. Squares tie between two of them, and then the order in which
 * CPython walks a set of pairs decides. */
static const char *vp_impl_count_muse(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t unit = f->value[VP_SLOT_PATCH] * f->value[VP_SLOT_MERGE];
    const double most = (double)f->value[VP_SLOT_MAX], aspect = (double)height / (double)width;
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
        if ((i >> 1 && rows[0] == rows[1]) || ((i & 1) && cols[0] == cols[1])) continue; /* the same pair again */
        vp_impl_set_insert(set, 7, vp_impl_pair_hash((uint64_t)rows[i >> 1], (uint64_t)cols[i & 1]), i);
    }
    for (i = 0; i < 8; i++) {
        const int64_t r = set[i] < 0 ? 0 : rows[set[i] >> 1], k = set[i] < 0 ? 0 : cols[set[i] & 1];
        double distance;
        if (r < 1 || k < 1 || (double)(r * k) > most) continue;
        distance = fabs((double)r / (double)k - aspect);
        if (distance < best) {
            best = distance;
            best_rows = r;
            best_cols = k;
        }
    }
    if (!best_rows) {
        best_rows = vp_impl_most(1, vp_impl_half_even(ideal_rows));
        best_cols = vp_impl_most(1, vp_impl_half_even(ideal_cols));
    }
    vp_impl_patches(f, best_cols * unit, best_rows * unit, c);
    return NULL;
}
/* a side of Nemotron's grid as a multiple of merge: up where the limit allows it */
static int64_t vp_impl_even_side(int64_t side, int64_t other, int64_t merge, int64_t most) {
    const int64_t rest = side % merge;
    if (!rest) return side;
    return (side + merge - rest) * other <= most ? side + merge - rest : vp_impl_most(merge, side - rest);
}
static const char *vp_impl_count_nemotron(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, patch = v[VP_SLOT_PATCH], merge = v[VP_SLOT_MERGE], least = v[VP_SLOT_MIN];
    const int64_t length = vp_impl_most((v[VP_SLOT_SIDE] - 4) * merge * merge, least);
    const int64_t most = vp_impl_most(vp_impl_least(length, v[VP_SLOT_MAX]), least);
    int64_t rows = vp_impl_half_even((double)height / (double)patch + 0.5), cols = vp_impl_half_even((double)width / (double)patch + 0.5);
    double factor;
    if (rows * cols < 1) return vp_impl_no_pixel;
    factor = sqrt((double)most / (double)(rows * cols));
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
    vp_impl_patches(f, cols * patch, rows * patch, c);
    return NULL;
}
/* Gemma 4: as many pixels as the budget gives, up or down. */
static const char *vp_impl_count_pooled(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t merge = f->value[VP_SLOT_MERGE], patch = f->value[VP_SLOT_PATCH], unit = merge * patch, soft = f->value[VP_SLOT_MAX];
    const double w = (double)width, h = (double)height, pixels = (double)(soft * unit * unit), factor = sqrt(pixels / (h * w));
    int64_t rows = (int64_t)(factor * h / (double)unit), cols = (int64_t)(factor * w / (double)unit);
    if (!rows && !cols) return vp_impl_no_pixel;
    if (!rows) {
        rows = 1;
        cols = vp_impl_least(width / height, soft);
    } else if (!cols) {
        cols = 1;
        rows = vp_impl_least(height / width, soft);
    }
    if (rows * cols > soft) return "the resized image passes the budget";
    vp_impl_resized(c, cols * unit, rows * unit);
    vp_impl_cells(c, rows, cols);
    c->feature_tokens = rows * cols;
    c->marker_tokens = f->preset->markers;
    return NULL;
}
/* Pixtral: inside a square, then up to multiples of the unit. */
static const char *vp_impl_count_longest(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t unit = f->value[VP_SLOT_PATCH] * f->value[VP_SLOT_MERGE];
    const double side = (double)f->value[VP_SLOT_SIDE], tall = (double)height / side, wide = (double)width / side;
    const double ratio = tall > wide ? tall : wide;
    if (ratio > 1.0 && f->preset->variant) {
        width = vp_impl_most(1, vp_impl_half_even((double)width / ratio));
        height = vp_impl_most(1, vp_impl_half_even((double)height / ratio));
    } else if (ratio > 1.0) {
        width = (int64_t)((double)width / ratio);
        height = (int64_t)((double)height / ratio);
    }
    if (width < 1 || height < 1) return vp_impl_no_pixel;
    vp_impl_cells(c, (height - 1) / unit + 1, (width - 1) / unit + 1);
    vp_impl_resized(c, c->cols * unit, c->rows * unit);
    c->feature_tokens = c->rows * c->cols;
    c->separator_tokens = c->rows - 1;
    c->marker_tokens = 1;
    return NULL;
}
/* Step 3.7: one squashed view, and windows of 504 pixels or of the short side. */
static int64_t vp_impl_window_side(int64_t side, int64_t window) {
    if (side < window) return side;
    return window * (side / window + ((double)(side % window) > 0.2 * (double)window));
}
static const char *vp_impl_count_window(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t patch = f->value[VP_SLOT_TILE], limit = f->value[VP_SLOT_SIDE], size = f->value[VP_SLOT_MAX];
    int64_t small = vp_impl_least(width, height), large = vp_impl_most(width, height), window = patch, rows = 0, cols = 0;
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
    vp_impl_resized(c, width, height);
    vp_impl_cells(c, rows, cols);
    c->views = rows * cols + 1;
    c->feature_tokens = (size / 56) * (size / 56) + rows * cols * (patch / 56) * (patch / 56);
    c->separator_tokens = rows ? rows - 1 : 0;
    c->marker_tokens = 2 * c->views;
    return NULL;
}
static const char *vp_impl_count_pan(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t crop = f->value[VP_SLOT_TILE], small = vp_impl_least(width, height), large = vp_impl_most(width, height);
    const double ratio = (double)large / (double)small;
    int64_t crops = 0;
    if (f->value[VP_SLOT_SPLIT] && !(ratio < f->ratio)) {
        crops = vp_impl_least(f->value[VP_SLOT_MAX], vp_impl_most(2, vp_impl_least(large / crop, (int64_t)(ratio + 0.5))));
        if (vp_impl_least((large + crops - 1) / crops, small) < crop) crops = 0;
    }
    vp_impl_cells(c, width >= height && crops ? 1 : crops, width >= height ? crops : crops > 0);
    c->views = crops + 1;
    c->feature_tokens = f->value[VP_SLOT_TOKENS] * c->views;
    c->marker_tokens = 2 * c->views;
    return NULL;
}
static const char *vp_impl_count_constant(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    (void)width;
    (void)height;
    c->views = 1;
    c->feature_tokens = f->value[VP_SLOT_TOKENS];
    c->marker_tokens = f->preset->markers;
    return NULL;
}

/* ---- tiles: the grid with the nearest aspect ratio */
/* InternVL's search over the grids in order of their tiles: of equal distances a later one wins when the image has more than half its pixels. */
static void vp_impl_closest(const vp_family *f, int64_t width, int64_t height, int64_t *rows, int64_t *cols) {
    const double tile = (double)f->value[VP_SLOT_TILE], aspect = (double)width / (double)height, area = (double)width * (double)height;
    const double half = 0.5 * tile * tile;
    double best = INFINITY;
    int32_t i, found = -1;
    for (i = 0; i < f->grid_count; i++) {
        const double distance = fabs(aspect - f->grid_ratio[i]);
        if (distance > best) continue;
        if (distance < best || area > half * (double)(f->grid_cols[i] * f->grid_rows[i])) {
            best = distance;
            found = i;
        }
    }
    *rows = found < 0 ? 1 : f->grid_rows[found];
    *cols = found < 0 ? 1 : f->grid_cols[found];
}
static const char *vp_impl_count_closest(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE];
    vp_impl_closest(f, width, height, &c->rows, &c->cols);
    vp_impl_resized(c, c->cols * tile, c->rows * tile);
    c->views = c->rows * c->cols + (c->rows * c->cols > 1);
    c->feature_tokens = c->views * f->value[VP_SLOT_TOKENS];
    c->marker_tokens = f->preset->markers;
    if (f->preset->variant == VP_IMPL_TAGS) c->separator_tokens = c->views;
    if (f->preset->variant == VP_IMPL_DOCLING) {
        c->separator_tokens = c->rows * (2 * c->cols + 1);
        if (c->views == 1) c->marker_tokens = 0;
    }
    return NULL;
}
static const char *vp_impl_count_ocr(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, tile = v[VP_SLOT_TILE], side = v[VP_SLOT_SIDE], unit = v[VP_SLOT_PATCH], ratio = v[VP_SLOT_MERGE];
    const int exact = f->preset->variant; /* one rounds the quotient by the patch down first */
    const int64_t whole = exact ? (side + unit * ratio - 1) / (unit * ratio) : (side / unit + ratio - 1) / ratio;
    const int64_t part = exact ? (tile + unit * ratio - 1) / (unit * ratio) : (tile / unit + ratio - 1) / ratio;
    const int64_t small = vp_impl_least(width, height), large = vp_impl_most(width, height);
    if (vp_impl_half_even((double)small * ((double)side / (double)large)) < 1) return vp_impl_no_pixel;
    vp_impl_cells(c, 1, 1);
    c->views = 1;
    c->feature_tokens = whole * whole;
    c->separator_tokens = f->preset->variant ? 1 : whole + 1;
    if (large <= tile) return NULL;
    vp_impl_closest(f, width, height, &c->rows, &c->cols);
    vp_impl_resized(c, c->cols * tile, c->rows * tile);
    c->views += c->rows * c->cols;
    c->feature_tokens += c->rows * c->cols * part * part;
    if (!f->preset->variant) c->separator_tokens += c->rows * part;
    return NULL;
}
static const char *vp_impl_count_lfm2(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, patch = v[VP_SLOT_PATCH], merge = v[VP_SLOT_MERGE], unit = patch * merge, side = v[VP_SLOT_TILE] / patch;
    const int64_t per_tile = (side + merge - 1) / merge * ((side + merge - 1) / merge);
    const int64_t w = vp_impl_most(patch, vp_impl_half_even((double)width / (double)unit) * unit);
    const int64_t h = vp_impl_most(patch, vp_impl_half_even((double)height / (double)unit) * unit);
    const int split = v[VP_SLOT_SPLIT] && !(v[VP_SLOT_MIN] == 1 && v[VP_SLOT_MAX] == 1);
    int64_t view_w = width, view_h = height;
    if (v[VP_SLOT_SPLIT] && v[VP_SLOT_MIN] > v[VP_SLOT_MAX]) return "max_tiles must not be below min_tiles";
    vp_impl_smart_resize(&view_w, &view_h, unit, v[VP_SLOT_MIN_TOKENS] * unit * unit, v[VP_SLOT_MAX_TOKENS] * unit * unit,
                         VP_IMPL_CLAMP_FIRST | VP_IMPL_CLAMP_FLOOR);
    vp_impl_cells(c, 1, 1);
    if (split && (double)w * (double)h > (double)(v[VP_SLOT_MAX_TOKENS] * unit * unit) * 2.0) vp_impl_closest(f, width, height, &c->rows, &c->cols);
    vp_impl_resized(c, view_w, view_h);
    c->views = 1;
    c->feature_tokens = view_w / unit * (view_h / unit);
    c->marker_tokens = f->preset->markers;
    if (c->rows * c->cols > 1) {
        c->views += c->rows * c->cols;
        c->feature_tokens += c->rows * c->cols * per_tile;
        c->separator_tokens = c->views;
    }
    return NULL;
}
static const char *vp_impl_count_phi4(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE], patch = f->value[VP_SLOT_PATCH], side = tile / patch;
    int64_t rows = (height + tile - 1) / tile, cols = (width + tile - 1) / tile, new_width, new_height, valid_cols, valid_rows;
    double wide, tall;
    if (rows * cols > f->value[VP_SLOT_MAX]) vp_impl_closest(f, width, height, &rows, &cols);
    new_width = tile * cols;
    new_height = tile * rows;
    wide = (double)new_width / (double)width;
    tall = (double)new_height / (double)height;
    if (wide < tall) new_height = (int64_t)((double)height * wide);
    else new_width = (int64_t)((double)width * tall);
    if (new_height < 10 || new_width < 10) return "the resized image has a side below 10 pixels"; /* a tile is more */
    valid_cols = side * cols - (tile * cols - new_width) / patch;
    valid_rows = side * rows - (tile * rows - new_height) / patch;
    vp_impl_resized(c, tile * cols, tile * rows);
    vp_impl_cells(c, rows, cols);
    c->views = rows * cols + 1;
    c->feature_tokens = 256 + (valid_rows + 1) / 2 * ((valid_cols + 1) / 2);
    c->separator_tokens = 16 + (valid_rows + 1) / 2 + 1;
    return NULL;
}
/* Phi-3.5: scaled up until the crops are used; a row of tiles costs newlines. */
static const char *vp_impl_count_phi3(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int tall = width < height;
    const double ratio = (double)vp_impl_most(width, height) / (double)vp_impl_least(width, height);
    int64_t scale = 1, other;
    while (scale * vp_impl_ceiling((double)scale / ratio) <= f->value[VP_SLOT_MAX]) scale++;
    scale--;
    other = ((int64_t)((double)(scale * 336) / ratio) + 335) / 336;
    if (other < 1) return vp_impl_no_pixel;
    vp_impl_cells(c, tall ? scale : other, tall ? other : scale);
    vp_impl_resized(c, c->cols * 336, c->rows * 336);
    c->views = c->rows * c->cols + 1;
    c->feature_tokens = c->views * 144;
    c->separator_tokens = 1 + (c->rows + 1) * 12;
    return NULL;
}

/* ---- tiles: the canvas that the image fits */
/* Among grids of at most `most` tiles: the smallest scale >= 1, else the largest; the first of the fewest tiles. As in vp_impl_adaptive the tilings
 * that come first for their scale form one path; here quotients are compared as the original rounds them, in float32 or double. */
static void vp_impl_fit_tiles(double width, double height, int64_t tile, int64_t most, int narrow, int64_t *rows, int64_t *cols) {
    int64_t r = 1, k = 1;
    if (width < 0.0 || height < 0.0) { /* only Molmo's sizes less the margin: every scale is negative, that of 1x1 the largest */
        *rows = *cols = 1;
        return;
    }
    for (;;) {
        const double tall = height > 0.0 ? (narrow ? (double)((float)(tile * r) / (float)height) : (double)(tile * r) / height) : INFINITY;
        const double wide = width > 0.0 ? (narrow ? (double)((float)(tile * k) / (float)width) : (double)(tile * k) / width) : INFINITY;
        *rows = r;
        *cols = k;
        if (tall >= 1.0 && wide >= 1.0) return;
        r += tall <= wide;
        k += wide <= tall;
        if (r * k > most) return;
    }
}
/* Llama 3.2: size of the image inside its canvas */
static void vp_impl_inside(int64_t width, int64_t height, int64_t tile, vp_vision_count *c) {
    const int64_t target_w = vp_impl_least(vp_impl_most(width, tile), c->cols * tile);
    const int64_t target_h = vp_impl_least(vp_impl_most(height, tile), c->rows * tile);
    const double tall = (double)target_h / (double)height, wide = (double)target_w / (double)width;
    if (wide < tall) vp_impl_resized(c, target_w, vp_impl_least(vp_impl_most(1, (int64_t)((double)height * wide)), target_h));
    else vp_impl_resized(c, vp_impl_least(vp_impl_most(1, (int64_t)((double)width * tall)), target_w), target_h);
}
static const char *vp_impl_count_fit(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, tile = v[VP_SLOT_TILE], side = v[VP_SLOT_PATCH] ? tile / v[VP_SLOT_PATCH] : 0;
    const int variant = f->preset->variant, narrow = variant == VP_IMPL_LLAMA4 || variant == VP_IMPL_MOLMO2;
    const int64_t margin = variant == VP_IMPL_MOLMO2 ? 112 : 0, window = variant == VP_IMPL_MOLMO2 ? 266 : tile;
    int64_t tiles;
    vp_impl_fit_tiles((double)(width - margin), (double)(height - margin), window, v[VP_SLOT_MAX], narrow, &c->rows, &c->cols);
    tiles = c->rows * c->cols;
    vp_impl_resized(c, c->cols * window + margin, c->rows * window + margin);
    c->views = tiles + (tiles > 1);
    c->marker_tokens = f->preset->markers;
    if (variant == VP_IMPL_COHERE) {
        c->feature_tokens = c->views * v[VP_SLOT_TOKENS];
        c->separator_tokens = c->views;
    } else if (variant == VP_IMPL_LLAMA4) {
        c->feature_tokens = c->views * (side * side / (v[VP_SLOT_MERGE] * v[VP_SLOT_MERGE]));
        c->separator_tokens = tiles > 1 ? tiles : 0;
    } else if (variant == VP_IMPL_MLLAMA) { /* the language model attends to them, but its sequence has one token */
        vp_impl_inside(width, height, tile, c);
        c->views = tiles;
        c->feature_tokens = tiles * (side * side + 1);
        c->total_tokens = 1;
    } else {
        const int64_t token_rows = (19 * c->rows + 9) / 2, token_cols = (19 * c->cols + 9) / 2;
        c->views = tiles + 1;
        c->feature_tokens = 196 + token_rows * token_cols;
        c->separator_tokens = token_rows + (v[VP_SLOT_SPLIT] ? 14 : 0);
    }
    return NULL;
}
static const char *vp_impl_count_molmo(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const vp_geometry geometry = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_layout layout;
    options.max_crops = (int32_t)f->value[VP_SLOT_MAX];
    if (vp_layout_compute(&geometry, &options, (int32_t)width, (int32_t)height, &layout, NULL) != VP_OK) return vp_impl_no_pixel;
    vp_impl_resized(c, layout.resized_width_px, layout.resized_height_px);
    vp_impl_cells(c, layout.tiling.rows, layout.tiling.cols);
    c->views = layout.views;
    c->feature_tokens = layout.feature_tokens;
    c->separator_tokens = layout.col_tokens;
    c->marker_tokens = layout.marker_tokens;
    return NULL;
}

/* transformers' and LLaVA's select_best_resolution: the most pixels of the image kept, then the fewest wasted; the first of equals. The grids are
 * sorted by area, which equals share, else in the configuration's order; the large ones are looked at first: most others fall out unrounded. */
static void vp_impl_best_canvas(const vp_family *f, int64_t width, int64_t height, int64_t *rows, int64_t *cols) {
    const double w = (double)width, h = (double)height, tile = (double)f->value[VP_SLOT_TILE], area = w * h;
    double wide[17], tall[17], best = 0.0, least_waste = INFINITY;
    int32_t i;
    for (i = 1; i <= f->grid_side; i++) {
        wide[i] = (double)i * tile / w;
        tall[i] = (double)i * tile / h;
    }
    *rows = *cols = 1;
    for (i = f->grid_count - 1; i >= 0; i--) {
        const int32_t r = f->grid_rows[i], k = f->grid_cols[i];
        const double scale = wide[k] < tall[r] ? wide[k] : tall[r], across = w * scale, down = h * scale;
        double kept, waste;
        if (across * down < best) continue; /* truncated sides give no more */
        kept = (double)(int64_t)across * (double)(int64_t)down;
        if (kept > area) kept = area;
        waste = (double)(r * k) * tile * tile - kept;
        if (kept > best || (kept == best && waste <= least_waste)) { /* of equals the first of the list stays */
            best = kept;
            least_waste = waste;
            *rows = r;
            *cols = k;
        }
    }
}
/* LLaVA-NeXT, OneVision: a base view, and the canvas's patches less the padding, each row with its end. */
static const char *vp_impl_count_anyres(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE], side = f->value[VP_SLOT_TOKENS];
    const int original = f->preset->variant == VP_IMPL_WIDTH_FIRST;
    int64_t rows, cols, kept;
    vp_impl_best_canvas(f, width, height, &c->rows, &c->cols);
    rows = c->rows * side;
    cols = c->cols * side;
    if ((double)width / (double)height > (double)cols / (double)rows) { /* transformers' int(round(x, 7)) is the exact floor up to 2^24 pixels */
        kept = original ? (int64_t)((double)height * ((double)cols / (double)width)) : height * cols / width;
        rows -= (rows - kept) / 2 * 2;
    } else {
        kept = original ? (int64_t)((double)width * ((double)rows / (double)height)) : width * rows / height;
        cols -= (cols - kept) / 2 * 2;
    }
    if (f->preset->variant == VP_IMPL_ONEVISION) {
        const double ratio = sqrt((double)(rows * cols) / (double)(f->value[VP_SLOT_MAX] * side * side));
        if (ratio > 1.1) {
            rows = vp_impl_floor_division((double)rows, ratio);
            cols = vp_impl_floor_division((double)cols, ratio);
        }
    }
    vp_impl_resized(c, c->cols * tile, c->rows * tile);
    c->views = c->rows * c->cols + 1;
    c->feature_tokens = side * side + rows * cols;
    c->separator_tokens = rows;
    return NULL;
}
static const char *vp_impl_count_canvas(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t *v = f->value, tile = v[VP_SLOT_TILE], side = v[VP_SLOT_SIDE];
    int64_t rows = 1, cols = 1, local;
    if (v[VP_SLOT_SPLIT]) vp_impl_best_canvas(f, width, height, &rows, &cols);
    if (f->preset->variant == VP_IMPL_ARIA) {
        c->views = 1;
        if (v[VP_SLOT_SPLIT]) {
            vp_impl_resized(c, cols * tile, rows * tile);
            c->views = (cols * tile + side - 1) / side * ((rows * tile + side - 1) / side);
        }
        c->feature_tokens = c->views * (side == 980 ? 256 : 128);
        return NULL;
    }
    local = (tile / v[VP_SLOT_PATCH] + v[VP_SLOT_MERGE] - 1) / v[VP_SLOT_MERGE];
    vp_impl_resized(c, cols * tile, rows * tile);
    vp_impl_cells(c, rows, cols);
    c->views = rows * cols + 1;
    c->feature_tokens = local * local + rows * cols * local * local;
    c->separator_tokens = local + rows * local + 1;
    return NULL;
}
/* Idefics3: the longest side to a length, up as well; then both sides up to tiles. Rounding may make the other side the longer one. */
static const char *vp_impl_count_split(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE], side = f->value[VP_SLOT_SIDE];
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
    if (width >= height) {
        c->cols = (width + tile - 1) / tile;
        c->rows = ((int64_t)((double)(c->cols * tile) / aspect) + tile - 1) / tile;
    } else {
        c->rows = (height + tile - 1) / tile;
        c->cols = ((int64_t)((double)(c->rows * tile) * aspect) + tile - 1) / tile;
    }
    if (c->rows < 1 || c->cols < 1) return vp_impl_no_pixel;
    vp_impl_resized(c, c->cols * tile, c->rows * tile);
    c->views = 1;
    c->marker_tokens = f->preset->markers;
    if (c->rows > 1 || c->cols > 1) {
        c->views += c->rows * c->cols;
        c->separator_tokens = c->rows * (2 * c->cols + 1);
    } else {
        vp_impl_cells(c, 0, 0);
    }
    c->feature_tokens = c->views * f->value[VP_SLOT_TOKENS];
    return NULL;
}
/* Ovis2: pixels of a part of the image that its tile keeps */
static double vp_impl_kept(int64_t width, int64_t height, int64_t tile) {
    const double large = (double)vp_impl_most(width, height), small = (double)vp_impl_least(width, height), side = (double)tile;
    return large > side ? small / large * side * side : large * small;
}
/* The fewest tiles that keep more than nine tenths of the image, or else the grid that keeps most of it. */
static const char *vp_impl_count_cover(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE];
    double best = -1.0, enough = -1.0;
    int32_t i, found = 0, tiles = 0;
    for (i = 0; i < f->grid_count; i++) {
        const int32_t rows = f->grid_cols[i], cols = f->grid_rows[i]; /* the original sorts by area, then rows */
        const int64_t row = height / rows, col = width / cols, last_row = height - row * (rows - 1), last_col = width - col * (cols - 1);
        const double inner = vp_impl_kept(col, row, tile), right = vp_impl_kept(last_col, row, tile);
        const double below = vp_impl_kept(col, last_row, tile), corner = vp_impl_kept(last_col, last_row, tile);
        double sum = 0.0, share;
        int32_t r, k;
        if (tiles && rows * cols > tiles) break;
        for (r = 0; r < rows; r++) {
            for (k = 0; k + 1 < cols; k++) sum += r + 1 < rows ? inner : below;
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
    if (f->preset->variant) { /* transformers takes rows for columns */
        vp_impl_cells(c, f->grid_rows[found], f->grid_cols[found]);
        vp_impl_resized(c, c->cols * tile, c->rows * tile);
    } else {
        vp_impl_cells(c, f->grid_cols[found], f->grid_rows[found]);
    }
    c->views = c->rows * c->cols + (c->rows * c->cols > 1);
    c->feature_tokens = c->views * f->value[VP_SLOT_TOKENS];
    c->separator_tokens = c->rows * c->cols - 1;
    c->marker_tokens = f->preset->markers;
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
/* The grid of about as many slices as the image has areas of scale x scale, nearest to its aspect ratio by the logarithm. Version 2.6 goes through
 * columns ascending and keeps the first of equals; 4.6 through rows, and takes more rows among equals. */
static void vp_impl_slice_grid(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const double scale = (double)f->value[VP_SLOT_TILE], aspect = log((double)width / (double)height);
    const int64_t most = f->value[VP_SLOT_MAX];
    const double areas = (double)(width * height) / (scale * scale);
    const int64_t slices = areas > (double)most ? most : vp_impl_ceiling(areas);
    double best = INFINITY;
    int64_t n;
    vp_impl_cells(c, 0, 0);
    if (slices <= 1) return;
    vp_impl_cells(c, 1, 1);
    for (n = slices - 1; n <= slices + 1; n++) {
        int32_t i, first, count;
        if (n == 1 || n > most) continue;
        first = f->grid_first[n];
        count = f->grid_first[n + 1] - first;
        for (i = 0; i < count; i++) {
            const int32_t at = f->preset->variant ? first + count - 1 - i : first + i;
            const double distance = fabs(aspect - f->grid_ratio[at]);
            if (distance < best || (f->preset->variant && distance == best && f->grid_rows[at] > c->rows)) {
                best = distance;
                vp_impl_cells(c, f->grid_rows[at], f->grid_cols[at]);
            }
        }
    }
}
static const char *vp_impl_count_slice(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const double scale = (double)f->value[VP_SLOT_TILE];
    const int64_t patch = f->value[VP_SLOT_PATCH], merge = !f->preset->variant ? 1 : f->value[VP_SLOT_SPLIT] ? 2 : 4, unit = patch * merge;
    int64_t size[2], part[2], slices;
    vp_impl_slice_grid(f, width, height, c);
    slices = c->rows * c->cols;
    vp_impl_slice_size((double)width, (double)height, scale, !slices, unit, size);
    vp_impl_resized(c, size[0], size[1]);
    c->views = slices + 1;
    c->separator_tokens = slices ? c->rows - 1 : 0;
    c->marker_tokens = 2 * c->views + f->preset->markers;
    if (!f->preset->variant) {
        c->feature_tokens = c->views * f->value[VP_SLOT_TOKENS];
        return NULL;
    }
    c->feature_tokens = size[0] / unit * (size[1] / unit);
    if (slices) {
        const double across = (double)vp_impl_slice_side((double)width, c->cols) / (double)c->cols;
        const double down = (double)vp_impl_slice_side((double)height, c->rows) / (double)c->rows;
        vp_impl_slice_size(across, down, scale, 1, unit, part);
        c->feature_tokens += slices * (part[0] / unit) * (part[1] / unit);
    }
    return NULL;
}
/* Perception-LM: the canvas that holds the whole image at the largest size, or else the largest of the nearest aspect ratio below it. */
static const char *vp_impl_count_perception(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t tile = f->value[VP_SLOT_TILE], side = tile / f->value[VP_SLOT_PATCH] / f->value[VP_SLOT_MERGE];
    const int64_t least_cols = (width + tile - 1) / tile, least_rows = (height + tile - 1) / tile;
    const double w = (double)width, h = (double)height, aspect = w / h;
    double best = -1.0, nearest = INFINITY;
    int32_t i, found = -1;
    for (i = 0; i < f->grid_count; i++) {
        const double across = (double)(f->grid_cols[i] * tile), down = (double)(f->grid_rows[i] * tile);
        double scale, grown;
        if (f->grid_cols[i] < least_cols || f->grid_rows[i] < least_rows) continue;
        scale = across / w < down / h ? across / w : down / h;
        grown = aspect > 1.0 ? (double)(int64_t)(scale * w / aspect) : aspect < 1.0 ? (double)(int64_t)(scale * h * aspect) : scale * h;
        if (grown >= best) {
            best = grown;
            found = i;
        }
    }
    for (i = 0; i < f->grid_count && best < 0.0; i++) {
        const double ratio = f->grid_ratio[i];
        double distance;
        if (aspect >= 1.0 ? ratio > aspect : ratio <= aspect) continue;
        distance = aspect >= 1.0 ? fabs(ratio - aspect) : fabs(1.0 / ratio - 1.0 / aspect);
        if (distance < nearest) {
            nearest = distance;
            found = i;
        }
    }
    vp_impl_cells(c, f->grid_rows[found], f->grid_cols[found]);
    vp_impl_resized(c, c->cols * tile, c->rows * tile);
    c->views = c->rows * c->cols + 1;
    c->feature_tokens = c->views * side * side;
    return NULL;
}

/* ---- hosted services, as their documentation says */
static const char *vp_impl_count_claude(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t side = f->value[VP_SLOT_SIDE], most = f->value[VP_SLOT_MAX];
    const int64_t large = vp_impl_most(width, height), small = vp_impl_least(width, height);
    int64_t low = 0, high = large, other = small;
    while (low < high) { /* the largest long side that fits: mostly the image's own */
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
    vp_impl_resized(c, width >= height ? low : other, width >= height ? other : low);
    vp_impl_cells(c, (c->resized_height_px + 27) / 28, (c->resized_width_px + 27) / 28);
    c->feature_tokens = c->rows * c->cols;
    return NULL;
}
/* Shrunk into 2048 x 2048, then until the short side is 768; whether smaller images are enlarged is not documented: they are not. */
static const char *vp_impl_count_openai_tiles(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
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
    vp_impl_resized(c, vp_impl_most(1, width * up / down), vp_impl_most(1, height * up / down));
    vp_impl_cells(c, (height * up + 512 * down - 1) / (512 * down), (width * up + 512 * down - 1) / (512 * down));
    c->views = c->rows * c->cols;
    c->feature_tokens = c->views * f->value[VP_SLOT_TOKENS];
    c->marker_tokens = f->value[VP_SLOT_MIN];
    return NULL;
}
static const char *vp_impl_count_openai_patches(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    const int64_t most = f->value[VP_SLOT_MAX], side = f->value[VP_SLOT_SIDE];
    const int64_t patches = (width + 31) / 32 * ((height + 31) / 32);
    if (patches > most || vp_impl_most(width, height) > side) {
        double scale = sqrt(1024.0 * (double)most / ((double)width * (double)height)), across, down;
        across = (double)width * scale / 32.0;
        down = (double)height * scale / 32.0;
        if (!(across >= 1.0 && down >= 1.0)) return "the documentation does not say what becomes of so narrow an image";
        across = (double)(int64_t)across / across;
        down = (double)(int64_t)down / down;
        scale *= across < down ? across : down;
        if (scale > 1.0) return "the documentation does not say what becomes of so long an image";
        width = (int64_t)((double)width * scale);
        height = (int64_t)((double)height * scale);
        if (vp_impl_most(width, height) > side) return "the documentation does not say what becomes of so long an image";
    }
    vp_impl_resized(c, width, height);
    vp_impl_cells(c, (height + 31) / 32, (width + 31) / 32);
    c->feature_tokens = vp_impl_ceiling((double)(c->rows * c->cols) * f->ratio);
    return NULL;
}
static const char *vp_impl_count_gemini(const vp_family *f, int64_t width, int64_t height, vp_vision_count *c) {
    if (vp_impl_most(width, height) > 384) return "how an image over 384 pixels is cut into tiles is not published";
    return vp_impl_count_constant(f, width, height, c);
}
static const vp_impl_rule vp_impl_rules[] = {
    vp_impl_count_smart, vp_impl_count_navit, vp_impl_count_budget, vp_impl_count_muse, vp_impl_count_nemotron, vp_impl_count_pooled,
    vp_impl_count_pan, vp_impl_count_closest, vp_impl_count_ocr, vp_impl_count_fit, vp_impl_count_molmo, vp_impl_count_longest,
    vp_impl_count_anyres, vp_impl_count_canvas, vp_impl_count_split, vp_impl_count_phi4, vp_impl_count_phi3, vp_impl_count_cover,
    vp_impl_count_lfm2, vp_impl_count_slice, vp_impl_count_perception, vp_impl_count_window, vp_impl_count_constant, vp_impl_count_claude,
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
static const char *vp_impl_name_skip(const char *p) { return p + strspn(p, "-_."); }
/* whether `name` is one of the words, which are separated by spaces; its index from 0, or -1. Case and - _ . do not matter */
static int32_t vp_impl_word_index(const char *words, const char *name) {
    int32_t index = 0;
    while (*words) {
        const char *n = vp_impl_name_skip(name), *w = vp_impl_name_skip(words);
        while (*n && *w && *w != ' ' && (*w | 32) == (*n | 32)) { /* of letters bit 5 is the case, digits have it */
            w = vp_impl_name_skip(w + 1);
            n = vp_impl_name_skip(n + 1);
        }
        if (!*n && *name && (!*w || *w == ' ')) return index;
        words += strcspn(words, " ");
        words += *words == ' ';
        index++;
    }
    return -1;
}
VP_API const vp_family_preset *vp_family_find(const char *name) {
    int32_t i, turn;
    for (turn = 0; turn < 2; turn++) /* names before aliases */
        for (i = 0; vp_family_at(i); i++)
            if (vp_impl_word_index(turn ? vp_impl_presets[i].aliases : vp_impl_presets[i].name, name) >= 0) return &vp_impl_presets[i];
    return NULL;
}
/* how many letters two short names differ by */
static int32_t vp_impl_name_distance(const char *a, const char *b) {
    int32_t row[49], i, j, corner, above;
    for (j = 0; j < 49; j++) row[j] = j;
    for (i = 1; a[i - 1] && i < 49; i++) {
        corner = row[0];
        row[0] = i;
        for (j = 1; j < 49 && b[j - 1]; j++) {
            above = row[j];
            row[j] = corner + (a[i - 1] != b[j - 1]);
            if (above + 1 < row[j]) row[j] = above + 1;
            if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
            corner = above;
        }
    }
    for (j = 0; j < 48 && b[j];) j++;
    return row[j];
}
static const vp_family_key *vp_impl_family_key(const vp_family *f, const char *name, vp_error *error) {
    const vp_family_key *nearest = NULL, *keys = f->preset->keys;
    vp_impl_message m = {{0}, 0};
    int32_t i, least = 1000, distance;
    for (i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        if (!keys[i].name) continue;
        distance = vp_impl_name_distance(name, keys[i].name);
        if (!distance) return &keys[i];
        if (distance < least) {
            least = distance;
            nearest = &keys[i];
        }
    }
    vp_impl_message_text(&m, f->preset->name);
    vp_impl_message_text(&m, nearest ? " has no such key; the nearest is " : " has no keys");
    if (nearest) vp_impl_message_text(&m, nearest->name);
    vp_fail(error, VP_ERR_NOT_FOUND, -1, name, m.text);
    return NULL;
}

static void vp_impl_add_grid(vp_family *f, int32_t rows, int32_t cols) {
    f->grid_side = (int32_t)vp_impl_most(f->grid_side, vp_impl_most(rows, cols));
    f->grid_rows[f->grid_count] = (int16_t)rows;
    f->grid_cols[f->grid_count] = (int16_t)cols;
    f->grid_ratio[f->grid_count++] = (double)cols / (double)rows;
}
/* all grids of least..most tiles, by tiles, then columns; at most `side` a side; ratios as logarithms for MiniCPM */
static void vp_impl_grids_by_tiles(vp_family *f, int64_t least, int64_t most, int32_t side, int logarithms) {
    int32_t n, cols;
    for (n = 0; n <= most; n++) {
        f->grid_first[n] = (int16_t)f->grid_count;
        for (cols = 1; n >= least && cols <= n; cols++) {
            if (n % cols || cols > side || n / cols > side) continue;
            vp_impl_add_grid(f, n / cols, cols);
            if (logarithms) f->grid_ratio[f->grid_count - 1] = log(f->grid_ratio[f->grid_count - 1]);
        }
    }
    f->grid_first[n] = (int16_t)f->grid_count;
}
/* All grids of least..most tiles, by tiles; those of equally many in the order of the set of (columns, rows) that the original sorts. */
static void vp_impl_grids_by_set(vp_family *f, int32_t least, int32_t most) {
    int16_t tables[2][8192], pair[VP_FAMILY_GRIDS_LIMIT][2]; /* CPython makes no more places for 1466 elements */
    int32_t n, cols, rows, used = 0, turn = 0, tiles;
    uint64_t mask = 7, i;
    memset(tables, 0xff, sizeof tables);
    for (n = least; n <= most; n++) {
        for (cols = 1; cols <= n; cols++) {
            for (rows = n == least || cols == n ? 1 : n; rows <= n; rows++) { /* what shorter sides gave is there already */
                if (cols * rows < least || cols * rows > most) continue;
                pair[used][0] = (int16_t)cols;
                pair[used][1] = (int16_t)rows;
                vp_impl_set_insert(tables[turn], mask, vp_impl_pair_hash((uint64_t)cols, (uint64_t)rows), (int16_t)used);
                if ((uint64_t)++used * 5 < mask * 3) continue;
                turn = !turn; /* grows: to the power of two above four times its elements */
                memset(tables[turn], 0xff, sizeof tables[turn]);
                for (i = mask, mask = 7; mask + 1 <= (uint64_t)used * 4;) mask = mask * 2 + 1;
                for (i++, tiles = 0; (uint64_t)tiles < i; tiles++) {
                    const int16_t at = tables[!turn][tiles];
                    if (at >= 0) vp_impl_set_insert(tables[turn], mask, vp_impl_pair_hash((uint64_t)pair[at][0], (uint64_t)pair[at][1]), at);
                }
            }
        }
    }
    for (tiles = least; tiles <= most; tiles++) {
        for (i = 0; i <= mask; i++) {
            const int16_t at = tables[turn][i];
            if (at >= 0 && pair[at][0] * pair[at][1] == tiles) vp_impl_add_grid(f, pair[at][1], pair[at][0]);
        }
    }
}
/* Perception-LM's order: by tiles descending, then columns; grids of one ratio stand together, where the first of them was */
static void vp_impl_grids_by_ratio(vp_family *f, int64_t most) {
    int32_t n, cols, i, at;
    for (n = (int32_t)most; n >= 1; n--) {
        for (cols = 1; cols <= n; cols++) {
            const double ratio = (double)cols / (double)(n / cols);
            if (n % cols) continue;
            for (at = f->grid_count; at > 0 && f->grid_ratio[at - 1] != ratio;) at--;
            if (!at) at = f->grid_count;
            for (i = f->grid_count++; i > at; i--) {
                f->grid_rows[i] = f->grid_rows[i - 1];
                f->grid_cols[i] = f->grid_cols[i - 1];
                f->grid_ratio[i] = f->grid_ratio[i - 1];
            }
            f->grid_rows[at] = (int16_t)(n / cols);
            f->grid_cols[at] = (int16_t)cols;
            f->grid_ratio[at] = ratio;
        }
    }
}
/* Canvases by area; those of one area stay in the list's order. */
static void vp_impl_sort_canvases(vp_family *f) {
    int32_t i, k;
    for (i = 1; i < f->grid_count; i++) {
        const int16_t rows = f->grid_rows[i], cols = f->grid_cols[i];
        for (k = i; k > 0 && f->grid_rows[k - 1] * f->grid_cols[k - 1] > rows * cols; k--) {
            f->grid_rows[k] = f->grid_rows[k - 1];
            f->grid_cols[k] = f->grid_cols[k - 1];
        }
        f->grid_rows[k] = rows;
        f->grid_cols[k] = cols;
    }
}
/* The lists of canvases: pairs of hexadecimal digits, height before width. */
static void vp_impl_grids_of_list(vp_family *f, const char *list, int width_first) {
    for (; *list; list += 2) {
        const int32_t a = list[0] > '9' ? list[0] - 'a' + 10 : list[0] - '0', b = list[1] > '9' ? list[1] - 'a' + 10 : list[1] - '0';
        vp_impl_add_grid(f, width_first ? b : a, width_first ? a : b);
    }
    vp_impl_sort_canvases(f);
}
static void vp_impl_family_grids(vp_family *f) {
    static const char llava[] = "1221223113", aria[] = "1213141516171824232221313241425161" "7181", deepseek[] =
        "1112211331144122155116612332177118812442199133", granite[] = "1112131415161718191a" "2122232425" "313233" "4142" "5152" "61718191a1",
        onevision[] = "111213141516212223242526313233343536414243444546515253545556616263646566";
    const int variant = f->preset->variant, list = f->preset->rule_index == VP_IMPL_CANVAS || f->preset->rule_index == VP_IMPL_ANYRES;
    if (list && f->canvas_count > 0) return;
    f->grid_count = f->grid_side = 0;
    switch (f->preset->rule_index) {
    case VP_IMPL_CLOSEST: case VP_IMPL_OCR:
        vp_impl_grids_by_tiles(f, f->value[VP_SLOT_MIN], f->value[VP_SLOT_MAX], variant == VP_IMPL_DOCLING ? 16 : VP_FAMILY_TILES_LIMIT, 0);
        break;
    case VP_IMPL_LFM2: vp_impl_grids_by_set(f, (int32_t)f->value[VP_SLOT_MIN], (int32_t)f->value[VP_SLOT_MAX]); break;
    case VP_IMPL_PHI4: vp_impl_grids_by_set(f, 1, (int32_t)f->value[VP_SLOT_MAX]); break;
    case VP_IMPL_COVER: vp_impl_grids_by_tiles(f, 1, f->value[VP_SLOT_MAX], VP_FAMILY_TILES_LIMIT, 0); break;
    case VP_IMPL_SLICE: vp_impl_grids_by_tiles(f, 1, f->value[VP_SLOT_MAX], VP_FAMILY_TILES_LIMIT, 1); break;
    case VP_IMPL_PERCEPTION: vp_impl_grids_by_ratio(f, f->value[VP_SLOT_MAX]); break;
    case VP_IMPL_ANYRES:
        vp_impl_grids_of_list(f, variant == VP_IMPL_ONEVISION ? onevision : f->value[VP_SLOT_SPLIT] ? granite : llava,
                              variant == VP_IMPL_WIDTH_FIRST);
        break;
    case VP_IMPL_CANVAS: vp_impl_grids_of_list(f, variant == VP_IMPL_ARIA ? aria : deepseek, variant == VP_IMPL_DEEPSEEK); break;
    default: break;
    }
}
/* values that follow from others as long as the caller has not set them */
static void vp_impl_family_derive(vp_family *f) {
    int64_t *v = f->value;
    if (f->preset->rule_index == VP_IMPL_SMART && (f->preset->variant & VP_IMPL_AUTO_LIMITS)) {
        const int64_t unit = v[VP_SLOT_PATCH] * v[VP_SLOT_MERGE];
        if (!(f->given >> VP_SLOT_MIN & 1u)) v[VP_SLOT_MIN] = 4 * unit * unit;
        if (!(f->given >> VP_SLOT_MAX & 1u)) v[VP_SLOT_MAX] = 16384 * unit * unit;
    }
    if (f->preset->rule_index == VP_IMPL_ANYRES && f->preset->words) {
        if (!(f->given >> VP_SLOT_TILE & 1u)) v[VP_SLOT_TILE] = v[VP_SLOT_SPLIT] ? 384 : 336;
        if (!(f->given >> VP_SLOT_TOKENS & 1u)) v[VP_SLOT_TOKENS] = v[VP_SLOT_SPLIT] ? 27 : 24;
    }
    vp_impl_family_grids(f);
}
VP_API void vp_family_default(const vp_family_preset *preset, vp_family *family) {
    int32_t i;
    memset(family, 0, sizeof *family);
    family->preset = preset;
    family->ratio = 1.0;
    for (i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &preset->keys[i];
        if (key->slot == VP_SLOT_RATIO) family->ratio = key->fallback;
        else if (key->fallback > 0.0) family->value[key->slot] = (int64_t)key->fallback; /* an unused entry has 0 */
    }
    vp_impl_family_derive(family);
}

/* NULL, or what is wrong with a number for a key */
static const char *vp_impl_family_refuses(const vp_family *f, const vp_family_key *key, double number) {
    static const double most[VP_SLOT_COUNT] = {1099511627776.0, 1099511627776.0, 16777216.0, 32768.0, 4096.0, 64.0, 65536.0, 1.0, 65536.0,
                                               65536.0, 1e6};
    const int rule = f->preset->rule_index;
    if (!(number >= (key->slot == VP_SLOT_SPLIT ? 0.0 : key->slot == VP_SLOT_RATIO ? 1e-6 : 1.0) && number <= most[key->slot])) {
        return key->slot == VP_SLOT_SPLIT ? "must be 0 or 1" : "is out of range";
    }
    if (key->slot != VP_SLOT_RATIO && number != floor(number)) return "must be a whole number";
    if (rule == VP_IMPL_POOLED && key->slot == VP_SLOT_MAX
        && number != 70.0 && number != 140.0 && number != 280.0 && number != 560.0 && number != 1120.0)
        return "must be 70, 140, 280, 560 or 1120";
    if (rule == VP_IMPL_CANVAS && key->slot == VP_SLOT_SIDE && number != 490.0 && number != 980.0) return "must be 490 or 980";
    if (key->slot <= VP_SLOT_MAX && rule >= VP_IMPL_CLOSEST && rule <= VP_IMPL_PERCEPTION && number > VP_FAMILY_TILES_LIMIT)
        return "must be at most 256";
    if (rule == VP_IMPL_WINDOW && key->slot == VP_SLOT_MAX && number > 65536.0) return "is out of range";
    if (key->slot == VP_SLOT_TILE && f->value[VP_SLOT_PATCH] * vp_impl_most(1, f->value[VP_SLOT_MERGE]) > (int64_t)number)
        return "is less than a patch";
    if ((key->slot == VP_SLOT_PATCH || key->slot == VP_SLOT_MERGE) && f->value[VP_SLOT_TILE] > 0
        && number * (double)vp_impl_most(1, f->value[key->slot == VP_SLOT_PATCH ? VP_SLOT_MERGE : VP_SLOT_PATCH]) > (double)f->value[VP_SLOT_TILE])
        return "is more than a tile";
    return NULL;
}
static vp_result vp_impl_family_put(vp_family *f, const vp_family_key *key, double number, vp_error *error) {
    const char *wrong = vp_impl_family_refuses(f, key, number);
    if (wrong) return vp_fail(error, VP_ERR_RANGE, -1, key->name, wrong);
    if (key->slot == VP_SLOT_RATIO) f->ratio = number;
    else f->value[key->slot] = (int64_t)number;
    f->given |= 1u << key->slot;
    vp_impl_family_derive(f);
    return VP_OK;
}
VP_API vp_result vp_family_set_number(vp_family *family, const char *key, double number, vp_error *error) {
    const vp_family_key *found = vp_impl_family_key(family, key, error);
    return found ? vp_impl_family_put(family, found, number, error) : VP_ERR_NOT_FOUND;
}
VP_API vp_result vp_family_set(vp_family *family, const char *key, const char *text, vp_error *error) {
    const vp_family_key *found = vp_impl_family_key(family, key, error);
    const char *p = text;
    double number = 0.0, unit = 1.0;
    int32_t word = -1, digits = 0;
    if (!found) return VP_ERR_NOT_FOUND;
    if (found->slot == VP_SLOT_SPLIT) {
        word = vp_impl_word_index(family->preset->words ? family->preset->words : "false true", text);
        if (word < 0 && family->preset->words) return vp_fail(error, VP_ERR_RANGE, -1, key, family->preset->words);
        if (word >= 0) return vp_impl_family_put(family, found, word, error);
    }
    for (; *p >= '0' && *p <= '9' && digits < 15; p++, digits++) number = number * 10.0 + (double)(*p - '0');
    if (*p == '.' && digits) /* both parts of the quotient are exact, so it is rounded once, as a reader of decimals does */
        for (p++; *p >= '0' && *p <= '9' && digits < 15; p++, digits++, unit *= 10.0) number = number * 10.0 + (double)(*p - '0');
    if (*p || !digits) return vp_fail(error, VP_ERR_RANGE, -1, key, "is not a number");
    return vp_impl_family_put(family, found, number / unit, error);
}
VP_API vp_result vp_family_set_canvases(vp_family *family, const int32_t (*sides)[2], int32_t count, vp_error *error) {
    const int rule = family->preset->rule_index;
    const int width_first = rule == VP_IMPL_CANVAS ? family->preset->variant == VP_IMPL_DEEPSEEK : family->preset->variant == VP_IMPL_WIDTH_FIRST;
    int32_t i;
    if (rule != VP_IMPL_ANYRES && rule != VP_IMPL_CANVAS)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, family->preset->name, "does not choose from a list of canvases");
    if (count < 1 || count > VP_FAMILY_GRIDS_LIMIT) return vp_fail(error, VP_ERR_RANGE, -1, "canvases", "must be 1 to 1466");
    for (i = 0; i < count; i++)
        if (sides[i][0] < 1 || sides[i][0] > 16 || sides[i][1] < 1 || sides[i][1] > 16)
            return vp_fail(error, VP_ERR_RANGE, -1, "canvases", "a side must be 1 to 16 tiles");
    family->grid_count = family->grid_side = 0;
    for (i = 0; i < count; i++) vp_impl_add_grid(family, sides[i][width_first], sides[i][!width_first]);
    vp_impl_sort_canvases(family);
    family->canvas_count = count;
    return VP_OK;
}

static const char *vp_impl_family_run(const vp_family *f, int32_t width, int32_t height, vp_vision_count *c) {
    const char *refused;
    if (width < 1 || height < 1 || width > VP_FAMILY_PX_LIMIT || height > VP_FAMILY_PX_LIMIT) return "both sides must be 1 to 16777216 pixels";
    c->resized_width_px = c->resized_height_px = c->rows = c->cols = c->views = -1;
    c->feature_tokens = c->separator_tokens = c->marker_tokens = c->total_tokens = 0;
    refused = vp_impl_rules[f->preset->rule_index](f, width, height, c);
    if (!c->total_tokens) c->total_tokens = c->feature_tokens + c->separator_tokens + c->marker_tokens;
    return refused;
}
VP_API vp_result vp_family_count(const vp_family *family, int32_t width_px, int32_t height_px, vp_vision_count *count, vp_error *error) {
    vp_vision_count out;
    const char *refused = vp_impl_family_run(family, width_px, height_px, &out);
    if (refused) {
        const int unknown = family->preset->certainty == VP_CERTAINTY_DOCUMENTED && width_px > 0 && height_px > 0;
        vp_impl_message m = {{0}, 0};
        vp_impl_message_int(&m, width_px);
        vp_impl_message_text(&m, "x");
        vp_impl_message_int(&m, height_px);
        vp_impl_message_text(&m, ": ");
        vp_impl_message_text(&m, refused);
        return vp_fail(error, unknown ? VP_ERR_UNSUPPORTED : VP_ERR_RANGE, -1, family->preset->name, m.text);
    }
    *count = out;
    return VP_OK;
}

/* ---- checkpoints */
/* where a key stands when it does not stand at the top under its own name */
static const char *const vp_impl_config_places[][2] = {
    {"min_pixels", "size.shortest_edge"}, {"min_pixels", "size.min_pixels"}, {"max_pixels", "size.longest_edge"}, {"max_pixels", "size.max_pixels"},
    {"size", "size.height"}, {"size", "size.shortest_edge"}, {"size", "force_image_size"}, {"tile_size", "max_image_size.longest_edge"},
    {"tile_size", "size.height"}, {"longest_edge", "size.longest_edge"}, {"patch_size", "patch_size.height"}, {"max_side_patches", "size.max_height"},
    {"max_side_patches", "media_proc_cfg.patch_limit_on_one_side"}, {"max_patches", "media_proc_cfg.in_patch_limit"},
    {"min_crop_size", "pan_and_scan_min_crop_size"}, {"max_num_crops", "pan_and_scan_max_num_crops"},
    {"min_ratio_to_activate", "pan_and_scan_min_ratio_to_activate"}, {"low_res_col_tokens", "use_single_crop_col_tokens"},
    {"min_patches", "min_dynamic_patch"}, {"max_patches", "max_dynamic_patch"}, {"anyres_max", "vision_aspect_ratio"},
    {"image_seq_length", "mm_tokens_per_image"}};
/* switches that the rules take to be so */
static const struct { const char *name; int usual; } vp_impl_config_switches[] = {
    {"do_resize", 1}, {"use_thumbnail", 1}, {"slice_mode", 1}, {"use_image_id", 1}, {"do_image_splitting", 1}, {"resize_to_max_canvas", 0},
    {"fine_route", 0}, {"crop_to_patches", 1}};

/* value of "a" or "a.b" that is neither null nor a container; *json: the file that has it */
static uint32_t vp_impl_config_get(const vp_json *const files[3], const char *path, const vp_json **json) {
    const size_t first = strcspn(path, ".");
    char name[64];
    int i;
    for (i = 0; i < 3; i++) {
        uint32_t node;
        if (!files[i] || first >= sizeof name) continue;
        memcpy(name, path, first);
        name[first] = 0;
        node = vp_json_get(files[i], 0, name);
        if (path[first]) node = vp_json_get(files[i], node, path + first + 1);
        if (node == VP_JSON_NONE || files[i]->nodes[node].type == VP_JSON_NULL || files[i]->nodes[node].type >= VP_JSON_ARRAY) continue;
        *json = files[i];
        return node;
    }
    return VP_JSON_NONE;
}
static void vp_impl_config_text(const vp_json *json, uint32_t node, char out[64]) {
    const vp_json_node *n = &json->nodes[node];
    const size_t bytes = n->bytes > 63 ? 63 : (size_t)n->bytes;
    memcpy(out, json->text + n->start, bytes);
    out[bytes] = 0;
}
static int64_t vp_impl_config_int(const vp_json *const files[3], const char *path) { /* -1: not there, or no whole number */
    const vp_json *json = NULL;
    const uint32_t node = vp_impl_config_get(files, path, &json);
    int64_t value = -1;
    if (node == VP_JSON_NONE || vp_json_to_int(json, node, &value) != VP_OK || value < 1 || value > 65536) return -1;
    return value;
}
static const vp_family_preset *vp_impl_config_preset(const vp_json *const files[3], char model[64], char processor[64]) {
    static const char *const tails[] = {"Fast", "ImageProcessor"}, *const paligemma[] = {"paligemma_448", "paligemma_896"};
    const vp_family_preset *by_model, *by_processor;
    const vp_json *json = NULL;
    uint32_t node = vp_impl_config_get(files, "image_processor_type", &json);
    int i;
    processor[0] = model[0] = 0;
    if (node != VP_JSON_NONE) vp_impl_config_text(json, node, processor);
    for (i = 0; i < 2; i++) {
        const size_t bytes = strlen(processor), tail = strlen(tails[i]);
        if (bytes > tail && !strcmp(processor + bytes - tail, tails[i])) processor[bytes - tail] = 0;
    }
    node = vp_impl_config_get(files, "model_type", &json);
    if (node != VP_JSON_NONE) vp_impl_config_text(json, node, model);
    by_model = vp_family_find(model);
    by_processor = vp_family_find(processor);
    if (by_model && !strcmp(by_model->name, "paligemma_224"))
        for (i = 0; i < 2; i++) if (vp_impl_config_int(files, "vision_config.image_size") == 448 << i) by_model = vp_family_find(paligemma[i]);
    return by_model && !(by_processor && !strcmp(model, "llava")) ? by_model : by_processor;
}
static vp_result vp_impl_config_keys(vp_family *f, const vp_json *const files[3], vp_error *error) {
    const size_t place_count = sizeof vp_impl_config_places / sizeof vp_impl_config_places[0];
    int32_t i;
    for (i = 0; i < VP_FAMILY_KEYS_LIMIT; i++) {
        const vp_family_key *key = &f->preset->keys[i];
        const vp_json *json = NULL;
        char text[64];
        vp_result result;
        uint32_t node;
        size_t k;
        if (!key->name) continue;
        node = vp_impl_config_get(files, key->name, &json);
        for (k = 0; k < place_count && node == VP_JSON_NONE; k++)
            if (!strcmp(vp_impl_config_places[k][0], key->name)) node = vp_impl_config_get(files, vp_impl_config_places[k][1], &json);
        if (node == VP_JSON_NONE) continue;
        vp_impl_config_text(json, node, text);
        result = vp_family_set(f, key->name, strncmp(text, "anyres_max_", 11) ? text : text + 11, error);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}
/* image_grid_pinpoints and the like: pairs of pixels, multiples of the tile */
static vp_result vp_impl_config_canvases(vp_family *f, const vp_json *const files[3], vp_error *error) {
    static const char *const names[] = {"image_grid_pinpoints", "candidate_resolutions", "split_resolutions"};
    const int64_t tile = f->value[VP_SLOT_TILE];
    int32_t sides[256][2], count = 0;
    uint32_t list = VP_JSON_NONE, pair;
    const vp_json *json = NULL;
    int i, k;
    if (f->preset->rule_index != VP_IMPL_ANYRES && f->preset->rule_index != VP_IMPL_CANVAS) return VP_OK;
    for (i = 0; i < 9 && list == VP_JSON_NONE; i++) {
        json = files[i / 3];
        if (json) list = vp_json_get(json, 0, names[i % 3]);
        if (list != VP_JSON_NONE && json->nodes[list].type != VP_JSON_ARRAY) list = VP_JSON_NONE;
    }
    if (list == VP_JSON_NONE) return VP_OK;
    for (pair = list + 1; pair < json->nodes[list].end; pair = json->nodes[pair].end, count++) {
        for (k = 0; k < 2; k++) {
            int64_t side = 0;
            if (count >= 256 || json->nodes[pair].type != VP_JSON_ARRAY || vp_json_to_int(json, vp_json_at(json, pair, (uint32_t)k), &side) != VP_OK
                || side < 1 || side > 1000000 || side % tile)
                return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "canvases", "not a list of at most 256 pairs of multiples of the tile");
            sides[count][k] = (int32_t)(side / tile);
        }
    }
    return vp_family_set_canvases(f, (const int32_t (*)[2])sides, count, error);
}
/* What the rules take for granted holds, or the family is not the one they describe. */
static vp_result vp_impl_config_check(vp_family *f, const vp_json *const files[3], vp_error *error) {
    const int rule = f->preset->rule_index;
    int64_t image, patch;
    size_t i;
    for (i = 0; i < sizeof vp_impl_config_switches / sizeof vp_impl_config_switches[0]; i++) {
        const char *name = vp_impl_config_switches[i].name;
        const vp_json *json = NULL;
        const uint32_t node = vp_impl_config_get(files, name, &json);
        if (node == VP_JSON_NONE || json->nodes[node].type == (vp_impl_config_switches[i].usual ? VP_JSON_TRUE : VP_JSON_FALSE)) continue;
        if (!strcmp(name, "do_image_splitting") && rule != VP_IMPL_SPLIT) continue; /* a key of its own, or of no effect */
        if (strcmp(name, "crop_to_patches") || (rule != VP_IMPL_CLOSEST && rule != VP_IMPL_COVER && rule != VP_IMPL_FIT))
            return vp_fail(error, VP_ERR_UNSUPPORTED, -1, name, "is not at its usual value: counts for it are not known");
        f->value[VP_SLOT_MIN] = f->value[VP_SLOT_MAX] = 1;
        vp_impl_family_derive(f);
    }
    for (i = 0; i < VP_FAMILY_KEYS_LIMIT && (rule == VP_IMPL_CLOSEST || rule == VP_IMPL_FIT); i++) {
        const vp_family_key *key = &f->preset->keys[i];
        if (key->name && key->slot == VP_SLOT_TILE && f->value[VP_SLOT_TILE] != (int64_t)key->fallback && f->value[VP_SLOT_TOKENS]
            && !(f->given >> VP_SLOT_TOKENS & 1u))
            return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "size", "the tokens of a tile of this size are not known");
    }
    image = vp_impl_config_int(files, "vision_config.image_size");
    patch = vp_impl_config_int(files, "vision_config.patch_size");
    if (rule == VP_IMPL_CONSTANT && image > 0 && patch > 0 && !f->preset->markers && (image / patch) * (image / patch) != f->value[VP_SLOT_TOKENS])
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "vision_config", "has another number of patches than this family");
    return VP_OK;
}
VP_API vp_result vp_family_from_config(vp_family *family, const vp_json *const files[3], vp_error *error) {
    char model[64], processor[64];
    const vp_family_preset *preset = vp_impl_config_preset(files, model, processor);
    vp_result result;
    if (!preset) {
        vp_impl_message m = {{0}, 0};
        vp_impl_message_text(&m, "neither model_type \"");
        vp_impl_message_text(&m, model);
        vp_impl_message_text(&m, "\" nor image processor \"");
        vp_impl_message_text(&m, processor);
        vp_impl_message_text(&m, "\" is a known family");
        return vp_fail(error, VP_ERR_NOT_FOUND, -1, "config", m.text);
    }
    vp_family_default(preset, family);
    result = vp_impl_config_keys(family, files, error);
    if (result == VP_OK) result = vp_impl_config_canvases(family, files, error);
    return result == VP_OK ? vp_impl_config_check(family, files, error) : result;
}

/* ---- the other way */
VP_API const vp_family_key *vp_family_knob(const vp_family *family) {
    static const vp_slot order[] = {VP_SLOT_MAX, VP_SLOT_SIDE};
    const int rule = family->preset->rule_index;
    int32_t i, turn;
    if (rule == VP_IMPL_WINDOW || rule == VP_IMPL_CANVAS) return NULL;
    for (turn = 0; turn < 2; turn++)
        for (i = 0; i < VP_FAMILY_KEYS_LIMIT; i++)
            if (family->preset->keys[i].name && family->preset->keys[i].slot == order[turn]) return &family->preset->keys[i];
    return NULL;
}
/* whether at least `wanted` of the sizes stay within the tokens */
static int vp_impl_family_within(const vp_family *f, const int32_t (*sizes_px)[2], size_t size_count, size_t wanted, int64_t max_tokens) {
    vp_vision_count c;
    size_t i, good = 0;
    for (i = 0; i < size_count && good < wanted && good + (size_count - i) >= wanted; i++)
        good += !vp_impl_family_run(f, sizes_px[i][0], sizes_px[i][1], &c) && c.total_tokens <= max_tokens;
    return good >= wanted;
}
VP_API vp_result vp_family_largest(const vp_family *family, const int32_t (*sizes_px)[2], size_t size_count, double share, int64_t max_tokens,
                                   int64_t *value, int *unlimited, vp_error *error) {
    const vp_family_key *knob = vp_family_knob(family);
    vp_family f = *family;
    int64_t low, high, most, middle;
    size_t wanted;
    if (!knob) return vp_fail(error, VP_ERR_NOT_FOUND, -1, family->preset->name, "has no key that limits its tokens");
    if (!size_count || !(share > 0.0 && share <= 1.0) || max_tokens < 1)
        return vp_fail(error, VP_ERR_RANGE, -1, "largest", "no sizes, share or tokens");
    wanted = (size_t)ceil(share * (double)size_count);
    if (wanted > size_count) wanted = size_count;
    if (knob->slot == VP_SLOT_SIDE) most = 16384;
    else if (f.preset->rule_index >= VP_IMPL_CLOSEST && f.preset->rule_index <= VP_IMPL_PERCEPTION) most = VP_FAMILY_TILES_LIMIT;
    else most = f.preset->rule_index == VP_IMPL_POOLED ? 1120 : INT64_C(1) << 40;
    for (low = 0, high = most; low < high;) {
        middle = most <= 65536 ? high : low == 0 && high == most ? most : low + (high - low + 1) / 2;
        if (vp_impl_family_put(&f, knob, (double)middle, NULL) == VP_OK
            && vp_impl_family_within(&f, sizes_px, size_count, wanted, max_tokens)) low = middle;
        else high = middle - 1;
    }
    if (!low) return vp_fail(error, VP_ERR_NOT_FOUND, -1, knob->name, "no value keeps the images under so few tokens");
    *value = low;
    *unlimited = low == most;
    return VP_OK;
}
#endif

/* ================================================================================================ select >>select */
VP_API vp_result vp_select_crops(const vp_geometry *geometry, int32_t vision_tokens, int32_t *crops) {
    vp_impl_grid grid;
    int32_t count;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || vision_tokens < 1) return VP_ERR_RANGE;
    count = vision_tokens / (grid.tokens * grid.tokens) - 1;
    if (count < 1) count = 1; /* the rule itself: there is always one crop beside the global view */
    if (count > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    *crops = count;
    return VP_OK;
}

VP_API vp_result vp_select_vision_tokens(const vp_geometry *geometry, int32_t crops, int32_t *vision_tokens) {
    vp_impl_grid grid;
    int64_t tokens;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || crops < 1 || crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    tokens = ((int64_t)crops + 1) * grid.tokens * grid.tokens;
    if (tokens > INT32_MAX) return VP_ERR_RANGE;
    *vision_tokens = (int32_t)tokens;
    return VP_OK;
}

VP_API vp_result vp_select_canvas(const vp_geometry *geometry, vp_tiling tiling, int32_t *width_px, int32_t *height_px) {
    vp_impl_grid grid;
    int64_t width, height;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || tiling.rows < 1 || tiling.cols < 1) return VP_ERR_RANGE;
    width = (int64_t)grid.window_px * tiling.cols + grid.margin_px;
    height = (int64_t)grid.window_px * tiling.rows + grid.margin_px;
    if (width > VP_CANVAS_PX_LIMIT || height > VP_CANVAS_PX_LIMIT) return VP_ERR_RANGE;
    *width_px = (int32_t)width;
    *height_px = (int32_t)height;
    return VP_OK;
}

/* (side - margin) / window rounded half to even, at least 1; in integers, where a half is exact */
static int32_t vp_impl_windows(const vp_impl_grid *grid, int32_t side_px) {
    const int64_t inner = (int64_t)side_px - grid->margin_px;
    int64_t count, rest;
    if (inner < grid->window_px) return 1;
    count = inner / grid->window_px;
    rest = inner % grid->window_px;
    if (2 * rest > grid->window_px || (2 * rest == grid->window_px && count % 2 == 1)) count++;
    return (int32_t)count;
}

VP_API vp_result vp_select_tiling(const vp_geometry *geometry, int32_t canvas_width_px, int32_t canvas_height_px, vp_tiling *tiling) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || canvas_width_px < 1 || canvas_height_px < 1) return VP_ERR_RANGE;
    tiling->rows = vp_impl_windows(&grid, canvas_height_px);
    tiling->cols = vp_impl_windows(&grid, canvas_width_px);
    return VP_OK;
}

/* ================================================================================================ tokens >>tokens */
/* A layout is the caller's memory: it must be one that vp_layout_compute makes for this geometry before its numbers steer any loop. */
static vp_result vp_impl_tokens_check(const vp_geometry *geometry, const vp_layout *layout, vp_impl_grid *grid) {
    vp_layout want;
    if (vp_impl_grid_of(geometry, grid) != VP_OK || layout->tiling.rows < 1 || layout->tiling.cols < 1) return VP_ERR_RANGE;
    if ((int64_t)layout->tiling.rows * layout->tiling.cols > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    if (!vp_impl_count_tokens(grid, layout->tiling, &want)) return VP_ERR_RANGE;
    if (layout->crops != want.crops || layout->views != want.views || layout->image_tokens != want.image_tokens) return VP_ERR_MISMATCH;
    return VP_OK;
}

/* Positions of one crop: cells of the overlap that a neighbour shows belong to nobody here. */
static void vp_impl_index_crop(const vp_impl_grid *grid, vp_tiling tiling, int32_t row, int32_t col, int32_t grid_start, int32_t *out) {
    const int32_t first_y = row > 0 ? grid->left_tokens : 0, end_y = grid->tokens - (row + 1 < tiling.rows ? grid->right_tokens : 0);
    const int32_t first_x = col > 0 ? grid->left_tokens : 0, end_x = grid->tokens - (col + 1 < tiling.cols ? grid->right_tokens : 0);
    const int32_t stride = grid->window_tokens * tiling.cols + grid->left_tokens + grid->right_tokens + 1; /* a row and its column token */
    int32_t x, y;
    for (y = 0; y < grid->tokens; y++) {
        const int32_t line = grid_start + stride * (grid->window_tokens * row + y) + grid->window_tokens * col;
        for (x = 0; x < grid->tokens; x++) {
            const int kept = y >= first_y && y < end_y && x >= first_x && x < end_x;
            *out++ = kept ? line + x : -100;
        }
    }
}

VP_API vp_result vp_tokens_index_map(const vp_geometry *geometry, const vp_layout *layout, int32_t first_position, int32_t *image_input_idx,
                                     size_t capacity) {
    vp_impl_grid grid;
    vp_result result = vp_impl_tokens_check(geometry, layout, &grid);
    int32_t row, col, x, y, grid_start;
    if (result != VP_OK) return result;
    if (first_position < 0 || first_position > INT32_MAX - layout->image_tokens) return VP_ERR_RANGE;
    if (capacity < (size_t)layout->views * (size_t)(grid.tokens * grid.tokens)) return VP_ERR_CAPACITY;
    for (y = 0; y < grid.tokens; y++) {
        for (x = 0; x < grid.tokens; x++) *image_input_idx++ = first_position + 1 + (grid.tokens + 1) * y + x; /* 1: the start token */
    }
    grid_start = first_position + 1 + (grid.tokens + 1) * grid.tokens + 2; /* 2: the global view's end, the grid's start */
    for (row = 0; row < layout->tiling.rows; row++) {
        for (col = 0; col < layout->tiling.cols; col++) {
            vp_impl_index_crop(&grid, layout->tiling, row, col, grid_start, image_input_idx);
            image_input_idx += grid.tokens * grid.tokens;
        }
    }
    return VP_OK;
}

static int32_t *vp_impl_ids_block(const vp_special_ids *ids, int32_t rows, int32_t cols, int32_t *out) {
    int32_t x, y;
    *out++ = ids->im_start;
    for (y = 0; y < rows; y++) {
        for (x = 0; x < cols; x++) *out++ = ids->im_patch;
        *out++ = ids->im_col;
    }
    *out++ = ids->im_end;
    return out;
}

VP_API vp_result vp_tokens_image_ids(const vp_geometry *geometry, const vp_layout *layout, const vp_special_ids *ids, int32_t *out, size_t capacity) {
    vp_impl_grid grid;
    vp_result result = vp_impl_tokens_check(geometry, layout, &grid);
    int32_t overlap;
    if (result != VP_OK) return result;
    if (capacity < (size_t)layout->image_tokens) return VP_ERR_CAPACITY;
    overlap = grid.left_tokens + grid.right_tokens;
    out = vp_impl_ids_block(ids, grid.tokens, grid.tokens, out);
    (void)vp_impl_ids_block(ids, grid.window_tokens * layout->tiling.rows + overlap, grid.window_tokens * layout->tiling.cols + overlap, out);
    return VP_OK;
}

/* =============================================================================================== sampler >>sampler */
VP_API void vp_random_seed(vp_random *random, uint32_t seed) {
    uint32_t i;
    random->state[0] = seed;
    for (i = 1; i < 624; i++) {
        const uint32_t before = random->state[i - 1];
        random->state[i] = 1812433253u * (before ^ (before >> 30)) + i;
    }
    random->position = 624;
}

static uint32_t vp_impl_random_twist(uint32_t high, uint32_t low, uint32_t far) {
    const uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ (mixed >> 1) ^ ((mixed & 1u) ? 0x9908b0dfu : 0u);
}

static void vp_impl_random_refill(vp_random *random) {
    uint32_t *s = random->state;
    int i;
    for (i = 0; i < 624 - 397; i++) s[i] = vp_impl_random_twist(s[i], s[i + 1], s[i + 397]);
    for (; i < 623; i++) s[i] = vp_impl_random_twist(s[i], s[i + 1], s[i + 397 - 624]);
    s[623] = vp_impl_random_twist(s[623], s[0], s[396]);
    random->position = 0;
}

VP_API uint32_t vp_random_u32(vp_random *random) {
    uint32_t y;
    if (random->position < 0 || random->position >= 624) vp_impl_random_refill(random);
    y = random->state[random->position++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

VP_API double vp_random_double(vp_random *random) {
    const double high = (double)(vp_random_u32(random) >> 5); /* in two statements: the order of the draws is part of the result */
    const double low = (double)(vp_random_u32(random) >> 6);
    return (high * 67108864.0 + low) / 9007199254740992.0; /* exact up to here: 53 bits */
}

VP_API uint64_t vp_random_below(vp_random *random, uint64_t maximum) {
    uint64_t mask = maximum, value;
    if (maximum == 0) return 0; /* numpy draws nothing here */
    mask |= mask >> 1;
    mask |= mask >> 2;
    mask |= mask >> 4;
    mask |= mask >> 8;
    mask |= mask >> 16;
    mask |= mask >> 32;
    do { /* each round ends it with a chance over one half */
        value = vp_random_u32(random);
        if (maximum > 0xffffffffu) value = value << 32 | vp_random_u32(random);
        value &= mask;
    } while (value > maximum);
    return value;
}

VP_API void vp_random_permutation(vp_random *random, int64_t *values, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) values[i] = (int64_t)i;
    for (i = count; i-- > 1;) {
        const size_t other = (size_t)vp_random_below(random, (uint64_t)i);
        const int64_t held = values[i];
        values[i] = values[other];
        values[other] = held;
    }
}

VP_API vp_result vp_sampler_choice(uint32_t seed, size_t population, size_t count, int64_t *scratch) {
    vp_random random;
    if (count > population) return VP_ERR_RANGE;
    vp_random_seed(&random, seed);
    vp_random_permutation(&random, scratch, population);
    return VP_OK;
}

/* heap sort: in place and without recursion, because the core has neither memory nor qsort */
#define VP_IMPL_SORT(name, type)                                                     \
    static void name(type *values, size_t count) {                                   \
        size_t start = count / 2, end = count, parent, child;                        \
        while (end > 1) {                                                            \
            type held;                                                               \
            if (start > 0) {                                                         \
                held = values[--start];                                              \
            } else {                                                                 \
                held = values[--end];                                                \
                values[end] = values[0];                                             \
            }                                                                        \
            parent = start;                                                          \
            while ((child = 2 * parent + 1) < end) {                                 \
                if (child + 1 < end && values[child + 1] > values[child]) child++;   \
                if (values[child] <= held) break;                                    \
                values[parent] = values[child];                                      \
                parent = child;                                                      \
            }                                                                        \
            values[parent] = held;                                                   \
        }                                                                            \
    }
VP_IMPL_SORT(vp_impl_sort_int64, int64_t)
VP_IMPL_SORT(vp_impl_sort_double, double)

VP_API vp_result vp_sampler_dataset(uint32_t seed, size_t population, size_t count, int64_t *scratch, size_t *kept) {
    size_t i;
    if (count >= population) {
        for (i = 0; i < population; i++) scratch[i] = (int64_t)i;
        *kept = population;
        return VP_OK;
    }
    (void)vp_sampler_choice(seed, population, count, scratch); /* cannot fail: count < population */
    vp_impl_sort_int64(scratch, count);
    *kept = count;
    return VP_OK;
}

/* The sorted choice from members grouped by stratum; group [strata]: each one's count, marked where it gets one more; end [strata]: where it ends. */
static const int64_t vp_impl_one_more = (int64_t)1 << 62;
static void vp_impl_strata_draw(uint32_t seed, size_t population, uint32_t strata, size_t count, const int64_t *group, const int64_t *end,
                                int64_t *members) {
    vp_random random;
    size_t kept = 0, i;
    uint32_t s;
    vp_random_seed(&random, seed);
    for (s = 0; s < strata; s++) {
        const size_t size = (size_t)(group[s] & ~vp_impl_one_more), first = (size_t)end[s] - size;
        const size_t quota = (size_t)((uint64_t)count * size / population) + (group[s] >= vp_impl_one_more);
        for (i = size; i > 1; i--) {
            const size_t other = first + (size_t)vp_random_below(&random, i - 1);
            const int64_t held = members[first + i - 1];
            members[first + i - 1] = members[other];
            members[other] = held;
        }
        for (i = 0; i < quota; i++) members[kept++] = members[first + i]; /* quotas are no greater than groups: kept never passes first */
    }
    vp_impl_sort_int64(members, count);
}

VP_API vp_result vp_sampler_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata, size_t count, int64_t *scratch,
                                       size_t *kept) {
    int64_t *group = scratch + population, *end = group + strata, begin = 0;
    size_t missing = count, i;
    uint32_t s;
    if (population > INT32_MAX) return VP_ERR_RANGE; /* keys below hold a remainder and a stratum */
    for (i = 0; i < population; i++) if (stratum[i] >= strata) return VP_ERR_RANGE;
    if (count >= population) return vp_sampler_dataset(seed, population, count, scratch, kept);
    for (s = 0; s < strata; s++) group[s] = 0;
    for (i = 0; i < population; i++) group[stratum[i]]++;
    for (s = 0; s < strata; s++) { /* ascending keys: largest remainder first, then the lower stratum */
        const uint64_t share = (uint64_t)count * (uint64_t)group[s];
        missing -= (size_t)(share / population);
        end[s] = (int64_t)(((uint64_t)population - share % population) << 32 | s);
    }
    vp_impl_sort_int64(end, strata);
    for (i = 0; i < missing; i++) group[end[i] & (int64_t)UINT32_MAX] |= vp_impl_one_more;
    for (s = 0; s < strata; s++) {
        end[s] = begin;
        begin += group[s] & ~vp_impl_one_more;
    }
    for (i = 0; i < population; i++) scratch[end[stratum[i]]++] = (int64_t)i;
    vp_impl_strata_draw(seed, population, strata, count, group, end, scratch);
    *kept = count;
    return VP_OK;
}

/* 1 where block a stands before block b in the order of importance; NaN stands nowhere */
static int vp_impl_block_before(const double *scores, const int32_t *file_order, int32_t a, int32_t b) {
    if (scores[a] != scores[b]) return scores[a] > scores[b];
    if (file_order && file_order[a] != file_order[b]) return file_order[a] < file_order[b];
    return a < b;
}

VP_API vp_result vp_sampler_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order, int32_t *blocks) {
    int32_t block, other, last, wanted, scored = 0, inner = 0;
    if (block_count < 1 || active < 1 || active > block_count) return VP_ERR_RANGE;
    last = block_count - 1;
    wanted = active - 2;
    for (block = 0; scores && block < block_count; block++) {
        if (!(scores[block] == scores[block])) continue;
        scored++;
        inner += block > 0 && block < last;
    }
    if (scored == 0) { /* an empty file says as little as no file */
        for (block = 0; block < active; block++) blocks[block] = block;
        return VP_OK;
    }
    if (wanted > inner) return VP_ERR_MISMATCH;
    *blocks++ = 0;
    for (block = 1; block < last; block++) {
        int32_t before = 0;
        if (!(scores[block] == scores[block])) continue;
        for (other = 1; other < last; other++) {
            before += scores[other] == scores[other] && vp_impl_block_before(scores, file_order, other, block);
        }
        if (before < wanted) *blocks++ = block;
    }
    if (active > 1) *blocks = last;
    return VP_OK;
}

VP_API const char *vp_sampler_strategy_name(int32_t strategy) {
    switch (strategy) {
#define VP_GRID_NAME(name, value, text, meaning) case value: return text;
        VP_GRID_STRATEGIES(VP_GRID_NAME)
#undef VP_GRID_NAME
        default: return NULL;
    }
}

VP_API vp_result vp_sampler_strategy_find(const char *name, vp_grid_strategy *strategy) {
    int32_t i;
    for (i = 0; vp_sampler_strategy_name(i); i++) {
        if (!name || strcmp(vp_sampler_strategy_name(i), name) != 0) continue;
        *strategy = (vp_grid_strategy)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

/* product of three numbers of at most 31 bits, UINT64_MAX when it does not fit */
static uint64_t vp_impl_grid_product(const uint64_t *n) {
    const uint64_t pair = n[0] * n[1];
    return n[2] > UINT64_MAX / pair ? UINT64_MAX : pair * n[2];
}

static uint64_t vp_impl_grid_draws(uint64_t combinations) { return combinations / 4 < 50 ? combinations / 4 : 50; }

VP_API size_t vp_sampler_lhs_points(const int32_t counts[3]) {
    uint64_t sizes[3], points;
    int knob;
    for (knob = 0; knob < 3; knob++) {
        if (counts[knob] < 1) return 0;
        sizes[knob] = (uint64_t)counts[knob];
    }
    points = vp_impl_grid_draws(vp_impl_grid_product(sizes));
    for (knob = 0; knob < 3; knob++) points = sizes[knob] > points ? sizes[knob] : points;
    return points < VP_GRID_LHS_POINTS_MAX ? (size_t)points : VP_GRID_LHS_POINTS_MAX;
}

/* how many places of a list a strategy looks at, or 0: all */
static uint64_t vp_impl_grid_looks(vp_grid_strategy strategy, int knob) {
    if (strategy == VP_GRID_BOUNDARY && knob == 1) return 5;
    return strategy == VP_GRID_BALANCED || strategy == VP_GRID_STRATIFIED || strategy == VP_GRID_BOUNDARY ? 3 : 0;
}

/* The j-th different place looked at in a list of n. The places j*n/(looks-1), the last one n-1, cover a list of up to `looks` whole. */
static uint64_t vp_impl_grid_place(vp_grid_strategy strategy, int knob, uint64_t n, uint64_t j) {
    const uint64_t looks = vp_impl_grid_looks(strategy, knob);
    if (strategy == VP_GRID_CUSTOM_SPARSE) return 2 * j;
    if (looks == 0 || n <= looks) return j;
    return j == looks - 1 ? n - 1 : j * n / (looks - 1);
}

static void vp_impl_grid_regular(vp_grid_strategy strategy, const uint64_t *sizes, const uint64_t *places, size_t total, int32_t *index) {
    size_t row;
    for (row = 0; row < total; row++) {
        uint64_t rest = row;
        int knob;
        for (knob = 2; knob >= 0; rest /= places[knob], knob--) {
            index[3 * row + (size_t)knob] = (int32_t)vp_impl_grid_place(strategy, knob, sizes[knob], rest % places[knob]);
        }
    }
}

/* the reference's draws into index [50, 3], first occurrences only; returns how many */
static size_t vp_impl_grid_drawn(const uint64_t *sizes, uint32_t seed, size_t draws, int32_t *index) {
    vp_random random;
    size_t kept = 0, draw, row;
    int knob;
    vp_random_seed(&random, seed);
    for (draw = 0; draw < draws; draw++) {
        int32_t *next = index + 3 * kept;
        for (knob = 0; knob < 3; knob++) next[knob] = (int32_t)vp_random_below(&random, sizes[knob] - 1);
        for (row = 0; row < kept && memcmp(index + 3 * row, next, 3 * sizeof *index) != 0; row++) {}
        kept += row == kept;
    }
    return kept;
}

/* floor(t / least common multiple of a and b); the multiple itself may not fit 64 bits */
static uint64_t vp_impl_grid_laps(uint64_t t, uint64_t a, uint64_t b) {
    uint64_t x = a, y = b;
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return t / (a / x) / b;
}

static void vp_impl_grid_swap(int32_t *a, int32_t *b) {
    const int32_t held = *a;
    *a = *b;
    *b = held;
}

/* 1 when the row at `mine` equals another one; `skip` is not looked at */
static int vp_impl_grid_repeats(const int32_t *index, size_t points, size_t mine, size_t skip) {
    const int32_t *own = index + 3 * mine;
    size_t row;
    for (row = 0; row < points; row++) {
        const int32_t *other = index + 3 * row;
        if (other[0] == own[0] && other[1] == own[1] && other[2] == own[2] && row != mine && row != skip) return 1;
    }
    return 0;
}

/* One column of the starting design. Row t holds value t mod n, moved on by one per lap through all the columns before it can show together with
 * this one: so any number of first rows are balanced in every knob, and all combinations come once before one comes again. In the first n rows
 * that is t itself, hence the renamed values stand there and later rows copy them. */
static void vp_impl_grid_column(vp_random *random, const uint64_t *sizes, int knob, size_t points, int32_t *index) {
    const uint64_t n = sizes[knob], pair = sizes[0] * sizes[1];
    const uint64_t shift = n > points ? vp_random_below(random, n - 1) : 0;
    uint64_t t;
    for (t = 0; t < points; t++) {
        uint64_t value = t;
        if (knob == 1) value = t % pair + vp_impl_grid_laps(t % pair, sizes[0], n);
        if (knob == 2) value = t + vp_impl_grid_laps(t, pair, n);
        if (n > points) index[3 * t + (size_t)knob] = (int32_t)((t * n + shift) / points);
        else if (t >= n) index[3 * t + (size_t)knob] = index[3 * (value % n) + (size_t)knob];
        else { /* a shuffle that grows: each new value changes places with a random one */
            index[3 * t + (size_t)knob] = (int32_t)t;
            vp_impl_grid_swap(index + 3 * t + knob, index + 3 * vp_random_below(random, t) + knob);
        }
    }
}

/* Shuffles each column, refusing what would repeat a point: balance and difference hold at every step. Where most combinations are left out the
 * first round is a whole shuffle already; the others are for crowded grids. */
static void vp_impl_grid_latin(const uint64_t *sizes, uint32_t seed, size_t points, int32_t *index) {
    vp_random random;
    size_t row;
    int knob, round;
    vp_random_seed(&random, seed);
    for (knob = 0; knob < 3; knob++) vp_impl_grid_column(&random, sizes, knob, points, index);
    for (round = 0; round < 4; round++) {
        for (knob = 0; knob < 3; knob++) {
            for (row = points; row-- > 1;) {
                const size_t other = (size_t)vp_random_below(&random, row);
                int32_t *a = index + 3 * row + knob, *b = index + 3 * other + knob;
                if (*a == *b) continue;
                vp_impl_grid_swap(a, b);
                if (vp_impl_grid_repeats(index, points, row, other) || vp_impl_grid_repeats(index, points, other, row)) vp_impl_grid_swap(a, b);
            }
        }
    }
}

VP_API vp_result vp_sampler_grid(vp_grid_strategy strategy, const int32_t counts[3], uint32_t seed, size_t points, int32_t *index, size_t capacity,
                                 size_t *needed, size_t *duplicates) {
    uint64_t sizes[3], places[3], combinations, total, again = 0;
    int32_t drawn[50 * 3];
    int knob;
    if (!vp_sampler_strategy_name((int32_t)strategy)) return VP_ERR_RANGE;
    for (knob = 0; knob < 3; knob++) {
        const uint64_t looks = vp_impl_grid_looks(strategy, knob);
        if (counts[knob] < 1) return VP_ERR_RANGE;
        sizes[knob] = places[knob] = (uint64_t)counts[knob];
        if (looks != 0 && places[knob] > looks) places[knob] = looks;
        if (strategy == VP_GRID_CUSTOM_SPARSE) places[knob] = (places[knob] + 1) / 2;
    }
    combinations = vp_impl_grid_product(sizes);
    total = vp_impl_grid_product(places);
    if (strategy == VP_GRID_STRATIFIED) again = 3 * 3 * 3 - total;
    if (strategy == VP_GRID_BOUNDARY) again = 3 * 5 * 3 - total;
    if (strategy == VP_GRID_LHS) {
        if (points < 1 || points > combinations || points > VP_GRID_LHS_POINTS_MAX) return VP_ERR_RANGE;
        total = points;
    } else if (strategy == VP_GRID_SEED_LHS) {
        total = vp_impl_grid_drawn(sizes, seed, (size_t)vp_impl_grid_draws(combinations), drawn);
        again = vp_impl_grid_draws(combinations) - total;
    } else if (total > SIZE_MAX / (3 * sizeof *index)) {
        return VP_ERR_RANGE;
    }
    if (needed) *needed = (size_t)total;
    if (duplicates) *duplicates = (size_t)again;
    if (total > (index ? capacity : 0)) return VP_ERR_CAPACITY;
    if (strategy == VP_GRID_LHS) vp_impl_grid_latin(sizes, seed, points, index);
    else if (strategy != VP_GRID_SEED_LHS) vp_impl_grid_regular(strategy, sizes, places, (size_t)total, index);
    else if (total > 0) memcpy(index, drawn, (size_t)total * 3 * sizeof *index);
    return VP_OK;
}

VP_API vp_result vp_sampler_shard(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride, size_t *shard_count) {
    if (ranks < 1 || rank < 0 || rank >= ranks) return VP_ERR_RANGE;
    *first = (size_t)rank;
    *stride = (size_t)ranks;
    *shard_count = (size_t)rank < count ? (count - (size_t)rank - 1) / (size_t)ranks + 1 : 0;
    return VP_OK;
}

typedef struct vp_impl_launcher { const char *name, *rank, *world, *world_before, *local, *local_world; } vp_impl_launcher;
enum { VP_IMPL_LAUNCHERS = 4, VP_IMPL_LAUNCHER_SLURM = 3 };
static const vp_impl_launcher vp_impl_launchers[VP_IMPL_LAUNCHERS] = {
    {"torchrun", "RANK", "WORLD_SIZE", NULL, "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_LOCALID", NULL},
};

typedef struct vp_impl_environment { const char *(*lookup)(void *user, const char *name); void *user; vp_error *error; } vp_impl_environment;

/* decimal digits and nothing else, at most `limit`; -1 for any other text */
static int64_t vp_impl_digits(const char *text, int64_t limit) {
    int64_t value = 0;
    if (!*text) return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = value * 10 + (*text - '0');
        if (value > limit) return -1;
    }
    return value;
}

/* A variable's number; `missing` where it is not set (name may be NULL: there is no such variable). */
static vp_result vp_impl_environment_number(const vp_impl_environment *e, const char *name, int32_t missing, int32_t *out) {
    const char *text = name ? e->lookup(e->user, name) : NULL;
    vp_impl_message m = {{0}, 0};
    int64_t value;
    if (!text) {
        *out = missing;
        return VP_OK;
    }
    value = vp_impl_digits(text, INT32_MAX);
    if (value >= 0) {
        *out = (int32_t)value;
        return VP_OK;
    }
    vp_impl_message_text(&m, "is \"");
    vp_impl_message_text(&m, text);
    vp_impl_message_text(&m, "\", no number from 0 on: start with a launcher that sets it, or unset it");
    return vp_fail(e->error, VP_ERR_FORMAT, -1, name, m.text);
}

/* is the process in a step of srun? */
static int vp_impl_environment_step(const vp_impl_environment *e) {
    const char *step = e->lookup(e->user, "SLURM_STEP_ID");
    return step && vp_impl_digits(step, (int64_t)0xffffffef) >= 0;
}

static int vp_impl_environment_has(const vp_impl_environment *e, int launcher) {
    const vp_impl_launcher *l = &vp_impl_launchers[launcher];
    if (launcher == VP_IMPL_LAUNCHER_SLURM) return vp_impl_environment_step(e);
    return e->lookup(e->user, l->rank) || e->lookup(e->user, l->world);
}

/* place < count, both told; `name` and `count_name` are their variables */
static vp_result vp_impl_environment_order(const vp_impl_environment *e, const char *name, int32_t place, const char *count_name, int32_t count) {
    vp_impl_message m = {{0}, 0};
    if (place < count) return VP_OK;
    vp_impl_message_text(&m, "is ");
    vp_impl_message_int(&m, place);
    vp_impl_message_text(&m, ", but ");
    vp_impl_message_text(&m, count_name);
    vp_impl_message_text(&m, " is ");
    vp_impl_message_int(&m, count);
    vp_impl_message_text(&m, ": ranks count from 0 and stay below it");
    return vp_fail(e->error, VP_ERR_RANGE, -1, name, m.text);
}

static vp_result vp_impl_environment_read(const vp_impl_environment *e, const vp_impl_launcher *l, vp_rank *out) {
    const char *world = l->world_before && !e->lookup(e->user, l->world) ? l->world_before : l->world;
    vp_impl_message m = {{0}, 0};
    vp_result r;
    if ((r = vp_impl_environment_number(e, l->rank, -1, &out->rank)) != VP_OK) return r;
    if ((r = vp_impl_environment_number(e, world, -1, &out->world_size)) != VP_OK) return r;
    if (out->rank < 0 || out->world_size < 0) {
        vp_impl_message_text(&m, "is not set, but ");
        vp_impl_message_text(&m, l->name);
        vp_impl_message_text(&m, out->rank >= 0 ? " set " : out->world_size >= 0 ? " set " : " set SLURM_STEP_ID");
        if (out->rank >= 0) vp_impl_message_text(&m, l->rank);
        else if (out->world_size >= 0) vp_impl_message_text(&m, world);
        vp_impl_message_text(&m, ": set both, or neither");
        return vp_fail(e->error, VP_ERR_NOT_FOUND, -1, out->rank < 0 ? l->rank : l->world, m.text);
    }
    if ((r = vp_impl_environment_order(e, l->rank, out->rank, world, out->world_size)) != VP_OK) return r;
    if ((r = vp_impl_environment_number(e, l->local, -1, &out->local_rank)) != VP_OK) return r;
    if ((r = vp_impl_environment_number(e, l->local_world, -1, &out->local_world_size)) != VP_OK) return r;
    if ((r = vp_impl_environment_order(e, l->local, out->local_rank, world, out->world_size)) != VP_OK) return r;
    if (out->local_world_size < 0) return VP_OK;
    return vp_impl_environment_order(e, l->local, out->local_rank, l->local_world, out->local_world_size);
}

VP_API vp_result vp_rank_from_environment(const char *(*lookup)(void *user, const char *name), void *user, vp_rank *rank, vp_error *error) {
    vp_impl_environment e;
    vp_rank out = {"none", NULL, 0, 1, 0, 1}, other;
    int launcher, first;
    vp_result r;
    e.lookup = lookup;
    e.user = user;
    e.error = error;
    for (first = 0; first < VP_IMPL_LAUNCHERS && !vp_impl_environment_has(&e, first); first++) {}
    if (first < VP_IMPL_LAUNCHERS) {
        if ((r = vp_impl_environment_read(&e, &vp_impl_launchers[first], &out)) != VP_OK) return r;
        out.launcher = vp_impl_launchers[first].name;
        e.error = NULL; /* what a launcher that is not used has wrong is no error */
        for (launcher = first + 1; launcher < VP_IMPL_LAUNCHERS; launcher++) {
            if (!vp_impl_environment_has(&e, launcher)) continue;
            if (!out.ignored) out.ignored = vp_impl_launchers[launcher].name;
            if (out.local_rank >= 0 || vp_impl_environment_read(&e, &vp_impl_launchers[launcher], &other) != VP_OK) continue;
            if (other.rank == out.rank && other.world_size == out.world_size) out.local_rank = other.local_rank;
        }
        if (out.world_size == 1) out.local_rank = 0;
        if (out.world_size == 1) out.local_world_size = 1;
    }
    *rank = out;
    return VP_OK;
}

VP_API int32_t vp_rank_device(const vp_rank *rank, int32_t visible_count) {
    if (visible_count < 1 || (visible_count > 1 && rank->local_rank < 0)) return -1;
    return visible_count == 1 ? 0 : rank->local_rank % visible_count;
}

/* ================================================================================================= timer >>timer */
#ifndef VLMPROF_CLOCK_NS
#include <time.h>
#ifndef CLOCK_MONOTONIC
/* Strict -std=c11 hides POSIX from <time.h>. struct timespec is C11; the call and the constant are the system's, and where the constant
 * is hidden so is the declaration, so that this one cannot clash with another. */
#if defined(__linux__)
#define VP_IMPL_CLOCK_MONOTONIC 1
extern int clock_gettime(int clock, struct timespec *time);
#else
#error "vlmprof: define _POSIX_C_SOURCE as 200112L before the first include, or VLMPROF_CLOCK_NS as an expression that reads a clock"
#endif
#else
#define VP_IMPL_CLOCK_MONOTONIC CLOCK_MONOTONIC
#endif
#define VLMPROF_CLOCK_NS vp_impl_clock_ns()

static int64_t vp_impl_clock_ns(void) {
    struct timespec now;
    if (clock_gettime(VP_IMPL_CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}
#endif

VP_API int64_t vp_clock_ns(void) {
    return VLMPROF_CLOCK_NS;
}

/* values[i], or (values[i] - centre)^2: the two things that are summed. Own statements, so that a compiler that fuses only inside
 * an expression rounds each step. */
static double vp_impl_term(const double *values, size_t i, int squared, double centre) {
    double distance;
    if (!squared) return values[i];
    distance = values[i] - centre;
    distance = distance * distance;
    return distance;
}

static double vp_impl_sum_block(const double *values, size_t count, int squared, double centre) {
    double part[8], sum, term;
    size_t i, k;
    if (count < 8) {
        sum = 0.0;
        for (i = 0; i < count; i++) {
            term = vp_impl_term(values, i, squared, centre);
            sum += term;
        }
        return sum;
    }
    for (k = 0; k < 8; k++) part[k] = vp_impl_term(values, k, squared, centre);
    for (i = 8; i + 8 <= count; i += 8) {
        for (k = 0; k < 8; k++) {
            term = vp_impl_term(values, i + k, squared, centre);
            part[k] += term;
        }
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    for (; i < count; i++) {
        term = vp_impl_term(values, i, squared, centre);
        sum += term;
    }
    return sum;
}

/* The recursion of numpy: a range over 128 is its left part, count / 2 rounded down to a multiple of 8, plus the rest. At most 58 levels
 * for any size_t, since a part is never above half of its range plus 8. */
static double vp_impl_sum(const double *values, size_t count, int squared, double centre) {
    size_t left;
    double left_sum, right_sum;
    if (count <= 128) return vp_impl_sum_block(values, count, squared, centre);
    left = count / 2;
    left -= left % 8;
    left_sum = vp_impl_sum(values, left, squared, centre);
    right_sum = vp_impl_sum(values + left, count - left, squared, centre);
    return left_sum + right_sum;
}

VP_API double vp_statistics_sum(const double *values, size_t count) {
    return vp_impl_sum(values, count, 0, 0.0);
}

VP_API double vp_statistics_mean(const double *values, size_t count) {
    return count ? vp_impl_sum(values, count, 0, 0.0) / (double)count : (double)NAN;
}

VP_API double vp_statistics_std(const double *values, size_t count) {
    if (!count) return (double)NAN;
    return sqrt(vp_impl_sum(values, count, 1, vp_statistics_mean(values, count)) / (double)count);
}

VP_API double vp_statistics_percentile(const double *sorted, size_t count, double percentile) {
    double place, part, step;
    size_t low, high;
    if (count == 0 || !(percentile >= 0.0 && percentile <= 100.0)) return (double)NAN;
    place = (double)(count - 1) * (percentile / 100.0);
    low = (size_t)place;
    if (low > count - 1) low = count - 1;
    high = low + 1 < count ? low + 1 : low;
    part = place - (double)low;
    step = sorted[high] - sorted[low];
    if (part < 0.5) {
        step = step * part;
        return sorted[low] + step;
    }
    step = step * (1.0 - part);
    return sorted[high] - step;
}

/* no NaN and no infinity among them */
static int vp_impl_finite(const double *values, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        if (!(values[i] - values[i] == 0.0)) return 0;
    }
    return 1;
}

VP_API vp_result vp_statistics_compute(const double *values, size_t count, double *scratch, vp_statistics *statistics) {
    vp_statistics out;
    if (count == 0 || !vp_impl_finite(values, count)) return VP_ERR_RANGE;
    out.count = count;
    out.mean = vp_statistics_mean(values, count); /* before the sort: the order of the additions is part of the result */
    out.std = vp_statistics_std(values, count);
    if (scratch != values) memcpy(scratch, values, count * sizeof *values);
    vp_impl_sort_double(scratch, count);
    out.min = scratch[0];
    out.p50 = vp_statistics_percentile(scratch, count, 50.0);
    out.p95 = vp_statistics_percentile(scratch, count, 95.0);
    out.p99 = vp_statistics_percentile(scratch, count, 99.0);
    out.max = scratch[count - 1];
    *statistics = out;
    return VP_OK;
}

/* ---- distributions: everything below rests on the regularised incomplete beta function */
/* ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2] for x >= 10: Stirling's series, cut below 1e-15 */
static double vp_impl_stirling(double x) {
    const double r = 1.0 / (x * x);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360)))))) / x;
}

/* ln B(a, b), a and b >= 1/2. Written in ratios: a difference of three large ln Gamma would lose the digits that matter at large a or b. */
static double vp_impl_log_beta(double a, double b) {
    double raised = 1.0, small, large, share;
    for (; a < 10.0; a += 1.0) raised *= (a + b) / a; /* B(a, b) = B(a + 1, b) (a + b) / a */
    for (; b < 10.0; b += 1.0) raised *= (a + b) / b;
    small = a < b ? a : b;
    large = a < b ? b : a;
    share = small / (small + large);
    return log(raised) + 0.91893853320467274178 - 0.5 * log(large) + (small - 0.5) * log(share) + large * log1p(-share)
        + vp_impl_stirling(a) + vp_impl_stirling(b) - vp_impl_stirling(a + b);
}

/* The continued fraction of the incomplete beta function by Lentz's rule (Numerical Recipes 6.4); needs about sqrt(max(a, b)) terms.
 * NaN when it has not settled by then: a caller's comparison fails, so that nothing is made up. */
static double vp_impl_beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), h, m, factor;
    d = 1.0 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (m = 1.0; m < 1e6; m += 1.0) {
        const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 + even * d;
        c = 1.0 + even / c;
        d = 1.0 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        h *= d * c;
        d = 1.0 + odd * d;
        c = 1.0 + odd / c;
        d = 1.0 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        factor = d * c;
        h *= factor;
        if (fabs(factor - 1.0) < 4e-16) return h;
    }
    return (double)NAN;
}

/* I_x(a, b); x and y = 1 - x are both given, because one of them may be too near to 1 to tell the other */
static double vp_impl_beta(double a, double b, double x, double y) {
    double front;
    if (x <= 0.0) return 0.0;
    if (y <= 0.0) return 1.0;
    front = exp(a * (x < 0.5 ? log(x) : log1p(-y)) + b * (y < 0.5 ? log(y) : log1p(-x)) - vp_impl_log_beta(a, b));
    if (x < (a + 1.0) / (a + b + 2.0)) return front * vp_impl_beta_fraction(a, b, x) / a;
    return 1.0 - front * vp_impl_beta_fraction(b, a, y) / b;
}

/* P(T > t), t >= 0; infinite degrees: the normal distribution */
static double vp_impl_student_tail(double t, double degrees) {
    const double ratio = t / sqrt(degrees) * (t / sqrt(degrees));
    if (!(degrees < (double)INFINITY)) return 0.5 * erfc(t * 0.70710678118654752440);
    return 0.5 * vp_impl_beta(0.5 * degrees, 0.5, 1.0 / (1.0 + ratio), ratio > 0.0 ? 1.0 / (1.0 + 1.0 / ratio) : 0.0);
}

VP_API double vp_statistics_student(double probability, double degrees) {
    const double tail = probability < 0.5 ? probability : 1.0 - probability, many = 1e5, solved = degrees < many ? degrees : (double)INFINITY;
    double low = 0.0, high = 1.0, middle, square;
    if (!(probability >= 1e-12 && probability <= 1.0 - 1e-12) || !(degrees >= 1.0)) return (double)NAN;
    while (vp_impl_student_tail(high, solved) > tail) high *= 2.0; /* at most 2^39: the tail of 1 degree is about 1 / (pi t) */
    while ((middle = low + (high - low) * 0.5) > low && middle < high) {
        if (vp_impl_student_tail(middle, solved) > tail) low = middle; else high = middle;
    }
    if (degrees >= many) { /* there the fraction loses digits; the expansion of Cornish and Fisher is good to 1e-11 (Abramowitz and Stegun 26.7.5) */
        square = high * high;
        high += high * (square + 1.0) / (4.0 * degrees) + high * ((5.0 * square + 16.0) * square + 3.0) / (96.0 * degrees * degrees);
    }
    return probability < 0.5 ? -high : tail < 0.5 ? high : 0.0;
}

/* The largest l in 0..count with P(B < l) <= tail, B binomial (count, chance). 0: not even the smallest value is an end. */
static size_t vp_impl_order_rank(size_t count, double chance, double tail) {
    size_t low = 0, high = count + 1;
    while (high - low > 1) { /* P(B < low) <= tail, and P(B < high) is not */
        const size_t l = low + (high - low) / 2;
        const double below = vp_impl_beta((double)(count - l + 1), (double)l, 1.0 - chance, chance);
        if (below <= tail * (1.0 + 1e-12)) low = l; else high = l;
    }
    return low;
}

VP_API int vp_statistics_percentile_supported(size_t count, double percentile) {
    const double rest = percentile < 50.0 ? percentile : 100.0 - percentile;
    return rest > 0.0 && (double)count * rest >= 300.0 * (1.0 - 1e-9); /* 100 - 99.9 is a little less than 0.1 */
}

VP_API size_t vp_statistics_percentile_needs(double percentile, double confidence) {
    const double rest = (percentile < 50.0 ? percentile : 100.0 - percentile) / 100.0;
    double count;
    if (!(percentile > 0.0 && percentile < 100.0) || !(confidence > 0.0 && confidence < 1.0)) return 0;
    count = ceil(log((1.0 - confidence) * 0.5) / log1p(-rest) - 1e-9); /* (1 - rest)^count <= (1 - confidence) / 2 */
    if (!(count < (double)SIZE_MAX)) return SIZE_MAX; /* more than memory holds, as for P1e-300 */
    return count < 1.0 ? 1 : (size_t)count;
}

VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile, double confidence, double *low,
                                                   double *high) {
    const double chance = percentile / 100.0, tail = (1.0 - confidence) * 0.5;
    size_t l, h;
    if (!(percentile > 0.0 && percentile < 100.0) || !(confidence > 0.0 && confidence < 1.0)) return VP_ERR_RANGE;
    if (count < vp_statistics_percentile_needs(percentile, confidence)) return VP_ERR_UNSUPPORTED;
    l = vp_impl_order_rank(count, chance, tail);
    h = vp_impl_order_rank(count, 1.0 - chance, tail); /* counted from the other end */
    if (l == 0 || h == 0) return VP_ERR_UNSUPPORTED;
    if (!vp_impl_finite(sorted + (l - 1), 1) || !vp_impl_finite(sorted + (count - h), 1)) return VP_ERR_RANGE;
    *low = sorted[l - 1];
    *high = sorted[count - h];
    return VP_OK;
}

VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low, double *high) {
    double mean, half, ends[2];
    if (!(confidence > 0.0 && confidence < 1.0) || !vp_impl_finite(values, count)) return VP_ERR_RANGE;
    if (count < 2) return VP_ERR_UNSUPPORTED;
    mean = vp_statistics_mean(values, count);
    half = sqrt(vp_impl_sum(values, count, 1, mean) / (double)(count - 1) / (double)count);
    half *= vp_statistics_student(0.5 + 0.5 * confidence, (double)(count - 1));
    ends[0] = mean - half;
    ends[1] = mean + half;
    if (!vp_impl_finite(ends, 2)) return VP_ERR_RANGE;
    *low = ends[0];
    *high = ends[1];
    return VP_OK;
}

VP_API vp_result vp_statistics_outliers(const double *values, size_t count, double threshold, double *scratch, uint8_t *flags,
                                        vp_outliers *outliers) {
    vp_outliers out = {0, 0.0, 0.0, 0.0, 0};
    double scale;
    size_t i;
    if (!(threshold > 0.0) || !vp_impl_finite(values, count)) return VP_ERR_RANGE;
    if (count < VP_OUTLIER_COUNT_MIN) return VP_ERR_UNSUPPORTED;
    memcpy(scratch, values, count * sizeof *values);
    vp_impl_sort_double(scratch, count);
    out.median = vp_statistics_percentile(scratch, count, 50.0);
    for (i = 0; i < count; i++) scratch[i] = fabs(values[i] - out.median);
    if (!vp_impl_finite(scratch, count)) return VP_ERR_RANGE;
    scale = 1.253314 * vp_statistics_mean(scratch, count);
    vp_impl_sort_double(scratch, count);
    out.mad = vp_statistics_percentile(scratch, count, 50.0);
    if (out.mad > 0.0) scale = out.mad / 0.6745;
    for (i = 0; i < count; i++) {
        const double score = scale > 0.0 ? (values[i] - out.median) / scale : 0.0;
        const int outside = fabs(score) > threshold;
        if (flags) flags[i] = (uint8_t)outside;
        out.count += (size_t)outside;
        if (i == 0) out.first_score = score;
    }
    out.slow_first = out.first_score > threshold;
    *outliers = out;
    return VP_OK;
}

static vp_estimate vp_impl_relative(vp_estimate e, double whole) {
    const double factor = whole > 0.0 ? 1.0 / whole : (double)NAN;
    e.value *= factor;
    e.low *= factor;
    e.high *= factor;
    return e;
}

VP_API vp_result vp_statistics_paired(const double *a, const double *b, size_t count, double *scratch, vp_paired *paired) {
    const vp_estimate nothing = {(double)NAN, (double)NAN, (double)NAN};
    const double whole = vp_statistics_mean(a, count);
    vp_paired out;
    size_t i, greater = 0;
    if (count == 0) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        scratch[i] = b[i] - a[i];
        greater += scratch[i] > 0.0;
    }
    if (!vp_impl_finite(scratch, count)) return VP_ERR_RANGE;
    out.count = count;
    out.share_greater = (double)greater / (double)count;
    out.mean = out.median = nothing; /* the intervals stay so where there are too few pairs */
    out.mean.value = vp_statistics_mean(scratch, count);
    vp_statistics_mean_interval(scratch, count, 0.95, &out.mean.low, &out.mean.high);
    vp_impl_sort_double(scratch, count);
    out.median.value = vp_statistics_percentile(scratch, count, 50.0);
    vp_statistics_percentile_interval(scratch, count, 50.0, 0.95, &out.median.low, &out.median.high);
    out.relative_mean = vp_impl_relative(out.mean, whole);
    out.relative_median = vp_impl_relative(out.median, whole);
    *paired = out;
    return VP_OK;
}

VP_API const char *vp_stop_name(int32_t stop) {
    switch (stop) {
#define VP_STOP_NAME(name, value, text, meaning) case value: return text;
        VP_STOPS(VP_STOP_NAME)
#undef VP_STOP_NAME
        default: return NULL;
    }
}

VP_API vp_result vp_stop_decide(const vp_stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns, double *scratch, vp_stop *stop) {
    double low, high;
    if (rule->min_runs < 1 || rule->max_runs < rule->min_runs || rule->box_ns < 0 || elapsed_ns < 0) return VP_ERR_RANGE;
    if (!(rule->half_width >= 0.0 && rule->half_width < 1.0) || !(rule->confidence > 0.0 && rule->confidence < 1.0)) return VP_ERR_RANGE;
    if (!vp_impl_finite(values, count)) return VP_ERR_RANGE;
    *stop = VP_STOP_NOT;
    if (count < (uint64_t)rule->min_runs) return VP_OK;
    if (rule->half_width <= 0.0) {
        *stop = VP_STOP_RUNS;
        return VP_OK;
    }
    if (scratch != values) memcpy(scratch, values, count * sizeof *values);
    vp_impl_sort_double(scratch, count);
    if (vp_statistics_percentile_interval(scratch, count, 50.0, rule->confidence, &low, &high) == VP_OK
        && (high - low) * 0.5 <= rule->half_width * vp_statistics_percentile(scratch, count, 50.0)) *stop = VP_STOP_INTERVAL;
    else if (count >= (uint64_t)rule->max_runs) *stop = VP_STOP_MAX;
    else if (rule->box_ns > 0 && elapsed_ns >= rule->box_ns) *stop = VP_STOP_BOX;
    return VP_OK;
}

VP_API vp_result vp_statistics_resolution(size_t count, double discordance, double variation, vp_resolution *resolution) {
    const double n = (double)count, one = vp_statistics_student(0.975, (double)INFINITY), two = vp_statistics_student(0.8, (double)INFINITY);
    vp_resolution out = {(double)NAN, (double)NAN, (double)NAN};
    if (!(discordance >= 0.0 && discordance <= 1.0) || !(variation >= 0.0 && variation - variation == 0.0)) return VP_ERR_RANGE;
    if (n * discordance >= 10.0) { /* the rule solved for d: a quadratic equation */
        const double d = sqrt(discordance) * (one * sqrt(n) + two * sqrt(n + two * two - one * one)) / (n + two * two);
        if (d <= discordance) out.accuracy = d;
    }
    if (count >= 2) {
        const double degrees = 2.0 * n - 2.0;
        out.mean = (vp_statistics_student(0.975, degrees) + vp_statistics_student(0.8, degrees)) * variation * sqrt(2.0 / n);
        out.p50 = 1.2533141373155003 * out.mean;
    }
    *resolution = out;
    return VP_OK;
}

/* ================================================================================================== json >>json */
/* ---- UTF-8 ---- */

/* Bytes of the one well-formed UTF-8 character at p (1..4), or 0. Table 3-7 of the Unicode standard: no overlong forms, no surrogates,
 * nothing above U+10FFFF; only the second byte's range depends on the first. */
static size_t vp_impl_json_utf8_step(const unsigned char *p, size_t left) {
    unsigned first, low = 0x80, high = 0xBF;
    size_t length, i;
    if (left == 0) return 0;
    first = p[0];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (left < length) return 0;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (p[1] < low || p[1] > high) return 0;
    for (i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Bytes at the start of p, whole words only, that are plain inside a JSON string: ASCII from 0x20 on but for '"' and '\'.
 * Eight bytes at a time: (x - 0x20..) & ~x has a high bit set when a byte is below 0x20; XOR first turns "equals c" into "is below 1". */
static size_t vp_impl_json_plain_words(const unsigned char *p, size_t left) {
    const uint64_t ones = UINT64_C(0x0101010101010101), high = UINT64_C(0x8080808080808080);
    size_t n = 0;
    while (left - n >= 8) {
        uint64_t x, quote, slash;
        memcpy(&x, p + n, 8);
        quote = x ^ ones * 0x22;
        slash = x ^ ones * 0x5C;
        if ((x | ((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & high) break;
        n += 8;
    }
    return n;
}

VP_API size_t vp_utf8_valid_bytes(const char *text, size_t bytes) {
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0, step;
    while (at < bytes) {
        at += vp_impl_json_plain_words(p + at, bytes - at);
        step = vp_impl_json_utf8_step(p + at, bytes - at);
        if (step == 0) break;
        at += step;
    }
    return at;
}

/* ---- reader ---- */

enum { VP_IMPL_JSON_DEPTH = 64 };

typedef struct vp_impl_json_scan {
    const unsigned char *text;
    size_t bytes, at;
    vp_json_node *nodes;
    size_t capacity;
    uint32_t node_count;
    int32_t depth, outside; /* outside: depth of the place the text will stand in, 0 for a text of its own */
    struct { uint32_t node, count; uint8_t type; } open[VP_IMPL_JSON_DEPTH];
    vp_result code;      /* VP_OK until something is wrong; then `message` says what and `at` where */
    const char *message;
} vp_impl_json_scan;

static int vp_impl_json_wrong(vp_impl_json_scan *s, vp_result code, const char *message) {
    s->code = code;
    s->message = message;
    return 0;
}

/* Counts every node, stores those that fit. */
static int vp_impl_json_add(vp_impl_json_scan *s, vp_json_type type, int escaped, size_t start, size_t bytes) {
    if (s->node_count >= VP_JSON_NONE - 1) return vp_impl_json_wrong(s, VP_ERR_RANGE, "more than 4294967294 values and keys");
    if (s->node_count < s->capacity) {
        vp_json_node *node = &s->nodes[s->node_count];
        node->type = (uint8_t)type;
        node->escaped = (uint8_t)escaped;
        node->count = 0;
        node->end = s->node_count + 1;
        node->start = start;
        node->bytes = bytes;
    }
    s->node_count++;
    return 1;
}

static void vp_impl_json_skip_space(vp_impl_json_scan *s) {
    while (s->at < s->bytes) {
        unsigned c = s->text[s->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
        s->at++;
    }
}

static int vp_impl_json_hex(unsigned c) {
    if (c >= '0' && c <= '9') return (int)(c - '0');
    if (c >= 'a' && c <= 'f') return (int)(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return (int)(c - 'A' + 10);
    return -1;
}

/* `at` stands on a backslash; moves behind the escape. */
static int vp_impl_json_scan_escape(vp_impl_json_scan *s) {
    size_t i;
    if (s->bytes - s->at < 2) { s->at = s->bytes; return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends inside a string"); }
    switch (s->text[s->at + 1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': s->at += 2; return 1;
    case 'u': break;
    default: return vp_impl_json_wrong(s, VP_ERR_FORMAT, "unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    }
    for (i = 2; i < 6; i++) {
        if (s->at + i >= s->bytes) { s->at = s->bytes; return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends inside a string"); }
        if (vp_impl_json_hex(s->text[s->at + i]) < 0) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected four hexadecimal digits after \\u");
    }
    s->at += 6;
    return 1;
}

/* `at` stands on the opening quote; moves behind the closing one. */
static int vp_impl_json_scan_string(vp_impl_json_scan *s) {
    size_t start = ++s->at;
    int escaped = 0;
    for (;;) {
        unsigned c;
        s->at += vp_impl_json_plain_words(s->text + s->at, s->bytes - s->at);
        /* at most a few bytes before the next special one, then back to whole words */
        do {
            if (s->at >= s->bytes) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends inside a string");
            c = s->text[s->at++];
        } while (c >= 0x20 && c < 0x80 && c != '"' && c != '\\');
        s->at--;
        if (c == '"') break;
        if (c == '\\') {
            escaped = 1;
            if (!vp_impl_json_scan_escape(s)) return 0;
        } else if (c < 0x20) {
            return vp_impl_json_wrong(s, VP_ERR_FORMAT, "control character inside a string; it must be escaped");
        } else {
            size_t step = vp_impl_json_utf8_step(s->text + s->at, s->bytes - s->at);
            if (step == 0) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "a string is not valid UTF-8");
            s->at += step;
        }
    }
    s->at++;
    return vp_impl_json_add(s, VP_JSON_STRING, escaped, start, s->at - 1 - start);
}

static size_t vp_impl_json_digits(const unsigned char *p, size_t left) {
    size_t n = 0;
    while (n < left && p[n] >= '0' && p[n] <= '9') n++;
    return n;
}

/* Length of the longest JSON number at p, and NULL; or what is wrong with it, and in *length where. */
static const char *vp_impl_json_number(const unsigned char *p, size_t left, size_t *length) {
    size_t at = 0, digits;
    if (at < left && p[at] == '-') at++;
    digits = vp_impl_json_digits(p + at, left - at);
    *length = at;
    if (digits == 0) return "expected a digit";
    if (digits > 1 && p[at] == '0') return "a number must not start with 0";
    at += digits;
    if (at < left && p[at] == '.') {
        at++;
        digits = vp_impl_json_digits(p + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit after the decimal point";
        at += digits;
    }
    if (at < left && (p[at] == 'e' || p[at] == 'E')) {
        at++;
        if (at < left && (p[at] == '+' || p[at] == '-')) at++;
        digits = vp_impl_json_digits(p + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit in the exponent";
        at += digits;
    }
    *length = at;
    return NULL;
}

static int vp_impl_json_scan_number(vp_impl_json_scan *s) {
    size_t start = s->at, length;
    const char *message = vp_impl_json_number(s->text + start, s->bytes - start, &length);
    s->at += length;
    if (message) return vp_impl_json_wrong(s, VP_ERR_FORMAT, message);
    return vp_impl_json_add(s, VP_JSON_NUMBER, 0, start, length);
}

static int vp_impl_json_scan_word(vp_impl_json_scan *s, const char *word, vp_json_type type) {
    size_t length = strlen(word), start = s->at;
    if (s->bytes - start < length || memcmp(s->text + start, word, length)) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected a value");
    s->at += length;
    return vp_impl_json_add(s, type, 0, start, length);
}

/* `at` stands on '{' or '['. */
static int vp_impl_json_open(vp_impl_json_scan *s, vp_json_type type) {
    if (s->depth >= VP_IMPL_JSON_DEPTH) return vp_impl_json_wrong(s, VP_ERR_RANGE, "nested deeper than 64 levels");
    s->open[s->depth].node = s->node_count;
    s->open[s->depth].count = 0;
    s->open[s->depth].type = (uint8_t)type;
    if (!vp_impl_json_add(s, type, 0, s->at, 1)) return 0;
    s->depth++;
    s->at++;
    return 1;
}

/* `at` stands on '}' or ']'. */
static void vp_impl_json_close(vp_impl_json_scan *s) {
    uint32_t index;
    s->at++;
    s->depth--;
    index = s->open[s->depth].node;
    if (index < s->capacity) {
        s->nodes[index].count = s->open[s->depth].count;
        s->nodes[index].end = s->node_count;
        s->nodes[index].bytes = s->at - s->nodes[index].start;
    }
}

/* One value up to its end, or the opening of a container (then *opened). */
static int vp_impl_json_scan_value(vp_impl_json_scan *s, int *opened) {
    *opened = 0;
    if (s->at >= s->bytes) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends where a value is expected");
    switch (s->text[s->at]) {
    case '{': *opened = 1; return vp_impl_json_open(s, VP_JSON_OBJECT);
    case '[': *opened = 1; return vp_impl_json_open(s, VP_JSON_ARRAY);
    case '"': return vp_impl_json_scan_string(s);
    case 't': return vp_impl_json_scan_word(s, "true", VP_JSON_TRUE);
    case 'f': return vp_impl_json_scan_word(s, "false", VP_JSON_FALSE);
    case 'n': return vp_impl_json_scan_word(s, "null", VP_JSON_NULL);
    case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9': return vp_impl_json_scan_number(s);
    case 0xEF:
        if (s->at == 0) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected a value; a byte order mark is not allowed");
        break;
    default: break;
    }
    return vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected a value");
}

/* A key and its colon. */
static int vp_impl_json_scan_key(vp_impl_json_scan *s, int first) {
    if (s->at >= s->bytes) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends inside an object");
    if (s->text[s->at] != '"')
        return vp_impl_json_wrong(s, VP_ERR_FORMAT, first ? "expected a key in double quotes or '}'" : "expected a key in double quotes after ','");
    if (!vp_impl_json_scan_string(s)) return 0;
    vp_impl_json_skip_space(s);
    if (s->at >= s->bytes) return vp_impl_json_wrong(s, VP_ERR_FORMAT, "the text ends inside an object");
    if (s->text[s->at] != ':') return vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected ':' after a key");
    s->at++;
    return 1;
}

/* What stands behind a complete value: closing brackets, then a comma (returns 1: another member follows) or the end (returns 0). */
static int vp_impl_json_after_value(vp_impl_json_scan *s) {
    for (;;) {
        int object;
        vp_impl_json_skip_space(s);
        if (s->depth == s->outside)
            return s->at == s->bytes ? 0 : vp_impl_json_wrong(s, VP_ERR_FORMAT, "expected nothing after the value");
        object = s->open[s->depth - 1].type == VP_JSON_OBJECT;
        if (s->at >= s->bytes)
            return vp_impl_json_wrong(s, VP_ERR_FORMAT, object ? "the text ends inside an object" : "the text ends inside an array");
        if (s->text[s->at] == ',') { s->at++; return 1; }
        if (s->text[s->at] != (object ? '}' : ']'))
            return vp_impl_json_wrong(s, VP_ERR_FORMAT, object ? "expected ',' or '}' after a member" : "expected ',' or ']' after an element");
        vp_impl_json_close(s);
    }
}

/* The whole text, without recursion; s->code says how it went. */
static void vp_impl_json_scan_text(vp_impl_json_scan *s) {
    int opened = 0, more = 1;
    s->depth = s->outside;
    while (more) {
        vp_impl_json_skip_space(s);
        if (s->depth > s->outside) {
            int object = s->open[s->depth - 1].type == VP_JSON_OBJECT;
            if (opened && s->at < s->bytes && s->text[s->at] == (object ? '}' : ']')) {
                vp_impl_json_close(s);
                opened = 0;
                more = vp_impl_json_after_value(s);
                continue;
            }
            s->open[s->depth - 1].count++;
            if (object && !vp_impl_json_scan_key(s, opened)) return;
            vp_impl_json_skip_space(s);
        }
        if (!vp_impl_json_scan_value(s, &opened)) return;
        if (!opened) more = vp_impl_json_after_value(s);
    }
}

VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json, size_t *needed, vp_error *error) {
    vp_impl_json_scan s;
    memset(&s, 0, sizeof s);
    s.text = (const unsigned char *)text;
    s.bytes = text ? bytes : 0;
    s.nodes = nodes;
    s.capacity = nodes ? capacity : 0;
    vp_impl_json_scan_text(&s);
    if (s.code != VP_OK) return vp_fail(error, s.code, (int64_t)s.at, "JSON", s.message);
    if (needed) *needed = s.node_count;
    if (s.node_count > s.capacity) return vp_fail(error, VP_ERR_CAPACITY, -1, "JSON", "the text has more values and keys than the node buffer holds");
    if (json) {
        json->text = text;
        json->nodes = nodes;
        json->node_count = s.node_count;
    }
    return VP_OK;
}

static const vp_json_node *vp_impl_json_node_of(const vp_json *json, uint32_t index, vp_json_type type) {
    if (!json || index >= json->node_count || json->nodes[index].type != type) return NULL;
    return &json->nodes[index];
}

static uint32_t vp_impl_json_hex4(const char *p) {
    uint32_t value = 0;
    int i;
    for (i = 0; i < 4; i++) value = value * 16 + (uint32_t)vp_impl_json_hex((unsigned char)p[i]);
    return value;
}

/* one code point as UTF-8; returns its bytes (1..4) */
static size_t vp_impl_utf8_put(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Takes one escape, or one byte, from *p (before end, checked by the parser) and writes its UTF-8 bytes; returns how many (1..4). */
static size_t vp_impl_json_unescape(const char **p, const char *end, char out[4]) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *q = *p, *found;
    uint32_t c, low;
    if (q[0] != '\\') { out[0] = q[0]; *p = q + 1; return 1; }
    if (q[1] != 'u') {
        found = strchr(from, q[1]);
        out[0] = found ? to[found - from] : q[1];
        *p = q + 2;
        return 1;
    }
    c = vp_impl_json_hex4(q + 2);
    q += 6;
    if (c >= 0xD800 && c <= 0xDFFF) {
        low = c < 0xDC00 && end - q >= 6 && q[0] == '\\' && q[1] == 'u' ? vp_impl_json_hex4(q + 2) : 0;
        if (low >= 0xDC00 && low <= 0xDFFF) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            q += 6;
        } else {
            c = 0xFFFD;
        }
    }
    *p = q;
    return vp_impl_utf8_put(out, c);
}

static int vp_impl_json_equals(const vp_json *json, const vp_json_node *node, const char *text, size_t bytes) {
    const char *p = json->text + node->start, *end = p + node->bytes;
    char piece[4];
    size_t n, at = 0;
    if (!node->escaped) return node->bytes == bytes && memcmp(p, text, bytes) == 0;
    while (p < end) {
        n = vp_impl_json_unescape(&p, end, piece);
        if (bytes - at < n || memcmp(text + at, piece, n)) return 0;
        at += n;
    }
    return at == bytes;
}

VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text) {
    const vp_json_node *node = vp_impl_json_node_of(json, string, VP_JSON_STRING);
    return node && text ? vp_impl_json_equals(json, node, text, strlen(text)) : 0;
}

VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key) {
    const vp_json_node *node = vp_impl_json_node_of(json, object, VP_JSON_OBJECT);
    uint32_t index, found = VP_JSON_NONE;
    size_t bytes;
    if (!node || !key) return VP_JSON_NONE;
    bytes = strlen(key);
    for (index = object + 1; index < node->end; index = json->nodes[index + 1].end)
        if (vp_impl_json_equals(json, &json->nodes[index], key, bytes)) found = index + 1;
    return found;
}

/* Order of two keys by their unescaped bytes; equal keys by their place, so that the order is total and any sort gives the same. */
static int vp_impl_json_key_order(const vp_json *json, uint32_t a, uint32_t b, int *same) {
    const vp_json_node *x = &json->nodes[a], *y = &json->nodes[b];
    const char *p = json->text + x->start, *p_end = p + x->bytes, *q = json->text + y->start, *q_end = q + y->bytes;
    char p_piece[4], q_piece[4];
    size_t p_left = 0, q_left = 0, p_at = 0, q_at = 0, shorter;
    int order = 0;
    if (!x->escaped && !y->escaped) {
        shorter = (size_t)(x->bytes < y->bytes ? x->bytes : y->bytes);
        order = memcmp(p, q, shorter);
        if (order == 0) order = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    } else {
        while (order == 0) {
            if (p_left == 0 && p < p_end) { p_left = vp_impl_json_unescape(&p, p_end, p_piece); p_at = 0; }
            if (q_left == 0 && q < q_end) { q_left = vp_impl_json_unescape(&q, q_end, q_piece); q_at = 0; }
            if (p_left == 0 || q_left == 0) { order = (p_left > 0) - (q_left > 0); break; }
            order = (int)(unsigned char)p_piece[p_at++] - (int)(unsigned char)q_piece[q_at++];
            p_left--;
            q_left--;
        }
    }
    *same = order == 0;
    return order ? order : a < b ? -1 : a > b;
}

/* One step of heap sort: lets heap[at] sink until no child is greater. */
static void vp_impl_json_sink_key(const vp_json *json, uint32_t *heap, uint32_t at, uint32_t count) {
    int same;
    while (at < count / 2) {
        uint32_t child = 2 * at + 1, moved = heap[at];
        if (child + 1 < count && vp_impl_json_key_order(json, heap[child], heap[child + 1], &same) < 0) child++;
        if (vp_impl_json_key_order(json, moved, heap[child], &same) >= 0) return;
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity, uint32_t *duplicate) {
    const vp_json_node *node = vp_impl_json_node_of(json, object, VP_JSON_OBJECT);
    uint32_t i, key, swap, found = VP_JSON_NONE;
    int same;
    if (!node) return json && object < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    if (capacity < node->count) return VP_ERR_CAPACITY;
    for (i = 0, key = object + 1; key < node->end; key = json->nodes[key + 1].end) scratch[i++] = key;
    for (i = node->count / 2; i > 0; i--) vp_impl_json_sink_key(json, scratch, i - 1, node->count);
    for (i = node->count; i > 1; i--) {
        swap = scratch[0];
        scratch[0] = scratch[i - 1];
        scratch[i - 1] = swap;
        vp_impl_json_sink_key(json, scratch, 0, i - 1);
    }
    for (i = 1; i < node->count; i++) {
        vp_impl_json_key_order(json, scratch[i - 1], scratch[i], &same);
        if (same && scratch[i] < found) found = scratch[i];
    }
    *duplicate = found;
    return VP_OK;
}

VP_API uint32_t vp_json_at(const vp_json *json, uint32_t array, uint32_t index) {
    const vp_json_node *node = vp_impl_json_node_of(json, array, VP_JSON_ARRAY);
    uint32_t at = array + 1;
    if (!node || index >= node->count) return VP_JSON_NONE;
    while (index--) at = json->nodes[at].end;
    return at;
}

VP_API vp_result vp_json_text(const vp_json *json, uint32_t string, char *out, size_t capacity, size_t *needed) {
    const vp_json_node *node = vp_impl_json_node_of(json, string, VP_JSON_STRING);
    const char *p, *end;
    char piece[4];
    size_t total = 0, n;
    if (!node) return json && string < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    p = json->text + node->start;
    end = p + node->bytes;
    if (!node->escaped) total = (size_t)node->bytes;
    else while (p < end) total += vp_impl_json_unescape(&p, end, piece);
    if (needed) *needed = total;
    if (!out || capacity <= total) return VP_ERR_CAPACITY;
    p = json->text + node->start;
    if (!node->escaped) {
        memcpy(out, p, total);
        out += total;
    } else {
        while (p < end) {
            n = vp_impl_json_unescape(&p, end, piece);
            memcpy(out, piece, n);
            out += n;
        }
    }
    *out = 0;
    return VP_OK;
}

/* ---- numbers ---- */

/* A number's decimal value: digits times 10^exponent. `digits` counts from the first to the last digit that is not 0; those stand
 * in [first, ...) with at most one point between them. */
typedef struct vp_impl_decimal { const char *first; int64_t digits, exponent; int negative; } vp_impl_decimal;

/* text: one valid JSON number. Exponents saturate far beyond what any text could make up for. */
static vp_impl_decimal vp_impl_decimal_of(const char *text, size_t bytes) {
    const int64_t limit = INT64_C(100000000000000000);
    const char *p = text, *end = text + bytes;
    vp_impl_decimal d;
    int64_t seen = 0, fraction = 0, exponent = 0;
    int after_point = 0, minus = 0;
    d.first = NULL;
    d.digits = d.exponent = 0;
    d.negative = *p == '-';
    for (p += d.negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') { after_point = 1; continue; }
        fraction += after_point;
        if (*p != '0' && !d.first) d.first = p;
        if (d.first) seen++;
        if (*p != '0') {
            d.digits = seen;
            d.exponent = -fraction;
        } else if (!after_point) {
            d.exponent++; /* zero of the integer part behind the last digit so far; meaningless before the first one */
        }
    }
    if (p < end) p++;
    if (p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';
    for (; p < end; p++)
        if (exponent < limit) exponent = exponent * 10 + (*p - '0');
    d.exponent += minus ? -exponent : exponent;
    return d;
}

VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    vp_impl_decimal d;
    uint64_t magnitude = 0;
    const char *p;
    int64_t i;
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    d = vp_impl_decimal_of(json->text + node->start, (size_t)node->bytes);
    if (d.digits > 0) {
        if (d.exponent < 0) return VP_ERR_FORMAT;
        if (d.digits + d.exponent > 19) return VP_ERR_RANGE;
        for (p = d.first, i = 0; i < d.digits; p++) {
            if (*p == '.') continue;
            magnitude = magnitude * 10 + (uint64_t)(*p - '0');
            i++;
        }
        for (i = 0; i < d.exponent; i++) magnitude *= 10;
        if (magnitude > (uint64_t)INT64_MAX + (uint64_t)d.negative) return VP_ERR_RANGE;
    }
    *value = !d.negative ? (int64_t)magnitude : magnitude > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    return VP_OK;
}

/* Natural numbers up to 3072 bits, least significant word first, no leading zero words. Enough: the longest here are 801 decimal digits
 * (2661 bits) and 5^1131 (2627 bits) when reading, 10^326 (1083 bits) when printing, all shifted by a few bits at most. */
enum { VP_IMPL_BIG_WORDS = 96 };
typedef struct vp_impl_big { int32_t count; uint32_t word[VP_IMPL_BIG_WORDS]; } vp_impl_big;

static void vp_impl_big_set(vp_impl_big *a, uint64_t value) {
    a->word[0] = (uint32_t)value;
    a->word[1] = (uint32_t)(value >> 32);
    a->count = a->word[1] ? 2 : a->word[0] ? 1 : 0;
}

/* a = a * factor + addend */
static void vp_impl_big_multiply(vp_impl_big *a, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        carry += (uint64_t)a->word[i] * factor;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) a->word[a->count++] = (uint32_t)carry;
}

static void vp_impl_big_multiply_power5(vp_impl_big *a, int64_t power) {
    for (; power >= 13; power -= 13) vp_impl_big_multiply(a, 1220703125u, 0);
    for (; power > 0; power--) vp_impl_big_multiply(a, 5, 0);
}

static void vp_impl_big_shift(vp_impl_big *a, int64_t bits) {
    int32_t words = (int32_t)(bits / 32), rest = (int32_t)(bits % 32), i;
    if (a->count == 0) return;
    if (rest) vp_impl_big_multiply(a, UINT32_C(1) << rest, 0);
    if (words == 0) return;
    for (i = a->count - 1; i >= 0; i--) a->word[i + words] = a->word[i];
    for (i = 0; i < words; i++) a->word[i] = 0;
    a->count += words;
}

static int64_t vp_impl_big_bits(const vp_impl_big *a) {
    int64_t bits = (int64_t)a->count * 32;
    uint32_t top;
    if (a->count == 0) return 0;
    for (top = a->word[a->count - 1]; !(top >> 31); top <<= 1) bits--;
    return bits;
}

static int vp_impl_big_compare(const vp_impl_big *a, const vp_impl_big *b) {
    int32_t i;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (i = a->count - 1; i >= 0; i--)
        if (a->word[i] != b->word[i]) return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

/* a -= b; a >= b */
static void vp_impl_big_subtract(vp_impl_big *a, const vp_impl_big *b) {
    uint64_t borrow = 0;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        uint64_t take = borrow + (i < b->count ? b->word[i] : 0);
        borrow = a->word[i] < take;
        a->word[i] = (uint32_t)(a->word[i] - take);
    }
    while (a->count > 0 && a->word[a->count - 1] == 0) a->count--;
}

/* sign of a + b - c */
static int vp_impl_big_compare_sum(const vp_impl_big *a, const vp_impl_big *b, const vp_impl_big *c) {
    vp_impl_big sum;
    uint64_t carry = 0;
    int32_t i;
    sum.count = a->count > b->count ? a->count : b->count;
    for (i = 0; i < sum.count; i++) {
        carry += (i < a->count ? (uint64_t)a->word[i] : 0) + (i < b->count ? b->word[i] : 0);
        sum.word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) sum.word[sum.count++] = (uint32_t)carry;
    return vp_impl_big_compare(&sum, c);
}

/* The double nearest to a / b * 2^exponent, ties to even; its bits. Infinity's bits when it overflows. Schoolbook division in binary:
 * one comparison and subtraction a bit, so there is nothing to get wrong about estimates. */
static uint64_t vp_impl_big_ratio(vp_impl_big *a, vp_impl_big *b, int64_t exponent) {
    int64_t shift = vp_impl_big_bits(a) - vp_impl_big_bits(b), bits = 53, i;
    uint64_t quotient = 0;
    int order;
    if (shift > 0) vp_impl_big_shift(b, shift);
    else vp_impl_big_shift(a, -shift);
    if (vp_impl_big_compare(a, b) < 0) {
        vp_impl_big_shift(a, 1);
        shift--;
    }
    exponent += shift; /* now 1 <= a / b < 2 and the value is a / b * 2^exponent */
    if (exponent > 1023) return UINT64_C(0x7FF) << 52;
    if (exponent < -1022) bits = 53 + 1022 + exponent; /* subnormal: fewer bits, none at half of the smallest one */
    if (bits < 0) return 0;
    for (i = 0; i < bits; i++) {
        quotient <<= 1;
        if (vp_impl_big_compare(a, b) >= 0) {
            quotient |= 1;
            vp_impl_big_subtract(a, b);
        }
        vp_impl_big_shift(a, 1);
    }
    order = vp_impl_big_compare(a, b);
    if (order > 0 || (order == 0 && (quotient & 1))) quotient++;
    /* the hidden bit, and a carry out of the fraction, add one to the exponent field */
    return exponent < -1022 ? quotient : ((uint64_t)(exponent + 1022) << 52) + quotient;
}

VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value) {
    static const double power[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
                                    1e20, 1e21, 1e22 };
    const int64_t kept = 800; /* a tie between two doubles has at most 768 digits; of what follows only "not zero" matters */
    vp_impl_decimal d;
    vp_impl_big a, b;
    uint64_t bits = 0;
    uint32_t chunk = 0, scale = 1;
    const char *p;
    size_t length;
    int64_t i, n;
    double result;
    if (!text || vp_impl_json_number((const unsigned char *)text, bytes, &length) || length != bytes) return VP_ERR_FORMAT;
    d = vp_impl_decimal_of(text, bytes);
    if (d.digits > 0 && d.digits + d.exponent > 310) return VP_ERR_RANGE;
    if (d.digits > 0 && d.digits + d.exponent > -330) {
        n = d.digits < kept ? d.digits : kept;
        vp_impl_big_set(&a, 0);
        for (p = d.first, i = 0; i < n; p++) {
            if (*p == '.') continue;
            chunk = chunk * 10 + (uint32_t)(*p - '0');
            scale *= 10;
            if (++i == n || scale == 1000000000u) {
                vp_impl_big_multiply(&a, scale, chunk);
                chunk = 0;
                scale = 1;
            }
        }
        d.exponent += d.digits - n;
        if (d.digits > n) {
            vp_impl_big_multiply(&a, 10, 1);
            d.exponent--;
        }
        /* digits and power both exact doubles: one correctly rounded operation (where double arithmetic is not done in wider registers) */
        if (d.digits <= 15 && d.exponent >= -22 && d.exponent <= 22 && sizeof(double_t) == sizeof(double)) {
            result = (double)(a.word[0] | (a.count > 1 ? (uint64_t)a.word[1] << 32 : 0));
            result = d.exponent < 0 ? result / power[-d.exponent] : result * power[d.exponent];
            *value = d.negative ? -result : result;
            return VP_OK;
        }
        vp_impl_big_set(&b, 1);
        vp_impl_big_multiply_power5(d.exponent < 0 ? &b : &a, d.exponent < 0 ? -d.exponent : d.exponent);
        bits = vp_impl_big_ratio(&a, &b, d.exponent);
        if (bits >> 52 == 0x7FF) return VP_ERR_RANGE;
    }
    bits |= (uint64_t)d.negative << 63;
    memcpy(value, &bits, sizeof bits);
    return VP_OK;
}

VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    return vp_number_parse(json->text + node->start, (size_t)node->bytes, value);
}

/* The shortest digits d1 d2 ... (at most 17) for which 0.d1d2... * 10^point reads back as the positive double with these bits, of those
 * the nearest: Steele and White's dragon4 with exact integers. In units of 1 / scale: rest is what is left to print, low and high are
 * half the gaps to the two neighbours. */
static int32_t vp_impl_number_digits(uint64_t bits, char digits[17], int32_t *point) {
    vp_impl_big rest, scale, low, high;
    uint64_t fraction;
    int32_t exponent, count = 0, estimate, digit, narrow, even, is_low, is_high;
    fraction = bits & ((UINT64_C(1) << 52) - 1);
    exponent = (int32_t)(bits >> 52) - 1075;
    narrow = fraction == 0 && exponent > -1074; /* at a power of two the gap below is half the gap above */
    if (bits >> 52) fraction |= UINT64_C(1) << 52;
    else exponent = -1074;
    even = !(fraction & 1); /* reading rounds ties to even, so an even value owns the ends of its interval */
    vp_impl_big_set(&rest, fraction);
    estimate = (int32_t)ceil((exponent + (double)vp_impl_big_bits(&rest) - 1) * 0.30102999566398120 - 1e-10); /* log10: right or one too small */
    vp_impl_big_set(&scale, 1);
    vp_impl_big_set(&low, 1);
    vp_impl_big_shift(&rest, (exponent > 0 ? exponent : 0) + 1 + narrow);
    vp_impl_big_shift(&scale, (exponent < 0 ? -exponent : 0) + 1 + narrow);
    vp_impl_big_shift(&low, exponent > 0 ? exponent : 0);
    high = low;
    vp_impl_big_shift(&high, narrow);
    vp_impl_big_multiply_power5(&scale, estimate);
    vp_impl_big_multiply_power5(&rest, -estimate);
    vp_impl_big_multiply_power5(&low, -estimate);
    vp_impl_big_multiply_power5(&high, -estimate);
    if (estimate > 0) vp_impl_big_shift(&scale, estimate);
    if (estimate < 0) {
        vp_impl_big_shift(&rest, -estimate);
        vp_impl_big_shift(&low, -estimate);
        vp_impl_big_shift(&high, -estimate);
    }
    if (vp_impl_big_compare_sum(&rest, &high, &scale) >= !even) {
        estimate++;
        vp_impl_big_multiply(&scale, 10, 0);
    }
    do {
        vp_impl_big_multiply(&rest, 10, 0);
        vp_impl_big_multiply(&low, 10, 0);
        vp_impl_big_multiply(&high, 10, 0);
        for (digit = 0; vp_impl_big_compare(&rest, &scale) >= 0; digit++) vp_impl_big_subtract(&rest, &scale);
        is_low = vp_impl_big_compare(&rest, &low) < even;
        is_high = vp_impl_big_compare_sum(&rest, &high, &scale) >= !even;
        digits[count++] = (char)('0' + digit);
    } while (!is_low && !is_high);
    if (is_high) {
        int order = is_low ? vp_impl_big_compare_sum(&rest, &rest, &scale) : 1; /* both ends will do: take the nearer */
        if (order > 0 || (order == 0 && (digit & 1))) digits[count - 1]++;      /* never past '9': the digit before would have been the last */
    }
    *point = estimate;
    return count;
}

static char *vp_impl_number_zeros(char *out, int32_t count) {
    while (count-- > 0) *out++ = '0';
    return out;
}

VP_API size_t vp_number_format(double value, char *out) {
    char digits[17], *p = out;
    uint64_t bits;
    int32_t count = 1, point = 1, whole, power;
    memcpy(&bits, &value, sizeof bits);
    *out = 0;
    if ((bits >> 52 & 0x7FF) == 0x7FF) return 0;
    if (bits >> 63) *p++ = '-';
    digits[0] = '0';
    if (bits << 1) count = vp_impl_number_digits(bits & ~(UINT64_C(1) << 63), digits, &point);
    if (point > -4 && point <= 16) { /* Python's repr: plain digits from 1e-4 up to below 1e16 */
        whole = count < point ? count : point > 0 ? point : 0;
        memcpy(p, digits, (size_t)whole);
        p = vp_impl_number_zeros(p + whole, whole ? point - whole : 1);
        *p++ = '.';
        p = vp_impl_number_zeros(p, point < 0 ? -point : 0);
        memcpy(p, digits + whole, (size_t)(count - whole));
        p = vp_impl_number_zeros(p + (count - whole), count == whole);
    } else {
        *p++ = digits[0];
        if (count > 1) *p++ = '.';
        memcpy(p, digits + 1, (size_t)(count - 1));
        p += count - 1;
        power = point - 1;
        *p++ = 'e';
        *p++ = power < 0 ? '-' : '+';
        if (power < 0) power = -power;
        if (power >= 100) *p++ = (char)('0' + power / 100);
        *p++ = (char)('0' + power / 10 % 10);
        *p++ = (char)('0' + power % 10);
    }
    *p = 0;
    return (size_t)(p - out);
}

/* ---- writer ---- */

VP_API void vp_json_writer_init(vp_json_writer *w, char *buffer, size_t capacity, int32_t indent) {
    memset(w, 0, sizeof *w);
    w->buffer = buffer;
    w->capacity = buffer ? capacity : 0;
    w->indent = indent;
    if (indent < 0 || indent > 16) w->result = VP_ERR_RANGE;
}

VP_API void vp_json_writer_init_sink(vp_json_writer *w, vp_json_sink sink, void *user, int32_t indent) {
    vp_json_writer_init(w, NULL, 0, indent);
    w->sink = sink;
    w->user = user;
    if (!sink) w->result = VP_ERR_STATE;
}

/* A full buffer does not stop the writer: it goes on counting. Everything else does. */
static int vp_impl_json_live(const vp_json_writer *w) {
    return w->result == VP_OK || (w->result == VP_ERR_CAPACITY && !w->sink);
}

static void vp_impl_json_fail(vp_json_writer *w, vp_result result) {
    if (vp_impl_json_live(w)) w->result = result;
}

static void vp_impl_json_emit(vp_json_writer *w, const char *text, size_t bytes) {
    if (!vp_impl_json_live(w) || bytes == 0) return;
    if (bytes > SIZE_MAX - 1 - w->length_bytes) {
        w->result = VP_ERR_RANGE;
        return;
    }
    if (w->sink) {
        w->result = w->sink(w->user, text, bytes);
        if (w->result != VP_OK) return;
    } else if (w->result == VP_OK) {
        size_t room = w->capacity > w->length_bytes ? w->capacity - w->length_bytes - 1 : 0; /* one byte stays free for the NUL */
        if (bytes > room) w->result = VP_ERR_CAPACITY;
        if (room > 0) memcpy(w->buffer + w->length_bytes, text, bytes < room ? bytes : room);
    }
    w->length_bytes += bytes;
}

static void vp_impl_json_new_line(vp_json_writer *w) {
    static const char spaces[] = "                                ";
    int32_t left = w->depth * w->indent;
    vp_impl_json_emit(w, "\n", 1);
    for (; left > 32; left -= 32) vp_impl_json_emit(w, spaces, 32);
    vp_impl_json_emit(w, spaces, (size_t)left);
}

/* Comma and line break before a key or an element. Scalars of an array share a line until a container breaks it. */
enum { VP_IMPL_JSON_EMPTY, VP_IMPL_JSON_ONE_LINE, VP_IMPL_JSON_BROKEN };
static void vp_impl_json_separate(vp_json_writer *w, int wants_line) {
    unsigned char *filled = &w->filled[w->depth - 1];
    int line = w->indent > 0 && (wants_line || *filled == VP_IMPL_JSON_BROKEN);
    if (*filled != VP_IMPL_JSON_EMPTY) vp_impl_json_emit(w, ", ", line ? 1 : 2);
    if (line) vp_impl_json_new_line(w);
    *filled = line ? VP_IMPL_JSON_BROKEN : VP_IMPL_JSON_ONE_LINE;
}

/* Is a value allowed here? Then writes what belongs before it. */
static int vp_impl_json_before_value(vp_json_writer *w, int wants_line) {
    if (!vp_impl_json_live(w)) return 0;
    if (w->depth == 0 ? w->length_bytes > 0 : w->open[w->depth - 1] == '{' && !w->after_key) {
        w->result = VP_ERR_STATE;
        return 0;
    }
    if (w->depth > 0 && w->open[w->depth - 1] == '[') vp_impl_json_separate(w, wants_line);
    w->after_key = 0;
    return vp_impl_json_live(w);
}

static void vp_impl_json_begin(vp_json_writer *w, char bracket) {
    if (w->depth >= VP_IMPL_JSON_DEPTH) {
        vp_impl_json_fail(w, VP_ERR_RANGE);
        return;
    }
    if (!vp_impl_json_before_value(w, 1)) return;
    vp_impl_json_emit(w, &bracket, 1);
    w->open[w->depth] = (unsigned char)bracket;
    w->filled[w->depth] = VP_IMPL_JSON_EMPTY;
    w->depth++;
}

static void vp_impl_json_end(vp_json_writer *w, char begin, char end) {
    if (!vp_impl_json_live(w)) return;
    if (w->depth == 0 || w->open[w->depth - 1] != (unsigned char)begin || w->after_key) {
        w->result = VP_ERR_STATE;
        return;
    }
    w->depth--;
    if (w->filled[w->depth] == VP_IMPL_JSON_BROKEN) vp_impl_json_new_line(w);
    vp_impl_json_emit(w, &end, 1);
}

VP_API void vp_json_begin_object(vp_json_writer *w) { vp_impl_json_begin(w, '{'); }
VP_API void vp_json_end_object(vp_json_writer *w) { vp_impl_json_end(w, '{', '}'); }
VP_API void vp_json_begin_array(vp_json_writer *w) { vp_impl_json_begin(w, '['); }
VP_API void vp_json_end_array(vp_json_writer *w) { vp_impl_json_end(w, '[', ']'); }

static void vp_impl_json_quote(vp_json_writer *w, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char escape[6] = { '\\', 'u', '0', '0', '0', '0' };
    size_t run = 0, i;
    vp_impl_json_emit(w, "\"", 1);
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *found;
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        vp_impl_json_emit(w, text + run, i - run);
        run = i + 1;
        found = c ? strchr(from, c) : NULL;
        escape[4] = hex[c >> 4];
        escape[5] = hex[c & 15];
        escape[1] = found ? to[found - from] : 'u';
        vp_impl_json_emit(w, escape, found ? 2 : 6);
    }
    vp_impl_json_emit(w, text + run, bytes - run);
    vp_impl_json_emit(w, "\"", 1);
}

VP_API void vp_json_key(vp_json_writer *w, const char *key) {
    size_t bytes = key ? strlen(key) : 0;
    if (!vp_impl_json_live(w)) return;
    if (w->depth == 0 || w->open[w->depth - 1] != '{' || w->after_key) {
        w->result = VP_ERR_STATE;
        return;
    }
    if (!key || vp_utf8_valid_bytes(key, bytes) != bytes) {
        w->result = VP_ERR_FORMAT;
        return;
    }
    vp_impl_json_separate(w, 1);
    vp_impl_json_quote(w, key, bytes);
    vp_impl_json_emit(w, ": ", 2);
    w->after_key = 1;
}

VP_API void vp_json_string_bytes(vp_json_writer *w, const char *text, size_t bytes) {
    if ((!text && bytes > 0) || vp_utf8_valid_bytes(text, bytes) != bytes) {
        vp_impl_json_fail(w, VP_ERR_FORMAT);
        return;
    }
    if (vp_impl_json_before_value(w, 0)) vp_impl_json_quote(w, text, bytes);
}

VP_API void vp_json_string(vp_json_writer *w, const char *text) {
    if (text) vp_json_string_bytes(w, text, strlen(text));
    else vp_impl_json_fail(w, VP_ERR_FORMAT);
}

static void vp_impl_json_scalar(vp_json_writer *w, const char *text, size_t bytes) {
    if (vp_impl_json_before_value(w, 0)) vp_impl_json_emit(w, text, bytes);
}

VP_API void vp_json_int(vp_json_writer *w, int64_t value) {
    char text[20], *p = text + sizeof text;
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    do *--p = (char)('0' + rest % 10); while (rest /= 10);
    if (value < 0) *--p = '-';
    vp_impl_json_scalar(w, p, (size_t)(text + sizeof text - p));
}

VP_API void vp_json_double(vp_json_writer *w, double value) {
    char text[26];
    size_t bytes = vp_number_format(value, text);
    if (bytes) vp_impl_json_scalar(w, text, bytes);
    else vp_impl_json_fail(w, VP_ERR_RANGE);
}

VP_API void vp_json_bool(vp_json_writer *w, int value) { vp_impl_json_scalar(w, value ? "true" : "false", value ? 4 : 5); }
VP_API void vp_json_null(vp_json_writer *w) { vp_impl_json_scalar(w, "null", 4); }

VP_API void vp_json_raw(vp_json_writer *w, const char *text, size_t bytes) {
    vp_impl_json_scan s;
    if (!vp_impl_json_live(w)) return;
    memset(&s, 0, sizeof s);
    s.text = (const unsigned char *)text;
    s.bytes = text ? bytes : 0;
    s.outside = w->depth; /* the whole must stay readable too */
    vp_impl_json_scan_text(&s);
    if (s.code != VP_OK) w->result = s.code;
    else if (vp_impl_json_before_value(w, 1)) vp_impl_json_emit(w, text, bytes);
}

VP_API vp_result vp_json_finish(vp_json_writer *w) {
    if (w->depth > 0 || w->length_bytes == 0) vp_impl_json_fail(w, VP_ERR_STATE);
    if (w->capacity > 0) w->buffer[w->length_bytes < w->capacity ? w->length_bytes : w->capacity - 1] = 0;
    return w->result;
}

#ifndef VLMPROF_CORE

/* ============================================================================================ preprocess >>preprocess
 * Nothing is resized that no view shows. Source rows are read once, from top to bottom: each becomes a row of the window's width
 * (horizontal pass), a ring keeps as many of them as one output row needs (vertical pass), and every finished canvas row is cut
 * into the patches of all views that show it. Neither the canvas nor the resized image ever exists. */

/* Fused multiply-add decides the bits. Without -mfma fmaf() is a library call per value, so x86 gets a second version of the three
 * inner loops, chosen at run time; both give the same bits. Elsewhere fmaf() is one instruction. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
#define VP_IMPL_PREPROCESS_AVX2
/* vectors of the language, not immintrin.h: that header alone takes a quarter of this one's compile time. Not aligned: they lie anywhere in a row */
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

enum { VP_IMPL_LANES = 24 }; /* floats a blend step makes: whole pixels and whole vectors */

/* one direction of a resize: `count` pixels of the resized image, from `begin`, land on the canvas at `at` */
typedef struct vp_impl_axis {
    int32_t source, resized, begin, count, at, canvas;
    int32_t taps;       /* most source pixels one output pixel is made of */
    int32_t first, end; /* source pixels the window needs */
} vp_impl_axis;

typedef struct vp_impl_resizer {
    vp_impl_axis x, y;
    size_t stride;        /* floats of one ring row */
    int32_t *x_first;     /* [x.count] leftmost source pixel, counted from x.first */
    float *x_weights;     /* [x.count, x.taps] */
    float *line;          /* one source row as float, x.taps black pixels behind it */
    float *ring;          /* [y.taps, stride] rows after the horizontal pass */
    const float **rows;   /* [y.taps] the rows of one output row, from the ring */
    float *y_weights;     /* [y.taps] */
    float *canvas;        /* one finished row */
    float mean[VP_IMPL_LANES], std[VP_IMPL_LANES], padding[VP_IMPL_LANES];
    int wide;             /* the vector version of the loops runs here */
} vp_impl_resizer;

/* The product rounded to float32 whatever the compiler would like to fuse it with. */
static inline float vp_impl_product(float a, float b) {
    volatile float product = a * b;
    return product;
}

/* Which source pixels make pixel i of the resized axis, and (weights not NULL) with which weights; returns how many. All in float32,
 * in this order, because the reference's positions are float32. */
static int32_t vp_impl_axis_at(const vp_impl_axis *axis, int32_t i, int32_t *first, float *weights) {
    float scale = (float)axis->source / (float)axis->resized;
    float support = scale >= 1.0f ? scale : 1.0f, inverse = scale >= 1.0f ? 1.0f / scale : 1.0f;
    float centre = vp_impl_product(scale, (float)i + 0.5f), sum = 0.0f;
    int32_t low = (int32_t)(centre - support + 0.5f), high = (int32_t)(centre + support + 0.5f), j;
    if (axis->source == axis->resized) {
        *first = i;
        if (weights) weights[0] = 1.0f;
        return 1;
    }
    if (low < 0) low = 0;
    if (high > axis->source) high = axis->source;
    /* beyond 2^23 pixels float32 positions may round past the end: the last pixel then */
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

/* Fills an axis; 0 when the layout's numbers do not fit together. */
static int vp_impl_axis_set(vp_impl_axis *axis, vp_fit fit, int32_t source, int32_t resized, int32_t offset, int32_t canvas) {
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

/* Checks everything and sets both axes of the global view (which = 0) or of the crops (1). */
static vp_result vp_impl_resizer_set(const vp_geometry *geometry, const vp_layout *layout, int which, vp_impl_resizer *resizer) {
    int64_t side = geometry->crop_px, window = vp_geometry_window_px(geometry), views = layout->views, pixels;
    int32_t width = which ? layout->canvas_width_px : geometry->crop_px, height = which ? layout->canvas_height_px : geometry->crop_px;
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
        good = vp_impl_axis_set(&resizer->x, layout->fit, layout->width_px, layout->resized_width_px, layout->offset_left_px, width)
            && vp_impl_axis_set(&resizer->y, layout->fit, layout->height_px, layout->resized_height_px, layout->offset_top_px, height);
    else
        good = vp_impl_axis_set(&resizer->x, layout->fit, layout->width_px, layout->global_resized_width_px, layout->global_offset_left_px, width)
            && vp_impl_axis_set(&resizer->y, layout->fit, layout->height_px, layout->global_resized_height_px, layout->global_offset_top_px, height);
    if (!good) return VP_ERR_MISMATCH;
    /* one pixel behind the window for the four-float stores of the horizontal pass, then whole blend steps */
    resizer->stride = ((size_t)resizer->x.count * 3 + 3 + VP_IMPL_LANES - 1) / VP_IMPL_LANES * VP_IMPL_LANES;
    return VP_OK;
}

/* Takes the buffers from the arena, or (arena NULL) adds up what they need. 0 when they do not fit or overflow. */
static int vp_impl_resizer_take(vp_impl_resizer *resizer, vp_arena *arena, size_t *bytes) {
    struct { size_t count, element_bytes; } want[7];
    void *got[7];
    size_t columns = (size_t)(resizer->x.end - resizer->x.first), x_taps = (size_t)resizer->x.taps, y_taps = (size_t)resizer->y.taps, size;
    int i;
    if (!vp_impl_size_multiply((size_t)resizer->x.count, x_taps, &want[1].count)) return 0;
    if (!vp_impl_size_multiply(columns + x_taps + 2, 3, &want[2].count)) return 0;
    if (!vp_impl_size_multiply(y_taps, resizer->stride, &want[3].count)) return 0;
    want[0].count = (size_t)resizer->x.count;
    want[4].count = want[5].count = y_taps;
    want[6].count = (size_t)resizer->x.canvas * 3 + VP_IMPL_LANES;
    for (i = 0; i < 7; i++) want[i].element_bytes = i == 0 ? sizeof(int32_t) : i == 4 ? sizeof(float *) : sizeof(float);
    for (i = 0; i < 7; i++) {
        if (arena) {
            got[i] = vp_arena_take(arena, want[i].count, want[i].element_bytes);
            if (!got[i]) return 0;
        } else if (!vp_impl_size_multiply(want[i].count, want[i].element_bytes, &size) || !vp_impl_size_add(size, 63, &size)
                   || !vp_impl_size_add(*bytes, size, bytes)) {
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

/* The three inner loops, plain. bytes -> 0..1: a division, not a product with 1/255. */
static void vp_impl_row_to_float(const uint8_t *bytes, size_t count, float *out) {
    size_t i;
    for (i = 0; i < count; i++) out[i] = (float)bytes[i] / 255.0f;
}

/* Horizontal pass: out [count, 3]. All pixels take the same number of taps: weights of 0 behind the real ones change no bit. */
static void vp_impl_row_filter(const float *line, const int32_t *first, const float *weights, int32_t taps, int32_t count, float *out) {
    int32_t x, j;
    for (x = 0; x < count; x++, weights += taps, out += 3) {
        const float *pixel = line + (size_t)first[x] * 3;
        float red = pixel[0] * weights[0], green = pixel[1] * weights[0], blue = pixel[2] * weights[0];
        for (j = 1; j < taps; j++) {
            red = fmaf(pixel[3 * j], weights[j], red);
            green = fmaf(pixel[3 * j + 1], weights[j], green);
            blue = fmaf(pixel[3 * j + 2], weights[j], blue);
        }
        out[0] = red;
        out[1] = green;
        out[2] = blue;
    }
}

/* Vertical pass, clip to 0..1 and normalise; `floats` is a multiple of VP_IMPL_LANES. */
static void vp_impl_row_blend(const vp_impl_resizer *r, int32_t taps, size_t floats, float *out) {
    size_t i, lane;
    int32_t j;
    for (i = 0; i < floats; i += VP_IMPL_LANES) {
        for (lane = 0; lane < VP_IMPL_LANES; lane++) {
            float value = r->rows[0][i + lane] * r->y_weights[0];
            for (j = 1; j < taps; j++) value = fmaf(r->rows[j][i + lane], r->y_weights[j], value);
            value = value > 0.0f ? value : 0.0f;
            value = value < 1.0f ? value : 1.0f;
            out[i + lane] = (value - r->mean[lane]) / r->std[lane];
        }
    }
}

#ifdef VP_IMPL_PREPROCESS_AVX2
__attribute__((target("avx2,fma"))) static void vp_impl_row_to_float_avx2(const uint8_t *bytes, size_t count, float *out) {
    size_t i;
    for (i = 0; i + 8 <= count; i += 8) {
#ifdef __clang__
        vp_impl_i8 wide = __builtin_convertvector(*(const vp_impl_u8 *)(bytes + i), vp_impl_i8);
#else /* GCC 12 would widen them one by one */
        vp_impl_l2 eight = {*(const vp_impl_l1 *)(bytes + i), 0};
        vp_impl_i8 wide = (vp_impl_i8)__builtin_ia32_pmovzxbd256((vp_impl_c16)eight);
#endif
        *(vp_impl_f8 *)(out + i) = __builtin_convertvector(wide, vp_impl_f8) / 255.0f;
    }
    for (; i < count; i++) out[i] = (float)bytes[i] / 255.0f;
}

/* One pixel a vector; its fourth lane belongs to the next pixel, which the next store overwrites. Three pixels at a time, because each is
 * one chain of dependent additions. */
__attribute__((target("avx2,fma"))) static void vp_impl_row_filter_avx2(const float *line, const int32_t *first, const float *weights, int32_t taps,
                                                                        int32_t count, float *out) {
    const vp_impl_f4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    const float *w0 = weights, *w1, *w2;
    int32_t x, j;
    for (x = 0; x + 3 <= count; x += 3, w0 = w2 + taps, out += 9) {
        const float *p0 = line + (size_t)first[x] * 3, *p1 = line + (size_t)first[x + 1] * 3, *p2 = line + (size_t)first[x + 2] * 3;
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

__attribute__((target("avx2,fma"))) static void vp_impl_row_blend_avx2(const vp_impl_resizer *r, int32_t taps, size_t floats, float *out) {
    const vp_impl_f8 zero = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}, one = zero + 1.0f;
    size_t i;
    int32_t j;
    int k;
    for (i = 0; i < floats; i += VP_IMPL_LANES) {
        const float *row = r->rows[0] + i;
        vp_impl_f8 weight = r->y_weights[0] - zero, sum[3];
        for (k = 0; k < 3; k++) sum[k] = *(const vp_impl_f8 *)(row + 8 * k) * weight;
        for (j = 1; j < taps; j++) {
            row = r->rows[j] + i;
            weight = r->y_weights[j] - zero;
            for (k = 0; k < 3; k++) sum[k] = VP_IMPL_FMA8(*(const vp_impl_f8 *)(row + 8 * k), weight, sum[k]);
        }
        for (k = 0; k < 3; k++) { /* clipped to 0..1 by masks */
            vp_impl_i8 below_one;
            sum[k] = (vp_impl_f8)((vp_impl_i8)sum[k] & (vp_impl_i8)(sum[k] > zero));
            below_one = (vp_impl_i8)(sum[k] < one);
            sum[k] = (vp_impl_f8)(((vp_impl_i8)sum[k] & below_one) | ((vp_impl_i8)one & ~below_one));
            *(vp_impl_f8 *)(out + i + 8 * k) = (sum[k] - *(const vp_impl_f8 *)(r->mean + 8 * k)) / *(const vp_impl_f8 *)(r->std + 8 * k);
        }
    }
}
#endif /* VP_IMPL_PREPROCESS_AVX2 */

/* Horizontal pass of one source row into its slot of the ring. */
static void vp_impl_resizer_push(vp_impl_resizer *r, const uint8_t *rgb, int32_t source_row) {
    const uint8_t *bytes = rgb + ((size_t)source_row * (size_t)r->x.source + (size_t)r->x.first) * 3;
    float *out = r->ring + (size_t)(source_row % r->y.taps) * r->stride;
    size_t count = (size_t)(r->x.end - r->x.first) * 3, filled = (size_t)r->x.count * 3;
#ifdef VP_IMPL_PREPROCESS_AVX2
    if (r->wide) {
        vp_impl_row_to_float_avx2(bytes, count, r->line);
        vp_impl_row_filter_avx2(r->line, r->x_first, r->x_weights, r->x.taps, r->x.count, out);
    } else
#endif
    {
        vp_impl_row_to_float(bytes, count, r->line);
        vp_impl_row_filter(r->line, r->x_first, r->x_weights, r->x.taps, r->x.count, out);
    }
    memset(out + filled, 0, (r->stride - filled) * sizeof(float)); /* the blend's last step reads on */
}

/* Fills canvas pixels [begin, end) of the row with the normalised black of the padding. */
static void vp_impl_resizer_pad(vp_impl_resizer *r, int32_t begin, int32_t end) {
    size_t i, floats = (size_t)end * 3;
    for (i = (size_t)begin * 3; i < floats; i++) r->canvas[i] = r->padding[i % 3];
}

/* Cuts one canvas row into the patches of all crops that show it; crops overlap, so a pixel lands in up to four of them. */
static void vp_impl_row_scatter(const vp_geometry *geometry, const vp_impl_resizer *r, int32_t y, int32_t rows, int32_t cols, float *pixels) {
    size_t side = (size_t)geometry->crop_px, patch = (size_t)geometry->patch_px, window = (size_t)vp_geometry_window_px(geometry);
    size_t per_side = side / patch, values = patch * patch * 3, i, j, k;
    for (i = 0; i < (size_t)rows; i++) {
        size_t inside = (size_t)y - i * window;
        if ((size_t)y < i * window || inside >= side) continue;
        for (j = 0; j < (size_t)cols; j++) {
            const float *from = r->canvas + j * window * 3;
            float *to = pixels + ((i * (size_t)cols + j) * per_side + inside / patch) * per_side * values + inside % patch * patch * 3;
            for (k = 0; k < per_side; k++) memcpy(to + k * values, from + k * patch * 3, patch * 3 * sizeof(float));
        }
    }
}

/* Resizes, normalises and cuts: `rows` x `cols` crops into pixels. */
static void vp_impl_resizer_run(const vp_geometry *geometry, vp_impl_resizer *r, const uint8_t *rgb, int32_t rows, int32_t cols, float *pixels) {
    size_t floats = ((size_t)r->x.count * 3 + VP_IMPL_LANES - 1) / VP_IMPL_LANES * VP_IMPL_LANES;
    int32_t next = r->y.first, x, y, i, j, first, taps;
    memset(r->line, 0, ((size_t)(r->x.end - r->x.first) + (size_t)r->x.taps + 2) * 3 * sizeof(float));
    for (x = 0; x < r->x.count; x++) {
        float *weights = r->x_weights + (size_t)x * (size_t)r->x.taps;
        taps = vp_impl_axis_at(&r->x, r->x.begin + x, &first, weights);
        r->x_first[x] = first - r->x.first;
        for (j = taps; j < r->x.taps; j++) weights[j] = 0.0f;
    }
    for (i = 0; i < VP_IMPL_LANES; i++) {
        r->mean[i] = geometry->mean[i % 3];
        r->std[i] = geometry->std[i % 3];
        r->padding[i] = (0.0f - r->mean[i]) / r->std[i];
    }
    for (y = 0; y < r->y.canvas; y++) {
        i = y - r->y.at;
        if (i < 0 || i >= r->y.count) {
            vp_impl_resizer_pad(r, 0, r->x.canvas);
        } else {
            taps = vp_impl_axis_at(&r->y, r->y.begin + i, &first, r->y_weights);
            while (next < first + taps) vp_impl_resizer_push(r, rgb, next++);
            for (j = 0; j < taps; j++) r->rows[j] = r->ring + (size_t)((first + j) % r->y.taps) * r->stride;
            vp_impl_resizer_pad(r, 0, r->x.at);
#ifdef VP_IMPL_PREPROCESS_AVX2
            if (r->wide) vp_impl_row_blend_avx2(r, taps, floats, r->canvas + (size_t)r->x.at * 3);
            else
#endif
                vp_impl_row_blend(r, taps, floats, r->canvas + (size_t)r->x.at * 3);
            vp_impl_resizer_pad(r, r->x.at + r->x.count, r->x.canvas);
        }
        vp_impl_row_scatter(geometry, r, y, rows, cols, pixels);
    }
}

/* pixels of [begin, begin + length) that lie in the window of the axis */
static int32_t vp_impl_axis_overlap(const vp_impl_axis *axis, int32_t begin, int32_t length) {
    int32_t low = begin > axis->at ? begin : axis->at, end = begin + length;
    if (end > axis->at + axis->count) end = axis->at + axis->count;
    return end > low ? end - low : 0;
}

/* Mean of the canvas mask (1 image, 0 padding) per patch. */
static void vp_impl_masks(const vp_geometry *geometry, const vp_impl_resizer *r, int32_t rows, int32_t cols, float *masks) {
    int32_t per_side = vp_geometry_patches_per_side(geometry), patch = geometry->patch_px, window = vp_geometry_window_px(geometry);
    int32_t i, j, y, x, high, wide;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++)
            for (y = 0; y < per_side; y++)
                for (x = 0; x < per_side; x++) {
                    high = vp_impl_axis_overlap(&r->y, i * window + y * patch, patch);
                    wide = vp_impl_axis_overlap(&r->x, j * window + x * patch, patch);
                    *masks++ = (float)(high * wide) / (float)(patch * patch);
                }
    for (i = 0; i < per_side * per_side; i++) *masks++ = -1.0f;
}

/* Sets resizers[0] (global view) and [1] (crops) and counts the scratch of the larger one. */
static vp_result vp_impl_preprocess_plan(const vp_geometry *geometry, const vp_layout *layout, vp_impl_resizer *resizers, size_t *scratch_bytes) {
    size_t bytes[2] = {63, 63};
    vp_result result;
    int which;
    if (!geometry || !layout) return VP_ERR_RANGE;
    result = vp_geometry_check(geometry);
    for (which = 0; which < 2 && result == VP_OK; which++) {
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
    per_side = (size_t)vp_geometry_patches_per_side(geometry) * (size_t)geometry->patch_px; /* a plan exists: at most 3 * 10^8 floats */
    return (size_t)layout->views * per_side * per_side * 3;
}

VP_API vp_result vp_preprocess(const vp_geometry *geometry, const vp_layout *layout, const uint8_t *rgb, float *pixels, float *image_masks,
                               void *scratch, size_t scratch_bytes) {
    vp_impl_resizer resizers[2];
    vp_arena arena;
    size_t needed = 0, view;
    int which;
    vp_result result;
    memset(resizers, 0, sizeof resizers);
    result = vp_impl_preprocess_plan(geometry, layout, resizers, &needed);
    if (result != VP_OK) return result;
    if (!rgb || !pixels || !image_masks || !scratch) return VP_ERR_RANGE;
    if (scratch_bytes < needed) return VP_ERR_CAPACITY;
    view = (size_t)vp_geometry_patches_per_side(geometry) * (size_t)geometry->patch_px;
    view *= view * 3;
    for (which = 0; which < 2; which++) {
        vp_impl_resizer *r = &resizers[which];
#ifdef VP_IMPL_PREPROCESS_AVX2
        r->wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
        arena.base = (unsigned char *)scratch;
        arena.capacity_bytes = scratch_bytes;
        arena.used_bytes = 0;
        if (!vp_impl_resizer_take(r, &arena, NULL)) return VP_ERR_CAPACITY; /* cannot happen: counted above */
        if (which) vp_impl_resizer_run(geometry, r, rgb, layout->tiling.rows, layout->tiling.cols, pixels + view);
        else vp_impl_resizer_run(geometry, r, rgb, 1, 1, pixels);
    }
    vp_impl_masks(geometry, &resizers[1], layout->tiling.rows, layout->tiling.cols, image_masks);
    return VP_OK;
}

/* ================================================================================================= image >>image
 * The containers are walked here, with every bound checked, before stb_image sees a byte: it tolerates truncated JPEGs, believes
 * headers, checks no CRC and inflates without end. */
#ifndef VLMPROF_NO_STB
#ifdef STBI_INCLUDE_STB_IMAGE_H
#error "include the implementation of vlmprof.h before stb_image.h, or define VLMPROF_NO_STB"
#endif
#ifdef __cplusplus
}
#endif
#include <stdlib.h>

/* stb_image's memory. Zeroed, so that a damaged file decodes to the same bytes every time; and every block remembers its first size,
 * which for inflated PNG data is what the header promised: a stream that wants over twice that is a decompression bomb. */
enum { VP_IMPL_BLOCK_HEADER = 16, VP_IMPL_BLOCK_SLACK = 65536 };

static void *vp_impl_stb_malloc(size_t bytes) {
    unsigned char *block = bytes <= SIZE_MAX - VP_IMPL_BLOCK_HEADER ? (unsigned char *)calloc(1, bytes + VP_IMPL_BLOCK_HEADER) : NULL;
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + VP_IMPL_BLOCK_HEADER;
}

static void *vp_impl_stb_realloc(void *memory, size_t old_bytes, size_t bytes) {
    size_t first = SIZE_MAX / 4; /* a block that began as nothing: the compressed data themselves, bounded by the file */
    unsigned char *block = memory ? (unsigned char *)memory - VP_IMPL_BLOCK_HEADER : NULL;
    if (block) memcpy(&first, block, sizeof first);
    if (bytes > SIZE_MAX / 2 || (bytes > VP_IMPL_BLOCK_SLACK && bytes / 2 > first)) return NULL;
    block = (unsigned char *)realloc(block, bytes + VP_IMPL_BLOCK_HEADER);
    if (!block) return NULL;
    if (bytes > old_bytes) memset(block + VP_IMPL_BLOCK_HEADER + old_bytes, 0, bytes - old_bytes);
    memcpy(block, &first, sizeof first);
    return block + VP_IMPL_BLOCK_HEADER;
}

static void vp_impl_stb_free(void *memory) {
    if (memory) free((unsigned char *)memory - VP_IMPL_BLOCK_HEADER);
}

#define STBI_MALLOC(bytes) vp_impl_stb_malloc(bytes)
#define STBI_REALLOC_SIZED(memory, old_bytes, bytes) vp_impl_stb_realloc(memory, old_bytes, bytes)
#define STBI_FREE(memory) vp_impl_stb_free(memory)
#define STBI_ASSERT(condition) ((void)(condition))
#define STBI_MAX_DIMENSIONS (1 << 24) /* a row of 16-bit RGBA stays inside int */
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
/* gcc reports static functions that are declared and never defined even from a system header: the GIF reader's, and one that
 * version 2.27 defines under a misspelt name */
#define STBI_NO_GIF
#define stbi__unpremultiply_on_load_thread stbi_set_unpremultiply_on_load_thread
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
/* JPEG data that end early make it shift zeros by over 31 bits and let sums wrap: harmless, but sanitizers would stop there */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("shift", "signed-integer-overflow"))), apply_to = function)
#endif
#include <stb/stb_image.h>
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
#ifdef __cplusplus
extern "C" {
#endif

typedef struct vp_impl_image_info {
    int jpeg;                     /* else PNG */
    int64_t width_px, height_px;  /* as stored, before the orientation */
    int32_t orientation;          /* EXIF, 1..8 */
    int32_t depth, colour;        /* PNG: bits of a channel, colour type */
    int32_t components, scans;    /* JPEG */
    int tables;                   /* JPEG: 1 quantisation table seen, 2 Huffman table seen */
    int whole;                    /* the end mark is there */
    uint64_t data_bytes;          /* PNG: IDAT */
    size_t palette_at, palette_bytes; /* PNG: the PLTE chunk's data */
} vp_impl_image_info;

/* Big-endian, as both formats have it. */
static uint32_t vp_impl_be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t vp_impl_be32(const uint8_t *p) { return vp_impl_be16(p) << 16 | vp_impl_be16(p + 2); }

static vp_result vp_impl_image_fail(vp_error *error, vp_result code, size_t offset, const char *text) {
    return vp_fail(error, code, (int64_t)offset, "image", text);
}

/* EXIF: a TIFF file of its own, in either byte order. Returns the orientation, or 1 where there is none that makes sense. */
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

/* CRC-32 of PNG over a chunk's type and data; table: uint32_t [256]. */
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
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "PNG with an impossible width or height; the file is damaged");
    good = depth == 8 || (depth == 16 && colour != 3) || ((depth == 1 || depth == 2 || depth == 4) && (colour == 0 || colour == 3));
    if (!good || (colour != 0 && colour != 2 && colour != 3 && colour != 4 && colour != 6) || data[10] || data[11] || data[12] > 1)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "PNG with an impossible bit depth, colour type or method; the file is damaged");
    return VP_OK;
}

/* One pass over the chunks. `all` = 0 wants the size and orientation only and forgives what comes behind the header. */
static vp_result vp_impl_png_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info, vp_error *error) {
    uint32_t table[256];
    size_t at = 8;
    vp_result result;
    if (all) vp_impl_crc_table(table);
    while (bytes - at >= 12) {
        const uint8_t *chunk = file + at, *data = chunk + 8;
        size_t length = vp_impl_be32(chunk);
        int critical = !(chunk[4] & 32), first = at == 8;
        if (memcmp(chunk + 4, "CgBI", 4) == 0)
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "Apple's private variant of PNG (CgBI); convert it to plain PNG");
        if (first != (memcmp(chunk + 4, "IHDR", 4) == 0) || (first && length != 13))
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at, first ? "PNG that does not begin with a header chunk" : "PNG with two headers");
        if (length > bytes - at - 12) { /* cut inside this chunk; the 13 bytes of a header may still be there */
            if (first || all) break;
            return VP_OK;
        }
        if (all && critical && vp_impl_crc(table, chunk + 4, length + 4) != vp_impl_be32(data + length))
            return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "PNG chunk with a wrong checksum; the file is damaged");
        if (first) {
            result = vp_impl_png_header(data, at, info, error);
            if (result != VP_OK) return result;
        } else if (memcmp(chunk + 4, "PLTE", 4) == 0) {
            info->palette_at = at + 8;
            info->palette_bytes = length;
        } else if (memcmp(chunk + 4, "IDAT", 4) == 0) {
            info->data_bytes += length;
        } else if (memcmp(chunk + 4, "eXIf", 4) == 0) {
            info->orientation = vp_impl_exif_orientation(data, length);
        } else if (memcmp(chunk + 4, "IEND", 4) == 0) {
            info->whole = 1;
            return VP_OK;
        } else if (all && critical) {
            return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "PNG with a critical chunk that nobody knows");
        }
        at += length + 12;
    }
    if (info->width_px && !all) return VP_OK;
    return vp_impl_image_fail(error, VP_ERR_FORMAT, bytes, "truncated PNG: the file ends before its end chunk");
}

/* SOF: the frame header of a JPEG. `segment` begins behind the length. */
static vp_result vp_impl_jpeg_frame(int marker, const uint8_t *segment, size_t length, size_t at, vp_impl_image_info *info, vp_error *error) {
    if (length < 6) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with a cut frame header; the file is damaged");
    if (info->width_px) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with two frame headers; the file is damaged");
    info->height_px = vp_impl_be16(segment + 1);
    info->width_px = vp_impl_be16(segment + 3);
    info->components = segment[5];
    if (info->width_px < 1) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG of no width; the file is damaged");
    if (info->height_px < 1)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "JPEG whose height stands behind the data (DNL); save it again");
    if (marker > 0xC2)
        return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at,
                                  marker > 0xC8 ? "arithmetic-coded JPEG; save it as baseline or progressive"
                                  : marker == 0xC3 ? "lossless JPEG; save it as PNG or baseline JPEG"
                                                   : "hierarchical JPEG; save it as baseline or progressive");
    if (segment[0] != 8) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "JPEG of more than 8 bits a channel; save it with 8");
    if (info->components == 4) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, at, "CMYK JPEG; convert it to RGB");
    if (info->components != 1 && info->components != 3)
        return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with neither 1 nor 3 components; the file is damaged");
    return VP_OK;
}

/* Position of the next marker's 0xFF at or behind `at`, over entropy-coded data (stuffed zeros and restart markers included) and over
 * stray bytes alike; `bytes` when there is none. */
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

/* DHT: stb_image 2.27 writes behind its table when the counts of a code add up to more than the 256 symbols there are, and reads on
 * behind a segment that ends in the middle of a table. */
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

/* One pass over the segments. The end mark is searched from segment to segment, so that bytes behind it (a second image, a phone's
 * trailer) do no harm and the end of an embedded thumbnail is not taken for it. `all` = 0 stops at the first scan. */
static vp_result vp_impl_jpeg_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info, vp_error *error) {
    size_t at = 2, length;
    int exif = 0;
    while ((at = vp_impl_jpeg_marker(file, bytes, at)) < bytes) {
        int marker = file[at + 1];
        const uint8_t *segment = file + at + 4;
        if (marker == 0xD8) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG that begins again before it ends; the file is damaged");
        if (marker == 0xD9) {
            info->whole = 1;
            break;
        }
        if (bytes - at < 4) break;
        length = vp_impl_be16(file + at + 2);
        if (length < 2) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with a segment of impossible length; the file is damaged");
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
                return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with an impossible Huffman table; the file is damaged");
            info->tables |= 2;
        } else if (marker == 0xDA) {
            if (!info->width_px)
                return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG with image data before the frame header; the file is damaged");
            if (!all) return VP_OK;
            info->scans++;
            exif = 1; /* metadata stand before the image */
        }
        at += 4 + length;
    }
    if (info->whole && !info->width_px) return vp_impl_image_fail(error, VP_ERR_FORMAT, at, "JPEG without an image");
    if (info->width_px && (info->whole || !all)) return VP_OK;
    return vp_impl_image_fail(error, VP_ERR_FORMAT, bytes, "truncated JPEG: the file ends before its end mark");
}

/* The name of a picture format that is recognised but not read, or NULL. */
static const char *vp_impl_image_foreign(const uint8_t *file, size_t bytes) {
    static const struct { int at, length; const char *magic, *text; } foreign[] = {
        {0, 4, "GIF8", "a GIF file; convert it to PNG"}, {8, 4, "WEBP", "a WebP file; convert it to PNG or JPEG"},
        {4, 8, "ftypavif", "an AVIF file; convert it to PNG or JPEG"}, {4, 8, "ftypavis", "an AVIF file; convert it to PNG or JPEG"},
        {4, 7, "ftyphei", "a HEIC file; convert it to JPEG"}, {4, 7, "ftyphev", "a HEIC file; convert it to JPEG"},
        {4, 8, "ftypmif1", "a HEIF file; convert it to JPEG"}, {4, 8, "ftypmsf1", "a HEIF file; convert it to JPEG"},
        {4, 4, "ftyp", "a video or another MP4 family file; extract a picture as PNG or JPEG"},
        {0, 4, "II*\0", "a TIFF file; convert it to PNG"}, {0, 4, "MM\0*", "a TIFF file; convert it to PNG"},
        {0, 4, "II+\0", "a BigTIFF file; convert it to PNG"}, {0, 4, "MM\0+", "a BigTIFF file; convert it to PNG"},
        {0, 2, "BM", "a BMP file; convert it to PNG"}, {0, 4, "8BPS", "a Photoshop file; export it as PNG"},
        {0, 12, "\0\0\0\014JXL \r\n\207\n", "a JPEG XL file; convert it to PNG or JPEG"},
        {0, 2, "\377\012", "a JPEG XL file; convert it to PNG or JPEG"},
        {0, 8, "\0\0\0\014jP  ", "a JPEG 2000 file; convert it to PNG"}, {0, 4, "\377\117\377\121", "a JPEG 2000 file; convert it to PNG"},
        {0, 4, "qoif", "a QOI file; convert it to PNG"}, {0, 4, "\0\0\1\0", "an icon file; convert it to PNG"},
        {0, 4, "%PDF", "a PDF file; export the page as PNG"}, {0, 4, "<svg", "an SVG file; export it as PNG"},
        {0, 5, "<?xml", "an XML file (SVG?); export it as PNG"}, {0, 4, "DDS ", "a DDS file; convert it to PNG"},
        {0, 4, "\166\057\061\001", "an OpenEXR file; convert it to PNG"}, {0, 2, "#?", "a Radiance HDR file; convert it to PNG"},
        {0, 8, "\212MNG\r\n\032\n", "an MNG file; convert it to PNG"}};
    size_t i;
    for (i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t at = (size_t)foreign[i].at, length = (size_t)foreign[i].length;
        if (bytes >= at + length && memcmp(file + at, foreign[i].magic, length) == 0) return foreign[i].text;
    }
    if (bytes >= 3 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7' && (file[2] == '\n' || file[2] == ' ' || file[2] == '\r'))
        return "a PNM file (PBM, PGM, PPM, PAM); convert it to PNG";
    return NULL;
}

static vp_result vp_impl_image_walk(const uint8_t *file, size_t bytes, int all, vp_impl_image_info *info, vp_error *error) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    vp_impl_message message = {{0}, 0};
    const char *foreign;
    memset(info, 0, sizeof *info);
    info->orientation = 1;
    if (!file) return vp_fail(error, VP_ERR_RANGE, -1, "image", "no file data");
    if (bytes == 0) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "the file is empty");
    if (bytes >= 8 && memcmp(file, png, 8) == 0) return vp_impl_png_walk(file, bytes, all, info, error);
    if (bytes >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF) {
        info->jpeg = 1;
        return vp_impl_jpeg_walk(file, bytes, all, info, error);
    }
    foreign = vp_impl_image_foreign(file, bytes);
    if (!foreign) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "neither a PNG nor a JPEG file");
    vp_impl_message_text(&message, "only PNG and JPEG are read, this is ");
    vp_impl_message_text(&message, foreign);
    return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, message.text);
}

/* Could this file hold that many pixels at all? Bounds that no encoder can beat: deflate expands at most 1032-fold, and every JPEG
 * block costs at least one bit (64 pixels of grey; with the oddest subsampling, 9 blocks for 1024 pixels). */
static vp_result vp_impl_image_plausible(const vp_impl_image_info *info, size_t bytes, vp_error *error) {
    static const int32_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    uint64_t pixels = (uint64_t)info->width_px * (uint64_t)info->height_px, raw;
    vp_impl_message message = {{0}, 0};
    if (info->width_px * info->height_px > VP_IMAGE_PIXELS_MAX || info->width_px > STBI_MAX_DIMENSIONS || info->height_px > STBI_MAX_DIMENSIONS) {
        vp_impl_message_text(&message, "the header says ");
        vp_impl_message_int(&message, info->width_px);
        vp_impl_message_text(&message, " x ");
        vp_impl_message_int(&message, info->height_px);
        vp_impl_message_text(&message, " pixels, the limit is ");
        vp_impl_message_int(&message, VP_IMAGE_PIXELS_MAX);
        vp_impl_message_text(&message, " in all and 16777216 a side; make it smaller");
        return vp_impl_image_fail(error, VP_ERR_RANGE, 0, message.text);
    }
    if (info->jpeg) {
        if (pixels / 1024 > bytes) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "the JPEG header says more pixels than the file can hold");
        if (info->scans > 500) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, "JPEG with over 500 scans, made to stall; save it again");
        if (info->tables != 3) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, "JPEG without its own tables; save it again");
        return VP_OK;
    }
    raw = ((uint64_t)info->width_px * (uint64_t)(info->depth * channels[info->colour]) + 7) / 8 * (uint64_t)info->height_px;
    if (raw / 1032 > info->data_bytes) return vp_impl_image_fail(error, VP_ERR_FORMAT, 0, "the PNG header says more pixels than the file can hold");
    if (info->colour == 3 && (info->palette_bytes < 3 || info->palette_bytes > 768 || info->palette_bytes % 3))
        return vp_impl_image_fail(error, VP_ERR_FORMAT, info->palette_at, "PNG with a palette of impossible length; the file is damaged");
    return VP_OK;
}

/* stb_image reads palette entries that the file does not have from its own stack. Returns a copy of the file whose palette has all 256,
 * the missing ones black (its checksum is then wrong, which stb_image does not look at). */
static uint8_t *vp_impl_png_palette(const uint8_t *file, size_t bytes, const vp_impl_image_info *info) {
    size_t more = 768 - info->palette_bytes, end = info->palette_at + info->palette_bytes;
    uint8_t *copy = bytes <= SIZE_MAX - more ? (uint8_t *)malloc(bytes + more) : NULL;
    if (!copy) return NULL;
    memcpy(copy, file, end);
    memset(copy + end, 0, more);
    memcpy(copy + end + more, file + end, bytes - end);
    copy[info->palette_at - 6] = 3; /* length 0x300 */
    copy[info->palette_at - 5] = 0;
    return copy;
}

/* 16-bit grey -> RGB. The reference's image library saturates such values instead of scaling them, so most of them turn white. */
static uint8_t *vp_impl_grey16_to_rgb(const uint16_t *grey, size_t pixels) {
    uint8_t *rgb = (uint8_t *)vp_impl_stb_malloc(pixels * 3); /* at most 3 * 10^8 */
    size_t i;
    if (!rgb) return NULL;
    for (i = 0; i < pixels; i++) memset(rgb + i * 3, grey[i] < 255 ? grey[i] : 255, 3);
    return rgb;
}

/* Turns the stored picture upright. Orientation = which stored corner is top left, and which way its first row runs. */
static uint8_t *vp_impl_image_upright(const uint8_t *rgb, int32_t orientation, int32_t *width_px, int32_t *height_px) {
    size_t width = (size_t)*width_px, height = (size_t)*height_px, x, y, step_x, step_y, origin;
    int turned = orientation >= 5;
    uint8_t *out = (uint8_t *)vp_impl_stb_malloc(width * height * 3), *to = out;
    if (!out) return NULL;
    /* walking the upright rows, the stored position moves by step_x and step_y pixels; negative steps wrap around, as size_t does */
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

/* stb_image's word for it -> an error; its texts are short and fixed. */
static vp_result vp_impl_stb_fail(const vp_impl_image_info *info, vp_error *error) {
    const char *reason = stbi_failure_reason();
    vp_impl_message message = {{0}, 0};
    vp_result result = VP_ERR_FORMAT;
    vp_impl_message_text(&message, info->jpeg ? "JPEG that cannot be decoded: " : "PNG that cannot be decoded: ");
    if (!reason) reason = "unknown reason";
    if (strcmp(reason, "outofmem") == 0) { /* out of memory, or out of what the header promised */
        size_t probe_bytes = (size_t)(info->width_px * info->height_px) * 8 + VP_IMPL_BLOCK_SLACK;
        void *probe = info->jpeg ? NULL : malloc(probe_bytes);
        if (!probe) result = VP_ERR_MEMORY;
        free(probe);
        reason = result == VP_ERR_MEMORY ? "not enough memory for it" : "it holds more data than its header says";
    }
    vp_impl_message_text(&message, reason);
    return vp_fail(error, result, -1, "image", message.text);
}

/* Decodes into RGB as stored. */
static vp_result vp_impl_image_stored(const uint8_t *file, size_t bytes, const vp_impl_image_info *info, vp_image *out, vp_error *error) {
    uint8_t *copy = NULL;
    int width = 0, height = 0, channels;
    if (!info->jpeg && info->colour == 0 && info->depth == 16) {
        uint16_t *grey = stbi_load_16_from_memory(file, (int)bytes, &width, &height, &channels, 1);
        if (!grey) return vp_impl_stb_fail(info, error);
        out->rgb = vp_impl_grey16_to_rgb(grey, (size_t)width * (size_t)height);
        vp_impl_stb_free(grey);
        if (!out->rgb) return vp_fail(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
    } else {
        if (!info->jpeg && info->colour == 3 && info->palette_bytes < 768) {
            copy = vp_impl_png_palette(file, bytes, info);
            if (!copy) return vp_fail(error, VP_ERR_MEMORY, -1, "image", "not enough memory for it");
            file = copy;
            bytes += 768 - info->palette_bytes;
        }
        out->rgb = stbi_load_from_memory(file, (int)bytes, &width, &height, &channels, 3);
        free(copy);
        if (!out->rgb) return vp_impl_stb_fail(info, error);
    }
    out->width_px = width;
    out->height_px = height;
    return VP_OK;
}

VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error) {
    vp_impl_image_info info;
    vp_result result;
    if (!width_px || !height_px) return vp_fail(error, VP_ERR_RANGE, -1, "image", "no place for the size");
    result = vp_impl_image_walk(file, bytes, 0, &info, error);
    if (result != VP_OK) return result;
    *width_px = (int32_t)(info.orientation >= 5 ? info.height_px : info.width_px);
    *height_px = (int32_t)(info.orientation >= 5 ? info.width_px : info.height_px);
    return VP_OK;
}

VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    vp_impl_image_info info;
    vp_image out;
    vp_result result;
    if (!image) return vp_fail(error, VP_ERR_RANGE, -1, "image", "no place for the image");
    result = vp_impl_image_walk(file, bytes, 1, &info, error);
    if (result != VP_OK) return result;
    result = vp_impl_image_plausible(&info, bytes, error);
    if (result != VP_OK) return result;
    if (bytes > INT32_MAX - 1024) return vp_impl_image_fail(error, VP_ERR_UNSUPPORTED, 0, "image files are read up to 2 GiB; save it smaller");
    result = vp_impl_image_stored(file, bytes, &info, &out, error);
    if (result != VP_OK) return result;
    if (info.orientation > 1) {
        uint8_t *upright = vp_impl_image_upright(out.rgb, info.orientation, &out.width_px, &out.height_px);
        vp_impl_stb_free(out.rgb);
        if (!upright) return vp_fail(error, VP_ERR_MEMORY, -1, "image", "not enough memory to turn the image upright");
        out.rgb = upright;
    }
    *image = out;
    return VP_OK;
}

VP_API void vp_image_free(vp_image *image) {
    if (!image) return;
    vp_impl_stb_free(image->rgb);
    image->rgb = NULL;
    image->width_px = image->height_px = 0;
}
#else /* VLMPROF_NO_STB */
static vp_result vp_impl_image_without_stb(vp_error *error) {
    return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "image", "built without stb_image (VLMPROF_NO_STB): no image file can be read");
}
VP_API vp_result vp_image_size(const uint8_t *file, size_t bytes, int32_t *width_px, int32_t *height_px, vp_error *error) {
    (void)file, (void)bytes, (void)width_px, (void)height_px;
    return vp_impl_image_without_stb(error);
}
VP_API vp_result vp_image_decode(const uint8_t *file, size_t bytes, vp_image *image, vp_error *error) {
    (void)file, (void)bytes, (void)image;
    return vp_impl_image_without_stb(error);
}
VP_API void vp_image_free(vp_image *image) {
    (void)image; /* no image can exist */
}
#endif /* VLMPROF_NO_STB */

/* ============================================================================================ checkpoint >>checkpoint */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* vp_fail with a printf text */
static vp_result vp_impl_failf(vp_error *error, vp_result code, int64_t offset, const char *where, const char *format, ...) {
    char text[sizeof error->text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return vp_fail(error, code, offset, where, text);
}

/* snprintf into a known array; the result is always terminated */
static void vp_impl_print(char *out, size_t capacity, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(out, capacity, format, list);
    va_end(list);
}

/* ------------------------------------------------------------------------------------------------- conversions */
VP_API float vp_bf16_to_f32(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float out;
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x00400000u;
    memcpy(&out, &bits, 4);
    return out;
}

VP_API uint16_t vp_f32_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* the payload could round to infinity */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

VP_API float vp_f16_to_f32(uint16_t value) {
    uint32_t sign = (uint32_t)(value & 0x8000u) << 16, exponent = value >> 10 & 31u, fraction = value & 0x3ffu, bits;
    float out;
    if (exponent == 31) bits = sign | 0x7f800000u | fraction << 13 | (fraction ? 0x00400000u : 0u);
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else if (!fraction) bits = sign;
    else { /* subnormal: move the leading one to its hidden place */
        exponent = 113;
        while (!(fraction & 0x400u)) {
            fraction <<= 1;
            exponent--;
        }
        bits = sign | exponent << 23 | (fraction & 0x3ffu) << 13;
    }
    memcpy(&out, &bits, 4);
    return out;
}

/* ------------------------------------------------------------------------------------------------------- files */
static vp_result vp_impl_open_failed(const char *path, vp_error *error) {
    int code = errno;
    if (code == ENOENT || code == ENOTDIR) return vp_fail(error, VP_ERR_NOT_FOUND, -1, path, "there is no such file");
    if (code == EACCES) return vp_fail(error, VP_ERR_READ, -1, path, "the file may not be read: permission denied");
    if (code == ENOMEM) return vp_fail(error, VP_ERR_MEMORY, -1, path, "not enough memory to open the file");
    return vp_impl_failf(error, VP_ERR_READ, -1, path, "the file cannot be opened (errno %d)", code);
}

VP_API vp_result vp_file_read(const char *path, size_t limit_bytes, char **text, size_t *bytes, vp_error *error) {
    struct stat info;
    FILE *file;
    char *data = NULL;
    size_t used = 0, capacity = 65536;
    vp_result result = VP_OK;
    if (!path || !text || !bytes) return vp_fail(error, VP_ERR_RANGE, -1, "vp_file_read", "a required pointer is NULL");
    if (stat(path, &info) != 0) return vp_impl_open_failed(path, error);
    if (S_ISDIR(info.st_mode)) return vp_fail(error, VP_ERR_READ, -1, path, "this is a folder, not a file");
    file = fopen(path, "rb");
    if (!file) return vp_impl_open_failed(path, error);
    if (S_ISREG(info.st_mode) && info.st_size >= 0 && (uint64_t)info.st_size < (uint64_t)(SIZE_MAX / 4)) capacity = (size_t)info.st_size + 2;
    /* the size is a hint only: a pipe has none and a file may grow. One byte more than the limit shows that it is passed. */
    if (limit_bytes > SIZE_MAX - 2) limit_bytes = SIZE_MAX - 2;
    if (capacity > limit_bytes + 2) capacity = limit_bytes + 2;
    for (;;) {
        char *grown = (char *)realloc(data, capacity);
        if (!grown) { result = vp_fail(error, VP_ERR_MEMORY, -1, path, "not enough memory for the file"); break; }
        data = grown;
        used += fread(data + used, 1, capacity - 1 - used, file);
        if (ferror(file)) { result = vp_fail(error, VP_ERR_READ, (int64_t)used, path, "reading the file failed"); break; }
        if (used > limit_bytes) {
            result = vp_impl_failf(error, VP_ERR_RANGE, -1, path, "the file is larger than the limit of %llu bytes", (unsigned long long)limit_bytes);
            break;
        }
        if (used < capacity - 1) break; /* end of file */
        capacity = capacity > (limit_bytes + 2) / 2 ? limit_bytes + 2 : capacity * 2;
    }
    fclose(file);
    if (result != VP_OK) {
        free(data);
        return result;
    }
    data[used] = 0;
    *text = data;
    *bytes = used;
    return VP_OK;
}

/* Parses into malloc'ed nodes (free json->nodes). `where` names the text in errors. */
static vp_result vp_impl_json_load(const char *text, size_t bytes, const char *where, vp_json *json, vp_error *error) {
    vp_error local;
    vp_json_node *nodes;
    size_t needed = 0, total;
    vp_result result = vp_json_parse(text, bytes, NULL, 0, NULL, &needed, &local);
    if (result != VP_OK && result != VP_ERR_CAPACITY) return vp_fail(error, result, local.offset, where, local.text);
    if (!vp_impl_size_multiply(needed ? needed : 1, sizeof *nodes, &total) || !(nodes = (vp_json_node *)malloc(total)))
        return vp_fail(error, VP_ERR_MEMORY, -1, where, "not enough memory for the JSON text");
    result = vp_json_parse(text, bytes, nodes, needed, json, &needed, &local);
    if (result == VP_OK) return VP_OK;
    free(nodes);
    return vp_fail(error, result, local.offset, where, local.text);
}

/* ------------------------------------------------------------------------------------------------------ config */
/* One object of a config file. The first error stays in `result`, so that a list of fields reads as a list. */
typedef struct vp_impl_fields {
    const vp_json *json;
    uint32_t object;
    const char *prefix; /* of field names in errors */
    vp_result result;
    vp_error *error;
} vp_impl_fields;

static void vp_impl_fields_fail(vp_impl_fields *f, vp_result code, const char *field, const char *text) {
    char where[sizeof f->error->where];
    vp_impl_print(where, sizeof where, "%s%s", f->prefix, field);
    if (f->result == VP_OK) f->result = vp_fail(f->error, code, -1, where, text);
}

/* node of a field, or VP_JSON_NONE when it is absent; null counts as absent where `null_is_absent` */
static uint32_t vp_impl_fields_get(const vp_impl_fields *f, const char *field, int null_is_absent) {
    uint32_t node = vp_json_get(f->json, f->object, field);
    if (node != VP_JSON_NONE && null_is_absent && f->json->nodes[node].type == VP_JSON_NULL) return VP_JSON_NONE;
    return node;
}

/* An integer in minimum..maximum. fallback < 0: the field is required. */
static int32_t vp_impl_fields_int(vp_impl_fields *f, const char *field, int32_t minimum, int32_t maximum, int32_t fallback) {
    char text[128];
    uint32_t node;
    int64_t value = 0;
    if (f->result != VP_OK) return 0;
    node = vp_impl_fields_get(f, field, fallback >= 0);
    if (node == VP_JSON_NONE) {
        if (fallback < 0) vp_impl_fields_fail(f, VP_ERR_NOT_FOUND, field, "this field is missing");
        return fallback;
    }
    if (f->json->nodes[node].type != VP_JSON_NUMBER || vp_json_to_int(f->json, node, &value) == VP_ERR_FORMAT) {
        vp_impl_fields_fail(f, VP_ERR_FORMAT, field, "this field must be an integer");
        return 0;
    }
    if (vp_json_to_int(f->json, node, &value) != VP_OK || value < minimum || value > maximum) {
        vp_impl_print(text, sizeof text, "this field must be in %d..%d", (int)minimum, (int)maximum);
        vp_impl_fields_fail(f, VP_ERR_RANGE, field, text);
        return 0;
    }
    return (int32_t)value;
}

/* A number with minimum < value < maximum; the fallback holds for absent and null. */
static double vp_impl_fields_double(vp_impl_fields *f, const char *field, double minimum, double maximum, double fallback) {
    char text[128];
    uint32_t node;
    double value = 0;
    if (f->result != VP_OK) return 0;
    node = vp_impl_fields_get(f, field, 1);
    if (node == VP_JSON_NONE) return fallback;
    if (f->json->nodes[node].type != VP_JSON_NUMBER) {
        vp_impl_fields_fail(f, VP_ERR_FORMAT, field, "this field must be a number");
    } else if (vp_json_to_double(f->json, node, &value) != VP_OK || !(value > minimum && value < maximum)) {
        vp_impl_print(text, sizeof text, "this field must be between %g and %g", minimum, maximum);
        vp_impl_fields_fail(f, VP_ERR_RANGE, field, text);
    }
    return value;
}

/* An array of integers; its length is 1..capacity. An absent one leaves `out` and returns 0. */
static int32_t vp_impl_fields_ints(vp_impl_fields *f, const char *field, int32_t minimum, int32_t maximum, int32_t capacity, int32_t *out) {
    char text[128];
    uint32_t node, i, count;
    int64_t value = 0;
    if (f->result != VP_OK) return 0;
    node = vp_impl_fields_get(f, field, 0);
    if (node == VP_JSON_NONE) return 0;
    count = f->json->nodes[node].count;
    vp_impl_print(text, sizeof text, "this field must be a list of 1 to %d integers in %d..%d", (int)capacity, (int)minimum, (int)maximum);
    if (f->json->nodes[node].type != VP_JSON_ARRAY || count < 1 || count > (uint32_t)capacity) {
        vp_impl_fields_fail(f, VP_ERR_FORMAT, field, text);
        return 0;
    }
    for (i = 0; i < count; i++) {
        uint32_t item = vp_json_at(f->json, node, i);
        if (f->json->nodes[item].type != VP_JSON_NUMBER || vp_json_to_int(f->json, item, &value) != VP_OK) {
            vp_impl_fields_fail(f, VP_ERR_FORMAT, field, text);
            return 0;
        }
        if (value < minimum || value > maximum) {
            vp_impl_fields_fail(f, VP_ERR_RANGE, field, text);
            return 0;
        }
        out[i] = (int32_t)value;
    }
    return (int32_t)count;
}

/* Three finite numbers, or nothing when the field is absent. */
static void vp_impl_fields_rgb(vp_impl_fields *f, const char *field, float out[3]) {
    uint32_t node, i;
    double value[3] = {0, 0, 0};
    if (f->result != VP_OK) return;
    node = vp_impl_fields_get(f, field, 0);
    if (node == VP_JSON_NONE) return;
    if (f->json->nodes[node].type != VP_JSON_ARRAY || f->json->nodes[node].count != 3) {
        vp_impl_fields_fail(f, VP_ERR_FORMAT, field, "this field must be a list of 3 numbers");
        return;
    }
    for (i = 0; i < 3; i++) {
        uint32_t item = vp_json_at(f->json, node, i);
        if (f->json->nodes[item].type != VP_JSON_NUMBER) {
            vp_impl_fields_fail(f, VP_ERR_FORMAT, field, "this field must be a list of 3 numbers");
            return;
        }
        if (vp_json_to_double(f->json, item, &value[i]) != VP_OK || !(value[i] > -1e6 && value[i] < 1e6)) {
            vp_impl_fields_fail(f, VP_ERR_RANGE, field, "each number must be between -1e6 and 1e6");
            return;
        }
    }
    for (i = 0; i < 3; i++) out[i] = (float)value[i];
}

/* A setting of which the engine implements only some values. `wanted` and `absent` are written as JSON writes them, strings without quotes;
 * `absent` is the reference's default. */
typedef struct vp_impl_setting { const char *field, *wanted, *other_wanted, *absent; } vp_impl_setting;

static int vp_impl_setting_is(const vp_json *json, uint32_t node, const char *wanted) {
    const vp_json_node *n = &json->nodes[node];
    int64_t value = 0;
    size_t bytes = strlen(wanted);
    if (n->type == VP_JSON_STRING) return wanted[0] >= 'a' && strcmp(wanted, "null") && strcmp(wanted, "true") && strcmp(wanted, "false")
                                          && vp_json_equals(json, node, wanted);
    if (n->type == VP_JSON_NUMBER) return bytes == 1 && vp_json_to_int(json, node, &value) == VP_OK && value == wanted[0] - '0';
    return n->bytes == bytes && memcmp(json->text + n->start, wanted, bytes) == 0;
}

static void vp_impl_fields_settings(vp_impl_fields *f, const vp_impl_setting *settings, size_t count) {
    char text[sizeof f->error->text], got[64];
    size_t i;
    for (i = 0; i < count && f->result == VP_OK; i++) {
        const vp_impl_setting *s = &settings[i];
        uint32_t node = vp_impl_fields_get(f, s->field, 0);
        if (node != VP_JSON_NONE) {
            const vp_json_node *n = &f->json->nodes[node];
            if (vp_impl_setting_is(f->json, node, s->wanted) || vp_impl_setting_is(f->json, node, s->other_wanted)) continue;
            vp_impl_print(got, sizeof got, "%.*s", (int)(n->bytes < 40 ? n->bytes : 40), f->json->text + n->start);
            vp_impl_print(text, sizeof text, "the value %s is not implemented; vlmprof runs models where it is %s", got, s->wanted);
        } else {
            if (!strcmp(s->absent, s->wanted) || !strcmp(s->absent, s->other_wanted)) continue;
            vp_impl_print(text, sizeof text, "the field is absent, which means %s; vlmprof runs models where it is %s", s->absent, s->wanted);
        }
        vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, s->field, text);
    }
}

static void vp_impl_config_settings(vp_impl_fields *f) {
    static const vp_impl_setting settings[] = {
        {"model_type", "molmo", "molmo", "molmo"},
        {"block_type", "moe", "moe", "sequential"},
        {"block_group_size", "1", "1", "1"},
        {"activation_type", "swiglu", "swiglu", "swiglu"},
        {"alibi", "false", "false", "false"},
        {"attention_layer_norm", "true", "true", "false"},
        {"attention_layer_norm_with_affine", "true", "true", "true"},
        {"attn_logit_softcapping", "null", "null", "null"},
        {"bias_for_layer_norm", "false", "null", "null"},
        {"clip_qkv", "null", "null", "null"},
        {"crop_mode", "overlap-and-resize-c2", "overlap-and-resize-c2", "overlap-and-resize-c2"}, /* the HF processor knows no other */
        {"final_logit_softcapping", "null", "null", "null"},
        {"fix_image_input_idx", "2", "2", "2"},
        {"image_padding_embed", "pad_and_partial_pad", "pad_and_partial_pad", "null"},
        {"image_pooling_2d", "attention-meanq", "attention-meanq", "attention"},
        {"image_pooling_h", "2", "2", "2"},
        {"image_pooling_w", "2", "2", "2"},
        {"image_projector", "mlp", "mlp", "mlp"},
        {"include_bias", "false", "false", "true"},
        {"layer_norm_type", "rms", "rms", "default"},
        {"layer_norm_with_affine", "true", "true", "true"},
        {"moe_dropless", "true", "null", "true"},
        {"moe_interleave", "false", "null", "false"},
        {"moe_shared_expert", "false", "null", "false"},
        {"multi_query_attention", "null", "false", "null"},
        {"norm_after", "false", "false", "false"},
        {"normalize_input_embeds", "false", "false", "false"},
        {"pad_to", "null", "null", "null"},
        {"qkv_bias", "false", "false", "false"},
        {"quantization_config", "null", "null", "null"},
        {"rope", "true", "true", "false"},
        {"rope_impl", "llama", "llama", "cockatoo"},
        {"rope_scaling", "null", "null", "null"},
        {"scale_logits", "false", "false", "false"},
        {"unconditioned", "false", "false", "false"},
        {"use_cls_feature", "false", "false", "false"},
        {"use_col_tokens", "true", "true", "true"},
        {"weight_tying", "false", "false", "true"},
    };
    vp_impl_fields_settings(f, settings, sizeof settings / sizeof settings[0]);
}

static void vp_impl_config_language(vp_impl_fields *f, vp_model_config *c) {
    int32_t hidden = 0, ratio;
    c->d_model = vp_impl_fields_int(f, "d_model", 2, 65536, -1);
    c->head_count = vp_impl_fields_int(f, "n_heads", 1, 4096, -1);
    c->block_count = vp_impl_fields_int(f, "n_layers", 1, 1024, -1);
    c->expert_count = vp_impl_fields_int(f, "moe_num_experts", 1, 1024, -1);
    c->top_k = vp_impl_fields_int(f, "moe_top_k", 1, 1024, -1);
    c->vocab_size = vp_impl_fields_int(f, "vocab_size", 1, 1 << 24, -1);
    c->embedding_size = vp_impl_fields_int(f, "embedding_size", 1, 1 << 24, c->vocab_size > 0 ? c->vocab_size : 0);
    c->additional_vocab_size = vp_impl_fields_int(f, "additional_vocab_size", 0, 1 << 24, 0);
    c->max_sequence_length = vp_impl_fields_int(f, "max_sequence_length", 1, 1 << 24, 1024);
    c->max_positions = vp_impl_fields_int(f, "max_position_embeddings", 1, 1 << 24, c->max_sequence_length);
    c->rope_theta = vp_impl_fields_double(f, "rope_theta", 0, 1e30, 10000.0);
    c->norm_eps = (float)vp_impl_fields_double(f, "layer_norm_eps", 0, 1, 1e-5);
    ratio = vp_impl_fields_int(f, "mlp_ratio", 1, 65536, 4);
    hidden = vp_impl_fields_int(f, "mlp_hidden_size", 2, 1 << 20, 0);
    if (f->result != VP_OK) return;
    if (hidden == 0) {
        if ((int64_t)ratio * c->d_model > 1 << 20) {
            vp_impl_fields_fail(f, VP_ERR_RANGE, "mlp_ratio", "mlp_ratio * d_model is above 1048576");
            return;
        }
        hidden = ratio * c->d_model;
    }
    c->expert_dim = c->projector_dim = hidden / 2; /* the reference's floor division */
    c->head_dim = c->d_model / c->head_count;
    if (c->d_model % c->head_count) vp_impl_fields_fail(f, VP_ERR_MISMATCH, "d_model", "d_model is not a multiple of n_heads");
    else if (c->head_dim % 2) vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, "n_heads", "d_model / n_heads is odd; RoPE turns pairs");
    else if (vp_impl_fields_int(f, "head_dim", 1, 65536, c->head_dim) != c->head_dim)
        vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, "head_dim", "only d_model / n_heads is implemented");
    else if (vp_impl_fields_int(f, "n_kv_heads", 1, 4096, c->head_count) != c->head_count)
        vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, "n_kv_heads", "grouped-query attention is not implemented; n_kv_heads must be null or n_heads");
    else if (c->top_k > c->expert_count) vp_impl_fields_fail(f, VP_ERR_RANGE, "moe_top_k", "moe_top_k is above moe_num_experts");
    else if (c->embedding_size < c->vocab_size) vp_impl_fields_fail(f, VP_ERR_RANGE, "embedding_size", "embedding_size is below vocab_size");
    else if (vp_impl_fields_get(f, "additional_vocab_size", 1) == VP_JSON_NONE)
        vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, "additional_vocab_size", "models without additional embedding rows are not implemented");
    else if (!(c->norm_eps > 0)) vp_impl_fields_fail(f, VP_ERR_RANGE, "layer_norm_eps", "the value vanishes in float32");
}

/* the ViT; `vit_layers` stands in the outer object */
static void vp_impl_config_vision(vp_impl_fields *f, vp_impl_fields *v, vp_model_config *c) {
    static const vp_impl_setting settings[] = {
        {"image_model_type", "openai", "openai", "openai"},
        {"image_mlp_activations", "quick_gelu", "quick_gelu", "gelu"},
        {"resize_mode", "default", "default", "default"},
    };
    int32_t i;
    vp_impl_fields_settings(v, settings, sizeof settings / sizeof settings[0]);
    c->vit_width = vp_impl_fields_int(v, "image_emb_dim", 1, 65536, 1024);
    c->vit_head_count = vp_impl_fields_int(v, "image_num_heads", 1, 4096, 16);
    c->vit_head_dim = vp_impl_fields_int(v, "image_head_dim", 1, 4096, 64);
    c->vit_mlp_dim = vp_impl_fields_int(v, "image_mlp_dim", 1, 1 << 20, 4096);
    c->vit_block_count = vp_impl_fields_int(v, "image_num_layers", 1, 1024, 24);
    c->vit_positions = vp_impl_fields_int(v, "image_num_pos", 2, 1 << 20, 577);
    c->vit_norm_eps = (float)vp_impl_fields_double(v, "image_norm_eps", 0, 1, 1e-5);
    if (v->result != VP_OK) return;
    if (c->vit_head_count * c->vit_head_dim != c->vit_width)
        vp_impl_fields_fail(v, VP_ERR_UNSUPPORTED, "image_head_dim", "only image_emb_dim / image_num_heads is implemented");
    else if (vp_impl_fields_int(v, "image_num_key_value_heads", 1, 4096, c->vit_head_count) != c->vit_head_count)
        vp_impl_fields_fail(v, VP_ERR_UNSUPPORTED, "image_num_key_value_heads", "grouped-query attention is not implemented");
    else if (!(c->vit_norm_eps > 0)) vp_impl_fields_fail(v, VP_ERR_RANGE, "image_norm_eps", "the value vanishes in float32");
    if (v->result != VP_OK) return;
    c->vit_layers[0] = -1;
    c->vit_layer_count = 1;
    i = vp_impl_fields_ints(f, "vit_layers", -c->vit_block_count, c->vit_block_count - 1, VP_VIT_LAYERS_MAX, c->vit_layers);
    if (i > 0) c->vit_layer_count = i;
    c->vit_blocks_needed = 0;
    for (i = 0; i < c->vit_layer_count; i++) {
        int32_t block = c->vit_layers[i] < 0 ? c->vit_layers[i] + c->vit_block_count : c->vit_layers[i];
        if (block + 1 > c->vit_blocks_needed) c->vit_blocks_needed = block + 1;
    }
}

/* a square size given as [side, side]; 0 when absent */
static int32_t vp_impl_fields_side(vp_impl_fields *f, const char *field) {
    int32_t side[2] = {0, 0}, count = vp_impl_fields_ints(f, field, 1, 65536, 2, side);
    if (f->result == VP_OK && count == 1) vp_impl_fields_fail(f, VP_ERR_FORMAT, field, "this field must be a list of 2 integers");
    if (f->result == VP_OK && count == 2 && side[0] != side[1])
        vp_impl_fields_fail(f, VP_ERR_UNSUPPORTED, field, "only square crops are implemented");
    return side[0];
}

static void vp_impl_fields_margins(vp_impl_fields *f, vp_geometry *g) {
    int32_t margins[2] = {4, 4}, count = vp_impl_fields_ints(f, "overlap_margins", 0, 65536, 2, margins);
    if (f->result == VP_OK && count == 1) vp_impl_fields_fail(f, VP_ERR_FORMAT, "overlap_margins", "this field must be a list of 2 integers");
    if (count != 2) return;
    g->margin_left_patches = margins[0];
    g->margin_right_patches = margins[1];
}

/* config.json's idea of the geometry */
static void vp_impl_config_geometry(vp_impl_fields *f, vp_impl_fields *v, vp_geometry *g) {
    int32_t side = vp_impl_fields_side(v, "image_default_input_size");
    *g = vp_geometry_default();
    if (side) g->crop_px = side;
    g->patch_px = vp_impl_fields_int(v, "image_patch_size", 1, 1024, 14);
    if (v->result == VP_OK && vp_impl_fields_int(v, "image_pos_patch_size", 1, 1024, g->patch_px) != g->patch_px && v->result == VP_OK)
        vp_impl_fields_fail(v, VP_ERR_UNSUPPORTED, "image_pos_patch_size", "differs from image_patch_size; interpolation is not implemented");
    vp_impl_fields_margins(f, g);
    g->max_crops = vp_impl_fields_int(f, "max_crops", 1, 4096, g->max_crops);
}

/* preprocessor_config.json overrides it, but may not contradict the ViT */
static void vp_impl_config_preprocessor(vp_impl_fields *p, vp_geometry *g) {
    static const vp_impl_setting settings[] = {
        {"do_normalize", "true", "true", "true"},
        {"image_padding_mask", "true", "true", "true"},
    };
    int32_t side, tokens;
    vp_impl_fields_settings(p, settings, sizeof settings / sizeof settings[0]);
    side = vp_impl_fields_side(p, "base_image_input_size");
    if (p->result == VP_OK && side && side != g->crop_px)
        vp_impl_fields_fail(p, VP_ERR_MISMATCH, "base_image_input_size", "differs from vision_backbone.image_default_input_size in config.json");
    if (vp_impl_fields_int(p, "image_patch_size", 1, 1024, g->patch_px) != g->patch_px)
        vp_impl_fields_fail(p, VP_ERR_MISMATCH, "image_patch_size", "differs from vision_backbone.image_patch_size in config.json");
    vp_impl_fields_margins(p, g);
    g->max_crops = vp_impl_fields_int(p, "max_crops", 1, 4096, g->max_crops);
    vp_impl_fields_rgb(p, "image_mean", g->mean);
    vp_impl_fields_rgb(p, "image_std", g->std);
    if (p->result != VP_OK) return;
    tokens = g->crop_px / g->patch_px / g->pool;
    if (vp_impl_fields_int(p, "image_token_length_h", 1, 65536, tokens) != tokens)
        vp_impl_fields_fail(p, VP_ERR_MISMATCH, "image_token_length_h", "is not crop side / patch side / 2");
    if (vp_impl_fields_int(p, "image_token_length_w", 1, 65536, tokens) != tokens)
        vp_impl_fields_fail(p, VP_ERR_MISMATCH, "image_token_length_w", "is not crop side / patch side / 2");
}

static vp_result vp_impl_config_read(const vp_json *json, const vp_json *preprocessor, vp_model_config *c, vp_error *error) {
    vp_impl_fields f, v;
    int64_t side;
    f.json = json; f.object = 0; f.prefix = ""; f.result = VP_OK; f.error = error;
    v = f;
    v.prefix = "vision_backbone.";
    if (json->nodes[0].type != VP_JSON_OBJECT) return vp_fail(error, VP_ERR_FORMAT, 0, "config.json", "the text is not a JSON object");
    vp_impl_config_settings(&f);
    vp_impl_config_language(&f, c);
    if (f.result != VP_OK) return f.result;
    v.object = vp_impl_fields_get(&f, "vision_backbone", 1);
    if (v.object == VP_JSON_NONE)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "vision_backbone", "models without a vision backbone are not implemented");
    if (json->nodes[v.object].type != VP_JSON_OBJECT)
        return vp_fail(error, VP_ERR_FORMAT, -1, "vision_backbone", "this field must be an object");
    vp_impl_config_vision(&f, &v, c);
    if (v.result != VP_OK || f.result != VP_OK) return v.result != VP_OK ? v.result : f.result;
    vp_impl_config_geometry(&f, &v, &c->geometry);
    if (v.result != VP_OK || f.result != VP_OK) return v.result != VP_OK ? v.result : f.result;
    if (preprocessor) {
        vp_impl_fields p = f;
        if (preprocessor->nodes[0].type != VP_JSON_OBJECT)
            return vp_fail(error, VP_ERR_FORMAT, 0, "preprocessor_config.json", "the text is not a JSON object");
        p.json = preprocessor;
        p.prefix = "preprocessor_config.json: ";
        vp_impl_config_preprocessor(&p, &c->geometry);
        if (p.result != VP_OK) return p.result;
    }
    if (vp_geometry_check(&c->geometry) != VP_OK)
        return vp_fail(error, VP_ERR_RANGE, -1, "geometry", "crop side, patch side, overlap_margins, max_crops, mean and std do not fit together");
    side = c->geometry.crop_px / c->geometry.patch_px;
    if (c->vit_positions != side * side + 1)
        return vp_fail(error, VP_ERR_MISMATCH, -1, "vision_backbone.image_num_pos", "is not 1 + (image size / patch size)^2");
    return VP_OK;
}

VP_API vp_result vp_model_config_parse(const char *config_json, size_t config_bytes, const char *preprocessor_json, size_t preprocessor_bytes,
                                       vp_model_config *config, vp_error *error) {
    vp_json json, preprocessor;
    vp_model_config c;
    vp_result result;
    if (!config_json || !config) return vp_fail(error, VP_ERR_RANGE, -1, "vp_model_config_parse", "a required pointer is NULL");
    memset(&json, 0, sizeof json);
    memset(&preprocessor, 0, sizeof preprocessor);
    memset(&c, 0, sizeof c);
    result = vp_impl_json_load(config_json, config_bytes, "config.json", &json, error);
    if (result == VP_OK && preprocessor_json)
        result = vp_impl_json_load(preprocessor_json, preprocessor_bytes, "preprocessor_config.json", &preprocessor, error);
    if (result == VP_OK) result = vp_impl_config_read(&json, preprocessor_json ? &preprocessor : NULL, &c, error);
    free((void *)json.nodes);
    free((void *)preprocessor.nodes);
    if (result == VP_OK) *config = c;
    return result;
}

/* ----------------------------------------------------------------------------------------------------- presets */
static vp_model_config vp_impl_preset_molmoe_1b(void) {
    vp_model_config c;
    memset(&c, 0, sizeof c);
    c.d_model = 2048; c.head_count = 16; c.head_dim = 128; c.block_count = 16;
    c.expert_count = 64; c.expert_dim = 1024; c.top_k = 8;
    c.vocab_size = 50280; c.embedding_size = 50304; c.additional_vocab_size = 128;
    c.max_sequence_length = c.max_positions = 4096;
    c.rope_theta = 10000.0;
    c.norm_eps = 1e-5f;
    c.vit_width = 1024; c.vit_head_count = 16; c.vit_head_dim = 64; c.vit_mlp_dim = 4096; c.vit_block_count = 23; c.vit_positions = 577;
    c.vit_norm_eps = 1e-5f;
    c.vit_layers[0] = -2; c.vit_layers[1] = -9; c.vit_layer_count = 2;
    c.vit_blocks_needed = 22;
    c.projector_dim = 1024;
    c.geometry = vp_geometry_default();
    return c;
}

static vp_model_config vp_impl_preset_tiny(void) {
    vp_model_config c = vp_impl_preset_molmoe_1b();
    c.d_model = 128; c.head_count = 4; c.head_dim = 32; c.block_count = 4;
    c.expert_count = 8; c.expert_dim = 64; c.top_k = 2;
    c.vocab_size = 259; c.embedding_size = 320; c.additional_vocab_size = 16;
    c.vit_width = 64; c.vit_head_count = 4; c.vit_head_dim = 16; c.vit_mlp_dim = 256; c.vit_block_count = 5;
    c.vit_layers[1] = -4;
    c.vit_blocks_needed = 4;
    c.projector_dim = 64;
    return c;
}

VP_API vp_result vp_model_config_preset(const char *name, vp_model_config *config) {
    if (!name || !config) return VP_ERR_RANGE;
    if (!strcmp(name, "molmoe-1b")) *config = vp_impl_preset_molmoe_1b();
    else if (!strcmp(name, "tiny")) *config = vp_impl_preset_tiny();
    else return VP_ERR_NOT_FOUND;
    return VP_OK;
}

VP_API vp_result vp_model_preset_ids(const char *name, vp_special_ids *ids) {
    int32_t eos;
    if (!name || !ids) return VP_ERR_RANGE;
    if (!strcmp(name, "molmoe-1b")) eos = 50279;
    else if (!strcmp(name, "tiny")) eos = 258; /* behind the byte tokenizer's ids */
    else return VP_ERR_NOT_FOUND;
    ids->pad = 1;
    ids->bos = ids->eos = eos;
    ids->im_start = eos + 1;
    ids->im_end = eos + 2;
    ids->im_patch = eos + 3;
    ids->im_col = eos + 4;
    ids->image = eos + 5;
    return VP_OK;
}

/* ---------------------------------------------------------------------------------------------- wanted tensors */
enum {
    VP_IMPL_EMBED_TENSORS = 3, VP_IMPL_BLOCK_TENSORS = 7, VP_IMPL_EXPERT_TENSORS = 3,
    VP_IMPL_VISION_TENSORS = 17, VP_IMPL_VIT_BLOCK_TENSORS = 16
};

VP_API int64_t vp_model_tensor_count(const vp_model_config *config) {
    return VP_IMPL_EMBED_TENSORS + (int64_t)config->block_count * (VP_IMPL_BLOCK_TENSORS + (int64_t)VP_IMPL_EXPERT_TENSORS * config->expert_count)
        + VP_IMPL_VISION_TENSORS + (int64_t)VP_IMPL_VIT_BLOCK_TENSORS * config->vit_block_count + 1;
}

/* columns 0: one dimension */
static vp_result vp_impl_spec_set(vp_tensor_spec *spec, const char *prefix, const char *name, int64_t rows, int64_t columns) {
    vp_impl_print(spec->name, sizeof spec->name, "model.%s%s", prefix, name);
    spec->dimensions = columns ? 2 : 1;
    spec->shape[0] = rows;
    spec->shape[1] = columns;
    return VP_OK;
}

static vp_result vp_impl_spec_block(const vp_model_config *c, int64_t block, int64_t index, vp_tensor_spec *spec) {
    char prefix[64];
    int64_t d = c->d_model, dim = c->expert_dim, expert = (index - VP_IMPL_BLOCK_TENSORS) / VP_IMPL_EXPERT_TENSORS;
    vp_impl_print(prefix, sizeof prefix, "transformer.blocks.%d.", (int)block);
    switch (index) {
        case 0: return vp_impl_spec_set(spec, prefix, "attn.q_norm.weight", d, 0);
        case 1: return vp_impl_spec_set(spec, prefix, "attn.k_norm.weight", d, 0);
        case 2: return vp_impl_spec_set(spec, prefix, "attn.att_proj.weight", 3 * d, d);
        case 3: return vp_impl_spec_set(spec, prefix, "attn.attn_out.weight", d, d);
        case 4: return vp_impl_spec_set(spec, prefix, "attn.attn_norm.weight", d, 0);
        case 5: return vp_impl_spec_set(spec, prefix, "mlp.gate.weight", c->expert_count, d);
        case 6: return vp_impl_spec_set(spec, prefix, "mlp.ff_norm.weight", d, 0);
        default: break;
    }
    vp_impl_print(prefix, sizeof prefix, "transformer.blocks.%d.mlp.experts.%d.", (int)block, (int)expert);
    switch ((index - VP_IMPL_BLOCK_TENSORS) % VP_IMPL_EXPERT_TENSORS) {
        case 0: return vp_impl_spec_set(spec, prefix, "gate_proj.weight", dim, d);
        case 1: return vp_impl_spec_set(spec, prefix, "up_proj.weight", dim, d);
        default: return vp_impl_spec_set(spec, prefix, "down_proj.weight", d, dim);
    }
}

static vp_result vp_impl_spec_vision(const vp_model_config *c, int64_t index, vp_tensor_spec *spec) {
    const char *prefix = "vision_backbone.";
    int64_t w = c->vit_width, inner = (int64_t)c->vit_head_count * c->vit_head_dim, in = (int64_t)c->vit_layer_count * w;
    int64_t patch = (int64_t)c->geometry.patch_px * c->geometry.patch_px * 3;
    switch (index) {
        case 0: return vp_impl_spec_set(spec, prefix, "pad_embed", 2, in);
        case 1: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wq.weight", inner, in);
        case 2: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wq.bias", inner, 0);
        case 3: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wk.weight", inner, in);
        case 4: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wk.bias", inner, 0);
        case 5: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wv.weight", inner, in);
        case 6: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wv.bias", inner, 0);
        case 7: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wo.weight", w, inner);
        case 8: return vp_impl_spec_set(spec, prefix, "image_pooling_2d.wo.bias", w, 0);
        case 9: return vp_impl_spec_set(spec, prefix, "image_projector.w1.weight", c->projector_dim, w);
        case 10: return vp_impl_spec_set(spec, prefix, "image_projector.w2.weight", c->d_model, c->projector_dim);
        case 11: return vp_impl_spec_set(spec, prefix, "image_projector.w3.weight", c->projector_dim, w);
        case 12: return vp_impl_spec_set(spec, prefix, "image_vit.class_embedding", w, 0);
        case 13: return vp_impl_spec_set(spec, prefix, "image_vit.positional_embedding", c->vit_positions, w);
        case 14: return vp_impl_spec_set(spec, prefix, "image_vit.patch_embedding.weight", w, patch);
        case 15: return vp_impl_spec_set(spec, prefix, "image_vit.pre_ln.weight", w, 0);
        default: return vp_impl_spec_set(spec, prefix, "image_vit.pre_ln.bias", w, 0);
    }
}

static vp_result vp_impl_spec_vit_block(const vp_model_config *c, int64_t block, int64_t index, vp_tensor_spec *spec) {
    static const char *const names[VP_IMPL_VIT_BLOCK_TENSORS] = {
        "attention.wq.weight", "attention.wq.bias", "attention.wk.weight", "attention.wk.bias", "attention.wv.weight", "attention.wv.bias",
        "attention.wo.weight", "attention.wo.bias", "feed_forward.w1.weight", "feed_forward.w1.bias", "feed_forward.w2.weight",
        "feed_forward.w2.bias", "attention_norm.weight", "attention_norm.bias", "ffn_norm.weight", "ffn_norm.bias"};
    char prefix[80];
    int64_t w = c->vit_width, inner = (int64_t)c->vit_head_count * c->vit_head_dim, rows = w, columns = 0;
    if (index < 6) rows = inner;
    if (index == 8 || index == 9) rows = c->vit_mlp_dim;
    if (index < 12 && index % 2 == 0) columns = index == 6 ? inner : index == 10 ? c->vit_mlp_dim : w;
    vp_impl_print(prefix, sizeof prefix, "vision_backbone.image_vit.transformer.resblocks.%d.", (int)block);
    return vp_impl_spec_set(spec, prefix, names[index], rows, columns);
}

VP_API vp_result vp_model_tensor(const vp_model_config *config, int64_t index, vp_tensor_spec *spec) {
    int64_t per_block, rest = index;
    if (!config || !spec || index < 0 || index >= vp_model_tensor_count(config)) return VP_ERR_RANGE;
    memset(spec, 0, sizeof *spec);
    if (rest == 0) return vp_impl_spec_set(spec, "", "transformer.wte.embedding", config->embedding_size, config->d_model);
    if (rest == 1) return vp_impl_spec_set(spec, "", "transformer.wte.new_embedding", config->additional_vocab_size, config->d_model);
    if (rest == 2) return vp_impl_spec_set(spec, "", "transformer.ln_f.weight", config->d_model, 0);
    rest -= VP_IMPL_EMBED_TENSORS;
    per_block = VP_IMPL_BLOCK_TENSORS + (int64_t)VP_IMPL_EXPERT_TENSORS * config->expert_count;
    if (rest < per_block * config->block_count) return vp_impl_spec_block(config, rest / per_block, rest % per_block, spec);
    rest -= per_block * config->block_count;
    if (rest < VP_IMPL_VISION_TENSORS) return vp_impl_spec_vision(config, rest, spec);
    rest -= VP_IMPL_VISION_TENSORS;
    if (rest < (int64_t)VP_IMPL_VIT_BLOCK_TENSORS * config->vit_block_count)
        return vp_impl_spec_vit_block(config, rest / VP_IMPL_VIT_BLOCK_TENSORS, rest % VP_IMPL_VIT_BLOCK_TENSORS, spec);
    vp_impl_print(spec->name, sizeof spec->name, "lm_head.weight"); /* the one name outside "model." */
    spec->dimensions = 2;
    spec->shape[0] = config->embedding_size;
    spec->shape[1] = config->d_model;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------- safetensors */
#define VP_IMPL_HEADER_BYTES_MAX 100000000u /* the format's own limit */

typedef struct vp_impl_shard {
    char *path;
    const char *file; /* last part of path */
    unsigned char *map;
    size_t map_bytes;
    char *names; /* of its tensors, each with a NUL */
} vp_impl_shard;

typedef struct vp_impl_entry {
    const char *name;
    uint64_t begin, end; /* offsets into the map */
    int64_t shape[4];
    uint32_t dimensions; /* above 4 only the first 4 are kept */
    uint16_t type;       /* index into vp_impl_file_types */
    uint8_t used;
    int32_t shard;
} vp_impl_entry;

struct vp_checkpoint {
    vp_packed packed; /* weights NULL: none */
    vp_impl_shard *shards;
    int32_t shard_count;
    vp_impl_entry *entries; /* by name once all shards are read */
    size_t entry_count, entry_capacity;
};

typedef struct vp_impl_file_type { const char *name; uint32_t bits; } vp_impl_file_type;
static const vp_impl_file_type vp_impl_file_types[] = {
    {"F32", 32}, {"BF16", 16}, {"F16", 16}, /* in the order of vp_dtype */
    {"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8}, {"I8", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16}, {"I32", 32}, {"U32", 32}, {"C64", 64}, {"F64", 64}, {"I64", 64}, {"U64", 64}};
enum { VP_IMPL_FILE_TYPE_COUNT = sizeof vp_impl_file_types / sizeof vp_impl_file_types[0] };

/* what the checks of one header share */
typedef struct vp_impl_header {
    const vp_json *json;
    const char *where;
    uint64_t data_start; /* of the buffer in the file */
    vp_error *error;
} vp_impl_header;

static vp_result vp_impl_header_fail(const vp_impl_header *h, const char *name, const char *text) {
    return vp_impl_failf(h->error, VP_ERR_FORMAT, -1, h->where, "%.100s: %s", name, text);
}

/* digits only: safetensors has no fractions, exponents or signs */
static int vp_impl_json_u64(const vp_json *json, uint32_t node, uint64_t *out) {
    const vp_json_node *n = &json->nodes[node];
    uint64_t value = 0, i;
    if (n->type != VP_JSON_NUMBER || n->bytes < 1 || n->bytes > 20) return 0;
    for (i = 0; i < n->bytes; i++) {
        unsigned digit = (unsigned)(unsigned char)json->text[n->start + i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) return 0;
        value = value * 10 + digit;
    }
    *out = value;
    return 1;
}

static vp_result vp_impl_header_shape(const vp_impl_header *h, uint32_t node, vp_impl_entry *e, uint64_t *elements) {
    uint32_t i, item = node + 1, count = h->json->nodes[node].count;
    uint64_t side = 0;
    if (h->json->nodes[node].type != VP_JSON_ARRAY) return vp_impl_header_fail(h, e->name, "shape is not a list");
    *elements = 1;
    for (i = 0; i < count; i++, item++) { /* numbers have no children, so the next element is the next node */
        if (!vp_impl_json_u64(h->json, item, &side) || side > (uint64_t)INT64_MAX)
            return vp_impl_header_fail(h, e->name, "shape must hold integers from 0");
        if (i < 4) e->shape[i] = (int64_t)side;
        if (side && *elements > UINT64_MAX / side) return vp_impl_header_fail(h, e->name, "the number of elements overflows");
        *elements *= side;
    }
    e->dimensions = count;
    return VP_OK;
}

static vp_result vp_impl_header_offsets(const vp_impl_header *h, uint32_t node, vp_impl_entry *e) {
    if (h->json->nodes[node].type != VP_JSON_ARRAY || h->json->nodes[node].count != 2 || !vp_impl_json_u64(h->json, node + 1, &e->begin)
        || !vp_impl_json_u64(h->json, node + 2, &e->end))
        return vp_impl_header_fail(h, e->name, "data_offsets must be two integers from 0");
    if (e->begin > e->end) return vp_impl_header_fail(h, e->name, "data_offsets end before they begin");
    return VP_OK;
}

static vp_result vp_impl_header_type(const vp_impl_header *h, uint32_t node, vp_impl_entry *e) {
    uint32_t i;
    for (i = 0; i < VP_IMPL_FILE_TYPE_COUNT; i++) {
        if (vp_json_equals(h->json, node, vp_impl_file_types[i].name)) {
            e->type = (uint16_t)i;
            return VP_OK;
        }
    }
    return vp_impl_header_fail(h, e->name, "unknown dtype");
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}; other members are left alone, as the reference does */
static vp_result vp_impl_header_tensor(const vp_impl_header *h, uint32_t object, vp_impl_entry *e) {
    static const char *const fields[3] = {"dtype", "shape", "data_offsets"};
    uint32_t nodes[3] = {VP_JSON_NONE, VP_JSON_NONE, VP_JSON_NONE}, i, k, key = object + 1, count = h->json->nodes[object].count, bits;
    uint64_t elements = 0, bytes;
    vp_result result;
    if (h->json->nodes[object].type != VP_JSON_OBJECT) return vp_impl_header_fail(h, e->name, "the entry is not an object");
    for (i = 0; i < count; i++, key = h->json->nodes[key + 1].end) {
        for (k = 0; k < 3; k++) {
            if (!vp_json_equals(h->json, key, fields[k])) continue;
            if (nodes[k] != VP_JSON_NONE) return vp_impl_header_fail(h, e->name, "dtype, shape or data_offsets stands twice");
            nodes[k] = key + 1;
        }
    }
    for (k = 0; k < 3; k++)
        if (nodes[k] == VP_JSON_NONE) return vp_impl_header_fail(h, e->name, "dtype, shape or data_offsets is missing");
    result = vp_impl_header_type(h, nodes[0], e);
    if (result == VP_OK) result = vp_impl_header_shape(h, nodes[1], e, &elements);
    if (result == VP_OK) result = vp_impl_header_offsets(h, nodes[2], e);
    if (result != VP_OK) return result;
    bits = vp_impl_file_types[e->type].bits;
    if (elements > UINT64_MAX / bits) return vp_impl_header_fail(h, e->name, "the size overflows");
    if (elements * bits % 8) return vp_impl_header_fail(h, e->name, "the elements do not fill whole bytes");
    bytes = elements * bits / 8;
    if (bytes != e->end - e->begin) return vp_impl_header_fail(h, e->name, "data_offsets do not span what dtype and shape need");
    return VP_OK;
}

static int vp_impl_text_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static int vp_impl_entry_order(const void *a, const void *b) {
    const vp_impl_entry *x = (const vp_impl_entry *)a, *y = (const vp_impl_entry *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->shard > y->shard) - (x->shard < y->shard);
}

static int vp_impl_offset_order(const void *a, const void *b) {
    const vp_impl_entry *x = (const vp_impl_entry *)a, *y = (const vp_impl_entry *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Unescaped copy of a string node at *end of a block that is large enough (unescaping never makes a text longer); NULL when it holds a NUL. */
static const char *vp_impl_json_keep(const vp_json *json, uint32_t node, char **end) {
    char *text = *end;
    size_t bytes = 0;
    if (vp_json_text(json, node, text, (size_t)json->nodes[node].bytes + 1, &bytes) != VP_OK || strlen(text) != bytes) return NULL;
    *end = text + bytes + 1;
    return text;
}

/* bytes that vp_impl_json_keep needs for all keys of an object, and with `values` for its string values too */
static size_t vp_impl_json_keep_bytes(const vp_json *json, uint32_t object, int values) {
    uint32_t i, key = object + 1;
    size_t bytes = 1;
    for (i = 0; i < json->nodes[object].count; i++, key = json->nodes[key + 1].end)
        bytes += (size_t)json->nodes[key].bytes + 1 + (values ? (size_t)json->nodes[key + 1].bytes + 1 : 0);
    return bytes;
}

/* the header's one key that is no tensor; written so, because the compiler owns such names */
#define VP_IMPL_METADATA "__" "metadata" "__"

/* the metadata: strings to strings, each key once */
static vp_result vp_impl_header_metadata(const vp_impl_header *h, uint32_t object) {
    uint32_t i, key = object + 1, count;
    const char **keys;
    char *names, *end;
    vp_result result = VP_OK;
    if (h->json->nodes[object].type != VP_JSON_OBJECT) return vp_impl_header_fail(h, VP_IMPL_METADATA, "this is not an object");
    count = h->json->nodes[object].count;
    names = end = (char *)malloc(vp_impl_json_keep_bytes(h->json, object, 0));
    keys = (const char **)malloc(((size_t)count + 1) * sizeof *keys);
    if (!names || !keys) result = vp_fail(h->error, VP_ERR_MEMORY, -1, h->where, "not enough memory for the header");
    for (i = 0; i < count && result == VP_OK; i++, key = h->json->nodes[key + 1].end) {
        if (h->json->nodes[key + 1].type != VP_JSON_STRING) result = vp_impl_header_fail(h, VP_IMPL_METADATA, "only strings are allowed as values");
        else if (!(keys[i] = vp_impl_json_keep(h->json, key, &end))) result = vp_impl_header_fail(h, VP_IMPL_METADATA, "a key holds a NUL character");
    }
    if (result == VP_OK && count > 1) {
        qsort(keys, count, sizeof *keys, vp_impl_text_order);
        for (i = 1; i < count && result == VP_OK; i++)
            if (!strcmp(keys[i - 1], keys[i])) result = vp_impl_header_fail(h, VP_IMPL_METADATA, "a key stands twice");
    }
    free(names);
    free((void *)keys);
    return result;
}

/* The entries of one file: no name twice, and the data tile the buffer from its first byte to its last. */
static vp_result vp_impl_header_check(const vp_impl_header *h, vp_impl_entry *entries, size_t count, uint64_t buffer_bytes) {
    uint64_t end = 0;
    size_t i;
    if (count) qsort(entries, count, sizeof *entries, vp_impl_entry_order);
    for (i = 1; i < count; i++)
        if (!strcmp(entries[i - 1].name, entries[i].name)) return vp_impl_header_fail(h, entries[i].name, "this key stands twice");
    if (count) qsort(entries, count, sizeof *entries, vp_impl_offset_order);
    for (i = 0; i < count; i++) {
        if (entries[i].begin < end) return vp_impl_header_fail(h, entries[i].name, "its data overlap those of another tensor");
        if (entries[i].begin > end) return vp_impl_header_fail(h, entries[i].name, "there is a hole before its data");
        end = entries[i].end;
    }
    if (end > buffer_bytes)
        return vp_impl_failf(h->error, VP_ERR_FORMAT, -1, h->where, "the file is truncated: tensors need %llu bytes of data, it has %llu",
                             (unsigned long long)end, (unsigned long long)buffer_bytes);
    if (end < buffer_bytes)
        return vp_impl_failf(h->error, VP_ERR_FORMAT, -1, h->where, "%llu bytes follow the last tensor", (unsigned long long)(buffer_bytes - end));
    for (i = 0; i < count; i++) {
        entries[i].begin += h->data_start;
        entries[i].end += h->data_start;
    }
    return VP_OK;
}

static vp_result vp_impl_header_read(const vp_impl_header *h, vp_checkpoint *cp, int32_t shard, uint64_t buffer_bytes) {
    uint32_t i, key = 1, count = h->json->nodes[0].count;
    size_t first = cp->entry_count, needed = first + count + 1, bytes; /* one more: never NULL, even without a tensor */
    int metadata_seen = 0;
    char *end;
    if (h->json->nodes[0].type != VP_JSON_OBJECT) return vp_fail(h->error, VP_ERR_FORMAT, 8, h->where, "the header is not a JSON object");
    end = cp->shards[shard].names = (char *)malloc(vp_impl_json_keep_bytes(h->json, 0, 0));
    if (needed > cp->entry_capacity) {
        vp_impl_entry *grown = vp_impl_size_multiply(needed, sizeof *grown, &bytes) ? (vp_impl_entry *)realloc(cp->entries, bytes) : NULL;
        if (!grown) return vp_fail(h->error, VP_ERR_MEMORY, -1, h->where, "not enough memory for the header");
        cp->entries = grown;
        cp->entry_capacity = needed;
    }
    if (!end) return vp_fail(h->error, VP_ERR_MEMORY, -1, h->where, "not enough memory for the header");
    for (i = 0; i < count; i++, key = h->json->nodes[key + 1].end) {
        vp_impl_entry *e = &cp->entries[cp->entry_count];
        vp_result result;
        memset(e, 0, sizeof *e);
        e->shard = shard;
        e->name = vp_impl_json_keep(h->json, key, &end);
        if (!e->name) return vp_impl_header_fail(h, "a tensor name", "holds a NUL character");
        if (!strcmp(e->name, VP_IMPL_METADATA)) {
            result = metadata_seen ? vp_impl_header_fail(h, e->name, "this key stands twice") : vp_impl_header_metadata(h, key + 1);
            metadata_seen = 1;
        } else {
            result = vp_impl_header_tensor(h, key + 1, e);
            cp->entry_count++;
        }
        if (result != VP_OK) return result;
    }
    return vp_impl_header_check(h, cp->entries + first, cp->entry_count - first, buffer_bytes);
}

static vp_result vp_impl_shard_map(vp_impl_shard *shard, vp_error *error) {
    struct stat info;
    void *map;
    int fd;
    if (stat(shard->path, &info) != 0) return vp_impl_open_failed(shard->path, error);
    if (!S_ISREG(info.st_mode)) /* before open: opening a pipe would wait for its writer */
        return vp_fail(error, VP_ERR_READ, -1, shard->path, S_ISDIR(info.st_mode) ? "this is a folder, not a file" : "this is not a regular file");
    fd = open(shard->path, O_RDONLY);
    if (fd < 0) return vp_impl_open_failed(shard->path, error);
    if (fstat(fd, &info) != 0 || info.st_size < 8 || (uint64_t)info.st_size > (uint64_t)SIZE_MAX) {
        close(fd);
        return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "the file is too short to hold weights");
    }
    map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return vp_impl_failf(error, VP_ERR_READ, -1, shard->path, "the file cannot be mapped (errno %d)", errno);
    shard->map = (unsigned char *)map;
    shard->map_bytes = (size_t)info.st_size;
    return VP_OK;
}

static vp_result vp_impl_shard_read(vp_checkpoint *cp, int32_t index, vp_error *error) {
    vp_impl_shard *shard = &cp->shards[index];
    vp_impl_header h;
    vp_json json;
    uint64_t header_bytes = 0;
    int i;
    vp_result result = vp_impl_shard_map(shard, error);
    if (result != VP_OK) return result;
    for (i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | shard->map[i];
    if (header_bytes > VP_IMPL_HEADER_BYTES_MAX)
        return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "the header is longer than 100000000 bytes; this is no safetensors file");
    if (header_bytes > shard->map_bytes - 8)
        return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "the header ends behind the file: it is truncated or no safetensors file");
    if (header_bytes < 2 || shard->map[8] != '{') return vp_fail(error, VP_ERR_FORMAT, 8, shard->path, "the header does not begin with {");
    memset(&json, 0, sizeof json);
    result = vp_impl_json_load((const char *)shard->map + 8, (size_t)header_bytes, shard->path, &json, error);
    if (result != VP_OK) return result;
    h.json = &json;
    h.where = shard->path;
    h.data_start = 8 + header_bytes;
    h.error = error;
    result = vp_impl_header_read(&h, cp, index, shard->map_bytes - h.data_start);
    free((void *)json.nodes);
    return result;
}

/* ------------------------------------------------------------------------------------------------ whole folders */
static char *vp_impl_path_join(const char *directory, const char *file) {
    size_t a = strlen(directory), b = strlen(file);
    char *path = (char *)malloc(a + b + 2);
    if (!path) return NULL;
    memcpy(path, directory, a);
    if (a && directory[a - 1] != '/') path[a++] = '/';
    memcpy(path + a, file, b + 1);
    return path;
}

/* 1 there (or not to be looked at: opening it will tell), 0 not, -1 no memory */
static int vp_impl_path_exists(const char *directory, const char *file) {
    struct stat info;
    char *path = vp_impl_path_join(directory, file);
    int there = path ? stat(path, &info) == 0 || errno == EACCES : -1;
    free(path);
    return there;
}

static vp_result vp_impl_checkpoint_add(vp_checkpoint *cp, const char *directory, const char *file, vp_error *error) {
    vp_impl_shard *grown, *shard;
    if (cp->shard_count == INT32_MAX) return vp_fail(error, VP_ERR_RANGE, -1, directory, "too many shards");
    grown = (vp_impl_shard *)realloc(cp->shards, ((size_t)cp->shard_count + 1) * sizeof *grown);
    if (!grown) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    cp->shards = grown;
    shard = &grown[cp->shard_count];
    memset(shard, 0, sizeof *shard);
    shard->path = vp_impl_path_join(directory, file);
    if (!shard->path) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    shard->file = shard->path + strlen(shard->path) - strlen(file);
    cp->shard_count++;
    return vp_impl_shard_read(cp, cp->shard_count - 1, error);
}

/* A list of faults in few words: per kind a count and the first names. */
enum {
    VP_IMPL_FAULT_MISSING, VP_IMPL_FAULT_EXTRA, VP_IMPL_FAULT_SHAPE, VP_IMPL_FAULT_TYPE, VP_IMPL_FAULT_SHARD, VP_IMPL_FAULT_TWICE,
    VP_IMPL_FAULT_KINDS
};
typedef struct vp_impl_faults { int64_t count[VP_IMPL_FAULT_KINDS]; char first[VP_IMPL_FAULT_KINDS][600]; } vp_impl_faults;

static void vp_impl_faults_add(vp_impl_faults *faults, int kind, const char *name, const char *detail) {
    char *first = faults->first[kind];
    size_t used = strlen(first);
    faults->count[kind]++;
    if (faults->count[kind] <= 3) vp_impl_print(first + used, sizeof faults->first[kind] - used, "%s%s%s", used ? ", " : "", name, detail);
}

static vp_result vp_impl_faults_report(const vp_impl_faults *faults, const char *where, vp_error *error) {
    static const char *const words[VP_IMPL_FAULT_KINDS] = {
        "missing", "extra", "misshapen", "of an unusable type", "in another file than the index says", "in two files"};
    char text[sizeof error->text];
    size_t used = 0;
    int kind, kinds = 0, shown;
    vp_result code = VP_ERR_MISMATCH;
    for (kind = 0; kind < VP_IMPL_FAULT_KINDS; kind++) kinds += faults->count[kind] != 0;
    if (!kinds) return VP_OK;
    if (kinds == 1 && faults->count[VP_IMPL_FAULT_TYPE]) code = VP_ERR_UNSUPPORTED;
    text[0] = 0;
    shown = (int)(sizeof text - 1) / kinds - 45; /* room for every kind's count and words */
    for (kind = 0; kind < VP_IMPL_FAULT_KINDS && used < sizeof text - 1; kind++) {
        if (!faults->count[kind]) continue;
        vp_impl_print(text + used, sizeof text - used, "%s%lld %s: %.*s%s", used ? "; " : "", (long long)faults->count[kind], words[kind], shown,
                      faults->first[kind], faults->count[kind] > 3 || (int)strlen(faults->first[kind]) > shown ? " ..." : "");
        used += strlen(text + used);
    }
    return vp_fail(error, code, -1, where, text);
}

/* model.safetensors.index.json: one row a tensor */
typedef struct vp_impl_place { const char *name, *file; } vp_impl_place;

static int vp_impl_place_order(const void *a, const void *b) {
    return strcmp(((const vp_impl_place *)a)->name, ((const vp_impl_place *)b)->name);
}

static int vp_impl_place_file_order(const void *a, const void *b) {
    return strcmp(((const vp_impl_place *)a)->file, ((const vp_impl_place *)b)->file);
}

static int vp_impl_ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcmp(text + a - b, end);
}

/* texts: large enough for all names; places: one a member */
static vp_result vp_impl_index_parse(const vp_json *json, uint32_t map, const char *where, char *texts, vp_impl_place *places, vp_error *error) {
    uint32_t i, key = map + 1, count = json->nodes[map].count;
    for (i = 0; i < count; i++, key = json->nodes[key + 1].end) {
        const char *name = vp_impl_json_keep(json, key, &texts), *file;
        if (!name) return vp_fail(error, VP_ERR_FORMAT, -1, where, "a tensor name holds a NUL character");
        if (json->nodes[key + 1].type != VP_JSON_STRING)
            return vp_impl_failf(error, VP_ERR_FORMAT, -1, where, "%.100s: the file is not a string", name);
        file = vp_impl_json_keep(json, key + 1, &texts);
        /* a name that leaves the folder is an attack, not a checkpoint */
        if (!file || !*file || strchr(file, '/') || strchr(file, '\\') || strstr(file, ".."))
            return vp_impl_failf(error, VP_ERR_FORMAT, -1, where, "%.100s: the file name must be a plain name in this folder", name);
        if (vp_impl_ends_with(file, ".bin") || vp_impl_ends_with(file, ".pt") || vp_impl_ends_with(file, ".pth"))
            return vp_impl_failf(error, VP_ERR_UNSUPPORTED, -1, where, "%.80s: pickle files can execute code; convert them to safetensors", file);
        places[i].name = name;
        places[i].file = file;
    }
    if (count) qsort(places, count, sizeof *places, vp_impl_place_order);
    for (i = 1; i < count; i++)
        if (!strcmp(places[i - 1].name, places[i].name)) return vp_impl_failf(error, VP_ERR_FORMAT, -1, where, "%.100s stands twice", places[i].name);
    return VP_OK;
}

/* both lists are in the order of names */
static vp_result vp_impl_index_compare(const vp_checkpoint *cp, const vp_impl_place *places, size_t count, const char *where, vp_error *error) {
    vp_impl_faults faults;
    char detail[120];
    size_t i = 0, k = 0;
    memset(&faults, 0, sizeof faults);
    while (i < cp->entry_count || k < count) {
        const vp_impl_entry *e = &cp->entries[i];
        int order = i >= cp->entry_count ? 1 : k >= count ? -1 : strcmp(e->name, places[k].name), right = 0, copies = 0;
        if (order < 0) {
            vp_impl_print(detail, sizeof detail, " (in %.80s, not in the index)", cp->shards[e->shard].file);
            vp_impl_faults_add(&faults, VP_IMPL_FAULT_EXTRA, e->name, detail);
            i++;
        } else if (order > 0) {
            vp_impl_print(detail, sizeof detail, " (not in %.80s)", places[k].file);
            vp_impl_faults_add(&faults, VP_IMPL_FAULT_MISSING, places[k++].name, detail);
        } else {
            for (; i < cp->entry_count && !strcmp(cp->entries[i].name, e->name); i++, copies++)
                right |= !strcmp(cp->shards[cp->entries[i].shard].file, places[k].file);
            if (!right) vp_impl_faults_add(&faults, VP_IMPL_FAULT_SHARD, e->name, "");
            if (copies > 1) vp_impl_faults_add(&faults, VP_IMPL_FAULT_TWICE, e->name, "");
            k++;
        }
    }
    return vp_impl_faults_report(&faults, where, error);
}

/* opens the shards in the order of their names, then compares */
static vp_result vp_impl_index_open(vp_checkpoint *cp, const char *directory, const char *where, vp_impl_place *places, size_t count,
                                    vp_error *error) {
    vp_result result = VP_OK;
    size_t i;
    if (count) qsort(places, count, sizeof *places, vp_impl_place_file_order);
    for (i = 0; i < count && result == VP_OK; i++) {
        if (i && !strcmp(places[i - 1].file, places[i].file)) continue;
        result = vp_impl_checkpoint_add(cp, directory, places[i].file, error);
        if (result == VP_ERR_NOT_FOUND) result = vp_impl_failf(error, VP_ERR_NOT_FOUND, -1, where, "the shard %.100s is missing", places[i].file);
    }
    if (result != VP_OK) return result;
    if (count) qsort(places, count, sizeof *places, vp_impl_place_order);
    if (cp->entry_count) qsort(cp->entries, cp->entry_count, sizeof *cp->entries, vp_impl_entry_order);
    return vp_impl_index_compare(cp, places, count, where, error);
}

static vp_result vp_impl_checkpoint_index(vp_checkpoint *cp, const char *directory, const char *where, vp_error *error) {
    char *text = NULL, *texts = NULL;
    size_t bytes = 0, place_bytes = 0;
    vp_impl_place *places = NULL;
    vp_json json;
    uint32_t map = VP_JSON_NONE;
    vp_result result = vp_file_read(where, (size_t)1 << 28, &text, &bytes, error);
    memset(&json, 0, sizeof json);
    if (result == VP_OK) result = vp_impl_json_load(text, bytes, where, &json, error);
    if (result == VP_OK) {
        map = json.nodes[0].type == VP_JSON_OBJECT ? vp_json_get(&json, 0, "weight_map") : VP_JSON_NONE;
        if (map == VP_JSON_NONE || json.nodes[map].type != VP_JSON_OBJECT)
            result = vp_fail(error, VP_ERR_FORMAT, -1, where, "there is no weight_map");
    }
    if (result == VP_OK) {
        texts = (char *)malloc(vp_impl_json_keep_bytes(&json, map, 1));
        if (vp_impl_size_multiply((size_t)json.nodes[map].count + 1, sizeof *places, &place_bytes)) places = (vp_impl_place *)malloc(place_bytes);
        if (!texts || !places) result = vp_fail(error, VP_ERR_MEMORY, -1, where, "not enough memory for the index");
    }
    if (result == VP_OK) result = vp_impl_index_parse(&json, map, where, texts, places, error);
    if (result == VP_OK) result = vp_impl_index_open(cp, directory, where, places, json.nodes[map].count, error);
    free(places);
    free(texts);
    free((void *)json.nodes);
    free(text);
    return result;
}

static vp_impl_entry *vp_impl_checkpoint_entry(const vp_checkpoint *cp, const char *name) {
    size_t low = 0, high = cp->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, cp->entries[middle].name);
        if (order == 0) return &cp->entries[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

static void vp_impl_shape_text(char *out, size_t capacity, const int64_t *shape, uint32_t dimensions) {
    uint32_t i;
    size_t used;
    vp_impl_print(out, capacity, "[");
    for (i = 0; i < dimensions && i < 4; i++) {
        used = strlen(out);
        vp_impl_print(out + used, capacity - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    }
    used = strlen(out);
    vp_impl_print(out + used, capacity - used, dimensions > 4 ? ", ...]" : "]");
}

/* one tensor of the config against the file's; the entry is then known */
static void vp_impl_checkpoint_compare_one(vp_impl_entry *e, const vp_tensor_spec *spec, vp_impl_faults *faults) {
    char detail[256], got[96], wanted[96];
    vp_impl_shape_text(wanted, sizeof wanted, spec->shape, (uint32_t)spec->dimensions);
    if (!e) {
        vp_impl_print(detail, sizeof detail, " %s", wanted);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_MISSING, spec->name, detail);
        return;
    }
    e->used = 1;
    if (e->dimensions != (uint32_t)spec->dimensions || e->shape[0] != spec->shape[0] || (spec->dimensions > 1 && e->shape[1] != spec->shape[1])) {
        vp_impl_shape_text(got, sizeof got, e->shape, e->dimensions);
        vp_impl_print(detail, sizeof detail, " is %s, wanted %s", got, wanted);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_SHAPE, spec->name, detail);
    }
    if (e->type > VP_DTYPE_F16) {
        vp_impl_print(detail, sizeof detail, " is %s, not F32, BF16 or F16", vp_impl_file_types[e->type].name);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_TYPE, spec->name, detail);
    }
}

/* names as OLMo's own training code writes them: another layout under other names, of which nothing can be taken as it is */
static int vp_impl_is_olmo(const vp_checkpoint *cp) {
    size_t i;
    for (i = 0; i < cp->entry_count; i++) {
        const char *name = cp->entries[i].name;
        if (!strncmp(name, "transformer.", 12) || strstr(name, ".ffn.experts.mlp.") || strstr(name, "transformer.ff_out.weight")) return 1;
    }
    return 0;
}
static vp_result vp_impl_fail_olmo(const char *directory, vp_error *error) {
    return vp_fail(error, VP_ERR_UNSUPPORTED, -1, directory,
                   "the weights are in OLMo's original training format: other tensor names, all experts of a block in one tensor, w2 transposed; "
                   "convert them to the Hugging Face format (config.json, model.safetensors) with the model's own script first");
}

static vp_result vp_impl_checkpoint_compare(vp_checkpoint *cp, const vp_model_config *config, const char *where, vp_error *error) {
    vp_impl_faults faults;
    vp_tensor_spec spec;
    char shape[96], detail[128];
    int64_t count = vp_model_tensor_count(config), i;
    size_t k;
    memset(&faults, 0, sizeof faults);
    for (i = 0; i < count; i++) {
        if (vp_model_tensor(config, i, &spec) != VP_OK) return vp_fail(error, VP_ERR_RANGE, -1, "config", "the config is not valid");
        vp_impl_checkpoint_compare_one(vp_impl_checkpoint_entry(cp, spec.name), &spec, &faults);
    }
    for (k = 0; k < cp->entry_count; k++) {
        const vp_impl_entry *e = &cp->entries[k];
        if (e->used) continue;
        vp_impl_shape_text(shape, sizeof shape, e->shape, e->dimensions);
        vp_impl_print(detail, sizeof detail, " %s", shape);
        vp_impl_faults_add(&faults, VP_IMPL_FAULT_EXTRA, e->name, detail);
    }
    if (faults.count[VP_IMPL_FAULT_MISSING] && vp_impl_is_olmo(cp)) return vp_impl_fail_olmo(where, error);
    return vp_impl_faults_report(&faults, where, error);
}

/* no weights that can be read are there: say why */
static vp_result vp_impl_checkpoint_none(const char *directory, vp_error *error) {
    if (vp_impl_path_exists(directory, "pytorch_model.bin") > 0 || vp_impl_path_exists(directory, "pytorch_model.bin.index.json") > 0)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, directory,
                       "the weights are PyTorch pickles (pytorch_model.bin), which can execute code when they are loaded; make safetensors of them: "
                       "in Python, load the model with from_pretrained and write it with save_pretrained(folder, safe_serialization=True)");
    if (vp_impl_path_exists(directory, "config.yaml") > 0 || vp_impl_path_exists(directory, "model.pt") > 0)
        return vp_impl_fail_olmo(directory, error);
    return vp_fail(error, VP_ERR_NOT_FOUND, -1, directory,
                   "there is neither model.safetensors nor model.safetensors.index.json nor " VP_PACKED_FILE " in this folder");
}

/* ---------------------------------------------------------------------------------------------- packed weights */
static uint64_t vp_impl_fnv(uint64_t hash, const void *data, size_t bytes) { /* FNV-1a */
    const unsigned char *p = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}
#define VP_IMPL_FNV_START UINT64_C(14695981039346656037)

/* numbers byte by byte: the hash must not depend on this machine's order, because the header says which one it is */
static uint64_t vp_impl_fnv_number(uint64_t hash, int64_t value) {
    unsigned char bytes[8];
    int i;
    for (i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)value >> (8 * i) & 255);
    return vp_impl_fnv(hash, bytes, sizeof bytes);
}

VP_API uint64_t vp_model_hash(const vp_model_config *config) {
    uint64_t hash = vp_impl_fnv_number(VP_IMPL_FNV_START, config->vit_blocks_needed);
    vp_tensor_spec spec;
    int64_t i;
    for (i = 0; vp_model_tensor(config, i, &spec) == VP_OK; i++) {
        hash = vp_impl_fnv(hash, spec.name, strlen(spec.name) + 1);
        hash = vp_impl_fnv_number(hash, spec.shape[0]);
        hash = vp_impl_fnv_number(hash, spec.shape[1]);
    }
    return hash;
}

#define VP_IMPL_PACKED_MAGIC "VLMPACK" /* with its NUL: 8 bytes */
enum { VP_IMPL_PACKED_ORDER = 0x01020304, VP_IMPL_PACKED_SUM_AT = VP_PACKED_HEADER_BYTES - 8 };

VP_API void vp_packed_header(const vp_packed *packed, unsigned char header[VP_PACKED_HEADER_BYTES]) {
    const uint32_t words[4] = {VP_IMPL_PACKED_ORDER, VP_PACKED_VERSION, VP_PACKED_HEADER_BYTES, packed->panel_columns};
    uint64_t sum;
    memset(header, 0, VP_PACKED_HEADER_BYTES);
    memcpy(header, VP_IMPL_PACKED_MAGIC, 8);
    memcpy(header + 8, words, 16);
    memcpy(header + 24, &packed->model_hash, 8);
    memcpy(header + 32, &packed->weights_bytes, 8);
    sum = vp_impl_fnv(VP_IMPL_FNV_START, header, VP_IMPL_PACKED_SUM_AT);
    memcpy(header + VP_IMPL_PACKED_SUM_AT, &sum, 8);
}

/* the header of a mapped file; what it says must be all that stands there */
static vp_result vp_impl_packed_check(const vp_impl_shard *shard, const vp_model_config *config, vp_packed *packed, vp_error *error) {
    unsigned char wanted[VP_PACKED_HEADER_BYTES];
    uint32_t words[4];
    uint64_t there;
    if (memcmp(shard->map, VP_IMPL_PACKED_MAGIC, 8)) return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "this is no file that convert packed");
    if (shard->map_bytes < VP_PACKED_HEADER_BYTES) return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "the file is truncated within its header");
    memcpy(words, shard->map + 8, sizeof words);
    memcpy(&packed->model_hash, shard->map + 24, 8);
    memcpy(&packed->weights_bytes, shard->map + 32, 8);
    packed->panel_columns = words[3];
    packed->weights = shard->map + VP_PACKED_HEADER_BYTES;
    if (words[0] != VP_IMPL_PACKED_ORDER)
        return vp_fail(error, VP_ERR_UNSUPPORTED, 8, shard->path, "the weights were packed on a machine of another byte order; convert them here");
    if (words[1] != VP_PACKED_VERSION)
        return vp_impl_failf(error, VP_ERR_UNSUPPORTED, 12, shard->path, "the packed layout is version %lu, this program reads version %d; "
                             "convert the original folder again", (unsigned long)words[1], (int)VP_PACKED_VERSION);
    there = shard->map_bytes - VP_PACKED_HEADER_BYTES;
    vp_packed_header(packed, wanted);
    if (memcmp(shard->map, wanted, sizeof wanted)) return vp_fail(error, VP_ERR_FORMAT, 0, shard->path, "the header is damaged; convert again");
    if (packed->weights_bytes != there)
        return vp_impl_failf(error, VP_ERR_FORMAT, -1, shard->path,
                             "the file is %s: it has %llu bytes of weights, its header says %llu; convert again",
                             packed->weights_bytes > there ? "truncated" : "too long", (unsigned long long)there,
                             (unsigned long long)packed->weights_bytes);
    if (config && packed->model_hash != vp_model_hash(config))
        return vp_fail(error, VP_ERR_MISMATCH, 24, shard->path, "the weights were packed for another config.json; convert again");
    return VP_OK;
}

static vp_result vp_impl_checkpoint_packed(vp_checkpoint *cp, const char *directory, const vp_model_config *config, vp_error *error) {
    vp_packed packed;
    vp_result result;
    cp->shards = (vp_impl_shard *)calloc(1, sizeof *cp->shards);
    if (!cp->shards) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    cp->shard_count = 1;
    cp->shards[0].path = vp_impl_path_join(directory, VP_PACKED_FILE);
    if (!cp->shards[0].path) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    result = vp_impl_shard_map(&cp->shards[0], error);
    memset(&packed, 0, sizeof packed);
    if (result == VP_OK) result = vp_impl_packed_check(&cp->shards[0], config, &packed, error);
    if (result == VP_OK) cp->packed = packed;
    return result;
}

VP_API vp_result vp_checkpoint_packed(const vp_checkpoint *checkpoint, vp_packed *packed) {
    if (!checkpoint || !packed) return VP_ERR_RANGE;
    if (!checkpoint->packed.weights) return VP_ERR_NOT_FOUND;
    *packed = checkpoint->packed;
    return VP_OK;
}

/* ---------------------------------------------------------------------------------------------------- the whole */
/* the files that are there decide how a folder is read */
static vp_result vp_impl_checkpoint_read(vp_checkpoint *cp, const char *directory, const vp_model_config *config, vp_error *error) {
    static const char single[] = "model.safetensors", index[] = "model.safetensors.index.json";
    int there = vp_impl_path_exists(directory, single), indexed = vp_impl_path_exists(directory, index),
        packed = vp_impl_path_exists(directory, VP_PACKED_FILE);
    vp_result result;
    if (there < 0 || indexed < 0 || packed < 0) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    if (packed && (there || indexed))
        return vp_fail(error, VP_ERR_MISMATCH, -1, directory, "there are safetensors beside " VP_PACKED_FILE "; remove the one or the other");
    if (packed) return vp_impl_checkpoint_packed(cp, directory, config, error);
    if (there) {
        result = vp_impl_checkpoint_add(cp, directory, single, error);
        if (result == VP_OK && cp->entry_count) qsort(cp->entries, cp->entry_count, sizeof *cp->entries, vp_impl_entry_order);
    } else if (indexed) {
        char *path = vp_impl_path_join(directory, index);
        result = path ? vp_impl_checkpoint_index(cp, directory, path, error) : vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
        free(path);
    } else {
        result = vp_impl_checkpoint_none(directory, error);
    }
    return result == VP_OK && config ? vp_impl_checkpoint_compare(cp, config, directory, error) : result;
}

VP_API vp_result vp_checkpoint_open(const char *directory, const vp_model_config *config, vp_checkpoint **checkpoint, vp_error *error) {
    struct stat info;
    vp_checkpoint *cp;
    vp_result result;
    if (!directory || !checkpoint) return vp_fail(error, VP_ERR_RANGE, -1, "vp_checkpoint_open", "a required pointer is NULL");
    if (stat(directory, &info) != 0) {
        if (errno == EACCES) return vp_fail(error, VP_ERR_READ, -1, directory, "the folder may not be read: permission denied");
        return vp_fail(error, VP_ERR_NOT_FOUND, -1, directory, "there is no such folder");
    }
    if (!S_ISDIR(info.st_mode))
        return vp_fail(error, VP_ERR_READ, -1, directory, "this is a file; give the folder that holds config.json and the weights");
    cp = (vp_checkpoint *)calloc(1, sizeof *cp);
    if (!cp) return vp_fail(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    result = vp_impl_checkpoint_read(cp, directory, config, error);
    if (result != VP_OK) {
        vp_checkpoint_close(cp);
        return result;
    }
    *checkpoint = cp;
    return VP_OK;
}

VP_API vp_result vp_checkpoint_find(const vp_checkpoint *checkpoint, const char *name, vp_tensor *tensor) {
    const vp_impl_entry *e;
    uint32_t i;
    if (!checkpoint || !name || !tensor) return VP_ERR_RANGE;
    e = vp_impl_checkpoint_entry(checkpoint, name);
    if (!e) return VP_ERR_NOT_FOUND;
    if (e->type > VP_DTYPE_F16 || e->dimensions > 4) return VP_ERR_UNSUPPORTED;
    memset(tensor, 0, sizeof *tensor);
    tensor->dtype = (vp_dtype)e->type;
    tensor->dimensions = (int32_t)e->dimensions;
    for (i = 0; i < e->dimensions; i++) tensor->shape[i] = e->shape[i];
    tensor->data = checkpoint->shards[e->shard].map + e->begin;
    tensor->bytes = e->end - e->begin;
    tensor->shard = e->shard;
    return VP_OK;
}

VP_API int32_t vp_checkpoint_shard_count(const vp_checkpoint *checkpoint) { return checkpoint ? checkpoint->shard_count : 0; }

VP_API void vp_checkpoint_advise(const vp_checkpoint *checkpoint, const vp_tensor *tensor, int needed) {
    /* a fault maps the pages around it, too: what leaves is wider than the tensor by as much */
    enum { AROUND = 65536 };
    const vp_impl_shard *shard;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin, end;
    if (!checkpoint || !tensor || tensor->shard < 0 || tensor->shard >= checkpoint->shard_count || !tensor->bytes) return;
    shard = &checkpoint->shards[tensor->shard];
    begin = (size_t)(tensor->data - shard->map);
    end = begin + (size_t)tensor->bytes;
    if (!needed) {
        begin = begin > AROUND ? begin - AROUND : 0;
        end = shard->map_bytes - end > AROUND ? end + AROUND : shard->map_bytes;
    }
    begin -= begin % page;
#ifdef MADV_DONTNEED /* hidden where the includer asked for strict POSIX, whose own advice does nothing */
    madvise(shard->map + begin, end - begin, needed ? MADV_WILLNEED : MADV_DONTNEED);
#else
    (void)page; (void)end;
#endif
}

VP_API void vp_checkpoint_close(vp_checkpoint *checkpoint) {
    int32_t i;
    if (!checkpoint) return;
    for (i = 0; i < checkpoint->shard_count; i++) {
        vp_impl_shard *shard = &checkpoint->shards[i];
        if (shard->map) munmap(shard->map, shard->map_bytes);
        free(shard->names);
        free(shard->path);
    }
    free(checkpoint->shards);
    free(checkpoint->entries);
    free(checkpoint);
}

/* ============================================================================================= tokenizer >>tokenizer */
#ifdef __cplusplus
}
#endif
#include <stdlib.h> /* malloc, free, qsort */
#ifdef __cplusplus
extern "C" {
#endif

/* Unicode tables, printed by tests/tools/make_unicode_tables.py from the Unicode Character Database 15.0.0 (Debian package
 * unicode-data): letters, numbers and white space of the characters of Unicode 14.0, canonical decompositions and combining classes
 * of the characters of Unicode 9.0 (property Age). Every list is of runs, each `gap` behind the end of the one before. */
/* gap, length * 4 + class; class 1 letter, 2 number, 3 white space */
static const uint32_t vp_impl_unicode_classes[1584] = {
    9,23,18,7,15,42,7,105,6,105,10,7,26,7,9,5,7,10,1,5,3,6,0,5,1,14,1,93,1,125,1,1833,4,49,14,21,7,5,1,5,129,21,1,9,2,17,1,5,6,5,1,13,1,5,1,81,1,333,
    1,557,8,665,1,153,2,5,6,165,71,109,4,17,45,173,21,42,4,9,1,397,1,5,15,9,7,9,0,42,0,13,2,5,16,5,1,121,29,357,11,5,14,42,0,133,9,9,4,5,5,89,4,5,9,5,
    3,5,23,101,7,45,5,97,1,25,17,169,58,217,3,5,18,5,7,41,4,42,1,65,4,33,2,9,2,89,1,29,1,5,3,17,3,5,16,5,13,9,1,13,4,42,0,9,2,26,2,5,8,25,4,9,2,89,1,
    29,1,9,1,9,1,9,31,17,1,5,7,42,2,13,16,37,1,13,1,89,1,29,1,9,1,21,3,5,18,5,15,9,4,42,9,5,11,33,2,9,2,89,1,29,1,9,1,21,3,5,30,9,1,13,4,42,1,5,0,26,
    11,5,1,25,3,13,1,17,3,9,1,5,1,9,3,9,3,13,3,49,22,5,21,54,18,33,1,13,1,93,1,65,3,5,26,13,2,5,2,9,4,42,8,30,1,5,4,33,1,13,1,93,1,41,1,21,3,5,31,9,1,
    9,4,42,1,9,17,37,1,13,1,165,2,5,16,5,5,13,1,30,0,13,4,78,1,25,5,73,3,97,1,37,1,5,2,29,31,42,17,193,1,9,12,29,9,42,39,9,1,5,1,21,1,97,1,5,1,41,1,9,
    9,5,2,21,1,5,9,42,2,17,32,5,31,82,12,33,1,145,27,21,115,173,20,5,0,42,6,25,4,17,3,5,3,9,7,13,4,53,12,5,1,42,6,153,1,5,5,5,2,173,1,1333,1,17,2,29,
    1,5,1,17,2,165,1,17,2,133,1,17,2,29,1,5,1,17,2,61,1,229,1,17,2,269,14,82,3,65,16,345,2,25,3,2481,2,69,0,7,0,105,5,301,3,14,0,33,7,73,13,77,14,73,
    14,53,1,13,15,209,35,5,4,5,3,42,6,42,22,42,6,357,7,21,2,137,1,5,5,281,10,125,39,42,0,121,2,21,11,177,4,105,6,46,37,93,9,213,43,42,6,42,13,5,93,
    189,17,33,3,42,41,121,13,9,0,42,0,177,26,145,28,42,3,13,0,42,0,145,2,37,7,173,2,13,41,17,1,25,1,9,3,5,5,769,64,1113,2,25,2,153,2,25,2,33,1,5,1,5,
    1,5,1,125,2,213,1,29,1,5,3,13,1,29,3,17,2,25,4,53,5,13,1,29,3,47,29,11,5,7,47,7,16,6,0,5,2,26,5,5,0,42,6,53,101,5,4,5,2,41,1,5,3,21,6,5,1,5,1,5,1,
    17,1,45,2,17,5,21,4,5,1,206,0,9,0,22,726,242,78,90,630,122,1132,917,6,17,3,9,9,6,2,153,1,5,5,5,2,225,7,5,16,93,9,29,1,29,1,29,1,29,1,29,1,29,1,29,
    1,29,80,5,464,7,4,9,0,6,25,38,7,21,2,14,0,9,4,345,6,13,1,361,1,17,5,173,1,377,3,18,10,129,48,65,32,42,30,34,1,62,32,42,39,62,320,26369,64,88629,
    67,185,2,1077,3,65,0,42,0,9,20,189,16,125,2,281,0,42,39,37,2,413,2,257,5,9,1,5,1,21,24,65,1,13,1,17,1,93,13,26,10,209,14,201,28,42,24,25,3,5,1,9,
    1,42,0,113,10,93,25,117,7,189,28,5,0,42,6,21,1,41,0,42,0,21,1,165,23,13,1,33,4,42,6,93,3,5,3,201,1,5,3,9,2,21,2,5,1,5,24,13,2,45,7,13,12,25,2,25,
    2,25,9,29,1,29,1,173,1,57,6,461,13,42,6,44689,12,93,4,197,8452,1465,2,425,38,29,12,21,5,5,1,41,1,53,1,21,1,5,1,9,1,9,1,433,33,1453,18,257,2,217,
    40,49,116,21,1,541,19,42,7,105,6,105,11,357,3,25,2,25,2,25,2,13,35,49,1,105,1,77,1,9,1,61,2,57,34,493,12,182,12,230,17,10,244,117,3,197,16,110,4,
    129,0,18,9,81,0,6,0,33,0,6,5,153,10,121,2,145,4,33,1,22,42,633,2,42,6,145,4,145,4,161,8,209,12,45,1,61,1,29,1,9,1,45,1,61,1,29,1,9,67,1245,9,89,
    10,33,24,25,1,169,1,37,69,25,2,5,1,177,1,9,3,5,2,93,2,34,0,93,2,30,0,125,8,38,48,77,1,9,5,22,0,89,0,26,4,105,70,225,4,10,0,9,0,66,2,186,0,5,15,17,
    1,13,1,117,10,38,23,117,0,10,1,117,0,14,32,33,1,113,6,22,16,217,10,89,2,34,0,77,5,34,0,73,23,30,80,293,55,205,13,205,7,26,0,145,12,42,294,126,1,
    169,6,9,78,117,0,42,0,5,8,89,11,18,27,73,46,85,0,30,20,93,12,213,26,122,1,9,2,5,13,181,32,101,7,42,9,145,15,42,4,5,2,5,8,141,3,5,12,193,14,17,11,
    42,0,5,1,5,4,82,11,73,1,101,84,29,1,5,1,17,1,61,1,41,7,189,17,42,11,33,2,9,2,89,1,29,1,9,1,21,3,5,18,5,12,21,158,213,18,17,5,42,5,13,30,193,20,9,
    1,5,8,42,166,189,41,17,36,193,20,5,11,42,38,173,13,5,7,42,54,109,21,50,4,29,185,177,116,257,0,78,12,33,2,5,2,33,1,9,1,97,15,5,1,5,14,42,70,33,2,
    157,16,5,1,5,28,5,10,161,7,5,21,5,11,185,19,5,18,293,263,37,1,149,17,5,15,118,5,121,112,29,1,9,1,153,21,5,9,42,6,25,1,9,1,129,14,5,7,42,310,77,
    189,5,15,86,43,3689,102,446,17,785,2636,389,15,4285,4049,2333,8633,2277,7,125,1,42,6,317,1,42,6,121,18,193,16,17,12,42,1,30,1,85,5,77,688,257,0,
    94,105,301,5,5,66,53,64,9,1,5,28,24545,8,4953,42,37,8935,17,1,29,1,9,1,1165,45,13,17,17,8,1585,2308,429,5,53,3,37,7,41,5702,82,108,102,135,341,1,
    285,1,9,2,5,2,9,2,17,1,49,1,5,1,29,1,261,1,17,2,33,1,29,1,113,1,17,1,21,1,5,3,29,1,1361,2,101,1,101,1,125,1,101,1,125,1,101,1,125,1,101,1,125,1,
    101,1,33,2,202,1792,125,481,181,10,29,2,42,4,5,321,121,18,177,4,42,1254,29,1,17,1,9,1,61,1,789,2,38,48,273,7,5,4,42,791,238,1,14,1,18,76,182,1,62,
    194,17,1,109,1,9,1,5,2,5,1,41,1,17,1,5,1,5,6,5,4,5,1,5,1,5,1,13,1,9,1,5,2,5,1,5,1,5,1,5,1,5,1,9,1,5,2,17,1,29,1,17,1,17,1,5,1,41,1,69,5,13,1,21,1,
    69,580,54,2787,42,1030,170881,32,16613,7,889,2,23049,14,29893,3103,2169,1506,19757
};
/* gap, length, canonical combining class (all others 0) */
static const uint32_t vp_impl_unicode_combining[999] = {
    768,21,230,0,1,232,0,4,220,0,1,232,0,1,216,0,5,220,0,2,202,0,4,220,0,2,202,0,11,220,0,5,1,0,4,220,0,8,230,0,1,240,0,1,230,0,3,220,0,3,230,0,2,220,
    1,3,230,0,4,220,0,1,230,0,1,232,0,2,220,0,1,230,0,1,233,0,2,234,0,1,233,0,2,234,0,1,233,0,13,230,275,5,230,265,1,220,0,4,230,0,1,220,0,3,230,0,1,
    222,0,1,220,0,6,230,0,6,220,0,2,230,0,1,220,0,2,230,0,1,222,0,1,228,0,1,230,0,1,10,0,1,11,0,1,12,0,1,13,0,1,14,0,1,15,0,1,16,0,1,17,0,1,18,0,2,19,
    0,1,20,0,1,21,0,1,22,1,1,23,1,1,24,0,1,25,1,1,230,0,1,220,1,1,18,72,8,230,0,1,30,0,1,31,0,1,32,48,1,27,0,1,28,0,1,29,0,1,30,0,1,31,0,1,32,0,1,33,
    0,1,34,0,2,230,0,2,220,0,5,230,0,1,220,0,2,230,0,1,220,16,1,35,101,7,230,2,4,230,0,1,220,0,1,230,2,2,230,1,1,220,0,2,230,0,1,220,35,1,36,30,1,230,
    0,1,220,0,2,230,0,1,220,0,2,230,0,3,220,0,1,230,0,2,220,0,1,230,0,1,220,0,3,230,0,1,220,0,1,230,0,1,220,0,1,230,0,1,220,0,1,230,0,1,220,0,2,230,
    160,7,230,0,1,220,0,1,230,34,4,230,1,9,230,1,3,230,1,5,230,43,3,220,120,14,230,1,1,220,0,2,230,0,1,220,0,2,230,0,1,220,0,3,230,0,3,220,0,1,27,0,1,
    28,0,1,29,0,3,230,0,1,220,0,2,230,0,2,220,0,5,230,60,1,7,16,1,9,3,1,230,0,1,220,0,2,230,103,1,7,16,1,9,110,1,7,16,1,9,110,1,7,16,1,9,110,1,7,16,1,
    9,127,1,9,127,1,9,7,1,84,0,1,91,101,1,7,16,1,9,127,1,9,124,1,9,109,2,103,0,1,9,13,4,107,108,2,118,14,4,122,76,2,220,27,1,220,1,1,220,1,1,216,55,1,
    129,0,1,130,1,1,132,5,4,130,2,1,130,1,2,230,0,1,9,1,2,230,62,1,220,112,1,7,1,2,9,82,1,220,719,3,230,948,1,9,31,1,9,157,1,9,10,1,230,203,1,228,143,
    1,222,0,1,230,0,1,220,219,1,230,0,1,220,71,1,9,20,8,230,2,1,220,48,5,230,0,6,220,0,2,230,0,1,220,118,1,7,15,1,9,38,1,230,0,1,220,0,7,230,54,2,9,
    58,1,7,11,2,9,67,1,7,152,3,230,1,1,1,0,5,220,0,2,230,0,4,220,0,1,230,1,7,1,4,1,220,6,1,230,3,2,230,198,2,230,0,1,220,0,7,230,0,1,220,0,2,230,0,1,
    234,0,1,214,0,1,220,0,1,202,0,37,230,5,1,230,0,1,233,0,1,220,0,1,230,0,1,220,720,2,230,0,2,1,0,4,230,0,3,1,0,2,230,4,1,230,3,2,1,0,1,230,0,1,220,
    0,1,230,0,2,1,0,4,220,0,1,230,3070,3,230,141,1,9,96,32,230,554,1,218,0,1,228,0,1,232,0,1,222,0,2,224,105,2,8,30164,1,230,4,10,230,32,2,230,80,2,
    230,276,1,9,189,1,9,27,18,230,57,3,220,37,1,9,95,1,7,12,1,9,239,1,230,1,2,230,0,1,220,2,2,230,5,2,230,1,1,230,52,1,9,246,1,9,20272,1,26,769,7,230,
    0,7,220,0,2,230,973,1,220,226,1,220,149,5,230,1682,1,220,1,1,230,40,1,230,0,1,1,0,1,220,4,1,9,165,1,230,0,1,220,1375,1,9,56,1,9,57,1,9,0,1,7,69,3,
    230,48,2,9,62,1,7,76,1,9,9,1,7,106,1,9,0,1,7,178,1,7,0,1,9,81,1,7,16,1,9,24,7,230,3,5,230,205,1,9,3,1,7,123,1,9,0,1,7,251,1,9,0,1,7,126,1,9,118,1,
    9,0,1,7,115,1,9,1299,1,9,20144,5,1,59,7,230,20839,1,1,5318,2,216,0,3,1,3,1,226,0,5,216,8,8,220,2,5,230,0,2,220,30,4,230,148,3,230,3515,7,230,1,17,
    230,2,7,230,1,2,230,1,5,230,2213,7,220,109,6,230,0,1,7
};
enum { VP_IMPL_UNICODE_DECOMPOSITION_COUNT = 2060 };
/* the second halves of canonical decompositions; number 0 says there is none */
static const uint32_t vp_impl_unicode_seconds[85] = {
    0,768,769,770,771,772,774,775,776,777,778,779,780,783,785,787,788,795,803,804,805,806,807,808,813,814,816,817,824,834,837,1460,1463,1464,1465,
    1468,1471,1473,1474,1619,1620,1621,2364,2492,2494,2519,2620,2876,2878,2902,2903,3006,3031,3158,3266,3285,3286,3390,3415,3530,3535,3551,3954,3956,
    3968,4021,4023,4142,6965,12441,12442,69818,69927,70462,70487,70832,70842,70845,71087,119141,119150,119151,119152,119153,119154
};
/* runs: gap, length, then for each code point first * 128 + number of the second half */
static const uint32_t vp_impl_unicode_decompositions[2520] = {
    192,6,8321,8322,8323,8324,8328,8330,1,9,8598,8833,8834,8835,8840,9345,9346,9347,9352,1,6,9988,10113,10114,10115,10116,10120,2,5,10881,10882,10883,
    10888,11394,2,6,12417,12418,12419,12420,12424,12426,1,9,12694,12929,12930,12931,12936,13441,13442,13443,13448,1,6,14084,14209,14210,14211,14212,
    14216,2,5,14977,14978,14979,14984,15490,1,17,15496,8325,12421,8326,12422,8343,12439,8578,12674,8579,12675,8583,12679,8588,12684,8716,12812,2,20,
    8837,12933,8838,12934,8839,12935,8855,12951,8844,12940,9091,13187,9094,13190,9095,13191,9110,13206,9219,13315,2,9,9348,13444,9349,13445,9350,
    13446,9367,13463,9351,3,4,9475,13571,9622,13718,1,6,9730,13826,9750,13846,9740,13836,4,6,9986,14082,10006,14102,9996,14092,3,6,10117,14213,10118,
    14214,10123,14219,2,18,10498,14594,10518,14614,10508,14604,10626,14722,10627,14723,10646,14742,10636,14732,10774,14870,10764,14860,2,23,10884,
    14980,10885,14981,10886,14982,10890,14986,10891,14987,10903,14999,11139,15235,11395,15491,11400,11522,15618,11527,15623,11532,15628,33,2,10129,
    14225,13,2,10897,14993,28,16,8332,12428,9356,13452,10124,14220,10892,14988,28165,32261,28162,32258,28172,32268,28161,32257,1,6,25093,29189,70405,
    70533,25349,29445,2,11,9100,13196,9612,13708,10135,14231,62725,62853,56204,84236,13580,3,2,9090,13186,2,36,9985,14081,25218,29314,25346,29442,
    27650,31746,8333,12429,8334,12430,8845,12941,8846,12942,9357,13453,9358,13454,10125,14221,10126,14222,10509,14605,10510,14606,10893,14989,10894,
    14990,10645,14741,10773,14869,2,2,9228,13324,6,14,8327,12423,8854,12950,27397,31493,27269,31365,10119,14215,71429,71557,11397,15493,268,2,98304,
    98432,1,2,100736,99330,47,1,89216,9,1,7552,6,6,21506,116866,23424,117378,117634,117890,1,1,118658,1,3,119426,119938,124162,25,7,117896,119432,
    120962,121474,121730,121986,124290,25,5,121992,123528,122754,123522,124034,4,2,125186,125192,43,2,133761,133768,1,1,133506,3,1,131848,4,3,134402,
    134145,135558,10,1,134150,31,1,138246,22,2,137857,137864,1,1,137602,3,1,142088,4,3,138498,138241,139654,23,2,145933,146061,73,2,133894,137990,13,
    4,133126,137222,133128,137224,2,2,133766,137862,2,6,158728,158856,133896,137992,134024,138120,2,6,134149,138245,134152,138248,134920,139016,2,12,
    160776,160904,136840,140936,135557,139653,135560,139656,135563,139659,136072,140168,2,2,136584,140680,296,5,201639,201640,205864,201641,206120,
    153,1,223912,1,1,221352,16,1,223528,597,1,300074,7,1,301098,2,1,301482,35,8,297642,297770,297898,298538,299178,299306,300458,300970,107,2,320428,
    320429,15,2,315563,315691,1,1,317355,83,1,334126,2,1,334894,34,3,330542,330670,331310,2,1,333230,233,1,369585,2,2,369584,369586,15,2,364719,
    364847,54,1,379188,53,3,385843,385971,385844,123,1,402229,119,1,417719,6,2,418615,418616,1,2,418614,419127,126,3,435001,435129,435002,141,1,
    453819,1,3,453820,454203,453821,356,1,500034,9,1,501314,4,1,501954,4,1,502594,4,1,503234,12,1,499777,9,1,506046,1,2,506047,514368,1,1,514496,8,1,
    506048,17,1,510274,9,1,511554,4,1,512194,4,1,512834,4,1,513474,12,1,510017,108,1,529091,2783,1,885444,1,1,885700,1,1,885956,1,1,886212,1,1,886468,
    3,1,886980,40,1,892228,1,1,892484,2,2,892740,892868,1,1,893252,700,154,8340,12436,8455,12551,8466,12562,8475,12571,25474,29570,8711,12807,8722,
    12818,8731,12827,8726,12822,8728,12824,35073,35201,35074,35202,8856,12952,8858,12954,70662,70790,8967,13063,9093,13189,9223,13319,9234,13330,9224,
    13320,9238,13334,9241,13337,9370,13466,26498,30594,9602,13698,9618,13714,9627,13723,9746,13842,989957,990085,9755,13851,9752,13848,9858,13954,
    9863,13959,9874,13970,9991,14087,10002,14098,10011,14107,10008,14104,27266,31362,27272,31368,42497,42625,42498,42626,10242,14338,10247,14343,
    10503,14599,10514,14610,994565,994693,10523,14619,10631,14727,10642,14738,44295,44423,45063,45191,995591,995719,10759,14855,10770,14866,10779,
    14875,10776,14872,10899,14995,10906,15002,10904,15000,46082,46210,46344,46472,11012,15108,11026,15122,11137,15233,11138,15234,11144,15240,11143,
    15239,11154,15250,11271,15367,11272,15368,11399,15495,11523,15619,11538,15634,11547,15643,13339,14856,15242,15498,1,1,49031,4,90,8338,12434,8329,
    12425,24834,28930,24833,28929,24841,28937,24836,28932,1003523,1003651,33026,33154,33025,33153,33033,33161,33028,33156,1003526,1003654,8850,12946,
    8841,12937,8836,12932,25858,29954,25857,29953,25865,29961,25860,29956,1006595,1006723,9353,13449,9362,13458,10130,14226,10121,14217,27138,31234,
    27137,31233,27145,31241,27140,31236,1009155,1009283,53250,53378,53249,53377,53257,53385,53252,53380,53266,53394,10898,14994,10889,14985,55170,
    55298,55169,55297,55177,55305,55172,55300,55186,55314,11393,15489,11410,15506,11401,15497,11396,15492,6,22,120975,120976,1015809,1015937,1015810,
    1015938,1015837,1015965,116879,116880,1016833,1016961,1016834,1016962,1016861,1016989,121487,121488,1017857,1017985,1017858,1017986,2,6,117391,
    117392,1018881,1019009,1018882,1019010,2,38,121743,121744,1019905,1020033,1019906,1020034,1019933,1020061,117647,117648,1020929,1021057,1020930,
    1021058,1020957,1021085,121999,122000,1021953,1022081,1021954,1022082,1021981,1022109,117903,117904,1022977,1023105,1022978,1023106,1023005,
    1023133,122767,122768,1024001,1024129,1024002,1024130,2,6,118671,118672,1025025,1025153,1025026,1025154,2,8,123535,123536,1026049,1026177,1026050,
    1026178,1026077,1026205,1,1,119440,1,1,1027201,1,1,1027202,1,31,1027229,124047,124048,1028097,1028225,1028098,1028226,1028125,1028253,119951,
    119952,1029121,1029249,1029122,1029250,1029149,1029277,120961,120320,121473,120448,121729,120576,121985,120704,122753,124416,123521,124544,124033,
    124672,2,53,1015838,1015966,1016094,1016222,1016350,1016478,1016606,1016734,1016862,1016990,1017118,1017246,1017374,1017502,1017630,1017758,
    1019934,1020062,1020190,1020318,1020446,1020574,1020702,1020830,1020958,1021086,1021214,1021342,1021470,1021598,1021726,1021854,1028126,1028254,
    1028382,1028510,1028638,1028766,1028894,1029022,1029150,1029278,1029406,1029534,1029662,1029790,1029918,1030046,120966,120965,1030174,120990,
    120350,1,7,120989,1039134,116870,116869,116865,115456,116894,1,1,121984,2,4,21533,1030686,121758,120606,1,14,121757,1041182,117377,115712,117633,
    115840,117662,1040257,1040258,1040285,121990,121989,124161,116736,2,6,122013,124189,117894,117893,117889,115968,1,19,1048321,1048322,1048349,
    123526,123525,124289,120832,123023,123024,123549,124317,119430,119429,119425,116480,118928,21505,115328,12288,2,3,1031710,124062,124702,1,8,
    124061,1047326,118657,116224,119937,116608,119966,23040,2,2,1048832,1048960,292,1,119936,3,2,9600,25216,110,2,1099804,1100060,18,1,1100316,30,3,
    1107996,1108508,1108252,52,1,1114524,4,1,1115164,2,1,1115548,23,1,1118620,1,1,1118876,26,1,1121820,2,1,1122716,2,1,1122972,1,1,1123356,22,1,7836,
    1,1,1126556,10,5,1123996,7708,7964,1126940,1127068,2,2,1128732,1128860,2,2,1129244,1129372,6,2,1129756,1129884,2,2,1130780,1130908,2,2,1131292,
    1131420,34,4,1134876,1135644,1135772,1136028,48,4,1130012,1130140,1132700,1132828,6,4,1136924,1137052,1137180,1137308,59,2,1573888,1574016,1969,1,
    1404572,1391,1,1582533,1,1,1582789,1,1,1583045,1,1,1583301,1,1,1583557,1,1,1583813,1,1,1584069,1,1,1584325,1,1,1584581,1,1,1584837,1,1,1585093,1,
    1,1585349,2,1,1585733,1,1,1585989,1,1,1586245,6,2,1587141,1587142,1,2,1587525,1587526,1,2,1587909,1587910,1,2,1588293,1588294,1,2,1588677,1588678,
    22,1,1581893,9,1,1593029,13,1,1594821,1,1,1595077,1,1,1595333,1,1,1595589,1,1,1595845,1,1,1596101,1,1,1596357,1,1,1596613,1,1,1596869,1,1,1597125,
    1,1,1597381,1,1,1597637,2,1,1598021,1,1,1598277,1,1,1598533,6,2,1599429,1599430,1,2,1599813,1599814,1,2,1600197,1600198,1,2,1600581,1600582,1,2,
    1600965,1600966,22,1,1594181,2,4,1603525,1603653,1603781,1603909,3,1,1605317,51201,270,4596736,3373568,4678912,4613120,3631232,2562304,2749056,
    5230080,5230080,2926720,4778112,2802560,2925568,3209984,3880064,4178560,4398976,4447488,4488192,4736896,3473664,3575168,3697792,3796736,4333184,
    4764928,5044352,2572544,2734720,3506688,3739008,4396672,5181184,3057664,3667328,4384384,4502016,3236992,4254720,4460416,3106048,3378048,3585280,
    3767808,4744960,2605824,2677632,2715392,3301888,3500416,3737600,3896192,4194432,4391680,4402688,4650880,4954368,5093248,5176576,3950080,3981184,
    4116480,4318336,4817408,5193600,4549376,2912128,3113472,4075520,4210432,3748096,3958016,4612352,4946816,2911232,3027200,3475840,3599616,3639168,
    4102016,4135808,4924800,2713856,4212096,2682368,2680320,4001280,4120320,4323456,4930176,4571136,3237760,3473664,4554496,2563200,3011456,3148032,
    3785600,3848192,2722688,3964288,2613120,3134592,2557568,3565056,3324928,4100352,2744704,2895616,3899520,4334720,4543744,3529984,4708352,3556352,
    3243776,4289152,3264512,3846784,2578176,2667648,2679936,3424384,4092800,4274048,4548864,4777856,2718336,2760960,2931072,3110400,3334784,3669760,
    3970304,4904576,5059840,5196672,5203712,2706816,3367680,3521408,4698368,3095040,3196928,3211264,3296512,3641728,3712128,3818624,3990784,4127232,
    4208512,4690688,4355840,4723072,4826368,2689920,2707840,2776704,3695616,4481280,4543744,3105920,3144320,3259776,3528448,4071168,3783296,2585088,
    2849920,3011456,3071232,3149312,3791104,3814528,4181248,4203264,4790784,4946688,4957184,4983808,2606464,3987200,4774400,4938752,3174528,2573056,
    2649344,3012352,3022720,3329152,3473664,3729152,3875072,4357632,4734464,5228160,3359744,4921088,2704512,3390848,3406208,3580032,3624448,3802240,
    3845248,3945856,4098048,4992768,2668160,3217152,4930560,2626944,3050624,3601664,4691200,3130752,3187200,3410816,3785600,4932352,2692224,2754432,
    3027584,3344768,3385088,3429376,3568256,3801856,3862784,4177024,4482944,4485248,4777472,4944128,2727808,3628288,2756224,3729408,3820544,4390144,
    4936064,5122944,5197696,3394432,3597696,4256768,4023680,4034560,4081920,3760128,3689600,4566016,2580480,4299520,2694400,2687872,3101440,3238272,
    4090624,2998912,3575552,3365376,4693376,4466176,4925056,4507008,3107200,2662400,2809856,2,1,2895104,1,1,3357184,2,10,2682624,3773696,3892480,
    3972608,3976960,3977856,3983232,4958976,4087552,4185728,1,1,4393216,1,1,4553728,2,2,4725760,4750976,3,68,5011328,5012992,5018624,5167616,4747008,
    4938624,2610944,2651008,2664064,2712704,2716160,2730112,2805376,2818816,2831360,2891776,2905088,3027456,3028736,3164672,3191808,3196672,3209472,
    3319680,3338496,3360896,3424896,3586944,3607808,3641600,3716864,3741056,3805440,3950720,3972864,3974272,3974144,3975168,3975936,3976832,3982976,
    3983104,4005888,4014208,4055040,4127232,4129920,4137088,4176128,4194944,4257408,4275328,4275328,4336512,4491264,4508416,4554880,4562048,4614528,
    4621312,4709120,4725760,4944256,4980608,4988288,3160704,18970368,4262912,2,106,2560768,2677376,2667520,2605056,2663040,2670592,2712448,2718976,
    2805376,2796160,2804864,2814208,2895104,2906496,2925056,2927104,2961664,2987008,3107072,3107968,3126400,3135104,3173376,3188480,3179520,3196672,
    3190784,3209472,3217920,3269120,3280384,3287296,3320576,3357184,3378048,3378560,3386112,3521664,3529984,3580032,3632512,3630464,3641600,3673856,
    3716864,3920768,3742336,3757952,3773696,3815552,3834624,3841408,3870336,3870592,3892480,3894656,3897856,3908864,3907584,3958272,4020352,4055040,
    4078976,4107648,4127232,4169472,4194944,4303104,4323200,4439168,4497536,4506368,4508416,4546432,4553728,4547968,4554880,4554496,4552320,4562048,
    4572416,4621312,4692992,4733184,4770944,4799232,4931072,4944256,4958976,4976000,4980608,4982144,4988288,5081344,5230080,18097408,18096640,
    18475648,1953408,2100224,2104448,19473536,19818496,20932992,5218688,5228288,67,1,191647,1,1,194848,10,13,193701,193702,8234149,8234150,190496,
    190497,190499,190627,190755,190883,191011,191139,191267,1,5,191523,191651,191779,191907,192035,1,1,192291,1,2,192547,192675,1,2,192931,193059,1,9,
    193315,193443,193571,193699,193827,191138,190628,191908,193060,5451,1,8932551,1,1,8932807,14,1,8934087,130,2,8952008,8952136,539,2,9020361,
    9020362,366,2,9067724,9067723,1,1,9067725,251,2,9100366,9100494,48034,7,15248335,15248463,15249360,15249361,15249362,15249363,15249364,86,6,
    15260879,15261007,15261136,15261264,15261137,15261265,75327,542,2563712,2563072,2564224,16814336,2600960,2610944,2612608,2621696,2637056,2641024,
    2651008,2647936,1724160,16981248,2664064,2664960,2667008,2669440,16944640,1727616,2667392,2672256,16950656,2673536,2675200,2582016,2676224,
    2677376,21557120,2685568,2687360,1732480,2694528,2695936,2701568,2702208,1739392,2712448,2712704,2716160,2718976,2720384,2720512,2722688,2729088,
    2730112,2731264,2734464,2735744,2736000,2736000,2736000,17110528,3684352,2745600,2748288,17150336,2749824,2750592,2753280,2772736,2759680,2761728,
    2765824,2773248,2784000,2787328,2795904,2797952,2802176,2802176,2804864,2807168,2808192,2810112,2853632,2818816,2853760,2828416,2832896,2687872,
    2914048,2877184,2882048,2885248,2868608,2889984,2889856,2905600,17461760,2914560,2915200,2917120,2919680,2920704,2928896,17519616,17528064,
    2946560,2952576,2954112,2944000,2962176,1799936,1801728,2982912,2989824,2989824,17622016,3006848,3009536,3011456,3012992,17665024,3014528,3015424,
    3123584,3019008,1818752,3026944,3028736,3039232,3032704,17756672,3056000,17756928,3061504,3061120,3063296,3076224,3076352,1841024,3079808,3085312,
    3088000,3093632,1847552,17875328,1850880,3102720,3103104,3103488,3106048,22137088,3112704,17930368,17930368,4259968,3117312,3117312,1860480,
    18439168,19983616,3125504,3126656,1864064,3132672,3139200,3140480,3144832,3162240,1875200,1871360,3164672,18049536,3171200,3187712,3188224,
    3188480,3188224,3194112,3196672,3201280,3199488,3200896,3206912,3209472,3209984,3213312,3214720,3223168,3233920,3238400,3254272,18187776,3251840,
    3243520,3257344,3260800,3273216,18217088,3281152,3269248,3265664,1906432,3290240,3292928,3296896,3292032,1914368,3319680,3323392,18351360,3338624,
    3374080,3351680,1936512,3360896,1934336,1929728,2672896,2673280,3375104,3362304,4216448,2223232,3378048,3378560,3379328,3387136,3385728,18473344,
    1942656,3407104,3392128,3418368,3424896,18495104,3426048,3411840,3443200,1953408,3449088,3461504,3470592,3494912,18567552,3501440,1969152,3510400,
    18633600,3516928,1976064,3520768,3526528,3529984,3530112,18695808,17728896,18709760,3548928,18767360,3563392,3565184,3552128,3574528,3579648,
    3586944,3580032,3585152,3587072,3588736,18779904,3578368,3610496,3618560,2005376,3630464,3629952,18835584,3603584,3651328,18853632,18859776,
    3662592,3677312,3673856,3673472,2018048,3679488,3686016,3685248,3692160,16945792,3711616,18952576,3722752,18994560,3740672,3742336,3745792,
    19072000,3751936,3754624,19110528,19139072,3783936,3786112,2053632,3789440,2055168,2055168,3810176,3812864,3815552,3818112,3826944,2067840,
    3838464,19274496,3841792,19286272,3848192,17878912,3868672,19386496,19389440,19407360,2096640,2098176,3897856,19429760,19429632,19434624,19437952,
    3903232,3903360,3903360,3908864,2104448,3917184,2106112,2116352,19533440,3942144,3950080,3958272,2126208,19600128,3975936,19614976,19620480,
    3983232,3995008,2135936,4005888,4007168,4007808,19709440,19747712,19747712,4028160,2162944,19780992,4055808,4056192,2167680,19808256,4090112,
    2183168,4092928,4092288,4096000,19907328,4108672,2195584,4121472,4129024,4137600,2202112,19993600,19997568,2206848,20016256,4177152,20029184,
    4180608,4193536,4194944,20081920,20091264,4206592,20108288,4208640,18460544,2222720,4217088,4227456,2229632,4235008,2972288,20173696,20175488,
    18467200,18468352,4259968,4260352,4706048,2241920,4278400,4277632,4279936,2709888,4282496,4282752,4284032,4289280,20291072,4289152,4296320,
    4305280,4314752,4297088,4316800,4322176,4336512,4303232,4318464,4318720,4320768,20323072,20362624,20343424,2266496,4356224,4356480,4360960,
    20571392,4370944,20420096,2272896,2273408,20437120,20474112,2274688,4401152,4402688,4404096,4404352,4412544,4408320,4425472,4419840,4439168,
    4428800,4437376,4440832,2288512,4452480,4456576,2292864,4468736,4469120,20657024,4483968,4484864,2300544,4488448,1727872,20731648,20755200,
    2318080,2319232,4542464,4552320,4572416,4598400,20861952,4609408,4612224,4623744,4635520,20944768,17039872,4646272,4644352,4651008,17067776,
    4680192,4692992,21162240,21165696,4737536,4749440,4753536,21206784,4754816,4791296,4811648,4811776,4800000,4848768,4852352,21363968,4900224,
    2411136,4905856,21412736,2421504,4940160,3070208,4952448,21537408,21564672,2438912,2439936,4976640,21628160,2447616,21646080,4982144,4982144,
    4985984,21682944,5009664,2464128,5018752,5034880,5038336,5046016,2483968,21862400,5081344,5120000,5144192,2516736,2520704,5157760,22046464,
    2522112,22053504,22087424,22104192,5201280,2534144,5209216,5209856,5210752,5212032,5212928,5217664,22216704
};
/* gap, length: pairs that do not compose again */
static const uint32_t vp_impl_unicode_excluded[72] = {
    836,1,1555,8,124,2,1,1,83,1,2,1,34,3,2,1,253,2,997,1,9,1,4,1,4,1,4,1,12,1,9,1,1,2,1,1,8,1,17,1,9,1,4,1,4,1,4,1,12,1,6946,1,53312,1,1,1,10,13,1,5,
    1,1,1,2,1,2,1,9,54799,7,86,6
};

enum {
    VP_IMPL_LETTER = 1, VP_IMPL_NUMBER = 2, VP_IMPL_SPACE = 3, VP_IMPL_CLASS = 3, /* two bits of a property */
    VP_IMPL_UNSTABLE = 4,              /* may change under NFC, or join what stands before it */
    VP_IMPL_CODE_POINTS = 0x110000,
    VP_IMPL_COMPOSE_SLOTS = 2048,      /* for 929 pairs */
    VP_IMPL_TOKEN_LIMIT = 1 << 22,     /* ids; bounds what a hostile file can make us allocate */
    VP_IMPL_ADDED_BYTES = 1024,        /* longest added token; bounds the time to match one */
    VP_IMPL_TEXT_BYTES = 1 << 29,
    VP_IMPL_SHORT_WORD = 64
};

/* The tables above, unfolded for look-up when a tokenizer is made. */
typedef struct vp_impl_unicode {
    uint8_t properties[VP_IMPL_CODE_POINTS];
    uint32_t combining_first[sizeof vp_impl_unicode_combining / sizeof(uint32_t) / 3];
    uint32_t decomposed[VP_IMPL_UNICODE_DECOMPOSITION_COUNT]; /* ascending */
    uint32_t first_half[VP_IMPL_UNICODE_DECOMPOSITION_COUNT];
    uint32_t second_half[VP_IMPL_UNICODE_DECOMPOSITION_COUNT]; /* 0: none */
    uint64_t pair[VP_IMPL_COMPOSE_SLOTS]; /* first << 32 | second; 0: free */
    uint32_t composed[VP_IMPL_COMPOSE_SLOTS];
} vp_impl_unicode;

typedef struct vp_impl_added { const char *text; uint32_t bytes; int32_t id; } vp_impl_added;
/* added tokens, sorted by bytes; first[b] .. first[b + 1] begin with byte b */
typedef struct vp_impl_added_set { vp_impl_added *tokens; uint32_t count; uint32_t first[257]; } vp_impl_added_set;

typedef struct vp_impl_merge { uint32_t left, right, rank, product; } vp_impl_merge; /* rank UINT32_MAX: free */
typedef struct vp_impl_word { uint32_t hash; int32_t id; } vp_impl_word;              /* id -1: free */

enum { VP_IMPL_TOKEN_PRESENT = 1, VP_IMPL_TOKEN_SPECIAL = 2 };

struct vp_tokenizer {
    vp_impl_unicode *unicode;     /* NULL: no words, no normaliser (byte tokenizer) */
    int nfc;
    vp_impl_added_set raw, normalized;
    char *added_text;
    size_t added_used;
    uint32_t token_count;         /* largest id + 1 */
    uint8_t *token_flags;
    uint64_t *token_start;        /* [token_count + 1] into token_bytes: what a token decodes to */
    char *token_bytes;
    int32_t byte_id[256];         /* -1: the vocabulary lacks it */
    vp_impl_merge *merges;
    uint32_t merge_mask;
    vp_impl_word *words;          /* tokens that their own bytes merge to: most words need no merging */
    uint32_t word_mask, word_longest;
    int32_t special[7];           /* in the order of vp_impl_special_contents; -1: not there */
};

static const char *const vp_impl_special_contents[7] = {
    "<|endoftext|>", "<|padding|>", "<im_start>", "<im_end>", "<im_patch>", "<im_col>", "<|image|>"
};

/* ------------------------------------------------------------------------------------------ UTF-8 and Unicode tables */

/* One character at text[0..bytes), bytes > 0: its length and code point, or -1 and the length of the maximal invalid part. */
static int32_t vp_impl_utf8_next(const char *text, size_t bytes, size_t *length) {
    const uint8_t *p = (const uint8_t *)text;
    uint8_t low = 0x80, high = 0xBF;
    int32_t code;
    size_t i, want;
    *length = 1;
    if (p[0] < 0x80) return p[0];
    if (p[0] < 0xC2 || p[0] > 0xF4) return -1;
    want = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    code = p[0] & (0x7F >> want);
    if (p[0] == 0xE0) low = 0xA0;
    if (p[0] == 0xED) high = 0x9F;
    if (p[0] == 0xF0) low = 0x90;
    if (p[0] == 0xF4) high = 0x8F;
    for (i = 1; i < want; i++) {
        if (i >= bytes || p[i] < low || p[i] > high) {
            *length = i;
            return -1;
        }
        low = 0x80;
        high = 0xBF;
        code = code << 6 | (p[i] & 0x3F);
    }
    *length = want;
    return code;
}

/* The same for text that is known to be valid. */
static inline uint32_t vp_impl_utf8_valid_next(const uint8_t *p, size_t *length) {
    if (p[0] < 0x80) {
        *length = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *length = 2;
        return (uint32_t)(p[0] & 0x1F) << 6 | (uint32_t)(p[1] & 0x3F);
    }
    if (p[0] < 0xF0) {
        *length = 3;
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (uint32_t)(p[2] & 0x3F);
    }
    *length = 4;
    return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (uint32_t)(p[3] & 0x3F);
}

static inline uint64_t vp_impl_mix(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 32;
    key *= 0xD6E8FEB86659FD93u;
    return key ^ key >> 29;
}

static void vp_impl_unicode_compose_add(vp_impl_unicode *u, uint32_t first, uint32_t second, uint32_t composed) {
    uint64_t key = (uint64_t)first << 32 | second;
    uint32_t slot = (uint32_t)vp_impl_mix(key) & (VP_IMPL_COMPOSE_SLOTS - 1);
    while (u->pair[slot]) slot = (slot + 1) & (VP_IMPL_COMPOSE_SLOTS - 1);
    u->pair[slot] = key;
    u->composed[slot] = composed;
}

/* Unfolds the decompositions; a pair that composes makes its second half unstable, any decomposable character that does not come
 * back, too (its pieces may join what stands before it). */
static void vp_impl_unicode_init_pairs(vp_impl_unicode *u) {
    const uint32_t *t = vp_impl_unicode_decompositions, *x = vp_impl_unicode_excluded;
    const uint32_t *end = t + sizeof vp_impl_unicode_decompositions / sizeof *t, *x_end = x + sizeof vp_impl_unicode_excluded / sizeof *x;
    uint32_t code = 0, n = 0, i, excluded_first = x[0], excluded_end = x[0] + x[1];
    while (t < end) {
        code += *t++;
        for (i = *t++; i > 0; i--, code++, t++, n++) {
            uint32_t second = vp_impl_unicode_seconds[*t % 128];
            while (code >= excluded_end && x + 2 < x_end) {
                x += 2;
                excluded_first = excluded_end + x[0];
                excluded_end = excluded_first + x[1];
            }
            u->decomposed[n] = code;
            u->first_half[n] = *t / 128;
            u->second_half[n] = second;
            if (!second || (code >= excluded_first && code < excluded_end)) {
                u->properties[code] |= VP_IMPL_UNSTABLE;
            } else {
                u->properties[second] |= VP_IMPL_UNSTABLE;
                vp_impl_unicode_compose_add(u, *t / 128, second, code);
            }
        }
    }
}

static void vp_impl_unicode_init(vp_impl_unicode *u) {
    const uint32_t *t = vp_impl_unicode_classes;
    size_t i;
    uint32_t code = 0, length;
    memset(u, 0, sizeof *u);
    for (i = 0; i < sizeof vp_impl_unicode_classes / sizeof *t; i += 2) {
        code += t[i];
        length = t[i + 1] / 4;
        memset(u->properties + code, (int)(t[i + 1] % 4), length);
        code += length;
    }
    t = vp_impl_unicode_combining;
    code = 0;
    for (i = 0; i < sizeof vp_impl_unicode_combining / sizeof *t; i += 3) {
        u->combining_first[i / 3] = code + t[i];
        for (code += t[i], length = t[i + 1]; length > 0; length--) u->properties[code++] |= VP_IMPL_UNSTABLE;
    }
    vp_impl_unicode_init_pairs(u);
    for (code = 0x1161; code <= 0x1175; code++) u->properties[code] |= VP_IMPL_UNSTABLE; /* Hangul vowels and finals join */
    for (code = 0x11A8; code <= 0x11C2; code++) u->properties[code] |= VP_IMPL_UNSTABLE;
}

/* Number of the last element of ascending values that is <= key, or -1. */
static int32_t vp_impl_floor(const uint32_t *values, int32_t count, uint32_t key) {
    int32_t low = -1, high = count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (values[middle] <= key) low = middle; else high = middle;
    }
    return low;
}

static uint32_t vp_impl_combining_class(const vp_impl_unicode *u, uint32_t code) {
    const uint32_t *t = vp_impl_unicode_combining;
    int32_t run = vp_impl_floor(u->combining_first, (int32_t)(sizeof u->combining_first / sizeof(uint32_t)), code);
    return run >= 0 && code - u->combining_first[run] < t[run * 3 + 1] ? t[run * 3 + 2] : 0;
}

/* Canonical decomposition of one character; returns 1..4 code points. Hangul syllables stay whole: they would come back anyway. */
static size_t vp_impl_decompose(const vp_impl_unicode *u, uint32_t code, uint32_t *out) {
    uint32_t tail[4];
    size_t n = 0, count = 0;
    for (;;) { /* only first halves decompose further: at most 3 times in Unicode 9.0 */
        int32_t i = vp_impl_floor(u->decomposed, VP_IMPL_UNICODE_DECOMPOSITION_COUNT, code);
        if (i < 0 || u->decomposed[i] != code) break;
        code = u->first_half[i];
        if (u->second_half[i] && n < 3) tail[n++] = u->second_half[i];
    }
    out[count++] = code;
    while (n > 0) out[count++] = tail[--n];
    return count;
}

/* The character that two compose to, or 0. */
static uint32_t vp_impl_compose(const vp_impl_unicode *u, uint32_t first, uint32_t second) {
    uint64_t key = (uint64_t)first << 32 | second;
    uint32_t slot = (uint32_t)vp_impl_mix(key) & (VP_IMPL_COMPOSE_SLOTS - 1);
    if (first >= 0x1100 && first < 0x1113 && second >= 0x1161 && second < 0x1176) {
        return 0xAC00 + ((first - 0x1100) * 21 + (second - 0x1161)) * 28;
    }
    if (first >= 0xAC00 && first < 0xAC00 + 11172 && (first - 0xAC00) % 28 == 0 && second > 0x11A7 && second < 0x11C3) {
        return first + (second - 0x11A7);
    }
    for (; u->pair[slot]; slot = (slot + 1) & (VP_IMPL_COMPOSE_SLOTS - 1)) {
        if (u->pair[slot] == key) return u->composed[slot];
    }
    return 0;
}

/* -------------------------------------------------------------------------------------------------------------- work */

/* What one call of encode or decode needs; every buffer grows and is freed by vp_impl_work_free. */
typedef struct vp_impl_work {
    const vp_tokenizer *t;
    int32_t *ids;
    size_t id_count, id_capacity;
    char *text; /* the normalised piece */
    size_t text_used, text_capacity;
    uint32_t *segment; /* characters in normalisation: class << 24 | code point; the second half of the buffer is for sorting */
    size_t segment_count, segment_capacity;
    char *word; /* scratch of a long word */
    size_t word_capacity;
    int out_of_memory;
} vp_impl_work;

static void vp_impl_work_free(vp_impl_work *w) {
    free(w->ids);
    free(w->text);
    free(w->segment);
    free(w->word);
}

/* Room for `need` elements; 0 (and out_of_memory) when there is none. The content is kept. */
static int vp_impl_work_room(vp_impl_work *w, void **buffer, size_t *capacity, size_t need, size_t element_bytes) {
    size_t capacity_new = *capacity < 64 ? 64 : *capacity;
    void *grown;
    if (need <= *capacity) return 1;
    while (capacity_new < need && capacity_new <= SIZE_MAX / 2) capacity_new *= 2;
    if (capacity_new < need) capacity_new = need;
    grown = capacity_new <= SIZE_MAX / element_bytes ? realloc(*buffer, capacity_new * element_bytes) : NULL;
    if (!grown) {
        w->out_of_memory = 1;
        return 0;
    }
    *buffer = grown;
    *capacity = capacity_new;
    return 1;
}

static inline void vp_impl_push_id(vp_impl_work *w, int32_t id) {
    if (w->id_count == w->id_capacity) {
        void *ids = w->ids;
        if (!vp_impl_work_room(w, &ids, &w->id_capacity, w->id_count + 1, sizeof(int32_t))) return;
        w->ids = (int32_t *)ids;
    }
    w->ids[w->id_count++] = id;
}

static void vp_impl_push_text(vp_impl_work *w, const char *text, size_t bytes) {
    void *buffer = w->text;
    if (!vp_impl_work_room(w, &buffer, &w->text_capacity, w->text_used + bytes, 1)) return;
    w->text = (char *)buffer;
    if (bytes) memcpy(w->text + w->text_used, text, bytes);
    w->text_used += bytes;
}

/* --------------------------------------------------------------------------------------------------------------- NFC */

/* Canonical ordering of a run of marks, stable; linear for long runs, so that a megabyte of marks stays cheap. */
static void vp_impl_order_marks(uint32_t *marks, size_t count, uint32_t *scratch) {
    size_t i, j, start[257];
    if (count <= 24) {
        for (i = 1; i < count; i++) {
            uint32_t mark = marks[i];
            for (j = i; j > 0 && marks[j - 1] >> 24 > mark >> 24; j--) marks[j] = marks[j - 1];
            marks[j] = mark;
        }
        return;
    }
    memset(start, 0, sizeof start);
    for (i = 0; i < count; i++) start[(marks[i] >> 24) + 1]++;
    for (i = 1; i < 257; i++) start[i] += start[i - 1];
    for (i = 0; i < count; i++) scratch[start[marks[i] >> 24]++] = marks[i];
    memcpy(marks, scratch, count * sizeof *marks);
}

/* Orders and composes w->segment in place, then appends it to w->text. A mark is blocked by one of its own or a higher class that
 * stands between it and the starter (Unicode Standard, D115-D117). */
static void vp_impl_compose_segment(vp_impl_work *w) {
    const vp_impl_unicode *u = w->t->unicode;
    uint32_t *s = w->segment, last_class = 0;
    size_t i, j, out = 0, starter = SIZE_MAX, bytes = 0;
    char *p;
    void *text;
    for (i = 0; i < w->segment_count; i = j) {
        for (j = i; j < w->segment_count && s[j] >> 24; j++) {}
        vp_impl_order_marks(s + i, j - i, s + w->segment_capacity / 2);
        if (j == i) j++;
    }
    for (i = 0; i < w->segment_count; i++) {
        uint32_t code = s[i] & 0xFFFFFF, mark_class = s[i] >> 24, composed = 0;
        if (starter != SIZE_MAX && (starter + 1 == out || last_class < mark_class)) composed = vp_impl_compose(u, s[starter], code);
        if (composed) {
            s[starter] = composed;
            continue;
        }
        if (!mark_class) starter = out;
        last_class = mark_class;
        s[out++] = s[i];
    }
    text = w->text;
    if (!vp_impl_work_room(w, &text, &w->text_capacity, w->text_used + out * 4, 1)) return;
    w->text = p = (char *)text;
    p += w->text_used;
    for (i = 0; i < out; i++) bytes += vp_impl_utf8_put(p + bytes, s[i] & 0xFFFFFF);
    w->text_used += bytes;
}

/* One segment: a stable character (or none, at the start of the piece) and the unstable ones behind it. */
static void vp_impl_normalise_segment(vp_impl_work *w, const uint8_t *p, size_t bytes) {
    const vp_impl_unicode *u = w->t->unicode;
    uint32_t parts[4];
    void *segment = w->segment;
    size_t at = 0, length, count, i;
    /* a character of one byte stays alone, others have two or more and become at most 4; twice, see segment */
    if (!vp_impl_work_room(w, &segment, &w->segment_capacity, bytes * 4, sizeof(uint32_t))) return;
    w->segment = (uint32_t *)segment;
    w->segment_count = 0;
    while (at < bytes) {
        count = vp_impl_decompose(u, vp_impl_utf8_valid_next(p + at, &length), parts);
        at += length;
        for (i = 0; i < count; i++) w->segment[w->segment_count++] = parts[i] | vp_impl_combining_class(u, parts[i]) << 24;
    }
    vp_impl_compose_segment(w);
}

/* NFC of a piece of valid UTF-8: points *out at the piece itself where nothing can change, else into w->text. */
static void vp_impl_nfc(vp_impl_work *w, const char *piece, size_t bytes, const char **out, size_t *out_bytes) {
    const uint8_t *p = (const uint8_t *)piece;
    const uint8_t *properties = w->t->unicode->properties;
    size_t i = 0, length, last_stable = 0, copied = 0;
    *out = piece;
    *out_bytes = bytes;
    w->text_used = 0;
    while (i < bytes) {
        if (p[i] < 0xCC) { /* below U+0300: stable */
            last_stable = i++;
            if (p[last_stable] >= 0x80) i++;
            continue;
        }
        if (!(properties[vp_impl_utf8_valid_next(p + i, &length)] & VP_IMPL_UNSTABLE)) {
            last_stable = i;
            i += length;
            continue;
        }
        vp_impl_push_text(w, piece + copied, last_stable - copied);
        while (i < bytes && (properties[vp_impl_utf8_valid_next(p + i, &length)] & VP_IMPL_UNSTABLE)) i += length;
        vp_impl_normalise_segment(w, p + last_stable, i - last_stable);
        last_stable = copied = i;
    }
    if (!copied) return;
    vp_impl_push_text(w, piece + copied, bytes - copied);
    *out = w->text;
    *out_bytes = w->text_used;
}

/* --------------------------------------------------------------------------------------------------------------- BPE */

static inline uint32_t vp_impl_word_hash(const uint8_t *p, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        memcpy(&part, p, 8);
        hash = vp_impl_mix(hash ^ part);
    }
    for (part = 0; bytes > 0; bytes--) part = part << 8 | *p++;
    return (uint32_t)vp_impl_mix(hash ^ part);
}

static inline const vp_impl_merge *vp_impl_merge_find(const vp_tokenizer *t, uint32_t left, uint32_t right) {
    uint32_t slot = (uint32_t)vp_impl_mix((uint64_t)left << 32 | right) & t->merge_mask;
    for (; t->merges[slot].rank != UINT32_MAX; slot = (slot + 1) & t->merge_mask) {
        if (t->merges[slot].left == left && t->merges[slot].right == right) return &t->merges[slot];
    }
    return NULL;
}

/* Merges a word of at most VP_IMPL_SHORT_WORD bytes: scan for the lowest rank, leftmost first. */
static void vp_impl_merge_short(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    const vp_impl_merge *found;
    int32_t id[VP_IMPL_SHORT_WORD];
    uint32_t rank[VP_IMPL_SHORT_WORD], product[VP_IMPL_SHORT_WORD]; /* of the pair that begins there; the last has none */
    size_t i, best, n = 0;
    for (i = 0; i < bytes; i++) {
        if (t->byte_id[word[i]] >= 0) id[n++] = t->byte_id[word[i]];
    }
    for (i = 0; i < n; i++) {
        found = i + 1 < n ? vp_impl_merge_find(t, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
        rank[i] = found ? found->rank : UINT32_MAX;
        product[i] = found ? found->product : 0;
    }
    while (n > 1) {
        for (best = 0, i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[best]) best = i;
        }
        if (rank[best] == UINT32_MAX) break;
        id[best] = (int32_t)product[best];
        n--;
        for (i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i] = rank[i + 1];
            product[i] = product[i + 1];
        }
        for (i = best ? best - 1 : 0; i <= best; i++) {
            found = i + 1 < n ? vp_impl_merge_find(t, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
            rank[i] = found ? found->rank : UINT32_MAX;
            product[i] = found ? found->product : 0;
        }
    }
    for (i = 0; i < n; i++) vp_impl_push_id(w, id[i]);
}

/* a long word: a doubly linked list of symbols and a heap of rank << 32 | position */
typedef struct vp_impl_list {
    uint32_t *next, *previous, *rank, *product; /* rank[i] is that of the pair that begins at i; UINT32_MAX: none, or i is gone */
    int32_t *id;
    uint64_t *heap;
    size_t heap_count;
} vp_impl_list;

static void vp_impl_heap_push(vp_impl_list *l, uint64_t entry) {
    size_t i = l->heap_count++;
    while (i > 0 && l->heap[(i - 1) / 2] > entry) {
        l->heap[i] = l->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    l->heap[i] = entry;
}

static uint64_t vp_impl_heap_pop(vp_impl_list *l) {
    uint64_t top = l->heap[0], moved = l->heap[--l->heap_count];
    size_t i = 0, child;
    while ((child = i * 2 + 1) < l->heap_count) {
        if (child + 1 < l->heap_count && l->heap[child + 1] < l->heap[child]) child++;
        if (l->heap[child] >= moved) break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = moved;
    return top;
}

/* Notes the pair that begins at i; `count` is the end of the list. */
static void vp_impl_list_pair(const vp_tokenizer *t, vp_impl_list *l, uint32_t i, uint32_t count) {
    const vp_impl_merge *found = l->next[i] < count ? vp_impl_merge_find(t, (uint32_t)l->id[i], (uint32_t)l->id[l->next[i]]) : NULL;
    l->rank[i] = found ? found->rank : UINT32_MAX;
    if (!found) return;
    l->product[i] = found->product;
    vp_impl_heap_push(l, (uint64_t)found->rank << 32 | i);
}

/* Merges a word of any length in O(n log n). An entry of the heap is stale when the pair at its place has another rank by now;
 * each merge pushes at most two, so 3 n entries are enough. */
static void vp_impl_merge_long(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    vp_impl_list l;
    void *buffer = w->word;
    uint32_t i, n = 0;
    if (!vp_impl_work_room(w, &buffer, &w->word_capacity, bytes, 3 * sizeof(uint64_t) + 5 * sizeof(uint32_t))) return;
    w->word = (char *)buffer;
    l.heap = (uint64_t *)buffer;
    l.heap_count = 0;
    l.id = (int32_t *)(void *)(l.heap + 3 * bytes);
    l.next = (uint32_t *)(void *)(l.id + bytes);
    l.previous = l.next + bytes;
    l.rank = l.previous + bytes;
    l.product = l.rank + bytes;
    for (i = 0; i < bytes; i++) {
        if (t->byte_id[word[i]] < 0) continue;
        l.id[n] = t->byte_id[word[i]];
        l.next[n] = n + 1;
        l.previous[n] = n - 1; /* of 0: UINT32_MAX, none */
        n++;
    }
    for (i = 0; i < n; i++) vp_impl_list_pair(t, &l, i, n);
    while (l.heap_count) {
        uint64_t entry = vp_impl_heap_pop(&l);
        uint32_t at = (uint32_t)entry, right;
        if (l.rank[at] != (uint32_t)(entry >> 32)) continue;
        right = l.next[at];
        l.id[at] = (int32_t)l.product[at];
        l.rank[right] = UINT32_MAX;
        l.next[at] = l.next[right];
        if (l.next[at] < n) l.previous[l.next[at]] = at;
        vp_impl_list_pair(t, &l, at, n);
        if (l.previous[at] != UINT32_MAX) vp_impl_list_pair(t, &l, l.previous[at], n);
    }
    for (i = 0; i < n; i = l.next[i]) vp_impl_push_id(w, l.id[i]);
}

static void vp_impl_merge_word(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    if (bytes <= VP_IMPL_SHORT_WORD) vp_impl_merge_short(w, word, bytes);
    else vp_impl_merge_long(w, word, bytes);
}

static inline void vp_impl_encode_word(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    if (bytes <= t->word_longest) {
        uint32_t hash = vp_impl_word_hash(word, bytes), slot;
        for (slot = hash & t->word_mask; t->words[slot].id >= 0; slot = (slot + 1) & t->word_mask) {
            const uint64_t *start = t->token_start + t->words[slot].id;
            if (t->words[slot].hash == hash && start[1] - start[0] == bytes && !memcmp(t->token_bytes + start[0], word, bytes)) {
                vp_impl_push_id(w, t->words[slot].id);
                return;
            }
        }
    }
    vp_impl_merge_word(w, word, bytes);
}

/* ---------------------------------------------------------------------------------------------------- words and pieces */

/* Bytes of the contraction at p (which points at '), or 0. */
static size_t vp_impl_contraction(const uint8_t *p, size_t bytes) {
    if (bytes > 1 && (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd')) return 2;
    if (bytes > 2 && ((p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') || (p[1] == 'l' && p[2] == 'l'))) return 3;
    return 0;
}

/* Bytes of the first word of a piece (bytes > 0). */
static size_t vp_impl_word_bytes(const uint8_t *properties, const uint8_t *p, size_t bytes) {
    size_t at = 0, length, before;
    uint32_t kind;
    if (p[0] == '\'' && (length = vp_impl_contraction(p, bytes)) > 0) return length;
    kind = properties[vp_impl_utf8_valid_next(p, &length)] & VP_IMPL_CLASS;
    if (p[0] == ' ' && bytes > 1) {
        uint32_t next = properties[vp_impl_utf8_valid_next(p + 1, &length)] & VP_IMPL_CLASS;
        if (next != VP_IMPL_SPACE) {
            at = 1;
            kind = next;
        } else {
            length = 1;
        }
    }
    at += length;
    before = 0;
    while (at < bytes && (properties[vp_impl_utf8_valid_next(p + at, &length)] & VP_IMPL_CLASS) == kind) {
        before = at;
        at += length;
    }
    /* white space before a word gives its last character back */
    return kind == VP_IMPL_SPACE && at < bytes && before > 0 ? before : at;
}

static void vp_impl_encode_words(vp_impl_work *w, const char *piece, size_t bytes) {
    const uint8_t *p = (const uint8_t *)piece;
    size_t i, length;
    if (!w->t->unicode) {
        for (i = 0; i < bytes; i++) vp_impl_push_id(w, w->t->byte_id[p[i]]);
        return;
    }
    for (i = 0; i < bytes && !w->out_of_memory; i += length) {
        length = vp_impl_word_bytes(w->t->unicode->properties, p + i, bytes - i);
        vp_impl_encode_word(w, p + i, length);
    }
}

/* The longest added token that stands at p, or NULL. tokens[low..high) share the first `depth` bytes with the text; the one that
 * ends there sorts first. */
static const vp_impl_added *vp_impl_added_at(const vp_impl_added_set *set, const char *p, size_t bytes) {
    uint32_t low = set->first[(uint8_t)*p], high = set->first[(uint8_t)*p + 1], end, middle, depth = 1;
    const vp_impl_added *best = NULL;
    while (low < high) {
        uint8_t b;
        if (set->tokens[low].bytes == depth) {
            best = &set->tokens[low];
            if (++low == high) break;
        }
        if (depth == bytes) break;
        b = (uint8_t)p[depth];
        if (b < (uint8_t)set->tokens[low].text[depth] || b > (uint8_t)set->tokens[high - 1].text[depth]) break;
        for (end = high; low < end;) { /* first with at least b */
            middle = low + (end - low) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] < b) low = middle + 1; else end = middle;
        }
        for (end = low; end < high;) { /* first with more than b */
            middle = end + (high - end) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] <= b) end = middle + 1; else high = middle;
        }
        depth++;
    }
    return best;
}

/* The next added token in text[from..bytes): its position, or `bytes` and NULL. */
static size_t vp_impl_added_next(const vp_impl_added_set *set, const char *text, size_t from, size_t bytes, const vp_impl_added **found) {
    *found = NULL;
    if (!set->count) return bytes;
    for (; from < bytes; from++) {
        uint8_t b = (uint8_t)text[from];
        if (set->first[b] == set->first[b + 1]) continue;
        *found = vp_impl_added_at(set, text + from, bytes - from);
        if (*found) return from;
    }
    return bytes;
}

/* A piece without raw added tokens. */
static void vp_impl_encode_piece(vp_impl_work *w, const char *piece, size_t bytes) {
    const vp_impl_added *found;
    size_t from = 0, at;
    if (w->t->nfc) vp_impl_nfc(w, piece, bytes, &piece, &bytes);
    while (from < bytes && !w->out_of_memory) {
        at = vp_impl_added_next(&w->t->normalized, piece, from, bytes, &found);
        vp_impl_encode_words(w, piece + from, at - from);
        if (!found) break;
        vp_impl_push_id(w, found->id);
        from = at + found->bytes;
    }
}

VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids, size_t capacity, size_t *count) {
    const vp_impl_added *found;
    vp_impl_work work;
    vp_result result = VP_OK;
    size_t from = 0, at;
    if (!tokenizer || !count || (bytes && !text) || (capacity && !ids) || bytes > VP_IMPL_TEXT_BYTES) return VP_ERR_RANGE;
    if (vp_utf8_valid_bytes(text, bytes) != bytes) return VP_ERR_FORMAT;
    memset(&work, 0, sizeof work);
    work.t = tokenizer;
    while (from < bytes && !work.out_of_memory) {
        at = vp_impl_added_next(&tokenizer->raw, text, from, bytes, &found);
        vp_impl_encode_piece(&work, text + from, at - from);
        if (!found) break;
        vp_impl_push_id(&work, found->id);
        from = at + found->bytes;
    }
    if (work.out_of_memory) {
        result = VP_ERR_MEMORY;
    } else {
        *count = work.id_count;
        if (work.id_count > capacity) result = VP_ERR_CAPACITY;
        else if (work.id_count) memcpy(ids, work.ids, work.id_count * sizeof *ids);
    }
    vp_impl_work_free(&work);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------ decode */

/* Bytes of text with every maximal invalid part as U+FFFD; out has room for three times as many. */
static size_t vp_impl_lossy(const char *text, size_t bytes, char *out) {
    size_t at = 0, used = 0, length;
    while (at < bytes) {
        if (vp_impl_utf8_next(text + at, bytes - at, &length) < 0) {
            used += vp_impl_utf8_put(out + used, 0xFFFD);
        } else {
            memmove(out + used, text + at, length);
            used += length;
        }
        at += length;
    }
    return used;
}

/* Replaces every `from` by its shorter or equal `to`, in place; returns the new length. */
static size_t vp_impl_replace(char *text, size_t bytes, const char *from, const char *to) {
    size_t from_bytes = strlen(from), to_bytes = strlen(to), at = 0, used = 0;
    while (at < bytes) {
        if (text[at] == from[0] && bytes - at >= from_bytes && !memcmp(text + at, from, from_bytes)) {
            memcpy(text + used, to, to_bytes);
            used += to_bytes;
            at += from_bytes;
        } else {
            text[used++] = text[at++];
        }
    }
    return used;
}

static size_t vp_impl_clean_up(char *text, size_t bytes) {
    static const char *const pairs[10][2] = {
        { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" },
        { " n't", "n't" }, { " 'm", "'m" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" }
    };
    int i;
    for (i = 0; i < 10; i++) bytes = vp_impl_replace(text, bytes, pairs[i][0], pairs[i][1]);
    return bytes;
}

VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags, char *out, size_t capacity,
                                     size_t *needed) {
    int pass, skip = (flags & VP_DECODE_SKIP_SPECIAL) != 0;
    uint64_t bytes = 0;
    size_t used = 0, i;
    char *buffer = NULL;
    vp_result result = VP_OK;
    if (!tokenizer || !needed || (count && !ids) || (capacity && !out)) return VP_ERR_RANGE;
    if (flags & ~(VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP)) return VP_ERR_RANGE;
    for (pass = 0; pass < 2; pass++) { /* first the length, then the bytes, which are made valid from the upper end of the buffer down */
        for (i = 0; i < count; i++) {
            uint32_t id = (uint32_t)ids[i];
            uint64_t start, length;
            if (ids[i] < 0 || id >= tokenizer->token_count || !(tokenizer->token_flags[id] & VP_IMPL_TOKEN_PRESENT)) continue;
            if (skip && (tokenizer->token_flags[id] & VP_IMPL_TOKEN_SPECIAL)) continue;
            start = tokenizer->token_start[id];
            length = tokenizer->token_start[id + 1] - start;
            if (pass) {
                memcpy(buffer + 2 * bytes + used, tokenizer->token_bytes + start, (size_t)length);
                used += (size_t)length;
            } else if ((bytes += length) > (uint64_t)1 << 40) {
                return VP_ERR_RANGE;
            }
        }
        if (!pass && (bytes > SIZE_MAX / 3 - 1 || !(buffer = (char *)malloc((size_t)bytes * 3 + 1)))) return VP_ERR_MEMORY;
    }
    used = vp_impl_lossy(buffer + 2 * bytes, used, buffer);
    if (flags & VP_DECODE_CLEAN_UP) used = vp_impl_clean_up(buffer, used);
    *needed = used;
    if (used >= capacity) {
        result = VP_ERR_CAPACITY;
    } else {
        memcpy(out, buffer, used);
        out[used] = 0;
    }
    free(buffer);
    return result;
}

/* -------------------------------------------------------------------------------------------------------------- load */

/* The tokens by name while a file is read: the vocabulary first, then the added tokens that it lacks. */
typedef struct vp_impl_names {
    char *text;
    uint64_t *start; /* [count + 1] */
    int32_t *id;
    uint8_t *added;  /* stands in added_tokens; VP_IMPL_TOKEN_SPECIAL where special */
    uint32_t count, vocabulary_count;
    uint32_t *slots, mask; /* index + 1; 0: free */
} vp_impl_names;

typedef struct vp_impl_loader {
    vp_json json;
    vp_json_node *nodes;
    size_t json_bytes;
    vp_error *error;
    vp_tokenizer *t;
    vp_impl_names names;
    uint32_t added_node, vocabulary_node, merges_node;
    uint32_t alphabet[256];  /* the character that stands for a byte */
    int32_t byte_of[512];    /* and back; -1: none */
    char *scratch;           /* json_bytes + 1: any one text of the file */
    vp_impl_work work;
} vp_impl_loader;

/* Reports `before 'the node's text' after`. */
static vp_result vp_impl_load_wrong(const vp_impl_loader *l, vp_result code, uint32_t node, const char *where, const char *before,
                                    const char *after) {
    vp_impl_message message = { { 0 }, 0 };
    char quoted[84], cut[80];
    vp_impl_message_text(&message, before);
    if (node != VP_JSON_NONE) {
        const vp_json_node *n = &l->nodes[node];
        size_t bytes = n->bytes < sizeof quoted - 1 ? (size_t)n->bytes : sizeof quoted - 1;
        memcpy(quoted, l->json.text + n->start, bytes);
        quoted[bytes] = 0;
        vp_impl_text_copy(cut, sizeof cut, quoted);
        vp_impl_message_text(&message, *before ? " '" : "'");
        vp_impl_message_text(&message, cut);
        vp_impl_message_text(&message, "' ");
    }
    vp_impl_message_text(&message, after);
    return vp_fail(l->error, code, node == VP_JSON_NONE ? -1 : (int64_t)l->nodes[node].start, where, message.text);
}

static vp_result vp_impl_load_no_memory(const vp_impl_loader *l) {
    return vp_fail(l->error, VP_ERR_MEMORY, -1, "tokenizer", "not enough memory to load the tokenizer");
}

/* Options of a component: alternatives parted by |, a string after =, * for anything. */
typedef struct vp_impl_option { const char *key, *allowed; int required; } vp_impl_option;

static int vp_impl_option_allows(const vp_json *json, uint32_t value, const char *allowed) {
    const vp_json_node *node = &json->nodes[value];
    for (;;) {
        size_t length = strcspn(allowed, "|");
        if (*allowed == '*') return 1;
        if (node->type == VP_JSON_STRING) {
            if (*allowed == '=' && vp_impl_json_equals(json, node, allowed + 1, length - 1)) return 1;
        } else if (node->bytes == length && !memcmp(json->text + node->start, allowed, length)) {
            return 1;
        }
        if (!allowed[length]) return 0;
        allowed += length + 1;
    }
}

/* Checks an object against its options; values[i] gets the node of options[i] or VP_JSON_NONE. */
static vp_result vp_impl_load_options(const vp_impl_loader *l, uint32_t object, const char *where, const vp_impl_option *options, size_t count,
                                      uint32_t *values) {
    const vp_json_node *nodes = l->nodes;
    uint32_t key;
    size_t i;
    if (nodes[object].type != VP_JSON_OBJECT) return vp_impl_load_wrong(l, VP_ERR_FORMAT, object, where, "", "stands where an object belongs");
    for (i = 0; i < count; i++) values[i] = VP_JSON_NONE;
    for (key = object + 1; key < nodes[object].end; key = nodes[key + 1].end) {
        for (i = 0; i < count && !vp_json_equals(&l->json, key, options[i].key); i++) {}
        if (i == count) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, key, where, "option", "is not known to this reader");
        if (values[i] != VP_JSON_NONE) return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, where, "option", "is given twice");
        values[i] = key + 1;
    }
    for (i = 0; i < count; i++) {
        vp_impl_message message = { { 0 }, 0 };
        if (values[i] == VP_JSON_NONE && !options[i].required) continue;
        vp_impl_message_text(&message, options[i].key);
        if (values[i] == VP_JSON_NONE) {
            vp_impl_message_text(&message, " is missing");
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, where, message.text, "");
        }
        if (vp_impl_option_allows(&l->json, values[i], options[i].allowed)) continue;
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, values[i], where, message.text, "is not implemented");
    }
    return VP_OK;
}

static int vp_impl_load_is_null(const vp_impl_loader *l, uint32_t node) {
    return node == VP_JSON_NONE || l->nodes[node].type == VP_JSON_NULL;
}

/* Nothing may be put around a text: the template of a single sequence is that sequence. */
static vp_result vp_impl_load_post_processor(const vp_impl_loader *l, uint32_t node) {
    static const vp_impl_option byte_level[4] = {
        { "type", "=ByteLevel|=TemplateProcessing", 1 }, { "add_prefix_space", "*", 0 }, { "trim_offsets", "*", 0 }, { "use_regex", "*", 0 }
    };
    static const vp_impl_option template_options[4] = { { "type", "*", 1 }, { "single", "*", 1 }, { "pair", "*", 0 }, { "special_tokens", "*", 0 } };
    uint32_t v[4], item, sequence;
    vp_result result;
    if (vp_impl_load_is_null(l, node)) return VP_OK;
    item = vp_json_get(&l->json, node, "type");
    if (item == VP_JSON_NONE || !vp_json_equals(&l->json, item, "TemplateProcessing")) {
        return vp_impl_load_options(l, node, "post_processor", byte_level, 4, v);
    }
    result = vp_impl_load_options(l, node, "post_processor", template_options, 4, v);
    if (result != VP_OK) return result;
    item = vp_json_at(&l->json, v[1], 0);
    sequence = item == VP_JSON_NONE || l->nodes[v[1]].count != 1 ? VP_JSON_NONE : vp_json_get(&l->json, item, "Sequence");
    sequence = sequence == VP_JSON_NONE || l->nodes[item].count != 1 ? VP_JSON_NONE : vp_json_get(&l->json, sequence, "id");
    if (sequence == VP_JSON_NONE || !vp_json_equals(&l->json, sequence, "A")) {
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, v[1], "post_processor.single", "template", "adds tokens, which is not implemented");
    }
    return VP_OK;
}

/* Every component by name, every option by value. */
static vp_result vp_impl_load_structure(vp_impl_loader *l) {
    static const vp_impl_option top[9] = {
        { "version", "=1.0", 1 }, { "truncation", "null", 0 }, { "padding", "null", 0 }, { "added_tokens", "*", 0 }, { "normalizer", "*", 0 },
        { "pre_tokenizer", "*", 1 }, { "post_processor", "*", 0 }, { "decoder", "*", 1 }, { "model", "*", 1 }
    };
    static const vp_impl_option normalizer[1] = { { "type", "=NFC", 1 } };
    static const vp_impl_option pre_tokenizer[4] = {
        { "type", "=ByteLevel", 1 }, { "add_prefix_space", "false", 1 }, { "trim_offsets", "true|false", 0 }, { "use_regex", "true", 0 }
    };
    static const vp_impl_option decoder[4] = { /* none of these changes what ids decode to */
        { "type", "=ByteLevel", 1 }, { "add_prefix_space", "true|false", 0 }, { "trim_offsets", "true|false", 0 }, { "use_regex", "true|false", 0 }
    };
    static const vp_impl_option model[10] = {
        { "type", "=BPE", 0 }, { "dropout", "null|0|0.0", 0 }, { "unk_token", "null", 0 }, { "continuing_subword_prefix", "null|=", 0 },
        { "end_of_word_suffix", "null|=", 0 }, { "fuse_unk", "false", 0 }, { "byte_fallback", "false", 0 }, { "ignore_merges", "false", 0 },
        { "vocab", "*", 1 }, { "merges", "*", 1 }
    };
    uint32_t v[10], parts[9];
    vp_result result = vp_impl_load_options(l, 0, "tokenizer", top, 9, parts);
    if (result == VP_OK && !vp_impl_load_is_null(l, parts[4])) {
        result = vp_impl_load_options(l, parts[4], "normalizer", normalizer, 1, v);
        l->t->nfc = 1;
    }
    if (result == VP_OK) result = vp_impl_load_options(l, parts[5], "pre_tokenizer", pre_tokenizer, 4, v);
    if (result == VP_OK) result = vp_impl_load_post_processor(l, parts[6]);
    if (result == VP_OK) result = vp_impl_load_options(l, parts[7], "decoder", decoder, 4, v);
    if (result == VP_OK) result = vp_impl_load_options(l, parts[8], "model", model, 10, v);
    if (result != VP_OK) return result;
    l->added_node = parts[3];
    l->vocabulary_node = v[8];
    l->merges_node = v[9];
    if (l->nodes[v[8]].type != VP_JSON_OBJECT) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[8], "model.vocab", "", "stands where an object belongs");
    if (l->nodes[v[9]].type != VP_JSON_ARRAY) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[9], "model.merges", "", "stands where an array belongs");
    if (!vp_impl_load_is_null(l, parts[3]) && l->nodes[parts[3]].type != VP_JSON_ARRAY) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, parts[3], "added_tokens", "", "stands where an array belongs");
    }
    return VP_OK;
}

/* The alphabet of GPT-2's bytes_to_unicode: printable Latin-1 stands for itself, the other 68 bytes are U+0100 and on. */
static void vp_impl_load_alphabet(vp_impl_loader *l) {
    uint32_t b, other = 256;
    memset(l->byte_of, 0xFF, sizeof l->byte_of);
    for (b = 0; b < 256; b++) {
        int printable = (b > 32 && b < 127) || (b > 160 && b != 173);
        l->alphabet[b] = printable ? b : other++;
        l->byte_of[l->alphabet[b]] = (int32_t)b;
    }
}

/* What a token decodes to; returns its bytes, never more than the name has. */
static size_t vp_impl_load_token_bytes(const vp_impl_loader *l, const char *name, size_t bytes, char *out) {
    size_t at = 0, used = 0, length;
    while (at < bytes) {
        uint32_t code = vp_impl_utf8_valid_next((const uint8_t *)name + at, &length);
        if (code >= 512 || l->byte_of[code] < 0) { /* not of the alphabet: the token is its own text */
            if (bytes) memcpy(out, name, bytes);
            return bytes;
        }
        out[used++] = (char)l->byte_of[code];
        at += length;
    }
    return used;
}

/* Power of two with room for twice `count`. */
static uint32_t vp_impl_load_slots(uint32_t count) {
    uint32_t slots = 4;
    while (slots / 2 <= count && slots < (uint32_t)1 << 31) slots *= 2;
    return slots;
}

/* Index of a name, or UINT32_MAX; *slot: where it is or belongs */
static uint32_t vp_impl_names_find(const vp_impl_names *names, const char *text, size_t bytes, uint32_t *slot) {
    uint32_t at = vp_impl_word_hash((const uint8_t *)text, bytes) & names->mask;
    for (; names->slots[at]; at = (at + 1) & names->mask) {
        uint32_t index = names->slots[at] - 1;
        if (names->start[index + 1] - names->start[index] == bytes && !memcmp(names->text + names->start[index], text, bytes)) break;
    }
    *slot = at;
    return names->slots[at] - 1;
}

/* Adds the name that the caller has written at text + start[count]. */
static void vp_impl_names_add(vp_impl_names *names, size_t bytes, int32_t id, uint32_t slot) {
    names->start[names->count + 1] = names->start[names->count] + bytes;
    names->id[names->count] = id;
    names->slots[slot] = ++names->count;
}

/* A token's id: a whole number that fits our tables. */
static vp_result vp_impl_load_id(const vp_impl_loader *l, uint32_t node, const char *where, int32_t *id) {
    int64_t value;
    if (l->nodes[node].type != VP_JSON_NUMBER || vp_json_to_int(&l->json, node, &value) != VP_OK || value < 0) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, where, "id", "is not a whole number from 0 on");
    }
    if (value >= VP_IMPL_TOKEN_LIMIT) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, node, where, "id", "is over 4194303");
    *id = (int32_t)value;
    return VP_OK;
}

static vp_result vp_impl_load_vocabulary(vp_impl_loader *l) {
    const vp_json_node *nodes = l->nodes, *object = &nodes[l->vocabulary_node];
    uint32_t added = vp_impl_load_is_null(l, l->added_node) ? 0 : nodes[l->added_node].count, key, slot, all;
    vp_impl_names *names = &l->names;
    vp_result result;
    size_t bytes;
    int32_t id = 0;
    if (object->count > VP_IMPL_TOKEN_LIMIT || added > VP_IMPL_TOKEN_LIMIT) {
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, VP_JSON_NONE, "tokenizer", "more than 4194304 tokens", "");
    }
    all = object->count + added;
    names->mask = vp_impl_load_slots(all) - 1;
    names->text = (char *)malloc(l->json_bytes + 1); /* an unescaped text is never longer than the escaped one */
    names->start = (uint64_t *)calloc((size_t)all + 1, sizeof *names->start);
    names->id = (int32_t *)calloc((size_t)all + 1, sizeof *names->id);
    names->added = (uint8_t *)calloc((size_t)all + 1, 1);
    names->slots = (uint32_t *)calloc((size_t)names->mask + 1, sizeof *names->slots);
    if (!names->text || !names->start || !names->id || !names->added || !names->slots) return vp_impl_load_no_memory(l);
    for (key = l->vocabulary_node + 1; key < object->end; key = nodes[key + 1].end) {
        char *text = names->text + names->start[names->count];
        if (vp_json_text(&l->json, key, text, l->json_bytes + 1 - (size_t)names->start[names->count], &bytes) != VP_OK) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, "model.vocab", "token", "cannot be read");
        }
        result = vp_impl_load_id(l, key + 1, "model.vocab", &id);
        if (result != VP_OK) return result;
        if (vp_impl_names_find(names, text, bytes, &slot) != UINT32_MAX) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, "model.vocab", "token", "is there twice");
        }
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->vocabulary_count = names->count;
    return VP_OK;
}

static int vp_impl_added_compare(const void *a, const void *b) {
    const vp_impl_added *x = (const vp_impl_added *)a, *y = (const vp_impl_added *)b;
    int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sorts a set and indexes it; 0 when two tokens are the same text. */
static int vp_impl_added_sort(vp_impl_added_set *set) {
    uint32_t i, b;
    if (set->count) qsort(set->tokens, set->count, sizeof *set->tokens, vp_impl_added_compare);
    for (i = b = 0; b < 256; b++) {
        set->first[b] = i;
        while (i < set->count && (uint8_t)set->tokens[i].text[0] == b) i++;
    }
    set->first[256] = i;
    for (i = 1; i < set->count; i++) {
        if (!vp_impl_added_compare(&set->tokens[i - 1], &set->tokens[i])) return 0;
    }
    return 1;
}

/* Keeps an added token's text (normalised where it is to be matched so). */
static int vp_impl_load_added_text(vp_impl_loader *l, const char *name, size_t bytes, int32_t id, int normalized) {
    vp_impl_added_set *set = normalized ? &l->t->normalized : &l->t->raw;
    vp_impl_added *token = &set->tokens[set->count++];
    char *text = l->t->added_text + l->t->added_used;
    if (normalized && l->t->nfc) vp_impl_nfc(&l->work, name, bytes, &name, &bytes);
    if (l->work.out_of_memory) return 0;
    memcpy(text, name, bytes);
    l->t->added_used += bytes;
    token->text = text;
    token->bytes = (uint32_t)bytes;
    token->id = id;
    return 1;
}

/* One added token. Its id must be the one the reference would give it: the vocabulary's, else the next one after the vocabulary's
 * size and after every added token before (the reference ignores the number in the file). */
static vp_result vp_impl_load_added_token(vp_impl_loader *l, uint32_t node, int64_t *highest) {
    static const vp_impl_option options[7] = {
        { "id", "*", 1 }, { "content", "*", 1 }, { "single_word", "false", 1 }, { "lstrip", "false", 1 }, { "rstrip", "false", 1 },
        { "normalized", "true|false", 1 }, { "special", "true|false", 1 }
    };
    vp_impl_names *names = &l->names;
    char *text = names->text + names->start[names->count];
    uint32_t v[7], slot, index;
    int64_t expected;
    int32_t id = 0;
    size_t bytes;
    vp_result result = vp_impl_load_options(l, node, "added_tokens", options, 7, v);
    if (result == VP_OK) result = vp_impl_load_id(l, v[0], "added_tokens", &id);
    if (result != VP_OK) return result;
    if (vp_json_text(&l->json, v[1], text, l->json_bytes + 1 - (size_t)names->start[names->count], &bytes) != VP_OK || !bytes) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[1], "added_tokens", "content", "is not a text of one character or more");
    }
    if (bytes > VP_IMPL_ADDED_BYTES) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, v[1], "added_tokens", "content", "is longer than 1024 bytes");
    index = vp_impl_names_find(names, text, bytes, &slot);
    expected = *highest >= (int64_t)names->vocabulary_count || !names->vocabulary_count ? *highest + 1 : (int64_t)names->vocabulary_count;
    if (index != UINT32_MAX) {
        if (names->added[index]) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[1], "added_tokens", "token", "is there twice");
        expected = names->id[index];
    }
    if (id != expected) {
        return vp_impl_load_wrong(l, VP_ERR_MISMATCH, v[1], "added_tokens", "token",
                                  "has another id than its place in the vocabulary, or the next free one, gives it");
    }
    if (index == UINT32_MAX) {
        index = names->count;
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->added[index] = (uint8_t)(VP_IMPL_TOKEN_PRESENT | (l->nodes[v[6]].type == VP_JSON_TRUE ? VP_IMPL_TOKEN_SPECIAL : 0));
    if (id > *highest) *highest = id;
    text = names->text + names->start[index];
    return vp_impl_load_added_text(l, text, bytes, id, l->nodes[v[5]].type == VP_JSON_TRUE) ? VP_OK : vp_impl_load_no_memory(l);
}

static vp_result vp_impl_load_added(vp_impl_loader *l) {
    const vp_json_node *array = &l->nodes[l->added_node];
    int64_t highest = -1;
    uint32_t node;
    size_t text_bytes;
    vp_result result;
    if (vp_impl_load_is_null(l, l->added_node)) return VP_OK;
    text_bytes = (size_t)array->bytes; /* NFC makes a text at most three times as long */
    if (text_bytes > SIZE_MAX / 3 - 1) return vp_impl_load_no_memory(l);
    l->t->added_text = (char *)malloc(text_bytes * 3 + 1);
    l->t->raw.tokens = (vp_impl_added *)calloc((size_t)array->count + 1, sizeof(vp_impl_added));
    l->t->normalized.tokens = (vp_impl_added *)calloc((size_t)array->count + 1, sizeof(vp_impl_added));
    if (!l->t->added_text || !l->t->raw.tokens || !l->t->normalized.tokens) return vp_impl_load_no_memory(l);
    for (node = l->added_node + 1; node < array->end; node = l->nodes[node].end) {
        result = vp_impl_load_added_token(l, node, &highest);
        if (result != VP_OK) return result;
    }
    if (!vp_impl_added_sort(&l->t->raw) || !vp_impl_added_sort(&l->t->normalized)) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, "added_tokens", "two tokens are the same text after normalisation", "");
    }
    return VP_OK;
}

/* The table from ids to bytes, and from bytes to the ids that words start from. */
static vp_result vp_impl_load_tokens(vp_impl_loader *l) {
    vp_impl_names *names = &l->names;
    vp_tokenizer *t = l->t;
    uint32_t i, slot;
    uint64_t total = 0;
    size_t bytes;
    for (i = 0; i < names->count; i++) {
        if ((uint32_t)names->id[i] >= t->token_count) t->token_count = (uint32_t)names->id[i] + 1;
        total = names->start[i + 1];
    }
    t->token_flags = (uint8_t *)calloc((size_t)t->token_count + 1, 1);
    t->token_start = (uint64_t *)calloc((size_t)t->token_count + 1, sizeof *t->token_start);
    t->token_bytes = (char *)malloc((size_t)total + 1);
    if (!t->token_flags || !t->token_start || !t->token_bytes) return vp_impl_load_no_memory(l);
    for (i = 0; i < names->count; i++) { /* lengths first: ids come in any order */
        uint32_t id = (uint32_t)names->id[i];
        if (t->token_flags[id]) {
            vp_impl_message message = { { 0 }, 0 };
            vp_impl_message_text(&message, "two tokens have the id ");
            vp_impl_message_int(&message, (int64_t)id);
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, "model.vocab", message.text, "");
        }
        t->token_flags[id] = (uint8_t)(VP_IMPL_TOKEN_PRESENT | (names->added[i] & VP_IMPL_TOKEN_SPECIAL));
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        t->token_start[id + 1] = vp_impl_load_token_bytes(l, names->text + names->start[i], bytes, l->scratch);
    }
    for (i = 0; i < t->token_count; i++) t->token_start[i + 1] += t->token_start[i];
    for (i = 0; i < names->count; i++) {
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        bytes = vp_impl_load_token_bytes(l, names->text + names->start[i], bytes, l->scratch);
        memcpy(t->token_bytes + t->token_start[names->id[i]], l->scratch, bytes);
    }
    for (i = 0; i < 256; i++) {
        char text[4];
        uint32_t index = vp_impl_names_find(names, text, vp_impl_utf8_put(text, l->alphabet[i]), &slot);
        t->byte_id[i] = index < names->vocabulary_count ? names->id[index] : -1;
    }
    return VP_OK;
}

/* The two parts of a merge, one behind the other in scratch: "a b" or ["a", "b"]. 0: neither. */
static int vp_impl_load_merge_parts(vp_impl_loader *l, uint32_t node, size_t *left, size_t *right) {
    const vp_json_node *n = &l->nodes[node];
    size_t room = l->json_bytes + 1;
    char *space;
    if (n->type == VP_JSON_ARRAY) {
        return n->count == 2 && vp_json_text(&l->json, node + 1, l->scratch, room, left) == VP_OK &&
               vp_json_text(&l->json, node + 2, l->scratch + *left, room - *left, right) == VP_OK;
    }
    if (n->type != VP_JSON_STRING || vp_json_text(&l->json, node, l->scratch, room, right) != VP_OK) return 0;
    space = (char *)memchr(l->scratch, ' ', *right);
    if (!space) return 0;
    *left = (size_t)(space - l->scratch);
    *right -= *left + 1;
    if (memchr(space + 1, ' ', *right)) return 0;
    memmove(space, space + 1, *right);
    return 1;
}

static vp_result vp_impl_load_merges(vp_impl_loader *l) {
    const vp_json_node *array = &l->nodes[l->merges_node], *nodes = l->nodes;
    vp_impl_names *names = &l->names;
    vp_tokenizer *t = l->t;
    uint32_t node, rank = 0, i, slot;
    t->merge_mask = vp_impl_load_slots(array->count) - 1;
    t->merges = (vp_impl_merge *)malloc(((size_t)t->merge_mask + 1) * sizeof *t->merges);
    if (!t->merges) return vp_impl_load_no_memory(l);
    for (i = 0; i <= t->merge_mask; i++) t->merges[i].rank = UINT32_MAX;
    for (node = l->merges_node + 1; node < array->end; node = nodes[node].end) {
        size_t left, right;
        uint32_t a, b, product;
        vp_impl_merge *merge;
        if (nodes[node].type == VP_JSON_STRING && nodes[node].bytes >= 8 && !memcmp(l->json.text + nodes[node].start, "#version", 8)) continue;
        if (!vp_impl_load_merge_parts(l, node, &left, &right)) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, "model.merges", "merge", "is not a pair of tokens");
        }
        a = vp_impl_names_find(names, l->scratch, left, &slot);
        b = vp_impl_names_find(names, l->scratch + left, right, &slot);
        product = vp_impl_names_find(names, l->scratch, left + right, &slot);
        if (a >= names->vocabulary_count || b >= names->vocabulary_count || product >= names->vocabulary_count) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, "model.merges", "merge", "has a part or a product that the vocabulary lacks");
        }
        a = (uint32_t)names->id[a];
        b = (uint32_t)names->id[b];
        i = (uint32_t)vp_impl_mix((uint64_t)a << 32 | b) & t->merge_mask;
        while (t->merges[i].rank != UINT32_MAX && (t->merges[i].left != a || t->merges[i].right != b)) i = (i + 1) & t->merge_mask;
        merge = &t->merges[i];
        merge->left = a;
        merge->right = b;
        merge->rank = rank++; /* a pair listed twice has its last rank, as in the reference */
        merge->product = (uint32_t)names->id[product];
    }
    return VP_OK;
}

/* Finds the tokens that encoding their own bytes gives back: a word that is one of them needs no merging. */
static vp_result vp_impl_load_words(vp_impl_loader *l) {
    vp_tokenizer *t = l->t;
    uint32_t i, slot;
    t->word_mask = vp_impl_load_slots(l->names.vocabulary_count) - 1;
    t->words = (vp_impl_word *)malloc(((size_t)t->word_mask + 1) * sizeof *t->words);
    if (!t->words) return vp_impl_load_no_memory(l);
    for (i = 0; i <= t->word_mask; i++) t->words[i].id = -1;
    for (i = 0; i < l->names.vocabulary_count; i++) {
        int32_t id = l->names.id[i];
        const uint8_t *bytes = (const uint8_t *)t->token_bytes + t->token_start[id];
        uint64_t count = t->token_start[id + 1] - t->token_start[id];
        uint32_t hash;
        l->work.id_count = 0;
        if (count > VP_IMPL_TEXT_BYTES) continue;
        vp_impl_merge_word(&l->work, bytes, (size_t)count);
        if (l->work.out_of_memory) return vp_impl_load_no_memory(l);
        if (l->work.id_count != 1 || l->work.ids[0] != id) continue;
        hash = vp_impl_word_hash(bytes, (size_t)count);
        for (slot = hash & t->word_mask; t->words[slot].id >= 0;) slot = (slot + 1) & t->word_mask;
        t->words[slot].hash = hash;
        t->words[slot].id = id;
        if (count > t->word_longest) t->word_longest = (uint32_t)count;
    }
    return VP_OK;
}

static vp_result vp_impl_load_all(vp_impl_loader *l, const char *json) {
    size_t needed = l->json_bytes / 4 + 16; /* enough for every real file; the parser says when it is not */
    uint32_t i, slot, index;
    vp_result result = VP_ERR_CAPACITY;
    vp_error parse_error; /* not the caller's: a second try may succeed */
    while (result == VP_ERR_CAPACITY) {
        free(l->nodes);
        l->nodes = needed <= SIZE_MAX / sizeof *l->nodes ? (vp_json_node *)malloc(needed * sizeof *l->nodes) : NULL;
        if (!l->nodes) return vp_impl_load_no_memory(l);
        result = vp_json_parse(json, l->json_bytes, l->nodes, needed, &l->json, &needed, &parse_error);
    }
    if (result != VP_OK) return vp_fail(l->error, parse_error.code, parse_error.offset, parse_error.where, parse_error.text);
    l->scratch = (char *)malloc(l->json_bytes + 1);
    l->t->unicode = (vp_impl_unicode *)malloc(sizeof *l->t->unicode);
    if (!l->scratch || !l->t->unicode) return vp_impl_load_no_memory(l);
    vp_impl_unicode_init(l->t->unicode);
    vp_impl_load_alphabet(l);
    result = vp_impl_load_structure(l);
    if (result == VP_OK) result = vp_impl_load_vocabulary(l);
    if (result == VP_OK) result = vp_impl_load_added(l);
    if (result == VP_OK) result = vp_impl_load_tokens(l);
    if (result == VP_OK) result = vp_impl_load_merges(l);
    if (result == VP_OK) result = vp_impl_load_words(l);
    if (result != VP_OK) return result;
    for (i = 0; i < 7; i++) {
        index = vp_impl_names_find(&l->names, vp_impl_special_contents[i], strlen(vp_impl_special_contents[i]), &slot);
        l->t->special[i] = index == UINT32_MAX ? -1 : l->names.id[index];
    }
    return VP_OK;
}

VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error) {
    vp_impl_loader loader;
    vp_result result;
    if (!json || !tokenizer) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "no text or no place for the tokenizer");
    if (bytes > SIZE_MAX - 1) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "the text is too long");
    memset(&loader, 0, sizeof loader);
    loader.json_bytes = bytes;
    loader.error = error;
    loader.work.t = loader.t = (vp_tokenizer *)calloc(1, sizeof *loader.t);
    result = loader.t ? vp_impl_load_all(&loader, json) : vp_impl_load_no_memory(&loader);
    if (result == VP_OK) *tokenizer = loader.t; else vp_tokenizer_free(loader.t);
    vp_impl_work_free(&loader.work);
    free(loader.nodes);
    free(loader.scratch);
    free(loader.names.text);
    free(loader.names.start);
    free(loader.names.id);
    free(loader.names.added);
    free(loader.names.slots);
    return result;
}

/* Fills the tables of the byte tokenizer; special ids in the order of vp_impl_special_contents. */
static vp_result vp_impl_bytes_fill(vp_tokenizer *t) {
    size_t used = 0;
    uint32_t i, id, k;
    t->token_flags = (uint8_t *)calloc((size_t)t->token_count + 1, 1);
    t->token_start = (uint64_t *)calloc((size_t)t->token_count + 1, sizeof *t->token_start);
    t->token_bytes = (char *)malloc(256 + 7 * 16);
    t->raw.tokens = (vp_impl_added *)calloc(7, sizeof *t->raw.tokens);
    if (!t->token_flags || !t->token_start || !t->token_bytes || !t->raw.tokens) return VP_ERR_MEMORY;
    for (i = 0; i < 256; i++) {
        t->byte_id[i] = (int32_t)i + 2;
        t->token_flags[i + 2] = VP_IMPL_TOKEN_PRESENT;
    }
    for (k = 0; k < 7; k++) {
        if (t->token_flags[t->special[k]]) return VP_ERR_MISMATCH;
        t->token_flags[t->special[k]] = VP_IMPL_TOKEN_PRESENT | VP_IMPL_TOKEN_SPECIAL;
        t->raw.tokens[k].text = vp_impl_special_contents[k];
        t->raw.tokens[k].bytes = (uint32_t)strlen(vp_impl_special_contents[k]);
        t->raw.tokens[k].id = t->special[k];
    }
    t->raw.count = 7;
    vp_impl_added_sort(&t->raw);
    for (id = 0; id < t->token_count; id++) {
        if (id >= 2 && id < 258) t->token_bytes[used++] = (char)(id - 2);
        for (k = 0; k < 7; k++) {
            if (t->special[k] != (int32_t)id) continue;
            memcpy(t->token_bytes + used, vp_impl_special_contents[k], strlen(vp_impl_special_contents[k]));
            used += strlen(vp_impl_special_contents[k]);
        }
        t->token_start[id + 1] = used;
    }
    return VP_OK;
}

VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer) {
    vp_tokenizer *t;
    vp_result result;
    int32_t special[7], i;
    if (!ids || !tokenizer) return VP_ERR_RANGE;
    special[0] = ids->eos;
    special[1] = ids->pad;
    special[2] = ids->im_start;
    special[3] = ids->im_end;
    special[4] = ids->im_patch;
    special[5] = ids->im_col;
    special[6] = ids->image;
    for (i = 0; i < 7; i++) {
        if (special[i] < 0 || special[i] >= VP_IMPL_TOKEN_LIMIT || (special[i] >= 2 && special[i] < 258)) return VP_ERR_RANGE;
    }
    if (ids->bos != ids->eos) return VP_ERR_MISMATCH;
    t = (vp_tokenizer *)calloc(1, sizeof *t);
    if (!t) return VP_ERR_MEMORY;
    memcpy(t->special, special, sizeof special);
    t->token_count = 258;
    for (i = 0; i < 7; i++) {
        if ((uint32_t)special[i] >= t->token_count) t->token_count = (uint32_t)special[i] + 1;
    }
    result = vp_impl_bytes_fill(t);
    if (result == VP_OK) *tokenizer = t; else vp_tokenizer_free(t);
    return result;
}

VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer) {
    if (!tokenizer) return;
    free(tokenizer->unicode);
    free(tokenizer->raw.tokens);
    free(tokenizer->normalized.tokens);
    free(tokenizer->added_text);
    free(tokenizer->token_flags);
    free(tokenizer->token_start);
    free(tokenizer->token_bytes);
    free(tokenizer->merges);
    free(tokenizer->words);
    free(tokenizer);
}

VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error) {
    int i;
    if (!tokenizer || !ids) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "no tokenizer or no place for the ids");
    for (i = 0; i < 7; i++) {
        vp_impl_message message = { { 0 }, 0 };
        if (tokenizer->special[i] >= 0) continue;
        vp_impl_message_text(&message, "the tokenizer has no token ");
        vp_impl_message_text(&message, vp_impl_special_contents[i]);
        return vp_fail(error, VP_ERR_NOT_FOUND, -1, vp_impl_special_contents[i], message.text);
    }
    ids->bos = ids->eos = tokenizer->special[0];
    ids->pad = tokenizer->special[1];
    ids->im_start = tokenizer->special[2];
    ids->im_end = tokenizer->special[3];
    ids->im_patch = tokenizer->special[4];
    ids->im_col = tokenizer->special[5];
    ids->image = tokenizer->special[6];
    return VP_OK;
}

/* ================================================================================================ prompt >>prompt */
static const vp_prompt_dataset vp_impl_prompt_datasets[] = {
    {"coco_2014_vqa", "vqa2", 32, VP_PROMPT_QUESTION},
    {"text_vqa", "text_vqa", 64, VP_PROMPT_QUESTION},
    {"okvqa", "okvqa", 32, VP_PROMPT_QUESTION},
    {"science_qa_img", "science_qa", 16, VP_PROMPT_SCIENCE},
    {"st_qa", "st_qa", 32, VP_PROMPT_QUESTION},
    {"doc_qa", "doc_qa", 64, VP_PROMPT_QUESTION},
    {"tally_qa", "tally_qa", 16, VP_PROMPT_QUESTIONS},
    {"mmmu", "vqa2", 32, VP_PROMPT_MMMU},
    {"coco_caption", "coco_captioning", 64, VP_PROMPT_CAPTION},
    /* other names that the reference takes */
    {"coco_2014_vqa_multi", "vqa2", 32, VP_PROMPT_QUESTIONS},
    {"coco_captioning", "coco_captioning", 64, VP_PROMPT_CAPTION},
};
static const char vp_impl_prompt_choice_style[] = "a_okvqa_mc";
/* the sixth is two: the reference's list lacks a comma there */
static const char *const vp_impl_prompt_templates[10] = {
    "Caption the image with 1 or two sentences",
    "Write a very short description of this image.",
    "Briefly describe the image.",
    "Look and this image, and then summarize it in a sentence or two.",
    "Write a brief caption describing the image",
    "Brief Caption:A short image caption:",
    "A short image description",
    "Briefly describe the content of the image.",
    "Can you give me one sentence summary of the picture?",
    "How would you describe this image in a sentence or two?",
};

VP_API const vp_prompt_dataset *vp_prompt_dataset_at(int32_t index) {
    if (index < 0 || (size_t)index >= sizeof vp_impl_prompt_datasets / sizeof vp_impl_prompt_datasets[0]) return NULL;
    return &vp_impl_prompt_datasets[index];
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_find(const char *name) {
    const vp_prompt_dataset *d;
    int32_t i;
    for (i = 0; name && (d = vp_prompt_dataset_at(i)) != NULL; i++) if (strcmp(d->name, name) == 0) return d;
    return NULL;
}
VP_API const vp_prompt_dataset *vp_prompt_dataset_of_style(const char *style) {
    const vp_prompt_dataset *d;
    int32_t i;
    if (!style || strcmp(style, "vqa2") == 0) return NULL;
    for (i = 0; (d = vp_prompt_dataset_at(i)) != NULL; i++) if (strcmp(d->style, style) == 0) return d;
    return NULL;
}

/* what the messages are made of */
typedef struct vp_impl_prompt_plan {
    const vp_prompt *p;
    const char *fixed;      /* stands in place of the question */
    const char *hint;       /* stands twice in place of it */
    size_t messages, options;
    int has_options;
    vp_prompt_info info;
} vp_impl_prompt_plan;
typedef struct vp_impl_prompt_text { char *out; size_t bytes; int too_long; } vp_impl_prompt_text; /* out NULL: only counts */

static void vp_impl_prompt_add(vp_impl_prompt_text *t, const char *text) {
    const size_t bytes = strlen(text);
    if (bytes >= SIZE_MAX - t->bytes) t->too_long = 1;
    if (t->too_long) return;
    if (t->out) memcpy(t->out + t->bytes, text, bytes);
    t->bytes += bytes;
}
static void vp_impl_prompt_write(vp_impl_prompt_text *t, const vp_impl_prompt_plan *x) {
    size_t i, k;
    for (i = 0; i < x->messages; i++) {
        const char *question = x->fixed ? x->fixed : x->hint ? x->hint : x->p->questions[i];
        vp_impl_prompt_add(t, " User: ");
        if (x->info.style) {
            vp_impl_prompt_add(t, x->info.style);
            vp_impl_prompt_add(t, question[0] || x->has_options ? ": " : ":");
        }
        vp_impl_prompt_add(t, question);
        if (x->hint) {
            vp_impl_prompt_add(t, "\n");
            vp_impl_prompt_add(t, x->hint);
        }
        if (x->has_options) vp_impl_prompt_add(t, "\n");
        for (k = 0; k < x->options; k++) {
            char letter[4] = {'A', ':', ' ', 0};
            letter[0] = (char)(letter[0] + k);
            if (k) vp_impl_prompt_add(t, "\n");
            vp_impl_prompt_add(t, letter);
            vp_impl_prompt_add(t, x->p->options[k]);
        }
        if (x->has_options) vp_impl_prompt_add(t, "\n");
        vp_impl_prompt_add(t, " Assistant:");
    }
}

/* Python: re.match("<img='(.*?)'>", option); the dot takes no line feed */
static int vp_impl_prompt_is_image(const char *option) {
    const char *end, *line;
    if (strncmp(option, "<img='", 6) != 0) return 0;
    end = strstr(option + 6, "'>");
    line = strchr(option + 6, '\n');
    return end && (!line || end < line);
}
static int vp_impl_prompt_is_choice(const vp_prompt *p) {
    if (p->question_type) return strcmp(p->question_type, "multiple-choice") == 0;
    return p->style ? strcmp(p->style, vp_impl_prompt_choice_style) == 0 : p->options != NULL;
}

/* the rule of the record's data set */
static void vp_impl_prompt_choose(vp_impl_prompt_plan *x) {
    const vp_prompt *p = x->p;
    const vp_prompt_kind kind = p->dataset ? p->dataset->kind : VP_PROMPT_QUESTIONS;
    const char *style = p->dataset ? p->dataset->style : NULL;
    vp_random random;
    size_t k, images = 0;
    x->messages = p->question_count;
    x->has_options = !p->dataset && p->options;
    x->info.has_image = 1;
    x->info.template_index = -1;
    if (kind == VP_PROMPT_CAPTION) {
        vp_random_seed(&random, p->rng_seed);
        x->info.template_index = (int32_t)vp_random_below(&random, 9);
        x->fixed = vp_impl_prompt_templates[x->info.template_index];
        x->messages = 1;
    } else if (kind == VP_PROMPT_SCIENCE) {
        x->has_options = 1;
        if (p->hint && p->hint[0]) {
            x->hint = p->hint;
            x->messages = 1;
        }
    } else if (kind == VP_PROMPT_MMMU && vp_impl_prompt_is_choice(p)) {
        style = vp_impl_prompt_choice_style;
        x->has_options = 1;
        for (k = 0; p->options && k < p->option_count; k++) images += (size_t)vp_impl_prompt_is_image(p->options[k]);
        x->info.has_image = images < 2;
    }
    x->info.style = p->style ? p->style : style;
    x->info.bos_prepended = x->info.has_image;
    x->info.has_subsegments = x->messages > 1;
    k = x->info.style ? VP_PROMPT_OPTIONS : VP_PROMPT_PLAIN_OPTIONS;
    if (!x->has_options) return;
    x->options = p->option_count < k ? p->option_count : k;
    x->info.options_dropped = p->option_count - x->options;
}

VP_API vp_result vp_prompt_build(const vp_prompt *prompt, char *out, size_t capacity, size_t *needed, vp_prompt_info *info, vp_error *error) {
    const char *const name = prompt && prompt->dataset ? prompt->dataset->name : "prompt";
    vp_impl_prompt_text t = {NULL, 0, 0};
    vp_impl_prompt_plan x;
    size_t i;
    if (!prompt || (!prompt->questions && prompt->question_count) || (!prompt->options && prompt->option_count))
        return vp_fail(error, VP_ERR_RANGE, -1, name, "no record, or a count without its texts");
    for (i = 0; i < prompt->question_count; i++) if (!prompt->questions[i]) return vp_fail(error, VP_ERR_RANGE, -1, "question", "a text is NULL");
    for (i = 0; i < prompt->option_count; i++) if (!prompt->options[i]) return vp_fail(error, VP_ERR_RANGE, -1, "options", "a text is NULL");
    memset(&x, 0, sizeof x);
    x.p = prompt;
    vp_impl_prompt_choose(&x);
    if (!x.messages) return vp_fail(error, VP_ERR_MISMATCH, -1, "question", "the record has no question");
    if (x.messages > 1 && prompt->dataset && prompt->dataset->kind != VP_PROMPT_QUESTIONS)
        return vp_fail(error, VP_ERR_MISMATCH, -1, "questions", "records of this data set have one question each");
    if (x.has_options && !prompt->options) return vp_fail(error, VP_ERR_MISMATCH, -1, "options", "the record has no options to choose from");
    if (x.info.options_dropped && !x.info.style)
        return vp_fail(error, VP_ERR_RANGE, -1, "options", "there are letters for 26 options at most");
    vp_impl_prompt_write(&t, &x);
    if (t.too_long) return vp_fail(error, VP_ERR_RANGE, -1, name, "the prompt is too long");
    if (out && t.bytes < capacity) {
        t.out = out;
        t.bytes = 0;
        vp_impl_prompt_write(&t, &x);
        out[t.bytes] = 0;
    }
    if (needed) *needed = t.bytes;
    if (info) *info = x.info;
    return t.out ? VP_OK : VP_ERR_CAPACITY;
}

/* ================================================================================================= score >>score */

/* ---------------------------------------------------------------------------- Unicode as far as Python's str needs it
 * Tables of Unicode 14.0. Lower case: {first, last, step, what to add}, ascending; U+0130 becomes two characters and is handled apart. */
typedef struct vp_impl_score_case_range { uint32_t first, last, step; int32_t add; } vp_impl_score_case_range;
static const vp_impl_score_case_range vp_impl_score_case_ranges[] = {
    {0xC0, 0xD6, 1, 32}, {0xD8, 0xDE, 1, 32}, {0x100, 0x12E, 2, 1}, {0x132, 0x136, 2, 1}, {0x139, 0x147, 2, 1}, {0x14A, 0x176, 2, 1},
    {0x178, 0x178, 1, -121}, {0x179, 0x17D, 2, 1}, {0x181, 0x181, 1, 210}, {0x182, 0x184, 2, 1}, {0x186, 0x186, 1, 206},
    {0x187, 0x187, 1, 1}, {0x189, 0x18A, 1, 205}, {0x18B, 0x18B, 1, 1}, {0x18E, 0x18E, 1, 79}, {0x18F, 0x18F, 1, 202},
    {0x190, 0x190, 1, 203}, {0x191, 0x191, 1, 1}, {0x193, 0x193, 1, 205}, {0x194, 0x194, 1, 207}, {0x196, 0x196, 1, 211},
    {0x197, 0x197, 1, 209}, {0x198, 0x198, 1, 1}, {0x19C, 0x19C, 1, 211}, {0x19D, 0x19D, 1, 213}, {0x19F, 0x19F, 1, 214},
    {0x1A0, 0x1A4, 2, 1}, {0x1A6, 0x1A6, 1, 218}, {0x1A7, 0x1A7, 1, 1}, {0x1A9, 0x1A9, 1, 218}, {0x1AC, 0x1AC, 1, 1},
    {0x1AE, 0x1AE, 1, 218}, {0x1AF, 0x1AF, 1, 1}, {0x1B1, 0x1B2, 1, 217}, {0x1B3, 0x1B5, 2, 1}, {0x1B7, 0x1B7, 1, 219},
    {0x1B8, 0x1B8, 1, 1}, {0x1BC, 0x1BC, 1, 1}, {0x1C4, 0x1C4, 1, 2}, {0x1C5, 0x1C5, 1, 1}, {0x1C7, 0x1C7, 1, 2}, {0x1C8, 0x1C8, 1, 1},
    {0x1CA, 0x1CA, 1, 2}, {0x1CB, 0x1DB, 2, 1}, {0x1DE, 0x1EE, 2, 1}, {0x1F1, 0x1F1, 1, 2}, {0x1F2, 0x1F4, 2, 1}, {0x1F6, 0x1F6, 1, -97},
    {0x1F7, 0x1F7, 1, -56}, {0x1F8, 0x21E, 2, 1}, {0x220, 0x220, 1, -130}, {0x222, 0x232, 2, 1}, {0x23A, 0x23A, 1, 10795},
    {0x23B, 0x23B, 1, 1}, {0x23D, 0x23D, 1, -163}, {0x23E, 0x23E, 1, 10792}, {0x241, 0x241, 1, 1}, {0x243, 0x243, 1, -195},
    {0x244, 0x244, 1, 69}, {0x245, 0x245, 1, 71}, {0x246, 0x24E, 2, 1}, {0x370, 0x372, 2, 1}, {0x376, 0x376, 1, 1}, {0x37F, 0x37F, 1, 116},
    {0x386, 0x386, 1, 38}, {0x388, 0x38A, 1, 37}, {0x38C, 0x38C, 1, 64}, {0x38E, 0x38F, 1, 63}, {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32}, {0x3CF, 0x3CF, 1, 8}, {0x3D8, 0x3EE, 2, 1}, {0x3F4, 0x3F4, 1, -60}, {0x3F7, 0x3F7, 1, 1}, {0x3F9, 0x3F9, 1, -7},
    {0x3FA, 0x3FA, 1, 1}, {0x3FD, 0x3FF, 1, -130}, {0x400, 0x40F, 1, 80}, {0x410, 0x42F, 1, 32}, {0x460, 0x480, 2, 1}, {0x48A, 0x4BE, 2, 1},
    {0x4C0, 0x4C0, 1, 15}, {0x4C1, 0x4CD, 2, 1}, {0x4D0, 0x52E, 2, 1}, {0x531, 0x556, 1, 48}, {0x10A0, 0x10C5, 1, 7264},
    {0x10C7, 0x10C7, 1, 7264}, {0x10CD, 0x10CD, 1, 7264}, {0x13A0, 0x13EF, 1, 38864}, {0x13F0, 0x13F5, 1, 8}, {0x1C90, 0x1CBA, 1, -3008},
    {0x1CBD, 0x1CBF, 1, -3008}, {0x1E00, 0x1E94, 2, 1}, {0x1E9E, 0x1E9E, 1, -7615}, {0x1EA0, 0x1EFE, 2, 1}, {0x1F08, 0x1F0F, 1, -8},
    {0x1F18, 0x1F1D, 1, -8}, {0x1F28, 0x1F2F, 1, -8}, {0x1F38, 0x1F3F, 1, -8}, {0x1F48, 0x1F4D, 1, -8}, {0x1F59, 0x1F5F, 2, -8},
    {0x1F68, 0x1F6F, 1, -8}, {0x1F88, 0x1F8F, 1, -8}, {0x1F98, 0x1F9F, 1, -8}, {0x1FA8, 0x1FAF, 1, -8}, {0x1FB8, 0x1FB9, 1, -8},
    {0x1FBA, 0x1FBB, 1, -74}, {0x1FBC, 0x1FBC, 1, -9}, {0x1FC8, 0x1FCB, 1, -86}, {0x1FCC, 0x1FCC, 1, -9}, {0x1FD8, 0x1FD9, 1, -8},
    {0x1FDA, 0x1FDB, 1, -100}, {0x1FE8, 0x1FE9, 1, -8}, {0x1FEA, 0x1FEB, 1, -112}, {0x1FEC, 0x1FEC, 1, -7}, {0x1FF8, 0x1FF9, 1, -128},
    {0x1FFA, 0x1FFB, 1, -126}, {0x1FFC, 0x1FFC, 1, -9}, {0x2126, 0x2126, 1, -7517}, {0x212A, 0x212A, 1, -8383}, {0x212B, 0x212B, 1, -8262},
    {0x2132, 0x2132, 1, 28}, {0x2160, 0x216F, 1, 16}, {0x2183, 0x2183, 1, 1}, {0x24B6, 0x24CF, 1, 26}, {0x2C00, 0x2C2F, 1, 48},
    {0x2C60, 0x2C60, 1, 1}, {0x2C62, 0x2C62, 1, -10743}, {0x2C63, 0x2C63, 1, -3814}, {0x2C64, 0x2C64, 1, -10727}, {0x2C67, 0x2C6B, 2, 1},
    {0x2C6D, 0x2C6D, 1, -10780}, {0x2C6E, 0x2C6E, 1, -10749}, {0x2C6F, 0x2C6F, 1, -10783}, {0x2C70, 0x2C70, 1, -10782},
    {0x2C72, 0x2C72, 1, 1}, {0x2C75, 0x2C75, 1, 1}, {0x2C7E, 0x2C7F, 1, -10815}, {0x2C80, 0x2CE2, 2, 1}, {0x2CEB, 0x2CED, 2, 1},
    {0x2CF2, 0x2CF2, 1, 1}, {0xA640, 0xA66C, 2, 1}, {0xA680, 0xA69A, 2, 1}, {0xA722, 0xA72E, 2, 1}, {0xA732, 0xA76E, 2, 1},
    {0xA779, 0xA77B, 2, 1}, {0xA77D, 0xA77D, 1, -35332}, {0xA77E, 0xA786, 2, 1}, {0xA78B, 0xA78B, 1, 1}, {0xA78D, 0xA78D, 1, -42280},
    {0xA790, 0xA792, 2, 1}, {0xA796, 0xA7A8, 2, 1}, {0xA7AA, 0xA7AA, 1, -42308}, {0xA7AB, 0xA7AB, 1, -42319}, {0xA7AC, 0xA7AC, 1, -42315},
    {0xA7AD, 0xA7AD, 1, -42305}, {0xA7AE, 0xA7AE, 1, -42308}, {0xA7B0, 0xA7B0, 1, -42258}, {0xA7B1, 0xA7B1, 1, -42282},
    {0xA7B2, 0xA7B2, 1, -42261}, {0xA7B3, 0xA7B3, 1, 928}, {0xA7B4, 0xA7C2, 2, 1}, {0xA7C4, 0xA7C4, 1, -48}, {0xA7C5, 0xA7C5, 1, -42307},
    {0xA7C6, 0xA7C6, 1, -35384}, {0xA7C7, 0xA7C9, 2, 1}, {0xA7D0, 0xA7D0, 1, 1}, {0xA7D6, 0xA7D8, 2, 1}, {0xA7F5, 0xA7F5, 1, 1},
    {0xFF21, 0xFF3A, 1, 32}, {0x10400, 0x10427, 1, 40}, {0x104B0, 0x104D3, 1, 40}, {0x10570, 0x1057A, 1, 39}, {0x1057C, 0x1058A, 1, 39},
    {0x1058C, 0x10592, 1, 39}, {0x10594, 0x10595, 1, 39}, {0x10C80, 0x10CB2, 1, 64}, {0x118A0, 0x118BF, 1, 32}, {0x16E40, 0x16E5F, 1, 32},
    {0x1E900, 0x1E921, 1, 34}};
enum { VP_IMPL_SCORE_CASE_RANGE_COUNT = sizeof vp_impl_score_case_ranges / sizeof vp_impl_score_case_ranges[0] };

/* the zeros of the decimal digits behind ASCII; nine more follow each */
static const uint32_t vp_impl_score_digit_zeros[] = {
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090,
    0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
    0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950,
    0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0};
enum { VP_IMPL_SCORE_DIGIT_ZERO_COUNT = sizeof vp_impl_score_digit_zeros / sizeof vp_impl_score_digit_zeros[0] };

/* One character at p < end; *bytes is its length. A byte that is no UTF-8 is a character of its own above the Unicode range. */
static uint32_t vp_impl_score_get(const char *p, const char *end, size_t *bytes) {
    const unsigned char *u = (const unsigned char *)p;
    size_t left = (size_t)(end - p), length = u[0] < 0x80 ? 1 : u[0] < 0xC2 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : u[0] < 0xF5 ? 4 : 0, i;
    uint32_t code = length == 1 ? u[0] : length == 2 ? u[0] & 31u : length == 3 ? u[0] & 15u : u[0] & 7u;
    *bytes = 1;
    if (length == 0 || length > left) return 0x110000u + u[0];
    for (i = 1; i < length; i++) {
        if ((u[i] & 0xC0) != 0x80) return 0x110000u + u[0];
        code = code << 6 | (u[i] & 63u);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) || (length == 4 && (code < 0x10000 || code > 0x10FFFF)))
        return 0x110000u + u[0];
    *bytes = length;
    return code;
}

static size_t vp_impl_score_put(char *out, uint32_t code) {
    if (code < 0x110000u) return vp_impl_utf8_put(out, code);
    out[0] = (char)(code - 0x110000u); /* the stray byte again */
    return 1;
}

/* what str.strip, str.split and str.isspace take for white space */
static int vp_impl_score_unicode_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)
        || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* what \d matches */
static int vp_impl_score_unicode_digit(uint32_t c) {
    size_t i;
    if (c < 0x80) return c >= '0' && c <= '9';
    for (i = 0; i < VP_IMPL_SCORE_DIGIT_ZERO_COUNT; i++)
        if (c - vp_impl_score_digit_zeros[i] < 10) return 1;
    return 0;
}

static uint32_t vp_impl_score_unicode_lower(uint32_t c) {
    size_t low = 0, high = VP_IMPL_SCORE_CASE_RANGE_COUNT;
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const vp_impl_score_case_range *r = &vp_impl_score_case_ranges[middle];
        if (c < r->first) high = middle;
        else if (c > r->last) low = middle + 1;
        else return (c - r->first) % r->step ? c : (uint32_t)((int32_t)c + r->add);
    }
    return c;
}

/* Only a final capital sigma asks for these two, printed by tests/tools/make_case_tables.py: runs of gap, length. Cased characters (those that
 * are ignorable too left out) and Case_Ignorable ones. */
static const uint16_t vp_impl_score_cased[] = {
    65,26,6,26,47,1,10,1,4,1,5,23,1,31,1,195,1,4,4,208,1,27,192,4,2,2,3,3,1,1,6,1,1,3,1,1,1,20,1,83,1,139,8,166,1,38,9,41,2839,38,1,1,5,1,2,43,2,3,
    672,86,2,6,2178,9,7,43,2,3,64,44,63,13,1,34,101,278,2,6,2,38,2,6,2,8,1,1,1,1,1,1,1,31,2,53,1,7,1,1,3,3,1,7,3,4,2,6,4,13,5,3,1,7,261,1,4,1,2,10,1,
    1,3,5,6,1,1,1,1,1,1,4,1,6,4,1,2,4,5,5,4,1,17,32,3,2,817,52,1814,124,2,103,6,4,3,2,12,38,1,1,5,1,30994,46,18,28,134,78,1,23,3,4,1,59,5,2,1,1,1,5,
    27,2,3,1,821,43,5,9,7,80,20288,7,12,5,1033,26,6,26,1189,80,96,36,4,36,116,11,1,15,1,7,1,2,1,11,1,15,1,7,1,2,1731,51,13,51,2989,64,21856,64,25984,
    85,1,71,1,2,2,1,2,2,2,4,1,12,1,1,1,7,1,65,1,4,2,8,1,7,1,28,1,4,1,5,1,1,3,7,1,340,2,25,1,25,1,31,1,25,1,31,1,25,1,31,1,25,1,31,1,25,1,8,1844,10,1,
    20,2529,68,2028,26,6,26,6,26};
static const uint32_t vp_impl_score_ignorable[] = {
    39,1,6,1,11,1,35,1,1,1,71,1,4,1,1,1,4,1,2,2,503,192,4,2,4,1,9,2,1,1,251,7,207,1,5,1,49,45,1,1,1,2,1,2,1,1,44,1,11,6,10,11,1,1,35,1,10,21,16,1,
    101,8,1,10,1,4,33,1,1,1,30,27,91,11,58,11,4,1,2,1,24,24,43,3,44,1,7,2,6,8,41,58,55,1,1,1,4,8,4,1,3,7,10,2,13,1,15,1,58,1,4,4,8,1,20,2,26,1,2,2,
    57,1,4,2,4,2,2,3,3,1,30,2,3,1,11,2,57,1,4,5,1,2,4,1,20,2,22,6,1,1,58,1,2,1,1,4,8,1,7,2,11,2,30,1,61,1,12,1,50,1,3,1,55,1,1,3,5,3,1,4,7,2,11,2,29,
    1,58,1,2,1,6,1,5,2,20,2,28,2,57,2,4,4,8,1,20,2,29,1,72,1,7,3,1,1,90,1,2,7,11,9,98,1,2,9,9,1,1,6,74,2,27,1,1,1,1,1,55,14,1,5,1,2,5,11,1,36,9,1,
    102,4,1,6,1,2,2,2,25,2,4,3,16,4,13,1,2,2,6,1,15,1,94,1,608,3,946,3,29,2,30,2,30,2,64,2,1,7,8,1,2,11,3,1,5,1,45,5,51,1,65,2,34,1,118,3,4,2,9,1,6,
    3,219,2,2,1,58,1,1,7,1,1,1,1,2,8,6,10,2,1,39,1,8,31,49,4,48,1,1,5,1,1,5,1,40,9,12,2,32,4,2,2,1,3,56,1,1,2,3,1,1,3,58,8,2,2,64,6,82,3,1,13,1,7,4,
    1,6,1,3,2,50,63,13,1,34,101,445,1,1,3,11,3,13,3,13,3,13,2,12,5,8,2,10,1,2,1,2,5,49,5,1,10,1,1,13,1,16,13,51,33,2955,2,113,3,125,1,15,1,96,32,47,
    1,469,1,36,4,3,5,5,1,93,6,93,3,28438,1,1250,6,270,1,98,4,1,10,1,1,28,4,80,2,14,34,78,1,23,3,103,3,3,2,8,1,3,1,4,1,25,2,5,1,151,2,26,18,13,1,38,8,
    25,11,46,3,48,1,2,4,2,2,17,1,21,2,66,6,2,2,2,2,12,1,8,1,35,1,11,1,51,1,1,3,2,2,5,2,1,1,27,1,14,2,5,2,1,1,100,5,9,3,121,1,2,1,4,1,20272,1,147,17,
    573,16,3,1,12,16,34,1,2,1,169,1,7,1,6,1,11,1,35,1,1,1,47,1,45,2,67,1,21,3,513,1,226,1,149,5,1029,6,1,42,1,9,582,3,1,2,5,4,40,3,4,1,165,2,573,4,
    387,2,153,11,49,4,123,1,54,15,41,1,2,2,10,3,49,4,2,2,2,1,4,1,10,1,50,3,36,5,1,8,62,1,12,2,52,9,10,4,2,1,95,3,2,1,1,2,6,1,160,1,3,8,21,2,57,2,3,1,
    37,7,3,5,195,8,2,3,1,1,23,1,84,6,1,1,4,2,1,2,238,4,6,2,1,2,27,2,85,8,2,1,1,2,106,1,1,1,2,6,1,1,101,3,2,4,1,5,259,9,1,2,256,2,1,1,4,1,144,4,2,2,4,
    1,32,10,40,6,2,4,8,1,9,6,2,3,46,13,1,2,406,7,1,6,1,1,82,22,2,7,1,2,1,2,122,6,3,1,1,2,1,7,1,1,72,2,3,1,1,1,347,2,5435,9,14007,5,59,7,9,4,1035,1,
    63,17,64,2,1,2,16395,4,1,7,1,2,3230,2,1,4,4700,46,2,23,544,3,9,16,2,7,30,4,148,3,1979,55,4,50,8,1,14,1,22,5,1,15,1360,7,1,17,2,7,1,2,1,5,261,14,
    368,1,61,4,1504,7,109,8,2735,5,789505,1,30,96,128,240};

static int vp_impl_score_unicode_cased(uint32_t c) {
    uint32_t at = 0;
    size_t i;
    for (i = 0; i < sizeof vp_impl_score_cased / sizeof vp_impl_score_cased[0] && at <= c; i += 2) {
        at += vp_impl_score_cased[i];
        if (c >= at && c - at < vp_impl_score_cased[i + 1]) return 1;
        at += vp_impl_score_cased[i + 1];
    }
    return 0;
}

static int vp_impl_score_unicode_case_ignorable(uint32_t c) {
    uint32_t at = 0;
    size_t i;
    for (i = 0; i < sizeof vp_impl_score_ignorable / sizeof vp_impl_score_ignorable[0] && at <= c; i += 2) {
        at += vp_impl_score_ignorable[i];
        if (c >= at && c - at < vp_impl_score_ignorable[i + 1]) return 1;
        at += vp_impl_score_ignorable[i + 1];
    }
    return 0;
}

static const char vp_impl_score_punctuation[] = ";/[]\"{}()=+\\_-><@`,?!";

/* the place of a character among them, or -1 */
static int vp_impl_score_punctuation_index(uint32_t c) {
    const char *found = c && c < 0x80 ? strchr(vp_impl_score_punctuation, (int)c) : NULL;
    return found ? (int)(found - vp_impl_score_punctuation) : -1;
}

/* 1: a cased letter, 0: another, -1: neither asks nor answers. deleted: punctuation that is gone, the other becomes a space; NULL: all is there */
static int vp_impl_score_unicode_case(uint32_t c, const unsigned char *deleted) {
    const int index = deleted ? vp_impl_score_punctuation_index(c) : -1;
    if (index >= 0) return deleted[index] ? -1 : 0;
    return vp_impl_score_unicode_case_ignorable(c) ? -1 : vp_impl_score_unicode_cased(c);
}

/* A capital sigma at p: final when a cased letter stands before it and none behind it. */
static uint32_t vp_impl_score_unicode_sigma(const char *text, const char *p, const char *end, const unsigned char *deleted) {
    const char *q = p;
    size_t bytes = 0;
    uint32_t c = 0;
    int cased = -1;
    while (q > text && cased < 0) {
        const char *back = q - 1;
        while (back > text && q - back < 4 && ((unsigned char)*back & 0xC0) == 0x80) back--;
        c = vp_impl_score_get(back, end, &bytes);
        if (back + bytes != q) { back = q - 1; c = 0x110000u; } /* stray bytes */
        q = back;
        cased = vp_impl_score_unicode_case(c, deleted);
    }
    if (cased <= 0) return 0x3C3;
    for (cased = -1, q = p + 2; q < end && cased < 0; q += bytes) cased = vp_impl_score_unicode_case(vp_impl_score_get(q, end, &bytes), deleted);
    return cased > 0 ? 0x3C3 : 0x3C2;
}

/* moves both ends inwards over white space */
static void vp_impl_score_strip(const char **start, const char **end) {
    const char *p = *start, *last = *start;
    size_t bytes;
    while (p < *end && vp_impl_score_unicode_space(vp_impl_score_get(p, *end, &bytes))) p += bytes;
    *start = last = p;
    while (p < *end) {
        int space = vp_impl_score_unicode_space(vp_impl_score_get(p, *end, &bytes));
        p += bytes;
        if (!space) last = p;
    }
    *end = last;
}

/* ------------------------------------------------------------------------------------------------------ output
 * Texts are produced twice, first only counted, so that a too small buffer stays untouched. */
typedef struct vp_impl_score_text_out { char *out; size_t bytes; } vp_impl_score_text_out; /* out NULL: count */

static void vp_impl_score_text_add(vp_impl_score_text_out *o, const char *text, size_t bytes) {
    if (o->out && bytes) memcpy(o->out + o->bytes, text, bytes);
    o->bytes += bytes;
}

static void vp_impl_score_text_code(vp_impl_score_text_out *o, uint32_t code) {
    char buffer[4];
    vp_impl_score_text_add(o, buffer, vp_impl_score_put(buffer, code));
}

/* ---------------------------------------------------------------------------------------------------- cleaning */
static void vp_impl_score_clean(const char *text, vp_impl_score_text_out *o) {
    static const char mark[] = "Answer:";
    const char *start = strstr(text, mark), *end = text + strlen(text), *p, *line_end;
    size_t bytes;
    int gap = 0;
    if (start) { /* up to the next mark */
        start += sizeof mark - 1;
        p = strstr(start, mark);
        if (p) end = p;
        vp_impl_score_strip(&start, &end);
        vp_impl_score_text_add(o, start, (size_t)(end - start));
        return;
    }
    if (strchr(text, '\n')) { /* the last line with something in it */
        line_end = end;
        for (;;) {
            p = line_end;
            while (p > text && p[-1] != '\n') p--;
            start = p;
            end = line_end;
            vp_impl_score_strip(&start, &end);
            if (start < end || p == text) break;
            line_end = p - 1;
        }
        vp_impl_score_text_add(o, start, (size_t)(end - start));
        return;
    }
    start = text;
    vp_impl_score_strip(&start, &end);
    for (p = start; p < end; p += bytes) {
        uint32_t c = vp_impl_score_get(p, end, &bytes);
        if (vp_impl_score_unicode_space(c)) { gap = 1; continue; }
        if (gap) vp_impl_score_text_add(o, " ", 1);
        gap = 0;
        vp_impl_score_text_add(o, p, bytes);
    }
}

/* counts, then writes when it fits */
typedef void (*vp_impl_score_text_rule)(const char *, vp_impl_score_text_out *);
static vp_result vp_impl_score_text_produce(vp_impl_score_text_rule produce, const char *text, char *out, size_t capacity, size_t *needed) {
    vp_impl_score_text_out o;
    if (!text || (!out && capacity)) return VP_ERR_RANGE;
    o.out = NULL;
    o.bytes = 0;
    produce(text, &o);
    if (needed) *needed = o.bytes;
    if (o.bytes >= capacity) return VP_ERR_CAPACITY;
    o.out = out;
    o.bytes = 0;
    produce(text, &o);
    out[o.bytes] = 0;
    return VP_OK;
}

VP_API vp_result vp_score_clean(const char *prediction, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_clean, prediction, out, capacity, needed);
}

/* ------------------------------------------------------------------------------------------- VQA normalisation */
/* Whole words, sorted: number words, articles (dropped) and contractions. The reference's table also has keys with capitals (Im, Ive ...)
 * that a lower-cased text never holds, and keys that map to themselves. */
typedef struct vp_impl_score_word { const char *from, *to; } vp_impl_score_word;
static const vp_impl_score_word vp_impl_score_words[] = {
    {"'ow'sat", "'ow's'at"}, {"'ows'at", "'ow's'at"}, {"a", ""}, {"aint", "ain't"}, {"an", ""}, {"arent", "aren't"}, {"cant", "can't"},
    {"couldn'tve", "couldn't've"}, {"couldnt", "couldn't"}, {"couldnt've", "couldn't've"}, {"couldve", "could've"}, {"didnt", "didn't"},
    {"doesnt", "doesn't"}, {"dont", "don't"}, {"eight", "8"}, {"five", "5"}, {"four", "4"}, {"hadn'tve", "hadn't've"}, {"hadnt", "hadn't"},
    {"hadnt've", "hadn't've"}, {"hasnt", "hasn't"}, {"havent", "haven't"}, {"he'dve", "he'd've"}, {"hed", "he'd"}, {"hed've", "he'd've"},
    {"hes", "he's"}, {"howd", "how'd"}, {"howll", "how'll"}, {"hows", "how's"}, {"isnt", "isn't"}, {"it'dve", "it'd've"}, {"itd", "it'd"},
    {"itd've", "it'd've"}, {"itll", "it'll"}, {"maam", "ma'am"}, {"mightn'tve", "mightn't've"}, {"mightnt", "mightn't"},
    {"mightnt've", "mightn't've"}, {"mightve", "might've"}, {"mustnt", "mustn't"}, {"mustve", "must've"}, {"neednt", "needn't"},
    {"nine", "9"}, {"none", "0"}, {"notve", "not've"}, {"oclock", "o'clock"}, {"one", "1"}, {"oughtnt", "oughtn't"},
    {"ow's'at", "'ow's'at"}, {"seven", "7"}, {"shant", "shan't"}, {"she'dve", "she'd've"}, {"shed've", "she'd've"},
    {"shouldn'tve", "shouldn't've"}, {"shouldnt", "shouldn't"}, {"shouldnt've", "shouldn't've"}, {"shouldve", "should've"}, {"six", "6"},
    {"somebody'd", "somebodyd"}, {"somebody'dve", "somebody'd've"}, {"somebodyd've", "somebody'd've"}, {"somebodyll", "somebody'll"},
    {"somebodys", "somebody's"}, {"someone'dve", "someone'd've"}, {"someoned", "someone'd"}, {"someoned've", "someone'd've"},
    {"someonell", "someone'll"}, {"someones", "someone's"}, {"something'dve", "something'd've"}, {"somethingd", "something'd"},
    {"somethingd've", "something'd've"}, {"somethingll", "something'll"}, {"ten", "10"}, {"thats", "that's"}, {"the", ""},
    {"there'dve", "there'd've"}, {"thered", "there'd"}, {"thered've", "there'd've"}, {"therere", "there're"}, {"theres", "there's"},
    {"they'dve", "they'd've"}, {"theyd", "they'd"}, {"theyd've", "they'd've"}, {"theyll", "they'll"}, {"theyre", "they're"},
    {"theyve", "they've"}, {"three", "3"}, {"twas", "'twas"}, {"two", "2"}, {"wasnt", "wasn't"}, {"we'dve", "we'd've"},
    {"wed've", "we'd've"}, {"werent", "weren't"}, {"weve", "we've"}, {"whatll", "what'll"}, {"whatre", "what're"}, {"whats", "what's"},
    {"whatve", "what've"}, {"whens", "when's"}, {"whered", "where'd"}, {"wheres", "where's"}, {"whereve", "where've"},
    {"who'dve", "who'd've"}, {"whod", "who'd"}, {"whod've", "who'd've"}, {"wholl", "who'll"}, {"whos", "who's"}, {"whove", "who've"},
    {"whyll", "why'll"}, {"whyre", "why're"}, {"whys", "why's"}, {"wont", "won't"}, {"wouldn'tve", "wouldn't've"}, {"wouldnt", "wouldn't"},
    {"wouldnt've", "wouldn't've"}, {"wouldve", "would've"}, {"y'all'dve", "y'all'd've"}, {"y'alld've", "y'all'd've"},
    {"y'allll", "y'all'll"}, {"yall", "y'all"}, {"yall'd've", "y'all'd've"}, {"yall'll", "y'all'll"}, {"you'dve", "you'd've"},
    {"youd", "you'd"}, {"youd've", "you'd've"}, {"youll", "you'll"}, {"youre", "you're"}, {"youve", "you've"}, {"zero", "0"}};
enum { VP_IMPL_SCORE_WORD_COUNT = sizeof vp_impl_score_words / sizeof vp_impl_score_words[0], VP_IMPL_SCORE_WORD_BYTES_MAX = 15 };

/* the text between its stripped ends, lower-cased, newline and tab as spaces, one character at a time */
/* deleted: lower case comes behind the punctuation; NULL: before it */
typedef struct vp_impl_score_lowered { const char *text, *p, *end; uint32_t pending; const unsigned char *deleted; } vp_impl_score_lowered;

static vp_impl_score_lowered vp_impl_score_lowered_start(const char *text) {
    vp_impl_score_lowered l;
    l.text = l.p = text;
    l.end = text + strlen(text);
    l.pending = 0;
    l.deleted = NULL;
    vp_impl_score_strip(&l.p, &l.end);
    return l;
}

static int vp_impl_score_lowered_next(vp_impl_score_lowered *l, uint32_t *code) {
    size_t bytes;
    uint32_t c;
    if (l->pending) {
        *code = l->pending;
        l->pending = 0;
        return 1;
    }
    if (l->p >= l->end) return 0;
    c = vp_impl_score_get(l->p, l->end, &bytes);
    if (c == '\n' || c == '\t') c = ' ';
    else if (c == 0x130) {
        c = 'i';
        l->pending = 0x307;
    } else if (c == 0x3A3) c = vp_impl_score_unicode_sigma(l->text, l->p, l->end, l->deleted);
    else c = vp_impl_score_unicode_lower(c);
    l->p += bytes;
    *code = c;
    return 1;
}

/* Which punctuation characters the whole text says to delete (the others become spaces): those that stand beside a space, or all of them
 * when a digit, a comma and a digit follow one another anywhere. */
static void vp_impl_score_punctuation_scan(const char *text, unsigned char deleted[sizeof vp_impl_score_punctuation]) {
    vp_impl_score_lowered l = vp_impl_score_lowered_start(text);
    uint32_t c, before = 0, before2 = 0;
    int index;
    memset(deleted, 0, sizeof vp_impl_score_punctuation);
    while (vp_impl_score_lowered_next(&l, &c)) {
        if (before == ' ' && (index = vp_impl_score_punctuation_index(c)) >= 0) deleted[index] = 1;
        if (c == ' ' && (index = vp_impl_score_punctuation_index(before)) >= 0) deleted[index] = 1;
        if (before == ',' && vp_impl_score_unicode_digit(before2) && vp_impl_score_unicode_digit(c)) {
            memset(deleted, 1, sizeof vp_impl_score_punctuation);
            return;
        }
        before2 = before;
        before = c;
    }
}

/* collects a word; one that is longer than any in the table goes out at once */
typedef struct vp_impl_score_word_out {
    vp_impl_score_text_out *o;
    char word[VP_IMPL_SCORE_WORD_BYTES_MAX + 5];
    size_t bytes;
    int any, flowing; /* a word was written before; the current one is being written */
} vp_impl_score_word_out;

static void vp_impl_score_word_begin(vp_impl_score_word_out *w) {
    if (w->any) vp_impl_score_text_add(w->o, " ", 1);
    w->any = 1;
}

static void vp_impl_score_word_end(vp_impl_score_word_out *w) {
    size_t low = 0, high = VP_IMPL_SCORE_WORD_COUNT;
    const char *text = w->word;
    if (!w->flowing && w->bytes) {
        w->word[w->bytes] = 0;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            int order = strcmp(w->word, vp_impl_score_words[middle].from);
            if (order == 0) { text = vp_impl_score_words[middle].to; break; }
            if (order < 0) high = middle;
            else low = middle + 1;
        }
        if (*text) {
            vp_impl_score_word_begin(w);
            vp_impl_score_text_add(w->o, text, strlen(text));
        }
    }
    w->bytes = 0;
    w->flowing = 0;
}

static void vp_impl_score_word_code(vp_impl_score_word_out *w, uint32_t c) {
    if (vp_impl_score_unicode_space(c)) {
        vp_impl_score_word_end(w);
        return;
    }
    if (!w->flowing) {
        w->bytes += vp_impl_score_put(w->word + w->bytes, c);
        if (w->bytes <= VP_IMPL_SCORE_WORD_BYTES_MAX) return;
        vp_impl_score_word_begin(w);
        vp_impl_score_text_add(w->o, w->word, w->bytes);
        w->flowing = 1;
        return;
    }
    vp_impl_score_text_code(w->o, c);
}

static void vp_impl_score_normalise_by(const char *text, vp_impl_score_text_out *o, int lower_last) {
    unsigned char deleted[sizeof vp_impl_score_punctuation];
    vp_impl_score_lowered l = vp_impl_score_lowered_start(text);
    vp_impl_score_word_out w;
    uint32_t c;
    int index, period = 0, periods_dropped = 0;
    memset(&w, 0, sizeof w);
    w.o = o;
    vp_impl_score_punctuation_scan(text, deleted);
    if (lower_last) l.deleted = deleted;
    while (vp_impl_score_lowered_next(&l, &c)) {
        index = vp_impl_score_punctuation_index(c);
        if (index >= 0 && deleted[index]) continue;
        if (index >= 0) c = ' ';
        if (period) { /* kept before a digit, else dropped: the reference's lookbehind is mistyped, and its flag is taken as the count 32 */
            if (vp_impl_score_unicode_digit(c) || periods_dropped == 32) vp_impl_score_word_code(&w, '.');
            else periods_dropped++;
        }
        period = c == '.';
        if (!period) vp_impl_score_word_code(&w, c);
    }
    if (period && periods_dropped == 32) vp_impl_score_word_code(&w, '.');
    vp_impl_score_word_end(&w);
}

static void vp_impl_score_normalise(const char *text, vp_impl_score_text_out *o) { vp_impl_score_normalise_by(text, o, 0); }
static void vp_impl_score_normalise_late(const char *text, vp_impl_score_text_out *o) { vp_impl_score_normalise_by(text, o, 1); }
VP_API vp_result vp_score_vqa_normalise(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_normalise, text, out, capacity, needed);
}
VP_API vp_result vp_score_vqa_normalise_official(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_normalise_late, text, out, capacity, needed);
}

VP_API vp_result vp_score_vqa_seed(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                                   double *score) {
    size_t bytes = 0, other = 0, matches = 0, i;
    vp_result result;
    if (!prediction || (!references && reference_count) || !scratch || !score) return VP_ERR_RANGE;
    result = vp_score_vqa_normalise(prediction, scratch, scratch_bytes, &bytes);
    for (i = 0; i < reference_count && result == VP_OK; i++) {
        char *second = scratch + bytes + 1;
        size_t left = scratch_bytes - bytes - 1;
        if (!references[i]) return VP_ERR_RANGE;
        result = vp_score_vqa_normalise(references[i], second, left, &other);
        if (other != bytes) result = VP_OK; /* a text of another length never matches, whether it fits or not */
        else if (result == VP_OK && memcmp(scratch, second, bytes) == 0) matches++;
    }
    if (result != VP_OK) return result;
    *score = matches >= 3 ? 1.0 : (double)matches / 3.0;
    return VP_OK;
}

/* -------------------------------------------------------------------------------------------- working memory
 * Rules work in the caller's scratch: a pool that only grows. What does not fit sets `full`; texts that did not fit are empty, so that a
 * rule can run on to its end and say VP_ERR_CAPACITY there. */
typedef struct vp_impl_score_pool { char *p; size_t left; int full; } vp_impl_score_pool;
typedef struct vp_impl_score_span { const char *p; size_t bytes; } vp_impl_score_span;

static vp_impl_score_pool vp_impl_score_pool_of(char *scratch, size_t scratch_bytes) {
    vp_impl_score_pool pool;
    pool.p = scratch;
    pool.left = scratch ? scratch_bytes : 0;
    pool.full = 0;
    return pool;
}

/* aligned to 8; NULL when it does not fit */
static void *vp_impl_score_take(vp_impl_score_pool *pool, size_t count, size_t element_bytes) {
    const size_t skip = (8 - (size_t)((uintptr_t)pool->p & 7)) & 7;
    void *taken;
    if (pool->full || count > (SIZE_MAX - 8) / element_bytes || skip > pool->left || count * element_bytes > pool->left - skip) {
        pool->full = 1;
        return NULL;
    }
    taken = pool->p + skip;
    pool->p += skip + count * element_bytes;
    pool->left -= skip + count * element_bytes;
    return taken;
}

/* gives back what was taken since `before`, a copy of the pool */
static void vp_impl_score_give_back(vp_impl_score_pool *pool, const vp_impl_score_pool *before) {
    const int full = pool->full;
    *pool = *before;
    pool->full |= full;
}

static vp_impl_score_span vp_impl_score_span_from(const char *start, const char *end) {
    vp_impl_score_span s;
    s.p = start;
    s.bytes = (size_t)(end - start);
    return s;
}
static vp_impl_score_span vp_impl_score_span_of(const char *text) { return vp_impl_score_span_from(text, text + strlen(text)); }

static vp_impl_score_span vp_impl_score_trimmed(vp_impl_score_span s) {
    const char *start = s.p, *end = s.p + s.bytes;
    vp_impl_score_strip(&start, &end);
    return vp_impl_score_span_from(start, end);
}

/* drops one ASCII character from both ends */
static vp_impl_score_span vp_impl_score_without(vp_impl_score_span s, char c) {
    while (s.bytes && s.p[0] == c) { s.p++; s.bytes--; }
    while (s.bytes && s.p[s.bytes - 1] == c) s.bytes--;
    return s;
}

static int vp_impl_score_same(vp_impl_score_span a, vp_impl_score_span b) { return a.bytes == b.bytes && (!a.bytes || !memcmp(a.p, b.p, a.bytes)); }

/* Where a text stands in another, from the front or from the back; NULL: nowhere. The empty text stands at the front (or the end). */
static const char *vp_impl_score_search(vp_impl_score_span in, vp_impl_score_span what, int last) {
    size_t i;
    if (what.bytes > in.bytes) return NULL;
    for (i = 0; i <= in.bytes - what.bytes; i++) {
        const char *p = in.p + (last ? in.bytes - what.bytes - i : i);
        if (!what.bytes || (*p == what.p[0] && !memcmp(p, what.p, what.bytes))) return p;
    }
    return NULL;
}

static size_t vp_impl_score_length(vp_impl_score_span s) { /* in characters */
    const char *p = s.p, *end = s.p + s.bytes;
    size_t count = 0, bytes;
    for (; p < end; p += bytes, count++) vp_impl_score_get(p, end, &bytes);
    return count;
}

static int vp_impl_score_order(vp_impl_score_span a, vp_impl_score_span b) {
    const size_t least = a.bytes < b.bytes ? a.bytes : b.bytes;
    const int order = least ? memcmp(a.p, b.p, least) : 0;
    if (order) return order;
    if (a.bytes != b.bytes) return a.bytes < b.bytes ? -1 : 1;
    return a.p == b.p ? 0 : (uintptr_t)a.p < (uintptr_t)b.p ? -1 : 1; /* equal texts keep the order in which they lie in memory */
}

/* heap sort: n log n whatever the texts are */
static void vp_impl_score_sort(vp_impl_score_span *s, size_t count) {
    size_t start = count / 2, end = count;
    while (end > 1) {
        size_t at, child;
        vp_impl_score_span held;
        if (start > 0) held = s[--start];
        else {
            held = s[--end];
            s[end] = s[0];
        }
        for (at = start; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && vp_impl_score_order(s[child], s[child + 1]) < 0) child++;
            if (vp_impl_score_order(held, s[child]) >= 0) break;
            s[at] = s[child];
        }
        s[at] = held;
    }
}

/* sorts and drops repeats; returns how many are left */
static size_t vp_impl_score_unique(vp_impl_score_span *s, size_t count) {
    size_t i, kept = 0;
    vp_impl_score_sort(s, count);
    for (i = 0; i < count; i++)
        if (!kept || !vp_impl_score_same(s[kept - 1], s[i])) s[kept++] = s[i];
    return kept;
}

/* ---------------------------------------------------------------------------------------------- case of whole texts */
typedef void (*vp_impl_score_span_rule)(vp_impl_score_span, vp_impl_score_text_out *);
/* the rule's text in the pool, with NUL */
static vp_impl_score_span vp_impl_score_map(vp_impl_score_pool *pool, vp_impl_score_span s, vp_impl_score_span_rule rule) {
    vp_impl_score_text_out o;
    vp_impl_score_span made;
    o.out = NULL;
    o.bytes = 0;
    rule(s, &o);
    made.p = "";
    made.bytes = 0;
    o.out = (char *)vp_impl_score_take(pool, o.bytes + 1, 1);
    if (!o.out) return made;
    o.bytes = 0;
    rule(s, &o);
    o.out[o.bytes] = 0;
    made.p = o.out;
    made.bytes = o.bytes;
    return made;
}

/* str.lower */
static void vp_impl_score_lower_rule(vp_impl_score_span s, vp_impl_score_text_out *o) {
    const char *p = s.p, *end = s.p + s.bytes;
    size_t bytes;
    for (; p < end; p += bytes) {
        uint32_t c = vp_impl_score_get(p, end, &bytes);
        if (c == 0x130) {
            vp_impl_score_text_code(o, 'i');
            c = 0x307;
        } else c = c == 0x3A3 ? vp_impl_score_unicode_sigma(s.p, p, end, NULL) : vp_impl_score_unicode_lower(c);
        vp_impl_score_text_code(o, c);
    }
}
static vp_impl_score_span vp_impl_score_lower(vp_impl_score_pool *pool, vp_impl_score_span s) {
    return vp_impl_score_map(pool, s, vp_impl_score_lower_rule);
}

/* Where str.upper is not the table of lower case read backwards: {character, up to three others}. U+1F80 to U+1FAF follow a rule of their own. */
static const uint16_t vp_impl_score_uppers[][4] = {
    {0xB5, 0x39C}, {0xDF, 'S', 'S'}, {0x131, 'I'}, {0x149, 0x2BC, 'N'}, {0x17F, 'S'}, {0x1C5, 0x1C4}, {0x1C8, 0x1C7}, {0x1CB, 0x1CA},
    {0x1F0, 'J', 0x30C}, {0x1F2, 0x1F1}, {0x345, 0x399}, {0x390, 0x399, 0x308, 0x301}, {0x3B0, 0x3A5, 0x308, 0x301}, {0x3C2, 0x3A3},
    {0x3D0, 0x392}, {0x3D1, 0x398}, {0x3D5, 0x3A6}, {0x3D6, 0x3A0}, {0x3F0, 0x39A}, {0x3F1, 0x3A1}, {0x3F5, 0x395}, {0x587, 0x535, 0x552},
    {0x1C80, 0x412}, {0x1C81, 0x414}, {0x1C82, 0x41E}, {0x1C83, 0x421}, {0x1C84, 0x422}, {0x1C85, 0x422}, {0x1C86, 0x42A}, {0x1C87, 0x462},
    {0x1C88, 0xA64A}, {0x1E96, 'H', 0x331}, {0x1E97, 'T', 0x308}, {0x1E98, 'W', 0x30A}, {0x1E99, 'Y', 0x30A}, {0x1E9A, 'A', 0x2BE},
    {0x1E9B, 0x1E60}, {0x1F50, 0x3A5, 0x313}, {0x1F52, 0x3A5, 0x313, 0x300}, {0x1F54, 0x3A5, 0x313, 0x301}, {0x1F56, 0x3A5, 0x313, 0x342},
    {0x1FB2, 0x1FBA, 0x399}, {0x1FB3, 0x391, 0x399}, {0x1FB4, 0x386, 0x399}, {0x1FB6, 0x391, 0x342}, {0x1FB7, 0x391, 0x342, 0x399},
    {0x1FBC, 0x391, 0x399}, {0x1FBE, 0x399}, {0x1FC2, 0x1FCA, 0x399}, {0x1FC3, 0x397, 0x399}, {0x1FC4, 0x389, 0x399}, {0x1FC6, 0x397, 0x342},
    {0x1FC7, 0x397, 0x342, 0x399}, {0x1FCC, 0x397, 0x399}, {0x1FD2, 0x399, 0x308, 0x300}, {0x1FD3, 0x399, 0x308, 0x301}, {0x1FD6, 0x399, 0x342},
    {0x1FD7, 0x399, 0x308, 0x342}, {0x1FE2, 0x3A5, 0x308, 0x300}, {0x1FE3, 0x3A5, 0x308, 0x301}, {0x1FE4, 0x3A1, 0x313}, {0x1FE6, 0x3A5, 0x342},
    {0x1FE7, 0x3A5, 0x308, 0x342}, {0x1FF2, 0x1FFA, 0x399}, {0x1FF3, 0x3A9, 0x399}, {0x1FF4, 0x38F, 0x399}, {0x1FF6, 0x3A9, 0x342},
    {0x1FF7, 0x3A9, 0x342, 0x399}, {0x1FFC, 0x3A9, 0x399}, {0xFB00, 'F', 'F'}, {0xFB01, 'F', 'I'}, {0xFB02, 'F', 'L'}, {0xFB03, 'F', 'F', 'I'},
    {0xFB04, 'F', 'F', 'L'}, {0xFB05, 'S', 'T'}, {0xFB06, 'S', 'T'}, {0xFB13, 0x544, 0x546}, {0xFB14, 0x544, 0x535}, {0xFB15, 0x544, 0x53B},
    {0xFB16, 0x54E, 0x546}, {0xFB17, 0x544, 0x53D}};
enum { VP_IMPL_SCORE_UPPER_COUNT = sizeof vp_impl_score_uppers / sizeof vp_impl_score_uppers[0] };

/* str.upper */
static void vp_impl_score_upper_rule(vp_impl_score_span s, vp_impl_score_text_out *o) {
    const char *p = s.p, *end = s.p + s.bytes;
    size_t bytes, i, k;
    for (; p < end; p += bytes) {
        uint32_t c = vp_impl_score_get(p, end, &bytes);
        if (c < 0x80) {
            vp_impl_score_text_code(o, c >= 'a' && c <= 'z' ? c - 32 : c);
            continue;
        }
        if (c >= 0x1F80 && c <= 0x1FAF) { /* the iota below becomes one beside */
            vp_impl_score_text_code(o, (c < 0x1F90 ? 0x1F08u : c < 0x1FA0 ? 0x1F28u : 0x1F68u) + (c & 7));
            vp_impl_score_text_code(o, 0x399);
            continue;
        }
        for (i = 0; i < VP_IMPL_SCORE_UPPER_COUNT && vp_impl_score_uppers[i][0] != c; i++) {}
        if (i < VP_IMPL_SCORE_UPPER_COUNT) {
            for (k = 1; k < 4 && vp_impl_score_uppers[i][k]; k++) vp_impl_score_text_code(o, vp_impl_score_uppers[i][k]);
            continue;
        }
        for (i = 0; i < VP_IMPL_SCORE_CASE_RANGE_COUNT; i++) {
            const vp_impl_score_case_range *r = &vp_impl_score_case_ranges[i];
            const uint32_t upper = (uint32_t)((int32_t)c - r->add);
            if (upper < r->first || upper > r->last || (upper - r->first) % r->step) continue;
            c = upper;
            break;
        }
        vp_impl_score_text_code(o, c);
    }
}

/* what \w matches: letters, numbers and the underscore */
static int vp_impl_score_unicode_word(uint32_t c) {
    const uint32_t *t = vp_impl_unicode_classes, *end = t + sizeof vp_impl_unicode_classes / sizeof *t;
    uint32_t code = 0;
    if (c < 0x80) return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    for (; t < end; t += 2) {
        code += t[0];
        if (c < code) return 0;
        code += t[1] / 4;
        if (c < code) return t[1] % 4 == 1 || t[1] % 4 == 2;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------------- numbers as Python reads and rounds them */
/* The text as float() sees it: ASCII digits and spaces for those of all scripts, ends stripped, underscores between digits dropped. Returns 0
 * when some character cannot be part of a number. `out` has room for the text. */
static int vp_impl_score_float_text(vp_impl_score_span s, char *out, size_t *out_bytes) {
    const char *p = s.p, *end = s.p + s.bytes;
    size_t bytes, i, first = 0, count = 0, kept = 0;
    for (; p < end; p += bytes) {
        uint32_t c = vp_impl_score_get(p, end, &bytes);
        if (c >= 0x80) {
            for (i = 0; i < VP_IMPL_SCORE_DIGIT_ZERO_COUNT && c - vp_impl_score_digit_zeros[i] >= 10; i++) {}
            if (i < VP_IMPL_SCORE_DIGIT_ZERO_COUNT) c = '0' + (c - vp_impl_score_digit_zeros[i]);
            else if (vp_impl_score_unicode_space(c)) c = ' ';
            else return 0;
        }
        out[count++] = (char)c;
    }
    while (first < count && (out[first] == ' ' || (out[first] >= 9 && out[first] <= 13))) first++; /* 28 to 31 are no spaces here */
    while (count > first && (out[count - 1] == ' ' || (out[count - 1] >= 9 && out[count - 1] <= 13))) count--;
    for (i = first; i < count; i++) {
        if (out[i] != '_') out[kept++] = out[i];
        else if (i == first || i + 1 == count || out[i - 1] < '0' || out[i - 1] > '9' || out[i + 1] < '0' || out[i + 1] > '9') return 0;
    }
    *out_bytes = kept;
    return 1;
}

/* [digits][.digits][e[+-]digits] as a JSON number: no leading zeros, digits on both sides of the point. `out` has room for two bytes more. */
static int vp_impl_score_json_number(const char *p, const char *end, char *out, size_t *out_bytes) {
    const char *whole = p, *whole_end, *fraction, *fraction_end;
    size_t n = 0;
    while (p < end && *p >= '0' && *p <= '9') p++;
    whole_end = fraction = fraction_end = p;
    if (p < end && *p == '.') {
        fraction = ++p;
        while (p < end && *p >= '0' && *p <= '9') p++;
        fraction_end = p;
    }
    if (whole == whole_end && fraction == fraction_end) return 0;
    while (whole < whole_end && *whole == '0') whole++;
    if (whole == whole_end) out[n++] = '0';
    while (whole < whole_end) out[n++] = *whole++;
    if (fraction < fraction_end) out[n++] = '.';
    while (fraction < fraction_end) out[n++] = *fraction++;
    if (p < end && (*p == 'e' || *p == 'E')) {
        out[n++] = *p++;
        if (p < end && (*p == '+' || *p == '-')) out[n++] = *p++;
        if (p == end) return 0;
        while (p < end && *p >= '0' && *p <= '9') out[n++] = *p++;
        if (out[n - 1] < '0' || out[n - 1] > '9') return 0;
    }
    *out_bytes = n;
    return p == end;
}

static int vp_impl_score_is_word(const char *p, size_t bytes, const char *lower) { /* ASCII, any case */
    size_t i;
    if (strlen(lower) != bytes) return 0;
    for (i = 0; i < bytes; i++) if ((p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32 : p[i]) != lower[i]) return 0;
    return 1;
}

/* float(text): 1 and the value, or 0 when Python says ValueError */
static int vp_impl_score_float(vp_impl_score_pool *pool, vp_impl_score_span s, double *value) {
    const vp_impl_score_pool before = *pool;
    char *text = (char *)vp_impl_score_take(pool, s.bytes + 1, 1), *number = (char *)vp_impl_score_take(pool, s.bytes + 3, 1);
    size_t bytes = 0, number_bytes = 0;
    double v = 0;
    int good = text && number && vp_impl_score_float_text(s, text, &bytes), negative = good && bytes && text[0] == '-';
    if (good && bytes && (text[0] == '-' || text[0] == '+')) {
        text++;
        bytes--;
    }
    if (good && (vp_impl_score_is_word(text, bytes, "inf") || vp_impl_score_is_word(text, bytes, "infinity"))) v = HUGE_VAL;
    else if (good && vp_impl_score_is_word(text, bytes, "nan")) v = (double)NAN;
    else if (good && (good = vp_impl_score_json_number(text, text + bytes, number, &number_bytes)) != 0) {
        if (vp_number_parse(number, number_bytes, &v) == VP_ERR_RANGE) v = HUGE_VAL;
    }
    vp_impl_score_give_back(pool, &before);
    if (good) *value = negative ? -v : v;
    return good;
}

/* All decimal digits of a finite value without its sign: digits[0 .. *point) are the whole part, which may begin with zeros. */
enum { VP_IMPL_SCORE_DIGITS = 1120 }; /* 17 of the mantissa and 1074 halvings; 309 of a large one */
static size_t vp_impl_score_digits(double value, unsigned char *digits, size_t *point) {
    int exponent = 0, i;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &exponent), 53), rest;
    size_t count = 0, k;
    exponent -= 53;
    while (mantissa && !(mantissa & 1)) { mantissa >>= 1; exponent++; }
    for (rest = mantissa; rest; rest /= 10) count++;
    for (rest = mantissa, k = count; k > 0; rest /= 10) digits[--k] = (unsigned char)(rest % 10);
    for (i = 0; i < exponent && mantissa; i++) { /* doubled */
        int carry = 0;
        for (k = count; k > 0; k--) {
            carry += digits[k - 1] * 2;
            digits[k - 1] = (unsigned char)(carry % 10);
            carry /= 10;
        }
        if (!carry) continue;
        memmove(digits + 1, digits, count++);
        digits[0] = 1;
    }
    *point = count;
    for (i = 0; i > exponent; i--) { /* halved */
        int carry = 0;
        for (k = 0; k < count; k++) {
            carry = carry * 10 + digits[k];
            digits[k] = (unsigned char)(carry / 2);
            carry &= 1;
        }
        if (carry) digits[count++] = 5;
    }
    return count;
}

/* The digits of the whole number nearest to value * 10^places, ties to even, without leading zeros; 0 digits are zero. `text` has room for
 * VP_IMPL_SCORE_DIGITS. */
static size_t vp_impl_score_round_digits(double value, int64_t places, char *text) {
    unsigned char digits[VP_IMPL_SCORE_DIGITS];
    size_t point, count = vp_impl_score_digits(value, digits, &point), keep, i, n = 0;
    int up = 0;
    if (places < 0 && (uint64_t)-places > point) return 0;
    keep = places < 0 ? point - (size_t)-places : point + (size_t)places;
    if (keep < count) {
        for (i = keep + 1; i < count && !digits[i]; i++) {}
        up = digits[keep] > 5 || (digits[keep] == 5 && (i < count || (keep && digits[keep - 1] % 2)));
    }
    for (i = keep; up && i > 0; i--) { /* keep < count here */
        if (digits[i - 1] == 9) digits[i - 1] = 0;
        else { digits[i - 1]++; up = 0; }
    }
    if (up) text[n++] = '1';
    for (i = 0; i < keep; i++) if (n || (i < count && digits[i])) text[n++] = (char)('0' + (i < count ? digits[i] : 0));
    return n;
}

/* round(value, places) */
static double vp_impl_score_round(double value, int64_t places) {
    char text[VP_IMPL_SCORE_DIGITS + 400]; /* digits, then "e" and the places */
    double rounded = 0;
    size_t n;
    if (!(fabs(value) < HUGE_VAL) || places > 323) return value;
    if (places < -308) return value < 0 || (value == 0 && 1 / value < 0) ? -0.0 : 0.0;
    n = vp_impl_score_round_digits(value, places, text);
    if (n) {
        uint64_t power = (uint64_t)(places < 0 ? -places : places);
        text[n++] = 'e';
        text[n++] = places > 0 ? '-' : '+';
        text[n++] = (char)('0' + power / 100);
        text[n++] = (char)('0' + power / 10 % 10);
        text[n++] = (char)('0' + power % 10);
        if (vp_number_parse(text, n, &rounded) != VP_OK) return value; /* beyond the largest: Python stops there */
    }
    return value < 0 || (value == 0 && 1 / value < 0) ? -rounded : rounded;
}

/* ------------------------------------------------------------------------------------------------------ edit distance */
static uint32_t *vp_impl_score_codes(vp_impl_score_pool *pool, vp_impl_score_span s, size_t *count) {
    const char *p = s.p, *end = s.p + s.bytes;
    uint32_t *codes = (uint32_t *)vp_impl_score_take(pool, s.bytes + 1, sizeof *codes);
    size_t bytes;
    *count = 0;
    for (; codes && p < end; p += bytes) codes[(*count)++] = vp_impl_score_get(p, end, &bytes);
    return codes;
}

static size_t vp_impl_score_distance(vp_impl_score_pool *pool, vp_impl_score_span a, vp_impl_score_span b) {
    const vp_impl_score_pool before = *pool;
    size_t a_count, b_count, i, j, distance = 0, *row;
    uint32_t *x, *y;
    if (a.bytes < b.bytes) { vp_impl_score_span s = a; a = b; b = s; }
    x = vp_impl_score_codes(pool, a, &a_count);
    y = vp_impl_score_codes(pool, b, &b_count);
    while (a_count && b_count && x[0] == y[0]) { x++; y++; a_count--; b_count--; }
    while (a_count && b_count && x[a_count - 1] == y[b_count - 1]) { a_count--; b_count--; }
    row = (size_t *)vp_impl_score_take(pool, b_count + 1, sizeof *row);
    if (row) {
        for (j = 0; j <= b_count; j++) row[j] = j;
        for (i = 0; i < a_count; i++) {
            size_t corner = i, best;
            row[0] = i + 1;
            for (j = 0; j < b_count; j++) {
                best = corner + (x[i] != y[j]);
                corner = row[j + 1];
                if (corner + 1 < best) best = corner + 1;
                if (row[j] + 1 < best) best = row[j] + 1;
                row[j + 1] = best;
            }
        }
        distance = row[b_count];
    }
    vp_impl_score_give_back(pool, &before);
    return distance;
}

VP_API size_t vp_score_scratch_bytes(size_t text_bytes, size_t text_count) {
    if (text_bytes > (SIZE_MAX - 4096) / 64 || text_count > (SIZE_MAX - 4096) / 256) return SIZE_MAX;
    return 32 * text_bytes > SIZE_MAX - 4096 - 128 * text_count ? SIZE_MAX : 32 * text_bytes + 128 * text_count + 4096;
}

/* ------------------------------------------------------------------------------------------- cleaning, the other rule */
/* " ".join(text.split()) */
static void vp_impl_score_collapse_rule(vp_impl_score_span s, vp_impl_score_text_out *o) {
    const char *p, *end;
    size_t bytes;
    int gap = 0;
    s = vp_impl_score_trimmed(s);
    for (p = s.p, end = s.p + s.bytes; p < end; p += bytes) {
        if (vp_impl_score_unicode_space(vp_impl_score_get(p, end, &bytes))) { gap = 1; continue; }
        if (gap) vp_impl_score_text_add(o, " ", 1);
        gap = 0;
        vp_impl_score_text_add(o, p, bytes);
    }
}

/* The most frequent line of a stripped text, of equally frequent ones the first. */
static vp_impl_score_span vp_impl_score_frequent_line(vp_impl_score_pool *pool, vp_impl_score_span s) {
    const char *p, *end = s.p + s.bytes, *line;
    size_t count = 1, i, first, best_count = 0;
    vp_impl_score_span *lines, best = s;
    for (p = s.p; p < end; p++) count += *p == '\n';
    lines = (vp_impl_score_span *)vp_impl_score_take(pool, count, sizeof *lines);
    for (i = 0, line = s.p; lines && i < count; i++) {
        const char *stop = (const char *)memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        lines[i] = vp_impl_score_map(pool, vp_impl_score_span_from(line, stop), vp_impl_score_collapse_rule);
        line = stop + 1;
    }
    if (!lines || pool->full) return best;
    vp_impl_score_sort(lines, count);
    for (first = 0; first < count; first = i) {
        for (i = first + 1; i < count && vp_impl_score_same(lines[first], lines[i]); i++) {}
        /* of a run the first entry lies first in memory, as the lines do */
        if (i - first < best_count || (i - first == best_count && (uintptr_t)lines[first].p > (uintptr_t)best.p)) continue;
        best_count = i - first;
        best = lines[first];
    }
    return best;
}

static vp_impl_score_span vp_impl_score_clean_frequent(vp_impl_score_pool *pool, const char *text) {
    static const char mark[] = "Answer:";
    vp_impl_score_span s = vp_impl_score_trimmed(vp_impl_score_span_of(text)), m = vp_impl_score_span_of(mark);
    const char *start = vp_impl_score_search(s, m, 0), *end = s.p + s.bytes, *next;
    if (start) { /* the same in both rules */
        start += m.bytes;
        next = vp_impl_score_search(vp_impl_score_span_from(start, end), m, 0);
        return vp_impl_score_trimmed(vp_impl_score_span_from(start, next ? next : end));
    }
    return s.bytes && memchr(s.p, '\n', s.bytes) ? vp_impl_score_frequent_line(pool, s) : vp_impl_score_map(pool, s, vp_impl_score_collapse_rule);
}

VP_API vp_result vp_score_clean_frequent(const char *prediction, char *scratch, size_t scratch_bytes, char *out, size_t capacity, size_t *needed) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_span cleaned;
    if (!prediction || (!out && capacity)) return VP_ERR_RANGE;
    cleaned = vp_impl_score_clean_frequent(&pool, prediction);
    if (pool.full) return VP_ERR_CAPACITY;
    if (needed) *needed = cleaned.bytes;
    if (cleaned.bytes >= capacity) return VP_ERR_CAPACITY;
    if (cleaned.bytes) memcpy(out, cleaned.p, cleaned.bytes);
    out[cleaned.bytes] = 0;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------- rules against references */
/* What one reference adds. The prediction and every reference go through `prepare` first; `add` sees both. */
typedef vp_impl_score_span (*vp_impl_score_prepare)(vp_impl_score_pool *, const char *);
static vp_impl_score_span vp_impl_score_lower_trimmed(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_lower(pool, vp_impl_score_trimmed(vp_impl_score_span_of(text)));
}
static vp_impl_score_span vp_impl_score_lower_all(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_lower(pool, vp_impl_score_span_of(text));
}
static void vp_impl_score_normalise_rule(vp_impl_score_span s, vp_impl_score_text_out *o) { vp_impl_score_normalise(s.p, o); }
static void vp_impl_score_late_rule(vp_impl_score_span s, vp_impl_score_text_out *o) { vp_impl_score_normalise_late(s.p, o); }
static vp_impl_score_span vp_impl_score_normalised(vp_impl_score_pool *pool, const char *text) {
    return vp_impl_score_map(pool, vp_impl_score_span_of(text), vp_impl_score_normalise_rule);
}

static int vp_impl_score_arguments(const char *prediction, const char *const *references, size_t count, const char *scratch, const void *out) {
    size_t i;
    if (!prediction || (!references && count) || !scratch || !out) return 0;
    for (i = 0; i < count; i++) if (!references[i]) return 0;
    return 1;
}

/* how many references equal the prediction */
static vp_result vp_impl_score_matches(const char *prediction, const char *const *references, size_t count, vp_impl_score_prepare prepare,
                                       char *scratch, size_t scratch_bytes, size_t *matches) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span wanted;
    size_t i, found = 0;
    wanted = prepare(&pool, prediction);
    for (i = 0; i < count; i++) {
        before = pool;
        found += (size_t)vp_impl_score_same(prepare(&pool, references[i]), wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *matches = found;
    return VP_OK;
}

VP_API vp_result vp_score_em(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                             double *score) {
    size_t matches = 0;
    vp_result result;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    result = vp_impl_score_matches(prediction, references, reference_count, vp_impl_score_lower_trimmed, scratch, scratch_bytes, &matches);
    if (result == VP_OK) *score = matches > 0;
    return result;
}

VP_API vp_result vp_score_em_unstripped(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                        size_t scratch_bytes, double *score) {
    size_t matches = 0;
    vp_result result;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    result = vp_impl_score_matches(prediction, references, reference_count, vp_impl_score_lower_all, scratch, scratch_bytes, &matches);
    if (result == VP_OK) *score = matches > 0;
    return result;
}

VP_API vp_result vp_score_a_okvqa(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                  size_t scratch_bytes, double *score) {
    size_t matches = 0;
    vp_result result;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    result = vp_impl_score_matches(prediction, references, reference_count, vp_impl_score_lower_trimmed, scratch, scratch_bytes, &matches);
    if (result == VP_OK) *score = matches >= 3 ? 1.0 : (double)matches / 3.0;
    return result;
}

/* newlines and tabs as spaces, stripped */
static void vp_impl_score_official_rule(vp_impl_score_span s, vp_impl_score_text_out *o) {
    size_t i;
    s = vp_impl_score_trimmed(s);
    for (i = 0; i < s.bytes; i++) vp_impl_score_text_add(o, s.p[i] == '\n' || s.p[i] == '\t' ? " " : s.p + i, 1);
}

static void vp_impl_score_strip_text(const char *text, vp_impl_score_text_out *o) { vp_impl_score_official_rule(vp_impl_score_span_of(text), o); }
VP_API vp_result vp_score_vqa_strip(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_impl_score_text_produce(vp_impl_score_strip_text, text, out, capacity, needed);
}

VP_API vp_result vp_score_vqa_official(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                       size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span first, wanted, one;
    size_t i, matches = 0, others;
    double sum = 0;
    int identical = 1;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    if (!reference_count) return VP_ERR_MISMATCH;
    first = vp_impl_score_map(&pool, vp_impl_score_span_of(references[0]), vp_impl_score_official_rule);
    for (i = 1; i < reference_count && identical; i++) {
        before = pool;
        identical = vp_impl_score_same(first, vp_impl_score_map(&pool, vp_impl_score_span_of(references[i]), vp_impl_score_official_rule));
        vp_impl_score_give_back(&pool, &before);
    }
    wanted = vp_impl_score_map(&pool, vp_impl_score_span_of(prediction), identical ? vp_impl_score_official_rule : vp_impl_score_late_rule);
    for (i = 0; i < reference_count; i++) {
        before = pool;
        one = identical ? first : vp_impl_score_map(&pool, vp_impl_score_span_of(references[i]), vp_impl_score_late_rule);
        matches += (size_t)vp_impl_score_same(one, wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    others = matches ? matches - 1 : 0; /* what a matching reference sees: it is left out itself */
    sum = (double)matches * (others >= 3 ? 1.0 : (double)others / 3.0);
    sum += (double)(reference_count - matches) * (matches >= 3 ? 1.0 : (double)matches / 3.0);
    *score = sum / (double)reference_count;
    return VP_OK;
}

VP_API vp_result vp_score_anls(const char *prediction, const char *const *references, size_t reference_count, char *scratch, size_t scratch_bytes,
                               double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span wanted;
    size_t i, wanted_length, length;
    double best = 0, distance;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    wanted_length = vp_impl_score_length(vp_impl_score_span_of(prediction));
    wanted = vp_impl_score_lower_all(&pool, prediction);
    for (i = 0; i < reference_count; i++) {
        length = vp_impl_score_length(vp_impl_score_span_of(references[i]));
        if (length < wanted_length) length = wanted_length;
        if (!length) return VP_ERR_MISMATCH;
        before = pool;
        distance = (double)vp_impl_score_distance(&pool, vp_impl_score_lower_all(&pool, references[i]), wanted) / (double)length;
        if (distance < 0.5 && 1 - distance > best) best = 1 - distance;
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = best;
    return VP_OK;
}

/* a number, or a percentage */
static int vp_impl_score_percent(vp_impl_score_pool *pool, vp_impl_score_span s, double *value) {
    const int percent = s.bytes && s.p[s.bytes - 1] == '%';
    while (percent && s.bytes && s.p[s.bytes - 1] == '%') s.bytes--;
    if (!vp_impl_score_float(pool, s, value)) return 0;
    if (percent) *value /= 100.0;
    return 1;
}

VP_API vp_result vp_score_relaxed(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                  size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span wanted;
    size_t i;
    double number = 0, target = 0;
    int is_number, correct = 0;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    if (!reference_count) return VP_ERR_MISMATCH;
    is_number = vp_impl_score_percent(&pool, vp_impl_score_span_of(prediction), &number);
    wanted = vp_impl_score_lower_all(&pool, prediction);
    for (i = 0; i < reference_count && !correct; i++) {
        before = pool;
        if (is_number && vp_impl_score_percent(&pool, vp_impl_score_span_of(references[i]), &target) && target != 0)
            correct = fabs(number - target) / fabs(target) <= 0.05; /* never with NaN, or when both are infinite */
        else correct = vp_impl_score_same(vp_impl_score_lower_all(&pool, references[i]), wanted);
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = correct;
    return VP_OK;
}

/* the words of a normalised text as a set */
static vp_impl_score_span *vp_impl_score_words_of(vp_impl_score_pool *pool, const char *text, size_t *count) {
    vp_impl_score_span s = vp_impl_score_normalised(pool, text), *words;
    const char *p = s.p, *end = s.p + s.bytes, *word;
    size_t n = 0, most = 1;
    for (; p < end; p++) most += *p == ' ';
    words = (vp_impl_score_span *)vp_impl_score_take(pool, most, sizeof *words);
    for (p = word = s.p; words && p <= end; p++) { /* one space stands between two words */
        if (p < end && *p != ' ') continue;
        if (p > word) words[n++] = vp_impl_score_span_from(word, p);
        word = p + 1;
    }
    *count = words ? vp_impl_score_unique(words, n) : 0;
    return words;
}

VP_API vp_result vp_score_caption_jaccard(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                          size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes), before;
    vp_impl_score_span *words, *others;
    size_t count, other_count, i, a, b, both;
    double best = 0, overlap;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    words = vp_impl_score_words_of(&pool, prediction, &count);
    for (i = 0; i < reference_count && count; i++) {
        before = pool;
        others = vp_impl_score_words_of(&pool, references[i], &other_count);
        for (a = b = both = 0; a < count && b < other_count;) { /* both sorted */
            const size_t least = words[a].bytes < others[b].bytes ? words[a].bytes : others[b].bytes;
            int order = memcmp(words[a].p, others[b].p, least);
            if (!order) order = words[a].bytes < others[b].bytes ? -1 : words[a].bytes > others[b].bytes;
            both += !order;
            a += order <= 0;
            b += order >= 0;
        }
        overlap = (double)both / (double)(count + other_count - both);
        if (overlap > best) best = overlap;
        vp_impl_score_give_back(&pool, &before);
    }
    if (pool.full) return VP_ERR_CAPACITY;
    *score = best;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------- multiple choice */
static vp_result vp_impl_score_select(vp_impl_score_pool *pool, const char *prediction, const char *const *options, size_t count, int32_t *index) {
    const vp_impl_score_pool before = *pool;
    vp_impl_score_span wanted = vp_impl_score_lower_trimmed(pool, prediction), *texts, *sorted;
    size_t i, found = 0, holder = 0, holders = 0, distance, nearest = SIZE_MAX;
    int exact = 0, repeated = 0;
    texts = (vp_impl_score_span *)vp_impl_score_take(pool, count + 1, sizeof *texts);
    sorted = (vp_impl_score_span *)vp_impl_score_take(pool, count + 1, sizeof *sorted);
    for (i = 0; i < count && texts && sorted; i++) sorted[i] = texts[i] = vp_impl_score_lower_trimmed(pool, options[i]);
    if (!pool->full) {
        repeated = vp_impl_score_unique(sorted, count) != count;
        for (i = count; i > 0; i--) { /* the first of equals is what stays */
            if (vp_impl_score_same(texts[i - 1], wanted)) { exact = 1; found = i - 1; }
            if (!vp_impl_score_search(texts[i - 1], wanted, 0)) continue;
            holders++;
            holder = i - 1;
        }
        if (!exact && holders == 1) found = holder;
        for (i = 0; i < count && !exact && holders != 1; i++) {
            distance = vp_impl_score_distance(pool, texts[i], wanted);
            if (distance < nearest) { nearest = distance; found = i; }
        }
    }
    vp_impl_score_give_back(pool, &before);
    if (pool->full) return VP_ERR_CAPACITY;
    if (!count || count > INT32_MAX || repeated) return VP_ERR_MISMATCH;
    *index = (int32_t)found;
    return VP_OK;
}

VP_API vp_result vp_score_option_distance(const char *prediction, const char *option, char *scratch, size_t scratch_bytes, size_t *distance) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_span wanted;
    size_t found;
    if (!vp_impl_score_arguments(prediction, &option, 1, scratch, distance)) return VP_ERR_RANGE;
    wanted = vp_impl_score_lower_trimmed(&pool, prediction);
    found = vp_impl_score_distance(&pool, vp_impl_score_lower_trimmed(&pool, option), wanted);
    if (pool.full) return VP_ERR_CAPACITY;
    *distance = found;
    return VP_OK;
}

VP_API vp_result vp_score_select_option(const char *prediction, const char *const *options, size_t option_count, char *scratch,
                                        size_t scratch_bytes, int32_t *index) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    if (!vp_impl_score_arguments(prediction, options, option_count, scratch, index)) return VP_ERR_RANGE;
    return vp_impl_score_select(&pool, prediction, options, option_count, index);
}

/* the index of the first ASCII capital without a word character on either side; -1: none */
static int32_t vp_impl_score_letter(vp_impl_score_span s) {
    const char *p = s.p, *end = s.p + s.bytes;
    size_t bytes, next;
    int before = 0;
    for (; p < end; p += bytes) {
        const uint32_t c = vp_impl_score_get(p, end, &bytes);
        if (c >= 'A' && c <= 'Z' && !before && (p + 1 == end || !vp_impl_score_unicode_word(vp_impl_score_get(p + 1, end, &next))))
            return (int32_t)(c - 'A');
        before = vp_impl_score_unicode_word(c);
    }
    return -1;
}

VP_API vp_result vp_score_mc(const char *prediction, const char *const *options, size_t option_count, const char *const *names, size_t name_count,
                             char *scratch, size_t scratch_bytes, int32_t *index) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_span upper;
    int32_t letter;
    size_t i;
    if (!vp_impl_score_arguments(prediction, options, option_count, scratch, index)) return VP_ERR_RANGE;
    if (!vp_impl_score_arguments(prediction, names, name_count, scratch, index)) return VP_ERR_RANGE;
    upper = vp_impl_score_map(&pool, vp_impl_score_trimmed(vp_impl_score_span_of(prediction)), vp_impl_score_upper_rule);
    if (pool.full) return VP_ERR_CAPACITY;
    letter = vp_impl_score_letter(upper);
    if (letter >= 0 && (size_t)letter < option_count) {
        *index = letter;
        return VP_OK;
    }
    if (!name_count) return vp_impl_score_select(&pool, prediction, options, option_count, index);
    for (i = 0; i < name_count && i < INT32_MAX; i++) {
        if (!vp_impl_score_same(upper, vp_impl_score_span_of(names[i]))) continue;
        *index = (int32_t)i;
        return VP_OK;
    }
    return vp_impl_score_select(&pool, prediction, names, name_count, index);
}

/* --------------------------------------------------------------------------------------------- MMMU, multiple choice */
/* Where a choice last stands in the response; NULL: nowhere. kind 0 "(A)", 1 " A ", 2 the option's text (both in lower case). */
static const char *vp_impl_score_choice_at(vp_impl_score_pool *pool, vp_impl_score_span response, int kind, int letter, const char *option) {
    const vp_impl_score_pool before = *pool;
    const char *at;
    char mark[3];
    vp_impl_score_span what;
    mark[0] = kind ? ' ' : '(';
    mark[1] = (char)('A' + letter);
    mark[2] = kind ? ' ' : ')';
    what = vp_impl_score_span_from(mark, mark + 3);
    if (kind == 2) what = vp_impl_score_lower_all(pool, option);
    at = vp_impl_score_search(response, what, 1);
    vp_impl_score_give_back(pool, &before);
    return at;
}

VP_API vp_result vp_score_mmmu_choice(const char *prediction, const char *const *options, size_t option_count, char *scratch,
                                      size_t scratch_bytes, int32_t *index) {
    static const char stripped[] = ",.!?;:'";
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_span response, padded, lower;
    const char *p, *end, *last = NULL, *at;
    char *copy;
    size_t i, words = 0, bytes;
    int kind, letter, space, before = 1;
    int32_t found = -1;
    if (!vp_impl_score_arguments(prediction, options, option_count, scratch, index)) return VP_ERR_RANGE;
    response = vp_impl_score_span_of(prediction);
    for (i = 0; stripped[i]; i++) response = vp_impl_score_without(response, stripped[i]); /* one pass in this order */
    copy = (char *)vp_impl_score_take(&pool, response.bytes + 2, 1);
    if (!copy) return VP_ERR_CAPACITY;
    copy[0] = copy[response.bytes + 1] = ' ';
    if (response.bytes) memcpy(copy + 1, response.p, response.bytes);
    padded = vp_impl_score_span_from(copy, copy + response.bytes + 2);
    lower = vp_impl_score_lower(&pool, padded);
    for (p = padded.p, end = padded.p + padded.bytes; p < end; p += bytes, before = space) {
        space = vp_impl_score_unicode_space(vp_impl_score_get(p, end, &bytes));
        words += before && !space;
    }
    for (kind = 0; kind < (words > 5 ? 3 : 2) && found < 0; kind++) {
        last = NULL;
        for (i = 0, letter = 0; i < option_count && letter < 26; i++) {
            if (!options[i][0]) continue; /* empty options get no letter */
            at = vp_impl_score_choice_at(&pool, kind == 2 ? lower : padded, kind, letter, options[i]);
            if (at && (!last || at > last)) { last = at; found = letter; }
            letter++;
        }
    }
    if (pool.full) return VP_ERR_CAPACITY;
    if (found < 0) return VP_ERR_NOT_FOUND;
    *index = found;
    return VP_OK;
}

/* ----------------------------------------------------------------------------------------- MMMU, open: numbers in a text
 * The reference's three regular expressions. A number's digits are taken whole or not at all, so that no search ever goes back. */
static int vp_impl_score_digit_at(const char *p, const char *end, size_t *bytes) {
    return p < end && vp_impl_score_unicode_digit(vp_impl_score_get(p, end, bytes));
}
static const char *vp_impl_score_skip_digits(const char *p, const char *end, size_t *count) {
    size_t bytes;
    for (*count = 0; vp_impl_score_digit_at(p, end, &bytes); ++*count) p += bytes;
    return p;
}
static int vp_impl_score_word_at(const char *p, const char *end) {
    size_t bytes;
    return p < end && vp_impl_score_unicode_word(vp_impl_score_get(p, end, &bytes));
}
/* behind an exponent, "e" with digits; NULL: there is none at p */
static const char *vp_impl_score_exponent(const char *p, const char *end) {
    size_t count;
    if (p >= end || (*p != 'e' && *p != 'E')) return NULL;
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    p = vp_impl_score_skip_digits(p, end, &count);
    return count ? p : NULL;
}

/* -?\b\d{1,3}(?:,\d{3})+\b at the first digit; `after_word`: a word character stands before it */
static const char *vp_impl_score_number_commas(const char *p, const char *end, int after_word) {
    size_t count;
    const char *q, *group = NULL, *group_before = NULL;
    p = vp_impl_score_skip_digits(p, end, &count);
    if (after_word || count > 3) return NULL;
    while (p < end && *p == ',') {
        size_t bytes = 0;
        q = p + 1;
        for (count = 0; count < 3 && vp_impl_score_digit_at(q, end, &bytes); count++) q += bytes;
        if (count < 3) break;
        group_before = group;
        group = p = q;
    }
    /* behind the last group a word may go on; behind the one before stands a comma */
    return group && vp_impl_score_word_at(group, end) ? group_before : group;
}
/* -?\d+(?:\.\d+)?[eE][+-]?\d+ */
static const char *vp_impl_score_number_scientific(const char *p, const char *end) {
    size_t count;
    const char *q;
    p = vp_impl_score_skip_digits(p, end, &count);
    if (p < end && *p == '.') {
        q = vp_impl_score_skip_digits(p + 1, end, &count);
        if (count) p = q;
    }
    return vp_impl_score_exponent(p, end);
}
/* -?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d]) at the first digit or the point */
static const char *vp_impl_score_number_simple(const char *p, const char *end) {
    size_t whole, count;
    const char *q;
    p = vp_impl_score_skip_digits(p, end, &whole);
    if (p < end && *p == '.') {
        q = vp_impl_score_skip_digits(p + 1, end, &count);
        if (count && !vp_impl_score_exponent(q, end) && (q == end || *q != ',')) return q;
    }
    return whole && !vp_impl_score_word_at(p, end) && (p == end || *p != ',') ? p : NULL;
}

/* Calls back with every number of one kind, in the text's order; returns how many. */
typedef void (*vp_impl_score_number_found)(void *user, vp_impl_score_span number);
static size_t vp_impl_score_find_numbers(vp_impl_score_span s, int kind, vp_impl_score_number_found found, void *user) {
    const char *p = s.p, *end = s.p + s.bytes, *start, *stop;
    size_t bytes, count = 0, skipped;
    int after_word = 0;
    while (p < end) {
        const uint32_t c = vp_impl_score_get(p, end, &bytes);
        start = p;
        if (c == '-' || !(vp_impl_score_unicode_digit(c) || (c == '.' && kind == 2))) {
            after_word = vp_impl_score_unicode_word(c);
            p += bytes;
            continue;
        }
        stop = kind == 0 ? vp_impl_score_number_commas(p, end, after_word) : kind == 1 ? vp_impl_score_number_scientific(p, end)
            : vp_impl_score_number_simple(p, end);
        if (stop) {
            /* a minus right before belongs to the number, unless it was part of the one before */
            if (start > s.p && start[-1] == '-') start--;
            found(user, vp_impl_score_span_from(start, stop));
            count++;
            p = stop;
            after_word = 1;
            s.p = stop;
        } else if (c == '.') {
            p++;
            after_word = 0;
        } else { /* what fails at the first of some digits fails at the others */
            p = vp_impl_score_skip_digits(p, end, &skipped);
            after_word = 1;
        }
    }
    return count;
}

/* texts or numbers that are first counted (no arrays yet), then kept */
typedef struct vp_impl_score_open {
    vp_impl_score_pool *pool;
    vp_impl_score_span *strings; size_t string_count, string_capacity;
    double *numbers; size_t number_count, number_capacity;
} vp_impl_score_open;

static void vp_impl_score_open_string(vp_impl_score_open *o, vp_impl_score_span s) {
    if (o->strings && o->string_count < o->string_capacity) o->strings[o->string_count++] = s;
}

/* normalize_str: a number rounded to 2 decimals, or the text in lower case; a single character with a space on either side */
static void vp_impl_score_open_add(void *user, vp_impl_score_span s) {
    vp_impl_score_open *o = (vp_impl_score_open *)user;
    vp_impl_score_pool before = *o->pool;
    char *text, *padded;
    size_t i, bytes = 0;
    double value = 0;
    int number;
    s = vp_impl_score_trimmed(s);
    text = (char *)vp_impl_score_take(o->pool, s.bytes + 1, 1);
    for (i = 0; text && i < s.bytes; i++) if (s.p[i] != ',') text[bytes++] = s.p[i];
    number = text && vp_impl_score_float(o->pool, vp_impl_score_span_from(text, text + bytes), &value);
    vp_impl_score_give_back(o->pool, &before);
    if (number) {
        if (o->number_count < o->number_capacity) o->numbers[o->number_count++] = vp_impl_score_round(value, 2);
        return;
    }
    s = vp_impl_score_lower(o->pool, s);
    if (vp_impl_score_length(s) != 1) {
        vp_impl_score_open_string(o, s);
        return;
    }
    padded = (char *)vp_impl_score_take(o->pool, s.bytes + 3, 1); /* " x", " x " holds both */
    if (!padded) return;
    padded[0] = padded[s.bytes + 1] = ' ';
    memcpy(padded + 1, s.p, s.bytes);
    vp_impl_score_open_string(o, vp_impl_score_span_from(padded, padded + 1 + s.bytes));
    vp_impl_score_open_string(o, vp_impl_score_span_from(padded + 1, padded + 2 + s.bytes));
}

static void vp_impl_score_open_reserve(vp_impl_score_open *o, size_t strings, size_t numbers) {
    o->string_count = o->number_count = 0;
    o->strings = (vp_impl_score_span *)vp_impl_score_take(o->pool, strings + 1, sizeof *o->strings);
    o->numbers = (double *)vp_impl_score_take(o->pool, numbers + 1, sizeof *o->numbers);
    o->string_capacity = strings;
    o->number_capacity = o->numbers ? numbers : 0;
}

static void vp_impl_score_count_number(void *user, vp_impl_score_span s) { (void)s; ++*(size_t *)user; }

/* The shortest tail behind the last occurrence of a key word; empty: none worth keeping. */
static vp_impl_score_span vp_impl_score_key_tail(vp_impl_score_span line, int is_last) {
    static const char *const keys[] = {"could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ", "="};
    vp_impl_score_span tail = vp_impl_score_span_from(line.p, line.p), one;
    size_t i;
    for (i = 0; i < 9 - (size_t)!is_last; i++) {
        const vp_impl_score_span key = vp_impl_score_span_of(keys[i]);
        const char *at = vp_impl_score_search(line, key, 1);
        if (!at) continue;
        one = vp_impl_score_trimmed(vp_impl_score_span_from(at + key.bytes, line.p + line.bytes));
        if (!tail.bytes || vp_impl_score_length(one) < vp_impl_score_length(tail)) tail = one;
    }
    if (tail.bytes == 1 && strchr(":,.!?;'", tail.p[0])) tail.bytes = 0;
    return tail;
}

static void vp_impl_score_open_parse(const char *prediction, vp_impl_score_open *o) {
    vp_impl_score_span text = vp_impl_score_lower(o->pool, vp_impl_score_without(vp_impl_score_trimmed(vp_impl_score_span_of(prediction)), '.'));
    vp_impl_score_span *keys, tail;
    const char *line, *stop, *end = text.p + text.bytes;
    size_t count = 0, most = 1, i, numbers = 0;
    int kind;
    for (line = text.p; line < end; line++) most += *line == '\n';
    keys = (vp_impl_score_span *)vp_impl_score_take(o->pool, most, sizeof *keys);
    if (!keys) return;
    for (i = 0, line = text.p; i < most; i++, line = stop + 1) {
        stop = i + 1 < most ? (const char *)memchr(line, '\n', (size_t)(end - line)) : end;
        tail = vp_impl_score_key_tail(vp_impl_score_span_from(line, stop), i + 1 == most);
        if (tail.bytes) keys[count++] = tail;
    }
    if (!count) keys[count++] = text;
    for (i = 0; i < count; i++)
        for (kind = 0; kind < 3; kind++) vp_impl_score_find_numbers(keys[i], kind, vp_impl_score_count_number, &numbers);
    vp_impl_score_open_reserve(o, 2 * count, count + numbers);
    for (i = 0; i < count; i++) vp_impl_score_open_add(o, keys[i]);
    for (i = 0; i < count; i++)
        for (kind = 0; kind < 3; kind++) vp_impl_score_find_numbers(keys[i], kind, vp_impl_score_open_add, o);
}

VP_API vp_result vp_score_mmmu_open(const char *prediction, const char *const *references, size_t reference_count, char *scratch,
                                    size_t scratch_bytes, double *score) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_open found, wanted;
    size_t i, k;
    int correct = 0;
    if (!vp_impl_score_arguments(prediction, references, reference_count, scratch, score)) return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    found.pool = &pool;
    wanted = found;
    vp_impl_score_open_parse(prediction, &found);
    if (reference_count > SIZE_MAX / 2 - 1) return VP_ERR_CAPACITY;
    vp_impl_score_open_reserve(&wanted, 2 * reference_count, reference_count);
    for (i = 0; i < reference_count; i++) vp_impl_score_open_add(&wanted, vp_impl_score_span_of(references[i]));
    if (pool.full) return VP_ERR_CAPACITY;
    for (i = 0; i < found.string_count && !correct; i++)
        for (k = 0; k < wanted.string_count && !correct; k++) correct = vp_impl_score_search(found.strings[i], wanted.strings[k], 0) != NULL;
    for (i = 0; i < found.number_count && !correct; i++)
        for (k = 0; k < wanted.number_count && !correct; k++) correct = found.numbers[i] == wanted.numbers[k]; /* NaN equals nothing */
    *score = correct;
    return VP_OK;
}

/* spans -> C strings in the pool */
static void vp_impl_score_texts_of(vp_impl_score_pool *pool, const vp_impl_score_span *s, size_t count, vp_score_texts *texts) {
    const char **list = (const char **)vp_impl_score_take(pool, count + 1, sizeof *list);
    size_t i;
    for (i = 0; list && i < count; i++) {
        char *copy = (char *)vp_impl_score_take(pool, s[i].bytes + 1, 1);
        if (!copy) break;
        if (s[i].bytes) memcpy(copy, s[i].p, s[i].bytes);
        copy[s[i].bytes] = 0;
        list[i] = copy;
    }
    texts->texts = list;
    texts->count = count;
}

typedef struct vp_impl_score_span_list { vp_impl_score_span *spans; size_t count; } vp_impl_score_span_list;
static void vp_impl_score_keep_span(void *user, vp_impl_score_span s) {
    vp_impl_score_span_list *list = (vp_impl_score_span_list *)user;
    list->spans[list->count++] = s;
}

VP_API vp_result vp_score_mmmu_numbers(const char *text, char *scratch, size_t scratch_bytes, vp_score_texts *numbers) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_span_list list;
    vp_score_texts made;
    size_t count = 0;
    int kind;
    if (!text || !scratch || !numbers) return VP_ERR_RANGE;
    for (kind = 0; kind < 3; kind++) vp_impl_score_find_numbers(vp_impl_score_span_of(text), kind, vp_impl_score_count_number, &count);
    list.spans = (vp_impl_score_span *)vp_impl_score_take(&pool, count + 1, sizeof *list.spans);
    list.count = 0;
    if (!list.spans) return VP_ERR_CAPACITY;
    for (kind = 0; kind < 3; kind++) vp_impl_score_find_numbers(vp_impl_score_span_of(text), kind, vp_impl_score_keep_span, &list);
    vp_impl_score_texts_of(&pool, list.spans, list.count, &made);
    if (pool.full) return VP_ERR_CAPACITY;
    *numbers = made;
    return VP_OK;
}

static int vp_impl_score_number_before(double a, double b) { return a < b || (a == a && b != b); } /* NaN last */

VP_API vp_result vp_score_mmmu_parse(const char *prediction, char *scratch, size_t scratch_bytes, vp_score_mmmu_answer *answer) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_impl_score_open found;
    vp_score_texts strings;
    size_t i, k, gap, kept = 0;
    if (!prediction || !scratch || !answer) return VP_ERR_RANGE;
    memset(&found, 0, sizeof found);
    found.pool = &pool;
    vp_impl_score_open_parse(prediction, &found);
    if (pool.full) return VP_ERR_CAPACITY;
    vp_impl_score_texts_of(&pool, found.strings, vp_impl_score_unique(found.strings, found.string_count), &strings);
    if (pool.full) return VP_ERR_CAPACITY;
    for (gap = found.number_count / 2; gap > 0; gap /= 2) /* Shell's sort */
        for (i = gap; i < found.number_count; i++) {
            const double held = found.numbers[i];
            for (k = i; k >= gap && vp_impl_score_number_before(held, found.numbers[k - gap]); k -= gap) found.numbers[k] = found.numbers[k - gap];
            found.numbers[k] = held;
        }
    for (i = 0; i < found.number_count; i++) if (!kept || found.numbers[kept - 1] != found.numbers[i]) found.numbers[kept++] = found.numbers[i];
    answer->strings = strings;
    answer->numbers = found.numbers;
    answer->number_count = kept;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------------- MathVista */
/* `text` in the pool, with NUL */
static const char *vp_impl_score_keep(vp_impl_score_pool *pool, vp_impl_score_span s) {
    char *copy = (char *)vp_impl_score_take(pool, s.bytes + 1, 1);
    if (!copy) return "";
    if (s.bytes) memcpy(copy, s.p, s.bytes);
    copy[s.bytes] = 0;
    return copy;
}

/* str() of an integer, given as the digits of the rounded value */
static const char *vp_impl_score_integer_text(vp_impl_score_pool *pool, double value, int negative) {
    char text[VP_IMPL_SCORE_DIGITS + 1];
    size_t n = vp_impl_score_round_digits(value, 0, text + 1);
    if (!n) return "0";
    text[0] = '-';
    return vp_impl_score_keep(pool, vp_impl_score_span_from(text + !negative, text + 1 + n));
}

/* normalize_extracted_answer for a number; NULL: Python's None */
static const char *vp_impl_score_vista_number(vp_impl_score_pool *pool, const vp_score_sample *sample) {
    char text[32];
    double value = 0;
    size_t n;
    if (!vp_impl_score_float(pool, vp_impl_score_span_of(sample->prediction), &value)) return NULL;
    if (!strcmp(sample->answer_type, "integer") || sample->precision == INT64_MIN) {
        if (!(fabs(value) < HUGE_VAL)) return NULL;
        if (!strcmp(sample->answer_type, "integer")) value = value < 0 ? ceil(value) : floor(value);
        return vp_impl_score_integer_text(pool, value, value < 0);
    }
    if (value != value) return "nan";
    if (!(fabs(value) < HUGE_VAL)) return value < 0 ? "-inf" : "inf";
    n = vp_number_format(vp_impl_score_round(value, sample->precision), text);
    return vp_impl_score_keep(pool, vp_impl_score_span_from(text, text + n));
}

/* the choice that the local path ends at: the text rule on letters, then a letter before ":", a bare letter, or the nearest choice */
static vp_result vp_impl_score_vista_choice(vp_impl_score_pool *pool, const vp_score_sample *sample, int32_t *index) {
    const char **letters = (const char **)vp_impl_score_take(pool, sample->option_count + 1, sizeof *letters), *p, *end;
    char letter = 0;
    vp_impl_score_span picked;
    vp_result result;
    size_t i, nearest = SIZE_MAX, distance;
    int32_t found = 0;
    if (sample->option_count > 32) return VP_ERR_MISMATCH; /* the characters behind Z repeat the letters in lower case there */
    for (i = 0; letters && i < sample->option_count; i++) {
        const char one = (char)('A' + i);
        letters[i] = vp_impl_score_keep(pool, vp_impl_score_span_from(&one, &one + 1));
    }
    if (pool->full) return VP_ERR_CAPACITY;
    if ((result = vp_impl_score_select(pool, sample->prediction, letters, sample->option_count, &found)) != VP_OK) return result;
    picked = vp_impl_score_trimmed(vp_impl_score_span_of(sample->options[found]));
    for (p = picked.p, end = p + picked.bytes; p + 1 < end && !letter; p++)
        if (p[1] == ':' && ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z'))) letter = (char)(*p >= 'a' ? *p - 32 : *p);
    if (letter) picked = vp_impl_score_span_from(&letter, &letter + 1);
    if (picked.bytes == 1 && picked.p[0] >= 'A' && (size_t)(picked.p[0] - 'A') < sample->option_count) {
        *index = picked.p[0] - 'A';
        return VP_OK;
    }
    for (i = 0; i < sample->option_count; i++) {
        distance = vp_impl_score_distance(pool, picked, vp_impl_score_span_of(sample->options[i]));
        if (distance < nearest) { nearest = distance; found = (int32_t)i; }
    }
    if (pool->full) return VP_ERR_CAPACITY;
    *index = found;
    return VP_OK;
}

static vp_result vp_impl_score_vista(vp_impl_score_pool *pool, const vp_score_sample *sample, vp_score_outcome *outcome) {
    const char *parsed = sample->prediction;
    vp_result result;
    if (!sample->question_type) {
        outcome->reason = "the row has no question type";
        return VP_OK;
    }
    if (!strcmp(sample->question_type, "multi_choice")) {
        result = vp_impl_score_vista_choice(pool, sample, &outcome->option_index);
        if (result == VP_ERR_MISMATCH) outcome->reason = "the row has no choices, or too many";
        if (result != VP_OK) return result == VP_ERR_MISMATCH ? VP_OK : result;
        parsed = sample->options[outcome->option_index];
    } else if (sample->answer_type && (!strcmp(sample->answer_type, "integer") || !strcmp(sample->answer_type, "float")))
        parsed = vp_impl_score_vista_number(pool, sample);
    if (pool->full) return VP_ERR_CAPACITY;
    outcome->parsed = parsed;
    outcome->score = parsed && !strcmp(parsed, sample->references[0]);
    return VP_OK;
}

/* --------------------------------------------------------------------------------------------------- metrics by name */
static const vp_score_metric_info vp_impl_score_metrics[] = {
#define VP_IMPL_SCORE_INFO(metric, name, others, own, run, binary) {name, others, VP_SCORE_CLEAN_##own, VP_SCORE_CLEAN_##run, binary},
    VP_SCORE_METRICS(VP_IMPL_SCORE_INFO)
#undef VP_IMPL_SCORE_INFO
};

VP_API const vp_score_metric_info *vp_score_metric_of(vp_score_metric metric) {
    return (int)metric >= 0 && (int)metric < (int)VP_SCORE_METRIC_COUNT ? &vp_impl_score_metrics[metric] : NULL;
}

VP_API vp_result vp_score_metric_find(const char *name, vp_score_metric *metric) {
    size_t bytes, i;
    if (!name || !metric) return VP_ERR_RANGE;
    bytes = strlen(name);
    for (i = 0; i < (size_t)VP_SCORE_METRIC_COUNT; i++) {
        const char *p = vp_impl_score_metrics[i].others;
        int same = !strcmp(name, vp_impl_score_metrics[i].name);
        for (; !same && bytes && !strchr(name, ' ') && (p = strstr(p, name)) != NULL; p++) same = p[-1] == ' ' && p[bytes] == ' ';
        if (!same) continue;
        *metric = (vp_score_metric)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

VP_API vp_result vp_score_metric_for_dataset(const char *dataset_name, vp_score_metric *metric) {
    static const struct { const char *name; vp_score_metric metric; } known[] = {
        {"mmmu", VP_SCORE_MMMU}, {"coco_caption", VP_SCORE_CAPTION_JACCARD}, {"coco_captioning", VP_SCORE_CAPTION_JACCARD},
        {"science_qa_img", VP_SCORE_MC}, {"doc_qa", VP_SCORE_ANLS}, {"st_qa", VP_SCORE_ANLS}, {"tally_qa", VP_SCORE_EM}};
    size_t i, k;
    if (!dataset_name || !metric) return VP_ERR_RANGE;
    *metric = VP_SCORE_VQA_SEED;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *name = known[i].name;
        for (k = 0; name[k] && (dataset_name[k] == name[k] || (dataset_name[k] == '-' && name[k] == '_')); k++) {}
        if (!name[k] && !dataset_name[k]) *metric = known[i].metric;
    }
    return VP_OK;
}

VP_API vp_score_sample vp_score_sample_default(void) {
    vp_score_sample sample;
    memset(&sample, 0, sizeof sample);
    sample.answer_index = -1;
    sample.precision = INT64_MIN;
    return sample;
}

/* the option that a rule chooses, against the answer's index */
static vp_result vp_impl_score_choice(vp_score_metric metric, const vp_score_sample *s, char *scratch, size_t bytes, vp_score_outcome *outcome) {
    static const char *const letters[] = {"A", "B", "C", "D"};
    const char *const *options = metric == VP_SCORE_MC_TEXT ? s->option_names : letters;
    const size_t count = metric == VP_SCORE_MC_TEXT ? s->option_name_count : 4;
    int64_t answer = s->answer_index;
    int32_t index = -1;
    vp_result result;
    if (metric == VP_SCORE_REAL_WORLD_QA)
        answer = s->references[0][0] >= 'A' && s->references[0][0] <= 'D' && !s->references[0][1] ? s->references[0][0] - 'A' : -1;
    if (metric == VP_SCORE_MC)
        result = vp_score_mc(s->prediction, s->options, s->option_count, s->option_names, s->option_name_count, scratch, bytes, &index);
    else result = vp_score_select_option(s->prediction, options, count, scratch, bytes, &index);
    if (result == VP_ERR_MISMATCH) {
        outcome->reason = "the row has no options, or two that are equal after lower-casing and stripping: the reference stops there";
        return VP_OK;
    }
    if (result != VP_OK) return result;
    outcome->option_index = index;
    if (answer < 0) outcome->reason = "the row has no answer among its options";
    else outcome->score = index == answer;
    return VP_OK;
}

static vp_result vp_impl_score_mmmu_letters(const vp_score_sample *s, char *scratch, size_t bytes, vp_score_outcome *outcome) {
    int32_t index = -1;
    size_t i;
    vp_result result = vp_score_mmmu_choice(s->prediction, s->options, s->option_count, scratch, bytes, &index);
    if (result == VP_ERR_NOT_FOUND) {
        outcome->is_unparsed = 1;
        outcome->reason = "unparsed: the answer names no option";
        return VP_OK;
    }
    if (result != VP_OK) return result;
    outcome->option_index = index;
    outcome->score = 0;
    for (i = 0; i < s->reference_count; i++)
        if (s->references[i][0] == 'A' + index && !s->references[i][1]) outcome->score = 1;
    return VP_OK;
}

static vp_result vp_impl_score_plain_vqa(const vp_score_sample *s, char *scratch, size_t bytes, vp_score_outcome *outcome) {
    vp_result result;
    if (!s->is_plain_reference || !s->reference_count)
        return vp_score_vqa_seed(s->prediction, s->references, s->reference_count, scratch, bytes, &outcome->score);
    result = vp_score_vqa_normalise(s->prediction, scratch, bytes, NULL);
    if (result == VP_OK) outcome->score = !strcmp(scratch, s->references[0]); /* which is not normalised: so the reference does it */
    return result;
}

static vp_result vp_impl_score_by_metric(vp_score_metric metric, const vp_score_sample *s, vp_impl_score_pool *pool, vp_score_outcome *outcome) {
    vp_result result;
    size_t bytes = pool->left;
    char *scratch = pool->p;
    double *score = &outcome->score;
    switch (metric) {
        case VP_SCORE_VQA_SEED: return vp_impl_score_plain_vqa(s, scratch, bytes, outcome);
        case VP_SCORE_VQA_OFFICIAL: return vp_score_vqa_official(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_EM: return vp_score_em(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_RELAXED: return vp_score_relaxed(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_A_OKVQA: return vp_score_a_okvqa(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_CAPTION_JACCARD: return vp_score_caption_jaccard(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_MMMU_CHOICE: return vp_impl_score_mmmu_letters(s, scratch, bytes, outcome);
        case VP_SCORE_MMMU_OPEN: return vp_score_mmmu_open(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_MATH_VISTA: return vp_impl_score_vista(pool, s, outcome);
        case VP_SCORE_MMMU:
            if (s->question_type ? !strcmp(s->question_type, "multiple-choice") : s->option_count > 0)
                return vp_impl_score_mmmu_letters(s, scratch, bytes, outcome);
            return vp_score_mmmu_open(s->prediction, s->references, s->reference_count, scratch, bytes, score);
        case VP_SCORE_ANLS:
            result = vp_score_anls(s->prediction, s->references, s->reference_count, scratch, bytes, score);
            if (result == VP_ERR_MISMATCH) outcome->reason = "prediction and reference are both empty: the reference stops there";
            return result == VP_ERR_MISMATCH ? VP_OK : result;
        case VP_SCORE_REAL_WORLD_QA:
            if (s->question_type && !strcmp(s->question_type, "multiple_choice")) return vp_impl_score_choice(metric, s, scratch, bytes, outcome);
            { /* equal after normalisation: one match of one reference */
                size_t matches = 0;
                result = vp_impl_score_matches(s->prediction, s->references, 1, vp_impl_score_normalised, scratch, bytes, &matches);
                if (result == VP_OK) *score = matches == 1;
                return result;
            }
        default: return vp_impl_score_choice(metric, s, scratch, bytes, outcome);
    }
}

static int vp_impl_score_sample_is_whole(const vp_score_sample *s) {
    const char *const *lists[3];
    size_t counts[3], i, k;
    lists[0] = s->references;
    lists[1] = s->options;
    lists[2] = s->option_names;
    counts[0] = s->reference_count;
    counts[1] = s->option_count;
    counts[2] = s->option_name_count;
    for (i = 0; i < 3; i++) {
        if (!lists[i] && counts[i]) return 0;
        for (k = 0; k < counts[i]; k++) if (!lists[i][k]) return 0;
    }
    return s->prediction != NULL;
}

VP_API vp_result vp_score_compute(vp_score_metric metric, vp_score_cleaning cleaning, const vp_score_sample *sample, char *scratch,
                                  size_t scratch_bytes, vp_score_outcome *outcome) {
    vp_impl_score_pool pool = vp_impl_score_pool_of(scratch, scratch_bytes);
    vp_score_sample cleaned;
    vp_score_outcome made;
    char *text;
    size_t bytes = 0;
    vp_result result = VP_OK;
    const int by_index = metric == VP_SCORE_MC || metric == VP_SCORE_MC_TEXT || metric == VP_SCORE_SEED_BENCH;
    const int needs_one = metric == VP_SCORE_VQA_OFFICIAL || metric == VP_SCORE_RELAXED || metric == VP_SCORE_REAL_WORLD_QA
        || metric == VP_SCORE_MATH_VISTA;
    if (!vp_score_metric_of(metric) || !sample || !scratch || !outcome || !vp_impl_score_sample_is_whole(sample)) return VP_ERR_RANGE;
    if ((int)cleaning < 0 || cleaning > VP_SCORE_CLEAN_FREQUENT) return VP_ERR_RANGE;
    cleaned = *sample;
    made.score = (double)NAN;
    made.reason = made.parsed = NULL;
    made.is_unparsed = 0;
    made.option_index = -1;
    if (cleaning != VP_SCORE_CLEAN_NONE) {
        text = (char *)vp_impl_score_take(&pool, strlen(sample->prediction) + 1, 1);
        if (!text) return VP_ERR_CAPACITY;
        if (cleaning == VP_SCORE_CLEAN_LAST) result = vp_score_clean(sample->prediction, text, strlen(sample->prediction) + 1, &bytes);
        else result = vp_score_clean_frequent(sample->prediction, pool.p, pool.left, text, strlen(sample->prediction) + 1, &bytes);
        if (result != VP_OK) return result;
        cleaned.prediction = text;
    }
    made.cleaned = cleaned.prediction;
    if (!by_index && (!sample->references || (needs_one && !sample->reference_count))) made.reason = "the row has no references";
    else result = vp_impl_score_by_metric(metric, &cleaned, &pool, &made);
    if (result == VP_OK) *outcome = made;
    return result;
}

VP_API vp_result vp_score_wilson(double successes, double count, double z, double *low, double *high) {
    double share, middle, spread;
    if (!(count > 0 && count < HUGE_VAL && successes >= 0 && successes <= count && z >= 0 && z <= 1e6) || !low || !high) return VP_ERR_RANGE;
    share = successes / count;
    middle = (share + z * z / (2 * count)) / (1 + z * z / count);
    spread = z / (1 + z * z / count) * sqrt(share * (1 - share) / count + z * z / (4 * count * count));
    *low = successes <= 0 || middle - spread < 0 ? 0 : middle - spread;
    *high = successes >= count || middle + spread > 1 ? 1 : middle + spread;
    return VP_OK;
}

/* =============================================================================================== caption >>caption */

/* ---------------------------------------------------------------------------------------------- built-in tokenizer
 * Every place of a text is offered to all rules. A rule says where its token stops and how far it reaches, what it only looked ahead at
 * included; the furthest reach wins, the first offer when two reach equally far. So does the reference's lexer; each rule was held against what
 * that program prints (tests/test_caption.c has a text or more for each). */
typedef enum vp_impl_caption_kind {
    VP_IMPL_CAPTION_DROP,  /* punctuation that is no token */
    VP_IMPL_CAPTION_TEXT,  /* a token as it stands */
    VP_IMPL_CAPTION_SAID,  /* a token that is said otherwise */
    VP_IMPL_CAPTION_QUOTES /* a token whose typographic quotes are said in ASCII */
} vp_impl_caption_kind;
typedef struct vp_impl_caption_lexer {
    const char *p, *end, *stop, *reach, *said; /* the best offer at p */
    vp_impl_caption_kind kind;
    /* what is searched in vain is not searched again before these places: > of a tag, @, a hyphen, the end of a file's name */
    const char *no_close, *no_at, *no_hyphen, *no_file;
} vp_impl_caption_lexer;

static void vp_impl_caption_offer(vp_impl_caption_lexer *l, const char *stop, const char *reach, vp_impl_caption_kind kind, const char *said) {
    if (stop <= l->p || reach <= l->reach) return;
    l->stop = stop;
    l->reach = reach;
    l->kind = kind;
    l->said = said;
}
static void vp_impl_caption_token(vp_impl_caption_lexer *l, const char *stop) { vp_impl_caption_offer(l, stop, stop, VP_IMPL_CAPTION_TEXT, NULL); }

static int vp_impl_caption_upper(int c) { return c >= 'A' && c <= 'Z'; }
static int vp_impl_caption_ascii_letter(int c) { return (c >= 'a' && c <= 'z') || vp_impl_caption_upper(c); }
static int vp_impl_caption_ascii_digit(int c) { return c >= '0' && c <= '9'; }
static int vp_impl_caption_ascii_alnum(int c) { return vp_impl_caption_ascii_letter(c) || vp_impl_caption_ascii_digit(c); }
/* c is one of the characters of a list; NUL never is */
static int vp_impl_caption_in(int c, const char *list) { return c && strchr(list, c) != NULL; }
/* the byte at p; 0 behind the end and for all that is not ASCII */
static int vp_impl_caption_at(const vp_impl_caption_lexer *l, const char *p) { return p < l->end && (unsigned char)*p < 0x80 ? *p : 0; }

/* the byte `count` places behind p <= end, as above */
static int vp_impl_caption_ahead(const vp_impl_caption_lexer *l, const char *p, size_t count) {
    return (size_t)(l->end - p) > count ? vp_impl_caption_at(l, p + count) : 0;
}

/* Where a lower-case ASCII text ends that stands at p in either case, or NULL. */
static const char *vp_impl_caption_says(const vp_impl_caption_lexer *l, const char *p, const char *text) {
    for (; *text; text++, p++) {
        int c = vp_impl_caption_at(l, p);
        if ((vp_impl_caption_upper(c) ? c + 32 : c) != *text) return NULL;
    }
    return p;
}

/* letters behind ASCII, with the marks that go with them, as the reference has them */
static int vp_impl_caption_unicode_letter(uint32_t c) {
    const uint32_t *t = vp_impl_unicode_classes;
    uint32_t first = 0;
    size_t i;
    if (c > 0xFFFF) return 0; /* Java has two halves there, which the reference takes for nothing */
    if (c == 0xAD || c == 0x670 || (c >= 0x2C2 && c <= 0x36F) || (c >= 0x483 && c <= 0x487) || (c >= 0x64B && c <= 0x65E)) return 1;
    if (c >= 0x591 && c <= 0x5C7) return c != 0x5BE && c != 0x5C0 && c != 0x5C3 && c != 0x5C6;
    if (c >= 0xE31 && c <= 0xE4E) return c != 0xE3F;
    if (c >= 0x900 && c < 0xE00) return c != 0x964 && c != 0x965 && !vp_impl_score_unicode_digit(c);
    if ((c >= 0x3041 && c <= 0x3094) || (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7A3)) return 1; /* quickly */
    for (i = 0; i < sizeof vp_impl_unicode_classes / sizeof *t && first <= c; i += 2) {
        first += t[i];
        if (c >= first && c - first < t[i + 1] / 4) return t[i + 1] % 4 == 1;
        first += t[i + 1] / 4;
    }
    return 0;
}

/* bytes of the letter at p, or 0; the same for a letter or digit */
static size_t vp_impl_caption_letter(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 0;
    if (p >= l->end) return 0;
    if ((unsigned char)*p < 0x80) return (size_t)vp_impl_caption_ascii_letter(*p);
    return vp_impl_caption_unicode_letter(vp_impl_score_get(p, l->end, &bytes)) ? bytes : 0;
}
static size_t vp_impl_caption_alnum(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 0;
    if (p >= l->end) return 0;
    if ((unsigned char)*p < 0x80) return (size_t)vp_impl_caption_ascii_alnum(*p);
    return vp_impl_score_unicode_digit(vp_impl_score_get(p, l->end, &bytes)) ? bytes : vp_impl_caption_letter(l, p);
}
static const char *vp_impl_caption_letters(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes;
    while ((bytes = vp_impl_caption_letter(l, p)) > 0) p += bytes;
    return p;
}
static const char *vp_impl_caption_alnums(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes;
    while ((bytes = vp_impl_caption_alnum(l, p)) > 0) p += bytes;
    return p;
}
static const char *vp_impl_caption_ascii_alnums(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p))) p++;
    return p;
}
static const char *vp_impl_caption_digits(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_ascii_digit(vp_impl_caption_at(l, p))) p++;
    return p;
}
/* behind an apostrophe at p (' or U+2019), or NULL */
static const char *vp_impl_caption_apostrophe(const vp_impl_caption_lexer *l, const char *p) {
    if (vp_impl_caption_at(l, p) == '\'') return p + 1;
    return l->end - p >= 3 && memcmp(p, "\xE2\x80\x99", 3) == 0 ? p + 3 : NULL;
}

/* Letters, digits behind the first, and . ! ? between a letter and what stands before: "a.b.c", "hello.world". */
static const char *vp_impl_caption_word(const vp_impl_caption_lexer *l, const char *p) {
    if (!vp_impl_caption_letter(l, p)) return p;
    for (;;) {
        p = vp_impl_caption_alnums(l, p);
        if (!vp_impl_caption_in(vp_impl_caption_at(l, p), ".!?") || !vp_impl_caption_letter(l, p + 1)) return p;
        p++;
    }
}

/* behind 's 'm 'd 're 've 'll at p, or NULL */
static const char *vp_impl_caption_clitic(const vp_impl_caption_lexer *l, const char *p) {
    const char *q = vp_impl_caption_apostrophe(l, p), *found;
    if (!q) return NULL;
    if ((found = vp_impl_caption_says(l, q, "re")) || (found = vp_impl_caption_says(l, q, "ve"))) return found;
    if ((found = vp_impl_caption_says(l, q, "ll"))) return found;
    return vp_impl_caption_in(vp_impl_caption_at(l, q), "msdMSD") ? q + 1 : NULL;
}

/* Longest match of a short pattern of items {class, least, most}: 9 digit, s blank or hyphen, ~ slash or hyphen, b blank, others
 * themselves. NULL: none. The items are few and short, so the depth and the tries are too. */
static const char *vp_impl_caption_pattern(const vp_impl_caption_lexer *l, const char *p, const char *items) {
    const char *best = NULL, *q = p, *found;
    int count, least, most;
    if (!*items) return p;
    least = items[1] - '0';
    most = items[2] - '0';
    for (count = 0; count <= most; count++) {
        int c;
        if (count >= least && (found = vp_impl_caption_pattern(l, q, items + 3)) && (!best || found > best)) best = found;
        c = vp_impl_caption_at(l, q);
        if (!(*items == '9' ? vp_impl_caption_ascii_digit(c) : *items == 's' ? vp_impl_caption_in(c, " -") : *items == 'b' ? c == ' '
              : *items == '~' ? vp_impl_caption_in(c, "-/") : c == *items)) break;
        q++;
    }
    return best;
}

/* ---- words with an apostrophe, and words that are cut in two */
static void vp_impl_caption_rule_contractions(vp_impl_caption_lexer *l, const char *word) {
    static const char *const cut[] = {"cannot", "gonna", "gotta", "lemme", "gimme", "wanna"};
    static const char *const whole[] = {"c'mon", "s'mores", "ev'ry", "li'l", "nat'l", "e'er", "o'o", "c'est", "cap'n", "ol'", "somethin'", "dunkin'",
                                        "cont'd", "nor'easter"};
    const char *p = l->p, *q, *after, *found;
    size_t i;
    int c = vp_impl_caption_at(l, p);
    for (i = 0; i < sizeof cut / sizeof *cut; i++)
        if ((found = vp_impl_caption_says(l, p, cut[i]))) vp_impl_caption_offer(l, p + 3, found, VP_IMPL_CAPTION_TEXT, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, p, whole[i]))) vp_impl_caption_token(l, found);
    if ((found = vp_impl_caption_clitic(l, word))) vp_impl_caption_offer(l, word, found, VP_IMPL_CAPTION_TEXT, NULL);
    after = vp_impl_caption_apostrophe(l, word);
    if (l->end - word > 3 && memcmp(word, "\xE2\x80\x98", 3) == 0 && vp_impl_caption_in(vp_impl_caption_at(l, word + 3), "tT")) after = word + 3;
    if (!after) return;
    q = vp_impl_caption_letters(l, p);
    if (q != word) return; /* only words of letters */
    if (vp_impl_caption_in(vp_impl_caption_at(l, word - 1), "nN") && vp_impl_caption_in(vp_impl_caption_at(l, after), "tT")) {
        if (word - 1 > p) vp_impl_caption_offer(l, word - 1, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
        else {
            const char *stop = vp_impl_caption_letters(l, after); /* n't */
            vp_impl_caption_offer(l, stop, stop, VP_IMPL_CAPTION_QUOTES, NULL);
        }
    }
    if (word == p + 1 && vp_impl_caption_in(c, "yY") && vp_impl_caption_letter(l, after))
        vp_impl_caption_offer(l, after, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
    if (word == p + 1 && vp_impl_caption_in(c, "lLdDjJ")) vp_impl_caption_token(l, after);
    c = vp_impl_caption_at(l, after);
    if (word > p + 1 && vp_impl_caption_in(vp_impl_caption_at(l, word - 1), "aeiouyAEIOUY")
        && (vp_impl_caption_in(c, "aeiou") || vp_impl_caption_upper(c)))
        vp_impl_caption_token(l, vp_impl_caption_letters(l, after));
}

/* At an apostrophe: 's alone, 'em, 'n', 'til, '90s, '05. */
static void vp_impl_caption_rule_apostrophe(vp_impl_caption_lexer *l) {
    static const char *const whole[] = {"em", "til", "till", "cause", "n"};
    const char *after = vp_impl_caption_apostrophe(l, l->p), *found;
    size_t i;
    if (!after) return;
    found = vp_impl_caption_clitic(l, l->p);
    if (found && *l->p != '\'') vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_QUOTES, NULL);
    else if (found && !vp_impl_caption_ascii_letter(vp_impl_caption_at(l, found)))
        vp_impl_caption_offer(l, found, found + (found < l->end), VP_IMPL_CAPTION_QUOTES, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, after, whole[i]))) {
            if (whole[i][0] == 'n' && vp_impl_caption_apostrophe(l, found)) found = vp_impl_caption_apostrophe(l, found);
            vp_impl_caption_token(l, found);
        }
    if ((found = vp_impl_caption_pattern(l, after, "922"))) {
        if (*after > '1' && after[1] == '0' && vp_impl_caption_at(l, found) == 's') vp_impl_caption_token(l, found + 1);
        if (found == l->end || vp_impl_caption_at(l, found) == ' ') vp_impl_caption_token(l, found);
    }
    if (after == l->p + 1 && (vp_impl_caption_says(l, after, "tis") || vp_impl_caption_says(l, after, "twas")))
        vp_impl_caption_offer(l, after + 1, after + 3, VP_IMPL_CAPTION_TEXT, NULL);
}

/* " text " in lower case, to look up in lists; key has bytes + 3 */
static void vp_impl_caption_key(char *key, const char *text, size_t bytes) {
    size_t i;
    key[0] = key[bytes + 1] = ' ';
    key[bytes + 2] = 0;
    for (i = 0; i < bytes; i++) key[i + 1] = (char)(vp_impl_caption_upper(text[i]) ? text[i] + 32 : text[i]);
}

/* ---- abbreviations that keep their period: always, or only before a number; "u.s.", and a letter alone unless a sentence begins behind it */
static void vp_impl_caption_rule_abbreviations(vp_impl_caption_lexer *l) {
    static const char always[] =
        " adj adm adv al ala alex apr ariz assn assoc asst atty attys aug ave bancorp bhd bldg blvd brig bros calif capt cf cie cmdr co col "
        "colo comdr conn corp cos cpl ct dak dec dept det dr drs elec ens esq est etc ext feb fla fri ft ga gen gov govs hon inc ind insp "
        "intl invt jan jos jr jul jun kan kans ky lieut lt ltd maj mar md messrs mfg mich minn mlle mme mo mon mont mr mrs ms msgr mt mtg "
        "natl neb nev nov oct okla penn pfc ph.d ed.d ph plc ppte pptes ppty pptys pres prof profs pte ptes pty ptys pvt rd rep reps rev rt "
        "sen sens sep sept seq sfc sgt spc sq sr st ste supt supts sys tel tenn thu thurs treas tue tues univ va vs vt wed wis wisc wm wyo "
        "cont'd ";
    static const char capital[] = " ark az del ill la mass miss ore pa tex wash ";
    static const char before_number[] = " art ca fig figs no nos op pp prop ";
    static const char starters[] =
        " a about according additionally after an as at but earlier he here however if in it last many more now once one other our she since "
        "so some such that the their then there these they this we what when while yet you ";
    const char *p = l->p, *q = p, *after;
    char key[12];
    size_t bytes;
    int c;
    while (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)) && vp_impl_caption_ahead(l, q, 1) == '.'
           && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 2))) q += 2;
    if (q > p && vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)) && vp_impl_caption_ahead(l, q, 1) == '.') vp_impl_caption_token(l, q + 2);
    for (bytes = 0, q = p; bytes < 9; bytes++, q++) { /* the letters before the last period */
        c = vp_impl_caption_at(l, q);
        if (c == '.' && !vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 1))) break;
        if (!vp_impl_caption_ascii_letter(c) && c != '.' && c != '\'') return;
    }
    if (!bytes || vp_impl_caption_at(l, q) != '.') return;
    vp_impl_caption_key(key, p, bytes);
    q++;
    for (after = q; vp_impl_caption_at(l, after) == ' '; after++) {}
    if (bytes == 1) {
        char next[12];
        size_t length = (size_t)(vp_impl_caption_ascii_alnums(l, after) - after);
        c = vp_impl_caption_at(l, after + length);
        if (after > q && vp_impl_caption_upper(vp_impl_caption_at(l, after)) && length < sizeof next - 2) {
            vp_impl_caption_key(next, after, length);
            if ((c == ' ' || after + length == l->end) && strstr(starters, next)) return;
            if (c == '.' && strstr(" mr ms ", next)) return;
        }
        vp_impl_caption_token(l, q);
    }
    if (strstr(always, key) || (vp_impl_caption_upper(*p) && strstr(capital, key))) vp_impl_caption_token(l, q);
    if (vp_impl_caption_at(l, q) == ' ') q++;
    if (strstr(before_number, key) && vp_impl_caption_ascii_digit(vp_impl_caption_at(l, q)))
        vp_impl_caption_offer(l, l->p + bytes + 1, q + 1, VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- numbers, dates, fractions, telephone numbers, words with hyphens and slashes */
static void vp_impl_caption_rule_numbers(vp_impl_caption_lexer *l) {
    static const char *const patterns[] = {"912~11912~11924", "914s11914/11914", "914/11914", "(11923)11b01934s01935", "+02924s11924s11934s01935",
                                           "+02924s11934s01935", "+02924.11924.11934.11935", "924.11934.11935"};
    const char *p = l->p, *q, *found;
    size_t i;
    int c = vp_impl_caption_at(l, p);
    if (!vp_impl_caption_in(c, "+-.,:(") && !vp_impl_caption_ascii_digit(c)) return;
    for (i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if ((found = vp_impl_caption_pattern(l, p, patterns[i]))) vp_impl_caption_token(l, found);
    p += vp_impl_caption_in(c, "+-");
    q = vp_impl_caption_digits(l, p);
    while (vp_impl_caption_in(vp_impl_caption_at(l, q), ".,:") && vp_impl_caption_ascii_digit(vp_impl_caption_ahead(l, q, 1)))
        q = vp_impl_caption_digits(l, q + 1);
    if (q > p) vp_impl_caption_token(l, q);
}

static void vp_impl_caption_rule_hyphens(vp_impl_caption_lexer *l) {
    const char *p = l->p, *q, *r;
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || p < l->no_hyphen) return;
    q = p;
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, q)) || vp_impl_caption_in(vp_impl_caption_at(l, q), ".,")) q++;
    if (vp_impl_caption_at(l, q) != '-' || !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, q, 1))) {
        l->no_hyphen = q;
        return;
    }
    while (vp_impl_caption_at(l, q) == '-' && vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, q, 1))) {
        r = q + 1;
        q = vp_impl_caption_ascii_alnums(l, r);
        while (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, r)) && vp_impl_caption_ahead(l, r, 1) == '.'
               && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, r, 2))) r += 2;
        if (r + 2 > q && vp_impl_caption_ascii_letter(vp_impl_caption_at(l, r)) && vp_impl_caption_ahead(l, r, 1) == '.' && r[-1] == '.') q = r + 2;
    }
    vp_impl_caption_token(l, q);
}

/* one part of a/b/c: letters and digits, then up to two hyphens with letters; NULL when there is none */
static const char *vp_impl_caption_slash_part(const vp_impl_caption_lexer *l, const char *p) {
    const char *q = vp_impl_caption_ascii_alnums(l, p);
    int i;
    if (q == p) return NULL;
    for (i = 0; i < 2 && vp_impl_caption_at(l, q) == '-' && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 1)); i++)
        for (q++; vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)); q++) {}
    return q;
}

static void vp_impl_caption_rule_compounds(vp_impl_caption_lexer *l) {
    const char *p = l->p, *q = vp_impl_caption_slash_part(l, p), *r;
    size_t bytes;
    int i, c;
    for (i = 0; q && i < 2; i++) { /* up to two slashes */
        r = q + (vp_impl_caption_at(l, q) == '\\');
        if (vp_impl_caption_ascii_digit(q[-1]) && l->end - r > 3 && memcmp(r, "\xE2\x81\x84", 3) == 0 && vp_impl_caption_ascii_digit(r[3])) r += 2;
        else if (vp_impl_caption_at(l, r) != '/') break;
        if (!(q = vp_impl_caption_slash_part(l, r + 1))) break;
        vp_impl_caption_token(l, q);
    }
    for (q = p; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
    while (q > p) { /* AT&T, A+B */
        r = vp_impl_caption_says(l, q, "&amp;");
        if (!r && vp_impl_caption_in(vp_impl_caption_at(l, q), "&+")) r = q + 1;
        if (!r || !vp_impl_caption_upper(vp_impl_caption_at(l, r))) break;
        for (q = r; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
        vp_impl_caption_token(l, q);
    }
    q = p;
    c = vp_impl_caption_at(l, p);
    if (vp_impl_caption_in(c, "dlno") || (vp_impl_caption_upper(c) && c != 'I' && c != 'Y')) { /* o'clock, d'you, O'Neill */
        int digits = vp_impl_caption_in(c, "dloDLO");
        r = vp_impl_caption_apostrophe(l, p + 1);
        bytes = !r ? 0 : digits ? vp_impl_caption_alnum(l, r) : vp_impl_caption_letter(l, r);
        if (bytes && (digits ? vp_impl_caption_alnum(l, r + bytes) : vp_impl_caption_letter(l, r + bytes))) q = r;
    }
    q = vp_impl_caption_alnums(l, q);
    while (q > p) { /* a_b, and hyphens with letters of any kind */
        bytes = vp_impl_caption_in(vp_impl_caption_at(l, q), "-_") ? 1 : 0;
        if (l->end - q >= 3 && (memcmp(q, "\xE2\x80\x90", 3) == 0 || memcmp(q, "\xE2\x80\x91", 3) == 0)) bytes = 3;
        if (!bytes || !vp_impl_caption_alnum(l, q + bytes)) break;
        q = vp_impl_caption_alnums(l, q + bytes);
    }
    vp_impl_caption_token(l, q);
    if (q > p && vp_impl_caption_at(l, q) == '.' && vp_impl_caption_in(vp_impl_caption_ahead(l, q, 1), ",;:"))
        vp_impl_caption_offer(l, q + 1, q + 2, VP_IMPL_CAPTION_TEXT, NULL); /* a period before a comma ends no sentence */
}

/* ---- addresses, file names, @names, #tags, tags in < > */
static int vp_impl_caption_address(int c) { return c > ' ' && !vp_impl_caption_in(c, "\"<>|()"); }

/* behind the ASCII or other characters of an address that begins at p */
static const char *vp_impl_caption_address_run(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 1;
    for (; p < l->end; p += bytes) {
        uint32_t c = vp_impl_score_get(p, l->end, &bytes);
        if (c < 0x80 ? !vp_impl_caption_address((int)c) : vp_impl_score_unicode_space(c)) break;
    }
    return p;
}

/* www.a.com/b, a.com/b: from behind the ending; the path has at least two characters */
static const char *vp_impl_caption_path(const vp_impl_caption_lexer *l, const char *p) {
    const char *q;
    if (vp_impl_caption_at(l, p) != '/') return p;
    q = vp_impl_caption_address_run(l, p + 1);
    while (q > p + 1 && vp_impl_caption_in(q[-1], ".!?(){},-")) q--;
    return q > p + 2 ? q : p;
}

static void vp_impl_caption_rule_addresses(vp_impl_caption_lexer *l) {
    static const char *const endings[] = {"com", "net", "org", "edu"};
    const char *p = l->p + (*l->p == '<'), *q, *r, *at = NULL, *found; /* <me@x.org> too */
    size_t i;
    if ((q = vp_impl_caption_says(l, p, "http://")) || (q = vp_impl_caption_says(l, p, "https://"))) {
        for (r = vp_impl_caption_address_run(l, q); r > q && vp_impl_caption_in(r[-1], ".!?(){},-");) r--;
        if (r > q + 1 && p == l->p) vp_impl_caption_token(l, r);
    }
    q = vp_impl_caption_letters(l, p);
    for (r = q; p == l->p && vp_impl_caption_at(l, r) == '.' && vp_impl_caption_letter(l, r + 1);) {
        r = vp_impl_caption_letters(l, r + 1);
        for (i = 0; i < sizeof endings / sizeof *endings; i++)
            if (r - p > 4 && r[-4] == '.' && (found = vp_impl_caption_says(l, r - 3, endings[i])) && found == r)
                vp_impl_caption_token(l, vp_impl_caption_path(l, r));
    }
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || p < l->no_at) return;
    q = vp_impl_caption_address_run(l, p);
    for (r = p; r < q && *r != '{' && *r != '}';) r++;
    q = r;
    for (r = p; r + 1 < q; r++)
        if (*r == '@' && r[1] != '.') at = r;
    if (!at) {
        l->no_at = q;
        return;
    }
    for (r = at + 1; r < q && !(*r == '.' && (r + 1 == q || r[1] == '.')); r++) {}
    if (p == l->p) vp_impl_caption_token(l, r);
    else if (vp_impl_caption_at(l, r) == '>') vp_impl_caption_token(l, r + 1);
}

/* letters and digits with periods between, the last of them a known ending; behind it the text ends or . ? ! , or white space follows */
static void vp_impl_caption_rule_files(vp_impl_caption_lexer *l) {
    static const char endings[] =
        " bat bmp c class cgi cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 mp4 pdf php pl png ppt ps py sql tar txt wav "
        "x xml zip wma wmv avi flv 3gp mpg ";
    const char *q = vp_impl_caption_alnums(l, l->p), *start, *best = NULL;
    char key[8];
    size_t bytes;
    if (q == l->p || l->p < l->no_file) return;
    while (vp_impl_caption_at(l, q) == '.' && vp_impl_caption_alnum(l, q + 1)) {
        int c;
        start = q + 1;
        q = vp_impl_caption_alnums(l, start);
        bytes = (size_t)(q - start);
        if (bytes > 5) continue;
        vp_impl_caption_key(key, start, bytes);
        c = vp_impl_caption_at(l, q);
        if (strstr(endings, key) && (q >= l->end || vp_impl_caption_in(c, " \t\n\r.?!,"))) best = q;
    }
    if (best) vp_impl_caption_offer(l, best, best + (best < l->end), VP_IMPL_CAPTION_TEXT, NULL);
    else l->no_file = q;
}

static const char *vp_impl_caption_blanks(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_at(l, p) == ' ') p++;
    return p;
}
static const char *vp_impl_caption_tag_name(const vp_impl_caption_lexer *l, const char *p) {
    if (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, p)))
        while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || vp_impl_caption_in(vp_impl_caption_at(l, p), ":.-_")) p++;
    return p;
}

static void vp_impl_caption_rule_tags(vp_impl_caption_lexer *l) {
    const char *p = l->p + 1, *q;
    int c = vp_impl_caption_at(l, p), quote;
    if (vp_impl_caption_in(c, "!?")) {
        c = vp_impl_caption_ahead(l, p, 1);
        if ((!vp_impl_caption_ascii_letter(c) && c != '-') || p < l->no_close) return;
        for (q = p; q < l->end && *q != '>' && *q != '\n' && *q != '\r'; q++) {}
        if (vp_impl_caption_at(l, q) == '>') vp_impl_caption_token(l, q + 1);
        else l->no_close = q;
        return;
    }
    p += c == '/';
    q = vp_impl_caption_tag_name(l, p);
    if (q == p) return;
    for (;;) { /* names, some with ='value' or ="value" */
        p = vp_impl_caption_blanks(l, q);
        if (p == q || !vp_impl_caption_ascii_letter(vp_impl_caption_at(l, p))) break;
        q = vp_impl_caption_tag_name(l, p);
        p = vp_impl_caption_blanks(l, q);
        if (vp_impl_caption_at(l, p) != '=') continue;
        p = vp_impl_caption_blanks(l, p + 1);
        quote = vp_impl_caption_at(l, p);
        if (!vp_impl_caption_in(quote, "'\"")) return;
        for (p++; p < l->end && *p != quote && *p != '\n' && *p != '\r'; p++) {}
        if (vp_impl_caption_at(l, p) != quote) return;
        q = p + 1;
    }
    p += vp_impl_caption_at(l, p) == '/';
    p = vp_impl_caption_blanks(l, p);
    if (vp_impl_caption_at(l, p) == '>') vp_impl_caption_token(l, p + 1);
}

/* ---- smileys: :) ;-P <:( and ^_^ */
static void vp_impl_caption_rule_smileys(vp_impl_caption_lexer *l) {
    const char *p = l->p;
    int paren = vp_impl_caption_at(l, p) == '(', c;
    const char *q = p + paren;
    if (vp_impl_caption_in(vp_impl_caption_at(l, q), "-^x=~<>'")) {
        q++;
        if (vp_impl_caption_at(l, q) == '_' || (paren && vp_impl_caption_at(l, q) == '.')) q++;
        else if (!paren) q = l->end;
        if (vp_impl_caption_in(vp_impl_caption_at(l, q), "-^x=~<>'") && (!paren || vp_impl_caption_ahead(l, q, 1) == ')'))
            vp_impl_caption_token(l, q + 1 + paren);
    }
    p += vp_impl_caption_in(vp_impl_caption_at(l, p), "<>");
    if (!vp_impl_caption_in(vp_impl_caption_at(l, p), ":;=")) return;
    p += vp_impl_caption_in(vp_impl_caption_ahead(l, p, 1), "-o*'") && vp_impl_caption_in(vp_impl_caption_ahead(l, p, 2), "()DPdpO\\{@|[]") ? 2 : 1;
    c = vp_impl_caption_at(l, p);
    if (vp_impl_caption_in(c, "()DPdpO\\{@|[]") && !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, p, 1)))
        vp_impl_caption_offer(l, p + 1, p + 1 + (p + 1 < l->end), VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- everything of one character, and runs of one */
static void vp_impl_caption_rule_ascii(vp_impl_caption_lexer *l, int c) {
    static const struct { const char *from, *to; } said[] = {
        {"(", "-lrb-"}, {")", "-rrb-"}, {"[", "-lsb-"}, {"]", "-rsb-"}, {"{", "-lcb-"}, {"}", "-rcb-"}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
    static const char *const dropped[] = {"&quot;", "&apos;", "&nbsp;", "&mdash;", "&ndash;"};
    static const char *const whole[] = {"c++", "c#", "pro-", "anti-", "c.d.s", "s&p-500", "s&ls"};
    const char *p = l->p, *q = p, *found;
    size_t i, count, dots;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if ((found = vp_impl_caption_says(l, p, said[i].from))) vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_SAID, said[i].to);
    for (i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if ((found = vp_impl_caption_says(l, p, dropped[i]))) vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_DROP, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, p, whole[i]))) vp_impl_caption_token(l, found);
    if ((c == '<' || c == '>') && vp_impl_caption_ahead(l, p, 1) == c) vp_impl_caption_token(l, p + 2);
    if (c == 'F' && vp_impl_caption_ahead(l, p, 1) == '#') vp_impl_caption_token(l, p + 2);
    if (c == '&' && vp_impl_caption_ahead(l, p, 1) == '#') {
        q = vp_impl_caption_digits(l, p + 2);
        if (q > p + 2 && vp_impl_caption_at(l, q) == ';') vp_impl_caption_token(l, q + 1);
    }
    for (q = p; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
    if (vp_impl_caption_at(l, q) == '$') vp_impl_caption_token(l, q + 1); /* US$ */
    if (c == '@' && (vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, p, 1)) || vp_impl_caption_ahead(l, p, 1) == '_')) {
        for (q = p + 1; vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, q)) || vp_impl_caption_at(l, q) == '_'; q++) {}
        vp_impl_caption_token(l, q);
    }
    if (c == '#') vp_impl_caption_token(l, vp_impl_caption_letters(l, p + 1));
    for (count = 0; count < 3 && vp_impl_caption_ahead(l, p, 2 * count) == '\\' && vp_impl_caption_ahead(l, p, 2 * count + 1) == '*';) count++;
    vp_impl_caption_token(l, p + 2 * count);
    for (count = 1; vp_impl_caption_in(c, "-@#_*") && vp_impl_caption_at(l, p + count) == c;) count++;
    if (c == '-') vp_impl_caption_offer(l, p + count, p + count, count < 5 ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_TEXT, NULL);
    for (dots = 0; dots < 5 && vp_impl_caption_ahead(l, p, dots) == '.';) dots++;
    if (dots >= 3) vp_impl_caption_offer(l, p + dots, p + dots, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(c, "@#_*")) vp_impl_caption_token(l, p + count);
    for (count = 0; vp_impl_caption_in(vp_impl_caption_at(l, p + count), "?!");) count++;
    if (count > 1) vp_impl_caption_token(l, p + count);
    if (c == '\'' && vp_impl_caption_ahead(l, p, 1) == c) vp_impl_caption_offer(l, p + 2, p + 2, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(c, "'`\".?!,:;")) vp_impl_caption_offer(l, p + 1, p + 1, VP_IMPL_CAPTION_DROP, NULL);
    else if (c > ' ' && c != 127) vp_impl_caption_token(l, p + 1);
}

/* what a typographic quote is said as, or NULL */
static const char *vp_impl_caption_quote(uint32_t c) {
    switch (c) {
        case '`': case 0x91: case 0x2018: case 0x201B: case 0x2039: return "`";
        case 0x92: case 0x2019: case 0x203A: return "'";
        case 0x93: case 0x201C: case 0xAB: return "``";
        case 0x94: case 0x201D: case 0xBB: return "''";
        case 0x201A: return "\xE2\x80\x9A";
        case 0x201E: return "\xE2\x80\x9E";
        case 0x201F: return "\xE2\x80\x9F";
        default: return NULL;
    }
}

static void vp_impl_caption_rule_quotes(vp_impl_caption_lexer *l, uint32_t c, size_t bytes) {
    const char *p = l->p + bytes, *one = vp_impl_caption_quote(c), *two;
    size_t more = 1;
    if (!one) return;
    vp_impl_caption_offer(l, p, p, *one == '`' || *one == '\'' ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_SAID, one);
    two = p < l->end ? vp_impl_caption_quote(vp_impl_score_get(p, l->end, &more)) : NULL;
    if (!two) return;
    if (one[1] == 0 && strcmp(one, two) == 0) vp_impl_caption_offer(l, p + more, p + more, VP_IMPL_CAPTION_DROP, NULL); /* `` and '' */
    else vp_impl_caption_offer(l, p + more, p + more, VP_IMPL_CAPTION_QUOTES, NULL);
}

/* the other characters behind ASCII that are no letters: some are said otherwise, symbols are tokens, the rest is nothing */
static void vp_impl_caption_rule_symbols(vp_impl_caption_lexer *l, uint32_t c, size_t bytes) {
    static const struct { uint32_t code; const char *to; } said[] = {
        {0x80, "$"}, {0xA2, "cents"}, {0xA3, "#"}, {0xA4, "$"}, {0xBC, "1/4"}, {0xBD, "1/2"}, {0xBE, "3/4"}, {0x20A0, "$"}, {0x20AC, "$"},
        {0x2153, "1/3"}, {0x2154, "2/3"}};
    static const uint16_t symbols[][2] = {
        {0xA1, 0xA1}, {0xA5, 0xA9}, {0xAC, 0xAC}, {0xAE, 0xB4}, {0xB6, 0xB9}, {0xBF, 0xBF}, {0xD7, 0xD7}, {0xF7, 0xF7}, {0x37E, 0x37E},
        {0x387, 0x387}, {0x589, 0x589}, {0x5BE, 0x5BE}, {0x5C0, 0x5C0}, {0x5C3, 0x5C3}, {0x5C6, 0x5C6}, {0x5F3, 0x5F4}, {0x600, 0x60C},
        {0x614, 0x614}, {0x61B, 0x61B}, {0x61E, 0x61F}, {0x66A, 0x66A}, {0x66D, 0x66D}, {0x6D4, 0x6D4}, {0x700, 0x70D}, {0x7F6, 0x7F8},
        {0x964, 0x965}, {0xE3F, 0xE3F}, {0xE4F, 0xE4F}, {0x1FBD, 0x1FBD}, {0x2016, 0x2017}, {0x2020, 0x2023}, {0x2030, 0x2038}, {0x203B, 0x203B},
        {0x203E, 0x2042}, {0x2044, 0x2044}, {0x2070, 0x2070}, {0x2074, 0x207E}, {0x2080, 0x208E}, {0x20A4, 0x20A4}, {0x2100, 0x214F},
        {0x2155, 0x215E}, {0x2190, 0x2BFF}, {0x3001, 0x3002}, {0x3012, 0x3012}, {0x30FB, 0x30FB}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},
        {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFE1}, {0xFFE5, 0xFFE6}};
    const char *next = l->p + bytes;
    size_t i;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].code == c) vp_impl_caption_offer(l, next, next, VP_IMPL_CAPTION_SAID, said[i].to);
    for (i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (c >= symbols[i][0] && c <= symbols[i][1]) vp_impl_caption_token(l, next);
    vp_impl_caption_offer(l, next, next, VP_IMPL_CAPTION_DROP, NULL);
}

/* the token at p, which is not white space */
static void vp_impl_caption_match(vp_impl_caption_lexer *l) {
    const char *word = vp_impl_caption_word(l, l->p);
    size_t bytes = 1;
    uint32_t code = vp_impl_score_get(l->p, l->end, &bytes);
    l->stop = l->reach = l->p;
    if (code == '<') {
        vp_impl_caption_rule_tags(l);
        vp_impl_caption_rule_addresses(l);
    }
    if (word > l->p) {
        vp_impl_caption_rule_contractions(l, word);
        vp_impl_caption_token(l, word);
        vp_impl_caption_rule_abbreviations(l);
    }
    vp_impl_caption_rule_apostrophe(l);
    if (vp_impl_caption_alnum(l, l->p)) {
        vp_impl_caption_rule_addresses(l);
        vp_impl_caption_rule_files(l);
        vp_impl_caption_rule_hyphens(l);
        vp_impl_caption_rule_compounds(l);
    }
    if (code < 0x80) {
        vp_impl_caption_rule_numbers(l);
        vp_impl_caption_rule_smileys(l);
        vp_impl_caption_rule_ascii(l, (int)code);
    }
    if (code == '\'' && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, l->p, 1)) && l->end - l->p > 2 && l->p[2] != ' ')
        vp_impl_caption_offer(l, l->p + 1, l->p + 3, VP_IMPL_CAPTION_DROP, NULL); /* a quote that opens */
    vp_impl_caption_rule_quotes(l, code, bytes);
    if (code >= 0x80) vp_impl_caption_rule_symbols(l, code, bytes);
    else vp_impl_caption_offer(l, l->p + 1, l->p + 1, VP_IMPL_CAPTION_DROP, NULL);
}

/* ---- tokens to text */
static void vp_impl_caption_say(vp_impl_score_text_out *o, const char *text) { vp_impl_score_text_add(o, text, strlen(text)); }

static void vp_impl_caption_emit(const vp_impl_caption_lexer *l, vp_impl_score_text_out *o) {
    const char *p = l->p;
    const size_t before = o->bytes;
    size_t bytes;
    int tag;
    if (l->kind == VP_IMPL_CAPTION_DROP) return;
    tag = *p == '<' && l->stop[-1] == '>';
    if (o->bytes) vp_impl_score_text_add(o, " ", 1);
    if (l->kind == VP_IMPL_CAPTION_SAID) {
        vp_impl_caption_say(o, l->said);
        return;
    }
    for (; p < l->stop; p += bytes) {
        uint32_t c = vp_impl_score_get(p, l->stop, &bytes);
        const char *quote = l->kind == VP_IMPL_CAPTION_QUOTES ? vp_impl_caption_quote(c) : NULL;
        if (quote) vp_impl_caption_say(o, quote);
        else if (c == '&' && l->stop - p >= 5 && memcmp(p, "&amp;", 5) == 0) {
            vp_impl_caption_say(o, "&");
            bytes = 5;
        }
        else if (c == '(' && !tag) vp_impl_caption_say(o, "-lrb-");
        else if (c == ')' && !tag) vp_impl_caption_say(o, "-rrb-");
        else if (vp_impl_score_unicode_space(c)) vp_impl_caption_say(o, "\xC2\xA0"); /* a blank inside a token does not part it */
        else if (c == 0x130) vp_impl_caption_say(o, "i\xCC\x87");
        else if (c == 0x3A3) vp_impl_score_text_code(o, vp_impl_score_unicode_sigma(l->p, p, l->stop, NULL));
        else if (c > 32 && c != 127 && c != 0xAD && c < 0x110000) /* no soft hyphens, no stray bytes */
            vp_impl_score_text_code(o, vp_impl_score_unicode_lower(c));
    }
    if (o->bytes == before + (before > 0)) o->bytes = before; /* nothing but soft hyphens and stray bytes is no word */
}

static void vp_impl_caption_tokens(const char *text, size_t bytes, vp_impl_score_text_out *o) {
    vp_impl_caption_lexer l;
    size_t length = 1;
    memset(&l, 0, sizeof l);
    l.end = text + bytes;
    l.no_close = l.no_at = l.no_hyphen = l.no_file = text;
    for (l.p = text; l.p < l.end; l.p = l.stop) {
        if (vp_impl_score_unicode_space(vp_impl_score_get(l.p, l.end, &length))) {
            l.stop = l.p + length;
            continue;
        }
        vp_impl_caption_match(&l);
        vp_impl_caption_emit(&l, o);
    }
}

VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed) {
    vp_impl_score_text_out o;
    if ((!text && bytes) || (!out && capacity)) return VP_ERR_RANGE;
    if (!text) text = "";
    o.out = NULL;
    o.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &o);
    if (needed) *needed = o.bytes;
    if (o.bytes >= capacity) return VP_ERR_CAPACITY;
    o.out = out;
    o.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &o);
    out[o.bytes] = 0;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------- corpus scores
 * Words get numbers 0, 1, 2 ... in the order in which they are met; an n-gram of 2 to 4 words gets the next free number, found by the number of
 * the n-gram without its last word and the number of that word. So two n-grams have the same number only when they are the same words. */
enum { VP_IMPL_CAPTION_N = 4 };
#define VP_IMPL_CAPTION_WORDS_MAX ((size_t)1 << 29)

typedef struct vp_impl_caption_list { void *data; size_t count, capacity; } vp_impl_caption_list;
typedef struct vp_impl_caption_entry { size_t start, bytes; uint64_t hash; } vp_impl_caption_entry; /* start: in the pool of letters */
typedef struct vp_impl_caption_gram { uint32_t prefix, word, id; } vp_impl_caption_gram; /* id 0: free; no n-gram has it */
/* a text's words: as str.split() cuts them, and as split(" ") does for ROUGE-L (mostly the same) */
typedef struct vp_impl_caption_line { size_t first, count, rouge_first, rouge_count; } vp_impl_caption_line;
typedef struct vp_impl_caption_book {
    vp_impl_caption_list letters, words, numbers, lines, scratch;
    uint32_t *word_table;  /* number + 1, or 0 */
    size_t word_table_size;
    vp_impl_caption_gram *gram_table;
    size_t gram_table_size, gram_count;
    uint32_t *grams[VP_IMPL_CAPTION_N]; /* [n - 1][place]: the n-gram that begins at a place of `numbers`; [0] are the numbers themselves */
    uint32_t *document_count, *in_candidate, *in_reference, *in_both; /* [numbers of words and n-grams] */
    uint32_t *candidate_list, *reference_list;                        /* [4 * words of the longest text] different n-grams */
    double *log_of;                                                   /* [images + 1] log of a count */
    uint64_t *places;                                                 /* [words] where a word stands in 64 words of the candidate */
    unsigned char *carry;                                             /* [words of the longest text] */
    size_t line_words_max;
} vp_impl_caption_book;

/* room for `more` elements behind the last; 0 without memory, the list is then as it was */
static int vp_impl_caption_reserve(vp_impl_caption_list *list, size_t more, size_t element_bytes) {
    size_t needed, bytes, capacity = list->capacity < 64 ? 64 : list->capacity;
    void *data;
    if (!vp_impl_size_add(list->count, more, &needed)) return 0;
    if (list->data && needed <= list->capacity) return 1;
    while (capacity < needed) capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    if (!vp_impl_size_multiply(capacity, element_bytes, &bytes) || !(data = realloc(list->data, bytes))) return 0;
    list->data = data;
    list->capacity = capacity;
    return 1;
}

static uint64_t vp_impl_caption_mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * UINT64_C(0x9E3779B97F4A7C15);
    a = (a ^ a >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return a ^ a >> 29;
}

static uint64_t vp_impl_caption_hash(const char *text, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; text += 8, bytes -= 8) {
        memcpy(&part, text, 8);
        hash = vp_impl_caption_mix(hash, part);
    }
    part = 0;
    if (bytes) memcpy(&part, text, bytes);
    return vp_impl_caption_mix(hash, part);
}

/* twice the size; a table is a power of two and at most half full */
static int vp_impl_caption_grow_words(vp_impl_caption_book *b) {
    const vp_impl_caption_entry *words = (const vp_impl_caption_entry *)b->words.data;
    size_t size = b->word_table_size ? b->word_table_size * 2 : 1024, i, at;
    uint32_t *table;
    if (size < b->word_table_size || !(table = (uint32_t *)calloc(size, sizeof *table))) return 0;
    for (i = 0; i < b->words.count; i++) {
        for (at = (size_t)words[i].hash & (size - 1); table[at]; at = (at + 1) & (size - 1)) {}
        table[at] = (uint32_t)i + 1;
    }
    free(b->word_table);
    b->word_table = table;
    b->word_table_size = size;
    return 1;
}

/* Puts the number of a word behind the others; 0 without memory. */
static int vp_impl_caption_add_word(vp_impl_caption_book *b, const char *text, size_t bytes) {
    uint64_t hash = vp_impl_caption_hash(text, bytes);
    vp_impl_caption_entry *word;
    size_t at;
    if (b->words.count * 2 >= b->word_table_size && !vp_impl_caption_grow_words(b)) return 0;
    if (!vp_impl_caption_reserve(&b->numbers, 1, sizeof(uint32_t))) return 0;
    for (at = (size_t)hash & (b->word_table_size - 1); b->word_table[at]; at = (at + 1) & (b->word_table_size - 1)) {
        word = (vp_impl_caption_entry *)b->words.data + (b->word_table[at] - 1);
        if (word->hash == hash && word->bytes == bytes && (!bytes || memcmp((char *)b->letters.data + word->start, text, bytes) == 0)) break;
    }
    if (!b->word_table[at]) {
        if (!vp_impl_caption_reserve(&b->words, 1, sizeof *word) || !vp_impl_caption_reserve(&b->letters, bytes, 1)) return 0;
        word = (vp_impl_caption_entry *)b->words.data + b->words.count++;
        word->start = b->letters.count;
        word->bytes = bytes;
        word->hash = hash;
        if (bytes) memcpy((char *)b->letters.data + word->start, text, bytes);
        b->letters.count += bytes;
        b->word_table[at] = (uint32_t)b->words.count;
    }
    ((uint32_t *)b->numbers.data)[b->numbers.count++] = b->word_table[at] - 1;
    return 1;
}

static vp_result vp_impl_caption_full(const vp_impl_caption_book *b) {
    return b->numbers.count >= VP_IMPL_CAPTION_WORDS_MAX ? VP_ERR_RANGE : VP_OK;
}

/* Splits a tokenised text twice; the second time only when single spaces would cut it otherwise. */
static vp_result vp_impl_caption_split(vp_impl_caption_book *b, const char *text, size_t bytes) {
    const char *p = text, *end = text + bytes, *start = text;
    vp_impl_caption_line line;
    size_t length = 1;
    int plain = 1;
    memset(&line, 0, sizeof line);
    line.first = line.rouge_first = b->numbers.count;
    for (;; p += length) {
        uint32_t c = p < end ? vp_impl_score_get(p, end, &length) : ' ';
        if (!vp_impl_score_unicode_space(c)) continue;
        if (vp_impl_caption_full(b) != VP_OK) return VP_ERR_RANGE;
        if (p > start && !vp_impl_caption_add_word(b, start, (size_t)(p - start))) return VP_ERR_MEMORY;
        if (p == start || c != ' ') plain = 0;
        if (p >= end) break;
        start = p + length;
    }
    line.count = line.rouge_count = b->numbers.count - line.first;
    if (!plain) {
        line.rouge_first = b->numbers.count;
        for (p = start = text;; p++) {
            if (p < end && *p != ' ') continue;
            if (vp_impl_caption_full(b) != VP_OK) return VP_ERR_RANGE;
            if (!vp_impl_caption_add_word(b, start, (size_t)(p - start))) return VP_ERR_MEMORY;
            if (p >= end) break;
            start = p + 1;
        }
        line.rouge_count = b->numbers.count - line.rouge_first;
    }
    if (line.count > b->line_words_max) b->line_words_max = line.count;
    if (line.rouge_count > b->line_words_max) b->line_words_max = line.rouge_count;
    if (!vp_impl_caption_reserve(&b->lines, 1, sizeof line)) return VP_ERR_MEMORY;
    ((vp_impl_caption_line *)b->lines.data)[b->lines.count++] = line;
    return VP_OK;
}

static vp_result vp_impl_caption_read(vp_impl_caption_book *b, const vp_caption_text *t, vp_caption_input input) {
    size_t needed = 0;
    vp_result result;
    if (!t->text && t->bytes) return VP_ERR_RANGE;
    if (input == VP_CAPTION_TOKENISED) return vp_impl_caption_split(b, t->text ? t->text : "", t->bytes);
    for (;;) {
        result = vp_caption_tokenise(t->text, t->bytes, (char *)b->scratch.data, b->scratch.capacity, &needed);
        if (result != VP_ERR_CAPACITY) break;
        if (needed == SIZE_MAX || !vp_impl_caption_reserve(&b->scratch, needed + 1, 1)) return VP_ERR_MEMORY;
    }
    return result == VP_OK ? vp_impl_caption_split(b, (const char *)b->scratch.data, needed) : result;
}

static int vp_impl_caption_grow_grams(vp_impl_caption_book *b) {
    size_t size = b->gram_table_size ? b->gram_table_size * 2 : 1024, i, at;
    vp_impl_caption_gram *table;
    if (size < b->gram_table_size || !(table = (vp_impl_caption_gram *)calloc(size, sizeof *table))) return 0;
    for (i = 0; i < b->gram_table_size; i++) {
        const vp_impl_caption_gram *g = &b->gram_table[i];
        if (!g->id) continue;
        at = (size_t)vp_impl_caption_mix(g->prefix, g->word) & (size - 1);
        while (table[at].id) at = (at + 1) & (size - 1);
        table[at] = *g;
    }
    free(b->gram_table);
    b->gram_table = table;
    b->gram_table_size = size;
    return 1;
}

/* the number of an n-gram; 0 without memory */
static uint32_t vp_impl_caption_gram_number(vp_impl_caption_book *b, uint32_t prefix, uint32_t word) {
    vp_impl_caption_gram *g;
    size_t at;
    if (b->gram_count * 2 >= b->gram_table_size && !vp_impl_caption_grow_grams(b)) return 0;
    at = (size_t)vp_impl_caption_mix(prefix, word) & (b->gram_table_size - 1);
    for (;; at = (at + 1) & (b->gram_table_size - 1)) {
        g = &b->gram_table[at];
        if (!g->id) break;
        if (g->prefix == prefix && g->word == word) return g->id;
    }
    g->prefix = prefix;
    g->word = word;
    g->id = (uint32_t)(b->words.count + b->gram_count++);
    return g->id;
}

static vp_result vp_impl_caption_number_grams(vp_impl_caption_book *b) {
    const vp_impl_caption_line *lines = (const vp_impl_caption_line *)b->lines.data;
    size_t line, i, n;
    b->grams[0] = (uint32_t *)b->numbers.data;
    for (n = 1; n < VP_IMPL_CAPTION_N; n++)
        if (!(b->grams[n] = (uint32_t *)malloc((b->numbers.count + 1) * sizeof(uint32_t)))) return VP_ERR_MEMORY;
    for (line = 0; line < b->lines.count; line++)
        for (n = 1; n < VP_IMPL_CAPTION_N; n++)
            for (i = 0; i + n < lines[line].count; i++) {
                size_t at = lines[line].first + i;
                b->grams[n][at] = vp_impl_caption_gram_number(b, b->grams[n - 1][at], b->grams[0][at + n]);
                if (!b->grams[n][at]) return VP_ERR_MEMORY;
            }
    return VP_OK;
}

/* Everything that the scoring needs; nothing can fail behind it. */
static vp_result vp_impl_caption_prepare(vp_impl_caption_book *b, size_t image_count) {
    size_t numbers = b->words.count + b->gram_count + 1, longest = b->line_words_max + 1, i, bytes;
    if (!vp_impl_size_multiply(image_count, sizeof(double), &bytes) || !vp_impl_size_add(bytes, sizeof(double), &bytes)) return VP_ERR_MEMORY;
    b->document_count = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_candidate = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_reference = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_both = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->candidate_list = (uint32_t *)calloc(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    b->reference_list = (uint32_t *)calloc(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    b->places = (uint64_t *)calloc(b->words.count + 1, sizeof(uint64_t));
    b->carry = (unsigned char *)calloc(longest, 1);
    b->log_of = (double *)malloc(bytes);
    if (!b->document_count || !b->in_candidate || !b->in_reference || !b->in_both || !b->candidate_list || !b->reference_list || !b->places
        || !b->carry || !b->log_of) return VP_ERR_MEMORY;
    for (i = 0; i <= image_count; i++) b->log_of[i] = i ? log((double)i) : 0.0; /* an n-gram of no reference counts as one of a single image */
    return VP_OK;
}

static void vp_impl_caption_release(vp_impl_caption_book *b) {
    size_t n;
    free(b->letters.data);
    free(b->words.data);
    free(b->numbers.data);
    free(b->lines.data);
    free(b->scratch.data);
    free(b->word_table);
    free(b->gram_table);
    for (n = 1; n < VP_IMPL_CAPTION_N; n++) free(b->grams[n]);
    free(b->document_count);
    free(b->in_candidate);
    free(b->in_reference);
    free(b->in_both);
    free(b->candidate_list);
    free(b->reference_list);
    free(b->log_of);
    free(b->places);
    free(b->carry);
}

/* images whose references have an n-gram; in_candidate holds the last such image meanwhile */
static void vp_impl_caption_count_documents(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)b->lines.data;
    size_t image, reference, n, i;
    for (image = 0; image < image_count; image++) {
        line++; /* the candidate */
        for (reference = 0; reference < images[image].reference_count; reference++, line++)
            for (n = 0; n < VP_IMPL_CAPTION_N; n++)
                for (i = 0; i + n < line->count; i++) {
                    uint32_t number = b->grams[n][line->first + i];
                    if (b->in_candidate[number] == image + 1) continue;
                    b->in_candidate[number] = (uint32_t)(image + 1);
                    b->document_count[number]++;
                }
    }
    memset(b->in_candidate, 0, (b->words.count + b->gram_count + 1) * sizeof(uint32_t));
}

/* Counts a text's n-grams: list has the different ones in the order of the text, first[n] .. first[n + 1] those of n + 1 words. */
static void vp_impl_caption_count(const vp_impl_caption_book *b, const vp_impl_caption_line *line, uint32_t *counts, uint32_t *list,
                                  size_t first[VP_IMPL_CAPTION_N + 1]) {
    size_t n, i, found = 0;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        first[n] = found;
        for (i = 0; i + n < line->count; i++) {
            uint32_t number = b->grams[n][line->first + i];
            if (!counts[number]++) list[found++] = number;
        }
    }
    first[n] = found;
}

/* length of the longest common subsequence: 64 words of the candidate at a time, a bit for each (Hyyro 2004, "Bit-parallel LCS-length") */
static size_t vp_impl_caption_common(const vp_impl_caption_book *b, const vp_impl_caption_line *candidate, const vp_impl_caption_line *reference) {
    const uint32_t *c = b->grams[0] + candidate->rouge_first, *r = b->grams[0] + reference->rouge_first;
    size_t start, i, common = 0;
    memset(b->carry, 0, reference->rouge_count);
    for (start = 0; start < candidate->rouge_count; start += 64) {
        size_t width = candidate->rouge_count - start < 64 ? candidate->rouge_count - start : 64;
        uint64_t open = ~(uint64_t)0;
        for (i = 0; i < width; i++) b->places[c[start + i]] |= (uint64_t)1 << i;
        for (i = 0; i < reference->rouge_count; i++) {
            uint64_t here = open & b->places[r[i]], sum = open + here, more = sum + b->carry[i];
            b->carry[i] = (unsigned char)(sum < open || more < sum);
            open = more | (open ^ here);
        }
        for (i = 0; i < width; i++) {
            common += (size_t)(~open >> i & 1);
            b->places[c[start + i]] = 0;
        }
    }
    return common;
}

/* what BLEU counts, of one image or of all */
typedef struct vp_impl_caption_bleu { uint64_t correct[VP_IMPL_CAPTION_N], guesses[VP_IMPL_CAPTION_N], words, reference_words; } vp_impl_caption_bleu;

static void vp_impl_caption_bleu_score(const vp_impl_caption_bleu *counts, double bleu[VP_IMPL_CAPTION_N]) {
    double product = 1.0, ratio = ((double)counts->words + 1e-15) / ((double)counts->reference_words + 1e-9);
    size_t n;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        product *= ((double)counts->correct[n] + 1e-15) / ((double)counts->guesses[n] + 1e-9);
        bleu[n] = pow(product, 1.0 / (double)(n + 1));
        if (ratio < 1.0) bleu[n] *= exp(1.0 - 1.0 / ratio);
    }
}

/* CIDEr-D of one reference, summed over n. What the reference shares with the candidate goes into in_both, for BLEU. */
static double vp_impl_caption_similarity(vp_impl_caption_book *b, const vp_impl_caption_line *candidate, const vp_impl_caption_line *reference,
                                         const double norms[VP_IMPL_CAPTION_N], double log_images) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i;
    const double bigrams = (double)(candidate->count ? candidate->count - 1 : 0), other = (double)(reference->count ? reference->count - 1 : 0);
    const double penalty = exp(-((bigrams - other) * (bigrams - other)) / 72.0);
    double sum = 0.0;
    vp_impl_caption_count(b, reference, b->in_reference, b->reference_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        double product = 0.0, norm = 0.0;
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = b->reference_list[i], r = b->in_reference[number], c = b->in_candidate[number];
            const double weight = log_images - b->log_of[b->document_count[number]], mine = c * weight, theirs = r * weight;
            product += (mine < theirs ? mine : theirs) * theirs;
            norm += theirs * theirs;
            if ((c < r ? c : r) > b->in_both[number]) b->in_both[number] = c < r ? c : r;
            b->in_reference[number] = 0;
        }
        norm = sqrt(norm);
        if (norms[n] != 0.0 && norm != 0.0) product /= norms[n] * norm;
        sum += product * penalty;
    }
    return sum;
}

/* One image: `candidate` is its line, the references' lines follow. */
static void vp_impl_caption_image(vp_impl_caption_book *b, const vp_impl_caption_line *candidate, size_t reference_count, double log_images,
                                  vp_impl_caption_bleu *counts, vp_caption_scores *scores) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i, reference, closest = 0, distance = SIZE_MAX;
    double norms[VP_IMPL_CAPTION_N] = {0.0, 0.0, 0.0, 0.0}, similarity = 0.0, precision = 0.0, recall = 0.0;
    vp_impl_caption_count(b, candidate, b->in_candidate, b->candidate_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = b->candidate_list[i];
            const double weight = b->in_candidate[number] * (log_images - b->log_of[b->document_count[number]]);
            norms[n] += weight * weight;
        }
        norms[n] = sqrt(norms[n]);
    }
    for (reference = 1; reference <= reference_count; reference++) {
        const vp_impl_caption_line *line = candidate + reference;
        const size_t apart = line->count < candidate->count ? candidate->count - line->count : line->count - candidate->count;
        const double common = (double)vp_impl_caption_common(b, candidate, line);
        similarity += vp_impl_caption_similarity(b, candidate, line, norms, log_images);
        if (apart < distance || (apart == distance && line->count < closest)) {
            distance = apart;
            closest = line->count;
        }
        if (common / (double)candidate->rouge_count > precision) precision = common / (double)candidate->rouge_count;
        if (common / (double)line->rouge_count > recall) recall = common / (double)line->rouge_count;
    }
    memset(counts, 0, sizeof *counts);
    counts->words = candidate->count;
    counts->reference_words = closest;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        counts->guesses[n] = candidate->count > n ? candidate->count - n : 0;
        for (i = first[n]; i < first[n + 1]; i++) {
            counts->correct[n] += b->in_both[b->candidate_list[i]];
            b->in_both[b->candidate_list[i]] = b->in_candidate[b->candidate_list[i]] = 0;
        }
    }
    vp_impl_caption_bleu_score(counts, scores->bleu);
    scores->cider_d = similarity / VP_IMPL_CAPTION_N / (double)reference_count * 10.0;
    scores->rouge_l = precision != 0.0 && recall != 0.0 ? (1.0 + 1.2 * 1.2) * precision * recall / (recall + 1.2 * 1.2 * precision) : 0.0;
}

static void vp_impl_caption_score(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count, vp_caption_scores *each,
                                  vp_caption_scores *corpus) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)b->lines.data;
    vp_impl_caption_bleu sums, counts;
    vp_caption_scores mean, scores;
    size_t image, n;
    memset(&sums, 0, sizeof sums);
    memset(&mean, 0, sizeof mean);
    vp_impl_caption_count_documents(b, images, image_count);
    for (image = 0; image < image_count; image++) {
        vp_impl_caption_image(b, line, images[image].reference_count, b->log_of[image_count], &counts, &scores);
        line += images[image].reference_count + 1;
        if (each) each[image] = scores;
        for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
            sums.correct[n] += counts.correct[n];
            sums.guesses[n] += counts.guesses[n];
        }
        sums.words += counts.words;
        sums.reference_words += counts.reference_words;
        mean.cider_d += scores.cider_d;
        mean.rouge_l += scores.rouge_l;
    }
    vp_impl_caption_bleu_score(&sums, mean.bleu);
    mean.cider_d /= (double)image_count;
    mean.rouge_l /= (double)image_count;
    if (corpus) *corpus = mean;
}

static vp_result vp_impl_caption_read_all(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count, vp_caption_input input,
                                          size_t *image) {
    vp_result result;
    size_t i;
    for (*image = 0; *image < image_count; ++*image) {
        const vp_caption_image *one = &images[*image];
        if (!one->references || !one->reference_count) return VP_ERR_RANGE;
        result = vp_impl_caption_read(b, &one->candidate, input);
        for (i = 0; i < one->reference_count && result == VP_OK; i++) result = vp_impl_caption_read(b, &one->references[i], input);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}

VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, vp_caption_input input, vp_caption_scores *each,
                                   vp_caption_scores *corpus, vp_error *error) {
    vp_impl_caption_book book;
    vp_impl_message where = {{0}, 0};
    vp_result result;
    size_t image = 0;
    if (!images || !image_count) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "no images to score");
    if (image_count >= VP_IMPL_CAPTION_WORDS_MAX) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "over 2^29 images; score them in parts");
    if (input != VP_CAPTION_TOKENISED && input != VP_CAPTION_RAW) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "unknown kind of input");
    memset(&book, 0, sizeof book);
    result = vp_impl_caption_read_all(&book, images, image_count, input, &image);
    vp_impl_message_text(&where, "image ");
    vp_impl_message_int(&where, (int64_t)image);
    if (result == VP_ERR_RANGE) {
        if (!images[image].references || !images[image].reference_count)
            vp_fail(error, result, -1, where.text, "there is no reference caption; leave the image out");
        else if (vp_impl_caption_full(&book) != VP_OK) vp_fail(error, result, -1, where.text, "over 2^29 words in all; score the corpus in parts");
        else vp_fail(error, result, -1, where.text, "a text is NULL");
    } else {
        if (result == VP_OK) result = vp_impl_caption_number_grams(&book);
        if (result == VP_OK) result = vp_impl_caption_prepare(&book, image_count);
        if (result == VP_OK) vp_impl_caption_score(&book, images, image_count, each, corpus);
        else vp_fail(error, result, -1, "captions", "not enough memory; score the corpus in parts");
    }
    vp_impl_caption_release(&book);
    return result;
}
/* ============================================================================================== analysis >>analysis */

/* ---- what all parts share */
/* order of indices: by key, then by `second` from large to small (NULL: not), then by index */
static int vp_impl_index_before(const double *key, const double *second, uint32_t a, uint32_t b) {
    if (key[a] < key[b] || key[a] > key[b]) return key[a] < key[b];
    if (second && (second[a] < second[b] || second[a] > second[b])) return second[a] > second[b];
    return a < b;
}

/* heap sort, as vp_impl_sort_double */
static void vp_impl_sort_index(const double *key, const double *second, uint32_t *index, size_t count) {
    size_t start = count / 2, end = count, parent, child;
    while (end > 1) {
        uint32_t held;
        if (start > 0) {
            held = index[--start];
        } else {
            held = index[--end];
            index[end] = index[0];
        }
        parent = start;
        while ((child = 2 * parent + 1) < end) {
            if (child + 1 < end && vp_impl_index_before(key, second, index[child], index[child + 1])) child++;
            if (!vp_impl_index_before(key, second, held, index[child])) break;
            index[parent] = index[child];
            parent = child;
        }
        index[parent] = held;
    }
}

static int vp_impl_share(double x) { /* strictly between 0 and 1; NaN is not */
    return x > 0.0 && x < 1.0;
}

static int vp_impl_number(double x) {
    return x - x == 0.0;
}

static int vp_impl_counts_fit(size_t count) {
    return (uint64_t)count <= UINT32_MAX;
}

/* bytes of `count` elements in an arena, added to *bytes; SIZE_MAX once it overflows */
static void vp_impl_arena_need(size_t *bytes, size_t count, size_t element_bytes) {
    size_t size;
    if (*bytes == SIZE_MAX) return;
    if (!vp_impl_size_multiply(count, element_bytes, &size) || !vp_impl_size_add(size, 64, &size) || !vp_impl_size_add(*bytes, size, bytes))
        *bytes = SIZE_MAX;
}

static vp_arena vp_impl_arena_of(void *scratch, size_t scratch_bytes) {
    vp_arena arena;
    arena.base = (unsigned char *)scratch;
    arena.capacity_bytes = scratch ? scratch_bytes : 0;
    arena.used_bytes = 0;
    return arena;
}

/* ---- distributions */
VP_API double vp_normal_tail(double z) {
    return 0.5 * erfc(z * 0.70710678118654752440);
}

static double vp_impl_polynomial(const double *coefficient, int count, double x) { /* highest power first */
    double sum = coefficient[0];
    int i;
    for (i = 1; i < count; i++) sum = sum * x + coefficient[i];
    return sum;
}

/* Wichura's algorithm AS 241, PPND16 (Applied Statistics 37, 1988): three rational functions */
VP_API double vp_normal_quantile(double probability) {
    static const double a[8] = {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                                13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608};
    static const double b[8] = {5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                                5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0};
    static const double c[8] = {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
                                3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734};
    static const double d[8] = {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
                                0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0};
    static const double e[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
                                0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772};
    static const double f[8] = {2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
                                0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0};
    const double q = probability - 0.5;
    double r, value;
    if (!vp_impl_share(probability)) return (double)NAN;
    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        return q * vp_impl_polynomial(a, 8, r) / vp_impl_polynomial(b, 8, r);
    }
    r = sqrt(-log(q < 0.0 ? probability : 1.0 - probability));
    if (r <= 5.0) value = vp_impl_polynomial(c, 8, r - 1.6) / vp_impl_polynomial(d, 8, r - 1.6);
    else value = vp_impl_polynomial(e, 8, r - 5.0) / vp_impl_polynomial(f, 8, r - 5.0);
    return q < 0.0 ? -value : value;
}

VP_API double vp_student_tail(double t, double degrees) {
    if (!(t - t == 0.0) || !(degrees > 0.0)) return (double)NAN;
    return t < 0.0 ? 1.0 - vp_impl_student_tail(-t, degrees) : vp_impl_student_tail(t, degrees);
}

VP_API double vp_binomial_half(uint64_t successes, uint64_t count) {
    if (count >= UINT64_C(1) << 53) return (double)NAN;
    if (successes >= count) return 1.0;
    return vp_impl_beta((double)(count - successes), (double)successes + 1.0, 0.5, 0.5);
}

/* ---- tests and intervals */
VP_API vp_result vp_median_interval(uint64_t count, double level, uint64_t *low_rank, uint64_t *high_rank, double *coverage) {
    uint64_t rank;
    if (!count || count >= UINT64_C(1) << 53 || count >= SIZE_MAX || !vp_impl_share(level) || !low_rank || !high_rank || !coverage)
        return VP_ERR_RANGE;
    rank = (uint64_t)vp_impl_order_rank((size_t)count, 0.5, 0.5 * (1.0 - level));
    if (!rank) return VP_ERR_MISMATCH;
    *coverage = 1.0 - 2.0 * vp_binomial_half(rank - 1, count);
    *low_rank = rank;
    *high_rank = count + 1 - rank;
    return VP_OK;
}

VP_API double vp_mcnemar(uint64_t only_first_correct, uint64_t only_second_correct) {
    const uint64_t least = only_first_correct < only_second_correct ? only_first_correct : only_second_correct;
    const uint64_t limit = UINT64_C(1) << 53;
    double p;
    if (only_first_correct >= limit || only_second_correct >= limit) return (double)NAN;
    p = 2.0 * vp_binomial_half(least, only_first_correct + only_second_correct);
    return p > 1.0 ? 1.0 : p;
}

/* Student's interval from a mean and a sum of squared deviations; `quantile` is that of count - 1 degrees */
static vp_result vp_impl_mean_interval(size_t count, double mean, double squares, double quantile, vp_mean_interval *out) {
    vp_mean_interval made;
    double reach;
    made.count = count;
    made.degrees = (double)(count - 1);
    made.mean = mean;
    made.error = sqrt(squares / made.degrees / (double)count);
    made.t = made.error > 0.0 ? mean / made.error : mean > 0.0 ? HUGE_VAL : mean < 0.0 ? -HUGE_VAL : 0.0;
    made.p = made.error > 0.0 ? 2.0 * vp_impl_student_tail(fabs(made.t), made.degrees) : mean < 0.0 || mean > 0.0 ? 0.0 : 1.0;
    reach = made.error * quantile;
    made.low = mean - reach;
    made.high = mean + reach;
    if (!vp_impl_number(made.low) || !vp_impl_number(made.high) || !vp_impl_number(made.error)) return VP_ERR_RANGE;
    *out = made;
    return VP_OK;
}

/* of Student's t with count - 1 degrees, for a two-sided interval */
static double vp_impl_quantile(size_t count, double level) {
    return vp_statistics_student(0.5 + 0.5 * level, (double)(count - 1));
}

VP_API vp_result vp_paired_t(const double *x, const double *y, size_t count, double level, vp_mean_interval *interval) {
    double mean = 0.0, squares = 0.0, rest = 0.0, step;
    size_t i;
    if (!y || count < 2 || !vp_impl_share(level) || !interval) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        step = x ? y[i] - x[i] : y[i];
        if (!vp_impl_number(step)) return VP_ERR_RANGE;
        mean += step;
    }
    mean /= (double)count;
    for (i = 0; i < count; i++) { /* the mean's own rounding is what `rest` takes out */
        step = (x ? y[i] - x[i] : y[i]) - mean;
        rest += step;
        squares += step * step;
    }
    mean += rest / (double)count;
    squares -= rest * rest / (double)count;
    return vp_impl_mean_interval(count, mean, squares > 0.0 ? squares : 0.0, vp_impl_quantile(count, level), interval);
}

/* Mean ranks of |values| (or of values) in `order`, from 1; returns the sum of t^3 - t over groups of equal ones. */
static double vp_impl_ranks(const double *values, const uint32_t *order, size_t count, double *ranks) {
    double ties = 0.0;
    size_t i, j, k;
    for (i = 0; i < count; i = j) {
        double group;
        for (j = i + 1; j < count && !(values[order[j]] > values[order[i]]); j++) {}
        group = (double)(j - i);
        ties += group * group * group - group;
        for (k = i; k < j; k++) ranks[order[k]] = 0.5 * (double)(i + 1 + j);
    }
    return ties;
}

VP_API size_t vp_wilcoxon_scratch_bytes(size_t count) {
    size_t bytes = 64;
    const size_t n = count < VP_EXACT_WILCOXON_LIMIT ? count : (size_t)VP_EXACT_WILCOXON_LIMIT;
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, n * (n + 1) / 4 + 1, sizeof(double));
    return bytes;
}

/* P(W <= statistic) of the signed-rank sum: each rank is in or out with 1/2. Only additions of positive numbers: no digit is lost. */
static double vp_impl_wilcoxon_below(size_t count, size_t statistic, double *chance) {
    double sum = 0.0;
    size_t i, rank;
    memset(chance, 0, (statistic + 1) * sizeof *chance);
    chance[0] = 1.0;
    for (rank = 1; rank <= count; rank++) {
        for (i = statistic + 1; i-- > 0;) chance[i] = 0.5 * (i >= rank ? chance[i] + chance[i - rank] : chance[i]);
    }
    for (i = 0; i <= statistic; i++) sum += chance[i];
    return sum;
}

VP_API vp_result vp_wilcoxon(const double *x, const double *y, size_t count, void *scratch, size_t scratch_bytes, vp_rank_test *test) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    const size_t most = count < VP_EXACT_WILCOXON_LIMIT ? count : (size_t)VP_EXACT_WILCOXON_LIMIT;
    double *size = (double *)vp_arena_take(&arena, count, sizeof(double)), *ranks = (double *)vp_arena_take(&arena, count, sizeof(double));
    uint32_t *order = (uint32_t *)vp_arena_take(&arena, count, sizeof(uint32_t));
    double *chance = (double *)vp_arena_take(&arena, most * (most + 1) / 4 + 1, sizeof(double));
    double ties, plus = 0.0, minus = 0.0, n, deviation;
    vp_rank_test made;
    size_t i, used = 0;
    if (!x || !y || !test || !count || !vp_impl_counts_fit(count)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!vp_impl_number(x[i] - y[i])) return VP_ERR_RANGE;
    if (!size || !ranks || !order || !chance) return VP_ERR_CAPACITY;
    for (i = 0; i < count; i++) {
        size[i] = fabs(x[i] - y[i]);
        if (size[i] > 0.0) order[used++] = (uint32_t)i;
    }
    vp_impl_sort_index(size, NULL, order, used);
    ties = vp_impl_ranks(size, order, used, ranks);
    for (i = 0; i < used; i++) {
        if (x[order[i]] > y[order[i]]) plus += ranks[order[i]];
        else minus += ranks[order[i]];
    }
    n = (double)used;
    made.statistic = plus < minus ? plus : minus;
    made.used = used;
    made.ties = ties > 0.0;
    deviation = sqrt((n * (n + 1.0) * (2.0 * n + 1.0) - 0.5 * ties) / 24.0);
    made.p_normal = used ? erfc((0.25 * n * (n + 1.0) - made.statistic) / deviation * 0.70710678118654752440) : 1.0;
    made.p_normal_continuity = (double)NAN;
    made.p_exact = (double)NAN;
    if (!made.ties && used == count && used <= VP_EXACT_WILCOXON_LIMIT) {
        const double p = 2.0 * vp_impl_wilcoxon_below(used, (size_t)made.statistic, chance);
        made.p_exact = p > 1.0 ? 1.0 : p;
    }
    *test = made;
    return VP_OK;
}

static int vp_impl_mann_whitney_exact(size_t count_x, size_t count_y) {
    return count_x && count_y <= VP_EXACT_MANN_WHITNEY_LIMIT / count_x;
}

VP_API size_t vp_mann_whitney_scratch_bytes(size_t count_x, size_t count_y) {
    size_t bytes = 64, all;
    if (!vp_impl_size_add(count_x, count_y, &all)) return SIZE_MAX;
    vp_impl_arena_need(&bytes, all, sizeof(double));
    vp_impl_arena_need(&bytes, all, sizeof(double));
    vp_impl_arena_need(&bytes, all, sizeof(uint32_t));
    if (vp_impl_mann_whitney_exact(count_x, count_y))
        vp_impl_arena_need(&bytes, ((count_x < count_y ? count_x : count_y) + 1) * (count_x * count_y / 2 + 1), sizeof(double));
    return bytes;
}

/* P(U <= statistic). Of m + n ranked values the largest is of x with m / (m + n), and beats all n of y: P(m, n, u) = m / (m + n) P(m - 1, n, u - n) +
 * n / (m + n) P(m, n - 1, u). `chance`: [short + 1, statistic + 1], rows m, made for n = 0, 1, ... long. Only additions of positive numbers. */
static double vp_impl_mann_whitney_below(size_t shorter, size_t longer, size_t statistic, double *chance) {
    const size_t width = statistic + 1;
    double sum = 0.0;
    size_t m, n, u;
    memset(chance, 0, (shorter + 1) * width * sizeof *chance);
    for (m = 0; m <= shorter; m++) chance[m * width] = 1.0;
    for (n = 1; n <= longer; n++) {
        for (m = 1; m <= shorter; m++) { /* row m - 1 is already that of n */
            const double with = (double)m / (double)(m + n), without = (double)n / (double)(m + n);
            for (u = 0; u < width; u++) {
                double p = without * chance[m * width + u];
                if (u >= n) p += with * chance[(m - 1) * width + u - n];
                chance[m * width + u] = p;
            }
        }
    }
    for (u = 0; u < width; u++) sum += chance[shorter * width + u];
    return sum;
}

VP_API vp_result vp_mann_whitney(const double *x, size_t count_x, const double *y, size_t count_y, void *scratch, size_t scratch_bytes,
                                 vp_rank_test *test) {
    const size_t all = count_x + count_y, shorter = count_x < count_y ? count_x : count_y;
    const double n1 = (double)count_x, n2 = (double)count_y, n = n1 + n2;
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    double *values, *ranks, *chance = NULL, ties, sum = 0.0, larger, variance, p;
    uint32_t *order;
    vp_rank_test made;
    size_t i;
    if (!x || !y || !test || !count_x || !count_y || all < count_x || !vp_impl_counts_fit(all)) return VP_ERR_RANGE;
    if (!vp_impl_finite(x, count_x) || !vp_impl_finite(y, count_y)) return VP_ERR_RANGE;
    values = (double *)vp_arena_take(&arena, all, sizeof(double));
    ranks = (double *)vp_arena_take(&arena, all, sizeof(double));
    order = (uint32_t *)vp_arena_take(&arena, all, sizeof(uint32_t));
    if (vp_impl_mann_whitney_exact(count_x, count_y))
        chance = (double *)vp_arena_take(&arena, (shorter + 1) * (count_x * count_y / 2 + 1), sizeof(double));
    if (!values || !ranks || !order || (!chance && vp_impl_mann_whitney_exact(count_x, count_y))) return VP_ERR_CAPACITY;
    memcpy(values, x, count_x * sizeof *x);
    memcpy(values + count_x, y, count_y * sizeof *y);
    for (i = 0; i < all; i++) order[i] = (uint32_t)i;
    vp_impl_sort_index(values, NULL, order, all);
    ties = vp_impl_ranks(values, order, all, ranks);
    for (i = 0; i < count_x; i++) sum += ranks[i];
    made.statistic = sum - 0.5 * n1 * (n1 + 1.0);
    made.used = all;
    made.ties = ties > 0.0;
    larger = made.statistic > n1 * n2 - made.statistic ? made.statistic : n1 * n2 - made.statistic;
    variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    made.p_normal = variance > 0.0 ? erfc((larger - 0.5 * n1 * n2) / sqrt(variance) * 0.70710678118654752440) : 1.0;
    p = variance > 0.0 ? erfc((larger - 0.5 * n1 * n2 - 0.5) / sqrt(variance) * 0.70710678118654752440) : 1.0;
    made.p_normal_continuity = p > 1.0 ? 1.0 : p;
    made.p_exact = (double)NAN;
    if (!made.ties && chance) {
        p = 2.0 * vp_impl_mann_whitney_below(shorter, all - shorter, (size_t)(n1 * n2 - larger), chance);
        made.p_exact = p > 1.0 ? 1.0 : p;
    }
    *test = made;
    return VP_OK;
}

VP_API vp_result vp_adjust(const double *p, size_t count, vp_adjustment method, uint32_t *order, double *adjusted) {
    double held = 0.0, value;
    size_t i, k;
    if (count && (!p || !order || !adjusted)) return VP_ERR_RANGE;
    if ((method != VP_ADJUST_NONE && method != VP_ADJUST_HOLM && method != VP_ADJUST_BENJAMINI_HOCHBERG) || !vp_impl_counts_fit(count))
        return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!(p[i] >= 0.0 && p[i] <= 1.0)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) order[i] = (uint32_t)i;
    vp_impl_sort_index(p, NULL, order, count);
    if (method == VP_ADJUST_NONE && adjusted != p) for (i = 0; i < count; i++) adjusted[i] = p[i];
    if (method == VP_ADJUST_HOLM) { /* from the smallest: no adjusted value is below the one before it */
        for (i = 0; i < count; i++) {
            value = p[order[i]] * (double)(count - i);
            if (value > held) held = value;
            adjusted[order[i]] = held > 1.0 ? 1.0 : held;
        }
    }
    if (method == VP_ADJUST_BENJAMINI_HOCHBERG) { /* from the largest: none is above the one behind it */
        held = 1.0;
        for (i = 0; i < count; i++) {
            k = count - 1 - i;
            value = p[order[k]] * (double)count / (double)(k + 1);
            if (value < held) held = value;
            adjusted[order[k]] = held;
        }
    }
    return VP_OK;
}

VP_API const char *vp_verdict_name(vp_verdict verdict) {
    switch ((int)verdict) {
    case VP_VERDICT_UNSURE: return "UNSURE";
    case VP_VERDICT_SAME: return "SAME";
    case VP_VERDICT_FASTER: return "FASTER";
    case VP_VERDICT_SLOWER: return "SLOWER";
    default: return NULL;
    }
}

static vp_verdict vp_impl_verdict(const vp_comparison *c, double alpha) {
    if (c->p_equivalence <= alpha) return VP_VERDICT_SAME;
    if (!(c->p_difference <= alpha)) return VP_VERDICT_UNSURE;
    return c->estimate < 0.0 ? VP_VERDICT_FASTER : VP_VERDICT_SLOWER;
}

/* One pair's difference before the scale's factor; 0: the pair does not fit the scale. */
static int vp_impl_compare_step(double first, double second, vp_scale scale, double *step) {
    if (scale != VP_SCALE_ABSOLUTE && !(first > 0.0)) return 0;
    if (scale == VP_SCALE_LOG && !(second > 0.0)) return 0;
    *step = scale == VP_SCALE_LOG ? log(second) - log(first) : second - first;
    return vp_impl_number(*step) && vp_impl_number(first);
}

/* mean and squared deviations of the steps, both passes; 0: a value that does not fit */
static int vp_impl_compare_moments(const double *first, const double *second, size_t count, vp_scale scale, double *mean, double *squares) {
    double sum = 0.0, base = 0.0, rest = 0.0, step;
    size_t i;
    for (i = 0; i < count; i++) {
        if (!vp_impl_compare_step(first[i], second[i], scale, &step)) return 0;
        sum += step;
        base += first[i];
    }
    base = scale == VP_SCALE_RELATIVE ? (double)count / base : 1.0;
    *mean = sum / (double)count;
    *squares = 0.0;
    for (i = 0; i < count; i++) {
        vp_impl_compare_step(first[i], second[i], scale, &step);
        step -= *mean;
        rest += step;
        *squares += step * step;
    }
    *mean = (*mean + rest / (double)count) * base;
    *squares = (*squares - rest * rest / (double)count) * base * base;
    if (*squares < 0.0) *squares = 0.0;
    return 1;
}

/* the one-sided p value of "the mean lies beyond the margin" */
static double vp_impl_one_sided(double distance, double error, double degrees) {
    if (!(error > 0.0)) return distance > 0.0 ? 0.0 : 1.0;
    return vp_student_tail(distance / error, degrees);
}

VP_API vp_result vp_compare_paired(const double *first, const double *second, size_t count, vp_scale scale, double margin, double alpha,
                                   vp_comparison *comparison) {
    const int logarithmic = scale == VP_SCALE_LOG;
    vp_mean_interval interval;
    vp_comparison made;
    double mean, squares, below, above;
    if (!first || !second || !comparison || count < 2 || !(margin > 0.0 && margin < HUGE_VAL) || !(alpha > 0.0 && alpha < 0.5)) return VP_ERR_RANGE;
    if (scale != VP_SCALE_ABSOLUTE && scale != VP_SCALE_RELATIVE && scale != VP_SCALE_LOG) return VP_ERR_RANGE;
    if (!vp_impl_compare_moments(first, second, count, scale, &mean, &squares)) return VP_ERR_RANGE;
    if (vp_impl_mean_interval(count, mean, squares, vp_impl_quantile(count, 1.0 - alpha), &interval) != VP_OK) return VP_ERR_RANGE;
    /* a share of -margin is the logarithm of 1 / (1 + margin): as far from 0 as that of +margin */
    below = logarithmic ? log1p(margin) : margin;
    above = below;
    made.count = count;
    made.estimate = logarithmic ? expm1(interval.mean) : interval.mean;
    made.low = logarithmic ? expm1(interval.low) : interval.low;
    made.high = logarithmic ? expm1(interval.high) : interval.high;
    made.p_difference = interval.p;
    below = vp_impl_one_sided(interval.mean + below, interval.error, interval.degrees);
    above = vp_impl_one_sided(above - interval.mean, interval.error, interval.degrees);
    made.p_equivalence = below > above ? below : above;
    made.verdict = vp_impl_verdict(&made, alpha);
    *comparison = made;
    return VP_OK;
}

VP_API vp_result vp_compare_adjust(vp_comparison *comparisons, size_t count, vp_adjustment method, double alpha, uint32_t *order, double *values) {
    size_t i;
    if ((count && (!comparisons || !order || !values)) || !(alpha > 0.0 && alpha < 0.5)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        if (!(comparisons[i].p_difference >= 0.0 && comparisons[i].p_difference <= 1.0)) return VP_ERR_RANGE;
        values[i] = comparisons[i].p_equivalence;
    }
    if (vp_adjust(values, count, method, order, values) != VP_OK) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        comparisons[i].p_equivalence = values[i];
        values[i] = comparisons[i].p_difference;
    }
    vp_adjust(values, count, method, order, values);
    for (i = 0; i < count; i++) {
        comparisons[i].p_difference = values[i];
        comparisons[i].verdict = vp_impl_verdict(&comparisons[i], alpha);
    }
    return VP_OK;
}

/* the least n >= 2 with deviation * (t(first) + t(second)) <= distance * sqrt(n); 0: over 10^9. t falls with n, so that one n parts no from yes. */
static size_t vp_impl_plan(double deviation, double distance, double first, double second) {
    size_t low = 1, high = 1000000001;
    while (high - low > 1) {
        const size_t n = low + (high - low) / 2;
        const double degrees = (double)(n - 1);
        const double reach = deviation * (vp_statistics_student(first, degrees) + vp_statistics_student(second, degrees));
        if (reach <= distance * sqrt((double)n)) high = n; else low = n;
    }
    return high <= 1000000000 ? high : 0;
}

VP_API vp_result vp_compare_plan(double deviation, double margin, double effect, double alpha, double power, size_t *count) {
    size_t same, found;
    if (!(deviation >= 0.0 && deviation < HUGE_VAL) || !(margin > 0.0 && margin < effect && effect < HUGE_VAL) || !count) return VP_ERR_RANGE;
    if (!(alpha >= 1e-9 && alpha < 0.5) || !(power >= 0.5 && power <= 1.0 - 1e-9)) return VP_ERR_RANGE;
    same = vp_impl_plan(deviation, margin, 1.0 - alpha, 0.5 + 0.5 * power);
    found = vp_impl_plan(deviation, effect, 1.0 - 0.5 * alpha, power);
    if (!same || !found) return VP_ERR_RANGE;
    *count = same > found ? same : found;
    return VP_OK;
}

/* ---- Pareto fronts */
/* The front of the points in index[0..count), in place; returns how many are left. */
static size_t vp_impl_front(const double *latency, const double *accuracy, vp_pareto_rule rule, uint32_t *index, size_t count) {
    const int strict = rule == VP_PARETO_FIRST || rule == VP_PARETO_ALL;
    double best = rule == VP_PARETO_SWEEP ? -1.0 : -HUGE_VAL, faster = -HUGE_VAL; /* best so far; best of those that are strictly faster */
    size_t i, kept = 0;
    vp_impl_sort_index(latency, strict ? accuracy : NULL, index, count);
    for (i = 0; i < count; i++) {
        const uint32_t p = index[i];
        int keep;
        if (i > 0 && latency[p] > latency[index[i - 1]]) faster = best; /* index[i - 1] is still itself: kept <= i - 1 only moves earlier ones */
        if (strict) {
            const int again = kept > 0 && !(latency[p] > latency[index[kept - 1]]) && !(accuracy[p] < accuracy[index[kept - 1]]);
            keep = accuracy[p] > best || (rule == VP_PARETO_ALL && again);
        } else if (rule == VP_PARETO_WEAK) {
            keep = accuracy[p] >= faster;
        } else {
            keep = accuracy[p] >= best - 1e-9;
        }
        if (accuracy[p] > best) best = accuracy[p];
        if (keep) index[kept++] = p;
    }
    return kept;
}

static int vp_impl_points_good(const double *latency, const double *accuracy, size_t count) {
    return vp_impl_counts_fit(count) && (!count || (latency && accuracy && vp_impl_finite(latency, count) && vp_impl_finite(accuracy, count)));
}

VP_API vp_result vp_pareto_front(const double *latency, const double *accuracy, size_t count, vp_pareto_rule rule, uint32_t *front,
                                 size_t *front_count) {
    size_t i;
    if (!vp_impl_points_good(latency, accuracy, count) || (count && !front) || !front_count) return VP_ERR_RANGE;
    if ((int)rule < VP_PARETO_FIRST || (int)rule > VP_PARETO_SWEEP) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) front[i] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, rule, front, count);
    return VP_OK;
}

VP_API vp_result vp_pareto_front_fixed(const double *latency, const double *accuracy, const int32_t *keys, int32_t key, size_t count,
                                       uint32_t *front, size_t *front_count) {
    size_t i, held = 0;
    if (!vp_impl_points_good(latency, accuracy, count) || (count && (!front || !keys)) || !front_count) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (keys[i] == key) front[held++] = (uint32_t)i;
    *front_count = vp_impl_front(latency, accuracy, VP_PARETO_FIRST, front, held);
    return VP_OK;
}

/* a front as vp_pareto_front gives it: both axes rise, equal points at most stand side by side */
static int vp_impl_is_front(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count) {
    size_t i;
    if (!vp_impl_counts_fit(count) || front_count > count || (front_count && (!latency || !accuracy || !front))) return 0;
    for (i = 0; i < front_count; i++) {
        if (front[i] >= count || !vp_impl_number(latency[front[i]]) || !vp_impl_number(accuracy[front[i]])) return 0;
        if (i > 0) {
            const double l = latency[front[i]] - latency[front[i - 1]], a = accuracy[front[i]] - accuracy[front[i - 1]];
            if (!((l > 0.0 && a > 0.0) || (l >= 0.0 && l <= 0.0 && a >= 0.0 && a <= 0.0))) return 0;
        }
    }
    return 1;
}

VP_API vp_result vp_pareto_epsilon(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                                   vp_epsilon epsilon, uint32_t *kept, size_t *kept_count) {
    size_t i = 0, j, n = 0;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || (front_count && !kept) || !kept_count) return VP_ERR_RANGE;
    if (!(epsilon.latency >= 0.0 && epsilon.latency < HUGE_VAL) || !(epsilon.accuracy >= 0.0 && epsilon.accuracy < HUGE_VAL)) return VP_ERR_RANGE;
    if (epsilon.relative && (epsilon.latency >= 1.0 || epsilon.accuracy >= 1.0)) return VP_ERR_RANGE;
    /* the fastest point that is not covered yet needs a point that is at most epsilon slower: the slowest of these covers most of what follows */
    while (i < front_count) {
        const double l = latency[front[i]], reach = l + (epsilon.relative ? epsilon.latency * fabs(l) : epsilon.latency);
        uint32_t chosen;
        for (j = i; j + 1 < front_count && latency[front[j + 1]] <= reach; j++) {}
        while (j > i && !(latency[front[j]] > latency[front[j - 1]])) j--; /* of equal points the first */
        chosen = front[j];
        for (i = j + 1; i < front_count; i++) {
            const double a = accuracy[front[i]];
            if (!(accuracy[chosen] >= a - (epsilon.relative ? epsilon.accuracy * fabs(a) : epsilon.accuracy))) break;
        }
        kept[n++] = chosen; /* kept may be front: n <= j */
    }
    *kept_count = n;
    return VP_OK;
}

VP_API double vp_pareto_area(const double *latency, const double *accuracy, size_t count, const uint32_t *front, size_t front_count,
                             double latency_limit, double accuracy_limit) {
    double area = 0.0;
    size_t i;
    if (!vp_impl_is_front(latency, accuracy, count, front, front_count) || !vp_impl_number(latency_limit) || !vp_impl_number(accuracy_limit))
        return (double)NAN;
    for (i = 0; i < front_count; i++) {
        const double next = i + 1 < front_count && latency[front[i + 1]] < latency_limit ? latency[front[i + 1]] : latency_limit;
        const double width = next - latency[front[i]], height = accuracy[front[i]] - accuracy_limit;
        if (width > 0.0 && height > 0.0) area += width * height;
    }
    return area;
}

static size_t vp_impl_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy) {
    size_t i, best = count;
    for (i = 0; i < count; i++) {
        if (!(latency[i] <= budget && accuracy[i] >= min_accuracy)) continue;
        if (best == count || accuracy[i] > accuracy[best] || (!(accuracy[i] < accuracy[best]) && latency[i] < latency[best])) best = i;
    }
    return best;
}

VP_API vp_result vp_pareto_best(const double *latency, const double *accuracy, size_t count, double budget, double min_accuracy, uint32_t *best) {
    size_t found;
    if (!vp_impl_points_good(latency, accuracy, count) || !(budget <= HUGE_VAL) || !(min_accuracy <= HUGE_VAL) || !best) return VP_ERR_RANGE;
    found = vp_impl_best(latency, accuracy, count, budget, min_accuracy);
    if (found == count) return VP_ERR_NOT_FOUND;
    *best = (uint32_t)found;
    return VP_OK;
}

/* ---- bootstrap of a front */
VP_API vp_bootstrap_options vp_bootstrap_options_default(void) {
    vp_bootstrap_options o;
    o.resamples = 1000;
    o.seed = 42;
    o.percentile = 50.0;
    o.level = 0.95;
    o.budget = HUGE_VAL;
    o.min_accuracy = -HUGE_VAL;
    return o;
}

typedef struct vp_impl_bootstrap {
    const double *latency, *accuracy;       /* [configs, samples] */
    size_t configs, samples, resamples;
    double percentile;
    vp_random random;
    uint32_t *order;                        /* [configs, samples], each row by latency; percentiles only */
    uint32_t *times;                        /* [samples]: how often this resample drew each */
    double *axis_latency, *axis_accuracy;   /* [configs] of this resample */
    double *all_latency, *all_accuracy;     /* [configs, resamples] */
    uint32_t *front;                        /* [configs] */
    uint32_t *member, *within, *best;       /* [configs] counts */
} vp_impl_bootstrap;

static int vp_impl_bootstrap_take(vp_impl_bootstrap *b, vp_arena *arena) {
    b->order = (uint32_t *)vp_arena_take(arena, b->configs * b->samples, sizeof(uint32_t)); /* the caller's matrices are larger: no overflow */
    b->times = (uint32_t *)vp_arena_take(arena, b->samples, sizeof(uint32_t));
    b->axis_latency = (double *)vp_arena_take(arena, b->configs, sizeof(double));
    b->axis_accuracy = (double *)vp_arena_take(arena, b->configs, sizeof(double));
    b->all_latency = (double *)vp_arena_take(arena, b->configs, b->resamples * sizeof(double));
    b->all_accuracy = (double *)vp_arena_take(arena, b->configs, b->resamples * sizeof(double));
    b->front = (uint32_t *)vp_arena_take(arena, b->configs, 4 * sizeof(uint32_t));
    if (!b->order || !b->times || !b->axis_latency || !b->axis_accuracy || !b->all_latency || !b->all_accuracy || !b->front) return 0;
    b->member = b->front + b->configs;
    b->within = b->member + b->configs;
    b->best = b->within + b->configs;
    memset(b->member, 0, 3 * b->configs * sizeof(uint32_t));
    return 1;
}

VP_API size_t vp_bootstrap_scratch_bytes(size_t config_count, size_t sample_count, size_t resamples) {
    size_t bytes = 64, points, draws;
    if (!vp_impl_size_multiply(config_count, sample_count, &points) || !vp_impl_size_multiply(config_count, resamples, &draws)) return SIZE_MAX;
    vp_impl_arena_need(&bytes, points, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, sample_count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, config_count, sizeof(double));
    vp_impl_arena_need(&bytes, config_count, sizeof(double));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    vp_impl_arena_need(&bytes, config_count, 4 * sizeof(uint32_t));
    return bytes;
}

/* The percentile of a row in which value j stands times[j] times, as vp_statistics_percentile of the sorted copies: counts through the sorted row
 * from its nearer end until the two neighbours of the place are found. */
static double vp_impl_percentile_times(const double *row, const uint32_t *order, const uint32_t *times, size_t count, double percentile) {
    const double place = (double)(count - 1) * (percentile / 100.0);
    size_t low = (size_t)place, high, seen = 0, j;
    double pair[2], part, step;
    if (low > count - 1) low = count - 1;
    high = low + 1 < count ? low + 1 : low;
    part = place - (double)low;
    if (percentile <= 50.0) {
        for (j = 0; (seen += times[order[j]]) <= low; j++) {}
        pair[0] = row[order[j]];
        if (seen <= high) while (!times[order[++j]]) {}
        pair[1] = row[order[j]];
    } else {
        const size_t from_top = count - 1 - high;
        for (j = count - 1; (seen += times[order[j]]) <= from_top; j--) {}
        pair[1] = row[order[j]];
        if (seen <= count - 1 - low) while (!times[order[--j]]) {}
        pair[0] = row[order[j]];
    }
    step = pair[1] - pair[0];
    if (part < 0.5) {
        step = step * part;
        return pair[0] + step;
    }
    step = step * (1.0 - part);
    return pair[1] - step;
}

static double vp_impl_mean_times(const double *row, const uint32_t *times, size_t count) {
    double part[4] = {0.0, 0.0, 0.0, 0.0};
    size_t i;
    for (i = 0; i + 4 <= count; i += 4) { /* four sums, so that one addition need not wait for the one before it */
        part[0] += row[i] * (double)times[i];
        part[1] += row[i + 1] * (double)times[i + 1];
        part[2] += row[i + 2] * (double)times[i + 2];
        part[3] += row[i + 3] * (double)times[i + 3];
    }
    for (; i < count; i++) part[0] += row[i] * (double)times[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) / (double)count;
}

static void vp_impl_bootstrap_axes(const vp_impl_bootstrap *b) {
    size_t c;
    for (c = 0; c < b->configs; c++) {
        const double *row = b->latency + c * b->samples;
        b->axis_latency[c] = b->percentile < 0.0 ? vp_impl_mean_times(row, b->times, b->samples)
                                                 : vp_impl_percentile_times(row, b->order + c * b->samples, b->times, b->samples, b->percentile);
        b->axis_accuracy[c] = vp_impl_mean_times(b->accuracy + c * b->samples, b->times, b->samples);
    }
}

static void vp_impl_bootstrap_draw(vp_impl_bootstrap *b, size_t round, double budget, double min_accuracy) {
    size_t i, n;
    memset(b->times, 0, b->samples * sizeof *b->times);
    for (i = 0; i < b->samples; i++) b->times[vp_random_below(&b->random, (uint64_t)b->samples - 1)]++;
    vp_impl_bootstrap_axes(b);
    for (i = 0; i < b->configs; i++) {
        b->front[i] = (uint32_t)i;
        b->all_latency[i * b->resamples + round] = b->axis_latency[i];
        b->all_accuracy[i * b->resamples + round] = b->axis_accuracy[i];
        if (b->axis_latency[i] <= budget && b->axis_accuracy[i] >= min_accuracy) b->within[i]++;
    }
    n = vp_impl_best(b->axis_latency, b->axis_accuracy, b->configs, budget, min_accuracy);
    if (n < b->configs) b->best[n]++;
    n = vp_impl_front(b->axis_latency, b->axis_accuracy, VP_PARETO_ALL, b->front, b->configs);
    for (i = 0; i < n; i++) b->member[b->front[i]]++;
}

static vp_result vp_impl_bootstrap_check(const vp_impl_bootstrap *b, const vp_bootstrap_options *o) {
    size_t points;
    if (!b->latency || !b->accuracy || !b->configs || !b->samples || !vp_impl_counts_fit(b->configs) || !vp_impl_counts_fit(b->samples))
        return VP_ERR_RANGE;
    if (!vp_impl_size_multiply(b->configs, b->samples, &points) || points > SIZE_MAX / sizeof(double)) return VP_ERR_RANGE;
    if (o->resamples < 1 || o->resamples > 1000000 || !(o->percentile <= 100.0) || !vp_impl_share(o->level)) return VP_ERR_RANGE;
    if (!(o->budget <= HUGE_VAL) || !(o->min_accuracy <= HUGE_VAL)) return VP_ERR_RANGE;
    return vp_impl_finite(b->latency, points) && vp_impl_finite(b->accuracy, points) ? VP_OK : VP_ERR_RANGE;
}

VP_API vp_result vp_bootstrap(const double *latency, const double *accuracy, size_t config_count, size_t sample_count,
                              const vp_bootstrap_options *options, void *scratch, size_t scratch_bytes, vp_bootstrap_point *points) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    vp_impl_bootstrap b;
    size_t c, i;
    if (!options || !points) return VP_ERR_RANGE;
    b.latency = latency;
    b.accuracy = accuracy;
    b.configs = config_count;
    b.samples = sample_count;
    b.resamples = options->resamples;
    b.percentile = options->percentile;
    if (vp_impl_bootstrap_check(&b, options) != VP_OK) return VP_ERR_RANGE;
    if (!vp_impl_bootstrap_take(&b, &arena)) return VP_ERR_CAPACITY;
    vp_random_seed(&b.random, options->seed);
    for (c = 0; c < config_count && options->percentile >= 0.0; c++) {
        for (i = 0; i < sample_count; i++) b.order[c * sample_count + i] = (uint32_t)i;
        vp_impl_sort_index(latency + c * sample_count, NULL, b.order + c * sample_count, sample_count);
    }
    for (i = 0; i < b.resamples; i++) vp_impl_bootstrap_draw(&b, i, options->budget, options->min_accuracy);
    for (i = 0; i < sample_count; i++) b.times[i] = 1; /* the samples as they are */
    vp_impl_bootstrap_axes(&b);
    for (c = 0; c < config_count; c++) {
        double *l = b.all_latency + c * b.resamples, *a = b.all_accuracy + c * b.resamples;
        const double below = 50.0 * (1.0 - options->level);
        vp_impl_sort_double(l, b.resamples);
        vp_impl_sort_double(a, b.resamples);
        points[c].latency = b.axis_latency[c];
        points[c].accuracy = b.axis_accuracy[c];
        points[c].latency_low = vp_statistics_percentile(l, b.resamples, below);
        points[c].latency_high = vp_statistics_percentile(l, b.resamples, 100.0 - below);
        points[c].accuracy_low = vp_statistics_percentile(a, b.resamples, below);
        points[c].accuracy_high = vp_statistics_percentile(a, b.resamples, 100.0 - below);
        points[c].membership = (double)b.member[c] / (double)b.resamples;
        points[c].within_budget = (double)b.within[c] / (double)b.resamples;
        points[c].best = (double)b.best[c] / (double)b.resamples;
    }
    return VP_OK;
}

/* ---- Householder's reflections, the base of all fits */
/* Makes the reflection that leaves nothing of v below `row`: v[row] becomes the length, its vector stays below.
 * returns: its factor for vp_impl_reflect; 0: there was nothing below */
static double vp_impl_reflection(double *v, size_t rows, size_t row) {
    double largest = 0.0, sum = 0.0, length, factor;
    size_t i;
    for (i = row + 1; i < rows; i++) if (fabs(v[i]) > largest) largest = fabs(v[i]);
    if (!(largest > 0.0)) return 0.0;
    if (fabs(v[row]) > largest) largest = fabs(v[row]);
    for (i = row; i < rows; i++) sum += (v[i] / largest) * (v[i] / largest);
    length = v[row] > 0.0 ? -largest * sqrt(sum) : largest * sqrt(sum);
    factor = (length - v[row]) / length;
    for (i = row + 1; i < rows; i++) v[i] /= v[row] - length;
    v[row] = length;
    return factor;
}

static void vp_impl_reflect(const double *v, double factor, size_t rows, size_t row, double *y) {
    double dot = y[row];
    size_t i;
    for (i = row + 1; i < rows; i++) dot += v[i] * y[i];
    dot *= factor;
    y[row] -= dot;
    for (i = row + 1; i < rows; i++) y[i] -= dot * v[i];
}

/* ---- coupling of the knobs */
static int vp_impl_knobs_good(const vp_knobs *k, int32_t order) {
    int32_t i;
    if (!k || !k->levels || k->knob_count < 1 || k->knob_count > VP_KNOB_LIMIT || (order != 1 && order != 2) || !k->config_count) return 0;
    for (i = 0; i < k->knob_count; i++) if (k->level_counts[i] < 1 || k->level_counts[i] > VP_KNOB_LEVEL_LIMIT) return 0;
    return k->config_count <= SIZE_MAX / VP_KNOB_LIMIT && vp_impl_counts_fit(k->config_count);
}

static size_t vp_impl_effect_columns(const vp_knobs *k, int32_t order) {
    size_t columns = 1;
    int32_t a, b;
    for (a = 0; a < k->knob_count; a++) {
        columns += (size_t)(k->level_counts[a] - 1);
        for (b = a + 1; order == 2 && b < k->knob_count; b++) columns += (size_t)(k->level_counts[a] - 1) * (size_t)(k->level_counts[b] - 1);
    }
    return columns; /* at most 8 * 256 + 28 * 2^16 */
}

VP_API size_t vp_effect_count(const vp_knobs *knobs, int32_t order) {
    size_t count = 1;
    int32_t a, b;
    if (!vp_impl_knobs_good(knobs, order)) return 0;
    for (a = 0; a < knobs->knob_count; a++) {
        count += 2 * (size_t)knobs->level_counts[a] - 1;
        for (b = a + 1; order == 2 && b < knobs->knob_count; b++) count += (size_t)knobs->level_counts[a] * (size_t)knobs->level_counts[b];
    }
    return count;
}

typedef struct vp_impl_effects {
    const vp_knobs *knobs;
    int32_t order;
    size_t rows, columns, count;
    double *design;  /* [columns, rows], then its factor */
    double *factor;  /* [columns], of the reflections */
    double *vector;  /* [rows]: one sample */
    double *means;   /* [rows]: of the configurations */
    double *mean, *squares, *value; /* [count] */
} vp_impl_effects;

static int vp_impl_effects_take(vp_impl_effects *e, vp_arena *arena, size_t *need) {
    const size_t rows = e->rows, want[7] = {e->columns, e->columns, rows, rows, e->count, e->count, e->count};
    double *got[7];
    size_t i;
    for (i = 0; i < 7; i++) {
        const size_t each = (i == 0 ? rows : 1) * sizeof(double); /* rows fit 32 bits, columns 1024 */
        if (need) vp_impl_arena_need(need, want[i], each);
        got[i] = arena ? (double *)vp_arena_take(arena, want[i], each) : NULL;
        if (arena && !got[i]) return 0;
    }
    e->design = got[0];
    e->factor = got[1];
    e->vector = got[2];
    e->means = got[3];
    e->mean = got[4];
    e->squares = got[5];
    e->value = got[6];
    return 1;
}

VP_API size_t vp_effects_scratch_bytes(const vp_knobs *knobs, int32_t order) {
    vp_impl_effects e;
    size_t bytes = 64;
    if (!vp_impl_knobs_good(knobs, order) || vp_impl_effect_columns(knobs, order) > VP_EFFECT_COLUMNS_LIMIT) return SIZE_MAX;
    e.rows = knobs->config_count;
    e.columns = vp_impl_effect_columns(knobs, order);
    e.count = vp_effect_count(knobs, order);
    vp_impl_effects_take(&e, NULL, &bytes);
    return bytes;
}

/* the code of a level in a knob's column: effects add up to 0, so that the last level is minus all others */
static double vp_impl_code(int32_t level, int32_t level_count, int32_t column) {
    return level == level_count - 1 ? -1.0 : level == column ? 1.0 : 0.0;
}

static void vp_impl_design_row(const vp_impl_effects *e, size_t row) {
    const vp_knobs *k = e->knobs;
    const int32_t *level = k->levels + row * (size_t)k->knob_count;
    size_t c = 0;
    int32_t a, b, i, j;
    e->design[c++ * e->rows + row] = 1.0;
    for (a = 0; a < k->knob_count; a++) {
        for (i = 0; i + 1 < k->level_counts[a]; i++) e->design[c++ * e->rows + row] = vp_impl_code(level[a], k->level_counts[a], i);
    }
    for (a = 0; a < k->knob_count && e->order == 2; a++) {
        for (b = a + 1; b < k->knob_count; b++) {
            for (i = 0; i + 1 < k->level_counts[a]; i++) {
                for (j = 0; j + 1 < k->level_counts[b]; j++) {
                    e->design[c++ * e->rows + row] = vp_impl_code(level[a], k->level_counts[a], i) * vp_impl_code(level[b], k->level_counts[b], j);
                }
            }
        }
    }
}

/* Factor of the design; 0: its columns depend on each other. Its numbers are small integers: what is left of a dependent column is rounding. */
static int vp_impl_design_factor(const vp_impl_effects *e) {
    size_t r, c, i;
    if (e->rows < e->columns) return 0;
    for (r = 0; r < e->rows; r++) vp_impl_design_row(e, r);
    for (c = 0; c < e->columns; c++) {
        double *column = e->design + c * e->rows, whole = 0.0;
        for (r = 0; r < e->rows; r++) whole += column[r] * column[r];
        e->factor[c] = vp_impl_reflection(column, e->rows, c);
        if (!(fabs(column[c]) > 1e-9 * sqrt(whole))) return 0;
        for (i = c + 1; i < e->columns; i++) vp_impl_reflect(column, e->factor[c], e->rows, c, e->design + i * e->rows);
    }
    return 1;
}

/* coefficients of the values in e->vector, into its first places */
static void vp_impl_design_solve(const vp_impl_effects *e) {
    double *y = e->vector;
    size_t c, r;
    for (c = 0; c < e->columns; c++) vp_impl_reflect(e->design + c * e->rows, e->factor[c], e->rows, c, y);
    for (c = e->columns; c-- > 0;) {
        y[c] /= e->design[c * e->rows + c];
        for (r = 0; r < c; r++) y[r] -= e->design[c * e->rows + r] * y[c];
    }
}

/* the effect of a pair of levels: where a level is the last one, minus the sum over the others */
static double vp_impl_pair_effect(const double *coefficient, int32_t levels_a, int32_t levels_b, int32_t level_a, int32_t level_b) {
    double sum = 0.0;
    int32_t i, j;
    for (i = 0; i + 1 < levels_a; i++) {
        for (j = 0; j + 1 < levels_b; j++) {
            sum += vp_impl_code(level_a, levels_a, i) * vp_impl_code(level_b, levels_b, j) * coefficient[i * (levels_b - 1) + j];
        }
    }
    return sum;
}

/* All effects of one sample from its coefficients, in the order of the rows; labels go to `effects` where it is not NULL. */
static void vp_impl_effects_expand(const vp_impl_effects *e, double *value, vp_effect *effects) {
    const vp_knobs *k = e->knobs;
    const double *coefficient = e->vector;
    vp_effect label;
    size_t n = 0;
    int32_t a, b, i, j, step;
    memset(&label, 0, sizeof label);
    label.kind = VP_EFFECT_MEAN;
    label.knob_a = label.level_a = label.knob_b = label.level_b = -1;
    if (effects) effects[n] = label;
    value[n++] = *coefficient++;
    for (a = 0; a < k->knob_count; coefficient += k->level_counts[a++] - 1) {
        const size_t first = n;
        for (step = 0; step < 2; step++) {
            for (i = step; i < k->level_counts[a]; i++) {
                label.kind = step ? VP_EFFECT_STEP : VP_EFFECT_MAIN;
                label.knob_a = a;
                label.level_a = i;
                if (effects) effects[n] = label;
                /* a main effect is a pair with a knob of two levels of which the first is meant */
                value[n] = step ? value[first + (size_t)i] - value[first + (size_t)i - 1]
                                : vp_impl_pair_effect(coefficient, k->level_counts[a], 2, i, 0);
                n++;
            }
        }
    }
    label.kind = VP_EFFECT_PAIR;
    for (a = 0; a < k->knob_count && e->order == 2; a++) {
        for (b = a + 1; b < k->knob_count; b++) {
            const int32_t count_a = k->level_counts[a], count_b = k->level_counts[b];
            for (i = 0; i < count_a; i++) {
                for (j = 0; j < count_b; j++) {
                    label.knob_a = a;
                    label.level_a = i;
                    label.knob_b = b;
                    label.level_b = j;
                    if (effects) effects[n] = label;
                    value[n++] = vp_impl_pair_effect(coefficient, count_a, count_b, i, j);
                }
            }
            coefficient += (count_a - 1) * (count_b - 1);
        }
    }
}

/* shares of the variance between configurations, from the estimates in e->mean and the means in e->means */
static void vp_impl_effects_shares(const vp_impl_effects *e, double *shares) {
    const vp_knobs *k = e->knobs;
    double average = 0.0, total = 0.0;
    size_t c, n, term, terms = (size_t)k->knob_count + (e->order == 2 ? (size_t)(k->knob_count * (k->knob_count - 1) / 2) : 0);
    int32_t a, b;
    for (c = 0; c < e->rows; c++) average += e->means[c];
    average /= (double)e->rows;
    for (term = 0; term <= terms; term++) shares[term] = 0.0;
    for (c = 0; c < e->rows; c++) {
        const int32_t *level = k->levels + c * (size_t)k->knob_count;
        double rest = e->means[c] - e->mean[0], part;
        total += (e->means[c] - average) * (e->means[c] - average);
        for (a = 0, n = 1, term = 0; a < k->knob_count; n += 2 * (size_t)k->level_counts[a++] - 1, term++) {
            part = e->mean[n + (size_t)level[a]];
            shares[term] += part * part;
            rest -= part;
        }
        for (a = 0; a < k->knob_count && e->order == 2; a++) {
            for (b = a + 1; b < k->knob_count; b++, term++) {
                part = e->mean[n + (size_t)level[a] * (size_t)k->level_counts[b] + (size_t)level[b]];
                shares[term] += part * part;
                rest -= part;
                n += (size_t)k->level_counts[a] * (size_t)k->level_counts[b];
            }
        }
        shares[terms] += rest * rest;
    }
    for (term = 0; term <= terms; term++) shares[term] = total > 0.0 ? shares[term] / total : 0.0;
}

static vp_result vp_impl_effects_check(const vp_knobs *k, const double *values, size_t samples, int32_t order, vp_error *error) {
    size_t i, points;
    if (!vp_impl_knobs_good(k, order)) return vp_fail(error, VP_ERR_RANGE, -1, "knobs", "counts out of range; order is 1 or 2");
    for (i = 0; i < k->config_count * (size_t)k->knob_count; i++) {
        if (k->levels[i] < 0 || k->levels[i] >= k->level_counts[i % (size_t)k->knob_count])
            return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "knobs", "a level is outside 0..level_count - 1");
    }
    if (vp_impl_effect_columns(k, order) > VP_EFFECT_COLUMNS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "knobs", "over 1024 coefficients; use order 1 or fewer levels");
    if (samples < 2 || !values || !vp_impl_counts_fit(samples) || !vp_impl_size_multiply(k->config_count, samples, &points)
        || points > SIZE_MAX / sizeof(double) || !vp_impl_finite(values, points))
        return vp_fail(error, VP_ERR_RANGE, -1, "values", "needs 2 or more samples, all finite");
    return VP_OK;
}

VP_API vp_result vp_effects(const vp_knobs *knobs, const double *values, size_t sample_count, int32_t order, double level, void *scratch,
                            size_t scratch_bytes, vp_effect *effects, double *shares, vp_error *error) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    vp_impl_effects e;
    vp_mean_interval interval;
    double quantile, step;
    size_t s, i;
    if (!effects || !vp_impl_share(level)) return vp_fail(error, VP_ERR_RANGE, -1, "effects", "no place for them, or a level outside 0..1");
    if (vp_impl_effects_check(knobs, values, sample_count, order, error) != VP_OK) return VP_ERR_RANGE;
    e.knobs = knobs;
    e.order = order;
    e.rows = knobs->config_count;
    e.columns = vp_impl_effect_columns(knobs, order);
    e.count = vp_effect_count(knobs, order);
    if (!vp_impl_effects_take(&e, &arena, NULL)) return vp_fail(error, VP_ERR_CAPACITY, -1, "effects", "scratch is too small");
    if (!vp_impl_design_factor(&e)) {
        return vp_fail(error, VP_ERR_MISMATCH, -1, "effects", order == 2 ? "these configurations cannot tell the interactions apart; use order 1"
                                                                         : "these configurations cannot tell the knobs' effects apart");
    }
    memset(e.mean, 0, e.count * sizeof(double));
    memset(e.squares, 0, e.count * sizeof(double));
    memset(e.means, 0, e.rows * sizeof(double));
    for (s = 0; s < sample_count; s++) { /* Welford's running mean and squares */
        for (i = 0; i < e.rows; i++) {
            e.vector[i] = values[i * sample_count + s];
            e.means[i] += e.vector[i];
        }
        vp_impl_design_solve(&e);
        vp_impl_effects_expand(&e, e.value, NULL);
        for (i = 0; i < e.count; i++) {
            step = e.value[i] - e.mean[i];
            e.mean[i] += step / (double)(s + 1);
            e.squares[i] += step * (e.value[i] - e.mean[i]);
        }
    }
    for (i = 0; i < e.rows; i++) e.means[i] /= (double)sample_count;
    quantile = vp_impl_quantile(sample_count, level);
    for (i = 0; i < e.count; i++) {
        if (vp_impl_mean_interval(sample_count, e.mean[i], e.squares[i], quantile, &interval) != VP_OK)
            return vp_fail(error, VP_ERR_RANGE, -1, "values", "too large to add up");
    }
    vp_impl_effects_expand(&e, e.value, effects);
    for (i = 0; i < e.count; i++) {
        vp_impl_mean_interval(sample_count, e.mean[i], e.squares[i], quantile, &interval);
        effects[i].estimate = e.mean[i];
        effects[i].low = interval.low;
        effects[i].high = interval.high;
        effects[i].p = interval.p;
    }
    if (shares) vp_impl_effects_shares(&e, shares);
    return VP_OK;
}

VP_API vp_result vp_knob_next(const vp_knobs *knobs, size_t config, int32_t knob, size_t *next) {
    const int32_t *own, *other;
    size_t c, found;
    int32_t i;
    if (!vp_impl_knobs_good(knobs, 1) || config >= knobs->config_count || knob < 0 || knob >= knobs->knob_count || !next) return VP_ERR_RANGE;
    own = knobs->levels + config * (size_t)knobs->knob_count;
    found = knobs->config_count;
    for (c = 0; c < knobs->config_count; c++) {
        other = knobs->levels + c * (size_t)knobs->knob_count;
        if (other[knob] <= own[knob]) continue;
        for (i = 0; i < knobs->knob_count && (i == knob || other[i] == own[i]); i++) {}
        if (i == knobs->knob_count && (found == knobs->config_count || other[knob] < knobs->levels[found * (size_t)knobs->knob_count + (size_t)knob]))
            found = c;
    }
    if (found == knobs->config_count) return VP_ERR_NOT_FOUND;
    *next = found;
    return VP_OK;
}

VP_API vp_result vp_gain_compute(const double *first_latency, const double *first_accuracy, const double *second_latency,
                                 const double *second_accuracy, size_t sample_count, double level, vp_gain *gain) {
    vp_gain made;
    double together = 0.0, reach, l, a, half;
    size_t i;
    if (!first_latency || !first_accuracy || !gain) return VP_ERR_RANGE;
    if (vp_paired_t(first_latency, second_latency, sample_count, level, &made.latency) != VP_OK) return VP_ERR_RANGE;
    if (vp_paired_t(first_accuracy, second_accuracy, sample_count, level, &made.accuracy) != VP_OK) return VP_ERR_RANGE;
    l = made.latency.mean;
    a = made.accuracy.mean;
    for (i = 0; i < sample_count; i++) together += (second_latency[i] - first_latency[i] - l) * (second_accuracy[i] - first_accuracy[i] - a);
    together /= made.latency.degrees * (double)sample_count; /* covariance of the two means */
    reach = vp_impl_quantile(sample_count, level);
    reach *= reach;
    made.gain = l > 0.0 || l < 0.0 ? a / l : (double)NAN;
    made.low = -HUGE_VAL;
    made.high = HUGE_VAL;
    /* the ratios r for which a - r l is not significantly different from 0: a quadratic in r */
    half = l * l - reach * made.latency.error * made.latency.error;
    if (half > 0.0) {
        const double middle = a * l - reach * together, last = a * a - reach * made.accuracy.error * made.accuracy.error;
        const double root = middle * middle - half * last;
        made.low = (middle - sqrt(root > 0.0 ? root : 0.0)) / half;
        made.high = (middle + sqrt(root > 0.0 ? root : 0.0)) / half;
    }
    *gain = made;
    return VP_OK;
}

/* ---- regression
 * All fits go through a triangle: the R of the QR factorisation of the rows [sqrt(weight) x, sqrt(weight) y], made block by block, so that the
 * memory does not grow with the rows; triangles of groups of rows add up the same way, which makes leaving one group out cheap. */
enum {
    VP_IMPL_LINEAR_WIDTH = VP_LINEAR_COLUMNS_LIMIT + 1,
    VP_IMPL_LINEAR_BLOCK = 32,
    VP_IMPL_LINEAR_STRIDE = VP_IMPL_LINEAR_WIDTH + VP_IMPL_LINEAR_BLOCK
};
typedef struct vp_impl_gather {
    size_t width, held; /* columns and y; rows below the triangle */
    uint64_t rows;
    double a[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_STRIDE]; /* column-major: the triangle's rows first */
} vp_impl_gather;

static void vp_impl_gather_open(vp_impl_gather *g, size_t columns) {
    g->width = columns + 1;
    g->held = 0;
    g->rows = 0;
    memset(g->a, 0, sizeof g->a);
}

static void vp_impl_gather_close(vp_impl_gather *g) {
    const size_t rows = g->width + g->held;
    size_t i, j;
    for (j = 0; g->held && j < g->width; j++) {
        double *v = g->a + j * VP_IMPL_LINEAR_STRIDE;
        const double factor = vp_impl_reflection(v, rows, j);
        for (i = j + 1; i < g->width; i++) vp_impl_reflect(v, factor, rows, j, g->a + i * VP_IMPL_LINEAR_STRIDE);
        for (i = j + 1; i < rows; i++) v[i] = 0.0;
    }
    g->held = 0;
}

static void vp_impl_gather_row(vp_impl_gather *g, const double *x, double y, double weight) {
    const double root = sqrt(weight);
    const size_t row = g->width + g->held;
    size_t j;
    for (j = 0; j + 1 < g->width; j++) g->a[j * VP_IMPL_LINEAR_STRIDE + row] = root * x[j];
    g->a[j * VP_IMPL_LINEAR_STRIDE + row] = root * y;
    g->rows++;
    if (++g->held == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(g);
}

/* a triangle [width, width], column-major, as further rows */
static void vp_impl_gather_triangle(vp_impl_gather *g, const double *triangle) {
    size_t i, j;
    for (i = 0; i < g->width; i++) {
        for (j = 0; j < g->width; j++) g->a[j * VP_IMPL_LINEAR_STRIDE + g->width + g->held] = triangle[j * g->width + i];
        if (++g->held == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(g);
    }
}

static void vp_impl_gather_copy(vp_impl_gather *g, double *triangle) {
    size_t i, j;
    vp_impl_gather_close(g);
    for (j = 0; j < g->width; j++) for (i = 0; i < g->width; i++) triangle[j * g->width + i] = g->a[j * VP_IMPL_LINEAR_STRIDE + i];
}

static double vp_impl_length(const double *v, size_t count) {
    double largest = 0.0, sum = 0.0;
    size_t i;
    for (i = 0; i < count; i++) if (fabs(v[i]) > largest) largest = fabs(v[i]);
    for (i = 0; largest > 0.0 && i < count; i++) sum += (v[i] / largest) * (v[i] / largest);
    return largest * sqrt(sum);
}

/* a least-squares problem of some columns of a triangle, each scaled to length 1 */
typedef struct vp_impl_subset {
    size_t count, column[VP_LINEAR_COLUMNS_LIMIT];      /* which, ascending */
    double r[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH]; /* column-major, stride VP_IMPL_LINEAR_WIDTH; y behind the last column */
    double factor[VP_IMPL_LINEAR_WIDTH];
    double x[VP_LINEAR_COLUMNS_LIMIT];                  /* of the scaled columns */
    double rest;                                     /* length of the residual */
} vp_impl_subset;

/* less of a column than this outside the span of those before it is rounding */
#define VP_IMPL_LINEAR_DEPENDENT 1e-11

/* Solves for the columns with use[j]; one that depends on those before it is taken out of `use` (drop) or ends it.
 * returns: the dependent column when it ended, else width */
static size_t vp_impl_subset_solve(const double *triangle, size_t width, const double *length, unsigned char *use, int drop, vp_impl_subset *s) {
    size_t i, j, n = 0;
    for (j = 0; j < width; j++) {
        double *column = s->r + n * VP_IMPL_LINEAR_WIDTH;
        const double scale = j + 1 < width && length[j] > 0.0 ? length[j] : 1.0;
        if (j + 1 < width && !use[j]) continue;
        for (i = 0; i < width; i++) column[i] = triangle[j * width + i] / scale;
        for (i = 0; i < n; i++) vp_impl_reflect(s->r + i * VP_IMPL_LINEAR_WIDTH, s->factor[i], width, i, column);
        if (j + 1 == width) break;
        if (!(vp_impl_length(column + n, width - n) > VP_IMPL_LINEAR_DEPENDENT)) {
            if (!drop) return j;
            use[j] = 0;
            continue;
        }
        s->factor[n] = vp_impl_reflection(column, width, n);
        s->column[n++] = j;
    }
    s->count = n;
    s->rest = vp_impl_length(s->r + n * VP_IMPL_LINEAR_WIDTH + n, width - n);
    for (i = n; i-- > 0;) {
        s->x[i] = s->r[n * VP_IMPL_LINEAR_WIDTH + i];
        for (j = i + 1; j < n; j++) s->x[i] -= s->r[j * VP_IMPL_LINEAR_WIDTH + i] * s->x[j];
        s->x[i] /= s->r[i * VP_IMPL_LINEAR_WIDTH + i];
    }
    return width;
}

/* how much the residual of the solution x (all columns, scaled) falls when column j grows: column_j'(y - A x) */
static double vp_impl_gradient(const double *triangle, size_t width, const double *length, const double *x, size_t column) {
    double sum = 0.0;
    size_t i, j;
    for (i = 0; i < width; i++) {
        double rest = triangle[(width - 1) * width + i];
        for (j = 0; j + 1 < width; j++) if (x[j] < 0.0 || x[j] > 0.0) rest -= triangle[j * width + i] / length[j] * x[j];
        sum += triangle[column * width + i] / length[column] * rest;
    }
    return sum;
}

/* From x towards the solution in s as far as no signed coefficient becomes negative; those that reach 0 leave `use`. 1: s itself is allowed. */
static int vp_impl_signed_step(const vp_impl_subset *s, const unsigned char *nonnegative, unsigned char *use, double *x) {
    double part = 1.0;
    size_t i, first = s->count;
    for (i = 0; i < s->count; i++) {
        const double from = x[s->column[i]];
        if (!nonnegative[s->column[i]] || s->x[i] > 0.0) continue;
        if (first == s->count || from / (from - s->x[i]) < part) {
            part = from > 0.0 ? from / (from - s->x[i]) : 0.0;
            first = i;
        }
    }
    for (i = 0; i < s->count; i++) {
        const size_t j = s->column[i];
        x[j] = first == s->count ? s->x[i] : x[j] + part * (s->x[i] - x[j]);
        if (first < s->count && nonnegative[j] && (i == first || !(x[j] > 0.0))) {
            x[j] = 0.0;
            use[j] = 0;
        }
    }
    return first == s->count;
}

/* Lawson and Hanson's active set. `use`: in, the columns that may be used; out, those that are. 0: it did not settle. */
static int vp_impl_signed_solve(const double *triangle, size_t width, const double *length, const unsigned char *nonnegative, unsigned char *use,
                                vp_impl_subset *s) {
    unsigned char may[VP_LINEAR_COLUMNS_LIMIT], barred[VP_LINEAR_COLUMNS_LIMIT];
    double x[VP_LINEAR_COLUMNS_LIMIT], least;
    size_t j, best, round;
    memcpy(may, use, sizeof may);
    memset(barred, 0, sizeof barred);
    memset(x, 0, sizeof x);
    least = 1e-13 * vp_impl_length(triangle + (width - 1) * width, width); /* a gradient below this is rounding */
    for (j = 0; j + 1 < width; j++) use[j] = (unsigned char)(may[j] && !nonnegative[j]);
    for (round = 0; round < 64 * width; round++) {
        double most = least;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        while (!vp_impl_signed_step(s, nonnegative, use, x)) {
            if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        }
        for (j = 0, best = width; j + 1 < width; j++) {
            const double gradient = may[j] && !use[j] && !barred[j] ? vp_impl_gradient(triangle, width, length, x, j) : 0.0;
            if (gradient > most) {
                most = gradient;
                best = j;
            }
        }
        if (best == width) return 1;
        use[best] = 1;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, s) != width) return 0;
        for (j = 0; s->column[j] != best; j++) {}
        if (s->x[j] > 0.0) memset(barred, 0, sizeof barred);
        else { /* its gradient was rounding after all: without this it would come and go for ever */
            use[best] = 0;
            barred[best] = 1;
        }
    }
    return 0;
}

/* ratio of the largest to the smallest singular value of the subset's R, by one-sided Jacobi rotations of its columns */
static double vp_impl_condition(const vp_impl_subset *s) {
    double a[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT], largest = 0.0, smallest = HUGE_VAL;
    const size_t n = s->count;
    size_t i, j, k, sweep, turned = 1;
    for (j = 0; j < n; j++) for (i = 0; i < n; i++) a[j * n + i] = i <= j ? s->r[j * VP_IMPL_LINEAR_WIDTH + i] : 0.0;
    for (sweep = 0; turned && sweep < 60; sweep++) {
        turned = 0;
        for (i = 0; i + 1 < n; i++) {
            for (j = i + 1; j < n; j++) {
                double ii = 0.0, jj = 0.0, ij = 0.0, turn, c, held;
                for (k = 0; k < n; k++) {
                    ii += a[i * n + k] * a[i * n + k];
                    jj += a[j * n + k] * a[j * n + k];
                    ij += a[i * n + k] * a[j * n + k];
                }
                if (!(fabs(ij) > 1e-15 * sqrt(ii * jj))) continue;
                turned = 1;
                turn = (jj - ii) / (2.0 * ij);
                turn = (turn < 0.0 ? -1.0 : 1.0) / (fabs(turn) + sqrt(1.0 + turn * turn));
                c = 1.0 / sqrt(1.0 + turn * turn);
                for (k = 0; k < n; k++) {
                    held = a[i * n + k];
                    a[i * n + k] = c * (held - turn * a[j * n + k]);
                    a[j * n + k] = c * (a[j * n + k] + turn * held);
                }
            }
        }
    }
    for (j = 0; j < n; j++) {
        const double length = vp_impl_length(a + j * n, n);
        if (length > largest) largest = length;
        if (length < smallest) smallest = length;
    }
    return n ? largest / smallest : 1.0;
}

/* the fit that a solved subset means, in the units of the columns */
static void vp_impl_linear_fill(const vp_impl_subset *s, const double *length, const unsigned char *state, size_t columns, uint64_t rows,
                                vp_linear *fit) {
    size_t i, j, k;
    memset(fit, 0, sizeof *fit);
    fit->rows = rows;
    fit->columns = (int32_t)columns;
    fit->used_columns = (int32_t)s->count;
    fit->condition = vp_impl_condition(s);
    fit->degrees = (double)rows - (double)s->count;
    fit->sigma = fit->degrees > 0.0 ? s->rest / sqrt(fit->degrees) : (double)NAN;
    memcpy(fit->state, state, columns);
    for (k = 0; k < s->count; k++) { /* column k of R^-1 by back substitution; its rows scaled are the root's */
        double inverse[VP_LINEAR_COLUMNS_LIMIT];
        for (i = k + 1; i-- > 0;) {
            inverse[i] = i == k ? 1.0 : 0.0;
            for (j = i + 1; j <= k; j++) inverse[i] -= s->r[j * VP_IMPL_LINEAR_WIDTH + i] * inverse[j];
            inverse[i] /= s->r[i * VP_IMPL_LINEAR_WIDTH + i];
            fit->root[s->column[i] * columns + k] = inverse[i] / length[s->column[i]];
        }
    }
    for (k = 0; k < s->count; k++) {
        fit->coefficient[s->column[k]] = s->x[k] / length[s->column[k]];
        fit->error[s->column[k]] = fit->sigma * vp_impl_length(fit->root + s->column[k] * columns, columns);
    }
}

/* A triangle to a fit. */
static vp_result vp_impl_linear_solve(const double *triangle, size_t width, uint64_t rows, const unsigned char *nonnegative, int drop, vp_linear *fit,
                                   vp_error *error) {
    unsigned char use[VP_LINEAR_COLUMNS_LIMIT], state[VP_LINEAR_COLUMNS_LIMIT], sign[VP_LINEAR_COLUMNS_LIMIT];
    double length[VP_IMPL_LINEAR_WIDTH];
    vp_impl_message m = {{0}, 0};
    vp_impl_subset s;
    size_t j, dependent;
    int signs = 0;
    memset(use, 0, sizeof use);
    memset(sign, 0, sizeof sign);
    memset(length, 0, sizeof length);
    for (j = 0; j < width; j++) {
        length[j] = vp_impl_length(triangle + j * width, width);
        if (!vp_impl_number(length[j]) || length[j] > 1e300) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "the values are too large to add up");
        if (j + 1 == width) break;
        use[j] = 1;
        sign[j] = (unsigned char)(nonnegative && nonnegative[j]);
        signs |= sign[j];
    }
    dependent = vp_impl_subset_solve(triangle, width, length, use, drop, &s);
    if (dependent != width) {
        vp_impl_message_text(&m, "column ");
        vp_impl_message_int(&m, (int64_t)dependent);
        vp_impl_message_text(&m, rows < width - 1 ? ": there are fewer rows than columns"
                                                  : " is zero or depends on those before it in these rows; leave it out, or measure more kinds");
        return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", m.text);
    }
    for (j = 0; j + 1 < width; j++) state[j] = (unsigned char)(use[j] ? VP_LINEAR_USED : VP_LINEAR_DROPPED);
    if (signs && !vp_impl_signed_solve(triangle, width, length, sign, use, &s))
        return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", "the columns are too nearly dependent to find their signs");
    for (j = 0; j + 1 < width; j++) if (state[j] == VP_LINEAR_USED && !use[j]) state[j] = VP_LINEAR_AT_ZERO;
    vp_impl_linear_fill(&s, length, state, width - 1, rows, fit);
    return VP_OK;
}

VP_API vp_linear_options vp_linear_options_default(void) {
    vp_linear_options o;
    o.weights = NULL;
    o.nonnegative = NULL;
    o.drop_dependent = 0;
    return o;
}

static vp_result vp_impl_linear_check(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *o, vp_error *error) {
    size_t i, points;
    if (!x || !y || !o || !rows || columns < 1 || columns > VP_LINEAR_COLUMNS_LIMIT)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows, and 1 to 24 columns");
    if (!vp_impl_size_multiply(rows, columns, &points) || points > SIZE_MAX / sizeof(double) || !vp_impl_finite(x, points)
        || !vp_impl_finite(y, rows))
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "a value is not finite");
    for (i = 0; o->weights && i < rows; i++) {
        if (!(o->weights[i] > 0.0 && o->weights[i] < HUGE_VAL)) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a weight is not above 0");
    }
    return VP_OK;
}

VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns, const vp_linear_options *options, vp_linear *fit,
                                vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather g;
    size_t i;
    if (!fit) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "no place for the result");
    if (vp_impl_linear_check(x, y, rows, columns, options, error) != VP_OK) return VP_ERR_RANGE;
    vp_impl_gather_open(&g, columns);
    for (i = 0; i < rows; i++) vp_impl_gather_row(&g, x + i * columns, y[i], options->weights ? options->weights[i] : 1.0);
    vp_impl_gather_copy(&g, triangle);
    return vp_impl_linear_solve(triangle, columns + 1, (uint64_t)rows, options->nonnegative, options->drop_dependent, fit, error);
}

static int vp_impl_linear_good(const vp_linear *fit) {
    return fit && fit->columns >= 1 && fit->columns <= VP_LINEAR_COLUMNS_LIMIT;
}

VP_API double vp_linear_value(const vp_linear *fit, const double *x) {
    double sum = 0.0;
    int32_t j;
    if (!vp_impl_linear_good(fit) || !x) return (double)NAN;
    for (j = 0; j < fit->columns; j++) sum += fit->coefficient[j] * x[j];
    return sum;
}

VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level, vp_linear_range *range) {
    double spread = 0.0, t;
    int32_t i, j;
    if (!vp_impl_linear_good(fit) || !x || !(weight > 0.0 && weight < HUGE_VAL) || !vp_impl_share(level) || !range) return VP_ERR_RANGE;
    if (!vp_impl_finite(x, (size_t)fit->columns)) return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    for (j = 0; j < fit->columns; j++) { /* x' B B' x */
        double sum = 0.0;
        for (i = 0; i < fit->columns; i++) sum += x[i] * fit->root[i * fit->columns + j];
        spread += sum * sum;
    }
    t = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->sigma;
    range->value = vp_linear_value(fit, x);
    range->mean_low = range->value - t * sqrt(spread);
    range->mean_high = range->value + t * sqrt(spread);
    range->low = range->value - t * sqrt(spread + 1.0 / weight);
    range->high = range->value + t * sqrt(spread + 1.0 / weight);
    return VP_OK;
}

VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high) {
    double reach;
    if (!vp_impl_linear_good(fit) || column < 0 || column >= fit->columns || !vp_impl_share(level) || !low || !high) return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    reach = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->error[column];
    *low = fit->coefficient[column] - reach;
    *high = fit->coefficient[column] + reach;
    return VP_OK;
}

VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count, double *scratch, vp_linear_errors *errors) {
    double mean, squares = 0.0, spread = 0.0, n = (double)count;
    vp_linear_errors made;
    size_t i;
    if (!measured || !predicted || !count || !scratch || !errors) return VP_ERR_RANGE;
    if (!vp_impl_finite(measured, count) || !vp_impl_finite(predicted, count)) return VP_ERR_RANGE;
    memset(&made, 0, sizeof made);
    mean = vp_statistics_mean(measured, count);
    for (i = 0; i < count; i++) {
        const double rest = predicted[i] - measured[i];
        made.mae += fabs(rest);
        made.bias += rest;
        made.mape += fabs(rest) / fabs(measured[i]); /* measured 0: infinite or NaN */
        squares += rest * rest;
        spread += (measured[i] - mean) * (measured[i] - mean);
        scratch[i] = fabs(rest);
    }
    vp_impl_sort_double(scratch, count);
    made.count = count;
    made.r2 = scratch[0] >= 0.0 && spread > 0.0 ? 1.0 - squares / spread : (double)NAN;
    made.mae /= n;
    made.bias /= n;
    made.mape = vp_impl_number(made.mape) ? made.mape / n : (double)NAN;
    made.rmse = sqrt(squares / n);
    made.p95_absolute = vp_statistics_percentile(scratch, count, 95.0);
    made.max_absolute = scratch[count - 1];
    if (!vp_impl_number(made.rmse)) return VP_ERR_RANGE;
    *errors = made;
    return VP_OK;
}

VP_API size_t vp_linear_leave_out_scratch_bytes(size_t columns, size_t group_count) {
    size_t bytes = 64;
    if (columns < 1 || columns > VP_LINEAR_COLUMNS_LIMIT) return SIZE_MAX;
    vp_impl_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, columns * sizeof(double));
    vp_impl_arena_need(&bytes, group_count, sizeof(uint64_t));
    return bytes;
}

/* what leaving out works on: a triangle, a triangle of all groups behind it, coefficients and a row count for each group */
typedef struct vp_impl_leave_out {
    double *own, *behind, *coefficient; /* [groups, width, width] twice, [groups, columns] */
    uint64_t *rows;                     /* [groups] */
    size_t width, groups;
} vp_impl_leave_out;

static int vp_impl_leave_out_take(vp_impl_leave_out *l, size_t columns, size_t groups, void *scratch, size_t scratch_bytes) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    const size_t square = (columns + 1) * (columns + 1) * sizeof(double);
    l->width = columns + 1;
    l->groups = groups;
    l->own = (double *)vp_arena_take(&arena, groups, square);
    l->behind = (double *)vp_arena_take(&arena, groups, square);
    l->coefficient = (double *)vp_arena_take(&arena, groups, columns * sizeof(double));
    l->rows = (uint64_t *)vp_arena_take(&arena, groups, sizeof(uint64_t));
    if (!l->own || !l->behind || !l->coefficient || !l->rows) return 0;
    memset(l->own, 0, groups * square);
    memset(l->rows, 0, groups * sizeof(uint64_t));
    return 1;
}

/* one more row of a group: a rotation of it into the group's triangle, element by element, so that rows may come in any order of groups */
static void vp_impl_leave_out_row(vp_impl_leave_out *l, size_t group, const double *x, double y, double weight) {
    double *t = l->own + group * l->width * l->width, row[VP_IMPL_LINEAR_WIDTH];
    const double root = sqrt(weight);
    size_t i, j;
    for (j = 0; j + 1 < l->width; j++) row[j] = root * x[j];
    row[j] = root * y;
    l->rows[group]++;
    for (i = 0; i < l->width; i++) {
        double c, s, length;
        if (!(row[i] < 0.0 || row[i] > 0.0)) continue;
        length = hypot(t[i * l->width + i], row[i]);
        c = t[i * l->width + i] / length;
        s = row[i] / length;
        for (j = i; j < l->width; j++) {
            const double above = t[j * l->width + i];
            t[j * l->width + i] = c * above + s * row[j];
            row[j] = c * row[j] - s * above;
        }
    }
}

/* A fit for each group that has rows, of all the other groups: what lies before it was added up on the way, what lies behind it beforehand. */
static vp_result vp_impl_leave_out_solve(vp_impl_leave_out *l, const unsigned char *nonnegative, int drop, vp_error *error) {
    const size_t square = l->width * l->width, columns = l->width - 1;
    double before[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], others[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather g;
    vp_linear fit;
    uint64_t all = 0;
    size_t k;
    for (k = l->groups; k-- > 0;) {
        all += l->rows[k];
        if (k + 1 == l->groups) {
            memset(l->behind + k * square, 0, square * sizeof(double));
            continue;
        }
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, l->behind + (k + 1) * square);
        vp_impl_gather_triangle(&g, l->own + (k + 1) * square);
        vp_impl_gather_copy(&g, l->behind + k * square);
    }
    memset(before, 0, sizeof before);
    for (k = 0; k < l->groups; k++) {
        vp_result result;
        if (!l->rows[k]) continue;
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, before);
        vp_impl_gather_triangle(&g, l->behind + k * square);
        vp_impl_gather_copy(&g, others);
        result = vp_impl_linear_solve(others, l->width, all - l->rows[k], nonnegative, drop, &fit, error);
        if (result != VP_OK) return result;
        memcpy(l->coefficient + k * columns, fit.coefficient, columns * sizeof(double));
        vp_impl_gather_open(&g, columns);
        vp_impl_gather_triangle(&g, before);
        vp_impl_gather_triangle(&g, l->own + k * square);
        vp_impl_gather_copy(&g, before);
    }
    return VP_OK;
}

static double vp_impl_leave_out_value(const vp_impl_leave_out *l, size_t group, const double *x) {
    const double *coefficient = l->coefficient + group * (l->width - 1);
    double sum = 0.0;
    size_t j;
    for (j = 0; j + 1 < l->width; j++) sum += coefficient[j] * x[j];
    return sum;
}

VP_API vp_result vp_linear_leave_out(const double *x, const double *y, const uint32_t *groups, size_t rows, size_t columns, size_t group_count,
                                  const vp_linear_options *options, void *scratch, size_t scratch_bytes, double *predicted, vp_error *error) {
    vp_impl_leave_out l;
    vp_result result;
    size_t i;
    if (!groups || !predicted) return vp_fail(error, VP_ERR_RANGE, -1, "fit", "no groups, or no place for the result");
    if (vp_impl_linear_check(x, y, rows, columns, options, error) != VP_OK) return VP_ERR_RANGE;
    for (i = 0; i < rows; i++) {
        if (groups[i] >= group_count) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a group is not below group_count");
    }
    if (!vp_impl_leave_out_take(&l, columns, group_count, scratch, scratch_bytes))
        return vp_fail(error, VP_ERR_CAPACITY, -1, "fit", "scratch is too small");
    for (i = 0; i < rows; i++) vp_impl_leave_out_row(&l, groups[i], x + i * columns, y[i], options->weights ? options->weights[i] : 1.0);
    result = vp_impl_leave_out_solve(&l, options->nonnegative, options->drop_dependent, error);
    for (i = 0; result == VP_OK && i < rows; i++) predicted[i] = vp_impl_leave_out_value(&l, groups[i], x + i * columns);
    return result;
}

/* ---- what a request costs */
VP_API const char *vp_latency_stage_name(vp_latency_stage stage) {
    switch ((int)stage) {
#define VP_IMPL_LATENCY_CASE(name, text) case VP_LATENCY_##name: return text;
    VP_LATENCY_STAGES(VP_IMPL_LATENCY_CASE)
#undef VP_IMPL_LATENCY_CASE
    default: return NULL;
    }
}

VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column) {
    static const char *const physical[VP_LATENCY_STAGE_COUNT][VP_LATENCY_COLUMNS_LIMIT] = {
        {"1", "views", "vision_tokens", NULL, NULL, NULL, NULL},
        {"1", "sequence", "blocks", "blocks*sequence", "blocks*sequence*top_k", "blocks*sequence^2", "blocks*experts_read"},
        {"steps", "steps*blocks", "steps*blocks*top_k", "blocks*positions_read", NULL, NULL, NULL},
        {"1", "views", "sequence", NULL, NULL, NULL, NULL},
    };
    static const char *const seed[VP_LATENCY_COLUMNS_LIMIT] = {"1", "vision_tokens", "text_tokens", "tier_index", "top_k", "num_active_blocks",
                                                               "output_tokens"};
    if ((int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || column < 0 || column >= VP_LATENCY_COLUMNS_LIMIT) return NULL;
    if (features == VP_LATENCY_PHYSICAL) return physical[stage][column];
    if (features == VP_LATENCY_SEED) return seed[column];
    return features == VP_LATENCY_MEAN && column == 0 ? "1" : NULL;
}

static int vp_impl_latency_good(const vp_latency_request *r) {
    return r->views >= 0 && r->vision_tokens >= 0 && r->text_tokens >= 0 && r->sequence >= 1 && r->output_tokens >= 1 && r->tier_index >= 0
        && r->top_k >= 1 && r->top_k <= r->expert_count && r->active_blocks >= 1;
}

static int vp_impl_latency_runs(vp_latency_stage stage, const vp_latency_request *r) {
    return stage == VP_LATENCY_VISION ? r->views > 0 : stage != VP_LATENCY_DECODE || r->output_tokens > 1;
}

static int32_t vp_impl_latency_physical(vp_latency_stage stage, const vp_latency_request *r, double *x) {
    const double n = (double)r->sequence, blocks = (double)r->active_blocks, k = (double)r->top_k, steps = (double)r->output_tokens - 1.0;
    switch (stage) {
    case VP_LATENCY_VISION:
    case VP_LATENCY_OTHER:
        x[0] = 1.0;
        x[1] = (double)r->views;
        x[2] = stage == VP_LATENCY_VISION ? (double)r->vision_tokens : n;
        return 3;
    case VP_LATENCY_PREFILL:
        x[0] = 1.0;
        x[1] = n;
        x[2] = blocks;
        x[3] = blocks * n;
        x[4] = blocks * n * k;
        x[5] = blocks * n * n;
        /* E (1 - (1 - k / E)^n), written for many experts and few tokens too */
        x[6] = blocks * (double)r->expert_count * (r->top_k < r->expert_count ? -expm1(n * log1p(-k / (double)r->expert_count)) : 1.0);
        return 7;
    default:
        x[0] = steps;
        x[1] = steps * blocks;
        x[2] = steps * blocks * k;
        x[3] = blocks * (steps * n + 0.5 * steps * (steps - 1.0));
        return 4;
    }
}

/* the row of a request that was checked */
static int32_t vp_impl_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *r, double *x) {
    const int runs = vp_impl_latency_runs(stage, r);
    int32_t count = 1, i;
    x[0] = 1.0;
    if (features == VP_LATENCY_PHYSICAL) {
        count = vp_impl_latency_physical(stage, r, x);
    } else if (features == VP_LATENCY_SEED) {
        x[1] = (double)r->vision_tokens;
        x[2] = (double)r->text_tokens;
        x[3] = (double)r->tier_index;
        x[4] = (double)r->top_k;
        x[5] = (double)r->active_blocks;
        x[6] = (double)r->output_tokens;
        count = 7;
    }
    for (i = 0; !runs && i < count; i++) x[i] = 0.0;
    return count;
}

static int vp_impl_latency_kind(vp_latency_features features) {
    return features == VP_LATENCY_PHYSICAL || features == VP_LATENCY_SEED || features == VP_LATENCY_MEAN;
}

VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double *x,
                                int32_t *columns) {
    if (!request || !x || !columns || !vp_impl_latency_kind(features) || (int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT) return VP_ERR_RANGE;
    if (!vp_impl_latency_good(request)) return VP_ERR_RANGE;
    *columns = vp_impl_latency_row(features, stage, request, x);
    return VP_OK;
}

/* Is row i of a stage one to learn from? 1 and its weight; 0: no; -1: the row is wrong, and the error says why. */
static int vp_impl_latency_use(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request, double measured, size_t row,
                               double *weight, vp_error *error) {
    if (!vp_impl_latency_good(request)) {
        vp_fail(error, VP_ERR_RANGE, (int64_t)row, "request", "a count is out of range");
        return -1;
    }
    if (measured != measured || !vp_impl_latency_runs(stage, request)) return 0;
    if (!vp_impl_number(measured) || (features == VP_LATENCY_PHYSICAL && !(measured > 1e-100 && measured < 1e100))) {
        vp_fail(error, VP_ERR_RANGE, (int64_t)row, vp_latency_stage_name(stage), "a measured latency is not above 0");
        return -1;
    }
    *weight = features == VP_LATENCY_PHYSICAL ? 1.0 / (measured * measured) : 1.0;
    return 1;
}

static const unsigned char *vp_impl_latency_signs(vp_latency_features features) {
    static const unsigned char all[VP_LATENCY_COLUMNS_LIMIT] = {1, 1, 1, 1, 1, 1, 1};
    return features == VP_LATENCY_PHYSICAL ? all : NULL;
}

/* one stage; `stride` doubles from a measured value to the next row's */
static vp_result vp_impl_latency_fit_stage(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                           const double *measured, size_t stride, size_t rows, vp_linear *fit, unsigned char *fitted,
                                           vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], x[VP_LATENCY_COLUMNS_LIMIT], weight = 1.0;
    vp_impl_gather g;
    vp_latency_request any;
    size_t i;
    memset(&any, 0, sizeof any);
    vp_impl_gather_open(&g, (size_t)vp_impl_latency_row(features, stage, &any, x));
    for (i = 0; i < rows; i++) {
        const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i * stride], i, &weight, error);
        if (use < 0) return VP_ERR_RANGE;
        if (!use) continue;
        vp_impl_latency_row(features, stage, &requests[i], x);
        vp_impl_gather_row(&g, x, measured[i * stride], weight);
    }
    *fitted = g.rows > 0;
    if (!g.rows) return VP_OK;
    vp_impl_gather_copy(&g, triangle);
    return vp_impl_linear_solve(triangle, g.width, g.rows, vp_impl_latency_signs(features), 1, fit, error);
}

VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests, const double *measured, size_t rows,
                                vp_latency_model *model, vp_error *error) {
    vp_latency_model made;
    int32_t s, any = 0;
    if (!requests || !measured || !rows || !model || !vp_impl_latency_kind(features) || rows > SIZE_MAX / sizeof *requests)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows and a kind of features");
    memset(&made, 0, sizeof made);
    made.features = features;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_result result = vp_impl_latency_fit_stage(features, (vp_latency_stage)s, requests, measured + s, VP_LATENCY_STAGE_COUNT, rows,
                                                           &made.fit[s], &made.fitted[s], error);
        if (result != VP_OK) return result;
        made.affine[s].slope = 1.0;
        made.affine[s].condition = 1.0;
        any |= made.fitted[s];
    }
    if (!any) return vp_fail(error, VP_ERR_MISMATCH, -1, "fit", "no stage has a measured row");
    *model = made;
    return VP_OK;
}

static int vp_impl_latency_model_good(const vp_latency_model *m) {
    int32_t s;
    if (!m || !vp_impl_latency_kind(m->features)) return 0;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (m->fitted[s] && (m->fit[s].columns < 1 || m->fit[s].columns > VP_LATENCY_COLUMNS_LIMIT)) return 0;
    }
    return 1;
}

VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request, vp_latency_prediction *prediction) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, sum;
    int32_t s, j, columns;
    if (!vp_impl_latency_model_good(model) || !request || !prediction || !vp_impl_latency_good(request)) return VP_ERR_RANGE;
    prediction->total = 0.0;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (!model->fitted[s]) {
            prediction->stage[s] = (double)NAN;
            continue;
        }
        prediction->stage[s] = 0.0;
        if (!vp_impl_latency_runs((vp_latency_stage)s, request)) continue;
        columns = vp_impl_latency_row(model->features, (vp_latency_stage)s, request, x);
        if (columns > model->fit[s].columns) columns = model->fit[s].columns;
        for (sum = 0.0, j = 0; j < columns; j++) sum += model->fit[s].coefficient[j] * x[j];
        prediction->stage[s] = model->affine[s].slope * sum + model->affine[s].offset;
        prediction->total += prediction->stage[s];
    }
    return VP_OK;
}

VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage, const vp_latency_request *request, double level,
                                     vp_linear_range *range) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, value, held, weight;
    vp_linear_range made;
    const vp_affine *line;
    vp_result result;
    if (!vp_impl_latency_model_good(model) || (int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || !request || !range) return VP_ERR_RANGE;
    if (!vp_impl_latency_good(request) || !vp_impl_latency_runs(stage, request)) return VP_ERR_RANGE;
    if (!model->fitted[stage]) return VP_ERR_MISMATCH;
    vp_impl_latency_row(model->features, stage, request, x);
    value = vp_linear_value(&model->fit[stage], x);
    weight = model->features == VP_LATENCY_PHYSICAL ? 1.0 / (value * value) : 1.0; /* what is not measured yet weighs as it is predicted */
    result = vp_linear_interval(&model->fit[stage], x, weight, level, &made);
    if (result != VP_OK) return result;
    line = &model->affine[stage];
    made.value = line->slope * made.value + line->offset;
    made.mean_low = line->slope * made.mean_low + line->offset;
    made.mean_high = line->slope * made.mean_high + line->offset;
    made.low = line->slope * made.low + line->offset;
    made.high = line->slope * made.high + line->offset;
    if (line->slope < 0.0) { /* a falling line turns them round */
        held = made.low;
        made.low = made.high;
        made.high = held;
        held = made.mean_low;
        made.mean_low = made.mean_high;
        made.mean_high = held;
    }
    *range = made;
    return VP_OK;
}

VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count) {
    return vp_linear_leave_out_scratch_bytes(VP_LATENCY_COLUMNS_LIMIT, group_count);
}

VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *requests,
                                      const double *measured, const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error) {
    double x[VP_LATENCY_COLUMNS_LIMIT], weight = 1.0;
    vp_latency_request any;
    vp_impl_leave_out l;
    vp_result result;
    size_t i, columns;
    int pass;
    memset(&any, 0, sizeof any);
    if (!requests || !measured || !groups || !rows || !predicted || !vp_impl_latency_kind(features) || (int)stage < 0
        || (int)stage >= VP_LATENCY_STAGE_COUNT)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "needs rows, groups, a stage and a kind of features");
    columns = (size_t)vp_impl_latency_row(features, stage, &any, x);
    for (i = 0; i < rows; i++) {
        if (groups[i] >= group_count) return vp_fail(error, VP_ERR_RANGE, (int64_t)i, "fit", "a group is not below group_count");
    }
    if (!vp_impl_leave_out_take(&l, columns, group_count, scratch, scratch_bytes))
        return vp_fail(error, VP_ERR_CAPACITY, -1, "fit", "scratch is too small");
    for (pass = 0; pass < 2; pass++) { /* 0: learn, 1: predict */
        for (i = 0; i < rows; i++) {
            const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i], i, &weight, error);
            if (use < 0) return VP_ERR_RANGE;
            if (use) vp_impl_latency_row(features, stage, &requests[i], x);
            if (pass) predicted[i] = use ? vp_impl_leave_out_value(&l, groups[i], x) : (double)NAN;
            else if (use) vp_impl_leave_out_row(&l, groups[i], x, measured[i], weight);
        }
        result = pass ? VP_OK : vp_impl_leave_out_solve(&l, vp_impl_latency_signs(features), 1, error);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}

/* ---- recalibration, guardrails */
VP_API vp_result vp_affine_fit(const double *predicted, const double *measured, size_t count, vp_affine *affine) {
    double x = 0.0, y = 0.0, xx = 0.0, xy = 0.0, n = (double)count, dx, dy, spread, cosine;
    vp_affine made;
    size_t i;
    if (!predicted || !measured || !affine || !vp_impl_finite(predicted, count) || !vp_impl_finite(measured, count)) return VP_ERR_RANGE;
    if (count < 2) return VP_ERR_MISMATCH;
    for (i = 1; i < count; i++) { /* means of the differences to the first point */
        x += predicted[i] - predicted[0];
        y += measured[i] - measured[0];
    }
    x /= n;
    y /= n;
    for (i = 0; i < count; i++) {
        dx = predicted[i] - predicted[0] - x;
        dy = measured[i] - measured[0] - y;
        xx += dx * dx;
        xy += dx * dy;
    }
    if (!(xx > 0.0)) return VP_ERR_MISMATCH;
    made.slope = xy / xx;
    made.offset = (measured[0] + y) - made.slope * (predicted[0] + x);
    spread = sqrt(xx / n);
    cosine = fabs(predicted[0] + x) / hypot(predicted[0] + x, spread); /* of the angle between the columns; the two singular values are 1 -+ it */
    made.condition = (1.0 + cosine) * hypot(predicted[0] + x, spread) / spread;
    made.ill_conditioned = !(made.condition <= VP_AFFINE_CONDITION_LIMIT);
    made.count = count;
    if (!vp_impl_number(made.slope) || !vp_impl_number(made.offset)) return VP_ERR_RANGE;
    *affine = made;
    return VP_OK;
}

VP_API double vp_affine_apply(const vp_affine *affine, double predicted) {
    return affine ? affine->slope * predicted + affine->offset : (double)NAN;
}

VP_API vp_result vp_latency_recalibrate(vp_latency_model *model, const vp_latency_request *requests, const double *measured, size_t rows, int force,
                                        double *scratch, vp_error *error) {
    vp_affine line[VP_LATENCY_STAGE_COUNT];
    double weight = 1.0, x[VP_LATENCY_COLUMNS_LIMIT] = {0.0};
    vp_result result;
    size_t i, n;
    int32_t s;
    if (!vp_impl_latency_model_good(model) || !requests || !measured || !rows || !scratch)
        return vp_fail(error, VP_ERR_RANGE, -1, "recalibration", "needs a model and rows");
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_latency_stage stage = (vp_latency_stage)s;
        line[s] = model->affine[s];
        for (i = 0, n = 0; model->fitted[s] && i < rows; i++) {
            const double value = measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s];
            const int use = vp_impl_latency_use(model->features, stage, &requests[i], value, i, &weight, error);
            if (use < 0) return VP_ERR_RANGE;
            if (!use) continue;
            vp_impl_latency_row(model->features, stage, &requests[i], x);
            scratch[n] = vp_linear_value(&model->fit[s], x);
            scratch[rows + n++] = value;
        }
        if (!n) continue;
        result = vp_affine_fit(scratch, scratch + rows, n, &line[s]);
        if (result != VP_OK) {
            return vp_fail(error, result, -1, vp_latency_stage_name(stage),
                           "these measurements give no line: measure two or more requests of different sizes");
        }
        if (line[s].ill_conditioned && !force) {
            return vp_fail(error, VP_ERR_MISMATCH, -1, vp_latency_stage_name(stage),
                           "the measured requests are almost the same size, so that the line is worthless for others: measure different sizes");
        }
    }
    memcpy(model->affine, line, sizeof line);
    return VP_OK;
}

VP_API size_t vp_affine_curve_scratch_bytes(size_t count, size_t draws) {
    size_t bytes = 64;
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(double));
    vp_impl_arena_need(&bytes, count, sizeof(uint32_t));
    vp_impl_arena_need(&bytes, draws, sizeof(double));
    return bytes;
}

/* the first `points` places of order become a random choice; the others follow */
static void vp_impl_draw_first(vp_random *random, uint32_t *order, size_t count, size_t points) {
    size_t i;
    for (i = 0; i < points; i++) {
        const size_t other = i + (size_t)vp_random_below(random, (uint64_t)(count - 1 - i));
        const uint32_t held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}

VP_API vp_result vp_affine_learning(const double *predicted, const double *measured, size_t count, size_t points, size_t draws, uint32_t seed,
                                    void *scratch, size_t scratch_bytes, vp_affine_curve *curve) {
    vp_arena arena = vp_impl_arena_of(scratch, scratch_bytes);
    double *x, *y, *errors, sum;
    vp_affine_curve made;
    vp_random random;
    uint32_t *order;
    vp_affine line;
    size_t i, d;
    if (!predicted || !measured || !curve || count < 3 || points < 2 || points >= count || draws < 1 || draws > 100000) return VP_ERR_RANGE;
    if (!vp_impl_counts_fit(count) || !vp_impl_finite(predicted, count) || !vp_impl_finite(measured, count)) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) if (!(measured[i] < 0.0 || measured[i] > 0.0)) return VP_ERR_RANGE;
    x = (double *)vp_arena_take(&arena, count, sizeof(double));
    y = (double *)vp_arena_take(&arena, count, sizeof(double));
    order = (uint32_t *)vp_arena_take(&arena, count, sizeof(uint32_t));
    errors = (double *)vp_arena_take(&arena, draws, sizeof(double));
    if (!x || !y || !order || !errors) return VP_ERR_CAPACITY;
    memset(&made, 0, sizeof made);
    made.points = points;
    for (i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        made.before += fabs((predicted[i] - measured[i]) / measured[i]) / (double)count;
    }
    vp_random_seed(&random, seed);
    for (d = 0; d < draws; d++) {
        vp_impl_draw_first(&random, order, count, points);
        for (i = 0; i < points; i++) {
            x[i] = predicted[order[i]];
            y[i] = measured[order[i]];
        }
        if (vp_affine_fit(x, y, points, &line) != VP_OK || line.ill_conditioned) {
            made.refused++;
            continue;
        }
        for (sum = 0.0, i = points; i < count; i++)
            sum += fabs((vp_affine_apply(&line, predicted[order[i]]) - measured[order[i]]) / measured[order[i]]);
        errors[made.draws++] = sum / (double)(count - points);
    }
    if (!made.draws) return VP_ERR_MISMATCH;
    made.mean = vp_statistics_mean(errors, made.draws);
    vp_impl_sort_double(errors, made.draws);
    made.low = vp_statistics_percentile(errors, made.draws, 5.0);
    made.high = vp_statistics_percentile(errors, made.draws, 95.0);
    *curve = made;
    return VP_OK;
}

VP_API vp_result vp_guardrail_compute(const double *predicted, const double *measured, size_t count, double budget, double safety, double tolerance,
                                      vp_guardrail *guardrail) {
    vp_guardrail made;
    size_t i;
    if (!predicted || !measured || !guardrail || !count || !vp_impl_number(budget) || !(safety > 0.0 && safety < HUGE_VAL)
        || !(tolerance >= 1.0 && tolerance < HUGE_VAL) || !vp_impl_finite(predicted, count) || !vp_impl_finite(measured, count))
        return VP_ERR_RANGE;
    memset(&made, 0, sizeof made);
    made.budget = budget;
    made.count = count;
    for (i = 0; i < count; i++) {
        const int accepted = predicted[i] * safety <= budget, over = measured[i] > budget;
        made.accepted += (size_t)accepted;
        made.over_budget += (size_t)over;
        made.violations += accepted && measured[i] > tolerance * budget;
        made.false_accepts += accepted && over;
        made.false_rejects += !accepted && !over;
    }
    made.violation_rate = made.accepted ? (double)made.violations / (double)made.accepted : (double)NAN;
    made.false_accept_rate = made.over_budget ? (double)made.false_accepts / (double)made.over_budget : (double)NAN;
    made.false_reject_rate = count > made.over_budget ? (double)made.false_rejects / (double)(count - made.over_budget) : (double)NAN;
    *guardrail = made;
    return VP_OK;
}
#endif /* !VLMPROF_CORE */

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_IMPLEMENTATION */
