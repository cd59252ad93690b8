/* model.h - what a model is to the engine: a description of its weights and of the order of its stages
 *
 * A new model is a new file beside model_molmoe.c that defines a vk_description, its extern line below, and a choice
 * in vk_description_of (model.c). What its stages are made of stands in stages.c. If its layers are not MolmoE's, they
 * need a place in vk_model (weights.h). If its files are not, vlmprof_checkpoint.h needs to know them: it reads
 * config.json (vp_model_config) and lists the tensors (vp_model_tensor). */
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
} vk_pass;
enum { VK_BIAS = 1, VK_FP32 = 2 }; /* has a bias; stays in fp32 in bf16 mode, too */
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

struct vk_description {
    const char *name;
    /* what the kernels cannot serve */
    vp_result (*check)(const vp_model_config *config, vp_error *error);
    void (*weights)(vk_pass *pass, vk_model *model, const vp_model_config *config);
    const vk_draw *draws; /* by the ends of names, the first that fits; the last one's is NULL */
    /* ends of names of matrices that stay in fp32 in converted files, where bf16 changes a value; the last is NULL */
    const char *const *fp32;
    /* the linears whose bias is added to bf16 results, for a backend that wants it rounded; NULL behind the last one */
    vk_linear *(*rounded)(vk_model *model, const vp_model_config *config, int index);
    int32_t (*is_dead_view)(const float *pixels, size_t count); /* whether the view holds no picture */
    /* the stages of a request up to the first token, each with its vk_end_stage; .. */
    void (*prefill)(vp_engine *engine, const vp_request *request, vp_reply *reply);
    /* .. and those of one decode step at `position` */
    void (*step)(vp_engine *engine, const vp_request *request, int position);
};
extern const vk_description vk_molmoe;

const vk_description *vk_description_of(const vp_model_config *config);
/* the structs that hold the pointers; the weights themselves lie in the arena */
vp_result vk_model_new(vk_model *model, const vp_model_config *config, vp_error *error);
void vk_model_free(vk_model *model);
void vk_layout_model(vk_arena *arena, vk_model *model, const vp_model_config *config, int wide);
vp_result vk_load_model(vk_loader *loader, vk_model *model, const vp_model_config *config);
#endif
