/* report_page.c: the report as one page of HTML.
 * No network, no library; plots are SVG that is made here. Texts of files come in by page_text alone, which leaves
 * nothing of them that a browser would take for markup. Colours are those of Okabe and Ito, for all kinds of sight. */
#include "report/report_page.h"

#include "base/document.h"
#include "base/metrics.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "report/plot.h"
#include "report/report_text.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_latency.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- E1: stage stack */
enum { STACK_OTHER = VP_STAGE_COUNT, STACK_OUTSIDE, STACK_PARTS, STACK_ROWS = 24 };

/* Stages with a colour of their own; the small ones share grey. */
static int stack_series(int part) {
    switch (part) {
    case VP_STAGE_PREPROCESS: return 5;
    case VP_STAGE_VIT: return 0;
    case VP_STAGE_CONNECTOR: return 2;
    case VP_STAGE_EMBED: return 7;
    case VP_STAGE_PREFILL: return 3;
    case VP_STAGE_HEAD: return 4;
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
/* Mean ms of the parts of a request; files without stages have the sums alone. */
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
/* the length of its bar: parts that are more than the total show */
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
static void stack_legend(struct text_buffer *out, const struct report *report, int is_coarse) {
    int seen[STACK_PARTS] = {0};
    for (size_t i = 0; i < report->results->count; i++) {
        double parts[STACK_PARTS];
        stack_parts(&report->items[i], is_coarse, parts);
        for (int k = 0; k < STACK_PARTS; k++) seen[k] |= parts[k] >= 0.0005 * report->items[i].mean[METRIC_TOTAL];
    }
    legend_open(out);
    for (int k = 0; k < STACK_PARTS; k++)
        if (seen[k]) legend_item(out, COLOUR_SERIES, stack_series(k), 0, -1, stack_part_name(k, is_coarse));
    legend_close(out);
}
struct ranked { size_t at; double key; };
static int by_key(const void *left_item, const void *right_item) {
    const struct ranked *left = (const struct ranked *)left_item, *right = (const struct ranked *)right_item;
    return left->key < right->key ? -1 : left->key > right->key ? 1 : left->at < right->at ? -1 : left->at > right->at;
}
static void stack_row(struct plot *plot, const struct report *report, const struct decomposition *decomposition,
                      int is_coarse, double y) {
    double parts[STACK_PARTS], at = 0;
    struct text_buffer title = {NULL, 0, 0};
    char name[160];
    struct number_text total = number_short(decomposition->mean[METRIC_TOTAL]);
    stack_parts(decomposition, is_coarse, parts);
    stack_title(report, decomposition, is_coarse, &title);
    plot_text(plot, plot->x.from - 8, y + 12, "end", "", report_full_name(report->results, decomposition->file, name));
    text_add_string(plot->out, "<g><title>");
    page_text(plot->out, title.data);
    text_add_string(plot->out, "</title>");
    for (int i = 0; i < STACK_PARTS; i++) {
        double from = scale_place(&plot->x, at), to = scale_place(&plot->x, at + parts[i]);
        at += parts[i];
        if (to - from >= 0.05)
            page_add(plot->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>",
                     stack_series(i), from, y, to - from);
    }
    text_add_string(plot->out, "</g>");
    plot_text(plot, scale_place(&plot->x, at) + 6, y + 12, "", "", total.text);
    text_add_string(plot->out, "\n");
    free(title.data);
}
static void stack_rows(struct text_buffer *out, const struct report *report, int is_coarse, const struct ranked *rows,
                       size_t count, const char *caption) {
    struct plot plot;
    struct span span = {0, 0};
    double left = 60;
    for (size_t i = 0; i < count; i++) {
        char name[160];
        double px = text_px(report_full_name(report->results, report->items[rows[i].at].file, name)) + 16;
        span_add(&span, stack_sum(&report->items[rows[i].at], is_coarse));
        if (px > left) left = px;
    }
    figure_open(out, caption, 1);
    stack_legend(out, report, is_coarse);
    plot_open(&plot, out, caption, 1000, (double)count * 20 + 50);
    plot.x = scale_make(span, 0, left, plot.width - 64);
    plot.y.from = plot.height - 42;
    plot_x_axis(&plot);
    plot_text(&plot, (plot.x.from + plot.x.to) / 2, plot.height - 6, "middle", " class=\"n\"", "mean T_total, ms");
    for (size_t i = 0; i < count; i++)
        stack_row(&plot, report, &report->items[rows[i].at], is_coarse, 3 + 20 * (double)i);
    plot_close(&plot);
}
/* All configurations as thin bars, the fastest first: one path a part, and a clear field a configuration for the
 * pointer. */
static void stack_all(struct text_buffer *out, const struct report *report, int is_coarse, const struct ranked *rows,
                      size_t count) {
    static const char caption[] = "All configurations, from fastest to slowest";
    struct plot plot;
    struct span y_span = {0, 0}, x_span = {0, 0};
    x_span.high = (double)count;
    for (size_t i = 0; i < count; i++) span_add(&y_span, stack_sum(&report->items[rows[i].at], is_coarse));
    figure_open(out, caption, 1);
    plot_open(&plot, out, caption, 1000, 300);
    plot.x = scale_make(x_span, 0, PLOT_LEFT, plot.width - PLOT_RIGHT);
    plot.x.low = 0;
    plot.x.high = (double)count;
    plot.y = scale_make(y_span, 0, plot.height - 30, PLOT_TOP);
    plot_y_axis(&plot);
    plot_labels(&plot, "configurations, ascending by mean T_total", "mean T_total, ms");
    for (int part = 0; part < STACK_PARTS; part++) {
        page_add(out, "<path class=\"a s%d\" d=\"", stack_series(part));
        for (size_t i = 0; i < count; i++) {
            double parts[STACK_PARTS], below = 0, from = scale_place(&plot.x, (double)i),
                                       wide = scale_place(&plot.x, (double)i + 1) - from, high, low;
            stack_parts(&report->items[rows[i].at], is_coarse, parts);
            for (int k = 0; k < part; k++) below += parts[k];
            low = scale_place(&plot.y, below);
            high = scale_place(&plot.y, below + parts[part]);
            if (low - high >= 0.05)
                page_add(out, "M%.1f %.1fv%.1fh%.1fv%.1fz", from, low, high - low, wide * 0.94, low - high);
        }
        text_add_string(out, "\"/>\n");
    }
    for (size_t i = 0; i < count; i++) {
        struct text_buffer title = {NULL, 0, 0};
        stack_title(report, &report->items[rows[i].at], is_coarse, &title);
        page_add(out, "<rect class=\"h\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.0f\"><title>",
                 scale_place(&plot.x, (double)i), PLOT_TOP, (plot.x.to - plot.x.from) / (double)count,
                 plot.y.from - PLOT_TOP);
        page_text(out, title.data);
        text_add_string(out, "</title></rect>\n");
        free(title.data);
    }
    plot_close(&plot);
}
static int is_on_front(const struct report *report, size_t file) {
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        for (size_t i = 0; i < tradeoff->front_count; i++)
            if (tradeoff->group->paired[tradeoff->front[i]] == file) return 1;
    }
    return 0;
}
static void page_stack(struct text_buffer *out, const struct report *report) {
    size_t count = 0, shown = 0;
    int is_coarse = 1, has_front = 0;
    struct ranked *rows = zeroed(report->results->count, sizeof *rows),
                  *few = zeroed(report->results->count, sizeof *few);
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) is_coarse &= !stage_is_known(report, stage);
    for (size_t i = 0; i < report->results->count; i++) {
        if (!(report->items[i].mean[METRIC_TOTAL] > 0)) continue;
        rows[count].at = i;
        rows[count++].key = report->items[i].mean[METRIC_TOTAL];
        has_front |= is_on_front(report, i);
    }
    if (count <= STACK_ROWS)
        stack_rows(out, report, is_coarse, rows, count, "Where the time of a request goes: means over samples");
    else {
        qsort(rows, count, sizeof *rows, by_key);
        for (size_t i = 0; i < count && shown < STACK_ROWS; i++)
            if (has_front ? is_on_front(report, rows[i].at) : i < STACK_ROWS / 2 || i >= count - STACK_ROWS / 2)
                few[shown++] = rows[i];
        stack_rows(out, report, is_coarse, few, shown,
                   has_front
                       ? "Where the time of a request goes: configurations on a Pareto front, means over samples"
                       : "Where the time of a request goes: the fastest and the slowest dozen, means over samples");
        stack_all(out, report, is_coarse, rows, count);
    }
    free(rows);
    free(few);
}

