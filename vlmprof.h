/* vlmprof.h - v0.2.0 - stage-by-stage profiling of vision-language models - MIT licence
 *
 * MANUAL
 *
 * Do this:
 *   1. Copy vlmprof.h into your project; for models other than MolmoE, copy parts/vlmprof_families.h next to it.
 *   2. In one C or C++ file:
 *          #define VLMPROF_IMPLEMENTATION
 *          #include "vlmprof.h"
 *          #include "vlmprof_families.h"
 *      Other files that need them have only the includes.
 *   3. Link with -lm.
 *   4. Call, for example, vp_count_tokens("qwen3-vl", 640, 480): it returns 300, the vision tokens of a 640x480 image.
 *   5. Other calls, by task:
 *     vision tokens of an image        vp_layout_compute; for other models vp_count_tokens (vlmprof_families.h)
 *     crops for a number of tokens     vp_select_crops, vp_select_vision_tokens, vp_select_tiling
 *     position of each vision token    vp_tokens_index_map, vp_tokens_image_ids
 *     time the stages of a request     vp_stage_begin, vp_stage_end, vp_stage_add, vp_stage_statistics
 *     percentiles and their intervals  vp_statistics_compute, vp_statistics_percentile_interval
 *     decide when to stop              vp_stop_decide
 *     draw samples as NumPy does       vp_sampler_choice, vp_sampler_dataset; for grids of knobs vp_sampler_grid
 *     write results for vlmprof report samples/02_time_and_report.c; vlmprof help library lists the keys
 *     write JSON                       vp_json_writer_init, vp_json_begin_object, vp_json_key, ..., vp_json_finish
 *     read JSON                        vp_json_parse, vp_json_get, vp_json_at, vp_json_to_int, vp_json_text
 *
 * What it is
 *   When a vision-language model processes an image, where do the milliseconds go, and what accuracy do they buy? This
 *   header is the core of such a measurement: tilings of images, crop selection, counts of vision tokens,
 *   samplers, a clock and statistics, JSON. It is one file to copy, and it needs no GPU, no Python and no weights.
 *   Companion headers in parts/ contain the other subjects. The program `vlmprof` is built from all of them.
 *
 * How to include it
 *   Everywhere:               #include "vlmprof.h"
 *   In exactly one C or C++ file, before the include and, if possible, before any system header:
 *                             #define VLMPROF_IMPLEMENTATION
 *   Switches of the includer, defined before the include:
 *     VLMPROF_IMPLEMENTATION  compiles the functions into this file
 *     VLMPROF_STATIC          makes the functions static; needs VLMPROF_IMPLEMENTATION
 *     VLMPROF_OFF             marks of stages and ranges (vp_stage_begin, VP_RANGE, ..) in this file compile to nothing
 *     VLMPROF_CLOCK_NS        an int64_t expression that vp_clock_ns reads instead of the system's monotonic clock
 *     VP_API                  replaces the linkage specifier of every function, for shared libraries
 *     VP_MALLOC(bytes), VP_CALLOC(count, bytes), VP_REALLOC(memory, bytes), VP_FREE(memory)
 *                             replace malloc, calloc, realloc and free in the companions that allocate. Define all four
 *                             in every file that includes a header. Release memory that a declaration calls malloc'ed
 *                             with VP_FREE. vlmprof.h itself allocates nothing
 *   It needs stdint, stddef, string, math and time; link with -lm. It is plain C11 and also compiles as C++17.
 *
 * Companion headers
 *   For another subject, copy its header from parts/ into the same folder. VLMPROF_IMPLEMENTATION compiles the
 *   functions of every header that a file includes. VLMPROF_SCORE_IMPLEMENTATION compiles only those of
 *   vlmprof_score.h, and so on for the others. VLMPROF_STATIC makes them static too. Inside a companion, search for
 *   ---- to jump to the next part.
 *     vlmprof_families.h    token counts of other model families by image size
 *     vlmprof_image.h       image file -> upright RGB -> crops -> patches and masks; decodes with stb_image (Debian,
 *                           Ubuntu: libstb-dev). Its first lines explain VLMPROF_STB_IMAGE, VLMPROF_STB_EXTERNAL and
 *                           VLMPROF_NO_STB
 *     vlmprof_ranges.h      ranges of a program's own code, table of operations, schedule
 *     vlmprof_score.h       scoring rules; also copy vlmprof_unicode.h
 *     vlmprof_trace.h       slices, marks and counters as a Chrome trace
 *     vlmprof_torch_trace.h  the same as torch.profiler writes them; also copy vlmprof_trace.h, vlmprof_ranges.h,
 *                           vlmprof_stages.h and vlmprof_file.h
 *   The other subjects are only in the library build/libvlmprof.a; the headers in parts/lib/ declare them.
 *     vlmprof_config.h      config.json, built-in shapes, a model's tensors
 *     vlmprof_checkpoint.h  safetensors
 *     vlmprof_tokenizer.h   BPE from tokenizer.json
 *     vlmprof_processor.h   pixel values and prompts as Hugging Face's processors make them
 *     vlmprof_prompt.h      records of the nine data sets -> prompt text, as the reference builds it
 *     vlmprof_caption.h     CIDEr-D of captions, with a built-in tokenizer
 *     vlmprof_analysis.h    tests and verdicts, Pareto fronts, coupling of knobs
 *     vlmprof_latency.h     regression, the latency model, recalibration for another device, guardrails
 *     vlmprof_noise.h       other activity of the machine during a measurement
 *     vlmprof_chat.h        requests to chat servers and their answers; vlmprof_server.h sends and times them
 *     vlmprof_engine.h      the engine: open a model, run a request, read its times
 *
 * Smallest example (samples/01_count_tokens.c; cc -I. -Iparts samples/01_count_tokens.c -lm)
 *
 *     #define VLMPROF_IMPLEMENTATION
 *     #include "vlmprof.h"
 *     #include "vlmprof_families.h"
 *     #include <stdio.h>
 *     int main(void) {
 *         vp_geometry geometry = vp_geometry_default();        // MolmoE-1B
 *         vp_tile_options options = vp_tile_options_default(); // adaptive tiling, at most 12 crops
 *         vp_layout layout;
 *         if (vp_layout_compute(&geometry, &options, 640, 480, &layout, NULL) != VP_OK) return 1;
 *         printf("640x480: %d rows, %d columns, %d vision tokens\n",
 *                (int)layout.tiling.rows, (int)layout.tiling.cols, (int)layout.feature_tokens);
 *         printf("qwen3-vl: %d vision tokens\n", (int)vp_count_tokens("qwen3-vl", 640, 480));
 *         return 0;
 *     }
 *
 * What it does not do
 *   - The GPU code has been tested only on an emulated GPU. Nothing is known yet about its measurements on a real one.
 *   - The engine runs MolmoE and some other models (cli/guides/models.txt). It does not train. It decodes greedily, one
 *     request at a time.
 *   - It uses no network: it downloads nothing and sends nothing.
 *   - The headers start no thread, install no signal handler, print nothing and never end the program.
 *   - It has no PNG or JPEG decoder of its own (it uses stb_image), and it reads no video.
 *
 * Table of contents: search for the tag; declarations and implementation follow the same order
 *   >>result          result codes, errors, arena
 *   >>tiler           geometry of crops and patches, tilings, layout of an image
 *   >>select          target tokens <-> crops <-> tiling <-> resolution
 *   >>tokens          position of each vision token in the sequence
 *   >>sampler         NumPy's MT19937, choice without replacement, active blocks, knob grids, shards
 *   >>timer           monotonic clock, stages of a request, sums and percentiles as NumPy computes them, intervals,
 *                     outliers, stop rule
 *   >>json            writer, strict reader, numbers, UTF-8
 *   >>implementation  start of the second half
 *
 * Vocabulary
 *   pixel     one RGB value triple of the upright image (EXIF orientation applied)
 *   patch     square of 14 x 14 pixels, the input unit of the vision transformer
 *   crop      square of 336 x 336 pixels = 24 x 24 patches that the vision transformer sees at once; neighbours overlap
 *   tile      the 224 x 224 pixels of a crop that no other crop covers; a tiling is rows x columns of tiles
 *   view      a crop or the global view (the whole image in one 336 x 336 square): views = crops + 1
 *   token     one position of the language model's sequence; a vision token is 2 x 2 patches pooled (feature token)
 *   block     one layer of the language model; an inactive block passes its input on unchanged
 *   prefill   the pass over the whole prompt. It yields the first new token, and each decode step yields one more: N
 *             new tokens take N - 1 decode steps
 *   stage     a named part of a request, see VP_STAGES in vlmprof_stages.h
 *   _index    counts from 0;  _count  number of elements;  _bytes  size;  _capacity  number that fits
 *   (The numbers are those of Molmo's geometry, vp_geometry_default; config.json can give others.)
 *
 * Units
 *   The unit is the last part of a name: _ns, _px, _bytes, _hz. Time is int64_t nanoseconds of a monotonic clock. MB =
 *   10^6 bytes, MiB = 2^20. Shapes are written [outer, ..., inner], which is also the order in memory. Tilings are
 *   [rows, columns]. Signatures name width before height, as image files do; result files use [height, width].
 *
 * Errors
 *   A function that can fail returns a vp_result: VP_OK = 0, failures are negative and never change (VP_RESULTS). Many
 *   of them also fill a vp_error with details; it may be NULL. Outputs are untouched on failure. If a buffer is too
 *   small, the result is VP_ERR_CAPACITY and, where the declaration says so, the count that is needed. Nothing is
 *   clamped silently. Zero is a value, never "the default": vp_..._default() fills in the defaults. Every file, every
 *   number and the contents of every text are treated as hostile. Pointers are the program's own: a pointer must not be
 *   NULL unless its declaration says what NULL means. This is true of all headers.
 *
 * Memory
 *   The caller passes buffers; nothing is allocated, with these exceptions. Decoded images, whole files, checkpoint,
 *   tokenizer, engine and trace own memory from malloc or mmap; their declarations name the function that releases it.
 *   Caption scoring releases its memory before it returns.
 *
 * Threads
 *   There is no mutable global state. All functions are reentrant; an object belongs to one thread at a time.
 *   Read-only objects (tokenizer, checkpoint, vp_json) can be shared. The engine uses OpenMP threads inside
 *   a call.
 *
 * Numerics
 *   Tilings, token counts, resized sizes, random draws, percentiles and sums repeat the reference's operations in
 *   the same float width and the same order, so that results are equal and not just close. They
 *   do so under -ffast-math, contraction and x87, too: pragmas around each implementation switch these off (gcc,
 *   clang, MSVC, ICC). With a compiler whose pragmas are not known, layouts, counts and statistics check its
 *   arithmetic and return VP_ERR_UNSUPPORTED. On 32-bit x86, implementations use SSE2. Checks are written so that NaN
 *   fails them.
 *
 * Sources
 *   Each function names its source. The reference for tiling, preprocessing, the model and the experiments' rules is
 *   the repository ChulanZhang/molmo_hf at commit 09bce1fc. The model is described in "Molmo and PixMo" (arXiv
 *   2409.17146) and "OLMoE" (arXiv 2409.02060). Random numbers, percentiles and sums match NumPy 1.26.
 *
 * Last revisions
 *   0.2.0 (2026-11) the single header was split into this one and its companions in parts/; VLMPROF_CORE,
 *                   VLMPROF_FAMILIES and VLMPROF_RANGES no longer have an effect; vp_sampler_grid takes up to 8 knobs
 *   0.1.0 (2026-11) first version
 */
#ifndef VLMPROF_H
#define VLMPROF_H

#define VLMPROF_VERSION "0.2.0"
#define VLMPROF_VERSION_MAJOR 0
#define VLMPROF_VERSION_MINOR 2
#define VLMPROF_VERSION_PATCH 0

/* In strict ISO mode (-std=c11) the C library hides clock_gettime and others, unless they are requested before its
 * first header. */
#if defined(VLMPROF_IMPLEMENTATION) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(_POSIX_C_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#if defined(VLMPROF_STATIC) && !defined(VLMPROF_IMPLEMENTATION)
#error "VLMPROF_STATIC needs VLMPROF_IMPLEMENTATION"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define VP_EXTERN_C_BEGIN extern "C" {
#define VP_EXTERN_C_END }
#else
#define VP_EXTERN_C_BEGIN
#define VP_EXTERN_C_END
#endif
/* VP_EXACT_BEGIN VP_EXACT_WIDTH and VP_EXACT_END enclose implementations. What stands between them computes as it is
 * written, operation by operation, in the width of its types, whatever the flags of the including file say: -ffast-math
 * or parts of it, contraction, /fp:fast, x87. (gcc heeds only one such pragma of a macro, so there are two macros.) */
#define VP_EXACT_WIDTH
#if defined(VP_EXACT_BEGIN) && defined(VP_EXACT_END)
#define VP_IMPL_ARITHMETIC_UNKNOWN /* the including file's own words, or a compiler without any: functions check */
#elif defined(_MSC_VER)
#define VP_EXACT_BEGIN __pragma(float_control(precise, on, push)) __pragma(fp_contract(off))
#define VP_EXACT_END __pragma(float_control(pop))
#elif defined(__clang__) || defined(__INTEL_COMPILER)
#define VP_EXACT_BEGIN \
    _Pragma("float_control(push)") _Pragma("float_control(precise, on)") _Pragma("STDC FP_CONTRACT OFF")
#define VP_EXACT_END _Pragma("float_control(pop)")
#if defined(__i386__) && !defined(__SSE2_MATH__)
#undef VP_EXACT_WIDTH
#undef VP_EXACT_END
#define VP_EXACT_WIDTH _Pragma("clang attribute push(__attribute__((target(\"sse2\"))), apply_to = function)")
#define VP_EXACT_END _Pragma("clang attribute pop") _Pragma("float_control(pop)")
#endif
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define VP_EXACT_BEGIN \
    _Pragma("GCC push_options") \
    _Pragma("GCC optimize (\"no-fast-math,no-unsafe-math-optimizations,no-associative-math,no-reciprocal-math,\
no-finite-math-only,signed-zeros,trapping-math,fp-contract=off\")")
#define VP_EXACT_END _Pragma("GCC pop_options")
#if defined(__i386__) && !defined(__SSE2_MATH__)
#undef VP_EXACT_WIDTH
#define VP_EXACT_WIDTH _Pragma("GCC target (\"sse2,fpmath=sse\")")
#endif
#else
#define VP_IMPL_ARITHMETIC_UNKNOWN
#define VP_EXACT_BEGIN
#define VP_EXACT_END
#endif
/* A product that is about to be added. clang fuses across statements and ignores its own pragma if told
 * -ffp-contract=fast, so there the product goes through memory. */
#if defined(__clang__) && (defined(__FMA__) || !defined(__x86_64__))
static inline double vp_impl_rounded(double value) {
    volatile double kept = value;
    return kept;
}
#else
#define vp_impl_rounded(value) (value)
#endif
#define VP_IMPL_INEXACT "the compiler changes floating-point arithmetic: no -ffast-math or parts of it, /fp:precise"
#ifdef VP_IMPL_ARITHMETIC_UNKNOWN
/* 1 if the compiler rounds to double, contracts and reassociates nothing, divides, and knows NaN. */
static inline int vp_impl_arithmetic(void) {
    volatile double tenth = 0.1, ten = 10.0, one = 1.0, square = 49.0, zero = 0.0;
    const double divisor = square, none = zero / zero;
    volatile double rounded = tenth + 0.65 + 4503599627370496.0 - 4503599627370496.0, product = tenth * ten - one,
                    whole = square / divisor, others[3] = {one / divisor, ten / divisor, tenth / divisor};
    return rounded == 1.0 && product == 0.0 && whole == 1.0 && others[0] > others[2] && none != none;
}
#else
#define vp_impl_arithmetic() 1
#endif

VP_EXTERN_C_BEGIN

#ifndef VP_API
#if defined(VLMPROF_STATIC) && defined(__i386__) && !defined(__SSE2_MATH__) && defined(__clang__)
#define VP_API static __attribute__((used)) /* keeps the calling convention of code without SSE */
#elif defined(VLMPROF_STATIC) && defined(__i386__) && !defined(__SSE2_MATH__) && defined(__GNUC__)
#define VP_API static __attribute__((used, noclone))
#elif defined(VLMPROF_STATIC) && defined(__GNUC__)
#define VP_API static __attribute__((unused))
#elif defined(VLMPROF_STATIC)
#define VP_API static
#else
#define VP_API
#endif
#endif

/* memory functions of the companions, which include <stdlib.h> */
#if !defined(VP_MALLOC) && !defined(VP_CALLOC) && !defined(VP_REALLOC) && !defined(VP_FREE)
#define VP_MALLOC(bytes) malloc(bytes)
#define VP_CALLOC(count, bytes) calloc(count, bytes)
#define VP_REALLOC(memory, bytes) realloc(memory, bytes)
#define VP_FREE(memory) free(memory)
#elif !defined(VP_MALLOC) || !defined(VP_CALLOC) || !defined(VP_REALLOC) || !defined(VP_FREE)
#error "define VP_MALLOC, VP_CALLOC, VP_REALLOC and VP_FREE, or none of them"
#endif

/* for a function that is defined in the header so that loops can inline it */
#ifdef __GNUC__
#define VP_INLINE static inline __attribute__((unused))
#else
#define VP_INLINE static inline
#endif

/* ================================================================================================ result >>result
 * Every function that can fail returns a vp_result; if there is more to say, it also fills an optional vp_error. On
 * failure outputs are untouched, unless the declaration says otherwise. */
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

/* the details of an error; `offset` is a byte offset into the input, or -1 */
typedef struct vp_error {
    vp_result code;
    int64_t offset;
    char where[320]; /* file, field, tensor or call; a long path is shortened to "..." and its end */
    char text[640];  /* one line: what is wrong and what to do */
} vp_error;

/* The fixed text of a result code; never NULL. */
VP_API const char *vp_result_text(vp_result result);
/* Fills an error (NULL is allowed) and returns its code, so that `return vp_fail(...)` reads well. Long texts are
 * cut; bytes of `text` that are not UTF-8 become '?'. */
VP_API vp_result vp_fail(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text);

/* A bump allocator over the caller's memory; used by the sections that need more than fixed buffers. */
typedef struct vp_arena {
    unsigned char *base;
    size_t capacity_bytes;
    size_t used_bytes; /* high-water mark: a retry needs at least this much */
} vp_arena;
/* Returns `count * element_bytes` bytes aligned to 64. If they do not fit or the product overflows, returns NULL and
 * leaves used_bytes unchanged. */
VP_API void *vp_arena_take(vp_arena *arena, size_t count, size_t element_bytes);
/* Adds to *bytes the size of `count` elements in an arena, alignment included; SIZE_MAX after an overflow. */
VP_API void vp_arena_need(size_t *bytes, size_t count, size_t element_bytes);
/* An empty arena over the caller's memory; an arena over NULL has capacity 0. */
VP_API vp_arena vp_arena_over(void *memory, size_t bytes);

/* ---- small helpers that the companion headers share; any program may use them
 * *out = a + b, or a * b. Returns 1, or 0 if that overflows (out is then untouched). */
VP_API int vp_size_add(size_t a, size_t b, size_t *out);
VP_API int vp_size_multiply(size_t a, size_t b, size_t *out);
/* Copies a text into `capacity` >= 1 bytes and always ends it with a NUL; NULL counts as "". Names may come from
 * hostile files: control bytes become '?' so that an error stays on one line, and a cut never splits a UTF-8
 * character. */
VP_API void vp_text_copy(char *out, size_t capacity, const char *text);
/* A text built in pieces, without stdio, for messages that contain numbers. Start with {{0}, 0}; long texts are
 * cut. */
typedef struct vp_message {
    char text[320];
    size_t bytes;
} vp_message;
VP_API void vp_message_text(vp_message *message, const char *text); /* appends a text; NULL counts as "" */
VP_API void vp_message_int(vp_message *message, int64_t value);     /* appends a number */

/* =================================================================================== geometry and tiler >>tiler
 * Image size -> tiling (rows x cols of crops) -> canvas, resized size, pads. Integers in pixels. Nothing is
 * allocated; all functions are reentrant. Words: an image of `crops` crops has `views` = crops + 1 (one is the
 * global view); a crop has `patches` per side for the ViT and `tokens` per side after pooling. */
