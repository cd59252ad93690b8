/* load_compare.c: two sets of trials at equal loads: is B slower than A?
 * Requests of a trial wait for one another, and two trials share no request, so nothing can be paired: a verdict is
 * given only where the two 95 % intervals do not overlap. */
#include "load/load_compare.h"

#include "base/console.h"
#include "base/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHICH_P50, WHICH_P95, WHICH_GOODPUT, WHICH_COUNT };
static const char *const NAMES[WHICH_COUNT] = {"E2E P50, ms", "E2E P95, ms", "goodput per second"};
static const char *const KEYS[WHICH_COUNT] = {"T_total_p50", "T_total_p95", "goodput_per_s"};
enum { SAYS_LESS, SAYS_MORE, SAYS_OPEN };
static const char *const SAYS[2][3] = {{"FASTER", "SLOWER", "INCONCLUSIVE"}, {"WORSE", "BETTER", "INCONCLUSIVE"}};

struct compared {
    char load[48];
    const char *status, *key, *name, *verdict;
    double rate; /* NaN: it is a number of requests at once, */
    int concurrency; /* which is -1 of a rate */
    vp_series_value a, b;
    int which, says;
};
#define ROW(member) CELL(struct compared, member)
static const struct table_column COMPARED[] = {
    {ROW(load), NULL, "load"}, {ROW(status), "status"}, {ROW(rate), "request_rate"},
    {ROW(concurrency), "concurrency", .rules = COLUMN_FROM_0}, {ROW(key), "of"}, {ROW(name), NULL, "of"},
    {CELL_ESTIMATE(struct compared, a), "a", "A", .is_measured = 1, .range_key = "a_interval"},
    {CELL_ESTIMATE(struct compared, b), "b", "B", .is_measured = 1, .range_key = "b_interval"},
    {ROW(verdict), "verdict", "verdict"}};
struct comparison { struct compared *rows; size_t count; struct text_list warnings; };

