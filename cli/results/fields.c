/* fields.c: the keys of journals and result files, one row per key. */
#include "results/fields.h"


#include <math.h>

/* ---- tables */
FIELD_TABLE(MODEL_SHAPE, struct model_shape, MODEL_SHAPE_ROWS(FIELD_ROW, struct model_shape))
FIELD_TABLE(SERVER, char, SERVER_ROWS(FIELD_ELSE))
FIELD_TABLE(HEAD, struct head_line, HEAD_ROWS(FIELD_ROW, FIELD_ELSE, struct head_line))
FIELD_TABLE(DATA, struct data_line, DATA_ROWS(FIELD_ROW, struct data_line))
FIELD_TABLE(CONFIGURATION, struct configuration_line, CONFIGURATION_ROWS(FIELD_ROW, struct configuration_line))
FIELD_TABLE(SESSION, char, ENGINE_SESSION_ROWS(FIELD_ELSE))
FIELD_TABLE(SERVED_SESSION, char, SERVED_SESSION_ROWS(FIELD_ELSE))
FIELD_TABLE(SAMPLE, struct sample_line, SAMPLE_ROWS(FIELD_ROW, FIELD_ELSE, struct sample_line))
FIELD_TABLE(RUN, struct run_line, RUN_ROWS(FIELD_ROW, FIELD_AT, struct run_line))
FIELD_TABLE(USAGE, vp_chat_usage, USAGE_ROWS(FIELD_AT, vp_chat_usage))
FIELD_TABLE(SERVED, struct served, SERVED_PASS_ROWS(FIELD_AT, struct served))
FIELD_TABLE(SERVED_RUN, struct run_line, SERVED_RUN_ROWS(FIELD_ROW, FIELD_AT, struct run_line))
FIELD_TABLE(BARE_PAIR, struct bare_pair, BARE_PAIR_ROWS(FIELD_AT, struct bare_pair))
FIELD_TABLE(BARE, struct bare_line, BARE_ROWS(FIELD_ROW, FIELD_AT, struct bare_line))
FIELD_TABLE(TWIN_PAIR, struct twin_pair, TWIN_PAIR_ROWS(FIELD_AT, struct twin_pair))
FIELD_TABLE(TWINS_OBJECT, struct twins_object, TWINS_OBJECT_ROWS(FIELD_ROW, struct twins_object))
FIELD_TABLE(RESULT_TWINS, struct twins_object,
            TWINS_REASON(FIELD_ROW, struct twins_object) TWINS_PAIRS(FIELD_ROW, struct twins_object))
