/* page_latency.c: the page's sections about where a request's time goes (E1): stages and scaling. */
#include "page/report_page.h"

#include "base/document.h"
#include "page/page.h"
#include "page/plot.h"
#include "report/report_text.h"
#include "results/metrics.h"
#include "vlmprof_stages.h"

#include <math.h>

/* ---- E1: stage stack */
enum { STACK_OTHER = VP_STAGE_COUNT, STACK_OUTSIDE, STACK_PARTS, STACK_ROWS = 24 };

/* The colour of a stage; small stages share grey. */
static int stack_series(int part) {
    switch (part) {
    case VP_STAGE_PREPROCESS: return 5;
    case VP_STAGE_VIT: return 0;
    case VP_STAGE_CONNECTOR: return 2;
    case VP_STAGE_EMBED: return 7;
    case VP_STAGE_PREFILL: return 3;
    case VP_STAGE_HEAD: return 4;
    case VP_STAGE_PRUNE: return 6;
    case VP_STAGE_DECODE: return 1;
    case STACK_OUTSIDE: return 8;
    default: return SERIES_GREY;
    }
}
static const char *stack_part_name(int part, int is_coarse) {
    if (is_coarse)
        return part == VP_STAGE_VIT       ? "vision"
               : part == VP_STAGE_PREFILL ? "prefill"
               : part == VP_STAGE_DECODE  ? "decode"
                                          : "rest";
    return part == STACK_OTHER     ? "h2d, sample, detok"
           : part == STACK_OUTSIDE ? "in no stage"
                                   : vp_stage_name((vp_stage)part);
}
/* Computes the mean ms of the parts of a request. is_coarse: the files have no stages, so the parts are vision, prefill
 * and decode. */
static void stack_parts(const struct decomposition *decomposition, int is_coarse, double parts[STACK_PARTS]) {
    double rest = decomposition->mean[METRIC_TOTAL];
    memset(parts, 0, STACK_PARTS * sizeof *parts);
    for (int stage = 0; stage < VP_STAGE_COUNT && !is_coarse; stage++)
        if (decomposition->stages[stage].mean > 0)
            parts[stack_series(stage) == SERIES_GREY ? STACK_OTHER : stage] += decomposition->stages[stage].mean;
    if (is_coarse) {
        if (isfinite(decomposition->mean[METRIC_VISION])) parts[VP_STAGE_VIT] = decomposition->mean[METRIC_VISION];
        if (isfinite(decomposition->mean[METRIC_PREFILL]))
            parts[VP_STAGE_PREFILL] = decomposition->mean[METRIC_PREFILL];
        if (isfinite(decomposition->mean[METRIC_DECODE])) parts[VP_STAGE_DECODE] = decomposition->mean[METRIC_DECODE];
    }
    for (int i = 0; i < STACK_PARTS; i++) rest -= parts[i];
    if (rest > 0) parts[STACK_OUTSIDE] = rest;
}
/* The length of a bar; it shows if the parts add up to more than the total. */
static double stack_sum(const struct decomposition *decomposition, int is_coarse) {
    double parts[STACK_PARTS], sum = 0;
    stack_parts(decomposition, is_coarse, parts);
    for (int i = 0; i < STACK_PARTS; i++) sum += parts[i];
    return sum;
}
static void stack_title(const struct report *report, const struct decomposition *decomposition, int is_coarse,
                        struct text_buffer *title) {
    double parts[STACK_PARTS];
    char name[160];
    stack_parts(decomposition, is_coarse, parts);
    text_add_string(title, report_full_name(report->results, decomposition->file, name));
    page_add(title, ": %s ms", number_short(decomposition->mean[METRIC_TOTAL]).text);
    for (int i = 0; i < STACK_PARTS; i++)
        if (parts[i] > 0)
            page_add(title, "\n%s %s ms, %.1f %%", stack_part_name(i, is_coarse), number_short(parts[i]).text,
                     100 * parts[i] / decomposition->mean[METRIC_TOTAL]);
}
struct ranked { size_t at; double key; };

/* The configurations of one figure; at: indices into report->items. */
struct stack {
    struct text_buffer *out; const struct report *report; int is_coarse; const struct ranked *rows; size_t count;
};

