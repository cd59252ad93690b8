/* load_client.h: did this client itself delay the requests? Measures its threads' CPU time and their wait for a CPU.
 * Linux's schedstat comes in; shares of a trial's time come out. */
#ifndef VLMPROF_CLI_LOAD_CLIENT_H
#define VLMPROF_CLI_LOAD_CLIENT_H
#include "load/load_result.h"

/* Sums over the threads; at_ns: when they were read. cpu_ns -1: the system does not report it. */
struct client_reading { int64_t at_ns, cpu_ns, delay_ns; };
void client_read(const char *root, struct client_reading *reading);

/* Sets the client's shares of a trial between two readings; NaN where they are unknown. */
void client_take(const struct client_reading *begin, const struct client_reading *end, struct load_level *level);

/* Returns 1 if the shares can explain latencies: the event loop was nearly always busy, or ready without a CPU. */
int client_was_busy(const struct load_level *level);

#endif
