/* vlmprof_engine.h - v0.2.0 - the engine's interface: open, run, ceilings - MIT licence
 *
 * The model engine runs a request from pixels to token ids, stage by stage, for any model in VP_ARCHITECTURES. Its code
 * is in parts/engine/ and vlmprof_kernels.cu; link libvlmprof.a. An engine owns packed weights, KV cache and all
 * buffers, sized once for the longest request, so vp_engine_run allocates nothing. One engine per thread.
 *
 * Includes vlmprof.h, vlmprof_stages.h, vlmprof_ranges.h and vlmprof_checkpoint.h if needed. The
 * manual is in vlmprof.h. */
#ifndef VLMPROF_ENGINE_H
#define VLMPROF_ENGINE_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
#include "vlmprof_stages.h"
#include "vlmprof_ranges.h"
#include "vlmprof_checkpoint.h"

VP_EXTERN_C_BEGIN

/* FP32: fp32 arithmetic everywhere. INT8, INT4: the linears of the language model's blocks are integers, with one scale
 * for every 32 values of a row. Everything else is bf16, but see vp_activations. */
typedef enum vp_weights { VP_WEIGHTS_BF16, VP_WEIGHTS_FP32, VP_WEIGHTS_INT8, VP_WEIGHTS_INT4 } vp_weights;
/* Inputs of products of many rows (prompts, images) with INT8 or INT4 weights. BF16: unchanged; weights are widened.
 * INT16: 16 bits, with a scale for every 32 values, on AVX2. INT8: bytes, with a scale for every 32 values on ARM, for
 * every 128 or 512 with AVX-512 VNNI or AMX. AUTO: the fastest that the processor has. A GPU has only BF16.
 * Single rows (decode steps) do not depend on it: on a CPU they always become 16-bit integers */
typedef enum vp_activations {
    VP_ACTIVATIONS_AUTO, VP_ACTIVATIONS_BF16, VP_ACTIVATIONS_INT16, VP_ACTIVATIONS_INT8, VP_ACTIVATIONS_COUNT
} vp_activations;
VP_API const char *vp_activations_name(vp_activations kind); /* "auto", ..: the names of --activations */
typedef struct vp_engine vp_engine;

/* any result except VP_OK stops with VP_ERR_INTERRUPTED */
typedef vp_result (*vp_progress)(void *user, const char *what, int64_t done, int64_t total);
/* Switches for the GPU, one bit each. EVENTS: launches are timed by events, even if CUPTI is available. DEPENDENT: in
 * decode steps a kernel requests its weights while the previous one still runs (programmatic dependent launch; compute
 * capability 9.0 or higher). Results are bit-identical; its gain was never measured. With events around launches there
 * is no gain. WGMMA: on Hopper, the experts of many tokens use wgmma instead of mma.sync, if both agree on a few rows
 * when the engine opens. TUNED: the first product of each shape, in warm-up requests, times 8 cuBLAS algorithms and
 * keeps the fastest. The choice, and so the last bits of results, may differ between processes. LIBRARY: every product
 * is one call of cuBLAS, kernel by kernel: also those of attention, of each expert and of decode steps; the last block
 * of a prefill computes all rows. Integer weights are widened first. A row: name, bit, word of --gpu, 1: results are
 * bit-identical to those without it */
#define VP_GPU_SWITCHES(X) \
    X(EVENTS, 1, "events", 1) X(DEPENDENT, 2, "dependent", 1) X(WGMMA, 4, "wgmma", 0) X(LIBRARY, 8, "library", 0) \
    X(TUNED, 16, "tuned", 0)
