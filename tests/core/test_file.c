/* test_file.c: vlmprof_file.h. The effect of vp_output on each kind of path (new and old files, links, pipes, devices, open files, folders), the state after a failure,
 * and the remains of killed writers; and that reading a whole file never blocks. Devices are made in a temporary folder, which needs root; without it that case is
 * skipped. */
#define _DEFAULT_SOURCE 1
#include "vlmprof_file.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/device.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int holds(const char *path, const char *text) {
    char *found = NULL;
    size_t bytes;
    int same = vp_file_read(path, 1 << 20, &found, &bytes, NULL) == VP_OK && bytes == strlen(text) && !memcmp(found, text, bytes);
    free(found);
    return same;
}
static int mode_of(const char *path) {
    struct stat info;
    return lstat(path, &info) ? -1 : (int)(info.st_mode & 07777);
}
static int is_kind(const char *path, mode_t kind) {
    struct stat info;
    return lstat(path, &info) == 0 && (info.st_mode & S_IFMT) == kind;
}
static vp_result put(const char *path, const char *text, vp_error *error) { return vp_file_write(path, text, strlen(text), error); }

/* a new file can be written here, but the old one cannot be replaced */
static int put_kept(void) { return put("beside", "x", NULL) != VP_OK || put("kept", "x", NULL) != VP_ERR_WRITE; }

