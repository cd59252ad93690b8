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
 *      In other files, write only the includes.
 *   3. Link with -lm.
 *   4. Call, for example, vp_count_tokens("qwen3-vl", 640, 480): it returns 300, the tokens of a 640x480 image.
 *   5. Other calls, by task:
 *     tokens of an image               Molmo: vp_layout_compute; other models: vp_count_tokens (vlmprof_families.h)
 *     crops for a number of tokens     vp_select_crops, vp_select_vision_tokens, vp_select_tiling
 *     position of each vision token    vp_tokens_index_map, vp_tokens_image_ids
 *     time the stages of a request     vp_stage_begin, vp_stage_end, vp_stage_add; C++: vlmprof_ranges.hpp
 *     percentiles                      vp_statistics_compute; their intervals: vlmprof_statistics.h
 *     draw samples as NumPy does       vp_sampler_choice, vp_sampler_dataset
 *     write results for vlmprof report vp_results_begin, vp_results_add, vp_results_end (vlmprof_results.h)
 *     write JSON                       vp_json_writer_init, vp_json_begin_object, vp_json_key, ..., vp_json_finish
 *     read JSON                        vp_json_parse, vp_json_get, vp_json_at, ... (vlmprof_json.h)
 *
 * What it is
 *   When a vision-language model processes an image, where do the milliseconds go, and what accuracy do they buy? This
 *   header is the core of such a measurement: tilings of images, crop selection, counts of vision tokens, samplers, a
 *   clock and statistics, a JSON writer. It is one file to copy. It needs no GPU, no Python and no weights.
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
 *   It is plain C11 and also compiles as C++17. It needs <stdint.h>, <stddef.h>, <string.h> (memcpy, memset, strlen,
 *   strcmp, strchr), <math.h> (sqrt, ceil, ceilf, fabs; link with -lm) and a clock: clock_gettime, Windows' clock, or
 *   on bare metal VLMPROF_CLOCK_NS. If one of these is missing, an #error lists them all.
 *
 * Companion headers
 *   For another subject, copy its header from parts/ into the same folder. VLMPROF_IMPLEMENTATION compiles the
 *   functions of every header that a file includes. VLMPROF_SCORE_IMPLEMENTATION compiles only those of
 *   vlmprof_score.h, and so on for the others. VLMPROF_STATIC makes them static too. Inside a companion, search for
 *   ---- to jump to the next part.
 *     vlmprof_families.h    token counts of other model families by image size; with vlmprof_json.h in the same folder
 *                           also from the files of a checkpoint
 *     vlmprof_image.h       image file -> upright RGB -> crops -> patches and masks; decodes with stb_image (Debian,
 *                           Ubuntu: libstb-dev). Its first lines explain VLMPROF_STB_IMAGE, VLMPROF_STB_EXTERNAL and
 *                           VLMPROF_NO_STB
 *     vlmprof_json.h        a strict reader of JSON
 *     vlmprof_ranges.h      ranges of a program's own code, table of operations, schedule; also copy vlmprof_json.h
 *     vlmprof_results.h     result files of your own engine: a head with your knobs, a row for each sample
 *     vlmprof_score.h       scoring rules; also copy vlmprof_unicode.h and vlmprof_json.h
 *     vlmprof_statistics.h  intervals of percentiles and means, paired differences
 *     vlmprof_trace.h       slices, marks and counters as a Chrome trace
 *     vlmprof_torch_trace.h  a trace as torch.profiler writes it; also copy vlmprof_trace.h, vlmprof_ranges.h,
 *                           vlmprof_stages.h, vlmprof_file.h and vlmprof_json.h
 *   The other subjects are only in the library build/libvlmprof.a; the headers in parts/lib/ declare them.
 *     vlmprof_config.h      config.json, built-in shapes, a model's tensors
 *     vlmprof_checkpoint.h  safetensors
 *     vlmprof_tokenizer.h   BPE from tokenizer.json
 *     vlmprof_processor.h   pixel values and prompts as Hugging Face's processors make them
 *     vlmprof_prompt.h      records of the nine data sets -> prompt text, as the reference implementation builds it
 *     vlmprof_caption.h     CIDEr-D of captions, with a built-in tokenizer
 *     vlmprof_analysis.h    tests and verdicts, Pareto fronts, coupling of knobs
 *     vlmprof_latency.h     regression, the latency model, guardrails
 *     vlmprof_noise.h       other activity of the machine during a measurement
 *     vlmprof_policy.h      policies that choose for each sample within a budget
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
 *         printf("qwen3-vl: %d image tokens\n", (int)vp_count_tokens("qwen3-vl", 640, 480));
 *         return 0;
 *     }
 *
 * What it does not do
 *   - The GPU code has been tested only on an emulated GPU. Nothing is known yet about its measurements on a real one.
 *   - The engine runs MolmoE and some other models (cli/guides/models.txt). It does not train. It decodes greedily, one
 *     request at a time.
 *   - The headers use no network, start no thread, install no signal handler, print nothing and never end the program.
 *   - It has no PNG or JPEG decoder of its own (it uses stb_image), and it reads no video.
 *
 * Table of contents: search for the tag; declarations and implementation follow the same order
 *   >>result          result codes, errors, arena
 *   >>tiler           geometry of crops and patches, tilings, layout of an image
 *   >>select          target tokens <-> crops <-> tiling <-> resolution
 *   >>tokens          position of each vision token in the sequence
 *   >>sampler         random draws as NumPy: MT19937, choice without replacement
 *   >>timer           monotonic clock, stages of a request, sums and percentiles as NumPy computes them
 *   >>json            writer, shortest text of a number
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
 *   the same float width and the same order, so that results are equal and not just close. They also do so under
 *   -ffast-math, contraction and x87: pragmas around each implementation switch these off (gcc, clang, MSVC, ICC).
 *   With a compiler whose pragmas are not known, layouts, counts and statistics check its arithmetic and return
 *   VP_ERR_UNSUPPORTED. On 32-bit x86, implementations use SSE2. Checks are written so that NaN fails them.
 *
 * Sources
 *   Each function names its source. The reference for tiling, preprocessing, the model and the experiments' rules is
 *   the repository ChulanZhang/molmo_hf at commit 09bce1fc. The model is described in "Molmo and PixMo" (arXiv
 *   2409.17146) and "OLMoE" (arXiv 2409.02060). Random numbers, percentiles and sums match NumPy 1.26.
 *
 * Last revisions
 *   0.2.0 (2026-11) the single header was split into this one and its companions in parts/; VLMPROF_CORE,
 *                   VLMPROF_FAMILIES and VLMPROF_RANGES no longer have an effect. Old names: vp_fail is vp_error_set,
 *                   vp_range vp_range_record, vp_slot vp_family_slot, vp_beta vp_statistics_beta, namespace vp vlmprof.
 *                   vp_student_upper, vp_order_rank and vp_all_finite also begin with vp_statistics_. The JSON reader
 *                   and vp_json_raw are in vlmprof_json.h, intervals in vlmprof_statistics.h. vp_message is internal;
 *                   vp_stop_decide, vp_statistics_outliers, vp_sampler_grid, _blocks, _stratified and _shard are
 *                   part of the program
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
/* VP_EXACT_BEGIN VP_EXACT_WIDTH and VP_EXACT_END enclose implementations. The code between them computes each operation
 * in the width of its types, in the order of the text, whatever the flags of the including file: -ffast-math or parts
 * of it, contraction, /fp:fast, x87. (gcc heeds only one such pragma of a macro, so there are two macros.) */
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
/* A product that is about to be added. With -ffp-contract=fast clang fuses across statements and ignores its own
 * pragma, so there the product goes through memory. */
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
    X(VP_ERR_CAPACITY, -2, "a buffer supplied by the caller is too small") \
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
/* Fills an error (NULL is allowed) and returns its code, so that `return vp_error_set(...)` reads well. Long texts are
 * cut; bytes of `text` that are not UTF-8 become '?'. */
