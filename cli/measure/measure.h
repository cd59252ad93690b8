/* measure.h: one request, measured pass by pass: the same for the engine and for a server.
 * A way to run a pass comes in; the passes, and what else the machine did meanwhile, go out, also as text and JSON. */
#ifndef VLMPROF_CLI_MEASURE_H
#define VLMPROF_CLI_MEASURE_H
#include "base/memory.h"
#include "base/options.h"
#include "results/metrics.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_noise.h"

/* How a pass is run: by the engine or by a server. pass: runs it once into *run, which comes from runs_make; returns 0,
 * EXIT_INTERRUPTED, or an exit code after a message. warm: what follows the warm-up; NULL: nothing. */
struct way {
    void *with; /* what both are called with */
    int (*pass)(void *with, struct pass_result *run);
    void (*warm)(void *with);
};

/* The passes of a request: how many there is room for, how many are whole. */
struct timed_runs {
    struct pass_result *runs; int32_t capacity, count;
    vp_noise_summary noise;
    struct text_list warnings;
};
void runs_open(struct timed_runs *timed, int32_t capacity, int32_t new_tokens);
void runs_close(struct timed_runs *timed);

/* Runs a pass untimed (not with --cold), then --num_runs timed ones; *timed is zeroed before. After Ctrl-C the pass
 * that runs is the last one. Returns 0 or the exit code of a pass. */
int runs_measure(const struct options *options, const struct way *way, int32_t new_tokens, struct timed_runs *timed);

/* After Ctrl-C: a line that says what is shown and how to go on. */
void runs_print_interrupted(const struct timed_runs *timed);

/* Adds a warning if the machine was not quiet (*noise), and prints all warnings. */
void runs_warn(struct timed_runs *timed, const vp_noise_summary *noise);

/* One line: how many runs, whether they are warm, what the ranges are. */
void runs_print(const struct options *options, const struct timed_runs *timed);

/* The numbers of the whole request, a line each, with what it is. */
void runs_print_terms(const struct timed_runs *timed);

/* Members of the open object: "warm" and "num_runs"; the two rates of the means; "medians" with their ranges. */
void runs_put_count(vp_json_writer *writer, const struct options *options, const struct timed_runs *timed);
void runs_put_rates(vp_json_writer *writer, const struct timed_runs *timed);
void runs_put_medians(vp_json_writer *writer, const struct timed_runs *timed);

/* "noise", "warnings", "provenance" and "config"; then the object and the output end. engine NULL: a server, asked by
 * the library `client`. */
void runs_put_end(vp_json_writer *writer, const struct options *options, const struct timed_runs *timed,
                  const vp_engine *engine, const char *client);

#endif
