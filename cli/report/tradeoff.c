/* tradeoff.c: the latency cost of accuracy (E2): fronts, effects and gains of the knobs. */
#include "report/tradeoff.h"

#include "report/series.h"
#include "vlmprof_statistics.h"

#include <math.h>

const char *percentile_text(double percentile) {
    return percentile < 0 ? "mean" : percentile < 60 ? "P50" : percentile < 97 ? "P95" : "P99";
}
const char *no_interval_text(const struct tradeoff *tradeoff, double percentile, char out[NO_INTERVAL_BYTES]) {
    const size_t needs = percentile < 0 ? 2 : vp_statistics_percentile_needs(percentile, 0.95);
    out[0] = 0;
    if (tradeoff->sample_count < needs)
        snprintf(out, NO_INTERVAL_BYTES, "%s of latency: no 95 %% interval, which needs %zu samples",
                 percentile_text(percentile), needs);
    return out;
}
int accuracies_are_equal(const struct tradeoff *tradeoff) {
    for (size_t i = 1; i < tradeoff->config_count; i++)
        if (tradeoff->at_accuracy[i] < tradeoff->at_accuracy[0] || tradeoff->at_accuracy[i] > tradeoff->at_accuracy[0])
            return 0;
    return tradeoff->config_count > 1;
}

vp_estimate point_latency(const vp_bootstrap_point *point) {
    return (vp_estimate){point->latency, point->latency_low, point->latency_high};
}
vp_estimate point_accuracy(const vp_bootstrap_point *point) {
    return (vp_estimate){point->accuracy, point->accuracy_low, point->accuracy_high};
}

/* ---- levels of the knobs */
/* Finds the values of a knob in ascending order, with a configuration for each. Returns their number, or
 * VP_KNOB_LEVEL_LIMIT + 1 if there are too many. */
static int32_t find_levels(struct tradeoff *tradeoff, const struct results *results, int knob) {
    size_t *examples = tradeoff->level_example[knob];
    int32_t count = 0;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const struct result_file *file = &results->files[tradeoff->group->paired[i]];
        int32_t at = 0;
        while (at < count && compare_axis(&results->files[tradeoff->group->paired[examples[at]]], file, knob) < 0) at++;
        if (at < count && !compare_axis(&results->files[tradeoff->group->paired[examples[at]]], file, knob)) continue;
        if (count == VP_KNOB_LEVEL_LIMIT) return count + 1;
        memmove(examples + at + 1, examples + at, (size_t)(count - at) * sizeof *examples);
        examples[at] = i;
        count++;
    }
    return count;
}
/* Returns 1 if two knobs with `count` levels change together, as servers that have a model each. */
static int go_together(const struct tradeoff *tradeoff, const struct results *results, int one, int other, int count) {
    const struct result_file *files = results->files;
    const size_t *paired = tradeoff->group->paired;
    for (int32_t level = 0; level < count; level++) {
        const struct result_file *example = &files[paired[tradeoff->level_example[one][level]]];
        for (size_t i = 0; i < tradeoff->config_count; i++)
            if (!compare_axis(&files[paired[i]], example, one) != !compare_axis(&files[paired[i]], example, other))
                return 0;
    }
    return 1;
}
/* Fills tradeoff->knobs with the levels of the knobs that vary; of two that change together only the last. Leaves it
 * without knobs if none varies, or if there are too many of them or of their levels. */
