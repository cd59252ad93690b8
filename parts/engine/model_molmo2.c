/* model_molmo2.c - Molmo2: SigLIP's tower, attention pooling over windows that span crops, a Qwen3-like or
 * OLMo-like language model
 *
 * source: transformers 5.23.0, models/molmo2/modeling_molmo2.py and image_processing_molmo2.py; tensor names:
 * conversion_mapping.py */
#include "engine_internal.h"

static vp_result molmo2_check(const vp_model_config *config, vp_error *error) {
    if ((int64_t)config->vit_head_count * config->window_pool * config->window_pool > VK_POOL_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "pooling_size",
                            "too large for the pooling kernel (heads * keys of a window <= 1024)");
    return VP_OK;
}

/* ---- weights */
#define BLOCK "model.transformer.blocks.%d."
static void block_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, int index) {
    int d = config->d_model, dim = config->mlp_dim, q = vk_q_width(config), kv = vk_kv_width(config),
        after = config->norm_after, whole = config->qk_norm == VP_QK_NORM_WHOLE;
    const vk_piece up = {0, 2 * dim, 0, 1, 0}, gate = {dim, 2 * dim, 0, 1, 0}; /* ff_proj: up over gate */
    vk_pass_norm(pass, after ? &block->attn_after : &block->attn_norm, d, 0, BLOCK "attn_norm", index);
    vk_pass_norm(pass, after ? &block->ff_after : &block->ff_norm, d, 0, BLOCK "ff_norm", index);
    vk_pass_norm(pass, &block->q_norm, whole ? q : config->head_dim, 0, BLOCK "self_attn.q_norm", index);
    vk_pass_norm(pass, &block->k_norm, whole ? kv : config->head_dim, 0, BLOCK "self_attn.k_norm", index);
    vk_pass_linear(pass, &block->att_proj, q + 2 * kv, d, config->qkv_bias ? VK_BIAS : 0, BLOCK "self_attn.att_proj",
                   index);
    vk_pass_linear(pass, &block->attn_out, d, q, 0, BLOCK "self_attn.attn_out", index);
    vk_pass_place(pass, &block->gate_up[0], 2 * dim, d, 0);
    vk_pass_piece(pass, &block->gate_up[0], 0, dim, &gate, BLOCK "mlp.ff_proj.weight", index);
    vk_pass_piece(pass, &block->gate_up[0], dim, dim, &up, BLOCK "mlp.ff_proj.weight", index);
    vk_pass_linear(pass, &block->down[0], d, dim, 0, BLOCK "mlp.ff_out", index);
}

static void molmo2_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_molmo_text(pass, model, config, block_weights);
    vk_pass_linear(pass, &model->head, config->embedding_size, config->d_model, 0, "lm_head");
}

const vk_description vk_molmo2 = {"Molmo2", molmo2_check, molmo2_weights, vk_molmo_draws, NULL};

/* ---- windows over the whole image in one view, and over the joined patches of the crops */
static int windows_across(int patches, int pool) { return (patches + pool - 1) / pool; }
/* patches of all crops along one axis */
static int canvas_patches(const vp_geometry *geometry, int crops) {
    int margins = geometry->margin_left_patches + geometry->margin_right_patches;
    return crops * (geometry->crop_px / geometry->patch_px - margins) + margins;
}

int vk_image_tokens(const vp_model_config *config, int views, int rows, int cols) {
    const vp_geometry *geometry = &config->geometry;
    int pool = config->window_pool;
    if (config->connector != VP_CONNECTOR_STITCHED) return views * vp_geometry_tokens_per_crop(geometry);
    return vk_view_tokens(config)
           + windows_across(canvas_patches(geometry, rows), pool)
                 * windows_across(canvas_patches(geometry, cols), pool);
}
int vk_request_image_tokens(const vp_model_config *config, const vp_request *request) {
    const vp_image_views first = vk_image_at(request, 0); /* if windows span crops, there is only one image */
    return vk_image_tokens(config, request->views, first.rows, first.cols);
}

/* the crop along an axis that provides patch `at`; each crop provides the patches outside its margins */
static int crop_of(const vp_geometry *geometry, int at, int crops) {
    int window =
            geometry->crop_px / geometry->patch_px - geometry->margin_left_patches - geometry->margin_right_patches,
        crop = at < geometry->margin_left_patches ? 0 : (at - geometry->margin_left_patches) / window;
    return crop < crops ? crop : crops - 1;
}
/* Lists the patches of each window over rows x cols crops, the first of which is view `first`. An entry beyond the
 * edges is -1; half of this padding comes first. Returns the end of the list. */
static int32_t *put_windows(const vp_model_config *config, int32_t *places, int first, int rows, int cols) {
    const vp_geometry *geometry = &config->geometry;
    int side = geometry->crop_px / geometry->patch_px, pool = config->window_pool,
        stride = side - geometry->margin_left_patches - geometry->margin_right_patches,
        height = canvas_patches(geometry, rows), width = canvas_patches(geometry, cols),
        down = windows_across(height, pool), across = windows_across(width, pool), top = (down * pool - height) / 2,
        left = (across * pool - width) / 2;
    for (int window = 0; window < down * across; window++)
        for (int i = 0; i < pool * pool; i++) {
            int y = window / across * pool + i / pool - top, x = window % across * pool + i % pool - left, crop_y,
                crop_x;
            *places++ = -1;
            if (y < 0 || x < 0 || y >= height || x >= width) continue;
            crop_y = crop_of(geometry, y, rows);
            crop_x = crop_of(geometry, x, cols);
            places[-1] =
                (first + crop_y * cols + crop_x) * side * side + (y - crop_y * stride) * side + x - crop_x * stride;
        }
    return places;
}

void vk_send_windows(vp_engine *engine, const vp_request *request) {
    int32_t *end = put_windows(&engine->config, engine->host_places, 0, 1, 1);
    end = put_windows(&engine->config, end, 1, vk_image_at(request, 0).rows, vk_image_at(request, 0).cols);
    vk_send(engine, engine->buffers.places, engine->host_places, (size_t)(end - engine->host_places) * sizeof *end);
}
