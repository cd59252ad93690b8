/* policy.c: compares policies within a budget, or over a curve of budgets, and says what they show. */
#include "report/policy.h"

#include "base/console.h"
#include "report/report.h"
#include "report/report_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CURVE_POINTS = 16, SAVING_RESAMPLES = 100, SAVING_STEPS = 9, SAMPLES_ENOUGH = 100,
       SAMPLES_OF_LUCK = 500 }; /* below: the verdict omits the luck */
#define MARGIN 1.02
static const char *const BUDGET_WORDS[] = {"mean", "each", "p95"};

/* ---- the policies of one part */
static const char *config_name(const struct policy_data *data, size_t config, char out[160]) {
    return report_full_name(data->results, &data->results->files[data->configs[config]], out);
}
static vp_estimate points_of(double gain, double low, double high) {
    return (vp_estimate){100 * gain, 100 * low, 100 * high};
}
static void add_row(struct policy_row **rows, size_t *count, const vp_policy_row *row, const char *format,
                    const char *name) {
    *rows = grown(*rows, *count, sizeof **rows);
    struct policy_row *made = &(*rows)[(*count)++];
    const int is_static = !strcmp(name, "static");
    snprintf(made->name, sizeof made->name, format, name);
    made->row = *row;
    made->beats_static = is_static ? estimate_none() : points_of(row->gain, row->gain_low, row->gain_high);
    made->beats_mixture = is_static || !strcmp(name, "mixture") || !strcmp(name, "luck")
                              ? estimate_none() : points_of(row->mix_gain, row->mix_gain_low, row->mix_gain_high);
}
/* Intervals that only the preference of fast choices makes wider than 0 become points. */
static void close_interval(double value, double *low, double *high) {
    if (*high - *low < 1e-5) *low = *high = value;
}
/* Computes a part; is_whole: with intervals and luck. */
static int compute_part(const struct policy_report *report, struct policy_part *part, int is_whole) {
    const struct policy_data *data = report->data;
    const size_t n = data->sample_count, given_count = data->given_count;
    const vp_policy_outcomes all = {data->accuracy, data->latency, data->config_count, n};
    vp_policy_field *fields = zeroed(data->field_count + 1, sizeof *fields);
    vp_policy_row *rows = zeroed(VP_POLICY_GIVEN + given_count, sizeof *rows);
    const int32_t **given = (const int32_t **)zeroed(given_count + 1, sizeof *given);
    vp_policy_options options = report->settings->options;
    vp_error error = {VP_OK, -1, "", ""};
    double shown = 0;
    for (size_t f = 0; f < data->field_count; f++)
        fields[f] = (vp_policy_field){data->fields[f].values, data->fields[f].is_number};
    for (size_t g = 0; g < given_count; g++) given[g] = data->given[g].of;
    options.budget_ms = part->budget_ms;
    options.compared = part->compared;
    if (!is_whole) options.shuffles = 0;
    if (!is_whole) options.resamples = part->compared ? SAVING_RESAMPLES : 0;
    part->table.cells = resize(NULL, vp_policy_cells_limit(n, data->field_count), sizeof *part->table.cells);
    part->table.lookup = resize(NULL, 3 * n, sizeof *part->table.lookup);
    part->table.oracle = part->table.lookup + n;
    part->table.held_out = part->table.oracle + n;
    const vp_result result = vp_policy_compute(&all, fields, data->field_count, given, given_count, &options, rows,
                                               &part->table, &error);
    vp_policy_row *luck = &rows[VP_POLICY_LUCK], *oracle = &rows[VP_POLICY_ORACLE];
    for (size_t i = 0; i < VP_POLICY_GIVEN + given_count && result == VP_OK; i++) {
        close_interval(rows[i].accuracy, &rows[i].accuracy_low, &rows[i].accuracy_high);
        close_interval(rows[i].gain, &rows[i].gain_low, &rows[i].gain_high);
        close_interval(rows[i].mix_gain, &rows[i].mix_gain_low, &rows[i].mix_gain_high);
    }
    for (size_t i = 0; i < VP_POLICY_GIVEN + given_count; i++) /* what a policy gains is not luck */
        if (i != VP_POLICY_ORACLE && i != VP_POLICY_LUCK) shown = fmax(shown, rows[i].gain);
    if (is_whole && result == VP_OK) luck->gain = fmax(0, fmin(luck->gain, oracle->gain - shown));
    luck->accuracy = rows[VP_POLICY_STATIC].accuracy + luck->gain;
    for (int i = 0; i < VP_POLICY_GIVEN && result == VP_OK; i++) {
        static const char *const names[] = {"static", "mixture", "lookup", "oracle", "luck"};
        if ((i == VP_POLICY_LOOKUP && !data->field_count) || (i == VP_POLICY_LUCK && !is_whole)) continue;
        add_row(&part->rows, &part->row_count, &rows[i], "%s", names[i]);
    }
    for (size_t g = 0; g < given_count && result == VP_OK; g++)
        add_row(&part->rows, &part->row_count, &rows[VP_POLICY_GIVEN + g], "choices:%s", data->given[g].file);
    FREE_ALL(fields, rows, (void *)given);
    if (result == VP_ERR_MEMORY) resize(NULL, SIZE_MAX, n); /* ends the program */
    if (result == VP_ERR_RANGE && !strcmp(error.where, "outcomes") && error.offset >= 0)
        return complain(EXIT_INPUT, "policy: %.300s: %s",
                        data->results->files[data->configs[error.offset]].path, error.text);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, "policy", result, &error);
}
static const vp_policy_row *row_of(const struct policy_part *part, const char *name) {
    for (size_t i = 0; i < part->row_count; i++) if (!strcmp(part->rows[i].name, name)) return &part->rows[i].row;
    return NULL;
}

