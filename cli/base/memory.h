/* memory.h: memory that grows, text that grows, lists of texts, hashes. Memory that is not there ends the program. */
#ifndef VLMPROF_CLI_MEMORY_H
#define VLMPROF_CLI_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* Memory of the command itself; a journal is always on disk already, so ending here loses nothing measured. */
void *resize(void *memory, size_t count, size_t element_bytes);
void *zeroed(size_t count, size_t element_bytes);
char *copy_text(const char *text, size_t bytes);

typedef struct text_buffer { char *data; size_t bytes, capacity; } text_buffer;

void text_add(text_buffer *t, const char *p, size_t bytes);
void text_add_string(text_buffer *t, const char *p);

/* Texts of one's own, in the order they came. {NULL, 0}: none. */
typedef struct text_list { char **items; size_t count; } text_list;

void text_list_take(text_list *l, char *text); /* malloc'ed: from now on the list's */
void text_list_copy(text_list *l, const char *text);

/* at most LINE_BYTES of it */
void text_list_add(text_list *l, const char *format, ...);
int text_list_has(const text_list *l, const char *text);

/* by bytes, from place `first` on */
void text_list_sort(text_list *l, size_t first);
void text_list_free(text_list *l);

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes); /* FNV-1a */
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t hash_number(uint64_t hash, int64_t value);

extern const uint64_t HASH_START;

typedef struct buffer { void *data; size_t bytes; } buffer;

void *reserve(buffer *b, size_t count, size_t element_bytes);

#endif
