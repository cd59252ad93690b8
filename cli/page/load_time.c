/* load_time.c: a trial over time: latencies next to the server's metrics. Requests and samples of the metrics are
 * joined by time: a sample is shown with the requests that were due between it and the next one. */
#include "page/load_time.h"

#include "base/document.h"
#include "page/page.h"
#include "page/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- drawing */
enum { TIME_TTFT = PROM_COUNT, TIME_E2E, TIME_PIECES, TIME_LINES };
enum { STEPS_MOST = 60, LEVELS_MOST = 6 }; /* limits for trials without metrics */
struct time_line { const char *name; int series, which; };
static const struct time_figure {
    const char *caption, *note, *y_label;
    struct time_line lines[4]; size_t line_count;
} FIGURES[] = {
    {"latency over the trial", "Median of the requests that were due between one sample and the next.", "ms",
     {{"TTFT P50", 0, TIME_TTFT}, {"E2E P50", 1, TIME_E2E}}, 2},
    {"pieces of answers", "Received since the previous sample, over all requests.", "per second",
     {{"pieces", 3, TIME_PIECES}}, 1},
    {"requests in the server", "From its metrics; preempted: since the previous sample.", "requests",
     {{"waiting", 1, PROM_WAITING}, {"running", 0, PROM_RUNNING}, {"preempted", 6, PROM_PREEMPTED}}, 3},
    {"caches and speculation", "Hits and accepted tokens: since the previous sample.", "share",
     {{"KV cache in use", 0, PROM_KV}, {"prefix cache hits", 2, PROM_PREFIX}, {"encoder cache hits", 3, PROM_ENCODER},
      {"accepted tokens", 4, PROM_SPECULATIVE}}, 4}};

/* The lines of a trial at the times of its samples; NaN if there is no value. */
struct time_data { double *at_s, *values[TIME_LINES]; size_t count; };

static double median_between(const struct load_request *requests, size_t count, int which, int64_t from_ns,
                             int64_t to_ns) {
    double *values = resize(NULL, count + 1, sizeof *values), median = (double)NAN;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = load_latency(&requests[i].record, which);
        if (requests[i].record.due_ns >= from_ns && requests[i].record.due_ns < to_ns && isfinite(value))
            values[known++] = value;
    }
    vp_sort_double(values, known);
    if (known) median = vp_statistics_percentile(values, known, 50);
    free(values);
    return median;
}
static double pieces_between(const struct load_request *requests, size_t count, int64_t from_ns, int64_t to_ns) {
    size_t pieces = 0;
    for (size_t i = 0; i < count; i++) {
        const struct load_record *record = &requests[i].record;
        int64_t at_ns = record->first_ns;
        for (size_t k = 0; at_ns >= 0 && k <= record->gap_count; k++) {
            pieces += at_ns >= from_ns && at_ns < to_ns;
            if (k < record->gap_count) at_ns += (int64_t)record->gaps_us[k] * 1000;
        }
    }
    return (double)pieces * 1e9 / (double)(to_ns - from_ns);
}
/* The start of a step: a sample of the metrics; without samples, equal steps. */
static int64_t step_ns(const struct load_level *level, const struct time_data *data, size_t step) {
    if (level->metric_count >= 2 && step < level->metric_count) return level->metrics[step].at_ns;
    if (level->metric_count >= 2) return INT64_MAX;
    return (int64_t)(level->duration_s * 1e9 * (double)step / (double)data->count);
}
static int time_read(struct time_data *data, const struct load_level *level) {
    struct load_request *requests;
    size_t count;
    const int code = load_level_requests(level, &requests, &count);
    memset(data, 0, sizeof *data);
    if (code) return code;
    data->count = level->metric_count >= 2 ? level->metric_count : (size_t)fmin(STEPS_MOST, ceil(level->duration_s));
    data->at_s = zeroed(data->count, sizeof *data->at_s);
    for (int line = 0; line < TIME_LINES; line++) data->values[line] = zeroed(data->count, sizeof(double));
    for (size_t i = 0; i < data->count; i++) {
        const int64_t from_ns = step_ns(level, data, i), to_ns = step_ns(level, data, i + 1);
        data->at_s[i] = (double)from_ns / 1e9;
        for (int line = 0; line < PROM_COUNT; line++)
            data->values[line][i] = level->metric_count >= 2 ? level->metrics[i].values[line] : (double)NAN;
        data->values[TIME_PIECES][i]
            = to_ns == INT64_MAX ? (double)NAN : pieces_between(requests, count, from_ns, to_ns);
        data->values[TIME_TTFT][i] = median_between(requests, count, LOAD_TTFT, from_ns, to_ns);
        data->values[TIME_E2E][i] = median_between(requests, count, LOAD_E2E, from_ns, to_ns);
    }
    load_requests_free(requests, count);
    return 0;
}
static void time_free(struct time_data *data) {
    free(data->at_s);
    for (int line = 0; line < TIME_LINES; line++) free(data->values[line]);
}

