/* prune.h: --prune METHOD[:KEY=VALUE,..] to what the engine is asked for, and what the engine makes of it. */
#ifndef VLMPROF_CLI_PRUNE_H
#define VLMPROF_CLI_PRUNE_H
#include "base/json.h"
#include "base/memory.h"
#include "vlmprof_engine.h"

/* A value of --prune as read. */
struct prune_setting { vp_prune how; int has_seed; };

/* Reads METHOD[:KEY=VALUE,..]. Returns 1, or 0 with a reason that names the key, the value and what it can be. */
int prune_read(const char *text, struct prune_setting *out, char *reason, size_t capacity);

/* Reads each text; complains as `option` about the first that is not a setting. Returns 0 or EXIT_USAGE. */
int prune_check(const char *option, const char *const *texts, size_t count);

/* What a setting makes of a request of which only counts are known, as the engine would: `tokens` image tokens of
 * `views` views in a prompt of `sequence` positions, of a model of which `blocks` blocks run, the first ones. Bytes are
 * not known. Returns 1, or 0 with the reason. */
struct prune_counts { int32_t views, tokens, sequence, blocks; };
int prune_forecast(const struct prune_setting *setting, const struct prune_counts *counts, vp_pruned *pruned,
                   char *reason, size_t capacity);

/* "112 of 576 image tokens, 73.4 a block on average; KV cache 12.1 of 30.2 MB", and rows by block. */
void prune_text(struct text_buffer *out, const vp_pruned *pruned);
/* The same as members of the open object: "image_tokens", "kept_tokens", "rows_per_block" ... */
void prune_put(vp_json_writer *writer, const vp_pruned *pruned);

#endif
