/* engine_internal.h - internals of an engine, shared by the files in this folder
 *
 * The path of a request: request.c checks it and copies its inputs to the device. stages.c submits the stages in the
 * order given by the model's config. record.c records the time of each. Every operation goes to the backend
 * (backend.h). */
#ifndef VK_ENGINE_INTERNAL_H
#define VK_ENGINE_INTERNAL_H

#include "description.h"
#include "prune.h"

#include <math.h>

/* All buffers of a request, sized once for the longest request. In-type buffers have VK_ROWS_MAX spare rows and
 * rows padded to VK_PAD. */
typedef struct vk_buffers {
    /* vision: `view_batch` views at a time */
    float *pixels, *masks; /* f32 [max_views, patches, ..]; the request's own arrays if the backend uses host memory */
    int32_t *dead;         /* int32 [max_views] */
    void *patches, *vit_normed, *vit_qkv, *vit_attended, *vit_hidden; /* in-type; f32 patches for a native tower */
    float *vit_gate_up;                                               /* f32, for gated MLPs: vk_gated_rows at a time */
    float *patch_rows, *vit_x;                                        /* f32 [batch * positions, vit_width] */
    float *hidden; /* f32 [layers, max_views, positions, vit_width]: the used block outputs */
    /* for a native tower: data of the image's patches in row order; positions of each view's patches; cos and sin of
     * rows and columns. If windows span crops, places: int32 [tokens, patches of a window], -1: no patch */
    int32_t *places, *view_place;
    float *vit_cs;
    /* pool_query_in: the connector's input, in-type. Connectors without attention pooling need only this buffer,
     * projector_hidden and, before a norm, projector_gate_up in f32. */
    void *pool_keys, *pool_query_in, *pool_attended, *pool_out, *projector_hidden;
    float *pool_query, *pool_key_value, *projector_gate_up;
    float *image_features; /* f32 [1 + deepstack_count, max_views, tokens_per_crop, d_model] */
    /* language */
    /* position: of the first row in progress, one per region (prune.h), and a spare one */
    int32_t *ids, *image_index, *position, *token;
    float *x, *qkv, *logits, *cs, *decode_scratch;
    /* with M-RoPE, cs belongs to the request and is composed from the table of all positions: int32 [3, max_sequence],
     * [head_dim / 2] */
    float *cs_table;
    float *cs_local; /* like cs, for blocks with a window */
    int32_t *reach;  /* int32 [max_sequence]: the request's span_ends */
    int32_t *rope_positions, *rope_axes;
    float *y; /* f32 [max_sequence, d_model]: outputs before their norm; only with norms after attention and MLP */
    void *normed, *normed_wide, *q, *attended; /* normed_wide: f32, the router's input */
    void *key, *value;                         /* in-type [blocks, max_sequence, kv_head_count * head_dim] */
    int32_t *expert_index, *expert_count, *expert_start, *expert_list, *slot_row, *expert_tiles;
    float *router_logits, *expert_weight, *gate_up;
    void *gathered, *expert_hidden, *expert_out; /* expert_out: f32, or the input type if the backend has `experts` */
    void *scratch;                               /* for the backend */
    vk_prune_buffers prune;                      /* if the engine can prune */
} vk_buffers;

/* sequences of a native tower for one attention call: their count, and the rows of each */
typedef struct vk_window {
    int first, batch, tokens;
} vk_window;
enum { VK_WINDOWS = 4 }; /* kinds per image: whole, at the right edge, at the lower edge, and in the corner */
/* an image of a native tower, and its first view */
typedef struct vk_picture {
    vk_picture_grid grid;
    int first, views;
} vk_picture;

