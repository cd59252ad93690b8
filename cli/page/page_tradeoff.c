/* page_tradeoff.c: the page's sections about the latency cost of accuracy (E2). */
#include "page/report_page.h"

#include "base/document.h"
#include "base/table.h"
#include "page/page.h"
#include "page/plot.h"
#include "report/report_text.h"
#include "results/metrics.h"
#include "vlmprof_analysis.h"

#include <math.h>

/* ---- E2: the front */
/* If all levels of accuracy are equal, its axis runs from 0 to 1. which: 1 is accuracy. */
static void span_room(struct span *span, int which) {
    if (which && !(span->high > span->low) && span->low >= 0 && span->high <= 1) *span = (struct span){0, 1, 0};
}
enum { FRONT_WHISKERS = 40, BOXES_MOST = 2048 };

struct box { double x, y, width, height; };
struct boxes { struct box items[BOXES_MOST]; size_t count; };
struct taken { struct boxes marks, lines; }; /* where marks and names, whiskers and steps are */

static size_t box_overlaps(const struct boxes *boxes, struct box box) {
    size_t count = 0;
    for (size_t i = 0; i < boxes->count; i++) {
        const struct box *other = &boxes->items[i];
        count += box.x < other->x + other->width && other->x < box.x + box.width && box.y < other->y + other->height
                 && other->y < box.y + box.height;
    }
    return count;
}
static void box_take(struct boxes *boxes, double x, double y, double width, double height) {
    if (boxes->count < BOXES_MOST) boxes->items[boxes->count++] = (struct box){x, y, width, height};
}
/* Writes a point's name next to it, if there is room, over as few lines as possible. Otherwise the name is omitted; it
 * is in the table and the mark's title. */
