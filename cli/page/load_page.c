/* load_page.c: a server under load as an HTML page. */
#include "page/load_page.h"

#include "base/document.h"
#include "load/load_tables.h"
#include "page/load_time.h"
#include "page/page.h"
#include "page/plot.h"

#include <math.h>
#include <stdio.h>

/* A line of a figure: one metric over all trials. */
struct load_line {
    const char *name;
    int series;
    vp_estimate (*value)(const struct load_level *level, int which);
    int which; /* argument of the function */
};
/* A figure: lines over the load. Rates and numbers of concurrent requests have separate figures. */
struct load_figure {
    const char *caption, *note, *y_label;
    struct load_line lines[3]; size_t line_count;
    int from_zero, y_log;
};

static vp_estimate estimate_of(double value, double low, double high) {
    const vp_estimate estimate = {value, low, high};
    return estimate;
}
/* which: latency * LOAD_PERCENTILES + percentile */
static vp_estimate latency_of(const struct load_level *level, int which) {
    const vp_series_value *value = &level->summary.latency[which / LOAD_PERCENTILES][which % LOAD_PERCENTILES];
    return estimate_of(value->value, value->low, value->high);
}
static vp_estimate goodput_of(const struct load_level *level, int which) {
    (void)which;
    return estimate_of(level->summary.goodput, level->summary.goodput_low, level->summary.goodput_high);
}
static vp_estimate flow_of(const struct load_level *level, int which) {
    const struct load_summary *summary = &level->summary;
    const double value = which == 0 ? summary->offered : which == 1 ? summary->ended : summary->output_rate;
    return estimate_of(value, (double)NAN, (double)NAN);
}
static vp_estimate accuracy_of(const struct load_level *level, int which) {
    (void)which;
    return level->summary.accuracy;
}
static vp_estimate good_of(const struct load_level *level, int which) {
    const vp_series_value *good = &level->summary.good_share;
    (void)which;
    return estimate_of(100 * good->value, 100 * good->low, 100 * good->high);
}
/* The share that the objective requires, as in the findings. */
static vp_estimate required_of(const struct load_level *level, int which) {
    const double share = isfinite(level->slo_share) ? level->slo_share : 0.95;
    (void)which;
    return estimate_of(level->slo ? 100 * share : (double)NAN, (double)NAN, (double)NAN);
}
#define LATENCY(latency, percentile) ((latency) * LOAD_PERCENTILES + (percentile))
static const struct load_figure FIGURES[] = {
    {"E2E latency", "From the time a request was due to its last piece. Whiskers: 95 % intervals.", "ms",
     {{"P50", 0, latency_of, LATENCY(LOAD_E2E, LOAD_P50)},
      {"P95", 1, latency_of, LATENCY(LOAD_E2E, LOAD_P95)},
      {"P95 since sent", 6, latency_of, LATENCY(LOAD_E2E_SENT, LOAD_P95)}}, 3, 1, 1},
    {"Time to first token", "From the time a request was due to its first piece.", "ms",
     {{"P50", 0, latency_of, LATENCY(LOAD_TTFT, LOAD_P50)},
      {"P95", 1, latency_of, LATENCY(LOAD_TTFT, LOAD_P95)},
      {"P95 since sent", 6, latency_of, LATENCY(LOAD_TTFT_SENT, LOAD_P95)}}, 3, 1, 1},
    {"Time per output token", "Mean over a request's tokens after the first.", "ms",
     {{"P50", 0, latency_of, LATENCY(LOAD_TPOT, LOAD_P50)},
      {"P95", 1, latency_of, LATENCY(LOAD_TPOT, LOAD_P95)}}, 2, 1, 1},
    {"Requests and goodput", "Good: the request met all limits, measured since it was due.", "per second",
     {{"due", 6, flow_of, 0}, {"ended", 0, flow_of, 1}, {"good", 2, goodput_of, 0}}, 3, 1, 0},
    {"Good requests", "Share of the requests that met all limits; the objective is met above the line.", "%",
     {{"good", 2, good_of, 0}, {"required", 6, required_of, 0}}, 2, 1, 0},
    {"Output tokens", "Tokens of the requests that ended in the window.", "tokens per second",
     {{"output tokens", 3, flow_of, 2}}, 1, 1, 0},
    {"Accuracy", "Accuracy of the timed answers.", "accuracy", {{"accuracy", 4, accuracy_of, 0}}, 1, 1, 0}};

