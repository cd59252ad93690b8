/* prune.h - shared kernels that score and merge image tokens (engine/prune.c), included by vlmprof_kernels.cu
 *
 * Scores, norms and distances are fp32 whatever the weights are. Equal rows get equal results: each product is summed
 * in the same order. */

/* A query of one head against all keys: the largest score and the sum of exp(score - largest). q and k in-type rows of
 * ldq and ldk, heads side by side; k has kv_heads of them, and group heads of q read one. One block per (query, head);
 * tops f32 [queries, heads, 2] */
KERNEL(k_attention_tops, float *tops, const void *q, const void *k, int heads, int group, int head_dim, int keys,
       int ldq, int ldk, float scale, int wide) {
    int head = (int)(BLK % (size_t)heads);
    size_t from = BLK / (size_t)heads * (size_t)ldq + (size_t)(head * head_dim), at = (size_t)(head / group * head_dim);
    float top = -INFINITY, sum = 0.0f, most;
    EACH_WARP(j, keys) {
        float score = 0.0f;
        EACH_LANE_SUM(i, head_dim, score)
            score += vk_get(q, from + (size_t)i, wide) * vk_get(k, at + (size_t)j * (size_t)ldk + (size_t)i, wide);
        score = warp_sum(score) * scale;
        if (score > top) { sum = sum * vk_exp(top - score) + 1.0f; top = score; }
        else sum += vk_exp(score - top);
    }
    most = block_max(top);
    sum = block_sum(LANE0 && top > -INFINITY ? sum * vk_exp(top - most) : 0.0f);
    if (TID == 0) { tops[2 * BLK] = most; tops[2 * BLK + 1] = sum; }
}

/* What key BLK gets of all queries' attention, the mean over heads: the sum over queries and heads of exp(score -
 * largest) / sum, by the tops of k_attention_tops, divided by heads */
KERNEL(k_attention_received, float *received, const float *tops, const void *q, const void *k, int queries, int heads,
       int group, int head_dim, int ldq, int ldk, float scale, int wide) {
    float all = 0.0f;
    EACH_WARP(pair, queries * heads) {
        int head = pair % heads;
        size_t from = (size_t)(pair / heads) * (size_t)ldq + (size_t)(head * head_dim),
               at = BLK * (size_t)ldk + (size_t)(head / group * head_dim);
        float score = 0.0f;
        EACH_LANE_SUM(i, head_dim, score)
            score += vk_get(q, from + (size_t)i, wide) * vk_get(k, at + (size_t)i, wide);
        score = warp_sum(score) * scale;
        all += vk_exp(score - tops[2 * pair]) / tops[2 * pair + 1];
    }
    all = block_sum(LANE0 ? all : 0.0f);
    if (TID == 0) received[BLK] = all / (float)heads;
}

/* out f32 [rows] = the sum of a row's absolute values; in in-type [rows, ld] */
KERNEL(k_row_size, float *out, const void *in, int width, int ld, int wide) {
    float sum = 0.0f;
    EACH_SUM(i, width, sum) {
        float value = vk_get(in, BLK * (size_t)ld + (size_t)i, wide);
        sum += value < 0.0f ? -value : value;
    }
    sum = block_sum(sum);
    if (TID == 0) out[BLK] = sum;
}

/* out f32 [rows, width] = row index[BLK] of f32 [.., ld], or row BLK where index is NULL, divided by its length, at
 * least 1e-8 */
KERNEL(k_unit_rows, float *out, const float *in, const int32_t *index, int width, int ld) {
    const float *row = in + (size_t)(index ? index[BLK] : (int32_t)BLK) * (size_t)ld;
    float sum = 0.0f, length;
    EACH_SUM(i, width, sum) sum += row[i] * row[i];
    length = sqrtf(block_sum(sum));
    length = length > 1e-8f ? length : 1e-8f;
    EACH(i, width) out[BLK * (size_t)width + (size_t)i] = row[i] / length;
}

/* out f32 [count, rows]: the products of `count` rows f32 [count, width] with row BLK of f32 [rows, width] */
KERNEL(k_row_products, float *out, const float *left, const float *right, int count, int rows, int width) {
    EACH_WARP(j, count) {
        float sum = 0.0f;
        EACH_LANE_SUM(i, width, sum)
            sum += left[(size_t)j * (size_t)width + (size_t)i] * right[BLK * (size_t)width + (size_t)i];
        sum = warp_sum(sum);
        if (LANE0) out[(size_t)j * (size_t)rows + BLK] = sum;
    }
}

