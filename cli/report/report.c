/* report.c: computes where the time of a request goes (E1), and what accuracy it buys (E2).
 * Computed once into a `report`; text, Markdown, CSV, JSON and HTML only print it. Intervals are at 95 %. */
#include "report/report.h"

#include "base/json.h"
#include "vlmprof_latency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const KNOB_NAMES[KNOBS] = {"image size", "top_k", "blocks"};

const char *const KNOB_KEYS[KNOBS] = {"image_size", "top_k", "num_active_blocks"};

const char *const BOUND_NAMES[] = {"-", "compute", "memory", "launch"};

/* The finite values of a column into out; their number. */
static size_t column_values(const struct result_file *file, int which, double *out) {
    size_t count = 0;
    for (size_t i = 0; file->columns[which] && i < file->count; i++)
        if (isfinite(file->columns[which][i])) out[count++] = file->columns[which][i];
    return count;
}
/* Mean with samples that lack it as 0: parts of a mean total that add up. */
static double column_part(const struct result_file *file, int which, double *scratch) {
    size_t count = column_values(file, which, scratch);
    return count ? vp_statistics_sum(scratch, count) / (double)file->count : (double)NAN;
}
static double run_spread_of(const struct result_file *file, double *scratch) {
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        size_t runs = file->run_at[i + 1] - file->run_at[i];
        if (runs < 2) continue;
        scratch[count++] = vp_statistics_std(file->run_total + file->run_at[i], runs)
                           / vp_statistics_mean(file->run_total + file->run_at[i], runs)
                           * sqrt((double)runs / (double)(runs - 1));
    }
    return median_of(scratch, count).value;
}
static void decompose_stage(struct decomposition *decomposition, int stage, double total, double *scratch) {
    const struct result_file *file = decomposition->file;
    struct stage_cost *cost = &decomposition->stages[stage];
    double wall = column_part(file, stage_column(stage, DETAIL_WALL), scratch);
    cost->mean = column_part(file, stage_column(stage, 0), scratch);
    cost->share = cost->mean / total;
    cost->p50 = median_of(scratch, column_values(file, stage_column(stage, 0), scratch));
    cost->flops = column_part(file, stage_column(stage, DETAIL_FLOPS), scratch);
    cost->bytes = column_part(file, stage_column(stage, DETAIL_BYTES), scratch);
    cost->launches = column_part(file, stage_column(stage, DETAIL_LAUNCHES), scratch);
    cost->tflops = cost->mean > 0 ? cost->flops / cost->mean / 1e9 : (double)NAN;
    cost->gbs = cost->mean > 0 ? cost->bytes / cost->mean / 1e6 : (double)NAN;
    cost->host_share = cost->mean > 0 && !is_host_stage(stage) ? wall / cost->mean : (double)NAN;
    cost->idle_share = file->kernel_device_ms[stage] > 0 ? 1 - file->kernel_ms[stage] / file->kernel_device_ms[stage]
                                                         : (double)NAN;
    for (int part = 0; part < VP_PART_COUNT; part++)
        cost->parts[part] = file->part_ms[stage][part] > 0 && file->kernel_device_ms[stage] > 0
                                ? file->part_ms[stage][part] / file->kernel_device_ms[stage]
                                : (double)NAN;
}
static void decompose(struct decomposition *decomposition, const struct result_file *file) {
    double *scratch = resize(NULL, file->count, sizeof *scratch), device = 0, kernels = 0;
    decomposition->file = file;
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        size_t count = decomposition->counts[metric] = column_values(file, metric, scratch);
        decomposition->mean[metric] = vp_statistics_mean(scratch, count);
        decomposition->p50[metric] = median_of(scratch, count);
        decomposition->p95[metric] = vp_statistics_percentile(scratch, count, 95);
        decomposition->p99[metric] = vp_statistics_percentile(scratch, count, 99);
    }
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        decompose_stage(decomposition, stage, decomposition->mean[METRIC_TOTAL], scratch);
        if (!(file->kernel_device_ms[stage] >= 0)) continue;
        device += file->kernel_device_ms[stage];
        kernels += file->kernel_ms[stage];
    }
    decomposition->idle_share = device > 0 ? 1 - kernels / device : (double)NAN;
    decomposition->unaccounted_share = decomposition->mean[METRIC_UNACCOUNTED] / decomposition->mean[METRIC_TOTAL];
    decomposition->closure = 1 - decomposition->unaccounted_share;
    decomposition->run_spread = run_spread_of(file, scratch);
    free(scratch);
}
/* The roofs: as given, else the best that a stage of at least a hundredth of a request reaches. */
static void find_peaks(struct report *report) {
    const double *given_tflops = &report->settings.peak_tflops, *given_gbs = &report->settings.peak_gbs;
    for (size_t i = 0; i < report->results->count; i++) {
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            const struct stage_cost *cost = &report->items[i].stages[stage];
            if (!(cost->share >= 0.01)) continue;
            if (cost->tflops > report->peak_tflops) report->peak_tflops = cost->tflops;
            if (cost->gbs > report->peak_gbs) report->peak_gbs = cost->gbs;
        }
    }
    if (isfinite(*given_tflops)) report->peak_tflops = *given_tflops;
    if (isfinite(*given_gbs)) report->peak_gbs = *given_gbs;
    report->peaks_are_given = isfinite(*given_tflops) && isfinite(*given_gbs);
}
/* A third of a roof is needed to call it the limit; below that starting work, waiting and small shapes take the
 * time. */
