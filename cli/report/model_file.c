/* model_file.c: files of fitted models: writing and reading their common members. When reading, any byte may be
 * wrong. */
#include "report/model_file.h"

#include "base/console.h"
#include "base/document.h"
#include "results/result_read.h"
#include "vlmprof_file.h"

#include <math.h>

const char *const LINEAR_STATE_KEYS[LINEAR_STATES] = {"used", "at zero", "dropped"};

/* ---- writing */
const char *unit_text(const char *name, char out[64]) {
    if (strcmp(name, "1")) snprintf(out, 64, "ms / (%.40s)", name); else snprintf(out, 64, "ms");
    return out;
}
void model_put_linear(vp_json_writer *writer, const vp_linear *fit, const char *const *names) {
    char unit[64];
    PUT(writer, KEY("rows", (int64_t)fit->rows), KEY("degrees_of_freedom", fit->degrees), KEY("sigma", fit->sigma),
        KEY("condition", fit->condition), KEY_ARRAY("columns"));
    for (int column = 0; column < fit->columns; column++) {
        double low = (double)NAN, high = (double)NAN;
        vp_linear_coefficient(fit, column, MODEL_LEVEL, &low, &high);
        PUT(writer, KEY_OBJECT(NULL), KEY("name", names[column]), KEY("unit", unit_text(names[column], unit)),
            KEY("state", LINEAR_STATE_KEYS[fit->state[column]]), KEY("coefficient", fit->coefficient[column]),
            KEY("standard_error", fit->error[column]), KEY_RANGE("interval", low, high), KEY_ARRAY("root"));
        for (int k = 0; k < fit->columns; k++) vp_json_double(writer, fit->root[column * fit->columns + k]);
        PUT(writer, END_ARRAY, END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
/* ---- reading */
uint32_t model_fail(struct model_reader *reader, uint32_t node, const char *key, const char *what) {
    if (!reader->code)
        reader->code = complain(
            EXIT_INPUT, "%s: byte %llu: %s%s%s %s", reader->path,
            (unsigned long long)(node < reader->parsed.json.node_count ? reader->parsed.json.nodes[node].start : 0),
            reader->where, reader->where[0] ? "." : "", key, what);
    return VP_JSON_NONE;
}
uint32_t model_member(struct model_reader *reader, uint32_t object, const char *key, vp_json_type type) {
    uint32_t node = vp_json_get(&reader->parsed.json, object, key);
    static const char *const kinds[] = {"is missing", "has the wrong type"};
    return node_is(&reader->parsed.json, node, type)
               ? node
               : model_fail(reader, node == VP_JSON_NONE ? object : node, key, kinds[node != VP_JSON_NONE]);
}
double model_node(struct model_reader *reader, uint32_t node, const char *key, double least, double most) {
    double value = node_number(&reader->parsed.json, node);
    if (!(value >= least && value <= most)) model_fail(reader, node, key, "is out of range");
    return value;
}
double model_number(struct model_reader *reader, uint32_t object, const char *key, double least, double most) {
    uint32_t node = model_member(reader, object, key, VP_JSON_NUMBER);
    return node == VP_JSON_NONE ? (double)NAN : model_node(reader, node, key, least, most);
}
double model_optional(struct model_reader *reader, uint32_t object, const char *key, double least, double most) {
    return node_is(&reader->parsed.json, vp_json_get(&reader->parsed.json, object, key), VP_JSON_NULL)
               ? (double)NAN
               : model_number(reader, object, key, least, most);
}
int64_t model_count(struct model_reader *reader, uint32_t object, const char *key, int64_t least, int64_t most) {
    uint32_t node = model_member(reader, object, key, VP_JSON_NUMBER);
    int64_t value = least;
    if (node != VP_JSON_NONE
        && (vp_json_to_int(&reader->parsed.json, node, &value) != VP_OK || value < least || value > most))
        model_fail(reader, node, key, "is not a valid count");
    return reader->code ? least : value;
}
char *model_text(struct model_reader *reader, uint32_t object, const char *key) {
    uint32_t node = model_member(reader, object, key, VP_JSON_STRING);
    char *text = node == VP_JSON_NONE ? NULL : result_text(&reader->parsed.json, object, key);
    if (node != VP_JSON_NONE && !text) model_fail(reader, node, key, "is not a string");
    return text ? text : copy_text("", 0);
}
int model_word(struct model_reader *reader, uint32_t object, const char *key, const char *const *words, int count) {
    uint32_t node = model_member(reader, object, key, VP_JSON_STRING);
    for (int i = 0; node != VP_JSON_NONE && i < count; i++)
        if (vp_json_equals(&reader->parsed.json, node, words[i])) return i;
    if (node != VP_JSON_NONE) model_fail(reader, node, key, "is not a known value");
    return 0;
}
void model_check_duplicates(struct model_reader *reader) {
    const vp_json *json = &reader->parsed.json;
    uint32_t *scratch = resize(NULL, json->node_count, sizeof *scratch), duplicate;
    for (uint32_t i = 0; i < json->node_count && !reader->code; i++)
        if (node_is(json, i, VP_JSON_OBJECT)
            && vp_json_has_duplicates(json, i, scratch, json->node_count, &duplicate) == VP_OK
            && duplicate != VP_JSON_NONE)
            model_fail(reader, duplicate, "a key", "appears twice");
    free(scratch);
}
static void read_linear_column(struct model_reader *reader, uint32_t node, const char *name, int is_nonnegative,
                               int column, vp_linear *fit) {
    uint32_t named, root, item;
    if (!node_is(&reader->parsed.json, node, VP_JSON_OBJECT)) {
        model_fail(reader, node, "name", "is missing");
        return;
    }
    named = model_member(reader, node, "name", VP_JSON_STRING);
    if (named != VP_JSON_NONE && !vp_json_equals(&reader->parsed.json, named, name))
        model_fail(reader, named, "name", "is not what this version computes");
    fit->state[column] = (unsigned char)model_word(reader, node, "state", LINEAR_STATE_KEYS, LINEAR_STATES);
    fit->coefficient[column] = model_number(reader, node, "coefficient", is_nonnegative ? 0 : -1e30, 1e30);
    fit->error[column] = model_optional(reader, node, "standard_error", 0, 1e30);
    if (fit->state[column] != VP_LINEAR_USED && !(fit->coefficient[column] <= 0 && fit->coefficient[column] >= 0))
        model_fail(reader, node, "coefficient", "is not 0, but the column is unused");
    fit->used_columns += fit->state[column] == VP_LINEAR_USED;
    root = model_member(reader, node, "root", VP_JSON_ARRAY);
    if (root == VP_JSON_NONE) return;
    if (reader->parsed.json.nodes[root].count != (uint32_t)fit->columns) {
        model_fail(reader, root, "root", "does not have one number per column");
        return;
    }
    item = root + 1;
    for (int k = 0; k < fit->columns; k++, item = reader->parsed.json.nodes[item].end)
        fit->root[column * fit->columns + k] = model_node(reader, item, "root", -1e30, 1e30);
}
void model_read_linear(struct model_reader *reader, uint32_t object, const char *where, const char *const *names,
                       int count, int nonnegative, vp_linear *fit) {
    uint32_t columns, item;
    snprintf(reader->where, sizeof reader->where, "%s", where);
    fit->rows = (uint64_t)model_count(reader, object, "rows", 1, INT64_C(1) << 53);
    fit->degrees = model_number(reader, object, "degrees_of_freedom", 0, 1e16);
    fit->sigma = model_optional(reader, object, "sigma", 0, 1e30);
    fit->condition = model_optional(reader, object, "condition", 1 - 1e-9, 1e300);
    fit->columns = count;
    columns = model_member(reader, object, "columns", VP_JSON_ARRAY);
    if (!reader->code && reader->parsed.json.nodes[columns].count != (uint32_t)count)
        model_fail(reader, columns, "columns", "has a different number of columns");
    if (reader->code) return;
    item = columns + 1;
    for (int column = 0; column < count; column++, item = reader->parsed.json.nodes[item].end) {
        snprintf(reader->where, sizeof reader->where, "%.80s.columns[%d]", where, column);
        read_linear_column(reader, item, names[column], column < nonnegative, column, fit);
    }
    snprintf(reader->where, sizeof reader->where, "%s", where);
    if (!(fabs(fit->degrees - ((double)fit->rows - fit->used_columns)) <= 0))
        model_fail(reader, object, "degrees_of_freedom", "is not rows - used columns");
}
static int parse_model(struct model_reader *reader, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    size_t bytes = 0;
    *reader = (struct model_reader){.path = path};
    vp_result result = vp_file_read(path, MODEL_BYTES_MOST, &reader->text, &bytes, &error);
    if (result != VP_OK) return complain_result(EXIT_INPUT, path, result, &error);
    result = parse_json(&reader->parsed, reader->text, bytes, &error);
    return result == VP_OK ? 0
                           : complain(EXIT_INPUT, "%s: byte %lld: %s", path, (long long)error.offset,
                                      error.text[0] ? error.text : vp_result_text(result));
}
int model_open(struct model_reader *reader, const char *path, const char *schema) {
    const vp_json *json = &reader->parsed.json;
    reader->code = parse_model(reader, path);
    if (!reader->code && !vp_json_equals(json, vp_json_get(json, 0, "schema"), schema))
        reader->code = complain(EXIT_INPUT, "%s is not a model from vlmprof fit: its schema is not %s", path, schema);
    return reader->code;
}
void model_close(struct model_reader *reader) {
    FREE_ALL(reader->parsed.nodes, reader->text);
    memset(reader, 0, sizeof *reader);
}
