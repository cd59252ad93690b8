/* report.c: computes where the time of a request goes (E1), and what accuracy it buys (E2).
 * Computed once into a `report`; text, Markdown, CSV, JSON and HTML only print it. Intervals are at 95 %. */
#include "report/report.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const KNOB_NAMES[KNOBS] = {"image size", "top_k", "blocks"};

const char *const KNOB_KEYS[KNOBS] = {"image_size", "top_k", "num_active_blocks"};

const char *const BOUND_NAMES[] = {"-", "compute", "memory", "launch"};

/* The finite values of a column into out; their number. */
static size_t column_values(const result_file *f, int which, double *out) {
    size_t count = 0;
    for (size_t i = 0; f->columns[which] && i < f->count; i++) if (isfinite(f->columns[which][i])) out[count++] = f->columns[which][i];
    return count;
}
/* Mean with samples that lack it as 0: parts of a mean total that add up. */
static double column_part(const result_file *f, int which, double *scratch) {
    size_t count = column_values(f, which, scratch);
    return count ? vp_statistics_sum(scratch, count) / (double)f->count : (double)NAN;
}
static double run_spread_of(const result_file *f, double *scratch) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t runs = f->run_at[i + 1] - f->run_at[i];
        if (runs < 2) continue;
        scratch[count++] = vp_statistics_std(f->run_total + f->run_at[i], runs) / vp_statistics_mean(f->run_total + f->run_at[i], runs)
                         * sqrt((double)runs / (double)(runs - 1));
    }
    return median_of(scratch, count).value;
}
static void decompose_stage(decomposition *d, int stage, double total, double *scratch) {
    const result_file *f = d->file;
    stage_cost *s = &d->stages[stage];
    double wall = column_part(f, stage_column(stage, DETAIL_WALL), scratch);
    s->mean = column_part(f, stage_column(stage, 0), scratch);
    s->share = s->mean / total;
    s->p50 = median_of(scratch, column_values(f, stage_column(stage, 0), scratch));
    s->flops = column_part(f, stage_column(stage, DETAIL_FLOPS), scratch);
    s->bytes = column_part(f, stage_column(stage, DETAIL_BYTES), scratch);
    s->launches = column_part(f, stage_column(stage, DETAIL_LAUNCHES), scratch);
    s->tflops = s->mean > 0 ? s->flops / s->mean / 1e9 : (double)NAN;
    s->gbs = s->mean > 0 ? s->bytes / s->mean / 1e6 : (double)NAN;
    s->host_share = s->mean > 0 && !is_host_stage(stage) ? wall / s->mean : (double)NAN;
    s->idle_share = f->kernel_device_ms[stage] > 0 ? 1 - f->kernel_ms[stage] / f->kernel_device_ms[stage] : (double)NAN;
    for (int part = 0; part < VP_PART_COUNT; part++)
        s->parts[part] = f->part_ms[stage][part] > 0 && f->kernel_device_ms[stage] > 0 ? f->part_ms[stage][part] / f->kernel_device_ms[stage]
                                                                                       : (double)NAN;
}
static void decompose(decomposition *d, const result_file *f) {
    double *scratch = resize(NULL, f->count, sizeof *scratch), device = 0, kernels = 0;
    d->file = f;
    for (int m = 0; m < METRIC_STAGE; m++) {
        size_t count = d->counts[m] = column_values(f, m, scratch);
        d->mean[m] = vp_statistics_mean(scratch, count);
        d->p50[m] = median_of(scratch, count);
        d->p95[m] = vp_statistics_percentile(scratch, count, 95);
        d->p99[m] = vp_statistics_percentile(scratch, count, 99);
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        decompose_stage(d, s, d->mean[METRIC_TOTAL], scratch);
        if (!(f->kernel_device_ms[s] >= 0)) continue;
        device += f->kernel_device_ms[s];
        kernels += f->kernel_ms[s];
    }
    d->idle_share = device > 0 ? 1 - kernels / device : (double)NAN;
    d->unaccounted_share = d->mean[METRIC_UNACCOUNTED] / d->mean[METRIC_TOTAL];
    d->closure = 1 - d->unaccounted_share;
    d->run_spread = run_spread_of(f, scratch);
    free(scratch);
}
/* The roofs: as given, else the best that a stage of at least a hundredth of a request reaches. */
static void find_peaks(report *p) {
    const double *given_tflops = &p->settings.peak_tflops, *given_gbs = &p->settings.peak_gbs;
    for (size_t i = 0; i < p->r->count; i++) {
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!(c->share >= 0.01)) continue;
            if (c->tflops > p->peak_tflops) p->peak_tflops = c->tflops;
            if (c->gbs > p->peak_gbs) p->peak_gbs = c->gbs;
        }
    }
    if (isfinite(*given_tflops)) p->peak_tflops = *given_tflops;
    if (isfinite(*given_gbs)) p->peak_gbs = *given_gbs;
    p->peaks_are_given = isfinite(*given_tflops) && isfinite(*given_gbs);
}
/* A third of a roof is needed to call it the limit; below that starting work, waiting and small shapes take the time. */
static bound bound_of(const report *p, const stage_cost *c) {
    double compute = c->tflops / p->peak_tflops, memory = c->gbs / p->peak_gbs;
    if (!(c->mean > 0) || !(c->flops > 0 || c->bytes > 0) || !(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return BOUND_NONE;
    if (c->idle_share > 0.5) return BOUND_LAUNCH;
    if (!(compute >= 1.0 / 3 || memory >= 1.0 / 3)) return BOUND_LAUNCH;
    return compute >= memory ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* ---- curves */
typedef struct xy { double x, y; } xy;
typedef struct xy_list { xy *items; size_t count, capacity; } xy_list;
static void xy_add(xy_list *l, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 256;
        l->items = resize(l->items, l->capacity, sizeof *l->items);
    }
    l->items[l->count].x = x;
    l->items[l->count++].y = y;
}
static int by_x(const void *a, const void *b) {
    const xy *p = (const xy *)a, *q = (const xy *)b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->y < q->y ? -1 : p->y > q->y;
}
static void fit_curve(curve *c, const xy_list *l) {
    double *x = resize(NULL, l->count, 2 * sizeof *x), *y = resize(NULL, l->count, 2 * sizeof *y), *fitted = y + l->count;
    vp_linear_options o = vp_linear_options_default();
    vp_linear_errors e;
    vp_linear fit;
    c->slope = estimate_none();
    c->intercept = c->r2 = (double)NAN;
    c->count = l->count;
    for (size_t i = 0; i < l->count; i++) { x[2 * i] = 1; x[2 * i + 1] = l->items[i].x; y[i] = l->items[i].y; }
    if (l->count > 2 && vp_linear_compute(x, y, l->count, 2, &o, &fit, NULL) == VP_OK) {
        c->slope.value = fit.coefficient[1];
        c->intercept = fit.coefficient[0];
        if (vp_linear_coefficient(&fit, 1, 0.95, &c->slope.low, &c->slope.high) != VP_OK) c->slope.low = c->slope.high = (double)NAN;
        for (size_t i = 0; i < l->count; i++) fitted[i] = vp_linear_value(&fit, x + 2 * i);
        if (vp_linear_errors_compute(y, fitted, l->count, x, &e) == VP_OK) c->r2 = e.r2;
    }
    free(x);
    free(y);
}
/* Medians over each x, or over tenths of the points where there are more than a dozen of them. */
static void bin_curve(curve *c, xy_list *l) {
    enum { BINS = 12 };
    double *values = resize(NULL, l->count, sizeof *values);
    size_t distinct = 0, start = 0;
    qsort(l->items, l->count, sizeof *l->items, by_x);
    for (size_t i = 0; i < l->count; i++) distinct += !i || l->items[i].x > l->items[i - 1].x;
    c->bins = zeroed(BINS, sizeof *c->bins);
    for (size_t i = 1; i <= l->count; i++) {
        int is_end = i == l->count || (distinct <= BINS ? l->items[i].x > l->items[i - 1].x : i >= (c->bin_count + 1) * l->count / BINS);
        curve_bin *b = &c->bins[c->bin_count];
        if (!is_end) continue;
        for (size_t k = start; k < i; k++) values[k - start] = l->items[k].y;
        b->x = l->items[start + (i - start) / 2].x;
        b->y = median_of(values, i - start);
        b->count = i - start;
        c->bin_count++;
        start = i;
    }
    free(values);
}
static void add_curve(report *p, size_t group, const curve *kind, const char *label, xy_list *l) {
    curve *c;
    if (l->count) {
        p->curves = resize(p->curves, p->curve_count + 1, sizeof *p->curves);
        p->curve_group = resize(p->curve_group, p->curve_count + 1, sizeof *p->curve_group);
        p->curve_group[p->curve_count] = group;
        c = &p->curves[p->curve_count++];
        *c = *kind;
        snprintf(c->label, sizeof c->label, "%s", label);
        fit_curve(c, l);
        bin_curve(c, l);
    }
    free(l->items);
    memset(l, 0, sizeof *l);
}
/* The language model's knobs do nothing to vision: a sample counts once a size, with its mean over the configurations of that size. */
static void vision_curve(report *p, size_t group) {
    static const curve kind = {"vision", "views", "T_vision_total", "ms/view", "", NULL, 0, {0, 0, 0}, 0, 0, 0};
    const result_group *g = &p->r->groups[group];
    xy_list points = {NULL, 0, 0};
    size_t end = g->first + g->count;
    for (size_t first = g->first, next; first < end; first = next) {
        const result_file *f = &p->r->files[first];
        for (next = first + 1; next < end && same_size(f, &p->r->files[next]);) next++;
        for (size_t i = 0; i < f->count; i++) {
            double sum = 0, count = 0;
            for (size_t k = first; k < next; k++) {
                const result_file *other = &p->r->files[k];
                size_t row = i < other->count && other->ids[i] == f->ids[i] ? i : result_row(other, f->ids[i]);
                double ms = row < other->count ? result_at(other, METRIC_VISION, row) : (double)NAN;
                if (isfinite(ms)) { sum += ms; count++; }
            }
            xy_add(&points, result_at(f, COLUMN_VIEWS, i), sum / count);
        }
    }
    add_curve(p, group, &kind, "all", &points);
}
static void language_curves(report *p, size_t group) {
    static const curve kinds[] = {
        {"prefill", "total_sequence_length", "T_LLM_prefill", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode", "decode steps", "T_LLM_decode", "ms/step", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode context", "total_sequence_length", "T_decode_per_token", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0}};
    static const int xs[] = {COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS, COLUMN_SEQUENCE}, ys[] = {METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const result_group *g = &p->r->groups[group];
    unsigned char *done = zeroed(g->count, 1);
    for (int which = 0; which < 3; which++) {
        memset(done, 0, g->count);
        for (size_t a = 0; a < g->count; a++) {
            const result_file *f = &p->r->files[g->first + a];
            xy_list points = {NULL, 0, 0};
            char label[48];
            if (done[a]) continue;
            snprintf(label, sizeof label, "k%lld b%lld", (long long)f->top_k, (long long)f->block_count);
            for (size_t b = a; b < g->count; b++) {
                const result_file *other = &p->r->files[g->first + b];
                if (other->top_k != f->top_k || other->block_count != f->block_count) continue;
                done[b] = 1;
                for (size_t i = 0; i < other->count; i++)
                    if (which != 1) xy_add(&points, result_at(other, xs[which], i), result_at(other, ys[which], i));
                    else if (result_at(other, COLUMN_OUTPUT_TOKENS, i) > 1)
                        xy_add(&points, result_at(other, xs[which], i) - 1, result_at(other, ys[which], i));
            }
            add_curve(p, group, &kinds[which], label, &points);
        }
    }
    free(done);
}

/* ---- E2 */
static int compare_knob(const result_file *x, const result_file *y, int knob) {
    if (knob == KNOB_TOP_K) return x->top_k != y->top_k ? (x->top_k < y->top_k ? -1 : 1) : 0;
    if (knob == KNOB_BLOCKS) return x->block_count != y->block_count ? (x->block_count < y->block_count ? -1 : 1) : 0;
    if (size_rank(x) != size_rank(y)) return size_rank(x) < size_rank(y) ? -1 : 1;
    return strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
}
/* Values of a knob, ascending: a configuration of each; VP_KNOB_LEVEL_LIMIT + 1: too many. */
static int32_t find_levels(tradeoff *t, const results *r, int knob) {
    size_t *examples = t->level_example[knob];
    int32_t count = 0;
    for (size_t i = 0; i < t->config_count; i++) {
        const result_file *f = &r->files[t->group->paired[i]];
        int32_t at = 0;
        while (at < count && compare_knob(&r->files[t->group->paired[examples[at]]], f, knob) < 0) at++;
        if (at < count && !compare_knob(&r->files[t->group->paired[examples[at]]], f, knob)) continue;
        if (count == VP_KNOB_LEVEL_LIMIT) return count + 1;
        memmove(examples + at + 1, examples + at, (size_t)(count - at) * sizeof *examples);
        examples[at] = i;
        count++;
    }
    return count;
}
/* Levels of the knobs that vary; 0 when none does, or one has too many. */
static int find_knobs(tradeoff *t, const results *r) {
    for (int k = 0; k < KNOBS; k++) {
        int32_t count = find_levels(t, r, k);
        if (count > VP_KNOB_LEVEL_LIMIT) return 0;
        if (count < 2) continue;
        t->knobs.level_counts[t->knobs.knob_count] = count;
        t->knob_of[t->knobs.knob_count++] = k;
    }
    t->levels = zeroed(t->config_count * KNOBS, sizeof *t->levels);
    for (size_t i = 0; i < t->config_count; i++) {
        for (int32_t k = 0; k < t->knobs.knob_count; k++) {
            const size_t *examples = t->level_example[t->knob_of[k]];
            int32_t *level = &t->levels[i * (size_t)t->knobs.knob_count + (size_t)k];
            while (compare_knob(&r->files[t->group->paired[examples[*level]]], &r->files[t->group->paired[i]], t->knob_of[k])) ++*level;
        }
    }
    t->knobs.levels = t->levels;
    t->knobs.config_count = t->config_count;
    return t->knobs.knob_count > 0;
}
static void find_effects(tradeoff *t) {
    const double *values[2];
    values[0] = t->latency;
    values[1] = t->accuracy;
    for (t->order = t->knobs.knob_count > 1 ? 2 : 1; t->order > 0; t->order--) {
        size_t bytes = vp_effects_scratch_bytes(&t->knobs, t->order), terms = VP_KNOB_LIMIT * VP_KNOB_LIMIT;
        vp_result done = VP_OK;
        void *scratch;
        t->effect_count = vp_effect_count(&t->knobs, t->order);
        if (!t->effect_count) continue;
        scratch = resize(NULL, bytes, 1);
        for (int v = 0; v < 2 && done == VP_OK && values[v]; v++) {
            t->effects[v] = zeroed(t->effect_count, sizeof *t->effects[v]);
            t->shares[v] = zeroed(terms, sizeof(double));
            done = vp_effects(&t->knobs, values[v], t->sample_count, t->order, 0.95, scratch, bytes, t->effects[v], t->shares[v], NULL);
        }
        free(scratch);
        if (done == VP_OK) return;
        for (int v = 0; v < 2; v++) {
            free(t->effects[v]);
            free(t->shares[v]);
            t->effects[v] = NULL;
            t->shares[v] = NULL;
        }
    }
    t->order = 0; /* holes of the grid, or a single sample: nothing can be told apart */
    t->effect_count = 0;
}
static void find_knob_fronts(tradeoff *t) {
    int32_t *keys = resize(NULL, t->config_count, sizeof *keys);
    for (int32_t k = 0; k < t->knobs.knob_count; k++) {
        for (int32_t level = 0; level < t->knobs.level_counts[k]; level++) {
            knob_front *f;
            t->fronts = resize(t->fronts, t->knob_front_count + 1, sizeof *t->fronts);
            f = &t->fronts[t->knob_front_count++];
            f->knob = t->knob_of[k];
            f->level = level;
            f->front = zeroed(t->config_count, sizeof *f->front);
            f->count = 0;
            for (size_t i = 0; i < t->config_count; i++) keys[i] = t->levels[i * (size_t)t->knobs.knob_count + (size_t)k];
            if (vp_pareto_front_fixed(t->at_latency, t->at_accuracy, keys, level, t->config_count, f->front, &f->count) != VP_OK) f->count = 0;
            f->area = vp_pareto_area(t->at_latency, t->at_accuracy, t->config_count, f->front, f->count, t->area_latency, t->area_accuracy);
        }
    }
    free(keys);
}
static void find_gains(tradeoff *t) {
    for (size_t i = 0; i < t->config_count && t->accuracy; i++) {
        for (int32_t k = 0; k < t->knobs.knob_count; k++) {
            knob_gain g;
            g.from = i;
            g.knob = t->knob_of[k];
            if (vp_knob_next(&t->knobs, i, k, &g.to) != VP_OK) continue;
            if (vp_gain_compute(t->latency + i * t->sample_count, t->accuracy + i * t->sample_count, t->latency + g.to * t->sample_count,
                                t->accuracy + g.to * t->sample_count, t->sample_count, 0.95, &g.gain) != VP_OK) continue;
            t->gains = resize(t->gains, t->gain_count + 1, sizeof *t->gains);
            t->gains[t->gain_count++] = g;
        }
    }
}
static void find_front(tradeoff *t, const report_settings *s) {
    vp_epsilon e;
    double *sorted = resize(NULL, t->config_count, sizeof *sorted);
    vp_statistics middle;
    t->front = zeroed(t->config_count, sizeof *t->front);
    t->kept = zeroed(t->config_count, sizeof *t->kept);
    t->at_latency = resize(NULL, t->config_count, sizeof(double));
    t->at_accuracy = resize(NULL, t->config_count, sizeof(double));
    t->area_latency = 0;
    t->area_accuracy = HUGE_VAL;
    for (size_t i = 0; i < t->config_count; i++) {
        t->at_latency[i] = t->points[i].latency;
        t->at_accuracy[i] = t->points[i].accuracy;
        if (t->at_latency[i] > t->area_latency) t->area_latency = t->at_latency[i];
        if (t->at_accuracy[i] < t->area_accuracy) t->area_accuracy = t->at_accuracy[i];
    }
    vp_statistics_compute(t->at_latency, t->config_count, sorted, &middle);
    free(sorted);
    e.latency = t->epsilon_latency = s->epsilon_share * middle.p50;
    e.accuracy = s->epsilon_accuracy;
    e.relative = 0;
    if (vp_pareto_front(t->at_latency, t->at_accuracy, t->config_count, VP_PARETO_FIRST, t->front, &t->front_count) != VP_OK) t->front_count = 0;
    if (vp_pareto_epsilon(t->at_latency, t->at_accuracy, t->config_count, t->front, t->front_count, e, t->kept, &t->kept_count) != VP_OK)
        t->kept_count = 0;
    t->area = vp_pareto_area(t->at_latency, t->at_accuracy, t->config_count, t->front, t->front_count, t->area_latency, t->area_accuracy);
}
size_t equal_points(const tradeoff *t, size_t config) {
    size_t count = 0;
    for (size_t i = 0; i < t->config_count; i++)
        count += !(t->at_latency[i] < t->at_latency[config] || t->at_latency[i] > t->at_latency[config])
              && !(t->at_accuracy[i] < t->at_accuracy[config] || t->at_accuracy[i] > t->at_accuracy[config]);
    return count;
}
static void bootstrap_points(tradeoff *t, const report_settings *s) {
    vp_bootstrap_options o = vp_bootstrap_options_default();
    size_t bytes = vp_bootstrap_scratch_bytes(t->config_count, t->sample_count, s->resamples);
    void *scratch;
    o.resamples = s->resamples;
    o.seed = s->seed;
    o.percentile = s->percentile;
    o.budget = s->budget;
    o.min_accuracy = s->min_accuracy;
    scratch = resize(NULL, bytes, 1);
    if (vp_bootstrap(t->latency, t->accuracy, t->config_count, t->sample_count, &o, scratch, bytes, t->points) != VP_OK)
        snprintf(t->reason, sizeof t->reason, "the values are too large to be drawn from");
    free(scratch);
}
/* The accuracy of a corpus metric belongs to a whole file: points without intervals. */
static void corpus_points(tradeoff *t, const results *r, const report_settings *s) {
    double *sorted = resize(NULL, t->sample_count, sizeof *sorted);
    for (size_t i = 0; i < t->config_count; i++) {
        vp_bootstrap_point *p = &t->points[i];
        vp_statistics stats;
        p->latency_low = p->latency_high = p->accuracy_low = p->accuracy_high = p->membership = p->within_budget = p->best = (double)NAN;
        p->accuracy = r->files[t->group->paired[i]].accuracy;
        vp_statistics_compute(t->latency + i * t->sample_count, t->sample_count, sorted, &stats);
        p->latency = s->percentile < 0 ? stats.mean : vp_statistics_percentile(sorted, t->sample_count, s->percentile);
        if (s->percentile >= 0) vp_statistics_percentile_interval(sorted, t->sample_count, s->percentile, 0.95, &p->latency_low, &p->latency_high);
        else vp_statistics_mean_interval(sorted, t->sample_count, 0.95, &p->latency_low, &p->latency_high);
    }
    free(sorted);
}
void tradeoff_make(tradeoff *t, const results *r, const result_group *g, const report_settings *s) {
    int columns[2], files_have = 1, rows_have = 1;
    columns[0] = s->axis;
    columns[1] = COLUMN_ACCURACY;
    t->group = g;
    t->config_count = g->paired_count;
    for (size_t i = 0; i < g->paired_count; i++) {
        files_have &= isfinite(r->files[g->paired[i]].accuracy) != 0;
        rows_have &= r->files[g->paired[i]].columns[COLUMN_ACCURACY] != NULL;
    }
    t->is_corpus = files_have && !rows_have;
    t->sample_count = paired_ids(r, g, columns, t->is_corpus ? 1 : 2, &t->ids);
    if (!files_have && !rows_have) snprintf(t->reason, sizeof t->reason, "no accuracy: the data have no answers to compare with");
    else if (t->sample_count < 2)
        snprintf(t->reason, sizeof t->reason, "%zu samples have %s and an accuracy in all configurations: at least 2 are needed", t->sample_count,
                 METRIC_KEYS[s->axis]);
    if (t->reason[0]) return;
    t->latency = paired_column(r, g, s->axis, t->ids, t->sample_count);
    t->points = zeroed(t->config_count, sizeof *t->points);
    if (t->is_corpus) corpus_points(t, r, s);
    else {
        t->accuracy = paired_column(r, g, COLUMN_ACCURACY, t->ids, t->sample_count);
        bootstrap_points(t, s);
    }
    if (t->reason[0]) return;
    find_front(t, s);
    if (!find_knobs(t, r)) return;
    find_effects(t);
    find_knob_fronts(t);
    find_gains(t);
}
void tradeoff_free(tradeoff *t) {
    void *all[] = {t->ids, t->latency, t->accuracy, t->points, t->at_latency, t->at_accuracy, t->front, t->kept, t->levels, t->effects[0],
                   t->effects[1],
                   t->shares[0], t->shares[1], t->gains};
    for (size_t i = 0; i < t->knob_front_count; i++) free(t->fronts[i].front);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    free(t->fronts);
}
const char *report_level_text(const tradeoff *t, const results *r, int knob, int32_t level, char out[48]) {
    const result_file *f = &r->files[t->group->paired[t->level_example[knob][level]]];
    if (knob == KNOB_SIZE && f->tier) snprintf(out, 48, "%.40s", f->tier);
    else if (knob == KNOB_SIZE) snprintf(out, 48, "%lld tokens", (long long)f->target_tokens);
    else snprintf(out, 48, "%lld", (long long)(knob == KNOB_TOP_K ? f->top_k : f->block_count));
    return out;
}

/* ---- what a reader must know first */
static size_t differing_files(const results *r, size_t offset) { /* files whose text differs from the first's */
    size_t count = 0;
    for (size_t i = 1; i < r->count; i++) {
        const char *a = *(char *const *)(const void *)((const char *)&r->files[0] + offset);
        const char *b = *(char *const *)(const void *)((const char *)&r->files[i] + offset);
        count += strcmp(a ? a : "", b ? b : "") != 0;
    }
    return count;
}
static void warn_of_files(report *p) {
    static const struct { const char *name; size_t offset; } same[] = {{"device", offsetof(result_file, device)}, {"model", offsetof(result_file,
                                                                                          model)},
        {"weights", offsetof(result_file, weights)}, {"timing", offsetof(result_file, timing)}, {"version", offsetof(result_file, version)}};
    const results *r = p->r;
    int64_t failed = 0, missing = 0, throttled = 0, outliers = 0, runs = 0, synthetic = 0, foreign = 0, coarse = 0;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        failed += f->failed_count;
        missing += f->missing_count > 0 ? f->missing_count : 0;
        throttled += f->throttled_runs > 0 ? f->throttled_runs : 0;
        outliers += f->outlier_runs > 0 ? f->outlier_runs : 0;
        runs += f->run_at ? (int64_t)f->run_at[f->count] : 0;
        synthetic += f->is_synthetic;
        foreign += f->is_foreign;
        coarse += !f->columns[stage_column(VP_STAGE_PREFILL, 0)];
    }
    if (synthetic)
        text_list_add(&p->warnings, "synthetic weights in %lld of %zu files: latency is real, accuracy is not", (long long)synthetic, r->count);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (differing_files(r, same[i].offset))
            text_list_add(&p->warnings, "the files differ in their %s: what lies between them is not the knobs alone", same[i].name);
    if (failed) text_list_add(&p->warnings, "%lld points failed; they are in no number", (long long)failed);
    if (missing) text_list_add(&p->warnings, "%lld points are not measured yet; they are in no number", (long long)missing);
    if (throttled) text_list_add(&p->warnings, "%lld of %lld runs were measured while the device held its clocks down; they are kept",
                                 (long long)throttled, (long long)runs);
    if (outliers) text_list_add(&p->warnings, "%lld of %lld runs stand out by their total (modified z over 3.5); they are kept", (long long)outliers,
                                (long long)runs);
    if (foreign) text_list_add(&p->warnings, "%lld files are the experiments' own: no stages, no closure; ms a token is divided by N - 1 here",
                               (long long)foreign);
    else if (coarse) text_list_add(&p->warnings, "%lld files hold no stage times (--timing off)", (long long)coarse);
}
static void warn_of_samples(report *p) {
    size_t least = SIZE_MAX, p95 = 0, p99 = 0, open = 0;
    double worst = 1, spread = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const decomposition *d = &p->items[i];
        if (d->file->count < least) least = d->file->count;
        p95 += !vp_statistics_percentile_supported(d->counts[METRIC_TOTAL], 95);
        p99 += !vp_statistics_percentile_supported(d->counts[METRIC_TOTAL], 99);
        open += d->closure < 0.99;
        if (d->closure < worst) worst = d->closure;
        if (d->run_spread > spread) spread = d->run_spread;
    }
    if (least < 500) text_list_add(&p->warnings, "only %zu samples in the smallest file: 500 and more are advised for fronts", least);
    if (spread > 0.05)
        text_list_add(&p->warnings, "runs of one request spread by up to %.1f %% (standard deviation): the machine was not quiet", 100 * spread);
    if (p95)
        text_list_add(&p->warnings, "P95 comes from fewer than 60 samples in %zu of %zu configurations: it is close to the largest value", p95,
                      p->r->count);
    if (p99)
        text_list_add(&p->warnings, "P99 comes from fewer than 300 samples in %zu of %zu configurations: it is close to the largest value", p99,
                      p->r->count);
    if (open)
        text_list_add(&p->warnings, "the stages add up to less than 99 %% of T_total in %zu of %zu configurations (least: %.2f %%)", open,
                      p->r->count, 100 * worst);
}

/* ---- findings in words */
static const char *const SHARE_NAMES[] = {"vision (vit + connector)", "prefill (embed to sample)", "decode"};

static double main_share(const decomposition *d, int metric) {
    double share = 0;
    int first = metric == METRIC_VISION ? VP_STAGE_VIT : metric == METRIC_PREFILL ? VP_STAGE_EMBED : VP_STAGE_DECODE;
    int last = metric == METRIC_VISION ? VP_STAGE_CONNECTOR : metric == METRIC_PREFILL ? VP_STAGE_SAMPLE : VP_STAGE_DECODE;
    for (int s = first; s <= last; s++) if (isfinite(d->stages[s].share)) share += d->stages[s].share;
    return share > 0 ? share : d->mean[metric] / d->mean[METRIC_TOTAL]; /* the experiments' files know the sums alone */
}
static void find_dominant(report *p) {
    size_t wins[3] = {0, 0, 0};
    for (int m = METRIC_VISION; m <= METRIC_DECODE; m++) {
        for (size_t i = 0; i < p->r->count; i++) {
            double share = main_share(&p->items[i], m);
            int wins_all = share > 0;
            for (int k = METRIC_VISION; k <= METRIC_DECODE; k++) wins_all &= k == m || !(main_share(&p->items[i], k) >= share);
            wins[m] += (size_t)wins_all;
        }
    }
    for (int m = METRIC_VISION; m <= METRIC_DECODE; m++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (size_t i = 0; i < p->r->count; i++) {
            double share = main_share(&p->items[i], m);
            if (share < low) low = share;
            if (share > high) high = share;
        }
        if (high > 0)
            text_list_add(&p->findings, "%s takes %.1f to %.1f %% of a request; it is the largest part in %zu of %zu configurations", SHARE_NAMES[m],
                                    100 * low, 100 * high, wins[m], p->r->count);
    }
}
/* The configuration that differs from one at a knob's lowest level by standing at its highest; config_count: not measured. */
static size_t other_end(const tradeoff *t, size_t config, int32_t knob) {
    size_t width = (size_t)t->knobs.knob_count, i = 0;
    for (; i < t->config_count; i++) {
        int same = t->levels[i * width + (size_t)knob] == t->knobs.level_counts[knob] - 1;
        for (size_t k = 0; k < width; k++) same &= k == (size_t)knob || t->levels[i * width + k] == t->levels[config * width + k];
        if (same) break;
    }
    return i;
}
/* Sums of `values` [config_count, sample_count] over the configurations at a knob's two ends, all other knobs alike; returns the pairs found. */
static size_t sum_ends(const tradeoff *t, int32_t knob, const double *values, double *low, double *high) {
    size_t pairs = 0;
    memset(low, 0, t->sample_count * sizeof *low);
    memset(high, 0, t->sample_count * sizeof *high);
    for (size_t i = 0; i < t->config_count; i++) {
        size_t end = t->levels[i * (size_t)t->knobs.knob_count + (size_t)knob] ? t->config_count : other_end(t, i, knob);
        if (end == t->config_count) continue;
        pairs++;
        for (size_t n = 0; n < t->sample_count; n++) {
            low[n] += values[i * t->sample_count + n];
            high[n] += values[end * t->sample_count + n];
        }
    }
    return pairs;
}
/* What a knob does from its lowest to its highest value, all others alike; paired over the samples. No effect where the interval holds 0. */
static void find_changes(report *p, const tradeoff *t) {
    double *low = resize(NULL, t->sample_count, 2 * sizeof *low), *high = low + t->sample_count;
    const char *task = p->r->group_count > 1 ? p->r->files[t->group->first].task : "";
    for (int32_t k = 0; k < t->knobs.knob_count; k++) {
        char first[48], last[48], knob[400];
        vp_mean_interval change;
        size_t pairs = sum_ends(t, k, t->latency, low, high);
        double base = vp_statistics_mean(low, t->sample_count) / 100, points;
        if (!pairs || !(base > 0) || vp_paired_t(low, high, t->sample_count, 0.95, &change) != VP_OK) continue;
        snprintf(knob, sizeof knob, "%.240s%s%s from %s to %s", task, *task ? ": " : "", KNOB_NAMES[t->knob_of[k]],
                 report_level_text(t, p->r, t->knob_of[k], 0, first), report_level_text(t, p->r, t->knob_of[k], t->knobs.level_counts[k] - 1, last));
        text_list_add(&p->findings, "%s changes mean %s by %+.1f %% [%+.1f, %+.1f]%s", knob, METRIC_KEYS[p->settings.axis], change.mean / base,
                      change.low / base, change.high / base, change.low / base > -3 && change.high / base < 3 ? ": flat, it buys no time" : "");
        if (!t->accuracy) continue;
        sum_ends(t, k, t->accuracy, low, high);
        points = 100.0 / (double)pairs;
        if (vp_paired_t(low, high, t->sample_count, 0.95, &change) != VP_OK) continue;
        if (change.low <= 0 && change.high >= 0)
            text_list_add(&p->findings, "%s shows no effect on accuracy: the interval of %+.2f points, [%+.2f, %+.2f], holds 0", knob,
                          points * change.mean, points * change.low, points * change.high);
        else
            text_list_add(&p->findings, "%s changes accuracy by %+.2f points [%+.2f, %+.2f]", knob, points * change.mean, points * change.low,
                          points * change.high);
    }
    free(low);
}
static void find_decode(report *p) {
    double low = HUGE_VAL, high = -HUGE_VAL, least = HUGE_VAL, most = -HUGE_VAL;
    size_t count = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const stage_cost *c = &p->items[i].stages[VP_STAGE_DECODE];
        double step = p->items[i].mean[METRIC_PER_TOKEN], floor_ms = c->bytes / c->mean * step / p->peak_gbs / 1e6;
        if (!(floor_ms > 0) || !(step > 0)) continue;
        count++;
        if (step < low) low = step;
        if (step > high) high = step;
        if (floor_ms / step < least) least = floor_ms / step;
        if (floor_ms / step > most) most = floor_ms / step;
    }
    if (count)
        text_list_add(&p->findings, "a decode step takes %.3g to %.3g ms; its bytes at %.4g GB/s would take %.0f to %.0f %% of that", low, high,
                      p->peak_gbs,
                             100 * least, 100 * most);
}
static void find_idle(report *p) {
    double least = HUGE_VAL, most = -HUGE_VAL, host = 0;
    size_t known = 0, bound_count = 0, sent = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const decomposition *d = &p->items[i];
        if (d->file->device && !strncmp(d->file->device, "cuda", 4) && d->stages[VP_STAGE_DECODE].host_share > 0) {
            sent++;
            if (d->stages[VP_STAGE_DECODE].host_share > host) host = d->stages[VP_STAGE_DECODE].host_share;
        }
        if (!isfinite(d->idle_share)) continue;
        known++;
        bound_count += d->idle_share > 0.3;
        if (d->idle_share < least) least = d->idle_share;
        if (d->idle_share > most) most = d->idle_share;
    }
    if (known) text_list_add(&p->findings, "the device is idle %.1f to %.1f %% of a request%s", 100 * least, 100 * most,
                             bound_count ? ": bound by the host, faster kernels would not help much" : ": not bound by the host");
    else text_list_add(&p->findings, "how long the device is idle is not known: sweep with --kernel_pass tells");
    if (sent && host > 0.9)
        text_list_add(&p->findings, "sending the work of decode takes the host up to %.0f %% of its time on the device: bound by the host",
                      100 * host);
}