static bound bound_of(const struct report *report, const struct stage_cost *cost) {
    double compute = cost->tflops / report->peak_tflops, memory = cost->gbs / report->peak_gbs;
    if (!(cost->mean > 0) || !(cost->flops > 0 || cost->bytes > 0) || !(report->peak_tflops > 0)
        || !(report->peak_gbs > 0))
        return BOUND_NONE;
    if (cost->idle_share > 0.5) return BOUND_LAUNCH;
    if (!(compute >= 1.0 / 3 || memory >= 1.0 / 3)) return BOUND_LAUNCH;
    return compute >= memory ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* ---- curves */
struct xy { double x, y; };
struct xy_list { struct xy *items; size_t count, capacity; };
static void xy_add(struct xy_list *points, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    if (points->count == points->capacity) {
        points->capacity = points->capacity * 2 + 256;
        points->items = resize(points->items, points->capacity, sizeof *points->items);
    }
    points->items[points->count].x = x;
    points->items[points->count++].y = y;
}
static int by_x(const void *left_item, const void *right_item) {
    const struct xy *left = (const struct xy *)left_item, *right = (const struct xy *)right_item;
    return left->x < right->x ? -1 : left->x > right->x ? 1 : left->y < right->y ? -1 : left->y > right->y;
}
static void fit_curve(struct curve *curve, const struct xy_list *points) {
    double *design = resize(NULL, points->count, 2 * sizeof *design),
           *observed = resize(NULL, points->count, 2 * sizeof *observed), *fitted = observed + points->count;
    vp_linear_options settings = vp_linear_options_default();
    vp_linear_errors errors;
    vp_linear fit;
    curve->slope = estimate_none();
    curve->intercept = curve->r2 = (double)NAN;
    curve->count = points->count;
    for (size_t i = 0; i < points->count; i++) {
        design[2 * i] = 1;
        design[2 * i + 1] = points->items[i].x;
        observed[i] = points->items[i].y;
    }
    if (points->count > 2 && vp_linear_compute(design, observed, points->count, 2, &settings, &fit, NULL) == VP_OK) {
        curve->slope.value = fit.coefficient[1];
        curve->intercept = fit.coefficient[0];
        if (vp_linear_coefficient(&fit, 1, 0.95, &curve->slope.low, &curve->slope.high) != VP_OK)
            curve->slope.low = curve->slope.high = (double)NAN;
        for (size_t i = 0; i < points->count; i++) fitted[i] = vp_linear_value(&fit, design + 2 * i);
        if (vp_linear_errors_compute(observed, fitted, points->count, design, &errors) == VP_OK) curve->r2 = errors.r2;
    }
    free(design);
    free(observed);
}
/* Medians over each x, or over tenths of the points where there are more than a dozen of them. */
static void bin_curve(struct curve *curve, struct xy_list *points) {
    enum { BINS = 12 };
    double *values = resize(NULL, points->count, sizeof *values);
    size_t distinct = 0, start = 0;
    qsort(points->items, points->count, sizeof *points->items, by_x);
    for (size_t i = 0; i < points->count; i++) distinct += !i || points->items[i].x > points->items[i - 1].x;
    curve->bins = zeroed(BINS, sizeof *curve->bins);
    for (size_t i = 1; i <= points->count; i++) {
        int is_end = i == points->count
                     || (distinct <= BINS ? points->items[i].x > points->items[i - 1].x
                                          : i >= (curve->bin_count + 1) * points->count / BINS);
        struct curve_bin *bin = &curve->bins[curve->bin_count];
        if (!is_end) continue;
        for (size_t k = start; k < i; k++) values[k - start] = points->items[k].y;
        bin->x = points->items[start + (i - start) / 2].x;
        bin->y = median_of(values, i - start);
        bin->count = i - start;
        curve->bin_count++;
        start = i;
    }
    free(values);
}
static void add_curve(struct report *report, size_t group, const struct curve *kind, const char *label,
                      struct xy_list *points) {
    struct curve *curve;
    if (points->count) {
        report->curves = resize(report->curves, report->curve_count + 1, sizeof *report->curves);
        report->curve_group = resize(report->curve_group, report->curve_count + 1, sizeof *report->curve_group);
        report->curve_group[report->curve_count] = group;
        curve = &report->curves[report->curve_count++];
        *curve = *kind;
        snprintf(curve->label, sizeof curve->label, "%s", label);
        fit_curve(curve, points);
        bin_curve(curve, points);
    }
    free(points->items);
    memset(points, 0, sizeof *points);
}
/* The language model's knobs do nothing to vision: a sample counts once a size, with its mean over the
 * configurations of that size. */
static void vision_curve(struct report *report, size_t group_index) {
    static const struct curve kind = {"vision", "views", "T_vision_total", "ms/view", "", NULL, 0, {0, 0, 0}, 0, 0, 0};
    const struct result_group *group = &report->results->groups[group_index];
    struct xy_list points = {NULL, 0, 0};
    size_t end = group->first + group->count;
    for (size_t first = group->first, next; first < end; first = next) {
        const struct result_file *file = &report->results->files[first];
        for (next = first + 1; next < end && is_same_size(file, &report->results->files[next]);) next++;
        for (size_t i = 0; i < file->count; i++) {
            double sum = 0, count = 0;
            for (size_t k = first; k < next; k++) {
                const struct result_file *other = &report->results->files[k];
                size_t row = i < other->count && other->ids[i] == file->ids[i] ? i : result_row(other, file->ids[i]);
                double ms = row < other->count ? result_at(other, METRIC_VISION, row) : (double)NAN;
                if (isfinite(ms)) { sum += ms; count++; }
            }
            xy_add(&points, result_at(file, COLUMN_VIEWS, i), sum / count);
        }
    }
    add_curve(report, group_index, &kind, "all", &points);
}
static void language_curves(struct report *report, size_t group_index) {
    static const struct curve kinds[] = {
        {"prefill", "total_sequence_length", "T_LLM_prefill", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode", "decode steps", "T_LLM_decode", "ms/step", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode context", "total_sequence_length", "T_decode_per_token", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0}};
    static const int xs[] = {COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS, COLUMN_SEQUENCE},
                     ys[] = {METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const struct result_group *group = &report->results->groups[group_index];
    unsigned char *done = zeroed(group->count, 1);
    for (int which = 0; which < 3; which++) {
        memset(done, 0, group->count);
        for (size_t member = 0; member < group->count; member++) {
            const struct result_file *file = &report->results->files[group->first + member];
            struct xy_list points = {NULL, 0, 0};
            char label[48];
            if (done[member]) continue;
            snprintf(label, sizeof label, "k%lld b%lld", (long long)file->top_k, (long long)file->block_count);
            for (size_t next = member; next < group->count; next++) {
                const struct result_file *other = &report->results->files[group->first + next];
                if (other->top_k != file->top_k || other->block_count != file->block_count) continue;
                done[next] = 1;
                for (size_t i = 0; i < other->count; i++)
                    if (which != 1) xy_add(&points, result_at(other, xs[which], i), result_at(other, ys[which], i));
                    else if (result_at(other, COLUMN_OUTPUT_TOKENS, i) > 1)
                        xy_add(&points, result_at(other, xs[which], i) - 1, result_at(other, ys[which], i));
            }
            add_curve(report, group_index, &kinds[which], label, &points);
        }
    }
    free(done);
}

/* ---- E2 */
static int compare_knob(const struct result_file *left, const struct result_file *right, int knob) {
    if (knob == KNOB_TOP_K) return left->top_k != right->top_k ? (left->top_k < right->top_k ? -1 : 1) : 0;
    if (knob == KNOB_BLOCKS)
        return left->block_count != right->block_count ? (left->block_count < right->block_count ? -1 : 1) : 0;
    if (size_rank(left) != size_rank(right)) return size_rank(left) < size_rank(right) ? -1 : 1;
    return strcmp(left->tier ? left->tier : "", right->tier ? right->tier : "");
}
/* Values of a knob, ascending: a configuration of each; VP_KNOB_LEVEL_LIMIT + 1: too many. */
static int32_t find_levels(struct tradeoff *tradeoff, const struct results *results, int knob) {
    size_t *examples = tradeoff->level_example[knob];
    int32_t count = 0;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const struct result_file *file = &results->files[tradeoff->group->paired[i]];
        int32_t at = 0;
        while (at < count && compare_knob(&results->files[tradeoff->group->paired[examples[at]]], file, knob) < 0) at++;
        if (at < count && !compare_knob(&results->files[tradeoff->group->paired[examples[at]]], file, knob)) continue;
        if (count == VP_KNOB_LEVEL_LIMIT) return count + 1;
        memmove(examples + at + 1, examples + at, (size_t)(count - at) * sizeof *examples);
        examples[at] = i;
        count++;
    }
    return count;
}
/* Levels of the knobs that vary; 0 when none does, or one has too many. */
static int has_knobs(struct tradeoff *tradeoff, const struct results *results) {
    for (int k = 0; k < KNOBS; k++) {
        int32_t count = find_levels(tradeoff, results, k);
        if (count > VP_KNOB_LEVEL_LIMIT) return 0;
        if (count < 2) continue;
        tradeoff->knobs.level_counts[tradeoff->knobs.knob_count] = count;
        tradeoff->knob_of[tradeoff->knobs.knob_count++] = k;
    }
    tradeoff->levels = zeroed(tradeoff->config_count * KNOBS, sizeof *tradeoff->levels);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
            const size_t *examples = tradeoff->level_example[tradeoff->knob_of[k]];
            int32_t *level = &tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)k];
            while (compare_knob(&results->files[tradeoff->group->paired[examples[*level]]],
                                &results->files[tradeoff->group->paired[i]], tradeoff->knob_of[k]))
                ++*level;
        }
    }
    tradeoff->knobs.levels = tradeoff->levels;
    tradeoff->knobs.config_count = tradeoff->config_count;
    return tradeoff->knobs.knob_count > 0;
}
static void find_effects(struct tradeoff *tradeoff) {
    const double *values[2];
    values[0] = tradeoff->latency;
    values[1] = tradeoff->accuracy;
    for (tradeoff->order = tradeoff->knobs.knob_count > 1 ? 2 : 1; tradeoff->order > 0; tradeoff->order--) {
        size_t bytes = vp_effects_scratch_bytes(&tradeoff->knobs, tradeoff->order),
               terms = VP_KNOB_LIMIT * VP_KNOB_LIMIT;
        vp_result done = VP_OK;
        void *scratch;
        tradeoff->effect_count = vp_effect_count(&tradeoff->knobs, tradeoff->order);
        if (!tradeoff->effect_count) continue;
        scratch = resize(NULL, bytes, 1);
        for (int which = 0; which < 2 && done == VP_OK && values[which]; which++) {
            tradeoff->effects[which] = zeroed(tradeoff->effect_count, sizeof *tradeoff->effects[which]);
            tradeoff->shares[which] = zeroed(terms, sizeof(double));
            done = vp_effects(&tradeoff->knobs, values[which], tradeoff->sample_count, tradeoff->order, 0.95, scratch,
                              bytes, tradeoff->effects[which], tradeoff->shares[which], NULL);
        }
        free(scratch);
        if (done == VP_OK) return;
        for (int which = 0; which < 2; which++) {
            free(tradeoff->effects[which]);
            free(tradeoff->shares[which]);
            tradeoff->effects[which] = NULL;
            tradeoff->shares[which] = NULL;
        }
    }
    tradeoff->order = 0; /* holes of the grid, or a single sample: nothing can be told apart */
    tradeoff->effect_count = 0;
}
static void find_knob_fronts(struct tradeoff *tradeoff) {
    int32_t *keys = resize(NULL, tradeoff->config_count, sizeof *keys);
    for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
        for (int32_t level = 0; level < tradeoff->knobs.level_counts[k]; level++) {
            struct knob_front *front;
            tradeoff->fronts = resize(tradeoff->fronts, tradeoff->knob_front_count + 1, sizeof *tradeoff->fronts);
            front = &tradeoff->fronts[tradeoff->knob_front_count++];
            front->knob = tradeoff->knob_of[k];
            front->level = level;
            front->front = zeroed(tradeoff->config_count, sizeof *front->front);
            front->count = 0;
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
            tradeoff->gains = resize(tradeoff->gains, tradeoff->gain_count + 1, sizeof *tradeoff->gains);
            tradeoff->gains[tradeoff->gain_count++] = gain;
        }
    }
}
static void find_front(struct tradeoff *tradeoff, const struct report_settings *settings) {
    vp_epsilon epsilon;
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
    epsilon.latency = tradeoff->epsilon_latency = settings->epsilon_share * middle.p50;
    epsilon.accuracy = settings->epsilon_accuracy;
    epsilon.relative = 0;
    if (vp_pareto_front(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count, VP_PARETO_FIRST,
                        tradeoff->front, &tradeoff->front_count)
        != VP_OK)
        tradeoff->front_count = 0;
    if (vp_pareto_epsilon(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count, tradeoff->front,
                          tradeoff->front_count, epsilon, tradeoff->kept, &tradeoff->kept_count)
        != VP_OK)
        tradeoff->kept_count = 0;
    tradeoff->area = vp_pareto_area(tradeoff->at_latency, tradeoff->at_accuracy, tradeoff->config_count,
                                    tradeoff->front, tradeoff->front_count, tradeoff->area_latency,
                                    tradeoff->area_accuracy);
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
static void bootstrap_points(struct tradeoff *tradeoff, const struct report_settings *settings) {
    vp_bootstrap_options options = vp_bootstrap_options_default();
    size_t bytes = vp_bootstrap_scratch_bytes(tradeoff->config_count, tradeoff->sample_count, settings->resamples);
    void *scratch;
    options.resamples = settings->resamples;
    options.seed = settings->seed;
    options.percentile = settings->percentile;
    options.budget = settings->budget;
    options.min_accuracy = settings->min_accuracy;
    scratch = resize(NULL, bytes, 1);
    if (vp_bootstrap(tradeoff->latency, tradeoff->accuracy, tradeoff->config_count, tradeoff->sample_count, &options,
                     scratch, bytes, tradeoff->points)
        != VP_OK)
        snprintf(tradeoff->reason, sizeof tradeoff->reason, "the values are too large to be drawn from");
    free(scratch);
}
/* The accuracy of a corpus metric belongs to a whole file: points without intervals. */
static void corpus_points(struct tradeoff *tradeoff, const struct results *results,
                          const struct report_settings *settings) {
    double *sorted = resize(NULL, tradeoff->sample_count, sizeof *sorted);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        vp_bootstrap_point *point = &tradeoff->points[i];
        vp_statistics stats;
        point->latency_low = point->latency_high = point->accuracy_low = point->accuracy_high = point->membership =
            point->within_budget = point->best = (double)NAN;
        point->accuracy = results->files[tradeoff->group->paired[i]].accuracy;
        vp_statistics_compute(tradeoff->latency + i * tradeoff->sample_count, tradeoff->sample_count, sorted, &stats);
        point->latency = settings->percentile < 0
                             ? stats.mean
                             : vp_statistics_percentile(sorted, tradeoff->sample_count, settings->percentile);
        if (settings->percentile >= 0)
            vp_statistics_percentile_interval(sorted, tradeoff->sample_count, settings->percentile, 0.95,
                                              &point->latency_low, &point->latency_high);
        else
            vp_statistics_mean_interval(sorted, tradeoff->sample_count, 0.95, &point->latency_low,
                                        &point->latency_high);
    }
    free(sorted);
}
void tradeoff_make(struct tradeoff *tradeoff, const struct results *results, const struct result_group *group,
                   const struct report_settings *settings) {
    int columns[2], files_have = 1, rows_have = 1;
    columns[0] = settings->axis;
    columns[1] = COLUMN_ACCURACY;
    tradeoff->group = group;
    tradeoff->config_count = group->paired_count;
    for (size_t i = 0; i < group->paired_count; i++) {
        files_have &= isfinite(results->files[group->paired[i]].accuracy) != 0;
        rows_have &= results->files[group->paired[i]].columns[COLUMN_ACCURACY] != NULL;
    }
    tradeoff->is_corpus = files_have && !rows_have;
    tradeoff->sample_count = paired_ids(results, group, columns, tradeoff->is_corpus ? 1 : 2, &tradeoff->ids);
    if (!files_have && !rows_have)
        snprintf(tradeoff->reason, sizeof tradeoff->reason, "no accuracy: the data have no answers to compare with");
    else if (tradeoff->sample_count < 2)
        snprintf(tradeoff->reason, sizeof tradeoff->reason,
                 "%zu samples have %s and an accuracy in all configurations: at least 2 are needed",
                 tradeoff->sample_count, METRIC_KEYS[settings->axis]);
    if (tradeoff->reason[0]) return;
    tradeoff->latency = paired_column(results, group, settings->axis, tradeoff->ids, tradeoff->sample_count);
    tradeoff->points = zeroed(tradeoff->config_count, sizeof *tradeoff->points);
    if (tradeoff->is_corpus) corpus_points(tradeoff, results, settings);
    else {
        tradeoff->accuracy = paired_column(results, group, COLUMN_ACCURACY, tradeoff->ids, tradeoff->sample_count);
        bootstrap_points(tradeoff, settings);
    }
    if (tradeoff->reason[0]) return;
    find_front(tradeoff, settings);
    if (!has_knobs(tradeoff, results)) return;
    find_effects(tradeoff);
    find_knob_fronts(tradeoff);
    find_gains(tradeoff);
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
                              char out[48]) {
    const struct result_file *file = &results->files[tradeoff->group->paired[tradeoff->level_example[knob][level]]];
    if (knob == KNOB_SIZE && file->tier) snprintf(out, 48, "%.40s", file->tier);
    else if (knob == KNOB_SIZE) snprintf(out, 48, "%lld tokens", (long long)file->target_tokens);
    else snprintf(out, 48, "%lld", (long long)(knob == KNOB_TOP_K ? file->top_k : file->block_count));
    return out;
}

