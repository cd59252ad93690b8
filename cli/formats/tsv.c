/* tsv.c: VLMEvalKit's table of samples (vlmeval/dataset/image_base.py, smp/file.py at e8e78f05). */
#include "formats/tsv.h"

#include "vlmprof_file.h"

#include <stdlib.h>
#include <string.h>

static size_t character_count(const char *text, size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}
static int is_reference(const struct cell *cell) {
    return !cell->is_missing && cell->bytes <= (size_t)REFERENCE_CHARACTERS_MAX * 4
           && character_count(cell->text, cell->bytes) <= REFERENCE_CHARACTERS_MAX;
}
/* A hash under which "007" and "7" are equal: only a column of integers prints them equally, and the column's type is
 * known later. */
static uint64_t hash_of_index(const char *text) {
    const char *at = text + (*text == '+' || *text == '-');
    size_t digits = strspn(at, "0123456789");
    if (digits && !at[digits]) {
        while (*at == '0' && at[1]) at++;
        return hash_text(hash_text(HASH_START, *text == '-' && *at != '0' ? "-" : ""), at);
    }
    return hash_text(HASH_START, text);
}
/* Stores the key by which a reference is looked up. */
static vp_result see_row(void *user, struct cells *cells, size_t row) {
    struct tsv *tsv = (struct tsv *)user;
    struct cell image;
    if (!row) {
        tsv->index = cells_column(cells, "index");
        tsv->image = cells_column(cells, "image");
        tsv->image_path = cells_column(cells, "image_path");
    }
    if (tsv->image == SIZE_MAX) return VP_OK;
    image = cell_written(cells, tsv->image);
    tsv->missing_count += (size_t)image.is_missing;
    if (image.is_missing) return VP_OK;
    tsv->reference_count += (size_t)is_reference(&image);
    if (tsv->index == SIZE_MAX) return VP_OK;
    if (tsv->key_count == tsv->key_capacity) {
        tsv->key_capacity = tsv->key_capacity * 3 / 2 + 256;
        tsv->keys = resize(tsv->keys, tsv->key_capacity, sizeof *tsv->keys);
    }
    tsv->keys[tsv->key_count].hash = hash_of_index(cell_written(cells, tsv->index).text);
    tsv->keys[tsv->key_count++].row = (uint32_t)row;
    return row < UINT32_MAX ? VP_OK : VP_ERR_UNSUPPORTED;
}
static int compare_keys(const void *left_item, const void *right_item) {
    const struct row_key *left = (const struct row_key *)left_item, *right = (const struct row_key *)right_item;
    if (left->hash != right->hash) return (left->hash > right->hash) - (left->hash < right->hash);
    return (left->row > right->row) - (left->row < right->row);
}
vp_result tsv_open(struct tsv *tsv, const char *path, char delimiter, vp_error *error) {
    tsv->index = tsv->image = tsv->image_path = SIZE_MAX;
    vp_result result = cells_open(&tsv->cells, path, delimiter, see_row, tsv, error);
    tsv->index = cells_column(&tsv->cells, "index");
    tsv->image = cells_column(&tsv->cells, "image");
    tsv->image_path = cells_column(&tsv->cells, "image_path");
    if (!tsv->reference_count) {
        free(tsv->keys);
        tsv->keys = NULL;
        tsv->key_count = 0;
    }
    if (tsv->key_count) qsort(tsv->keys, tsv->key_count, sizeof *tsv->keys, compare_keys);
    return result;
}
void tsv_close(struct tsv *tsv) {
    cells_close(&tsv->cells);
    FREE_ALL(tsv->keys, tsv->picture.data);
    memset(tsv, 0, sizeof *tsv);
    tsv->cells.window.source.fd = -1;
}
int tsv_is_dropped(struct tsv *tsv, size_t row) {
    return tsv->missing_count && cells_row(&tsv->cells, row, NULL) == VP_OK
           && cell_written(&tsv->cells, tsv->image).is_missing;
}

