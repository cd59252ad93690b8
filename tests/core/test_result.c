/* test_result.c: exact result codes and texts; errors are truncated safely; the arena never returns more than it has. */
#include "support/check.h"
#include "vlmprof.h"

static void test_texts(void) {
    static const struct { vp_result code; int value; const char *text; } pinned[] = {
        {VP_OK, 0, "success"},
        {VP_ERR_RANGE, -1, "a value is outside its allowed range"},
        {VP_ERR_CAPACITY, -2, "a buffer supplied by the caller is too small"},
        {VP_ERR_FORMAT, -3, "the input is malformed"},
        {VP_ERR_UNSUPPORTED, -4, "the input is well-formed but of a kind that is not supported"},
        {VP_ERR_NOT_FOUND, -5, "a file, key or name does not exist"},
        {VP_ERR_MISMATCH, -6, "names, shapes or types do not fit together"},
        {VP_ERR_READ, -7, "a file could not be read"},
        {VP_ERR_WRITE, -8, "output could not be written"},
        {VP_ERR_MEMORY, -9, "not enough memory"},
        {VP_ERR_DEVICE, -10, "the compute device failed or is missing"},
        {VP_ERR_STATE, -11, "a call came in the wrong order"},
        {VP_ERR_INTERRUPTED, -12, "the caller asked to stop"},
    };
    check_case("the exact result texts");
    CHECK_INT(sizeof pinned / sizeof pinned[0], 1 - (int)VP_RESULT_LAST_);
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++) {
        CHECK_INT(pinned[i].code, pinned[i].value);
        CHECK_TEXT(vp_result_text(pinned[i].code), pinned[i].text);
    }
    CHECK_TEXT(vp_result_text((vp_result)-13), "unknown result code");
    CHECK_TEXT(vp_result_text((vp_result)5), "unknown result code");
}
static void test_fail(void) {
    vp_error error;
    char text[1000];
    check_case("vp_error_set fills, truncates and keeps one line");
    CHECK_INT(vp_error_set(NULL, VP_ERR_READ, -1, "x", "y"), VP_ERR_READ);
    memset(&error, 0xA5, sizeof error);
    CHECK_INT(vp_error_set(&error, VP_ERR_FORMAT, 77, "file.json", "bad"), VP_ERR_FORMAT);
    CHECK_INT(error.code, VP_ERR_FORMAT);
    CHECK_INT(error.offset, 77);
    CHECK_TEXT(error.where, "file.json");
    CHECK_TEXT(error.text, "bad");
    vp_error_set(&error, VP_ERR_READ, -1, NULL, NULL);
    CHECK_TEXT(error.where, "");
    CHECK_TEXT(error.text, "");
    vp_error_set(&error, VP_ERR_READ, -1, "a\nb\033c\x7f", "tab\there");
    CHECK_TEXT(error.where, "a?b?c?");
    CHECK_TEXT(error.text, "tab?here");
    vp_error_set(&error, VP_ERR_READ, -1, "a\xc3", "\xff name\xe2\x82: \xc3\xa9\xc3");
    CHECK_TEXT(error.where, "a\xc3"); /* a path may contain any bytes */
    CHECK_TEXT(error.text, "? name??: \xc3\xa9?");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    vp_error_set(&error, VP_ERR_READ, -1, text, text);
    CHECK_INT(strlen(error.where), sizeof error.where - 1);
    CHECK_INT(strlen(error.text), sizeof error.text - 1);
    check_case("a long path keeps its end, after three dots; a character at the cut is dropped as a whole");
    for (size_t length = sizeof error.where - 2; length < sizeof error.where + 3; length++) {
        memset(text, 'x', sizeof text);
        memcpy(text + length - 2, "/f", 3);
        vp_error_set(&error, VP_ERR_READ, -1, text, "");
        CHECK_INT(strlen(error.where), length < sizeof error.where ? length : sizeof error.where - 1);
        CHECK(!strncmp(error.where, "...", 3) == (length >= sizeof error.where) && !strcmp(error.where + strlen(error.where) - 3, "x/f"));
    }
    for (size_t length = 0; length < 8; length++) { /* the euro sign at every position near the cut */
        memset(text, 'x', sizeof text);
        text[sizeof error.where + 20] = 0;
        memcpy(text + 20 + length, "\xe2\x82\xac", 3);
        vp_error_set(&error, VP_ERR_READ, -1, text, "");
        CHECK_INT(strlen(error.where), sizeof error.where - 1 - (length == 2 ? 1 : length == 3 ? 2 : 0));
        CHECK_INT(vp_utf8_valid_bytes(error.where, strlen(error.where)), strlen(error.where));
        CHECK_INT(strstr(error.where, "\xe2\x82\xac") != NULL, length > 3);
    }
}
static void test_message(void) {
    vp_impl_message m = {{0}, 0};
    check_case("messages can print every int64, and stop at their end");
    vp_impl_message_int(&m, INT64_MIN);
    vp_impl_message_text(&m, " ");
    vp_impl_message_int(&m, INT64_MAX);
    vp_impl_message_text(&m, " ");
    vp_impl_message_int(&m, 0);
    CHECK_TEXT(m.text, "-9223372036854775808 9223372036854775807 0");
    for (int i = 0; i < 100; i++) vp_impl_message_text(&m, "12345678");
    CHECK_INT(strlen(m.text), sizeof m.text - 1);
}
static void test_arena(void) {
    static unsigned char memory[4096 + 1];
    vp_arena arena;
    check_case("arena: alignment, exhaustion, overflow");
    arena.base = memory + 1; /* an address that is reliably not a multiple of 64 */
    arena.capacity_bytes = sizeof memory - 1;
    arena.used_bytes = 0;
    unsigned char *p = (unsigned char *)vp_arena_take(&arena, 3, 5);
    CHECK(p && (uintptr_t)p % 64 == 0 && p >= arena.base);
    memset(p, 0xA5, 15);
    p = (unsigned char *)vp_arena_take(&arena, 1, 1);
    CHECK(p && (uintptr_t)p % 64 == 0);
    CHECK_INT(p - arena.base + 1, arena.used_bytes);
    CHECK(vp_arena_take(&arena, 0, 8) != NULL);
    size_t before = arena.used_bytes;
    CHECK(vp_arena_take(&arena, SIZE_MAX / 2, 3) == NULL);
    CHECK(vp_arena_take(&arena, 1, SIZE_MAX) == NULL);
    CHECK(vp_arena_take(&arena, 1, sizeof memory) == NULL);
    CHECK_INT(arena.used_bytes, before);
    while ((p = (unsigned char *)vp_arena_take(&arena, 1, 64)) != NULL) CHECK(p + 64 <= arena.base + arena.capacity_bytes);
    arena.used_bytes = arena.capacity_bytes + 1;
    CHECK(vp_arena_take(&arena, 1, 1) == NULL);
    arena.base = NULL;
    arena.capacity_bytes = arena.used_bytes = 0;
    CHECK(vp_arena_take(&arena, 0, 1) == NULL);
}
static void test_sizes(void) {
    size_t out = 7;
    check_case("size arithmetic with overflow checks");
    CHECK(vp_size_multiply(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    CHECK(vp_size_multiply(SIZE_MAX, 0, &out) && out == 0);
    CHECK(!vp_size_multiply(SIZE_MAX / 2 + 1, 2, &out) && out == 0);
    CHECK(vp_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    CHECK(!vp_size_add(SIZE_MAX, 1, &out) && out == SIZE_MAX);
}
int main(void) {
    RUN_TESTS(test_texts, test_fail, test_message, test_arena, test_sizes);
    return check_done("test_result");
}
