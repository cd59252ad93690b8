/* family.h: makes a vp_family from a family's name and keys on the command line. */
#ifndef VLMPROF_CLI_FAMILY_H
#define VLMPROF_CLI_FAMILY_H
#include "vlmprof_families.h"
#include <stddef.h>

/* Finds the family that --OPTION names. Returns 0, or an exit code after suggesting similar names. */
int family_by_name(const char *option, const char *name, vp_family *family);

/* Keys of families on the command line, which come with an option of `keyed_by`. */
struct family_keys {
    const char *const *items; size_t count; /* names and values alternate */
    const char *max_crops;                  /* --max_crops, which is also a key; NULL if it is not given */
    const char *command;                    /* for messages */
};

/* Sets the keys in all families that have them. Returns 0 or an exit code. */
int family_set_keys(struct family_keys keys, vp_family *families, size_t family_count);

/* Finds the size with an image's shape that costs most tokens by a family's rule, but at most max_tokens. Of several
 * such sizes, it is the one nearest to the image's own. An image that fits keeps its size: both results are then 0.
 * Returns 0, or EXIT_INPUT with a reason if every size costs more. Prints nothing. */
int family_size_for(const vp_family *family, int32_t width_px, int32_t height_px, int64_t max_tokens,
                    int32_t *sent_width_px, int32_t *sent_height_px, char *reason, size_t capacity);

#endif