#define VP_GPU_SWITCH_BIT(name, bit, word, same_bits) VP_GPU_##name = bit,
typedef enum vp_gpu_switch { VP_GPU_SWITCHES(VP_GPU_SWITCH_BIT) VP_GPU_NONE = 0 } vp_gpu_switch;
#undef VP_GPU_SWITCH_BIT
typedef struct vp_gpu_word { const char *word; uint32_t bit; int same_bits; } vp_gpu_word;
/* The words in the order of the bits; NULL past the end. */
VP_API const vp_gpu_word *vp_gpu_word_at(int32_t index);
typedef struct vp_engine_options {
    const vp_model_config *config;
    /* NULL: synthetic weights from `seed` */
    const vp_checkpoint *checkpoint;
    uint64_t seed;
    vp_weights weights;
    vp_weights head_weights;   /* INT8 or INT4; any other value: the same precision as the rest of the model */
    vp_weights vision_weights; /* the same for the linears of tower and connector */
    const char *device;        /* "auto", "cpu", "cuda", "cuda:N" */
    const char *gemm;          /* NULL or "auto": chosen by measurement; otherwise one of vp_engine_gemm_name */
    int32_t threads;           /* 0: all cores this process may use */
    uint32_t gpu;              /* values of vp_gpu_switch; 0: no switch */
    int32_t max_sequence;      /* longest prompt + new tokens of any request */
    int32_t max_views;         /* most views (crops + global) of any request */
    int32_t prunes;            /* 1: room for requests with vp_request.prune; 0: they are rejected */
    /* Bits 1 << vp_activations of later requests: an error here, before the weights are loaded, if one is impossible */
    uint32_t activations;
    /* 1: an engine without memory and weights. It supports only vp_engine_count, vp_engine_bytes, vp_engine_memory and
     * vp_engine_free_bytes */
    int32_t counts_only;
    vp_progress progress; void *progress_user;
} vp_engine_options;
/* bf16, seed 42, device auto, kernels chosen by measurement, all cores; the caller fills in config, max_sequence and
 * max_views */
VP_API vp_engine_options vp_engine_options_default(void);
/* version of the synthetic weights: for one version, a seed gives the same bits on all devices and with any number of
 * threads. A sweep's fingerprint contains it, so that a sweep does not continue with different weights */
#define VP_SYNTHETIC_VERSION 1

/* ---- CUDA devices. The GPU code exists only if vlmprof_kernels.cu is also compiled by nvcc and linked, in addition to
 * its object from the C compiler. */
/* The number of CUDA devices that this process can use, at least 1.
 * returns: VP_OK; VP_ERR_DEVICE with the reason: no GPU code in this build, no driver or one that is too old, or no GPU
 * threads: reentrant */
VP_API vp_result vp_device_count(int32_t *count, vp_error *error);
/* Describes device `index` without creating a CUDA context on any device.
 * returns: VP_OK; VP_ERR_DEVICE as above, or no such device */
VP_API vp_result vp_device_describe(int32_t index, vp_device_info *info, vp_error *error);
/* Destroys this process's context on a CUDA device with everything in it, including data of other code. It is for a
 * program that owns its device and continues after vp_engine_broken. Nothing else in vlmprof resets a device.
 * returns: VP_OK; VP_ERR_STATE: an engine is still open; VP_ERR_DEVICE as above, or the device cannot be reset
 * source:  CUDA Runtime API, cudaDeviceReset */
VP_API vp_result vp_device_reset(int32_t cuda_device, vp_error *error);
/* Describes the options of CUDA device `index`: how it runs experts, which words of --gpu have an effect, and why the
 * others have none. It creates no CUDA context.
 * returns: VP_OK; VP_ERR_DEVICE as above */
VP_API vp_result vp_device_ways(int32_t index, char *text, size_t capacity, vp_error *error);
/* the CUDA version that the GPU code was compiled with; 0: no GPU code in this build */
VP_API int32_t vp_device_toolkit(void);
/* Reads the telemetry of CUDA device `cuda_device` through NVML (opened with dlopen; the device is found by its PCI
 * address). With -1 it reads the CPU's from /sys and /proc. It can take some milliseconds, and more on the first call
 * for a GPU, so never call it inside a timed section.
 * out:     out  on success only
 * returns: VP_OK, even if some numbers are not reported; VP_ERR_UNSUPPORTED with the reason: no NVML, a device that
 *          NVML does not know, or a system without CPU telemetry; VP_ERR_DEVICE: no such device, or no GPU code in this
 *          build
 * threads: reentrant */
VP_API vp_result vp_device_telemetry(int32_t cuda_device, vp_telemetry *out, vp_error *error);
/* The energy that a CUDA device has used since its driver was loaded, from NVML, without a context. Only the difference
 * of two readings is meaningful. On data center GPUs the counter is updated every 20 to 100 ms.
 * out:     joules  on success only
 * returns: VP_OK; VP_ERR_UNSUPPORTED with the reason: no NVML, a device without a counter, or a CPU (-1);
 *          VP_ERR_DEVICE as above
 * source:  NVML API, nvmlDeviceGetTotalEnergyConsumption
 * threads: reentrant */
