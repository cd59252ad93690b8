/* objective.c: which samples of a configuration meet a latency objective (--slo). */
#include "report/objective.h"

#include "vlmprof_analysis.h"

#include <math.h>
#include <stdlib.h>

/* A sample with only one token has no TPOT and meets that limit. */
static int is_good(const struct result_file *file, size_t row, const vp_slo *slo) {
    const double tokens = result_at(file, COLUMN_OUTPUT_TOKENS, row),
                 tpot = tokens <= 1 ? 0 : result_at(file, METRIC_PER_TOKEN, row);
    return vp_slo_holds(slo, result_at(file, METRIC_TTFT, row), tpot, result_at(file, METRIC_TOTAL, row));
}
struct objective_share objective_share_of(const struct result_file *file, const int64_t *ids, size_t id_count,
                                          const vp_slo *slo) {
    struct objective_share share = {0, 0, (double)NAN, (double)NAN, (double)NAN};
    for (size_t i = 0; i < id_count; i++) {
        const size_t row = result_row(file, ids[i]);
        if (row == file->count) continue;
        share.good += (size_t)is_good(file, row, slo);
        share.count++;
    }
    if (!share.count) return share;
    share.share = (double)share.good / (double)share.count;
    if (vp_rate_interval(share.good, share.count, 0.95, &share.low, &share.high) != VP_OK) abort(); /* never fails */
    return share;
}
const char *objective_lacks(const struct result_file *file, const vp_slo *slo) {
    const struct { double limit; int column; } limits[] = {
        {slo->ttft_ms, METRIC_TTFT}, {slo->tpot_ms, METRIC_PER_TOKEN}, {slo->e2e_ms, METRIC_TOTAL}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].limit > 0 && !file->columns[limits[i].column]) return METRIC_KEYS[limits[i].column];
    return NULL;
}
