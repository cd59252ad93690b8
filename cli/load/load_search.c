/* load_search.c: the search for the highest rate that meets an objective. It first doubles or halves the rate in short
 * trials until the answer is between two of them, then halves their distance. When three trials are near the answer,
 * the next trials are on both sides of it, each longer than the previous one, until all together bound it tightly
 * enough. */
#include "load/load_search.h"

#include "base/document.h"
#include "base/json.h"
#include "load/load_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* For a trial near the answer: duration as a fraction of the time counted there, and distance from the answer. */
static const double GROWTH = 0.35, STEP_LEAST = 0.03, STEP_MOST = 0.12;
static const double FALL_MOST = 1024, RATE_MOST = 1e5;
static const double UNDECIDED_Z2 = 1.64;
enum { EXTENSIONS = 4, ALONE_MIN = 8, REQUESTS_LEAST = 5 };

vp_result load_search_begin(struct load_search *search, double first, double precision) {
    if (!(first > 0 && first <= 1e6) || !(precision >= 0.01 && precision <= 1)) return VP_ERR_RANGE;
    search->end = LOAD_SEARCHES;
    search->precision = precision;
    search->least = first / FALL_MOST;
    search->most = fmax(RATE_MOST, first);
    search->next = first;
    search->next_s = search->duration_s;
    search->answer = (struct load_answer){0, HUGE_VAL, 0, HUGE_VAL, (double)NAN, (double)NAN, 0, 0};
    return VP_OK;
}
void load_search_free(struct load_search *search) {
    free(search->trials);
    search->trials = NULL;
    search->trial_count = 0;
}
double load_search_first_duration(double budget_s) { return fmin(60, budget_s / 15); }
uint32_t load_search_seed(uint32_t seed, double rate) {
    const uint64_t hash = hash_bytes(hash_number(HASH_START, seed), &rate, sizeof rate);
    return (uint32_t)(hash ^ hash >> 32);
}

/* ---- evidence from a trial's requests */
static int by_due(const void *left_item, const void *right_item) {
    const struct load_record *const *left = left_item, *const *right = right_item;
    return (*left)->due_ns < (*right)->due_ns ? -1 : (*left)->due_ns > (*right)->due_ns;
}
/* Returns 1 if no other request was in flight during this one. latest_ns: the latest end of earlier requests. */
static int is_alone(const struct load_record *const *chosen, size_t count, size_t which, int64_t latest_ns) {
    const struct load_record *record = chosen[which];
    return record->start_ns > latest_ns && (which + 1 == count || chosen[which + 1]->start_ns > record->end_ns);
}
/* The upper end of a share's 99.9 % interval; *low is the lower end. */
static double high_of(uint64_t some, uint64_t all, double *low) {
    double high = 1;
    *low = 0;
    vp_rate_interval(some, all, 0.999, low, &high);
    return high;
}
/* Returns 1 if even requests that had the server to themselves miss the objective. */
static int do_alone_miss(struct load_search *search, const struct load_record *const *chosen, size_t count) {
    int64_t latest_ns = -1;
    double low;
    for (size_t i = 0; i < count; i++) {
        if (is_alone(chosen, count, i, latest_ns)) {
            search->alone++;
            search->alone_good += (uint64_t)load_is_good(chosen[i], &search->slo);
        }
        if (chosen[i]->end_ns > latest_ns) latest_ns = chosen[i]->end_ns;
    }
    return search->alone >= ALONE_MIN && high_of(search->alone_good, search->alone, &low) < search->share;
}
void load_search_check(struct load_search *search, const struct load_records *records, double from_s, double to_s) {
    const struct load_record **chosen = (const struct load_record **)resize(NULL, records->count + 1, sizeof *chosen);
    size_t count = 0, empty = 0;
    double low;
    for (size_t i = 0; i < records->count; i++) {
        const double due_s = (double)records->items[i].due_ns / 1e9;
        if (due_s < from_s || due_s >= to_s) continue;
        if (records->items[i].is_empty) empty++; else chosen[count++] = &records->items[i];
    }
    if (count) qsort((void *)chosen, count, sizeof *chosen, by_due);
    search->judged = count + empty;
    search->empty = empty;
    high_of(empty, search->judged, &low);
    if (search->judged && low > 1 - search->share) search->end = LOAD_EMPTY;
    else if (do_alone_miss(search, chosen, count)) search->end = LOAD_ALONE;
    free((void *)chosen);
}
void load_search_check_unloaded(struct load_search *search, const struct load_summary *summary) {
    const struct load_point point = load_point_of(summary, 0, search->slo.accuracy);
    search->accuracy = (vp_series_value){summary->accuracy.value, summary->accuracy.low, summary->accuracy.high,
                                         (double)NAN};
    if (point.accuracy != VP_TRIAL_FAILS) return;
    search->end = LOAD_WRONG;
    search->next = (double)NAN;
}

