/* input.h: a prompt and its knobs to a request that is ready to run.
 * Functions return 0 or an exit code after a message on stderr, unless they say otherwise. */
#ifndef VLMPROF_CLI_INPUT_H
#define VLMPROF_CLI_INPUT_H
#include "base/metrics.h"
#include "request/model.h"
#include "request/record.h"
#include "request/request.h"
#include "results/knobs.h"
#include "vlmprof.h"
#include "vlmprof_noise.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

/* Vision tokens that the tiling aims at: --vision_tokens, otherwise those of the layout in theory. */
int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout);

/* Tokenizes sample->prompt into sample->text_ids, which sample_free frees. */
int tokenize_prompt(const struct model *model, struct sample *sample);

/* How large a model is to see images. All 0: as its own processor does, which Molmo's models have none of. */
struct image_size {
    const vp_tier *tier;    /* Molmo's tiers; NULL: none */
    int32_t vision_tokens;  /* aimed at; 0: none */
    const char *knob; int32_t knob_value; /* the model's own setting, as --image_knob names it; NULL: none */
};

/* Reads --image_knob NAME=N or NAME=N,N...: *name is malloc'ed, *values too. Returns 0 or EXIT_USAGE. */
int image_knob_read(const struct options *options, char **name, int32_t **values, size_t *count);

/* Complains about a size that no image of the model can have. Returns 0 or EXIT_USAGE. */
int image_size_check(const struct options *options, const struct model *model, const struct image_size *size);

/* The same as Molmo's tiling: by a tier or a target, which fill the canvas, or adaptive up to the knob's crops. */
vp_tile_options image_size_tiles(const struct image_size *size);

/* How an image of that size is cut: *layout, and *picture for models other than Molmo. Nothing is printed. */
vp_result image_size_layout(const struct model *model, const struct image_size *size, int32_t width_px,
                            int32_t height_px, vp_picture *picture, vp_layout *layout, vp_error *error);

/* ---- models other than Molmo (model_is_molmo) */
/* The prompt of a question by the model's chat template, malloc'ed. */
char *prompt_of_other(const struct model *model, const char *text, int has_image);

/* Warns when the folder's chat template is not the known one. */
void warn_of_template(const struct model *model);

/* Truth: the model reads text alone. */
int model_is_blind(const struct model *model);

/* Tokenizes sample->prompt with the image's tokens in their places, behind the tokenizer's first token where it has
 * one. picture: NULL without an image. sample->text_ids becomes the whole sequence, sample->text_count what of it
 * stands for no image, sample->no_bos true. */
int tokenize_other(const struct model *model, const vp_picture *picture, const vp_layout *layout,
                   struct sample *sample);

/* The same before an image's size is known: sample->text_count alone is set. */
int count_text_of_other(const struct model *model, int has_image, struct sample *sample);

/* All that `run` holds: command_run fills and frees it, sweep/profile runs it. */
struct run_state {
    struct model model;
    struct session session;
    struct sample sample;
    vp_image image;
    vp_layout layout; /* of the image */
    vp_picture picture; /* the same of models other than Molmo */
    vp_tile_options tiles;
    struct knob_values knobs;
    struct pass_input input; /* refers to the members above */
    vp_dump dump;
    struct pass_result *runs; int32_t run_capacity, run_count; /* how many there is room for, how many are whole */
    vp_noise_summary noise; struct text_list warnings; /* what else the machine did while they ran */
};

/* Sets the knobs of the engine that are set in *values, which the input then refers to. */
void input_apply_knobs(struct pass_input *input, const struct knob_values *values);

/* Tokenizes state->sample.prompt, for any model, and sets the input's ids. An image is loaded before. */
int tokenize_input(struct run_state *state);

/* Complains when the prompt and its longest answer need more positions than the model has. */
int check_sequence(const struct model *model, const struct pass_input *input);

#endif
