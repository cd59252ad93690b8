/* model_llava.c - LLaVA-1.5: CLIP without its last block, two matrices, Llama
 *
 * source: transformers 5.23.0, models/llava/modeling_llava.py and models/clip/modeling_clip.py */
#include "description.h"

static void llava_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_language(pass, model, config, "language_model.model.", "language_model.lm_head");
    vk_pass_clip(pass, model, config, "vision_tower.vision_model.");
    vk_pass_projector(pass, model, config, "multi_modal_projector.");
}

const vk_description vk_llava = {"LLaVA", NULL, llava_weights, vk_common_draws, NULL};
