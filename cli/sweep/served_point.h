/* served_point.h: the server-specific part of a sweep: endpoints, the images sent to them, one timed request. A plan
 * with variants comes in; timed passes, and the members of journal lines that only servers have, go out. Functions that
 * can fail print an error on stderr and return 0 or an exit code, unless stated otherwise. */
#ifndef VLMPROF_CLI_SERVED_POINT_H
#define VLMPROF_CLI_SERVED_POINT_H
#include "server/checks/twin_pairs.h"
#include "sweep/sweep.h"

/* Opens the endpoints of all variants and builds a request for each, so that mistakes are reported before anything is
 * written. It does not connect. sweep->served becomes its state; call served_close even after a failure. */
int served_open(struct sweep *sweep);
void served_close(struct sweep *sweep);

extern const struct sweep_backend SERVER_BACKEND;

/* Returns 1 if a measured server is on this machine. */
int served_is_local(const struct sweep *sweep);

/* Returns 1 if the point needs twins: they are requested and there is an image. */
int served_wants_twins(const struct sweep *sweep, const struct open_point *point);

/* Measures the twins of a point after its runs. `reason` becomes empty, or the reason why there are no pairs. Returns 0
 * or EXIT_INTERRUPTED. In both cases the caller must call twins_free. */
int served_twins(struct sweep *sweep, const struct open_point *point, const struct sample *sample, struct twins *twins,
                 char *reason, size_t capacity);

/* Queries the baseline's server and the point's server to compare the answers. `reason` becomes empty, or describes
 * what is not known. Returns 0 or EXIT_INTERRUPTED. */
int served_ask_baseline(struct sweep *sweep, const struct open_point *first, const struct sample *sample);
int served_follow_baseline(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                           struct fidelity *fidelity, char *reason, size_t capacity);

#endif
