/* prune.h - pruning: the plan and the data for dropping image tokens of a request before a block
 *
 * A prefill is cut before the language model, or before some of its blocks. The blocks between two cuts are a region.
 * They process the same rows, their keys and values are in the same rows of the cache, and the device counts these in
 * the region's own position. If kept tokens keep their positions, a region has its own table of cos and sin by row, so
 * that kernels rotate heads by row as usual. Kernels score tokens, and the host ranks them (prune_rules.c). The host
 * waits for scores once per cut. */
#ifndef VK_PRUNE_H
#define VK_PRUNE_H

#include "backend.h"
#include "vlmprof_engine.h"

/* ---- prune_rules.c: chooses the image tokens that a method keeps from given scores; plain C on the host
 *
 * Tokens are numbered from 0 in the language model's order. Scores are fp32 for any weights. Ties go to the lower
 * index. Kept tokens are returned in ascending order. A NaN score ranks last.
 * source: the formulas of FastV (arXiv 2403.06764), VisionZip (2412.04467), DART (2502.11494), DivPrune (2503.02175),
 * PyramidDrop (2410.17247); the guide `pruning` lists the differences */
/* a score with the index that breaks ties */
typedef struct vk_rank { float score; int32_t index; } vk_rank;

/* Returns the number of `tokens` that a share keeps: tokens * share, rounded half to even, in double. */
int32_t vk_prune_count(double share, int32_t tokens);

/* Chooses the `keep` of `tokens` that numpy draws: RandomState(seed).choice(tokens, keep, replace=False), sorted.
 * scratch: int64 [tokens] */
void vk_prune_random(int32_t tokens, int32_t keep, uint32_t seed, int64_t *scratch, int32_t *kept);
/* Chooses the midpoints of `keep` equal stretches. */
void vk_prune_stride(int32_t tokens, int32_t keep, int32_t *kept);
/* Chooses the `keep` largest scores. scratch: [count] */
void vk_prune_top(const float *scores, int32_t count, int32_t keep, vk_rank *scratch, int32_t *kept);

/* The number of 2 x 2 squares in a grid of rows x columns, and the members of square `index`. vk_prune_pool_members
 * returns the number of entries of members[4] that are set. */
int32_t vk_prune_pool_count(int32_t rows, int32_t columns);
int32_t vk_prune_pool_members(int32_t rows, int32_t columns, int32_t index, int32_t members[4]);

/* VisionZip: among the rows of `count` that are not in dominant[dominant_count] (ascending), `contextual` evenly spaced
 * ones are targets and the others are merged. Returns the number of targets, which is smaller if too few rows
 * remain. */
int32_t vk_prune_targets(int32_t count, const int32_t *dominant, int32_t dominant_count, int32_t contextual,
                         int32_t *targets, int32_t *merged);
/* VisionZip's rows: dominant[dominant_count], targets[target_count] and merged[merged_count]; merged[i] is merged into
 * target assigned[i]. */
typedef struct vk_zip {
    int32_t dominant_count, target_count, merged_count;
    int32_t *dominant, *targets, *merged, *assigned;
} vk_zip;
/* The original row of each kept row, and the rows merged into it: list[start[i]..start[i + 1]). in_place: targets keep
 * their positions between the dominant rows; otherwise they follow them. rows: [dominant_count + target_count] */
void vk_prune_merge(const vk_zip *zip, int in_place, int32_t *rows, int32_t *list, int32_t *start);

/* DART keeps the image pivots and, for each pivot (image pivots first, then text pivots), the `per_pivot` least similar
 * of the remaining candidates. cosines: f32 [pivots, tokens]. is_kept: [tokens]; the caller sets it to 1 for image
 * pivots and to 0 for the rest. scratch: [tokens]. Returns the number of kept tokens. */
int32_t vk_prune_dart(const float *cosines, int32_t pivots, int32_t tokens, int32_t per_pivot, unsigned char *is_kept,
                      vk_rank *scratch, int32_t *kept);

/* Sorts in ascending order. */
void vk_prune_sort(int32_t *values, int32_t count);

/* ---- prune.c */
enum { VK_REGIONS_MAX = VP_PRUNE_CUTS_MAX + 1 };