/* ---- all of it */
void report_make(report *p, const results *r, const report_settings *s) {
    memset(p, 0, sizeof *p);
    p->r = r;
    p->settings = *s;
    p->items = zeroed(r->count, sizeof *p->items);
    p->tradeoffs = zeroed(r->group_count, sizeof *p->tradeoffs);
    for (size_t i = 0; i < r->count; i++) decompose(&p->items[i], &r->files[i]);
    find_peaks(p);
    for (size_t i = 0; i < r->count; i++)
        for (int k = 0; k < VP_STAGE_COUNT; k++) p->items[i].stages[k].limit = bound_of(p, &p->items[i].stages[k]);
    warn_of_files(p);
    warn_of_samples(p);
    for (size_t i = 0; i < r->notes.count; i++) text_list_add(&p->warnings, "%s", r->notes.items[i]);
    find_dominant(p);
    find_decode(p);
    find_idle(p);
    for (size_t i = 0; i < r->group_count; i++) {
        vision_curve(p, i);
        language_curves(p, i);
        tradeoff_make(&p->tradeoffs[i], r, &r->groups[i], s);
        if (!p->tradeoffs[i].reason[0]) find_changes(p, &p->tradeoffs[i]);
    }
}
void report_free(report *p) {
    for (size_t i = 0; i < p->curve_count; i++) free(p->curves[i].bins);
    for (size_t i = 0; p->tradeoffs && i < p->r->group_count; i++) tradeoff_free(&p->tradeoffs[i]);
    text_list_free(&p->warnings);
    text_list_free(&p->findings);
    free(p->curves);
    free(p->curve_group);
    free(p->items);
    free(p->tradeoffs);
}
const char *percentile_text(double percentile) {
    return percentile < 0 ? "mean" : percentile < 60 ? "P50" : percentile < 97 ? "P95" : "P99";
}
const char *report_full_name(const results *r, const result_file *f, char out[160]) {
    char name[80];
    setting_text(f, name);
    if (r->group_count > 1) snprintf(out, 160, "%.70s %s", f->task, name); else snprintf(out, 160, "%s", name);
    return out;
}
int stage_is_known(const report *p, int stage) {
    for (size_t i = 0; i < p->r->count; i++) if (isfinite(p->items[i].stages[stage].mean)) return 1;
    return 0;
}
const int PART_STAGES[] = {VP_STAGE_PREFILL, VP_STAGE_DECODE};

