/* native_launchers.h - launchers of native.h's kernels, included by vlmprof_kernels.cu */
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
