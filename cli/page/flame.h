/* flame.h: the contents of the page of a profiled request: the recorded data, and descriptions of it. */
#ifndef VLMPROF_CLI_FLAME_H
#define VLMPROF_CLI_FLAME_H
#include "base/memory.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

/* The request to draw. */
struct flame_request {
    int64_t begin_ns, total_ns; /* the whole step, from image file to text: start (vp_clock_ns) and duration */
    int64_t engine_begin_ns;    /* start of the engine: launches and `times` count from here */
    const vp_range_record *ranges;
    int64_t range_count; /* times of the host */
    const vp_launch *launches; int64_t launch_count;
    int64_t lost_launches;      /* launches that did not fit */
    const vp_stage_times *times;
    const int64_t *step_ns; int64_t step_count; /* times of the decode steps */
};
struct flame {
    const char *model, *image, *question, *device, *date; /* image is NULL if there is none */
    struct text_list facts;                               /* for the provenance: name, text, name, text .. */
    const struct text_list *warnings;
    int on_device;    /* 1 if the times of launches are device times */
    /* over all recorded requests */
    int64_t request_count; double total_ns; /* their number, and the sum of their times */
    const vp_ops *ops;           /* in the order of the table */
    const double *stage_ns, *op_ns; /* [VP_STAGE_COUNT], as in struct profiler */
    struct flame_request request;
};

/* Limits of what is drawn. Operations of a stage that would take more are left out, pass by pass and decode step by
 * decode step, and the page reports this. The same is done with table rows beyond FLAME_ROWS_MOST. */
enum { FLAME_STAGE_BYTES = 300000, FLAME_ROWS_MOST = 2000 };

/* ---- the data that the flame chart's script draws, as JSON */
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

/* ---- writes a profiled request as an HTML page: a flame chart over time, its stages, and the table of operations
 * */
void flame_page_write(const struct flame *flame, struct text_buffer *out);
#endif
