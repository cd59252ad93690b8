/* command_help.c: help on the program, a command or a topic. */
#include "base/console.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "help/help_text.h"

#include <string.h>

static const struct option_spec HELP_OPTIONS[] = {
    OPTION_GROUP("output"),
    {"all", FLAG, NULL, NULL, 0, 0, NULL, "every option of the command, not just the most common ones"},
    {"list", FLAG, NULL, NULL, 0, 0, NULL, "the names of all commands and topics, one per line"},
    OPTIONS_OF_ALL,
};

static const struct command *command_of(const struct command *const *commands, const char *name) {
    while (*commands && strcmp((*commands)->name, name) != 0) commands++;
    return *commands;
}
static void print_names(const struct command *const *commands) {
    for (size_t i = 0; commands[i]; i++) print_plain("%s\n", commands[i]->name);
    for (const struct guide *guide = GUIDES; guide->name; guide++) print_plain("%s\n", guide->name);
}
static int run_help(const struct options *options) {
    const char *word = options->operand_count ? options->operands[0] : NULL;
    const int of_results = word && (!strcmp(word, "result") || !strcmp(word, "results"));
    const struct guide *guide = word ? guide_find(of_results ? "library" : word) : NULL;
    const struct command *command = word ? command_of(options->commands, word) : NULL;
    if (word && is_given(options, "list"))
        return complain(EXIT_USAGE, "help: --list takes no command or topic: remove \"%s\"", word);
    if (is_given(options, "list")) print_names(options->commands);
    else if (!word) help_print_program(stdout, options->commands);
    else if (command) help_print_command(command, is_given(options, "all"));
    else if (guide) help_print_guide(guide);
    else return help_complain_unknown(word, options->commands, 1);
    return 0;
}

const struct command command_help = {
    "help", "[COMMAND|TOPIC]", "show the options of a command, or a guide to a topic",
    "vlmprof help sweep --all\n  vlmprof help torch", 1,
    COMMAND_OPTIONS(HELP_OPTIONS), NULL, run_help,
};