enum {
    VP_CROPS_LIMIT = 65536,      /* most crops of any rule; more is VP_ERR_RANGE, so that no input makes a call slow */
    VP_CROP_PX_LIMIT = 32768,    /* longest side of a crop */
    VP_CANVAS_PX_LIMIT = 8388608 /* longest side of a canvas: resized sizes use float32, which has halves up to here */
};

typedef struct vp_geometry {
    int32_t crop_px;             /* side of one crop and of the global view: 336 */
    int32_t patch_px;            /* side of one ViT patch: 14 */
    int32_t margin_left_patches; /* overlap of neighbouring crops, config.json's overlap_margins: 4 */
    int32_t margin_right_patches;
    int32_t pool;                /* pooling window side in patches: 2 */
    int32_t max_crops;           /* adaptive tiling's limit, without the global view: 12 */
    float mean[3], std[3];       /* of RGB values in 0..1 */
} vp_geometry;
/* The geometry of MolmoE-1B and all Molmo 0924 models, with CLIP's mean and std. */
VP_API vp_geometry vp_geometry_default(void);
/* Checks that a geometry is consistent.
 * returns: VP_OK; VP_ERR_RANGE: a side < 1 or crop_px > VP_CROP_PX_LIMIT; patch_px does not divide crop_px; pool does
 *          not divide the patches per side or a margin; the margins leave no window; max_crops outside
 *          1..VP_CROPS_LIMIT; mean or std not finite, or std < 1e-6 */
VP_API vp_result vp_geometry_check(const vp_geometry *geometry);
/* Derived numbers; 0 for a geometry that vp_geometry_check rejects. */
VP_API int32_t vp_geometry_patches_per_side(const vp_geometry *geometry);  /* crop_px / patch_px: 24 */
VP_API int32_t vp_geometry_tokens_per_side(const vp_geometry *geometry);   /* patches / pool: 12 */
VP_API int32_t vp_geometry_tokens_per_crop(const vp_geometry *geometry);   /* 144 */
/* side of a crop without its margins, which is the stride of the crops: 224 */
VP_API int32_t vp_geometry_window_px(const vp_geometry *geometry);
VP_API int32_t vp_geometry_margin_px(const vp_geometry *geometry);         /* both margins together: 112 */

/* a range of crop counts, the reference's third way to specify an image size */
typedef struct vp_tier {
    const char *name; /* low, medium, high */
    int32_t min_crops, max_crops;
    int32_t preferred_count, preferred[4]; /* tried first, in this order */
} vp_tier;
/* Tier presets in order low (1-3), medium (4-8), high (9-15); NULL past the end. A preset lives as long as the program.
 * rule:    low never gives 3 crops: primes above 2 are skipped */
VP_API const vp_tier *vp_tier_at(int32_t index);
/* The preset of that name, or NULL. */
VP_API const vp_tier *vp_tier_find(const char *name);

typedef struct vp_tiling { int32_t rows, cols; } vp_tiling;

/* Molmo's own rule: the tiling that needs the least upscaling, or else the least downscaling.
 * in:      width_px, height_px  of the upright image, 1..INT32_MAX
 *          max_crops            1..VP_CROPS_LIMIT, without the global view
 * out:     tiling               on success
 * returns: VP_OK; VP_ERR_RANGE
 * rule:    scale(r, c) = min(window * r / (height - margin), window * c / (width - margin)); the smallest scale >= 1
 *          wins, or if there is none, the largest. Ties go to fewer crops, then fewer rows. An image smaller than the
 *          margin gets 1x1
 * source:  allenai/molmo olmo/data/model_preprocessor.py select_tiling
 * numeric: exact; the reference compares float32 quotients, which can differ only if max_crops times a side exceeds
 *          2^23 */
VP_API vp_result vp_tiler_adaptive(const vp_geometry *geometry, int32_t width_px, int32_t height_px, int32_t max_crops,
                                   vp_tiling *tiling);
/* The experiments' rule: the crop count of a tier and the factorisation that come nearest to the image's aspect ratio.
 * in:      tier   a preset or the caller's own: 1 <= min_crops <= max_crops <= VP_CROPS_LIMIT, preferred_count 0..4
 * returns: VP_OK; VP_ERR_RANGE (also for tier NULL)
 * rule:    the smallest |cols / rows - width / height| wins; of equals, the first. Order: preferred counts, then the
 *          others ascending; within a count, rows ascending. Primes above 2 are skipped; if all counts are prime: 1 x
 *          min_crops
 * source:  ChulanZhang/molmo_hf molmo/preprocessors/multimodal_preprocessor.py select_tiling
 * numeric: double */
VP_API vp_result vp_tiler_tier(const vp_tier *tier, int32_t width_px, int32_t height_px, vp_tiling *tiling);
/* The tiling of exactly `crops` crops whose canvas is nearest to an aspect ratio.
 * in:      crops   1..VP_CROPS_LIMIT, primes included
 *          aspect  width / height, positive and finite
 * returns: VP_OK; VP_ERR_RANGE
 * rule:    smallest |(window * cols + margin) / (window * rows + margin) - aspect|; ties go to fewer rows. Unlike the
 *          tiers' rule, this one includes the margin
 * source:  ChulanZhang/molmo_hf experiments, crops_to_tiling
 * numeric: double */
VP_API vp_result vp_tiler_exact(const vp_geometry *geometry, int32_t crops, double aspect, vp_tiling *tiling);
/* The size of an image scaled to fit inside a canvas (VP_FIT_PAD). A side may become 0, which vp_layout_compute
 * rejects.
 * in:      canvas 1..VP_CANVAS_PX_LIMIT, image >= 1 [px]
 * returns: VP_OK; VP_ERR_RANGE: a side outside these limits
 * numeric: every step rounded to float32, as the reference does
 * memory:  none */
VP_API vp_result vp_tiler_shrink(int32_t canvas_width_px, int32_t canvas_height_px, int32_t width_px, int32_t height_px,
                                 int32_t *resized_width_px, int32_t *resized_height_px);

typedef enum vp_tile_rule { VP_TILE_ADAPTIVE, VP_TILE_TIER, VP_TILE_CROPS, VP_TILE_TOKENS } vp_tile_rule;
typedef enum vp_fit { VP_FIT_PAD, VP_FIT_FILL } vp_fit; /* fit inside and pad | fill and cut the centre */

/* the rule that turns an image into crops; the knob of the vision stage */
typedef struct vp_tile_options {
    vp_tile_rule rule;
    vp_fit fit;
    const vp_tier *tier;   /* VP_TILE_TIER */
    int32_t max_crops;     /* VP_TILE_ADAPTIVE */
    int32_t crops;         /* VP_TILE_CROPS, without the global view */
    int32_t vision_tokens; /* VP_TILE_TOKENS: the target; crops = vision_tokens / tokens_per_crop - 1 */
} vp_tile_options;
VP_API vp_tile_options vp_tile_options_default(void); /* adaptive, pad, 12 */

/* all numbers derived from an image size; `views` = crops + the global view */
typedef struct vp_layout {
    int32_t width_px, height_px; /* size of the upright image */
    vp_fit fit;
    vp_tiling tiling;
    int32_t crops, views;
    int32_t canvas_width_px, canvas_height_px;
    int32_t resized_width_px, resized_height_px;   /* image after resizing, before padding or cutting */
    int32_t offset_left_px, offset_top_px;         /* padding before the image (VP_FIT_PAD), or part cut off
                                                    * (VP_FIT_FILL) */
    int32_t global_resized_width_px, global_resized_height_px;
    int32_t global_offset_left_px, global_offset_top_px;
    int32_t theoretical_tokens; /* views * tokens_per_crop */
    int32_t feature_tokens;     /* <im_patch>: the tokens that the LLM sees */
    int32_t col_tokens, marker_tokens;
    int32_t image_tokens;       /* feature + col + marker: image part of the sequence, without BOS */
} vp_layout;
/* One of a request's images: its views, and their rows and columns if the tower takes images of any size */
typedef struct vp_image_views { int32_t views, rows, cols; } vp_image_views;
/* Image size and options -> tiling, sizes and token counts.
 * in:      options              only the member that its rule names is read
 *          width_px, height_px  of the upright image, 1..INT32_MAX
 * out:     layout               on success
 * returns: VP_OK; VP_ERR_RANGE: geometry, option or size out of range; VP_FIT_PAD: a resized side (of the grid or of
 *          the global view) is below one pixel, as for 1x5000; VP_FIT_FILL: a resized side exceeds INT32_MAX (1x5000 is
 *          fine: 336x1680000 before cutting)
 * rule:    canvas = window * cols + margin by window * rows + margin; s = min (pad) or max (fill) of canvas / image
 *          over both sides.
 *          pad: side = trunc(image * s), offset = (canvas - side) / 2
 *          fill: side = max(canvas, ceil(image * s)), offset = (side - canvas) / 2
 *          The global view follows the same rule, with crop_px for both sides of the canvas.
 *          R rows, C columns of crops, T tokens per side, w tokens per window, m tokens of both margins: H = w R + m,
 *          W = w C + m; features = T T + H W; columns = T + H; markers = 4 (start and end, twice)
 * numeric: float32 decides the resized sizes, each step rounded once */
VP_API vp_result vp_layout_compute(const vp_geometry *geometry, const vp_tile_options *options, int32_t width_px,
                                   int32_t height_px, vp_layout *layout, vp_error *error);

/* ================================================================================================ select >>select
 * The experiments' conversions between a vision-token target, crops, tiling and resolution. All functions return
 * VP_OK, or VP_ERR_RANGE if the geometry is invalid or an argument or result is not positive or exceeds the limits
 * above. All are exact and reentrant.
 * source: ChulanZhang/molmo_hf experiments (theoretical tokens: every crop and the global view count in full) */
/* Crops for a token target: max(1, vision_tokens / tokens_per_crop - 1). */
VP_API vp_result vp_select_crops(const vp_geometry *geometry, int32_t vision_tokens, int32_t *crops);
/* Theoretical tokens of a crop count: (crops + 1) * tokens_per_crop. */
VP_API vp_result vp_select_vision_tokens(const vp_geometry *geometry, int32_t crops, int32_t *vision_tokens);
/* Canvas of a tiling: window * cols + margin by window * rows + margin. */
VP_API vp_result vp_select_canvas(const vp_geometry *geometry, vp_tiling tiling, int32_t *width_px, int32_t *height_px);
/* Tiling of a canvas or any size: (side - margin) / window, rounded half to even, at least 1. */
VP_API vp_result vp_select_tiling(const vp_geometry *geometry, int32_t canvas_width_px, int32_t canvas_height_px,
                                  vp_tiling *tiling);

/* ================================================================================================ tokens >>tokens
 * Sequence of an image: start, T rows of (T patch, col), end, start, H rows of (W patch, col), end; global view
 * first. */
/* Position of every pooled feature in the sequence.
 * in:      layout           as vp_layout_compute made it for this geometry
 *          first_position   index of the first image token in the sequence (1 after a BOS), >= 0
 *          capacity         entries of image_input_idx
 * out:     image_input_idx  int32 [views, tokens_per_crop], -100: dropped, because a neighbouring crop covers it
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than layout->views * tokens_per_crop entries; VP_ERR_RANGE: an invalid
 *          geometry or tiling, or positions above INT32_MAX; VP_ERR_MISMATCH: the layout belongs to another geometry
 * rule:    crop (i, j) drops its first margin_left / pool rows if i > 0 and its last margin_right / pool rows if it
 *          is not in the last row; the same for columns */
VP_API vp_result vp_tokens_index_map(const vp_geometry *geometry, const vp_layout *layout, int32_t first_position,
                                     int32_t *image_input_idx, size_t capacity);
typedef struct vp_special_ids { int32_t bos, eos, pad, im_start, im_end, im_patch, im_col, image; } vp_special_ids;
/* The image tokens in sequence order.
 * in:      ids       only im_start, im_end, im_patch and im_col are used; they are not checked
 *          capacity  entries of out
 * out:     out       int32 [layout->image_tokens]
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than layout->image_tokens entries; VP_ERR_RANGE, VP_ERR_MISMATCH as above */
VP_API vp_result vp_tokens_image_ids(const vp_geometry *geometry, const vp_layout *layout, const vp_special_ids *ids,
                                     int32_t *out, size_t capacity);

/* =============================================================================================== sampler >>sampler
 * Random draws equal to numpy's, number for number, and the experiments' samples drawn with them.
 * source: numpy.random.RandomState (legacy generator, frozen by numpy's policy); checked against numpy 1.26.4 */
/* MT19937 seeded with one 32-bit integer. memory: 2.5 KB, the caller's. threads: one generator per thread. */
typedef struct vp_random { uint32_t state[624]; int32_t position; } vp_random;
VP_API void vp_random_seed(vp_random *random, uint32_t seed); /* RandomState(seed); call this first */
VP_API uint32_t vp_random_u32(vp_random *random);
VP_API double vp_random_double(vp_random *random);            /* [0, 1), 53 bits: random_sample() */
/* A random number in 0..maximum, inclusive; randint(0, n) is vp_random_below(n - 1).
 * rule:    masks each draw with the smallest 2^k - 1 >= maximum until the result is <= maximum. For 0 it draws nothing;
 *          above 2^32 - 1 each draw is two words, the high one first */
VP_API uint64_t vp_random_below(vp_random *random, uint64_t maximum);
/* permutation(count): int64 [count] of 0..count-1. */
VP_API void vp_random_permutation(vp_random *random, int64_t *values, size_t count);
/* RandomState(seed).choice(population, size=count, replace=False), in drawing order.
 * out:     scratch  int64 [population]; the first `count` entries are the result
 * returns: VP_OK; VP_ERR_RANGE: count > population
 * memory:  2.5 KB of stack */
VP_API vp_result vp_sampler_choice(uint32_t seed, size_t population, size_t count, int64_t *scratch);
/* The experiments' choice of samples: all if count >= population, otherwise the choice above, sorted.
 * out:     scratch  int64 [population]; the first *kept entries are the result, ascending
 * returns: VP_OK */
VP_API vp_result vp_sampler_dataset(uint32_t seed, size_t population, size_t count, int64_t *scratch, size_t *kept);
/* The same choice, but every stratum (value of a field) keeps its proportion.
 * in:      stratum  uint32 [population]  stratum of each record, 0..strata - 1
 * out:     scratch  int64 [population + 2 * strata]; the first *kept entries are the result, ascending
 * returns: VP_OK; VP_ERR_RANGE: a stratum >= strata, or a population over 2^31 - 1
 * rule:    quota = count * members / population, truncated. The remaining records go to the largest remainders, the
 *          lower stratum first. If count >= population, all are kept. One generator, RandomState(seed), shuffles the
 *          strata in order as numpy does; the first `quota` members of each are kept
 * numeric: integers only: the same records everywhere
 * memory:  2.5 KB of stack */
VP_API vp_result vp_sampler_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata,
                                       size_t count, int64_t *scratch, size_t *kept);
/* Chooses the active blocks of a configuration.
 * in:      active      1..block_count
 *          scores      double [block_count], NaN if the file has no score; NULL or all NaN: the first `active` blocks
 *          are taken
 *          file_order  int32 [block_count]: position of each block in the file, for ties; NULL: index order
 * out:     blocks      int32 [active], ascending
 * returns: VP_OK; VP_ERR_RANGE: active < 1 or > block_count; VP_ERR_MISMATCH: too few blocks have a score
 * rule:    the first and the last block are kept (active 1: only the first); the others are those with the highest
 *          scores
 * source:  ChulanZhang/molmo_hf experiments/core_exp/acc_lat_profiling.py. There active 1 gives two blocks, too few
 *          scores give too few blocks, and active > block_count gives all blocks; here these are errors */
VP_API vp_result vp_sampler_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order,
                                   int32_t *blocks);

/* Which points of a grid of knobs a sweep visits. n is the length of a knob's list, and its entries are 0..n-1. The
 * reference's grids are first knob (tiers, crops) x top_k x blocks; here its rules apply to any number of knobs. */
#define VP_GRID_STRATEGIES(X) \
    X(VP_GRID_FULL, 0, "full", "every combination") \
    X(VP_GRID_BALANCED, 1, "balanced", "entries 0, n/2, n-1 of each list") \
    X(VP_GRID_STRATIFIED, 2, "stratified", "the same entries; the reference repeats them in lists under 3") \
    X(VP_GRID_BOUNDARY, 3, "boundary", "the same entries, for the second list (top_k) 0, n/4, n/2, 3n/4, n-1") \
    X(VP_GRID_CUSTOM_SPARSE, 4, "custom_sparse", "every second entry, starting at 0: can miss the last") \
    X(VP_GRID_LHS, 5, "lhs", "a Latin hypercube: each value of a knob equally often, to within one") \
    X(VP_GRID_SEED_LHS, 6, "seed_lhs", "the reference's lhs: min(50, combinations / 4) independent draws")

typedef enum vp_grid_strategy {
#define VP_GRID_ENUM(name, value, text, meaning) name = value,
    VP_GRID_STRATEGIES(VP_GRID_ENUM)
#undef VP_GRID_ENUM
    VP_GRID_STRATEGY_LAST_ = 6
} vp_grid_strategy;

#define VP_GRID_LHS_POINTS_MAX 4096
#define VP_GRID_KNOBS_MAX 8

/* The name of a strategy; NULL outside the list, so counting up from 0 until NULL lists all. */
VP_API const char *vp_sampler_strategy_name(int32_t strategy);
/* returns: VP_OK; VP_ERR_NOT_FOUND: no strategy has this name */
VP_API vp_result vp_sampler_strategy_find(const char *name, vp_grid_strategy *strategy);
/* The default number of points for lhs: the reference's min(50, combinations / 4), but at least the length of the
 * longest list, so that all values occur.
 * in:      counts  int32 [knobs]  lengths of the lists
 * returns: 1..VP_GRID_LHS_POINTS_MAX; 0 if a count is < 1 or knobs is outside 1..VP_GRID_KNOBS_MAX */
VP_API size_t vp_sampler_lhs_points(const int32_t *counts, int32_t knobs);
/* The points that a strategy visits, as indices into the lists. No point occurs twice.
 * in:      counts      int32 [knobs]  lengths of the lists, each >= 1; knobs is 1..VP_GRID_KNOBS_MAX
 *          seed        lhs and seed_lhs only; the reference uses 42
 *          points      lhs only: 1..min(combinations, VP_GRID_LHS_POINTS_MAX)
 *          capacity    points that fit
 * out:     index       int32 [capacity, knobs]  the first *needed rows; NULL only counts
 *          needed      number of points, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          duplicates  number of the reference's repeated points, omitted here; may be NULL; set when `needed` is
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than *needed; VP_ERR_RANGE: an unknown strategy, knobs or points outside
 *          their range, a count < 1, or a size that overflows size_t
 * rule:    the first knob varies slowest, the last one fastest; lhs and seed_lhs are in drawing order. lhs: a balanced
 *          design without repeats. Its rows follow the diagonals of the grid. Values are permuted at random or, in a
 *          list longer than points, taken at equal steps. Random swaps within a knob follow, except those that would
 *          repeat a point
 * source:  ChulanZhang/molmo_hf, combined experiments (the current one accepts any name and runs the full grid); lhs:
 *          McKay et al. 1979
 * numeric: integers only: the same points everywhere
 * memory:  4.2 KB of stack; the time of lhs grows with the square of points */
VP_API vp_result vp_sampler_grid(vp_grid_strategy strategy, const int32_t *counts, int32_t knobs, uint32_t seed,
                                 size_t points, int32_t *index, size_t capacity, size_t *needed, size_t *duplicates);

/* Rank r of n works on indices r, r + n, r + 2n, ... below count: every index belongs to exactly one rank; none is
 * padded or repeated.
 * out:     first, stride, shard_count  index i of the shard, 0 <= i < *shard_count, is *first + i * *stride
 * returns: VP_OK, also for an empty shard; VP_ERR_RANGE: ranks < 1 or rank outside 0..ranks-1 */
VP_API vp_result vp_sampler_shard(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride,
                                  size_t *shard_count);

