/* backend.h - what the engine asks of a device, and a device of the engine: queue, jobs, one table of functions
 *
 * vlmprof_kernels.cu contains the devices: the CPU, and the GPU if nvcc compiled the file a second time. Their two
 * tables are all that is visible outside. */
#ifndef VK_BACKEND_H
#define VK_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

enum {
    VK_PAD = 32,           /* columns of a packed weight panel, and what rows are padded to */
    VK_EXPERTS_MAX = 1024, /* the router keeps one row of probabilities in shared memory */
    VK_POOL_MAX = 1024,    /* heads * keys of a pooling window */
    VK_ROWS_MAX = 32,      /* rows of one GEMM tile */
    VK_THREADS_MAX = 4096
};

/* where work is sent: the part of a backend's state that launchers see; vk_cpu and vk_cuda start with it */
typedef struct vk_work {
    int64_t launches, flops, bytes;
} vk_work;

/* describes the next operation. vk_begin takes it and resets it, so no operation inherits the description of the one
 * before */
typedef struct vk_next {
    int32_t kind, shape[4];               /* vp_launch_kind; vk_shape */
    uint32_t grid, threads, shared_bytes; /* shared_bytes: given at the launch */
    const void *kernel;                   /* GPU: what the driver knows the registers of */
} vk_next;

typedef struct vk_spans {
    vp_span *span;
    int64_t capacity, count;
} vk_spans;

typedef struct vk_queue {
    vk_work work; /* of everything sent so far */
    int dry;      /* count only, and log without times: a recorded step will be replayed next */
    int threads;  /* CPU */
    void *stream; /* GPU: cudaStream_t */
    /* GPU: the first CUDA or cuBLAS status that was not success, and where; it sticks, and nothing more is sent */
    int error, line;
    const char *error_at, *file; /* the call or the kernel; the source file of `line` */
    const char *last_sent, **first_sent; /* GPU: the last operation; where the next one's name goes, or NULL */
    char note[400];       /* GPU: what was done in another way than intended, and why */
    int timing;           /* vp_timing of the request that runs */
    int64_t stamps;       /* taken in it */
    vp_launch *log;       /* VP_TIMING_KERNEL: a record of each operation; else NULL */
    int traced;           /* GPU: the device itself times them, also in a recorded step (kernels/gpu/cupti.h) */
    int64_t log_capacity, log_count;
    int32_t step, part, block; /* what the records belong to */
    vk_next next;
    vk_spans *spans; /* CPU: what each thread does in parallel loops, in addition to the log; otherwise NULL */
} vk_queue;

/* How a row of the fused projection, f32 [q | k | v], becomes heads: what is normed, and how it is turned. The first
 * heads / kv_heads heads of q read the first head of k and v, and so on. */
enum { VK_NORM_NONE, VK_NORM_WHOLE, VK_NORM_HEAD }; /* as vp_qk_norm (vlmprof_config.h) */
typedef struct vk_heads {
    int heads, kv_heads, head_dim;
    int norm;
    float eps, clip;                /* clip: after the norm, everything is cut to -clip..clip; INFINITY: nothing is */
    const float *q_norm, *k_norm;   /* f32 [width] for the whole, [head_dim] for a head alone */
    const float *cs;                /* f32 [positions, head_dim]: cos, then sin */
    int window;                     /* keys that a token sees, its own among them; 0: all up to it */
    /* of rows whose positions have gaps, which the window counts: int32 [rows], the keys before each row that have left
     * its window, the device's and the host's; NULL: no gaps */
    const int32_t *gone, *gone_counted;
} vk_heads;
/* the keys before row `row` that have left its window */
#define VK_GONE(gone, window, row) \
    ((gone) ? (gone)[row] : (window) && (row) + 1 > (window) ? (row) + 1 - (window) : 0)

/* Where embeddings are, in-type: rows of `ld` elements or, of a tied head stored once, the panels of a vk_linear
 * whose k_padded is ld. `scale` multiplies them, and in bf16 mode the product rounds; 0: they stay unchanged. */
typedef struct vk_table {
    const void *rows;
    int ld, panels;
    float scale;
} vk_table;

/* A picture of any size in patches, and the side of the square of learned positions that is stretched over it. Its
 * patches come view by view, row by row in a view of pool x pool. */
typedef struct vk_picture_grid {
    int rows, cols, pool, side;
} vk_picture_grid;

/* Scores of `queries` rows of q against all keys, in-type as in vk_attention_job, without a mask: for each query and
 * head the largest and the sum (tops f32 [queries, heads, 2]), and what each key receives of all their attention
 * (received f32 [keys], the mean over heads). scale: of a product */
