/* load_compare.c: compares two sets of trials at equal loads: is B slower than A? Trials at a rate with the same
 * arrivals send the same samples at the same times, so their requests are paired by due time and sample. Other trials
 * share no requests. They only get a verdict if the two 95 % intervals do not overlap. */
#include "load/load_compare.h"

#include "base/console.h"
#include "base/memory.h"
#include "base/table.h"
#include "base/verdicts.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The compared quantities: in pairs, and in trials that share no requests. */
enum { WHICH_TTFT, WHICH_TPOT, WHICH_E2E, WHICH_GOOD, WHICH_PAIRED };
enum { WHICH_TTFT_P50 = WHICH_PAIRED, WHICH_TTFT_P95, WHICH_TPOT_P50, WHICH_E2E_P50, WHICH_E2E_P95, WHICH_GOODPUT,
       WHICH_COUNT, WHICH_FAILED = WHICH_COUNT, WHICH_NAMES };
static const struct { const char *key, *name; int latency, percentile, is_share; } WHICH[WHICH_NAMES] = {
    {"TTFT", "TTFT, ms", LOAD_TTFT, -1, 0}, {"T_decode_per_token", "TPOT, ms", LOAD_TPOT, -1, 0},
    {"T_total", "E2E, ms", LOAD_E2E, -1, 0}, {"good_share", "good, share", -1, -1, 1},
    {"TTFT_p50", "TTFT P50, ms", LOAD_TTFT, LOAD_P50, 0}, {"TTFT_p95", "TTFT P95, ms", LOAD_TTFT, LOAD_P95, 0},
    {"T_decode_per_token_p50", "TPOT P50, ms", LOAD_TPOT, LOAD_P50, 0},
    {"T_total_p50", "E2E P50, ms", LOAD_E2E, LOAD_P50, 0}, {"T_total_p95", "E2E P95, ms", LOAD_E2E, LOAD_P95, 0},
    {"goodput_per_s", "goodput per second", -1, -1, 1}, {"failed_share", "failed, share", -1, -1, 1}};
enum { SAYS_LESS, SAYS_MORE, SAYS_OPEN, SAYS_SAME, SAYS_EQUAL };
static const char *const SAYS[3][5] = {{"FASTER", "SLOWER", "INCONCLUSIVE", "SAME", "SAME"},
                                       {"WORSE", "BETTER", "INCONCLUSIVE", "SAME", "SAME"},
                                       {"BETTER", "WORSE", "INCONCLUSIVE", "SAME", "SAME"}}; /* failures */
static const double ALPHA = 0.05, DUE_NEAR_NS = 1000, PAIRED_SHARE = 0.9;

struct compared {
    char load[48];
    const char *status, *key, *name, *verdict;
    double rate; /* NaN for a number of requests at once */
    int concurrency; /* -1 for a rate */
    vp_series_value a, b;     /* for pairs: means */
    vp_series_value change;   /* for pairs: % of the geometric mean ratio, or points of the share; else NaN */
    int64_t pairs;            /* -1: compared by intervals */
    vp_comparison comparison; /* for pairs */
    size_t group;             /* index of its trials */
    int which, says;
};
#define ROW(member) CELL(struct compared, member)
static const struct table_column COMPARED[] = {
    {ROW(load), NULL, "load"}, {ROW(status), "status"}, {ROW(rate), "request_rate"},
    {ROW(concurrency), "concurrency", .rules = COLUMN_FROM_0}, {ROW(key), "of"}, {ROW(name), NULL, "of"},
    {CELL_ESTIMATE(struct compared, a), "a", "A", .is_measured = 1, .range_key = "a_interval"},
    {CELL_ESTIMATE(struct compared, b), "b", "B", .is_measured = 1, .range_key = "b_interval"},
    {ROW(pairs), "pairs", "pairs", .rules = COLUMN_FROM_0},
    {CELL_ESTIMATE(struct compared, change), "difference_percent", "difference, %", .is_measured = 1,
     .range_key = "difference_percent_interval"},
    {ROW(verdict), "verdict", "verdict"}};
struct comparison {
    struct compared *rows; size_t count;
    struct text_list warnings;
    double margin, share_margin; /* shares */
    size_t family;
};