static void plot_name(struct plot *plot, struct taken *taken, double x, double y, const char *text) {
    static const struct { double x, y; } corners[] = {{8, -7}, {9, 4}, {8, 15}, {-1, -14}, {-1, 20}, {9, 26}, {9, -22}};
    struct box best = {0, 0, 0, 0};
    size_t fewest = SIZE_MAX;
    double px = text_px(text);
    for (int side = 1; side >= 0; side--) /* tries the left first, because no point of a front is above it */
        for (size_t i = 0; i < sizeof corners / sizeof corners[0] && taken->marks.count < BOXES_MOST; i++) {
            const struct box box = {.x = side ? x - corners[i].x - px : x + corners[i].x, .y = y + corners[i].y - 11,
                .width = px, .height = 14};
            const size_t crossed = box_overlaps(&taken->lines, box);
            if (crossed >= fewest || box.x < plot->x.from + 2 || box.x + px > plot->x.to - 2 || box.y < plot->y.to
                || box.y + 14 > plot->y.from || box_overlaps(&taken->marks, box))
                continue;
            best = box;
            fewest = crossed;
        }
    if (fewest == SIZE_MAX) return;
    box_take(&taken->marks, best.x, best.y, px, 14);
    plot_text(plot, best.x, best.y + 11, "", " class=\"o\"", text);
}
static int has_whiskers(const struct tradeoff *tradeoff, size_t config) {
    return tradeoff->config_count <= FRONT_WHISKERS || is_listed(tradeoff->front, tradeoff->front_count, config);
}
/* Draws the front as steps, because the accuracy of the next member is reached only at its latency. */
static void front_line(struct plot *plot, const struct tradeoff *tradeoff, struct boxes *lines) {
    double left = 0, floor = 0;
    if (!tradeoff->front_count) return;
    text_add_string(plot->out, "<g class=\"s1\"><path class=\"l\" d=\"");
    for (size_t i = 0; i < tradeoff->front_count; i++) {
        double x = scale_place(&plot->x, tradeoff->at_latency[tradeoff->front[i]]),
               y = scale_place(&plot->y, tradeoff->at_accuracy[tradeoff->front[i]]);
        page_add(plot->out, i ? "H%.1fV%.1f" : "M%.1f %.1f", x, y);
        if (i) {
            box_take(lines, left, floor, x - left, 1);
            box_take(lines, x, y, 1, floor - y);
        }
        left = x;
        floor = y;
    }
    box_take(lines, left, floor, plot->x.to - left, 1);
    page_add(plot->out, "H%.1f\"/></g>\n", plot->x.to);
}
static void front_mark(struct plot *plot, const struct report *report, const struct tradeoff *tradeoff, size_t config,
                       struct taken *taken) {
    const vp_bootstrap_point *point = &tradeoff->points[config];
    const vp_estimate across = point_latency(point), up = point_accuracy(point);
    int is_member = is_listed(tradeoff->front, tradeoff->front_count, config), half = is_member ? 7 : 4;
    double left = scale_place(&plot->x, across.low), top = scale_place(&plot->y, up.high);
    double x = scale_place(&plot->x, point->latency), y = scale_place(&plot->y, point->accuracy);
    char name[80], title[512];
    if (!isfinite(x) || !isfinite(y)) return;
    snprintf(title, sizeof title, "%s%s\n%s %s ms\naccuracy %s\non the front in %s %% of the resamples",
             setting_text(&report->results->files[tradeoff->group->paired[config]], name),
             is_member ? ", on the front" : "", percentile_text(report->settings.percentile),
             number_of_estimate(across).text, number_of_estimate(up).text, number_percent(point->membership).text);
    page_add(plot->out, "<g class=\"s%d\">", is_member ? 1 : 0);
    if (has_whiskers(tradeoff, config)) {
        plot_whiskers(plot, x, y, across, up);
        box_take(&taken->lines, left, y, scale_place(&plot->x, across.high) - left, 1);
        box_take(&taken->lines, x, top, 1, scale_place(&plot->y, up.low) - top);
    }
    box_take(&taken->marks, x - half, y - half, 2 * half, 2 * half);
    plot_mark(plot, is_member ? 3 : 0, x, y, is_member ? 5 : 4,
              is_member                     ? 1
              : isfinite(point->membership) ? 0.4 + 0.6 * point->membership
                                            : 0.6,
              title);
    text_add_string(plot->out, "</g>\n");
}
static void front_draw(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                       const char *caption) {
    struct span x_span = span_none(), y_span = span_none();
    struct taken *taken = zeroed(1, sizeof *taken);
    struct plot plot;
    char label[64], name[80];
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        span_add(&x_span, tradeoff->points[i].latency);
        span_add(&y_span, tradeoff->points[i].accuracy);
        if (!has_whiskers(tradeoff, i)) continue;
        span_add_estimate(&x_span, point_latency(&tradeoff->points[i]));
        span_add_estimate(&y_span, point_accuracy(&tradeoff->points[i]));
    }
    span_room(&y_span, 1);
    plot_open(&plot, out, caption, PLOT_WIDE, 380);
    snprintf(label, sizeof label, "%s of %s, %s", percentile_text(report->settings.percentile),
             METRIC_KEYS[report->settings.axis], TERMS[report->settings.axis].unit);
    plot_frame(&plot, x_span, span_is_wide(x_span), y_span, 0, label, "accuracy");
    front_line(&plot, tradeoff, &taken->lines);
    for (int members = 0; members < 2; members++)
        for (size_t i = 0; i < tradeoff->config_count; i++)
            if (is_listed(tradeoff->front, tradeoff->front_count, i) == members)
                front_mark(&plot, report, tradeoff, i, taken);
    for (size_t i = 0; i < tradeoff->front_count; i++)
        plot_name(&plot, taken, scale_place(&plot.x, tradeoff->at_latency[tradeoff->front[i]]),
                  scale_place(&plot.y, tradeoff->at_accuracy[tradeoff->front[i]]),
                  setting_text(&report->results->files[tradeoff->group->paired[tradeoff->front[i]]], name));
    plot_close(&plot);
    free(taken);
}
static void page_front(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff) {
    char caption[256], note[400], few[NO_INTERVAL_BYTES];
    snprintf(caption, sizeof caption, "Accuracy against %s of %s", percentile_text(report->settings.percentile),
             METRIC_KEYS[report->settings.axis]);
    snprintf(note, sizeof note,
             "Mark: one configuration, %s over its %zu samples and %s. Whiskers%s: 95 %% intervals%s%s. Steps: the "
             "front.",
             percentile_text(report->settings.percentile), tradeoff->sample_count,
             tradeoff->is_corpus ? "the metric of the whole corpus, which has no interval" : "mean accuracy",
             tradeoff->config_count > FRONT_WHISKERS ? ", of the front's members" : "",
             no_interval_text(tradeoff, report->settings.percentile, few)[0] ? "; " : "", few);
    figure_open(out, caption, note, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 1, 0, 3, "on the Pareto front");
    legend_item(out, COLOUR_SERIES, 0, 0, 0, "others; stronger colour: more often on the front when resampled");
    legend_close(out);
    front_draw(out, report, tradeoff, caption);
}

