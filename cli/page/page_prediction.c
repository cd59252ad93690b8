/* page_prediction.c: the page's section about predicted and measured latency (E3). */
#include "page/report_page.h"

#include "base/document.h"
#include "page/page.h"
#include "page/plot.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "vlmprof_latency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- E3: predicted against measured latency, by models that never saw the configuration */
enum { HELD_DOTS = 1500, EXPERTS_ASSUMED = 64 };

static int64_t experts_said(const struct results *results) {
    int64_t said = results->count && knobs_are_dense(&results->files[0].knobs) ? 0 : -1;
    for (size_t i = 0; i < results->count; i++)
        if (results->files[i].expert_count > said) said = results->files[i].expert_count;
    return said;
}
/* Like pair_rows, but only rows above 0, which have a logarithm, and with each row's file. */
static size_t held_pairs(const struct measurements *measurements, const double *predicted, int part, double *pairs,
                         uint32_t *files) {
    size_t count = 0;
    for (size_t i = 0; i < measurements->count; i++) {
        double measurement = measured_part(measurements, part, i),
               prediction = predicted[(size_t)part * measurements->count + i];
        if (!(isfinite(measurement) && measurement > 0) || !(isfinite(prediction) && prediction > 0)) continue;
        pairs[count] = measurement;
        pairs[measurements->count + count] = prediction;
        files[count++] = measurements->configs[i];
    }
    return count;
}
static void held_dots(struct plot *plot, const double *measured, const double *predicted, size_t count) {
    size_t stride = count / HELD_DOTS + 1;
    text_add_string(plot->out, "<path class=\"d\" d=\"");
    for (size_t i = 0; i < count; i += stride)
        page_add(plot->out, "M%.1f %.1fh0", scale_place(&plot->x, measured[i]), scale_place(&plot->y, predicted[i]));
    text_add_string(plot->out, "\"/>\n");
}
/* Draws a mark for each configuration at its means of measured and predicted. Its title has its own mean error. */
static void held_marks(struct plot *plot, const struct report *report, const double *measured, const double *predicted,
                       const uint32_t *files, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        double measured_sum = 0, predicted_sum = 0, error_sum = 0, members;
        char name[160], title[512];
        for (end = first; end < count && files[end] == files[first]; end++) {
            measured_sum += measured[end];
            predicted_sum += predicted[end];
            error_sum += fabs(predicted[end] - measured[end]) / measured[end];
        }
        members = (double)(end - first);
        snprintf(title, sizeof title, "%s\nmeasured %s ms, predicted %s ms (means)\nmean error of a sample %s %%",
                 report_full_name(report->results, &report->results->files[files[first]], name),
                 number_short(measured_sum / members).text, number_short(predicted_sum / members).text,
                 number_percent(error_sum / members).text);
        plot_mark(plot, 0, scale_place(&plot->x, measured_sum / members),
                  scale_place(&plot->y, predicted_sum / members), 3.4, 1, title);
    }
}
/* Draws a figure of a part's rows. pairs is double [2, capacity], measured and predicted; the first `count` are
 * filled. */
