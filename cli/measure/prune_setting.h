/* prune_setting.h: reads --prune METHOD[:KEY=VALUE,..] for the engine, and describes its effect. */
#ifndef VLMPROF_CLI_PRUNE_SETTING_H
#define VLMPROF_CLI_PRUNE_SETTING_H
#include "base/json.h"
#include "base/memory.h"
#include "vlmprof_engine.h"

/* A value of --prune. */
struct prune_setting { vp_prune how; int has_seed; };

/* Reads METHOD[:KEY=VALUE,..]. Returns 1, or 0 with a reason that names the key, its value and the valid values. */
int prune_read(const char *text, struct prune_setting *out, char *reason, size_t capacity);

/* Reads each text and complains, with the option's name, about the first invalid one. Returns 0 or EXIT_USAGE. */
int prune_check(const char *option, const char *const *texts, size_t count);

/* The effect of a setting on a request of which only counts are known, as in the engine: `tokens` image tokens of
 * `views` views in a prompt of `sequence` positions, and a model of which the first `blocks` blocks run. Bytes are not
 * known. Returns 1, or 0 with the reason. */
struct prune_counts { int32_t views, tokens, sequence, blocks; };
int prune_forecast(const struct prune_setting *setting, const struct prune_counts *counts, vp_pruned *pruned,
                   char *reason, size_t capacity);

/* "112 of 576 image tokens: .. rows from block ..; 73.4 image tokens per block on average; KV cache 12 of 30 MB". */
void prune_text(struct text_buffer *out, const vp_pruned *pruned);
/* The same as members of the open object: "image_tokens", "kept_tokens", "rows_per_block", ... */
void prune_put(vp_json_writer *writer, const vp_pruned *pruned);

#endif
