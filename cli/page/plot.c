/* plot.c: axes, bars and lines as SVG. */
#include "page/plot.h"

#include "base/document.h"
#include "page/page.h"

#include <math.h>

struct span span_none(void) { return (struct span){HUGE_VAL, -HUGE_VAL, 1}; }
void span_add(struct span *span, double value) {
    if (!isfinite(value)) return;
    if (value < span->low) span->low = value;
    if (value > span->high) span->high = value;
    span->is_whole &= !(fabs(value - nearbyint(value)) > 0);
}
void span_add_estimate(struct span *span, vp_estimate estimate) {
    span_add(span, estimate.value);
    span_add(span, estimate.low);
    span_add(span, estimate.high);
}
/* The smallest of 1, 2 and 5 times a power of ten that is not below `least`. */
static double nice_step(double least) {
    double power = pow(10, floor(log10(least))), mantissa = least / power;
    return power * (mantissa <= 1.0000001 ? 1 : mantissa <= 2.0000001 ? 2 : mantissa <= 5.0000001 ? 5 : 10);
}
static void scale_linear(struct scale *scale, struct span span, int parts) {
    if (!(span.high > span.low)) { /* only one value: adds some room around it */
        double room = fabs(span.low) > 0 ? fabs(span.low) / 10 : 1;
        span.low -= room;
        span.high += room;
    }
    double step = nice_step((span.high - span.low) / parts);
    if (span.is_whole && step < 1) step = 1;
    scale->low = floor(span.low / step + 1e-6) * step;
    scale->high = ceil(span.high / step - 1e-6) * step;
    scale->digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6);
    if (scale->digits > 6 || fabs(scale->high) >= 1e6 || fabs(scale->low) >= 1e6) scale->digits = DIGITS_SHORTEST;
    for (int i = 0; i < TICKS_MOST && scale->low + i * step <= scale->high + step / 2; i++) {
        double tick = scale->low + i * step;
        scale->ticks[scale->tick_count++] = fabs(tick) < step / 1e6 ? 0 : tick;
    }
}
static void scale_log(struct scale *scale, struct span span) {
    static const double parts[] = {1, 2, 5};
    int first = (int)floor(log10(span.low) + 1e-9), last = (int)ceil(log10(span.high) - 1e-9), stride, is_fine;
    scale->is_log = 1;
    if (last <= first) last = first + 1;
    is_fine = last - first <= 3;
    stride = (last - first + 7) / 8;
    for (int exponent = first; exponent <= last; exponent += is_fine ? 1 : stride)
        for (int i = 0; i < (is_fine ? 3 : 1) && scale->tick_count < TICKS_MOST; i++)
            scale->ticks[scale->tick_count++] = pow(10, exponent) * parts[i];
    scale->low = pow(10, first);
    scale->high = pow(10, last);
    if (is_fine) { /* the axis ends at ticks */
        int from = 0, to;
        while (from + 1 < scale->tick_count && scale->ticks[from + 1] <= span.low * 1.0000001) from++;
        for (to = from; to + 1 < scale->tick_count && scale->ticks[to] < span.high * 0.9999999;) to++;
        if (to == from) { if (from) from--; else to++; }
        scale->low = scale->ticks[from];
        scale->high = scale->ticks[to];
        scale->tick_count = to - from + 1;
        memmove(scale->ticks, scale->ticks + from, (size_t)scale->tick_count * sizeof *scale->ticks);
    }
    scale->digits = DIGITS_SHORTEST;
}
struct scale scale_make(struct span span, int is_log, double from, double to) {
    struct scale scale = {.from = from, .to = to};
    if (!(span.high >= span.low)) { span.low = 0; span.high = 1; }
    const double px = fabs(to - from);
    if (is_log && span.low > 0) scale_log(&scale, span);
    else scale_linear(&scale, span, px < 220 ? 4 : px < 700 ? 6 : 9);
    return scale;
}
double scale_place(const struct scale *scale, double value) {
    double share = scale->is_log ? log(value / scale->low) / log(scale->high / scale->low)
                                 : (value - scale->low) / (scale->high - scale->low);
    return scale->from + share * (scale->to - scale->from);
}
static struct number_text scale_text(const struct scale *scale, double value) {
    struct number_text number;
    if (scale->digits < 0) snprintf(number.text, sizeof number.text, "%.4g", value);
    else snprintf(number.text, sizeof number.text, "%.*f", scale->digits, value);
    return number;
}
#define LETTER_PX 6.4 /* the width of an 11 px letter, rounded up so that texts do not touch */

