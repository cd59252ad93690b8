/* stream_rows.h - adds rows to the stream after a norm or a scale, puts image features in place of their tokens, and
 * makes windows of patches; included by vlmprof_kernels.cu. One block per row. */

/* stream row f32 [width] += weight * row / rms(row): a norm after attention or an MLP */
KERNEL(k_add_rmsnorm, float *stream, const float *rows, const float *weight, int width, float eps) {
    const float *row = rows + BLK * (size_t)width;
    float *to = stream + BLK * (size_t)width, s = 0.0f, scale;
    EACH_SUM(i, width, s) s += row[i] * row[i];
    scale = 1.0f / sqrtf(block_sum(s) / (float)width + eps);
    EACH(i, width) to[i] += weight[i] * (row[i] * scale);
}
static void l_add_rmsnorm(vk_queue *queue, float *stream, const float *rows, const float *weight, int count, int width,
                          float eps) {
    int64_t values = (int64_t)count * width;
    vk_shape(queue, count, width, 0, 0);
    LAUNCH(k_add_rmsnorm, count, vk_threads_for(width), 5 * values, 12 * values + 4 * width, stream, rows, weight,
           width, eps);
}

/* stream row f32 [width] += weight * row: InternViT's layer scale */
KERNEL(k_add_scaled, float *stream, const float *rows, const float *weight, int width) {
    const float *row = rows + BLK * (size_t)width;
    float *to = stream + BLK * (size_t)width;
    EACH(i, width) to[i] += weight[i] * row[i];
}
static void l_add_scaled(vk_queue *queue, float *stream, const float *rows, const float *weight, int count, int width) {
    int64_t values = (int64_t)count * width;
    vk_shape(queue, count, width, 0, 0);
    LAUNCH(k_add_scaled, count, vk_threads_for(width), 2 * values, 12 * values + 4 * width, stream, rows, weight,
           width);
}

/* image features replace the embedding of their token; index < 0: dropped */
KERNEL(k_place_rows, float *stream, const float *features, const int32_t *index, int width) {
    const float *from = features + BLK * (size_t)width;
    int at = index[BLK];
    if (at >= 0) EACH(i, width) stream[(size_t)at * (size_t)width + (size_t)i] = from[i];
}
static void l_place_rows(vk_queue *queue, float *stream, const float *features, const int32_t *index, int rows,
                         int width) {
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_place_rows, rows, vk_threads_for(width), 0, (int64_t)rows * (8 * width + 4), stream, features, index,
           width);
}

/* The concatenated patches of a pool x pool window, row by row. hidden f32 [views, before + side * side, width], whose
 * first `before` rows are not patches -> out in-type [views * windows, ld] */
KERNEL(k_patch_windows, void *out, const float *hidden, int before, int width, int side, int pool, int ld, int wide) {
    int across = side / pool, view = (int)BLK / (across * across), window = (int)BLK % (across * across);
    const float *patches = hidden + ((size_t)view * (size_t)(before + side * side) + (size_t)before) * (size_t)width;
    for (int j = 0; j < pool * pool; j++) {
        int patch = (window / across * pool + j / pool) * side + window % across * pool + j % pool;
        const float *row = patches + (size_t)patch * (size_t)width;
        size_t to = BLK * (size_t)ld + (size_t)(j * width);
        EACH(i, width) vk_put(out, to + (size_t)i, row[i], wide);
    }
}
static void l_patch_windows(vk_queue *queue, void *out, const float *hidden, int views, int before, int width, int side,
                            int pool, int ld, int wide) {
    int windows = views * (side / pool) * (side / pool), columns = pool * pool * width;
    vk_shape(queue, windows, columns, 0, 0);
    LAUNCH(k_patch_windows, windows, vk_threads_for(width), 0, (int64_t)windows * columns * (4 + vk_element(wide)), out,
           hidden, before, width, side, pool, ld, wide);
}
