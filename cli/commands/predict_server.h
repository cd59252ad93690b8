/* predict_server.h: predicts the latency of requests to a server with the latency models of `vlmprof fit`. */
#ifndef VLMPROF_CLI_PREDICT_SERVER_H
#define VLMPROF_CLI_PREDICT_SERVER_H
#include "base/options.h"
#include "load/load_law.h"
#include "report/server_law.h"

/* Complains about options that are for the other kind of model. Returns 0 or an exit code. */
int predict_server_check(const struct options *options, int is_server);

/* Predicts the latency of the requests on the command line with each latency model, and prints the results. Returns 0
 * or an exit code. */
int predict_server(const struct options *options, const struct server_laws *laws, const struct load_laws *loads);

/* --data: prints the errors of each latency model's predictions on files that it was not fitted to, and the width and
 * coverage of its intervals. Returns 0 or an exit code. */
int predict_server_files(const struct options *options, const struct server_laws *laws);

#endif