/* ---- what a reader must know first */
/* files whose text differs from the first's */
static size_t differing_files(const struct results *results, size_t offset) {
    size_t count = 0;
    for (size_t i = 1; i < results->count; i++) {
        const char *first = *(char *const *)(const void *)((const char *)&results->files[0] + offset);
        const char *other = *(char *const *)(const void *)((const char *)&results->files[i] + offset);
        count += strcmp(first ? first : "", other ? other : "") != 0;
    }
    return count;
}
static void warn_of_files(struct report *report) {
    static const struct {
        const char *name;
        size_t offset;
    } same[] = {{"device", offsetof(struct result_file, device)},
                {"model", offsetof(struct result_file, model)},
                {"weights", offsetof(struct result_file, weights)},
                {"timing", offsetof(struct result_file, timing)},
                {"version", offsetof(struct result_file, version)}};
    const struct results *results = report->results;
    int64_t failed = 0, missing = 0, throttled = 0, outliers = 0, runs = 0, synthetic = 0, foreign = 0, coarse = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        failed += file->failed_count;
        missing += file->missing_count > 0 ? file->missing_count : 0;
        throttled += file->throttled_runs > 0 ? file->throttled_runs : 0;
        outliers += file->outlier_runs > 0 ? file->outlier_runs : 0;
        runs += file->run_at ? (int64_t)file->run_at[file->count] : 0;
        synthetic += file->is_synthetic;
        foreign += file->is_foreign;
        coarse += !file->columns[stage_column(VP_STAGE_PREFILL, 0)];
    }
    if (synthetic)
        text_list_add(&report->warnings, "synthetic weights in %lld of %zu files: latency is real, accuracy is not",
                      (long long)synthetic, results->count);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (differing_files(results, same[i].offset))
            text_list_add(&report->warnings,
                          "the files differ in their %s: what lies between them is not the knobs alone", same[i].name);
    if (failed) text_list_add(&report->warnings, "%lld points failed; they are in no number", (long long)failed);
    if (missing)
        text_list_add(&report->warnings, "%lld points are not measured yet; they are in no number", (long long)missing);
    if (throttled)
        text_list_add(&report->warnings,
                      "%lld of %lld runs were measured while the device held its clocks down; they are kept",
                      (long long)throttled, (long long)runs);
    if (outliers)
        text_list_add(&report->warnings,
                      "%lld of %lld runs stand out by their total (modified z over 3.5); they are kept",
                      (long long)outliers, (long long)runs);
    if (foreign)
        text_list_add(&report->warnings,
                      "%lld files are the experiments' own: no stages, no closure; ms a token is divided by N - 1 here",
                      (long long)foreign);
    else if (coarse)
        text_list_add(&report->warnings, "%lld files hold no stage times (--timing off)", (long long)coarse);
}
static void warn_of_samples(struct report *report) {
    size_t least = SIZE_MAX, p95 = 0, p99 = 0, open = 0;
    double worst = 1, spread = 0;
    for (size_t i = 0; i < report->results->count; i++) {
        const struct decomposition *decomposition = &report->items[i];
        if (decomposition->file->count < least) least = decomposition->file->count;
        p95 += !vp_statistics_percentile_supported(decomposition->counts[METRIC_TOTAL], 95);
        p99 += !vp_statistics_percentile_supported(decomposition->counts[METRIC_TOTAL], 99);
        open += decomposition->closure < 0.99;
        if (decomposition->closure < worst) worst = decomposition->closure;
        if (decomposition->run_spread > spread) spread = decomposition->run_spread;
    }
    if (least < 500)
        text_list_add(&report->warnings, "only %zu samples in the smallest file: 500 and more are advised for fronts",
                      least);
    if (spread > 0.05)
        text_list_add(&report->warnings,
                      "runs of one request spread by up to %.1f %% (standard deviation): the machine was not quiet",
                      100 * spread);
    if (p95)
        text_list_add(
            &report->warnings,
            "P95 comes from fewer than 60 samples in %zu of %zu configurations: it is close to the largest value", p95,
            report->results->count);
    if (p99)
        text_list_add(
            &report->warnings,
            "P99 comes from fewer than 300 samples in %zu of %zu configurations: it is close to the largest value", p99,
            report->results->count);
    if (open)
        text_list_add(&report->warnings,
                      "the stages add up to less than 99 %% of T_total in %zu of %zu configurations (least: %.2f %%)",
                      open, report->results->count, 100 * worst);
}

