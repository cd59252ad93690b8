/* plot.h: axes, bars and lines as SVG. */
#ifndef VLMPROF_CLI_PLOT_H
#define VLMPROF_CLI_PLOT_H
#include "base/memory.h"
#include "vlmprof.h"

void page_add(struct text_buffer *out, const char *format, ...); /* markup of our own: numbers and our own words */

/* A text as content or as an attribute in quotes; what is no text is shown as U+FFFD. */
void page_text(struct text_buffer *out, const char *text);
void page_element(struct text_buffer *out, const char *tag, const char *text); /* tag: a name of our own */

enum { TICKS_MOST = 16 };
struct span { double low, high; }; /* of values; low > high: none yet */

struct scale {
    double low, high; int is_log;
    double from, to;                 /* px */
    /* behind the point; -1: as short as can be; -2: with k, M, G, T */
    double ticks[TICKS_MOST]; int tick_count, digits;
};

struct span span_none(void);
void span_add(struct span *span, double value);
void span_add_estimate(struct span *span, vp_estimate estimate);
struct scale scale_make(struct span span, int is_log, double from, double to);
double scale_place(const struct scale *scale, double value);

enum { PLOT_LEFT = 62, PLOT_RIGHT = 14, PLOT_TOP = 12, PLOT_BOTTOM = 46 };
/* prefix: k, M, G at the ticks */
struct plot { struct text_buffer *out; double width, height; struct scale x, y; int x_prefix, y_prefix; };
typedef enum colour_set { COLOUR_SERIES, COLOUR_RAMP } colour_set;
enum { SERIES_GREY = 6, SERIES_COUNT = 9 }; /* classes s0..s8 of the style sheet */

double text_px(const char *text);
void plot_open(struct plot *plot, struct text_buffer *out, const char *caption, double width, double height);
void plot_close(struct plot *plot);
void figure_open(struct text_buffer *out, const char *caption, int is_wide);
/* more: attributes of our own */
void plot_text(struct plot *plot, double x, double y, const char *anchor, const char *more, const char *text);
void plot_segment(struct plot *plot, const char *kind, double x1, double y1, double x2, double y2);
void plot_labels(struct plot *plot, const char *x_label, const char *y_label);
void plot_y_axis(struct plot *plot);
void plot_x_axis(struct plot *plot);

/* A frame for values between the ends of two spans. */
void plot_frame(struct plot *plot, struct span x_span, int x_log, struct span y_span, int y_log, const char *x_label,
                const char *y_label);
void colour_open(struct text_buffer *out, colour_set set, int at, int count); /* what follows has this colour */

/* A mark that shows a text under the pointer (NULL: none); shapes differ too, for prints without colours. */
void plot_mark(struct text_buffer *out, int sign, double x, double y, double radius, double opacity, const char *title);
void plot_whiskers(struct plot *plot, double x, double y, vp_estimate horizontal, vp_estimate vertical);
void legend_open(struct text_buffer *out);
/* sign -1: a bar; -2: a line */
void legend_item(struct text_buffer *out, colour_set set, int at, int count, int sign, const char *text);
void legend_close(struct text_buffer *out);
int span_is_wide(struct span span);

#endif
