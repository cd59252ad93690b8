/* parquet.h: reads Parquet files, row by row. Supported are: no compression, Snappy, and ZSTD if libzstd is installed;
 * the encodings PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY and RLE; data pages v1 and v2; lists and structs in any
 * nesting; any number of row groups. Anything else is rejected with an error that names the column and the encoding,
 * and gives the command that rewrites the file. The file is not trusted: sizes are checked against the file, the page
 * and a limit before memory is allocated. Memory: the footer, and one page (with its dictionary) per column that is
 * read. */
#ifndef VLMPROF_CLI_PARQUET_H
#define VLMPROF_CLI_PARQUET_H
#include "formats/row.h"
#include <stdint.h>

struct parquet;

enum { PARQUET_PAGE_BYTES_MAX = 1 << 30, PARQUET_FOOTER_BYTES_MAX = 64 << 20 };

/* Opens a file and reads its footer. Returns VP_OK, and the caller calls parquet_close. */
vp_result parquet_open(struct parquet **file, const char *path, vp_error *error);
void parquet_close(struct parquet *file);
int64_t parquet_row_count(const struct parquet *file);

/* The names of the columns, without those inside groups; "COLUMN: its stored type" in words. */
size_t parquet_column_count(const struct parquet *file);
const char *parquet_column_name(const struct parquet *file, size_t column);

/* Appends {"COLUMN": value, ..} to row->json: texts, numbers, null, lists, objects. Bytes that are not UTF-8 become
 * blobs of the row. Ascending order is fastest. After a failure, the next row can still be read. */
vp_result parquet_row(struct parquet *file, int64_t index, struct row *row, vp_error *error);

/* Decompresses Snappy's raw block format. Returns 1 if `out` is filled exactly. */
int snappy_decompress(const unsigned char *in, size_t in_bytes, unsigned char *out, size_t out_bytes);

#endif