static void stack_legend(const struct stack *stack) {
    struct text_buffer *out = stack->out;
    int seen[STACK_PARTS] = {0};
    for (size_t i = 0; i < stack->count; i++) {
        const struct decomposition *decomposition = &stack->report->items[stack->rows[i].at];
        double parts[STACK_PARTS];
        stack_parts(decomposition, stack->is_coarse, parts);
        for (int k = 0; k < STACK_PARTS; k++) seen[k] |= parts[k] >= 0.002 * decomposition->mean[METRIC_TOTAL];
    }
    legend_open(out);
    for (int k = 0; k < STACK_PARTS; k++)
        if (seen[k])
            legend_item(out, COLOUR_SERIES, stack_series(k), 0, SIGN_BAR, stack_part_name(k, stack->is_coarse));
    legend_close(out);
}
static int by_key(const void *left_item, const void *right_item) {
    const struct ranked *left = left_item, *right = right_item;
    return left->key < right->key ? -1 : left->key > right->key ? 1 : left->at < right->at ? -1 : left->at > right->at;
}
enum { BAR_PX = 15, ROW_PX = 20 }; /* heights */

static void stack_row(const struct stack *stack, struct plot *plot, size_t index, double y) {
    const struct decomposition *decomposition = &stack->report->items[stack->rows[index].at];
    double parts[STACK_PARTS], at = 0;
    struct text_buffer title = {NULL, 0, 0};
    char name[80];
    stack_parts(decomposition, stack->is_coarse, parts);
    stack_title(stack->report, decomposition, stack->is_coarse, &title);
    setting_text(decomposition->file, name);
    text_fit(name, plot->x.from - 8);
    plot_text(plot, plot->x.from - 8, y + 12, "end", "", name);
    text_add_string(plot->out, "<g class=\"q\">");
    plot_title(plot->out, title.data);
    for (int i = 0; i < STACK_PARTS; i++) {
        double from = scale_place(&plot->x, at), to = scale_place(&plot->x, at + parts[i]);
        at += parts[i];
        if (to - from >= 0.05)
            page_add(plot->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>",
                     stack_series(i), from, y, to - from, (int)BAR_PX);
    }
    text_add_string(plot->out, "</g>");
    plot_text(plot, scale_place(&plot->x, at) + 6, y + 12, "", "",
              number_short(decomposition->mean[METRIC_TOTAL]).text);
    text_add_string(plot->out, "\n");
    free(title.data);
}
static void stack_rows(const struct stack *stack, const char *caption) {
    struct plot plot;
    struct span span = {0, 0, 0};
    double longest = 60;
    for (size_t i = 0; i < stack->count; i++) {
        char name[80];
        const double px = text_px(setting_text(stack->report->items[stack->rows[i].at].file, name)) + 16;
        span_add(&span, stack_sum(&stack->report->items[stack->rows[i].at], stack->is_coarse));
        if (px > longest) longest = px;
    }
    figure_open(stack->out, caption,
                stack->report->loads.count ? "Bar: one configuration. Its parts are means over the requests under "
                                             "load; the number is mean T_total, ms."
                : "Bar: one configuration. Its parts are means over the samples; the number is mean T_total, ms.", 1);
    stack_legend(stack);
    plot_open(&plot, stack->out, caption, PLOT_WIDE, (double)stack->count * ROW_PX + 50);
    plot.x = scale_make(span, 0, fmin(longest, plot.width / 2), plot.width - 64); /* names take at most half */
    plot.y.from = plot.height - 42;
    plot_x_axis(&plot);
    plot_text(&plot, (plot.x.from + plot.x.to) / 2, plot.height - 6, "middle", " class=\"n\"", "mean T_total, ms");
    for (size_t i = 0; i < stack->count; i++) stack_row(stack, &plot, i, 3 + ROW_PX * (double)i);
    plot_close(&plot);
}
static void page_stack(struct text_buffer *out, const struct report *report, size_t group_index) {
    const struct result_group *group = &report->results->groups[group_index];
    size_t count = 0;
    int has_front = 0;
    struct ranked *rows = zeroed(group->count, sizeof *rows);
    struct stack shown = {out, report, 1, rows, 0};
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) shown.is_coarse &= !stage_is_known(report, stage);
    for (size_t i = group->first; i < group->first + group->count; i++) {
        if (!(report->items[i].mean[METRIC_TOTAL] > 0)) continue;
        rows[count].at = i;
        rows[count++].key = report->items[i].mean[METRIC_TOTAL];
        has_front |= is_on_front(report, i);
    }
    if (count > STACK_ROWS) qsort(rows, count, sizeof *rows, by_key);
    for (size_t i = 0; i < count && shown.count < STACK_ROWS; i++)
        if (count <= STACK_ROWS || (has_front ? is_on_front(report, rows[i].at)
                                              : i < STACK_ROWS / 2 || i >= count - STACK_ROWS / 2))
            rows[shown.count++] = rows[i];
    if (count)
        stack_rows(&shown, count <= STACK_ROWS ? "Where a request's time goes"
                           : has_front ? "Where a request's time goes: configurations on a Pareto front"
                                       : "Where a request's time goes: the fastest and the slowest dozen");
    free(rows);
}

