/* test_json.c: the JSON reader and writer and the exact number conversions. */
#include "support/check.h"
#include "vlmprof_json.h"

static uint64_t random_state;
static uint64_t random_bits(void) { /* splitmix64 */
    uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}
/* A parsed document in memory of exactly its size, so AddressSanitizer detects an access past the end. */
typedef struct document { char *text; vp_json_node *nodes; size_t node_count; vp_json json; vp_result result; vp_error error; } document;
static document document_open(const char *text, size_t bytes) {
    document d = {.text = (char *)malloc(bytes ? bytes : 1)};
    memcpy(d.text, text, bytes);
    d.result = vp_json_parse(d.text, bytes, NULL, 0, NULL, &d.node_count, &d.error);
    if (d.result != VP_ERR_CAPACITY) return d;
    d.nodes = (vp_json_node *)malloc(d.node_count * sizeof *d.nodes);
    memset(d.nodes, 0xA5, d.node_count * sizeof *d.nodes);
    d.result = vp_json_parse(d.text, bytes, d.nodes, d.node_count, &d.json, NULL, &d.error);
    return d;
}
static document document_of(const char *text) { return document_open(text, strlen(text)); }
static void document_close(document *d) {
    FREE_ALL(d->text, d->nodes);
}
/* every accepted form of RFC 8259, with its number of nodes */
static void test_accepted(void) {
    static const struct { const char *text; size_t nodes; } rows[] = {
        { "null", 1 }, { " true\n", 1 }, { "\t\r\nfalse", 1 }, { "0", 1 }, { "-0", 1 }, { "-0.0e-0", 1 }, { "10E+05", 1 }, { "\"\"", 1 }, { "[]", 1 }, { "{}", 1 },
        { "[ ]", 1 }, { "{ }", 1 }, { "[[]]", 2 }, { "[[],[]]", 3 }, { "[1,2 , 3]", 4 }, { "{\"a\":1}", 3 }, { "{\"a\" : {\"b\" :[ { } , \"c\" ] } , \"a\":null}", 9 },
        { "{\"\":0}", 3 }, { "\"\\u0000\\uD83D\\uDE00\\ud800\\\"\\\\\\/\\b\\f\\n\\r\\t\"", 1 },
        { "\"\x7F \xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF\"", 1 },
        { "\"0123456\"", 1 }, { "\"01234567\"", 1 }, { "\"012345678\"", 1 }, { "\"\xEF\xBB\xBF\"", 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = document_of(rows[i].text);
        check_case("accepted %s", rows[i].text);
        CHECK_INT(d.result, VP_OK);
        CHECK_INT(d.node_count, rows[i].nodes);
        CHECK_INT(d.json.node_count, rows[i].nodes);
        document_close(&d);
    }
}
/* every kind of malformed text is rejected at the right byte with the right words */
static void test_refused(void) {
    static const struct { const char *text; int offset; const char *message; } rows[] = {
        { "", 0, "the text ends where a value" }, { "  ", 2, "the text ends where a value" }, { "[", 1, "the text ends" }, { "[1", 2, "the text ends inside an array" },
        { "[1,", 3, "the text ends where a value" }, { "{", 1, "the text ends inside an object" }, { "{\"a\"", 4, "the text ends inside an object" },
        { "{\"a\":", 5, "the text ends where a value" }, { "{\"a\":1", 6, "the text ends inside an object" }, { "{\"a\":1,", 7, "the text ends inside an object" },
        { "[1,]", 3, "expected a value" }, { "[,1]", 1, "expected a value" }, { "[1 2]", 3, "expected ',' or ']' after an element" },
        { "[1}", 2, "expected ',' or ']' after an element" }, { "{\"a\":1]", 6, "expected ',' or '}' after a member" },
        { "{\"a\":1 \"b\":2}", 7, "expected ',' or '}' after a member" }, { "{\"a\" 1}", 5, "expected ':' after a key" },
        { "{\"a\",1}", 4, "expected ':' after a key" }, { "{a:1}", 1, "expected a key in double quotes or '}'" },
        { "{1:1}", 1, "expected a key in double quotes or '}'" }, { "{\"a\":1,}", 7, "expected a key in double quotes after ','" },
        { "{\"a\":}", 5, "expected a value" }, { "{,}", 1, "expected a key" }, { "]", 0, "expected a value" }, { "}", 0, "expected a value" },
        { "1 2", 2, "expected nothing after the value" }, { "[]]", 2, "expected nothing after the value" }, { "{}x", 2, "expected nothing after the value" },
        { "nul", 0, "expected a value" }, { "nulL", 0, "expected a value" }, { "truefalse", 4, "expected nothing" }, { "True", 0, "expected a value" },
        { "NaN", 0, "expected a value" }, { "Infinity", 0, "expected a value" }, { "-Infinity", 1, "expected a digit" }, { "'a'", 0, "expected a value" },
        { "// x\n1", 0, "expected a value" }, { "[1/**/]", 2, "expected ','" }, { "\xEF\xBB\xBF{}", 0, "byte order mark" },
        { " \xEF\xBB\xBF{}", 1, "expected a value" }, { "+1", 0, "expected a value" }, { ".5", 0, "expected a value" }, { "-", 1, "expected a digit" },
        { "-a", 1, "expected a digit" }, { "01", 0, "must not start with 0" }, { "-012", 1, "must not start with 0" }, { "1.", 2, "after the decimal point" },
        { "1.e5", 2, "after the decimal point" }, { "1e", 2, "in the exponent" }, { "1e+", 3, "in the exponent" }, { "[1E-]", 4, "in the exponent" },
        { "0x10", 1, "expected nothing" }, { "1_000", 1, "expected nothing" }, { "\"", 1, "the text ends inside a string" },
        { "\"abcdefghijk", 12, "the text ends inside a string" }, { "\"a\\", 3, "the text ends inside a string" }, { "\"a\\\"", 4, "the text ends inside a string" },
        { "\"\\u12", 5, "the text ends inside a string" }, { "\"\\x41\"", 1, "unknown escape" }, { "\"\\'\"", 1, "unknown escape" },
        { "\"\\u12g4\"", 1, "four hexadecimal" }, { "\"\\u+123\"", 1, "four hexadecimal" }, { "\"tab\there\"", 4, "control character" },
        { "\"\n\"", 1, "control character" }, { "\"12345678\x1F\"", 9, "control character" }, { "\"\x80\"", 1, "UTF-8" }, { "\"\xC0\x80\"", 1, "UTF-8" },
        { "\"\xC1\xBF\"", 1, "UTF-8" }, { "\"\xE0\x9F\xBF\"", 1, "UTF-8" }, { "\"\xF0\x8F\xBF\xBF\"", 1, "UTF-8" }, { "\"x\xED\xA0\x80\"", 2, "UTF-8" },
        { "\"\xED\xBF\xBF\"", 1, "UTF-8" }, { "\"\xF4\x90\x80\x80\"", 1, "UTF-8" }, { "\"\xF5\x80\x80\x80\"", 1, "UTF-8" }, { "\"\xFF\"", 1, "UTF-8" },
        { "\"\xC3\"", 1, "UTF-8" }, { "\"\xE2\x82\"", 1, "UTF-8" }, { "\"\xF0\x9F\x98", 1, "UTF-8" }, { "\xC2\xA0 1", 0, "expected a value" },
        { "{\"\xFF\":1}", 2, "UTF-8" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = document_of(rows[i].text);
        check_case("rejected %s", rows[i].text);
        CHECK_INT(d.result, VP_ERR_FORMAT);
        CHECK_INT(d.error.code, VP_ERR_FORMAT);
        CHECK_INT(d.error.offset, rows[i].offset);
        check_note(strstr(d.error.text, rows[i].message) != NULL, __FILE__, __LINE__, "says \"%s\", not \"%s\"", d.error.text, rows[i].message);
        CHECK_INT(d.node_count, 0);
        CHECK(d.error.where[0] != 0);
        document_close(&d);
    }
    check_case("rejected: NUL bytes");
    CHECK_INT(vp_json_parse("1\0", 2, NULL, 0, NULL, NULL, NULL), VP_ERR_FORMAT);
    CHECK_INT(vp_json_parse("\"a\0b\"", 5, NULL, 0, NULL, NULL, NULL), VP_ERR_FORMAT);
    CHECK_INT(vp_json_parse(NULL, 0, NULL, 0, NULL, NULL, NULL), VP_ERR_FORMAT);
    CHECK_INT(vp_json_parse(NULL, 5, NULL, 0, NULL, NULL, NULL), VP_ERR_FORMAT);
}
static const char sample[] =
    "{\"name\": \"tiny\", \"shape\": [3, [4, {}], -5], \"o\": {\"x\": 1.5, \"\\u0079\": true, \"x\": null},\n"
    " \"caf\xC3\xA9\": \"a\\n\\\"\\u00e9\\ud83d\\ude00z\", \"big\": 9223372036854775807}";

/* No prefix of an object is valid: each is rejected, and none is read past its end (exact allocations). */
static void test_prefixes(void) {
    check_case("every proper prefix is rejected");
    for (size_t n = 0; n < sizeof sample - 1; n++) {
        document d = document_open(sample, n);
        CHECK_INT(d.result, VP_ERR_FORMAT);
        CHECK(d.error.offset <= (int64_t)n);
        document_close(&d);
    }
}
static void test_tree(void) {
    document d = document_of(sample);
    const vp_json *j = &d.json;
    size_t needed = 0;
    vp_json_node few[4];
    vp_json untouched;
    check_case("the tree of the sample");
    CHECK_INT(d.result, VP_OK);
    CHECK_INT(j->nodes[0].type, VP_JSON_OBJECT);
    CHECK_INT(j->nodes[0].count, 5);
    CHECK_INT(j->nodes[0].end, j->node_count);
    CHECK_INT(j->nodes[0].start, 0);
    CHECK_INT(j->nodes[0].bytes, sizeof sample - 1);
    uint32_t shape = vp_json_get(j, 0, "shape");
    CHECK_INT(shape, 4);
    CHECK_INT(j->nodes[shape].count, 3);
    CHECK_INT(j->nodes[shape].end, 10);
    CHECK(memcmp(j->text + j->nodes[shape].start, "[3, [4, {}], -5]", (size_t)j->nodes[shape].bytes) == 0 && j->nodes[shape].bytes == 16);
    uint32_t inner = vp_json_at(j, shape, 1);
    CHECK_INT(j->nodes[inner].count, 2);
    CHECK_INT(j->nodes[vp_json_at(j, inner, 1)].type, VP_JSON_OBJECT);
    CHECK_INT(j->nodes[vp_json_at(j, inner, 1)].count, 0);
    CHECK_INT(vp_json_at(j, shape, 2), 9);
    CHECK_INT(j->nodes[9].type, VP_JSON_NUMBER);
    CHECK_INT(vp_json_at(j, shape, 3), VP_JSON_NONE);
    uint32_t o = vp_json_get(j, 0, "o");
    CHECK_INT(j->nodes[o].count, 3);
    CHECK_INT(j->nodes[vp_json_get(j, o, "x")].type, VP_JSON_NULL); /* the last of two counts */
    CHECK_INT(j->nodes[vp_json_get(j, o, "y")].type, VP_JSON_TRUE); /* an escaped key */
    CHECK(vp_json_get(j, 0, "caf\xC3\xA9") != VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, 0, "x"), VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, 0, "nam"), VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, 0, "names"), VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, 0, ""), VP_JSON_NONE);
    check_case("wrong types and chained lookups return none");
    CHECK_INT(vp_json_get(j, shape, "x"), VP_JSON_NONE);
    CHECK_INT(vp_json_at(j, 0, 0), VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, vp_json_get(j, vp_json_get(j, 0, "none"), "x"), "y"), VP_JSON_NONE);
    CHECK_INT(vp_json_at(j, VP_JSON_NONE, 0), VP_JSON_NONE);
    CHECK_INT(vp_json_at(j, j->node_count, 0), VP_JSON_NONE);
    CHECK_INT(vp_json_get(j, 0, NULL), VP_JSON_NONE);
    CHECK_INT(vp_json_equals(j, VP_JSON_NONE, "x"), 0);
    CHECK_INT(vp_json_equals(j, 0, "x"), 0);
    check_case("too few nodes: the needed count, json unchanged, nothing written after them");
    memset(few, 0x5A, sizeof few);
    memset(&untouched, 0x5A, sizeof untouched);
    CHECK_INT(vp_json_parse(d.text, sizeof sample - 1, few, 3, &untouched, &needed, &d.error), VP_ERR_CAPACITY);
    CHECK_INT(d.error.code, VP_ERR_CAPACITY);
    CHECK_INT(needed, d.node_count);
    CHECK_INT(few[3].end, 0x5A5A5A5A);
    CHECK_INT(untouched.node_count, 0x5A5A5A5A);
    document_close(&d);
}
static void test_depth(void) {
    char text[200];
    for (int levels = 64; levels <= 65; levels++) {
        check_case("%d levels", levels);
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        document d = document_open(text, (size_t)levels * 2);
        CHECK_INT(d.result, levels <= 64 ? VP_OK : VP_ERR_RANGE);
        if (levels > 64) CHECK_INT(d.error.offset, 64);
        document_close(&d);
    }
}
static void test_text(void) {
    static const struct { const char *json, *text; size_t bytes; } rows[] = {
        { "\"\"", "", 0 }, { "\"plain\"", "plain", 5 }, { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8 }, { "\"a\\u0000b\"", "a\0b", 3 },
        { "\"\\u0041\\u007f\"", "A\x7F", 2 }, { "\"\\u0080\\u07FF\"", "\xC2\x80\xDF\xBF", 4 }, { "\"\\u0800\\uffff\"", "\xE0\xA0\x80\xEF\xBF\xBF", 6 },
        { "\"\\ud800\\udc00\"", "\xF0\x90\x80\x80", 4 }, { "\"\\uDBFF\\uDFFF\"", "\xF4\x8F\xBF\xBF", 4 }, { "\"\\ud83d\"", "\xEF\xBF\xBD", 3 },
        { "\"\\udc00x\"", "\xEF\xBF\xBDx", 4 }, { "\"\\ud83d\\n\"", "\xEF\xBF\xBD\n", 4 }, { "\"\\ud83d\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80", 7 },
        { "\"\\ud83d\\u0041\"", "\xEF\xBF\xBD" "A", 4 }, { "\"\\ude00\\ud83d\"", "\xEF\xBF\xBD\xEF\xBF\xBD", 6 },
        { "\"\\udc00\\udc00\"", "\xEF\xBF\xBD\xEF\xBF\xBD", 6 },
        { "\"\\\\u0041\"", "\\u0041", 6 }, { "\"\xC3\xA9\\u00e9\"", "\xC3\xA9\xC3\xA9", 4 } };
    char out[32];
    size_t i, needed;
    document d;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_case("text of %s", rows[i].json);
        d = document_of(rows[i].json);
        memset(out, 0x5A, sizeof out);
        needed = 99;
        CHECK_INT(vp_json_text(&d.json, 0, NULL, 0, &needed), VP_ERR_CAPACITY);
        CHECK_INT(needed, rows[i].bytes);
        CHECK_INT(vp_json_text(&d.json, 0, out, rows[i].bytes, NULL), VP_ERR_CAPACITY);
        CHECK_INT(out[0], 0x5A);
        CHECK_INT(vp_json_text(&d.json, 0, out, rows[i].bytes + 1, &needed), VP_OK);
        CHECK(memcmp(out, rows[i].text, rows[i].bytes + 1) == 0);
        CHECK_INT(out[rows[i].bytes + 1], 0x5A);
        CHECK_INT(vp_json_equals(&d.json, 0, rows[i].text), strlen(rows[i].text) == rows[i].bytes);
        CHECK_INT(vp_json_equals(&d.json, 0, "another"), 0);
        document_close(&d);
    }
    check_case("text: wrong node");
    d = document_of("[1]");
    CHECK_INT(vp_json_text(&d.json, 0, out, sizeof out, &needed), VP_ERR_MISMATCH);
    CHECK_INT(vp_json_text(&d.json, VP_JSON_NONE, out, sizeof out, &needed), VP_ERR_NOT_FOUND);
    document_close(&d);
}
static void test_integers(void) {
    static const struct { const char *text; vp_result result; int64_t value; } rows[] = {
        { "0", VP_OK, 0 }, { "-0", VP_OK, 0 }, { "0.000", VP_OK, 0 }, { "0e99999999999999999999", VP_OK, 0 }, { "3", VP_OK, 3 }, { "3.0", VP_OK, 3 },
        { "3e0", VP_OK, 3 }, { "30e-1", VP_OK, 3 }, { "0.3e1", VP_OK, 3 }, { "0.0000000000000000000000000000003e31", VP_OK, 3 }, { "-12.50e1", VP_OK, -125 },
        { "1000", VP_OK, 1000 }, { "1e18", VP_OK, INT64_C(1000000000000000000) }, { "9223372036854775807", VP_OK, INT64_MAX },
        { "922337203685477580.7e1", VP_OK, INT64_MAX }, { "-9223372036854775808", VP_OK, INT64_MIN }, { "-9223372036854775808.00", VP_OK, INT64_MIN },
        { "9007199254740993", VP_OK, INT64_C(9007199254740993) }, { "9223372036854775808", VP_ERR_RANGE, 0 }, { "-9223372036854775809", VP_ERR_RANGE, 0 },
        { "9999999999999999999", VP_ERR_RANGE, 0 }, { "18446744073709551616", VP_ERR_RANGE, 0 }, { "1e19", VP_ERR_RANGE, 0 },
        { "1e99999999999999999999", VP_ERR_RANGE, 0 }, { "3.5", VP_ERR_FORMAT, 0 }, { "1e-1", VP_ERR_FORMAT, 0 }, { "1e-99999999999999999999", VP_ERR_FORMAT, 0 },
        { "3.0000000000000000000000001", VP_ERR_FORMAT, 0 },
        { "\"3\"", VP_ERR_MISMATCH, 0 }, { "true", VP_ERR_MISMATCH, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = document_of(rows[i].text);
        int64_t value = 77;
        check_case("integer %s", rows[i].text);
        CHECK_INT(vp_json_to_int(&d.json, 0, &value), rows[i].result);
        CHECK_INT(value, rows[i].result == VP_OK ? rows[i].value : 77);
        CHECK_INT(vp_json_to_int(&d.json, 1, &value), VP_ERR_NOT_FOUND);
        document_close(&d);
    }
}
/* compared with a plain search over all pairs, on random objects whose keys are spelled in several ways */
static void test_duplicates(void) {
    static const char *const spelled[] = { "", "a", "\\u0061", "b", "ab", "\\u0061b", "a\\u0062", "ba", "\xC3\xA9", "\\u00e9", "\\u00E9x",
            "\\ud83d\\ude00", "\xF0\x9F\x98\x80", "a\\u0000", "\\n" };
    static char text[400000];
    static uint32_t scratch[6001];
    char left[32], right[32];
    uint32_t duplicate;
    size_t length, left_bytes, right_bytes;
    document d;
    random_state = 11;
    check_case("duplicate keys against all pairs, seed 11");
    for (int turn = 0; turn < 400; turn++) {
        uint32_t want = VP_JSON_NONE, a, b;
        int members = (int)(random_bits() % 8);
        length = 0;
        text[length++] = '{';
        for (int i = 0; i < members; i++)
            length += (size_t)sprintf(text + length, "%s\"%s\": {\"a\": 1, \"a\": []}", i ? ", " : "", spelled[random_bits() % (sizeof spelled / sizeof spelled[0])]);
        text[length++] = '}';
        d = document_open(text, length);
        CHECK_INT(d.result, VP_OK);
        for (a = 1; a < d.json.node_count; a = d.nodes[a + 1].end)
            for (b = 1; b < a; b = d.nodes[b + 1].end) {
                vp_json_text(&d.json, a, left, sizeof left, &left_bytes);
                vp_json_text(&d.json, b, right, sizeof right, &right_bytes);
                if (left_bytes == right_bytes && memcmp(left, right, left_bytes) == 0 && want == VP_JSON_NONE) want = a;
            }
        memset(scratch, 0x5A, sizeof scratch);
        duplicate = 77;
        CHECK_INT(vp_json_has_duplicates(&d.json, 0, scratch, (size_t)members, &duplicate), VP_OK);
        CHECK_INT(duplicate, want);
        CHECK_INT(scratch[members], 0x5A5A5A5A);
        document_close(&d);
    }
    for (int k = 0; k < 2; k++) {
        check_case("6000 keys %s", k ? "and one of them twice" : "that differ");
        length = (size_t)sprintf(text, "{");
        for (int i = 0; i < 6000; i++)
            length += (size_t)sprintf(text + length, "%s\"model.transformer.blocks.%d.weight\":%d", i ? "," : "", k && i == 5123 ? 17 : (i * 7919) % 6000, i);
        length += (size_t)sprintf(text + length, "}");
        d = document_open(text, length);
        CHECK_INT(vp_json_has_duplicates(&d.json, 0, scratch, 6000, &duplicate), VP_OK);
        if (k == 0) CHECK_INT(duplicate, VP_JSON_NONE);
        else CHECK_INT(duplicate, 1 + 2 * (5123 > 17 * 1679 % 6000 ? 5123 : 17 * 1679 % 6000)); /* 1679 = 7919^-1 mod 6000 */
        document_close(&d);
    }
    check_case("duplicates: errors");
    d = document_of("{\"a\":1,\"b\":[2]}");
    duplicate = 77;
    CHECK_INT(vp_json_has_duplicates(&d.json, 0, scratch, 1, &duplicate), VP_ERR_CAPACITY);
    CHECK_INT(vp_json_has_duplicates(&d.json, 4, scratch, 9, &duplicate), VP_ERR_MISMATCH);
    CHECK_INT(vp_json_has_duplicates(&d.json, VP_JSON_NONE, scratch, 9, &duplicate), VP_ERR_NOT_FOUND);
    CHECK_INT(duplicate, 77);
    document_close(&d);
}
/* every lead byte with every continuation, against a decoder written the other way round: it decodes first, then checks that the encoding is canonical */
static size_t utf8_reference(const unsigned char *p, size_t left) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t length = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0, i;
    if (length <= 1) return length;
    if (left < length) return 0;
    uint32_t c = p[0] & (0x7Fu >> length);
    for (i = 1; i < length; i++) {
        if (p[i] >> 6 != 2) return 0;
        c = c << 6 | (p[i] & 63u);
    }
    return c < least[length] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : length;
}
static void test_utf8(void) {
    unsigned char text[4], wide[40];
    long wrong = 0;
    check_case("UTF-8: all lead bytes x second bytes x boundary bytes, four bytes long and truncated");
    for (unsigned lead = 0x80; lead < 0x100; lead++)
        for (unsigned second = 0; second < 0x100; second++)
            for (unsigned third = 0; third < 6; third++) {
                static const unsigned char edge[] = { 0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF };
                size_t n, step;
                text[0] = (unsigned char)lead;
                text[1] = (unsigned char)second;
                text[2] = edge[third];
                for (unsigned i = 0; i < 6; i++)
                    for (n = 1; n <= 4; n++) {
                        size_t want = 0;
                        text[3] = edge[i];
                        while (want < n && (step = utf8_reference(text + want, n - want)) > 0) want += step;
                        wrong += vp_utf8_valid_bytes((const char *)text, n) != want;
                    }
            }
    CHECK_INT(wrong, 0);
    check_case("UTF-8: the first invalid byte is found at any position");
    for (unsigned i = 0; i < sizeof wide; i++) {
        memset(wide, 'a', sizeof wide);
        wide[i] = 0x80;
        CHECK_INT(vp_utf8_valid_bytes((const char *)wide, sizeof wide), i);
    }
    memset(wide, '"', sizeof wide);
    CHECK_INT(vp_utf8_valid_bytes((const char *)wide, sizeof wide), sizeof wide);
    memset(wide, 0, sizeof wide);
    CHECK_INT(vp_utf8_valid_bytes((const char *)wide, sizeof wide), sizeof wide);
    CHECK_INT(vp_utf8_valid_bytes(NULL, 0), 0);
}
/* every code point against the list of the Unicode standard */
static void test_controls(void) {
    char text[4], made[16], want[16];
    vp_json_writer w;
    int wrong = 0, unlike = 0;
    check_case("characters that control a screen: C0, DEL, C1, bidi, separators, and no others");
    for (uint32_t code = 0; code < 0x110000; code++) {
        size_t bytes = vp_utf8_put(text, code);
        int hidden = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f
                     || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
        if (code >= 0xd800 && code < 0xe000) continue; /* no characters */
        wrong += vp_utf8_control(text, bytes) != (hidden ? bytes : 0);
        if (code < 0x20) continue; /* test_writer has those */
        vp_json_writer_init(&w, made, sizeof made, 0);
        vp_json_string_bytes(&w, text, bytes);
        vp_json_finish(&w);
        if (hidden) snprintf(want, sizeof want, "\"\\u%04x\"", (unsigned)code);
        else snprintf(want, sizeof want, "\"%s%.*s\"", code == '"' || code == '\\' ? "\\" : "", (int)bytes, text);
        unlike += strcmp(made, want) != 0;
    }
    CHECK_INT(wrong, 0);
    check_case("JSON has those as escapes, and all others as they are");
    CHECK_INT(unlike, 0);
    check_case("the text before such a character");
    CHECK_INT(vp_utf8_visible_bytes("a\xc3\xa9\xf0\x9f\x98\x80\xe2\x80\xae" "b", 11), 7);
    CHECK_INT(vp_utf8_visible_bytes("\xc3\xa9", 2), 2);
    CHECK_INT(vp_utf8_visible_bytes("\xc3\xa9", 1), 0);
    check_case("bytes that are not UTF-8 are hidden one by one; an empty text has nothing to hide");
    CHECK_INT(vp_utf8_control("\xff\x41", 2), 1);
    CHECK_INT(vp_utf8_control("\xe2\x80\xae", 2), 1); /* truncated */
    CHECK_INT(vp_utf8_control("\xed\xa0\x80", 3), 1); /* a surrogate */
    CHECK_INT(vp_utf8_control("\xc0\x80", 2), 1);
    CHECK_INT(vp_utf8_control("", 0), 0);
}
static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
/* hard cases computed by another implementation */
static void test_numbers_golden(void) {
    const char *path = check_golden("json/numbers.tsv");
    char *file = check_read(path, NULL), *line, *next, *want, *shown, out[27];
    int rows = 0;
    check_case("golden numbers are present");
    if (!CHECK(file != NULL)) return;
    for (line = file; *line; line = next, rows++) {
        double value = 7;
        next = strchr(line, '\n');
        *next++ = 0;
        want = strchr(line, '\t');
        *want++ = 0;
        shown = strchr(want, '\t');
        *shown++ = 0;
        check_case("number %.60s", line);
        vp_result result = vp_number_parse(line, strlen(line), &value);
        if (strcmp(want, "range") == 0) {
            CHECK_INT(result, VP_ERR_RANGE);
            CHECK(bits_of(value) == bits_of(7));
            continue;
        }
        CHECK_INT(result, VP_OK);
        check_note(bits_of(value) == strtoull(want, NULL, 16), __FILE__, __LINE__, "bits %016llx, expected %s", (unsigned long long)bits_of(value), want);
        memset(out, 0x5A, sizeof out);
        CHECK_INT(vp_number_format(value, out), strlen(shown));
        CHECK_TEXT(out, shown);
        CHECK_INT(out[26], 0x5A);
    }
    check_case("all golden numbers are present");
    CHECK(rows > 200);
    free(file);
}
/* the digits of a number, without sign, point, exponent and outer zeros */
static int significant_digits(const char *text) {
    int count = 0, zeros = 0, begun = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        if (*text != '0') { count += zeros + 1; zeros = 0; begun = 1; }
        else zeros += begun;
    }
    return count;
}
/* Random doubles of every kind: the text reads back to the same bits, here and in the C library, and no text with one digit less does. */
static void test_numbers_random(void) {
    char text[32], shorter[64];
    int i, digits, wrong_back = 0, wrong_libc = 0, wrong_short = 0, wrong_length = 0;
    random_state = 2026;
    check_case("100000 random doubles, seed 2026");
    for (i = 0; i < 100000; i++) {
        uint64_t bits = random_bits();
        double value, back = 0;
        if (i % 4 == 1) bits = (bits >> 63) << 63 | (bits & ((UINT64_C(1) << 52) - 1)) >> bits % 52; /* subnormals */
        if (i % 4 == 2) bits = bits_of((double)(bits >> 40) / 1000.0); /* values like milliseconds */
        if (i % 4 == 3) bits &= UINT64_C(0xFFF) << 52 | 1;             /* powers of two and their upper neighbours */
        value = double_of(bits);
        size_t n = vp_number_format(value, text);
        if (!(value - value == 0)) { wrong_length += n != 0 || text[0] != 0; continue; }
        wrong_length += n > 24 || n != strlen(text);
        wrong_back += vp_number_parse(text, n, &back) != VP_OK || bits_of(back) != bits;
        wrong_libc += bits_of(strtod(text, NULL)) != bits;
        digits = significant_digits(text);
        if (digits > 1) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
            wrong_short += bits_of(strtod(shorter, NULL)) == bits;
        }
    }
    CHECK_INT(wrong_length, 0);
    CHECK_INT(wrong_back, 0);
    CHECK_INT(wrong_libc, 0);
    CHECK_INT(wrong_short, 0);
    check_case("20000 random decimal texts against the C library, seed 2026");
    for (i = 0; i < 20000; i++) {
        double value = 0, want;
        unsigned long long whole = random_bits() >> i % 64, fraction = random_bits() >> i / 64 % 64;
        int range = i % 3 ? 20 : 350, exponent = (int)(random_bits() % (2 * (unsigned)range)) - range;
        int n = snprintf(shorter, sizeof shorter, "%s%llu.%llue%d", i & 1 ? "-" : "", whole, fraction, exponent);
        vp_result result = vp_number_parse(shorter, (size_t)n, &value);
        want = strtod(shorter, NULL);
        if (fabs(want) <= 1.7976931348623157e308) wrong_back += result != VP_OK || bits_of(value) != bits_of(want);
        else wrong_back += result != VP_ERR_RANGE;
    }
    CHECK_INT(wrong_back, 0);
}
static void test_number_errors(void) {
    static const char *const bad[] = { "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "nan", "inf", "0x10", " 1", "1 ", "1,5", "--1",
            "1e5.0" };
    double value = 7;
    char out[26];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_case("not a number: '%s'", bad[i]);
        CHECK_INT(vp_number_parse(bad[i], strlen(bad[i]), &value), VP_ERR_FORMAT);
    }
    check_case("numbers: other errors");
    CHECK_INT(vp_number_parse(NULL, 0, &value), VP_ERR_FORMAT);
    CHECK_INT(vp_number_parse("1\0", 2, &value), VP_ERR_FORMAT);
    document d = document_of("[0.1, 1e999, \"1\"]");
    CHECK_INT(vp_json_to_double(&d.json, 2, &value), VP_ERR_RANGE);
    CHECK_INT(vp_json_to_double(&d.json, 3, &value), VP_ERR_MISMATCH);
    CHECK_INT(vp_json_to_double(&d.json, 4, &value), VP_ERR_NOT_FOUND);
    CHECK(bits_of(value) == bits_of(7));
    CHECK_INT(vp_json_to_double(&d.json, 1, &value), VP_OK);
    CHECK(bits_of(value) == bits_of(0.1));
    document_close(&d);
    check_case("NaN and infinity have no text");
    CHECK_INT(vp_number_format(double_of(UINT64_C(0x7FF8) << 48), out), 0);
    CHECK_TEXT(out, "");
    CHECK_INT(vp_number_format(double_of(UINT64_C(0xFFF0) << 48), out), 0);
}
static void write_sample(vp_json_writer *w) {
    vp_json_begin_object(w);
    vp_json_key(w, "name");
    vp_json_string(w, "caf\xC3\xA9 \xF0\x9F\x98\x80");
    vp_json_key(w, "esc\"\\");
    vp_json_string_bytes(w, "\"\\/\b\f\n\r\t\x01\x1F\x7F\0", 12);
    vp_json_key(w, "numbers");
    vp_json_begin_array(w);
    vp_json_int(w, 0);
    vp_json_int(w, INT64_MIN);
    vp_json_int(w, INT64_MAX);
    vp_json_double(w, 3);
    vp_json_double(w, -0.1);
    vp_json_end_array(w);
    vp_json_key(w, "empty");
    vp_json_begin_object(w);
    vp_json_end_object(w);
    vp_json_key(w, "mixed");
    vp_json_begin_array(w);
    vp_json_bool(w, 1);
    vp_json_begin_array(w);
    vp_json_end_array(w);
    vp_json_bool(w, 0);
    vp_json_raw(w, "{\"raw\":[1]}", 11);
    vp_json_end_array(w);
    vp_json_key(w, "none");
    vp_json_null(w);
    vp_json_end_object(w);
}
static const char one_line[] =
    "{\"name\": \"caf\xC3\xA9 \xF0\x9F\x98\x80\", \"esc\\\"\\\\\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u0000\", "
    "\"numbers\": [0, -9223372036854775808, 9223372036854775807, 3.0, -0.1], \"empty\": {}, \"mixed\": [true, [], false, {\"raw\":[1]}], "
    "\"none\": null}";
