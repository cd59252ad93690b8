/* backend.h - the interface between engine and device: queue, jobs, one table of functions
 *
 * vlmprof_kernels.cu contains the devices: the CPU, and the GPU if nvcc also compiled the file. Only their two tables
 * are visible outside.
 *
 * The compute type is bf16 or f32, depending on the mode of the engine. Comments call arrays of it "in-type". */
#ifndef VK_BACKEND_H
#define VK_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

enum {
    VK_PAD = 32,           /* columns of a packed weight panel; rows are padded to a multiple of it */
    VK_EXPERTS_MAX = 1024, /* the router keeps one row of probabilities in shared memory */
    VK_POOL_MAX = 1024,    /* heads * keys of a pooling window */
    VK_ROWS_MAX = 32,      /* rows of one GEMM tile */
    VK_THREADS_MAX = 4096
};

/* the part of a backend's state that launchers see, where they count work; vk_cpu and vk_cuda start with it */
typedef struct vk_work {
    int64_t launches, flops, bytes;
} vk_work;

/* Describes the next operation. vk_begin uses and resets it, so that no operation inherits the previous one's
 * description. */
typedef struct vk_next {
    int32_t kind, shape[4];               /* vp_launch_kind; vk_shape */
    uint32_t grid, threads, shared_bytes; /* shared_bytes: set at launch */
    const void *kernel;                   /* GPU: the function whose register count the driver reports */
} vk_next;

typedef struct vk_spans {
    vp_span *span;
    int64_t capacity, count;
} vk_spans;

typedef struct vk_queue {
    vk_work work; /* total submitted so far */
    int dry;      /* 1: only count, and log without times, because a recorded step is replayed next */
    int threads;  /* CPU */
    void *stream; /* GPU: cudaStream_t */
    /* GPU: the first CUDA or cuBLAS status except success, and its source line. It is sticky: nothing more is
     * submitted. */
    int error, line;
    const char *error_at, *file;         /* the call or the kernel; the source file of `line` */
    const char *last_sent, **first_sent; /* GPU: the last operation; the address for the next one's name, or NULL */
    char note[400];                      /* GPU: deviations from the usual operation, with reasons */
    int timing;                          /* vp_timing of the running request */
    uint32_t inputs; /* bits of vp_activations that many rows with integer weights can have, apart from BF16 */
    int usual;       /* the one of VP_ACTIVATIONS_AUTO; 0: BF16 */
    int activations; /* vp_activations of the running request */
    int64_t stamps;  /* number of stamps in this request */
    vp_launch *log;  /* VP_TIMING_KERNEL: a record per operation; otherwise NULL */
    int traced;      /* GPU: 1: CUPTI times operations, even in a recorded step (kernels/gpu/cupti.h) */
    int64_t log_capacity, log_count;
    int32_t step, part, block; /* where new records belong */
    vk_next next;
    vk_spans *spans; /* CPU: the work of each thread in parallel loops, in addition to the log, or NULL */
} vk_queue;

/* How a row of the fused projection, f32 [q | k | v], becomes heads: their norms and rotation. The first heads /
 * kv_heads heads of q use the first head of k and v, and so on. */
enum { VK_NORM_NONE, VK_NORM_WHOLE, VK_NORM_HEAD }; /* the values of vp_qk_norm (vlmprof_config.h) */
typedef struct vk_heads {
    int heads, kv_heads, head_dim;
    int norm;
    float eps, clip;              /* clip: after the norm, values are limited to -clip..clip; INFINITY: no limit */
    const float *q_norm, *k_norm; /* f32 [width] for VK_NORM_WHOLE, [head_dim] for VK_NORM_HEAD */
    const float *cs;              /* f32 [positions, head_dim]: cos, then sin */
    int window;                   /* keys that a token attends to, including its own; 0: all up to its own */
    /* The window counts positions. If positions of rows have gaps: int32 [rows], the number of keys before each row
     * that are outside its window, on the device and on the host. NULL: no gaps */
    const int32_t *gone, *gone_counted;
} vk_heads;
/* the number of keys before row `row` that are outside its window */
#define VK_GONE(gone, window, row) ((gone) ? (gone)[row] : (window) && (row) + 1 > (window) ? (row) + 1 - (window) : 0)