/* Searches the budgets at which the lookup's gain over the best single configuration becomes 0, and then those for the
 * ends of the gain's interval. */
static int find_saving(const struct policy_report *report, struct policy_part *part) {
    const vp_policy_row *fixed = row_of(part, "static");
    double ends[3] = {(double)NAN, (double)NAN, (double)NAN}; /* estimate, low, high */
    double reached = fixed->mean_ms;                          /* the lowest budget for the estimate */
    int code = 0;
    const int is_mean = report->settings->options.budget == VP_POLICY_MEAN;
    for (int end = 0; end < 3 && is_mean && report->data->field_count && fixed->feasible; end++) {
        double low = end == 2 ? reached : 0, high = end == 2 ? fixed->mean_ms : reached;
        for (int step = 0; step < SAVING_STEPS && low < high && !code; step++) {
            struct policy_part trial = {.compared = part->table.best + 1, .budget_ms = step ? (low + high) / 2 : high};
            if ((code = compute_part(report, &trial, 0)) != 0) break;
            const vp_policy_row *row = row_of(&trial, "lookup");
            if (row->feasible && (end == 1 ? row->gain_high : end ? row->gain_low : row->gain) >= 0) {
                high = trial.budget_ms;
                ends[end] = row->mean_ms;
            } else low = trial.budget_ms; /* at first, so the search ends */
            FREE_ALL(trial.rows, trial.table.cells, trial.table.lookup);
        }
        if (!end) reached = high;
        if (isnan(ends[0])) { ends[0] = HUGE_VAL; break; } /* no budget within static's mean */
    }
    part->same_ms = (vp_estimate){ends[0], ends[1], ends[2]};
    return code;
}

/* ---- curves */
/* Makes parts for budgets from the fastest configuration's mean to the slowest's. */
static int make_curve(struct policy_report *report) {
    const struct policy_data *data = report->data;
    double low = HUGE_VAL, high = 0;
    int code = 0;
    for (size_t c = 0; c < data->config_count; c++) {
        double sum = 0, count = 0;
        for (size_t i = 0; i < data->sample_count; i++)
            if (isfinite(data->latency[c * data->sample_count + i])) {
                sum += data->latency[c * data->sample_count + i];
                count++;
            }
        low = fmin(low, sum / count);
        high = fmax(high, sum / count);
    }
    low *= MARGIN; /* folds differ a little from the whole */
    high *= MARGIN;
    const size_t points = high > low ? CURVE_POINTS : 1;
    for (size_t i = 0; i < points && !code; i++) {
        struct policy_part *part = &report->parts[i];
        report->part_count = i + 1;
        part->budget_ms = low * pow(high / low, points > 1 ? (double)i / (double)(points - 1) : 1);
        show_progress("budget %zu of %zu", i + 1, points);
        code = compute_part(report, part, 0);
    }
    close_progress();
    return code;
}

