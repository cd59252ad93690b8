/* weights.h - the weights of a model: their layout, and loading from a checkpoint or from numbers drawn by name */
#ifndef VK_WEIGHTS_H
#define VK_WEIGHTS_H

#include "backend.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"

typedef struct vk_description vk_description; /* model.h */

/* bits of integer linears: the language model's blocks, its head, tower and connector; 0: compute type */
typedef struct vk_precision {
    int blocks, head, vision;
} vk_precision;
vk_precision vk_precision_of(vp_weights blocks, vp_weights head, vp_weights vision);

/* ---- the weights of the stages */
typedef struct vk_norm {
    float *weight, *bias;
} vk_norm;

typedef struct vk_vit_block {
    vk_norm attention_norm, ffn_norm;
    vk_linear qkv, wo, w1, w2; /* w1 of a gated MLP: gate rows over up rows */
    vk_norm q_norm, k_norm;    /* with vit_qk_norm: for q and k; qkv is then only v */
    vk_linear q, k;
    float *scale1, *scale2; /* f32 [width]: scales of the outputs of attention and MLP; NULL: not scaled */
} vk_vit_block;

typedef struct vk_block {
    /* norms before attention and MLP, and after them; weight NULL: no norm */
    vk_norm attn_norm, ff_norm, attn_after, ff_after, q_norm, k_norm;
    vk_linear att_proj, attn_out, router;
    vk_linear *gate_up, *down; /* [experts] each, or one for a dense MLP; gate rows over up rows */
} vk_block;

/* a norm of concatenated patches, then two matrices */
typedef struct vk_merger {
    vk_norm norm;
    vk_linear in, down;
} vk_merger;

typedef struct vk_model {
    const vk_description *description;
    /* Parts that a model lacks stay NULL or empty: class_embedding, pre_ln and post_ln (before and after the tower's
     * blocks), pooling, projector_norm. positions: also the table that is stretched over a native image */
    float *class_embedding, *positions, *pad_embed;
    vk_norm pre_ln, post_ln, projector_norm, ln_f;
    vk_linear patch, pool_query, pool_key_value, pool_out, projector_gate_up, projector_in, projector_down, head;
    vk_merger deepstack[VP_VIT_LAYERS_MAX - 1];
    /* in-type [embedding_size + additional_vocab_size, d_model], times vk_embedding_scale; or head.weights, unscaled */
    void *embedding;
    vk_vit_block *vit;
    vk_block *blocks;
} vk_model;

/* reserves memory for a layer's weights in the backend's layout */
void vk_layout_linear(vk_arena *arena, vk_linear *linear, int outputs, int inputs, int has_bias, int wide, int bits);
void vk_layout_norm(vk_arena *arena, vk_norm *norm, int width, int has_bias);

/* the source of rows of weights: a tensor of the checkpoint, or numbers drawn from its name */
typedef struct vk_loader vk_loader;
/* for names with this ending: offset + scale * uniform(-1, 1) */
typedef struct vk_draw {
    const char *end;
    float offset, scale;
} vk_draw;
struct vk_loader {
    const vk_backend *backend;
    vk_queue *queue;
    const vp_checkpoint *checkpoint;
    const vk_description *description; /* NULL: no name has a special draw */
    uint64_t seed;
    float times, plus; /* values become times * (value + plus); times 0: values are unchanged (vk_pass_scale) */
    int wide, threads;
    vp_progress progress;
    void *progress_user;
    int64_t done, total; /* bytes on the device */
    vp_result result;    /* sticky: once it is not VP_OK, nothing more is loaded */
    vp_error *error;
};

/* The rows of a tensor with `of` rows that fill rows of a linear. patch_px > 0: a row is a convolution kernel [3,
 * frames, side, side]. It becomes [side, side, 3], the order of pixels, summed over its frames, which all get the same
 * image. columns > 0: the tensor is transposed; rows of the linear are then `columns` columns of its rows, starting at
 * `first`. */
typedef struct vk_piece {
    int first, of, patch_px, frames, columns;
} vk_piece;
enum { VK_PATCH_VALUES_MAX = 4096 };

typedef struct vk_source {
    vp_tensor tensor;
    int64_t first;    /* the row read as row 0 */
    size_t row_bytes; /* of a row in the file; 0: a drawn source */
    int patch_px, frames, columns;
    uint64_t key;        /* synthetic: the name's hash */
    float scale, offset; /* synthetic: offset + scale * uniform(-1, 1) */
    int synthetic;
    float times, plus; /* copied from the loader when this was opened */
} vk_source;

uint64_t vk_mix(uint64_t x); /* splitmix64's finalizer */
int vk_ends_with(const char *text, const char *end);
int vk_host_threads(int wanted); /* 0: all cores available to this process */

vk_source vk_open_source(vk_loader *loader, const char *name, int64_t rows, int64_t columns);
/* reads one row of k elements of the compute type, with zeros up to k_padded */
void vk_source_row(const vk_source *source, int64_t row, void *out, int columns, int padded_columns, int wide);
/* releases the pages of a tensor's file after its data are in place */
void vk_loaded(vk_loader *loader, const vk_source *source, const char *name, int64_t bytes);

/* key for drawing the numbers of a row */
static inline uint32_t vk_row_key(const vk_source *source, int64_t row) {
    return (uint32_t)vk_mix(source->key ^ (uint64_t)row);
}
/* uniform(-1, 1): murmur3's finalizer on a counter */
static inline float vk_drawn(uint32_t key, uint32_t column) {
    uint32_t h = column * 0x9e3779b1u + key;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return (float)(int32_t)(h ^ (h >> 16)) * 4.656612873e-10f;
}

/* ---- pack.c: tensor [rows, k] -> rows of a linear's panels, starting at first_row, or integers and scales if rows are
 * consecutive. Returns 0 if out of memory. */
int vk_pack_rows(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row, int rows);
int vk_send_integers(const vk_loader *loader, const vk_source *source, const vk_linear *linear, int first_row,
                     int64_t rows);

/* loads an f32 vector or an in-type table */
void vk_load_rows(vk_loader *loader, const char *name, void *out, int64_t rows, int columns, int wide);
void vk_load_norm(vk_loader *loader, const char *prefix, const vk_norm *norm, int width);
/* loads a piece of a tensor, or a tensor [rows, k], into rows of a linear, starting at first_row */
void vk_load_linear_piece(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows,
                          const vk_piece *piece);
void vk_load_linear_rows(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows);
/* Loads rows of a linear layer with its bias; `prefix` is the common prefix of the two tensor names. */
void vk_load_linear(vk_loader *loader, const char *prefix, const vk_linear *linear, int first_row, int rows);
#endif