/* A table of in-type embeddings: rows of `ld` elements, or for a tied head that is stored once, the panels of a
 * vk_linear with k_padded == ld. `scale` multiplies them, and in bf16 mode the product is rounded; 0: they are
 * unchanged. */
typedef struct vk_table {
    const void *rows;
    int ld, panels;
    float scale;
} vk_table;

/* The size in patches of an image of any size, and the side of the square of learned positions that is stretched over
 * it. Patches are ordered by view, then by row within a view of pool x pool. */
typedef struct vk_picture_grid {
    int rows, cols, pool, side;
} vk_picture_grid;

/* Scores of `queries` rows of q against all keys, in-type as in vk_attention_job, without a mask. tops: f32 [queries,
 * heads, 2], maximum and sum for each query and head. received: f32 [keys], attention that each key receives from all
 * queries, averaged over heads. scale: factor of each product */
typedef struct vk_scores_job {
    float *tops, *received;
    const void *q, *k;
    int queries, keys, heads, kv_heads, head_dim, ldq, ldk;
    float scale;
} vk_scores_job;

/* The shared kernels, the same for every device. X(name, parameters after the queue). Pointers are to device memory. An
 * addition, multiplication, division or exponential counts as one FLOP. Bytes count every operand as read or written
 * once. To add a kernel, add a row here and, in a file of kernels/shared/, its body followed by its launcher l_NAME,
 * which counts the FLOPs and bytes. */
#define VK_KERNELS(X) \
    X(rmsnorm, void *out, const float *in, const float *weight, int rows, int width, int ld_out, float eps, int wide) \
    X(layernorm, void *out, const float *in, const float *weight, const float *bias, int rows, int width, int ld_out, \
      float eps, int wide) \
    X(convert, void *out, const float *in, int rows, int width, int ld_out, int wide) \
    X(vit_embed, float *out, const float *patches, const float *class_embedding, const float *positions, int views, \
      int count, int width) \
    X(pool_windows, void *keys, void *query, const float *hidden, const float *mask, const int32_t *dead, \
      const float *pad_embed, size_t layer_floats, int views, int layers, int width, int side, int pool, int ld, \
      int wide) \
    X(pool_places, void *keys, void *query, const float *hidden, const int32_t *places, size_t layer_floats, \
      int windows, int patches, int layers, int width, int ld, int wide) \
    X(pool_attention, void *out, const float *q, const float *kv, const int32_t *places, int windows, int keys, \
      int heads, int head_dim, int ld_out, int wide) \
    X(gate_mul, void *out, const float *gate_up, int rows, int width, int ld_out, int gelu, int wide) \
    X(embed, float *out, const vk_table *table, const int32_t *ids, int rows, int width, int wide) \
    X(scatter_add, float *stream, const float *features, const int32_t *index, int rows, int width) \
    X(qk_norm_rope, void *q, void *key, void *value, const float *qkv, const vk_heads *heads, const int32_t *position, \
      int rows, int ldq, int wide) \
    /* keys: the future value of *position + 1; used only for counting */ \
    X(attention_decode, void *out, const void *q, const void *key, const void *value, float *scores, \
      const int32_t *position, int keys, int lds, const vk_heads *heads, int wide) \
    X(router, int32_t *index, float *weight, const float *logits, int rows, int experts, int top_k, int norm_topk) \
    X(moe_lists, int32_t *count, int32_t *start, int32_t *list, int32_t *slot_row, int32_t *tiles, \
      const int32_t *index, int experts, int pairs, int tile_rows) \
    X(gather, void *out, const void *in, const int32_t *list, int rows, int top_k, int row_bytes) \
    X(combine, float *stream, const float *expert_rows, const int32_t *slot_row, const float *weight, int rows, \
      int top_k, int width) \
    X(argmax, int32_t *out, const float *values, int rows, int count) \
    X(advance, int32_t *position, int by) \
    /* count: a multiple of 4; streams: 1 or 4 */ \
    X(read, float *sums, const float *from, int blocks, int count, int streams) \
    X(add_rmsnorm, float *stream, const float *rows, const float *weight, int count, int width, float eps) \
    X(add_scaled, float *stream, const float *rows, const float *weight, int count, int width) \
    X(place_rows, float *stream, const float *features, const int32_t *index, int rows, int width) \
    X(patch_windows, void *out, const float *hidden, int views, int before, int width, int side, int pool, int ld, \
      int wide) \
    X(mean_windows, float *out, const float *hidden, int views, int before, int width, int side, int pool) \
    X(grid_embed, float *out, const float *patches, const float *table, const int32_t *places, \
      const vk_picture_grid *grid, int width) \
    X(grid_turn, void *qkv, const float *cs, const int32_t *places, int rows, int heads, int head_dim, int ld, \
      int wide) \
    X(take_rows, void *out, const float *in, const int32_t *index, int rows, int width, int ld, int wide) \
    X(compose_rope, float *cs, const float *table, const int32_t *positions, const int32_t *axes, int rows, \
      int stride, int head_dim) \
    /* for pruning image tokens (kernels/shared/prune_rows.h) */ \
    X(attention_tops, const vk_scores_job *job, int wide) \
    X(attention_received, const vk_scores_job *job, int wide) \
    X(row_size, float *out, const void *in, int rows, int width, int ld, int wide) \
    X(unit_rows, float *out, const float *in, const int32_t *index, int rows, int width, int ld) \
    X(row_products, float *out, const float *left, const float *right, int count, int rows, int width) \
    X(nearest_target, int32_t *out, const float *rows, const int32_t *members, int member_count, \
      const int32_t *targets, int target_count, int width) \
    X(second_nearest, float *out, const float *rows, int count, int width) \
    X(spread, float *distance, const float *rows, const int32_t *picked, int count, int width, int first) \
    X(mean_heads, float *out, const void *in, int rows, int heads, int head_dim, int ld, int wide) \
    X(mean_rows, float *out, const float *in, const int32_t *base, const int32_t *list, const int32_t *start, \
      int rows, int members, int width)

