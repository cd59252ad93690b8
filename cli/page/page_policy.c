/* page_policy.c: the page's section on what choosing a configuration for each sample could gain: accuracy against the
 * budget of the mean latency, with a line for each policy. */
#include "page/page.h"
#include "page/plot.h"
#include "page/report_page.h"
#include "report/policy.h"

#include <math.h>

/* The lines, by VP_POLICY_*. */
static const struct { const char *text; int colour, sign; } LINES[] = {
    {"static: the best single configuration", 1, 3},
    {"mixture: the best random mix of two configurations", 0, 0},
    {"lookup by ", 2, 1},
    {"oracle: knows every outcome", 4, 2}};
enum { LINE_COUNT = sizeof LINES / sizeof *LINES };

/* The row of a line within one budget; NULL if there is none, or it exceeds the budget. */
static const vp_policy_row *row_at(const struct policy_report *curve, size_t part, int line) {
    const int has_lookup = curve->data->field_count > 0;
    const vp_policy_row *row = &curve->parts[part].rows[line - (line > VP_POLICY_LOOKUP && !has_lookup)].row;
    return (line != VP_POLICY_LOOKUP || has_lookup) && row->feasible ? row : NULL;
}
static const char *line_name(const struct policy_report *curve, int line, char out[160]) {
    snprintf(out, 160, "%s%.100s", LINES[line].text, line == VP_POLICY_LOOKUP ? curve->settings->by.items[0] : "");
    return out;
}
/* The best single configuration changes in steps, because a slower one can be used only from its latency on. */
static void draw_line(struct plot *plot, const struct policy_report *curve, int line) {
    double before[2] = {(double)NAN, (double)NAN};
    char name[160], title[400];
    colour_open(plot->out, COLOUR_SERIES, LINES[line].colour, 0);
    for (size_t i = 0; i < curve->part_count; i++) {
        const vp_policy_row *row = row_at(curve, i, line);
        if (!row) continue;
        const double x = scale_place(&plot->x, curve->parts[i].budget_ms), y = scale_place(&plot->y, row->accuracy);
        if (isfinite(before[0]) && line == VP_POLICY_STATIC) {
            plot_segment(plot, "l", before[0], before[1], x, before[1]);
            plot_segment(plot, "l", x, before[1], x, y);
        } else if (isfinite(before[0])) plot_segment(plot, "l", before[0], before[1], x, y);
        snprintf(title, sizeof title, "%s\nbudget %s ms, mean %s ms\naccuracy %.4f", line_name(curve, line, name),
                 number_short(curve->parts[i].budget_ms).text, number_short(row->mean_ms).text, row->accuracy);
        plot_mark(plot, LINES[line].sign, x, y, 3.4, 1, title);
        before[0] = x;
        before[1] = y;
    }
    text_add_string(plot->out, "</g>\n");
}
static void draw_curve(struct text_buffer *out, const struct policy_report *curve) {
    struct span x_span = span_none(), y_span = span_none();
    struct plot plot;
    char caption[80], note[400], name[160];
    snprintf(caption, sizeof caption, "Accuracy against the budget for the mean %s, ms",
             METRIC_KEYS[curve->settings->axis]);
    snprintf(note, sizeof note,
             "Mark: one policy within one budget, over %zu samples. Policies are chosen on four fifths of the samples "
             "and evaluated on the rest, except the oracle, whose gain is partly luck. vlmprof policy --budget_ms "
             "shows how much, with intervals.", curve->data->sample_count);
    figure_open(out, caption, note, 1);
    legend_open(out);
    for (int line = LINE_COUNT; line-- > 0;) {
        for (size_t i = 0; i < curve->part_count; i++) {
            span_add(&x_span, curve->parts[i].budget_ms);
            if (row_at(curve, i, line)) span_add(&y_span, row_at(curve, i, line)->accuracy);
        }
        if (line != VP_POLICY_LOOKUP || curve->data->field_count)
            legend_item(out, COLOUR_SERIES, LINES[line].colour, 0, LINES[line].sign, line_name(curve, line, name));
    }
    legend_close(out);
    if (!(y_span.high > y_span.low)) y_span = (struct span){0, 1, 0};
    plot_open(&plot, out, caption, PLOT_WIDE, 380);
    plot_frame(&plot, x_span, span_is_wide(x_span), y_span, 0, caption + strlen("Accuracy against the "), "accuracy");
    for (int line = LINE_COUNT; line-- > 0;) draw_line(&plot, curve, line);
    plot_close(&plot);
}
/* Returns 1 if a data set has several configurations with times and scores of 0 to 1, but no load. */
static int has_choices(const struct report *report, size_t group) {
    const struct tradeoff *tradeoff = &report->tradeoffs[group];
    int is_good = !tradeoff->reason[0] && tradeoff->accuracy && tradeoff->config_count > 1
                  && !strcmp(TERMS[report->settings.axis].unit, "ms");
    for (size_t i = 0; is_good && i < tradeoff->config_count; i++)
        is_good = !knobs_are_loaded(&report->results->files[tradeoff->group->paired[i]].knobs);
    for (size_t i = 0; is_good && i < tradeoff->config_count * tradeoff->sample_count; i++)
        is_good = tradeoff->accuracy[i] >= 0 && tradeoff->accuracy[i] <= 1;
    return is_good;
}
static void show_group(struct text_buffer *out, const struct report *report, size_t group) {
    struct policy_settings settings = {.options = vp_policy_options_default(), .axis = report->settings.axis,
                                       .is_by_optional = 1};
    struct policy_data data = {0};
    struct policy_report curve = {0};
    if (report->by) text_list_copy(&settings.by, report->by);
    if (!policy_data_read(report->results, &report->results->groups[group], &settings, &data)
        && !policy_report_make(&data, &settings, &curve)) {
        if (curve.part_count > 1) draw_curve(out, &curve);
        page_element(out, "p", curve.verdict.items[0]);
    } else page_element(out, "p", "The result files' records could not be read again.");
    policy_report_free(&curve);
    policy_data_free(&data);
    text_list_free(&settings.by);
}
void page_policies(struct text_buffer *out, const struct report *report) {
    page_groups(out, report, "policy", "What choosing per sample could gain", has_choices, show_group);
}
