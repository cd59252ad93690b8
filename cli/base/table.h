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

/* The value of a row at a column's offset. CELL_CHARS: an inline text, an array; CELL_BY: a function makes the cell. */
enum cell_type { CELL_BY, CELL_TEXT, CELL_CHARS, CELL_INT, CELL_UNSIGNED, CELL_INT64, CELL_UINT64, CELL_REAL,
                 CELL_INTERVAL, CELL_INT_PAIR, CELL_INT64_PAIR };
enum { CELL_BYTES = 200 };

/* Makes the cell of a computed column: "-" as text, empty in CSV and null in JSON unless it is set. `own` is space for
 * a text that cell->text may point to. */
typedef void cell_maker(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]);

/* A column. `key` is its name in JSON and CSV, `heading` in text and Markdown; NULL: it is not there. */
struct table_column {
    enum cell_type type; size_t offset, low, high; /* low, high: the ends of an interval, doubles; high: of a pair */
    cell_maker *by;        /* of CELL_BY */
    const char *key, *heading;
    const char *format;    /* printf's, of the number as text; NULL: about four significant digits; "x": of a pair */
    struct number_text (*as)(double value); /* the number as text, in the place of `format` */
    double scale;          /* of the number as text; 0: 1 */
    int is_measured;       /* 1 if rounded as by number_measured, so that noise is not printed */
    const char *range_key; /* of the interval in JSON; NULL: none. In CSV it is two fields, KEY_low and KEY_high */
    int rules;             /* COLUMN_... */
    unsigned in;           /* the column is only in tables that have one of these bits; 0: in all */
    int width;             /* of the text in a stream; below 0: flush left; 0: after two spaces, without a heading */
};
/* COLUMN_FROM_0: an integer below 0 is unknown; COLUMN_FROM_1: a pair that begins below 1. COLUMN_OR_NO_KEY: an unknown
 * value has no key in JSON; else null. COLUMN_NAMES: it names the row in a stream; a rejected row has only these. */
enum { COLUMN_NOT_IN_JSON = 1, COLUMN_NOT_IN_CSV = 2, COLUMN_FROM_0 = 4, COLUMN_OR_NO_KEY = 8, COLUMN_NAMES = 16,
       COLUMN_FROM_1 = 32 };

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
/* Two integers of one type as text, "AxB", with `format` between them; unknown if the first is below 0. */
#define CELL_PAIR(row, first, second) \
    .type = CELL_TYPE(row, first) == CELL_INT ? CELL_INT_PAIR : CELL_INT64_PAIR, .offset = offsetof(row, first), \
    .high = offsetof(row, second), .by = NULL
#define CELL_MADE(function) .type = CELL_BY, .by = function

struct table {
    const struct table_column *columns; size_t column_count;
    const void *rows; size_t row_count, row_bytes;
    const void *context; /* for the columns' functions */
    unsigned has;        /* bits, for the columns' `in` */
};
#define TABLE(columns, rows, count, context, has) \
    {columns, sizeof(columns) / sizeof *(columns), rows, count, sizeof *(rows), context, has}

/* Adds the headings and all cells, row by row, as shown to a reader; or the table as a block. Return the number of
 * columns. */
size_t table_texts(struct text_list *cells, const struct table *table);
size_t document_add_table(struct document *document, const struct table *table);

void cell_set_text(struct json_member *cell, const char *text); /* NULL: not known */

/* Appends the header line and a line for each row, or prints one line, of a row or of the headings. */
void table_csv(struct text_buffer *out, const struct table *table);
#define TABLE_HEADS SIZE_MAX
void table_print_csv(const struct table *table, size_t row);

/* A table whose rows are printed one by one when they are ready: as text in columns of fixed width, as CSV, or as the
 * elements of a JSON array, which table_stream_end ends. `refused`: why the row has no numbers; NULL: it has. */
struct table_stream {
    int csv, json;         /* 1 if the option is given */
    int64_t row_count, refused_count;
    vp_json_writer writer; /* of --json, to stdout */
};
void table_stream_row(struct table_stream *stream, const struct table *table, const char *refused);
void table_stream_end(struct table_stream *stream);

/* Writes the rows under a key, an array of objects; or the members of one row into the open object. */
void table_put(vp_json_writer *writer, const char *key, const struct table *table);
void table_put_row(vp_json_writer *writer, const struct table *table, size_t row);

#endif
