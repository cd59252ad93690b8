/* golden_rows.h: the rows of a golden file of JSON lines. A test includes it after check.h. */
#ifndef GOLDEN_ROWS_H
#define GOLDEN_ROWS_H
#include "vlmprof_json.h"
typedef struct golden_rows { char *file, *next; int count; vp_json json; vp_json_node nodes[512]; } golden_rows;
/* Opens a file of tests/golden. A file that is missing is a failed check. */
static inline int golden_open(golden_rows *rows, const char *name) {
    rows->count = 0;
    rows->file = rows->next = check_read(check_golden(name), NULL);
    return check_note(rows->file != NULL, __FILE__, __LINE__, "no %s", name);
}
/* Reads the next row; 0 and the file closed after the last one. */
static inline int golden_next(golden_rows *rows) {
    char *line = rows->next, *end = line ? strchr(line, '\n') : NULL;
    if (!end) {
        free(rows->file);
        return 0;
    }
    rows->next = end + 1;
    rows->count++;
    return check_note(vp_json_parse(line, (size_t)(end - line), rows->nodes, 512, &rows->json, NULL, NULL) == VP_OK, __FILE__, __LINE__,
                      "row %d is no JSON", rows->count);
}
/* a text of the row, malloc'ed; NULL for null and for what is not there */
static inline char *golden_text(const golden_rows *rows, const char *key) {
    const uint32_t node = vp_json_get(&rows->json, 0, key);
    size_t bytes = 0;
    if (vp_json_text(&rows->json, node, NULL, 0, &bytes) != VP_ERR_CAPACITY) return NULL;
    char *text = (char *)malloc(bytes + 1);
    return vp_json_text(&rows->json, node, text, bytes + 1, NULL) == VP_OK ? text : NULL;
}
/* the vp_result that is named by "code" */
static inline vp_result golden_code(const golden_rows *rows) {
#define GOLDEN_CODE(code, value, text) if (vp_json_equals(&rows->json, vp_json_get(&rows->json, 0, "code"), #code)) return code;
    VP_RESULTS(GOLDEN_CODE)
    check_note(0, __FILE__, __LINE__, "row %d has no code", rows->count);
    return VP_OK;
}
#endif
