/* input.h: a prompt and its knobs to a request that is ready to run. */
#ifndef VLMPROF_CLI_INPUT_H
#define VLMPROF_CLI_INPUT_H
#include "base/metrics.h"
#include "request/model.h"
#include "request/record.h"
#include "request/request.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

int32_t target_tokens_of(const vp_tile_options *t, const vp_layout *l);

int tokenize_prompt(const model *m, sample *a);

typedef struct run_state {
    model m;
    session s;
    sample a;
    vp_image image;
    vp_layout layout;
    vp_tile_options tiles;
    int32_t *blocks;
    work k;
    vp_dump dump;
    timing *runs;
    int32_t run_count;
} run_state;

int check_sequence(const model *m, const work *k);

#endif
