/* plot.c: axes, bars and lines as SVG. */
#include "report/plot.h"

#include "base/console.h"
#include "base/document.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void page_add(text_buffer *out, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_add_string(out, line);
}
/* Bytes of a character that may stand in a page as it is; 0: a control character, or one that turns the reading direction. */
static size_t page_character(const unsigned char *p, size_t left) {
    size_t bytes = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (bytes > left || vp_utf8_valid_bytes((const char *)p, bytes) != bytes) return 0;
    if (p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && p[1] < 0xA0)) return 0;
    if (p[0] == 0xE2 && ((p[1] == 0x80 && p[2] >= 0xA8 && p[2] <= 0xAE) || (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9))) return 0;
    return bytes;
}
void page_text(text_buffer *out, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    size_t left = strlen(text);
    while (left) {
        size_t bytes = page_character(p, left);
        const char *entity = *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : *p == '"' ? "&quot;" : *p == '\'' ? "&#39;"
                           : bytes ? NULL : "\xEF\xBF\xBD";
        if (entity) text_add_string(out, entity); else text_add(out, (const char *)p, bytes);
        if (!bytes) bytes = 1;
        p += bytes;
        left -= bytes;
    }
}
void page_element(text_buffer *out, const char *tag, const char *text) {
    page_add(out, "<%s>", tag);
    page_text(out, text);
    page_add(out, "</%s>", tag);
}
span span_none(void) { span s; s.low = HUGE_VAL; s.high = -HUGE_VAL; return s; }
void span_add(span *s, double value) {
    if (!isfinite(value)) return;
    if (value < s->low) s->low = value;
    if (value > s->high) s->high = value;
}
void span_add_estimate(span *s, vp_estimate e) { span_add(s, e.value); span_add(s, e.low); span_add(s, e.high); }
static double nice_step(double least) { /* 1, 2 or 5 times a power of ten, not below least */
    double power = pow(10, floor(log10(least))), m = least / power;
    return power * (m <= 1.0000001 ? 1 : m <= 2.0000001 ? 2 : m <= 5.0000001 ? 5 : 10);
}
static void scale_linear(scale *a, span s, int parts) {
    double step;
    if (!(s.high > s.low)) { /* one value: some room around it */
        double room = fabs(s.low) > 0 ? fabs(s.low) / 10 : 1;
        s.low -= room;
        s.high += room;
    }
    step = nice_step((s.high - s.low) / parts);
    a->low = floor(s.low / step + 1e-6) * step;
    a->high = ceil(s.high / step - 1e-6) * step;
    a->digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6);
    if (a->digits > 6 || fabs(a->high) >= 1e6 || fabs(a->low) >= 1e6) a->digits = -1;
    for (int i = 0; i < TICKS_MOST && a->low + i * step <= a->high + step / 2; i++) {
        double tick = a->low + i * step;
        a->ticks[a->tick_count++] = fabs(tick) < step / 1e6 ? 0 : tick;
    }
}
static void scale_log(scale *a, span s) {
    static const double parts[] = {1, 2, 5};
    int first = (int)floor(log10(s.low) + 1e-9), last = (int)ceil(log10(s.high) - 1e-9), stride, is_fine;
    a->is_log = 1;
    if (last <= first) last = first + 1;
    is_fine = last - first <= 3;
    stride = (last - first + 7) / 8;
    for (int e = first; e <= last; e += is_fine ? 1 : stride)
        for (int i = 0; i < (is_fine ? 3 : 1) && a->tick_count < TICKS_MOST; i++) a->ticks[a->tick_count++] = pow(10, e) * parts[i];
    a->low = pow(10, first);
    a->high = pow(10, last);
    if (is_fine) { /* from tick to tick */
        int from = 0, to;
        while (from + 1 < a->tick_count && a->ticks[from + 1] <= s.low * 1.0000001) from++;
        for (to = from; to + 1 < a->tick_count && a->ticks[to] < s.high * 0.9999999;) to++;
        if (to == from) { if (from) from--; else to++; }
        a->low = a->ticks[from];
        a->high = a->ticks[to];
        a->tick_count = to - from + 1;
        memmove(a->ticks, a->ticks + from, (size_t)a->tick_count * sizeof *a->ticks);
    }
    a->digits = -1;
}
scale scale_make(span s, int is_log, double from, double to) {
    scale a;
    memset(&a, 0, sizeof a);
    a.from = from;
    a.to = to;
    if (!(s.high >= s.low)) { s.low = 0; s.high = 1; }
    if (is_log && s.low > 0) scale_log(&a, s); else scale_linear(&a, s, fabs(to - from) < 220 ? 4 : 6);
    return a;
}
double scale_place(const scale *a, double value) {
    double share = a->is_log ? log(value / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
    return a->from + share * (a->to - a->from);
}
static figure scale_text(const scale *a, double value) {
    figure f;
    if (a->digits == -2) {
        static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
        int power = 0;
        for (; power < 5 && value >= 999.5; power++) value /= 1000;
        snprintf(f.text, sizeof f.text, "%.3g%s", value, prefixes[power]);
    } else if (a->digits < 0) snprintf(f.text, sizeof f.text, "%.4g", value); else snprintf(f.text, sizeof f.text, "%.*f", a->digits, value);
    return f;
}
#define LETTER_PX 6.4 /* what a letter takes at 11 px, rather too much: so that texts stay apart */

double text_px(const char *text) { return LETTER_PX * (double)text_width(text); }
void plot_open(plot *p, text_buffer *out, const char *caption, double width, double height) {
    memset(p, 0, sizeof *p);
    p->out = out;
    p->width = width;
    p->height = height;
    page_add(out, "<svg viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx\" role=\"img\" aria-label=\"", width, height, width * 1.15);
    page_text(out, caption);
    text_add_string(out, "\">\n");
}
void plot_close(plot *p) { text_add_string(p->out, "</svg></figure>\n"); }
void figure_open(text_buffer *out, const char *caption, int is_wide) {
    page_add(out, "<figure%s><figcaption>", is_wide ? " class=\"wide\"" : "");
    page_text(out, caption);
    text_add_string(out, "</figcaption>\n");
}
void plot_text(plot *p, double x, double y, const char *anchor, const char *more, const char *text) {
    page_add(p->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s%s>", x, y, *anchor ? " text-anchor=\"" : "", anchor, *anchor ? "\"" : "", more);
    page_text(p->out, text);
    text_add_string(p->out, "</text>");
}
void plot_segment(plot *p, const char *kind, double x1, double y1, double x2, double y2) {
    page_add(p->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", kind, x1, y1, x2, y2);
}
void plot_labels(plot *p, const char *x_label, const char *y_label) {
    char turn[64];
    double middle = (p->y.from + p->y.to) / 2;
    plot_text(p, (p->x.from + p->x.to) / 2, p->height - 6, "middle", " class=\"n\"", x_label);
    snprintf(turn, sizeof turn, " class=\"n\" transform=\"rotate(-90 14 %.1f)\"", middle);
    plot_text(p, 14, middle, "middle", turn, y_label);
    text_add_string(p->out, "\n");
}
void plot_y_axis(plot *p) {
    for (int i = 0; i < p->y.tick_count; i++) {
        double at = scale_place(&p->y, p->y.ticks[i]);
        plot_segment(p, "g", p->x.from, at, p->x.to, at);
        plot_text(p, p->x.from - 6, at + 4, "end", "", scale_text(&p->y, p->y.ticks[i]).text);
    }
}
void plot_x_axis(plot *p) {
    double used = -HUGE_VAL;
    for (int i = 0; i < p->x.tick_count; i++) {
        double at = scale_place(&p->x, p->x.ticks[i]);
        figure f = scale_text(&p->x, p->x.ticks[i]);
        plot_segment(p, "g", at, p->y.from, at, p->y.to);
        if (at - text_px(f.text) / 2 < used) continue;
        plot_text(p, at, p->y.from + 18, "middle", "", f.text);
        used = at + text_px(f.text) / 2 + 8;
    }
}
void plot_frame(plot *p, span x, int x_log, span y, int y_log, const char *x_label, const char *y_label) {
    p->x = scale_make(x, x_log, PLOT_LEFT, p->width - PLOT_RIGHT);
    p->y = scale_make(y, y_log, p->height - PLOT_BOTTOM, PLOT_TOP);
    if (p->x_prefix) p->x.digits = -2;
    if (p->y_prefix) p->y.digits = -2;
    plot_y_axis(p);
    plot_x_axis(p);
    plot_labels(p, x_label, y_label);
}
void colour_open(text_buffer *out, colour_set set, int at, int count) {
    static const int ends[3][3] = {{16, 122, 190}, {0, 158, 115}, {230, 159, 0}}; /* blue, green, orange: ever lighter, too */
    double t = count > 1 ? 2.0 * at / (count - 1) : 0, part;
    int first = t < 1 ? 0 : 1, rgb[3];
    if (set == COLOUR_SERIES) { page_add(out, "<g class=\"s%d\">", at % SERIES_COUNT); return; }
    part = t - first;
    for (int c = 0; c < 3; c++) rgb[c] = (int)(ends[first][c] + part * (ends[first + 1][c] - ends[first][c]) + 0.5);
    page_add(out, "<g style=\"--c:#%02x%02x%02x\">", (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
}
void plot_mark(text_buffer *out, int sign, double x, double y, double r, double opacity, const char *title) {
    char fade[32] = "";
    if (opacity < 0.995) snprintf(fade, sizeof fade, " opacity=\"%.2f\"", opacity);
    switch (sign % 5) {
    case 0: page_add(out, "<circle class=\"m\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"%s", x, y, r, fade); break;
    case 1: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"%s", x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, -r * 1.8, fade); break;
    case 2: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"%s", x, y - r * 1.2, r * 1.15, r * 2, -r * 2.3, fade); break;
    case 3: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"%s", x, y - r * 1.3, r * 1.3, r * 1.3, -r * 1.3, r * 1.3,
                     -r * 1.3, -r * 1.3, fade); break;
    default: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fl%.1f %.1fz\"%s", x - r * 1.15, y - r, r * 2.3, -r * 1.15, r * 2.1, fade);
    }
    if (title) { text_add_string(out, "><title>"); page_text(out, title); page_add(out, "</title></%s>\n", sign % 5 ? "path" : "circle"); }
    else text_add_string(out, "/>\n");
}
void plot_whiskers(plot *p, double x, double y, vp_estimate horizontal, vp_estimate vertical) {
    if (isfinite(horizontal.low) && isfinite(horizontal.high) && horizontal.low > (p->x.is_log ? 0 : -HUGE_VAL))
        plot_segment(p, "w", scale_place(&p->x, horizontal.low), y, scale_place(&p->x, horizontal.high), y);
    if (isfinite(vertical.low) && isfinite(vertical.high) && vertical.low > (p->y.is_log ? 0 : -HUGE_VAL))
        plot_segment(p, "w", x, scale_place(&p->y, vertical.low), x, scale_place(&p->y, vertical.high));
}
void legend_open(text_buffer *out) { text_add_string(out, "<p class=\"legend\">"); }
void legend_item(text_buffer *out, colour_set set, int at, int count, int sign, const char *text) {
    text_add_string(out, "<span><svg viewBox=\"0 0 14 12\">");
    colour_open(out, set, at, count);
    if (sign == -1) text_add_string(out, "<rect class=\"b\" y=\"1\" width=\"14\" height=\"10\"/>");
    else {
        text_add_string(out, "<path class=\"l\" d=\"M0 6H14\"/>");
        if (sign >= 0) plot_mark(out, sign, 7, 6, 3.4, 1, NULL);
    }
    text_add_string(out, "</g></svg>");
    page_text(out, text);
    text_add_string(out, "</span> ");
}
void legend_close(text_buffer *out) { text_add_string(out, "</p>\n"); }
int needs_log(span s) { return s.low > 0 && s.high / s.low > 30; }