/* ---- E2: effects of the knobs */
static const vp_effect *effect_of(const struct tradeoff *tradeoff, int which, vp_effect_kind kind, int32_t knob_a,
                                  int32_t level_a, int32_t knob_b, int32_t level_b) {
    for (size_t i = 0; i < tradeoff->effect_count; i++) {
        const vp_effect *effect = &tradeoff->effects[which][i];
        if (effect->kind == kind && effect->knob_a == knob_a && effect->level_a == level_a && effect->knob_b == knob_b
            && effect->level_b == level_b)
            return effect;
    }
    return NULL;
}
static double effect_value(const vp_effect *effect) { return effect ? effect->estimate : 0; }
static const char *value_label(const struct report *report, int which, char out[48]) {
    if (which) snprintf(out, 48, "mean accuracy");
    else snprintf(out, 48, "mean %s, %s", METRIC_KEYS[report->settings.axis], TERMS[report->settings.axis].unit);
    return out;
}
static const char *knob_label(const struct report *report, const struct tradeoff *tradeoff, int32_t knob) {
    const size_t *examples = tradeoff->level_example[KNOB_SIZE]; /* always filled, whichever knobs vary */
    const struct result_file *file = &report->results->files[tradeoff->group->paired[examples[0]]];
    const int is_tokens = tradeoff->knob_of[knob] == KNOB_SIZE && !knob_is_set(&file->knobs, KNOB_TIER)
                          && knob_is_set(&file->knobs, KNOB_TOKENS);
    return is_tokens ? "image size, target vision tokens" : KNOBS[tradeoff->knob_of[knob]].axis;
}
/* Draws an axis of a knob's levels with equal steps. A level is named if there is room. */
static void plot_levels(struct plot *plot, const struct report *report, const struct tradeoff *tradeoff, int32_t knob) {
    int32_t count = tradeoff->knobs.level_counts[knob];
    double used = -HUGE_VAL, step = (plot->width - PLOT_LEFT - PLOT_RIGHT) / count;
    plot->x = (struct scale){.low = -0.5, .high = count - 0.5, .from = PLOT_LEFT, .to = plot->width - PLOT_RIGHT};
    for (int32_t i = 0; i < count; i++) {
        char text[KNOB_TEXT_BYTES];
        double at = plot->x.from + step * (i + 0.5), half;
        report_level_text(tradeoff, report->results, tradeoff->knob_of[knob], i, text);
        if (tradeoff->knob_of[knob] == KNOB_SIZE) text[strcspn(text, " ")] = 0; /* "576 tokens": the axis has a unit */
        half = text_px(text) / 2;
        if (at - half < used || at - half < 0 || at + half > plot->width) continue;
        plot_text(plot, at, plot->height - PLOT_BOTTOM + 18, "middle", "", text);
        used = at + half + 8;
    }
}
/* The mean at a level of a knob with its interval; NaN if unknown. which: 0 for latency, 1 for accuracy. An accuracy's
 * interval is cut at the range of the scores, because no mean can be beyond. */
static vp_estimate level_mean(const struct tradeoff *tradeoff, int32_t knob, int32_t level, int which) {
    const vp_effect *effect = effect_of(tradeoff, which, VP_EFFECT_MAIN, knob, level, -1, -1);
    double mean = tradeoff->effects[which][0].estimate;
    vp_estimate whole = estimate_none();
    if (!effect) return whole;
    whole = (vp_estimate){mean + effect->estimate, mean + effect->low, mean + effect->high};
    if (which && tradeoff->range.is_known) {
        if (whole.low < tradeoff->range.low) whole.low = tradeoff->range.low;
        if (whole.high > tradeoff->range.high) whole.high = tradeoff->range.high;
    }
    return whole;
}
static void main_effect_draw(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             int32_t knob, int which, const char *caption) {
    struct span span = span_none();
    double mean = tradeoff->effects[which][0].estimate;
    char label[48];
    struct plot plot;
    for (int32_t i = 0; i < tradeoff->knobs.level_counts[knob]; i++)
        span_add_estimate(&span, level_mean(tradeoff, knob, i, which));
    span_room(&span, which);
    plot_open(&plot, out, caption, PLOT_HALF, 260);
    plot.y = scale_make(span, 0, plot.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&plot, report, tradeoff, knob);
    plot_y_axis(&plot);
    plot_labels(&plot, knob_label(report, tradeoff, knob), value_label(report, which, label));
    plot_segment(&plot, "r", plot.x.from, scale_place(&plot.y, mean), plot.x.to, scale_place(&plot.y, mean));
    colour_open(out, COLOUR_SERIES, which ? 1 : 0, 0);
    for (int32_t i = 0; i < tradeoff->knobs.level_counts[knob]; i++) {
        vp_estimate whole = level_mean(tradeoff, knob, i, which);
        char title[256], level[KNOB_TEXT_BYTES];
        snprintf(title, sizeof title, "%s %s: %s", KNOBS[tradeoff->knob_of[knob]].axis,
                 report_level_text(tradeoff, report->results, tradeoff->knob_of[knob], i, level),
                 number_of_estimate(whole).text);
        plot_whiskers(&plot, scale_place(&plot.x, i), scale_place(&plot.y, whole.value), estimate_none(), whole);
        plot_mark(&plot, which ? 3 : 0, scale_place(&plot.x, i), scale_place(&plot.y, whole.value), 4, 1, title);
    }
    text_add_string(out, "</g>");
    plot_close(&plot);
}
/* Draws the mean at each level of a knob, over all other knobs, with its interval. which: 0 for latency, 1 for
 * accuracy. */