static void find_knobs(struct tradeoff *tradeoff, const struct results *results) {
    for (int k = 0; k < KNOB_COUNT; k++) {
        int32_t count = knob_is_axis(k) ? find_levels(tradeoff, results, k) : 0;
        if (count > VP_KNOB_LEVEL_LIMIT || (count > 1 && tradeoff->knobs.knob_count == VP_KNOB_LIMIT)) {
            tradeoff->knobs.knob_count = 0;
            return;
        }
        if (count < 2) continue;
        for (int32_t other = 0; other < tradeoff->knobs.knob_count; other++)
            if (tradeoff->knobs.level_counts[other] == count
                && go_together(tradeoff, results, tradeoff->knob_of[other], k, count)) {
                tradeoff->shown_for = k;
                tradeoff->not_shown = tradeoff->knob_of[other];
                for (int32_t next = other--; ++next < tradeoff->knobs.knob_count;) {
                    tradeoff->knobs.level_counts[next - 1] = tradeoff->knobs.level_counts[next];
                    tradeoff->knob_of[next - 1] = tradeoff->knob_of[next];
                }
                tradeoff->knobs.knob_count--;
            }
        tradeoff->knobs.level_counts[tradeoff->knobs.knob_count] = count;
        tradeoff->knob_of[tradeoff->knobs.knob_count++] = k;
    }
    tradeoff->levels = zeroed(tradeoff->config_count * KNOB_COUNT, sizeof *tradeoff->levels);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
            const size_t *examples = tradeoff->level_example[tradeoff->knob_of[k]];
            int32_t *level = &tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)k];
            while (compare_axis(&results->files[tradeoff->group->paired[examples[*level]]],
                                &results->files[tradeoff->group->paired[i]], tradeoff->knob_of[k]))
                ++*level;
        }
    }
    tradeoff->knobs.levels = tradeoff->levels;
    tradeoff->knobs.config_count = tradeoff->config_count;
}
/* Intervals of the effects on accuracy: from the range of the scores, or Student's if the range is unknown. Without
 * spread, there is no Student's interval. */
