/* sweep_point.h: measures the points of a sweep and writes each one to the journal. A plan and the index of earlier
 * measurements come in; lines of the journal go out. Functions that can fail complain on stderr themselves and return 0
 * or an exit code. */
#ifndef VLMPROF_CLI_SWEEP_POINT_H
#define VLMPROF_CLI_SWEEP_POINT_H
#include "sweep/sweep.h"

extern const struct sweep_backend ENGINE_BACKEND;

/* Prints the sweep's progress on stderr; `what` is why it stopped. */
void sweep_message(const struct sweep *sweep, const char *what);

/* Returns 1 if the newest head of the journal has exactly the plan's configurations. */
int is_same_grid(const struct sweep *sweep);

/* Writes the grid, and the model and machine it is measured on, as a head line. */
int write_head(struct sweep *sweep);

/* Measures the rest of this process's share, until it is done or a signal arrives. */
int sweep_loop(struct sweep *sweep);

#endif