VP_API vp_result vp_error_set(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text);

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
VP_INLINE int vp_size_add(size_t a, size_t b, size_t *out) {
    if (b > SIZE_MAX - a) return 0;
    *out = a + b;
    return 1;
}
VP_INLINE int vp_size_multiply(size_t a, size_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b) return 0;
    *out = a * b;
    return 1;
}
/* Copies a text into `capacity` >= 1 bytes and always ends it with a NUL; NULL counts as "". Names may come from
 * hostile files: control bytes become '?' so that an error stays on one line, and a cut never splits a UTF-8
 * character. */
VP_API void vp_text_copy(char *out, size_t capacity, const char *text);
/* A text built in pieces, without stdio, for messages that contain numbers. Starts as {{0}, 0}; long texts are cut. */
typedef struct vp_impl_message {
    char text[320];
    size_t bytes;
} vp_impl_message;
VP_INLINE void vp_impl_message_text(vp_impl_message *message, const char *text) {
    for (; text && *text && message->bytes + 1 < sizeof message->text; text++) message->text[message->bytes++] = *text;
    message->text[message->bytes] = 0;
}
VP_INLINE void vp_impl_message_int(vp_impl_message *message, int64_t value) {
    char digits[24];
    size_t i = sizeof digits - 1;
    uint64_t rest = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
    digits[i] = 0;
    do digits[--i] = (char)('0' + (char)(rest % 10)); while (rest /= 10);
    if (value < 0) digits[--i] = '-';
    vp_impl_message_text(message, digits + i);
}

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

