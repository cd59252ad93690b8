/* test_json_stream.c: one JSON object read through a window: the values and offsets that a visitor gets, texts longer than the window, each kind of error and its offset;
 * sources that are files, pipes and files that changed. */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "base/json_stream.h"
#include "support/check.h"
#include "support/folder.h"
#include <sys/wait.h>

/* a walk as text: [offset+bytes] for an element, with :value for a number; key=type for another member */
static struct text_buffer seen;
static int fail_after = -1;
static vp_result see_element(void *user, const vp_json *value, int64_t place, size_t bytes, vp_error *error) {
    char text[80];
    CHECK(user == &seen);
    if (value->nodes[0].type == VP_JSON_NUMBER) snprintf(text, sizeof text, "[%lld+%zu:%g]", (long long)place, bytes, node_number(value, 0));
    else snprintf(text, sizeof text, "[%lld+%zu]", (long long)place, bytes);
    text_add_string(&seen, text);
    return fail_after >= 0 && !fail_after-- ? vp_error_set(error, VP_ERR_RANGE, place, "here", "enough") : VP_OK;
}
static vp_result see_member(void *user, const char *key, const vp_json *value) {
    CHECK(user == &seen);
    text_add_string(&seen, key);
    text_add_string(&seen, node_is(value, 0, VP_JSON_NUMBER) ? "=number " : node_is(value, 0, VP_JSON_STRING) ? "=text " : "=other ");
    return strcmp(key, "stop") ? VP_OK : VP_ERR_RANGE;
}
static vp_error error;
static struct stream_visitor visitor;
static vp_result walk(const char *path) {
    struct source source;
    vp_result result;
    memset(&error, 0, sizeof error);
    visitor.array = "list";
    visitor.element = see_element;
    visitor.member = see_member;
    visitor.user = &seen;
    visitor.found = 0;
    seen.bytes = 0;
    text_add(&seen, "", 0);
    if ((result = source_open(&source, path, &error)) == VP_OK) result = stream_walk(&source, &visitor, &error);
    source_close(&source);
    return result;
}
static vp_result walk_text(const char *text) {
    write_text(in_folder("text"), text);
    return walk(in_folder("text"));
}
static void test_right(void) {
    check_case("elements and members in order, with their offsets");
    CHECK_INT(walk_text(" {\"a\": 1, \"list\" : [ 10,\t20 ,\"x\",{\"y\": [1, \"]\\\"\"]}, [] ] ,\"b\":\"t\",\"c\":{\"list\": [5]}} \r\n"), VP_OK);
    CHECK_TEXT(seen.data, "a=number [21+2:10][25+2:20][29+3][33+17][52+2]b=text c=other ");
    CHECK_INT(visitor.found, 1);
    CHECK_INT(walk_text("{\"list\": []}"), VP_OK);
    CHECK_TEXT(seen.data, "");
    CHECK_INT(visitor.found, 1);
    CHECK_INT(walk_text("{}"), VP_OK);
    CHECK_INT(visitor.found, 0);
    CHECK_INT(walk_text("{\"lis\": [1], \"list2\": true, \"n\": null}"), VP_OK);
    CHECK_TEXT(seen.data, "lis=other list2=other n=other ");
    CHECK_INT(visitor.found, 0);
    check_case("a visitor that fails ends the walk with its own error");
    fail_after = 1;
    CHECK_INT(walk_text("{\"list\": [1, 2, 3], \"b\": 1}"), VP_ERR_RANGE);
    CHECK_TEXT(seen.data, "[10+1:1][13+1:2]");
    CHECK_TEXT(error.text, "enough");
    CHECK_INT(error.offset, 13);
    fail_after = -1;
    CHECK_INT(walk_text("{\"stop\": 1, \"list\": [1]}"), VP_ERR_RANGE);
    CHECK_TEXT(seen.data, "stop=number ");
    CHECK_INT(visitor.found, 0);
}
static void test_wrong(void) {
    static const struct { const char *text; int64_t offset; const char *words; } rows[] = {
        {"", 0, "expected one JSON object"},
        {"[1]", 0, "expected one JSON object"},
        {"{", 1, "the file ends inside a value, or a value is missing"},
        {"{\"a\": 1", 7, "a comma or the end of the object is missing"},
        {"{\"a\": 1 \"b\": 2}", 8, "a comma or the end of the object is missing"},
        {"{\"a\" 1}", 5, "a colon is missing"},
        {"{\"a\"", 4, "a colon is missing"},
        {"{7: 1}", 2, "expected a key"},
        {"{\"a\\u0000\": 1}", 10, "expected a key"},
        {"{\"list\": 5}", 9, "expected an array here"},
        {"{\"list\": {}}", 9, "expected an array here"},
        {"{\"list\": [1 2]}", 12, "a comma or the end of the array is missing"},
        {"{\"list\": [1", 11, "a comma or the end of the array is missing"},
        {"{\"list\": [1,", 12, "the file ends inside a value, or a value is missing"},
        {"{\"list\": [,1]}", 10, "the file ends inside a value, or a value is missing"},
        {"{\"list\": [\"a", 10, "the file ends inside a value, or a value is missing"},
        {"{\"list\": [{\"a\": [1}", 10, "the file ends inside a value, or a value is missing"},
        {"{\"a\": }", 6, "the file ends inside a value, or a value is missing"},
        {"{\"a\": 1,}", 8, "the file ends inside a value, or a value is missing"},
        {"{} x", 3, "unexpected text after the object"},
        {"{\"a\": 1}}", 8, "unexpected text after the object"}};
    check_case("each kind of error, and its offset");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_note(walk_text(rows[i].text) == VP_ERR_FORMAT, __FILE__, __LINE__, "%s is read", rows[i].text);
        check_note(error.offset == rows[i].offset, __FILE__, __LINE__, "%s: byte %lld", rows[i].text, (long long)error.offset);
        CHECK_TEXT(error.text, rows[i].words);
        CHECK_TEXT(error.where, in_folder("text"));
    }
    check_case("a value that is not JSON: the reader's message at its own offset");
    CHECK_INT(walk_text("{\"list\": [1, tru]}"), VP_ERR_FORMAT);
    CHECK(error.offset >= 13 && error.offset <= 16 && error.text[0]);
    CHECK_INT(walk_text("{\"a\": {\"b\": 01}}"), VP_ERR_FORMAT);
    CHECK(error.offset >= 12 && error.offset <= 14);
    CHECK_INT(walk_text("{\"a\": 1\"b\": 2}"), VP_ERR_FORMAT);
    CHECK_INT(error.offset, 7);
}
/* a file whose elements start and end on all sides of the window's end */
static void test_window(void) {
    size_t capacity = 5 * (size_t)WINDOW_BYTES;
    char *text = malloc(capacity);
    check_case("elements that cross the end of the window, and one that is longer");
    for (int shift = 0; shift < 8 && text; shift++) {
        size_t used = (size_t)sprintf(text, "{\"list\": [");
        char last[64];
        int64_t places[8];
        size_t bytes[8];
        for (int i = 0; i < 6; i++) { /* a text of escapes; the third is twice as long as the window */
            size_t length = i == 2 ? 2 * (size_t)WINDOW_BYTES : (size_t)WINDOW_BYTES / 3 + (size_t)shift;
            places[i] = (int64_t)used;
            text[used++] = '"';
            for (size_t k = 0; k + 1 < length; k += 2) { text[used++] = '\\'; text[used++] = k % 6 ? '\\' : '"'; }
            text[used++] = '"';
            bytes[i] = used - (size_t)places[i];
            if (i < 5) for (int k = 0; k <= shift; k++) text[used++] = k == shift / 2 ? ',' : ' ';
        }
        used += (size_t)sprintf(text + used, "], \"b\": 3}");
        write_file(in_folder("window"), text, used);
        CHECK_INT(walk(in_folder("window")), VP_OK);
        for (int i = 0; i < 6; i++) {
            snprintf(last, sizeof last, "[%lld+%zu]", (long long)places[i], bytes[i]);
            CHECK(strstr(seen.data, last) != NULL);
        }
        CHECK(strstr(seen.data, "b=number ") != NULL);
    }
    free(text);
}
static void test_source(void) {
    struct source source;
    struct text_buffer text = {NULL, 0, 0};
    char piece[8] = "", *big = malloc(200000);
    int status = 0;
    pid_t child;
    check_case("a regular file is read by offset");
    write_text(in_folder("text"), "0123456789");
    CHECK_INT(source_open(&source, in_folder("text"), &error), VP_OK);
    CHECK(source.fd >= 0 && !source.memory);
    CHECK(source_read(&source, 7, piece, 8) == 3 && !memcmp(piece, "789", 3));
    CHECK(source_read(&source, 2, piece, 4) == 4 && !memcmp(piece, "2345", 4));
    CHECK_INT(source_read(&source, 10, piece, 4), 0);
    text_add_string(&text, "old");
    CHECK_INT(source_text(&source, 3, 4, &text, &error), VP_OK);
    CHECK(text.bytes == 4 && !strcmp(text.data, "3456"));
    CHECK_INT(source_text(&source, 8, 4, &text, &error), VP_ERR_READ);
    CHECK_TEXT(error.text, "the file changed while it was being read");
    CHECK_INT(error.offset, 10);
    source_close(&source);
    CHECK(source.fd < 0 && !source.memory);
    source_close(&source);
    check_case("a text in several pieces");
    for (int i = 0; big && i < 200000; i++) big[i] = (char)('a' + i % 23);
    if (big) write_file(in_folder("big"), big, 200000);
    CHECK_INT(source_open(&source, in_folder("big"), &error), VP_OK);
    CHECK_INT(source_text(&source, 1000, 150001, &text, &error), VP_OK);
    CHECK(big && text.bytes == 150001 && !memcmp(text.data, big + 1000, 150001));
    source_close(&source);
    check_case("a pipe is stored in memory");
    CHECK_INT(mkfifo(in_folder("pipe"), 0600), 0);
    fflush(stdout);
    if ((child = fork()) == 0) {
        FILE *pipe = fopen(in_folder("pipe"), "w");
        _exit(pipe && fputs("0123456789", pipe) >= 0 && fclose(pipe) == 0 ? 0 : 1);
    }
    CHECK_INT(source_open(&source, in_folder("pipe"), &error), VP_OK);
    CHECK(source.fd < 0 && source.memory && source.memory_bytes == 10);
    CHECK(source_read(&source, 7, piece, 8) == 3 && !memcmp(piece, "789", 3));
    CHECK(source_read(&source, 2, piece, 4) == 4 && !memcmp(piece, "2345", 4));
    CHECK(source_read(&source, 10, piece, 4) == 0 && source_read(&source, 11, piece, 4) == 0);
    CHECK(waitpid(child, &status, 0) == child && !status);
    source_close(&source);
    check_case("a missing value is reported with its path");
    CHECK_INT(source_open(&source, in_folder("none"), &error), VP_ERR_NOT_FOUND);
    CHECK_TEXT(error.where, in_folder("none"));
    source_close(&source);
    FREE_ALL(big, text.data);
}

int main(void) {
    if (!folder_make("json-stream")) return 1;
    RUN_TESTS(test_right, test_wrong, test_window, test_source);
    free(seen.data);
    remove_folder(folder);
    return check_done("test_json_stream");
}
