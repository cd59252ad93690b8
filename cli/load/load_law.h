/* load_law.h: how much longer requests take under load than the latency model of their server says.
 * For each trial at a rate: percentiles of what its requests waited beyond the latency model, which was measured with
 * one request at a time. Between two measured rates they are interpolated; there is no theory of queues, and nothing
 * beyond the rates that were measured. */
#ifndef VLMPROF_CLI_LOAD_LAW_H
#define VLMPROF_CLI_LOAD_LAW_H
#include "load/load_result.h"
#include "report/model_file.h"
#include "report/server_law.h"

enum { WAIT_TTFT, WAIT_E2E, WAIT_PARTS };
enum { WAIT_P50, WAIT_P95, WAIT_PERCENTILES };
extern const char *const WAIT_NAMES[WAIT_PARTS][WAIT_PERCENTILES];

/* ms; low, high: 95 % interval, NaN: the trial is too short for one */
struct wait_value { double value, low, high; };
struct load_wait { double rate; int64_t requests; struct wait_value of[WAIT_PARTS][WAIT_PERCENTILES]; };

/* Of one latency model, ascending by rate. held_out: the trial's waits interpolated from its neighbours without it; NaN
 * for the first and the last. */
struct load_law {
    size_t law; /* its place in the latency models */
    struct load_wait *items; size_t count;
    struct wait_value (*held_out)[WAIT_PARTS][WAIT_PERCENTILES];
};
struct load_laws { struct load_law *items; size_t count; struct text_list warnings; };

/* Makes them of the trials; a request's tokens are those of its sample in the results. Returns 0 or an exit code after
 * a message; load_laws_free frees in both cases. */
int load_laws_fit(const struct load_levels *levels, const struct results *results, const struct server_laws *laws,
                  struct load_laws *loads);
void load_laws_free(struct load_laws *loads);

/* The member "load" of the open object; the tables of the document. */
void load_laws_put(vp_json_writer *writer, const struct load_laws *loads);
void load_laws_describe(struct document *document, const struct server_laws *laws, const struct load_laws *loads);

/* Reads what load_laws_put wrote. 0 or an exit code after a message. */
int load_laws_read(struct model_reader *reader, size_t law_count, struct load_laws *loads);

/* The waits at a rate. Returns 0, or EXIT_USAGE after a message where nothing was measured around it. */
int load_wait_at(const struct load_laws *loads, const struct server_laws *laws, size_t law, double rate,
                 struct load_wait *wait);

#endif
