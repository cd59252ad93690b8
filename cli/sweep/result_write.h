/* result_write.h: journals to one result file for each configuration. */
#ifndef VLMPROF_CLI_RESULT_WRITE_H
#define VLMPROF_CLI_RESULT_WRITE_H
#include "base/metrics.h"
#include "sweep/journal.h"
#include "vlmprof.h"

/* what the table and --json tell of a configuration */
typedef struct summary { char *path; int64_t ok, failed, missing, accuracy_count; double p50[METRIC_STAGE], accuracy, rate, closure; } summary;
typedef struct summaries { summary *items; size_t count; } summaries;

void summaries_free(summaries *s);

/* A result file that is there already must be of this plan; *status is malloc'ed, NULL without a file. */
int result_check(const char *folder, const char *file_name, const char *fingerprint, char **status);

/* Files of all configurations of the newest grid. */
int results_write(book *b, const char *folder, summaries *all);

void summaries_print(const summaries *all);
void summaries_put(vp_json_writer *w, const summaries *all);

#endif
