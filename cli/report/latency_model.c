/* latency_model.c: errors, ranges, coefficients and predictions of a latency model. */
#include "report/latency_model.h"

#include "report/tradeoff.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ranges */
void ranges_find(int count, const vp_latency_request *requests, size_t request_count, struct number_range *ranges) {
    double *values = resize(NULL, request_count, sizeof *values);
    for (int which = 0; which < count; which++) {
        for (size_t i = 0; i < request_count; i++) values[i] = knob_at(&requests[i], which);
        vp_sort_double(values, request_count);
        ranges[which].least = values[0];
        ranges[which].median = values[(request_count - 1) / 2];
        ranges[which].most = values[request_count - 1];
    }
    free(values);
}
void ranges_put(vp_json_writer *writer, int count, const struct number_range *ranges) {
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
void ranges_read(struct model_reader *reader, uint32_t object, int count, struct number_range *ranges) {
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
void range_warn(int which, const struct number_range *range, const vp_latency_request *requests, size_t count,
                struct text_list *warnings) {
    size_t outside = 0;
    double value = 0;
    for (size_t i = 0; i < count; i++) {
        const double at = knob_at(&requests[i], which);
        if ((at < range->least || at > range->most) && !outside++) value = at;
    }
    if (outside)
        text_list_add(warnings,
                      "extrapolation: %s %.0f is outside %.0f..%.0f, the range in the data of the model (%zu of %zu "
                      "requests)",
                      ESTIMATE_KNOBS[which].name, value, range->least, range->most, outside, count);
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
        const size_t group = row_groups ? row_groups[i] : i;
        if (!isfinite(rows[i])) continue;
        sums[group] += rows[i] - mean.value;
        has_rows[group] = 1;
    }
    for (size_t g = 0; g < groups; g++)
        if (has_rows[g]) sums[filled++] = sums[g];
    for (size_t g = 0; g < filled; g++) sums[g] = mean.value + sums[g] * (double)filled / (double)known;
    if (filled > 1 && vp_paired_t(NULL, sums, filled, MODEL_LEVEL, &interval) == VP_OK) {
        mean.low = interval.low;
        mean.high = interval.high;
    }
    FREE_ALL(sums, has_rows);
    return mean;
}
/* The intervals of bias and MAPE. A MAPE is never below 0. */
static void find_intervals(const double *measured, const double *predicted, size_t count, const uint32_t *row_groups,
                           size_t groups, struct part_errors *errors) {
    double *rows = resize(NULL, count, sizeof *rows);
    vp_estimate mean;
    for (size_t i = 0; i < count; i++) rows[i] = predicted[i] - measured[i];
    mean = group_mean(rows, count, row_groups, groups);
    errors->bias_low = mean.low;
    errors->bias_high = mean.high;
    for (size_t i = 0; i < count; i++) rows[i] = fabs(rows[i] / measured[i]);
    mean = group_mean(rows, count, row_groups, groups);
    errors->mape_low = mean.low < 0 ? 0 : mean.low;
    errors->mape_high = mean.high;
    free(rows);
}
/* Collects the rows that have both values, with a prediction above `least`. pairs is double [2, count]: measured, then
 * predicted. Returns the number of rows. */
static size_t pairs_of(const double *measured, const double *predicted, size_t count, double least, double *pairs) {
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(predicted[i]) || !isfinite(measured[i]) || !(predicted[i] > least)) continue;
        pairs[known] = measured[i];
        pairs[count + known++] = predicted[i];
    }
    return known;
}
void part_errors_of(const double *measured, const double *predicted, size_t count, const uint32_t *groups,
                    size_t group_count, struct part_errors *errors) {
    double *pairs = resize(NULL, count, 3 * sizeof *pairs);
    const size_t known = pairs_of(measured, predicted, count, -INFINITY, pairs);
    memset(errors, 0, sizeof *errors);
    if (known && vp_linear_errors_compute(pairs, pairs + count, known, pairs + 2 * count, &errors->of) == VP_OK) {
        errors->measured_mean = vp_statistics_mean(pairs, known);
        find_intervals(measured, predicted, count, groups, groups ? group_count : count, errors);
    }
    free(pairs);
}
void part_limits_of(const double *measured, const double *predicted, size_t count, double least,
                    vp_latency_limits *limits) {
    double *pairs = resize(NULL, count, 3 * sizeof *pairs);
    const size_t known = pairs_of(measured, predicted, count, least, pairs);
    if (!known
        || vp_latency_limits_compute(pairs, pairs + count, known, MODEL_LEVEL, pairs + 2 * count, limits) != VP_OK)
        memset(limits, 0, sizeof *limits);
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
void errors_put(vp_json_writer *writer, const struct part_errors *errors) {
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        PUT(writer, KEY_OBJECT(ESTIMATE_KIND_KEYS[kind]));
        for (int split = 0; split < SPLIT_COUNT; split++) {
            vp_json_key(writer, SPLIT_KEYS[split]);
            parts_put(writer, errors + (kind * SPLIT_COUNT + split) * ESTIMATE_PARTS);
        }
        PUT(writer, END_OBJECT);
    }
}
struct text_buffer formula_text(const char *part, const vp_linear *fit, const char *const *names) {
    struct text_buffer out = {NULL, 0, 0};
    int terms = 0;
    text_add_format(&out, "%s = ", part);
    for (int column = 0; column < fit->columns; column++) {
        const double coefficient = fit->coefficient[column];
        if (fit->state[column] != VP_LINEAR_USED) continue;
        text_add_string(&out, !terms++ ? coefficient < 0 ? "-" : "" : coefficient < 0 ? " - " : " + ");
        text_add_format(&out, "%.4g", fabs(coefficient));
        if (strcmp(names[column], "1")) text_add_format(&out, " %s", names[column]);
    }
    if (!terms) text_add_string(&out, "0");
    return out;
}
void formula_add(struct document *document, const char *formula, const struct part_errors *held_out) {
    if (held_out->of.count && held_out->mape_high < 1e-8) /* only its rounding */
        document_text(document, BLOCK_LINE, "%s; MAPE below 0.000001 %%", formula);
    else if (held_out->of.count)
        document_text(document, BLOCK_LINE, "%s; MAPE %s %%", formula,
                      number_estimate(100, held_out->of.mape, held_out->mape_low, held_out->mape_high).text);
    else document_text(document, BLOCK_LINE, "%s", formula);
}
void errors_describe(struct document *document, const struct part_errors *errors) {
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        document_text(document, BLOCK_HEADING, "Errors of %s", part_name(part));
        struct text_list *table = document_table(document, "features|rows predicted|" ERROR_COLUMNS);
        for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
            for (int split = 0; split < SPLIT_COUNT; split++)
                error_row(table, split ? "" : ESTIMATE_KIND_KEYS[kind], SPLIT_NAMES[split],
                          &errors[(kind * SPLIT_COUNT + split) * ESTIMATE_PARTS + part]);
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
struct text_list *coefficients_table(struct document *document, const char *heading) {
    document_text(document, BLOCK_HEADING, "Coefficients (%s95 %% intervals)", heading);
    return document_table(document, "stage|feature|coefficient|interval|unit|state");
}
void coefficients_add(struct text_list *table, const char *part, const vp_linear *fit, const char *const *names) {
    for (int column = 0; column < fit->columns; column++) {
        double low = (double)NAN, high = (double)NAN;
        char unit[64];
        vp_linear_coefficient(fit, column, MODEL_LEVEL, &low, &high);
        text_list_add(table, "%s", part);
        text_list_add(table, "%s", names[column]);
        text_list_add(table, "%.4g", fit->coefficient[column]);
        if (fit->state[column] == VP_LINEAR_USED && isfinite(low)) text_list_add(table, "[%.4g, %.4g]", low, high);
        else text_list_add(table, "-");
        text_list_add(table, "%s", unit_text(names[column], unit));
        text_list_add(table, "%s", LINEAR_STATE_KEYS[fit->state[column]]);
    }
}
void limits_put(vp_json_writer *writer, const vp_latency_limits *limits) {
    PUT(writer, KEY_OBJECT("held_out_ratios"));
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        if (!limits[part].count) PUT(writer, KEY_NULL(part_name(part)));
        else
            PUT(writer, KEY_OBJECT(part_name(part)), KEY("rows", (int64_t)limits[part].count),
                KEY("low", limits[part].low), KEY("high", limits[part].high), END_OBJECT);
    }
    PUT(writer, END_OBJECT);
}
void limits_read(struct model_reader *reader, uint32_t parts, vp_latency_limits *limits) {
    for (int part = 0; part < ESTIMATE_PARTS && !reader->code; part++) {
        const char *key = part_name(part);
        uint32_t object = vp_json_get(&reader->parsed.json, parts, key);
        snprintf(reader->where, sizeof reader->where, "held_out_ratios");
        if (node_is(&reader->parsed.json, object, VP_JSON_NULL)) continue;
        object = model_member(reader, parts, key, VP_JSON_OBJECT);
        if (reader->code) return;
        snprintf(reader->where, sizeof reader->where, "held_out_ratios.%.40s", key);
        limits[part].level = MODEL_LEVEL;
        limits[part].count = (size_t)model_count(reader, object, "rows", 1, INT64_C(1) << 40);
        limits[part].low = model_number(reader, object, "low", 0, 1e30);
        limits[part].high = model_number(reader, object, "high", limits[part].low, 1e30);
    }
}

