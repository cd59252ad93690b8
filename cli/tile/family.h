/* family.h: a model family of the command line.
 * A name and keys come in; a vp_family with its keys set comes out. */
#ifndef VLMPROF_CLI_FAMILY_H
#define VLMPROF_CLI_FAMILY_H
#include "base/options.h"
#include "vlmprof_families.h"

/* The family of that name, which --OPTION gave. Returns 0, or an exit code after naming those that may be meant. */
int family_by_name(const char *option, const char *name, vp_family *family);

/* Sets the keys of the command line, which are next to an option of `keyed_by`, in all families that have them;
 * --max_crops too. Returns 0 or an exit code. */
int family_set_keys(const struct options *options, vp_family *families, size_t family_count);

/* The size with an image's shape that costs most tokens by the rule of a family, but no more than max_tokens. Of
 * several such sizes it is the one that is nearest to the image's own, so an image that fits keeps its size: then both
 * become 0. Returns 0, or EXIT_INPUT with a reason where every size costs more; nothing is printed. */
int family_size_for(const vp_family *family, int32_t width_px, int32_t height_px, int64_t max_tokens,
                    int32_t *sent_width_px, int32_t *sent_height_px, char *reason, size_t capacity);

#endif
