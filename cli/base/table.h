/* table.h: tables that print themselves.
 * A command fills an array of structs and hands it over with a description of its columns. Text, CSV and JSON
 * are made from this one description: the forms that have the column, its names, and the format of its numbers.
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

/* The type of the value at a column's offset in a row. CELL_CHARS: an array of char; CELL_BY: a function makes the
 * cell. */
enum cell_type { CELL_BY, CELL_TEXT, CELL_CHARS, CELL_INT, CELL_UNSIGNED, CELL_INT64, CELL_UINT64, CELL_REAL,
                 CELL_INTERVAL, CELL_INT_PAIR, CELL_INT64_PAIR };
enum { CELL_BYTES = 200 };

/* Makes the cell of a computed column. If it is not set, it is "-" in text, empty in CSV and null in JSON. `own` is
 * space for a text that cell->text may point to. */
typedef void cell_maker(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]);

/* A column. `key` is its name in JSON and CSV, `heading` in text; NULL if it is not in that form. */
struct table_column {
    enum cell_type type; size_t offset, low, high; /* low, high: ends of an interval, doubles; high: of a pair */
    cell_maker *by;        /* for CELL_BY */
    const char *key, *heading;
    const char *format; /* printf format of the number's text; NULL: about four significant digits; "x": a pair */
    struct number_text (*as)(double value); /* text of the number, instead of `format` */
    double scale;                           /* factor of the number in text; 0 means 1 */
    int is_measured;                        /* 1 if rounded like number_measured, so that noise is not printed */
    const char *range_key; /* key of the interval in JSON, or NULL. In CSV it has two fields, KEY_low and KEY_high */
    int rules;             /* COLUMN_... */
    unsigned in;           /* the column is only in tables with one of these bits; 0: in all */
    int width;             /* width in a stream; negative: align left; 0: after two spaces, without a heading */
};
/* COLUMN_FROM_0: an integer below 0 is unknown. COLUMN_FROM_1: a pair whose first value is below 1 is unknown.
 * COLUMN_OR_NO_KEY: an unknown value has no key in JSON, instead of null. COLUMN_NAMES: the column names the row in a
 * stream; a rejected row has only these. */
enum { COLUMN_NOT_IN_JSON = 1, COLUMN_NOT_IN_CSV = 2, COLUMN_FROM_0 = 4, COLUMN_OR_NO_KEY = 8, COLUMN_NAMES = 16,
       COLUMN_FROM_1 = 32 };

#define CELL_TYPE(type, member) \
    _Generic(&((type *)NULL)->member, char **: CELL_TEXT, const char **: CELL_TEXT, const char *const *: CELL_TEXT, \
             int *: CELL_INT, const int *: CELL_INT, unsigned *: CELL_UNSIGNED, \
             long *: CELL_INT64, long long *: CELL_INT64, unsigned long *: CELL_UINT64, \
             unsigned long long *: CELL_UINT64, double *: CELL_REAL, default: CELL_CHARS)
/* The first members of a column: its type and its offset in the row. */
#define CELL(row, member) .type = CELL_TYPE(row, member), .offset = offsetof(row, member), .by = NULL
#define CELL_RANGE(row, member, low_end, high_end) \
    .type = CELL_INTERVAL, .offset = offsetof(row, member), .low = offsetof(row, low_end), \
    .high = offsetof(row, high_end), .by = NULL
#define CELL_ESTIMATE(row, member) CELL_RANGE(row, member.value, member.low, member.high) /* a vp_estimate */
/* Two integers of one type as text, "AxB", with `format` between them; unknown if the first is below 0. */
#define CELL_PAIR(row, first, second) \
    .type = CELL_TYPE(row, first) == CELL_INT ? CELL_INT_PAIR : CELL_INT64_PAIR, .offset = offsetof(row, first), \
    .high = offsetof(row, second), .by = NULL
#define CELL_MADE(function) .type = CELL_BY, .by = function

struct table {
    const struct table_column *columns; size_t column_count;
    const void *rows; size_t row_count, row_bytes;
    const void *context; /* passed to the columns' functions */
    unsigned has;        /* bits, for the columns' `in` */
};
#define TABLE(columns, rows, count, context, has) \
    { columns, sizeof(columns) / sizeof *(columns), rows, count, sizeof *(rows), context, has }

/* table_texts adds the headings and all cells as text, row by row; document_add_table adds the table as a block. Both
 * return the number of columns. */
size_t table_texts(struct text_list *cells, const struct table *table);
size_t document_add_table(struct document *document, const struct table *table);

void cell_set_text(struct json_member *cell, const char *text); /* NULL: not known */

void table_csv(struct text_buffer *out, const struct table *table); /* appends the headings and a line per row */

/* A table whose rows are printed as soon as they are ready: as text in columns of fixed width, as CSV, or as elements
 * of a JSON array, which table_stream_end ends. `refused`: why the row has no numbers; NULL if it has. */
struct table_stream {
    int csv, json; /* 1 if this option is given */
    int64_t row_count, refused_count;
    vp_json_writer writer; /* for --json, to stdout */
};
void table_stream_row(struct table_stream *stream, const struct table *table, const char *refused);
void table_stream_end(struct table_stream *stream);

/* table_put writes the rows under a key, as an array of objects; table_put_row the members of a row into the open
 * object. */
void table_put(vp_json_writer *writer, const char *key, const struct table *table);
void table_put_row(vp_json_writer *writer, const struct table *table, size_t row);

#endif
