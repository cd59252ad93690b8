/* decomposition.c: the parts of a request's time (E1), and how they grow. */
#include "report/decomposition.h"

#include "report/series.h"
#include "vlmprof_analysis.h"
#include "vlmprof_latency.h"

#include <math.h>

const char *const BOUND_NAMES[] = {"-", "compute", "memory", "launch"};

const int PART_STAGES[PART_STAGE_COUNT] = {VP_STAGE_PREFILL, VP_STAGE_DECODE};

int stage_has_parts(const struct stage_cost *cost) {
    for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(cost->parts[part])) return 1;
    return 0;
}

/* ---- one file */
/* Copies the finite values of a column to out; returns their number. */
static size_t column_values(const struct result_file *file, int which, double *out) {
    size_t count = 0;
    for (size_t i = 0; file->columns[which] && i < file->count; i++)
        if (isfinite(file->columns[which][i])) out[count++] = file->columns[which][i];
    return count;
}
/* T_total of the samples with a TTFT, so that both times of a row cover the same samples. If none has a TTFT, T_total
 * of all samples. */
static size_t total_values(const struct result_file *file, double *out) {
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++)
        if (isfinite(result_at(file, METRIC_TTFT, i)) && isfinite(result_at(file, METRIC_TOTAL, i)))
            out[count++] = result_at(file, METRIC_TOTAL, i);
    return count ? count : column_values(file, METRIC_TOTAL, out);
}
double share_of_total(const struct decomposition *decomposition, int metric) {
    return decomposition->mean[metric] * (double)decomposition->counts[metric]
           / (decomposition->mean[METRIC_TOTAL] * (double)decomposition->counts[METRIC_TOTAL]);
}
/* The mean of a column, where samples without it count as 0, so that the parts' means add up to the mean total. */
static double column_part(const struct result_file *file, int which, double *scratch) {
    size_t count = column_values(file, which, scratch);
    return count ? vp_statistics_sum(scratch, count) / (double)file->count : (double)NAN;
}
double run_spread_of(const struct result_file *file) {
    double *scratch = resize(NULL, file->count, sizeof *scratch), spread;
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        size_t runs = file->run_at[i + 1] - file->run_at[i];
        if (runs < 2) continue;
        const double *values = file->run_ms[METRIC_TOTAL] + file->run_at[i];
        scratch[count++] = vp_statistics_std(values, runs) / vp_statistics_mean(values, runs)
                           * sqrt((double)runs / (double)(runs - 1));
    }
    spread = median_of(scratch, count).value;
    free(scratch);
    return spread;
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
    cost->idle_share =
        file->kernel_device_ms[stage] > 0 ? 1 - file->kernel_ms[stage] / file->kernel_device_ms[stage] : (double)NAN;
    for (int part = 0; part < VP_PART_COUNT; part++)
        cost->parts[part] = file->part_ms[stage][part] > 0 && file->kernel_device_ms[stage] > 0
                                ? file->part_ms[stage][part] / file->kernel_device_ms[stage]
                                : (double)NAN;
}
/* Under load, all statistics are over requests. */
static void decompose_requests(struct decomposition *decomposition, int metric) {
    double *values;
    const size_t count = requests_of(decomposition->file, metric, &values);
    if (count) {
        decomposition->counts[metric] = count;
        decomposition->mean[metric] = vp_statistics_mean(values, count);
        decomposition->p50[metric] = series_percentile(values, count, 50);
        decomposition->p95[metric] = series_percentile(values, count, 95).value;
        decomposition->p99[metric] = series_percentile(values, count, 99).value;
    }
    free(values);
}
void decompose(struct decomposition *decomposition, const struct result_file *file) {
    double *scratch = resize(NULL, file->count, sizeof *scratch), device = 0, kernels = 0;
    decomposition->file = file;
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        size_t count = decomposition->counts[metric] =
            metric == METRIC_TOTAL ? total_values(file, scratch) : column_values(file, metric, scratch);
        decomposition->mean[metric] = vp_statistics_mean(scratch, count);
        decomposition->p50[metric] = median_of(scratch, count);
        decomposition->p95[metric] = vp_statistics_percentile(scratch, count, 95);
        decomposition->p99[metric] = vp_statistics_percentile(scratch, count, 99);
        decompose_requests(decomposition, metric);
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
    decomposition->run_spread = run_spread_of(file);
    free(scratch);
}

/* ---- curves: a latency plotted against the quantity it should grow with */
struct curve_kind { const char *name, *x_name, *y_name, *unit; int x_column, y_column; };
static const struct curve_kind VISION_CURVE = {"vision", "views", "T_vision_total", "ms/view", COLUMN_VIEWS,
                                               METRIC_VISION};