static vp_result bound_effects(struct tradeoff *tradeoff, void *scratch, size_t bytes) {
    if (tradeoff->range.is_known)
        return vp_effects_bounded(&tradeoff->knobs, tradeoff->accuracy, tradeoff->sample_count, tradeoff->order,
                                  tradeoff->range.low, tradeoff->range.high, 0.95, scratch, bytes, tradeoff->effects[1],
                                  NULL);
    for (size_t i = 0; i < tradeoff->effect_count; i++) {
        vp_effect *effect = &tradeoff->effects[1][i];
        if (!(effect->high > effect->low)) effect->low = effect->high = effect->p = (double)NAN;
    }
    return VP_OK;
}
static void find_effects(struct tradeoff *tradeoff) {
    if (tradeoff->is_loaded) return;
    const double *const values[] = {tradeoff->latency, tradeoff->accuracy};
    for (tradeoff->order = tradeoff->knobs.knob_count > 1 ? 2 : 1; tradeoff->order > 0; tradeoff->order--) {
        size_t bytes = vp_effects_bounded_scratch_bytes(&tradeoff->knobs, tradeoff->sample_count, tradeoff->order),
               terms = VP_KNOB_LIMIT * VP_KNOB_LIMIT;
        vp_result done = VP_OK;
        tradeoff->effect_count = vp_effect_count(&tradeoff->knobs, tradeoff->order);
        if (!tradeoff->effect_count) continue;
        void *scratch = resize(NULL, bytes, 1);
        for (int which = 0; which < 2 && done == VP_OK && values[which]; which++) {
            tradeoff->effects[which] = zeroed(tradeoff->effect_count, sizeof *tradeoff->effects[which]);
            tradeoff->shares[which] = zeroed(terms, sizeof(double));
            done = vp_effects(&tradeoff->knobs, values[which], tradeoff->sample_count, tradeoff->order, 0.95, scratch,
                              bytes, tradeoff->effects[which], tradeoff->shares[which], NULL);
            if (which && done == VP_OK) done = bound_effects(tradeoff, scratch, bytes);
        }
        free(scratch);
        if (done == VP_OK) return;
        for (int which = 0; which < 2; which++) {
            FREE_ALL(tradeoff->effects[which], tradeoff->shares[which]);
            tradeoff->effects[which] = NULL;
            tradeoff->shares[which] = NULL;
        }
    }
    tradeoff->order = 0; /* the grid has holes, or there is a single sample: nothing can be distinguished */
    tradeoff->effect_count = 0;
}
static void find_knob_fronts(struct tradeoff *tradeoff) {
    int32_t *keys = resize(NULL, tradeoff->config_count, sizeof *keys);
    for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
        for (int32_t level = 0; level < tradeoff->knobs.level_counts[k]; level++) {
            struct knob_front *front = ADDED(tradeoff->fronts, tradeoff->knob_front_count);
            front->knob = tradeoff->knob_of[k];
            front->level = level;
            front->front = zeroed(tradeoff->config_count, sizeof *front->front);
            for (size_t i = 0; i < tradeoff->config_count; i++)
                keys[i] = tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)k];
            if (vp_pareto_front_fixed(tradeoff->at_latency, tradeoff->at_accuracy, keys, level, tradeoff->config_count,
                                      front->front, &front->count)
                != VP_OK)
                front->count = 0;
            front->area = vp_pareto_area(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count,
                                         front->front, front->count, tradeoff->area_latency, tradeoff->area_accuracy);
        }
    }
    free(keys);
}
/* Widens a gain's intervals of accuracy: if accuracy is uncertain, so is accuracy per ms. */
static void bound_gain(const struct tradeoff *tradeoff, const double *first, const double *second, vp_gain *gain) {
    const vp_bounded_interval accuracy = accuracy_interval(tradeoff->range, first, second, tradeoff->sample_count);
    const double one = accuracy.low / gain->latency.mean, other = accuracy.high / gain->latency.mean;
    gain->accuracy.low = accuracy.low;
    gain->accuracy.high = accuracy.high;
    gain->accuracy.p = accuracy.p;
    if (!isfinite(one) || !isfinite(other)) {
        gain->low = -HUGE_VAL;
        gain->high = HUGE_VAL;
        return;
    }
    gain->low = fmin(gain->low, fmin(one, other));
    gain->high = fmax(gain->high, fmax(one, other));
}
/* Computes the gain of each configuration from the next level of each knob. */
static void find_gains(struct tradeoff *tradeoff) {
    for (size_t i = 0; i < tradeoff->config_count && tradeoff->accuracy; i++) {
        for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
            struct knob_gain gain;
            gain.from = i;
            gain.knob = tradeoff->knob_of[k];
            if (vp_knob_next(&tradeoff->knobs, i, k, &gain.to) != VP_OK) continue;
            if (vp_gain_compute(
                    tradeoff->latency + i * tradeoff->sample_count, tradeoff->accuracy + i * tradeoff->sample_count,
                    tradeoff->latency + gain.to * tradeoff->sample_count,
                    tradeoff->accuracy + gain.to * tradeoff->sample_count, tradeoff->sample_count, 0.95, &gain.gain)
                != VP_OK)
                continue;
            bound_gain(tradeoff, tradeoff->accuracy + i * tradeoff->sample_count,
                       tradeoff->accuracy + gain.to * tradeoff->sample_count, &gain.gain);
            *ADDED(tradeoff->gains, tradeoff->gain_count) = gain;
        }
    }
}
static void find_front(struct tradeoff *tradeoff) {
    double *sorted = resize(NULL, tradeoff->config_count, sizeof *sorted);
    vp_statistics middle;
    tradeoff->front = zeroed(tradeoff->config_count, sizeof *tradeoff->front);
    tradeoff->kept = zeroed(tradeoff->config_count, sizeof *tradeoff->kept);
    tradeoff->at_latency = resize(NULL, tradeoff->config_count, sizeof(double));
    tradeoff->at_accuracy = resize(NULL, tradeoff->config_count, sizeof(double));
    tradeoff->area_latency = 0;
    tradeoff->area_accuracy = HUGE_VAL;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        tradeoff->at_latency[i] = tradeoff->points[i].latency;
        tradeoff->at_accuracy[i] = tradeoff->points[i].accuracy;
        if (tradeoff->at_latency[i] > tradeoff->area_latency) tradeoff->area_latency = tradeoff->at_latency[i];
        if (tradeoff->at_accuracy[i] < tradeoff->area_accuracy) tradeoff->area_accuracy = tradeoff->at_accuracy[i];
    }
    vp_statistics_compute(tradeoff->at_latency, tradeoff->config_count, sorted, &middle);
    free(sorted);
    tradeoff->epsilon_latency = 0.01 * middle.p50;
    const vp_epsilon epsilon = {tradeoff->epsilon_latency, EPSILON_ACCURACY, 0};
    if (vp_pareto_front(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count, VP_PARETO_FIRST,
                        tradeoff->front, &tradeoff->front_count)
        != VP_OK)
        tradeoff->front_count = 0;
    if (vp_pareto_epsilon(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count, tradeoff->front,
                          tradeoff->front_count, epsilon, tradeoff->kept, &tradeoff->kept_count)
        != VP_OK)
        tradeoff->kept_count = 0;
    tradeoff->area =
        vp_pareto_area(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count, tradeoff->front,
                       tradeoff->front_count, tradeoff->area_latency, tradeoff->area_accuracy);
}
size_t equal_points(const struct tradeoff *tradeoff, size_t config) {
    size_t count = 0;
    for (size_t i = 0; i < tradeoff->config_count; i++)
        count += !(tradeoff->at_latency[i] < tradeoff->at_latency[config]
                   || tradeoff->at_latency[i] > tradeoff->at_latency[config])
                 && !(tradeoff->at_accuracy[i] < tradeoff->at_accuracy[config]
                      || tradeoff->at_accuracy[i] > tradeoff->at_accuracy[config]);
    return count;
}
/* The interval of a latency over samples, as elsewhere: order statistics for a percentile, Student's for a mean. NaN if
 * there are too few samples, because a range of resamples would have too little coverage. */
