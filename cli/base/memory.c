/* memory.c: growing memory, growing text, lists of texts, hashes. All memory comes from `resize`, which ends the
 * program if there is none. */
#include "base/memory.h"

#include "base/console.h"

#include <stdarg.h>
#include <unistd.h>

static struct unfinished *latest_unfinished;
void unfinished_begin(struct unfinished *unfinished, void (*undo)(void *user), void *user) {
    *unfinished = (struct unfinished){undo, user, latest_unfinished};
    latest_unfinished = unfinished;
}
void unfinished_end(struct unfinished *unfinished) {
    struct unfinished **at = &latest_unfinished;
    while (*at && *at != unfinished) at = &(*at)->before;
    if (*at) *at = unfinished->before;
}
static void undo_unfinished(void) {
    while (latest_unfinished) { /* removed first, because undoing may also need memory */
        struct unfinished *unfinished = latest_unfinished;
        latest_unfinished = unfinished->before;
        unfinished->undo(unfinished->user);
    }
}
static int is_own_exit;
int mark_own_exit(int code) {
    is_own_exit = 1;
    return code;
}
static void library_exited(void) {
    if (is_own_exit) return;
    undo_unfinished();
    _exit(EXIT_DEVICE);
}
void watch_library_exits(void) { atexit(library_exited); }
static void end_without_memory(size_t count, size_t element_bytes) {
    int code = complain(EXIT_DEVICE, "not enough memory for %zu x %zu bytes: use fewer samples, crops or new tokens",
                        count, element_bytes);
    undo_unfinished();
    exit(mark_own_exit(code));
}
void *resize(void *memory, size_t count, size_t element_bytes) {
    void *resized = NULL;
    if (element_bytes && count <= SIZE_MAX / element_bytes)
        resized = realloc(memory, count ? count * element_bytes : 1);
    if (!resized) end_without_memory(count, element_bytes);
    return resized;
}
void *zeroed(size_t count, size_t element_bytes) {
    void *memory = resize(NULL, count, element_bytes);
    memset(memory, 0, count * element_bytes);
    return memory;
}
void *grown(void *items, size_t count, size_t element_bytes) {
    char *room = count & (count - 1) ? items : resize(items, count ? count * 2 : 1, element_bytes);
    memset(room + count * element_bytes, 0, element_bytes);
    return room;
}
char *copy_text(const char *text, size_t bytes) {
    char *copy = resize(NULL, bytes + 1, 1);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}
const char *name_in_path(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }
void text_add(struct text_buffer *buffer, const char *text, size_t bytes) {
    if (buffer->bytes + bytes + 1 > buffer->capacity) {
        buffer->capacity = (buffer->bytes + bytes + 1) * 2;
        buffer->data = resize(buffer->data, buffer->capacity, 1);
    }
    memcpy(buffer->data + buffer->bytes, text, bytes);
    buffer->bytes += bytes;
    buffer->data[buffer->bytes] = 0;
}
const char *plural_s(int64_t count) { return count == 1 ? "" : "s"; }
void text_add_string(struct text_buffer *buffer, const char *text) { text_add(buffer, text, strlen(text)); }
void text_add_format(struct text_buffer *buffer, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int bytes = vsnprintf(NULL, 0, format, arguments);
    char *text = resize(NULL, (size_t)bytes + 1, 1);
    vsnprintf(text, (size_t)bytes + 1, format, again);
    va_end(arguments);
    va_end(again);
    text_add(buffer, text, (size_t)bytes);
    free(text);
}
void text_list_take(struct text_list *list, char *text) {
    *ADDED(list->items, list->count) = text;
}
void text_list_copy(struct text_list *list, const char *text) { text_list_take(list, copy_text(text, strlen(text))); }
void text_list_add(struct text_list *list, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_list_copy(list, line);
}
int text_list_has(const struct text_list *list, const char *text) {
    for (size_t i = 0; i < list->count; i++) if (!strcmp(list->items[i], text)) return 1;
    return 0;
}
static int by_text(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}
void text_list_sort(struct text_list *list, size_t first) {
    if (list->count > first) qsort(list->items + first, list->count - first, sizeof *list->items, by_text);
}
void text_list_free(struct text_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *octets = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ octets[i]) * UINT64_C(1099511628211);
    return hash;
}
uint64_t hash_text(uint64_t hash, const char *text) {
    return hash_bytes(hash, text ? text : "\1", text ? strlen(text) + 1 : 2);
}
uint64_t hash_number(uint64_t hash, int64_t value) { return hash_bytes(hash, &value, sizeof value); }
const uint64_t HASH_START = UINT64_C(14695981039346656037);
void *reserve(struct buffer *buffer, size_t count, size_t element_bytes) {
    if (!buffer->data || count * element_bytes > buffer->bytes) {
        buffer->data = resize(buffer->data, count, element_bytes);
        buffer->bytes = count * element_bytes;
    }
    return buffer->data;
}

int compare_numbers(const void *left_item, const void *right_item) {
    const uint64_t left = *(const uint64_t *)left_item, right = *(const uint64_t *)right_item;
    return (left > right) - (left < right);
}
size_t count_repeated(uint64_t *values, size_t count) {
    size_t repeated = 0;
    if (count) qsort(values, count, sizeof *values, compare_numbers);
    for (size_t i = 1; i < count; i++) repeated += values[i] == values[i - 1] && (i == 1 || values[i] != values[i - 2]);
    return repeated;
}
