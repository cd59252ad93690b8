/* plot.h: axes, bars, lines and legends as SVG. page_latency.c, page_tradeoff.c and page_load.c draw with them.
 * Positions are in px from the left and the top of the drawing. */
#ifndef VLMPROF_CLI_PLOT_H
#define VLMPROF_CLI_PLOT_H
#include "base/memory.h"
#include "vlmprof.h"

/* ---- scales: from values to px */
/* range of values; low > high if there are none yet. is_whole: none has a fraction, so that no tick has one */
struct span { double low, high; int is_whole; };

struct span span_none(void);
void span_add(struct span *span, double value); /* a value that is not finite changes nothing */
void span_add_estimate(struct span *span, vp_estimate estimate);
int span_is_wide(struct span span); /* 1 if all are above 0 and more than a factor of 30 apart, for a log scale */

enum { TICKS_MOST = 16 };
/* Digits after the decimal point of a tick's number, or one of these. */
enum { DIGITS_SHORTEST = -1 }; /* four significant digits */
struct scale {
    double low, high; int is_log;
    double from, to;   /* px of low and high */
    double ticks[TICKS_MOST]; int tick_count, digits;
};

struct scale scale_make(struct span span, int is_log, double from, double to);
double scale_place(const struct scale *scale, double value); /* px of a value */

/* ---- a plot */
enum { PLOT_LEFT = 62, PLOT_RIGHT = 14, PLOT_TOP = 12, PLOT_BOTTOM = 46 }; /* px around a frame */

enum { PLOT_WIDE = 1000, PLOT_HALF = 520 }; /* widths of drawings; on a small screen, figures scroll sideways */

struct plot {
    struct text_buffer *out; double width, height; struct scale x, y;
};

double text_px(const char *text); /* the width of a text in a plot, rounded up */

/* Cuts a text that is wider than `px` and ends it with an ellipsis. text must have room for 3 more bytes. */
void text_fit(char *text, double px);

/* Opens a figure with its caption. A legend and the drawing follow, from plot_open to plot_close, which ends both. */
void figure_open(struct text_buffer *out, const char *caption, const char *note, int is_wide);
void plot_open(struct plot *plot, struct text_buffer *out, const char *caption, double width, double height);
void plot_close(struct plot *plot);

/* anchor: "", "middle" or "end"; attributes: more of them, in our own words. */
void plot_text(struct plot *plot, double x, double y, const char *anchor, const char *attributes, const char *text);
void plot_segment(struct plot *plot, const char *style_class, double x1, double y1, double x2, double y2);
void plot_labels(struct plot *plot, const char *x_label, const char *y_label);
void plot_y_axis(struct plot *plot);
void plot_x_axis(struct plot *plot);

/* Draws a frame for the values of two spans. */
void plot_frame(struct plot *plot, struct span x_span, int x_log, struct span y_span, int y_log, const char *x_label,
                const char *y_label);

/* ---- marks and their colours */
/* Series: nine separate colours, classes s0 to s8 of the style sheet. Ramp: `count` steps from blue to orange. */
typedef enum colour_set { COLOUR_SERIES, COLOUR_RAMP } colour_set;
enum { SERIES_GREY = 6, SERIES_COUNT = 9 };

/* Sets the colour of what follows, up to a </g>. count: steps of the ramp. */
void colour_open(struct text_buffer *out, colour_set set, int at, int count);

/* Draws a mark that shows a title under the pointer. Each sign has its own shape, so that prints without colours are
 * readable. */
void plot_mark(const struct plot *plot, int sign, double x, double y, double radius, double opacity, const char *title);

/* Adds the title of the group that was just opened. The group has the class q. */
void plot_title(struct text_buffer *out, const char *title);
void plot_whiskers(struct plot *plot, double x, double y, vp_estimate horizontal, vp_estimate vertical);

/* The index of the rank-th of `count` items among `most` evenly spread ones; -1 if it is not among them. */
int shown_at(size_t rank, size_t count, size_t most);

/* ---- legends */
enum { SIGN_BAR = -1 }; /* instead of a mark's shape: a bar */

void legend_open(struct text_buffer *out);
void legend_item(struct text_buffer *out, colour_set set, int at, int count, int sign, const char *text);
void legend_close(struct text_buffer *out);

#endif