/* ---- E1: scaling */
enum { CURVES_SHOWN = 6 };

/* A mean whose interval is drawn only down to 0: no time is below. */
static vp_estimate drawn_mean(const struct curve_bin *bin) {
    vp_estimate mean = bin->mean;
    if (mean.low < 0) mean.low = 0;
    return mean;
}
static void curve_span(const struct curve *curve, struct span *x_span, struct span *y_span) {
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        span_add(x_span, curve->bins[bin].mean_x);
        span_add_estimate(y_span, drawn_mean(&curve->bins[bin]));
    }
    for (size_t bin = 0; bin<curve->bin_count; bin += curve->bin_count> 1 ? curve->bin_count - 1 : 1)
        span_add(y_span, curve->intercept.value + curve->slope.value * curve->bins[bin].mean_x);
}
static void curve_line(struct plot *plot, const struct curve *curve, const char *kind) {
    double from = curve->bins[0].mean_x, to = curve->bins[curve->bin_count - 1].mean_x,
           from_value = curve->intercept.value + curve->slope.value * from,
           to_value = curve->intercept.value + curve->slope.value * to;
    if (isfinite(from_value) && isfinite(to_value))
        plot_segment(plot, kind, scale_place(&plot->x, from), scale_place(&plot->y, from_value),
                     scale_place(&plot->x, to), scale_place(&plot->y, to_value));
}
static void curve_marks(struct plot *plot, const struct curve *curve, int sign) {
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        char title[256];
        const struct curve_bin *mark = &curve->bins[bin];
        double x = scale_place(&plot->x, mark->mean_x), y = scale_place(&plot->y, mark->mean.value);
        snprintf(title, sizeof title, "%s\n%s %s: mean %s ms, %zu samples", curve->label, curve->x_name,
                 number_plain(mark->mean_x).text, number_of_estimate(mark->mean).text, mark->count);
        plot_whiskers(plot, x, y, estimate_none(), drawn_mean(mark));
        plot_mark(plot, sign, x, y, 3.6, 1, title);
    }
}
/* "k4 b12: 12.3 [12.0, 12.6] us/token". steepest is the largest slope of the legend, so that all its slopes get the
 * same unit. */
static void slope_text(const struct curve *curve, double steepest, char out[160]) {
    /* fractions of a second */
    static const struct { double scale; const char *prefix; } units[] = {{1, "m"}, {1e3, "\xC2\xB5"}, {1e6, "n"}};
    int unit = steepest >= 1 ? 0 : steepest >= 1e-3 ? 1 : 2;
    if (!isfinite(curve->slope.value)) snprintf(out, 160, "%s: all equal, no line", curve->label);
    else
        snprintf(out, 160, "%s: %s %s%s", curve->label,
                 number_estimate(units[unit].scale, curve->slope.value, curve->slope.low, curve->slope.high).text,
                 units[unit].prefix, curve->unit + 1); /* units begin with ms */
}
/* The curves of one name in a data set, and the range of their plot. */
struct curve_plot { struct ranked *order; size_t count; struct span x_span, y_span; double steepest; };

/* Collects the curves. If there are too many to show each one, sorts them by slope. order is malloc'ed. */
static void collect_curves(const struct report *report, size_t group, const char *name, struct curve_plot *collected) {
    *collected = (struct curve_plot){.order = zeroed(report->curves.count, sizeof *collected->order),
                                     .x_span = span_none()};
    for (size_t i = 0; i < report->curves.count; i++) {
        const struct curve *curve = &report->curves.items[i];
        double slope = curve->slope.value;
        if (curve->group != group || strcmp(curve->name, name) || !curve->bin_count) continue;
        collected->order[collected->count].at = i;
        collected->order[collected->count++].key = isfinite(slope) ? slope : 0;
        if (fabs(slope) > collected->steepest) collected->steepest = fabs(slope);
        curve_span(curve, &collected->x_span, &collected->y_span);
    }
    if (collected->count > CURVES_SHOWN) qsort(collected->order, collected->count, sizeof *collected->order, by_key);
}
static void curves_legend(struct text_buffer *out, const struct report *report, const struct curve_plot *collected) {
    legend_open(out);
    for (size_t i = 0; i < collected->count; i++) {
        char text[160];
        int at = shown_at(i, collected->count, CURVES_SHOWN);
        if (at < 0) continue;
        slope_text(&report->curves.items[collected->order[i].at], collected->steepest, text);
        legend_item(out, COLOUR_SERIES, at, 0, at, text);
    }
    legend_close(out);
}
/* Explains marks, whiskers and lines. */
static void curve_note(const char *name, size_t count, char out[600]) {
    snprintf(out, 600,
             "Mark: mean over the samples with that x (or, with over 12 x values, a twelfth of the samples)%s. "
             "Whiskers: 95 %% interval of the mean, for at least 6 samples. Line: least squares through all samples%s",
             strcmp(name, "vision") ? "" : "; a sample counts with its mean over all settings of the language model",
             count <= CURVES_SHOWN ? "; its slope is in the legend."
                                   : ". A few settings, from the smallest to the largest slope, are coloured; the "
                                     "others are grey lines.");
}
/* Draws a plot of the curves of one name. If there are many, those whose slopes are evenly spread from smallest to
 * largest have marks and a colour, and all others are thin lines. */
