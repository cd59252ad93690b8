/* row.h: one row of a data file of any format: a JSON object, and the bytes that do not fit into JSON. A table reader
 * fills a row; a task reads it. */
#ifndef VLMPROF_CLI_ROW_H
#define VLMPROF_CLI_ROW_H
#include "base/json.h"
#include "base/memory.h"

/* Bytes inside a row, usually a picture file. In the JSON they are {"blob": INDEX}. */
struct blob { unsigned char *data; size_t bytes; };

enum { ROW_BYTES_MAX = 1 << 30 }; /* a page of a few bytes can claim a list of 2^31 values */
struct row {
    struct text_buffer json;
    struct parsed parsed;
    struct blob *blobs;
    size_t blob_count, blob_capacity;
};

void row_clear(struct row *row); /* call this before each row */
void row_free(struct row *row);

/* Takes over malloc'ed bytes and returns their index. */
size_t row_take_blob(struct row *row, unsigned char *data, size_t bytes);

/* Append values of a reader's columns: text if the bytes are UTF-8 without a NUL, otherwise a blob; a number of `width`
 * bytes from its bits; a real number of 4 or 8 bytes, or null if it is not finite. */
void row_put_bytes(struct row *row, vp_json_writer *writer, const void *data, size_t bytes);
void row_put_int(vp_json_writer *writer, uint64_t bits, int32_t width, int is_unsigned);
void row_put_float(vp_json_writer *writer, uint64_t bits, int32_t width);

/* Parses row->json. */
vp_result row_parse(struct row *row, vp_error *error);

/* Decodes base64 strictly: white space is skipped, other characters outside the alphabet are not allowed, and the
 * padding must be right. Returns malloc'ed bytes, or NULL with *bytes 0 if the text is not base64. */
unsigned char *base64_decode(const char *text, size_t text_bytes, size_t *bytes);

#endif