VP_API vp_result vp_device_energy(int32_t cuda_device, double *joules, vp_error *error);

/* Chooses kernels, reserves memory, and loads or draws the weights. "auto" selects the first CUDA device if
 * vp_device_count reports one, otherwise the CPU; vp_engine_device_note then gives the reason.
 * in:      options  see the fields; checkpoint and config are read only during the call
 * out:     engine   on success only; release it with vp_engine_close
 * returns: VP_OK; VP_ERR_RANGE: a bad option, or a GEMM kernel that this processor or arithmetic lacks; VP_ERR_DEVICE
 *          the device is missing, is too old, lacks cuBLAS, or failed; VP_ERR_UNSUPPORTED: a shape that the kernels
 *          lack; VP_ERR_MEMORY with the sizes requested and free;
 *          VP_ERR_NOT_FOUND or VP_ERR_MISMATCH: a tensor; VP_ERR_INTERRUPTED: by
 *          progress
 * memory:  on the device, bf16: 2 bytes per parameter (a tied integer head is a second copy), buffers, and the KV
 *          cache: 4 bytes * kv_head_count * head_dim * blocks per position; fp32: twice that. A GPU also needs 32 MiB
 *          of pinned host memory. Loading needs 8 MiB of the checkpoint at a time, or one transposed tensor
 * threads: one engine per thread */
VP_API vp_result vp_engine_open(const vp_engine_options *options, vp_engine **engine, vp_error *error);
VP_API void vp_engine_close(vp_engine *engine); /* NULL is allowed */

/* ---- an engine's memory and opening time, and the limits of its device */
/* The times of the parts of vp_engine_open */
typedef struct vp_opening {
    int64_t device_ns;  /* preparing the device, measuring and choosing kernels */
    int64_t memory_ns;  /* allocating memory, filling tables */
    int64_t weights_ns; /* reading or drawing weights, layout, quantising, page faults */
} vp_opening;
VP_API vp_opening vp_engine_opening(const vp_engine *engine);
/* weights + cache + scratch on the device; with counts_only, the size that they would have */
VP_API uint64_t vp_engine_bytes(const vp_engine *engine);
VP_API uint64_t vp_engine_free_bytes(const vp_engine *engine); /* currently free on the device; 0: unknown */
/* a part of vp_engine_bytes, or memory that the host uses in addition */
typedef struct vp_memory_block {
    const char *name; /* static */
    uint64_t bytes;
    int32_t on_device; /* 0: host memory; on the CPU all of it */
    /* KV cache: size of one token in all blocks, in bytes; a request uses input_count + token_count - 1 positions of
     * its active blocks. Other blocks of memory: 0 */
    uint64_t bytes_a_position;
} vp_memory_block;
/* Describes memory block `index`, from 0: weights, KV cache, vision buffers, language buffers, scratch and, if the
 * engine can prune, pruning buffers. Their sum is vp_engine_bytes. Then follow pinned host memory and launch records,
 * if any (VP_TIMING_KERNEL; on a GPU each record also has two events). Nothing else grows while requests run. Returns
 * 1; 0 for no such index (*out is untouched). */
VP_API int32_t vp_engine_memory(const vp_engine *engine, int32_t index, vp_memory_block *out);
/* The device's limits, for comparison with operations' rates. */
typedef struct vp_ceilings {
    double bytes_per_s; /* read bandwidth */
    /* the engine's copy within device memory (CPU: by one thread), counting bytes read and bytes written */
    double copy_bytes_per_s;
    double flops_per_s;   /* matrix products in the engine's arithmetic */
    uint64_t read_bytes;  /* size of one read */
    int32_t product_size; /* n of the fastest n x n x n product */
} vp_ceilings;
/* Measures the ceilings on the first call, which takes some tenths of a second, and stores them. All threads read up to
 * 1 GiB of the weights, or 256 MiB if the weights are smaller; 128 MiB are copied. Products are the engine's own (CPU:
 * the chosen kernels, GPU: cuBLAS), with 256 to 4096 rows. The best of several rounds counts. Ceilings are measured on
 * this machine, not taken from a data sheet. An operation may exceed a ceiling, and is reported as such, if its
 * operands stay in a cache (tiny models, small activations; a last-level cache above 256 MiB) or the clock was lower
 * during this call. Call this only between requests.
 * out:     out  on success only
 * returns: VP_OK; VP_ERR_MEMORY: less than 256 MiB free; VP_ERR_DEVICE: a CUDA call failed
 * memory:  256 MiB on the device during the first call */
