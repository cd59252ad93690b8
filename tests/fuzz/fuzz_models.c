/* fuzz_models.c: hostile config.json and preprocessor_config.json of all architectures: what the engine and the processors may rely on is true for
 * each pair that is accepted. The input: config, NUL, preprocessor, NUL, width and height of an image (two bytes each). libFuzzer entry. */
#include "fuzz.h"
#include "vlmprof_config.h"
#include "vlmprof_processor.h"

static void check_error(const vp_error *error) {
    MUST(error->text[0] && vp_utf8_valid_bytes(error->text, strlen(error->text)) == strlen(error->text));
    MUST(vp_utf8_valid_bytes(error->where, strlen(error->where)) == strlen(error->where));
}

static void check_language(const vp_model_config *c) {
    MUST(c->d_model > 0 && c->head_count > 0 && c->head_dim > 0 && c->head_dim % 2 == 0 && c->block_count > 0);
    MUST(c->kv_head_count > 0 && c->head_count % c->kv_head_count == 0);
    MUST(c->expert_count ? c->top_k >= 1 && c->top_k <= c->expert_count && c->expert_dim > 0 : c->mlp_dim > 0);
    MUST(c->vocab_size > 0 && c->embedding_size >= c->vocab_size && c->additional_vocab_size >= 0 && c->max_positions > 0);
    MUST(c->norm_eps > 0 && c->rope_theta > 0 && c->clip_qkv >= 0);
    MUST(c->rope.sections[0] >= 0 && c->rope.sections[1] >= 0 && c->rope.sections[2] >= 0);
    MUST(c->rope.sections[0] + c->rope.sections[1] + c->rope.sections[2] <= c->head_dim / 2);
}

static void check_tower(const vp_model_config *c) {
    int32_t i;
    if (!c->vit_block_count) return;
    MUST(c->vit_width > 0 && c->vit_head_count > 0 && c->vit_head_dim > 0 && c->vit_mlp_dim > 0 && c->vit_norm_eps > 0);
    MUST(c->vit_blocks_needed >= 1 && c->vit_blocks_needed <= c->vit_block_count);
    MUST(c->vit_layer_count >= 1 && c->vit_layer_count <= VP_VIT_LAYERS_MAX && c->deepstack_count < c->vit_layer_count);
    for (i = 0; i < c->vit_layer_count; i++) MUST(c->vit_layers[i] >= -c->vit_block_count - 1 && c->vit_layers[i] < c->vit_block_count);
    MUST(c->vit_window >= 0 && c->vit_positions > 0 && c->connector != VP_CONNECTOR_NONE);
    MUST(vp_geometry_check(&c->geometry) == VP_OK);
}

static void check_tensors(const vp_model_config *c) {
    const int64_t count = vp_model_tensor_count(c);
    vp_tensor_spec spec;
    MUST(count > 0 && vp_model_tensor(c, count, &spec) == VP_ERR_RANGE);
    for (int64_t i = 0; i < count; i += count / 50 + 1) {
        MUST(vp_model_tensor(c, i, &spec) == VP_OK && spec.name[0] && spec.dimensions >= 1 && spec.dimensions <= VP_TENSOR_DIMENSIONS_MAX);
        for (int32_t k = 0; k < spec.dimensions; k++) MUST(spec.shape[k] > 0);
    }
}

/* the kind that reads this architecture's pictures; VP_PROCESSOR_COUNT: none, or Molmo's own rules */
static vp_processor_kind kind_of(vp_architecture architecture) {
    switch (architecture) {
    case VP_ARCHITECTURE_LLAVA: return VP_PROCESSOR_LLAVA;
    case VP_ARCHITECTURE_IDEFICS3:
    case VP_ARCHITECTURE_SMOLVLM: return VP_PROCESSOR_IDEFICS3;
    case VP_ARCHITECTURE_INTERNVL: return VP_PROCESSOR_INTERNVL;
    case VP_ARCHITECTURE_INTERNVL_CHAT: return VP_PROCESSOR_INTERNVL_CHAT;
    case VP_ARCHITECTURE_QWEN2_5_VL: return VP_PROCESSOR_QWEN2_5_VL;
    case VP_ARCHITECTURE_QWEN3_VL:
    case VP_ARCHITECTURE_QWEN3_VL_MOE: return VP_PROCESSOR_QWEN3_VL;
    case VP_ARCHITECTURE_MOLMO2: return VP_PROCESSOR_MOLMO2;
    default: return VP_PROCESSOR_COUNT;
    }
}

static void check_processor(const vp_model_config *config, const vp_json *json, int32_t width, int32_t height) {
    const vp_processor_kind kind = kind_of(config->architecture);
    const int32_t wanted = 256;
    vp_processor processor;
    vp_layout picture;
    vp_error error = {0};
    size_t text = 0, expanded = 0;
    char prompt[256];
    if (kind == VP_PROCESSOR_COUNT) return;
    if (vp_processor_read(kind, &config->geometry, json, &processor, &error) != VP_OK || vp_processor_layout(&processor, width, height, &picture, &error) != VP_OK) {
        check_error(&error);
        return;
    }
    MUST(picture.views >= 1 && picture.feature_tokens >= 1 && picture.tiling.rows >= 1 && picture.tiling.cols >= 1);
    MUST((int64_t)picture.views * config->geometry.crop_px * config->geometry.crop_px <= VP_PROCESSOR_VIEW_PIXELS_MAX);
    MUST(vp_processor_prompt(kind, "What?", NULL, 1, prompt, sizeof prompt, &text) == VP_OK);
    MUST(vp_processor_expand(&processor, &picture, 1, prompt, NULL, 0, &expanded) == VP_ERR_CAPACITY && expanded);
    if (!vp_processor_knob(&processor, 0)) return;
    if (vp_processor_aim(&processor, width, height, wanted, &error) != VP_OK) { check_error(&error); return; }
    MUST(vp_processor_layout(&processor, width, height, &picture, &error) == VP_OK && picture.feature_tokens <= wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *end = (const char *)memchr(data, 0, size), *preprocessor = end ? end + 1 : NULL;
    const size_t bytes = end ? (size_t)(end - text) : size;
    const size_t rest = preprocessor ? size - bytes - 1 : 0;
    const char *stop = rest ? (const char *)memchr(preprocessor, 0, rest) : NULL;
    const size_t preprocessor_bytes = stop ? (size_t)(stop - preprocessor) : rest;
    const uint8_t *sides = stop ? (const uint8_t *)stop + 1 : NULL;
    const int has_sides = sides && (size_t)(sides - data) + 4 <= size;
    vp_model_config config;
    vp_json json = {0};
    vp_error error = {0};
    if (vp_model_config_parse(text, bytes, rest ? preprocessor : NULL, preprocessor_bytes, &config, &error) != VP_OK) {
        check_error(&error);
        return 0;
    }
    check_language(&config);
    check_tower(&config);
    check_tensors(&config);
    if (!rest || !config.vit_block_count) return 0;
    MUST(vp_json_load(preprocessor, preprocessor_bytes, "preprocessor_config.json", &json, &error) == VP_OK);
    check_processor(&config, &json, has_sides ? sides[0] | sides[1] << 8 : 640, has_sides ? sides[2] | sides[3] << 8 : 480);
    free((void *)json.nodes);
    return 0;
}
