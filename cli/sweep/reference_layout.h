/* reference_layout.h: result files in the folders and under the names that the reference's scripts read.
 * Folders with result files come in; one OUT/TASK/combined_profiling_results_NAME.json per file goes out. */
#ifndef VLMPROF_CLI_REFERENCE_LAYOUT_H
#define VLMPROF_CLI_REFERENCE_LAYOUT_H
#include "base/memory.h"
#include <stddef.h>

/* The paths of the files written, and a warning for each file that was not. */
struct reference_layout { struct text_list written, warnings; };

/* Copies the result files of the folders to `out`. Rows that lack a number the scripts need are skipped, and so are
 * files without any other row; both give a warning. Nothing is written if a file would replace one that is not a result
 * file of the same sweep, or if a task's folder contains another JSON file. Returns 0, EXIT_WORK if a file was skipped,
 * or another exit code after a message. */
int reference_layout_write(const char *const *folders, size_t folder_count, const char *out,
                           struct reference_layout *layout);
void reference_layout_free(struct reference_layout *layout);

#endif
