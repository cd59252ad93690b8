/* family.h: makes a vp_family from a family's name and keys on the command line. */
#ifndef VLMPROF_CLI_FAMILY_H
#define VLMPROF_CLI_FAMILY_H
#include "base/options.h"
#include "vlmprof_families.h"

/* Finds the family that --OPTION names. Returns 0, or an exit code after suggesting similar names. */
int family_by_name(const char *option, const char *name, vp_family *family);

/* Sets the keys of the command line, which come with an option of `keyed_by`, in all families that have them; also
 * --max_crops. Returns 0 or an exit code. */
int family_set_keys(const struct options *options, vp_family *families, size_t family_count);

/* Finds the size with an image's shape that costs most tokens by a family's rule, but at most max_tokens. Of several
 * such sizes, it is the one nearest to the image's own. An image that fits keeps its size: both results are then 0.
 * Returns 0, or EXIT_INPUT with a reason if every size costs more. Prints nothing. */
int family_size_for(const vp_family *family, int32_t width_px, int32_t height_px, int64_t max_tokens,
                    int32_t *sent_width_px, int32_t *sent_height_px, char *reason, size_t capacity);

#endif
