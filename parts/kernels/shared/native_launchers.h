/* native_launchers.h - launchers of native.h's and prune.h's kernels, included by vlmprof_kernels.cu */
static void l_grid_embed(vk_queue *queue, float *out, const float *patches, const float *table, const int32_t *places,
                         const vk_picture_grid *grid, int width) {
    int64_t rows = (int64_t)grid->rows * grid->cols, values = rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_grid_embed, rows, vk_threads_for(width), table ? 8 * values : 0, (table ? 24 : 8) * values + 8 * rows, out,
           patches, table, places, *grid, width);
}
static void l_grid_turn(vk_queue *queue, void *qkv, const float *cs, const int32_t *places, int rows, int heads,
                        int head_dim, int ld, int wide) {
    int64_t values = (int64_t)rows * heads * head_dim;
    vk_shape(queue, rows, (int64_t)heads * head_dim, 0, 0);
    LAUNCH(k_grid_turn, rows, vk_threads_for(head_dim / 2), 3 * values,
           2 * values * vk_element(wide) + (int64_t)rows * (4 * head_dim + 8), qkv, cs, places, heads, head_dim, ld,
           wide);
}
static void l_take_rows(vk_queue *queue, void *out, const float *in, const int32_t *index, int rows, int width, int ld,
                        int wide) {
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_take_rows, rows, vk_threads_for(width), 0, (int64_t)rows * (width * (4 + vk_element(wide)) + 4), out, in,
           index, width, ld, wide);
}
static void l_compose_rope(vk_queue *queue, float *cs, const float *table, const int32_t *positions,
                           const int32_t *axes, int rows, int stride, int head_dim) {
    vk_shape(queue, rows, head_dim, 0, 0);
    LAUNCH(k_compose_rope, rows, vk_threads_for(head_dim / 2), 0, (int64_t)rows * (8 * head_dim + 12) + 2 * head_dim,
           cs, table, positions, axes, stride, head_dim);
}
static void l_gelu_mul(vk_queue *queue, void *out, const float *gate_up, int rows, int width, int ld_out, int wide) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_gelu_mul, rows, vk_threads_for(width), 9 * count, count * (8 + vk_element(wide)), out, gate_up, width,
           ld_out, wide);
}
static void l_mean_windows(vk_queue *queue, float *out, const float *hidden, int views, int before, int width, int side,
                           int pool) {
    int windows = views * (side / pool) * (side / pool);
    int64_t count = (int64_t)windows * width;
    vk_shape(queue, windows, width, 0, 0);
    LAUNCH(k_mean_windows, windows, vk_threads_for(width), count * (pool * pool + 1), 4 * count * (pool * pool + 1),
           out, hidden, before, width, side, pool);
}
static void l_pool_places(vk_queue *queue, void *keys, void *query, const float *hidden, const int32_t *places,
                          size_t layer_floats, int windows, int patches, int layers, int width, int ld, int wide) {
    int64_t values = (int64_t)windows * patches * layers * width, queries = (int64_t)windows * layers * width;
    vk_shape(queue, windows, (int64_t)layers * width, 0, 0);
    LAUNCH(k_pool_places, windows, vk_threads_for(width), values + queries,
           4 * (values + (int64_t)windows * patches) + (values + queries) * vk_element(wide), keys, query, hidden,
           places, layer_floats, patches, layers, width, ld, wide);
}