typedef struct vk_scores_job {
    float *tops, *received;
    const void *q, *k;
    int queries, keys, heads, kv_heads, head_dim, ldq, ldk;
    float scale;
} vk_scores_job;

/* The shared kernels, the same for every device. X(name, parameters after the queue). Pointers are the device's
 * memory. FLOPs count additions, multiplications, divisions and exponentials as one each; bytes count every operand
 * read or written once. A new kernel is a row here and, in a file of kernels/shared/, its body with its launcher l_NAME
 * after it, which says the FLOPs and bytes. */
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
    X(silu_mul, void *out, const float *gate_up, int rows, int width, int ld_out, int wide) \
    X(gelu_mul, void *out, const float *gate_up, int rows, int width, int ld_out, int wide) \
    X(embed, float *out, const vk_table *table, const int32_t *ids, int rows, int width, int wide) \
    X(scatter_add, float *stream, const float *features, const int32_t *index, int rows, int width) \
    X(qk_norm_rope, void *q, void *key, void *value, const float *qkv, const vk_heads *heads, const int32_t *position, \
      int rows, int ldq, int wide) \
    /* keys: what *position + 1 will be; used only for counting */ \
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
    /* of pruning image tokens (kernels/shared/prune.h) */ \
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
#define VK_KERNEL_MEMBER(name, ...) void (*name)(vk_queue *queue, __VA_ARGS__);
    VK_KERNELS(VK_KERNEL_MEMBER)
#undef VK_KERNEL_MEMBER
} vk_kernels;

/* Pointers named y, x, to, from are the backend's memory unless they say host. Sending never waits. A failure on a
 * GPU sticks to the queue: nothing more is sent, and `wait` returns it. */

/* A linear layer: y = x W^T + bias. Weights are in-type; W has rows of k padded to k_padded, row after row if the
 * backend says row_major, otherwise in panels (vlmprof_kernels.cu >>gemm). */
enum { VK_RUNS_MAX = 3 };
typedef struct vk_stretch { /* of panels of one format: its first, which is at these bytes */
    int first, format;
    size_t at;
} vk_stretch;
typedef struct vk_linear {
    void *weights;
    const float *bias; /* f32 [n] or NULL */
    void *bias_bf16;   /* the same rounded, for bf16 results of a backend with rounds_bias; else NULL */
    int n, k, k_padded;
    /* f32 weights and inputs; the router's are so in bf16 mode too, because a flipped expert costs more than rounding.
     * Such a layer gives f32: only the _F32 epilogues */
    int wide;
    int bits; /* 8 or 4: integers with a scale per row and VK_QUANT_BLOCK values; 0: in-type */
    uint16_t *scales; /* bf16, row after row after the integers if the backend says row_major; panels have their own */
    /* panels in the blocks of a GGUF file, a run for each tensor of another format; then bits is 4. 0: it has none */
    int run_count;
    vk_stretch runs[VK_RUNS_MAX];
} vk_linear;
/* Formats of panels of blocks (kernels/cpu/gguf_rows.h): vp_dtype's numbers. Q6_K's integers have 8 bits there. */
enum { VK_Q8_0 = 3, VK_Q4_0 = 5, VK_Q4_K = 6, VK_Q6_K = 7, VK_SUPER_BLOCK = 256 };
/* VK_QUANT_ORDER: in packed files the number of the order that quant_rows.h describes; another order, another number */
enum { VK_QUANT_BLOCK = 32, VK_QUANT_ORDER = 1 };

/* y (in-type [m, ldy], or f32 [m, ldy] for the _F32 ones) = epilogue(x W^T + bias); ADD: y +=. GELU is the exact one,
 * GELU_TANH its approximation. */
typedef enum vk_epilogue {
    VK_STORE, VK_STORE_F32, VK_QUICKGELU, VK_ADD_F32, VK_GELU, VK_GELU_TANH
} vk_epilogue;
typedef struct vk_gemm_job {
    void *y;
    const void *x;
    const vk_linear *w;
    int m, ldy, ldx;
} vk_gemm_job;

/* softmax(q k^T / sqrt(head_dim)) v of `batch` sequences of `tokens` rows that follow each other; in-type rows, heads
 * side by side in one row. kv_heads divides heads. Row r sees all keys; if causal, those before r + 1, or before
 * reach[r] where there is a reach (int32 [tokens], at least r + 1); and with a window none before r + 1 - window, or
 * gone[r]. */