/* ---- from trial to trial */
const char *load_search_time(double seconds, char out[32]) {
    if (seconds < 600) snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 7200) snprintf(out, 32, "%.0f minutes", seconds / 60);
    else snprintf(out, 32, "%.3g hours", seconds / 3600);
    return out;
}
static double left_s(const struct load_search *search) { return search->budget_s - search->spent_s - search->drain_s; }
double load_search_longer(const struct load_search *search, const struct load_summary *summary, double duration_s) {
    const struct load_point point = load_point_of(summary, summary->offered, search->slo.accuracy);
    const double miss = point.good - search->share,
                 z2 = point.independent * miss * miss / (search->share * (1 - search->share));
    if (duration_s > search->duration_s * EXTENSIONS * 0.6 || search->end != LOAD_SEARCHES
        || 2 * duration_s > left_s(search) / 2)
        return duration_s;
    if (!(point.good >= 0)) return 2 * duration_s; /* nothing was counted */
    if (point.accuracy == VP_TRIAL_UNDECIDED) return 2 * duration_s;
    return point.good < 1 && z2 < UNDECIDED_Z2 ? 2 * duration_s : duration_s;
}
int load_search_is_precise(const struct load_search *search) {
    const struct load_answer *answer = &search->answer;
    return answer->low > 0 && answer->high / answer->low <= (1 + search->precision) * (1 + 1e-9);
}
/* The counted seconds of the trials near the answer. */
static double counted_s(const struct load_search *search) {
    const double at = search->answer.fitted;
    double sum = 0;
    for (size_t i = 0; i < search->trial_count; i++)
        if (fabs(log(search->trials[i].realised / at)) <= 0.25) sum += search->trials[i].window_s;
    return sum;
}
double load_search_forecast(const struct load_search *search) {
    const struct load_answer *answer = &search->answer;
    if (!(answer->low > 0 && answer->high < HUGE_VAL) || isnan(answer->fitted)) return (double)NAN;
    const double wide = log(answer->high / answer->low) / log(1 + search->precision);
    const double outside = 1 + (search->ramp_s + search->cool_down_s) / (4 * search->duration_s);
    return fmax(0, counted_s(search) * (wide * wide - 1)) * outside;
}
/* A rate of four digits that no trial has used yet, because the rate determines the seed and the file name. */
static double new_rate(const struct load_search *search, double rate) {
    double unit = pow(10, floor(log10(rate)) - 3), rounded = floor(rate / unit + 0.5) * unit;
    char text[40];
    for (size_t i = 0; i < search->trial_count; i++)
        if (fabs(search->trials[i].rate / rounded - 1) < 1e-7) { rounded += unit; i = (size_t)-1; }
    snprintf(text, sizeof text, "%.6g", rounded);
    return strtod(text, NULL);
}
static double next_rate(const struct load_search *search) {
    const struct load_answer *answer = &search->answer;
    double least = HUGE_VAL, most = 0;
    for (size_t i = 0; i < search->trial_count; i++) {
        least = fmin(least, search->trials[i].rate);
        most = fmax(most, search->trials[i].rate);
    }
    if (answer->likely_low <= 0) return least > search->least * 1.001 ? fmax(search->least, least / 2) : (double)NAN;
    if (answer->likely_high >= HUGE_VAL)
        return most < search->most * 0.999 ? fmin(search->most, 2 * most) : (double)NAN;
    if (answer->is_by_accuracy && answer->low > 0) { /* a trial between the bounds may stay undecided: try elsewhere */
        static const double places[] = {0.5, 0.25, 0.75};
        return new_rate(search, answer->low * pow(answer->high / answer->low, places[search->trial_count % 3]));
    }
    if (isnan(answer->fitted)) {
        const double ratio = answer->likely_high / answer->likely_low, middle = answer->likely_low * sqrt(ratio);
        return new_rate(search, ratio > 1.05 ? middle : search->trial_count % 2 ? middle * 1.06 : middle / 1.06);
    }
    const double wide = answer->low > 0 && answer->high < HUGE_VAL ? log(answer->high / answer->low) / 2 : STEP_MOST;
    const double step = fmin(STEP_MOST, fmax(STEP_LEAST, wide));
    return new_rate(search, answer->fitted * exp(answer->weight > 0 ? -step : step));
}
/* The next trial's duration; 0 if it does not fit into the budget. */
static double next_duration(const struct load_search *search) {
    const double outside = search->ramp_s + search->cool_down_s, left = left_s(search);
    double wanted = fmax(search->duration_s, outside + REQUESTS_LEAST / search->next);
    if (!isnan(search->answer.fitted)) {
        const double more = load_search_forecast(search), grown = GROWTH * counted_s(search) + outside;
        wanted = fmax(wanted, isnan(more) ? grown : fmin(grown, 1.1 * more + outside));
    }
    if (left < outside + fmax(0.4 * (search->duration_s - outside), REQUESTS_LEAST / search->next)) return 0;
    return left - wanted < search->duration_s ? fmin(left, 1.5 * wanted) : wanted;
}
void load_search_take(struct load_search *search, const struct load_summary *summary, double rate, double duration_s,
                      int is_hopeless, double elapsed_s) {
    struct load_trial *trial;
    struct load_point *points;
    search->trials = resize(search->trials, search->trial_count + 1, sizeof *search->trials);
    trial = &search->trials[search->trial_count++];
    trial->rate = rate;
    trial->realised = summary->offered;
    trial->duration_s = duration_s;
    trial->window_s = summary->to_s - summary->from_s;
    trial->good = summary->good_share;
    trial->accuracy = (vp_series_value){summary->accuracy.value, summary->accuracy.low, summary->accuracy.high,
                                        (double)NAN};
    trial->point = load_point_of(summary, summary->offered, search->slo.accuracy);
    trial->is_hopeless = is_hopeless;
    search->spent_s += elapsed_s;
    if (summary->latency_count[LOAD_E2E] && !is_hopeless) search->drain_s = 0.2 + summary->most[LOAD_E2E] / 1e3;
    points = resize(NULL, search->trial_count, sizeof *points);
    for (size_t i = 0; i < search->trial_count; i++) points[i] = search->trials[i].point;
    load_answer_of(points, search->trial_count, search->share, &search->answer);
    free(points);
    if (search->end == LOAD_SEARCHES) {
        if (load_search_is_precise(search)) search->end = LOAD_FOUND;
        else if (isnan(search->next = next_rate(search)))
            search->end = search->answer.likely_low > 0 ? LOAD_ALL_HOLD : LOAD_NONE_HOLDS;
        else if ((search->next_s = next_duration(search)) <= 0) search->end = LOAD_BUDGET;
    }
    if (search->end != LOAD_SEARCHES) search->next = search->next_s = (double)NAN;
}