/* ---- E1: prefill and decode by part, where kernels were timed one by one */
enum { PARTS_IDLE = VP_PART_COUNT, PARTS_CONFIGURATIONS = 12 };

static int part_series(int part) {
    switch (part) {
    case VP_PART_DENSE: return 0;
    case VP_PART_ATTENTION: return 1;
    case VP_PART_ROUTER: return 5;
    case VP_PART_EXPERTS: return 3;
    case VP_PART_HEAD: return 4;
    case PARTS_IDLE: return 8;
    default: return SERIES_GREY;
    }
}
static const char *part_text(int part) { return part == PARTS_IDLE ? "idle" : vp_part_name((vp_part)part); }
static double part_share(const struct stage_cost *cost, int part) {
    return part == PARTS_IDLE ? cost->idle_share : cost->parts[part];
}
static void parts_row(struct plot *plot, const struct report *report, const struct decomposition *decomposition,
                      int stage, double y) {
    const struct stage_cost *cost = &decomposition->stages[stage];
    char name[160];
    double at = 0;
    plot_text(plot, plot->x.from - 8, y + 12, "end", "", report_full_name(report->results, decomposition->file, name));
    plot_text(plot, 4, y + 12, "", "", vp_stage_name((vp_stage)stage));
    page_add(plot->out, "<g><title>%s", vp_stage_name((vp_stage)stage));
    for (int part = 0; part <= PARTS_IDLE; part++)
        if (part_share(cost, part) > 0)
            page_add(plot->out, "\n%s %.1f %%", part_text(part), 100 * part_share(cost, part));
    text_add_string(plot->out, "</title>");
    for (int part = 0; part <= PARTS_IDLE; part++) {
        double from = scale_place(&plot->x, 100 * at), to;
        if (!(part_share(cost, part) > 0)) continue;
        at += part_share(cost, part);
        to = scale_place(&plot->x, 100 * at);
        if (to - from >= 0.05)
            page_add(plot->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>",
                     part_series(part), from, y, to - from);
    }
    text_add_string(plot->out, "</g>\n");
}
static void page_parts(struct text_buffer *out, const struct report *report) {
    static const char caption[] = "What prefill and decode are made of (--kernel_pass), at most a dozen configurations";
    struct plot plot;
    struct span span = {0, 100};
    double left = 60;
    size_t rows[PARTS_CONFIGURATIONS], count = 0;
    int seen[PARTS_IDLE + 1] = {0};
    for (size_t i = 0; i < report->results->count && count < PARTS_CONFIGURATIONS; i++) {
        char name[160];
        double px = text_px(report_full_name(report->results, report->items[i].file, name)) + 72;
        if (!stage_has_parts(&report->items[i].stages[VP_STAGE_PREFILL])
            && !stage_has_parts(&report->items[i].stages[VP_STAGE_DECODE]))
            continue;
        for (int k = 0; k < 2; k++)
            for (int part = 0; part <= PARTS_IDLE; part++)
                seen[part] |= part_share(&report->items[i].stages[PART_STAGES[k]], part) >= 0.0005;
        if (px > left) left = px;
        rows[count++] = i;
    }
    if (!count) return;
    figure_open(out, caption, 1);
    legend_open(out);
    for (int part = 0; part <= PARTS_IDLE; part++)
        if (seen[part]) legend_item(out, COLOUR_SERIES, part_series(part), 0, -1, part_text(part));
    legend_close(out);
    plot_open(&plot, out, caption, 1000, (double)count * 42 + 50);
    plot.x = scale_make(span, 0, left, plot.width - 64);
    plot.y.from = plot.height - 42;
    plot_x_axis(&plot);
    plot_text(&plot, (plot.x.from + plot.x.to) / 2, plot.height - 6, "middle", " class=\"n\"",
              "% of the stage's time on the device");
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++)
            parts_row(&plot, report, &report->items[rows[i]], PART_STAGES[k], 3 + 42 * (double)i + 18 * k);
    plot_close(&plot);
}

/* ---- E1: scaling */
enum { CURVES_SHOWN = 6 };

/* which of `most` evenly spread ones the rank-th is; -1: none */
static int shown_at(size_t rank, size_t count, size_t most) {
    if (count <= most) return (int)rank;
    for (size_t k = 0; k < most; k++) if (rank == k * (count - 1) / (most - 1)) return (int)k;
    return -1;
}
static void curve_span(const struct curve *curve, struct span *x_span, struct span *y_span) {
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        span_add(x_span, curve->bins[bin].x);
        span_add_estimate(y_span, curve->bins[bin].y);
    }
    for (size_t bin = 0; bin<curve->bin_count; bin += curve->bin_count> 1 ? curve->bin_count - 1 : 1)
        span_add(y_span, curve->intercept + curve->slope.value * curve->bins[bin].x);
}
static void curve_line(struct plot *plot, const struct curve *curve, const char *kind) {
    double from = curve->bins[0].x, to = curve->bins[curve->bin_count - 1].x,
           from_value = curve->intercept + curve->slope.value * from,
           to_value = curve->intercept + curve->slope.value * to;
    if (isfinite(from_value) && isfinite(to_value))
        plot_segment(plot, kind, scale_place(&plot->x, from), scale_place(&plot->y, from_value),
                     scale_place(&plot->x, to), scale_place(&plot->y, to_value));
}
static void curve_marks(struct plot *plot, const struct curve *curve, int sign) {
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        char title[256];
        double x = scale_place(&plot->x, curve->bins[bin].x), y = scale_place(&plot->y, curve->bins[bin].y.value);
        snprintf(title, sizeof title, "%s\n%s %s: median %s ms, %zu points", curve->label, curve->x_name,
                 number_plain(curve->bins[bin].x).text, number_of_estimate(curve->bins[bin].y).text,
                 curve->bins[bin].count);
        plot_whiskers(plot, x, y, estimate_none(), curve->bins[bin].y);
        plot_mark(plot->out, sign, x, y, 3.6, 1, title);
    }
}
/* "k4 b12: 12.3 [12.0, 12.6] us/token"; steepest: of the slopes that stand together, so that they share a unit */
static void slope_text(const struct curve *curve, double steepest, char out[160]) {
    /* of a second */
    static const struct { double scale; const char *prefix; } units[] = {{1, "m"}, {1e3, "\xC2\xB5"}, {1e6, "n"}};
    int unit = steepest >= 1 ? 0 : steepest >= 1e-3 ? 1 : 2;
    if (!isfinite(curve->slope.value)) snprintf(out, 160, "%s: all alike, no line", curve->label);
    else
        snprintf(out, 160, "%s: %s %s%s", curve->label,
                 number_estimate(units[unit].scale, curve->slope.value, curve->slope.low, curve->slope.high).text,
                 units[unit].prefix, curve->unit + 1); /* units begin with ms */
}
/* The curves of a group with one name; of many those whose slopes spread evenly from least to greatest, all others
 * as thin lines. */