VP_API vp_result vp_engine_ceilings(vp_engine *engine, vp_ceilings *out, vp_error *error);
/* Measures the ceilings again and keeps the larger values, because other programs can only lower a ceiling. The results
 * are as above. */
VP_API vp_result vp_engine_ceilings_again(vp_engine *engine, vp_ceilings *out, vp_error *error);
/* "cpu: <model name>, N threads", "cuda:0: <name>, <GB> GB" */
VP_API const char *vp_engine_device(const vp_engine *engine);
/* The reason why "auto" selected the CPU, or how and why the GPU deviates from its usual operation: decode steps
 * submitted kernel by kernel instead of as a graph, or products whose bias needs a separate launch. Otherwise "". The
 * text may grow with each request. */
VP_API const char *vp_engine_device_note(const vp_engine *engine);
/* Returns 1 after an error that the device does not recover from (a kernel's illegal address, a failed launch, a lost
 * device): each request then fails with VP_ERR_DEVICE, and the engine can only be closed. After closing all engines and
 * vp_device_reset, a new engine may open. If the driver rejects that too, only a new process helps. 0: the next request
 * can run, even after a failed one. */
VP_API int vp_engine_broken(const vp_engine *engine);
/* Measures the cost of one time stamp (vp_stage_times.stamps) on this backend, including reading it. This takes some
 * microseconds on the CPU and less than a millisecond on a GPU. 0: below the clock's resolution; -1: the device failed.
 * Call this only between requests. */
VP_API int64_t vp_engine_stamp_cost_ns(vp_engine *engine);
/* The kernel chosen for linears with this many rows; on a GPU, the methods in use. For the single row of a decode step:
 * "gemv, one graph a step" or "gemv, kernel by kernel". For more rows: "cublas (biases: cublasLt; tiles: vision prefill
 * experts)". biases: the library that adds them ("apart": a launch after the product). tiles: the attentions, and
 * perhaps the experts, that run on vlmprof's tensor core tiles, or "none". The text is valid until the next call. */
VP_API const char *vp_engine_gemm(const vp_engine *engine, int32_t rows);
/* The inputs that requests with `wanted` have.
 * out:     used  on success only; AUTO: no weights of this engine are INT8 or INT4 for many rows
 * returns: VP_OK; VP_ERR_RANGE with the reason and the values that are possible */
VP_API vp_result vp_engine_activations(const vp_engine *engine, vp_activations wanted, vp_activations *used,
                                       vp_error *error);
/* GEMM kernels that this processor can run; NULL past the end */
VP_API const char *vp_engine_gemm_name(int32_t index);
/* The method by which VP_TIMING_KERNEL times launches: "activity records of CUPTI, version 130001", "CUDA events: " and
 * the reason why CUPTI is not used, or "the host's clock". The text is valid until the next call. */
VP_API const char *vp_engine_launch_timer(const vp_engine *engine);
/* the same for any GPU of this process, without an engine; NULL: no GPU code in this build */
VP_API const char *vp_device_launch_timer(void);
/* Hooks for vp_ranges_init that send ranges to a tool that reads NVTX (Nsight Systems); without such a tool, a pair
 * takes a few ns. NULL: built without NVTX, that is, without nvcc and without -DVLMPROF_NVTX. The hooks are static, and
 * any thread may use them. */
VP_API const vp_range_hooks *vp_engine_range_hooks(void);

/* optional copies of intermediate values, for comparison with other implementations; NULL pointers are skipped. Copying
 * is not counted or timed */