typedef struct vk_kernels {
#define VK_KERNEL_MEMBER(name, ...) void (*name)(vk_queue * queue, __VA_ARGS__);
    VK_KERNELS(VK_KERNEL_MEMBER)
#undef VK_KERNEL_MEMBER
} vk_kernels;

/* Pointers named y, x, to, from are to the backend's memory unless named host. Submitting never waits. A failure on a
 * GPU stays in the queue: nothing more is submitted, and `wait` returns it. */

/* A linear layer: y = x W^T + bias. Weights are in-type. Rows of W are padded from k to k_padded. Rows are consecutive
 * if the backend is row_major, otherwise in panels (vlmprof_kernels.cu >>gemm). */
typedef struct vk_linear {
    void *weights;
    const float *bias; /* f32 [n] or NULL */
    void *bias_bf16;   /* the same, rounded, for bf16 results if the backend has rounds_bias; otherwise NULL */
    int n, k, k_padded;
    /* 1: f32 weights and inputs. The router has them even in bf16 mode, because rounding could flip an expert choice.
     * Such a layer returns f32, so it supports only the _F32 epilogues. */
    int wide;
    int bits;         /* 8 or 4: integers with a scale for every VK_QUANT_BLOCK values of a row; 0: compute type */
    uint16_t *scales; /* bf16, by row after the integers if the backend is row_major; panels contain their own */
} vk_linear;
enum { VK_QUANT_BLOCK = 32 };

/* y (in-type [m, ldy]; f32 [m, ldy] for _F32) = epilogue(x W^T + bias); ADD: y +=. GELU is exact, GELU_TANH its
 * approximation. SILU_MUL, GELU_MUL, where backend->gates: y in-type [m, n / 2] = the activation (tanh GELU) of the
 * first half of the results, times the second half; n / 2 is a multiple of VK_PAD. */
typedef enum vk_epilogue {
    VK_STORE, VK_STORE_F32, VK_QUICKGELU, VK_ADD_F32, VK_GELU, VK_GELU_TANH, VK_SILU_MUL, VK_GELU_MUL
} vk_epilogue;
typedef struct vk_gemm_job {
    void *y;
    const void *x;
    const vk_linear *w;
    int m, ldy, ldx;
} vk_gemm_job;