enum { LANGUAGE_CURVE_COUNT = 4 };
static const struct curve_kind LANGUAGE_CURVES[LANGUAGE_CURVE_COUNT] = {
    {"image", "image tokens", "T_image_outside", "ms/token", COLUMN_IMAGE_TOKENS, COLUMN_IMAGE_OUTSIDE},
    {"prefill", "total_sequence_length", "T_LLM_prefill", "ms/token", COLUMN_SEQUENCE, METRIC_PREFILL},
    {"decode", "decode steps", "T_LLM_decode", "ms/step", COLUMN_OUTPUT_TOKENS, METRIC_DECODE},
    {"decode context", "total_sequence_length", "T_decode_per_token", "ms/token", COLUMN_SEQUENCE, METRIC_PER_TOKEN}};

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
    curve->intercept = estimate_none();
    curve->r2 = (double)NAN;
    curve->count = points->count;
    for (size_t i = 0; i < points->count; i++) {
        design[2 * i] = 1;
        design[2 * i + 1] = points->items[i].x;
        observed[i] = points->items[i].y;
    }
    if (points->count > 2 && vp_linear_compute(design, observed, points->count, 2, &settings, &fit, NULL) == VP_OK) {
        curve->slope.value = fit.coefficient[1];
        curve->intercept.value = fit.coefficient[0];
        if (vp_linear_coefficient(&fit, 1, 0.95, &curve->slope.low, &curve->slope.high) != VP_OK
            || vp_linear_coefficient(&fit, 0, 0.95, &curve->intercept.low, &curve->intercept.high) != VP_OK)
            curve->slope.low = curve->slope.high = curve->intercept.low = curve->intercept.high = (double)NAN;
        for (size_t i = 0; i < points->count; i++) fitted[i] = vp_linear_value(&fit, design + 2 * i);
        if (vp_linear_errors_compute(observed, fitted, points->count, design, &errors) == VP_OK) curve->r2 = errors.r2;
    }
    FREE_ALL(design, observed);
}
/* The mean of the values, with Student's interval if there are enough for an interval of the median. */
static vp_estimate mean_of(const double *values, size_t count) {
    enum { INTERVAL_LEAST = 6 };
    vp_estimate estimate = estimate_none();
    vp_mean_interval interval;
    estimate.value = vp_statistics_mean(values, count);
    if (count < INTERVAL_LEAST || vp_paired_t(NULL, values, count, 0.95, &interval) != VP_OK) return estimate;
    estimate.low = interval.low;
    estimate.high = interval.high;
    return estimate;
}
/* Medians and means for each x, or for about twelve groups of the points if there are more x. A group has all points of
 * its x. */
static void bin_curve(struct curve *curve, struct xy_list *points) {
    enum { BINS = 12 };
    double *values = resize(NULL, points->count, sizeof *values);
    size_t distinct = 0, start = 0, twelfth = 0;
    qsort(points->items, points->count, sizeof *points->items, by_x);
    for (size_t i = 0; i < points->count; i++) distinct += !i || points->items[i].x > points->items[i - 1].x;
    curve->bins = zeroed(BINS, sizeof *curve->bins);
    for (size_t i = 1; i <= points->count; i++) {
        int is_end = i == points->count
                     || (points->items[i].x > points->items[i - 1].x
                         && (distinct <= BINS || i >= (twelfth + 1) * points->count / BINS));
        struct curve_bin *bin = &curve->bins[curve->bin_count];
        if (!is_end) continue;
        for (size_t k = start; k < i; k++) values[k - start] = points->items[k].y;
        bin->x = points->items[start + (i - start) / 2].x;
        for (size_t k = start; k < i; k++) bin->mean_x += points->items[k].x;
        bin->mean_x /= (double)(i - start);
        bin->mean = mean_of(values, i - start);
        bin->p50 = median_of(values, i - start);
        bin->count = i - start;
        curve->bin_count++;
        start = i;
        while ((twelfth + 1) * points->count / BINS <= start && twelfth < BINS) twelfth++;
    }
    free(values);
}
/* Adds the curve through some points, if there are any; frees the points. */
static void add_curve(struct curve_list *curves, size_t group, const struct curve_kind *kind, const char *label,
                      struct xy_list *points) {
    if (points->count) {
        struct curve *curve = ADDED(curves->items, curves->count);
        *curve = (struct curve){.name = kind->name, .x_name = kind->x_name, .y_name = kind->y_name,
                                .unit = kind->unit, .group = group};
        snprintf(curve->label, sizeof curve->label, "%s", label);
        fit_curve(curve, points);
        bin_curve(curve, points);
    }
    free(points->items);
}
/* A sample's mean vision time over the files first to next - 1; NaN if no file has it. */
static double mean_vision_ms(const struct results *results, size_t first, size_t next, size_t row) {
    const struct result_file *file = &results->files[first];
    double sum = 0, count = 0;
    for (size_t i = first; i < next; i++) {
        const struct result_file *other = &results->files[i];
        size_t at = row < other->count && other->ids[row] == file->ids[row] ? row : result_row(other, file->ids[row]);
        double ms = at < other->count ? result_at(other, VISION_CURVE.y_column, at) : (double)NAN;
        if (isfinite(ms)) { sum += ms; count++; }
    }
    return sum / count;
}
/* Returns 1 if two files have the same image size and own knobs, which may change the image. */
static int is_same_image(const struct result_file *left, const struct result_file *right) {
    int axis = KNOB_OWN;
    while (axis < KNOB_COUNT && !(knob_is_axis(axis) && compare_axis(left, right, axis))) axis++;
    return axis == KNOB_COUNT && is_same_size(left, right);
}
/* The knobs of the language model do not change vision. So a sample is one point per image size, with its mean over the
 * configurations of that size. */
