/* plan.h: the grid of knobs times samples, the names of its files, and its fingerprint. It is made from settings and
 * a model. It has the configurations, and makes the requests of their points. */
#ifndef VLMPROF_CLI_PLAN_H
#define VLMPROF_CLI_PLAN_H
#include "data/dataset.h"
#include "data/variants.h"
#include "model/model.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "results/knobs.h"
#include "vlmprof_image.h"

/* The shape of a request; sequence in steps of 256. */
struct shape { int32_t views, sequence; };

/* A data set and a setting of the knobs. */
struct configuration {
    const struct dataset *set;
    const struct variant *variant; /* for a server; NULL if the engine runs it */
    struct knob_values knobs;
    size_t weights_at;     /* index of its weights in the plan, which selects the engine */
    char *file_name;                      /* name of its result file */
    char *grid_name;                      /* name in the grid of a policy's run; otherwise NULL */
    int32_t need_sequence, need_views;    /* needs of its longest request that fits the model */
    int32_t in_index; /* its number in the journal's index; -1 if it is new */
    size_t open_count; /* number of points that this process must measure */
    struct shape *shapes; size_t shape_count; /* shapes whose kernels were timed */
    char *dropped;    /* reason if it does not fit into memory; otherwise NULL */
};

/* What the plan is made from. A text is NULL if its option is not given. */
struct plan_settings {
    struct data_settings data;
    const struct option_value *files;                /* paths of the data sets */
    const struct option_value *lists[KNOB_EACH_END]; /* the values of each knob; NULL: not given */
    const char *image_knob, *importance_scores_file, *choices_file;
    const char *weights, *sampling_strategy;
    struct variant_settings servers;
    int32_t run_count; /* runs of each point */
    int ignore_eos;
};

/* The configuration of a sample, an index in plan.runs, and the time that its choice took. */
struct plan_choice { size_t run; double overhead_ms; };

struct plan {
    struct plan_settings settings;
    struct variants variants; /* variants of servers; none if the engine is measured */
    struct dataset *sets; size_t set_count;
    struct configuration *configurations; size_t configuration_count; /* configurations of a data set are adjacent */
    /* what requests run with: the configurations; with --choices, whose first configuration is the policy, those of the
     * grid that a sample has, and last the second configuration, if there is one */
    struct configuration *runs; size_t run_count;
    struct plan_choice *choices; /* [samples]; NULL without --choices */
    const char **weights; size_t weights_count; /* weights that points use; each has an engine */
    uint32_t named;     /* knobs that appear in file names even with a single value, as bits */
    int32_t new_tokens; /* maximum over data sets */
    int32_t max_sequence, max_views;
    int has_images;       /* 1 if the engine gets at least one image */
    uint64_t fingerprint; /* hash of model, data, seed and options; not of the grid, so that a grid can grow */
    size_t point_count;
    size_t repeats; /* points that the sampling strategy drew repeatedly; left out */
};

/* The entry of plan->runs that a configuration uses for the sample with this index in the data set. */
struct configuration *plan_run_of(const struct plan *plan, struct configuration *configuration, size_t index);

/* Molmo's tiling, also for images sent to a server. */
vp_tile_options configuration_tiles(const struct configuration *configuration);

/* Cuts a sample's images for a configuration, into *cuts. Returns NULL if there is no image or it cannot be used. In
 * the latter case `reason` has the explanation, otherwise it is "". */
const struct cuts *configuration_cuts(const struct model *model, const struct configuration *configuration,
                                      const struct entry *entry, struct cuts *cuts, char *reason, size_t capacity);

/* The number of tokens of the prompt and the images, including BOS. cuts is NULL for text only. */
int32_t entry_sequence(const struct entry *entry, const struct cuts *cuts);

/* Fills *input with the request of a sample in a configuration. *input refers to all arguments. */
void configuration_input(const struct plan *plan, const struct configuration *configuration,
                         const struct sample *sample, const struct cuts *cuts, const vp_image *images,
                         struct pass_input *input);

/* The size at which a sample's image is sent to a server in a configuration; 0 x 0 for the unchanged file. The size is
 * that of MolmoE's canvas or, with --family, the one that family_size_for finds. Returns 0, or EXIT_INPUT with a reason
 * if there is no such size. Prints nothing. */
int configuration_sent_size(const struct configuration *configuration, const struct image_px *image, int32_t *width_px,
                            int32_t *height_px, char *reason, size_t capacity);

/* Loads the data sets and makes the grid of plan->settings; the rest of *plan is zeroed first. model is NULL for
 * servers. The fingerprint is left at 0. Returns 0 or an exit code; the caller calls plan_free in both cases. */
int plan_make(const struct model *model, struct plan *plan);
uint64_t plan_hash_sets(uint64_t hash, const struct plan *plan); /* adds the data sets to a hash */
void plan_free(struct plan *plan);

/* Adds to a text which weights fit into memory together, like "bf16 int8; bf16 int4": the sets that cannot be extended.
 * bytes: size of an engine for each of the plan's weights; 0 if it is not needed. */
void plan_fitting(struct text_buffer *text, const struct plan *plan, const uint64_t *bytes, uint64_t free_bytes);

#endif
