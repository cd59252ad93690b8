/* result_write.c: turns journals into one result file per configuration.
 * The data set, the model and the engine are not needed. sweep/result_gather.c gathers the content of the files,
 * results/fields.h has their keys. */
#include "sweep/result_write.h"

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "measure/fidelity.h"
#include "measure/noise.h"
#include "measure/record.h"
#include "results/fields.h"
#include "sweep/result_gather.h"
#include "score/scoring.h"
#include "vlmprof_file.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <errno.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

/* ---- writing numbers */
/* Returns 1 and sets *statistics if the list is not empty. In both cases *sorted becomes the sorted values, malloc'ed;
 * sorted may be NULL. */
static int list_has_statistics(const struct number_list *list, vp_statistics *statistics, double **sorted) {
    double *scratch = resize(NULL, list->count, sizeof *scratch);
    int good = list->count && vp_statistics_compute(list->values, list->count, scratch, statistics) == VP_OK;
    if (sorted) *sorted = scratch; else free(scratch);
    return good;
}
static void put_statistic(vp_json_writer *writer, const char *name, const char *what, double value) {
    char key[96];
    snprintf(key, sizeof key, "%s%s%s", name, name[0] ? "_" : "", what);
    put_double(writer, key, value);
}
/* NAME_mean ... NAME_p99, null if there is no value; without a name: mean ... p99. */
static void put_statistics(vp_json_writer *writer, const char *name, const struct number_list *list) {
    vp_statistics statistics = {
        .mean = (double)NAN, .std = (double)NAN, .p50 = (double)NAN, .p95 = (double)NAN, .p99 = (double)NAN};
    list_has_statistics(list, &statistics, NULL);
    put_statistic(writer, name, "mean", statistics.mean);
    put_statistic(writer, name, "std", statistics.std);
    put_statistic(writer, name, "p50", statistics.p50);
    put_statistic(writer, name, "p95", statistics.p95);
    put_statistic(writer, name, "p99", statistics.p99);
}
static double list_mean(const struct number_list *list) {
    return list->count ? vp_statistics_mean(list->values, list->count) : (double)NAN;
}
static double list_std(const struct number_list *list) {
    return list->count ? vp_statistics_std(list->values, list->count) : (double)NAN;
}
static double list_p50(const struct number_list *list) {
    vp_statistics statistics;
    return list_has_statistics(list, &statistics, NULL) ? statistics.p50 : (double)NAN;
}
/* {"count", "mean" ... "p99", "p50_interval", "unsupported": percentiles that need more values} */
static void put_distribution(vp_json_writer *writer, const char *key, const struct number_list *list) {
    static const double percentiles[] = {50, 95, 99};
    static const char *const names[] = {"p50", "p95", "p99"};
    double *sorted = NULL, low = 0, high = 0;
    vp_statistics statistics;
    int known = list_has_statistics(list, &statistics, &sorted)
                && vp_statistics_percentile_interval(sorted, list->count, 50, 0.95, &low, &high) == VP_OK;
    PUT(writer, KEY_OBJECT(key), KEY("count", (int64_t)list->count));
    put_statistics(writer, "", list);
    put_interval(writer, "p50_interval", known, low, high);
    PUT(writer, KEY_ARRAY("unsupported"));
    for (int i = 0; i < 3; i++)
        if (!vp_statistics_percentile_supported(list->count, percentiles[i])) vp_json_string(writer, names[i]);
    PUT(writer, END_ARRAY, END_OBJECT);
    free(sorted);
}
static void put_each_distribution(vp_json_writer *writer, const char *key, const struct gathered *gathered, int first) {
    PUT(writer, KEY_OBJECT(key));
    for (int k = 0; k < METRIC_ALL; k++)
        if (!is_left_out(k, list_mean(&gathered->lists[LIST_METRICS + k])))
            put_distribution(writer, k < METRIC_STAGE ? METRIC_KEYS[k] : vp_stage_name((vp_stage)(k - METRIC_STAGE)),
                             &gathered->lists[first + k]);
    PUT(writer, END_OBJECT);
}
static void put_distributions(vp_json_writer *writer, const struct gathered *gathered) {
    PUT(writer, KEY_OBJECT("statistics"));
    put_each_distribution(writer, "over_samples", gathered, LIST_METRICS); /* the samples' means over their runs */
    put_each_distribution(writer, "over_runs", gathered, LIST_RUNS);
    PUT(writer, END_OBJECT);
}

/* {"pos_1": {...}, ...}: decode steps by position, over samples and runs; position 1 is the first decode step */
static void put_step_statistics(vp_json_writer *writer, const struct gathered *gathered) {
    const struct number_list *values = &gathered->lists[LIST_STEP], *at = &gathered->lists[LIST_STEP_AT];
    size_t positions = 0, *starts, *fill;
    double *grouped = resize(NULL, values->count, sizeof *grouped);
    for (size_t i = 0; i < at->count; i++) if ((size_t)at->values[i] > positions) positions = (size_t)at->values[i];
    starts = zeroed(positions + 2, sizeof *starts);
    fill = zeroed(positions + 2, sizeof *fill);
    for (size_t i = 0; i < at->count; i++) starts[(size_t)at->values[i] + 1]++;
    for (size_t position = 1; position < positions + 2; position++) starts[position] += starts[position - 1];
    for (size_t i = 0; i < at->count; i++)
        grouped[starts[(size_t)at->values[i]] + fill[(size_t)at->values[i]]++] = values->values[i];
    PUT(writer, KEY_OBJECT("T_decode_per_step_stats"));
    for (size_t position = 1; position <= positions; position++) {
        struct number_list one = {grouped + starts[position], fill[position]};
        char key[32];
        snprintf(key, sizeof key, "pos_%zu", position);
        PUT(writer, KEY_OBJECT(key));
        put_statistics(writer, "", &one);
        PUT(writer, KEY("count", (int64_t)one.count), END_OBJECT);
    }
    vp_json_end_object(writer);
    FREE_ALL(grouped, starts, fill);
}

/* Statistics over samples (each sample is the mean over its runs), and T_total_runs over all single runs; milliseconds,
 * population std, linear percentiles. */
static void put_aggregate(vp_json_writer *writer, const char *key, const struct gathered *gathered) {
    PUT(writer, KEY_OBJECT(key));
    for (int metric = 0; metric < METRIC_STAGE; metric++)
        if (!is_left_out(metric, list_mean(&gathered->lists[LIST_METRICS + metric])))
            put_statistics(writer, METRIC_KEYS[metric], &gathered->lists[LIST_METRICS + metric]);
    put_statistics(writer, "T_total_runs", &gathered->lists[LIST_RUNS + METRIC_TOTAL]);
    put_double(writer, "vision_tokens_mean", list_mean(&gathered->lists[LIST_ACTUAL]));
    put_double(writer, "vision_tokens_std", list_std(&gathered->lists[LIST_ACTUAL]));
    put_double(writer, "vision_tokens_diff_mean", list_mean(&gathered->lists[LIST_DIFF]));
    put_step_statistics(writer, gathered);
    vp_json_end_object(writer);
}

