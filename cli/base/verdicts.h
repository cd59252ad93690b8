/* verdicts.h: verdicts of several comparisons, corrected for their number.
 * Comparisons come in; their p values and verdicts come out adjusted. */
#ifndef VLMPROF_CLI_VERDICTS_H
#define VLMPROF_CLI_VERDICTS_H
#include "vlmprof_analysis.h"

/* Adjusts the comparisons by Holm. Latencies of one group whose ratios agree are proportional, as T_LLM_decode and
 * T_decode_per_token where all answers are equally long: one question asked twice, which counts once. groups: [count];
 * equal: may be proportional. like: [count], the place of an earlier comparison that this one is proportional to plus
 * 1; 0: there is none. The comparisons are ones that vp_compare_* made. Returns how many count. */
size_t verdicts_adjust(vp_comparison *comparisons, const size_t *groups, size_t count, double alpha, size_t *like);

#endif
