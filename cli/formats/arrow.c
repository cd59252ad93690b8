/* arrow.c: reads Arrow IPC files, row by row. A file is a sequence of messages: a flatbuffer that describes a schema or
 * a record batch, and a body of buffers. Opening reads the schema and the position of each batch. A row reads only the
 * few bytes of each buffer that it needs. Source: the Arrow columnar format, version 1.5: Message.fbs, Schema.fbs. */
#include "formats/arrow.h"

#include "base/json_stream.h"
#include "vlmprof_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES_MAX = 64 << 20, FIELDS_MAX = 10000, DEPTH_MAX = 32, SEEN_BYTES = 512,
       ELEMENT_COST = 64 /* cost of an element without bytes: a list of 2^60 nulls takes no space in a file */ };

/* ---- flatbuffers. A missing or out-of-bounds value is 0. */
struct flat { const unsigned char *data; size_t bytes; };

static uint64_t flat_number(const struct flat *flat, size_t place, size_t bytes) {
    uint64_t value = 0;
    if (place > flat->bytes || bytes > flat->bytes - place) return 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)flat->data[place + i] << 8 * i;
    return value;
}
/* The position that an offset at `place` refers to; 0 if none. */
static size_t flat_follow(const struct flat *flat, size_t place) {
    uint64_t offset = place ? flat_number(flat, place, 4) : 0;
    return offset && offset < flat->bytes - place ? place + (size_t)offset : 0;
}
/* The position of a table's member; 0 if it is missing. */
static size_t flat_member(const struct flat *flat, size_t table, unsigned slot) {
    int64_t names = (int64_t)table - (int32_t)(uint32_t)flat_number(flat, table, 4);
    if (!table || names < 0 || 4 + 2 * slot + 2 > flat_number(flat, (size_t)names, 2)) return 0;
    size_t offset = (size_t)flat_number(flat, (size_t)names + 4 + 2 * slot, 2);
    return offset && table + offset < flat->bytes ? table + offset : 0;
}
static uint64_t flat_value(const struct flat *flat, size_t table, unsigned slot, size_t bytes) {
    size_t place = flat_member(flat, table, slot);
    return place ? flat_number(flat, place, bytes) : 0;
}
/* The first element of a vector with elements of `each` bytes; *count is 0 if it does not fit. */
static size_t flat_vector(const struct flat *flat, size_t table, unsigned slot, size_t each, uint32_t *count) {
    size_t place = flat_follow(flat, flat_member(flat, table, slot));
    *count = place ? (uint32_t)flat_number(flat, place, 4) : 0;
    if (!place || *count > (flat->bytes - place) / each || 4 + *count * each > flat->bytes - place) *count = 0;
    return place + 4;
}

/* ---- schema */
enum field_kind { FIELD_NULL, FIELD_INT, FIELD_UNSIGNED, FIELD_FLOAT, FIELD_BOOL, FIELD_BYTES, FIELD_FIXED, FIELD_LIST,
                  FIELD_FIXED_LIST, FIELD_STRUCT };
/* A node of the schema; children follow their parent. */
struct field {
    char *name;
    enum field_kind kind;
    int32_t width;   /* bytes of a number, an offset, a fixed-length value; elements of a fixed list */
    uint32_t buffer; /* its first one: validity; then offsets, then data, if the kind has them */
    uint32_t end;    /* index after its subtree */
};
struct batch { int64_t row, message, body; uint32_t message_bytes; }; /* row: its first row */
struct place { int64_t start, bytes; };
struct seen { int64_t start; size_t bytes; unsigned char data[SEEN_BYTES]; }; /* the last part of a buffer read */

struct arrow {
    char *path;
    struct source source;
    int is_framed;                    /* 1 for Arrow's file format: a stream between two marks */
    struct field *fields; uint32_t field_count, buffer_count;
    uint32_t *columns, column_count;  /* fields below the root */
    struct batch *batches; size_t batch_count, batch_capacity;
    int64_t row_count;
    size_t batch;                     /* the open batch; SIZE_MAX if none */
    struct text_buffer message;
    int64_t *lengths;                 /* [field_count], of the open batch */
    struct place *buffers;            /* [buffer_count] */
    struct seen *seen;                /* [buffer_count] */
    size_t row_bytes;                 /* bytes of the current row */
};