static int is_share(int which) { return WHICH[which].is_share; }
static vp_series_value value_of(const struct load_level *level, int which) {
    const struct load_summary *summary = &level->summary;
    const vp_series_value goodput = {summary->goodput, summary->goodput_low, summary->goodput_high, (double)NAN};
    return which == WHICH_GOODPUT ? goodput : summary->latency[WHICH[which].latency][WHICH[which].percentile];
}
static int is_same_load(const struct load_level *left, const struct load_level *right) {
    return left->concurrency == right->concurrency && left->places == right->places
           && fabs(left->rate - right->rate) <= 1e-9 * left->rate;
}
static int says_of(const vp_series_value *before, const vp_series_value *after) {
    if (before->low >= before->high && after->low >= before->low && after->high <= before->high) return SAYS_EQUAL;
    return after->low > before->high ? SAYS_MORE : after->high < before->low ? SAYS_LESS : SAYS_OPEN;
}
static int is_worse(const struct compared *row) {
    return row->says == (is_share(row->which) && row->which != WHICH_FAILED ? SAYS_LESS : SAYS_MORE);
}
static int are_different(const char *left, const char *right) {
    return strcmp(left ? left : "", right ? right : "") != 0;
}
/* Warns of differences between the trials other than the server. */
static void warn_of_pair(struct comparison *comparison, const struct load_level *before,
                         const struct load_level *after) {
    const struct { const char *name, *values[2]; } texts[] = {
        {"data", {before->task, after->task}}, {"arrivals", {before->arrivals, after->arrivals}},
        {"objective", {before->slo, after->slo}}, {"model", {before->model, after->model}}};
    char load[48];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (are_different(texts[i].values[0], texts[i].values[1]))
            text_list_add(&comparison->warnings, "%s: A and B differ in %s (%.80s / %.80s)",
                          load_level_text(before, load), texts[i].name,
                          texts[i].values[0] ? texts[i].values[0] : "none",
                          texts[i].values[1] ? texts[i].values[1] : "none");
}
/* Caches must be used alike: a cached image makes it a different measurement. Returns 0 or an exit code. */
static int check_caches(const struct load_level *before, const struct load_level *after, int is_forced) {
    if (is_forced || (!are_different(before->images, after->images) && (before->no_cache > 0) == (after->no_cache > 0)))
        return 0;
    return complain(EXIT_USAGE, "compare: not comparable: images %s, --no_cache %s / images %s, --no_cache %s; --force "
                                "images compares them anyway",
                    before->images ? before->images : "not said", before->no_cache > 0 ? "given" : "not given",
                    after->images ? after->images : "not said", after->no_cache > 0 ? "given" : "not given");
}
/* Warns of busy clients and of caches. */
static void warn_of_sides(struct comparison *comparison, const struct load_level *before,
                          const struct load_level *after) {
    const double cached[2] = {load_cached_share(&before->summary), load_cached_share(&after->summary)};
    char load[48];
    load_level_text(before, load);
    for (int side = 0; side < 2; side++)
        if ((side ? after : before)->client_busy > 0)
            text_list_add(&comparison->warnings, "%s: the client of %s was busy, which increases its latencies", load,
                          side ? "B" : "A");
    if (fabs(cached[0] - cached[1]) > 0.05)
        text_list_add(&comparison->warnings, "%s: the servers read %s %% of A's prompt tokens from their caches, and "
                                             "%s %% of B's", load, number_percent(cached[0]).text,
                      number_percent(cached[1]).text);
}
/* Warns of differences that are not caused by a server. */
static void warn_of_length(struct comparison *comparison, const struct load_level *before,
                           const struct load_level *after) {
    char load[48];
    load_level_text(before, load);
    if (before->new_tokens > 0 && after->new_tokens > 0 && before->new_tokens != after->new_tokens)
        text_list_add(&comparison->warnings,
                      "%s: A and B differ in max_new_tokens (%lld / %lld); shorter answers end sooner",
                      load, (long long)before->new_tokens, (long long)after->new_tokens);
    if (!before->is_complete || !after->is_complete)
        text_list_add(&comparison->warnings, "%s: %s was interrupted and is a partial trial", load,
                      before->is_complete ? "B" : "A");
}
static struct compared *add_row(struct comparison *comparison, const struct load_level *before, size_t group,
                                int which) {
    struct compared *row;
    comparison->rows = resize(comparison->rows, comparison->count + 1, sizeof *comparison->rows);
    row = &comparison->rows[comparison->count++];
    memset(row, 0, sizeof *row);
    load_level_text(before, row->load);
    row->status = before->is_complete ? "complete" : "partial";
    row->key = WHICH[which].key;
    row->name = WHICH[which].name;
    row->rate = before->concurrency ? (double)NAN : before->rate;
    row->concurrency = before->concurrency ? before->concurrency : -1;
    row->a = row->b = row->change = (vp_series_value){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    row->pairs = -1;
    row->group = group;
    row->which = which;
    return row;
}
static void compare_levels(struct comparison *comparison, const struct load_level *before,
                           const struct load_level *after, size_t group) {
    for (int which = WHICH_PAIRED; which < WHICH_COUNT; which++) {
        const vp_series_value a = value_of(before, which), b = value_of(after, which);
        struct compared *row;
        if (WHICH[which].latency == LOAD_TPOT
            && (load_has_few_tokens(&before->summary) || load_has_few_tokens(&after->summary))) continue;
        /* goodputs by different objectives are different quantities */
        if (!isfinite(a.value) || !isfinite(b.value) || (is_share(which) && are_different(before->slo, after->slo)))
            continue;
        row = add_row(comparison, before, group, which);
        row->a = a;
        row->b = b;
        row->says = says_of(&a, &b);
    }
}
static vp_series_value failed_share(const struct load_summary *summary) {
    vp_series_value share = {(double)summary->failed / (double)summary->due, 0, 1, (double)NAN};
    vp_rate_interval((uint64_t)summary->failed, (uint64_t)summary->due, 0.95, &share.low, &share.high);
    return share;
}
/* Compares the shares of failed requests, if any failed. The interval of the difference is Newcombe's, from the two
 * Wilson intervals. */
static void compare_failures(struct comparison *comparison, const struct load_level *before,
                             const struct load_level *after, size_t group) {
    const struct load_level *const levels[2] = {before, after};
    struct compared *row;
    char load[48];
    if (before->summary.due <= 0 || after->summary.due <= 0) return;
    if (!(before->summary.failed + after->summary.failed)) return;
    row = add_row(comparison, before, group, WHICH_FAILED);
    row->a = failed_share(&before->summary);
    row->b = failed_share(&after->summary);
    row->change.value = 100 * (row->b.value - row->a.value);
    row->change.low = row->change.value - 100 * hypot(row->b.value - row->b.low, row->a.high - row->a.value);
    row->change.high = row->change.value + 100 * hypot(row->b.high - row->b.value, row->a.value - row->a.low);
    row->says = row->change.low > 0 ? SAYS_MORE : row->change.high < 0 ? SAYS_LESS
                : fmax(-row->change.low, row->change.high) <= 100 * comparison->share_margin ? SAYS_SAME : SAYS_OPEN;
    for (int side = 0; side < 2; side++)
        if (levels[side]->failures)
            text_list_add(&comparison->warnings, "%s, %s: %s; latencies are of the others",
                          load_level_text(levels[side], load), side ? "B" : "A", levels[side]->failures);
}

/* ---- pairs */
struct request_pairs { const struct load_record **of[2]; size_t count; };
/* Pairs requests in both windows with the same due time and sample. The lists are sorted by due time. */
static struct request_pairs find_pairs(const struct load_level *const levels[2],
                                       struct load_request *const requests[2], const size_t counts[2]) {
    const size_t most = counts[0] < counts[1] ? counts[0] : counts[1];
    const double from_ns = 1e9 * fmax(levels[0]->summary.from_s, levels[1]->summary.from_s),
                 to_ns = 1e9 * fmin(levels[0]->summary.to_s, levels[1]->summary.to_s);
    struct request_pairs pairs = {{NULL, NULL}, 0};
    size_t inside = 0;
    for (int side = 0; side < 2; side++)
        pairs.of[side] = (const struct load_record **)resize(NULL, most + 1, sizeof *pairs.of[side]);
    for (size_t i = 0, k = 0; i < counts[0] && k < counts[1];) {
        const struct load_request *one = &requests[0][i], *other = &requests[1][k];
        const double apart_ns = (double)(other->record.due_ns - one->record.due_ns);
        if (apart_ns > DUE_NEAR_NS) { i++; continue; }
        if (apart_ns < -DUE_NEAR_NS) { k++; continue; }
        i++;
        k++;
        if ((double)one->record.due_ns < from_ns || (double)one->record.due_ns >= to_ns
            || one->sample_id != other->sample_id) continue;
        pairs.of[0][pairs.count] = &one->record;
        pairs.of[1][pairs.count++] = &other->record;
    }
    for (size_t i = 0; i < counts[0]; i++)
        inside += (double)requests[0][i].record.due_ns >= from_ns && (double)requests[0][i].record.due_ns < to_ns;
    if ((double)pairs.count < PAIRED_SHARE * (double)inside) pairs.count = 0; /* other arrivals: matches by chance */
    return pairs;
}
/* Compares one quantity over the pairs that have it on both sides. */
static void compare_number(struct comparison *comparison, const struct load_level *const levels[2],
                           const struct request_pairs *pairs, const vp_slo *slo, size_t group, int which) {
    double *values[2] = {resize(NULL, pairs->count, sizeof **values), resize(NULL, pairs->count, sizeof **values)};
    const vp_scale scale = is_share(which) ? VP_SCALE_ABSOLUTE : VP_SCALE_LOG;
    vp_comparison result;
    size_t count = 0;
    int is_equal = 1;
    for (size_t i = 0; i < pairs->count; i++) {
        for (int side = 0; side < 2; side++)
            values[side][count] = is_share(which) ? load_is_good(pairs->of[side][i], slo)
                                                  : load_latency(pairs->of[side][i], WHICH[which].latency);
        if (!isfinite(values[0][count]) || !isfinite(values[1][count])) continue;
        if (which == WHICH_TPOT && (pairs->of[0][i]->usage.completion_tokens < TPOT_TOKENS_LEAST
                                    || pairs->of[1][i]->usage.completion_tokens < TPOT_TOKENS_LEAST)) continue;
        if (!is_share(which) && !(values[0][count] > 0 && values[1][count] > 0)) continue;
        is_equal &= values[0][count] <= values[1][count] && values[0][count] >= values[1][count];
        count++;
    }
    if (vp_compare_ordered(values[0], values[1], count, scale,
                           is_share(which) ? comparison->share_margin : comparison->margin, ALPHA, NULL, &result)
        == VP_OK) {
        struct compared *row = add_row(comparison, levels[0], group, which);
        row->pairs = (int64_t)count;
        row->comparison = result;
        row->a.value = vp_statistics_mean(values[0], count);
        row->b.value = vp_statistics_mean(values[1], count);
        row->change.value = 100 * result.estimate;
        row->change.low = 100 * result.low;
        row->change.high = 100 * result.high;
        row->says = is_equal ? SAYS_EQUAL : SAYS_OPEN; /* decide_pairs decides the rest */
    }
    FREE_ALL(values[0], values[1]);
}
/* Compares two trials pair by pair. Returns 1, or 0 if they share no requests. *code is an exit code. */
static int compare_pairs(struct comparison *comparison, const struct load_level *before,
                         const struct load_level *after, size_t group, int *code) {
    const struct load_level *const levels[2] = {before, after};
    struct load_request *requests[2] = {NULL, NULL};
    struct request_pairs pairs = {{NULL, NULL}, 0};
    size_t counts[2] = {0, 0};
    vp_slo slo;
    const int has_slo = before->slo && !are_different(before->slo, after->slo)
                        && vp_slo_parse(before->slo, &slo, NULL) == VP_OK;
    if (before->concurrency) return 0;
    for (int side = 0; side < 2 && !*code; side++)
        *code = load_level_requests(levels[side], &requests[side], &counts[side]);
    if (!*code) pairs = find_pairs(levels, requests, counts);
    for (int which = 0; which < WHICH_PAIRED && pairs.count > 1; which++)
        if (!is_share(which) || !are_different(before->slo, after->slo))
            compare_number(comparison, levels, &pairs, has_slo ? &slo : NULL, group, which);
    FREE_ALL((void *)pairs.of[0], (void *)pairs.of[1], requests[0], requests[1]);
    return pairs.count > 1;
}
/* Sets the verdicts, from all pairs together. */
static void decide_pairs(struct comparison *comparison) {
    vp_comparison *results = resize(NULL, comparison->count + 1, sizeof *results);
    size_t *groups = resize(NULL, comparison->count + 1, sizeof *groups), *rows = resize(NULL, comparison->count + 1,
                                                                                        sizeof *rows),
           *like = resize(NULL, comparison->count + 1, sizeof *like), count = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared *row = &comparison->rows[i];
        if (row->pairs < 0 || row->says == SAYS_EQUAL) continue; /* equal numbers need no test */
        rows[count] = i;
        groups[count] = is_share(row->which) ? comparison->count + i : row->group;
        results[count++] = row->comparison;
    }
    comparison->family = count ? verdicts_adjust(results, groups, count, ALPHA, like) : 0;
    for (size_t i = 0; i < count; i++) {
        struct compared *row = &comparison->rows[rows[i]];
        const vp_verdict verdict = results[i].verdict;
        row->says = verdict == VP_VERDICT_SLOWER   ? SAYS_MORE
                    : verdict == VP_VERDICT_FASTER ? SAYS_LESS
                    : verdict == VP_VERDICT_SAME   ? SAYS_SAME : SAYS_OPEN;
    }
    FREE_ALL(results, groups, rows, like);
}
/* "SLOWER" or "WORSE" if any occurs, otherwise INCONCLUSIVE, otherwise FASTER or BETTER, otherwise SAME. */
static const char *overall_of(const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++)
        if (is_worse(&comparison->rows[i])) return comparison->rows[i].verdict;
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->rows[i].says == SAYS_OPEN) return comparison->rows[i].verdict;
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->rows[i].says <= SAYS_MORE) return comparison->rows[i].verdict;
    return comparison->rows[0].verdict;
}
static int print_text(const struct comparison *comparison, const char *const names[2]) {
    struct document document = {NULL, 0, NULL};
    const struct table table = TABLE(COMPARED, comparison->rows, comparison->count, NULL, 0);
    document_text(&document, BLOCK_HEADING, "verdict: %s", overall_of(comparison));
    document_text(&document, BLOCK_LINE, "B %s against A %s: trials of load", names[1], names[0]);
    document_add_table(&document, &table);
    document_list(&document, "Warnings", &comparison->warnings);
    document_text(&document, BLOCK_HEADING, "How to read this");
    if (comparison->family)
        document_text(&document, BLOCK_LINE,
                      "pairs: requests of both trials with the same due time and sample; difference: for latencies "
                      "the geometric mean of B/A minus 1, for the good share in points; SAME: "
                      "within +-%.3g %% or +-%.3g points; verdicts are corrected for %zu comparisons (Holm, 5 %%)",
                      100 * comparison->margin, 100 * comparison->share_margin, comparison->family);
    document_text(&document, BLOCK_LINE,
                  "[low, high] is a 95 %% interval that allows for correlated requests; without pairs (different "
                  "arrivals, or requests at once) a verdict needs intervals that do not overlap");
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->rows[i].which != WHICH_FAILED) continue;
        document_text(&document, BLOCK_LINE, "failed: the difference in points; its 95 %% interval treats requests as "
                                             "independent, so one outage is enough for a verdict");
        break;
    }
    return print_document(&document);
}
static int print_json(const struct comparison *comparison, const char *const names[2]) {
    const struct table table = TABLE(COMPARED, comparison->rows, comparison->count, NULL, 0);
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-compare-load-1"), KEY("a", names[0]),
        KEY("b", names[1]), KEY_TEXTS("warnings", &comparison->warnings), KEY("margin", comparison->margin),
        KEY("share_margin", comparison->share_margin), KEY("alpha", ALPHA), KEY("adjustment", "holm"),
        KEY("adjusted_for", comparison->family), KEY("verdict", overall_of(comparison)));
    table_put(&writer, "comparisons", &table);
    vp_json_end_object(&writer);
    return json_end(&writer);
}
int load_compare(const struct load_levels *before, const struct load_levels *after, const char *const names[2],
                 const struct load_margins *margins) {
    struct comparison comparison = {NULL, 0, {NULL, 0}, margins->latency, margins->share, 0};
    size_t pairs = 0;
    int code = 0, fails = 0;
    for (size_t i = 0; i < before->count && !code; i++)
        for (size_t k = 0; k < after->count && !code; k++)
            if (is_same_load(&before->items[i], &after->items[k])) {
                warn_of_pair(&comparison, &before->items[i], &after->items[k]);
                warn_of_length(&comparison, &before->items[i], &after->items[k]);
                warn_of_sides(&comparison, &before->items[i], &after->items[k]);
                if ((code = check_caches(&before->items[i], &after->items[k], margins->forces_images)) != 0) break;
                if (!compare_pairs(&comparison, &before->items[i], &after->items[k], pairs, &code))
                    compare_levels(&comparison, &before->items[i], &after->items[k], pairs);
                compare_failures(&comparison, &before->items[i], &after->items[k], pairs);
                pairs++;
                break;
            }
    if (pairs < before->count || pairs < after->count)
        text_list_add(&comparison.warnings, "%zu load%s compared, from %zu in A and %zu in B", pairs,
                      pairs == 1 ? " is" : "s are", before->count,
                      after->count);
    decide_pairs(&comparison);
    for (size_t i = 0; i < comparison.count; i++) {
        struct compared *row = &comparison.rows[i];
        row->verdict = SAYS[row->which == WHICH_FAILED ? 2 : is_share(row->which)][row->says];
        fails |= is_worse(row) || (margins->fails_unsure && row->says == SAYS_OPEN);
    }
    if (!code && !comparison.count)
        code = complain(EXIT_USAGE, "compare: %s and %s have no common load at which both have a latency", names[0],
                        names[1]);
    else if (!code) code = margins->is_json ? print_json(&comparison, names) : print_text(&comparison, names);
    text_list_free(&comparison.warnings);
    free(comparison.rows);
    return code ? code : fails ? EXIT_WORK : 0;
}