static void page_main_effect(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             int32_t knob, int which) {
    char caption[160], note[300];
    for (int32_t i = 0; i < tradeoff->knobs.level_counts[knob]; i++)
        if (!effect_of(tradeoff, which, VP_EFFECT_MAIN, knob, i, -1, -1)) return;
    snprintf(caption, sizeof caption, "%s by %s", which ? "Accuracy" : "Latency", KNOBS[tradeoff->knob_of[knob]].axis);
    snprintf(note, sizeof note,
             "Mark: mean over all samples and all other knobs. Whiskers: 95 %% interval of the difference from the "
             "mean of all configurations (dashed)%s.",
             which && tradeoff->range.is_known ? ", cut at the range of the scores" : "");
    figure_open(out, caption, note, 0);
    main_effect_draw(out, report, tradeoff, knob, which, caption);
}
/* The mean at a pair of levels: the sum of its effects. */
static double pair_mean(const struct tradeoff *tradeoff, int which, int32_t knob_a, int32_t level_a, int32_t knob_b,
                        int32_t level_b) {
    return tradeoff->effects[which][0].estimate
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_MAIN, knob_a, level_a, -1, -1))
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_MAIN, knob_b, level_b, -1, -1))
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_PAIR, knob_a, level_a, knob_b, level_b));
}
enum { LINES_SHOWN = 8 };

/* Two knobs; which: 0 for latency, 1 for accuracy. */
struct knob_pair { int32_t knob_a, knob_b; int which; };

/* Draws the line of a level of the second knob over the levels of the first, with a mark at each. */
static void interaction_line(struct plot *plot, const struct report *report, const struct tradeoff *tradeoff,
                             const struct knob_pair *pair, int32_t level_b, int sign) {
    const int kind_a = tradeoff->knob_of[pair->knob_a], kind_b = tradeoff->knob_of[pair->knob_b];
    int32_t levels = tradeoff->knobs.level_counts[pair->knob_a];
    text_add_string(plot->out, "<path class=\"l\" d=\"");
    for (int32_t i = 0; i < levels; i++)
        page_add(plot->out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&plot->x, i),
                 scale_place(&plot->y, pair_mean(tradeoff, pair->which, pair->knob_a, i, pair->knob_b, level_b)));
    text_add_string(plot->out, "\"/>");
    for (int32_t i = 0; i < levels; i++) {
        const vp_effect *effect =
            effect_of(tradeoff, pair->which, VP_EFFECT_PAIR, pair->knob_a, i, pair->knob_b, level_b);
        double mean = pair_mean(tradeoff, pair->which, pair->knob_a, i, pair->knob_b, level_b);
        char title[512], first[KNOB_TEXT_BYTES], second[KNOB_TEXT_BYTES];
        const vp_estimate over = {.value = effect ? effect->estimate : 0, .low = effect ? effect->low : (double)NAN,
            .high = effect ? effect->high : (double)NAN};
        snprintf(title, sizeof title, "%s %s, %s %s: %s\nbeyond the sum of the two effects: %s", KNOBS[kind_a].axis,
                 report_level_text(tradeoff, report->results, kind_a, i, first), KNOBS[kind_b].axis,
                 report_level_text(tradeoff, report->results, kind_b, level_b, second), number_short(mean).text,
                 number_of_estimate(over).text);
        plot_mark(plot, sign, scale_place(&plot->x, i), scale_place(&plot->y, mean), 3.4, 1, title);
    }
    text_add_string(plot->out, "</g>\n");
}
static void interaction_draw(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             const struct knob_pair *pair, const char *caption) {
    int32_t levels = tradeoff->knobs.level_counts[pair->knob_a], lines = tradeoff->knobs.level_counts[pair->knob_b];
    int shown = lines < LINES_SHOWN ? lines : LINES_SHOWN;
    struct span span = span_none();
    struct plot plot;
    char label[48];
    for (int32_t i = 0; i < levels; i++)
        for (int32_t k = 0; k < lines; k++)
            span_add(&span, pair_mean(tradeoff, pair->which, pair->knob_a, i, pair->knob_b, k));
    span_room(&span, pair->which);
    plot_open(&plot, out, caption, PLOT_HALF, 280);
    plot.y = scale_make(span, 0, plot.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&plot, report, tradeoff, pair->knob_a);
    plot_y_axis(&plot);
    plot_labels(&plot, knob_label(report, tradeoff, pair->knob_a), value_label(report, pair->which, label));
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_RAMP, at, shown);
        interaction_line(&plot, report, tradeoff, pair, k, at);
    }
    plot_close(&plot);
}
/* Draws a line for each level of the second knob over the levels of the first. Lines that are not parallel show an
 * interaction. */
