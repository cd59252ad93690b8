/* load_stats.c: computes a trial's published numbers from its records. */
#include "load/load_stats.h"

#include "base/console.h"
#include "base/memory.h"
#include "base/options.h"
#include "results/fields.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATENCY_KEY(S, AT, key, index, words) [index] = key,
const char *const LOAD_KEYS[LOAD_SPREADS] = {LOAD_LATENCY_ROWS(LATENCY_KEY, 0, 0) LOAD_SPREAD_ROWS(LATENCY_KEY, 0, 0)};
const double LOAD_PERCENTILE[LOAD_PERCENTILES] = {50, 90, 95, 99};

/* A few requests show a growing queue if so many of them did not end, and E2E grew so much. */
static const double FEW_MISSING = 4, FEW_GROWTH = 2;
static const double SILENCE_LEAST_S = 1, SILENCE_TIMES_TTFT = 3;
enum { REASONS_SHOWN = 3 };
static const double LATE_SHARE = 0.05; /* a delay below this share of the median TTFT does not matter */

static double ms_between(int64_t from_ns, int64_t to_ns) {
    return from_ns >= 0 && to_ns >= 0 ? (double)(to_ns - from_ns) / 1e6 : (double)NAN;
}
int load_slo_read(const char *text, vp_slo *slo) {
    static const char names[] = "ttft tpot e2e accuracy";
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = vp_slo_parse(text, slo, &error);
    char name[sizeof error.where];
    if (result == VP_OK) return 0;
    if (strchr(text, '='))
        return complain(EXIT_USAGE, "--slo %.100s: a limit is written as name:number, as in ttft:500,e2e:5000", text);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(error.where, ":"), error.where);
    if (result == VP_ERR_FORMAT && *name && !has_word(names, name)) return complain_word("slo", "limit", name, names);
    return complain_result(EXIT_USAGE, "--slo", result, &error);
}
/* If any request has a TTFT, requests without one, such as empty answers, are excluded from all latencies, so that all
 * numbers of a row describe the same requests. */
static int has_first(const struct load_record *const *chosen, size_t count) {
    for (size_t i = 0; i < count; i++) if (isfinite(load_latency(chosen[i], LOAD_TTFT))) return 1;
    return 0;
}
double load_latency(const struct load_record *record, int which) {
    const int64_t tokens = record->usage.completion_tokens;
    if (record->reason) return (double)NAN;
    switch (which) {
    case LOAD_TTFT: return ms_between(record->due_ns, record->first_ns);
    case LOAD_E2E: return ms_between(record->due_ns, record->last_ns);
    case LOAD_TTFT_SENT: return ms_between(record->start_ns, record->first_ns);
    case LOAD_E2E_SENT: return ms_between(record->start_ns, record->last_ns);
    case LOAD_ITL: return (double)NAN;
    case LOAD_QUEUED: return ms_between(0, record->queued_ns);
    default: return tokens > 1 ? ms_between(record->first_ns, record->last_ns) / (double)(tokens - 1) : (double)NAN;
    }
}
int load_is_good(const struct load_record *record, const vp_slo *slo) {
    const double tpot = record->usage.completion_tokens == 1 ? 0 : load_latency(record, LOAD_TPOT);
    if (record->reason || record->is_empty) return 0;
    return !slo || vp_slo_holds(slo, load_latency(record, LOAD_TTFT), tpot, load_latency(record, LOAD_E2E));
}