/* softmax(q k^T / sqrt(head_dim)) v for `batch` consecutive sequences of `tokens` in-type rows; the heads of a row are
 * next to each other. heads is a multiple of kv_heads. Row r attends to all keys. If causal, it attends to keys before
 * r + 1, or before reach[r] if reach is given (int32 [tokens], at least r + 1). With a window, it ignores keys before r
 * + 1 - window, or before gone[r]. */
typedef struct vk_attention_job {
    void *y;
    const void *q, *k, *v;
    int batch, tokens, heads, kv_heads, head_dim, ldy, ldq, ldk, causal, window; /* the last two: batch 1 */
    const int32_t *reach, *gone;                                                 /* gone: as in vk_heads */
    int64_t scores; /* number of scores per head, for counting; 0: computed from batch, tokens and causal */
} vk_attention_job;

/* Adds the experts' outputs to routed tokens: stream f32 [tokens, down->n] += the sum over a token's slots of weight *
 * down(silu(gate(x)) * up(x)). Weights are those of expert 0; the others follow at these strides. moe_lists fills
 * start, list, slot_row and tiles. */
typedef struct vk_experts_job {
    float *stream;
    void *y;       /* in-type [pairs, ldy], ldy a multiple of 8: each slot's contribution, in row order of the lists */
    void *hidden;  /* in-type [pairs, padded down->k]: for silu(gate) * up */
    const void *x; /* in-type [tokens, ldx] */
    const vk_linear *gate_up, *down;
    size_t gate_up_stride, down_stride; /* bytes */
    const int32_t *start, *list, *slot_row, *tiles;
    const float *weight; /* [pairs] routing weights, token * top_k + slot */
    int ldx, ldy, pairs, top_k, experts;
} vk_experts_job;
enum { VK_TILE_ROWS = 128 }; /* tile_rows of moe_lists for these */

/* One transformer block over one token at *position, and the buffers between its kernels. Weights are as in vk_linear.
 * gate_up and down are those of expert 0; the others follow at these strides. In a dense block, which has no router,
 * they are the block's own. */
enum { VK_SPLITS = 8, VK_DECODE_BLOCKS = 1024 }; /* maxima of one launch */
typedef struct vk_decode_job {
    const vk_linear *att_proj, *attn_out, *router, *gate_up, *down;
    size_t gate_up_stride, down_stride; /* bytes */
    const float *attn_norm, *ff_norm;   /* f32 [d] or NULL: norms before attention and MLP */
    const float *attn_after, *ff_after; /* norms after them, before they are added to x */
    int gelu;                           /* 1: tanh GELU in the dense MLP instead of SiLU */
    vk_heads heads;                     /* its table has max_sequence positions */
    float eps;
    int d, expert_dim, top_k, norm_topk, max_sequence; /* expert_dim: also the dense MLP's width */
    int keys;                                          /* the future value of *position + 1; used only for counting */
    const int32_t *position;
    float *x;                               /* f32 [d], the residual stream */
    float *qkv, *scratch, *logits, *weight; /* f32 [q | k | v], [vk_decode_floats], [experts], [top_k] */
    float *y;                               /* f32 [d]: normed, then added to x */
    void *key, *value;                      /* in-type [max_sequence, k's width] */
    void *q, *attended, *normed, *hidden;   /* in-type [padded q], same, [padded d], [top_k, padded expert_dim] */
    int32_t *index;                         /* [top_k] */
} vk_decode_job;

typedef struct vk_decode_end_job {
    float *x;
    const float *norm;
    float eps;
    const vk_linear *head;
    vk_table table; /* table of the previous token's embedding, which x starts from */
    float *logits, *scratch;
    int32_t *token, *position; /* token: index of the largest logit, -1 if logits are NaN; position: increases by one */
} vk_decode_end_job;

