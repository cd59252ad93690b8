/* test_fields.c: each row of the field tables reads back its own output. A struct filled with a row's extremes goes through the writer, the checker and the reader: the
 * same values must come back, and be written as the same bytes. A value that does not fit must be rejected. */
#define _POSIX_C_SOURCE 200809L
#include "results/fields.h"
#include "support/check.h"

#define NAMED(table) {#table, &table}
static const struct { const char *name; const struct fields *fields; } TABLES[] = {
    NAMED(HEAD), NAMED(MODEL_SHAPE), NAMED(SERVER), NAMED(DATA), NAMED(CONFIGURATION), NAMED(SESSION), NAMED(SERVED_SESSION), NAMED(SAMPLE), NAMED(RUN),
    NAMED(SERVED_RUN), NAMED(SERVED), NAMED(USAGE), NAMED(BARE), NAMED(BARE_PAIR), NAMED(TWIN_PAIR), NAMED(TWINS), NAMED(TWINS_OBJECT),
    NAMED(RESULT_TWINS), NAMED(DONE), NAMED(FAILED), NAMED(SIZES), NAMED(RESULT_SIZES), NAMED(SERVED_SIZES), NAMED(SENT), NAMED(SENT_IMAGE),
    NAMED(KERNELS), NAMED(KERNEL_STAGE), NAMED(NOISE_LINE), NAMED(NOISE), NAMED(ROW_HEAD), NAMED(ANSWER_TOKENS),
    NAMED(ANSWER), NAMED(MEASURED), NAMED(MEASURED_COST), NAMED(SERVED_RESULT), NAMED(RESULT), NAMED(RESULT_ACCURACY), NAMED(RESULT_VISION),
    NAMED(RESULT_TIME), NAMED(TOOL_COST)};
enum { TABLE_COUNT = sizeof TABLES / sizeof *TABLES };

/* ---- values: the smallest, the largest, one in between, and null if allowed */
enum { LEAST, MOST, BETWEEN, NONE, VARIANTS };
static char longest[70000];
static const char *const EXTREME_TEXTS[] = {"", longest, "\"quotes\\\" and\n\ttabs \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \x01\x7f"};
static const double EXTREME_NUMBERS[] = {-1.7976931348623157e308, 1.7976931348623157e308, 5e-324};

