/* texts.h: compares the program's output word by word with tests/golden/texts. A test includes it after check.h and program.h.
 *
 * The texts came from the program; other tests show that their numbers are right (test_report, test_compare ..). Numbers of more than 9 digits are compared to 9. The
 * test's folder is written as FOLDER, the version as VERSION, lines of sources as LINE. KEEP_TEXTS=1 writes the files again: read the difference
 * before it is committed. */
#ifndef TEXTS_H
#define TEXTS_H
#include "vlmprof_json.h"
#include <ctype.h>

typedef struct kept_text { char *data; size_t bytes, capacity; } kept_text;
static inline void kept_add(kept_text *t, const char *data, size_t bytes) {
    if (t->bytes + bytes + 1 > t->capacity) {
        t->capacity = 2 * (t->bytes + bytes) + 64;
        t->data = (char *)realloc(t->data, t->capacity);
        if (!t->data) abort();
    }
    memcpy(t->data + t->bytes, data, bytes);
    t->data[t->bytes += bytes] = 0;
}
/* shortens a number of many digits to 9, and copies the rest unchanged; returns the bytes read */
static inline size_t kept_number(kept_text *t, const char *at) {
    size_t digits = 0, bytes = 0;
    char text[40];
    int has_point = 0;
    for (; isdigit((unsigned char)at[bytes]) || (at[bytes] == '.' && !has_point); bytes++) {
        has_point |= at[bytes] == '.';
        digits += at[bytes] != '.';
    }
    if (has_point && (at[bytes] == 'e' || at[bytes] == 'E')) {
        char *end;
        strtod(at, &end);
        bytes = (size_t)(end - at);
    }
    if (digits > 9 && has_point) {
        snprintf(text, sizeof text, "%.9g", strtod(at, NULL));
        kept_add(t, text, strlen(text));
    } else {
        kept_add(t, at, bytes);
    }
    return bytes;
}
/* The length of a reference to a source line (".c,124", ".c(124", "\"line\": 124") up to its number; 0: it is not one. */
static inline size_t before_source_line(const char *text) {
    size_t bytes = !strncmp(text, "\"line\": ", 8) ? 8 : !strncmp(text, ".cu", 3) ? 4 : !strncmp(text, ".c", 2) || !strncmp(text, ".h", 2) ? 3 : 0;
    return bytes && (bytes == 8 || strchr(",(:", text[bytes - 1])) && isdigit((unsigned char)text[bytes]) ? bytes : 0;
}
static inline char *kept_of(const char *text) {
    kept_text t = {NULL, 0, 0};
    kept_add(&t, "", 0);
    while (*text) {
        if (!strncmp(text, folder, strlen(folder))) { kept_add(&t, "FOLDER", 6); text += strlen(folder); }
        else if (!strncmp(text, "\"version\": \"", 12)) { kept_add(&t, "\"version\": \"VERSION", 19); text += 12 + strcspn(text + 12, "\""); }
        else if (before_source_line(text)) {
            kept_add(&t, text, before_source_line(text));
            kept_add(&t, "LINE", 4);
            text += before_source_line(text);
            text += strspn(text, "0123456789");
        } else if (isdigit((unsigned char)*text)) text += kept_number(&t, text);
        else kept_add(&t, text++, 1);
    }
    return t.data;
}
/* `text` equals the contents of tests/golden/texts/NAME; the first line that differs is shown. */
static inline void check_kept(const char *name, const char *text) {
    char path[300], *got = kept_of(text), *want;
    size_t bytes, line = 1;
    const char *a = got, *b;
    snprintf(path, sizeof path, "tests/golden/texts/%s", name);
    if (getenv("KEEP_TEXTS")) write_text(path, got);
    want = check_read(path, &bytes);
    b = want ? want : "";
    while (*a && *a == *b) { line += *a == '\n'; a++; b++; }
    while (a > got && a[-1] != '\n') { a--; b--; }
    check_note(want && !strcmp(got, want), __FILE__, __LINE__, "%s:%zu is \"%.*s\", expected \"%.*s\"", path, line, (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
    FREE_ALL(want, got);
}
/* Adds each place of a JSON text once, with the types found there: "rows[].name string". */
static inline void shape_add(kept_text *t, const vp_json *text, uint32_t node, const char *place) {
    static const char *const types[] = {"null", "boolean", "boolean", "number", "string", "list", "object"};
    const vp_json_node *at = &text->nodes[node];
    char line[600];
    const size_t bytes = (size_t)snprintf(line, sizeof line, "\n%s %s\n", place, types[at->type]);
    if (!strstr(t->data, line)) kept_add(t, line + 1, bytes - 1);
    uint32_t inner = node + 1;
    for (uint32_t i = 0; i < at->count && (at->type == (uint8_t)VP_JSON_ARRAY || at->type == (uint8_t)VP_JSON_OBJECT); i++) {
        const int is_list = at->type == (uint8_t)VP_JSON_ARRAY;
        char longer[500], key[200] = "[]";
        if (!is_list) vp_json_text(text, inner++, key, sizeof key, NULL);
        snprintf(longer, sizeof longer, "%s%s%s", place, is_list || !*place ? "" : ".", key);
        shape_add(t, text, inner, longer);
        inner = text->nodes[inner].end;
    }
}
/* A JSON text as its shape; nothing if it is not one JSON text. Its numbers are those of the other forms, and are checked by other tests. */
static inline void kept_shape(kept_text *t, const char *text) {
    size_t needed = 0;
    vp_json parsed;
    vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL);
    vp_json_node *nodes = (vp_json_node *)malloc((needed + 1) * sizeof *nodes);
    kept_add(t, "\n", 1);
    if (vp_json_parse(text, strlen(text), nodes, needed, &parsed, NULL, NULL) == VP_OK) shape_add(t, &parsed, 0, "");
    free(nodes);
}
/* exit code and both outputs of the last run; of JSON only the shape, unless it is short */
static inline void check_kept_run(const char *name, int code) {
    kept_text t = {NULL, 0, 0};
    CHECK_INT(last.code, code);
    int lines = 0;
    for (const char *at = last.out; *at; at++) lines += *at == '\n';
    if (last.out[0] == '{' && last.out[1] == '\n' && lines > 60) kept_shape(&t, last.out);
    else kept_add(&t, last.out, strlen(last.out));
    if (last.err[0]) { kept_add(&t, "---- stderr\n", 12); kept_add(&t, last.err, strlen(last.err)); }
    check_kept(name, t.data ? t.data : "");
    free(t.data);
}
#endif
