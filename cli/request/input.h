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

int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout);

int tokenize_prompt(const struct model *model, struct sample *sample);

struct run_state {
    struct model model;
    struct session session;
    struct sample sample;
    vp_image image;
    vp_layout layout;
    vp_tile_options tiles;
    int32_t *blocks;
    struct pass_input input;
    vp_dump dump;
    struct pass_result *runs;
    int32_t run_count;
};

int check_sequence(const struct model *model, const struct pass_input *input);

#endif