/* ================================================================================================= timer >>timer
 * A clock, and statistics of samples. Values may have any unit; all functions except the clock are pure.
 * source:  numpy 1.26.4 mean, std (ddof 0), percentile (linear), bit for bit
 * numeric: double, IEEE (see Numerics above) */
/* Nanoseconds of a monotonic clock with an arbitrary zero; only differences are meaningful. To replace the system's
 * clock, define the macro VLMPROF_CLOCK_NS, an int64_t expression, in the file that compiles the implementation. */
VP_API int64_t vp_clock_ns(void);
typedef struct vp_statistics {
    size_t count;
    double mean, std, min, p50, p95, p99, max; /* std: population (ddof 0); percentiles: numpy linear (type 7) */
} vp_statistics;

/* ---- the stages of your own requests. A mark is one run of a stage. Marks nest: mark a request, and inside it the
 * vision encoder, prefill and decode steps. Work on a GPU must be complete before its mark ends; or add its marks later,
 * with the times of the device. Each thread, and each stream of a device, has its own clock. With VLMPROF_OFF,
 * vp_stage_begin, _end, _add and _reset compile to nothing; arguments with side effects are still evaluated. */
typedef struct vp_stage_mark {
    const char *name;         /* the caller's; must outlive the mark */
    int64_t begin_ns, end_ns; /* times of vp_clock_ns; end_ns is -1 until the stage ends */
    size_t inside;            /* index of the enclosing mark; SIZE_MAX if there is none */
} vp_stage_mark;
typedef struct vp_stage_clock {
    vp_stage_mark *marks;   /* [capacity]; the first `count` are used, in the order of their start */
    size_t capacity, count;
    size_t open;            /* index of the innermost open mark; SIZE_MAX if there is none */
    size_t lost, lost_open; /* marks that did not fit, and those of them that are still open */
    int64_t latest_ns;      /* latest end of a mark */
    int32_t thread;         /* the caller's number of the thread or stream: its row in a trace; default 0 */
} vp_stage_clock;
/* A clock without marks over the caller's memory; with NULL it has room for no mark. */
VP_API vp_stage_clock vp_stage_clock_over(vp_stage_mark *marks, size_t capacity);
/* Begins a stage inside the innermost open one. A mark that does not fit is counted as lost; there are then no
 * statistics. In C++, pass a literal or a text that outlives the clock, never c_str() of a temporary std::string.
 * in:      name  NULL: the mark is lost, as are those inside it
 * memory:  none. numeric: the clock is read last in begin and first in end; the overhead is about 40 ns per stage on
 *          x86-64 Linux */
VP_API void vp_stage_begin(vp_stage_clock *clock, const char *name);
/* Ends the innermost open stage.
 * returns: VP_OK; VP_ERR_STATE: no stage is open */
VP_API vp_result vp_stage_end(vp_stage_clock *clock);
/* Adds a completed stage inside the innermost open one, for work whose times come from a device: CUDA events, an NPU.
 * Convert them to vp_clock_ns first.
 * returns: VP_OK; VP_ERR_RANGE: not 0 <= begin_ns <= end_ns <= now, it begins before the stage around it, or it
 *          overlaps another stage in there (nothing changes); VP_ERR_CAPACITY: it did not fit and is counted as lost
 * numeric: constant time if stages are added in the order of their times; otherwise linear in the number of marks */
VP_API vp_result vp_stage_add(vp_stage_clock *clock, const char *name, int64_t begin_ns, int64_t end_ns);
/* Forgets all marks, so that the memory can be used for the next requests; keeps the thread.
 * returns: VP_OK; VP_ERR_STATE: a stage is open (nothing changes) */
VP_API vp_result vp_stage_reset(vp_stage_clock *clock);
/* Statistics of all completed marks of a name, in nanoseconds.
 * out:     scratch     double [clock->count]
 * returns: VP_OK; VP_ERR_NOT_FOUND: no mark of that name is complete; VP_ERR_CAPACITY: marks were lost, of this name or
 *          another. The small buffer is then clock->marks, not scratch: clock->lost is the number of lost marks */
VP_API vp_result vp_stage_statistics(const vp_stage_clock *clock, const char *name, double *scratch,
                                     vp_statistics *statistics);
/* The part of a mark's time that no mark directly inside it covers: the unaccounted time of a request.
 * returns: nanoseconds; -1 if there is no such mark, it or one inside it is still open, or their times do not nest */
VP_API int64_t vp_stage_unaccounted_ns(const vp_stage_clock *clock, size_t mark);
#ifdef VLMPROF_OFF
#ifdef __GNUC__
__attribute__((always_inline))
#endif
VP_INLINE vp_result vp_impl_off(void) { return VP_OK; }
#endif

/* numpy's pairwise sum.
 * rule: fewer than 8 values are added in order, up to 128 in eight running sums; a longer list is split in two at a
 *       multiple of 8 */
VP_API double vp_statistics_sum(const double *values, size_t count);
VP_API double vp_statistics_mean(const double *values, size_t count); /* NaN for count 0 */
VP_API double vp_statistics_std(const double *values, size_t count);  /* population; NaN for count 0 */
/* Linear percentile.
 * in:      sorted      double [count], ascending
 *          percentile  0..100
 * returns: the percentile; NaN if count is 0 or the percentile is outside 0..100
 * rule:    p = (count - 1) * (percentile / 100), t = p - floor(p), a and b are the values around p: a + (b - a) * t, or
 *          b - (b - a) * (1 - t) if t >= 0.5. Bootstrapped fronts apply the same rule to values with counts:
 *          vlmprof_analysis.h, vp_impl_percentile_times */
VP_API double vp_statistics_percentile(const double *sorted, size_t count, double percentile);
/* All of vp_statistics.
 * in:      values   double [count], finite
 *          scratch  double [count], receives the sorted values; may be `values` itself
 * returns: VP_OK; VP_ERR_RANGE: count 0, or a value is NaN or infinite (std may still overflow to infinity, as in
 *          numpy) */
VP_API vp_result vp_statistics_compute(const double *values, size_t count, double *scratch, vp_statistics *statistics);

/* ---- inference from samples. A confidence is a share: 0.95. If there are too few values for an answer, the result is
 * VP_ERR_UNSUPPORTED or, in a struct, NaN; it is never a guess. Values must be independent; the caller removes warm-up
 * and drift. */
/* Returns whether `count` values are enough for this percentile.
 * returns: 1 if count is at least 3 / min(p, 1 - p) (P50: 6, P95: 60, P99: 300); at least one value is then beyond the
 *          percentile with 95 % probability. Otherwise 0, also for percentiles 0, 100 and NaN */
VP_API int vp_statistics_percentile_supported(size_t count, double percentile);
/* The smallest count that has an interval of this percentile (see below); 6 for P50 at confidence 0.95.
 * returns: the count; 0 if the percentile is not inside 0..100 or the confidence not inside 0..1, limits excluded */
VP_API size_t vp_statistics_percentile_needs(double percentile, double confidence);
/* Distribution-free confidence interval of a percentile; its ends are two of the values.
 * in:      sorted      double [count], ascending
 *          percentile  0..100, confidence 0..1, ends excluded
 * returns: VP_OK; VP_ERR_RANGE: a percentile or confidence is outside its range, or an end of the interval is not
 *          finite; VP_ERR_UNSUPPORTED: fewer values than vp_statistics_percentile_needs
 * rule:    B binomial (count, p): low is the l-th value, with the largest l for which P(B < l) <= (1 - confidence) / 2;
 *          high is the h-th value, with the smallest h for which P(B >= h) <= (1 - confidence) / 2. The coverage is at
 *          least `confidence`
 * source:  Hahn and Meeker, Statistical Intervals (1991), 5.2 */
VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile,
                                                   double confidence, double *low, double *high);
/* Quantile of Student's t distribution.
 * in:      probability  1e-12..1 - 1e-12
 *          degrees      >= 1; infinity is the normal distribution
 * returns: t with P(T <= t) = probability; NaN outside the ranges
 * numeric: 1e-8 relative or better, by bisection of the regularised incomplete beta function */
VP_API double vp_statistics_student(double probability, double degrees);
/* Student's confidence interval of the mean.
 * returns: VP_OK; VP_ERR_RANGE: a value or an end is not finite, or the confidence is outside 0..1; VP_ERR_UNSUPPORTED:
 *          fewer than 2 values
 * rule:    mean -+ t(1/2 + confidence / 2, count - 1) * s / sqrt(count), where s divides by count - 1 */
VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low,
                                             double *high);

#define VP_OUTLIER_THRESHOLD 3.5 /* Iglewicz and Hoaglin's; hyperfine's is 10 */
/* The threshold above flags 10 % of 3 normally distributed values, 5 % of 5, 1.7 % of 10 and 0.1 % of 100. */
#define VP_OUTLIER_COUNT_MIN 5
typedef struct vp_outliers {
    size_t count;         /* flagged values */
    double median, mad;   /* mad: median absolute deviation from the median */
    double first_score;   /* modified z score of the first value */
    int slow_first;       /* 1 if first_score > threshold: caches were cold, or warm-up was too short */
} vp_outliers;
/* Flags outliers without removing them.
 * in:      values     double [count], in the order of measurement
 *          threshold  > 0: VP_OUTLIER_THRESHOLD
 * out:     scratch    double [count]; not `values`
 *          flags      uint8 [count], 0 or 1; may be NULL
 * returns: VP_OK; VP_ERR_RANGE: a value or a deviation is not finite, or the threshold is not above 0;
 *          VP_ERR_UNSUPPORTED: fewer than VP_OUTLIER_COUNT_MIN values
 * rule:    |z| > threshold, z = 0.6745 (x - median) / mad. If mad is 0 (half of the values are equal): z = (x - median)
 *          / (1.253314 times the mean absolute deviation). If that is 0 too, all values are equal and none is flagged
 * source:  Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993); slow first value: sharkdp/hyperfine */
VP_API vp_result vp_statistics_outliers(const double *values, size_t count, double threshold, double *scratch,
                                        uint8_t *flags, vp_outliers *outliers);

typedef struct vp_estimate { double value, low, high; } vp_estimate; /* an unknown end is NaN */
typedef struct vp_paired {
    size_t count;
    vp_estimate mean, median;                   /* second - first; 95 % intervals: Student's, order statistics */
    vp_estimate relative_mean, relative_median; /* the same, divided by the mean of first; NaN unless it is above 0 */
    double share_greater;                       /* share of pairs with second > first */
} vp_paired;
/* Paired differences, such as between runs without and with stage times, or between two configurations on the same
 * samples.
 * in:      first, second  double [count], finite
 * out:     scratch        double [count]: the sorted differences
 * returns: VP_OK; VP_ERR_RANGE: count 0, or a difference is not finite */
VP_API vp_result vp_statistics_paired(const double *first, const double *second, size_t count, double *scratch,
                                      vp_paired *paired);

#define VP_STOPS(X) \
    X(VP_STOP_NOT, 0, "not", "continue") \
    X(VP_STOP_RUNS, 1, "runs", "all runs are done, and no half-width is set") \
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
    double half_width;          /* target for the interval of P50, as a share of P50: 0.01 is +-1 %; 0: exactly min_runs
                                 * runs */
    double confidence;          /* confidence of that interval: 0.95 */
    int64_t box_ns;             /* time limit for all runs of a point; 0: no limit */
} vp_stop_rule;
/* Decides whether another run is needed. Call it after each run.
 * in:      values      double [count]  values of the runs so far
 *          elapsed_ns  time since the start of the first run
 * out:     scratch     double [count]
 *          stop        VP_STOP_NOT or the reason to stop
 * returns: VP_OK; VP_ERR_RANGE: a field of the rule is outside its range, elapsed_ns < 0, or a value is not finite
 * rule:    with fewer than min_runs runs: continue, regardless of the time. Then "runs" or, with a half-width, the
 *          first of "interval", "max" and "box" that applies. The half-width is half the length of
 *          vp_statistics_percentile_interval, which needs vp_statistics_percentile_needs values. Checking after every
 *          run makes the stated confidence slightly optimistic */
VP_API vp_result vp_stop_decide(const vp_stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns,
                                double *scratch, vp_stop *stop);

/* ---- distributions used by tests and intervals
 * The regularised incomplete beta function I_x(a, b). The caller passes both x and y = 1 - x, because the one near 1
 * cannot represent the other precisely. */
VP_API double vp_beta(double a, double b, double x, double y);
/* P(T > t) of Student's t distribution; infinite degrees: the normal distribution. t >= 0, degrees > 0, unchecked. */
VP_API double vp_student_upper(double t, double degrees);
/* The largest l in 0..count with P(B < l) <= tail, B binomial (count, chance); 0 if not even the smallest value can be
 * an end of an interval. */
VP_API size_t vp_order_rank(size_t count, double chance, double tail);
/* Returns 1 if no value is NaN or infinite. */
VP_API int vp_all_finite(const double *values, size_t count);
/* Sorts values ascending, in place; NaN is not allowed. */
VP_API void vp_sort_double(double *values, size_t count);

/* ================================================================================================== json >>json
 * Writer, strict reader and the two number conversions. No allocation, no stdio, no locale.
 * memory:  only the caller's buffers, and less than 3 KiB of stack
 * threads: reentrant; one writer per thread; a parsed vp_json is read-only and may be shared */

/* Receives the text in pieces. A piece may be a single byte and is not NUL-terminated. Any result except VP_OK stops
 * the writer with that code. */
typedef vp_result (*vp_json_sink)(void *user, const char *text, size_t bytes);

/* Writes one JSON value into a caller's buffer or a sink. The writer places commas, quotes, escapes and line breaks.
 * Errors are sticky: calls need no check, and vp_json_finish reports the first error. Nothing is written after it, so
 * the text ends where the error is: after `{"x": ` if the value of x is NaN.
 * returns: (in `result`, and from vp_json_finish) VP_OK; VP_ERR_STATE: a value without a key in an object, a key
 *          outside an object, an end call without its begin call, no or a second top-level value, an open container;
 *          VP_ERR_FORMAT: text that is not UTF-8 or NULL, a raw value that is not JSON; VP_ERR_RANGE: NaN or infinity,
 *          more than 64 levels, an indent outside 0..16; VP_ERR_CAPACITY: the buffer is full; the sink's code
 * rule:    separators are ", " and ": ". With an indent, members and containers start new lines; scalars of an array
 *          share one. Escapes are \" \\ \n \r \t \b \f, and \u00xx for other control characters; all else stays UTF-8
 * memory:  a full buffer contains the start of the text. length_bytes keeps counting: length_bytes + 1 bytes would have
 *          been enough */
typedef struct vp_json_writer {
    char *buffer;
    size_t capacity, length_bytes; /* length without the NUL */
    vp_json_sink sink;
    void *user;
    vp_result result;
    int32_t depth, indent;         /* indent: spaces per level; 0: everything on one line */
    unsigned char open[64];        /* per level: '{' or '[' */
    unsigned char filled[64];      /* per level: empty, on one line so far, or on several lines */
    int after_key;
} vp_json_writer;
/* in: buffer  char [capacity]  NULL only counts: the result is VP_ERR_CAPACITY, and length_bytes is correct */
VP_API void vp_json_writer_init(vp_json_writer *writer, char *buffer, size_t capacity, int32_t indent);
VP_API void vp_json_writer_init_sink(vp_json_writer *writer, vp_json_sink sink, void *user, int32_t indent);
VP_API void vp_json_begin_object(vp_json_writer *writer);
VP_API void vp_json_end_object(vp_json_writer *writer);
VP_API void vp_json_begin_array(vp_json_writer *writer);
VP_API void vp_json_end_array(vp_json_writer *writer);
VP_API void vp_json_key(vp_json_writer *writer, const char *key); /* duplicates are not detected */
VP_API void vp_json_string(vp_json_writer *writer, const char *text);
/* may contain NUL bytes: written as \u0000 */
VP_API void vp_json_string_bytes(vp_json_writer *writer, const char *text, size_t bytes);
VP_API void vp_json_int(vp_json_writer *writer, int64_t value);
VP_API void vp_json_double(vp_json_writer *writer, double value); /* text of vp_number_format */
VP_API void vp_json_bool(vp_json_writer *writer, int value);
VP_API void vp_json_null(vp_json_writer *writer);
/* One complete JSON value, checked, then copied unchanged. */
VP_API void vp_json_raw(vp_json_writer *writer, const char *text, size_t bytes);
/* Checks that everything is closed, and writes a NUL after the text in a buffer (into the last byte of a full one).
 * Returns writer->result. */
VP_API vp_result vp_json_finish(vp_json_writer *writer);
/* Stops the writer with the caller's error. vp_json_finish returns the first error. */
VP_API void vp_json_fail(vp_json_writer *writer, vp_result result);

typedef enum vp_json_type { VP_JSON_NULL, VP_JSON_FALSE, VP_JSON_TRUE, VP_JSON_NUMBER, VP_JSON_STRING, VP_JSON_ARRAY,
                            VP_JSON_OBJECT } vp_json_type;
typedef struct vp_json_node {
    uint8_t type;        /* a vp_json_type; keys are VP_JSON_STRING */
    uint8_t escaped;     /* string: contains a backslash */
    uint32_t count;      /* array: elements; object: members (a member is a key node followed by its value); else 0 */
    uint32_t end;        /* index one past this node's subtree: the next sibling */
    uint64_t start, bytes; /* position and size of the value in the text; a string without its quotes, still escaped */
} vp_json_node;
/* Nodes in document order: node 0 is the top-level value, and a container's children follow it. The caller owns text
 * and nodes. */
typedef struct vp_json { const char *text; const vp_json_node *nodes; uint32_t node_count; } vp_json;
#define VP_JSON_NONE UINT32_MAX /* "no such node"; every reader function accepts it, so lookups can be chained */

/* Parses one JSON text strictly. Strings must be UTF-8, and nesting at most 64 levels. Trailing text, comments, NaN and
 * a byte order mark are errors.
 * in:      text    char [bytes]       need not be NUL-terminated
 * in:      nodes   [capacity]         NULL only checks and counts; contents are unspecified on failure
 * out:     json    may be NULL        on VP_OK
 * out:     needed  number of nodes in the text, may be NULL; on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK; VP_ERR_CAPACITY: the text is valid but has more nodes than fit (always so if nodes is NULL);
 *          VP_ERR_FORMAT: malformed; error->offset is the byte offset; VP_ERR_RANGE: nested deeper than 64 levels, or
 *          more than 2^32 - 2 nodes
 * rule:    one pass, no recursion; duplicate keys are allowed here (see vp_json_has_duplicates)
 * source:  RFC 8259; UTF-8 by table 3-7 of the Unicode standard */
VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json,
                               size_t *needed, vp_error *error);
/* Index of a member's value, or VP_JSON_NONE (also if `object` is VP_JSON_NONE). Linear time. Keys are compared
 * unescaped; of equal keys the last one counts. */
VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key);
/* Index of an element, or VP_JSON_NONE. Linear time; to visit all, start at array + 1 and follow `end`. */
VP_API uint32_t vp_json_at(const vp_json *json, uint32_t array, uint32_t index);
/* Returns 1 if a node is a string whose unescaped text equals `text`. */
VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text);
/* The same for a text of `bytes` bytes, which may contain NULs. */
VP_API int vp_json_equals_bytes(const vp_json *json, uint32_t string, const char *text, size_t bytes);
/* Finds the first key, in document order, that repeats an earlier one of the same object. Nested objects are ignored.
 * in:      scratch    uint32 [capacity]   capacity at least nodes[object].count
 * out:     duplicate  node index of that key, or VP_JSON_NONE if all differ; on VP_OK
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not an object)
 * rule:    keys are compared unescaped; heap sort: n log n for any keys */
VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity,
                                        uint32_t *duplicate);
/* Unescaped text of a string or key, followed by a NUL. \u0000 becomes a NUL byte inside it: *needed becomes the true
 * length.
 * out:     needed  bytes without the final NUL, may be NULL; on VP_OK and VP_ERR_CAPACITY (out NULL only counts)
 * returns: VP_OK, VP_ERR_CAPACITY (fewer than *needed + 1), VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a
 *          string)
 * rule:    an escaped surrogate without its partner becomes U+FFFD */