typedef struct vp_estimate { double value, low, high; } vp_estimate; /* with its interval; an unknown end is NaN */

/* ---- the stages of your own requests. A mark is one run of a stage. Marks nest: mark a request, and inside it the
 * vision encoder, prefill and decode steps. Work on a GPU must be complete before its mark ends; or add its marks
 * later, with the times of the device. Each thread, and each stream of a device, has its own clock. With VLMPROF_OFF,
 * vp_stage_begin, _end, _add and _reset compile to nothing; arguments with side effects are still evaluated. A begin
 * and an end take 37 ns in cache, 57 ns beyond it, 71 ns at first touch (2-core Xeon VM, gcc 12.2 -O2, 2026-11-28). */
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
 * Convert them to vp_clock_ns first: samples/06_threads_and_device.c shows how.
 * returns: VP_OK; VP_ERR_RANGE: not 0 <= begin_ns <= end_ns <= now, it begins before the stage around it, or it
 *          overlaps another stage in there (nothing changes); VP_ERR_CAPACITY: it did not fit and is counted as lost
 * numeric: constant time if stages are added in the order of their times; otherwise linear in the number of marks */
VP_API vp_result vp_stage_add(vp_stage_clock *clock, const char *name, int64_t begin_ns, int64_t end_ns);
/* Forgets all marks, so that the memory can be used for the next requests; keeps the thread.
 * returns: VP_OK; VP_ERR_STATE: a stage is open (nothing changes) */
VP_API vp_result vp_stage_reset(vp_stage_clock *clock);
/* Statistics of all completed marks of a name, in nanoseconds.
 * out:     scratch     double [clock->count]
 * returns: VP_OK; VP_ERR_NOT_FOUND: no mark of that name is complete; VP_ERR_CAPACITY: clock->marks overflowed and
 *          clock->lost marks are missing, of this name or another; scratch is large enough */
VP_API vp_result vp_stage_statistics(const vp_stage_clock *clock, const char *name, double *scratch,
                                     vp_statistics *statistics);
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
/* The same sum of (value - centre)^2. */
VP_API double vp_statistics_squares(const double *values, size_t count, double centre);
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

/* Returns 1 if no value is NaN or infinite. */
VP_API int vp_statistics_all_finite(const double *values, size_t count);
/* Sorts values ascending, in place; NaN is not allowed. */
VP_API void vp_sort_double(double *values, size_t count);

/* ================================================================================================== json >>json
 * Writer and the text of a number; the reader is in vlmprof_json.h. No allocation, no stdio, no locale.
 * memory:  only the caller's buffers, and less than 3 KiB of stack
 * threads: reentrant; one writer per thread */

/* Receives the text in pieces. A piece may be a single byte and is not NUL-terminated. Any result except VP_OK stops
 * the writer with that code. */
typedef vp_result (*vp_json_sink)(void *user, const char *text, size_t bytes);

/* Writes one JSON value into a caller's buffer or a sink. The writer places commas, quotes, escapes and line breaks.
 * Errors are sticky: calls need no check, and vp_json_finish reports the first error. Nothing is written after it, so
 * the text ends where the error is: after `{"x": ` if the value of x is NaN.
 * returns: (in `result`, and from vp_json_finish) VP_OK; VP_ERR_STATE: a value without a key in an object, a key
 *          outside an object, an end call without its begin call, no or a second top-level value, an open container;
 *          VP_ERR_FORMAT: text that is not UTF-8 or NULL; VP_ERR_RANGE: NaN or infinity,
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
/* Copies one JSON value unchecked; vp_json_raw (vlmprof_json.h) checks it first. Here and in texts DEL and characters
 * that would control a terminal (vp_utf8_control) become \uXXXX, which reads back as the same. */
VP_API void vp_json_raw_unchecked(vp_json_writer *writer, const char *text, size_t bytes);
/* Checks that everything is closed, and writes a NUL after the text in a buffer (into the last byte of a full one).
 * Returns writer->result. */
