/* model.c - finds the description of a model and makes the pass over its weights */
#include "description.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 192 };

const vk_description *vk_description_of(const vp_model_config *config) {
    static const vk_description *const descriptions[VP_ARCHITECTURE_COUNT] = {
        &vk_molmoe,   &vk_molmo,         &vk_olmoe,      &vk_llava,    &vk_idefics3,    &vk_idefics3,
        &vk_internvl, &vk_internvl_chat, &vk_qwen2_5_vl, &vk_qwen3_vl, &vk_qwen3_vl,    &vk_gemma3,
        &vk_molmo2,   &vk_llama,         &vk_llama,      &vk_llama,    &vk_gemma3_text, &vk_olmoe};
    return descriptions[config->architecture];
}

vp_result vk_check_config(const vp_model_config *config, vp_error *error) {
    if ((unsigned)config->architecture >= VP_ARCHITECTURE_COUNT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "architecture", "is not one of VP_ARCHITECTURES");
    if (config->kv_head_count < 1 || config->head_count % config->kv_head_count)
        return vp_error_set(error, VP_ERR_RANGE, -1, "kv_head_count", "must divide head_count");
    if (config->expert_count > VK_EXPERTS_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "moe_num_experts", "must be at most 1024");
    if (config->expert_count && (config->mlp_dim || config->norm_after || config->norm_around || config->gated_gelu))
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "moe_num_experts",
                            "experts together with a dense MLP, GELU, or norms after them are not implemented");
    if (config->vit_block_count && (config->vit_layer_count < 1 || config->vit_layer_count > VP_VIT_LAYERS_MAX))
        return vp_error_set(error, VP_ERR_RANGE, -1, "vit_layers", "1 to 4 layers");
    if (3 * config->geometry.patch_px * config->geometry.patch_px > VK_PATCH_VALUES_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "patch_size", "must be at most 36 pixels");
    return vk_description_of(config)->check ? vk_description_of(config)->check(config, error) : VP_OK;
}

vp_result vk_model_new(vk_model *model, const vp_model_config *config, vp_error *error) {
    size_t experts = config->expert_count ? (size_t)config->expert_count : 1;
    vk_linear *linears = calloc(2 * experts * (size_t)config->block_count, sizeof *linears);
    model->description = vk_description_of(config);
    model->vit = calloc((size_t)config->vit_blocks_needed + 1, sizeof *model->vit);
    model->blocks = calloc((size_t)config->block_count, sizeof *model->blocks);
    if (!linears || !model->vit || !model->blocks) {
        free(linears);
        return vp_error_set(error, VP_ERR_MEMORY, -1, "model", "not enough memory for the table of layers");
    }
    for (int b = 0; b < config->block_count; b++) {
        model->blocks[b].gate_up = linears + (size_t)b * 2 * experts;
        model->blocks[b].down = model->blocks[b].gate_up + experts;
    }
    return VP_OK;
}

void vk_model_free(vk_model *model) {
    if (model->blocks) free(model->blocks[0].gate_up);
    free(model->blocks);
    free(model->vit);
}

void vk_layout_model(vk_arena *arena, vk_model *model, const vp_model_config *config, int wide,
                     const vk_precision *bits) {
    vk_pass pass = {arena, NULL, wide, *bits};
    model->description->weights(&pass, model, config);
}

vp_result vk_load_model(vk_loader *loader, vk_model *model, const vp_model_config *config) {
    vk_pass pass = {NULL, loader, loader->wide, {0, 0, 0}};
    loader->description = model->description;
    model->description->weights(&pass, model, config);
    return loader->result;
}

/* ---- the pass */

#define NAME_OF(text, format) \
    do { \
        va_list arguments; \
        va_start(arguments, format); \
        vsnprintf(text, sizeof text, format, arguments); \
        va_end(arguments); \
    } while (0)

void vk_pass_scale(vk_pass *pass, float times, float plus) {
    if (!pass->loader) return;
    pass->loader->times = times;
    pass->loader->plus = plus;
}

void vk_pass_norm(vk_pass *pass, vk_norm *norm, int width, int flags, const char *name, ...) {
    char text[NAME_BYTES];
    NAME_OF(text, name);
    if (pass->arena) vk_layout_norm(pass->arena, norm, width, flags & VK_BIAS);
    else vk_load_norm(pass->loader, text, norm, width);
}

void vk_pass_floats(vk_pass *pass, float **values, int rows, int columns, const char *name, ...) {
    char text[NAME_BYTES];
    NAME_OF(text, name);
    if (pass->arena) *values = vk_take(pass->arena, (size_t)rows * (size_t)columns, sizeof **values);
    else vk_load_rows(pass->loader, text, *values, rows, columns, 1);
}

void vk_pass_table(vk_pass *pass, void **table, int rows, int columns) {
    if (pass->arena) *table = vk_take(pass->arena, (size_t)rows * (size_t)columns, pass->wide ? 4 : 2);
}

void vk_pass_table_rows(vk_pass *pass, void *table, int first_row, int rows, int columns, const char *name, ...) {
    size_t row_bytes = (size_t)columns * (pass->wide ? 4 : 2);
    char text[NAME_BYTES];
    NAME_OF(text, name);
    if (pass->loader)
        vk_load_rows(pass->loader, text, (char *)table + (size_t)first_row * row_bytes, rows, columns, pass->wide);
}

void vk_pass_linear(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags, const char *name, ...) {
    char text[NAME_BYTES];
    NAME_OF(text, name);
    vk_pass_place(pass, linear, outputs, inputs, flags);
    vk_pass_rows(pass, linear, 0, outputs, "%s", text);
}

void vk_pass_place(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags) {
    const int bits = flags & VK_FP32   ? 0
                     : flags & VK_LLM  ? pass->bits.blocks
                     : flags & VK_HEAD ? pass->bits.head
                                       : pass->bits.vision;
    if (!pass->arena) return;
    vk_layout_linear(pass->arena, linear, outputs, inputs, flags & VK_BIAS, pass->wide || (flags & VK_FP32), bits);
}

void vk_pass_rows(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const char *name, ...) {
    char text[NAME_BYTES];
    NAME_OF(text, name);
    if (pass->loader) vk_load_linear(pass->loader, text, linear, first_row, rows);
}

void vk_pass_piece(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const vk_piece *piece,
                   const char *name, ...) {
    char text[NAME_BYTES];
    NAME_OF(text, name);
    if (pass->loader) vk_load_linear_piece(pass->loader, text, linear, first_row, rows, piece);
}

void vk_pass_patches(vk_pass *pass, vk_linear *linear, int outputs, int side, int frames, int flags, const char *name) {
    const vk_piece patches = {0, outputs, side, frames, 0};
    char text[NAME_BYTES];
    vk_pass_place(pass, linear, outputs, 3 * side * side, flags);
    if (!pass->loader) return;
    snprintf(text, sizeof text, "%s.weight", name);
    vk_load_linear_piece(pass->loader, text, linear, 0, outputs, &patches);
    snprintf(text, sizeof text, "%s.bias", name);
    if (linear->bias) vk_load_rows(pass->loader, text, (float *)(uintptr_t)linear->bias, 1, outputs, 1);
}
