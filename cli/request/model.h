/* model.h: a checkpoint's folder or a synthetic preset, and the engine that runs it. */
#ifndef VLMPROF_CLI_MODEL_H
#define VLMPROF_CLI_MODEL_H
#include "base/options.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_tokenizer.h"

typedef struct model {
    const char *name; /* folder or preset */
    int synthetic;
    vp_model_config config;
    vp_special_ids ids;
    vp_tokenizer *tokenizer;
    vp_checkpoint *checkpoint;
    uint64_t identity; /* of config, tokenizer and the weight files' names, sizes and times */
    int64_t file_bytes, file_count; /* of the weight files */
    char architecture[64];
} model;

/* Sums over the weight files, so that their order in the folder does not matter. */
void model_weigh_files(model *m);

int model_load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer);

int model_load_preset(model *m);
int model_load_folder(model *m);

/* The word of --device, and that a GPU asked for by it is there: told before anything is loaded or written. */
int check_device(const options *o);
int check_gemm(const options *o);

/* Everything but the weights: shape, tokenizer, ids. */
int model_load(const options *o, model *m);
void model_free(model *m);
vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total);

int checkpoint_open(model *m);
int is_packed(const model *m);
vp_engine_options engine_options_of(const options *o, const model *m, int32_t max_sequence, int32_t max_views);
vp_result engine_try(const options *o, model *m, const char *device, int32_t max_sequence, int32_t max_views, vp_engine **engine,
                     vp_error *error);
int engine_open(const options *o, model *m, int32_t max_sequence, int32_t max_views, vp_engine **engine);

/* `active` blocks of the model, ascending: the first ones or, with an importance file, the ends and the most important between. */
int model_choose_blocks(const options *o, const model *m, int32_t active, int32_t *blocks);

#endif