static void page_interaction(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             const struct knob_pair *pair) {
    int32_t lines = tradeoff->knobs.level_counts[pair->knob_b];
    int shown = lines < LINES_SHOWN ? lines : LINES_SHOWN;
    char caption[160], level[KNOB_TEXT_BYTES];
    snprintf(caption, sizeof caption, "%s by %s and %s", pair->which ? "Accuracy" : "Latency",
             KNOBS[tradeoff->knob_of[pair->knob_a]].axis, KNOBS[tradeoff->knob_of[pair->knob_b]].axis);
    figure_open(out, caption,
                "Mark: mean over all samples and all other knobs. Line: one level of the second knob; lines that are "
                "not parallel show an interaction.",
                0);
    legend_open(out);
    page_text(out, KNOBS[tradeoff->knob_of[pair->knob_b]].axis);
    text_add_string(out, ": ");
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at >= 0)
            legend_item(out, COLOUR_RAMP, at, shown, at,
                        report_level_text(tradeoff, report->results, tradeoff->knob_of[pair->knob_b], k, level));
    }
    legend_close(out);
    interaction_draw(out, report, tradeoff, pair, caption);
}
static void page_coupling(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff) {
    if (!tradeoff->order) {
        page_element(out, "p",
                     tradeoff->is_loaded ? "Effects of knobs: none under load, where requests are not independent."
                     : tradeoff->knobs.knob_count ? "Effects of knobs: this grid cannot separate them."
                                                : "No knob varies.");
        return;
    }
    if (tradeoff->shares[0]) {
        struct table shares = variance_shares(tradeoff);
        text_add_string(out, "<div class=\"wide\"><p>Shares of the variance between the configurations' means, "
                             "%</p>\n");
        page_table_of(out, "Shares of the variance", &shares);
        text_add_string(out, "</div>");
        free((void *)shares.rows);
        page_more_open(out, "Latency and accuracy by each knob, and by pairs of knobs");
    }
    for (int32_t first = 0; first < tradeoff->knobs.knob_count; first++)
        for (int which = 0; which < 2; which++)
            if (tradeoff->effects[which]) page_main_effect(out, report, tradeoff, first, which);
    for (int32_t first = 0; first < tradeoff->knobs.knob_count && tradeoff->order == 2; first++)
        for (int32_t second = first + 1; second < tradeoff->knobs.knob_count; second++)
            for (int which = 0; which < 2; which++) {
                const struct knob_pair pair = {first, second, which};
                if (tradeoff->effects[which]) page_interaction(out, report, tradeoff, &pair);
            }
    if (tradeoff->shares[0]) page_more_close(out);
}

/* ---- the sections */
/* Shows each data set's trade-off, or the reason why it has none. */
static void page_each(struct text_buffer *out, const struct report *report,
                      void (*show)(struct text_buffer *, const struct report *, const struct tradeoff *)) {
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        page_set_open(out, report->results, group);
        if (tradeoff->reason[0] && !(show == page_coupling && tradeoff->order))
            page_element(out, "p", tradeoff->reason);
        else {
            text_add_string(out, "<div class=\"grid\">");
            show(out, report, tradeoff);
            text_add_string(out, "</div>");
        }
        text_add_string(out, "</div>\n");
    }
    page_section_close(out);
}
void page_fronts(struct text_buffer *out, const struct report *report) {
    page_section_open(out, "front", "Pareto front");
    page_each(out, report, page_front);
}
void page_knobs(struct text_buffer *out, const struct report *report) {
    page_section_open(out, "knobs", "What each knob buys");
    page_each(out, report, page_coupling);
}
