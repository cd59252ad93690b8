/* prune_rules.h - which image tokens a pruning method keeps, from scores that are already there; plain C on the host
 *
 * Tokens count from 0 in the order in which the language model reads them. Scores are fp32 whatever the weights are.
 * Equal scores: the lower index. Kept tokens come out ascending. A score that is no number ranks last.
 * source: the formulas of FastV (arXiv 2403.06764), VisionZip (2412.04467), DART (2502.11494), DivPrune (2503.02175),
 * PyramidDrop (2410.17247), CDPruner (2506.10967); guide `pruning` says what differs
 * memory:  the caller's; nothing is allocated
 * threads: reentrant */
#ifndef VK_PRUNE_RULES_H
#define VK_PRUNE_RULES_H

#include <stdint.h>

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
/* VisionZip's rows behind that: dominant[dominant_count], targets[target_count], and merged[merged_count], each of
 * which goes to target assigned[i]. */
typedef struct vk_zip {
    int32_t dominant_count, target_count, merged_count;
    int32_t *dominant, *targets, *merged, *assigned;
} vk_zip;
/* Which row each kept row is, and which rows are merged into it: list[start[i]..start[i + 1]). in_place: targets are
 * where they were, between the dominant rows; otherwise behind them. rows: [dominant_count + target_count] */
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
#endif
