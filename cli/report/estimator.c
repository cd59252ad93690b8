/* estimator.c: the latency model (E3): fits it, tests it on configurations that it never saw, writes and reads it. */
#include "report/estimator.h"

#include "base/console.h"
#include "base/json.h"
#include "base/files.h"
#include "base/table.h"
#include "report/tradeoff.h"
#include "vlmprof_file.h"

#include <math.h>

#define MAPE_LARGE 0.5       /* a mean error above this causes a warning */
#define BIAS_MATTERS 0.02    /* a bias above this share of the mean measured time causes a warning */
#define BASELINE_BETTER 0.95 /* a baseline with an RMSE below this share of the model's causes a warning */

void estimator_predict_rows(const vp_latency_model *fits, const struct measurements *measurements, double *predicted) {
    for (size_t i = 0; i < measurements->count; i++) {
        vp_latency_prediction made;
        int good = vp_latency_predict(fits, &measurements->requests[i], &made) == VP_OK;
        for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++)
            predicted[(size_t)stage * measurements->count + i] =
                good && isfinite(measurements->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)stage]) ? made.stage[stage]
                                                                                                     : (double)NAN;
    }
}
/* Predicts each row's stages with models that were fitted without the row's group (its configuration or image size, by
 * SPLIT_*). */
static void predict_left_out(vp_latency_features kind, const struct measurements *measurements, int split,
                             double *predicted) {
    const uint32_t *groups = split == SPLIT_CONFIG ? measurements->configs : measurements->sizes;
    size_t bytes = vp_latency_leave_out_scratch_bytes(measurements->config_count);
    double *values = resize(NULL, measurements->count, sizeof *values);
    void *scratch = resize(NULL, bytes, 1);
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        double *out = predicted + (size_t)stage * measurements->count;
        for (size_t i = 0; i < measurements->count; i++)
            values[i] = measurements->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)stage];
        if ((split == SPLIT_CONFIG ? measurements->config_count : measurements->size_count) > 1
            && vp_latency_leave_out(kind, (vp_latency_stage)stage, measurements->requests, values, groups,
                                    measurements->count, measurements->config_count, scratch, bytes, out, NULL)
                   == VP_OK)
            continue;
        /* only one group, or too few rows without it */
        for (size_t i = 0; i < measurements->count; i++) out[i] = (double)NAN;
    }
    FREE_ALL(scratch, values);
}
void add_totals(const struct measurements *measurements, double *predicted) {
    for (size_t i = 0; i < measurements->count; i++) {
        double sum = 0;
        for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++)
            if (stage_is_run(stage, &measurements->requests[i]))
                sum += predicted[(size_t)stage * measurements->count + i];
        predicted[ESTIMATE_TOTAL * measurements->count + i] = sum;
    }
}
double measured_part(const struct measurements *measurements, int part, size_t row) {
    return part == ESTIMATE_TOTAL ? measurements->total[row]
                                  : measurements->measured[row * VP_LATENCY_STAGE_COUNT + (size_t)part];
}
/* ---- ranges */
static void ranges_find(const struct measurements *measurements, struct number_range *ranges) {
    const size_t count = measurements->count;
    double *values = resize(NULL, count, sizeof *values);
    for (int which = 0; which < ESTIMATE_KNOB_COUNT; which++) {
        for (size_t i = 0; i < count; i++) values[i] = knob_at(&measurements->requests[i], which);
        vp_sort_double(values, count);
        ranges[which] = (struct number_range){values[0], values[(count - 1) / 2], values[count - 1]};
    }
    free(values);
}
static void ranges_put(vp_json_writer *writer, int count, const struct number_range *ranges) {
    PUT(writer, KEY_OBJECT("ranges"));
    for (int which = 0; which < count; which++) {
        const struct number_range *range = &ranges[which];
        PUT(writer, KEY_OBJECT(ESTIMATE_KNOBS[which].name), KEY("least", (int64_t)range->least),
            KEY("median", (int64_t)range->median), KEY("most", (int64_t)range->most), END_OBJECT);
    }
    PUT(writer, END_OBJECT);
}
static double read_bound(struct model_reader *reader, uint32_t range, const char *key, double least) {
    return (double)model_count(reader, range, key, (int64_t)least, 1000000000);
}
static void ranges_read(struct model_reader *reader, uint32_t object, int count, struct number_range *ranges) {
    for (int which = 0; which < count && !reader->code; which++) {
        const char *name = ESTIMATE_KNOBS[which].name;
        struct number_range *range = &ranges[which];
        snprintf(reader->where, sizeof reader->where, "ranges");
        uint32_t node = model_member(reader, object, name, VP_JSON_OBJECT);
        snprintf(reader->where, sizeof reader->where, "ranges.%s", name);
        if (reader->code) return;
        range->least = read_bound(reader, node, "least", 0);
        range->median = read_bound(reader, node, "median", range->least);
        range->most = read_bound(reader, node, "most", range->median);
    }
}
/* ---- errors */
/* The mean of the rows and its interval, which comes from each group's contribution. NaN rows do not count. */
static vp_estimate group_mean(const double *rows, size_t count, const uint32_t *row_groups, size_t groups) {
    size_t filled = 0, known = 0;
    double *sums = zeroed(groups, sizeof *sums), sum = 0;
    unsigned char *has_rows = zeroed(groups, 1);
    vp_estimate mean = {(double)NAN, (double)NAN, (double)NAN};
    vp_mean_interval interval;
    for (size_t i = 0; i < count; i++)
        if (isfinite(rows[i])) { sum += rows[i]; known++; }
    if (known) mean.value = sum / (double)known;
    for (size_t i = 0; i < count; i++) {
        const size_t group = row_groups[i];
        if (!isfinite(rows[i])) continue;
        sums[group] += rows[i] - mean.value;
        has_rows[group] = 1;
    }
    for (size_t g = 0; g < groups; g++)
        if (has_rows[g]) sums[filled++] = sums[g];
    for (size_t g = 0; g < filled; g++) sums[g] = mean.value + sums[g] * (double)filled / (double)known;
    if (filled > 1 && vp_paired_t(NULL, sums, filled, ESTIMATE_LEVEL, &interval) == VP_OK) {
        mean.low = interval.low;
        mean.high = interval.high;
    }
    FREE_ALL(sums, has_rows);
    return mean;
}
/* The intervals of bias and MAPE. A MAPE is never below 0. */
static void find_intervals(const struct measurements *measurements, const double *predicted, int part,
                           struct part_errors *errors) {
    const double *of_part = predicted + (size_t)part * measurements->count;
    double *rows = resize(NULL, measurements->count, sizeof *rows);
    vp_estimate mean;
    for (size_t i = 0; i < measurements->count; i++) rows[i] = of_part[i] - measured_part(measurements, part, i);
    mean = group_mean(rows, measurements->count, measurements->configs, measurements->config_count);
    errors->bias_low = mean.low;
    errors->bias_high = mean.high;
    for (size_t i = 0; i < measurements->count; i++) rows[i] = fabs(rows[i] / measured_part(measurements, part, i));
    mean = group_mean(rows, measurements->count, measurements->configs, measurements->config_count);
    errors->mape_low = mean.low < 0 ? 0 : mean.low;
    errors->mape_high = mean.high;
    free(rows);
}
/* Collects the rows of a part that have both values. pairs is double [2, measurements->count]: measured, then
 * predicted. Returns the number of rows. */
