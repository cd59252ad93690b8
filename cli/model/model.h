/* model.h: loads a checkpoint's folder or a synthetic preset, and opens the engine that runs it. Functions return
 * 0, or an exit code after a message on stderr, unless noted otherwise. */
#ifndef VLMPROF_CLI_MODEL_H
#define VLMPROF_CLI_MODEL_H
#include "model/rules.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_processor.h"
#include "vlmprof_tokenizer.h"

enum { MORE_EOS_MOST = 15 };
struct model {
    const char *name; /* the folder or the preset */
    int synthetic;    /* 1 if a preset with random weights */
    vp_model_config config;
    const struct model_rules *rules; /* rules of its family */
    vp_special_ids ids;              /* -1 if there is none */
    int32_t more_eos[MORE_EOS_MOST]; /* ids that end an answer next to ids.eos */
    int32_t more_eos_count;
    int32_t image_token;    /* the token of a feature, in hf.c's families; -1 if none */
    vp_processor processor; /* processor of the same families */
    char *prompt_front;     /* text before each prompt; NULL if none */
    char *prompt_note;      /* warning if prompts may differ from the model's training; otherwise NULL */
    vp_tokenizer *tokenizer;
    vp_checkpoint *checkpoint;      /* NULL if not open, or synthetic */
    uint64_t identity;              /* hash of config, tokenizer and the weight files' names, sizes and times */
    int64_t file_bytes, file_count; /* sums over the weight files */
    char class_name[64];            /* config.json's architectures[0], only for display */
};

/* Returns 1 if the model reads only text. */
int model_is_blind(const struct model *model);

/* Complains if a prompt has more images than the model accepts. Returns 0 or EXIT_USAGE. */
int check_image_count(const struct model *model, int32_t image_count);

/* Computes how images of these sizes are cut. *cuts can be reused. After a failure, its last image is the one that
 * cannot be cut. Prints nothing. */
vp_result model_cut(const struct model *model, const struct image_size *size, const struct image_px *images,
                    int32_t count, struct cuts *cuts, vp_error *error);
void cuts_free(struct cuts *cuts);

/* Warns on stderr if prompts may differ from the model's training. */
void warn_of_template(const struct model *model);

/* Loads a tokenizer from the text of a tokenizer.json; `what` names it in messages. */
int model_load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer);

/* Complains if the path is not a folder, and explains what to do for a GGUF file or a name on the Hugging Face Hub;
 * `option` is printed before the name. Returns 0 or EXIT_INPUT. */
int model_check_folder(const char *option, const char *name);

/* Load the model that model->name names, except the weights. The rest of *model must be zeroed. */
int model_load_preset(struct model *model);
int model_load_folder(struct model *model);

void model_free(struct model *model);

/* Shows the progress of loading weights; VP_ERR_INTERRUPTED after a signal. For vp_engine_options. */
vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total);

/* Opens the weights of a folder, unless they are open or the model is synthetic. */
int checkpoint_open(struct model *model);

/* "int8" -> VP_WEIGHTS_INT8; the option's table has the names. */
vp_weights weights_of(const char *name);

/* The same for the names of --activations. */
vp_activations activations_of(const char *name);

/* The same settings for a model with its open weights, and requests of at most this many positions and views. */
vp_engine_options engine_options_for(const vp_engine_options *settings, const struct model *model, int32_t max_sequence,
                                     int32_t max_views);

/* Calls vp_engine_open. After a failure, a GPU gets a new context for the next attempt, because this program owns its
 * devices. */
vp_result engine_begin(const vp_engine_options *settings, vp_engine **engine, vp_error *error);

/* Opens the model's weights and an engine for requests of at most this many positions and views. Returns the result and
 * prints nothing. */
vp_result engine_try(const vp_engine_options *settings, struct model *model, int32_t max_sequence, int32_t max_views,
                     vp_engine **engine, vp_error *error);

/* Chooses the active blocks of a configuration.
 * in:      active      1..block_count
 *          scores      double [block_count], NaN if the file has no score; NULL or all NaN: the first `active` blocks
 *          are taken
 *          file_order  int32 [block_count]: position of each block in the file, for ties; NULL: index order
 * out:     blocks      int32 [active], ascending
 * returns: VP_OK; VP_ERR_RANGE: active < 1 or > block_count; VP_ERR_MISMATCH: too few blocks have a score
 * rule:    the first and the last block are kept (active 1: only the first); the others are those with the highest
 *          scores
 * source:  ChulanZhang/molmo_hf experiments/core_exp/acc_lat_profiling.py. There active 1 gives two blocks, too few
 *          scores give too few blocks, and active > block_count gives all blocks; here these are errors */
vp_result choose_active_blocks(int32_t block_count, int32_t active, const double *scores, const int32_t *file_order,
                               int32_t *blocks);
/* Chooses `active` blocks of the model, ascending: the first ones or, with an importance file (path, otherwise NULL),
 * the first, the last and the most important ones between them. blocks: int32 [block_count of the model]. */
int model_choose_blocks(const char *path, const struct model *model, int32_t active, int32_t *blocks);

#endif