typedef struct vp_dump {
    float *image_features;     /* f32 [views, tokens_per_crop, d_model]; with window_pool [image tokens, d_model] */
    float *vit_features;       /* f32 [views, patches, vit_layer_count * vit_width], before pad_embed */
    float *deepstack_features; /* f32 [deepstack_count, views, d_model] */
    float *block_last;         /* f32 [active blocks, d_model] */
    float *block_mean;         /* f32 [active blocks, d_model]: mean over positions */
    float *logits;             /* f32 [max_new_tokens, embedding_size]; with on_logits [embedding_size] */
    /* called with each step's logits, which the next step overwrites; NULL: all logits are kept */
    void (*on_logits)(void *with, int32_t step, const float *logits); void *with;
    /* with pruning; vp_reply contains the counts. kept: the remaining image tokens, numbered from 0 (not for pool; for
     * the published visionzip: the dominant patches). kept_features [image tokens, d_model]: the image's rows at the
     * language model's input, or at the last cut. kept_positions [3, input_count]: positions of the rows after the last
     * cut, by axis (without M-RoPE only the first) */
    int32_t *kept;
    float *kept_features;
    int32_t *kept_positions;
} vp_dump;

/* ---- dropping or merging image tokens. The guide `pruning` describes each method, its position in the model, and
 * differences from its publication. */
#define VP_PRUNE_METHODS(X) \
    X(NONE, "none") X(RANDOM, "random") X(STRIDE, "stride") X(POOL, "pool") X(VISIONZIP, "visionzip") \
    X(DIVPRUNE, "divprune") X(FASTV, "fastv") X(DART, "dart") X(PDROP, "pdrop")
typedef enum vp_prune_method {
#define VP_PRUNE_ENUM(name, text) VP_PRUNE_##name,
    VP_PRUNE_METHODS(VP_PRUNE_ENUM)
#undef VP_PRUNE_ENUM
        VP_PRUNE_METHOD_COUNT
} vp_prune_method;
/* KEEP: kept tokens and all later tokens keep their positions; COMPACT: positions count the shortened sequence;
 * PUBLISHED: as in the method's code (M-RoPE: KEEP) */
typedef enum vp_prune_positions { VP_PRUNE_PUBLISHED, VP_PRUNE_KEEP, VP_PRUNE_COMPACT } vp_prune_positions;
enum { VP_PRUNE_PIVOTS_MAX = 64 };
typedef struct vp_prune {
    vp_prune_method method;
    vp_prune_positions positions;
    /* 1 or more: tokens; below 1: a share of them, rounded half to even; 0: given by the method's own counts below */
    double keep;
    int32_t layer;                /* drop tokens before this block; 0: before the language model (random, stride) */
    uint32_t seed;                /* random */
    int32_t dominant, contextual; /* visionzip: both 0: kept tokens are split 54 to 10, as published */
    /* dart; per_pivot 0: keep / pivots, rounded down */
    int32_t pivot_image, pivot_text, per_pivot;
    int32_t cut_count, layers[VP_PRUNE_CUTS_MAX]; /* pdrop: tokens are dropped before these blocks */
    double ratios[VP_PRUNE_CUTS_MAX];             /* share of the image tokens kept at each of them */
    /* number of image tokens in the prompt, if image_input_idx is not read (vp_engine_count); 0: all tokens of the
     * views */
    int32_t image_tokens;
} vp_prune;
/* positions published, 4 and 4 pivots, everything else 0 */
VP_API vp_prune vp_prune_default(vp_prune_method method);
VP_API const char *vp_prune_name(vp_prune_method method);