static int is_goodput(int which) { return which == WHICH_GOODPUT; }
static vp_series_value value_of(const struct load_level *level, int which) {
    const struct load_summary *summary = &level->summary;
    vp_series_value goodput = {summary->goodput, summary->goodput_low, summary->goodput_high, (double)NAN};
    return is_goodput(which) ? goodput : summary->latency[LOAD_E2E][which == WHICH_P50 ? LOAD_P50 : LOAD_P95];
}
static int is_same_load(const struct load_level *left, const struct load_level *right) {
    return left->concurrency == right->concurrency && left->places == right->places
           && fabs(left->rate - right->rate) <= 1e-9 * left->rate;
}
static int says_of(const vp_series_value *before, const vp_series_value *after) {
    return after->low > before->high ? SAYS_MORE : after->high < before->low ? SAYS_LESS : SAYS_OPEN;
}
static int is_worse(const struct compared *row) {
    return row->says == (is_goodput(row->which) ? SAYS_LESS : SAYS_MORE);
}
static int are_different(const char *left, const char *right) {
    return strcmp(left ? left : "", right ? right : "") != 0;
}
/* What the trials differ in apart from the server: a reader must know it. */
static void warn_of_pair(struct comparison *comparison, const struct load_level *before,
                         const struct load_level *after) {
    const struct { const char *name, *values[2]; } texts[] = {
        {"data", {before->task, after->task}}, {"arrivals", {before->arrivals, after->arrivals}},
        {"objective", {before->slo, after->slo}}, {"model", {before->model, after->model}}};
    char load[48];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (are_different(texts[i].values[0], texts[i].values[1]))
            text_list_add(&comparison->warnings, "%s: they differ in their %s (%.80s / %.80s)",
                          load_level_text(before, load), texts[i].name,
                          texts[i].values[0] ? texts[i].values[0] : "none",
                          texts[i].values[1] ? texts[i].values[1] : "none");
}
/* Differences that no server is the cause of. */
static void warn_of_length(struct comparison *comparison, const struct load_level *before,
                           const struct load_level *after) {
    char load[48];
    load_level_text(before, load);
    if (before->new_tokens > 0 && after->new_tokens > 0 && before->new_tokens != after->new_tokens)
        text_list_add(&comparison->warnings,
                      "%s: they differ in max_new_tokens (%lld / %lld), and shorter answers end sooner",
                      load, (long long)before->new_tokens, (long long)after->new_tokens);
    if (!before->is_complete || !after->is_complete)
        text_list_add(&comparison->warnings, "%s: %s was interrupted, and is a partial trial", load,
                      before->is_complete ? "B" : "A");
}
static void compare_levels(struct comparison *comparison, const struct load_level *before,
                           const struct load_level *after) {
    warn_of_pair(comparison, before, after);
    warn_of_length(comparison, before, after);
    for (int which = 0; which < WHICH_COUNT; which++) {
        const vp_series_value a = value_of(before, which), b = value_of(after, which);
        const int says = says_of(&a, &b);
        struct compared row = {"", before->is_complete ? "complete" : "partial", KEYS[which], NAMES[which],
                               SAYS[is_goodput(which)][says], before->concurrency ? (double)NAN : before->rate,
                               before->concurrency ? before->concurrency : -1, a, b, which, says};
        /* goodput by two objectives is two quantities */
        if (!isfinite(a.value) || !isfinite(b.value) || (is_goodput(which) && are_different(before->slo, after->slo)))
            continue;
        load_level_text(before, row.load);
        comparison->rows = resize(comparison->rows, comparison->count + 1, sizeof *comparison->rows);
        comparison->rows[comparison->count++] = row;
    }
}
/* "SLOWER" or "WORSE" once there is one of them, else INCONCLUSIVE once there is one, else what the first row says. */
static const char *overall_of(const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++)
        if (is_worse(&comparison->rows[i])) return comparison->rows[i].verdict;
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->rows[i].says == SAYS_OPEN) return comparison->rows[i].verdict;
    return comparison->rows[0].verdict;
}
static int print_text(const struct comparison *comparison, const char *const names[2]) {
    struct document document = {NULL, 0, NULL};
    const struct table table = TABLE(COMPARED, comparison->rows, comparison->count, NULL, 0);
    int code;
    document_text(&document, BLOCK_HEADING, "verdict: %s", overall_of(comparison));
    document_text(&document, BLOCK_LINE, "B %s against A %s: trials of load", names[1], names[0]);
    document_add_table(&document, &table);
    document_list(&document, "Warnings", &comparison->warnings);
    document_text(&document, BLOCK_HEADING, "How to read this");
    document_text(&document, BLOCK_LINE,
                  "[low, high] is a 95 %% interval that allows for requests that wait for one another; "
                  "requests of two trials are not paired, so a verdict needs intervals that do not overlap");
    code = print_document(&document);
    document_free(&document);
    return code;
}
static int print_json(const struct comparison *comparison, const char *const names[2]) {
    const struct table table = TABLE(COMPARED, comparison->rows, comparison->count, NULL, 0);
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-compare-load-1"), KEY("a", names[0]),
        KEY("b", names[1]), KEY_TEXTS("warnings", &comparison->warnings), KEY("verdict", overall_of(comparison)));
    table_put(&writer, "comparisons", &table);
    vp_json_end_object(&writer);
    return json_end(&writer);
}
int load_compare(const struct load_levels *before, const struct load_levels *after, const char *const names[2],
                 int is_json, int fails_unsure) {
    struct comparison comparison = {NULL, 0, {NULL, 0}};
    size_t pairs = 0;
    int code = 0, fails = 0;
    for (size_t i = 0; i < before->count; i++)
        for (size_t k = 0; k < after->count; k++)
            if (is_same_load(&before->items[i], &after->items[k])) {
                compare_levels(&comparison, &before->items[i], &after->items[k]);
                pairs++;
                break;
            }
    if (pairs < before->count || pairs < after->count)
        text_list_add(&comparison.warnings, "%zu loads are compared, of %zu in A and %zu in B", pairs, before->count,
                      after->count);
    for (size_t i = 0; i < comparison.count; i++)
        fails |= is_worse(&comparison.rows[i]) || (fails_unsure && comparison.rows[i].says == SAYS_OPEN);
    if (!comparison.count)
        code = complain(EXIT_USAGE, "compare: %s and %s have no load in common at which both have a latency", names[0],
                        names[1]);
    else code = is_json ? print_json(&comparison, names) : print_text(&comparison, names);
    text_list_free(&comparison.warnings);
    free(comparison.rows);
    return code ? code : fails ? EXIT_WORK : 0;
}
