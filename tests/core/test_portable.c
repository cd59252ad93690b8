/* test_portable.c: vlmprof_file.h on any system that a companion compiles for; check_compile.sh also runs it on Windows and ARM. POSIX-only features (links, pipes,
 * permissions) are in test_file.c. */
#include "vlmprof_file.h"
#include "support/check.h"

#include <unistd.h>
#ifdef _WIN32
#include <direct.h>
#define make_folder(path) _mkdir(path)
#else
#define make_folder(path) mkdir(path, 0777)
#endif

static char folder[200];
static const char *in_folder(const char *name) {
    static char paths[4][300];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}
static int holds(const char *path, const char *text, size_t bytes) {
    char *found = NULL;
    size_t count = 0;
    int same = vp_file_read(path, 1 << 20, &found, &count, NULL) == VP_OK && count == bytes && !memcmp(found, text, bytes);
    free(found);
    return same;
}
static void test_write(void) {
    static const char text[] = "one\ntwo\r\n\032three\0four"; /* characters that a text mode would change */
    vp_output output;
    vp_error error;
    check_case("bytes are written and read unchanged; a file is replaced");
    CHECK_INT(vp_file_write(in_folder("new"), text, sizeof text, &error), VP_OK);
    CHECK(holds(in_folder("new"), text, sizeof text));
    CHECK_INT(vp_file_write(in_folder("new"), "other", 5, &error), VP_OK);
    CHECK(holds(in_folder("new"), "other", 5));
    check_case("the old file remains until the commit, and the file of a running writer is kept");
    CHECK_INT(vp_output_open(in_folder("new"), &output, &error), VP_OK);
    CHECK_INT(vp_output_write(&output, "half", 4, &error), VP_OK);
    vp_output_clean(folder);
    CHECK(output.temporary && vp_path_kind(output.temporary) == VP_PATH_FILE);
    CHECK(holds(in_folder("new"), "other", 5));
    CHECK_INT(vp_output_commit(&output, &error), VP_OK);
    CHECK(holds(in_folder("new"), "half", 4));
    check_case("a discarded output leaves no file; a dead writer's file is removed");
    CHECK_INT(vp_output_open(in_folder("gone"), &output, &error), VP_OK);
    vp_output_discard(&output);
    CHECK_INT(vp_path_kind(in_folder("gone")), VP_PATH_NONE);
    CHECK_INT(vp_file_write(in_folder(VP_OUTPUT_PREFIX "dead"), "x", 1, &error), VP_OK);
    vp_output_clean(folder);
    CHECK_INT(vp_path_kind(in_folder(VP_OUTPUT_PREFIX "dead")), VP_PATH_NONE);
    check_case("a folder and a missing folder are rejected");
    CHECK_INT(vp_file_write(folder, "x", 1, &error), VP_ERR_WRITE);
    CHECK(strstr(error.text, "folder") != NULL);
    CHECK_INT(vp_file_write(in_folder("no/such"), "x", 1, &error), VP_ERR_WRITE);
    CHECK_INT(vp_folder_sync(folder), 0);
}
static void test_map(void) {
    const unsigned char *data = (const unsigned char *)"untouched";
    size_t bytes = 7;
    vp_error error;
    char *large = (char *)calloc(1, 300000);
    check_case("a mapped file");
    if (!CHECK(large != NULL)) return;
    memset(large + 200000, 'x', 100000);
    CHECK_INT(vp_file_write(in_folder("large"), large, 300000, &error), VP_OK);
    CHECK_INT(vp_file_map(in_folder("large"), &data, &bytes, &error), VP_OK);
    CHECK_INT(bytes, 300000);
    CHECK(bytes == 300000 && !memcmp(data, large, bytes));
    vp_file_advise(data, 100, 250000, 1);
    vp_file_advise(data, 100, 250000, 0);
    CHECK(bytes == 300000 && !memcmp(data, large, bytes)); /* read it again */
    vp_file_unmap(data, bytes);
    check_case("an empty file maps to NULL");
    CHECK_INT(vp_file_write(in_folder("large"), "", 0, &error), VP_OK);
    CHECK_INT(vp_file_map(in_folder("large"), &data, &bytes, &error), VP_OK);
    CHECK(data == NULL && bytes == 0);
    vp_file_unmap(data, bytes);
    check_case("a failed mapping leaves the outputs unchanged");
    bytes = 7;
    CHECK_INT(vp_file_map(in_folder("missing"), &data, &bytes, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_file_map(folder, &data, &bytes, &error), VP_ERR_READ);
    CHECK_INT(vp_file_map(NULL, &data, &bytes, &error), VP_ERR_RANGE);
    CHECK(data == NULL && bytes == 7);
    free(large);
}
static void test_system(void) {
    char name[256] = "untouched", one[1] = {'x'};
    check_case("kinds of paths");
    CHECK_INT(vp_path_kind(folder), VP_PATH_FOLDER);
    CHECK_INT(vp_path_kind(in_folder("new")), VP_PATH_FILE);
    CHECK_INT(vp_path_kind(in_folder("missing")), VP_PATH_NONE);
    CHECK_INT(vp_path_kind(in_folder("no/such")), VP_PATH_NONE);
#ifdef _WIN32
    CHECK_INT(vp_path_kind("NUL"), VP_PATH_OTHER);
#else
    CHECK_INT(vp_path_kind("/dev/null"), VP_PATH_OTHER);
#endif
    check_case("the machine's name, the process, the time");
    vp_host_name(name, sizeof name);
    CHECK(name[0] && strcmp(name, "untouched"));
    vp_host_name(one, 1);
    CHECK_INT(one[0], 0);
    vp_host_name(one, 0);
    CHECK(vp_process_id() > 0);
    CHECK(vp_unix_ns() > (int64_t)1700000000 * 1000000000); /* 2023 */
}
int main(void) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = getenv("TEMP"); /* Windows */
    snprintf(folder, sizeof folder, "%s/vlmprof-portable-%lld", base && strlen(base) < 150 ? base : "/tmp", (long long)vp_process_id());
    if (make_folder(folder) != 0) return 1;
    RUN_TESTS(test_write, test_map, test_system);
    check_case("no other files remain");
    CHECK_INT(remove(in_folder("new")), 0);
    CHECK_INT(remove(in_folder("large")), 0);
    CHECK_INT(rmdir(folder), 0);
    return check_done("test_portable");
}