static void latency_interval(const double *values, size_t count, double percentile, double *sorted,
                             vp_bootstrap_point *point) {
    vp_statistics statistics;
    point->latency_low = point->latency_high = (double)NAN;
    if (vp_statistics_compute(values, count, sorted, &statistics) != VP_OK) return;
    if (percentile < 0) vp_statistics_mean_interval(values, count, 0.95, &point->latency_low, &point->latency_high);
    else vp_statistics_percentile_interval(sorted, count, percentile, 0.95, &point->latency_low, &point->latency_high);
}
double share_shown(double share, size_t samples) {
    return fmin(fmax(share, 1 / (double)(samples + 1)), (double)samples / (double)(samples + 1));
}
static void bootstrap_points(struct tradeoff *tradeoff, const struct report_settings *settings) {
    vp_bootstrap_options options = vp_bootstrap_options_default();
    size_t bytes = vp_bootstrap_scratch_bytes(tradeoff->config_count, tradeoff->sample_count, settings->resamples);
    double *sorted;
    options.resamples = settings->resamples;
    options.seed = BOOTSTRAP_SEED;
    options.percentile = settings->percentile;
    options.budget = settings->budget;
    options.min_accuracy = settings->min_accuracy;
    options.accuracy_rule = tradeoff->range.is_known ? VP_ACCURACY_BOUNDED : VP_ACCURACY_PERCENTILE;
    options.accuracy_range_low = tradeoff->range.low;
    options.accuracy_range_high = tradeoff->range.high;
    void *scratch = resize(NULL, bytes, 1);
    if (vp_bootstrap(tradeoff->latency, tradeoff->accuracy, tradeoff->config_count, tradeoff->sample_count, &options,
                     scratch, bytes, tradeoff->points)
        != VP_OK)
        snprintf(tradeoff->reason, sizeof tradeoff->reason, "the values are too large to resample");
    free(scratch);
    sorted = resize(NULL, tradeoff->sample_count, sizeof *sorted);
    for (size_t i = 0; i < tradeoff->config_count && !tradeoff->reason[0]; i++) {
        vp_bootstrap_point *point = &tradeoff->points[i];
        double *const shares[] = {&point->membership, &point->within_budget, &point->best};
        latency_interval(tradeoff->latency + i * tradeoff->sample_count, tradeoff->sample_count, settings->percentile,
                         sorted, point);
        for (size_t k = 0; k < 3; k++)
            *shares[k] = isfinite(point->latency_low) ? share_shown(*shares[k], tradeoff->sample_count) : (double)NAN;
    }
    free(sorted);
    for (size_t i = 0; i < tradeoff->config_count && !tradeoff->range.is_known; i++) { /* Student's, or none */
        vp_bounded_interval accuracy = accuracy_interval(
            tradeoff->range, NULL, tradeoff->accuracy + i * tradeoff->sample_count, tradeoff->sample_count);
        tradeoff->points[i].accuracy_low = accuracy.low;
        tradeoff->points[i].accuracy_high = accuracy.high;
    }
}
/* A corpus metric has one accuracy for a whole file, so points have no intervals. */
static void corpus_points(struct tradeoff *tradeoff, const struct results *results,
                          const struct report_settings *settings) {
    double *sorted = resize(NULL, tradeoff->sample_count, sizeof *sorted);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        vp_bootstrap_point *point = &tradeoff->points[i];
        vp_statistics stats;
        point->accuracy_low = point->accuracy_high = point->membership = point->within_budget = point->best =
            (double)NAN;
        point->accuracy = results->files[tradeoff->group->paired[i]].accuracy;
        vp_statistics_compute(tradeoff->latency + i * tradeoff->sample_count, tradeoff->sample_count, sorted, &stats);
        point->latency = settings->percentile < 0
                             ? stats.mean
                             : vp_statistics_percentile(sorted, tradeoff->sample_count, settings->percentile);
        latency_interval(tradeoff->latency + i * tradeoff->sample_count, tradeoff->sample_count, settings->percentile,
                         sorted, point);
    }
    free(sorted);
}
/* Under load, times are over requests and failed ones are wrong; how often a resample would agree is not known. */
static void load_points(struct tradeoff *tradeoff, const struct results *results, double percentile, int axis) {
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const struct result_file *file = &results->files[tradeoff->group->paired[i]];
        vp_bootstrap_point *point = &tradeoff->points[i];
        double *values;
        const size_t count = requests_of(file, axis, &values);
        if (count) {
            const vp_estimate latency = series_percentile(values, count, percentile), accuracy = file_accuracy(file);
            point->latency = latency.value;
            point->latency_low = latency.low;
            point->latency_high = latency.high;
            point->accuracy = accuracy.value;
            point->accuracy_low = accuracy.low;
            point->accuracy_high = accuracy.high;
            point->membership = point->within_budget = point->best = (double)NAN;
        }
        free(values);
    }
}
void tradeoff_make(struct tradeoff *tradeoff, const struct results *results, const struct result_group *group,
                   const struct report_settings *settings) {
    const int columns[] = {settings->axis, COLUMN_ACCURACY};
    int files_have = 1, rows_have = 1;
    tradeoff->group = group;
    for (size_t i = 0; i < group->count; i++)
        tradeoff->is_loaded |= results->files[group->first + i].load_count
                               && knob_number(&results->files[group->first + i].knobs, KNOB_CONCURRENCY) != 1;
    tradeoff->config_count = group->paired_count;
    for (size_t i = 0; i < group->paired_count; i++) {
        const struct score_range range = score_range_of(&results->files[group->paired[i]]);
        tradeoff->range = i ? score_range_common(tradeoff->range, range) : range;
        files_have &= isfinite(results->files[group->paired[i]].accuracy) != 0;
        rows_have &= results->files[group->paired[i]].columns[COLUMN_ACCURACY] != NULL;
    }
    tradeoff->is_corpus = files_have && !rows_have;
    tradeoff->sample_count = paired_ids(results, group, columns, rows_have ? 2 : 1, &tradeoff->ids);
    if (!files_have && !rows_have)
        snprintf(tradeoff->reason, sizeof tradeoff->reason, "no accuracies: %s", results->files[group->first].is_foreign
                 ? "rows need \"accuracy\"" : "the data have no reference answers");
    else if (tradeoff->sample_count < 2)
        snprintf(tradeoff->reason, sizeof tradeoff->reason,
                 "%zu sample%s %s %s and an accuracy in all configurations: at least 2 are needed",
                 tradeoff->sample_count, plural_s((int64_t)tradeoff->sample_count),
                 tradeoff->sample_count == 1 ? "has" : "have", METRIC_KEYS[settings->axis]);
    if (tradeoff->sample_count < 2) return;
    tradeoff->latency = paired_column(results, group, settings->axis, tradeoff->ids, tradeoff->sample_count);
    find_knobs(tradeoff, results);
    if (tradeoff->reason[0] && tradeoff->knobs.knob_count) find_effects(tradeoff); /* those on latency */
    if (tradeoff->reason[0]) return;
    tradeoff->points = zeroed(tradeoff->config_count, sizeof *tradeoff->points);
    if (tradeoff->is_corpus) corpus_points(tradeoff, results, settings);
    else {
        tradeoff->accuracy = paired_column(results, group, COLUMN_ACCURACY, tradeoff->ids, tradeoff->sample_count);
        bootstrap_points(tradeoff, settings);
    }
    if (tradeoff->reason[0]) return;
    load_points(tradeoff, results, settings->percentile, settings->axis);
    find_front(tradeoff);
    if (!tradeoff->knobs.knob_count) return;
    find_effects(tradeoff);
    find_knob_fronts(tradeoff);
    if (!tradeoff->is_loaded) find_gains(tradeoff);
}
void tradeoff_free(struct tradeoff *tradeoff) {
    void *all[] = {tradeoff->ids,        tradeoff->latency,     tradeoff->accuracy,   tradeoff->points,
                   tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->front,      tradeoff->kept,
                   tradeoff->levels,     tradeoff->effects[0],  tradeoff->effects[1], tradeoff->shares[0],
                   tradeoff->shares[1],  tradeoff->gains};
    for (size_t i = 0; i < tradeoff->knob_front_count; i++) free(tradeoff->fronts[i].front);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    free(tradeoff->fronts);
}
const char *report_level_text(const struct tradeoff *tradeoff, const struct results *results, int knob, int32_t level,
                              char out[KNOB_TEXT_BYTES]) {
    return axis_text(&results->files[tradeoff->group->paired[tradeoff->level_example[knob][level]]], knob, out);
}
int is_listed(const uint32_t *items, size_t count, size_t value) {
    for (size_t i = 0; i < count; i++) if (items[i] == value) return 1;
    return 0;
}
void effect_name(const struct tradeoff *tradeoff, const struct results *results, const vp_effect *effect,
                 char out[160]) {
    char level[KNOB_TEXT_BYTES], second_level[KNOB_TEXT_BYTES];
    if (effect->kind == VP_EFFECT_MEAN) { snprintf(out, 160, "mean"); return; }
    report_level_text(tradeoff, results, tradeoff->knob_of[effect->knob_a], effect->level_a, level);
    if (effect->kind != VP_EFFECT_PAIR) {
        snprintf(out, 160, "%s %s", KNOBS[tradeoff->knob_of[effect->knob_a]].axis, level);
        return;
    }
    report_level_text(tradeoff, results, tradeoff->knob_of[effect->knob_b], effect->level_b, second_level);
    snprintf(out, 160, "%s %.60s x %s %.60s", KNOBS[tradeoff->knob_of[effect->knob_a]].axis, level,
             KNOBS[tradeoff->knob_of[effect->knob_b]].axis, second_level);
}
