/* test_memory.c: growing memory, texts, lists of texts, and FNV-1a hashes. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "base/memory.h"
#include "support/check.h"
#include <unistd.h>
#include <sys/wait.h>

static void test_memory(void) {
    struct buffer buffer = {NULL, 0};
    unsigned char *bytes = zeroed(1000, 3);
    int sum = 0, status = 0;
    pid_t child;
    check_case("memory: zeroed, copied, kept for reuse");
    for (int i = 0; i < 3000; i++) sum |= bytes[i];
    CHECK_INT(sum, 0);
    free(bytes);
    char *copy = copy_text("abcdef", 3);
    CHECK_TEXT(copy, "abc");
    free(copy);
    free(resize(NULL, 0, 8)); /* zero elements still give memory */
    CHECK(reserve(&buffer, 0, 4) != NULL);
    memset(reserve(&buffer, 10, 4), 7, 40);
    CHECK_INT(buffer.bytes, 40);
    CHECK(reserve(&buffer, 2, 4) == buffer.data && buffer.bytes == 40);
    CHECK(reserve(&buffer, 5, 8) == buffer.data && buffer.bytes == 40);
    CHECK_INT(((char *)reserve(&buffer, 11, 4))[39], 7);
    CHECK_INT(buffer.bytes, 44);
    free(buffer.data);
    check_case("a size that overflows ends the program with exit code 4");
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        if ((child = fork()) == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            resize(NULL, SIZE_MAX / 4 + 1, i ? 4 : 0);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 4);
    }
}
static int undone; /* incremented in order of the calls: 1, 2 */
static void undo_first(void *user) { undone = undone * 10 + *(int *)user; }
static void undo_second(void *user) {
    undo_first(user);
    if (undone == 2) resize(NULL, SIZE_MAX, 2); /* which also runs out of memory */
    _exit(99);
}
static void undo_last(void *user) {
    undo_first(user);
    _exit(undone == 21 ? 4 : undone);
}
static void test_unfinished(void) {
    struct unfinished works[3];
    int numbers[] = {1, 2, 3}, status = 0;
    pid_t child;
    check_case("unfinished work is undone before the program ends, latest first, even if undoing needs memory");
    fflush(stdout);
    if ((child = fork()) == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        unfinished_begin(&works[0], undo_last, &numbers[0]);
        unfinished_begin(&works[2], undo_last, &numbers[2]);
        unfinished_begin(&works[1], undo_second, &numbers[1]);
        unfinished_end(&works[2]);
        unfinished_end(&works[2]);
        resize(NULL, SIZE_MAX, 2);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 4);
}
static void test_text(void) {
    struct text_buffer text = {NULL, 0, 0};
    char want[2000] = "";
    check_case("a text grows piece by piece and ends with NUL");
    for (int i = 0; i < 300; i++) {
        char piece[16];
        int bytes = snprintf(piece, sizeof piece, "%d;", i);
        strcat(want, piece);
        if (i & 1) text_add_string(&text, piece); else text_add(&text, piece, (size_t)bytes);
        CHECK(strlen(text.data) == text.bytes && text.capacity > text.bytes);
    }
    CHECK_TEXT(text.data, want);
    CHECK_INT(text.bytes, strlen(want));
    text_add(&text, "a\0b", 3);
    CHECK(text.bytes == strlen(want) + 3 && !memcmp(text.data + strlen(want), "a\0b", 4));
    free(text.data);
}
static void test_list(void) {
    struct text_list list = {NULL, 0};
    char name[32];
    check_case("a list owns its texts, in order of addition; it can be sorted from an index");
    for (int i = 0; i < 100; i++) {
        if (i % 3) text_list_add(&list, "text %d", 99 - i);
        else {
            snprintf(name, sizeof name, "text %d", 99 - i);
            if (i % 2) text_list_copy(&list, name); else text_list_take(&list, copy_text(name, strlen(name)));
        }
        CHECK_INT(list.count, i + 1);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "text %d", 99 - i);
        CHECK_TEXT(list.items[i], name);
    }
    CHECK(text_list_has(&list, "text 0") && text_list_has(&list, "text 99") && !text_list_has(&list, "text") && !text_list_has(&list, "text 100"));
    text_list_sort(&list, 95); /* text 4, 3, 2, 1, 0 */
    CHECK_TEXT(list.items[94], "text 5");
    for (int i = 0; i < 5; i++) CHECK_INT(list.items[95 + i][5], '0' + i);
    text_list_sort(&list, 100);
    CHECK_TEXT(list.items[0], "text 99");
    text_list_sort(&list, 0);
    CHECK_TEXT(list.items[0], "text 0");
    CHECK_TEXT(list.items[1], "text 1");
    CHECK_TEXT(list.items[2], "text 10");
    CHECK_TEXT(list.items[99], "text 99");
    text_list_free(&list);
    CHECK(!list.items && !list.count);
    text_list_free(&list);
    check_case("a formatted text is truncated at the maximum line length");
    text_list_add(&list, "%0*d", LINE_BYTES + 1, 1);
    CHECK_INT(strlen(list.items[0]), LINE_BYTES - 1);
    text_list_free(&list);
}
static void test_hash(void) {
    check_case("FNV-1a: published values; NULL, numbers and the order of texts matter");
    CHECK(hash_bytes(HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    CHECK(hash_bytes(HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(hash_bytes(HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    CHECK(hash_text(HASH_START, "a") == hash_bytes(HASH_START, "a\0", 2));
    CHECK(hash_text(HASH_START, NULL) == hash_bytes(HASH_START, "\1", 2));
    CHECK(hash_text(HASH_START, NULL) != hash_text(HASH_START, "") && hash_text(HASH_START, NULL) != hash_text(HASH_START, "\1\1"));
    CHECK(hash_text(hash_text(HASH_START, "ab"), "c") != hash_text(hash_text(HASH_START, "a"), "bc"));
    CHECK(hash_number(HASH_START, 0x6162) == hash_bytes(HASH_START, "ba\0\0\0\0\0\0", 8));
}

int main(void) {
    RUN_TESTS(test_memory, test_unfinished, test_text, test_list, test_hash);
    return check_done("test_memory");
}