static int by_number(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}
/* The part of a request's time in the system that is within the window, in s. */
static double stay_s(const struct load_record *record, double from_s, double to_s) {
    const double begin = fmax((double)record->start_ns / 1e9, from_s),
                 end = fmin((double)record->end_ns / 1e9, to_s);
    return record->start_ns >= 0 && end > begin ? end - begin : 0;
}
/* Sums over all requests, including those that are due outside the window. */
static void add_flow(struct load_summary *summary, const struct load_records *records) {
    const double length = summary->to_s - summary->from_s;
    double stays = 0, output = 0, input = 0;
    int64_t ended = 0;
    for (size_t i = 0; i < records->count; i++) {
        const struct load_record *record = &records->items[i];
        const double end = (double)record->end_ns / 1e9;
        stays += stay_s(record, summary->from_s, summary->to_s);
        if (record->reason || end < summary->from_s || end >= summary->to_s) continue;
        ended++;
        if (record->usage.completion_tokens > 0) output += (double)record->usage.completion_tokens;
        if (record->usage.prompt_tokens > 0) input += (double)record->usage.prompt_tokens;
    }
    summary->ended = (double)ended / length;
    summary->output_rate = output / length;
    summary->input_rate = input / length;
    summary->token_rate = (input + output) / length;
    summary->in_flight = stays / length;
}
static void add_counts(struct load_summary *summary, const struct load_record *record) {
    const int64_t queued_ns = record->queued_ns > 0 ? record->queued_ns : 0;
    const double late_ms = ms_between(record->due_ns + queued_ns, record->start_ns);
    summary->due++;
    summary->failed += record->reason != NULL;
    summary->incomplete += !record->reason && !record->is_complete;
    summary->empty += record->is_empty;
    if (record->attempts <= 1) { /* a repeated attempt is late because of the first one */
        summary->late += late_ms > LOAD_LATE_MS;
        if (late_ms > summary->latest_ms) summary->latest_ms = late_ms;
    }
    summary->retried += record->attempts > 1;
    summary->new_connections += record->is_new_connection;
    if (record->usage.prompt_tokens > 0) summary->prompt_tokens += record->usage.prompt_tokens;
    if (record->usage.completion_tokens > 0) summary->output_tokens += record->usage.completion_tokens;
    if (record->usage.cached_tokens >= 0) {
        summary->cached_tokens += record->usage.cached_tokens;
        summary->cached_known++;
    }
}
/* Values in the order in which their requests were due. scratch NULL: percentiles without intervals; sorts `values`. */
static void add_spread(struct load_summary *summary, int which, double *values, size_t count, double *scratch) {
    double least = (double)NAN, most = (double)NAN;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    summary->latency_count[which] = (int64_t)count;
    summary->mean[which] = count ? vp_statistics_mean(values, count) : (double)NAN;
    summary->std[which] = count ? vp_statistics_std(values, count) : (double)NAN;
    summary->least[which] = least;
    summary->most[which] = most;
    if (!scratch && count) vp_sort_double(values, count);
    for (int p = 0; p < LOAD_PERCENTILES; p++) {
        vp_series_value *value = &summary->latency[which][p];
        value->value = value->low = value->high = value->correlation_time = (double)NAN;
        if (!count || !vp_statistics_percentile_supported(count, LOAD_PERCENTILE[p])) continue;
        if (scratch) vp_series_percentile(values, count, LOAD_PERCENTILE[p], 0.95, scratch, value);
        else value->value = vp_statistics_percentile(values, count, LOAD_PERCENTILE[p]);
    }
}
static void add_latencies(struct load_summary *summary, const struct load_record *const *chosen, size_t count,
                          double *values, double *scratch) {
    const int needs_first = has_first(chosen, count);
    for (int which = 0; which < LOAD_SPREADS; which++) {
        size_t known = 0;
        for (size_t i = 0; i < count; i++) {
            const double value = load_latency(chosen[i], which);
            if (isfinite(value) && (!needs_first || isfinite(load_latency(chosen[i], LOAD_TTFT))))
                values[known++] = value;
        }
        add_spread(summary, which, values, known, scratch);
    }
}
double *load_gaps(const struct load_record *const *chosen, size_t count, size_t *gap_count) {
    double *gaps;
    *gap_count = 0;
    for (size_t i = 0; i < count; i++) *gap_count += chosen[i]->reason ? 0 : chosen[i]->gap_count;
    gaps = resize(NULL, *gap_count + 1, sizeof *gaps);
    *gap_count = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < chosen[i]->gap_count && !chosen[i]->reason; k++)
            gaps[(*gap_count)++] = chosen[i]->gaps_us[k] / 1e3;
    return gaps;
}
static void add_gaps(struct load_summary *summary, const struct load_record *const *chosen, size_t count) {
    size_t gap_count;
    double *gaps = load_gaps(chosen, count, &gap_count);
    add_spread(summary, LOAD_ITL, gaps, gap_count, NULL);
    free(gaps);
}
static double median_e2e(const struct load_record *const *chosen, size_t from, size_t to, double *values) {
    size_t known = 0;
    for (size_t i = from; i < to; i++) {
        const double value = load_latency(chosen[i], LOAD_E2E);
        if (isfinite(value)) values[known++] = value;
    }
    qsort(values, known, sizeof *values, by_number);
    return known ? vp_statistics_percentile(values, known, 50) : (double)NAN;
}
static void add_accuracy(struct load_summary *summary, const struct load_record *const *chosen, size_t count,
                         double *values) {
    size_t known = 0, bytes;
    vp_bounded_interval interval;
    void *scratch;
    for (size_t i = 0; i < count; i++) if (isfinite(chosen[i]->accuracy)) values[known++] = chosen[i]->accuracy;
    summary->accuracy = estimate_none();
    summary->accuracy_count = (int64_t)known;
    if (!known) return;
    summary->accuracy.value = vp_statistics_mean(values, known);
    bytes = vp_bounded_scratch_bytes(known);
    scratch = resize(NULL, bytes, 1);
    if (vp_accuracy_interval(NULL, values, known, 0, 1, 0.95, scratch, bytes, &interval) == VP_OK) {
        summary->accuracy.low = interval.low;
        summary->accuracy.high = interval.high;
    }
    free(scratch);
}
static void add_goodput(struct load_summary *summary, const struct load_record *const *chosen, size_t count,
                        const vp_slo *slo, double *scratch) {
    uint8_t *flags = zeroed(count, 1);
    size_t judged = 0;
    vp_series_value right;
    for (size_t i = 0; i < count; i++)
        if (!chosen[i]->is_empty) flags[judged++] = (uint8_t)load_is_good(chosen[i], slo);
    if (vp_series_share(flags, judged, 0.95, scratch, &summary->good_share) == VP_OK) {
        const double rate = summary->offered * (double)judged / (double)count;
        summary->goodput = summary->good_share.value * rate;
        summary->goodput_low = summary->good_share.low * rate;
        summary->goodput_high = summary->good_share.high * rate;
    }
    judged = 0;
    for (size_t i = 0; i < count; i++)
        if (!chosen[i]->is_empty)
            flags[judged++] = load_is_good(chosen[i], slo) && chosen[i]->accuracy >= LOAD_RIGHT_SCORE;
    if (summary->accuracy_count && vp_series_share(flags, judged, 0.95, scratch, &right) == VP_OK) {
        const double rate = summary->offered * (double)judged / (double)count;
        summary->correct = right.value * rate;
        summary->correct_low = right.low * rate;
        summary->correct_high = right.high * rate;
    }
    free(flags);
}
struct load_summary load_summarize(const struct load_records *records, double from_s, double to_s, const vp_slo *slo) {
    const struct load_record **chosen
        = (const struct load_record **)resize(NULL, records->count + 1, sizeof *chosen);
    double *values = resize(NULL, records->count + 1, sizeof *values),
           *scratch = resize(NULL, 3 * records->count + 1, sizeof *scratch);
    size_t count = 0;
    struct load_summary summary = {.from_s = from_s, .to_s = to_s};
    summary.goodput = summary.goodput_low = summary.goodput_high = (double)NAN;
    summary.correct = summary.correct_low = summary.correct_high = (double)NAN;
    summary.good_share.value = summary.good_share.low = summary.good_share.high = (double)NAN;
    for (size_t i = 0; i < records->count; i++) {
        const double due_s = (double)records->items[i].due_ns / 1e9;
        if (due_s < from_s || due_s >= to_s) continue;
        chosen[count++] = &records->items[i];
        add_counts(&summary, &records->items[i]);
    }
    summary.offered = (double)count / (to_s - from_s);
    add_flow(&summary, records);
    add_latencies(&summary, chosen, count, values, scratch);
    add_gaps(&summary, chosen, count);
    summary.growth = median_e2e(chosen, count - count / 3, count, values) / median_e2e(chosen, 0, count / 3, values);
    add_accuracy(&summary, chosen, count, values);
    add_goodput(&summary, chosen, count, slo, scratch);
    FREE_ALL((void *)chosen, values, scratch);
    return summary;
}
int load_has_few_tokens(const struct load_summary *summary) {
    const int64_t answers = summary->latency_count[LOAD_TPOT];
    return answers > 0 && summary->output_tokens < TPOT_TOKENS_LEAST * answers;
}
int load_is_queue_growing(const struct load_summary *summary) {
    const double failed = (double)summary->failed / (summary->to_s - summary->from_s);
    const double missing = (summary->offered - summary->ended - failed) * (summary->to_s - summary->from_s);
    if (summary->due < 20 && !(missing >= FEW_MISSING && summary->growth > FEW_GROWTH)) return 0;
    return summary->ended + failed < 0.9 * summary->offered && summary->growth > 1.2;
}
int load_is_late(const struct load_summary *summary) {
    const double ttft_ms = summary->latency[LOAD_TTFT][LOAD_P50].value,
                 usual_ms = isfinite(ttft_ms) ? ttft_ms : summary->latency[LOAD_E2E][LOAD_P50].value;
    return summary->late * 100 > summary->due && !(summary->latest_ms <= LATE_SHARE * usual_ms);
}
vp_trial load_trial_of_accuracy(const vp_series_value *accuracy, double limit) {
    return isnan(limit) ? VP_TRIAL_HOLDS : vp_trial_of(accuracy, limit);
}

