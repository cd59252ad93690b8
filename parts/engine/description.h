/* description.h - the description of a model for the engine: its weights and the constraints on its shape
 *
 * A new model needs a row in VP_ARCHITECTURES (vlmprof_config.h), code that reads its config.json (vp_model_config) and
 * lists its tensors (vp_model_tensor), a file model_NAME.c in this folder that defines a vk_description, its extern
 * line below, and an entry in vk_description_of (model.c). The stages in stages.c follow the config (heads, norms,
 * tower, connector). A layer that they lack needs a member in vk_model (weights.h) and its operation in stages.c. */
#ifndef VK_DESCRIPTION_H
#define VK_DESCRIPTION_H

#include "weights.h"

/* A description visits its weights once, in loading order. The same pass assigns addresses (arena) or fills the weights
 * (loader); the other pointer is NULL. Names are printf formats, without ".weight" and ".bias" for norms and linears.
 */
typedef struct vk_pass {
    vk_arena *arena;
    vk_loader *loader;
    int wide;
    vk_precision bits;
} vk_pass;
/* flags: has a bias; stays in fp32 in every mode; belongs to a block of the language model, or to its head (otherwise
 * to tower or connector) */
enum { VK_BIAS = 1, VK_FP32 = 2, VK_LLM = 4, VK_HEAD = 8 };
/* f32 [width], and a bias of the same size */
void vk_pass_norm(vk_pass *pass, vk_norm *norm, int width, int flags, const char *name, ...) VP_IMPL_FORMAT(5, 6);
/* f32 [rows, columns] */
void vk_pass_floats(vk_pass *pass, float **values, int rows, int columns, const char *name, ...) VP_IMPL_FORMAT(5, 6);
/* in-type [rows, columns]; filled in row order from consecutive tensors */
void vk_pass_table(vk_pass *pass, void **table, int rows, int columns);
void vk_pass_table_rows(vk_pass *pass, void *table, int first_row, int rows, int columns, const char *name, ...)
    VP_IMPL_FORMAT(6, 7);
/* a linear of n outputs and k inputs from one tensor, and its bias */
void vk_pass_linear(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags, const char *name, ...)
    VP_IMPL_FORMAT(6, 7);
/* a linear that is reserved first; vk_pass_rows then fills its rows from consecutive tensors, */
void vk_pass_place(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags);
void vk_pass_rows(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const char *name, ...)
    VP_IMPL_FORMAT(5, 6);
/* and vk_pass_piece from part of a tensor, without a bias: rows starting at `piece->first` */
void vk_pass_piece(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const vk_piece *piece,
                   const char *name, ...) VP_IMPL_FORMAT(6, 7);
/* the linear over a patch's pixels [side, side, 3], from a tensor [outputs, 3, frames, side, side] */
void vk_pass_patches(vk_pass *pass, vk_linear *linear, int outputs, int side, int frames, int flags, const char *name);

/* values read after this call become times * (value + plus); 0, 0: values are unchanged */
void vk_pass_scale(vk_pass *pass, float times, float plus);

/* Shared by several descriptions: weights with transformers' names. Prefixes end in a dot; `head` is the name
 * without ".weight". */
void vk_pass_language(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix,
                      const char *head);
float vk_embedding_scale(const vp_model_config *config, int wide); /* rounded to the type that it multiplies */
void vk_pass_clip(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix);
void vk_pass_projector(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix);
extern const vk_draw vk_common_draws[]; /* for those names */
/* for the Molmo models, whose blocks differ: everything except the head */
typedef void vk_block_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, int index);
void vk_pass_molmo_text(vk_pass *pass, vk_model *model, const vp_model_config *config, vk_block_weights *block);
vp_result vk_check_molmo_vision(const vp_model_config *config, vp_error *error);
extern const vk_draw vk_molmo_draws[];
int32_t vk_molmo_is_dead_view(const float *pixels, size_t count);

struct vk_description {
    const char *name;
    /* rejects what the kernels do not support, in addition to vk_check_config */
    vp_result (*check)(const vp_model_config *config, vp_error *error);
    void (*weights)(vk_pass *pass, vk_model *model, const vp_model_config *config);
    const vk_draw *draws; /* found by the end of a name, first match; the last entry's name is NULL */
    int32_t (*is_dead_view)(const float *pixels, size_t count); /* returns 1 if the view has no image; NULL: all have
                                                                 * one */
};
extern const vk_description vk_molmoe, vk_molmo, vk_olmoe, vk_llava, vk_idefics3, vk_internvl, vk_internvl_chat,
    vk_qwen2_5_vl, vk_qwen3_vl, vk_gemma3, vk_gemma3_text, vk_molmo2, vk_llama;

const vk_description *vk_description_of(const vp_model_config *config);
/* rejects configs that the kernels do not support */
vp_result vk_check_config(const vp_model_config *config, vp_error *error);
/* allocates the structs with the pointers; the weights themselves are in the arena */
vp_result vk_model_new(vk_model *model, const vp_model_config *config, vp_error *error);
void vk_model_free(vk_model *model);
void vk_layout_model(vk_arena *arena, vk_model *model, const vp_model_config *config, int wide,
                     const vk_precision *bits);
vp_result vk_load_model(vk_loader *loader, vk_model *model, const vp_model_config *config);
#endif
