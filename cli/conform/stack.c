/* stack.c: the built-in engine as a stack, and the code shared by all stacks. */
#include "conform/stack.h"

#include "base/console.h"
#include "base/memory.h"
#include "measure/dump.h"
#include "measure/engine.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_NAME(id, name) name,
const char *const CONFORM_STAGE_NAMES[CONFORM_STAGES] = {CONFORM_STAGE_ROWS(STAGE_NAME)};
const char *const PRECISION_NAMES[PRECISIONS_KNOWN] = {"fp32", "fp16", "bf16", "int8", "int4"};

void stack_free(struct stack *stack) {
    for (int i = 0; i < CONFORM_STAGES; i++) {
        FREE_ALL(stack->stages[i].whole, stack->stages[i].real);
    }
    likely_free(&stack->likely);
    free(stack->answer);
    dump_free(&stack->dump);
    memset(stack, 0, sizeof *stack);
}

/* ---- the request */
int probe_open(const char *name, const char *projector, const struct probe *probe, struct request *request) {
    struct model *model = &request->model;
    const struct image_size size = {NULL, 0, NULL, 0, NULL};
    int code, has_image = probe->image_path != NULL;
    int32_t *blocks;
    model->name = name;
    model->projector = projector;
    if ((code = model_load_folder(model)) != 0 || (code = checkpoint_open(model)) != 0) return code;
    if (is_packed(model, NULL))
        return complain(EXIT_INPUT, "%s: packed weights have only one precision; give the folder that they were made "
                                    "from",
                        name);
    if (has_image && model_is_blind(model))
        return complain(EXIT_USAGE, "%s: %s reads only text: remove the image", name,
                        vp_architecture_name(model->config.architecture));
    request->sample.prompt = probe->is_raw ? copy_text(probe->prompt, strlen(probe->prompt))
                                           : model->rules->prompt(model, NULL, probe->prompt, NULL, has_image);
    if (has_image && (code = request_load_images(request, &probe->image_path, 1, &size)) != 0) return code;
    if ((code = tokenize_input(request)) != 0) return code;
    blocks = resize(NULL, (size_t)model->config.block_count, sizeof *blocks);
    for (int32_t i = 0; i < model->config.block_count; i++) blocks[i] = i;
    knob_set_list(&request->knobs, KNOB_BLOCKS, blocks, model->config.block_count);
    free(blocks);
    knob_set_number(&request->knobs, KNOB_TOP_K, model->config.top_k);
    input_apply_knobs(&request->input, &request->knobs);
    request->input.new_tokens = probe->new_tokens;
    request->input.ignore_eos = 1;
    return check_sequence(model, &request->input);
}