typedef struct vk_attention_job {
    void *y;
    const void *q, *k, *v;
    int batch, tokens, heads, kv_heads, head_dim, ldy, ldq, ldk, causal, window; /* the last two: batch 1 */
    const int32_t *reach, *gone; /* gone: as in vk_heads */
    int64_t scores; /* of a head, to be counted; 0: what batch, tokens and causal say */
} vk_attention_job;

/* What routed tokens get from their experts: stream f32 [tokens, down->n] += the sum over a token's slots of weight *
 * down(silu(gate(x)) * up(x)). Weights are those of expert 0; the others follow at these distances. start, list,
 * slot_row and tiles are what moe_lists made. */
typedef struct vk_experts_job {
    float *stream;
    void *y;       /* in-type [pairs, ldy], ldy a multiple of 8: what each slot adds, in the row order of the lists */
    void *hidden;  /* in-type [pairs, padded down->k]: for silu(gate) * up */
    const void *x; /* in-type [tokens, ldx] */
    const vk_linear *gate_up, *down;
    size_t gate_up_stride, down_stride; /* bytes */
    const int32_t *start, *list, *slot_row, *tiles;
    const float *weight; /* [pairs] of the routing, token * top_k + slot */
    int ldx, ldy, pairs, top_k, experts;
    int tile_rows; /* of tiles: what the backend's tile_rows() said */
} vk_experts_job;
enum { VK_TILE_ROWS = 128 }; /* at least */

/* Which experts many rows go to: normed = norm(x), what the experts read, and the top_k of softmax(router(normed)) */
typedef struct vk_route_job {
    void *normed;              /* in-type [rows, ld] */
    int32_t *index;            /* [rows, top_k] */
    float *weight;             /* [rows, top_k]; with norm_topk each row's sum to 1 */
    const float *x, *norm;     /* f32 [rows, router->k], [router->k] */
    const vk_linear *router;
    float eps;
    int rows, ld, top_k, norm_topk, wide;
} vk_route_job;

/* One transformer block over one token at *position, and what its kernels pass on to each other. Weights are as in
 * vk_linear; gate_up and down are those of expert 0; the others follow at these distances. A dense block has no router:
 * gate_up and down are its own. */
enum { VK_SPLITS = 8, VK_DECODE_BLOCKS = 1024 }; /* at most, of one launch */
typedef struct vk_decode_job {
    const vk_linear *att_proj, *attn_out, *router, *gate_up, *down;
    size_t gate_up_stride, down_stride; /* bytes */
    const float *attn_norm, *ff_norm;                   /* f32 [d], or NULL: of what attention and MLP read; .. */
    const float *attn_after, *ff_after;                 /* .. and of what they add to x */
    int gelu;                                           /* 1: GELU by way of tanh in the dense MLP, not SiLU */
    vk_heads heads;                                     /* its table has max_sequence positions */
    float eps;
    int d, expert_dim, top_k, norm_topk, max_sequence;  /* expert_dim: the dense MLP's as well */
    int keys; /* what *position + 1 will be; used only for counting */
    const int32_t *position;
    float *x;                               /* f32 [d], the residual stream */
    float *qkv, *scratch, *logits, *weight; /* f32 [q | k | v], [vk_decode_floats], [experts], [top_k] */
    float *y;                               /* f32 [d]: what is normed and added */
    void *key, *value;                      /* in-type [max_sequence, k's width] */
    void *q, *attended, *normed, *hidden;   /* in-type [padded q], same, [padded d], [top_k, padded expert_dim] */
    int32_t *index;                         /* [top_k] */
} vk_decode_job;

typedef struct vk_decode_end_job {
    float *x;
    const float *norm;
    float eps;
    const vk_linear *head;
    vk_table table; /* of the embedding of the token before, which x came from */
    float *logits, *scratch;
    int32_t *token, *position; /* the largest logit's, -1 for logits that are not numbers; one more than before */
} vk_decode_end_job;

typedef struct vk_decode_kernels {
    void (*qkv)(vk_queue *queue, const vk_decode_job *job);       /* qkv = att_proj(norm(x)) */
    void (*attention)(vk_queue *queue, const vk_decode_job *job); /* cache appended, q against it */
    void (*attn_out)(vk_queue *queue, const vk_decode_job *job);  /* x += attn_out(attention) */
    void (*router)(vk_queue *queue, const vk_decode_job *job);    /* logits = router(norm(x)), normed */
    /* index and weight from the logits; hidden = silu(gate normed) * up normed */
    void (*gate_up)(vk_queue *queue, const vk_decode_job *job);
    void (*down)(vk_queue *queue, const vk_decode_job *job);      /* x += sum of weight * down(hidden) */
    void (*dense_gate_up)(vk_queue *queue, const vk_decode_job *job); /* hidden = silu(gate norm(x)) * up norm(x) */
    void (*dense_down)(vk_queue *queue, const vk_decode_job *job);    /* x += down(hidden) */
    void (*head)(vk_queue *queue, const vk_decode_end_job *job);  /* logits = head(norm(x)) */
    void (*pick)(vk_queue *queue, const vk_decode_end_job *job);  /* token, position */
} vk_decode_kernels;