/* Reports that `what` is not supported, with the command that converts the file to Parquet. */
static vp_result not_read(const struct arrow *file, const char *what, vp_error *error) {
    return vp_failf(error, VP_ERR_UNSUPPORTED, -1, file->path,
                    "this Arrow file has %s, which is not supported. Convert it to Parquet with Python: python3 -c "
                    "\"import pyarrow as a,pyarrow.parquet as q,sys; "
                    "q.write_table(a.ipc.open_%s(a.OSFile(sys.argv[1])).read_all(), sys.argv[2])\" IN OUT.parquet",
                    what, file->is_framed ? "file" : "stream");
}
static vp_result not_read_column(const struct arrow *file, const char *name, const char *what, vp_error *error) {
    char text[160];
    snprintf(text, sizeof text, "a column \"%.60s\" %.60s", name, what);
    return not_read(file, text, error);
}
/* Types by their number in Schema.fbs. */
static const char *const TYPES[] = {
    "none", "null", "int", "floating point", "binary", "utf8", "bool", "decimal", "date", "time", "timestamp",
    "interval", "list", "struct", "union", "fixed-size binary", "fixed-size list", "map", "duration", "large binary",
    "large utf8", "large list", "run-end encoded", "binary view", "utf8 view", "list view", "large list view"};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

/* Sets kind and width. Returns 0 if the type is not supported. */
static int set_type(struct field *field, const struct flat *flat, size_t type, unsigned number) {
    uint64_t value = flat_value(flat, type, 0, 4);
    field->width = 8;
    switch (number) {
    case 1: field->kind = FIELD_NULL; break;
    case 2:
        field->kind = flat_value(flat, type, 1, 1) ? FIELD_INT : FIELD_UNSIGNED;
        field->width = (int32_t)(value / 8);
        return value == 8 || value == 16 || value == 32 || value == 64;
    case 3:
        field->kind = FIELD_FLOAT;
        value = flat_value(flat, type, 0, 2);
        field->width = value == 1 ? 4 : 8;
        return value == 1 || value == 2;
    case 4: case 5: case 12: case 17: field->width = 4; /* fall through */
    case 19: case 20: case 21:
        field->kind = number == 12 || number == 17 || number == 21 ? FIELD_LIST : FIELD_BYTES;
        break;
    case 6: field->kind = FIELD_BOOL; break;
    case 8: /* days have 4 bytes, milliseconds 8; the default unit is milliseconds */
        field->kind = FIELD_INT;
        field->width = flat_member(flat, type, 0) && !flat_value(flat, type, 0, 2) ? 4 : 8;
        break;
    case 9: /* 32 bits by default */
        field->kind = FIELD_INT;
        field->width = flat_value(flat, type, 1, 4) == 64 ? 8 : 4;
        break;
    case 10: case 18: field->kind = FIELD_INT; break;
    case 13: field->kind = FIELD_STRUCT; break;
    case 15: case 16:
        field->kind = number == 15 ? FIELD_FIXED : FIELD_FIXED_LIST;
        field->width = (int32_t)value;
        return value <= INT32_MAX;
    default: return 0;
    }
    return 1;
}
static uint32_t buffers_of(enum field_kind kind) {
    return kind == FIELD_NULL ? 0 : kind == FIELD_BYTES ? 3 : kind == FIELD_STRUCT || kind == FIELD_FIXED_LIST ? 1 : 2;
}
static vp_result damaged(const struct arrow *file, const char *what, vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, -1, file->path, what);
}
/* Adds the field at `table` and its children. */
static vp_result add_field(struct arrow *file, const struct flat *flat, size_t table, int depth, vp_error *error) {
    const unsigned number = (unsigned)flat_value(flat, table, 2, 1);
    uint32_t bytes, count, index = file->field_count;
    vp_result result = VP_OK;
    if (depth > DEPTH_MAX || index == FIELDS_MAX) return damaged(file, "its schema has too many fields", error);
    file->fields = resize(file->fields, ++file->field_count, sizeof *file->fields);
    struct field *field = &file->fields[index];
    memset(field, 0, sizeof *field);
    size_t name = flat_vector(flat, table, 0, 1, &bytes);
    field->name = copy_text((const char *)flat->data + (bytes ? name : 0), bytes);
    if (flat_member(flat, table, 4)) return not_read_column(file, field->name, "with a dictionary", error);
    if (!set_type(field, flat, flat_follow(flat, flat_member(flat, table, 3)), number)) {
        char type[64];
        snprintf(type, sizeof type, "of the type %s%s", number < TYPE_COUNT ? TYPES[number] : "?",
                 number == 3 ? " 16" : "");
        return not_read_column(file, field->name, type, error);
    }
    field->buffer = file->buffer_count;
    file->buffer_count += buffers_of(field->kind);
    size_t children = flat_vector(flat, table, 5, 4, &count);
    if ((field->kind == FIELD_LIST || field->kind == FIELD_FIXED_LIST) && count != 1)
        return damaged(file, "its schema has a list without an element", error);
    if (field->kind != FIELD_STRUCT && field->kind != FIELD_LIST && field->kind != FIELD_FIXED_LIST) count = 0;
    for (uint32_t i = 0; i < count && result == VP_OK; i++)
        result = add_field(file, flat, flat_follow(flat, children + 4 * (size_t)i), depth + 1, error);
    file->fields[index].end = file->field_count;
    return result;
}
static vp_result read_schema(struct arrow *file, const struct flat *flat, size_t schema, vp_error *error) {
    uint32_t count;
    size_t fields = flat_vector(flat, schema, 1, 4, &count);
    vp_result result = VP_OK;
    if (file->field_count) return damaged(file, "it has two schemas", error);
    if (flat_value(flat, schema, 0, 2))
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, file->path, "its numbers are big-endian, which is not supported");
    if (!count) return damaged(file, "its schema has no columns", error);
    file->columns = resize(NULL, count, sizeof *file->columns);
    for (uint32_t i = 0; i < count && result == VP_OK; i++) {
        file->columns[file->column_count++] = file->field_count;
        result = add_field(file, flat, flat_follow(flat, fields + 4 * (size_t)i), 0, error);
    }
    file->lengths = resize(NULL, file->field_count, sizeof *file->lengths);
    file->buffers = resize(NULL, (size_t)file->buffer_count + 1, sizeof *file->buffers);
    file->seen = zeroed((size_t)file->buffer_count + 1, sizeof *file->seen);
    return result;
}

