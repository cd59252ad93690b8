/* text_table.h: a table of distinct texts, found by number. */
#ifndef VLMPROF_CLI_TEXT_TABLE_H
#define VLMPROF_CLI_TEXT_TABLE_H
#include "base/memory.h"
#include <stddef.h>
#include <stdint.h>

#define NO_INDEX UINT32_MAX /* index of nothing */

/* A table of all zeros is empty. */
struct text_table {
    struct text_buffer text;  /* the texts, each with its closing 0 */
    size_t *starts;           /* [count] offset of each text */
    uint32_t count, capacity;
    uint32_t *slots;          /* numbers by hash, or NO_INDEX */
    size_t slot_count;        /* a power of two */
};

/* The number of a text; a new text gets the next number. */
uint32_t text_table_add(struct text_table *table, const char *text);

/* The text with this number. The pointer is valid until a text is added. */
const char *text_table_at(const struct text_table *table, uint32_t index);
void text_table_free(struct text_table *table);

#endif
