/* page_pruning.c: the page's section about dropped image tokens: accuracy against the number of kept ones. */
#include "page/report_page.h"

#include "base/table.h"
#include "page/page.h"
#include "page/plot.h"
#include "report/report_text.h"

#include <math.h>

static int is_first(const struct pruned_rows *rows, size_t row) {
    for (size_t i = 0; i < row; i++) if (!strcmp(rows->items[i].method, rows->items[row].method)) return 0;
    return 1;
}
/* The index of a row's method among the methods, in the order in which they first occur. */
static int method_at(const struct pruned_rows *rows, size_t row) {
    int count = 0;
    for (size_t i = 0; strcmp(rows->items[i].method, rows->items[row].method); i++) count += is_first(rows, i);
    return count;
}
static int colour_of(int method) { return method % SERIES_COUNT; }
static const char *points_text(const vp_bounded_interval *difference, char out[80]) {
    snprintf(out, 80, "%s", isfinite(difference->low) && isfinite(difference->high)
                                ? number_estimate(100, difference->mean, difference->low, difference->high).text
                                : "not measured");
    return out;
}
/* The next row of the same method with equal values of all other knobs; rows->count if there is none. */
static size_t next_of(const struct pruned_rows *rows, size_t row) {
    for (size_t i = row + 1; i < rows->count; i++)
        if (!strcmp(rows->items[i].method, rows->items[row].method) && rows->items[i].full == rows->items[row].full)
            return i;
    return rows->count;
}
static void row_mark(struct plot *plot, const struct pruned_rows *rows, size_t at) {
    const struct pruned_row *row = &rows->items[at];
    const size_t next = next_of(rows, at);
    const vp_estimate across = {100 * row->share, (double)NAN, (double)NAN};
    const double x = scale_place(&plot->x, across.value), y = scale_place(&plot->y, row->accuracy.value);
    char title[512], full[80], random[80];
    if (!isfinite(x) || !isfinite(y)) return;
    snprintf(title, sizeof title, "%s\n%.1f image tokens kept\naccuracy %s\npoints vs none %s\npoints vs random %s",
             row->name, row->kept, number_of_estimate(row->accuracy).text, points_text(&row->to_full, full),
             points_text(&row->to_random, random));
    page_add(plot->out, "<g class=\"s%d\">", colour_of(method_at(rows, at)));
    if (next < rows->count)
        plot_segment(plot, "l", x, y, scale_place(&plot->x, 100 * rows->items[next].share),
                     scale_place(&plot->y, rows->items[next].accuracy.value));
    plot_whiskers(plot, x, y, across, row->accuracy);
    plot_mark(plot, method_at(rows, at), x, y, 4, 1, title);
    text_add_string(plot->out, "</g>\n");
}
/* Draws the configurations that keep all tokens as horizontal lines, to which pruned ones can be compared. */
static void full_line(struct plot *plot, const struct tradeoff *tradeoff, const struct pruned_rows *rows, size_t at) {
    const size_t full = rows->items[at].full;
    for (size_t i = 0; i < at; i++) if (rows->items[i].full == full) return;
    if (full < tradeoff->config_count && isfinite(tradeoff->points[full].accuracy)) {
        const double y = scale_place(&plot->y, tradeoff->points[full].accuracy);
        plot_segment(plot, "r", plot->x.from, y, plot->x.to, y);
    }
}
static void pruning_draw(struct text_buffer *out, const struct tradeoff *tradeoff, const struct pruned_rows *rows,
                         const char *caption) {
    struct span x_span = {0, 100, 1}, y_span = span_none();
    struct plot plot;
    for (size_t i = 0; i < rows->count; i++) {
        span_add_estimate(&y_span, rows->items[i].accuracy);
        if (rows->items[i].full < tradeoff->config_count)
            span_add(&y_span, tradeoff->points[rows->items[i].full].accuracy);
    }
    plot_open(&plot, out, caption, PLOT_WIDE, 420);
    plot_frame(&plot, x_span, 0, y_span, 0, "image tokens kept, %", "accuracy");
    for (size_t i = 0; i < rows->count; i++) full_line(&plot, tradeoff, rows, i);
    for (size_t i = 0; i < rows->count; i++) row_mark(&plot, rows, i);
    plot_close(&plot);
}
static void pruning_show(struct text_buffer *out, const struct report *report, size_t group) {
    const struct tradeoff *tradeoff = &report->tradeoffs[group];
    const struct pruned_rows *rows = &report->pruned[group];
    static const char caption[] = "Accuracy against kept image tokens";
    const struct table table = pruned_table(rows);
    char note[300];
    snprintf(note, sizeof note,
             "Mark: one configuration, mean accuracy over %zu samples and its 95 %% interval. Horizontal lines: the "
             "same settings with all tokens. A method is worth its cost only if it beats random pruning.",
             tradeoff->sample_count);
    figure_open(out, caption, note, 1);
    legend_open(out);
    for (size_t i = 0; i < rows->count; i++)
        if (is_first(rows, i))
            legend_item(out, COLOUR_SERIES, colour_of(method_at(rows, i)), 0, method_at(rows, i),
                        rows->items[i].method);
    legend_close(out);
    pruning_draw(out, tradeoff, rows, caption);
    text_add_string(out, "<p>Points: differences in accuracy, paired over the samples, compared with no pruning and "
                         "with keeping the same number of random tokens (within 5 %), with 95 % intervals. Prefill: "
                         "speedup factor, including the prune stage.</p>\n");
    page_table_of(out, caption, &table);
}
static int is_pruned(const struct report *report, size_t group) { return report->pruned[group].count > 0; }
void page_pruning(struct text_buffer *out, const struct report *report) {
    page_groups(out, report, "pruning", "Pruned image tokens", is_pruned, pruning_show);
}
void page_categories(struct text_buffer *out, const struct report *report) {
    const struct table categories = category_table(&report->categories);
    char caption[120];
    if (!categories.row_count) return;
    page_section_open(out, "categories", "Categories");
    snprintf(caption, sizeof caption, "Accuracy by %.60s", report->by ? report->by : "");
    page_table_of(out, caption, &categories);
    page_section_close(out);
}