typedef struct vk_decode_kernels {
    void (*qkv)(vk_queue *queue, const vk_decode_job *job);       /* qkv = att_proj(norm(x)) */
    void (*attention)(vk_queue *queue, const vk_decode_job *job); /* appends to the cache, then attends */
    void (*attn_out)(vk_queue *queue, const vk_decode_job *job);  /* x += attn_out(attention) */
    void (*router)(vk_queue *queue, const vk_decode_job *job);    /* logits = router(norm(x)), normed */
    /* index and weight from the logits; hidden = silu(gate normed) * up normed */
    void (*gate_up)(vk_queue *queue, const vk_decode_job *job);
    void (*down)(vk_queue *queue, const vk_decode_job *job);          /* x += sum of weight * down(hidden) */
    void (*dense_gate_up)(vk_queue *queue, const vk_decode_job *job); /* hidden = silu(gate norm(x)) * up norm(x) */
    void (*dense_down)(vk_queue *queue, const vk_decode_job *job);    /* x += down(hidden) */
    void (*head)(vk_queue *queue, const vk_decode_end_job *job);      /* logits = head(norm(x)) */
    void (*pick)(vk_queue *queue, const vk_decode_end_job *job);      /* token, position */
} vk_decode_kernels;

/* the largest sizes that an engine requests */
typedef struct vk_extent {
    int wide, experts;
    int quant_k;          /* k_padded of the longest rows of integers; 0: no integers */
    int64_t quant_values; /* values of the largest dense integer linear that is applied to many rows */
    int64_t marks;
    vk_attention_job vit, llm; /* sizes only */
} vk_extent;

typedef struct vk_setup {
    int device, threads, wide;
    int counts_only; /* 1: nothing will run */
    uint32_t gpu;    /* vp_gpu_switch */
    const char *gemm;
} vk_setup;

typedef struct vk_backend {
    vk_kernels kernels;
    int row_major;      /* layout of weights; see vk_linear */
    int host_memory;    /* 1: the host accesses this memory directly, and inputs need no copy */
    int gates;          /* 1: linear and grouped have the epilogues SILU_MUL and GELU_MUL */
    int view_batch;     /* views that pass through the vision stages together */
    int run_ahead;      /* 1: results arrive late: a decode step is submitted before the previous token is known */
    int rounds_bias;    /* 1: bf16 results get their bias in bf16 */
    size_t stage_bytes; /* largest size for one stage() */
    int32_t toolkit;    /* the CUDA version at compile time */
    vp_result (*open)(const vk_setup *setup, vk_queue **queue, vp_error *error);
    void (*close)(vk_queue *queue); /* waits, then frees everything in the queue */
    void (*describe)(vk_queue *queue, char *text, size_t capacity);
    const char *(*gemm)(vk_queue *queue, int wide, int rows);
    uint64_t (*free_bytes)(vk_queue *queue); /* 0: unknown */
    size_t (*scratch_bytes)(vk_queue *queue, const vk_extent *extent);
    void *(*allocate)(vk_queue *queue, size_t bytes); /* called once; zeroed; NULL: no memory, or the queue failed */
    int (*use)(vk_queue *queue, const vk_extent *extent, void *scratch); /* 0: no memory, or the queue failed */
    void (*enter)(vk_queue *queue);                          /* before a request: makes this thread use this device */
    void *(*stage)(vk_queue *queue, void *to, size_t bytes); /* host memory to fill ... */
    void (*commit)(vk_queue *queue, void *to, size_t bytes); /* ... which commit() copies to `to` */
    void (*fetch)(vk_queue *queue, void *host, const void *from, size_t bytes); /* waits for all submitted work */
    void (*copy)(vk_queue *queue, void *to, const void *from, size_t bytes);
    void (*linear)(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *w,
                   vk_epilogue epilogue);
    void (*grouped)(vk_queue *queue, const vk_gemm_job *jobs, int count, vk_epilogue epilogue); /* without biases */
    void (*attention)(vk_queue *queue, const vk_attention_job *job);
    /* Records a time stamp and returns the host's clock, or 0 if timing is off. Keeps *token (unless NULL) for
     * token(). */
    int64_t (*mark)(vk_queue *queue, int slot, const int32_t *token);
    vp_result (*wait)(vk_queue *queue, int slot, vp_error *error); /* waits until the mark is reached */
    int64_t (*between)(vk_queue *queue, int from, int to);         /* ns between two reached marks */
    /* the token kept by mark `slot`, at `position` of the sequence */
    int32_t (*token)(vk_queue *queue, int slot, int position);
    int (*reserve_log)(vk_queue *queue, int64_t count); /* makes room for this many launch stamps; 0: failed */
    /* Writes times to queue->log; mark 0 is the start of the request. 0: some are missing; the next request will have
     * all */
    int (*read_log)(vk_queue *queue);
    void (*recover)(vk_queue *queue);               /* waits; clears the error if the device can continue */
    uint64_t (*pinned_bytes)(vk_queue *queue);      /* size of host memory that the device can access */
    void *(*borrow)(vk_queue *queue, size_t bytes); /* memory for a measurement, filled with 0x3c; NULL: no
                                                         * memory */
    void (*give_back)(vk_queue *queue, void *memory, size_t bytes); /* waits first */
    const char *(*launch_timer)(vk_queue *queue); /* vp_engine_launch_timer; queue NULL: for any engine */
    const vp_range_hooks *(*range_hooks)(void);   /* sends host ranges to an attached tool; NULL: built without NVTX */
    /* the following are optional, otherwise NULL */
    const char *(*gemm_name)(int32_t index); /* name of a kernel that this processor can run; NULL past the end */
    vp_result (*device_count)(int32_t *count, vp_error *error);
    vp_result (*device_describe)(int32_t index, vp_device_info *info, vp_error *error);
    vp_result (*telemetry)(int32_t index, vp_telemetry *out, vp_error *error);
    vp_result (*energy)(int32_t index, double *joules, vp_error *error);
    vp_result (*device_reset)(int32_t index, vp_error *error);
    vp_result (*device_switch)(int32_t index, uint32_t bit, vp_error *error); /* vp_device_ways */
    void (*experts)(vk_queue *queue, const vk_experts_job *job); /* many tokens in bf16; lists stay on the device */
    const vk_decode_kernels *decode;                             /* if NULL, single tokens use the operations above */
    /* A recorded step. Work submitted between record() and keep(key) is recorded, not run. replay(key) submits it; 0:
     * unknown key. If recording fails, queue->note gives the reason, and requests are not affected. */
    int (*replay)(vk_queue *queue, uint64_t key);
    int (*record)(vk_queue *queue); /* 0: recording is not available */
    void (*keep)(vk_queue *queue, uint64_t key);
    /* runs work(context), which submits operations, and keeps the device's threads ready meanwhile; NULL: no threads */
    void (*together)(vk_queue *queue, void (*work)(void *context), void *context);
    const struct vk_backend *by_cublas; /* the same device with VP_GPU_LIBRARY */
} vk_backend;

