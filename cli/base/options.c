/* options.c: the parser of the command line. Each command brings its own table of options; checks and help come from it. */
#include "base/options.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int option_find(const command *c, const char *name, size_t bytes) {
    for (size_t i = 0; i < c->option_count; i++)
        if (strlen(c->options[i].name) == bytes && !memcmp(c->options[i].name, name, bytes)) return (int)i;
    return -1;
}
int has_option(const options *o, const char *name) { return option_find(o->command, name, strlen(name)) >= 0; }
const option_value *opt(const options *o, const char *name) {
    int i = option_find(o->command, name, strlen(name));
    if (i < 0) abort();
    return &o->values[i];
}
int64_t number_of(const options *o, const char *name) { return opt(o, name)->number; }
const char *text_of(const options *o, const char *name) { return opt(o, name)->text; }
int given(const options *o, const char *name) { return opt(o, name)->given; }

int edit_distance(const char *a, const char *b) {
    int row[65], la = (int)strlen(a), lb = (int)strlen(b);
    if (la > 64 || lb > 64) return 1000;
    for (int j = 0; j <= lb; j++) row[j] = j;
    for (int i = 1; i <= la; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int above = row[j], best = corner + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            corner = above;
            row[j] = best;
        }
    }
    return row[lb];
}

int parse_number(const char *text, int64_t *value) {
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    if (!digits || digits > 18 || text[digits + (*text == '-')]) return 0;
    *value = strtoll(text, NULL, 10);
    return 1;
}
static int parse_real(const char *text, double *value) { /* digits with at most one point, as people write them */
    size_t digits = strspn(text, "0123456789"), more = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    if (!(digits + more) || digits + more > 18 || text[digits + (text[digits] == '.') + more]) return 0;
    *value = strtod(text, NULL);
    return 1;
}
int has_word(const char *words, const char *word) {
    size_t bytes = strlen(word);
    for (const char *p = words; (p = strstr(p, word)) != NULL; p += bytes ? bytes : 1)
        if (bytes && (p == words || p[-1] == ' ') && (p[bytes] == ' ' || !p[bytes])) return 1;
    return 0;
}

/* Checks one word against the table and stores it; 0 or an exit code. */
static int option_store(options *o, int index, const char *word) {
    const option_spec *s = &o->command->options[index];
    option_value *v = &o->values[index];
    int64_t number = 0;
    if (vp_utf8_valid_bytes(word, strlen(word)) != strlen(word)
        && !has_word("model data html output_dir sizes checkpoint draw tokenizer dump importance_scores_file annotations image_dir "
                     "output recalibrate trace", s->name))
        return complain(EXIT_USAGE, "--%s: the text is not valid UTF-8", s->name);
    if (s->kind == COUNT || s->kind == COUNTS) {
        if (!parse_number(word, &number)) return complain(EXIT_USAGE, "--%s: \"%s\" is not a whole number", s->name, word);
        if (!(number >= s->least && number <= s->most))
            return complain(EXIT_USAGE, "--%s: %s is outside %lld..%lld", s->name, word, (long long)s->least, (long long)s->most);
    }
    if (s->kind == REAL && (!parse_real(word, &v->real) || !(v->real >= (double)s->least && v->real <= (double)s->most)))
        return complain(EXIT_USAGE, "--%s: \"%s\" is no number from %lld to %lld", s->name, word, (long long)s->least, (long long)s->most);
    if (s->kind == CHOICE && !has_word(s->choices, word)) return complain(EXIT_USAGE, "--%s: \"%s\" is none of: %s", s->name, word, s->choices);
    v->number = number;
    v->text = word;
    if (s->kind == COUNTS || s->kind == TEXTS) {
        v->items = resize(v->items, v->count + 1, sizeof *v->items);
        v->numbers = resize(v->numbers, v->count + 1, sizeof *v->numbers);
        for (size_t i = 0; i < v->count; i++)
            if (!strcmp(v->items[i], word) || (s->kind == COUNTS && v->numbers[i] == number))
                return complain(EXIT_USAGE, "--%s: %s is listed twice", s->name, word);
        v->items[v->count] = word;
        v->numbers[v->count++] = number;
    }
    return 0;
}

/* A list's argument may hold several values with commas between them (not file names: those stay whole). */
static int option_store_list(options *o, int index, const char *word) {
    if (!strcmp(o->command->options[index].name, "data")) return option_store(o, index, word);
    for (;;) {
        size_t bytes = strcspn(word, ",");
        char *piece = copy_text(word, bytes);
        int code;
        o->pieces = resize(o->pieces, o->piece_count + 1, sizeof *o->pieces);
        o->pieces[o->piece_count++] = piece;
        if ((code = option_store(o, index, piece)) != 0) return code;
        if (!word[bytes]) return 0;
        word += bytes + 1;
    }
}

static int unknown_option(const options *o, const char *argument, size_t bytes) {
    const char *best = NULL, *own = o->command->name;
    char name[80];
    int least = 1000;
    snprintf(name, sizeof name, "%.*s", (int)(bytes < 79 ? bytes : 79), argument);
    for (const command *const *c = o->commands; c && *c; c++)
        if (option_find(*c, name, strlen(name)) >= 0)
            return complain(EXIT_USAGE, "--%s is not an option of %s (it is one of %s); see vlmprof %s --help", name, own, (*c)->name, own);
    for (size_t i = 0; i < o->command->option_count; i++) {
        int distance = edit_distance(name, o->command->options[i].name);
        if (distance < least) { least = distance; best = o->command->options[i].name; }
    }
    return complain(EXIT_USAGE, "unknown option --%s; the nearest is --%s; see vlmprof %s --help", name, best ? best : "help", own);
}

