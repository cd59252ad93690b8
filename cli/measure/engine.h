/* engine.h: one timed pass of the engine, from pixels to text.
 * A decoded image and a tokenized prompt come in; the answer and its times go out. */
#ifndef VLMPROF_CLI_MEASURE_ENGINE_H
#define VLMPROF_CLI_MEASURE_ENGINE_H
#include "base/memory.h"
#include "results/metrics.h"
#include "model/model.h"
#include "measure/prune_setting.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

/* An engine and the buffers that its passes share. Zeroed before use; the caller sets model and engine. */
struct session {
    const struct model *model;
    vp_engine *engine; /* NULL if none is open */
    struct input_buffers inputs; struct buffer answer;
    /* interval of the device's energy counter, and its step when idle; update_ns 0: not known yet, -1: the device has
     * no counter */
    struct energy_counter { int64_t update_ns; double step_j; } energy;
};

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

/* Allocates the buffers of a pass, outside any timed part. request_run also does this. */
void session_reserve(struct session *session, const struct pass_input *input);

/* Counts the work of a pass without running it (vp_engine_count). The session's engine may be one that only counts.
 * Pixels and ids are not needed. */
vp_result request_count(struct session *session, const struct pass_input *input, vp_stage_times *work,
                        vp_error *error);

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

#endif