VP_API vp_result vp_json_text(const vp_json *json, uint32_t string, char *out, size_t capacity, size_t *needed);
/* A number as an integer: 3, 3.0, 30e-1 are 3.
 * returns: VP_OK, VP_ERR_FORMAT (not whole), VP_ERR_RANGE (not an int64), VP_ERR_NOT_FOUND (no such node),
 *          VP_ERR_MISMATCH (not a number)
 * numeric: exact; never converted through a double */
VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value);
/* A number as a double. returns, numeric: as vp_number_parse; VP_ERR_NOT_FOUND (no such node), VP_ERR_MISMATCH (not a
 * number) */
VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value);

/* The shortest text that reads back to the same double, in the layout of Python's repr: 0.1, 3.0, -0.0, 1e-07,
 * 1.5e+300; valid JSON.
 * out:     out  char [26]  at most 24 bytes and a NUL
 * returns: bytes without the NUL; 0 and an empty text for NaN and infinity, which JSON lacks
 * numeric: exact; among the shortest texts the one nearest to the value
 * source:  Steele, White: How to print floating-point numbers accurately (1990); Burger, Dybvig (1996) */
VP_API size_t vp_number_format(double value, char *out);
/* The double nearest to a JSON number of any length, ties to even; numbers that are too small become subnormal or 0.
 * returns: VP_OK, VP_ERR_FORMAT (not exactly one JSON number: no blanks, no leading +), VP_ERR_RANGE (beyond the
 *          largest double)
 * numeric: correctly rounded; about 40 ns for up to 15 digits and small exponents, else about a microsecond */
VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value);
/* Bytes of valid UTF-8 at the start of a text; == bytes when all is valid. */
VP_API size_t vp_utf8_valid_bytes(const char *text, size_t bytes);
/* Bytes of an unprintable character at the start of the text; 0 if the text is empty or starts with a printable one.
 * Unprintable are control characters (C0, DEL, C1), those that change the writing direction (U+061C, U+200E, U+200F,
 * U+202A..U+202E, U+2066..U+2069), line and paragraph separators (U+2028, U+2029), and bytes that are not UTF-8.
 * source: Unicode Standard Annex 9, section 2 */
VP_API size_t vp_utf8_control(const char *text, size_t bytes);
/* Number of bytes before the first unprintable character. */
VP_API size_t vp_utf8_visible_bytes(const char *text, size_t bytes);
/* Writes a code point up to U+10FFFF as UTF-8 into out[4]; returns the number of bytes, 1..4. */
VP_API size_t vp_utf8_put(char *out, uint32_t code);

VP_EXTERN_C_END
#endif /* VLMPROF_H */

/* ================================================================================================================
 * IMPLEMENTATION >>implementation
 * ================================================================================================================ */
#if defined(VLMPROF_IMPLEMENTATION) && !defined(VLMPROF_IMPLEMENTATION_DONE)
#define VLMPROF_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
#include <time.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH
/* ================================================================================================ result >>result */
VP_API const char *vp_result_text(vp_result result) {
    switch ((int)result) { /* cast to int, because a caller may pass any number */
#define VP_RESULT_CASE(name, value, text) case value: return text;
        VP_RESULTS(VP_RESULT_CASE)
#undef VP_RESULT_CASE
        default: return "unknown result code";
    }
}

VP_API int vp_size_add(size_t a, size_t b, size_t *out) {
    if (b > SIZE_MAX - a) return 0;
    *out = a + b;
    return 1;
}

VP_API int vp_size_multiply(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) return 0;
    *out = a * b;
    return 1;
}

VP_API void vp_text_copy(char *out, size_t capacity, const char *text) {
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

VP_API void vp_message_text(vp_message *message, const char *text) {
    for (; text && *text && message->bytes + 1 < sizeof message->text; text++) message->text[message->bytes++] = *text;
    message->text[message->bytes] = 0;
}

VP_API void vp_message_int(vp_message *message, int64_t value) {
    char digits[24];
    size_t i = sizeof digits - 1;
    uint64_t rest = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + (char)(rest % 10));
        rest /= 10;
    } while (rest);
    if (value < 0) digits[--i] = '-';
    vp_message_text(message, digits + i);
}

VP_API vp_result vp_fail(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text) {
    if (error) {
        size_t at = 0, bytes = where ? strlen(where) : 0;
        error->code = code;
        error->offset = offset;
        if (bytes >= sizeof error->where) { /* the end of a path identifies the file */
            where += bytes - sizeof error->where + sizeof "...";
            while (((unsigned char)*where & 0xC0) == 0x80) where++;
            memcpy(error->where, "...", sizeof "...");
            at = strlen(error->where);
        }
        vp_text_copy(error->where + at, sizeof error->where - at, where);
        vp_text_copy(error->text, sizeof error->text, text);
        /* a name in it may have been cut inside a character */
        at = 0;
        bytes = strlen(error->text);
        while ((at += vp_utf8_valid_bytes(error->text + at, bytes - at)) < bytes) error->text[at] = '?';
    }
    return code;
}

VP_API void *vp_arena_take(vp_arena *arena, size_t count, size_t element_bytes) {
    size_t bytes, start, end;
    if (!arena || !arena->base || arena->used_bytes > arena->capacity_bytes) return NULL;
    /* aligns the address, not the offset: the caller's base may have any alignment */
    start = (size_t)(0 - ((uintptr_t)arena->base + arena->used_bytes)) & 63;
    if (!vp_size_add(arena->used_bytes, start, &start)) return NULL;
    if (!vp_size_multiply(count, element_bytes, &bytes) || !vp_size_add(start, bytes, &end)) return NULL;
    if (end > arena->capacity_bytes) return NULL;
    arena->used_bytes = end;
    return arena->base + start;
}

VP_API void vp_arena_need(size_t *bytes, size_t count, size_t element_bytes) {
    size_t size;
    if (*bytes == SIZE_MAX) return;
    if (!vp_size_multiply(count, element_bytes, &size) || !vp_size_add(size, 64, &size)
        || !vp_size_add(*bytes, size, bytes))
        *bytes = SIZE_MAX;
}

VP_API vp_arena vp_arena_over(void *memory, size_t bytes) {
    vp_arena arena;
    arena.base = (unsigned char *)memory;
    arena.capacity_bytes = memory ? bytes : 0;
    arena.used_bytes = 0;
    return arena;
}

/* =================================================================================== geometry and tiler >>tiler */
VP_API vp_geometry vp_geometry_default(void) {
    vp_geometry geometry;
    geometry.crop_px = 336;
    geometry.patch_px = 14;
    geometry.margin_left_patches = 4;
    geometry.margin_right_patches = 4;
    geometry.pool = 2;
    geometry.max_crops = 12;
    geometry.mean[0] = 0.48145466f;
    geometry.mean[1] = 0.4578275f;
    geometry.mean[2] = 0.40821073f;
    geometry.std[0] = 0.26862954f;
    geometry.std[1] = 0.26130258f;
    geometry.std[2] = 0.27577711f;
    return geometry;
}

/* sizes derived from a valid geometry, computed once per call so that the code below never divides by an unchecked
 * number */
typedef struct vp_impl_grid {
    int32_t patches, tokens;                           /* per side of one crop */
    int32_t window_px, margin_px;                      /* window + margin = crop_px */
    int32_t window_tokens, left_tokens, right_tokens;  /* window + left + right = tokens */
} vp_impl_grid;

static vp_result vp_impl_grid_of(const vp_geometry *geometry, vp_impl_grid *grid) {
    const int32_t limit = VP_CROP_PX_LIMIT; /* keeps every product below inside int32 */
    int32_t patches, window, i;
    if (geometry->crop_px < 1 || geometry->crop_px > limit || geometry->patch_px < 1
        || geometry->patch_px > geometry->crop_px || geometry->crop_px % geometry->patch_px)
        return VP_ERR_RANGE;
    patches = geometry->crop_px / geometry->patch_px;
    if (geometry->pool < 1 || geometry->pool > patches || patches % geometry->pool) return VP_ERR_RANGE;
    if (geometry->margin_left_patches < 0 || geometry->margin_right_patches < 0) return VP_ERR_RANGE;
    if (geometry->margin_left_patches >= patches
        || geometry->margin_right_patches >= patches - geometry->margin_left_patches)
        return VP_ERR_RANGE;
    if (geometry->margin_left_patches % geometry->pool || geometry->margin_right_patches % geometry->pool)
        return VP_ERR_RANGE;
    if (geometry->max_crops < 1 || geometry->max_crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    for (i = 0; i < 3; i++) { /* must be finite, and std large enough to divide by; NaN fails every comparison */
        if (!(geometry->mean[i] >= -1e6f && geometry->mean[i] <= 1e6f)
            || !(geometry->std[i] >= 1e-6f && geometry->std[i] <= 1e6f))
            return VP_ERR_RANGE;
    }
    window = patches - geometry->margin_left_patches - geometry->margin_right_patches;
    grid->patches = patches;
    grid->tokens = patches / geometry->pool;
    grid->window_px = window * geometry->patch_px;
    grid->margin_px = geometry->crop_px - grid->window_px;
    grid->left_tokens = geometry->margin_left_patches / geometry->pool;
    grid->right_tokens = geometry->margin_right_patches / geometry->pool;
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
    for (int32_t i = 0; name && vp_tier_at(i); i++) {
        if (strcmp(vp_tier_at(i)->name, name) == 0) return vp_tier_at(i);
    }
    return NULL;
}

/* The reference lists all rows x cols <= max_crops in the order (rows * cols, rows). It takes the first tiling with
 * the smallest scale >= 1, otherwise the first with the largest scale, where scale = min(window * rows / h, window *
 * cols / w). Each quotient depends only on its own side. So the tilings that come first for their scale form a path
 * from 1x1, where each step adds one to the limiting side. Following this path until the scale reaches 1 or the crops
 * run out gives the same tiling without a list, a sort or a division. Quotients are compared by cross products. */
static vp_tiling vp_impl_adaptive(const vp_impl_grid *grid, int32_t width_px, int32_t height_px, int32_t max_crops) {
    const int64_t width = (int64_t)width_px - grid->margin_px, height = (int64_t)height_px - grid->margin_px,
                  window = grid->window_px;
    /* rows * width and cols * height: both scales times width * height / window */
    int64_t rows = 1, cols = 1, row_scale = width, col_scale = height;
    vp_tiling best;
    best.rows = best.cols = 1;
    /* An image smaller than the margin has only negative scales; that of 1x1 is the largest. For a side equal to the
     * margin the reference divides by zero and gets an infinite scale. Here that side is satisfied at once, and the
     * other side has the smaller product. */
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

VP_API vp_result vp_tiler_adaptive(const vp_geometry *geometry, int32_t width_px, int32_t height_px, int32_t max_crops,
                                   vp_tiling *tiling) {
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
    /* the integers are far below 2^53, so only the quotient and the difference are rounded, fused or not */
    const double width = best->window * (double)cols + best->margin,
                 height = best->window * (double)rows + best->margin;
    const double distance = fabs(width / height - best->aspect);
    if (distance < best->mismatch) { /* strictly smaller: the first of equals is kept */
        best->mismatch = distance;
        best->tiling.rows = rows;
        best->tiling.cols = cols;
    }
}

/* Compares every rows x cols == crops, rows ascending, with the best so far. On request, primes above 2 are skipped. */
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
    if (tier->min_crops < 1 || tier->max_crops < tier->min_crops || tier->max_crops > VP_CROPS_LIMIT)
        return VP_ERR_RANGE;
    if (tier->preferred_count < 0
        || tier->preferred_count > (int32_t)(sizeof tier->preferred / sizeof tier->preferred[0]))
        return VP_ERR_RANGE;
    best.window = 1.0; /* tiers compare cols / rows without the margin */
    best.margin = 0.0;
    best.aspect = (double)width_px / (double)height_px;
    best.mismatch = INFINITY;
    best.tiling.rows = 1; /* if all counts are primes, the reference falls back to one row of min_crops */
    best.tiling.cols = tier->min_crops;
    for (i = 0; i < tier->preferred_count; i++) {
        crops = tier->preferred[i];
        if (crops >= tier->min_crops && crops <= tier->max_crops) vp_impl_factorise(&best, crops, 1);
    }
    /* preferred counts are compared again here, which changes nothing because the first of equals is kept */
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

/* token counts of a tiling; returns 0 if they exceed int32 */
static int vp_impl_count_tokens(const vp_impl_grid *grid, vp_tiling tiling, vp_layout *layout) {
    const int64_t per_crop = (int64_t)grid->tokens * grid->tokens, views = (int64_t)tiling.rows * tiling.cols + 1;
    const int64_t grid_rows = (int64_t)grid->window_tokens * tiling.rows + grid->left_tokens + grid->right_tokens;
    const int64_t grid_cols = (int64_t)grid->window_tokens * tiling.cols + grid->left_tokens + grid->right_tokens;
    const int64_t features = per_crop + grid_rows * grid_cols, columns = grid->tokens + grid_rows;
    /* no intermediate overflow: sides of the grid < 2^31 each, views <= 2^16 + 1, per_crop <= 2^30 */
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

/* Sizes of the image inside (or around) a canvas. Every step is rounded to float32, as in the reference: 640x480 in
 * 336x336 gives 336x251, because 480 * (336 / 640) is 251.99999 in float32. Canvas sides are at most
 * VP_CANVAS_PX_LIMIT, because float32 can represent halves up to there. */
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
static vp_result vp_impl_fit(vp_fit fit, const int32_t canvas_px[2], const int32_t image_px[2], int32_t resized_px[2],
                             int32_t offset_px[2]) {
    float side[2];
    vp_impl_scale(fit, canvas_px, image_px, side);
    for (int i = 0; i < 2; i++)
        if (!(side[i] >= 1.0f && side[i] < 2147483648.0f)) return VP_ERR_RANGE;
    for (int i = 0; i < 2; i++) {
        resized_px[i] = (int32_t)side[i];
        if (fit == VP_FIT_FILL) {
            /* rounding may make the product smaller than the canvas */
            if (resized_px[i] < canvas_px[i]) resized_px[i] = canvas_px[i];
            offset_px[i] = (resized_px[i] - canvas_px[i]) / 2;
        } else {
            if (resized_px[i] > canvas_px[i]) return VP_ERR_RANGE;
            offset_px[i] = (canvas_px[i] - resized_px[i]) / 2;
        }
    }
    return VP_OK;
}

VP_API vp_result vp_tiler_shrink(int32_t canvas_width_px, int32_t canvas_height_px, int32_t width_px, int32_t height_px,
                                 int32_t *resized_width_px, int32_t *resized_height_px) {
    const int32_t canvas_px[2] = {canvas_width_px, canvas_height_px}, image_px[2] = {width_px, height_px};
    float side[2];
    for (int i = 0; i < 2; i++)
        if (canvas_px[i] < 1 || canvas_px[i] > VP_CANVAS_PX_LIMIT || image_px[i] < 1) return VP_ERR_RANGE;
    vp_impl_scale(VP_FIT_PAD, canvas_px, image_px, side);
    *resized_width_px = (int32_t)side[0];
    *resized_height_px = (int32_t)side[1];
    return VP_OK;
}

static vp_result vp_impl_choose(const vp_geometry *geometry, const vp_impl_grid *grid, const vp_tile_options *options,
                                int32_t width_px, int32_t height_px, vp_tiling *tiling, vp_error *error) {
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
            return vp_fail(error, VP_ERR_RANGE, -1, "tier",
                           "a tier needs 1 <= min_crops <= max_crops <= 65536 and at most 4 preferred counts");
        case VP_TILE_TOKENS:
            if (vp_select_crops(geometry, options->vision_tokens, &crops) != VP_OK) {
                return vp_fail(error, VP_ERR_RANGE, -1, "vision_tokens",
                               "must be positive and mean at most 65536 crops");
            }
            return vp_impl_exact(grid, crops, aspect, tiling);
        case VP_TILE_CROPS:
            if (vp_impl_exact(grid, crops, aspect, tiling) == VP_OK) return VP_OK;
            return vp_fail(error, VP_ERR_RANGE, -1, "crops", "must be 1 to 65536");
        default:
            return vp_fail(error, VP_ERR_RANGE, -1, "rule", "not one of vp_tile_rule");
    }
}

static vp_result vp_impl_fit_fail(vp_error *error, vp_fit fit, int32_t width_px, int32_t height_px,
                                  const int32_t canvas_px[2]) {
    vp_message m = {{0}, 0};
    vp_message_text(&m, "an image of ");
    vp_message_int(&m, width_px);
    vp_message_text(&m, "x");
    vp_message_int(&m, height_px);
    vp_message_text(&m, fit == VP_FIT_PAD ? " px fitted into " : " px that fills ");
    vp_message_int(&m, canvas_px[0]);
    vp_message_text(&m, "x");
    vp_message_int(&m, canvas_px[1]);
    vp_message_text(&m, fit == VP_FIT_PAD ? " px is less than a pixel on its short side; crop it, or use a fill mode"
                                               : " px is more than 2147483647 px on its long side; crop it first");
    return vp_fail(error, VP_ERR_RANGE, -1, "image size", m.text);
}

VP_API vp_result vp_layout_compute(const vp_geometry *geometry, const vp_tile_options *options, int32_t width_px,
                                   int32_t height_px, vp_layout *layout, vp_error *error) {
    vp_impl_grid grid;
    vp_layout out;
    vp_tiling tiling;
    vp_result result;
    int64_t canvas_width, canvas_height;
    int32_t image[2], canvas[2], crop[2], resized[2], offset[2];
    if (!vp_impl_arithmetic()) return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "arithmetic", VP_IMPL_INEXACT);
    if (vp_impl_grid_of(geometry, &grid) != VP_OK)
        return vp_fail(error, VP_ERR_RANGE, -1, "geometry", "not a valid geometry; see vp_geometry_check");
    if (width_px < 1 || height_px < 1)
        return vp_fail(error, VP_ERR_RANGE, -1, "image size", "both sides must be at least 1 px");
    if (options->fit != VP_FIT_PAD && options->fit != VP_FIT_FILL)
        return vp_fail(error, VP_ERR_RANGE, -1, "fit", "not one of vp_fit");
    result = vp_impl_choose(geometry, &grid, options, width_px, height_px, &tiling, error);
    if (result != VP_OK) return result;
    canvas_width = (int64_t)grid.window_px * tiling.cols + grid.margin_px;
    canvas_height = (int64_t)grid.window_px * tiling.rows + grid.margin_px;
    if (canvas_width > VP_CANVAS_PX_LIMIT || canvas_height > VP_CANVAS_PX_LIMIT
        || !vp_impl_count_tokens(&grid, tiling, &out)) {
        return vp_fail(error, VP_ERR_RANGE, -1, "tiling",
                       "the canvas is over 8388608 px on a side, or the token counts exceed 32 bits");
    }
    out.width_px = image[0] = width_px;
    out.height_px = image[1] = height_px;
    out.fit = options->fit;
    out.canvas_width_px = canvas[0] = (int32_t)canvas_width;
    out.canvas_height_px = canvas[1] = (int32_t)canvas_height;
    if (vp_impl_fit(out.fit, canvas, image, resized, offset) != VP_OK)
        return vp_impl_fit_fail(error, out.fit, width_px, height_px, canvas);
    out.resized_width_px = resized[0];
    out.resized_height_px = resized[1];
    out.offset_left_px = offset[0];
    out.offset_top_px = offset[1];
    crop[0] = crop[1] = geometry->crop_px;
    if (vp_impl_fit(out.fit, crop, image, resized, offset) != VP_OK)
        return vp_impl_fit_fail(error, out.fit, width_px, height_px, crop);
    out.global_resized_width_px = resized[0];
    out.global_resized_height_px = resized[1];
    out.global_offset_left_px = offset[0];
    out.global_offset_top_px = offset[1];
    *layout = out;
    return VP_OK;
}

/* ================================================================================================ select >>select */
VP_API vp_result vp_select_crops(const vp_geometry *geometry, int32_t vision_tokens, int32_t *crops) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || vision_tokens < 1) return VP_ERR_RANGE;
    int32_t count = vision_tokens / (grid.tokens * grid.tokens) - 1;
    if (count < 1) count = 1; /* part of the rule: there is always one crop in addition to the global view */
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