static void set_integer(char *at, size_t bytes, int64_t value) {
    const int32_t narrow = (int32_t)value;
    memcpy(at, bytes == 4 ? (const void *)&narrow : (const void *)&value, bytes);
}
static int64_t integer(const struct field *row, size_t bytes, int variant) {
    const int64_t most = bytes == 4 && row->most > INT32_MAX ? INT32_MAX : row->most, least = bytes == 4 && row->least < INT32_MIN ? INT32_MIN : row->least;
    return variant == LEAST ? least : variant == MOST ? most : variant == NONE ? -1 : most / 2 + least / 2;
}
static double number(const struct field *row, int variant) {
    const double scale = pow(10, row->digits);
    if (variant == NONE) return (double)NAN;
    if (row->digits || row->type == FIELD_INT_RANGE) return round((variant == LEAST ? 0 : variant == MOST ? 1e6 : 12.3) * scale) / scale;
    if (row->most > row->least) return variant == LEAST ? (double)row->least : variant == MOST ? (double)row->most : 0.1;
    return EXTREME_NUMBERS[variant];
}
static void fill(const struct fields *fields, char *to, int variant, int in_list);
static void set_pointer(char *at, const void *pointer) { memcpy(at, &pointer, sizeof pointer); }
/* Lists that share their items receive them once. */
static void fill_items(const struct field *row, char *to, int variant) {
    const int32_t count = variant == LEAST ? 0 : variant == MOST ? 500 : 3;
    const size_t stride = row->of ? row->of->bytes : row->stride;
    char *items;
    memcpy(&items, to + row->offset, sizeof items);
    if (!items) items = (char *)zeroed((size_t)count + 1, stride);
    set_pointer(to + row->offset, items);
    set_integer(to + row->count, row->count_bytes, count);
    for (int32_t i = 0; i < count; i++) {
        if (row->of) fill(row->of, items + (size_t)i * stride, i % BETWEEN, 1);
        else set_integer(items + (size_t)i * stride + row->item, row->item_bytes, integer(row, row->item_bytes, i % 3));
    }
}
static void fill_stages(vp_stage_times *times, int variant) {
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        times->ran[i] = variant != LEAST || i == 3;
        if (!times->ran[i]) continue;
        times->wall_ns[i] = variant == MOST ? LINE_NS_MAX : i;
        times->device_ns[i] = variant == MOST ? LINE_NS_MAX : i + 1;
        times->launches[i] = times->flops[i] = times->bytes[i] = variant == MOST ? LINE_WORK_MAX : i + 2;
    }
}
static void fill_value(const struct field *row, char *to, int variant, int in_list) {
    char *at = to + row->offset, *text;
    const struct field_range range = {number(row, variant), number(row, variant == LEAST ? MOST : variant)};
    const double value = number(row, variant);
    switch (row->type) {
    case FIELD_INT: set_integer(at, row->bytes, integer(row, row->bytes, variant)); break;
    case FIELD_NUMBER: memcpy(at, &value, sizeof value); break;
    case FIELD_TRUTH: set_integer(at, row->bytes, variant == NONE ? -1 : variant != LEAST); break;
    case FIELD_PAIR:
        set_integer(at, row->bytes / 2, integer(row, 8, variant));
        set_integer(at + row->bytes / 2, row->bytes / 2, integer(row, 8, variant == NONE ? NONE : MOST));
        break;
    case FIELD_RANGE:
    case FIELD_INT_RANGE: memcpy(at, &range, sizeof range); break;
    case FIELD_TEXT:
        text = row->choices ? copy_text(row->choices, strcspn(row->choices, "|"))
               : variant == NONE ? NULL : copy_text(EXTREME_TEXTS[variant], strlen(EXTREME_TEXTS[variant]));
        set_pointer(at, variant == NONE || in_list ? NULL : text);
        if (variant == NONE || in_list) free(text);
        break;
    case FIELD_BYTES:
        if (variant == NONE) break;
        set_pointer(at, copy_text("a\0b\"\xc3\xa9", variant == LEAST ? 0 : 6));
        set_integer(to + row->count, row->count_bytes, variant == LEAST ? 0 : 6);
        break;
    case FIELD_JSON: /* line ends between values are written as blanks */
        text = copy_text(variant == MOST ? "{\"a\":\n[1, null, \"\\u00e9\"]}" : "{\"a\": [1, null, \"\\u00e9\"]}", 26);
        set_pointer(at, variant == NONE ? NULL : text);
        if (variant == NONE) free(text);
        break;
    case FIELD_LIST: set_pointer(at, variant == NONE ? NULL : copy_text("[]", 2)); break;
    case FIELD_INTS:
    case FIELD_OBJECTS:
        if (variant != NONE || !row->null) fill_items(row, to, variant);
        break;
    case FIELD_STAGES: fill_stages((vp_stage_times *)(void *)at, variant); break;
    case FIELD_OBJECT:
        if (!row->is_pointer) fill(row->of, at, variant, in_list);
        else if (variant != NONE || !row->null) {
            char *object = (char *)zeroed(1, row->of->bytes);
            fill(row->of, object, variant, in_list);
            set_pointer(at, object);
        }
    }
}
static void fill(const struct fields *fields, char *to, int variant, int in_list) {
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct field *row = &fields->rows[i];
        const int may_lack = row->null || row->is_optional || (row->type == FIELD_OBJECT && !row->is_pointer);
        if (!row->is_elsewhere) fill_value(row, to, variant == NONE && !may_lack ? BETWEEN : variant, in_list);
    }
}

