/* allocations.h: memory functions that a test counts and lets fail. Include it before the part under test, which then calls them; #undef malloc, calloc, realloc and
 * free after it. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H
#include <stdlib.h>
static long allocations_left = -1; /* allocations until all fail; -1: none fails */
static long allocations_live;      /* not yet freed */
static int allocation_fails(void) { return allocations_left >= 0 && (allocations_left == 0 || !allocations_left--); }
static void *counted_allocation(void *memory) {
    allocations_live += memory != NULL;
    return memory;
}
static void *counted_malloc(size_t bytes) { return allocation_fails() ? NULL : counted_allocation(malloc(bytes)); }
static void *counted_calloc(size_t count, size_t bytes) { return allocation_fails() ? NULL : counted_allocation(calloc(count, bytes)); }
static void *counted_realloc(void *memory, size_t bytes) {
    if (allocation_fails()) return NULL;
    return memory ? realloc(memory, bytes) : counted_allocation(malloc(bytes));
}
static void counted_free(void *memory) {
    allocations_live -= memory != NULL;
    free(memory);
}
#define malloc(bytes) counted_malloc(bytes)
#define calloc(count, bytes) counted_calloc(count, bytes)
#define realloc(memory, bytes) counted_realloc(memory, bytes)
#define free(memory) counted_free(memory)
#endif
