/* arrow.h: reads Arrow IPC files, row by row: the streams written by datasets.save_to_disk, and files (Feather).
 * Supported are uncompressed buffers of texts, bytes, numbers, booleans, times, lists and structs in any nesting.
 * Anything else is rejected with an error that names the column and the type, and gives the command that converts it to
 * a Parquet file. The file is not trusted: every offset is checked against its buffer before it is used. Memory: 32
 * bytes per record batch, half a KiB per buffer of the schema, and the current row. */
#ifndef VLMPROF_CLI_ARROW_H
#define VLMPROF_CLI_ARROW_H
#include "formats/row.h"
#include <stdint.h>

struct arrow;

/* Opens a file and finds its record batches. Returns VP_OK, and the caller calls arrow_close. */
vp_result arrow_open(struct arrow **file, const char *path, vp_error *error);
void arrow_close(struct arrow *file);
int64_t arrow_row_count(const struct arrow *file);
size_t arrow_column_count(const struct arrow *file);
const char *arrow_column_name(const struct arrow *file, size_t column);

/* Appends {"COLUMN": value, ..} to row->json, like parquet_row. */
vp_result arrow_row(struct arrow *file, int64_t index, struct row *row, vp_error *error);

#endif
