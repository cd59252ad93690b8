/* input.h: a prompt and its knobs to a request that is ready to run.
 * Functions return 0 or an exit code after a message on stderr, unless they say otherwise. */
#ifndef VLMPROF_CLI_INPUT_H
#define VLMPROF_CLI_INPUT_H
#include "results/metrics.h"
#include "model/model.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "results/knobs.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

/* Vision tokens that the tiling aims at: --vision_tokens, otherwise those of the layout in theory. */
int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout);

/* Reads --image_knob NAME=N or NAME=N,N...: *name is malloc'ed, *values too. Returns 0 or EXIT_USAGE. */
int image_knob_read(const struct options *options, char **name, int32_t **values, size_t *count);

/* Tokenizes sample->prompt, with images that are cut so, or NULL: sets the sample's ids, which sample_free frees. */
int tokenize_sample(const struct model *model, const struct cuts *cuts, struct sample *sample);

/* The same before the images' sizes are known: there are no ids where they depend on them. */
int count_sample(const struct model *model, int32_t image_count, struct sample *sample);

/* One request to the engine, with all that it is made of. Zeroed before use. */
struct request {
    struct model model;
    struct session session;
    struct sample sample;
    vp_image *images; struct cuts cuts; /* of sample.images; cuts.count 0: none */
    vp_tile_options tiles; /* how it is cut, of the Molmo models */
    struct knob_values knobs;
    struct pass_input input; /* refers to the members above */
    vp_pruned pruned;        /* what pruning makes of it; of an open engine */
};

/* Loads the images and cuts them. Returns 0 or an exit code after a message. */
int request_load_images(struct request *request, const char *const *paths, size_t count,
                        const struct image_size *size);

/* Opens an engine that is large enough for the request, whose input is ready. request_close ends it and frees all. */
int request_open(const struct options *options, struct request *request);
void request_close(struct request *request);

/* Sets the knobs of the engine that are set in *values, which the input then refers to. */
void input_apply_knobs(struct pass_input *input, const struct knob_values *values);

/* Seeds what pruning draws: the value's own seed, or this one, plus the sample's number. Once, after
 * input_apply_knobs. */
void input_seed_pruning(struct pass_input *input, uint32_t seed, int64_t sample);

/* Tokenizes request->sample.prompt, for any model, and sets the input's ids. Images are loaded before. */
int tokenize_input(struct request *request);

/* Complains when the prompt and its longest answer need more positions than the model has. */
int check_sequence(const struct model *model, const struct pass_input *input);

#endif
