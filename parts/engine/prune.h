/* prune.h - a request of which not all image tokens reach all blocks: what is left out where, and what that needs
 *
 * A prefill is cut before the language model, or before some of its blocks. Between two cuts lies a region of blocks:
 * they work on the same rows, their keys and values are in the same rows of the cache, and the device counts these in a
 * position of the region's own. Where kept tokens keep their positions, a region has its own table of cos and sin, by
 * row: kernels then turn heads by the row, as ever. Kernels score tokens, the host ranks them (prune_rules.h); it waits
 * for the scores once a cut. */
#ifndef VK_PRUNE_H
#define VK_PRUNE_H

#include "backend.h"
#include "prune_rules.h"
#include "vlmprof_engine.h"

enum { VK_REGIONS_MAX = VP_PRUNE_CUTS_MAX + 1 };

/* the device's; image tokens: at most of any request */
typedef struct vk_prune_buffers {
    float *features;  /* f32 [1 + deepstack_count, image tokens, d_model]: those that go on */
    float *tokens;    /* f32 [image tokens, vit_width]: merged before the connector */
    float *unit;      /* f32: rows of length 1, image tokens of d_model, or the tower's rows of its head_dim */
    float *pivots;    /* f32 [VP_PRUNE_PIVOTS_MAX, d_model], the same */
    float *products;  /* f32 [VP_PRUNE_PIVOTS_MAX, image tokens] */
    float *scores;    /* f32, of a row of the sequence or of the tower, or of an image token */
    float *tops;      /* f32 [queries, heads, 2] */
    float *patch_keys; /* f32 [max_views * vit_positions, vit_head_dim]: mean over heads */
    float *metric;     /* f32 [image tokens, vit_head_dim]: mean over a token's patches */
    float *x;          /* f32 [max_sequence, d_model] */
    float *cs;         /* f32 [VK_REGIONS_MAX, max_sequence, head_dim], of kept positions; .. */
    float *cs_local;   /* .. and of blocks that have a table of their own */
    int32_t *index, *list, *start; /* rows; members of rows, and where each row's begin */
    int32_t *positions, *axes;     /* int32 [3, max_sequence], and zeros [head_dim / 2]: all pairs by one position */
} vk_prune_buffers;

/* the host's, of the same sizes */
typedef struct vk_prune_host {
    int32_t *place, *source;  /* of each image token: its row in the whole sequence, and the row of its feature */
    int32_t *kept, *chosen;   /* image tokens that go on; those of the next cut, counted among them */
    int32_t *row_at;          /* for each row that goes on: its row in the whole sequence */
    int32_t *base, *list, *start, *index, *positions, *reach;
    int32_t *dominant, *targets, *merged, *assigned; /* VisionZip's */
    float *scores;            /* as on the device, or cosines [VP_PRUNE_PIVOTS_MAX, image tokens] */
    vk_rank *ranks;
    int64_t *draws;
    unsigned char *flags;
    void *memory;
} vk_prune_host;

typedef struct vk_region {
    int first_block, rows;
    const float *cs, *cs_local; /* NULL: the engine's own */
} vk_region;
/* before block `block`, `keep` of the image tokens that are there go on */
typedef struct vk_prune_cut { int block, keep; } vk_prune_cut;
/* how tokens go before the language model */
typedef enum vk_prune_early {
    VK_EARLY_NONE,
    VK_EARLY_CHOICE,    /* some features go on */
    VK_EARLY_POOL,      /* squares of them */
    VK_EARLY_MERGE,     /* some, others merged into them in their places */
    VK_EARLY_CONNECTOR  /* as that, with the class token, before the connector: VisionZip as published */
} vk_prune_early;

/* of the request that runs */
typedef struct vk_pruning {
    vp_prune how; /* method VP_PRUNE_NONE: all goes on */
    vk_prune_early early;
    int tokens, early_keep, cut_count, keeps_positions, skips_features;
    int dominant, contextual, text_pivots;
    int features; /* that reach the language model */
    int kept, now_rows; /* image tokens and rows that go on, so far */
    vk_prune_cut cuts[VP_PRUNE_CUTS_MAX];
    int region_count;
    vk_region regions[VK_REGIONS_MAX];
    const float *from;   /* features that the language model gets, and how far a level is from the next */
    size_t level;
    vp_reply *reply;
    vk_prune_host host;
} vk_pruning;
/* a stage that ended, and its mark */
typedef struct vk_segment { int stage, slot; } vk_segment;

/* What request->prune asks for, if the model and the image allow it; plan NULL: only that. */
vp_result vk_plan_pruning(const vp_model_config *config, const vp_request *request, vk_pruning *plan, vp_error *error);
/* The same for the request that was checked, at its start. */
void vk_begin_pruning(vp_engine *engine, const vp_request *request);
/* memory */
void vk_layout_prune_buffers(vk_arena *arena, vp_engine *engine);
int vk_place_pruning(vp_engine *engine); /* 0: no memory */
int vk_segments_most(const vp_engine *engine);
int vk_spare_marks(const vp_engine *engine); /* the first mark behind those of stages and tokens */

/* stages: inside the tower, behind a block's attention over `count` views; behind the tower; behind the connector;
 * before a block. Each ends the stage before with its own vk_end_stage(VP_STAGE_PRUNE). */
int vk_prunes_tower(const vp_engine *engine, int block); /* 1: the tower's block `block` gives scores */
void vk_prune_tower(vp_engine *engine, int first, int count);
void vk_prune_connector(vp_engine *engine, const vp_request *request);
void vk_prune_early_rows(vp_engine *engine, const vp_request *request);
void vk_prune_before_block(vp_engine *engine, const vp_request *request, int block);
/* what request->dump asks for of the tokens that go on, which x holds now */
void vk_dump_kept(vp_engine *engine, const vp_request *request);

/* DivPrune's choice of `keep` of `count` rows of length 1: order [keep], as picked; distance f32 [count], picked int32
 * [keep]: the device's */
void vk_prune_spread(const vk_backend *to, vk_queue *queue, const float *rows, float *distance, int32_t *picked,
                     int count, int width, int keep, int32_t *order);
#endif
