/* commands.h: the commands of the program, each in a file of its own, command_NAME.c.
 * A command is a struct: its name, help texts, option table, and the function that runs it and returns the exit
 * code. */
#ifndef VLMPROF_CLI_COMMANDS_H
#define VLMPROF_CLI_COMMANDS_H
#include "base/options.h"

extern const struct command command_run, command_tile, command_sweep, command_merge, command_tokenize, command_score,
    command_rescore, command_convert, command_report, command_fit, command_predict,
    command_best, command_compare, command_trace, command_info, command_selftest;

#endif