FIELD_TABLE(TWINS, struct twins_line, TWINS_ROWS(FIELD_ROW, FIELD_AT, struct twins_line))
FIELD_TABLE(DIVERGENCE, struct divergence, DIVERGENCE_ROWS(FIELD_AT, struct divergence))
FIELD_TABLE(FIDELITY_OBJECT, struct fidelity, FIDELITY_OBJECT_ROWS(FIELD_AT, struct fidelity))
FIELD_TABLE(FIDELITY_LINE, struct fidelity_line, FIDELITY_LINE_ROWS(FIELD_ROW, FIELD_AT, struct fidelity_line))
FIELD_TABLE(FIDELITY, struct fidelity_row, FIDELITY_ROWS(FIELD_ROW, struct fidelity_row))
FIELD_TABLE(RESULT_FIDELITY, struct result_fidelity, RESULT_FIDELITY_ROWS(FIELD_ROW, struct result_fidelity))
FIELD_TABLE(DONE, struct done_line, DONE_ROWS(FIELD_ROW, FIELD_ELSE, struct done_line))
FIELD_TABLE(FAILED, struct failed_line, FAILED_ROWS(FIELD_ROW, FIELD_ELSE, struct failed_line))
FIELD_TABLE(SIZES, struct sizes, SIZES_ROWS(FIELD_ROW, struct sizes, FIELD_NEVER_NULL))
FIELD_TABLE(RESULT_SIZES, struct sizes, SIZES_ROWS(FIELD_ROW, struct sizes, FIELD_NULL))
FIELD_TABLE(SENT_IMAGE, struct sent_image, SENT_IMAGE_ROWS(FIELD_ROW, struct sent_image))
FIELD_TABLE(SERVED_SIZES, struct served_sizes, SERVED_SIZES_ROWS(FIELD_ROW, FIELD_AT, struct served_sizes))
FIELD_TABLE(SENT, struct served_sizes, SENT_ROWS(FIELD_ROW, FIELD_AT, struct served_sizes))
FIELD_TABLE(LOAD, struct load_line, LOAD_ROWS(FIELD_ROW, struct load_line))
FIELD_TABLE(LOAD_LINE, struct load_line, LOAD_LINE_ROWS(FIELD_ROW, FIELD_ELSE, struct load_line))
FIELD_TABLE(KERNELS, struct kernels_line, KERNELS_ROWS(FIELD_ROW, FIELD_ELSE, struct kernels_line))
FIELD_TABLE(KERNEL_STAGE, struct kernel_stage, KERNEL_STAGE_ROWS(FIELD_ROW, FIELD_ELSE, struct kernel_stage))
FIELD_TABLE(NOISE_LINE, struct noise_line, NOISE_LINE_ROWS(FIELD_ROW, FIELD_AT, struct noise_line))
FIELD_TABLE(ROW_HEAD, struct row_head, ROW_HEAD_ROWS(FIELD_ROW, struct row_head))
FIELD_TABLE(ANSWER_TOKENS, struct tokens, TOKENS_ROWS(FIELD_ROW, struct tokens))
FIELD_TABLE(ANSWER, struct answer, ANSWER_ROWS(FIELD_ROW, struct answer))
FIELD_TABLE(MEASURED, struct measured_row, MEASURED_ROWS(FIELD_ROW, struct measured_row))
FIELD_TABLE(MEASURED_COST, struct measured_cost, MEASURED_COST_ROWS(FIELD_ROW, struct measured_cost))
FIELD_TABLE(SERVED_RESULT, struct served_result, SERVED_RESULT_ROWS(FIELD_ROW, FIELD_AT, struct served_result))
FIELD_TABLE(RESULT, struct result_head, RESULT_ROWS(FIELD_ROW, struct result_head))
FIELD_TABLE(RESULT_ACCURACY, struct result_accuracy, RESULT_ACCURACY_ROWS(FIELD_ROW, struct result_accuracy))
FIELD_TABLE(RESULT_VISION, struct result_vision, RESULT_VISION_ROWS(FIELD_ROW, struct result_vision))
FIELD_TABLE(RESULT_TIME, struct result_time, RESULT_TIME_ROWS(FIELD_ROW, struct result_time))
FIELD_TABLE(TOOL_COST, struct tool_cost, TOOL_COST_ROWS(FIELD_ROW, struct tool_cost))
FIELD_TABLE(NOISE, vp_noise_summary, NOISE_ROWS(FIELD_AT, vp_noise_summary))

/* ---- values in memory */
static int64_t int_at(const char *at, size_t bytes) {
    int64_t wide;
    int32_t narrow;
    if (bytes == sizeof narrow) memcpy(&narrow, at, sizeof narrow); else memcpy(&wide, at, sizeof wide);
    return bytes == sizeof narrow ? narrow : wide;
}
static void set_int(char *at, size_t bytes, int64_t value) {
    const int32_t narrow = (int32_t)value;
    memcpy(at, bytes == sizeof narrow ? (const void *)&narrow : (const void *)&value, bytes);
}
static const char *text_at(const char *at) {
    const char *text;
    memcpy(&text, at, sizeof text);
    return text;
}
static void set_text(char *at, const char *text) { memcpy(at, &text, sizeof text); }
static double number_at(const char *at) {
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}
static struct field_range range_at(const char *at) {
    struct field_range range;
    memcpy(&range, at, sizeof range);
    return range;
}
/* The struct of an object; NULL if the object is null. */
static const char *object_at(const struct field *row, const char *at) { return row->is_pointer ? text_at(at) : at; }
static int is_pointer(const struct field *row) {
    return row->type == FIELD_TEXT || row->type == FIELD_JSON || row->type == FIELD_LIST;
}
static int is_null(const struct field *row, const char *at) {
    const int may_be = row->null || row->is_optional;
    if (row->type == FIELD_STAGES || (!may_be && !is_pointer(row))) return 0;
    switch (row->type) {
    case FIELD_INT: return int_at(at, row->bytes) < row->least || int_at(at, row->bytes) > row->most;
    case FIELD_TRUTH: return int_at(at, row->bytes) < 0;
    case FIELD_NUMBER: return !isfinite(number_at(at));
    case FIELD_PAIR: return int_at(at, row->bytes / 2) < row->least;
    case FIELD_RANGE:
    case FIELD_INT_RANGE: return !isfinite(range_at(at).low) || !isfinite(range_at(at).high);
    case FIELD_OBJECT: return !object_at(row, at);
    default: return !text_at(at);
    }
}