/* the most frequent of the sorted values; the smallest of several */
static double most_frequent(const double *sorted, size_t count) {
    size_t best = 0, best_count = 0, start = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && !(sorted[i] > sorted[start])) continue;
        if (i - start > best_count) { best = start; best_count = i - start; }
        start = i;
    }
    return sorted[best];
}

/* {"VALUE": how often the list has this integer, ...} */
static void put_counts(vp_json_writer *writer, const char *name, const struct number_list *list) {
    double *sorted = NULL;
    vp_statistics statistics;
    PUT(writer, KEY_OBJECT(name));
    if (list_has_statistics(list, &statistics, &sorted))
        for (size_t i = 0, next; i < list->count; i = next) {
            char key[32];
            for (next = i + 1; next < list->count && !(sorted[next] > sorted[i]);) next++;
            snprintf(key, sizeof key, "%.0f", sorted[i]);
            put_int(writer, key, (int64_t)(next - i));
        }
    vp_json_end_object(writer);
    free(sorted);
}
/* Finds the most frequent tiling, with the canvas and the tokens of one of its rows. Returns 1 if there is one. */
struct usual { struct field_pair tiling, canvas; int64_t tokens; };
static int has_usual(const struct gathered *gathered, struct usual *usual) {
    double *sorted = NULL;
    vp_statistics statistics;
    const int good = list_has_statistics(&gathered->lists[LIST_TILING], &statistics, &sorted);
    if (good) {
        const int32_t code = (int32_t)most_frequent(sorted, statistics.count);
        size_t example = 0;
        while ((int32_t)gathered->lists[LIST_TILING].values[example] != code) example++;
        usual->tiling.first = code / 65536;
        usual->tiling.second = code % 65536;
        usual->canvas.first = (int64_t)gathered->lists[LIST_HEIGHT].values[example];
        usual->canvas.second = (int64_t)gathered->lists[LIST_WIDTH].values[example];
        usual->tokens = (int64_t)gathered->lists[LIST_TOKENS].values[example];
    }
    free(sorted);
    return good;
}
/* Writes crops, tokens, and the numbers of runs. */
static void put_vision(vp_json_writer *writer, const struct index_configuration *configuration,
                       const struct gathered *gathered) {
    const struct number_list *target = &gathered->lists[LIST_TARGET], *actual = &gathered->lists[LIST_ACTUAL];
    struct usual usual = {{-1, -1}, {-1, -1}, -1};
    const int is_known = has_usual(gathered, &usual);
    const struct result_vision vision = {
        .target_vision_tokens_mean = list_mean(target), .target_vision_tokens_std = list_std(target),
        .actual_vision_tokens_mean = list_mean(actual), .actual_vision_tokens_std = list_std(actual),
        .max_crops = configuration->knobs.max_crops,
        .theoretical_num_crops = is_known ? usual.tiling.first * usual.tiling.second : -1,
        .theoretical_tiling = usual.tiling, .theoretical_image_size = usual.canvas,
        .theoretical_vision_tokens = usual.tokens, .num_runs = gathered->run_count,
        .num_outlier_runs = gathered->outlier_count, .num_throttled_runs = gathered->throttled_count,
        .num_retries = gathered->retry_count};
    put_counts(writer, "selected_crops_distribution", &gathered->lists[LIST_CROPS]); /* of rows */
    fields_put(writer, &RESULT_VISION, &vision);
    PUT(writer, KEY_OBJECT("stops")); /* number of points, by the reason their runs ended */
    for (int i = 1; i <= STOP_LAST_; i++) put_int(writer, stop_name(i), gathered->stops[i]);
    vp_json_end_object(writer);
}

static struct field_range ends_of(vp_estimate estimate) { return (struct field_range){estimate.low, estimate.high}; }
static vp_estimate list_accuracy(const struct number_list *scores) { return mean_score(scores->values, scores->count); }
static void put_accuracy(vp_json_writer *writer, const struct index_set *set, const struct gathered *gathered) {
    const struct number_list *scores = &gathered->lists[LIST_ACCURACY], *crops = &gathered->lists[LIST_CROPS];
    const struct result_accuracy result = {
        .accuracy = list_mean(scores), .accuracy_std = list_std(scores), .accuracy_metric = set->data.metric,
        .accuracy_count = (int64_t)scores->count,
        .accuracy_reason = scores->count ? NULL : "no record has answers to compare with",
        .accuracy_standard_error = tally_error(&gathered->tally), .accuracy_interval = ends_of(list_accuracy(scores)),
        .num_unparsed = gathered->unparsed_count, .num_truncated = gathered->truncated_count,
        .num_empty = gathered->empty_count, .selected_crops_mean = list_mean(crops),
        .selected_crops_std = list_std(crops)};
    fields_put(writer, &RESULT_ACCURACY, &result);
}

/* ---- comparison with a baseline */
static double list_sum(const struct number_list *list) {
    double sum = 0;
    for (size_t i = 0; i < list->count; i++) sum += list->values[i];
    return sum;
}
/* The 95 % interval of a ratio of sums over rows: Student's interval of the change that each row makes to the ratio.
 * The unit is the row because the tokens of a row are not independent. */