/* ---- the result */
/* Adds the likely answer if the trials do not bound it. */
static void add_likely(const struct load_answer *answer, struct text_buffer *out) {
    if (!isnan(answer->fitted)) text_add_format(out, "most likely it is %.4g", answer->fitted);
    else if (answer->likely_low > 0 && answer->likely_high < HUGE_VAL)
        text_add_format(out, "most likely it is between %.4g and %.4g", answer->likely_low, answer->likely_high);
    else if (answer->likely_low > 0) text_add_format(out, "most likely it is above %.4g", answer->likely_low);
    else if (answer->likely_high < HUGE_VAL) text_add_format(out, "most likely it is below %.4g", answer->likely_high);
    else text_add_string(out, "the trials do not determine it");
}
static void add_answer(const struct load_search *search, struct text_buffer *out) {
    const struct load_answer *answer = &search->answer;
    const double percent = 100 * search->share;
    char right[60] = "";
    if (isfinite(search->slo.accuracy))
        snprintf(right, sizeof right, ", and the accuracy is at least %g,", search->slo.accuracy);
    if (answer->low > 0 && answer->high < HUGE_VAL) {
        text_add_format(out, "%g %% of the requests are good%s up to %.4g requests per second, but not at %.4g "
                             "(95 %% interval of the highest rate, %.3g %% wide)", percent, right, answer->low,
                        answer->high, 100 * (answer->high / answer->low - 1));
        if (isnan(answer->fitted)) return;
        text_add_string(out, "; ");
        add_likely(answer, out);
    } else if (search->end == LOAD_ALL_HOLD)
        text_add_format(out, "at least %g %% of the requests are good%s at every rate tried, up to %.4g requests per "
                             "second", percent, right, answer->likely_low);
    else if (search->end == LOAD_NONE_HOLDS)
        text_add_format(out, "no rate met the objective: at %.4g requests per second fewer than %g %% were good",
                        answer->likely_high, percent);
    else {
        if (answer->low > 0)
            text_add_format(out, "%g %% of the requests are good%s up to %.4g requests per second; the highest rate "
                                 "is not decided: ", percent, right, answer->low);
        else if (answer->high < HUGE_VAL)
            text_add_format(out, "fewer than %g %% of the requests are good%s at %.4g requests per second; the "
                                 "highest rate with that share is not decided: ", percent, right, answer->high);
        else
            text_add_format(out, "the highest rate at which %g %% of the requests are good%s is not decided: ",
                            percent, right);
        add_likely(answer, out);
    }
}
/* Why the interval is wider than it should be, and what would help. */
static void add_miss(const struct load_search *search, struct text_buffer *out) {
    const double more_s = load_search_forecast(search);
    if (search->end != LOAD_BUDGET) return;
    text_add_format(out, "; --rate_precision %.3g was not reached within --budget_s %g", 100 * search->precision,
                    search->budget_s);
    if (more_s > 0) {
        char text[32];
        text_add_format(out, ": about %s more would be needed", load_search_time(more_s, text));
    }
}
void load_search_words(const struct load_search *search, struct text_buffer *out) {
    if (search->end == LOAD_EMPTY)
        text_add_format(out, "the search was stopped: %zu of %zu answers are empty, and a lower rate does not change "
                             "that; check --max_new_tokens and the model's answers", search->empty,
                        search->judged);
    else if (search->end == LOAD_ALONE)
        text_add_format(out, "no rate can meet the objective: only %llu of %llu requests that ran alone were good, "
                             "but %g %% are required, so a lower rate does not help; use a looser --slo",
                        (unsigned long long)search->alone_good, (unsigned long long)search->alone,
                        100 * search->share);
    else if (search->end == LOAD_WRONG)
        text_add_format(out, "no rate can meet the objective: one request at a time has an accuracy of %s, --slo "
                             "requires %g, and a lower rate does not help",
                        number_measured(search->accuracy.value, search->accuracy.low, search->accuracy.high).text,
                        search->slo.accuracy);
    else add_answer(search, out);
    text_add_format(out, "; %zu trial%s in %.4g s", search->trial_count, plural_s((int64_t)search->trial_count),
                    search->spent_s);
    add_miss(search, out);
}
static const char *const END_NAMES[] = {"searching", "found", "all rates hold", "no rate holds", "budget",
                                        "empty answers", "misses without load", "wrong without load"};
