/* load_search.c: the search for the highest rate that meets an objective. */
#include "load/load_search.h"

#include "base/document.h"
#include "base/json.h"
#include "load/load_stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A trial is judged after its first duration and after each doubling. The level of each look was chosen by 40 simulated
 * searches of each queue in test_load_search.c: at 99 %, 12.5 % of those of M/D/1 misjudged a rate; at 99.9 %, none
 * did. Of 200 searches of each queue, 198 or more contained the right rate, and all were at most 10 % wide. */
static const double LOOK_LEVEL = 0.999, Z_OF_LOOK = 3.290527;
enum { DOUBLINGS_MAX = 10, ALONE_MIN = 20 };

vp_result load_search_begin(struct load_search *search, double first, double precision) {
    search->end = LOAD_SEARCHES;
    return vp_rate_search_begin(first, fmin(1e-3, first), fmax(1e5, first), precision, &search->rates);
}
void load_search_free(struct load_search *search) {
    free(search->trials);
    search->trials = NULL;
    search->trial_count = 0;
}
uint32_t load_search_seed(uint32_t seed, double rate) {
    const uint64_t hash = hash_bytes(hash_number(HASH_START, seed), &rate, sizeof rate);
    return (uint32_t)(hash ^ hash >> 32);
}
/* Wilson's interval of n good requests begins at n / (n + z^2). */
static double duration_at(const struct load_search *search, double rate) {
    const double needed = Z_OF_LOOK * Z_OF_LOOK * search->share / (1 - search->share);
    return fmax(search->duration_s, search->ramp_s + search->cool_down_s + 1.5 * needed / rate);
}
double load_search_duration(const struct load_search *search) { return duration_at(search, search->rates.next); }

/* ---- what a trial's requests say */
static int by_due(const void *left_item, const void *right_item) {
    const struct load_record *const *left = left_item, *const *right = right_item;
    return (*left)->due_ns < (*right)->due_ns ? -1 : (*left)->due_ns > (*right)->due_ns;
}
/* Returns 1 if no other request was in flight with this one. latest_ns: the latest end of those due before. */
static int is_alone(const struct load_record *const *chosen, size_t count, size_t which, int64_t latest_ns) {
    const struct load_record *record = chosen[which];
    return record->start_ns > latest_ns && (which + 1 == count || chosen[which + 1]->start_ns > record->end_ns);
}
/* Returns 1 if requests that had the server to themselves miss the objective. */
static int do_alone_miss(struct load_search *search, const struct load_record *const *chosen, size_t count) {
    int64_t latest_ns = -1;
    uint64_t good = 0, alone = 0;
    double low, high;
    for (size_t i = 0; i < count; i++) {
        if (is_alone(chosen, count, i, latest_ns)) {
            alone++;
            good += (uint64_t)load_is_good(chosen[i], &search->slo);
        }
        if (chosen[i]->end_ns > latest_ns) latest_ns = chosen[i]->end_ns;
    }
    search->alone = (size_t)alone;
    return alone >= ALONE_MIN && vp_rate_interval(good, alone, LOOK_LEVEL, &low, &high) == VP_OK
           && high < search->share;
}
/* The share of good requests at the level of a look. Bad requests come in clumps, and a short trial may have seen no
 * clump: the lower end therefore allows for the correlation time of the latencies too. The upper end does not: where a
 * queue grows, all latencies depend on one another, and all requests are bad. */
