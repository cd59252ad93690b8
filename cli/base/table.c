/* table.c: tables that print themselves. A column and a row define a cell, a typed value; each output form prints
 * cells in its own way. */
#include "base/table.h"

#include <math.h>

static int is_there(const struct table *table, const struct table_column *column, const char *name, int form) {
    return name && !(column->rules & form) && (!column->in || (column->in & table->has));
}
static double real_at(const char *row, size_t offset) {
    double value;
    memcpy(&value, row + offset, sizeof value);
    return value;
}
static struct json_member whole_cell(const struct table_column *column, int64_t value) {
    return json_member_known(column->key, value >= 0 || !(column->rules & COLUMN_FROM_0), value);
}
/* The cell of a row in a column; `own` receives its text, if one is made. */
static struct json_member cell_of(const struct table *table, const struct table_column *column, size_t index,
                                  char own[CELL_BYTES]) {
    const char *row = (const char *)table->rows + index * table->row_bytes, *at = row + column->offset;
    struct json_member cell = {column->key, MEMBER_NULL, .low = (double)NAN, .high = (double)NAN};
    switch (column->type) {
    case CELL_BY: column->by(row, table->context, &cell, own); return cell;
    case CELL_TEXT: return json_member_text(column->key, *(const char *const *)(const void *)at);
    case CELL_CHARS: return json_member_text(column->key, at);
    case CELL_INT: return whole_cell(column, *(const int *)(const void *)at);
    case CELL_UNSIGNED: return whole_cell(column, *(const unsigned *)(const void *)at);
    case CELL_INT64: case CELL_UINT64: return whole_cell(column, *(const int64_t *)(const void *)at);
    case CELL_INTERVAL:
        cell.low = real_at(row, column->low);
        cell.high = real_at(row, column->high);
        break;
    case CELL_INT_PAIR: case CELL_INT64_PAIR: {
        const int is_int = column->type == CELL_INT_PAIR;
        const int64_t first = is_int ? *(const int *)(const void *)at : *(const int64_t *)(const void *)at,
                      second = is_int ? *(const int *)(const void *)(row + column->high)
                                      : *(const int64_t *)(const void *)(row + column->high);
        if (first < (column->rules & COLUMN_FROM_1 ? 1 : 0)) return cell;
        snprintf(own, CELL_BYTES, "%lld%s%lld", (long long)first, column->format, (long long)(second > 0 ? second : 0));
        return json_member_text(column->key, own);
    }
    case CELL_REAL: break;
    }
    cell.type = MEMBER_REAL;
    cell.real = real_at(row, column->offset);
    return cell;
}
static void add_text(struct text_list *cells, const struct table_column *column, const struct json_member *cell) {
    const double scale = column->scale > 0 ? column->scale : 1,
                 value = scale * (cell->type == MEMBER_INT ? (double)cell->whole : cell->real);
    const int is_number = cell->type == MEMBER_INT || cell->type == MEMBER_REAL;
    if (cell->type == MEMBER_TEXT) text_list_add(cells, "%s", cell->text);
    else if (cell->type == MEMBER_BOOL) text_list_add(cells, "%s", cell->whole ? "yes" : "no");
    else if (!is_number) text_list_add(cells, "-");
    else if (column->as) text_list_add(cells, "%s", column->as(value).text);
    else if (column->format) text_list_add(cells, "%s", number_formatted(column->format, value).text);
    else if (cell->type == MEMBER_INT) text_list_add(cells, "%lld", (long long)cell->whole);
    else if (column->is_measured || column->type == CELL_INTERVAL)
        text_list_add(cells, "%s", number_measured(value, scale * cell->low, scale * cell->high).text);
    else text_list_add(cells, "%s", number_short(value).text);
}
size_t table_texts(struct text_list *cells, const struct table *table) {
    size_t shown = 0;
    for (size_t i = 0; i < table->column_count; i++)
        if (is_there(table, &table->columns[i], table->columns[i].heading, 0)) {
            text_list_copy(cells, table->columns[i].heading);
            shown++;
        }
    for (size_t row = 0; row < table->row_count; row++)
        for (size_t i = 0; i < table->column_count; i++) {
            char own[CELL_BYTES];
            if (!is_there(table, &table->columns[i], table->columns[i].heading, 0)) continue;
            const struct json_member cell = cell_of(table, &table->columns[i], row, own);
            add_text(cells, &table->columns[i], &cell);
        }
    return shown;
}
size_t document_add_table(struct document *document, const struct table *table) {
    struct text_block *block = document_add(document, BLOCK_TABLE);
    return block->columns = table_texts(&block->cells, table);
}
void cell_set_text(struct json_member *cell, const char *text) { *cell = json_member_text(cell->key, text); }
static void add_csv(struct text_buffer *out, const struct json_member *cell, int is_range) {
    char text[32];
    if (cell->type == MEMBER_TEXT) csv_text(out, cell->text);
    else if (cell->type == MEMBER_INT || cell->type == MEMBER_BOOL) {
        text_add_format(out, "%lld", (long long)cell->whole);
    } else if (cell->type == MEMBER_REAL && isfinite(cell->real)) {
        vp_number_format(cell->real, text);
        text_add_string(out, text);
    }
    if (!is_range) return;
    csv_number(out, cell->low);
    csv_number(out, cell->high);
}
#define TABLE_HEADS SIZE_MAX /* the row of the headings */
static void csv_line(struct text_buffer *out, const struct table *table, size_t row) {
    for (size_t i = 0, shown = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        char own[CELL_BYTES];
        if (!is_there(table, column, column->key, COLUMN_NOT_IN_CSV)) continue;
        if (shown++) text_add_string(out, ",");
        if (row != TABLE_HEADS) {
            const struct json_member cell = cell_of(table, column, row, own);
            add_csv(out, &cell, column->range_key != NULL);
            continue;
        }
        text_add_string(out, column->key);
        if (!column->range_key) continue;
        text_add_format(out, ",%.80s_low,%.80s_high", column->key, column->key);
    }
    text_add_string(out, "\n");
}
void table_csv(struct text_buffer *out, const struct table *table) {
    csv_line(out, table, TABLE_HEADS);
    for (size_t row = 0; row < table->row_count; row++) csv_line(out, table, row);
}
static void print_csv(const struct table *table, size_t row) {
    struct text_buffer line = {NULL, 0, 0};
    csv_line(&line, table, row);
    fwrite(line.data, 1, line.bytes, stdout);
    free(line.data);
}
static void print_stream_line(const struct table *table, size_t row, const char *refused) {
    struct text_buffer line = {NULL, 0, 0};
    struct text_list texts = {NULL, 0};
    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        struct json_member cell = json_member_text(NULL, column->heading);
        char own[CELL_BYTES];
        if (!is_there(table, column, column->heading, 0) || (refused && !(column->rules & COLUMN_NAMES))) continue;
        if (row != TABLE_HEADS) cell = cell_of(table, column, row, own);
        add_text(&texts, column, &cell);
        if (column->width)
            text_add_format(&line, "%s%*s", line.bytes ? " " : "", column->width, texts.items[texts.count - 1]);
        else if (row != TABLE_HEADS && cell.type == MEMBER_TEXT) text_add_format(&line, "  %s", cell.text);
    }
    print_plain("%s%s%s\n", line.data, refused ? " refused: " : "", refused ? refused : "");
    text_list_free(&texts);
    free(line.data);
}
void table_stream_row(struct table_stream *stream, const struct table *table, const char *refused) {
    const int is_first = !stream->row_count++;
    stream->refused_count += refused != NULL;
    if (stream->json) {
        if (is_first) {
            vp_json_writer_init_sink(&stream->writer, file_sink, stdout, 2);
            vp_json_begin_array(&stream->writer);
        }
        vp_json_begin_object(&stream->writer);
        table_put_row(&stream->writer, table, 0);
        vp_json_end_object(&stream->writer);
    } else if (stream->csv) {
        if (is_first) print_csv(table, TABLE_HEADS);
        print_csv(table, 0);
    } else {
        if (is_first) print_stream_line(table, TABLE_HEADS, NULL);
        print_stream_line(table, 0, refused);
    }
}
void table_stream_end(struct table_stream *stream) {
    if (!stream->json || !stream->row_count) return;
    vp_json_end_array(&stream->writer);
    json_end(&stream->writer); /* main reports errors of stdout */
}
void table_put_row(vp_json_writer *writer, const struct table *table, size_t row) {
    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        char own[CELL_BYTES];
        if (!is_there(table, column, column->key, COLUMN_NOT_IN_JSON)) continue;
        const struct json_member cell = cell_of(table, column, row, own);
        const int is_known = cell.type == MEMBER_REAL ? isfinite(cell.real) != 0 : cell.type != MEMBER_NULL;
        if (!is_known && column->rules & COLUMN_OR_NO_KEY) continue;
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