static void page_curves_of(struct text_buffer *out, const struct report *report, size_t group, const char *name) {
    struct ranked *order = zeroed(report->curve_count, sizeof *order);
    size_t count = 0;
    struct span x_span = span_none(), y_span = {0, 0};
    char caption[256];
    double steepest = 0;
    const struct curve *first = NULL;
    struct plot plot;
    for (size_t i = 0; i < report->curve_count; i++) {
        if (report->curve_group[i] != group || strcmp(report->curves[i].name, name) || !report->curves[i].bin_count)
            continue;
        order[count].at = i;
        order[count++].key = isfinite(report->curves[i].slope.value) ? report->curves[i].slope.value : 0;
        if (fabs(report->curves[i].slope.value) > steepest) steepest = fabs(report->curves[i].slope.value);
        curve_span(&report->curves[i], &x_span, &y_span);
        first = first ? first : &report->curves[i];
    }
    if (!first) { free(order); return; }
    if (count > CURVES_SHOWN) qsort(order, count, sizeof *order, by_key);
    snprintf(caption, sizeof caption, "%s against %s", first->y_name, first->x_name);
    figure_open(out, caption, 0);
    legend_open(out);
    for (size_t i = 0; i < count; i++) {
        const struct curve *curve = &report->curves[order[i].at];
        char text[160];
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        slope_text(curve, steepest, text);
        legend_item(out, COLOUR_SERIES, at, 0, at, text);
    }
    legend_close(out);
    plot_open(&plot, out, caption, 520, 320);
    snprintf(caption, sizeof caption, "%s, ms", first->y_name);
    plot_frame(&plot, x_span, 0, y_span, 0, first->x_name, caption);
    for (size_t i = 0; i < count; i++)
        if (shown_at(i, count, CURVES_SHOWN) < 0) curve_line(&plot, &report->curves[order[i].at], "t");
    for (size_t i = 0; i < count; i++) {
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_SERIES, at, 0);
        curve_line(&plot, &report->curves[order[i].at], "l");
        curve_marks(&plot, &report->curves[order[i].at], at);
        text_add_string(out, "</g>\n");
    }
    plot_close(&plot);
    free(order);
}

/* ---- E1: work against time */
static int has_work(const struct stage_cost *cost) {
    return cost->flops > 0 && cost->bytes > 0 && cost->mean > 0 && cost->tflops > 0 && isfinite(cost->tflops * 1e12);
}
static void work_title(const struct report *report, const struct decomposition *decomposition, int stage,
                       char title[512]) {
    const struct stage_cost *cost = &decomposition->stages[stage];
    char name[160];
    snprintf(title, 512, "%s, %s\n%s ms, %s GFLOP, %s MB\n%s TFLOP/s, %s GB/s: %s", vp_stage_name((vp_stage)stage),
             report_full_name(report->results, decomposition->file, name), number_short(cost->mean).text,
             number_short(cost->flops / 1e9).text, number_short(cost->bytes / 1e6).text,
             number_short(cost->tflops).text, number_short(cost->gbs).text, BOUND_NAMES[cost->limit]);
}
static double work_x(const struct stage_cost *cost, int is_roofline) {
    return is_roofline ? cost->flops / cost->bytes : cost->flops;
}
static double work_y(const struct stage_cost *cost, int is_roofline) {
    return is_roofline ? cost->tflops * 1e12 : cost->mean;
}
/* The roofs as lines: what no stage gets past, or the least time that work can take. */
static void work_roofs(struct plot *plot, const struct report *report, int is_roofline) {
    double from = plot->x.low, to = plot->x.high, knee = report->peak_tflops * 1e3 / report->peak_gbs, ends[3],
           roofs[3];
    int count = 0;
    ends[count++] = from;
    if (is_roofline && knee > from && knee < to) ends[count++] = knee;
    ends[count++] = to;
    text_add_string(plot->out, "<path class=\"r\" d=\"");
    for (int i = 0; i < count; i++) {
        double roof = ends[i] * report->peak_gbs * 1e9, peak = report->peak_tflops * 1e12;
        roofs[i] = !is_roofline ? ends[i] / peak * 1e3 : roof < peak ? roof : peak;
        page_add(plot->out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&plot->x, ends[i]),
                 scale_place(&plot->y, roofs[i]));
    }
    text_add_string(plot->out, "\"/>\n");
}
static void page_work(struct text_buffer *out, const struct report *report, int is_roofline) {
    static const char *const titles[] = {"FLOPs against time; dashed: the least time at the compute roof",
                                           "Roofline: what is reached against FLOPs a byte; dashed: roofs"};
    struct span x_span = span_none(), y_span = span_none();
    int seen[VP_STAGE_COUNT] = {0};
    struct plot plot;
    for (size_t i = 0; i < report->results->count; i++) {
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            const struct stage_cost *cost = &report->items[i].stages[stage];
            if (!has_work(cost)) continue;
            seen[stage] = 1;
            span_add(&x_span, work_x(cost, is_roofline));
            span_add(&y_span, work_y(cost, is_roofline));
        }
    }
    if (!(x_span.low > 0) || !(y_span.low > 0) || !(x_span.high >= x_span.low) || !(report->peak_tflops > 0)
        || !(report->peak_gbs > 0))
        return;
    if (is_roofline) span_add(&y_span, report->peak_tflops * 1e12);
    figure_open(out, titles[is_roofline], 0);
    legend_open(out);
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++)
        if (seen[stage]) legend_item(out, COLOUR_SERIES, stack_series(stage), 0, stage, vp_stage_name((vp_stage)stage));
    legend_close(out);
    plot_open(&plot, out, titles[is_roofline], 520, 340);
    plot.x_prefix = !is_roofline;
    plot.y_prefix = is_roofline;
    plot_frame(&plot, x_span, 1, y_span, 1, is_roofline ? "FLOPs a byte" : "FLOPs a request",
               is_roofline ? "FLOP/s" : "ms a request");
    page_add(
        out,
        "<clipPath id=\"k%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath><g "
        "clip-path=\"url(#k%d)\">",
        is_roofline, plot.x.from, plot.y.to, plot.x.to - plot.x.from, plot.y.from - plot.y.to, is_roofline);
    work_roofs(&plot, report, is_roofline);
    page_add(out, "</g><g%s>", report->results->count > 40 ? " class=\"many\"" : "");
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        if (!seen[stage]) continue;
        colour_open(out, COLOUR_SERIES, stack_series(stage), 0);
        for (size_t i = 0; i < report->results->count; i++) {
            const struct stage_cost *cost = &report->items[i].stages[stage];
            char title[512];
            if (!has_work(cost)) continue;
            work_title(report, &report->items[i], stage, title);
            plot_mark(out, stage, scale_place(&plot.x, work_x(cost, is_roofline)),
                      scale_place(&plot.y, work_y(cost, is_roofline)), report->results->count > 40 ? 2.6 : 3.6, 1,
                      title);
        }
        text_add_string(out, "</g>\n");
    }
    text_add_string(out, "</g>");
    plot_close(&plot);
}

/* ---- E2: the front */
/* Accuracy has room from 0 to 1 where nothing tells its levels apart. */
static void span_room(struct span *span, int which) {
    if (which && !(span->high > span->low) && span->low >= 0 && span->high <= 1) { span->low = 0; span->high = 1; }
}
enum { FRONT_WHISKERS = 40, BOXES_MOST = 2048 };

struct box { double x, y, width, height; };
struct boxes { struct box items[BOXES_MOST]; size_t count; };
static int box_is_free(const struct boxes *boxes, struct box wanted) {
    for (size_t i = 0; i < boxes->count; i++) {
        const struct box *taken = &boxes->items[i];
        if (wanted.x < taken->x + taken->width && taken->x < wanted.x + wanted.width
            && wanted.y < taken->y + taken->height && taken->y < wanted.y + wanted.height)
            return 0;
    }
    return 1;
}
static void box_take(struct boxes *boxes, double x, double y, double width, double height) {
    struct box box;
    box.x = x; box.y = y; box.width = width; box.height = height;
    if (boxes->count < BOXES_MOST) boxes->items[boxes->count++] = box;
}
/* Writes a point's name beside it where nothing stands yet; a name that has no room is left to the table and the
 * pointer. */