static struct field_range ratio_interval(const struct number_list *sums, const struct number_list *counts) {
    const size_t rows = sums->count;
    const double total = list_sum(counts), ratio = list_sum(sums) / total;
    struct field_range range = {(double)NAN, (double)NAN};
    double *values = resize(NULL, rows + 1, sizeof *values);
    for (size_t i = 0; i < rows && counts->count == rows; i++)
        values[i] = ratio + (sums->values[i] - ratio * counts->values[i]) * (double)rows / total;
    if (rows < 2 || counts->count != rows
        || vp_statistics_mean_interval(values, rows, 0.95, &range.low, &range.high) != VP_OK)
        range.low = range.high = (double)NAN;
    free(values);
    return range;
}
static struct divergence_summary divergences_of(const struct gathered *gathered) {
    const struct number_list *nats = &gathered->lists[LIST_DIVERGENCE], *bounds = &gathered->lists[LIST_AT_MOST];
    struct divergence *all = resize(NULL, nats->count + 1, sizeof *all);
    for (size_t i = 0; i < nats->count; i++)
        all[i] = (struct divergence){nats->values[i], bounds->count == nats->count ? bounds->values[i] : (double)NAN};
    struct divergence_summary summary = divergences_summary(all, nats->count);
    free(all);
    return summary;
}
/* The comparison over all rows; its texts are those of `gathered`. */
static struct result_fidelity fidelity_of(const struct gathered *gathered) {
    const struct number_list *lists = gathered->lists, *tokens = &lists[LIST_ROW_TOKENS];
    const struct divergence_summary kl = divergences_of(gathered);
    const vp_estimate answers = list_accuracy(&lists[LIST_ANSWER_AGREEMENT]);
    const struct field_range top1 = ratio_interval(&lists[LIST_ROW_EQUAL], tokens), none = {(double)NAN, (double)NAN};
    struct result_fidelity all = {.baseline = gathered->baseline, .kl_divergence_mean = kl.mean,
        .kl_divergence_mean_interval = none, .kl_divergence_mean_at_most = kl.mean_at_most,
        .kl_divergence_median = kl.median, .kl_divergence_p99 = kl.p99, .kl_divergence_max = kl.most,
        .top1_agreement_interval = ends_of(list_accuracy(&lists[LIST_ROW_TOP1])), .answer_agreement = answers.value,
        .answer_agreement_interval = ends_of(answers),
        .first_difference_index = list_p50(&lists[LIST_FIRST_DIFFERENCE]),
        .first_difference_margin = list_p50(&lists[LIST_MARGIN]),
        .first_difference_baseline_margin = list_p50(&lists[LIST_BASELINE_MARGIN]), .num_ties = gathered->tie_count,
        .fidelity_tokens = llround(list_sum(tokens)), .fidelity_count = (int64_t)lists[LIST_ANSWER_AGREEMENT].count,
        .fidelity_reason = gathered->fidelity_reason};
    if ((int64_t)lists[LIST_DIVERGENCE].count == all.fidelity_tokens)
        all.kl_divergence_mean_interval = ratio_interval(&lists[LIST_ROW_DIVERGENCE], tokens);
    if (all.kl_divergence_mean_interval.low < 0) /* a divergence is never negative */
        all.kl_divergence_mean_interval.low = 0;
    all.top1_agreement = list_sum(&lists[LIST_ROW_EQUAL]) / (double)all.fidelity_tokens;
    if (top1.high > top1.low) { /* without a spread, the interval of the rows' shares is better */
        all.top1_agreement_interval.low = fmax(0, top1.low);
        all.top1_agreement_interval.high = fmin(1, top1.high);
    }
    return all;
}
static void put_fidelity(vp_json_writer *writer, const struct gathered *gathered) {
    const struct result_fidelity result = fidelity_of(gathered);
    fields_put(writer, &RESULT_FIDELITY, &result);
    put_counts(writer, "first_difference_distribution", &gathered->lists[LIST_FIRST_DIFFERENCE]);
}

/* ---- a row */
static int has_runs(const struct measured *measured) { return measured->count > 0 && !measured->failed; }

/* "T_image_outside" of the pairs; null if there are none. */
static void put_outside(vp_json_writer *writer, const struct twin_pair *pairs, int32_t count,
                        int64_t prompt_tokens, int64_t image_tokens) {
    const struct twin_result result = twins_result(pairs, count);
    if (count) twins_put(writer, &result, prompt_tokens, image_tokens);
    else put_null(writer, "T_image_outside");
}
/* The median of T_total over the point's runs, with its interval. */
static vp_estimate total_spread(const struct measured *measured) {
    double *totals = resize(NULL, (size_t)measured->count, sizeof *totals), low = 0, high = 0;
    double *sorted = resize(NULL, (size_t)measured->count, sizeof *sorted);
    vp_estimate spread = estimate_none();
    vp_statistics statistics;
    for (int32_t i = 0; i < measured->count; i++) totals[i] = metric_of(&measured->runs[i], METRIC_TOTAL);
    if (has_runs(measured) && vp_statistics_compute(totals, (size_t)measured->count, sorted, &statistics) == VP_OK) {
        spread.value = statistics.p50;
        if (vp_statistics_percentile_interval(sorted, (size_t)measured->count, 50, 0.95, &low, &high) == VP_OK) {
            spread.low = low;
            spread.high = high;
        }
    }
    FREE_ALL(totals, sorted);
    return spread;
}
/* "run_flags": six lists with one value per run. is_outlier: NULL if there are too few runs to decide. */
static void put_run_flags(vp_json_writer *writer, const struct measured *measured, const struct gathered *gathered,
                          int32_t file, const uint8_t *is_outlier) {
    int32_t count = has_runs(measured) ? measured->count : 0;
    PUT(writer, KEY_OBJECT("run_flags"), KEY_ARRAY("outlier"));
    for (int32_t i = 0; i < count; i++)
        if (is_outlier) vp_json_bool(writer, is_outlier[i]); else vp_json_null(writer);
    PUT(writer, END_ARRAY, KEY_ARRAY("throttled"));
    for (int32_t i = 0; i < count; i++) vp_json_bool(writer, measured->marks[i].is_throttled);
    PUT(writer, END_ARRAY, KEY_ARRAY("session")); /* the index in session_list */
    for (int32_t i = 0; i < count; i++)
        vp_json_int(writer, (int64_t)gathered_session(gathered, file, measured->marks[i].session));
    PUT(writer, END_ARRAY, KEY_ARRAY("telemetry"));
    for (int32_t i = 0; i < count; i++) {
        const char *telemetry = measured->marks[i].telemetry;
        if (telemetry) vp_json_raw(writer, telemetry, strlen(telemetry)); else vp_json_null(writer);
    }
    PUT(writer, END_ARRAY, KEY_ARRAY("steal_percent")); /* noise of the run's block */
    for (int32_t i = 0; i < count; i++) json_double_or_null(writer, measured->marks[i].noise.steal_percent);
    PUT(writer, END_ARRAY, KEY_ARRAY("other_cpu_percent"));
    for (int32_t i = 0; i < count; i++) json_double_or_null(writer, measured->marks[i].noise.other_cpu_percent);
    PUT(writer, END_ARRAY, END_OBJECT);
}
static double ms_of(int64_t ns) { return ns > 0 ? (double)ns / 1e6 : (double)NAN; }
/* Writes the measurement of the point: its runs, their flags, and the cost of measuring. */
static void put_measurement(vp_json_writer *writer, const struct measured *measured, const struct gathered *gathered,
                            int32_t file) {
    const int ran = has_runs(measured);
    const vp_estimate spread = total_spread(measured);
    uint8_t *is_outlier = zeroed((size_t)measured->count, 1);
    struct outliers outliers;
    const int known = can_find_outliers(measured, is_outlier, &outliers), slow_first = known ? outliers.slow_first : -1;
    const struct measured_row row = {
        .stop = measured->stop, .num_runs = ran ? measured->count : 0, .T_total_p50 = spread.value,
        .T_total_p50_interval = ends_of(spread),
        .decode_tokens_per_s = ran ? measured_decode_rate(measured) : (double)NAN,
        .output_tokens_per_s = ran ? measured_output_rate(measured) : (double)NAN, .slow_first_run = slow_first};
    const struct measured_cost cost = {
        .stamps = measured->stamps, .T_total_bare = ms_of(measured->bare.bare_ns),
        .T_total_staged = ms_of(measured->bare.staged_ns), .num_retries = measured->retries};
    fields_put(writer, &MEASURED, &row);
    put_run_flags(writer, measured, gathered, file, known ? is_outlier : NULL);
    fields_put(writer, &MEASURED_COST, &cost);
    free(is_outlier);
}
/* "twins": the pairs of a point, null if not requested. "T_image_outside": their result, null without pairs. */
static void put_twins(vp_json_writer *writer, const struct measured *measured) {
    const struct twins_object *twins = &measured->twins;
    if (measured->has_twins) fields_put_object(writer, "twins", &RESULT_TWINS, twins); else put_null(writer, "twins");
    put_outside(writer, twins->pairs, twins->count,
                twins->prompt_tokens > 0 ? twins->prompt_tokens : -1, twins->image_tokens);
}
static void put_row(vp_json_writer *writer, const struct measured *measured, const struct gathered *gathered,
                    int32_t file) {
    const struct point *point = &measured->point;
    vp_score_outcome outcome;
    struct scoring scoring;
    const struct row_head head = {
        .sample_id = point->sample->id, .status = point->reason ? "failed" : "ok", .reason = point->reason};
    score_point(point, &scoring, &outcome);
    vp_json_begin_object(writer);
    fields_put(writer, &ROW_HEAD, &head);
    if (point->is_served) put_served_layout(writer, point, &measured->served_sizes);
    else fields_put(writer, &SIZES, &measured->sizes);
    put_point_tokens(writer, point);
    put_point_answer(writer, point, &outcome);
    if (measured->has_fidelity) put_fidelity_row(writer, &measured->fidelity);
    vp_json_key(writer, "metadata");
    vp_json_raw(writer, point->sample->record, strlen(point->sample->record));
    put_point_times(writer, point);
    put_measurement(writer, measured, gathered, file);
    if (point->is_served) {
        put_served_point(writer, point, &measured->served_sizes);
        put_twins(writer, measured);
    }
    vp_json_end_object(writer);
    scoring_free(&scoring);
}