static const char indented[] =
    "{\n  \"name\": \"caf\xC3\xA9 \xF0\x9F\x98\x80\",\n  \"esc\\\"\\\\\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u0000\",\n"
    "  \"numbers\": [0, -9223372036854775808, 9223372036854775807, 3.0, -0.1],\n"
    "  \"empty\": {},\n  \"mixed\": [true,\n    [],\n    false,\n    {\"raw\":[1]}\n  ],\n  \"none\": null\n}";

typedef struct sink_state { char text[1024]; size_t bytes; int calls_left; } sink_state;
static vp_result sink(void *user, const char *text, size_t bytes) {
    sink_state *s = (sink_state *)user;
    if (s->calls_left-- <= 0) return VP_ERR_WRITE;
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
    return VP_OK;
}
static void test_writer(void) {
    char buffer[1024], *exact;
    vp_json_writer w;
    sink_state s;
    for (int k = 0; k < 2; k++) {
        const char *want = k ? indented : one_line;
        size_t length = strlen(want);
        check_case("writer: %s", k ? "indented" : "one line");
        vp_json_writer_init(&w, buffer, sizeof buffer, k * 2);
        write_sample(&w);
        CHECK_INT(vp_json_finish(&w), VP_OK);
        CHECK_INT(w.length_bytes, length);
        CHECK_TEXT(buffer, want);
        document d = document_of(buffer);
        CHECK_INT(d.result, VP_OK);
        document_close(&d);
        check_case("writer: every capacity, %s", k ? "indented" : "one line");
        for (size_t capacity = 0; capacity <= length + 1; capacity++) {
            exact = (char *)malloc(capacity ? capacity : 1);
            memset(exact, 0x5A, capacity ? capacity : 1);
            vp_json_writer_init(&w, exact, capacity, k * 2);
            write_sample(&w);
            CHECK_INT(vp_json_finish(&w), capacity > length ? VP_OK : VP_ERR_CAPACITY);
            CHECK_INT(w.length_bytes, length);
            if (capacity > 0) CHECK(memcmp(exact, want, capacity - 1) == 0 && exact[capacity - 1] == 0);
            free(exact);
        }
        vp_json_writer_init(&w, NULL, 0, k * 2);
        write_sample(&w);
        CHECK_INT(vp_json_finish(&w), VP_ERR_CAPACITY);
        CHECK_INT(w.length_bytes, length);
        check_case("writer: sink, %s", k ? "indented" : "one line");
        memset(&s, 0, sizeof s);
        s.calls_left = 1000000;
        vp_json_writer_init_sink(&w, sink, &s, k * 2);
        write_sample(&w);
        CHECK_INT(vp_json_finish(&w), VP_OK);
        CHECK_TEXT(s.text, want);
    }
    check_case("writer: a sink that fails is not called again");
    memset(&s, 0, sizeof s);
    s.calls_left = 10;
    vp_json_writer_init_sink(&w, sink, &s, 0);
    write_sample(&w);
    CHECK_INT(vp_json_finish(&w), VP_ERR_WRITE);
    CHECK_INT(s.calls_left, -1);
}
/* One letter is one call: { } [ ] k(ey) s(tring) i(nt) n(ull) N(aN) I(nfinity) u = bad UTF-8 string, U = bad key, z = NULL string, Z = NULL key,
 * r/R/q = good, bad and empty raw value, f = finish */
