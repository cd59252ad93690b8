/* settings.c: fills the typed settings that need no engine from the options that several commands share. */
#include "commands/settings.h"

#include "base/console.h"
#include "report/tradeoff.h"
#include "results/result_read.h"
#include "server/endpoint.h"
#include "tile/family.h"

#include <math.h>

int axis_of(const char *name) {
    return !strcmp(name, "vision")         ? METRIC_VISION
           : !strcmp(name, "prefill")      ? METRIC_PREFILL
           : !strcmp(name, "decode")       ? METRIC_DECODE
           : !strcmp(name, "ttft")         ? METRIC_TTFT
           : !strcmp(name, "energy")       ? METRIC_ENERGY
           : !strcmp(name, "token_energy") ? METRIC_TOKEN_ENERGY
                                           : METRIC_TOTAL;
}
struct report_settings report_settings_of(const struct options *options) {
    const char *percentile = text_of(options, "percentile");
    return (struct report_settings){
        .axis = axis_of(text_of(options, "latency")),
        .percentile = strcmp(percentile, "mean") ? strtod(percentile, NULL) : -1,
        .resamples = (size_t)number_of(options, "resamples"), .peak_tflops = (double)NAN, .peak_gbs = (double)NAN,
        .budget = HUGE_VAL, .min_accuracy = -HUGE_VAL};
}
int tile_options_of(const struct options *options, vp_tile_options *tiles) {
    const char *how = text_of(options, "preprocess"), *tier = text_of(options, "tier");
    int by_tier = tier != NULL, by_crops = is_given(options, "crops"), by_tokens = is_given(options, "vision_tokens");
    *tiles = vp_tile_options_default();
    tiles->fit = strcmp(how, "adaptive") ? VP_FIT_FILL : VP_FIT_PAD;
    tiles->max_crops = (int32_t)number_of(options, "max_crops");
    if (by_tier && is_given(options, "preprocess") && strcmp(how, "tier"))
        return complain(EXIT_USAGE, "--tier %s needs --preprocess tier, not %s", tier, how);
    if (!by_tier && !strcmp(how, "tier"))
        return complain(EXIT_USAGE,
                        "--preprocess tier needs --tier low, medium or high (for --crops: --preprocess adaptive-fill)");
    if (by_tier) {
        tiles->rule = VP_TILE_TIER;
        tiles->fit = VP_FIT_FILL;
        tiles->tier = vp_tier_find(tier);
        if (is_given(options, "max_crops") && tiles->max_crops != tiles->tier->max_crops)
            return complain(EXIT_USAGE, "--max_crops %d contradicts --tier %s (at most %d crops)", tiles->max_crops,
                            tier, tiles->tier->max_crops);
        tiles->max_crops = tiles->tier->max_crops;
    } else if (by_crops || by_tokens) {
        tiles->rule = by_crops ? VP_TILE_CROPS : VP_TILE_TOKENS;
        tiles->crops = (int32_t)number_of(options, "crops");
        tiles->vision_tokens = (int32_t)number_of(options, "vision_tokens");
    }
    return 0;
}

struct family_keys family_keys_of(const struct options *options) {
    const int has_crops = has_option(options, "max_crops") && is_given(options, "max_crops");
    return (struct family_keys){options->keys, options->key_count, has_crops ? text_of(options, "max_crops") : NULL,
                                options->command->name};
}
struct endpoint_settings endpoint_settings_of(const struct options *options) {
    struct endpoint_settings settings = {
        .key_variable = text_of(options, "api_key_env"), .needs_key = is_given(options, "api_key_env"),
        .key_file = text_of(options, "api_key_file"), .ca_file = text_of(options, "ca_file"),
        .timeout_ms = (int32_t)number_of(options, "timeout_s") * 1000,
        .max_retries = has_option(options, "max_retries") ? (int32_t)number_of(options, "max_retries")
                                                          : vp_server_options_default().max_retries};
    vp_chat_api_find(text_of(options, "endpoint_api"), &settings.api); /* the option allows no other word */
    return settings;
}
const struct result_group *group_of_options(const struct results *results, const struct options *options, int *code) {
    const char *command = options->command->name, *name = text_of(options, "dataset_name"), *caches;
    *code = 0;
    if (results->repeats) *code = complain(EXIT_USAGE, "%s: %s: give only one of them", command, results->repeats);
    else if (results_differ_in_caches(results, &caches))
        *code = complain(EXIT_USAGE, "%s: some files were measured with %s and some without; a cached image or prompt "
                                     "costs less, so they cannot be compared: give only folders with the same setting",
                         command, caches);
    if (*code) return NULL;
    for (size_t i = 0; i < results->group_count; i++)
        if (name && !strcmp(results->files[results->groups[i].first].dataset_name, name)) return &results->groups[i];
    if (!name && results->group_count == 1) return &results->groups[0];
    if (!name && results->unnamed) return *code = complain(EXIT_USAGE, "%s: %s", command, results->unnamed), NULL;
    *code = complain(EXIT_USAGE,
                     name ? "--dataset_name: there is no result file for \"%.100s\"; the first one is for \"%.100s\""
                          : "the files come from several data sets: choose one with --dataset_name, such as "
                            "%.0s\"%.100s\"",
                     name ? name : "", results->files[0].dataset_name);
    return NULL;
}