/* ---- drawing */
static void line_draw(struct plot *plot, const struct time_data *data, const struct time_line *line) {
    double before_x = (double)NAN, before_y = (double)NAN;
    colour_open(plot->out, COLOUR_SERIES, line->series, 0);
    for (size_t i = 0; i < data->count; i++) {
        const double value = data->values[line->which][i], x = scale_place(&plot->x, data->at_s[i]),
                     y = scale_place(&plot->y, value);
        char title[120];
        if (!isfinite(value)) continue;
        if (isfinite(before_x)) plot_segment(plot, "l", before_x, before_y, x, y);
        snprintf(title, sizeof title, "%.1f s\n%s %s", data->at_s[i], line->name, number_short(value).text);
        plot_mark(plot, line->series, x, y, 2.4, 1, title);
        before_x = x;
        before_y = y;
    }
    text_add_string(plot->out, "</g>\n");
}
static int has_line(const struct time_data *data, const struct time_line *line) {
    for (size_t i = 0; i < data->count; i++) if (isfinite(data->values[line->which][i])) return 1;
    return 0;
}
static void figure_draw(struct text_buffer *out, const struct time_figure *figure, const struct load_level *level,
                        const struct time_data *data) {
    struct span x_span = span_none(), y_span = span_none();
    char caption[160], load[48];
    span_add(&x_span, 0);
    span_add(&y_span, 0);
    for (size_t i = 0; i < data->count; i++) {
        span_add(&x_span, data->at_s[i]);
        for (size_t k = 0; k < figure->line_count; k++) span_add(&y_span, data->values[figure->lines[k].which][i]);
    }
    snprintf(caption, sizeof caption, "%s: %s", load_level_text(level, load), figure->caption);
    figure_open(out, caption, figure->note, 0);
    legend_open(out);
    for (size_t k = 0; k < figure->line_count; k++)
        if (has_line(data, &figure->lines[k]))
            legend_item(out, COLOUR_SERIES, figure->lines[k].series, 0, figure->lines[k].series, figure->lines[k].name);
    legend_close(out);
    for (int i = 0; i < HALF_COUNT; i++) {
        struct plot plot;
        plot_open(&plot, out, caption, HALF_PX[i], HALF_PX[i] <= PLOT_NARROW ? 240 : 260);
        plot_frame(&plot, x_span, 0, y_span, 0, "seconds since the trial began", figure->y_label);
        for (size_t k = 0; k < figure->line_count; k++) line_draw(&plot, data, &figure->lines[k]);
        plot_close(&plot);
    }
    figure_close(out);
}
static int can_draw(const struct time_figure *figure, const struct time_data *data) {
    for (size_t k = 0; k < figure->line_count; k++) if (has_line(data, &figure->lines[k])) return 1;
    return 0;
}
int load_time_add(struct text_buffer *out, const struct load_levels *levels) {
    int is_open = 0, code = 0;
    for (size_t i = 0; i < levels->count && !code; i++) {
        const struct load_level *level = &levels->items[i];
        struct time_data data;
        if (level->metric_count < 2 && (levels->count > LEVELS_MOST || !(level->duration_s >= 2))) continue;
        if ((code = time_read(&data, level)) != 0) break;
        if (!is_open++) {
            page_section_open(out, "time", "Trials over time");
            text_add_string(out, "<div class=\"grid\">\n");
        }
        for (size_t k = 0; k < sizeof FIGURES / sizeof *FIGURES; k++)
            if (can_draw(&FIGURES[k], &data)) figure_draw(out, &FIGURES[k], level, &data);
        time_free(&data);
    }
    if (is_open) text_add_string(out, "</div></section>\n");
    return code;
}