/* ---- findings in words */
static const char *const SHARE_NAMES[] = {"vision (vit + connector)", "prefill (embed to sample)", "decode"};

static double main_share(const struct decomposition *decomposition, int metric) {
    double share = 0;
    int first = metric == METRIC_VISION ? VP_STAGE_VIT : metric == METRIC_PREFILL ? VP_STAGE_EMBED : VP_STAGE_DECODE;
    int last = metric == METRIC_VISION    ? VP_STAGE_CONNECTOR
               : metric == METRIC_PREFILL ? VP_STAGE_SAMPLE
                                          : VP_STAGE_DECODE;
    for (int stage = first; stage <= last; stage++)
        if (isfinite(decomposition->stages[stage].share)) share += decomposition->stages[stage].share;
    /* the experiments' files know the sums alone */
    return share > 0 ? share : decomposition->mean[metric] / decomposition->mean[METRIC_TOTAL];
}
static void find_dominant(struct report *report) {
    size_t wins[3] = {0, 0, 0};
    for (int metric = METRIC_VISION; metric <= METRIC_DECODE; metric++) {
        for (size_t i = 0; i < report->results->count; i++) {
            double share = main_share(&report->items[i], metric);
            int wins_all = share > 0;
            for (int k = METRIC_VISION; k <= METRIC_DECODE; k++)
                wins_all &= k == metric || !(main_share(&report->items[i], k) >= share);
            wins[metric] += (size_t)wins_all;
        }
    }
    for (int metric = METRIC_VISION; metric <= METRIC_DECODE; metric++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (size_t i = 0; i < report->results->count; i++) {
            double share = main_share(&report->items[i], metric);
            if (share < low) low = share;
            if (share > high) high = share;
        }
        if (high > 0)
            text_list_add(&report->findings,
                          "%s takes %.1f to %.1f %% of a request; it is the largest part in %zu of %zu configurations",
                          SHARE_NAMES[metric], 100 * low, 100 * high, wins[metric], report->results->count);
    }
}
/* The configuration that differs from one at a knob's lowest level by standing at its highest; config_count: not
 * measured. */
