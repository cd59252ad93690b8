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
    if (is_coarse) return part == VP_STAGE_VIT ? "vision" : part == VP_STAGE_PREFILL ? "prefill" : part == VP_STAGE_DECODE ? "decode" : "rest";
    return part == STACK_OTHER ? "h2d, sample, detok" : part == STACK_OUTSIDE ? "in no stage" : vp_stage_name((vp_stage)part);
}
/* Mean ms of the parts of a request; files without stages have the sums alone. */
static void stack_parts(const decomposition *d, int is_coarse, double parts[STACK_PARTS]) {
    double rest = d->mean[METRIC_TOTAL];
    memset(parts, 0, STACK_PARTS * sizeof *parts);
    for (int s = 0; s < VP_STAGE_COUNT && !is_coarse; s++)
        if (d->stages[s].mean > 0) parts[stack_series(s) == SERIES_GREY ? STACK_OTHER : s] += d->stages[s].mean;
    if (is_coarse) {
        if (isfinite(d->mean[METRIC_VISION])) parts[VP_STAGE_VIT] = d->mean[METRIC_VISION];
        if (isfinite(d->mean[METRIC_PREFILL])) parts[VP_STAGE_PREFILL] = d->mean[METRIC_PREFILL];
        if (isfinite(d->mean[METRIC_DECODE])) parts[VP_STAGE_DECODE] = d->mean[METRIC_DECODE];
    }
    for (int i = 0; i < STACK_PARTS; i++) rest -= parts[i];
    if (rest > 0) parts[STACK_OUTSIDE] = rest;
}
static double stack_sum(const decomposition *d, int is_coarse) { /* the length of its bar: parts that are more than the total show */
    double parts[STACK_PARTS], sum = 0;
    stack_parts(d, is_coarse, parts);
    for (int i = 0; i < STACK_PARTS; i++) sum += parts[i];
    return sum;
}
static void stack_title(const report *p, const decomposition *d, int is_coarse, text_buffer *title) {
    double parts[STACK_PARTS];
    char name[160];
    stack_parts(d, is_coarse, parts);
    text_add_string(title, report_full_name(p->r, d->file, name));
    page_add(title, ": %s ms", figure_number(d->mean[METRIC_TOTAL]).text);
    for (int i = 0; i < STACK_PARTS; i++)
        if (parts[i] > 0) page_add(title, "\n%s %s ms, %.1f %%", stack_part_name(i, is_coarse), figure_number(parts[i]).text,
                                   100 * parts[i] / d->mean[METRIC_TOTAL]);
}
static void stack_legend(text_buffer *out, const report *p, int is_coarse) {
    int seen[STACK_PARTS] = {0};
    for (size_t i = 0; i < p->r->count; i++) {
        double parts[STACK_PARTS];
        stack_parts(&p->items[i], is_coarse, parts);
        for (int k = 0; k < STACK_PARTS; k++) seen[k] |= parts[k] >= 0.0005 * p->items[i].mean[METRIC_TOTAL];
    }
    legend_open(out);
    for (int k = 0; k < STACK_PARTS; k++) if (seen[k]) legend_item(out, COLOUR_SERIES, stack_series(k), 0, -1, stack_part_name(k, is_coarse));
    legend_close(out);
}
typedef struct ranked { size_t at; double key; } ranked;
static int by_key(const void *a, const void *b) {
    const ranked *x = (const ranked *)a, *y = (const ranked *)b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->at < y->at ? -1 : x->at > y->at;
}
static void stack_row(plot *q, const report *p, const decomposition *d, int is_coarse, double y) {
    double parts[STACK_PARTS], at = 0;
    text_buffer title = {NULL, 0, 0};
    char name[160];
    figure total = figure_number(d->mean[METRIC_TOTAL]);
    stack_parts(d, is_coarse, parts);
    stack_title(p, d, is_coarse, &title);
    plot_text(q, q->x.from - 8, y + 12, "end", "", report_full_name(p->r, d->file, name));
    text_add_string(q->out, "<g><title>");
    page_text(q->out, title.data);
    text_add_string(q->out, "</title>");
    for (int i = 0; i < STACK_PARTS; i++) {
        double from = scale_place(&q->x, at), to = scale_place(&q->x, at + parts[i]);
        at += parts[i];
        if (to - from >= 0.05)
            page_add(q->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>", stack_series(i), from, y, to - from);
    }
    text_add_string(q->out, "</g>");
    plot_text(q, scale_place(&q->x, at) + 6, y + 12, "", "", total.text);
    text_add_string(q->out, "\n");
    free(title.data);
}
static void stack_rows(text_buffer *out, const report *p, int is_coarse, const ranked *rows, size_t count, const char *caption) {
    plot q;
    span s = {0, 0};
    double left = 60;
    for (size_t i = 0; i < count; i++) {
        char name[160];
        double px = text_px(report_full_name(p->r, p->items[rows[i].at].file, name)) + 16;
        span_add(&s, stack_sum(&p->items[rows[i].at], is_coarse));
        if (px > left) left = px;
    }
    figure_open(out, caption, 1);
    stack_legend(out, p, is_coarse);
    plot_open(&q, out, caption, 1000, (double)count * 20 + 50);
    q.x = scale_make(s, 0, left, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "mean T_total, ms");
    for (size_t i = 0; i < count; i++) stack_row(&q, p, &p->items[rows[i].at], is_coarse, 3 + 20 * (double)i);
    plot_close(&q);
}
/* All configurations as thin bars, the fastest first: one path a part, and a clear field a configuration for the pointer. */
static void stack_all(text_buffer *out, const report *p, int is_coarse, const ranked *rows, size_t count) {
    static const char caption[] = "All configurations, from fastest to slowest";
    plot q;
    span y = {0, 0}, x = {0, 0};
    x.high = (double)count;
    for (size_t i = 0; i < count; i++) span_add(&y, stack_sum(&p->items[rows[i].at], is_coarse));
    figure_open(out, caption, 1);
    plot_open(&q, out, caption, 1000, 300);
    q.x = scale_make(x, 0, PLOT_LEFT, q.width - PLOT_RIGHT);
    q.x.low = 0;
    q.x.high = (double)count;
    q.y = scale_make(y, 0, q.height - 30, PLOT_TOP);
    plot_y_axis(&q);
    plot_labels(&q, "configurations, ascending by mean T_total", "mean T_total, ms");
    for (int part = 0; part < STACK_PARTS; part++) {
        page_add(out, "<path class=\"a s%d\" d=\"", stack_series(part));
        for (size_t i = 0; i < count; i++) {
            double parts[STACK_PARTS], below = 0, from = scale_place(&q.x, (double)i), wide = scale_place(&q.x, (double)i + 1) - from, high, low;
            stack_parts(&p->items[rows[i].at], is_coarse, parts);
            for (int k = 0; k < part; k++) below += parts[k];
            low = scale_place(&q.y, below);
            high = scale_place(&q.y, below + parts[part]);
            if (low - high >= 0.05) page_add(out, "M%.1f %.1fv%.1fh%.1fv%.1fz", from, low, high - low, wide * 0.94, low - high);
        }
        text_add_string(out, "\"/>\n");
    }
    for (size_t i = 0; i < count; i++) {
        text_buffer title = {NULL, 0, 0};
        stack_title(p, &p->items[rows[i].at], is_coarse, &title);
        page_add(out, "<rect class=\"h\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.0f\"><title>", scale_place(&q.x, (double)i), PLOT_TOP,
                 (q.x.to - q.x.from) / (double)count, q.y.from - PLOT_TOP);
        page_text(out, title.data);
        text_add_string(out, "</title></rect>\n");
        free(title.data);
    }
    plot_close(&q);
}
static int is_on_front(const report *p, size_t file) {
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        for (size_t i = 0; i < t->front_count; i++) if (t->group->paired[t->front[i]] == file) return 1;
    }
    return 0;
}
static void page_stack(text_buffer *out, const report *p) {
    size_t count = 0, shown = 0;
    int is_coarse = 1, has_front = 0;
    ranked *rows = zeroed(p->r->count, sizeof *rows), *few = zeroed(p->r->count, sizeof *few);
    for (int s = 0; s < VP_STAGE_COUNT; s++) is_coarse &= !stage_is_known(p, s);
    for (size_t i = 0; i < p->r->count; i++) {
        if (!(p->items[i].mean[METRIC_TOTAL] > 0)) continue;
        rows[count].at = i;
        rows[count++].key = p->items[i].mean[METRIC_TOTAL];
        has_front |= is_on_front(p, i);
    }
    if (count <= STACK_ROWS) stack_rows(out, p, is_coarse, rows, count, "Where the time of a request goes: means over samples");
    else {
        qsort(rows, count, sizeof *rows, by_key);
        for (size_t i = 0; i < count && shown < STACK_ROWS; i++)
            if (has_front ? is_on_front(p, rows[i].at) : i < STACK_ROWS / 2 || i >= count - STACK_ROWS / 2) few[shown++] = rows[i];
        stack_rows(out, p, is_coarse, few, shown, has_front ? "Where the time of a request goes: configurations on a Pareto front, means over samples"
                   : "Where the time of a request goes: the fastest and the slowest dozen, means over samples");
        stack_all(out, p, is_coarse, rows, count);
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
static double part_share(const stage_cost *c, int part) { return part == PARTS_IDLE ? c->idle_share : c->parts[part]; }
static void parts_row(plot *q, const report *p, const decomposition *d, int stage, double y) {
    const stage_cost *c = &d->stages[stage];
    char name[160];
    double at = 0;
    plot_text(q, q->x.from - 8, y + 12, "end", "", report_full_name(p->r, d->file, name));
    plot_text(q, 4, y + 12, "", "", vp_stage_name((vp_stage)stage));
    page_add(q->out, "<g><title>%s", vp_stage_name((vp_stage)stage));
    for (int part = 0; part <= PARTS_IDLE; part++)
        if (part_share(c, part) > 0) page_add(q->out, "\n%s %.1f %%", part_text(part), 100 * part_share(c, part));
    text_add_string(q->out, "</title>");
    for (int part = 0; part <= PARTS_IDLE; part++) {
        double from = scale_place(&q->x, 100 * at), to;
        if (!(part_share(c, part) > 0)) continue;
        at += part_share(c, part);
        to = scale_place(&q->x, 100 * at);
        if (to - from >= 0.05)
            page_add(q->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>", part_series(part), from, y, to - from);
    }
    text_add_string(q->out, "</g>\n");
}
static void page_parts(text_buffer *out, const report *p) {
    static const char caption[] = "What prefill and decode are made of (--kernel_pass), at most a dozen configurations";
    plot q;
    span s = {0, 100};
    double left = 60;
    size_t rows[PARTS_CONFIGURATIONS], count = 0;
    int seen[PARTS_IDLE + 1] = {0};
    for (size_t i = 0; i < p->r->count && count < PARTS_CONFIGURATIONS; i++) {
        char name[160];
        double px = text_px(report_full_name(p->r, p->items[i].file, name)) + 72;
        if (!stage_has_parts(&p->items[i].stages[VP_STAGE_PREFILL]) && !stage_has_parts(&p->items[i].stages[VP_STAGE_DECODE])) continue;
        for (int k = 0; k < 2; k++)
            for (int part = 0; part <= PARTS_IDLE; part++) seen[part] |= part_share(&p->items[i].stages[PART_STAGES[k]], part) >= 0.0005;
        if (px > left) left = px;
        rows[count++] = i;
    }
    if (!count) return;
    figure_open(out, caption, 1);
    legend_open(out);
    for (int part = 0; part <= PARTS_IDLE; part++) if (seen[part]) legend_item(out, COLOUR_SERIES, part_series(part), 0, -1, part_text(part));
    legend_close(out);
    plot_open(&q, out, caption, 1000, (double)count * 42 + 50);
    q.x = scale_make(s, 0, left, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "% of the stage's time on the device");
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) parts_row(&q, p, &p->items[rows[i]], PART_STAGES[k], 3 + 42 * (double)i + 18 * k);
    plot_close(&q);
}

/* ---- E1: scaling */
enum { CURVES_SHOWN = 6 };

static int shown_at(size_t rank, size_t count, size_t most) { /* which of `most` evenly spread ones the rank-th is; -1: none */
    if (count <= most) return (int)rank;
    for (size_t k = 0; k < most; k++) if (rank == k * (count - 1) / (most - 1)) return (int)k;
    return -1;
}
static void curve_span(const curve *c, span *x, span *y) {
    for (size_t b = 0; b < c->bin_count; b++) {
        span_add(x, c->bins[b].x);
        span_add_estimate(y, c->bins[b].y);
    }
    for (size_t b = 0; b < c->bin_count; b += c->bin_count > 1 ? c->bin_count - 1 : 1) span_add(y, c->intercept + c->slope.value * c->bins[b].x);
}
static void curve_line(plot *q, const curve *c, const char *kind) {
    double from = c->bins[0].x, to = c->bins[c->bin_count - 1].x, a = c->intercept + c->slope.value * from, b = c->intercept + c->slope.value * to;
    if (isfinite(a) && isfinite(b))
        plot_segment(q, kind, scale_place(&q->x, from), scale_place(&q->y, a), scale_place(&q->x, to), scale_place(&q->y, b));
}
static void curve_marks(plot *q, const curve *c, int sign) {
    for (size_t b = 0; b < c->bin_count; b++) {
        char title[256];
        double x = scale_place(&q->x, c->bins[b].x), y = scale_place(&q->y, c->bins[b].y.value);
        snprintf(title, sizeof title, "%s\n%s %s: median %s ms, %zu points", c->label, c->x_name, figure_x(c->bins[b].x).text,
                 figure_of_estimate(c->bins[b].y).text, c->bins[b].count);
        plot_whiskers(q, x, y, estimate_none(), c->bins[b].y);
        plot_mark(q->out, sign, x, y, 3.6, 1, title);
    }
}
/* "k4 b12: 12.3 [12.0, 12.6] us/token"; steepest: of the slopes that stand together, so that they share a unit */
static void slope_text(const curve *c, double steepest, char out[160]) {
    static const struct { double scale; const char *prefix; } units[] = {{1, "m"}, {1e3, "\xC2\xB5"}, {1e6, "n"}}; /* of a second */
    int u = steepest >= 1 ? 0 : steepest >= 1e-3 ? 1 : 2;
    if (!isfinite(c->slope.value)) snprintf(out, 160, "%s: all alike, no line", c->label);
    else snprintf(out, 160, "%s: %s %s%s", c->label, figure_estimate(units[u].scale, c->slope.value, c->slope.low, c->slope.high).text,
                  units[u].prefix, c->unit + 1); /* units begin with ms */
}
/* The curves of a group with one name; of many those whose slopes spread evenly from least to greatest, all others as thin lines. */
static void page_curves_of(text_buffer *out, const report *p, size_t group, const char *name) {
    ranked *order = zeroed(p->curve_count, sizeof *order);
    size_t count = 0;
    span x = span_none(), y = {0, 0};
    char caption[256];
    double steepest = 0;
    const curve *first = NULL;
    plot q;
    for (size_t i = 0; i < p->curve_count; i++) {
        if (p->curve_group[i] != group || strcmp(p->curves[i].name, name) || !p->curves[i].bin_count) continue;
        order[count].at = i;
        order[count++].key = isfinite(p->curves[i].slope.value) ? p->curves[i].slope.value : 0;
        if (fabs(p->curves[i].slope.value) > steepest) steepest = fabs(p->curves[i].slope.value);
        curve_span(&p->curves[i], &x, &y);
        first = first ? first : &p->curves[i];
    }
    if (!first) { free(order); return; }
    if (count > CURVES_SHOWN) qsort(order, count, sizeof *order, by_key);
    snprintf(caption, sizeof caption, "%s against %s", first->y_name, first->x_name);
    figure_open(out, caption, 0);
    legend_open(out);
    for (size_t i = 0; i < count; i++) {
        const curve *c = &p->curves[order[i].at];
        char text[160];
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        slope_text(c, steepest, text);
        legend_item(out, COLOUR_SERIES, at, 0, at, text);
    }
    legend_close(out);
    plot_open(&q, out, caption, 520, 320);
    snprintf(caption, sizeof caption, "%s, ms", first->y_name);
    plot_frame(&q, x, 0, y, 0, first->x_name, caption);
    for (size_t i = 0; i < count; i++) if (shown_at(i, count, CURVES_SHOWN) < 0) curve_line(&q, &p->curves[order[i].at], "t");
    for (size_t i = 0; i < count; i++) {
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_SERIES, at, 0);
        curve_line(&q, &p->curves[order[i].at], "l");
        curve_marks(&q, &p->curves[order[i].at], at);
        text_add_string(out, "</g>\n");
    }
    plot_close(&q);
    free(order);
}

/* ---- E1: work against time */
static int has_work(const stage_cost *c) { return c->flops > 0 && c->bytes > 0 && c->mean > 0 && c->tflops > 0 && isfinite(c->tflops * 1e12); }
static void work_title(const report *p, const decomposition *d, int stage, char title[512]) {
    const stage_cost *c = &d->stages[stage];
    char name[160];
    snprintf(title, 512, "%s, %s\n%s ms, %s GFLOP, %s MB\n%s TFLOP/s, %s GB/s: %s", vp_stage_name((vp_stage)stage),
             report_full_name(p->r, d->file, name),
             figure_number(c->mean).text, figure_number(c->flops / 1e9).text, figure_number(c->bytes / 1e6).text, figure_number(c->tflops).text,
             figure_number(c->gbs).text, BOUND_NAMES[c->limit]);
}
static double work_x(const stage_cost *c, int is_roofline) { return is_roofline ? c->flops / c->bytes : c->flops; }
static double work_y(const stage_cost *c, int is_roofline) { return is_roofline ? c->tflops * 1e12 : c->mean; }
/* The roofs as lines: what no stage gets past, or the least time that work can take. */
static void work_roofs(plot *q, const report *p, int is_roofline) {
    double from = q->x.low, to = q->x.high, knee = p->peak_tflops * 1e3 / p->peak_gbs, ends[3], y[3];
    int count = 0;
    ends[count++] = from;
    if (is_roofline && knee > from && knee < to) ends[count++] = knee;
    ends[count++] = to;
    text_add_string(q->out, "<path class=\"r\" d=\"");
    for (int i = 0; i < count; i++) {
        double roof = ends[i] * p->peak_gbs * 1e9, peak = p->peak_tflops * 1e12;
        y[i] = !is_roofline ? ends[i] / peak * 1e3 : roof < peak ? roof : peak;
        page_add(q->out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&q->x, ends[i]), scale_place(&q->y, y[i]));
    }
    text_add_string(q->out, "\"/>\n");
}
static void page_work(text_buffer *out, const report *p, int is_roofline) {
    static const char *const titles[] = {"FLOPs against time; dashed: the least time at the compute roof",
                                           "Roofline: what is reached against FLOPs a byte; dashed: roofs"};
    span x = span_none(), y = span_none();
    int seen[VP_STAGE_COUNT] = {0};
    plot q;
    for (size_t i = 0; i < p->r->count; i++) {
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!has_work(c)) continue;
            seen[s] = 1;
            span_add(&x, work_x(c, is_roofline));
            span_add(&y, work_y(c, is_roofline));
        }
    }
    if (!(x.low > 0) || !(y.low > 0) || !(x.high >= x.low) || !(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return;
    if (is_roofline) span_add(&y, p->peak_tflops * 1e12);
    figure_open(out, titles[is_roofline], 0);
    legend_open(out);
    for (int s = 0; s < VP_STAGE_COUNT; s++) if (seen[s]) legend_item(out, COLOUR_SERIES, stack_series(s), 0, s, vp_stage_name((vp_stage)s));
    legend_close(out);
    plot_open(&q, out, titles[is_roofline], 520, 340);
    q.x_prefix = !is_roofline;
    q.y_prefix = is_roofline;
    plot_frame(&q, x, 1, y, 1, is_roofline ? "FLOPs a byte" : "FLOPs a request", is_roofline ? "FLOP/s" : "ms a request");
    page_add(out, "<clipPath id=\"k%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath><g clip-path=\"url(#k%d)\">",
             is_roofline,
             q.x.from, q.y.to, q.x.to - q.x.from, q.y.from - q.y.to, is_roofline);
    work_roofs(&q, p, is_roofline);
    page_add(out, "</g><g%s>", p->r->count > 40 ? " class=\"many\"" : "");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!seen[s]) continue;
        colour_open(out, COLOUR_SERIES, stack_series(s), 0);
        for (size_t i = 0; i < p->r->count; i++) {
            const stage_cost *c = &p->items[i].stages[s];
            char title[512];
            if (!has_work(c)) continue;
            work_title(p, &p->items[i], s, title);
            plot_mark(out, s, scale_place(&q.x, work_x(c, is_roofline)), scale_place(&q.y, work_y(c, is_roofline)), p->r->count > 40 ? 2.6 : 3.6, 1,
                      title);
        }
        text_add_string(out, "</g>\n");
    }
    text_add_string(out, "</g>");
    plot_close(&q);
}

