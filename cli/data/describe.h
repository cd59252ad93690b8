/* describe.h: what a loaded data set contains, for sweep --plan. */
#ifndef VLMPROF_CLI_DESCRIBE_H
#define VLMPROF_CLI_DESCRIBE_H
#include "data/dataset.h"

/* Prints format, samples, images, answers, metric and a prompt, in a few lines on stdout. Returns 0, or an exit code if
 * a sample cannot be read. */
int dataset_print(const struct dataset *dataset, const struct model *model);

/* The same as an element of the open array. */
int dataset_put(vp_json_writer *writer, const struct dataset *dataset, const struct model *model);

#endif