/* ---- into a file */
static double rounded(const struct field *row, double value) {
    const double scale = pow(10, row->digits);
    return row->digits ? round(value * scale) / scale : value;
}
static void put_stages(vp_json_writer *writer, const vp_stage_times *times) {
    vp_json_begin_object(writer);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!times->ran[i]) continue;
        PUT(writer, KEY_ARRAY(vp_stage_name((vp_stage)i)), KEY(NULL, times->wall_ns[i]), KEY(NULL, times->device_ns[i]),
            KEY(NULL, times->launches[i]), KEY(NULL, times->flops[i]), KEY(NULL, times->bytes[i]), END_ARRAY);
    }
    vp_json_end_object(writer);
}
static void put_items(vp_json_writer *writer, const struct field *row, const char *from) {
    const char *items = text_at(from + row->offset);
    const int64_t count = int_at(from + row->count, row->count_bytes);
    vp_json_begin_array(writer);
    for (int64_t i = 0; i < count; i++) {
        if (row->type == FIELD_INTS)
            vp_json_int(writer, int_at(items + (size_t)i * row->stride + row->item, row->item_bytes));
        else {
            vp_json_begin_object(writer);
            fields_put(writer, row->of, items + (size_t)i * row->of->bytes);
            vp_json_end_object(writer);
        }
    }
    vp_json_end_array(writer);
}
static void put_two(vp_json_writer *writer, const struct field *row, const char *at) {
    const struct field_range range = range_at(at);
    vp_json_begin_array(writer);
    for (int i = 0; i < 2; i++) {
        const double end = i ? range.high : range.low;
        if (row->type == FIELD_PAIR) vp_json_int(writer, int_at(at + (size_t)i * row->bytes / 2, row->bytes / 2));
        else if (row->type == FIELD_INT_RANGE) vp_json_int(writer, llround(end));
        else vp_json_double(writer, end);
    }
    vp_json_end_array(writer);
}
/* Writes on one line: JSON from a server may have line ends between values. */
static void put_raw(vp_json_writer *writer, const char *json) {
    char *text = copy_text(json, strlen(json));
    for (char *byte = text; *byte; byte++) if (*byte == '\n' || *byte == '\r') *byte = ' ';
    vp_json_raw(writer, text, strlen(text));
    free(text);
}
static void put_value(vp_json_writer *writer, const struct field *row, const char *from) {
    const char *at = from + row->offset;
    switch (row->type) {
    case FIELD_INT: vp_json_int(writer, int_at(at, row->bytes)); break;
    case FIELD_NUMBER: json_double_or_null(writer, rounded(row, number_at(at))); break;
    case FIELD_TEXT: json_lossy(writer, text_at(at)); break;
    case FIELD_BYTES:
        vp_json_string_bytes(writer, text_at(at), (size_t)int_at(from + row->count, row->count_bytes));
        break;
    case FIELD_TRUTH: vp_json_bool(writer, int_at(at, row->bytes) != 0); break;
    case FIELD_INTS:
    case FIELD_OBJECTS: put_items(writer, row, from); break;
    case FIELD_STAGES: put_stages(writer, (const vp_stage_times *)(const void *)at); break;
    case FIELD_OBJECT:
        vp_json_begin_object(writer);
        fields_put(writer, row->of, object_at(row, at));
        vp_json_end_object(writer);
        break;
    case FIELD_JSON:
    case FIELD_LIST: put_raw(writer, text_at(at)); break;
    default: put_two(writer, row, at);
    }
}
void fields_put(vp_json_writer *writer, const struct fields *fields, const void *from) {
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct field *row = &fields->rows[i];
        const int none = !row->is_elsewhere && is_null(row, (const char *)from + row->offset);
        if (row->is_elsewhere || (none && row->is_optional == 1)) continue;
        vp_json_key(writer, row->key);
        if (none) vp_json_null(writer); else put_value(writer, row, (const char *)from);
    }
}
void fields_put_object(vp_json_writer *writer, const char *key, const struct fields *fields, const void *from) {
    PUT(writer, KEY_OBJECT(key));
    fields_put(writer, fields, from);
    vp_json_end_object(writer);
}

