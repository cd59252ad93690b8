/* model.c - the tables of a model's layers */
#include "model.h"

#include <stdlib.h>

vp_result vk_model_new(vk_model *m, const vp_model_config *c, vp_error *error) {
    size_t experts = (size_t)c->block_count * (size_t)c->expert_count;
    vk_linear *linears = calloc(2 * experts, sizeof *linears);
    m->vit = calloc((size_t)c->vit_blocks_needed, sizeof *m->vit);
    m->blocks = calloc((size_t)c->block_count, sizeof *m->blocks);
    if (!linears || !m->vit || !m->blocks) {
        free(linears);
        return vp_fail(error, VP_ERR_MEMORY, -1, "model", "no memory for the table of layers");
    }
    for (int b = 0; b < c->block_count; b++) {
        m->blocks[b].gate_up = linears + (size_t)b * 2 * (size_t)c->expert_count;
        m->blocks[b].down = m->blocks[b].gate_up + c->expert_count;
    }
    return VP_OK;
}
void vk_model_free(vk_model *m) {
    if (m->blocks) free(m->blocks[0].gate_up);
    free(m->blocks);
    free(m->vit);
}
