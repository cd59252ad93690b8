/* model_llama.c - language models without a tower, with transformers' names: Llama, Qwen2 and Qwen3 (dense), OLMoE and
 * Qwen3-MoE
 *
 * source: transformers 5.23.0, models/{llama,qwen2,qwen3,olmoe,qwen3_moe}/modeling_*.py */
#include "description.h"

static void llama_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_language(pass, model, config, "model.", "lm_head");
}

const vk_description vk_llama = {"Llama", NULL, llama_weights, vk_common_draws, NULL};
const vk_description vk_olmoe = {"OLMoE", NULL, llama_weights, vk_common_draws, NULL};