VP_API vp_result vp_json_finish(vp_json_writer *writer);
/* Stops the writer with the caller's error. vp_json_finish returns the first error. */
VP_API void vp_json_fail(vp_json_writer *writer, vp_result result);

/* The shortest text that reads back to the same double, in the layout of Python's repr: 0.1, 3.0, -0.0, 1e-07,
 * 1.5e+300; valid JSON.
 * out:     out  char [26]  at most 24 bytes and a NUL
 * returns: bytes without the NUL; 0 and an empty text for NaN and infinity, which JSON lacks
 * numeric: exact; among the shortest texts the one nearest to the value
 * source:  Steele, White: How to print floating-point numbers accurately (1990); Burger, Dybvig (1996) */
VP_API size_t vp_number_format(double value, char *out);
/* Bytes of valid UTF-8 at the start of a text; == bytes when all is valid. */
VP_API size_t vp_utf8_valid_bytes(const char *text, size_t bytes);
/* Bytes of an unprintable character at the start of the text; 0 if the text is empty or starts with a printable one.
 * Unprintable are control characters (C0, DEL, C1), those that change the writing direction (U+061C, U+200E, U+200F,
 * U+202A..U+202E, U+2066..U+2069), line and paragraph separators (U+2028, U+2029), and bytes that are not UTF-8.
 * source: Unicode Standard Annex 9, section 2 */
VP_API size_t vp_utf8_control(const char *text, size_t bytes);

VP_EXTERN_C_END
#endif /* VLMPROF_H */

/* ================================================================================================================
 * IMPLEMENTATION >>implementation
 * ================================================================================================================ */
#if defined(VLMPROF_IMPLEMENTATION) && !defined(VLMPROF_IMPLEMENTATION_DONE)
/* What a platform must have: <math.h>, <string.h> and a clock. */
#ifdef __has_include
#if !__has_include(<math.h>) || !__has_include(<string.h>)
#define VP_IMPL_LACKING
#endif
#if !defined(VLMPROF_CLOCK_NS) && __has_include(<time.h>)
#include <time.h>
#endif
#elif !defined(VLMPROF_CLOCK_NS)
#include <time.h>
#endif
#if !defined(VLMPROF_CLOCK_NS) && !defined(_WIN32) && !defined(CLOCK_MONOTONIC) && !defined(__linux__)
#define VP_IMPL_LACKING
#endif
#ifdef VP_IMPL_LACKING
#error "vlmprof.h needs <math.h>, <string.h> and a clock: clock_gettime (in strict C11 also _POSIX_C_SOURCE 200112L, \
defined before the first include), or VLMPROF_CLOCK_NS, defined as an int64_t expression in nanoseconds"
#endif
#endif

/* ---- what this header shares with vlmprof_json.h, which may be compiled in another file */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_JSON_IMPLEMENTATION)) && !defined(VP_IMPL_JSON_SHARED)
#define VP_IMPL_JSON_SHARED
#include <string.h>
enum { VP_IMPL_JSON_DEPTH = 64 };

/* Bytes of the one well-formed UTF-8 character at the start of `text` (1..4), or 0. Table 3-7 of the Unicode
 * standard: no overlong forms, no surrogates, nothing above U+10FFFF. Only the range of the second byte depends on
 * the first. */
static size_t vp_impl_json_utf8_step(const unsigned char *text, size_t left) {
    unsigned first, low = 0x80, high = 0xBF;
    if (left == 0) return 0;
    first = text[0];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (left < length) return 0;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    if (text[1] < low || text[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    return length;
}

/* Number of bytes at the start of `text`, in whole words, that need no escaping or UTF-8 check in a JSON string: ASCII
 * from 0x20, except '"' and '\'. Eight bytes are tested at a time: (word - 0x20..) & ~word has a high bit set if a byte
 * is below 0x20; an XOR first turns "equals c" into "is below 1". */
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
#endif

#if defined(VLMPROF_IMPLEMENTATION) && !defined(VLMPROF_IMPLEMENTATION_DONE)
#define VLMPROF_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>
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

VP_API vp_result vp_error_set(vp_error *error, vp_result code, int64_t offset, const char *where, const char *text) {
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
                return vp_error_set(error, VP_ERR_RANGE, -1, "max_crops", "must be 1 to 65536");
            }
            *tiling = vp_impl_adaptive(grid, width_px, height_px, options->max_crops);
            return VP_OK;
        case VP_TILE_TIER:
            if (vp_tiler_tier(options->tier, width_px, height_px, tiling) == VP_OK) return VP_OK;
            return vp_error_set(error, VP_ERR_RANGE, -1, "tier",
                                "a tier needs 1 <= min_crops <= max_crops <= 65536 and at most 4 preferred counts");
        case VP_TILE_TOKENS:
            if (vp_select_crops(geometry, options->vision_tokens, &crops) != VP_OK) {
                return vp_error_set(error, VP_ERR_RANGE, -1, "vision_tokens",
                                    "must be positive and allow at most 65536 crops");
            }
            return vp_impl_exact(grid, crops, aspect, tiling);
        case VP_TILE_CROPS:
            if (vp_impl_exact(grid, crops, aspect, tiling) == VP_OK) return VP_OK;
            return vp_error_set(error, VP_ERR_RANGE, -1, "crops", "must be 1 to 65536");
        default:
            return vp_error_set(error, VP_ERR_RANGE, -1, "rule", "not one of vp_tile_rule");
    }
}

