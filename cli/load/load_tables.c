/* load_tables.c: the tables of trials in reports and in the output of `load`. */
#include "load/load_tables.h"

#include "base/table.h"
#include "load/load_accuracy.h"

#include <math.h>
#include <stdlib.h>

/* A row of the table that AIPerf and vLLM's benchmark also print. */
struct spread_row { char trial[48]; const char *of; double mean, std, least, p50, p90, p95, p99, most; };
#define SPREAD(member, heading) \
    {CELL(struct spread_row, member), NULL, heading, .is_measured = 1}
static const struct table_column SPREAD_COLUMNS[] = {
    {CELL(struct spread_row, trial), NULL, "trial"}, {CELL(struct spread_row, of), NULL, "ms"},
    SPREAD(mean, "mean"), SPREAD(std, "std"), SPREAD(least, "min"), SPREAD(p50, "P50"), SPREAD(p90, "P90"),
    SPREAD(p95, "P95"), SPREAD(p99, "P99"), SPREAD(most, "max")};
static void add_spreads(struct document *document, const struct load_level *levels, size_t count) {
    static const struct { int which; const char *name; } spreads[] = {
        {LOAD_TTFT, "TTFT"}, {LOAD_TPOT, "TPOT"}, {LOAD_ITL, "ITL"}, {LOAD_E2E, "E2E"},
        {LOAD_QUEUED, "wait for a slot"}};
    const size_t spread_count = sizeof spreads / sizeof *spreads;
    struct spread_row *rows = zeroed(count * spread_count, sizeof *rows);
    struct table table = TABLE(SPREAD_COLUMNS, rows, 0, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        for (size_t k = 0; k < spread_count; k++) {
            struct spread_row *row = &rows[table.row_count];
            const int which = spreads[k].which;
            if (which == LOAD_QUEUED && !summary->latency_count[which]) continue;
            if (which == LOAD_TPOT && load_has_few_tokens(summary)) continue;
            table.row_count++;
            *row = (struct spread_row){"", spreads[k].name, summary->mean[which],
                                       summary->std[which] < 1e-6 ? 0 : summary->std[which], /* ms: rounding */
                                       summary->least[which], summary->latency[which][LOAD_P50].value,
                                       summary->latency[which][LOAD_P90].value, summary->latency[which][LOAD_P95].value,
                                       summary->latency[which][LOAD_P99].value, summary->most[which]};
            load_level_text(&levels[i], row->trial);
        }
    }
    document_add_table(document, &table);
    free(rows);
}
static void add_series_value(struct text_list *cells, const vp_series_value *value, double scale) {
    text_list_add(cells, "%s", number_measured(scale * value->value, scale * value->low, scale * value->high).text);
}
static void add_latencies(struct document *document, const struct load_level *levels, size_t count) {
    struct text_list *cells = document_table(
        document,
        "ms since due|requests|TTFT P50|TTFT P95|TPOT P50|E2E P50|E2E P95|E2E P99|E2E P95 from send");
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        char text[48];
        CELLS(cells, load_level_text(&levels[i], text), number_whole(summary->due).text);
        add_series_value(cells, &summary->latency[LOAD_TTFT][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_TTFT][LOAD_P95], 1);
        if (load_has_few_tokens(summary)) text_list_add(cells, "-");
        else add_series_value(cells, &summary->latency[LOAD_TPOT][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P95], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P99], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E_SENT][LOAD_P95], 1);
    }
}
static void add_flow(struct document *document, const struct load_level *levels, size_t count) {
    struct text_list *cells = document_table(document, "per second|due|ended|input tokens|output tokens|at once|"
                                                       "good, %|goodput|accuracy|failed|empty|late sends|cached, %");
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        const double unknown = (double)NAN;
        char text[48];
        CELLS(cells, load_level_text(&levels[i], text), number_measured(summary->offered, unknown, unknown).text,
            number_measured(summary->ended, unknown, unknown).text,
            number_measured(summary->input_rate, unknown, unknown).text,
            number_measured(summary->output_rate, unknown, unknown).text,
            number_measured(summary->in_flight, unknown, unknown).text);
        add_series_value(cells, &summary->good_share, 100);
        CELLS(cells, number_measured(summary->goodput, summary->goodput_low, summary->goodput_high).text,
            number_measured(summary->accuracy.value, summary->accuracy.low, summary->accuracy.high).text,
            number_whole(summary->failed).text, number_whole(summary->empty).text,
            number_whole(summary->late).text, number_percent(load_cached_share(summary)).text);
    }
}
struct metric_cells { char trial[48]; const char *of; vp_estimate mean; };
static const struct table_column METRIC_COLUMNS[] = {
    {CELL(struct metric_cells, trial), NULL, "trial"}, {CELL(struct metric_cells, of), NULL, "the server's metrics"},
    {CELL(struct metric_cells, mean.value), NULL, "mean"}, {CELL(struct metric_cells, mean.low), NULL, "min"},
    {CELL(struct metric_cells, mean.high), NULL, "max"}};
