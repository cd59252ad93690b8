/* options.c: the parser of the command line.
 * Words of argv come in one by one and are checked against the command's table. Each value is stored in the row's
 * struct option_value; a wrong word ends the parse with a message and an exit code. */
#include "base/files.h"
#include "base/options.h"

#include "base/console.h"
#include "vlmprof_ranges.h"

#include <ctype.h>
#include <sys/stat.h>

/* Returns 1 if both name the same option. Hyphens and underscores are equivalent. */
static int is_same_name(const char *one, const char *other, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (one[i] != other[i] && !(one[i] == '_' && other[i] == '-')) return 0;
    return !one[bytes];
}
/* The index of an option in the command's table, or -1. */
static int option_find(const struct command *command, const char *name, size_t bytes) {
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].kind != GROUP && strlen(command->options[i].name) >= bytes
            && is_same_name(command->options[i].name, name, bytes))
            return (int)i;
    return -1;
}
int has_option(const struct options *options, const char *name) {
    return option_find(options->command, name, strlen(name)) >= 0;
}
const struct option_value *opt(const struct options *options, const char *name) {
    int index = option_find(options->command, name, strlen(name));
    if (index < 0) abort();
    return &options->values[index];
}
int64_t number_of(const struct options *options, const char *name) { return opt(options, name)->number; }
const char *text_of(const struct options *options, const char *name) { return opt(options, name)->text; }
int is_given(const struct options *options, const char *name) { return opt(options, name)->given; }