/* ---- the verdict */
static struct number_text points_text(const vp_policy_row *row) {
    return number_estimate(100, row->gain, row->gain_low, row->gain_high);
}
static struct number_text tenths(double gain) { return number_formatted("%.1f", fabs(gain) < 5e-4 ? 0 : 100 * gain); }
/* "a mean of 180 ms" */
static void add_budget(const struct policy_report *report, double budget_ms, struct text_buffer *out) {
    static const char *const words[] = {"a mean of %s ms", "%s ms for each request", "a P95 of %s ms"};
    text_add_format(out, words[report->settings->options.budget], number_plain(budget_ms).text);
    if (report->settings->axis != METRIC_TOTAL) text_add_format(out, " of %s", METRIC_KEYS[report->settings->axis]);
}
static void add_luck(const vp_policy_row *luck, size_t samples, struct text_buffer *out) {
    if (samples < SAMPLES_OF_LUCK)
        text_add_format(out, " (%d samples would show how much of it is luck)", SAMPLES_OF_LUCK);
    else text_add_format(out, ", of which about %s is luck", tenths(luck->gain).text);
}
static void judge_part(const struct policy_report *report, const struct policy_part *part, struct text_list *verdict) {
    const vp_policy_row *first = row_of(part, "static"), *mixture = row_of(part, "mixture"),
                        *lookup = row_of(part, "lookup"), *oracle = row_of(part, "oracle"),
                        *luck = row_of(part, "luck");
    struct text_buffer line = {NULL, 0, 0};
    if (report->data->config_count == 1)
        text_add_string(&line, "There is one configuration, so there is nothing to choose.");
    else if (!oracle->feasible) {
        text_add_string(&line, "No policy meets ");
        add_budget(report, part->budget_ms, &line);
        text_add_format(&line, ": even each sample's fastest configuration takes a mean of %s ms.",
                        number_short(oracle->mean_ms).text);
    } else if (!(oracle->gain > 0)) {
        text_add_string(&line, "No per-sample choice answers better than the best single configuration, not even an "
                               "oracle's.");
    } else if (!lookup) {
        text_add_format(&line, "An oracle would beat the best static by %s points within ", points_text(oracle).text);
        add_budget(report, part->budget_ms, &line);
        add_luck(luck, report->data->sample_count, &line);
        text_add_string(&line, "; --by FIELD fits a lookup to known properties of a sample.");
    } else {
        const char *says = lookup->gain_high < 0 ? "loses to the best static:"
                           : lookup->gain_low > 0 ? "beats the best static by"
                                                  : "does not reliably beat the best static:";
        for (size_t f = 0; f < report->data->field_count; f++)
            text_add_format(&line, "%s%s", f ? ", " : "A lookup by ", report->data->fields[f].name);
        text_add_format(&line, " %s %s points within ", says, points_text(lookup).text);
        add_budget(report, part->budget_ms, &line);
        text_add_format(&line, "; a random mix of two configurations would gain %s, an oracle %s",
                        tenths(mixture->gain).text, tenths(oracle->gain).text);
        add_luck(luck, report->data->sample_count, &line);
        text_add_string(&line, lookup->gain_low > 0 && !(lookup->mix_gain_low > 0)
                                   ? ". The lookup does not reliably beat the random mix." : ".");
        if (report->settings->options.budget == VP_POLICY_MEAN && lookup->mean_ms > 1.01 * part->budget_ms)
            text_add_format(&line, " On held-out samples, it takes a mean of %s ms, more than the budget.",
                            number_short(lookup->mean_ms).text);
    }
    if (oracle->feasible && !first->feasible && report->data->config_count > 1)
        text_add_string(&line, " No single configuration meets the budget; static is the fastest.");
    text_list_take(verdict, line.data);
    if (isinf(part->same_ms.value) && lookup->gain > 0)
        text_list_add(verdict, "The lookup saves no time: with the best static's mean of %s ms, it is less accurate.",
                      number_short(first->mean_ms).text);
    if (part->same_ms.value < first->mean_ms)
        text_list_add(verdict, "To match the best static's accuracy, the lookup needs a mean of %s ms instead of %s: "
                               "%s %% less%s.",
                      number_short(part->same_ms.value).text, number_short(first->mean_ms).text,
                      number_estimate(-100 / first->mean_ms, part->same_ms.value - first->mean_ms,
                                      part->same_ms.high - first->mean_ms, part->same_ms.low - first->mean_ms).text,
                      isfinite(part->same_ms.high) ? "" : ", but not reliably");
}
static void judge_curve(const struct policy_report *report, struct text_list *verdict) {
    static const char *const names[] = {"lookup", "mixture", "oracle"};
    double gains[3] = {0, 0, 0};
    for (size_t i = 0; i < report->part_count; i++)
        for (int k = 0; k < 3; k++) {
            const vp_policy_row *row = row_of(&report->parts[i], names[k]);
            gains[k] += row ? row->gain / (double)report->part_count : 0;
        }
    text_list_add(verdict, "On average over these budgets, an oracle gains %s points over the best static%s%s, a "
                           "random mix of two configurations %s. Intervals and luck need --budget_ms.",
                  tenths(gains[2]).text, report->data->field_count ? ", a lookup " : "",
                  report->data->field_count ? tenths(gains[0]).text : "", tenths(gains[1]).text);
}
/* A policy cannot choose the load, and other knobs take more than a request: something in memory for each value.
 * Returns 0 or EXIT_USAGE. */
