/* test_json_values.c: the program's own JSON helpers: whole texts that they write, and values that they read back. */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "support/check.h"
#include "support/written.h"

static void test_write(void) {
    static const int32_t values[] = {3, -1, 7};
    struct text_list list = {NULL, 0};
    const double nan = (double)NAN, infinity = (double)INFINITY;
    check_case("members of each kind; NaN and infinity become null, invalid UTF-8 a question mark");
    begin();
    put_text(&writer, "a", "x\"y");
    put_text(&writer, "b", NULL);
    put_text(&writer, "c", "\xff ok\xc3\xa9 \xc3");
    put_int(&writer, "d", INT64_MIN);
    put_bool(&writer, "e", 5);
    put_bool(&writer, "f", 0);
    put_double(&writer, "g", 0.25);
    put_double(&writer, "h", nan);
    put_pair(&writer, "i", -1, 2);
    put_null(&writer, "j");
    put_ints(&writer, "k", values, 3);
    put_ints(&writer, "l", NULL, 0);
    CHECK_TEXT(end(), "{\"a\": \"x\\\"y\", \"b\": null, \"c\": \"? ok\xc3\xa9 ?\", \"d\": -9223372036854775808, \"e\": true, \"f\": false, \"g\": 0.25, \"h\": null, "
                      "\"i\": [-1, 2], \"j\": null, \"k\": [3, -1, 7], \"l\": []}");
    begin();
    put_range(&writer, "a", 1.5, -2);
    put_range(&writer, "b", nan, 1);
    put_range(&writer, "c", 1, infinity);
    put_interval(&writer, "d", 1, 0, 1);
    put_interval(&writer, "e", 0, 0, 1);
    PUT(&writer, KEY_TEXTS("f", &list));
    text_list_copy(&list, "x");
    text_list_copy(&list, "\x80");
    PUT(&writer, KEY_TEXTS("g", &list));
    CHECK_TEXT(end(), "{\"a\": [1.5, -2.0], \"b\": null, \"c\": null, \"d\": [0.0, 1.0], \"e\": null, \"f\": [], \"g\": [\"x\", \"?\"]}");
    text_list_free(&list);
}
static void test_read(void) {
    static const char text[] = "{\"a\": \"x\\ny\", \"n\": 12, \"r\": -2.5, \"z\": null, \"u\": \"\\u0000\", \"e\": \"\", \"l\": [1, \"two\", {}], \"t\": true}";
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_json *json = &parsed.json;
    char *value, many[4000] = "[";
    check_case("members read back: texts, numbers, presence of a value");
    CHECK_INT(parse_json(&parsed, text, sizeof text - 1, NULL), VP_OK);
    value = node_text(json, vp_json_get(json, 0, "a"));
    CHECK_TEXT(value, "x\ny");
    free(value);
    value = node_text(json, vp_json_get(json, 0, "e"));
    CHECK_TEXT(value, "");
    free(value);
    CHECK(!node_text(json, vp_json_get(json, 0, "u")) && !node_text(json, vp_json_get(json, 0, "n")) && !node_text(json, VP_JSON_NONE));
    CHECK_NEAR(node_number(json, vp_json_get(json, 0, "r")), -2.5, 0);
    CHECK(isnan(node_number(json, vp_json_get(json, 0, "a"))) && isnan(node_number(json, VP_JSON_NONE)) && isnan(node_number(json, vp_json_get(json, 0, "t"))));
    CHECK_INT(node_int(json, 0, "n", 5), 12);
    CHECK_INT(node_int(json, 0, "r", 5), 5);
    CHECK_INT(node_int(json, 0, "none", -6), -6);
    CHECK(has_value(json, 0, "a") && has_value(json, 0, "e") && !has_value(json, 0, "z") && !has_value(json, 0, "none"));
    CHECK(node_is(json, 0, VP_JSON_OBJECT) && !node_is(json, 0, VP_JSON_ARRAY) && !node_is(json, VP_JSON_NONE, VP_JSON_OBJECT));
    check_case("a node is written as it was read");
    begin();
    vp_json_key(&writer, "l");
    json_node(&writer, json, vp_json_get(json, 0, "l"));
    vp_json_key(&writer, "a");
    json_node(&writer, json, vp_json_get(json, 0, "a"));
    vp_json_key(&writer, "r");
    json_node(&writer, json, vp_json_get(json, 0, "r"));
    CHECK_TEXT(end(), "{\"l\": [1, \"two\", {}], \"a\": \"x\\ny\", \"r\": -2.5}");
    check_case("the array of nodes grows with the text and is reused");
    for (int i = 0; i < 1000; i++) strcat(many, i ? ",1" : "1");
    strcat(many, "]");
    CHECK_INT(parse_json(&parsed, many, strlen(many), NULL), VP_OK);
    CHECK_INT(parsed.json.nodes[0].count, 1000);
    CHECK(parsed.capacity >= 1001);
    CHECK_INT(parse_json(&parsed, "[1, ]", 5, NULL), VP_ERR_FORMAT);
    CHECK_INT(parse_json(&parsed, "[1]", 3, NULL), VP_OK);
    CHECK(parsed.capacity >= 1001);
    free(parsed.nodes);
}
static void test_sinks(void) {
    FILE *file = tmpfile();
    char read[8] = "";
    check_case("destinations of a writer's bytes");
    out.bytes = 0;
    CHECK(text_sink(&out, "ab", 2) == VP_OK && text_sink(&out, "c", 1) == VP_OK);
    CHECK_TEXT(out.data, "abc");
    if (!CHECK(file != NULL)) return;
    CHECK_INT(file_sink(file, "xyz", 3), VP_OK);
    rewind(file);
    CHECK(fread(read, 1, 7, file) == 3 && !strcmp(read, "xyz"));
    fclose(file);
    if ((file = fopen("/dev/null", "r")) == NULL) return;
    CHECK_INT(file_sink(file, "xyz", 3), VP_ERR_WRITE);
    fclose(file);
}

int main(void) {
    RUN_TESTS(test_write, test_read, test_sinks);
    free(out.data);
    return check_done("test_json_values");
}