/* ---- the head of a file */
static const char *date_of(int64_t unix_s, char out[40]) {
    time_t seconds = (time_t)unix_s;
    struct tm utc;
    return unix_s && gmtime_r(&seconds, &utc) && strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", &utc) ? out : NULL;
}
/* Reads the line again, into index->scratch. Returns 1 if that succeeds. Otherwise the writer fails, and put_result
 * returns the code: a file with a missing part would look complete. */
static int has_read_line(vp_json_writer *writer, struct journal_index *index, int32_t file, int64_t at) {
    if (writer->result == VP_OK && index_read_line(index, file, at)) writer->result = VP_ERR_READ;
    return writer->result == VP_OK;
}
static void put_session(vp_json_writer *writer, struct journal_index *index, const struct used_session *session) {
    const vp_json *json = &index->scratch.json;
    const uint32_t node = session && session->at >= 0 && has_read_line(writer, index, session->file, session->at)
                              ? vp_json_get(json, 0, "session")
                              : VP_JSON_NONE;
    if (node_is(json, node, VP_JSON_OBJECT)) json_node(writer, json, node); else vp_json_null(writer);
}
static void put_sessions(vp_json_writer *writer, struct journal_index *index, const struct gathered *gathered) {
    char from[40], to[40];
    const struct result_time times = {.measured_from = date_of(gathered->first_s, from),
                                      .measured_to = date_of(gathered->last_s, to),
                                      .sessions = (int64_t)gathered->session_count};
    fields_put(writer, &RESULT_TIME, &times);
    vp_json_key(writer, "provenance"); /* the latest session, with its cold first request */
    put_session(writer, index, gathered->session_count ? &gathered->sessions[gathered->session_count - 1] : NULL);
    PUT(writer, KEY_ARRAY("session_list"));
    for (size_t i = 0; i < gathered->session_count; i++) put_session(writer, index, &gathered->sessions[i]);
    PUT(writer, END_ARRAY);
}
/* The tool's own cost: number of stamps times the cost of one, and pairs of runs with and without them. */
static void put_tool_cost(vp_json_writer *writer, struct journal_index *index, const struct gathered *gathered) {
    const struct number_list *bare = &gathered->lists[LIST_BARE], *staged = &gathered->lists[LIST_STAGED];
    double *scratch = resize(NULL, bare->count, sizeof *scratch), stamp_ns = (double)NAN,
           stamps = list_mean(&gathered->lists[LIST_STAMPS]);
    const vp_estimate none = estimate_none();
    vp_paired difference = {.mean = none, .relative_mean = none, .relative_median = none};
    int paired = bare->count == staged->count && bare->count
                 && vp_statistics_paired(bare->values, staged->values, bare->count, scratch, &difference) == VP_OK;
    const struct used_session *last = gathered->session_count ? gathered->sessions + gathered->session_count - 1 : NULL;
    const vp_json *json = &index->scratch.json;
    if (last && last->at >= 0 && has_read_line(writer, index, last->file, last->at))
        stamp_ns = node_number(json, vp_json_get(json, vp_json_get(json, 0, "session"), "stamp_cost_ns"));
    const struct tool_cost cost = {
        .stamps_per_request = stamps, .stamp_cost_ns = stamp_ns,
        .stamps_share = stamps * stamp_ns / (list_mean(&gathered->lists[LIST_METRICS + METRIC_TOTAL]) * 1e6),
        .bare_pairs = paired ? (int64_t)difference.count : 0, .bare_difference_ms = difference.mean.value,
        .bare_difference_ms_interval = ends_of(difference.mean),
        .bare_difference_share = difference.relative_mean.value,
        .bare_difference_share_interval = ends_of(difference.relative_mean),
        .bare_difference_share_median = difference.relative_median.value,
        .bare_difference_share_median_interval = ends_of(difference.relative_median)};
    fields_put_object(writer, "tool_cost", &TOOL_COST, &cost);
    free(scratch);
}
static void put_kernel_pass(vp_json_writer *writer, struct journal_index *index,
                            const struct index_configuration *configuration) {
    PUT(writer, KEY_ARRAY("kernel_pass")); /* shapes with separately timed kernels; idle: device minus kernels */
    for (size_t i = 0; i < index->shape_count; i++) {
        if (&index->configurations[index->shapes[i].configuration] != configuration
            || !has_read_line(writer, index, index->shapes[i].file, index->shapes[i].at))
            continue;
        json_node(writer, &index->scratch.json, vp_json_get(&index->scratch.json, 0, "kernels"));
    }
    vp_json_end_array(writer);
}
static void put_load(vp_json_writer *writer, struct journal_index *index,
                     const struct index_configuration *configuration) {
    if (!knobs_are_loaded(&configuration->knobs)) return;
    PUT(writer, KEY_ARRAY("load"));
    for (size_t i = 0; i < index->load_count; i++) {
        struct load_line line;
        if (&index->configurations[index->loads[i].configuration] != configuration
            || !has_read_line(writer, index, index->loads[i].file, index->loads[i].at))
            continue;
        fields_read(&index->scratch.json, vp_json_get(&index->scratch.json, 0, "load"), &LOAD_LINE, &line);
        PUT(writer, KEY_OBJECT(NULL));
        fields_put(writer, &LOAD, &line);
        PUT(writer, END_OBJECT);
        fields_free(&LOAD_LINE, &line);
    }
    PUT(writer, END_ARRAY);
}
/* A member of the head's "server". */
static void put_of_server(vp_json_writer *writer, const char *key, const vp_json *server) {
    const uint32_t node = vp_json_get(server, 0, key);
    vp_json_key(writer, key);
    if (node == VP_JSON_NONE) vp_json_null(writer); else json_node(writer, server, node);
}
/* The settings of a sweep of servers, the same for all of them. */
static void put_server(vp_json_writer *writer, const struct journal_index *index) {
    struct parsed server = {{NULL, NULL, 0}, NULL, 0};
    if (index->server && parse_json(&server, index->server, strlen(index->server), NULL) == VP_OK) {
        put_of_server(writer, "endpoint_api", &server.json);
        put_of_server(writer, "family", &server.json);
        put_of_server(writer, "family_keys", &server.json);
    }
    free(server.nodes);
}
/* Writes why numbers of a server's file are null. */
static void put_null_reasons_of(vp_json_writer *writer, const struct gathered *gathered) {
    static const char device[] = "only the server knows", tokens[] = "only the server's tokenizer knows";
    static const struct { const char *key, *reason; } always[] = {
        {"top_k", device}, {"num_active_blocks", device}, {"num_total_blocks", device},
        {"active_block_indices", device}, {"weights", device}, {"model_shape", device}, {"stages", device},
        {"stage_detail", device}, {"output_token_ids", device}, {"content_tokens", device},
        {"theoretical_num_crops", "the server tiles the image by its own rule"},
        {"actual_num_crops", "the server tiles the image by its own rule"},
        {"input_text_tokens", tokens}};
    PUT(writer, KEY_OBJECT("null_reasons"));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) put_text(writer, always[i].key, always[i].reason);
    if (!gathered->twins.count)
        put_text(writer, "T_image_outside",
                 gathered->twins.reason      ? gathered->twins.reason
                 : gathered->twins.are_there ? "no pair was measured"
                                             : "measured with --twins");
    for (int metric = 0; metric < METRIC_STAGE; metric++)
        if (gathered->lacks[metric]) put_text(writer, METRIC_KEYS[metric], gathered->lacks[metric]);
    vp_json_end_object(writer);
}
/* "tier_range": the crops that the tier allows */
static void put_tier_range(vp_json_writer *writer, const vp_tier *tier) {
    vp_json_key(writer, "tier_range");
    if (tier) {
        PUT(writer, KEY_OBJECT(NULL), KEY("min_crops", tier->min_crops), KEY("max_crops", tier->max_crops), END_OBJECT);
    } else vp_json_null(writer);
}
/* The model's blocks and shape, which are unknown for a server. */
static void put_model_shape(vp_json_writer *writer, const struct journal_index *index, int is_known) {
    if (is_known) put_int(writer, "num_total_blocks", index->head.num_total_blocks);
    else put_null(writer, "num_total_blocks");
    vp_json_key(writer, "model_shape");
    if (is_known && index->model_shape) vp_json_raw(writer, index->model_shape, strlen(index->model_shape));
    else vp_json_null(writer);
}
static void put_setting(vp_json_writer *writer, const struct journal_index *index, const struct knob_values *knobs) {
    const int is_server = knobs_are_served(knobs);
    for (int knob = 0; knob < KNOB_OWN; knob++) {
        if (KNOBS[knob].in_knobs || (!knob_is_set(knobs, knob) && !(KNOBS[knob].always & KNOB_IN_RESULTS))) continue;
        knob_put(writer, knob, knobs);
        if (knob == KNOB_TIER) put_tier_range(writer, knob_tier(knobs));
        if (knob == KNOB_BLOCKS) put_model_shape(writer, index, !is_server);
        knob_put_more(writer, knob, knobs);
    }
    knob_put_own(writer, knobs);
    if (is_server) put_server(writer, index);
}
/* The members before the rows. "plan", "status" and "num_failed" come first: the next sweep only reads the first
 * bytes of the file to identify it (result_check). */
