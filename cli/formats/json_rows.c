/* json_rows.c: the records of a JSON file of any size. Only quotes and brackets determine where a record ends; the
 * library's strict reader parses the record when it is read. */
#include "formats/json_rows.h"

#include "vlmprof_file.h"

#include <stdlib.h>
#include <string.h>

static vp_result add_record(struct json_rows *rows, int64_t start, int64_t end, vp_error *error) {
    if (end - start > RECORD_BYTES_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, start, rows->window.source.path, "a record is longer than 1 GiB");
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity * 3 / 2 + 256;
        rows->places = resize(rows->places, rows->capacity, sizeof *rows->places);
        rows->lengths = resize(rows->lengths, rows->capacity, sizeof *rows->lengths);
    }
    rows->places[rows->count] = start;
    rows->lengths[rows->count++] = (uint32_t)(end - start);
    return VP_OK;
}
/* Returns the first byte that is not white space, starting at *place, and moves *place there. -1 at the end. */
static int peek_byte(struct window *window, int64_t *place) {
    int byte;
    while ((byte = window_byte(window, *place)) == ' ' || byte == '\t' || byte == '\n' || byte == '\r') ++*place;
    return byte;
}
/* The position after the value that begins at `place`; -1 if it does not end. */
static int64_t skip_value(struct window *window, int64_t place) {
    int depth = 0, quoted = 0, byte, first = window_byte(window, place);
    const int is_scalar = first != '{' && first != '[' && first != '"';
    for (;; place++) {
        byte = window_byte(window, place);
        if (byte < 0) return is_scalar ? place : -1;
        if (quoted) {
            if (byte == '\\') place++;
            else if (byte == '"') {
                quoted = 0;
                if (!depth) return place + 1;
            }
        } else if (is_scalar) {
            if (byte == ',' || byte == ']' || byte == '}' || byte == ' ' || byte == '\n' || byte == '\r' ||
                byte == '\t')
                return place;
        } else if (byte == '"') quoted = 1;
        else if (byte == '{' || byte == '[') depth++;
        else if ((byte == '}' || byte == ']') && !--depth) return place + 1;
    }
}
static vp_result cut_off(const struct json_rows *rows, int64_t place, vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, place, rows->window.source.path,
                   "the file ends inside this value, or is not JSON");
}
/* Adds the elements of the array that begins at *place. */
static vp_result find_elements(struct json_rows *rows, int64_t *place, vp_error *error) {
    vp_result result = VP_OK;
    int byte;
    ++*place;
    if (peek_byte(&rows->window, place) == ']') {
        ++*place;
        return VP_OK;
    }
    while (result == VP_OK) {
        byte = peek_byte(&rows->window, place);
        int64_t end = byte < 0 || byte == ',' || byte == ']' ? -1 : skip_value(&rows->window, *place);
        if (end < 0) return cut_off(rows, *place, error);
        result = add_record(rows, *place, end, error);
        *place = end;
        byte = peek_byte(&rows->window, place);
        ++*place;
        if (byte == ']') return result;
        if (result == VP_OK && byte != ',')
            return vp_fail(error, VP_ERR_FORMAT, *place - 1, rows->window.source.path,
                           "expected a comma or the end of the array");
    }
    return result;
}
/* Reads the key at *place, truncated to the capacity, and moves *place to its value. Returns 0 if there is no key. */
static int read_key(struct window *window, int64_t *place, char *key, size_t capacity) {
    size_t bytes = 0;
    int64_t end;
    if (peek_byte(window, place) != '"' || (end = skip_value(window, *place)) < 0) return 0;
    for (int64_t at = *place + 1; at < end - 1 && bytes + 1 < capacity; at++)
        key[bytes++] = (char)window_byte(window, at);
    key[bytes] = 0;
    *place = end;
    if (peek_byte(window, place) != ':') return 0;
    ++*place;
    return peek_byte(window, place) >= 0;
}
/* Reads the members of the object at *place. The first of "data", "questions" and "annotations" that is an array of
 * objects has the records; `all` adds every value instead. *is_map: all values are objects. */