static int judge_knobs(const struct policy_report *report, struct text_list *verdict) {
    const struct result_file *files = report->data->results->files;
    const size_t *configs = report->data->configs;
    int code = 0;
    for (int knob = 0; knob < KNOB_COUNT && !code; knob++) {
        const char *key = KNOBS[knob].key;
        const int is_load = knob == KNOB_RATE || knob == KNOB_CONCURRENCY,
                  is_model = knob == KNOB_WEIGHTS || knob == KNOB_ENDPOINT_MODEL,
                  is_server = knob == KNOB_ENDPOINT || (key && knob >= KNOB_OWN && files[configs[0]].is_served);
        struct text_list values = {NULL, 0};
        char text[KNOB_TEXT_BYTES];
        for (size_t c = 0; c < report->data->config_count && (is_load || is_model || is_server); c++) {
            const char *value = knob_value_text(&files[configs[c]].knobs, knob, text);
            if (!policy_is_in_request(&files[configs[c]], knob) && !text_list_has(&values, value))
                text_list_copy(&values, value);
        }
        if (values.count > 1 && is_load)
            code = complain(EXIT_USAGE, "policy: %s is %s in some files and %s in others, but a policy cannot choose "
                                        "the load: select one by --at %s=%s", key, values.items[0], values.items[1],
                            key, values.items[0]);
        else if (values.count > 1)
            text_list_add(verdict, "Choosing %s (%s, %s%s) per request needs a %s; --at %s=%s selects one.", key,
                          values.items[0], values.items[1], values.count > 2 ? ", ..." : "",
                          is_model ? "model in memory for each value"
                                   : "running server for each value, and servers that share a device are slower than "
                                     "measured one at a time", key, values.items[0]);
        text_list_free(&values);
    }
    return code;
}
static void add_notes(const struct policy_report *report, struct text_list *notes) {
    const struct policy_data *data = report->data;
    if (data->failed)
        text_list_add(notes, "%zu of %zu points failed and are scored as wrong; the oracle never picks one",
                      data->failed, data->config_count * data->sample_count);
    if (knobs_are_loaded(&data->results->files[data->configs[0]].knobs))
        text_list_add(notes, "under load, a request waits for others, so times of policies, which mix "
                             "configurations, are estimates");
    if (data->dropped)
        text_list_add(notes, "excluded samples, because a configuration lacks them or their score: %zu", data->dropped);
    if (data->sample_count < SAMPLES_ENOUGH)
        text_list_add(notes, "%zu sample%s: too few to fit a table that will generalize", data->sample_count,
                      plural_s((int64_t)data->sample_count));
    for (size_t f = 0; f < data->field_count; f++) {
        size_t unknown = 0;
        if (!strncmp(data->fields[f].name, "answer", 6)) /* VQA v2 also has answer_type */
            text_list_add(notes, "%s is not known before the answer: no controller can use it", data->fields[f].name);
        for (size_t i = 0; i < data->sample_count; i++) unknown += !isfinite(data->fields[f].values[i]);
        if (unknown)
            text_list_add(notes, "%zu records lack %s; they form a separate cell", unknown, data->fields[f].name);
    }
    for (size_t g = 0; g < data->given_count; g++) {
        size_t missing = 0;
        for (size_t i = 0; i < data->sample_count; i++) missing += data->given[g].of[i] < 0;
        if (missing)
            text_list_add(notes, "%s has no choice for %zu of %zu samples; it is evaluated on the others",
                          data->given[g].file, missing, data->sample_count);
        if (data->given[g].strangers)
            text_list_add(notes, "%s has %zu lines for samples that are not in these results", data->given[g].file,
                          data->given[g].strangers);
    }
}
int policy_report_make(const struct policy_data *data, const struct policy_settings *settings,
                       struct policy_report *report) {
    struct policy_part *part = zeroed(CURVE_POINTS, sizeof *part);
    int code;
    *report = (struct policy_report){.data = data, .settings = settings, .parts = part, .part_count = 1,
                                     .is_curve = !isfinite(settings->options.budget_ms)};
    part->budget_ms = settings->options.budget_ms;
    code = report->is_curve ? make_curve(report) : compute_part(report, part, 1);
    if (!code && report->is_curve) judge_curve(report, &report->verdict);
    else if (!code && (code = find_saving(report, part)) == 0) judge_part(report, part, &report->verdict);
    if (!code) code = judge_knobs(report, &report->verdict);
    if (!code) add_notes(report, &report->notes);
    return code;
}
void policy_report_free(struct policy_report *report) {
    for (size_t i = 0; i < report->part_count; i++) {
        struct policy_part *part = &report->parts[i];
        FREE_ALL(part->rows, part->table.cells, part->table.lookup);
    }
    free(report->parts);
    text_list_free(&report->verdict);
    text_list_free(&report->notes);
}

