/* native.c - images of any size: the order of their patches in the tower, attention windows, and positions in three
 * dimensions. The host computes these integers for each request.
 *
 * source: transformers 5.23.0, vision_utils.py (get_vision_window_index, get_vision_position_ids),
 * modeling_qwen2_5_vl.py (get_rope_index) */
#include "engine_internal.h"


/* Appends the views in a box of an image to the tower's order. */
static int vk_put_views(vp_engine *engine, const vk_picture *picture, const int *box, int next) {
    int pool = picture->grid.pool, cols = picture->grid.cols / pool;
    int32_t *places = engine->host_places,
            *view_place = places + 2 * (size_t)engine->max_views * (size_t)(pool * pool) + picture->first;
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

/* Splits an image into squares of `side` views: whole ones first, then those cut by the right edge, by the lower edge,
 * and by both. The order does not affect the result, so each kind is one batch. */
static void vk_order_windows(vp_engine *engine, const vk_picture *picture, int side) {
    int pool = picture->grid.pool, unit = pool * pool, rows = picture->grid.rows / pool,
        cols = picture->grid.cols / pool, next = picture->first;
    for (int kind = 0; kind < VK_WINDOWS; kind++) {
        int right = kind & 1, lower = kind >> 1, height = lower ? rows % side : side,
            width = right ? cols % side : side, down = lower ? height > 0 : rows / side,
            across = right ? width > 0 : cols / side;
        const vk_window window = {next * unit, height > 0 && width > 0 ? down * across : 0, height * width * unit};
        if (window.batch) engine->windows[engine->window_count++] = window;
        for (int i = 0; i < window.batch; i++) {
            int top = lower ? rows - height : i / across * side, left = right ? cols - width : i % across * side;
            const int box[4] = {top, top + height, left, left + width};
            next = vk_put_views(engine, picture, box, next);
        }
    }
}

void vk_send_grid(vp_engine *engine, const vp_request *request) {
    const vp_model_config *config = &engine->config;
    int pool = config->geometry.pool, unit = pool * pool, first = 0;
    engine->picture_count = vk_image_count(request);
    engine->window_count = 0;
    for (int image = 0; image < engine->picture_count; image++) {
        const vp_image_views views = vk_image_at(request, image);
        const vk_picture picture = {
            {views.rows * pool, views.cols * pool, pool, config->vit_table_side}, first, views.views};
        const vk_window whole = {first * unit, 1, views.views * unit};
        const int box[4] = {0, views.rows, 0, views.cols};
        engine->pictures[image] = picture;
        engine->wholes[image] = whole;
        if (config->vit_window) vk_order_windows(engine, &picture, config->vit_window);
        else vk_put_views(engine, &picture, box, first);
        first += views.views;
    }
    vk_send(engine, engine->buffers.places, engine->host_places,
            2 * (size_t)request->views * (size_t)unit * sizeof(int32_t));
    vk_send(engine, engine->buffers.view_place, engine->host_places + 2 * (size_t)engine->max_views * (size_t)unit,
            (size_t)request->views * sizeof(int32_t));
}

/* time, row and column of every token that the request can reach: text counts up by one; the tokens of an image share
 * one time; text after an image continues after its largest position */
void vk_fill_positions(const vp_request *request, int32_t *positions, size_t stride, int count) {
    int next = 0, image = 0, first = 0, view = 0;
    vp_image_views views = vk_image_at(request, 0);
    for (int i = 0; i < count; i++) {
        int in_image = view < request->views && request->image_input_idx[view] == i, at = view - first;
        positions[i] = next;
        positions[stride + (size_t)i] = next + (in_image ? at / views.cols : 0);
        positions[2 * stride + (size_t)i] = next + (in_image ? at % views.cols : 0);
        if (!in_image) next++;
        else if (++view == first + views.views) {
            next += views.rows > views.cols ? views.rows : views.cols;
            first = view;
            if (++image < vk_image_count(request)) views = vk_image_at(request, image);
        }
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