static void plot_name(struct plot *plot, struct boxes *boxes, double x, double y, const char *text) {
    static const struct { double x, y; } corners[] = {{8, -7}, {9, 4}, {8, 15}, {-1, -14}, {-1, 20}, {9, 26}, {9, -22}};
    double px = text_px(text);
    for (int side = 1; side >= 0; side--) { /* first to the left: no point of a front stands above there */
        for (size_t i = 0; i < sizeof corners / sizeof corners[0] && boxes->count < BOXES_MOST; i++) {
            struct box box;
            box.x = side ? x - corners[i].x - px : x + corners[i].x;
            box.y = y + corners[i].y - 11;
            box.width = px;
            box.height = 14;
            if (box.x < plot->x.from + 2 || box.x + px > plot->x.to - 2 || box.y < plot->y.to
                || box.y + 14 > plot->y.from || !box_is_free(boxes, box))
                continue;
            box_take(boxes, box.x, box.y, px, 14);
            plot_text(plot, box.x, box.y + 11, "", " class=\"o\"", text);
            return;
        }
    }
}
static vp_estimate point_latency(const vp_bootstrap_point *point) {
    vp_estimate estimate;
    estimate.value = point->latency;
    estimate.low = point->latency_low;
    estimate.high = point->latency_high;
    return estimate;
}
static vp_estimate point_accuracy(const vp_bootstrap_point *point) {
    vp_estimate estimate;
    estimate.value = point->accuracy;
    estimate.low = point->accuracy_low;
    estimate.high = point->accuracy_high;
    return estimate;
}
static int has_whiskers(const struct tradeoff *tradeoff, size_t config) {
    return tradeoff->config_count <= FRONT_WHISKERS || is_listed(tradeoff->front, tradeoff->front_count, config);
}
/* steps: what the next member costs is only reached there */
static void front_line(struct plot *plot, const struct tradeoff *tradeoff) {
    if (!tradeoff->front_count) return;
    text_add_string(plot->out, "<g class=\"s1\"><path class=\"l\" d=\"");
    for (size_t i = 0; i < tradeoff->front_count; i++) {
        double x = scale_place(&plot->x, tradeoff->at_latency[tradeoff->front[i]]),
               y = scale_place(&plot->y, tradeoff->at_accuracy[tradeoff->front[i]]);
        page_add(plot->out, i ? "H%.1fV%.1f" : "M%.1f %.1f", x, y);
    }
    page_add(plot->out, "H%.1f\"/></g>\n", plot->x.to);
}
static void front_mark(struct plot *plot, const struct report *report, const struct tradeoff *tradeoff, size_t config) {
    const vp_bootstrap_point *point = &tradeoff->points[config];
    int is_member = is_listed(tradeoff->front, tradeoff->front_count, config);
    double x = scale_place(&plot->x, point->latency), y = scale_place(&plot->y, point->accuracy);
    char name[80], title[512];
    if (!isfinite(x) || !isfinite(y)) return;
    snprintf(title, sizeof title, "%s%s\n%s %s ms\naccuracy %s\nmember of the front in %s %% of the resamples",
             setting_text(&report->results->files[tradeoff->group->paired[config]], name),
             is_member ? ", on the front" : "", percentile_text(report->settings.percentile),
             number_of_estimate(point_latency(point)).text, number_of_estimate(point_accuracy(point)).text,
             number_percent(point->membership).text);
    page_add(plot->out, "<g class=\"s%d\">", is_member ? 1 : 0);
    if (has_whiskers(tradeoff, config)) plot_whiskers(plot, x, y, point_latency(point), point_accuracy(point));
    plot_mark(plot->out, is_member ? 3 : 0, x, y, is_member ? 5 : 4,
              is_member                     ? 1
              : isfinite(point->membership) ? 0.4 + 0.6 * point->membership
                                            : 0.6,
              title);
    text_add_string(plot->out, "</g>\n");
}
static void page_front(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff) {
    struct boxes *boxes = zeroed(1, sizeof *boxes);
    struct span x_span = span_none(), y_span = span_none();
    char caption[256], label[64], name[80];
    struct plot plot;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        span_add(&x_span, tradeoff->points[i].latency);
        span_add(&y_span, tradeoff->points[i].accuracy);
        if (!has_whiskers(tradeoff, i)) continue;
        span_add_estimate(&x_span, point_latency(&tradeoff->points[i]));
        span_add_estimate(&y_span, point_accuracy(&tradeoff->points[i]));
    }
    span_room(&y_span, 1);
    snprintf(caption, sizeof caption, "Accuracy against %s of %s; %s", percentile_text(report->settings.percentile),
             METRIC_KEYS[report->settings.axis],
             tradeoff->is_corpus                       ? "a metric of the whole corpus has no intervals"
             : tradeoff->config_count > FRONT_WHISKERS ? "95 % intervals of the front's members"
                                                       : "95 % intervals");
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 1, 0, 3, "on the Pareto front");
    legend_item(out, COLOUR_SERIES, 0, 0, 0, "not on it; the fuller the colour, the likelier a member in a resample");
    legend_close(out);
    plot_open(&plot, out, caption, 1000, 460);
    snprintf(label, sizeof label, "%s of %s, ms", percentile_text(report->settings.percentile),
             METRIC_KEYS[report->settings.axis]);
    plot_frame(&plot, x_span, span_is_wide(x_span), y_span, 0, label, "accuracy");
    front_line(&plot, tradeoff);
    for (int members = 0; members < 2; members++)
        for (size_t i = 0; i < tradeoff->config_count; i++)
            if (is_listed(tradeoff->front, tradeoff->front_count, i) == members) front_mark(&plot, report, tradeoff, i);
    for (size_t i = 0; i < tradeoff->front_count; i++)
        box_take(boxes, scale_place(&plot.x, tradeoff->at_latency[tradeoff->front[i]]) - 7,
                 scale_place(&plot.y, tradeoff->at_accuracy[tradeoff->front[i]]) - 7, 14, 14);
    for (size_t i = 0; i < tradeoff->config_count; i++)
        box_take(boxes, scale_place(&plot.x, tradeoff->at_latency[i]) - 4,
                 scale_place(&plot.y, tradeoff->at_accuracy[i]) - 4, 8, 8);
    for (size_t i = 0; i < tradeoff->front_count; i++)
        plot_name(&plot, boxes, scale_place(&plot.x, tradeoff->at_latency[tradeoff->front[i]]),
                  scale_place(&plot.y, tradeoff->at_accuracy[tradeoff->front[i]]),
                  setting_text(&report->results->files[tradeoff->group->paired[tradeoff->front[i]]], name));
    plot_close(&plot);
    free(boxes);
}

