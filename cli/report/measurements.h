/* measurements.h: turns result files into the requests and times that a latency model is fitted to. */
#ifndef VLMPROF_CLI_MEASUREMENTS_H
#define VLMPROF_CLI_MEASUREMENTS_H
#include "base/document.h"
#include "report/model_file.h"
#include "results/result_read.h"
#include "vlmprof_latency.h"

#define ESTIMATOR_SCHEMA "vlmprof-estimator-1"
#define ESTIMATE_LEVEL MODEL_LEVEL

/* Parts of a request: the stages of vp_latency_stage, then the total. */
enum { ESTIMATE_TOTAL = VP_LATENCY_STAGE_COUNT, ESTIMATE_PARTS };

/* ESTIMATE_KINDS are compared. The physical one is ESTIMATE_WEIGHTS if the measurements have several kinds of
 * weights. */
enum { ESTIMATE_KINDS = VP_LATENCY_MEAN + 1, ESTIMATE_WEIGHTS = VP_LATENCY_WEIGHTS, ESTIMATE_KEYS };

/* The data that a prediction must not have seen: none, the row's configuration, or its image size. */
enum { SPLIT_NONE, SPLIT_CONFIG, SPLIT_SIZE, SPLIT_COUNT };

extern const char *const ESTIMATE_KIND_KEYS[ESTIMATE_KEYS];
extern const char *const SPLIT_KEYS[SPLIT_COUNT];
extern const char *const SPLIT_NAMES[SPLIT_COUNT];

enum { FEATURE_TEXT = 2, FEATURE_OUTPUT = 4, FEATURE_TIER, FEATURE_EXPERTS, FEATURE_ACTIVE, FEATURE_WEIGHT_BITS,
       ESTIMATE_KNOB_COUNT };

/* The number of knobs that a model of these features uses; the bits of weights are one if the model distinguishes
 * weights. */
int knob_count_of(vp_latency_features features);

extern const struct column ESTIMATE_KNOBS[ESTIMATE_KNOB_COUNT];

/* A number of a request, by its index in ESTIMATE_KNOBS. */
int32_t knob_at(const vp_latency_request *request, int knob);
const char *part_name(int part);

/* Returns 1 if the request has the stage. Without an image there is no vision stage; with a single token there is no
 * decode. */
int stage_is_run(int stage, const vp_latency_request *request);

struct number_range { double least, median, most; };
/* The files' own knobs that vary, as inputs of the model: a number is a column, other values are a group with a column
 * for each value but the first. values: as JSON; none for a number. */
struct own_knob { char *name; struct text_list values; struct number_range range; };
struct own_knobs { struct own_knob items[VP_LATENCY_OWN]; size_t count; };
/* Finds them. Returns 0 if they need more than VP_LATENCY_OWN columns. */
int own_knobs_find(const struct results *results, struct own_knobs *own);
void own_knobs_free(struct own_knobs *own);
/* Adds the columns of the next knob of a request. Returns 0 if the group lacks the value, or it is not a number. */
int own_knob_add(const struct own_knob *knob, const char *value, vp_latency_request *request);
/* The knob and a value of it, without the quotes of JSON. Returns out. */
const char *own_value_text(const struct own_knob *knob, const char *value, const char *between,
                           char out[KNOB_TEXT_BYTES]);
/* The name of a column, "heads" or "attn=eager". Returns out, NULL past the last. */
const char *own_column_name(const struct own_knobs *own, int column, char out[KNOB_TEXT_BYTES]);

struct measurements {
    vp_latency_request *requests;
    double *measured;          /* ms [count, VP_LATENCY_STAGE_COUNT]; NaN if not measured */
    double *total;             /* ms [count] */
    uint32_t *configs, *sizes; /* [count] index of the file; index of the first file of its image size */
    size_t count, config_count, size_count;
    size_t incomplete, not_positive; /* samples without a count or prefill; stages of 0 ms or less */
    double noise; size_t noise_count; /* sum of the means' errors, as shares; samples with 2 or more runs */
    const char *device, *model;
    const char *weights;  /* the first file's weights; NULL if it has none */
    int weights_vary;     /* 1 if the files have different ones */
    int no_vision;        /* 1 if no file has the vision time: VP_LATENCY_OTHER includes it */
    int other_has_vision; /* 1 if VP_LATENCY_OTHER includes vision in a request */
    size_t pruned;        /* rows in which some image tokens were dropped */
};

/* The features that this kind of model fits to the measurements. */
vp_latency_features features_of(const struct measurements *measurements, int kind);

void measurements_free(struct measurements *measurements);

/* Reads every row that has counts and times from all files, unchanged. own: inputs of the model, or NULL. Rows of files
 * without such a value are left out. */
void measurements_read(struct measurements *measurements, const struct results *results, int64_t experts,
                       const struct own_knobs *own);

/* Like measurements_read, but first checks that the files belong together, and adds warnings. num_experts: the option,
 * 0 if it is not given. *experts is the number in
 * a model, or 0; it becomes the number in use. Returns 0 or an exit code. */
int measurements_make(int64_t num_experts, const struct results *results, int64_t *experts,
                      const struct own_knobs *own, struct measurements *measurements, struct text_list *warnings);

#endif
