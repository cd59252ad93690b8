/* measure.h: measures one request pass by pass, in the same way for the engine and for a server.
 * A function that runs a pass comes in; the passes and the machine's other activity go out, also as text and JSON. */
#ifndef VLMPROF_CLI_MEASURE_H
#define VLMPROF_CLI_MEASURE_H
#include "base/memory.h"
#include "base/options.h"
#include "results/metrics.h"
#include "vlmprof_engine.h"
#include "vlmprof_noise.h"

/* The functions that run a pass on the engine or on a server. pass: runs it once into *run, which comes from runs_make;
 * returns 0, EXIT_INTERRUPTED, or an exit code after a message. warm: called after the warm-up, unless NULL. */
struct pass_backend {
    void *with; /* argument of both */
    int (*pass)(void *with, struct pass_result *run);
    void (*warm)(void *with);
};

/* The passes of a request. capacity: allocated; count: complete. */
struct timed_runs {
    struct pass_result *runs; int32_t capacity, count;
    int is_cold; /* 1 if there was no warm-up */
    vp_noise_summary noise;
    struct text_list warnings;
};
void runs_open(struct timed_runs *timed, int32_t capacity, int32_t new_tokens);
void runs_close(struct timed_runs *timed);

/* Runs an untimed pass, unless timed->is_cold, and num_runs timed ones (0: one). Ctrl-C ends the loop after the current
 * pass. Returns 0 or the exit code of a pass. */
int runs_measure(const struct pass_backend *backend, int32_t num_runs, int32_t new_tokens, struct timed_runs *timed);

/* After Ctrl-C: prints a line about the shown runs and how to continue. */
void runs_print_interrupted(const struct timed_runs *timed);

/* Adds a warning if the machine was not quiet (*noise), and prints all warnings. */
void runs_warn(struct timed_runs *timed, const vp_noise_summary *noise);
/* The same by the noise of these runs, with the spread of successive ones. */
void runs_warn_of_noise(struct timed_runs *timed);

/* Prints one line: the number of runs, whether they are warm, the meaning of the ranges. */
void runs_print(const struct timed_runs *timed);

/* Prints the numbers of the whole request, one per line, with their meaning. */
void runs_print_terms(const struct timed_runs *timed);

/* Write members of the open object: "warm" and "num_runs"; the two rates of the means; "medians" with their ranges. */
void runs_put_count(vp_json_writer *writer, const struct timed_runs *timed);
void runs_put_rates(vp_json_writer *writer, const struct timed_runs *timed);
void runs_put_medians(vp_json_writer *writer, const struct timed_runs *timed);

/* Writes "noise", "warnings", "provenance" and "config", then ends the object and the output. engine NULL: a server,
 * called through the library `client`; otherwise it was opened with these settings. */
void runs_put_end(vp_json_writer *writer, const struct options *options, const struct timed_runs *timed,
                  const vp_engine *engine, const vp_engine_options *settings, const char *client);

#endif
