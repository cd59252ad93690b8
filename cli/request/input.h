/* input.h: a prompt and its knobs to a request that is ready to run.
 * Functions return 0 or an exit code after a message on stderr, unless they say otherwise. */
#ifndef VLMPROF_CLI_INPUT_H
#define VLMPROF_CLI_INPUT_H
#include "base/metrics.h"
#include "request/model.h"
#include "request/record.h"
#include "request/request.h"
#include "vlmprof.h"
#include "vlmprof_noise.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

/* Vision tokens that the tiling aims at: --vision_tokens, otherwise those of the layout in theory. */
int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout);

/* Tokenizes sample->prompt into sample->text_ids, which sample_free frees. */
int tokenize_prompt(const struct model *model, struct sample *sample);

/* ---- models other than Molmo (model_is_molmo) */
/* The prompt of a question by the model's chat template, malloc'ed; with `raw` the text as it is. Warns when the
 * folder's template is not the known one. */
int prompt_of_other(const struct model *model, const char *text, int raw, int has_image, char **prompt);

/* How an image is cut, and the same as a layout, which counts its tokens. */
int picture_of_other(const struct model *model, const char *path, int32_t width_px, int32_t height_px,
                     vp_picture *picture, vp_layout *layout);

/* All that `run` holds: command_run fills and frees it, sweep/profile runs it. */
struct run_state {
    struct model model;
    struct session session;
    struct sample sample;
    vp_image image;
    vp_layout layout; /* of the image */
    vp_picture picture; /* the same of models other than Molmo */
    vp_tile_options tiles;
    int32_t *blocks;
    struct pass_input input; /* refers to the members above */
    vp_dump dump;
    struct pass_result *runs; int32_t run_capacity, run_count; /* how many there is room for, how many are whole */
    vp_noise_summary noise; struct text_list warnings; /* what else the machine did while they ran */
};

/* Tokenizes state->sample.prompt, for any model, and sets the input's ids. An image is loaded before. */
int tokenize_input(struct run_state *state);

/* Complains when the prompt and its longest answer need more positions than the model has. */
int check_sequence(const struct model *model, const struct pass_input *input);

#endif