/* ---- E2: the front */
/* Accuracy has room from 0 to 1 where nothing tells its levels apart. */
static void span_room(span *y, int v) {
    if (v && !(y->high > y->low) && y->low >= 0 && y->high <= 1) { y->low = 0; y->high = 1; }
}
enum { FRONT_WHISKERS = 40, BOXES_MOST = 2048 };

typedef struct box { double x, y, width, height; } box;
typedef struct boxes { box items[BOXES_MOST]; size_t count; } boxes;
static int box_is_free(const boxes *b, box n) {
    for (size_t i = 0; i < b->count; i++) {
        const box *o = &b->items[i];
        if (n.x < o->x + o->width && o->x < n.x + n.width && n.y < o->y + o->height && o->y < n.y + n.height) return 0;
    }
    return 1;
}
static void box_take(boxes *b, double x, double y, double width, double height) {
    box n;
    n.x = x; n.y = y; n.width = width; n.height = height;
    if (b->count < BOXES_MOST) b->items[b->count++] = n;
}
/* Writes a point's name beside it where nothing stands yet; a name that has no room is left to the table and the pointer. */
static void plot_name(plot *q, boxes *b, double x, double y, const char *text) {
    static const struct { double x, y; } corners[] = {{8, -7}, {9, 4}, {8, 15}, {-1, -14}, {-1, 20}, {9, 26}, {9, -22}};
    double px = text_px(text);
    for (int side = 1; side >= 0; side--) { /* first to the left: no point of a front stands above there */
        for (size_t i = 0; i < sizeof corners / sizeof corners[0] && b->count < BOXES_MOST; i++) {
            box n;
            n.x = side ? x - corners[i].x - px : x + corners[i].x;
            n.y = y + corners[i].y - 11;
            n.width = px;
            n.height = 14;
            if (n.x < q->x.from + 2 || n.x + px > q->x.to - 2 || n.y < q->y.to || n.y + 14 > q->y.from || !box_is_free(b, n)) continue;
            box_take(b, n.x, n.y, px, 14);
            plot_text(q, n.x, n.y + 11, "", " class=\"o\"", text);
            return;
        }
    }
}
static vp_estimate point_latency(const vp_bootstrap_point *b) {
    vp_estimate e;
    e.value = b->latency;
    e.low = b->latency_low;
    e.high = b->latency_high;
    return e;
}
static vp_estimate point_accuracy(const vp_bootstrap_point *b) {
    vp_estimate e;
    e.value = b->accuracy;
    e.low = b->accuracy_low;
    e.high = b->accuracy_high;
    return e;
}
static int has_whiskers(const tradeoff *t, size_t i) { return t->config_count <= FRONT_WHISKERS || is_listed(t->front, t->front_count, i); }
static void front_line(plot *q, const tradeoff *t) { /* steps: what the next member costs is only reached there */
    if (!t->front_count) return;
    text_add_string(q->out, "<g class=\"s1\"><path class=\"l\" d=\"");
    for (size_t i = 0; i < t->front_count; i++) {
        double x = scale_place(&q->x, t->at_latency[t->front[i]]), y = scale_place(&q->y, t->at_accuracy[t->front[i]]);
        page_add(q->out, i ? "H%.1fV%.1f" : "M%.1f %.1f", x, y);
    }
    page_add(q->out, "H%.1f\"/></g>\n", q->x.to);
}
static void front_mark(plot *q, const report *p, const tradeoff *t, size_t i) {
    const vp_bootstrap_point *b = &t->points[i];
    int is_member = is_listed(t->front, t->front_count, i);
    double x = scale_place(&q->x, b->latency), y = scale_place(&q->y, b->accuracy);
    char name[80], title[512];
    if (!isfinite(x) || !isfinite(y)) return;
    snprintf(title, sizeof title, "%s%s\n%s %s ms\naccuracy %s\nmember of the front in %s %% of the resamples",
             setting_text(&p->r->files[t->group->paired[i]], name),
             is_member ? ", on the front" : "", percentile_text(p->settings.percentile), figure_of_estimate(point_latency(b)).text,
             figure_of_estimate(point_accuracy(b)).text, figure_percent(b->membership).text);
    page_add(q->out, "<g class=\"s%d\">", is_member ? 1 : 0);
    if (has_whiskers(t, i)) plot_whiskers(q, x, y, point_latency(b), point_accuracy(b));
    plot_mark(q->out, is_member ? 3 : 0, x, y, is_member ? 5 : 4, is_member ? 1 : isfinite(b->membership) ? 0.4 + 0.6 * b->membership : 0.6, title);
    text_add_string(q->out, "</g>\n");
}
static void page_front(text_buffer *out, const report *p, const tradeoff *t) {
    boxes *b = zeroed(1, sizeof *b);
    span x = span_none(), y = span_none();
    char caption[256], label[64], name[80];
    plot q;
    for (size_t i = 0; i < t->config_count; i++) {
        span_add(&x, t->points[i].latency);
        span_add(&y, t->points[i].accuracy);
        if (!has_whiskers(t, i)) continue;
        span_add_estimate(&x, point_latency(&t->points[i]));
        span_add_estimate(&y, point_accuracy(&t->points[i]));
    }
    span_room(&y, 1);
    snprintf(caption, sizeof caption, "Accuracy against %s of %s; %s", percentile_text(p->settings.percentile), METRIC_KEYS[p->settings.axis],
             t->is_corpus ? "a metric of the whole corpus has no intervals"
             : t->config_count > FRONT_WHISKERS ? "95 % intervals of the front's members" : "95 % intervals");
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 1, 0, 3, "on the Pareto front");
    legend_item(out, COLOUR_SERIES, 0, 0, 0, "not on it; the fuller the colour, the likelier a member in a resample");
    legend_close(out);
    plot_open(&q, out, caption, 1000, 460);
    snprintf(label, sizeof label, "%s of %s, ms", percentile_text(p->settings.percentile), METRIC_KEYS[p->settings.axis]);
    plot_frame(&q, x, needs_log(x), y, 0, label, "accuracy");
    front_line(&q, t);
    for (int members = 0; members < 2; members++)
        for (size_t i = 0; i < t->config_count; i++) if (is_listed(t->front, t->front_count, i) == members) front_mark(&q, p, t, i);
    for (size_t i = 0; i < t->front_count; i++)
        box_take(b, scale_place(&q.x, t->at_latency[t->front[i]]) - 7, scale_place(&q.y, t->at_accuracy[t->front[i]]) - 7, 14, 14);
    for (size_t i = 0; i < t->config_count; i++)
        box_take(b, scale_place(&q.x, t->at_latency[i]) - 4, scale_place(&q.y, t->at_accuracy[i]) - 4, 8, 8);
    for (size_t i = 0; i < t->front_count; i++)
        plot_name(&q, b, scale_place(&q.x, t->at_latency[t->front[i]]), scale_place(&q.y, t->at_accuracy[t->front[i]]),
                  setting_text(&p->r->files[t->group->paired[t->front[i]]], name));
    plot_close(&q);
    free(b);
}