/* ---- the engine's values */
size_t strip_image_ids(const struct model *model, int has_image, const int32_t *ids, size_t count, int32_t *out) {
    const vp_special_ids *special = &model->ids;
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        const int is_image = model->rules->is_tiled ? ids[i] == special->im_start || ids[i] == special->im_end
                                                          || ids[i] == special->im_patch || ids[i] == special->im_col
                                                    : ids[i] == model->image_token;
        if (!has_image || !is_image) out[left++] = ids[i];
    }
    return left;
}
size_t used_features(const struct request *request, const float *features, float *out) {
    const vp_model_config *config = &request->model.config;
    const vp_layout *layout = &request->cuts.whole;
    const size_t width = (size_t)config->d_model;
    const int32_t *index = (const int32_t *)request->session.inputs.index.data;
    const size_t all = config->connector == VP_CONNECTOR_STITCHED
                           ? (size_t)layout->feature_tokens
                           : (size_t)layout->views * (size_t)vp_geometry_tokens_per_crop(&config->geometry);
    size_t rows = 0;
    for (size_t i = 0; i < all; i++)
        if (!request->model.rules->is_tiled || index[i] >= 0) {
            if (out) memcpy(out + rows * width, features + i * width, width * sizeof *out);
            rows++;
        }
    return rows * width;
}
static void set_real(struct stage_values *values, float *real, size_t count) {
    values->is_known = 1;
    values->real = real;
    values->count = count;
}
static float *copied(const float *values, size_t count) {
    float *copy = resize(NULL, count + 1, sizeof *copy);
    if (count) memcpy(copy, values, count * sizeof *copy);
    return copy;
}
/* Sets the image's values that are known before anything runs: counts and pixels. */
static void take_image(const struct request *request, size_t image_tokens, struct stack *stack) {
    const vp_layout *layout = &request->cuts.whole;
    struct stage_values *image = &stack->stages[CONFORM_IMAGE];
    int64_t shape[4];
    int dimensions;
    size_t count = 1;
    float *pixels = dump_pixels(&request->session, &request->input, &dimensions, shape);
    for (int i = 0; i < dimensions; i++) count *= (size_t)shape[i];
    set_real(&stack->stages[CONFORM_PIXELS], pixels, count);
    image->is_known = 1;
    image->count = 4;
    image->whole = resize(NULL, image->count, sizeof *image->whole);
    image->whole[0] = (int32_t)image_tokens;
    image->whole[1] = layout->views;
    image->whole[2] = layout->resized_width_px;
    image->whole[3] = layout->resized_height_px;
}
static void take_values(const struct request *request, const struct pass_result *run, struct stack *stack) {
    const vp_model_config *config = &request->model.config;
    struct stage_values *ids = &stack->stages[CONFORM_PROMPT_IDS], *tokens = &stack->stages[CONFORM_TOKENS];
    const size_t sequence = (size_t)sequence_of(&request->input);
    const int has_image = layout_of(&request->input) != NULL;
    ids->is_known = 1;
    ids->whole = resize(NULL, sequence + 1, sizeof *ids->whole);
    ids->count = strip_image_ids(&request->model, has_image, (const int32_t *)request->session.inputs.ids.data,
                                 sequence, ids->whole);
    if (has_image) {
        const size_t patches =
            (size_t)request->cuts.whole.views * (size_t)(config->vit_positions - config->vit_class_token);
        const size_t width = (size_t)config->vit_width, of = (size_t)config->vit_layer_count * width,
                     row = config->deepstack_count ? width : of;
        float *tower = resize(NULL, patches * row + 1, sizeof *tower);
        const size_t features = used_features(request, stack->dump.image_features, NULL);
        float *used = resize(NULL, features + 1, sizeof *used);
        take_image(request, sequence - ids->count, stack);
        for (size_t i = 0; i < patches; i++)
            memcpy(tower + i * row, stack->dump.vit_features + i * of, row * sizeof *tower);
        set_real(&stack->stages[CONFORM_TOWER], tower, patches * row);
        used_features(request, stack->dump.image_features, used);
        set_real(&stack->stages[CONFORM_CONNECTOR], used, features);
    }
    set_real(&stack->stages[CONFORM_PREFILL], copied(stack->dump.logits, (size_t)config->embedding_size),
             (size_t)config->embedding_size);
    stack->steps = stack->dump.logits;
    stack->step_count = (size_t)run->token_count;
    tokens->is_known = 1;
    tokens->count = (size_t)run->token_count;
    tokens->whole = resize(NULL, tokens->count + 1, sizeof *tokens->whole);
    memcpy(tokens->whole, run->tokens, tokens->count * sizeof *tokens->whole);
}
int stack_run(const struct options *options, struct request *request, const char *weights, struct stack *stack) {
    struct session *session = &request->session;
    struct pass_result *run = runs_make(1, request->input.new_tokens);
    vp_error error = {VP_OK, -1, "", ""};
    session->model = &request->model;
    stack->prompt_tokens = stack->image_tokens = -1;
    dump_reserve(&stack->dump, &request->model, &request->input);
    request->input.dump = &stack->dump;
    vp_result result = engine_try(options, &request->model, text_of(options, "device"), weights,
                                  sequence_of(&request->input) + request->input.new_tokens,
                                  layout_of(&request->input) ? request->cuts.whole.views : 1, &session->engine, &error);
    if (result == VP_OK) result = request_run(session, &request->input, run, &error);
    if (result == VP_OK) take_values(request, run, stack);
    session_end_engine(session);
    request->input.dump = NULL;
    runs_free(run, 1);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), request->model.name, result, &error);
}

/* ---- the precision in which weights are stored */
enum { LOOKED_AT = 4096 }; /* number of sampled values, spread over a tensor */

/* Returns 1 if all fp32 values of the tensor fit bf16 and not all are 0: they were rounded to it. */
static enum precision precision_of_values(const unsigned char *data, size_t count) {
    int is_bf16 = 1, has_value = 0;
    const size_t step = count > LOOKED_AT ? count / LOOKED_AT : 1;
    for (size_t i = 0; i < count && is_bf16; i += step) {
        uint32_t bits;
        memcpy(&bits, data + i * 4, 4);
        is_bf16 = !(bits & 0xffff);
        has_value |= bits << 1 != 0;
    }
    return is_bf16 && has_value ? PRECISION_BF16 : PRECISION_FP32;
}
enum precision stored_precision(const struct model *model) {
    enum precision coarsest = PRECISION_FP32;
    size_t rounded = 0, exact = 0;
    vp_tensor tensor;
    vp_result result;
    for (size_t i = 0; (result = vp_checkpoint_at(model->checkpoint, i, &tensor)) != VP_ERR_NOT_FOUND; i++) {
        enum precision own = PRECISION_FP32;
        if (result != VP_OK) continue; /* a type that no weight has */
        if (tensor.dtype == VP_DTYPE_F32) {
            if (tensor.dimensions < 2) continue; /* norms and biases are often in fp32 */
            own = precision_of_values(tensor.data, (size_t)(tensor.bytes / 4));
        } else
            own = tensor.dtype == VP_DTYPE_BF16                                     ? PRECISION_BF16
                  : tensor.dtype == VP_DTYPE_F16                                    ? PRECISION_FP16
                  : tensor.dtype == VP_DTYPE_Q8_0 || tensor.dtype == VP_DTYPE_Q6_K ? PRECISION_INT8
                                                                                    : PRECISION_INT4;
        if (own == PRECISION_FP32) exact++;
        else rounded++;
        if (own > coarsest) coarsest = own;
    }
    return rounded > exact || coarsest >= PRECISION_INT8 ? coarsest : PRECISION_FP32;
}
