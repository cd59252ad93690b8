/* engine_settings.h: fills the typed settings of models, engines, profiles and plans from the options. */
#ifndef VLMPROF_CLI_ENGINE_SETTINGS_H
#define VLMPROF_CLI_ENGINE_SETTINGS_H
#include "base/options.h"
#include "model/model.h"

struct data_settings;
struct plan;
struct profile_settings;

/* Loads the model of --model or --synthetic, except the weights: shape, tokenizer, ids. Returns 0 or an exit code. The
 * caller calls model_free, also after a failure. */
int model_load(const struct options *options, struct model *model);

/* Checks --device, that its GPU exists, --gemm and --gpu, before anything is loaded or written. */
int check_engine_options(const struct options *options);

/* All settings but those that depend on a model and its requests. */
vp_engine_options engine_options_of(const struct options *options);

/* Also checks --group_by, --sort_by and the folders of files to write. Returns 0 or an exit code. */
int profile_settings_read(const struct options *options, struct profile_settings *settings);

/* Makes the plan of a sweep with its fingerprint. model is NULL for servers, with --endpoint. *plan is zeroed first.
 * Returns 0 or an exit code; the caller calls plan_free in both cases. */
int plan_of_options(const struct options *options, const struct model *model, struct plan *plan);
struct data_settings data_settings_of(const struct options *options);

#endif
