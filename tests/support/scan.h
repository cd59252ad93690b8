/* scan.h: just enough JSON reading for golden files of a known shape. It is not a JSON reader: it finds keys by their text and takes the numbers between brackets in
 * order, at any depth. Tests of the core use it so that they do not depend on the parser under test. */
#ifndef SCAN_H
#define SCAN_H
#include <stdlib.h>
#include <string.h>

/* after `"key":` and white space, searched from `text` on; NULL if there is none before `end` (NULL: the end of the text) */
static inline const char *scan_key(const char *text, const char *key, const char *end) {
    const size_t bytes = strlen(key);
    const char *p = text;
    while (p && (p = strchr(p, '"')) != NULL && (!end || p < end)) {
        if (strncmp(p + 1, key, bytes) == 0 && p[1 + bytes] == '"') {
            const char *q = p + bytes + 2;
            q += strspn(q, " \n\t");
            if (*q == ':') return q + 1 + strspn(q + 1, " \n\t");
        }
        p++;
    }
    return NULL;
}

static inline double scan_number(const char *text, const char *key, const char *end) {
    const char *p = scan_key(text, key, end);
    if (p && *p == '"') p++;
    return p ? strtod(p, NULL) : -987654321.0;
}

/* one past the bracket that closes the one at `text` */
static inline const char *scan_close(const char *text) {
    int depth = 0;
    for (; *text; text++) {
        if (*text == '[' || *text == '{') depth++;
        if ((*text == ']' || *text == '}') && --depth <= 0) return text + 1;
    }
    return text;
}

/* All numbers inside the bracket at `text`, including numbers in quotes. *count: how many. malloc'ed. */
static inline double *scan_numbers(const char *text, size_t *count) {
    const char *end = scan_close(text);
    double *out = (double *)malloc((size_t)(end - text + 1) * sizeof *out);
    *count = 0;
    while (text < end) {
        const int minus = *text == '-';
        if ((text[minus] >= '0' && text[minus] <= '9') || strncmp(text + minus, "inf", 3) == 0) {
            char *next;
            out[(*count)++] = strtod(text, &next);
            text = next;
        } else {
            text++;
        }
    }
    return out;
}
#endif