/* on the device; "image tokens" is the largest number of any request */
typedef struct vk_prune_buffers {
    float *features;               /* f32 [1 + deepstack_count, image tokens, d_model]: kept features */
    float *tokens;                 /* f32 [image tokens, vit_width]: rows merged before the connector */
    float *unit;                   /* f32: normalised rows: image tokens (d_model) or tower rows (its head_dim) */
    float *pivots;                 /* f32 [VP_PRUNE_PIVOTS_MAX, d_model], also normalised */
    float *products;               /* f32 [VP_PRUNE_PIVOTS_MAX, image tokens] */
    float *scores;                 /* f32: one per row of the sequence or the tower, or per image token */
    float *tops;                   /* f32 [queries, heads, 2] */
    float *patch_keys;             /* f32 [max_views * vit_positions, vit_head_dim]: mean over heads */
    float *metric;                 /* f32 [image tokens, vit_head_dim]: mean over a token's patches */
    float *x;                      /* f32 [max_sequence, d_model] */
    float *cs;                     /* f32 [VK_REGIONS_MAX, max_sequence, head_dim], for kept positions */
    float *cs_local;               /* the same for blocks with a separate table */
    int32_t *gone;                 /* [VK_REGIONS_MAX, max_sequence], for models with a window: as in vk_heads */
    int32_t *index, *list, *start; /* rows; members of rows, and the start of each row's members */
    int32_t *positions, *axes;     /* int32 [3, max_sequence], and zeros [head_dim / 2]: all pairs use one position */
} vk_prune_buffers;

/* on the host, with the same sizes */
typedef struct vk_prune_host {
    int32_t *place, *source; /* for each image token: its row in the whole sequence, and the row of its feature */
    int32_t *kept, *chosen;  /* image tokens kept so far; those of the next cut, as indices into them */
    int32_t *row_at;         /* for each kept row, its row in the whole sequence */
    int32_t *base, *list, *start, *index, *positions, *reach, *gone;
    int32_t *dominant, *targets, *merged, *assigned; /* VisionZip's */
    float *scores; /* scores as on the device, or cosines [VP_PRUNE_PIVOTS_MAX, image tokens] */
    vk_rank *ranks;
    int64_t *draws;
    unsigned char *flags;
    void *memory;
} vk_prune_host;

typedef struct vk_region {
    int first_block, rows;
    const float *cs, *cs_local;         /* NULL: the engine's tables */
    const int32_t *gone, *gone_counted; /* with kept positions and a window: as in vk_heads */
} vk_region;
/* a cut before block `block` keeps `keep` of the image tokens present there */
typedef struct vk_prune_cut { int block, keep; } vk_prune_cut;
/* ways to drop tokens before the language model */
typedef enum vk_prune_early {
    VK_EARLY_NONE,
    VK_EARLY_CHOICE,   /* some features are kept */
    VK_EARLY_POOL,     /* each square of features becomes one */
    VK_EARLY_MERGE,    /* some keep their positions, and others are merged into them */
    VK_EARLY_CONNECTOR /* the same before the connector, with the class token: VisionZip as published */
} vk_prune_early;

/* state of the running request */
typedef struct vk_pruning {
    vp_prune how; /* method VP_PRUNE_NONE: all tokens are kept */
    vk_prune_early early;
    int tokens, early_keep, cut_count, keeps_positions, skips_features;
    int dominant, contextual, text_pivots;
    int features;       /* number that reaches the language model */
    int kept, now_rows; /* image tokens and rows kept so far */
    vk_prune_cut cuts[VP_PRUNE_CUTS_MAX];
    int region_count;
    vk_region regions[VK_REGIONS_MAX];
    const float *from; /* the language model's features, and the distance between levels */
    size_t level;
    vp_reply *reply;
    vk_prune_host host;
} vk_pruning;
/* a completed stage and its mark */
typedef struct vk_segment { int stage, slot; } vk_segment;

/* Plans request->prune if the model and the image allow it. plan NULL: only checks. */
vp_result vk_plan_pruning(const vp_model_config *config, const vp_request *request, vk_pruning *plan, vp_error *error);
/* The same, at the start of a checked request. */
void vk_begin_pruning(vp_engine *engine, const vp_request *request);

/* Pruning inside the tower, after a block's attention over `count` views; after the tower; after the connector; before
 * a block. Each ends with vk_end_stage(VP_STAGE_PRUNE). */
int vk_prunes_tower(const vp_engine *engine, int block); /* returns 1 if block `block` of the tower provides scores */
void vk_prune_tower(vp_engine *engine, int first, int count);
void vk_prune_connector(vp_engine *engine, const vp_request *request);
void vk_prune_early_rows(vp_engine *engine, const vp_request *request);
void vk_prune_before_block(vp_engine *engine, const vp_request *request, int block);
/* copies the kept tokens, which are now in x, for request->dump */
void vk_dump_kept(vp_engine *engine, const vp_request *request);

/* DivPrune's choice of `keep` of `count` normalised rows. order: [keep], in order of choice. distance f32 [count] and
 * picked int32 [keep] are on the device. */
void vk_prune_spread(const vk_backend *to, vk_queue *queue, const float *rows, float *distance, int32_t *picked,
                     int count, int width, int keep, int32_t *order);
#endif