static void put_result_head(vp_json_writer *writer, struct journal_index *index,
                            const struct index_configuration *configuration, const struct gathered *gathered) {
    const struct index_set *set = &index->sets[configuration->set];
    const int is_server = knobs_are_served(&configuration->knobs);
    const struct result_head head = {
        .schema = RESULT_SCHEMA, .plan = index->plan,
        .status = gathered->missing_count  ? "partial" : gathered->failed_count ? "complete with failures" : "complete",
        .num_failed = gathered->failed_count, .num_ok = gathered->ok_count, .num_missing = gathered->missing_count,
        .num_samples = set->data.num_samples, .num_runs_per_sample = index->head.num_runs_per_sample,
        .timing = index->head.timing, .synthetic = index->head.synthetic,
        .model = is_server ? knob_text(&configuration->knobs, KNOB_ENDPOINT_MODEL) : index->head.model,
        .architecture = index->head.architecture, .dataset_name = set->data.task, .data = set->data.path,
        .data_hash = set->data.content_hash, .max_new_tokens = set->data.max_new_tokens};
    fields_put(writer, &RESULT, &head);
    put_setting(writer, index, &configuration->knobs);
    put_accuracy(writer, set, gathered);
    if (gathered->baseline) put_fidelity(writer, gathered);
    put_vision(writer, configuration, gathered);
    if (is_server) {
        put_int(writer, "num_cached_runs", gathered->cached_count);
        if (gathered->dropped_count || gathered->lists[LIST_RUNS + METRIC_DELAY].count)
            put_int(writer, "num_dropped_image_runs", gathered->dropped_count);
        put_outside(writer, gathered->twins.pairs, gathered->twins.count, -1, -1);
        put_null_reasons_of(writer, gathered);
    }
    put_sessions(writer, index, gathered);
    put_tool_cost(writer, index, gathered);
    put_noise(writer, &gathered->noise);
    put_load(writer, index, configuration);
    put_kernel_pass(writer, index, configuration);
    vp_json_key(writer, "config");
    if (has_read_line(writer, index, configuration->head_file, configuration->head_at)
        && node_is(&index->scratch.json, vp_json_get(&index->scratch.json, 0, "options"), VP_JSON_OBJECT))
        json_node(writer, &index->scratch.json, vp_json_get(&index->scratch.json, 0, "options"));
    else vp_json_null(writer);
    put_aggregate(writer, "aggregate_stats", gathered);
    put_aggregate(writer, "latency_stats", gathered);
    put_distributions(writer, gathered);
}