static vp_result vp_impl_fit_fail(vp_error *error, vp_fit fit, int32_t width_px, int32_t height_px,
                                  const int32_t canvas_px[2]) {
    const int pads = fit == VP_FIT_PAD;
    vp_impl_message m = {{0}, 0};
    vp_impl_message_text(&m, "an image of ");
    vp_impl_message_int(&m, width_px);
    vp_impl_message_text(&m, "x");
    vp_impl_message_int(&m, height_px);
    vp_impl_message_text(&m, pads ? " px fitted into " : " px that fills ");
    vp_impl_message_int(&m, canvas_px[0]);
    vp_impl_message_text(&m, "x");
    vp_impl_message_int(&m, canvas_px[1]);
    vp_impl_message_text(&m, pads ? " px is less than a pixel on its short side; crop it, or use a fill mode"
                                  : " px is more than 2147483647 px on its long side; crop it first");
    return vp_error_set(error, VP_ERR_RANGE, -1, "image size", m.text);
}

VP_API vp_result vp_layout_compute(const vp_geometry *geometry, const vp_tile_options *options, int32_t width_px,
                                   int32_t height_px, vp_layout *layout, vp_error *error) {
    vp_impl_grid grid;
    vp_layout out;
    vp_tiling tiling;
    int32_t image[2], canvas[2], crop[2], resized[2], offset[2];
    if (!vp_impl_arithmetic()) return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "arithmetic", VP_IMPL_INEXACT);
    if (vp_impl_grid_of(geometry, &grid) != VP_OK)
        return vp_error_set(error, VP_ERR_RANGE, -1, "geometry", "not a valid geometry; see vp_geometry_check");
    if (width_px < 1 || height_px < 1)
        return vp_error_set(error, VP_ERR_RANGE, -1, "image size", "both sides must be at least 1 px");
    if (options->fit != VP_FIT_PAD && options->fit != VP_FIT_FILL)
        return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "not one of vp_fit");
    vp_result result = vp_impl_choose(geometry, &grid, options, width_px, height_px, &tiling, error);
    if (result != VP_OK) return result;
    int64_t canvas_width = (int64_t)grid.window_px * tiling.cols + grid.margin_px;
    int64_t canvas_height = (int64_t)grid.window_px * tiling.rows + grid.margin_px;
    if (canvas_width > VP_CANVAS_PX_LIMIT || canvas_height > VP_CANVAS_PX_LIMIT
        || !vp_impl_count_tokens(&grid, tiling, &out)) {
        return vp_error_set(error, VP_ERR_RANGE, -1, "tiling",
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
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || crops < 1 || crops > VP_CROPS_LIMIT) return VP_ERR_RANGE;
    int64_t tokens = ((int64_t)crops + 1) * grid.tokens * grid.tokens;
    if (tokens > INT32_MAX) return VP_ERR_RANGE;
    *vision_tokens = (int32_t)tokens;
    return VP_OK;
}