static void page_curves(struct text_buffer *out, const struct report *report, size_t group, const char *name) {
    struct curve_plot collected;
    collect_curves(report, group, name, &collected);
    if (collected.x_span.low < collected.x_span.high) { /* one x shows no growth */
        const struct curve *curves = report->curves.items, *first = curves + collected.order[0].at;
        struct plot plot;
        char caption[256], label[256], note[600];
        snprintf(label, sizeof label, "%s, ms", first->y_name);
        snprintf(caption, sizeof caption, "%s against %s", first->y_name, first->x_name);
        curve_note(name, collected.count, note);
        figure_open(out, caption, note, 0);
        curves_legend(out, report, &collected);
        plot_open(&plot, out, caption, PLOT_HALF, 320);
        plot_frame(&plot, collected.x_span, 0, collected.y_span, 0, first->x_name, label);
        for (size_t i = 0; i < collected.count; i++)
            if (shown_at(i, collected.count, CURVES_SHOWN) < 0) curve_line(&plot, &curves[collected.order[i].at], "t");
        for (size_t i = 0; i < collected.count; i++) {
            const int at = shown_at(i, collected.count, CURVES_SHOWN);
            if (at < 0) continue;
            colour_open(out, COLOUR_SERIES, at, 0);
            curve_line(&plot, &curves[collected.order[i].at], "l");
            curve_marks(&plot, &curves[collected.order[i].at], at);
            text_add_string(out, "</g>\n");
        }
        plot_close(&plot);
    }
    free(collected.order);
}

static void page_all_curves(struct text_buffer *out, const struct report *report, size_t group) {
    static const char *const kinds[] = {"vision", "image", "prefill", "decode", "decode context"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) page_curves(out, report, group, kinds[i]);
}

/* ---- the sections */
/* Adds the figures of each data set that has any. */
static void page_grids(struct text_buffer *out, const struct report *report,
                       void (*show)(struct text_buffer *, const struct report *, size_t)) {
    for (size_t group = 0; group < report->results->group_count; group++) {
        struct text_buffer figures = {NULL, 0, 0};
        show(&figures, report, group);
        if (figures.bytes) {
            page_set_open(out, report->results, group);
            page_add(out, "<div class=\"grid\">%s</div></div>\n", figures.data);
        }
        free(figures.data);
    }
}
void page_stages(struct text_buffer *out, const struct report *report) {
    struct text_buffer heads = {NULL, 0, 0};
    struct text_list cells = {NULL, 0};
    page_section_open(out, "stages", "Where the time goes");
    page_items(out, &report->findings, report->stage_findings, report->findings.count);
    /* for servers, the findings explain that there is nothing to draw */
    if (!are_all_served(report->results)) page_grids(out, report, page_stack);
    if (parts_cells(report, &heads, &cells)) {
        page_element(out, "h3", "Parts of prefill and decode, % of their time on the device (--kernel_pass)");
        page_cells(out, "Parts of prefill and decode", heads.data, &cells);
    }
    free(heads.data);
    text_list_free(&cells);
    page_section_close(out);
}
void page_scaling(struct text_buffer *out, const struct report *report) {
    struct text_buffer grids = {NULL, 0, 0};
    page_grids(&grids, report, page_all_curves);
    if (grids.bytes) {
        page_folded_open(out, "scaling", "How the time grows",
                         "Stage times against image tokens, prompt length and decode steps.", 0);
        text_add_string(out, grids.data);
        page_folded_close(out);
    }
    free(grids.data);
}
