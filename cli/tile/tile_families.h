/* tile_families.h: the tile command for other model families: --family, --checkpoint, --compare, --list_families.
 * Prints rows of token counts as text, CSV or JSON. */
#ifndef VLMPROF_CLI_TILE_FAMILIES_H
#define VLMPROF_CLI_TILE_FAMILIES_H
#include "base/options.h"

/* Returns an exit code; errors were already printed. */
int tile_families_run(const struct options *options);

#endif
