/* verdicts.h: verdicts of several comparisons, corrected for their number.
 * Comparisons come in; their p values and verdicts come out adjusted. */
#ifndef VLMPROF_CLI_VERDICTS_H
#define VLMPROF_CLI_VERDICTS_H
#include "vlmprof_analysis.h"

/* Adjusts the comparisons by Holm. Latencies of one group whose ratios agree are proportional, such as T_LLM_decode and
 * T_decode_per_token if all answers are equally long. They answer the same question, so they count once. groups:
 * [count]; only comparisons of the same group can be proportional. like: [count], 1 + the index of an earlier
 * comparison that this one is proportional to, or 0. The comparisons come from vp_compare_*. Returns how many count. */
size_t verdicts_adjust(vp_comparison *comparisons, const size_t *groups, size_t count, double alpha, size_t *like);

#endif
