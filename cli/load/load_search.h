/* load_search.h: the search for the highest rate that meets an objective: chooses the trials and their durations, and
 * gives the result. Summaries of trials come in; rates, durations and a result come out. It sends nothing and reads no
 * clock. */
#ifndef VLMPROF_CLI_LOAD_SEARCH_H
#define VLMPROF_CLI_LOAD_SEARCH_H
#include "base/memory.h"
#include "load/load_answer.h"
#include "load/load_run.h"
#include "vlmprof_load.h"

#define LOAD_SEARCH_SCHEMA "vlmprof-find-rate-2"

/* Why the search ended. EMPTY, ALONE, WRONG: the objective is missed for reasons that a lower rate cannot fix. */
enum load_end {
    LOAD_SEARCHES, LOAD_FOUND, LOAD_ALL_HOLD, LOAD_NONE_HOLDS, LOAD_BUDGET, LOAD_EMPTY, LOAD_ALONE, LOAD_WRONG
};

struct load_trial {
    double rate, realised; /* requests/s, nominal and due in the window */
    double duration_s, window_s; /* time of sending; counted part of it */
    vp_series_value good;  /* share of good requests, with its 95 % interval */
    vp_series_value accuracy;
    struct load_point point;
    int is_hopeless; /* 1 if it was ended early */
};
struct load_search {
    /* set by the caller */
    double share;                           /* share of requests that must be good, 0..1 */
    double duration_s, ramp_s, cool_down_s; /* length of the first trials; uncounted ramps of each trial */
    double budget_s;                        /* budget of the whole search */
    vp_slo slo;
    /* the search's own */
    double precision;        /* high / low - 1 at which the search ends */
    double least, most;      /* limits of the rates */
    double next, next_s;     /* the next trial's rate and duration; NaN: the search has ended */
    double spent_s;          /* used part of the budget */
    double drain_s;          /* waiting time for the last answers of a trial */
    struct load_trial *trials; size_t trial_count;
    struct load_answer answer; /* the answer from the trials so far */
    enum load_end end;
    vp_series_value accuracy; /* accuracy of the latest judged requests */
    size_t empty, judged;   /* in the latest trial: empty answers, requests */
    uint64_t alone, alone_good; /* in all trials: requests that ran alone */
};

/* precision: high / low - 1 of the result. Returns VP_OK, or VP_ERR_RANGE. */
vp_result load_search_begin(struct load_search *search, double first, double precision);
void load_search_free(struct load_search *search);

/* The duration of the first trials if none is given: about 15 of them fit into the budget. */
double load_search_first_duration(double budget_s);

/* The seed of the arrivals at a rate: trials at two rates share no random numbers. */
uint32_t load_search_seed(uint32_t seed, double rate);

/* The new duration of a trial of duration_s whose schedule is nearly over. It is doubled if a few bad requests leave
 * the objective undecided and the budget allows it, otherwise unchanged. */
double load_search_longer(const struct load_search *search, const struct load_summary *summary, double duration_s);

/* Looks in a trial's requests for a reason why a lower rate cannot help, and sets search->end if there is one. */
void load_search_check(struct load_search *search, const struct load_records *records, double from_s, double to_s);

/* Judges the accuracy of requests that were sent one at a time; if it misses the objective, the search ends. */
void load_search_check_unloaded(struct load_search *search, const struct load_summary *summary);

/* Adds a trial that used elapsed_s of the budget. Sets the answer and the next trial. */
void load_search_take(struct load_search *search, const struct load_summary *summary, double rate, double duration_s,
                      int is_hopeless, double elapsed_s);

/* The seconds that the search still needs for the precision, estimated from the trials so far; NaN: not known. */
double load_search_forecast(const struct load_search *search);

/* Returns 1 if the result is as precise as requested. */
int load_search_is_precise(const struct load_search *search);

/* load_search_words writes the result as a sentence, load_search_put as members of the open object. */
void load_search_words(const struct load_search *search, struct text_buffer *out);
void load_search_put(vp_json_writer *writer, const struct load_search *search);

/* "90 s", "15 minutes", "5.2 hours". Returns out. */
const char *load_search_time(double seconds, char out[32]);

#endif