struct vp_engine {
    vp_model_config config;
    const vk_backend *backend;
    vk_queue *queue;
    vk_model model;
    vk_buffers buffers;
    vk_extent extent;
    int wide;
    vk_precision bits;
    int max_sequence, max_views, view_batch, vit_layer_at[VP_VIT_LAYERS_MAX];
    /* rows of the expert buffers: (token, slot) pairs processed at once; for a dense MLP: tokens */
    int moe_rows;
    /* the host's part of a grouped product */
    vk_gemm_job *jobs;
    int32_t *counts;
    vk_spans spans;
    vp_launch *log; /* VP_TIMING_KERNEL; reused by later requests */
    int repeats;    /* 1: the last request must run again */
    int64_t log_capacity;
    size_t weights_bytes, memory_bytes, cache_bytes, vision_bytes, scratch_bytes, prune_bytes;
    vp_opening opening;
    size_t counted_space_bytes; /* counts_only: size of the unused addresses that replace memory; otherwise 0 */
    const void *weights;
    vp_ceilings ceilings; /* bytes_per_s 0: not measured yet */
    char device[160], device_note[sizeof((vp_error *)0)->text];
    /* state of the running request */
    const float *pixels, *masks;
    int has_reach, image_tokens;
    int64_t scores[2]; /* attention scores per head over all input tokens: [0] without the sliding window, [1] with it;
                        * 0: the causal count */
    /* for a native tower, [max_views]: the images, each of which is a sequence, and the windows of all images */
    vk_picture *pictures;
    vk_window *wholes, *windows;
    int picture_count, window_count;
    int32_t *host_places; /* for a native tower: host buffer for the request's data */
    vk_work counted;
    int64_t since_ns, logged;
    /* stages in order of their end, each with its mark; a stage that pruning interrupts ends more than once */
    vk_segment *segments;
    int segment_count;
    int prunes; /* same as in vp_engine_options */
    vk_pruning pruning;
};

/* ---- memory.c */

/* Returns 1 if the backend runs the experts of many tokens without waiting for the host. */
static inline int vk_has_tiles(const vp_engine *engine) {
    return engine->backend->experts && !engine->wide && engine->config.expert_count;
}
/* 1: the backend's product applies the gate of an MLP with so many hidden values */
static inline int vk_gates_in_product(const vp_engine *engine, int hidden) {
    return engine->backend->gates && hidden % VK_PAD == 0;
}
static inline int vk_has_integers(const vk_precision *bits) { return bits->blocks || bits->head || bits->vision; }
static inline int vk_padded(int n) { return (int)vk_round_up((size_t)n, VK_PAD); }
static inline int vk_patch_values(const vp_model_config *config) {
    return config->geometry.patch_px * config->geometry.patch_px * 3;
}
static inline int vk_q_width(const vp_model_config *config) { return config->head_count * config->head_dim; }
static inline int vk_kv_width(const vp_model_config *config) { return config->kv_head_count * config->head_dim; }
static inline int vk_vit_patches(const vp_model_config *config) {
    return config->vit_positions - config->vit_class_token;
}
/* image tokens of a view; an upper bound if windows span crops */
static inline int vk_view_tokens(const vp_model_config *config) {
    int side = config->geometry.crop_px / config->geometry.patch_px,
        across = config->window_pool ? (side + config->window_pool - 1) / config->window_pool : 0;
    return across ? across * across : vp_geometry_tokens_per_crop(&config->geometry);
}
/* the width of a window's concatenated patches */
static inline int vk_window_width(const vp_model_config *config) {
    return config->geometry.pool * config->geometry.pool * config->vit_width;
}
static inline int vk_has_mrope(const vp_model_config *config) {
    return config->rope.sections[0] + config->rope.sections[1] + config->rope.sections[2] > 0;
}
/* number of rows of a gated MLP that are processed at once */
static inline int vk_gated_rows(const vp_engine *engine) {
    int rows = engine->view_batch * engine->config.vit_positions;
    return rows < 4096 ? rows : 4096;
}
/* hidden width of an expert, or of the dense MLP */
static inline int vk_mlp_dim(const vp_model_config *config) {
    return config->expert_count ? config->expert_dim : config->mlp_dim;
}
/* the linears whose bias is added to bf16 results if the backend rounds it; NULL after the last one */
vk_linear *vk_rounded(vp_engine *engine, int index);
void vk_fill_extent(vp_engine *engine);
void vk_layout_buffers(vk_arena *arena, vp_engine *engine);
/* Computes the sizes of weights and buffers; vk_allocate sets their addresses. */
void vk_measure(vp_engine *engine);
/* Puts weights and buffers into one allocation. */
vp_result vk_allocate(vp_engine *engine, vp_error *error);
/* Sets the same layout with addresses but no memory, for requests that are only counted. */
vp_result vk_lay_out(vp_engine *engine, vp_error *error);
void vk_free_counted_space(vp_engine *engine);
/* copies host memory to the backend in pieces */
void vk_send(vp_engine *engine, void *to, const void *from, size_t bytes);
/* cos and sin of every position; the reference computes frequencies and angles in fp32 */
void vk_fill_rope(float *cs, int positions, int head_dim, double theta, const vp_rope *rope);