static vp_result play(const char *calls) {
    char buffer[512];
    vp_json_writer w;
    vp_json_writer_init(&w, buffer, sizeof buffer, 0);
    for (; *calls; calls++) {
        switch (*calls) {
        case '{': vp_json_begin_object(&w); break;
        case '}': vp_json_end_object(&w); break;
        case '[': vp_json_begin_array(&w); break;
        case ']': vp_json_end_array(&w); break;
        case 'k': vp_json_key(&w, "k"); break;
        case 's': vp_json_string(&w, "s"); break;
        case 'i': vp_json_int(&w, 1); break;
        case 'n': vp_json_null(&w); break;
        case 'N': vp_json_double(&w, double_of(UINT64_C(0x7FF8) << 48)); break;
        case 'I': vp_json_double(&w, -double_of(UINT64_C(0x7FF0) << 48)); break;
        case 'u': vp_json_string(&w, "\xED\xA0\x80"); break;
        case 'U': vp_json_key(&w, "\xFF"); break;
        case 'z': vp_json_string(&w, NULL); break;
        case 'Z': vp_json_key(&w, NULL); break;
        case 'r': vp_json_raw(&w, " [1] ", 5); break;
        case 'R': vp_json_raw(&w, "1,2", 3); break;
        case 'q': vp_json_raw(&w, NULL, 0); break;
        default: break;
        }
    }
    return vp_json_finish(&w);
}
static void test_writer_misuse(void) {
    static const struct { const char *calls; vp_result result; } rows[] = {
        { "i", VP_OK }, { "r", VP_OK }, { "{}", VP_OK }, { "[{k[]ks}i]", VP_OK }, { "", VP_ERR_STATE }, { "{", VP_ERR_STATE }, { "[", VP_ERR_STATE },
        { "{k", VP_ERR_STATE }, { "ii", VP_ERR_STATE }, { "i[", VP_ERR_STATE }, { "{}{}", VP_ERR_STATE }, { "ir", VP_ERR_STATE }, { "}", VP_ERR_STATE },
        { "]", VP_ERR_STATE }, { "{]", VP_ERR_STATE }, { "[}", VP_ERR_STATE }, { "{i}", VP_ERR_STATE }, { "{[]}", VP_ERR_STATE }, { "{ki i}", VP_ERR_STATE },
        { "{kk}", VP_ERR_STATE }, { "{k}", VP_ERR_STATE }, { "[k", VP_ERR_STATE }, { "k", VP_ERR_STATE }, { "[i]]", VP_ERR_STATE }, { "{r}", VP_ERR_STATE },
        { "N", VP_ERR_RANGE }, { "[I]", VP_ERR_RANGE }, { "u", VP_ERR_FORMAT }, { "{Ui}", VP_ERR_FORMAT }, { "z", VP_ERR_FORMAT }, { "{Zi}", VP_ERR_FORMAT },
        { "[R]", VP_ERR_FORMAT }, { "[q]", VP_ERR_FORMAT }, { "[N]]", VP_ERR_RANGE }, { "]N", VP_ERR_STATE } };
    char deep[140] = {0}, buffer[8];
    vp_json_writer w;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_case("writer calls %s", rows[i].calls);
        CHECK_INT(play(rows[i].calls), rows[i].result);
    }
    check_case("writer: at most 64 levels, including the levels of a raw value");
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    CHECK_INT(play(deep), VP_OK);
    deep[63] = 'r';
    deep[127] = 0;
    CHECK_INT(play(deep), VP_OK);
    memset(deep, '[', 64);
    deep[64] = 'i';
    memset(deep + 65, ']', 64);
    CHECK_INT(play(deep), VP_OK);
    deep[64] = 'r';
    CHECK_INT(play(deep), VP_ERR_RANGE);
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    CHECK_INT(play(deep), VP_ERR_RANGE);
    check_case("writer: an invalid start, and misuse of a full buffer");
    vp_json_writer_init(&w, buffer, sizeof buffer, -1);
    CHECK_INT(vp_json_finish(&w), VP_ERR_RANGE);
    vp_json_writer_init(&w, buffer, sizeof buffer, 17);
    CHECK_INT(vp_json_finish(&w), VP_ERR_RANGE);
    vp_json_writer_init_sink(&w, NULL, NULL, 0);
    CHECK_INT(vp_json_finish(&w), VP_ERR_STATE);
    vp_json_writer_init(&w, buffer, sizeof buffer, 0);
    vp_json_string(&w, "longer than eight");
    CHECK_INT(w.result, VP_ERR_CAPACITY);
    vp_json_null(&w);
    CHECK_INT(vp_json_finish(&w), VP_ERR_STATE);
    CHECK_TEXT(buffer, "\"longer");
}
static void test_blank_words(void) {
    char text[] = "{\"NaN\": NaN, \"a\\\"inf\": [-Infinity,inf], \"b\": Infinityx}";
    check_case("words that are no JSON become empty texts, outside strings and whole");
    CHECK_INT(vp_json_blank_words(text, strlen(text)), 3);
    CHECK_TEXT(text, "{\"NaN\": \"\" , \"a\\\"inf\": [\"\"       ,\"\" ], \"b\": Infinityx}");
}
int main(void) {
    RUN_TESTS(test_accepted, test_refused, test_prefixes, test_tree, test_depth, test_text, test_integers,
              test_duplicates, test_utf8, test_controls, test_numbers_golden, test_numbers_random, test_number_errors,
              test_writer, test_writer_misuse, test_blank_words);
    return check_done("test_json");
}