/* the largest sizes that an engine will request */
typedef struct vk_extent {
    int wide, experts;
    int quant_k; /* k_padded of the longest rows of integers; 0: there are none */
    int64_t quant_values; /* of the largest dense linear of integers that meets many rows */
    int64_t marks;
    vk_attention_job vit, llm; /* sizes only */
} vk_extent;

typedef struct vk_setup {
    int device, threads, wide;
    int counts_only; /* nothing will run */
    uint32_t gpu;    /* vp_gpu_switch */
    const char *gemm;
} vk_setup;

typedef struct vk_backend {
    vk_kernels kernels;
    int row_major;      /* weights; see vk_linear */
    int host_memory;    /* the host reads and writes this memory itself, and inputs need no copy */
    int view_batch;     /* views that pass through the vision stages together */
    int run_ahead;      /* results are known late: a decode step is sent before the token before it is known */
    int rounds_bias;    /* bf16 results get their bias in bf16 */
    size_t stage_bytes; /* most bytes of one stage() */
    int32_t toolkit;    /* CUDA version compiled with */
    vp_result (*open)(const vk_setup *setup, vk_queue **queue, vp_error *error);
    void (*close)(vk_queue *queue); /* waits, and frees all that the queue contains */
    void (*describe)(vk_queue *queue, char *text, size_t capacity);
    const char *(*gemm)(vk_queue *queue, int wide, int rows);
    uint64_t (*free_bytes)(vk_queue *queue); /* 0: unknown */
    size_t (*scratch_bytes)(vk_queue *queue, const vk_extent *extent);
    void *(*allocate)(vk_queue *queue, size_t bytes); /* once; zeroed; NULL: no room, or the queue failed */
    int (*use)(vk_queue *queue, const vk_extent *extent, void *scratch); /* 0: no memory, or the queue failed */
    void (*enter)(vk_queue *queue);                          /* before a request: this thread uses this device */
    void *(*stage)(vk_queue *queue, void *to, size_t bytes); /* host memory to fill ... */
    void (*commit)(vk_queue *queue, void *to, size_t bytes); /* ... and what sends it to `to` */
    void (*fetch)(vk_queue *queue, void *host, const void *from, size_t bytes); /* waits for all that was sent */
    void (*copy)(vk_queue *queue, void *to, const void *from, size_t bytes);
    void (*linear)(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *w,
                   vk_epilogue epilogue);
    void (*grouped)(vk_queue *queue, const vk_gemm_job *jobs, int count, vk_epilogue epilogue); /* without biases */
    void (*attention)(vk_queue *queue, const vk_attention_job *job);
    /* a time stamp, unless timing is off: returns the host's clock, otherwise 0. Keeps *token (unless NULL) for
     * token() */
    int64_t (*mark)(vk_queue *queue, int slot, const int32_t *token);
    vp_result (*wait)(vk_queue *queue, int slot, vp_error *error); /* until the mark is reached */
    int64_t (*between)(vk_queue *queue, int from, int to);         /* ns between two marks that were reached */
    /* the token that mark `slot` waited for, which is at `position` of the sequence */
    int32_t (*token)(vk_queue *queue, int slot, int position);
    int (*reserve_log)(vk_queue *queue, int64_t count); /* stamps of so many launches; 0: no memory, or it failed */
    /* times into queue->log; mark 0 began the request. 0: not all are known; the next request's will be */
    int (*read_log)(vk_queue *queue);
    void (*recover)(vk_queue *queue);                   /* forgets the error where the device can go on; waits */
    uint64_t (*pinned_bytes)(vk_queue *queue);          /* of the host's memory that the device reaches */
    void *(*borrow)(vk_queue *queue, size_t bytes);     /* for a measurement, filled with 0x3c; NULL: no room */
    void (*give_back)(vk_queue *queue, void *memory, size_t bytes); /* waits */
    const char *(*launch_timer)(vk_queue *queue);       /* vp_engine_launch_timer; NULL: of any engine */
    const vp_range_hooks *(*range_hooks)(void); /* of the host for an attached tool; NULL: built without NVTX */
    /* only if the table has them, otherwise NULL */
    const char *(*gemm_name)(int32_t index); /* kernels this processor can run; NULL past the end */
    vp_result (*device_count)(int32_t *count, vp_error *error);
    vp_result (*device_describe)(int32_t index, vp_device_info *info, vp_error *error);
    vp_result (*telemetry)(int32_t index, vp_telemetry *out, vp_error *error);
    vp_result (*energy)(int32_t index, double *joules, vp_error *error);
    vp_result (*device_reset)(int32_t index, vp_error *error);
    vp_result (*device_switch)(int32_t index, uint32_t bit, vp_error *error); /* vp_device_ways */
    /* of moe_lists' tiles, for what is in `job` but lists and tiles; .. */
    int (*tile_rows)(vk_queue *queue, const vk_experts_job *job);
    void (*experts)(vk_queue *queue, const vk_experts_job *job); /* .. many tokens in bf16; lists stay on the device */
    int (*route)(vk_queue *queue, const vk_route_job *job);      /* in one launch; NULL or 0: not these sizes */
    const vk_decode_kernels *decode; /* without it the operations above serve single tokens */
    /* A recorded step. record() .. keep(key) takes what is sent without running it; replay(key) sends it, 0: unknown
     * key. If recording fails, queue->note says so, and no request is affected. */
    int (*replay)(vk_queue *queue, uint64_t key);
    int (*record)(vk_queue *queue); /* 0: recording does not work here */
    void (*keep)(vk_queue *queue, uint64_t key);
    /* runs work(context), which sends operations, with the device's threads at hand throughout; NULL: there are none */
    void (*together)(vk_queue *queue, void (*work)(void *context), void *context);
} vk_backend;

