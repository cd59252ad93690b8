/* prune_rules.c - chooses the image tokens that a pruning method keeps, from given scores */
#include "prune.h"
#include "vlmprof.h"

#include <math.h>
#include <stdlib.h>

int32_t vk_prune_count(double share, int32_t tokens) { return (int32_t)nearbyint((double)tokens * share); }

static int order_values(const void *left, const void *right) {
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}
void vk_prune_sort(int32_t *values, int32_t count) { qsort(values, (size_t)count, sizeof *values, order_values); }

void vk_prune_random(int32_t tokens, int32_t keep, uint32_t seed, int64_t *scratch, int32_t *kept) {
    (void)vp_sampler_choice(seed, (size_t)tokens, (size_t)keep, scratch);
    for (int32_t i = 0; i < keep; i++) kept[i] = (int32_t)scratch[i];
    vk_prune_sort(kept, keep);
}
void vk_prune_stride(int32_t tokens, int32_t keep, int32_t *kept) {
    for (int32_t i = 0; i < keep; i++) kept[i] = (int32_t)((2 * (int64_t)i + 1) * tokens / (2 * (int64_t)keep));
}

static int order_ranks(const void *left, const void *right) {
    const vk_rank *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}
static float ranked_score(float score) { return score == score ? score : -INFINITY; }
void vk_prune_top(const float *scores, int32_t count, int32_t keep, vk_rank *scratch, int32_t *kept) {
    for (int32_t i = 0; i < count; i++) {
        scratch[i].score = ranked_score(scores[i]);
        scratch[i].index = i;
    }
    qsort(scratch, (size_t)count, sizeof *scratch, order_ranks);
    for (int32_t i = 0; i < keep; i++) kept[i] = scratch[i].index;
    vk_prune_sort(kept, keep);
}

int32_t vk_prune_pool_count(int32_t rows, int32_t columns) { return ((rows + 1) / 2) * ((columns + 1) / 2); }
int32_t vk_prune_pool_members(int32_t rows, int32_t columns, int32_t index, int32_t members[4]) {
    const int32_t across = (columns + 1) / 2, top = index / across * 2, left = index % across * 2;
    int32_t count = 0;
    for (int32_t row = top; row < top + 2 && row < rows; row++)
        for (int32_t column = left; column < left + 2 && column < columns; column++)
            members[count++] = row * columns + column;
    return count;
}

int32_t vk_prune_targets(int32_t count, const int32_t *dominant, int32_t dominant_count, int32_t contextual,
                         int32_t *targets, int32_t *merged) {
    const int32_t left = count - dominant_count, wanted = contextual < left ? contextual : left,
                  step = wanted && left / wanted > 1 ? left / wanted : 1;
    int32_t at = 0, place = 0, target_count = 0, merged_count = 0;
    for (int32_t row = 0; row < count; row++) {
        if (at < dominant_count && dominant[at] == row) {
            at++;
            continue;
        }
        if (place++ % step == 0 && target_count < wanted) targets[target_count++] = row;
        else merged[merged_count++] = row;
    }
    return target_count;
}
void vk_prune_merge(const vk_zip *zip, int in_place, int32_t *rows, int32_t *list, int32_t *start) {
    const int32_t count = zip->dominant_count + zip->target_count;
    int32_t next = 0, dominant = 0, target = 0;
    for (int32_t i = 0; i < count; i++) {
        const int is_target =
            dominant == zip->dominant_count
            || (in_place && target < zip->target_count && zip->targets[target] < zip->dominant[dominant]);
        rows[i] = is_target ? zip->targets[target] : zip->dominant[dominant];
        start[i] = next;
        for (int32_t m = 0; m < zip->merged_count && is_target; m++)
            if (zip->assigned[m] == target) list[next++] = zip->merged[m];
        if (is_target) target++;
        else dominant++;
    }
    start[count] = next;
}

int32_t vk_prune_dart(const float *cosines, int32_t pivots, int32_t tokens, int32_t per_pivot, unsigned char *is_kept,
                      vk_rank *scratch, int32_t *kept) {
    int32_t kept_count = 0;
    for (int32_t pivot = 0; pivot < pivots; pivot++) {
        int32_t candidates = 0;
        for (int32_t token = 0; token < tokens; token++) {
            if (is_kept[token]) continue;
            scratch[candidates].score = ranked_score(-cosines[(size_t)pivot * (size_t)tokens + (size_t)token]);
            scratch[candidates++].index = token;
        }
        qsort(scratch, (size_t)candidates, sizeof *scratch, order_ranks);
        for (int32_t i = 0; i < candidates && i < per_pivot; i++) is_kept[scratch[i].index] = 1;
    }
    for (int32_t token = 0; token < tokens; token++) if (is_kept[token]) kept[kept_count++] = token;
    return kept_count;
}
