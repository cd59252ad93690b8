/* text_table.c: a table of distinct texts, found by number: an open hash table over one growing buffer. */
#include "trace/trace_read.h"

const char *text_table_at(const struct text_table *table, uint32_t index) {
    return table->text.data + table->starts[index];
}
/* Doubles the slots. A text is in the first free slot, starting at its hash. */
static void text_table_grow(struct text_table *table) {
    size_t slots = table->slot_count ? table->slot_count * 2 : 256;
    table->slots = resize(table->slots, slots, sizeof *table->slots);
    table->slot_count = slots;
    memset(table->slots, 0xff, slots * sizeof *table->slots);
    for (uint32_t i = 0; i < table->count; i++) {
        size_t at = (size_t)hash_text(HASH_START, text_table_at(table, i)) & (slots - 1);
        while (table->slots[at] != NO_INDEX) at = (at + 1) & (slots - 1);
        table->slots[at] = i;
    }
}
uint32_t text_table_add(struct text_table *table, const char *text) {
    if ((size_t)table->count * 2 >= table->slot_count) text_table_grow(table);
    size_t at = (size_t)hash_text(HASH_START, text) & (table->slot_count - 1);
    for (; table->slots[at] != NO_INDEX; at = (at + 1) & (table->slot_count - 1))
        if (!strcmp(text_table_at(table, table->slots[at]), text)) return table->slots[at];
    table->starts = grown(table->starts, table->count, sizeof *table->starts);
    table->starts[table->count] = table->text.bytes;
    text_add(&table->text, text, strlen(text) + 1);
    table->slots[at] = table->count;
    return table->count++;
}
void text_table_free(struct text_table *table) { FREE_ALL(table->text.data, table->starts, table->slots); }