VP_EXTERN_C_BEGIN
const vk_backend *vk_cpu_code(void);
/* The GPU's table is a weak symbol: the engine finds it if nvcc's object of vlmprof_kernels.cu is also linked. */
#ifdef __GNUC__
const vk_backend *vk_gpu_code(void) __attribute__((weak));
#endif
VP_EXTERN_C_END

static inline size_t vk_round_up(size_t count, size_t to) { return (count + to - 1) / to * to; }
/* size of the weights of 32 outputs: of the compute type, or blocks of 32 scales (bf16) and their integers */
static inline size_t vk_panel_bytes(const vk_linear *linear) {
    size_t k = (size_t)linear->k_padded;
    return linear->bits ? k / VK_QUANT_BLOCK * 32 * (2 + VK_QUANT_BLOCK * (size_t)linear->bits / 8)
                        : k * 32 * (linear->wide ? 4 : 2);
}
static inline char *vk_panel_at(const vk_linear *linear, int panel) {
    return (char *)linear->weights + (size_t)panel * vk_panel_bytes(linear);
}
/* the address of the scales if the backend is row_major */
static inline uint16_t *vk_row_scales(const vk_linear *linear) {
    return (uint16_t *)((uintptr_t)linear->weights
                        + (uintptr_t)linear->n * (uintptr_t)linear->k_padded * (uintptr_t)linear->bits / 8);
}
static inline size_t vk_max(size_t one, size_t other) { return one > other ? one : other; }

/* The layout function runs twice: with a NULL base it adds up the sizes, with a base it assigns the addresses. */
typedef struct vk_arena {
    char *base;
    size_t used;
} vk_arena;
static inline void *vk_take(vk_arena *arena, size_t count, size_t element) {
    void *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used = vk_round_up(arena->used + count * element, 64);
    return taken;
}
#endif