/* ---- E2: what the knobs do */
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
    else snprintf(out, 48, "mean %s, ms", METRIC_KEYS[report->settings.axis]);
    return out;
}
static const char *knob_label(const struct report *report, const struct tradeoff *tradeoff, int32_t knob) {
    int is_size = tradeoff->knob_of[knob] == KNOB_SIZE
                  && !report->results->files[tradeoff->group->paired[tradeoff->level_example[KNOB_SIZE][0]]].tier;
    return is_size ? "image size, target vision tokens" : KNOB_NAMES[tradeoff->knob_of[knob]];
}
/* An axis of a knob's levels at equal steps, named where there is room. */
static void plot_levels(struct plot *plot, const struct report *report, const struct tradeoff *tradeoff, int32_t knob) {
    int32_t count = tradeoff->knobs.level_counts[knob];
    double used = -HUGE_VAL, step = (plot->width - PLOT_LEFT - PLOT_RIGHT) / count;
    memset(&plot->x, 0, sizeof plot->x);
    plot->x.from = PLOT_LEFT;
    plot->x.to = plot->width - PLOT_RIGHT;
    plot->x.low = -0.5;
    plot->x.high = count - 0.5;
    for (int32_t i = 0; i < count; i++) {
        char text[48];
        double at = plot->x.from + step * (i + 0.5), half;
        report_level_text(tradeoff, report->results, tradeoff->knob_of[knob], i, text);
        text[strcspn(text, " ")] = 0; /* "576 tokens": the axis says what */
        half = text_px(text) / 2;
        if (at - half < used || at - half < 0 || at + half > plot->width) continue;
        plot_text(plot, at, plot->height - PLOT_BOTTOM + 18, "middle", "", text);
        used = at + half + 8;
    }
}
/* A knob's levels, all others in the mean: mean and interval. */
static void page_main_effect(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             int32_t knob, int which) {
    struct span span = span_none();
    double mean = tradeoff->effects[which][0].estimate;
    char caption[160], label[48];
    struct plot plot;
    for (int32_t i = 0; i < tradeoff->knobs.level_counts[knob]; i++) {
        const vp_effect *effect = effect_of(tradeoff, which, VP_EFFECT_MAIN, knob, i, -1, -1);
        if (!effect) return;
        span_add(&span, mean + effect->estimate);
        span_add(&span, mean + effect->low);
        span_add(&span, mean + effect->high);
    }
    snprintf(caption, sizeof caption, "%s by %s", which ? "Accuracy" : "Latency",
             KNOB_NAMES[tradeoff->knob_of[knob]]);
    figure_open(out, caption, 0);
    span_room(&span, which);
    plot_open(&plot, out, caption, 520, 260);
    plot.y = scale_make(span, 0, plot.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&plot, report, tradeoff, knob);
    plot_y_axis(&plot);
    plot_labels(&plot, knob_label(report, tradeoff, knob), value_label(report, which, label));
    plot_segment(&plot, "r", plot.x.from, scale_place(&plot.y, mean), plot.x.to, scale_place(&plot.y, mean));
    colour_open(out, COLOUR_SERIES, which ? 1 : 0, 0);
    for (int32_t i = 0; i < tradeoff->knobs.level_counts[knob]; i++) {
        const vp_effect *effect = effect_of(tradeoff, which, VP_EFFECT_MAIN, knob, i, -1, -1);
        vp_estimate whole;
        char title[256], level[48];
        whole.value = mean + effect->estimate;
        whole.low = mean + effect->low;
        whole.high = mean + effect->high;
        snprintf(title, sizeof title, "%s %s: %s", KNOB_NAMES[tradeoff->knob_of[knob]],
                 report_level_text(tradeoff, report->results, tradeoff->knob_of[knob], i, level),
                 number_of_estimate(whole).text);
        plot_whiskers(&plot, scale_place(&plot.x, i), scale_place(&plot.y, whole.value), estimate_none(), whole);
        plot_mark(out, which ? 3 : 0, scale_place(&plot.x, i), scale_place(&plot.y, whole.value), 4, 1, title);
    }
    text_add_string(out, "</g>");
    plot_close(&plot);
}
/* Mean of a pair of levels, as the effects make it up. */
static double pair_mean(const struct tradeoff *tradeoff, int which, int32_t knob_a, int32_t level_a, int32_t knob_b,
                        int32_t level_b) {
    return tradeoff->effects[which][0].estimate
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_MAIN, knob_a, level_a, -1, -1))
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_MAIN, knob_b, level_b, -1, -1))
           + effect_value(effect_of(tradeoff, which, VP_EFFECT_PAIR, knob_a, level_a, knob_b, level_b));
}
enum { LINES_SHOWN = 8 };

/* A line for each level of the second knob over the levels of the first: parallel lines are no interaction. */
static void page_interaction(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff,
                             int32_t knob_a, int32_t knob_b, int which) {
    int32_t levels = tradeoff->knobs.level_counts[knob_a], lines = tradeoff->knobs.level_counts[knob_b];
    int shown = lines < LINES_SHOWN ? lines : LINES_SHOWN;
    struct span span = span_none();
    char caption[160], label[48], level[48];
    struct plot plot;
    for (int32_t i = 0; i < levels; i++)
        for (int32_t k = 0; k < lines; k++) span_add(&span, pair_mean(tradeoff, which, knob_a, i, knob_b, k));
    snprintf(caption, sizeof caption, "%s by %s and %s", which ? "Accuracy" : "Latency",
             KNOB_NAMES[tradeoff->knob_of[knob_a]], KNOB_NAMES[tradeoff->knob_of[knob_b]]);
    figure_open(out, caption, 0);
    legend_open(out);
    page_text(out, KNOB_NAMES[tradeoff->knob_of[knob_b]]);
    text_add_string(out, ": ");
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at >= 0)
            legend_item(out, COLOUR_RAMP, at, shown, at,
                        report_level_text(tradeoff, report->results, tradeoff->knob_of[knob_b], k, level));
    }
    legend_close(out);
    span_room(&span, which);
    plot_open(&plot, out, caption, 520, 280);
    plot.y = scale_make(span, 0, plot.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&plot, report, tradeoff, knob_a);
    plot_y_axis(&plot);
    plot_labels(&plot, knob_label(report, tradeoff, knob_a), value_label(report, which, label));
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_RAMP, at, shown);
        text_add_string(out, "<path class=\"l\" d=\"");
        for (int32_t i = 0; i < levels; i++)
            page_add(out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&plot.x, i),
                     scale_place(&plot.y, pair_mean(tradeoff, which, knob_a, i, knob_b, k)));
        text_add_string(out, "\"/>");
        for (int32_t i = 0; i < levels; i++) {
            const vp_effect *effect = effect_of(tradeoff, which, VP_EFFECT_PAIR, knob_a, i, knob_b, k);
            char title[256], other[48];
            vp_estimate pair;
            pair.value = effect ? effect->estimate : 0;
            pair.low = effect ? effect->low : (double)NAN;
            pair.high = effect ? effect->high : (double)NAN;
            snprintf(title, sizeof title, "%s %s, %s %s: %s\nover what both do alone: %s",
                     KNOB_NAMES[tradeoff->knob_of[knob_a]],
                     report_level_text(tradeoff, report->results, tradeoff->knob_of[knob_a], i, level),
                     KNOB_NAMES[tradeoff->knob_of[knob_b]],
                     report_level_text(tradeoff, report->results, tradeoff->knob_of[knob_b], k, other),
                     number_short(pair_mean(tradeoff, which, knob_a, i, knob_b, k)).text,
                     number_of_estimate(pair).text);
            plot_mark(out, at, scale_place(&plot.x, i),
                      scale_place(&plot.y, pair_mean(tradeoff, which, knob_a, i, knob_b, k)), 3.4, 1, title);
        }
        text_add_string(out, "</g>\n");
    }
    plot_close(&plot);
}
/* Shares of the variance between configurations, as bars. */
static void page_shares(struct text_buffer *out, const struct tradeoff *tradeoff) {
    static const char caption[] = "What makes configurations differ: shares of the variance between their means";
    int32_t knobs = tradeoff->knobs.knob_count,
            terms = knobs + (tradeoff->order == 2 ? knobs * (knobs - 1) / 2 : 0) + 1;
    struct plot plot;
    struct span span = {0, 100};
    for (int32_t term = 0; term < terms; term++)
        for (int which = 0; which < 2 && tradeoff->shares[which]; which++)
            span_add(&span, 100 * tradeoff->shares[which][term]);
    if (span.low < 0) span.low = 0; /* a grid with holes: bars begin at 0 */
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 0, 0, -1, "latency");
    if (tradeoff->shares[1]) legend_item(out, COLOUR_SERIES, 1, 0, -1, "accuracy");
    legend_close(out);
    plot_open(&plot, out, caption, 1000, 34.0 * terms + 50);
    plot.x = scale_make(span, 0, 170, plot.width - 64);
    plot.y.from = plot.height - 42;
    plot_x_axis(&plot);
    plot_text(&plot, (plot.x.from + plot.x.to) / 2, plot.height - 6, "middle", " class=\"n\"",
              "share of the variance, %");
    for (int32_t term = 0, first = 0, second = 0; term < terms; term++) {
        char name[80] = "what is left";
        double y = 4 + 34.0 * term;
        if (term < knobs) snprintf(name, sizeof name, "%s", KNOB_NAMES[tradeoff->knob_of[term]]);
        else if (term < terms - 1) {
            if (++second == knobs) second = ++first + 1;
            snprintf(name, sizeof name, "%s x %s", KNOB_NAMES[tradeoff->knob_of[first]],
                     KNOB_NAMES[tradeoff->knob_of[second]]);
        }
        plot_text(&plot, plot.x.from - 8, y + 18, "end", "", name);
        for (int which = 0; which < 2 && tradeoff->shares[which]; which++) {
            double share = 100 * tradeoff->shares[which][term], end = scale_place(&plot.x, share > 0 ? share : 0);
            page_add(out, "<rect class=\"b s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"/>", which,
                     plot.x.from, y + 13 * which, end - plot.x.from);
            plot_text(&plot, end + 6, y + 10 + 13 * which, "", "", number_formatted("%.1f %%", share).text);
        }
    }
    plot_close(&plot);
}
static void page_coupling(struct text_buffer *out, const struct report *report, const struct tradeoff *tradeoff) {
    if (!tradeoff->order) {
        page_element(out, "p",
                     tradeoff->knobs.knob_count ? "Effects of knobs: this grid cannot tell them apart."
                                                : "No knob varies.");
        return;
    }
    if (tradeoff->shares[0]) page_shares(out, tradeoff);
    text_add_string(
        out,
        "<p class=\"wide soft\">Means over all other knobs. By one knob: 95 % intervals of the difference to the "
        "mean of all "
        "(dashed). By "
        "two knobs: lines that are not parallel are an interaction.</p>\n");
    for (int32_t first = 0; first < tradeoff->knobs.knob_count; first++)
        for (int which = 0; which < 2; which++)
            if (tradeoff->effects[which]) page_main_effect(out, report, tradeoff, first, which);
    for (int32_t first = 0; first < tradeoff->knobs.knob_count && tradeoff->order == 2; first++)
        for (int32_t second = first + 1; second < tradeoff->knobs.knob_count; second++)
            for (int which = 0; which < 2; which++)
                if (tradeoff->effects[which]) page_interaction(out, report, tradeoff, first, second, which);
}

