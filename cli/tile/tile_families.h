/* tile_families.h: the tile command for other model families: --family, --checkpoint, --compare, --list_families.
 * Prints rows of token counts as text, CSV or JSON. */
#ifndef VLMPROF_CLI_TILE_FAMILIES_H
#define VLMPROF_CLI_TILE_FAMILIES_H
#include "tile/family.h"

/* What to print. A text is NULL if its option is not given. */
struct family_settings {
    const char *family, *checkpoint, *compare; /* compare: names between commas */
    struct family_keys keys;
    const char *sizes;                         /* a file of sizes; - is stdin */
    const char *const *operands; size_t operand_count; /* sizes and image files */
    int64_t max_tokens;                        /* 0 if it is not given */
    int64_t percentile;                        /* of the images that must be within max_tokens */
    const char *draw;
    int csv, json, list_families;              /* 1 if given */
};

/* Returns an exit code; errors were already printed. */
int tile_families_run(const struct family_settings *settings);

#endif