static size_t pair_rows(const struct measurements *measurements, const double *predicted, int part, double *pairs) {
    size_t count = 0;
    for (size_t i = 0; i < measurements->count; i++) {
        double prediction = predicted[(size_t)part * measurements->count + i],
               measurement = measured_part(measurements, part, i);
        if (!isfinite(prediction) || !isfinite(measurement)) continue;
        pairs[count] = measurement;
        pairs[measurements->count + count++] = prediction;
    }
    return count;
}
void errors_of(const struct measurements *measurements, const double *predicted,
               struct part_errors errors[ESTIMATE_PARTS]) {
    const size_t count = measurements->count;
    double *pairs = resize(NULL, count, 3 * sizeof *pairs);
    memset(errors, 0, ESTIMATE_PARTS * sizeof *errors);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const size_t known = pair_rows(measurements, predicted, part, pairs);
        if (!known
            || vp_linear_errors_compute(pairs, pairs + count, known, pairs + 2 * count, &errors[part].of) != VP_OK)
            continue;
        errors[part].measured_mean = vp_statistics_mean(pairs, known);
        find_intervals(measurements, predicted, part, &errors[part]);
    }
    free(pairs);
}
static void put_part_errors(vp_json_writer *writer, const char *key, const struct part_errors *part) {
    const vp_linear_errors *errors = &part->of;
    if (!errors->count) PUT(writer, KEY_NULL(key));
    else
        PUT(writer, KEY_OBJECT(key), KEY("rows", (int64_t)errors->count), KEY("mae_ms", errors->mae),
            KEY("rmse_ms", errors->rmse), KEY("mape_percent", 100 * errors->mape),
            KEY_RANGE("mape_percent_interval", 100 * part->mape_low, 100 * part->mape_high), KEY("r2", errors->r2),
            KEY("p95_absolute_ms", errors->p95_absolute), KEY("max_absolute_ms", errors->max_absolute),
            KEY("bias_ms", errors->bias), KEY_RANGE("bias_ms_interval", part->bias_low, part->bias_high), END_OBJECT);
}
void parts_put(vp_json_writer *writer, const struct part_errors *errors) {
    PUT(writer, KEY_OBJECT(NULL));
    for (int part = 0; part < ESTIMATE_PARTS; part++) put_part_errors(writer, part_name(part), &errors[part]);
    PUT(writer, END_OBJECT);
}
static void errors_put(vp_json_writer *writer, const struct evaluation *evaluation) {
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        PUT(writer, KEY_OBJECT(ESTIMATE_KIND_KEYS[kind]));
        for (int split = 0; split < SPLIT_COUNT; split++) {
            vp_json_key(writer, SPLIT_KEYS[split]);
            parts_put(writer, evaluation->errors[kind][split]);
        }
        PUT(writer, END_OBJECT);
    }
}
void error_row(struct text_list *table, const char *first, const char *second, const struct part_errors *part) {
    const vp_linear_errors *errors = &part->of;
    text_list_add(table, "%s", first);
    if (second) text_list_add(table, "%s", second);
    text_list_add(table, "%s", errors->count ? number_short(errors->mae).text : "-");
    text_list_add(table, "%s", errors->count ? number_formatted("%.2f", 100 * errors->mape).text : "-");
    text_list_add(table, "%s", errors->count ? number_formatted("%.4f", errors->r2).text : "-");
    text_list_add(table, "%s", errors->count ? number_short(errors->p95_absolute).text : "-");
    text_list_add(table, "%s", errors->count ? number_formatted("%+.3f", errors->bias).text : "-");
    if (errors->count && isfinite(part->bias_low))
        text_list_add(table, "[%+.3f, %+.3f]", part->bias_low, part->bias_high);
    else text_list_add(table, "-");
    text_list_add(table, "%zu", errors->count);
}
static void limits_put(vp_json_writer *writer, const vp_latency_limits *limits) {
    PUT(writer, KEY_OBJECT("held_out_ratios"));
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        if (!limits[part].count) PUT(writer, KEY_NULL(part_name(part)));
        else
            PUT(writer, KEY_OBJECT(part_name(part)), KEY("rows", (int64_t)limits[part].count),
                KEY("low", limits[part].low), KEY("high", limits[part].high), END_OBJECT);
    }
    PUT(writer, END_OBJECT);
}
static void limits_read(struct model_reader *reader, uint32_t parts, vp_latency_limits *limits) {
    for (int part = 0; part < ESTIMATE_PARTS && !reader->code; part++) {
        const char *key = part_name(part);
        uint32_t object = vp_json_get(&reader->parsed.json, parts, key);
        snprintf(reader->where, sizeof reader->where, "held_out_ratios");
        if (node_is(&reader->parsed.json, object, VP_JSON_NULL)) continue;
        object = model_member(reader, parts, key, VP_JSON_OBJECT);
        if (reader->code) return;
        snprintf(reader->where, sizeof reader->where, "held_out_ratios.%.40s", key);
        limits[part].level = ESTIMATE_LEVEL;
        limits[part].count = (size_t)model_count(reader, object, "rows", 1, INT64_C(1) << 40);
        limits[part].low = model_number(reader, object, "low", 0, 1e30);
        limits[part].high = model_number(reader, object, "high", limits[part].low, 1e30);
    }
}

