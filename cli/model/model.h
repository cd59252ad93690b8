/* model.h: a checkpoint's folder, a GGUF file or a synthetic preset, and the engine that runs it.
 * Options come in; a model's shape, tokenizer and engine go out. Functions return 0 or an exit code after a message on
 * stderr, unless they say otherwise. */
#ifndef VLMPROF_CLI_MODEL_H
#define VLMPROF_CLI_MODEL_H
#include "base/options.h"
#include "model/model_files.h"
#include "model/rules.h"
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_processor.h"
#include "vlmprof_tokenizer.h"

enum { MORE_EOS_MOST = 15 };
struct model {
    const char *name;      /* the folder, the file or the preset */
    const char *projector; /* of a file: that of its tower; NULL: none */
    struct model_files files;
    int synthetic;    /* 1 if a preset with random weights */
    vp_model_config config;
    const struct model_rules *rules; /* of its family */
    vp_special_ids ids;              /* -1: there is none */
    int32_t more_eos[MORE_EOS_MOST]; /* ids that end an answer next to ids.eos */
    int32_t more_eos_count;
    int32_t image_token;             /* of a feature, in hf.c's families; -1: none */
    vp_processor processor;          /* the same families' */
    char *prompt_front;              /* text in front of each prompt; NULL: none */
    char *prompt_note;               /* why prompts may not be as the model knows them; NULL: they are */
    vp_tokenizer *tokenizer;
    vp_checkpoint *checkpoint; /* NULL: not open, or synthetic */
    uint64_t identity; /* of config, tokenizer and the weight files' names, sizes and times */
    int64_t file_bytes, file_count; /* of the weight files */
    char class_name[64];   /* config.json's architectures[0], only to be shown */
};

/* Returns 1 if the model reads text alone. */
int model_is_blind(const struct model *model);

/* Complains when a prompt has more images than the model takes. Returns 0 or EXIT_USAGE. */
int check_image_count(const struct model *model, int32_t image_count);

/* How images of such sizes are cut; *cuts is used again. After a failure its last one is the one that cannot be cut.
 * Nothing is printed. */
vp_result model_cut(const struct model *model, const struct image_size *size, const struct image_px *images,
                    int32_t count, struct cuts *cuts, vp_error *error);
void cuts_free(struct cuts *cuts);

/* Says on stderr when prompts may not be as the model knows them. */
void warn_of_template(const struct model *model);

/* Adds the weight files of the folder to identity, file_bytes and file_count. These are sums, so that the order of the
 * files in the folder does not matter. Returns 0 or an exit code. */
int model_weigh_files(struct model *model);

/* Reads the text of a tokenizer.json; `what` names it in messages. */
int model_load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer);

/* Complains that a model's folder is not there; for a name like those of the Hugging Face Hub with the command that
 * downloads it. `option` is before the name. Returns EXIT_INPUT. */
int model_complain_missing(const char *option, const char *name);

/* Load what model->name names, everything but the weights. The rest of *model is zeroed before. */
int model_load_preset(struct model *model);
int model_load_folder(struct model *model); /* or a file */

/* Check --device, and that the GPU it names is there, and --gemm, before anything is loaded or written. */
int check_device(const struct options *options);
int check_gemm(const struct options *options);
int check_gpu_switches(const struct options *options);
uint32_t gpu_switches_of(const struct options *options); /* vp_gpu_switch, all words of --gpu */

/* Loads what --model or --synthetic names, everything but the weights: shape, tokenizer, ids. Packed weights decide the
 * options of precisions that are not given; others than theirs are rejected. The caller calls model_free, after a
 * failure too. */
int model_load(const struct options *options, struct model *model);
void model_free(struct model *model);

/* Shows how far the loading of weights is; VP_ERR_INTERRUPTED after a signal. For vp_engine_options. */
vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total);

/* Opens the weights of a folder, unless they are open or the model is synthetic. */
int checkpoint_open(struct model *model);

/* The options that say how linears are stored: of the language model's blocks, its head, tower and connector. */
enum { PRECISIONS = 3 };
extern const char *const PRECISION_OPTIONS[PRECISIONS];

/* Returns 1 if the open checkpoint is one that `convert` packed. packed: NULL, or what it is. */
int is_packed(const struct model *model, vp_packed *packed);

/* "int8" -> VP_WEIGHTS_INT8; the option's table knows the names. */
vp_weights weights_of(const char *name);

/* What all engines of a command have in common; gemm is left at its default. */
vp_engine_options engine_options_of(const struct options *options, const struct model *model, int32_t max_sequence,
                                    int32_t max_views);

/* vp_engine_open. A GPU on which it failed gets a new context for the next attempt: this program owns its devices. */
vp_result engine_begin(const vp_engine_options *settings, vp_engine **engine, vp_error *error);

/* Opens an engine for requests of at most that many positions and views on a device, with such weights ("int8").
 * Returns the result; nothing is printed. */
vp_result engine_try(const struct options *options, struct model *model, const char *device, const char *weights,
                     int32_t max_sequence, int32_t max_views, vp_engine **engine, vp_error *error);

/* The bytes that such an engine reserves on its device, and those that are free there (0: not known). */
vp_result engine_weigh(const struct options *options, struct model *model, const char *device, const char *weights,
                       int32_t max_sequence, int32_t max_views, uint64_t *bytes, uint64_t *free_bytes,
                       vp_error *error);

/* The same on --device. */
int engine_open(const struct options *options, struct model *model, int32_t max_sequence, int32_t max_views,
                vp_engine **engine);

/* Chooses `active` blocks of the model, ascending: the first ones or, with an importance file, the first, the last and
 * the most important ones between them. blocks: int32 [block_count of the model]. */
int model_choose_blocks(const struct options *options, const struct model *model, int32_t active, int32_t *blocks);

#endif