static void held_figure(struct text_buffer *out, const struct report *report, int part, const double *pairs,
                        size_t capacity, const uint32_t *files, size_t count, const vp_linear_errors *errors) {
    const int series = part == VP_LATENCY_VISION    ? 0
                       : part == VP_LATENCY_PREFILL ? 3
                       : part == VP_LATENCY_DECODE  ? 1
                                                    : 2;
    struct span span = span_none();
    struct plot plot;
    char caption[320];
    for (size_t i = 0; i < count; i++) {
        span_add(&span, pairs[i]);
        span_add(&span, pairs[capacity + i]);
    }
    if (!span_is_wide(span)) span_add(&span, 0);
    snprintf(caption, sizeof caption, "%s: mean error %.2f %%", part_name(part), 100 * errors->mape);
    figure_open(out, caption,
                count > HELD_DOTS
                    ? "Large mark: one configuration, means over its samples. Dot: one sample of one configuration (an "
                      "evenly drawn subset). Dashed: predicted equals measured."
                    : "Large mark: one configuration, means over its samples. Dot: one sample of one configuration. "
                      "Dashed: predicted equals measured.",
                0);
    page_add(out, "<p class=\"legend\">|error| mean %s ms, P95 %s ms; bias %s ms; R2 %s; %zu samples</p>",
             number_short(errors->mae).text, number_short(errors->p95_absolute).text,
             number_formatted(fabs(errors->bias) < 1 ? "%+.3f" : "%+.2f", errors->bias).text,
             number_formatted("%.4f", errors->r2).text, count);
    plot_open(&plot, out, caption, PLOT_HALF, 340);
    plot_frame(&plot, span, span_is_wide(span), span, span_is_wide(span), "measured " ESTIMATE_LOCATION ", ms",
               "predicted " ESTIMATE_LOCATION ", ms");
    plot_segment(&plot, "r", scale_place(&plot.x, plot.x.low), scale_place(&plot.y, plot.x.low),
                 scale_place(&plot.x, plot.x.high), scale_place(&plot.y, plot.x.high));
    colour_open(out, COLOUR_SERIES, series, 0);
    held_dots(&plot, pairs, pairs + capacity, count);
    held_marks(&plot, report, pairs, pairs + capacity, files, count);
    text_add_string(out, "</g>\n");
    plot_close(&plot);
}
/* Draws the figure of a part, unless fewer than two rows have both values. */
static void page_held_out(struct text_buffer *out, const struct report *report, const struct measurements *measurements,
                          const double *predicted, int part) {
    double *pairs = resize(NULL, measurements->count, 3 * sizeof *pairs), *scratch = pairs + 2 * measurements->count;
    uint32_t *files = resize(NULL, measurements->count, sizeof *files);
    size_t count = held_pairs(measurements, predicted, part, pairs, files);
    vp_linear_errors errors;
    if (count > 1 && vp_linear_errors_compute(pairs, pairs + measurements->count, count, scratch, &errors) == VP_OK)
        held_figure(out, report, part, pairs, measurements->count, files, count, &errors);
    FREE_ALL(pairs, files);
}
static void page_fitted(struct text_buffer *out, const struct report *report) {
    static const int parts[] = {ESTIMATE_TOTAL, VP_LATENCY_VISION, VP_LATENCY_PREFILL, VP_LATENCY_DECODE};
    int64_t experts = experts_said(report->results);
    struct measurements measurements;
    double *predicted;
    struct own_knobs own = {.count = 0};
    if (!own_knobs_find(report->results, &own)) own_knobs_free(&own); /* too many: their effects stay in the errors */
    measurements_read(&measurements, report->results, experts >= 0 ? experts : (int64_t)EXPERTS_ASSUMED, &own);
    predicted = resize(NULL, measurements.count, ESTIMATE_PARTS * sizeof *predicted);
    estimator_predict_left_out(features_of(&measurements, VP_LATENCY_PHYSICAL), &measurements, SPLIT_CONFIG,
                               predicted);
    add_totals(&measurements, predicted);
    text_add_string(
        out, "<p class=\"soft\">Each configuration is predicted by a model of all others, which is linear in physical "
             "features with no negative coefficient. Predicted: "
             "the " ESTIMATE_LOCATION " time of requests with these inputs; measured: "
             "each sample's " ESTIMATE_LOCATION " over its runs. Large marks: " ESTIMATE_LOCATION
             "s of configurations; dots: samples; "
             "dashed: equal. Bias: the " ESTIMATE_LOCATION " of predicted - measured. vlmprof fit prints all errors, "
             "with those of simpler models.");
    if (experts < 0)
        page_add(out, " The files do not contain the model's number of experts: %d are assumed.", (int)EXPERTS_ASSUMED);
    text_add_string(out, "</p>\n<div class=\"grid\">");
    size_t before = out->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        page_held_out(out, report, &measurements, predicted, parts[i]);
    text_add_string(out, "</div>");
    if (out->bytes == before + 6)
        text_add_string(
            out, "<p>Nothing can be predicted: the files contain only one configuration, or have no token counts or "
                 "stage times.</p>");
    own_knobs_free(&own);
    measurements_free(&measurements);
    free(predicted);
}
void page_predictions(struct text_buffer *out, const struct report *report) {
    page_folded_open(out, "predicted", "Predicted against measured",
                     "Each configuration is predicted from all others, with the errors.", 0);
    if (are_all_served(report->results))
        page_add(out, "<p>Nothing is predicted: the files are of servers, not of vlmprof's engine.</p>");
    else page_fitted(out, report);
    page_folded_close(out);
}
