/* model.h - a model's weights as a whole */
#ifndef VK_MODEL_H
#define VK_MODEL_H

#include "weights.h"

/* the structs that hold the pointers; the weights themselves lie in the arena */
vp_result vk_model_new(vk_model *m, const vp_model_config *c, vp_error *error);
void vk_model_free(vk_model *m);
void vk_layout_model(vk_arena *arena, vk_model *m, const vp_model_config *c, int wide);
vp_result vk_load_model(vk_loader *loader, vk_model *m, const vp_model_config *c);
#endif
