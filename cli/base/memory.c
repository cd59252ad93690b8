/* memory.c: memory that grows, text that grows, lists of texts, hashes. Memory that is not there ends the program. */
#include "base/memory.h"

#include "base/console.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *resize(void *memory, size_t count, size_t element_bytes) {
    void *p = NULL;
    if (element_bytes && count <= SIZE_MAX / element_bytes) p = realloc(memory, count ? count * element_bytes : 1);
    if (!p) exit(complain(EXIT_DEVICE, "not enough memory for %zu x %zu bytes: use fewer samples, crops or new tokens", count, element_bytes));
    return p;
}
void *zeroed(size_t count, size_t element_bytes) {
    void *p = resize(NULL, count, element_bytes);
    memset(p, 0, count * element_bytes);
    return p;
}
char *copy_text(const char *text, size_t bytes) {
    char *p = resize(NULL, bytes + 1, 1);
    memcpy(p, text, bytes);
    p[bytes] = 0;
    return p;
}
void text_add(text_buffer *t, const char *p, size_t bytes) {
    if (t->bytes + bytes + 1 > t->capacity) {
        t->capacity = (t->bytes + bytes + 1) * 2;
        t->data = resize(t->data, t->capacity, 1);
    }
    memcpy(t->data + t->bytes, p, bytes);
    t->bytes += bytes;
    t->data[t->bytes] = 0;
}
void text_add_string(text_buffer *t, const char *p) { text_add(t, p, strlen(p)); }
void text_list_take(text_list *l, char *text) {
    if (!(l->count & (l->count - 1))) l->items = resize(l->items, l->count ? l->count * 2 : 1, sizeof *l->items);
    l->items[l->count++] = text;
}
void text_list_copy(text_list *l, const char *text) { text_list_take(l, copy_text(text, strlen(text))); }
void text_list_add(text_list *l, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_list_copy(l, line);
}
int text_list_has(const text_list *l, const char *text) {
    for (size_t i = 0; i < l->count; i++) if (!strcmp(l->items[i], text)) return 1;
    return 0;
}
static int compare_texts(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }
void text_list_sort(text_list *l, size_t first) {
    if (l->count > first) qsort(l->items + first, l->count - first, sizeof *l->items, compare_texts);
}
void text_list_free(text_list *l) {
    for (size_t i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
    memset(l, 0, sizeof *l);
}

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}
uint64_t hash_text(uint64_t hash, const char *text) { return hash_bytes(hash, text ? text : "\1", text ? strlen(text) + 1 : 2); }
uint64_t hash_number(uint64_t hash, int64_t value) { return hash_bytes(hash, &value, sizeof value); }
const uint64_t HASH_START = UINT64_C(14695981039346656037);
void *reserve(buffer *b, size_t count, size_t element_bytes) {
    if (!b->data || count * element_bytes > b->bytes) {
        b->data = resize(b->data, count, element_bytes);
        b->bytes = count * element_bytes;
    }
    return b->data;
}