/* ---- failures */
static int is_counted(const struct load_record *record, double from_s, double to_s) {
    const double due_s = (double)record->due_ns / 1e9;
    return due_s >= from_s && due_s < to_s;
}
/* A reason without the place in front: "URL: " or "server: ". */
static const char *without_place(const char *reason) {
    const char *end = !strncmp(reason, "http", 4) || !strncmp(reason, "server", 6) ? strstr(reason, ": ") : NULL;
    return end ? end + 2 : reason;
}
/* Returns 1 if two reasons differ at most in a number of ms, such as "Failed to connect after 3 ms". */
static int is_same_reason(const char *left, const char *right) {
    while (*left || *right) {
        const size_t digits[2] = {strspn(left, "0123456789"), strspn(right, "0123456789")};
        if (digits[0] && digits[1] && !strncmp(left + digits[0], " ms", 3) && !strncmp(right + digits[1], " ms", 3)) {
            left += digits[0];
            right += digits[1];
        }
        if (*left++ != *right++) return 0;
    }
    return 1;
}
struct reason { const char *text; size_t count; };
static int by_count(const void *left_item, const void *right_item) {
    const struct reason *left = left_item, *right = right_item;
    return left->count != right->count ? left->count < right->count ? 1 : -1 : strcmp(left->text, right->text);
}
char *load_failures_text(const struct load_records *records, double from_s, double to_s) {
    struct reason *reasons = NULL;
    struct text_buffer out = {NULL, 0, 0};
    size_t kinds = 0, failed = 0, due = 0;
    double first_s = HUGE_VAL;
    for (size_t i = 0; i < records->count; i++) {
        const struct load_record *record = &records->items[i];
        size_t kind = 0;
        if (!is_counted(record, from_s, to_s)) continue;
        due++;
        if (!record->reason) continue;
        failed++;
        first_s = fmin(first_s, (double)(record->end_ns >= 0 ? record->end_ns : record->due_ns) / 1e9);
        while (kind < kinds && !is_same_reason(reasons[kind].text, without_place(record->reason))) kind++;
        if (kind == kinds) {
            reasons = resize(reasons, ++kinds, sizeof *reasons);
            reasons[kind] = (struct reason){without_place(record->reason), 0};
        }
        reasons[kind].count++;
    }
    if (failed) {
        qsort(reasons, kinds, sizeof *reasons, by_count);
        text_add_format(&out, "%zu of %zu requests failed, the first at %.1f s: ", failed, due, first_s);
        for (size_t i = 0; i < kinds && i < REASONS_SHOWN; i++)
            text_add_format(&out, "%s%.160s (%zu)", i ? "; " : "", reasons[i].text, reasons[i].count);
        if (kinds > REASONS_SHOWN) text_add_format(&out, "; %zu other reasons", kinds - REASONS_SHOWN);
    }
    free(reasons);
    return out.data;
}

