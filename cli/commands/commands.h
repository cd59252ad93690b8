/* commands.h: the commands of the program, each in a file of its own. */
#ifndef VLMPROF_CLI_COMMANDS_H
#define VLMPROF_CLI_COMMANDS_H
#include "base/options.h"

extern const command command_run, command_tile, command_sweep, command_merge, command_tokenize, command_score,
    command_rescore, command_convert, command_report, command_fit, command_predict,
    command_best, command_compare, command_trace, command_info, command_selftest;

#endif
