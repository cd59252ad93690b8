/* cells.h: reads text tables, TSV and CSV, with the rules of pandas.read_csv. The first line names the columns. A cell
 * that starts with a quote may contain newlines and separators; elsewhere a quote is a plain character. A column
 * contains integers, real numbers, booleans or texts. Its cells are given as Python prints them ("007" in a column of
 * integers is "7"). A cell like "NA" or "None" is missing. Memory: 8 bytes per row, and the current row. */
#ifndef VLMPROF_CLI_CELLS_H
#define VLMPROF_CLI_CELLS_H
#include "base/memory.h"
#include "formats/window.h"

enum { CELL_BYTES_MAX = 1 << 30, COLUMNS_MAX = 10000, SHORT_CELL_BYTES = 64 };
/* WHOLE_FLOAT: integers and missing cells; RAW: texts, none missing */
enum column_type { COLUMN_INT, COLUMN_UNSIGNED, COLUMN_FLOAT, COLUMN_WHOLE_FLOAT, COLUMN_BOOL, COLUMN_TEXT, COLUMN_RAW,
                   COLUMN_EMPTY };

/* A cell as in the file, without quotes, or as printed. is_missing: pandas reads it as NaN. */
struct cell { const char *text; size_t bytes; int is_missing; };

struct cells {
    struct window window;
    char delimiter;
    struct text_list names;
    enum column_type *types; /* [names.count] */
    int64_t *places; size_t row_count, row_capacity; /* offset of each row */
    struct text_buffer text;                         /* text of the current row */
    size_t *starts; size_t start_count, start_capacity; /* offsets of its cells in `text`; each ends with a NUL */
    char (*said)[40];                                /* [names.count], numbers as said */
};

/* Opens a file and reads it once to find rows and types. `each`, unless NULL, is called for each row while it is in
 * memory. The caller calls cells_close, also after a failure. *cells is zeroed first. */
vp_result cells_open(struct cells *cells, const char *path, char delimiter,
                     vp_result (*each)(void *user, struct cells *cells, size_t row), void *user, vp_error *error);
void cells_close(struct cells *cells);

/* Reads a row. Fails if it has too many cells. */
vp_result cells_row(struct cells *cells, size_t row, vp_error *error);

/* A cell of the current row: as written, and as printed. Both are valid until the next row. */
struct cell cell_written(const struct cells *cells, size_t column);
struct cell cell_said(struct cells *cells, size_t column);
size_t cells_column(const struct cells *cells, const char *name); /* SIZE_MAX if there is none */

/* Formats a number as Python prints it: "2.0", "1e-05". */
void python_float(double value, char *out, size_t capacity);

/* Reads a Python list literal of texts, numbers, True, False, None and lists. Each element becomes a text, as by str().
 * Returns 1 if the text is such a list. */
int python_list(const char *text, struct text_list *list);

/* Like VLMEvalKit's toliststr: the elements of a list literal, otherwise the text itself. Returns 0 if the text begins
 * and ends like a list but is not one. */
int python_texts(const char *text, struct text_list *list);

#endif