/* ---- the same when written and read back */
static char *written(const struct fields *fields, const void *from) {
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_begin_object(&writer);
    fields_put(&writer, fields, from);
    for (uint32_t i = 0; i < fields->count; i++) { /* fields that other code writes */
        const struct field *row = &fields->rows[i];
        if (!row->is_elsewhere || row->is_optional) continue;
        vp_json_key(&writer, row->key);
        vp_json_raw(&writer, row->type == FIELD_LIST ? "[]" : row->type == FIELD_JSON ? "{}" : row->type == FIELD_TEXT ? "\"\"" : "1",
                    row->type == FIELD_INT || row->type == FIELD_NUMBER ? 1 : 2);
    }
    vp_json_end_object(&writer);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    return text.data;
}
static void check_table(const char *name, const struct fields *fields, int variant) {
    char *filled = (char *)zeroed(1, fields->bytes), *back = (char *)zeroed(1, fields->bytes), *text, *again;
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    fill(fields, filled, variant, 0);
    text = written(fields, filled);
    if (check_note(parse_json(&parsed, text, strlen(text), NULL) == VP_OK, __FILE__, __LINE__, "%s: %.200s", name, text)) {
        check_note(!strpbrk(text, "\r\n"), __FILE__, __LINE__, "%s: two lines", name);
        check_note(fields_fit(&parsed.json, 0, fields, 0), __FILE__, __LINE__, "%s %d does not fit: %.3000s", name, variant, text);
        fields_read(&parsed.json, 0, fields, back);
        again = written(fields, back);
        check_note(!strcmp(text, again), __FILE__, __LINE__, "%s %d: %.500s is read as %.500s", name, variant, text, again);
        for (uint32_t i = 0; i < fields->count; i++) { /* for numbers, the memory itself */
            const struct field *row = &fields->rows[i];
            const int is_number = row->type == FIELD_INT || row->type == FIELD_TRUTH || row->type == FIELD_NUMBER;
            if (is_number && !row->is_elsewhere && variant != NONE)
                check_note(!memcmp(filled + row->offset, back + row->offset, row->bytes), __FILE__, __LINE__, "%s %d: %s", name, variant, row->key);
        }
        free(again);
    }
    FREE_ALL(text, parsed.nodes);
    fields_free(fields, filled);
    fields_free(fields, back);
    FREE_ALL(filled, back);
}
/* Each row with a value of the wrong type, one below and one above its range, and without its key. */
static void check_row(const char *name, const struct fields *fields, uint32_t which) {
    const struct field *row = &fields->rows[which];
    const int has_range = row->type == FIELD_INT;
    char *filled = (char *)zeroed(1, fields->bytes), *text, low[40], high[40];
    const int is_list = row->type == FIELD_LIST || row->type == FIELD_OBJECTS || row->type == FIELD_INTS;
    const char *bad[5] = {is_list ? "{}" : "[[]]", row->null ? is_list ? "{}" : "[[]]" : "null", NULL, NULL, NULL};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    snprintf(low, sizeof low, "%lld", (long long)row->least - (row->least > INT64_MIN));
    snprintf(high, sizeof high, "%lld", (long long)row->most + (row->most < INT64_MAX));
    if (has_range && row->least > INT64_MIN) bad[2] = low;
    if (has_range && row->most < INT64_MAX) bad[3] = high;
    if (row->type == FIELD_TEXT) bad[4] = "\"a\\u0000b\"";
    fill(fields, filled, BETWEEN, 0);
    text = written(fields, filled);
    for (int k = 0; k < 6; k++) {
        struct text_buffer changed = {NULL, 0, 0};
        if (k < 5 && !bad[k]) continue;
        CHECK(parse_json(&parsed, text, strlen(text), NULL) == VP_OK);
        uint32_t node = vp_json_get(&parsed.json, 0, row->key);
        if (node == VP_JSON_NONE) continue;
        if (k == 5) { /* renamed */
            const char *at = strstr(text, row->key);
            text_add(&changed, text, (size_t)(at - text));
            text_add_string(&changed, "another_");
            text_add_string(&changed, at);
        } else {
            const vp_json_node *value = &parsed.json.nodes[node];
            const size_t quote = value->type == VP_JSON_STRING;
            text_add(&changed, text, (size_t)value->start - quote);
            text_add_string(&changed, bad[k]);
            text_add_string(&changed, text + value->start + value->bytes + quote);
        }
        if (check_note(parse_json(&parsed, changed.data, changed.bytes, NULL) == VP_OK, __FILE__, __LINE__, "%s: %.300s", name, changed.data))
            check_note(!fields_fit(&parsed.json, 0, fields, 0), __FILE__, __LINE__, "%s: %s with %s passes", name, row->key, k < 5 ? bad[k] : "another key");
        free(changed.data);
    }
    FREE_ALL(text, parsed.nodes);
    fields_free(fields, filled);
    free(filled);
}
int main(void) {
    for (size_t i = 0; i + 1 < sizeof longest; i++) longest[i] = (char)('a' + i % 26);
    for (int i = 0; i < TABLE_COUNT; i++) {
        check_case(TABLES[i].name);
        for (int variant = 0; variant < VARIANTS; variant++) check_table(TABLES[i].name, TABLES[i].fields, variant);
        for (uint32_t row = 0; row < TABLES[i].fields->count; row++) check_row(TABLES[i].name, TABLES[i].fields, row);
    }
    return check_done("test_fields");
}