static void add_metrics(struct document *document, const struct load_level *levels, size_t count) {
    struct metric_cells *rows = zeroed(count * (PROM_COUNT + 1), sizeof *rows);
    struct table table = TABLE(METRIC_COLUMNS, rows, 0, NULL, 0);
    for (size_t i = 0; i < count; i++)
        for (int metric = -1; metric < PROM_COUNT; metric++) {
            const vp_estimate in_flight = {levels[i].summary.in_flight, (double)NAN, (double)NAN},
                              found = metric < 0 ? in_flight : load_metric_of(&levels[i], metric);
            struct metric_cells *row = &rows[table.row_count];
            if (!isfinite(found.value) || !levels[i].metric_count) continue;
            *row = (struct metric_cells){"", metric < 0 ? "in flight, seen by the client" : PROM_KEYS[metric], found};
            load_level_text(&levels[i], row->trial);
            table.row_count++;
        }
    if (table.row_count) document_add_table(document, &table);
    free(rows);
}
/* Explains the columns, as far as the trials use them. */
static void add_notes(struct document *document, const struct load_level *levels, size_t count) {
    int has_intervals = 0, has_late = 0, has_few = 0, has_cached = 0;
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        has_intervals |= isfinite(summary->good_share.low);
        has_late |= summary->late > 0;
        has_few |= load_has_few_tokens(summary);
        has_cached |= isfinite(load_cached_share(summary));
    }
    document_text(document, BLOCK_LINE, "TTFT, E2E: from the time at which a request was due; \"from send\": from the "
                                        "time of sending; ITL: time between consecutive pieces, over all answers; "
                                        "TPOT: per request, by its tokens");
    document_text(document, BLOCK_LINE, "%sended, tokens: of requests that ended in the window; -: the trial is too "
                                        "short for the number",
                  has_intervals ? "[low, high]: a 95 % interval that allows for correlated requests; " : "");
    if (has_late)
        document_text(document, BLOCK_LINE, "late: sent more than %g ms after the due time", LOAD_LATE_MS);
    if (has_few)
        document_text(document, BLOCK_LINE, "TPOT is not shown if answers have fewer than %d tokens on average: a "
                                            "single late piece would dominate it; the files have it",
                      TPOT_TOKENS_LEAST);
    document_text(document, BLOCK_LINE, "%simages: %s",
                  has_cached ? "cached: prompt tokens that the server read from its caches; " : "",
                  levels[0].images ? levels[0].images : "not said");
    if (levels[0].slo)
        document_text(document, BLOCK_LINE, "good: a request that met all limits of %s (ms), from the due time; "
                                            "goodput: good requests per second, by when they were due", levels[0].slo);
    else document_text(document, BLOCK_LINE, "good: a request that was answered (--slo sets limits)");
}
int load_levels_add(struct document *document, const struct load_level *levels, size_t count) {
    add_latencies(document, levels, count);
    add_flow(document, levels, count);
    add_spreads(document, levels, count);
    add_metrics(document, levels, count);
    int code = load_accuracy_add(document, levels, count);
    add_notes(document, levels, count);
    return code;
}