/* ---- E2: what the knobs do */
static const vp_effect *effect_of(const tradeoff *t, int v, vp_effect_kind kind, int32_t knob_a, int32_t a, int32_t knob_b, int32_t b) {
    for (size_t i = 0; i < t->effect_count; i++) {
        const vp_effect *e = &t->effects[v][i];
        if (e->kind == kind && e->knob_a == knob_a && e->level_a == a && e->knob_b == knob_b && e->level_b == b) return e;
    }
    return NULL;
}
static double effect_value(const vp_effect *e) { return e ? e->estimate : 0; }
static const char *value_label(const report *p, int v, char out[48]) {
    if (v) snprintf(out, 48, "mean accuracy"); else snprintf(out, 48, "mean %s, ms", METRIC_KEYS[p->settings.axis]);
    return out;
}
static const char *knob_label(const report *p, const tradeoff *t, int32_t knob) {
    int is_size = t->knob_of[knob] == KNOB_SIZE && !p->r->files[t->group->paired[t->level_example[KNOB_SIZE][0]]].tier;
    return is_size ? "image size, target vision tokens" : KNOB_NAMES[t->knob_of[knob]];
}
/* An axis of a knob's levels at equal steps, named where there is room. */
static void plot_levels(plot *q, const report *p, const tradeoff *t, int32_t knob) {
    int32_t count = t->knobs.level_counts[knob];
    double used = -HUGE_VAL, step = (q->width - PLOT_LEFT - PLOT_RIGHT) / count;
    memset(&q->x, 0, sizeof q->x);
    q->x.from = PLOT_LEFT;
    q->x.to = q->width - PLOT_RIGHT;
    q->x.low = -0.5;
    q->x.high = count - 0.5;
    for (int32_t i = 0; i < count; i++) {
        char text[48];
        double at = q->x.from + step * (i + 0.5), half;
        report_level_text(t, p->r, t->knob_of[knob], i, text);
        text[strcspn(text, " ")] = 0; /* "576 tokens": the axis says what */
        half = text_px(text) / 2;
        if (at - half < used || at - half < 0 || at + half > q->width) continue;
        plot_text(q, at, q->height - PLOT_BOTTOM + 18, "middle", "", text);
        used = at + half + 8;
    }
}
/* A knob's levels, all others in the mean: mean and interval. */
static void page_main_effect(text_buffer *out, const report *p, const tradeoff *t, int32_t knob, int v) {
    span y = span_none();
    double mean = t->effects[v][0].estimate;
    char caption[160], label[48];
    plot q;
    for (int32_t i = 0; i < t->knobs.level_counts[knob]; i++) {
        const vp_effect *e = effect_of(t, v, VP_EFFECT_MAIN, knob, i, -1, -1);
        if (!e) return;
        span_add(&y, mean + e->estimate);
        span_add(&y, mean + e->low);
        span_add(&y, mean + e->high);
    }
    snprintf(caption, sizeof caption, "%s by %s", v ? "Accuracy" : "Latency",
             KNOB_NAMES[t->knob_of[knob]]);
    figure_open(out, caption, 0);
    span_room(&y, v);
    plot_open(&q, out, caption, 520, 260);
    q.y = scale_make(y, 0, q.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&q, p, t, knob);
    plot_y_axis(&q);
    plot_labels(&q, knob_label(p, t, knob), value_label(p, v, label));
    plot_segment(&q, "r", q.x.from, scale_place(&q.y, mean), q.x.to, scale_place(&q.y, mean));
    colour_open(out, COLOUR_SERIES, v ? 1 : 0, 0);
    for (int32_t i = 0; i < t->knobs.level_counts[knob]; i++) {
        const vp_effect *e = effect_of(t, v, VP_EFFECT_MAIN, knob, i, -1, -1);
        vp_estimate whole;
        char title[256], level[48];
        whole.value = mean + e->estimate;
        whole.low = mean + e->low;
        whole.high = mean + e->high;
        snprintf(title, sizeof title, "%s %s: %s", KNOB_NAMES[t->knob_of[knob]], report_level_text(t, p->r, t->knob_of[knob], i, level),
                 figure_of_estimate(whole).text);
        plot_whiskers(&q, scale_place(&q.x, i), scale_place(&q.y, whole.value), estimate_none(), whole);
        plot_mark(out, v ? 3 : 0, scale_place(&q.x, i), scale_place(&q.y, whole.value), 4, 1, title);
    }
    text_add_string(out, "</g>");
    plot_close(&q);
}
/* Mean of a pair of levels, as the effects make it up. */
static double pair_mean(const tradeoff *t, int v, int32_t a, int32_t la, int32_t b, int32_t lb) {
    return t->effects[v][0].estimate + effect_value(effect_of(t, v, VP_EFFECT_MAIN,
                                                              a, la, -1, -1)) + effect_value(effect_of(t, v, VP_EFFECT_MAIN, b, lb, -1, -1))
         + effect_value(effect_of(t, v, VP_EFFECT_PAIR, a, la, b, lb));
}
enum { LINES_SHOWN = 8 };

