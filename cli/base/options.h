/* options.h: the parser of the command line. Each command brings its own table of options; checks and help come from it. */
#ifndef VLMPROF_CLI_OPTIONS_H
#define VLMPROF_CLI_OPTIONS_H
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind { FLAG, COUNT, REAL, TEXT, MAYBE, CHOICE, COUNTS, TEXTS } option_kind; /* MAYBE: a text, only as --name=TEXT */

typedef struct option_spec {
    const char *name;
    option_kind kind;
    const char *argument; /* as the help shows it */
    const char *fallback; /* default, in the words of the command line; NULL: none */
    int64_t least, most;  /* COUNT, REAL, COUNTS */
    const char *choices;  /* CHOICE: separated by spaces */
    const char *help;
} option_spec;

typedef struct option_value {
    int given;
    int64_t number; double real;
    const char *text;
    const char **items; int64_t *numbers; size_t count;
} option_value;

typedef struct options {
    const struct command *command;         /* its table says what there is */
    const struct command *const *commands; /* all of them, NULL at the end: whose option an unknown one is; may be NULL */
    option_value *values;                  /* for each row of the command's table */
    const char **operands; size_t operand_count;
    char **argv; int argc;
    char **pieces; size_t piece_count; /* copies made when lists were split at commas */
    const char **keys; size_t key_count; /* pairs of a key and its value (keyed_by) */
} options;

typedef struct command {
    const char *name, *operands, *summary, *example;
    size_t operands_most;
    const option_spec *options; size_t option_count;
    const char *keyed_by; /* options after which an unknown option is a key and its value, with spaces between them; NULL: none */
    int (*run)(const options *o);
} command;

/* Does this command have such an option? For rooms that several commands share. */
int has_option(const options *o, const char *name);

/* The value of an option of this command; a name that is not in its table is a mistake of the program. */
const option_value *opt(const options *o, const char *name);
int64_t number_of(const options *o, const char *name);
const char *text_of(const options *o, const char *name);
int given(const options *o, const char *name);

int edit_distance(const char *a, const char *b);

int parse_number(const char *text, int64_t *value);
int has_word(const char *words, const char *word);

/* tile with a model family: what is no option is a key of the family, checked when the family is known */
int takes_keys(const options *o);

/* The command's name is argv[1]; o->command and o->commands are set by the caller, all else is 0. Ends with options_free, also after a failure. */
int options_parse(options *o, int argc, char **argv);
void options_free(options *o);

/* getenv, in the form that vp_rank_from_environment asks for */
const char *environment(void *user, const char *name);

/* Says which keys there are; 0 or an exit code. */
int check_sort_key(const char *key);

#endif
