/* prune_rows.h - shared kernels that score and merge image tokens (engine/prune.c), included by vlmprof_kernels.cu
 *
 * Scores, norms and distances are fp32 for any weights. Equal rows get equal results, because each product is summed in
 * the same order. */

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
/* queries of all heads against all keys: each score is computed once for the tops and once for what keys receive */
static int64_t vk_scored(const vk_scores_job *job) { return (int64_t)job->queries * job->heads * job->keys; }
static int64_t vk_scores_bytes(const vk_scores_job *job, int wide) {
    return ((int64_t)job->queries * job->heads + (int64_t)job->keys * job->kv_heads) * job->head_dim * vk_element(wide);
}
static void l_attention_tops(vk_queue *queue, const vk_scores_job *job, int wide) {
    int64_t pairs = (int64_t)job->queries * job->heads;
    vk_shape(queue, 1, job->queries, job->keys, (int64_t)job->heads * job->head_dim);
    LAUNCH(k_attention_tops, pairs, VK_BLOCK_MAX, vk_scored(job) * (2 * (int64_t)job->head_dim + 5),
           vk_scores_bytes(job, wide) + 8 * pairs, job->tops, job->q, job->k, job->heads, job->heads / job->kv_heads,
           job->head_dim, job->keys, job->ldq, job->ldk, job->scale, wide);
}

/* The attention that key BLK receives from all queries, as a mean over heads: the sum over queries and heads of
 * exp(score - largest) / sum, with the tops of k_attention_tops, divided by heads */
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
static void l_attention_received(vk_queue *queue, const vk_scores_job *job, int wide) {
    int64_t pairs = (int64_t)job->queries * job->heads;
    vk_shape(queue, 1, job->queries, job->keys, (int64_t)job->heads * job->head_dim);
    LAUNCH(k_attention_received, job->keys, pairs < 8 ? vk_threads_for((int)pairs * 32) : VK_BLOCK_MAX,
           vk_scored(job) * (2 * (int64_t)job->head_dim + 5) + job->keys,
           vk_scores_bytes(job, wide) + 8 * pairs + 4 * (int64_t)job->keys, job->received, job->tops, job->q, job->k,
           job->queries, job->heads, job->heads / job->kv_heads, job->head_dim, job->ldq, job->ldk, job->scale, wide);
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
static void l_row_size(vk_queue *queue, float *out, const void *in, int rows, int width, int ld, int wide) {
    int64_t values = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_row_size, rows, vk_threads_for(width), values, values * vk_element(wide) + 4 * (int64_t)rows, out, in,
           width, ld, wide);
}

/* out f32 [rows, width] = row index[BLK] of f32 [.., ld], or row BLK if index is NULL, divided by its Euclidean
 * norm (at least 1e-8) */
KERNEL(k_unit_rows, float *out, const float *in, const int32_t *index, int width, int ld) {
    const float *row = in + (size_t)(index ? index[BLK] : (int32_t)BLK) * (size_t)ld;
    float sum = 0.0f, length;
    EACH_SUM(i, width, sum) sum += row[i] * row[i];
    length = sqrtf(block_sum(sum));
    length = length > 1e-8f ? length : 1e-8f;
    EACH(i, width) out[BLK * (size_t)width + (size_t)i] = row[i] / length;
}
static void l_unit_rows(vk_queue *queue, float *out, const float *in, const int32_t *index, int rows, int width,
                        int ld) {
    int64_t values = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_unit_rows, rows, vk_threads_for(width), 3 * values, 8 * values + (index ? 4 * (int64_t)rows : 0), out, in,
           index, width, ld);
}