static vp_result find_members(struct json_rows *rows, int64_t *place, int all, int *is_map, vp_error *error) {
    static const char *const keys[] = {"data", "questions", "annotations"};
    struct window *window = &rows->window;
    vp_result result = VP_OK;
    char key[32];
    int byte;
    *is_map = 1;
    ++*place;
    if (peek_byte(window, place) == '}') {
        ++*place;
        return VP_OK;
    }
    while (result == VP_OK) {
        int64_t start, end;
        int is_ours = 0;
        if (!read_key(window, place, key, sizeof key)) return cut_off(rows, *place, error);
        start = *place;
        byte = window_byte(window, start);
        *is_map &= byte == '{';
        for (size_t i = 0; !all && !rows->key[0] && byte == '[' && i < sizeof keys / sizeof *keys; i++) {
            int64_t inner = start + 1;
            is_ours |= !strcmp(key, keys[i]) && peek_byte(window, &inner) == '{';
        }
        if (is_ours) {
            memcpy(rows->key, key, sizeof key);
            rows->shape = SHAPE_MEMBER;
            result = find_elements(rows, place, error);
            end = *place;
        } else if ((end = skip_value(window, start)) < 0) return cut_off(rows, start, error);
        else if (all) result = add_record(rows, start, end, error);
        else if (!strcmp(key, "data_subtype"))
            result = source_text(&window->source, start, end - start, &rows->subtype, error);
        *place = end;
        byte = peek_byte(window, place);
        ++*place;
        if (byte == '}') return result;
        if (result == VP_OK && byte != ',')
            return vp_fail(error, VP_ERR_FORMAT, *place - 1, window->source.path,
                           "expected a comma or the end of the object");
    }
    return result;
}
/* Adds the lines that are not blank. */
static vp_result find_lines(struct json_rows *rows, int64_t place, vp_error *error) {
    struct window *window = &rows->window;
    vp_result result = VP_OK;
    while (result == VP_OK && peek_byte(window, &place) >= 0) {
        int64_t start = place;
        while (window_byte(window, place) >= 0) { /* the window contains `place` */
            const char *at = window->data + (place - window->start);
            size_t left = window->bytes - (size_t)(place - window->start);
            const char *found = memchr(at, '\n', left);
            place += found ? found - at : (int64_t)left;
            if (found) break;
        }
        result = add_record(rows, start, place, error);
    }
    return result;
}
vp_result json_rows_open(struct json_rows *rows, const char *path, vp_error *error) {
    struct window *window = &rows->window;
    int64_t place = 0, start;
    int is_map = 0, byte;
    vp_result result = source_open(&window->source, path, error);
    if (result != VP_OK) return result;
    if (window_byte(window, 0) == 0xEF && window_byte(window, 1) == 0xBB && window_byte(window, 2) == 0xBF) place = 3;
    byte = peek_byte(window, &place);
    if (byte < 0) return vp_fail(error, VP_ERR_FORMAT, 0, path, "the file is empty");
    start = place;
    if (byte == '[') {
        rows->shape = SHAPE_ARRAY;
        return find_elements(rows, &place, error);
    }
    if (byte == '{' && find_members(rows, &place, 0, &is_map, NULL) == VP_OK && peek_byte(window, &place) < 0) {
        if (rows->shape == SHAPE_MEMBER) return VP_OK;
        if (is_map) {
            rows->shape = SHAPE_MAP;
            place = start;
            return find_members(rows, &place, 1, &is_map, error);
        }
    }
    rows->count = 0;
    rows->key[0] = 0;
    rows->shape = SHAPE_LINES;
    return find_lines(rows, start, error);
}
void json_rows_close(struct json_rows *rows) {
    window_close(&rows->window);
    FREE_ALL(rows->places, rows->lengths, rows->subtype.data);
    memset(rows, 0, sizeof *rows);
    rows->window.source.fd = -1;
}
size_t json_rows_line(struct json_rows *rows, size_t index) {
    size_t line = 1;
    int byte;
    for (int64_t place = 0; place < rows->places[index] && (byte = window_byte(&rows->window, place)) >= 0; place++)
        line += byte == '\n';
    return line;
}
vp_result json_rows_read(struct json_rows *rows, size_t index, struct row *row, vp_error *error) {
    return source_text(&rows->window.source, rows->places[index], rows->lengths[index], &row->json, error);
}