/* ---- tables */
static const struct table_column POLICIES[] = {
    {CELL(struct policy_row, name), "name", "policy"},
    {CELL_RANGE(struct policy_row, row.accuracy, row.accuracy_low, row.accuracy_high), "accuracy", "accuracy",
     .range_key = "accuracy_interval"},
    {CELL_ESTIMATE(struct policy_row, beats_static), "beats_static_points", "points over static",
     .range_key = "beats_static_interval"},
    {CELL_ESTIMATE(struct policy_row, beats_mixture), "beats_mixture_points", "over mixture",
     .range_key = "beats_mixture_interval"},
    {CELL_RANGE(struct policy_row, row.mean_ms, row.mean_low_ms, row.mean_high_ms), "mean_ms", "mean, ms",
     .range_key = "mean_ms_interval"},
    {CELL(struct policy_row, row.p50_ms), "p50_ms", "P50", .is_measured = 1},
    {CELL(struct policy_row, row.p95_ms), "p95_ms", "P95", .is_measured = 1},
    {CELL(struct policy_row, row.share_within), "share_within", "samples within, %", .format = "%.1f", .scale = 100},
    {CELL(struct policy_row, row.feasible), "is_within_budget", NULL},
    {CELL(struct policy_row, row.gap), "gap", NULL},
    {CELL(struct policy_row, row.samples), "samples", NULL},
    {CELL(struct policy_row, row.missing), "missing", NULL},
};
/* "kind=easy, 1.2 <= aspect < 3" */
static void add_cell_name(const struct policy_data *data, const vp_policy_cell *cell, struct text_buffer *out) {
    for (size_t f = 0; f < cell->level; f++) {
        const struct policy_field *field = &data->fields[f];
        const double low = cell->low[f], high = cell->high[f];
        text_add_string(out, f ? ", " : "");
        if (isnan(low)) text_add_format(out, "%s unknown", field->name);
        else if (!field->is_number) text_add_format(out, "%s=%s", field->name, field->words.items[(size_t)low]);
        else {
            if (isfinite(low)) text_add_format(out, "%s <= ", number_short(low).text);
            text_add_string(out, field->name);
            if (isfinite(high)) text_add_format(out, " < %s", number_short(high).text);
        }
    }
    if (!cell->level) text_add_string(out, "all");
}
/* The last level of the table, and cells above it that some of those use. */
static int is_shown_cell(const struct policy_data *data, const vp_policy_table *table, size_t at) {
    for (size_t i = at + 1; i < table->cell_count; i++)
        if (table->cells[i].parent == at && table->cells[i].fell_back) return 1;
    return table->cells[at].level == data->field_count;
}
static void add_cells_table(const struct policy_data *data, const struct policy_part *part,
                            struct document *document) {
    struct text_list *cells = document_table(document, "the lookup, fitted to all samples|samples|configuration|");
    for (size_t i = 0; i < part->table.cell_count; i++) {
        const vp_policy_cell *cell = &part->table.cells[i];
        struct text_buffer where = {NULL, 0, 0};
        char name[160];
        if (!is_shown_cell(data, &part->table, i)) continue;
        add_cell_name(data, cell, &where);
        CELLS(cells, where.data, number_whole((int64_t)cell->count).text,
              config_name(data, cell->choice, name), cell->fell_back ? "few samples: as above" : "");
        free(where.data);
    }
}
static void add_choice_lines(const struct policy_data *data, const struct policy_part *part,
                             struct document *document) {
    char first[160], second[160];
    document_text(document, BLOCK_LINE, "static: %s", config_name(data, part->table.best, first));
    if (part->table.mix[0] == part->table.mix[1] || !(part->table.mix_share > 0)) return;
    document_text(document, BLOCK_LINE, "mixture: %s %% of %s, otherwise %s",
                  number_percent(part->table.mix_share).text,
                  config_name(data, part->table.mix[1], second),
                  config_name(data, part->table.mix[0], first));
}
static void add_curve_table(const struct policy_report *report, struct document *document) {
    struct text_list *cells = document_table(document, report->data->field_count
                                                           ? "budget, ms|static|mixture|lookup|oracle"
                                                           : "budget, ms|static|mixture|oracle");
    for (size_t i = 0; i < report->part_count; i++) {
        const struct policy_part *part = &report->parts[i];
        const size_t shown = report->data->field_count ? 4 : 3;
        CELLS(cells, number_short(part->budget_ms).text);
        for (size_t k = 0; k < shown; k++) CELLS(cells, number_formatted("%.4f", part->rows[k].row.accuracy).text);
    }
}
void policy_document(const struct policy_report *report, struct document *document) {
    for (size_t i = 0; i < report->verdict.count; i++)
        document_text(document, BLOCK_LINE, "%s", report->verdict.items[i]);
    if (report->is_curve) add_curve_table(report, document);
    else {
        const struct table table = TABLE(POLICIES, report->parts->rows, report->parts->row_count, NULL, 0);
        document_text(document, BLOCK_HEADING, "%zu samples, %zu configurations, %s of %s at most %s ms; "
                                               "cross-validated, except for the oracle",
                      report->data->sample_count, report->data->config_count,
                      BUDGET_WORDS[report->settings->options.budget], METRIC_KEYS[report->settings->axis],
                      number_plain(report->parts->budget_ms).text);
        document_add_table(document, &table);
        add_choice_lines(report->data, report->parts, document);
        if (report->data->field_count) add_cells_table(report->data, report->parts, document);
    }
    document_list(document, "notes", &report->notes);
}

