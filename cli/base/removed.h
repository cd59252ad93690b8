/* removed.h: commands and options of version 0.2 that are gone, each with what to do instead. A word of this table is
 * answered with its row for one version; delete the rows of 0.2 when 0.4 is released. The commit in the README's last
 * section is the last one that has them. */
#ifndef VLMPROF_CLI_REMOVED_H
#define VLMPROF_CLI_REMOVED_H

#include <stddef.h>

struct removed_word {
    const char *command; /* NULL for any command; --gpu: the row is a word of that option */
    const char *option;  /* its name without hyphens; NULL for the command itself */
    const char *instead; /* what to do now; completes "... was removed: " */
};
extern const struct removed_word REMOVED_WORDS[]; /* ends with a row without `instead` */

/* Returns what to do instead of a command, or of one of its options; NULL if the word was never removed. */
const char *removed_find(const char *command, const char *option);
#endif