void load_search_put(vp_json_writer *writer, const struct load_search *search) {
    const struct load_answer *answer = &search->answer;
    const double more_s = load_search_forecast(search);
    PUT(writer, KEY("ended_by", END_NAMES[search->end]),
        KEY("highest_that_holds", answer->low > 0 ? answer->low : (double)NAN), KEY("lowest_that_fails", answer->high),
        KEY("most_likely", answer->fitted), KEY("slo_share", search->share),
        KEY("rate_precision", search->precision), KEY_BOOL("is_precise", load_search_is_precise(search)),
        KEY("budget_s", search->budget_s), KEY("spent_s", search->spent_s),
        KEY("more_needed_s", search->end == LOAD_BUDGET ? more_s : (double)NAN),
        KEY("trials", (int64_t)search->trial_count), KEY_ARRAY("tried"));
    for (size_t i = 0; i < search->trial_count; i++) {
        const struct load_trial *trial = &search->trials[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("request_rate", trial->rate), KEY("realised_rate", trial->realised),
            KEY("duration_s", trial->duration_s), KEY("good_share", trial->good.value),
            KEY_RANGE("good_share_interval", trial->good.low, trial->good.high),
            KEY_BOOL("ended_early", trial->is_hopeless),
            KEY("verdict", LOAD_VERDICTS[load_answer_at(answer, &trial->point)]));
        if (isfinite(search->slo.accuracy)) PUT(writer, KEY_ESTIMATE("accuracy", "accuracy_interval", trial->accuracy));
        PUT(writer, END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
