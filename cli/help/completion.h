/* completion.h: scripts that complete commands, options and their values in bash, zsh and fish. */
#ifndef VLMPROF_CLI_COMPLETION_H
#define VLMPROF_CLI_COMPLETION_H
#include "base/options.h"

/* Prints the script for a shell ("bash", "zsh" or "fish") on stdout. `commands` ends with NULL. */
void completion_print(const char *shell, const struct command *const *commands);

#endif
