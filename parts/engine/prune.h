/* prune.h - a request of which not all image tokens reach all blocks: which are dropped where, and what that needs
 *
 * A prefill is cut before the language model, or before some of its blocks. Between two cuts is a region of blocks:
 * they work on the same rows, their keys and values are in the same rows of the cache, and the device counts these in a
 * position of the region's own. Where kept tokens keep their positions, a region has its own table of cos and sin, by
 * row: kernels then rotate heads by the row, as usual. Kernels score tokens, the host ranks them (prune_rules.c); it
 * waits for the scores once a cut. */
#ifndef VK_PRUNE_H
#define VK_PRUNE_H

#include "backend.h"
#include "vlmprof_engine.h"

/* ---- prune_rules.c: which image tokens a method keeps, from scores that are already there; plain C on the host
 *
 * Tokens count from 0 in the order in which the language model reads them. Scores are fp32 whatever the weights are.
 * Equal scores: the lower index. Kept tokens come out ascending. A score that is not a number ranks last.
 * source: the formulas of FastV (arXiv 2403.06764), VisionZip (2412.04467), DART (2502.11494), DivPrune (2503.02175),
 * PyramidDrop (2410.17247), CDPruner (2506.10967); guide `pruning` says what differs */
/* a score with the index that breaks ties */
typedef struct vk_rank { float score; int32_t index; } vk_rank;

/* How many of `tokens` a share is: tokens * share, rounded half to even, in double. */
int32_t vk_prune_count(double share, int32_t tokens);

/* Which `keep` of `tokens` numpy draws: RandomState(seed).choice(tokens, keep, replace=False), sorted.
 * scratch: int64 [tokens] */
void vk_prune_random(int32_t tokens, int32_t keep, uint32_t seed, int64_t *scratch, int32_t *kept);
/* The middles of `keep` equal stretches. */
void vk_prune_stride(int32_t tokens, int32_t keep, int32_t *kept);
/* The `keep` largest scores. scratch: [count] */
void vk_prune_top(const float *scores, int32_t count, int32_t keep, vk_rank *scratch, int32_t *kept);

/* How many rows a grid of rows x columns has when each 2 x 2 square becomes one, and the members of square `index`
 * of it: returns how many of members[4] there are. */
int32_t vk_prune_pool_count(int32_t rows, int32_t columns);
int32_t vk_prune_pool_members(int32_t rows, int32_t columns, int32_t index, int32_t members[4]);

/* VisionZip: of `count` rows those that are not in dominant[dominant_count] (ascending): `contextual` evenly spaced
 * ones are targets, the others are merged. Returns the number of targets, which is less where fewer rows are left. */
int32_t vk_prune_targets(int32_t count, const int32_t *dominant, int32_t dominant_count, int32_t contextual,
                         int32_t *targets, int32_t *merged);
/* VisionZip's rows after that: dominant[dominant_count], targets[target_count], and merged[merged_count], each of
 * which goes to target assigned[i]. */
typedef struct vk_zip {
    int32_t dominant_count, target_count, merged_count;
    int32_t *dominant, *targets, *merged, *assigned;
} vk_zip;
/* Which row each kept row is, and which rows are merged into it: list[start[i]..start[i + 1]). in_place: targets are
 * where they were, between the dominant rows; otherwise after them. rows: [dominant_count + target_count] */
void vk_prune_merge(const vk_zip *zip, int in_place, int32_t *rows, int32_t *list, int32_t *start);

/* DART: kept image tokens: the image pivots, and for each pivot (image pivots first, then text pivots) the
 * `per_pivot` least similar of the candidates left. cosines f32 [pivots, tokens]; is_kept: [tokens], all 0 before but
 * the image pivots' 1. scratch: [tokens]. Returns how many are kept. */
int32_t vk_prune_dart(const float *cosines, int32_t pivots, int32_t tokens, int32_t per_pivot, unsigned char *is_kept,
                      vk_rank *scratch, int32_t *kept);

/* CDPruner's choice: the greedy determinant of q_i (u_i . u_j) q_j, u the features f32 [count, width] of length 1.
 * relevance: as CLIP gives it, before its sign is turned and it is scaled. order: [keep], as chosen.
 * scratch: float [count * (width + keep + 3)] */
void vk_prune_determinant(const float *features, const float *relevance, int32_t count, int32_t width, int32_t keep,
                          float *scratch, int32_t *order, int32_t *kept);

/* Ascending. */
void vk_prune_sort(int32_t *values, int32_t count);

/* ---- prune.c */
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
    int32_t *gone;     /* [VK_REGIONS_MAX, max_sequence], of models with a window: as in vk_heads */
    int32_t *index, *list, *start; /* rows; members of rows, and where each row's begin */
    int32_t *positions, *axes;     /* int32 [3, max_sequence], and zeros [head_dim / 2]: all pairs by one position */
} vk_prune_buffers;

/* the host's, of the same sizes */
typedef struct vk_prune_host {
    int32_t *place, *source;  /* of each image token: its row in the whole sequence, and the row of its feature */
    int32_t *kept, *chosen;   /* image tokens that go on; those of the next cut, counted among them */
    int32_t *row_at;          /* for each row that goes on: its row in the whole sequence */
    int32_t *base, *list, *start, *index, *positions, *reach, *gone;
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
    const int32_t *gone, *gone_counted; /* where positions are kept and there is a window: as in vk_heads */
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

/* stages: inside the tower, after a block's attention over `count` views; after the tower; after the connector;
 * before a block. Each ends the stage before with its own vk_end_stage(VP_STAGE_PRUNE). */
int vk_prunes_tower(const vp_engine *engine, int block); /* 1: the tower's block `block` gives scores */
void vk_prune_tower(vp_engine *engine, int first, int count);
void vk_prune_connector(vp_engine *engine, const vp_request *request);
void vk_prune_early_rows(vp_engine *engine, const vp_request *request);
void vk_prune_before_block(vp_engine *engine, const vp_request *request, int block);
/* what request->dump asks for of the tokens that go on, which are in x now */
void vk_dump_kept(vp_engine *engine, const vp_request *request);

/* DivPrune's choice of `keep` of `count` rows of length 1: order [keep], as picked; distance f32 [count], picked int32
 * [keep]: the device's */
void vk_prune_spread(const vk_backend *to, vk_queue *queue, const float *rows, float *distance, int32_t *picked,
                     int count, int width, int keep, int32_t *order);
#endif
