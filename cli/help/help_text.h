/* help_text.h: help as text on a terminal: of the program, of a command, of a topic. */
#ifndef VLMPROF_CLI_HELP_TEXT_H
#define VLMPROF_CLI_HELP_TEXT_H
#include "base/options.h"
#include "help/guide.h"
#include <stdio.h>

/* The exit codes of all commands, in one line. */
extern const char HELP_EXIT_CODES[];
/* What the program is for, in one line. */
extern const char HELP_PURPOSE[];

/* The commands and topics. `commands` ends with NULL. */
void help_print_program(FILE *out, const struct command *const *commands);
/* Usage, options and examples of a command, on stdout. */
void help_print_command(const struct command *command);
/* A guide, on stdout. */
void help_print_guide(const struct guide *guide);

/* Complains about a word that is not a command (and no topic, unless `topics` is 0). Names the near misses and the
 * words that begin with it. Returns EXIT_USAGE. */
int help_complain_unknown(const char *word, const struct command *const *commands, int topics);

#endif