/* ---- a file */
/* Collects the writer's output in pieces of 64 KiB. */
struct out_file { vp_output output; vp_error error; vp_result result; size_t used; char data[65536]; };
static void out_flush(struct out_file *file) {
    if (file->result == VP_OK) file->result = vp_output_write(&file->output, file->data, file->used, &file->error);
    file->used = 0;
}
static vp_result out_sink(void *user, const char *text, size_t bytes) {
    struct out_file *file = (struct out_file *)user;
    while (bytes && file->result == VP_OK) {
        size_t piece = bytes < sizeof file->data - file->used ? bytes : sizeof file->data - file->used;
        memcpy(file->data + file->used, text, piece);
        file->used += piece;
        text += piece;
        bytes -= piece;
        if (file->used == sizeof file->data) out_flush(file);
    }
    return file->result;
}
void summaries_free(struct summaries *summaries) {
    for (size_t i = 0; i < summaries->count; i++) {
        fields_free(&RESULT_FIDELITY, &summaries->items[i].fidelity);
        free(summaries->items[i].path);
    }
    free(summaries->items);
}
/* Takes over `path`. */
static void summarize(struct summaries *all, char *path, const struct knob_values *knobs, struct gathered *gathered) {
    const int is_loaded = knobs_are_loaded(knobs), from = is_loaded ? LIST_RUNS : LIST_METRICS;
    struct summary *summary = ADDED(all->items, all->count);
    *summary = (struct summary){
        .path = path, .ok = gathered->ok_count, .failed = gathered->failed_count, .missing = gathered->missing_count,
        .accuracy = list_accuracy(&gathered->lists[LIST_ACCURACY]),
        .accuracy_count = (int64_t)gathered->lists[LIST_ACCURACY].count, .noise = gathered->noise,
        .is_served = knobs_are_served(knobs), .cached_count = gathered->cached_count,
        .dropped_count = gathered->dropped_count, .run_count = gathered->run_count,
        .twins = twins_result(gathered->twins.pairs, gathered->twins.count),
        .decode_rate = list_p50(&gathered->lists[LIST_DECODE_RATE]),
        .output_rate = list_p50(&gathered->lists[LIST_OUTPUT_RATE]),
        .sample_count = (int64_t)gathered->lists[from + METRIC_TOTAL].count};
    all->is_loaded |= is_loaded;
    if (gathered->baseline) {
        summary->fidelity = fidelity_of(gathered);
        summary->fidelity.baseline = copy_text(gathered->baseline, strlen(gathered->baseline));
        summary->fidelity.fidelity_reason = NULL; /* (not shown, and gathered's own) */
    }
    for (int k = 0; k < METRIC_STAGE; k++) {
        summary->p50[k] = median_range_of(gathered->lists[from + k].values, gathered->lists[from + k].count);
        if (is_loaded) summary->p50[k].low = summary->p50[k].high = summary->p50[k].level = (double)NAN;
    }
}

/* The whole file of a configuration: head and rows. Returns 0 or an exit code. */
static int put_result(vp_json_writer *writer, struct journal_index *index,
                      const struct index_configuration *configuration, const struct gathered *gathered) {
    const struct index_set *set = &index->sets[configuration->set];
    struct measured measured = {0};
    struct text_buffer row = {NULL, 0, 0};
    vp_json_writer one; /* a row is on one line */
    int code = 0;
    vp_json_begin_object(writer);
    put_result_head(writer, index, configuration, gathered);
    PUT(writer, KEY_ARRAY("per_sample_results"));
    if (writer->result == VP_ERR_READ) code = EXIT_INPUT;
    for (size_t i = 0; i < set->count && !code; i++) {
        if (!is_closed_point(set->entries[i], configuration)) continue;
        if ((code = measured_read(index, configuration, set->entries[i], &measured)) != 0) break;
        mark_dropped(gathered, &measured);
        row.bytes = 0;
        vp_json_writer_init_sink(&one, text_sink, &row, 0);
        put_row(&one, &measured, gathered, set->entries[i]->file);
        if (vp_json_finish(&one) == VP_OK) vp_json_raw(writer, row.data, row.bytes);
        else writer->result = one.result;
    }
    PUT(writer, END_ARRAY, END_OBJECT);
    measured_free(&measured);
    free(row.data);
    return code;
}
/* Writes the file of a configuration. Returns 0, or an exit code after a message. If only the
 * writer failed, returns 0 and sets file->result. */
static int write_file(struct journal_index *index, const struct index_configuration *configuration,
                      const struct gathered *gathered, const char *path, struct out_file *file) {
    vp_json_writer writer;
    file->result = vp_output_open(path, &file->output, &file->error);
    if (file->result != VP_OK) return 0;
    vp_json_writer_init_sink(&writer, out_sink, file, 1);
    int code = put_result(&writer, index, configuration, gathered);
    if (!code && vp_json_finish(&writer) != VP_OK && file->result == VP_OK)
        code = complain(EXIT_WORK, "%s: %s", path, vp_result_text(writer.result));
    out_sink(file, "\n", 1);
    out_flush(file);
    if (!code && file->result == VP_OK) file->result = vp_output_commit(&file->output, &file->error);
    else vp_output_discard(&file->output);
    return code;
}
static void discard_output(void *output) { vp_output_discard((vp_output *)output); }
/* Writes a configuration's FOLDER/NAME.json and adds its summary. */
static int write_result(struct journal_index *index, const struct index_configuration *configuration,
                        const char *folder, struct summaries *all) {
    char *path = join_path(folder, configuration->file_name);
    struct out_file *file = zeroed(1, sizeof *file);
    struct gathered *gathered = zeroed(1, sizeof *gathered);
    struct unfinished unfinished;
    int code = gather_configuration(index, configuration, gathered);
    file->output.fd = -1;
    unfinished_begin(&unfinished, discard_output, &file->output);
    if (!code) code = write_file(index, configuration, gathered, path, file);
    if (!code && file->result != VP_OK) {
        char line[LINE_BYTES];
        error_line(line, sizeof line, file->result, &file->error);
        code = complain(EXIT_OUTPUT, "%s; the journal has its points: %srun the same command again", line,
                        strstr(line, strerror(ENOSPC)) ? "free some space and " : "");
    }
    unfinished_end(&unfinished);
    if (!code) {
        summarize(all, path, &configuration->knobs, gathered);
        path = NULL;
    }
    gathered_free(gathered);
    FREE_ALL(gathered, file, path);
    return code;
}