VP_API vp_result vp_select_canvas(const vp_geometry *geometry, vp_tiling tiling, int32_t *width_px,
                                  int32_t *height_px) {
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

/* (side - margin) / window, rounded half to even, at least 1; in integers, so that halves are exact */
static int32_t vp_impl_windows(const vp_impl_grid *grid, int32_t side_px) {
    const int64_t inner = (int64_t)side_px - grid->margin_px;
    if (inner < grid->window_px) return 1;
    int64_t count = inner / grid->window_px;
    int64_t rest = inner % grid->window_px;
    if (2 * rest > grid->window_px || (2 * rest == grid->window_px && count % 2 == 1)) count++;
    return (int32_t)count;
}

VP_API vp_result vp_select_tiling(const vp_geometry *geometry, int32_t canvas_width_px, int32_t canvas_height_px,
                                  vp_tiling *tiling) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || canvas_width_px < 1 || canvas_height_px < 1) return VP_ERR_RANGE;
    tiling->rows = vp_impl_windows(&grid, canvas_height_px);
    tiling->cols = vp_impl_windows(&grid, canvas_width_px);
    return VP_OK;
}

/* ================================================================================================ tokens >>tokens */
/* A layout comes from the caller's memory. Its numbers control loops, so it must equal the result of vp_layout_compute
 * for this geometry. */
static vp_result vp_impl_tokens_check(const vp_geometry *geometry, const vp_layout *layout, vp_impl_grid *grid) {
    vp_layout want;
    if (vp_impl_grid_of(geometry, grid) != VP_OK || layout->tiling.rows < 1 || layout->tiling.cols < 1)
        return VP_ERR_RANGE;
    if ((int64_t)layout->tiling.rows * layout->tiling.cols > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    if (!vp_impl_count_tokens(grid, layout->tiling, &want)) return VP_ERR_RANGE;
    if (layout->crops != want.crops || layout->views != want.views || layout->image_tokens != want.image_tokens)
        return VP_ERR_MISMATCH;
    return VP_OK;
}

/* Positions of one crop. Cells of the overlap that a neighbour covers get no position. */
static void vp_impl_index_crop(const vp_impl_grid *grid, vp_tiling tiling, int32_t row, int32_t col, int32_t grid_start,
                               int32_t *out) {
    const int32_t first_y = row > 0 ? grid->left_tokens : 0,
                  end_y = grid->tokens - (row + 1 < tiling.rows ? grid->right_tokens : 0);
    const int32_t first_x = col > 0 ? grid->left_tokens : 0,
                  end_x = grid->tokens - (col + 1 < tiling.cols ? grid->right_tokens : 0);
    /* a row and its column token */
    const int32_t stride = grid->window_tokens * tiling.cols + grid->left_tokens + grid->right_tokens + 1;
    for (int32_t y = 0; y < grid->tokens; y++) {
        const int32_t line = grid_start + stride * (grid->window_tokens * row + y) + grid->window_tokens * col;
        for (int32_t x = 0; x < grid->tokens; x++) {
            const int kept = y >= first_y && y < end_y && x >= first_x && x < end_x;
            *out++ = kept ? line + x : -100;
        }
    }
}

VP_API vp_result vp_tokens_index_map(const vp_geometry *geometry, const vp_layout *layout, int32_t first_position,
                                     int32_t *image_input_idx, size_t capacity) {
    vp_impl_grid grid;
    vp_result result = vp_impl_tokens_check(geometry, layout, &grid);
    int32_t row, col, x, y, grid_start;
    if (result != VP_OK) return result;
    if (first_position < 0 || first_position > INT32_MAX - layout->image_tokens) return VP_ERR_RANGE;
    if (capacity < (size_t)layout->views * (size_t)(grid.tokens * grid.tokens)) return VP_ERR_CAPACITY;
    for (y = 0; y < grid.tokens; y++) {
        /* 1: the start token */
        for (x = 0; x < grid.tokens; x++) *image_input_idx++ = first_position + 1 + (grid.tokens + 1) * y + x;
    }
    /* 2: the global view's end, the grid's start */
    grid_start = first_position + 1 + (grid.tokens + 1) * grid.tokens + 2;
    for (row = 0; row < layout->tiling.rows; row++) {
        for (col = 0; col < layout->tiling.cols; col++) {
            vp_impl_index_crop(&grid, layout->tiling, row, col, grid_start, image_input_idx);
            image_input_idx += grid.tokens * grid.tokens;
        }
    }
    return VP_OK;
}

static int32_t *vp_impl_ids_block(const vp_special_ids *ids, int32_t rows, int32_t cols, int32_t *out) {
    *out++ = ids->im_start;
    for (int32_t y = 0; y < rows; y++) {
        for (int32_t x = 0; x < cols; x++) *out++ = ids->im_patch;
        *out++ = ids->im_col;
    }
    *out++ = ids->im_end;
    return out;
}

VP_API vp_result vp_tokens_image_ids(const vp_geometry *geometry, const vp_layout *layout, const vp_special_ids *ids,
                                     int32_t *out, size_t capacity) {
    vp_impl_grid grid;
    vp_result result = vp_impl_tokens_check(geometry, layout, &grid);
    int32_t overlap;
    if (result != VP_OK) return result;
    if (capacity < (size_t)layout->image_tokens) return VP_ERR_CAPACITY;
    overlap = grid.left_tokens + grid.right_tokens;
    out = vp_impl_ids_block(ids, grid.tokens, grid.tokens, out);
    (void)vp_impl_ids_block(ids, grid.window_tokens * layout->tiling.rows + overlap,
                            grid.window_tokens * layout->tiling.cols + overlap, out);
    return VP_OK;
}

/* =============================================================================================== sampler >>sampler */
VP_API void vp_random_seed(vp_random *random, uint32_t seed) {
    random->state[0] = seed;
    for (uint32_t i = 1; i < 624; i++) {
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
    uint32_t *state = random->state;
    int i;
    for (i = 0; i < 624 - 397; i++) state[i] = vp_impl_random_twist(state[i], state[i + 1], state[i + 397]);
    for (; i < 623; i++) state[i] = vp_impl_random_twist(state[i], state[i + 1], state[i + 397 - 624]);
    state[623] = vp_impl_random_twist(state[623], state[0], state[396]);
    random->position = 0;
}

VP_API uint32_t vp_random_u32(vp_random *random) {
    if (random->position < 0 || random->position >= 624) vp_impl_random_refill(random);
    uint32_t y = random->state[random->position++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

VP_API double vp_random_double(vp_random *random) {
    /* two statements, because the order of the draws matters */
    const double high = (double)(vp_random_u32(random) >> 5);
    const double low = (double)(vp_random_u32(random) >> 6);
    return (high * 67108864.0 + low) / 9007199254740992.0; /* the sum is exact: 53 bits */
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
    do { /* each round succeeds with probability above one half */
        value = vp_random_u32(random);
        if (maximum > 0xffffffffu) value = value << 32 | vp_random_u32(random);
        value &= mask;
    } while (value > maximum);
    return value;
}

VP_API void vp_random_permutation(vp_random *random, int64_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) values[i] = (int64_t)i;
    for (size_t i = count; i-- > 1;) {
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

/* heap sort: in place and without recursion, because the core has neither memory allocation nor qsort */
#define VP_IMPL_SORT(linkage, name, type)                                                   \
    linkage void name(type *values, size_t count) {                                   \
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
VP_IMPL_SORT(static, vp_impl_sort_int64, int64_t)
VP_IMPL_SORT(VP_API, vp_sort_double, double)

VP_API vp_result vp_sampler_dataset(uint32_t seed, size_t population, size_t count, int64_t *scratch, size_t *kept) {
    if (count >= population) {
        for (size_t i = 0; i < population; i++) scratch[i] = (int64_t)i;
        *kept = population;
        return VP_OK;
    }
    (void)vp_sampler_choice(seed, population, count, scratch); /* cannot fail: count < population */
    vp_impl_sort_int64(scratch, count);
    *kept = count;
    return VP_OK;
}

/* The sorted choice from members grouped by stratum. group [strata]: member count of each stratum, marked if it gets
 * one more record; end [strata]: end index of each stratum. */
static const int64_t vp_impl_one_more = (int64_t)1 << 62;
static void vp_impl_strata_draw(uint32_t seed, size_t population, uint32_t strata, size_t count, const int64_t *group,
                                const int64_t *end, int64_t *members) {
    vp_random random;
    size_t kept = 0, i;
    vp_random_seed(&random, seed);
    for (uint32_t s = 0; s < strata; s++) {
        const size_t size = (size_t)(group[s] & ~vp_impl_one_more), first = (size_t)end[s] - size;
        const size_t quota = (size_t)((uint64_t)count * size / population) + (group[s] >= vp_impl_one_more);
        for (i = size; i > 1; i--) {
            const size_t other = first + (size_t)vp_random_below(&random, i - 1);
            const int64_t held = members[first + i - 1];
            members[first + i - 1] = members[other];
            members[other] = held;
        }
        /* no quota exceeds its group, so kept never exceeds first */
        for (i = 0; i < quota; i++) members[kept++] = members[first + i];
    }
    vp_impl_sort_int64(members, count);
}

VP_API vp_result vp_sampler_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata,
                                       size_t count, int64_t *scratch, size_t *kept) {
    int64_t *group = scratch + population, *end = group + strata, begin = 0;
    size_t missing = count, i;
    if (population > INT32_MAX) return VP_ERR_RANGE; /* the keys below pack a remainder and a stratum */
    for (i = 0; i < population; i++) if (stratum[i] >= strata) return VP_ERR_RANGE;
    if (count >= population) return vp_sampler_dataset(seed, population, count, scratch, kept);
    for (uint32_t s = 0; s < strata; s++) group[s] = 0;
    for (i = 0; i < population; i++) group[stratum[i]]++;
    for (uint32_t s = 0; s < strata; s++) { /* ascending keys: largest remainder first, then the lower stratum */
        const uint64_t share = (uint64_t)count * (uint64_t)group[s];
        missing -= (size_t)(share / population);
        end[s] = (int64_t)(((uint64_t)population - share % population) << 32 | s);
    }
    vp_impl_sort_int64(end, strata);
    for (i = 0; i < missing; i++) group[end[i] & (int64_t)UINT32_MAX] |= vp_impl_one_more;
    for (uint32_t s = 0; s < strata; s++) {
        end[s] = begin;
        begin += group[s] & ~vp_impl_one_more;
    }
    for (i = 0; i < population; i++) scratch[end[stratum[i]]++] = (int64_t)i;
    vp_impl_strata_draw(seed, population, strata, count, group, end, scratch);
    *kept = count;
    return VP_OK;
}

/* Returns 1 if block `left` precedes block `right` by importance. Scores must not be NaN. */
static int vp_impl_block_before(const double *scores, const int32_t *file_order, int32_t left, int32_t right) {
    if (scores[left] != scores[right]) return scores[left] > scores[right];
    if (file_order && file_order[left] != file_order[right]) return file_order[left] < file_order[right];
    return left < right;
}

VP_API vp_result vp_sampler_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order,
                                   int32_t *blocks) {
    int32_t block, other, last, wanted, scored = 0, inner = 0;
    if (block_count < 1 || active < 1 || active > block_count) return VP_ERR_RANGE;
    last = block_count - 1;
    wanted = active - 2;
    for (block = 0; scores && block < block_count; block++) {
        if (!(scores[block] == scores[block])) continue;
        scored++;
        inner += block > 0 && block < last;
    }
    if (scored == 0) { /* an empty file counts as no file */
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
    for (int32_t i = 0; vp_sampler_strategy_name(i); i++) {
        if (!name || strcmp(vp_sampler_strategy_name(i), name) != 0) continue;
        *strategy = (vp_grid_strategy)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

/* the product of the first numbers; UINT64_MAX if it overflows */
static uint64_t vp_impl_grid_product(const uint64_t *counts, int32_t knobs) {
    uint64_t product = 1;
    for (int32_t knob = 0; knob < knobs; knob++) {
        if (counts[knob] > UINT64_MAX / product) return UINT64_MAX;
        product *= counts[knob];
    }
    return product;
}

static uint64_t vp_impl_grid_draws(uint64_t combinations) { return combinations / 4 < 50 ? combinations / 4 : 50; }

VP_API size_t vp_sampler_lhs_points(const int32_t *counts, int32_t knobs) {
    uint64_t sizes[VP_GRID_KNOBS_MAX], points;
    if (knobs < 1 || knobs > VP_GRID_KNOBS_MAX) return 0;
    for (int32_t knob = 0; knob < knobs; knob++) {
        if (counts[knob] < 1) return 0;
        sizes[knob] = (uint64_t)counts[knob];
    }
    points = vp_impl_grid_draws(vp_impl_grid_product(sizes, knobs));
    for (int32_t knob = 0; knob < knobs; knob++) points = sizes[knob] > points ? sizes[knob] : points;
    return points < VP_GRID_LHS_POINTS_MAX ? (size_t)points : VP_GRID_LHS_POINTS_MAX;
}

/* the number of entries that a strategy visits in a list, if fixed; otherwise 0 */
static uint64_t vp_impl_grid_looks(vp_grid_strategy strategy, int32_t knob) {
    if (strategy == VP_GRID_BOUNDARY && knob == 1) return 5;
    return strategy == VP_GRID_BALANCED || strategy == VP_GRID_STRATIFIED || strategy == VP_GRID_BOUNDARY ? 3 : 0;
}

/* The j-th distinct entry that is visited in a list of n. The entries j*n/(looks-1), the last one n-1, are the whole
 * list if n <= looks. */
static uint64_t vp_impl_grid_place(vp_grid_strategy strategy, int32_t knob, uint64_t n, uint64_t j) {
    const uint64_t looks = vp_impl_grid_looks(strategy, knob);
    if (strategy == VP_GRID_CUSTOM_SPARSE) return 2 * j;
    if (looks == 0 || n <= looks) return j;
    return j == looks - 1 ? n - 1 : j * n / (looks - 1);
}

static void vp_impl_grid_regular(vp_grid_strategy strategy, const uint64_t *sizes, const uint64_t *places,
                                 int32_t knobs, size_t total, int32_t *index) {
    for (size_t row = 0; row < total; row++, index += knobs) {
        uint64_t rest = row;
        for (int32_t knob = knobs; knob-- > 0; rest /= places[knob])
            index[knob] = (int32_t)vp_impl_grid_place(strategy, knob, sizes[knob], rest % places[knob]);
    }
}

/* writes the reference's draws into index [draws, knobs], without repeats; returns their number */
static size_t vp_impl_grid_drawn(const uint64_t *sizes, int32_t knobs, uint32_t seed, size_t draws, int32_t *index) {
    const size_t width = (size_t)knobs;
    vp_random random;
    size_t kept = 0, draw, row;
    vp_random_seed(&random, seed);
    for (draw = 0; draw < draws; draw++) {
        int32_t *next = index + width * kept;
        for (int32_t knob = 0; knob < knobs; knob++) next[knob] = (int32_t)vp_random_below(&random, sizes[knob] - 1);
        for (row = 0; row < kept && memcmp(index + width * row, next, width * sizeof *index) != 0; row++) {}
        kept += row == kept;
    }
    return kept;
}

/* floor(t / least common multiple of a and b); the multiple itself may exceed 64 bits */
static uint64_t vp_impl_grid_laps(uint64_t t, uint64_t a, uint64_t b) {
    uint64_t divisor = a, remainder = b;
    while (remainder != 0) {
        const uint64_t rest = divisor % remainder;
        divisor = remainder;
        remainder = rest;
    }
    return t / (a / divisor) / b;
}

static void vp_impl_grid_swap(int32_t *left, int32_t *right) {
    const int32_t held = *left;
    *left = *right;
    *right = held;
}

/* Returns 1 if the row at `mine` equals another row; the row at `skip` is ignored. */
static int vp_impl_grid_repeats(const int32_t *index, int32_t knobs, size_t points, size_t mine, size_t skip) {
    const size_t width = (size_t)knobs;
    const int32_t *own = index + width * mine;
    for (size_t row = 0; row < points; row++) {
        const int32_t *other = index + width * row;
        if (other[0] == own[0] && row != mine && row != skip && memcmp(other, own, width * sizeof *own) == 0) return 1;
    }
    return 0;
}

/* One column of the starting design. Row t contains the value t mod n, plus one for each lap through all combinations
 * that the earlier columns can form with this one. So the first rows, however many, are balanced in every knob, and
 * every combination occurs once before any repeats. In the first n rows the value is t itself; they store the permuted
 * values, and later rows copy them. */
static void vp_impl_grid_column(vp_random *random, const uint64_t *sizes, int32_t knobs, int32_t knob, size_t points,
                                int32_t *index) {
    const uint64_t n = sizes[knob], shift = n > points ? vp_random_below(random, n - 1) : 0;
    const uint64_t earlier = vp_impl_grid_product(sizes, knob), all = vp_impl_grid_product(sizes, knob + 1);
    const size_t width = (size_t)knobs;
    int32_t *column = index + knob;
    for (uint64_t t = 0; t < points; t++) {
        if (n > points) column[width * t] = (int32_t)((t * n + shift) / points);
        else if (t >= n) column[width * t] = column[width * ((t % all + vp_impl_grid_laps(t % all, earlier, n)) % n)];
        else { /* inside-out shuffle: each new value is swapped with a random one */
            column[width * t] = (int32_t)t;
            vp_impl_grid_swap(column + width * t, column + width * vp_random_below(random, t));
        }
    }
}

/* Shuffles each column, but rejects any swap that would repeat a point: the design stays balanced and free of repeats
 * at every step. If most combinations are unused, the first round is already a full shuffle; the other rounds are for
 * crowded grids. */
static void vp_impl_grid_latin(const uint64_t *sizes, int32_t knobs, uint32_t seed, size_t points, int32_t *index) {
    vp_random random;
    vp_random_seed(&random, seed);
    for (int32_t knob = 0; knob < knobs; knob++) vp_impl_grid_column(&random, sizes, knobs, knob, points, index);
    for (int32_t round = 0; round < 4; round++) {
        for (int32_t knob = 0; knob < knobs; knob++) {
            for (size_t row = points; row-- > 1;) {
                const size_t other = (size_t)vp_random_below(&random, row), width = (size_t)knobs;
                int32_t *left = index + width * row + knob, *right = index + width * other + knob;
                if (*left == *right) continue;
                vp_impl_grid_swap(left, right);
                if (vp_impl_grid_repeats(index, knobs, points, row, other)
                    || vp_impl_grid_repeats(index, knobs, points, other, row))
                    vp_impl_grid_swap(left, right);
            }
        }
    }
}

VP_API vp_result vp_sampler_grid(vp_grid_strategy strategy, const int32_t *counts, int32_t knobs, uint32_t seed,
                                 size_t points, int32_t *index, size_t capacity, size_t *needed, size_t *duplicates) {
    const int has_repeats = strategy == VP_GRID_STRATIFIED || strategy == VP_GRID_BOUNDARY;
    uint64_t sizes[VP_GRID_KNOBS_MAX], places[VP_GRID_KNOBS_MAX], combinations, total, again = 1;
    int32_t drawn[50 * VP_GRID_KNOBS_MAX], knob;
    if (!vp_sampler_strategy_name((int32_t)strategy) || knobs < 1 || knobs > VP_GRID_KNOBS_MAX) return VP_ERR_RANGE;
    for (knob = 0; knob < knobs; knob++) {
        const uint64_t looks = vp_impl_grid_looks(strategy, knob);
        if (counts[knob] < 1) return VP_ERR_RANGE;
        sizes[knob] = places[knob] = (uint64_t)counts[knob];
        if (looks != 0 && places[knob] > looks) places[knob] = looks;
        if (strategy == VP_GRID_CUSTOM_SPARSE) places[knob] = (places[knob] + 1) / 2;
        again *= looks;
    }
    combinations = vp_impl_grid_product(sizes, knobs);
    total = vp_impl_grid_product(places, knobs);
    again = has_repeats ? again - total : 0;
    if (strategy == VP_GRID_LHS) {
        if (points < 1 || points > combinations || points > VP_GRID_LHS_POINTS_MAX) return VP_ERR_RANGE;
        total = points;
    } else if (strategy == VP_GRID_SEED_LHS) {
        total = vp_impl_grid_drawn(sizes, knobs, seed, (size_t)vp_impl_grid_draws(combinations), drawn);
        again = vp_impl_grid_draws(combinations) - total;
    } else if (total > SIZE_MAX / ((size_t)knobs * sizeof *index)) {
        return VP_ERR_RANGE;
    }
    if (needed) *needed = (size_t)total;
    if (duplicates) *duplicates = (size_t)again;
    if (total > (index ? capacity : 0)) return VP_ERR_CAPACITY;
    if (strategy == VP_GRID_LHS) vp_impl_grid_latin(sizes, knobs, seed, points, index);
    else if (strategy != VP_GRID_SEED_LHS)
        vp_impl_grid_regular(strategy, sizes, places, knobs, (size_t)total, index);
    else if (total > 0) memcpy(index, drawn, (size_t)total * (size_t)knobs * sizeof *index);
    return VP_OK;
}

VP_API vp_result vp_sampler_shard(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride,
                                  size_t *shard_count) {
    if (ranks < 1 || rank < 0 || rank >= ranks) return VP_ERR_RANGE;
    *first = (size_t)rank;
    *stride = (size_t)ranks;
    *shard_count = (size_t)rank < count ? (count - (size_t)rank - 1) / (size_t)ranks + 1 : 0;
    return VP_OK;
}

/* ================================================================================================= timer >>timer */
#ifndef VLMPROF_CLOCK_NS
#define VLMPROF_CLOCK_NS vp_impl_clock_ns()
#ifdef _WIN32
VP_EXACT_END
VP_EXTERN_C_END
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH
static int64_t vp_impl_clock_ns(void) {
    LARGE_INTEGER ticks, hz;
    if (!QueryPerformanceCounter(&ticks) || !QueryPerformanceFrequency(&hz)) return 0;
    return ticks.QuadPart / hz.QuadPart * 1000000000 + ticks.QuadPart % hz.QuadPart * 1000000000 / hz.QuadPart;
}
#else
#include <time.h>
#ifndef CLOCK_MONOTONIC
/* Strict -std=c11 hides POSIX from <time.h>. struct timespec is C11; the call and the constant belong to the system.
 * If the constant is hidden, so is the declaration, and the one here cannot clash with it. */
#if defined(__linux__)
#define VP_IMPL_CLOCK_MONOTONIC 1
extern int clock_gettime(int clock, struct timespec *time);
#else
#error "vlmprof: define _POSIX_C_SOURCE as 200112L before the first include, or VLMPROF_CLOCK_NS as an expression"
#endif
#else
#define VP_IMPL_CLOCK_MONOTONIC CLOCK_MONOTONIC
#endif
static int64_t vp_impl_clock_ns(void) {
    struct timespec now;
    if (clock_gettime(VP_IMPL_CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}
#endif /* _WIN32 */
#endif

VP_API int64_t vp_clock_ns(void) {
    return VLMPROF_CLOCK_NS;
}

/* if an earlier include of this file defined them for VLMPROF_OFF */
#undef vp_stage_begin
#undef vp_stage_end
#undef vp_stage_add
#undef vp_stage_reset
VP_API vp_stage_clock vp_stage_clock_over(vp_stage_mark *marks, size_t capacity) {
    vp_stage_clock clock = {NULL, 0, 0, SIZE_MAX, 0, 0, INT64_MIN, 0};
    clock.marks = marks;
    clock.capacity = marks ? capacity : 0;
    return clock;
}

VP_API void vp_stage_begin(vp_stage_clock *clock, const char *name) {
    if (!name || clock->lost_open || clock->count >= clock->capacity) { /* marks inside a lost mark are lost too */
        clock->lost++;
        clock->lost_open++;
        return;
    }
    vp_stage_mark *mark = &clock->marks[clock->count];
    mark->name = name;
    mark->end_ns = -1;
    mark->inside = clock->open;
    clock->open = clock->count++;
    mark->begin_ns = vp_clock_ns();
}

VP_API vp_result vp_stage_end(vp_stage_clock *clock) {
    const int64_t stamp_ns = vp_clock_ns();
    if (clock->lost_open) {
        clock->lost_open--;
        return VP_OK;
    }
    if (clock->open == SIZE_MAX) return VP_ERR_STATE;
    clock->marks[clock->open].end_ns = stamp_ns;
    if (stamp_ns > clock->latest_ns) clock->latest_ns = stamp_ns;
    clock->open = clock->marks[clock->open].inside;
    return VP_OK;
}

VP_API vp_result vp_stage_add(vp_stage_clock *clock, const char *name, int64_t begin_ns, int64_t end_ns) {
    const size_t around = clock->open, first = around == SIZE_MAX ? 0 : around + 1;
    if (begin_ns < 0 || end_ns < begin_ns || end_ns > vp_clock_ns()) return VP_ERR_RANGE;
    if (first && begin_ns < clock->marks[around].begin_ns) return VP_ERR_RANGE;
    for (size_t i = first; begin_ns < clock->latest_ns && i < clock->count; i++) {
        const vp_stage_mark *mark = &clock->marks[i];
        if (mark->inside == around && begin_ns < mark->end_ns && end_ns > mark->begin_ns) return VP_ERR_RANGE;
    }
    if (!name || clock->lost_open || clock->count >= clock->capacity) {
        clock->lost++;
        return VP_ERR_CAPACITY;
    }
    const vp_stage_mark mark = {name, begin_ns, end_ns, around};
    clock->marks[clock->count++] = mark;
    if (end_ns > clock->latest_ns) clock->latest_ns = end_ns;
    return VP_OK;
}

VP_API vp_result vp_stage_reset(vp_stage_clock *clock) {
    if (clock->open != SIZE_MAX || clock->lost_open) return VP_ERR_STATE;
    clock->count = clock->lost = 0;
    clock->latest_ns = INT64_MIN;
    return VP_OK;
}

VP_API vp_result vp_stage_statistics(const vp_stage_clock *clock, const char *name, double *scratch,
                                     vp_statistics *statistics) {
    size_t i, count = 0;
    if (clock->lost) return VP_ERR_CAPACITY;
    for (i = 0; i < clock->count; i++) {
        const vp_stage_mark *mark = &clock->marks[i];
        if (mark->end_ns != -1 && strcmp(mark->name, name) == 0)
            scratch[count++] = (double)(mark->end_ns - mark->begin_ns);
    }
    return count ? vp_statistics_compute(scratch, count, scratch, statistics) : VP_ERR_NOT_FOUND;
}

VP_API int64_t vp_stage_unaccounted_ns(const vp_stage_clock *clock, size_t mark) {
    if (mark >= clock->count || clock->marks[mark].end_ns == -1) return -1;
    int64_t rest_ns = clock->marks[mark].end_ns - clock->marks[mark].begin_ns;
    for (size_t i = mark + 1; i < clock->count && clock->marks[i].begin_ns <= clock->marks[mark].end_ns; i++) {
        if (clock->marks[i].inside != mark) continue;
        if (clock->marks[i].end_ns == -1) return -1;
        rest_ns -= clock->marks[i].end_ns - clock->marks[i].begin_ns;
    }
    return rest_ns < 0 ? -1 : rest_ns;
}

/* The term to sum: values[index] or (values[index] - centre)^2. */
static double vp_impl_term(const double *values, size_t index, int squared, double centre) {
    if (!squared) return values[index];
    double distance = values[index] - centre;
    return vp_impl_rounded(distance * distance);
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

/* numpy's recursion: a range above 128 is split into a left part, count / 2 rounded down to a multiple of 8, and the
 * rest. A part is never larger than half of its range plus 8, so there are at most 58 levels for any size_t. */
static double vp_impl_sum(const double *values, size_t count, int squared, double centre) {
    if (count <= 128) return vp_impl_sum_block(values, count, squared, centre);
    size_t left = count / 2;
    left -= left % 8;
    double left_sum = vp_impl_sum(values, left, squared, centre);
    double right_sum = vp_impl_sum(values + left, count - left, squared, centre);
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
    if (count == 0 || !(percentile >= 0.0 && percentile <= 100.0)) return (double)NAN;
    double place = (double)(count - 1) * (percentile / 100.0);
    size_t low = (size_t)place;
    if (low > count - 1) low = count - 1;
    size_t high = low + 1 < count ? low + 1 : low;
    double part = place - (double)low;
    double step = sorted[high] - sorted[low];
    if (part < 0.5) return sorted[low] + vp_impl_rounded(step * part);
    return sorted[high] - vp_impl_rounded(step * (1.0 - part));
}

VP_API int vp_all_finite(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] - values[i] == 0.0)) return 0;
    }
    return 1;
}

VP_API vp_result vp_statistics_compute(const double *values, size_t count, double *scratch, vp_statistics *statistics) {
    vp_statistics out;
    if (!vp_impl_arithmetic()) return VP_ERR_UNSUPPORTED;
    if (count == 0 || !vp_all_finite(values, count)) return VP_ERR_RANGE;
    out.count = count;
    /* before the sort, because the order of the additions matters */
    out.mean = vp_statistics_mean(values, count);
    out.std = vp_statistics_std(values, count);
    if (scratch != values) memcpy(scratch, values, count * sizeof *values);
    vp_sort_double(scratch, count);
    out.min = scratch[0];
    out.p50 = vp_statistics_percentile(scratch, count, 50.0);
    out.p95 = vp_statistics_percentile(scratch, count, 95.0);
    out.p99 = vp_statistics_percentile(scratch, count, 99.0);
    out.max = scratch[count - 1];
    *statistics = out;
    return VP_OK;
}

/* ---- distributions, all based on the regularised incomplete beta function */
/* ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2] for x >= 10: Stirling's series, truncated below 1e-15 */
static double vp_impl_stirling(double x) {
    const double r = 1.0 / (x * x);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360))))))
           / x;
}

