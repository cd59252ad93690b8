/* table.h: tables that print themselves.
 * A command fills an array of structs and hands it over with a description of its columns. Text, Markdown, CSV and JSON
 * come from that one description: which column is in which form, by which name, how its number looks.
 *
 *     static const struct table_column COLUMNS[] = {
 *         {CELL(struct row, name), "name", "configuration"},
 *         {CELL(struct row, share), "share", "share %", .format = "%.1f", .scale = 100},
 *         {CELL_RANGE(struct row, p50.value, p50.low, p50.high), "p50_ms", "P50", .range_key = "p50_interval"},
 *     };
 *     const struct table table = TABLE(COLUMNS, rows, row_count, NULL, 0);
 *     document_add_table(&document, &table); */
#ifndef VLMPROF_CLI_TABLE_H
#define VLMPROF_CLI_TABLE_H
#include "base/document.h"
#include "base/json.h"
#include <stddef.h>

/* What a row has at a column's offset. CELL_CHARS: a text of its own, an array; CELL_BY: a function makes the cell. */
enum cell_type { CELL_BY, CELL_TEXT, CELL_CHARS, CELL_INT, CELL_UNSIGNED, CELL_INT64, CELL_UINT64, CELL_REAL,
                 CELL_INTERVAL };
enum { CELL_BYTES = 200 };

/* The cell of a computed column. `own` is room for a text, which cell->text may point to. A cell begins as MEMBER_NULL:
 * "-" as text, empty in CSV, null in JSON. MEMBER_NONE: JSON leaves its key out. */
typedef void cell_maker(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]);

/* A column. `key` is its name in JSON and CSV, `heading` in text and Markdown; NULL: it is not there. */
struct table_column {
    enum cell_type type; size_t offset, low, high; /* low, high: the ends of an interval, doubles */
    cell_maker *by;        /* of CELL_BY */
    const char *key, *heading;
    const char *format;    /* printf's, of the number as text; NULL: about four significant digits */
    double scale;          /* of the number as text; 0: 1 */
    int is_measured;       /* truth: as number_measured rounds, so that noise is not printed */
    const char *range_key; /* of the interval in JSON; NULL: none. In CSV it is two fields, KEY_low and KEY_high */
    int forms;             /* that it is left out of, of those that key and heading name: NOT_IN_... */
    unsigned needs;        /* the column is there only in tables that have all of these bits */
};
enum { NOT_IN_JSON = 1, NOT_IN_CSV = 2 };

#define CELL_TYPE(type, member) \
    _Generic(&((type *)NULL)->member, char **: CELL_TEXT, const char **: CELL_TEXT, const char *const *: CELL_TEXT, \
             int *: CELL_INT, const int *: CELL_INT, unsigned *: CELL_UNSIGNED, \
             long *: CELL_INT64, long long *: CELL_INT64, unsigned long *: CELL_UINT64, \
             unsigned long long *: CELL_UINT64, double *: CELL_REAL, default: CELL_CHARS)
/* The first members of a column: its type and place in the row. */
#define CELL(row, member) .type = CELL_TYPE(row, member), .offset = offsetof(row, member), .by = NULL
#define CELL_RANGE(row, member, low_end, high_end) \
    .type = CELL_INTERVAL, .offset = offsetof(row, member), .low = offsetof(row, low_end), \
    .high = offsetof(row, high_end), .by = NULL
#define CELL_ESTIMATE(row, member) CELL_RANGE(row, member.value, member.low, member.high) /* a vp_estimate */
#define CELL_MADE(function) .type = CELL_BY, .by = function

struct table {
    const struct table_column *columns; size_t column_count;
    const void *rows; size_t row_count, row_bytes;
    const void *context; /* for the columns' functions */
    unsigned has;        /* bits that columns need */
};
#define TABLE(columns, rows, count, context, has) \
    {columns, sizeof(columns) / sizeof *(columns), rows, count, sizeof *(rows), context, has}

/* Adds the table as a block. */
void document_add_table(struct document *document, const struct table *table);

/* Appends the line of heads and a line for each row. */
void table_csv(struct text_buffer *out, const struct table *table);

/* Writes the rows under a key, an array of objects; or the members of one row into the open object. */
void table_put(vp_json_writer *writer, const char *key, const struct table *table);
void table_put_row(vp_json_writer *writer, const struct table *table, size_t row);

#endif
