/* table_rows.h: a data set that is one table or several shards of one, for a sweep: records, and the files of pictures.
 * A row becomes a record in the form of our own JSONL; a picture inside the data becomes a temporary file while its
 * sample is in use. */
#ifndef VLMPROF_CLI_TABLE_ROWS_H
#define VLMPROF_CLI_TABLE_ROWS_H
#include "base/options.h"
#include "formats/table.h"

struct table_rows {
    struct table *tables; size_t table_count;
    int64_t row_count;
    struct row row;          /* row of the latest record */
    struct example example;
    char *folder;            /* folder of temporary files; NULL if none was needed yet */
    unsigned file_count;
};

/* Opens a file, or all Parquet files in a folder. Returns VP_OK, and the caller calls table_rows_close. */
vp_result table_rows_open(struct table_rows **rows, const struct options *options, const char *path, vp_error *error);
void table_rows_close(struct table_rows *rows);

/* Returns 1 for a plain file of our own lines, which needs no table. */
int table_rows_is_plain(const struct table_rows *rows);

/* Returns 1 if the tool drops the row: it is not a sample. */
int table_rows_drops(struct table_rows *rows, int64_t index);

/* Appends the record of a row to `record`. Returns 0 if the tool drops the row. */
int table_rows_record(struct table_rows *rows, int64_t index, struct text_buffer *record);

/* The reason if the latest record cannot be used, in 480 bytes; otherwise "". */
const char *table_rows_reason(struct table_rows *rows);

/* Appends the files of the latest record's pictures, and to `temporary` those that exist only for its sample. */
void table_rows_pictures(struct table_rows *rows, struct text_list *files, struct text_list *temporary);

#endif