/* ---- predictions */
static const char *verdict_of(const struct prediction *prediction, double budget) {
    const int total = ESTIMATE_TOTAL;
    return prediction->high[total] <= budget ? "holds" : prediction->low[total] > budget ? "exceeds" : "unsure";
}
/* The share of requests like this one within a budget. Each side of the prediction is treated as half of a normal
 * distribution, with the width of that side of the interval. */
static double share_within(const struct prediction *prediction, double budget) {
    const int total = ESTIMATE_TOTAL;
    const double value = prediction->value[total],
                 side = budget < value ? value - prediction->low[total] : prediction->high[total] - value;
    const double share = 1 - vp_normal_tail((budget - value) / (side / vp_normal_quantile(0.5 + MODEL_LEVEL / 2)));
    return prediction->held_out[total] ? share_shown(share, prediction->held_out[total]) : share;
}
void estimate_cells(struct text_list *table, vp_estimate estimate) {
    const struct number_text text = number_measured(estimate.value, estimate.low, estimate.high);
    const char *range = strchr(text.text, '[');
    CELLS(table, number_value(estimate.value, estimate.low, estimate.high).text, range ? range : "-");
}
void prediction_describe(struct document *document, const struct prediction *prediction, double budget) {
    struct text_list *table = document_table(document, "stage|" ESTIMATE_LOCATION " ms|95 % interval|of");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const int runs = !prediction->is_idle[part], is_known = runs && isfinite(prediction->low[part]);
        text_list_add(table, "%s", part_name(part));
        if (runs)
            estimate_cells(table,
                           (vp_estimate){prediction->value[part], prediction->low[part], prediction->high[part]});
        else CELLS(table, "does not run", "-");
        text_list_add(table, "%s", !is_known ? "-" : prediction->held_out[part] ? "held-out ratios" : "Student");
    }
    if (isfinite(budget))
        document_text(document, BLOCK_LINE, "budget %.3f ms: %s, with probability %s", budget,
                      verdict_of(prediction, budget), number_formatted("%.3f", share_within(prediction, budget)).text);
}
void prediction_put(vp_json_writer *writer, const struct prediction *prediction, double budget) {
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const char *key = part_name(part);
        const double low = prediction->low[part];
        if (prediction->is_idle[part] || !isfinite(prediction->value[part])) PUT(writer, KEY_NULL(key));
        else
            PUT(writer, KEY_OBJECT(key), KEY("ms", prediction->value[part]),
                KEY_RANGE("interval_ms", low, prediction->high[part]),
                KEY("interval_of", !isfinite(low) ? NULL
                                   : prediction->held_out[part] ? "held_out_ratios" : "student"),
                END_OBJECT);
    }
    if (isfinite(budget))
        PUT(writer, KEY("budget_ms", budget), KEY("verdict", verdict_of(prediction, budget)),
            KEY("probability_within_budget", share_within(prediction, budget)));
}
