/* memory.h: growing memory, growing text, lists of texts, hashes; with the C library's headers of these, which nearly
 * every file needs. No function here fails: if memory runs out, the program ends with a message. */
#ifndef VLMPROF_CLI_MEMORY_H
#define VLMPROF_CLI_MEMORY_H
#include "base/free_all.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of the command itself. Ending the program loses no measurement, because the journal is already on disk. */
void *resize(void *memory, size_t count, size_t element_bytes);
void *zeroed(size_t count, size_t element_bytes);
/* Makes space for one more element, all zero. The capacity is the next power of two: the count alone determines it. */
void *grown(void *items, size_t count, size_t element_bytes);
/* Adds such an element and counts it; its address. Nothing but grown may make space in the array. */
#define ADDED(items, count) ((items) = grown(items, (size_t)(count), sizeof *(items)), &(items)[(count)++])
/* Unfinished output that must be removed. If memory runs out, undo(user) is called for all unfinished outputs before
 * the program ends, the latest first. The struct belongs to the caller. */
struct unfinished { void (*undo)(void *user); void *user; struct unfinished *before; };
void unfinished_begin(struct unfinished *unfinished, void (*undo)(void *user), void *user);
void unfinished_end(struct unfinished *unfinished);

/* The OpenMP runtime ends the program with exit code 1 if it gets no memory or no thread. After watch_library_exits
 * the exit code is then EXIT_DEVICE. The program itself ends through mark_own_exit, which returns its exit code. */
void watch_library_exits(void);
int mark_own_exit(int code);

char *copy_text(const char *text, size_t bytes);
const char *name_in_path(const char *path); /* what follows the last slash */

struct text_buffer { char *data; size_t bytes, capacity; };

/* Append to the buffer. It always ends with a NUL, which `bytes` does not include. */
void text_add(struct text_buffer *buffer, const char *text, size_t bytes);
void text_add_string(struct text_buffer *buffer, const char *text);
void text_add_format(struct text_buffer *buffer, const char *format, ...);

/* The plural ending of a noun: use "%lld row%s" with count, plural_s(count). */
const char *plural_s(int64_t count);

/* Texts that the list owns, in the order of adding. {NULL, 0} is an empty list. */
struct text_list { char **items; size_t count; };

void text_list_take(struct text_list *list, char *text); /* the list now owns this malloc'ed text */
void text_list_copy(struct text_list *list, const char *text);

/* Adds a formatted text, cut at LINE_BYTES. */
void text_list_add(struct text_list *list, const char *format, ...);
int text_list_has(const struct text_list *list, const char *text);

/* Sorts the texts starting at index `first`, by bytes. */
void text_list_sort(struct text_list *list, size_t first);
void text_list_free(struct text_list *list);

/* FNV-1a: adds data to a hash that started as HASH_START. A NULL text differs from every other text. */
uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes);
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t hash_number(uint64_t hash, int64_t value);

int compare_numbers(const void *left_item, const void *right_item); /* orders uint64_t, for qsort */
/* Defines a function that orders structs by a number in them, for qsort. */
#define COMPARE_BY(name, type, member) \
    static int name(const void *left_item, const void *right_item) { \
        const type *left = left_item, *right = right_item; \
        return (left->member > right->member) - (left->member < right->member); \
    }
/* Sorts the values; returns how many different ones are there more than once. */
size_t count_repeated(uint64_t *values, size_t count);

extern const uint64_t HASH_START;

struct buffer { void *data; size_t bytes; };

/* Makes space for `count` elements in reused memory. Returns its data. */
void *reserve(struct buffer *buffer, size_t count, size_t element_bytes);

#endif
