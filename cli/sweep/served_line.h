/* served_line.h: what a server's pass gave, as the journal keeps it.
 * A struct served becomes the member "served" of a run's line, and the same comes back. */
#ifndef VLMPROF_CLI_SERVED_LINE_H
#define VLMPROF_CLI_SERVED_LINE_H
#include "base/json.h"
#include "base/metrics.h"

void served_put(vp_json_writer *writer, const struct served *served);

/* The member of a run's line, malloc'ed. The line is whole (journal_line_kind). */
struct served *served_read(const vp_json *json, uint32_t node);

#endif