int takes_keys(const options *o) {
    const char *words = o->command->keyed_by;
    for (int i = 2; i < o->argc && words; i++)
        for (const char *word = words; *word; word += strcspn(word, " "), word += *word == ' ') {
            size_t bytes = strcspn(word, " ");
            const char *a = o->argv[i];
            if (!strncmp(a, "--", 2) && !strncmp(a + 2, word, bytes) && (!a[2 + bytes] || a[2 + bytes] == '=')) return 1;
        }
    return 0;
}
static int key_store(options *o, const char *name, size_t bytes, const char *value) {
    if (!value) return complain(EXIT_USAGE, "--%.*s needs a value", (int)bytes, name);
    o->pieces = resize(o->pieces, o->piece_count + 1, sizeof *o->pieces);
    o->pieces[o->piece_count++] = copy_text(name, bytes);
    o->keys = resize(o->keys, o->key_count + 2, sizeof *o->keys);
    o->keys[o->key_count++] = o->pieces[o->piece_count - 1];
    o->keys[o->key_count++] = value;
    return 0;
}

/* argv[first] is --name, --name=value or -p; *next is moved behind what was used. */
static int option_parse(options *o, int first, int *next) {
    const char *a = o->argv[first], *equal = NULL, *name = a + 2;
    const option_spec *spec;
    size_t bytes;
    int index, code, i = first + 1;
    if (!strcmp(a, "-p")) name = "prompt";
    else if (!strcmp(a, "-h")) name = "help";
    else if (!strcmp(a, "-o")) name = "output";
    else if (!strcmp(a, "-n")) name = "measurements";
    else if (a[1] != '-') return complain(EXIT_USAGE, "unknown option %s; long options have two hyphens; see vlmprof %s --help", a, o->command->name);
    else equal = strchr(name, '=');
    bytes = equal ? (size_t)(equal - name) : strlen(name);
    index = option_find(o->command, name, bytes);
    if (index < 0 && takes_keys(o)) {
        *next = equal || i >= o->argc ? i : i + 1;
        return key_store(o, name, bytes, equal ? equal + 1 : i < o->argc ? o->argv[i] : NULL);
    }
    if (index < 0) return unknown_option(o, name, bytes);
    spec = &o->command->options[index];
    if (o->values[index].given++) return complain(EXIT_USAGE, "--%s is given twice", spec->name);
    *next = i;
    if (spec->kind == FLAG) return equal ? complain(EXIT_USAGE, "--%s takes no value", spec->name) : 0;
    if (spec->kind == MAYBE && !equal) return 0;
    if (!equal && i >= o->argc) return complain(EXIT_USAGE, "--%s needs a value: %s", spec->name, spec->argument);
    if (spec->kind != COUNTS && spec->kind != TEXTS) {
        *next = equal ? i : i + 1;
        return option_store(o, index, equal ? equal + 1 : o->argv[i]);
    }
    if (equal) return option_store_list(o, index, equal + 1);
    for (; i < o->argc && strncmp(o->argv[i], "--", 2) && strcmp(o->argv[i], "-p"); i++)
        if ((code = option_store_list(o, index, o->argv[i])) != 0) return code;
    *next = i;
    return o->values[index].count ? 0 : complain(EXIT_USAGE, "--%s needs a value: %s", spec->name, spec->argument);
}

int options_parse(options *o, int argc, char **argv) {
    int i = 2, code, only_operands = 0;
    o->argc = argc;
    o->argv = argv;
    o->values = zeroed(o->command->option_count, sizeof *o->values);
    o->operands = resize(NULL, (size_t)argc, sizeof *o->operands);
    while (i < argc) {
        const char *a = argv[i];
        if (!only_operands && a[0] == '-' && a[1]) {
            if (!strcmp(a, "--")) { only_operands = 1; i++; continue; }
            if ((code = option_parse(o, i, &i)) != 0) return code;
        } else {
            o->operands[o->operand_count++] = a;
            i++;
        }
    }
    for (i = 0; i < (int)o->command->option_count; i++) {
        const char *fallback = o->command->options[i].fallback;
        if (fallback && !o->values[i].given && (code = option_store(o, i, fallback)) != 0) return code;
    }
    return 0;
}
void options_free(options *o) {
    for (size_t i = 0; o->values && i < o->command->option_count; i++) {
        free((void *)o->values[i].items);
        free(o->values[i].numbers);
    }
    free(o->values);
    for (size_t i = 0; i < o->piece_count; i++) free(o->pieces[i]);
    free(o->pieces);
    free((void *)o->keys);
    free((void *)o->operands);
}

const char *environment(void *user, const char *name) {
    (void)user;
    return getenv(name);
}
int check_sort_key(const char *key) {
    text_buffer all = {NULL, 0, 0};
    int code;
    for (int32_t i = 0; key && vp_ops_key_name(i); i++) {
        if (!strcmp(vp_ops_key_name(i), key)) { free(all.data); return 0; }
        if (i) text_add_string(&all, " ");
        text_add_string(&all, vp_ops_key_name(i));
    }
    code = key ? complain(EXIT_USAGE, "--sort_by: \"%s\" is none of: %s", key, all.data) : 0;
    free(all.data);
    return code;
}
