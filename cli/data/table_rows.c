/* table_rows.c: a sweep's data set that is a table or several shards of one. */
#include "data/table_rows.h"

#include "base/console.h"
#include "base/files.h"
#include "vlmprof_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *option_text(const struct options *options, const char *name) {
    return has_option(options, name) ? text_of(options, name) : NULL;
}
/* The part of a shard's name that identifies the split: "test" of test-00000-of-00002. */
static size_t part_bytes(const struct table *table) {
    const char *end = strstr(table->stem, "-0");
    return end ? (size_t)(end - table->stem) : strlen(table->stem);
}
/* A folder may contain several splits, like train and test: all are used, with a message. */
static void tell_of_parts(const struct table_rows *rows, const char *path) {
    const struct table *first = rows->tables;
    for (size_t i = 1; i < rows->table_count; i++) {
        const struct table *table = &rows->tables[i];
        if (!strcmp(first->folder, table->folder) && part_bytes(first) == part_bytes(table) &&
            !strncmp(first->stem, table->stem, part_bytes(first)))
            continue;
        complain(0, "%s: %zu files are used as one data set, among them %s and %s; to measure only one part, give its "
                    "file or folder", path, rows->table_count, first->path, table->path);
        return;
    }
}
vp_result table_rows_open(struct table_rows **out, const struct options *options, const char *path, vp_error *error) {
    struct table_wish wish = {NULL, NULL, NULL, NULL, NULL};
    struct table_rows *rows = zeroed(1, sizeof *rows);
    struct text_list paths = {NULL, 0};
    vp_result result = VP_OK;
    *out = NULL;
    wish.format = option_text(options, "data_format");
    if (wish.format && !strcmp(wish.format, "auto")) wish.format = NULL;
    wish.task = option_text(options, "dataset_name");
    if (wish.task && !task_find(wish.task)) wish.task = NULL; /* only a name for the results */
    wish.origin = option_text(options, "prompt_origin");
    wish.image_dir = option_text(options, "image_dir");
    wish.annotations = option_text(options, "annotations");
    if (is_folder(path)) table_files(path, &paths);
    else text_list_copy(&paths, path);
    for (size_t i = 0; i < paths.count && result == VP_OK; i++) {
        rows->tables = resize(rows->tables, i + 1, sizeof *rows->tables);
        result = table_open(&rows->tables[i], paths.items[i], &wish, error);
        if (result != VP_OK) break;
        rows->table_count++;
        rows->row_count += (int64_t)rows->tables[i].row_count;
    }
    text_list_free(&paths);
    if (result == VP_OK) {
        tell_of_parts(rows, path);
        *out = rows;
    } else table_rows_close(rows);
    return result;
}
void table_rows_close(struct table_rows *rows) {
    if (!rows) return;
    for (size_t i = 0; i < rows->table_count; i++) table_close(&rows->tables[i]);
    free(rows->tables);
    row_free(&rows->row);
    example_free(&rows->example);
    if (rows->folder) rmdir(rows->folder);
    FREE_ALL(rows->folder, rows);
}
int table_rows_is_plain(const struct table_rows *rows) {
    return rows->table_count == 1 && rows->tables[0].format == DATA_VLMPROF && rows->tables[0].json.shape == SHAPE_LINES
           && rows->tables[0].origin == ORIGIN_NONE;
}

/* The table of a row; *index becomes the row's index in that table. */
static struct table *table_of(struct table_rows *rows, int64_t *index) {
    size_t i = 0;
    while (i + 1 < rows->table_count && *index >= (int64_t)rows->tables[i].row_count)
        *index -= (int64_t)rows->tables[i++].row_count;
    return &rows->tables[i];
}
int table_rows_drops(struct table_rows *rows, int64_t index) {
    struct table *table = table_of(rows, &index);
    return (table->format == DATA_TSV || table->format == DATA_CSV) && tsv_is_dropped(&table->tsv, (size_t)index);
}
int table_rows_record(struct table_rows *rows, int64_t index, struct text_buffer *record) {
    struct table *table = table_of(rows, &index);
    struct example *example = &rows->example;
    vp_json_writer writer;
    if (!table_example(table, (size_t)index, &rows->row, example)) return 0;
    example_see_pictures(example, &rows->row, table->folder, table->image_dir, 1);
    vp_json_writer_init_sink(&writer, text_sink, record, 0);
    vp_json_begin_object(&writer);
    example_put_id(&writer, example);
    table_put_record(&writer, table, example);
    if (example->picture_count) { /* what the pictures are belongs to the record */
        PUT(&writer, KEY_ARRAY("images_sha256"));
        for (size_t i = 0; i < example->picture_count; i++) json_lossy(&writer, example->pictures[i].sha256);
        vp_json_end_array(&writer);
    }
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) != VP_OK) example_fail(example, "it cannot be written as JSON");
    return 1;
}
const char *table_rows_reason(struct table_rows *rows) { return rows->example.reason; }

/* Writes a picture inside the data to a file. Returns its path, malloc'ed, or NULL if it cannot be written. */
static char *write_picture(struct table_rows *rows, const struct picture *picture) {
    char name[120];
    if (picture->blob >= rows->row.blob_count) return NULL;
    if (!rows->folder) {
        const char *base = getenv("TMPDIR");
        snprintf(name, sizeof name, "vlmprof-%lld-XXXXXX", (long long)vp_process_id());
        rows->folder = join_path(base && *base ? base : "/tmp", name);
        if (!mkdtemp(rows->folder)) {
            free(rows->folder);
            rows->folder = NULL;
            return NULL;
        }
    }
    snprintf(name, sizeof name, "%.16s.img", picture->sha256);
    char *path = join_path(rows->folder, name);
    if (vp_path_kind(path) != VP_PATH_NONE) { /* another sample has the same picture now */
        free(path);
        snprintf(name, sizeof name, "%.16s_%u.img", picture->sha256, rows->file_count++);
        path = join_path(rows->folder, name);
    }
    if (vp_file_write(path, rows->row.blobs[picture->blob].data, picture->bytes, NULL) == VP_OK) return path;
    free(path);
    return NULL;
}
void table_rows_pictures(struct table_rows *rows, struct text_list *files, struct text_list *temporary) {
    for (size_t i = 0; i < rows->example.picture_count; i++) {
        const struct picture *picture = &rows->example.pictures[i];
        if (picture->path) text_list_copy(files, picture->file ? picture->file : picture->path);
        else {
            char *path = write_picture(rows, picture);
            text_list_copy(files, path ? path : "(no temporary file can be written)");
            if (path) text_list_take(temporary, path);
        }
    }
}
