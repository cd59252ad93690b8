/* cli.c: the vlmprof command line: the list of commands, the general help, and main.
 * argv comes in; main finds the command, parses its options and calls its run function. The exit code goes out.
 * Each command lives in cli/commands/command_NAME.c. A new command needs such a file and its name in commands.h. The
 * rooms that commands share lie in the folders beside commands/, named along the way of the data: base, tile, score,
 * request, dataset, sweep, report, trace. A room includes what it uses. No two rooms include each other, no command
 * uses another, and what reads results never needs the engine. */
#include "base/console.h"
#include "base/memory.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/provenance.h"
#include "vlmprof.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND(name) &command_##name,
static const struct command *const COMMANDS[] = {VLMPROF_COMMANDS(COMMAND) NULL};

static void print_usage(FILE *out) {
    fprintf(out, "vlmprof %s: where the milliseconds of a vision-language model go, and what accuracy they buy\n\n"
                 "usage: vlmprof COMMAND [OPTIONS]\n\n", VLMPROF_VERSION);
    for (const struct command *const *command = COMMANDS; *command; command++)
        fprintf(out, "  %-9s %s\n", (*command)->name, (*command)->summary);
    fprintf(
        out,
        "\nvlmprof COMMAND --help shows a command's options with an example; vlmprof --version the version.\n"
        "exit codes: 0 done, 1 some work failed, 2 usage, 3 bad input, 4 memory or device, 5 output not written (also "
        "a closed pipe), 130 interrupted\n");
}
static void print_help(const struct command *command) {
    printf("usage: vlmprof %s %s [OPTIONS]\n\n%s\n\noptions:\n", command->name, command->operands, command->summary);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        char head[64];
        snprintf(head, sizeof head, "--%s%s%s", spec->name, spec->argument ? " " : "",
                 spec->argument ? spec->argument : "");
        printf("  %-32s %s", head, spec->help);
        if (spec->fallback) printf(" (default %s)", spec->fallback);
        printf("\n");
    }
    printf("\nexample:\n  %s\n", command->example);
}

static int unknown_command(const char *name) {
    const char *best = COMMANDS[0]->name;
    for (const struct command *const *command = COMMANDS; *command; command++)
        if (edit_distance(name, (*command)->name) < edit_distance(name, best)) best = (*command)->name;
    return complain(EXIT_USAGE, "unknown command \"%.60s\"; the nearest is %s; see vlmprof --help", name, best);
}

/* Starts the program once more with an environment that keeps idle OpenMP threads from spinning long. The OpenMP
 * runtime reads that setting before main. Its default spins through the time slice of a busy neighbour: on a loaded
 * machine every barrier then costs 4 ms. */
static void restart_with_short_spin(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("GOMP_SPINCOUNT", "1000", 1);
    execv("/proc/self/exe", argv); /* returns only when it fails: the program then continues as it is */
}

/* Parses the command's options and runs it, or prints its help. Returns the exit code. */
static int start_command(const struct command *command, int argc, char **argv) {
    struct options options;
    int code;
    memset(&options, 0, sizeof options);
    options.command = command;
    options.commands = COMMANDS;
    code = options_parse(&options, argc, argv);
    if (!code && is_given(&options, "help")) print_help(command);
    else if (!code && options.operand_count > command->operands_most)
        code = complain(EXIT_USAGE, "%s: \"%s\" is one operand too many; usage: vlmprof %s %s", command->name,
                        options.operands[command->operands_most], command->name, command->operands);
    else if (!code) code = command->run(&options);
    options_free(&options);
    return code;
}

/* Runs what the words ask for. Returns the exit code. */
static int start(int argc, char **argv) {
    const struct command *command = NULL;
    int code = 0;
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    restart_with_short_spin(argv);
    for (const struct command *const *each = COMMANDS; *each; each++)
        if (!strcmp(argv[1], (*each)->name)) command = *each;
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) print_usage(stdout);
    else if (!strcmp(argv[1], "--version")) printf("vlmprof %s (%s)\n", VLMPROF_VERSION, build_text());
    else if (command) code = start_command(command, argc, argv);
    else return unknown_command(argv[1]);
    return end_output(code);
}
int main(int argc, char **argv) {
    catch_signals();
    answer_for_libraries();
    return own_end(start(argc, argv));
}
