/* native.h - kernels of vision towers that take pictures of any size; included by vlmprof_kernels.cu. One block per
 * row. Some serve language models of the same checkpoints.
 *
 * `places` int32 [rows, 2]: the row and the column of a patch, in the order in which the tower has them. */

/* Row BLK of the tower's input: the patch at its place from f32 [patches, width], ordered by view. If there is a table
 * f32 [side * side, width] of learned positions, its value at that place is added: the table is stretched bilinearly
 * from corner to corner.
 * source: transformers 5.23.0, vision_utils.py, get_vision_interpolation_indices_and_weights */
KERNEL(k_grid_embed, float *out, const float *patches, const float *table, const int32_t *places, vk_picture_grid grid,
       int width) {
    int row = places[2 * BLK], col = places[2 * BLK + 1], pool = grid.pool,
        view = row / pool * (grid.cols / pool) + col / pool, at = (view * pool + row % pool) * pool + col % pool;
    const float *patch = patches + (size_t)at * (size_t)width;
    float *to = out + BLK * (size_t)width;
    if (table) {
        float y = (float)row * (float)(grid.side - 1) / (float)(grid.rows > 1 ? grid.rows - 1 : 1),
              x = (float)col * (float)(grid.side - 1) / (float)(grid.cols > 1 ? grid.cols - 1 : 1);
        int top = (int)y, left = (int)x, below = top + 1 < grid.side ? top + 1 : top,
            right = left + 1 < grid.side ? left + 1 : left;
        float down = y - (float)top, across = x - (float)left, up = 1.0f - down, back = 1.0f - across;
        const float *a = table + ((size_t)top * (size_t)grid.side + (size_t)left) * (size_t)width,
                    *b = table + ((size_t)top * (size_t)grid.side + (size_t)right) * (size_t)width,
                    *c = table + ((size_t)below * (size_t)grid.side + (size_t)left) * (size_t)width,
                    *d = table + ((size_t)below * (size_t)grid.side + (size_t)right) * (size_t)width;
        EACH(i, width)
        to[i] = patch[i] + (a[i] * (up * back) + b[i] * (up * across) + c[i] * (down * back) + d[i] * (down * across));
    } else EACH(i, width) to[i] = patch[i];
}
/* launchers for the kernels in native.h and prune.h; included by vlmprof_kernels.cu */
static void l_grid_embed(vk_queue *queue, float *out, const float *patches, const float *table, const int32_t *places,
                         const vk_picture_grid *grid, int width) {
    int64_t rows = (int64_t)grid->rows * grid->cols, values = rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_grid_embed, rows, vk_threads_for(width), table ? 8 * values : 0, (table ? 24 : 8) * values + 8 * rows, out,
           patches, table, places, *grid, width);
}

/* Rotates heads in place by their patch's place: the first half of a head's pairs by its row, the second by its column.
 * qkv in-type [rows, ld], of which the first `heads` heads are rotated; cs f32 [positions, head_dim / 2]: cos, then
 * sin, of head_dim / 4 angles */
KERNEL(k_grid_turn, void *qkv, const float *cs, const int32_t *places, int heads, int head_dim, int ld, int wide) {
    int half = head_dim / 2, quarter = head_dim / 4;
    const float *by_row = cs + (size_t)places[2 * BLK] * (size_t)half,
                *by_col = cs + (size_t)places[2 * BLK + 1] * (size_t)half;
    for (int h = 0; h < heads; h++) {
        size_t at = BLK * (size_t)ld + (size_t)(h * head_dim);
        EACH(i, half) {
            const float *c = i < quarter ? by_row + i : by_col + i - quarter;
            float e = vk_get(qkv, at + (size_t)i, wide), f = vk_get(qkv, at + (size_t)(half + i), wide), cosine = c[0],
                  sine = c[quarter];
            vk_put(qkv, at + (size_t)i, e * cosine - f * sine, wide);
            vk_put(qkv, at + (size_t)(half + i), f * cosine + e * sine, wide);
        }
    }
}
static void l_grid_turn(vk_queue *queue, void *qkv, const float *cs, const int32_t *places, int rows, int heads,
                        int head_dim, int ld, int wide) {
    int64_t values = (int64_t)rows * heads * head_dim;
    vk_shape(queue, rows, (int64_t)heads * head_dim, 0, 0);
    LAUNCH(k_grid_turn, rows, vk_threads_for(head_dim / 2), 3 * values,
           2 * values * vk_element(wide) + (int64_t)rows * (4 * head_dim + 8), qkv, cs, places, heads, head_dim, ld,
           wide);
}

/* out row BLK in-type [width of ld] = row index[BLK] of f32 [.., width] */
KERNEL(k_take_rows, void *out, const float *in, const int32_t *index, int width, int ld, int wide) {
    const float *row = in + (size_t)index[BLK] * (size_t)width;
    EACH(i, width) vk_put(out, BLK * (size_t)ld + (size_t)i, row[i], wide);
}
static void l_take_rows(vk_queue *queue, void *out, const float *in, const int32_t *index, int rows, int width, int ld,
                        int wide) {
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_take_rows, rows, vk_threads_for(width), 0, (int64_t)rows * (width * (4 + vk_element(wide)) + 4), out, in,
           index, width, ld, wide);
}