VP_API vp_result vp_select_canvas(const vp_geometry *geometry, vp_tiling tiling, int32_t *width_px,
                                  int32_t *height_px) {
    vp_impl_grid grid;
    if (vp_impl_grid_of(geometry, &grid) != VP_OK || tiling.rows < 1 || tiling.cols < 1) return VP_ERR_RANGE;
    int64_t width = (int64_t)grid.window_px * tiling.cols + grid.margin_px;
    int64_t height = (int64_t)grid.window_px * tiling.rows + grid.margin_px;
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
    if (result != VP_OK) return result;
    if (first_position < 0 || first_position > INT32_MAX - layout->image_tokens) return VP_ERR_RANGE;
    if (capacity < (size_t)layout->views * (size_t)(grid.tokens * grid.tokens)) return VP_ERR_CAPACITY;
    for (int32_t y = 0; y < grid.tokens; y++) {
        /* 1: the start token */
        for (int32_t x = 0; x < grid.tokens; x++) *image_input_idx++ = first_position + 1 + (grid.tokens + 1) * y + x;
    }
    /* 2: the global view's end, the grid's start */
    int32_t grid_start = first_position + 1 + (grid.tokens + 1) * grid.tokens + 2;
    for (int32_t row = 0; row < layout->tiling.rows; row++) {
        for (int32_t col = 0; col < layout->tiling.cols; col++) {
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
    if (result != VP_OK) return result;
    if (capacity < (size_t)layout->image_tokens) return VP_ERR_CAPACITY;
    int32_t overlap = grid.left_tokens + grid.right_tokens;
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
/* Strict -std=c11 hides POSIX from <time.h>. struct timespec is C11; the call and the constant belong to the system.
 * If the constant is hidden, so is the declaration, and the one here cannot clash with it. */
#ifdef CLOCK_MONOTONIC
#define VP_IMPL_CLOCK_MONOTONIC CLOCK_MONOTONIC
#else
#define VP_IMPL_CLOCK_MONOTONIC 1
extern int clock_gettime(int clock, struct timespec *time);
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

VP_API double vp_statistics_squares(const double *values, size_t count, double centre) {
    return vp_impl_sum(values, count, 1, centre);
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

VP_API int vp_statistics_all_finite(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] - values[i] == 0.0)) return 0;
    }
    return 1;
}

VP_API vp_result vp_statistics_compute(const double *values, size_t count, double *scratch, vp_statistics *statistics) {
    vp_statistics out;
    if (!vp_impl_arithmetic()) return VP_ERR_UNSUPPORTED;
    if (count == 0 || !vp_statistics_all_finite(values, count)) return VP_ERR_RANGE;
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

/* ================================================================================================== json >>json */
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

/* Writes a text of a JSON value with \uXXXX for each character that would control a terminal, from DEL on. */
static void vp_impl_json_emit_visible(vp_json_writer *writer, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef";
    size_t run = 0, i, k;
    for (i = 0; i < bytes; i++) {
        const unsigned char *byte = (const unsigned char *)text + i;
        const size_t hidden = *byte < 0x7f ? 0 : vp_utf8_control(text + i, bytes - i);
        uint32_t code = hidden == 1 ? *byte : hidden == 2 ? *byte & 31u : *byte & 15u;
        char escape[6] = { '\\', 'u' };
        if (hidden == 0 || (hidden == 1 && code != 0x7f)) continue; /* not UTF-8: as it is */
        vp_impl_json_emit(writer, text + run, i - run);
        for (k = 1; k < hidden; k++) code = code << 6 | (byte[k] & 63u);
        for (k = 0; k < 4; k++) escape[2 + k] = hex[code >> (12 - 4 * k) & 15];
        vp_impl_json_emit(writer, escape, 6);
        i += hidden - 1;
        run = i + 1;
    }
    vp_impl_json_emit(writer, text + run, bytes - run);
}
static void vp_impl_json_quote(vp_json_writer *writer, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char escape[6] = { '\\', 'u', '0', '0', '0', '0' };
    size_t run = 0, i;
    vp_impl_json_emit(writer, "\"", 1);
    for (i = 0; i < bytes; i++) {
        unsigned char character = (unsigned char)text[i];
        if (character >= 0x20 && character != '"' && character != '\\') continue;
        vp_impl_json_emit_visible(writer, text + run, i - run);
        run = i + 1;
        const char *found = character ? strchr(from, character) : NULL;
        escape[4] = hex[character >> 4];
        escape[5] = hex[character & 15];
        escape[1] = found ? to[found - from] : 'u';
        vp_impl_json_emit(writer, escape, found ? 2 : 6);
    }
    vp_impl_json_emit_visible(writer, text + run, bytes - run);
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

VP_API void vp_json_raw_unchecked(vp_json_writer *writer, const char *text, size_t bytes) {
    if (vp_impl_json_before_value(writer, 1)) vp_impl_json_emit_visible(writer, text, bytes);
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
