/* page_load.c: the page's section about servers under load: times and correct answers against the rate or the
 * concurrency, with a line for each configuration. */
#include "page/page.h"
#include "page/plot.h"
#include "page/report_page.h"
#include "report/load.h"

#include <math.h>

/* A configuration without its load, and its rows in ascending order of the load. */
struct load_line_of { char name[160]; const struct load_row **rows; size_t count; };

static double load_of(const struct load_row *row) {
    const char *text = knob_text(&row->file->knobs, KNOB_RATE);
    return strtod(text ? text : knob_text(&row->file->knobs, KNOB_CONCURRENCY), NULL);
}
static int by_load(const void *left, const void *right) {
    const double a = load_of(*(const struct load_row *const *)left),
                 b = load_of(*(const struct load_row *const *)right);
    return a < b ? -1 : a > b;
}
/* The configuration's name without "rate=4". */
static void name_without_load(const struct load_row *row, char out[160]) {
    char *at;
    snprintf(out, 160, "%s", row->configuration);
    for (int knob = KNOB_RATE; knob <= KNOB_CONCURRENCY; knob++)
        if ((at = strstr(out, KNOBS[knob].in_setting)) != NULL) {
            const char *end = at + strcspn(at, " ");
            if (at > out && !*end) at--;
            memmove(at, *end ? end + 1 : end, strlen(*end ? end + 1 : end) + 1);
        }
}
static struct load_line_of *lines_of(const struct load_rows *rows, size_t *line_count) {
    struct load_line_of *lines = zeroed(rows->count, sizeof *lines);
    *line_count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        char name[160];
        size_t at = 0;
        name_without_load(&rows->items[i], name);
        while (at < *line_count && strcmp(lines[at].name, name) != 0) at++;
        struct load_line_of *line = &lines[at];
        if (at == *line_count) {
            memcpy(line->name, name, sizeof name);
            line->rows = (const struct load_row **)zeroed(rows->count, sizeof *line->rows);
            ++*line_count;
        }
        line->rows[line->count++] = &rows->items[i];
    }
    for (size_t i = 0; i < *line_count; i++)
        qsort((void *)lines[i].rows, lines[i].count, sizeof *lines[i].rows, by_load);
    return lines;
}
static vp_estimate value_at(const struct load_row *row, size_t offset) {
    return *(const vp_estimate *)(const void *)((const char *)row + offset);
}
/* Draws the estimate at this offset of the rows. */
static void draw_lines(struct text_buffer *out, const struct load_line_of *lines, size_t line_count, size_t offset,
                       const char *caption, const char *note, const char *x_label, const char *y_label) {
    struct span x_span = span_none(), y_span = span_none();
    struct plot plot;
    const size_t shown = line_count < SERIES_GREY ? line_count : SERIES_GREY;
    int any = 0;
    span_add(&y_span, 0);
    for (size_t i = 0; i < shown; i++)
        for (size_t k = 0; k < lines[i].count; k++) {
            const vp_estimate value = value_at(lines[i].rows[k], offset);
            if (!isfinite(value.value)) continue;
            span_add(&x_span, load_of(lines[i].rows[k]));
            span_add_estimate(&y_span, value);
            any |= value.value > 0;
        }
    if (!any) return; /* nothing was measured, or no answer is right */
    figure_open(out, caption, note, 0);
    legend_open(out);
    for (size_t i = 0; i < shown; i++) legend_item(out, COLOUR_SERIES, (int)i, 0, (int)i, lines[i].name);
    legend_close(out);
    plot_open(&plot, out, caption, PLOT_HALF, 320);
    plot_frame(&plot, x_span, span_is_wide(x_span), y_span, 0, x_label, y_label);
    for (size_t i = 0; i < shown; i++) {
        double before[2] = {(double)NAN, (double)NAN};
        colour_open(out, COLOUR_SERIES, (int)i, 0);
        for (size_t k = 0; k < lines[i].count; k++) {
            const struct load_row *row = lines[i].rows[k];
            const vp_estimate value = value_at(row, offset);
            char title[240];
            if (!isfinite(value.value)) continue;
            const double x = scale_place(&plot.x, load_of(row)), y = scale_place(&plot.y, value.value);
            snprintf(title, sizeof title, "%s: %s", row->configuration,
                     number_measured(value.value, value.low, value.high).text);
            if (isfinite(before[0])) plot_segment(&plot, "l", before[0], before[1], x, y);
            plot_whiskers(&plot, x, y, estimate_none(), value);
            plot_mark(&plot, (int)i, x, y, 3.6, row->growing ? 0.4 : 1, title);
            before[0] = x;
            before[1] = y;
        }
        text_add_string(out, "</g>\n");
    }
    plot_close(&plot);
}
void page_loads(struct text_buffer *out, const struct report *report) {
    static const char time[] = "Times are measured from when a request was due. Whiskers: 95 % interval, where there "
                               "are enough independent requests for one. Pale marks: the queue grew until the end.",
                      answers[] = "Whiskers: 95 % interval. Pale marks: the queue grew until the end.";
    static const struct { size_t offset; const char *caption, *label, *note; } plots[] = {
        {offsetof(struct load_row, ttft_p50), "P50 of TTFT", "TTFT, ms", time},
        {offsetof(struct load_row, ttft_p95), "P95 of TTFT", "TTFT, ms", time},
        {offsetof(struct load_row, total_p50), "P50 of T_total (E2E)", "T_total, ms", time},
        {offsetof(struct load_row, total_p95), "P95 of T_total (E2E)", "T_total, ms", time},
        {offsetof(struct load_row, accuracy), "Accuracy", "accuracy", answers},
        {offsetof(struct load_row, correct), "Correct answers per second", "correct answers/s",
         "Pale marks: the queue grew until the end."}};
    const struct table loads = load_table(&report->loads);
    size_t line_count;
    if (!loads.row_count) return;
    struct load_line_of *lines = lines_of(&report->loads, &line_count);
    const int is_open = knob_is_set(&report->loads.items[0].file->knobs, KNOB_RATE);
    page_section_open(out, "load", "Under load");
    text_add_string(out, "<div class=\"grid\">");
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++)
        draw_lines(out, lines, line_count, plots[i].offset, plots[i].caption, plots[i].note,
                   is_open ? "requests per second" : "requests in flight", plots[i].label);
    text_add_string(out, "</div>");
    page_table_of(out, "Under load, over requests", &loads);
    page_section_close(out);
    for (size_t i = 0; i < line_count; i++) free((void *)lines[i].rows);
    free(lines);
}
