/* model_olmoe.c - OLMoE: MolmoE's language model alone, under transformers' names
 *
 * source: transformers 5.23.0, models/olmoe/modeling_olmoe.py */
#include "model.h"

static void olmoe_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_language(pass, model, config, "model.", "lm_head");
}

const vk_description vk_olmoe = { "OLMoE", NULL, olmoe_weights, vk_common_draws, vk_common_fp32, NULL };
