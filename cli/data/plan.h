/* plan.h: the grid of knobs times samples, the names of its files, its fingerprint.
 * Options and a model come in; configurations, and the requests that their points need, go out. */
#ifndef VLMPROF_CLI_PLAN_H
#define VLMPROF_CLI_PLAN_H
#include "base/options.h"
#include "data/dataset.h"
#include "data/variants.h"
#include "model/model.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "results/knobs.h"
#include "vlmprof.h"
#include "vlmprof_image.h"

/* A request's shape; sequence in steps of 256. */
struct shape { int32_t views, sequence; };

/* A data set and a setting of the knobs. */
struct configuration {
    const struct dataset *set;
    const struct variant *variant; /* of a server; NULL: the engine runs it */
    struct knob_values knobs;
    size_t weights_at;     /* index of its weights in the plan, which selects the engine */
    char *file_name;                      /* of its results */
    int32_t need_sequence, need_views;    /* of its longest request that fits the model */
    int32_t in_index; /* its number in the journal's index; -1: it is new */
    size_t open_count; /* points that this process has to measure */
    struct shape *shapes; size_t shape_count; /* those whose kernels were timed */
    char *dropped;    /* why it does not fit into memory; NULL: it does */
};

struct plan {
    struct variants variants; /* of servers; none: the engine is measured */
    struct dataset *sets; size_t set_count;
    struct configuration *configurations; size_t configuration_count; /* those of a data set are together */
    const char **weights; size_t weights_count; /* that points are run with; each has an engine */
    uint32_t named;     /* knobs that are in file names even if they have one value, as bits */
    uint32_t seed;      /* of what pruning draws */
    int32_t run_count;  /* runs of each point */
    int32_t new_tokens; /* the most of any data set */
    int32_t max_sequence, max_views;
    int has_images; /* 1 if the engine sees at least one */
    int ignore_eos;
    uint64_t fingerprint; /* of model, data, seed and options; not of the grid, so that a grid can grow */
    size_t point_count;
    size_t repeats; /* points that the sampling strategy named repeatedly, left out */
};

/* Molmo's tiling, also of what a server is sent. */
vp_tile_options configuration_tiles(const struct configuration *configuration);

/* Cuts a sample's images for a configuration, into *cuts. Returns NULL without an image and if the image cannot be
 * used; `reason` then says why, otherwise it is "". */
const struct cuts *configuration_cuts(const struct model *model, const struct configuration *configuration,
                                      const struct entry *entry, struct cuts *cuts, char *reason, size_t capacity);

/* Tokens of the prompt and the images, BOS included. cuts NULL: text only. */
int32_t entry_sequence(const struct entry *entry, const struct cuts *cuts);

/* Fills *input with the request of a sample in a configuration. It refers to all the arguments. */
void configuration_input(const struct plan *plan, const struct configuration *configuration,
                         const struct sample *sample, const struct cuts *cuts, const vp_image *images,
                         struct pass_input *input);

/* The size of a sample's image when it is sent to a server in a configuration; 0 x 0: the file unchanged. The size is
 * that of MolmoE's canvas or, with --family, the one that family_size_for finds. Returns 0, or EXIT_INPUT with a reason
 * if there is no such size; prints nothing. */
int configuration_sent_size(const struct configuration *configuration, const struct image_px *image, int32_t *width_px,
                            int32_t *height_px, char *reason, size_t capacity);

/* Loads the data sets and makes the grid. model NULL: for servers, with --endpoint. *plan is zeroed first. Returns 0 or
 * an exit code; the caller calls plan_free in both cases. */
int plan_make(const struct options *options, const struct model *model, struct plan *plan);
void plan_free(struct plan *plan);

/* Adds to a text which weights fit into memory together, "bf16 int8; bf16 int4": the sets that cannot be extended.
 * bytes: of an engine for each of the plan's weights; 0: it is not needed. */
void plan_fitting(struct text_buffer *text, const struct plan *plan, const uint64_t *bytes, uint64_t free_bytes);

#endif