static size_t other_end(const struct tradeoff *tradeoff, size_t config, int32_t knob) {
    size_t width = (size_t)tradeoff->knobs.knob_count, i = 0;
    for (; i < tradeoff->config_count; i++) {
        int same = tradeoff->levels[i * width + (size_t)knob] == tradeoff->knobs.level_counts[knob] - 1;
        for (size_t k = 0; k < width; k++)
            same &= k == (size_t)knob || tradeoff->levels[i * width + k] == tradeoff->levels[config * width + k];
        if (same) break;
    }
    return i;
}
/* Sums of `values` [config_count, sample_count] over the configurations at a knob's two ends, all other knobs alike;
 * returns the pairs found. */
static size_t sum_ends(const struct tradeoff *tradeoff, int32_t knob, const double *values, double *low, double *high) {
    size_t pairs = 0;
    memset(low, 0, tradeoff->sample_count * sizeof *low);
    memset(high, 0, tradeoff->sample_count * sizeof *high);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        size_t end = tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)knob]
                         ? tradeoff->config_count
                         : other_end(tradeoff, i, knob);
        if (end == tradeoff->config_count) continue;
        pairs++;
        for (size_t sample = 0; sample < tradeoff->sample_count; sample++) {
            low[sample] += values[i * tradeoff->sample_count + sample];
            high[sample] += values[end * tradeoff->sample_count + sample];
        }
    }
    return pairs;
}
/* What a knob does from its lowest to its highest value, all others alike; paired over the samples. No effect where
 * the interval holds 0. */