/* A line a level of knob b over the levels of knob a: parallel lines are no interaction. */
static void page_interaction(text_buffer *out, const report *p, const tradeoff *t, int32_t a, int32_t b, int v) {
    int32_t levels = t->knobs.level_counts[a], lines = t->knobs.level_counts[b];
    int shown = lines < LINES_SHOWN ? lines : LINES_SHOWN;
    span y = span_none();
    char caption[160], label[48], level[48];
    plot q;
    for (int32_t i = 0; i < levels; i++) for (int32_t k = 0; k < lines; k++) span_add(&y, pair_mean(t, v, a, i, b, k));
    snprintf(caption, sizeof caption, "%s by %s and %s", v ? "Accuracy" : "Latency", KNOB_NAMES[t->knob_of[a]],
             KNOB_NAMES[t->knob_of[b]]);
    figure_open(out, caption, 0);
    legend_open(out);
    page_text(out, KNOB_NAMES[t->knob_of[b]]);
    text_add_string(out, ": ");
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at >= 0) legend_item(out, COLOUR_RAMP, at, shown, at, report_level_text(t, p->r, t->knob_of[b], k, level));
    }
    legend_close(out);
    span_room(&y, v);
    plot_open(&q, out, caption, 520, 280);
    q.y = scale_make(y, 0, q.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&q, p, t, a);
    plot_y_axis(&q);
    plot_labels(&q, knob_label(p, t, a), value_label(p, v, label));
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_RAMP, at, shown);
        text_add_string(out, "<path class=\"l\" d=\"");
        for (int32_t i = 0; i < levels; i++) page_add(out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&q.x, i),
                                                      scale_place(&q.y, pair_mean(t, v, a, i, b, k)));
        text_add_string(out, "\"/>");
        for (int32_t i = 0; i < levels; i++) {
            const vp_effect *e = effect_of(t, v, VP_EFFECT_PAIR, a, i, b, k);
            char title[256], other[48];
            vp_estimate pair;
            pair.value = e ? e->estimate : 0;
            pair.low = e ? e->low : (double)NAN;
            pair.high = e ? e->high : (double)NAN;
            snprintf(title, sizeof title, "%s %s, %s %s: %s\nover what both do alone: %s", KNOB_NAMES[t->knob_of[a]],
                     report_level_text(t, p->r, t->knob_of[a], i, level),
                     KNOB_NAMES[t->knob_of[b]], report_level_text(t, p->r, t->knob_of[b], k, other), figure_number(pair_mean(t, v, a, i, b, k)).text,
                     figure_of_estimate(pair).text);
            plot_mark(out, at, scale_place(&q.x, i), scale_place(&q.y, pair_mean(t, v, a, i, b, k)), 3.4, 1, title);
        }
        text_add_string(out, "</g>\n");
    }
    plot_close(&q);
}
/* Shares of the variance between configurations, as bars. */
static void page_shares(text_buffer *out, const tradeoff *t) {
    static const char caption[] = "What makes configurations differ: shares of the variance between their means";
    int32_t knobs = t->knobs.knob_count, terms = knobs + (t->order == 2 ? knobs * (knobs - 1) / 2 : 0) + 1;
    plot q;
    span x = {0, 100};
    for (int32_t term = 0; term < terms; term++) for (int v = 0; v < 2 && t->shares[v]; v++) span_add(&x, 100 * t->shares[v][term]);
    if (x.low < 0) x.low = 0; /* a grid with holes: bars begin at 0 */
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 0, 0, -1, "latency");
    if (t->shares[1]) legend_item(out, COLOUR_SERIES, 1, 0, -1, "accuracy");
    legend_close(out);
    plot_open(&q, out, caption, 1000, 34.0 * terms + 50);
    q.x = scale_make(x, 0, 170, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "share of the variance, %");
    for (int32_t term = 0, a = 0, b = 0; term < terms; term++) {
        char name[80] = "what is left";
        double y = 4 + 34.0 * term;
        if (term < knobs) snprintf(name, sizeof name, "%s", KNOB_NAMES[t->knob_of[term]]);
        else if (term < terms - 1) {
            if (++b == knobs) b = ++a + 1;
            snprintf(name, sizeof name, "%s x %s", KNOB_NAMES[t->knob_of[a]], KNOB_NAMES[t->knob_of[b]]);
        }
        plot_text(&q, q.x.from - 8, y + 18, "end", "", name);
        for (int v = 0; v < 2 && t->shares[v]; v++) {
            double share = 100 * t->shares[v][term], end = scale_place(&q.x, share > 0 ? share : 0);
            page_add(out, "<rect class=\"b s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"/>", v, q.x.from, y + 13 * v, end - q.x.from);
            plot_text(&q, end + 6, y + 10 + 13 * v, "", "", figure_of("%.1f %%", share).text);
        }
    }
    plot_close(&q);
}
static void page_coupling(text_buffer *out, const report *p, const tradeoff *t) {
    if (!t->order) { page_element(out, "p",
                                  t->knobs.knob_count ? "Effects of knobs: this grid cannot tell them apart." : "No knob varies."); return; }
    if (t->shares[0]) page_shares(out, t);
    text_add_string(out,
                    "<p class=\"wide soft\">Means over all other knobs. By one knob: 95 % intervals of the difference to the mean of all "
                     "(dashed). By "
                         "two knobs: lines that are not parallel are an interaction.</p>\n");
    for (int32_t a = 0; a < t->knobs.knob_count; a++) for (int v = 0; v < 2; v++) if (t->effects[v]) page_main_effect(out, p, t, a, v);
    for (int32_t a = 0; a < t->knobs.knob_count && t->order == 2; a++)
        for (int32_t b = a + 1; b < t->knobs.knob_count; b++) for (int v = 0; v < 2; v++) if (t->effects[v]) page_interaction(out, p, t, a, b, v);
}