static int has_share(const struct load_search *search, const struct load_record *const *chosen, size_t count,
                     vp_series_value *share) {
    uint8_t *flags = zeroed(count + 1, 1);
    double *values = resize(NULL, count + 1, sizeof *values), *scratch = resize(NULL, 3 * count + 1, sizeof *scratch);
    vp_series_value median;
    size_t known = 0, independent;
    int good;
    for (size_t i = 0; i < count; i++) {
        const double latency = load_latency(chosen[i], LOAD_E2E);
        flags[i] = (uint8_t)load_is_good(chosen[i], &search->slo);
        if (isfinite(latency)) values[known++] = latency;
    }
    good = count && vp_series_share(flags, count, LOOK_LEVEL, scratch, share) == VP_OK;
    if (good && known && vp_series_percentile(values, known, 50, LOOK_LEVEL, scratch, &median) == VP_OK
        && median.correlation_time > share->correlation_time) {
        double high;
        independent = (size_t)fmax(1, (double)count / median.correlation_time);
        good = vp_rate_interval((uint64_t)(share->value * (double)independent + 0.5), independent, LOOK_LEVEL,
                                &share->low, &high) == VP_OK;
    }
    free(flags);
    free(values);
    free(scratch);
    return good;
}
/* The accuracy of these requests at the level of a look, and whether it meets the objective. */
static vp_trial judge_accuracy(struct load_search *search, const struct load_record *const *chosen, size_t count) {
    const size_t bytes = vp_bounded_scratch_bytes(count + 1);
    double *scores = resize(NULL, count + 1, sizeof *scores);
    void *scratch = resize(NULL, bytes, 1);
    vp_bounded_interval interval;
    size_t known = 0;
    search->accuracy = (vp_series_value){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    for (size_t i = 0; i < count; i++) if (isfinite(chosen[i]->accuracy)) scores[known++] = chosen[i]->accuracy;
    if (known && vp_accuracy_interval(NULL, scores, known, 0, 1, LOOK_LEVEL, scratch, bytes, &interval) == VP_OK)
        search->accuracy = (vp_series_value){interval.mean, interval.low, interval.high, (double)NAN};
    free(scores);
    free(scratch);
    return load_trial_of_accuracy(&search->accuracy, search->slo.accuracy);
}
/* The requests within the window that were answered with a text or failed, by due time. *empty: how many others. */
static const struct load_record **choose(const struct load_search *search, const struct load_records *records,
                                         double until_s, size_t *count, size_t *empty) {
    const struct load_record **chosen
        = (const struct load_record **)resize(NULL, records->count + 1, sizeof *chosen);
    *count = *empty = 0;
    for (size_t i = 0; i < records->count; i++) {
        const double due_s = (double)records->items[i].due_ns / 1e9;
        if (due_s < search->ramp_s || due_s >= until_s) continue;
        if (records->items[i].is_empty) ++*empty; else chosen[(*count)++] = &records->items[i];
    }
    qsort((void *)chosen, *count, sizeof *chosen, by_due);
    return chosen;
}
void load_search_judge_unloaded(struct load_search *search, const struct load_records *records, double until_s) {
    size_t count, empty;
    const struct load_record **chosen = choose(search, records, until_s, &count, &empty);
    if (judge_accuracy(search, chosen, count) == VP_TRIAL_FAILS) {
        search->end = LOAD_WRONG;
        search->rates.next = (double)NAN;
    }
    free((void *)chosen);
}
vp_trial load_search_judge(struct load_search *search, const struct load_records *records, double until_s) {
    vp_series_value share;
    vp_trial verdict = VP_TRIAL_UNDECIDED;
    size_t count, empty;
    const struct load_record **chosen = choose(search, records, until_s, &count, &empty);
    if (has_share(search, chosen, count, &share)) verdict = vp_trial_of(&share, search->share);
    search->judged = count + empty;
    search->empty = empty;
    if ((double)empty > (1 - search->share) * (double)search->judged) search->end = LOAD_EMPTY;
    else if (verdict == VP_TRIAL_FAILS && do_alone_miss(search, chosen, count)) search->end = LOAD_ALONE;
    verdict = load_both(verdict, judge_accuracy(search, chosen, count));
    free((void *)chosen);
    return verdict;
}
double load_search_longer(const struct load_search *search, double duration_s) {
    const double first_s = load_search_duration(search), left_s = search->budget_s - search->spent_s;
    if (duration_s >= first_s * (1 << DOUBLINGS_MAX) * 0.99 || search->end != LOAD_SEARCHES) return duration_s;
    /* a trial that takes more than half of the rest would leave no time for its neighbours */
    return 2 * duration_s <= fmax(left_s / 2, first_s) ? 2 * duration_s : duration_s;
}

/* ---- from trial to trial */
void load_search_take(struct load_search *search, const struct load_trial *trial, double elapsed_s) {
    vp_rate_search *rates = &search->rates;
    search->trials = resize(search->trials, search->trial_count + 1, sizeof *search->trials);
    search->trials[search->trial_count++] = *trial;
    search->spent_s += elapsed_s;
    vp_rate_search_take(rates, trial->verdict);
    if (search->end == LOAD_SEARCHES) {
        if (!isnan(rates->next)) {
            if (search->spent_s + load_search_duration(search) > search->budget_s) search->end = LOAD_BUDGET;
        } else if (rates->low > 0 && rates->high < HUGE_VAL) search->end = LOAD_FOUND;
        else if (!isnan(rates->open_low)) search->end = LOAD_OPEN;
        else search->end = rates->low > 0 ? LOAD_ALL_HOLD : LOAD_NONE_HOLDS;
    }
    if (search->end != LOAD_SEARCHES) rates->next = (double)NAN;
}
/* As if the right rate were somewhat above the first one: doublings, then halvings of the interval. */
double load_search_forecast(const struct load_search *search, int *trials) {
    const double first = search->rates.next;
    const int narrowing = (int)ceil(log2(log(2) / log(1 + search->rates.precision)));
    const double seconds = duration_at(search, first) + (2 + fmax(0, narrowing)) * duration_at(search, 2 * first);
    if (trials) *trials = 3 + (narrowing > 0 ? narrowing : 0);
    return fmin(seconds, search->budget_s);
}
int load_search_is_precise(const struct load_search *search) {
    const vp_rate_search *rates = &search->rates;
    return rates->low > 0 && rates->high / rates->low <= (1 + rates->precision) * (1 + 1e-9);
}

/* ---- the result */
/* The rate at which requests were due in the longest trial at a rate. */
static double realised_of(const struct load_search *search, double rate) {
    const struct load_trial *longest = NULL;
    for (size_t i = 0; i < search->trial_count; i++) {
        const struct load_trial *trial = &search->trials[i];
        if (trial->rate >= rate && trial->rate <= rate && (!longest || trial->duration_s > longest->duration_s))
            longest = trial;
    }
    return longest ? longest->realised : (double)NAN;
}
void load_search_words(const struct load_search *search, struct text_buffer *out) {
    const vp_rate_search *rates = &search->rates;
    const double percent = 100 * search->share;
    char text[400] = "", right[60] = "";
    if (isfinite(search->slo.accuracy))
        snprintf(right, sizeof right, ", and the accuracy is at least %g,", search->slo.accuracy);
    if (search->end == LOAD_EMPTY)
        snprintf(text, sizeof text, "no rate was searched for: %zu of %zu answers are empty, and a lower rate does not "
                                    "change that; look at --max_new_tokens and at what the model answers",
                 search->empty, search->judged);
    else if (search->end == LOAD_ALONE)
        snprintf(text, sizeof text, "no rate can meet the objective: fewer than %g %% of the %zu requests that met "
                                    "no other request were good, so a lower rate does not help; use a looser --slo",
                 percent, search->alone);
    else if (search->end == LOAD_WRONG)
        snprintf(text, sizeof text, "no rate can meet the objective: one request at a time has an accuracy of %s, "
                                    "--slo asks for %g, and a lower rate does not help",
                 number_measured(search->accuracy.value, search->accuracy.low, search->accuracy.high).text,
                 search->slo.accuracy);
    else if (rates->low > 0 && rates->high < HUGE_VAL)
        snprintf(text, sizeof text, "%g %% of the requests are good%s up to %.4g requests per second (%.4g were "
                                    "due), and no longer at %.4g (%.4g were due)", percent, right, rates->low,
                 realised_of(search, rates->low), rates->high, realised_of(search, rates->high));
    else if (rates->low > 0)
        snprintf(text, sizeof text, "%g %% of the requests are good%s at every rate that was tried, up to %.4g per "
                                    "second (%.4g were due)", percent, right, rates->low,
                 realised_of(search, rates->low));
    else if (rates->high < HUGE_VAL)
        snprintf(text, sizeof text, "no rate met the objective: at %.4g requests per second fewer than %g %% were "
                                    "good", rates->high, percent);
    else snprintf(text, sizeof text, "no trial was long enough to decide: use a larger --budget_s");
    text_add_string(out, text);
    snprintf(text, sizeof text, "; %zu trial%s in %.4g s", search->trial_count, plural_s((int64_t)search->trial_count),
             search->spent_s);
    text_add_string(out, text);
    if (rates->low > 0 && rates->high < HUGE_VAL && !load_search_is_precise(search)) {
        snprintf(text, sizeof text, "; the two rates are %.3g %% apart, --rate_precision was %.3g: %s",
                 100 * (rates->high / rates->low - 1), 100 * rates->precision,
                 search->end == LOAD_BUDGET ? "--budget_s ended first" : "the rates between could not be decided");
        text_add_string(out, text);
    } else if (search->end == LOAD_BUDGET) text_add_string(out, "; --budget_s ended first");
}
static const char *const END_NAMES[] = {"searching", "found", "all rates hold", "no rate holds", "undecided", "budget",
                                        "empty answers", "misses without load", "wrong without load"};
static const char *const VERDICTS[] = {"holds", "fails", "undecided"};
void load_search_put(vp_json_writer *writer, const struct load_search *search) {
    const vp_rate_search *rates = &search->rates;
    PUT(writer, KEY("ended_by", END_NAMES[search->end]),
        KEY("highest_that_holds", rates->low > 0 ? rates->low : (double)NAN),
        KEY("highest_that_holds_realised", realised_of(search, rates->low)), KEY("lowest_that_fails", rates->high),
        KEY("lowest_that_fails_realised", realised_of(search, rates->high)), KEY("slo_share", search->share),
        KEY("rate_precision", rates->precision), KEY_BOOL("is_precise", load_search_is_precise(search)),
        KEY("budget_s", search->budget_s), KEY("spent_s", search->spent_s),
        KEY("trials", (int64_t)search->trial_count), KEY_ARRAY("tried"));
    for (size_t i = 0; i < search->trial_count; i++) {
        const struct load_trial *trial = &search->trials[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("request_rate", trial->rate), KEY("realised_rate", trial->realised),
            KEY("duration_s", trial->duration_s), KEY("good_share", trial->good.value),
            KEY_RANGE("good_share_interval", trial->good.low, trial->good.high),
            KEY("verdict", VERDICTS[trial->verdict]));
        if (isfinite(search->slo.accuracy)) PUT(writer, KEY_ESTIMATE("accuracy", "accuracy_interval", trial->accuracy));
        PUT(writer, END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