static void find_changes(struct report *report, const struct tradeoff *tradeoff) {
    double *low = resize(NULL, tradeoff->sample_count, 2 * sizeof *low), *high = low + tradeoff->sample_count;
    const char *task = report->results->group_count > 1 ? report->results->files[tradeoff->group->first].task : "";
    for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
        char first[48], last[48], knob[400];
        vp_mean_interval change;
        size_t pairs = sum_ends(tradeoff, k, tradeoff->latency, low, high);
        double base = vp_statistics_mean(low, tradeoff->sample_count) / 100, points;
        if (!pairs || !(base > 0) || vp_paired_t(low, high, tradeoff->sample_count, 0.95, &change) != VP_OK) continue;
        snprintf(knob, sizeof knob, "%.240s%s%s from %s to %s", task, *task ? ": " : "",
                 KNOB_NAMES[tradeoff->knob_of[k]],
                 report_level_text(tradeoff, report->results, tradeoff->knob_of[k], 0, first),
                 report_level_text(tradeoff, report->results, tradeoff->knob_of[k], tradeoff->knobs.level_counts[k] - 1,
                                   last));
        text_list_add(&report->findings, "%s changes mean %s by %+.1f %% [%+.1f, %+.1f]%s", knob,
                      METRIC_KEYS[report->settings.axis], change.mean / base, change.low / base, change.high / base,
                      change.low / base > -3 && change.high / base < 3 ? ": flat, it buys no time" : "");
        if (!tradeoff->accuracy) continue;
        sum_ends(tradeoff, k, tradeoff->accuracy, low, high);
        points = 100.0 / (double)pairs;
        if (vp_paired_t(low, high, tradeoff->sample_count, 0.95, &change) != VP_OK) continue;
        if (change.low <= 0 && change.high >= 0)
            text_list_add(&report->findings,
                          "%s shows no effect on accuracy: the interval of %+.2f points, [%+.2f, %+.2f], holds 0", knob,
                          points * change.mean, points * change.low, points * change.high);
        else
            text_list_add(&report->findings, "%s changes accuracy by %+.2f points [%+.2f, %+.2f]", knob,
                          points * change.mean, points * change.low, points * change.high);
    }
    free(low);
}
static void find_decode(struct report *report) {
    double low = HUGE_VAL, high = -HUGE_VAL, least = HUGE_VAL, most = -HUGE_VAL;
    size_t count = 0;
    for (size_t i = 0; i < report->results->count; i++) {
        const struct stage_cost *cost = &report->items[i].stages[VP_STAGE_DECODE];
        double step = report->items[i].mean[METRIC_PER_TOKEN],
               floor_ms = cost->bytes / cost->mean * step / report->peak_gbs / 1e6;
        if (!(floor_ms > 0) || !(step > 0)) continue;
        count++;
        if (step < low) low = step;
        if (step > high) high = step;
        if (floor_ms / step < least) least = floor_ms / step;
        if (floor_ms / step > most) most = floor_ms / step;
    }
    if (count)
        text_list_add(&report->findings,
                      "a decode step takes %.3g to %.3g ms; its bytes at %.4g GB/s would take %.0f to %.0f %% of that",
                      low, high, report->peak_gbs, 100 * least, 100 * most);
}
static void find_idle(struct report *report) {
    double least = HUGE_VAL, most = -HUGE_VAL, host = 0;
    size_t known = 0, bound_count = 0, sent = 0;
    for (size_t i = 0; i < report->results->count; i++) {
        const struct decomposition *decomposition = &report->items[i];
        if (decomposition->file->device && !strncmp(decomposition->file->device, "cuda", 4)
            && decomposition->stages[VP_STAGE_DECODE].host_share > 0) {
            sent++;
            if (decomposition->stages[VP_STAGE_DECODE].host_share > host)
                host = decomposition->stages[VP_STAGE_DECODE].host_share;
        }
        if (!isfinite(decomposition->idle_share)) continue;
        known++;
        bound_count += decomposition->idle_share > 0.3;
        if (decomposition->idle_share < least) least = decomposition->idle_share;
        if (decomposition->idle_share > most) most = decomposition->idle_share;
    }
    if (known)
        text_list_add(&report->findings, "the device is idle %.1f to %.1f %% of a request%s", 100 * least, 100 * most,
                      bound_count ? ": bound by the host, faster kernels would not help much"
                                  : ": not bound by the host");
    else text_list_add(&report->findings, "how long the device is idle is not known: sweep with --kernel_pass tells");
    if (sent && host > 0.9)
        text_list_add(
            &report->findings,
            "sending the work of decode takes the host up to %.0f %% of its time on the device: bound by the host",
            100 * host);
}