int stage_has_parts(const stage_cost *c) {
    for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(c->parts[part])) return 1;
    return 0;
}

int is_listed(const uint32_t *items, size_t count, size_t value) {
    for (size_t i = 0; i < count; i++) if (items[i] == value) return 1;
    return 0;
}
void effect_name(const tradeoff *t, const results *r, const vp_effect *e, char out[160]) {
    char a[48], b[48];
    if (e->kind == VP_EFFECT_MEAN) { snprintf(out, 160, "mean"); return; }
    report_level_text(t, r, t->knob_of[e->knob_a], e->level_a, a);
    if (e->kind != VP_EFFECT_PAIR) { snprintf(out, 160, "%s %s", KNOB_NAMES[t->knob_of[e->knob_a]], a); return; }
    report_level_text(t, r, t->knob_of[e->knob_b], e->level_b, b);
    snprintf(out, 160, "%s %s x %s %s", KNOB_NAMES[t->knob_of[e->knob_a]], a, KNOB_NAMES[t->knob_of[e->knob_b]], b);
}
void put_setting_of(vp_json_writer *w, const result_file *f) {
    put_text(w, "dataset_name", f->task);
    put_text(w, "tier", f->tier);
    vp_json_key(w, "target_vision_tokens");
    if (f->target_tokens >= 0) vp_json_int(w, f->target_tokens); else vp_json_null(w);
    put_int(w, "top_k", f->top_k);
    put_int(w, "num_active_blocks", f->block_count);
}
static int axis_of(const char *name) {
    return !strcmp(name, "vision") ? METRIC_VISION : !strcmp(name, "prefill") ? METRIC_PREFILL : !strcmp(name, "decode") ? METRIC_DECODE
         : !strcmp(name, "ttft") ? METRIC_TTFT : METRIC_TOTAL;
}
report_settings report_settings_of(const options *o) {
    report_settings s;
    memset(&s, 0, sizeof s);
    s.axis = axis_of(text_of(o, "latency"));
    s.percentile = !strcmp(text_of(o, "percentile"), "mean") ? -1 : strtod(text_of(o, "percentile"), NULL);
    s.resamples = (size_t)number_of(o, "resamples");
    s.seed = (uint32_t)number_of(o, "seed");
    s.peak_tflops = s.peak_gbs = (double)NAN;
    s.budget = HUGE_VAL;
    s.min_accuracy = -HUGE_VAL;
    return s;
}
