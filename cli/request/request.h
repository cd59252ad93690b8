/* request.h: one timed pass, from pixels to text. */
#ifndef VLMPROF_CLI_REQUEST_H
#define VLMPROF_CLI_REQUEST_H
#include "base/memory.h"
#include "base/metrics.h"
#include "request/model.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"

typedef struct session {
    const model *m;
    vp_engine *engine;
    buffer pixels, masks, index, ids, scratch, answer;
} session;

void session_free(session *s);

/* what one pass is asked to do */
typedef struct work {
    const vp_image *image;   /* NULL: text only */
    const vp_layout *layout; /* of the image, else NULL */
    const int32_t *text_ids; int32_t text_count;
    int no_bos;
    int32_t top_k; const int32_t *blocks; int32_t block_count;
    int32_t new_tokens; int ignore_eos;
    const vp_dump *dump;
    vp_timing timing;
    vp_launch *launches; int64_t launch_capacity; /* VP_TIMING_KERNEL: their records; NULL and 0: not wanted */
    vp_span *spans; int64_t span_capacity;        /* the same of the CPU's threads */
    vp_ranges *ranges;                            /* of the host's parts; NULL: not wanted */
} work;
enum { CHAIN_STAMPS = 6 }; /* clock reads of request_run itself */

int32_t sequence_of(const work *k);

/* of the longest answer; the last new token is never fed back */
int64_t positions_of(const work *k);

/* Buffers for a pass, outside of any timed part. */
void session_reserve(session *s, const work *k);

/* One pass from decoded pixels to text. The image file was decoded and the prompt tokenized before. */
vp_result request_run(session *s, const work *k, timing *t, vp_error *error);

#endif
