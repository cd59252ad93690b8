/* score_answers.c: turns answer files of other tools into rows of the score command.
 * lmms-eval writes one line per sample: doc (the row of its data set), target, filtered_resps. VLMEvalKit writes the
 * data set's table again, with a column "prediction". */
#include "score/score_answers.h"

#include "base/console.h"
#include "base/json.h"
#include "formats/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_name(const char *line, size_t bytes, const char *name) {
    for (size_t i = 0; i + strlen(name) <= bytes; i++) if (!memcmp(line + i, name, strlen(name))) return 1;
    return 0;
}
enum answers_kind answers_kind(const char *text, size_t bytes) {
    size_t line = 0;
    if (bytes >= 4 && !memcmp(text, "PK\3\4", 4)) return ANSWERS_SPREADSHEET;
    while (line < bytes && text[line] != '\n') line++;
    if (bytes && (text[0] == '{' || text[0] == '[')) {
        struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
        int is_lmms = parse_json(&parsed, text, line, NULL) == VP_OK && node_is(&parsed.json, 0, VP_JSON_OBJECT)
                      && (vp_json_get(&parsed.json, 0, "filtered_resps") != VP_JSON_NONE
                          || vp_json_get(&parsed.json, 0, "resps") != VP_JSON_NONE);
        free(parsed.nodes);
        return is_lmms ? ANSWERS_LMMS : ANSWERS_NONE;
    }
    return bytes && !memchr(text, '{', line)
                   && (memchr(text, '\t', line) || (memchr(text, ',', line) && has_name(text, line, "prediction")))
               ? ANSWERS_VLMEVALKIT
               : ANSWERS_NONE;
}
const char *answers_tool(enum answers_kind kind) {
    return kind == ANSWERS_LMMS ? "lmms-eval" : kind == ANSWERS_VLMEVALKIT ? "VLMEvalKit" : "a spreadsheet";
}

/* ---- lmms-eval */
static void put_member(vp_json_writer *writer, const char *key, const vp_json *json, uint32_t object,
                       const char *from) {
    if (!has_value(json, object, from)) return;
    vp_json_key(writer, key);
    json_node(writer, json, vp_json_get(json, object, from));
}
/* The first text inside nested lists, or NULL. */
static char *first_text(const vp_json *json, uint32_t node) {
    while (node_is(json, node, VP_JSON_ARRAY) && json->nodes[node].count) node++;
    return node_text(json, node);
}
/* Writes the options of the sample's document: a list, a text with a Python list, or columns A.. or choice_a... */
static void put_options(vp_json_writer *writer, const vp_json *json, uint32_t doc) {
    static const char *const keys[] = {"options", "choices"};
    struct text_list list = {NULL, 0};
    char key[16];
    for (size_t i = 0; i < 2; i++) {
        char *text = node_text(json, vp_json_get(json, doc, keys[i]));
        int is_list = text && python_list(text, &list);
        free(text);
        if (is_list || node_is(json, vp_json_get(json, doc, keys[i]), VP_JSON_ARRAY)) {
            if (is_list) put_list(writer, "options", &list);
            else put_member(writer, "options", json, doc, keys[i]);
            text_list_free(&list);
            return;
        }
    }
    for (int form = 0; form < 2; form++) {
        int last = -1;
        for (int i = 0; i < 26; i++) {
            snprintf(key, sizeof key, form ? "choice_%c" : "%c", (form ? 'a' : 'A') + i);
            if (has_value(json, doc, key)) last = i;
        }
        if (last < 0) continue;
        PUT(writer, KEY_ARRAY("options"));
        for (int i = 0; i <= last; i++) {
            snprintf(key, sizeof key, form ? "choice_%c" : "%c", (form ? 'a' : 'A') + i);
            char *text = node_text(json, vp_json_get(json, doc, key));
            if (text && strcmp(text, "nan")) vp_json_string(writer, text);
            else vp_json_null(writer);
            free(text);
        }
        vp_json_end_array(writer);
        return;
    }
}
/* Writes the reference: the document's list of answers, otherwise the target. */
static void put_target(vp_json_writer *writer, const vp_json *json, uint32_t doc) {
    uint32_t answers = vp_json_get(json, doc, "answers"), target = vp_json_get(json, 0, "target");
    struct text_list list = {NULL, 0};
    char *text = node_text(json, target);
    if (node_is(json, answers, VP_JSON_ARRAY)) put_member(writer, "references", json, doc, "answers");
    else if (text && text[0] == '[' && python_list(text, &list)) put_list(writer, "references", &list);
    else if (node_is(json, target, VP_JSON_ARRAY)) put_member(writer, "references", json, 0, "target");
    else if (target != VP_JSON_NONE) put_member(writer, "answer", json, 0, "target");
    else put_member(writer, "answer", json, doc, "answer");
    text_list_free(&list);
    free(text);
}
/* The sample's document. lmms-eval omits it since 2025. Instead there is the part kept by its metric, an object with
 * question_id or category. */
