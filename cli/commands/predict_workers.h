/* predict_workers.h: `predict --workers`: estimates how many encoder and language-model workers a rate needs. */
#ifndef VLMPROF_CLI_PREDICT_WORKERS_H
#define VLMPROF_CLI_PREDICT_WORKERS_H
#include "base/options.h"
#include "report/server_law.h"

/* The values of --workers, --encoder_ms, --busy_percent and --decode_batch. */
struct worker_options { double rate, busy, batch; vp_estimate encoder_ms; }; /* encoder_ms NaN: use the latency model */
int worker_options_of(const struct options *options, struct worker_options *asked);

/* Adds the worker counts for these requests, which are equally frequent, to the document or, if writer is not NULL, to
 * the JSON as the member "workers". Returns 0 or an exit code after a message. */
int predict_workers(const struct worker_options *asked, const struct server_law *law,
                    const struct law_request *requests, size_t count, struct document *document,
                    vp_json_writer *writer);

#endif
