/* memory.h: memory that grows, text that grows, lists of texts, hashes. Memory that is not there ends the program. */
#ifndef VLMPROF_CLI_MEMORY_H
#define VLMPROF_CLI_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* Memory of the command itself; a journal is always on disk already, so ending here loses nothing measured. */
void *resize(void *memory, size_t count, size_t element_bytes);
void *zeroed(size_t count, size_t element_bytes);
char *copy_text(const char *text, size_t bytes);

struct text_buffer { char *data; size_t bytes, capacity; };

void text_add(struct text_buffer *buffer, const char *text, size_t bytes);
void text_add_string(struct text_buffer *buffer, const char *text);

/* Texts of one's own, in the order they came. {NULL, 0}: none. */
struct text_list { char **items; size_t count; };

void text_list_take(struct text_list *list, char *text); /* malloc'ed: from now on the list's */
void text_list_copy(struct text_list *list, const char *text);

/* at most LINE_BYTES of it */
void text_list_add(struct text_list *list, const char *format, ...);
int text_list_has(const struct text_list *list, const char *text);

/* by bytes, from place `first` on */
void text_list_sort(struct text_list *list, size_t first);
void text_list_free(struct text_list *list);

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes); /* FNV-1a */
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t hash_number(uint64_t hash, int64_t value);

extern const uint64_t HASH_START;

struct buffer { void *data; size_t bytes; };

void *reserve(struct buffer *buffer, size_t count, size_t element_bytes);

#endif
