/* load_accuracy.h: does a server answer worse under load? Compares trials with a trial that sends one request at a
 * time. */
#ifndef VLMPROF_CLI_LOAD_ACCURACY_H
#define VLMPROF_CLI_LOAD_ACCURACY_H
#include "load/load_result.h"

/* The trial with the same plan as `level` and one request at a time; NULL if there is none, or if it is `level`. */
const struct load_level *load_unloaded_of(const struct load_level *level, const struct load_level *levels,
                                          size_t count);

/* The accuracy of `level` minus that of `unloaded`, with a 95 % interval, over the samples that both used; each sample
 * counts once. Returns 0, with change->count 0 if there are no such samples, or an exit code after a message. */
int load_accuracy_change(const struct load_level *unloaded, const struct load_level *level,
                         vp_bounded_interval *change);

/* Adds the table of accuracies and of correct goodput; adds nothing if no answer has a score. Returns 0, or an exit
 * code after a message. */
int load_accuracy_add(struct document *document, const struct load_level *levels, size_t count);

#endif
