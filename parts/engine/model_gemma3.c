/* model_gemma3.c - Gemma 3: SigLIP, the mean of each window of patches, then one matrix, two kinds of blocks with norms
 * around attention and MLP
 *
 * source: transformers 5.23.0, models/gemma3/modeling_gemma3.py and models/siglip/modeling_siglip.py */
#include "description.h"

/* norms are stored minus 1, and embeddings are multiplied by the square root of their width: these draws keep every
 * activation near unit size */
static const vk_draw gemma3_draws[] = {{"layer_norm1.weight", 1.0f, 0.1f},
                                       {"layer_norm2.weight", 1.0f, 0.1f},
                                       {"post_layernorm.weight", 1.0f, 0.1f},
                                       {"norm.weight", 0.0f, 0.1f},
                                       {".bias", 0.0f, 0.05f},
                                       {"position_embedding.weight", 0.0f, 0.5f},
                                       {NULL, 0.0f, 0.0f}};

static void gemma3_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    const vk_piece projection = {0, config->vit_width, 0, 1, config->d_model};
    vk_pass_language(pass, model, config, "language_model.model.", "language_model.lm_head");
    vk_pass_clip(pass, model, config, "vision_tower.vision_model.");
    vk_pass_norm(pass, &model->post_ln, config->vit_width, VK_BIAS, "vision_tower.vision_model.post_layernorm");
    vk_pass_scale(pass, 1.0f, 1.0f);
    vk_pass_norm(pass, &model->projector_norm, config->vit_width, 0, "multi_modal_projector.mm_soft_emb_norm");
    vk_pass_scale(pass, 0.0f, 0.0f);
    vk_pass_place(pass, &model->projector_down, config->d_model, config->vit_width, 0);
    vk_pass_piece(pass, &model->projector_down, 0, config->d_model, &projection,
                  "multi_modal_projector.mm_input_projection_weight");
}

static void gemma3_text_weights(vk_pass *pass, vk_model *model, const vp_model_config *config) {
    vk_pass_language(pass, model, config, "model.", "lm_head");
}

const vk_description vk_gemma3_text = {"Gemma 3 without a tower", NULL, gemma3_text_weights, gemma3_draws, NULL};
const vk_description vk_gemma3 = {"Gemma 3", NULL, gemma3_weights, gemma3_draws, NULL};
