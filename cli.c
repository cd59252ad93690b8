/* cli.c: the vlmprof command line: the list of commands, and main. main finds the command in argv, parses its options
 * and calls its run function, which returns the exit code. Each command is in cli/commands/command_NAME.c. A new
 * command needs such a file, and its name in commands.h. What commands share is in the folders next to commands/;
 * tests/check_layers.sh lists what each may include. No two folders include each other, no command uses another, and
 * the code that reads results never needs the engine. */
#include "base/console.h"
#include "base/memory.h"
#include "base/options.h"
#include "commands/commands.h"
#include "help/help_text.h"
#include "measure/provenance.h"
#include "vlmprof.h"

#include <sys/resource.h>
#include <unistd.h>

#define COMMAND(name) &command_##name,
static const struct command *const COMMANDS[] = {VLMPROF_COMMANDS(COMMAND) NULL};

/* Restarts the program with an environment that keeps idle OpenMP threads from spinning long. The OpenMP runtime reads
 * that setting before main. By default, a thread spins through the time slice of a busy neighbour, so that every
 * barrier costs 4 ms on a loaded machine. */
static void restart_with_short_spin(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("GOMP_SPINCOUNT", "1000", 1);
    execv("/proc/self/exe", argv); /* returns only if it fails; the program then continues unchanged */
}

/* Makes sure that the stack is large enough, because a stack overflow would be a segmentation fault. After raising the
 * limit, restarts the program, because threads get their stacks before main. Returns 0 or an exit code. */
static int check_stack(char **argv) {
    const rlim_t least = 512 << 10, usual = 8 << 20; /* bytes; 128 KiB were enough for all tested commands */
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= least) return 0;
    if (limit.rlim_max >= least) {
        limit.rlim_cur = limit.rlim_max < usual ? limit.rlim_max : usual;
        if (!setrlimit(RLIMIT_STACK, &limit)) execv("/proc/self/exe", argv);
    }
    return complain(EXIT_DEVICE, "the stack is limited to %llu KiB, but vlmprof needs %llu: raise the limit (ulimit "
                                 "-s)", (unsigned long long)limit.rlim_cur >> 10, (unsigned long long)least >> 10);
}
/* Parses the command's options and runs it, or prints its help. Returns the exit code. */
static int start_command(const struct command *command, int argc, char **argv) {
    struct options options = {.command = command, .commands = COMMANDS};
    int code = options_parse(&options, argc, argv);
    if (!code) console_configure(is_given(&options, "quiet"));
    if (!code && is_given(&options, "help")) help_print_command(command, 0);
    else if (!code && options.operand_count > command->operands_most)
        code = complain(EXIT_USAGE, "%s: unexpected argument \"%s\"; usage: vlmprof %s %s", command->name,
                        options.operands[command->operands_most], command->name, command->operands);
    else if (!code && (code = options_check(&options)) == 0 && (code = outputs_check(&options)) == 0)
        code = command->run(&options);
    options_free(&options);
    return code;
}

/* Runs the command line. Returns the exit code. */
static int start(int argc, char **argv) {
    const struct command *command = NULL;
    int code = 0;
    if (argc < 2) {
        help_print_program(stderr, COMMANDS);
        return EXIT_USAGE;
    }
    restart_with_short_spin(argv);
    for (const struct command *const *each = COMMANDS; *each; each++)
        if (!strcmp(argv[1], (*each)->name)) command = *each;
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) help_print_program(stdout, COMMANDS);
    else if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
        printf("vlmprof %s (%s)\n", VLMPROF_VERSION, build_text());
    else if (command) code = start_command(command, argc, argv);
    else return help_complain_unknown(argv[1], COMMANDS, 0);
    return end_output(code);
}
int main(int argc, char **argv) {
    const int code = check_stack(argv);
    if (code) return code;
    catch_signals();
    watch_library_exits();
    return mark_own_exit(start(argc, argv));
}