/* Finds the last row with this index; -1 if none. Reads rows. */
static int64_t find_row(struct tsv *tsv, const char *index) {
    uint64_t hash = hash_of_index(index);
    size_t low = 0, high = tsv->key_count;
    int64_t found = -1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tsv->keys[middle].hash < hash) low = middle + 1;
        else high = middle;
    }
    for (size_t tries = 0; low < tsv->key_count && tsv->keys[low].hash == hash && tries < CHAIN_MAX; low++, tries++)
        if (cells_row(&tsv->cells, tsv->keys[low].row, NULL) == VP_OK
            && !strcmp(cell_said(&tsv->cells, tsv->index).text, index))
            found = tsv->keys[low].row;
    return found;
}
/* Follows the references that start at a row. tsv->picture is set to the cell of the last one. */
static vp_result follow(struct tsv *tsv, size_t row, const char *reference, vp_error *error) {
    const char *path = tsv->cells.window.source.path;
    char name[REFERENCE_CHARACTERS_MAX * 4 + 1];
    size_t at = row;
    memcpy(name, reference, strlen(reference) + 1);
    for (int steps = 0; steps < CHAIN_MAX; steps++) {
        int64_t target = tsv->index == SIZE_MAX ? -1 : find_row(tsv, name);
        if (target < 0)
            return vp_failf(error, VP_ERR_FORMAT, -1, path,
                            "its image \"%.70s\" is neither a picture in base64 nor the "
                            "index of another row",
                            name);
        if (cells_row(&tsv->cells, (size_t)target, error) != VP_OK) return VP_ERR_READ;
        struct cell cell = cell_said(&tsv->cells, tsv->image);
        if (!is_reference(&cell)) {
            tsv->picture.bytes = 0;
            text_add(&tsv->picture, cell.text, cell.bytes);
            return VP_OK;
        }
        if ((size_t)target >= at) /* VLMEvalKit resolves references from the first row to the last, and stops here */
            return vp_failf(error, VP_ERR_FORMAT, -1, path,
                            "its image refers to index \"%.70s\", which refers to another row and does not come before "
                            "this one", name);
        at = (size_t)target;
        memcpy(name, cell.text, cell.bytes + 1);
    }
    return vp_failf(error, VP_ERR_FORMAT, -1, path, "its image is reached only through more than %d "
                                                    "references", CHAIN_MAX);
}
/* Decodes the pictures of a cell and lists them. */
static vp_result put_pictures(struct tsv *tsv, const char *text, struct row *row, vp_json_writer *writer,
                              vp_error *error) {
    struct text_list list = {NULL, 0};
    vp_result result = VP_OK;
    if (!python_texts(text, &list))
        result = vp_fail(error, VP_ERR_FORMAT, -1, tsv->cells.window.source.path,
                         "its image begins like a list but is not a Python list of texts");
    PUT(writer, KEY_ARRAY("image"));
    for (size_t i = 0; i < list.count && result == VP_OK; i++) {
        size_t bytes;
        unsigned char *data = base64_decode(list.items[i], strlen(list.items[i]), &bytes);
        if (!data)
            result =
                vp_failf(error, VP_ERR_FORMAT, -1, tsv->cells.window.source.path, "its image %zu is not base64", i + 1);
        else {
            PUT(writer, KEY_OBJECT(NULL), KEY("blob", (int64_t)row_take_blob(row, data, bytes)), END_OBJECT);
        }
    }
    vp_json_end_array(writer);
    text_list_free(&list);
    return result;
}
/* Writes a cell as a member. Returns 0 if it is not UTF-8 or contains a NUL. */
static int put_cell(struct tsv *tsv, size_t column, vp_json_writer *writer) {
    struct cell cell = cell_said(&tsv->cells, column);
    struct text_list paths = {NULL, 0};
    if (!cell.is_missing &&
        (strlen(cell.text) != cell.bytes || vp_utf8_valid_bytes(cell.text, cell.bytes) != cell.bytes))
        return 0;
    vp_json_key(writer, tsv->cells.names.items[column]);
    if (cell.is_missing) vp_json_null(writer);
    else if (column == tsv->index && tsv->cells.types[column] <= COLUMN_UNSIGNED)
        vp_json_raw(writer, cell.text, cell.bytes);
    else if (column == tsv->image_path && python_texts(cell.text, &paths)) {
        vp_json_begin_array(writer);
        for (size_t i = 0; i < paths.count; i++) vp_json_string(writer, paths.items[i]);
        vp_json_end_array(writer);
    } else vp_json_string_bytes(writer, cell.text, cell.bytes);
    text_list_free(&paths);
    return 1;
}
vp_result tsv_row(struct tsv *tsv, size_t index, struct row *row, vp_error *error) {
    const char *path = tsv->cells.window.source.path;
    vp_json_writer writer;
    vp_result result = cells_row(&tsv->cells, index, error);
    struct cell image = {"", 0, 1};
    if (result != VP_OK) return result;
    vp_json_writer_init_sink(&writer, text_sink, &row->json, 0);
    vp_json_begin_object(&writer);
    if (tsv->image != SIZE_MAX) image = cell_said(&tsv->cells, tsv->image);
    if (!image.is_missing) {
        tsv->picture.bytes = 0;
        if (is_reference(&image)) result = follow(tsv, index, image.text, error);
        else text_add(&tsv->picture, image.text, image.bytes);
        if (result == VP_OK) result = put_pictures(tsv, tsv->picture.data, row, &writer, error);
        if (result == VP_OK) result = cells_row(&tsv->cells, index, error);
    }
    for (size_t i = 0; i < tsv->cells.names.count && result == VP_OK; i++)
        if (i != tsv->image && cells_column(&tsv->cells, tsv->cells.names.items[i]) == i && !put_cell(tsv, i, &writer))
            result = vp_failf(error, VP_ERR_FORMAT, -1, path, "its cell \"%.80s\" is not UTF-8, or contains a NUL byte",
                              tsv->cells.names.items[i]);
    vp_json_end_object(&writer);
    return result == VP_OK ? vp_json_finish(&writer) : result;
}
