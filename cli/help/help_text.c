/* help_text.c: prints help on the program, a command or a topic as text. */
#include "help/help_text.h"

#include "base/console.h"
#include "base/memory.h"

#include <ctype.h>

const struct guide *guide_find(const char *name) {
    for (const struct guide *guide = GUIDES; guide->name; guide++)
        if (!strcmp(guide->name, name)) return guide;
    return NULL;
}

static void print_heading(const char *before, const char *text, const char *behind) {
    printf("%s%s%s%s%s\n", before, color_bytes(stdout, COLOR_BOLD), text, behind, color_bytes(stdout, COLOR_END));
}

/* The groups of the commands, each with its first one. */
static const char *const GROUPS[][2] = {{"run", "measure"}, {"report", "read results"}, {"tile", "check"}};

void help_print_program(FILE *out, const struct command *const *commands) {
    fprintf(out,
            "vlmprof %s: show where the milliseconds of a vision-language model go, and what accuracy they buy\n\n"
            "usage: vlmprof COMMAND [OPTIONS]\n\nstart with:\n"
            "  a model on this machine   vlmprof run IMAGE -p \"What is this?\" --model DIR (or --synthetic tiny)\n"
            "  a transformers model      pip install \"./python[torch]\"; vlmprof help torch\n"
            "  a server                  vlmprof ask IMAGE -p \"What is this?\" --endpoint URL\n"
            "  your own C or C++ engine  vlmprof help library\n",
            VLMPROF_VERSION);
    for (; *commands; commands++) {
        for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++)
            if (!strcmp((*commands)->name, GROUPS[i][0])) fprintf(out, "\n%s:\n", GROUPS[i][1]);
        fprintf(out, "  %-9s %s\n", (*commands)->name, (*commands)->summary);
    }
    fprintf(out, "\nvlmprof help COMMAND shows examples and options; vlmprof help TOPIC shows a guide:");
    for (const struct guide *guide = GUIDES; guide->name; guide++)
        fprintf(out, "%s  %s", (guide - GUIDES) % 10 ? "" : "\n", guide->name);
    fprintf(out,
            "\n\nexit codes: 0 done, 1 some work failed or got worse, 2 usage, 3 bad input, 4 memory or device, 5 "
            "output not written, 130 interrupted\n");
}
void help_print_command(const struct command *command, int is_whole) {
    const char *shown = is_whole ? NULL : command->main_options, *group = NULL;
    int more = 0;
    printf("%s - %s\n", command->name, command->summary);
    print_heading("\n", "examples", ":");
    printf("  %s\n\nusage: vlmprof %s %s%s[OPTIONS]\n", command->example, command->name, command->operands,
           command->operands[0] ? " " : "");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *spec = &command->options[i];
        char head[64];
        if (spec->kind == GROUP) {
            group = spec->name;
            continue;
        }
        if (!strcmp(spec->name, "help")) continue; /* who reads this knows it */
        if (shown && !has_word(shown, spec->name)) {
            more++;
            continue;
        }
        if (group) print_heading("\n", group, ":");
        group = NULL;
        snprintf(head, sizeof head, "--%s%s%s", spec->name, spec->argument ? " " : "",
                 spec->argument ? spec->argument : "");
        printf("  %-32s %s", head, spec->help);
        if (spec->fallback && !strstr(spec->help, "(default")) printf(" (default %s)", spec->fallback);
        printf("\n");
    }
    if (more) printf("\n%d more: vlmprof help %s --all\n", more, command->name);
}
void help_print_guide(const struct guide *guide) {
    for (size_t i = 0; i < guide->line_count; i++) {
        const char *line = guide->lines[i];
        char heading[120];
        if (strncmp(line, "## ", 3) != 0) {
            printf("%s\n", line);
            continue;
        }
        snprintf(heading, sizeof heading, "%s", line + 3);
        for (char *letter = heading; *letter; letter++) *letter = (char)toupper((unsigned char)*letter);
        print_heading("", heading, "");
    }
}

int help_complain_unknown(const char *word, const struct command *const *commands, int topics) {
    struct text_buffer near = {NULL, 0, 0};
    for (; *commands; commands++) add_near_word(&near, word, "", (*commands)->name);
    for (const struct guide *guide = GUIDES; topics && guide->name; guide++)
        add_near_word(&near, word, "", guide->name);
    int code =
        complain(EXIT_USAGE, "unknown %s \"%.60s\"%.300s%s vlmprof help lists them all",
                 topics ? "command or topic" : "command", word, near.bytes ? near.data : "", near.bytes ? "?" : ";");
    free(near.data);
    return code;
}