/* Reads the first bytes of a result file into head and adds a NUL. Sets *is_there to 1 if the file exists. Returns 0 or
 * an exit code. */
static int read_head(const char *path, char *head, size_t capacity, int *is_there) {
    vp_error error = {VP_OK, -1, "", ""};
    int fd = -1;
    vp_result result = vp_file_open(path, &fd, &error);
    *is_there = result == VP_OK;
    if (result == VP_ERR_NOT_FOUND) return 0;
    if (result != VP_OK) return complain_result(exit_code_of(result), path, result, &error);
    ssize_t bytes = read(fd, head, capacity - 1);
    head[bytes > 0 ? bytes : 0] = 0;
    close(fd);
    return bytes < 0 ? complain(EXIT_INPUT, "%s: %s", path, strerror(errno)) : 0;
}
/* Complains about a result file of another plan, with the options that differ. Returns the exit code. */
static int complain_of_plan(const char *path, const struct journal_index *index) {
    struct text_buffer words = {NULL, 0, 0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    size_t bytes = 0;
    if (vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, NULL) == VP_OK
        && parse_json(&parsed, text, bytes, NULL) == VP_OK)
        add_plan_difference(&words, &parsed.json, vp_json_get(&parsed.json, 0, "config"), index->options);
    complain(EXIT_USAGE, "%s exists and belongs to another plan:%.400s; use another --output_dir, or delete it", path,
             words.data ? words.data : " it cannot be read");
    FREE_ALL(words.data, parsed.nodes, text);
    return EXIT_USAGE;
}
int result_check(const char *folder, const char *file_name, const struct journal_index *index,
                 struct result_found *found) {
    char head[512] = "", wanted[48], *path = join_path(folder, file_name), *at;
    int code = read_head(path, head, sizeof head, &found->is_there);
    snprintf(wanted, sizeof wanted, "\"plan\": \"%s\"", index->plan);
    found->status = NULL;
    if (!code && strstr(head, wanted) && (at = strstr(head, "\"status\": \"")) != NULL)
        found->status = copy_text(at + 11, strcspn(at + 11, "\""));
    else if (!code && strstr(head, "\"schema\": \"vlmprof-sweep-") && strstr(head, "\"plan\": \"")
             && !strstr(head, wanted))
        code = complain_of_plan(path, index);
    free(path);
    return code;
}
int results_write(struct journal_index *index, const char *folder, struct summaries *all) {
    int code = 0;
    for (int32_t i = 0; i < index->configuration_count && !code; i++) {
        const char *name = index->configurations[i].file_name;
        struct result_found found;
        if (!index->configurations[i].is_wanted) continue;
        if ((code = result_check(folder, name, index, &found)) != 0) break;
        if (found.is_there && !found.status)
            complain(0, "%s/%s was not a result file of a sweep and is written again from the journal", folder, name);
        code = write_result(index, &index->configurations[i], folder, all);
        free(found.status);
    }
    return code;
}