enum { ERRORS_LARGE, ERRORS_BIASED, ERRORS_USELESS, ERRORS_BEATEN, ERROR_KINDS = ERRORS_BEATEN + ESTIMATE_KINDS };
/* Parts that share a warning: their names, and the details for the last one. */
struct part_warning { char parts[160], words[160]; };
static void add_part(struct part_warning *warning, int part) {
    const size_t used = strlen(warning->parts);
    snprintf(warning->parts + used, sizeof warning->parts - used, "%s%s", used ? ", " : "", part_name(part));
}
static void find_part_warnings(const struct part_errors *const held_out[ESTIMATE_KINDS], int chosen, int part,
                               struct part_warning warnings[ERROR_KINDS]) {
    const struct part_errors *errors = &held_out[chosen][part];
    const double bias = errors->of.bias;
    if (!errors->of.count) return;
    if (errors->of.mape > MAPE_LARGE && part != VP_LATENCY_OTHER) {
        char *parts = warnings[ERRORS_LARGE].parts;
        add_part(&warnings[ERRORS_LARGE], part);
        snprintf(parts + strlen(parts), sizeof warnings->parts - strlen(parts), " (MAPE %.0f %%)",
                 100 * errors->of.mape);
    }
    if ((errors->bias_low > 0 || errors->bias_high < 0) && fabs(bias) > BIAS_MATTERS * errors->measured_mean) {
        add_part(&warnings[ERRORS_BIASED], part);
        snprintf(warnings[ERRORS_BIASED].words, sizeof warnings->words, "%s ms, %.1f %% of the mean",
                 number_change(1, bias, errors->bias_low, errors->bias_high).text,
                 100 * fabs(bias) / errors->measured_mean);
    }
    if (errors->of.r2 < 0 && errors->of.mape > 0.05 && chosen != VP_LATENCY_MEAN) {
        add_part(&warnings[ERRORS_USELESS], part);
        snprintf(warnings[ERRORS_USELESS].words, sizeof warnings->words, "R2 %.3f", errors->of.r2);
    }
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        struct part_warning *warning = &warnings[ERRORS_BEATEN + kind];
        const vp_linear_errors *other = &held_out[kind][part].of;
        if (kind == chosen || !other->count || !(other->rmse < BASELINE_BETTER * errors->of.rmse)) continue;
        add_part(warning, part);
        snprintf(warning->words, sizeof warning->words, "%s: RMSE %.3g ms, the model's %.3g ms", part_name(part),
                 other->rmse, errors->of.rmse);
    }
}
void warn_of_errors(const struct evaluation *evaluation, int chosen, struct text_list *warnings) {
    const struct part_errors *held_out[ESTIMATE_KINDS];
    struct part_warning found[ERROR_KINDS] = {0};
    int best = chosen; /* the best kind by total, whichever was chosen, so that advice is never circular */
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) held_out[kind] = evaluation->errors[kind][SPLIT_CONFIG];
    for (int part = 0; part < ESTIMATE_PARTS; part++) find_part_warnings(held_out, chosen, part, found);
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        const vp_linear_errors *other = &held_out[kind][ESTIMATE_TOTAL].of;
        if (other->count && other->rmse < held_out[best][ESTIMATE_TOTAL].of.rmse) best = kind;
    }
    if (found[ERRORS_LARGE].parts[0])
        text_list_add(warnings, "held-out configurations: predictions of %s " ERRORS_FAR_OFF,
                      found[ERRORS_LARGE].parts);
    if (found[ERRORS_BIASED].parts[0])
        text_list_add(warnings, "held-out configurations: predictions of %s are biased (%s): measure more "
                                "configurations and more runs per sample, on a quiet machine",
                      found[ERRORS_BIASED].parts, found[ERRORS_BIASED].words);
    if (found[ERRORS_USELESS].parts[0])
        text_list_add(warnings, "held-out configurations: the mean of all rows predicts %s better than the model (%s): "
                                "measure more runs per sample, on a quiet machine, and configurations that differ more",
                      found[ERRORS_USELESS].parts, found[ERRORS_USELESS].words);
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
        if (found[ERRORS_BEATEN + kind].parts[0])
            text_list_add(warnings, "held-out configurations: the baseline \"%s\" predicts %s better (%s): measure "
                                    "more configurations and runs%s%s",
                          ESTIMATE_KIND_KEYS[kind], found[ERRORS_BEATEN + kind].parts,
                          found[ERRORS_BEATEN + kind].words, kind == best ? "; until then, use fit --features " : "",
                          kind == best ? ESTIMATE_KIND_KEYS[kind] : "");
}
/* Picks rows for the plot, evenly spread from first to last. */
static void pick_points(const struct measurements *measurements, const double *predicted,
                        struct evaluation *evaluation) {
    double *pairs = resize(NULL, measurements->count, 2 * sizeof *pairs);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t count = pair_rows(measurements, predicted, part, pairs),
               shown = count < EVALUATION_POINTS ? count : (size_t)EVALUATION_POINTS;
        for (size_t i = 0; i < shown; i++) {
            size_t row = (size_t)((double)i * (double)count / (double)shown);
            evaluation->points[part][i][0] = pairs[row];
            evaluation->points[part][i][1] = pairs[measurements->count + row];
        }
        evaluation->point_counts[part] = shown;
    }
    free(pairs);
}
int estimator_evaluate(const struct measurements *measurements, vp_latency_features chosen,
                       struct evaluation *evaluation) {
    double *predicted = resize(NULL, measurements->count, ESTIMATE_PARTS * sizeof *predicted);
    vp_latency_model *fits = zeroed(1, sizeof *fits);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    memset(evaluation, 0, sizeof *evaluation);
    evaluation->noise =
        measurements->noise_count ? measurements->noise / (double)measurements->noise_count : (double)NAN;
    for (int kind = 0; kind < ESTIMATE_KINDS && result == VP_OK; kind++) {
        result = vp_latency_fit(features_of(measurements, kind), measurements->requests, measurements->measured,
                                measurements->count, fits, &error);
        for (int split = 0; split < SPLIT_COUNT && result == VP_OK; split++) {
            if (split == SPLIT_NONE) estimator_predict_rows(fits, measurements, predicted);
            else predict_left_out(features_of(measurements, kind), measurements, split, predicted);
            add_totals(measurements, predicted);
            errors_of(measurements, predicted, evaluation->errors[kind][split]);
            if (kind != (int)chosen || split == SPLIT_SIZE || !evaluation->errors[kind][split][ESTIMATE_TOTAL].of.count)
                continue;
            evaluation->point_split = split;
            pick_points(measurements, predicted, evaluation);
        }
    }
    FREE_ALL(fits, predicted);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), "fit", result, &error);
}
void estimator_free(struct estimator *estimator) {
    FREE_ALL(estimator->model_name, estimator->architecture, estimator->device, estimator->provenance,
             estimator->weights);
    text_list_free(&estimator->warnings);
    own_knobs_free(&estimator->own);
    free(estimator);
}
/* Correlation of the residuals of two stages, weighted as in the fit, over the rows that have both. */
static double residual_correlation(const struct measurements *measurements, const double *predicted, int first,
                                   int second, int is_relative) {
    double first_sum = 0, second_sum = 0, first_squares = 0, second_squares = 0, both = 0, count = 0, spread;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < measurements->count; i++) {
            double first_predicted = predicted[(size_t)first * measurements->count + i],
                   second_predicted = predicted[(size_t)second * measurements->count + i], first_miss, second_miss;
            if (!isfinite(first_predicted) || !isfinite(second_predicted)) continue;
            first_miss = measured_part(measurements, first, i);
            second_miss = measured_part(measurements, second, i);
            first_miss = is_relative ? (first_miss - first_predicted) / first_miss : first_miss - first_predicted;
            second_miss = is_relative ? (second_miss - second_predicted) / second_miss : second_miss - second_predicted;
            if (!turn) { first_sum += first_miss; second_sum += second_miss; count++; continue; }
            first_squares += (first_miss - first_sum / count) * (first_miss - first_sum / count);
            second_squares += (second_miss - second_sum / count) * (second_miss - second_sum / count);
            both += (first_miss - first_sum / count) * (second_miss - second_sum / count);
        }
    }
    spread = sqrt(first_squares) * sqrt(second_squares);
    return spread > 0 ? fmax(-1, fmin(1, both / spread)) : 0; /* above 1 only by rounding */
}
static void find_correlations(const struct measurements *measurements, struct estimator *estimator) {
    double *predicted = resize(NULL, measurements->count, VP_LATENCY_STAGE_COUNT * sizeof *predicted);
    estimator_predict_rows(&estimator->model, measurements, predicted);
    for (int first = 0; first < VP_LATENCY_STAGE_COUNT; first++)
        for (int second = 0; second < VP_LATENCY_STAGE_COUNT; second++)
            estimator->correlation[first][second] =
                first == second ? 1
                                : residual_correlation(measurements, predicted, first < second ? first : second,
                                                       first < second ? second : first,
                                                       estimator->model.features == VP_LATENCY_PHYSICAL
                                                           || estimator->model.features == VP_LATENCY_WEIGHTS);
    free(predicted);
}
static void find_limits(const struct measurements *measurements, struct estimator *estimator) {
    const size_t count = measurements->count;
    double *predicted = resize(NULL, count, ESTIMATE_PARTS * sizeof *predicted);
    double *pairs = resize(NULL, count, 3 * sizeof *pairs);
    predict_left_out(estimator->model.features, measurements, SPLIT_CONFIG, predicted);
    add_totals(measurements, predicted);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const size_t known = pair_rows(measurements, predicted, part, pairs);
        if (!known
            || vp_latency_limits_compute(pairs, pairs + count, known, ESTIMATE_LEVEL, pairs + 2 * count,
                                         &estimator->limits[part]) != VP_OK)
            memset(&estimator->limits[part], 0, sizeof estimator->limits[part]);
    }
    FREE_ALL(predicted, pairs);
}
static void warn_of_fit(struct estimator *estimator, const struct measurements *measurements) {
    const char *names[VP_LATENCY_COLUMNS_LIMIT];
    if (measurements->config_count < 2)
        text_list_add(&estimator->warnings, "a single configuration: the error on unseen configurations is unknown");
    if (measurements->size_count < 2)
        text_list_add(&estimator->warnings, "all images have the same number of views: others may have a larger error");
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        const vp_linear *fit = &estimator->model.fit[stage];
        struct text_buffer features = {NULL, 0, 0};
        if (!estimator->model.fitted[stage]) {
            text_list_add(&estimator->warnings, "%s: this stage was never measured and is not in the model",
                          part_name(stage));
            continue;
        }
        stage_columns(estimator, stage, names);
        for (int column = 0; column < fit->columns; column++) {
            if (fit->state[column] != VP_LINEAR_DROPPED) continue;
            if (features.bytes) text_add_string(&features, ", ");
            text_add_string(&features, names[column]);
        }
        if (features.bytes)
            text_list_add(&estimator->warnings,
                          "%s: %s dropped as collinear with earlier features; other terms absorb the cost",
                          part_name(stage), features.data);
        if (fit->degrees < 10)
            text_list_add(&estimator->warnings, "%s: only %.0f degrees of freedom", part_name(stage), fit->degrees);
        free(features.data);
    }
}
static void put_data_sets(vp_json_writer *writer, const struct results *results) {
    PUT(writer, KEY_ARRAY("data_sets"));
    for (size_t i = 0; i < results->group_count; i++) {
        const struct result_file *file = &results->files[results->groups[i].first];
        PUT(writer, KEY_OBJECT(NULL), KEY("dataset_name", file->dataset_name), KEY("data", file->data),
            KEY("data_hash", file->data_hash), KEY("configurations", (int64_t)results->groups[i].count), END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
/* The weights of all files, each once. */
static void put_weights(vp_json_writer *writer, const struct results *results) {
    PUT(writer, KEY_ARRAY("weights_list"));
    for (size_t i = 0; i < results->count; i++) {
        size_t first = 0;
        while (compare_axis(&results->files[first], &results->files[i], KNOB_WEIGHTS)) first++;
        if (first == i) vp_json_string(writer, knob_text(&results->files[i].knobs, KNOB_WEIGHTS));
    }
    vp_json_end_array(writer);
}
/* A description of the data that a model was fitted to, as JSON; malloc'ed. */
static char *provenance_of(const struct results *results, const struct measurements *measurements) {
    struct text_buffer out = {NULL, 0, 0};
    const struct result_file *file = &results->files[0];
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &out, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("device", measurements->device), KEY("host", file->host),
        KEY("model", measurements->model), KEY_BOOL("synthetic", file->synthetic),
        KEY("weights", measurements->weights_vary ? NULL : measurements->weights));
    if (measurements->weights_vary) put_weights(&writer, results);
    PUT(&writer, KEY("timing", file->timing), KEY("measured_by", file->version),
        KEY("measured_from", file->measured_from), KEY("measured_to", file->measured_to));
    put_data_sets(&writer, results);
    PUT(&writer, KEY("configurations", (int64_t)measurements->config_count),
        KEY("image_sizes", (int64_t)measurements->size_count), KEY("rows", (int64_t)measurements->count),
        KEY("rows_left_out", (int64_t)measurements->incomplete));
    if (measurements->pruned) PUT(&writer, KEY("rows_pruned", (int64_t)measurements->pruned));
    PUT(&writer, END_OBJECT);
    if (vp_json_finish(&writer) != VP_OK) abort(); /* running out of memory ends the program before */
    return out.data;
}
static void name_own_columns(struct estimator *estimator) {
    char name[KNOB_TEXT_BYTES];
    for (int *at = &estimator->own_columns; *at < VP_LATENCY_OWN; ++*at) {
        if (!own_column_name(&estimator->own, *at, name)) break;
        snprintf(estimator->own_names[*at], KNOB_TEXT_BYTES, "%s", name);
        snprintf(estimator->own_step_names[*at], KNOB_TEXT_BYTES + 8, "steps*%s", name);
    }
}
int estimator_make(const struct measurements *measurements, const struct results *results, vp_latency_features kind,
                   int64_t experts, struct estimator *estimator) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_latency_fit(features_of(measurements, (int)kind), measurements->requests,
                                      measurements->measured, measurements->count, &estimator->model, &error);
    if (result != VP_OK) return complain_result(exit_code_of(result), "fit", result, &error);
    name_own_columns(estimator);
    estimator->expert_count = experts;
    estimator->is_synthetic = results->files[0].synthetic;
    estimator->model_name = copy_text(measurements->model, strlen(measurements->model));
    const char *architecture = results->files[0].architecture;
    if (!architecture && results->files[0].is_foreign && !knob_tier(&results->files[0].knobs))
        architecture = measurements->model;
    if (architecture) estimator->architecture = copy_text(architecture, strlen(architecture));
    estimator->device = copy_text(measurements->device, strlen(measurements->device));
    estimator->provenance = provenance_of(results, measurements);
    ranges_find(measurements, estimator->ranges);
    find_correlations(measurements, estimator);
    find_limits(measurements, estimator);
    estimator->knows_pruning = measurements->pruned > 0;
    warn_of_fit(estimator, measurements);
    return 0;
}

/* ---- the file */
static void put_measured_predicted(vp_json_writer *writer, const struct evaluation *evaluation) {
    PUT(writer, KEY_OBJECT("measured_predicted_ms"), KEY("predictions", SPLIT_KEYS[evaluation->point_split]));
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        PUT(writer, KEY_ARRAY(part_name(part)));
        for (size_t i = 0; i < evaluation->point_counts[part]; i++) {
            const double *point = evaluation->points[part][i];
            PUT(writer, KEY_ARRAY(NULL), KEY(NULL, point[0]), KEY(NULL, point[1]), END_ARRAY);
        }
        PUT(writer, END_ARRAY);
    }
    PUT(writer, END_OBJECT);
}
static void put_evaluation(vp_json_writer *writer, const struct evaluation *evaluation) {
    PUT(writer, KEY_OBJECT("evaluation"));
    errors_put(writer, evaluation);
    PUT(writer, KEY("predicted", ESTIMATE_LOCATION), KEY("measured", ESTIMATE_LOCATION),
        KEY("run_noise_mape_percent", 100 * evaluation->noise));
    put_measured_predicted(writer, evaluation);
    PUT(writer, END_OBJECT);
}
int stage_columns(const struct estimator *estimator, int stage, const char *names[VP_LATENCY_COLUMNS_LIMIT]) {
    int count = 0;
    while (count < VP_LATENCY_COLUMNS_LIMIT
           && (names[count] = vp_latency_column_name(estimator->model.features, (vp_latency_stage)stage, count)))
        count++;
    for (int own = 0; own < estimator->own_columns && estimator->model.features != VP_LATENCY_MEAN; own++)
        names[count++] = stage == VP_LATENCY_DECODE && estimator->model.features != VP_LATENCY_SEED
                             ? estimator->own_step_names[own] : estimator->own_names[own];
    return count;
}
static void put_stage_model(vp_json_writer *writer, const struct estimator *estimator, int stage) {
    const vp_affine *line = &estimator->model.affine[stage];
    const char *names[VP_LATENCY_COLUMNS_LIMIT];
    if (!estimator->model.fitted[stage]) { vp_json_null(writer); return; }
    stage_columns(estimator, stage, names);
    PUT(writer, KEY_OBJECT(NULL));
    model_put_linear(writer, &estimator->model.fit[stage], names);
    PUT(writer, KEY_OBJECT("affine"), KEY("slope", line->slope), KEY("offset_ms", line->offset),
        KEY("condition", line->condition), KEY("measurements", (int64_t)line->count), END_OBJECT, END_OBJECT);
}
static void estimator_put(vp_json_writer *writer, const struct estimator *estimator,
                          const struct evaluation *evaluation) {
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", ESTIMATOR_SCHEMA), KEY("version", VLMPROF_VERSION),
        KEY_TEXTS("warnings", &estimator->warnings), KEY("features", ESTIMATE_KIND_KEYS[estimator->model.features]),
        KEY("model", estimator->model_name), KEY("architecture", estimator->architecture),
        KEY_BOOL("synthetic", estimator->is_synthetic), KEY("device", estimator->device),
        KEY("num_experts", estimator->expert_count), KEY("level", ESTIMATE_LEVEL),
        KEY("location", ESTIMATE_LOCATION));
    vp_json_key(writer, "provenance");
    vp_json_raw(writer, estimator->provenance, strlen(estimator->provenance));
    ranges_put(writer, knob_count_of(estimator->model.features), estimator->ranges);
    if (estimator->own.count) PUT(writer, KEY_ARRAY("own_knobs"));
    for (size_t i = 0; i < estimator->own.count; i++) {
        const struct own_knob *knob = &estimator->own.items[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("name", knob->name), KEY("least", knob->range.least),
            KEY("median", knob->range.median), KEY("most", knob->range.most), KEY_TEXTS("values", &knob->values),
            END_OBJECT);
    }
    if (estimator->own.count) vp_json_end_array(writer);
    PUT(writer, KEY_OBJECT("stages"));
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        vp_json_key(writer, part_name(stage));
        put_stage_model(writer, estimator, stage);
    }
    PUT(writer, END_OBJECT, KEY_ARRAY("residual_correlation"));
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        PUT(writer, KEY_ARRAY(NULL));
        for (int k = 0; k < VP_LATENCY_STAGE_COUNT; k++) vp_json_double(writer, estimator->correlation[stage][k]);
        PUT(writer, END_ARRAY);
    }
    PUT(writer, END_ARRAY);
    limits_put(writer, estimator->limits);
    if (evaluation) put_evaluation(writer, evaluation);
    PUT(writer, END_OBJECT);
}
/* ---- reading it back */
static vp_result estimator_text(const struct estimator *estimator, const struct evaluation *evaluation, int indent,
                                struct text_buffer *text) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, text, indent);
    estimator_put(&writer, estimator, evaluation);
    vp_result result = vp_json_finish(&writer);
    text_add_string(text, "\n");
    return result;
}
int estimator_write(const char *path, const struct estimator *estimator, const struct evaluation *evaluation) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : copy_text(".", 1);
    struct text_buffer text = {NULL, 0, 0};
    const vp_result result = estimator_text(estimator, evaluation, 1, &text);
    int code = result == VP_OK ? file_write_whole(folder, slash ? slash + 1 : path, text.data, text.bytes)
                               : complain(EXIT_WORK, "%s: %s", path, vp_result_text(result));
    FREE_ALL(text.data, folder);
    return code;
}
int estimator_print(const struct estimator *estimator, const struct evaluation *evaluation) {
    struct text_buffer text = {NULL, 0, 0};
    const vp_result result = estimator_text(estimator, evaluation, 2, &text);
    int code = result == VP_OK ? print_whole(&text) : complain(EXIT_WORK, "the model: %s", vp_result_text(result));
    free(text.data);
    return code;
}
static void read_stage_model(struct model_reader *reader, uint32_t object, struct estimator *estimator, int stage) {
    vp_affine *line = &estimator->model.affine[stage];
    const char *names[VP_LATENCY_COLUMNS_LIMIT];
    const int count = stage_columns(estimator, stage, names);
    char where[64];
    line->slope = line->condition = 1;
    if (node_is(&reader->parsed.json, vp_json_get(&reader->parsed.json, object, part_name(stage)), VP_JSON_NULL))
        return;
    object = model_member(reader, object, part_name(stage), VP_JSON_OBJECT);
    if (reader->code) return;
    snprintf(where, sizeof where, "stages.%s", part_name(stage));
    snprintf(reader->where, sizeof reader->where, "%s", where);
    estimator->model.fitted[stage] = 1;
    uint32_t affine = model_member(reader, object, "affine", VP_JSON_OBJECT);
    model_read_linear(reader, object, where, names, count,
                      estimator->model.features == VP_LATENCY_PHYSICAL
                              || estimator->model.features == VP_LATENCY_WEIGHTS
                          ? count - estimator->own_columns
                          : 0,
                      &estimator->model.fit[stage]);
    if (reader->code) return;
    snprintf(reader->where, sizeof reader->where, "%s.affine", where);
    line->slope = model_number(reader, affine, "slope", -1e12, 1e12);
    line->offset = model_number(reader, affine, "offset_ms", -MS_MOST, MS_MOST);
    line->condition = model_optional(reader, affine, "condition", 1 - 1e-9, 1e300);
    line->count = (size_t)model_count(reader, affine, "measurements", 0, INT64_C(1) << 40);
}
static void read_correlations(struct model_reader *reader, uint32_t rows, struct estimator *estimator) {
    reader->where[0] = 0;
    for (uint32_t stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        uint32_t row = vp_json_at(&reader->parsed.json, rows, stage);
        for (uint32_t k = 0; k < VP_LATENCY_STAGE_COUNT && !reader->code; k++)
            estimator->correlation[stage][k] = model_node(reader, vp_json_at(&reader->parsed.json, row, k),
                                                          "residual_correlation", stage == k ? 1 : -1, 1);
        for (uint32_t k = 0; k < stage && !reader->code; k++)
            if (!(fabs(estimator->correlation[stage][k] - estimator->correlation[k][stage]) <= 0))
                model_fail(reader, row, "residual_correlation", "is not symmetric");
    }
}
/* "own_knobs", which a model without them lacks. */
static void read_own_knobs(struct model_reader *reader, struct estimator *estimator) {
    const vp_json *json = &reader->parsed.json;
    uint32_t list = vp_json_get(json, 0, "own_knobs"), columns = 0;
    if (list == VP_JSON_NONE || (list = model_member(reader, 0, "own_knobs", VP_JSON_ARRAY)) == VP_JSON_NONE) return;
    snprintf(reader->where, sizeof reader->where, "own_knobs");
    for (uint32_t i = list + 1, k = 0; k < json->nodes[list].count && !reader->code; k++, i = json->nodes[i].end) {
        struct own_knob knob = {model_text(reader, i, "name"), {NULL, 0}, {0, 0, 0}};
        const uint32_t values = model_member(reader, i, "values", VP_JSON_ARRAY);
        knob.range.least = model_number(reader, i, "least", -1e300, 1e300);
        knob.range.median = model_number(reader, i, "median", -1e300, 1e300);
        knob.range.most = model_number(reader, i, "most", -1e300, 1e300);
        for (uint32_t value = values + 1; !reader->code && value < json->nodes[values].end;
             value = json->nodes[value].end) {
            char *text = node_text(json, value);
            if (text) text_list_take(&knob.values, text); else model_fail(reader, value, "values", "contains no text");
        }
        columns += knob.values.count ? (uint32_t)knob.values.count - 1 : 1;
        if (!reader->code && (columns > VP_LATENCY_OWN || estimator->own.count == VP_LATENCY_OWN))
            model_fail(reader, i, "values", "has too many columns");
        if (!reader->code) estimator->own.items[estimator->own.count++] = knob;
        else { free(knob.name); text_list_free(&knob.values); }
    }
    name_own_columns(estimator);
}
static void read_estimator_nodes(struct model_reader *reader, struct estimator *estimator) {
    const vp_json *json = &reader->parsed.json;
    uint32_t stages, ranges, correlations, provenance, warnings, item, synthetic = vp_json_get(json, 0, "synthetic");
    model_check_duplicates(reader);
    estimator->model.features =
        (vp_latency_features)model_word(reader, 0, "features", ESTIMATE_KIND_KEYS, ESTIMATE_KEYS);
    estimator->model_name = model_text(reader, 0, "model");
    if (has_value(json, 0, "architecture")) estimator->architecture = model_text(reader, 0, "architecture");
    estimator->device = model_text(reader, 0, "device");
    if (!vp_json_equals(json, model_member(reader, 0, "location", VP_JSON_STRING), ESTIMATE_LOCATION))
        model_fail(reader, vp_json_get(json, 0, "location"), "location", "is not " ESTIMATE_LOCATION);
    estimator->is_synthetic = node_is(json, synthetic, VP_JSON_TRUE);
    if (!estimator->is_synthetic && !node_is(json, synthetic, VP_JSON_FALSE))
        model_fail(reader, synthetic, "synthetic", "is neither true nor false");
    estimator->expert_count = model_count(reader, 0, "num_experts", 0, 1000000);
    provenance = model_member(reader, 0, "provenance", VP_JSON_OBJECT);
    warnings = model_member(reader, 0, "warnings", VP_JSON_ARRAY);
    ranges = model_member(reader, 0, "ranges", VP_JSON_OBJECT);
    stages = model_member(reader, 0, "stages", VP_JSON_OBJECT);
    correlations = model_member(reader, 0, "residual_correlation", VP_JSON_ARRAY);
    if (reader->code) return;
    estimator->provenance = copy_text(json->text + json->nodes[provenance].start, json->nodes[provenance].bytes);
    estimator->weights = result_text(json, provenance, "weights");
    estimator->knows_pruning = has_value(json, provenance, "rows_pruned");
    item = warnings + 1;
    for (uint32_t i = 0; i < json->nodes[warnings].count && !reader->code; i++, item = json->nodes[item].end) {
        char *text = node_text(json, item);
        if (text) text_list_take(&estimator->warnings, text);
        else model_fail(reader, item, "warnings", "contains a value that is not a string");
    }
    ranges_read(reader, ranges, knob_count_of(estimator->model.features), estimator->ranges);
    if (!reader->code) read_own_knobs(reader, estimator);
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT && !reader->code; stage++) {
        snprintf(reader->where, sizeof reader->where, "stages");
        read_stage_model(reader, stages, estimator, stage);
    }
    if (!reader->code) read_correlations(reader, correlations, estimator);
    stages = model_member(reader, 0, "held_out_ratios", VP_JSON_OBJECT);
    if (!reader->code) limits_read(reader, stages, estimator->limits);
}
int estimator_read(struct model_reader *reader, struct estimator **out) {
    struct estimator *estimator = zeroed(1, sizeof *estimator);
    read_estimator_nodes(reader, estimator);
    if (reader->code) estimator_free(estimator); else *out = estimator;
    return reader->code;
}
