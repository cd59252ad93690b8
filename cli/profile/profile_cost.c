/* profile_cost.c: measures the cost of the profiler itself: run --profile --cost. */
#include "profile/profile.h"

#include "base/console.h"
#include "base/json.h"
#include "measure/noise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const COST_NAMES[COST_MODES] = {"off", "stage", "op", "trace"};

void cost_free(struct cost_report *cost) { for (int i = 0; i < COST_MODES; i++) free(cost->ns[i]); }
/* Runs one request in a mode. *ns: time until the next could start, including the mode's work on its records. */
static int cost_pass(struct profiler *profiler, struct pass_input *input, struct pass_result *run, int mode,
                     int64_t step, double *ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = profiler->trace;
    int64_t begin_ns = vp_clock_ns();
    int code;
    if (mode >= COST_OP) {
        if (mode == COST_OP) profiler->trace = NULL;
        profiler_step_begin(profiler);
        code = profiler_step_run(profiler, input, run, step, 1);
        profiler->trace = trace;
    } else {
        vp_result result;
        input->engine.timing = mode == COST_OFF ? VP_TIMING_OFF : VP_TIMING_STAGE;
        result = request_run(profiler->session, input, run, &error);
        code = result == VP_OK ? 0 : complain_result(exit_code_of(result), NULL, result, &error);
        input->engine.timing = VP_TIMING_STAGE;
    }
    *ns = (double)(vp_clock_ns() - begin_ns);
    return code;
}
/* Puts the modes of a round in random order; *state is the state of a linear congruential generator. */
static void shuffle_modes(int order[COST_MODES], uint64_t *state) {
    for (int i = 0; i < COST_MODES; i++) order[i] = i;
    for (int i = COST_MODES - 1; i > 0; i--) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int other = (int)((*state >> 33) % (uint64_t)(i + 1));
        int held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}
/* Runs all rounds, after one untimed request in each mode, the most expensive mode first. */
static int cost_rounds(struct profiler *profiler, struct pass_input *input, struct pass_result *run,
                       struct cost_report *cost) {
    uint64_t state = profiler->settings->engine.seed;
    double untimed;
    int code = 0;
    for (int mode = COST_MODES; mode-- > 0 && !code;) code = cost_pass(profiler, input, run, mode, 0, &untimed);
    for (size_t round = 0; round < cost->rounds && !code && !interrupted; round++) {
        int order[COST_MODES];
        show_progress("cost of the profiler: round %zu of %zu", round + 1, cost->rounds);
        shuffle_modes(order, &state);
        for (int i = 0; i < COST_MODES && !code; i++)
            code = cost_pass(profiler, input, run, order[i], (int64_t)round + 1, &cost->ns[order[i]][round]);
    }
    return code;
}
int cost_measure(const struct profile_settings *settings, struct session *session, struct pass_input *input,
                 struct pass_result *run, struct cost_report *cost) {
    const char *temporary = getenv("TMPDIR");
    char folder[600], path[640];
    struct profiler *profiler = zeroed(1, sizeof *profiler);
    double *scratch;
    int code;
    snprintf(folder, sizeof folder, "%.500s/vlmprof-cost-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        free(profiler);
        return complain(EXIT_OUTPUT, "%s: cannot create the folder: %s", folder, strerror(errno));
    }
    snprintf(path, sizeof path, "%s/cost.pt.trace.json", folder);
    cost->rounds = settings->cost_rounds;
    scratch = zeroed(cost->rounds, sizeof *scratch);
    for (int i = 0; i < COST_MODES; i++) cost->ns[i] = zeroed(cost->rounds, sizeof *cost->ns[i]);
    code = profiler_open(profiler, settings, session, input->engine.max_new_tokens);
    if (!code) code = profiler_trace_open(profiler, path);
    if (!code) code = cost_rounds(profiler, input, run, cost);
    if (interrupted && !code) cost->rounds = 0;
    for (int i = 0; i < COST_MODES && !code && cost->rounds; i++)
        vp_statistics_paired(cost->ns[COST_OFF], cost->ns[i], cost->rounds, scratch, &cost->paired[i]);
    profiler_free(profiler); /* (an unfinished trace leaves no file) */
    free(profiler);
    rmdir(folder);
    free(scratch);
    return code;
}
static vp_estimate percent_of(vp_estimate share) {
    vp_estimate percent;
    percent.value = 100 * share.value;
    percent.low = 100 * share.low;
    percent.high = 100 * share.high;
    return percent;
}
void cost_write(struct text_buffer *out, const struct cost_report *cost) {
    char line[300], reason[200];
    snprintf(line, sizeof line,
             "\ncost of the profiler: %zu rounds of one request in each mode, in random order, compared with off; 95 "
             "%% intervals\n"
             "%-8s %12s %12s %30s %30s\n",
             cost->rounds, "mode", "mean ms", "median ms", "mean of differences, %", "median of differences, %");
    text_add_string(out, line);
    for (int i = 0; i < COST_MODES; i++) {
        double *sorted = resize(NULL, cost->rounds, sizeof *sorted);
        memcpy(sorted, cost->ns[i], cost->rounds * sizeof *sorted);
        text_add_format(out, "%-8s %12s %12s %30s %30s\n", COST_NAMES[i],
                        number_short(vp_statistics_mean(cost->ns[i], cost->rounds) / 1e6).text,
                        number_short(median_of(sorted, cost->rounds).value / 1e6).text,
                        i ? number_cost(percent_of(cost->paired[i].relative_mean)).text : "-",
                        i ? number_cost(percent_of(cost->paired[i].relative_median)).text : "-");
        free(sorted);
    }
    for (int i = 1; i < COST_MODES; i++) { /* the median, which one or two slow rounds do not change */
        vp_estimate median = percent_of(cost->paired[i].relative_median);
        if (is_cost_known(median)) continue;
        say_unknown_cost(reason, sizeof reason, median, cost->rounds, "rounds");
        text_add_format(out, "%s: %s\n", COST_NAMES[i], reason);
    }
}
/* low and high are null if there is no interval. */
static void put_estimate_percent(vp_json_writer *writer, const char *key, vp_estimate percent, size_t rounds) {
    int64_t needed = pairs_to_tell(percent, rounds);
    PUT(writer, KEY_OBJECT(key), KEY("value", percent.value), KEY("low", percent.low), KEY("high", percent.high),
        KEY_KNOWN("rounds_to_tell_1_percent", needed, needed), END_OBJECT);
}
void cost_put(vp_json_writer *writer, const struct cost_report *cost) {
    vp_json_key(writer, "cost");
    if (!cost->rounds) { vp_json_null(writer); return; }
    PUT(writer, KEY_OBJECT(NULL), KEY("rounds", cost->rounds));
    for (int i = 0; i < COST_MODES; i++) {
        PUT(writer, KEY_OBJECT(COST_NAMES[i]), KEY("mean_ms", vp_statistics_mean(cost->ns[i], cost->rounds) / 1e6));
        if (i) {
            put_estimate_percent(writer, "mean_difference_percent", percent_of(cost->paired[i].relative_mean),
                                 cost->rounds);
            put_estimate_percent(writer, "median_difference_percent", percent_of(cost->paired[i].relative_median),
                                 cost->rounds);
        }
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}
