/* dump.h: writes the intermediate values of a request as NumPy files. A finished request comes in; files go out. */
#ifndef VLMPROF_CLI_DUMP_H
#define VLMPROF_CLI_DUMP_H
#include "results/metrics.h"
#include "model/model.h"
#include "measure/engine.h"
#include "vlmprof_engine.h"

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
