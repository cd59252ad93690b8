/* tile_options.h: the options that choose a tiling, and sizes as text. */
#ifndef VLMPROF_CLI_TILE_OPTIONS_H
#define VLMPROF_CLI_TILE_OPTIONS_H
#include "base/options.h"
#include "vlmprof.h"

/* The knob of the vision stage from --preprocess, --tier, --max_crops, --crops, --vision_tokens. */
int tile_options_of(const options *o, vp_tile_options *t);

/* "640x480", and in lists also "640 480" and "640,480"; 0 when it is no size */
int parse_size(const char *text, const char *separators, int64_t *width, int64_t *height);

#endif
