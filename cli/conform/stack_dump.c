/* stack_dump.c: another stack, read from the .npy files that it wrote to a folder. */
#include "conform/stack.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "conform/npy.h"

#include <stdlib.h>
#include <string.h>

/* The names of a stage's file: its own first, then those of `run --dump` and of transformers' processors. */
static const char *const FILE_NAMES[CONFORM_STAGES][4] = {
    {"prompt_ids", "input_ids"}, {"image"},   {"pixels", "pixel_values"}, {"tower"},
    {"connector", "image_features"}, {"prefill", "logits"}, {"tokens", "output_ids"}};

/* Reads the first existing file of a stage. *path is its malloc'ed path, or NULL if there is none. */
static int read_stage(const char *folder, int stage, struct npy *npy, char **path) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_ERR_NOT_FOUND;
    *path = NULL;
    memset(npy, 0, sizeof *npy);
    for (int i = 0; i < 4 && FILE_NAMES[stage][i] && result == VP_ERR_NOT_FOUND; i++) {
        char name[64];
        free(*path);
        snprintf(name, sizeof name, "%s.npy", FILE_NAMES[stage][i]);
        *path = join_path(folder, name);
        result = npy_read(*path, npy, &error);
    }
    if (result == VP_OK) return 0;
    if (result != VP_ERR_NOT_FOUND) return complain_result(EXIT_INPUT, *path, result, &error);
    free(*path);
    *path = NULL;
    return 0;
}

/* Returns 1 if the stages are integers. */
static int is_whole(int stage) {
    return stage == CONFORM_PROMPT_IDS || stage == CONFORM_IMAGE || stage == CONFORM_TOKENS;
}
/* The number of values of the array that count: the first row of logits, or everything else as a whole. */
static size_t values_of(int stage, const struct npy *npy, size_t expected) {
    const int has_rows = npy->dimensions > 1 && npy->shape[npy->dimensions - 1] == (int64_t)expected;
    return stage == CONFORM_PREFILL && npy->count && has_rows ? expected : npy->count;
}
/* Takes the array as values of the stage. Its size must equal ours, unless the image was cut differently. */
static int take_stage(const struct request *request, const struct stack *ours, int stage, int image_parted,
                      const char *path, struct npy *npy, struct stack *stack) {
    const struct stage_values *own = &ours->stages[stage];
    struct stage_values *values = &stack->stages[stage];
    const size_t all = ours->dump.image_features && stage == CONFORM_CONNECTOR
                           ? (size_t)request->cuts.whole.views
                                 * (size_t)vp_geometry_tokens_per_crop(&request->model.config.geometry)
                                 * (size_t)request->model.config.d_model
                           : own->count;
    if (is_whole(stage) != (npy->whole != NULL))
        return complain(EXIT_INPUT, "%s: expected %s", path, is_whole(stage) ? "integers" : "floating-point numbers");
    values->is_known = 1;
    values->count = values_of(stage, npy, own->count);
    values->whole = npy->whole;
    values->real = npy->real;
    npy->whole = NULL;
    npy->real = NULL;
    if (stage == CONFORM_CONNECTOR && values->count == all && all != own->count) {
        float *used = resize(NULL, own->count + 1, sizeof *used);
        values->count = used_features(request, values->real, used);
        free(values->real);
        values->real = used;
    }
    if (values->real && values->count != own->count && !image_parted)
        return complain(EXIT_INPUT, "%s: %zu values; expected %zu for this request, as `vlmprof run --dump` writes "
                                    "them", path, values->count, own->count);
    if (stage == CONFORM_PROMPT_IDS) {
        const size_t sequence = values->count;
        values->count = strip_image_ids(&request->model, layout_of(&request->input) != NULL, values->whole, sequence,
                                        values->whole);
        if (stack->image_tokens < 0) stack->image_tokens = (int64_t)(sequence - values->count);
    }
    return 0;
}
/* Returns 1 if the last `bits` of all values are 0, so that a smaller type is enough, and some values are not 0. */
static int fits(const struct stage_values *values, uint32_t bits) {
    int has_value = 0;
    for (size_t i = 0; i < values->count; i++) {
        uint32_t word;
        memcpy(&word, &values->real[i], sizeof word);
        if (word & ((1u << bits) - 1)) return 0;
        has_value |= word << 1 != 0;
    }
    return has_value;
}
/* The coarsest type that fits all values of a stage. bf16 and fp16 have 16 and 13 fraction bits fewer than fp32. */
static enum precision rounded_to(const struct stack *stack) {
    enum precision coarsest = PRECISION_FP32;
    for (int i = CONFORM_PIXELS; i < CONFORM_STAGES; i++) {
        const struct stage_values *values = &stack->stages[i];
        if (!values->real || values->count < 8) continue;
        if (fits(values, 16)) return PRECISION_BF16;
        if (fits(values, 13)) coarsest = PRECISION_FP16;
    }
    return coarsest;
}

int stack_of_dump(const char *folder, const struct request *request, const struct stack *ours, struct stack *stack) {
    int code = 0, found = 0, image_parted = 0;
    stack->prompt_tokens = stack->image_tokens = -1;
    if (!is_folder(folder))
        return complain(EXIT_INPUT, "dump:%s: expected a folder of .npy files (vlmprof help conformance)", folder);
    for (int stage = 0; stage < CONFORM_STAGES && !code; stage++) {
        struct stage_values *values = &stack->stages[stage];
        struct npy npy;
        char *path;
        code = read_stage(folder, stage, &npy, &path);
        if (!code && path && (ours->stages[stage].is_known || stage == CONFORM_PROMPT_IDS)) {
            code = take_stage(request, ours, stage, image_parted, path, &npy, stack);
            found++;
        }
        npy_free(&npy);
        free(path);
        if (stage != CONFORM_IMAGE || !ours->stages[CONFORM_IMAGE].is_known || code) continue;
        if (!values->is_known && stack->image_tokens >= 0) { /* they are counted among the ids */
            values->is_known = 1;
            values->count = 1;
            values->whole = resize(NULL, 1, sizeof *values->whole);
            values->whole[0] = (int32_t)stack->image_tokens;
        }
        for (size_t i = 0; i < values->count && i < ours->stages[stage].count; i++)
            image_parted |= values->whole[i] != ours->stages[stage].whole[i];
    }
    if (!code && !found)
        return complain(EXIT_INPUT, "%s: there is no file of any stage; expected some of prompt_ids.npy, image.npy, "
                                    "pixels.npy, tower.npy, connector.npy, prefill.npy, tokens.npy", folder);
    if (!code) stack->precision = rounded_to(stack);
    return code;
}