static uint32_t document_of(const vp_json *json) {
    uint32_t doc = vp_json_get(json, 0, "doc");
    if (node_is(json, doc, VP_JSON_OBJECT)) return doc;
    for (uint32_t i = 1; i < json->nodes[0].end; i = json->nodes[i + 1].end)
        if (node_is(json, i + 1, VP_JSON_OBJECT) &&
            (has_value(json, i + 1, "question_id") || has_value(json, i + 1, "category")))
            return i + 1;
    return VP_JSON_NONE;
}
static void put_lmms_row(vp_json_writer *writer, const vp_json *json) {
    static const char *const more[] = {"category",  "question_type", "answer_type",
                                       "precision", "dataset",       "question_id", "index"};
    uint32_t doc = document_of(json);
    char *answer = first_text(json, vp_json_get(json, 0, "filtered_resps"));
    if (!answer) answer = first_text(json, vp_json_get(json, 0, "resps"));
    vp_json_begin_object(writer);
    put_member(writer, "id", json, 0, "doc_id");
    put_text(writer, "prediction", answer);
    put_target(writer, json, doc);
    if (node_is(json, doc, VP_JSON_OBJECT)) {
        put_options(writer, json, doc);
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) put_member(writer, more[i], json, doc, more[i]);
    }
    vp_json_end_object(writer);
    free(answer);
}
static int convert_lmms(const char *path, const char *text, size_t bytes, struct text_buffer *out) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    size_t number = 0;
    int code = 0;
    for (const char *line = text; line < text + bytes && !code;) {
        const char *end = memchr(line, '\n', (size_t)(text + bytes - line));
        vp_error error = {VP_OK, -1, "", ""};
        vp_json_writer writer;
        size_t length = (size_t)((end ? end : text + bytes) - line);
        number++;
        vp_json_writer_init_sink(&writer, text_sink, out, 0);
        if (strspn(line, " \t\r") >= length) {
            line += length + 1;
            continue;
        }
        if (parse_json(&parsed, line, length, &error) != VP_OK || !node_is(&parsed.json, 0, VP_JSON_OBJECT))
            code = complain(EXIT_INPUT, "%s: line %zu: %s", path, number,
                            error.text[0] ? error.text : "expected a JSON object");
        else {
            put_lmms_row(&writer, &parsed.json);
            if (vp_json_finish(&writer) != VP_OK)
                code = complain(EXIT_INPUT, "%s: line %zu cannot be read", path, number);
            text_add(out, "\n", 1);
        }
        line += length + 1;
    }
    free(parsed.nodes);
    return code;
}

