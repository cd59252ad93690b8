/* manual.h: prints help as manual pages in roff, for man: vlmprof(1), vlmprof-COMMAND(1), vlmprof-TOPIC(7). */
#ifndef VLMPROF_CLI_MANUAL_H
#define VLMPROF_CLI_MANUAL_H
#include "base/options.h"
#include "help/guide.h"

/* Each function prints one page on stdout. `commands` ends with NULL. */
void manual_print_program(const struct command *const *commands);
void manual_print_command(const struct command *command);
void manual_print_guide(const struct guide *guide);

#endif
