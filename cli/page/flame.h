/* flame.h: what the page of a profiled request is made of: what was recorded, and words about it. */
#ifndef VLMPROF_CLI_FLAME_H
#define VLMPROF_CLI_FLAME_H
#include "base/memory.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

/* The request that is drawn. */
struct flame_request {
    int64_t begin_ns, total_ns; /* of the whole step, from the image file to the text: when (vp_clock_ns), how long */
    int64_t engine_begin_ns;    /* when the engine began: the launches and `times` count from here */
    const vp_range *ranges; int64_t range_count; /* the host's */
    const vp_launch *launches; int64_t launch_count;
    int64_t lost_launches;      /* those that did not fit */
    const vp_stage_times *times;
    const int64_t *step_ns; int64_t step_count; /* of the decode steps */
};
struct flame {
    const char *model, *image, *question, *device, *date; /* image NULL: none */
    struct text_list facts;      /* for the provenance: name, text, name, text .. */
    const struct text_list *warnings;
    const char *cost;            /* a sentence: what timing costs, as measured; NULL: it was not */
    int on_device;               /* 1 if times of launches are the device's */
    /* over all recorded requests */
    int64_t request_count; double total_ns; /* how many, and the sum of their times */
    const vp_ops *ops;           /* in the order of the table */
    const double *stage_ns, *op_ns; /* [VP_STAGE_COUNT], as struct profiler has them */
    struct flame_request request;
};

/* Room for what is drawn: operations of a stage that would take more are left out, pass by pass and decode step by
 * decode step, and the page says so. So is what the table has beyond FLAME_ROWS_MOST rows. */
enum { FLAME_STAGE_BYTES = 300000, FLAME_ROWS_MOST = 2000 };

#endif
