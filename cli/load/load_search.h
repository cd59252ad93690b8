/* load_search.h: the search for the highest rate that meets an objective: which trials, how long, and what they say.
 * Records of trials come in; rates, durations and a result come out. It sends nothing and reads no clock. */
#ifndef VLMPROF_CLI_LOAD_SEARCH_H
#define VLMPROF_CLI_LOAD_SEARCH_H
#include "base/memory.h"
#include "load/load_run.h"
#include "vlmprof_load.h"

#define LOAD_SEARCH_SCHEMA "vlmprof-find-rate-1"

/* Why the search ended. EMPTY, ALONE, WRONG: the objective is missed for reasons that no lower rate can mend. */
enum load_end {
    LOAD_SEARCHES, LOAD_FOUND, LOAD_ALL_HOLD, LOAD_NONE_HOLDS, LOAD_OPEN, LOAD_BUDGET, LOAD_EMPTY, LOAD_ALONE,
    LOAD_WRONG
};

struct load_trial {
    double rate, realised; /* requests/s, nominal and due in the window */
    double duration_s;
    vp_series_value good;  /* share of good requests, at 95 % */
    vp_trial verdict;
    vp_series_value accuracy; /* with slo.accuracy: at the level of a look */
};
struct load_search {
    /* set by the caller */
    double share;                           /* of requests that must be good, 0..1 */
    double duration_s, ramp_s, cool_down_s; /* the shortest trial, and what is not counted of each */
    double budget_s;                        /* of the whole search */
    vp_slo slo;
    /* the search's own */
    vp_rate_search rates; /* rates.next: the next trial; NaN: the search has ended */
    double spent_s;
    struct load_trial *trials; size_t trial_count;
    enum load_end end;
    vp_series_value accuracy; /* of the requests that were judged last */
    size_t empty, alone, judged; /* of the trial that ended the search: empty answers, requests that met no other */
};

/* precision: high / low - 1 of the result. */
vp_result load_search_begin(struct load_search *search, double first, double precision);
void load_search_free(struct load_search *search);

/* The seed of the arrivals at a rate: trials at two rates share no random numbers, and a trial that is repeated at its
 * rate has the same arrivals. */
uint32_t load_search_seed(uint32_t seed, double rate);

/* How long the next trial lasts at first: until a server whose answers are all good would be believed. */
double load_search_duration(const struct load_search *search);

/* Judges the requests that were due before `until_s`. Each look at a trial has its own share of the error, so that a
 * trial may be looked at again after it was extended. */
vp_trial load_search_judge(struct load_search *search, const struct load_records *records, double until_s);

/* Judges the accuracy of requests that were sent one at a time: if it misses the objective, the search ends. */
void load_search_judge_unloaded(struct load_search *search, const struct load_records *records, double until_s);

/* The duration of a trial that is undecided after duration_s: twice as long, as far as the budget goes; the same:
 * it is not extended. */
double load_search_longer(const struct load_search *search, double duration_s);

/* Takes a trial that took elapsed_s, and sets rates.next. */
void load_search_take(struct load_search *search, const struct load_trial *trial, double elapsed_s);

/* Seconds that the search will take if each trial is decided at its first look. trials: how many, or NULL. */
double load_search_forecast(const struct load_search *search, int *trials);

/* Returns 1 if the result is as precise as was asked for. */
int load_search_is_precise(const struct load_search *search);

/* The result in a sentence; and its members, into the open object. */
void load_search_words(const struct load_search *search, struct text_buffer *out);
void load_search_put(vp_json_writer *writer, const struct load_search *search);

#endif
