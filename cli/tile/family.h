/* family.h: a model family of the command line.
 * A name and keys come in; a vp_family with its keys set comes out. */
#ifndef VLMPROF_CLI_FAMILY_H
#define VLMPROF_CLI_FAMILY_H
#include "base/options.h"
#include "vlmprof_families.h"

/* The family of that name. Returns 0, or an exit code after naming those that may be meant. */
int family_by_name(const char *name, vp_family *family);

/* Sets the keys of the command line, which stand beside an option of `keyed_by`, in all families that have them;
 * --max_crops too. Returns 0 or an exit code. */
int family_set_keys(const struct options *options, vp_family *families, size_t family_count);

#endif
