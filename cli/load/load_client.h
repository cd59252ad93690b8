/* load_client.h: checks whether this client itself delayed the requests. Measures the CPU time of its threads and their
 * wait for a CPU. Linux's schedstat comes in; shares of a trial's time come out. */
#ifndef VLMPROF_CLI_LOAD_CLIENT_H
#define VLMPROF_CLI_LOAD_CLIENT_H
#include "load/load_result.h"

/* Sums over the threads; at_ns: time of reading. cpu_ns is -1 if the system does not report it. */
struct client_reading { int64_t at_ns, cpu_ns, delay_ns; };
void client_read(const char *root, struct client_reading *reading);

/* Sets the client's shares of a trial between two readings; NaN if they are not known. */
void client_take(const struct client_reading *begin, const struct client_reading *end, struct load_level *level);

/* Returns 1 if the shares can explain latencies: the event loop was nearly always busy, or waited for a CPU. */
int client_was_busy(const struct load_level *level);

#endif
