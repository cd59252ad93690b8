/* commands.h: the commands of the program, each in its own file, command_NAME.c. A command is a struct: its name, help
 * texts, option table, and the function that runs it and returns the exit code. */
#ifndef VLMPROF_CLI_COMMANDS_H
#define VLMPROF_CLI_COMMANDS_H
#include "base/options.h"

#define COMMAND_OPTIONS(table) table, sizeof table / sizeof *table

/* in the order of the general help, whose groups are in cli/help/help_text.c */
#define VLMPROF_COMMANDS(X)                                                                                            \
    X(run)                                                                                                             \
    X(ask) X(sweep) X(merge) X(report) X(best) X(policy) X(compare) X(fit) X(predict) X(score) X(trace) X(tile)        \
        X(tokenize) X(audit) X(info) X(selftest) X(help)

#define DECLARE_COMMAND(name) extern const struct command command_##name;
VLMPROF_COMMANDS(DECLARE_COMMAND)
#undef DECLARE_COMMAND

#endif
