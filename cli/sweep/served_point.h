/* served_point.h: what differs where a sweep measures servers: their endpoints, the images they get, one timed request.
 * A plan with variants comes in; timed passes, and the members of journal lines that only servers have, go out.
 * Functions that can fail complain on stderr themselves and return 0 or an exit code, unless they say otherwise. */
#ifndef VLMPROF_CLI_SERVED_POINT_H
#define VLMPROF_CLI_SERVED_POINT_H
#include "server/twin_pairs.h"
#include "sweep/sweep.h"

/* Opens the endpoints of all variants and builds a request of each, so that mistakes are reported before anything is
 * written; connects to nothing. sweep->served becomes its state; served_close releases it, after a failure too. */
int served_open(struct sweep *sweep);
void served_close(struct sweep *sweep);

/* Truth: a server is on this machine. */
int served_is_local(const struct sweep *sweep);

/* "server": the endpoints, models and knobs of the whole grid. */
void served_put_head(vp_json_writer *writer, const struct sweep *sweep);

/* "sizes": what was sent for a point, as an object that is a value. */
void served_put_sizes(vp_json_writer *writer, const struct open_point *point);

/* Makes what a point of a sample sends. `reason` becomes empty, or says why nothing can be sent. served_end releases
 * the images of the sample. */
int served_begin(struct sweep *sweep, struct open_point *point, const struct sample *sample, const struct entry *entry,
                 char *reason, size_t capacity);
void served_end(struct sweep *sweep);

/* Sends one request and times it into sweep->run, again after errors of the server. The first call of a process warms
 * all servers up and writes the session's line. `reason` becomes empty, or says why the request failed; *is_device is
 * the truth that the server is at fault and not the request. Returns 0, or the exit code that ends the sweep. */
int served_run(struct sweep *sweep, struct open_point *point, const struct sample *sample, char *reason,
               size_t capacity, int *is_device);

/* Truth: twins of the point are asked for: there is an image. */
int served_wants_twins(const struct sweep *sweep, const struct open_point *point);

/* Measures the twins of a point whose runs are done. `reason` becomes empty, or says why there are no pairs. Returns 0,
 * or EXIT_INTERRUPTED. The caller calls twins_free in both cases. */
int served_twins(struct sweep *sweep, const struct open_point *point, const struct sample *sample, struct twins *twins,
                 char *reason, size_t capacity);

#endif