/* ---- record.c */
/* counts the work submitted since the previous stage ended */
void vk_end_count(vp_engine *engine, vp_stage_times *times, vp_stage stage);
/* Ends a stage. The host's time and the counts are known now, the device's time only after the request. */
void vk_end_stage(vp_engine *engine, vp_reply *reply, vp_stage stage);
/* copies for request->dump: after the vision stages; after an active block that processed `rows` rows */
void vk_dump_vision(vp_engine *engine, const vp_request *request);
void vk_dump_block(vp_engine *engine, const vp_request *request, int slot, int rows);
void vk_dump_logits(vp_engine *engine, const vp_dump *dump, int step);
/* Copies for a dump; they are not counted or timed, because they are not the model's work. */
void vk_dump_fetch(vp_engine *engine, void *host, const void *from, size_t bytes);

/* ---- stages.c */

/* the region of a block */
static inline int vk_region_of(const vp_engine *engine, int block) {
    int region = 0;
    for (int r = 1; r < engine->pruning.region_count; r++)
        if (engine->pruning.regions[r].first_block <= block) region = r;
    return region;
}

/* sets the model part and the block for subsequent work; -1: no block */
static inline void vk_at(vk_queue *queue, vp_part part, int block) {
    queue->part = (int32_t)part;
    queue->block = block;
}
/* pixels of `count` views, starting at `first` -> the required block outputs in buffers.hidden, after the tower's last
 * norm if it has one */
void vk_vit(vp_engine *engine, int first, int count);
/* the connector: buffers.hidden -> buffers.image_features of `count` views */
void vk_connector(vp_engine *engine, int first, int count);
/* x = the embeddings of `rows` ids */
void vk_embed(vp_engine *engine, const int32_t *ids, int rows);
/* adds buffers.image_features to x at image_index, or replaces x by them */
void vk_add_image(vp_engine *engine);
/* computes cos and sin of the `rows` positions that the request can reach */
void vk_compose_rope(vp_engine *engine, int rows);
/* computes the three positions of the first `count`: int32 [3, stride] */
void vk_fill_positions(const vp_request *request, int32_t *positions, size_t stride, int count);
/* x += sum of weight * expert(normed), for `rows` tokens, starting at row `first` of x */
void vk_moe(vp_engine *engine, int block, int first, int rows, int top_k);
/* one transformer block over `rows` new tokens, starting at *buffers.position (`position` on the host); x is the
 * residual stream */
void vk_block_forward(vp_engine *engine, int block, int rows, int position, int top_k);
/* submits the stages of a request up to the first token, each with its vk_end_stage */
void vk_prefill(vp_engine *engine, const vp_request *request, vp_reply *reply);
/* submits the stages of one decode step at `position` */
void vk_step(vp_engine *engine, const vp_request *request, int position);
/* computes the logits of residual row `row` */
void vk_head(vp_engine *engine, int row);
/* Picks the next token from the logits. The position increases by the `rows` tokens just processed, or by one if single
 * tokens have their own kernels. */
void vk_sample(vp_engine *engine, int rows);
/* Submits a decode step: kernel by kernel the first time, then recorded, then replayed. */
void vk_send_step(vp_engine *engine, const vp_request *request, int position);

/* ---- devices.c */
const vk_backend *vk_gpu(void); /* NULL if this build has no GPU code */
/* finds the backend and device number for the name `device` */
vp_result vk_choose_device(vp_engine *engine, const char *device, int *index, vp_error *error);

/* ---- engine.c */

/* Called after every request; an error that remains has broken the device permanently. */
void vk_recover(vp_engine *engine);

/* ---- native.c: device data for images of any size */
/* sets engine->pictures, wholes and windows, and copies places and positions to the device */
void vk_send_grid(vp_engine *engine, const vp_request *request);
void vk_send_positions(vp_engine *engine, const vp_request *request);

/* the number of images in a request, and the views of one image */
static inline int vk_image_count(const vp_request *request) {
    return !request->views ? 0 : request->image_count ? request->image_count : 1;
}
static inline vp_image_views vk_image_at(const vp_request *request, int image) {
    const vp_image_views only = {request->views, 0, 0};
    return request->image_count ? request->images[image] : only;
}

/* ---- model_molmo2.c */
/* tokens of an image with this many views; if windows span crops, one view and rows x cols crops */
int vk_image_tokens(const vp_model_config *config, int views, int rows, int cols);
/* tokens of all images of a request, including those not in its prompt */
int vk_request_image_tokens(const vp_model_config *config, const vp_request *request);
/* copies the patches of each window to the device */
void vk_send_windows(vp_engine *engine, const vp_request *request);

