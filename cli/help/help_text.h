/* help_text.h: prints help on the program, a command or a topic as text. */
#ifndef VLMPROF_CLI_HELP_TEXT_H
#define VLMPROF_CLI_HELP_TEXT_H
#include "base/options.h"
#include "help/guide.h"
#include <stdio.h>

/* The exit codes of all commands, in one line. */
extern const char HELP_EXIT_CODES[];
/* The purpose of the program, in one line. */
extern const char HELP_PURPOSE[];

/* Prints the commands and topics. `commands` ends with NULL. */
void help_print_program(FILE *out, const struct command *const *commands);
/* Prints usage, options and examples of a command on stdout; without is_whole only its main options. */
void help_print_command(const struct command *command, int is_whole);
/* Prints a guide on stdout. */
void help_print_guide(const struct guide *guide);

/* Complains about a word that is not a command (or a topic, unless `topics` is 0). Names similar words and those that
 * begin with it. Returns EXIT_USAGE. */
int help_complain_unknown(const char *word, const struct command *const *commands, int topics);

#endif