/* Which of `count` targets has the largest product with row members[BLK], the first of equal ones. targets, members:
 * rows of f32 [.., width]; out int32 [members] */
KERNEL(k_nearest_target, int32_t *out, const float *rows, const int32_t *members, const int32_t *targets, int count,
       int width) {
    const float *row = rows + (size_t)members[BLK] * (size_t)width;
    float most = -INFINITY, best = 0.0f, all;
    EACH_WARP(j, count) {
        const float *target = rows + (size_t)targets[j] * (size_t)width;
        float sum = 0.0f;
        EACH_LANE_SUM(i, width, sum) sum += row[i] * target[i];
        sum = warp_sum(sum);
        if (sum > most) { most = sum; best = (float)j; }
    }
    all = block_max(most);
    best = block_max(most == all ? -best : -INFINITY);
    if (TID == 0) out[BLK] = (int32_t)-best;
}

/* out f32 [rows] = the second smallest of 1 - (row BLK . row j) over all rows j: the distance to the nearest other row,
 * since a row's own is 0, give or take rounding. rows f32 [rows, width] of length 1 */
KERNEL(k_second_nearest, float *out, const float *rows, int count, int width) {
    float least = INFINITY, second = INFINITY, all, owner;
    EACH_WARP(j, count) {
        float sum = 0.0f;
        EACH_LANE_SUM(i, width, sum)
            sum += rows[BLK * (size_t)width + (size_t)i] * rows[(size_t)j * (size_t)width + (size_t)i];
        sum = 1.0f - warp_sum(sum);
        if (sum < least) { second = least; least = sum; }
        else if (sum < second) second = sum;
    }
    all = -block_max(-least);
    owner = -block_max(least == all ? -(float)(TID >> 5) : -INFINITY); /* one warp gives its smallest away */
    if ((float)(TID >> 5) == owner) least = second;
    all = -block_max(-least);
    if (TID == 0) out[BLK] = all;
}

/* A row was picked: distance f32 [rows] becomes the distance to the nearest picked row, -infinity for what was picked.
 * first: there was no distance before */
KERNEL(k_spread, float *distance, const float *rows, const int32_t *picked, int width, int first) {
    const float *row = rows + BLK * (size_t)width, *other = rows + (size_t)*picked * (size_t)width;
    float sum = 0.0f;
    EACH_SUM(i, width, sum) sum += row[i] * other[i];
    sum = 1.0f - block_sum(sum);
    if (TID == 0) {
        float before = first ? INFINITY : distance[BLK];
        distance[BLK] = BLK == (size_t)*picked ? -INFINITY : sum < before ? sum : before;
    }
}

/* out f32 [rows, head_dim] = the mean over heads of in-type [rows, ld], heads side by side */
KERNEL(k_mean_heads, float *out, const void *in, int heads, int head_dim, int ld, int wide) {
    EACH(i, head_dim) {
        float sum = 0.0f;
        for (int head = 0; head < heads; head++)
            sum += vk_get(in, BLK * (size_t)ld + (size_t)(head * head_dim + i), wide);
        out[BLK * (size_t)head_dim + (size_t)i] = sum / (float)heads;
    }
}

/* out f32 [rows, width] = row base[BLK] of f32 [.., width] (nothing where base is NULL), plus the mean of its members,
 * if it has any: rows list[start[BLK]..start[BLK + 1]) */
KERNEL(k_mean_rows, float *out, const float *in, const int32_t *base, const int32_t *list, const int32_t *start,
       int width) {
    int from = start[BLK], to = start[BLK + 1];
    const float *first = in + (size_t)(base ? base[BLK] : 0) * (size_t)width;
    EACH(i, width) {
        float sum = 0.0f;
        for (int m = from; m < to; m++) sum += in[(size_t)list[m] * (size_t)width + (size_t)i];
        sum = to > from ? sum / (float)(to - from) : 0.0f;
        out[BLK * (size_t)width + (size_t)i] = base ? first[i] + sum : sum;
    }
}