/* ---- messages */
/* Adds a record batch to the list. Its buffers are checked when one of its rows is read. */
static vp_result add_batch(struct arrow *file, const struct flat *flat, size_t record, const struct batch *batch,
                           vp_error *error) {
    const int64_t rows = (int64_t)flat_value(flat, record, 0, 8);
    const size_t compression = flat_follow(flat, flat_member(flat, record, 3));
    if (!file->field_count) return damaged(file, "a record batch comes before the schema", error);
    if (compression)
        return not_read(file, flat_value(flat, compression, 0, 1) ? "buffers compressed with ZSTD"
                                                                  : "buffers compressed with LZ4", error);
    if (rows < 0 || rows > UINT32_MAX - file->row_count) return damaged(file, "it claims too many rows", error);
    if (file->batch_count == file->batch_capacity) {
        file->batch_capacity = file->batch_capacity * 2 + 16;
        file->batches = resize(file->batches, file->batch_capacity, sizeof *file->batches);
    }
    file->batches[file->batch_count] = *batch;
    file->batches[file->batch_count++].row = file->row_count;
    file->row_count += rows;
    return VP_OK;
}
/* Reads the message at *place and moves *place after its body. Sets *is_end if there are no more messages. */
static vp_result read_message(struct arrow *file, int64_t *place, int *is_end, vp_error *error) {
    unsigned char head[8] = {0};
    struct flat flat, sizes = {head, sizeof head};
    struct batch batch = {0, *place + 8, 0, 0};
    size_t message, header;
    char last;
    ssize_t got = source_read(&file->source, *place, (char *)head, sizeof head);
    int64_t bytes = (int64_t)flat_number(&sizes, 4, 4);
    *is_end = !got || (got == sizeof head && !bytes); /* a stream may end without an end-of-stream marker */
    if (*is_end) return VP_OK;
    if (got != sizeof head || flat_number(&sizes, 0, 4) != UINT32_MAX || bytes > MESSAGE_BYTES_MAX)
        return vp_fail(error, VP_ERR_FORMAT, *place, file->path,
                       "this Arrow file is truncated or damaged: a message is missing");
    if (source_text(&file->source, batch.message, bytes, &file->message, NULL) != VP_OK)
        return vp_fail(error, VP_ERR_FORMAT, *place, file->path, "this Arrow file is truncated within a message");
    flat.data = (const unsigned char *)file->message.data;
    flat.bytes = (size_t)bytes;
    message = (size_t)flat_number(&flat, 0, 4);
    header = flat_follow(&flat, flat_member(&flat, message, 2));
    int64_t body = (int64_t)flat_value(&flat, message, 3, 8);
    batch.message_bytes = (uint32_t)bytes;
    batch.body = batch.message + bytes;
    if (body < 0 || body > INT64_MAX / 2 ||
        (body && source_read(&file->source, batch.body + body - 1, &last, 1) != 1))
        return vp_fail(error, VP_ERR_FORMAT, batch.body, file->path, "this Arrow file is truncated: a body is missing");
    *place = batch.body + body;
    switch (flat_value(&flat, message, 1, 1)) {
    case 1: return read_schema(file, &flat, header, error);
    case 3: return add_batch(file, &flat, header, &batch, error);
    default: return VP_OK; /* dictionaries belong to fields that were rejected */
    }
}
vp_result arrow_open(struct arrow **out, const char *path, vp_error *error) {
    struct arrow *file = zeroed(1, sizeof *file);
    char magic[8] = {0};
    int64_t place = 0;
    int is_end = 0;
    *out = NULL;
    file->path = copy_text(path, strlen(path));
    file->batch = SIZE_MAX;
    vp_result result = source_open(&file->source, path, error);
    file->is_framed = result == VP_OK && source_read(&file->source, 0, magic, 8) == 8 && !memcmp(magic, "ARROW1", 6);
    if (file->is_framed) place = 8;
    while (result == VP_OK && !is_end) result = read_message(file, &place, &is_end, error);
    if (result == VP_OK && !file->field_count) result = damaged(file, "this Arrow file has no schema", error);
    if (result == VP_OK) *out = file;
    else arrow_close(file);
    return result;
}
void arrow_close(struct arrow *file) {
    if (!file) return;
    for (uint32_t i = 0; i < file->field_count; i++) free(file->fields[i].name);
    FREE_ALL(file->fields, file->columns, file->batches, file->message.data, file->lengths, file->buffers, file->seen);
    source_close(&file->source);
    FREE_ALL(file->path, file);
}
int64_t arrow_row_count(const struct arrow *file) { return file->row_count; }
size_t arrow_column_count(const struct arrow *file) { return file->column_count; }
const char *arrow_column_name(const struct arrow *file, size_t column) {
    return file->fields[file->columns[column]].name;
}