/* ---- silence */
enum { EVENT_PIECE, EVENT_END, EVENT_FAILED, EVENT_START };
struct event { int64_t at_ns; int what; };
static int by_time(const void *left_item, const void *right_item) {
    const struct event *left = left_item, *right = right_item;
    return left->at_ns != right->at_ns ? left->at_ns < right->at_ns ? -1 : 1 : left->what - right->what;
}
static size_t events_of(const struct load_records *records, struct event **events) {
    size_t count = 0, most = 0;
    for (size_t i = 0; i < records->count; i++) most += 3 + records->items[i].gap_count;
    *events = resize(NULL, most + 1, sizeof **events);
    for (size_t i = 0; i < records->count; i++) {
        const struct load_record *record = &records->items[i];
        int64_t at_ns = record->first_ns;
        if (record->start_ns < 0 || record->end_ns < 0) continue;
        (*events)[count++] = (struct event){record->start_ns, EVENT_START};
        if (at_ns >= 0) (*events)[count++] = (struct event){at_ns, EVENT_PIECE};
        for (size_t k = 0; at_ns >= 0 && k < record->gap_count; k++) {
            at_ns += (int64_t)record->gaps_us[k] * 1000;
            (*events)[count++] = (struct event){at_ns, EVENT_PIECE};
        }
        (*events)[count++] = (struct event){record->end_ns, record->reason ? EVENT_FAILED : EVENT_END};
    }
    qsort(*events, count, sizeof **events, by_time);
    return count;
}
/* The lower quartile of TTFT from sending, in s; NaN if no request has a TTFT. */
static double usual_wait_s(const struct load_records *records) {
    double *values = resize(NULL, records->count + 1, sizeof *values), wait = (double)NAN;
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++) {
        const double value = load_latency(&records->items[i], LOAD_TTFT_SENT);
        if (isfinite(value)) values[count++] = value / 1e3;
    }
    vp_sort_double(values, count);
    if (count) wait = vp_statistics_percentile(values, count, 25);
    free(values);
    return wait;
}
char *load_silence_text(const struct load_records *records, double from_s, double to_s) {
    struct text_buffer out = {NULL, 0, 0};
    struct event *events;
    const size_t count = events_of(records, &events);
    const double usual_s = usual_wait_s(records);
    double longest_s = 0, begin_s = 0;
    size_t in_flight = 0, waiting = 0;
    int64_t quiet_ns = 0; /* since the last piece, or since a request was sent to an idle server */
    for (size_t i = 0; i < count; i++) {
        const double since_s = (double)quiet_ns / 1e9, now_s = (double)events[i].at_ns / 1e9;
        if (events[i].what == EVENT_START) {
            if (!in_flight++) quiet_ns = events[i].at_ns;
            continue;
        }
        if (now_s - since_s > longest_s && in_flight && since_s < to_s && now_s > from_s) {
            longest_s = now_s - since_s;
            begin_s = since_s;
            waiting = in_flight;
        }
        if (events[i].what != EVENT_FAILED) quiet_ns = events[i].at_ns; /* a time limit may have ended it */
        in_flight -= events[i].what != EVENT_PIECE;
    }
    if (longest_s > SILENCE_LEAST_S && longest_s > SILENCE_TIMES_TTFT * usual_s)
        text_add_format(&out, "no request received a piece for %.1f s, from %.1f s to %.1f s of the trial; by "
                              "then %zu %s waiting", longest_s, begin_s, begin_s + longest_s, waiting,
                        waiting == 1 ? "request was" : "requests were");
    free(events);
    return out.data;
}
