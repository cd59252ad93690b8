/* test_table.c: one description of columns as text, CSV and JSON, compared as whole texts; PUT's members. */
#define _POSIX_C_SOURCE 200809L
#include "base/table.h"
#include "support/check.h"

struct thing {
    char name[16];
    const char *note; /* NULL if none */
    int count;
    unsigned bits;
    int64_t bytes;
    size_t places;
    double share;
    vp_estimate ms;
};
static void made_next(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const struct thing *thing = (const struct thing *)row;
    if (thing->count == 3) return;
    snprintf(own, CELL_BYTES, "%s of %s", thing->name, (const char *)context);
    cell_set_text(cell, thing->count == 2 ? NULL : own);
}
static void made_few(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    (void)context; (void)own;
    cell->type = MEMBER_BOOL;
    cell->whole = ((const struct thing *)row)->count < 2;
}
static const struct table_column COLUMNS[] = {
    {CELL(struct thing, name), "name", "thing"},
    {CELL(struct thing, note), "note", "note"},
    {CELL(struct thing, count), "count", "n", .format = "%.1f", .scale = 10},
    {CELL(struct thing, bits), "bits", NULL},
    {CELL(struct thing, bytes), NULL, "at least 0", .rules = COLUMN_FROM_0},
    {CELL(struct thing, bytes), "bytes", "bytes", .rules = COLUMN_NOT_IN_CSV},
    {CELL(struct thing, places), NULL, "places"},
    {CELL(struct thing, share), NULL, "short", .as = number_percent},
    {CELL(struct thing, share), "share", "share %", .format = "%.1f", .scale = 100},
    {CELL(struct thing, share), "share_again", NULL, .rules = COLUMN_NOT_IN_JSON},
    {CELL_ESTIMATE(struct thing, ms), "ms", "ms", .range_key = "ms_interval"},
    {CELL_ESTIMATE(struct thing, ms), NULL, "us", .scale = 1000, .is_measured = 1},
    {CELL_MADE(made_next), "next", "next", .rules = COLUMN_OR_NO_KEY},
    {CELL_MADE(made_few), "few", "few", .in = 6}};
static const struct thing THINGS[] = {
    {"one", "=1", 1, 7, INT64_C(-5000000000), 4, 0.25, {12.5, 12.25, 12.75}},
    {"two, three", NULL, 2, 4000000000u, 6, 5, (double)NAN, {3, (double)NAN, (double)NAN}},
    {"last", "a|b", 3, 0, 0, 0, 0.5, {(double)NAN, (double)NAN, (double)NAN}}};

static void test_forms(void) {
    struct table table = TABLE(COLUMNS, THINGS, 3, "all", 1);
    struct document document = {NULL, 0, NULL};
    struct text_buffer out = {NULL, 0, 0};
    vp_json_writer writer;
    check_case("as text: the columns that have a heading and apply to the table");
    document_add_table(&document, &table);
    document_print(&document, &out);
    CHECK_TEXT(out.data,
               "  thing       note     n  at least 0        bytes  places  short  share %                    ms                    us        next\n"
               "  one           =1  10.0           -  -5000000000       4   25.0     25.0  12.50 [12.25, 12.75]  12500 [12250, 12750]  one of all\n"
               "  two, three     -  20.0           6            6       5      -        -                  3.00                  3000           -\n"
               "  last         a|b  30.0           0            0       0   50.0     50.0                     -                     -           -\n");
    check_case("as CSV: by keys, a range as two fields, unknown values empty");
    out.bytes = 0;
    table_csv(&out, &table);
    CHECK_TEXT(out.data, "name,note,count,bits,share,share_again,ms,ms_low,ms_high,next\n"
                         "one,'=1,1,7,0.25,0.25,12.5,12.25,12.75,one of all\n"
                         "\"two, three\",,2,4000000000,,,3.0,,,\n"
                         "last,a|b,3,0,0.5,0.5,,,,\n");
    check_case("as JSON: numbers unscaled; unknown values are omitted if the column requests it; a column can depend on a bit");
    out.bytes = 0;
    table.has = 3;
    vp_json_writer_init_sink(&writer, text_sink, &out, 0);
    table_put(&writer, NULL, &table);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    CHECK_TEXT(out.data,
               "[{\"name\": \"one\", \"note\": \"=1\", \"count\": 1, \"bits\": 7, \"bytes\": -5000000000, \"share\": 0.25, \"ms\": 12.5,"
               " \"ms_interval\": [12.25, 12.75], \"next\": \"one of all\", \"few\": true}, "
               "{\"name\": \"two, three\", \"note\": null, \"count\": 2, \"bits\": 4000000000, \"bytes\": 6, \"share\": null, \"ms\": 3.0,"
               " \"ms_interval\": null, \"few\": false}, "
               "{\"name\": \"last\", \"note\": \"a|b\", \"count\": 3, \"bits\": 0, \"bytes\": 0, \"share\": 0.5, \"ms\": null,"
               " \"ms_interval\": null, \"few\": false}]");
    document_free(&document);
    free(out.data);
}
static void test_members(void) {
    struct text_buffer out = {NULL, 0, 0};
    struct text_list texts = {NULL, 0};
    vp_json_writer writer;
    const char *none = NULL;
    check_case("PUT: each kind of member, nested, in order");
    text_list_copy(&texts, "a");
    text_list_copy(&texts, "b");
    vp_json_writer_init_sink(&writer, text_sink, &out, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("text", "x\xff"), KEY("none", none), KEY("int", INT64_C(1) << 40), KEY("real", 0.5),
        KEY("nan", (double)NAN), KEY("float", 0.25f), KEY_BOOL("yes", 1), KEY_BOOL("no", 0), KEY_NULL("null"),
        KEY_RANGE("range", 1.0, 2.0), KEY_RANGE("open", 1.0, (double)NAN), KEY_TEXTS("texts", &texts),
        KEY_KNOWN("known", 2, 3), KEY_KNOWN("unknown", 0, 3), KEY_ARRAY("list"), KEY(NULL, 1), KEY_OBJECT(NULL), END_OBJECT, END_ARRAY,
        END_OBJECT);
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    CHECK_TEXT(out.data, "{\"text\": \"x?\", \"none\": null, \"int\": 1099511627776, \"real\": 0.5, \"nan\": null, \"float\": 0.25, \"yes\": true, \"no\": false,"
                         " \"null\": null, \"range\": [1.0, 2.0], \"open\": null, \"texts\": [\"a\", \"b\"], \"known\": 3, \"unknown\": null, \"list\": [1, {}]}");
    text_list_free(&texts);
    free(out.data);
}
int main(void) {
    test_forms();
    test_members();
    return check_done("test_table");
}
