/* model.h - what a model is to the engine: a description of its weights and of what its shape must be
 *
 * A new model is a row of VP_ARCHITECTURES (vlmprof_config.h), which reads its config.json (vp_model_config) and
 * lists its tensors (vp_model_tensor), a file model_NAME.c next to this one that defines a vk_description, its extern
 * line below, and its place in vk_description_of (model.c). What a config says (heads, norms, tower, connector) the
 * stages of stages.c follow; a layer that they lack needs a place in vk_model (weights.h) and its operation there. */
#ifndef VK_MODEL_H
#define VK_MODEL_H

#include "weights.h"

/* A description goes over its weights once, in the order of loading: a file of them can be written front to back. The
 * same pass hands out their places (arena) or fills them (loader); the other one is NULL. Names are formats, as printf
 * has them, without ".weight" and ".bias" for norms and linears. */
typedef struct vk_pass {
    vk_arena *arena;
    vk_loader *loader;
    int wide;
    vk_precision bits;
    /* A linear that has no place yet: it depends on the types of its tensors, which follow. plain, blocks: rows of
     * either kind so far */
    vk_linear *waiting;
    int waiting_bias, plain, blocks;
} vk_pass;
/* has a bias; stays in fp32 in every mode; is a linear of a language model's block, or its head (else of tower or
 * connector) */
enum { VK_BIAS = 1, VK_FP32 = 2, VK_LLM = 4, VK_HEAD = 8 };
#ifdef __GNUC__
#define VK_FORMAT(name, first) __attribute__((format(printf, name, first)))
#else
#define VK_FORMAT(name, first)
#endif
/* f32 [width], and as many of a bias */
void vk_pass_norm(vk_pass *pass, vk_norm *norm, int width, int flags, const char *name, ...) VK_FORMAT(5, 6);
/* f32 [rows, columns] */
void vk_pass_floats(vk_pass *pass, float **values, int rows, int columns, const char *name, ...) VK_FORMAT(5, 6);
/* in-type [rows, columns]; filled row by row from one tensor after the other */
void vk_pass_table(vk_pass *pass, void **table, int rows, int columns);
void vk_pass_table_rows(vk_pass *pass, void *table, int first_row, int rows, int columns, const char *name, ...)
    VK_FORMAT(6, 7);
/* a linear of n outputs and k inputs that is one tensor (and its bias); .. */
void vk_pass_linear(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags, const char *name, ...)
    VK_FORMAT(6, 7);
/* .. or has its place first and then its rows from one tensor after the other */
void vk_pass_place(vk_pass *pass, vk_linear *linear, int outputs, int inputs, int flags);
void vk_pass_rows(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const char *name, ...)
    VK_FORMAT(5, 6);
/* .. or from a part of one, without a bias: rows from `piece->first` on */
void vk_pass_piece(vk_pass *pass, const vk_linear *linear, int first_row, int rows, const vk_piece *piece,
                   const char *name, ...) VK_FORMAT(6, 7);
/* the product with a patch's pixels [side, side, 3], of a tensor [outputs, 3, frames, side, side] */
void vk_pass_patches(vk_pass *pass, vk_linear *linear, int outputs, int side, int frames, int flags, const char *name);

/* what is read from here on becomes times * (value + plus); 0, 0: it stays unchanged */
void vk_pass_scale(vk_pass *pass, float times, float plus);

/* What several descriptions share: weights under the names that transformers gives them. The prefixes end in a dot;
 * `head` is named without ".weight". */
void vk_pass_language(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix,
                      const char *head);
float vk_embedding_scale(const vp_model_config *config, int wide); /* as wide as what it multiplies */
void vk_pass_clip(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix);
void vk_pass_projector(vk_pass *pass, vk_model *model, const vp_model_config *config, const char *prefix);
extern const vk_draw vk_common_draws[];      /* for those names */
extern const char *const vk_common_fp32[];
/* of the Molmo models: all but the head, whose blocks differ */
typedef void vk_block_weights(vk_pass *pass, vk_block *block, const vp_model_config *config, int index);
void vk_pass_molmo_text(vk_pass *pass, vk_model *model, const vp_model_config *config, vk_block_weights *block);
vp_result vk_check_molmo_vision(const vp_model_config *config, vp_error *error);
extern const vk_draw vk_molmo_draws[];
extern const char *const vk_molmo_fp32[];
int32_t vk_molmo_is_dead_view(const float *pixels, size_t count);

struct vk_description {
    const char *name;
    /* what the kernels cannot serve, beyond vk_check_config */
    vp_result (*check)(const vp_model_config *config, vp_error *error);
    void (*weights)(vk_pass *pass, vk_model *model, const vp_model_config *config);
    const vk_draw *draws; /* by the ends of names, the first that fits; the last one's is NULL */
    /* ends of names of matrices that stay in fp32 in converted files, where bf16 changes a value; the last is NULL */
    const char *const *fp32;
    int32_t (*is_dead_view)(const float *pixels, size_t count); /* whether the view has no picture; NULL: none does */
};
extern const vk_description vk_molmoe, vk_molmo, vk_olmoe, vk_llava, vk_idefics3, vk_internvl, vk_internvl_chat,
    vk_qwen2_5_vl, vk_qwen3_vl, vk_gemma3, vk_gemma3_text, vk_molmo2, vk_llama;

const vk_description *vk_description_of(const vp_model_config *config);
/* what the kernels cannot serve */
vp_result vk_check_config(const vp_model_config *config, vp_error *error);
/* the structs that contain the pointers; the weights themselves are in the arena */
vp_result vk_model_new(vk_model *model, const vp_model_config *config, vp_error *error);
void vk_model_free(vk_model *model);
void vk_layout_model(vk_arena *arena, vk_model *model, const vp_model_config *config, int wide,
                     const vk_precision *bits);
vp_result vk_load_model(vk_loader *loader, vk_model *model, const vp_model_config *config);
#endif
