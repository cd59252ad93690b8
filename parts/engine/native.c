/* native.c - a picture of any size: the order of its patches in the tower, windows of attention, positions in three
 * dimensions. Integers that the host works out for each request.
 *
 * source: transformers 5.23.0, vision_utils.py (get_vision_window_index, get_vision_position_ids),
 * modeling_qwen2_5_vl.py (get_rope_index) */
#include "engine_internal.h"


/* The views of rows top.. and columns left.. become the next ones of the tower. */
static int vk_put_views(vp_engine *engine, const int *box, int next) {
    int pool = engine->grid.pool, cols = engine->grid.cols / pool;
    int32_t *places = engine->host_places, *view_place = places + 2 * (size_t)engine->max_views * (size_t)(pool * pool);
    for (int row = box[0]; row < box[1]; row++)
        for (int col = box[2]; col < box[3]; col++) {
            view_place[row * cols + col] = next;
            for (int patch = 0; patch < pool * pool; patch++) {
                int32_t *place = places + 2 * ((size_t)next * (size_t)(pool * pool) + (size_t)patch);
                place[0] = row * pool + patch / pool;
                place[1] = col * pool + patch % pool;
            }
            next++;
        }
    return next;
}

/* Squares of `side` views: whole ones first, then those that the right edge cuts, the lower edge, both. The order does
 * not matter to the result, and so each kind is one batch. */
static void vk_order_windows(vp_engine *engine, int rows, int cols, int side) {
    int unit = engine->grid.pool * engine->grid.pool, next = 0;
    for (int kind = 0; kind < VK_WINDOWS; kind++) {
        int right = kind & 1, lower = kind >> 1, height = lower ? rows % side : side,
            width = right ? cols % side : side,
            down = lower ? height > 0 : rows / side, across = right ? width > 0 : cols / side;
        vk_window *window = &engine->windows[kind];
        window->first = next * unit;
        window->tokens = height * width * unit;
        window->batch = window->tokens ? down * across : 0;
        for (int i = 0; i < window->batch; i++) {
            int top = lower ? rows - height : i / across * side, left = right ? cols - width : i % across * side;
            const int box[4] = { top, top + height, left, left + width };
            next = vk_put_views(engine, box, next);
        }
    }
}

void vk_send_grid(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    int pool = config->geometry.pool, rows = request->grid_rows, cols = request->grid_cols;
    size_t patches = (size_t)request->views * (size_t)(pool * pool);
    const int whole[4] = { 0, rows, 0, cols };
    engine->grid.rows = rows * pool;
    engine->grid.cols = cols * pool;
    engine->grid.pool = pool;
    engine->grid.side = config->vit_table_side;
    if (config->vit_window) vk_order_windows(engine, rows, cols, config->vit_window);
    else vk_put_views(engine, whole, 0);
    vk_send(engine, engine->buffers.places, engine->host_places, 2 * patches * sizeof(int32_t));
    vk_send(engine, engine->buffers.view_place,
            engine->host_places + 2 * (size_t)engine->max_views * (size_t)(pool * pool),
            (size_t)request->views * sizeof(int32_t));
}

/* time, row and column of every token that the request can reach: a text counts on, an image's tokens have one time,
 * and what follows goes on after the largest position */
void vk_fill_positions(const vp_request *request, int32_t *positions, size_t stride, int count) {
    int next = 0, view = 0, cols = request->grid_cols;
    for (int i = 0; i < count; i++) {
        int in_image = view < request->views && request->image_input_idx[view] == i;
        positions[i] = next;
        positions[stride + (size_t)i] = next + (in_image ? view / cols : 0);
        positions[2 * stride + (size_t)i] = next + (in_image ? view % cols : 0);
        if (!in_image) next++;
        else if (++view == request->views) next += request->grid_rows > cols ? request->grid_rows : cols;
    }
}
void vk_send_positions(vp_engine *engine, const vp_request *request) {
    int count = request->input_count + request->max_new_tokens - 1;
    size_t stride = (size_t)engine->max_sequence;
    if (!engine->queue->dry) vk_fill_positions(request, engine->host_places, stride, count);
    for (size_t axis = 0; axis < 3; axis++)
        vk_send(engine, engine->buffers.rope_positions + axis * stride, engine->host_places + axis * stride,
                (size_t)count * sizeof(int32_t));
}