/* ---- rows */
/* Finds the lengths and buffers of a batch. */
static vp_result open_batch(struct arrow *file, size_t index, vp_error *error) {
    const struct batch *batch = &file->batches[index];
    struct flat flat;
    uint32_t node_count, buffer_count;
    size_t message, record, nodes, buffers;
    vp_result result = source_text(&file->source, batch->message, batch->message_bytes, &file->message, error);
    file->batch = SIZE_MAX;
    if (result != VP_OK) return result;
    flat.data = (const unsigned char *)file->message.data;
    flat.bytes = batch->message_bytes;
    message = (size_t)flat_number(&flat, 0, 4);
    record = flat_follow(&flat, flat_member(&flat, message, 2));
    int64_t body = (int64_t)flat_value(&flat, message, 3, 8);
    nodes = flat_vector(&flat, record, 1, 16, &node_count);
    buffers = flat_vector(&flat, record, 2, 16, &buffer_count);
    if (node_count != file->field_count || buffer_count != file->buffer_count)
        return damaged(file, "a record batch does not have the columns of the schema", error);
    for (uint32_t i = 0; i < node_count; i++) file->lengths[i] = (int64_t)flat_number(&flat, nodes + 16 * (size_t)i, 8);
    for (uint32_t i = 0; i < buffer_count; i++) {
        struct place *place = &file->buffers[i];
        place->start = (int64_t)flat_number(&flat, buffers + 16 * (size_t)i, 8);
        place->bytes = (int64_t)flat_number(&flat, buffers + 16 * (size_t)i + 8, 8);
        if (place->start < 0 || place->bytes < 0 || place->start > body || place->bytes > body - place->start)
            return damaged(file, "a buffer reaches beyond the body of its record batch", error);
        place->start += batch->body;
        file->seen[i].bytes = 0;
    }
    file->batch = index;
    return VP_OK;
}
static vp_result bad_field(const struct arrow *file, uint32_t index, const char *what, vp_error *error) {
    return vp_failf(error, VP_ERR_FORMAT, -1, file->path, "column \"%.80s\": %s", file->fields[index].name, what);
}
/* `count` values of `width` bytes (at most 16 bytes in total), starting at the value `at`; NULL if the buffer is too
 * short. */
