/* profile_cost.h: measures the cost of the profiler itself: run --profile --cost.
 * Whole requests run in each mode, in random order within every round. Each is compared with the bare one of its round.
 * A session and a request come in; text lines and JSON go out. */
#ifndef VLMPROF_CLI_PROFILE_COST_H
#define VLMPROF_CLI_PROFILE_COST_H
#include "base/memory.h"
#include "profile/profiler.h"
#include "results/metrics.h"
#include "vlmprof.h"

/* The modes: no stage times; stage times; every operation; every operation and a trace. */
enum { COST_OFF, COST_STAGE, COST_OP, COST_TRACE, COST_MODES };

struct cost_report {
    size_t rounds;         /* 0 if nothing was measured */
    double *ns[COST_MODES]; /* [rounds] each */
    vp_paired paired[COST_MODES]; /* each mode minus COST_OFF */
};

/* Runs --cost_rounds rounds of the request on the session's engine. *cost is zeroed before the call, *run is scratch.
 * The runs are in no table, and their trace is discarded. After a signal no rounds are reported. Returns 0 or an exit
 * code; in both cases the caller must call cost_free. */
int cost_measure(const struct profile_settings *settings, struct session *session, struct pass_input *input,
                 struct pass_result *run, struct cost_report *cost);
void cost_free(struct cost_report *cost);

/* Writes the report, which must have rounds, as lines of text. */
void cost_write(struct text_buffer *out, const struct cost_report *cost);

/* Writes the key "cost" and the report, null without rounds. */
void cost_put(vp_json_writer *writer, const struct cost_report *cost);

#endif