typedef struct vp_request {
    const int32_t *input_ids; int32_t input_count;   /* BOS, image tokens, text */
    /* f32 [views, patches, patch_values]: a patch is row by row, with each pixel's three colours together; NULL: no
     * image */
    const float *pixels;
    const float *image_masks; /* f32 [views, patches]; read only by attention pooling */
    /* int32 [views, tokens_per_crop]; with windows across crops (config.window_pool) [image tokens] */
    const int32_t *image_input_idx;
    /* int32 [input_count], for images in models with image_bidirectional: token i attends to tokens before
     * span_ends[i]. This is i + 1 for text tokens, and the end of the image for image tokens. Other models do not read
     * it */
    const int32_t *span_ends;
    int32_t views;
    /* the views of each image, in image order; they add up to `views`. NULL and 0: one image. vit_native and
     * window_pool require them, because they need the grid */
    const vp_image_views *images; int32_t image_count;
    int32_t top_k;                                   /* 1..expert_count; 0 without experts */
    /* ascending; a block that is not listed is skipped (DeepStack's features are still added after it) */
    const int32_t *active_blocks; int32_t active_block_count;
    int32_t max_new_tokens; int ignore_eos; int32_t eos_id;
    const int32_t *more_eos_ids; int32_t more_eos_count; /* more ids that end an answer; NULL and 0: no more */
    /* [max_new_tokens]: a given answer (teacher forcing). reply.tokens[i] is the model's choice after the first i
     * tokens of this answer, and nothing ends it early. NULL: each step continues with its own token */
    const int32_t *forced_tokens;
    const vp_prune *prune; /* NULL: all image tokens are kept */
    vp_activations activations;
    const vp_dump *dump; /* NULL: nothing is copied */
    vp_timing timing;
    /* VP_TIMING_KERNEL: buffer for the launches, in order; NULL and 0: not wanted */
    vp_launch *launches; int64_t launch_capacity;
    /* VP_TIMING_KERNEL: buffer for the threads' spans, in any order; NULL and 0: not wanted */
    vp_span *spans; int64_t span_capacity;
} vp_request;

/* Runs a request with greedy decoding, one token per step. N tokens take N - 1 decode steps.
 * in:      request  checked completely before anything runs: ids, positions, blocks and sizes must fit the model and
 *                   the engine
 * out:     reply    tokens, step_ns (those that ran), token_count, ended_by_eos, times, launch_count, span_count
 * returns: VP_OK; VP_ERR_RANGE: a value does not fit the model or the engine (reply untouched); VP_ERR_STATE: a
 *          counts_only engine (reply untouched); VP_ERR_FORMAT: NaN logits, because weights or pixels are damaged
 *          (reply is then unusable); VP_ERR_DEVICE or VP_ERR_MEMORY: a CUDA call failed; the request may succeed on a
 *          retry, unless vp_engine_broken
 * numeric: fp32 or bf16 as opened, fp32 sums; results of a request are bit-identical on the same machine with the same
 *          kernels
 * memory:  none; VP_TIMING_KERNEL: one vp_launch per launch, on a GPU also two events; allocated before the request
 *          starts and kept for the next one
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/modeling_molmoe.py
 * example: cli/measure/engine.c */
VP_API vp_result vp_engine_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error);
/* Counts the work of a request with the code that would submit it, without submitting anything.
 * in:      request  as for vp_engine_run; input_ids, pixels, image_masks and image_input_idx are not read
 * out:     work     launches, flops, bytes and ran for H2D .. DECODE; all else is 0
 * returns: VP_OK; VP_ERR_RANGE: a value does not fit the model or the engine
 * rule:    assumes max_new_tokens tokens, and that experts share the tokens of a prompt evenly. If a router leaves
 *          experts of a block without tokens, PREFILL really reads fewer bytes with the same FLOPs; if each product is
 *          a separate launch (fp32 on a GPU), it also has fewer launches. All other numbers equal those of
 *          vp_engine_run
 * memory:  none */
VP_API vp_result vp_engine_count(vp_engine *engine, const vp_request *request, vp_stage_times *work, vp_error *error);
/* Computes the effect of request->prune: counts of tokens and rows, size of the KV cache. It needs no engine.
 * in:      request  input_count, views, grid, active blocks and max_new_tokens are read, and image_input_idx if given;
 *                   without it, DART's text pivots are assumed to exist
 *          weights  the engine's weights: with fp32 the cache is twice as large
 * out:     pruned  on success only; without pruning or without an image, all rows are in one region
 * returns: VP_OK; VP_ERR_RANGE: a value that the method, the image or the model does not allow (the error gives the
 *          reason); VP_ERR_UNSUPPORTED: a method that this model does not support
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_prune_request(const vp_model_config *config, const vp_request *request, vp_weights weights,
                                  vp_pruned *pruned, vp_error *error);
/* Waits until the device is idle. A GPU may still run a decode step that an end-of-sequence token made superfluous.
 * Call this between requests and outside timed sections, so that the next request does not wait for that step. */
VP_API void vp_engine_settle(vp_engine *engine);

VP_EXTERN_C_END
#endif /* VLMPROF_ENGINE_H */
