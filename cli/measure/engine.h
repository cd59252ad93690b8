/* engine.h: one timed pass of the engine, from pixels to text.
 * A decoded image and a tokenized prompt come in; the answer and its times go out. */
#ifndef VLMPROF_CLI_MEASURE_ENGINE_H
#define VLMPROF_CLI_MEASURE_ENGINE_H
#include "base/json.h"
#include "model/model.h"
#include "results/metrics.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

/* ---- prune_setting.c: --prune METHOD[:KEY=VALUE,..] */
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

/* An engine and the buffers that its passes share. Zeroed before use; the caller sets model and engine. */
struct session {
    const struct model *model;
    vp_engine *engine; /* NULL if none is open */
    struct input_buffers inputs; struct buffer answer;
    /* interval of the device's energy counter, and its step when idle; update_ns 0: not known yet, -1: the device has
     * no counter */
    struct energy_counter { int64_t update_ns; double step_j; } energy;
};

/* The number of the engine's GPU; -1 for the CPU. */
int32_t gpu_of(const vp_engine *engine);

/* Closes the engine. A GPU that it left in a failed state gets a new context: this program owns its devices. */
void session_end_engine(struct session *session);

/* Frees the buffers and ends the engine. */
void session_free(struct session *session);

/* The input of one pass. It owns nothing. */
struct pass_input {
    /* the knobs and limits of the engine's request; a pass sets its ids, pixels, layout, ends and pruning from the
     * model and the members below */
    vp_request engine;
    const vp_image *images;  /* [cuts->count] */
    const struct cuts *cuts; /* cuts of the images; NULL: text only */
    struct prompt_tokens tokens;
    struct prune_setting prune; /* method VP_PRUNE_NONE: all image tokens are kept */
    vp_ranges *ranges;          /* ranges of the host's parts; NULL: no ranges */
};
/* The common layout of the input's images; NULL: text only. */
static inline const vp_layout *layout_of(const struct pass_input *input) {
    return input->cuts ? &input->cuts->whole : NULL;
}
enum { CHAIN_STAMPS = 6 }; /* clock reads of request_run itself */

/* Tokens of the prompt and the images, including BOS. */
int32_t sequence_of(const struct pass_input *input);

/* Positions needed for the longest answer. The last new token is never fed back. */
int64_t positions_of(const struct pass_input *input);

/* Counts the work of a pass without running it (vp_engine_count). The session's engine may be one that only counts.
 * Pixels and ids are not needed. */
vp_result request_count(struct session *session, const struct pass_input *input, vp_stage_times *work, vp_error *error);

/* The name of vp_engine_activations for a pass; NULL: no engine is open, or it has no such weights. */
const char *request_activations(const struct session *session, const struct pass_input *input);

/* The effect of pruning on a pass (vp_prune_request); the session needs no open engine. weights: those that it will
 * have. */
vp_result request_pruned(const struct session *session, const struct pass_input *input, vp_weights weights,
                         vp_pruned *pruned, vp_error *error);

/* Runs one pass. *run comes from runs_make with space for input->engine.max_new_tokens; its old answer is freed. With
 * VP_TIMING_OFF, its stages are marked as not run and only the total is set. After a failure *error has the reason and
 * *run is not a result. Every range that the pass opens in input->ranges is closed, even after a failure. */
vp_result request_run(struct session *session, const struct pass_input *input, struct pass_result *run,
                      vp_error *error);

/* ---- dump.c: the values within a pass, as NumPy files */
/* Allocates arrays for the values that the engine copies out. *dump is overwritten; dump_free frees its arrays. */
void dump_reserve(vp_dump *dump, const struct model *model, const struct pass_input *input);
void dump_free(vp_dump *dump);

/* Writes the files of --dump into an existing folder. pixels is f32; its shape is [views, patches, patch_values] for
 * Molmo, [patches, 3 * 2 * patch_px * patch_px] for Qwen, and [views, 3, height, width] for the others, as their
 * processors produce it. Models with levels also get deepstack_features, f32 [levels, tokens, d_model]. Without an
 * image, the four image arrays are written empty, to overwrite those of an earlier dump. Returns 0 or an exit code
 * after a message on stderr. */
int dump_write(const char *folder, const struct session *session, const struct pass_input *input,
               const struct pass_result *run, const vp_dump *dump);

/* The expected error of n independent roundings to bf16, u * sqrt(n) with u = 2^-9, relative to the features or,
 * with_text, to the logits. n counts: per block of the language model 14 results (norms 2, q k v 3, rotated q k 2,
 * weights and output of attention 2, its linear layer 1, gate up 2, their product 1, down 1) and 7 matrices; per block
 * of the tower 11 and 6, because it has no gate and no rotation; at the ends patches, connector, embedding, last norm
 * and head. */
double rounding_of(const vp_model_config *config, int with_text);

/* The relative error of values: ||tested - reference|| / ||reference - its mean||. NaN is never equal. */
double relative_error(const float *tested, const float *reference, size_t count);

#endif