/* ---- E3: predicted against measured, by models that never saw the configuration */
enum { HELD_DOTS = 1500, EXPERTS_ASSUMED = 64 };

static int64_t experts_said(const struct results *results) {
    int64_t said = -1;
    for (size_t i = 0; i < results->count; i++)
        if (results->files[i].expert_count > said) said = results->files[i].expert_count;
    return said;
}
/* As pair_rows, where a logarithm can be taken, with each row's file. */
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
static void held_dots(struct plot *plot, const double *real, const double *guess, size_t count) {
    size_t stride = count / HELD_DOTS + 1;
    text_add_string(plot->out, "<path class=\"d\" d=\"");
    for (size_t i = 0; i < count; i += stride)
        page_add(plot->out, "M%.1f %.1fh0", scale_place(&plot->x, real[i]), scale_place(&plot->y, guess[i]));
    text_add_string(plot->out, "\"/>\n");
}
/* A mark a configuration: mean measured and predicted, with its own mean error. */
static void held_marks(struct plot *plot, const struct report *report, const double *real, const double *guess,
                       const uint32_t *files, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        double real_sum = 0, guess_sum = 0, off = 0, members;
        char name[160], title[512];
        for (end = first; end < count && files[end] == files[first]; end++) {
            real_sum += real[end];
            guess_sum += guess[end];
            off += fabs(guess[end] - real[end]) / real[end];
        }
        members = (double)(end - first);
        snprintf(title, sizeof title, "%s\nmeasured %s ms, predicted %s ms (means)\nmean error of a sample %s %%",
                 report_full_name(report->results, &report->results->files[files[first]], name),
                 number_short(real_sum / members).text, number_short(guess_sum / members).text,
                 number_percent(off / members).text);
        plot_mark(plot->out, 0, scale_place(&plot->x, real_sum / members), scale_place(&plot->y, guess_sum / members),
                  3.4, 1, title);
    }
}
static void page_held_out(struct text_buffer *out, const struct report *report, const struct measurements *measurements,
                          const double *predicted, int part) {
    double *pairs = resize(NULL, measurements->count, 3 * sizeof *pairs);
    uint32_t *files = resize(NULL, measurements->count, sizeof *files);
    size_t count = held_pairs(measurements, predicted, part, pairs, files);
    vp_linear_errors errors;
    struct span span = span_none();
    char caption[320];
    struct plot plot;
    if (count > 1
        && vp_linear_errors_compute(pairs, pairs + measurements->count, count, pairs + 2 * measurements->count, &errors)
               == VP_OK) {
        for (size_t i = 0; i < count; i++) {
            span_add(&span, pairs[i]);
            span_add(&span, pairs[measurements->count + i]);
        }
        snprintf(caption, sizeof caption, "%s: mean error %.2f %%", part_name(part), 100 * errors.mape);
        figure_open(out, caption, 0);
        page_add(out, "<p class=\"legend\">|error| mean %s ms, P95 %s ms; bias %s ms; R2 %s; %zu samples</p>",
                 number_short(errors.mae).text, number_short(errors.p95_absolute).text,
                 number_formatted(fabs(errors.bias) < 1 ? "%+.3f" : "%+.2f", errors.bias).text,
                 number_formatted("%.4f", errors.r2).text, count);
        plot_open(&plot, out, caption, 520, 340);
        if (!span_is_wide(span)) span_add(&span, 0);
        plot_frame(&plot, span, span_is_wide(span), span, span_is_wide(span), "measured, ms", "predicted, ms");
        plot_segment(&plot, "r", scale_place(&plot.x, plot.x.low), scale_place(&plot.y, plot.x.low),
                     scale_place(&plot.x, plot.x.high), scale_place(&plot.y, plot.x.high));
        colour_open(out, COLOUR_SERIES,
                    part == VP_LATENCY_VISION    ? 0
                    : part == VP_LATENCY_PREFILL ? 3
                    : part == VP_LATENCY_DECODE  ? 1
                                                 : 2,
                    0);
        held_dots(&plot, pairs, pairs + measurements->count, count);
        held_marks(&plot, report, pairs, pairs + measurements->count, files, count);
        text_add_string(out, "</g>\n");
        plot_close(&plot);
    }
    free(pairs);
    free(files);
}
static void page_estimates(struct text_buffer *out, const struct report *report) {
    static const int parts[] = {ESTIMATE_TOTAL, VP_LATENCY_VISION, VP_LATENCY_PREFILL, VP_LATENCY_DECODE};
    int64_t experts = experts_said(report->results);
    struct measurements measurements;
    double *predicted;
    size_t before;
    measurements_read(&measurements, report->results, experts > 0 ? experts : (int64_t)EXPERTS_ASSUMED);
    predicted = resize(NULL, measurements.count, ESTIMATE_PARTS * sizeof *predicted);
    estimator_predict_left_out(VP_LATENCY_PHYSICAL, &measurements, SPLIT_CONFIG, predicted);
    add_totals(&measurements, predicted);
    text_add_string(
        out,
        "<section id=\"e3\"><h2>Predicted against measured</h2>\n"
        "<p class=\"soft\">Each configuration is predicted by a model of all "
        "others: linear in physical features, no coefficient below 0. Large marks: means of configurations; dots: "
        "samples; "
        "dashed: equal.");
    if (experts < 0)
        page_add(out, " The files do not say how many experts the model has: %d are assumed.", (int)EXPERTS_ASSUMED);
    text_add_string(out, "</p>\n<div class=\"grid\">");
    before = out->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        page_held_out(out, report, &measurements, predicted, parts[i]);
    text_add_string(out, "</div>");
    if (out->bytes == before + 6)
        text_add_string(
            out, "<p>Nothing can be predicted: one configuration alone, or no token counts and stage times.</p>");
    text_add_string(out, "</section>\n");
    measurements_free(&measurements);
    free(predicted);
}