/* Row BLK of a request's own cos and sin, f32 [rows, head_dim]: pair i comes from the row of `table` at the token's
 * position along axis axes[i]. positions int32 [3, stride] */
KERNEL(k_compose_rope, float *cs, const float *table, const int32_t *positions, const int32_t *axes, int stride,
       int head_dim) {
    int half = head_dim / 2;
    float *to = cs + BLK * (size_t)head_dim;
    EACH(i, half) {
        const float *from = table + (size_t)positions[(size_t)axes[i] * (size_t)stride + BLK] * (size_t)head_dim;
        to[i] = from[i];
        to[half + i] = from[half + i];
    }
}
static void l_compose_rope(vk_queue *queue, float *cs, const float *table, const int32_t *positions,
                           const int32_t *axes, int rows, int stride, int head_dim) {
    vk_shape(queue, rows, head_dim, 0, 0);
    LAUNCH(k_compose_rope, rows, vk_threads_for(head_dim / 2), 0, (int64_t)rows * (8 * head_dim + 12) + 2 * head_dim,
           cs, table, positions, axes, stride, head_dim);
}

/* out f32 [views * windows, width] = the mean of a window's pool * pool patches; hidden f32 [views, before + side *
 * side, width] */
KERNEL(k_mean_windows, float *out, const float *hidden, int before, int width, int side, int pool) {
    int across = side / pool, windows = across * across, window = (int)(BLK % (size_t)windows),
        first = window / across * pool * side + window % across * pool;
    const float *view =
        hidden + (BLK / (size_t)windows * (size_t)(before + side * side) + (size_t)before) * (size_t)width;
    EACH(i, width) {
        float sum = 0.0f;
        for (int p = 0; p < pool * pool; p++)
            sum += view[(size_t)(first + p / pool * side + p % pool) * (size_t)width + (size_t)i];
        out[BLK * (size_t)width + (size_t)i] = sum / (float)(pool * pool);
    }
}
static void l_mean_windows(vk_queue *queue, float *out, const float *hidden, int views, int before, int width, int side,
                           int pool) {
    int windows = views * (side / pool) * (side / pool);
    int64_t count = (int64_t)windows * width;
    vk_shape(queue, windows, width, 0, 0);
    LAUNCH(k_mean_windows, windows, vk_threads_for(width), count * (pool * pool + 1), 4 * count * (pool * pool + 1),
           out, hidden, before, width, side, pool);
}

/* One window of patches of several views, from `layers` saved hidden states, `layer_floats` apart, each f32 [views *
 * patches of a view, width], side by side. places int32 [windows, patches]: rows there, negative: none. keys in-type
 * [windows * patches, ld], 0 where there is none; query in-type [windows, ld] = the mean of those there are. */
KERNEL(k_pool_places, void *keys, void *query, const float *hidden, const int32_t *places, size_t layer_floats,
       int patches, int layers, int width, int ld, int wide) {
    const int32_t *place = places + BLK * (size_t)patches;
    int there = 0;
    for (int j = 0; j < patches; j++) there += place[j] >= 0;
    for (int l = 0; l < layers; l++) {
        const float *states = hidden + (size_t)l * layer_floats;
        for (int j = 0; j < patches; j++) {
            const float *state = states + (size_t)(place[j] < 0 ? 0 : place[j]) * (size_t)width;
            float is_there = place[j] < 0 ? 0.0f : 1.0f;
            size_t to = (BLK * (size_t)patches + (size_t)j) * (size_t)ld + (size_t)(l * width);
            EACH(i, width) vk_put(keys, to + (size_t)i, is_there > 0.0f ? state[i] : 0.0f, wide);
        }
        EACH(i, width) {
            float sum = 0.0f;
            for (int j = 0; j < patches; j++)
                sum += place[j] < 0 ? 0.0f : states[(size_t)place[j] * (size_t)width + (size_t)i];
            vk_put(query, BLK * (size_t)ld + (size_t)(l * width + i), sum / (float)there, wide);
        }
    }
}
static void l_pool_places(vk_queue *queue, void *keys, void *query, const float *hidden, const int32_t *places,
                          size_t layer_floats, int windows, int patches, int layers, int width, int ld, int wide) {
    int64_t values = (int64_t)windows * patches * layers * width, queries = (int64_t)windows * layers * width;
    vk_shape(queue, windows, (int64_t)layers * width, 0, 0);
    LAUNCH(k_pool_places, windows, vk_threads_for(width), values + queries,
           4 * (values + (int64_t)windows * patches) + (values + queries) * vk_element(wide), keys, query, hidden,
           places, layer_floats, patches, layers, width, ld, wide);
}