/* ---- VLMEvalKit */
/* Writes options A, B ..: a gap is null, and the last option ends the list. */
static void put_letters(vp_json_writer *writer, struct cells *cells) {
    char name[2] = {0, 0};
    int last = -1;
    for (int i = 0; i < 26; i++) {
        name[0] = (char)('A' + i);
        if (cells_column(cells, name) != SIZE_MAX && !cell_said(cells, cells_column(cells, name)).is_missing) last = i;
    }
    if (last < 0) return;
    PUT(writer, KEY_ARRAY("options"));
    for (int i = 0; i <= last; i++) {
        name[0] = (char)('A' + i);
        size_t column = cells_column(cells, name);
        if (column == SIZE_MAX || cell_said(cells, column).is_missing) vp_json_null(writer);
        else json_lossy(writer, cell_said(cells, column).text);
    }
    vp_json_end_array(writer);
}
static void put_vlmevalkit_row(vp_json_writer *writer, struct cells *cells, size_t row) {
    static const char *const more[] = {"category",      "l2-category", "split",     "question_type",
                                       "answer_type", "g_index",     "image_path"};
    const size_t index = cells_column(cells, cells_column(cells, "index") == SIZE_MAX ? "id" : "index"),
                 answer = cells_column(cells, cells_column(cells, "answer") == SIZE_MAX ? "references" : "answer");
    struct text_list list = {NULL, 0};
    struct cell cell = {"", 0, 1};
    vp_json_begin_object(writer);
    vp_json_key(writer, "id");
    if (index != SIZE_MAX) cell = cell_said(cells, index);
    if (index == SIZE_MAX) vp_json_int(writer, (int64_t)row);
    else if (cells->types[index] == COLUMN_INT) vp_json_raw(writer, cell.text, cell.bytes);
    else json_lossy(writer, cell.text);
    put_text(writer, "prediction", cell_written(cells, cells_column(cells, "prediction")).text);
    if (answer != SIZE_MAX && !(cell = cell_said(cells, answer)).is_missing) {
        if (cell.text[0] == '[' && python_list(cell.text, &list)) put_list(writer, "references", &list);
        else put_text(writer, "answer", cell.text);
    }
    text_list_free(&list);
    put_letters(writer, cells);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        size_t column = cells_column(cells, more[i]);
        if (column != SIZE_MAX && !cell_said(cells, column).is_missing)
            put_text(writer, more[i], cell_said(cells, column).text);
    }
    vp_json_end_object(writer);
}
/* Fails with an error that lists the table's columns. */
static vp_result lacks_predictions(const struct cells *cells, const char *path, vp_error *error) {
    struct text_buffer line = {NULL, 0, 0};
    text_add_string(&line, "the table needs the columns \"prediction\" and \"answer\"; it has ");
    for (size_t i = 0; i < cells->names.count; i++) {
        if (i) text_add_string(&line, ", ");
        text_add_string(&line, cells->names.items[i]);
    }
    vp_result result = vp_fail(error, VP_ERR_FORMAT, 0, path, line.data);
    free(line.data);
    return result;
}
static int convert_vlmevalkit(const char *path, const char *text, struct text_buffer *out) {
    struct cells cells = {0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    result = cells_open(&cells, path, memchr(text, '\t', strcspn(text, "\n")) ? '\t' : ',', NULL, NULL, &error);
    if (result == VP_OK && cells_column(&cells, "prediction") == SIZE_MAX)
        result = lacks_predictions(&cells, path, &error);
    for (size_t i = 0; i < cells.row_count && result == VP_OK; i++) {
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, text_sink, out, 0);
        if ((result = cells_row(&cells, i, &error)) != VP_OK) break;
        put_vlmevalkit_row(&writer, &cells, i);
        result = vp_json_finish(&writer);
        text_add(out, "\n", 1);
    }
    cells_close(&cells);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, path, result, &error);
}
int answers_convert(enum answers_kind kind, const char *path, const char *text, size_t bytes, struct text_buffer *out) {
    text_add(out, "", 0);
    if (kind == ANSWERS_SPREADSHEET)
        return complain(EXIT_INPUT,
                        "%s is a spreadsheet: save it as TSV (python3 -c \"import pandas,sys; "
                        "pandas.read_excel(sys.argv[1]).to_csv(sys.argv[2], sep='\\t', index=False)\" IN.xlsx OUT.tsv)",
                        path);
    return kind == ANSWERS_LMMS ? convert_lmms(path, text, bytes, out) : convert_vlmevalkit(path, text, out);
}
