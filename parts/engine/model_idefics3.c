/* model_idefics3.c - Idefics3, SmolVLM and SmolVLM2: SigLIP, one matrix over windows of patches, Llama
 *
 * source: transformers 5.23.0, models/idefics3/modeling_idefics3.py and models/smolvlm/modeling_smolvlm.py */
#include "engine_internal.h"

static void idefics3_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_language(pass, model, config, "model.text_model.", "lm_head");
    vk_pass_clip(pass, model, config, "model.vision_model.");
    vk_pass_norm(pass, &model->post_ln, config->vit_width, VK_BIAS, "model.vision_model.post_layernorm");
    vk_pass_linear(pass, &model->projector_down, config->d_model, vk_window_width(config), 0,
                   "model.connector.modality_projection.proj");
}

const vk_description vk_idefics3 = {"Idefics3", NULL, idefics3_weights, vk_common_draws, NULL};