/* ---- E3: predicted against measured, by models that never saw the configuration */
enum { HELD_DOTS = 1500, EXPERTS_ASSUMED = 64 };

static int64_t experts_said(const results *r) {
    int64_t said = -1;
    for (size_t i = 0; i < r->count; i++) if (r->files[i].expert_count > said) said = r->files[i].expert_count;
    return said;
}
/* As pair_rows, where a logarithm can be taken, with each row's file. */
static size_t held_pairs(const measurements *m, const double *predicted, int part, double *pairs, uint32_t *files) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        double y = measured_part(m, part, i), x = predicted[(size_t)part * m->count + i];
        if (!(isfinite(y) && y > 0) || !(isfinite(x) && x > 0)) continue;
        pairs[count] = y;
        pairs[m->count + count] = x;
        files[count++] = m->configs[i];
    }
    return count;
}
static void held_dots(plot *q, const double *real, const double *guess, size_t count) {
    size_t stride = count / HELD_DOTS + 1;
    text_add_string(q->out, "<path class=\"d\" d=\"");
    for (size_t i = 0; i < count; i += stride) page_add(q->out, "M%.1f %.1fh0", scale_place(&q->x, real[i]), scale_place(&q->y, guess[i]));
    text_add_string(q->out, "\"/>\n");
}
/* A mark a configuration: mean measured and predicted, with its own mean error. */
static void held_marks(plot *q, const report *p, const double *real, const double *guess, const uint32_t *files, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        double y = 0, x = 0, off = 0, n;
        char name[160], title[512];
        for (end = first; end < count && files[end] == files[first]; end++) {
            y += real[end];
            x += guess[end];
            off += fabs(guess[end] - real[end]) / real[end];
        }
        n = (double)(end - first);
        snprintf(title, sizeof title, "%s\nmeasured %s ms, predicted %s ms (means)\nmean error of a sample %s %%",
                 report_full_name(p->r, &p->r->files[files[first]], name),
                 figure_number(y / n).text, figure_number(x / n).text, figure_percent(off / n).text);
        plot_mark(q->out, 0, scale_place(&q->x, y / n), scale_place(&q->y, x / n), 3.4, 1, title);
    }
}
static void page_held_out(text_buffer *out, const report *p, const measurements *m, const double *predicted, int part) {
    double *pairs = resize(NULL, m->count, 3 * sizeof *pairs);
    uint32_t *files = resize(NULL, m->count, sizeof *files);
    size_t count = held_pairs(m, predicted, part, pairs, files);
    vp_linear_errors e;
    span s = span_none();
    char caption[320];
    plot q;
    if (count > 1 && vp_linear_errors_compute(pairs, pairs + m->count, count, pairs + 2 * m->count, &e) == VP_OK) {
        for (size_t i = 0; i < count; i++) { span_add(&s, pairs[i]); span_add(&s, pairs[m->count + i]); }
        snprintf(caption, sizeof caption, "%s: mean error %.2f %%", part_name(part), 100 * e.mape);
        figure_open(out, caption, 0);
        page_add(out, "<p class=\"legend\">|error| mean %s ms, P95 %s ms; bias %s ms; R2 %s; %zu samples</p>", figure_number(e.mae).text,
                 figure_number(e.p95_absolute).text, figure_of(fabs(e.bias) < 1 ? "%+.3f" : "%+.2f", e.bias).text,
                 figure_of("%.4f", e.r2).text, count);
        plot_open(&q, out, caption, 520, 340);
        if (!needs_log(s)) span_add(&s, 0);
        plot_frame(&q, s, needs_log(s), s, needs_log(s), "measured, ms", "predicted, ms");
        plot_segment(&q, "r", scale_place(&q.x, q.x.low), scale_place(&q.y, q.x.low), scale_place(&q.x, q.x.high), scale_place(&q.y, q.x.high));
        colour_open(out, COLOUR_SERIES, part == VP_LATENCY_VISION ? 0 : part == VP_LATENCY_PREFILL ? 3 : part == VP_LATENCY_DECODE ? 1 : 2, 0);
        held_dots(&q, pairs, pairs + m->count, count);
        held_marks(&q, p, pairs, pairs + m->count, files, count);
        text_add_string(out, "</g>\n");
        plot_close(&q);
    }
    free(pairs);
    free(files);
}
static void page_estimates(text_buffer *out, const report *p) {
    static const int parts[] = {ESTIMATE_TOTAL, VP_LATENCY_VISION, VP_LATENCY_PREFILL, VP_LATENCY_DECODE};
    int64_t experts = experts_said(p->r);
    measurements m;
    double *predicted;
    size_t before;
    measurements_read(&m, p->r, experts > 0 ? experts : (int64_t)EXPERTS_ASSUMED);
    predicted = resize(NULL, m.count, ESTIMATE_PARTS * sizeof *predicted);
    estimator_predict_left_out(VP_LATENCY_PHYSICAL, &m, SPLIT_CONFIG, predicted);
    add_totals(&m, predicted);
    text_add_string(out,
                    "<section id=\"e3\"><h2>Predicted against measured</h2>\n<p class=\"soft\">Each configuration is predicted by a model of all "
                         "others: linear in physical features, no coefficient below 0. Large marks: means of configurations; dots: samples; "
                         "dashed: equal.");
    if (experts < 0) page_add(out, " The files do not say how many experts the model has: %d are assumed.", (int)EXPERTS_ASSUMED);
    text_add_string(out, "</p>\n<div class=\"grid\">");
    before = out->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) page_held_out(out, p, &m, predicted, parts[i]);
    text_add_string(out, "</div>");
    if (out->bytes == before + 6) text_add_string(out,
                                                  "<p>Nothing can be predicted: one configuration alone, or no token counts and stage times.</p>");
    text_add_string(out, "</section>\n");
    measurements_free(&m);
    free(predicted);
}