/* ---- figures */
/* The requests at once, or per second that were really due: a random draw differs from the rate. */
static double load_of(const struct load_level *level) {
    return level->concurrency ? level->concurrency : level->summary.offered;
}
static int is_shown(const struct load_level *level, int by_concurrency) {
    return (level->concurrency > 0) == by_concurrency;
}
static void line_draw(struct plot *plot, const struct load_levels *levels, const struct load_line *line,
                      int by_concurrency) {
    double before_x = (double)NAN, before_y = (double)NAN;
    int32_t places = 0;
    colour_open(plot->out, COLOUR_SERIES, line->series, 0);
    for (size_t i = 0; i < levels->count; i++) {
        const vp_estimate value = line->value(&levels->items[i], line->which);
        char text[48], title[300];
        double x, y;
        if (!is_shown(&levels->items[i], by_concurrency) || !isfinite(value.value)
            || (plot->y.is_log && value.value <= 0))
            continue;
        x = scale_place(&plot->x, load_of(&levels->items[i]));
        y = scale_place(&plot->y, value.value);
        if (isfinite(before_x) && places == levels->items[i].places) plot_segment(plot, "l", before_x, before_y, x, y);
        snprintf(title, sizeof title, "%s\n%s %s", load_level_text(&levels->items[i], text), line->name,
                 number_estimate(1, value.value, value.low, value.high).text);
        plot_whiskers(plot, x, y, estimate_none(), value);
        plot_mark(plot, line->series, x, y, 3.6, 1, title);
        before_x = x;
        before_y = y;
        places = levels->items[i].places;
    }
    text_add_string(plot->out, "</g>\n");
}
/* Returns 1 if any trial has a value for this figure. */
static int figure_spans(const struct load_figure *figure, const struct load_levels *levels, int by_concurrency,
                        struct span *x_span, struct span *y_span) {
    int known = 0;
    *x_span = *y_span = span_none();
    for (size_t i = 0; i < levels->count; i++) {
        if (!is_shown(&levels->items[i], by_concurrency)) continue;
        span_add(x_span, load_of(&levels->items[i]));
        for (size_t k = 0; k < figure->line_count; k++) {
            const vp_estimate value = figure->lines[k].value(&levels->items[i], figure->lines[k].which);
            known += isfinite(value.value);
            span_add_estimate(y_span, value);
        }
    }
    return known;
}
static void figure_draw(struct text_buffer *out, const struct load_figure *figure, const struct load_levels *levels,
                        int by_concurrency) {
    struct span x_span, y_span;
    char caption[120];
    int y_log;
    if (!figure_spans(figure, levels, by_concurrency, &x_span, &y_span)) return;
    y_log = figure->y_log && span_is_wide(y_span);
    if (!y_log && figure->from_zero) span_add(&y_span, 0);
    if (!span_is_wide(x_span)) span_add(&x_span, 0);
    snprintf(caption, sizeof caption, "%s against %s", figure->caption,
             by_concurrency ? "requests at once" : "requests per second");
    figure_open(out, caption, figure->note, 0);
    legend_open(out);
    for (size_t k = 0; k < figure->line_count; k++)
        legend_item(out, COLOUR_SERIES, figure->lines[k].series, 0, figure->lines[k].series, figure->lines[k].name);
    legend_close(out);
    for (int i = 0; i < HALF_COUNT; i++) {
        struct plot plot;
        plot_open(&plot, out, caption, HALF_PX[i], HALF_PX[i] <= PLOT_NARROW ? 280 : 320);
        plot_frame(&plot, x_span, span_is_wide(x_span), y_span, y_log,
                   by_concurrency ? "requests at once" : "requests due per second", figure->y_label);
        for (size_t k = 0; k < figure->line_count; k++) line_draw(&plot, levels, &figure->lines[k], by_concurrency);
        plot_close(&plot);
    }
    figure_close(out);
}
static size_t count_of(const struct load_levels *levels, int by_concurrency) {
    size_t count = 0;
    for (size_t i = 0; i < levels->count; i++) count += (size_t)is_shown(&levels->items[i], by_concurrency);
    return count;
}
static void page_figures(struct text_buffer *out, const struct load_levels *levels) {
    static const char *const ids[] = {"rate", "concurrency"},
                             *const heads[] = {"By requests per second", "By requests at once"};
    for (int by_concurrency = 0; by_concurrency < 2; by_concurrency++) {
        if (!count_of(levels, by_concurrency)) continue;
        page_section_open(out, ids[by_concurrency], heads[by_concurrency]);
        text_add_string(out, "<div class=\"grid\">\n");
        for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
            figure_draw(out, &FIGURES[i], levels, by_concurrency);
        text_add_string(out, "</div></section>\n");
    }
}

