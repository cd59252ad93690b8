/* completion.c: prints scripts that complete commands, options and their values in bash, zsh and fish. They are made
 * from the commands' option tables, the guides and the list of model families. Values of an option are its choices, the
 * families, or files. */
#include "help/help_text.h"

#include "vlmprof_families.h"

#include <stdio.h>
#include <string.h>

/* Prints the possible values of an option, separated by spaces. */
static void print_values(const struct option_spec *spec) {
    if (spec->choices) printf("%s", spec->choices);
    for (int32_t i = 0; !spec->choices && vp_family_at(i); i++) printf("%s%s", i ? " " : "", vp_family_at(i)->name);
}
static int has_values(const struct option_spec *spec) {
    return spec->choices || !strcmp(spec->name, "family") || !strcmp(spec->name, "compare");
}
/* Prints the names of all commands and, if requested, all topics, separated by spaces. */
static void print_words(const struct command *const *commands, int topics) {
    for (const struct command *const *command = commands; *command; command++)
        printf("%s%s", command == commands ? "" : " ", (*command)->name);
    for (const struct guide *guide = GUIDES; topics && guide->name; guide++) printf(" %s", guide->name);
}
/* Prints the two case commands that bash and zsh share. They set $values by command and option, and $options by
 * command. The shell sets $command, and $previous with underscores for hyphens. */
static void print_cases(const struct command *const *commands) {
    printf("    case $command:$previous in\n"
           "    help:help) values=\"");
    print_words(commands, 1);
    printf("\";;\n");
    for (const struct command *const *command = commands; *command; command++)
        for (size_t i = 0; i < (*command)->option_count; i++) {
            if (!has_values(&(*command)->options[i])) continue;
            printf("    %s:__%s) values=\"", (*command)->name, (*command)->options[i].name);
            print_values(&(*command)->options[i]);
            printf("\";;\n");
        }
    printf("    esac\n    case $command in\n");
    for (const struct command *const *command = commands; *command; command++) {
        printf("    %s) options=\"", (*command)->name);
        for (size_t i = 0; i < (*command)->option_count; i++)
            if ((*command)->options[i].kind != GROUP) printf(" --%s", (*command)->options[i].name);
        printf("\";;\n");
    }
    printf("    esac\n");
}
static void print_bash(const struct command *const *commands) {
    printf("_vlmprof() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]//-/_}\n"
           "    local command=${COMP_WORDS[1]} values= options=\n"
           "    COMPREPLY=()\n");
    print_cases(commands);
    printf("    if [ \"$COMP_CWORD\" -eq 1 ]; then values=\"");
    print_words(commands, 0);
    printf(" --help --version\"; fi\n"
           "    if [ -n \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
           "    elif [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
           "    else COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames 2>/dev/null; fi\n"
           "}\n"
           "complete -F _vlmprof vlmprof\n");
}
static void print_zsh(const struct command *const *commands) {
    printf("_vlmprof() {\n"
           "    local previous=${words[CURRENT-1]//-/_} command=${words[2]} values= options=\n");
    print_cases(commands);
    printf("    if (( CURRENT == 2 )); then values=\"");
    print_words(commands, 0);
    printf(" --help --version\"; fi\n"
           "    if [[ -n $values ]]; then compadd -- ${=values}\n"
           "    elif [[ $PREFIX == -* ]]; then compadd -- ${=options}\n"
           "    else _files; fi\n"
           "}\n"
           "if [[ $funcstack[1] == _vlmprof ]]; then _vlmprof \"$@\"; else compdef _vlmprof vlmprof; fi\n");
}
/* Prints a text inside single quotes of fish. */
static void print_fish_text(const char *text) {
    putchar('\'');
    for (; *text; text++) printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    putchar('\'');
}
static void print_fish(const struct command *const *commands) {
    for (const struct command *const *command = commands; *command; command++) {
        printf("complete -c vlmprof -n __fish_use_subcommand -f -a %s -d ", (*command)->name);
        print_fish_text((*command)->summary);
        printf("\n");
        for (size_t i = 0; i < (*command)->option_count; i++) {
            const struct option_spec *spec = &(*command)->options[i];
            if (spec->kind == GROUP) continue;
            printf("complete -c vlmprof -n '__fish_seen_subcommand_from %s' -l %s", (*command)->name, spec->name);
            if (has_values(spec)) {
                printf(" -x -a '");
                print_values(spec);
                printf("'");
            } else if (spec->kind != FLAG && spec->kind != MAYBE) printf(" -r");
            printf(" -d ");
            print_fish_text(spec->help);
            printf("\n");
        }
    }
    printf("complete -c vlmprof -n '__fish_seen_subcommand_from help' -f -a '");
    print_words(commands, 1);
    printf("'\n");
}

void completion_print(const char *shell, const struct command *const *commands) {
    const int is_zsh = !strcmp(shell, "zsh");
    printf("%s# completion of vlmprof for %s; made by: vlmprof help --completion %s\n",
           is_zsh ? "#compdef vlmprof\n" : "", shell, shell);
    (is_zsh ? print_zsh : !strcmp(shell, "fish") ? print_fish : print_bash)(commands);
}
