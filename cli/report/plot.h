/* plot.h: axes, bars and lines as SVG. */
#ifndef VLMPROF_CLI_PLOT_H
#define VLMPROF_CLI_PLOT_H
#include "base/memory.h"
#include "vlmprof.h"

void page_add(text_buffer *out, const char *format, ...); /* markup of our own: numbers and our own words */

/* A text as content or as an attribute in quotes; what is no text is shown as U+FFFD. */
void page_text(text_buffer *out, const char *text);
void page_element(text_buffer *out, const char *tag, const char *text); /* tag: a name of our own */

enum { TICKS_MOST = 16 };
typedef struct span { double low, high; } span; /* of values; low > high: none yet */

typedef struct scale {
    double low, high; int is_log;
    double from, to;                 /* px */
    double ticks[TICKS_MOST]; int tick_count, digits; /* behind the point; -1: as short as can be; -2: with k, M, G, T */
} scale;

span span_none(void);
void span_add(span *s, double value);
void span_add_estimate(span *s, vp_estimate e);
scale scale_make(span s, int is_log, double from, double to);
double scale_place(const scale *a, double value);

enum { PLOT_LEFT = 62, PLOT_RIGHT = 14, PLOT_TOP = 12, PLOT_BOTTOM = 46 };
typedef struct plot { text_buffer *out; double width, height; scale x, y; int x_prefix, y_prefix; } plot; /* prefix: k, M, G at the ticks */
typedef enum colour_set { COLOUR_SERIES, COLOUR_RAMP } colour_set;
enum { SERIES_GREY = 6, SERIES_COUNT = 9 }; /* classes s0..s8 of the style sheet */

double text_px(const char *text);
void plot_open(plot *p, text_buffer *out, const char *caption, double width, double height);
void plot_close(plot *p);
void figure_open(text_buffer *out, const char *caption, int is_wide);
void plot_text(plot *p, double x, double y, const char *anchor, const char *more, const char *text); /* more: attributes of our own */
void plot_segment(plot *p, const char *kind, double x1, double y1, double x2, double y2);
void plot_labels(plot *p, const char *x_label, const char *y_label);
void plot_y_axis(plot *p);
void plot_x_axis(plot *p);

/* A frame for values between the ends of two spans. */
void plot_frame(plot *p, span x, int x_log, span y, int y_log, const char *x_label, const char *y_label);
void colour_open(text_buffer *out, colour_set set, int at, int count); /* what follows has this colour */

/* A mark that shows a text under the pointer (NULL: none); shapes differ too, for prints without colours. */
void plot_mark(text_buffer *out, int sign, double x, double y, double r, double opacity, const char *title);
void plot_whiskers(plot *p, double x, double y, vp_estimate horizontal, vp_estimate vertical);
void legend_open(text_buffer *out);
void legend_item(text_buffer *out, colour_set set, int at, int count, int sign, const char *text); /* sign -1: a bar; -2: a line */
void legend_close(text_buffer *out);
int needs_log(span s);

#endif
