/* settings.h: fills typed settings from the options of several commands; only commands/ reads options by name.
 * Functions return the settings, or 0 or an exit code. */
#ifndef VLMPROF_CLI_SETTINGS_H
#define VLMPROF_CLI_SETTINGS_H
#include "base/options.h"
#include "vlmprof.h"

struct model;
struct plan;
struct profile_settings;
struct results;
struct result_group;

int axis_of(const char *latency); /* METRIC_* of a word of --latency */
/* --latency, --percentile and --resamples; the other members are NaN or infinite. */
struct report_settings report_settings_of(const struct options *options);
/* The tiling of --preprocess, --tier, --max_crops, --crops and --vision_tokens. Complains if they contradict each
 * other. */
int tile_options_of(const struct options *options, vp_tile_options *tiles);
/* The result files of --dataset_name, or of the only data set. NULL and an exit code in *code if there is none, or if
 * the files cannot be compared. */
const struct result_group *group_of_options(const struct results *results, const struct options *options, int *code);
struct family_keys family_keys_of(const struct options *options);
struct endpoint_settings endpoint_settings_of(const struct options *options);

/* ---- engine_settings.c */
/* Loads the model of --model or --synthetic, except the weights: shape, tokenizer, ids. The caller calls model_free,
 * also after a failure. */
int model_load(const struct options *options, struct model *model);
/* Checks --device, that its GPU exists, --gemm and --gpu, before anything is loaded or written. */
int check_engine_options(const struct options *options);
/* All settings but those that depend on a model and its requests. */
struct vp_engine_options engine_options_of(const struct options *options);
/* Also checks --group_by, --sort_by and the folders of files to write. */
int profile_settings_read(const struct options *options, struct profile_settings *settings);
/* Makes the plan of a sweep with its fingerprint. model is NULL for servers, with --endpoint. *plan is zeroed first,
 * and the caller calls plan_free, also after a failure. */
int plan_of_options(const struct options *options, const struct model *model, struct plan *plan);
struct data_settings data_settings_of(const struct options *options);

#endif
