/* load_law.h: the additional time of requests under load, compared with their server's latency model. For each trial at
 * a rate, it gives percentiles of the requests' waits beyond the latency model, which was measured with one request at
 * a time. Waits are interpolated between two measured rates. There is no queueing theory and no extrapolation. */
#ifndef VLMPROF_CLI_LOAD_LAW_H
#define VLMPROF_CLI_LOAD_LAW_H
#include "load/load_result.h"
#include "report/model_file.h"
#include "report/server_law.h"

enum { WAIT_TTFT, WAIT_E2E, WAIT_PARTS };
enum { WAIT_P50, WAIT_P95, WAIT_PERCENTILES };
extern const char *const WAIT_NAMES[WAIT_PARTS][WAIT_PERCENTILES];

/* ms; low, high: 95 % interval, NaN if the trial is too short */
struct wait_value { double value, low, high; };
struct load_wait { double rate; int64_t requests; struct wait_value of[WAIT_PARTS][WAIT_PERCENTILES]; };

/* The waits for one latency model, in ascending order of rate. held_out: a trial's waits, interpolated from its
 * neighbours without itself; NaN for the first and the last trial. */
struct load_law {
    size_t law; /* its index in the latency models */
    struct load_wait *items; size_t count;
    struct wait_value (*held_out)[WAIT_PARTS][WAIT_PERCENTILES];
};
struct load_laws { struct load_law *items; size_t count; struct text_list warnings; };

/* Makes the waits from the trials. The tokens of a request come from its sample in the results. Returns 0 or an exit
 * code after a message; call load_laws_free in both cases. */
int load_laws_fit(const struct load_levels *levels, const struct results *results, const struct server_laws *laws,
                  struct load_laws *loads);
void load_laws_free(struct load_laws *loads);

/* load_laws_put writes the member "load" of the open object; load_laws_describe adds the tables to the document. */
void load_laws_put(vp_json_writer *writer, const struct load_laws *loads);
void load_laws_describe(struct document *document, const struct server_laws *laws, const struct load_laws *loads);

/* Reads what load_laws_put wrote. Returns 0 or an exit code after a message. */
int load_laws_read(struct model_reader *reader, size_t law_count, struct load_laws *loads);

/* The waits at a rate. Returns 0, or EXIT_USAGE after a message if the rate is outside the measured rates. */
int load_wait_at(const struct load_laws *loads, const struct server_laws *laws, size_t law, double rate,
                 struct load_wait *wait);

#endif
