/* text_table.h: texts by number, each of them once. */
#ifndef VLMPROF_CLI_TEXT_TABLE_H
#define VLMPROF_CLI_TEXT_TABLE_H
#include "base/memory.h"
#include <stddef.h>
#include <stdint.h>

#define NO_INDEX UINT32_MAX /* in place of a number: none */

/* All 0: empty. */
struct text_table {
    struct text_buffer text;  /* the texts, each with its closing 0 */
    size_t *starts;           /* [count] where each begins */
    uint32_t count, capacity;
    uint32_t *slots;          /* numbers by hash, or NO_INDEX */
    size_t slot_count;        /* a power of two */
};

/* The number of a text; a new one takes the next number. */
uint32_t text_table_add(struct text_table *table, const char *text);

/* The text of a number. It moves when texts are added. */
const char *text_table_at(const struct text_table *table, uint32_t index);
void text_table_free(struct text_table *table);

#endif