static void test_regular(void) {
    vp_error error;
    mode_t mask = umask(027);
    check_case("a new file gets the permissions that open would give it");
    CHECK_INT(put(in_folder("new"), "one", &error), VP_OK);
    CHECK(holds(in_folder("new"), "one"));
    CHECK_INT(mode_of(in_folder("new")), 0640);
    umask(mask);
    check_case("a replaced file keeps its permissions, and open readers continue with the old content");
    char text[8] = "";
    int fd = open(in_folder("new"), O_RDONLY);
    CHECK_INT(chmod(in_folder("new"), 0604), 0);
    CHECK_INT(put(in_folder("new"), "two", &error), VP_OK);
    CHECK(holds(in_folder("new"), "two"));
    CHECK_INT(mode_of(in_folder("new")), 0604);
    CHECK_INT(read(fd, text, 8), 3);
    CHECK_TEXT(text, "one");
    close(fd);
    check_case("writing nothing gives an empty file");
    CHECK_INT(put(in_folder("empty"), "", &error), VP_OK);
    CHECK(holds(in_folder("empty"), ""));
    CHECK_INT(unfinished_files(), 0);
    check_case("a failed write names the path and the reason");
    CHECK_INT(put(in_folder("no/such/folder"), "x", &error), VP_ERR_WRITE);
    CHECK(strstr(error.where, "no/such/folder") && strstr(error.text, "No such file"));
    CHECK_INT(put("", "x", &error), VP_ERR_WRITE);
    CHECK_INT(put(folder, "x", &error), VP_ERR_WRITE);
    CHECK(strstr(error.text, "it is a folder"));
    CHECK_INT(vp_output_open(NULL, NULL, &error), VP_ERR_RANGE);
    CHECK_INT(unfinished_files(), 0);
}
static void test_links(void) {
    vp_error error;
    check_case("a symbolic link remains; its target is replaced");
    write_text(in_folder("target"), "old");
    CHECK_INT(chmod(in_folder("target"), 0600), 0);
    CHECK_INT(symlink("target", in_folder("link")), 0);
    CHECK_INT(symlink("link", in_folder("second")), 0);
    CHECK_INT(put(in_folder("second"), "new", &error), VP_OK);
    CHECK(is_kind(in_folder("second"), S_IFLNK) && is_kind(in_folder("link"), S_IFLNK));
    CHECK(holds(in_folder("target"), "new"));
    CHECK_INT(mode_of(in_folder("target")), 0600);
    check_case("a link to another folder: the temporary file is next to the target");
    CHECK_INT(mkdir(in_folder("there"), 0777), 0);
    CHECK_INT(symlink("there/file", in_folder("far")), 0);
    CHECK_INT(put(in_folder("far"), "far", &error), VP_OK);
    CHECK(is_kind(in_folder("far"), S_IFLNK) && holds(in_folder("there/file"), "far"));
    CHECK_INT(unfinished_files(), 0);
    check_case("circular links are rejected");
    CHECK_INT(symlink("b", in_folder("a")), 0);
    CHECK_INT(symlink("a", in_folder("b")), 0);
    CHECK_INT(put(in_folder("a"), "x", &error), VP_ERR_WRITE);
    check_case("a link to a folder is rejected");
    CHECK_INT(symlink("there", in_folder("to_folder")), 0);
    CHECK_INT(put(in_folder("to_folder"), "x", &error), VP_ERR_WRITE);
    CHECK(strstr(error.text, "it is a folder"));
}
/* Runs the writer in a child while this process reads the pipe. */
static void test_pipe(void) {
    char text[16] = "";
    int fd, status = -1;
    check_case("a pipe is written to directly and stays a pipe");
    CHECK_INT(mkfifo(in_folder("pipe"), 0600), 0);
    pid_t child = fork();
    if (child == 0) _exit(put(in_folder("pipe"), "through", NULL) == VP_OK ? 0 : 1);
    fd = open(in_folder("pipe"), O_RDONLY);
    CHECK_INT(read(fd, text, sizeof text - 1), 7);
    CHECK_TEXT(text, "through");
    close(fd);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(is_kind(in_folder("pipe"), S_IFIFO));
    CHECK_INT(unfinished_files(), 0);
}
/* paths that vp_file_open must reject, without waiting and without leaving a descriptor open */
static void refuse_open(const char *name, vp_result code, const char *words) {
    vp_error error;
    int fd = -7;
    CHECK_INT(vp_file_open(in_folder(name), &fd, &error), code);
    CHECK_INT(fd, -7);
    check_note(strstr(error.text, words) != NULL, __FILE__, __LINE__, "%s: \"%s\" is not in \"%s\"", name, words, error.text);
}
static void test_open(void) {
    int fd = -1;
    check_case("a regular file is opened, even through a link");
    write_text(in_folder("regular"), "text");
    CHECK_INT(symlink("regular", in_folder("to_regular")), 0);
    CHECK_INT(vp_file_open(in_folder("to_regular"), &fd, NULL), VP_OK);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    close(fd);
    check_case("nothing else is opened");
    refuse_open("none", VP_ERR_NOT_FOUND, "there is no such file");
    refuse_open("", VP_ERR_READ, "it is a folder");
    refuse_open("pipe", VP_ERR_READ, "this is not a regular file");
    CHECK_INT(symlink("pipe", in_folder("to_pipe")), 0);
    refuse_open("to_pipe", VP_ERR_READ, "this is not a regular file");
    CHECK_INT(vp_file_open(NULL, &fd, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_file_open("a", NULL, NULL), VP_ERR_RANGE);
}
static void test_device(void) {
    const char *null = device("null"), *full = device("full");
    vp_error error;
    if (!null || !full) {
        check_skip("devices as outputs", "no device can be made here");
        return;
    }
    check_case("a device is written to directly and stays a device");
    CHECK_INT(put(null, "gone", &error), VP_OK);
    CHECK(is_kind(null, S_IFCHR));
    CHECK_INT(symlink(null, in_folder("to_null")), 0);
    CHECK_INT(put(in_folder("to_null"), "gone", &error), VP_OK);
    CHECK(is_kind(null, S_IFCHR) && is_kind(in_folder("to_null"), S_IFLNK));
    check_case("a full device is reported as full");
    CHECK_INT(put(full, "x", &error), VP_ERR_WRITE);
    CHECK(strstr(error.text, "No space left"));
    CHECK(is_kind(full, S_IFCHR));
}
static void test_open_file(void) {
    int out = open(in_folder("out"), O_RDWR | O_CREAT, 0600), kept = dup(STDOUT_FILENO);
    char path[64];
    check_case("a link to stdout, and /dev/fd/N: written to the open file at its position");
    fflush(stdout);
    CHECK_INT(write(out, "head ", 5), 5);
    dup2(out, STDOUT_FILENO);
    CHECK_INT(symlink("/proc/self/fd/1", in_folder("to_stdout")), 0); /* such as /dev/stdout; a fault must not replace that */
    CHECK_INT(put(in_folder("to_stdout"), "middle ", NULL), VP_OK);
    dup2(kept, STDOUT_FILENO);
    snprintf(path, sizeof path, "/dev/fd/%d", out);
    CHECK_INT(put(path, "tail", NULL), VP_OK);
    CHECK(holds(in_folder("out"), "head middle tail"));
    CHECK(is_kind(in_folder("to_stdout"), S_IFLNK));
    check_case("a descriptor number that is not open is rejected");
    CHECK_INT(put("/dev/fd/97654", "x", NULL), VP_ERR_WRITE);
    close(out);
    close(kept);
}
static void test_failure(void) {
    struct rlimit before, little;
    vp_output output;
    vp_error error;
    char *large = (char *)calloc(1, 100000);
    check_case("if a file cannot be written completely, the old one remains, with nothing next to it");
    write_text(in_folder("kept"), "old");
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = 50000;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &little), 0);
    CHECK_INT(vp_file_write(in_folder("kept"), large, 100000, &error), VP_ERR_WRITE);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(strstr(error.text, "too large"));
    CHECK(holds(in_folder("kept"), "old"));
    CHECK_INT(unfinished_files(), 0);
    free(large);
    check_case("a discarded output leaves no file; discarding again has no effect");
    CHECK_INT(vp_output_open(in_folder("kept"), &output, &error), VP_OK);
    CHECK_INT(vp_output_write(&output, "half", 4, &error), VP_OK);
    CHECK_INT(unfinished_files(), 1);
    vp_output_discard(&output);
    vp_output_discard(&output);
    CHECK(holds(in_folder("kept"), "old"));
    CHECK_INT(unfinished_files(), 0);
    check_case("a folder that appeared under the same name is not replaced");
    CHECK_INT(vp_output_open(in_folder("raced"), &output, &error), VP_OK);
    CHECK_INT(mkdir(in_folder("raced"), 0777), 0);
    CHECK_INT(vp_output_commit(&output, &error), VP_ERR_WRITE);
    CHECK_INT(unfinished_files(), 0);
    check_case("a file without write permission is not replaced");
    if (chmod(in_folder("kept"), 0444)) CHECK(!"chmod");
    switch (without_root(put_kept)) {
        case -1: check_skip("a file that may not be written", "this user is root, and cannot be another"); break;
        case 0: CHECK(holds(in_folder("kept"), "old")); break;
        default: CHECK(!"the file was replaced, or a new one could not be written beside it");
    }
    CHECK_INT(unfinished_files(), 0);
}
static void test_clean(void) {
    vp_output living;
    int status;
    check_case("files of killed writers are removed, those of running writers are not");
    pid_t child = fork();
    if (child == 0) {
        vp_output output;
        if (vp_output_open(in_folder("never"), &output, NULL) == VP_OK) kill(getpid(), SIGKILL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK_INT(unfinished_files(), 1);
    CHECK_INT(vp_output_open(in_folder("whole"), &living, NULL), VP_OK);
    CHECK_INT(symlink("whole", in_folder(VP_OUTPUT_PREFIX "link")), 0);
    CHECK_INT(unfinished_files(), 3);
    vp_output_clean(folder);
    CHECK_INT(unfinished_files(), 2);
    CHECK_INT(vp_output_commit(&living, NULL), VP_OK);
    CHECK(holds(in_folder("whole"), ""));
    CHECK_INT(unlink(in_folder(VP_OUTPUT_PREFIX "link")), 0);
    vp_output_clean(in_folder("no such folder"));
}
static void test_reading(void) {
    vp_error error;
    char *text = NULL;
    size_t bytes;
    check_case("a whole file is never a pipe: it is rejected without waiting");
    CHECK_INT(vp_file_read(in_folder("pipe"), 100, &text, &bytes, &error), VP_ERR_READ);
    CHECK_TEXT(error.text, "this is not a regular file");
    CHECK_INT(vp_file_read("/dev/zero", 100, &text, &bytes, &error), VP_ERR_READ);
    check_case("a stream reads a pipe to its end");
    pid_t child = fork();
    if (child == 0) _exit(put(in_folder("pipe"), "streamed", NULL) == VP_OK ? 0 : 1);
    CHECK_INT(vp_stream_read(in_folder("pipe"), 100, &text, &bytes, &error), VP_OK);
    CHECK_TEXT(text, "streamed");
    free(text);
    waitpid(child, NULL, 0);
    check_case("a stream stops at its limit");
    CHECK_INT(vp_stream_read("/dev/zero", 300000, &text, &bytes, &error), VP_ERR_RANGE);
}
int main(void) {
    if (!folder_make("file")) return 1;
    RUN_TESTS(test_regular, test_links, test_pipe, test_open, test_device, test_open_file, test_failure, test_clean, test_reading);
    remove_folder(folder);
    return check_done("test_file");
}