/* out f32 [count, rows]: the dot products of `count` rows f32 [count, width] with row BLK of f32 [rows, width] */
KERNEL(k_row_products, float *out, const float *left, const float *right, int count, int rows, int width) {
    EACH_WARP(j, count) {
        float sum = 0.0f;
        EACH_LANE_SUM(i, width, sum)
        sum += left[(size_t)j * (size_t)width + (size_t)i] * right[BLK * (size_t)width + (size_t)i];
        sum = warp_sum(sum);
        if (LANE0) out[(size_t)j * (size_t)rows + BLK] = sum;
    }
}
static void l_row_products(vk_queue *queue, float *out, const float *left, const float *right, int count, int rows,
                           int width) {
    int64_t products = (int64_t)count * rows;
    vk_shape(queue, rows, count, width, 0);
    LAUNCH(k_row_products, rows, count < 8 ? vk_threads_for(count * 32) : VK_BLOCK_MAX, 2 * products * width,
           4 * (((int64_t)count + rows) * width + products), out, left, right, count, rows, width);
}

/* The target, of `count`, with the largest product with row members[BLK]; the first one wins a tie. targets, members:
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
/* rows: of members and targets together */
static void l_nearest_target(vk_queue *queue, int32_t *out, const float *rows, const int32_t *members, int member_count,
                             const int32_t *targets, int target_count, int width) {
    int64_t products = (int64_t)member_count * target_count, both = (int64_t)member_count + target_count;
    vk_shape(queue, member_count, target_count, width, 0);
    LAUNCH(k_nearest_target, member_count, target_count < 8 ? vk_threads_for(target_count * 32) : VK_BLOCK_MAX,
           products * (2 * (int64_t)width + 1), 4 * (both * width + both + member_count), out, rows, members, targets,
           target_count, width);
}

/* out f32 [rows] = the second smallest of 1 - (row BLK . row j) over all rows j: the distance to the nearest other row,
 * since a row's distance to itself is 0 except for rounding. rows f32 [rows, width] of length 1 */
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
    owner = -block_max(least == all ? -(float)(TID >> 5) : -INFINITY); /* one warp drops its smallest */
    if ((float)(TID >> 5) == owner) least = second;
    all = -block_max(-least);
    if (TID == 0) out[BLK] = all;
}
static void l_second_nearest(vk_queue *queue, float *out, const float *rows, int count, int width) {
    int64_t products = (int64_t)count * count;
    vk_shape(queue, count, count, width, 0);
    LAUNCH(k_second_nearest, count, VK_BLOCK_MAX, products * (2 * (int64_t)width + 3),
           4 * ((int64_t)count * width + count), out, rows, count, width);
}

/* After a row is picked, distance f32 [rows] becomes the distance to the nearest picked row, or -infinity for picked
 * rows. first: there were no distances before */
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
static void l_spread(vk_queue *queue, float *distance, const float *rows, const int32_t *picked, int count, int width,
                     int first) {
    vk_shape(queue, count, width, 0, 0);
    LAUNCH(k_spread, count, vk_threads_for(width), (int64_t)count * (2 * (int64_t)width + 2),
           4 * (int64_t)count * (width + (first ? 1 : 2)) + 4, distance, rows, picked, width, first);
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
static void l_mean_heads(vk_queue *queue, float *out, const void *in, int rows, int heads, int head_dim, int ld,
                         int wide) {
    int64_t values = (int64_t)rows * head_dim;
    vk_shape(queue, rows, (int64_t)heads * head_dim, 0, 0);
    LAUNCH(k_mean_heads, rows, vk_threads_for(head_dim), values * (heads + 1), values * (heads * vk_element(wide) + 4),
           out, in, heads, head_dim, ld, wide);
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
/* members: of all rows together */
static void l_mean_rows(vk_queue *queue, float *out, const float *in, const int32_t *base, const int32_t *list,
                        const int32_t *start, int rows, int members, int width) {
    int64_t count = rows, based = base ? count : 0;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_mean_rows, rows, vk_threads_for(width), (members + count + based) * width,
           4 * ((members + count + based) * width + members + count + 1 + based), out, in, base, list, start, width);
}