static int least(int one, int other) { return one < other ? one : other; }
int edit_distance(const char *one, const char *other) {
    enum { LETTERS_MOST = 64 };
    int rows[3][LETTERS_MOST + 1], one_length = (int)strlen(one), other_length = (int)strlen(other);
    if (one_length > LETTERS_MOST || other_length > LETTERS_MOST) return 1000;
    for (int i = 0; i <= one_length; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        for (int j = 0; j <= other_length; j++) {
            row[j] = i && j ? above[j - 1] + (one[i - 1] != other[j - 1]) : i + j;
            if (i && j) row[j] = least(row[j], least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[one_length % 3][other_length];
}

/* Returns 1 if the word is one of the parts of a name, which _ separates. */
static int is_part(const char *name, const char *word, size_t bytes) {
    for (const char *part = name; *part; part += strcspn(part, "_"), part += *part == '_')
        if (bytes >= 3 && strcspn(part, "_") == bytes && !strncmp(part, word, bytes)) return 1;
    return 0;
}
static int is_near_word(const char *typed, const char *word) {
    size_t typed_bytes = strlen(typed), bytes = strlen(word), shorter = typed_bytes < bytes ? typed_bytes : bytes;
    size_t same = 0;
    while (same < shorter && typed[same] == word[same]) same++;
    return (same >= 3 && same + 1 >= typed_bytes) || is_part(word, typed, typed_bytes)
           || edit_distance(typed, word) <= (int)((shorter + 1) / 3);
}
void add_near_word(struct text_buffer *near, const char *typed, const char *prefix, const char *word) {
    if (!is_near_word(typed, word)) return;
    text_add_string(near, near->bytes ? ", " : "; did you mean ");
    text_add_string(near, prefix);
    text_add_string(near, word);
}

void add_unknown_word(struct text_buffer *out, const char *kind, const char *value, const char *words) {
    struct text_buffer near = {NULL, 0, 0};
    char line[160];
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
        char *word = copy_text(at, strcspn(at, " "));
        add_near_word(&near, value, "", word);
        free(word);
    }
    snprintf(line, sizeof line, "unknown %s \"%.60s\"", kind, value);
    text_add_string(out, line);
    text_add_string(out, near.bytes ? near.data : "; expected one of: ");
    text_add_string(out, near.bytes ? "?" : words);
    free(near.data);
}
int complain_word(const char *option, const char *kind, const char *value, const char *words) {
    struct text_buffer line = {NULL, 0, 0};
    add_unknown_word(&line, kind, value, words);
    int code = complain(EXIT_USAGE, "--%s: %s", option, line.data);
    free(line.data);
    return code;
}

int can_parse_number(const char *text, int64_t *value) {
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    if (!digits || digits > 18 || text[digits + (*text == '-')]) return 0;
    *value = strtoll(text, NULL, 10);
    return 1;
}
/* Returns 1 and sets *value if the text consists of digits with at most one point. */
static int can_parse_real(const char *text, double *value) {
    size_t digits = strspn(text, "0123456789"),
           more = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    if (!(digits + more) || digits + more > 18 || text[digits + (text[digits] == '.') + more]) return 0;
    *value = strtod(text, NULL);
    return 1;
}
int has_word(const char *words, const char *word) {
    size_t bytes = strlen(word);
    for (const char *found = words; bytes && (found = strstr(found, word)) != NULL; found += bytes)
        if ((found == words || found[-1] == ' ') && (found[bytes] == ' ' || !found[bytes])) return 1;
    return 0;
}

/* Returns 1 if the option takes a file or folder, whose name may be any bytes. */
static int is_path_option(const char *name) {
    return has_word(
        "model data html output_dir sizes checkpoint tokenizer dump importance_scores_file annotations image_dir "
        "output scores baseline recalibrate trace api_key_file ca_file",
        name);
}
static int is_list(const struct option_spec *spec) {
    return spec->kind == COUNTS || spec->kind == TEXTS || spec->kind == WHOLE_TEXTS;
}
/* Checks one word against a row of the table and reads its number. Returns 0 or an exit code. */
static int option_check(const struct option_spec *spec, const char *word, int64_t *number, double *real) {
    if (vp_utf8_valid_bytes(word, strlen(word)) != strlen(word) && !is_path_option(spec->name))
        return complain(EXIT_USAGE, "--%s: the text is not valid UTF-8", spec->name);
    if (spec->kind == COUNT || spec->kind == COUNTS) {
        if (!can_parse_number(word, number))
            return complain(EXIT_USAGE, "--%s: \"%s\" is not a whole number", spec->name, word);
        if (!(*number >= spec->least && *number <= spec->most))
            return complain(EXIT_USAGE, "--%s: %s is outside %lld..%lld", spec->name, word, (long long)spec->least,
                            (long long)spec->most);
    }
    if (spec->kind == REAL
        && (!can_parse_real(word, real) || !(*real >= (double)spec->least && *real <= (double)spec->most)))
        return complain(EXIT_USAGE, "--%s: expected a number from %lld to %lld, got \"%s\"", spec->name,
                        (long long)spec->least, (long long)spec->most, word);
    if (spec->kind == CHOICE && !has_word(spec->choices, word))
        return complain_word(spec->name, "value", word, spec->choices);
    return 0;
}
/* Appends a word to a list without duplicates. Returns 0 or an exit code. */
static int option_append(const struct option_spec *spec, struct option_value *value, const char *word, int64_t number) {
    value->items = resize(value->items, value->count + 1, sizeof *value->items);
    value->numbers = resize(value->numbers, value->count + 1, sizeof *value->numbers);
    for (size_t i = 0; i < value->count; i++)
        if (!strcmp(value->items[i], word) || (spec->kind == COUNTS && value->numbers[i] == number))
            return complain(EXIT_USAGE, "--%s: %s is listed twice", spec->name, word);
    value->items[value->count] = word;
    value->numbers[value->count++] = number;
    return 0;
}
/* Copies part of an argument into memory that lives as long as the options. */
static const char *keep_piece(struct options *options, const char *text, size_t bytes) {
    return *ADDED(options->pieces, options->piece_count) = copy_text(text, bytes);
}

/* Checks one word and stores it. Returns 0 or an exit code. */
static int option_store(struct options *options, int index, const char *word) {
    const struct option_spec *spec = &options->command->options[index];
    struct option_value *value = &options->values[index];
    int64_t number = 0;
    if (spec->kind == CHOICE && !has_word(spec->choices, word)) { /* TTFT, where choices are in lower case */
        char *lower = (char *)(size_t)keep_piece(options, word, strlen(word));
        for (char *byte = lower; *byte; byte++) *byte = (char)tolower((unsigned char)*byte);
        if (has_word(spec->choices, lower)) word = lower;
    }
    int code = option_check(spec, word, &number, &value->real);
    if (code) return code;
    value->number = number;
    value->text = word;
    return is_list(spec) ? option_append(spec, value, word, number) : 0;
}

/* Stores the argument of a list. Commas separate values, except in WHOLE_TEXTS. */
static int option_store_list(struct options *options, int index, const char *word) {
    if (options->command->options[index].kind == WHOLE_TEXTS) return option_store(options, index, word);
    for (;;) {
        size_t bytes = strcspn(word, ",");
        int code = option_store(options, index, keep_piece(options, word, bytes));
        if (code) return code;
        if (!word[bytes]) return 0;
        word += bytes + 1;
    }
}

/* Complains about an unknown option and names similar options of this command, or the command that has it. */
static int unknown_option(const struct options *options, const char *argument, size_t bytes) {
    struct text_buffer near = {NULL, 0, 0};
    const char *own = options->command->name, *other = NULL;
    char given[80], name[80], owner[80] = "";
    snprintf(given, sizeof given, "%.*s", (int)(bytes < 79 ? bytes : 79), argument);
    snprintf(name, sizeof name, "%s", given);
    for (char *letter = name; *letter; letter++)
        if (*letter == '-') *letter = '_';
    if ((!strcmp(name, "url") || !strcmp(name, "base_url") || !strcmp(name, "host"))
        && option_find(options->command, "endpoint", 8) >= 0)
        text_add_string(&near, "; did you mean --endpoint");
    else for (size_t i = 0; i < options->command->option_count; i++)
        if (options->command->options[i].kind != GROUP)
            add_near_word(&near, name, "--", options->command->options[i].name);
    for (const struct command *const *command = options->commands; command && *command && !other; command++)
        if (option_find(*command, given, strlen(given)) >= 0) other = (*command)->name;
    if (other) snprintf(owner, sizeof owner, " of %s (%s has this option)", own, other);
    int code = complain(EXIT_USAGE, "unknown option --%s%s%.300s%s see vlmprof %s --help", given, owner,
                        near.bytes ? near.data : "", near.bytes ? "?" : ";", own);
    free(near.data);
    return code;
}

int has_family_keys(const struct options *options) {
    const char *words = options->command->keyed_by;
    for (int i = 2; i < options->argc && words; i++)
        for (const char *word = words; *word; word += strcspn(word, " "), word += *word == ' ') {
            size_t bytes = strcspn(word, " ");
            const char *argument = options->argv[i], *name = argument + 2;
            if (!strncmp(argument, "--", 2) && !strncmp(name, word, bytes) && (!name[bytes] || name[bytes] == '='))
                return 1;
        }
    return 0;
}
/* Stores a family key with its value; NULL if the value is missing. */
static int key_store(struct options *options, const char *name, size_t bytes, const char *value) {
    if (!value) return complain(EXIT_USAGE, "--%.*s needs a value", (int)bytes, name);
    options->keys = resize(options->keys, options->key_count + 2, sizeof *options->keys);
    options->keys[options->key_count++] = keep_piece(options, name, bytes);
    options->keys[options->key_count++] = value;
    return 0;
}

/* Stores the arguments of a list option, starting at argv[first]. *next is the first one that does not belong to it. */
static int option_parse_list(struct options *options, int index, int first, int *next) {
    const struct option_spec *spec = &options->command->options[index];
    int code;
    for (; first < options->argc; first++) {
        const char *argument = options->argv[first];
        if (!strncmp(argument, "--", 2) || !strcmp(argument, "-p")) break;
        if ((code = option_store_list(options, index, argument)) != 0) return code;
    }
    *next = first;
    return options->values[index].count ? 0
                                        : complain(EXIT_USAGE, "--%s needs a value: %s", spec->name, spec->argument);
}
/* Parses argv[first], which is --name, --name=value or a short form, and its value. *next is the first argument after
 * them. Returns 0 or an exit code. */
static int option_parse(struct options *options, int first, int *next) {
    const char *argument = options->argv[first], *equal = NULL, *name = argument + 2;
    int index, after = first + 1;
    if (!strcmp(argument, "-p")) name = "prompt";
    else if (!strcmp(argument, "-h")) name = "help";
    else if (!strcmp(argument, "-o")) name = "output";
    else if (!strcmp(argument, "-n")) name = "measurements";
    else if (argument[1] != '-')
        return complain(EXIT_USAGE, "unknown option %s; long options have two hyphens; see vlmprof %s --help", argument,
                        options->command->name);
    else equal = strchr(name, '=');
    size_t bytes = equal ? (size_t)(equal - name) : strlen(name);
    index = option_find(options->command, name, bytes);
    if (index < 0 && has_family_keys(options)) {
        *next = equal || after >= options->argc ? after : after + 1;
        return key_store(options, name, bytes, equal ? equal + 1 : after < options->argc ? options->argv[after] : NULL);
    }
    if (index < 0) return unknown_option(options, name, bytes);
    const struct option_spec *spec = &options->command->options[index];
    if (options->values[index].given++ && spec->kind != WHOLE_TEXTS)
        return complain(EXIT_USAGE, "--%s is given twice", spec->name);
    *next = after;
    if (spec->kind == FLAG) return equal ? complain(EXIT_USAGE, "--%s takes no value", spec->name) : 0;
    if (spec->kind == MAYBE && !equal) return 0;
    if (!equal && after >= options->argc)
        return complain(EXIT_USAGE, "--%s needs a value: %s", spec->name, spec->argument);
    if (!is_list(spec)) {
        *next = equal ? after : after + 1;
        return option_store(options, index, equal ? equal + 1 : options->argv[after]);
    }
    return equal ? option_store_list(options, index, equal + 1) : option_parse_list(options, index, after, next);
}

int options_parse(struct options *options, int argc, char **argv) {
    int i = 2, code, only_operands = 0;
    options->argc = argc;
    options->argv = argv;
    options->values = zeroed(options->command->option_count, sizeof *options->values);
    options->operands = resize(NULL, (size_t)argc, sizeof *options->operands);
    while (i < argc) {
        const char *argument = argv[i];
        if (!only_operands && argument[0] == '-' && argument[1]) {
            if (!strcmp(argument, "--")) {
                only_operands = 1;
                i++;
                continue;
            }
            if ((code = option_parse(options, i, &i)) != 0) return code;
        } else {
            options->operands[options->operand_count++] = argument;
            i++;
        }
    }
    for (i = 0; i < (int)options->command->option_count; i++) {
        const char *fallback = options->command->options[i].fallback;
        if (fallback && !options->values[i].given && (code = option_store(options, i, fallback)) != 0) return code;
    }
    return 0;
}
void options_free(struct options *options) {
    for (size_t i = 0; options->values && i < options->command->option_count; i++) {
        FREE_ALL((void *)options->values[i].items, options->values[i].numbers);
    }
    free(options->values);
    for (size_t i = 0; i < options->piece_count; i++) free(options->pieces[i]);
    FREE_ALL(options->pieces, (void *)options->keys, (void *)options->operands);
}

/* ---- the rows' rules */
/* The row of the first named option that is on the command line, or NULL. */
static const struct option_spec *first_given(const struct options *options, const char *names) {
    for (size_t i = 0; names && i < options->command->option_count; i++)
        if (options->values[i].given && has_word(names, options->command->options[i].name))
            return &options->command->options[i];
    return NULL;
}
static int is_named(const struct option_spec *spec, const char *names) {
    return spec->kind != GROUP && has_word(names, spec->name);
}
/* Appends the named options as "--a X, --b Y or --c"; nothing if the command has none of them. */
static void add_names(struct text_buffer *text, const struct options *options, const char *names) {
    size_t count = 0, added = 0;
    for (size_t i = 0; i < options->command->option_count; i++)
        count += (size_t)is_named(&options->command->options[i], names);
    for (size_t i = 0; i < options->command->option_count; i++) {
        const struct option_spec *spec = &options->command->options[i];
        if (!is_named(spec, names)) continue;
        text_add_string(text, !added ? "" : added + 1 < count ? ", " : " or ");
        text_add_string(text, "--");
        text_add_string(text, spec->name);
        text_add_string(text, spec->argument ? " " : "");
        text_add_string(text, spec->argument ? spec->argument : "");
        added++;
    }
}
/* Checks a given option against a rule of its row or its group. Returns 0 or an exit code. */
static int check_rule(const struct options *options, const struct option_spec *spec, const struct option_spec *rule) {
    const struct option_spec *other = first_given(options, rule->excludes);
    const char *because = rule->because ? rule->because : "";
    struct text_buffer needed = {NULL, 0, 0};
    int code = 0;
    if (first_given(options, rule->unless)) return 0;
    if (other && other != spec)
        return complain(EXIT_USAGE, "--%s and --%s cannot be used together%s%s", spec->name, other->name,
                        *because ? ": " : "", because);
    if (!rule->needs || has_word(rule->needs, spec->name) || first_given(options, rule->needs)) return 0;
    add_names(&needed, options, rule->needs);
    if (needed.bytes) code = complain(EXIT_USAGE, "--%s needs %s", spec->name, needed.data);
    free(needed.data);
    return code;
}
int options_check(const struct options *options) {
    const struct option_spec *group = NULL;
    int code = 0;
    for (size_t i = 0; i < options->command->option_count && !code; i++) {
        const struct option_spec *spec = &options->command->options[i];
        if (spec->kind == GROUP) group = spec;
        else if (options->values[i].given) {
            if ((code = check_rule(options, spec, spec)) == 0 && group) code = check_rule(options, spec, group);
        } else if (spec->is_required && !first_given(options, spec->unless))
            code = complain(EXIT_USAGE, "%s needs --%s %s%s%s; see vlmprof %s --help", options->command->name,
                            spec->name, spec->argument, spec->because ? ": " : "", spec->because ? spec->because : "",
                            options->command->name);
    }
    return code;
}

int check_sort_key(const char *key) {
    struct text_buffer all = {NULL, 0, 0};
    for (int32_t i = 0; key && vp_ops_key_name(i); i++) {
        if (!strcmp(vp_ops_key_name(i), key)) {
            free(all.data);
            return 0;
        }
        if (i) text_add_string(&all, " ");
        text_add_string(&all, vp_ops_key_name(i));
    }
    int code = key ? complain_word("sort_by", "key", key, all.data) : 0;
    free(all.data);
    return code;
}

/* ---- outputs that would overwrite an input */
/* The rows whose values are files that the command writes. */
static int is_output(const struct option_spec *row) {
    return row->kind != GROUP && has_word("output html trace", row->name);
}
/* Returns 1 if both paths are one file, or would be: a file that is not there yet is its folder and its name. */
static int is_same_path(const char *one, const char *other) {
    const char *paths[2] = {one, other};
    struct stat found[2];
    char names[2][256];
    for (int i = 0; i < 2; i++) {
        names[i][0] = 0;
        if (!stat(paths[i], &found[i])) continue;
        const char *slash = strrchr(paths[i], '/');
        char *folder = slash ? copy_text(paths[i], (size_t)(slash - paths[i]) + 1) : copy_text(".", 1);
        const int failed = stat(folder, &found[i]);
        free(folder);
        if (failed) return 0;
        snprintf(names[i], sizeof names[i], "%s", slash ? slash + 1 : paths[i]);
    }
    return found[0].st_dev == found[1].st_dev && found[0].st_ino == found[1].st_ino && !strcmp(names[0], names[1]);
}
/* Returns 1 if writing the file `output` would change the input: the same file, or a picture or a JSON file that is
 * already in the folder. */
static int would_change(const char *output, const char *input) {
    struct stat found;
    const char *slash = strrchr(output, '/');
    if (stat(output, &found) || !S_ISREG(found.st_mode) || stat(input, &found)) return 0;
    if (!S_ISDIR(found.st_mode)) return is_same_path(output, input);
    const char *dot = strrchr(slash ? slash : output, '.');
    if (!is_image_name(slash ? slash + 1 : output) && (!dot || !has_word(".json .jsonl", dot))) return 0;
    char *folder = slash ? copy_text(output, (size_t)(slash - output) + 1) : copy_text(".", 1);
    const int is_inside = is_same_path(folder, input);
    free(folder);
    return is_inside;
}
int outputs_check(const struct options *options) {
    const struct option_spec *rows = options->command->options;
    for (size_t i = 0; i < options->command->option_count; i++) {
        const char *output = is_output(&rows[i]) ? options->values[i].text : NULL;
        const char *input = NULL;
        if (!output || !options->values[i].given) continue;
        for (size_t k = 0; k < options->operand_count && !input; k++)
            if (would_change(output, options->operands[k])) input = options->operands[k];
        for (size_t k = 0; k < options->command->option_count && !input; k++) {
            const struct option_value *value = &options->values[k];
            if (k == i || !value->given || rows[k].kind == GROUP) continue;
            if (is_output(&rows[k])) {
                if (k < i && value->text && is_same_path(output, value->text))
                    return complain(EXIT_USAGE, "--%s and --%s are the same file: %s", rows[k].name, rows[i].name,
                                    output);
                continue;
            }
            if (value->text && rows[k].kind == TEXT && would_change(output, value->text)) input = value->text;
            for (size_t n = 0; n < value->count && value->items && !input; n++)
                if (would_change(output, value->items[n])) input = value->items[n];
        }
        if (input)
            return complain(EXIT_USAGE, "--%s %s would overwrite %s%s: choose another name", rows[i].name, output,
                            is_folder(input) ? "a file in the input folder " : "the input ", input);
    }
    return 0;
}
