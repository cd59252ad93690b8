/* stack.h: the values that a software stack computes for one request, stage by stage, ready to be compared. They come
 * from the built-in engine, another stack's .npy files, or a server. Functions return 0 or an exit code after a message
 * on stderr. */
#ifndef VLMPROF_CLI_CONFORM_STACK_H
#define VLMPROF_CLI_CONFORM_STACK_H
#include "base/options.h"
#include "measure/fidelity.h"
#include "measure/input.h"
#include "server/endpoint.h"

/* ROW(ID, name): the stages, in the order in which a request passes through them. The name is used in the JSON and for
 * the file NAME.npy of another stack's dump. */
#define CONFORM_STAGE_ROWS(ROW) \
    ROW(PROMPT_IDS, "prompt_ids") ROW(IMAGE, "image") ROW(PIXELS, "pixels") ROW(TOWER, "tower") \
    ROW(CONNECTOR, "connector") ROW(PREFILL, "prefill") ROW(TOKENS, "tokens")
#define CONFORM_STAGE_ID(id, name) CONFORM_##id,
enum conform_stage { CONFORM_STAGE_ROWS(CONFORM_STAGE_ID) CONFORM_STAGES };
extern const char *const CONFORM_STAGE_NAMES[CONFORM_STAGES];

/* The precision that a stack rounds its values to, the finest first. */
enum precision { PRECISION_FP32, PRECISION_FP16, PRECISION_BF16, PRECISION_INT8, PRECISION_INT4, PRECISIONS_KNOWN };
extern const char *const PRECISION_NAMES[PRECISIONS_KNOWN];

/* The values of a stage: integers or reals. The contents of the stages:
 * prompt_ids  the prompt's token ids, without those of the image
 * image       image tokens, views (crops or tiles), width and height in pixels after resizing; fewer if fewer are known
 * pixels      the input of the tower, in the layout of the model's processor
 * tower       the tower's output that the connector reads, after its final norm if it has one, one row per patch; for
 *             towers with DeepStack, only the last block
 * connector   the features that are assigned to image tokens, in order
 * prefill     the logits after the prompt
 * tokens      the greedy answer */
struct stage_values { int is_known; size_t count; int32_t *whole; float *real; };

struct stack {
    int is_server;
    enum precision precision; /* precision of its stored weights, or of its files */
    struct stage_values stages[CONFORM_STAGES];
    const float *steps; size_t step_count; /* for the engine: the logits of all steps; in `dump` */
    vp_dump dump;
    /* for a server; -1 if not reported */
    int64_t prompt_tokens, image_tokens;
    char *answer; size_t answer_bytes; /* NULL if none */
    struct likely_steps likely; /* only the first token is compared */
};
void stack_free(struct stack *stack);

/* One request, the same for all stacks. */
struct probe { const char *image_path, *prompt; int is_raw; int32_t new_tokens; };

/* Loads a model and prepares the request for it: prompt, image, tokens. *request is zeroed first; call request_close
 * also after a failure. */
int probe_open(const char *name, const char *projector, const struct probe *probe, struct request *request);

/* Runs the request on the built-in engine with these weights ("fp32") and gets its values. *stack is zeroed first. */
int stack_run(const struct options *options, struct request *request, const char *weights, struct stack *stack);

/* The precision in which the weights of the open request are stored, or could be without loss. */
enum precision stored_precision(const struct model *model);

/* Reads another stack's files from a folder. `ours` has the same request's values, whose sizes the files must match. */
int stack_of_dump(const char *folder, const struct request *request, const struct stack *ours, struct stack *stack);

/* Gets the values of a server. */
int stack_of_server(struct endpoint *endpoint, const struct probe *probe, struct stack *stack);

/* Gets the ids of a sequence without those of its image. Returns how many remain. */
size_t strip_image_ids(const struct model *model, int has_image, const int32_t *ids, size_t count, int32_t *out);

/* Gets the connector's features that are assigned to image tokens, in order; Molmo's crops also have others. */
size_t used_features(const struct request *request, const float *features, float *out);

#endif
