/* tile_families.h: tile with --family, --checkpoint or --compare: token counts of other model families. */
#ifndef VLMPROF_CLI_TILE_FAMILIES_H
#define VLMPROF_CLI_TILE_FAMILIES_H
#include "base/options.h"
#include <stddef.h>

int tile_families_run(const options *o);

#endif