/* ---- all of it */
void report_make(struct report *report, const struct results *results, const struct report_settings *settings) {
    memset(report, 0, sizeof *report);
    report->results = results;
    report->settings = *settings;
    report->items = zeroed(results->count, sizeof *report->items);
    report->tradeoffs = zeroed(results->group_count, sizeof *report->tradeoffs);
    for (size_t i = 0; i < results->count; i++) decompose(&report->items[i], &results->files[i]);
    find_peaks(report);
    for (size_t i = 0; i < results->count; i++)
        for (int k = 0; k < VP_STAGE_COUNT; k++)
            report->items[i].stages[k].limit = bound_of(report, &report->items[i].stages[k]);
    warn_of_files(report);
    warn_of_samples(report);
    for (size_t i = 0; i < results->notes.count; i++) text_list_add(&report->warnings, "%s", results->notes.items[i]);
    find_dominant(report);
    find_decode(report);
    find_idle(report);
    for (size_t i = 0; i < results->group_count; i++) {
        vision_curve(report, i);
        language_curves(report, i);
        tradeoff_make(&report->tradeoffs[i], results, &results->groups[i], settings);
        if (!report->tradeoffs[i].reason[0]) find_changes(report, &report->tradeoffs[i]);
    }
}
void report_free(struct report *report) {
    for (size_t i = 0; i < report->curve_count; i++) free(report->curves[i].bins);
    for (size_t i = 0; report->tradeoffs && i < report->results->group_count; i++) tradeoff_free(&report->tradeoffs[i]);
    text_list_free(&report->warnings);
    text_list_free(&report->findings);
    free(report->curves);
    free(report->curve_group);
    free(report->items);
    free(report->tradeoffs);
}
const char *percentile_text(double percentile) {
    return percentile < 0 ? "mean" : percentile < 60 ? "P50" : percentile < 97 ? "P95" : "P99";
}
const char *report_full_name(const struct results *results, const struct result_file *file, char out[160]) {
    char name[80];
    setting_text(file, name);
    if (results->group_count > 1) snprintf(out, 160, "%.70s %s", file->task, name); else snprintf(out, 160, "%s", name);
    return out;
}
int stage_is_known(const struct report *report, int stage) {
    for (size_t i = 0; i < report->results->count; i++) if (isfinite(report->items[i].stages[stage].mean)) return 1;
    return 0;
}
const int PART_STAGES[] = {VP_STAGE_PREFILL, VP_STAGE_DECODE};