/* ln B(a, b), a and b >= 1/2. Written with ratios: a difference of three large ln Gamma would lose the significant
 * digits for large a or b. */
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

/* The continued fraction of the incomplete beta function by Lentz's rule (Numerical Recipes 6.4); it needs about
 * sqrt(max(a, b)) terms. If it has not converged by then, the result is NaN, so that the caller's comparison fails
 * instead of using a wrong value. */
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

VP_API double vp_beta(double a, double b, double x, double y) {
    double front;
    if (x <= 0.0) return 0.0;
    if (y <= 0.0) return 1.0;
    front = exp(a * (x < 0.5 ? log(x) : log1p(-y)) + b * (y < 0.5 ? log(y) : log1p(-x)) - vp_impl_log_beta(a, b));
    if (x < (a + 1.0) / (a + b + 2.0)) return front * vp_impl_beta_fraction(a, b, x) / a;
    return 1.0 - front * vp_impl_beta_fraction(b, a, y) / b;
}

VP_API double vp_student_upper(double t, double degrees) {
    const double ratio = t / sqrt(degrees) * (t / sqrt(degrees));
    if (!(degrees < (double)INFINITY)) return 0.5 * erfc(t * 0.70710678118654752440);
    return 0.5 * vp_beta(0.5 * degrees, 0.5, 1.0 / (1.0 + ratio), ratio > 0.0 ? 1.0 / (1.0 + 1.0 / ratio) : 0.0);
}

VP_API double vp_statistics_student(double probability, double degrees) {
    const double tail = probability < 0.5 ? probability : 1.0 - probability, many = 1e5,
                 solved = degrees < many ? degrees : (double)INFINITY;
    double low = 0.0, high = 1.0, middle, square;
    if (!(probability >= 1e-12 && probability <= 1.0 - 1e-12) || !(degrees >= 1.0)) return (double)NAN;
    /* at most 2^39: the tail of 1 degree is about 1 / (pi t) */
    while (high < 1e12 && vp_student_upper(high, solved) > tail) high *= 2.0;
    for (int step = 0; step < 1200 && (middle = low + (high - low) * 0.5) > low && middle < high; step++) {
        if (vp_student_upper(middle, solved) > tail) low = middle; else high = middle;
    }
    /* the fraction loses digits here; the Cornish-Fisher expansion is accurate to 1e-11 (Abramowitz and Stegun
     * 26.7.5) */
    if (degrees >= many) {
        square = high * high;
        high += high * (square + 1.0) / (4.0 * degrees)
                + high * ((5.0 * square + 16.0) * square + 3.0) / (96.0 * degrees * degrees);
    }
    return probability < 0.5 ? -high : tail < 0.5 ? high : 0.0;
}