/* ---- words and tables */
static const vp_bootstrap_point *boot_point(const report *p, size_t file, int *on_front) {
    *on_front = is_on_front(p, file);
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        for (size_t i = 0; t->points && i < t->config_count; i++) if (t->group->paired[i] == file) return &t->points[i];
    }
    return NULL;
}
static void table_cell(text_buffer *out, figure f) {
    text_add_string(out, "<td>");
    page_text(out, f.text);
}
static void table_range(text_buffer *out, vp_estimate e) { /* the value, its interval small behind it */
    table_cell(out, figure_number(e.value));
    if (isfinite(e.low) || isfinite(e.high)) page_add(out, " <small>%s</small>", figure_range(1, e.low, e.high).text);
}
static void table_row(text_buffer *out, const report *p, size_t i) {
    static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const decomposition *d = &p->items[i];
    int on_front;
    const vp_bootstrap_point *b = boot_point(p, i, &on_front);
    char name[160];
    page_add(out, "<tr><th scope=\"row\" data-v=\"%zu\">", i);
    page_text(out, report_full_name(p->r, d->file, name));
    page_add(out, "<td>%zu", d->file->count);
    if (b) table_range(out, point_accuracy(b)); else table_cell(out, figure_number(d->file->accuracy));
    table_range(out, d->p50[METRIC_TOTAL]);
    table_cell(out, figure_number(d->p95[METRIC_TOTAL]));
    for (int m = 0; m < 5; m++) table_cell(out, figure_number(d->p50[metrics[m]].value));
    table_cell(out, figure_of("%.2f", 100 * d->closure));
    table_cell(out, figure_percent(d->run_spread));
    table_cell(out, figure_percent(d->idle_share));
    page_add(out, "<td data-v=\"%d\">%s", on_front, on_front ? "yes" : "");
    table_cell(out, figure_percent(b ? b->membership : (double)NAN));
    text_add_string(out, "\n");
}
static void page_table(text_buffer *out, const report *p) {
    static const char *const heads[] = {"configuration", "samples", "accuracy", "T_total P50, ms", "P95, ms", "TTFT, ms", "vision, ms",
                                        "prefill, ms", "decode, ms",
                                        "ms a token", "closure, %", "run spread, %", "idle, %", "front", "member, %"};
    text_add_string(out,
                    "<section id=\"table\"><h2>All configurations</h2><p>Medians over samples, in brackets 95 % intervals; a click on a head sorts."
                         "</p>\n<div class=\"scroll\"><table class=\"sort\"><thead><tr>");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) page_add(out, "<th scope=\"col\"><button>%s</button>", heads[i]);
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = 0; i < p->r->count; i++) table_row(out, p, i);
    text_add_string(out, "</tbody></table></div></section>\n");
}
/* What a text field of the files says; where they differ, the first three. */
static void provenance_text(text_buffer *out, const results *r, const char *name, size_t offset) {
    const char *seen[4];
    size_t count = 0;
    for (size_t i = 0; i < r->count && count < 4; i++) {
        const char *text = *(char *const *)(const void *)((const char *)&r->files[i] + offset);
        size_t k = 0;
        while (text && k < count && strcmp(seen[k], text)) k++;
        if (text && k == count) seen[count++] = text;
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
static void provenance_number(text_buffer *out, const results *r, const char *name, size_t offset) {
    int64_t first, other;
    int differ = 0;
    memcpy(&first, (const char *)&r->files[0] + offset, sizeof first);
    for (size_t i = 1; i < r->count; i++) {
        memcpy(&other, (const char *)&r->files[i] + offset, sizeof other);
        differ |= other != first;
    }
    if (first >= 0 || differ) page_add(out, "<dt>%s</dt><dd>%lld%s</dd>\n", name, (long long)first, differ ? " (others differ)" : "");
}
static void provenance_times(text_buffer *out, const results *r) { /* as texts: ISO 8601 sorts by time */
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        if (f->measured_from && (!first || strcmp(f->measured_from, first) < 0)) first = f->measured_from;
        if (f->measured_to && (!last || strcmp(f->measured_to, last) > 0)) last = f->measured_to;
    }
    if (!first || !last) return;
    text_add_string(out, "<dt>measured</dt><dd>");
    page_text(out, first);
    text_add_string(out, " to ");
    page_text(out, last);
    text_add_string(out, "</dd>\n");
}
static void page_provenance(text_buffer *out, const report *p) {
    static const struct { const char *name; size_t offset; } texts[] = {
        {"data set", offsetof(result_file, task)}, {"data", offsetof(result_file, data)}, {"data hash", offsetof(result_file, data_hash)},
        {"accuracy by", offsetof(result_file, metric)}, {"model", offsetof(result_file, model)}, {"weights", offsetof(result_file, weights)},
        {"importance scores", offsetof(result_file, importance)}, {"device", offsetof(result_file, device)}, {"host", offsetof(result_file, host)},
        {"vlmprof", offsetof(result_file, version)}, {"timing", offsetof(result_file, timing)}, {"status", offsetof(result_file, status)}};
    static const struct { const char *name; size_t offset; } numbers[] = {
        {"seed", offsetof(result_file, seed)}, {"runs a sample, at least", offsetof(result_file, runs_per_sample)},
        {"most new tokens", offsetof(result_file, max_new_tokens)}, {"experts", offsetof(result_file, expert_count)},
        {"decoder blocks", offsetof(result_file, total_blocks)}};
    const result_file *f = &p->r->files[0];
    text_add_string(out, "<section id=\"source\"><h2>Provenance</h2><dl>\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) provenance_text(out, p->r, texts[i].name, texts[i].offset);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) provenance_number(out, p->r, numbers[i].name, numbers[i].offset);
    provenance_times(out, p->r);
    if (isfinite(f->cost_share)) {
        vp_estimate tool;
        tool.value = 100 * f->cost_share; tool.low = 100 * f->cost_low; tool.high = 100 * f->cost_high;
        page_add(out, "<dt>cost of stage times</dt><dd>%s %% of T_total</dd>\n", figure_of_estimate(tool).text);
    }
    page_add(out, "<dt>report by</dt><dd>vlmprof %s, %zu resamples, seed %u</dd>\n", VLMPROF_VERSION, p->settings.resamples,
             (unsigned)p->settings.seed);
    text_add_string(out, "</dl></section>\n");
}
static void page_list(text_buffer *out, const char *id, const char *title, const text_list *items) {
    if (!items->count) return;
    page_add(out, "<section id=\"%s\"><h2>%s</h2><ul>\n", id, title);
    for (size_t i = 0; i < items->count; i++) {
        page_element(out, "li", items->items[i]);
        text_add_string(out, "\n");
    }
    text_add_string(out, "</ul></section>\n");
}

/* ---- the page */
static void page_style(text_buffer *out) {
    text_add_string(out,
        "<style>\n"
        ":root{color-scheme:light dark;--bg:#fff;--fg:#1a1c1f;--soft:#5a6068;--line:#dfe2e6;--box:#f5f6f8;--warn:#fdf3e3;--edge:#c77700}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8ea;--soft:#a3abb4;--line:#343a41;--box:#1f2328;--warn:#33281a;"
        "--edge:#e69f00}.s0{--c:#2487cb!important}}\n"
        "*{box-sizing:border-box}body{margin:0 auto;padding:1.2rem 1.5rem 4rem;max-width:1180px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.4rem;border-top:1px solid var(--line)}h3{"
        "font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0}a{color:inherit}\n"
        "nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--soft);font-size:.9rem;margin:.4rem 0 0}.soft{color:var(--soft)}\n"
        "#warnings{background:var(--warn);border-left:4px solid var(--edge);padding:.1rem 1rem .5rem;margin:1rem 0}#warnings h2{border:0;"
        "margin:.5rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}@media(min-width:900px){dl{"
        "grid-template-columns:max-content 1fr max-content 1fr}}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n");
    text_add_string(out,
        ".grid .wide{grid-column:1/-1}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:1rem}figure{"
        "margin:0;padding:.8rem;background:var(--box);border-radius:6px;break-inside:avoid;min-width:0}"
        "figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}\n"
        "svg{display:block;width:100%;height:auto;overflow:visible;font:11px system-ui,sans-serif;fill:var(--fg)}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.2rem 0 .5rem}.legend span{display:inline-flex;"
        "align-items:center;gap:.35rem}.legend svg{width:14px;height:12px;flex:none}\n"
        ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#e69f00}.s4{--c:#cc79a7}.s5{--c:#56b4e9}.s6{--c:#8c8c8c}.s7{--c:#f0e442}.s8{"
        "--c:var(--fg)}\n"
        ".m{fill:var(--c);stroke:var(--fg);stroke-width:.6;stroke-opacity:.55}.l{stroke:var(--c);stroke-width:1.8;fill:none}.w{"
        "stroke:var(--c);stroke-width:1.2;opacity:.8;fill:none}.b{fill:var(--c);stroke:var(--box);stroke-width:.5}.a{fill:var(--c)}.h{"
        "fill:transparent}.h:hover{fill:var(--fg);fill-opacity:.18}.g{stroke:var(--line);stroke-width:1}.t{stroke:var(--soft);"
        "stroke-width:.7;opacity:.35}.r{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 4;fill:none}.d{stroke:var(--c);"
        "stroke-width:2.2;stroke-linecap:round;opacity:.55}.n{fill:var(--soft)}.o{paint-order:stroke;stroke:var(--box);stroke-width:3px;"
        "stroke-linejoin:round}.many .m{stroke-width:.25}.many .m:hover,.m:hover{stroke-width:2.5;stroke-opacity:1}\n");
    text_add_string(out,
        ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.76rem;font-variant-numeric:tabular-nums;width:100%}td,th{"
        "padding:.2rem .32rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}tbody th{text-align:left;"
        "font-weight:500}thead th{white-space:normal;vertical-align:bottom;background:var(--box)}thead th:first-child{text-align:left}"
        "tbody tr:hover{background:var(--box)}small{color:var(--soft)}\n"
        "button{all:unset;cursor:pointer;font-weight:600}button:focus-visible{outline:2px solid var(--edge)}"
        "th[aria-sort=ascending] button::after{content:' \\25B2'}th[aria-sort=descending] button::after{content:' \\25BC'}\n"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--box:#fff;--warn:#fff;--edge:#000}body{"
        "max-width:none;padding:0;font-size:10pt}nav{display:none}.scroll{overflow:visible}table{font-size:6.5pt}td,th{padding:1pt 2pt}thead{"
        "display:table-header-group;break-inside:avoid}tr{break-inside:avoid}h2,h3,.soft{break-after:avoid}.grid{grid-template-columns:1fr 1fr}*{"
        "print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "</style>\n");
}
static void page_script(text_buffer *out) { /* sorts a table by a column: numbers by value, what is none goes last */
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
static void page_head(text_buffer *out, const report *p) {
    size_t samples = 0;
    for (size_t i = 0; i < p->r->count; i++) if (p->r->files[i].count > samples) samples = p->r->files[i].count;
    text_add_string(out,
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                         "<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>vlmprof: ");
    page_text(out, p->r->files[0].task);
    page_add(out, ", %zu configurations</title>\n", p->r->count);
    page_style(out);
    text_add_string(out, "</head><body>\n<header><h1>");
    for (size_t i = 0; i < p->r->group_count && i < 3; i++) {
        if (i) text_add_string(out, ", ");
        page_text(out, p->r->files[p->r->groups[i].first].task);
    }
    if (p->r->group_count > 3) page_add(out, " and %zu more", p->r->group_count - 3);
    page_add(out, "</h1><p class=\"soft\">%zu configuration%s, up to %zu samples each", p->r->count, p->r->count == 1 ? "" : "s", samples);
    if (p->r->files[0].model) { text_add_string(out, ", model "); page_text(out, p->r->files[0].model); }
    if (p->r->files[0].device) { text_add_string(out, ", "); page_text(out, p->r->files[0].device); }
    text_add_string(out, "</p><nav><a href=\"#source\">Provenance</a><a href=\"#findings\">Findings</a><a href=\"#e1\">Where time goes</a>"
                         "<a href=\"#e2\">What it buys</a><a href=\"#e3\">Predicted</a><a href=\"#table\">All configurations</a></nav></header>\n");
}
static void page_e1(text_buffer *out, const report *p) {
    static const char *const kinds[] = {"vision", "prefill", "decode", "decode context"};
    text_add_string(out, "<section id=\"e1\"><h2>Where the time goes</h2>\n<div class=\"grid\">");
    page_stack(out, p);
    page_parts(out, p);
    page_work(out, p, 0);
    page_work(out, p, 1);
    text_add_string(out, "</div>\n");
    if (p->peak_tflops > 0 && p->peak_gbs > 0)
        page_add(out, "<p class=\"soft\">Roofs %s TFLOP/s and %s GB/s: %s.</p>\n", figure_number(p->peak_tflops).text,
                 figure_number(p->peak_gbs).text,
                 p->peaks_are_given ? "as given" : "the best that stages of 1 % of a request or more reach here, not the device's own");
    for (size_t g = 0; g < p->r->group_count; g++) {
        text_add_string(out, "<h3>Scaling: ");
        page_text(out, p->r->files[p->r->groups[g].first].task);
        text_add_string(out,
                        "</h3><p class=\"soft\">Medians with 95 % intervals and fitted lines with their slopes; of many settings a few, from the "
                             "least to the greatest slope, and all others in grey.</p><div class=\"grid\">");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) page_curves_of(out, p, g, kinds[i]);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
static void page_e2(text_buffer *out, const report *p) {
    text_add_string(out, "<section id=\"e2\"><h2>What it buys</h2>\n");
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        text_add_string(out, "<h3>");
        page_text(out, p->r->files[p->r->groups[g].first].task);
        text_add_string(out, "</h3>");
        if (t->reason[0]) { page_element(out, "p", t->reason); continue; }
        text_add_string(out, "<div class=\"grid\">");
        page_front(out, p, t);
        page_coupling(out, p, t);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
void report_page_write(const report *p, text_buffer *out) {
    page_head(out, p);
    page_list(out, "warnings", "Warnings", &p->warnings);
    page_provenance(out, p);
    page_list(out, "findings", "Findings", &p->findings);
    page_e1(out, p);
    page_e2(out, p);
    page_estimates(out, p);
    page_table(out, p);
    page_script(out);
    text_add_string(out, "</body></html>\n");
}