double text_px(const char *text) { return LETTER_PX * (double)text_width(text); }
void text_fit(char *text, double px) {
    size_t most = (size_t)(px / LETTER_PX), width = 0;
    if (text_width(text) <= most) return;
    for (; *text && width + 1 < most; width++)
        for (text++; ((unsigned char)*text & 0xC0) == 0x80;) text++;
    memcpy(text, "\xE2\x80\xA6", 4); /* U+2026 */
}
void plot_open(struct plot *plot, struct text_buffer *out, const char *caption, double width, double height) {
    *plot = (struct plot){.out = out, .width = width, .height = height};
    page_add(out, "<svg viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx\" role=\"img\" aria-label=\"", width, height,
             width * 1.15);
    page_text(out, caption);
    text_add_string(out, "\">\n");
}
void plot_close(struct plot *plot) { text_add_string(plot->out, "</svg></figure>\n"); }
void figure_open(struct text_buffer *out, const char *caption, const char *note, int is_wide) {
    page_add(out, "<figure%s><figcaption>", is_wide ? " class=\"wide\"" : "");
    page_text(out, caption);
    text_add_string(out, "<span>");
    page_text(out, note);
    text_add_string(out, "</span></figcaption>\n");
}
void plot_title(struct text_buffer *out, const char *title) {
    text_add_string(out, "<title>");
    page_text(out, title);
    text_add_string(out, "</title>");
}
void plot_text(struct plot *plot, double x, double y, const char *anchor, const char *more, const char *text) {
    page_add(plot->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s%s>", x, y, *anchor ? " text-anchor=\"" : "", anchor,
             *anchor ? "\"" : "", more);
    page_text(plot->out, text);
    text_add_string(plot->out, "</text>");
}
void plot_segment(struct plot *plot, const char *kind, double x1, double y1, double x2, double y2) {
    page_add(plot->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", kind, x1, y1, x2, y2);
}
void plot_labels(struct plot *plot, const char *x_label, const char *y_label) {
    char turn[64];
    double middle = (plot->y.from + plot->y.to) / 2;
    plot_text(plot, (plot->x.from + plot->x.to) / 2, plot->height - 6, "middle", " class=\"n\"", x_label);
    snprintf(turn, sizeof turn, " class=\"n\" transform=\"rotate(-90 14 %.1f)\"", middle);
    plot_text(plot, 14, middle, "middle", turn, y_label);
    text_add_string(plot->out, "\n");
}
void plot_y_axis(struct plot *plot) {
    for (int i = 0; i < plot->y.tick_count; i++) {
        double at = scale_place(&plot->y, plot->y.ticks[i]);
        plot_segment(plot, "g", plot->x.from, at, plot->x.to, at);
        plot_text(plot, plot->x.from - 6, at + 4, "end", "", scale_text(&plot->y, plot->y.ticks[i]).text);
    }
}
void plot_x_axis(struct plot *plot) {
    double used = -HUGE_VAL;
    for (int i = 0; i < plot->x.tick_count; i++) {
        double at = scale_place(&plot->x, plot->x.ticks[i]);
        struct number_text number = scale_text(&plot->x, plot->x.ticks[i]);
        plot_segment(plot, "g", at, plot->y.from, at, plot->y.to);
        if (at - text_px(number.text) / 2 < used) continue;
        plot_text(plot, at, plot->y.from + 18, "middle", "", number.text);
        used = at + text_px(number.text) / 2 + 8;
    }
}
void plot_frame(struct plot *plot, struct span x_span, int x_log, struct span y_span, int y_log, const char *x_label,
                const char *y_label) {
    plot->x = scale_make(x_span, x_log, PLOT_LEFT, plot->width - PLOT_RIGHT);
    plot->y = scale_make(y_span, y_log, plot->height - PLOT_BOTTOM, PLOT_TOP);
    plot_y_axis(plot);
    plot_x_axis(plot);
    plot_labels(plot, x_label, y_label);
}
void colour_open(struct text_buffer *out, colour_set set, int at, int count) {
    /* blue, green, orange; each is lighter than the previous one, for prints without colours */
    static const int ends[3][3] = {{16, 122, 190}, {0, 158, 115}, {230, 159, 0}};
    double place = count > 1 ? 2.0 * at / (count - 1) : 0, part;
    int first = place < 1 ? 0 : 1, rgb[3];
    if (set == COLOUR_SERIES) { page_add(out, "<g class=\"s%d\">", at % SERIES_COUNT); return; }
    part = place - first;
    for (int channel = 0; channel < 3; channel++)
        rgb[channel] = (int)(ends[first][channel] + part * (ends[first + 1][channel] - ends[first][channel]) + 0.5);
    page_add(out, "<g class=\"c%d\" style=\"--c:#%02x%02x%02x\">", at, (unsigned)rgb[0], (unsigned)rgb[1],
             (unsigned)rgb[2]);
}
static void mark_add(struct text_buffer *out, int sign, double x, double y, double radius, double opacity) {
    char fade[32] = "";
    if (opacity < 0.995) snprintf(fade, sizeof fade, " opacity=\"%.2f\"", opacity);
    switch (sign % 5) {
    case 0: page_add(out, "<circle class=\"m\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"%s", x, y, radius, fade); break;
    case 1:
        page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"%s", x - radius * 0.9, y - radius * 0.9,
                 radius * 1.8, radius * 1.8, -radius * 1.8, fade);
        break;
    case 2:
        page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"%s", x, y - radius * 1.2, radius * 1.15,
                 radius * 2, -radius * 2.3, fade);
        break;
    case 3:
        page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"%s", x, y - radius * 1.3,
                 radius * 1.3, radius * 1.3, -radius * 1.3, radius * 1.3, -radius * 1.3, -radius * 1.3, fade);
        break;
    default:
        page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fl%.1f %.1fz\"%s", x - radius * 1.15, y - radius,
                 radius * 2.3, -radius * 1.15, radius * 2.1, fade);
    }
}
void plot_mark(const struct plot *plot, int sign, double x, double y, double radius, double opacity,
               const char *title) {
    mark_add(plot->out, sign, x, y, radius, opacity);
    text_add_string(plot->out, ">");
    plot_title(plot->out, title);
    text_add_string(plot->out, sign % 5 ? "</path>\n" : "</circle>\n");
}
void plot_whiskers(struct plot *plot, double x, double y, vp_estimate horizontal, vp_estimate vertical) {
    if (isfinite(horizontal.low) && isfinite(horizontal.high) && horizontal.low > (plot->x.is_log ? 0 : -HUGE_VAL))
        plot_segment(plot, "w", scale_place(&plot->x, horizontal.low), y, scale_place(&plot->x, horizontal.high), y);
    if (isfinite(vertical.low) && isfinite(vertical.high) && vertical.low > (plot->y.is_log ? 0 : -HUGE_VAL))
        plot_segment(plot, "w", x, scale_place(&plot->y, vertical.low), x, scale_place(&plot->y, vertical.high));
}
void legend_open(struct text_buffer *out) { text_add_string(out, "<p class=\"legend\">"); }
void legend_item(struct text_buffer *out, colour_set set, int at, int count, int sign, const char *text) {
    page_add(out, "<span data-k=\"%c%d\"><svg viewBox=\"0 0 14 12\" aria-hidden=\"true\">",
             set == COLOUR_SERIES ? 's' : 'c', at);
    colour_open(out, set, at, count);
    if (sign == SIGN_BAR) text_add_string(out, "<rect class=\"b\" y=\"1\" width=\"14\" height=\"10\"/>");
    else {
        text_add_string(out, "<path class=\"l\" d=\"M0 6H14\"/>");
        mark_add(out, sign, 7, 6, 3.4, 1);
        text_add_string(out, "/>");
    }
    text_add_string(out, "</g></svg>");
    page_text(out, text);
    text_add_string(out, "</span> ");
}
void legend_close(struct text_buffer *out) { text_add_string(out, "</p>\n"); }
int span_is_wide(struct span span) { return span.low > 0 && span.high / span.low > 30; }
int shown_at(size_t rank, size_t count, size_t most) {
    if (count <= most) return (int)rank;
    for (size_t k = 0; k < most; k++) if (rank == k * (count - 1) / (most - 1)) return (int)k;
    return -1;
}