VP_EXTERN_C_BEGIN
const vk_backend *vk_cpu_code(void);
/* the GPU's table. A weak symbol: link the object that nvcc makes of vlmprof_kernels.cu next to the other one, and the
 * engine finds it. */
#ifdef __GNUC__
const vk_backend *vk_gpu_code(void) __attribute__((weak));
#endif
VP_EXTERN_C_END

static inline size_t vk_round_up(size_t count, size_t to) { return (count + to - 1) / to * to; }
/* of the weights of 32 outputs: in-type, or blocks of 32 scales (bf16) and their integers */
static inline size_t vk_panel_bytes(const vk_linear *linear) {
    size_t k = (size_t)linear->k_padded;
    return linear->bits ? k / VK_QUANT_BLOCK * 32 * (2 + VK_QUANT_BLOCK * (size_t)linear->bits / 8)
                        : k * 32 * (linear->wide ? 4 : 2);
}
/* of the weights of 32 outputs in blocks */
static inline size_t vk_blocks_bytes(int format, int k_padded) {
    size_t k = (size_t)k_padded;
    return format == VK_Q8_0   ? k / VK_QUANT_BLOCK * 32 * 34
           : format == VK_Q4_0 ? k / VK_QUANT_BLOCK * 32 * 18
           : format == VK_Q4_K ? k / VK_SUPER_BLOCK * 32 * 148
                               : k / VK_SUPER_BLOCK * 32 * 274;
}
/* which run a panel is in */
static inline const vk_stretch *vk_stretch_of(const vk_linear *linear, int panel) {
    const vk_stretch *run = linear->runs;
    for (int i = 1; i < linear->run_count; i++) if (linear->runs[i].first <= panel) run = &linear->runs[i];
    return run;
}
static inline char *vk_panel_at(const vk_linear *linear, int panel) {
    const vk_stretch *run = vk_stretch_of(linear, panel);
    if (!linear->run_count) return (char *)linear->weights + (size_t)panel * vk_panel_bytes(linear);
    return (char *)linear->weights + run->at
           + (size_t)(panel - run->first) * vk_blocks_bytes(run->format, linear->k_padded);
}
/* of a linear in blocks, panels to its last row */
static inline size_t vk_runs_bytes(const vk_linear *linear) {
    return (size_t)(vk_panel_at(linear, (linear->n + VK_PAD - 1) / VK_PAD) - vk_panel_at(linear, 0));
}
/* where scales are if the backend says row_major */
static inline uint16_t *vk_row_scales(const vk_linear *linear) {
    return (uint16_t *)((uintptr_t)linear->weights
                        + (uintptr_t)linear->n * (uintptr_t)linear->k_padded * (uintptr_t)linear->bits / 8);
}
static inline size_t vk_max(size_t one, size_t other) { return one > other ? one : other; }

/* One layout function runs twice: with a NULL base it adds up the bytes, with a base it hands out the addresses. */
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
