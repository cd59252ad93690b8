/* table.c: tables that print themselves.
 * A column and a row make a cell, a typed value; each form prints cells in its own way. */
#include "base/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_there(const struct table *table, const struct table_column *column, const char *name, int form) {
    return name && !(column->forms & form) && (column->needs & ~table->has) == 0;
}
static double real_at(const char *row, size_t offset) {
    double value;
    memcpy(&value, row + offset, sizeof value);
    return value;
}
/* The cell of a row in a column; `own` holds a text that is made for it. */
static struct json_member cell_of(const struct table *table, const struct table_column *column, size_t index,
                             char own[CELL_BYTES]) {
    const char *row = (const char *)table->rows + index * table->row_bytes, *at = row + column->offset;
    struct json_member cell = {column->key, MEMBER_NULL, .low = (double)NAN, .high = (double)NAN};
    switch (column->type) {
    case CELL_BY: column->by(row, table->context, &cell, own); return cell;
    case CELL_TEXT: return json_member_text(column->key, *(const char *const *)(const void *)at);
    case CELL_CHARS: return json_member_text(column->key, at);
    case CELL_INT: return json_member_int(column->key, *(const int *)(const void *)at);
    case CELL_UNSIGNED: return json_member_int(column->key, *(const unsigned *)(const void *)at);
    case CELL_INT64: case CELL_UINT64: return json_member_int(column->key, *(const int64_t *)(const void *)at);
    case CELL_INTERVAL:
        cell.low = real_at(row, column->low);
        cell.high = real_at(row, column->high);
        break;
    case CELL_REAL: break;
    }
    cell.type = MEMBER_REAL;
    cell.real = real_at(row, column->offset);
    return cell;
}
/* The cell as a reader sees it. */
static void add_text(struct text_list *cells, const struct table_column *column, const struct json_member *cell) {
    const double scale = column->scale > 0 ? column->scale : 1;
    if (cell->type == MEMBER_TEXT) text_list_add(cells, "%s", cell->text);
    else if (cell->type == MEMBER_BOOL) text_list_add(cells, "%s", cell->whole ? "yes" : "no");
    else if (cell->type == MEMBER_INT && column->format)
        text_list_add(cells, "%s", number_formatted(column->format, (double)cell->whole * scale).text);
    else if (cell->type == MEMBER_INT) text_list_add(cells, "%lld", (long long)cell->whole);
    else if (cell->type != MEMBER_REAL) text_list_add(cells, "-");
    else if (column->is_measured)
        text_list_add(cells, "%s", number_measured(scale * cell->real, scale * cell->low, scale * cell->high).text);
    else if (column->format)
        text_list_add(cells, "%s", number_formatted(column->format, scale * cell->real).text);
    else text_list_add(cells, "%s", number_estimate(scale, cell->real, cell->low, cell->high).text);
}
void document_add_table(struct document *document, const struct table *table) {
    struct text_buffer heads = {NULL, 0, 0};
    struct text_list *cells;
    for (size_t i = 0, shown = 0; i < table->column_count; i++) {
        if (!is_there(table, &table->columns[i], table->columns[i].heading, 0)) continue;
        if (shown++) text_add_string(&heads, "|");
        text_add_string(&heads, table->columns[i].heading);
    }
    cells = document_table(document, heads.data);
    free(heads.data);
    for (size_t row = 0; row < table->row_count; row++)
        for (size_t i = 0; i < table->column_count; i++) {
            char own[CELL_BYTES];
            if (!is_there(table, &table->columns[i], table->columns[i].heading, 0)) continue;
            const struct json_member cell = cell_of(table, &table->columns[i], row, own);
            add_text(cells, &table->columns[i], &cell);
        }
}
static void add_csv(struct text_buffer *out, const struct json_member *cell, int is_range) {
    char text[32];
    if (cell->type == MEMBER_TEXT) csv_text(out, cell->text);
    else if (cell->type == MEMBER_INT || cell->type == MEMBER_BOOL) {
        snprintf(text, sizeof text, "%lld", (long long)cell->whole);
        text_add_string(out, text);
    } else if (cell->type == MEMBER_REAL && isfinite(cell->real)) {
        vp_number_format(cell->real, text);
        text_add_string(out, text);
    }
    if (!is_range) return;
    csv_number(out, cell->low);
    csv_number(out, cell->high);
}
void table_csv(struct text_buffer *out, const struct table *table) {
    for (size_t row = 0; row <= table->row_count; row++) { /* the heads, then the rows */
        for (size_t i = 0, shown = 0; i < table->column_count; i++) {
            const struct table_column *column = &table->columns[i];
            char own[CELL_BYTES], ends[CELL_BYTES];
            if (!is_there(table, column, column->key, NOT_IN_CSV)) continue;
            if (shown++) text_add_string(out, ",");
            if (row) {
                const struct json_member cell = cell_of(table, column, row - 1, own);
                add_csv(out, &cell, column->range_key != NULL);
                continue;
            }
            text_add_string(out, column->key);
            if (!column->range_key) continue;
            snprintf(ends, sizeof ends, ",%.80s_low,%.80s_high", column->key, column->key);
            text_add_string(out, ends);
        }
        text_add_string(out, "\n");
    }
}
void table_put_row(vp_json_writer *writer, const struct table *table, size_t row) {
    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        char own[CELL_BYTES];
        if (!is_there(table, column, column->key, NOT_IN_JSON)) continue;
        const struct json_member cell = cell_of(table, column, row, own);
        json_put_all(writer, &cell, 1);
        if (column->range_key) put_range(writer, column->range_key, cell.low, cell.high);
    }
}
void table_put(vp_json_writer *writer, const char *key, const struct table *table) {
    PUT(writer, KEY_ARRAY(key));
    for (size_t row = 0; row < table->row_count; row++) {
        vp_json_begin_object(writer);
        table_put_row(writer, table, row);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}
