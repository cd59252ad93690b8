/* dump.h: the intermediate values of a request, as NumPy files. A request that ran comes in; files go out. */
#ifndef VLMPROF_CLI_DUMP_H
#define VLMPROF_CLI_DUMP_H
#include "results/metrics.h"
#include "model/model.h"
#include "measure/engine.h"
#include "vlmprof_engine.h"

/* Makes room for what the engine copies out; *dump is overwritten. dump_free frees its arrays. */
void dump_reserve(vp_dump *dump, const struct model *model, const struct pass_input *input);
void dump_free(vp_dump *dump);

/* Writes the files of --dump into a folder that is there. pixels: f32 [views, patches, patch_values], of models other
 * than Molmo as their processor has them, [views, 3, height, width], Qwen's [patches, 3 * 2 * patch_px * patch_px],
 * with deepstack_features f32 [levels, tokens, d_model] where there are levels. Without an image the four image arrays
 * have no crops, so that nothing of an earlier dump stays. Returns 0 or an exit code, after a message on stderr. */
int dump_write(const char *folder, const struct session *session, const struct pass_input *input,
               const struct pass_result *run, const vp_dump *dump);

/* The pixels of a request that ran, as dump_write has them: malloc'ed, with their shape. */
float *dump_pixels(const struct session *session, const struct pass_input *input, int *dimensions, int64_t shape[4]);

/* What n independent roundings to bf16 add up to, u * sqrt(n) with u = 2^-9, as a share of the features or, with_text,
 * of the logits. n: in a block of the language model 14 results (norms 2, q k v 3, rotated q k 2, weights and output of
 * attention 2, its linear 1, gate up 2, their product 1, down 1) and 7 matrices; in one of the tower 11 and 6, without
 * gate and rotation; at the ends patches, connector, embedding, last norm and head. */
double rounding_of(const vp_model_config *config, int with_text);

/* How far values are from a reference: ||tested - reference|| / ||reference - its mean||. NaN is never equal. */
double relative_error(const float *tested, const float *reference, size_t count);

#endif
