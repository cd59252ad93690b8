/* test_files.c: folders made and listed, paths joined, files read with their hash and written whole, names of images; each rejection with its message. */
#define _POSIX_C_SOURCE 200809L
#include "base/files.h"
#include "vlmprof_file.h"
#include "base/console.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"

static void test_folders(void) {
    struct text_list names = {NULL, 0};
    char long_name[400] = "";
    check_case("a folder and its parents are created; an existing one is accepted");
    CHECK_INT(HEARD(make_folder(in_folder("a/b/c"))), 0);
    CHECK_INT(HEARD(make_folder(in_folder("a/b/c"))), 0);
    CHECK_INT(HEARD(make_folder(in_folder("a/d/"))), 0);
    CHECK(is_folder(in_folder("a/b/c")) && is_folder(in_folder("a/d")) && !is_folder(in_folder("a/e")));
    write_text(in_folder("a/file"), "x");
    CHECK(!is_folder(in_folder("a/file")));
    FAILS(make_folder(in_folder("a/file")), EXIT_OUTPUT, "a/file: cannot create the folder: a file with this name already exists");
    FAILS(make_folder(in_folder("a/file/b")), EXIT_OUTPUT, "a/file: cannot create the folder: a file with this name");
    memset(long_name, 'n', 300);
    FAILS(make_folder(in_folder(long_name)), EXIT_OUTPUT, "cannot create the folder: File name too long");
    check_case("the names in a folder are sorted and added after the existing names");
    text_list_copy(&names, "zz");
    CHECK_INT(HEARD(names_of_folder(in_folder("a"), &names)), 0);
    CHECK_INT(names.count, 4);
    if (names.count == 4) { /* the list had one name, and is now sorted as a whole */
        CHECK_TEXT(names.items[0], "b");
        CHECK_TEXT(names.items[1], "d");
        CHECK_TEXT(names.items[2], "file");
        CHECK_TEXT(names.items[3], "zz");
    }
    FAILS(names_of_folder(in_folder("none"), &names), EXIT_INPUT, "none: the folder cannot be read: No such file");
    CHECK_INT(names.count, 4);
    text_list_free(&names);
    check_case("a folder's entries are flushed to disk; a missing folder gives an errno");
    CHECK_INT(vp_folder_sync(in_folder("a")), 0);
    CHECK(vp_folder_sync(in_folder("none")) != 0);
}
static void test_paths(void) {
    static const char *const rows[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}, {"a/b", "c.d", "a/b/c.d"}};
    check_case("a path has one slash between folder and name");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = join_path(rows[i][0], rows[i][1]);
        CHECK_TEXT(path, rows[i][2]);
        free(path);
    }
}
static void test_names(void) {
    static const char *const images[] = {"a.jpg", "a.JPEG", "b.x.png", "c.WebP", "d.gif", "e.jpe", "f.jfif", "g.mpo", "h.apng", "j.jpg.jpg"};
    static const char *const others[] = {".jpg", ".a.jpg", "jpg", "a.jp", "a.jpgg", "a.bmp", "a.txt", "a.", "a", "", "a.png.txt", "a.gif/", "a.hd"};
    check_case("names of images");
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) check_note(is_image_name(images[i]), __FILE__, __LINE__, "%s is no image", images[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_note(!is_image_name(others[i]), __FILE__, __LINE__, "%s is an image", others[i]);
}
static void test_read(void) {
    uint64_t identity = HASH_START;
    char *text = NULL;
    size_t bytes = 0;
    check_case("a file is read completely, and its bytes are hashed");
    write_text(in_folder("one"), "foo");
    write_text(in_folder("two"), "bar");
    CHECK_INT(file_read_in(folder, "one", &text, &bytes, &identity), 0);
    CHECK_INT(bytes, 3);
    CHECK_TEXT(text, "foo");
    free(text);
    text = NULL;
    CHECK_INT(file_read_in(folder, "two", &text, &bytes, &identity), 0);
    CHECK(identity == hash_bytes(HASH_START, "foobar", 6));
    free(text);
    text = NULL;
    CHECK_INT(file_read_in(folder, "two", &text, &bytes, NULL), 0);
    CHECK_TEXT(text, "bar");
    free(text);
    text = NULL;
    FAILS(file_read_in(folder, "none", &text, &bytes, &identity), EXIT_INPUT, "/none: there is no such file");
    CHECK(!text && identity == hash_bytes(HASH_START, "foobar", 6));
}
static int count_in(const char *path) {
    struct text_list names = {NULL, 0};
    names_of_folder(path, &names);
    int count = (int)names.count;
    text_list_free(&names);
    return count;
}
static void test_write(void) {
    struct text_buffer out = {NULL, 0, 0};
    char *text, here[512] = "";
    size_t bytes = 0;
    check_case("a file is written completely, and nothing else remains");
    make_empty(in_folder("w"));
    CHECK_INT(HEARD(file_write_whole(in_folder("w"), "f", "old text", 8)), 0);
    CHECK_INT(HEARD(file_write_whole(in_folder("w"), "f", "n\0w", 3)), 0);
    text = check_read(in_folder("w/f"), &bytes);
    CHECK(text && bytes == 3 && !memcmp(text, "n\0w", 3));
    free(text);
    CHECK_INT(count_in(in_folder("w")), 1);
    text_add_string(&out, "a text");
    CHECK_INT(HEARD(file_write_text(in_folder("w/t"), &out)), 0);
    text = check_read(in_folder("w/t"), &bytes);
    CHECK_TEXT(text, "a text");
    free(text);
    CHECK(getcwd(here, sizeof here) && chdir(in_folder("w")) == 0);
    CHECK_INT(file_write_text("plain", &out), 0);
    CHECK(access("plain", F_OK) == 0 && chdir(here) == 0);
    CHECK_INT(count_in(in_folder("w")), 3);
    check_case("a failed write is reported and leaves no file");
    FAILS(file_write_whole(in_folder("none"), "f", "x", 1), EXIT_OUTPUT, "none/f: it cannot be written: No such file");
    mkdir(in_folder("w/taken"), 0777);
    FAILS(file_write_whole(in_folder("w"), "taken", "x", 1), EXIT_OUTPUT, "w/taken: it cannot be written: it is a folder");
    FAILS(file_write_text(in_folder("none/f"), &out), EXIT_OUTPUT, "none/f: it cannot be written");
    CHECK_INT(count_in(in_folder("w")), 4);
    free(out.data);
}

int main(void) {
    if (!folder_make("files")) return 1;
    RUN_TESTS(test_folders, test_paths, test_names, test_read, test_write);
    return room_end("test_files");
}
