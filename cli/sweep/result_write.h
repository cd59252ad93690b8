/* result_write.h: turns journals into one result file per configuration. A journal's index comes in; JSON files and
 * their summaries go out. Functions that can fail print an error on stderr and return 0 or an exit code. */
#ifndef VLMPROF_CLI_RESULT_WRITE_H
#define VLMPROF_CLI_RESULT_WRITE_H
#include "results/metrics.h"
#include "server/checks/twins.h"
#include "sweep/journal.h"
#include "vlmprof_noise.h"

/* A configuration's numbers in the table and --json of a sweep. NaN if a number is missing. */
struct summary {
    char *path;                            /* path of the result file */
    int64_t ok, failed, missing;           /* points */
    struct median_range p50[METRIC_STAGE]; /* ms, over samples; under load over requests */
    int64_t sample_count;        /* of those with a known T_total */
    double decode_rate, output_rate; /* P50, tokens/s */
    vp_estimate accuracy; int64_t accuracy_count; /* with its 95 % interval */
    vp_noise_summary noise;
    int is_served; int64_t run_count; /* 1 for a server */
    int64_t cached_count, dropped_count; /* runs whose prompt came from its cache; that lack an image */
    struct twin_result twins;    /* servers only; pairs is 0 if none was measured */
    struct result_fidelity fidelity; /* as in the file's head; its baseline is NULL if there is none */
};
struct summaries { struct summary *items; size_t count; int is_loaded; /* 1: of servers under load */ };

void summaries_free(struct summaries *summaries);

/* A result file that may already exist. status: its own status, malloc'ed; NULL if there is no file, or if it is not a
 * result file of a sweep. */
struct result_found { int is_there; char *status; };

/* Looks for a result file. A file of another plan is an error. */
int result_check(const char *folder, const char *file_name, const struct journal_index *index,
                 struct result_found *found);

/* Writes the files of all configurations of the newest grid into the folder, and adds a summary per file to *all. */
int results_write(struct journal_index *index, const char *folder, struct summaries *all);

/* Adds a warning if the machine was not quiet during the measurement. */
void summaries_warn(const struct summaries *all, struct text_list *warnings);

/* summaries_print prints the summaries as a table on stdout and returns 0 or an exit code. summaries_put writes them as
 * the key "configurations" of the open object. */
int summaries_print(const struct summaries *all);
void summaries_put(vp_json_writer *writer, const struct summaries *all);

#endif
