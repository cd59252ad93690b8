/* help_text.h: prints help on the program, a command or a topic as text. */
#ifndef VLMPROF_CLI_HELP_TEXT_H
#define VLMPROF_CLI_HELP_TEXT_H
#include "base/options.h"
#include <stddef.h>
#include <stdio.h>

/* ---- the guides in the program */
struct guide {
    const char *name;
    const char *const *lines; size_t line_count; /* without line ends */
};
/* In order of names; the last one has no name. */
extern const struct guide GUIDES[];

/* The guide with this name, or NULL. */
const struct guide *guide_find(const char *name);

/* Prints what to begin with, commands and topics. `commands` ends with NULL. */
void help_print_program(FILE *out, const struct command *const *commands);
/* Prints examples, usage and options of a command on stdout; without is_whole only its main options. */
void help_print_command(const struct command *command, int is_whole);
/* Prints a guide on stdout. */
void help_print_guide(const struct guide *guide);

/* Complains about a word that is not a command (or a topic, unless `topics` is 0). Names similar words and those that
 * begin with it. Returns EXIT_USAGE. */
int help_complain_unknown(const char *word, const struct command *const *commands, int topics);
#endif
