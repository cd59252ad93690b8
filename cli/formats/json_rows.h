/* json_rows.h: the records of a JSON file of any size: lines, an array, an array under a key, or the values of one
 * object. Memory: 12 bytes per record, and the current record. */
#ifndef VLMPROF_CLI_JSON_ROWS_H
#define VLMPROF_CLI_JSON_ROWS_H
#include "formats/row.h"
#include "formats/window.h"

enum { RECORD_BYTES_MAX = 1 << 30 };
enum json_shape { SHAPE_LINES, SHAPE_ARRAY, SHAPE_MEMBER, SHAPE_MAP };

struct json_rows {
    struct window window;
    enum json_shape shape;
    char key[32];      /* SHAPE_MEMBER: key of the array */
    int64_t *places; uint32_t *lengths; size_t count, capacity;
    struct text_buffer subtype; /* "data_subtype" of the enclosing object, as JSON; empty if it has none */
};

/* Opens a file and finds its records. The caller calls json_rows_close, also after a failure. *rows is zeroed first. */
vp_result json_rows_open(struct json_rows *rows, const char *path, vp_error *error);
void json_rows_close(struct json_rows *rows);

/* The line on which a record begins, from 1, counting blank lines. Reads the file up to there. */
size_t json_rows_line(struct json_rows *rows, size_t index);

/* Reads the text of a record into row->json. */
vp_result json_rows_read(struct json_rows *rows, size_t index, struct row *row, vp_error *error);

#endif