/* ---- JSON */
static void put_table(vp_json_writer *writer, const struct policy_data *data, const struct policy_part *part) {
    PUT(writer, KEY_ARRAY("table"));
    for (size_t i = 0; i < part->table.cell_count; i++) {
        const vp_policy_cell *cell = &part->table.cells[i];
        struct text_buffer where = {NULL, 0, 0};
        add_cell_name(data, cell, &where);
        PUT(writer, KEY_OBJECT(NULL), KEY("where", where.data), KEY("level", (int64_t)cell->level),
            KEY("samples", (int64_t)cell->count), KEY_BOOL("fell_back", cell->fell_back));
        policy_put_choice(writer, data, cell->choice);
        PUT(writer, END_OBJECT);
        free(where.data);
    }
    PUT(writer, END_ARRAY);
}
static void put_part(vp_json_writer *writer, const struct policy_report *report, const struct policy_part *part) {
    const struct table rows = TABLE(POLICIES, part->rows, part->row_count, NULL, 0);
    PUT(writer, KEY("budget_ms", part->budget_ms),
        KEY("budget", BUDGET_WORDS[report->settings->options.budget]));
    table_put(writer, "policies", &rows);
    if (report->is_curve) return;
    PUT(writer, KEY_OBJECT("static"));
    policy_put_choice(writer, report->data, part->table.best);
    PUT(writer, END_OBJECT, KEY_OBJECT("same_accuracy"), KEY("mean_ms", part->same_ms.value),
        KEY_RANGE("mean_ms_interval", part->same_ms.low, part->same_ms.high), END_OBJECT);
    if (report->data->field_count) put_table(writer, report->data, part);
    if (report->check.verdict) policy_check_put(writer, &report->check);
}
void policy_put(vp_json_writer *writer, const struct policy_report *report) {
    struct text_list by = {NULL, 0};
    for (size_t f = 0; f < report->data->field_count; f++) text_list_copy(&by, report->data->fields[f].name);
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-policy-1"),
        KEY("latency", METRIC_KEYS[report->settings->axis]), KEY("samples", (int64_t)report->data->sample_count),
        KEY("configurations", (int64_t)report->data->config_count), KEY("failed_points", (int64_t)report->data->failed),
        KEY("overhead_ms", report->settings->options.overhead_ms), KEY_TEXTS("by", &by),
        KEY_TEXTS("verdict", &report->verdict), KEY_TEXTS("notes", &report->notes));
    text_list_free(&by);
    if (report->is_curve) PUT(writer, KEY_ARRAY("curve"));
    for (size_t i = 0; i < report->part_count; i++) {
        if (report->is_curve) PUT(writer, KEY_OBJECT(NULL));
        put_part(writer, report, &report->parts[i]);
        if (report->is_curve) PUT(writer, END_OBJECT);
    }
    if (report->is_curve) PUT(writer, END_ARRAY);
    PUT(writer, END_OBJECT);
}
void policy_choices_write(const struct policy_report *report, struct text_buffer *out) {
    const struct policy_data *data = report->data;
    const struct policy_part *part = report->parts;
    for (size_t i = 0; i <= data->sample_count && !report->is_curve; i++) { /* the first line is for static */
        const int is_lookup = i > 0 && data->field_count;
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, text_sink, out, 0);
        PUT(&writer, KEY_OBJECT(NULL));
        vp_json_key(&writer, i ? "id" : "static");
        if (i) vp_json_raw(&writer, data->names[i - 1], strlen(data->names[i - 1]));
        else vp_json_bool(&writer, 1);
        policy_put_choice(&writer, data, is_lookup ? part->table.held_out[i - 1] : part->table.best);
        PUT(&writer, END_OBJECT);
        vp_json_finish(&writer);
        text_add_string(out, "\n");
    }
}