/* ---- request.c */
void vk_send_request(vp_engine *engine, const vp_request *request);

/* ---- prune.c */
/* The number of scores in attention over `rows` rows. A row attends to the rows before reach[row], or before row + 1 if
 * reach is NULL. gone: the host's array, as in vk_heads */
void vk_count_scores(vp_engine *engine, int rows, const int32_t *reach, const int32_t *gone);
/* ---- shared by stages.c and prune.c: rows of a block */
/* norms and rotation of a block's heads, with the positions of a given region or of its own */
static inline vk_heads vk_heads_in(const vp_engine *engine, int block, const vk_region *region) {
    const vp_model_config *config = &engine->config;
    const vk_block *layer = &engine->model.blocks[block];
    int local = config->sliding_window && !(config->full_blocks >> block & 1);
    vk_heads heads;
    heads.heads = config->head_count;
    heads.kv_heads = config->kv_head_count;
    heads.head_dim = config->head_dim;
    heads.norm = (int)config->qk_norm;
    heads.eps = config->norm_eps;
    heads.clip = config->clip_qkv > 0.0f ? config->clip_qkv : INFINITY;
    heads.q_norm = layer->q_norm.weight;
    heads.k_norm = layer->k_norm.weight;
    if (local && config->rope_local_theta > 0)
        heads.cs = region->cs_local ? region->cs_local : engine->buffers.cs_local;
    else heads.cs = region->cs ? region->cs : engine->buffers.cs;
    heads.window = local ? config->sliding_window : 0;
    heads.gone = local ? region->gone : NULL;
    heads.gone_counted = local ? region->gone_counted : NULL;
    return heads;
}
static inline vk_heads vk_heads_of(const vp_engine *engine, int block) {
    return vk_heads_in(engine, block, &engine->pruning.regions[vk_region_of(engine, block)]);
}
/* byte offset of a block's keys and values */
static inline size_t vk_cache_of(const vp_engine *engine, int block) {
    return (size_t)block * (size_t)engine->max_sequence * (size_t)vk_kv_width(&engine->config) * (engine->wide ? 4 : 2);
}
/* `count` rows of a linear, starting at `first` */
static inline vk_linear vk_rows_of(const vk_linear *linear, int first, int count, int wide) {
    vk_linear rows = *linear;
    rows.weights = (char *)rows.weights
                   + (size_t)first * (size_t)rows.k_padded * (size_t)(rows.bits ? rows.bits : wide ? 32 : 16) / 8;
    if (rows.bits) rows.scales += (size_t)first * (size_t)(rows.k_padded / VK_QUANT_BLOCK);
    if (rows.bias) rows.bias += first;
    rows.n = count;
    return rows;
}
/* makes the input of attention or the MLP: x, normed if norms come first */
static inline void vk_norm_before(vp_engine *engine, const vk_norm *norm, int first, int rows) {
    const vp_model_config *config = &engine->config;
    const vk_kernels *kernels = &engine->backend->kernels;
    int d = config->d_model, ld = vk_padded(d);
    const float *x = engine->buffers.x + (size_t)first * (size_t)d;
    void *normed = (char *)engine->buffers.normed + (size_t)first * (size_t)ld * (engine->wide ? 4 : 2);
    if (!norm->weight) kernels->convert(engine->queue, normed, x, rows, d, ld, engine->wide);
    else kernels->rmsnorm(engine->queue, normed, x, norm->weight, rows, d, ld, config->norm_eps, engine->wide);
}
/* the largest number of image tokens, and of tower rows, of any request */
static inline size_t vk_tokens_most(const vp_engine *engine) {
    return (size_t)engine->max_views * (size_t)vk_view_tokens(&engine->config);
}
static inline size_t vk_tower_rows(const vp_engine *engine) {
    return (size_t)engine->max_views * (size_t)engine->config.vit_positions;
}
/* the first mark after those of stages and tokens; the largest number of stage ends */
static inline int64_t vk_spare_marks(const vp_engine *engine) {
    return (int64_t)VP_STAGE_COUNT + 1 + engine->max_sequence;
}
static inline int vk_segments_most(const vp_engine *engine) {
    return VP_STAGE_COUNT + (engine->prunes ? 2 * engine->max_views + 2 * VK_REGIONS_MAX + 2 : 0);
}
#endif