int stage_has_parts(const struct stage_cost *cost) {
    for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(cost->parts[part])) return 1;
    return 0;
}

int is_listed(const uint32_t *items, size_t count, size_t value) {
    for (size_t i = 0; i < count; i++) if (items[i] == value) return 1;
    return 0;
}
void effect_name(const struct tradeoff *tradeoff, const struct results *results, const vp_effect *effect,
                 char out[160]) {
    char level[48], second_level[48];
    if (effect->kind == VP_EFFECT_MEAN) { snprintf(out, 160, "mean"); return; }
    report_level_text(tradeoff, results, tradeoff->knob_of[effect->knob_a], effect->level_a, level);
    if (effect->kind != VP_EFFECT_PAIR) {
        snprintf(out, 160, "%s %s", KNOB_NAMES[tradeoff->knob_of[effect->knob_a]], level);
        return;
    }
    report_level_text(tradeoff, results, tradeoff->knob_of[effect->knob_b], effect->level_b, second_level);
    snprintf(out, 160, "%s %s x %s %s", KNOB_NAMES[tradeoff->knob_of[effect->knob_a]], level,
             KNOB_NAMES[tradeoff->knob_of[effect->knob_b]], second_level);
}
void put_setting_of(vp_json_writer *writer, const struct result_file *file) {
    put_text(writer, "dataset_name", file->task);
    put_text(writer, "tier", file->tier);
    vp_json_key(writer, "target_vision_tokens");
    if (file->target_tokens >= 0) vp_json_int(writer, file->target_tokens); else vp_json_null(writer);
    put_int(writer, "top_k", file->top_k);
    put_int(writer, "num_active_blocks", file->block_count);
}
static int axis_of(const char *name) {
    return !strcmp(name, "vision")    ? METRIC_VISION
           : !strcmp(name, "prefill") ? METRIC_PREFILL
           : !strcmp(name, "decode")  ? METRIC_DECODE
           : !strcmp(name, "ttft")    ? METRIC_TTFT
                                      : METRIC_TOTAL;
}
struct report_settings report_settings_of(const struct options *options) {
    struct report_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.axis = axis_of(text_of(options, "latency"));
    settings.percentile = !strcmp(text_of(options, "percentile"), "mean")
                              ? -1
                              : strtod(text_of(options, "percentile"), NULL);
    settings.resamples = (size_t)number_of(options, "resamples");
    settings.seed = (uint32_t)number_of(options, "seed");
    settings.peak_tflops = settings.peak_gbs = (double)NAN;
    settings.budget = HUGE_VAL;
    settings.min_accuracy = -HUGE_VAL;
    return settings;
}
