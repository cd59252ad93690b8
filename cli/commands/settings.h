/* settings.h: fills the typed settings of the source folders from the options that several commands share. Only
 * commands/ reads options by name. */
#ifndef VLMPROF_CLI_SETTINGS_H
#define VLMPROF_CLI_SETTINGS_H
#include "base/options.h"
#include "vlmprof.h"

struct endpoint_settings;
struct family_keys;
struct report_settings;

/* --latency, --percentile and --resamples; the other members are NaN or infinite. */
struct report_settings report_settings_of(const struct options *options);

/* Reads the tiling of --preprocess, --tier, --max_crops, --crops and --vision_tokens. Returns 0, or an exit code if
 * they contradict each other. */
int tile_options_of(const struct options *options, vp_tile_options *tiles);

struct family_keys family_keys_of(const struct options *options);

struct endpoint_settings endpoint_settings_of(const struct options *options);

#endif