static const unsigned char *see(struct arrow *file, uint32_t buffer, int64_t at, int32_t width, int32_t count) {
    const struct place *place = &file->buffers[buffer];
    struct seen *seen = &file->seen[buffer];
    const int64_t bytes = (int64_t)width * count;
    if (at < 0 || at > (INT64_MAX >> 5) || at * width > place->bytes - bytes) return NULL;
    int64_t start = at * width;
    if (!seen->bytes || start < seen->start || start + bytes > seen->start + (int64_t)seen->bytes) {
        const int64_t left = place->bytes - start;
        ssize_t got = source_read(&file->source, place->start + start, (char *)seen->data,
                                  left < SEEN_BYTES ? (size_t)left : SEEN_BYTES);
        seen->start = start;
        seen->bytes = got > 0 ? (size_t)got : 0;
        if ((int64_t)seen->bytes < bytes) return NULL;
    }
    return seen->data + (start - seen->start);
}
static uint64_t little_endian(const unsigned char *data, int32_t bytes) {
    const struct flat flat = {data, (size_t)bytes};
    return flat_number(&flat, 0, (size_t)bytes);
}
static vp_result put_field(struct arrow *file, uint32_t index, int64_t at, struct row *row, vp_json_writer *writer,
                           vp_error *error);

static vp_result charge(struct arrow *file, uint32_t index, size_t bytes, vp_error *error) {
    file->row_bytes += bytes;
    return file->row_bytes <= ROW_BYTES_MAX ? VP_OK : bad_field(file, index, "a row is larger than 1 GiB", error);
}
/* The pair of offsets of a value. Returns 0 if they are missing or in descending order. */
static int offsets_of(struct arrow *file, const struct field *field, int64_t at, int64_t *start, int64_t *end) {
    const unsigned char *pair = see(file, field->buffer + 1, at, field->width, 2);
    if (!pair) return 0;
    *start = (int64_t)little_endian(pair, field->width);
    *end = (int64_t)little_endian(pair + field->width, field->width);
    return *start >= 0 && *start <= *end && (field->width == 8 || *end <= INT32_MAX);
}
static vp_result put_bytes(struct arrow *file, uint32_t index, uint32_t buffer, int64_t start, int64_t bytes,
                           struct row *row, vp_json_writer *writer, vp_error *error) {
    const struct place *place = &file->buffers[buffer];
    vp_result result;
    if (start > place->bytes || bytes > place->bytes - start)
        return bad_field(file, index, "a value is longer than its buffer", error);
    if ((result = charge(file, index, (size_t)bytes, error)) != VP_OK ||
        (result = source_text(&file->source, place->start + start, bytes, &file->message, error)) != VP_OK)
        return result;
    row_put_bytes(row, writer, file->message.data, (size_t)bytes);
    return VP_OK;
}
static vp_result put_number(struct arrow *file, uint32_t index, int64_t at, vp_json_writer *writer, vp_error *error) {
    const struct field *field = &file->fields[index];
    const int is_bit = field->kind == FIELD_BOOL;
    const unsigned char *data = see(file, field->buffer + 1, is_bit ? at / 8 : at, is_bit ? 1 : field->width, 1);
    if (!data) return bad_field(file, index, "its buffer is too short", error);
    uint64_t bits = little_endian(data, is_bit ? 1 : field->width);
    if (is_bit) vp_json_bool(writer, (int)(bits >> at % 8 & 1));
    else if (field->kind == FIELD_FLOAT) row_put_float(writer, bits, field->width);
    else row_put_int(writer, bits, field->width, field->kind == FIELD_UNSIGNED);
    return VP_OK;
}
static vp_result put_elements(struct arrow *file, uint32_t index, int64_t start, int64_t end, struct row *row,
                          vp_json_writer *writer, vp_error *error) {
    vp_result result = VP_OK;
    vp_json_begin_array(writer);
    for (; start < end && result == VP_OK; start++)
        if ((result = charge(file, index, ELEMENT_COST, error)) == VP_OK)
            result = put_field(file, index + 1, start, row, writer, error);
    vp_json_end_array(writer);
    return result;
}
/* Writes the value of a field at a position in its column. */
static vp_result put_field(struct arrow *file, uint32_t index, int64_t at, struct row *row, vp_json_writer *writer,
                           vp_error *error) {
    const struct field *field = &file->fields[index];
    const unsigned char *bits;
    int64_t start = 0, end = 0;
    vp_result result = VP_OK;
    if (at >= file->lengths[index]) return bad_field(file, index, "it has fewer values than its record batch", error);
    if (field->kind == FIELD_NULL) {
        vp_json_null(writer);
        return VP_OK;
    }
    if (file->buffers[field->buffer].bytes) { /* without validity, all values are present */
        if (!(bits = see(file, field->buffer, at / 8, 1, 1)))
            return bad_field(file, index, "its validity is too short", error);
        if (!(*bits >> at % 8 & 1)) {
            vp_json_null(writer);
            return VP_OK;
        }
    }
    if ((field->kind == FIELD_BYTES || field->kind == FIELD_LIST) && !offsets_of(file, field, at, &start, &end))
        return bad_field(file, index, "its offsets are damaged", error);
    switch (field->kind) {
    case FIELD_BYTES:
        return put_bytes(file, index, field->buffer + 2, start, end - start, row, writer, error);
    case FIELD_FIXED:
        return put_bytes(file, index, field->buffer + 1, at * field->width, field->width, row, writer, error);
    case FIELD_LIST: return put_elements(file, index, start, end, row, writer, error);
    case FIELD_FIXED_LIST:
        if (at > INT64_MAX / ((int64_t)field->width + 1) - 1)
            return bad_field(file, index, "its length is damaged", error);
        return put_elements(file, index, at * field->width, (at + 1) * field->width, row, writer, error);
    case FIELD_STRUCT:
        vp_json_begin_object(writer);
        for (uint32_t i = index + 1; i < field->end && result == VP_OK; i = file->fields[i].end) {
            vp_json_key(writer, file->fields[i].name);
            result = put_field(file, i, at, row, writer, error);
        }
        vp_json_end_object(writer);
        return result;
    default: return put_number(file, index, at, writer, error);
    }
}
vp_result arrow_row(struct arrow *file, int64_t index, struct row *row, vp_error *error) {
    size_t low = 0, high = file->batch_count;
    vp_json_writer writer;
    vp_result result = VP_OK;
    if (index < 0 || index >= file->row_count) return vp_fail(error, VP_ERR_RANGE, index, file->path, "no such row");
    while (high - low > 1) { /* finds the last batch that does not begin after the row */
        size_t middle = low + (high - low) / 2;
        if (file->batches[middle].row <= index) low = middle;
        else high = middle;
    }
    if (file->batch != low && (result = open_batch(file, low, error)) != VP_OK) return result;
    file->row_bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, &row->json, 0);
    vp_json_begin_object(&writer);
    for (uint32_t i = 0; i < file->column_count && result == VP_OK; i++) {
        vp_json_key(&writer, file->fields[file->columns[i]].name);
        result = put_field(file, file->columns[i], index - file->batches[low].row, row, &writer, error);
    }
    vp_json_end_object(&writer);
    if (result == VP_OK && (result = vp_json_finish(&writer)) != VP_OK)
        vp_fail(error, result, -1, file->path, "a name in this Arrow file is not UTF-8");
    return result;
}