/* ---- prune.h. Comparisons of a ranking count as FLOPs. */
/* queries of all heads against all keys: each score is made once for the tops, once for what keys receive */
static int64_t vk_scored(const vk_scores_job *job) { return (int64_t)job->queries * job->heads * job->keys; }
static int64_t vk_scores_bytes(const vk_scores_job *job, int wide) {
    return ((int64_t)job->queries * job->heads + (int64_t)job->keys * job->kv_heads) * job->head_dim
           * vk_element(wide);
}
static void l_attention_tops(vk_queue *queue, const vk_scores_job *job, int wide) {
    int64_t pairs = (int64_t)job->queries * job->heads;
    vk_shape(queue, 1, job->queries, job->keys, (int64_t)job->heads * job->head_dim);
    LAUNCH(k_attention_tops, pairs, VK_BLOCK_MAX, vk_scored(job) * (2 * (int64_t)job->head_dim + 5),
           vk_scores_bytes(job, wide) + 8 * pairs, job->tops, job->q, job->k, job->heads, job->heads / job->kv_heads,
           job->head_dim, job->keys, job->ldq, job->ldk, job->scale, wide);
}
static void l_attention_received(vk_queue *queue, const vk_scores_job *job, int wide) {
    int64_t pairs = (int64_t)job->queries * job->heads;
    vk_shape(queue, 1, job->queries, job->keys, (int64_t)job->heads * job->head_dim);
    LAUNCH(k_attention_received, job->keys, pairs < 8 ? vk_threads_for((int)pairs * 32) : VK_BLOCK_MAX,
           vk_scored(job) * (2 * (int64_t)job->head_dim + 5) + job->keys,
           vk_scores_bytes(job, wide) + 8 * pairs + 4 * (int64_t)job->keys, job->received, job->tops, job->q, job->k,
           job->queries, job->heads, job->heads / job->kv_heads, job->head_dim, job->ldq, job->ldk, job->scale, wide);
}
static void l_row_size(vk_queue *queue, float *out, const void *in, int rows, int width, int ld, int wide) {
    int64_t values = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_row_size, rows, vk_threads_for(width), values, values * vk_element(wide) + 4 * (int64_t)rows, out, in,
           width, ld, wide);
}
static void l_unit_rows(vk_queue *queue, float *out, const float *in, const int32_t *index, int rows, int width,
                        int ld) {
    int64_t values = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_unit_rows, rows, vk_threads_for(width), 3 * values, 8 * values + (index ? 4 * (int64_t)rows : 0), out, in,
           index, width, ld);
}
static void l_row_products(vk_queue *queue, float *out, const float *left, const float *right, int count, int rows,
                           int width) {
    int64_t products = (int64_t)count * rows;
    vk_shape(queue, rows, count, width, 0);
    LAUNCH(k_row_products, rows, count < 8 ? vk_threads_for(count * 32) : VK_BLOCK_MAX, 2 * products * width,
           4 * (((int64_t)count + rows) * width + products), out, left, right, count, rows, width);
}
/* rows: of members and targets together */
static void l_nearest_target(vk_queue *queue, int32_t *out, const float *rows, const int32_t *members,
                             int member_count, const int32_t *targets, int target_count, int width) {
    int64_t products = (int64_t)member_count * target_count, both = (int64_t)member_count + target_count;
    vk_shape(queue, member_count, target_count, width, 0);
    LAUNCH(k_nearest_target, member_count, target_count < 8 ? vk_threads_for(target_count * 32) : VK_BLOCK_MAX,
           products * (2 * (int64_t)width + 1), 4 * (both * width + both + member_count), out, rows, members, targets,
           target_count, width);
}
static void l_second_nearest(vk_queue *queue, float *out, const float *rows, int count, int width) {
    int64_t products = (int64_t)count * count;
    vk_shape(queue, count, count, width, 0);
    LAUNCH(k_second_nearest, count, VK_BLOCK_MAX, products * (2 * (int64_t)width + 3),
           4 * ((int64_t)count * width + count), out, rows, count, width);
}
static void l_spread(vk_queue *queue, float *distance, const float *rows, const int32_t *picked, int count, int width,
                     int first) {
    vk_shape(queue, count, width, 0, 0);
    LAUNCH(k_spread, count, vk_threads_for(width), (int64_t)count * (2 * (int64_t)width + 2),
           4 * (int64_t)count * (width + (first ? 1 : 2)) + 4, distance, rows, picked, width, first);
}
static void l_mean_heads(vk_queue *queue, float *out, const void *in, int rows, int heads, int head_dim, int ld,
                         int wide) {
    int64_t values = (int64_t)rows * head_dim;
    vk_shape(queue, rows, (int64_t)heads * head_dim, 0, 0);
    LAUNCH(k_mean_heads, rows, vk_threads_for(head_dim), values * (heads + 1),
           values * (heads * vk_element(wide) + 4), out, in, heads, head_dim, ld, wide);
}
/* members: of all rows together */
static void l_mean_rows(vk_queue *queue, float *out, const float *in, const int32_t *base, const int32_t *list,
                        const int32_t *start, int rows, int members, int width) {
    int64_t count = rows, based = base ? count : 0;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_mean_rows, rows, vk_threads_for(width), (members + count + based) * width,
           4 * ((members + count + based) * width + members + count + 1 + based), out, in, base, list, start, width);
}