static void vision_curve(struct curve_list *curves, const struct results *results, size_t group_index) {
    const struct result_group *group = &results->groups[group_index];
    struct xy_list points = {NULL, 0, 0};
    size_t end = group->first + group->count, sizes = 0, varies = 0;
    for (size_t first = group->first, next; first < end; first = next, sizes++) {
        const struct result_file *file = &results->files[first];
        for (next = first + 1; next < end && is_same_image(file, &results->files[next]);) next++;
        for (size_t row = 0; row < file->count; row++) {
            xy_add(&points, result_at(file, VISION_CURVE.x_column, row), mean_vision_ms(results, first, next, row));
            varies += points.count && fabs(points.items[points.count - 1].x - points.items->x) > 0;
        }
    }
    if (!varies && sizes > 1) points.count = 0; /* one number of views for all sizes explains nothing */
    add_curve(curves, group_index, &VISION_CURVE, "all", &points);
}
/* A sample of N output tokens takes N - 1 decode steps. A sample without a step gives no point. */
static void add_points(struct xy_list *points, const struct curve_kind *kind, const struct result_file *file) {
    for (size_t row = 0; row < file->count; row++) {
        double x = result_at(file, kind->x_column, row);
        if (kind->x_column == COLUMN_OUTPUT_TOKENS && !(--x > 0)) continue;
        xy_add(points, x, result_at(file, kind->y_column, row));
    }
}
/* Returns 1 if two files are of one curve: of the same language model, whatever their image size. A language model is a
 * combination of top_k, number of blocks and weights, or a server's knobs. An image's cost depends on its tokens,
 * whatever sets their number, so the request's knobs do not distinguish it. */
static int is_same_curve(const struct curve_kind *kind, const struct result_file *left,
                         const struct result_file *right) {
    const int last = kind->y_column == COLUMN_IMAGE_OUTSIDE ? KNOB_OWN : KNOB_COUNT;
    int differ = 0;
    for (int axis = 0; axis < last && !differ; axis++)
        differ = knob_is_axis(axis) && axis != KNOB_SIZE && compare_axis(left, right, axis);
    return !differ;
}
static void language_curves(struct curve_list *curves, const struct results *results, size_t group_index,
                            const struct curve_kind *kind) {
    const struct result_group *group = &results->groups[group_index];
    const struct result_file *files = &results->files[group->first];
    unsigned char *is_done = zeroed(group->count, 1);
    for (size_t first = 0; first < group->count; first++) {
        struct xy_list points = {NULL, 0, 0};
        const struct result_file *model = &files[first];
        char label[KNOB_TEXT_BYTES];
        size_t count = 0;
        if (is_done[first]) continue;
        for (size_t i = first; i < group->count; i++) {
            if (!is_same_curve(kind, &files[i], model)) continue;
            is_done[i] = 1;
            count++;
            add_points(&points, kind, &files[i]);
        }
        language_text(model, label);
        if (kind->y_column == COLUMN_IMAGE_OUTSIDE)
            snprintf(label, sizeof label, "%s",
                     count < group->count ? knob_text(&model->knobs, KNOB_ENDPOINT_MODEL) : "");
        add_curve(curves, group_index, kind, label[0] ? label : "all", &points);
    }
    free(is_done);
}
void curves_add(struct curve_list *curves, const struct results *results, size_t group) {
    vision_curve(curves, results, group);
    for (int which = 0; which < LANGUAGE_CURVE_COUNT; which++)
        language_curves(curves, results, group, &LANGUAGE_CURVES[which]);
}
void curves_free(struct curve_list *curves) {
    for (size_t i = 0; i < curves->count; i++) free(curves->items[i].bins);
    free(curves->items);
}
