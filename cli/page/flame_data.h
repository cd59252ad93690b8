/* flame_data.h: the data that the flame chart's script draws, as JSON. */
#ifndef VLMPROF_CLI_FLAME_DATA_H
#define VLMPROF_CLI_FLAME_DATA_H
#include "page/flame.h"

/* Kinds of operations. Each has a colour, one of the series of plot.h. */
enum { FLAME_PRODUCT, FLAME_ATTENTION, FLAME_EXPERTS, FLAME_NORM, FLAME_ROUTING, FLAME_OTHER, FLAME_HOST, FLAME_COPY,
       FLAME_KINDS };
extern const char *const FLAME_KIND_NAMES[FLAME_KINDS];

/* The kind of a kernel, by its name. */
int flame_kind(const char *name);

/* Writes one JSON object: {"total": ns, "stages": [[name, begin, ns, is the host's]..], "groups": [[stage, name, begin,
 * ns, has its operations]..], "names": [..], "parts": [..], "calls": [[name, part, kind, shape, flops, bytes]..],
 * "runs": [[stage, group or -1, block or -1, begin, [call, gap, ns, call, gap, ns ..]]..]}. Times are ns from the
 * request's begin; a gap is the time since the operation before ended, or since the run's begin. Returns how many of
 * the request's operations are left out. */
int64_t flame_data_write(const struct flame *flame, struct text_buffer *out);

#endif