/* ---- checking an object against its rows */
static int is_integer(const vp_json *json, uint32_t node, const struct field *row) {
    int64_t value = 0;
    return vp_json_to_int(json, node, &value) == VP_OK && value >= row->least && value <= row->most;
}
static int are_integers(const vp_json *json, uint32_t node, const struct field *row) {
    if (!node_is(json, node, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end)
        if (!is_integer(json, i, row)) return 0;
    return 1;
}
static int are_numbers(const vp_json *json, uint32_t node) {
    if (!node_is(json, node, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end)
        if (!isfinite(node_number(json, i))) return 0;
    return 1;
}
static int are_objects(const vp_json *json, uint32_t node, const struct fields *fields) {
    if (!node_is(json, node, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = node + 1; i < json->nodes[node].end; i = json->nodes[i].end)
        if (!fields_fit(json, i, fields, 0)) return 0;
    return 1;
}
static int is_choice(const struct field *row, const char *text) {
    const size_t bytes = strlen(text);
    for (const char *word = row->choices; word && *word; word += strcspn(word, "|"), word += *word == '|')
        if (strcspn(word, "|") == bytes && !memcmp(word, text, bytes)) return 1;
    return !row->choices;
}
static int is_text(const vp_json *json, uint32_t node, const struct field *row) {
    char *text = node_text(json, node);
    const int good = text && is_choice(row, text);
    free(text);
    return good;
}
static int is_number(const vp_json *json, uint32_t node, const struct field *row) {
    double value = 0;
    if (!node_is(json, node, VP_JSON_NUMBER)) return 0;
    if (row->most <= row->least) return 1;
    return vp_json_to_double(json, node, &value) == VP_OK && value >= (double)row->least && value <= (double)row->most;
}
static int stage_of_key(const vp_json *json, uint32_t key) {
    int stage = 0;
    while (stage < VP_STAGE_COUNT && !vp_json_equals(json, key, vp_stage_name((vp_stage)stage))) stage++;
    return stage;
}
/* {"vit": [wall ns, device ns, launches, flops, bytes], ...} */
static int are_stages(const vp_json *json, uint32_t object) {
    static const struct field ns = {.most = LINE_NS_MAX}, work = {.most = LINE_WORK_MAX};
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (uint32_t key = object + 1; key < json->nodes[object].end; key = json->nodes[key + 1].end) {
        const uint32_t list = key + 1;
        if (stage_of_key(json, key) == VP_STAGE_COUNT || !node_is(json, list, VP_JSON_ARRAY)
            || json->nodes[list].count != STAGE_NUMBERS)
            return 0;
        for (uint32_t i = 0; i < STAGE_NUMBERS; i++)
            if (!is_integer(json, list + 1 + i, i < 2 ? &ns : &work)) return 0;
    }
    return 1;
}
static int fits(const vp_json *json, uint32_t node, const struct field *row) {
    if (node == VP_JSON_NONE) return 0;
    if (row->null && node_is(json, node, VP_JSON_NULL)) return 1;
    switch (row->type) {
    case FIELD_INT: return is_integer(json, node, row);
    case FIELD_NUMBER: return is_number(json, node, row);
    case FIELD_TEXT: return is_text(json, node, row);
    case FIELD_BYTES: return node_is(json, node, VP_JSON_STRING);
    case FIELD_TRUTH: return node_is(json, node, VP_JSON_TRUE) || node_is(json, node, VP_JSON_FALSE);
    case FIELD_PAIR:
    case FIELD_INT_RANGE: return are_integers(json, node, row) && json->nodes[node].count == 2;
    case FIELD_RANGE: return are_numbers(json, node) && json->nodes[node].count == 2;
    case FIELD_INTS: return are_integers(json, node, row);
    case FIELD_STAGES: return are_stages(json, node);
    case FIELD_OBJECT: return fields_fit(json, node, row->of, 0);
    case FIELD_OBJECTS: return are_objects(json, node, row->of);
    case FIELD_JSON: return node_is(json, node, VP_JSON_OBJECT);
    default: return node_is(json, node, VP_JSON_ARRAY);
    }
}
int fields_fit(const vp_json *json, uint32_t object, const struct fields *fields, int64_t others) {
    uint32_t absent = 0;
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        const uint32_t node = vp_json_get(json, object, fields->rows[i].key);
        if (node == VP_JSON_NONE && fields->rows[i].is_optional) absent++;
        else if (!fits(json, node, &fields->rows[i])) return 0;
    }
    return others < 0 || json->nodes[object].count + absent == fields->count + (uint32_t)others;
}

/* ---- back into memory */
/* {"vit": [wall ns, device ns, launches, flops, bytes], ...}: the stages that ran */
static void read_stages(const vp_json *json, uint32_t object, vp_stage_times *times) {
    if (!node_is(json, object, VP_JSON_OBJECT)) return;
    for (uint32_t key = object + 1; key < json->nodes[object].end; key = json->nodes[key + 1].end) {
        const int stage = stage_of_key(json, key);
        int64_t numbers[STAGE_NUMBERS];
        if (stage == VP_STAGE_COUNT || !node_is(json, key + 1, VP_JSON_ARRAY)
            || json->nodes[key + 1].count != STAGE_NUMBERS)
            continue;
        times->ran[stage] = 1;
        for (uint32_t i = 0; i < STAGE_NUMBERS; i++)
            if (vp_json_to_int(json, vp_json_at(json, key + 1, i), &numbers[i]) != VP_OK) times->ran[stage] = 0;
        if (!times->ran[stage]) continue;
        times->wall_ns[stage] = numbers[0];
        times->device_ns[stage] = numbers[1];
        times->launches[stage] = numbers[2];
        times->flops[stage] = numbers[3];
        times->bytes[stage] = numbers[4];
    }
}
/* Lists that share their items, as piece_ns and piece_bytes do, have one length and one array. The first list
 * allocates it. */
static void read_items(const vp_json *json, uint32_t list, const struct field *row, char *to) {
    const size_t stride = row->of ? row->of->bytes : row->stride;
    char *items = (char *)(size_t)text_at(to + row->offset);
    const uint32_t count = node_is(json, list, VP_JSON_ARRAY) ? json->nodes[list].count : 0;
    uint32_t node = list + 1;
    if (!items) {
        items = zeroed((size_t)count + 1, stride);
        set_text(to + row->offset, items);
        set_int(to + row->count, row->count_bytes, count);
    }
    for (int64_t i = 0; i < count && i < int_at(to + row->count, row->count_bytes); i++, node = json->nodes[node].end) {
        int64_t value = 0;
        if (row->of) fields_read(json, node, row->of, items + (size_t)i * stride);
        else if (vp_json_to_int(json, node, &value) == VP_OK)
            set_int(items + (size_t)i * stride + row->item, row->item_bytes, value);
    }
}
static void read_bytes(const vp_json *json, uint32_t node, const struct field *row, char *to) {
    const size_t room = node_is(json, node, VP_JSON_STRING) ? (size_t)json->nodes[node].bytes + 1 : 1;
    char *text = zeroed(room, 1); /* unescaping never lengthens */
    size_t bytes = 0;
    if (room == 1 || vp_json_text(json, node, text, room, &bytes) != VP_OK) bytes = 0;
    set_text(to + row->offset, text);
    set_int(to + row->count, row->count_bytes, (int64_t)bytes);
}
static void read_two(const vp_json *json, uint32_t node, const struct field *row, char *at) {
    struct field_range range = {node_number(json, vp_json_at(json, node, 0)),
                                node_number(json, vp_json_at(json, node, 1))};
    if (!node_is(json, node, VP_JSON_ARRAY) || json->nodes[node].count != 2) range.low = range.high = (double)NAN;
    if (row->type != FIELD_PAIR) {
        memcpy(at, &range, sizeof range);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t value = 0;
        if (vp_json_to_int(json, vp_json_at(json, node, i), &value) != VP_OK) value = -1;
        set_int(at + i * row->bytes / 2, row->bytes / 2, value);
    }
}
static char *raw_text(const vp_json *json, uint32_t node, vp_json_type type) {
    return node_is(json, node, type) ? copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes)
                                     : NULL;
}
static void read_object(const vp_json *json, uint32_t node, const struct field *row, char *at) {
    char *object = at;
    if (row->is_pointer) {
        object = node_is(json, node, VP_JSON_OBJECT) ? zeroed(1, row->of->bytes) : NULL;
        set_text(at, object);
    }
    if (object) fields_read(json, node, row->of, object);
}
static void read_value(const vp_json *json, uint32_t node, const struct field *row, char *to) {
    char *at = to + row->offset;
    const double number = node_number(json, node);
    const int is_null_there = row->null && node_is(json, node, VP_JSON_NULL);
    int64_t value = 0;
    switch (row->type) {
    case FIELD_INT:
        if (!is_integer(json, node, row) || vp_json_to_int(json, node, &value) != VP_OK)
            value = row->null || row->least == -1 ? -1 : 0;
        set_int(at, row->bytes, value);
        break;
    case FIELD_NUMBER: memcpy(at, &number, sizeof number); break;
    case FIELD_TEXT: set_text(at, node_text(json, node)); break;
    case FIELD_BYTES:
        if (!is_null_there) read_bytes(json, node, row, to);
        break;
    case FIELD_TRUTH:
        set_int(at, row->bytes, row->null && !node_is(json, node, VP_JSON_FALSE) && !node_is(json, node, VP_JSON_TRUE)
                                    ? -1
                                    : node_is(json, node, VP_JSON_TRUE));
        break;
    case FIELD_INTS:
    case FIELD_OBJECTS:
        if (!is_null_there && (node != VP_JSON_NONE || !row->is_optional)) read_items(json, node, row, to);
        break;
    case FIELD_STAGES: read_stages(json, node, (vp_stage_times *)(void *)at); break;
    case FIELD_OBJECT: read_object(json, node, row, at); break;
    case FIELD_JSON: set_text(at, raw_text(json, node, VP_JSON_OBJECT)); break;
    case FIELD_LIST: set_text(at, raw_text(json, node, VP_JSON_ARRAY)); break;
    default: read_two(json, node, row, at);
    }
}
void fields_read(const vp_json *json, uint32_t object, const struct fields *fields, void *to) {
    memset(to, 0, fields->bytes);
    for (uint32_t i = 0; i < fields->count; i++)
        if (!fields->rows[i].is_elsewhere)
            read_value(json, vp_json_get(json, object, fields->rows[i].key), &fields->rows[i], (char *)to);
}
char *text_without_controls(char *text) {
    for (char *byte = text; byte && *byte; byte++) if ((unsigned char)*byte < 32 || *byte == 127) *byte = '?';
    return text;
}
const struct field *fields_read_marked(const vp_json *json, uint32_t object, const struct fields *fields, void *to) {
    memset(to, 0, fields->bytes);
    for (const struct field *row = fields->rows; row < fields->rows + fields->count; row++) {
        const uint32_t node = vp_json_get(json, object, row->key);
        const int is_absent = node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL);
        char *at = (char *)to + row->offset;
        int64_t count = -1;
        if (!row->is_read) continue;
        if (row->type == FIELD_INT) {
            if (!is_absent && (vp_json_to_int(json, node, &count) != VP_OK || count < 0 || count > row->most))
                return row;
            set_int(at, row->bytes, count);
            continue;
        }
        if (row->type == FIELD_NUMBER && !is_absent && !is_number(json, node, row)) return row;
        if (row->type == FIELD_TEXT && !is_absent && !node_is(json, node, VP_JSON_STRING)) return row;
        if (row->type == FIELD_TRUTH && !is_absent && !node_is(json, node, VP_JSON_TRUE)
            && !node_is(json, node, VP_JSON_FALSE))
            return row;
        read_value(json, node, row, (char *)to);
        if (row->type == FIELD_TEXT) (void)text_without_controls((char *)(size_t)text_at(at));
    }
    return NULL;
}
/* Frees the memory of a value. (Only these types are pointers; others may be smaller than one.) */
static void free_value(const struct field *row, char *at) {
    switch (row->type) {
    case FIELD_TEXT:
    case FIELD_BYTES:
    case FIELD_JSON:
    case FIELD_LIST:
    case FIELD_INTS:
    case FIELD_OBJECTS: /* (these structs own no memory) */
        free((char *)(size_t)text_at(at));
        set_text(at, NULL);
        break;
    case FIELD_OBJECT:
        if (object_at(row, at)) fields_free(row->of, row->is_pointer ? (char *)(size_t)text_at(at) : at);
        if (row->is_pointer) free((char *)(size_t)text_at(at));
        break;
    default: break;
    }
}
void fields_free(const struct fields *fields, void *of) {
    for (uint32_t i = 0; i < fields->count; i++)
        if (!fields->rows[i].is_elsewhere) free_value(&fields->rows[i], (char *)of + fields->rows[i].offset);
    memset(of, 0, fields->bytes);
}
void put_noise(vp_json_writer *writer, const vp_noise_summary *summary) {
    fields_put_object(writer, "noise", &NOISE, summary);
}
