/* options.h: the parser of the command line. Each command brings its own table of options. argv comes in;
 * checked values come out, and a command reads them by name. */
#ifndef VLMPROF_CLI_OPTIONS_H
#define VLMPROF_CLI_OPTIONS_H
#include <stddef.h>
#include <stdint.h>

/* The value of an option: none (FLAG), an integer, a real number, a text, an optional text (MAYBE, only as
 * --name=TEXT), one of some words, a list of integers, a list of texts, or a list of texts that keep their commas in an
 * option that may be repeated (WHOLE_TEXTS). A GROUP is not an option: its name is a title in the help. */
typedef enum option_kind { FLAG, COUNT, REAL, TEXT, MAYBE, CHOICE, COUNTS, TEXTS, WHOLE_TEXTS, GROUP } option_kind;

struct option_spec {
    const char *name;
    option_kind kind;
    const char *argument; /* shown after the name in the help */
    const char *fallback; /* the default, as it would be typed; NULL if none */
    int64_t least, most;  /* range of COUNT, REAL and COUNTS */
    const char *choices;  /* words of CHOICE, separated by spaces */
    const char *help;
    /* Rules. A row without rules omits them; the rules of a GROUP apply to all its rows. Option names are separated by
     * spaces; names that the command does not have are ignored. */
    const char *needs;    /* one of these must also be given */
    const char *excludes; /* none of these may be given */
    const char *unless;   /* if one of these is given, no rule of the row applies */
    const char *because;  /* why it excludes them, or why it is required */
    int is_required;      /* 1 if the command needs it */
};
#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* rows omit unused rules */
#endif

struct option_value {
    int given;                                          /* 1 if it is on the command line; a default does not count */
    int64_t number; double real;                        /* COUNT; REAL */
    const char *text;                                   /* the last word as given, or NULL */
    const char **items; int64_t *numbers; size_t count; /* the lists */
};

struct options {
    const struct command *command;         /* the command that runs */
    const struct command *const *commands; /* NULL, or all commands, then NULL: to find an unknown option's owner */
    struct option_value *values;           /* one for each row of the command's table */
    const char **operands; size_t operand_count;
    char **argv; int argc;
    char **pieces; size_t piece_count;   /* copies that values and keys point to */
    const char **keys; size_t key_count; /* keys of a model family: names and values alternate */
};

struct command {
    const char *name, *operands, *summary, *example;
    size_t operands_most;
    const struct option_spec *options; size_t option_count;
    const char *keyed_by; /* option names, separated by spaces; if one is given, unknown options are keys */
    int (*run)(const struct options *options); /* returns an exit code */
    const char *main_options; /* names of the options that the short help shows, separated by spaces; NULL: all */
};

/* Returns 1 if this command has such an option. Shared code checks this before it reads the value. */
int has_option(const struct options *options, const char *name);

/* The value of an option of this command. A name that is not in its table is a bug, and the program aborts. */
const struct option_value *opt(const struct options *options, const char *name);
int64_t number_of(const struct options *options, const char *name);
const char *text_of(const struct options *options, const char *name);
int is_given(const struct options *options, const char *name);

/* The number of letters that differ between two names; swapped neighbours count as one. Returns 1000 if one is longer
 * than 64 bytes. */
int edit_distance(const char *one, const char *other);

/* Adds "; did you mean PREFIXword" to the text, or ", PREFIXword" after the first, if `typed` is similar to the word:
 * the word begins with it, one part of the word equals it, or few letters differ for its length. */
struct text_buffer;
void add_near_word(struct text_buffer *near, const char *typed, const char *prefix, const char *word);

/* Adds `unknown KIND "hihg"; did you mean high?`, or all the words, separated by spaces, if none is similar. */
void add_unknown_word(struct text_buffer *out, const char *kind, const char *value, const char *words);
/* Complains about an option's value in this form. Returns EXIT_USAGE. */
int complain_word(const char *option, const char *kind, const char *value, const char *words);

/* Returns 1 and sets *value if the text is an integer of at most 18 digits. */
int can_parse_number(const char *text, int64_t *value);

/* Returns 1 if `word` is one of the space-separated `words`. */
int has_word(const char *words, const char *word);

/* Returns 1 if one of the command's keyed_by options is on the command line. The keys are checked later, when the model
 * family is known. */
int has_family_keys(const struct options *options);

/* Parses argv[2...]. The caller sets `command` and `commands` of *options and clears everything else. Returns 0 or an
 * exit code. The caller calls options_free in both cases. */
int options_parse(struct options *options, int argc, char **argv);
void options_free(struct options *options);

/* Checks the rules of the given options. Returns 0 or an exit code. */
int options_check(const struct options *options);

/* Refuses a file to write that is an input, is already in a folder of inputs, or is written twice. Returns 0 or
 * EXIT_USAGE. */
int outputs_check(const struct options *options);

/* Checks a --sort_by key of the table of operations; NULL is valid. Returns 0, or an exit code after a message. */
int check_sort_key(const char *key);
#endif