/* ---- the output at the end of a sweep */
/* Describes the range after T_total, by the configurations with the fewest and with the most samples. */
static void add_range_line(struct document *document, const struct summaries *all) {
    const struct summary *least = &all->items[0], *most = &all->items[0];
    char words[RANGE_WORDS], more[RANGE_WORDS];
    for (size_t i = 1; i < all->count; i++) {
        if (all->items[i].sample_count < least->sample_count) least = &all->items[i];
        if (all->items[i].sample_count > most->sample_count) most = &all->items[i];
    }
    range_words((size_t)least->sample_count, "samples", least->p50[METRIC_TOTAL].level, words);
    range_words((size_t)most->sample_count, "samples", most->p50[METRIC_TOTAL].level, more);
    if (!more[0]) document_text(document, BLOCK_LINE, "T_total: a range in brackets needs 3 samples");
    else if (!words[0] || !strcmp(words, more)) document_text(document, BLOCK_LINE, "T_total in brackets: %s", more);
    else document_text(document, BLOCK_LINE, "T_total in brackets: %s; %s", words, more);
}
static void add_name(struct text_list *cells, const struct summary *summary) {
    const char *name = name_in_path(summary->path);
    text_list_add(cells, "%.*s", (int)strlen(name) - 5, name); /* without .json */
}
/* Without stages, two columns are omitted. */
static void add_summary(struct text_list *cells, const struct summary *summary) {
    static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TTFT, METRIC_PER_TOKEN};
    const size_t first = summary->is_served ? 2 : 0;
    const struct median_range *total = &summary->p50[METRIC_TOTAL];
    const double unknown = (double)NAN; /* no range is shown */
    add_name(cells, summary);
    CELLS(cells, number_whole(summary->sample_count).text,
          number_measured(total->median, total->low, total->high).text);
    for (size_t k = first; k < sizeof columns / sizeof *columns; k++)
        text_list_add(cells, "%s", number_value(summary->p50[columns[k]].median, summary->p50[columns[k]].low,
                                                summary->p50[columns[k]].high).text);
    CELLS(cells, number_measured(summary->output_rate, unknown, unknown).text,
          number_whole(summary->accuracy_count).text,
          summary->sample_count || !summary->failed /* nothing answered: its accuracy is not known */
              ? number_measured(summary->accuracy.value, summary->accuracy.low, summary->accuracy.high).text
              : "-");
}
/* The cost of the images, if --twins measured it. */
static void add_twins(struct document *document, const struct summaries *all) {
    struct text_list *cells = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct twin_result *twins = &all->items[i].twins;
        const double unknown = (double)NAN;
        if (!twins->pairs) continue;
        if (!cells)
            cells = document_table(document, "image cost, ms|pairs|T_image_outside|TTFT image|TTFT text|floor");
        add_name(cells, &all->items[i]);
        CELLS(cells, number_whole(twins->pairs).text,
              number_measured(twins->difference.median, twins->difference.low, twins->difference.high).text,
              number_measured(twins->image_ms, unknown, unknown).text,
              number_measured(twins->text_ms, unknown, unknown).text,
              number_measured(twins->floor_ms, unknown, unknown).text);
    }
    if (cells) document_text(document, BLOCK_LINE, "%s", TWINS_TEXT);
}
static struct number_text range_text(double value, struct field_range range) {
    return number_measured(value, range.low, range.high);
}
/* The comparison of each configuration with the baseline, if there is one. */
static void add_fidelity(struct document *document, const struct summaries *all) {
    struct text_list *cells = NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct summary *summary = &all->items[i];
        const struct result_fidelity *fidelity = &summary->fidelity;
        if (!fidelity->baseline) continue;
        if (!cells)
            cells = document_table(document, "against the baseline|KL divergence, nats|P99|top1_agreement|"
                                             "answer_agreement|margin, nats");
        add_name(cells, summary);
        CELLS(cells, range_text(fidelity->kl_divergence_mean, fidelity->kl_divergence_mean_interval).text,
              number_short(fidelity->kl_divergence_p99).text,
              range_text(fidelity->top1_agreement, fidelity->top1_agreement_interval).text,
              range_text(fidelity->answer_agreement, fidelity->answer_agreement_interval).text,
              number_short(isfinite(fidelity->first_difference_baseline_margin)
                               ? fidelity->first_difference_baseline_margin
                               : fidelity->first_difference_margin).text);
    }
    if (cells) document_text(document, BLOCK_LINE, "%s", FIDELITY_TEXT);
}
int summaries_print(const struct summaries *all) {
    static const int explained[] = {METRIC_TOTAL, METRIC_TTFT, METRIC_PER_TOKEN, TERM_OUTPUT_RATE};
    struct document document = {NULL, 0, NULL};
    if (!all->count) return 0;
    int is_served = all->items[0].is_served; /* a journal belongs to servers or to the engine */
    struct text_list *cells = document_table(
        &document,
        is_served
            ? all->is_loaded ? "P50 over requests, ms|n|T_total|decode|TTFT|TPOT|output_tokens_per_s|scored|accuracy"
                             : "P50 over samples, ms|n|T_total|decode|TTFT|TPOT|output_tokens_per_s|scored|accuracy"
            : "P50 over samples, ms|n|T_total|vision|prefill|decode|TTFT|TPOT|output_tokens_per_s|scored|accuracy");
    for (size_t i = 0; i < all->count; i++) add_summary(cells, &all->items[i]);
    if (!all->is_loaded) add_range_line(&document, all);
    add_twins(&document, all);
    add_fidelity(&document, all);
    for (size_t i = 0; i < all->count; i++) {
        if (!isfinite(all->items[i].accuracy.low)) continue;
        document_text(&document, BLOCK_LINE, "accuracy: [low, high] is a 95 %% interval");
        break;
    }
    terms_add(&document, is_served, explained, sizeof explained / sizeof *explained);
    if (all->is_loaded)
        document_text(&document, BLOCK_LINE, "vlmprof report has the P95s under load, and intervals");
    return print_document(&document);
}
void summaries_warn(const struct summaries *all, struct text_list *warnings) {
    vp_noise_summary *items = resize(NULL, all->count, sizeof *items);
    const char **names = (const char **)resize(NULL, all->count, sizeof *names);
    char reason[LINE_BYTES];
    int64_t runs = 0, cached = 0, dropped = 0;
    double runs_least = HUGE_VAL; /* per point */
    struct twin_result twins = {0};
    for (size_t i = 0; i < all->count; i++) {
        items[i] = all->items[i].noise;
        names[i] = name_in_path(all->items[i].path);
        runs_least = fmin(runs_least, (double)all->items[i].run_count / (double)all->items[i].ok);
    }
    noise_warn(warnings, items, NULL, names, all->count, noise_advice_sweep(runs_least));
    free(items);
    for (size_t i = 0; i < all->count; i++) {
        runs += all->items[i].run_count;
        cached += all->items[i].cached_count;
        dropped += all->items[i].dropped_count;
        twins.pairs += all->items[i].twins.pairs;
        twins.cached += all->items[i].twins.cached;
        twins.unequal += all->items[i].twins.unequal;
        twins.silent += all->items[i].twins.silent;
        if (all->items[i].twins.basis != TWINS_TTFT) twins.basis = all->items[i].twins.basis;
        if (twins_are_wrong(&all->items[i].twins, reason, sizeof reason))
            text_list_add(warnings, "%s: %s", names[i], reason);
    }
    free((void *)names);
    warn_of_served_runs(warnings, cached, dropped, runs);
    twins_warn(warnings, &twins);
}
#define KEY_ENDS(key, range) KEY_RANGE(key, (range).low, (range).high)
void summaries_put(vp_json_writer *writer, const struct summaries *all) {
    PUT(writer, KEY_ARRAY("configurations"));
    for (size_t i = 0; i < all->count; i++) {
        const struct summary *summary = &all->items[i];
        const struct result_fidelity *fidelity = &summary->fidelity;
        PUT(writer, KEY_OBJECT(NULL), KEY("file", summary->path), KEY("num_ok", summary->ok),
            KEY("num_failed", summary->failed), KEY("num_missing", summary->missing));
        for (int k = 0; k < METRIC_STAGE; k++) {
            char key[64];
            snprintf(key, sizeof key, "%s_p50", METRIC_KEYS[k]);
            if (!is_left_out(k, summary->p50[k].median)) put_double(writer, key, summary->p50[k].median);
        }
        put_int(writer, "T_total_count", summary->sample_count);
        put_interval(writer, "T_total_p50_range", isfinite(summary->p50[METRIC_TOTAL].level),
                     summary->p50[METRIC_TOTAL].low, summary->p50[METRIC_TOTAL].high);
        PUT(writer, KEY("T_total_p50_range_level", summary->p50[METRIC_TOTAL].level),
            KEY("decode_tokens_per_s_p50", summary->decode_rate), KEY("output_tokens_per_s_p50", summary->output_rate),
            KEY("accuracy", summary->accuracy.value));
        put_range(writer, "accuracy_interval", summary->accuracy.low, summary->accuracy.high); /* 95 % */
        put_int(writer, "accuracy_count", summary->accuracy_count);
        if (summary->is_served)
            PUT(writer, KEY("num_cached_runs", summary->cached_count),
                KEY("num_dropped_image_runs", summary->dropped_count));
        if (summary->twins.pairs) twins_put(writer, &summary->twins, -1, -1);
        if (fidelity->baseline)
            PUT(writer, KEY("baseline", fidelity->baseline), KEY("kl_divergence_mean", fidelity->kl_divergence_mean),
                KEY_ENDS("kl_divergence_mean_interval", fidelity->kl_divergence_mean_interval),
                KEY("kl_divergence_p99", fidelity->kl_divergence_p99), KEY("top1_agreement", fidelity->top1_agreement),
                KEY_ENDS("top1_agreement_interval", fidelity->top1_agreement_interval),
                KEY("answer_agreement", fidelity->answer_agreement),
                KEY_ENDS("answer_agreement_interval", fidelity->answer_agreement_interval));
        put_noise(writer, &summary->noise);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}