/* ---- words and tables */
static const vp_bootstrap_point *boot_point(const struct report *report, size_t file, int *on_front) {
    *on_front = is_on_front(report, file);
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        for (size_t i = 0; tradeoff->points && i < tradeoff->config_count; i++)
            if (tradeoff->group->paired[i] == file) return &tradeoff->points[i];
    }
    return NULL;
}
static void table_cell(struct text_buffer *out, struct number_text number) {
    text_add_string(out, "<td>");
    page_text(out, number.text);
}
static void table_range(struct text_buffer *out, vp_estimate estimate) { /* the value, its interval small behind it */
    table_cell(out, number_short(estimate.value));
    if (isfinite(estimate.low) || isfinite(estimate.high))
        page_add(out, " <small>%s</small>", number_range(1, estimate.low, estimate.high).text);
}
static void table_row(struct text_buffer *out, const struct report *report, size_t index) {
    static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const struct decomposition *decomposition = &report->items[index];
    int on_front;
    const vp_bootstrap_point *point = boot_point(report, index, &on_front);
    char name[160];
    page_add(out, "<tr><th scope=\"row\" data-v=\"%zu\">", index);
    page_text(out, report_full_name(report->results, decomposition->file, name));
    page_add(out, "<td>%zu", decomposition->file->count);
    if (point) table_range(out, point_accuracy(point));
    else table_cell(out, number_short(decomposition->file->accuracy));
    table_range(out, decomposition->p50[METRIC_TOTAL]);
    table_cell(out, number_short(decomposition->p95[METRIC_TOTAL]));
    for (int column = 0; column < 5; column++) table_cell(out, number_short(decomposition->p50[metrics[column]].value));
    table_cell(out, number_formatted("%.2f", 100 * decomposition->closure));
    table_cell(out, number_percent(decomposition->run_spread));
    table_cell(out, number_percent(decomposition->idle_share));
    page_add(out, "<td data-v=\"%d\">%s", on_front, on_front ? "yes" : "");
    table_cell(out, number_percent(point ? point->membership : (double)NAN));
    text_add_string(out, "\n");
}
static void page_table(struct text_buffer *out, const struct report *report) {
    static const char *const heads[] = {"configuration", "samples",    "accuracy",   "T_total P50, ms",
                                        "P95, ms",       "TTFT, ms",   "vision, ms", "prefill, ms",
                                        "decode, ms",    "ms a token", "closure, %", "run spread, %",
                                        "idle, %",       "front",      "member, %"};
    text_add_string(
        out,
        "<section id=\"table\"><h2>All configurations</h2><p>Medians over samples, in brackets 95 % intervals; a "
        "click on a head sorts."
        "</p>\n<div class=\"scroll\"><table class=\"sort\"><thead><tr>");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        page_add(out, "<th scope=\"col\"><button>%s</button>", heads[i]);
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = 0; i < report->results->count; i++) table_row(out, report, i);
    text_add_string(out, "</tbody></table></div></section>\n");
}
/* What a text field of the files says; where they differ, the first three. */
static void provenance_text(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    const char *seen[4];
    size_t count = 0;
    for (size_t i = 0; i < results->count && count < 4; i++) {
        const char *text = *(char *const *)(const void *)((const char *)&results->files[i] + offset);
        size_t known = 0;
        while (text && known < count && strcmp(seen[known], text)) known++;
        if (text && known == count) seen[count++] = text;
    }
    if (!count) return;
    page_element(out, "dt", name);
    text_add_string(out, "<dd>");
    for (size_t i = 0; i < count && i < 3; i++) {
        if (i) text_add_string(out, "; ");
        page_text(out, seen[i]);
    }
    text_add_string(out, count > 3 ? "; and others</dd>\n" : "</dd>\n");
}
static void provenance_number(struct text_buffer *out, const struct results *results, const char *name, size_t offset) {
    int64_t first, other;
    int differ = 0;
    memcpy(&first, (const char *)&results->files[0] + offset, sizeof first);
    for (size_t i = 1; i < results->count; i++) {
        memcpy(&other, (const char *)&results->files[i] + offset, sizeof other);
        differ |= other != first;
    }
    if (first >= 0 || differ)
        page_add(out, "<dt>%s</dt><dd>%lld%s</dd>\n", name, (long long)first, differ ? " (others differ)" : "");
}
/* as texts: ISO 8601 sorts by time */
static void provenance_times(struct text_buffer *out, const struct results *results) {
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (file->measured_from && (!first || strcmp(file->measured_from, first) < 0)) first = file->measured_from;
        if (file->measured_to && (!last || strcmp(file->measured_to, last) > 0)) last = file->measured_to;
    }
    if (!first || !last) return;
    text_add_string(out, "<dt>measured</dt><dd>");
    page_text(out, first);
    text_add_string(out, " to ");
    page_text(out, last);
    text_add_string(out, "</dd>\n");
}
static void page_provenance(struct text_buffer *out, const struct report *report) {
    static const struct { const char *name; size_t offset;
    } texts[] = {{"data set", offsetof(struct result_file, task)},
                 {"data", offsetof(struct result_file, data)},
                 {"data hash", offsetof(struct result_file, data_hash)},
                 {"accuracy by", offsetof(struct result_file, metric)},
                 {"model", offsetof(struct result_file, model)},
                 {"weights", offsetof(struct result_file, weights)},
                 {"importance scores", offsetof(struct result_file, importance)},
                 {"device", offsetof(struct result_file, device)},
                 {"host", offsetof(struct result_file, host)},
                 {"vlmprof", offsetof(struct result_file, version)},
                 {"timing", offsetof(struct result_file, timing)},
                 {"status", offsetof(struct result_file, status)}};
    static const struct { const char *name; size_t offset;
    } numbers[] = {{"seed", offsetof(struct result_file, seed)},
                   {"runs a sample, at least", offsetof(struct result_file, runs_per_sample)},
                   {"most new tokens", offsetof(struct result_file, max_new_tokens)},
                   {"experts", offsetof(struct result_file, expert_count)},
                   {"decoder blocks", offsetof(struct result_file, total_blocks)}};
    const struct result_file *file = &report->results->files[0];
    text_add_string(out, "<section id=\"source\"><h2>Provenance</h2><dl>\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        provenance_text(out, report->results, texts[i].name, texts[i].offset);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        provenance_number(out, report->results, numbers[i].name, numbers[i].offset);
    provenance_times(out, report->results);
    if (isfinite(file->cost_share)) {
        vp_estimate tool;
        tool.value = 100 * file->cost_share; tool.low = 100 * file->cost_low; tool.high = 100 * file->cost_high;
        page_add(out, "<dt>cost of stage times</dt><dd>%s %% of T_total</dd>\n", number_of_estimate(tool).text);
    }
    page_add(out, "<dt>report by</dt><dd>vlmprof %s, %zu resamples, seed %u</dd>\n", VLMPROF_VERSION,
             report->settings.resamples, (unsigned)report->settings.seed);
    text_add_string(out, "</dl></section>\n");
}
static void page_list(struct text_buffer *out, const char *id, const char *title, const struct text_list *items) {
    if (!items->count) return;
    page_add(out, "<section id=\"%s\"><h2>%s</h2><ul>\n", id, title);
    for (size_t i = 0; i < items->count; i++) {
        page_element(out, "li", items->items[i]);
        text_add_string(out, "\n");
    }
    text_add_string(out, "</ul></section>\n");
}

/* ---- the page */
static void page_style(struct text_buffer *out) {
    text_add_string(
        out,
        "<style>\n"
        ":root{color-scheme:light "
        "dark;--bg:#fff;--fg:#1a1c1f;--soft:#5a6068;--line:#dfe2e6;--box:#f5f6f8;--warn:#fdf3e3;--edge:#c77700}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8ea;--soft:#a3abb4;--line:#343a41;"
        "--box:#1f2328;--warn:#33281a;"
        "--edge:#e69f00}.s0{--c:#2487cb!important}}\n"
        "*{box-sizing:border-box}body{margin:0 auto;padding:1.2rem 1.5rem "
        "4rem;max-width:1180px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2.2rem 0 "
        ".6rem;padding-top:.4rem;border-top:1px solid var(--line)}h3{"
        "font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0}a{color:inherit}\n"
        "nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--soft);font-size:.9rem;margin:.4rem 0 "
        "0}.soft{color:var(--soft)}\n"
        "#warnings{background:var(--warn);border-left:4px solid var(--edge);padding:.1rem 1rem .5rem;margin:1rem "
        "0}#warnings h2{border:0;"
        "margin:.5rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}@media(min-width:900px){dl{"
        "grid-template-columns:max-content 1fr max-content "
        "1fr}}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n");
    text_add_string(
        out,
        ".grid .wide{grid-column:1/-1}.grid{display:grid;grid-template-columns:repeat(auto-fit,"
        "minmax(min(100%,430px),1fr));gap:1rem}figure{"
        "margin:0;padding:.8rem;background:var(--box);border-radius:6px;break-inside:avoid;min-width:0}"
        "figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}\n"
        "svg{display:block;width:100%;height:auto;overflow:visible;font:11px system-ui,sans-serif;fill:var(--fg)}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.2rem 0 .5rem}.legend "
        "span{display:inline-flex;"
        "align-items:center;gap:.35rem}.legend svg{width:14px;height:12px;flex:none}\n"
        ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#e69f00}.s4{--c:#cc79a7}.s5{--c:#56b4e9}"
        ".s6{--c:#8c8c8c}.s7{--c:#f0e442}.s8{"
        "--c:var(--fg)}\n"
        ".m{fill:var(--c);stroke:var(--fg);stroke-width:.6;stroke-opacity:.55}.l{stroke:var(--c);stroke-width:1.8;"
        "fill:none}.w{"
        "stroke:var(--c);stroke-width:1.2;opacity:.8;fill:none}.b{fill:var(--c);stroke:var(--box);stroke-width:.5}"
        ".a{fill:var(--c)}.h{"
        "fill:transparent}.h:hover{fill:var(--fg);fill-opacity:.18}.g{stroke:var(--line);stroke-width:1}"
        ".t{stroke:var(--soft);"
        "stroke-width:.7;opacity:.35}.r{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 "
        "4;fill:none}.d{stroke:var(--c);"
        "stroke-width:2.2;stroke-linecap:round;opacity:.55}.n{fill:var(--soft)}.o{paint-order:stroke;"
        "stroke:var(--box);stroke-width:3px;"
        "stroke-linejoin:round}.many .m{stroke-width:.25}.many .m:hover,.m:hover{stroke-width:2.5;stroke-opacity:1}\n");
    text_add_string(
        out,
        ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.76rem;font-variant-numeric:tabular-nums;"
        "width:100%}td,th{"
        "padding:.2rem .32rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}tbody "
        "th{text-align:left;"
        "font-weight:500}thead th{white-space:normal;vertical-align:bottom;background:var(--box)}thead "
        "th:first-child{text-align:left}"
        "tbody tr:hover{background:var(--box)}small{color:var(--soft)}\n"
        "button{all:unset;cursor:pointer;font-weight:600}button:focus-visible{outline:2px solid var(--edge)}"
        "th[aria-sort=ascending] button::after{content:' \\25B2'}th[aria-sort=descending] button::after{content:' "
        "\\25BC'}\n"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--box:#fff;--warn:#fff;"
        "--edge:#000}body{"
        "max-width:none;padding:0;font-size:10pt}nav{display:none}.scroll{overflow:visible}table{font-size:6.5pt}td,"
        "th{padding:1pt 2pt}thead{"
        "display:table-header-group;break-inside:avoid}tr{break-inside:avoid}h2,h3,.soft{break-after:avoid}"
        ".grid{grid-template-columns:1fr 1fr}*{"
        "print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "</style>\n");
}
/* sorts a table by a column: numbers by value, what is none goes last */
static void page_script(struct text_buffer *out) {
    text_add_string(out,
        "<script>\nfor (const b of document.querySelectorAll('table.sort button')) b.onclick = () => {\n"
        "  const h = b.parentNode, body = h.closest('table').tBodies[0], i = h.cellIndex\n"
        "  const way = h.getAttribute('aria-sort') == 'ascending' ? -1 : 1\n"
        "  const value = r => parseFloat(r.cells[i].dataset.v ?? r.cells[i].textContent)\n"
        "  for (const other of h.parentNode.cells) other.removeAttribute('aria-sort')\n"
        "  h.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending')\n"
        "  const rows = [...body.rows].map(r => [value(r), r])\n"
        "  rows.sort((x, y) => isNaN(x[0]) - isNaN(y[0]) || way * (x[0] - y[0]) || 0)\n"
        "  body.append(...rows.map(x => x[1]))\n}\n</script>\n");
}
static void page_head(struct text_buffer *out, const struct report *report) {
    size_t samples = 0;
    for (size_t i = 0; i < report->results->count; i++)
        if (report->results->files[i].count > samples) samples = report->results->files[i].count;
    text_add_string(out,
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                         "<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>vlmprof: ");
    page_text(out, report->results->files[0].task);
    page_add(out, ", %zu configurations</title>\n", report->results->count);
    page_style(out);
    text_add_string(out, "</head><body>\n<header><h1>");
    for (size_t i = 0; i < report->results->group_count && i < 3; i++) {
        if (i) text_add_string(out, ", ");
        page_text(out, report->results->files[report->results->groups[i].first].task);
    }
    if (report->results->group_count > 3) page_add(out, " and %zu more", report->results->group_count - 3);
    page_add(out, "</h1><p class=\"soft\">%zu configuration%s, up to %zu samples each", report->results->count,
             report->results->count == 1 ? "" : "s", samples);
    if (report->results->files[0].model) {
        text_add_string(out, ", model ");
        page_text(out, report->results->files[0].model);
    }
    if (report->results->files[0].device) {
        text_add_string(out, ", ");
        page_text(out, report->results->files[0].device);
    }
    text_add_string(
        out,
        "</p><nav><a href=\"#source\">Provenance</a><a href=\"#findings\">Findings</a><a href=\"#e1\">Where time "
        "goes</a>"
        "<a href=\"#e2\">What it buys</a><a href=\"#e3\">Predicted</a><a href=\"#table\">All "
        "configurations</a></nav></header>\n");
}
static void page_e1(struct text_buffer *out, const struct report *report) {
    static const char *const kinds[] = {"vision", "prefill", "decode", "decode context"};
    text_add_string(out, "<section id=\"e1\"><h2>Where the time goes</h2>\n<div class=\"grid\">");
    page_stack(out, report);
    page_parts(out, report);
    page_work(out, report, 0);
    page_work(out, report, 1);
    text_add_string(out, "</div>\n");
    if (report->peak_tflops > 0 && report->peak_gbs > 0)
        page_add(out, "<p class=\"soft\">Roofs %s TFLOP/s and %s GB/s: %s.</p>\n",
                 number_short(report->peak_tflops).text, number_short(report->peak_gbs).text,
                 report->peaks_are_given
                     ? "as given"
                     : "the best that stages of 1 % of a request or more reach here, not the device's own");
    for (size_t group = 0; group < report->results->group_count; group++) {
        text_add_string(out, "<h3>Scaling: ");
        page_text(out, report->results->files[report->results->groups[group].first].task);
        text_add_string(
            out,
            "</h3><p class=\"soft\">Medians with 95 % intervals and fitted lines with their slopes; of many "
            "settings a few, from the "
            "least to the greatest slope, and all others in grey.</p><div class=\"grid\">");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) page_curves_of(out, report, group, kinds[i]);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
static void page_e2(struct text_buffer *out, const struct report *report) {
    text_add_string(out, "<section id=\"e2\"><h2>What it buys</h2>\n");
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        text_add_string(out, "<h3>");
        page_text(out, report->results->files[report->results->groups[group].first].task);
        text_add_string(out, "</h3>");
        if (tradeoff->reason[0]) { page_element(out, "p", tradeoff->reason); continue; }
        text_add_string(out, "<div class=\"grid\">");
        page_front(out, report, tradeoff);
        page_coupling(out, report, tradeoff);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
void report_page_write(const struct report *report, struct text_buffer *out) {
    page_head(out, report);
    page_list(out, "warnings", "Warnings", &report->warnings);
    page_provenance(out, report);
    page_list(out, "findings", "Findings", &report->findings);
    page_e1(out, report);
    page_e2(out, report);
    page_estimates(out, report);
    page_table(out, report);
    page_script(out);
    text_add_string(out, "</body></html>\n");
}