VP_API size_t vp_order_rank(size_t count, double chance, double tail) {
    size_t low = 0, high = count + 1;
    while (high - low > 1) { /* P(B < low) <= tail, and P(B < high) is not */
        const size_t l = low + (high - low) / 2;
        const double below = vp_beta((double)(count - l + 1), (double)l, 1.0 - chance, chance);
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
    if (!(count < (double)SIZE_MAX)) return SIZE_MAX; /* more values than fit in memory, as for P1e-300 */
    return count < 1.0 ? 1 : (size_t)count;
}

VP_API vp_result vp_statistics_percentile_interval(const double *sorted, size_t count, double percentile,
                                                   double confidence, double *low, double *high) {
    const double chance = percentile / 100.0, tail = (1.0 - confidence) * 0.5;
    size_t l, h;
    if (!(percentile > 0.0 && percentile < 100.0) || !(confidence > 0.0 && confidence < 1.0)) return VP_ERR_RANGE;
    if (count < vp_statistics_percentile_needs(percentile, confidence)) return VP_ERR_UNSUPPORTED;
    l = vp_order_rank(count, chance, tail);
    h = vp_order_rank(count, 1.0 - chance, tail); /* counted from the other end */
    if (l == 0 || h == 0) return VP_ERR_UNSUPPORTED;
    if (!vp_all_finite(sorted + (l - 1), 1) || !vp_all_finite(sorted + (count - h), 1)) return VP_ERR_RANGE;
    *low = sorted[l - 1];
    *high = sorted[count - h];
    return VP_OK;
}

VP_API vp_result vp_statistics_mean_interval(const double *values, size_t count, double confidence, double *low,
                                             double *high) {
    double mean, half, ends[2];
    if (!(confidence > 0.0 && confidence < 1.0) || !vp_all_finite(values, count)) return VP_ERR_RANGE;
    if (count < 2) return VP_ERR_UNSUPPORTED;
    mean = vp_statistics_mean(values, count);
    half = sqrt(vp_impl_sum(values, count, 1, mean) / (double)(count - 1) / (double)count);
    half *= vp_statistics_student(0.5 + 0.5 * confidence, (double)(count - 1));
    ends[0] = mean - half;
    ends[1] = mean + half;
    if (!vp_all_finite(ends, 2)) return VP_ERR_RANGE;
    *low = ends[0];
    *high = ends[1];
    return VP_OK;
}

VP_API vp_result vp_statistics_outliers(const double *values, size_t count, double threshold, double *scratch,
                                        uint8_t *flags, vp_outliers *outliers) {
    vp_outliers out = {0, 0.0, 0.0, 0.0, 0};
    double scale;
    if (!(threshold > 0.0) || !vp_all_finite(values, count)) return VP_ERR_RANGE;
    if (count < VP_OUTLIER_COUNT_MIN) return VP_ERR_UNSUPPORTED;
    memcpy(scratch, values, count * sizeof *values);
    vp_sort_double(scratch, count);
    out.median = vp_statistics_percentile(scratch, count, 50.0);
    for (size_t i = 0; i < count; i++) scratch[i] = fabs(values[i] - out.median);
    if (!vp_all_finite(scratch, count)) return VP_ERR_RANGE;
    scale = 1.253314 * vp_statistics_mean(scratch, count);
    vp_sort_double(scratch, count);
    out.mad = vp_statistics_percentile(scratch, count, 50.0);
    if (out.mad > 0.0) scale = out.mad / 0.6745;
    for (size_t i = 0; i < count; i++) {
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

static vp_estimate vp_impl_relative(vp_estimate estimate, double whole) {
    const double factor = whole > 0.0 ? 1.0 / whole : (double)NAN;
    estimate.value *= factor;
    estimate.low *= factor;
    estimate.high *= factor;
    return estimate;
}

VP_API vp_result vp_statistics_paired(const double *first, const double *second, size_t count, double *scratch,
                                      vp_paired *paired) {
    const vp_estimate nothing = {(double)NAN, (double)NAN, (double)NAN};
    const double whole = vp_statistics_mean(first, count);
    vp_paired out;
    size_t i, greater = 0;
    if (count == 0) return VP_ERR_RANGE;
    for (i = 0; i < count; i++) {
        scratch[i] = second[i] - first[i];
        greater += scratch[i] > 0.0;
    }
    if (!vp_all_finite(scratch, count)) return VP_ERR_RANGE;
    out.count = count;
    out.share_greater = (double)greater / (double)count;
    out.mean = out.median = nothing; /* intervals stay NaN if there are too few pairs */
    out.mean.value = vp_statistics_mean(scratch, count);
    vp_statistics_mean_interval(scratch, count, 0.95, &out.mean.low, &out.mean.high);
    vp_sort_double(scratch, count);
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

VP_API vp_result vp_stop_decide(const vp_stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns,
                                double *scratch, vp_stop *stop) {
    double low, high;
    if (rule->min_runs < 1 || rule->max_runs < rule->min_runs || rule->box_ns < 0 || elapsed_ns < 0)
        return VP_ERR_RANGE;
    if (!(rule->half_width >= 0.0 && rule->half_width < 1.0) || !(rule->confidence > 0.0 && rule->confidence < 1.0))
        return VP_ERR_RANGE;
    if (!vp_all_finite(values, count)) return VP_ERR_RANGE;
    *stop = VP_STOP_NOT;
    if (count < (uint64_t)rule->min_runs) return VP_OK;
    if (rule->half_width <= 0.0) {
        *stop = VP_STOP_RUNS;
        return VP_OK;
    }
    if (scratch != values) memcpy(scratch, values, count * sizeof *values);
    vp_sort_double(scratch, count);
    if (vp_statistics_percentile_interval(scratch, count, 50.0, rule->confidence, &low, &high) == VP_OK
        && (high - low) * 0.5 <= rule->half_width * vp_statistics_percentile(scratch, count, 50.0))
        *stop = VP_STOP_INTERVAL;
    else if (count >= (uint64_t)rule->max_runs) *stop = VP_STOP_MAX;
    else if (rule->box_ns > 0 && elapsed_ns >= rule->box_ns) *stop = VP_STOP_BOX;
    return VP_OK;
}

/* ================================================================================================== json >>json */
/* ---- UTF-8 ---- */

/* Bytes of the one well-formed UTF-8 character at the start of `text` (1..4), or 0. Table 3-7 of the Unicode
 * standard: no overlong forms, no surrogates, nothing above U+10FFFF. Only the range of the second byte depends on
 * the first. */
static size_t vp_impl_json_utf8_step(const unsigned char *text, size_t left) {
    unsigned first, low = 0x80, high = 0xBF;
    size_t length, i;
    if (left == 0) return 0;
    first = text[0];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (left < length) return 0;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (text[1] < low || text[1] > high) return 0;
    for (i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Number of bytes at the start of `text`, in whole words, that need no attention inside a JSON string: ASCII from 0x20,
 * except '"' and '\'. It tests eight bytes at a time: (word - 0x20..) & ~word has a high bit set if a byte is below
 * 0x20; an XOR first turns "equals c" into "is below 1". */
static size_t vp_impl_json_plain_words(const unsigned char *text, size_t left) {
    const uint64_t ones = UINT64_C(0x0101010101010101), high = UINT64_C(0x8080808080808080);
    size_t plain = 0;
    while (left - plain >= 8) {
        uint64_t word, quote, slash;
        memcpy(&word, text + plain, 8);
        quote = word ^ ones * 0x22;
        slash = word ^ ones * 0x5C;
        if ((word | ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & high)
            break;
        plain += 8;
    }
    return plain;
}

VP_API size_t vp_utf8_valid_bytes(const char *text, size_t bytes) {
    const unsigned char *raw = (const unsigned char *)text;
    size_t at = 0, step;
    while (at < bytes) {
        at += vp_impl_json_plain_words(raw + at, bytes - at);
        step = vp_impl_json_utf8_step(raw + at, bytes - at);
        if (step == 0) break;
        at += step;
    }
    return at;
}
VP_API size_t vp_utf8_control(const char *text, size_t bytes) {
    const unsigned char *byte = (const unsigned char *)text;
    if (bytes == 0) return 0;
    if (byte[0] < 0x80) return byte[0] < 32 || byte[0] == 127;
    size_t length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (length > bytes || vp_utf8_valid_bytes(text, length) != length) return 1;
    if (byte[0] == 0xc2) return byte[1] < 0xa0 ? 2 : 0;
    if (byte[0] == 0xd8) return byte[1] == 0x9c ? 2 : 0;
    if (byte[0] != 0xe2) return 0;
    if (byte[1] == 0x80) return byte[2] == 0x8e || byte[2] == 0x8f || (byte[2] >= 0xa8 && byte[2] <= 0xae) ? 3 : 0;
    return byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9 ? 3 : 0;
}
VP_API size_t vp_utf8_visible_bytes(const char *text, size_t bytes) {
    size_t at = 0;
    while (at < bytes && vp_utf8_control(text + at, bytes - at) == 0) {
        const unsigned char first = (unsigned char)text[at];
        at += first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4; /* valid: an invalid byte is a control */
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
    int32_t depth, outside; /* outside: depth at which the text will be inserted; 0 for a separate text */
    struct { uint32_t node, count; uint8_t type; } open[VP_IMPL_JSON_DEPTH];
    vp_result code;      /* VP_OK until an error; then `message` is its text and `at` its offset */
    const char *message;
} vp_impl_json_scan;

static int vp_impl_json_wrong(vp_impl_json_scan *scan, vp_result code, const char *message) {
    scan->code = code;
    scan->message = message;
    return 0;
}

/* Counts every node, and stores those that fit. */
static int vp_impl_json_add(vp_impl_json_scan *scan, vp_json_type type, int escaped, size_t start, size_t bytes) {
    if (scan->node_count >= VP_JSON_NONE - 1)
        return vp_impl_json_wrong(scan, VP_ERR_RANGE, "more than 4294967294 values and keys");
    if (scan->node_count < scan->capacity) {
        vp_json_node *node = &scan->nodes[scan->node_count];
        node->type = (uint8_t)type;
        node->escaped = (uint8_t)escaped;
        node->count = 0;
        node->end = scan->node_count + 1;
        node->start = start;
        node->bytes = bytes;
    }
    scan->node_count++;
    return 1;
}

static void vp_impl_json_skip_space(vp_impl_json_scan *scan) {
    while (scan->at < scan->bytes) {
        unsigned character = scan->text[scan->at];
        if (character != ' ' && character != '\n' && character != '\r' && character != '\t') break;
        scan->at++;
    }
}

static int vp_impl_json_hex(unsigned digit) {
    if (digit >= '0' && digit <= '9') return (int)(digit - '0');
    if (digit >= 'a' && digit <= 'f') return (int)(digit - 'a' + 10);
    if (digit >= 'A' && digit <= 'F') return (int)(digit - 'A' + 10);
    return -1;
}

/* `at` is on a backslash; moves past the escape. */
static int vp_impl_json_scan_escape(vp_impl_json_scan *scan) {
    if (scan->bytes - scan->at < 2) {
        scan->at = scan->bytes;
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
    }
    switch (scan->text[scan->at + 1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': scan->at += 2; return 1;
    case 'u': break;
    default:
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                  "unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    }
    for (size_t i = 2; i < 6; i++) {
        if (scan->at + i >= scan->bytes) {
            scan->at = scan->bytes;
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
        }
        if (vp_impl_json_hex(scan->text[scan->at + i]) < 0)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected four hexadecimal digits after \\u");
    }
    scan->at += 6;
    return 1;
}

/* `at` is on the opening quote; moves past the closing one. */
static int vp_impl_json_scan_string(vp_impl_json_scan *scan) {
    size_t start = ++scan->at;
    int escaped = 0;
    for (;;) {
        unsigned character;
        scan->at += vp_impl_json_plain_words(scan->text + scan->at, scan->bytes - scan->at);
        /* a few bytes one by one, then whole words again */
        do {
            if (scan->at >= scan->bytes)
                return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside a string");
            character = scan->text[scan->at++];
        } while (character >= 0x20 && character < 0x80 && character != '"' && character != '\\');
        scan->at--;
        if (character == '"') break;
        if (character == '\\') {
            escaped = 1;
            if (!vp_impl_json_scan_escape(scan)) return 0;
        } else if (character < 0x20) {
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "control character inside a string; it must be escaped");
        } else {
            size_t step = vp_impl_json_utf8_step(scan->text + scan->at, scan->bytes - scan->at);
            if (step == 0) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "a string is not valid UTF-8");
            scan->at += step;
        }
    }
    scan->at++;
    return vp_impl_json_add(scan, VP_JSON_STRING, escaped, start, scan->at - 1 - start);
}

static size_t vp_impl_json_digits(const unsigned char *text, size_t left) {
    size_t count = 0;
    while (count < left && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

/* Returns NULL and sets *length to the length of the longest JSON number at the start of `text`. On failure it returns
 * the error's text, and *length is its offset. */
static const char *vp_impl_json_number(const unsigned char *text, size_t left, size_t *length) {
    size_t at = 0, digits;
    if (at < left && text[at] == '-') at++;
    digits = vp_impl_json_digits(text + at, left - at);
    *length = at;
    if (digits == 0) return "expected a digit";
    if (digits > 1 && text[at] == '0') return "a number must not start with 0";
    at += digits;
    if (at < left && text[at] == '.') {
        at++;
        digits = vp_impl_json_digits(text + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit after the decimal point";
        at += digits;
    }
    if (at < left && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < left && (text[at] == '+' || text[at] == '-')) at++;
        digits = vp_impl_json_digits(text + at, left - at);
        *length = at;
        if (digits == 0) return "expected a digit in the exponent";
        at += digits;
    }
    *length = at;
    return NULL;
}

static int vp_impl_json_scan_number(vp_impl_json_scan *scan) {
    size_t start = scan->at, length;
    const char *message = vp_impl_json_number(scan->text + start, scan->bytes - start, &length);
    scan->at += length;
    if (message) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, message);
    return vp_impl_json_add(scan, VP_JSON_NUMBER, 0, start, length);
}

static int vp_impl_json_scan_word(vp_impl_json_scan *scan, const char *word, vp_json_type type) {
    size_t length = strlen(word), start = scan->at;
    if (scan->bytes - start < length || memcmp(scan->text + start, word, length))
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value");
    scan->at += length;
    return vp_impl_json_add(scan, type, 0, start, length);
}

/* `at` is on '{' or '['. */
static int vp_impl_json_open(vp_impl_json_scan *scan, vp_json_type type) {
    if (scan->depth >= VP_IMPL_JSON_DEPTH)
        return vp_impl_json_wrong(scan, VP_ERR_RANGE, "nested deeper than 64 levels");
    scan->open[scan->depth].node = scan->node_count;
    scan->open[scan->depth].count = 0;
    scan->open[scan->depth].type = (uint8_t)type;
    if (!vp_impl_json_add(scan, type, 0, scan->at, 1)) return 0;
    scan->depth++;
    scan->at++;
    return 1;
}

/* `at` is on '}' or ']'. */
static void vp_impl_json_close(vp_impl_json_scan *scan) {
    scan->at++;
    scan->depth--;
    uint32_t index = scan->open[scan->depth].node;
    if (index < scan->capacity) {
        scan->nodes[index].count = scan->open[scan->depth].count;
        scan->nodes[index].end = scan->node_count;
        scan->nodes[index].bytes = scan->at - scan->nodes[index].start;
    }
}

/* Reads one value, or only the opening of a container (then *opened is set). */
static int vp_impl_json_scan_value(vp_impl_json_scan *scan, int *opened) {
    *opened = 0;
    if (scan->at >= scan->bytes)
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends where a value is expected");
    switch (scan->text[scan->at]) {
    case '{': *opened = 1; return vp_impl_json_open(scan, VP_JSON_OBJECT);
    case '[': *opened = 1; return vp_impl_json_open(scan, VP_JSON_ARRAY);
    case '"': return vp_impl_json_scan_string(scan);
    case 't': return vp_impl_json_scan_word(scan, "true", VP_JSON_TRUE);
    case 'f': return vp_impl_json_scan_word(scan, "false", VP_JSON_FALSE);
    case 'n': return vp_impl_json_scan_word(scan, "null", VP_JSON_NULL);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return vp_impl_json_scan_number(scan);
    case 0xEF:
        if (scan->at == 0)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value; a byte order mark is not allowed");
        break;
    default: break;
    }
    return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected a value");
}

/* Reads a key and its colon. */
static int vp_impl_json_scan_key(vp_impl_json_scan *scan, int first) {
    if (scan->at >= scan->bytes) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside an object");
    if (scan->text[scan->at] != '"')
        return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                  first ? "expected a key in double quotes or '}'"
                                        : "expected a key in double quotes after ','");
    if (!vp_impl_json_scan_string(scan)) return 0;
    vp_impl_json_skip_space(scan);
    if (scan->at >= scan->bytes) return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "the text ends inside an object");
    if (scan->text[scan->at] != ':') return vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected ':' after a key");
    scan->at++;
    return 1;
}

/* Reads what follows a complete value: closing brackets, then a comma (returns 1: another member follows) or the end
 * (returns 0). */
static int vp_impl_json_after_value(vp_impl_json_scan *scan) {
    for (;;) {
        vp_impl_json_skip_space(scan);
        if (scan->depth == scan->outside)
            return scan->at == scan->bytes
                       ? 0
                       : vp_impl_json_wrong(scan, VP_ERR_FORMAT, "expected nothing after the value");
        int object = scan->open[scan->depth - 1].type == VP_JSON_OBJECT;
        if (scan->at >= scan->bytes)
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                      object ? "the text ends inside an object" : "the text ends inside an array");
        if (scan->text[scan->at] == ',') { scan->at++; return 1; }
        if (scan->text[scan->at] != (object ? '}' : ']'))
            return vp_impl_json_wrong(scan, VP_ERR_FORMAT,
                                      object ? "expected ',' or '}' after a member"
                                             : "expected ',' or ']' after an element");
        vp_impl_json_close(scan);
    }
}

/* Scans the whole text, without recursion; s->code is the result. */
static void vp_impl_json_scan_text(vp_impl_json_scan *scan) {
    int opened = 0, more = 1;
    scan->depth = scan->outside;
    while (more) {
        vp_impl_json_skip_space(scan);
        if (scan->depth > scan->outside) {
            int object = scan->open[scan->depth - 1].type == VP_JSON_OBJECT;
            if (opened && scan->at < scan->bytes && scan->text[scan->at] == (object ? '}' : ']')) {
                vp_impl_json_close(scan);
                opened = 0;
                more = vp_impl_json_after_value(scan);
                continue;
            }
            scan->open[scan->depth - 1].count++;
            if (object && !vp_impl_json_scan_key(scan, opened)) return;
            vp_impl_json_skip_space(scan);
        }
        if (!vp_impl_json_scan_value(scan, &opened)) return;
        if (!opened) more = vp_impl_json_after_value(scan);
    }
}

VP_API vp_result vp_json_parse(const char *text, size_t bytes, vp_json_node *nodes, size_t capacity, vp_json *json,
                               size_t *needed, vp_error *error) {
    vp_impl_json_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.text = (const unsigned char *)text;
    scan.bytes = text ? bytes : 0;
    scan.nodes = nodes;
    scan.capacity = nodes ? capacity : 0;
    vp_impl_json_scan_text(&scan);
    if (scan.code != VP_OK) return vp_fail(error, scan.code, (int64_t)scan.at, "JSON", scan.message);
    if (needed) *needed = scan.node_count;
    if (scan.node_count > scan.capacity)
        return vp_fail(error, VP_ERR_CAPACITY, -1, "JSON",
                       "the text has more values and keys than fit in the node buffer");
    if (json) {
        json->text = text;
        json->nodes = nodes;
        json->node_count = scan.node_count;
    }
    return VP_OK;
}

static const vp_json_node *vp_impl_json_node_of(const vp_json *json, uint32_t index, vp_json_type type) {
    if (!json || index >= json->node_count || json->nodes[index].type != type) return NULL;
    return &json->nodes[index];
}

static uint32_t vp_impl_json_hex4(const char *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value * 16 + (uint32_t)vp_impl_json_hex((unsigned char)digits[i]);
    return value;
}

VP_API size_t vp_utf8_put(char *out, uint32_t code) {
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

/* Takes one escape, or one byte, from *text (before end; the parser has checked it). Writes its UTF-8 bytes and returns
 * their number (1..4). */
static size_t vp_impl_json_unescape(const char **text, const char *end, char out[4]) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = *text, *found;
    uint32_t code, low;
    if (at[0] != '\\') { out[0] = at[0]; *text = at + 1; return 1; }
    if (at[1] != 'u') {
        found = strchr(from, at[1]);
        out[0] = found ? to[found - from] : at[1];
        *text = at + 2;
        return 1;
    }
    code = vp_impl_json_hex4(at + 2);
    at += 6;
    if (code >= 0xD800 && code <= 0xDFFF) {
        low = code < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? vp_impl_json_hex4(at + 2) : 0;
        if (low >= 0xDC00 && low <= 0xDFFF) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        } else {
            code = 0xFFFD;
        }
    }
    *text = at;
    return vp_utf8_put(out, code);
}

static int vp_impl_json_equals(const vp_json *json, const vp_json_node *node, const char *text, size_t bytes) {
    const char *from = json->text + node->start, *end = from + node->bytes;
    char piece[4];
    size_t made, at = 0;
    if (!node->escaped) return node->bytes == bytes && memcmp(from, text, bytes) == 0;
    while (from < end) {
        made = vp_impl_json_unescape(&from, end, piece);
        if (bytes - at < made || memcmp(text + at, piece, made)) return 0;
        at += made;
    }
    return at == bytes;
}

VP_API int vp_json_equals(const vp_json *json, uint32_t string, const char *text) {
    return text ? vp_json_equals_bytes(json, string, text, strlen(text)) : 0;
}

VP_API int vp_json_equals_bytes(const vp_json *json, uint32_t string, const char *text, size_t bytes) {
    const vp_json_node *node = vp_impl_json_node_of(json, string, VP_JSON_STRING);
    return node && text ? vp_impl_json_equals(json, node, text, bytes) : 0;
}

VP_API uint32_t vp_json_get(const vp_json *json, uint32_t object, const char *key) {
    const vp_json_node *node = vp_impl_json_node_of(json, object, VP_JSON_OBJECT);
    uint32_t index, found = VP_JSON_NONE;
    if (!node || !key) return VP_JSON_NONE;
    size_t bytes = strlen(key);
    for (index = object + 1; index < node->end; index = json->nodes[index + 1].end)
        if (vp_impl_json_equals(json, &json->nodes[index], key, bytes)) found = index + 1;
    return found;
}

/* Order of two keys by their unescaped bytes. Equal keys are ordered by position, so that the order is total and every
 * sort gives the same result. */
static int vp_impl_json_key_order(const vp_json *json, uint32_t left, uint32_t right, int *same) {
    const vp_json_node *left_node = &json->nodes[left], *right_node = &json->nodes[right];
    const char *left_text = json->text + left_node->start, *left_end = left_text + left_node->bytes,
               *right_text = json->text + right_node->start, *right_end = right_text + right_node->bytes;
    char left_piece[4], right_piece[4];
    size_t left_rest = 0, right_rest = 0, left_at = 0, right_at = 0, shorter;
    int order = 0;
    if (!left_node->escaped && !right_node->escaped) {
        shorter = (size_t)(left_node->bytes < right_node->bytes ? left_node->bytes : right_node->bytes);
        order = memcmp(left_text, right_text, shorter);
        if (order == 0) order = (left_node->bytes > right_node->bytes) - (left_node->bytes < right_node->bytes);
    } else {
        while (order == 0) {
            if (left_rest == 0 && left_text < left_end) {
                left_rest = vp_impl_json_unescape(&left_text, left_end, left_piece);
                left_at = 0;
            }
            if (right_rest == 0 && right_text < right_end) {
                right_rest = vp_impl_json_unescape(&right_text, right_end, right_piece);
                right_at = 0;
            }
            if (left_rest == 0 || right_rest == 0) { order = (left_rest > 0) - (right_rest > 0); break; }
            order = (int)(unsigned char)left_piece[left_at++] - (int)(unsigned char)right_piece[right_at++];
            left_rest--;
            right_rest--;
        }
    }
    *same = order == 0;
    return order ? order : left < right ? -1 : left > right;
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

VP_API vp_result vp_json_has_duplicates(const vp_json *json, uint32_t object, uint32_t *scratch, size_t capacity,
                                        uint32_t *duplicate) {
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
    char piece[4];
    size_t total = 0, made;
    if (!node) return json && string < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    const char *from = json->text + node->start;
    const char *end = from + node->bytes;
    if (!node->escaped) total = (size_t)node->bytes;
    else while (from < end) total += vp_impl_json_unescape(&from, end, piece);
    if (needed) *needed = total;
    if (!out || capacity <= total) return VP_ERR_CAPACITY;
    from = json->text + node->start;
    if (!node->escaped) {
        memcpy(out, from, total);
        out += total;
    } else {
        while (from < end) {
            made = vp_impl_json_unescape(&from, end, piece);
            memcpy(out, piece, made);
            out += made;
        }
    }
    *out = 0;
    return VP_OK;
}

/* ---- numbers ---- */

/* A number's decimal value: digits times 10^exponent. `digits` is their count, from the first nonzero digit, at
 * `first`, to the last nonzero one. There may be one point between them. */
typedef struct vp_impl_decimal { const char *first; int64_t digits, exponent; int negative; } vp_impl_decimal;

/* text: one valid JSON number. Exponents saturate far beyond any value that the digits of a text could compensate. */
static vp_impl_decimal vp_impl_decimal_of(const char *text, size_t bytes) {
    const int64_t limit = INT64_C(100000000000000000);
    const char *at = text, *end = text + bytes;
    vp_impl_decimal decimal;
    int64_t seen = 0, fraction = 0, exponent = 0;
    int after_point = 0, minus = 0;
    decimal.first = NULL;
    decimal.digits = decimal.exponent = 0;
    decimal.negative = *at == '-';
    for (at += decimal.negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') { after_point = 1; continue; }
        fraction += after_point;
        if (*at != '0' && !decimal.first) decimal.first = at;
        if (decimal.first) seen++;
        if (*at != '0') {
            decimal.digits = seen;
            decimal.exponent = -fraction;
        } else if (!after_point) {
            /* zeros of the integer part after the last nonzero digit so far; unused before the first one */
            decimal.exponent++;
        }
    }
    if (at < end) at++;
    if (at < end && (*at == '-' || *at == '+')) minus = *at++ == '-';
    for (; at < end; at++)
        if (exponent < limit) exponent = exponent * 10 + (*at - '0');
    decimal.exponent += minus ? -exponent : exponent;
    return decimal;
}

VP_API vp_result vp_json_to_int(const vp_json *json, uint32_t number, int64_t *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    uint64_t magnitude = 0;
    const char *digit;
    int64_t i;
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    vp_impl_decimal decimal = vp_impl_decimal_of(json->text + node->start, (size_t)node->bytes);
    if (decimal.digits > 0) {
        if (decimal.exponent < 0) return VP_ERR_FORMAT;
        if (decimal.digits + decimal.exponent > 19) return VP_ERR_RANGE;
        for (digit = decimal.first, i = 0; i < decimal.digits; digit++) {
            if (*digit == '.') continue;
            magnitude = magnitude * 10 + (uint64_t)(*digit - '0');
            i++;
        }
        for (i = 0; i < decimal.exponent; i++) magnitude *= 10;
        if (magnitude > (uint64_t)INT64_MAX + (uint64_t)decimal.negative) return VP_ERR_RANGE;
    }
    *value = !decimal.negative ? (int64_t)magnitude : magnitude > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)magnitude;
    return VP_OK;
}

/* Natural numbers up to 3072 bits, least significant word first, no leading zero words. The longest are 801 decimal
 * digits (2661 bits) and 5^1131 (2627 bits) when reading, and 10^326 (1083 bits) when printing, shifted by a few bits
 * at most. */
enum { VP_IMPL_BIG_WORDS = 96 };
typedef struct vp_impl_big { int32_t count; uint32_t word[VP_IMPL_BIG_WORDS]; } vp_impl_big;

static void vp_impl_big_set(vp_impl_big *number, uint64_t value) {
    number->word[0] = (uint32_t)value;
    number->word[1] = (uint32_t)(value >> 32);
    number->count = number->word[1] ? 2 : number->word[0] ? 1 : 0;
}

/* number = number * factor + addend */
static void vp_impl_big_multiply(vp_impl_big *number, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (int32_t i = 0; i < number->count; i++) {
        carry += (uint64_t)number->word[i] * factor;
        number->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) number->word[number->count++] = (uint32_t)carry;
}

static void vp_impl_big_multiply_power5(vp_impl_big *number, int64_t power) {
    for (; power >= 13; power -= 13) vp_impl_big_multiply(number, 1220703125u, 0);
    for (; power > 0; power--) vp_impl_big_multiply(number, 5, 0);
}

static void vp_impl_big_shift(vp_impl_big *number, int64_t bits) {
    int32_t words = (int32_t)(bits / 32), rest = (int32_t)(bits % 32), i;
    if (number->count == 0) return;
    if (rest) vp_impl_big_multiply(number, UINT32_C(1) << rest, 0);
    if (words == 0) return;
    for (i = number->count - 1; i >= 0; i--) number->word[i + words] = number->word[i];
    for (i = 0; i < words; i++) number->word[i] = 0;
    number->count += words;
}

static int64_t vp_impl_big_bits(const vp_impl_big *number) {
    int64_t bits = (int64_t)number->count * 32;
    if (number->count == 0) return 0;
    for (uint32_t top = number->word[number->count - 1]; !(top >> 31); top <<= 1) bits--;
    return bits;
}

static int vp_impl_big_compare(const vp_impl_big *left, const vp_impl_big *right) {
    if (left->count != right->count) return left->count < right->count ? -1 : 1;
    for (int32_t i = left->count - 1; i >= 0; i--)
        if (left->word[i] != right->word[i]) return left->word[i] < right->word[i] ? -1 : 1;
    return 0;
}

/* a -= b; a >= b */
static void vp_impl_big_subtract(vp_impl_big *a, const vp_impl_big *b) {
    uint64_t borrow = 0;
    for (int32_t i = 0; i < a->count; i++) {
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
    sum.count = a->count > b->count ? a->count : b->count;
    for (int32_t i = 0; i < sum.count; i++) {
        carry += (i < a->count ? (uint64_t)a->word[i] : 0) + (i < b->count ? b->word[i] : 0);
        sum.word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) sum.word[sum.count++] = (uint32_t)carry;
    return vp_impl_big_compare(&sum, c);
}

/* The double nearest to numerator / denominator * 2^exponent, ties to even; its bits. If it overflows, the bits of
 * infinity. Binary long division, one comparison and subtraction per bit: no estimate could be wrong. */
static uint64_t vp_impl_big_ratio(vp_impl_big *numerator, vp_impl_big *denominator, int64_t exponent) {
    int64_t shift = vp_impl_big_bits(numerator) - vp_impl_big_bits(denominator), bits = 53, i;
    uint64_t quotient = 0;
    if (shift > 0) vp_impl_big_shift(denominator, shift);
    else vp_impl_big_shift(numerator, -shift);
    if (vp_impl_big_compare(numerator, denominator) < 0) {
        vp_impl_big_shift(numerator, 1);
        shift--;
    }
    exponent += shift; /* now 1 <= numerator / denominator < 2; the value is numerator / denominator * 2^exponent */
    if (exponent > 1023) return UINT64_C(0x7FF) << 52;
    if (exponent < -1022) bits = 53 + 1022 + exponent; /* subnormal: fewer bits, none at half of the smallest */
    if (bits < 0) return 0;
    for (i = 0; i < bits; i++) {
        quotient <<= 1;
        if (vp_impl_big_compare(numerator, denominator) >= 0) {
            quotient |= 1;
            vp_impl_big_subtract(numerator, denominator);
        }
        vp_impl_big_shift(numerator, 1);
    }
    int order = vp_impl_big_compare(numerator, denominator);
    if (order > 0 || (order == 0 && (quotient & 1))) quotient++;
    /* the hidden bit, and a carry out of the fraction, add one to the exponent field */
    return exponent < -1022 ? quotient : ((uint64_t)(exponent + 1022) << 52) + quotient;
}

VP_API vp_result vp_number_parse(const char *text, size_t bytes, double *value) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* a tie between two doubles has at most 768 digits; for later digits only "not zero" matters */
    const int64_t kept = 800;
    vp_impl_big numerator, denominator;
    uint64_t bits = 0;
    uint32_t chunk = 0, scale = 1;
    const char *digit;
    size_t length;
    int64_t i, taken;
    double result;
    if (!text || vp_impl_json_number((const unsigned char *)text, bytes, &length) || length != bytes)
        return VP_ERR_FORMAT;
    vp_impl_decimal decimal = vp_impl_decimal_of(text, bytes);
    if (decimal.digits > 0 && decimal.digits + decimal.exponent > 310) return VP_ERR_RANGE;
    if (decimal.digits > 0 && decimal.digits + decimal.exponent > -330) {
        taken = decimal.digits < kept ? decimal.digits : kept;
        vp_impl_big_set(&numerator, 0);
        for (digit = decimal.first, i = 0; i < taken; digit++) {
            if (*digit == '.') continue;
            chunk = chunk * 10 + (uint32_t)(*digit - '0');
            scale *= 10;
            if (++i == taken || scale == 1000000000u) {
                vp_impl_big_multiply(&numerator, scale, chunk);
                chunk = 0;
                scale = 1;
            }
        }
        decimal.exponent += decimal.digits - taken;
        if (decimal.digits > taken) {
            vp_impl_big_multiply(&numerator, 10, 1);
            decimal.exponent--;
        }
        /* digits and power are exact doubles, so one operation is correctly rounded (unless double arithmetic uses
         * wider registers) */
        if (decimal.digits <= 15 && decimal.exponent >= -22 && decimal.exponent <= 22
            && sizeof(double_t) == sizeof(double)) {
            result = (double)(numerator.word[0] | (numerator.count > 1 ? (uint64_t)numerator.word[1] << 32 : 0));
            result = decimal.exponent < 0 ? result / power[-decimal.exponent] : result * power[decimal.exponent];
            *value = decimal.negative ? -result : result;
            return VP_OK;
        }
        vp_impl_big_set(&denominator, 1);
        vp_impl_big_multiply_power5(decimal.exponent < 0 ? &denominator : &numerator,
                                    decimal.exponent < 0 ? -decimal.exponent : decimal.exponent);
        bits = vp_impl_big_ratio(&numerator, &denominator, decimal.exponent);
        if (bits >> 52 == 0x7FF) return VP_ERR_RANGE;
    }
    bits |= (uint64_t)decimal.negative << 63;
    memcpy(value, &bits, sizeof bits);
    return VP_OK;
}

VP_API vp_result vp_json_to_double(const vp_json *json, uint32_t number, double *value) {
    const vp_json_node *node = vp_impl_json_node_of(json, number, VP_JSON_NUMBER);
    if (!node) return json && number < json->node_count ? VP_ERR_MISMATCH : VP_ERR_NOT_FOUND;
    return vp_number_parse(json->text + node->start, (size_t)node->bytes, value);
}

/* The shortest digits d1 d2 ... (at most 17) for which 0.d1d2... * 10^point reads back as the positive double with
 * these bits; of several, the nearest. This is Steele and White's dragon4 with exact integers. In units of 1 / scale,
 * rest is the value still to be printed, and low and high are half the gaps to the two neighbours. */
static int32_t vp_impl_number_digits(uint64_t bits, char digits[17], int32_t *point) {
    vp_impl_big rest, scale, low, high;
    int32_t exponent, count = 0, estimate, digit, narrow, even, is_low, is_high;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    exponent = (int32_t)(bits >> 52) - 1075;
    narrow = fraction == 0 && exponent > -1074; /* at a power of two the gap below is half the gap above */
    if (bits >> 52) fraction |= UINT64_C(1) << 52;
    else exponent = -1074;
    even = !(fraction & 1); /* reading rounds ties to even, so the interval of an even value includes its ends */
    vp_impl_big_set(&rest, fraction);
    /* log10: correct or one too small */
    estimate = (int32_t)ceil((exponent + (double)vp_impl_big_bits(&rest) - 1) * 0.30102999566398120 - 1e-10);
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
        int order = is_low ? vp_impl_big_compare_sum(&rest, &rest, &scale) : 1; /* both read back: take the nearer */
        /* never exceeds '9': the digit before would have been the last */
        if (order > 0 || (order == 0 && (digit & 1))) digits[count - 1]++;
    }
    *point = estimate;
    return count;
}

static char *vp_impl_number_zeros(char *out, int32_t count) {
    while (count-- > 0) *out++ = '0';
    return out;
}

VP_API size_t vp_number_format(double value, char *out) {
    char digits[17], *at = out;
    uint64_t bits;
    int32_t count = 1, point = 1, whole, power;
    memcpy(&bits, &value, sizeof bits);
    *out = 0;
    if ((bits >> 52 & 0x7FF) == 0x7FF) return 0;
    if (bits >> 63) *at++ = '-';
    digits[0] = '0';
    if (bits << 1) count = vp_impl_number_digits(bits & ~(UINT64_C(1) << 63), digits, &point);
    if (point > -4 && point <= 16) { /* Python's repr: plain digits for 1e-4 <= |value| < 1e16 */
        whole = count < point ? count : point > 0 ? point : 0;
        memcpy(at, digits, (size_t)whole);
        at = vp_impl_number_zeros(at + whole, whole ? point - whole : 1);
        *at++ = '.';
        at = vp_impl_number_zeros(at, point < 0 ? -point : 0);
        memcpy(at, digits + whole, (size_t)(count - whole));
        at = vp_impl_number_zeros(at + (count - whole), count == whole);
    } else {
        *at++ = digits[0];
        if (count > 1) *at++ = '.';
        memcpy(at, digits + 1, (size_t)(count - 1));
        at += count - 1;
        power = point - 1;
        *at++ = 'e';
        *at++ = power < 0 ? '-' : '+';
        if (power < 0) power = -power;
        if (power >= 100) *at++ = (char)('0' + power / 100);
        *at++ = (char)('0' + power / 10 % 10);
        *at++ = (char)('0' + power % 10);
    }
    *at = 0;
    return (size_t)(at - out);
}

/* ---- writer ---- */

VP_API void vp_json_writer_init(vp_json_writer *writer, char *buffer, size_t capacity, int32_t indent) {
    memset(writer, 0, sizeof *writer);
    writer->buffer = buffer;
    writer->capacity = buffer ? capacity : 0;
    writer->indent = indent;
    if (indent < 0 || indent > 16) writer->result = VP_ERR_RANGE;
}

VP_API void vp_json_writer_init_sink(vp_json_writer *writer, vp_json_sink sink, void *user, int32_t indent) {
    vp_json_writer_init(writer, NULL, 0, indent);
    writer->sink = sink;
    writer->user = user;
    if (!sink) writer->result = VP_ERR_STATE;
}

/* A full buffer does not stop the writer: it keeps counting. Every other error stops it. */
static int vp_impl_json_live(const vp_json_writer *writer) {
    return writer->result == VP_OK || (writer->result == VP_ERR_CAPACITY && !writer->sink);
}

VP_API void vp_json_fail(vp_json_writer *writer, vp_result result) {
    if (vp_impl_json_live(writer)) writer->result = result;
}

static void vp_impl_json_emit(vp_json_writer *writer, const char *text, size_t bytes) {
    if (!vp_impl_json_live(writer) || bytes == 0) return;
    if (bytes > SIZE_MAX - 1 - writer->length_bytes) {
        writer->result = VP_ERR_RANGE;
        return;
    }
    if (writer->sink) {
        writer->result = writer->sink(writer->user, text, bytes);
        if (writer->result != VP_OK) return;
    } else if (writer->result == VP_OK) {
        /* one byte stays free for the NUL */
        size_t room = writer->capacity > writer->length_bytes ? writer->capacity - writer->length_bytes - 1 : 0;
        if (bytes > room) writer->result = VP_ERR_CAPACITY;
        if (room > 0) memcpy(writer->buffer + writer->length_bytes, text, bytes < room ? bytes : room);
    }
    writer->length_bytes += bytes;
}

static void vp_impl_json_new_line(vp_json_writer *writer) {
    static const char spaces[] = "                                ";
    int32_t left = writer->depth * writer->indent;
    vp_impl_json_emit(writer, "\n", 1);
    for (; left > 32; left -= 32) vp_impl_json_emit(writer, spaces, 32);
    vp_impl_json_emit(writer, spaces, (size_t)left);
}

/* Comma and line break before a key or an element. Scalars of an array share a line until a container breaks it. */
enum { VP_IMPL_JSON_EMPTY, VP_IMPL_JSON_ONE_LINE, VP_IMPL_JSON_BROKEN };
static void vp_impl_json_separate(vp_json_writer *writer, int wants_line) {
    unsigned char *filled = &writer->filled[writer->depth - 1];
    int line = writer->indent > 0 && (wants_line || *filled == VP_IMPL_JSON_BROKEN);
    if (*filled != VP_IMPL_JSON_EMPTY) vp_impl_json_emit(writer, ", ", line ? 1 : 2);
    if (line) vp_impl_json_new_line(writer);
    *filled = line ? VP_IMPL_JSON_BROKEN : VP_IMPL_JSON_ONE_LINE;
}

/* Checks that a value is allowed here, then writes the separator before it. */
static int vp_impl_json_before_value(vp_json_writer *writer, int wants_line) {
    if (!vp_impl_json_live(writer)) return 0;
    if (writer->depth == 0 ? writer->length_bytes > 0 : writer->open[writer->depth - 1] == '{' && !writer->after_key) {
        writer->result = VP_ERR_STATE;
        return 0;
    }
    if (writer->depth > 0 && writer->open[writer->depth - 1] == '[') vp_impl_json_separate(writer, wants_line);
    writer->after_key = 0;
    return vp_impl_json_live(writer);
}

static void vp_impl_json_begin(vp_json_writer *writer, char bracket) {
    if (writer->depth >= VP_IMPL_JSON_DEPTH) {
        vp_json_fail(writer, VP_ERR_RANGE);
        return;
    }
    if (!vp_impl_json_before_value(writer, 1)) return;
    vp_impl_json_emit(writer, &bracket, 1);
    writer->open[writer->depth] = (unsigned char)bracket;
    writer->filled[writer->depth] = VP_IMPL_JSON_EMPTY;
    writer->depth++;
}

static void vp_impl_json_end(vp_json_writer *writer, char begin, char end) {
    if (!vp_impl_json_live(writer)) return;
    if (writer->depth == 0 || writer->open[writer->depth - 1] != (unsigned char)begin || writer->after_key) {
        writer->result = VP_ERR_STATE;
        return;
    }
    writer->depth--;
    if (writer->filled[writer->depth] == VP_IMPL_JSON_BROKEN) vp_impl_json_new_line(writer);
    vp_impl_json_emit(writer, &end, 1);
}

VP_API void vp_json_begin_object(vp_json_writer *writer) { vp_impl_json_begin(writer, '{'); }
VP_API void vp_json_end_object(vp_json_writer *writer) { vp_impl_json_end(writer, '{', '}'); }
VP_API void vp_json_begin_array(vp_json_writer *writer) { vp_impl_json_begin(writer, '['); }
VP_API void vp_json_end_array(vp_json_writer *writer) { vp_impl_json_end(writer, '[', ']'); }

static void vp_impl_json_quote(vp_json_writer *writer, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char escape[6] = { '\\', 'u', '0', '0', '0', '0' };
    size_t run = 0, i;
    vp_impl_json_emit(writer, "\"", 1);
    for (i = 0; i < bytes; i++) {
        unsigned char character = (unsigned char)text[i];
        if (character >= 0x20 && character != '"' && character != '\\') continue;
        vp_impl_json_emit(writer, text + run, i - run);
        run = i + 1;
        const char *found = character ? strchr(from, character) : NULL;
        escape[4] = hex[character >> 4];
        escape[5] = hex[character & 15];
        escape[1] = found ? to[found - from] : 'u';
        vp_impl_json_emit(writer, escape, found ? 2 : 6);
    }
    vp_impl_json_emit(writer, text + run, bytes - run);
    vp_impl_json_emit(writer, "\"", 1);
}

VP_API void vp_json_key(vp_json_writer *writer, const char *key) {
    size_t bytes = key ? strlen(key) : 0;
    if (!vp_impl_json_live(writer)) return;
    if (writer->depth == 0 || writer->open[writer->depth - 1] != '{' || writer->after_key) {
        writer->result = VP_ERR_STATE;
        return;
    }
    if (!key || vp_utf8_valid_bytes(key, bytes) != bytes) {
        writer->result = VP_ERR_FORMAT;
        return;
    }
    vp_impl_json_separate(writer, 1);
    vp_impl_json_quote(writer, key, bytes);
    vp_impl_json_emit(writer, ": ", 2);
    writer->after_key = 1;
}

VP_API void vp_json_string_bytes(vp_json_writer *writer, const char *text, size_t bytes) {
    if ((!text && bytes > 0) || vp_utf8_valid_bytes(text, bytes) != bytes) {
        vp_json_fail(writer, VP_ERR_FORMAT);
        return;
    }
    if (vp_impl_json_before_value(writer, 0)) vp_impl_json_quote(writer, text, bytes);
}

VP_API void vp_json_string(vp_json_writer *writer, const char *text) {
    if (text) vp_json_string_bytes(writer, text, strlen(text));
    else vp_json_fail(writer, VP_ERR_FORMAT);
}

static void vp_impl_json_scalar(vp_json_writer *writer, const char *text, size_t bytes) {
    if (vp_impl_json_before_value(writer, 0)) vp_impl_json_emit(writer, text, bytes);
}

VP_API void vp_json_int(vp_json_writer *writer, int64_t value) {
    char text[20], *start = text + sizeof text;
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    do *--start = (char)('0' + rest % 10); while (rest /= 10);
    if (value < 0) *--start = '-';
    vp_impl_json_scalar(writer, start, (size_t)(text + sizeof text - start));
}

VP_API void vp_json_double(vp_json_writer *writer, double value) {
    char text[26];
    size_t bytes = vp_number_format(value, text);
    if (bytes) vp_impl_json_scalar(writer, text, bytes);
    else vp_json_fail(writer, VP_ERR_RANGE);
}

VP_API void vp_json_bool(vp_json_writer *writer, int value) {
    vp_impl_json_scalar(writer, value ? "true" : "false", value ? 4 : 5);
}
VP_API void vp_json_null(vp_json_writer *writer) { vp_impl_json_scalar(writer, "null", 4); }

VP_API void vp_json_raw(vp_json_writer *writer, const char *text, size_t bytes) {
    vp_impl_json_scan scan;
    if (!vp_impl_json_live(writer)) return;
    memset(&scan, 0, sizeof scan);
    scan.text = (const unsigned char *)text;
    scan.bytes = text ? bytes : 0;
    scan.outside = writer->depth; /* the whole text must stay readable too */
    vp_impl_json_scan_text(&scan);
    if (scan.code != VP_OK) writer->result = scan.code;
    else if (vp_impl_json_before_value(writer, 1)) vp_impl_json_emit(writer, text, bytes);
}

VP_API vp_result vp_json_finish(vp_json_writer *writer) {
    if (writer->depth > 0 || writer->length_bytes == 0) vp_json_fail(writer, VP_ERR_STATE);
    if (writer->capacity > 0)
        writer->buffer[writer->length_bytes < writer->capacity ? writer->length_bytes : writer->capacity - 1] = 0;
    return writer->result;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* VLMPROF_IMPLEMENTATION */

#if defined(VLMPROF_OFF) && !defined(vp_stage_begin)
#define vp_stage_begin(clock, name) ((void)(clock), (void)(name))
#define vp_stage_end(clock) ((void)(clock), vp_impl_off())
#define vp_stage_add(clock, name, begin_ns, end_ns) \
    ((void)(clock), (void)(name), (void)(begin_ns), (void)(end_ns), vp_impl_off())
#define vp_stage_reset(clock) ((void)(clock), vp_impl_off())
#endif
