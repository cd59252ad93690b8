/* manual.c: prints help as manual pages in roff, for man: vlmprof(1), vlmprof-COMMAND(1), vlmprof-TOPIC(7). The pages
 * are made from the tables of commands and the lines of guides. The macros are man's: TH, SH, TP, PP, IP, nf. */
#include "help/help_text.h"

#include "vlmprof.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Prints a line's text, with roff's special characters escaped. Text in backquotes becomes bold. */
static void print_roff(const char *text) {
    int bold = 0;
    if (*text == '.' || *text == '\'') printf("\\&");
    for (; *text; text++) {
        if (*text == '\\') printf("\\e");
        else if (*text == '-') printf("\\-");
        else if (*text == '\'') printf("\\(aq");
        else if (*text == '^') printf("\\(ha");
        else if (*text == '~') printf("\\(ti");
        else if (*text == '`') printf("%s", (bold = !bold) ? "\\fB" : "\\fR");
        else putchar(*text);
    }
    if (bold) printf("\\fR");
}
static void print_roff_line(const char *text) {
    print_roff(text);
    putchar('\n');
}
static void print_title(const char *name, int section) {
    printf(".TH \"");
    for (const char *letter = name; *letter; letter++) putchar(toupper((unsigned char)*letter));
    printf("\" %d \"\" \"vlmprof %s\" \"vlmprof\"\n", section, VLMPROF_VERSION);
}
static void print_name(const char *name, const char *summary) {
    printf(".SH NAME\n");
    print_roff(name);
    printf(" \\- ");
    print_roff_line(summary);
}
/* Prints lines that are shown unchanged. */
static void print_example(const char *text) {
    printf(".PP\n.nf\n");
    while (*text) {
        const char *end = strchr(text, '\n');
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(end ? end - text : (long)strlen(text)), text);
        print_roff_line(line);
        text = end ? end + 1 : text + strlen(text);
    }
    printf(".fi\n");
}

void manual_print_program(const struct command *const *commands) {
    print_title("vlmprof", 1);
    print_name("vlmprof", HELP_PURPOSE);
    printf(".SH SYNOPSIS\n.B vlmprof\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n.B vlmprof help\n[\\fICOMMAND\\fR|"
           "\\fITOPIC\\fR]\n.SH COMMANDS\n");
    for (; *commands; commands++) {
        printf(".TP\n.BR vlmprof\\-%s (1)\n", (*commands)->name);
        print_roff_line((*commands)->summary);
    }
    printf(".SH TOPICS\n");
    for (const struct guide *guide = GUIDES; guide->name; guide++) {
        printf(".TP\n.BR vlmprof\\-%s (7)\n", guide->name);
        print_roff_line(guide_summary(guide));
    }
    printf(".SH EXIT STATUS\n");
    print_roff_line(HELP_EXIT_CODES);
}
void manual_print_command(const struct command *command) {
    char name[64];
    snprintf(name, sizeof name, "vlmprof-%s", command->name);
    print_title(name, 1);
    print_name(name, command->summary);
    printf(".SH SYNOPSIS\n.B vlmprof %s\n", command->name);
    print_roff(command->operands);
    printf("%s[\\fIOPTIONS\\fR]\n.SH OPTIONS\nHyphens and underscores in option names are equivalent.\n",
           command->operands[0] ? "\n" : "");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        if (spec->kind == GROUP) {
            printf(".SS %s\n", spec->name);
            continue;
        }
        printf(".TP\n\\fB\\-\\-");
        print_roff(spec->name);
        printf("\\fR");
        if (spec->argument) {
            printf(" \\fI");
            print_roff(spec->argument);
            printf("\\fR");
        }
        printf("\n");
        print_roff(spec->help);
        if (spec->choices) {
            printf(" (one of: ");
            print_roff(spec->choices);
            printf(")");
        }
        if (shown_default(spec)) {
            printf(" (default ");
            print_roff(spec->fallback);
            printf(")");
        }
        printf("\n");
    }
    printf(".SH EXAMPLES\n");
    print_example(command->example);
    printf(".SH EXIT STATUS\n");
    print_roff_line(HELP_EXIT_CODES);
    printf(".SH SEE ALSO\n.BR vlmprof (1)\n");
}
void manual_print_guide(const struct guide *guide) {
    char name[64];
    int verbatim = 0, in_list = 0, paragraph = 1;
    snprintf(name, sizeof name, "vlmprof-%s", guide->name);
    print_title(name, 7);
    print_name(name, guide_summary(guide));
    printf(".SH DESCRIPTION\n");
    for (size_t i = 1; i < guide->line_count; i++) {
        const char *line = guide->lines[i];
        int shown = line[0] == ' ' && !in_list;
        if (!*line) { /* an empty line between unchanged lines is kept; elsewhere it ends a paragraph or a list */
            int next_is_shown = i + 1 < guide->line_count && guide->lines[i + 1][0] == ' ';
            if (verbatim && next_is_shown) printf("\n");
            else paragraph = 1;
            in_list = 0;
            continue;
        }
        if (verbatim && !shown) printf(".fi\n");
        if (!verbatim && shown) printf(".PP\n.nf\n");
        verbatim = shown;
        if (!strncmp(line, "## ", 3)) printf(".SH \"");
        else if (!strncmp(line, "- ", 2)) {
            printf(".IP \\(bu 2\n");
            in_list = 1;
        } else if (!shown && !in_list && paragraph) printf(".PP\n");
        paragraph = 0;
        if (!strncmp(line, "## ", 3)) {
            for (const char *letter = line + 3; *letter; letter++) putchar(toupper((unsigned char)*letter));
            printf("\"\n");
        } else print_roff_line(shown ? line + 2 : !strncmp(line, "- ", 2) || in_list ? line + 2 : line);
    }
    if (verbatim) printf(".fi\n");
    printf(".SH SEE ALSO\n.BR vlmprof (1)\n");
}