/* ---- texts */
static void page_findings(struct text_buffer *out, const struct load_levels *levels) {
    struct text_list texts = {NULL, 0};
    load_findings(levels, &texts);
    page_section_open(out, "short", "In short");
    page_items(out, &texts, 0, texts.count);
    page_section_close(out);
    text_list_free(&texts);
}
static int page_table(struct text_buffer *out, const struct load_levels *levels) {
    struct document document = {NULL, 0, NULL};
    const int code = load_levels_add(&document, levels->items, levels->count);
    page_section_open(out, "numbers", "Numbers");
    for (size_t i = 0; i < document.count; i++) {
        const struct text_block *block = &document.blocks[i];
        if (block->kind != BLOCK_TABLE) continue;
        page_table_open(out, "Trials", 0);
        for (size_t k = 0; k < block->cells.count; k++) {
            if (k == block->columns) text_add_string(out, "</tr></thead><tbody>\n");
            else if (k && k % block->columns == 0) text_add_string(out, "</tr>\n");
            if (k >= block->columns && k % block->columns == 0) text_add_string(out, "<tr>");
            text_add_string(out, k < block->columns      ? "<th scope=\"col\">"
                                 : k % block->columns == 0 ? "<th scope=\"row\">"
                                                           : "<td>");
            page_text(out, block->cells.items[k]);
            text_add_string(out, k < block->columns || k % block->columns == 0 ? "</th>" : "</td>");
        }
        text_add_string(out, "</tr></tbody></table></div>\n");
    }
    page_section_close(out);
    document_free(&document);
    return code;
}
static const char *const WORDS[][2] = {
    {"due", "the time at which a request should be sent: set by the arrivals, or by the end of another request"},
    {"E2E, TTFT", "time from when the request was due to the last and the first piece of the answer"},
    {"since sent", "the same from when the request was sent. This leaves out the wait before, so a busy client "
                      "looks like a fast server"},
    {"TPOT", "time per output token after the first, by the server's token count"},
    {"good", "the request met all limits of --slo or, without limits, was answered"},
    {"goodput", "good requests per second"},
    {"ended", "requests that ended per second; if far fewer end than are due, the queue grows during the whole trial"},
    {"interval", "95 %, based on the effective number of independent requests: on a busy server, requests wait for "
                 "each other"},
    {"window", "requests due in the ramp or in the cool-down are not counted"}};
static void page_provenance(struct text_buffer *out, const struct load_levels *levels) {
    page_list_open(out, "source", "Provenance", "Dates, arrivals, limits and windows of the trials.");
    for (size_t i = 0; i < levels->count; i++) {
        const struct load_level *level = &levels->items[i];
        char text[48], line[300];
        snprintf(line, sizeof line, "%.60s; arrivals %.40s; limits %.80s; window %g to %g s%s",
                 level->date ? level->date : "no date", level->arrivals ? level->arrivals : "by the answers",
                 level->slo ? level->slo : "none", level->summary.from_s, level->summary.to_s,
                 level->is_complete ? "" : "; interrupted");
        page_list_item(out, load_level_text(level, text), line);
    }
    page_list_close(out);
}
int load_page_write(const struct load_levels *levels, struct text_buffer *out) {
    static const struct page_link links[] = {{"short", "In short"}, {"rate", "By rate"},
        {"concurrency", "By requests at once"}, {"time", "Over time"}, {"numbers", "Numbers"}, {"words", "Words"},
        {"source", "Provenance"}, {NULL, NULL}};
    const struct load_level *first = &levels->items[0];
    struct page page = {0};
    char title[300];
    snprintf(title, sizeof title, "%.100s at %.120s under load", first->model ? first->model : "a server",
             first->endpoint ? first->endpoint : "?");
    page_text(&page.heading, title);
    page_text(&page.subtitle, first->task ? first->task : "");
    page_add(&page.subtitle, ", %zu trial%s, ", levels->count, plural_s((int64_t)levels->count));
    page_day(&page.subtitle, first->date);
    page_findings(&page.body, levels);
    page_figures(&page.body, levels);
    int code = load_time_add(&page.body, levels);
    if (!code) code = page_table(&page.body, levels);
    page_words(&page.body, WORDS, sizeof WORDS / sizeof *WORDS);
    page_provenance(&page.body, levels);
    page_write(&page, links, out);
    return code;
}
