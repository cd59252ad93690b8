/* input.h: turns a prompt and its knobs into a request that is ready to run.
 * Functions return 0 or an exit code after a message on stderr, unless stated otherwise. */
#ifndef VLMPROF_CLI_INPUT_H
#define VLMPROF_CLI_INPUT_H
#include "model/model.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "measure/measure.h"
#include "results/knobs.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

/* The tiling's target number of vision tokens: --vision_tokens, otherwise the theoretical number of the layout. */
int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout);

/* Reads --image_knob NAME=N or NAME=N,N...; text NULL: not given. *name and *values are malloc'ed. Returns 0 or
 * EXIT_USAGE. */
int image_knob_read(const char *text, char **name, int32_t **values, size_t *count);

/* Tokenizes sample->prompt for images with these cuts (or NULL) and sets the sample's ids, which sample_free frees. */
int tokenize_sample(const struct model *model, const struct cuts *cuts, struct sample *sample);

/* The same before the image sizes are known: no ids are set if they depend on them. */
int count_sample(const struct model *model, int32_t image_count, struct sample *sample);

/* What a request is made from. A text or a value is NULL if its option is not given. */
struct request_settings {
    vp_engine_options engine;
    const char *const *images; size_t image_count; /* their paths */
    const char *prompt, *style; int is_raw;        /* is_raw: the prompt is tokenized unchanged */
    vp_tile_options tiles; int has_max_crops;
    const char *only_tiled; /* an option that is given, but only for tiled models */
    const char *image_knob, *importance_scores_file;
    const struct option_value *knobs[KNOB_EACH_END], *active_blocks;
    int32_t new_tokens; int ignore_eos;
    int32_t num_runs; int is_cold; /* num_runs 0: one */
    const char *dump;              /* the folder for the values of the last run */
};

/* One request to the engine, with everything that it refers to. Zeroed before use; the caller loads the model. */
struct request {
    const struct request_settings *settings;
    struct model model;
    struct session session;
    struct sample sample;
    vp_image *images; struct cuts cuts; /* images of `sample`; cuts.count is 0 if there are none */
    vp_tile_options tiles; /* tiling options, for Molmo models */
    struct knob_values knobs;
    struct pass_input input; /* refers to the members above */
    vp_pruned pruned;        /* effect of pruning, once the engine is open */
    vp_dump dump;
};

/* Makes the request of its settings: checks the knobs, makes the prompt, cuts the images and tokenizes. Reads no
 * weights. Returns 0 or an exit code after a message; the caller calls request_close in both cases. */
int request_prepare(struct request *request);
/* Opens an engine that is large enough for the request. */
int request_open(struct request *request);
/* Opens the engine, runs the request and writes the --dump of the last run. Returns 0 or an exit code. */
int request_measure(struct request *request, struct timed_runs *timed);
void request_close(struct request *request);

/* Applies the engine's knobs that are set in *values. The input refers to *values afterwards. */
void input_apply_knobs(struct pass_input *input, const struct knob_values *values);

/* Seeds the random numbers of pruning: the value's own seed, or this one, plus the sample's number. Call it once, after
 * input_apply_knobs. */
void input_seed_pruning(struct pass_input *input, uint32_t seed, int64_t sample);

/* Tokenizes request->sample.prompt again and sets the input's ids. */
int tokenize_input(struct request *request);

/* Complains if the prompt and its longest answer need more positions than the model has. */
int check_sequence(const struct model *model, const struct pass_input *input);

#endif
